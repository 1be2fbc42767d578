"""How long a server of Redis' protocol is away from its sockets: the processor time of rounds beside clients that ask for much.

    python3 experiments/serve-fairness/resp_rounds.py target/release/ocssd ROUNDS SECONDS

A client that asks at any moment waits for what is left of the round that goes on, and its own requests take a few more. So the
lengths are by time: half of the time that the server works is in rounds longer than `half_us`, a hundredth in rounds longer than
`p99_us`. Processor time, so that it does not matter who else is on the machine, and neither do slices that the client waits for.
MEMORY of the environment is as in resp.py. Needs `perf`, and the rights for it; rows of build, round, the attack, rounds, seconds
of processor time, and microseconds.
"""

import csv
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time

import resp

EVENTS = "{syscalls:sys_enter_epoll_pwait2,task-clock}:S"


def rounds_of(server, folder, seconds):
    """The processor time between one wait for sockets and the next, in microseconds."""
    data = f"{folder}/perf.data"
    record = ["perf", "record", "-o", data, "-e", EVENTS, "-c", "1", "-p", str(server), "--", "sleep", str(seconds)]
    subprocess.run(record, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    script = ["perf", "script", "-i", data, "--show-lost-events", "-F", "event,period"]
    lines = subprocess.run(script, check=True, capture_output=True, text=True).stdout.splitlines()
    if lost := sum(int(line.split()[-1]) for line in lines if "PERF_RECORD_LOST" in line):
        print(f"perf lost {lost} events: several rounds of the next row look like one", file=sys.stderr)
    return sorted(int(line.split()[0]) / 1e3 for line in lines if "task-clock" in line)


def by_time(rounds, share):
    """The length up to which rounds have this share of all time."""
    left = share * sum(rounds)
    for length in rounds:
        left -= length
        if left <= 0:
            return round(length, 1)
    return rounds[-1]


def row(path, folder, server, name, seconds):
    """Lengths beside an attack, with a client that reads a key after the other."""
    crowd = [multiprocessing.Process(target=read_keys, args=(path,))]
    if name != "alone":
        attack, count, words = resp.ATTACKS[name]
        misbehave = {"target": resp.misbehave, "args": (attack, path, words, False)}
        crowd += [multiprocessing.Process(**misbehave) for _ in range(count)]
    for one in crowd:
        one.start()
    time.sleep(1)
    rounds = rounds_of(server, folder, seconds)
    for one in crowd:
        one.kill()
        one.join()
    lengths = [by_time(rounds, share) for share in (0.5, 0.9, 0.99)]
    return [name, len(rounds), round(sum(rounds) / 1e6, 2), *lengths, round(rounds[-1], 1)]


def read_keys(path):
    """Until it is killed."""
    stream = resp.connect(path)
    file = stream.makefile("rb")
    while True:
        resp.measure(stream, file, 1)


def main():
    """All rounds."""
    ocssd, rounds, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    table = csv.writer(sys.stdout)
    table.writerow(["build", "round", "attack", "rounds", "cpu_s", "half_us", "p90_us", "p99_us", "max_us"])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        serve = [ocssd, "serve", *resp.DRIVE, "--target", "kv", "--resp", f"unix:{path}", "--memory", resp.MEMORY]
        with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            while not os.path.exists(path):
                time.sleep(0.05)
            time.sleep(0.5)
            stream = resp.connect(path)
            resp.fill(stream, stream.makefile("rb"))
            for run in range(rounds):
                for name in ("alone", *resp.ATTACKS):
                    build = os.environ.get("BUILD", "this")
                    table.writerow([build, run, *row(path, folder, server.pid, name, seconds)])
                    sys.stdout.flush()
            server.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
