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
                self.assertIn("never two at once", " ".join(found["evidence"]))

    def test_control_characters_are_not_printed(self):
        path = self.scratch / "hostile.log"
        path.write_text("".join(f"DATE=2026010112000{i % 10} HOST=a PROG=b LVL=Usage NL.EVNT={event} ID={i}\n"
                                for i in range(10) for event in ("x\033[31mred", "y")))
        for options in ["--id", "ID", path], ["--compare", "--id", "ID", path, path]:
            said = self.run_program(self.nldiag, *options).stdout
            self.assertNotIn("\033", said)
            if "--compare" not in options:
                self.assertIn("x?[31mred", said)

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
        self.assertRegex(said, r"(?m)^  server3: as that of client, to within \d+ us; it says that nothing keeps it right$")

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
        self.assertRegex(text, r"Send -> Recv from a to b, 20\.0 ms on the average")
        unkept = f"DATE={date} HOST=b PROG=p LVL=Warning NL.EVNT=ClockKernel CLOCK.SYNCHRONIZED=false CLOCK.ERROR=16000000"
        text = self.run_program(self.nldiag, "--id", "ID", self.one_way("unkept.log", 5.0, unkept)).stdout
        self.assertIn("b: compared with no other; it says that nothing keeps it right", text)

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

    def test_what_is_hardly_a_log(self):
        empty = self.scratch / "empty.log"
        empty.write_text("")
        self.assertEqual(self.told(empty)["causes"], [])
        one = self.scratch / "one.log"
        one.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A=1\n")
        self.assertEqual(self.told(one)["causes"], [])
        only_sensors = self.scratch / "sensors.log"
        only_sensors.write_text("".join(f"DATE=202601010000{i:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=CpuLoad CPU.BUSY=99\n"
                                        for i in range(60)))
        self.assertEqual(self.told(only_sensors)["records"], 60)
        broken = self.scratch / "broken.log"
        broken.write_bytes(self.model("disk").read_bytes() + b"\x00\xff garbage\n" * 5)
        self.assertEqual(self.told(broken, status=1)["causes"][0]["cause"], "disk")
        self.told(self.scratch / "none.log", status=1)

    def test_times_far_apart(self):
        far = self.scratch / "far.log"
        far.write_text("".join(f"DATE={year}0101000000.000000 HOST=h{i % 2} PROG=p LVL=Usage NL.EVNT={event} ID={i}\n"
                               for i in range(200) for year, event in ((1970, "A"), (2026, "B"), (2105, "C"))))
        self.told(far)

    def test_wrong_use(self):
        for arguments in (["--compare", "a"], ["--compare", "--json", "a", "b"], ["--from", "never"], ["--memory", "0"]):
            self.assertEqual(self.run_program(self.nldiag, *arguments).returncode, 2, arguments)


if __name__ == "__main__":
    support.main()
