"""nlsort --fix-clocks: logs with known truth, and programs with wrong clocks."""
import datetime
import os
import pathlib
import random
import re
import unittest

import collector
import support

EVENTS = ["Ping.Send", "Ping.Receive", "Pong.Send", "Pong.Receive"]
FAKETIME = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
BEGIN = 1_700_000_000 * 10**9


def to_ulm(ns):
    seconds, rest = divmod(ns, 10**9)
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y%m%d%H%M%S") + f".{rest:09d}"


def to_ns(text):
    whole, _, part = text.partition(".")
    moment = datetime.datetime.strptime(whole, "%Y%m%d%H%M%S").replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp()) * 10**9 + int(part.ljust(9, "0"))


def fields(line):
    return dict(re.findall(r'([A-Z.]+)=("(?:[^"\\]|\\.)*"|\S*)', line))


def violations(rounds):
    """Returns how many lists of events are not in the order in which they happened."""
    return sum(events != EVENTS for events in rounds)


def worst_disorder_ns(lines):
    """Returns the maximum time by which a record of a round is before a record that happened earlier."""
    times = {}
    for record in map(fields, lines):
        times.setdefault(record["MSG.ID"], {})[record["NL.EVNT"]] = to_ns(record["DATE"])
    in_order = [[found[event] for event in EVENTS] for found in times.values()]
    return max(earlier - later for found in in_order for earlier, later in zip(found, found[1:]))


def rounds_of(lines):
    found = {}
    for record in map(fields, lines):
        if "MSG.ID" in record:
            found.setdefault(record["MSG.ID"], []).append(record["NL.EVNT"])
    return list(found.values())


