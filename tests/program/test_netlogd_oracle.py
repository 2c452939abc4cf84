"""After kills, cut connections, full disks, delays and reordering, the output has each acknowledged event once.

Producers log numbered events while the test kills netlogd at random moments. Each producer records its progress in a
file (oracle_producer.c). At the end, an oracle checks every event:

  - An event of the binary protocol whose call returned is in the output once, even if its program was killed: unsent
    events are in shared memory or in a spool, and are delivered later. (nl_flush promises less.)
  - An event whose call had begun when its program was killed is in the output at most once.
  - A line of plain text, which is not acknowledged, is in the output at most once. No partial line is in the output.

  NL_ORACLE_SEED   repeats a failed run, as far as the kernel's timing permits; each test prints its seed
  NL_ORACLE_KILLS  number of kills of netlogd in all tests together (default 220)
  NL_ORACLE_KEEP   if set, a failed test keeps its files and prints their directory
"""
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from collections import Counter

import support

SEED = int(os.environ.get("NL_ORACLE_SEED", int.from_bytes(os.urandom(4), "little")))
KILLS = int(os.environ.get("NL_ORACLE_KILLS", 220))

BASE = b'abc d"e"f=g\\h\ni\tj k=l \xc3\xa4\x01m;n,o\'p'
SHORT, LONG, LONG_EVERY, THREADS = 64, 16000, 199, 8
PATTERN = BASE * ((LONG + 2 * SHORT) // len(BASE) + 1)
LETTERS = b"abcdefghijklmnopqrstuvwxyz" * (LONG // 26 + 2)


def value_size(i):
    return i * 7919 % LONG if i % LONG_EVERY == LONG_EVERY - 1 else i * 31 % SHORT


def value_of(event, i):
    """Returns the value of event i of a producer. It depends only on i, as in oracle_producer.c."""
    size = value_size(i)
    if event == b"Line":
        return LETTERS[i % 26:i % 26 + size] + b".END"
    return PATTERN[i % SHORT:i % SHORT + size]


ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def unquoted(text):
    """Returns the bytes that a ULM value stands for, without quotes and escapes. Returns None if the last quote is missing."""
    if not text.startswith(b'"'):
        return text
    if len(text) < 2 or not text.endswith(b'"'):
        return None
    return re.sub(rb"\\(x..|.)", lambda m: bytes([int(m[1][1:], 16)]) if len(m[1]) == 3 else ESCAPES.get(m[1], m[1]),
                  text[1:-1], flags=re.DOTALL)


class Proxy:
    """A bad link between producers and a collector: it delays data, cuts connections within blocks, holds data back
    until the client reconnects, drops acknowledgements, and repeats connections."""

    def __init__(self, target, seed, host="127.0.0.1", twice=True):
        self.target = target
        self.twice = twice
        self.rng = random.Random(seed)
        self.calm = False  # from now on, the link is good
        self.done = Counter()
        self.open = set()
        self.listener = socket.create_server((host, 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client, self.rng.randrange(1 << 30)), daemon=True).start()

    def connect(self):
        try:
            return socket.create_connection(self.target, timeout=2)
        except OSError:
            return None

    def serve(self, client, seed):
        rng = random.Random(seed)
        server = self.connect()
        if server is None:
            client.close()
            return
        for s in (client, server):
            s.settimeout(None)
        trouble = "none" if self.calm else rng.choice(["none", "cut", "late", "deaf", "twice", "slow"])
        back = threading.Thread(target=self.acknowledgements, args=(server, client, trouble, random.Random(seed + 1)),
                                daemon=True)
        back.start()
        most = None if trouble in ("none", "slow") else int(2 ** rng.uniform(3, 18)) + 100 * (not self.twice)
        sent, kept = self.forward(client, server, most, trouble, rng)
        self.done[trouble] += 1
        if trouble == "late" and kept:
            threading.Thread(target=self.deliver, args=(server, kept, rng.uniform(0.01, 0.6)), daemon=True).start()
            self.end(client, rng)
        else:
            self.end(client, rng)
            self.end(server, rng)
        if trouble == "twice" and self.twice:
            threading.Thread(target=self.replay, args=(sent, rng.uniform(0, 0.5)), daemon=True).start()

    def forward(self, client, server, most, trouble, rng):
        """Forwards until either end closes or the maximum number of bytes has passed. Returns the data that
        passed, if the trouble is to send it twice, and the data that the link held back."""
        sent, passed = [], 0
        try:
            while most is None or passed < most:
                data = client.recv(rng.choice([1, 100, 4096, 65536]))
                if not data:
                    break
                if not self.calm and rng.random() < (0.5 if trouble == "slow" else 0.02):
                    time.sleep(rng.uniform(0, 0.03))
                if trouble == "twice":
                    sent.append(data)
                now = len(data) if most is None else min(len(data), most - passed)
                server.sendall(data[:now])
                passed += now
                if trouble == "late" and passed == most:
                    return sent, data[now:] + self.rest(client)
        except OSError:
            pass
        return sent, b""

    @staticmethod
    def rest(client):
        """Returns the received data that was not read."""
        try:
            return client.recv(65536, socket.MSG_DONTWAIT)
        except OSError:
            return b""

    def acknowledgements(self, server, client, trouble, rng):
        try:
            while True:
                data = server.recv(4096)
                if not data:
                    break
                if not self.calm and rng.random() < 0.1:
                    time.sleep(rng.uniform(0, 0.05))
                if trouble != "deaf":
                    client.sendall(data)
        except OSError:
            pass
        for s in (server, client):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def deliver(self, server, data, seconds):
        """Delivers the data of an abandoned connection after the client has reconnected."""
        time.sleep(seconds)
        try:
            server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def replay(self, chunks, seconds):
        time.sleep(seconds)
        server = self.connect()
        if server is None:
            return
        try:
            server.sendall(b"".join(chunks))
            server.shutdown(socket.SHUT_WR)
            server.settimeout(5)
            while server.recv(4096):
                pass
        except OSError:
            pass
        server.close()

    @staticmethod
    def end(s, rng):
        """Ends the connection normally or by a reset."""
        try:
            if rng.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        s.close()

    def close(self):
        self.listener.close()


class Producer:
    """A program that logs, its consecutive runs, and the results of each run."""

    def __init__(self, case, kind, name, where, *arguments, prefix=(), mortal=False):
        self.case, self.kind, self.name, self.where = case, kind, name, where
        self.arguments, self.prefix, self.mortal = arguments, prefix, mortal
        self.runs = 0
        self.killed = set()
        self.process = None
        self.start()

    def path(self, run):
        return self.case.scratch / f"{self.name}.{run}.counts"

    def start(self):
        self.process = self.case.start(*self.prefix, self.case.program, self.kind, self.name, self.runs, self.where,
                                       self.path(self.runs), *self.arguments, stderr=self.case.complaints)
        self.runs += 1

    def kill(self):
        self.killed.add(self.runs - 1)
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.terminate()

    def counts(self, run):
        """Returns (tried, returned, refused, flushed) for each thread."""
        data = self.path(run).read_bytes() if self.path(run).exists() else b""
        return [struct.unpack_from("<4Q", data, at) for at in range(0, len(data), 32)]


class Storm(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.nlsort = support.program("nlsort/nlsort")
        self.nlrecover = support.program("nltools/nlrecover")
        source = (support.SOURCE / "tests/program/oracle_producer.c").read_text()
        self.program = self.compile_client(source)
        self.folder = self.scratch / "out"
        self.folder.mkdir()
        self.aside = self.scratch / "aside"
        self.aside.mkdir()
        self.own = self.scratch / "own.log"
        self.messages = open(self.scratch / "messages", "a+b")
        self.addCleanup(self.messages.close)
        self.complaints = open(self.scratch / "complaints", "a+b")
        self.addCleanup(self.complaints.close)
        self.rng = random.Random(SEED)
        print(f"# {self._testMethodName}: NL_ORACLE_SEED={SEED} NL_ORACLE_KILLS={KILLS}", flush=True)
        self.host = "127.0.0.1"
        self.port, self.udp = support.free_port(), support.free_port()
        self.options = []
        self.producers = []
        self.proxies = []
        self.server = None
        self.done = Counter()

    # ---- netlogd ----

    def serve(self):
        self.messages.seek(0, os.SEEK_END)
        start = self.messages.tell()
        self.server = self.start(self.netlogd, "--foreground", "--listen", f"x-netlog://{self.host}:{self.port}",
                                 "--listen", f"x-netlog+udp://127.0.0.1:{self.udp}", "--output", self.output, "--log",
                                 self.own, "--recover", "1", *self.options, stderr=self.messages)
        self.said_at = start

    def said(self):
        return (self.scratch / "messages").read_bytes()[self.said_at:].decode(errors="replace")

    def listens(self):
        """Waits until netlogd is in its loop, unless netlogd has ended."""
        def ready():
            self.assertIn(self.server.poll(), (None, -signal.SIGKILL), self.said())
            return "listening on" in self.said()
        support.wait_until(ready, what="netlogd listens")

    def kill(self):
        self.server.kill()
        self.server.wait()
        self.done["kill"] += 1

    # ---- actions on the producer ----

    def moment(self):
        """An action while netlogd runs, before the kill."""
        time.sleep(self.rng.choice([self.rng.uniform(0, 0.02), self.rng.uniform(0, 0.15)]))
        what = self.rng.random()
        if what < 0.1:
            self.server.send_signal(signal.SIGSTOP)
            time.sleep(self.rng.uniform(0, 0.1))
            self.server.send_signal(signal.SIGCONT)
            self.done["stop"] += 1
        elif what < 0.2:
            self.server.send_signal(signal.SIGHUP)
            self.done["hangup"] += 1
        elif what < 0.25:
            self.server.send_signal(signal.SIGTERM)
            self.done["term"] += 1
            time.sleep(self.rng.uniform(0, 0.05))
        time.sleep(self.rng.uniform(0, 0.02))

    def kill_a_producer(self):
        mortals = [p for p in self.producers if p.mortal]
        if not mortals or self.rng.random() > 0.15:
            return
        p = self.rng.choice(mortals)
        p.kill()
        p.start()
        self.done["producer"] += 1

    def storm(self, kills, trouble=lambda: None):
        self.serve()
        while self.done["kill"] < kills:
            if self.rng.random() < 0.8:
                self.listens()
            self.moment()
            trouble()
            self.kill_a_producer()
            self.kill()
            self.serve()
        self.listens()

    # ---- who logs ----

    def blocks(self, name, port=None, options="", threads=2, flush=50, host=None, **more):
        url = f"x-netlog://{host or self.host}:{port or self.port}?policy=block&block=600&timeout=1{options}"
        self.producers.append(Producer(self, "blocks", name, url, threads, 20000, flush, **more))

    def text(self, name, kind="lines", port=None, host=None, **more):
        self.producers.append(Producer(self, kind, name, f"{host or self.host}:{port or self.port}", 5000, **more))

    def spool(self, name):
        return f"&spool={self.scratch}/spool-{name}"

    def proxy(self, **more):
        proxy = Proxy((self.host, self.port), self.rng.randrange(1 << 30), **more)
        self.addCleanup(proxy.close)
        self.proxies.append(proxy)
        return proxy.port

    def crowd(self):
        """Starts producers of every kind."""
        bad = self.proxy()
        self.blocks("direct", flush=20)
        self.blocks("spooled", options=self.spool("spooled"), mortal=True)
        self.blocks("packed", options=self.spool("packed") + "&zstd=3", threads=3, flush=0, mortal=True)
        self.blocks("mortal", threads=1, flush=10, mortal=True)
        near = {"host": "127.0.0.1", "port": bad}
        self.blocks("proxied", **near)
        self.blocks("worst", **near, options=self.spool("worst"), mortal=True)
        self.text("lines")
        self.text("torn", host="127.0.0.1", port=self.proxy(twice=False))
        self.text("short", mortal=True)
        self.text("datagrams", kind="datagrams", host="127.0.0.1", port=self.udp)

    # ---- the end ----

    def finish(self):
        """Ends the disturbances: all programs end normally, and the events that killed programs left are delivered."""
        for proxy in self.proxies:
            proxy.calm = True
        for p in self.producers:
            p.end()
        for p in self.producers:
            status = p.process.wait(120)
            self.assertIn(status, (0, 3) if p.kind == "blocks" else (0,), f"{p.name}: {self.complained()}")
        for p in self.producers:  # delivers the content of its spool
            if "&spool=" in p.where:
                p.where = p.where.replace("&timeout=1", "&timeout=60")  # these producers are not cut off
                p.start()
                support.wait_until(lambda: any(c[3 if p.arguments[2] else 1] for c in p.counts(p.runs - 1)),
                                   what="a first event")
                p.end()
                self.assertEqual(p.process.wait(120), 0, self.complained())

        def recovered():
            self.recovery = self.run_program(self.nlrecover)
            return self.recovery.returncode == 0 and "nothing to recover" in self.recovery.stderr
        try:
            support.wait_until(recovered, 90, "everything is recovered")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.recovery.stderr}") from None
        left = [str(p) for p in self.scratch.glob("spool-*/**/*.spool")]
        self.assertEqual(left, [], "spools are empty")
        self.server.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(60), 0, self.said())
        print(f"# {dict(self.done)} proxies {dict(sum((p.done for p in self.proxies), Counter()))}", flush=True)

    def complained(self):
        return (self.scratch / "complaints").read_text(errors="replace")[-2000:]

    def files(self):
        return sorted(p for p in [*self.aside.iterdir(), *self.folder.iterdir()] if p.suffix in (".log", ".nlb", ".zst"))

    def judge(self):
        """Checks that the output has each acknowledged event once, and each other event at most once."""
        files = [p for p in self.files() if p.stat().st_size > 0]
        verified = self.run_program(self.netlogd, "--verify", *files)
        self.assertNotIn(" at byte ", verified.stdout, "every file is sound")
        self.assertNotIn(" twice", verified.stdout)
        if self.output.endswith(".nlb") or ".nlb?" in self.output:
            result = subprocess.run([self.nlsort, *files], capture_output=True, timeout=120)
            # A late record is in the file after its gap; otherwise the order must be correct.
            for line in result.stderr.splitlines():
                self.assertRegex(line, rb": \d+ records are missing between ")
            text = result.stdout
        else:
            text = b"".join(p.read_bytes() for p in files)
        found, wrong = self.read(text)
        self.problems = [f"not whole: {line[:150]} ... {line[-50:]}" for line in wrong]
        self.total = 0
        for p in self.producers:
            for run in range(p.runs):
                self.judge_run(p, run, found)
        for key, count in found.items():
            if count:
                self.problems.append(f"{key} is in the output {count} times and was never logged")
        self.assertEqual("\n".join(self.problems[:40]), "", self.kept())
        print(f"# {self.total} events", flush=True)

    def kept(self):
        """Keeps the files of a failure if NL_ORACLE_KEEP is set. Returns their directory, or ""."""
        if "NL_ORACLE_KEEP" not in os.environ:
            return ""
        shutil.copytree(self.scratch, f"{self.scratch}.kept", ignore=shutil.ignore_patterns("s"))
        return f"{self.scratch}.kept"

    pattern = re.compile(rb"DATE=\d{14}\.\d{6,9} HOST=\S+ PROG=(\w+) LVL=Usage NL\.EVNT=(Step|Line) RUN=(\d+) T=(\d+) I=(\d+)"
                         rb" V=(.*)")

    def read(self, text):
        """Returns how often each event is in the output, and the wrong lines: partial lines, and reports of lost events."""
        found, wrong = Counter(), []
        self.assertTrue(text.endswith(b"\n"))
        for line in text[:-1].split(b"\n"):
            m = self.pattern.fullmatch(line)
            if m is not None and unquoted(m[6]) == value_of(m[2], int(m[5])):
                found[m[1].decode(), int(m[3]), int(m[4]), int(m[5])] += 1
            elif re.fullmatch(rb"DATE=20260101000000(\.0+)? HOST=h PROG=p LVL=Usage NL.EVNT=Hello", line):
                pass
            elif b" NL.EVNT=NetLogger." not in line:
                wrong.append(line)
            elif b" NL.EVNT=NetLogger.Lost " in line:
                wrong.append(line)
        return found, wrong

    def judge_run(self, p, run, found):
        for thread, (tried, returned, refused, flushed) in enumerate(p.counts(run)):
            who = f"{p.name} run {run}{' (killed)' if run in p.killed else ''} thread {thread}"
            if refused:
                self.problems.append(f"{who}: {refused} events refused")
            wrong = {}
            for i in range(tried):
                count = found.pop((p.name, run, thread, i), 0)
                self.total += count
                if count > 1:
                    wrong.setdefault(f"{count} times", []).append(i)
                elif count == 0 and p.kind == "blocks" and i < returned:
                    wrong.setdefault("lost, acknowledged" if i < flushed else "lost", []).append(i)
            for what, which in wrong.items():
                self.problems.append(f"{who}: of {returned} events {len(which)} {what}: {which[0]} to {which[-1]}")

    # ---- the disk ----

    def small_disk(self):
        """The output is on its own file system, which is sometimes full."""
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        if self.run_program("mount", "-t", "tmpfs", "-o", "size=12m", "none", self.folder).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", self.folder)
        self.ballast = self.scratch / "out" / "ballast"

    def move_aside(self):
        """An archiver removes all numbered files except the newest."""
        for path in sorted(p for p in self.folder.glob("a-*") if p.suffix not in (".index", ".values"))[:-1]:
            for moved in (path, path.with_name(path.name + ".index"), path.with_name(path.name + ".values")):
                if moved.exists():
                    shutil.move(moved, self.aside / moved.name)

    def fill_disk(self):
        try:
            self.ballast.write_bytes(b"x" * (12 << 20))
        except OSError:
            pass
        if self.rng.random() < 0.5:
            os.truncate(self.ballast, max(0, self.ballast.stat().st_size - self.rng.randrange(400 << 10)))
        self.done["full"] += 1

    def disk_trouble(self):
        if self.ballast.exists():
            if self.rng.random() < 0.4:
                self.ballast.unlink()
        elif self.rng.random() < 0.2:
            self.fill_disk()
        elif self.rng.random() < 0.5:  # otherwise, the disk fills without help
            self.move_aside()

    def good_disk(self):
        self.ballast.unlink(missing_ok=True)
        self.mover = threading.Event()

        def move():
            while not self.mover.wait(0.05):
                self.move_aside()
        threading.Thread(target=move, daemon=True).start()
        self.addCleanup(self.mover.set)

    # ---- the link ----

    def in_namespace(self, *command):
        return self.run_program("nsenter", f"--net=/proc/{self.holder.pid}/ns/net", *command)

    def far_away(self):
        """The producers have their own network, with a link to netlogd."""
        if os.geteuid() != 0:
            self.skipTest("a network of its own needs root")
        self.holder = self.start("unshare", "--net", "sleep", "100000", stderr=subprocess.DEVNULL)
        mine = os.readlink("/proc/self/ns/net")
        try:
            support.wait_until(lambda: self.holder.poll() is not None or
                               os.readlink(f"/proc/{self.holder.pid}/ns/net") != mine, what="a network")
        except OSError:
            pass
        self.link = f"nlo{os.getpid() % 1000000}"
        net = f"10.{213 + os.getpid() // 16384 % 32}.{os.getpid() // 64 % 256}.{os.getpid() % 64 * 4}"
        host, prefix = net.rpartition(".")[0], int(net.rpartition(".")[2])
        self.host, far = f"{host}.{prefix + 1}", f"{host}.{prefix + 2}"
        steps = [("ip", "link", "add", self.link, "type", "veth", "peer", "name", "far", "netns", self.holder.pid),
                 ("ip", "address", "add", f"{self.host}/30", "dev", self.link), ("ip", "link", "set", self.link, "up")]
        for step in steps:
            if self.holder.poll() is not None or self.run_program(*step).returncode != 0:
                self.skipTest("network namespaces are not allowed here")
        self.addCleanup(self.run_program, "ip", "link", "delete", self.link)
        for step in [("ip", "address", "add", f"{far}/30", "dev", "far"), ("ip", "link", "set", "far", "up"),
                     ("ip", "link", "set", "lo", "up")]:
            self.assertEqual(self.in_namespace(*step).returncode, 0, step)
        self.options += ["--allow", f"{net}/30"]
        self.there = {"prefix": ("nsenter", f"--net=/proc/{self.holder.pid}/ns/net")}
        self.is_cut = None

    def cut_link(self):
        how = self.rng.choice(["down", "OUTPUT", "INPUT"])
        if how == "down" or self.in_namespace("iptables", "-A", how, "-j", "DROP").returncode != 0:
            how = "down"
            self.run_program("ip", "link", "set", self.link, "down")
        self.is_cut = how
        self.done[f"link {how}"] += 1

    def good_link(self):
        if self.is_cut == "down":
            self.run_program("ip", "link", "set", self.link, "up")
        elif self.is_cut:
            self.in_namespace("iptables", "-F")
        self.is_cut = None

    def link_trouble(self):
        if self.is_cut and self.rng.random() < 0.3:
            self.good_link()
        elif not self.is_cut and self.rng.random() < 0.25:
            self.cut_link()

    def crowd_far_away(self):
        self.blocks("far", **self.there)
        self.blocks("farspooled", options=self.spool("farspooled"), mortal=True, **self.there)
        self.blocks("farpacked", options=self.spool("farpacked") + "&zstd=1", mortal=True, flush=0, **self.there)
        self.text("farlines", mortal=True, **self.there)

    # ---- the tests: each has a part of the kills ----

    text_output = "file:{}/a-{{N}}.log?rotate_size=300k"
    blocks_output = "file:{}/a-{{N}}.nlb?rotate_size=100k&fsync=5ms"

    def storm_and_judge(self, output, trouble=lambda: None, calm=lambda: None):
        self.output = output.format(self.folder)
        times = [time.monotonic()]
        self.storm(max(1, KILLS // 5), trouble)
        times.append(time.monotonic())
        calm()
        self.finish()
        times.append(time.monotonic())
        self.judge()
        times.append(time.monotonic())
        print("#", *(f"{what} {b - a:.1f} s" for what, a, b in zip(["storm", "end", "oracle"], times, times[1:])), flush=True)

    @support.long
    def test_killed_with_text(self):
        self.crowd()
        self.storm_and_judge(self.text_output)

    @support.long
    def test_killed_with_blocks(self):
        self.crowd()
        self.storm_and_judge(self.blocks_output)

    @support.long
    def test_full_disk(self):
        self.small_disk()
        self.crowd()
        self.storm_and_judge(self.text_output, self.disk_trouble, self.good_disk)

    def test_cut_link(self):
        self.far_away()
        self.crowd_far_away()
        self.storm_and_judge(self.text_output, self.link_trouble, self.good_link)

    @support.long
    def test_everything_at_once(self):
        self.small_disk()
        self.far_away()
        self.crowd()
        self.crowd_far_away()

        def trouble():
            self.link_trouble()
            self.disk_trouble()

        def calm():
            self.good_link()
            self.good_disk()
        self.storm_and_judge(self.blocks_output, trouble, calm)


if __name__ == "__main__":
    support.main()
