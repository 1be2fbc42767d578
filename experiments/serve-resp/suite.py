#!/usr/bin/env python3
"""Redis' own Tcl tests, of Debian's source package, against the server.

    python3 experiments/serve-resp/suite.py target/release/ocssd FOLDER [UNIT ..]

FOLDER holds the unpacked source (`redis-7.0.15`); it is fetched there if it is not, as root on Debian. Tests of what is not
served are skipped: those of skipped.txt, with the reason for each, and those with tags for replication, DEBUG and saving. Without
UNIT all that apply are run, a minute or so. Needs tclsh.
"""

import os
import re
import subprocess
import sys

from served import FAST, SHAPE, Server, drive

UNITS = [
    "unit/type/string", "unit/type/incr", "unit/keyspace", "unit/scan", "unit/expire", "unit/protocol", "unit/quit", "unit/multi",
]
# Tests that pass in each unit at least, on average of those that are run (chosen: a suite that skips all is no success).
LEAST_OK = 3
TAGS = (
    "-needs:repl -needs:debug -needs:save -needs:config-maxmemory -needs:reset -needs:config-resetstat -external:skip "
    "-singledb:skip -script"
)
HERE = os.path.dirname(os.path.abspath(__file__))


def fetch(folder):
    """Debian's source package."""
    os.makedirs(os.path.join(folder, "lists", "partial"), exist_ok=True)
    sources = os.path.join(folder, "sources.list")
    with open(sources, "w") as file:
        file.write("deb-src http://deb.debian.org/debian bookworm main\n")
    options = [f"Dir::Etc::sourcelist={sources}", "Dir::Etc::sourceparts=/nonexistent", f"Dir::State::lists={folder}/lists"]
    apt = ["apt-get", "-q"] + [word for option in options for word in ("-o", option)]
    subprocess.run(apt + ["update"], check=True, cwd=folder)
    subprocess.run(apt + ["source", "--download-only", "redis"], check=True, cwd=folder)
    archive = next(name for name in os.listdir(folder) if name.endswith(".orig.tar.gz"))
    subprocess.run(["tar", "xzf", archive], check=True, cwd=folder)


def source(folder):
    """Where the source is."""
    found = [name for name in os.listdir(folder) if re.fullmatch(r"redis-7[0-9.]*", name)] if os.path.isdir(folder) else []
    if not found:
        fetch(folder)
        return source(folder)
    return os.path.join(folder, found[0])


def main():
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    units = sys.argv[3:] or UNITS
    unknown = [unit for unit in units if unit not in UNITS]
    if unknown:
        raise SystemExit(f"units of {', '.join(UNITS)} were expected, but {', '.join(unknown)} found")
    root = source(folder)
    names = [line.split(" # ")[0] for line in open(os.path.join(HERE, "skipped.txt")) if not line.startswith("#")]
    skipfile = os.path.join(folder, "skipfile")
    with open(skipfile, "w") as file:
        file.write("\n".join(name.strip() for name in names if name.strip()))
    server = Server(program, drive("tiny", SHAPE + FAST))
    command = ["./runtest", "--host", server.host, "--port", str(server.port), "--singledb", "--ignore-encoding", "--ignore-digest"]
    command += ["--tags", TAGS, "--skipfile", skipfile] + [word for unit in units for word in ("--single", unit)]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    for line in text.splitlines():
        if not line.startswith(("[ok]", "[skip]", "[ignore]")):
            print(line)
    counts = {kind: len(re.findall(rf"^\[{kind}\]", text, re.M)) for kind in ("ok", "err", "skip", "exception", "ignore")}
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    server.stop()
    sys.exit(0 if done.returncode == 0 and counts["err"] == 0 and counts["ok"] >= LEAST_OK * len(units) else 1)


main()
