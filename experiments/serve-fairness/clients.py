"""Clients of a served drive: sound ones that read one block after the other, and ones that misbehave. Nothing but Python.

As a program it misbehaves until it is killed:

    python3 experiments/serve-fairness/clients.py ATTACK UNIX_SOCKET TCP_PORT DISK_BYTES
"""

import mmap
import os
import resource
import socket
import struct
import sys
import threading
import time

# doc/proto.md of NBD.
OPTION, REQUEST = 0x49484156454F5054, 0x25609513
EXPORT_NAME, GO, STRUCTURED_REPLY, SET_META_CONTEXT = 1, 7, 8, 10
READ, BLOCK_STATUS = 0, 7


def exactly(stream, count):
    """So many bytes."""
    held = bytearray(count)
    view, got = memoryview(held), 0
    while got < count:
        more = stream.recv_into(view[got:])
        if not more:
            raise ConnectionError("the server closed the connection")
        got += more
    return held


def connect(address):
    """A stream to a path, or to a host and a port."""
    stream = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
    stream.settimeout(30)
    stream.connect(address)
    return stream


def nbd(address):
    """An NBD connection with simple replies."""
    stream = connect(address)
    exactly(stream, 18)
    stream.sendall(struct.pack(">IQII", 3, OPTION, EXPORT_NAME, 0))
    exactly(stream, 10)
    return stream


def nbd_request(command, cookie, offset, length, count=1):
    """Requests as they are sent."""
    return struct.pack(">IHHQQI", REQUEST, 0, command, cookie, offset, length) * count


class Nbd:
    """Reads over NBD."""

    def __init__(self, address, size):
        self.stream, self.size = nbd(address), size

    def read(self, offset):
        """One read."""
        self.stream.sendall(nbd_request(READ, 1, offset, self.size))
        assert struct.unpack(">III", exactly(self.stream, 16)[:12])[1] == 0
        exactly(self.stream, self.size)


class File:
    """Reads of a file past the page cache."""

    def __init__(self, path, size):
        self.file, self.place = os.open(path, os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, size)

    def read(self, offset):
        """One read."""
        assert os.preadv(self.file, [self.place], offset) == len(self.place)


