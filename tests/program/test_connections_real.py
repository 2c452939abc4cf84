"""nlstat --connections on short connections, on connections that share a path or pass address translation, and beside other tools that
observe the same connections."""
import concurrent.futures
import dataclasses
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

import paths
import support
from paths import Scenario
from test_connections import SCENARIOS, Reports


class RealConnections(Reports):
    def transfers_over_one_path(self, name, addresses):
        """Returns the report on a transfer to each address, all over a path of 20 Mbit/s."""
        world = paths.World(self, Scenario(name, ["--rate", "20mbit", "--delay", "10ms", "--buffer", "100k"]))
        for address in {*addresses} - {"10.77.0.2"}:
            self.assertEqual(self.run_program(*world.run_in(world.b, "ip", "address", "add", f"{address}/24", "dev", "wan0")).returncode, 0)
        log = self.scratch / name
        sensors = world.start_sensors(log, "0.05", True)
        receiver = self.start(*world.run_in(world.b, sys.executable, "-c", paths.RECEIVER, "0", "65536", "0", len(addresses)), stdout=subprocess.PIPE, text=True)
        receiver.stdout.readline()
        senders = [self.start(*world.run_in(world.a, sys.executable, "-c", paths.SENDER.replace("10.77.0.2", address), "0", "65536", "0", "0", "4", "0", "reno"),
                              stdout=subprocess.DEVNULL) for address in addresses]
        for sender in senders:
            self.assertEqual(sender.wait(60), 0)
        receiver.wait(60)
        receiver.stdout.close()
        world.collect(log, sensors)
        self.need_path(world.end())
        return [c for c in self.report(log) if c["connection"].endswith(":7000")]

    def test_real_connections_share_a_path(self):
        connections = self.transfers_over_one_path("share", ["10.77.0.2"] * 4)
        self.assertEqual([(c["sharing"], c["elsewhere"]) for c in connections], [(3, 0)] * 4)
        for connection in connections:
            self.assertIn(connection["first"], ("path rate", "path rate, with a queue", "policed rate"), connection)
            self.assertAlmostEqual(connection["shared_bytes_per_second"] * 8 / 20e6, 1, delta=0.2, msg=connection)

    def test_real_connections_to_two_addresses_share_a_bottleneck(self):
        connections = self.transfers_over_one_path("elsewhere", ["10.77.0.2", "10.77.0.3"])
        self.assertEqual([(c["sharing"], c["elsewhere"]) for c in connections], [(0, 1)] * 2)
        for connection in connections:
            self.assertAlmostEqual((connection["bytes_per_second"] + connection["elsewhere_bytes_per_second"]) * 8 / 20e6, 1, delta=0.2, msg=connection)

    def test_real_short_connections(self):
        """Each of 30 connections needs a round trip of 40 ms for the handshake, and another for its data."""
        world = paths.World(self, Scenario("short", ["--delay", "20ms"]))
        log = self.scratch / "log"
        sensors = world.start_sensors(log, "1", True)
        server = self.start(*world.run_in(world.b, sys.executable, "-c", """if True:
            import socket
            l = socket.create_server(("0.0.0.0", 7000))
            print("ready", flush=True)
            for _ in range(30):
                c, _ = l.accept()
                c.sendall(c.recv(100) * 10)
                c.close()"""), stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        time.sleep(1)  # until the sensors watch
        client = self.run_program(*world.run_in(world.a, sys.executable, "-c", """if True:
            import socket
            for _ in range(30):
                with socket.create_connection(("10.77.0.2", 7000)) as s:
                    s.sendall(b"x" * 100)
                    while s.recv(1000):
                        pass"""))
        self.assertEqual(client.returncode, 0, client.stderr)
        server.wait(60)
        server.stdout.close()
        time.sleep(1)
        world.collect(log, sensors)
        if "TCP.ENDS.WATCHED=1" not in log.read_text():
            self.skipTest("eBPF is not permitted here, so the ends of connections are unknown")
        row, = self.report(log, "--by", "hosts")
        self.assertEqual((row["connections"], row["bytes"]), (30, 30000), row)
        self.assertAlmostEqual(self.shares(row)["handshake"], 0.5, delta=0.2)

    @unittest.skipUnless(shutil.which("ss"), "ss is not installed")
    def test_agrees_with_ss(self):
        """ss prints the same counters of the kernel: the receiver limits the same part of the time, and the bytes are the same."""
        scenario = dataclasses.replace(next(s[0] for s in SCENARIOS if s[0].name == "rbuf"), name="ss")
        world, seen = paths.World(self, scenario), []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(world.transfer, self.scratch / "log")
            while not done.done():
                text = self.run_program(*world.run_in(world.a, "ss", "-Htino", "dst", "10.77.0.2")).stdout
                found = re.search(r"bytes_acked:(\d+).* busy:(\d+)ms rwnd_limited:(\d+)ms", text)
                seen += [list(map(int, found.groups()))] if found else []
                time.sleep(0.05)
        connection = next(c for c in self.report(self.scratch / "log") if c["connection"].endswith("> 10.77.0.2:7000"))
        acked, busy, limited = seen[-1]
        shares = self.shares(connection)
        receiver = sum(shares[cause] for cause in ("receive buffer", "receiving program", "receiving host"))
        self.assertAlmostEqual(connection["bytes"] / acked, 1, delta=0.15)
        self.assertAlmostEqual(receiver / (1 - shares["handshake"]), limited / busy, delta=0.1, msg=shares)

    @unittest.skipUnless(os.geteuid() == 0 and all(map(shutil.which, ("iperf3", "iptables", "ss", "tc", "tcpdump", "tcptrace"))),
                         "needs root, iperf3, iptables, iproute2, tcpdump and tcptrace")
    def test_agrees_with_iperf3_ss_and_tcptrace(self):
        """All tools observe the same two transfers: a window limits the first, and the second loses segments."""
        loader = importlib.machinery.SourceFileLoader("crosscheck", str(support.SOURCE / "bench/agent/crosscheck"))
        crosscheck = importlib.util.module_from_spec(importlib.util.spec_from_loader("crosscheck", loader))
        loader.exec_module(crosscheck)

        def measure(scenario):
            work = self.scratch / scenario.replace(" ", "-")
            work.mkdir()
            try:
                return crosscheck.measure(pathlib.Path(os.environ["NL_BUILD_DIR"]).resolve(), "3", scenario, work)
            except subprocess.CalledProcessError as error:
                self.skipTest(f"cannot set up the path here: {error}")

        scenarios = ["receive window", "loss"]
        with concurrent.futures.ThreadPoolExecutor(len(scenarios)) as pool:
            for scenario, (row, tools, late) in zip(scenarios, pool.map(measure, scenarios)):
                self.need_path(late <= 0.02)
                own = tools["nlstat"]
                for name in "iperf3", "ss", "tcptrace":
                    other = tools[name]
                    self.assertAlmostEqual(own["rate"] / other["rate"], 1, delta=0.1, msg=(scenario, tools))
                    self.assertAlmostEqual(own["again"], other["again"], delta=5 + 0.1 * other["again"], msg=(scenario, tools))
                    self.assertAlmostEqual(own["min. RTT"] / other["min. RTT"], 1, delta=0.1, msg=(scenario, tools))
                self.assertAlmostEqual(own["RTT"] / tools["iperf3"]["RTT"], 1, delta=0.15, msg=(scenario, tools))
                if scenario == "receive window":
                    self.assertEqual(row["first"], "receive buffer")
                    self.assertGreater(own["window"], tools["ss"]["window"] - 0.05, tools)  # the kernel misses a part, because the sender paces its segments
                else:
                    self.assertGreater(own["again"], 0)

    def test_masquerade(self):
        """The router of a private network replaces the address and the port of a real connection."""
        if os.geteuid() != 0 or not (shutil.which("iptables") and shutil.which("ip")):
            self.skipTest("a router needs root, ip and iptables")
        names = client, router, server = [f"nln{os.getpid()}{end}" for end in "crs"]
        for name in names:
            if self.run_program("ip", "netns", "add", name).returncode != 0:
                self.skipTest("no network namespaces here")
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", name], stderr=subprocess.DEVNULL)
        made = self.run_program("sh", "-ec", f"""
            ip -n {client} link add c0 type veth peer name r0 netns {router}
            ip -n {server} link add s0 type veth peer name r1 netns {router}
            ip -n {client} address add 10.78.0.2/24 dev c0; ip -n {router} address add 10.78.0.1/24 dev r0
            ip -n {server} address add 10.79.0.2/24 dev s0; ip -n {router} address add 10.79.0.1/24 dev r1
            for i in '{client} c0' '{router} r0' '{router} r1' '{server} s0'; do set -- $i; ip -n $1 link set $2 up; done
            ip -n {client} route add default via 10.78.0.1
            ip netns exec {router} sysctl -qw net.ipv4.ip_forward=1
            ip netns exec {router} iptables -t nat -A POSTROUTING -o r1 -j MASQUERADE --random""")
        if made.returncode != 0:
            self.skipTest(f"no address translation here: {made.stderr.strip()[:100]}")
        sensors = []
        for name in client, server:
            out = open(self.scratch / name, "w+", encoding="utf-8")
            self.addCleanup(out.close)
            sensors.append((out, self.start("ip", "netns", "exec", name, "env", f"NETLOGGER_HOST={name[-1]}", support.program("nlagent/nlsensor"),
                                            "--interval", "0.05", "connections?port=7000", stdout=out)))
        receiver = self.start("ip", "netns", "exec", server, sys.executable, "-c", paths.RECEIVER, "0", "65536", "0.02", stdout=subprocess.PIPE, text=True)
        self.addCleanup(receiver.stdout.close)
        receiver.stdout.readline()
        sent = self.run_program("ip", "netns", "exec", client, sys.executable, "-c", """if True:
            import socket, time
            s = socket.create_connection(("10.79.0.2", 7000))
            end = time.monotonic() + 2
            while time.monotonic() < end:
                s.sendall(b"x" * 65536)""")
        self.assertEqual(sent.returncode, 0, sent.stderr)
        receiver.wait(60)
        lines = []
        for out, sensor in sensors:
            sensor.terminate()
            sensor.wait(60)
            out.seek(0)
            lines += out
        if not any("TCP.ITERATED=1" in line for line in lines):
            self.skipTest("eBPF is not permitted here, so the sequence numbers are unknown")
        connections = self.report(self.written(*lines))
        self.assertEqual([(c["records"], c["host"], c["peer_host"]) for c in connections], [("both", "c", "s")], connections)
        self.assertRegex(connections[0]["connection"], r"^10\.78\.0\.2:\d+ > 10\.79\.0\.2:7000$")
        self.assertFalse(any("NL.EVNT=TcpConnection " in l and "HOST=s " in l and "10.78.0.2" in l for l in lines))


if __name__ == "__main__":
    support.main()
