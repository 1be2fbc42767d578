#!/usr/bin/python3
"""Served drives over vhost-user-blk: IOPS and latency at a client without a virtual machine, processor time per I/O of the server.

    cargo build --release -p ocssd-export --examples
    python3 experiments/serve-vhost-user-blk/bench.py target/release ROUNDS SECONDS > experiments/serve-vhost-user-blk/bench.csv

Other load on the machine changes IOPS and latency; processor time per I/O holds. Every server is filled first. A round runs
every case on every server, one after the other, so that load falls on all.
"""

import csv
import os
import signal
import subprocess
import sys
import tempfile
import time

MIB = 256

# What is asked, depth, and whether the client polls.
CASES = [
    ("read", 1, ""), ("read", 32, ""), ("read", 64, ""), ("read", 32, "poll"), ("read", 64, "poll"),
    ("write", 1, ""), ("write", 32, ""), ("write", 64, ""), ("write", 32, "poll"),
]
# What is served, on a drive whose media, channels and link take no time.
SERVERS = ["pblk", "pblk-512", "null"]


def cpu_us(process):
    """Processor time of a process so far, in microseconds."""
    with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1000


def busy():
    """Time of all processors that was not idle, in ticks, and all of it."""
    with open("/proc/stat", encoding="ascii") as stat:
        times = [int(word) for word in stat.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def main():
    """Runs everything, prints rows."""
    binaries, rounds, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    load = f"{binaries}/examples/vhost_user_blk_load"
    rows = csv.writer(sys.stdout)
    rows.writerow("round server kind depth client iops p50_us p99_us p999_us server_cpu_us_per_io busy_percent".split())
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for name in SERVERS:
            socket = f"{folder}/{name}"
            command = [f"{binaries}/examples/vhost_user_blk_serve", socket, name]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            running.append((name, socket, process))
            while not os.path.exists(socket):
                assert process.poll() is None, f"{name} did not start"
                time.sleep(0.05)
            subprocess.run([load, socket, "fill", "32", "0", str(MIB)], check=True, stdout=subprocess.DEVNULL)
        for number in range(rounds):
            for kind, depth, polls in CASES:
                for name, socket, process in running:
                    (busy_begin, total_begin), cpu = busy(), cpu_us(process)
                    command = [load, socket, kind, str(depth), seconds, str(MIB), *([polls] if polls else [])]
                    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
                    (busy_end, total_end), cpu = busy(), cpu_us(process) - cpu
                    count, elapsed = int(out[0]), float(out[1])
                    rows.writerow([
                        number, name, kind, depth, polls or "sleeps", round(count / elapsed), *out[2:],
                        round(cpu / count, 2), round(100 * (busy_end - busy_begin) / (total_end - total_begin)),
                    ])
                    sys.stdout.flush()
        for _, _, process in running:
            process.send_signal(signal.SIGTERM)
            process.wait()


main()
