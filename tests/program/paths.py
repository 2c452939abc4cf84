"""Emulated network paths with known limits, for tests of reports on TCP connections. Needs root and network namespaces.

A scenario transfers data from namespace A to namespace B over a path with a rate, a delay and losses, while a sensor in each
namespace logs the connections. The true limit is known, because only one part of the scenario limits the transfer.
"""
import dataclasses
import json
import os
import re
import subprocess
import sys

import support

# In its pauses, the sender waits until the kernel has sent all data (SIOCOUTQNSD). It prints the times that remain of the pauses
# after this wait. With warm_up, it first sends this number of bytes without measuring.
SENDER = """
import fcntl, json, socket, struct, sys, time
buffer, chunk, pause, total, seconds, warm_up, algorithm = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6]), sys.argv[7]
s = socket.socket()
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
if buffer:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
connecting = time.monotonic()
s.connect(("10.77.0.2", 7000))
handshake = time.monotonic() - connecting

def queued(request):
    return struct.unpack("i", fcntl.ioctl(s, request, b"0000"))[0]

def wait(request):
    while queued(request):
        time.sleep(0.0005)

if warm_up:
    s.sendall(b"x" * warm_up)
    wait(0x5411)
    connecting, handshake = time.monotonic(), 0
sent, idle = 0, 0
end = time.monotonic() + seconds
while time.monotonic() < end and (total == 0 or sent < total):
    s.sendall(b"x" * chunk)
    sent += chunk
    if pause:
        until = time.monotonic() + pause
        wait(0x894B)
        left = max(0, until - time.monotonic())
        time.sleep(left)
        idle += left
if total:
    wait(0x894B)
    sent_at = time.monotonic()
    s.shutdown(socket.SHUT_WR)
    s.recv(1)  # waits until the receiver has everything
    idle += time.monotonic() - sent_at
else:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # the end does not wait for unsent data
print(json.dumps({"seconds": time.monotonic() - connecting, "handshake": handshake, "idle": idle}))
s.close()
"""

RECEIVER = """
import socket, sys, threading, time
buffer, chunk, pause, count = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1
l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
if buffer:
    l.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
l.bind(("0.0.0.0", 7000))
l.listen()
print("ready", flush=True)

def receive(c):
    try:
        while c.recv(chunk):
            time.sleep(pause)
    except ConnectionResetError:
        pass

threads = [threading.Thread(target=receive, args=l.accept()[:1]) for _ in range(count)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""

# A client requests blocks on one connection. Both programs log their events. The server sends like the sender of a transfer.
SERVER = """
import socket, sys, time
size, log = int(sys.argv[1]), open(sys.argv[2], "w")

def event(name, number):
    now = time.time()
    log.write(time.strftime("DATE=%Y%m%d%H%M%S", time.gmtime(now)) + f"{now % 1:.6f}"[1:] + f" HOST=a PROG=put LVL=Usage NL.EVNT={name} ID={number}\\n")

l = socket.socket()
l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
l.bind(("0.0.0.0", 7000))
l.listen()
print("ready", flush=True)
c, _ = l.accept()
while number := c.recv(8):
    event("Asked", int(number))
    c.sendall(b"x" * size)
    event("Sent", int(number))
"""

CLIENT = """
import socket, sys, time
size, log, count, buffer = int(sys.argv[1]), open(sys.argv[2], "w"), int(sys.argv[3]), int(sys.argv[4])

def event(name, number):
    now = time.time()
    log.write(time.strftime("DATE=%Y%m%d%H%M%S", time.gmtime(now)) + f"{now % 1:.6f}"[1:] + f" HOST=b PROG=get LVL=Usage NL.EVNT={name} ID={number}\\n")

s = socket.socket()
if buffer:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
s.connect(("10.77.0.1", 7000))
for number in range(count):
    event("Ask", number)
    s.sendall(f"{number:8}".encode())
    left = size
    while left:
        left -= len(s.recv(min(left, 1 << 20)))
    event("Got", number)
