#!/usr/bin/python3
"""Kills the server with SIGKILL while a client writes, serves the image again, and looks for every flushed write.

    /usr/bin/python3 experiments/serve-nbd/kill.py target/release/ocssd ROUNDS [SEED]

Needs python3-libnbd. Each write carries its place and a number that only grows. A block read after the kill must be whole,
at least as new as its last flushed (or FUA) write, and no newer than what was ever sent.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile
import threading

import nbd

BLOCKS = 2048
SIZES = (512, 4096, 16384)
DRIVE = ["--drive", "tiny"]
for SETTING in (
    "chunks_per_pu=64", "sectors_per_chunk=64", "media.read=2us", "media.program=5us", "media.erase=9us"
):
    DRIVE += ["--set", SETTING]


def content(block, version):
    """512 bytes that say which write of which block they are of."""
    return struct.pack("<QQ", block, version) * 32


def start(ocssd, folder):
    """Serves the image; returns the process and a client."""
    command = [ocssd, "serve", "--nbd", "unix:s", "--drive", "a.img", "--target", "pblk:over_provisioning_percent=25"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while "nbd+unix" not in process.stdout.readline():
        assert process.poll() is None, "the server did not start"
    client = nbd.NBD()
    client.connect_uri(f"nbd+unix:///?socket={folder}/s")
    return process, client


class Model:
    """What each block of 512 bytes may hold."""

    def __init__(self):
        self.version = 0
        self.least = [0] * BLOCKS
        self.answered = [0] * BLOCKS
        self.sent = [0] * BLOCKS

    def judge(self, block, data):
        """Dies if the block holds what it must not."""
        found_block, found = struct.unpack("<QQ", data[:16])
        assert data == (content(block, found) if found else bytes(512)), f"block {block} is torn"
        assert found == 0 or found_block == block, f"block {block} holds what was written to {found_block}"
        assert found >= self.least[block], f"block {block} holds {found}, {self.least[block]} was durable"
        assert found <= self.sent[block], f"block {block} holds {found}, {self.sent[block]} was the last sent"
        # What is there now stays, or is followed by something newer.
        self.least[block] = self.answered[block] = self.sent[block] = found


def write_until_killed(client, model, rng):
    """Random writes and flushes, one after the other on this side, until the server is gone; returns how many."""
    count = 0
    try:
        while True:
            if rng.random() < 0.05:
                promised = list(model.answered)
                client.flush()
                model.least = [max(pair) for pair in zip(model.least, promised)]
            bytes_ = rng.choice(SIZES)
            first = rng.randrange(BLOCKS - bytes_ // 512 + 1)
            blocks = range(first, first + bytes_ // 512)
            model.version += 1
            version, fua = model.version, rng.random() < 0.02
            data = b"".join(content(block, version) for block in blocks)
            for block in blocks:
                model.sent[block] = version
            client.pwrite(data, first * 512, nbd.CMD_FLAG_FUA if fua else 0)
            for block in blocks:
                model.answered[block] = version
                if fua:
                    model.least[block] = version
            count += 1
    except nbd.Error:
        return count


def main():
    """Rounds, and what they found."""
    ocssd, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng, model, writes = random.Random(seed), Model(), 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ocssd, "format", "a.img", *DRIVE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for number in range(rounds):
            process, client = start(ocssd, folder)
            for block in range(BLOCKS):
                try:
                    model.judge(block, bytes(client.pread(512, block * 512)))
                except AssertionError as error:
                    sys.exit(f"seed {seed}, round {number}: {error}")
            timer = threading.Timer(rng.uniform(0.0, 0.6), process.kill)
            timer.start()
            writes += write_until_killed(client, model, rng)
            process.wait()
            timer.join()
    print(f"seed {seed}: {rounds} kills during {writes} writes, every flushed write was there")


main()
