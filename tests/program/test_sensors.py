"""Tests nlsensor: compares its values with those of the kernel, and tests arguments, signals, missing rights and metrics of other programs."""
import grp
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import time

import support


class Sensors(support.Case):
    def setUp(self):
        super().setUp()
        self.nlsensor = support.program("nlagent/nlsensor")

    def test_all_sensors(self):
        result = self.run_program(self.nlsensor, "--interval", "0.1", "--count", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        for event in ["CpuLoad", "TcpSegments", "DiskIo"]:
            self.assertEqual(result.stdout.count(f"NL.EVNT={event} "), 3, result.stdout)
        total = int(re.search(r"MEM\.TOTAL=(\d+)", result.stdout).group(1))
        kilobytes = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read()).group(1))
        self.assertEqual(total, kilobytes * 1024)
        for busy in re.findall(r"CPU\.BUSY=(\S+)", result.stdout):
            self.assertTrue(0 <= float(busy) <= 100, busy)

    def test_a_collector_that_is_down(self):
        """One message at the start of the outage, and the number of events in the spool at the end."""
        url = f"x-netlog://127.0.0.1:{support.free_port()}?spool={self.scratch}/spool"
        count = self.run_program(self.nlsensor, "--interval", "0.1", "--count", "3", "cpu").stdout.count("\n")
        result = self.run_program(self.nlsensor, "--interval", "0.1", "--count", "3", "--dest", url, "cpu")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (0, 2), result.stderr)
        self.assertRegex(result.stderr, r"\Anlsensor: x-netlog://127.0.0.1:\d+: Connection refused; .*\(retrying\)\n"
                                        rf"nlsensor: x-netlog://\S+: {count} events remain in the spool {self.scratch}/spool; ")

    def test_cpu_load_is_seen(self):
        burner = [self.start("sh", "-c", "while :; do :; done") for _ in range(os.cpu_count())]
        result = self.run_program(self.nlsensor, "--interval", "0.5", "--count", "2", "cpu")
        for b in burner:
            b.kill()
        self.assertGreater(max(float(b) for b in re.findall(r"CPU\.BUSY=(\S+)", result.stdout)), 60)

    def test_retransmits_are_counted(self):
        if os.geteuid() != 0:
            self.skipTest("dropping packets needs root")
        said = self.scratch / "said"
        script = f"""
            ip link set lo up || exit 77
            iptables -A INPUT -i lo -p tcp --dport 5555 -m statistic --mode nth --every 10 --packet 0 -j DROP || exit 77
            {self.nlsensor} --interval 0.2 tcp > {said} &
            until grep -q TcpSegments {said}; do sleep 0.1; done
            /usr/bin/python3 - <<'END'
import socket, threading
l = socket.create_server(("127.0.0.1", 5555))
def drain():
    c, _ = l.accept()
    while c.recv(65536): pass
t = threading.Thread(target=drain); t.start()
s = socket.create_connection(("127.0.0.1", 5555))
for _ in range(400): s.sendall(b"x" * 60000)
s.close(); t.join()
END
            grep ^Tcp: /proc/net/snmp
            lines=$(wc -l < {said})  # a sample in progress adds at most two
            until [ $(wc -l < {said}) -gt $((lines + 2)) ]; do sleep 0.1; done
            kill $!
            wait $! || exit 1
            grep ^Tcp: /proc/net/snmp
        """
        result = self.run_program("unshare", "-n", "bash", "-c", script)
        if result.returncode == 77 or "iptables" in result.stderr or "unshare" in result.stderr:
            self.skipTest(f"no namespace or iptables here: {result.stderr.strip()[:100]}")
        self.assertEqual(result.returncode, 0, result.stderr)
        counted = sum(int(n) for n in re.findall(r"NL\.EVNT=TcpSegments TCP\.RETRANS=(\d+)", said.read_text()))
        names, before, _, after = [l.split() for l in result.stdout.splitlines() if l.startswith("Tcp:")]
        self.assertGreater(counted, 0)
        self.assertGreaterEqual(counted, int(before[names.index("RetransSegs")]))
        self.assertLessEqual(counted, int(after[names.index("RetransSegs")]))
        self.assertIn("NL.EVNT=TcpRetransmit", said.read_text())

    def test_ends_on_signal_and_when_nobody_listens(self):
        process = self.start(self.nlsensor, "--interval", "10", "memory", stdout=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        result = self.run_program(self.nlsensor, "--dest", "/dev/full", "memory")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(self.run_program(self.nlsensor, "nonsense").returncode, 2)
        self.assertEqual(self.run_program(self.nlsensor, "--list").returncode, 0)


class Values(support.Case):
    """Compares the values of sensors with those of other programs."""

    def setUp(self):
        super().setUp()
        self.sensor = support.program("nlagent/sensor")

    def records(self, *command, event, options=()):
        """Returns the fields of each record of an event."""
        result = self.run_program(self.sensor, *options, *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = []
        for line in result.stdout.split("\n"):
            fields = dict(re.findall(r'([A-Z][A-Z0-9_.]*)=("(?:[^"\\\\]|\\\\.)*"|\S*)', line))
            if fields.get("NL.EVNT") == event:  # an empty line means that the sensor runs
                found.append({k: v.strip('"') for k, v in fields.items()})
        return found

    once = ("--interval", "0.05", "--count", "1")

    def test_documented_table_is_what_is_logged(self):
        result = self.run_program(self.sensor, "--table")
        self.assertEqual(result.stdout, (support.SOURCE / "doc/sensors.md").read_text(),
                         "doc/sensors.md is made by nlsensor --table")
        known = {(event, name) for event, table in re.findall(r"^### (\S+)\n([^#]*)", result.stdout, re.M)
                 for name in re.findall(r"^- `([A-Z][A-Z0-9.]+)`", table, re.M)}
        out = self.run_program(self.sensor, *self.once).stdout
        out += self.run_program(self.sensor, *self.once, "connections", "ping?host=127.0.0.1", "processes?pid=1&files=yes",
                                "server?url=http://127.0.0.1:1/", "interrupts?each=yes").stdout
        self.assertIn("NL.EVNT=CpuOne", out)
        for line in filter(None, out.splitlines()):
            event = re.search(r"NL\.EVNT=(\S+)", line).group(1)
            for name in re.findall(r" ([A-Z][A-Z0-9.]+)=", line.split("NL.EVNT=")[1]):
                self.assertIn((event, name), known)

    def test_every_sensor_of_the_default_logs(self):
        out = self.run_program(self.sensor, *self.once).stdout
        for event in ["CpuLoad", "CpuOne", "LoadAverage", "MemoryFree", "SwapUse", "VmActivity", "DiskIo",
                      "TcpSegments", "InterruptRate", "ProcessSummary", "ClockKernel", "NetworkInterface"]:
            self.assertIn(f"NL.EVNT={event} ", out)

    def test_cpu_states_add_up(self):
        for record in self.records("--interval", "0.3", "--count", "3", "cpu", event="CpuOne"):
            states = [float(record[f"CPU.{s}"]) for s in "USER NICE SYS IDLE IOWAIT IRQ SOFTIRQ STEAL".split()]
            self.assertAlmostEqual(sum(states), 100, delta=0.1)
            self.assertAlmostEqual(float(record["CPU.BUSY"]), 100 - states[3] - states[4], delta=0.1)
        ids = {r["CPU.ID"] for r in self.records("--interval", "0.3", "--count", "3", "cpu", event="CpuOne")}
        self.assertLessEqual(len(ids), os.cpu_count())
        self.assertIn("0", ids)

    def test_filesystem_is_what_df_says(self):
        record, = self.records("--count", "1", "--interval", "0.001", "filesystem?mount=/", event="FilesystemSpace")[:1]
        df = self.run_program("df", "-B1", "--output=size,itotal", "/").stdout.split()
        self.assertEqual(record["FS.TOTAL"], df[-2])
        self.assertEqual(record["FS.FILES"], df[-1])

    def test_network_counts_what_was_sent(self):
        sensor = self.start(self.sensor, "--interval", "0.5", "--count", "60", "network", stdout=subprocess.PIPE, text=True)
        found = (re.search(r"DATE=\d{12}(\S+) .*NET\.NAME=lo .*NET\.OUT\.PACKETS=(\S+)", line) for line in sensor.stdout)
        looks = (map(float, look.groups()) for look in found if look)
        before, _ = next(looks)
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0))
        for _ in range(500):
            receiver.sendto(b"x" * 1000, receiver.getsockname())
            receiver.recv(2000)
        sent = 0
        for now, rate in looks:  # on a busy machine, samples are late
            sent += (now - before) % 60 * rate
            before = now
            if sent > 400:
                break
        self.assertGreater(sent, 400)

    def test_connection_is_what_ss_says(self):
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        peer, _ = server.accept()
        # Imitates a program that still tries to connect to the port of an earlier server.
        other = socket.create_connection(("127.0.0.1", port))
        self.addCleanup(other.close)
        client.sendall(b"x" * 100000)
        while len(peer.recv(1 << 20, socket.MSG_PEEK)) < 50000:
            time.sleep(0.01)
        records = self.records(*self.once, f"connections?port={port}", event="TcpConnection")
        ends = ["127.0.0.1:%d" % s.getsockname()[1] for s in (client, peer)]
        mine, accepted = ([r for r in records if [r["TCP.LOCAL"], r["TCP.PEER"]] == e] for e in (ends, ends[::-1]))
        self.assertTrue(mine and accepted, records)
        self.assertGreaterEqual(int(mine[-1]["TCP.BYTES.SENT"]), 100000)  # including retransmissions
        self.assertEqual(mine[-1]["TCP.STATE"], "established")
        said = self.run_program("ss", "-tinmeH", f"sport = :{client.getsockname()[1]}").stdout
        for name, pattern in [("TCP.CWND", r"cwnd:(\d+)"), ("TCP.BYTES.SENT", r"bytes_sent:(\d+)"), ("TCP.BYTES.ACKED", r"bytes_acked:(\d+)"),
                              ("TCP.MSS", r" mss:(\d+)"), ("TCP.WINDOW", r"snd_wnd:(\d+)"), ("TCP.SCALE.OUT", r"wscale:(\d+)"), ("TCP.SCALE.IN", r"wscale:\d+,(\d+)"),
                              ("TCP.BUFFER.OUT", r"skmem:.*,tb(\d+)"), ("TCP.UID", r"uid:(\d+)"), ("TCP.INODE", r"ino:(\d+)"),
                              ("TCP.COOKIE", r"sk:(\w+)")]:
            expected = re.search(pattern, said + " uid:0").group(1)  # ss prints no uid of root
            self.assertEqual(mine[-1][name], str(int(expected, 16)) if name == "TCP.COOKIE" else expected, said)
        self.assertEqual([mine[-1]["TCP.PID"], mine[-1]["TCP.PROGRAM"]], [str(os.getpid()), open("/proc/self/comm").read().strip()])
        self.assertIn("0::" + mine[-1]["TCP.CGROUP"] + "\n", open("/proc/self/cgroup").read())
        rtt = float(re.search(r"rtt:([\d.]+)/", said).group(1)) * 1000
        self.assertAlmostEqual(float(mine[-1]["TCP.RTT"]), rtt, delta=1)
        self.assertGreater(int(accepted[-1]["TCP.QUEUE.IN"]), 0)

    def test_connections_have_no_limit_and_are_logged_when_they_change(self):
        server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=700)
        port = server.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(600)]
        peers = [server.accept()[0] for _ in clients]
        sensor = self.start(self.sensor, "--interval", "0.05", f"connections?port={port}", stdout=subprocess.PIPE, text=True)

        def measurement():
            lines = []  # skips empty lines and the ends of connections: another program may try to connect to this port
            for line in sensor.stdout:
                if "NL.EVNT=TcpConnection" in line:
                    lines.append(line)
                if "NL.EVNT=TcpConnections" in line:
                    return lines

        first = measurement()
        names = [re.search(r"TCP.LOCAL=(\S+) TCP.PEER=(\S+)", l).groups() for l in first[:-1]]
        self.assertEqual(len(set(names)), 1200)
        self.assertEqual({(b, a) for a, b in names}, set(names))  # both ends have the same names, though the server's is IPv6
        self.assertIn("TCP.CONNECTIONS=1200 TCP.EXAMINED=1200 TCP.LOGGED=1200 ", first[-1])
        self.assertIn("TCP.LOGGED=0 ", measurement()[-1])
        clients[300].sendall(b"x" * 500)
        changed = []
        while len({l.split("TCP.COOKIE=")[1].split()[0] for l in changed}) < 2:
            changed += measurement()[:-1]
        self.assertTrue(any("TCP.QUEUE.IN=500 " in l for l in changed), changed)
        self.assertEqual({str(clients[300].getsockname()[1]) in l for l in changed}, {True})
        for s in (server, *clients, *peers):
            s.close()

    def test_ports_that_the_kernel_chooses_while_connecting(self):
        """When a connection opens, the kernel does not know the client's port yet. Each measurement counts the connection, and logs
        only connections with the port."""
        server = socket.create_server(("127.0.0.1", 0))
        with socket.socket() as chosen:
            chosen.bind(("127.0.0.1", 0))
            port = chosen.getsockname()[1]
        sensor = self.start(self.sensor, "--interval", "0.05", f"connections?port={port}", stdout=subprocess.PIPE, text=True)
        logged = set()

        def measurement():
            for line in sensor.stdout:
                record = dict(field.split("=", 1) for field in line.split())
                if record.get("NL.EVNT") == "TcpConnections":
                    return record
                if record.get("NL.EVNT") == "TcpConnection":
                    logged.add((record["TCP.LOCAL"], record["TCP.PEER"]))

        def connect(own_port=None):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closes without the state TIME_WAIT
            if own_port:
                client.setsockopt(socket.IPPROTO_IP, 51, struct.pack("HH", own_port, own_port))  # IP_LOCAL_PORT_RANGE
            client.connect(server.getsockname())
            return client, server.accept()[0]

        if measurement()["TCP.ITERATED"] == "0" or tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) < (6, 3):
            self.skipTest("the kernel has no hooks, or eBPF is not permitted here")
        for _ in range(10):  # only a complete reading, every 2 s, would repair the number
            pairs = [connect(), connect(port)]
            measurement()  # may have begun before
            self.assertEqual(measurement()["TCP.CONNECTIONS"], "2")
            for s in pairs[0] + pairs[1]:
                s.close()
            measurement()
            self.assertEqual(measurement()["TCP.CONNECTIONS"], "0")
        ends = ("127.0.0.1:%d" % port, "127.0.0.1:%d" % server.getsockname()[1])
        self.assertEqual(logged, {ends, ends[::-1]})

    def test_no_change_is_missed_though_idle_connections_are_not_examined(self):
        """Hooks in the kernel mark the connections in use. Each change is in a record soon, and the totals at the end are exact."""
        server = socket.create_server(("127.0.0.1", 0), backlog=300)
        port = server.getsockname()[1]
        pairs = [(socket.create_connection(("127.0.0.1", port)), server.accept()[0]) for _ in range(300)]
        sensor = self.start(self.sensor, "--interval", "0.05", f"connections?port={port}", stdout=subprocess.PIPE, text=True)
        names = {s: "%s:%d" % s.getsockname() + " %s:%d" % s.getpeername() for pair in pairs for s in pair}
        sent, received, unread = ({s: 0 for s in names} for _ in range(3))
        last, ends = {}, {}  # the last record of each connection, and its TcpClose record

        def measurement():
            for line in sensor.stdout:
                record = dict(field.split("=", 1) for field in line.split())
                if record.get("NL.EVNT") == "TcpConnections":
                    return record
                if record:
                    (ends if record["NL.EVNT"] == "TcpClose" else last)[record["TCP.LOCAL"] + " " + record["TCP.PEER"]] = record

        def send(a, b, size):
            a.sendall(b"x" * size)
            sent[a], received[b], unread[b] = sent[a] + size, received[b] + size, unread[b] + size

        def read(a):
            a.recv(unread[a], socket.MSG_WAITALL)
            unread[a] = 0

        def is_logged(s):
            record = last[names[s]]
            return [int(record["TCP." + f]) for f in ("BYTES.SENT", "BYTES.RECEIVED", "QUEUE.IN")] == [sent[s], received[s], unread[s]]

        def examined_until(condition):
            limit = time.monotonic() + 60
            while time.monotonic() < limit:
                summary = measurement()
                if condition(summary):
                    return int(summary["TCP.EXAMINED"])
            self.fail(f"not logged: {summary}, {last}"[:3000])

        if measurement()["TCP.ITERATED"] == "0" or tuple(int(n) for n in re.findall(r"\d+", os.uname().release)[:2]) < (6, 3):
            self.skipTest("the kernel has no hooks, or eBPF is not permitted here")
        pairs[0][0].shutdown(socket.SHUT_WR)
        self.assertEqual(pairs[0][1].recv(1), b"")
        received[pairs[0][1]] = 1  # the FIN
        examined_until(lambda summary: int(summary["TCP.EXAMINED"]) <= 2)  # the connection that is half closed remains marked
        examined, choose = [], random.Random(28)
        for step in range(60):
            a, b = choose.choice(pairs[1:])[:: choose.choice((1, -1))] if step % 10 else pairs[0][::-1]
            if unread[a]:
                read(a)
            else:
                send(a, b, choose.randrange(1, 5000))
                if choose.random() < 0.5:
                    read(b)
            examined.append(examined_until(lambda _: is_logged(a) and is_logged(b)))
        marked = [e for e in examined if e < 600]
        self.assertGreater(len(marked), 45, examined)  # complete readings are much rarer
        self.assertLess(max(marked), 130)
        self.assertEqual(int(measurement()["TCP.CONNECTIONS"]), 600)
        for s in names:
            read(s)
        for s in names:
            s.shutdown(socket.SHUT_RDWR) if s is not pairs[0][0] else None
            s.close()
        examined_until(lambda summary: summary["TCP.EXAMINED"] == "0" and len(ends) == 600)
        for s, name in names.items():
            record = ends[name]
            self.assertEqual(int(record["TCP.BYTES.SENT"]), sent[s], record)
            self.assertIn(int(record["TCP.BYTES.RECEIVED"]) - received[s], (0, 1), record)  # the FIN counts
        server.close()

    def test_unknown_minimum_round_trip_time_is_0(self):
        server = socket.create_server(("127.0.0.1", 0), backlog=0)
        clients = [socket.socket() for _ in range(4)]
        for c in (server, *clients):
            self.addCleanup(c.close)
        for c in clients:  # the queue of accepted connections has no space for the last ones
            c.setblocking(False)
            c.connect_ex(server.getsockname())
        records = self.records(*self.once, f"connections?port={server.getsockname()[1]}", event="TcpConnection")
        connecting = [r for r in records if r["TCP.STATE"] == "syn-sent"]
        self.assertTrue(connecting, records)
        self.assertEqual({r["TCP.RTT.MIN"] for r in connecting}, {"0"})

    def short_connections(self, count, *prefix):
        """Makes connections of one byte each, beside a sensor. Returns its TcpClose records, its last TcpConnections record, and the server's port."""
        server = socket.create_server(("127.0.0.1", 0), backlog=count)
        port = server.getsockname()[1]
        sensor = self.start(*prefix, self.sensor, "--interval", "0.3", f"connections?port={port}", stdout=subprocess.PIPE, text=True)
        lines = [sensor.stdout.readline()]
        for _ in range(count):
            with socket.create_connection(server.getsockname()) as client:
                client.sendall(b"x")
                accepted = server.accept()[0]
                accepted.recv(1)
                accepted.close()
        accepted.close()
        server.close()
        closed = time.strftime("DATE=%Y%m%d%H%M%S", time.gmtime(time.time() + 1))
        for line in sensor.stdout:
            lines.append(line)
            if "NL.EVNT=TcpConnections " in line and line > closed:
                break
        sensor.kill()
        return [l for l in lines if "NL.EVNT=TcpClose " in l], [l for l in lines if "NL.EVNT=TcpConnections " in l][-1], port

    def test_no_end_of_a_short_connection_is_missed(self):
        ends, summary, port = self.short_connections(1000)
        if "TCP.ENDS.WATCHED=1" not in summary:
            self.skipTest("eBPF is not permitted here")
        self.assertIn("TCP.ENDS=2000 TCP.ENDS.MISSED=0 ", summary)
        self.assertEqual(len({re.search(r"COOKIE=(\d+)", e)[1] for e in ends}), 2000)
        clients = [e for e in ends if f"TCP.PEER=127.0.0.1:{port} " in e]
        self.assertEqual(len(clients), 1000)
        for e in ends:
            self.assertRegex(e, "BYTES.SENT=1 .*BYTES.RECEIVED=[01] " if e in clients else "BYTES.SENT=0 .*BYTES.RECEIVED=[12] ")
            self.assertLess(int(re.search(r"HANDSHAKE=(\d+)", e)[1]), int(re.search(r"DURATION=(\d+)", e)[1]))

    def test_ends_since_the_last_measurement_are_logged_when_the_sensor_stops(self):
        server = socket.create_server(("127.0.0.1", 0))
        sensor = self.start(self.sensor, "--interval", "60", f"connections?port={server.getsockname()[1]}", stdout=subprocess.PIPE, text=True)
        if "TCP.ENDS.WATCHED=1" not in sensor.stdout.readline():
            self.skipTest("eBPF is not permitted here")
        with socket.create_connection(server.getsockname()):
            server.accept()[0].close()
        server.close()
        sensor.terminate()
        self.assertEqual(sensor.stdout.read().count("NL.EVNT=TcpClose "), 2)
        self.assertEqual(sensor.wait(60), 0)

    def test_without_the_right_to_use_ebpf_the_sensor_polls(self):
        if os.geteuid() != 0:
            self.skipTest("dropping capabilities needs root")
        ends, summary, _ = self.short_connections(5, "setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin")
        self.assertEqual(ends, [])
        self.assertIn("TCP.ENDS.WATCHED=0 ", summary)
        self.assertNotIn("TCP.ENDS=", summary)

    def test_polling_sensor_counts_the_connections_that_it_misses(self):
        """In a network namespace of its own, both ends of 200 connections exist only for a moment, and those of one connection remain."""
        if os.geteuid() != 0:
            self.skipTest("dropping capabilities needs root")
        script = """if True:
            import datetime, socket, subprocess, sys
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            server = socket.create_server(("127.0.0.1", 0))
            old = socket.create_connection(server.getsockname()), server.accept()
            sensor = subprocess.Popen(["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin", sys.argv[1], "--interval", "0.5", "connections"],
                                      stdout=subprocess.PIPE, text=True)
            summaries = (line for line in sensor.stdout if "NL.EVNT=TcpConnections " in line)
            next(summaries)
            for _ in range(200):
                with socket.create_connection(server.getsockname()):
                    server.accept()[0].close()
            new = socket.create_connection(server.getsockname()), server.accept()
            now = datetime.datetime.now(datetime.timezone.utc).strftime("DATE=%Y%m%d%H%M%S.%f")
            measurements = 1
            while next(summaries) < now:
                measurements += 1
            print(measurements, next(summaries))
            sensor.kill()"""
        result = self.run_program("unshare", "--net", sys.executable, "-c", script, self.sensor)
        if "unshare failed" in result.stderr:
            self.skipTest(f"no network namespaces here: {result.stderr.strip()[:100]}")
        found = re.search(r"\A(\d+) .*TCP.CONNECTIONS=(\d+) .*TCP.ENDS.WATCHED=0 TCP.ENDS.MISSED=(\d+) ", result.stdout)
        self.assertEqual(found[2], "4", result)
        self.assertAlmostEqual(int(found[3]), 400, delta=2 * int(found[1]) + 2)  # each measurement can find both ends of a connection

    def test_iterator_agrees_with_sock_diag(self):
        """Both ways to read the kernel report the same state of connections that transfer no data."""
        if os.geteuid() != 0:
            self.skipTest("dropping capabilities needs root")
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        accepted = server.accept()[0]
        for s in (server, client, accepted):
            self.addCleanup(s.close)
        for _ in range(20):
            client.sendall(b"x" * 30000)
            accepted.recv(30000, socket.MSG_WAITALL)
        accepted.sendall(b"y" * 700)  # remains unread
        support.wait_until(lambda: len(client.recv(700, socket.MSG_PEEK)) == 700, what="the data arrives")
        time.sleep(0.3)  # delayed acknowledgements
        read = [{}, {}]
        for found, prefix in zip(read, ([], ["setpriv", "--bounding-set", "-bpf,-perfmon,-sys_admin"])):
            out = self.run_program(*prefix, self.sensor, *self.once, f"connections?port={server.getsockname()[1]}").stdout
            for record in (dict(f.split("=", 1) for f in line.split()) for line in out.splitlines() if line):
                if record["NL.EVNT"] == "TcpConnections":
                    found["iterated"] = record["TCP.ITERATED"]
                elif record["NL.EVNT"] == "TcpConnection":
                    found[record["TCP.COOKIE"]] = record
        if read[0]["iterated"] == "0":
            self.skipTest("eBPF is not permitted here")
        self.assertEqual((read[0]["iterated"], read[1]["iterated"], len(read[0])), ("1", "0", 3))
        for cookie, polled in read[1].items():
            if cookie == "iterated":
                continue
            iterated = read[0][cookie]
            changing = {"DATE", "TCP.IDLE.OUT", "TCP.OWNER.WAIT", "TCP.OWNER.STATE"}
            self.assertEqual({k: v for k, v in iterated.items() if not k.startswith(("TCP.SEQUENCE", "TCP.DELAY")) and k not in changing},
                             {k: v for k, v in polled.items() if k not in changing})
            self.assertGreaterEqual(int(polled["TCP.IDLE.OUT"]), int(iterated["TCP.IDLE.OUT"]))
            self.assertEqual(int(iterated["TCP.DELAY.IN"]) % 1000, 0)  # test_connections checks the delays of a path
        first, second = (read[0][c] for c in read[1] if c != "iterated")
        for a, b in (first, second), (second, first):  # the end that connected counts its SYN
            self.assertIn((int(b["TCP.SEQUENCE.IN"]) - int(a["TCP.SEQUENCE.OUT"])) % 2**32, (0, 1))

    def test_process_is_what_proc_says(self):
        sleeper = self.start("sleep", "1000")
        support.wait_until(lambda: open(f"/proc/{sleeper.pid}/stat").read().rsplit(")")[1].split()[0] == "S", what="it sleeps")
        record = self.records(*self.once, f"processes?pid={sleeper.pid}&files=yes", event="Process")[-1]
        self.assertEqual(record["PROC.NAME"], "sleep")
        self.assertEqual(record["PROC.STATE"], "S")
        self.assertEqual(record["PROC.THREADS"], "1")
        self.assertEqual(int(record["PROC.PARENT"]), os.getpid())
        self.assertEqual(int(record["PROC.FILES"]), len(os.listdir(f"/proc/{sleeper.pid}/fd")))
        pages = int(open(f"/proc/{sleeper.pid}/statm").read().split()[1])
        self.assertEqual(int(record["PROC.RESIDENT"]), pages * os.sysconf("SC_PAGESIZE"))

    def test_ping_and_server(self):
        pings = self.records("--interval", "0.1", "--count", "4", "ping?host=127.0.0.1&count=3", event="Ping")
        self.assertEqual([r["PING.ANSWERED"] for r in pings], ["3"] * 4)
        self.assertEqual({r["PING.LOSS"] for r in pings}, {"0"})
        self.assertGreater(float(pings[0]["PING.RTT"]), 0)
        server = socket.create_server(("127.0.0.1", 0))
        url = "127.0.0.1:%d" % server.getsockname()[1]
        up = self.records(*self.once, f"server?url=tcp://{url}", event="ServerStatus")
        self.assertEqual(up[-1]["SERVER.UP"], "true")
        hanging = self.records(*self.once, f"server?url=http://{url}/&timeout=100", event="ServerStatus")
        self.assertEqual(hanging[-1]["SERVER.UP"], "false")
        self.assertIn("timed out", hanging[-1]["SERVER.ERROR"])
        server.close()
        down = self.records(*self.once, f"server?url=tcp://{url}", event="ServerStatus")
        self.assertIn("refused", down[-1]["SERVER.ERROR"])

    def test_prometheus(self):
        page = self.scratch / "metrics"
        page.write_text('# HELP a b\n# TYPE a counter\na_total{path="/x \\"y\\"",code="200"} 12 1395066363000\nb NaN\n'
                        'bad{x} 1\nc{d="e"}\n d 5\nlast 1.5e3')
        port = support.free_port()
        self.start(sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", cwd=self.scratch,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port))
        out = self.run_program(self.sensor, *self.once, f"prometheus?url=http://127.0.0.1:{port}/metrics").stdout
        self.assertIn('DATE=20140317142603.000000 ', out)
        self.assertIn('NL.EVNT=a_total path="/x \\"y\\"" code=200 VALUE=12\n', out)
        self.assertIn("NL.EVNT=last VALUE=1500\n", out)
        self.assertIn("NL.EVNT=b VALUE=nan\n", out)
        self.assertIn("SAMPLES=3 SERVER.STATUS=200\n", out)

    def test_collectd(self):
        """The sensor logs each value of a real collectd once, with its time. If collectd does not run, the sensor reports
        this."""
        program = next((p for p in ("/usr/sbin/collectd", "/usr/local/sbin/collectd") if os.path.exists(p)), None)
        if program is None:
            self.skipTest("no collectd here")
        path = self.scratch / "socket"
        missing = self.run_program(self.sensor, *self.once, f"collectd?socket={path}").stdout
        self.assertIn('NL.EVNT=CollectdRead', missing)
        self.assertIn('SAMPLES=0 COLLECTD.ERROR="connect: No such file or directory"', missing)
        configuration = self.scratch / "collectd.conf"
        configuration.write_text(f'Hostname "there"\nFQDNLookup false\nBaseDir "{self.scratch}"\nPIDFile "{self.scratch}/pid"\n'
                                 'Interval 1\nLoadPlugin load\nLoadPlugin memory\nLoadPlugin interface\nLoadPlugin unixsock\n'
                                 f'<Plugin unixsock>\nSocketFile "{path}"\nSocketGroup "{grp.getgrgid(os.getgid()).gr_name}"\n'
                                 '</Plugin>\n')
        daemon = self.start(program, "-f", "-C", configuration, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "NL.EVNT=load.load" in self.run_program(
            self.sensor, *self.once, f"collectd?socket={path}").stdout, what="collectd's first values")
        out = self.run_program(self.sensor, "--interval", "0.2", "--count", "15", f"collectd?socket={path}").stdout
        loads = re.findall(r"^DATE=(\S+) .*NL.EVNT=load.load COLLECTD.HOST=there SHORTTERM=(\S+) MIDTERM=\S+ LONGTERM=", out, re.M)
        self.assertIn(len(loads), range(2, 7), out)
        self.assertEqual(len({date for date, _ in loads}), len(loads), "each once")
        self.assertRegex(out, r"NL.EVNT=memory.memory COLLECTD.HOST=there TYPE.INSTANCE=used VALUE=\d")
        out = self.run_program(self.sensor, *self.once, f"collectd?socket={path}&match=load/*").stdout
        self.assertEqual(set(re.findall(r"NL.EVNT=(\S+)", out)), {"load.load", "CollectdRead"})
        stopped = self.start(self.sensor, "--interval", "0.1", f"collectd?socket={path}", stdout=subprocess.PIPE, text=True)
        stopped.stdout.readline()
        daemon.kill()
        for line in stopped.stdout:
            if "COLLECTD.ERROR" in line:
                break
        self.assertIn("SAMPLES=0", line, "its end is said, and it is tried again")
        stopped.kill()

    def test_collectd_that_is_none(self):
        """For any invalid response, the sensor reports the problem. The sensor does not hang, and its memory does not grow."""
        for answer in b"hello\n", b"99999999 Values found\n", b"x" * 100000, b"", b"3 Values found\n1 a\n\n/\n", b"-1 no\n":
            path = self.scratch / "socket"
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))
                listener.listen(1)
                reader = self.start(self.sensor, *self.once, f"collectd?socket={path}", stdout=subprocess.PIPE, text=True)
                connection, _ = listener.accept()
                connection.settimeout(20)
                connection.recv(100)
                try:
                    connection.sendall(answer)
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                self.assertIn("SAMPLES=0", reader.communicate(timeout=60)[0], answer[:30])
                connection.close()
            path.unlink()

    def test_clock_is_what_chronyc_says(self):
        told, printed = self.told_by_chronyd(f"{self.sensor} --count 1 --interval 0.1 clock")
        self.assertIn("NL.EVNT=ClockTracking", printed)
        seen = dict(re.findall(r"(CLOCK\.\S+)=(\S+)", printed[printed.index("ClockTracking"):].splitlines()[0]))
        self.assertEqual(seen["CLOCK.STRATUM"], told[2])
        self.assertAlmostEqual(float(seen["CLOCK.FREQUENCY"]), float(told[7]), delta=0.01)
        self.assertAlmostEqual(float(seen["CLOCK.SKEW"]), float(told[9]), delta=0.01)
        self.assertAlmostEqual(float(seen["CLOCK.OFFSET.RMS"]), float(told[6]) * 1e6, delta=1)

    def test_a_sensor_that_cannot_look(self):
        """The sensor continues without one source. Without any source, it ends with an error."""
        hidings = ["mount --bind /dev/null /proc/loadavg && mount --bind /dev/null /proc/meminfo"]
        if b"__asan_init" not in pathlib.Path(self.sensor).read_bytes():  # the address sanitizer needs /proc
            hidings.append("mount -t tmpfs tmpfs /proc")
        for hide in hidings:
            script = f"""
                {{ {hide}; }} || exit 77
                {self.sensor} --count 1 --interval 0.01 load 'server?url=tcp://127.0.0.1:1'
                echo $?
                {self.sensor} load memory
                echo $?"""
            result = self.run_program("unshare", "-m", "sh", "-c", script)
            if result.returncode == 77 or "unshare" in result.stderr:
                self.skipTest(f"mounting is not allowed here: {result.stderr.strip()[:100]}")
            self.assertEqual(re.findall("(?m)^[0-9]$", result.stdout), ["0", "1"], result.stdout + result.stderr)
            self.assertEqual(re.findall("sensor (.*): /proc/.*; continuing without it", result.stderr), ["load", "load", "memory"])

    def test_arguments_are_checked(self):
        for wrong in ["cpu?x=1", "ping", "ping?host=", "connections?port=0", "server?url=ftp://a", "cpu?", "c pu",
                      "interrupts?each=maybe", "ping?host=a&host=b", "processes?pid=x", "path", "path?peer=127.0.0.1&rate=101", "path?peer=127.0.0.1&check=1", "x" * 2000]:
            result = self.run_program(self.sensor, "--count", "1", "--interval", "0.01", wrong)
            self.assertNotEqual(result.returncode, 0, wrong)
            self.assertNotEqual(result.stderr, "", wrong)

    def test_controlled(self):
        process = self.start(self.sensor, "--controlled", "--interval", "1000", "load", stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
        self.assertIn("LoadAverage", process.stdout.readline())
        process.stdin.write("nonsense\ninterval 0.01\n")
        process.stdin.flush()
        for _ in range(5):
            self.assertIn("LoadAverage", process.stdout.readline())
        process.stdin.close()
        self.assertEqual(process.wait(20), 0)


if __name__ == "__main__":
    support.main()
