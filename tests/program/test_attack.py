"""netlogd withstands attacks, one after another and several together, while honest clients send.

Each honest client sends numbered events and records the acknowledgements. At the end, the output must contain each acknowledged event
once, and each other event at most once. netlogd's memory must stay within --max-memory plus 64 MB. A client's turn must not
cost much more work than its budget. netlogd counts work in units, so the test does not depend on time.

  NL_ATTACK_SEED  repeats the mixtures of an earlier run; each test prints the seed that it uses
"""
import os
import pathlib
import random
import re
import signal
import socket
import threading
import time
from collections import Counter

import attacks
import collector
import support

SEED = int(os.environ.get("NL_ATTACK_SEED", int.from_bytes(os.urandom(4), "little")))
HONEST, MEMORY_MB = 5, 64
TURN_WORK_MAX = 10000000  # netlogd/turns.h: a budget of 1,000,000, and one block, because a turn ends with a whole block


class Honest(threading.Thread):
    """Runs an honest client until the parent ends it. Like the library, it reconnects if netlogd is away."""

    def __init__(self, port, number):
        super().__init__(daemon=True)
        self.client = attacks.Client(port, number, source="127.0.0.2")
        self.ending, self.failure = False, None
        self.start()

    def run(self):
        try:
            while not self.ending or self.client.acknowledged < self.client.sent:
                try:
                    if not self.ending:
                        self.client.send()
                    self.client.wait()
                    time.sleep(0.002)
                except (ConnectionError, socket.timeout) as error:
                    if isinstance(error, socket.timeout):
                        raise
                    self.client.close()
                    time.sleep(0.02)
        except Exception as failure:
            self.failure = failure


class Attack(collector.Case):
    def setUp(self):
        super().setUp()
        print(f"# NL_ATTACK_SEED={SEED}", flush=True)
        self.rng = random.Random(SEED)

    def begin(self, *options):
        self.control = self.scratch / "control"
        self.options = options
        self.ports = [support.free_port(), support.free_port()]
        self.run_netlogd()
        self.honest = [Honest(self.port, number) for number in range(HONEST)]
        self.known = attacks.named(self.port, self.ports[1])

    def run_netlogd(self):
        self.process = self.serve("--listen", f"x-netlog+udp://127.0.0.1:{self.ports[1]}", "--control", f"unix:{self.control}",
                                  "--recover", 0, "--max-memory", f"{MEMORY_MB}m", *self.options,
                                  listen=f"x-netlog://127.0.0.1:{self.ports[0]}")

    def count(self, name):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.control))
            s.sendall(b"NETLOGGER/1 status\n")
            answer = b""
            while data := s.recv(65536):
                answer += data
        return int(re.search(rb" %s=(\d+)(?= |\n)" % name, answer)[1])

    def memory_mb(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024

    def check_netlogd(self):
        self.assertIsNone(self.process.poll(), self.said())
        self.assertLessEqual(self.count(b"WORK.TURN.MAX"), TURN_WORK_MAX)
        if not support.is_sanitized(self.process):
            self.assertLessEqual(self.memory_mb(), MEMORY_MB + 64)

    def play(self, names, seconds, kills=0):
        """Attacks for some seconds, and then until netlogd has acknowledged each honest client twice more."""
        before = [honest.client.acknowledged for honest in self.honest]
        children = [attacks.start(attack) for name in names for attack in self.known[name]]
        try:
            for _ in range(kills):
                time.sleep(self.rng.uniform(0, seconds / kills))
                self.process.send_signal(signal.SIGKILL)
                self.process.wait()
                self.run_netlogd()
            if not kills:
                time.sleep(seconds)
            support.wait_until(lambda: all(honest.failure is not None or honest.client.acknowledged >= count + 2
                                           for honest, count in zip(self.honest, before)), 60,
                               what=f"all honest clients are served in spite of: {', '.join(names)}")
            self.assertEqual([honest.failure for honest in self.honest if honest.failure], [], names)
            self.check_netlogd()
        finally:
            attacks.stop(children)

    def mixture(self):
        return self.rng.sample(sorted(self.known), self.rng.randrange(2, 5))

    def check_events(self):
        """The output has every record of the honest clients that netlogd acknowledged."""
        for honest in self.honest:
            honest.ending = True
        for honest in self.honest:
            honest.join(60)
            self.assertFalse(honest.is_alive())
        self.stop(self.process)
        found = Counter()
        with open(self.output, "rb") as output:
            while lines := output.readlines(64 << 20):
                found.update(re.findall(rb" PROG=honest(\d+) LVL=\w+ NL.EVNT=E N=(\d+)\n", b"".join(lines)))
        sent = sum(honest.client.sent for honest in self.honest)
        for honest in self.honest:
            counts = [found.pop((b"%d" % honest.client.number, b"%d" % n), 0) for n in range(honest.client.sent)]
            self.assertEqual(counts, [1] * honest.client.acknowledged, "how often each acknowledged event is in the output")
        self.assertEqual(found, {})
        self.assertGreater(sent, HONEST * 2)
        return sent

    def test_each_attack(self):
        """The limits per address are the defaults: the attackers have one address, the honest clients another."""
        self.begin()
        for name in self.known:
            with self.subTest(name):
                self.play([name], support.representative(0.4, 0.2))
        self.assertEqual([honest.client.connections for honest in self.honest], [1] * HONEST, "honest clients were closed")
        self.check_events()

    def test_mixtures(self):
        """The honest clients also succeed without limits per address."""
        self.begin("--max-per-address", 0)
        for _ in range(support.representative(3, 1)):
            names = self.mixture()
            with self.subTest(names):
                self.play(names, 1)
        self.check_events()

    @support.long
    def test_many_mixtures_and_kills(self):
        sent = 0
        for options in [], ["--max-per-address", 0], [], ["--max-per-address", 0]:
            self.begin(*options)
            for kills in 0, 1, 2, 0, 3, 0, 1, 2:
                names = self.mixture()
                with self.subTest(names, kills=kills):
                    self.play(names, 5, kills)
            sent += self.check_events()
            for path in self.scratch.glob("all.log*"):
                path.unlink()
        print(f"# {sent} honest events", flush=True)


if __name__ == "__main__":
    support.main()
