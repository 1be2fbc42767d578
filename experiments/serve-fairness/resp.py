"""What a client of Redis' protocol waits for a key beside others that ask for much. Nothing but Python.

    python3 experiments/serve-fairness/resp.py target/release/ocssd ROUNDS SECONDS [fifo]

Rows: round, the attack, reads and p50, p99 and the longest in microseconds, alone and beside it. Attackers have the lowest priority
(19 steps below), or where cores are few the client would wait for its slices of the processor behind theirs, and not for the
server. With `fifo`, which wants the right to it, server and client are scheduled in real time, so that neither attackers nor
anybody else on the machine are in their way, and attackers have priority over everybody else. MEMORY of the environment is what the
drive's content takes before (64MiB): who writes megabytes waits for what is taken later, and that is not the server's doing.
"""

import csv
import multiprocessing
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

KEYS, VALUE = 20_000, b"v" * 1000
MEMORY = os.environ.get("MEMORY", "64MiB")
DRIVE = ["--drive", "westlake", "--set", "media.read=2us", "--set", "media.program=5us", "--place", "pu:0-15"]


def command(*words):
    """As clients send it."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def connect(path):
    """A connection."""
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)
    return stream


def answer(file):
    """Takes one answer."""
    line = file.readline()
    if line[:1] == b"*":
        for _ in range(int(line[1:])):
            answer(file)
    elif line[:1] == b"$" and int(line[1:]) >= 0:
        file.read(int(line[1:]) + 2)
    elif line[:1] == b"-":
        raise SystemExit(f"the server answered {line.decode().strip()}")
    elif not line:
        raise ConnectionError("the server closed the connection")


def ask_again(path, question):
    """Asks the same again and again."""
    stream = connect(path)
    file = stream.makefile("rb")
    while True:
        stream.sendall(question)
        answer(file)


def slow_reader(path):
    """Asks for values of 1 MiB without end, and takes 64 KiB a second."""
    stream = connect(path)
    stream.setblocking(False)
    try:
        while True:
            stream.send(command(b"GET", b"big") * 16)
    except BlockingIOError:
        stream.setblocking(True)
    while stream.recv(16 << 10):
        time.sleep(0.25)


def idle(path):
    """Comes, and says nothing."""
    held = []
    while len(held) < 1000:
        held.append(connect(path))
    time.sleep(3600)


MGET = command(b"MGET", *[b"key:%d" % number for number in range(5000)])
# Its last key exists, so that all are looked at.
MSETNX = command(b"MSETNX", *[word for number in range(5000) for word in (b"new:%d" % number, b"v")], b"key:0", b"v")
ATTACKS = {
    "30 slow readers": (slow_reader, 30, ()),
    "4 times MGET of 5000 keys": (ask_again, 4, (MGET,)),
    "4 times KEYS": (ask_again, 4, (command(b"KEYS", b"*none*"),)),
    "4 times SCAN of all keys": (ask_again, 4, (command(b"SCAN", b"0", b"COUNT", b"100000"),)),
    "4 times SET of 8 MiB": (ask_again, 4, (command(b"SET", b"long", b"x" * (8 << 20)),)),
    "4 times SETRANGE at the end of 8 MiB": (ask_again, 4, (command(b"SETRANGE", b"ranged", b"%d" % ((8 << 20) - 5), b"patch"),)),
    "4 times MSETNX of 5000 keys": (ask_again, 4, (MSETNX,)),
    "1000 idle connections": (idle, 1, ()),
}


def misbehave(attack, path, words, realtime):
    """Until it is killed; who is dropped comes again."""
    if realtime:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.nice(-15 if realtime else 19)
    while True:
        try:
            attack(path, *words)
        except OSError:
            time.sleep(0.01)


def measure(stream, file, seconds):
    """One GET after the other for a while."""
    times, draw = [], random.Random(7)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        stream.sendall(command(b"GET", b"key:%d" % draw.randrange(KEYS)))
        answer(file)
        times.append((time.perf_counter() - begun) * 1e6)
    times.sort()
    places = (len(times) // 2, len(times) * 99 // 100, len(times) - 1)
    return [len(times), *(round(times[place], 1) for place in places)]


def fill(stream, file):
    """Keys, and one value of 1 MiB."""
    for first in range(0, KEYS, 100):
        stream.sendall(b"".join(command(b"SET", b"key:%d" % key, VALUE) for key in range(first, first + 100)))
        for _ in range(100):
            answer(file)
    stream.sendall(command(b"SET", b"big", b"x" * (1 << 20)))
    answer(file)


def main():
    """All rounds."""
    ocssd, rounds, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    realtime = sys.argv[4:] == ["fifo"]
    table = csv.writer(sys.stdout)
    table.writerow(["round", "attack", "beside", "reads", "p50_us", "p99_us", "max_us"])
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/s"
        serve = [ocssd, "serve", *DRIVE, "--target", "kv", "--resp", f"unix:{path}", "--memory", MEMORY]
        serve = ["chrt", "--fifo", "50", *serve] if realtime else serve
        with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            while not os.path.exists(path):
                time.sleep(0.05)
            if realtime:
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
            stream = connect(path)
            file = stream.makefile("rb")
            fill(stream, file)
            for run in range(rounds):
                for name, (attack, count, words) in ATTACKS.items():
                    table.writerow([run, name, "no", *measure(stream, file, seconds)])
                    what = (attack, path, words, realtime)
                    crowd = [multiprocessing.Process(target=misbehave, args=what) for _ in range(count)]
                    for one in crowd:
                        one.start()
                    time.sleep(1)
                    table.writerow([run, name, "yes", *measure(stream, file, seconds)])
                    for one in crowd:
                        one.kill()
                        one.join()
                    sys.stdout.flush()
            server.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main()
