"""The adaptive program sends less while segments are lost, and more again afterwards."""
import itertools
import os
import re
import subprocess

import support

SOURCE = os.environ["NL_SOURCE_DIR"]
PORT = "5301"


class Adaptive(support.Case):
    numbers = itertools.count()

    def setUp(self):
        super().setUp()
        self.send = support.program("examples/adaptive/adaptive_send")
        self.rules = os.path.join(SOURCE, "examples/adaptive/adaptive.rules")
        self.log = self.scratch / "send.log"
        self.environment = {**os.environ, "NETLOGGER_DEST": str(self.log)}

    def rates(self):
        if not self.log.exists():
            return []
        return [float(m) for m in re.findall(r"NL.EVNT=SendRate RATE=(\S+)", self.log.read_text())]

    def root(self, *command):
        result = self.run_program(*command)
        if result.returncode != 0:
            self.skipTest(f"{' '.join(map(str, command))}: {result.stderr.strip()}")

    def namespaces(self):
        """Two hosts with a link between them."""
        nlkernel = support.program("nlkernel/nlkernel")
        listed = self.run_program(nlkernel, "list", "tcp:tcp_retransmit_skb")
        if os.geteuid() != 0 or listed.returncode != 0:
            self.skipTest(f"recording is not possible here: {listed.stderr.strip()}")
        self.nlkernel = nlkernel
        tag = f"{os.getpid() % 100000}{next(self.numbers)}"
        names = [f"nlad{tag}a", f"nlad{tag}b"]
        for name in names:
            self.root("ip", "netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "del", name])
        self.root("ip", "link", "add", "va", "netns", names[0], "type", "veth", "peer", "name", "vb", "netns", names[1])
        inside = [["nsenter", f"--net=/run/netns/{name}"] for name in names]
        for command, device, address in ((inside[0], "va", "10.77.0.1/24"), (inside[1], "vb", "10.77.0.2/24")):
            self.root(*command, "ip", "address", "add", address, "dev", device)
            self.root(*command, "ip", "link", "set", device, "up")
        return inside

    def test_less_while_segments_are_lost(self):
        here, there = self.namespaces()
        self.start(*there, self.send, "--receive", PORT)
        support.wait_until(lambda: f":{int(PORT):04X} " in self.run_program(*there, "cat", "/proc/net/tcp").stdout, what="it listens")
        kernel = self.start(*here, self.nlkernel, "live", "--quiet", "--rules", self.rules, "--set", f"PORT={PORT}", "--dest", "-",
                            stdout=subprocess.PIPE)
        sender = self.start(*here, self.send, "--rate", "4000000", "--seconds", "300", "10.77.0.2", PORT, env=self.environment,
                            stdin=kernel.stdout, stderr=subprocess.PIPE, text=True)
        alive = lambda: self.assertIsNone(sender.poll(), sender.poll() and sender.stderr.read())

        def rates():
            alive()
            return self.rates()

        support.wait_until(lambda: len(rates()) >= 3, what="it hears of its environment")
        self.assertEqual(set(self.rates()), {4e6})
        drop = ["INPUT", "-p", "tcp", "--dport", PORT, "-m", "statistic", "--mode", "random", "--probability", "0.1", "-j", "DROP"]
        self.root(*there, "iptables", "-A", *drop)
        support.wait_until(lambda: rates()[-1] <= 1e6, what="it sends less")
        self.root(*there, "iptables", "-D", *drop)
        least = self.rates()[-1]
        support.wait_until(lambda: rates()[-1] >= 1.5 * least, what="it sends more again")
        sender.terminate()
        sender.wait(30)

    def sent(self, event):
        """Runs the sender with records of this event, which the shipped rules make from a log. Returns its rates."""
        port = str(support.free_port())
        self.start(self.send, "--receive", port)
        support.wait_until(lambda: f":{int(port):04X} " in open("/proc/net/tcp").read(), what="it listens")
        log, rules, made = self.scratch / "kernel.log", self.scratch / "kernel.rules", self.scratch / "made.log"
        log.write_text("".join(f"DATE=20260101000000.{ms:03d}000 HOST=h PROG=p LVL=System NL.EVNT=tcp.tcp_retransmit_skb CPU=0 SPORT=1 "
                               f"DPORT={to}\n" for ms in range(0, 900, 20) for to in (port, "1")))
        with open(self.rules) as shipped:
            rules.write_text(shipped.read().replace("[rate RetransmitRate]", f"[rate {event}]"))
        result = self.run_program(support.program("nlkernel/nlkernel"), "report", rules, "--set", f"PORT={port}", "--derived", made, log)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"NL.EVNT={event} ", made.read_text())
        result = self.run_program(self.send, "--records", made, "--seconds", "0.2", "127.0.0.1", port, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.rates()

    def test_records_from_a_log(self):
        self.assertEqual(self.sent("RetransmitRate")[:3], [1e6, 5e5, 2.5e5])

    def test_other_events_are_ignored(self):
        """The rules must not accept an event whose name is only a prefix of the expected name."""
        self.assertEqual(self.sent("Retransmit"), [])
        self.assertIn("NL.EVNT=SendEnd RATE=2000000", self.log.read_text())

    def test_no_records(self):
        port = str(support.free_port())
        result = self.run_program(self.send, "--records", "/nonexistent", "127.0.0.1", port, env=self.environment)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nonexistent", result.stderr)


support.main()
