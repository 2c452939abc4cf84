"""nldiag names the fault of simulated programs, reports no fault on healthy programs, and prints "cannot tell" without evidence."""
import collections
import datetime
import heapq
import html.parser
import io
import itertools
import json
import math
import os
import random
import re
import shlex
import signal
import sys
import time

import collector
import slow_logs
import support

sys.path.append(str(support.SOURCE / "tests" / "diagnosis"))
import compare_trials
import follow_load
import score
import simulate

HEALTHY, UNREADABLE, USAGE, FINDING, CANNOT_TELL = range(5)


class Page(html.parser.HTMLParser):
    """Collects the links of a page."""

    def __init__(self):
        super().__init__()
        self.images, self.links = [], []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img":
            self.images.append(attributes["src"])
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]


class Nldiag(support.Case):
    def setUp(self):
        super().setUp()
        self.nldiag = support.program("nltools/nldiag")

    def run_of(self, kind, seed, weighed=False):
        """A simulated run: the path of its log, and the true answer, with the cost of the fault if weighed."""
        path = self.scratch / f"{kind}-{seed}.log"
        truth = simulate.make_run(kind, seed, path, weighed=weighed)
        self.assertIsNotNone(truth, (kind, seed))
        return path, truth

    def diagnosed(self, *arguments, status=None):
        result = self.run_program(self.nldiag, "--json", *arguments)
        self.assertIn(result.returncode, (HEALTHY, FINDING, CANNOT_TELL) if status is None else (status,), result.stderr)
        found = json.loads(result.stdout)
        if status is None:
            verdict = {HEALTHY: "healthy", FINDING: "finding", CANNOT_TELL: "cannot tell"}[result.returncode]
            self.assertEqual(found["verdict"], verdict)
            self.assertEqual(any(not cause["ordinary"] for cause in found["causes"]), verdict == "finding")
        for cause in found["causes"]:
            if "instead_of" in cause:
                self.assertLessEqual(cause["sure"], found["causes"][cause["instead_of"] - 1]["sure"])
        return found

    # ---- simulated services ----

    def test_faults_are_named(self):
        """For every kind of fault, the first finding has the right place and mechanism. tests/diagnosis/score.py measures the rates."""
        # In ./check, only the first seed of each kind, which has a small graph. Seed 3 has a log without explicit spans.
        seeds = {"slow-host": (3, 2),
                 "slow-link": (3, 2),
                 "lock": (3, 1),
                 "pool": (5, 1),
                 "timeout": (3, 1, 2),
                 "retry": (36, 1, 2),
                 "poll": (39, 1, 3),
                 "pause-periodic": (3, 1, 105, 80002, 80006),
                 "pause-random": (5, 1, 80012),
                 "calls": (36, 1, 2),
                 "value": (39, 1, 2),
                 "size": (3, 1, 2),
                 "cold": (5, 1, 2),
                 "changed": (36, 1, 2),
                 "daily": (91003, 91008),
                 "window": (90008, 90101, 90103),
                 "send-buffer": (90008, 90101, 90103),
                 "loss": (90037, 90101, 90103),
                 "policed": (90027, 90101, 90103),
                 "reverse": (90008, 90004, 90114),
                 "imbalance": (3, 6),
                 "batch": (5, 1, 2),
                 "head-of-line": (36, 1, 2),
                 "resource": (3, 1),
                 "failures": (39, 1, 2),
                 "clock": (5, 8, 80011)}
        self.assertEqual(set(seeds), set(simulate.KINDS))
        for kind, numbers in seeds.items():
            for seed in support.representative(numbers, numbers[:1]):
                with self.subTest(kind=kind, seed=seed):
                    path, truth = self.run_of(kind, seed)
                    ordinary = kind == "size"  # time in proportion to the amount of work is no fault
                    found = self.diagnosed(path, status=HEALTHY if ordinary else FINDING)
                    self.assertEqual(found["causes"][0]["ordinary"], ordinary)
                    self.assertTrue(score.is_right(found["causes"][0], truth), (truth, found["causes"][0]))
                    first = found["causes"][0]
                    self.assertTrue(first["evidence"] and first["advice"] and first["view"].startswith("nlv "))

    def test_command_for_nlv(self):
        """The command has a time range only if the finding concerns a part of the log, and quotes only where a shell requires them."""
        path, _ = self.run_of("calls", 36)
        self.assertEqual(self.diagnosed(path)["causes"][0]["view"], f"nlv {path}")
        named = path.rename(self.scratch / "two words.log")
        self.assertEqual(self.diagnosed(named)["causes"][0]["view"], f"nlv '{named}'")
        path, _ = self.run_of("changed", 36)
        cause = self.diagnosed(path)["causes"][0]
        time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
        self.assertRegex(cause["view"], rf"^nlv --since {time} --until {time} {path}$")
        since, until = (datetime.datetime.fromisoformat(found.replace("Z", "+00:00")).timestamp() * 1e9 for found in re.findall(time, cause["view"]))
        self.assertTrue(since <= cause["from_ns"] < since + 1e6 and until - 1e6 <= cause["to_ns"] <= until, cause)

    def test_healthy_runs(self):
        for seed in support.representative(range(1, 9), (3, 5, 7)):
            with self.subTest(seed=seed):
                path, _ = self.run_of(simulate.HEALTHY, seed)
                self.assertEqual(self.diagnosed(path)["answer"], "healthy: found no cause that takes 7 % or more of the requests' time")

    def test_connections_that_are_no_cause(self):
        """Connections are limited, but carry data of other programs or hosts, are idle, or take a small part of the time."""
        for seed in support.representative(range(90001, 90009), (90003, 90008)):
            with self.subTest(seed=seed):
                path = self.scratch / "connections.log"
                simulate.make_run(simulate.HEALTHY, seed, path, connections=True)
                self.assertEqual(self.diagnosed(path)["causes"], [])

    def test_many_parallel_visits_are_no_pool(self):
        """If hundreds of visits run at the same time and end in any order, nldiag reports no queue."""
        chance, records = random.Random(1), []
        for i in range(12000):
            begin = i * 0.0002 + chance.uniform(0, 0.0002)
            records += [(begin, f"HOST=a PROG=p LVL=Usage NL.EVNT=Query.start ID={i}"), (begin + 0.08 * chance.lognormvariate(0, 0.4), f"HOST=a PROG=p LVL=Usage NL.EVNT=Query.end ID={i}")]
        path = self.scratch / "parallel.log"
        simulate.write_lines(path, sorted(records))
        self.assertEqual(self.diagnosed("--id", "ID", path)["causes"], [])

    def test_time_of_day_of_a_single_day(self):
        """If a fault occurs on only one day, nldiag does not report that it recurs each day."""
        path, truth = self.run_of("daily", 91003)
        lines = path.read_text().splitlines(True)
        day = collections.Counter(line[5:13] for line in lines).most_common(1)[0][0]
        path.write_text("".join(line for line in lines if line[5:13] == day))
        self.assertNotIn("hour", [c["cause"] for c in self.diagnosed(path)["causes"]])

    def test_random_times(self):
        """Independent times of ten distributions have no cause."""
        for distribution in simulate.DISTRIBUTIONS:
            for seed in support.representative((1, 2), (1,)):
                with self.subTest(distribution, seed=seed):
                    path = self.scratch / "random.log"
                    simulate.make_random(distribution, seed, path)
                    self.assertEqual(self.diagnosed("--id", "ID", path)["causes"], [])

    def test_shares(self):
        """The places' times add up to all time. Findings claim parts of it, and claim no part twice."""
        for kind, seed in ("lock", 3), ("slow-link", 3), ("retry", 36), ("healthy", 5), ("value", 5):
            with self.subTest(kind=kind):
                found = self.diagnosed(self.run_of(kind, seed)[0])
                self.assertAlmostEqual(sum(p["share"] for p in found["places"]), 1, places=3)
                for place in found["places"]:
                    self.assertLessEqual(place["claimed"], place["share"] + 1e-6)
                self.assertLessEqual(sum(c["share"] for c in found["causes"] if c["cause"] != "failures"), 1)

    def test_shares_of_many_visits(self):
        """A finding claims the time of all visits, although nldiag examines a sample of them."""
        records, chance, at = [], random.Random(7), 0.0
        for i in range(1200):
            begin, host = at, f"s{i % 3}"
            records.append((begin, host, "Root.start", f"TRACE.ID=t{i} SPAN.ID={i + 1:016x}"))
            for k in range(12):
                ids, took = f"TRACE.ID=t{i} SPAN.ID={2000 + 12 * i + k:016x} PARENT.ID={i + 1:016x}", chance.uniform(1e-4, 1.05e-4) * (3 if i % 3 == 0 else 1)
                records += [(at + 1e-6, host, "W.start", ids), (at + 1e-6 + took, host, "W.end", ids)]
                at += took + 2e-6
            records.append((at, host, "Root.end", f"TRACE.ID=t{i} SPAN.ID={i + 1:016x}"))
            at += 1e-3
        found = self.diagnosed_of(records, options=[])
        evidence, = (c["evidence"] for c in found["causes"] if c["cause"] == "peer")
        self.assertRegex(evidence[1], "^3[34] % of the 14400 visits are on s0, according to a sample of 4096$")
        for part in "share", "gain":
            self.assertLessEqual(sum(c[part] for c in found["causes"]), 1)
        for place in found["places"]:
            self.assertLessEqual(place["claimed"], place["share"] + 1e-6)

    def test_gain_of_many_visits(self):
        """The gain is as large as the share: each request has one visit, and the sample contains a part of the requests."""
        records = [(i * 0.01 + at, "h", event, f"ID={i}") for i in range(12000)
                   for event, at in (("Work.start", 0), ("Work.end", random.Random(i).uniform(1e-3, 1.1e-3) + 0.02 * (i % 25 == 3)))]
        first = self.first_of(records)
        self.assertEqual(first["cause"], "timeout")
        self.assertAlmostEqual(first["share"], 0.8 / 1.85, delta=0.03)
        self.assertAlmostEqual(first["gain"], first["share"], delta=0.03)

    def test_gain_is_that_of_the_fixed_run(self):
        """The run with the same seed and without the fault shows the real gain."""
        for kind, seed in ("slow-host", 3), ("value", 3), ("slow-link", 5), ("changed", 3), ("timeout", 36), ("calls", 36):
            with self.subTest(kind=kind):
                path, truth = self.run_of(kind, seed, weighed=True)
                first = self.diagnosed(path)["causes"][0]
                self.assertAlmostEqual(first["gain"], truth["cost"], delta=0.1)

    # ---- cases without a verdict, and their reasons ----

    def test_text(self):
        path, truth = self.run_of("slow-host", 3)
        result = self.run_program(self.nldiag, path)
        self.assertEqual(result.returncode, FINDING, result.stderr)
        answer = result.stdout.splitlines()[0]
        self.assertEqual(result.stdout.count(answer), 1)
        self.assertRegex(answer, rf"^\d+ % of the requests' time: {truth['host']} is slower than its peers \({truth['span']} of {truth['program']}")
        self.assertRegex(result.stdout, r"(?m)^   expected gain: \d+ % of the requests' time \(from \S+ \w+ to \S+ \w+ per request\)\n   confidence: \d+ % \(cause \"peer\"\)$")
        self.assertIn("Where the requests' time goes:", result.stdout)
        self.assertNotIn("nldiag tried", result.stdout)
        self.assertRegex(self.run_program(self.nldiag, "--explain", path).stdout, r"(?m)^nldiag tried \d+ explanations\. ")

    def test_what_is_hardly_a_log(self):
        empty = self.scratch / "empty.log"
        empty.write_text("")
        result = self.run_program(self.nldiag, empty)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (UNREADABLE, "", 1), result.stderr)
        self.assertIn("cannot tell: ", result.stderr)
        one = self.scratch / "one.log"
        one.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1\n")
        self.assertEqual(self.diagnosed(one, status=CANNOT_TELL)["causes"], [])
        self.assertTrue(self.run_program(self.nldiag, one).stdout.startswith("cannot tell: cannot find a request ID field; name one with --id"))
        only_sensors = self.scratch / "sensors.log"
        only_sensors.write_text("".join(f"DATE=202601010000{i:02d}.000000 HOST=h PROG=nlsensor LVL=Usage NL.EVNT=CpuLoad CPU.ID={i % 2} CPU.BUSY=99\n"
                                        for i in range(60)))
        found = self.diagnosed(only_sensors, status=CANNOT_TELL)
        self.assertEqual((found["records"], found["requests"]), (60, 0))
        few = self.scratch / "few.log"
        few.write_text("".join(f"DATE=2026010100{i:02d}{s:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E{s} ID={i}\n" for i in range(20) for s in (1, 2)))
        self.assertIn("too few requests", self.diagnosed("--id", "ID", few, status=CANNOT_TELL)["answer"])
        broken = self.scratch / "broken.log"
        broken.write_bytes(self.run_of("slow-host", 3)[0].read_bytes() + b"\x00\xff garbage\n" * 5)
        self.assertEqual(self.diagnosed(broken, status=UNREADABLE)["causes"][0]["cause"], "peer")
        missing = self.run_program(self.nldiag, self.scratch / "none.log")
        self.assertEqual((missing.returncode, missing.stdout, missing.stderr.count("\n")), (UNREADABLE, "", 1))

    def test_reason_for_no_requests(self):
        log, config = self.scratch / "one.log", self.scratch / "lines.conf"
        log.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1\n"
                       "DATE=20260101000001.000000 HOST=h PROG=p LVL=Usage NL.EVNT=F A=2\n")
        config.write_text("[lifeline R]\nid=ID\nevents=Begin;End\n")
        for options, reason in (["--id", "A"], "no two events have the same values in the fields of --id"), \
                               (["--config", config], "no record belongs to a lifeline of --config"):
            self.assertIn(f"cannot tell: {reason}", self.run_program(self.nldiag, *options, log).stdout)
            result = self.run_program(self.nldiag, *options, "--compare", log, log)
            self.assertEqual(result.returncode, UNREADABLE)
            self.assertIn(reason, result.stderr)

    def test_where_selects_requests(self):
        log, _ = self.run_of("healthy", 3)
        whole = self.diagnosed(log)
        same = self.diagnosed("--where", "request.duration >= 0s", log)
        self.assertEqual((same["requests"], same["total_ns"]), (whole["requests"], whole["total_ns"]))
        mean = f"{int(whole['total_ns'] / whole['requests'])}ns"
        parts = [self.diagnosed("--where", f"request.duration {sign} {mean}", log) for sign in ("<", ">=")]
        self.assertEqual(sum(p["requests"] for p in parts), whole["requests"])
        self.assertLess(parts[0]["total_ns"] / parts[0]["requests"], parts[1]["total_ns"] / parts[1]["requests"])
        none = self.diagnosed("--where", "request.duration > 1000d", log, status=CANNOT_TELL)
        self.assertEqual(none["answer"], "cannot tell: no request matches --where")

    def test_times_far_apart(self):
        far = self.scratch / "far.log"
        far.write_text("".join(f"DATE={year}0101000000.000000 HOST=h{i % 2} PROG=p LVL=Usage NL.EVNT={event} ID={i}\n"
                               for i in range(200) for year, event in ((1970, "A"), (2026, "B"), (2105, "C"))))
        self.diagnosed("--id", "ID", far)

    def test_control_characters_are_not_printed(self):
        path = self.scratch / "hostile.log"
        path.write_text("".join(f"DATE=2026010112{i:02d}0{s} HOST=a PROG=b LVL=Usage NL.EVNT={event} ID={i}\n"
                                for i in range(60) for s, event in ((0, "x\033[31mred"), (1, "y\u009b31m"))))
        for options in ["--id", "ID", path], ["--compare", "--id", "ID", path, path]:
            printed = self.run_program(self.nldiag, *options).stdout
            self.assertNotIn("\033", printed)
            self.assertNotIn("\u009b", printed)
            if "--compare" not in options:
                self.assertIn("x?[31mred", printed)
                self.assertIn("y?31m", printed)

    def test_html(self):
        log = self.scratch / "a <log> & more.log"
        self.run_of("slow-host", 3)[0].rename(log)
        page = self.scratch / "report.html"
        result = self.run_program(self.nldiag, "--html", page, log,
                                  env={**os.environ, "PATH": f"{support.BUILD / 'nlv'}:{os.environ['PATH']}"})
        self.assertEqual(result.returncode, FINDING, result.stderr)
        parsed = Page()
        parsed.feed(page.read_text())
        self.assertTrue(all(link.startswith("data:") for link in parsed.links), "the page needs nothing else")
        self.assertNotIn("<log>", page.read_text())
        answer = page.read_text().split("<h1>")[1].split("</h1>")[0]
        self.assertEqual(page.read_text().count(answer), 1, "the first cause does not repeat the heading")
        self.assertRegex(page.read_text(), r"<tr><td>\d+ %</td><td>\d+ %</td><td>[^<]+</td><td>[\d.]+ ms each</td></tr>")
        if (support.BUILD / "nlv" / "nlv").exists():
            self.assertTrue(parsed.images)
        log.write_bytes(log.read_bytes().replace(b"PROG=", b"PROG=\xff\xfe"))
        self.run_program(self.nldiag, "--html", page, log)
        self.assertIn("\ufffd", page.read_text(encoding="utf-8"))
        refused = self.run_program(self.nldiag, "--html", self.scratch / "no" / "report.html", log)
        self.assertEqual(refused.returncode, UNREADABLE)
        self.assertIn("report.html", refused.stderr)

    def test_wrong_use(self):
        for arguments in (["--compare", "a"], ["--compare", "--html", "x", "a", "b"], ["--with", "a", "b"], ["--since", "never"], ["--memory", "0"]):
            self.assertEqual(self.run_program(self.nldiag, *arguments).returncode, USAGE, arguments)

    def test_field_of_numbers_and_texts(self):
        """A field whose values are numbers in some requests and texts in the others is no cause."""
        path = self.scratch / "mixed.log"
        path.write_text("".join(f"DATE=20260101{i // 3600:02d}{i // 60 % 60:02d}{i % 60:02d}.{at}00000 HOST=h PROG=p LVL=Usage NL.EVNT={event} ID={i} KIND={kind}\n"
                                for i in range(600) for kind in (90000000 + i % 4 if i < 40 else "abcd"[i % 4],)
                                for at, event in ((1, "A"), (3 + i % 4, "B"))))
        self.assertNotIn("KIND", [c.get("field") for c in self.diagnosed("--id", "ID", path, status=FINDING)["causes"]])

    def early_calls(self, early_ns):
        """Calls from h1 to h2. early_ns(call): how long before its caller the call begins; negative if later."""
        path = self.scratch / "early.log"
        lines = []
        for i in range(1000):
            ns = slow_logs.START + i * 10_000_000
            for host, event, span, parent, at in (("h1", "Call.start", 2 * i + 1, 0, 0), ("h2", "Work.start", 2 * i + 2, 2 * i + 1, early_ns(i)),
                                                  ("h2", "Work.end", 2 * i + 2, 2 * i + 1, 3_000_000), ("h1", "Call.end", 2 * i + 1, 0, 5_000_000)):
                lines.append((ns + at, f"HOST={host} PROG=p LVL=Usage NL.EVNT={event} TRACE.ID=t{i} SPAN.ID={span:016x}"
                              + (f" PARENT.ID={parent:016x}" if parent else "")))
        path.write_text("".join(f"DATE={slow_logs.ulm(at)} {text}\n" for at, text in sorted(lines)))
        return [c["host"] for c in self.diagnosed(path)["causes"] if c["cause"] == "clock"]

    def test_early_calls(self):
        """Few violations, or violations of some microseconds, do not show a wrong clock."""
        usual = lambda i: 1_000_000 + i % 7 * 100_000
        self.assertEqual(self.early_calls(lambda i: -500_000 if i == 500 else usual(i)), [])
        self.assertEqual(self.early_calls(lambda i: -10_000 if i % 10 == 0 else usual(i)), [])
        self.assertEqual(self.early_calls(lambda i: -2_000_000 if i % 10 == 0 else usual(i)), ["h2"])
        for cause in self.diagnosed(self.scratch / "early.log")["causes"]:  # without measurements, nlv cannot correct the clocks
            self.assertNotIn("--fix-clocks", cause["view"])

    def test_unobserved_time(self):
        """The delay between two hosts is unknown; a difference of a day may be a wrong clock, or a wait of a day."""
        for length, words in (0.3, "300 ms"), (90000, "25 h 0 min"):
            chance, records = random.Random(9), []
            for i in range(400):
                work, end = 0.1 * chance.lognormvariate(0, 0.3), length + 0.1 * chance.lognormvariate(0, 0.3)
                records += [(i * 0.2 + at, host, event, f"ID={i}")
                            for host, event, at in (("h1", "Asked", 0), ("h1", "Sent", work), ("h2", "Received", work + length), ("h2", "Stored", work + end))]
            self.assertEqual(self.diagnosed_of(records)["answer"], f"cannot tell: the clock of h2 seems to be {words} ahead of the clock of h1, "
                             "unless messages take that long; log ClockOffset records")

    def test_times_without_length(self):
        found = self.diagnosed_of([(i, "h", event, f"ID={i}") for i in range(100) for event in ("A", "B")])
        self.assertIn("cannot tell: all events of a request have the same time", found["answer"])
        self.assertEqual(self.run_program(self.nldiag, "--id", "ID", self.scratch / "other.log").stdout.count("nan"), 0)

    def test_many_places(self):
        """Beyond the maximum number of places, nldiag examines requests at known places."""
        path = self.scratch / "hosts.log"
        with open(path, "w", encoding="utf-8") as out:
            for i in range(100_000):
                at = f"{i // 3600 % 24:02d}{i // 60 % 60:02d}{i % 60:02d}"
                host = f"h{i}" if i < 70_000 else f"h{i % 100}"
                out.write(f"DATE=20260101{at}.0 HOST={host} PROG=p LVL=Usage NL.EVNT=W.start ID={i}\n"
                          f"DATE=20260101{at}.{3 + i % 5} HOST={host} PROG=p LVL=Usage NL.EVNT=W.end ID={i}\n")
        found = self.diagnosed("--id", "ID", path)
        self.assertEqual((found["requests"], found["verdict"]), (65536 + 30_000, "healthy"))
        self.assertEqual(found["incomplete"], "4464 requests ignored, because the log has more than 65,536 combinations of "
                         "place and host; select records with --where")

    def spans(self, name, count, spans_of, fields=""):
        """Requests at intervals of 200 us, with spans of 50 to 100 us; spans_of(i) returns their names."""
        path, chance, at = self.scratch / name, random.Random(10), 0
        with open(path, "w", encoding="utf-8") as out:
            for i in range(count):
                for span in spans_of(i):
                    begin, at = at, at + 200
                    for event, us in (f"{span}.start", begin), (f"{span}.end", begin + chance.randint(50, 100)):
                        out.write(f"DATE=20260101{us // 3_600_000_000:02d}{us // 60_000_000 % 60:02d}{us // 1_000_000 % 60:02d}.{us % 1_000_000:06d} "
                                  f"HOST=h PROG=p LVL=Usage NL.EVNT={event} ID={i}{fields}\n")
        return path

    def test_too_many_names(self):
        """Most of the time belongs to names beyond the maximum, which share one place."""
        found = self.diagnosed("--id", "ID", self.spans("names.log", 80_000, lambda i: [f"S{i}"]), status=CANNOT_TELL)
        self.assertRegex(found["answer"], r"^cannot tell: the log has too many event names, and \d+ % of the requests' time belongs to names beyond the maximum")

    def test_memory_of_large_requests(self):
        found = self.diagnosed("--id", "ID", "--memory=1m", self.spans("large.log", 100, lambda i: [f"W{k}" for k in range(1000)]))
        self.assertLess(found["requests"], 20)
        self.assertRegex(found["incomplete"], rf"a sample, {found['requests']} of \d+ requests, because of --memory")

    # ---- sensors ----

    def test_limits(self):
        """Sensors explain findings, and slowness of all requests."""
        expected = {"window": ("window", None), "loss": ("loss", None), "disk": ("disk", "server3"), "memory": ("memory", "server3"),
                    "client-cpu": ("cpu", "client"), "server-cpu": ("cpu", "server2"), "softirq": ("softirq", "client"),
                    "softirq-half": ("softirq", "client"), "unread": ("cpu", "client")}
        for fault, (cause, host) in expected.items():
            for seed in support.representative((1, 2), (1,)):
                with self.subTest(fault=fault, seed=seed):
                    first = self.diagnosed(self.model(fault, seed=seed, seconds=20 if fault in ("memory", "server-cpu") else 10), status=FINDING)["causes"][0]
                    self.assertEqual((first["cause"], first["host"]), (cause, host))
                    self.assertRegex(first["evidence"][0], r"\d")
        self.assertEqual(self.diagnosed(self.model(seconds=10))["causes"], [])

    def far_away(self, name, depth, work, sense):
        """A client keeps depth requests in progress at each of four servers, 60 ms away. Each server executes one request at a time."""
        chance, records, number = random.Random(5), [], 0
        for server in range(1, 5):
            host, free = f"server{server}", 0.0
            begins = [0.01 * i for i in range(depth)]
            while (begin := begins.pop(0)) < 6:
                number += 1
                start = max(begin + 0.03, free)
                free = start + work(server) * chance.lognormvariate(0, 0.2)
                end = free + 0.0298
                begins.append(end)
                records += [(at, f"HOST={where} LVL=Usage NL.EVNT={event} BLOCK.ID={number}") for at, where, event in (
                    (begin, "client PROG=get", "Request"), (start, f"{host} PROG=server", "Read.start"), (free, f"{host} PROG=server", "Read.end"),
                    (end, "client PROG=get", "Done"))]
            records += [(0.5 * i, f"HOST={host} PROG=nlsensor LVL=System {text}") for i in range(12) for text in sense(server, i)]
        path = self.scratch / f"{name}.log"
        simulate.write_lines(path, sorted(records))
        first = self.diagnosed(path, status=FINDING)["causes"][0]
        return first["cause"], first["host"]

    def test_requests_wait_before_a_server_with_a_slow_disk(self):
        """Most of the time passes before the server, which reads one block at a time."""
        self.assertEqual(self.far_away("disk", 5, lambda server: 0.06 if server == 3 else 0.001, lambda server, i: [
            f"NL.EVNT=DiskDevice DISK.NAME=sda DISK.BUSY={95 if server == 3 else 3} DISK.READ.MS={60 if server == 3 else 1}"]), ("disk", "server3"))

    def test_share_of_lost_segments(self):
        """TCP.OUT excludes retransmissions: 2,000 in half a second, with 2,000 segments per second, are two thirds."""
        chance, records = random.Random(5), [(0.5 * i, "HOST=b PROG=nlsensor LVL=System NL.EVNT=TcpSegments TCP.RETRANS=2000 TCP.OUT=2000") for i in range(13)]
        for i in range(300):
            for who, event, after in ("a PROG=get", "Ask", 0), ("b PROG=put", "Sent", 0.001), ("a PROG=get", "Got", 0.001 + 0.05 * chance.lognormvariate(0, 0.3)):
                records.append((0.02 * i + after, f"HOST={who} LVL=Usage NL.EVNT={event} ID={i}"))
        path = self.scratch / "loss.log"
        simulate.write_lines(path, sorted(records))
        first = self.diagnosed("--id", "ID", path, status=FINDING)["causes"][0]
        self.assertEqual((first["cause"], first["host"], first["evidence"][0]), ("loss", "b", "TCP retransmitted 66.67 % of the segments"))

    def test_time_outs_of_lost_messages(self):
        """Retransmissions explain timeouts only if they are on the connections of the visits."""
        for own, cause in (True, "loss"), (False, "timeout"):
            chance, at, records, lost = random.Random(1), 0.0, [], []
            for number in range(600):
                at += chance.expovariate(100)
                if number % 25 == 7:
                    lost.append(at)
                times = [at]
                for least in 0.0002 + 0.206 * (number % 25 == 7), 0.008, 0.0002:
                    times.append(times[-1] + least * chance.lognormvariate(0, 0.01))
                for now, host, event, fields in zip(times, ("a", "b1", "b1", "a"), ("Call.start", "Work.start", "Work.end", "Call.end"),
                                                    ("SPAN.ID=c", "SPAN.ID=w PARENT.ID=c", "SPAN.ID=w", "SPAN.ID=c")):
                    records.append((now, host, event, f"TRACE.ID={number} {fields}"))
            ends = {"a": "10.0.0.1:40000", "b1": "10.0.0.2:80", "b2": "10.0.0.3:80"}
            for step in range(30):
                for host, peer in ("a", "b1"), ("b1", "a"), ("a", "b2"), ("b2", "a"):
                    count = sum(at < 0.25 * step - 0.2 for at in lost) if (host, peer) == ("a", "b1" if own else "b2") else 0
                    records.append((0.25 * step, host, "TcpConnection",
                                    f"TCP.LOCAL={ends[host]} TCP.PEER={ends[peer]} TCP.STATE=established TCP.OWNER.STATE={'RS'[step % 2]} TCP.MSS=1448 "
                                    f"TCP.CWND=10 TCP.WINDOW=65536 TCP.RTT=300 TCP.RTT.MIN=200 TCP.RETRANS={count} TCP.BYTES.SENT={step * 5000} "
                                    f"TCP.BYTES.RETRANS={count * 100} TCP.BUSY={step * 9000} TCP.LIMITED.RECEIVER=0 TCP.LIMITED.BUFFER=0 TCP.UNSENT=0"))
            first = self.diagnosed_of(records, options=())["causes"][0]
            self.assertEqual((first["cause"], first["from_event"], first["to_event"]), (cause, "Call.start", "Work.start"))
            self.assertEqual(" packets are lost on the way from a (" in first["title"], own, first["title"])

    def test_a_round_trip_for_each_request(self):
        """The path to the servers takes as long as the path back."""
        self.assertEqual(self.far_away("streams", 1, lambda server: 0.0001, lambda server, i: [
            f"NL.EVNT=TcpConnection TCP.LOCAL=server{server}:14900 TCP.PEER=client:40000 TCP.STATE=established TCP.MSS=1448 TCP.CWND=58 "
            f"TCP.WINDOW=4000000 TCP.RTT=60400 TCP.RTT.MIN=60100 TCP.BYTES.SENT={i * 300000} TCP.BYTES.RETRANS=0 TCP.BUSY={i * 250000} "
            "TCP.LIMITED.RECEIVER=0 TCP.LIMITED.BUFFER=0 TCP.UNSENT=0"]), ("streams", None))

    # ---- clocks ----

    def model(self, fault="", name=None, **settings):
        path = self.scratch / (name or f"{fault or 'healthy'}.log")
        slow_logs.Run(fault, **settings).write(path)
        return path

    def test_measured_clock_is_named(self):
        """nldiag finds a wrong clock even if every reply arrives after its request: 28 ms is less than the minimum
        delay."""
        for ahead, word in (0.028, "fast"), (-0.028, "slow"), (7.5, "fast"):
            with self.subTest(ahead=ahead):
                found = self.diagnosed(self.model(clocks={"server2": ahead}, measured_within=0.0005, rtt=0.06, streams=6, seconds=10))
                self.assertEqual([(c["cause"], c["host"]) for c in found["causes"]], [("clock", "server2")])
                self.assertRegex(found["answer"], rf"the clock of server2 is {abs(ahead) * 1000 if abs(ahead) < 1 else ahead:.2g}.* {word}")
                self.assertIn(" --fix-clocks ", found["causes"][0]["view"])

    def test_measured_clocks_that_are_right(self):
        """Coarse times are not evidence of a wrong clock, and change no result."""
        for within in 0.0005, 0.03:
            self.assertEqual(self.diagnosed(self.model(measured_within=within, seconds=10))["causes"], [])

    def test_access_logs(self):
        """Each record with a duration is a request, whatever the form of the duration, and without an event or an ID."""
        forms = {"duration={:.3f}ms": 1e3, "DUR={:.6f}": 1, "duration_us={:.1f}": 1e6, "duration=0m{:.4f}s": 1, "dur={:.0f}µs": 1e6}
        for form, scale in forms.items():
            with self.subTest(form=form):
                lines, chance, at = [], random.Random(7), 1.8e9
                for _ in range(400):
                    at += chance.expovariate(20)
                    edge = chance.randrange(4)
                    taken = 0.02 * chance.lognormvariate(0, 0.3) * (3 if edge == 2 else 1)
                    lines.append(f"time={datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} level=info host=edge{edge} prog=proxy "
                                 f"path=/ status=200 {form.format(taken * scale)}\n")
                path = self.scratch / "access.log"
                path.write_text("".join(lines))
                found = self.diagnosed(path, status=FINDING)
                self.assertEqual(found["requests"], 400)
                self.assertEqual([(c["cause"], c["host"], c["span"]) for c in found["causes"]], [("peer", "edge2", "request")])

    def test_access_log_of_nginx(self):
        """The request's own duration explains nothing, and some URLs always take longer than others. A server that adds 100 ms is a fault."""
        kinds = {"/": 0.005, "/search": 0.03, "/report": 0.4, "/logo.png": 0.002}
        for slow in None, "10.0.0.2:80":
            with self.subTest(slow=slow):
                lines, chance, at = [], random.Random(3), 1.8e9
                for _ in range(3000):
                    at += chance.expovariate(20)
                    uri = chance.choices(list(kinds), (40, 40, 8, 12))[0]
                    server, status = ("-", "HIT") if uri == "/logo.png" and chance.random() < 0.8 else (f"10.0.0.{chance.randrange(1, 5)}:80", "MISS")
                    status = "-" if uri in ("/search", "/report") else status
                    behind = (kinds[uri] * chance.lognormvariate(0, 0.3) + 0.1 * (server == slow)) * (server != "-")
                    lines.append(json.dumps({
                        "time": f"{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}", "uri": uri, "status": 200,
                        "body_bytes_sent": int(5000 * chance.lognormvariate(0, 0.2)), "request_time": round(behind + 0.001 * chance.lognormvariate(0, 0.3), 3),
                        "upstream_addr": server, "upstream_response_time": f"{behind:.3f}" if server != "-" else "-", "upstream_cache_status": status}) + "\n")
                path = self.scratch / "access.json"
                path.write_text("".join(lines))
                found = self.diagnosed(path)
                self.assertEqual([c["title"].split(": ")[1] for c in found["causes"] if not c["ordinary"]], [f"request with upstream_addr is slow for upstream_addr={slow}"] if slow else [])

    def test_access_log_in_the_format_of_the_manual(self):
        manual = (support.SOURCE / "doc/man/nldiag.1").read_text()
        form = "".join(re.findall(r"'(.*)'", re.search(r"log_format netlogger escape=json ([^;]*);", manual)[1]))
        lines, chance, at = [], random.Random(3), 1.8e9
        for _ in range(600):
            at += chance.expovariate(20)
            server = f"10.0.0.{chance.randrange(1, 5)}:80"
            taken = 0.02 * chance.lognormvariate(0, 0.3) * (5 if server == "10.0.0.2:80" else 1)
            values = {"msec": f"{at + taken:.3f}", "uri": "/a", "status": 200, "request_time": f"{taken:.3f}", "upstream_addr": server}
            lines.append(re.sub(r"\$(\w+)", lambda name: str(values[name[1]]), form) + "\n")
        path = self.scratch / "requests.json"
        path.write_text("".join(lines))
        faults, found = self.faults_of(path)
        self.assertEqual((faults[0]["cause"], found["requests"]), ("peer", 600))
        self.assertIn("10.0.0.2:80", faults[0]["title"])

    def test_access_log_of_traefik(self):
        """Traefik writes durations in nanoseconds, without a unit."""
        lines, chance, at = [], random.Random(3), 1.8e9
        for _ in range(600):
            at += chance.expovariate(20)
            server = f"10.0.0.{chance.randrange(1, 5)}:80"
            taken = 0.02 * chance.lognormvariate(0, 0.3) * (3 if server == "10.0.0.2:80" else 1)
            stamp = lambda time: f"{datetime.datetime.fromtimestamp(time, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}"
            lines.append(json.dumps({"Duration": int(taken * 1e9), "DownstreamStatus": 503 if chance.random() < 0.1 else 200, "RequestPath": "/", "ServiceAddr": server,
                                     "StartUTC": stamp(at), "level": "info", "msg": "", "time": stamp(at + taken)}) + "\n")
        path = self.scratch / "access.json"
        path.write_text("".join(lines))
        faults, found = self.faults_of(path)
        self.assertIn("10.0.0.2:80", faults[0]["title"])
        self.assertLess(found["total_ns"], 600 * 0.1e9)
        self.assertGreater(found["failed"], 30)

    def test_durations_of_go(self):
        """Go's programs write durations as whole numbers of nanoseconds, without a unit. A message states how nldiag reads them."""
        lines, chance, at = [], random.Random(3), 1.8e9
        for n in range(600):
            at += chance.expovariate(20)
            tenant = chance.choice("abcd")
            taken = 5e-5 if n % 10 == 9 else 0.02 * chance.lognormvariate(0, 0.3) * (5 if tenant == "b" else 1)
            lines.append(json.dumps({"time": f"{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}", "level": "INFO",
                                     "msg": "request", "tenant": tenant, "duration": int(taken * 1e9)}) + "\n")
        path = self.scratch / "slog.json"
        path.write_text("".join(lines))
        result = self.run_program(self.nldiag, "--json", path)
        self.assertEqual(result.stderr, "nldiag: whole numbers without a unit are read as nanoseconds, because some are too large for seconds; "
                                        "name a field with its unit, such as DURATION.MS, if this is wrong\n")
        found = json.loads(result.stdout)
        self.assertIn("tenant=b", found["causes"][0]["title"])
        self.assertLess(found["total_ns"], 600 * 0.1e9)

    def test_server_in_a_field_for_urls(self):
        """A field whose name is that of URLs may contain addresses of servers, which are peers. A URL keeps its server, and loses its query."""
        for form, cause in ("10.0.0.1{}:9000", "peer"), ("http://10.0.0.1{}/list?id={}", "field"):
            with self.subTest(form):
                lines, chance, at = [], random.Random(4), 1.8e9
                for n in range(600):
                    at += chance.expovariate(20)
                    server = chance.randrange(1, 5)
                    taken = 0.02 * chance.lognormvariate(0, 0.3) * (8 if server == 3 else 1)
                    lines.append(f"time={datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} level=info host=edge prog=proxy "
                                 f"target={form.format(server, n)} status=200 DUR={taken:.6f}\n")
                path = self.scratch / "access.log"
                path.write_text("".join(lines))
                first = self.diagnosed(path, status=FINDING)["causes"][0]
                self.assertEqual((first["cause"], first["field"]), (cause, "target"))
                self.assertIn("10.0.0.13", first["title"])

    def test_time_out_with_one_operation(self):
        """A field with one value names no operations, so waits of a second are a timeout."""
        lines, chance, at = [], random.Random(5), 1.8e9
        for _ in range(1500):
            at += chance.expovariate(20)
            taken = 0.02 * chance.lognormvariate(0, 0.3) + (1 if chance.random() < 0.06 else 0)
            lines.append(f"time={datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} level=info host=edge prog=proxy "
                         f"request_method=GET status=200 DUR={taken:.6f}\n")
        path = self.scratch / "access.log"
        path.write_text("".join(lines))
        self.assertEqual(self.diagnosed(path, status=FINDING)["causes"][0]["cause"], "timeout")

    def test_times_with_few_digits(self):
        """Whole milliseconds are no timeout, also after a finding has claimed a part of the times, and if a few times have more digits."""
        for seed in range(1, support.representative(7, 3)):
            with self.subTest(seed=seed):
                lines, chance, at = [], random.Random(seed), 1.8e9
                for _ in range(1900):
                    at += chance.expovariate(100)
                    uri = chance.choices(("/app.js", "/item", "/cart", "/search"), (30, 40, 20, 20))[0]
                    hit = uri in ("/app.js", "/item") and chance.random() < 0.85
                    taken = chance.expovariate(1800) if hit else (0.016 if uri == "/item" else 0.03) * chance.lognormvariate(0, 0.35)
                    lines.append(json.dumps({
                        "time": f"{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z",
                        "host": f"edge{chance.randrange(2)}", "uri": uri, "status": 200, "request_time": max(0.001, round(taken, 3))}) + "\n")
                path = self.scratch / "access.json"
                path.write_text("".join(lines))
                self.assertEqual([c["title"] for c in self.diagnosed(path)["causes"] if not c["ordinary"]], [])
                fine = [line.replace("\"request_time\": 0.0", "\"request_time\": 0.01234567") if n % 200 == 3 else line for n, line in enumerate(lines)]
                path.write_text("".join(fine))
                self.assertEqual([c["title"] for c in self.diagnosed(path)["causes"] if not c["ordinary"]], [])

    def test_clock_that_reverses_the_order(self):
        """Without measurements and parents, the order of events shows which of four servers has a wrong clock."""
        found = self.diagnosed(self.model("clock"))
        self.assertEqual([c["title"] for c in found["causes"]], ["the clock of server2 is 2.30 s fast"])

    def test_clock_without_evidence(self):
        """If a clock error is smaller than the delays of messages, nldiag reports no clock error and no slow messages."""
        found = self.diagnosed(self.model(clocks={"server2": 0.01}))
        self.assertEqual([c["title"] for c in found["causes"]], [])

    def test_what_is_corrected(self):
        """Times are corrected before the diagnosis; standard input cannot be read twice."""
        path, truth = self.run_of("clock", 5)
        found = self.diagnosed(path)
        self.assertEqual([(c["cause"], c["host"]) for c in found["causes"]], [("clock", truth["host"])])
        self.assertIn("all other results use corrected times", found["causes"][0]["evidence"])
        with open(path, encoding="utf-8") as log:
            result = self.run_program(self.nldiag, stdin=log)
        self.assertIn("are not corrected", result.stdout)

    def clocks_of(self, ahead=None, pairs=None, delay=lambda server: 0.0002, wait=lambda server, chance: 0.0, asynchronous=(), replies=True, timer=False,
                  count=400, callers=()):
        """Writes calls of three clients to three servers, which take 10 ms, and returns what nldiag reports about clocks.

        ahead: the errors of clocks in seconds; pairs: the server of each client (default: all servers); delay: the minimum time of a message; wait: the
        time until the server begins; asynchronous: servers whose callers do not wait; timer: clients log an event 20 ms after the call;
        callers: servers that call the clients, in another lifeline.
        """
        chance, lines, at = random.Random(1), [], 0.0
        for number in range(count):
            at += chance.expovariate(40)
            client = chance.choice(("c1", "c2", "c3"))
            server = pairs[client] if pairs else chance.choice(("s1", "s2", "s3"))
            received = at + delay(server) * chance.uniform(1, 1.5) + wait(server, chance)
            done = received + 0.01 * chance.lognormvariate(0, 0.3)
            answer = at + 0.003 * chance.lognormvariate(0, 0.1) if server in asynchronous else done + delay(server) * chance.uniform(1, 1.5)
            rows = [(client, "Ask", at), (server, "Work.start", received), (server, "Work.end", done)]
            rows += [(client, "Answer", answer)] * replies + [(client, "Progress", at + 0.02)] * timer
            if server in callers:
                rows = [(host, event, when) for (host, event, _), when in zip((rows[1], rows[0], rows[3], rows[2]), (at, received, done, answer))]
            lines += [(when + (ahead or {}).get(host, 0), f"HOST={host} PROG={host[0]} LVL=Usage NL.EVNT={event} {'CALL' if server in callers else 'REQ'}.ID={number}")
                      for host, event, when in rows]
        path = self.scratch / "calls.log"
        simulate.write_lines(path, sorted(lines))
        found = self.diagnosed(path)
        return [c["title"] for c in found["causes"] if c["cause"] == "clock"], found

    def test_order_of_messages(self):
        """Messages in both directions show the error of a clock, and which host has it. An error of less than 1 ms is no cause."""
        for ahead, host, word in (({"s2": 0.01}, "s2", "fast"), ({"s2": -0.01}, "s2", "slow"), ({"s2": 2}, "s2", "fast"), ({"c3": -2}, "c3", "slow"),
                                  ({"s2": 0.0003}, None, ""), ({"s2": -0.0003}, None, "")):
            with self.subTest(ahead=ahead):
                titles, found = self.clocks_of(ahead)
                self.assertEqual(found["verdict"] == "finding", host is not None)
                self.assertEqual(len(titles), 1 if host else 0, titles)
                for title in titles:
                    parts = re.fullmatch(rf"the clock of {host} is (\S+) (m?s)(?: to (\S+) (m?s))? {word}", title).groups()
                    low, high = (float(parts[i]) / (1000 if parts[i + 1] == "ms" else 1) for i in (0, 2 if parts[2] else 0))
                    error = abs(sum(ahead.values()))
                    self.assertTrue(0.9 * error <= low <= 1.03 * error and 0.97 * error <= high <= 1.1 * error, (title, error))

    def test_orders_that_prove_no_clock_wrong(self):
        """Hosts that are far away, that reply late or that work in the background have right clocks."""
        pairs = {"c1": "s1", "c2": "s2", "c3": "s3"}
        far = lambda server: 0.08 if server == "s3" else 0.0002
        background = lambda server, chance: 0.05 * chance.lognormvariate(0, 0.3) if server == "s3" else 0
        for name, settings in {"healthy": {}, "far": {"delay": far}, "far, timer": {"delay": far, "timer": True}, "asynchronous": {"asynchronous": ("s3",)},
                               "background": {"asynchronous": ("s3",), "wait": background}, "few requests": {"count": 70, "ahead": {"s2": 0.0001}},
                               "one direction": {"replies": False, "ahead": {"s2": -0.01}}, "far in one direction": {"replies": False, "delay": far},
                               "two lifelines": {"callers": ("s3",)}}.items():
            for affinity in support.representative((False, True), (name in ("far", "background", "one direction"),)):
                with self.subTest(name=name, affinity=affinity):
                    self.assertEqual(self.clocks_of(pairs=pairs if affinity else None, **settings)[0], [])

    def test_clock_of_one_of_two_hosts(self):
        """If two hosts have messages only with each other, nothing shows which of the clocks is wrong."""
        titles, found = self.clocks_of({"s2": 0.01}, {"c1": "s1", "c2": "s2", "c3": "s3"})
        self.assertEqual(titles, [])
        self.assertRegex(found["answer"], "^cannot tell: the clock of (s2 or the clock of c2|c2 or the clock of s2) is wrong by about [0-9.]+ ms; log ClockOffset records$")

    def test_branches_are_no_clock_errors(self):
        """If a caller does not wait, it ends before its callee. Parallel calls overlap."""
        lines, chance = [], random.Random(1)
        for i in range(300):
            at = i * 0.1
            for host, event, when, ids in ("a", "Front.start", 0, "SPAN.ID=1"), ("b", "Log.start", 0.002, "SPAN.ID=2 PARENT.ID=1"), \
                                          ("a", "Front.end", 0.004 * chance.lognormvariate(0, 0.1), "SPAN.ID=1"), ("b", "Log.end", 0.03, "SPAN.ID=2"):
                lines.append((at + when, f"HOST={host} PROG={host} LVL=Usage NL.EVNT={event} TRACE.ID=t{i} {ids}"))
        path = self.scratch / "branches.log"
        simulate.write_lines(path, sorted(lines))
        self.assertNotIn("clock", [c["cause"] for c in self.diagnosed(path)["causes"]])

    def test_callers_that_do_not_wait(self):
        """The callers end before their callee, as with a fast clock. The callee's times are then unknown."""
        lines, chance = [], random.Random(1)
        for i in range(800):
            at, whole, host = i * 0.03, 0.01 + 0.002 * chance.random(), "db1" if i % 2 else "db2"
            end = whole * 0.95 if host == "db1" else whole + 0.002 + 0.001 * chance.random()
            for where, event, when, ids in ("web PROG=app", "Handle.start", 0, "SPAN.ID=1"), (f"{host} PROG=db", "Write.start", whole * 0.8, "SPAN.ID=2 PARENT.ID=1"), \
                                           ("web PROG=app", "Handle.end", whole, "SPAN.ID=1"), (f"{host} PROG=db", "Write.end", end, "SPAN.ID=2"):
                lines.append((at + when, f"HOST={where} LVL=Usage NL.EVNT={event} TRACE.ID=t{i} {ids}"))
        path = self.scratch / "replica.log"
        simulate.write_lines(path, sorted(lines))
        for log, host in (path, "db2"), (self.run_of("clock", 2)[0], "price3-1"):
            found = self.diagnosed(log, status=CANNOT_TELL)
            self.assertEqual(found["answer"], f"cannot tell: the clock of {host} may be fast, or its callers do not wait for its replies; log ClockOffset records")

    # ---- requests without IDs ----

    def spans_of(self, load, inner=False, thread=""):
        """Diagnoses spans of one program, with `load` requests in progress on average."""
        chance, at, lines = random.Random(50), 0.0, []
        for i in range(1500):
            at += chance.expovariate(load / 0.012)
            first, second = (0.006 * chance.lognormvariate(0, 0.3) for _ in range(2))
            steps = [("Request.start", 0), ("Request.end", first + second)]
            if inner:
                steps[1:1] = [("Read.start", 1e-5), ("Read.end", first - 1e-5), ("Work.start", first), ("Work.end", first + second - 1e-5)]
            lines += [(at + when, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} {thread.format(i)}") for event, when in steps]
        path = self.scratch / "spans.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        return self.diagnosed(path)

    def test_requests_that_overlap_without_ids(self):
        for load in 0.2, 0.6, 1.2:
            for inner in False, True:
                with self.subTest(load=load, inner=inner):
                    found = self.spans_of(load, inner)
                    self.assertEqual((found["verdict"], found["causes"]), ("cannot tell", []))
                    self.assertIn("requests overlap and have no ID", found["answer"])
        for load, thread in (0.005, ""), (1.2, "TID={}"):
            with self.subTest(load=load, thread=thread):
                found = self.spans_of(load, thread=thread)
                self.assertEqual(found["verdict"], "healthy", found["answer"])
                self.assertGreater(found["requests"], 1400)

    # ---- numbers of calls ----

    def calls_of(self, draw):
        """Diagnoses requests that call Query repeatedly, one call after another; draw returns the number of calls by kind of request."""
        chance, at, lines = random.Random(7), 0.0, []
        for i in range(600):
            at += chance.expovariate(50)
            now, kind = at, chance.randrange(4)
            lines.append((now, f"Request.start TRACE.ID=t{i} SPAN.ID=1 KIND=k{kind}"))
            for k in range(draw(chance, kind)):
                end = now + 0.0002 + 0.002 * chance.lognormvariate(0, 0.3)
                lines += [(now + 0.0002, f"Query.start TRACE.ID=t{i} SPAN.ID={k + 2} PARENT.ID=1"), (end, f"Query.end TRACE.ID=t{i} SPAN.ID={k + 2}")]
                now = end
            lines.append((now + 0.0002, f"Request.end TRACE.ID=t{i} SPAN.ID=1"))
        path = self.scratch / "calls.log"
        simulate.write_lines(path, sorted((when, f"HOST=h PROG=p LVL=Usage NL.EVNT={text}") for when, text in lines))
        return self.diagnosed(path)

    def test_numbers_of_calls_by_chance(self):
        """Varying numbers of calls are no cause without a separate group of requests with many calls."""
        def geometric(mean):
            return lambda chance, kind: 1 + int(chance.expovariate(1) * mean)

        for name, draw in {"few": geometric(1), "some": geometric(4), "many": geometric(20), "uniform": lambda chance, kind: chance.randint(1, 6),
                           "heavy tail": lambda chance, kind: min(200, int(chance.paretovariate(1.2))),
                           "bell": lambda chance, kind: 1 + sum(chance.random() < 0.3 for _ in range(10))}.items():
            with self.subTest(name):
                self.assertEqual([c["title"] for c in self.calls_of(draw)["causes"]], [])

    def test_many_calls(self):
        for name, draw, text in (("same number", lambda chance, kind: 12 if kind == 0 else 1, "requests with KIND=k0 call Query of p 12 times, others 1"),
                                 ("long list", lambda chance, kind: chance.randint(55, 65) if kind == 0 else 1, "requests with KIND=k0 call Query of p 60 times, others 1"),
                                 ("list", lambda chance, kind: chance.randint(20, 40) if kind == 0 else 1, r"requests with KIND=k0 call Query of p 3\d times, others 1"),
                                 ("all", lambda chance, kind: 15, "each request calls Query of p 15 times"),
                                 ("all, varying", lambda chance, kind: 10 + sum(chance.random() < 0.5 for _ in range(10)), r"each request calls Query of p 1\d times")):
            with self.subTest(name):
                causes = self.calls_of(draw)["causes"]
                self.assertRegex(causes[0]["title"], text)
                self.assertEqual([c["cause"] for c in causes].count("calls"), 1)

    # ---- programs without spans: requests from front end to back end, with their own random times ----

    def items_of(self, calls, items, fields=lambda i, items: f"ITEMS={items}", end=lambda calls: ""):
        """Diagnoses requests that make a number of calls, one after another, and log a number of items. The numbers depend on the request's number."""
        chance, records = random.Random(11), []
        for i in range(900):
            at = now = i * 0.5
            k = items(chance, i)
            n = calls(chance, i, k)
            records.append((at, "h", "Page.start", f"ID={i} {fields(i, k)}"))
            for _ in range(n):
                records += [(now + 0.001, f"db{i % 2}", "Query.start", f"ID={i}"), (now + 0.002 + 0.01 * chance.lognormvariate(0, 0.4), f"db{i % 2}", "Query.end", f"ID={i}")]
                now = records[-1][0]
            records.append((now + 0.01 * chance.lognormvariate(0, 0.4), "h", "Page.end", f"ID={i} {end(n)}"))
        return [c for c in self.diagnosed_of(sorted(records))["causes"] if not c["ordinary"] and "instead_of" not in c]

    def test_calls_that_become_more_frequent(self):
        """All requests make calls, and make more of them from a time. The amount of requested work may explain this, but not the counted calls."""
        usual = lambda chance, i: 1 + int(chance.expovariate(0.4))
        for name, calls, end in (("later", lambda chance, i, k: k + 3 * (i > 500), lambda n: ""), ("counted", lambda chance, i, k: k + 3 * (i > 500), lambda n: f"QUERIES={n}")):
            with self.subTest(name):
                faults = self.items_of(calls, usual, end=end)
                self.assertEqual(([c["cause"] for c in faults], faults[0]["span"]), (["calls"], "Page"))
                self.assertRegex(faults[0]["title"], r"Page of p calls Query of p more often from 2[4-6]\d s to 4[45]\d s after the first request began")
                self.assertRegex(faults[0]["evidence"][0], r"^a visit at this time makes (5.9|6)[.\d]* of these calls, and another visit makes [23]\.\d+$")
        more = lambda chance, i: usual(chance, i) + 3 * (i > 500)
        self.assertEqual([c["title"] for c in self.items_of(lambda chance, i, k: k, more)], [])
        self.assertEqual([c["title"] for c in self.items_of(lambda chance, i, k: k, lambda chance, i: 2 * usual(chance, i) if i > 500 else usual(chance, i))], [])

    def test_calls_of_the_requested_work(self):
        """Some requests make many calls, but the amount or the kind of the requested work explains this."""
        many = lambda chance, i: chance.randint(15, 40) if chance.random() < 0.2 else chance.randint(1, 2)
        kinds = lambda i, k: f"KIND={'get' if k == 1 else 'put' if k == 3 else 'list' if k == 9 else 'find'}"
        several = lambda chance, i: chance.choice((1, 1, 1, 3, 9, 20))
        self.assertEqual([c["title"] for c in self.items_of(lambda chance, i, k: k, many)], [])
        self.assertEqual([c["title"] for c in self.items_of(lambda chance, i, k: k, several, kinds)], [])
        self.assertEqual([c["cause"] for c in self.items_of(lambda chance, i, k: k, many, lambda i, k: "")], ["calls"])
        self.assertEqual([c["cause"] for c in self.items_of(lambda chance, i, k: k, many, lambda i, k: "", lambda n: f"QUERIES={n}")], ["calls"])

    def test_hit_rates_of_several_hosts(self):
        """Two of four hosts miss more often; both are named."""
        for with_field in (True, False):
            chance, records = random.Random(5), []
            for i in range(2400):
                at, host = i * 0.1, f"w{chance.randrange(4)}"
                miss = chance.random() < (0.7 if host in ("w1", "w3") else 0.15)
                taken = 0.03 * chance.lognormvariate(0, 0.3) * miss
                field = f" CACHE={'MISS' if miss else 'HIT'}" * with_field
                records += [(at, host, "Look.start", f"ID={i}{field}"), (at + 0.01 * chance.lognormvariate(0, 0.3) + taken, host, "Look.end", f"ID={i}")]
                if miss:
                    records += [(at + 0.002, "db", "Load.start", f"ID={i}"), (at + 0.002 + taken, "db", "Load.end", f"ID={i}")]
            faults = [c for c in self.diagnosed_of(sorted(records))["causes"] if not c["ordinary"] and "instead_of" not in c]
            self.assertEqual({(c["cause"], c["host"]) for c in faults}, {("field" if with_field else "calls", host) for host in ("w1", "w3")})

    def diagnosed_of(self, records, name="other.log", options=("--id", "ID")):
        """records: seconds, host, event, fields."""
        path = self.scratch / name
        simulate.write_lines(path, ((at, f"HOST={host} PROG=p LVL=Usage NL.EVNT={event} {fields}")
                                    for at, host, event, fields in sorted(records, key=lambda record: record[0])))
        return self.diagnosed(*options, path)

    def test_clocks_that_seem_to_differ(self):
        """Requests of two hosts, one of which is 20 ms fast: without a reference, this may be the time of messages."""
        chance, records = random.Random(3), []
        for number in range(300):
            begin = number * 0.1
            arrived = begin + 0.0003 + chance.random() * 0.0002
            worked = arrived + chance.uniform(0.01, 0.04)
            records += [(begin, "a", "Ask.start", f"ID={number}"), (arrived + 0.02, "b", "Work.start", f"ID={number}"),
                        (worked + 0.02, "b", "Work.end", f"ID={number}"), (worked + 0.0004 + chance.random() * 0.0002, "a", "Ask.end", f"ID={number}")]
        found = self.diagnosed_of(records)
        self.assertRegex(found["answer"], r"^cannot tell: the clock of b seems to be (19|20)\.\d+ ms ahead of the clock of a, unless messages take that long; "
                         r"log ClockOffset records$")

    def test_requests_that_lack_records(self):
        chance, records = random.Random(4), []
        for number in range(1000):
            for after, event in ((0, "Ask.start"), (0.001, "Work.start"), (0.02, "Work.end"), (0.021, "Ask.end")):
                if chance.random() >= 0.03:
                    records.append((number * 0.1 + after, "a" if event.startswith("Ask") else "b", event, f"ID={number}"))
        self.assertRegex(self.diagnosed_of(records)["incomplete"],
                         r"^(9\d|1[0-3]\d) of 1000 requests lack records, so nldiag may attribute their time to wrong places$")

    def requests(self, cost=lambda chance, at, number, host: 0.0, count=3000, rate=100.0, fields=lambda number: "", hosts=("b1", "b2", "b3"), seed=1,
                 host_of=None):
        """Writes requests from a to one of several hosts and back, which take 10 ms or `cost` more there."""
        chance, at, records = random.Random(seed), 0.0, []
        for number in range(count):
            at += chance.expovariate(rate)
            host, now = (host_of or (lambda c: c.choice(hosts)))(chance), at
            records.append((now, "a", "Ask", f"ID={number} {fields(number)}"))
            now += chance.uniform(0.0002, 0.0004)
            records.append((now, host, "Work.start", f"ID={number}"))
            now += 0.01 * chance.lognormvariate(0, 0.3) + cost(chance, at, number, host)
            records.append((now, host, "Work.end", f"ID={number}"))
            now += chance.uniform(0.0002, 0.0004)
            records.append((now, "a", "Answer", f"ID={number}"))
        return records

    def first_of(self, records):
        causes = self.diagnosed_of(records)["causes"]
        self.assertTrue(causes)
        return causes[0]

    def test_healthy_programs_of_other_kinds(self):
        programs = {"plain": {}, "two speeds": {"cost": lambda c, at, n, h: c.choice((0, 0, 0.06)) * c.lognormvariate(0, 0.3)},
                    "few outliers": {"cost": lambda c, at, n, h: 0.2 * (c.random() < 0.004)}}
        for name, settings in programs.items():
            for seed in support.representative((1, 2, 3), (1,)):
                with self.subTest(program=name, seed=seed):
                    self.assertEqual([cause["title"] for cause in self.diagnosed_of(self.requests(seed=seed, **settings))["causes"]], [])

    def test_field(self):
        kinds = ("browse", "search", "cart", "report")
        for slow in kinds[2:]:
            first = self.first_of(self.requests(lambda c, at, n, h: 0.1 * (kinds[n % 17 % 4] == slow) * c.lognormvariate(0, 0.3),
                                                fields=lambda n: f"TYPE={kinds[n % 17 % 4]} SIZE={n}"))
            self.assertEqual((first["cause"], first["field"]), ("field", "TYPE"))
            self.assertIn(f"slow for TYPE={slow}", first["title"])
        for slow, text in ({"cart", "report"}, "TYPE=(cart or report|report or cart)$"), ({"cart", "report", "list", "page"}, r"TYPE=\w+, \w+, \w+ or 1 other value$"):
            types = (*kinds, "list", "page", "news", "help", "map")
            first = self.first_of(self.requests(lambda c, at, n, h: 0.1 * (types[n * 7919 % 31 % 9] in slow) * c.lognormvariate(0, 0.3), fields=lambda n: f"TYPE={types[n * 7919 % 31 % 9]}"))
            self.assertRegex(first["title"], text)
        # A slow host is the cause, even if all requests have a field.
        first = self.first_of(self.requests(lambda c, at, n, h: 0.1 * (h == "b2") * c.random(), fields=lambda n: f"TYPE={kinds[n % 4]}"))
        self.assertEqual((first["cause"], first["host"]), ("peer", "b2"))

    def test_part_of_a_span(self):
        """Events inside a span divide its time. The answer names the part that a value makes slower, also in a sample of the log."""
        def steps(*slow, count=3000):
            chance, at = random.Random(5), 0.0
            for number in range(count):
                at += chance.expovariate(50)
                kind, now = chance.choice(("small", "large")), at
                for part in "Work.start", "parsed", "checked", "stored", "Work.end":
                    now += 0 if part == "Work.start" else 0.002 * chance.lognormvariate(0, 0.3) + 0.02 * (part in slow and kind == "large")
                    yield now, "a", part, f"ID={number} KIND={kind}" if part == "Work.start" else f"ID={number}"
        for slow, before, options in ("checked", "parsed", []), ("Work.end", "stored", ["--memory=1m"]):
            found = self.diagnosed_of(steps(slow, count=12000 if options else 3000), options=("--id", "ID", *options))
            self.assertEqual("a sample" in (found["incomplete"] or ""), bool(options))
            self.assertRegex(found["causes"][0]["title"], rf"slow for KIND=large; this time is between {before} and {slow}$")
        self.assertRegex(self.first_of(steps("parsed", "stored"))["title"], "slow for KIND=large$")

    def test_large_numbers(self):
        """Numbers that a float cannot represent stay different values, and are printed as logged."""
        for first in 3000000, 20000000, 9007199254740992, 1234567890123456789:
            with self.subTest(first=first):
                cause = self.first_of(self.requests(lambda c, at, n, h: 0.1 * (n % 7 % 3 == 1), fields=lambda n: f"ACCOUNT={first + n % 7 % 3}"))
                self.assertEqual((cause["cause"], cause["field"]), ("field", "ACCOUNT"))
                self.assertRegex(cause["title"], rf"slow for ACCOUNT={first + 1}$")

    def test_rare_value(self):
        """The visits of a rare value are in both halves of the log, so that the explanation of one half can be judged on the other."""
        for seed in range(1, 13):
            with self.subTest(seed=seed):
                rare = set(random.Random(seed).sample(range(240), 14))
                first = self.first_of(self.requests(lambda c, at, n, h: 0.1 * c.lognormvariate(0, 0.3) * (n in rare), count=240, rate=20,
                                                    fields=lambda n: f"TYPE={'report' if n in rare else ('page', 'list')[n % 2]}"))
                self.assertEqual((first["cause"], first["span"], first.get("field")), ("field", "Work", "TYPE"))

    def test_time_out(self):
        for share, more, text in (0.01, 5.0, "5.00 s"), (0.08, 1.0, "1.00 s"), (0.05, 1.77, "1.77 s"), (0.5, 0.2, "20[01] ms"):
            with self.subTest(text=text):
                first = self.first_of(self.requests(lambda c, at, n, h: (more + c.uniform(0, 0.001)) * (c.random() < share)))
                self.assertEqual((first["cause"], first["span"]), ("timeout", "Work"))
                self.assertRegex(first["title"], f"{text} longer, like a timeout")

    def test_time_of_delayed_acknowledgements_within_a_span(self):
        """A span may contain messages that the log does not show. Other times than 40 ms are timeouts."""
        for more, cause in (0.0395, "timer"), (0.0402, "timer"), (0.0435, "timer"), (0.05, "timeout"), (0.07, "timeout"):
            with self.subTest(more=more):
                first = self.first_of(self.requests(lambda c, at, n, h: (more + c.uniform(0, 0.0005)) * (c.random() < 0.2)))
                self.assertEqual((first["cause"], first["span"]), (cause, "Work"))
                self.assertEqual("sometimes" in first["title"] and "delayed acknowledgements" in first["title"], cause == "timer")

    def test_load(self):
        """Requests share a processor: the more requests run, the longer each takes."""
        chance, records, ends, at = random.Random(4), [], [], 0.0
        for number in range(2000):
            at += chance.expovariate(60)
            ends = [end for end in ends if end > at]
            ends.append(at + 0.012 * (1 + len(ends)) * chance.lognormvariate(0, 0.4))
            records += [(at, "h", "Work.start", f"ID={number}"), (ends[-1], "h", "Work.end", f"ID={number}")]
        first = self.first_of(records)
        self.assertIn(first["cause"], ("load", "pool"))
        self.assertEqual(first["span"], "Work")

    def test_durations_of_zero_are_no_load(self):
        """A proxy logs durations in whole milliseconds. A visit of 0 ms begins and ends at once, and neither waits nor adds to the load."""
        chance, lines, at = random.Random(3), [], 1_767_268_800_000.0
        for number in range(4000):
            at += chance.expovariate(0.06)
            ms = chance.lognormvariate(0.9, 0.6)
            time = datetime.datetime.fromtimestamp(at / 1000, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            lines += [f"time={time} prog=proxy host=edge msg={event} id=r{number} duration_ms={int(ms * part)}\n" for event, part in (("upstream", 0.6), ("request", 1))]
        log = self.scratch / "proxy.logfmt"
        log.write_text("".join(lines))
        self.assertEqual(self.diagnosed(log)["causes"], [])

    def test_constant_time(self):
        """A sleep, or work of constant duration: the log does not show which of them."""
        first = self.first_of([(i * 0.05 + at, "h", event, f"ID={i}") for i in range(500) for event, at in (("Nap.start", 0), ("Nap.end", 0.03))])
        self.assertEqual((first["cause"], first["title"]), ("timer", "100 % of the requests' time: Nap of p always takes 30.0 ms: a timer or fixed work"))

    def test_constant_times_of_two_kinds(self):
        """Most requests take the same time, but the other requests take longer: the difference is the cause."""
        chance, records, at = random.Random(3), [], 0.0
        for number in range(100):
            large = number % 5 == 0
            parsed = at + 0.00108 + chance.uniform(0, 0.00001)
            done = parsed + (0.0301 if large else 0.00308) + chance.uniform(0, 0.00001)
            records += [(at, "h", "Request.Start", f"ID={number} KIND={'large' if large else 'small'}"),
                        (parsed, "h", "Request.Parsed", f"ID={number}"), (done, "h", "Request.Done", f"ID={number}")]
            at = done + 0.00001
        self.assertEqual(self.first_of(records)["cause"], "field")

    def test_constant_time_behind_a_lock(self):
        """Four threads take turns, so each waits for the same time."""
        chance, records, free, ready = random.Random(9), [], 0.0, [(number * 0.0001, number) for number in range(4)]
        for number in range(240):
            at, thread = ready.pop(0)
            held = max(free, at + 0.0006)
            free = held + 0.0021 + chance.uniform(0, 0.000004)
            records += [(at, "h", "Order.start", f"ID={number} TID={thread}"), (at + 0.0006, "h", "Lock.start", f"ID={number} TID={thread}"),
                        (held, "h", "Lock.end", f"ID={number} TID={thread}"), (free, "h", "Order.end", f"ID={number} TID={thread}")]
            ready.append((free, thread))
        self.assertEqual(self.first_of(records)["cause"], "lock")

    def test_beat(self):
        """A poll: all requests that arrived since the last poll continue together."""
        records = []
        for number in range(2000):
            at = number / 70 + 0.004 * (number % 3)
            seen = at - at % 0.25 + 0.25 + 1e-5 * (number % 50)
            records += [(at, "a", "Put", f"ID={number}"), (seen, "a", "Got", f"ID={number}"), (seen + 0.003, "a", "Done", f"ID={number}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("timer", "Put", "Got"))
        self.assertRegex(first["title"], "a timer of 2(50|49) ms")

    def test_delayed_acknowledgements(self):
        """A message waits for up to 40 ms if its sender waits for an acknowledgement; the same times on one host are no message."""
        chance, records = random.Random(3), []
        for i in range(400):
            way = 0.0004 + (0 if chance.random() < 0.3 else 0.0405 if chance.random() < 0.8 else chance.uniform(0.005, 0.04)) + chance.uniform(0, 5e-4)
            records += [(i * 0.05, "a", "Work.start", f"ID={i}"), (i * 0.05 + 0.005, "a", "Work.end", f"ID={i}"),
                        (i * 0.05 + 0.005 + way, "b", "Got.start", f"ID={i}"), (i * 0.05 + 0.015 + way, "b", "Got.end", f"ID={i}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("timer", "Work.end", "Got.start"))
        self.assertIn("delayed acknowledgement of 40.0 ms", first["title"])
        self.assertNotIn("acknowledgement", str(self.diagnosed_of([(at, "a", event, ids) for at, _, event, ids in records])["causes"]))

    def test_retransmissions(self):
        """TCP sends lost segments again after 200 ms. The finding names the host from which they come, or to which they go."""
        for lossy, share in ("a2", 0.5), ("b2", 0.5), ("a2", 0.15):
            with self.subTest(lossy=lossy, share=share):
                chance, records = random.Random(5), []
                for i in range(800):
                    at, sender, receiver = i * 0.05, f"a{chance.randint(1, 3)}", f"b{chance.randint(1, 3)}"
                    way = at + 0.001 * chance.lognormvariate(0, 0.3) + 0.2005 * (lossy in (sender, receiver) and chance.random() < share)
                    records += [(at, sender, "Sent", f"ID={i}"), (way, receiver, "Got.start", f"ID={i}"),
                                (way + 0.02 * chance.lognormvariate(0, 0.3), receiver, "Got.end", f"ID={i}")]
                first = self.first_of(records)
                self.assertEqual((first["cause"], first["from_event"], first["to_event"], first["host"]), ("timeout", "Sent", "Got.start", lossy))
                self.assertRegex(first["title"], "sometimes takes 20[01] ms longer, like a TCP retransmission")
                self.assertEqual(f"Sent of p on {lossy} -> " in first["title"], lossy == "a2", first["title"])

    def shared_work(self, seed, quota=None, period=0.1, work=0.008, rate=60, threads=8):
        """Requests share the processors of three hosts. A control group on b2 may use `quota` seconds of processor time in each period."""
        chance, records, step, number = random.Random(seed), [], 0.0005, 0
        for host in "b1", "b2", "b3":
            limited, left, renewed = quota and host == "b2", quota, chance.uniform(0, period)
            arrivals, at, waiting, running, now = [], 0.0, [], [], 0.0
            while at < 30:
                at += chance.expovariate(rate / 3)
                arrivals.append([at, work * chance.lognormvariate(0, 0.7)])
            while arrivals or waiting or running:
                if limited and now >= renewed:
                    left, renewed = quota, renewed + period
                while arrivals and arrivals[0][0] <= now:
                    waiting.append(arrivals.pop(0))
                while waiting and len(running) < threads:
                    running.append(waiting.pop(0))
                if not limited or left > 0:
                    left = limited and left - step * len(running)
                    for task in running:
                        task[1] -= step
                    for begun, _ in (task for task in running if task[1] <= 0):
                        records += [(begun, "a", "Ask", f"ID={number}"), (begun + 0.0002, host, "Work.start", f"ID={number}"),
                                    (now + chance.uniform(0, step), host, "Work.end", f"ID={number}"), (now + step + 0.0003, "a", "Answer", f"ID={number}")]
                        number += 1
                    running = [task for task in running if task[1] > 0]
                now += step
        return records

    def test_cpu_quota(self):
        """A program that has used its quota stops until the end of the period. The stops begin at different phases."""
        for seed, period, settings in (1, "100 ms", {"quota": 0.02}), (2, "100 ms", {"quota": 0.03}), \
                                      (3, "20.0 ms", {"quota": 0.007, "period": 0.02}), (4, "100 ms", {"quota": 0.05, "work": 0.04, "rate": 15, "threads": 4}):
            with self.subTest(settings=settings):
                first = self.first_of(self.shared_work(seed, **settings))
                self.assertEqual((first["cause"], first["host"]), ("pause", "b2"))
                self.assertIn(f"p on b2 stops until the end of each period of {period}, like a program that has used its CPU quota", first["title"])
        self.assertEqual(self.diagnosed_of(self.shared_work(1))["causes"], [])

    def test_regular_times_without_a_quota(self):
        """Neither regular load nor a poll for which all requests wait is a quota."""
        chance, polls = random.Random(6), []
        for number in range(1500):
            at, host = number / 50 + chance.uniform(0, 0.02), chance.choice(("b1", "b2", "b3"))
            end = (at - at % 0.1 + 0.1 if host == "b2" else at) + 0.004 * chance.lognormvariate(0, 0.5)
            polls += [(at, host, "Work.start", f"ID={number}"), (end, host, "Work.end", f"ID={number}")]
        self.assertEqual(self.first_of(polls)["cause"], "timer")
        for every, burst, servers, sigma in (0.1, 4, 2, 0.3), (0.1, 4, 1, 0.01), (0.25, 10, 2, 0.3), (1.0, 30, 4, 0.3):
            with self.subTest(every=every, servers=servers):
                records, number = [], 0
                for host in "b1", "b2", "b3":
                    free = [0.0] * servers
                    for at in sorted(n * every + chance.uniform(0, 0.0005) for n in range(round(30 / every)) for _ in range(burst)):
                        free.sort()
                        free[0] = max(free[0], at) + 0.01 * chance.lognormvariate(0, sigma)
                        records += [(at, host, "Work.start", f"ID={number}"), (free[0], host, "Work.end", f"ID={number}")]
                        number += 1
                self.assertNotIn("quota", str(self.diagnosed_of(records)["causes"]))

    def test_quota_that_is_not_always_used(self):
        """The work is long, and uses the quota only in some of the periods. In the others, it ends at any time."""
        for seed, settings in (1, {"quota": 0.05, "work": 0.015, "rate": 30}), (2, {"quota": 0.05, "work": 0.015, "rate": 30}), \
                              (2, {"quota": 0.06, "work": 0.03, "rate": 24}):
            with self.subTest(settings=settings):
                first = self.first_of(self.shared_work(seed, **settings))
                self.assertEqual((first["cause"], first["host"]), ("pause", "b2"))
                self.assertIn("p on b2 stops until the end of each period of 100 ms", first["title"])

    def test_program_that_stops_once(self):
        """One host stops once, for a long time. The requests that it received then wait, and are accepted afterwards, two at a time."""
        for length in 6.0, 0.0:
            with self.subTest(length=length):
                chance, at, records, free = random.Random(3), 0.0, [], {host: [0.0, 0.0] for host in ("b1", "b2", "b3")}
                for number in range(2400):
                    at += chance.expovariate(60)
                    host, sent = chance.choice(("b1", "b2", "b3")), at + chance.uniform(0.0002, 0.0004)
                    first = free[host].index(min(free[host]))
                    begin = max(free[host][first], sent)
                    if host == "b2" and 20 <= begin < 20 + length:
                        begin = 20 + length + chance.uniform(0, 0.001)
                    free[host][first] = begin + 0.01 * chance.lognormvariate(0, 0.4)
                    records += [(at, "a", "Ask", f"ID={number}"), (begin, host, "Work.start", f"ID={number}"), (free[host][first], host, "Work.end", f"ID={number}"),
                                (free[host][first] + 0.0003, "a", "Answer", f"ID={number}")]
                causes = self.diagnosed_of(records)["causes"]
                self.assertEqual([(c["cause"], c["host"]) for c in causes[:1]], [("pause", "b2")] if length else [])
                if length:
                    self.assertRegex(causes[0]["title"], r"p on b2 stopped once, for (5\.9\d|6\.0\d) s$")

    def test_pauses_of_an_idle_program(self):
        """A host is seldom busy, and stops now and then. Messages then wait, and are accepted one after another."""
        chance, at, records, free = random.Random(5), 0.0, [], collections.Counter()
        pauses = [4.0 * n + chance.uniform(0, 2) for n in range(1, 20)]
        for number in range(2400):
            at += chance.expovariate(30)
            host, sent = chance.choice(("b1", "b2", "b3")), at + chance.uniform(0.0002, 0.0004)
            begin = max(free[host], sent)
            begin = next((pause + 0.8 for pause in pauses if host == "b2" and pause <= begin < pause + 0.8), begin)
            free[host] = begin + 0.004 * chance.lognormvariate(0, 0.4)
            records += [(at, "a", "Ask", f"ID={number}"), (begin, host, "Work.start", f"ID={number}"), (free[host], host, "Work.end", f"ID={number}"),
                        (free[host] + 0.0003, "a", "Answer", f"ID={number}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["host"]), ("pause", "b2"))

    def family_of(self, seed, count, calls):
        """Requests whose spans name their parents. `calls` returns, for a request, its begin and a random generator, tuples (event, begin, end, host, fields of the end)."""
        chance, at, records, spans = random.Random(seed), 0.0, [], count
        for n in range(count):
            at += chance.expovariate(20)
            made = calls(n, at, chance)
            end = max(call[2] for call in made) + 0.001
            records += [(at, "a", "Job.start", f"TRACE.ID={n} SPAN.ID={n + 1}"), (end, "a", "Job.end", f"TRACE.ID={n} SPAN.ID={n + 1} STATUS=0")]
            for event, begin, done, host, more in made:
                spans += 1
                ids = f"TRACE.ID={n} SPAN.ID={spans + 1} PARENT.ID={n + 1}"
                records += [(begin, host, f"{event}.start", ids), (done, host, f"{event}.end", f"{ids} {more}")]
        return records

    def test_attempts_beside_other_calls(self):
        """A request reads from four servers at the same time. A read that fails is repeated after 200 ms; the other reads have then ended."""
        def calls(n, at, chance):
            made = []
            for k in range(4):
                begin = at + 0.0005
                if k == 1 and n % 20 == 0:
                    made.append(("Read", begin, begin + 0.003, f"s{k}", "STATUS=-1"))
                    begin += 0.2
                made.append(("Read", begin, begin + 0.02 * chance.lognormvariate(0, 0.3), f"s{k}", "STATUS=0"))
            return made
        first = self.diagnosed_of(self.family_of(4, 1500, calls), options=())["causes"][0]
        self.assertEqual((first["cause"], first["span"]), ("timeout", "Read"))
        self.assertIn("fails, and its callers try again", first["title"])

    def test_lock_that_a_caller_takes_before_a_call(self):
        """Before one of its three calls, a request waits for a lock, which it holds until this call has ended."""
        for is_locked in True, False:
            with self.subTest(locked=is_locked):
                free = [0.0]

                def calls(n, at, chance):
                    first = at + 0.015 * chance.lognormvariate(0, 0.4)
                    begin = max(first, free[0]) if is_locked else first
                    end = begin + 0.03 * chance.lognormvariate(0, 0.3)
                    free[0] = end
                    return [("Load", at, first, "a", ""), ("Resize", begin, end, "a", ""), ("Store", end, end + 0.01 * chance.lognormvariate(0, 0.4), "a", "")]
                causes = self.diagnosed_of(self.family_of(6, 1500, calls), options=())["causes"]
                self.assertEqual([c["cause"] for c in causes[:1]], ["lock"] if is_locked else [])
                if is_locked:
                    self.assertIn("Resize of p on a lets one request through at a time", causes[0]["title"])
                    self.assertIn("the wait is in Job of p, directly before this call", causes[0]["evidence"])
                    waits = next(e for e in causes[0]["evidence"] if e.startswith("a visit waits "))
                    self.assertRegex(waits, r" on average, before a call of (29|3\d)\.\d ms$")  # the call takes 30 ms * exp(0.3² / 2)

    def test_connections_of_each_caller(self):
        """Each of three hosts has two connections to a server. A connection is busy until the answer arrives. The records name no spans."""
        for size in 2, 50:
            with self.subTest(size=size):
                chance, at, records = random.Random(8), 0.0, []
                free = {host: [0.0] * size for host in ("a1", "a2", "a3")}
                for number in range(1500):
                    at += chance.expovariate(9)
                    host = chance.choice(("a1", "a2", "a3"))
                    first = free[host].index(min(free[host]))
                    sent = max(at, free[host][first])
                    begin = sent + chance.uniform(0.0002, 0.0004)
                    end = begin + 0.3 * chance.lognormvariate(0, 0.4)
                    free[host][first] = answer = end + chance.uniform(0.0002, 0.0004)
                    records += [(at, host, "PROG=app Pay.Call", number), (begin, "b", "PROG=pay Pay.Received", number), (end, "b", "PROG=pay Pay.Charged", number),
                                (answer, host, "PROG=app Pay.Reply", number)]
                path = self.scratch / "connections.log"
                simulate.write_lines(path, ((time, f"HOST={host} {what.split()[0]} LVL=Usage NL.EVNT={what.split()[1]} ID={n}") for time, host, what, n in sorted(records)))
                causes = self.diagnosed("--id", "ID", path)["causes"]
                self.assertEqual([c["cause"] for c in causes[:1]], ["pool"] if size == 2 else [])
                if size == 2:
                    self.assertIn("Pay.Call of app -> Pay.Received of pay lets 2 requests through at a time", causes[0]["title"])

    def test_batches_of_several_hosts(self):
        """Requests of three hosts wait until a batch of four is full. The answers arrive at slightly different times."""
        chance, at, records, batch = random.Random(7), 0.0, [], []
        for number in range(1600):
            at += chance.expovariate(60)
            batch.append((at, chance.choice(("b1", "b2", "b3")), number))
            if len(batch) == 4:
                for begin, host, one in batch:
                    records += [(begin, host, "Commit.start", f"ID={one}"), (at + 0.005 + chance.uniform(0, 0.0002), host, "Commit.end", f"ID={one}")]
                batch = []
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["span"]), ("batch", "Commit"))

    def test_batches_of_messages(self):
        """Each record describes a whole step. A server of two starts when four samples from several desks wait for it. Its steps end at different times."""
        chance, at, lines, batches = random.Random(7), 0.0, [], {"c1": [], "c2": []}
        for number in range(1600):
            at += chance.expovariate(2)
            server, desk, took = chance.choice(("c1", "c2")), chance.choice(("d1", "d2", "d3")), 0.05 * chance.lognormvariate(0, 0.3)
            lines.append((at + took, f"HOST={desk} PROG=lab LVL=Usage NL.EVNT=Accept ID={number} DURATION={took:.6f}"))
            batches[server].append(number)
            if len(batches[server]) == 4:
                for one in batches[server]:
                    took = 1.5 * chance.lognormvariate(0, 0.3)
                    lines.append((at + 0.2 + took, f"HOST={server} PROG=lab LVL=Usage NL.EVNT=Spin ID={one} DURATION={took:.6f}"))
                batches[server] = []
        path = self.scratch / "batches.log"
        simulate.write_lines(path, sorted(lines))
        first = self.diagnosed("--id", "ID", path)["causes"][0]
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("batch", "Accept", "Spin"))

    def test_programs_that_stop_together(self):
        """Four programs put jobs into one service and take them out. If it stops for 200 ms every 1.5 s, all of them stop when their work is done."""
        for stops in True, False:
            with self.subTest(stops=stops):
                chance, at, records, free = random.Random(11), 0.0, [], {}
                jobs = []
                for number in range(2000):
                    at += chance.expovariate(30)
                    if stops and at % 1.5 < 0.2:
                        at += 0.2 - at % 1.5
                    jobs.append([at, number])
                for step, (program, took) in enumerate((("decode", 0.03), ("resize", 0.035), ("store", 0.03))):
                    for job in sorted(jobs):
                        worker = min((f"{program[0]}{n}" for n in range(3)), key=lambda w: free.get(w, 0))
                        if step == 0:
                            records.append((job[0], f"HOST=front PROG=in LVL=Usage NL.EVNT=Put ID={job[1]}"))
                        begin = max(job[0] + 0.0003, free.get(worker, 0))
                        if stops and begin % 1.5 < 0.2:
                            begin += 0.2 - begin % 1.5 + 0.0005 * chance.random()
                        end = free[worker] = begin + took * chance.lognormvariate(0, 0.3)
                        for time, event in (begin, "start"), (end, "end"):
                            records.append((time, f"HOST={worker} PROG={program} LVL=Usage NL.EVNT={program}.{event} ID={job[1]}"))
                        job[0] = end + 0.0002
                path = self.scratch / "joint.log"
                simulate.write_lines(path, sorted(records))
                causes = [c for c in self.diagnosed("--id", "ID", path)["causes"] if "instead_of" not in c]
                if stops:
                    self.assertEqual(causes[0]["cause"], "pause")
                    self.assertIn("several programs stop", causes[0]["title"])
                else:
                    self.assertEqual([c for c in causes if c["cause"] == "pause"], [])

    def queued_jobs(self, begin_of, seed, count=1500, rate=60.0):
        """Returns the records of jobs for three workers, each of which takes jobs from its own queue and does one at a time. `begin_of` returns the
        times at which a worker begins jobs, from their arrivals and their durations."""
        chance, at, records, jobs = random.Random(seed), 0.0, [], {f"w{n}": [] for n in range(3)}
        for number in range(count):
            at += chance.expovariate(rate)
            jobs[chance.choice(list(jobs))].append((at, number, 0.01 * chance.lognormvariate(0, 0.3)))
        for worker, own in jobs.items():
            for (at, number, took), begin in zip(own, begin_of([at for at, _, _ in own], [took for _, _, took in own])):
                records += [(at, "a", "Put", f"ID={number}"), (begin, worker, "Work.start", f"ID={number}"), (begin + took, worker, "Work.end", f"ID={number}")]
        return records

    def test_idle_workers(self):
        """Workers wait although there are jobs: until two jobs are there, or until the end of a period. Workers that begin at once wait for nothing."""

        def at_once(arrivals, durations, first=lambda at: at + 0.0002, size=1):
            begins, free = [], 0.0
            for i in range(0, len(arrivals) - len(arrivals) % size, size):
                last = arrivals[i + size - 1]
                now = max(last + 0.0002, free) if free > last else first(last)
                for k in range(i, i + size):
                    begins.append(now)
                    now += durations[k] + 0.0001
                free = now
            return begins

        def polling(arrivals, durations):
            return at_once(arrivals, durations, lambda at: (at // 0.05 + 1) * 0.05 + 0.0003)

        def batches(arrivals, durations):
            return at_once(arrivals, durations, size=2)

        for seed in support.representative((1, 2, 3), (1,)):
            for begin_of, expected in (polling, "timer"), (batches, "batch"):
                with self.subTest(expected, seed=seed):
                    first = self.first_of(self.queued_jobs(begin_of, seed))
                    self.assertEqual((first["cause"], first["from_event"], first["to_event"]), (expected, "Put", "Work.start"))
                    if expected == "timer":
                        self.assertIn("timer of 50.0 ms", first["title"])
                    else:
                        self.assertRegex(first["evidence"][0], r"^(9\d|100) % of the waits for an idle server end when another visit arrives, \d\.\d visits at a time$")
            with self.subTest("at once", seed=seed):
                causes = self.diagnosed_of(self.queued_jobs(at_once, seed, rate=90.0))["causes"]
                self.assertFalse({"timer", "batch"} & {c["cause"] for c in causes}, causes)

    def test_parts_beside_the_path(self):
        """A request waits for three servers at the same time. One of them begins when two requests wait, and the request that completes the batch usually
        waits for another server."""
        chance, at, records, waiting = random.Random(5), 0.0, [], {"n1": [], "n2": []}
        ends = {}
        for number in range(1500):
            at += chance.expovariate(50)
            records.append((at, "a", "Ask", f"ID={number}"))
            ends[number] = []
            for server in chance.choice(("n1", "n2")), "m1", "m2":
                arrived = at + chance.uniform(0.0005, 0.0015)
                records.append((arrived, server, f"{server[0]}.Take", f"ID={number}"))
                waiting.setdefault(server, []).append((arrived, number))
                if server[0] == "n" and len(waiting[server]) < 2:
                    continue
                for n, (_, one) in enumerate(waiting[server]):
                    begin = arrived + 0.0001 * (n + 1)
                    done = begin + 0.012 * chance.lognormvariate(0, 0.3)
                    records += [(begin, server, f"{server[0]}.Begin", f"ID={one}"), (done, server, f"{server[0]}.Done", f"ID={one}")]
                    ends[one].append(done)
                waiting[server] = []
        records += [(max(done) + 0.0005, "a", "Answer", f"ID={number}") for number, done in ends.items() if len(done) == 3]
        first = self.first_of([r for r in records if len(ends[int(r[3][3:])]) == 3])
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("batch", "n.Take", "n.Begin"))

    def test_second_attempts(self):
        """A server does not answer some requests, and the caller asks another server after 300 ms, without any record of the timeout. If nearly all
        requests log the same event several times, the event shows their progress."""
        for part, expected in (0.06, ("timeout", "Take", "Take")), (0.9, None):
            chance, at, records = random.Random(2), 0.0, []
            for number in range(1500):
                at += chance.expovariate(10)
                now = at + 0.001
                records += [(at, "a", "Ask", f"ID={number}"), (now, "b1", "Take", f"ID={number}")]
                for _ in range(1 if expected else 3):
                    if chance.random() < part:
                        now += 0.3 * chance.uniform(0.998, 1.002)
                        records.append((now, "b2", "Take", f"ID={number}"))
                now += 0.02 * chance.lognormvariate(0, 0.3)
                records += [(now, "b2", "Done", f"ID={number}"), (now + 0.001, "a", "Answer", f"ID={number}")]
            causes = [c for c in self.diagnosed_of(records)["causes"] if not c["ordinary"]]
            found = [(c["cause"], c["from_event"], c["to_event"]) for c in causes if c["cause"] == "timeout"]
            self.assertEqual(found[:1], [expected] if expected else [])

    def test_status_is_a_consequence(self):
        """Lookups end after a timeout and are repeated. The status of these lookups is a result of the timeout, not its cause."""
        chance, at, records = random.Random(8), 0.0, []
        for number in range(2000):
            at += chance.expovariate(20)
            now = at
            for _ in range(2):
                lost = chance.random() < 0.05
                end = now + (3 if lost else 0.2 * chance.lognormvariate(0, 0.5))
                records += [(now, "a", "Lookup.start", f"ID={number}"), (end, "a", "Lookup.end", f"ID={number} STATUS={'timeout' if lost else 'ok'}")]
                now = end + 0.001
                if not lost:
                    break
            records += [(now, "a", "Send.start", f"ID={number}"), (now + 0.5 * chance.lognormvariate(0, 0.3), "a", "Send.end", f"ID={number}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["span"]), ("timeout", "Lookup"))

    def test_minimum_depends_on_the_cause(self):
        """A cause that takes 6 % of the time is a finding if it does not depend on the load. Short queues and larger work are not."""
        shares = {"field": self.diagnosed_of(self.requests(lambda c, at, n, h: 0.016 * (n % 17 == 3) * c.uniform(0.8, 1.2), fields=lambda n: f"KIND={'abc'[n % 17 == 3]}")),
                  "size": self.diagnosed_of(self.requests(lambda c, at, n, h: 0.0025 * (n * 7919 % 31) / 31, fields=lambda n: f"SIZE={1 + n * 7919 % 31}"))}
        first = shares["field"]["causes"][0]
        self.assertEqual((first["cause"], first["field"]), ("field", "KIND"))
        self.assertTrue(0.05 <= first["share"] < 0.1, first)
        self.assertEqual([c for c in shares["size"]["causes"] if not c["ordinary"]], [])

    def test_explanations_are_listed_once(self):
        path, _ = self.run_of("lock", 1)
        lines = self.run_program(self.nldiag, "--explain", path).stdout.splitlines()
        tried = lines[next(i for i, line in enumerate(lines) if line.startswith("nldiag tried")):]
        self.assertGreater(len(tried), 2)
        self.assertEqual(len(tried), len(set(tried)))

    def test_slow_disk_of_a_slow_host(self):
        """Reads wait for the disk of their host. On b2, either the disk is slow or the program."""
        for disk_ms in 40, 8:
            with self.subTest(disk=disk_ms):
                records = self.requests(lambda c, at, n, h: 0.04 * c.lognormvariate(0, 0.3) * (h == "b2"), count=1500, rate=30)
                records, noise = [(*record[:3], f"PROG=p {record[3]}") for record in records], random.Random(5)
                for step in range(50):
                    for host, disk in ("b1", "sda"), ("b2", "sda"), ("b3", "sda"), ("b2", "sdb"):
                        ms = 3 if disk == "sdb" else (disk_ms if host == "b2" else 8) * noise.uniform(0.9, 1.1)
                        reads = 200 if disk == "sdb" else noise.randrange(8, 14)
                        records.append((step, host, "DiskDevice", f"PROG=nlsensor DISK.NAME={disk} DISK.READS={reads} DISK.READ.MS={ms:.1f} DISK.WRITES=0 DISK.WRITE.MS=0 "
                                                                  f"DISK.BUSY={min(99, reads * ms / 10):.0f}"))
                path = self.scratch / "disk.log"
                simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {rest}") for at, host, event, rest in sorted(records)))
                first = self.diagnosed(path)["causes"][0]
                self.assertEqual((first["cause"], first["host"]), ("disk" if disk_ms > 8 else "peer", "b2"))
                if disk_ms > 8:
                    self.assertIn("a slow disk on b2 (Work of p)", first["title"])

    def test_processors_that_are_hardly_busy(self):
        """A program is slow at the beginning, and therefore uses more processor time. The processors are too idle to be the reason."""
        records = self.requests(lambda c, at, n, h: 0.05 * c.lognormvariate(0, 0.3) * (at < 8), count=3000, rate=60)
        records, noise = [(*record[:3], f"PROG=p {record[3]}") for record in records], random.Random(5)
        for step in range(100):
            for host in "b1", "b2", "b3":
                busy = (25 if 0.5 * step < 8 else 6) + noise.uniform(-3, 3)
                records.append((0.5 * step, host, "CpuLoad", f"PROG=nlsensor CPU.BUSY={busy:.1f} CPU.IDLE={100 - busy:.1f}"))
        path = self.scratch / "cold.log"
        simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {rest}") for at, host, event, rest in sorted(records)))
        self.assertIn(self.diagnosed(path)["causes"][0]["cause"], ("cold", "changed"))

    def test_value_that_is_slow_for_a_time(self):
        """Requests with one value are slow in a part of the log. Most visits of this time, and most with this value, are as fast as usual."""
        first = self.first_of(self.requests(lambda c, at, n, h: 0.1 * c.lognormvariate(0, 0.2) * (n % 2 == 1 and 8 < at < 18), count=3000,
                                            fields=lambda n: f"KIND={('browse', 'search')[n % 2]}"))
        self.assertEqual(first["cause"], "field")
        self.assertIn("KIND=search", first["title"])

    # ---- one cause at several places ----

    def test_host_that_slows_several_places(self):
        """A host slows three places a little. In two of them, a field explains more of the times than the host does."""
        chance, records, at = random.Random(4), [], 0.0
        for i in range(3000):
            at += chance.expovariate(20)
            now, host, kind, shape = at, f"b{chance.randint(1, 5)}", chance.randint(1, 4), chance.randint(1, 4)
            for span, more in ("Parse", 0.012 * (kind == 1)), ("Find", 0.012 * (shape == 1)), ("Store", 0):
                begin, now = now, now + 0.01 * chance.lognormvariate(0, 0.3) + more + 0.008 * (host == "b3")
                records += [(begin, host, f"{span}.start", f"ID={i} KIND=k{kind} SHAPE=s{shape}"), (now, host, f"{span}.end", f"ID={i}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["host"]), ("peer", "b3"))
        self.assertGreater(first["share"], 0.1)

    def test_delayed_acknowledgements_before_several_steps(self):
        """The answers of one program wait for acknowledgements. Different steps follow, and the waits before each take little time."""
        chance, records = random.Random(6), []
        for i in range(1200):
            at = i * 0.1
            got = at + 0.01 * chance.lognormvariate(0, 0.3)
            way = got + 0.0004 + chance.uniform(0, 0.0003) + 0.04 * (chance.random() < 0.12)
            records += [(at, "b", "Get.start", f"ID={i}"), (got, "b", "Get.end", f"ID={i}"), (way, "a", f"{('Sort', 'Draw')[i % 2]}.start", f"ID={i}"),
                        (way + 0.02 * chance.lognormvariate(0, 0.3), "a", f"{('Sort', 'Draw')[i % 2]}.end", f"ID={i}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["from_event"]), ("timer", "Get.end"))
        self.assertGreater(first["share"], 0.1)

    def processes(self, end, names="HOST=h PROG=worker-{}"):
        """Diagnoses requests with two spans in one of four processes. `end` returns the time of a span and more fields of its end."""
        chance, lines, at = random.Random(7), [], 0.0
        for i in range(4000):
            at += chance.expovariate(10)
            now, process = at, chance.randint(1, 4)
            for span in "Read", "Write":
                begin = now
                taken, fields = end(chance, process, span)
                now += taken
                name = names.format(process)
                lines += [(begin, f"{name} LVL=Usage NL.EVNT={span}.start ID={i}"), (now, f"{name} LVL=Usage NL.EVNT={span}.end ID={i}{fields}")]
        path = self.scratch / "processes.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        return self.diagnosed("--id", "ID", path)["causes"]

    def test_process_with_few_very_slow_visits(self):
        """A few visits to each step take very long in one process. The steps together take enough time for a finding."""
        causes = self.processes(lambda chance, process, span: (0.01 * chance.lognormvariate(0, 0.3) + (process == 3 and chance.random() < 0.035)
                                                               * 0.2 * chance.lognormvariate(0, 0.5), ""))
        self.assertEqual([(c["cause"], c.get("process")) for c in causes if "instead_of" not in c], [("peer", "worker-3")])
        self.assertIn("is sometimes much slower than usual, and more often than in other processes", causes[0]["title"])

    def test_failures_of_one_process(self):
        causes = self.processes(lambda chance, process, span: (0.01 * chance.lognormvariate(0, 0.3), " STATUS=-1" * (span == "Write" and process == 2 and chance.random() < 0.06)))
        self.assertEqual([(c["cause"], c.get("process"), c["span"]) for c in causes], [("failures", "worker-2", "Write")])

    def test_quota_of_a_process(self):
        """The records name no hosts, and each process has its own quota."""
        lines = [(at, f"PROG={'front' if host == 'a' else f'work-{host[1]}'} LVL=Usage NL.EVNT={event} {fields}") for at, host, event, fields in self.shared_work(1, quota=0.02)]
        simulate.write_lines(self.scratch / "quota.log", sorted(lines, key=lambda line: line[0]))
        first = self.diagnosed("--id", "ID", self.scratch / "quota.log")["causes"][0]
        self.assertEqual((first["cause"], first.get("process")), ("pause", "work-2"))
        self.assertIn("work-2 stops until the end of each period of 100 ms", first["title"])

    def test_value_that_becomes_even_slower(self):
        """Misses of a cache always take longer. From 15 s, they take much longer."""
        missed = random.Random(8)
        misses = [missed.random() < 0.2 for _ in range(3000)]
        first = self.first_of(self.requests(lambda c, at, n, h: misses[n] * (0.03 if at < 15 else 0.12) * c.lognormvariate(0, 0.3),
                                            fields=lambda n: f"CACHE={'MISS' if misses[n] else 'HIT'}"))
        self.assertEqual((first["cause"], first["field"], first["ordinary"]), ("field", "CACHE", False))
        self.assertRegex(first["title"], r"slow for CACHE=MISS from 1[4-6]\.?\d* s to")

    def test_host_as_alternative_to_a_timeout(self):
        """Some visits on one host take longer by a constant time: they may time out, or the host may be slow."""
        causes = self.diagnosed_of(self.requests(lambda c, at, n, h: 0.084 * (h == "b2" and c.random() < 0.1)))["causes"]
        self.assertEqual((causes[0]["cause"], causes[0]["host"]), ("timeout", "b2"))
        self.assertIn(("peer", "b2"), [(c["cause"], c["host"]) for c in causes if c.get("instead_of") == 1])

    def test_place_that_few_requests_visit(self):
        """Only the requests of one page execute a slow statement. This is ordinary work, but it is named."""
        chance, records = random.Random(9), []
        for i in range(900):
            at, now, page = i * 0.3, i * 0.3 + 0.002 * chance.lognormvariate(0, 0.3), ("report", "list", "item", "home", "help")[i % 5]
            records.append((at, "a", "Page.start", f"ID={i} PAGE={page}"))
            if page == "report":
                records += [(now, "db", "Eval.start", f"ID={i}"), (now + 0.05 * chance.lognormvariate(0, 0.3), "db", "Eval.end", f"ID={i}")]
                now = records[-1][0]
            records.append((now + 0.002 * chance.lognormvariate(0, 0.3), "a", "Page.end", f"ID={i}"))
        found = self.diagnosed_of(records)
        self.assertEqual([(c["cause"], c["field"], c["ordinary"], c["span"]) for c in found["causes"]], [("field", "PAGE", True, "Eval")])
        self.assertRegex(found["causes"][0]["title"], "only requests with PAGE=report visit Eval of p$")

    def test_timer_in_a_part_of_the_visits(self):
        """Visits without a call wait for the next multiple of 20 ms. The others call a server, and do not wait."""
        chance, records, at = random.Random(6), [], 0.0
        for i in range(1500):
            at += chance.expovariate(25)
            now = at + 0.002 * chance.lognormvariate(0, 0.3)
            records.append((at, "a", "Get.start", f"TRACE.ID={i} SPAN.ID=1"))
            if chance.random() < 0.3:
                records += [(now, "db", "Read.start", f"TRACE.ID={i} SPAN.ID=2 PARENT.ID=1"), (now + 0.01 * chance.lognormvariate(0, 0.4), "db", "Read.end", f"TRACE.ID={i} SPAN.ID=2")]
                now = records[-1][0] + 0.002 * chance.lognormvariate(0, 0.4)
            else:
                now += 0.02 - now % 0.02 + chance.uniform(0, 0.0001)
            records.append((now, "a", "Get.end", f"TRACE.ID={i} SPAN.ID=1"))
        first = self.diagnosed_of(records, options=())["causes"][0]
        self.assertEqual((first["cause"], first["span"]), ("timer", "Get"))
        self.assertRegex(first["title"], "a timer of 20.0 ms")

    def test_confidence_in_queues(self):
        """The more visits show a queue, the surer is the finding."""
        sure = []
        for count in 120, 300, 3000:
            chance, records, at, free = random.Random(2), [], 0.0, 0.0
            for number in range(count):
                at += chance.expovariate(70)
                free = max(free, at) + 0.01 * chance.lognormvariate(0, 0.5)
                records += [(at, "h", "Work.start", f"ID={number}"), (free, "h", "Work.end", f"ID={number}")]
            first = self.first_of(records)
            self.assertEqual(first["cause"], "lock")
            sure.append(first["sure"])
        self.assertEqual(sure, sorted(set(sure)))
        self.assertLess(sure[0] + 0.1, sure[2])

    def test_rivals(self):
        """Another explanation of the same place is an alternative that claims nothing."""
        chance, records = random.Random(5), []
        for i in range(600):
            slow = chance.random() < 0.3
            same = slow if chance.random() < 0.95 else not slow
            records += [(i * 0.1, "h", "Work.start", f"ID={i} KIND={'ab'[slow]} SHAPE={'xy'[same]}"),
                        (i * 0.1 + chance.uniform(0.01, 0.012) + 0.03 * slow, "h", "Work.end", f"ID={i}")]
        found = self.diagnosed_of(records)
        fields = [(c.get("field"), c.get("instead_of"), c["share"] > 0) for c in found["causes"]]
        self.assertEqual(fields[:2], [("KIND", None, True), ("SHAPE", 1, False)])

    def test_other_names_of_a_host(self):
        """A field with one value for each host is no alternative to the host, and does not make the finding less sure."""
        sure = []
        for field in False, True:
            chance, records = random.Random(5), []
            for i in range(600):
                slow, name = i % 4 == 1, f" SERVER=server{i % 4}" if field else ""
                records += [(i * 0.1, f"h{i % 4}", "Work.start", f"ID={i}{name}"),
                            (i * 0.1 + chance.uniform(0.01, 0.012) + 0.03 * slow, f"h{i % 4}", "Work.end", f"ID={i}")]
            found = self.diagnosed_of(records)
            self.assertEqual([(c["cause"], c["host"]) for c in found["causes"]], [("peer", "h1")])
            sure.append(found["causes"][0]["sure"])
        self.assertEqual(*sure)

    def test_queue_before_a_span(self):
        """Requests wait before a span whose own times are short: the queue is the cause, and not the span."""
        for queue in "", "Queued":
            chance, records, at, free = random.Random(8), [], 0.0, 0.0
            for i in range(800):
                at += chance.expovariate(80)
                begin = max(at + 0.0005, free)
                free = begin + chance.uniform(0.009, 0.0115)
                records += [(at, "h", "Handle.start", f"ID={i}"), (begin, "h", "Work.start", f"ID={i}"),
                            (free, "h", "Work.end", f"ID={i}"), (free + 0.0002, "h", "Handle.end", f"ID={i}")]
                if queue:
                    records.append((at + 0.0003, "h", queue, f"ID={i}"))
            found = self.diagnosed_of(sorted(records))
            first = found["causes"][0]
            self.assertEqual((first["cause"], first.get("span"), first.get("from_event")), ("lock", "Handle", None), queue)
            self.assertGreater(first["share"], 0.3)
            self.assertFalse([c for c in found["causes"] if c.get("span") == "Work"], queue)

    def test_pauses_on_several_hosts(self):
        """A program that stops on all of its hosts at once has one cause."""
        path, truth = self.run_of("pause-random", 50004)
        found = self.diagnosed(path)
        first = found["causes"][0]
        self.assertEqual((first["cause"], first["host"], first["program"]), ("pause", None, truth["program"]))
        self.assertRegex(first["title"], rf"^\d+ % of the requests' time: {truth['program']} stops now and then on 3 hosts$")

    def test_sensor_before_long_visits(self):
        """A sensor is compared with visits when they begin, although they last longer than the episodes."""
        path, truth = self.run_of("resource", 50001)
        first = self.diagnosed(path)["causes"][0]
        self.assertEqual((first["cause"], first["span"]), ("resource", truth["span"]))

    def test_low_activity_is_no_cause(self):
        """Processors are idle because programs wait. Too little memory can slow a program down."""
        episodes = [(1.3, 2.9), (7.1, 8.2), (12.4, 14.6), (21.5, 22.3), (25.7, 27.2)]
        slow = lambda at: any(begin <= at < end for begin, end in episodes)
        records = self.requests(lambda c, at, n, h: 0.03 * slow(at))
        chance = random.Random(8)
        for field, causes in ("CPU.BUSY", False), ("MEM.FREE", True):
            sensors = [(0.1 * i, host, "Sensor", f"{field}={chance.uniform(5, 10) if slow(0.1 * i) else chance.uniform(60, 90):.1f}")
                       for i in range(300) for host in ("b1", "b2", "b3")]
            found = self.diagnosed_of(records + sensors)["causes"]
            self.assertEqual("resource" in [cause["cause"] for cause in found], causes, found)

    def queues(self, service, rate=100.0, count=3000, seed=1):
        """Writes requests to three hosts, each of which serves one request at a time, in order. service returns a duration."""
        chance, at, free, records = random.Random(seed), 0.0, {}, []
        for number in range(count):
            at += chance.expovariate(rate)
            host = chance.choice(("b1", "b2", "b3"))
            free[host] = max(free.get(host, 0.0), at) + service(chance, at, host) * chance.lognormvariate(0, 0.3)
            records += [(at, host, "Work.start", f"ID={number}"), (free[host], host, "Work.end", f"ID={number}")]
        return records

    def test_queue_because_of_slow_work(self):
        """A queue is the cause only if its requests would also wait if all hosts were equally fast."""
        for seed in support.representative((1, 2, 3), (1,)):
            with self.subTest(seed=seed):
                slow = self.first_of(self.queues(lambda c, at, h: 0.026 if h == "b2" else 0.008, seed=seed))
                self.assertEqual((slow["cause"], slow["host"]), ("peer", "b2"))
                self.assertIn("slower than its peers", slow["title"])
                self.assertIn("at most 1 is served at a time", str(slow["evidence"]))
                many = self.first_of(self.queues(lambda c, at, h: 0.026 if h == "b2" else 0.008, count=15000, seed=seed))
                self.assertEqual((many["cause"], many["host"]), ("peer", "b2"))
                equal = self.first_of(self.queues(lambda c, at, h: 0.025, seed=seed))
                self.assertEqual((equal["cause"], equal["span"]), ("lock", "Work"))

    def test_lock_or_pool(self):
        """If a lock and a pool predict the visits nearly equally well, nldiag names one of them first, and the other second."""
        found = self.diagnosed(self.run_of("head-of-line", 50001)[0])
        causes = [(c["cause"], c.get("instead_of")) for c in found["causes"][:2]]
        self.assertEqual(causes, [("lock", None), ("pool", 1)])
        text = self.run_program(self.nldiag, self.scratch / "head-of-line-50001.log").stdout
        self.assertRegex(text, r"(?m)^   alternative causes: pool \([\d.]+ %\)[,;]")
        self.assertNotIn("instead of", text)

    def test_lock_of_few_requests_on_each_host(self):
        """Each of four hosts serves one request at a time. One host has too few requests to show this."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                chance, records, free = random.Random(seed), [], collections.Counter()
                at = 0.0
                for number in range(220):
                    at += chance.expovariate(260)
                    host = f"b{chance.randint(1, 4)}"
                    free[host] = max(free[host], at) + 0.01 * chance.lognormvariate(0, 0.3)
                    records += [(at, host, "Work.start", f"ID={number}"), (free[host], host, "Work.end", f"ID={number}")]
                first = self.first_of(records)
                self.assertEqual((first["cause"], first["host"], first["span"]), ("lock", None, "Work"))

    def test_short_logs(self):
        """nldiag needs only 60 to 90 requests if the effect is large."""
        slow = set(random.Random(2).sample(range(62), 6))
        kind = lambda n: "report" if n in slow else ("page", "list", "item")[n % 3]
        size = lambda n: random.Random(n).uniform(1, 100)
        for cause, settings in {
                "field": {"cost": lambda c, at, n, h: 0.1 * (n in slow), "fields": lambda n: f"TYPE={kind(n)}", "count": 62},
                "size": {"cost": lambda c, at, n, h: 0.001 * size(n), "fields": lambda n: f"SIZE={size(n):.2f}", "count": 66},
                "timeout": {"cost": lambda c, at, n, h: (0.13 + c.uniform(0, 0.001)) * (n % 62 in slow), "count": 66},
                "cold": {"cost": lambda c, at, n, h: 0.04 * (n < 13), "count": 64},
                "changed": {"cost": lambda c, at, n, h: 0.03 * (n > 35), "count": 64}}.items():
            with self.subTest(cause):
                first = self.first_of(self.requests(**settings))
                self.assertEqual((first["cause"], first["span"]), (cause, "Work"))

    def test_timer_on_several_hosts(self):
        """The visits of each host are too few to show the period of a poll."""
        chance, records, at = random.Random(3), [], 0.0
        for number in range(66):
            at += chance.expovariate(20)
            seen = at - at % 0.08 + 0.08 + chance.uniform(0, 2e-4)
            records += [(at, f"b{number % 3}", "Work.start", f"ID={number}"), (seen, f"b{number % 3}", "Work.end", f"ID={number}")]
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["span"], first["host"]), ("timer", "Work", None))

    def test_polls_that_drift(self):
        """Workers on three hosts poll a queue. Each worker handles the waiting jobs, and then sleeps for 0.4 s."""
        chance, at, waiting, records = random.Random(6), 0.0, [], []
        for number in range(300):
            at += chance.expovariate(15)
            waiting.append((at, number))
            records.append((at, "client", "Submit", f"ID={number}"))
        polls = [(0.1 * worker, f"w{worker}") for worker in (1, 2, 3)]
        while waiting:
            now, host = polls.pop(0)
            if waiting[0][0] <= now:
                number = waiting.pop(0)[1]
                work = 0.008 * chance.lognormvariate(0, 0.4)
                records += [(now, host, "Take", f"ID={number}"), (now + work, host, "Done", f"ID={number}")]
                now += work + 1e-4
            else:
                now += 0.4 + chance.uniform(0, 1e-3)
            polls = sorted([*polls, (now, host)])
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("timer", "Submit", "Take"))
        self.assertRegex(first["title"], "a timer of 4[01][0-9] ms")

    def test_hours_of_few_requests(self):
        """The same hours are slow on each of five days. A day has only 18 requests."""
        records = self.requests(lambda c, at, n, h: 0.05 * (8 <= at / 3600 % 24 < 13), count=90, rate=90 / 432000)
        first = self.first_of(records)
        self.assertEqual((first["cause"], first["span"]), ("hour", "Work"))

    # ---- calls through client spans ----

    def gateway(self, calls, count=400, rate=15.0, fields=lambda n: "", name="gateway.log"):
        """The log of a gateway that calls a server through client spans, one after another. `calls` returns, for a request and a random
        generator, tuples (seconds on the way back, seconds of work, failed, wait after the call, fields of the call's end)."""
        chance, lines, at, spans = random.Random(8), [], 0.0, 0

        def log(time, host, program, event, request, span, parent, more=""):
            lines.append((time, f"HOST={host} PROG={program} LVL=Usage NL.EVNT={event} TRACE.ID={request:032x} SPAN.ID={span:016x}"
                                f"{f' PARENT.ID={parent:016x}' if parent else ''}{' ' if more else ''}{more}"))

        for n in range(1, count + 1):
            at += chance.expovariate(rate)
            spans += 1
            root, time = spans, at + 0.0002
            log(at, "gw", "gateway", "Request.start", n, root, 0, fields(n))
            for back, work, failed, wait, more in calls(n, chance):
                client, server, spans = spans + 1, spans + 2, spans + 2
                log(time, "gw", "gateway", "Call.start", n, client, root)
                log(time + 0.0002, "db", "server", "Handle.start", n, server, client)
                time += 0.0002 + work
                log(time, "db", "server", "Handle.end", n, server, client, f"STATUS={1 if failed else 0}")
                time += back
                log(time, "gw", "gateway", "Call.end", n, client, root, f"STATUS={1 if failed else 0}{more}")
                time += 0.0001 + wait
            log(time + 0.0003, "gw", "gateway", "Request.end", n, root, 0, "STATUS=0")
        path = self.scratch / name
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        return path

    @staticmethod
    def call(chance, back=0.0, failed=False, wait=0.0, more=""):
        return (back or 0.0003 * chance.lognormvariate(0, 0.3), 0.002 * chance.lognormvariate(0, 0.3), failed, wait, more)

    def test_calls_through_client_spans(self):
        """Most of a call's time is in the server and on the way, not in the client's span. The number of calls depends on the request."""
        numbers = {n: random.Random(n).choice((5, 10, 20, 50)) if n % 5 == 0 else 1 for n in range(1, 401)}
        found = self.diagnosed(self.gateway(lambda n, c: [self.call(c) for _ in range(numbers[n])], rate=5), status=FINDING)["causes"]
        self.assertEqual((found[0]["cause"], found[0]["program"], found[0]["span"]), ("calls", "gateway", "Call"))
        extra = sum(k - 1 for k in numbers.values()) / sum(numbers.values())
        self.assertAlmostEqual(found[0]["share"], extra, delta=0.12)

    def test_calls_at_the_same_time_are_not_combined(self):
        """A caller that makes its calls at the same time waits only for the longest call."""
        lines, chance, at = [], random.Random(5), 0.0
        for n in range(300):
            at += chance.expovariate(10)
            width = 12 if n % 5 == 0 else 1
            ends = [at + 0.001 + 0.004 * chance.lognormvariate(0, 0.2) for _ in range(width)]
            lines.append((at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Request.start TRACE.ID={n:032x} SPAN.ID={n + 1:016x}"))
            for k, end in enumerate(ends):
                ids = f"TRACE.ID={n:032x} SPAN.ID={100000 + 20 * n + k:016x} PARENT.ID={n + 1:016x}"
                lines += [(at + 0.001, f"HOST=a PROG=p LVL=Usage NL.EVNT=Query.start {ids}"), (end, f"HOST=a PROG=p LVL=Usage NL.EVNT=Query.end {ids}")]
            lines.append((max(ends) + 0.001, f"HOST=a PROG=p LVL=Usage NL.EVNT=Request.end TRACE.ID={n:032x} SPAN.ID={n + 1:016x}"))
        path = self.scratch / "parallel-calls.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        self.assertNotIn("calls", [c["cause"] for c in self.diagnosed(path)["causes"]])

    def test_retries_with_back_off(self):
        """Calls fail in some seconds. The gateway waits longer before each attempt. Many requests wait at the same time, like in a queue."""
        def calls(n, chance):
            if n // 40 % 3 != 1:
                return [self.call(chance)]
            failures = chance.choice((1, 2, 3))
            return [self.call(chance, failed=True, wait=0.05 * 2 ** k) for k in range(failures)] + [self.call(chance)]
        found = self.diagnosed(self.gateway(calls, rate=40), status=FINDING)["causes"]
        self.assertEqual((found[0]["cause"], found[0]["span"]), ("timeout", "Call"))
        self.assertIn("fails, and its callers try again", found[0]["title"])
        self.assertGreater(found[0]["share"], 0.8)

    def test_size_of_a_reply(self):
        """The time on the way back depends on the reply's size, which is in the record of the call's end. Each request makes two calls."""
        def calls(n, chance):
            sizes = [chance.randrange(1000000, 6000000) if chance.random() < 0.2 else chance.randrange(500, 4000) for _ in range(2)]
            return [self.call(chance, back=0.0005 * chance.lognormvariate(0, 0.3) + size / 1e8, more=f" BYTES={size}") for size in sizes]
        found = self.diagnosed(self.gateway(calls), status=HEALTHY)["causes"]
        self.assertEqual((found[0]["cause"], found[0]["field"], found[0]["ordinary"]), ("size", "BYTES", True))
        self.assertEqual((found[0]["from_event"], found[0]["to_event"]), ("Handle.end", "Call.end"))

    def test_statuses_that_report_failures(self):
        """Jobs with IDs and without an enclosing span fail, with statuses of different conventions."""
        for status, fails in ("1", True), ("-5", True), ("7", True), ("503", True), ("error", True), ("200", False), ("404", False), ("0", False), ("ok", False):
            with self.subTest(status=status):
                lines, chance, at = [], random.Random(3), 0.0
                for n in range(200):
                    at += chance.expovariate(5)
                    begin = at + 0.001 * chance.lognormvariate(0, 0.3)
                    end = begin + 0.003 * chance.lognormvariate(0, 0.3)
                    lines += [(at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Take JOB.ID={n}"), (begin, f"HOST=a PROG=p LVL=Usage NL.EVNT=Store.start JOB.ID={n}"),
                              (end, f"HOST=a PROG=p LVL=Usage NL.EVNT=Store.end JOB.ID={n} STATUS={status if n % 4 == 0 else 0}"),
                              (end + 0.002 * chance.lognormvariate(0, 0.3), f"HOST=a PROG=p LVL=Usage NL.EVNT=Done JOB.ID={n}")]
                path = self.scratch / "jobs.log"
                simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
                causes = [(c["cause"], c.get("span")) for c in self.diagnosed(path)["causes"]]
                self.assertEqual(("failures", "Store") in causes, fails, causes)

    def test_repeated_attempts_are_no_failures(self):
        """Jobs without spans: an attempt fails, and a later attempt succeeds. The events of both results have different names."""
        lines, chance, at = [], random.Random(2), 0.0
        for n in range(200):
            at += 0.5
            now = at
            events = ["Begin", *(("Try", "Fail") if chance.random() < 0.3 else ()), "Try", "Ok", "Done"]
            for event in events:
                lines.append((now, f"HOST=a PROG=p LVL=Usage NL.EVNT={event} JOB.ID={n}{' STATUS=1' if event == 'Fail' else ''}"))
                now += 0.01 * chance.lognormvariate(0, 0.3)
        path = self.scratch / "attempts.log"
        simulate.write_lines(path, lines)
        self.assertNotIn("failures", [c["cause"] for c in self.diagnosed(path)["causes"]])

    def test_long_visits_are_no_pauses(self):
        """A server with one thread handles one request at a time. One host is slower. While it works, messages to it wait."""
        chance, lines, at, free = random.Random(11), [], 0.0, {"w1": 0.0, "w2": 0.0, "w3": 0.0}
        for n in range(600):
            at += chance.expovariate(30)
            host = chance.choice(sorted(free))
            begin = max(at + 0.0004, free[host])
            end = free[host] = begin + (0.016 if host == "w2" else 0.0025) * chance.lognormvariate(0, 0.5)
            lines += [(at, f"HOST=c PROG=submit LVL=Usage NL.EVNT=Job.Submit JOB.ID={n}"), (begin, f"HOST={host} PROG=worker LVL=Usage NL.EVNT=Render.start JOB.ID={n}"),
                      (end, f"HOST={host} PROG=worker LVL=Usage NL.EVNT=Render.end JOB.ID={n}")]
        path = self.scratch / "workers.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        found = self.diagnosed(path, status=FINDING)["causes"]
        self.assertEqual((found[0]["cause"], found[0]["host"]), ("peer", "w2"))
        self.assertNotIn("pause", [c["cause"] for c in found])

    def stops(self, seed, end, count=2400, rate=60.0):
        """Requests to three hosts, which log their starts at once. `end` returns the end of a request's work on b2."""
        chance, at, records = random.Random(seed), 0.0, []
        for number in range(count):
            at += chance.expovariate(rate)
            host, work = chance.choice(("b1", "b2", "b3")), 0.01 * chance.lognormvariate(0, 0.5)
            records += [(at, host, "Work.start", f"ID={number}"), (end(at, work) if host == "b2" else at + work, host, "Work.end", f"ID={number}")]
        return records

    def test_pauses_in_which_requests_begin(self):
        """The work on one host stops now and then, but another part of the program still logs the starts of requests."""
        for seed, length in (1, 0.3), (2, 0.6):
            with self.subTest(seed=seed):
                chance, pauses, at = random.Random(seed), [], 1.0
                while at < 60:
                    pauses.append((at, at + length * chance.uniform(0.8, 1.2)))
                    at = pauses[-1][1] + chance.uniform(2, 3)

                def end(now, work):
                    for begin, until in pauses:
                        if until > now and begin < now + work:
                            work -= max(0.0, begin - now)
                            now = until
                    return now + work
                first = self.first_of(self.stops(seed, end))
                self.assertEqual((first["cause"], first["host"]), ("pause", "b2"))

    def test_long_holders_of_a_lock_are_no_pauses(self):
        """Work on one host waits for a lock that is sometimes held for long."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                chance, free = random.Random(seed), [0.0]

                def locked(now, work):
                    free[0] = max(free[0], now) + (0.3 if chance.random() < 0.01 else work)
                    return free[0]
                found = self.diagnosed_of(self.stops(seed, locked, rate=120))["causes"]
                self.assertEqual(found[0]["cause"], "lock")
                self.assertNotIn("pause", [cause["cause"] for cause in found])

    def test_calls_that_depend_on_the_request_are_no_pauses(self):
        """Each request makes several calls to the same hosts at once. Their times depend on the size of the request."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                chance, at, records = random.Random(seed), 0.0, []
                for number in range(600):
                    at += chance.expovariate(20)
                    size, last = chance.lognormvariate(0, 1), at
                    records.append((at, "f", "Ask.start", f"ID={number}"))
                    for shard in range(6):
                        begin = at + chance.uniform(0.0002, 0.001)
                        end = begin + 0.01 * chance.lognormvariate(0, 0.3) * size
                        records += [(begin, f"s{shard % 3}", f"Shard{shard}.start", f"ID={number}"), (end, f"s{shard % 3}", f"Shard{shard}.end", f"ID={number}")]
                        last = max(last, end)
                    records.append((last + 0.001, "f", "Ask.end", f"ID={number}"))
                self.assertNotIn("pause", [cause["cause"] for cause in self.diagnosed_of(records)["causes"]])

    def test_pause_is_claimed_once(self):
        """A program on one of several hosts stops for 150 ms now and then. A piece of its work takes about as long as a stop."""
        chance, lines, at, stops = random.Random(4), [], 0.0, [0.0]
        while stops[-1] < 20:
            stops.append(stops[-1] + chance.uniform(0.4, 1.0))
        for n in range(1500):
            at += chance.expovariate(200)
            end, left = at, 0.1 * chance.lognormvariate(-0.845, 1.3)
            for stop in stops:
                if stop + 0.15 <= end:
                    continue
                if stop > end:
                    if stop >= end + left:
                        break
                    left -= stop - end
                end = stop + 0.15
            ids = f"TRACE.ID={n:032x} SPAN.ID={n + 1:016x}"
            lines += [(at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Work.start {ids}"), (end + left, f"HOST=a PROG=p LVL=Usage NL.EVNT=Work.end {ids}")]
        path = self.scratch / "pauses.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        for cause in self.diagnosed(path)["causes"]:
            self.assertNotIn("hosts", cause["title"])

    def test_backlog_of_a_slow_start(self):
        """Four workers begin late. Requests wait if they arrive before the workers begin; later requests do not
        wait."""
        chance, lines, at, free = random.Random(12), [], 0.0, 4 * [1.0]
        for n in range(1200):
            at += chance.expovariate(60)
            worker = min(range(4), key=lambda k: free[k])
            begin = max(at + 0.0001 * chance.lognormvariate(0, 0.4), free[worker])
            end = free[worker] = begin + 0.006 * chance.lognormvariate(0, 0.4)
            ids, inner = f"TRACE.ID={n:032x} SPAN.ID={2 * n + 1:016x}", f"TRACE.ID={n:032x} PARENT.ID={2 * n + 1:016x} SPAN.ID={2 * n + 2:016x}"
            lines += [(at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Request.start {ids}"), (at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Queue.start {inner}"),
                      (begin, f"HOST=a PROG=p LVL=Usage NL.EVNT=Queue.end {inner}"), (end, f"HOST=a PROG=p LVL=Usage NL.EVNT=Request.end {ids}")]
        path = self.scratch / "start.log"
        simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
        found = self.diagnosed(path, status=FINDING)["causes"]
        self.assertEqual((found[0]["cause"], found[0]["span"]), ("cold", "Queue"))

    def test_values_of_the_evidence(self):
        """Another value is a little slow, so that only one half of the visits shows it. The evidence counts only the visits with
        the named value."""
        for seed in 1, 13, 19:
            with self.subTest(seed=seed):
                chance, lines, at, kinds = random.Random(seed), [], 0.0, ("report", "item", *("page", "list", "mail", "form", "page") * 2)
                reports = 0
                for n in range(360):
                    at += chance.expovariate(20)
                    kind = kinds[chance.randrange(12)]
                    end = at + 0.003 * chance.lognormvariate(0, 0.6) * {"report": 5, "item": 1.9}.get(kind, 1)
                    reports += kind == "report"
                    lines += [(at, f"HOST=a PROG=p LVL=Usage NL.EVNT=Work.start ID={n} TYPE={kind}"), (end, f"HOST=a PROG=p LVL=Usage NL.EVNT=Work.end ID={n}")]
                path = self.scratch / "values.log"
                simulate.write_lines(path, sorted(lines, key=lambda line: line[0]))
                first = self.diagnosed("--id", "ID", path, status=FINDING)["causes"][0]
                self.assertEqual((first["cause"], first["field"]), ("field", "TYPE"))
                self.assertIn(f"{reports} of the 360 visits have TYPE=report", first["evidence"])

    def test_calls_of_few_requests(self):
        """Six of 60 requests make 12 calls instead of one. They may have a common value, which other requests may also have."""
        for with_value, of_others, callers in ("", 0, "some requests"), ("big", 0, "requests with TENANT=big"), ("big", 12, "some requests"):
            chance, records = random.Random(4), []
            for number in range(60):
                at, is_many = 0.1 * number, number % 10 == 3
                tenant = with_value if is_many or number < of_others else chance.choice("abc")
                records.append((at, "a", "Handle.start", f"TRACE.ID={number} SPAN.ID=h{number} TENANT={tenant or chance.choice('abc')}"))
                for call in range(12 if is_many else 1):
                    records.append((at, "a", "Query.start", f"TRACE.ID={number} SPAN.ID=q{number}.{call} PARENT.ID=h{number}"))
                    at += 0.004 * chance.lognormvariate(0, 0.2)
                    records.append((at, "a", "Query.end", f"TRACE.ID={number} SPAN.ID=q{number}.{call}"))
                records.append((at, "a", "Handle.end", f"TRACE.ID={number} SPAN.ID=h{number}"))
            first = self.diagnosed_of(records, options=())["causes"][0]
            self.assertEqual((first["cause"], first["span"]), ("calls", "Query"))
            self.assertIn(f" time: {callers} call Query of ", first["title"])

    def test_sensor_of_one_host(self):
        """Visits are slow while the processor of one host is above a threshold, in 28 % of the time."""
        busy = lambda at: at % 2.5 < 0.7
        records = self.requests(lambda c, at, n, h: 0.15 * c.lognormvariate(0, 0.7) * (h == "b2" and busy(at)), count=300, rate=20)
        records = [(*record[:3], f"PROG=p {record[3]}") for record in records]
        noise = random.Random(5)
        for step in range(300):
            for host in "b1", "b2", "b3":
                load = 95 if host == "b2" and busy(0.05 * step) else 10 * int(host[1])
                records.append((0.05 * step, host, "CpuLoad", f"PROG=nlsensor CPU.BUSY={load + noise.uniform(-4, 4):.1f}"))
        path = self.scratch / "sensor.log"
        simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {rest}") for at, host, event, rest in sorted(records)))
        first = self.diagnosed(path)["causes"][0]
        self.assertEqual((first["cause"], first["host"], first["span"]), ("resource", "b2", "Work"))

    def test_shortage_that_affects_other_resources(self):
        """When memory is short, pages are read, and processors wait. The answer names the memory. Busy processors do not change the memory."""
        short = lambda at: at % 9 < 1.6
        for resource, field in ("memory", "SWAP.IN"), ("processor", "CPU.BUSY"):
            with self.subTest(resource):
                records = self.requests(lambda c, at, n, h: 0.12 * c.lognormvariate(0, 0.7) * (h == "b2" and short(at)), count=900, rate=20)
                records, noise = [(*record[:3], f"PROG=p {record[3]}") for record in records], random.Random(5)
                for step in range(230):
                    for host in "b1", "b2", "b3":
                        is_short = host == "b2" and short(0.2 * step - 0.1)
                        busy = is_short * (60 if resource == "processor" else 15) + noise.uniform(10, 20)
                        waiting, pages = (is_short * noise.uniform(30, 40), is_short * noise.randrange(1000, 9000)) if resource == "memory" else (0, 0)
                        records.append((0.2 * step, host, "CpuLoad", f"PROG=nlsensor CPU.BUSY={busy:.1f} CPU.IOWAIT={waiting + noise.uniform(0, 2):.1f}"))
                        records.append((0.2 * step, host, "SwapUse", f"PROG=nlsensor SWAP.IN={pages}"))
                path = self.scratch / "short.log"
                simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {rest}") for at, host, event, rest in sorted(records)))
                first = self.diagnosed(path)["causes"][0]
                self.assertEqual((first["cause"], first["host"], first["span"]), ("resource", "b2", "Work"))
                self.assertIn(f"{field} of ", first["title"])

    def locked(self, hosts, weights, before, count=200, rate=60.0, seed=1, after=0.0, servers=0):
        """A request works for the time `before`, takes the lock of its host for 12 ms, and then works for the time `after`. If `servers` is not 0, the
        hosts share so many locks instead."""
        chance, at, arrivals, records = random.Random(seed), 0.0, [], []
        free = collections.Counter()
        for number in range(count):
            at += chance.expovariate(rate)
            host = chance.choices(hosts, weights)[0]
            arrivals.append((at + before * chance.lognormvariate(0, 0.5), at, host, number))
        for ready, begin, host, number in sorted(arrivals):
            lock = min(range(servers), key=lambda n: free[n]) if servers > 0 else host
            free[lock] = max(free[lock], ready) + 0.012 * chance.lognormvariate(0, 0.25)
            end = free[lock] + after * chance.lognormvariate(0, 0.3)
            records += [(begin, host, "Work.start", f"ID={number}"), (end, host, "Work.end", f"ID={number}")]
        return records

    def test_locks_between_other_work(self):
        """While a visit has the lock, other visits work before or after it, on all hosts. A lock therefore looks like a pool of more locks."""
        for servers, rate, cause, kind in (1, 70, "lock", r"one request .*\(a lock"), (2, 150, "pool", r"a pool of \d+ that the hosts share"):
            for seed in 1, 2, 3:
                with self.subTest(servers=servers, seed=seed):
                    first = self.first_of(self.locked(["a", "b", "c"], [1, 1, 1], 0.01, 1500, rate, seed, 0.01, servers))
                    self.assertEqual((first["cause"], first["span"]), (cause, "Work"))
                    self.assertRegex(first["title"], kind)

    def test_lock_before_calls(self):
        """Visits take a lock, and half of them then make a call that takes much longer. Without the lock, there is no cause."""
        for is_locked in True, False:
            for seed in 1, 2, 3:
                with self.subTest(locked=is_locked, seed=seed):
                    chance, at, free, records = random.Random(seed), 0.0, 0.0, []
                    for n in range(1500):
                        at += chance.expovariate(70)
                        host, own, now = chance.choice("abc"), f"TRACE.ID={n} SPAN.ID={2 * n}", at + 0.001
                        if is_locked:
                            now = max(now, free)
                        now += 0.012 * chance.lognormvariate(0, 0.25)
                        free = now
                        records.append((at, host, "Find.start", own))
                        if chance.random() < 0.5:
                            ids = f"TRACE.ID={n} SPAN.ID={2 * n + 1} PARENT.ID={2 * n}"
                            records.append((now, host, "Fetch.start", ids))
                            now += 0.05 * chance.lognormvariate(0, 0.7)
                            records.append((now, host, "Fetch.end", ids))
                        records.append((now + 0.002 * chance.lognormvariate(0, 0.3), host, "Find.end", own))
                    causes = self.diagnosed_of(records, options=())["causes"]
                    self.assertEqual([(c["cause"], c["span"]) for c in causes[:1] if not c["ordinary"]], [("lock", "Find")] if is_locked else [])

    def test_calls_at_the_same_time_are_no_queue(self):
        """The calls of a request begin together, and take very different times. They may also end together, because the request has a time limit."""
        for limit in math.inf, 0.02:
            for seed in 1, 2, 3:
                with self.subTest(limit=limit, seed=seed):
                    chance, at, records = random.Random(seed), 0.0, []
                    for n in range(1500):
                        at += chance.expovariate(100)
                        ends = [min(at + 0.0004 + 0.006 * chance.lognormvariate(0, 1.1), at + limit) for _ in range(5)]
                        records += [(at, "a", "Job.start", f"TRACE.ID={n} SPAN.ID={10 * n}"), (max(ends) + 0.001, "a", "Job.end", f"TRACE.ID={n} SPAN.ID={10 * n}")]
                        for k, end in enumerate(ends, 1):
                            ids = f"TRACE.ID={n} SPAN.ID={10 * n + k} PARENT.ID={10 * n}"
                            records += [(at + 0.0002, "a", "Bid.start", ids), (end, "a", "Bid.end", ids)]
                    causes = self.diagnosed_of(records, options=())["causes"]
                    self.assertEqual([c["title"] for c in causes if c["cause"] in ("lock", "pool")], [])

    def test_lock_after_other_work(self):
        """Visits do not take the lock in the order of arrival. Visits without a lock do not end one at a time."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                first = self.first_of(self.locked(["a"], [1], 0.02, seed=seed))
                self.assertEqual((first["cause"], first["span"]), ("lock", "Work"))

    def test_regular_arrivals_are_no_lock(self):
        """Requests that arrive at regular times also end one at a time."""
        for seed in 1, 2, 3:
            chance = random.Random(seed)
            records = [(0.01 * n + more, "a", event, f"ID={n}") for n in range(200)
                       for event, more in (("Work.start", 0), ("Work.end", 0.025 * chance.lognormvariate(0, 0.05)))]
            self.assertEqual(self.diagnosed_of(records)["causes"], [])

    def test_speed_of_requests_is_no_cause(self):
        """The visits of a request are equally slow, and follow each other. Requests are independent."""
        for seed in 2, 3, 4, 18, 35, 42:
            chance, at, records = random.Random(seed), 0.0, []
            for n in range(80):
                at += 0.5 + chance.expovariate(0.2)
                speed, now = math.exp(0.7 * chance.gauss(0, 1)), at
                records.append((at, "h", "Handle.start", f"TRACE.ID={n} SPAN.ID={n}"))
                for k in range(6):
                    ids = f"TRACE.ID={n} SPAN.ID={1000 + 10 * n + k} PARENT.ID={n}"
                    records.append((now, "h", "Work.start", ids))
                    now += 0.01 * speed * math.exp(0.2 * chance.gauss(0, 1))
                    records.append((now, "h", "Work.end", ids))
                records.append((now + 0.0001, "h", "Handle.end", f"TRACE.ID={n} SPAN.ID={n}"))
            with self.subTest(seed=seed):
                self.assertEqual(self.diagnosed_of(records, options=[])["causes"], [])

    def test_days_before_1970(self):
        begin = datetime.datetime(1969, 1, 2, tzinfo=datetime.timezone.utc).timestamp() - simulate.START
        records = [(begin + 500 * n + more, "h", event, f"ID={n}") for n in range(600)
                   for event, more in (("Work.start", 0), ("Work.end", random.Random(n).lognormvariate(0, 1)))]
        self.assertEqual(self.diagnosed_of(records)["causes"], [])

    def test_balance_explains_a_slow_peer(self):
        """One host receives more requests than its peers, and therefore has a queue."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                first, *others = self.diagnosed_of(self.locked(["a", "b", "c", "d"], [5, 1, 1, 1], 0.004, 120, 110, seed))["causes"]
                self.assertEqual((first["cause"], first["host"]), ("balance", "a"))
                self.assertNotIn(("peer", None), [(c["cause"], c.get("instead_of")) for c in others])

    def test_rounds_of_long_work_are_no_pauses(self):
        """All requests repeatedly wait for the last of them, while no program logs an event."""
        chance, records, at = random.Random(6), [], 0.0
        for number in range(600):
            if number % 30 == 0:
                at += 20
            end = at + chance.uniform(12, 16)
            records += [(at + chance.random(), "a", "Work.start", f"ID={number}"), (end, "a", "Work.end", f"ID={number}"), (end + 0.5, "a", "Done", f"ID={number}")]
        self.assertNotIn("pause", [cause["cause"] for cause in self.diagnosed_of(records)["causes"]])

    def served(self, places, hosts=2):
        """The time from Want to Work.start is the wait for a place of a pool. The request keeps the place until Work.end, and logs
        another event after that."""
        model, lines, chance = slow_logs.Model(), [], random.Random(5)
        pool = [slow_logs.Resource(model, places) for _ in range(hosts)]

        def request(number):
            host = f"h{number % hosts}"
            log = lambda event: lines.append((model.now, host, event, f"ID={number}"))
            log("Want")
            yield pool[number % hosts]
            log("Work.start")
            yield chance.uniform(0.01, 0.02) + chance.expovariate(60)
            log("Work.end")
            pool[number % hosts].give()
            yield chance.uniform(0.001, 0.002)
            log("Left")

        def come():
            for number in range(3000):
                yield chance.expovariate(0.95 * places * hosts / 0.0317)
                model.at(0, request(number))
        model.at(0, come())
        model.run(1000)
        return lines

    def test_so_many_at_a_time(self):
        for places in 1, 2, 4:
            for hosts in support.representative((1, 2), (2 if places == 2 else 1,)):
                with self.subTest(places=places, hosts=hosts):
                    first = self.first_of(self.served(places, hosts))
                    self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("lock" if places == 1 else "pool", "Want", "Work.start"))
                    if places > 1:
                        self.assertIn(f"a pool of {places}", first["title"])

    def test_a_lull_is_no_pause(self):
        stops = [(at, at + 0.5) for at in range(1, 30, 2)]
        lulls = [record for record in self.requests() if not any(begin <= record[0] < end for begin, end in stops)]
        self.assertNotIn("pause", [cause["cause"] for cause in self.diagnosed_of(lulls)["causes"]])

    def test_no_peer_by_chance(self):
        """A few long waits make the means differ."""
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                records = self.requests(lambda c, at, n, h: c.expovariate(5) * (c.random() < 0.2), count=400, hosts=[f"b{i}" for i in range(8)], seed=seed)
                self.assertNotIn("peer", [cause["cause"] for cause in self.diagnosed_of(records)["causes"]])

    def test_changed(self):
        for name, cost, cause in (("since", lambda c, at, n, h: 0.02 * (at > 15), "changed"), ("until", lambda c, at, n, h: 0.06 * (at < 3), "cold")):
            with self.subTest(name):
                first = self.first_of(self.requests(cost))
                self.assertEqual((first["cause"], first["span"]), (cause, "Work"))

    def test_changed_with_a_heavy_tail(self):
        """The times vary so much that a change explains only a small part of their variation."""
        chance, at, records = random.Random(1), 0.0, []
        for n in range(3000):
            at += chance.expovariate(60)
            records += [(at, "h", "Work.start", f"ID={n}"), (at + 0.05 * (1 + 4 * min(at / 50, 1)) * chance.lognormvariate(0, 1.2), "h", "Work.end", f"ID={n}")]
        self.assertEqual([(c["cause"], c["span"]) for c in self.diagnosed_of(sorted(records))["causes"]], [("changed", "Work")])

    def test_bursts_of_load_are_no_changes(self):
        """Processors are shared, so that visits take longer in bursts of requests. After a change, visits take longer under any load."""
        for name, processors, cost, rate, slower, cause in ("two", 2, 0.06, 45, 1, "load"), ("three", 3, 0.1, 40, 1, "load"), ("change", 1000, 0.06, 45, 2.5, "changed"):
            with self.subTest(name):
                chance, world, records, busy, at = random.Random(4), simulate.World(), [], [0], 0.0

                def visit(n):
                    records.append((world.now, "h", "Work.start", f"ID={n}"))
                    left = cost * chance.lognormvariate(0, 0.5) * (slower if world.now > 90 else 1)
                    busy[0] += 1
                    while left > 0:
                        piece = min(left, cost / 8)
                        left -= piece
                        yield piece * max(1, busy[0] / processors)
                    busy[0] -= 1
                    records.append((world.now, "h", "Work.end", f"ID={n}"))

                for n in range(2500):
                    at += chance.expovariate(rate if 20 < at < 25 or 60 < at < 65 or 110 < at < 118 else 15)
                    world.at(at, visit(n))
                world.run()
                first = self.diagnosed_of(sorted(records))["causes"][0]
                self.assertEqual((first["cause"], first["span"]), (cause, "Work"))

    def test_slower_link(self):
        """One of four servers is behind a slower link. The log contains sensors."""
        chance, records = random.Random(3), []
        for number in range(200):
            server, at = number % 4 + 1, 0.01 * number
            took = (0.054 if server == 4 else 0.018) * chance.lognormvariate(0, 0.05)
            for host, program, event, when in ("client", "dpss_get", "BlockRequestSend", 0), (f"dpss{server}", "dpss_server", "BlockRequestRecv", 3e-4), \
                    (f"dpss{server}", "dpss_server", "DiskReadStart", 4e-4), (f"dpss{server}", "dpss_server", "DiskReadEnd", 5e-4), \
                    (f"dpss{server}", "dpss_server", "BlockSendStart", 6e-4), ("client", "dpss_get", "BlockRead", 6e-4 + took), \
                    (f"dpss{server}", "dpss_server", "BlockSendEnd", 7e-4), ("client", "dpss_get", "BlockDone", 7e-4 + took):
                records.append((at + when, f"HOST={host} PROG={program} LVL=Usage NL.EVNT={event} BLOCK.ID={number}"))
        for i in range(100):
            records.append((0.02 * i, f"HOST=client PROG=nlsensor LVL=System NL.EVNT=CpuOne CPU.ID={i % 2} CPU.BUSY={chance.uniform(0, 100):.1f}"))
        path = self.scratch / "dpss.log"
        simulate.write_lines(path, sorted(records))
        found = self.diagnosed(path)
        self.assertEqual([(c["cause"], c["host"]) for c in found["causes"]], [("peer", "dpss4")])
        self.assertRegex(found["answer"], r"dpss4 is behind a slower link")
        self.assertEqual(found["requests"], 200)

    def fetched(self, pieces):
        """
        Writes a log of four servers, one of which is behind a slower link and needs longer for its blocks, alone at the end. Blocks arrive in
        many pieces at first, and later in few pieces (`pieces`: one number for each part). A sensor's value falls all the time.
        """
        chance, records = random.Random(5), []
        for server in 1, 2, 3, 4:
            at = 0.001 * server
            for number in range(50):
                took, count = (0.054 if server == 4 else 0.018) * chance.lognormvariate(0, 0.05), pieces[at > 0.45]
                for host, program, event, when in (("client", "dpss_get", "BlockRequestSend", 0), (f"dpss{server}", "dpss_server", "BlockRequestRecv", 3e-4),
                                                   (f"dpss{server}", "dpss_server", "BlockSendStart", 4e-4), (f"dpss{server}", "dpss_server", "BlockSendEnd", 6e-4),
                                                   *(("client", "dpss_get", "BlockRead", 7e-4 + took * (1 + part / count)) for part in range(count + 1)),
                                                   ("client", "dpss_get", "BlockDone", 8e-4 + took * 2)):
                    records.append((at + when, f"HOST={host} PROG={program} LVL=Usage NL.EVNT={event} BLOCK.ID={server}-{number}"))
                at += 0.001 + took * 2
        for i in range(600):
            records.append((0.01 * i, f"HOST=client PROG=nlsensor LVL=System NL.EVNT=MemoryFree MEM.FREE={9e9 - 3e7 * i + chance.uniform(0, 1e7):.0f}"))
        path = self.scratch / "fetched.log"
        simulate.write_lines(path, sorted(records))
        return path

    def test_blocks_that_arrive_in_fewer_pieces_later(self):
        """Each piece takes longer when a block has fewer pieces. The time and the sensor explain the times of pieces, but not the times of blocks."""
        path = self.fetched((24, 4))
        found = self.diagnosed(path)
        self.assertEqual([(c["cause"], c["host"]) for c in found["causes"] if c["sure"] > 0.2], [("peer", "dpss4")])
        self.assertAlmostEqual(found["causes"][0]["share"], 1 / 3, delta=0.05)
        self.assertRegex(self.run_program(self.nldiag, path).stdout, r"BlockRead -> BlockRead of dpss_get, [0-9.]+ ms for each series of \d+ visits; explained above")

    def test_items_of_a_loop_are_no_pieces(self):
        """A request handles several items, and logs one event for each. The request takes as long as all its items."""
        chance, records = random.Random(6), []
        for number in range(300):
            at = now = 0.5 * number
            for _ in range(chance.randint(3, 30)):
                records.append((now, "a", "Item", f"ID={number}"))
                now += 0.01 * chance.lognormvariate(0, 0.2)
            self.assertGreater(now, at)
            records.append((now, "a", "Done", f"ID={number}"))
        places = self.diagnosed_of(records)["places"]
        self.assertEqual([p["visits"] for p in places if p.get("to_event") == "Item"], [sum(record[2] == "Item" for record in records) - 300])

    def test_attempts_that_are_given_up(self):
        """An attempt ends after a timeout if another step than usual follows it. After work with a fixed cost, the
        usual step follows."""
        for name in "tried again", "failed", "fixed cost":
            with self.subTest(name):
                chance, at, records = random.Random(4), 0.0, []
                for n in range(600):
                    at += 0.1 + chance.expovariate(1)
                    now, call, tries = at, 0, 0
                    records.append((at, "h", "Handle.start", f"TRACE.ID={n} SPAN.ID={10 * n}"))
                    while call == 0 or (took == 0.25 and name == "tried again" and call < 9):
                        call += 1
                        took = min(0.25, 0.13 * chance.lognormvariate(0, 0.6))
                        ids = f"TRACE.ID={n} SPAN.ID={10 * n + call} PARENT.ID={10 * n}"
                        records.append((now, "h", "Call.start", ids))
                        now += took + chance.uniform(0, 0.0005)
                        records.append((now, "h", "Call.end", f"{ids} STATUS={int(took == 0.25 and name == 'failed')}"))
                    records.append((now + 0.002 * chance.lognormvariate(0, 0.3), "h", "Handle.end", f"TRACE.ID={n} SPAN.ID={10 * n} STATUS=0"))
                titles = str([c["title"] for c in self.diagnosed_of(records, options=())["causes"]])
                self.assertEqual("Call of p ends after a timeout of 250 ms" in titles, name != "fixed cost", titles)

    def test_time_outs_that_an_event_names(self):
        """A message to another host gets no answer, and an event says so. Otherwise, a constant time between hosts is the speed of a network."""
        for event in "Connect.timeout", "Connect.deadline-exceeded", "Connect.forwarded":
            with self.subTest(event):
                chance, at, records = random.Random(6), 0.0, []
                for n in range(900):
                    at += chance.expovariate(4)
                    done = at + 0.1 * chance.lognormvariate(0, 0.5)
                    records += [(at, "a", "Prepare.start", f"ID={n}"), (done, "a", "Prepare.end", f"ID={n}")]
                    if n % 5 == 0:
                        done += 0.4 + chance.uniform(0, 0.001)
                        records.append((done, "b", event, f"ID={n}"))
                    begin = done + 0.002 * chance.lognormvariate(0, 0.3)
                    records += [(begin, "c", "Deliver.start", f"ID={n}"), (begin + 0.05 * chance.lognormvariate(0, 0.5), "c", "Deliver.end", f"ID={n}")]
                causes = self.diagnosed_of(records)["causes"]
                expected = [] if "forwarded" in event else [("timeout", "Prepare.end", event)]
                self.assertEqual([(c["cause"], c["from_event"], c["to_event"]) for c in causes if "instead_of" not in c and c["cause"] == "timeout"], expected)

    def test_warnings_with_the_code_of_a_time_out(self):
        """A warning with the code 408 or 504 is a failed attempt. The same number in another record may have any meaning."""
        for level, code, fails in ("Warning", 408, True), ("Warning", 407, False), ("Usage", 408, False):
            with self.subTest(level=level, code=code):
                chance, at, lines = random.Random(2), 0.0, []
                for n in range(1500):
                    at += chance.expovariate(5)
                    now = at
                    for slow in (True, False) if n % 12 == 0 else (False,):
                        took = 1.0 if slow else 0.3 * chance.lognormvariate(0, 0.6)
                        now += took
                        lines.append((now, slow, f"NL.EVNT=Dial ID={n} DUR={took:.6f} CODE={code if slow else 180}"))
                    lines.append((now + 0.001, False, f"NL.EVNT=Call ID={n} DUR={now + 0.001 - at:.6f}"))
                path = self.scratch / "codes.log"
                simulate.write_lines(path, ((when, f"HOST=a PROG=p LVL={level if slow else 'Usage'} {rest}") for when, slow, rest in sorted(lines)))
                causes = self.diagnosed("--id", "ID", path)["causes"]
                retried = [c["span"] for c in causes if c["cause"] == "timeout" and "its callers try again" in c["title"]]
                self.assertEqual(retried, ["Dial"] if fails else [])

    def test_traffic_that_follows_the_work(self):
        """While a step is slow, more connections are open and more segments are sent, because more requests are in progress. The traffic is no cause."""
        slow = lambda at: 9 < at < 15
        records = self.requests(lambda c, at, n, h: 0.05 * c.lognormvariate(0, 0.6) * slow(at), count=900, rate=30)
        records, noise = [(*record[:3], f"PROG=p {record[3]}") for record in records], random.Random(5)
        for step in range(160):
            for host in "b1", "b2", "b3":
                out = 300 + 500 * slow(0.2 * step) + noise.gauss(0, 60)
                records.append((0.2 * step, host, "TcpSegments", f"PROG=nlsensor TCP.OUT={out:.0f} TCP.IN={0.9 * out:.0f}"))
        path = self.scratch / "traffic.log"
        simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {rest}") for at, host, event, rest in sorted(records)))
        first = self.diagnosed(path)["causes"][0]
        self.assertEqual((first["cause"], first["span"]), ("changed", "Work"))

    def test_partial_failures_of_a_value(self):
        """Some visits with one value fail, but their requests succeed. If all visits with the value fail, the program expects this."""
        for share, expected in (0.5, [("Lookup", "ZONE")]), (1.0, []):
            with self.subTest(share=share):
                chance, at, records = random.Random(3), 0.0, []
                for n in range(1500):
                    at += chance.expovariate(10)
                    root, part, zone = f"TRACE.ID={n} SPAN.ID={2 * n}", f"TRACE.ID={n} SPAN.ID={2 * n + 1} PARENT.ID={2 * n}", ("north", "east", "south", "west")[n % 4]
                    end = at + 0.02 * chance.lognormvariate(0, 0.4)
                    fails = zone == "north" and chance.random() < share
                    records += [(at, "a", "Job.start", root), (at + 0.001, "a", "Lookup.start", f"{part} ZONE={zone}"),
                                (end, "a", "Lookup.end", f"{part} STATUS={int(fails)}"), (end + 0.001, "a", "Job.end", f"{root} STATUS=0")]
                causes = self.diagnosed_of(records, options=())["causes"]
                self.assertEqual([(c["span"], c["field"]) for c in causes if c["cause"] == "failures" and "ZONE=north" in c["title"]], expected)

    def test_expected_failures_hide_no_host(self):
        """One value always fails, which the program expects. One host fails more often with the other values, too."""
        for bad, expected in ("b1", [("Lookup", "b1")]), ("none", []):
            chance, at, records = random.Random(3), 0.0, []
            for n in range(2000):
                at += chance.expovariate(10)
                host, zone = f"b{n % 4}", chance.choice(("north", "east", "south", "west"))
                root, part = f"TRACE.ID={n} SPAN.ID={2 * n}", f"TRACE.ID={n} SPAN.ID={2 * n + 1} PARENT.ID={2 * n}"
                end = at + 0.02 * chance.lognormvariate(0, 0.4)
                fails = zone == "north" or chance.random() < (0.4 if host == bad else 0.01)
                records += [(at, "a", "Job.start", root), (at + 0.001, host, "Lookup.start", f"{part} ZONE={zone}"),
                            (end, host, "Lookup.end", f"{part} STATUS={int(fails)}"), (end + 0.001, "a", "Job.end", f"{root} STATUS=0")]
            causes = self.diagnosed_of(records, options=())["causes"]
            self.assertEqual([(c["span"], c["host"]) for c in causes if c["cause"] == "failures"], expected)

    def test_records_that_only_failures_have(self):
        """A program logs a step only after a failure. The hosts of its other steps show which host fails."""
        for bad, expected in ("b1", "b1"), ("none", None):
            chance, at, records = random.Random(3), 0.0, []
            for n in range(2000):
                at += chance.expovariate(10)
                host, end, ids = f"b{n % 4}", at + 0.02 * chance.lognormvariate(0, 0.4), f"TRACE.ID={n}"
                records += [(at, host, "Lookup.start", f"{ids} SPAN.ID={n}"), (end, host, "Lookup.end", f"{ids} SPAN.ID={n}")]
                if chance.random() < (0.12 if host == bad else 0.002 if expected else 0.03):
                    records += [(end + 0.02, host, "Report.start", f"{ids} SPAN.ID={n + 9000}"), (end + 0.021, host, "Report.end", f"{ids} SPAN.ID={n + 9000} STATUS=1")]
            causes = [c for c in self.diagnosed_of(records, options=())["causes"] if c["cause"] == "failures"]
            self.assertEqual([(c["span"], c["host"]) for c in causes], [("Report", expected)])

    def test_visits_of_one_failed_request_count_once(self):
        """Requests visit many hosts and fail by chance. The visits of a failed request do not show that a host or a time is worse."""
        for seed in 1, 2, 3:
            chance, at, records = random.Random(seed), 0.0, []
            for n in range(1000):
                at += chance.expovariate(10)
                now, ids = at, f"TRACE.ID={n}"
                for k in range(12):
                    end, span = now + 0.003 * chance.lognormvariate(0, 0.4), f"SPAN.ID={n * 20 + k}"
                    host = f"b{chance.randrange(20)}"
                    records += [(now, host, "Lookup.start", f"{ids} {span}"), (end, host, "Lookup.end", f"{ids} {span}")]
                    now = end + 0.0005
                if chance.random() < 0.03:
                    records += [(now, "b0", "Report.start", f"{ids} SPAN.ID={n * 20 + 15}"), (now + 0.001, "b0", "Report.end", f"{ids} SPAN.ID={n * 20 + 15} STATUS=1")]
            causes = [c for c in self.diagnosed_of(records, options=())["causes"] if c["cause"] == "failures"]
            for c in causes:
                self.assertTrue(c["host"] in (None, "b0") and "explained" in c and c["explained"] <= 1, c)
                self.assertNotIn("at this time", json.dumps(c))

    def test_partial_failures(self):
        """A step fails, but the request succeeds: a fault if one host fails, or if nearly all visits fail. A few failures show neither."""
        for name, fails, expected in (("one host", lambda c, n: c.random() < (0.4 if n % 3 == 1 else 0.02), [("failures", "Store0", "b1")]),
                                      ("one host, few requests", lambda c, n: n % 3 == 1 and c.random() < 0.1, [("failures", "Store0", "b1")]),
                                      ("all hosts", lambda c, n: c.random() < 0.1, []), ("few of many steps", lambda c, n: c.random() < 0.1, []),
                                      ("nearly all", lambda c, n: c.random() < 0.7, [("failures", "Store0", None)]),
                                      ("half", lambda c, n: c.random() < 0.5, [])):
            for seed in 1, 2, 3:
                with self.subTest(name, seed=seed):
                    chance, at, records = random.Random(seed), 0.0, []
                    for n in range(900 if name == "one host, few requests" else 300):
                        at += 0.02 + chance.expovariate(20)
                        host, step = f"b{n % 3 if name not in ('nearly all', 'half') else 0}", chance.randrange(30) if name == "few of many steps" else 0
                        begin = at + 0.001 * chance.lognormvariate(0, 0.3)
                        end = begin + 0.005 * chance.lognormvariate(0, 0.3)
                        root, part = f"TRACE.ID={n} SPAN.ID={2 * n}", f"TRACE.ID={n} SPAN.ID={2 * n + 1} PARENT.ID={2 * n}"
                        records += [(at, "a", "Job.start", root), (begin, host, f"Store{step}.start", part),
                                    (end, host, f"Store{step}.end", f"{part} STATUS={int(fails(chance, n))}"), (end + 0.001, "a", "Job.end", f"{root} STATUS=0")]
                    causes = self.diagnosed_of(records, options=())["causes"]
                    self.assertEqual([(c["cause"], c["span"], c["host"]) for c in causes if c["cause"] == "failures"], expected)

    def test_shared_queue(self):
        """Workers on 40 hosts share two places. If one host holds its place for longer, the requests of all hosts wait."""
        for slow in False, True:
            with self.subTest(slow=slow):
                chance, at, records, free = random.Random(6), 0.0, [], [0.0, 0.0]
                for n in range(1200):
                    at += chance.expovariate(150 if slow else 110)
                    host = f"h{chance.randrange(40)}"
                    place = free.index(min(free))
                    begin = max(at + 0.0002, free[place])
                    free[place] = begin + (0.1 if slow and host == "h2" else 0.006 if slow else 0.0155) * chance.lognormvariate(0, 0.3)
                    records += [(at, host, "Want", f"ID={n}"), (begin, host, "Work.start", f"ID={n}"), (free[place], host, "Work.end", f"ID={n}")]
                first = self.first_of(records)
                if slow:  # the waits on all hosts would end if this host were not slow
                    self.assertEqual((first["cause"], first["host"]), ("peer", "h2"))
                    self.assertGreater(first["share"], 0.5)
                else:
                    self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("pool", "Want", "Work.start"))
                    self.assertIn("a pool of 2 that the hosts share", first["title"])

    def test_targets_in_turn(self):
        """A gateway works, and then calls one of three backends, in turn. The ends of its work at one backend are at regular times, but there is no queue.
        If the gateway has a pool of three connections, requests wait for a connection."""
        for pool in False, True:
            with self.subTest(pool=pool):
                chance, at, records, free, calls = random.Random(1), 0.0, [], [0.0] * 3, []
                for n in range(900):
                    at += chance.expovariate(130 if pool else 40)
                    served = 0.02 * chance.lognormvariate(0, 0.3)
                    if pool:
                        place = free.index(min(free))
                        begin = max(at + 0.0005, free[place])
                        free[place] = begin + served
                    else:
                        begin = at + 0.1 * chance.lognormvariate(0, 0.8) * (1 + 3 * (chance.random() < 0.3))
                    calls.append((begin, served, n))
                    records.append((at, "gateway", "Accept", f"ID={n}"))
                for k, (begin, served, n) in enumerate(sorted(calls)):
                    records += [(begin, f"b{k % 3}", "Serve.start", f"ID={n}"), (begin + served, f"b{k % 3}", "Serve.end", f"ID={n}")]
                causes = self.diagnosed_of(records)["causes"]
                if not pool:
                    self.assertEqual([cause["title"] for cause in causes], [])
                    continue
                self.assertEqual((causes[0]["cause"], causes[0]["from_event"], causes[0]["to_event"]), ("pool", "Accept", "Serve.start"))
                self.assertIn("a pool of 3", causes[0]["title"])

    # ---- processes ----

    def diagnosed_processes(self, cost, names, seed=1, count=2400, rate=60.0, choose=None):
        """Writes requests that one of several processes executes, and diagnoses them. `cost` returns the seconds that a request takes in a process
        (its key in `names`, which is a pair of a host and a number), from the source of chance, the time and the key."""
        chance, records, at = random.Random(seed), [], 0.0
        for i in range(count):
            at += chance.expovariate(rate)
            key = choose(i) if choose else chance.choice(sorted(names))
            begin = at + 0.0004 * chance.lognormvariate(0, 0.2)
            end = begin + cost(chance, begin, key)
            records += [(at, "front", "gate", "Ask", i), (begin, key[0], names[key], "Compute.start", i), (end, key[0], names[key], "Compute.end", i),
                        (end + 0.0004 * chance.lognormvariate(0, 0.2), "front", "gate", "Answer", i)]
        return self.diagnosed_programs(records)

    def diagnosed_programs(self, records):
        """records: seconds, host, program, event, ID."""
        path = self.scratch / "programs.log"
        simulate.write_lines(path, ((at, f"HOST={host} PROG={program} LVL=Usage NL.EVNT={event} ID={number}")
                                    for at, host, program, event, number in sorted(records)))
        return self.diagnosed("--id", "ID", path)

    def test_processes_with_numbers(self):
        """The processes of a program have one place, and are compared with each other. A process or a host that is slow is named."""
        keys = [(f"w{h}", k) for h in (1, 2, 3) for k in range(4)]
        styles = {"worker*-*": {(h, k): f"worker{h[1:]}-{k}" for h, k in keys},
                  "gunicorn.*": {(h, k): f"gunicorn.{int(h[1:]) * 113 + k * 19}" for h, k in keys},
                  "api-*": {(h, k): f"api-7c9f5d8b6-{h[1:]}{'bcdf'[k]}x2z".replace("1", "k").replace("3", "q") for h, k in keys}}
        for pattern, names in styles.items():
            for slow in support.representative((None, "process", "host"), (None, "process") if pattern == "worker*-*" else ("host",)):
                with self.subTest(pattern=pattern, slow=slow):
                    found = self.diagnosed_processes(lambda c, at, key: 0.02 * c.lognormvariate(0, 0.4) * (
                        4 if (slow == "process" and key == ("w2", 1)) or (slow == "host" and key[0] == "w2") else 1), names)
                    self.assertIn(pattern, [place["program"] for place in found["places"]])
                    if not slow:
                        self.assertEqual(found["verdict"], "healthy", found["answer"])
                        continue
                    first = found["causes"][0]
                    self.assertEqual((first["cause"], first["host"], first["program"], first.get("process")),
                                     ("peer", "w2", pattern, names["w2", 1] if slow == "process" else None))
                    self.assertIn(f"{names['w2', 1] if slow == 'process' else 'w2'} is slower than its peers", first["title"])

    def pipeline_of_processes(self, name, work=lambda chance, step, process: 0.004 * chance.lognormvariate(0, 0.4), one_store=False, sensors=()):
        """Writes messages that pass four programs, one after another, and diagnoses them. Processes with names of their own execute two of the programs.
        The clocks of the hosts differ by up to 0.8 ms, and a message on the network takes 0.2 ms or more. `work` returns the seconds of a step. If
        `one_store` is true, the last program handles one message at a time."""
        chance, at, free, records = random.Random(11), 0.0, 0.0, list(sensors)
        ahead = {"m1": 0.0, "m2": 0.0003, "p1": -0.0004, "p2": 0.0004, "e1": -0.0003, "e2": 0.0001, "t1": -0.0004}
        for i in range(3000):
            at += chance.expovariate(80)
            now, k = at, chance.randrange(4)
            for step, host, program in (("Receive", f"m{chance.randrange(1, 3)}", "broker"), ("Parse", f"p{k // 2 + 1}", f"parser-{k}"),
                                        ("Enrich", f"e{chance.randrange(1, 3)}", f"enricher.{chance.randrange(300, 303)}"), ("Store", "t1", "store")):
                begin = now + (0.0002 * chance.lognormvariate(0, 0.3) if step != "Receive" else 0)
                begin = max(begin, free) if one_store and step == "Store" else begin
                now = begin + work(chance, step, program)
                free = now if step == "Store" else free
                records.append((now + ahead[host], f"HOST={host} PROG={program} LVL=Usage NL.EVNT={step} ID={i} DUR={now - begin:.6f}"))
        path = self.scratch / f"{name}.log"
        simulate.write_lines(path, sorted(records))
        found = self.diagnosed("--id", "ID", path)
        shares = collections.Counter()
        for place in found["places"]:
            shares[place.get("span"), place["program"]] += place["share"]
        return found, shares

    def test_clocks_that_reverse_messages_between_processes(self):
        """Each span has its time, although the clocks reverse the order of many messages. The causes are those of the spans."""
        found, shares = self.pipeline_of_processes("healthy")
        self.assertEqual((found["verdict"], found["causes"]), ("healthy", []), found["answer"])
        for place in ("Receive", "broker"), ("Parse", "parser-*"), ("Enrich", "enricher.*"), ("Store", "store"):
            self.assertTrue(0.2 < shares[place] < 0.28, (place, shares))
        slow = lambda chance, step, program: 0.004 * chance.lognormvariate(0, 0.4) * (5 if program == "parser-2" else 1)
        first = self.pipeline_of_processes("process", slow)[0]["causes"][0]
        self.assertEqual((first["cause"], first["host"], first.get("process")), ("peer", "p2", "parser-2"), first["title"])

    def test_lock_between_hosts_is_no_clock_error(self):
        """Messages wait for a server that handles one at a time. How long a message waits varies, so no clock error explains it."""
        first = self.pipeline_of_processes("lock", lambda chance, step, program: (0.007 if step == "Store" else 0.004) * chance.lognormvariate(0, 0.3), True)[0]["causes"][0]
        self.assertEqual((first["cause"], first["program"]), ("lock", "store"), first["title"])

    def test_stray_retransmissions_are_no_cause(self):
        """Large messages take longer. A few retransmissions at other times do not explain this, but explain messages that are slow at these times."""
        for lossy in False, True:
            chance, at, records = random.Random(3), 0.0, []
            for second in range(38):
                for host in "p1", "p2", "e1":
                    again = 9 if lossy and 10 <= second < 22 and host != "e1" else int(chance.random() < 0.1)
                    records.append((1.0 * second, f"HOST={host} PROG=nlsensor LVL=System NL.EVNT=TcpSegments TCP.RETRANS={again} TCP.OUT=50"))
            for i in range(3000):
                at += chance.expovariate(80)
                host, kb = chance.choice(("p1", "p2")), chance.lognormvariate(0, 0.7)
                begin = at + 0.002 * chance.lognormvariate(0, 0.2)
                arrival = begin + (0.024 if lossy and 9 <= at < 21 else 0.004) * kb * chance.lognormvariate(0, 0.2)
                program, end = f"HOST={host} PROG=parser LVL=Usage", arrival + 0.002 * chance.lognormvariate(0, 0.2)
                records += [(at, f"{program} NL.EVNT=Parse.start ID={i} BYTES={1000 * kb:.0f}"), (begin, f"{program} NL.EVNT=Parse.end ID={i}"),
                            (arrival, f"HOST=e1 PROG=enrich LVL=Usage NL.EVNT=Enrich.start ID={i}"),
                            (end, f"HOST=e1 PROG=enrich LVL=Usage NL.EVNT=Enrich.end ID={i}")]
            path = self.scratch / "retransmissions.log"
            simulate.write_lines(path, sorted(records))
            causes = self.diagnosed("--id", "ID", path)["causes"]
            self.assertEqual("loss" in [cause["cause"] for cause in causes], lossy, [cause["title"] for cause in causes])

    def test_process_that_stops(self):
        """One process stops now and then, and the other processes of its host continue."""
        names = {(f"w{h}", k): f"worker{h}-{k}" for h in (1, 2) for k in range(3)}
        stops = [1.5 + 2.1 * n + 0.4 * (n % 3) for n in range(15)]

        def cost(chance, at, key):
            taken = 0.03 * chance.lognormvariate(0, 0.3)
            for stop in stops if key == ("w1", 2) else []:
                if stop <= at < stop + 0.5:
                    taken += stop + 0.5 - at
                elif at < stop < at + taken:
                    taken += 0.5
            return taken
        first = self.diagnosed_processes(cost, names, rate=70)["causes"][0]
        self.assertEqual((first["cause"], first["host"], first.get("process")), ("pause", "w1", "worker1-2"))
        self.assertIn("worker1-2 on w1 stops now and then", first["title"])

    def test_steps_with_numbers(self):
        """Programs with numbers that requests visit one after another, or one inside the other, are not processes of one program."""
        for nested in False, True:
            with self.subTest(nested=nested):
                chance, records, at = random.Random(3), [], 0.0
                for i in range(1200):
                    at += chance.expovariate(10)
                    one, two = 0.01 * chance.lognormvariate(0, 0.3), 0.04 * chance.lognormvariate(0, 0.3)
                    second = at + 0.3 * one if nested else at + one + 0.0003
                    records += [(at, "h", "stage1", "Work.start", i), (at + one + (two if nested else 0), "h", "stage1", "Work.end", i),
                                (second, "h", "stage2", "Work.start", i), (second + two, "h", "stage2", "Work.end", i)]
                found = self.diagnosed_programs(records)
                self.assertEqual((found["verdict"], found["causes"]), ("healthy", []))
                programs = {place["program"] for place in found["places"]}
                self.assertTrue({"stage1", "stage2"} <= programs, programs)

    def test_many_steps_with_numbers(self):
        """nldiag does not know the order of so many programs, and therefore does not treat them as processes of one program."""
        chance, records = random.Random(8), []
        for i in range(60):
            at = 3.0 * i
            for step in range(1, 81):
                taken = 0.01 * chance.lognormvariate(0, 0.2) * (4 if step == 7 else 1)
                records += [(at, "h", f"stage{step}", "Work.start", i), (at + taken, "h", f"stage{step}", "Work.end", i)]
                at += taken + 0.0001
        programs = {place["program"] for place in self.diagnosed_programs(records)["places"]}
        self.assertIn("stage7", programs)
        self.assertFalse([name for name in programs if "*" in name])

    def test_steps_with_several_processes(self):
        """Each step has several processes, whose names contain the numbers of the step and of the process."""
        chance, records, at = random.Random(4), [], 0.0
        for i in range(2000):
            at += chance.expovariate(20)
            now = at
            for step, mean in (1, 0.01), (2, 0.04):
                name, taken = f"stage{step}-{chance.randrange(3)}", mean * chance.lognormvariate(0, 0.3)
                records += [(now, "h", name, "Work.start", i), (now + taken, "h", name, "Work.end", i)]
                now += taken + 0.0003
        found = self.diagnosed_programs(records)
        self.assertEqual(found["causes"], [])
        self.assertEqual({place["program"] for place in found["places"]}, {"stage1-*", "stage2-*"})

    def test_processes_with_one_thread(self):
        """Each process serves one request at a time, and requests wait for their process."""
        names, free = {("w1", k): f"worker-{k}" for k in range(8)}, {}

        def cost(chance, at, key):
            begin = max(at, free.get(key, 0))
            free[key] = begin + 0.04 * chance.lognormvariate(0, 0.3)
            return free[key] - at
        first = self.diagnosed_processes(cost, names, rate=120)["causes"][0]
        self.assertEqual((first["cause"], first["program"], first.get("span")), ("lock", "worker-*", "Compute"))

    def test_processes_of_a_chrome_trace(self):
        """A trace of one machine names its processes. The slow process is named, and a lock of each process is found."""
        for slow, locked in (None, False), (2, False), (None, True):
            with self.subTest(slow=slow, locked=locked):
                chance, at, events, free = random.Random(3), 0.0, [], {}
                events += [{"name": "process_name", "ph": "M", "pid": 70 + k, "args": {"name": f"tiler-{k}"}} for k in range(5)]
                for i in range(2000):
                    at += chance.expovariate(160)
                    k, begin = chance.randrange(5), at + 0.002 * chance.lognormvariate(0, 0.3)
                    work = 0.02 * chance.lognormvariate(0, 0.4) * (3 if k == slow else 1)
                    free[k] = (max(begin, free.get(k, 0)) if locked else begin) + work
                    for name, start, end in ("serve", at, free[k] + 0.0005), ("draw", begin, free[k]):
                        events.append({"name": name, "ph": "X", "pid": 70 + k, "tid": 1000 + i, "ts": round(start * 1e6), "dur": round((end - start) * 1e6)})
                path = self.scratch / "trace.json"
                path.write_text(json.dumps({"traceEvents": events}))
                found = self.diagnosed(path)
                if not slow and not locked:
                    self.assertEqual(found["verdict"], "healthy", found["answer"])
                    continue
                first = found["causes"][0]
                self.assertEqual((first["cause"], first["span"], first["program"], first.get("process")),
                                 ("lock", "draw", "tiler-*", None) if locked else ("peer", "draw", "tiler-*", "tiler-2"))
                self.assertNotIn("on  ", first["title"])

    def test_peers_that_are_slow_for_a_time(self):
        """A host that becomes slow is named with the time. If all hosts become slow for a time, no host is named."""
        for slow_hosts in (), ("b2",), ("b1", "b2", "b3"):
            with self.subTest(slow_hosts=slow_hosts):
                cost = lambda c, at, n, h: 0.02 * c.lognormvariate(0, 0.5) * (4 if h in slow_hosts and 20 <= at < 32 else 1)
                found = self.diagnosed_of(self.requests(cost, count=2000, rate=50))
                if not slow_hosts:
                    self.assertEqual(found["verdict"], "healthy", found["answer"])
                    continue
                first = found["causes"][0]
                if len(slow_hosts) > 1:
                    self.assertEqual((first["cause"], first["host"]), ("changed", None))
                    continue
                self.assertEqual((first["cause"], first["host"]), ("peer", "b2"))
                begin, end = (float(text) for text in re.search(r"b2 is slower than its peers from ([0-9.]+) s to ([0-9.]+) s after", first["title"]).groups())
                self.assertLess(abs(begin - 20) + abs(end - 32), 4, first["title"])

    def test_lock_behind_a_message(self):
        """Requests wait for a lock on the host that receives a message. A wrong clock cannot make messages wait for each other."""
        chance, at, free, records = random.Random(4), 0.0, 0.0, []
        for n in range(2000):
            at += chance.expovariate(100)
            arrival = at + 0.0004 * chance.lognormvariate(0, 0.3)
            free = max(free, arrival) + 0.007 * chance.lognormvariate(0, 0.3)
            records += [(at, "a", "front", "Ask", n), (free - 0.0001, "b", "store", "Stored", n), (free + 0.0004 * chance.lognormvariate(0, 0.3), "a", "front", "Answer", n)]
        first = self.diagnosed_programs(records)["causes"][0]
        self.assertEqual((first["cause"], first["from_event"], first["to_event"], first["host"]), ("lock", "Ask", "Stored", "b"))
        self.assertGreater(first["sure"], 0.7)

    def test_pool_of_the_caller(self):
        """Each web server has a pool of two connections to one database. A request waits for a connection, and keeps it until the answer arrives."""
        for pool in 2, 1000:
            with self.subTest(pool=pool):
                chance, records, at, free = random.Random(5), [], 0.0, {host: [0.0] * pool for host in ("web1", "web2")}
                for i in range(1500):
                    at += chance.expovariate(75 if pool == 2 else 30)
                    host = chance.choice(sorted(free))
                    connections = free[host]
                    place = connections.index(min(connections))
                    begin = max(at + 0.001, connections[place]) + 0.0003 * chance.lognormvariate(0, 0.2)
                    end = begin + 0.04 * chance.lognormvariate(0, 0.5)
                    connections[place] = end + 0.0003
                    records += [(at, host, "web", "Page.start", i), (at + 0.001, host, "web", "Call.start", i), (begin, "db1", "db", "Select.start", i),
                                (end, "db1", "db", "Select.end", i), (end + 0.0003, host, "web", "Call.end", i), (end + 0.002, host, "web", "Page.end", i)]
                found = self.diagnosed_programs(records)
                if pool > 2:
                    self.assertEqual(found["causes"], [])
                    continue
                first = found["causes"][0]
                self.assertEqual((first["cause"], first.get("from_event"), first.get("to_event")), ("pool", "Call.start", "Select.start"))
                self.assertIn("a pool of 2", first["title"])

    def test_time_outs_of_several_operations(self):
        """Operations with different times are not evidence of a timeout, but waits of the same length in most operations are."""
        for wait in 0, 0.5:
            with self.subTest(wait=wait):
                chance, records, at = random.Random(6), [], 0.0
                for i in range(1800):
                    at += chance.expovariate(10)
                    kind = chance.randrange(3)
                    taken = (0.01, 0.02, 0.06)[kind] * chance.lognormvariate(0, 0.3) + (wait if chance.random() < 0.1 else 0)
                    records += [(at, "h", "Fetch.start", f"ID={i} OP={'abc'[kind]}"), (at + taken, "h", "Fetch.end", f"ID={i}")]
                causes = [cause for cause in self.diagnosed_of(records)["causes"] if cause["cause"] == "timeout"]
                self.assertEqual([cause["span"] for cause in causes], ["Fetch"] if wait else [])
                if wait:
                    self.assertRegex(causes[0]["title"], r"Fetch of p sometimes takes (49\d|50\d) ms longer")

    def test_few_long_visits_for_an_unknown_reason(self):
        """A few visits take very long, and nothing in the log goes with them. The log is not called healthy."""
        for late in False, True:
            with self.subTest(late=late):
                chance, records = random.Random(9), []
                for i in range(1500):
                    taken = 0.02 * chance.lognormvariate(0, 0.3) + (0.3 * chance.lognormvariate(0, 1) if late and chance.random() < 0.04 else 0)
                    records += [(i + chance.random(), "h", "Work.start", f"ID={i}")]
                    records += [(records[-1][0] + taken, "h", "Work.end", f"ID={i}")]
                found = self.diagnosed_of(records)
                self.assertEqual(found["causes"], [])
                self.assertRegex(found["answer"], r"^cannot tell: some visits to Work of p take more than 4 times as long as usual" if late else "^healthy")

    def test_messages_that_wait_for_an_unknown_reason(self):
        """Some messages between two hosts take long, and nothing in the log goes with these times. The log is not called healthy."""
        for late in 0.0, 0.2:
            with self.subTest(late=late):
                chance, records = random.Random(7), []
                for i in range(1500):
                    at = i * 0.1 + 0.04 * chance.random()
                    sent = at + 0.04 * chance.lognormvariate(0, 0.3)
                    received = sent + 0.0005 * chance.lognormvariate(0, 0.2) + late * (chance.random() < 0.2) * chance.lognormvariate(0, 1)
                    records += [(at, "h1", "Prepare.start", f"ID={i}"), (sent, "h1", "Prepare.end", f"ID={i}"), (received, "h2", "Store.start", f"ID={i}"),
                                (received + 0.05 * chance.lognormvariate(0, 0.3), "h2", "Store.end", f"ID={i}")]
                found = self.diagnosed_of(records)
                self.assertEqual(found["causes"], [])
                self.assertRegex(found["answer"], r"^cannot tell: Prepare.end -> Store.start of p sometimes takes much longer, which costs \d+ % of the" if late
                                 else "^healthy")

    def test_pool_that_requests_visit_repeatedly(self):
        """Each request makes five calls, one after the other. Each of the two workers is busy in both steps of a
        call."""
        chance, at, records, free, calls = random.Random(6), 0.0, [], [0.0, 0.0], []
        for n in range(300):
            at += chance.expovariate(22)
            calls.append((at, n, 0))
            records.append((at, "c", "Handle.start", f"PROG=client TRACE.ID={n} SPAN.ID=r{n}"))
        heapq.heapify(calls)
        while calls:
            now, n, k = heapq.heappop(calls)
            place = free.index(min(free))
            begin = max(now + 0.0003, free[place])
            middle = begin + 0.008 * chance.lognormvariate(0, 0.3)
            end = free[place] = middle + 0.008 * chance.lognormvariate(0, 0.3)
            call, below = f"PROG=client TRACE.ID={n} SPAN.ID=c{n}.{k} PARENT.ID=r{n}", f"PROG=worker TRACE.ID={n} PARENT.ID=c{n}.{k}"
            records += [(now, "c", "Call.start", call), (begin, "w", "Load.start", f"{below} SPAN.ID=l{n}.{k}"), (middle, "w", "Load.end", f"{below} SPAN.ID=l{n}.{k}"),
                        (middle, "w", "Save.start", f"{below} SPAN.ID=s{n}.{k}"), (end, "w", "Save.end", f"{below} SPAN.ID=s{n}.{k}"), (end + 0.0003, "c", "Call.end", call)]
            if k < 4:
                heapq.heappush(calls, (end + 0.001 * chance.lognormvariate(0, 0.3), n, k + 1))
            else:
                records.append((end + 0.001, "c", "Handle.end", f"PROG=client TRACE.ID={n} SPAN.ID=r{n}"))
        path = self.scratch / "repeated.log"
        simulate.write_lines(path, ((at, f"HOST={host} LVL=Usage NL.EVNT={event} {fields}") for at, host, event, fields in sorted(records, key=lambda record: record[0])))
        first = self.diagnosed(path)["causes"][0]
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("pool", "Call.start", "Load.start"))
        self.assertIn("a pool of 2)", first["title"])

    # ---- access logs ----

    URLS = (("/", 0.004, 6), ("/api/items/{}", 0.02, 4), ("/api/items/{}/reviews?page=2", 0.05, 2), ("/search?q={}", 0.12, 1), ("/img/{}.jpg", 0.008, 5))

    def access_log(self, slower=lambda host, at: 1, seconds_per_byte=0.0, seed=1, count=1500):
        """Writes one record for each request to one of three servers. The URL determines most of the time and of the size."""
        chance, at, path = random.Random(seed), 0.0, self.scratch / "access.log"
        lines = []
        for n in range(count):
            at += chance.expovariate(50)
            host, (url, cost, _) = f"web{n % 3}", chance.choices(self.URLS, [weight for _, _, weight in self.URLS])[0]
            size = int(40000 * cost / 0.02 * chance.lognormvariate(0, 0.8))
            taken = cost * chance.lognormvariate(0, 0.3) * slower(host, at) + size * seconds_per_byte
            lines.append((at + taken, f"HOST={host} PROG=nginx LVL=Usage method=GET uri={url.format(chance.randrange(10, 9999))} bytes={size} request_time={taken:.3f}"))
        simulate.write_lines(path, sorted(lines))
        return path

    def test_access_log_with_a_slow_server(self):
        """The times are compared within each URL, without its query and numbers, because some URLs always take longer."""
        first = self.diagnosed(self.access_log(lambda host, at: 2 if host == "web1" else 1), status=FINDING)["causes"][0]
        self.assertEqual((first["cause"], first["host"]), ("peer", "web1"))
        times = collections.defaultdict(list)
        for line in (self.scratch / "access.log").read_text().splitlines():
            times[re.search(r"HOST=(\S+)", line)[1] == "web1"].append(float(line.rpartition("=")[2]))
        here, elsewhere = map(float, re.search(r"a visit takes ([0-9.]+) ms on web1, and ([0-9.]+) ms on the other hosts", first["evidence"][0]).groups())
        self.assertAlmostEqual(here, 1000 * sum(times[True]) / len(times[True]), delta=0.2)  # logged times, not times after the operations were evened out
        self.assertAlmostEqual(elsewhere, 1000 * sum(times[False]) / len(times[False]), delta=0.2)

    def test_access_log_that_becomes_slow(self):
        first = self.diagnosed(self.access_log(lambda host, at: 2 if at > 15 else 1), status=FINDING)["causes"][0]
        self.assertEqual(first["cause"], "changed")

    def test_access_log_with_ordinary_times(self):
        for seed in 1, 2, 3:
            self.assertEqual([c["title"] for c in self.diagnosed(self.access_log(seed=seed), status=HEALTHY)["causes"] if not c["ordinary"]], [])

    def log_of_proxy(self, seed, more=lambda chance: 0.0, slower=lambda uri, at: 1, count=4000):
        """Writes an access log. A cache answers most requests. The other times have wide distributions, which differ between the URLs."""
        chance, at, lines = random.Random(seed), 0.0, []
        for _ in range(count):
            at += chance.expovariate(50)
            uri, cost, cached = chance.choices((("/items/{}", 0.04, True), ("/search", 0.09, False), ("/report/{}", 0.3, False)), (60, 30, 8))[0]
            hit = cached and chance.random() < 0.7
            taken = 0.002 * chance.lognormvariate(0, 0.4) + (0 if hit else cost * slower(uri, at) * chance.lognormvariate(0, 0.8) + more(chance))
            lines.append((at + taken, f"HOST=web{chance.randrange(3)} PROG=nginx LVL=Usage method=GET uri={uri.format(chance.randrange(10, 9999))} "
                          f"cache={'HIT' if hit else 'MISS' if cached else '-'} request_time={taken:.3f}"))
        path = self.scratch / "proxy.log"
        simulate.write_lines(path, sorted(lines))
        return path

    def test_access_log_with_kinds_of_requests(self):
        """Requests that take much longer than others of their URL are no missing evidence if the kind of request and the usual spread explain them."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                self.assertEqual(self.faults_of(self.log_of_proxy(seed))[1]["verdict"], "healthy")

    def test_access_log_with_long_requests(self):
        """A few requests take seconds, and nothing in the log goes with them."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                found = self.diagnosed(self.log_of_proxy(seed, lambda chance: chance.uniform(1, 3) if chance.random() < 0.02 else 0))
                self.assertNotEqual(found["verdict"], "healthy")

    def test_constant_delays_among_kinds_of_requests(self):
        """A few requests of all kinds take 3 s longer. Rare long work takes different times."""
        for name, more, cause in (("delay", lambda chance: 3 * (chance.random() < 0.012), "timeout"),
                                  ("long work", lambda chance: 3 * chance.lognormvariate(0, 0.5) * (chance.random() < 0.012), None),
                                  ("very long work", lambda chance: min(60, 0.2 * chance.paretovariate(1)) * (chance.random() < 0.05), None)):
            for seed in 1, 2, 3:
                with self.subTest(name, seed=seed):
                    found = self.diagnosed(self.log_of_proxy(seed, more))
                    causes = [c["cause"] for c in found["causes"] if not c["ordinary"]]
                    self.assertEqual(causes[:1], [cause] if cause else [])
                    self.assertNotEqual(found["verdict"], "healthy")

    def test_rare_losses_on_the_way_to_a_host(self):
        """TCP sends few of the messages to one host again, after 200 ms, 1 s or 3 s."""
        for delay in 0.2, 1, 3:
            chance, records = random.Random(5), []
            for i in range(2400):
                host, at = f"b{chance.randrange(4)}", i * 0.1
                lost = host == "b2" and chance.random() < (0.1 if delay < 1 else 0.03)
                for event, here, after in (("Call.start", "a", 0), ("Work.start", host, 0.0003 * chance.lognormvariate(0, 0.3) + lost * (delay + chance.uniform(0, 0.004))),
                                           ("Work.end", host, 0.02 * chance.lognormvariate(0, 0.5)), ("Call.end", "a", 0.0003 * chance.lognormvariate(0, 0.3))):
                    at += after
                    span = "SPAN.ID=c" if "Call" in event else "SPAN.ID=w PARENT.ID=c"
                    records.append((at, here, event, f"TRACE.ID={i} {span}"))
            with self.subTest(delay=delay):
                first = self.diagnosed_of(sorted(records), options=())["causes"][0]
                self.assertEqual((first["cause"], first["host"]), ("timeout", "b2"), first["title"])

    def test_link_of_one_host(self):
        """Messages of ten edges touch a host whose link loses few packets. Each edge has too few losses to show a cause."""
        for delay, cause, count in (1, "timeout", 2500), (1, "timeout", 6000), (0.04, "timer", 2500), (0, None, 2500):
            chance, records = random.Random(7), []
            steps = [(f"{name}{n}", host) for n in range(3) for name, host in (("Ask", "app"), ("Work", "db"), ("Answer", "app"))]
            for i in range(count):
                at, hosts, before = i * 0.2, {"app": f"app{chance.randrange(3)}", "db": f"db{chance.randrange(2)}"}, None
                for name, kind in steps:
                    lost = hosts["app"] == "app2" and before not in (None, kind) and chance.random() < (0.004 if delay > 0.1 else 0.06)
                    at += 0.0004 * chance.lognormvariate(0, 0.3) + lost * (delay + chance.uniform(0, 0.001))
                    records.append((at, hosts[kind], name, f"ID={i}"))
                    at += 0.004 * chance.lognormvariate(0, 0.4)
                    records.append((at, hosts[kind], f"{name}.Done", f"ID={i}"))
                    before = kind
            with self.subTest(delay=delay, count=count):
                found = self.diagnosed_of(sorted(records))
                self.assertEqual([(c["cause"], c["host"]) for c in found["causes"][:1]], [(cause, "app2")] if cause else [], found["answer"])
                for c in found["causes"][:1]:  # although nldiag examines only 4096 visits of each edge
                    self.assertAlmostEqual(c["gain"], c["share"], delta=0.1 * c["share"])

    def test_pauses_without_a_program(self):
        """The records of an access log do not name the program. The title names the event and the host instead."""
        chance, at, lines = random.Random(1), 0.0, []
        for _ in range(4000):
            at += chance.expovariate(60)
            host, taken = f"web{chance.randrange(3)}", 0.02 * chance.lognormvariate(0, 0.4)
            end = at + taken
            if host == "web1" and end % 4 < 0.6 + taken and at % 4 < 0.6 and end > 4:
                end = end // 4 * 4 + 0.6 + taken
            lines.append((end, f"HOST={host} LVL=Usage NL.EVNT=request REQUEST_TIME={end - at:.3f}"))
        path = self.scratch / "nameless.log"
        simulate.write_lines(path, sorted(lines))
        (first, *_), _ = self.faults_of(path)
        self.assertEqual((first["cause"], first["host"]), ("pause", "web1"))
        self.assertRegex(first["title"], r"time: request on web1 stops (now and then|every )")

    # ---- spans without parents ----

    def without_parents(self, path):
        """Rewrites a log with explicit spans: one record for each span, with its duration and the request's ID, but without a parent."""
        begins, records = {}, []
        for line in path.read_text().splitlines():
            fields = dict(field.split("=", 1) for field in line.split())
            at = datetime.datetime.strptime(fields.pop("DATE"), "%Y%m%d%H%M%S.%f")
            trace, span = fields.pop("TRACE.ID"), fields.pop("SPAN.ID")
            fields.pop("PARENT.ID", None)
            name, _, side = fields.pop("NL.EVNT").rpartition(".")
            if side == "start":
                begins[span] = at, fields
                continue
            begin, more = begins[span]
            text = " ".join(f"{key}={value}" for key, value in {**fields, **more}.items())
            records.append(f"DATE={at:%Y%m%d%H%M%S.%f} NL.EVNT={name} ID={trace} DUR={(at - begin).total_seconds():.6f} {text}")
        other = self.scratch / "whole.log"
        other.write_text("\n".join(records) + "\n")
        return other

    def span_shares(self, path):
        """The share of each span in the requests' time, and the sum of all other shares."""
        result = self.run_program(support.program("nltools/nlstat"), "--json", path)
        shares = collections.Counter()
        for row in json.loads(result.stdout)[0]["rows"]:
            shares[row.get("span") if row["kind"] == "span" else None] += row["share"]
        return shares

    def test_spans_without_parents(self):
        """If one record describes each span, without a parent, nldiag finds the parents from the times of the spans."""
        runs = [("slow-host", 2), ("timeout", 2), ("pool", 1), ("pause-periodic", 105), ("calls", 2), ("lock", 1), ("value", 2), ("changed", 1), ("batch", 2)]
        for kind, seed in support.representative(runs, runs[:2]):
            with self.subTest(kind=kind, seed=seed):
                path, truth = self.run_of(kind, seed)
                path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "PROG=nlsensor" not in line))
                whole = self.without_parents(path)
                first = self.diagnosed(whole, status=FINDING)["causes"][0]
                self.assertTrue(score.is_right(first, truth), (truth, first))
                with_parents, found = self.span_shares(path), self.span_shares(whole)
                for span in {*with_parents, *found}:
                    self.assertAlmostEqual(with_parents[span], found[span], delta=0.01, msg=span)

    def test_many_children_without_parents(self):
        """One record describes each span. A span contains hundreds of calls, one after another; all of them are its children."""
        chance, lines, at = random.Random(8), [], 1.8e9
        for i in range(160):
            begin = now = at
            for _ in range(900 if i % 2 else 20):
                taken = 0.002 * chance.lognormvariate(0, 0.3)
                now += 0.0003 + taken
                lines.append((now, "db", "Query", taken, i))
            lines.append((now + 0.001, "web", "Handle", now + 0.001 - begin, i))
            at += 3
        path = self.scratch / "calls.log"
        path.write_text("".join(f"ts={datetime.datetime.fromtimestamp(end, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} event={event} level=Info host=h "
                                f"prog={program} id={i} dur={taken:.6f}\n" for end, program, event, taken, i in sorted(lines)))
        shares = {place.get("span"): place["share"] for place in self.diagnosed("--id", "id", path)["places"]}
        self.assertGreater(shares["Query"], 0.8)
        self.assertLess(shares["Handle"], 0.2)

    def test_concurrent_spans_without_parents(self):
        """The longer of two concurrent calls contains the shorter call in all requests, but does not make it. A message follows the end of the request."""
        chance, records = random.Random(3), []
        for i in range(400):
            at, ended = i * 0.5, []

            def add(program, name, begin, duration):
                ended.append(begin + duration)
                records.append((begin + duration, f"HOST={program} PROG={program} LVL=Usage NL.EVNT={name} ID={i} DUR={duration:.6f}"))
                return begin + duration

            work = [chance.lognormvariate(0, 0.3) for _ in range(8)]
            score_end = add("fraud", "score", at + 0.002 * work[0], 0.1 * work[1])
            limits_end = add("limits", "check", at + 0.004 + 0.002 * work[2], 0.01 * work[3])
            both = max(score_end, limits_end) + 0.001 * work[4]
            end = add("api", "pay", at, add("ledger", "write", both, 0.03 * work[5]) + 0.002 - at)
            add("notify", "send", end + 0.003 * work[6], 0.02 * work[7])
        path = self.scratch / "concurrent.log"
        simulate.write_lines(path, sorted(records))
        shares = self.span_shares(path)
        self.assertEqual(shares["check"], 0)  # the short call delays nothing
        self.assertAlmostEqual(shares["score"], 0.1 / 0.16, delta=0.05)
        self.assertAlmostEqual(shares["send"], 0.02 / 0.16, delta=0.03)
        self.assertNotIn("before", self.run_program(support.program("nltools/nlstat"), path).stdout)

    # ---- ordinary work ----

    def ordinary(self, cost, fields, status, count=600, **settings):
        """Diagnoses requests whose cost depends on their number. Returns the first cause."""
        found = self.diagnosed_of(self.requests(lambda chance, at, number, host: cost(number) * chance.lognormvariate(0, 0.3), count=count, fields=fields, **settings))
        self.assertEqual(found["verdict"], {HEALTHY: "healthy", FINDING: "finding"}[status], found["answer"])
        return found["causes"][0] if found["causes"] else None

    def jobs(self, cost, seed=1, count=900, more=lambda i: "", servers=4):
        """Writes jobs of servers, each with an amount of work whose values differ by a factor of 100."""
        chance, at, records = random.Random(seed), 0.0, []
        for i in range(count):
            at += chance.expovariate(0.5)
            host, amount = f"n{chance.randrange(servers)}", int(1e6 * chance.lognormvariate(0, 1))
            taken = cost(chance, host, amount)
            records += [(at, f"HOST={host} PROG=coder LVL=Usage NL.EVNT=Encode.start ID={i} {more(i)} " + (f"SIZE={amount}" if "audio" not in more(i) else "")),
                        (at + taken, f"HOST={host} PROG=coder LVL=Usage NL.EVNT=Encode.end ID={i}")]
        return records

    def diagnosed_records(self, records):
        path = self.scratch / "jobs.log"
        simulate.write_lines(path, sorted(records))
        return self.faults_of(path)

    def test_slow_host_with_amounts_of_work(self):
        """The amounts explain most of the variation. They hide neither a slow host nor a slow resource."""
        for slow in None, "n2":
            with self.subTest(slow=slow):
                faults, _ = self.diagnosed_records(self.jobs(lambda chance, host, amount: 0.02 + amount / 1e6 * chance.lognormvariate(0, 0.2) * (1.7 if host == slow else 1)))
                self.assertEqual([(c["cause"], c["host"]) for c in faults], [("peer", slow)] if slow else [])

    def test_products_of_amounts(self):
        """The time is proportional to two amounts. After the first explains a part of it, the rest also grows only in proportion to the second."""
        pages = [random.Random(n).lognormvariate(3, 0.8) for n in range(900)]
        for seed in 1, 2, 3:
            records = self.jobs(lambda chance, host, amount: 0.2 * chance.lognormvariate(0, 0.2), seed=seed)
            at = {}
            for i, (time, line) in enumerate(records):
                number = int(re.search(r" ID=(\d+)", line)[1])
                if ".start" in line:
                    at[number] = time, int(re.search(r"SIZE=(\d+)", line)[1])
                    records[i] = time, f"{line} PAGES={int(pages[number])}"
                else:
                    start, amount = at[number]
                    records[i] = start + (time - start) * amount / 1e6 * pages[number] / 20, line
            with self.subTest(seed=seed):
                self.assertEqual([c["title"] for c in self.diagnosed_records(records)[0]], [])

    def test_lengths_of_work(self):
        """A number with a unit of time in the records of the start is the length of a recording, not a part of the visit. A number of the end may be a part of it."""
        lengths = [random.Random(n).lognormvariate(3, 0.7) for n in range(600)]
        for where, status in ("start", HEALTHY), ("end", FINDING):
            records = []
            for i, length in enumerate(lengths):
                taken = length / 4 * random.Random(f"noise {i}").lognormvariate(0, 0.2)
                for at, event in (i * 3.0, "start"), (i * 3.0 + taken, "end"):
                    records.append((at, f"h{i % 3}", f"Encode.{event}", f"ID={i}" + (f" AUDIO.SECS={length / 20:.3f}" if event == where else "")))
            with self.subTest(where):
                found = self.diagnosed_of(records)
                self.assertEqual(found["verdict"], {HEALTHY: "healthy", FINDING: "finding"}[status], found["answer"])

    def test_busy_disk_that_slows_nothing(self):
        """Two of four servers write to a second disk all the time. They read as fast as the others."""
        for slow in False, True:
            records = self.jobs(lambda chance, host, amount: 1 * chance.lognormvariate(0, 0.3) * (4 if slow and host in ("n1", "n3") else 1))
            records += [(2.0 * i, f"HOST=n{n} PROG=nlsensor LVL=System NL.EVNT=DiskDevice DISK.NAME=sdb DISK.BUSY={95 if n % 2 else 3} DISK.WRITE.MS=9") for i in range(900) for n in range(4)]
            with self.subTest(slow=slow):
                self.assertEqual([c["cause"] for c in self.diagnosed_records(records)[0]], ["disk"] if slow else [])

    def test_amounts_of_work(self):
        """Time in proportion to a number is ordinary only if the number's name means an amount of work."""
        amounts = [random.Random(n).randrange(100, 5000) for n in range(600)]
        for names, status in ((("BYTES", "http.response.body_size", "rowCount", "DOCS.MATCHED", "CONTENT.LENGTH"), HEALTHY),
                              (("QUEUE.LENGTH", "RETRIES", "waitMs", "POOL.SIZE", "LEVEL", "queuedItems"), FINDING)):
            for name in names:
                with self.subTest(name):
                    first = self.ordinary(lambda n: amounts[n] / 5e4, lambda n: f"{name}={amounts[n]}", status)
                    self.assertEqual((first["cause"], first["field"], first["ordinary"]), ("size", name, status == HEALTHY))

    def test_amounts_that_go_with_kinds_of_work(self):
        """Requests with small replies take longer than requests with large replies. This is no fault, unless it is uneven."""
        for uneven in False, True:
            chance = random.Random(8)
            small = [chance.random() < (0.6 if uneven and n > 1300 else 0.25) for n in range(1800)]
            sizes = [chance.lognormvariate(6 if of else 9, 0.8) for of in small]
            first = self.ordinary(lambda n: 0.06 * small[n], lambda n: f"BYTES={sizes[n]:.0f}", FINDING if uneven else HEALTHY, 1800)
            if not uneven:
                self.assertEqual((first["cause"], first["field"], first["ordinary"]), ("size", "BYTES", True))
                self.assertIn("when BYTES is smaller", first["title"])

    def test_few_different_amounts(self):
        for share, status in (lambda n: n % 7 % 5, HEALTHY), (lambda n: 2 * (n % 7 % 5 == 2), FINDING):
            first = self.ordinary(lambda n: 0.02 * share(n), lambda n: f"ITEMS={1 + n % 7 % 5}", status)
            self.assertEqual((first["cause"], first["field"]), ("field", "ITEMS"))

    def test_uneven_amounts_of_work(self):
        """One of many hosts receives more work, or the amounts grow: time in proportion to the amount is a fault."""
        hosts = [f"b{i}" for i in range(30)]
        for name, factor in ("host", lambda n: 4 if n % 30 == 29 else 1), ("time", lambda n: 3 if n > 1400 else 1), ("even", lambda n: 1):
            with self.subTest(name):
                turn = iter(range(3000))
                amounts = [factor(n) * random.Random(n).lognormvariate(5, 0.5) for n in range(1800)]
                first = self.ordinary(lambda n: amounts[n] / 1e4, lambda n: f"ROWS={amounts[n]:.0f}", HEALTHY if name == "even" else FINDING, 1800,
                                      host_of=lambda chance: hosts[next(turn) % 30])
                if name == "even":
                    self.assertEqual((first["cause"], first["field"]), ("size", "ROWS"))

    def test_number_beside_a_lock(self):
        """A number that measures the waits for a lock does not hide the lock, and neither does any other number."""
        for name in "QUEUE.LENGTH", "WAIT.US", "LEVEL", "BYTES":
            with self.subTest(name):
                chance, at, free, records, ends = random.Random(3), 0.0, 0.0, [], []
                for number in range(500):
                    at += chance.expovariate(60)
                    ends = [end for end in ends if end > at]
                    begin = max(at, free)
                    free = begin + 0.012 * chance.lognormvariate(0, 0.25)
                    value = len(ends) if name != "WAIT.US" else round(1e6 * (begin - at))
                    records += [(at, "h", "Work.start", f"ID={number}"), (free, "h", "Work.end", f"ID={number} {name}={value}")]
                    ends.append(free)
                first = self.first_of(records)
                self.assertEqual((first["cause"], first["span"], first["ordinary"]), ("lock", "Work", False))

    def test_number_beside_a_time_out(self):
        tries = [random.Random(n).choices((0, 1, 2), (20, 2, 1))[0] for n in range(600)]
        for name in "RETRIES", "ATTEMPT":
            first = self.first_of(self.requests(lambda c, at, n, h: tries[n] * c.uniform(1, 1.001), count=600, fields=lambda n: f"{name}={tries[n]}"))
            self.assertEqual((first["cause"], first["span"]), ("timeout", "Work"))

    def test_misses_of_a_cache(self):
        """Misses are ordinary if they are equally frequent on all hosts and at all times. A column may name a cache, not a result."""
        missed = lambda n, share: random.Random(n).random() < share
        hosts = [f"b{i}" for i in range(20)]
        for name, share, fields, status in (
                ("even", lambda n: 0.15, {"CACHE": ("HIT", "MISS")}, HEALTHY),
                ("mostly misses", lambda n: 0.8, {"x-cache": ("Hit from front", "Miss from front")}, HEALTHY),
                ("truth values", lambda n: 0.15, {"cache_hit": ("true", "false")}, HEALTHY),
                ("numbers", lambda n: 0.15, {"CACHED": (1, 0)}, HEALTHY),
                ("other words", lambda n: 0.15, {"RESULT": ("cached", "fetched")}, HEALTHY),
                ("slow hits", lambda n: 0.15, {"CACHE": ("MISS", "HIT")}, FINDING),
                ("name of a server", lambda n: 0.15, {"CACHE": ("cache1", "cache2")}, FINDING),
                ("drop", lambda n: 0.12 if n < 600 else 0.4, {"CACHE": ("HIT", "MISS")}, FINDING),
                ("drop to few hits", lambda n: 0.7 if n < 600 else 0.95, {"CACHE": ("HIT", "MISS")}, FINDING),
                ("last of 20 hosts", lambda n: 0.9 if n % 20 == 19 else 0.15, {"CACHE": ("HIT", "MISS")}, FINDING)):
            with self.subTest(name):
                (field, values), = fields.items()
                turn = iter(range(1200))
                first = self.ordinary(lambda n: 0.1 * missed(n, share(n)), lambda n: f'{field}="{values[missed(n, share(n))]}"', status, 1200,
                                      host_of=lambda chance: hosts[next(turn) % 20])
                self.assertEqual(first["ordinary"], status == HEALTHY)
                if name not in ("last of 20 hosts", "drop to few hits", "drop"):  # the host or the time may be the first cause
                    self.assertEqual((first["cause"], first["field"]), ("field", field))

    def test_hit_rate_of_one_host(self):
        """Misses are ordinary, but one host has more of them. The answer names the field and the host, and only this host's excess counts."""
        hosts, turn, chance = ("b1", "b2", "b3"), iter(range(1500)), random.Random(7)
        missed = [chance.random() < (0.6 if n % 3 == 1 else 0.15) for n in range(1500)]
        first = self.ordinary(lambda n: 0.1 * missed[n], lambda n: f"CACHE={('HIT', 'MISS')[missed[n]]}", FINDING, 1500, host_of=lambda chance: hosts[next(turn) % 3])
        self.assertEqual((first["cause"], first["field"], first["host"]), ("field", "CACHE", "b2"))
        self.assertIn("is slow for CACHE=MISS, which is more frequent there than on other hosts", first["title"])
        self.assertRegex(first["evidence"][0], r"^(5[5-9]|6[0-5]) % of the visits on b2 have this value, and 1[2-8] % of the others$")
        excess = 0.1 * (0.6 - 0.15) / 3 / (0.01 + 0.1 * (0.6 + 0.15 + 0.15) / 3)
        self.assertLess(abs(first["share"] - excess), 0.1)

    def test_exception_among_many_numbers(self):
        """One of 20 numbers is slow, which no range of numbers shows."""
        level = [random.Random(n).randrange(1, 21) for n in range(2000)]
        first = self.ordinary(lambda n: 0.3 * (level[n] == 7), lambda n: f"ZOOM={level[n]}", FINDING, 2000)
        self.assertEqual((first["cause"], first["field"]), ("field", "ZOOM"))
        self.assertRegex(first["title"], r" is slow for ZOOM=7$")

    def test_hit_rate_that_drops_in_a_short_log(self):
        missed = [random.Random(n).random() < (0.08 if n < 120 else 0.5) for n in range(200)]
        self.ordinary(lambda n: 0.1 * missed[n], lambda n: f"CACHE={('HIT', 'MISS')[missed[n]]}", FINDING, 200)

    def test_kinds_of_work_with_several_costs(self):
        """If the values of a field have several costs, they are kinds of work. An exception among values of equal cost is a fault."""
        for costs, status in ((0, 0.01, 0.03, 0.09), HEALTHY), ((0, 0, 0, 0.09), FINDING), ((0, 0, 0.006, 0.09), FINDING):
            first = self.ordinary(lambda n: 0.01 + costs[n * 7919 % 13 % 4], lambda n: f"KIND=k{n * 7919 % 13 % 4}", status)
            self.assertEqual((first["cause"], first["field"], first["ordinary"]), ("field", "KIND", status == HEALTHY), costs)

    def test_kinds_of_work(self):
        """A value is a fault only if it is an exception, and if the amount of work does not explain its times."""
        paths = [random.Random(n).choices(("/img", "/js", "/api", "/video"), (4, 3, 2, 1))[0] for n in range(1500)]
        sizes = [(500e3 if paths[n] == "/video" else 30e3) * random.Random(n).lognormvariate(0, 0.7) for n in range(1500)]
        codecs = [random.Random(-n).choice(("h264", "hevc", "vp9", "av1")) for n in range(1500)]
        both = lambda n: f"PATH={paths[n]} BYTES={sizes[n]:.0f}"
        near = [(4 if paths[n] == "/video" else 1) * 30e3 * random.Random(n).lognormvariate(0, 0.7) for n in range(1500)]
        for name, cost, fields, status in (
                ("larger", lambda n: sizes[n] / 3e7, both, HEALTHY),
                ("larger, without amounts", lambda n: sizes[n] / 1e7, lambda n: f"PATH={paths[n]}", FINDING),
                ("slow", lambda n: sizes[n] / 3e7 + 0.05 * (paths[n] == "/video"), both, FINDING),
                ("slow for each byte", lambda n: near[n] / (3e5 if paths[n] == "/video" else 3e6), lambda n: f"PATH={paths[n]} BYTES={near[n]:.0f}", FINDING),
                ("most are slow", lambda n: 0.1 * (codecs[n] != "h264"), lambda n: f"CODEC={codecs[n]}", HEALTHY),
                ("one is slow", lambda n: 0.1 * (codecs[n] == "vp9"), lambda n: f"CODEC={codecs[n]}", FINDING),
                ("most are slow later", lambda n: 0.1 * (n > 800 and codecs[n] != "h264"), lambda n: f"CODEC={codecs[n]}", FINDING)):
            with self.subTest(name):
                self.ordinary(cost, fields, status, 1500)

    # ---- fields that some requests lack ----

    def cached(self, hits=0.7, count=3000, seed=1, spread=0.4, slower=lambda chance, at, host, server, client: 1, absent="", fails=lambda chance, at, host, server, client: False,
               rate=60.0):
        """Writes an access log. Only requests that no cache answers have a server. `absent` is the text of a request without a server; "": no field."""
        chance, at, lines = random.Random(seed), 0.0, []
        for _ in range(count):
            at += chance.expovariate(rate(at) if callable(rate) else rate)
            host, client, server = f"edge{chance.randrange(3)}", chance.choice(("app", "web", "bot", "tv")), f"10.2.0.{chance.randrange(1, 5)}:80"
            if chance.random() < hits:
                server = absent
            taken = 0.001 * chance.lognormvariate(0, 0.3)
            if server != absent:
                taken += 0.02 * chance.lognormvariate(0, spread) * slower(chance, at, host, server, client)
            lines.append((at + taken, {
                "time": f"{datetime.datetime.fromtimestamp(1.8e9 + at + taken, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}", "host": host, "client": client,
                "status": 502 if fails(chance, at, host, server, client) else 200, "request_time": round(taken, 6), **({"server": server} if server else {})}))
        path = self.scratch / "cached.json"
        path.write_text("".join(json.dumps(fields) + "\n" for _, fields in sorted(lines, key=lambda line: line[0])))
        return path

    def faults_of(self, path):
        found = self.diagnosed(path)
        return [c for c in found["causes"] if not c["ordinary"] and "instead_of" not in c], found

    def test_server_of_some_visits(self):
        """A slow server is named even if most requests have no server."""
        cases = list(itertools.product((0.3, 0.6, 0.9), ("", "-")))
        for hits, absent in support.representative(cases, cases[::3]):
            with self.subTest(hits=hits, absent=absent):
                (first, *_), _ = self.faults_of(self.cached(hits, absent=absent, slower=lambda c, at, h, server, k: 4 if server == "10.2.0.3:80" else 1))
                self.assertEqual((first["cause"], first["host"]), ("peer", "10.2.0.3:80"))
                self.assertIn("request with server is slow for server=10.2.0.3:80", first["title"])
                self.assertEqual(first["field"], "server")
                # a quarter of the requests that have a server takes 65 ms longer
                self.assertAlmostEqual(first["share"], 0.25 * 0.065 / (0.25 * 0.065 + 0.0217 + 0.001 / (1 - hits)), delta=0.06)
                visits, known = map(int, re.search(r"(\d+) of the (\d+) visits have server=10.2.0.3:80", " ".join(first["evidence"])).groups())
                self.assertAlmostEqual(known / 3000, 1 - hits, delta=0.03)
                self.assertAlmostEqual(visits / known, 0.25, delta=0.08)

    def test_values_of_a_field_are_not_called_hosts(self):
        """All records have one host. A field names shards, and one shard is slow. The report names the field, so that --where can select the shard."""
        def log(name, factor):
            return self.queries(name, lambda chance, at, n: (0.006 * chance.lognormvariate(0, 0.2) * (factor if n % 4 == 3 else 1), f"SHARD=s{n % 4}"))
        before, after = log("usual.log", 1), log("slow.log", 8)
        (first, *_), _ = self.faults_of(after)
        self.assertEqual((first["cause"], first["field"], first["host"]), ("peer", "SHARD", "s3"))
        self.assertRegex(first["title"], r"^\d+ % of the requests' time: \S+ of \S+ is slow for SHARD=s3$")
        self.assertRegex(first["evidence"][0], r"^a visit takes \S+ ms with SHARD=s3, and \S+ ms with other values$")
        self.assertRegex(first["evidence"][1], r"^\d+ of the \d+ visits have SHARD=s3$")
        self.assertRegex(self.compared([before], [after])["changes"][0]["goes_with"], r"^SHARD=s3: \+")

    def test_mechanisms_of_servers_in_a_field(self):
        """Only a field names the servers. One of them stops now and then, or each of them serves one request at a time."""
        stops = [10 * n + 3 for n in range(20)]
        for name in "pause", "lock":
            chance, at, lines, free = random.Random(9), 0.0, [], dict.fromkeys(range(1, 5), 0.0)
            for _ in range(4000):
                at += chance.expovariate(30)
                server, work = chance.randrange(1, 5), (0.08 if name == "lock" else 0.03) * chance.lognormvariate(0, 0.3)
                begin = max(at, free[server]) if name == "lock" else at
                end = free[server] = begin + work
                if name == "pause" and server == 2:
                    end += sum(1.5 for stop in stops if begin < stop + 1.5 and end > stop and begin < stop) or sum(stop + 1.5 - begin for stop in stops if stop <= begin < stop + 1.5)
                hit = chance.random() < 0.3
                taken = 0.002 * chance.lognormvariate(0, 0.3) if hit else end - at
                lines.append((at + taken, f"time={datetime.datetime.fromtimestamp(1.8e9 + at + taken, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} level=info "
                              f"host=edge{chance.randrange(2)} prog=proxy DUR={taken:.6f}{'' if hit else f' backend=app{server}'}\n"))
            path = self.scratch / "access.log"
            path.write_text("".join(line for _, line in sorted(lines)))
            (first, *_), _ = self.faults_of(path)
            with self.subTest(name):
                self.assertEqual((first["cause"], first.get("host")), (name, "app2" if name == "pause" else None))

    def test_names_of_services(self):
        """Servers with names of their own are different services, and a field with one value for each host names the host itself."""
        for values, cause in (("search", "images", "mail"), "field"), (("app1", "app2", "app3"), "peer"):
            chance, records = random.Random(5), []
            for i in range(900):
                at, value = i * 0.1, chance.randrange(3)
                taken = 0.01 * chance.lognormvariate(0, 0.2) + 0.03 * (value == 1)
                records += [(at, f"h{i % 2}", "Call.start", f"ID={i} SERVER={values[value]}"), (at + taken, f"h{i % 2}", "Call.end", f"ID={i}")]
            first = self.first_of(sorted(records))
            self.assertEqual(first["cause"], cause)
            self.assertIn(values[1], first["title"])

    def test_hit_rate_of_a_look_up_that_calls(self):
        """Only misses call the database. The misses become more frequent on one host or later; the visits themselves are as fast as ever."""
        for place, with_field in itertools.product(("host", "time", "nowhere", "kind"), (True, False)):
            with self.subTest(place, field=with_field):
                chance, records = random.Random(7), []
                for i in range(1500):
                    at, host = i * 0.1, f"w{chance.randrange(3)}"
                    kind = "full" if chance.random() < (0.6 if place == "kind" and i > 800 else 0.2) else "short"
                    more = (place == "host" and host == "w1") or (place == "time" and i > 800) or (place == "kind" and kind == "full")
                    miss = chance.random() < (0.8 if more else 0.2)
                    field = f" CACHE={'MISS' if miss else 'HIT'}" * with_field
                    taken, own = 0.03 * chance.lognormvariate(0, 0.3) * miss, 0.002 * chance.lognormvariate(0, 0.3)
                    records += [(at, "h", "Page.start", f"ID={i} KIND={kind}"), (at + 0.001, host, "Look.start", f"ID={i}{field}"),
                                (at + 0.003 + own + taken, host, "Look.end", f"ID={i}"), (at + 0.02 + 3 * own + taken, "h", "Page.end", f"ID={i}")]
                    if miss:
                        records += [(at + 0.002, "db", "Load.start", f"ID={i}"), (at + 0.002 + taken, "db", "Load.end", f"ID={i}")]
                found = self.diagnosed_of(sorted(records))
                faults = [c for c in found["causes"] if not c["ordinary"] and "instead_of" not in c]
                if place == "nowhere" or (place == "kind" and not with_field):  # the kind of the requests explains the calls
                    self.assertEqual([c["title"] for c in faults], [])
                if place not in ("host", "time"):
                    continue
                first, misses = faults[0], 0.4 if place == "host" else 0.2 + 0.6 * 7 / 15
                self.assertEqual((first["cause"], first["span"]), ("field" if with_field else "calls", "Look"))
                self.assertIn("misses its cache (CACHE) more often" if with_field else "calls Load of p more often", first["title"])
                self.assertIn("than on other hosts" if place == "host" else "after the first request began", first["title"])
                self.assertRegex(first["evidence"][0], r"^(7[4-9]|8\d) % of the visits (on this host|at this time) (make this call|miss the cache), and (1[5-9]|2[0-5]) % of the others$")
                self.assertAlmostEqual(first["share"], (misses - 0.2) * 0.0314 / (0.02 + 0.0314 * misses), delta=0.06)

    def test_messages_that_always_wait_for_an_acknowledgement(self):
        """All messages of one kind wait 40 ms, and other messages between the same hosts do not. If all messages take 40 ms, the path may be long."""
        for usual in 0.0003, 0.0403:
            chance, records = random.Random(4), []
            for i in range(1200):
                at, host, name = i * 0.2, f"s{chance.randrange(2)}", ("Get", "Scan")[i % 2]
                planned = at + 0.002 * chance.lognormvariate(0, 0.3)
                begin = planned + (0.0403 if name == "Scan" else usual) * chance.lognormvariate(0, 0.01)
                records += [(at, "f", "Plan.start", f"ID={i}"), (planned, "f", "Plan.end", f"ID={i}"), (begin, host, f"{name}.start", f"ID={i}"),
                            (begin + 0.004 * chance.lognormvariate(0, 0.4), host, f"{name}.end", f"ID={i}")]
            causes = [c for c in self.diagnosed_of(sorted(records))["causes"] if "acknowledgement of 40.0 ms" in c["title"]]
            self.assertEqual([c["to_event"] for c in causes], ["Scan.start"] if usual < 0.01 else [])

    def test_causes_within_one_kind_of_visits(self):
        """A host, a range of time and another field are causes even if they slow only the requests that no cache answers."""
        for name, slower, cause, text in (("host", lambda c, at, host, s, k: 3 if host == "edge1" else 1, "peer", "edge1 is slower than its peers"),
                                          ("time", lambda c, at, h, s, k: 4 if 20 < at < 35 else 1, "changed", "is slower from"),
                                          ("field", lambda c, at, h, s, client: 4 if client == "tv" else 1, "field", "slow for client=tv")):
            with self.subTest(name):
                (first, *_), _ = self.faults_of(self.cached(0.65, slower=slower))
                self.assertEqual(first["cause"], cause)
                self.assertIn(text, first["title"])
                self.assertIn("request with server", first["title"])

    def test_healthy_requests_with_a_cache(self):
        cases = list(itertools.product((0.1, 0.4, 0.7, 0.85, 0.95), ("", "-"), (0.2, 0.4)))
        for hits, absent, spread in support.representative(cases, cases[::5]):
            with self.subTest(hits=hits, absent=absent, spread=spread):
                self.assertEqual([c["title"] for c in self.faults_of(self.cached(hits, absent=absent, spread=spread))[0]], [])

    def test_time_outs_with_a_field(self):
        """Requests that a proxy sends to a server again have a field. Nearly equal waits are a timeout all the same."""
        chance, at, lines = random.Random(5), 1.8e9, []
        for _ in range(1500):
            at += chance.expovariate(20)
            again = chance.random() < 0.06
            taken = 0.02 * chance.lognormvariate(0, 0.3) + 1 * again
            lines.append(f"time={datetime.datetime.fromtimestamp(at, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ} level=info host=edge prog=proxy "
                         f"status=200 DUR={taken:.6f}{' second=b2' if again else ''}\n")
        path = self.scratch / "access.log"
        path.write_text("".join(lines))
        self.assertEqual(self.diagnosed(path, status=FINDING)["causes"][0]["cause"], "timeout")

    def test_field_of_some_visits_beside_an_amount_of_work(self):
        """Visits with a field are a kind of work. Their times depend on an amount, and somewhat on the task; this dependence is not hidden by the kind."""
        sizes = [random.Random(n).lognormvariate(10, 0.9) for n in range(1500)]
        tasks = [random.Random(-n).choice(("align", "sort", "call")) for n in range(1500)]
        cost = lambda n: sizes[n] * (1.7 if tasks[n] == "align" else 1) / 5e5
        first = self.ordinary(cost, lambda n: f"TASK={tasks[n]} ITEMS={sizes[n]:.0f}{' NODE=n1' if n % 5 > 1 else ''}", HEALTHY, 1500)
        self.assertEqual((first["cause"], first["field"]), ("size", "ITEMS"))

    # ---- failures ----

    def test_time_out_in_calls_without_other_work(self):
        """A call consists of the work of a server, but some calls wait before they ask another server. Only a constant wait is a timeout."""
        for constant in True, False:
            with self.subTest(constant=constant):
                chance, at, lines = random.Random(5), 0.0, []
                for n in range(1200):
                    at += chance.expovariate(20)
                    wait = 0.0 if chance.random() > 0.06 else 0.1 + chance.uniform(0, 0.002) if constant else 0.1 * chance.lognormvariate(0, 0.5)
                    begin = at + 0.0005 + wait
                    end = begin + 0.008 * chance.lognormvariate(0, 0.4)
                    for when, event, span in ((at, "Read.start", 1), (begin, "Serve.start", 2), (end, "Serve.end", 2), (end + 0.0005, "Read.end", 1)):
                        parent = " PARENT.ID=1" if event == "Serve.start" else ""
                        lines.append((when, f"HOST=h PROG={'store' if span == 2 else 'proxy'} LVL=Usage NL.EVNT={event} TRACE.ID=t{n} SPAN.ID={span}{parent}"))
                    if wait:
                        lines.append((at + wait - 1e-5, f"HOST=h PROG=proxy LVL=Usage NL.EVNT=Read.Again TRACE.ID=t{n} SPAN.ID=1"))
                path = self.scratch / "again.log"
                simulate.write_lines(path, sorted(lines))
                found = self.diagnosed(path)
                if constant:
                    first = found["causes"][0]
                    self.assertEqual((first["cause"], first["span"]), ("timeout", "Read"), first["title"])
                    self.assertIn("100 ms longer", first["title"].replace("101 ms", "100 ms"))
                else:
                    self.assertNotIn("timeout", [cause["cause"] for cause in found["causes"]])

    def test_what_failures_go_with(self):
        """Rare failures are a fault if they go with a value, a host or a time."""
        for name, fails, share, text in (
                ("server", lambda c, at, h, server, k: server == "10.2.0.2:80" and c.random() < 0.2, 0.015, "with server=10.2.0.2:80"),
                ("client", lambda c, at, h, s, client: client == "bot" and c.random() < 0.03, 0.0075, "with client=bot"),
                ("host", lambda c, at, host, s, k: host == "edge2" and c.random() < 0.04, 0.013, "on edge2"),
                ("time", lambda c, at, h, s, k: 20 < at < 24 and c.random() < 0.2, 0.016, r"from (19|20)\.. s to 2[345]\.. s after the first request began")):
            for background in support.representative((0, 0.001), (0.001 if name in ("host", "time") else 0,)):
                with self.subTest(name, background=background):
                    path = self.cached(fails=lambda c, *about: fails(c, *about) or c.random() < background)
                    causes, found = self.faults_of(path)
                    self.assertEqual([c["cause"] for c in causes], ["failures"], found["answer"])
                    self.assertRegex(causes[0]["title"], text)
                    self.assertAlmostEqual(causes[0]["share"], share + background, delta=0.6 * share)
                    self.assertEqual(round(causes[0]["share"] * 3000), found["failed"])
                    advice = re.fullmatch(r"look at the failed requests in nlv, or with nlstat (--where 'any\(status >= 500\)') --slowest 3", causes[0]["advice"])
                    selected = self.run_program(support.program("nltools/nlstat"), "--json", *shlex.split(advice[1]), path)
                    self.assertEqual(sum(part["requests"] for part in json.loads(selected.stdout)), found["failed"])

    def test_failures_by_chance(self):
        """Rare failures that go with nothing are no fault. nldiag prints their number."""
        for share in 0.0004, 0.001, 0.003, 0.01:
            for seed in range(1, support.representative(5, 2)):
                with self.subTest(share=share, seed=seed):
                    path = self.cached(seed=seed, fails=lambda c, *about: c.random() < share)
                    causes, found = self.faults_of(path)
                    self.assertEqual([c["title"] for c in causes], [])
                    failed = path.read_text().count('"status": 502')
                    self.assertEqual(found["failed"], failed)
                    text = self.run_program(self.nldiag, path).stdout
                    part = "<0.1 %" if failed == 1 else f"{failed / 30:.{int(failed < 28.5)}f} %"
                    self.assertIn(f"\n{failed} request{'s' * (failed > 1)} failed ({part}); {self.words_of(failed / 3000)}\n" if failed else "\n", text)

    # ---- what a log does not show ----

    def service(self, name, answer, count=300):
        """Two programs on one host, a client and a server. answer(chance): the seconds until the client has the server's answer."""
        chance, lines = random.Random(6), []
        for n in range(count):
            sent = n * 0.1 + 0.001 * chance.random()
            begin = sent + 0.0003 * chance.lognormvariate(0, 0.2)
            end = begin + 0.005 * chance.lognormvariate(0, 0.4)
            for at, program, event, span in ((sent, "shop", "Ask.start", "a"), (begin, "taxd", "Tax.start", "b"), (end, "taxd", "Tax.end", "b"),
                                             (end + answer(chance), "shop", "Ask.end", "a")):
                lines.append((at, f"HOST=h PROG={program} LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}" + f" PARENT.ID={n}a" * (span == "b")))
        path = self.scratch / name
        simulate.write_lines(path, sorted(lines))
        return path

    def test_time_between_programs(self):
        """A log in which most of the time passes between two programs does not show what happens there, so nldiag cannot call it healthy."""
        path = self.service("hidden.log", lambda chance: 0.03 * chance.lognormvariate(0, 0.2))
        self.assertRegex(self.diagnosed(path, status=CANNOT_TELL)["answer"],
                         r"Tax.end of taxd -> Ask.end of shop accounts for 8\d % of the requests' time, and the log does not show what happens there")
        self.assertIn("; unexplained, so log more events there", self.run_program(self.nldiag, path).stdout)
        path = self.service("fast.log", lambda chance: 0.003 * chance.lognormvariate(0, 0.2))
        self.assertEqual(self.diagnosed(path, status=HEALTHY)["causes"], [])

    def test_answers_that_always_wait_for_an_acknowledgement(self):
        """All answers take 40 to 44 ms, and the questions between the same programs on one host do not. Work that takes similar times varies more."""
        cause = self.diagnosed(self.service("nagle.log", lambda chance: chance.uniform(0.0402, 0.0435)), status=FINDING)["causes"][0]
        self.assertEqual((cause["cause"], cause["from_event"], cause["to_event"]), ("timer", "Tax.end", "Ask.end"))
        self.assertIn("waits for TCP's delayed acknowledgement of 40.0 ms", cause["title"])
        found = self.diagnosed(self.service("work.log", lambda chance: 0.042 * chance.lognormvariate(0, 0.1)))
        self.assertNotIn("acknowledgement", str(found["causes"]))

    def whole_seconds(self, slow=1.0, digits=0, count=3000):
        """The access log of a proxy of three servers, with times in whole seconds. The times of the third server are `slow` times longer."""
        chance, at, lines = random.Random(9), 0.0, []
        for _ in range(count):
            at += chance.expovariate(40)
            server = chance.randrange(3)
            taken = 0.032 * chance.lognormvariate(0, 0.4) * (slow if server == 2 else 1)
            time = datetime.datetime.fromtimestamp(round(at + taken - 0.5 * 10 ** -digits, digits) + 1.8e9, datetime.timezone.utc)
            lines.append({"time": time.isoformat(timespec="milliseconds" if digits else "seconds"), "request": "GET / HTTP/1.1", "status": 200,
                          "request_time": f"{taken:.3f}", "upstream_addr": f"10.0.0.{server}:80"})
        path = self.scratch / "whole.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in sorted(lines, key=lambda line: line["time"])))
        return path

    def test_times_in_whole_seconds(self):
        """Requests seem to end together, and each second, because their times are rounded. The durations still show a slow server."""
        for digits in 0, 3:
            with self.subTest(digits=digits):
                self.assertEqual([c["title"] for c in self.diagnosed(self.whole_seconds(digits=digits), status=HEALTHY)["causes"]], [])
                (first, *others), _ = self.faults_of(self.whole_seconds(slow=6.0, digits=digits))
                self.assertEqual((first["cause"], first["host"]), ("peer", "10.0.0.2:80"))
                self.assertEqual([c["title"] for c in others], [])

    def test_sequence_numbers_and_a_slow_change(self):
        """The numbers of the requests grow with time, as the times do. They are not amounts of work."""
        chance, lines = random.Random(5), []
        for n in range(1200):
            at = n * 0.05
            scanned = at + 0.003 + 0.002 * (1 + 9 * n / 1200) * chance.lognormvariate(0, 0.2)
            for time, event, span, more in ((at, "Request.start", "a", f" NUMBER={n}"), (at + 0.003, "Scan.start", "b", f" PARENT.ID={n}a"),
                                            (scanned, "Scan.end", "b", f" PARENT.ID={n}a"), (scanned + 0.0002, "Request.end", "a", "")):
                lines.append((time, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}{more}"))
        path = self.scratch / "drift.log"
        simulate.write_lines(path, sorted(lines))
        (first, *others), found = self.faults_of(path)
        self.assertEqual((first["cause"], first["span"]), ("changed", "Scan"))
        self.assertEqual([c for c in found["causes"] if c.get("field") == "NUMBER"] + others, [])

    def queries(self, name, query, count=3000):
        """Requests with one span. query(chance, at, n): the seconds of the span, and its fields."""
        chance, lines = random.Random(8), []
        for n in range(count):
            at = n * 0.02
            taken, fields = query(chance, at, n)
            for time, event, span in ((at, "Request.start", "a"), (at + 0.001, "Query.start", "b"), (at + 0.001 + taken, "Query.end", "b"),
                                      (at + 0.0015 + taken, "Request.end", "a")):
                lines.append((time, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}"
                              + (f" PARENT.ID={n}a" if span == "b" else "") + (f" {fields}" if event == "Query.start" else "")))
        path = self.scratch / name
        simulate.write_lines(path, sorted(lines))
        return path

    def test_value_that_is_slow_for_a_while(self):
        """All visits with a value take 50 ms longer for a while. The value names these visits; a timeout would not depend on it."""
        def query(chance, at, n):
            return chance.gauss(0.006, 0.0005) + (0.05 if n % 3 == 1 and 25 < at < 40 else 0), f"TENANT=t{n % 3}"
        (first, *others), _ = self.faults_of(self.queries("shard.log", query))
        self.assertEqual(first["cause"], "field")
        self.assertRegex(first["title"], r"is slow for TENANT=t1 from 2[456]\.?\d* s to (39|40|41)\.?\d* s after")
        self.assertEqual(others, [])

    def test_value_that_is_slow_while_all_are(self):
        """A kind of work is always slow, and everything is slower for a while."""
        def query(chance, at, n):
            return (0.006 if n % 3 else 0.02) * chance.lognormvariate(0, 0.2) * (3 if 25 < at < 40 else 1), f"TENANT=t{n % 3}"
        faults, _ = self.faults_of(self.queries("kinds.log", query))
        self.assertFalse([c["title"] for c in faults if "TENANT" in c["title"] and " from " in c["title"]])

    def test_causes_hold_in_the_log(self):
        """Some requests make 40 calls instead of 2, and each call takes equally long. The rest of these calls' time is no cause."""
        chance, lines, at = random.Random(3), [], 0.0
        for n in range(400):
            many, time = n % 5 == 0, at + 0.0002
            events = [(at, "Request.start", f"{n}a", f" PAGE={'list' if many else 'item'}")]
            for k in range(40 if many else 2):
                taken = 0.0015 * chance.lognormvariate(0, 0.02)
                events += [(time, "Query.start", f"{n}b{k}", f" PARENT.ID={n}a"), (time + taken, "Query.end", f"{n}b{k}", f" PARENT.ID={n}a")]
                time += taken + 0.00002
            events.append((time, "Request.end", f"{n}a", ""))
            lines += [(t, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={span}{more}") for t, event, span, more in events]
            at = time + 0.01
        path = self.scratch / "calls.log"
        simulate.write_lines(path, sorted(lines))
        faults, _ = self.faults_of(path)
        self.assertEqual([c["cause"] for c in faults], ["calls"])

    def test_program_and_kernel(self):
        """Kernel events with a common sector are not requests if a program logs requests. Without such a program, they are."""
        chance, lines = random.Random(2), []
        for n in range(100):
            lines += [(n * 0.05 + k * 0.004, f"HOST=h PROG=job LVL=Usage NL.EVNT=Job.{event} ID={n} TID=7") for k, event in enumerate(("Start", "Computed", "Done"))]
        for n in range(2000):
            at = chance.random() * 5
            lines += [(at + k * 1e-4, f"HOST=h PROG=cc1 LVL=System NL.EVNT=block.{event} CPU=0 PID=9 TID=9 SECTOR={n}")
                      for k, event in enumerate(("block_getrq", "block_rq_issue", "block_rq_complete"))]
        for program, requests in (True, 100), (False, 2000):
            path = self.scratch / f"{program}.log"
            simulate.write_lines(path, sorted(line for line in lines if program or "PROG=job" not in line[1]))
            self.assertEqual(self.diagnosed(path)["requests"], requests)

    def test_error_of_a_corrected_clock(self):
        """The calls limit the difference of two clocks only to within 19 ms. The middle of this range makes messages seem slow, but the range
        allows equal times."""
        chance, lines = random.Random(4), []
        for n in range(400):
            at, host = n * 0.05, f"pay{n % 2 + 1}"
            begin, error = at + 0.010 + 0.0005 * chance.random(), -0.05 if host == "pay1" else 0
            end = begin + 0.008 * chance.lognormvariate(0, 0.2)
            for time, where, event, span in ((at, "web", "Order.start", "a"), (begin + error, host, "Pay.start", "b"), (end + error, host, "Pay.end", "b"),
                                             (end + 0.0008, "web", "Order.end", "a")):
                lines.append((time, f"HOST={where} PROG={'front' if where == 'web' else 'payd'} LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}"
                              + f" PARENT.ID={n}a" * (span == "b")))
        path = self.scratch / "corrected.log"
        simulate.write_lines(path, sorted(lines))
        faults, _ = self.faults_of(path)
        self.assertEqual([(c["cause"], c["host"]) for c in faults], [("clock", "pay1")])

    def test_lock_within_a_span(self):
        """Orders hold one lock in their charges, and also work before and after them. The charges, not the orders, wait."""
        chance, lines, free = random.Random(7), [], 0.0
        workers = [0.0] * 4
        for n in range(400):
            worker = min(range(4), key=workers.__getitem__)
            at = workers[worker]
            charge = at + 0.004 * chance.lognormvariate(0, 0.05)
            charged = free = max(charge + 0.0001, free) + 0.008 * chance.lognormvariate(0, 0.02)
            end = workers[worker] = charged + 0.0005
            for time, event, span in (at, "Order.start", "a"), (charge, "Charge.start", "b"), (charged, "Charge.end", "b"), (end, "Order.end", "a"):
                lines.append((time, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}" + f" PARENT.ID={n}a" * (span == "b")))
        path = self.scratch / "within.log"
        simulate.write_lines(path, sorted(lines))
        faults, _ = self.faults_of(path)
        self.assertEqual([(c["cause"], c["span"]) for c in faults], [("lock", "Charge")])

    def test_lock_between_events_of_a_span(self):
        """Four workers hold a lock between two events of a span. Only the wait for the lock is saved, not the work before and after it. If the
        program logs an event when it has the lock, the wait ends there."""
        for locked in False, True:
            chance, lines, free, saved = random.Random(7), [], 0.0, 0.0
            workers = [0.001 * k for k in range(4)]
            for n in range(400):
                worker = min(range(4), key=workers.__getitem__)
                at = workers[worker]
                valid = at + 0.001 * chance.lognormvariate(0, 0.05)
                read = valid + 0.003 * chance.lognormvariate(0, 0.03)
                begin = max(read, free)
                charged = free = begin + 0.008 * chance.lognormvariate(0, 0.02)
                end = workers[worker] = charged + 0.0005 * chance.lognormvariate(0, 0.1)
                saved += (begin - read) / (end - at)
                for time, event in (at, "Start"), (valid, "Validated"), (read, "StockRead"), (begin, "Locked"), (charged, "Charged"), (end, "Done"):
                    if event != "Locked" or locked:
                        lines.append((time, f"HOST=h PROG=orders LVL=Usage NL.EVNT=Order.{event} ORDER.ID={n}"))
            path = self.scratch / "orders.log"
            simulate.write_lines(path, sorted(lines))
            (first, *others), _ = self.faults_of(path)
            self.assertEqual((first["cause"], others), ("lock", []))
            self.assertIn(f"this time is between Order.StockRead and Order.{'Locked' if locked else 'Charged'}", first["title"])
            self.assertAlmostEqual(first["gain"], saved / 400, delta=0.03)

    def test_requests_that_visit_a_place(self):
        """A statement of one kind of requests takes most of the time, and different times. The report names the statement and the requests."""
        chance, lines = random.Random(5), []
        for n in range(400):
            at, report = n * 0.2, n % 5 == 0
            taken = chance.uniform(0.06, 0.16) if report else 0.001 * chance.lognormvariate(0, 0.3)
            for time, event, span, more in ((at, "http.start", "a", f" PATH={'/report' if report else chance.choice(['/a', '/b'])}"),
                                            (at + 0.0005, "EVAL.start" if report else "GET.start", "b", ""),
                                            (at + 0.0005 + taken, "EVAL.end" if report else "GET.end", "b", ""), (at + 0.001 + taken, "http.end", "a", "")):
                lines.append((time, f"HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={n:032x} SPAN.ID={n}{span}" + f" PARENT.ID={n}a" * (span == "b") + more))
        path = self.scratch / "report.log"
        simulate.write_lines(path, sorted(lines))
        text = self.run_program(self.nldiag, path).stdout
        self.assertRegex(text, r"\n +9\d %  EVAL of p, 1[01]\d ms each, in requests with PATH=/report(;|\n)")
        self.assertNotIn("GET of p, in requests", text)

    def test_operations_of_requests_with_a_message(self):
        """A server's logger writes the same message for each request. The methods are operations, which take different times."""
        chance, lines, at = random.Random(4), [], 1.8e9
        for _ in range(1500):
            at += chance.expovariate(20)
            method, cost = chance.choices((("GET", 0.02), ("HEAD", 0.02), ("PATCH", 0.06)), (6, 2, 2))[0]
            time = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat(timespec="microseconds")
            lines.append({"time": time, "level": "info", "msg": "handled request", "method": method, "duration": round(cost * chance.lognormvariate(0, 0.3), 6)})
        path = self.scratch / "message.json"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.assertEqual([c["title"] for c in self.diagnosed(path, status=HEALTHY)["causes"] if not c["ordinary"]], [])

    @staticmethod
    def words_of(share):
        return ("no host, field or time has significantly more failures than the others" if share * 3000 >= 5 and share >= 0.001
                else "too few to search for their cause")

    def test_failures_among_many_visits(self):
        """Of many successful visits, nldiag examines the fields of some, which it chooses at random because fields can be periodic."""
        chance, records = random.Random(6), []
        for number in range(120000):
            at = number * 0.01
            records += [(at, "h", "Io.start", f"ID={number} OP={('read', 'write', 'list', 'move')[number % 4]}"),
                        (at + 0.002 * chance.lognormvariate(0, 0.1), "h", "Io.end", f"ID={number} STATUS={int(60000 <= number < 60200)}")]
        found = self.diagnosed_of(records)
        failures = [c["title"] for c in found["causes"] if c["cause"] == "failures"]
        self.assertEqual((len(failures), found["failed"]), (1, 200))
        self.assertRegex(failures[0], "from .* to .* after the first request began")
        self.assertNotIn("OP=", failures[0])

    def test_results_are_no_reasons_for_failures(self):
        """A field that reports a failure does not explain it."""
        for field in (lambda failed: f"REASON={'disk' if failed else 'none'}", lambda failed: "NOTE=disk" if failed else "", lambda failed: f"NOTE={'bad' if failed else 'good'}",
                      lambda failed: f"END={'connection reset' if failed else random.choice(('keep', 'close', 'pool'))}".replace(" r", "-r"),
                      lambda failed: f"BYTES={162 if failed else random.randrange(1000, 9000)}"):
            chance, records = random.Random(2), []
            for at, host, event, fields in self.requests():
                failed = event == "Answer" and chance.random() < 0.01
                records.append((at, host, event, f"{fields} STATUS={int(failed)} {field(failed)}" if event == "Answer" else fields))
            self.assertEqual([c["title"] for c in self.diagnosed_of(records)["causes"]], [])

    # ---- the rate of requests ----

    def test_rate_of_requests(self):
        """More requests arrive during a part of the log. The load is the cause only if the part is also slow; a slow part alone is a change."""
        for name, rate, slower, cause in (("load", lambda at: 200 if 20 < at < 30 else 60, 4, "load"), ("steady", lambda at: 60, 4, "changed"), ("no effect", lambda at: 200 if 20 < at < 30 else 60, 1, None)):
            with self.subTest(name):
                causes, _ = self.faults_of(self.cached(0, rate=rate, slower=lambda c, at, h, s, k: slower if 20 < at < 30 else 1))
                self.assertEqual([c["cause"] for c in causes[:1]], [cause] if cause else [])

    def test_rate_of_few_requests(self):
        """The rates of few requests differ by chance. A change is then not called a load."""
        called = collections.Counter()
        for seed in range(40):
            begin = 3 * random.Random(seed).random()
            causes, _ = self.faults_of(self.cached(0, count=150, seed=seed, rate=30, slower=lambda c, at, h, s, k: 8 if begin < at < begin + 0.6 else 1))
            called[causes[0]["cause"] if causes else None] += 1
        self.assertGreater(called["changed"] + called["cold"], 25, called)
        self.assertLessEqual(called["load"], 2, called)

    # ---- values and hosts that are sometimes slow ----

    def sometimes_slow(self, slow, count=1500, seed=1):
        """Diagnoses requests in which Convert takes `slow(chance, format, host, at)` seconds longer. Returns the findings."""
        chance, at, records = random.Random(seed), 0.0, []
        for number in range(count):
            at += chance.expovariate(20)
            form, host = chance.choice(("jpeg", "png", "tiff", "webp")), f"w{chance.randrange(4)}"
            begin = at + 0.004 * chance.lognormvariate(0, 0.3)
            end = begin + 0.012 * chance.lognormvariate(0, 0.3) + slow(chance, form, host, at)
            records += [(at, "front", "Thumb.start", f"ID={number} FORMAT={form}"), (begin, host, "Convert.start", f"ID={number}"),
                        (end, host, "Convert.end", f"ID={number}"), (end + 0.002 * chance.lognormvariate(0, 0.3), "front", "Thumb.end", f"ID={number}")]
        return [c for c in self.diagnosed_of(records)["causes"] if not c["ordinary"] and "instead_of" not in c]

    def test_sometimes_slow(self):
        """A minority of the visits with one value, or on one host, are slow. The usual times are equal."""
        for part in 0.15, 0.45:
            found = self.sometimes_slow(lambda chance, form, host, at: chance.uniform(0.06, 0.2) if form == "tiff" and chance.random() < part else 0)
            self.assertEqual([(c["cause"], c["field"]) for c in found], [("field", "FORMAT")])
            self.assertTrue(found[0]["title"].endswith("is sometimes slow for FORMAT=tiff"), found)
        timeout, = self.sometimes_slow(lambda chance, form, host, at: 0.09 if form == "tiff" and chance.random() < 0.3 else 0)
        self.assertEqual(timeout["cause"], "timeout")
        self.assertRegex(" ".join(timeout["evidence"]), r"\d\d\.\d % of the visits with FORMAT=tiff take so much longer, and 0 % of the others")
        found = self.sometimes_slow(lambda chance, form, host, at: chance.uniform(0.06, 0.2) if host == "w2" and chance.random() < 0.2 else 0)
        self.assertEqual([(c["cause"], c["host"]) for c in found], [("peer", "w2")])

    def test_sometimes_slow_everywhere(self):
        """Slow visits that go with nothing, or that come in bursts on a random host, are no cause."""
        for seed in range(support.representative(3, 1)):
            hosts = random.Random(seed).choices([f"w{i}" for i in range(4)], k=20)
            for slow in (lambda chance, form, host, at: chance.uniform(0.06, 0.2) if chance.random() < 0.04 else 0,
                         lambda chance, form, host, at: chance.uniform(0.06, 0.2) if host == hosts[int(at) // 20] and at % 20 < 3 else 0):
                self.assertNotIn("sometimes", str([c["title"] for c in self.sometimes_slow(slow, seed=seed)]))

    def test_few_requests_that_hang(self):
        """Three hanging requests take most of the time. A log with them is not healthy."""
        chance, at, records = random.Random(1), 0.0, []
        for number in range(1000):
            at += chance.expovariate(20)
            end = at + 0.02 * chance.lognormvariate(0, 0.2) + (60 if number in (200, 500, 800) else 0)
            records += [(at, "h", "Work.start", f"ID={number}"), (end, "h", "Work.end", f"ID={number}")]
        found = self.diagnosed_of(records)
        self.assertEqual(found["verdict"], "cannot tell")
        self.assertIn("more than 4 times as long as usual", found["answer"])

    # ---- comparing ----

    def compared(self, before, after, *options, status=None, program=None):
        result = self.run_program(program or self.nldiag, "--json", "--compare", *options, *before, "--with", *after)
        if status is not None:
            self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def test_compare(self):
        before, after = self.run_of("healthy", 3)[0], self.run_of("slow-host", 3)[0]
        result = self.run_program(self.nldiag, "--compare", before, "--with", after)
        self.assertEqual(result.returncode, FINDING, result.stderr)
        self.assertRegex(result.stdout, r"^slower: a request takes [0-9.]+ ms \(was [0-9.]+ ms\): \+\d+\.\d % \(99 % confidence: \+\d+\.\d to \+\d+\.\d %\)\n"
                                        r"800 requests in 1 log before, 800 requests in 1 log after; a change of \d+\.\d % would be found with a probability of 95 %\n")
        first = result.stdout.split("the largest change first:")[1].splitlines()[1:5]
        self.assertRegex(first[0], r"^1\. Store10 of cart1: \+[0-9.]+ ms a request$")
        self.assertRegex(first[3], r"^   related to host=cart1-2: \+\d+\.\d % there, [+-]\d\.\d % elsewhere$")
        self.assertEqual(self.run_program(self.nldiag, "--compare", after, before).returncode, HEALTHY)
        self.assertEqual(self.run_program(self.nldiag, "--compare", before, before).returncode, HEALTHY)
        faster = self.compared([after], [before], status=HEALTHY)
        self.assertEqual((faster["verdict"], faster["changes"][0]["place"]), ("faster", "Store10 of cart1"))

    def test_compare_names_the_place_first(self):
        for kind, seed in ("slow-link", 3), ("value", 3), ("retry", 3), ("timeout", 3), ("size", 3), ("changed", 3), ("pool", 3):
            with self.subTest(kind):
                before, (after, truth) = self.run_of("healthy", seed)[0], self.run_of(kind, seed)
                first = self.compared([before], [after], status=FINDING)["changes"][0]
                self.assertIn(truth["program"] if kind == "slow-link" else truth["span"], first["place"])
                self.assertTrue(first["visit_ns"]["changed"])
                self.assertLess(first["visit_ns"]["low"], first["visit_ns"]["change"])

    def test_compare_calls(self):
        """More calls, each with the same duration as before."""
        before, (after, truth) = self.run_of("healthy", 3)[0], self.run_of("calls", 3)
        first = self.compared([before], [after], status=FINDING)["changes"][0]
        self.assertIn(truth["span"], first["place"])
        self.assertEqual((first["visits"]["changed"], first["visit_ns"]["changed"], first["visits"]["before"]), (True, False, 1))
        self.assertIn("CUSTOMER=", first["goes_with"])

    def test_compare_failures(self):
        found = self.compared([self.run_of("healthy", 3)[0]], [self.run_of("failures", 3)[0]], status=FINDING)
        self.assertEqual((found["verdict"], found["request_ns"]["changed"]), ("more failures", False))

    def test_compare_trials(self):
        """Runs a few of the trials of tests/diagnosis/compare_trials.py, which measures the rates of errors."""
        for kind in compare_trials.KINDS:
            with self.subTest(kind):
                self.assertFalse(compare_trials.is_alarm(*compare_trials.trial(self.nldiag, kind, 1, 0)))
        for kind, change in ("independent", 0.02), ("mixed", 0.02), ("runs", 0.1):
            with self.subTest(kind, change=change):
                self.assertTrue(compare_trials.is_found(*compare_trials.trial(self.nldiag, kind, 1, change)))

    def pages(self, name, seed, requests=600, runs=1, *, kinds=("page", "report"), miss=0.1, spans=("Query",)):
        """Logs of requests with a type, a cache and a peer with a random port. A report or a miss takes longer."""
        chance, paths = random.Random(seed), []
        for r in range(runs):
            paths.append(self.scratch / f"{name}{r}.log")
            lines = []
            for i in range(requests):
                at, kind, cache = i * 0.05, chance.choice(kinds), "miss" if chance.random() < miss else "hit"
                lines.append((at, f"HOST=h PROG=p LVL=Usage NL.EVNT=Page.start ID=r{i} KIND={kind} PEER=10.0.0.{i % 3}:{chance.randint(32768, 60999)}"))
                for span in spans:
                    took = 0.002 * (3 if kind == "report" else 1) * (4 if cache == "miss" else 1) * chance.uniform(0.9, 1.1)
                    lines += [(at + 1e-4, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.start ID=r{i}"),
                              (at + took, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.end ID=r{i} CACHE={cache}")]
                    at += took + 1e-4
                lines.append((at + 1e-4, f"HOST=h PROG=p LVL=Usage NL.EVNT=Page.end ID=r{i}"))
            simulate.write_lines(paths[-1], sorted(lines))
        return paths

    def test_compare_mix(self):
        """A different mix of requests is not a slower program. A cache hit is not a different request."""
        before = self.pages("before", 1)
        found = self.compared(before, self.pages("mix", 2, kinds=("page", "report", "report", "report")), status=HEALTHY)
        self.assertEqual((found["verdict"], found["changes"], found["mix"]["field"]), ("no change found", [], "KIND"))
        self.assertGreater(found["mix"]["change"], 0.2)
        self.assertGreater(found["request_ns_with_mix"]["change"], 0.2)
        found = self.compared(before, self.pages("cache", 3, miss=0.4), status=FINDING)
        self.assertIsNone(found["mix"])
        self.assertEqual(found["changes"][0]["place"], "Query of p")
        self.assertRegex(found["changes"][0]["goes_with"], r"^CACHE=(miss: [34]\d % \(was \d+ %\)|hit: [56]\d % \(was \d+ %\))$")

    def test_compare_several_logs(self):
        before, after = self.pages("before", 1, 100, 5), self.pages("after", 2, 100, 5, miss=0.9)
        result = self.run_program(self.nldiag, "--compare", *before, "--with", *after[:3], "--id", "ID", "--with", *after[3:])
        self.assertEqual(result.returncode, FINDING, result.stderr)
        self.assertIn("500 requests in 5 logs before, 500 requests in 5 logs after", result.stdout)
        self.assertNotIn("only one log before", result.stdout)
        self.compared(before, after[:1], status=FINDING)
        self.compared(before[:2], before[2:], status=CANNOT_TELL)
        empty = self.scratch / "empty.log"
        empty.write_text("")
        for sides in (before + [empty], after), (before, [*after[:2], empty, *after[2:]]):
            result = self.run_program(self.nldiag, "--compare", *sides[0], "--with", *sides[1])
            self.assertEqual((result.returncode, result.stdout, result.stderr), (UNREADABLE, "", f"nldiag: cannot tell: {empty}: no records\n"))

    def single_spans(self, name, *, span="Work", sigma=0.4, requests=200, slower=1.0, fields=lambda chance: {}):
        """A log whose requests are one span with log-normal times."""
        chance, lines, path = random.Random(name), [], self.scratch / f"{name}.log"
        for i in range(requests):
            more = fields(chance)
            took = 0.005 * slower * more.pop("scale", 1) * chance.lognormvariate(0, sigma)
            text = "".join(f" {field}={value}" for field, value in more.items())
            lines += [(i * 0.5, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.start ID=r{i}{text}"),
                      (i * 0.5 + took, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.end ID=r{i}")]
        simulate.write_lines(path, sorted(lines))
        return path

    def test_compare_renamed_span(self):
        """A new name is not a slower program, whatever random differences the two logs have."""
        for seed in range(3):
            pair = [self.single_spans(f"{name}{seed}", span=name, requests=1000) for name in ("Zeta", "Alpha")]
            for before, after in (pair, pair[::-1]):
                found = self.compared([before], [after], status=HEALTHY)
                self.assertEqual((found["verdict"], len(found["changes"]), found["request_ns"]["changed"]), ("only places changed", 2, False))
                self.assertLess(found["changes_ns"]["low"], 0)
                self.assertGreater(found["changes_ns"]["high"], 0)
        slower = self.single_spans("Slower", span="Alpha", requests=1000, slower=1.3)
        self.assertEqual(self.compared(pair[:1], [slower], status=FINDING)["verdict"], "slower")

    def test_compare_processes_with_new_names(self):
        """A process with a new ID, or a pod with a new random name, is the same program. Programs that a log keeps apart stay apart."""
        for names, place in ((("server.101", "server.202"), "Work of server.*"), (("api-5d8f9c7b6-x2kqz", "api-7f9c6d5b4-bcdfg"), "Work of api-*")):
            logs = []
            for i, (name, slower) in enumerate(zip((*names, names[1]), (1, 1, 1.3))):
                logs.append(self.single_spans(f"new{i}", requests=1000, slower=slower))
                logs[-1].write_text(logs[-1].read_text().replace("PROG=p ", f"PROG={name} "))
            same, slower = (self.compared(logs[:1], [after]) for after in logs[1:])
            self.assertEqual((same["verdict"], same["changes"], same.get("mix")), ("no change found", [], None))
            self.assertEqual((slower["verdict"], slower["changes"][0]["place"]), ("slower", place))
            self.assertFalse(slower["changes"][0]["visits"]["changed"])
        steps = []
        for side, slower in ("before", 1), ("after", 2):
            chance, lines = random.Random(side), []
            for i in range(500):
                at = i * 0.5
                for step, took in (1, 0.01), (2, 0.01 * slower):
                    end = at + took * chance.lognormvariate(0, 0.1)
                    lines += [(at, f"HOST=h PROG=stage{step} LVL=Usage NL.EVNT=Work.start ID=r{i}"), (end, f"HOST=h PROG=stage{step} LVL=Usage NL.EVNT=Work.end ID=r{i}")]
                    at = end + 1e-4
            steps.append(self.scratch / f"stages-{side}.log")
            simulate.write_lines(steps[-1], sorted(lines))
        self.assertEqual(self.compared(steps[:1], steps[1:], status=FINDING)["changes"][0]["place"], "Work of stage2")

    def test_compare_by_places(self):
        """If only the time of a place is precise enough, the answer states the decisive interval."""
        paths = []
        for name, check in ("before", 0.001), ("after", 0.0012):
            chance, lines = random.Random(name), []
            for i in range(1000):
                at, took, checked = i * 10.0, 0.1 * chance.lognormvariate(0, 1.5), check * chance.uniform(0.9, 1.1)
                for span, begin, end in ("Work", at, at + took), ("Check", at + took + 1e-5, at + took + 1e-5 + checked):
                    lines += [(begin, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.start ID=r{i}"), (end, f"HOST=h PROG=p LVL=Usage NL.EVNT={span}.end ID=r{i}")]
            paths.append(self.scratch / f"{name}.log")
            simulate.write_lines(paths[-1], sorted(lines))
        for sides, status, verdict, does in (paths, FINDING, "slower", "add"), (paths[::-1], HEALTHY, "faster", "save"):
            found = self.compared(sides[:1], sides[1:], status=status)
            self.assertEqual((found["verdict"], found["request_ns"]["changed"], found["changes"][0]["place"]), (verdict, False, "Check of p"))
            self.assertRegex(found["answer"], rf"^{verdict}: the changed places {does} \d+ us (to|of) a request \(99 % confidence: \d+ us to \d+ us\)$")
            low, high = sorted(abs(found["changes_ns"][end]) for end in ("low", "high"))
            self.assertTrue(150_000 < low < 200_000 < high < 250_000, found["changes_ns"])

    def test_compare_bounds(self):
        """A time cannot become negative, so the interval of a change ends at -100 %, even if two logs of a side differ much."""
        before, after = ([self.single_spans(f"{side}-{i}", slower=1 + i) for i in range(2)] for side in ("before", "after"))
        request = self.compared(before, after)["request_ns"]
        self.assertEqual(request["low"], -1)
        self.assertGreater(request["high"], 1)
        text = self.run_program(self.nldiag, "--compare", *before, "--with", *after).stdout
        self.assertRegex(text, r" % \(99 % confidence: -100\.0 to \+\d+\.\d %\)")

    def test_compare_cannot_tell(self):
        """With two logs on a side, or few requests, even large changes stay hidden. Six logs on each side suffice."""
        before, after = ([self.single_spans(f"{side}{i}", slower=slower) for i in range(6)] for side, slower in (("before", 1), ("after", 1.1)))
        for sides in ((before[:2], before[2:4]), (before[:2], after[:2]), (before[:1], before[1:3])):
            found = self.compared(*sides, status=CANNOT_TELL)
            self.assertEqual((found["verdict"], found["changes"]), ("cannot tell", []))
            self.assertGreater(found["request_ns"]["detectable"], 0.25)
            self.assertRegex(found["answer"], r"^cannot tell: times vary so much that only a change of \d+ % or more would be found; compare about [3-9] logs from before the change, and as many from after it$")
        self.assertEqual(self.compared(before, [self.single_spans(f"same{i}") for i in range(6)], status=HEALTHY)["verdict"], "no change found")
        few = self.compared([self.single_spans("a", requests=30)], [self.single_spans("b", requests=30)], status=CANNOT_TELL)
        self.assertRegex(few["answer"], r"; compare about \d\d+ requests from before the change, and as many from after it$")
        self.assertEqual(self.compared(before[:1], [self.single_spans("much", slower=4)], status=FINDING)["verdict"], "slower")

    def test_compare_reasons(self):
        """The stated reason is the true reason, as text and as JSON."""
        log, few, zero = self.single_spans("log"), self.single_spans("few", requests=15), self.scratch / "zero.log"
        zero.write_text("".join(f"DATE=202601010{i // 60:03d}{i % 60:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=Work.{at} ID=r{i}\n"
                                for i in range(500) for at in ("start", "end")))
        for before, after, reason in ((log, few, "a comparison needs at least 20 requests before the change and as many after it; there are 200 and 15"),
                                      (zero, zero, "the requests before the change have no duration; log the start and the end of each request"),
                                      (log, zero, "the requests after the change have no duration; log the start and the end of each request")):
            found = self.compared([before], [after], status=CANNOT_TELL)
            self.assertEqual((found["verdict"], found["answer"]), ("cannot tell", f"cannot tell: {reason}"))
            result = self.run_program(self.nldiag, "--compare", before, after)
            self.assertEqual((result.returncode, result.stdout.splitlines()[0]), (CANNOT_TELL, found["answer"]))

    def test_compare_fields_named_like_pseudo_fields(self):
        """nldiag does not confuse a field named "kind" or "host" with its own kinds of requests and hosts of visits."""
        def fields(share):
            def of(chance):
                kind = "x" if chance.random() < share else "y"
                return {name: kind, "scale": 0.8 if kind == "x" else 1}
            return of
        for name in "kind", "host", "sort":
            found = self.compared([self.single_spans("b", sigma=0.2, requests=3000, fields=fields(0.6))],
                                  [self.single_spans("a", sigma=0.2, requests=3000, fields=fields(0.4))], status=HEALTHY)
            self.assertEqual((found["verdict"], found["mix"]["field"]), ("no change found", name))
            self.assertAlmostEqual(max(found["mix"][f"share_{side}"] for side in ("before", "after")), 0.6, delta=0.04)

    def test_compare_other_spans(self):
        before, after = self.pages("before", 1), self.pages("after", 2, spans=("Query", "Check"))
        changes = {c["place"]: c["visits"] for c in self.compared(before, after, status=FINDING)["changes"]}
        self.assertEqual([(v["before"], v["after"]) for name, v in changes.items() if name.startswith("Check")], [(0, 1)])
        changes = {c["place"]: c["visits"] for c in self.compared(after, before, status=HEALTHY)["changes"]}
        self.assertEqual([(v["before"], v["after"]) for name, v in changes.items() if name.startswith("Check")], [(1, 0)])

    def test_compare_other_ids(self):
        before, after = self.pages("before", 1), self.scratch / "after.log"
        after.write_text(before[0].read_text().replace(" ID=", " JOB="))
        result = self.run_program(self.nldiag, "--compare", *before, "--with", after)
        self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (UNREADABLE, "", 1), result.stderr)
        self.assertIn("name the field with --id", result.stderr)

    def test_compare_sensors(self):
        """The report of a change includes a sensor that changed. The sensor's connections have no ports."""
        paths = []
        for name, busy, miss in ("before", 20, 0.1), ("after", 90, 0.9):
            (path,) = self.pages(name, name, miss=miss)
            chance = random.Random(name)
            lines = [f"DATE={slow_logs.ulm(simulate.START * 10 ** 9 + i * 10 ** 8)} HOST=h PROG=nlsensor LVL=System NL.EVNT=TcpRtt "
                     f"TCP.PEER=10.0.0.{i % 2}:{chance.randint(32768, 60999)} TCP.RTT={busy + chance.uniform(-5, 5):.2f}" for i in range(300)]
            lines += [line.replace("NL.EVNT=TcpRtt", "NL.EVNT=ClockOffset CLOCK.COLLECTOR=h").replace("TCP.RTT=", "CLOCK.SAMPLES=") for line in lines]
            path.write_text("\n".join(sorted(path.read_text().splitlines() + lines)) + "\n")
            paths.append(path)
        sensors = self.compared(paths[:1], paths[1:], status=FINDING)["sensors"]
        self.assertEqual({s["sensor"] for s in sensors}, {f"TcpRtt TCP.RTT of h 10.0.0.{i}" for i in (0, 1)})

    def test_compare_in_little_memory(self):
        before, after = self.pages("before", 1, 6000), self.pages("after", 2, 6000, miss=0.9)
        found = self.compared(before, after, "--memory", "1m", status=FINDING)
        self.assertGreater(found["before"]["left_out"], 0)
        self.assertEqual(found["changes"][0]["place"], "Query of p")

    def test_compare_needs_requests(self):
        log, (empty, sensors, missing) = self.run_of("healthy", 3)[0], (self.scratch / name for name in ("empty", "sensors", "missing"))
        empty.write_text("")
        sensors.write_text("".join(f"DATE=202601010000{i:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=CpuLoad CPU.BUSY=99\n"
                                   for i in range(60)))
        for path, reason in (empty, "no records"), (sensors, "cannot find a request ID field"), (missing, "No such file"):
            for pair in (path, log), (log, path):
                result = self.run_program(self.nldiag, "--compare", *pair)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (UNREADABLE, "", 1), result.stderr)
                self.assertIn(reason, result.stderr)
                if path == empty:
                    self.assertEqual(result.stderr, f"nldiag: cannot tell: {empty}: no records\n")

    # ---- watching ----

    def watched(self, *options, **load):
        """Returns the alerts for a load that arrives through a pipe."""
        text = io.StringIO()
        follow_load.write(text, **{"seconds": 300, "rate": 250, "seed": 1, **load})
        result = self.run_program(self.nldiag, "--follow", "--json", *options, input=text.getvalue())
        self.assertEqual(result.returncode, HEALTHY, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_follow(self):
        """A fault causes one alert with the start and end of the fault. A run without a fault causes no alert."""
        begin, end = self.watched(fault=150, end=220)
        self.assertEqual([(a["alert"], a["number"], a["place"]) for a in (begin, end)], [("begin", 1, "Query of db"), ("end", 1, "Query of db")])
        self.assertRegex(begin["since"], "T00:02:(2[5-9]|3[0-5])")
        self.assertGreater(begin["now_ns"], 2 * begin["usual_ns"])
        self.assertGreater(begin["share"], 0.3)
        self.assertEqual(self.watched(), [])

    def test_follow_processes_with_new_names(self):
        """A process that starts again with a new name is no new place."""
        for fault in {}, {"fault": 150, "end": 220}:
            text = io.StringIO()
            follow_load.write(text, **{"seconds": 300, "rate": 250, "seed": 1, **fault})
            lines = (line.replace("PROG=db ", f"PROG=db.{100 + number // 30000} ") for number, line in enumerate(text.getvalue().splitlines(keepends=True)))
            result = self.run_program(self.nldiag, "--follow", "--json", input="".join(lines))
            alerts = [json.loads(line) for line in result.stdout.splitlines()]
            self.assertEqual([(a["alert"], a["place"]) for a in alerts], [("begin", "Query of db.*"), ("end", "Query of db.*")] if fault else [])

    def test_follow_names_the_cause(self):
        """For every kind of fault, the alert has the right place and cause, within ten seconds of the fault."""
        for kind, cause in follow_load.KINDS.items():
            with self.subTest(kind=kind):
                begin = self.watched(seconds=42, rate=600, fault=30, kind=kind)[0]
                self.assertEqual((begin["alert"], begin["cause"]), ("begin", cause), begin)
                place = "failed requests" if kind == "failures" else "Parse.end of web -> Query.start of db" if kind == "pause" else "Query of db"
                self.assertEqual(begin["place"], place)
                self.assertRegex(begin["time"], "T00:00:(3[0-9]|40)")
                self.assertEqual(begin.get("finding", {}).get("evidence", []) == [], cause == "slower")

    def test_follow_does_not_name_a_usual_cause(self):
        """A value that is always slow does not explain why all visits become slower."""
        text = io.StringIO()
        follow_load.write(text, 44, 1250, 1, 30, kind="slow")
        before, lines = {}, []
        for line in text.getvalue().splitlines():  # every third request takes 20 ms longer, and has a field
            number = re.search(r"TRACE\.ID=(\d+)", line).group(1)
            slow = int(number) % 3 == 0
            at = datetime.datetime.strptime(line[5:26], "%Y%m%d%H%M%S.%f")
            before[number] = before.get(number, False) or "NL.EVNT=Query.end" in line
            moved = at + datetime.timedelta(milliseconds=20 if slow and before[number] else 0)
            lines.append((moved, f"DATE={moved:%Y%m%d%H%M%S.%f}{line[26:]}" + (f" SORT={'xy'[slow]}" if "Handle.start" in line else "")))
        result = self.run_program(self.nldiag, "--follow", "--json", input="".join(f"{line}\n" for _, line in sorted(lines)))
        begin = json.loads(result.stdout.splitlines()[0])
        self.assertEqual((begin["place"], begin["cause"]), ("Query of db", "slower"))

    def test_follow_destinations(self):
        log, ran = self.scratch / "alerts.log", self.scratch / "ran.txt"
        self.watched("--dest", log, "--run", f'echo "$NLDIAG_ALERT $NLDIAG_NUMBER $NLDIAG_PLACE$NLDIAG_ANSWER" >>{ran}', fault=150, end=220)
        self.assertEqual([f'NL.EVNT=nldiag.alert.{e} ALERT.ID=1 PLACE="Query of db"' in line for e, line in zip(("start", "end"), log.read_text().splitlines())],
                         [True, True], log.read_text())
        support.wait_until(lambda: ran.exists() and ran.read_text().count("\n") == 2)
        self.assertEqual(sorted(ran.read_text().splitlines()), ["begin 1 Query of db", "end 1 Query of db"])

    def test_follow_a_clock_that_jumps(self):
        """A clock step forward or back, and single records with wrong times, are no fault."""
        text = io.StringIO()
        follow_load.write(text, 300, 250, 1)
        lines = text.getvalue().splitlines(True)
        third = len(lines) // 3
        jumped = [line.replace("DATE=20260101", "DATE=20260109") if i > third else line for i, line in enumerate(lines)]
        jumped = [line.replace("DATE=202601", "DATE=202512") if i > 2 * third else line for i, line in enumerate(jumped)]
        jumped[100:100] = [lines[0].replace("DATE=2026", "DATE=2036")]
        result = self.run_program(self.nldiag, "--follow", input="".join(jumped))
        self.assertEqual((result.returncode, result.stdout), (HEALTHY, ""), result.stderr)

    def test_follow_wrong_use(self):
        for arguments in (["--follow", "a", "b"], ["--dest", "x", "a"], ["--run", "x", "a"], ["--follow", "--html", "x"], ["--follow", "--compare", "a", "b"]):
            self.assertEqual(self.run_program(self.nldiag, *arguments).returncode, USAGE, arguments)


class NldiagOfCollector(collector.Case):
    def test_follow_a_collector(self):
        """One alert begins during the fault, and ends after it."""
        self.serve()
        alerts, text = self.scratch / "alerts.json", io.StringIO()
        follow_load.write(text, 300, 250, 1, 150, 220)
        lines = text.getvalue().splitlines(True)
        times = [follow_load.START + offset for offset in (0, 100, 190, 300)]
        stamps = [time.strftime("DATE=%Y%m%d%H%M%S", time.gmtime(at)) for at in times]
        parts = ["".join(line for line in lines if begin <= line[:len(begin)] < end) for begin, end in zip(stamps, [*stamps[1:-1], "DATE=3"])]
        self.send(parts[0].encode())
        with open(alerts, "wb") as out:
            nldiag = self.start(support.program("nltools/nldiag"), "--follow", "--json", f"x-netlog://127.0.0.1:{self.port}?since=0", stdout=out)
        printed = lambda: [json.loads(line) for line in alerts.read_text().splitlines(True) if line.endswith("\n")]
        self.send(parts[1].encode())
        (begin,) = support.wait_until(printed, what="the alert begins")
        self.assertEqual((begin["alert"], begin["place"]), ("begin", "Query of db"))
        self.assertRegex(begin["since"], "T00:02:(2[5-9]|3[0-5])")
        self.send(parts[2].encode())
        support.wait_until(lambda: len(printed()) > 1, what="the alert ends")
        nldiag.send_signal(signal.SIGINT)
        self.assertEqual(nldiag.wait(30), HEALTHY)
        self.assertEqual([(a["alert"], a["number"], a["place"]) for a in printed()], [("begin", 1, "Query of db"), ("end", 1, "Query of db")])


if __name__ == "__main__":
    support.main()
