#!/usr/bin/env python3
"""Where the target runs: in RocksDB's process on a drive there, in RocksDB's process on a served drive, or behind the server.

served.py OCSSD PLUGIN ROUNDS, in a folder with small.toml, a drive file for the export that a server of a raw drive has beside it.
"""
import os, re, resource, signal, statistics, subprocess, sys, time
OCSSD, PLUGIN, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
MEDIA = ["media.read=1us", "media.program=1us", "media.erase=1us", "link.command=0s"]
NUM = "20000"
BENCH = ["--db=/db", f"--num={NUM}", "--value_size=1000", "--key_size=16", "--write_buffer_size=8388608",
         "--target_file_size_base=8388608", "--compression_type=none", "--cache_size=0", "--seed=42"]
def cpu(pid):
    f = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")
def serve(arguments):
    p = subprocess.Popen([OCSSD, "serve", "--json", "--nvme-tcp", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, text=True)
    said = ""
    for line in p.stdout:
        said += line
        if line == "}\n": break
    return p, re.search(r'"addresses": \[\s*"([^"]+)"', said)[1]
def bench(uri, jobs, more=()):
    env = dict(os.environ, LD_PRELOAD=PLUGIN, OCSSD_NOTES="1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = subprocess.run(["db_bench", f"--fs_uri=lightlsm://{uri}", f"--benchmarks={jobs}", *BENCH, *more],
                       env=env, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    text = r.stdout + r.stderr
    assert r.returncode == 0, text
    rate = [int(x) for x in re.findall(r"micros/op (\d+) ops/sec", text)]
    wire = re.search(r"(\d+) bytes to the server and back", text)
    return rate, used, int(wire[1]) if wire else 0
def row(where):
    sets = [x for m in MEDIA for x in ("--set", m)]
    raws = [x for m in MEDIA for x in ("--raw-set", m)]
    small = ["--drive", "small.toml"]
    p = None
    if where == "local":
        open_uri = "drive=place.ocssd,clock=wall,placement=vertical," + ",".join("set." + m for m in MEDIA)
        create = ",create=cidr20"
    elif where == "host":
        p, at = serve(["--raw", "place.ocssd", *raws, *small])
        open_uri, create = f"drive=nvme-tcp://{at},placement=vertical,tails=place.tails", ""
    else:
        p, at = serve(["--drive", "place.ocssd", *sets, "--export", "t=lightlsm:placement=vertical"])
        open_uri, create = f"drive=nvme-tcp://{at},target=served,tails=place.tails", ""
    out = []
    for jobs, more in (("fillseq", ()), ("readrandom", ("--use_existing_db=1", "--reads=10000"))):
        s0 = cpu(p.pid) if p else 0
        rate, client, wire = bench(open_uri + create, jobs, more)
        create = ""
        server = cpu(p.pid) - s0 if p else 0
        out.append((where, jobs, rate[0], round(client, 2), round(server, 2), wire))
    if p:
        p.send_signal(signal.SIGTERM); p.wait()
    return out
rows = []
for n in range(ROUNDS):
    for where in sys.argv[4:] or ["local", "host", "controller"]:
        if os.path.exists("place.ocssd"): os.remove("place.ocssd")
        if where != "local":
            make = [OCSSD, "format", "place.ocssd", "--drive", "cidr20", "--set", "payload=bytes"]
            subprocess.run(make, check=True, capture_output=True)
        for r in row(where):
            rows.append(r); print(n, *r, sep="\t", flush=True)
print("median")
for key in dict.fromkeys((r[0], r[1]) for r in rows):
    of = [r for r in rows if (r[0], r[1]) == key]
    print(*key, *[statistics.median(r[i] for r in of) for i in range(2, 6)], sep="\t")
