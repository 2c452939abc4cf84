"""nlstat: spans and edges, missing records, the slowest requests, throughput, comparisons, plots."""
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
    """Returns requests at intervals of 10 ms: 1 ms to the server, 5 ms (times `stretch`) there, 1 ms back."""
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

    def rows(self, found, kind="edge"):
        """Returns the rows of one kind, by name."""
        name = (lambda r: r["span"]) if kind == "span" else (lambda r: f"{r['from']} -> {r['to']}")
        return {name(r): r for r in found["rows"] if r["kind"] == kind}

    def test_shares_add_up(self):
        (found,) = self.found(self.log(requests()))
        self.assertEqual(found["id"], ["REQ.ID"])
        self.assertEqual(found["requests"], 50)
        self.assertEqual(found["total_ns"], 50 * 7_000_000)
        self.assertEqual({name: r["p50_ns"] for name, r in self.rows(found).items()},
                         {"Client.Send -> Server.Recv": 1_000_000, "Server.Recv -> Server.Done": 5_000_000,
                          "Server.Done -> Client.Recv": 1_000_000})
        self.assertAlmostEqual(sum(r["share"] for r in found["rows"] if r["kind"] != "part"), 1, 9)
        # One of 200 requests has another order: the edge is 99.5 % certain.
        odd = line(9000000, "Server.Recv", "odd") + "".join(line(9000001 + i, e, "odd") for i, e in enumerate(EVENTS) if e != "Server.Recv")
        (found,) = self.found(log := self.log(requests(199) + odd))
        self.assertAlmostEqual(self.rows(found)["Client.Send -> Server.Recv"]["certainty"], 0.995, 5)
        self.assertIn("  inferred: this order holds in at least 99.5 % of the requests\n", self.run_program(self.nlstat, log).stdout)

    def test_order_of_records_does_not_matter(self):
        lines = requests().splitlines(keepends=True)
        random.Random(7).shuffle(lines)
        self.assertEqual(self.found(self.log(requests())), self.found(self.log("".join(lines), "b.log")))

    def test_by_field_and_missing_ends(self):
        log = self.log("".join(l for l in requests().splitlines(keepends=True)
                               if not ("Client.Recv" in l and l.endswith("r3 KIND=1\n"))))
        (found,) = self.found("--by", "KIND", log)
        self.assertEqual((found["without_first"], found["without_last"]), (0, 1))
        self.assertEqual({r["by"] for r in found["rows"]}, {"0", "1"})
        text = self.run_program(self.nlstat, log).stdout
        self.assertIn("  1 request lacks Client.Recv, the usual last event\n", text)

    def test_groups_of_requests(self):
        text = "".join(line(i * 1000 + us, event, i, V=1 + i % 3, **more) for i in range(90)
                       for us, event, more in [(0, "A.start", {}), (100 * (1 + i % 3), "A.end", {"STATUS": 500 if i % 9 == 0 else 200})])
        log = self.log(text)
        (found,) = self.found("--id", "REQ.ID", "--by", "V", log)
        self.assertEqual([(g["by"], g["count"], g["mean_ns"], g["failed"]) for g in found["groups"]],
                         [("3", 30, 300_000, 0), ("2", 30, 200_000, 0), ("1", 30, 100_000, 10)])
        self.assertAlmostEqual(sum(g["share"] for g in found["groups"]), 1)
        shown = self.run_program(self.nlstat, "--id", "REQ.ID", "--by", "V", log).stdout
        self.assertRegex(shown, r"\n  1 +16.7 % +30 +3.00 ms +100.0 us .* 10\n")
        self.assertEqual(self.run_program(self.nlstat, "--json", "--plot", "-", log).returncode, 2)

    def test_levels_of_failures(self):
        """Levels from Error upwards mark failures; a level that is not in the list, or no level, does not."""
        for level, failed in ("LVL=Error ", 10), ("LVL=Emergency ", 10), ("LVL=Warning ", 0), ("LVL=Trace ", 0), ("", 0):
            with self.subTest(level):
                text = "".join(line(i * 1000 + us, event, i) for i in range(10) for us, event in ((0, "A.start"), (100, "A.end")))
                log = self.log(text.replace("LVL=Usage ", level))
                self.assertNotIn("LVL=Usage", log.read_text())
                for path in log, self.scratch / "blocks.nlb":
                    if path != log:
                        self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", path, log)
                    (found,) = self.found("--id", "REQ.ID", path)
                    self.assertEqual(found["failed"], failed)

    def test_by_host_is_the_rarest_visited(self):
        log = self.log("".join(l.replace("HOST=s", f"HOST=s{l.split('KIND=')[1].strip()}")
                               for l in requests().splitlines(keepends=True)))
        (found,) = self.found("--by", "HOST", log)
        self.assertEqual({r["by"] for r in found["rows"]}, {"s0", "s1"})

    def test_by_host_of_the_first_trace(self):
        """The group of the first trace is the host that is rarest in all traces, not only in this one."""
        lines = []
        for i in range(20):
            rows = [(0, "Page.start", "front", 1)]
            for span, host in ((2, f"w{i % 4}"), (3, "db"), (4, f"w{i % 4}")):
                rows += [(2 * span, "Work.start", host, span), (2 * span + 1, "Work.end", host, span)]
            for s, event, host, span in rows + [(11, "Page.end", "front", 1)]:
                parent = f" PARENT.ID={1:016x}" if span > 1 else ""
                lines.append(f"DATE=20260101120000.{i * 20000 + s * 1000:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} "
                             f"TRACE.ID={i + 1:032x} SPAN.ID={span:016x}{parent}\n")
        (found,) = self.found("--by", "HOST", self.log("".join(lines)))
        self.assertEqual(sorted((g["by"], g["count"]) for g in found["groups"]), [(f"w{k}", 5) for k in range(4)])

    def test_an_odd_order_is_no_error(self):
        """Two events in an unusual order: the path follows the actual order."""
        text = requests(20) + line(900000, "Client.Send", "odd") + line(900001, "Server.Done", "odd") + \
            line(900002, "Server.Recv", "odd") + line(900003, "Client.Recv", "odd")
        (found,) = self.found(self.log(text))
        self.assertEqual((found["requests"], found["violations"], found["without_last"]), (21, 0, 0))
        self.assertAlmostEqual(sum(r["share"] for r in found["rows"] if r["kind"] != "part"), 1, 9)

    def test_slowest(self):
        text = requests(100) + "".join(line(2000000 + offset, event, "slow") for event, offset in
                                       zip(EVENTS, (0, 1000, 700000, 701000)))
        (found,) = self.found("--slowest", "3", self.log(text))
        slowest = found["slowest"]
        self.assertEqual([(s["name"], s["total_ns"]) for s in slowest],
                         [("slow", 701_000_000), ("r0", 7_000_000), ("r1", 7_000_000)])
        self.assertEqual((slowest[0]["longest"]["from"], slowest[0]["longest"]["path_ns"]), ("Server.Recv", 699_000_000))
        self.assertEqual([(step["to"], step["took_ns"]) for step in slowest[0]["path"]],
                         [("Server.Recv", 1_000_000), ("Server.Done", 699_000_000), ("Client.Recv", 1_000_000)])

    def test_slowest_as_a_tree(self):
        """Two parallel calls: the tree has both, and the critical path the slower one."""
        text = ""
        for i in range(3):
            for us, event, span, parent in [(0, "Page.start", 1, 0), (100, "A.start", 2, 1), (110, "B.start", 3, 1),
                                            (400, "A.end", 2, 1), (900 + i, "B.end", 3, 1), (1000 + i, "Page.end", 1, 0)]:
                fields = {"TRACE.ID": f"t{i}", "SPAN.ID": f"{i}{span}", **({"PARENT.ID": f"{i}{parent}"} if parent else {})}
                text += (f"DATE=20260101120000.{i * 10000 + us:06d} HOST=h PROG=web LVL=Usage NL.EVNT={event} " +
                         " ".join(f"{k}={v}" for k, v in fields.items()) + "\n")
        log = self.log(text)
        (found,) = self.found("--id", "TRACE.ID", "--slowest", "1", log)
        rows = self.rows(found, "span")
        self.assertEqual({n: (r["count"], r["path_ns"], r["self_ns"]) for n, r in rows.items()},
                         {"Page": (3, 3 * 210_000, 3 * 200_000), "A": (3, 0, 900_000), "B": (3, 3 * 790_000 + 3000, 3 * 790_000 + 3000)})
        text = self.run_program(self.nlstat, "--id", "TRACE.ID", "--slowest", "1", log).stdout
        self.assertRegex(text, r"t2 +2026-01-01T12:00:00.020000Z  1.00 ms, of which 792.0 us in B @web\n")
        self.assertRegex(text, r"\n    \* Page @web +h +0 ns +1.00 ms +200.0 us\n"
                               r"        A @web +h +100.0 us +300.0 us +300.0 us\n"
                               r"    \*   B @web +h +110.0 us +792.0 us +792.0 us\n")
        self.assertRegex(text, r"critical path .*\n      Page @web +0 ns +110.0 us\n      B @web +110.0 us +792.0 us\n"
                               r"      Page @web +902.0 us +100.0 us\n")

    def test_a_workflows_jobs(self):
        """Two jobs lack their last step, post: the step is optional, so the jobs are complete."""
        log = self.log(workflow.workflow_log(jobs=40, unfinished=(7, 30)), "a.bp")
        jobs = ("--id", "xwf.id,job.id,job_inst.id", "--where", 'NL.EVNT ~ "stampede.job_inst.*"')
        text = self.run_program(self.nlstat, *jobs, log)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("Requests by xwf.id, job.id, job_inst.id: 40,", text.stdout)
        self.assertNotIn("lack", text.stdout)
        (found,) = self.found(*jobs, log)
        self.assertEqual((found["without_first"], found["without_last"], found["spans_without_end"]), (0, 0, 0))
        spans = self.rows(found, "span")
        self.assertEqual({name.removeprefix("stampede.job_inst."): r["count"] for name, r in spans.items()},
                         {"submit": 40, "main": 40, "post": 38})

    def test_optional_steps(self):
        """A caller leaves out a step of some requests, or calls one of two programs. All steps keep their time."""
        for others in (("Code",), ("Code", "Token"), ("Code", "Token", "Card")):
            chance, lines, truth = random.Random(8), [], {}
            for number in range(400):
                now = number * 200000
                steps = ["Bind", "Groups", chance.choice((*others, *((None,) * (len(others) == 1)))), "Policy"]
                chosen = [step for step in steps if step]
                lines.append((now, f"HOST=front PROG=portal NL.EVNT=Login.start REQ.ID={number}"))
                for step in chosen:
                    now += chance.randrange(300, 800)
                    took = int(chance.lognormvariate(0, 0.3) * {"Bind": 20000, "Groups": 10000, "Policy": 8000}.get(step, 30000))
                    lines += [(now, f"HOST=of{step} PROG={step.lower()}d NL.EVNT={step}.start REQ.ID={number}"),
                              (now + took, f"HOST=of{step} PROG={step.lower()}d NL.EVNT={step}.end REQ.ID={number}")]
                    truth[step] = truth.get(step, 0) + took
                    now += took
                lines.append((now + 500, f"HOST=front PROG=portal NL.EVNT=Login.end REQ.ID={number}"))
            text = "".join(f"DATE=2026010112{at // 60000000 % 60:02d}{at // 1000000 % 60:02d}.{at % 1000000:06d} LVL=Usage {rest}\n"
                           for at, rest in sorted(lines))
            with self.subTest(others):
                (found,) = self.found(self.log(text))
                shares = {name: row["share"] for name, row in self.rows(found, "span").items()}
                for step, took_us in truth.items():
                    self.assertAlmostEqual(shares[step] * found["total_ns"], took_us * 1000, delta=1, msg=step)

    def test_pairs(self):
        text = ""
        for i in range(10):
            at = i * 100000
            for event, offset in [("job.start", 0), ("io.start", 1000), ("io.end", 3000), ("io.start", 4000),
                                  ("io.end", 5000), ("job.end", 10000)]:
                if not (i == 9 and event == "job.end"):
                    text += line(at + offset, event, i)
        (found,) = self.found(self.log(text))
        spans = self.rows(found, "span")
        self.assertEqual((spans["job"]["count"], found["spans_without_end"]), (9, 1))
        self.assertEqual((spans["job"]["mean_ns"], spans["job"]["self_ns"]), (10_000_000, 9 * 7_000_000 + 2_000_000))
        self.assertEqual((spans["io"]["count"], spans["io"]["mean_ns"], spans["io"]["self_ns"]),
                         (20, 1_500_000, 30_000_000))

    def test_pairs_that_overlap(self):
        text = "".join(line(i * 100000 + offset, event, i) for i in range(10) for event, offset in
                       [("ReadStart", 0), ("SendStart", 1000), ("ReadEnd", 2000), ("SendEnd", 5000)])
        (found,) = self.found(self.log(text))
        self.assertEqual({name: (r["count"], r["mean_ns"]) for name, r in self.rows(found, "span").items()},
                         {"Read": (10, 2_000_000), "Send": (10, 4_000_000)})
        self.assertEqual((found["spans_without_begin"], found["spans_without_end"]), (0, 0))

    def services(self):
        """Writes 40 requests: a page of 4 ms, of which the query takes 2 ms; in every fourth request 10 ms, of which the query takes
        8 ms. In requests 0 to 4, one record has status 500."""
        text = ""
        for i in range(40):
            slow, at = i % 4 == 0, i * 100000
            query = 8000 if slow else 2000
            text += "".join(line(at + us, event, f"r{i}", **fields) for us, event, fields in [
                (0, "Page.start", {}), (1000, "Query.start", {}), (1000 + query, "Query.end", {"ROWS": i}),
                (1000 + query, "Note", {"STATUS": 500 if i < 5 else 200}), (query + 2000, "Page.end", {})])
        return self.log(text)

    def test_where_selects_requests(self):
        """The expression selects whole requests: their times and spans are complete."""
        log = self.services()
        for where, expected in [("request.duration > 9ms", 10), ("request.duration<=4ms", 30), ("any(STATUS >= 500)", 5),
                                ("request.duration > 9ms && any(STATUS >= 500)", 2), ("any(STATUS >= 500) or request.duration > 9ms", 13),
                                ("any(NL.EVNT == Query.end && ROWS in (1, 2, 3))", 3), ("!any(STATUS >= 500)", 35),
                                ("not (any(STATUS=500) || span('Query').duration > 0.005)", 27), ('span("Query").self > 5ms', 10),
                                ('span("Qu*").path == 8ms', 10), ('span("Query") on critical path', 40), ("on critical path", 40),
                                ("any(ROWS == 7) && on critical path", 1), ("not on critical path", 0), ('span("None")', 0),
                                ('any(NL.EVNT == ")" || ROWS == 7)', 1), ("any(ROWS == 7) and any(STATUS == 200)", 1)]:
            found = self.found("--where", where, log, status=0 if expected else 1) if expected else [None]
            if expected:
                (kind,) = found
                self.assertEqual((kind["requests"], kind["unselected"]), (expected, 40 - expected), where)
                spans = self.rows(kind, "span")
                self.assertEqual({name: r["count"] for name, r in spans.items()}, {"Page": expected, "Query": expected}, where)
            else:
                result = self.run_program(self.nlstat, "--where", where, log)
                self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", "nlstat: no request matches --where\n"))
        both = ("--where", "request.duration > 9ms", "--where", "any(STATUS >= 500)")
        self.assertEqual(self.found(*both, log)[0]["requests"], 2)
        self.assertEqual(self.found(*both, "--where", "REQ.ID != r0", log)[0]["requests"], 1, "records and requests")
        self.assertIn("38 requests do not match --where", self.run_program(self.nlstat, *both, log).stdout)

    def test_where_names_a_field_that_no_record_has(self):
        log = self.services()
        for where, problem in [("STATSU >= 500", "no records match --where, --since and --until; no record has the field STATSU"),
                               ("STATSU >= 500 && ROW == 1 || SIZ > 1",
                                "no records match --where, --since and --until; no record has the fields STATSU, ROW or SIZ"),
                               ("STATUS > 500 && HOST == nowhere", "no records match --where, --since and --until"),
                               ("request.failed == yes", "no records match --where, --since and --until; no record has the field request.failed; "
                                                         "the only value of a request is request.duration"),
                               ("any(STATSU >= 500)", "no request matches --where; no record has the field STATSU"),
                               ("any(STATUS > 500) && any(ROW == 1)", "no request matches --where; no record has the field ROW")]:
            result = self.run_program(self.nlstat, "--where", where, log)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlstat: {problem}\n"), where)

    def test_where_on_requests_that_is_invalid(self):
        log = self.services()
        for where, problem in [("request.duration", "column 17: expected a comparison such as > 50ms"),
                               ("request.duration > fast", "column 20: expected a duration such as 50ms"),
                               ("request.duration > 5ms && STATUS > 4", "column 27: expected request.duration"),
                               ("any(STATUS >)", "any(): "), ("any(STATUS > 4", 'column 15: expected ")"'),
                               ("span(Query).self > 1ms", "column 6: expected the name of a span in quotes"),
                               ('span("Query) > 1', "expected the closing quote"), ('span("Q").size > 1', "column 10: expected .duration, .self or .path"),
                               ("request.failed", "the only value of a request is request.duration: "),
                               ("(any(A == 1)", 'expected &&, || or ")"'), ("!" * 50 + "any(A == 1)", "an expression may have at most 32 nested parentheses"),
                               (" && ".join(["any(A == 1)"] * 33), "an expression may have at most 32 any()")]:
            result = self.run_program(self.nlstat, "--where", where, log)
            self.assertEqual((result.returncode, result.stdout), (2, ""), where)
            self.assertIn(problem, result.stderr, where)
        result = self.run_program(self.nlstat, "--connections", "--where", "any(A == 1)", log)
        self.assertEqual(result.returncode, 2)

    def test_times_in_another_zone(self):
        """The times of one event are eight hours early, as the measured durations show. The other events of its hosts have correct times."""
        text = ""
        for i in range(20):
            times = lambda s, zone=0: f"2012-03-14T{22 - zone}:{5 + i:02d}:{s:02d}.000000Z"
            for time, event, rest in [(times(0), "main.start", ""), (times(10, 8), "inv.start", "inv.id=1"),
                                      (times(15), "inv.end", "inv.id=1 dur=4.5"), (times(20), "main.end", "local.dur=20")]:
                text += f"ts={time} event={event} level=Info host=w{i % 2} job.id=j{i} {rest}\n"
        log = self.log(text, "a.bp")
        (found,) = self.found("--id", "job.id", log)
        spans = self.rows(found, "span")
        self.assertEqual({n: (r["count"], r["mean_ns"]) for n, r in spans.items()},
                         {"main": (20, 20_000_000_000), "inv": (20, 4_500_000_000)})
        self.assertEqual((found["total_ns"], spans["main"]["self_ns"]), (20 * 20 * 10**9, 20 * 155 * 10**8))
        self.assertEqual(sorted((z["event"], z["host"], z["zone_ns"], z["count"]) for z in found["time_zones"]),
                         [("inv.start", f"w{h}", 8 * 3600 * 10**9, 10) for h in range(2)])
        (alone,) = self.found("--id", "job.id", "--where", 'NL.EVNT ~ "inv.*"', log)
        self.assertEqual((alone["total_ns"], self.rows(alone, "span")["inv"]["path_ns"]), (20 * 45 * 10**8, 20 * 45 * 10**8))
        shown = self.run_program(self.nlstat, "--id", "job.id", log).stdout
        self.assertIn("the times of 10 inv.start events on host w1 are corrected by 8:00:00 h", shown)

    def test_ids_that_occur_again(self):
        """The records resemble bbcp's streams. The spans of a stream repeat, and each round is a request. START_x and STOP_x form
        pairs."""
        text, at = "", 0
        for block in range(300):
            for event, us in [("START_READ", 0), ("STOP_READ", 200), ("START_NET", 210), ("END_NET", 900)]:
                text += line(block * 5000 + us + block % 3, event, f"s{block % 4}", SIZE=65536)
        (found,) = self.found("--id", "REQ.ID", self.log(text))
        self.assertEqual(found["requests"], 300)
        self.assertEqual({n: r["count"] for n, r in self.rows(found, "span").items()}, {"READ": 300, "NET": 300})
        self.assertEqual((found["without_first"], found["without_last"], found["spans_without_end"]), (0, 0, 0))

    def test_ids_of_streams_that_run_in_step(self):
        """Four streams begin each round at nearly the same time, so that all of them are in the same step at any time."""
        events = [("START_READ", 0), ("STOP_READ", 200), ("START_NET", 210), ("END_NET", 900)]
        for apart in (0, 7):
            text = "".join(line(at, event, f"s{stream}", SIZE=65536) for at, event, stream in sorted(
                (block * 5000 + us + stream * apart, event, stream) for block in range(400) for stream in range(4) for event, us in events))
            (found,) = self.found("--id", "REQ.ID", self.log(text))
            self.assertEqual(found["requests"], 1600, apart)
            self.assertEqual({n: r["count"] for n, r in self.rows(found, "span").items()}, {"READ": 1600, "NET": 1600})

    def test_each_request_counts_once(self):
        """The log has many names of events, and two kinds of request."""
        many = "".join(line(i * 200 + us, f"S{i % 100}.{end}", f"r{i}") for i in range(1000) for end, us in (("start", 0), ("end", 90)))
        traced = "".join(line(i * 200 + us, f"Job.{end}", "", **{"TRACE.ID": f"{i + 1:032x}", "SPAN.ID": f"{i + 1:016x}"}).replace(" REQ.ID=", "", 1)
                         for i in range(60) for end, us in (("start", 0), ("end", 90)))
        for name, log, expected in (("names", many, [1000]), ("kinds", traced + requests(100), [60, 100])):
            with self.subTest(name):
                path = self.log(log)
                self.assertEqual([kind["requests"] for kind in self.found(path)], expected)
                diagnosis = json.loads(self.run_program(support.program("nltools/nldiag"), "--json", path).stdout)
                self.assertEqual(diagnosis["requests"], sum(expected))

    def rounds(self, steps, requests=100, ids=100, apart=20000):
        """Writes a log of requests with these steps (event, microseconds). IDs repeat after `ids` requests."""
        records = []
        for i in range(requests):
            records += [(i * apart + us, event, f"r{i % ids}") for event, us in (steps(i) if callable(steps) else steps)]
        return self.log("".join(line(us, event, request) for us, event, request in sorted(records, key=lambda r: r[0])))

    def test_first_steps_that_occur_again(self):
        """A repeated first step is part of its request, unless the request had ended."""
        whole = list(zip(EVENTS, (0, 1000, 6000, 7000)))
        def retry(wait, tries):
            """Clients repeat a third of the requests, after a lost response or a lost request."""
            def steps(i):
                if i % 3:
                    return whole
                return [(e, us + n * wait) for n in range(tries) for e, us in whole[:1 + i % 2]] + \
                    [(e, us + tries * wait) for e, us in whole]
            return steps
        twice = [("Client.Send", 0), ("Server.Recv", 900), ("Client.Send", 1000), ("Server.Done", 5000), ("Client.Recv", 6000)]
        loop = [(e, us + n * 2000) for n in range(12) for e, us in (("Client.Send", 0), ("Server.Recv", 900))] + [("Client.Recv", 25000)]
        both = [("Client.Send", 0), ("Client.Recv", 1000), ("Client.Send", 1100), ("Client.Recv", 2100)]
        for name, steps, options, expected in [
                ("sent again", retry(8000, 1), {}, 100), ("sent again after a second", retry(1000000, 1), {}, 100),
                ("sent again twice", retry(8000, 2), {}, 100), ("twice", twice, {}, 100), ("a loop", loop, {"apart": 30000}, 100),
                ("two calls at once after another", both, {}, 100),
                ("IDs used again", whole, {"ids": 5}, 100), ("IDs used twice", whole, {"ids": 50, "apart": 500}, 100),
                ("one ID, without pauses", whole, {"ids": 1, "apart": 7001}, 100),
                ("one ID, and sent again", retry(8000, 1), {"ids": 1, "apart": 20000}, 100),
                ("many requests that send again", retry(8000, 1), {"requests": 6000}, 6000),
                ("many requests with twice the first step", twice, {"requests": 4000, "ids": 4000}, 4000),
                ("many requests of few IDs", whole, {"requests": 8000, "ids": 4}, 8000)]:
            with self.subTest(name):
                options = {"ids": options.get("requests", 100), **options}
                (found,) = self.found("--id", "REQ.ID", self.rounds(steps, **options))
                self.assertEqual((found["requests"], found["without_first"], found["without_last"]), (expected, 0, 0))

    def test_groups_of_ids_that_occur_again(self):
        """Each round of an ID belongs to the group of its first record that has the field."""
        text = "".join(line(i * 20000 + us, event, i % 5, **({"KIND": i % 2} if event == "Server.Recv" else {}))
                       for i in range(100) for event, us in zip(EVENTS, (0, 1000, 6000, 7000)))
        (found,) = self.found("--id", "REQ.ID", "--by", "KIND", self.log(text))
        self.assertEqual({(r["by"], r["count"]) for r in found["rows"]}, {("0", 50), ("1", 50)})

    def test_measurements_are_no_ids(self):
        """Equal durations, phases, loads and results connect more events than the ID does. nlstat does not use these fields or the
        records of sensors as IDs."""
        text = ""
        for i in range(60):
            for k, event in enumerate(("Alpha", "Beta", "Gamma", "Delta")):
                fields = {"dur": i % 7, "ph": "i", "DISK.READ": i // 9, "CPU.IDLE": i // 8 + 0.5, "SIZE": i // 6, "STATUS": 0}
                fields |= {"TICKET": i} if k % 2 else {}
                text += line(i * 1000 + k * 10, event, 0, **fields).replace(" REQ.ID=0", "")
            text += line(i * 1000 + 5, "CpuLoad", i).replace("PROG=p", "PROG=nlsensor")
            text += line(i * 1000 + 6, "DiskIo", i).replace("PROG=p", "PROG=nlsensor")
        log = self.log(text)
        (found,) = self.found(log)
        self.assertEqual((found["id"], found["requests"]), (["TICKET"], 60))
        result = self.run_program(self.nlstat, "--id", "REQ.ID", log)
        self.assertEqual((result.returncode, result.stdout), (1, ""), "records of sensors are not requests")

    def test_spans_without_ids(self):
        """A Chrome trace has no request IDs: the outermost spans of each thread are requests."""
        events = []
        for i in range(2000):
            at = i * 100000
            events += [{"ph": "X", "ts": at, "dur": 50000, "pid": 1, "tid": 1, "name": "frame"},
                       {"ph": "X", "ts": at + 1000, "dur": 20000, "pid": 1, "tid": 1, "name": "layout"},
                       {"ph": "X", "ts": at + 3000, "dur": 90000, "pid": 1, "tid": 2, "name": "decode"},
                       {"ph": "B", "ts": at + 30000, "pid": 1, "tid": 1, "name": "paint"},
                       {"ph": "E", "ts": at + 40000, "pid": 1, "tid": 1, "name": "paint"}]
        log = self.log(json.dumps({"traceEvents": events}), "a.json")
        (found,) = self.found("--slowest", "1", log)
        self.assertEqual((found["id"], found["requests"]), (["thread"], 4000))
        self.assertEqual({n: (r["count"], r["path_ns"], r["self_ns"]) for n, r in self.rows(found, "span").items()},
                         {"frame": (2000, 40 * 10**9, 40 * 10**9), "layout": (2000, 40 * 10**9, 40 * 10**9),
                          "paint": (2000, 20 * 10**9, 20 * 10**9), "decode": (2000, 180 * 10**9, 180 * 10**9)})
        self.assertEqual((found["slowest"][0]["name"], found["slowest"][0]["total_ns"]), ("decode", 90_000_000))

    def test_ends_without_names(self):
        """An event of phase E may lack a name: it ends the latest span of its thread."""
        events = []
        for i in range(100):
            sides = [("B", 0, "page"), ("B", 100, "query"), ("B", 200, "query"), ("E", 300, ""), ("E", 600, ""), ("B", 700, "render"), ("E", 800, ""), ("E", 900, "")]
            for thread, us in ((1, 0), (2, 50)):
                events += [{"ph": side, "ts": i * 1000 + at + us, "pid": 1, "tid": thread, **({"name": name} if name else {})} for side, at, name in sides]
        log = self.log(json.dumps({"traceEvents": events}), "a.json")
        (found,) = self.found(log)
        self.assertEqual((found["requests"], found["uncertain"], found["overlapping_spans"]), (200, 0, 0))
        self.assertEqual({n: (r["count"], r["self_ns"]) for n, r in self.rows(found, "span").items()},
                         {"page": (200, 200 * 300_000), "query": (400, 200 * 500_000), "render": (200, 200 * 100_000)})
        self.assertEqual(self.rows(found, "edge"), {})

    def test_overlapping_spans_without_ids(self):
        """Two requests at the same time in one program without IDs: it is unknown which query belongs to which
        request. nlstat measures the other requests."""
        def spans(at, second):
            steps = [(0, "Page.start"), (100, "Query.start"), (600, "Query.end"), (1000, "Page.end")]
            return sorted([(at + us, e) for us, e in steps] + [(at + second + us, e) for us, e in steps])
        for overlapping, pages in ((30, 0), (3, 54)):
            steps = [s for i in range(30) for s in spans(i * 10000, 350 if i < overlapping else 2000)]
            log = self.log("".join(line(us, event, "").replace(" REQ.ID=", "") for us, event in steps))
            result = self.run_program(self.nlstat, log)
            message = f"{2 * overlapping} spans without a request ID overlap and cannot be told apart, or ends of spans are missing; log TRACE.ID, or name"
            self.assertEqual(result.returncode, 0 if pages else 1)
            self.assertIn(message, result.stdout if pages else result.stderr)
            if pages:
                (found,) = self.found(log)
                self.assertEqual((found["requests"], found["overlapping_spans"]), (pages, 6))
                self.assertEqual({n: r["path_ns"] for n, r in self.rows(found, "span").items()},
                                 {"Page": pages * 500_000, "Query": pages * 500_000})

    def test_lost_ends_without_ids(self):
        """One lost end of a span makes one request uncertain, and leaves the others as they are."""
        def pages(thread, lost):
            for i in range(300):
                for us, event in ((0, "Page.start"), (1000, "Query.start"), (3000, "Query.end"), (5000, "Page.end")):
                    if (i, event) != lost:
                        yield line(i * 10000 + us, event, "").replace(" REQ.ID=", thread)
        for thread in ("", " TID=7"):
            for lost in ("Page.end", "Query.end"):
                with self.subTest(thread=thread, lost=lost):
                    (found,) = self.found(self.log("".join(pages(thread, (20, lost)))))
                    self.assertEqual((found["requests"], found["spans_without_end"], found["uncertain"], found["overlapping_spans"]),
                                     (300, 1, 1, 0))
                    pages_ns, queries_ns = (298 * 3_000_000, 300 * 2_000_000) if lost == "Page.end" else (299 * 3_000_000, 299 * 2_000_000)
                    rows = self.rows(found, "span")
                    self.assertGreaterEqual(rows["Page"]["path_ns"], pages_ns)
                    self.assertGreaterEqual(rows["Query"]["path_ns"], queries_ns)
                    self.assertLess(found["total_ns"], 301 * 5_000_000)

    def test_short_spans_that_overlap(self):
        """Spans of 400 ns overlap by half. If the log has nanoseconds, this is not an effect of rounding."""
        text = "".join(f"DATE=20260101120000.{i * 1000 + ns:09} HOST=h PROG=p LVL=Usage NL.EVNT=Page.{side}\n"
                       for i in range(100) for ns, side in ((0, "start"), (200, "start"), (400, "end"), (600, "end")))
        result = self.run_program(self.nlstat, self.log(text))
        self.assertEqual(result.returncode, 1)
        self.assertIn("200 spans without a request ID overlap", result.stderr)

    def test_processes_and_threads_are_no_ids(self):
        """A thread's number is unique only in its process. Each process has four spans, which a pid alone would join."""
        def trace(name, *spans):
            events = [{"ph": "X", "ts": i * 100000 + ts, "dur": dur, "pid": pid(i), "tid": tid, "name": name,
                       "args": {"req": f"r{i}"} if ids else {}} for i in range(60) for name, ts, dur, pid, tid, ids in spans]
            return self.log(json.dumps({"traceEvents": events}), name)
        own, first, second = (lambda i: 100 + i), (lambda i: 1), (lambda i: 2)
        (found,) = self.found(trace("a.json", ("main", 0, 80000, own, 1, False), ("parse", 1000, 20000, own, 1, False),
                                    ("worker", 30000, 20000, own, 2, False), ("decode", 35000, 5000, own, 2, False)))
        self.assertEqual((found["id"], found["requests"]), (["thread"], 120))
        self.assertEqual({n: r["self_ns"] // 60000 for n, r in self.rows(found, "span").items()},
                         {"main": 60000, "parse": 20000, "worker": 15000, "decode": 5000})
        # If the records have an ID, the pool's work is part of the backend's span in its own process, and the frontend waits for
        # that span.
        (found,) = self.found(trace("b.json", ("frontend", 0, 80000, first, 1, True), ("backend", 10000, 20000, second, 1, True),
                                    ("pool", 12000, 10000, second, 7, True), ("render", 40000, 30000, first, 9, True)))
        self.assertEqual((found["id"], found["requests"]), (["req"], 60))
        self.assertEqual({n: (r["self_ns"] // 60000, r["path_ns"] // 60000) for n, r in self.rows(found, "span").items()},
                         {"frontend": (30000, 30000), "backend": (10000, 10000), "pool": (10000, 10000), "render": (30000, 30000)})

    def test_durations(self):
        """Records with a duration, in the spellings of BP, GridFTP and NetLogger programs."""
        text = ""
        for i in range(10):
            text += line(i * 1000000 + 500000, "Job", i, dur=0.4) + line(i * 1000000 + 300000, "Step", i, DUR="0.1")
            text += line(i * 1000000 + 450000, "Copy", i, START=f"202601011200{i:02d}.350000")
            text += line(i * 1000000 + 250000, "Probe", i, DURATION__MS=20).replace("__", ".")
        (found,) = self.found(self.log(text))
        self.assertEqual({n: (r["count"], r["mean_ns"]) for n, r in self.rows(found, "span").items()},
                         {"Job": (10, 400_000_000), "Step": (10, 100_000_000), "Copy": (10, 100_000_000), "Probe": (10, 20_000_000)})
        self.assertEqual(self.rows(found, "span")["Job"]["self_ns"], 10 * 200_000_000)

    def test_times_and_where(self):
        log = self.log(requests())
        (found,) = self.found("--where", "KIND == 1", log)
        self.assertEqual((found["requests"], found["without_first"], found["without_last"]), (25, 0, 0))
        (found,) = self.found("--since", "20260101120000.1", "--until", "20260101120000.2", log)
        self.assertEqual(found["requests"], 10)

    def test_throughput(self):
        text = "".join(line(i * 10000, "Send", i, SIZE=1000) for i in range(300)) + line(1, "Send", 0, SIZE="many")
        result = self.run_program(self.nlstat, "--json", "--throughput", "SIZE", "--interval", "1", self.log(text))
        found = json.loads(result.stdout)[-1]
        self.assertEqual((found["total"], found["records"], found["unusable"]), (300000, 300, 1))
        self.assertEqual([i["sum"] for i in found["intervals"]], [100000] * 3)
        text = self.run_program(self.nlstat, "--throughput", "SIZE", self.log(text)).stdout
        self.assertIn("300.0 k in 300 records", text)

    def gridftp(self):
        """Three transfers of 10, 10 and 20 s, two of which overlap for 5 s. A GridFTP server logs a transfer when it ends."""
        transfers = [(0, 10, 100_000_000), (5, 15, 200_000_000), (20, 40, 100_000_000)]
        time = lambda seconds: f"2008051118{40 + seconds // 60:02d}{seconds % 60:02d}.000000"
        return self.log("".join(f"DATE={time(end)} HOST=g PROG=globus-gridftp-server NL.EVNT=FTP_INFO START={time(begin)} USER=u "
                                f"FILE=/f{begin} BUFFER=87380 BLOCK=262144 NBYTES={size} VOLUME=/ STREAMS=4 STRIPES=1 DEST=[10.0.0.1] "
                                f"TYPE=RETR CODE=226\n" for begin, end, size in transfers))

    def test_transfers(self):
        log = self.gridftp()
        (found,) = self.found("--interval", "5", log)
        self.assertEqual((found["requests"], [r["span"] for r in found["rows"]]), (3, ["FTP_INFO"]))
        t = found["transfers"]
        self.assertEqual((t["transfers"], t["bytes"], t["concurrent_max"], t["rate_min"], t["rate_p50"], t["rate_max"]),
                         (3, 4e8, 2, 5_000_000, 10_000_000, 20_000_000))
        self.assertEqual([(x["name"], x["rate"]) for x in t["list"]], [("/f0", 1e7), ("/f5", 2e7), ("/f20", 5e6)])
        self.assertEqual([i["bytes"] for i in t["intervals"]][:8], [5e7, 1.5e8, 1e8, 0, 2.5e7, 2.5e7, 2.5e7, 2.5e7])
        self.assertEqual([i["concurrency"] for i in t["intervals"]][:8], [1, 2, 1, 0, 1, 1, 1, 1])
        shown = self.run_program(self.nlstat, log).stdout
        self.assertIn("Transfers: 3, 400.0 M bytes in 40.000 s, 10.0 M per second; 1.0 at a time, at most 2\n", shown)
        self.assertRegex(shown, r"2008-05-11T18:40:05.000000Z +10.000 s +200.0 M +20.0 M  g +/f5\n")
        picture = self.scratch / "t.svg"
        self.assertEqual(self.run_program(self.nlstat, "--plot", picture, log).returncode, 0)
        self.assertGreater(picture.stat().st_size, 1000)

    def test_messages_of_one_packet_are_no_transfers(self):
        for size, count in (1460, 0), (1461, 1):
            log = self.log(f"DATE=20260101000000.000000 HOST=h PROG=p NL.EVNT=Get.start ID=1\n"
                           f"DATE=20260101000000.010000 HOST=h PROG=p NL.EVNT=Get.end ID=1 BYTES={size}\n")
            self.assertEqual(self.found(log)[0].get("transfers", {}).get("transfers", 0), count)
            self.assertEqual(self.run_program(self.nlstat, log).stdout.count("Transfers: "), count)

    def test_comparison(self):
        """nlstat uses the same comparison as nldiag --compare, which test_nldiag tests."""
        before, after = self.log(requests(), "before.log"), self.log(requests(stretch=2), "after.log")
        result = self.run_program(self.nlstat, "--compare", before, "--with", after)
        self.assertEqual((result.returncode, result.stderr), (3, ""))
        self.assertRegex(result.stdout, "^slower: a request takes 12.0 ms \\(was 7.00 ms\\): \\+71.4 % ")
        self.assertIn("\n1. Server.Recv -> Server.Done of p: +5.00 ms a request\n   time of a visit: 10.0 ms (was 5.00 ms): +100.0 %", result.stdout)
        self.assertNotIn("\n2. ", result.stdout)
        same = self.run_program(self.nlstat, "--json", "--compare", before, before)
        self.assertEqual((same.returncode, json.loads(same.stdout)["verdict"]), (0, "no change found"))
        self.assertEqual(self.run_program(self.nlstat, "--compare", "--by", "HOST", before, after).returncode, 2)

    def test_comparison_with_an_empty_log(self):
        log, empty = self.log(requests()), self.log("", "empty.log")
        for files in (empty, log), (log, empty), (log, "--with", log, empty, log):
            result = self.run_program(self.nlstat, "--compare", *files)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlstat: cannot tell: {empty}: no records\n"))

    def test_children_that_end_long_after_their_root(self):
        lines = []
        for i in range(100):
            for s, event, span in ((0, "Root.start", "a"), (0.1, "Async.start", "b"), (0.5, "Root.end", "a"), (15, "Async.end", "b")):
                fields = {"SPAN.ID": f"{span}{i}"} | ({"PARENT.ID": f"a{i}"} if span == "b" else {})
                lines.append((i + s, line(int((i + s) * 1000000), event, i, **fields).replace("REQ.ID", "TRACE.ID")))
        (found,) = self.found("--id", "TRACE.ID", self.log("".join(l for _, l in sorted(lines))))
        self.assertEqual((found["requests"], found["spans_without_end"], found["spans_without_begin"]), (100, 0, 0))

    def test_children_that_end_shortly_after_their_parents(self):
        """The clock of the server's host is fast, so its spans seem to end after the calls that waited for them. nlstat corrects
        the times if the difference is small."""
        for late, awaited, corrected, message in (
                (200, 0, 1, "  the times of 1 host are corrected by up to "),
                (3000, 60, 0, "  60 spans end after their parents, which waited for them: the clocks differ, or programs log the ends late\n")):
            chance, text = random.Random(11), ""
            for i in range(60):
                work = chance.randrange(5000, 90000)
                rows = [(0, "a", "Call.start", 1, ""), (late + 300 + chance.randrange(100), "b", "Serve.start", 2, 1),
                        (500 + work, "a", "Call.end", 1, ""), (late + 500 + work + chance.randrange(100), "b", "Serve.end", 2, 1)]
                for us, host, event, span, parent in sorted(rows):
                    at = i * 100000 + us
                    text += (f"DATE=202601011200{at // 1000000:02d}.{at % 1000000:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} "
                             f"TRACE.ID={i + 1:032x} SPAN.ID={span:016x}{f' PARENT.ID={parent:016x}' if parent else ''}\n")
            log = self.log(text)
            (found,) = self.found(log)
            self.assertEqual([found[n] for n in ("requests", "awaited", "corrected_hosts", "late", "asynchronous", "uncertain")],
                             [60, awaited, corrected, 0, 0, 0])
            self.assertLess(abs(found["corrected_ns"] / 1000 - 400), 200) if corrected else self.assertEqual(found["corrected_ns"], 0)
            self.assertGreater(self.rows(found, "span")["Serve"]["share"], 0.97)
            self.assertIn(message, self.run_program(self.nlstat, log).stdout)

    def test_children_that_outlive_their_parents_do_not_correct_clocks(self):
        """A child that the parent does not wait for ends shortly after it. The clocks are right."""
        chance, text = random.Random(13), ""
        for i in range(100):
            end = 11000 + chance.randrange(2000)
            rows = [(0, "a", "Request.start", 1, ""), (2000 + chance.randrange(500), "b", "Audit.start", 2, 1),
                    (end, "a", "Request.end", 1, ""), (end + 100 + chance.randrange(900), "b", "Audit.end", 2, 1)]
            for us, host, event, span, parent in rows:
                at = i * 100000 + us
                text += (f"DATE=202601011200{at // 1000000:02d}.{at % 1000000:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} "
                         f"TRACE.ID={i + 1:032x} SPAN.ID={span:016x}{f' PARENT.ID={parent:016x}' if parent else ''}\n")
        (found,) = self.found(self.log(text))
        self.assertEqual([found[n] for n in ("requests", "awaited", "corrected_hosts", "late")], [100, 0, 0, 100])

    def test_clocks_that_seem_to_differ(self):
        """All messages between two hosts seem to take a constant time in one direction: a clock may be wrong."""
        for skew in 20000, -700000, 0:
            chance, lines = random.Random(12), []
            for i in range(100):
                at = 1000000 + i * 50000
                for host, event, after in (("a", "Ask.start", 0), ("b", "Work.start", 300 + chance.randrange(200)), ("b", "Work.end", chance.randrange(1000, 40000)),
                                           ("a", "Ask.end", 300 + chance.randrange(200))):
                    at += after
                    us = at + (skew if host == "b" else 0)
                    lines.append((us, f"DATE=202601011200{us // 1000000:02d}.{us % 1000000:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i}\n"))
            log = self.log("".join(l for _, l in sorted(lines)))
            (found,) = self.found(log)
            self.assertEqual((found["requests"], found["uncertain_by_clocks"]), (100, 100 if skew else 0))
            doubts = [(d["host"], d["other"], round(d["ahead_ns"] / 1e6)) for d in found["doubtful_clocks"]]
            shown = self.run_program(self.nlstat, log).stdout
            if skew == 0:
                self.assertEqual(doubts, [])
                continue
            ((host, other, ahead),) = doubts
            self.assertEqual((host, other), ("b", "a") if skew > 0 else ("a", "b"))
            self.assertLess(abs(ahead - abs(skew) / 1000), 2)
            self.assertRegex(shown, rf"\n  the clock of {host} seems to be {abs(skew) // 1000 - 1}\S* ms ahead of the clock of {other}, unless messages take "
                             "that long; log ClockOffset records\n")

    def test_queue_before_a_pool(self):
        """Three hosts send to a server with two workers: the wait for a worker is time of the edge, not of a span."""
        chance, net, free, records = random.Random(7), 200, [0, 0], []
        waits = works = 0
        arrivals = sorted((chance.randrange(0, 400_000), f"c{i % 3}") for i in range(200))
        for request, (sent, host) in enumerate(arrivals, 1):
            arrived, work = sent + net, chance.randrange(1000, 6000)
            worker = free.index(min(free))
            begun = max(arrived, free[worker])
            free[worker] = begun + work
            waits, works = waits + begun - arrived, works + work
            records += [(sent, host, "Call.start", request, 1, 0), (arrived, "server", "Queued", request, 0, 0),
                        (begun, "server", "Work.start", request, 2, 1), (begun + work, "server", "Work.end", request, 2, 1),
                        (begun + work + net, host, "Call.end", request, 1, 0)]
        self.assertGreater(waits, works, "requests wait for long")
        def log(explicit):
            text = ""
            for us, host, event, request, span, parent in sorted(records):
                text += (f"DATE=202601011200{us // 1000000:02d}.{us % 1000000:06d} HOST={host} "
                         f"PROG={'server' if host == 'server' else 'client'} LVL=Usage NL.EVNT={event}")
                if not explicit:
                    text += f" REQ.ID=r{request}\n"
                elif span:
                    text += (f" TRACE.ID={request:032x} SPAN.ID={request:08x}{span:08x}" +
                             (f" PARENT.ID={request:08x}{parent:08x}" if parent else "") + "\n")
                else:
                    text += f" TRACE.ID={request:032x}\n"
            return self.log(text)
        for explicit in (True, False):
            with self.subTest(explicit=explicit):
                (found,) = self.found(log(explicit))
                spans, edges = self.rows(found, "span"), self.rows(found)
                self.assertEqual((found["requests"], found["uncertain"]), (200, 0))
                self.assertEqual(spans["Work"]["path_ns"], works * 1000)
                self.assertEqual(spans["Call"]["path_ns"] if "Call" in spans else 0, 0)
                waited = sum(r["path_ns"] for n, r in edges.items() if n.endswith("-> Work.start") or n.endswith("-> Queued"))
                self.assertEqual(waited, (waits + 200 * net) * 1000)
                if not explicit:
                    self.assertEqual(edges["Queued -> Work.start"]["path_ns"], waits * 1000)

    def test_uncertain_requests(self):
        """A child that ends late on a host with an unknown clock, and a lost record: both requests count as uncertain."""
        text = ""
        for request in range(1, 31):
            rows = [(0, "a", "Page.start", 1, ""), (2000, "b", "Audit.start", 2, 1), (11000, "a", "Page.end", 1, ""),
                    (12250 if request <= 20 else 10000, "b", "Audit.end", 2, 1)]
            for us, host, event, span, parent in rows:
                if request > 5 or event != "Audit.end":
                    text += (f"DATE=20260101120000.{request * 20000 + us:06d} HOST={host} PROG=p LVL=Usage NL.EVNT={event} "
                             f"TRACE.ID={request:032x} SPAN.ID={span:016x}{f' PARENT.ID={parent:016x}' if parent else ''}\n")
        log = self.log(text)
        found, = self.found("--slowest", "30", log)
        self.assertEqual([found[name] for name in ("uncertain", "uncertain_by_records", "uncertain_by_clocks", "uncertain_by_times",
                                                   "late", "asynchronous")], [20, 5, 15, 0, 15, 0])
        self.assertEqual([r["uncertain"] for r in found["slowest"]].count(True), 20)
        self.assertEqual(found["slowest"][0]["total_ns"], 12250000)
        part = 100 * found["uncertain_ns"] / found["total_ns"]
        self.assertTrue(60 < part < 75, part)
        self.assertIn("  20 requests are uncertain: 5 lack records, 15 depend on clocks that are wrong or unknown; "
                      f"they take {part:.1f} % of the time, which may be attributed to the wrong spans\n", self.run_program(self.nlstat, log).stdout)

    def test_a_clock_far_ahead_ends_no_requests(self):
        events = [(k * 100 + i, line(k * 100000 + i * 1000, event, i)) for k, event in enumerate("ABC") for i in range(100)]
        text = "".join(l for _, l in sorted(events))
        ahead = line(90000, "C", "x").replace("HOST=s", "HOST=bad").replace("DATE=2026", "DATE=2028")
        at = len(text) // 3
        at = text.index("\n", at) + 1
        (found,) = self.found("--id", "REQ.ID", self.log(text[:at] + ahead + text[at:]))
        self.assertEqual(found["requests"], 101)
        self.assertEqual({k: r["count"] for k, r in self.rows(found).items()}, {"A -> B": 100, "B -> C": 100})

    def test_more_groups_than_rows(self):
        """Groups beyond the limit share the rows "(others)"."""
        text = "".join(line(i * 1000 + us, event, f"r{i}", K=f"k{i}").replace("HOST=s", f"HOST=s{i}")
                       for i in range(9000) for event, us in (("S.start", 0), ("S.end", 500)))
        log = self.log(text)
        for by in "HOST", "K":
            (found,) = self.found("--id", "REQ.ID", "--by", by, log)
            others = [r for r in found["rows"] if r["by"] == "(others)"]
            self.assertEqual([r["count"] for r in others], [9000 - 8192], by)
            self.assertIn(" (others) ", self.run_program(self.nlstat, "--id", "REQ.ID", "--by", by, log).stdout)

    def test_sums_beyond_integers(self):
        text = "".join(f"DATE={year}0101000000.0 HOST=h PROG=p LVL=Usage NL.EVNT=A.{side} REQ.ID={i}\n"
                       for i in range(6) for year, side in ((1710, "start"), (2260, "end")))
        (found,) = self.found("--id", "REQ.ID", "--slowest", "1", self.log(text))
        self.assertEqual(found["total_ns"], 2 ** 63 - 1)
        for row in found["rows"]:
            self.assertGreater(min(row["path_ns"], row["sum_ns"], row["mean_ns"]), 0)

    def test_rounded_durations(self):
        """Spans with times in whole milliseconds seem to begin up to 1 ms early; no clock is wrong."""
        text = "".join(line(i * 100000, "Root.start", i, **{"SPAN.ID": f"a{i}"}) +
                       line(i * 100000 + us, "Query", i, **{"SPAN.ID": f"b{i}", "PARENT.ID": f"a{i}", "DUR.MS": (us + 500) // 1000}) +
                       line(i * 100000 + us + 1000, "Root.end", i, **{"SPAN.ID": f"a{i}"})
                       for i in range(100) for us in (12480 + 37 * i,)).replace("REQ.ID", "TRACE.ID")
        (found,) = self.found(log := self.log(text))
        self.assertEqual((found["requests"], found["violations"], found["imprecise"], found["unknown_clocks"]), (100, 0, 0, 0))
        early = "".join(line(at * 1000, event, 0, **{"SPAN.ID": span, "PARENT.ID": parent}).replace("REQ.ID", "TRACE.ID")
                        for at, event, span, parent in ((1, "Kid.start", "b", "a"), (2, "Call.start", "a", ""), (3, "Kid.end", "b", "a"),
                                                        (4, "Call.end", "a", "")))
        (found,) = self.found("--id", "TRACE.ID", log := self.log(early))
        self.assertEqual((found["violations"], found["violations_by_one_clock"]), (1, 1))
        self.assertIn("on the same clock; check the parents", text := self.run_program(self.nlstat, "--id", "TRACE.ID", log).stdout)
        self.assertNotIn("clocks of the hosts", text)
        (found,) = self.found("--id", "TRACE.ID", log := self.log(early.replace("HOST=s PROG=p LVL=Usage NL.EVNT=Kid", "HOST=t PROG=p LVL=Usage NL.EVNT=Kid")))
        self.assertEqual((found["violations"], found["imprecise"], found["unknown_clocks"]), (0, 0, 1))
        self.assertIn("whose clock's error is unknown", self.run_program(self.nlstat, "--id", "TRACE.ID", log).stdout)

    def test_many_are_within_a_percent(self):
        """Beyond the number of values that nlstat keeps exactly, quantiles come from a sketch with a stated error."""
        chosen = random.Random(3)
        times = [chosen.choice((30, 200, 5000)) + chosen.randrange(20) for _ in range(280000)]
        with open(self.scratch / "a.log", "w") as log:
            for i, t in enumerate(times):
                log.write(line(i % 900000000, "A.Begin", i) + line(i % 900000000 + t, "A.End", i))
        (found,) = self.found(self.scratch / "a.log")
        (segment,) = found["rows"]
        self.assertFalse(segment["exact"])
        times.sort()
        for share, name in ((0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")):
            exact = times[int(share * len(times)) - 1] * 1000
            self.assertLessEqual(abs(segment[name] - exact), 0.011 * exact, name)
        self.assertEqual(segment["max_ns"], times[-1] * 1000)

    def test_memory_is_bounded(self):
        """nlstat first removes complete requests. If memory is short, it measures other requests early, and loses no record of
        them."""
        long = [line(0, "Client.Send", "long"), line(40000 * 10000, "Client.Recv", "long")]
        (found,) = self.found("--memory", "1M", self.log(long[0] + requests(40000) + long[1]))
        self.assertEqual((found["requests"], found["without_first"], found["without_last"]), (40001, 0, 0))
        self.assertEqual(found["measured_early"], 0)
        self.assertEqual(self.rows(found)["Server.Recv -> Server.Done"]["count"], 40000)
        lines = [line(at * 1000000 + i, event, i) for at, event in ((0, "A"), (1, "B")) for i in range(20000)]
        (found,) = self.found("--memory", "1M", "--id", "REQ.ID", self.log("".join(lines), "b.log"))
        self.assertGreater(found["measured_early"], 0)
        self.assertGreater(found["requests"], 20000)
        self.assertEqual(2 * found["requests"] - found["without_first"] - found["without_last"], 40000)

    def test_hostile_requests(self):
        """nlstat accepts IDs of any bytes, cyclic and missing parents, ends before starts, and a request that never ends."""
        ids = ['"\\x00"', '"\\xff\\xfe"', '"a=b \\"c\\""', "x" * 5000, "\u00e9", '"\\n"']
        text = ""
        for i, name in enumerate(ids):
            for us, event, span, parent in [(0, "A.start", 1, 2), (1, "B.start", 2, 1), (2, "C.end", 3, 99), (3, "C.start", 3, 99),
                                            (4, "D.start", 4, 4), (5, "D.end", 4, 4), (6, "B.end", 2, 1), (7, "A.end", 1, 2)]:
                text += line(i * 100 + us, event, i, **{"TRACE.ID": name, "SPAN.ID": span, "PARENT.ID": parent}).replace(f" REQ.ID={i}", "")
        (found,) = self.found("--slowest", "9", self.log(text))
        self.assertEqual((found["requests"], found["total_ns"]), (len(ids), len(ids) * 7000))
        self.assertEqual((found["cycles"], found["missing_parents"]), (2 * len(ids), 2 * len(ids)))
        self.assertAlmostEqual(sum(r["share"] for r in found["rows"] if r["kind"] != "part"), 1, 9)
        million = "".join(f"DATE=20260101120{i // 1000000}{i // 100000 % 10 * 6 % 60:02d}.{i % 100000:06d} HOST=h PROG=p LVL=Usage "
                          f"NL.EVNT={('A.start', 'A.end', 'B')[i % 3]} TRACE.ID=t SPAN.ID={i // 3}\n" for i in range(1000000))
        (found,) = self.found(self.log(million, "c.log"))
        self.assertEqual((found["requests"], found["measured_early"], self.rows(found, "span")["A"]["count"]), (1, 0, 333333))
        endless = "".join(line(i, ("A.start", "A.end", "B")[i % 3], "one") for i in range(100000))
        (found,) = self.found("--id", "REQ.ID", "--memory", "1M", self.log(endless, "b.log"))
        self.assertGreater(found["measured_early"] + found["requests"], 1)
        self.assertAlmostEqual(sum(r["share"] for r in found["rows"] if r["kind"] != "part"), 1, 9)

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
        """The file may not grow beyond a kilobyte, as on a full disk."""
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

    def test_records_that_occur_twice(self):
        """The same records in two sources, also in another format, are no repeated calls. Sources with few common records are fine."""
        text = requests()
        first, lines = self.log(text), text.splitlines(True)
        copy, other = self.scratch / "copy.nlb", self.log("".join(lines[len(lines) - len(lines) // 3:]), "other.log")
        with open(other, "a") as log:
            log.write(text.replace("HOST=", "HOST=other"))
        self.assertEqual(self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", copy, first).returncode, 0)
        for program in self.nlstat, support.program("nltools/nldiag"):
            for again in first, copy:
                result = self.run_program(program, first, again)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(f"100 % of the records of {again} are also in {first}; omit one of these sources, because repeated records count twice\n", result.stderr)
        self.assertEqual(self.run_program(self.nlstat, first, other).returncode, 0)

    def test_records_without_requests(self):
        """The message names the fields of --id that no record has, and reports records without event names."""
        log = self.log(requests())
        unnamed = self.log("".join(f'{{"time": "2026-01-01T00:00:0{i}Z", "msg": "m{i}", "trace_id": "{"ab"[i % 2] * 32}"}}\n' for i in range(8)), "b.json")
        for program in self.nlstat, support.program("nltools/nldiag"):
            for path, ids, reason in ((log, "NOSUCH", "no two events have the same values in the fields of --id; no record has the field NOSUCH"),
                                      (log, "PROG,NO.SUCH,NONE", "; no record has the fields NO.SUCH or NONE"),
                                      (unnamed, "trace_id", "the records have no event names; log the name in the field event")):
                result = self.run_program(program, "--id", ids, path)
                self.assertIn(reason, result.stdout + result.stderr)

    def test_throughput_of_single_events(self):
        """Requests of one event have no durations, so nlstat prints only the throughput."""
        result = self.run_program(self.nlstat, "--where", "NL.EVNT == Client.Send", "--throughput", "KIND", self.log(requests()))
        self.assertEqual((result.returncode, result.stdout.count("Requests by")), (0, 0), result.stderr)
        self.assertIn("per second", result.stdout)

    def test_strict(self):
        log = self.log(requests() + "rubbish\n" + requests())
        result = self.run_program(self.nlstat, log)
        self.assertIn("Requests by REQ.ID", result.stdout)
        strict = self.run_program(self.nlstat, "--strict", log)
        self.assertEqual((strict.returncode, strict.stdout), (1, ""))
        self.assertIn(f"{log}:201: ", strict.stderr)
        self.assertIn("--strict", strict.stderr)

    def test_control_characters_are_not_printed(self):
        """nlstat also escapes the control characters of ISO 6429, because U+009B begins a terminal sequence."""
        path = self.scratch / "hostile.log"
        path.write_text("".join(line(i * 1000 + at, event, i) for i in range(12)
                                for at, event in enumerate(("x\033[31mred", "w", "z\u009b31m")[i % 4 == 0:3 - (i % 4 == 1)][::-1 if i % 4 == 2 else 1])))
        for options in ["--slowest", "3", path], ["--compare", path, path], ["--plot", "-", path]:
            said = self.run_program(self.nlstat, "--id", "REQ.ID", *options).stdout
            self.assertIn("at least 20 requests before the change" if "--compare" in options else "Requests by REQ.ID", said)
            self.assertNotIn("\033", said)
            self.assertNotIn("\u009b", said)
            if "--slowest" in options:
                for shown in "lack x?[31mred, the usual first event", "of which ", "x?[31mred -> w":
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
        for wrong in (["--compare"], ["--plot", "a.gif"], ["--memory", "3"],
                      ["--since", "2026-01-02T00:00:00", "--until", "2026-01-01T00:00:00"]):
            self.assertEqual(self.run_program(self.nlstat, *wrong, odd).returncode, 2, wrong)


if __name__ == "__main__":
    support.main()
