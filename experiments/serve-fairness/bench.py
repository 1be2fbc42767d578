#!/usr/bin/env python3
"""A client that reads one block after the other, alone and beside clients that misbehave.

    python3 experiments/serve-fairness/bench.py target/release/ocssd target/release/examples/vhost_user_blk_load ROUNDS SECONDS

Prints comma-separated values: for every run the reads, and p50, p99 and the longest in microseconds. In a round each attack runs
once, with every protocol beside it, and after it every protocol alone. FUSE needs root, or fusermount3; where there is no
/dev/fuse its rows are left out and a line on standard error says so.
"""

import csv
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import clients

# A drive whose media take a few microseconds, so that the server is what a client waits for.
DRIVE = ["--drive", "tiny"]
for setting in (
    "chunks_per_pu=256", "sectors_per_chunk=256", "queue_depth=1024", "media.read=2us", "media.program=5us", "media.erase=9us",
    "channel.bytes_per_second=100GB/s", "channel.command=0ns", "link.read_bytes_per_second=100GB/s",
    "link.write_bytes_per_second=100GB/s", "link.command=0ns",
):
    DRIVE += ["--set", setting]
NQN = "nqn.2014-08.org.nvmexpress:fairness-target"
PORTS = {"nbd": 10900, "nvme": 10901}
SPAN = 48 << 20


def serve(ocssd, folder, fuse):
    """The server, once it serves."""
    command = [
        ocssd, "serve", "--nbd", f"unix:{folder}/s", "--nbd", f"tcp:127.0.0.1:{PORTS['nbd']}", "--nvme-tcp",
        f"127.0.0.1:{PORTS['nvme']}", "--nqn", NQN, "--vhost-user-blk", f"unix:{folder}/v", *DRIVE,
    ]
    if fuse:
        os.mkdir(f"{folder}/mnt")
        command += ["--fuse", f"{folder}/mnt"]
    # A session of its own, as a service has: Linux divides processors among sessions first.
    log = open(f"{folder}/log", "w", encoding="utf-8")
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    while not os.path.exists(f"{folder}/s") or not os.path.exists(f"{folder}/v"):
        assert server.poll() is None, "the server did not start"
        time.sleep(0.05)
    time.sleep(0.3)
    return server


def fill(folder):
    """Writes what is read later, every other 4 KiB, so that the map alternates."""
    stream = clients.nbd(f"{folder}/s")
    for offset in range(0, SPAN, 1 << 20):
        stream.sendall(clients.nbd_request(1, 1, offset, 1 << 20) + os.urandom(1 << 20))
        clients.exactly(stream, 16)
    stream.close()


def percentile(sorted_times, part):
    """Of times in order."""
    return sorted_times[min(len(sorted_times) - 1, int(part * len(sorted_times)))]


def measure(make, size, seconds):
    """Reads for a while: how many, p50, p99 and the longest in microseconds."""
    client, times, draw = make(), [], random.Random(7)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        offset = draw.randrange(SPAN // size) * size
        begun = time.perf_counter()
        client.read(offset)
        times.append((time.perf_counter() - begun) * 1e6)
    times.sort()
    return [len(times), *(round(percentile(times, part), 1) for part in (0.5, 0.99, 1.0))]


def measure_vhost(load, folder, seconds):
    """The same by libblkio's driver; the longest is p99.9."""
    command = [load, f"{folder}/v", "read", "1", str(seconds), str(SPAN >> 20)]
    words = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return [int(words[0]), *(float(word) for word in words[2:])]


def protocols(load, folder, fuse, seconds):
    """Each protocol's measurement, by its name."""
    unix, nvme = f"{folder}/s", ("127.0.0.1", PORTS["nvme"])
    many = {
        "nbd 256 KiB": lambda: measure(lambda: clients.Nbd(unix, 256 << 10), 256 << 10, seconds),
        "nbd 4 KiB": lambda: measure(lambda: clients.Nbd(unix, 4 << 10), 4 << 10, seconds),
        "nvme-tcp 256 KiB": lambda: measure(lambda: clients.NvmeTcp(nvme, NQN, 256 << 10), 256 << 10, seconds),
        "vhost-user-blk 4 KiB": lambda: measure_vhost(load, folder, seconds),
    }
    if fuse:
        file = f"{folder}/mnt/disk"
        many["fuse 256 KiB"] = lambda: measure(lambda: clients.File(file, 256 << 10), 256 << 10, seconds)
    return many


def attack(name, folder):
    """Begins one, in a process of its own."""
    command = [sys.executable, clients.__file__, name, f"{folder}/s", str(PORTS["nbd"]), str(SPAN)]
    process = subprocess.Popen(command, start_new_session=True)
    time.sleep(1)
    return process


def end(process):
    """Ends one."""
    process.kill()
    process.wait()


def stop_under_attack(server, folder):
    """Microseconds from SIGTERM to the server's end beside two attacks."""
    both = [attack(name, folder) for name in ("BLOCK_STATUS flood", "30 slow readers")]
    begun = time.perf_counter()
    server.send_signal(signal.SIGTERM)
    server.wait()
    took = round((time.perf_counter() - begun) * 1e6)
    for process in both:
        end(process)
    return took


def main():
    """All rounds."""
    ocssd, load, rounds, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    fuse = os.path.exists("/dev/fuse")
    if not fuse:
        print("no /dev/fuse: no rows of FUSE", file=sys.stderr)
    table = csv.writer(sys.stdout)
    table.writerow(["round", "protocol", "beside", "reads", "p50_us", "p99_us", "max_us"])
    with tempfile.TemporaryDirectory() as folder:
        server = serve(ocssd, folder, fuse)
        fill(folder)
        every = protocols(load, folder, fuse, seconds)
        for run in range(rounds):
            for name in clients.ATTACKS:
                process = attack(name, folder)
                for protocol, go in every.items():
                    table.writerow([run, protocol, name, *go()])
                end(process)
                for protocol, go in every.items():
                    table.writerow([run, protocol, "alone", *go()])
                sys.stdout.flush()
        took = stop_under_attack(server, folder)
        table.writerow([0, "SIGTERM to exit", "BLOCK_STATUS flood and 30 slow readers", 1, took, took, took])
        with open(f"{folder}/log", encoding="utf-8") as log:
            counted = [line.strip() for line in log if "dropped_" in line]
        print("\n".join(counted), file=sys.stderr)


main()
