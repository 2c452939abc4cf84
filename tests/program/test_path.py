"""The path sensor and the reflector of nlagentd: on an emulated path, beside ping, traceroute and iptables' counts; and with hostile packets.

The path leads from namespace A over an emulated path to the router B, and over a link with a smaller MTU to C, whose agent reflects."""
import json
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import nlagents
import paths
import support

MTU = 1400
PORT = 14834
FIELD = re.compile(r'([A-Z][A-Z0-9_.]*)=("(?:[^"\\]|\\.)*"|\S*)')


def parse_records(text):
    """Returns the fields of the records by event."""
    events = {}
    for line in text.splitlines():
        fields = {name: value.strip('"') for name, value in FIELD.findall(line)}
        events.setdefault(fields.get("NL.EVNT"), []).append(fields)
    return events


class PathCase(support.Case):
    """Sets up the path and its agent."""

    def set_up_path(self, name, *options):
        world = paths.World(self, paths.Scenario(name, list(options)))
        world.c = world.a[:-1] + "c"
        made = self.run_program("ip", "netns", "add", world.c)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.addCleanup(subprocess.run, ["ip", "netns", "delete", world.c], stderr=subprocess.DEVNULL)
        script = f"""
            ip -n {world.b} link add c0 mtu {MTU} type veth peer name b0 mtu {MTU} netns {world.c} &&
            ip -n {world.b} address add 10.78.0.1/24 dev c0 && ip -n {world.b} link set c0 up &&
            ip -n {world.c} address add 10.78.0.2/24 dev b0 && ip -n {world.c} link set b0 up && ip -n {world.c} link set lo up &&
            ip -n {world.c} route add default via 10.78.0.1 && ip -n {world.a} route add 10.78.0.0/24 via 10.77.0.2 &&
            ip netns exec {world.b} sysctl -qw net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0"""
        made = self.run_program("sh", "-c", script)
        if made.returncode != 0:
            self.skipTest(f"cannot set up the path here: {made.stderr.strip()[:100]}")
        agent = self.start(*world.run_in(world.c, support.program("nlagent/nlagentd"), "--foreground", "--listen", "http://127.0.0.1",
                                         "--reflect", "10.77.0.0/24"), stderr=subprocess.PIPE, text=True)
        self.assertIn("reflecting", agent.stderr.readline() + agent.stderr.readline())
        return world

    def run_sensor(self, world, arguments, count, interval="1"):
        return self.start(*world.run_in(world.a, support.program("nlagent/nlsensor"), "--interval", interval, "--count", str(count),
                                        f"path?peer=10.78.0.2&{arguments}"), stdout=subprocess.PIPE, text=True)

    def read_sensor(self, sensor):
        events = parse_records(sensor.communicate(timeout=60)[0])
        self.assertEqual(sensor.returncode, 0)
        return events


