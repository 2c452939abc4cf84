"""Clocks that really differ: two guests exchange messages through this host and log them to a netlogd here.

The processor's counter gives the true time: an emulated counter runs as this machine's counter, from the start of the
guest, which qemu reports. The test takes a minute, because the guests are emulated.
"""
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import collector
import guest
import support
from test_clocks import CLIENT
from test_fix_clocks import fields, rounds_of, to_ns, violations

HOST, FIRST, SECOND = "10.77.0.1", "10.77.0.2", "10.77.0.3"
NETWORK = ("af_packet", "virtio_net")
ROUNDS = 400
COUNTER = r"""
#include <stdio.h>
#include <time.h>
int main(void)
{
    struct timespec now;
    unsigned long long before, after, best = -1ULL, middle = 0;
    long long at = 0;
    for (int i = 0; i < 1000; i++) {
        before = __builtin_ia32_rdtsc();
        clock_gettime(CLOCK_REALTIME, &now);
        after = __builtin_ia32_rdtsc();
        if (after - before < best) {
            best = after - before;
            middle = before + best / 2;
            at = now.tv_sec * 1000000000LL + now.tv_nsec;
        }
    }
    printf("%llu %lld\n", middle, at);
    return 0;
}
"""


class Guests(collector.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or not shutil.which("ip"):
            self.skipTest("network namespaces take root and the command ip")
        self.guests = [guest.Guest(self, name, NETWORK) for name in ("first", "second")]
        self.namespace = f"nlclocks{os.getpid()}"
        self.inside = ["ip", "netns", "exec", self.namespace]
        if self.run_program("ip", "netns", "add", self.namespace).returncode != 0:
            self.skipTest("no network namespace can be made here")
        self.addCleanup(self.run_program, "ip", "netns", "delete", self.namespace)
        for command in ("ip link set lo up", "ip link add br0 type bridge", f"ip address add {HOST}/24 dev br0",
                        "ip link set br0 up", "ip tuntap add tap0 mode tap", "ip tuntap add tap1 mode tap",
                        "ip link set tap0 master br0 up", "ip link set tap1 master br0 up"):
            result = self.run_program(*self.inside, *command.split())
            if result.returncode != 0:
                self.skipTest(f"{command}: {result.stderr}")
        self.pingpong = self.compile("pingpong", (support.SOURCE / "tests/program/pingpong.c").read_text())
        self.clock = self.compile("guest_clock", (support.SOURCE / "tests/program/guest_clock.c").read_text())
        self.began = [0, 0]

    def compile(self, name, source):
        program = self.compile_client(source)
        return program.rename(program.with_name(name))

    def listen(self):
        """netlogd, in the namespace, where the guests reach it."""
        with open(self.messages, "wb") as messages:
            server = self.start(*self.inside, support.program("netlogd/netlogd"), "--foreground", "--listen",
                                f"x-netlog://{HOST}:14830", "--allow", "10.77.0.0/24", "--output", self.output,
                                stderr=messages, env={**os.environ, "NETLOGGER_HOST": "host"})
        support.wait_until(lambda: server.poll() is None and "listening" in self.said(), what="netlogd listens")
        return server

    def begin(self, number, path):
        """Starts a guest, and records the microsecond of its start."""
        support.wait_until(path.exists, what="qemu")
        with socket.socket(socket.AF_UNIX) as control:
            support.wait_until(lambda: control.connect_ex(str(path)) == 0, what="qemu's control")
            stream = control.makefile("rw")
            stream.readline()
            for command in ("qmp_capabilities", "cont"):
                stream.write(json.dumps({"execute": command}))
                stream.flush()
            for line in stream:
                said = json.loads(line)
                if said.get("event") == "RESUME":
                    self.began[number] = said["timestamp"]["seconds"] * 10**9 + said["timestamp"]["microseconds"] * 1000
                    for _ in stream:  # until the guest ends
                        pass
                    return

    def boot(self, commands, seconds=400):
        """Runs both guests together, each with its commands."""
        failures = []

        def run(number):
            try:
                control = self.guests[number].folder / "qmp"
                threading.Thread(target=self.begin, args=(number, control), daemon=True).start()
                self.guests[number].run(
                    commands[number], [], seconds=seconds, prefix=self.inside,
                    options=["-S", "-qmp", f"unix:{control},server,nowait", "-netdev", f"tap,id=n,ifname=tap{number},script=no,downscript=no",
                             "-device", f"virtio-net-pci,netdev=n,romfile=,mac=52:54:00:77:00:0{number + 2}"])
            except Exception as error:  # an exception of a thread would be lost
                failures.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def counter(self):
        return [int(n) for n in self.run_program(self.scratch / "counter").stdout.split()]

    def test_ping_pong(self):
        """The clock of one guest is 5 s fast, and that of the other 3 s slow. They drift by 100 ppm in opposite directions."""
        self.compile("counter", COUNTER)
        before, server = self.counter(), self.listen()
        url = f"x-netlog://{HOST}:14830?clock=1"
        for each in self.guests:
            each.add(self.pingpong)
            each.add(self.clock)
        self.boot([[["/bin/guest_clock", "first", FIRST, "5", "100"], ["/bin/pingpong", url, "listen", "7777", ROUNDS]],
                   [["/bin/guest_clock", "second", SECOND, "-3", "-100"], ["/bin/pingpong", url, FIRST, "7777", ROUNDS]]])
        after = self.counter()
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        for each in self.guests:
            self.assertIn("GUEST /bin/pingpong: 0", each.said)
        nlsort = support.program("nlsort/nlsort")
        logged = self.run_program(nlsort, self.output).stdout.splitlines()
        self.assertEqual(violations(rounds_of(logged)), ROUNDS)
        fixed = self.run_program(nlsort, "--fix-clocks", self.output)
        self.assertEqual(fixed.returncode, 0, fixed.stderr)
        lines = [line for line in fixed.stdout.splitlines() if "MSG.ID" in line]
        self.assertEqual(len(lines), 4 * ROUNDS)
        self.assertEqual(violations(rounds_of(lines)), 0)
        errors = dict(re.findall(r"clock of (\S+): .* error at most ([\d.]+) us", fixed.stderr))
        drifts = dict(re.findall(r"clock of (\S+): .* drift ([-+\d.]+) ppm", fixed.stderr))
        self.assertAlmostEqual(float(drifts["first"]), 100, delta=30)
        self.assertAlmostEqual(float(drifts["second"]), -100, delta=30)
        a_tick = (after[1] - before[1]) / (after[0] - before[0])
        off = {"first": [], "second": []}
        for record in map(fields, lines):
            number = ("first", "second").index(record["HOST"])
            off[record["HOST"]].append(to_ns(record["DATE"]) - (self.began[number] + int(record["TSC"]) * a_tick))
        for host, values in off.items():
            values.sort()
            print(f"# {host}: off by {values[0] / 1e3:.0f} to {values[-1] / 1e3:.0f} us, median {values[len(values) // 2] / 1e3:.0f}; "
                  f"error told {errors[host]} us")
            # An event's own time is a little later than the preceding reading of the counter, and more if the program is interrupted.
            self.assertLess(abs(values[len(values) // 2]), max(200e3, float(errors[host]) * 1e3), fixed.stderr)
            near = sum(abs(value) < max(200e3, float(errors[host]) * 1e3) for value in values)
            self.assertGreater(near, 0.95 * len(values), fixed.stderr)

    def test_chronyd_in_the_guests(self):
        """ClockTracking in the guest agrees with chronyc there. The guest's chronyd uses a chronyd on this host."""
        if not shutil.which("chronyd") or not shutil.which("chronyc"):
            self.skipTest("chronyd is not installed (package chrony)")
        server, here = self.listen(), self.scratch / "chrony.conf"
        here.write_text(f"local stratum 5\nallow 10.77.0.0/24\npidfile {self.scratch}/pid\nbindcmdaddress /\ncmdport 0\n")
        self.start(*self.inside, shutil.which("chronyd"), "-x", "-d", "-u", "root", "-f", here, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
        there = (f"server {HOST} iburst minpoll -2 maxpoll 0\nmakestep 0.1 -1\npidfile /tmp/pid\ndriftfile /tmp/drift\n"
                 "bindcmdaddress 127.0.0.1\nbindcmdaddress /\nrtcsync\n")
        client, commands = self.compile("client", CLIENT), []
        for each, name, address, seconds, drift in zip(self.guests, ("first", "second"), (FIRST, SECOND), ("5", "-3"), ("100", "-100")):
            for program in (self.clock, client, shutil.which("chronyd"), shutil.which("chronyc")):
                each.add(program)
            each.files["etc/chrony.conf"] = there.encode()
            each.files["etc/passwd"] = b"root:x:0:0::/:/bin/sh\n"
            commands.append([["/bin/guest_clock", name, address, seconds, drift],
                             ["/bin/chronyd", "-u", "root", "-f", "/etc/chrony.conf"],
                             ["/bin/chronyc", "-h", "127.0.0.1", "waitsync", "120", "0.05", "100", "0.5"],
                             ["/bin/client", f"x-netlog://{HOST}:14830?clock=1", "4000"],
                             ["/bin/chronyc", "-h", "127.0.0.1", "-c", "tracking"]])
        self.boot(commands)
        server.send_signal(signal.SIGTERM)
        server.wait(20)
        text = self.output.read_text()
        for each, name in zip(self.guests, ("first", "second")):
            told = re.search(r"(?m)^[0-9A-F]{8},.*$", each.said)
            self.assertIsNotNone(told, each.said)
            told = told.group().split(",")
            mine = [record for record in map(fields, text.splitlines()) if record.get("HOST") == name]
            said = [record for record in mine if record["NL.EVNT"] == "ClockTracking"][-1]
            kernel = [record for record in mine if record["NL.EVNT"] == "ClockKernel"][-1]
            print(f"# {name}: chronyc says {told}, the log {said}")
            self.assertEqual((said["CLOCK.SOURCE"], said["CLOCK.STRATUM"]), (told[1], told[2]))
            self.assertEqual((told[1], told[2]), (HOST, "6"))
            self.assertEqual((said["CLOCK.SYNCHRONIZED"], kernel["CLOCK.SYNCHRONIZED"]), ("true", "true"))
            self.assertEqual(said["CLOCK.LEAP"], "0")
            skew = float(told[9]) + float(said["CLOCK.SKEW"])  # about a second between the two readings
            self.assertAlmostEqual(float(said["CLOCK.FREQUENCY"]), float(told[7]), delta=max(1, skew))
            # The same sum from chronyc's numbers, which include some later measurements.
            bound = 1e6 * (abs(float(told[4])) + float(told[11]) + float(told[10]) / 2)
            self.assertLess(float(said["CLOCK.ERROR"]), 4 * bound + 1000)
            self.assertGreater(float(said["CLOCK.ERROR"]), bound / 4 - 1000)
            self.assertLess(abs(float(said["CLOCK.OFFSET"]) - 1e6 * float(told[4])), float(said["CLOCK.ERROR"]) + bound)
            offset = [record for record in mine if record["NL.EVNT"] == "ClockOffset"][-1]
            bound = float(offset["CLOCK.ERROR"]) + float(said["CLOCK.ERROR"]) + 50e3
            self.assertLess(abs(float(offset["CLOCK.OFFSET"])), bound)


if __name__ == "__main__":
    support.main()