"""

TOO_BUSY = "the machine was too busy to emulate the path: more than 2 % of the packets were late"


@dataclasses.dataclass
class Scenario:
    name: str
    path: list  # options of path_emulator
    send: tuple = (0, 65536, 0, 0)  # SO_SNDBUF, bytes per write, pause after it in seconds, bytes in total (0: unlimited)
    receive: tuple = (0, 1 << 20, 0)  # SO_RCVBUF, bytes per read, pause after it in seconds
    seconds: float = 2
    warm_up: int = 0  # bytes to send before the transfer
    algorithm: str = "reno"  # of congestion control
    connections: int = 1  # number of transfers at the same time


class World:
    """Two namespaces joined by an emulated path. Everything ends with the test, which is skipped if this is not possible."""

    def __init__(self, case, scenario):
        self.case, self.scenario = case, scenario
        self.a, self.b = (f"nlp{os.getpid()}{scenario.name}{end}" for end in "ab")
        self.set_up()

    def run_in(self, namespace, *command):
        return ["ip", "netns", "exec", namespace, *map(str, command)]

    def set_up(self):
        emulator = support.program("examples/dpss/path_emulator")
        if os.geteuid() != 0:
            self.case.skipTest("network namespaces need root")
        for namespace in (self.a, self.b):
            made = self.case.run_program("ip", "netns", "add", namespace)
            if made.returncode != 0:
                self.case.skipTest(f"no network namespaces here: {made.stderr.strip()[:100]}")
            self.case.addCleanup(subprocess.run, ["ip", "netns", "delete", namespace], stderr=subprocess.DEVNULL)
        self.path = self.case.start(emulator, *self.scenario.path, f"{self.a}:wan0", f"{self.b}:wan0", stdout=subprocess.PIPE, text=True)
        self.case.assertIn("ready", self.path.stdout.readline())
        for namespace, address in ((self.a, "10.77.0.1/24"), (self.b, "10.77.0.2/24")):
            setup = self.case.run_program(*self.run_in(namespace, "sh", "-c", f"""
                sysctl -qw net.ipv4.tcp_congestion_control=reno net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_slow_start_after_idle=0 &&
                ip address add {address} dev wan0 && ip link set wan0 up gso_max_segs 1 && ip link set lo up"""))
            if setup.returncode != 0:
                self.case.skipTest(f"cannot set up the path here: {setup.stderr.strip()[:100]}")

    def end(self):
        """Removes the path. Returns whether the emulation was good enough: at most 2 % of the packets were late. On a busy
        machine, more packets are late."""
        self.path.terminate()
        counts = re.findall(r"packets=(\d+) .* late=(\d+)", self.path.stdout.read())
        self.path.wait(60)
        self.path.stdout.close()
        for namespace in (self.a, self.b):
            self.case.run_program("ip", "netns", "delete", namespace)
        self.case.assertEqual(len(counts), 2)
        return sum(int(late) for _, late in counts) <= 0.02 * sum(int(packets) for packets, _ in counts)

    def start_sensors(self, log, interval, both_ends):
        """Starts a sensor at each end, or only at the sender's. Returns their outputs and processes."""
        sensors = []
        for namespace in (self.a, self.b) if both_ends else (self.a,):
            out = open(f"{log}.{namespace}", "w+", encoding="utf-8")
            sensors.append((out, self.case.start(*self.run_in(namespace, "env", f"NETLOGGER_HOST={namespace[-1]}",
                                                              support.program("nlagent/nlsensor"), "--interval", interval,
                                                              "connections?port=7000"), stdout=out)))
        for out, _ in sensors:
            support.wait_until(lambda out=out: os.fstat(out.fileno()).st_size > 0, what="the sensor measures")
        return sensors

    def collect(self, log, sensors, *more):
        """Stops the sensors. Writes their records, the sender's first, and the content of further files to `log`."""
        with open(log, "w", encoding="utf-8") as all_records:
            for out, sensor in sensors:
                sensor.terminate()
                sensor.wait(60)
                out.seek(0)
                all_records.write(out.read())
                out.close()
            for path in more:
                with open(path, encoding="utf-8") as records:
                    all_records.write(records.read())

    def requests(self, log, count, size):
        """The client in B requests `count` blocks of `size` bytes from the server in A. Writes all records to `log`."""
        sensors = self.start_sensors(log, "0.05", True)
        logs = [f"{log}.{program}" for program in ("server", "client")]
        server = self.case.start(*self.run_in(self.a, sys.executable, "-c", SERVER, size, logs[0]), stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        client = self.case.run_program(*self.run_in(self.b, sys.executable, "-c", CLIENT, size, logs[1], count, self.scenario.receive[0]), timeout=120)
        self.case.assertEqual(client.returncode, 0, client.stderr)
        server.wait(60)
        server.stdout.close()
        self.collect(log, sensors, *logs)

    def transfer(self, log, interval="0.05", both_ends=True):
        """
        Runs the transfers. Writes the records of the sensors to `log`, the sender's first. Returns the first sender's own times in seconds.
        """
        s = self.scenario
        sensors = self.start_sensors(log, interval, both_ends)
        receiver = self.case.start(*self.run_in(self.b, sys.executable, "-c", RECEIVER, *s.receive, s.connections), stdout=subprocess.PIPE, text=True)
        receiver.stdout.readline()
        senders = [self.case.start(*self.run_in(self.a, sys.executable, "-c", SENDER, *s.send, s.seconds, s.warm_up, s.algorithm),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(s.connections)]
        sent = [sender.communicate(timeout=60) for sender in senders]
        self.case.assertEqual([sender.returncode for sender in senders], [0] * s.connections, sent)
        receiver.wait(60)
        self.collect(log, sensors)
        receiver.stdout.close()
        return json.loads(sent[0][0])
