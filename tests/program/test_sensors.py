"""nlsensor: what it says against what the kernel says."""
import os
import re
import signal
import socket
import subprocess
import time
import unittest

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

    def test_cpu_load_is_seen(self):
        burner = [self.start("sh", "-c", "while :; do :; done") for _ in range(os.cpu_count())]
        result = self.run_program(self.nlsensor, "--interval", "0.5", "--count", "2", "cpu")
        for b in burner:
            b.kill()
        self.assertGreater(max(float(b) for b in re.findall(r"CPU\.BUSY=(\S+)", result.stdout)), 60)

    def test_retransmits_are_counted(self):
        if os.geteuid() != 0:
            self.skipTest("dropping packets needs root")
        script = f"""
            ip link set lo up || exit 77
            iptables -A INPUT -i lo -p tcp --dport 5555 -m statistic --mode nth --every 10 --packet 0 -j DROP || exit 77
            /usr/bin/python3 - <<'END' &
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
            {self.nlsensor} --interval 0.2 --count 10 tcp
            wait
            grep ^Tcp: /proc/net/snmp
        """
        result = self.run_program("unshare", "-n", "bash", "-c", script)
        if result.returncode == 77 or "iptables" in result.stderr or "unshare" in result.stderr:
            self.skipTest(f"no namespace or iptables here: {result.stderr.strip()[:100]}")
        counted = sum(int(n) for n in re.findall(r"NL\.EVNT=TcpSegments TCP\.RETRANS=(\d+)", result.stdout))
        names, values = [l.split() for l in result.stdout.splitlines() if l.startswith("Tcp:")]
        kernel = int(values[names.index("RetransSegs")])
        self.assertGreater(counted, 0)
        self.assertLessEqual(counted, kernel)
        self.assertIn("NL.EVNT=TcpRetransmit", result.stdout)

    def test_ends_on_signal_and_when_nobody_listens(self):
        process = self.start(self.nlsensor, "--interval", "10", "memory", stdout=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(5), 0)
        result = self.run_program(self.nlsensor, "--dest", "/dev/full", "memory")
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left", result.stderr)
        self.assertEqual(self.run_program(self.nlsensor, "nonsense").returncode, 2)
        self.assertEqual(self.run_program(self.nlsensor, "--list").returncode, 0)


if __name__ == "__main__":
    support.main()
