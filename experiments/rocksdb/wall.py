#!/usr/bin/env python3
"""db_bench on LightLSM by the wall clock: figures 5 and 6 of CIDR 2020, beside the LSM tree in virtual time.

usage: wall.py PLUGIN.so [KEYS] > wall.tsv

Drive and flags are those of the experiments cidr20-f5 and cidr20-f6 (crates/cli/src/experiment/cidr20): 8 groups of 4 units,
bytes a sixteenth of the paper's, times as they are. Each row is one process with a fresh drive: fillseq of KEYS for each thread
(the same keys for all), what RocksDB says of its stalls, the end of compactions, then readseq and readrandom of 4,096 records a
thread. The rate limiter is "off" with a delayed_write_rate that nobody reaches.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

KEYS = 3_145_728 // 16
READS = 4_096
THREADS = [1, 2, 4, 8]
# Placement, and bytes a second that RocksDB slows puts down to: 8 MiB are its default.
RUNS = [("horizontal", 8 << 20), ("vertical", 8 << 20), ("groups:1", 8 << 20), ("horizontal", 1 << 40), ("vertical", 1 << 40)]
# A second of the paper's, a sixteenth.
BUCKET_S = 0.062
INTERVAL_OPS = 512
DRIVE = """preset = "tiny"
model = "cidr20, a sixteenth"
payload = "bytes"
queue_depth = 4096
groups = 8
pus_per_group = 4
chunks_per_pu = 64
sectors_per_chunk = 384
ws_min = 24
ws_opt = 24
mw_cunits = 0
[media]
planes = 1
sectors_per_page = 24
read = ["70us"]
slow_read = []
program = ["2ms"]
erase = "3ms"
[channel]
bytes_per_second = "800MB/s"
"""
FLAGS = [
    "--key_size=16", "--value_size=1024", "--compression_type=none", "--bloom_bits=10", "--num_levels=6", "--block_size=98304",
    "--write_buffer_size=1572864", "--max_write_buffer_number=64", "--min_write_buffer_number_to_merge=2",
    "--target_file_size_base=50331648", "--max_bytes_for_level_base=50331648", "--level0_file_num_compaction_trigger=1",
    "--level0_slowdown_writes_trigger=16", "--level0_stop_writes_trigger=24", "--max_background_compactions=40",
    "--max_background_flushes=4", "--writable_file_max_buffer_size=1572864", "--disable_wal=1", "--cache_size=0", "--seed=42",
    "--histogram=0", "--stats_per_interval=0", f"--stats_interval={INTERVAL_OPS}",
]


INTERVAL = re.compile(r"thread \d+: \((\d+),\d+\) ops and \([\d.]+,[\d.]+\) ops/second in \([\d.]+,([\d.]+)\)")


def variation(told, took):
    """Puts in buckets of time, from the intervals of all threads: standard deviation by mean, in per cent."""
    buckets = [0.0] * max(1, int(took / BUCKET_S))
    for interval, seconds in INTERVAL.findall(told):
        place = int(float(seconds) / BUCKET_S)
        if place < len(buckets):
            buckets[place] += int(interval)
    return statistics.pstdev(buckets) / statistics.mean(buckets) * 100 if any(buckets) else float("nan")


def run(plugin, drive, placement, rate, threads, keys):
    """One process: operations a second of each benchmark, per cent of fillseq that was stalled, variation of puts."""
    environment = dict(os.environ, LD_PRELOAD=plugin)
    options = f"drive={drive},clock=wall,placement={placement},tables_max=160,spare_percent=50"
    command = [
        "db_bench", "--benchmarks=fillseq,stats,waitforcompaction,readseq,readrandom", *FLAGS, f"--threads={threads}",
        f"--num={keys}", f"--reads={READS}", f"--delayed_write_rate={rate}", f"--fs_uri=lightlsm://{options}", "--db=/db",
    ]
    done = subprocess.run(command, env=environment, capture_output=True)
    told = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        sys.exit(f"db_bench ended with {done.returncode} after printing:\n{told[-4000:]}")
    rates = dict(re.findall(r"^(\w+) *: .*? (\d+) ops/sec", told, re.MULTILINE))
    took = re.search(r"^fillseq .*?ops/sec ([\d.]+) seconds", told, re.MULTILINE)
    stalled = re.search(r"Cumulative stall: .*?, ([\d.]+) percent", told)
    if not took or not stalled or not {"fillseq", "readseq", "readrandom"} <= rates.keys():
        sys.exit(f"db_bench printed something else than expected:\n{told[-4000:]}")
    return rates, float(stalled[1]), variation(told, float(took[1]))


def main():
    plugin, keys = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else KEYS
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as drive:
        drive.write(DRIVE)
        drive.flush()
        rates = "fillseq_ops\treadseq_ops\treadrandom_ops"
        print(f"placement\tlimiter\tthreads\t{rates}\tstalled_percent\tvariation_percent", flush=True)
        for placement, rate in RUNS:
            for threads in THREADS:
                rates, stalled, varied = run(plugin, drive.name, placement, rate, threads, keys)
                limiter = "on" if rate == 8 << 20 else "off"
                of = [rates[name] for name in ("fillseq", "readseq", "readrandom")]
                row = [placement, limiter, threads, *of, stalled, f"{varied:.0f}"]
                print("\t".join(str(field) for field in row), flush=True)


if __name__ == "__main__":
    main()
