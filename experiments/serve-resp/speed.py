#!/usr/bin/env python3
"""redis-benchmark against this server and against redis-server itself, in turns, and the processor time each takes.

    python3 experiments/serve-resp/speed.py target/release/ocssd ROUNDS > experiments/serve-resp/MACHINE.csv

Prints a line for each run: who, which test, pipeline, requests, seconds, processor seconds of the server's process, and
requests per such second. redis-server keeps nothing on a disk; ours answers each SET once it is on the virtual media, which are
as fast as memory. Needs redis-server and redis-tools.
"""

import os
import subprocess
import sys
import time

from served import FAST, SHAPE, Client, Server, drive

REQUESTS = 60_000
KEYS = 20_000
PORT = 36_379


def processor_seconds(pid):
    """What a process took so far, in user and system mode."""
    words = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Redis:
    """redis-server without persistence."""

    def __init__(self):
        arguments = ["--port", str(PORT), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.DEVNULL)
        self.port = PORT
        for _ in range(100):
            try:
                Client(PORT).ask(b"ping")
                return
            except OSError:
                time.sleep(0.05)

    def stop(self):
        """Ends it."""
        self.process.terminate()
        self.process.wait()


def run(who, server, test, pipeline):
    """One run of redis-benchmark."""
    before, began = processor_seconds(server.process.pid), time.time()
    command = ["redis-benchmark", "-p", str(server.port), "-n", str(REQUESTS), "-r", str(KEYS), "-d", "1024", "-c", "8"]
    subprocess.run(command + ["-P", str(pipeline), "-t", test, "-q"], check=True, stdout=subprocess.DEVNULL)
    seconds, processor = time.time() - began, processor_seconds(server.process.pid) - before
    print(f"{who},{test},{pipeline},{REQUESTS},{seconds:.3f},{processor:.3f},{REQUESTS / processor:.0f}", flush=True)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2])
    print("who,test,pipeline,requests,seconds,processor_seconds,requests_per_processor_second", flush=True)
    shape = drive("tiny", SHAPE + FAST)
    servers = {
        "redis-server": Redis(),
        "ocssd": Server(program, shape),
        "ocssd-flush": Server(program, shape + ["--resp-durability", "flush"]),
    }
    for _ in range(rounds):
        for test, pipeline in [("set", 1), ("get", 1), ("set", 16), ("get", 16), ("incr", 1)]:
            for who, server in servers.items():
                run(who, server, test, pipeline)
    for server in servers.values():
        server.stop()


main()
