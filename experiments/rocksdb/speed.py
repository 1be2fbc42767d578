#!/usr/bin/env python3
"""Processor seconds of db_bench on tmpfs and on the plugin with a drive as fast as memory, interleaved.

usage: speed.py PLUGIN.so [ROUNDS] > speed.tsv

Each round runs, one after the other, on tmpfs (/dev/shm) and on the plugin: fillseq alone, and fillseq with readrandom. What
readrandom costs is the difference of the second to the median of the first. Processor time, user and system, is what the kernel
accounts to the process. Medians and their ratio go to standard error.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

KEYS = 200_000
READS = 400_000
FLAGS = [
    "--key_size=16", "--value_size=1000", "--compression_type=none", "--cache_size=0", "--bloom_bits=10", "--seed=42",
    f"--num={KEYS}", f"--reads={READS}",
]
FAST = """preset = "westlake"
model = "as fast as memory"
payload = "bytes"
groups = 2
pus_per_group = 2
chunks_per_pu = 512
sectors_per_chunk = 1024
ws_min = 8
ws_opt = 8
mw_cunits = 0
[media]
planes = 1
sectors_per_page = 8
read = ["1us"]
slow_read = []
program = ["1us"]
erase = "1us"
[channel]
bytes_per_second = "1000GB/s"
command = "0ns"
[link]
read_bytes_per_second = "1000GB/s"
write_bytes_per_second = "1000GB/s"
command = "0ns"
"""


def cpu_seconds(benchmarks, plugin, drive):
    """One process of db_bench: what it used of the processor."""
    environment, extra = dict(os.environ), []
    directory = None
    if plugin:
        environment["LD_PRELOAD"] = plugin
        extra = [f"--fs_uri=lightlsm://drive={drive}", "--db=/db"]
    else:
        directory = tempfile.mkdtemp(dir="/dev/shm")
        extra = [f"--db={directory}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["db_bench", f"--benchmarks={benchmarks}", *FLAGS, *extra], env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if directory:
        shutil.rmtree(directory)
    told = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0 or ("readrandom" in benchmarks and f"({READS} of {READS} found)" not in told):
        sys.exit(f"db_bench ended with {done.returncode} after printing:\n{told}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    plugin, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    found = {}
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as drive:
        drive.write(FAST)
        drive.flush()
        print("round\tbenchmarks\tstore\tcpu_s", flush=True)
        for number in range(rounds):
            for benchmarks in ["fillseq", "fillseq,readrandom"]:
                for store in ["tmpfs", "plugin"]:
                    seconds = cpu_seconds(benchmarks, plugin if store == "plugin" else None, drive.name)
                    found.setdefault((benchmarks, store), []).append(seconds)
                    print(f"{number}\t{benchmarks}\t{store}\t{seconds:.3f}", flush=True)
    median = {key: statistics.median(values) for key, values in found.items()}
    for name, of in [
        ("fillseq", lambda store: median["fillseq", store]),
        ("readrandom", lambda store: median["fillseq,readrandom", store] - median["fillseq", store]),
    ]:
        tmpfs, drive = of("tmpfs"), of("plugin")
        print(f"{name}: tmpfs {tmpfs:.2f} s, plugin {drive:.2f} s, ratio {drive / tmpfs:.2f}", file=sys.stderr)


if __name__ == "__main__":
    main()