class Path(PathCase):
    """Tests of the sensor on an emulated path."""

    def test_delays_routers_size_and_rate(self):
        """The path from the peer is slower: a probe of 72 bytes needs 1.44 ms at 400 kbit/s. A transfer that ends within 5 s
        reaches most of 20 Mbit/s."""
        world = self.set_up_path("d", "--delay", "20ms", "--rate", "20mbit", "--back-rate", "400kbit")
        sensor = self.run_sensor(world, "rate=50&transfer=3", 7)
        ping = route = None
        if shutil.which("traceroute"):
            route = self.run_program(*world.run_in(world.a, "traceroute", "-n", "-q", "1", "10.78.0.2"), timeout=60)
        if shutil.which("ping"):
            time.sleep(4)  # the transfer is over
            ping = self.run_program(*world.run_in(world.a, "ping", "-n", "-c", "20", "-i", "0.1", "-s", "44", "10.78.0.2"), timeout=60)
        events = self.read_sensor(sensor)
        undisturbed = world.end()
        table = (support.SOURCE / "doc/sensors.md").read_text()
        for event, records in events.items():
            section = table.split(f"### {event}\n")[1].split("\n#")[0]
            self.assertEqual([name for name in records[-1] if "." in name and f"- `{name}`" not in section], ["NL.EVNT"])
        last = events["PathDelay"][-1]
        self.assertEqual([last["PATH.ROUTERS.OUT"], last["PATH.ROUTERS.BACK"]], ["1", "1"])
        mtu, = events["PathMtu"]
        self.assertEqual([mtu["PATH.MTU"], mtu["PATH.MTU.LOCAL"], mtu["PATH.MTU.REPORTED"]], [str(MTU), "1500", str(MTU)])
        self.assertEqual([hop["PATH.HOP.ADDRESS"] for hop in events["PathHop"]], ["10.77.0.2", "10.78.0.2"])
        if route is not None:
            self.assertEqual(re.findall(r"^ *\d+  (\S+)", route.stdout, re.M), [hop["PATH.HOP.ADDRESS"] for hop in events["PathHop"]])
        if not undisturbed:
            self.skipTest(paths.TOO_BUSY)
        self.assertAlmostEqual(float(last["PATH.DELAY.OUT.MIN"]), 20000, delta=1000)
        self.assertAlmostEqual(float(last["PATH.DELAY.BACK.MIN"]), 21440, delta=1000)
        self.assertAlmostEqual(float(last["PATH.RTT.MIN"]), float(last["PATH.DELAY.OUT.MIN"]) + float(last["PATH.DELAY.BACK.MIN"]), delta=1000)
        self.assertEqual({(r["PATH.LOST"], r["PATH.DUPLICATES"], r["PATH.REORDERED"]) for r in events["PathDelay"]}, {("0", "0", "0")})
        self.assertAlmostEqual(float(events["PathHop"][1]["PATH.HOP.RTT"]), 41440, delta=3000)
        transfer, = events["PathTransfer"]
        self.assertEqual(transfer["PATH.BYTES"], "3000000")
        self.assertLess(float(transfer["PATH.RATE"]), 2.5e6)
        self.assertGreater(float(transfer["PATH.RATE"]), 1.2e6)
        if ping is not None:
            minimum_ms = float(re.search(r"= ([0-9.]+)/", ping.stdout).group(1))
            self.assertAlmostEqual(float(last["PATH.RTT.MIN"]), minimum_ms * 1000, delta=1000)

    def test_losses_in_each_direction_and_a_router_without_reports(self):
        """B drops every tenth probe, and every eighth reply. B does not report packets that are too large, so the sensor must
        search for the MTU."""
        world = self.set_up_path("l", "--delay", "5ms")
        drop = "iptables -A FORWARD -p udp --{}port {} -m length --length 72 -m statistic --mode nth --every {} --packet 3 -j DROP"
        rules = " && ".join(drop.format(side, PORT, every) for side, every in (("d", 10), ("s", 8)))
        made = self.run_program(*world.run_in(world.b, "sh", "-c", f"{rules} && iptables -A OUTPUT -p icmp --icmp-type fragmentation-needed -j DROP"))
        if made.returncode != 0:
            self.skipTest(f"no iptables here: {made.stderr.strip()[:100]}")
        sensor = self.run_sensor(world, "rate=100", 100, "0.5")
        text, counts, left = "", None, 8
        while left:
            line = sensor.stdout.readline()
            self.assertTrue(line, text)
            text += line
            if not counts and "PATH.MTU" in text and sum(map(int, re.findall(r"PATH.REPLIES=(\d+)", text))) > 200:
                counts = self.run_program(*world.run_in(world.b, "sh", "-c", "iptables -I FORWARD -j ACCEPT && iptables -vnxL FORWARD")).stdout
            left -= counts is not None and "NL.EVNT=PathDelay" in line  # the losses are decided after 2 s
        sensor.terminate()
        sensor.stdout.close()
        world.end()
        events = parse_records(text)
        out, back = (int(n) for n in re.findall(r"^ *(\d+) +\d+ DROP ", counts, re.M))
        total = {name: sum(int(r.get(name, 0)) for r in events["PathDelay"]) for name in ("PATH.LOST", "PATH.LOST.OUT", "PATH.LOST.BACK", "PATH.REPLIES")}
        self.assertEqual(total["PATH.LOST"], total["PATH.LOST.OUT"] + total["PATH.LOST.BACK"], total)
        for dropped, name in ((out, "PATH.LOST.OUT"), (back, "PATH.LOST.BACK")):
            self.assertGreater(dropped, 5)
            self.assertIn(dropped - total[name], range(5), counts)  # at most four packets were for finding the routers
        mtu, = events["PathMtu"]
        self.assertEqual([mtu["PATH.MTU"], "PATH.MTU.REPORTED" in mtu], [str(MTU), False])


