#!/usr/bin/env python3
"""Rows of rounds.tsv from what run.sh printed, a file for each store and round: NAME.ROUND.out.

    python3 experiments/zenfs/collect.py zenfs-group.0.out lsm-v.0.out ... > experiments/zenfs/rounds.tsv
"""

import os
import re
import sys

print("round\tload\tstore\tbenchmark\toperations_per_second\tp50_us\tp99_us\tp99_9_us\twritten_mb\tread_mb\tcpu_s")
for path in sys.argv[1:]:
    store, number, _ = os.path.basename(path).split(".")
    with open(path, encoding="utf-8", errors="replace") as file:
        printed = file.read().replace("\r", "\n")
    load = re.search(r"^load ([\d.]+)", printed, re.M).group(1)
    for part in re.split(r"^== ", printed, flags=re.M)[1:]:
        named = re.search(r"--benchmarks=(\w+)", part)
        if not named:
            continue
        benchmark = named.group(1)
        rate = re.search(rf"{benchmark} +: +[\d.]+ micros/op (\d+) ops/sec", part)
        media = re.search(r"(\d+) bytes written to the media, (\d+) read", part)
        tail = re.search(r"P50: ([\d.]+) P75: [\d.]+ P99: ([\d.]+) P99.9: ([\d.]+)", part)
        if not (rate and media and tail):
            sys.exit(f"{path}: {benchmark} did not end, or printed something else than db_bench 7.8 does")
        # As bash's time prints it.
        cpu = sum(float(minutes) * 60 + float(seconds) for minutes, seconds in re.findall(r"(?:user|sys)\s+(\d+)m([\d.]+)s", part))
        megabytes = [str(int(count) // 10**6) for count in media.groups()]
        row = [number, load, store, benchmark, rate.group(1), *tail.groups(), *megabytes, f"{cpu:.1f}"]
        print("\t".join(row))