class NvmeTcp:
    """Reads over NVMe/TCP: an admin queue, and an I/O queue that is used one command at a time."""

    def __init__(self, address, nqn, size):
        self.size, self.nqn = size, nqn
        self.admin = self.greet(address)
        controller = self.attach(self.admin, 0, 0xFFFF)
        enable = struct.pack("<BBHB35xBxxxIQ8x", 0x7F, 0x40, 0, 0, 0, 0x14, 0x460061)
        self.ask(self.admin, enable)
        self.io = self.greet(address)
        self.attach(self.io, 1, controller)

    @staticmethod
    def greet(address):
        """A connection past ICReq."""
        stream = connect(address)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream.sendall(struct.pack("<BBBBIHBB", 0, 0, 128, 0, 128, 0, 0, 0) + bytes(116))
        exactly(stream, 128)
        return stream

    def attach(self, stream, queue, controller):
        """Connect; the controller's number."""
        data = bytes(15) + b"\1" + struct.pack("<H", controller)
        data = data.ljust(256, b"\0") + self.nqn.encode().ljust(256, b"\0")
        data += b"nqn.2014-08.org.nvmexpress:fairness".ljust(512, b"\0")
        entry = struct.pack("<BBHB19x", 0x7F, 0x40, 0, 1)
        entry += struct.pack("<QI3xB", 0, len(data), 0x01) + struct.pack("<HHHBxI12x", 0, queue, 31, 0, 0)
        return struct.unpack("<I", self.ask(stream, entry, data)[:4])[0] & 0xFFFF

    def ask(self, stream, entry, data=b""):
        """A command and its completion; what it reads is dropped."""
        assert len(entry) == 64, len(entry)
        head = struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data))
        stream.sendall(head + entry + data)
        while True:
            kind, flags, _, _, length = struct.unpack("<BBBBI", exactly(stream, 8))
            rest = exactly(stream, length - 8)
            if kind == 5:
                status = struct.unpack("<H", rest[14:16])[0] >> 1
                assert status == 0, f"status {status:x}h"
                return rest
            assert kind == 7, f"PDU {kind}"
            if flags & 8:
                return rest

    def read(self, offset):
        """One read."""
        entry = struct.pack("<BBHI16x", 2, 0x40, 1, 1) + struct.pack("<QI3xB", 0, self.size, 0x5A)
        entry += struct.pack("<QHHI8x", offset // 512, self.size // 512 - 1, 0, 0)
        self.ask(self.io, entry)


def repeat(count, one):
    """So many connections at once that misbehave; who is dropped comes again."""

    def work():
        while True:
            try:
                one()
            except OSError:
                time.sleep(0.01)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def slow_reader(address):
    """Asks for reads of 32 MiB, and takes 64 KiB a second."""

    def one():
        stream = nbd(address)
        stream.sendall(nbd_request(READ, 1, 0, 32 << 20, 16))
        while True:
            time.sleep(0.25)
            exactly(stream, 16 << 10)

    return one


def slow_reader_structured(address):
    """The same with structured replies, of which each part is sent as it is ready."""

    def one():
        stream = connect(address)
        exactly(stream, 18)
        stream.sendall(struct.pack(">IQII", 3, OPTION, STRUCTURED_REPLY, 0))
        exactly(stream, 20)
        stream.sendall(struct.pack(">QII", OPTION, EXPORT_NAME, 0))
        exactly(stream, 10)
        stream.sendall(nbd_request(READ, 1, 0, 32 << 20, 16))
        while True:
            time.sleep(0.25)
            exactly(stream, 16 << 10)

    return one


def questioner(address, size):
    """Asks what holds data, of the whole disk, 128 times at once, again and again."""

    def one():
        stream = connect(address)
        exactly(stream, 18)
        context = struct.pack(">III", 0, 1, 15) + b"base:allocation"
        stream.sendall(struct.pack(">IQII", 3, OPTION, STRUCTURED_REPLY, 0))
        stream.sendall(struct.pack(">QII", OPTION, SET_META_CONTEXT, len(context)) + context)
        stream.sendall(struct.pack(">QIIIH", OPTION, GO, 6, 0, 0))
        time.sleep(0.2)
        stream.recv(65536)
        asks = nbd_request(BLOCK_STATUS, 1, 0, min(size, (1 << 32) - 512), 128)
        stream.sendall(asks)
        place, got = bytearray(1 << 20), 0
        while True:
            count = stream.recv_into(place)
            if not count:
                raise ConnectionError("dropped")
            got += count
            # As many again as were answered: an answer is at least 32 bytes.
            again = got // 32
            if again >= 64:
                stream.sendall(asks[: 28 * min(again, 128)])
                got = 0

    return one


def idle_handshakes(address, count):
    """So many connections that never say anything; who is dropped comes again."""
    streams = []
    while True:
        there = []
        for stream in streams:
            try:
                if stream.recv(4096) == b"":
                    raise ConnectionError("dropped")
                there.append(stream)
            except BlockingIOError:
                there.append(stream)
            except OSError:
                stream.close()
        while len(there) < count:
            stream = connect(address)
            stream.setblocking(False)
            there.append(stream)
        streams = there
        time.sleep(0.1)


ATTACKS = {
    "one slow reader": lambda unix, tcp, size: repeat(1, slow_reader(unix)),
    "30 slow readers": lambda unix, tcp, size: repeat(30, slow_reader(unix)),
    "30 slow readers, structured replies": lambda unix, tcp, size: repeat(30, slow_reader_structured(unix)),
    "BLOCK_STATUS flood": lambda unix, tcp, size: repeat(4, questioner(unix, size)),
    "1500 idle handshakes": lambda unix, tcp, size: idle_handshakes(tcp, 1500),
}

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    ATTACKS[sys.argv[1]](sys.argv[2], ("127.0.0.1", int(sys.argv[3])), int(sys.argv[4]))