class Verdict(PathCase):
    """The records of the sensor decide what nlstat --connections reports about a transfer from A to C. Only A has sensors."""

    def transfer(self, world, arguments, measured, *, receive="0", until=None):
        """Transfers data for 4 s, or until the log of the connections satisfies `until`. Waits before the transfer until the path sensor has logged
        the event `measured`. Returns the report, and the log."""
        logs = [self.scratch / name for name in ("path.log", "connections.log")]
        sensors = [self.start(*world.run_in(world.a, "env", "NETLOGGER_HOST=a", support.program("nlagent/nlsensor"), "--interval", interval,
                                            "--dest", f"file:{log}", name))
                   for log, interval, name in zip(logs, ("0.5", "0.05"), (f"path?peer=10.78.0.2&{arguments}", "connections?port=7000"))]
        support.wait_until(lambda: logs[0].exists() and f"NL.EVNT={measured} " in logs[0].read_text(), what=measured)
        receiver = self.start(*world.run_in(world.c, sys.executable, "-c", paths.RECEIVER, receive, 1 << 20, 0), stdout=subprocess.PIPE, text=True)
        receiver.stdout.readline()
        sender = self.start(*world.run_in(world.a, sys.executable, "-c", paths.SENDER.replace("10.77.0.2", "10.78.0.2"), 0, 65536, 0, 0, 4, 0, "reno"),
                            stdout=subprocess.DEVNULL)
        if until:
            support.wait_until(lambda: until(logs[1].read_text()), what="records of the connection")
            sender.kill()
        sender.wait(120)
        for sensor in sensors:
            sensor.terminate()
            sensor.wait(60)
        receiver.stdout.close()
        log = self.scratch / "all.log"
        log.write_text("".join(part.read_text() for part in logs))
        if not world.end():
            self.skipTest(paths.TOO_BUSY)
        return self.report(log), log

    def report(self, log):
        result = self.run_program(support.program("nltools/nlstat"), "--connections", "--json", log)
        self.assertEqual(result.returncode, 0, result.stderr)
        return next(c for c in json.loads(result.stdout) if c["connection"].endswith("> 10.78.0.2:7000"))

    def without(self, log, event):
        """Returns the report without the records of an event."""
        other = self.scratch / "without.log"
        other.write_text("".join(line for line in log.read_text().splitlines(True) if f"NL.EVNT={event} " not in line))
        return self.report(other)

    def filter_in_b(self, world, *rules):
        made = self.run_program(*world.run_in(world.b, "sh", "-c", " && ".join(f"iptables -A {rule}" for rule in rules)))
        if made.returncode != 0:
            self.skipTest(f"no iptables here: {made.stderr.strip()[:100]}")

    def test_bandwidth_delay_product(self):
        """A window of about 20 kB limits the connection. The path carries 20 Mbit/s with a round-trip time of 40 ms: the product is 100 kB. The measured rate
        contains the slow start."""
        world = self.set_up_path("v", "--delay", "20ms", "--rate", "20mbit")
        c, log = self.transfer(world, "rate=50&transfer=5", "PathTransfer", receive="32768")
        self.assertEqual(c["first"], "receive buffer", c)
        self.assertGreater(c["path"]["bytes_per_second"], 1.4e6)
        self.assertLess(c["path"]["bytes_per_second"], 2.5e6)
        product = c["path"]["bytes_per_second"] * c["path"]["rtt_min_ns"] / 1e9
        size, unit = re.search(r"The path sensor has measured [0-9.]+ Mbit/s, so the bandwidth-delay product is at least ([0-9.]+) (k?B)", c["advice"]).groups()
        self.assertAlmostEqual(float(size) * {"B": 1, "kB": 1000}[unit] / product, 1, delta=0.02)
        self.assertAlmostEqual(product, 1e5, delta=3e4)
        self.assertGreater(c["gain_of_path"], 1.2)
        self.assertEqual(self.without(log, "PathTransfer")["gain_of_path"], 1)
        text = self.run_program(support.program("nltools/nlstat"), "--connections", log).stdout
        self.assertRegex(text, r"\n    path, measured during the connection: minimum round-trip time 4\d\.\d+ ms;.* MTU 1400 bytes; rate at least ")

    def test_queue_on_the_way_back(self):
        """Without the receiver's records, only the delays of the probes show that the queue is on the way back."""
        world = self.set_up_path("q", "--delay", "10ms", "--rate", "30mbit", "--back-rate", "100kbit")
        c, log = self.transfer(world, "rate=20", "PathMtu")
        self.assertEqual([c["first"], c["records"]], ["reverse path", "sender"], c)
        self.assertGreater(c["path"]["queue_back_ns"], 5 * c["path"]["queue_out_ns"])
        self.assertEqual(self.without(log, "PathDelay")["first"], "path rate, with a queue")

    def test_black_hole(self):
        """A router drops packets of more than 1400 bytes without a report."""
        world = self.set_up_path("m", "--delay", "5ms")
        made = self.run_program("ip", "-n", world.c, "link", "set", "b0", "mtu", "1500")  # so that C permits larger segments
        self.assertEqual(made.returncode, 0, made.stderr)
        self.filter_in_b(world, "OUTPUT -p icmp --icmp-type fragmentation-needed -j DROP")
        c, log = self.transfer(world, "rate=20", "PathMtu", until=lambda text: re.search(r"TCP\.RETRANS=[4-9]", text))
        self.assertEqual([c["first"], c["path"]["mtu"]], ["loss", MTU], c)
        self.assertIn("full segments (1448 bytes) need packets of 1488 bytes, but the path to 10.78.0.2:7000 carries packets of at most 1400 bytes, "
                      "and no router reports this", c["advice"])
        self.assertNotIn("1400", self.without(log, "PathMtu")["advice"])


