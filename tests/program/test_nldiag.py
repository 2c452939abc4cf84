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
                 "pause": ("pause", "client"), "softirq": ("softirq", "client"), "timer": ("timer", "client")}
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
