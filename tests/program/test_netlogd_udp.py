"""Records in datagrams, and sockets that a service manager opened."""
import os
import re
import signal
import socket
import subprocess
import sys

import collector
import support
from collector import record

# Opens the sockets on its command line, NAME=ADDRESS (:PORT for TCP, udp:PORT for UDP, otherwise a path), and executes
# the program as systemd would.
LAUNCHER = r"""
import os, socket, sys
names, command = [], sys.argv[sys.argv.index("--") + 1:]
for number, spec in enumerate(sys.argv[1:sys.argv.index("--")]):
    name, _, where = spec.partition("=")
    if where in ("tcp", "udp"):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if where == "tcp" else socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))
    elif where == "anywhere":
        s = socket.socket()
        s.bind(("0.0.0.0", 0))
    else:
        s = socket.socket(socket.AF_UNIX)
        s.bind(where)
    if s.type == socket.SOCK_STREAM:
        s.listen()
    os.dup2(s.detach(), 100 + number)
    names.append(name)
for number in range(len(names)):
    os.dup2(100 + number, 3 + number)
    os.close(100 + number)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names))
os.execv(command[0], command)
"""


class NetlogdUdp(collector.Case):
    def setUp(self):
        super().setUp()
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.datagrams.close)

    def give(self, data):
        self.datagrams.sendto(data, ("127.0.0.1", self.port))

    def test_lines_in_datagrams(self):
        process = self.serve(listen="x-netlog+udp://127.0.0.1:0")
        sent = b""
        for lines in ([1], [2, 3, 4], list(range(5, 300))):
            data = b"".join(record(1, n) for n in lines)
            self.give(data)
            sent += data
        self.give(record(1, 300)[:-1])
        self.give(b"ts=2026-01-01T00:00:00Z event=B level=Info x=1")
        sent += record(1, 300) + b"DATE=20260101000000.000000 LVL=Usage NL.EVNT=B x=1\n"
        support.wait_until(lambda: self.written() == sent, what="all lines")
        self.stop(process)

    def test_who_sends_more_than_the_rate(self):
        """netlogd drops, counts and reports the excess datagrams of a sender. netlogd accepts datagrams of other senders. When the
        allowance of the limited sender has grown, netlogd accepts this sender's datagrams again."""
        process = self.serve("--max-rate", "10", listen="x-netlog+udp://127.0.0.1:0")
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(other.close)
        other.bind(("127.0.0.2", 0))
        self.give(b"".join(record(1, n) for n in range(100)))  # the sender must wait for 9 s
        support.wait_until(lambda: record(1, 99) in self.written(), what="what one datagram brings")
        for n in range(100, 120):
            self.give(record(1, n))
        other.sendto(record(2, 1), ("127.0.0.1", self.port))
        support.wait_until(lambda: record(2, 1) in self.written(), what="the other's")
        taken = self.written()
        self.assertEqual(taken, b"".join(record(1, n) for n in range(100)) + record(2, 1))
        support.wait_until(lambda: self.give(record(1, 500)) or record(1, 500) in self.written(), 60, what="it has paid")
        self.stop(process)
        dropped = [int(n) for n in re.findall(r"NL.EVNT=Netlogd.OverRate PEER=127\.0\.0\.1\S* REASON=\".*\" COUNT=(\d+)", self.said())]
        self.assertGreaterEqual(sum(dropped), 20)
        self.assertLess(len(dropped), 40, "once a second")

    def test_datagrams_that_netlogd_reads_too_late(self):
        """Each datagram is in the output, or netlogd reports that the kernel dropped it."""
        process = self.serve(listen="x-netlog+udp://127.0.0.1:0")
        process.send_signal(signal.SIGSTOP)
        count = 20000
        for n in range(count):
            self.give(record(1, n).replace(b"\n", b" A=" + b"x" * 1000 + b"\n"))
        process.send_signal(signal.SIGCONT)

        def dropped():
            return sum(map(int, re.findall(r"NL\.EVNT=Netlogd\.Unread LISTENER=x-netlog\+udp://127\.0\.0\.1:\d+ COUNT=(\d+)", self.said())))

        support.wait_until(lambda: self.written().count(b"\n") + dropped() == count, what="each datagram is written or reported")
        self.assertGreater(dropped(), 0)
        self.stop(process)
        self.assertEqual(self.written().count(b"\n") + dropped(), count)

    def test_subscribers_get_them(self):
        process = self.serve("--listen", "unix:" + str(self.scratch / "unix"), listen="x-netlog+udp://127.0.0.1:0")
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(str(self.scratch / "unix"))
            s.sendall(b"NETLOGGER/1 subscribe\n")
            stream = s.makefile("rb")
            self.assertIn(b"Netlogd.Subscribed", stream.readline())
            self.give(record(1, 1) + record(1, 2))
            self.assertEqual([stream.readline(), stream.readline()], [record(1, 1), record(1, 2)])
        self.stop(process)

    def test_what_is_malformed_is_counted_and_costs_nothing_else(self):
        reject = self.scratch / "reject"
        process = self.serve("--reject", reject, listen="udp://127.0.0.1:0")
        for garbage in (b"", b"\n", b"\0" * 1000, os.urandom(60000), b"A" * 65000, record(1, 1)[:20]):
            self.give(garbage)
        self.give(b"nothing\n" + record(1, 2) + b"more of it\n")
        support.wait_until(lambda: self.written().endswith(record(1, 2)), what="the line")
        self.stop(process)
        self.assertEqual(self.written().count(b"N=2\n"), 1)
        self.assertIn("NL.EVNT=Netlogd.Malformed", self.said())
        self.assertGreater(int(re.search(r"MALFORMED=(\d+)", self.said()).group(1)), 3)
        self.assertGreater(reject.stat().st_size, 0)

    def test_beside_connections_and_what_came_before_the_end(self):
        process = self.serve("--listen", "x-netlog://127.0.0.1:0", listen="udp://127.0.0.1:0")
        tcp = int(support.wait_until(lambda: re.search(r"x-netlog://127\.0\.0\.1:(\d+)\n", self.said()),
                                     what="it listens on TCP, too").group(1))
        for n in range(50):
            self.give(record(1, n))
        with socket.create_connection(("127.0.0.1", tcp)) as s:
            s.sendall(record(2, 1))
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        self.stop(process)
        self.assertEqual(self.written().count(b"HOST=h1"), 50)
        self.assertEqual(self.written().count(b"HOST=h2"), 1)

    def test_off_loopback(self):
        self.assertIn("--allow", self.fails("--listen", "udp://0.0.0.0:0", "--output", self.output))
        process = self.serve("--listen", "udp://0.0.0.0:0", "--allow", "192.0.2.0/24")
        self.stop(process)

    def launch(self, sockets, *arguments):
        """netlogd with sockets that another process opened. The test reads netlogd's sd_notify messages from self.manager."""
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.settimeout(20)
        self.manager.bind(str(self.scratch / "notify"))
        self.addCleanup(self.manager.close)
        with open(self.messages, "ab") as messages:
            return self.start(sys.executable, "-c", LAUNCHER, *sockets, "--", self.netlogd, "--foreground", "--output",
                              self.output, *arguments, stderr=messages,
                              env={**os.environ, "NOTIFY_SOCKET": str(self.scratch / "notify")})

    def place(self, scheme):
        return int(re.search(rf"listening on {re.escape(scheme)}://127\.0\.0\.1:(\d+)\n", self.said()).group(1))

    def test_inherited_sockets(self):
        path = self.scratch / "sock"
        process = self.launch(["a=tcp", "b=udp", f"c={path}"])
        self.assertEqual(self.manager.recv(4096), b"READY=1")
        self.port = self.place("x-netlog")
        self.send(record(1, 1))
        self.port = self.place("x-netlog+udp")
        self.give(record(2, 2))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(path))
            s.sendall(record(3, 3))
            s.shutdown(socket.SHUT_WR)
            s.recv(1)
        support.wait_until(lambda: self.written().count(b"\n") == 3, what="three records")
        process.send_signal(1)
        self.assertRegex(self.manager.recv(4096), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
        self.assertEqual(self.manager.recv(4096), b"READY=1")
        self.stop(process)
        self.assertEqual(self.manager.recv(4096), b"STOPPING=1")
        self.assertTrue(path.exists(), "it is the service manager's")

    def test_inherited_sockets_by_name(self):
        process = self.launch(["one=tcp", "two=udp"], "--listen", "inherited:two")
        self.manager.recv(4096)
        self.assertNotIn("listening on x-netlog://", self.said())
        self.port = self.place("x-netlog+udp")
        self.give(record(1, 1))
        support.wait_until(lambda: self.written() == record(1, 1), what="the record")
        self.stop(process)

    def test_inherited_sockets_that_do_not_do(self):
        for sockets, arguments, why in (([], ["--listen", "inherited:two"], "systemd passed no socket with that name"),
                                        (["one=tcp"], ["--listen", "inherited:two"], "systemd passed no socket with that name"),
                                        (["one=anywhere"], [], "--allow")):
            process = self.launch(sockets, *arguments)
            self.assertEqual(process.wait(20), 1)
            self.assertIn(why, self.said())
            os.unlink(self.scratch / "notify")


if __name__ == "__main__":
    support.main()