class Reflector(nlagents.Agent):
    """Tests of nlagentd's reflector on loopback."""

    def start_reflector(self, *options):
        self.port = support.free_port()
        return self.start_agent("--reflect-port", str(self.port), *options)

    def probe(self, size=44, sequence=7, session=0x1234):
        return (struct.pack("!IQHH", sequence, 0xEE5C1F0080000000, 0x8101, session) + bytes(size))[:size]

    def connect(self, kind, source="127.0.0.1"):
        s = socket.socket(socket.AF_INET, kind)
        self.addCleanup(s.close)
        s.bind((source, 0))
        s.settimeout(60)
        s.connect(("127.0.0.1", self.port))
        return s

    def replies(self, *packets, source="127.0.0.1"):
        """Returns the replies to packets that are followed by a valid probe, without the reply to this probe."""
        last = self.probe(sequence=0xFFFFFFFF)
        s, valid = (self.connect(socket.SOCK_DGRAM, address) for address in (source, "127.0.0.1"))
        for packet in packets:
            s.send(packet)
        valid.send(last)
        self.assertEqual(valid.recv(65536)[24:28], last[:4])
        found = []
        s.setblocking(False)
        try:
            while True:
                found.append(s.recv(65536))
        except BlockingIOError:
            return found

    def test_reply(self):
        """A reply has 44 bytes, whatever the size of the probe, and the numbers of its session."""
        self.start_reflector("--reflect", "127.0.0.1")
        before = time.time()
        replies = self.replies(self.probe(), self.probe(1400), self.probe(60000, sequence=9, session=0xFFFF))
        self.assertEqual([len(r) for r in replies], [44] * 3)
        for number, (reply, sequence, session) in enumerate(zip(replies, (7, 7, 9), (0x1234, 0x1234, 0xFFFF))):
            got, sent, _, ssid, received, probe, probe_time, estimate, _, ttl = struct.unpack("!IQHHQIQHHBxxx", reply)
            self.assertEqual([got, ssid, probe, probe_time, estimate, ttl], [number, session, sequence, 0xEE5C1F0080000000, 0x8101, 64])
            self.assertLessEqual(received, sent)
            for at in (received, sent):
                self.assertAlmostEqual(at / 2**32 - 2208988800, before, delta=60)

    def test_hostile_packets_have_no_reply(self):
        self.start_reflector("--reflect", "127.0.0.1")
        reply, = self.replies(self.probe())
        bad = [b"", b"x", self.probe(43), reply, bytes([255]) * 44, reply + bytes(1000), self.probe()[:-1] + b"\1", self.probe()[:16] + b"\1" + self.probe()[17:]]
        self.assertEqual(self.replies(*bad), [])
        self.assertEqual(self.replies(self.probe(), source="127.0.0.2"), [])

    def test_rate_is_bounded(self):
        self.start_reflector("--reflect", "127.0.0.0/8")
        begin = time.monotonic()
        count = sum(len(self.replies(*[self.probe()] * 50, source="127.0.0.3")) for _ in range(20))
        one = self.connect(socket.SOCK_DGRAM)
        for _ in range(1000):
            one.send(self.probe())
        one.settimeout(1)
        replies = 0
        try:
            while one.recv(100):
                replies += 1
        except socket.timeout:
            pass
        self.assertEqual(count, 1000)  # 20 sessions
        self.assertGreaterEqual(replies, 200)
        self.assertLessEqual(replies, 200 + 200 * (time.monotonic() - begin))

    def test_transfers(self):
        """The reflector sends nothing, and accepts one transfer from an address at a time."""
        agent = self.start_reflector("--reflect", "127.0.0.1,127.0.0.3")
        accepted = [self.connect(socket.SOCK_STREAM, source) for source in ("127.0.0.1", "127.0.0.3")]
        for s in accepted:
            s.sendall(bytes(1 << 20))
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(s.recv(1), b"")
        for source in ("127.0.0.1", "127.0.0.2"):
            self.assertEqual(self.connect(socket.SOCK_STREAM, source).recv(1), b"")
        sensor = self.run_program(support.program("nlagent/nlsensor"), "--interval", "0.5", "--count", "4",
                                  f"path?peer=127.0.0.1&port={self.port}&transfer=1000")
        transfer, = parse_records(sensor.stdout)["PathTransfer"]
        self.assertIn("the peer ended the transfer", transfer["PATH.ERROR"])
        agent.terminate()
        self.assertEqual(agent.wait(60), 0)

    def test_only_if_configured(self):
        """Without --reflect, the port is closed. A reload changes the networks, but not whether the agent reflects."""
        config = self.scratch / "config"
        config.write_text("")
        agent = self.start_reflector("--config", config)
        with self.assertRaises(ConnectionRefusedError):
            s = self.connect(socket.SOCK_DGRAM)
            s.send(self.probe())
            s.recv(100)
        config.write_text("reflect 127.0.0.1\n")
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "ReloadRefused" in self.log_text(agent), what="the refusal")
        self.assertIn("reflect: a reload cannot begin or end reflection", self.log_text(agent))
        agent.terminate()
        agent.wait(60)
        agent = self.start_reflector("--config", config)
        self.assertEqual(self.replies(self.probe(), source="127.0.0.2"), [])
        config.write_text("reflect 127.0.0.0/8\n")
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "Nlagentd.Reload " in self.log_text(agent), what="the reload")
        self.assertEqual(len(self.replies(self.probe(), source="127.0.0.2")), 1)

    def test_sensor_on_demand(self):
        agent = self.start_reflector("--reflect", "127.0.0.1")
        client = self.subscribe(agent, "--interval", "0.2", f"path?peer=127.0.0.1&port={self.port}&rate=100")
        text = ""
        while "PathHop" not in text or "PathDelay" not in text:
            line = client.stdout.readline()
            self.assertTrue(line)
            text += line
        self.assertEqual(parse_records(text)["PathHop"][0]["PATH.HOP.ADDRESS"], "127.0.0.1")


if __name__ == "__main__":
    support.main()
