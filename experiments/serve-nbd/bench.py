#!/usr/bin/python3
"""Served drives against nbdkit's memory disk, in turns: IOPS, latency, and the server's processor time per I/O.

    python3 experiments/serve-nbd/bench.py target/release/ocssd ROUNDS SECONDS > experiments/serve-nbd/bench.csv

Needs fio with its nbd engine, and nbdkit. Other load on the machine changes IOPS and latency; processor time per I/O holds.
Every server is filled first. A round runs every case on every server, one after the other, so that load falls on all.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# A drive whose media, channels and link take no time, with room for the 1 GiB that is used.
ZERO = ["--drive", "tiny"]
for setting in (
    "chunks_per_pu=512", "sectors_per_chunk=256", "queue_depth=1024", "media.read=0ns", "media.program=0ns",
    "media.erase=0ns", "channel.bytes_per_second=1000GB/s", "channel.command=0ns",
    "link.read_bytes_per_second=1000GB/s", "link.write_bytes_per_second=1000GB/s", "link.command=0ns",
):
    ZERO += ["--set", setting]

# rw, bs, iodepth, connections
CASES = [
    ("randread", "4k", 1, 1), ("randwrite", "4k", 1, 1), ("randread", "4k", 32, 1), ("randwrite", "4k", 32, 1),
    ("randread", "4k", 32, 4), ("randwrite", "4k", 32, 4), ("read", "128k", 32, 1), ("write", "128k", 32, 1),
]


def servers(ocssd):
    """Name, and the command that serves 1 GiB at a socket."""
    serve = lambda target: lambda s: [ocssd, "serve", "--nbd", f"unix:{s}", *ZERO, "--target", target]
    return [
        ("nbdkit-memory", lambda s: ["nbdkit", "-f", "-U", s, "memory", "1G"]),
        ("ocssd-pblk", serve("pblk:block_bytes=4096")),
        ("ocssd-pblk-512", serve("pblk")),
    ]


def cpu_us(process):
    """Processor time of a process so far, in microseconds."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1_000_000 // os.sysconf("SC_CLK_TCK")


def others_busy():
    """Time of all processors that was not idle, in ticks, and all of it."""
    with open("/proc/stat", encoding="ascii") as stat:
        times = [int(word) for word in stat.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def fio(socket, rw, bs, depth, jobs, extra):
    """One run; its result."""
    command = [
        "fio", "--output-format=json", "--name=j", "--ioengine=nbd", f"--uri=nbd+unix:///?socket={socket}",
        f"--rw={rw}", f"--bs={bs}", f"--iodepth={depth}", f"--numjobs={jobs}", "--group_reporting", "--size=1g",
        "--norandommap", *extra,
    ]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out[out.index("{"):])["jobs"][0]


def main():
    """Runs everything, prints rows."""
    ocssd, rounds, seconds = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    rows = csv.writer(sys.stdout)
    rows.writerow(
        "round server rw bs iodepth connections iops p50_us p99_us p999_us server_cpu_us_per_io busy_percent".split()
    )
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for name, command in servers(ocssd):
            socket = f"{folder}/{name}"
            # A session of its own, as a service has: Linux divides processors among sessions first (sched_autogroup).
            process = subprocess.Popen(command(socket), stdout=subprocess.DEVNULL, start_new_session=True)
            running.append((name, socket, process))
            while not os.path.exists(socket):
                assert process.poll() is None, f"{name} did not start"
                time.sleep(0.05)
            fio(socket, "write", "128k", 8, 1, [])
        for number in range(rounds):
            for rw, bs, depth, jobs in CASES:
                for name, socket, process in running:
                    (busy, total), cpu = others_busy(), cpu_us(process)
                    job = fio(socket, rw, bs, depth, jobs, ["--time_based", f"--runtime={seconds}"])
                    (busy_end, total_end), cpu = others_busy(), cpu_us(process) - cpu
                    side = job["read" if "read" in rw else "write"]
                    at = lambda percent: round(side["clat_ns"]["percentile"][percent] / 1000, 1)
                    rows.writerow([
                        number, name, rw, bs, depth, jobs, round(side["iops"]), at("50.000000"), at("99.000000"),
                        at("99.900000"), round(cpu / side["total_ios"], 2),
                        round(100 * (busy_end - busy) / (total_end - total)),
                    ])
                    sys.stdout.flush()
        for _, _, process in running:
            process.send_signal(signal.SIGTERM)
            process.wait()


main()
