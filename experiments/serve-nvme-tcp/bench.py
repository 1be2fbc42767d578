#!/usr/bin/python3
"""One served drive over NBD and over NVMe/TCP, in turns, by one client: the server's processor time per I/O.

    python3 experiments/serve-nvme-tcp/bench.py target/release/ocssd ROUNDS SECONDS > experiments/serve-nvme-tcp/bench.csv

The client is this script, on TCP over loopback for both: it keeps as many requests in flight as `iodepth` says, and asks for
the next as answers come. It is slow, so IOPS are its own limit; the server's processor time per I/O is what is measured.
"""

import csv
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

# A drive whose media, channels and link take no time, with room for the 1 GiB that is used.
ZERO = ["--drive", "tiny", "--target", "pblk:block_bytes=4096"]
for setting in (
    "chunks_per_pu=512", "sectors_per_chunk=256", "queue_depth=1024", "media.read=0ns", "media.program=0ns",
    "media.erase=0ns", "channel.bytes_per_second=1000GB/s", "channel.command=0ns",
    "link.read_bytes_per_second=1000GB/s", "link.write_bytes_per_second=1000GB/s", "link.command=0ns",
):
    ZERO += ["--set", setting]

BLOCK = 4096
BLOCKS = (256 << 20) // BLOCK
DATA = bytes(range(256)) * (BLOCK // 256)


def connected(port):
    """A connection without delay."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def exactly(stream, count):
    """So many bytes."""
    found = b""
    while len(found) < count:
        part = stream.recv(count - len(found))
        assert part, "the server closed the connection"
        found += part
    return found


class Nbd:
    """NBD with simple replies."""

    def __init__(self, port):
        self.stream = connected(port)
        exactly(self.stream, 18)
        self.stream.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
        exactly(self.stream, 10)

    @staticmethod
    def request(number, block, writes):
        """A request of one block."""
        header = struct.pack(">IHHQQI", 0x25609513, 0, int(writes), number, block * BLOCK, BLOCK)
        return header + DATA if writes else header

    @staticmethod
    def answer(data, at, writes):
        """The end of an answer and its number, if it is whole."""
        end = at + 16 + (0 if writes else BLOCK)
        if len(data) < end:
            return None
        magic, error, number = struct.unpack_from(">IIQ", data, at)
        assert magic == 0x67446698 and error == 0
        return end, number


class NvmeTcp:
    """An NVMe/TCP host with one I/O queue, with or without digests off."""

    def __init__(self, port, nqn):
        self.admin, cntlid = self.queue(port, nqn, 0, 0xFFFF)
        enable = self.entry(0x7F, 0, 0, 0, cdw11=0x14, cdw12=0x460061)
        self.admin.sendall(self.capsule(enable))
        assert exactly(self.admin, 24)[22:24] == b"\0\0"
        self.stream, _ = self.queue(port, nqn, 1, cntlid)

    @staticmethod
    def entry(opcode, cid, nsid, length, cdw10=0, cdw11=0, cdw12=0, kind=0x5A):
        """A submission entry."""
        return struct.pack(
            "<BBHIQQQI3xB6I", opcode, 0x40, cid, nsid, 0, 0, 0, length, kind, cdw10, cdw11, cdw12, 0, 0, 0
        )

    @staticmethod
    def capsule(entry, data=b""):
        """A command PDU."""
        assert len(entry) == 64
        return struct.pack("<BBBBI", 4, 0, 72, 72 if data else 0, 72 + len(data)) + entry + data

    def queue(self, port, nqn, qid, cntlid):
        """A connected queue, and the number of its controller."""
        stream = connected(port)
        stream.sendall(struct.pack("<BBBBI", 0, 0, 128, 0, 128) + bytes(120))
        exactly(stream, 128)
        data = bytes(16) + struct.pack("<H", cntlid) + bytes(238)
        data += nqn.encode().ljust(256, b"\0") + b"nqn.2014-08.org.nvmexpress:bench".ljust(256, b"\0") + bytes(256)
        entry = self.entry(0x7F, 0, 1, 1024, cdw10=qid << 16, cdw11=127 | (4 << 16 if qid else 0), kind=0x01)
        stream.sendall(self.capsule(entry, data))
        answer = exactly(stream, 24)
        assert answer[22:24] == b"\0\0", answer
        return stream, struct.unpack_from("<H", answer, 8)[0]

    def request(self, number, block, writes):
        """A command of one block."""
        kind, opcode = (0x01, 1) if writes else (0x5A, 2)
        return self.capsule(self.entry(opcode, number, 1, BLOCK, block, 0, 0, kind), DATA if writes else b"")

    @staticmethod
    def answer(data, at, writes):
        """The end of an answer and its number, if it is whole."""
        if len(data) < at + 24 + (0 if writes else BLOCK):
            return None
        kind, flags, _, _, length = struct.unpack_from("<BBBBI", data, at)
        if writes:
            assert kind == 5 and data[at + 22:at + 24] == b"\0\0"
            return at + 24, struct.unpack_from("<H", data, at + 20)[0]
        assert kind == 7 and flags & 8
        return at + length, struct.unpack_from("<H", data, at + 8)[0]


def run(client, writes, depth, seconds):
    """Requests in flight for so long; how many ended."""
    count, until = 0, time.monotonic() + seconds
    client.stream.sendall(b"".join(client.request(n, random.randrange(BLOCKS), writes) for n in range(depth)))
    data, open_count = b"", depth
    while open_count:
        data += client.stream.recv(1 << 18)
        at, more = 0, []
        while (found := client.answer(data, at, writes)) is not None:
            at, number = found
            count += 1
            open_count -= 1
            if time.monotonic() < until:
                more.append(client.request(number, random.randrange(BLOCKS), writes))
        data = data[at:]
        open_count += len(more)
        client.stream.sendall(b"".join(more))
    return count


def cpu_us(process):
    """Processor time of a process so far, in microseconds."""
    with open(f"/proc/{process.pid}/schedstat", encoding="ascii") as stat:
        return int(stat.read().split()[0]) / 1000


def serving(process):
    """What the server says it serves."""
    text = ""
    while not text.endswith("\n}\n"):
        line = process.stdout.readline()
        assert line, "the server did not start"
        text += line
    return json.loads(text)


def main():
    """Runs everything, prints rows."""
    ocssd, rounds, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    command = [ocssd, "serve", "--json", "--nbd", "tcp:127.0.0.1:0", "--nvme-tcp", "127.0.0.1:0", *ZERO]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = serving(process)
    nbd_port = int(said["serving"][0]["uris"][0].rsplit(":", 1)[1].strip("/"))
    nvme_port = int(said["nvme"]["addresses"][0].rsplit(":", 1)[1])
    rows = csv.writer(sys.stdout)
    rows.writerow("round protocol rw iodepth iops server_cpu_us_per_io load".split())
    clients = {"nbd": Nbd(nbd_port), "nvme-tcp": NvmeTcp(nvme_port, said["nvme"]["nqn"])}
    random.seed(1)
    run(clients["nbd"], True, 32, 4 * seconds)
    for number in range(rounds):
        for writes in (False, True):
            for depth in (1, 32):
                for name, client in clients.items():
                    before, begun = cpu_us(process), time.monotonic()
                    count = run(client, writes, depth, seconds)
                    cpu, wall = cpu_us(process) - before, time.monotonic() - begun
                    rw = "randwrite" if writes else "randread"
                    load = round(os.getloadavg()[0], 1)
                    rows.writerow([number, name, rw, depth, round(count / wall), round(cpu / count, 2), load])
                    sys.stdout.flush()
    process.send_signal(signal.SIGTERM)
    process.wait()


main()
