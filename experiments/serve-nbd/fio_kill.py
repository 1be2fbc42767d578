#!/usr/bin/env python3
"""Kills the server with SIGKILL while fio writes, serves the image again, and has fio verify every flushed write.

    python3 experiments/serve-nbd/fio_kill.py target/release/ocssd ROUNDS [SEED]

Needs fio with its engine nbd. fio writes each block of a region once, in an order that its seed decides, many at a time, and
flushes now and then. A relay between fio and the server reads along: a write is durable when a flush that was sent after its
answer has been answered. fio is not told; after the kill it makes its own sequence of writes again, as far as all of them are
durable (`verify_only`, `number_ios`), and reads and checks each. The image is the same in all rounds.

Prints a line of comma-separated values for each round, and the sums.
"""

import argparse
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading

REGION_BYTES = 32 << 20
DRIVE = ["--drive", "tiny"]
for SETTING in (
    "chunks_per_pu=64", "sectors_per_chunk=64", "media.read=2us", "media.program=5us", "media.erase=9us"
):
    DRIVE += ["--set", SETTING]

# The protocol, as in NBD's doc/proto.md.
OPTION, OPTION_REPLY = 0x49484156454F5054, 0x3E889045565A9
REQUEST, SIMPLE, STRUCTURED = 0x25609513, 0x67446698, 0x668E33EF
GO, ACK, WRITE, FLUSH, DONE, ERROR_CHUNK = 7, 1, 1, 3, 1, 1 << 15


class Stream:
    """One direction of a connection: bytes are passed on once what they say has been noted."""

    def __init__(self, source, sink):
        self.source, self.sink, self.held = source, sink, b""

    def fill(self, count):
        """The next bytes, which stay; they are passed on by `take`."""
        while len(self.held) < count:
            more = self.source.recv(1 << 18)
            if not more:
                raise ConnectionError
            self.held += more
        return self.held[:count]

    def take(self, count):
        """Passes bytes on."""
        while count > 0:
            part = self.fill(min(count, 1 << 18))
            self.sink.sendall(part)
            self.held, count = self.held[len(part):], count - len(part)


