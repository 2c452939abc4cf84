"""Clock records of programs: in the log, at the collector, and the collector's results from them."""
import os
import pathlib
import re
import socket
import struct
import threading
import time

import support
import collector
from test_fix_clocks import FAKETIME

CLIENT = r"""
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* Arguments: the URL, the milliseconds until the program ends, and what the program does during this time. */
int main(int argc, char **argv)
{
    nl_log *log = nl_open("client", argv[1]);
    if (log == NULL)
        return puts(nl_error_message()), 1;
    nl_write(log, NL_USAGE, "Hello", "N=%d", 1);
    usleep((unsigned)atoi(argv[2]) * 1000);
    if (argc > 3 && fork() == 0) {
        nl_write(log, NL_USAGE, "Child", NULL);
        _exit(nl_close(log));
    }
    nl_write(log, NL_USAGE, "Bye", "N=%d", 2);
    return nl_close(log);
}
"""


def records(text, event):
    return [dict(re.findall(r'([A-Z.]+)=("(?:[^"\\]|\\.)*"|\S*)', line)) for line in text.splitlines()
            if f"NL.EVNT={event} " in line + " "]


class Said(collector.Case):
    def setUp(self):
        super().setUp()
        self.client = self.compile_client(CLIENT)

    def log(self, options, *arguments, **more):
        path = self.scratch / "a.log"
        path.unlink(missing_ok=True)
        result = self.run_program(self.client, f"file:{path}?{options}", *(arguments or ["0"]),
                                  env={**os.environ, "NETLOGGER_CLOCK": "", **more})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return path.read_text()

    def test_kernel_is_said_on_opening_and_at_intervals(self):
        text = self.log("clock=0.1", "3000")
        said = records(text, "ClockKernel")
        self.assertGreaterEqual(len(said), 3)
        self.assertTrue(text.splitlines()[0].count("ClockKernel"), text)
        for record in said:
            self.assertEqual(record["LVL"], "System" if record["CLOCK.SYNCHRONIZED"] == "true" else "Warning")
            for field in ("CLOCK.ERROR", "CLOCK.ERROR.ESTIMATED"):  # unknown, not the kernel's default of 16 s
                self.assertEqual(field in record, record["CLOCK.SYNCHRONIZED"] == "true")
            self.assertRegex(record["CLOCK.MACHINE"], "^[0-9a-f]{16}$")
            self.assertIn("CLOCK.OFFSET", record)
        self.assertEqual(len(records(text, "Hello")), 1)

    def test_default_is_off_for_files_and_the_environment_says_otherwise(self):
        self.assertNotIn("ClockKernel", self.log(""))
        self.assertIn("ClockKernel", self.log("", NETLOGGER_CLOCK="5"))
        self.assertNotIn("ClockKernel", self.log("clock=no", NETLOGGER_CLOCK="5"))

    def test_values_that_are_none(self):
        for value in ("0", "often", "-1", "0.01", "1e300", "", "nan"):
            result = self.run_program(self.client, f"file:{self.scratch}/b.log?clock={value}", "0")
            self.assertEqual(result.returncode, 1, value)
            self.assertIn("option clock", result.stdout)

    def test_a_child_says_no_more_than_its_parent(self):
        text = self.log("clock=100", "0", "fork")
        self.assertEqual(len(records(text, "Child")), 1)
        self.assertEqual(len(records(text, "ClockKernel")), 1)

    def test_nlwrite_writes_one_event(self):
        server = self.serve()
        result = self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{self.port}", "Alone",
                                  env={k: v for k, v in os.environ.items() if k != "NETLOGGER_CLOCK"})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stop(server)
        self.assertIn(b"NL.EVNT=Alone", self.written())
        self.assertEqual(self.written().count(b"\n"), 1)


class Chrony(support.Case):
    def test_what_is_logged_is_what_chronyc_says(self):
        client = self.compile_client(CLIENT)
        told, _ = self.told_by_chronyd(f"{client} 'file:{self.scratch}/a.log?clock=10' 300")
        said, = records((self.scratch / "a.log").read_text(), "ClockTracking")
        self.assertEqual(said["CLOCK.STRATUM"], told[2])
        self.assertEqual(said["CLOCK.SOURCE"], told[0])  # a local reference has a number and no name
        self.assertEqual(said["CLOCK.SYNCHRONIZED"], "true")
        self.assertAlmostEqual(float(said["CLOCK.FREQUENCY"]), float(told[7]), delta=0.01)
        self.assertAlmostEqual(float(said["CLOCK.SKEW"]), float(told[9]), delta=0.01)
        self.assertAlmostEqual(float(said["CLOCK.OFFSET.RMS"]), float(told[6]) * 1e6, delta=1)


