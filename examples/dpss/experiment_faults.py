"""The faults of the experiment. The experiment injects each fault from outside the programs."""
import contextlib
import dataclasses
import os
import random
import signal
import sys
from typing import Callable

# A program that occupies a processor, and a program that uses more memory than is available.
HOG = "while :; do :; done"
GLUTTON = """
import random, sys
size = int(sys.argv[1]) << 20
memory = bytearray(size)
while True:
    memory[random.randrange(size)] = 1
"""
# Makes the kernel examine each received packet many times. The argument is the number of packet sockets to open, each
# with a filter of 4000 instructions that rejects all packets.
LOOKER = """
import ctypes, signal, socket, struct, sys
instructions = struct.pack("HBBI", 0x20, 0, 0, 0) + struct.pack("HBBI", 0x04, 0, 0, 1) * 4000 + struct.pack("HBBI", 0x06, 0, 0, 0)
buffer = ctypes.create_string_buffer(instructions)
program = struct.pack("HL", 4002, ctypes.addressof(buffer))
sockets = []
for _ in range(int(sys.argv[1])):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, 26, program)
    s.bind(("wan0", 3))
    sockets.append(s)
print("ready", flush=True)
signal.pause()
"""


@dataclasses.dataclass
class Plan:
    """The parameters of a run, and its fault."""

    what: str
    cause: str = ""  # the cause that nldiag should name, and its host
    host: str = ""
    streams: int = 2  # to each server
    pipeline: int = 2  # outstanding requests per stream
    block: int = 128 << 10
    path: dict = dataclasses.field(default_factory=dict)  # arguments of World.make_path
    environment: dict = dataclasses.field(default_factory=dict)  # by host: the environment variables of its programs, for fault.so
    before: Callable = None  # (world), called before the programs start
    beside: Callable = None  # (world), called when all programs except the client run
    during: Callable = None  # (world, programs), a generator of waiting times; it ends with the client


def signal_program(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def start_stop(world, process, stopped, running, chance=random.Random(1)):
    """Sends SIGSTOP and SIGCONT alternately, after random times within each range."""
    try:
        while True:
            yield chance.uniform(*running)
            signal_program(process, signal.SIGSTOP)
            yield chance.uniform(*stopped)
            signal_program(process, signal.SIGCONT)
    finally:
        signal_program(process, signal.SIGCONT)


def small_window(world):
    world.client.set("net/ipv4/tcp_rmem", "4096 32768 65536")


def hog(host, count):
    def start(world):
        for _ in range(count):
            world.host(host).start("nice", "-n", "-20", "sh", "-c", HOG)

    return start


def limit_reading(world, host, rate):
    """Limits the bytes/s that a host reads from the disk with its data and swap space."""
    device = os.stat(world.work).st_dev
    host.group.limit_reading(f"{os.major(device)}:{os.minor(device)}", int(rate))


def slow_disk(world):
    limit_reading(world, world.host("server3"), world.rate / 8 / 4 / 4)


def little_memory(world):
    host = world.host("server3")
    swap = world.work / "swap"
    with open(swap, "wb") as file:
        file.write(bytes(1 << 20) * 256)
    os.chmod(swap, 0o600)
    world.run("mkswap", swap)
    world.run("swapon", swap)
    limit_reading(world, host, 6e6)  # a slow disk
    host.group.limit_memory(16 << 20)
    for _ in range(2):
        host.start(sys.executable, "-c", GLUTTON, "32")


def look_at_packets(world):
    world.client.start(sys.executable, "-c", LOOKER, "128")


PLANS = {
    "healthy": Plan("no fault"),
    "window": Plan("the client's TCP windows are 32 kB (net.ipv4.tcp_rmem)", "window", before=small_window),
    "loss": Plan("1 % of packets are lost on the path", "loss", path={"loss": 0.01}),
    "disk": Plan("server3's disk reads at a quarter of the required rate (blkio, io.max)", "disk", "server3", before=slow_disk),
    "client-cpu": Plan("other programs use the client's processor", "cpu", "client", beside=hog("client", 4)),
    "server-cpu": Plan("other programs use server2's processor", "cpu", "server2", beside=hog("server2", 3)),
    "streams": Plan("one stream to each server, one request at a time", "streams", streams=1, pipeline=1, block=64 << 10),
    "lock": Plan("the client's threads store blocks under one lock (fault.so)", "lock", "client",
                 environment={"client": {"FAULT_STORE_LOCK": "0.025"}}),
    "straggler": Plan("server4 stops and continues at irregular times (SIGSTOP)", "pause", "server4",
                      during=lambda world, programs: start_stop(world, programs["server4"], (0.02, 0.12), (0.005, 0.03))),
    "timer": Plan("the client sleeps for 100 ms before it stores a block (fault.so)", "timer", "client",
                  environment={"client": {"FAULT_STORE": "0.1"}}),
    "memory": Plan("server3 has less memory than its programs need, and swaps (memory.max)", "memory", "server3", beside=little_memory),
    "softirq": Plan("each packet costs the receiving processor much time (packet sockets with long filters)", "softirq", "client",
                    beside=look_at_packets),
    "pause": Plan("the client pauses for 0.4 s every 2.5 s (SIGSTOP)", "pause", "client",
                  during=lambda world, programs: start_stop(world, programs["client"], (0.4, 0.4), (2.1, 2.1))),
    "clock": Plan("server2's clock is 2.3 s fast (fault.so)", "clock", "server2", environment={"server2": {"FAULT_CLOCK": "2.3"}}),
}
