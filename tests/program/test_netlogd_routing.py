"""Several outputs of one collector, and trees of collectors: filters, kills, full disks and spools, reloads."""
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import support
from producer import KILLER, PROGRAM
from test_netlogd_tls import Authority


def line(number, level="Usage", prog="p"):
    return f"DATE=20260101000000.{number % 1000000:06d} HOST=h PROG={prog} LVL={level} NL.EVNT=E N={number}\n".encode()


class Collector:
    """A netlogd that can be killed and started again, on the same port with the same outputs."""

    def __init__(self, test, name, *outputs, options=()):
        self.test, self.name, self.outputs, self.options = test, name, list(outputs), list(options)
        self.folder = test.scratch / name / "out"
        self.folder.mkdir(parents=True)
        self.messages = self.folder.parent / "messages"
        self.own = self.folder.parent / "own.log"
        self.control = self.folder.parent / "control"
        self.port = support.free_port()
        self.url = f"x-netlog://127.0.0.1:{self.port}"
        self.process = None

    def start(self, environment=None, **options):
        command = [self.test.netlogd, "--foreground", "--listen", self.url, "--log", self.own, "--recover", "0",
                   "--control", f"unix:{self.control}", *self.options]
        for output in self.outputs:
            command += ["--output", output]
        before = self.said()
        with open(self.messages, "ab") as messages:
            self.process = self.test.start(*command, stderr=messages, cwd=self.folder,
                                           env=dict(os.environ, **(environment or {})), **options)
        support.wait_until(lambda: self.process.poll() is not None or "listening" in self.said()[len(before):],
                           what=f"{self.name} listens")
        if environment is None:
            self.test.assertIsNone(self.process.poll(), self.said())
        return self

    def said(self):
        return self.messages.read_text(errors="replace") if self.messages.exists() else ""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.send(b"")  # then it is in its loop
        self.process.send_signal(signal.SIGTERM)
        self.test.assertEqual(self.process.wait(30), 0, self.said())

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            self.test.assertEqual(s.recv(1), b"")

    def ask(self, *words):
        result = self.test.run_program(self.test.netlogctl, "--control", self.control, "--json", *words)
        self.test.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout) if result.stdout.strip() else None

    def output(self, part):
        """Returns the status of the output whose URL has this part."""
        found = [o for o in self.ask("status")["OUTPUTS"] if part in o["OUTPUT"]]
        self.test.assertEqual(len(found), 1, found)
        return found[0]

    def waits_for_nothing(self):
        support.wait_until(lambda: all(o.get("SPOOLED", 0) == 0 for o in self.ask("status")["OUTPUTS"]),
                           what=f"{self.name} delivers all")


