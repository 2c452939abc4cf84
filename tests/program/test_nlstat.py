"""nlstat: segments, pairs, what is missing, the slowest, throughput, comparisons, plots."""
import json
import os
import random
import resource
import signal

import support
import workflow

EVENTS = ("Client.Send", "Server.Recv", "Server.Done", "Client.Recv")


def line(us, event, request, **fields):
    rest = "".join(f" {name}={value}" for name, value in fields.items())
    host = "c" if event.startswith("Client") else "s"
    return (f"DATE=2026010112{us // 60000000 % 60:02d}{us // 1000000 % 60:02d}.{us % 1000000:06d} HOST={host} PROG=p "
            f"LVL=Usage NL.EVNT={event} REQ.ID={request}{rest}\n")


def requests(count=50, stretch=1):
    """Requests 10 ms apart: 1 ms to the server, 5 ms there, 1 ms back; after them what a sensor says."""
    text = []
    for i in range(count):
        for event, offset in zip(EVENTS, (0, 1000, 1000 + 5000 * stretch, 2000 + 5000 * stretch)):
            text.append((i * 10000 + offset, line(i * 10000 + offset, event, f"r{i}", KIND=i % 2)))
    return "".join(l for _, l in sorted(text))


class Nlstat(support.Case):
    def setUp(self):
        super().setUp()
        self.nlstat = support.program("nltools/nlstat")

    def log(self, text, name="a.log"):
        path = self.scratch / name
        path.write_text(text)
        return path

    def found(self, *arguments, status=0):
        result = self.run_program(self.nlstat, "--json", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return json.loads(result.stdout)

    def test_segments_add_up(self):
        (found,) = self.found(self.log(requests()))
        self.assertEqual(found["id"], ["REQ.ID"])
        self.assertEqual(found["objects"], 50)
        self.assertEqual(found["total_ns"], 50 * 7_000_000)
        self.assertEqual([(s["from"], s["p50_ns"]) for s in found["segments"]],
                         [("Client.Send", 1_000_000), ("Server.Recv", 5_000_000), ("Server.Done", 1_000_000)])
        self.assertAlmostEqual(sum(s["share"] for s in found["segments"]), 1, 5)

    def test_order_of_records_does_not_matter(self):
        lines = requests().splitlines(keepends=True)
        random.Random(7).shuffle(lines)
        self.assertEqual(self.found(self.log(requests())), self.found(self.log("".join(lines), "b.log")))

    def test_by_field_and_missing_ends(self):
        log = self.log("".join(l for l in requests().splitlines(keepends=True)
                               if not ("Client.Recv" in l and "KIND=1" in l)))
        (found,) = self.found("--by", "KIND", log)
        self.assertEqual(found["without_last"], 25)
        self.assertEqual({s["by"] for s in found["segments"]}, {"0", "1"})
        self.assertEqual([(e["name"], e["first"]) for e in found["without_last_examples"]],
                         [("r1", "Client.Recv"), ("r3", "Client.Recv"), ("r5", "Client.Recv")])
        text = self.run_program(self.nlstat, "--missing", "1", log).stdout
        self.assertIn("25 requests without Client.Recv, the last event\n", text)
        self.assertEqual(text.count("lacks Client.Recv"), 1)

    def test_by_host_is_the_rarest_visited(self):
        log = self.log("".join(l.replace("HOST=s", f"HOST=s{l.split('KIND=')[1].strip()}")
                               for l in requests().splitlines(keepends=True)))
        (found,) = self.found("--by", "HOST", log)
        self.assertEqual({s["by"] for s in found["segments"]}, {"s0", "s1"})

    def test_against_the_order(self):
        text = requests(20) + line(900000, "Client.Send", "odd") + line(900001, "Server.Done", "odd") + \
            line(900002, "Server.Recv", "odd") + line(900003, "Client.Recv", "odd")
        (found,) = self.found(self.log(text))
        self.assertEqual(found["disordered"], 1)
        self.assertEqual([(e["name"], e["first"], e["then"]) for e in found["disordered_examples"]],
                         [("odd", "Server.Done", "Server.Recv")])

    def test_slowest(self):
        text = requests(100) + "".join(line(2000000 + offset, event, "slow") for event, offset in
                                       zip(EVENTS, (0, 1000, 700000, 701000)))
        (found,) = self.found("--slowest", "3", self.log(text))
        slowest = found["slowest"]
        self.assertEqual([(s["name"], s["total_ns"]) for s in slowest],
                         [("slow", 701_000_000), ("r0", 7_000_000), ("r1", 7_000_000)])
        self.assertEqual((slowest[0]["longest_from"], slowest[0]["longest_ns"]), ("Server.Recv", 699_000_000))

    def test_a_workflows_jobs(self):
        log = self.log(workflow.workflow_log(jobs=40, unfinished=(7, 30)), "a.bp")
        jobs = ("--id", "xwf.id,job.id,job_inst.id", "--where", 'NL.EVNT ~ "stampede.job_inst.*"')
        text = self.run_program(self.nlstat, *jobs, log)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("Requests by xwf.id, job.id, job_inst.id: 40,", text.stdout)
        self.assertIn("2 requests without stampede.job_inst.post.end", text.stdout)
        for number in (7, 30):
            self.assertRegex(text.stdout, f"/merge_mProjectPP-3.3_PID{number}_ID{number}/{number} .*lacks stampede.job_inst.post.start")
        found = self.found(*jobs, log)[0]
        counts = {s["from"].removeprefix("stampede.job_inst.") + " " + s["to"].removeprefix("stampede.job_inst."): s["count"] for s in found["segments"]}
        self.assertEqual(counts, {f"{a} {b}": 40 if i < 5 else 38 for i, (a, b) in enumerate(zip(workflow.STEPS, workflow.STEPS[1:]))})

    def test_pairs(self):
        text = ""
        for i in range(10):
            at = i * 100000
            for event, offset in [("job.start", 0), ("io.start", 1000), ("io.end", 3000), ("io.start", 4000),
                                  ("io.end", 5000), ("job.end", 10000)]:
                if not (i == 9 and event == "job.end"):
                    text += line(at + offset, event, i)
        (found,) = self.found(self.log(text))
        pairs = {p["name"]: p for p in found["pairs"]}
        self.assertEqual((pairs["job"]["count"], pairs["job"]["never_ended"]), (9, 1))
        self.assertEqual((pairs["job"]["mean_ns"], pairs["job"]["exclusive_mean_ns"]), (10_000_000, 7_000_000))
        self.assertEqual((pairs["io"]["count"], pairs["io"]["mean_ns"], pairs["io"]["exclusive_mean_ns"]),
                         (20, 1_500_000, 1_500_000))

    def test_pairs_that_overlap(self):
        text = "".join(line(i * 100000 + offset, event, i) for i in range(10) for event, offset in
                       [("ReadStart", 0), ("SendStart", 1000), ("ReadEnd", 2000), ("SendEnd", 5000)])
        (found,) = self.found(self.log(text))
        self.assertEqual({p["name"]: (p["count"], p["mean_ns"], p["never_ended"], p["never_started"])
                          for p in found["pairs"]},
                         {"Read": (10, 2_000_000, 0, 0), "Send": (10, 4_000_000, 0, 0)})

    def test_times_and_where(self):
        log = self.log(requests())
        (found,) = self.found("--where", "KIND == 1", log)
        self.assertEqual((found["objects"], found["without_first"], found["without_last"]), (25, 0, 0))
        (found,) = self.found("--since", "20260101120000.1", "--until", "20260101120000.2", log)
        self.assertEqual(found["objects"], 10)

    def test_throughput(self):
        text = "".join(line(i * 10000, "Send", i, SIZE=1000) for i in range(300)) + line(1, "Send", 0, SIZE="many")
        result = self.run_program(self.nlstat, "--json", "--throughput", "SIZE", "--interval", "1", self.log(text))
        found = json.loads(result.stdout)[-1]
        self.assertEqual((found["total"], found["records"], found["unusable"]), (300000, 300, 1))
        self.assertEqual([i["sum"] for i in found["intervals"]], [100000] * 3)
        text = self.run_program(self.nlstat, "--throughput", "SIZE", self.log(text)).stdout
        self.assertIn("300.0 k in 300 records", text)

    def test_comparison(self):
        result = self.run_program(self.nlstat, "--compare", self.log(requests(), "before.log"),
                                  self.log(requests(stretch=2), "after.log"))
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = {l.split("  ")[1]: l.split() for l in result.stdout.splitlines() if " -> " in l}
        self.assertEqual(rows["Server.Recv -> Server.Done"][-1], "2.00")
        self.assertEqual(rows["Client.Send -> Server.Recv"][-1], "1.00")

    def test_many_are_within_a_percent(self):
        """Beyond what is kept as it is quantiles are of a sketch, whose error is stated."""
        chosen = random.Random(3)
        times = [chosen.choice((30, 200, 5000)) + chosen.randrange(20) for _ in range(280000)]
        with open(self.scratch / "a.log", "w") as log:
            for i, t in enumerate(times):
                log.write(line(i % 900000000, "A.Begin", i) + line(i % 900000000 + t, "A.End", i))
        (found,) = self.found(self.scratch / "a.log")
        (segment,) = found["segments"]
        self.assertFalse(segment["exact"])
        times.sort()
        for share, name in ((0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")):
            exact = times[int(share * len(times)) - 1] * 1000
            self.assertLessEqual(abs(segment[name] - exact), 0.011 * exact, name)
        self.assertEqual(segment["max_ns"], times[-1] * 1000)

    def test_memory_is_bounded(self):
        """Requests that wait longest are measured early; nothing of them is lost, and incomplete ones are counted."""
        long = [line(0, "Client.Send", "long"), line(40000 * 10000, "Client.Recv", "long")]
        (found,) = self.found("--memory", "1M", self.log(long[0] + requests(40000) + long[1]))
        self.assertEqual((found["objects"], found["without_first"], found["without_last"]), (40002, 1, 1))
        self.assertEqual(found["measured_early"], 1)
        self.assertEqual([s["count"] for s in found["segments"]], [40000] * 3)

    def test_plots(self):
        log = self.log(requests())
        for name, begin in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
            result = self.run_program(self.nlstat, "--plot", self.scratch / name, "--throughput", "KIND", log)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue((self.scratch / name).read_bytes().startswith(begin))
        self.assertIn("Durations of requests by REQ.ID", self.run_program(self.nlstat, "--plot", "-", log).stdout)
        for path in ("/nowhere/a.png", "/nowhere/a.svg"):
            result = self.run_program(self.nlstat, "--plot", path, log)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"write {path}: ", result.stderr)

    def test_a_plot_that_cannot_be_written_leaves_what_was_there(self):
        """The file may not grow beyond a kilobyte: as on a full disk."""
        def little():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        log = self.log(requests())
        for name in ("a.png", "a.svg"):
            old = self.log("old", name)
            result = self.run_program(self.nlstat, "--plot", old, log, preexec_fn=little)
            self.assertEqual(result.returncode, 1)
            self.assertIn("write ", result.stderr)
            self.assertEqual(old.read_text(), "old")
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), ["a.log", "a.png", "a.svg"])

    def test_strict(self):
        log = self.log(requests() + "rubbish\n" + requests())
        result = self.run_program(self.nlstat, log)
        self.assertIn("Requests by REQ.ID", result.stdout)
        strict = self.run_program(self.nlstat, "--strict", log)
        self.assertEqual((strict.returncode, strict.stdout), (1, ""))
        self.assertIn(f"{log}:201: ", strict.stderr)
        self.assertIn("--strict", strict.stderr)

    def test_control_characters_are_not_printed(self):
        """Nor those of ISO 6429: U+009B begins a terminal's sequences, too."""
        path = self.scratch / "hostile.log"
        path.write_text("".join(line(i * 1000 + at, event, i) for i in range(12)
                                for at, event in enumerate(("x\033[31mred", "w", "z\u009b31m")[i % 4 == 0:3 - (i % 4 == 1)][::-1 if i % 4 == 2 else 1])))
        for options in ["--slowest", "3", "--missing", "3", path], ["--compare", path, path], ["--plot", "-", path]:
            said = self.run_program(self.nlstat, "--id", "REQ.ID", *options).stdout
            self.assertIn("Requests by REQ.ID", said)
            self.assertNotIn("\033", said)
            self.assertNotIn("\u009b", said)
            if "--missing" in options:
                for shown in "requests without x?[31mred, the first", "lacks x?[31mred", "lacks z?31m", "before ", "of which ", "x?[31mred -> w":
                    self.assertIn(shown, said)

    def test_odd_input(self):
        empty = self.run_program(self.nlstat, self.log(""))
        self.assertEqual((empty.returncode, empty.stdout), (1, ""))
        self.assertRegex(empty.stderr, "^nlstat: .*a.log: no records\n$")
        plot = self.scratch / "none.png"
        without = self.run_program(self.nlstat, "--plot", plot, self.log(line(1, "E", 1)))
        self.assertEqual((without.returncode, without.stdout, plot.exists()), (1, "", False))
        self.assertIn("cannot find a request ID field", without.stderr)
        odd = self.log("DATE=16780101000000 NL.EVNT=A ID=1\nDATE=22620101000000 NL.EVNT=B ID=1\n"
                       "DATE=16780101000000 NL.EVNT=A ID=\"\\x00\\x1b\"\nDATE=22620101000000 NL.EVNT=B ID=\"\\x00\\x1b\"\n")
        result = self.run_program(self.nlstat, "--id", "ID", "--slowest", "5", "--plot", "-", "--throughput", "ID", odd)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("\x1b", result.stdout)
        for wrong in (["--compare"], ["--plot", "a.gif"], ["--interval", "1"], ["--memory", "3"],
                      ["--since", "2026-01-02T00:00:00", "--until", "2026-01-01T00:00:00"]):
            self.assertEqual(self.run_program(self.nlstat, *wrong, odd).returncode, 2, wrong)


if __name__ == "__main__":
    support.main()
