#!/usr/bin/env python3
"""The tables of README.md: medians of the rounds that were measured with little else running.

    python3 experiments/zenfs/table.py experiments/zenfs/rounds.tsv
"""

import csv
import statistics
import sys

# Rounds that began with a load above this are left out: two cores, and a store with its engine uses one to two of them.
LOAD_MAX = 3.0
STORES = {
    "zenfs-group": "ZenFS, zones of a group",
    "lsm-v": "LightLSM, vertical",
    "lsm-h": "LightLSM, horizontal",
    "pblk": "tables on pblk",
    "block_ssd": "tables on block_ssd",
}
COLUMNS = {
    "operations_per_second": "operations a second",
    "p99_us": "p99 of an operation, us",
    "p99_9_us": "p99.9, us",
    "written_mb": "MB written to the media",
    "cpu_s": "processor seconds, all threads and the drive",
}

with open(sys.argv[1], encoding="utf-8") as file:
    ROWS = [row for row in csv.DictReader(file, delimiter="\t") if float(row["load"]) <= LOAD_MAX]

benchmarks = list(dict.fromkeys(row["benchmark"] for row in ROWS))
for column, says in COLUMNS.items():
    print(f"| {says} | " + " | ".join(benchmarks) + " | rounds |")
    print("|---|" + "---|" * (len(benchmarks) + 1))
    for store, name in STORES.items():
        of_store = [row for row in ROWS if row["store"] == store]
        cells = []
        for benchmark in benchmarks:
            values = [float(row[column]) for row in of_store if row["benchmark"] == benchmark]
            middle = statistics.median(values)
            cells.append(f"{middle:.1f}" if column in ("cpu_s",) or middle < 100 else f"{middle:.0f}")
        print(f"| {name} | " + " | ".join(cells) + f" | {len(of_store) // len(benchmarks)} |")
    print()
