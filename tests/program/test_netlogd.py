"""The collector with real sockets: many clients, whole lines, signals, full disks, hostile input."""
import concurrent.futures
import os
import contextlib
import re
import resource
import signal
import socket
import struct
import threading
import time

import collector
import support
from collector import record


class Netlogd(collector.Case):
    def test_many_clients_whole_lines(self):
        process = self.serve()
        chunks = {c: b"".join(record(c, n) for n in range(2000)) for c in range(20)}
        threads = [threading.Thread(target=self.send, args=(data,)) for data in chunks.values()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.stop(process)
        lines = self.output.read_bytes().splitlines(keepends=True)
        self.assertEqual(len(lines), 40000)
        for c, data in chunks.items():
            self.assertEqual(b"".join(l for l in lines if f"HOST=h{c} ".encode() in l), data, "in order, nothing lost")

    def test_every_form_of_text(self):
        process = self.serve()
        self.send(b"ULM\0    " + record(1, 1))
        self.send(record(2, 2)[:-1] + b"\r\n")
        self.send(b"ts=2026-01-01T00:00:00Z event=B level=Info x=1\n")
        self.send(b"[17] Thu Jan  1 :: stats: " + record(3, 3))
        self.send(b"\n\n" + record(4, 4)[:-1])
        self.stop(process)
        lines = self.output.read_bytes().splitlines(keepends=True)
        self.assertEqual(lines, [record(1, 1), record(2, 2),
                                 b"DATE=20260101000000.000000 LVL=Usage NL.EVNT=B x=1\n", record(3, 3), record(4, 4)])

    def test_a_line_that_is_cut_is_none(self):
        """A program that is killed while it sends leaves a part of a line, which can look like a record."""
        reject = self.scratch / "reject"
        process = self.serve("--reject", reject, "--level", "Debug")
        self.send(record(1, 1) + record(1, 234567)[:-3])
        self.send(record(2, 2)[:-1])
        self.stop(process)
        self.assertEqual(self.written(), record(1, 1) + record(2, 2))
        self.assertEqual(reject.read_bytes(), record(1, 234567)[:-3] + b"\n")
        self.assertIn('REASON="incomplete line: the connection ended before the newline"', self.said())
        closed = re.findall(r" NL.EVNT=Netlogd.Close PEER=\S+ RECORDS=(\d+) MALFORMED=(\d+) ", self.said())
        self.assertEqual(closed, [("1", "1"), ("1", "0")])

    def test_the_first_line_of_the_library_is_cut(self):
        """The library sends an incomplete line again, so netlogd does not store the incomplete line, even if it is the first."""
        received = []
        port = self.peer(lambda connection: received.append(connection.recv(4096)))
        self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{port}?format=ulm", "E")
        self.assertTrue(received[0].endswith(collector.QUESTION_END), received)
        process = self.serve()
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(received[0] + record(1, 1)[:-1])
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        self.stop(process)
        self.assertEqual(self.written(), b"")
        self.assertIn('REASON="incomplete line: the connection ended before the newline"', self.said())

    def test_an_incomplete_line_before_a_reset_is_reported(self):
        reject = self.scratch / "reject"
        process = self.serve("--reject", reject)
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(record(1, 1) + record(1, 234567)[:-3])
            support.wait_until(lambda: self.output.exists() and self.output.read_bytes() == record(1, 1), what="the first line")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets the connection
        support.wait_until(lambda: "incomplete line: the connection ended" in self.said(), what="the message")
        self.stop(process)
        self.assertEqual(self.written(), record(1, 1))
        self.assertEqual(reject.read_bytes(), record(1, 234567)[:-3] + b"\n")

    def test_pieces_of_any_size(self):
        process = self.serve()
        data = b"".join(record(1, n) for n in range(20))
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(0, len(data), 7):
                s.sendall(data[i : i + 7])
            support.wait_until(lambda: self.output.exists() and self.output.read_bytes() == data, what="live output")
        self.stop(process)
        self.assertEqual(self.output.read_bytes(), data)

    def test_sigterm_takes_over_what_has_arrived(self):
        process = self.serve()
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(10)]
        data = [b"".join(record(c, n) for n in range(3000)) for c in range(10)]
        for s, d in zip(clients, data):
            s.sendall(d)
        self.stop(process)
        for s in clients:
            s.close()
        lines = self.output.read_bytes().splitlines(keepends=True)
        for c, d in enumerate(data):
            self.assertEqual(b"".join(l for l in lines if f"HOST=h{c} ".encode() in l), d)

    def test_sigterm_while_clients_have_just_gone(self):
        process = self.serve("--recover", "0")  # with recovery, netlogd would serve these clients as usual for a moment
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(3)]
        process.send_signal(signal.SIGSTOP)
        for s, data in zip(clients, (b"NETLOG", record(1, 1), b"rubbish")):  # the first part looks like a request until its end
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(60), 0)
        self.assertEqual(self.output.read_bytes(), record(1, 1))
        for s in clients:
            s.close()

    def test_sigterm_takes_those_who_wait_to_be_accepted(self):
        process = self.serve()
        process.send_signal(signal.SIGSTOP)
        sent = [record(1, n) for n in range(200)]
        for line in sent:  # each client connects, sends its record and leaves; only the kernel still has the record
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(line)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(20), 0, self.said())
        self.assertEqual(sorted(self.output.read_bytes().splitlines(True)), sorted(sent))

    def test_sighup_under_load_loses_nothing(self):
        process = self.serve()
        data = b"".join(record(1, n) for n in range(100000))
        sender = threading.Thread(target=self.send, args=(data,))
        sender.start()
        moved = []
        while sender.is_alive() or len(moved) < 3:
            if self.output.exists():
                moved.append(self.scratch / f"all.{len(moved):03d}")
                self.output.rename(moved[-1])
                process.send_signal(signal.SIGHUP)
                support.wait_until(self.output.exists, what="the output is opened anew")
            time.sleep(0.02)
        sender.join()
        self.stop(process)
        self.assertEqual(b"".join(p.read_bytes() for p in moved + [self.output]), data)

    def test_full_disk_waits_and_goes_on(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        small = self.scratch / "small"
        small.mkdir()
        if self.run_program("mount", "-t", "tmpfs", "-o", "size=1m", "none", small).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", small)
        ballast = small / "ballast"
        ballast.write_bytes(b"x" * 700000)
        process = self.serve(output=small / "all.log")
        data = b"".join(record(1, n) for n in range(8000))
        self.assertLess(len(data), 900000)
        sender = threading.Thread(target=self.send, args=(data,))
        sender.start()
        support.wait_until(lambda: "No space left on device" in self.said(), what="the message")
        # When netlogd retries, the output has a part of a line for a moment.
        kept = support.wait_until(lambda: (text := (small / "all.log").read_bytes()).endswith(b"\n") and text, what="whole lines")
        self.assertTrue(data.startswith(kept))
        ballast.unlink()
        sender.join(20)
        self.stop(process)
        self.assertEqual((small / "all.log").read_bytes(), data)
        self.assertEqual(self.said().count("No space left"), 1, "said once")

    def test_hostile_input_costs_only_its_sender(self):
        reject = self.scratch / "reject"
        process = self.serve("--reject", reject)
        with socket.create_connection(("127.0.0.1", self.port)) as s:  # half a record, then a reset
            s.sendall(record(9, 9)[:40])
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        idle = socket.create_connection(("127.0.0.1", self.port))
        idle.sendall(b"DATE=")
        with socket.create_connection(("127.0.0.1", self.port)) as s:  # one endless line
            try:
                for _ in range(200):
                    s.sendall(b"A" * 65536)
            except OSError:
                pass
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            try:
                s.sendall(os.urandom(1 << 20))
            except OSError:
                pass
        self.send(b"\0\xff\n" * 10 + record(1, 1))
        idle.close()
        memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{process.pid}/status").read()).group(1))
        self.assertLess(memory, 40000, "kB")
        self.stop(process)
        self.assertIn(record(1, 1), self.output.read_bytes())
        self.assertEqual(self.output.read_bytes().count(b"\n"), 1)
        self.assertIn("NL.EVNT=Netlogd.Malformed", self.said())
        self.assertGreater(reject.stat().st_size, 0)

    def test_memory_for_halves_is_bounded(self):
        process = self.serve("--max-memory", "24M", "--record-timeout", "0")
        half = record(9, 9)[:-1] + b" X=" + b"x" * 400000
        clients = []

        def send_half():
            clients.append(socket.create_connection(("127.0.0.1", self.port)))
            try:
                clients[-1].sendall(half)
            except OSError:
                pass
        for _ in range(1000):
            send_half()
        self.send(record(1, 1))
        support.wait_until(lambda: self.output.exists() and self.output.read_bytes() == record(1, 1), what="who is not greedy")
        support.wait_until(lambda: self.said().count("NL.EVNT=Netlogd.Memory ") > 900, what="the others are read and closed")
        send_half()
        self.send(record(1, 2))
        support.wait_until(lambda: self.output.read_bytes() == record(1, 1) + record(1, 2), what="and again")
        memory = int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{process.pid}/status").read()).group(1))
        if not support.is_sanitized(process):
            self.assertLess(memory, 60000, "kB")
        self.assertIn("NL.EVNT=Netlogd.Memory", self.said())
        clients[-1].sendall(b"\n")  # the last client was not closed
        for s in clients:
            s.close()
        support.wait_until(lambda: self.output.stat().st_size > len(half), what="a whole record")
        self.stop(process)

    def test_connection_limits(self):
        """While all clients are busy, netlogd rejects another client. It closes clients that are silent for too long."""
        process = self.serve("--max-connections", "5", "--idle-timeout", "5")
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(5)]
        with self.busy(clients):
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.settimeout(60)
                self.assertEqual(s.recv(1), b"")
        for s in clients:
            s.settimeout(60)
            self.assertEqual(s.recv(1), b"", "closed when idle")
            s.close()
        self.send(record(1, 1))
        self.stop(process)
        self.assertIn("too many connections", self.said())
        self.assertEqual(self.output.read_bytes().count(record(1, 1)), 1)

    @contextlib.contextmanager
    def busy(self, clients):
        """Makes each client send records until the block ends. The block begins when netlogd has read a record of each."""
        over = threading.Event()

        def send():
            number = 0
            while not over.is_set():
                for i, s in enumerate(clients):
                    s.sendall(record(100 + i, number))
                number += 1
                over.wait(0.1)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            support.wait_until(lambda: all(b"HOST=h%d " % (100 + i) in self.written() for i in range(len(clients))), what="all are heard of")
            yield
        finally:
            over.set()
            sender.join()

    def is_open(self, s):
        s.setblocking(False)
        try:
            return s.recv(1) != b""
        except BlockingIOError:
            return True
        except ConnectionError:
            return False

    def is_taken(self, client, number, source="127.0.0.1"):
        """Returns whether netlogd accepts a record of a new client and closes its connection normally."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0)) as s:
                s.sendall(record(client, number))
                s.shutdown(socket.SHUT_WR)
                while s.recv(1):
                    pass
        except ConnectionError:
            pass
        for _ in range(20):
            if record(client, number) in self.written():
                return True
            time.sleep(0.05)
        return False

    def test_silent_clients_lock_nobody_out(self):
        """With default limits: 10,000 silent sockets, from two addresses and then from one."""
        need = 10200
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < need:
            self.skipTest(f"at most {hard} open files are allowed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (need, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        process = self.serve()
        honest = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        honest.sendall(record(1, 1))
        support.wait_until(lambda: record(1, 1) in self.written(), what="the first record")
        silent = []
        for i in range(10000):
            silent.append(socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(f"127.0.0.{2 + i % 2}", 0)))
        begun = time.monotonic()
        self.assertTrue(self.is_taken(2, 1), "from a third address, at once")
        support.wait_until(lambda: self.is_taken(2, 2, "127.0.0.2"), what="from one of theirs")
        self.assertLess(time.monotonic() - begun, 10)
        self.assertTrue(self.is_open(honest), "a client that has sent records is not displaced by those that have not")
        honest.setblocking(True)
        honest.sendall(record(1, 2))
        honest.close()
        support.wait_until(lambda: record(1, 2) in self.written(), what="its next record")
        for s in silent:
            s.close()
        self.stop(process)
        self.assertIn("NL.EVNT=Netlogd.Displaced", self.said())

    def test_the_client_that_was_silent_longest_is_closed_first(self):
        process = self.serve("--max-connections", "4")
        clients = []
        for i in range(3):
            clients.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))
            clients[i].sendall(record(i, 1))
            support.wait_until(lambda: record(i, 1) in self.written(), what="a record")
        clients.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))  # has sent nothing
        clients[0].sendall(record(0, 2))
        support.wait_until(lambda: record(0, 2) in self.written(), what="a record")
        time.sleep(1.2)
        order = []
        newer = []
        for i in range(3):
            newer.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))
            newer[-1].sendall(record(50 + i, 1))
            support.wait_until(lambda: record(50 + i, 1) in self.written(), what="a new client")
            order.append([k for k, s in enumerate(clients) if not self.is_open(s)])
        self.assertEqual(order, [[3], [1, 3], [1, 2, 3]])
        for s in clients + newer:
            s.close()
        self.stop(process)

    def test_silent_clients_do_not_take_all_descriptors(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
        process = self.serve(preexec_fn=few)
        silent = [socket.create_connection(("127.0.0.1", self.port), timeout=20) for _ in range(100)]
        support.wait_until(lambda: self.is_taken(1, 1), what="one more client")
        for s in silent:
            s.close()
        self.stop(process)

    def test_it_confines_itself(self):
        """System calls are filtered in every thread. An output elsewhere needs a restart, and the message states this."""
        config = self.scratch / "netlogd.conf"
        config.write_text("")
        process = self.serve("--config", config)
        if "libseccomp" not in open(f"/proc/{process.pid}/maps").read():
            self.skipTest("this build has no seccomp")
        self.send(record(1, 1))
        for task in os.listdir(f"/proc/{process.pid}/task"):
            status = open(f"/proc/{process.pid}/task/{task}/status").read()
            self.assertIn("Seccomp:\t2\n", status)
            self.assertIn("NoNewPrivs:\t1\n", status)
        self.assertNotIn("not confined", self.said())
        config.write_text(f"output {self.scratch}/near.log\n")
        process.send_signal(signal.SIGHUP)
        support.wait_until((self.scratch / "near.log").exists, what="an output beside the first")
        config.write_text(f"output /var/tmp/{self.scratch.name}/x.log\n")
        process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: f"/var/tmp/{self.scratch.name}/x.log: a running daemon can use only the directories and ports" in self.said(), what="the message")
        self.send(record(1, 2))
        self.stop(process)
        process = self.serve("--confine", "no")
        self.assertIn("Seccomp:\t0\n", open(f"/proc/{process.pid}/status").read())
        self.stop(process)

    def test_a_first_record_has_its_time(self):
        process = self.serve("--record-timeout", "1")
        s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.assertEqual(s.recv(1), b"")
        s.close()
        self.stop(process)
        self.assertIn("the first record took too long", self.said())

    def test_files_are_rotated_however_many_are_connected(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
        folder = self.scratch / "numbered"
        folder.mkdir()
        process = self.serve(output=f"file:{folder}/a-{{N}}.log?rotate_size=20k", preexec_fn=few)
        data = [b"".join(record(1, n) for n in range(k, k + 1000)) for k in (0, 1000)]
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
            idle = [socket.create_connection(("127.0.0.1", self.port), timeout=20) for _ in range(70)]
            support.wait_until(lambda: "no file descriptor is free for another client" in self.said(), what="the message")
            s.sendall(data[0])
            support.wait_until(lambda: len(list(folder.glob("a-*.log"))) > 2, what="files are rotated")
            support.wait_until(lambda: sum(f.stat().st_size for f in folder.glob("a-*.log")) == len(data[0]), what="all of it")
        for c in idle:
            c.close()
        self.send(data[1])  # there is free space again
        self.stop(process)
        self.assertEqual(b"".join(f.read_bytes() for f in sorted(folder.glob("a-*.log"))), b"".join(data))

    def test_a_file_that_may_not_be_larger_is_as_a_full_disk(self):
        process = self.serve(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY)))
        data = b"".join(record(1, n) for n in range(5000))
        sender = threading.Thread(target=self.send, args=(data,))
        sender.start()
        support.wait_until(lambda: "File too large" in self.said(), what="the message")
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        sender.join(20)
        self.stop(process)
        self.assertEqual(self.output.read_bytes(), data)

    def test_limit_for_an_address(self):
        process = self.serve("--max-per-address", "3")
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(3)]
        with self.busy(clients):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
                self.assertEqual(s.recv(1), b"")
            self.assertTrue(self.is_taken(1, 1, "127.0.0.2"))
            clients[2] = socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=("127.0.0.2", 0))
        clients[2].close()
        support.wait_until(lambda: "too many connections from this address" in self.said(), what="the message")
        clients[2] = support.wait_until(self.subscribed, what="there is room again")  # a subscriber counts as a client, too
        time.sleep(1.2)
        self.assertTrue(self.is_taken(1, 2), "in the place of one that is silent")
        self.assertEqual([self.is_open(s) for s in clients], [False, True, True])
        for s in clients:
            s.setblocking(True)
        for s in clients:
            s.close()
        self.stop(process)
        # Perhaps more than once: netlogd may not have accepted all connections yet.
        self.assertLessEqual({record(1, 1), record(1, 2)}, set(self.output.read_bytes().splitlines(True)))
        self.assertIn("too many connections from this address", self.said())

    def send_if_accepted(self, data):
        try:
            self.send(data)
        except OSError:
            pass
        return data in self.written()

    def test_a_client_over_its_rate_is_held_up_alone(self):
        process = self.serve("--max-rate", "10")
        data = b"".join(record(1, n) for n in range(100000))  # at 10 records per second, netlogd would need hours for these
        greedy = socket.create_connection(("127.0.0.1", self.port), timeout=60)

        def send():
            try:
                greedy.sendall(data)
            except OSError:
                pass

        sender = threading.Thread(target=send)
        sender.start()
        support.wait_until(lambda: b"HOST=h1" in self.written(), what="its first records")
        self.send(record(2, 1))
        support.wait_until(lambda: record(2, 1) in self.written(), what="the other's record")
        self.assertLess(self.written().count(b"HOST=h1"), 50000)
        self.stop(process)  # reads what has arrived
        greedy.close()
        sender.join()
        self.assertTrue(data.startswith(self.written().replace(record(2, 1), b"")), "nothing is missing between")

    def test_a_blocked_standard_error_holds_nobody_up(self):
        """If nobody reads netlogd's standard error, netlogd drops messages and events, and counts them when reading resumes."""
        config, path, clients, reloads = self.scratch / "conf", self.scratch / "s.sock", 10000, 5
        config.write_text(f"listen unix:{path}\noutput {self.output}\nlog file:///dev/stderr?ring=64k\nlevel Debug\n")
        read_end, write_end = os.pipe()
        process = self.start(self.netlogd, "--foreground", "--config", config, stderr=write_end)
        support.wait_until(lambda: b"Netlogd.Listen" in os.read(read_end, 65536), what="netlogd listens")
        own = os.open(f"/proc/self/fd/{write_end}", os.O_WRONLY | os.O_NONBLOCK)  # netlogd's descriptor stays blocking
        os.close(write_end)
        try:
            while True:
                os.write(own, b"\n")
        except BlockingIOError:
            os.close(own)
        config.write_text("nonsense\n")
        for number in range(clients):
            if number % (clients // reloads) == 0:
                process.send_signal(signal.SIGHUP)
            with socket.socket(socket.AF_UNIX) as s:
                s.settimeout(5)
                s.connect(str(path))
                s.sendall(collector.record(0, number))
                s.shutdown(socket.SHUT_WR)
                self.assertEqual(s.recv(1), b"", "netlogd has read the record, and closed")
        support.wait_until(lambda: self.written().count(b"\n") == clients, what="all records are written")

        said = bytearray()
        reader = threading.Thread(target=lambda: [said.extend(data) for data in iter(lambda: os.read(read_end, 65536), b"")])
        reader.start()
        support.wait_until(lambda: b"Netlogd.Open" in said, what="the pipe is read")

        def counted():
            """Makes netlogd log and print: netlogd reports the losses before the next event and message that it can write."""
            process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            return b"NetLogger.Lost" in said and b" dropped: standard error was blocked" in said

        support.wait_until(counted, what="the events and messages that were dropped are counted")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0, said)
        reader.join()
        os.close(read_end)
        dropped = int(re.search(rb"\nnetlogd: (\d+) messages dropped", said).group(1))
        self.assertGreaterEqual(dropped, reloads)
        opened = said.count(b"NL.EVNT=Netlogd.Open ")
        lost = sum(int(n) for n in re.findall(rb"NL.EVNT=NetLogger.Lost COUNT=(\d+)", said))
        self.assertGreater(lost, 0)
        self.assertGreaterEqual(opened + lost, clients)

    def test_a_limit_that_comes_by_a_reload_holds_for_those_who_are_there(self):
        config = self.scratch / "netlogd.conf"
        config.write_text("# none\n")
        process = self.serve("--config", config)
        greedy = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        greedy.sendall(record(1, 1))
        support.wait_until(lambda: record(1, 1) in self.written(), what="that it is there")
        config.write_text("max-rate 1\n")
        process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "Netlogd.Reload " in self.said(), what="the reload")
        data = b"".join(record(1, n) for n in range(2, 200))
        greedy.sendall(data)  # with another piece, netlogd would delay the client for minutes
        support.wait_until(lambda: record(1, 199) in self.written(), what="its records")
        greedy.sendall(record(1, 1000))
        self.send(record(2, 1))
        support.wait_until(lambda: record(2, 1) in self.written(), what="the other's record")
        self.assertNotIn(record(1, 1000), self.written())
        self.stop(process)  # reads what has arrived
        self.assertIn(record(1, 1000), self.written())
        greedy.close()

    def test_a_limit_that_goes_lets_go_at_once(self):
        """After a reload, netlogd reads a client that the old limit would delay for hours, and closes a silent client by the new limit."""
        config = self.scratch / "netlogd.conf"
        config.write_text("max-rate 1\n")
        process = self.serve("--config", config)
        greedy = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        greedy.sendall(b"".join(record(1, n) for n in range(400)))
        support.wait_until(lambda: record(1, 399) in self.written(), what="a piece, for which it owes minutes")
        greedy.sendall(record(1, 1000))
        self.send(record(2, 1))
        self.assertNotIn(record(1, 1000), self.written())
        config.write_text("idle-timeout 1\n")
        process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: record(1, 1000) in self.written(), what="the rest")
        greedy.settimeout(20)
        self.assertEqual(greedy.recv(1), b"", "closed when idle, though it had no timeout when it came")
        greedy.close()
        self.stop(process)

    def subscribed(self):
        """Returns a connection that subscribes; None if netlogd rejects it."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        try:
            s.sendall(b"NETLOGGER/1 subscribe\n")
            if b"Netlogd.Subscribed" in s.recv(1000):
                return s
        except ConnectionError:
            pass
        s.close()
        return None

    def test_those_who_are_turned_away_are_summed(self):
        process = self.serve("--max-per-address", "1")
        first = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        with self.busy([first]):
            for _ in range(300):
                with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
                    try:
                        self.assertEqual(s.recv(1), b"")
                    except ConnectionResetError:
                        pass
        first.close()
        self.stop(process)
        counts = [int(n) for n in re.findall(r"NL.EVNT=Netlogd.Refused PEER=127\.\S+ REASON=\"too many .*\" COUNT=(\d+)", self.said())]
        self.assertEqual(sum(counts), 300)
        self.assertEqual(counts[0], 1, "the first is told at once")
        self.assertLess(len(counts), 100, "not a line each")

    def test_clients_that_never_pause_keep_nobody_out(self):
        """While other clients send endlessly, netlogd accepts, reads and stores the records of a new client."""
        process = self.serve()
        flood = b"".join(record(0, i) for i in range(2000))
        over, sent = threading.Event(), [0] * 6

        def send(i):
            with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                while not over.is_set():
                    s.sendall(flood)
                    sent[i] += 1

        with concurrent.futures.ThreadPoolExecutor(len(sent)) as pool:
            senders = [pool.submit(send, i) for i in range(len(sent))]
            try:
                support.wait_until(lambda: all(sent), what="all of them send")
                for newcomer in range(1, 4):
                    self.send(record(newcomer, 7))
                self.assertFalse(any(sender.done() for sender in senders))
            finally:
                over.set()
            for sender in senders:
                sender.result()
        self.stop(process)
        with open(self.output, "rb") as output:
            others = [line for line in output if b" HOST=h0 " not in line]
        self.assertEqual(others, [record(newcomer, 7) for newcomer in range(1, 4)])

    def test_a_record_is_written_though_others_never_pause(self):
        """Like the previous test, but the output has a filter that no record of the other clients matches, so that netlogd has
        little to write."""
        process = self.serve(output=f"file:{self.output}?where=LVL <= Error")
        flood, ends = b"".join(record(1, n) for n in range(20000)), threading.Event()

        def send():
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                while not ends.is_set():
                    s.sendall(flood)
        senders = [threading.Thread(target=send) for _ in range(2)]
        for t in senders:
            t.start()
        try:
            line = record(2, 1).replace(b"Usage", b"Error")
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(line)
                support.wait_until(lambda: self.written() == line, what="the record")
        finally:
            ends.set()
            for t in senders:
                t.join()
        self.stop(process)

    def test_a_record_that_does_not_end(self):
        process = self.serve("--record-timeout", "1")
        patient = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        patient.sendall(record(1, 1))
        late = []
        for part in (record(1, 1)[:20], record(1, 1) + b"D", b"NLB1" + b"\0" * 30):
            late.append(socket.create_connection(("127.0.0.1", self.port), timeout=20))
            late[-1].sendall(part)
        for s in late:
            self.assertEqual(s.recv(1), b"")
            s.close()
        patient.sendall(record(1, 2))
        patient.close()
        self.stop(process)
        self.assertEqual(self.output.read_bytes(), record(1, 1) * 2 + record(1, 2))
        self.assertIn("a record took too long", self.said())

    def test_a_record_as_long_as_is_allowed(self):
        process = self.serve("--max-record-size", "64M")
        data = record(1, 1, " X=" + "y" * (40 << 20))
        self.send(data)
        self.stop(process)
        self.assertEqual(self.output.stat().st_size, len(data))

    def test_hundreds_of_clients(self):
        process = self.serve()
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(800)]
        for i, s in enumerate(clients):
            s.sendall(record(i, i))
        for s in clients:
            s.close()
        support.wait_until(lambda: self.output.exists() and self.output.read_bytes().count(b"\n") == 800)
        self.stop(process)

    def test_unix_socket_and_stale_one(self):
        path = self.scratch / "sock"
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(path))
        stale.close()
        process = self.serve("--listen", f"unix:{path}")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(path))
            s.sendall(record(1, 1))
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        self.stop(process, signal.SIGINT)
        self.assertEqual(self.output.read_bytes(), record(1, 1))
        self.assertFalse(path.exists())

    def test_what_is_wrong_at_the_start_is_said(self):
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        url = f"x-netlog://127.0.0.1:{taken.getsockname()[1]}"
        self.assertEqual(self.fails("--listen", url), f"netlogd: listen on {url}: Address already in use; "
                         "choose another address, or end the program that uses it\n")
        self.assertEqual(self.fails("--control", f"unix:{self.scratch}/no/control"),
                         f"netlogd: listen on unix:{self.scratch}/no/control: the directory {self.scratch}/no does not exist; create it\n")
        self.assertIn("unknown scheme (did you mean x-netlog?); use x-netlog, x-netlogs, x-netlog+udp, inherited, unix, nats, otlp, otlp+http, "
                      "syslog+udp, syslog+tcp or syslog+tls\n", self.fails("--listen", "x-netlg://localhost", status=2))
        missing = self.scratch / "no" / "file"
        self.assertEqual(self.fails("--output", missing), f"netlogd: open {missing}: No such file or directory; create the directory {missing.parent}\n")
        self.assertIn("add --allow NETWORK, or require client certificates: x-netlogs://", self.fails("--listen", "x-netlog://0.0.0.0:0"))
        self.assertEqual(self.fails("--listen", "x-netlog://127.0.0.1:0", "--metrics", "http://0.0.0.0:1"),
                         "netlogd: metrics: listen on http://0.0.0.0:1: the address is open to other hosts; add --allow NETWORK\n")
        self.assertIn("is not a network", self.fails("--allow", "300.1.1.1/8", status=2))
        self.assertIn("--listen", self.fails("--listen", "http://x", status=2))
        self.fails("--nonsense", status=2)

    def test_config_file(self):
        config = self.scratch / "netlogd.conf"
        config.write_text("# a comment\n\nlisten x-netlog://127.0.0.1:0\nlisen x\nmax-connections many # no\n")
        message = self.fails("--config", config, status=2)
        self.assertIn(f"{config}:4: lisen: unknown directive", message)
        self.assertIn(f"{config}:5: max-connections: \"many\" is not a whole number", message)
        config.write_text(f"output {self.output} # there\nmax-connections 3\n")
        process = self.serve("--config", config)
        self.send(record(1, 1))
        self.stop(process)
        self.assertEqual(self.output.read_bytes(), record(1, 1))

    def test_in_the_background(self):
        pid_file = self.scratch / "pid"
        result = self.run_program(self.netlogd, "--listen", f"unix:{self.scratch}/s", "--output", self.output, "--pid-file",
                                  pid_file, "--log", self.scratch / "own.log", timeout=10)
        self.assertEqual(result.returncode, 0, result.stderr)
        pid = int(support.wait_until(lambda: pid_file.exists() and pid_file.read_text().strip(), what="the pid file"))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(f"{self.scratch}/s")
            s.sendall(record(1, 1))
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        os.kill(pid, signal.SIGTERM)
        support.wait_until(lambda: not pid_file.exists(), what="its end")
        self.assertEqual(self.output.read_bytes(), record(1, 1))
        self.assertIn("NL.EVNT=Netlogd.Stop RECORDS=1", (self.scratch / "own.log").read_text())

    def test_a_pid_file_that_is_anothers_by_now_stays(self):
        pid_file = self.scratch / "pid"
        process = self.serve("--pid-file", pid_file)
        support.wait_until(lambda: pid_file.exists() and pid_file.read_text() == f"{process.pid}\n", what="the pid file")
        pid_file.write_text("1\n")  # like another netlogd that starts while this netlogd ends
        self.stop(process)
        self.assertEqual(pid_file.read_text(), "1\n")

    def test_what_goes_wrong_on_the_way_to_the_background_is_said(self):
        missing = self.scratch / "no" / "file"
        for option in ("--pid-file", "--reject", "--output"):
            result = self.run_program(self.netlogd, "--listen", f"unix:{self.scratch}/s", "--output", self.output, option,
                                      missing, timeout=20)
            self.assertEqual(result.returncode, 1, option)
            self.assertIn(f"{missing}: No such file or directory", result.stderr)

    def test_in_the_background_it_lets_the_terminal_go(self):
        pid_file = self.scratch / "pid"
        result = self.run_program(self.netlogd, "--listen", f"unix:{self.scratch}/s", "--output", self.output, "--pid-file",
                                  pid_file, timeout=20)  # waits until no process has its standard error open
        self.assertEqual(result.returncode, 0, result.stderr)
        pid = int(pid_file.read_text())
        self.assertEqual({os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)}, {"/dev/null"})
        os.kill(pid, signal.SIGTERM)
        support.wait_until(lambda: not pid_file.exists(), what="its end")

    def test_an_output_is_of_one_process(self):
        for output, written in ((self.scratch / "one.log", "one.log"), (f"{self.scratch}/many/", "netlog-*"),
                                (f"file:{self.scratch}/some-{{N}}.nlb", "some-*")):
            (self.scratch / "many").mkdir(exist_ok=True)
            process = self.serve(output=output)
            self.send(record(1, 1))
            support.wait_until(lambda: any(p.stat().st_size for p in self.scratch.rglob(written)), what="it is written")
            before = {p: p.read_bytes() for p in self.scratch.rglob("*") if p.is_file() and p != self.messages}
            message = self.fails("--listen", f"unix:{self.scratch}/s", "--output", output)
            self.assertRegex(message, rf"netlogd: \S+: \S*netlogd \(process {process.pid}\) is writing to this file\n$")
            self.assertEqual({p: p.read_bytes() for p in before}, before)
            self.stop(process)
            self.stop(self.serve(output=output))
        process = self.serve(output=self.scratch / "one.log")
        (self.scratch / "one.log").rename(self.scratch / "old.log")  # after the reload, the renamed file is no longer netlogd's
        process.send_signal(signal.SIGHUP)
        support.wait_until((self.scratch / "one.log").exists, what="that it opens another")
        self.stop(self.serve(output=self.scratch / "old.log"))
        process.terminate()
        process.wait(20)

    def test_that_there_is_no_thread_for_recovery_is_said(self):
        source, library = self.scratch / "none.c", self.scratch / "none.so"
        source.write_text("#include <errno.h>\nint pthread_create(void) { return EAGAIN; }\n")
        result = self.run_program(*support.CC.split(), "-shared", "-fPIC", "-o", library, source)
        self.assertEqual(result.returncode, 0, result.stderr)
        environment = {**os.environ, "LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}
        process = self.serve(env=environment)
        why = "cannot recover events of killed programs: cannot start a thread: Resource temporarily unavailable"
        support.wait_until(lambda: why in self.said(), what="why not")
        self.send(record(1, 1))
        self.stop(process)
        self.assertEqual(self.written(), record(1, 1))

    def test_what_was_recovered_is_said_once(self):
        client = self.compile_client('''
            #include <netlogger.h>
            #include <signal.h>
            int main(int argc, char **argv)
            {
                nl_log *kept = nl_open("kept", "x-netlog://127.0.0.1:1"), *log = nl_open("log", argv[argc - 1]);
                NL_EVENT(kept, NL_USAGE, "E", "I", 1);
                NL_EVENT(log, NL_USAGE, "E", "I", 1);
                raise(SIGKILL);
            }''')
        self.assertEqual(self.run_program(client, self.scratch / "log").returncode, -signal.SIGKILL)
        process = self.serve("--recover", "1")
        support.wait_until(lambda: "Netlogd.RecoverFailed" in self.said() and "Netlogd.Recovered" in self.said(), what="both")
        self.assertEqual(self.run_program(client, self.scratch / "log").returncode, -signal.SIGKILL)
        support.wait_until(lambda: self.said().count("Netlogd.RecoverFailed") == 2, what="that it has looked again")
        self.stop(process)
        self.assertEqual(self.said().count("Netlogd.Recovered"), 2)

    def test_a_start_that_fails_during_recovery(self):
        client = self.compile_client('''
            #include <netlogger.h>
            #include <signal.h>
            int main(void)
            {
                nl_log *log = nl_open("kept", "memory:gone");
                NL_EVENT(log, NL_USAGE, "E", "I", 1);
                raise(SIGKILL);
            }''')
        self.assertEqual(self.run_program(client).returncode, -signal.SIGKILL)
        self.serve()
        for _ in range(12):  # the report of the recovery may come before or after the failure
            message = self.fails("--listen", f"x-netlog://127.0.0.1:{self.port}", "--output", self.scratch / "other.log")
            self.assertRegex(message, r"\Anetlogd: listen on \S+: Address already in use; choose [^\n]*\n\Z")


if __name__ == "__main__":
    support.main()
