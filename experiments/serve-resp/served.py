"""`ocssd serve --resp` as a process, and a client of one connection, for the scripts beside this file."""

import json
import socket
import subprocess

# Large enough for the tests, and as fast as memory: times of media, channels and link are far below what the program itself takes.
SHAPE = ["chunks_per_pu=64", "sectors_per_chunk=768"]
FAST = ["media.read=200ns", "media.program=300ns", "media.erase=500ns", "channel.command=100ns", "link.command=100ns"]
FAST += [f"{name}=20GB/s" for name in ("channel.bytes_per_second", "link.read_bytes_per_second", "link.write_bytes_per_second")]


def drive(name, settings):
    """The arguments of a drive with these settings."""
    return ["--drive", name] + [word for setting in settings for word in ("--set", setting)]


class Server:
    """A server, at an address that it chose."""

    def __init__(self, program, arguments):
        command = [program, "serve", "--json", "--target", "kv", "--resp", "tcp:127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        text = ""
        for line in self.process.stdout:
            text += line
            if line == "}\n":
                break
        else:
            raise SystemExit(f"the server ended after saying: {text}")
        host, port = json.loads(text)["resp"][0].removeprefix("tcp:").rsplit(":", 1)
        self.host, self.port = host, int(port)

    def kill(self):
        """As a drive that loses its power."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """As people stop it; it must end well."""
        self.process.terminate()
        self.process.stdout.read()
        if self.process.wait() != 0:
            raise SystemExit("the server did not end well")


class Client:
    """One connection; requests are lists of bytes."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        """Sends a request."""
        text = b"*%d\r\n" % len(words)
        self.socket.sendall(text + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))

    def answer(self):
        """The next answer: bytes, a number, None, or a list of those."""
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError
        kind, text = line[:1], line[1:-2]
        if kind == b"+":
            return text
        if kind == b":":
            return int(text)
        if kind == b"-":
            raise ValueError(text.decode())
        if int(text) < 0:
            return None
        if kind == b"$":
            return self.file.read(int(text) + 2)[:-2]
        return [self.answer() for _ in range(int(text))]

    def ask(self, *words):
        """A request and its answer."""
        self.send(*words)
        return self.answer()