class Relay:
    """Between fio and the server: what was written, answered, and made durable. fio connects twice, and asks for the size first."""

    def __init__(self, folder, kill, kill_at_flush):
        self.folder, self.kill, self.kill_at_flush = folder, kill, kill_at_flush
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/r")
        self.listener.listen(4)
        self.begun = threading.Event()
        # Number of each write that is not answered, by cookie; flushes with what they make durable.
        self.writes, self.flushes = {}, {}
        self.sent = self.prefix = self.durable = self.flushed = self.errors = 0
        self.answered = set()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()

    def accept(self):
        """Takes connections until the listener is closed."""
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(f"{self.folder}/s")
            except OSError:
                near.close()
                continue
            for way in (self.requests, self.replies):
                self.threads.append(threading.Thread(target=self.run, args=(way, near, far)))
                self.threads[-1].start()

    def end(self):
        """No more connections, and those there were have ended."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join()
        os.unlink(f"{self.folder}/r")

    def run(self, way, near, far):
        """One direction, until either side goes; then the other goes too."""
        try:
            way(near, far)
        except OSError:
            pass
        for side in (near, far):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def requests(self, near, far):
        """From fio."""
        stream = Stream(near, far)
        stream.take(4)
        while struct.unpack(">Q", stream.fill(8))[0] == OPTION:
            stream.take(16 + struct.unpack(">I", stream.fill(16)[12:])[0])
        while True:
            magic, _, command, cookie, _, length = struct.unpack(">IHHQQI", stream.fill(28))
            assert magic == REQUEST, hex(magic)
            with self.lock:
                if command == WRITE:
                    self.writes[cookie] = self.sent
                    self.sent += 1
                    self.begun.set()
                elif command == FLUSH:
                    self.flushes[cookie] = self.prefix
            stream.take(28 + (length if command == WRITE else 0))

    def replies(self, near, far):
        """From the server."""
        stream = Stream(far, near)
        stream.take(18)
        option = kind = 0
        while (option, kind) != (GO, ACK):
            magic, option, kind, length = struct.unpack(">QIII", stream.fill(20))
            assert magic == OPTION_REPLY, hex(magic)
            stream.take(20 + length)
        while True:
            magic = struct.unpack(">I", stream.fill(4))[0]
            if magic == SIMPLE:
                error, cookie = struct.unpack(">IQ", stream.fill(16)[4:])
                size, is_last = 16, True
            else:
                assert magic == STRUCTURED, hex(magic)
                flags, kind, cookie, length = struct.unpack(">HHQI", stream.fill(20)[4:])
                size, is_last, error = 20 + length, flags & DONE, kind & ERROR_CHUNK
            self.errors += 1 if error else 0
            if is_last:
                self.on_reply(cookie)
            stream.take(size)

    def on_reply(self, cookie):
        """A request is answered."""
        with self.lock:
            number = self.writes.pop(cookie, None)
            if number is not None:
                self.answered.add(number)
                while self.prefix in self.answered:
                    self.answered.discard(self.prefix)
                    self.prefix += 1
            elif cookie in self.flushes:
                self.durable = max(self.durable, self.flushes.pop(cookie))
                self.flushed += 1
                if self.flushed == self.kill_at_flush:
                    self.kill()


def start(ocssd, folder):
    """Serves the image."""
    command = [ocssd, "serve", "--nbd", "unix:s", "--drive", "a.img", "--target", "pblk:over_provisioning_percent=25"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    while "nbd+unix" not in process.stdout.readline():
        assert process.poll() is None, "the server did not start"
    return process


def fio(folder, name, job, *more):
    """Starts fio on a socket of the folder."""
    command = ["fio", "--name=flushed", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={folder}/{name}", "--rw=randwrite"]
    command += [f"--size={REGION_BYTES}", "--verify=crc32c", "--verify_fatal=1", "--output-format=json"]
    command += [f"--{key}={value}" for key, value in job.items()] + list(more)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, **pipes)


def write_until_killed(server, folder, job, fsync, rng):
    """fio writes through a relay until the server is gone; what the relay saw, and how the kill was timed."""
    at_flush = rng.randrange(1, 40) if rng.random() < 0.5 else 0
    relay = Relay(folder, server.kill, at_flush)
    writer = fio(folder, "r", job, "--do_verify=0", f"--fsync={fsync}")
    assert relay.begun.wait(60), "fio did not begin to write"
    if not at_flush:
        threading.Timer(rng.uniform(0.0, 0.5), server.kill).start()
    _, said = writer.communicate(timeout=120)
    # If fio was quicker than the kill, all was flushed only if the last flush came last.
    server.kill()
    server.wait()
    relay.end()
    assert relay.sent > 0, f"fio wrote nothing: {said}"
    assert relay.errors == 0, f"{relay.errors} requests failed before the kill"
    return relay, at_flush


def verify(folder, job, count):
    """fio reads the first writes of its sequence and checks them; how many it read."""
    reader = fio(folder, "s", job, "--verify_only", f"--number_ios={count}")
    out, said = reader.communicate(timeout=120)
    assert "{" in out, f"fio said nothing but {out} {said}"
    result = json.loads("{" + out.split("{", 1)[1])["jobs"][0]
    assert reader.returncode == 0 and result["error"] == 0, f"fio found a flushed write missing: {said}"
    return result["read"]["total_ios"]


def run(arguments, folder):
    """All rounds."""
    ocssd, rng = os.path.abspath(arguments.ocssd), random.Random(arguments.seed)
    command = [ocssd, "format", "a.img", *DRIVE]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    print("round,block_bytes,depth,fsync,kill,writes_sent,writes_in_flight,flushes,flushed_writes,verified")
    sums = [0, 0, 0, 0]
    for number in range(arguments.rounds):
        depth, fsync = rng.choice((1, 8, 32)), rng.choice((1, 8, 64))
        job = {"bs": rng.choice((512, 4096, 16384)), "iodepth": depth, "randseed": rng.randrange(1 << 31)}
        server = start(ocssd, folder)
        relay, at_flush = write_until_killed(server, folder, job, fsync, rng)
        server = start(ocssd, folder)
        try:
            verified = verify(folder, job, relay.durable) if relay.durable else 0
        finally:
            server.kill()
            server.wait()
        assert verified == relay.durable, f"fio verified {verified} of {relay.durable} writes"
        in_flight, kill = len(relay.writes), f"flush {at_flush}" if at_flush else "time"
        print(
            number, job["bs"], depth, fsync, kill, relay.sent, in_flight, relay.flushed, relay.durable, verified, sep=","
        )
        sums = [a + b for a, b in zip(sums, (relay.sent, in_flight, relay.flushed, verified))]
    sent, in_flight, flushes, verified = sums
    assert verified > 0, "no write was ever flushed, so this showed nothing"
    print(
        f"seed {arguments.seed}: {arguments.rounds} kills, {sent} writes sent ({in_flight} in flight at a kill), {flushes} "
        f"flushes answered; all {verified} flushed writes were there"
    )


def main():
    """Rounds, in a folder that is removed."""
    parser = argparse.ArgumentParser(description="Kills the server while fio writes, and has fio verify what was flushed.")
    parser.add_argument("ocssd")
    parser.add_argument("rounds", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            run(arguments, folder)
        except AssertionError as error:
            sys.exit(f"seed {arguments.seed}: {error}")


main()
