"""Subscriptions: records for subscribers, with real sockets."""
import os
import random
import re
import signal
import socket
import threading
import time
import unittest

import support


def record(number, prog="p", padding="", year=2026):
    return (f"DATE={year}0101000000.{number % 1000000:06d} HOST=h PROG={prog} LVL=Usage NL.EVNT=E "
            f"N={number}{padding}\n").encode()


def processor_seconds(process):
    with open(f"/proc/{process.pid}/schedstat") as stat:
        return int(stat.read().split()[0]) / 1e9


class Subscriber:
    """A subscriber. It reads in its own thread when the test starts the reading."""

    def __init__(self, port, request, start=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.sendall(request.encode() if isinstance(request, str) else request)
        self.file = self.socket.makefile("rb")
        self.answer = self.file.readline()
        self.data = bytearray()
        self.thread = threading.Thread(target=self._read, daemon=True)
        if start:
            self.thread.start()

    def _read(self):
        try:
            while True:
                got = self.file.read1(1 << 20)
                if not got:
                    return
                self.data += got
        except (OSError, ValueError):
            pass

    def lines(self):
        return bytes(self.data).splitlines(keepends=True)

    def wait_for(self, end, seconds=30):
        support.wait_until(lambda: self.data.endswith(end), seconds, what=f"the stream ends in {end!r}")

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if self.thread.is_alive():
            self.thread.join(10)
        self.file.close()
        self.socket.close()


class Subscribe(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.output = self.scratch / "all.log"

    def serve(self, *arguments, output=None):
        self.messages = self.scratch / "messages"
        with open(self.messages, "ab") as messages:
            process = self.start(self.netlogd, "--foreground", "--listen", "x-netlog://127.0.0.1:0", "--output",
                                 output or self.output, *arguments, stderr=messages)
        found = support.wait_until(
            lambda: process.poll() is None and re.search(r"listening on x-netlog://127\.0\.0\.1:(\d+)\n", self.said()),
            what="netlogd listens")
        self.port = int(found.group(1))
        return process

    def taken(self):
        """Returns the output after the last record of a test is written; subscribers may receive this record before."""
        support.wait_until(lambda: self.output.read_bytes().endswith(record(999999)), what="it is written")
        return self.output.read_bytes()

    def said(self):
        return self.messages.read_text(errors="replace")

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0, self.said())

    def subscribe(self, rest="", **options):
        s = Subscriber(self.port, f"NETLOGGER/1 subscribe{rest}\n", **options)
        self.addCleanup(s.close)
        return s

    def welcome(self, *arguments, **options):
        s = self.subscribe(*arguments, **options)
        self.assertIn(b"NL.EVNT=Netlogd.Subscribed", s.answer)
        return s

    def ask(self, data):
        """Returns the complete response to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            answer = b""
            while got := s.recv(65536):
                answer += got
            return answer

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(s.recv(1), b"")

    def test_the_end_waits_for_who_reads(self):
        """At its end, netlogd lets a slow subscriber read its remaining records, but waits only briefly for a subscriber that
        reads nothing."""
        process = self.serve("--subscriber-queue", "16M", "--stop-timeout", "120")
        slow, never = self.welcome(start=False), self.welcome(start=False)
        for s in slow, never:
            s.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        data = b"".join(record(n, padding=f" T={'x' * 400}") for n in range(16000))
        self.send(data)  # more than the kernel buffers for a connection
        process.send_signal(signal.SIGTERM)
        for _ in range(30):
            slow.data += slow.file.read1(1 << 16)
            time.sleep(0.1)
        self.assertIsNone(process.poll())
        slow.thread.start()
        slow.thread.join(60)
        self.assertTrue(bytes(slow.data) == data, slow.data[-200:])
        self.assertEqual(process.wait(25), 0, self.said())  # half of the remaining time would be longer
        never.thread.start()
        never.thread.join(60)
        self.assertTrue(0 < len(never.data) < len(data) and data.startswith(never.data))

    def test_a_hundred_subscribers(self):
        process = self.serve()
        everything = [self.welcome() for _ in range(60)]
        some = [self.welcome(f' WHERE="N >= {i}"') for i in range(20)]
        others = [self.welcome(" FORMAT=bp") for _ in range(20)]
        data = [record(n) for n in range(5000)]
        senders = [threading.Thread(target=self.send, args=(b"".join(data[i::4]),)) for i in range(4)]
        for t in senders:
            t.start()
        for t in senders:
            t.join()
        self.send(record(999999))
        for s in everything + some:
            s.wait_for(record(999999))
        for s in others:
            s.wait_for(b"N=999999\n")
        taken = self.taken()
        for s in everything:
            self.assertEqual(bytes(s.data), taken, "the very bytes of the output, in its order")
        for i, s in enumerate(some):
            self.assertEqual(s.lines(), [l for l in taken.splitlines(keepends=True) if int(l.split(b"N=")[-1]) >= i])
        self.assertTrue(others[0].lines()[0].startswith(b"ts=2026-01-01T00:00:00."))
        self.assertEqual(len(others[0].lines()), 5001)
        self.assertEqual({bytes(s.data) for s in others}, {bytes(others[0].data)})
        self.stop(process)

    def test_binary_stream(self):
        nlsort = support.program("nlsort/nlsort")
        process = self.serve()
        s = self.welcome(" FORMAT=nlb")
        self.send(b"".join(record(n) for n in range(3000)) + record(999999))
        stream = self.scratch / "stream.nlb"

        def complete():
            stream.write_bytes(bytes(s.data))
            return b"N=999999" in self.run_program(nlsort, stream, text=False).stdout
        support.wait_until(complete, 30, "the last record")
        self.assertEqual(self.run_program(nlsort, stream, text=False).stdout, self.taken())
        self.stop(process)

    def test_none_misses_records_because_netlogd_is_stopped(self):
        """Other programs on a busy machine delay netlogd in the same way as these stops."""
        process = self.serve("--subscriber-queue", "64M")
        subscribers = [self.welcome(more) for more in ("", " WHERE=\"PROG == 'p'\"", " SINCE=-1000000000")]
        ended = threading.Event()

        def stop_often():
            delays = random.Random(1)
            while not ended.wait(delays.uniform(0, 0.01)):
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.1)
                process.send_signal(signal.SIGCONT)
        stopper = threading.Thread(target=stop_often)
        stopper.start()
        try:
            self.send(b"".join(record(n) for n in range(100000)))
        finally:
            ended.set()
            stopper.join()
        self.send(record(999999))
        for s in subscribers:
            s.wait_for(record(999999))
            self.assertTrue(bytes(s.data) == self.taken(), re.findall(rb"NL.EVNT=Netlogd.Missed[^\n]*", s.data))
        self.stop(process)

    def test_a_slow_one_is_told_what_it_missed_and_holds_up_nobody(self):
        process = self.serve("--subscriber-queue", "64k")
        slow = self.welcome(start=False)
        quick = self.welcome()
        padding = " PAD=" + "x" * 400
        count = 60000
        for first in range(0, count, 1000):  # more than the buffers of any kernel
            self.send(b"".join(record(n, padding=padding) for n in range(first, first + 1000)))
            quick.wait_for(record(first + 999, padding=padding))
        slow.thread.start()
        support.wait_until(lambda: b"Netlogd.Missed" in slow.data, what="the subscriber learns that it missed records")
        self.send(record(999999))
        slow.wait_for(record(999999))
        quick.wait_for(record(999999))
        self.assertTrue(bytes(quick.data) == self.taken(), "the other has them all")
        expected = 0
        missed = 0
        for line in slow.lines()[:-1]:
            found = re.search(rb"NL.EVNT=Netlogd.Missed COUNT=(\d+) FROM=(\S+) TO=(\S+)", line)
            if found:
                missed += int(found.group(1))
                self.assertEqual(found.group(2), record(expected).split()[0][5:], "from the first that is missing")
                expected += int(found.group(1))
                self.assertEqual(found.group(3), record(expected - 1).split()[0][5:], "to the last")
            else:
                self.assertEqual(line, record(expected, padding=padding))
                expected += 1
        self.assertEqual(expected, count, "each is there or counted, in its place")
        self.assertGreater(missed, 0)
        self.stop(process)

    def test_one_who_never_reads_costs_a_queue(self):
        process = self.serve("--subscriber-queue", "64k")
        for _ in range(50):
            self.welcome(start=False)
        padding = " PAD=" + "x" * 1000
        for _ in range(20):
            self.send(b"".join(record(n, padding=padding) for n in range(1000)))
        memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{process.pid}/status").read()).group(1))
        self.assertLess(memory, 60000, "kB")
        self.stop(process)

    def test_subscribers_that_stop_reading_the_past_use_little_memory(self):
        """Each subscription has its own time, and therefore its own group."""
        self.output.write_bytes(b"".join(record(n, padding=" PAD=" + "x" * 1000) for n in range(4000)))
        control = self.scratch / "control"
        process = self.serve("--max-memory", "1m", "--control", f"unix:{control}")

        def memory(name):
            return int(re.search(rf"{name}:\s+(\d+) kB", open(f"/proc/{process.pid}/status").read()).group(1))
        before = memory("VmRSS")
        for _ in range(100):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.settimeout(30)
            s.connect(str(control))
            s.sendall(b"NETLOGGER/1 subscribe SINCE=-3650d\n")
            self.assertIn(b"Netlogd.Subscribed", s.recv(100))
        reader = self.welcome(" SINCE=-3650d")
        reader.wait_for(record(3999, padding=" PAD=" + "x" * 1000))
        if not support.is_sanitized(process):
            self.assertLess(memory("VmHWM") - before, 8000, "kB")
        self.stop(process)

    def test_since_joins_past_and_present(self):
        self.join_past_and_present(self.output, self.taken)

    @support.long
    def test_since_over_numbered_files(self):
        folder = self.numbered()
        self.join_past_and_present(f"file:{folder}/a-{{N}}.log?rotate_size=300k",
                                   lambda: b"".join(f.read_bytes() for f in sorted(folder.glob("a-*.log"))))
        self.assertGreater(len(list(folder.glob("a-*.log"))), 5)

    @support.long
    def test_since_over_numbered_blocks(self):
        folder, nlconv = self.numbered(), support.program("nltools/nlconv")

        def taken():
            return b"".join(self.run_program(nlconv, "--format", "ulm", f, text=False).stdout for f in sorted(folder.glob("a-*.nlb")))
        self.join_past_and_present(f"file:{folder}/a-{{N}}.nlb?rotate_size=30k", taken)
        self.assertGreater(len(list(folder.glob("a-*.nlb"))), 5)

    def test_no_more_than_are_allowed(self):
        process = self.serve("--max-subscribers", "2")
        two = [self.welcome(), self.welcome()]
        self.assertIn(b'NL.EVNT=Netlogd.Error REASON="too many subscribers"\n',
                      self.ask(b"NETLOGGER/1 subscribe\n"))
        self.send(record(1))
        for s in two:
            s.wait_for(record(1))
        self.stop(process)

    def test_an_address_that_has_most_gives_way(self):
        process = self.serve("--max-subscribers", "4")

        def subscribe(address):
            s = socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(address, 0))
            self.addCleanup(s.close)
            s.sendall(b"NETLOGGER/1 subscribe\n")
            return s, s.recv(4096)
        held = [subscribe("127.0.0.2") for _ in range(4)]
        self.assertEqual([b"Netlogd.Subscribed" in said for _, said in held], [True] * 4)
        refused = b"too many subscribers"
        self.assertIn(refused, subscribe("127.0.0.2")[1])
        for _ in range(2):
            self.assertIn(b"Netlogd.Subscribed", subscribe("127.0.0.3")[1])
        self.assertIn(refused, subscribe("127.0.0.3")[1], "both addresses have two")
        for s, _ in held[:2]:
            said = b""
            while data := s.recv(4096):
                said += data
            self.assertIn(b"too many subscribers; this address has the most", said)
        self.stop(process)

    def test_since_passes_over_files_that_are_older(self):
        folder = self.numbered()
        process = self.serve(output=f"file:{folder}/a-{{N}}.log?rotate_size=100k")
        for n in range(0, 20000, 1000):
            self.send(b"".join(record(i) for i in range(n, n + 1000)))
        files = sorted(folder.glob("a-*.log"))
        self.assertGreater(len(files), 4)
        for old in files[:4]:
            os.utime(old, (1500000000, 1500000000))
        files[0].unlink()
        s = self.welcome(" SINCE=2026-01-01T00:00:00Z")
        self.send(record(999999))
        s.wait_for(record(999999))
        # A record may arrive here before it is written.
        written = lambda: b"".join(f.read_bytes() for f in sorted(folder.glob("a-*.log"))[3:])
        support.wait_until(lambda: written() == s.data, what="the stream is what is in the files")
        self.stop(process)

    def test_who_catches_up_delays_nobody(self):
        """A client with another request does not wait for the subscribers that read stored records."""
        line = record(1, padding=" PAD=" + "x" * 200)
        for much in 400, 800, 1600:  # repeats the test with more records if netlogd has read all of them before the test can compare
            with open(self.output, "wb") as output:
                for _ in range(much):
                    output.write(line * 4000)
                output.write(record(2, prog="last"))
            process = self.serve("--control", f"unix:{self.scratch / 'control'}")
            s = self.welcome(' SINCE=2025-01-01T00:00:00Z WHERE="PROG = last"')
            with socket.socket(socket.AF_UNIX) as asking:
                asking.connect(str(self.scratch / "control"))
                asking.sendall(b"NETLOGGER/1 subscribers\n")
                state = asking.recv(65536)
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as late:
                late.sendall(record(3))
                support.wait_until(lambda: self.tail() == record(3), what="it is written")
            read = bytes(s.data)
            s.wait_for(record(2, prog="last"), 100)
            self.stop(process)
            if not read:
                break
            self.messages.unlink()
        self.assertEqual(read, b"", "there is much to be read yet")
        self.assertIn(b" STATE=past ", state)

    def tail(self):
        with open(self.output, "rb") as output:
            output.seek(-len(record(3)), os.SEEK_END)
            return output.read()

    def test_since_over_numbers_that_are_far_apart(self):
        folder = self.numbered()
        (folder / "a-4000000000.log").write_bytes(record(1))  # as if all earlier files had been removed
        process = self.serve(output=f"file:{folder}/a-{{N}}.log")
        self.send(record(2))
        s = self.welcome(" SINCE=2026-01-01T00:00:00Z")
        s.wait_for(record(1) + record(2))
        self.stop(process)

    def numbered(self):
        folder = self.scratch / "numbered"
        folder.mkdir()
        return folder

    def join_past_and_present(self, output, taken):
        process = self.serve("--subscriber-queue", "2G", "--max-memory", "16G", output=output)
        self.send(b"".join(record(n, year=2020) for n in range(1000)))
        self.send(b"".join(record(n) for n in range(20000)))
        stop = threading.Event()

        def go_on(prog):
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
                n = 0
                while not stop.wait(0.001):  # eight to twelve subscribers receive each record
                    s.sendall(b"".join(record(i, prog) for i in range(n, n + 100)))
                    n += 100
                s.shutdown(socket.SHUT_WR)
                s.recv(1)
        senders = [threading.Thread(target=go_on, args=(p,)) for p in ("a", "b", "c")]
        for t in senders:
            t.start()
        subscribers = []
        for i in range(support.representative(12, 8)):
            where = ' WHERE="PROG != c"' if i % 3 == 0 else ""
            subscribers.append((self.welcome(" SINCE=2026-01-01T00:00:00Z" + where), bool(where)))
            time.sleep(0.05)
            if i % 4 == 3:
                process.send_signal(signal.SIGHUP)
        stop.set()
        for t in senders:
            t.join()
        self.send(record(999999))
        for s, _ in subscribers:
            s.wait_for(record(999999), 120)
        taken = [l for l in taken().splitlines(keepends=True) if l.startswith(b"DATE=2026")]
        for s, some in subscribers:
            self.check_joined(s.lines(), taken, lambda line: not some or b"PROG=c" not in line)
        self.stop(process)

    def check_joined(self, lines, taken, is_meant):
        """Each matching record arrives once, in order, or a Netlogd.Missed in its place counts it. A busy machine causes such reports."""
        numbers = {line: number for number, line in enumerate(taken)}
        expected, missed = 0, 0
        for line in lines:
            found = re.search(rb"NL.EVNT=Netlogd.Missed COUNT=(\d+) ", line)
            if found:
                missed += int(found.group(1))
                continue
            self.assertTrue(line in numbers, line)
            self.assertGreaterEqual(numbers[line], expected, line)
            absent = sum(map(is_meant, taken[expected:numbers[line]]))
            self.assertLessEqual(absent, missed, line)
            self.assertLessEqual(missed, numbers[line] - expected, line)
            expected, missed = numbers[line] + 1, 0
        self.assertEqual(expected, len(taken))

    def test_since_over_a_rotated_output(self):
        process = self.serve()
        self.send(b"".join(record(n) for n in range(50000)))
        slow = self.welcome(" SINCE=2026-01-01T00:00:00Z", start=False)  # the subscriber is reading stored records when ...
        self.output.rename(self.scratch / "old.log")
        process.send_signal(signal.SIGHUP)
        support.wait_until(self.output.exists, what="the output is opened anew")
        self.send(record(50000))
        slow.thread.start()
        slow.wait_for(record(50000))
        self.assertEqual(slow.lines(), [record(n) for n in range(50001)])
        self.stop(process)

    def test_that_the_past_cannot_be_read_is_said(self):
        """If netlogd cannot read the stored records, or not all of them, the end of the stream reports this."""
        folder, away = self.scratch / "archive", self.scratch / "away"
        folder.mkdir()
        process = self.serve("--subscriber-queue", "4k", output=f"file:{folder}/a-{{N}}.log")
        data = b"".join(record(n, padding=" TEXT=" + "x" * 1000) for n in range(20000))  # more than sockets buffer
        self.send(data)
        support.wait_until(lambda: b"".join(p.read_bytes() for p in folder.glob("a-*.log")) == data, what="it is written")
        begun = self.welcome(" SINCE=20200101000000", start=False)
        folder.rename(away)
        refused = self.subscribe(" SINCE=20200101000000")
        reason = rb' LVL=Error NL.EVNT=Netlogd.Error REASON="open .*/archive: No such file or directory"\n$'
        self.assertRegex(refused.answer, reason)
        begun.thread.start()
        begun.thread.join(60)
        self.assertFalse(begun.thread.is_alive())
        self.assertTrue(begun.data.startswith(data))
        self.assertRegex(bytes(begun.data[len(data):]), reason)
        away.rename(folder)
        self.stop(process)

    def reload_while_one_catches_up(self, before, after):
        """A subscriber slowly reads stored records while the outputs change. netlogd reports exactly the records that the
        subscriber missed."""
        config, control = self.scratch / "netlogd.conf", self.scratch / "control"
        config.write_text(f"output {before}\n")
        with open(self.scratch / "messages", "wb") as messages:
            process = self.start(self.netlogd, "--foreground", "--listen", "x-netlog://127.0.0.1:0", "--config", config,
                                 "--subscriber-queue", "4k", "--control", f"unix:{control}", stderr=messages, cwd=self.scratch)
        self.messages = self.scratch / "messages"
        self.port = int(support.wait_until(lambda: re.search(r":(\d+)\n", self.said()), what="netlogd listens").group(1))
        padding = " TEXT=" + "x" * 1000
        past = [record(n, padding=padding) for n in range(20000)]  # more than sockets buffer
        self.send(b"".join(past))
        slow = self.subscribe(" SINCE=20200101000000", start=False)
        ask = [support.program("netlogd/netlogctl"), "--control", control]
        support.wait_until(lambda: re.search("past", self.run_program(*ask, "subscribers").stdout), what="it reads the past")
        config.write_text(f"output {after}\n")
        result = self.run_program(*ask, "reload")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.send(b"".join(record(n) for n in range(100000, 100123)))
        slow.thread.start()
        support.wait_until(lambda: b"NL.EVNT=Netlogd.Missed" in slow.data[-1000:], what="the subscriber learns that it missed records")
        self.send(record(200000) + record(999999))
        slow.wait_for(record(999999))
        lines = slow.lines()
        self.assertEqual(lines[:len(past)], past)
        self.assertRegex(lines[len(past)], rb" LVL=Warning NL.EVNT=Netlogd.Missed COUNT=123 ")
        self.assertEqual(lines[len(past) + 1:], [record(200000), record(999999)])
        slow.close()
        self.stop(process)

    def test_the_output_goes_while_one_catches_up(self):
        self.reload_while_one_catches_up("all.log", "file:other.log")

    def test_the_output_has_another_name_while_one_catches_up(self):
        self.reload_while_one_catches_up("file:all-{N}.log", "file:all-{N}.txt")

    def test_the_output_has_some_only_while_one_catches_up(self):
        self.reload_while_one_catches_up("all.log", "file:all.log?where=PROG == other")

    def test_what_is_wrong_is_said(self):
        process = self.serve()
        for request, reason in [
                (b'subscribe WHERE="N >"', b"WHERE: "), (b"subscribe WHERE=(((", b"WHERE: "),
                (b"subscribe FORMAT=xml", b"FORMAT is not one of"), (b"subscribe SINCE=yesterday", b"SINCE must be a time"),
                (b"subscribe SINCE=20260101", b"SINCE must be a time"), (b"subscribe WHAT=1", b"subscribe request does not accept the field WHAT"), (b"subscribe HOST=h", b"subscribe request does not accept the field HOST"),
                (b"subscribe nonsense", b"must be NAME=value"), (b"", b"unknown verb"),
                (b"subscribe DATE=20260101000000", b"must be NAME=value"), (b"sub\0scribe", b"unknown verb"),
                (b"status", b"accepts status only over the control socket"), (b"tell COMMAND=x", b"accepts tell only over the control socket")]:
            answer = self.ask(b"NETLOGGER/1 " + request + b"\r\n")
            self.assertIn(b"NL.EVNT=Netlogd.Error", answer, request)
            self.assertIn(reason, answer, request)
            self.assertEqual(answer.count(b"\n"), 1)
        self.assertIn(b"the line is longer than 8192 bytes", self.ask(b"NETLOGGER/1 subscribe WHERE=" + b"x" * 9000))
        half = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(50)]
        for i, s in enumerate(half):
            s.sendall(b"NETLOGGER/1 subscribe WHERE="[: i % 28 + 1])
        self.send(record(1))
        self.send(b"NETLOGGER\n" + record(2))
        for s in half:
            s.close()
        support.wait_until(lambda: self.output.read_bytes() == record(1) + record(2), what="both are written")
        self.stop(process)

    def test_programs_read_a_collector(self):
        nlsort, nlstat = support.program("nlsort/nlsort"), support.program("nltools/nlstat")
        path = self.scratch / "socket"
        process = self.serve("--listen", f"unix:{path}", "--level", "Debug")
        url = f"x-netlog://127.0.0.1:{self.port}"
        self.send(b"".join(record(n) for n in range(3000)))
        readers = [(self.start(nlsort, "-o", self.scratch / f"sorted{i}", at), i) for i, at in enumerate([
            f"{url}?since=2026-01-01T00:00:00Z", f"{url}?since=2026-01-01T00:00:00Z&format=ulm",
            f"unix:{path}?since=2026-01-01T00:00:00Z&where=N%20%3E%3D%20%222%22"])]
        support.wait_until(lambda: len(self.subscribed()) == 3, what="they have subscribed")
        self.send(record(999999))
        taken = self.taken()
        self.stop(process)  # ends the streams
        for reader, i in readers:
            self.assertEqual(reader.wait(20), 0)
            lines = taken.splitlines(keepends=True)
            if i == 2:
                lines = [l for l in lines if l.split(b"N=")[-1] >= b"2"]
            self.assertTrue((self.scratch / f"sorted{i}").read_bytes() == b"".join(lines), i)
        result = self.run_program(nlstat, url)
        self.assertEqual(result.returncode, 1)
        self.assertIn("Connection refused", result.stderr)

    def subscribed(self):
        return re.findall("NL.EVNT=Netlogd.Subscribed", self.said())

    def test_a_program_is_told_why_not(self):
        nlsort = support.program("nlsort/nlsort")
        process = self.serve()
        for options, reason in [("where=A%3D", "WHERE: "), ("format=xml", 'option format: "xml" is not one of'),
                                ("what=1", 'unknown option "what"')]:
            result = self.run_program(nlsort, f"x-netlog://127.0.0.1:{self.port}?{options}")
            self.assertNotEqual(result.returncode, 0)
            self.assertIn(reason, result.stderr)
        self.stop(process)

    COSTLY = "T =~ 'a[ab]{124}c'"

    def test_who_costs_too_much_for_a_record_is_disconnected(self):
        """netlogd disconnects the subscriber in the live stream and in stored records. The other subscribers get all records."""
        process = self.serve()
        other, costly = self.welcome(), self.welcome(f' WHERE="{self.COSTLY}"')
        long = record(1, padding=" T=" + "ab" * 100000)
        self.send(long)
        reason = (rb"NL.EVNT=Netlogd.Error REASON=\"WHERE costs more than 4194304 steps for one record; subscribe with a "
                  rb"simpler WHERE expression, or without WHERE, and select records with nlsort --where\"\n$")
        costly.thread.join(30)
        self.assertRegex(bytes(costly.data), reason)
        past = self.welcome(f' SINCE=2020-01-01T00:00:00Z WHERE="{self.COSTLY}"')
        past.thread.join(30)
        self.assertRegex(bytes(past.data), reason)
        self.send(record(999999))
        other.wait_for(record(999999))
        self.assertEqual(bytes(other.data), long + record(999999))
        self.assertRegex(self.said(), "NL.EVNT=Netlogd.RequestFailed .*WHERE costs more than")
        self.stop(process)

    def test_who_costs_too_much_on_average_is_disconnected(self):
        """One subscriber has an expression that is too slow for the number of records. Another subscriber with a simple
        expression misses no record."""
        process = self.serve("--subscriber-queue", "512M", "--max-memory", "2G")
        cheap = self.welcome(' WHERE="PROG == p && N >= 0"')
        costly = [self.welcome(f' WHERE="{self.COSTLY} || N == -{i}"') for i in range(1, 20)]
        padding = " T=" + "ab" * 400
        data = b"".join(record(n, padding=padding) for n in range(50000))
        self.send(data)
        self.send(record(999999))
        for s in costly:
            s.thread.join(60)
            self.assertRegex(bytes(s.data), rb"NL.EVNT=Netlogd.Error REASON=\"WHERE costs \d+ steps per record on average, "
                                            rb"but netlogd has time for only 1000 now; subscribe with a simpler")
        cheap.wait_for(record(999999))
        self.assertTrue(bytes(cheap.data) == data + record(999999))
        self.stop(process)

    def test_a_costly_expression_delays_nobody_who_logs(self):
        """netlogd reads and writes records before it matches them with subscribers' expressions."""
        process = self.serve("--max-subscribers", "400")
        costly = [self.welcome(f' WHERE="{self.COSTLY} || N == -{i}"') for i in range(1, 300)]
        padding = " T=" + "ab" * 1000
        data = b"".join(record(n, padding=padding) for n in range(40)) + record(999999)
        # Matching all of them takes more than half a second of processor time.
        before = processor_seconds(process)
        self.send(data)
        self.assertEqual(self.taken(), data)
        self.assertLess(processor_seconds(process) - before, 0.3)
        for s in costly:
            s.close()
        self.stop(process)

    def test_many_cheap_expressions_delay_those_who_log_little(self):
        """Each subscription is cheap, but all of them together cost ten times the work of receiving a record.
        Subscribers then miss records."""
        process = self.serve("--max-subscribers", "400")
        data = b"".join(record(n) for n in range(600000))

        def cost():
            before = processor_seconds(process)
            self.send(data)
            return processor_seconds(process) - before
        cheap = [self.welcome(' WHERE="N == -1"')]
        one = cost()
        cheap += [self.welcome(f' WHERE="N == -{i}"') for i in range(2, 300)]
        self.assertLess(cost(), 3 * one + 0.1)
        for s in cheap:
            s.close()
        self.stop(process)

    def test_request_in_pieces(self):
        process = self.serve()
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b'NETLOGGER/1 subscribe WHERE="PROG == q"\n':
                s.sendall(bytes([byte]))
                time.sleep(0.001)
            file = s.makefile("rb")
            self.assertIn(b"Netlogd.Subscribed", file.readline())
            self.send(record(1) + record(2, "q"))
            self.assertEqual(file.readline(), record(2, "q"))
        self.stop(process)

    def test_subscriptions_can_be_forbidden(self):
        process = self.serve("--subscribe", "no")
        self.assertIn(b"does not allow subscriptions", self.ask(b"NETLOGGER/1 subscribe\n"))
        self.stop(process)

    def test_since_without_a_file(self):
        self.output = "/dev/null"
        process = self.serve()
        self.assertIn(b"no output stores all records", self.ask(b"NETLOGGER/1 subscribe SINCE=-1m\n"))
        self.stop(process)

    def test_subscribers_who_go(self):
        process = self.serve()
        stays = self.welcome()
        for i in range(40):
            s = self.welcome(f' WHERE="N > {i % 7}"')
            self.send(record(i))
            s.close()
        self.send(record(999999))
        stays.wait_for(record(999999))
        self.assertEqual(bytes(stays.data), self.taken())
        self.stop(process)


if __name__ == "__main__":
    support.main()
