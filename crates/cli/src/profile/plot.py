#!/usr/bin/env python3
"""Draws the pictures of a profile again, with matplotlib: python3 plot.py [pictures.json] [folder]

A start for figures of your own: change it. Needs matplotlib only (Debian: python3-matplotlib). pictures.json describes every
picture; pictures.csv has the same numbers as rows, for anything else. python3 plot.py --parquet makes a Parquet file of each CSV
file here instead, which needs pyarrow only.
"""
import json
import math
import pathlib
import re
import sys


def to_parquet(folder):
    """Every table of the folder in a form that keeps its types."""
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        sys.exit("Parquet is written by pyarrow, which is not here: pip install pyarrow")
    for table in sorted(folder.glob("*.csv")):
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(table), table.with_suffix(".parquet"))
        print(table.with_suffix(".parquet").name)


if sys.argv[1:] == ["--parquet"]:
    to_parquet(pathlib.Path(__file__).parent)
    sys.exit()

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def caption(axis):
    return f"{axis['label']} ({axis['unit']})" if axis["unit"] else axis["label"]


def scaled(axes, which, axis):
    """Scale, ticks and caption of one axis."""
    name = axis["scale"]
    if name != "linear":
        getattr(axes, f"set_{which}scale")("log", base=2 if name == "log2" else 10)
    places, names = list(range(len(axis["categories"]))), axis["categories"]
    if not names and (axis["ticks"] or name == "log2"):
        places = axis["ticks"] or [2**power for power in range(-2, 14)]
        low, high = getattr(axes, f"get_{which}lim")()
        places = [place for place in places if low <= place <= high]
        names = [f"{place:g}" for place in places]
    if names:
        step = max(1, len(names) // 16)
        getattr(axes, f"set_{which}ticks")(places[::step], names[::step])
        getattr(axes, f"{which}axis").set_minor_locator(matplotlib.ticker.NullLocator())
    getattr(axes, f"set_{which}label")(caption(axis))


def draw_cells(figure, axes, chart, panel):
    """A heat map, blank where a cell has no value."""
    points = [point for series in panel["series"] for point in series["points"]]
    columns = sorted({point["x"] for point in points})
    rows = sorted({point["y"] for point in points})
    field = [[math.nan] * len(columns) for _ in rows]
    for point in points:
        if point["value"] is not None:
            field[rows.index(point["y"])][columns.index(point["x"])] = point["value"]
    values = [point["value"] for s in (p["series"] for p in chart["panels"]) for one in s for point in one["points"]]
    values = [value for value in values if value is not None]
    low, high = chart["colour"]["range"] or (min(values), max(values))
    is_log = chart["colour"]["scale"] != "linear"
    norm = (matplotlib.colors.LogNorm if is_log else matplotlib.colors.Normalize)(low, high)
    half = (columns[1] - columns[0]) / 2 if len(columns) > 1 else 0.5
    extent = (columns[0] - half, columns[-1] + half, rows[0] - 0.5, rows[-1] + 0.5)
    image = axes.imshow(field, origin="lower", aspect="auto", cmap="viridis", norm=norm, extent=extent)
    figure.colorbar(image, ax=axes, label=caption(chart["colour"]))


def draw_lines(axes, chart, panel):
    """A line for each series, with its intervals; lines across and upwards with their names."""
    for series in panel["series"]:
        points = series["points"]
        x, y = [point["x"] for point in points], [point["y"] for point in points]
        low = [point["y"] - (point["y"] if point["low"] is None else point["low"]) for point in points]
        high = [(point["y"] if point["high"] is None else point["high"]) - point["y"] for point in points]
        bars = [low, high] if any(low) or any(high) else None
        most = 12 if series["style"] == "steps" else 60
        look = {"marker": "o" if len(x) <= most else None, "markersize": 3, "label": series["name"]}
        look["drawstyle"] = "steps-post" if series["style"] == "steps" else "default"
        axes.errorbar(x, y, yerr=bars, capsize=2, **look)
    for rule in panel["rules"]:
        axes.axhline(rule["y"], linestyle=":", color="grey")
        axes.annotate(rule["label"], (1, rule["y"]), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)
    for mark in panel["marks"]:
        axes.axvline(mark["x"], linestyle=":", color="grey")
        axes.annotate(mark["label"], (mark["x"], 1), xycoords=("data", "axes fraction"), va="top", rotation=90, fontsize=7)
    if (panel["y"] or chart["y"])["scale"] == "linear":
        axes.set_ylim(bottom=0)
    if len(panel["series"]) > 1:
        axes.legend(fontsize="small")
    axes.grid(True, alpha=0.3)


def draw(chart):
    panels = chart["panels"]
    across = 2 if len(panels) == 4 else len(panels)
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(down, across, figsize=(6.4 * across, 4.4 * down), squeeze=False)
    for axes, panel in zip(grid.flat, panels):
        if chart["colour"]:
            draw_cells(figure, axes, chart, panel)
        else:
            draw_lines(axes, chart, panel)
        scaled(axes, "x", chart["x"])
        scaled(axes, "y", panel["y"] or chart["y"])
        axes.set_title(panel["title"], fontsize="medium")
    figure.suptitle(chart["title"])
    figure.tight_layout()
    return figure


def main():
    source = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "pictures.json")
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else source.parent / "matplotlib")
    folder.mkdir(parents=True, exist_ok=True)
    charts = json.loads(source.read_text(encoding="utf-8"))
    for count, chart in enumerate(charts, 1):
        figure = draw(chart)
        name = f"{count:02}-" + re.sub("[^a-z0-9]+", "-", chart["title"].lower()).strip("-")
        figure.savefig(folder / f"{name}.pdf")
        figure.savefig(folder / f"{name}.png", dpi=150)
        plt.close(figure)
    print(f"{len(charts)} pictures in {folder}")


main()
