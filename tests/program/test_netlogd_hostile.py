"""Tests netlogd's reaction to invalid and hostile input at each of its listeners.

Each table has rows (input, result), and the test sends each row to every listener of the table. A result gives the number of
malformed pieces, the number of accepted records, and whether the connection stays open or is closed. The test sends a valid
record after the bad input to check this. netlogd serves a well-behaved client while each hostile client is connected. At the
end, netlogd runs, has not grown, and has no more open files than before.

  NL_HOSTILE_CONNECTIONS  number of tiny connections (default 20000, and 6000 in ./check)
"""
import os
import random
import re
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time

import blocks
import collector
import support
from collector import record

CONNECTIONS = int(os.environ.get("NL_HOSTILE_CONNECTIONS", support.representative(20000, 6000)))
RECORD_MAX = 64 << 10
MEMORY_MAX_KB = 150000

GOES_ON, CLOSED = "goes on", "closed"
SOME = range(1, 1 << 30)  # at least one


# ---- blocks as in doc/binary-format.md ----

def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def string(text):
    return varint(len(text)) + text


STREAMS = random.Random(7)


def block(payload, count, flags=0, raw_size=None, stored_size=None, kind=1, first=0, crc=None, header_size=96, stream=None):
    stream = stream if stream is not None else STREAMS.randbytes(16)

    def header(crc):
        return struct.pack("<4sHBBIIII16sQqqQqqQ", b"NLB1", header_size, kind, flags, crc,
                           len(payload) if stored_size is None else stored_size,
                           len(payload) if raw_size is None else raw_size, count,
                           stream, first, 0, 0, 0, 0, 0, 0)
    return header(crc if crc is not None else blocks.crc32c(header(0) + payload)) + payload


def payload(records=1, names=(b"N",), kind=3, value=b"\x05"):
    """Returns records of one source and one shape, with a numeric field."""
    sources = varint(1) + string(b"h") + string(b"p")
    fields = b"".join(bytes([kind]) + string(name) for name in names)
    shapes = varint(1) + varint(0) + bytes([7]) + string(b"E") + varint(len(names)) + fields
    return sources + shapes + (varint(0) + varint(0) + value * len(names)) * records


GOOD_BLOCK = block(payload(), 1)


def zstd(size):
    """Returns a compressed frame of that many zeros, which is some thousand times smaller."""
    with subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as zeros:
        return subprocess.run(["zstd", "-q", "-c", "-1"], stdin=zeros.stdout, capture_output=True, check=True).stdout