class Synthetic(support.Case):
    """Writes a ping-pong of hosts a and b. The clock of a is 5 s fast, and the clock of b is 2 s slow. Each clock drifts by 100
    ppm."""

    CLOCKS = {"a": (5 * 10**9, 100e-6), "b": (-2 * 10**9, -100e-6)}

    def setUp(self):
        super().setUp()
        self.random = random.Random(7)
        self.nlsort = support.program("nlsort/nlsort")

    def shows(self, host, true):
        offset, drift = self.CLOCKS.get(host, (0, 0))
        return true + offset + int(drift * (true - BEGIN))

    def line(self, host, true, event, rest):
        return (f"DATE={to_ulm(self.shows(host, true))} HOST={host} PROG=p LVL=Usage NL.EVNT={event} {rest} TRUE={true}\n")

    def took(self, least=50_000, mean=100_000):
        return least + int(self.random.expovariate(1 / mean))

    def ping_pong(self, count, measured=(), there=60_000, back=60_000, seconds=100, pair=("a", "b")):
        lines, first, second = [], *pair
        for i in range(count):
            true = start = BEGIN + i * seconds * 10**9 // count
            for host, event, took in ((first, EVENTS[0], self.took()), (second, EVENTS[1], 10_000),
                                      (second, EVENTS[2], self.took()), (first, EVENTS[3], 0)):
                lines.append(self.line(host, true, event, f"MSG.ID={pair[0]}{pair[1]}{i}"))
                true += took
            for host in measured if i % max(1, count // 50) == 0 else ():
                ways = self.took(there, 50_000), self.took(back, 50_000)
                offset = start - self.shows(host, start) + (ways[0] - ways[1]) / 2
                lines.append(self.line(host, start, "ClockOffset",
                                       f"CLOCK.COLLECTOR=c CLOCK.OFFSET={offset / 1e3:.3f} CLOCK.ERROR={sum(ways) / 2e3:.3f}"))
        return lines

    def fix(self, lines, *arguments, status=0):
        (self.scratch / "in.log").write_text("".join(lines))
        result = self.run_program(self.nlsort, "--fix-clocks", *arguments, self.scratch / "in.log")
        self.assertEqual(result.returncode, status, result.stderr)
        self.told = result.stderr
        return result.stdout.splitlines()

    def worst_ns(self, lines, base=lambda record: int(record["TRUE"])):
        return max(abs(to_ns(record["DATE"]) - base(record)) for record in map(fields, lines))

    def test_measured(self):
        lines = self.fix(self.ping_pong(2000, measured="ab"))
        self.assertEqual(violations(rounds_of(lines)), 0)
        self.assertLess(self.worst_ns(lines), 30_000)
        self.assertRegex(self.told, r"clock of a: -5\.00\d+ s added .*, drift \+(99\.\d+|100\.\d+) ppm, error at most \d+\.\d us; 50 meas")
        self.assertRegex(self.told, r"clock of b: \+2\.00\d+ s added .*, drift -(99\.\d+|100\.\d+) ppm")
        self.assertIn("clock of c: reference", self.told)
        for record in map(fields, lines):
            self.assertAlmostEqual(to_ns(record["DATE.ORIGINAL"]), self.shows(record["HOST"], int(record["TRUE"])), delta=1)
        times = [to_ns(fields(line)["DATE"]) for line in lines]
        self.assertEqual(times, sorted(times))

    def test_hosts_of_one_machine_share_a_clock(self):
        """x and y are two host names of one machine, whose clocks were never compared with each other."""
        line = "DATE=2026010100000{} HOST={} PROG=p LVL=Usage NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false CLOCK.MACHINE={}\n"
        for machine, told in (("00000000000000aa", r"clock of y: \+0.000000 s added .*error at most 2\.0 us"),
                              ("00000000000000bb", "clock of y: unknown offset")):
            self.fix([line.format(1, "x", "00000000000000aa"), line.format(2, "y", machine)], "--reference", "x")
            self.assertRegex(self.told, told)

    def test_again_changes_nothing(self):
        once = self.fix(self.ping_pong(500, measured="ab"))
        twice = self.fix([line + "\n" for line in once])
        for first, second in zip(map(fields, once), map(fields, twice)):
            self.assertAlmostEqual(to_ns(first["DATE"]), to_ns(second["DATE"]), delta=5_000)
            self.assertEqual(first["DATE.ORIGINAL"], second["DATE.ORIGINAL"])

    def test_ways_that_differ_are_mended_by_messages(self):
        """Exchanges that take 20 ms forth and 1 ms back give an error of 9.5 ms; messages to the reference bound the error."""
        lines = self.ping_pong(500, measured="ab", there=20_000_000, back=1_000_000)
        wrong = self.worst_ns(self.fix([line for line in lines if "ClockOffset" in line or "HOST=a" in line]))
        self.assertGreater(wrong, 9_000_000)
        error = float(re.search(r"clock of a: .* error at most ([\d.]+) us", self.told).group(1))
        self.assertLess(wrong, error * 1000)
        lines += self.ping_pong(500, pair=("a", "c")) + self.ping_pong(500, pair=("b", "c"))
        lines = self.fix(lines)
        self.assertEqual(violations(rounds_of(lines)), 0)
        self.assertLess(self.worst_ns(lines), 100_000)

    def test_without_measurements(self):
        lines = self.fix(self.ping_pong(2000), "--reference", "a")
        self.assertEqual(violations(rounds_of(lines)), 0)
        self.assertLess(self.worst_ns(lines, lambda r: self.shows("a", int(r["TRUE"]))), 60_000)
        self.assertIn("0 measurements, 4000 messages", self.told)

    def test_one_host_without_measurements(self):
        lines = self.fix(self.ping_pong(2000, measured="a"))
        self.assertEqual(violations(rounds_of(lines)), 0)
        self.assertLess(self.worst_ns(lines), 100_000)

    def test_events_and_ids_that_are_named(self):
        lines = [line.replace("Ping.Send", "Go").replace("Ping.Receive", "Came").replace("Pong.Send", "Return")
                 .replace("Pong.Receive", "Back").replace("MSG.ID", "N") for line in self.ping_pong(500)]
        self.fix(lines, "--reference", "a")
        self.assertIn("clock of b: unknown offset", self.told)
        self.assertIn("cannot compare clocks", self.told)
        lines = self.fix(lines, "--reference", "a", "--id", "N", "--message", "Go:Came", "--message", "Return:Back")
        self.assertLess(self.worst_ns(lines, lambda r: self.shows("a", int(r["TRUE"]))), 60_000)

    def test_contradictions_are_left_out(self):
        lines = self.ping_pong(500, measured="ab")
        bad = [self.line("a", BEGIN + 60 * 10**9, "Ping.Send", "MSG.ID=odd"),
               self.line("b", BEGIN + 50 * 10**9, "Ping.Receive", "MSG.ID=odd")]
        kept = self.fix(lines + bad)
        self.assertLess(self.worst_ns(kept), 30_000)
        self.assertIn("ignored 1 message that contradicts the measurements", self.told)

    def test_pipes_formats_and_filters(self):
        lines = self.ping_pong(100, measured="ab")
        result = self.run_program(self.nlsort, "--fix-clocks", "--where", "NL.EVNT ~ Ping.*", "--format", "bp", input="".join(lines))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("event=Ping."), 200)
        self.assertEqual(len(result.stdout.splitlines()), 200)
        self.fix(lines, "-o", self.scratch / "out.nlb")
        back = self.run_program(self.nlsort, self.scratch / "out.nlb").stdout.splitlines()
        self.assertLess(self.worst_ns(back), 30_000)
        small = self.fix(lines * 1, "-S", "16M", "-k", "NL.EVNT", "-T", self.scratch)
        self.assertEqual([fields(line)["NL.EVNT"] for line in small], sorted(fields(line)["NL.EVNT"] for line in lines))

    def test_a_host_that_would_move_the_cursor(self):
        self.fix([line.replace("HOST=a", "HOST=a\x1b[2J") for line in self.ping_pong(10)])
        self.assertIn("clock of a?[2J: ", self.told)
        self.assertNotIn("\x1b", self.told)

    def test_the_last_record_is_long(self):
        """nlsort reads data back in pieces of a mebibyte. The log is larger than such a piece."""
        many = "A=1 " * 20000
        lines = [self.line("a", BEGIN, "Long", "T=" + "x" * ((1 << 20) - 10000)),
                 self.line("a", BEGIN, "Longer", many + "T=" + "x" * ((1 << 20) - len(many) - 200))]
        rest = [l.split(" ", 1)[1] for l in self.fix(lines)]
        self.assertTrue(rest == [l.rstrip("\n").split(" ", 1)[1] for l in lines])

    def test_nothing_and_nonsense(self):
        self.assertEqual(self.fix([], status=1), [])
        self.fix(["nonsense\n"] + self.ping_pong(10), status=1)
        for wrong in (["-m"], ["-c"], ["--window", "5s"], ["--message", "A"], ["--message", ":A"]):
            result = self.run_program(self.nlsort, "--fix-clocks", *wrong, "-")
            self.assertEqual(result.returncode, 2, wrong)
        self.assertEqual(self.run_program(self.nlsort, "--id", "N", "-").returncode, 2)


