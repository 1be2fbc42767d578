#!/usr/bin/env python3
"""The table of README.md: medians of the rounds, alone and beside each attack.

    python3 experiments/serve-fairness/table.py experiments/serve-fairness/bench.csv
"""

import csv
import statistics
import sys

with open(sys.argv[1], encoding="utf-8") as rows:
    ROWS = list(csv.DictReader(rows))


def median(protocol, beside, column):
    """Of all rounds."""
    return statistics.median(float(row[column]) for row in ROWS if (row["protocol"], row["beside"]) == (protocol, beside))


attacks = list(dict.fromkeys(row["beside"] for row in ROWS if row["beside"] != "alone" and row["protocol"] != "SIGTERM to exit"))
print("| protocol | alone: p50, p99 | " + " | ".join(f"{attack}: p50, p99, ratio of p99" for attack in attacks) + " |")
print("|---|---|" + "---|" * len(attacks))
for protocol in dict.fromkeys(row["protocol"] for row in ROWS if row["beside"] == "alone"):
    alone = median(protocol, "alone", "p99_us")
    cells = [f"{median(protocol, 'alone', 'p50_us'):.0f}, {alone:.0f}"]
    for attack in attacks:
        p50, p99 = median(protocol, attack, "p50_us"), median(protocol, attack, "p99_us")
        cells.append(f"{p50:.0f}, {p99:.0f}, {p99 / alone:.1f}")
    print(f"| {protocol} | " + " | ".join(cells) + " |")
for row in ROWS:
    if row["protocol"] == "SIGTERM to exit":
        print(f"\nSIGTERM to exit beside {row['beside']}: {float(row['max_us']) / 1e6:.2f} s")