def letters(size):
    """Returns random letters, which hardly compress."""
    return bytes(random.Random(size).choices(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-", k=size))


def repeats(size, count, first=1, text=None):
    """Returns a payload of records that share one long string and have an increasing number."""
    sources = varint(1) + string(b"h") + string(b"p")
    shape = varint(0) + bytes([7]) + string(b"E") + varint(2) + bytes([1]) + string(b"PAD") + bytes([3]) + string(b"N")
    begin = varint(0) + varint(0) + varint(size + 1) + (text or b"a" * size) + varint(2 * first)
    return sources + varint(1) + shape + begin + b"\0\0\0\2" * (count - 1)


def packed(data):
    return subprocess.run(["zstd", "-q", "-c", "-1"], input=data, capture_output=True, check=True).stdout


def damaged_blocks():
    flipped = bytearray(GOOD_BLOCK)
    flipped[-1] ^= 1
    bomb = zstd(256 << 20)
    great = zstd(16 << 20)
    return {
        "a block whose CRC is wrong": (bytes(flipped), SOME, 0),
        "a block whose header lies of its own size": (block(payload(), 1, header_size=20), SOME, 0),
        "a block that claims four gigabytes": (block(payload(), 1, stored_size=0xffffffff), SOME, 0),
        "a block that claims more records than it has": (block(payload(), 1000000), 1, SOME),
        "a block with bytes behind its records": (block(payload(2), 1), 1, 0),
        "a block of another type": (block(payload(), 1, kind=9), 0, 0),
        "a block with an unknown flag": (block(payload(), 1, flags=128), 1, 0),
        "a block of strings that run past its end": (block(payload(kind=1, value=b"\xff\xff\xff\xff\x0f"), 1), 1, 0),
        "a block with a name that is none": (block(payload(names=(b"A B\n",)), 1), 1, 0),
        "a block of endless numbers": (block(payload(value=b"\xff" * 11), 1), 1, 0),
        "a block of two million sources": (block(varint(2000000) + b"\0" * 100, 1), 1, 0),
        "a frame of 256 MiB in a block that claims 100 bytes": (block(bomb, 1, flags=1, raw_size=100), 1, 0),
        "a frame of 256 MiB in a block that claims 16": (block(bomb, 1, flags=1, raw_size=16 << 20), 1, 0),
        "a frame of 16 MiB that is none of a block": (block(great, 1, flags=1, raw_size=16 << 20), 1, 0),
        "a frame that is none": (block(b"\x28\xb5\x2f\xfd" + b"x" * 50, 1, flags=1, raw_size=50), 1, 0),
        "a good block": (GOOD_BLOCK, 0, 1),
        "the same block again": (GOOD_BLOCK, 0, 0),
        "sequence numbers up to the last one": (block(payload(), 1, first=(1 << 64) - 1), 0, 0),
    }


TAKEN_ONCE = ("a good block",)


def damaged_text():
    garbage = random.Random(3).randbytes(20000).replace(b"NL", b"nl")
    return {
        "a line of 300,000 bytes": (b"A" * 300000 + b"\n", 1, 0),
        "a record that is too long": (record(1, 1, " X=" + "y" * 2 * RECORD_MAX), 1, 0),
        "random bytes": (garbage + b"\n", SOME, 0),
        "zeros": (b"\0" * 100000 + b"\n", 1, 0),
        "ten thousand empty lines": (b"\n" * 10000 + b"\r\n" * 10000, 0, 0),
        "a record of 10,000 fields": (record(1, 1, " A=1" * 10000), 0, 1),
        "records cut by records": (b"DATE=1 " * 5000 + b"\n", SOME, 0),
        "quotes that do not end": (b'DATE=20260101000000 A="' + b"\\" * 30001 + b"\n", 0, 1),
        "a date of the year 10000": (b"DATE=100000101000000 HOST=h PROG=p\n", 1, 0),
        "a floating time that is none": (b"ts=1e999 event=x\nts=nan event=x\nts=-inf event=x\n", 3, 0),
        "escapes for terminals": (b"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=E T=\x1b]0;title\x07\n", 0, 1),
        "the classic header twice": (b"ULM\0    ULM\0    \n", SOME, 0),
        "a request behind a record": (record(1, 1) + b"NETLOGGER/1 status\n", 1, 1),
        "a request of another version": (b"NETLOGGER/2 subscribe\n", 1, 0),
    }


# The bytes before the newline of a request, and the first record of the response.
REQUESTS = {
    b"": "unknown verb",
    b" " * 100: "unknown verb",
    b"nonsense": "unknown verb",
    b"SUBSCRIBE": "unknown verb",
    b"\xff\xfe\0\x01": "unknown verb",
    b"v" * 9000: "the line is longer than 8192 bytes",
    b"subscribe WHERE": "the text after the verb must be NAME=value",
    b"subscribe =": "the text after the verb must be NAME=value",
    b'subscribe WHERE="': "the text after the verb must be NAME=value|WHERE",
    b'subscribe WHERE=""': "WHERE|expression|column",
    b"subscribe NOSUCH=1": "subscribe request does not accept the field NOSUCH",
    b"subscribe " + b"N" * 5000 + b"=1": "subscribe request does not accept the field NNN",
    b"subscribe HOST=x": "subscribe request does not accept the field HOST",
    b"subscribe FORMAT=xml": "FORMAT|format",
    b"subscribe FORMAT=" + b"x" * 5000: "FORMAT is too long",
    b"subscribe SINCE=yesterday-ish": "SINCE",
    b"subscribe SINCE=-99999999999999999999999999": "SINCE",
    b'subscribe WHERE="' + b"(" * 4000 + b'"': "column",
    b'subscribe WHERE="' + b"!" * 4000 + b'A=1"': "column|Subscribed",
    b'subscribe WHERE="A =~ /(((((a*)*)*)*)*)*b/"': "column|Subscribed",
    b'subscribe WHERE="A =~ /(a{1000}){1000}/"': "column",
    b'subscribe WHERE="\\x00"': "NUL",
}
FOR_CONTROL = {b"status": "accepts status only over the control socket", b"reload": "accepts reload only over the control socket"}
ONLY_CONTROL = {b"status X=1": "status request does not accept the field X", b"tell": "tell requires COMMAND", b"tell COMMAND=" + b"c" * 5000: "too long"}

DATAGRAMS = {
    "nothing": (b"", 0, 0),
    "a newline": (b"\n", 0, 0),
    "zeros": (b"\0" * 1000, 1, 0),
    "the largest datagram": (b"A" * 65507, 1, 0),
    "a record and half a record": (record(1, 1) + b"DATE=2026", 1, 1),
    "a record without a newline": (record(1, 1)[:-1], 0, 1),
    "a good block": (block(payload(), 1), 0, 1),
    "a block that is cut": (GOOD_BLOCK[:100], 1, 0),
    "a bomb": None,  # made when the test runs
    "a request": (b"NETLOGGER/1 subscribe\n", 1, 0),
    "a hundred thousand claims": (b"NLB1" * 16000, SOME, 0),
}

HTTP = {
    b"\r\n\r\n": None,
    b"nonsense\r\n\r\n": None,
    b"\x16\x03\x01\xff\xff" + b"A" * 5000: None,
    b"GET /metrics HTTP/9.9\r\n\r\n": None,
    b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello": b" 501 | 405 ",
    b"PUT /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n": None,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\n" + b"b" * 2000: None,
    b"GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": b" 404 ",
    b"GET /" + b"m" * 9000 + b" HTTP/1.1\r\n\r\n": None,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 5000 + b"\r\n": None,
    b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n": None,
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": b" 200 ",
    b"GET /metrics HTTP/1.1\r\nHost: rebound.example:80\r\nConnection: close\r\n\r\n": b" 421 ",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n": b" 403 ",
    b"GET /metrics HTTP/1.1\r\nHost: a b@c\r\nConnection: close\r\n\r\n": b" 421 ",
    b"GET /metrics HTTP/1.1\r\nHost: a@c\r\nConnection: close\r\n\r\n": b" 400 ",
    b"GET /metrics HTTP/1.0\r\n\r\n": b" 200 ",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n": b" 405 ",
}


class Hostile(collector.Case):
    def setUp(self):
        super().setUp()
        self.authority = collector.Authority(self, "authority")
        certificate = self.authority.certify("server")
        self.stranger = collector.Authority(self, "stranger").certify("stranger")
        self.client = self.authority.certify("client")
        self.unix, self.control = self.scratch / "unix", self.scratch / "control"
        # Time limits for a record and a handshake. Good clients need less time than this, even on a busy machine. The
        # tests of the limits use shorter limits.
        seconds = 5 if self._testMethodName in ("test_slow", "test_claims_that_are_never_kept") else 20
        self.process = self.serve(
            "--listen", f"x-netlogs://127.0.0.1:0?cert={certificate}", "--listen",
            f"x-netlogs://127.0.0.1:0?cert={certificate}&ca={self.authority.ca}", "--listen", f"unix:{self.unix}",
            "--listen", "x-netlog+udp://127.0.0.1:0", "--control", f"unix:{self.control}", "--metrics",
            "http://127.0.0.1:0", "--reject", self.scratch / "reject", "--max-record-size", RECORD_MAX, "--record-timeout",
            seconds, "--handshake-timeout", seconds, "--recover", 0)
        support.wait_until(lambda: self.said().count("listening") == 5, what="all listeners")
        self.ports = [int(p) for p in re.findall(r"listening on [-a-z+]+://127\.0\.0\.1:(\d+)", self.said())]
        self.ports.append(int(re.search(r"metrics on http://127\.0\.0\.1:(\d+)", self.said())[1]))
        self.good = self.connect("tcp")
        self.good_sent = 0
        self.served()
        self.files = self.open_files() + 1  # the journal

    # ---- listeners ----

    streams = ("tcp", "tls", "tls with certificates", "unix")

    def connect(self, where):
        if where in ("unix", "control"):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(30)
            s.connect(str(self.unix if where == "unix" else self.control))
            return s
        port = self.ports[["tcp", "tls", "tls with certificates", "udp", "metrics"].index(where)]
        if where == "udp":
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.connect(("127.0.0.1", port))
            return s
        s = socket.create_connection(("127.0.0.1", port), timeout=30)
        return self.secure(s, self.client if where == "tls with certificates" else None) if "tls" in where else s

    def secure(self, s, certificate=None):
        context = ssl.create_default_context(cafile=self.authority.ca)
        if certificate:
            context.load_cert_chain(certificate)
        return context.wrap_socket(s, server_hostname="localhost")

    # ---- netlogd's messages about itself ----

    def status(self):
        with self.connect("control") as s:
            s.sendall(b"NETLOGGER/1 status\n")
            answer = b""
            while data := s.recv(4096):
                answer += data
        return {name.decode(): int(value) for name, value in re.findall(rb" ([A-Z]+)=(\d+)(?= |\n)", answer)}

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def served(self):
        """Checks that netlogd serves a well-behaved client while the others act."""
        self.good_sent += 1
        line = record(999, self.good_sent)
        since = self.size()
        self.good.sendall(line)
        support.wait_until(lambda: line in self.tail(since), what="the good client is served")

    def size(self):
        return self.output.stat().st_size if self.output.exists() else 0

    def tail(self, since):
        """Returns the output after its first bytes."""
        if not self.output.exists():
            return b""
        with open(self.output, "rb") as output:
            output.seek(since)
            return output.read()

    def lives(self, connections=1):
        """Checks that netlogd still serves, has closed the other connections, and has used less than MEMORY_MOST_KB. Then stops netlogd."""
        self.served()
        support.wait_until(lambda: self.status()["CONNECTIONS"] == connections, what="the others are gone")
        support.wait_until(lambda: self.open_files() <= self.files, what="their descriptors too")
        self.assertIsNone(self.process.poll())
        if not support.is_sanitized(self.process):
            with open(f"/proc/{self.process.pid}/status") as status:
                self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]), MEMORY_MAX_KB)
        self.good.close()
        self.stop(self.process)

    # ---- playing a row ----

    def send(self, s, data):
        try:
            s.sendall(data)
        except (ConnectionError, ssl.SSLError):
            pass

    def is_closed(self, s):
        """Returns whether netlogd closes the connection; skips netlogd's output before that."""
        try:
            while s.recv(65536):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
        except TimeoutError:
            return False
        return True

    def counted(self, row, before, malformed, records):
        def differs():
            after = self.status()
            return after["MALFORMED"] - before["MALFORMED"], after["RECORDS"] - before["RECORDS"]

        def is_so():
            found = differs()
            return all(f in (e if isinstance(e, range) else (e,)) for f, e in zip(found, (malformed, records)))
        try:
            support.wait_until(is_so, 10, what=row)
        except AssertionError:
            self.fail(f"{row}: (malformed, records) are {differs()}, not {(malformed, records)}")

    def play(self, where, what, data, malformed, records):
        """A row whose connection stays open: netlogd accepts the record after the bad input."""
        before = self.status()
        with self.connect(where) as s:
            self.send(s, data)
            self.served()
            behind = record(777, self.good_sent)
            since = self.size()
            self.send(s, behind)
            support.wait_until(lambda: behind in self.tail(since), what=f"{where}: {what}: what comes behind it")
        extra = 2  # the good client's record, and the record after the bad input
        shifted = range(records.start + extra, records.stop) if isinstance(records, range) else records + extra
        self.counted(f"{where}: {what}", before, malformed, shifted)

    def test_text(self):
        for where in self.streams:
            for what, (data, malformed, records) in damaged_text().items():
                self.play(where, what, data, malformed, records)
        self.lives()

    def test_blocks(self):
        for where in self.streams:
            for what, (data, malformed, records) in damaged_blocks().items():
                # After damage, text continues at the start of a line.
                self.play(where, what, data + b"\n", malformed, 0 if where != "tcp" and what in TAKEN_ONCE else records)
        self.lives()

    def test_other_protocols(self):
        """netlogd answers and counts a browser's request and records nothing of it, however the request is divided."""
        body = record(66, 6)
        requests = [b"GET / HTTP/1.0\r\nHost: x\r\n\r\n", b"BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n" + body,
                    b"OPTIONS * HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"DELETE /\n" + body]
        requests += [method + b" / HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                     for method in (b"POST", b"PUT", b"PATCH")]
        before, count = self.status(), 0
        for where in self.streams:
            for request in requests:
                with self.connect(where) as s:
                    if request.startswith(b"POST"):
                        self.send(s, request[:2])
                        self.served()
                        self.send(s, request[2:])
                    else:
                        self.send(s, request)
                    answer = b""
                    while data := s.recv(4096):
                        answer += data
                    self.assertRegex(answer, rb"^HTTP/1.1 400 Bad Request\r\n(.+\r\n)+\r\nThis is a NetLogger collector.*\n$",
                                     f"{where}: {request[:30]}")
                    count += 1
        for where in ("tcp", "unix"):
            with self.connect(where) as s:
                self.send(s, self.hello())
                self.assertEqual(s.recv(4096)[:1], b"\x15", "an alert")
                self.assertTrue(self.is_closed(s))
                count += 1
        self.served()
        self.assertNotIn(body, self.output.read_bytes())
        after = self.status()
        self.assertEqual(after["MALFORMED"], before["MALFORMED"])
        with self.connect("control") as s:
            s.sendall(b"NETLOGGER/1 drops\n")
            answer = b""
            while data := s.recv(4096):
                answer += data
        self.assertRegex(answer, rb"WHAT=foreign COUNT=%d " % count)
        self.assertRegex(self.said(), r"NL.EVNT=Netlogd.Foreign PEER=\S+ REASON=\"closed: the client sent HTTP\"")
        self.lives()

    def test_invented_streams(self):
        """netlogd closes an address that begins very many streams, even if it reconnects, and serves others as before."""
        def from_address(address):
            return socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(address, 0))

        def streams():
            with self.connect("control") as s:
                s.sendall(b"NETLOGGER/1 streams\n")
                answer = b""
                while data := s.recv(1 << 20):
                    answer += data
            return answer.count(b"Netlogd.Stream ")
        honest = block(payload(), 1, stream=b"h" * 16)
        with from_address("127.0.0.2") as s:
            s.sendall(honest)
            self.assertEqual(s.recv(16)[:4], b"NLA1")
        invented = b"".join(block(payload(), 1) for _ in range(9500))
        began = time.monotonic()
        for part in (0, 1):  # the second part begins at the end of the first, or later
            with from_address("127.0.0.3") as s:
                self.send(s, invented)
                self.assertTrue(self.is_closed(s))
        most = 8192 + 50 * (time.monotonic() - began + 1) + 1
        self.assertTrue(8192 <= streams() <= most, (streams(), most))
        self.assertRegex(self.said(), r"NL.EVNT=Netlogd.Refused PEER=127.0.0.3:\d+ REASON=\"closed: the client begins too many")
        before = self.status()
        with from_address("127.0.0.2") as s:
            for data in (honest, block(payload(), 1)):
                s.sendall(data)
                self.assertEqual(s.recv(16)[:4], b"NLA1")
        self.counted("a block again, and a new stream", before, 0, 1)
        self.files += 1  # the output's index, which begins when the output has that size
        self.lives()

    def test_invented_clocks(self):
        """If one address invents host names, these names do not displace the hosts of other addresses, and netlogd accepts new
        hosts of other addresses."""
        def say(address, hosts):
            with socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(address, 0)) as s:
                s.sendall(b"".join(b"DATE=20260101000000 HOST=%s PROG=p LVL=Usage NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=true "
                                   b"CLOCK.ERROR=5\n" % host.encode() for host in hosts))
                s.shutdown(socket.SHUT_WR)
                self.assertEqual(s.recv(1), b"")

        def known():
            with self.connect("control") as s:
                s.sendall(b"NETLOGGER/1 clocks\n")
                answer = b""
                while data := s.recv(65536):
                    answer += data
            return re.findall(r"CLOCK.HOST=(\S+)", answer.decode())
        say("127.0.0.2", ["real1", "real2"])
        say("127.0.0.3", [f"invented{i}" for i in range(5000)])
        self.assertEqual(len(known()), 1024)
        say("127.0.0.4", ["real3"])
        say("127.0.0.3", [f"more{i}" for i in range(2000)])
        hosts = known()
        self.assertEqual(len(hosts), 1024)
        self.assertLessEqual({"real1", "real2", "real3", "more1999"}, set(hosts))
        self.lives()

    def test_half_a_block_and_then_the_end(self):
        for where in self.streams:
            for cut in (5, 60, 97, len(GOOD_BLOCK) - 1):
                before = self.status()
                with self.connect(where) as s:
                    s.sendall(GOOD_BLOCK[:cut])
                    self.served()
                    if "tls" in where:
                        s.unwrap()
                    else:
                        s.shutdown(socket.SHUT_WR)
                        self.assertTrue(self.is_closed(s))
                self.counted(f"{where}: {cut} bytes of a block", before, 1, 1)
        self.lives()

    def test_requests(self):
        for where in (*self.streams, "control"):
            rows = {**REQUESTS, **(ONLY_CONTROL if where == "control" else FOR_CONTROL)}
            for line, answer in rows.items():
                with self.connect(where) as s:
                    self.send(s, b"NETLOGGER/1 " + line + b"\n")
                    said = s.recv(65536).decode(errors="replace")
                    self.assertRegex(said, answer, f"{where}: {line[:60]}")
                    self.assertRegex(said, r"NL.EVNT=Netlogd.(Error|Subscribed)", f"{where}: {line[:60]}")
                    self.served()
                    if "Netlogd.Error" in said:
                        self.assertTrue(self.is_closed(s), f"{where}: {line[:60]}")
        for line in (record(1, 1), b"\xff" * 5000 + b"\n", b"\0\n", GOOD_BLOCK + b"\n", b"NETLOGGER/\n"):
            with self.connect("control") as s:
                s.sendall(line)
                self.assertIn(b"invalid request", s.recv(65536))
                self.assertTrue(self.is_closed(s))
        self.lives()

    def test_datagrams(self):
        DATAGRAMS["a bomb"] = block(zstd(256 << 20)[:20000], 1, flags=1, raw_size=16 << 20), 1, 0
        for what, (data, malformed, records) in DATAGRAMS.items():
            before = self.status()
            with self.connect("udp") as s:
                s.send(data)
                self.served()
            self.counted(f"udp: {what}", before, malformed, records + 1)
        self.lives()

    def test_http(self):
        for sent, answer in HTTP.items():
            with self.connect("metrics") as s:
                self.send(s, sent)
                self.served()
                if not answer:  # netlogd sends an error or no reply
                    s.settimeout(1)
                    try:
                        said = s.recv(65536)
                    except (TimeoutError, ConnectionError):
                        said = b""
                    self.assertNotIn(b" 200 OK", said.split(b"\r\n")[0], sent[:60])
                else:
                    self.assertRegex(s.recv(65536), b"HTTP/1.[01]" + answer.replace(b"|", b"|HTTP/1.[01]"), sent[:60])
        # Incomplete requests of some clients do not keep other clients out.
        undecided = [self.connect("metrics") for _ in range(200)]
        for s in undecided:
            self.send(s, b"GET /")
        with self.connect("metrics") as s:
            s.sendall(b"HEAD /metrics?x HTTP/1.1\n\n")
            said = s.recv(65536)
            self.assertRegex(said, rb"^HTTP/1.1 200 OK\r\n(.+\r\n)*Content-Length: [1-9]\d+\r\n(.+\r\n)*\r\n$")
        self.assertLess(self.open_files(), self.files + 80)
        for s in undecided:
            s.close()
        self.lives()

    def test_tls(self):
        """netlogd closes and counts clients without TLS or with the wrong certificate."""
        hello = self.hello()
        for where in ("tls", "tls with certificates"):
            for data in (record(1, 1), GOOD_BLOCK, b"\0" * 5000, b"\x16\x03\x01\xff\xff" + b"A" * 70000,
                         b"\x16\x03\x01\x00\x00" * 1000, b"\x15\x03\x03\x00\x02\x02\x28", hello[:5] + os.urandom(len(hello) - 5)):
                before = self.status()
                with self.plain(where) as s:
                    self.send(s, data)
                    self.served()
                    self.assertTrue(self.is_closed(s))
                support.wait_until(lambda: self.status()["REFUSED"] == before["REFUSED"] + 1, 10, f"{where}: {data[:40]}")
        before = self.status()
        for certificate in (None, self.stranger):
            with self.plain("tls with certificates") as plain:
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    s = self.secure(plain, certificate)
                    s.sendall(record(1, 1))
                    while s.recv(100):
                        pass
        self.counted("wrong certificates", before, 0, 0)
        self.assertEqual(self.status()["REFUSED"], before["REFUSED"] + 2)
        self.lives()

    def plain(self, where):
        return socket.create_connection(("127.0.0.1", self.ports[["tcp", "tls", "tls with certificates"].index(where)]),
                                        timeout=30)

    @staticmethod
    def hello():
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def test_slow(self):
        """netlogd closes slow clients, which send a byte now and then or nothing, after their time limits."""
        rows = [(where, begin) for where in self.streams for begin in (b"D", b"DATE=20260101000000 X=", GOOD_BLOCK[:50])]
        rows += [(where, b"NETLOGGER/1 sub") for where in (*self.streams, "control")] + [("control", b"")]
        rows += [("tls handshake", b""), ("tls handshake", self.hello()[:20]), ("metrics", b""),
                 ("metrics", b"GET /metrics HTTP/1.1\r\nX: ")]
        ends = threading.Event()
        slow = []
        for where, begin in rows:
            s = self.plain("tls") if where == "tls handshake" else self.connect(where)
            self.send(s, begin)
            slow.append((where, begin, s))

        def drip():
            while not ends.wait(0.1):
                for where, begin, s in slow:
                    if begin:
                        try:
                            s.send(b"a")
                        except (OSError, ssl.SSLError):
                            pass
        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            self.served()
            for where, begin, s in slow:
                self.assertTrue(self.is_closed(s), f"{where}: {begin}")
                self.served()
        finally:
            ends.set()
            dripping.join()
            for _, _, s in slow:
                s.close()
        self.lives()

    def test_half_open(self):
        """A silent client costs little and keeps no other client out. The same holds for clients that vanish."""
        silent = [self.connect(where) for where in ("tcp", "unix", "control", "metrics") for _ in range(100)]
        self.served()
        for s in silent[:200]:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        self.served()
        for s in silent[200:]:
            s.close()
        self.lives()

    def test_claims_that_are_never_kept(self):
        """Clients that send blocks of 16 MiB without the last byte."""
        clients = [self.connect("tcp") for _ in range(4)]
        begun = block(b"", 1, stored_size=16 << 20, raw_size=16 << 20) + b"x" * (15 << 20)
        for s in clients:
            self.send(s, begun)  # this step alone can take too long
        self.served()
        for s in clients:
            self.assertTrue(self.is_closed(s), "it takes too long over one record")
            s.close()
        self.lives()

    def test_tiny_connections(self):
        """Very many connections, each with a line, half a line, garbage, or nothing, closed or reset."""
        before = self.status()
        rng = random.Random(11)
        kinds = [b"", b"x", b"\n", record(5, 5), record(5, 5)[:20], b"\0\0", b"NETLOGGER/1 x\n", b"NLB1"]
        lines, threads = [0, 0], []

        def connect(which, seed, count):
            rng = random.Random(seed)
            for i in range(count):
                data = rng.choice(kinds)
                torn = rng.random() < 0.5
                if rng.random() < 0.5:
                    s = socket.socket(socket.AF_UNIX)
                    where = str(self.unix)
                else:
                    s = socket.socket()
                    s.bind((f"127.{rng.randrange(1, 255)}.{rng.randrange(1, 255)}.{rng.randrange(1, 255)}", 0))
                    where = ("127.0.0.1", self.port)
                    if torn:
                        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                with s:
                    try:
                        s.connect(where)
                        s.sendall(data)
                    except (BrokenPipeError, ConnectionResetError):  # rejected: too many connections now
                        continue
                    if not torn or s.family == socket.AF_UNIX:
                        lines[which] += data == record(5, 5)
        for i in range(2):
            threads.append(threading.Thread(target=connect, args=(i, rng.randrange(1 << 30), CONNECTIONS // 2)))
            threads[-1].start()
        served = 0
        while any(t.is_alive() for t in threads):
            self.served()
            served += 1
            time.sleep(0.05)
        self.assertGreater(served, 0)
        support.wait_until(lambda: self.status()["CONNECTED"] - before["CONNECTED"] >= CONNECTIONS * 99 // 100, 60,
                           "all were accepted")
        support.wait_until(lambda: self.status()["CONNECTIONS"] == 1, what="all are gone")
        after = self.status()
        taken, refused = (after[what] - before[what] for what in ("RECORDS", "REFUSED"))
        print(f"# {CONNECTIONS} connections, {refused} of them turned away", flush=True)
        self.assertLessEqual(refused, CONNECTIONS // 10, "those that are gone make room")
        self.assertGreaterEqual(taken - served + refused, sum(lines), "lines of those that ended in good order are taken")
        self.lives()


class Networks(collector.Case):
    def is_closed_at_once(self, port):
        with socket.create_connection((self.own_address(), port), timeout=30) as s:
            try:
                return s.recv(100) == b""
            except ConnectionError:
                return True

    def test_networks_that_are_not_allowed(self):
        """netlogd closes new connections without an answer and, after a reload, open connections too."""
        config, own, port, metrics = self.scratch / "conf", self.own_address(), support.free_port(), support.free_port()
        text = f"listen x-netlog://0.0.0.0:{port}\nmetrics http://0.0.0.0:{metrics}\noutput {self.output}\nallow %s\n"
        config.write_text(text % own)
        with open(self.messages, "ab") as messages:
            process = self.start(self.netlogd, "--foreground", "--config", config, stderr=messages)
        support.wait_until(lambda: support.can_connect(port), what="netlogd")
        request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection((own, metrics), timeout=30) as s:
            s.sendall(request.replace(b"localhost", own.encode()))
            self.assertIn(b" 200 OK", s.recv(100))
        local = socket.create_connection(("127.0.0.1", port), timeout=30)
        logs, asks = (socket.create_connection((own, port), timeout=30) for _ in range(2))
        logs.sendall(record(1, 1))
        asks.sendall(b"NETLOGGER/1 subscribe\n")
        self.assertIn(b"Subscribe", asks.recv(4096))
        support.wait_until(lambda: record(1, 1) in self.written(), what="the record of an allowed client")
        config.write_text(text % "198.51.100.0/24")
        process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "Netlogd.Reload " in self.said(), what="the reload")
        for s in logs, asks:
            while s.recv(4096):
                pass
            s.close()
        local.sendall(record(2, 1))
        support.wait_until(lambda: record(2, 1) in self.written(), what="the record of a client that stays allowed")
        local.close()
        self.assertTrue(self.is_closed_at_once(port))
        self.assertTrue(self.is_closed_at_once(metrics), "without 403, and without waiting for a request")
        support.wait_until(lambda: 'REASON="not from an allowed network" COUNT' in self.said(), what="the message")
        with socket.create_connection(("127.0.0.1", metrics), timeout=30) as s:
            s.sendall(request)
            self.assertIn(b" 200 OK", s.recv(100))
        self.stop(process)


class Bombs(collector.Case):
    """Tests with small blocks whose records are very many, or very large as text."""

    def acknowledged(self, s):
        frame = b""
        while len(frame) < 16:
            frame += s.recv(16 - len(frame)) or self.fail("closed")
        self.assertEqual(frame[:8], b"NLA1\x08\0\0\0")
        return struct.unpack("<Q", frame[8:])[0]

    def test_each_record_of_many_blocks_is_taken_once(self):
        """netlogd leaves much of the input for later turns."""
        process = self.serve()
        blocks = [block(repeats(500, 1000, 1 + 1000 * k), 1000, first=1000 * k, stream=b"s" * 16) for k in range(50)]
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(b"".join(blocks))
            while self.acknowledged(s) < len(blocks):
                pass
        found = [int(n) for n in re.findall(rb" N=(\d+)\n", self.written())]
        self.assertEqual(found, list(range(1, 50001)))
        self.stop(process)

    def numbered(self, numbers):
        """Returns a block of one stream for each number; its record has the number."""
        return [block(repeats(10, 1, 1 + n), 1, first=n, stream=b"g" * 16) for n in numbers]

    def deliver(self, blocks):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(b"".join(blocks))
            while self.acknowledged(s) < len(blocks):
                pass

    def test_many_gaps_are_filled(self):
        """Every second block arrives first, as after many outages with a backup destination. The others arrive after a kill."""
        for gaps in (20, 1000):
            with self.subTest(gaps=gaps):
                self.output = self.scratch / f"{gaps}.log"
                process = self.serve()
                self.deliver(self.numbered(range(0, 2 * gaps + 1, 2)))
                process.kill()
                process.wait()
                process = self.serve()
                self.deliver(self.numbered(range(1, 2 * gaps, 2)))
                self.deliver(self.numbered(range(2 * gaps + 1)))
                self.stop(process)
                found = sorted(int(n) for n in re.findall(rb" N=(\d+)\n", self.written()))
                self.assertEqual(found, list(range(1, 2 * gaps + 2)))

    def test_a_block_that_opens_too_many_gaps_is_refused(self):
        """netlogd neither stores nor acknowledges the block, but accepts blocks that fill the gaps, and then this block."""
        process = self.serve()
        self.deliver(self.numbered(range(0, 2049, 2)))
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(b"".join(self.numbered([2050])))
            self.assertEqual(s.recv(16), b"")
        support.wait_until(lambda: "the stream has too many gaps" in self.said(), what="netlogd gives the reason")
        self.assertNotIn(b" N=2051\n", self.written())
        self.deliver(self.numbered([2049, 1]))
        self.deliver(self.numbered([2051]))
        self.deliver(self.numbered(range(2052)))
        self.stop(process)
        found = sorted(int(n) for n in re.findall(rb" N=(\d+)\n", self.written()))
        self.assertEqual(found, list(range(1, 2053)))

    def test_what_is_left_for_later_is_taken_at_the_end(self):
        process = self.serve()
        blocks = [block(repeats(500, 1000, 1 + 1000 * k), 1000, first=1000 * k, stream=b"s" * 16) for k in range(50)]
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            process.send_signal(signal.SIGSTOP)
            s.sendall(b"".join(blocks))
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            self.assertEqual(process.wait(30), 0, self.said())
        found = [int(n) for n in re.findall(rb" N=(\d+)\n", self.written())]
        self.assertEqual(found, list(range(1, 50001)))

    def test_a_block_whose_records_do_not_end(self):
        process = self.serve()
        payload = repeats(1000000, 100000, text=letters(1000000))
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(block(packed(payload), 100000, flags=1, raw_size=len(payload)))
            self.assertEqual(self.acknowledged(s), 1)
        support.wait_until(lambda: 'REASON="block\'s records are larger than its size allows"' in self.said(), what="why")
        self.assertLess(self.output.stat().st_size, 70 << 20)
        self.stop(process)

    def test_such_a_block_is_not_passed_on_whole(self):
        process = self.serve(output=self.scratch / "all.nlb")
        payload = repeats(1000000, 100000, text=letters(1000000))
        blocks = [block(repeats(10, 10), 10), block(packed(payload), 100000, flags=1, raw_size=len(payload))]
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            for i, data in enumerate(blocks):
                s.sendall(data)
                self.assertEqual(self.acknowledged(s), i + 1)
        self.stop(process)
        result = self.run_program(self.netlogd, "--verify", self.scratch / "all.nlb")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_memory_while_the_output_is_blocked(self):
        pipe = self.scratch / "pipe"
        os.mkfifo(pipe)
        end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # and netlogd does not read from the client
        self.addCleanup(os.close, end)
        control = self.scratch / "control"
        process = self.serve("--control", f"unix:{control}", output=pipe)
        payload = repeats(30000, 60, text=letters(30000))
        bombs = [block(packed(payload), 60, flags=1, raw_size=len(payload)) for _ in range(100)]
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(b"".join(bombs))
            support.wait_until(lambda: "the process at the other end is not reading" in self.said(), what="the output is blocked")
            with socket.socket(socket.AF_UNIX) as asking:
                asking.settimeout(30)
                asking.connect(str(control))
                asking.sendall(b"NETLOGGER/1 status\n")
                self.assertIn(b" BLOCKED=true", asking.recv(65536))
        with open(f"/proc/{process.pid}/status") as status:
            self.assertLess(int(re.search(r"VmHWM:\s+(\d+)", status.read())[1]), 2 * MEMORY_MAX_KB)

    def test_datagrams(self):
        process = self.serve(listen="x-netlog+udp://127.0.0.1:0")
        payload = repeats(2500, 450, text=letters(2500))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"".join(block(packed(payload), 450, flags=1, raw_size=len(payload)) for _ in range(30)),
                     ("127.0.0.1", self.port))
            support.wait_until(lambda: "its blocks cause too much work" in self.said(), what="it is cut off")
            s.sendto(record(1, 1), ("127.0.0.1", self.port))
        support.wait_until(lambda: self.written().endswith(record(1, 1)), what="what comes behind it")
        self.stop(process)


class Work(collector.Case):
    """Tests with small blocks that cost much work. netlogd counts the work, so no test depends on a time."""

    def serve_counting(self, **options):
        self.control = self.scratch / "control"
        return self.serve("--control", f"unix:{self.control}", "--recover", 0, **options)

    def ask(self, verb):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.control))
            s.sendall(b"NETLOGGER/1 " + verb + b"\n")
            answer = b""
            while data := s.recv(65536):
                answer += data
        return answer

    def counted(self, name):
        return int(re.search(rb" %s=(\d+)(?= |\n)" % name, self.ask(b"status"))[1])

    @staticmethod
    def wide():
        """No record, and a shape of 2^20 fields, in some hundred bytes."""
        data = varint(1) + string(b"h") + string(b"p") + varint(1) + varint(0) + bytes([7]) + string(b"E")
        data += varint(1 << 20) + (bytes([3]) + string(b"N")) * (1 << 20)
        return block(packed(data), 0, flags=1, raw_size=len(data))

    @staticmethod
    def dense():
        """The maximum number of records in a block, which are tiny; padding gives the frame the required size."""
        count = (2 << 20) // 80
        data = varint(1) + string(b"h") + string(b"attack") + varint(1) + varint(0) + bytes([7]) + string(b"E") + varint(0)
        data += b"\0\0" * count
        stored = packed(data)
        padding = 2048 - len(stored)
        return block(stored + struct.pack("<II", 0x184d2a50, padding) + bytes(padding), count, flags=1, raw_size=len(data), stream=bytes(16)), count

    def test_wide_shapes_cost_no_more_than_their_bytes(self):
        process = self.serve_counting()
        data = self.wide()
        self.assertLess(len(data), 1000)
        self.send(data * 200)
        self.assertEqual(self.counted(b"MALFORMED"), 200)
        self.assertLess(self.counted(b"WORK"), 200 * (2 * len(data) + 10000))
        self.stop(process)

    def test_an_honest_client_is_served_before_the_work_of_others(self):
        """All clients have sent when netlogd wakes up; the honest client was last."""
        process = self.serve_counting()
        data, count = self.dense()
        attackers = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(20)]
        honest = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        support.wait_until(lambda: self.ask(b"clients").count(b"Netlogd.Client") == 21, what="all clients")
        process.send_signal(signal.SIGSTOP)
        for s in attackers:
            s.sendall(data * 10)
        honest.sendall(record(1, 1))
        process.send_signal(signal.SIGCONT)
        support.wait_until(lambda: self.counted(b"RECORDS") == 200 * count + 1, 100, "all records")
        before = self.written().split(record(1, 1))[0].count(b"PROG=attack")
        self.assertEqual(before, 0, "records of attackers that came before those of the honest client")
        clients = re.findall(rb" WORK=(\d+)", self.ask(b"clients"))
        self.assertEqual(len(clients), 21)
        for s in (*attackers, honest):
            s.close()
        self.stop(process)

    def test_few_bytes_do_not_become_much_text(self):
        """A client whose blocks expand extremely must wait, also after a reconnection. netlogd serves others as before."""
        dense, _ = self.dense()
        plain = collector.record(0, 1, " TEXT=" + "x" * 900) * 100
        rows = {  # data, number of connections, how often each sends it, and whether it waits
            "dense blocks": (dense, 1, 120, True),
            "dense blocks over many connections": (dense, 12, 20, True),
            "ordinary text": (plain, 1, 1200, False),
            "a block of ordinary records": (block(repeats(900, 100), 100, stream=bytes(16)), 1, 1200, False),
        }
        for what, (data, connections, times, waits) in rows.items():
            with self.subTest(what):
                self.output = self.scratch / f"{len(what)}.log"
                process = self.serve()
                began = time.monotonic()
                clients = [socket.create_connection(("127.0.0.1", self.port), timeout=60) for _ in range(connections)]
                for s in clients:
                    s.sendall(data * times)
                    s.shutdown(socket.SHUT_WR)
                if not waits:
                    self.assertEqual([s.recv(1 << 20) for s in clients if data is plain], [b""] * (data is plain))
                    support.wait_until(lambda: self.output.stat().st_size >= 900 * 100 * times, 15, what="all is written")
                    self.assertNotIn("Netlogd.Expanding", self.said())
                else:
                    support.wait_until(lambda: "Netlogd.Expanding" in self.said(), what="a client waits")
                    honest = collector.record(1, 1) * 2
                    with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
                        s.sendall(honest)
                        s.shutdown(socket.SHUT_WR)
                        self.assertEqual(s.recv(1), b"")
                    time.sleep(1)
                    size, passed = self.output.stat().st_size, time.monotonic() - began
                    most = (64 << 20) + 128 * len(data) * times * connections + (8 << 20) * (passed + 1)
                    turns = connections * (8 << 20)  # each may exceed the budget in one turn
                    self.assertTrue(64 << 20 <= size <= most + turns, (size, most, turns))
                    self.assertIn(honest, self.written())
                for s in clients:
                    s.close()
                self.stop(process)

    def test_turns_go_round(self):
        """Each of twenty clients gets its turn before any client gets many turns."""
        process = self.serve_counting()
        data, count = self.dense()
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(20)]
        support.wait_until(lambda: self.ask(b"clients").count(b"Netlogd.Client") == 20, what="all clients")
        process.send_signal(signal.SIGSTOP)
        for s in clients:
            s.sendall(data * 10)
        process.send_signal(signal.SIGCONT)
        least = []

        def is_done():
            blocks = [int(n) for n in re.findall(rb" BLOCKS=(\d+)", self.ask(b"clients"))]
            least.append(max(blocks) - min(blocks))
            return min(blocks) == 10
        support.wait_until(is_done, 100, "all blocks")
        self.assertLessEqual(max(least), 3, "blocks by which one client was ahead of another")
        for s in clients:
            s.close()
        self.stop(process)

    def test_a_block_whose_records_get_other_numbers_is_charged_for_them(self):
        """An output that forwards gives numbers to records without a stream: netlogd decodes the block once."""
        process = self.serve_counting(output=f"x-netlog://127.0.0.1:1?spool={self.scratch}/spool")
        data, count = self.dense()
        self.send(data)
        self.assertEqual(self.counted(b"RECORDS"), count)
        self.assertGreater(self.counted(b"WORK"), 150 * count)
        self.stop(process)
        index = subprocess.run([support.program("nltools/nlconv"), "--format", "ulm", *sorted(str(f) for f in (self.scratch / "spool").glob("*.nlb"))],
                               stdout=subprocess.PIPE, check=False)
        self.assertEqual(index.stdout.count(b"PROG=attack"), count)

    def test_who_waits_for_a_turn_is_not_late(self):
        """All clients send their first records together; netlogd needs more than record-timeout to reach the last client."""
        process = self.serve("--control", f"unix:{self.scratch / 'control'}", "--record-timeout", "1s", "--max-per-address", 0, "--recover", 0,
                             output="file:/dev/null?where=PROG=nobody")
        self.control = self.scratch / "control"
        data, count = self.dense()
        number, expected, passed = 500, 0, 0
        while passed < 2.5:
            began = time.monotonic()
            expected += number * count
            clients = []
            for _ in range(number):
                clients.append(socket.create_connection(("127.0.0.1", self.port)))
                clients[-1].sendall(data)
            support.wait_until(lambda: "Netlogd.Late" in self.said() or self.counted(b"RECORDS") == expected, 100, what="all records")
            passed = time.monotonic() - began
            number *= 2
            for s in clients:
                s.close()
        self.assertEqual(self.said().count("Netlogd.Late"), 0)
        self.stop(process)

    def test_a_sender_of_datagrams_has_an_allowance(self):
        process = self.serve_counting(listen="x-netlog+udp://127.0.0.1:0")
        data, count = self.dense()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for _ in range(100):
                s.sendto(data * 20, ("127.0.0.1", self.port))
                time.sleep(0.01)
        support.wait_until(lambda: "their blocks cause too much work" in self.said(), what="datagrams are dropped")
        support.wait_until(lambda: self.counted(b"OVER.RATE") > 0, what="and counted")
        # The allowance of one second, the same for each further second, and the datagram that exceeds it.
        self.assertLess(self.counted(b"WORK"), 100 * 20 * len(data) * 30 + 4 * 50000000 + 10000000)
        self.stop(process)


if __name__ == "__main__":
    support.main()
