"""netlogd's limits for streams, and the work that netlogd counts for each client."""
import re
import socket
import ssl
import struct
import time

import blocks
import collector
import support

STREAMS_MAX = 65536  # core/reader/streams.h
BURST, ALL_BURST, FREE, RATE = 8192, 24576, 64, 50  # netlogd/client_limits.h


def invented(begin, count):
    """Returns blocks of that many streams, with one record each."""
    return b"".join(blocks.numbers(b"p", [n], struct.pack("<QQ", n + 1, 7), 0) for n in range(begin, begin + count))


class Limits(collector.Case):
    def setUp(self):
        super().setUp()
        self.control = self.scratch / "control"
        self.authority = collector.Authority(self, "authority")

    def serve_counting(self, *arguments, listen="x-netlog://127.0.0.1:0", **options):
        return self.serve("--control", f"unix:{self.control}", "--recover", 0, *arguments, listen=listen, **options)

    def serve_tls(self, options=""):
        certificate = self.authority.certify("server")
        process = self.serve_counting(listen=f"x-netlogs://127.0.0.1:0?cert={certificate}&ca={self.authority.ca}{options}")
        return process

    def ask(self, verb):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.control))
            s.sendall(b"NETLOGGER/1 " + verb + b"\n")
            answer = b""
            while data := s.recv(1 << 20):
                answer += data
        return answer

    def work(self):
        return int(re.search(rb" WORK=(\d+) ", self.ask(b"status"))[1])

    def refused(self):
        return int(re.search(rb"WHAT=streams COUNT=(\d+) ", self.ask(b"drops"))[1])

    def streams(self):
        return self.ask(b"streams").count(b"Netlogd.Stream ")

    def connect(self, certificate=None, address="127.0.0.1"):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60, source_address=(address, 0))
        if certificate is None:
            return plain
        context = ssl.create_default_context(cafile=self.authority.ca)
        context.load_cert_chain(certificate)
        return context.wrap_socket(plain, server_hostname="localhost")

    def deliver(self, data, **options):
        """Sends blocks until netlogd has acknowledged all of them or closes. Returns the number of acknowledged blocks."""
        count, acknowledged, answer = data.count(b"NLB1"), 0, b""
        with self.connect(**options) as s:
            try:
                s.sendall(data)
                while acknowledged < count and (part := s.recv(4096)):
                    answer += part
                    while len(answer) >= 16:
                        acknowledged, answer = struct.unpack("<Q", answer[8:16])[0], answer[16:]
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                pass
        return acknowledged

    def test_the_table_of_streams_is_full(self):
        """If all streams are in use, netlogd forgets none of them, and rejects new streams. The output has every record once."""
        process = self.serve_counting(output=self.scratch / "all.nlb")
        honest = invented(10 ** 6, 1)
        self.assertEqual(self.deliver(honest), 1)
        for number in range(3):
            self.assertEqual(self.deliver(invented(number * BURST, BURST), address=f"127.0.1.{number + 1}"), BURST)
        # Now each address may begin some streams. Two addresses may share a limit, so the table is full when several
        # addresses could not begin a stream.
        number = none = 0
        while none < 5:
            number += 1
            taken = self.deliver(invented(ALL_BURST + number * FREE, FREE), address=f"127.1.{number // 250}.{number % 250 + 1}")
            none = none + 1 if taken == 0 else 0
        support.wait_until(lambda: "closed: too many streams are in use" in self.said(), what="the reason")
        self.assertEqual(self.streams(), STREAMS_MAX)
        before = self.refused()
        self.assertEqual(self.deliver(invented(2 * 10 ** 6, 1), address="127.0.2.1"), 0, "a new stream, from a new address")
        self.assertEqual(self.refused(), before + 1)
        records = int(re.search(rb" RECORDS=(\d+) ", self.ask(b"status"))[1])
        self.assertEqual(self.deliver(honest), 1, "a known block, again")
        self.assertEqual(self.deliver(invented(0, 10)), 10)
        self.assertEqual(int(re.search(rb" RECORDS=(\d+) ", self.ask(b"status"))[1]), records, "no record is stored twice")
        more = blocks.numbers(b"p", [5], struct.pack("<QQ", 10 ** 6 + 1, 7), 1)
        self.assertEqual(self.deliver(more), 1, "the next record of a known stream")
        self.stop(process)

    def test_streams_of_a_certificate(self):
        """The holder of a certificate has one limit for all addresses."""
        process = self.serve_tls()
        a, b = (self.authority.certify(name) for name in "ab")
        began = time.monotonic()
        self.assertEqual(self.deliver(invented(0, BURST), certificate=a, address="127.0.0.2"), BURST)
        taken = self.deliver(invented(10 ** 5, 4000), certificate=a, address="127.0.0.3")
        self.assertLessEqual(taken, RATE * (time.monotonic() - began + 1))
        support.wait_until(lambda: "closed: the client begins too many streams" in self.said(), what="the reason")
        self.assertEqual(self.deliver(invented(2 * 10 ** 5, 100), certificate=b, address="127.0.0.3"), 100)
        self.stop(process)

    def test_handshakes_are_charged(self):
        process = self.serve_tls()
        certificate = self.authority.certify("a")
        for _ in range(5):
            with self.connect(certificate) as s:
                s.sendall(collector.record(1, 1))
                s.unwrap()
        support.wait_until(lambda: self.written().count(b"\n") == 5, what="all records")
        self.assertTrue(5 * 500000 <= self.work() < 5 * 600000, self.work())
        self.stop(process)

    def test_rejected_hosts_are_charged(self):
        process = self.serve_tls("&certified_hosts=yes")
        certificate = self.authority.certify("h1")
        works = []
        for client in (1, 2):
            before = self.work()
            with self.connect(certificate) as s:
                s.sendall(b"".join(collector.record(client, n) for n in range(1000)))
                s.unwrap()
            support.wait_until(lambda: self.ask(b"clients").count(b"Netlogd.Client ") == 0, what="the client is gone")
            works.append(self.work() - before)
        self.assertEqual(self.written().count(b"\n"), 1000)
        self.assertGreater(works[1] - works[0], 1000 * 4500, "1,000 rejected records, of 5,000 units each")
        self.stop(process)

    def test_announced_losses_are_charged(self):
        """A block that reports a missing record as dropped causes a search among all gaps."""
        process = self.serve_counting()
        stream = b"l" * 16
        works = []
        self.assertEqual(self.deliver(blocks.numbers(b"p", [1], stream, 0) + blocks.numbers(b"p", [1], stream, 200)), 2)
        for lost in (0, 1):
            before = self.work()
            data = b"".join(blocks.block(blocks.SOURCE + blocks.varint(0), 0, stream=stream, first=100 * lost + n + 2, lost=lost)
                            for n in range(90))
            self.assertEqual(self.deliver(data), 90)
            works.append(self.work() - before)
        self.assertGreater(works[1] - works[0], 90 * 16000, "90 announcements, of 16,384 units each")
        self.stop(process)

    def test_encoded_text_is_charged(self):
        """netlogd counts work for each byte of text that it makes from blocks. The other output needs decoded records, but its
        filter accepts none."""
        works = {}
        for name, options in ("all.log", ""), ("none.log", "?where=PROG==none"):
            process = self.serve_counting(output=f"file:{self.scratch / name}{options}")
            self.assertEqual(self.deliver(blocks.dense_strings() * 10), 10)
            works[name] = self.work()
            self.stop(process)
        text = (self.scratch / "all.log").stat().st_size
        self.assertGreater(text, 10 << 20)
        self.assertGreaterEqual(works["all.log"] - works["none.log"], text)


if __name__ == "__main__":
    support.main()
