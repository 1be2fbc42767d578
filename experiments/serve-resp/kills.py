#!/usr/bin/env python3
"""Kills the server with SIGKILL while clients store and count, serves the image again, and looks for every answered change.

    python3 experiments/serve-resp/kills.py target/release/ocssd ROUNDS [SEED]

Each client has keys of its own. It sets a new key, counts, and now and then sets two keys in one transaction; what was answered
must be there after the kill, what was not may be there or not, and of a transaction both keys or none. The image is the same in
all rounds.
"""

import os
import random
import subprocess
import sys
import tempfile
import threading

from served import Client, Server

CLIENTS = 4
KEYS = 200


class Writer(threading.Thread):
    """One client: what it has been answered, and what it was told last."""

    def __init__(self, port, number, seed, state):
        super().__init__()
        self.client, self.number, self.state = Client(port), number, state
        self.random = random.Random(seed)

    def run(self):
        try:
            while True:
                self.step()
        except (ConnectionError, OSError):
            pass

    def step(self):
        """One change: noted as asked before it is sent, and as answered afterwards."""
        key = b"key:%d:%d" % (self.number, self.random.randrange(KEYS))
        value = b"%d:" % self.random.randrange(1 << 60) * self.random.randrange(1, 60)
        if self.random.randrange(4) == 0:
            self.state["asked"] = {b"counter:%d" % self.number: None}
            count = self.client.ask(b"incr", b"counter:%d" % self.number)
            self.state["known"][b"counter:%d" % self.number] = b"%d" % count
        elif self.random.randrange(3) == 0:
            pair = {key + b":one": value, key + b":two": value}
            self.state["asked"] = pair
            for words in [(b"multi",)] + [(b"set", name, value) for name in pair] + [(b"exec",)]:
                self.client.send(*words)
            for _ in range(len(pair) + 2):
                self.client.answer()
            self.state["known"].update(pair)
        else:
            self.state["asked"] = {key: value}
            self.client.ask(b"set", key, value)
            self.state["known"][key] = value
        self.state["asked"] = {}
        self.state["answered"] += 1


def check(client, number, state):
    """Compares what is there with what was answered; then what is there is what is known."""
    known, asked = state["known"], state["asked"]
    counter = b"counter:%d" % number
    found = {name: client.ask(b"get", name) for name in set(known) | set(asked)}
    applied = {name for name, value in asked.items() if value is not None and found[name] == value}
    for name, value in found.items():
        if name == counter:
            before = int(known.get(counter, b"0"))
            allowed = {before, before + (counter in asked)}
            assert int(value or 0) in allowed, f"{name}: {value} and not one of {allowed}"
        elif name in asked:
            assert value in (asked[name], known.get(name)), f"{name}: {value} was never stored"
        else:
            assert value == known[name], f"{name}: {value} and not {known[name]}, which was answered"
    pair = [name for name, value in asked.items() if value is not None]
    old = {name for name in pair if asked[name] == known.get(name)}
    assert len(applied - old) in (0, len(pair) - len(old)), f"half a transaction is there: {applied} of {pair}"
    state["known"] = {name: value for name, value in found.items() if value is not None}
    state["asked"] = {}


def main():
    program, rounds = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    pace = random.Random(seed)
    states = [{"known": {}, "asked": {}, "answered": 0} for _ in range(CLIENTS)]
    with tempfile.TemporaryDirectory() as folder:
        image = os.path.join(folder, "drive.img")
        settings = ["payload=bytes", "chunks_per_pu=64", "sectors_per_chunk=192"]
        settings += ["media.read=2us", "media.program=5us", "media.erase=9us"]
        words = [word for setting in settings for word in ("--set", setting)]
        subprocess.run([program, "format", image, "--drive", "tiny", *words], check=True, stdout=subprocess.DEVNULL)
        for number in range(rounds):
            server = Server(program, ["--drive", image])
            client = Client(server.port)
            for place, state in enumerate(states):
                check(client, place, state)
            writers = [Writer(server.port, place, pace.randrange(1 << 60), state) for place, state in enumerate(states)]
            for writer in writers:
                writer.start()
            threading.Event().wait(pace.uniform(0.1, 0.6))
            server.kill()
            for writer in writers:
                writer.join()
            print(f"{number},{sum(state['answered'] for state in states)}", flush=True)
        server = Server(program, ["--drive", image])
        client = Client(server.port)
        for place, state in enumerate(states):
            check(client, place, state)
        server.stop()
    answered = sum(state["answered"] for state in states)
    assert answered > rounds, f"only {answered} changes were answered"
    print(f"{answered} answered changes were there after {rounds} kills")


main()
