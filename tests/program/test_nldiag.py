"""nldiag: names the cause of what a modelled program suffers from, and none where it is healthy."""
import html.parser
import json
import os
import random

import slow_logs
import support


class Page(html.parser.HTMLParser):
    """What a page refers to."""

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

    def model(self, fault="", name=None, **settings):
        path = self.scratch / (name or f"{fault or 'healthy'}.log")
        slow_logs.Run(fault, **settings).write(path)
        return path

    def told(self, *arguments, status=0):
        result = self.run_program(self.nldiag, "--json", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return json.loads(result.stdout)

    def first(self, fault, **settings):
        causes = self.told(self.model(fault, **settings))["causes"]
        self.assertTrue(causes, f"nothing found for {fault}")
        return causes[0]

    def test_each_cause_comes_first(self):
        cause = {"client-cpu": ("cpu", "client"), "server-cpu": ("cpu", "server2"), "disk": ("disk", "server3"),
                 "memory": ("memory", "server3"), "straggler": ("straggler", "server4"), "clock": ("clock", "server2"),
                 "pause": ("pause", "client"), "softirq": ("softirq", "client"), "softirq-half": ("softirq", "client"),
                 "unread": ("cpu", "client"), "timer": ("timer", "client")}
        for fault in slow_logs.FAULTS:
            for seed in 1, 2, 3:
                with self.subTest(fault=fault, seed=seed):
                    found = self.first(fault, seed=seed)
                    name, host = cause.get(fault, (fault, None))
                    self.assertEqual(found["cause"], name)
                    if host is not None:
                        self.assertEqual(found["host"], host)
                    self.assertTrue(found["evidence"] and found["advice"] and found["view"].startswith("nlv "))

    def test_one_after_another_in_any_order(self):
        """A lock that is taken in no order, by threads that are always all there: no line, and no distance, shows it."""
        for seed in 1, 2, 3:
            with self.subTest(seed=seed):
                chance, now, lines, waiting, number = random.Random(seed), 0.0, [], [], 0
                while number < 200:
                    while len(waiting) < 8:
                        waiting.append(number)
                        lines.append((now, "Request", number))
                        number += 1
                    taken = waiting.pop(chance.randrange(len(waiting)))
                    begun, now = now, now + chance.expovariate(1000)
                    lines += [(begun + 1e-6, "Work.Begin", taken), (now, "Work.End", taken)]
                path = self.scratch / "lock.log"
                path.write_text("".join(f"DATE=202601011200{at:09.6f} HOST=a PROG=b LVL=Usage NL.EVNT={event} ID={i}\n" for at, event, i in lines))
                found = self.told("--id", "ID", path)["causes"][0]
                self.assertEqual(found["cause"], "lock")
                self.assertIn("never more than one object", " ".join(found["evidence"]))

    def test_control_characters_are_not_printed(self):
        path = self.scratch / "hostile.log"
        path.write_text("".join(f"DATE=2026010112000{i % 10} HOST=a PROG=b LVL=Usage NL.EVNT={event} ID={i}\n"
                                for i in range(10) for event in ("x\033[31mred", "y\u009b31m")))
        for options in ["--id", "ID", path], ["--compare", "--id", "ID", path, path]:
            said = self.run_program(self.nldiag, *options).stdout
            self.assertNotIn("\033", said)
            self.assertNotIn("\u009b", said)
            if "--compare" not in options:
                self.assertIn("x?[31mred", said)
                self.assertIn("y?31m", said)

    @support.long
    def test_healthy(self):
        for seed in range(1, 6):
            for settings in {}, {"rate": 200e6, "streams": 24}, {"rtt": 0.001, "streams": 4}, {"servers": 2, "streams": 24}:
                with self.subTest(seed=seed, **settings):
                    found = self.told(self.model(seed=seed, seconds=10, **settings))
                    self.assertEqual([c["title"] for c in found["causes"]], [])
                    self.assertTrue(found["healthy"])

    def test_clock_is_taken_off(self):
        """What is wrong besides is found with the times as they should be, and the offset is right."""
        found = self.first("clock")
        self.assertRegex(found["title"], r"the clock of server2 is 2\.3\d* s fast")
        self.assertLess(found["to_ns"] - found["from_ns"], 21e9)

    def clock(self, found, host):
        return next(clock for clock in found["clocks"] if clock["host"] == host)

    def test_measured_clock_is_named(self):
        """Also where nothing came before it went: 28 ms are less than any way takes."""
        for ahead, word in (0.028, "fast"), (-0.028, "slow"), (7.5, "fast"):
            with self.subTest(ahead=ahead):
                found = self.told(self.model(clocks={"server2": ahead}, measured_within=0.0005, rtt=0.06, streams=6))
                first = found["causes"][0]
                self.assertEqual((first["cause"], first["host"], len(found["causes"])), ("clock", "server2", 1))
                self.assertRegex(first["title"], rf"the clock of server2 is {abs(ahead) * 1000 if abs(ahead) < 1 else ahead:.2g}.* {word}")
                clock = self.clock(found, "server2")
                self.assertAlmostEqual(clock["ahead_ns"], ahead * 1e9, delta=1e6)
                self.assertLess(clock["error_ns"], 1.1e6)
                self.assertIn(" --fix-clocks ", first["view"])
                self.assertEqual((clock["reference"], clock["off"], clock["kept"]), ("client", True, False))
                self.assertFalse(self.clock(found, "server1")["off"])

    def test_measured_clocks_that_are_right(self):
        """What is measured coarsely says nothing against a clock, and changes nothing."""
        for within in 0.0005, 0.03:
            found = self.told(self.model(measured_within=within))
            self.assertTrue(found["healthy"])
            self.assertFalse(any(clock["off"] for clock in found["clocks"]))
        said = self.run_program(self.nldiag, self.model(measured_within=0.0005)).stdout
        self.assertRegex(said, r"(?m)^  server3: equal to that of client, to within \d+ us; it is not synchronized$")

    def test_drifting_clock_does_not_hide_the_cause(self):
        """Ways between hosts are of times that were set right: the slow disk is found behind a clock that is off ever more."""
        found = self.told(self.model("disk", clocks={"server1": -4.0}, drift=1e-3, measured_within=0.0005))
        self.assertEqual({cause["cause"] for cause in found["causes"]} , {"clock", "disk"})
        self.assertAlmostEqual(self.clock(found, "server1")["drift_ppm"], 1000, delta=60)
        plain = self.told(self.model("disk"))["causes"][0]
        disk = next(cause for cause in found["causes"] if cause["cause"] == "disk")
        self.assertAlmostEqual(disk["share"], plain["share"], delta=0.05)

    def one_way(self, name, ahead, *clocks):
        """From a to b, which takes 20 ms, and 5 more there; b's clock is ahead."""
        lines = [clock for i in range(3) for clock in clocks]
        for i in range(200):
            for host, event, at, off in ("a", "Send", 0, 0), ("b", "Recv", 0.02, ahead), ("b", "Done", 0.025, ahead):
                ns = slow_logs.START + int((i * 0.05 + at + off) * 1e9)
                lines.append(f"DATE={slow_logs.ulm(ns)} HOST={host} PROG=p LVL=Usage NL.EVNT={event} ID={i}")
        path = self.scratch / name
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_one_way_only(self):
        """No message can break causality; the ways are as measured, or their doubt is told."""
        date = slow_logs.ulm(slow_logs.START)
        measured = (f"DATE={date} HOST=b PROG=p LVL=System NL.EVNT=ClockOffset CLOCK.COLLECTOR=a CLOCK.OFFSET=-5000000 CLOCK.ERROR=100 "
                    "CLOCK.DELAY=200 CLOCK.SAMPLES=8")
        found = self.told("--id", "ID", self.one_way("measured.log", 5.0, measured))
        self.assertRegex(found["causes"][0]["title"], r"the clock of b is 5\.00 s fast")
        text = self.run_program(self.nldiag, "--id", "ID", self.one_way("measured.log", 5.0, measured)).stdout
        self.assertRegex(text, r"Send -> Recv from a to b, 20\.0 ms on average")
        unkept = f"DATE={date} HOST=b PROG=p LVL=Warning NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false CLOCK.ERROR=16000000"
        text = self.run_program(self.nldiag, "--id", "ID", self.one_way("unkept.log", 5.0, unkept)).stdout
        self.assertIn("b: not compared with another; it is not synchronized", text)

    def test_one_of_many(self):
        """A slow disk among twenty servers is a small part of all time."""
        log = self.scratch / "many.log"
        run = slow_logs.Run("disk", servers=20, streams=3, rate=600e6, seconds=10)
        run.write(log)
        found = self.told(log)["causes"][0]
        self.assertEqual((found["cause"], found["host"]), ("disk", "server3"))

    def test_text(self):
        result = self.run_program(self.nldiag, self.model("disk"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^1\. a slow disk on server3 \[disk\]\n   explains \d+ % of all time; \d+ % sure$")
        self.assertIn("Where the time goes:", result.stdout)
        healthy = self.run_program(self.nldiag, self.model())
        self.assertIn("Healthy", healthy.stdout)

    def test_html(self):
        page, log = self.scratch / "report.html", self.model("disk", name="a <log> & more.log")
        result = self.run_program(self.nldiag, "--html", page, log,
                                  env={**os.environ, "PATH": f"{support.BUILD / 'nlv'}:{os.environ['PATH']}"})
        self.assertEqual(result.returncode, 0, result.stderr)
        parsed = Page()
        parsed.feed(page.read_text())
        self.assertTrue(all(link.startswith("data:") for link in parsed.links), "the page needs nothing else")
        self.assertNotIn("<log>", page.read_text())
        if (support.BUILD / "nlv" / "nlv").exists():
            self.assertTrue(parsed.images)
        refused = self.run_program(self.nldiag, "--html", self.scratch / "no" / "report.html", log)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("report.html", refused.stderr)

    def test_compare(self):
        result = self.run_program(self.nldiag, "--compare", self.model(), self.model("disk"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("DiskReadStart -> DiskReadEnd on server3", result.stdout.split("Where an object's time changed:")[1].splitlines()[1])
        self.assertIn("DiskDevice DISK.BUSY sda on server3", result.stdout)

    def test_compare_needs_requests(self):
        log, empty, sensors, missing = self.model(seconds=5), *(self.scratch / name for name in ("empty", "sensors", "missing"))
        empty.write_text("")
        sensors.write_text("".join(f"DATE=202601010000{i:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=CpuLoad CPU.BUSY=99\n"
                                   for i in range(60)))
        for path, reason in (empty, "no records"), (sensors, "cannot find a request ID field"), (missing, "No such file"):
            for pair in (path, log), (log, path):
                result = self.run_program(self.nldiag, "--compare", *pair)
                self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1), result.stderr)
                self.assertIn(str(path), result.stderr)
                self.assertIn(reason, result.stderr)
        both = self.run_program(self.nldiag, "--compare", empty, sensors)
        self.assertEqual((both.returncode, both.stdout, both.stderr.count("\n")), (1, "", 2), both.stderr)

    def test_reason_for_no_requests(self):
        log, config = self.scratch / "one.log", self.scratch / "lines.conf"
        log.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1\n"
                       "DATE=20260101000001.000000 HOST=h PROG=p LVL=Usage NL.EVNT=F A=2\n")
        config.write_text("[lifeline R]\nid=ID\nevents=Begin;End\n")
        for options, reason in (["--id", "A"], "no two events have the same values of --id"), \
                               (["--config", config], "no record belongs to a lifeline of --config"):
            for arguments in [log], ["--compare", log, log]:
                result = self.run_program(self.nldiag, *options, *arguments)
                self.assertEqual(result.returncode, 1)
                self.assertIn(reason, result.stderr)

    def test_compare_names_the_file_of_a_sample(self):
        log = self.scratch / "many.log"
        log.write_text("".join(f"DATE={slow_logs.ulm(slow_logs.START + i * 1000000)} HOST=h PROG=p LVL=Usage NL.EVNT={event} ID={i}\n"
                               for i in range(20000) for event in ("A", "B", "C")))
        result = self.run_program(self.nldiag, "--compare", "--memory", "1m", log, log)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertTrue(line.startswith(f"nldiag: {log}: the verdict covers a sample"), line)

    def test_what_is_hardly_a_log(self):
        empty = self.scratch / "empty.log"
        empty.write_text("")
        result = self.run_program(self.nldiag, empty)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nldiag: cannot tell: {empty}: no records\n"))
        one = self.scratch / "one.log"
        one.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1\n")
        found = self.told(one, status=1)
        self.assertEqual((found["causes"], found["healthy"]), ([], None))
        self.assertIn("No verdict", self.run_program(self.nldiag, one).stdout)
        only_sensors = self.scratch / "sensors.log"
        only_sensors.write_text("".join(f"DATE=202601010000{i:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=CpuLoad CPU.BUSY=99\n"
                                        for i in range(60)))
        self.assertEqual(self.told(only_sensors, status=1)["records"], 60)
        broken = self.scratch / "broken.log"
        broken.write_bytes(self.model("disk").read_bytes() + b"\x00\xff garbage\n" * 5)
        self.assertEqual(self.told(broken, status=1)["causes"][0]["cause"], "disk")
        missing = self.run_program(self.nldiag, self.scratch / "none.log")
        self.assertEqual((missing.returncode, missing.stdout, missing.stderr.count("\n")), (1, "", 1))

    def test_times_far_apart(self):
        far = self.scratch / "far.log"
        far.write_text("".join(f"DATE={year}0101000000.000000 HOST=h{i % 2} PROG=p LVL=Usage NL.EVNT={event} ID={i}\n"
                               for i in range(200) for year, event in ((1970, "A"), (2026, "B"), (2105, "C"))))
        self.told(far)

    # ---- programs of other kinds: requests from front to back end, with a noise of their own ----

    def told_of(self, records, name="other.log"):
        """records: seconds, host, event, fields."""
        path = self.scratch / name
        path.write_text("".join(f"DATE={slow_logs.ulm(slow_logs.START + int(at * 1e9))} HOST={host} PROG=p LVL=Usage NL.EVNT={event} {fields}\n"
                                for at, host, event, fields in sorted(records, key=lambda record: record[0])))
        return self.told("--id", "ID", path)

    def requests(self, cost=lambda chance, at, number, host: 0.0, count=3000, rate=100.0, fields=lambda number: "", hosts=("b1", "b2", "b3"), seed=1,
                 end=lambda chance, number: True, host_of=None):
        """Each goes from a to one of several and back, and takes 10 ms there, or cost more."""
        chance, at, records = random.Random(seed), 0.0, []
        for number in range(count):
            at += chance.expovariate(rate)
            host, now = (host_of or (lambda c: c.choice(hosts)))(chance), at
            records.append((now, "a", "Ask", f"ID={number} {fields(number)}"))
            now += chance.uniform(0.0002, 0.0004)
            records.append((now, host, "Begin", f"ID={number}"))
            now += 0.01 * chance.lognormvariate(0, 0.3) + cost(chance, at, number, host)
            records.append((now, host, "End", f"ID={number}"))
            now += chance.uniform(0.0002, 0.0004)
            if end(chance, number):
                records.append((now, "a", "Answer", f"ID={number}"))
        return records

    def test_healthy_programs_of_other_kinds(self):
        kinds, costs = ("get", "put", "list", "scan"), (0, 0.015, 0.03, 0.07)
        chosen = random.Random(7)
        of = [chosen.choices(range(4), (60, 20, 15, 5))[0] for _ in range(3000)]
        programs = {"plain": {}, "two speeds": {"cost": lambda c, at, n, h: c.choice((0, 0, 0.06)) * c.lognormvariate(0, 0.3)},
                    "few outliers": {"cost": lambda c, at, n, h: 0.2 * (c.random() < 0.004)},
                    "many kinds": {"cost": lambda c, at, n, h: costs[of[n]] * c.lognormvariate(0, 0.3), "fields": lambda n: f"TYPE={kinds[of[n]]}"},
                    "by size": {"cost": lambda c, at, n, h: n * 7919 % 1000 * 5e-5, "fields": lambda n: f"SIZE={n * 7919 % 1000}"}}
        for name, settings in programs.items():
            for seed in 1, 2, 3:
                with self.subTest(program=name, seed=seed):
                    self.assertEqual([cause["title"] for cause in self.told_of(self.requests(seed=seed, **settings))["causes"]], [])

    def test_kind(self):
        kinds = ("browse", "search", "cart", "report")
        for wanted in kinds[2:]:
            found = self.told_of(self.requests(lambda c, at, n, h: 0.1 * (kinds[n % 17 % 4] == wanted) * c.lognormvariate(0, 0.3),
                                               fields=lambda n: f"TYPE={kinds[n % 17 % 4]} SIZE={n}"))
            first = found["causes"][0]
            self.assertEqual((first["cause"], first["title"]), ("kind", f"Begin -> End is slow where TYPE is {wanted}"))
        # One of a host's is no kind.
        first = self.told_of(self.requests(lambda c, at, n, h: 0.1 * (h == "b2") * c.random(), fields=lambda n: f"TYPE={kinds[n % 4]}"))["causes"][0]
        self.assertEqual((first["cause"], first["host"]), ("straggler", "b2"))

    def test_time_out(self):
        for share, more, text in (0.01, 5.0, "5.00 s"), (0.08, 1.0, "1.00 s"), (0.6, 0.04, "40.0 ms"):
            with self.subTest(text=text):
                waits = lambda c, at, n, h: (more + c.uniform(0, 0.001)) * (c.random() < share)
                first = self.told_of(self.requests(waits))["causes"][0]
                self.assertEqual(first["cause"], "timer")
                self.assertIn(f"some wait {text} longer in Begin -> End", first["title"])

    def test_waits_of_a_constant_that_is_not_round(self):
        first = self.told_of(self.requests(lambda c, at, n, h: 1.77 * (c.random() < 0.05)))["causes"][0]
        self.assertEqual(first["cause"], "timer")
        self.assertIn("some wait 1.7", first["title"])

    def test_beat(self):
        """A poll: all that came meanwhile go on at once."""
        records = []
        for number in range(2000):
            at = number / 70 + 0.004 * (number % 3)
            seen = at - at % 0.25 + 0.25 + 1e-5 * (number % 50)
            records += [(at, "a", "Put", f"ID={number}"), (seen, "a", "Got", f"ID={number}"), (seen + 0.003, "a", "Done", f"ID={number}")]
        first = self.told_of(records)["causes"][0]
        self.assertEqual((first["cause"], first["from_event"], first["to_event"]), ("timer", "Put", "Got"))
        self.assertRegex(first["title"], "a beat of 2(50|49) ms")

    def test_passed_more_often(self):
        """Each step takes as long for all, but some objects make many."""
        chance, records = random.Random(4), []
        kinds = "home", "item", "cart", "list", "user"
        for number in range(1500):
            at, kind = number / 30, kinds[number % 5]
            records.append((at, "a", "Page", f"ID={number} PAGE={kind}"))
            for _ in range(30 if kind == "list" else 2):
                for event in "Query", "Rows":
                    at += chance.uniform(0.001, 0.003)
                    records.append((at, "a", event, f"ID={number}"))
            records.append((at + 0.005, "a", "Sent", f"ID={number}"))
        first = self.told_of(records)["causes"][0]
        self.assertEqual(first["cause"], "kind")
        self.assertIn("PAGE is list", first["title"])
        self.assertRegex(" ".join(first["evidence"]), r"passes it (29|30)\.0 times, others [12]\.0 times")

    def test_slow_for_a_while_is_no_queue(self):
        """While a step is slow there are more at once, too; nobody waits for those before."""
        found = self.told_of(self.requests(lambda c, at, n, h: 0.8 * c.lognormvariate(0, 0.4) * (12 < at < 16), hosts=("b1",)))["causes"]
        self.assertEqual([cause["cause"] for cause in found], ["varies"])

    def test_rounds_of_long_work_are_no_pauses(self):
        """All wait for the last one, time after time, while nothing is logged."""
        chance, records, at = random.Random(6), [], 0.0
        for number in range(600):
            if number % 30 == 0:
                at += 20
            end = at + chance.uniform(12, 16)
            records += [(at + chance.random(), "a", "Begin", f"ID={number}"), (end, "a", "End", f"ID={number}"), (end + 0.5, "a", "Done", f"ID={number}")]
        self.assertEqual([cause["title"] for cause in self.told_of(records)["causes"]], [])

    def served(self, places, hosts=2, until="Done"):
        """Wait -> Have waits for one of so many places, until Done; two events are between."""
        model, lines, chance = slow_logs.Model(), [], random.Random(5)
        pool = slow_logs.Resource(model, places)

        def request(number):
            host = f"h{number % hosts}"
            log = lambda event: lines.append((model.now, host, event, f"ID={number}"))
            log("Wait")
            yield chance.uniform(0.001, 0.002)
            log("Want")
            yield pool
            log("Have")
            yield chance.uniform(0.01, 0.02)
            log("Used")
            yield chance.expovariate(30 / places)
            log(until)
            pool.give()
            yield chance.uniform(0.001, 0.002)
            log("Left")

        def come():
            for number in range(3000):
                yield chance.expovariate(0.95 / (1 / 30 + 0.015 / places))
                model.at(0, request(number))
        model.at(0, come())
        model.run(1000)
        return lines

    def test_so_many_at_a_time(self):
        for places in 4, 10:
            for hosts in 1, 2:
                with self.subTest(places=places, hosts=hosts):
                    first = self.told_of(self.served(places, hosts))["causes"][0]
                    self.assertEqual(first["cause"], "lock")
                    self.assertRegex(first["title"], f"^{places} at a time: Want -> Have")

    def test_one_at_a_time_in_the_last_leg_of_a_host(self):
        """What follows leads to another host: it might as well wait until it could send, but is less sure then."""
        free = {}

        def cost(chance, at, number, host):
            begin = max(at, free.get(host, 0))
            free[host] = begin + 0.03 * chance.lognormvariate(0, 0.3)
            return free[host] - at
        first = self.told_of(self.requests(cost, rate=75))["causes"][0]
        self.assertEqual((first["cause"], first["from_event"]), ("lock", "Begin"))

    def test_changed(self):
        for name, cost, title in (("since", lambda c, at, n, h: 0.006 * (at > 15), "slower since 2023-11-14T22:13:3[45]"),
                                  ("until", lambda c, at, n, h: 0.06 * (at < 1.5), "slow until 2023-11-14T22:13:21"),
                                  ("ever", lambda c, at, n, h: 0.002 * at, "increasingly slow")):
            with self.subTest(name):
                first = self.told_of(self.requests(cost))["causes"][0]
                self.assertEqual(first["cause"], "changed")
                self.assertRegex(first["title"], title)
                self.assertIn("Begin -> End", first["evidence"][1])
        sensed = [(at, "b2", "CpuFrequency", f"HZ={3.2e9 if at < 15 else 2.3e9:.0f}") for at in range(30)]
        first = self.told_of(self.requests(lambda c, at, n, h: 0.005 * (at > 15 and h == "b2")) + sensed)["causes"][0]
        self.assertEqual((first["cause"], first["host"]), ("changed", "b2"))
        self.assertIn("CpuFrequency HZ of b2 was", " ".join(first["evidence"]))

    def test_gone_more_often(self):
        """Nothing takes longer; but a way that was rare is common."""
        chance, records = random.Random(3), []
        for number in range(3000):
            at = number / 100
            hit = chance.random() < (0.9 if at < 15 else 0.2)
            for event, took in ("Ask", 0.001), ("Look", 0.002), *([] if hit else [("Read", 0.01)]), ("Done", 0):
                records.append((at, "a", event, f"ID={number}"))
                at += took * chance.uniform(0.9, 1.1)
        first = self.told_of(records)["causes"][0]
        self.assertEqual(first["cause"], "changed")
        self.assertRegex(" ".join(first["evidence"]), r"Read -> Done on a .*passed 0\.1\d times per object before, 0\.\d+ after")

    def test_unended(self):
        first = self.told_of(self.requests(end=lambda chance, number: chance.random() < 0.8))["causes"][0]
        self.assertEqual(first["cause"], "unended")
        self.assertRegex(first["title"], r"^(19|20|21) % never reach Answer: the last event of most is End on b")

    def test_uneven_pauses(self):
        """Ever longer, at no even distances: nothing is logged on the host meanwhile, and all waits."""
        chance, stops, at = random.Random(2), [], 1.0
        while at < 30:
            stops.append((at, at + 0.2 + 0.02 * at))
            at = stops[-1][1] + chance.uniform(0.8, 3)
        late = lambda now: next((end for begin, end in stops if begin <= now < end), now)
        records = []
        for number in range(3000):
            now = number / 100 + chance.uniform(0, 0.01)
            for host, event, took in ("a", "Ask", 0.0003), ("b", "Begin", 0.01), ("b", "End", 0.0003), ("a", "Answer", 0):
                now = late(now) + chance.uniform(0, 1e-5) if host == "b" else now
                records.append((now, host, event, f"ID={number}"))
                now += took * chance.uniform(0.7, 1.3)
        first = self.told_of(records)["causes"][0]
        self.assertEqual((first["cause"], first["host"]), ("pause", "b"))
        self.assertIn("they become longer", " ".join(first["evidence"]))
        # A lull is no pause.
        lulls = [record for record in self.requests() if not any(begin <= record[0] < end for begin, end in stops)]
        self.assertNotIn("pause", [cause["cause"] for cause in self.told_of(lulls)["causes"]])

    def test_balance(self):
        pick = lambda chance: "b1" if chance.random() < 0.7 else chance.choice(("b2", "b3"))
        sensed = [(at, host, "CpuLoad", f"CPU.BUSY={busy}") for at in range(30) for host, busy in (("b1", 75), ("b2", 16), ("b3", 17))]
        first = self.told_of(self.requests(lambda c, at, n, h: 0.01 * c.random() * (h == "b1"), host_of=pick) + sensed)["causes"][0]
        self.assertEqual((first["cause"], first["host"]), ("balance", "b1"))
        self.assertRegex(first["evidence"][0], r"^it gets 4\.\d+ times as many objects")

    def test_no_straggler_by_chance(self):
        """A few that wait long make means differ."""
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                records = self.requests(lambda c, at, n, h: c.expovariate(5) * (c.random() < 0.2), count=400, hosts=[f"b{i}" for i in range(8)], seed=seed)
                self.assertNotIn("straggler", [cause["cause"] for cause in self.told_of(records)["causes"]])

    def test_link_and_space(self):
        for name, rate, cause in ("full", 119e6, ["link"]), ("half", 60e6, []):
            chance = random.Random(1)
            way = [0.08 * chance.random() for _ in range(3000)]
            sensed = [(at, "b1", "NetworkInterface", f"NET.NAME=eth0 NET.IN={chance.gauss(rate, rate / 100):.0f} NET.OUT=100000") for at in range(30)]
            records = [(at + (way[int(fields.split("=")[1])] if event != "Ask" else 0), host, event, fields)
                       for at, host, event, fields in self.requests(hosts=("b1",))]
            with self.subTest(name):
                self.assertEqual([c["cause"] for c in self.told_of(records + sensed)["causes"]], cause)
        for free, changes, cause in (5e9, 1e8, ["disk"]), (5e9, 0, []), (500e9, 1e8, []):
            sensed = [(at, "b1", "FilesystemSpace", f"FS.MOUNT=/data FS.TOTAL={10**12} FS.AVAILABLE={free - at * changes:.0f}") for at in range(30)]
            with self.subTest(free=free, changes=changes):
                found = self.told_of(self.requests(hosts=("b1",)) + sensed)["causes"]
                self.assertEqual([c["cause"] for c in found], cause)

    def test_wrong_use(self):
        for arguments in (["--compare", "a"], ["--compare", "--json", "a", "b"], ["--since", "never"], ["--memory", "0"]):
            self.assertEqual(self.run_program(self.nldiag, *arguments).returncode, 2, arguments)


if __name__ == "__main__":
    support.main()
