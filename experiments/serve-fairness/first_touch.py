#!/usr/bin/env python3
"""A server's processor time for writes into fresh memory, with content's memory taken before serving and without.

    python3 experiments/serve-fairness/first_touch.py target/release/ocssd ROUNDS > experiments/serve-fairness/first_touch.csv

A drive in memory whose media take no time; 256 MiB are written once, in order, 4 KiB at a time. A row is 32 MiB of it. Ticks of
10 ms are the grain: 1.2 us a write.
"""

import csv
import os
import subprocess
import sys
import tempfile
import time

import clients

DRIVE = ["--drive", "tiny"]
for setting in (
    "chunks_per_pu=512", "sectors_per_chunk=256", "queue_depth=1024", "media.read=0ns", "media.program=0ns",
    "media.erase=0ns", "channel.bytes_per_second=1000GB/s", "channel.command=0ns",
    "link.read_bytes_per_second=1000GB/s", "link.write_bytes_per_second=1000GB/s", "link.command=0ns",
):
    DRIVE += ["--set", setting]
WRITES = 8192


def ticks(process):
    """User and system time so far."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return int(fields[11]), int(fields[12])


def main():
    """All rounds."""
    table = csv.writer(sys.stdout)
    table.writerow(["round", "memory", "start_s", "part", "user_us_per_write", "system_us_per_write"])
    data = os.urandom(4096)
    for run in range(int(sys.argv[2])):
        for memory in ("0MiB", "1GiB"):
            with tempfile.TemporaryDirectory() as folder:
                begun = time.perf_counter()
                command = [sys.argv[1], "serve", "--nbd", f"unix:{folder}/s", *DRIVE, "--memory", memory]
                server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
                while not os.path.exists(f"{folder}/s"):
                    assert server.poll() is None, "the server did not start"
                    time.sleep(0.01)
                start = round(time.perf_counter() - begun, 2)
                stream = clients.nbd(f"{folder}/s")
                for part in range(8):
                    before = ticks(server)
                    for first in range(part * WRITES, (part + 1) * WRITES, 64):
                        stream.sendall(b"".join(
                            clients.nbd_request(1, 1, 4096 * block, 4096) + data for block in range(first, first + 64)
                        ))
                        clients.exactly(stream, 16 * 64)
                    took = [round((b - a) * 1e6 / os.sysconf("SC_CLK_TCK") / WRITES, 2) for a, b in zip(before, ticks(server))]
                    table.writerow([run, memory, start, part, *took])
                stream.close()
                server.terminate()
                server.wait()


main()