class Faked(collector.Case):
    """libfaketime makes the clocks of two programs wrong. netlogd has a correct clock."""

    def test_ping_pong(self):
        if not FAKETIME.exists():
            self.skipTest("libfaketime is not installed (package faketime)")
        program = self.compile_client((support.SOURCE / "tests/program/pingpong.c").read_text())
        server = self.serve()
        port, processes = support.free_port(), []
        for host, wrong, address in (("a", "+5s x1.0001", "listen"), ("b", "-3s x0.9999", "127.0.0.1")):
            environment = {**os.environ, "LD_PRELOAD": str(FAKETIME), "FAKETIME": wrong, "NETLOGGER_HOST": host}
            processes.append(self.start(program, f"x-netlog://127.0.0.1:{self.port}?clock=0.5", address, port, "150",
                                        env=environment))
        for process in processes:
            self.assertEqual(process.wait(60), 0)
        self.stop(server)
        result = self.run_program(support.program("nlsort/nlsort"), "--fix-clocks", self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line for line in result.stdout.splitlines() if "MSG.ID" in line]
        before = self.run_program(support.program("nlsort/nlsort"), self.output).stdout.splitlines()
        self.assertEqual(violations(rounds_of(before)), 150)
        errors = dict(re.findall(r"clock of (\S+): .* error at most ([\d.]+) us", result.stderr))
        # On a busy machine, timestamps vary, but within the given bound.
        self.assertLess(worst_disorder_ns(lines), sum(map(float, errors.values())) * 1000 + 2000, result.stderr)
        # TRUE was read shortly before the event's own time. The difference is larger if the program was interrupted.
        for host in "ab":
            off = sorted(abs(to_ns(r["DATE"]) - int(r["TRUE"])) for r in map(fields, lines) if r["HOST"] == host)
            self.assertLess(off[len(off) // 2], float(errors[host]) * 1000 + 100_000, result.stderr)


if __name__ == "__main__":
    support.main()
