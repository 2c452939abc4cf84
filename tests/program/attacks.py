"""Attacks on netlogd. Each attack is a function, which runs in its own process until the process is killed.

bench/attack/run measures the delay of honest clients during the attacks; test_attack.py checks that their events arrive.
"""
import functools
import os
import random
import selectors
import signal
import socket
import time

import blocks

MANY, SUBSCRIBERS = 1000, 900


def connect(port, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(source, 0))


def by_connections(port, count, make_data, source="127.0.0.1"):
    """Sends the same data repeatedly over count connections, as fast as netlogd reads."""
    selector, data = selectors.DefaultSelector(), make_data()
    piece = data * max(1, 65536 // len(data))

    def add():
        try:
            s = connect(port, source)
        except OSError:
            return
        s.setblocking(False)
        selector.register(s, selectors.EVENT_WRITE | selectors.EVENT_READ, [0])
    while True:
        for _ in range(count - len(selector.get_map())):
            add()
        for key, events in selector.select(0.1):
            try:
                if events & selectors.EVENT_READ and not key.fileobj.recv(65536):
                    raise ConnectionError
                if events & selectors.EVENT_WRITE:
                    key.data[0] = (key.data[0] + key.fileobj.send(piece[key.data[0]:])) % len(piece)
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def by_datagrams(port, make_data):
    data = make_data()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        while True:
            try:
                s.send(data * (65000 // len(data)))
            except OSError:
                pass
            time.sleep(0.0005)


def subscribe(port, count, arguments, source="127.0.0.1"):
    subscribers = []
    for _ in range(count):
        try:
            s = connect(port, source)
            s.sendall(b"NETLOGGER/1 subscribe " + arguments.encode() + b"\n")
            subscribers.append(s)
        except OSError:
            pass
    return subscribers


def by_filters(port, source="127.0.0.1"):
    subscribers = subscribe(port, 20, f'WHERE="{blocks.EXPENSIVE}"', source)
    assert subscribers
    by_connections(port, 1, blocks.matching, source)


def by_subscribers(port, source="127.0.0.1"):
    """Subscribes and requests past records, again every second over new connections."""
    while True:
        subscribers = subscribe(port, SUBSCRIBERS, "SINCE=-1d", source)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for s in subscribers:
                try:
                    s.recv(65536, socket.MSG_DONTWAIT)
                except OSError:
                    pass
        for s in subscribers:
            s.close()


def by_idle_connections(port, count, begin=b"", source="127.0.0.1"):
    """Opens connections and sends only the beginning of a message on each. Replaces the connections that netlogd
    closes."""
    selector = selectors.DefaultSelector()
    while True:
        while len(selector.get_map()) < count:
            try:
                s = connect(port, source)
                s.sendall(begin)
            except OSError:
                break
            selector.register(s, selectors.EVENT_READ)
        for key, _ in selector.select(0.1):
            try:
                if key.fileobj.recv(65536):
                    continue
            except OSError:
                pass
            selector.unregister(key.fileobj)
            key.fileobj.close()


def by_new_streams(port, source="127.0.0.1"):
    """Sends blocks of new streams, and reconnects when netlogd closes the connection."""
    rng = random.Random(os.getpid())
    while True:
        try:
            with connect(port, source) as s:
                while True:
                    s.sendall(b"".join(blocks.numbers(b"attack", [1], rng.randbytes(16), 0) for _ in range(100)))
        except OSError:
            time.sleep(0.01)


def new_hosts():
    """Returns clock lines of hosts that do not exist."""
    return b"".join(b"DATE=20260101000000 HOST=x%d PROG=attack LVL=Usage NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=true "
                    b"CLOCK.ERROR=5\n" % n for n in range(5000))


def malformed_lines():
    return b"x\n" * 32768


def noise():
    return random.Random(1).randbytes(1 << 20)


POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 70\r\n\r\nDATE=20260101000000 HOST=x PROG=attack LVL=Usage NL.EVNT=Browser X=1\n"


def named(tcp, udp):
    """Returns all attacks: {name: [(function, arguments...)]}. tcp and udp are netlogd's ports."""
    return {
        "nothing else": [],
        "wide shapes, 1 client": [(by_connections, tcp, 1, blocks.wide)],
        "wide shapes, 1000 clients": [(by_connections, tcp, MANY, blocks.wide)],
        "dense blocks, 1 client": [(by_connections, tcp, 1, blocks.dense)],
        "dense blocks, 1000 clients": [(by_connections, tcp, MANY, blocks.dense)],
        "large tables, 1 client": [(by_connections, tcp, 1, blocks.tables)],
        "large tables, 1000 clients": [(by_connections, tcp, MANY, blocks.tables)],
        "malformed lines, 1000 clients": [(by_connections, tcp, MANY, malformed_lines)],
        "noise, 100 clients": [(by_connections, tcp, 100, noise)],
        "datagrams of wide shapes": [(by_datagrams, udp, blocks.wide)],
        "datagrams of dense blocks": [(by_datagrams, udp, blocks.dense)],
        "expensive filters": [(by_filters, tcp)],
        f"{SUBSCRIBERS} subscribers with SINCE": [(by_subscribers, tcp)],
        "10000 idle connections": [(by_idle_connections, tcp, 5000)] * 2,
        "1000 incomplete blocks": [(by_idle_connections, tcp, MANY, blocks.dense()[:-1])],
        "HTTP requests of browsers, 100 clients": [(by_connections, tcp, 100, functools.partial(bytes, POST))],
        "invented streams": [(by_new_streams, tcp)],
        "invented hosts": [(by_connections, tcp, 1, new_hosts)],
    }


def valid_lines():
    return b"DATE=20261123000000.000000 HOST=h PROG=attack LVL=Usage NL.EVNT=E N=1\n"


def small_block():
    return blocks.numbers(b"attack", [1], bytes(16), 0)


def by_single_bytes(port, count):
    """Sends lines over count connections, one byte at a time."""
    data = valid_lines()
    sockets = [connect(port) for _ in range(count)]
    for s in sockets:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        for i in range(len(data)):
            for s in sockets:
                s.send(data[i:i + 1])


def loads(tcp):
    """Returns attacks that send more valid records than netlogd can process, in the form of `named`. Only bench/attack/run uses it, because netlogd writes all these records."""
    return {
        "valid lines, 1000 clients": [(by_connections, tcp, MANY, valid_lines)],
        "small blocks, 1000 clients": [(by_connections, tcp, MANY, small_block)],
        "single bytes, 1000 clients": [(by_single_bytes, tcp, MANY)],
    }


def start(attack):
    """Starts an attack in its own process, with low priority. Returns the process ID."""
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            os.nice(10)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            attack[0](*attack[1:])
        finally:
            os._exit(1)
    return child


def stop(children):
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


class Client:
    """An honest client: sends numbered records in blocks of its own stream, and counts the acknowledged records."""

    def __init__(self, port, number, source="127.0.0.1", timeout=30):
        self.port, self.number, self.source, self.timeout = port, number, source, timeout
        self.stream = os.urandom(16)
        self.sent = self.acknowledged = self.connections = 0
        self.socket = None

    def connect(self):
        self.socket = connect(self.port, self.source)
        self.socket.settimeout(self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        self.base, self.frames = self.acknowledged, b""
        for number in range(self.acknowledged, self.sent):
            self.socket.sendall(self.block(number))

    def block(self, number):
        return blocks.numbers(b"honest%d" % self.number, [number], self.stream, number)

    def send(self):
        """Sends the next record. Raises OSError if netlogd cannot be reached."""
        self.sent += 1
        if self.socket is None:
            self.connect()
        else:
            self.socket.sendall(self.block(self.sent - 1))

    def wait(self):
        """Waits until netlogd has acknowledged everything. Raises OSError if netlogd closes the connection."""
        while self.acknowledged < self.sent:
            if self.socket is None:
                self.connect()
            data = self.socket.recv(4096)
            if not data:
                raise ConnectionError
            self.frames += data
            whole = len(self.frames) // 16 * 16
            if whole:
                self.acknowledged = self.base + int.from_bytes(self.frames[whole - 8:whole], "little")
                self.frames = self.frames[whole:]

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None
