#!/usr/bin/python3
"""Latency through the server, in real time, against the same job in virtual time plus what the transport costs.

    python3 experiments/serve-nbd/latency.py target/release/ocssd SECONDS ROUNDS > experiments/serve-nbd/latency.csv

Needs fio with its nbd engine. The transport's cost is the same job on a drive that takes no time. It adds to what media take
at depth 1; with more in flight the two overlap, in the end wholly. On a busy machine the server is late; the rows say how busy
it was. Requests at a rate are not asked for: fio does not look at answers while it waits for the next time to ask.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

WESTLAKE = ["--drive", "westlake", "--set", "chunks_per_pu=40"]
NOTHING = [*WESTLAKE]
for setting in (
    "media.read=0ns", "media.program=0ns", "media.erase=0ns", "channel.bytes_per_second=1000GB/s", "channel.command=0ns",
    "link.read_bytes_per_second=1000GB/s", "link.write_bytes_per_second=1000GB/s", "link.command=0ns",
):
    NOTHING += ["--set", setting]
TARGET = ["--target", "pblk:block_bytes=512,over_provisioning_percent=30"]
# One group: its write buffer is a few MiB, so that reads find their data on media.
PLACE = "pu:0-7"
SIZE = ["--size=256m"]


def idle():
    """Idle ticks of all processors, and all ticks."""
    with open("/proc/stat", encoding="ascii") as stat:
        times = [int(word) for word in stat.readline().split()[1:9]]
    return times[3] + times[4], sum(times)


def parsed(text):
    """The first job of fio's JSON, which notes may precede; p50 and p99 in microseconds, and I/Os."""
    read = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    of = read["clat_ns"]["percentile"]
    return of["50.000000"] / 1000, of["99.000000"] / 1000, read["total_ios"]


def run(command):
    """Its output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def served(ocssd, drive, depth, seconds):
    """The job over NBD."""
    with tempfile.TemporaryDirectory() as folder:
        socket = f"{folder}/s"
        serve = [ocssd, "serve", "--nbd", f"unix:{socket}", *drive, *TARGET, "--place", PLACE]
        server = subprocess.Popen(serve, stdout=subprocess.DEVNULL)
        while not os.path.exists(socket):
            assert server.poll() is None, "the server did not start"
            time.sleep(0.05)
        fio = ["fio", "--output-format=json", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}", "--name=r", *SIZE]
        run([*fio, "--rw=write", "--bs=256k", "--iodepth=8", "--end_fsync=1"])
        job = ["--rw=randread", "--bs=4k", f"--iodepth={depth}", "--norandommap", "--time_based", f"--runtime={seconds}"]
        before = idle()
        result = parsed(run([*fio, *job]))
        after = idle()
        server.send_signal(signal.SIGTERM)
        server.wait()
    return *result, round(100 - 100 * (after[0] - before[0]) / (after[1] - before[1]))


def virtual(ocssd, depth, ios):
    """The same job in virtual time."""
    job = ["--name=r", *SIZE, "--rw=randread", "--bs=4k", f"--iodepth={depth}", "--norandommap", f"--number_ios={ios}"]
    drive = [*WESTLAKE, "--set", "payload=bytes", *TARGET]
    with tempfile.TemporaryDirectory() as folder:
        text = run([ocssd, "run", "--json", "--quiet", "--results", folder, *drive, *job, f"--ocssd=place={PLACE}"])
    return parsed(text)


def main():
    """Rows per round and depth."""
    ocssd, seconds, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rows = csv.writer(sys.stdout)
    rows.writerow("round iodepth percentile virtual_us transport_us served_us off_percent busy_percent".split())
    for number in range(rounds):
        for depth in (1, 4, 16):
            transport = served(ocssd, NOTHING, depth, seconds)
            real = served(ocssd, WESTLAKE, depth, seconds)
            told = virtual(ocssd, depth, real[2])
            for place, name in enumerate(("p50", "p99")):
                off = 100 * (real[place] / (told[place] + transport[place]) - 1)
                micros = [round(what[place], 1) for what in (told, transport, real)]
                rows.writerow([number, depth, name, *micros, round(off, 1), real[3]])
                sys.stdout.flush()


main()