class Link:
    """A proxy to a port. The proxy passes a number of bytes, and then nothing until the test opens the proxy. The test can cut
    the proxy's connections."""

    def __init__(self, test, port, allowed):
        self.port, self.allowed, self.passed = port, allowed, 0
        self.moved = threading.Condition()
        self.sockets = []
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = "x-netlog://127.0.0.1:%d" % self.listening.getsockname()[1]
        test.addCleanup(self.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                here = self.listening.accept()[0]
            except OSError:
                return
            try:
                there = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            except OSError:
                here.close()
                continue
            self.sockets += [here, there]
            threading.Thread(target=self.carry, args=(here, there, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(there, here, False), daemon=True).start()

    def carry(self, here, there, counted):
        try:
            while data := here.recv(16 << 10):
                with self.moved:
                    while counted and self.passed + len(data) > self.allowed:
                        self.moved.wait()
                    self.passed += len(data) if counted else 0
                there.sendall(data)
        except OSError:
            pass
        for s in (here, there):
            s.close()

    def broken(self):
        """Returns the number of connections that the clients have closed."""
        poll = select.poll()
        for s in self.sockets[::2]:
            poll.register(s, select.POLLRDHUP)
        return len(poll.poll(0))

    def open(self):
        with self.moved:
            self.allowed = float("inf")
            self.moved.notify_all()

    def close(self):
        self.listening.close()
        self.open()
        for s in self.sockets:
            s.close()


class Routing(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.netlogctl = support.program("netlogd/netlogctl")

    def collector(self, name, *outputs, **options):
        return Collector(self, name, *outputs, **options)

    def client(self, collector, name, count, pause, options="", **more):
        url = f"{collector.url}?policy=block&block=60{options}"
        return self.start(self.program, name, url, str(count), str(pause), stderr=subprocess.PIPE, **more)

    def finish(self, *clients, seconds=100):
        for client in clients:
            self.assertEqual(client.wait(seconds), 0, client.stderr.read())

    def text(self, *paths, sound=True):
        """Returns the files' content as text. If `sound` is true, checks that no record of their streams is missing."""
        text = ""
        for path in paths:
            if path.exists() and path.stat().st_size > 0:
                result = self.run_program(support.program("nlsort/nlsort"), path)
                self.assertTrue(not sound or (result.returncode == 0 and not result.stderr), result.stderr)
                text += result.stdout
        return text

    def numbers(self, name, text):
        return sorted(int(n) for n in re.findall(rf" PROG={name} LVL=Usage NL.EVNT=Step I=(\d+) ", text))

    def is_sound(self, *paths):
        result = self.run_program(self.netlogd, "--verify", *paths)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    # ---- filters ----

    def test_each_output_has_what_it_is_meant_for(self):
        c = self.collector("c", "all.log", "file:bad.log?where=LVL <= Warning",
                           "file:odd.nlb?where=PROG == q and N > 5 %26%26 N < 9", "file:none-{N}.log?where=has NOTHING").start()
        self.program = self.compile_client(PROGRAM)
        levels = ["Error", "Usage", "Warning", "Debug"]
        lines = [line(n, levels[n % 4], "pq"[n % 2]) for n in range(20)]
        c.send(b"".join(lines))
        self.finish(self.client(c, "binary", 5000, 0))
        outputs = {o["OUTPUT"]: o for o in c.ask("status")["OUTPUTS"]}
        self.assertEqual({name: o["RECORDS"] for name, o in outputs.items()},
                         {"all.log": 5020, "file:bad.log": 10, "file:odd.nlb": 1, "file:none-{N}.log": 0})
        self.assertEqual(outputs["file:bad.log"]["WHERE"], "LVL <= Warning")
        c.stop()
        text = (c.folder / "all.log").read_bytes()
        self.assertEqual(b"".join(l for l in text.splitlines(True) if b"PROG=binary" not in l), b"".join(lines))
        self.assertEqual(self.numbers("binary", text.decode()), list(range(5000)))
        self.assertEqual((c.folder / "bad.log").read_bytes(), b"".join(lines[::2]))
        self.assertEqual(self.text(c.folder / "odd.nlb"), lines[7].decode())
        self.assertEqual((c.folder / "none-000001.log").read_bytes(), b"")
        self.is_sound(c.folder / "odd.nlb")

    def test_what_is_chosen_of_blocks_is_not_taken_for_loss(self):
        c = self.collector("c", "file:some.nlb?where=I < 100 or I >= 4900").start()
        self.program = self.compile_client(PROGRAM)
        self.finish(self.client(c, "binary", 5000, 0))
        c.stop()
        self.assertEqual(self.numbers("binary", self.text(c.folder / "some.nlb")), [*range(100), *range(4900, 5000)])
        self.is_sound(c.folder / "some.nlb")

    def test_wrong_outputs(self):
        for outputs, status, why in [
                (["a.log", "file:a.log?zstd=1"], 1, "has the same destination"),
                ([f"file:{self.scratch}/a-{{N}}.log", f"file:{self.scratch}/a-{{N}}.nlb"], 1, "has the same destination"),
                (["file:a.log?where=LVL <"], 2, "column 6"),
                ([f"x-netlog://127.0.0.1?spool={self.scratch}/s&spool_size=1k"], 2, "option spool_size: 1k is out of range; use at least 1m"),
                ([f"x-netlog://127.0.0.1?spool={self.scratch}/s&ca=x"], 2, "is valid only in x-netlogs otlp otlp+http URLs"),
                ([f"x-syslog://user?spool={self.scratch}/s&format=nlb"], 2, "requires a text format")]:
            command = [self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/s.sock"]
            for output in outputs:
                command += ["--output", output]
            result = self.run_program(*command, cwd=self.scratch)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(why, result.stderr)

    def test_a_spool_is_of_one_process(self):
        output = f"x-netlog://127.0.0.1:1?spool={self.scratch}/spool"
        self.collector("a", output).start()
        other = self.run_program(self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/s.sock", "--output", output)
        self.assertEqual(other.returncode, 1)
        self.assertIn("is in use by another process", other.stderr)

    def test_a_spool_of_another_user(self):
        spool = self.scratch / "spool"
        output = f"x-netlog://127.0.0.1:1?spool={spool}"
        command = [self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/s.sock", "--output", output]
        inside = spool / "x-netlog___127.0.0.1_1.nlb"
        inside.mkdir(parents=True)
        for folder in (spool, inside):
            folder.chmod(0o777)
            refused = self.run_program(*command)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"other users can write to {folder}, which belongs to user ID {os.geteuid()}", refused.stderr)
            folder.chmod(0o755)
            if os.geteuid() == 0:
                os.chown(folder, 65534, 65534)
                refused = self.run_program(*command)
                self.assertEqual(refused.returncode, 1)
                self.assertIn(f"{folder} belongs to user ID 65534, not to user ID 0", refused.stderr)
                os.chown(folder, 0, 0)
        if os.geteuid() == 0:  # the other user could replace the link after the check
            elsewhere = self.scratch / "elsewhere"
            inside.rename(elsewhere)
            inside.symlink_to(elsewhere)
            os.lchown(inside, 65534, 65534)
            refused = self.run_program(*command)
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"{inside} belongs to user ID 65534, not to user ID 0", refused.stderr)
            os.lchown(inside, 0, 0)
        self.collector("a", output).start()

    # ---- exactly once ----

    def killer(self):
        """Returns an environment in which netlogd kills itself at the KILL_ATth call that changes a file of its outputs."""
        killer = self.compile_preloaded("killer.so", KILLER)
        return {"LD_PRELOAD": str(killer), "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def test_killed_at_calls_with_several_outputs(self):
        self.program = self.compile_client(PROGRAM)
        killer = self.killer()
        top = self.collector("top", "top.nlb").start()
        c = self.collector("c", "all.log", "a-{N}.nlb?rotate_size=20k&fsync=5ms".join(["file:", ""]),
                           "file:even.nlb?where=I ~ *[02468]", f"{top.url}?spool=spool")
        rng = random.Random(7)
        spool = f"&spool={self.scratch}/spool&timeout=5"
        killed = rounds = 0
        kills = support.representative(13, 6)
        while killed < kills:
            self.assertLess(i := rounds, 4 * kills)
            rounds += 1
            c.start({**killer, "KILL_AT": str(rng.randrange(1, 40))})
            client = self.client(c, f"c{i}", 3000, 1000, spool)  # undelivered events wait on disk for the next run
            self.finish(client)
            killed += c.process.poll() is not None
            c.kill()
        c.start()
        self.finish(self.client(c, "last", 1, 0, spool + "&timeout=60"))
        c.waits_for_nothing()
        c.stop()
        top.stop()
        texts = [self.text(c.folder / "all.log"), self.text(*sorted(c.folder.glob("a-*.nlb"))),
                 self.text(c.folder / "even.nlb"), self.text(top.folder / "top.nlb")]
        for i in range(rounds):
            for which, text in enumerate(texts):
                self.assertEqual(self.numbers(f"c{i}", text), list(range(0, 3000, 2 if which == 2 else 1)), (i, which))
        self.is_sound(top.folder / "top.nlb")
        self.is_sound(*sorted(c.folder.glob("a-*.nlb")))

    def test_killed_at_calls_while_outputs_come_and_go(self):
        self.program = self.compile_client(PROGRAM)
        killer = self.killer()
        some = ["b.nlb", "file:odd.log?where=I ~ *[13579]", "file:c-{N}.nlb?rotate_size=20k&fsync=flush"]
        c = self.collector("c", "all.log")
        rng = random.Random(8)
        spool = f"&spool={self.scratch}/spool&timeout=5"
        rounds = support.representative(25, 10)
        for i in range(rounds):
            c.outputs = ["all.log", *rng.sample(some, rng.randrange(4))]
            rng.shuffle(c.outputs)
            c.start({**killer, "KILL_AT": str(rng.randrange(1, 30))})
            self.finish(self.client(c, f"c{i}", 3000, 1000, spool))
            if rng.random() < 0.3 and c.process.poll() is None:
                c.stop()
            else:
                c.kill()
        c.start()
        self.finish(self.client(c, "last", 1, 0, spool + "&timeout=60"))
        c.stop()
        for name in ("all.log", "b.nlb", "odd.log", "c-*.nlb"):
            text = self.text(*sorted(c.folder.glob(name)))
            for i in range(rounds):
                found = self.numbers(f"c{i}", text)
                self.assertEqual(len(found), len(set(found)), "nothing twice")
                if name == "all.log":
                    self.assertEqual(found, list(range(3000)))

    def tree(self, *top_outputs, where=""):
        """Two collectors that forward to a third."""
        top = self.collector("top", *top_outputs).start()
        lower = [self.collector(f"low{i}", "low.log", f"{top.url}?spool=spool{where}").start() for i in range(2)]
        return top, lower

    def kill_in_tree(self, kills, seed, where, expected):
        self.program = self.compile_client(PROGRAM)
        top, lower = self.tree("top.nlb", "file:top.err?where=LVL <= Warning", "file:odd.log?where=I ~ *[13579]", where=where)
        rng = random.Random(seed)
        spool = f"&timeout=5&spool={self.scratch}/spool"  # undelivered events of a client wait for the last run
        clients = [self.client(c, f"c{i}{k}", "-", 10000, spool, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                   for i, c in enumerate(lower) for k in range(2)]
        for _ in range(kills):
            time.sleep(rng.uniform(0.01, 0.12))
            victim = rng.choice([top, *lower])
            victim.kill()
            victim.start()
        for client in clients:
            client.stdin.close()
        self.finish(*clients)
        counts = [int(client.stdout.read()) for client in clients]
        for c in lower:
            self.finish(self.client(c, "last", 1, 0, spool + "&timeout=60"))
            c.waits_for_nothing()
            c.stop()
        top.stop()
        text, odd = self.text(top.folder / "top.nlb"), (top.folder / "odd.log").read_text()
        for i in range(2):
            for k in range(2):
                name, count = f"c{i}{k}", counts[2 * i + k]
                self.assertEqual(self.numbers(name, (lower[i].folder / "low.log").read_text()), list(range(count)))
                self.assertEqual(self.numbers(name, text), [n for n in range(count) if expected(n)])
                self.assertEqual(self.numbers(name, odd), [n for n in range(1, count, 2) if expected(n)])
        self.is_sound(top.folder / "top.nlb")

    @support.long
    def test_a_tree_with_kills(self):
        self.kill_in_tree(25, 1, "", lambda n: True)

    @support.long
    def test_a_tree_with_kills_and_a_filter(self):
        self.kill_in_tree(25, 2, "&where=I < 8000", lambda n: n < 8000)

    def test_text_is_forwarded_once(self):
        top = self.collector("top", "top.log").start()
        c = self.collector("c", f"{top.url}?spool=spool").start()
        for round in range(10):
            c.send(b"".join(line(round * 1000 + n) for n in range(1000)))
            top.kill()
            top.start()
        c.waits_for_nothing()
        c.stop()
        top.stop()
        found = sorted(int(n) for n in re.findall(r" N=(\d+)", (top.folder / "top.log").read_text()))
        self.assertEqual(found, list(range(10000)))

    def test_blocks_keep_their_streams(self):
        top = self.collector("top", "file:top.nlb?zstd=0").start()
        c = self.collector("c", "file:low.nlb?zstd=0", f"{top.url}?spool=spool").start()
        self.program = self.compile_client(PROGRAM)
        self.finish(self.client(c, "c", 20000, 100))
        c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual((top.folder / "top.nlb").read_bytes(), (c.folder / "low.nlb").read_bytes())

    def test_forwarding_within_tls(self):
        authority = Authority(self, "house")
        port = support.free_port()
        top = self.collector("top", "top.log", options=[
            "--listen", f"x-netlogs://127.0.0.1:{port}?cert={authority.certify('server')}&ca={authority.ca}"]).start()
        url = f"x-netlogs://127.0.0.1:{port}?spool=spool&ca={authority.ca}"
        c = self.collector("c", url).start()
        c.send(line(1))
        support.wait_until(lambda: "AWAY" in c.output(f":{port}"), what="that it is refused")
        c.stop()
        c.outputs = [f"{url}&cert={authority.certify('client')}"]
        c.start()
        c.send(line(2))
        c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual((top.folder / "top.log").read_bytes(), line(1) + line(2))

    def test_a_collector_that_forwards_to_itself(self):
        c = self.collector("c", "all.log")
        c.outputs.append(f"{c.url}?spool=spool")
        c.start()
        self.program = self.compile_client(PROGRAM)
        self.finish(self.client(c, "c", 5000, 100))
        c.send(line(1) + line(2))
        c.waits_for_nothing()
        self.assertEqual([s["NEXT"] for s in c.ask("streams")], [5000], "its own stream is not to come in")
        c.stop()
        text = (c.folder / "all.log").read_text()
        self.assertEqual(self.numbers("c", text), list(range(5000)))
        self.assertEqual(text.count(" N=1\n"), 1)

    # ---- unreachable and full outputs ----

    def test_the_upper_collector_is_away(self):
        self.program = self.compile_client(PROGRAM)
        top, lower = self.tree("top.nlb")
        top.kill()
        c = lower[0]
        self.finish(self.client(c, "a", 30000, 100))
        support.wait_until(lambda: "AWAY" in c.output(top.url), what="that it is away")
        self.assertGreater(c.output(top.url)["SPOOLED"], 0)
        c.stop()  # it does not wait for unreachable outputs
        c.start()
        self.finish(self.client(c, "b", 30000, 100))
        top.start()
        c.waits_for_nothing()
        self.assertNotIn("AWAY", c.output(top.url))
        for one in (*lower, top):
            one.stop()
        text = self.text(top.folder / "top.nlb")
        for name in "ab":
            self.assertEqual(self.numbers(name, text), list(range(30000)))
        self.assertEqual([p.name for p in (c.folder / "spool").glob("*/spool-*")],
                         [sorted(p.name for p in (c.folder / "spool").glob("*/spool-*"))[-1]], "delivered files are removed")

    def test_a_slow_link_gets_on(self):
        top = self.collector("top", "top.log").start()
        link = Link(self, top.port, 900 << 10)
        c = self.collector("c", f"{link.url}?spool=spool&zstd=0")
        lines = [line(n)[:-1] + b" TEXT=%s\n" % os.urandom(300).hex().encode() for n in range(10000)]
        top_port, link.port = link.port, support.free_port()
        c.start()
        c.send(b"".join(lines))
        support.wait_until(lambda: c.output(link.url)["SPOOLED"] > 5 << 20, what="that all waits")
        link.port = top_port
        support.wait_until(lambda: c.output(link.url)["DELIVERED"] > 0, what="that what was passed counts")
        link.open()
        c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual(len((top.folder / "top.log").read_bytes().splitlines()), len(lines))

    def test_a_peer_that_hangs_holds_the_end_up_no_longer_than_is_said(self):
        hanging = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(hanging.close)
        url = "x-netlog://127.0.0.1:%d" % hanging.getsockname()[1]
        c = self.collector("c", "all.log", f"{url}?spool=spool", options=["--stop-timeout", "1", "--pid-file", self.scratch / "pid"])
        c.start()
        c.send(line(1))
        peer = hanging.accept()[0]  # a server that accepts and never answers
        self.addCleanup(peer.close)
        c.stop()
        self.assertIn("netlogd: exiting after 1 s with undelivered records", c.said())
        self.assertFalse((self.scratch / "pid").exists())
        self.assertEqual((c.folder / "all.log").read_bytes(), line(1))
        top = self.collector("top", "top.log").start()
        c.outputs = ["all.log", f"{top.url}?spool=spool"]
        (c.folder / "spool").rename(c.folder / "old")  # kept records are delivered, here to another collector
        (c.folder / "spool").mkdir()
        name = re.sub(r"[^A-Za-z0-9.-]", "_", top.url) + ".nlb"
        next((c.folder / "old").iterdir()).rename(c.folder / "spool" / name)
        c.start()
        c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual((top.folder / "top.log").read_bytes(), line(1))

    def test_nobody_reads_a_pipe(self):
        """The clients wait, but netlogd does not wait, and ends without delay. After the output is read again, no
        record is missing."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        c = self.collector("c", "-", options=["--stop-timeout", "2"]).start(stdout=writer)
        os.close(writer)
        lines = b"".join(line(n) for n in range(20000))
        sender = threading.Thread(target=c.send, args=(lines,))
        sender.start()
        support.wait_until(lambda: "the process at the other end is not reading" in c.said(), what="the message")
        self.assertTrue(c.ask("status")["BLOCKED"])
        came = b""
        while len(came) < len(lines):
            came += os.read(reader, 1 << 16)
        sender.join()
        self.assertTrue(came == lines)
        support.wait_until(lambda: not c.ask("status")["BLOCKED"], what="that it goes on")
        sender = threading.Thread(target=lambda: socket.create_connection(("127.0.0.1", c.port)).sendall(lines))
        sender.start()
        support.wait_until(lambda: c.ask("status")["BLOCKED"], what="that it waits again")
        c.process.send_signal(signal.SIGTERM)
        self.assertEqual(c.process.wait(30), 1, c.said())
        self.assertIn("the process at the other end is not reading; the latest records are lost", c.said())
        sender.join()

    def test_a_full_spool_holds_clients_up(self):
        self.program = self.compile_client(PROGRAM)
        top = self.collector("top", "top.nlb")
        c = self.collector("c", "all.log", f"{top.url}?spool=spool&spool_size=1m").start()
        clients = [self.client(c, f"c{i}", 200000, 0, "&timeout=60") for i in range(2)]
        support.wait_until(lambda: "is full" in c.said(), what="the message")
        status = c.ask("status")
        self.assertTrue(status["BLOCKED"])
        self.assertTrue(c.output(top.url)["BLOCKED"])
        self.assertFalse(c.output("all.log")["BLOCKED"])
        c.kill()  # in the middle of it
        c.start()
        size = sum(p.stat().st_size for p in (c.folder / "spool").rglob("*"))
        self.assertLess(size, 3 << 20)
        top.start()
        self.finish(*clients)
        c.waits_for_nothing()
        c.stop()
        top.stop()
        for text in (self.text(top.folder / "top.nlb"), (c.folder / "all.log").read_text()):
            for i in range(2):
                self.assertEqual(self.numbers(f"c{i}", text), list(range(200000)))

    def test_a_full_disk_of_one_output(self):
        small = self.scratch / "small"
        small.mkdir()
        if os.geteuid() != 0 or self.run_program("mount", "-t", "tmpfs", "-o", "size=1m", "none", small).returncode != 0:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", small)
        self.program = self.compile_client(PROGRAM)
        c = self.collector("c", "all.log", f"file:{small}/tiny.log", "other.nlb").start()
        spool = f"&timeout=5&spool={self.scratch}/spool"
        clients = [self.client(c, f"c{i}", 20000, 100, spool) for i in range(2)]
        support.wait_until(lambda: "No space left" in c.said(), what="the message")
        self.assertTrue(c.output("tiny.log")["BLOCKED"])
        self.assertFalse(c.output("all.log")["BLOCKED"])
        c.kill()
        self.run_program("mount", "-o", "remount,size=64m", small)
        c.start()
        self.finish(*clients)
        self.finish(self.client(c, "last", 1, 0, spool + "&timeout=60"))
        c.stop()
        for path in (c.folder / "all.log", small / "tiny.log", c.folder / "other.nlb"):
            for i in range(2):
                self.assertEqual(self.numbers(f"c{i}", self.text(path)), list(range(20000)), path)

    def test_room_is_made_by_removing_what_is_written(self):
        small = self.scratch / "small"
        small.mkdir()
        if os.geteuid() != 0 or self.run_program("mount", "-t", "tmpfs", "-o", "size=1m", "none", small).returncode != 0:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", small)
        for output, path in ((f"file:{small}/a-{{N}}.log", "a-*.log"), (f"{small}/one.log", "one.log")):
            c = self.collector(path[:3], output).start()
            with socket.create_connection(("127.0.0.1", c.port), timeout=60) as s:
                for n in range(25000):
                    s.sendall(line(n))
                s.shutdown(socket.SHUT_WR)
                support.wait_until(lambda: "No space left" in c.said(), what="the message")
                next(small.glob(path)).unlink()
                support.wait_until(lambda: "can write to all outputs again" in c.said(), what="that it goes on")
                self.assertEqual(s.recv(1), b"")
            c.stop()
            self.assertIn(line(24999), b"".join(p.read_bytes() for p in small.glob(path)))
            for p in small.iterdir():
                p.unlink()

    # ---- reload ----

    def reload(self, c, *outputs):
        self.config.write_text("".join(f"output {o}\n" for o in outputs))
        return self.run_program(self.netlogctl, "--control", c.control, "reload")

    def test_reload_changes_outputs(self):
        self.config = self.scratch / "netlogd.conf"
        self.config.write_text("output a.log\noutput file:b.log?where=N < 10\n")
        top = self.collector("top", "top.log").start()
        c = self.collector("c", options=["--config", self.config]).start()
        c.send(b"".join(line(n) for n in range(0, 20)))
        self.assertEqual(self.reload(c, "a.log", "file:b.log?where=N >= 30", f"{top.url}?spool=spool").returncode, 0, c.said())
        c.send(b"".join(line(n) for n in range(20, 40)))
        bad = self.reload(c, "a.log", "file:b.log?where=N >=", "new.log")
        self.assertEqual(bad.returncode, 1)
        self.assertIn(f"{self.config}:2: output: option where: filter", c.said())
        self.assertIn("column 5", c.said())
        for text in (f"{self.config}:2: output: option where: filter", "column 5"):
            self.assertIn(text, bad.stderr, "who asked is told as much")
        bad = self.reload(c, "a.log", "no/new.log")
        self.assertEqual(bad.returncode, 1)
        self.assertIn("open no/new.log: No such file", c.said())
        self.assertIn("open no/new.log: No such file", bad.stderr)
        c.send(b"".join(line(n) for n in range(40, 60)))
        self.assertEqual(self.reload(c, "file:b.log?where=N >= 30", "file:c.nlb").returncode, 0, c.said())
        c.send(b"".join(line(n) for n in range(60, 80)))
        self.assertEqual([o["OUTPUT"] for o in c.ask("status")["OUTPUTS"]], ["file:b.log", "file:c.nlb"])
        c.stop()
        support.wait_until(lambda: (top.folder / "top.log").read_bytes().count(b"\n") == 40, what="all is forwarded")
        top.stop()
        lines = [line(n) for n in range(80)]
        self.assertEqual((c.folder / "a.log").read_bytes(), b"".join(lines[:60]))
        self.assertEqual((c.folder / "b.log").read_bytes(), b"".join(lines[:10] + lines[30:]))
        self.assertEqual((top.folder / "top.log").read_bytes(), b"".join(lines[20:60]))
        self.assertEqual(self.text(c.folder / "c.nlb"), b"".join(lines[60:]).decode())

    def test_a_kill_leaves_no_file_that_was_delivered(self):
        top = self.collector("top", "top.log").start()
        c = self.collector("c", f"{top.url}?spool=spool")
        for n in range(4):  # each start begins another file
            c.start()
            c.send(line(n))
            c.waits_for_nothing()
            c.stop()
        spool, = (c.folder / "spool").iterdir()
        self.assertGreater(int((spool / "delivered").read_text().split()[0]), 2)
        for n in (1, 2):  # as after a kill between the journal entry and the removal of the files
            (spool / f"spool-{n:06d}.nlb").write_bytes(b"delivered")
        c.start()
        c.send(line(4))
        c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual([n for n in (1, 2) if (spool / f"spool-{n:06d}.nlb").exists()], [])
        self.assertEqual((top.folder / "top.log").read_bytes(), b"".join(line(n) for n in range(5)))

    def test_that_it_cannot_note_what_was_delivered_is_said_once(self):
        top = self.collector("top", "top.log").start()
        c = self.collector("c", f"{top.url}?spool=spool").start()
        c.stop()
        spool, = (c.folder / "spool").iterdir()
        (spool / "delivered").unlink()
        (spool / "delivered").symlink_to("/dev/full")
        c.start()
        for n in range(3):
            c.send(line(n))
            c.waits_for_nothing()
        c.stop()
        top.stop()
        self.assertEqual((top.folder / "top.log").read_bytes(), b"".join(line(n) for n in range(3)))
        self.assertEqual(c.said().count("/delivered: No space left on device"), 1, c.said())

    def test_nobody_waits_for_an_output_that_goes(self):
        self.config = self.scratch / "netlogd.conf"
        top = self.collector("top", "top.log").start()
        link = Link(self, top.port, 30 << 10)
        forward = f"{link.url}?spool=spool&zstd=0"
        self.config.write_text(f"output all.log\noutput {forward}\n")
        c = self.collector("c", options=["--config", self.config]).start()
        lines = [line(n)[:-1] + b" TEXT=%s\n" % os.urandom(300).hex().encode() for n in range(2000)]
        c.send(b"".join(lines[:1000]))
        support.wait_until(lambda: link.passed > 0, what="that it is on its way")
        self.assertEqual(self.reload(c, "all.log").returncode, 0, c.said())
        self.assertEqual((link.broken(), len(link.sockets)), (0, 2), "it has given up before it was answered")
        c.send(lines[1000])
        self.assertEqual(self.reload(c, "all.log", forward).returncode, 0, c.said())
        c.send(b"".join(lines[1001:]))
        link.open()
        c.waits_for_nothing()
        self.assertEqual(self.reload(c, "all.log").returncode, 0, c.said())
        c.stop()
        top.stop()
        self.assertEqual((c.folder / "all.log").read_bytes(), b"".join(lines))
        self.assertEqual((top.folder / "top.log").read_bytes(), b"".join(lines[:1000] + lines[1001:]))

    def test_one_that_is_away_and_back_is_logged(self):
        top = self.collector("top", "top.log")
        c = self.collector("c", f"{top.url}?spool=spool").start()
        c.send(line(1))
        support.wait_until(lambda: c.output(top.url).get("FAILURES", 0) >= 3, what="that it fails again and again")
        top.start()
        c.waits_for_nothing()
        c.stop()
        top.stop()
        own = c.own.read_text()
        away = re.findall(r" LVL=Warning NL.EVNT=Netlogd.OutputAway OUTPUT=(\S+) REASON=(.*) SPOOLED=[1-9]\d*\n", own)
        self.assertEqual(len(away), own.count("OutputAway"))
        self.assertEqual(away[0][0], top.url)
        self.assertIn("Connection refused", away[0][1])
        self.assertLess(len(away), 3)
        self.assertEqual(len(re.findall(rf"Netlogd.OutputBack OUTPUT={top.url} SECONDS=\d", own)), 1)

    def test_a_removed_file_of_a_spool_is_reported(self):
        top = self.collector("top", "top.log")
        c = self.collector("c", f"{top.url}?spool=spool&spool_size=1m&zstd=0").start()
        for i in range(0, 20000, 1000):
            c.send(b"".join(line(n) for n in range(i, i + 1000)))
        support.wait_until(lambda: "AWAY" in c.output(top.url), what="that it is away")
        files = sorted((c.folder / "spool").glob("*/spool-*"))
        self.assertGreater(len(files), 2)
        removed = self.text(files[1]).count(" NL.EVNT=E ")
        self.assertGreater(removed, 0)
        files[1].unlink()
        top.start()
        c.waits_for_nothing()
        self.assertEqual(c.output(top.url)["MISSING"], 1)
        c.stop()
        top.stop()
        self.assertEqual(c.own.read_text().count(f" LVL=Warning NL.EVNT=Netlogd.SpoolMissing OUTPUT={top.url} FILE="), 1)
        self.assertIn(f"{files[1].name}\n", c.own.read_text())
        self.assertEqual(len((top.folder / "top.log").read_text().splitlines()), 20000 - removed)

    def test_reloads_and_kills_lose_nothing(self):
        self.program = self.compile_client(PROGRAM)
        self.config = self.scratch / "netlogd.conf"
        self.config.write_text("output all.nlb\n")
        top = self.collector("top", "top.nlb").start()
        c = self.collector("c", options=["--config", self.config]).start()
        spool = f"&timeout=5&spool={self.scratch}/spool"
        clients = [self.client(c, f"c{i}", 100000, 2000, spool) for i in range(2)]
        rng = random.Random(3)
        extra = ["b.log", "file:some-{N}.nlb?rotate_size=50k&where=I < 30000", "file:all.nlb?fsync=flush",
                 f"{top.url}?spool=spool", f"{top.url}?spool=spool&where=I > 1000"]
        for i in range(support.representative(30, 16)):
            time.sleep(rng.uniform(0.01, 0.15))
            chosen = rng.sample(extra, rng.randrange(len(extra)))
            first = "file:all.nlb?fsync=flush" in chosen
            if sum(o.startswith("x-netlog") for o in chosen) == 2:
                chosen.remove(extra[-1])
            result = self.reload(c, *([] if first else ["all.nlb"]), *chosen)
            self.assertEqual(result.returncode, 0, c.said())
            if i % 4 == 3:
                c.kill()
                c.start()
        self.assertEqual(self.reload(c, "all.nlb", f"{top.url}?spool=spool").returncode, 0, c.said())
        self.finish(*clients)
        self.finish(self.client(c, "last", 1, 0, spool + "&timeout=60"))
        c.waits_for_nothing()
        c.stop()
        top.stop()
        text = self.text(c.folder / "all.nlb")
        other = self.text(top.folder / "top.nlb", sound=False)  # this output lacks the records from the time without forwarding
        more = self.text(*c.folder.glob("b.log"), *c.folder.glob("some-*.nlb"))
        for i in range(2):
            self.assertEqual(self.numbers(f"c{i}", text), list(range(100000)))
            found = self.numbers(f"c{i}", other)
            self.assertEqual(len(found), len(set(found)), "nothing twice")
            for path in ([c.folder / "b.log"], sorted(c.folder.glob("some-*.nlb"))):
                found = self.numbers(f"c{i}", self.text(*path))
                self.assertEqual(len(found), len(set(found)), "nothing twice")
        self.assertTrue(more)

    # ---- syslog ----

    def test_syslog(self):
        rsyslogd = shutil.which("rsyslogd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if rsyslogd is None:
            self.skipTest("no rsyslogd here")
        if os.geteuid() != 0 or self.run_program("unshare", "-m", "true").returncode != 0:
            self.skipTest("a /dev of its own needs root")
        c = self.collector("c", "all.log", "x-syslog://local3?spool=spool&where=LVL <= Warning")
        socket_path, log = self.scratch / "log.sock", self.scratch / "syslog"
        conf = self.scratch / "rsyslog.conf"
        conf.write_text(f'module(load="imuxsock" SysSock.Use="off")\n'
                        f'input(type="imuxsock" Socket="{socket_path}" RateLimit.Interval="0")\n'
                        f'template(name="t" type="string" string="%syslogfacility-text% %syslogseverity-text% %programname%%msg%\\n")\n'
                        f'action(type="omfile" file="{log}" template="t")\n')
        # In the test's mount namespace, /dev/log is the socket of that rsyslogd.
        wrapper = self.scratch / "with-log"
        wrapper.write_text(f'#!/bin/sh\nexec unshare -m sh -c \'mount -t tmpfs none /mnt && for n in null zero random urandom; do '
                           f'touch /mnt/$n && mount --bind /dev/$n /mnt/$n; done && mkdir -p /mnt/shm && mount --bind /dev/shm /mnt/shm && '
                           f'mount --move /mnt /dev && ln -s {socket_path} /dev/log && exec "$@"\' sh {self.netlogd} "$@"\n')
        wrapper.chmod(0o755)
        self.netlogd = str(wrapper)
        c.start()
        c.send(b"".join(line(n, "Error" if n % 2 else "Usage") for n in range(100)))
        support.wait_until(lambda: "AWAY" in c.output("x-syslog"), what="that syslog is away")
        daemon = self.start(rsyslogd, "-n", "-f", conf, "-i", self.scratch / "rsyslog.pid", stderr=subprocess.DEVNULL)
        c.waits_for_nothing()
        c.stop()
        support.wait_until(lambda: log.exists() and log.read_text().count("\n") >= 50, what="syslog's file")
        daemon.terminate()
        daemon.wait(20)
        wanted = [f"local3 err netlogd {line(n, 'Error').decode()}" for n in range(1, 100, 2)]
        self.assertEqual(log.read_text(), "".join(wanted))

    # ---- reports to the user ----

    def test_metrics_of_each_output(self):
        port = support.free_port()
        c = self.collector("c", "all.log", 'file:a"b.log?where=N < 5', "x-netlog://127.0.0.1:1?spool=spool",
                           options=["--metrics", f"http://127.0.0.1:{port}"]).start()
        c.send(b"".join(line(n) for n in range(10)))
        support.wait_until(lambda: "AWAY" in c.output("x-netlog"), what="that it is away")
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20).read().decode()
        self.assertIn('netlogd_output_records_total{output="all.log"} 10\n', text)
        self.assertIn('netlogd_output_records_total{output="file:a\\"b.log"} 5\n', text)
        self.assertRegex(text, r'netlogd_output_spooled_bytes\{output="x-netlog://127.0.0.1:1"\} [1-9]')
        self.assertIn('netlogd_output_is_blocked{output="all.log"} 0\n', text)
        plain = self.run_program(self.netlogctl, "--control", c.control, "status")
        self.assertRegex(plain.stdout, r"OUTPUT +KIND +FORMAT +RECORDS")
        self.assertRegex(plain.stdout, r"x-netlog://127.0.0.1:1 +forward +nlb")
        c.stop()


if __name__ == "__main__":
    support.main()