class Measured(support.Case):
    """Tests with collectors whose clock is ahead by a known time."""

    def setUp(self):
        super().setUp()
        self.client = self.compile_client(CLIENT)

    def serve(self, answer, ahead_ns=0, collector=b"far.example"):
        """Starts a collector of the binary protocol. answer(T1 of the time block, T2, T3, the collector's name) returns the frame to send, or None."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        self.blocks, self.questions = [], []

        def run():
            connection, _ = server.accept()
            with connection:
                data, blocks = b"", 0
                while True:
                    got = connection.recv(1 << 16)
                    came = time.time_ns() + ahead_ns
                    if not got:
                        return
                    data += got
                    while len(data) >= 96:
                        size = struct.unpack_from("<H", data, 4)[0] + struct.unpack_from("<I", data, 12)[0]
                        if len(data) < size:
                            break
                        block, data = data[:size], data[size:]
                        blocks += 1
                        if block[6] == 2:
                            t1, = struct.unpack_from("<q", block, 96)
                            self.questions.append(t1)
                            frame = answer(t1, came, time.time_ns() + ahead_ns, collector)
                            if frame:
                                connection.sendall(frame)
                        else:
                            self.blocks.append(block)
                        connection.sendall(b"NLA1" + struct.pack("<IQ", 8, blocks))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        return server.getsockname()[1]

    @staticmethod
    def right(t1, t2, t3, name):
        return b"NLT1" + struct.pack("<Iqqq", 24 + len(name), t1, t2, t3) + name

    def talk(self, port, stay=150):
        result = self.run_program(self.client, f"x-netlog://127.0.0.1:{port}?clock=30", stay)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        (self.scratch / "got.nlb").write_bytes(b"".join(self.blocks))
        result = self.run_program(support.program("nlsort/nlsort"), self.scratch / "got.nlb")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(records(result.stdout, "Hello")), 1)
        self.assertEqual(len(records(result.stdout, "Bye")), 1)
        return result.stdout

    def test_offset_of_seconds(self):
        said, = records(self.talk(self.serve(self.right, ahead_ns=5_000_000_000)), "ClockOffset")
        self.assertEqual(said["CLOCK.COLLECTOR"], "far.example")
        self.assertLessEqual(abs(float(said["CLOCK.OFFSET"]) - 5e6), float(said["CLOCK.ERROR"]) + 1)
        self.assertEqual(float(said["CLOCK.DELAY"]), float(said["CLOCK.DELAY"]))
        self.assertGreaterEqual(int(said["CLOCK.SAMPLES"]), 1)

    def test_a_collector_that_knows_no_time(self):
        text = self.talk(self.serve(lambda *_: None))
        self.assertEqual(records(text, "ClockOffset"), [])
        self.assertEqual(len(self.questions), 1)  # the library asks this collector only once

    def test_answers_that_are_none(self):
        for frame in (lambda t1, t2, t3, n: b"NLT1" + struct.pack("<I", 3) + b"abc",
                      lambda t1, t2, t3, n: self.right(t1 + 1, t2, t3, n),
                      lambda t1, t2, t3, n: self.right(t1, -(1 << 63), (1 << 63) - 1, n),
                      lambda t1, t2, t3, n: b"NLX9" + struct.pack("<I", 5) + b"hello"):
            text = self.talk(self.serve(frame), stay=0)
            self.assertEqual(records(text, "ClockOffset"), [])

    def test_names_that_are_long_or_strange(self):
        said, = records(self.talk(self.serve(self.right, collector=b"x" * 1000)), "ClockOffset")
        self.assertEqual(said["CLOCK.COLLECTOR"], '""')
        said, = records(self.talk(self.serve(self.right, collector=b'a "b"\n')), "ClockOffset")
        self.assertIn("b", said["CLOCK.COLLECTOR"])


class AtTheCollector(collector.Case):
    def test_netlogd_measures_warns_and_tells(self):
        client = self.compile_client(CLIENT)
        control, own = self.scratch / "control", self.scratch / "own.log"
        server = self.serve("--control", f"unix:{control}", "--log", own)
        for host, options in (("one", ""), ("two", "format=ulm&")):
            result = self.run_program(client, f"x-netlog://127.0.0.1:{self.port}?{options}clock=30", "120",
                                      env={**os.environ, "NETLOGGER_HOST": host})
            self.assertEqual(result.returncode, 0, result.stdout)
        support.wait_until(lambda: self.written().count(b"NL.EVNT=Bye") == 2)
        told = self.run_program(support.program("netlogd/netlogctl"), "--control", control, "clocks")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"(?m)^one +(true|false) .*\d")
        self.assertRegex(told.stdout, r"(?m)^two +(true|false) ")
        self.stop(server)
        text = self.written().decode()
        said = records(text, "ClockOffset")
        self.assertEqual([r["HOST"] for r in said], ["one"])  # no acknowledgement and no measurement for text
        self.assertLessEqual(abs(float(said[0]["CLOCK.OFFSET"])), float(said[0]["CLOCK.ERROR"]) + 1)
        kernel = records(text, "ClockKernel")
        self.assertEqual({r["HOST"] for r in kernel}, {"one", "two"})
        self.assertEqual({r["LVL"] for r in kernel}, {"System"})  # the client and the collector have the same clock
        self.assertEqual(records(own.read_text(), "Netlogd.Clock"), [])  # "one" and "two" are the same machine

    def test_clocks_that_are_not_synchronized(self):
        """netlogd warns about them as soon as a second machine logs. On one machine, no other clock disagrees."""
        own, control = self.scratch / "own.log", self.scratch / "control"
        server = self.serve("--log", own, "--control", f"unix:{control}")
        count = lambda: re.search(r"clocks\.wrong +(\d+)",
                                  self.run_program(support.program("netlogd/netlogctl"), "--control", control, "status").stdout)[1]
        self.send(b"".join(b"DATE=20260101000000.0 HOST=%c PROG=p LVL=System NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false "
                           b"CLOCK.MACHINE=aaaaaaaaaaaaaaaa\n" % host for host in b"ab"))
        support.wait_until(lambda: self.written().count(b"ClockKernel") == 2, what="two clocks")
        self.assertEqual(count(), "0")
        self.send(b"DATE=20260101000001.0 HOST=c PROG=p LVL=System NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false "
                  b"CLOCK.MACHINE=cccccccccccccccc\n")
        support.wait_until(lambda: own.exists() and len(records(own.read_text(), "Netlogd.Clock")) == 3, what="the warnings")
        self.assertEqual(count(), "3")
        self.stop(server)
        self.assertEqual(sorted(r["CLOCK.HOST"] for r in records(own.read_text(), "Netlogd.Clock")), ["a", "b", "c"])

    def test_a_clock_that_goes_to_and_fro_is_told_of_seldom(self):
        own, began = self.scratch / "own.log", time.monotonic()
        server = self.serve("--log", own)
        self.send("".join(f"DATE=20260101000000.{n:06d} HOST={host} PROG=p LVL=System NL.EVNT=ClockOffset "
                          f"CLOCK.OFFSET={n % 2 * 1000000} CLOCK.ERROR=1 CLOCK.DELAY=2\n"
                          for n in range(200) for host in "ab").encode())
        self.stop(server)
        hosts = [r["CLOCK.HOST"] for r in records(own.read_text(), "Netlogd.Clock")]
        for host in "ab":
            self.assertGreaterEqual(hosts.count(host), 1)
            self.assertLessEqual(hosts.count(host), 1 + (time.monotonic() - began) // 60)

    def test_how_a_clock_is_at_last_is_told_a_minute_later(self):
        if not FAKETIME.exists():
            self.skipTest("libfaketime is not installed (package faketime)")
        if b"__asan_init" in pathlib.Path(self.netlogd).read_bytes():
            self.skipTest("libfaketime and a sanitizer do not go together")
        own, off = self.scratch / "own.log", [0, 1000000, 0]
        server = self.serve("--log", own, env={**os.environ, "LD_PRELOAD": str(FAKETIME), "FAKETIME": "+0 x100"})
        self.send("".join(f"DATE=2026010100000{n} HOST=a PROG=p LVL=System NL.EVNT=ClockOffset CLOCK.OFFSET={off[n]} "
                          "CLOCK.ERROR=1 CLOCK.DELAY=2\n" for n in range(3)).encode())
        notes = lambda: [r["NOTE"] for r in records(own.read_text(), "Netlogd.Clock")]
        support.wait_until(lambda: own.exists() and len(notes()) == 2, what="that it is right again")
        self.assertEqual(notes(), ['"the host\'s clock is wrong"', '"the host\'s clock is correct again"'])
        self.stop(server)

    def test_nlagentd_says_that_its_host_is_not_synchronized(self):
        nlagentd, log = support.program("nlagent/nlagentd"), self.scratch / "agent.log"
        said = self.run_program(support.program("nlagent/nlsensor"), "--count", "1", "--interval", "0.1", "clock").stdout
        self.start(nlagentd, "--foreground", "--listen", f"http://127.0.0.1:{support.free_port()}", "--host", "a", "--log", f"file://{log}")
        if "CLOCK.SYNCHRONIZED=true" in said:
            self.skipTest("this host's clock is synchronized")
        warned = support.wait_until(lambda: log.exists() and records(log.read_text(), "ClockKernel"), what="the warning")
        self.assertEqual((warned[0]["LVL"], warned[0]["HOST"], warned[0]["CLOCK.SYNCHRONIZED"]), ("Warning", "a", "false"))

    def test_blocks_that_are_not_decoded_are_looked_at(self):
        """A binary output stores blocks whole. netlogd still reads the clock records in them."""
        client = self.compile_client(CLIENT)
        control, own = self.scratch / "control", self.scratch / "own.log"
        self.output = self.scratch / "all.nlb"
        server = self.serve("--control", f"unix:{control}", "--log", own)
        result = self.run_program(client, f"x-netlog://127.0.0.1:{self.port}?clock=0.1", "600")
        self.assertEqual(result.returncode, 0, result.stdout)
        ask = (support.program("netlogd/netlogctl"), "--control", control, "clocks")
        support.wait_until(lambda: "CLOCK.OFFSET.ERROR" in self.run_program(*ask).stdout, what="the clock's offset")
        self.stop(server)


if __name__ == "__main__":
    support.main()
