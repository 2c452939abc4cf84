"""nlconv from outside: every two-way format in both directions, and other programs that read its output."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import support
import test_netlogd_hostile as hostile
import workflow

TWO_WAY = ["ulm", "bp", "nlb", "json", "csv", "xml", "otlp", "chrome"]

# A request whose frontend calls two backends in parallel. The second backend's cache record belongs to its span. The
# last record belongs to no request.
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BRANCHING = "".join(
    f"DATE=20260101000000.{us:06} HOST={host} PROG={prog} LVL=Usage NL.EVNT={event} TRACE.ID={TRACE} SPAN.ID=00000000000000{span}"
    f"{f' PARENT.ID=00000000000000{parent}' if parent else ''}{rest}\n"
    for us, host, prog, event, span, parent, rest in [
        (0, "front", "web", "Page.start", "a1", "", " URL=/x"), (1000, "front", "web", "CallUser.start", "b1", "a1", ""),
        (1100, "front", "web", "CallStock.start", "b2", "a1", ""), (2000, "back1", "user", "Query.start", "c1", "b1", " SQL=one"),
        (2100, "back2", "stock", "Query.start", "c2", "b2", " SQL=two"), (3000, "back2", "stock", "CacheMiss", "c2", "", " KEY=k"),
        (5000, "back1", "user", "Query.end", "c1", "b1", " ROWS=5"), (6000, "front", "web", "CallUser.end", "b1", "a1", ""),
        (8000, "back2", "stock", "Query.end", "c2", "b2", " ROWS=7"), (9000, "front", "web", "CallStock.end", "b2", "a1", ""),
        (10000, "front", "web", "Page.end", "a1", "", " BYTES=9")]) + "DATE=20260101000000.5 HOST=h PROG=p LVL=Usage NL.EVNT=Other A=1\n"
# name, begin and end in microseconds, name of the parent
SPANS = [("CallStock", 1100, 9000, "Page"), ("CallUser", 1000, 6000, "Page"), ("Page", 0, 10000, None), ("Query", 2000, 5000, "CallUser"),
         ("Query", 2100, 8000, "CallStock")]
BEGUN_US = 1767225600000000

# The written parts of the messages that Perfetto publishes (perfetto/trace/trace.proto and its imports).
PERFETTO = """syntax = "proto2";
message Trace { repeated TracePacket packet = 1; }
message Clock { required uint32 clock_id = 1; required uint64 timestamp = 2; }
message ClockSnapshot { repeated Clock clocks = 1; required uint32 primary_trace_clock = 2; }
message TracePacket {
  optional uint64 timestamp = 8;
  optional uint32 timestamp_clock_id = 58;
  optional uint32 trusted_packet_sequence_id = 10;
  oneof data { ClockSnapshot clock_snapshot = 6; TrackEvent track_event = 11; TrackDescriptor track_descriptor = 60; }
}
message ProcessDescriptor { optional int32 pid = 1; optional string process_name = 6; }
message CounterDescriptor { optional string unit_name = 6; }
message TrackDescriptor {
  required uint64 uuid = 1;
  optional uint64 parent_uuid = 5;
  optional string name = 2;
  optional ProcessDescriptor process = 3;
  optional CounterDescriptor counter = 8;
}
message DebugAnnotation { optional string name = 10; optional string string_value = 6; }
message TrackEvent {
  repeated string categories = 22;
  optional string name = 23;
  enum Type { TYPE_UNSPECIFIED = 0; TYPE_SLICE_BEGIN = 1; TYPE_SLICE_END = 2; TYPE_INSTANT = 3; TYPE_COUNTER = 4; }
  optional Type type = 9;
  optional uint64 track_uuid = 11;
  optional double double_counter_value = 44;
  repeated fixed64 flow_ids = 47;
  repeated fixed64 terminating_flow_ids = 48;
  repeated DebugAnnotation debug_annotations = 4;
}
"""

BP = "".join(
    [
        'ts=2012-03-14T14:04:46.000000Z event=wf.plan level=Info xwf.id=a3927dc2 argv="--conf rc --dir work" dax.index=0\n',
        "ts=2012-03-14T14:35:15.440727Z event=static.start level=Info\n",
        'ts=2012-03-14T14:04:48.000000Z event=task.info level=Warn argv=" -X -x 0.94789   a.fits " type=1 ratio=0.5 v=1.0\n',
        'ts=2012-03-14T14:04:48.000000001Z event="two words" level=Fatal host=h prog=p type=007 empty="" quote="\\"" x="a\\nb"\n',
        "ts=2012-03-14T14:04:49.000000Z event=order level=Info type=2 argv=b twice=1 twice=2 big=12345678901234567890\n",
        'ts=2012-03-14T14:04:50.000000Z event=bytes level=Info v="\\x01\\x7f" w=\u00fc\U0001f600\n',
    ]
)


class Nlconv(support.Case):
    def setUp(self):
        super().setUp()
        self.nlconv = support.program("nltools/nlconv")
        formats = self.run_program(self.nlconv, "--formats").stdout
        self.two_way = [f for f in TWO_WAY if formats.count(f"  {f} ") == 2]
        self.bp = self.scratch / "a.bp"
        self.bp.write_text(BP)

    def convert(self, *arguments, status=0, **options):
        options.setdefault("text", False)
        result = self.run_program(self.nlconv, *arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        return result

    def test_there_and_back(self):
        for format in self.two_way:
            with self.subTest(format=format):
                there = self.convert("--format", format, self.bp)
                back = self.convert("--format", "bp", input=there.stdout)
                self.assertEqual(back.stdout.decode(), BP)
                self.assertEqual(self.convert("--from-format", format, "--format", format, input=there.stdout).stdout, there.stdout)

    def test_through_all_formats_in_a_row(self):
        bytes_ = BP.encode()
        for format in self.two_way + self.two_way[::-1] + ["bp"]:
            bytes_ = self.convert("--format", format, input=bytes_).stdout
        self.assertEqual(bytes_.decode(), BP)

    def test_a_workflow_through_all_formats(self):
        """Conversions from each format to each other format and back restore the log."""
        log = workflow.workflow_log().encode()
        written = {format: self.convert("--format", format, input=log).stdout for format in self.two_way}
        for format in self.two_way:
            with self.subTest(format=format):
                self.assertEqual(self.convert("--format", "bp", input=written[format]).stdout, log)
            # In ./check, from each format to a third of the formats, and from a third of the formats to each format.
            index = self.two_way.index(format)
            for other in support.representative(self.two_way, self.two_way[index % 3::3]):
                with self.subTest(format=format, to=other):
                    there = self.convert("--format", other, input=written[format]).stdout
                    self.assertEqual(self.convert("--format", "bp", input=there).stdout, log)

    def test_many_records_are_in_order_whatever_the_threads(self):
        log = self.scratch / "many.log"
        with log.open("w") as out:
            for i in range(3 * (part := support.representative(20000, 8000))):  # more than a chunk for each thread
                out.write(f'DATE=20260101{i // 3600 % 24:02}{i // 60 % 60:02}{i % 60:02}.{i:06} HOST=h{i % 3} N={i} T="x \\"{i}"\n')
                if i % part == 7:
                    out.write(f"rubbish {i}\n")
        for format in self.two_way:
            with self.subTest(format=format):
                one = self.convert("--format", format, "--threads", 1, log, status=1)
                four = self.convert("--format", format, "--threads", 4, log, status=1)
                self.assertEqual(one.stderr, four.stderr)
                self.assertIn(b"many.log:9: ", one.stderr)
                self.assertIn(b"many.log:%d: " % (2 * part + 11), one.stderr)
                if format != "nlb":
                    self.assertEqual(one.stdout, four.stdout)
                back = self.convert("--format", "ulm", "--threads", 4, input=four.stdout)
                self.assertEqual(back.stdout, b"".join(l for l in log.read_bytes().splitlines(True) if l[:1] == b"D"))

    def test_pythons_json_reads_it(self):
        lines = [json.loads(line) for line in self.convert("--format", "json", self.bp).stdout.splitlines()]
        self.assertEqual(len(lines), 6)
        self.assertEqual(lines[0]["argv"], "--conf rc --dir work")
        self.assertEqual(lines[0]["dax.index"], 0)
        self.assertEqual((lines[2]["ratio"], lines[2]["v"]), (0.5, "1.0"))
        self.assertEqual((lines[3]["type"], lines[3]["empty"], lines[3]["x"]), ("007", "", "a\nb"))
        self.assertEqual((lines[4]["twice"], lines[4]["twice#2"], lines[4]["big"]), (1, 2, "12345678901234567890"))
        self.assertEqual(lines[5]["w"], "\u00fc\U0001f600")

    def test_what_pythons_json_writes_is_read(self):
        values = {"i": -5, "big": 2**63, "f": 0.1, "t": True, "n": None, "o": {"p": {"q": 1}}, "a": [1, {"b": 2}],
                  "s": "\u00fc\"\\\n\x00\U0001f600", "bad name": 1, "e": 1e300}
        text = json.dumps({"ts": 1331733886.5, **values}) + "\n\n"
        result = self.convert("--format", "json", input=text.encode())
        got = json.loads(result.stdout)
        self.assertEqual(got["ts"], "2012-03-14T14:04:46.500000Z")
        self.assertEqual((got["i"], got["big"], got["f"], got["t"], got["e"]), (-5, 2**63, 0.1, True, 1e300))
        self.assertEqual((got["o.p.q"], got["a"], got["s"]), (1, '[1, {"b": 2}]', values["s"]))
        self.assertNotIn("n", got)
        self.assertIn(b"1 field name has", result.stderr)

    def test_keys_of_the_record_before_do_not_matter(self):
        """The result for a line does not depend on earlier lines with nearly the same keys."""
        members = ['"A":1,"B":2', '"B":2,"A":1', '"AB":1,"B":2', '"A":1', '"A" : 1, "B": 2', '"A":1,"B":2',
                   '"\\u0041":1,"B":2', '"A\\"":1', '"A#2":1,"A#2":2', '"A":1,"A":2', '"event":"x","event":"y"', '"event":"x"',
                   '"event#2":"x"', '"event":{"A":1},"A":{"$bytes":"QQ=="}', '"a b":1,"":2', '"A":1,"B"2', '"A":1,',
                   '"' + 38 * "k" + '":1', '"' + 39 * "k" + '":1', '"' + 300 * "k" + '":1,"B":2',
                   ",".join(f'"K{i}":{i}' for i in range(200)), ",".join(f'"K{i}":{i}' for i in range(199))]
        members = [m for m in members for _ in range(2)]
        lines = [f'{{"ts":{i % 10},{m}}}\n'.encode() for i, m in enumerate(members)]
        status = [int(m in ('"A":1,"B"2', '"A":1,')) for m in members]
        alone = [self.convert("--from-format", "json", "--format", "ulm", input=l, status=s).stdout for l, s in zip(lines, status)]
        self.assertEqual(self.convert("--format", "ulm", input=b"".join(lines), status=1).stdout, b"".join(alone))
        self.assertEqual([bool(out) for out in alone], [not s for s in status])

    def test_pythons_csv_reads_it(self):
        text = self.convert("--format", "csv", self.bp).stdout.decode()
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        self.assertEqual({len(row) for row in rows}, {len(rows[0])})
        self.assertEqual(len(rows), 7)
        cells = [dict(zip(rows[0], row)) for row in rows[1:]]
        self.assertEqual(cells[0]["argv"], "--conf rc --dir work")
        self.assertEqual((cells[3]["quote"], cells[3]["x"], cells[3]["type"]), ('"', "a\nb", "007"))
        self.assertEqual(cells[4]["twice#2"], "2")
        self.assertTrue(text.endswith("\r\n"))

    def test_what_pythons_csv_writes_is_read(self):
        out = io.StringIO(newline="")
        values = ["", "a,b", 'q"q', "two\nlines", "cr\r\nlf", " blank ", "'", "="]
        writer = csv.writer(out)
        writer.writerow(["DATE"] + [f"V{i}" for i in range(len(values))])
        writer.writerow(["20260101000000"] + values)
        writer.writerow(["2026-01-01T00:00:01Z"] + values[::-1])
        got = [json.loads(line) for line in self.convert("--format", "json", input=out.getvalue().encode()).stdout.splitlines()]
        self.assertEqual([got[0].get(f"V{i}", "") for i in range(len(values))], values)
        self.assertEqual([got[1].get(f"V{i}", "") for i in range(len(values))], values[::-1])

    @unittest.skipUnless(shutil.which("xmllint"), "xmllint is not installed")
    def test_xmllint_finds_it_valid(self):
        if "xml" not in self.two_way:
            self.skipTest("XML is not built here")
        xml = self.scratch / "a.xml"
        self.convert("--format", "xml", "-o", xml, self.bp)
        schema = support.SOURCE / "doc" / "netlogger.xsd"
        result = self.run_program("xmllint", "--noout", "--schema", schema, xml)
        self.assertEqual(result.returncode, 0, result.stderr)

    LIFELINES = "".join(
        f"DATE=20260101000000.{i * 1000 + step * 300:06} HOST={'cs'[step % 2]} PROG=p NL.EVNT=E{step} ID={i % 50}\n"
        for i in range(50)
        for step in range(3)
    ) + "".join(f"DATE=2026010100000{i}.5 HOST=c PROG=p NL.EVNT=Load CPU={i}.5\n" for i in range(9))
    DRAWING = "[lifeline Block]\nevents=E0;E1;E2\nid=ID\n[loadline CPU]\nevent=Load\nfield=CPU\nunit=%\n"

    def drawn(self, format):
        if format not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("lifelines are not built here")
        (self.scratch / "a.log").write_text(self.LIFELINES)
        (self.scratch / "a.nlv").write_text(self.DRAWING)
        return self.convert("--format", format, "--config", self.scratch / "a.nlv", self.scratch / "a.log").stdout

    def otlp_spans(self, log, *arguments):
        result = self.convert("--format", "otlp-spans", *arguments, input=log.encode())
        found = [json.loads(line)["resourceSpans"][0] for line in result.stdout.splitlines()]
        return [span["scopeSpans"][0]["spans"][0] for span in found], result

    def test_otlp_events_belong_to_the_span_that_they_name(self):
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        trace, ids = "ab" * 16, {name: f"{n:016x}" for n, name in enumerate(("Root", "A", "B", "None"), 1)}
        lines = [("Root.start", "Root"), ("A.start", "A"), ("B.start", "B"), ("OfA", "A"), ("OfB", "B"), ("OfRoot", "Root"),
                 ("Unnamed", ""), ("OfNone", "None"), ("A.end", "A"), ("B.end", "B"), ("LateOfA", "A"), ("Root.end", "Root")]
        text = "".join(
            f"DATE=20260101000000.{i:06} HOST=h PROG=p LVL=Usage NL.EVNT={event} TRACE.ID={trace}"
            + (f" SPAN.ID={ids[span]}" if span else "")
            + (f" PARENT.ID={ids['Root']}" if span in ("A", "B") and "." in event else "") + "\n"
            for i, (event, span) in enumerate(lines))
        spans, _ = self.otlp_spans(text)
        found = {span["spanId"]: [e["name"] for e in span.get("events", [])] for span in spans}
        self.assertEqual(found[ids["A"]], ["OfA", "LateOfA"])
        self.assertEqual(found[ids["B"]], ["OfB", "Unnamed"])
        self.assertEqual(found[ids["Root"]], ["OfRoot"])
        self.assertEqual(sorted(sum(found.values(), [])), ["LateOfA", "OfA", "OfB", "OfNone", "OfRoot", "Unnamed"])

    def test_otlp_spans_of_a_branching_request(self):
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        spans, result = self.otlp_spans(BRANCHING)
        self.assertIn(b"1 record was left out", result.stderr)
        names = {span["spanId"]: span["name"] for span in spans}
        us = lambda ns: int(ns) // 1000 - BEGUN_US
        self.assertEqual(sorted((s["name"], us(s["startTimeUnixNano"]), us(s["endTimeUnixNano"]), names.get(s.get("parentSpanId"))) for s in spans),
                         SPANS)
        self.assertEqual({s["traceId"] for s in spans}, {TRACE})
        self.assertEqual(set(names), {f"00000000000000{i}" for i in ("a1", "b1", "b2", "c1", "c2")})
        stock = next(s for s in spans if s["spanId"].endswith("c2"))
        self.assertEqual([a["key"] for a in stock["attributes"]], ["SQL", "ROWS"])
        self.assertEqual([(e["name"], us(e["timeUnixNano"]), [a["key"] for a in e["attributes"]]) for e in stock["events"]],
                         [("CacheMiss", 3000, ["KEY"])])
        # The imported log has the same spans.
        back = self.convert("--format", "ulm", "-q", input=result.stdout).stdout.decode()
        again, _ = self.otlp_spans(back)
        key = lambda s: s["spanId"]
        keep = lambda s: {k: s.get(k) for k in ("traceId", "spanId", "parentSpanId", "name", "startTimeUnixNano", "endTimeUnixNano")}
        self.assertEqual([keep(s) for s in sorted(again, key=key)], [keep(s) for s in sorted(spans, key=key)])

    def test_spans_that_overlap_in_one_thread(self):
        """Without request IDs, it is unknown which spans belong together, but each span keeps its times."""
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        sides = [(0, "page", "start"), (100, "query", "start"), (600, "page", "end"), (900, "query", "end")]
        logs = {
            "Chrome, B and E": json.dumps({"traceEvents": [{"ph": {"start": "B", "end": "E"}[side], "ts": us, "pid": 1, "tid": 1, "name": name}
                                                           for us, name, side in sides]}),
            "Chrome, X": json.dumps({"traceEvents": [{"ph": "X", "ts": us, "dur": us_end - us, "pid": 1, "tid": 1, "name": name}
                                                     for name, us, us_end in (("page", 0, 600), ("query", 100, 900))]}),
            "ULM": "".join(f"DATE=19700101000000.{us:06} HOST=h PROG=p LVL=Usage NL.EVNT={name}.{side} TID=1\n" for us, name, side in sides)}
        for name, log in logs.items():
            with self.subTest(name):
                spans, result = self.otlp_spans(log)
                self.assertEqual(result.returncode, 0)
                times = {(s["name"], int(s["startTimeUnixNano"]), int(s["endTimeUnixNano"])) for s in spans}
                self.assertLessEqual({("page", 0, 600_000), ("query", 100_000, 900_000)}, times)
                # The exported spans have the same times when they are read back.
                stat = self.run_program(support.program("nltools/nlstat"), "--json", "-", input=result.stdout.decode())
                rows = {(r["span"], r["sum_ns"]) for kind in json.loads(stat.stdout) for r in kind["rows"] if r["kind"] == "span"}
                self.assertIn(("query", 800_000), rows)

    def test_otlp_spans_that_failed(self):
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        statuses = {"0": False, "-1": True, "200": False, "503": True, "ok": False, "error": True}
        log = "".join(
            f"DATE=2026013112000{n}.0{at} HOST=h PROG=p LVL=Usage NL.EVNT={status}.{event} TRACE.ID=7{n:031x} SPAN.ID=a{n:015x}{more}\n"
            for n, status in enumerate(statuses) for at, event, more in ((1, "start", ""), (2, "end", f" STATUS={status}")))
        spans, _ = self.otlp_spans(log)
        self.assertEqual({s["name"]: s.get("status", {}).get("code") == 2 for s in spans}, statuses)

    def test_chrome_spans_of_a_branching_request(self):
        if "chrome" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        events = json.loads(self.convert("--format", "chrome", input=BRANCHING.encode()).stdout)["traceEvents"]
        spans = [e for e in events if e["ph"] == "X"]
        names = {e["args"]["span"]: e["name"] for e in spans}
        self.assertEqual(sorted((e["name"], round(e["ts"]) - BEGUN_US, round(e["ts"] + e["dur"]) - BEGUN_US, names.get(e["args"].get("parent")))
                                for e in spans), SPANS)
        processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual({(e["name"], processes[e["pid"]]) for e in spans if e["name"] == "Query"}, {("Query", "back1"), ("Query", "back2")})
        for track in {e["tid"] for e in spans}:  # spans of a track nest
            on = sorted((e["ts"], -e["dur"]) for e in spans if e["tid"] == track)
            for (begin, length), (next_begin, next_length) in zip(on, on[1:]):
                self.assertTrue(next_begin >= begin - length or next_begin - next_length <= begin - length, (track, on))
        flows = [e for e in events if e["ph"] in "sf"]
        # The flows go from a parent to each query, and to the call that runs parallel to another call.
        self.assertEqual(len({e["id"] for e in flows}), 3)
        self.assertEqual([e["ph"] for e in events].count("i"), 12)
        back = self.convert("--format", "ulm", "-q", input=json.dumps({"traceEvents": events}).encode()).stdout.decode()
        self.assertEqual(sorted(back.splitlines()), sorted(BRANCHING.replace(".5 ", ".500000 ").splitlines()))

    def test_pairs_without_identifiers_are_spans(self):
        """nlconv recognizes spans in all spellings of the request model, and records with a duration. Nesting within a thread
        determines the parents."""
        for first, last in ("Work.start", "Work.end"), ("START_Work", "STOP_Work"), ("WorkBegin", "WorkEnd"), ("WORK_START", "WORK_END"):
            with self.subTest(first):
                log = "".join(f"DATE=20260101000000.{us:06} HOST=h PROG=p NL.EVNT={event} TID=7\n" for us, event in
                              [(0, "Outer.start"), (100, first), (300, last), (400, "Outer.end")]) + \
                    "DATE=20260101000000.000250 HOST=h PROG=p NL.EVNT=Step DUR.US=100 TID=7\n"
                spans, _ = self.otlp_spans(log)
                names = {s["spanId"]: s["name"].lower() for s in spans}
                self.assertEqual({(s["name"].lower(), int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]), names.get(s.get("parentSpanId")))
                                  for s in spans}, {("outer", 400000, None), ("work", 200000, "outer"), ("step", 100000, "work")})

    def test_large_records_of_requests(self):
        """A record of more than 64 KiB keeps its event, host, program and small fields. nlconv reports the omitted fields."""
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("spans are not built here")
        log = "".join(f"DATE=20260101000000.{us:06} HOST=h PROG=p NL.EVNT=Work.{side} TRACE.ID={'ab' * 16} SPAN.ID={'cd' * 8} {rest}\n"
                      for us, side, rest in [(1, "start", f"A=1 BIG={'x' * 70000} B=2"), (9, "end", "STATUS=0")])
        result = self.convert("--format", "otlp-spans", input=log.encode())
        self.assertIn(b"otlp-spans: 1 field was left out", result.stderr)
        (resource,) = (json.loads(line)["resourceSpans"][0] for line in result.stdout.splitlines())
        span = resource["scopeSpans"][0]["spans"][0]
        attributes = {a["key"]: list(a["value"].values())[0] for a in resource["resource"]["attributes"] + span["attributes"]}
        self.assertEqual({k: attributes.get(k) for k in ("host.name", "service.name", "A", "B")},
                         {"host.name": "h", "service.name": "p", "A": "1", "B": "2"})
        self.assertEqual((span["name"], span["traceId"], span["spanId"]), ("Work", "ab" * 16, "cd" * 8))
        events = json.loads(self.convert("--format", "chrome", input=log.encode()).stdout)["traceEvents"]
        self.assertEqual({e["args"]["name"] for e in events if e["name"] == "process_name"}, {"h"})
        result = self.convert("--format", "perfetto", input=log.encode())
        self.assertIn(b"perfetto: 1 field was left out", result.stderr)
        self.assertIn(b"h p", result.stdout)
        self.assertNotIn(b"- -", result.stdout)

    def test_times_before_1970(self):
        log = b"DATE=19691231235959 HOST=h PROG=p NL.EVNT=E\n"
        for format in "perfetto", "otlp":
            if format in self.run_program(self.nlconv, "--formats").stdout:
                result = self.convert("--format", format, input=log)
                self.assertEqual(b"1 time before 1970 was written as 1970" in result.stderr, format == "perfetto", result.stderr)

    def test_traces_of_others_have_spans(self):
        """nlstat reads nlconv's imports: the parents are those of the trace."""
        events = [{"name": n, "ph": "X", "ts": ts, "dur": dur, "pid": 1, "tid": 1} for n, ts, dur in
                  [("main", 1000, 9000), ("parse", 2000, 3000), ("link", 6000, 2000)]]
        events[2:2] = [{"name": "lex", "ph": "B", "ts": 2500, "pid": 1, "tid": 1}, {"name": "lex", "ph": "E", "ts": 3500, "pid": 1, "tid": 1}]
        trace = self.scratch / "trace.json"
        trace.write_text(json.dumps({"traceEvents": events}))
        spans, _ = self.otlp_spans(trace.read_text())
        names = {s["spanId"]: s["name"] for s in spans}
        self.assertEqual({(s["name"], names.get(s.get("parentSpanId"))) for s in spans},
                         {("main", None), ("parse", "main"), ("lex", "parse"), ("link", "main")})
        nlstat = support.program("nltools/nlstat")
        shown = self.run_program(nlstat, "--slowest", "1", trace).stdout
        depths = re.findall(r"(?m)^ {4}\*? +( *)(main|parse|lex|link)  ", shown)
        self.assertEqual([name for _, name in sorted(depths, key=lambda d: len(d[0]))][:1], ["main"], shown)

    def test_spans_take_bounded_memory(self):
        """nlconv does not keep the records of completed requests."""
        log, count = self.scratch / "long.log", support.representative(400000, 200000)
        with open(log, "w") as out:
            for i in range(count):  # each text is different
                time = f"202601{1 + i // 86400:02}{i // 3600 % 24:02}{i // 60 % 60:02}{i % 60:02}"
                out.write(f"DATE={time}.000000 HOST=h PROG=p NL.EVNT=Job.start JOB.ID={i} TEXT={i:0200}\n"
                          f"DATE={time}.500000 HOST=h PROG=p NL.EVNT=Job.end JOB.ID={i}\n")
        self.assertGreater(log.stat().st_size, 300 * count)
        for format in "otlp-spans", "chrome", "perfetto":
            process = subprocess.Popen([self.nlconv, "--format", format, "-q", "-o", self.scratch / "out", log])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            if b"__asan_init" not in pathlib.Path(self.nlconv).read_bytes():
                self.assertLess(usage.ru_maxrss, 180_000, format)

    def test_chrome_has_spans_and_loadlines(self):
        events = json.loads(self.drawn("chrome"))["traceEvents"]
        kinds = [event["ph"] for event in events]
        self.assertEqual([kinds.count(k) for k in "iXC"], [159, 150, 9])
        self.assertEqual({e["args"]["name"] for e in events if e["name"] == "process_name"}, {"c", "s"})

    @unittest.skipUnless(shutil.which("protoc"), "protoc is not installed")
    def test_protoc_reads_perfetto(self):
        trace = self.drawn("perfetto")
        (self.scratch / "trace.proto").write_text(PERFETTO)
        result = self.run_program("protoc", f"-I{self.scratch}", "--decode=Trace", "trace.proto", input=trace, text=False,
                                  cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = result.stdout.decode()
        self.assertNotRegex(text, r"(?m)^\s*\d+:? ")  # a field that is not in the messages
        counts = [text.count(f"type: TYPE_{kind}\n") for kind in ("SLICE_BEGIN", "SLICE_END", "COUNTER", "INSTANT")]
        self.assertEqual(counts, [150, 150, 9, 59])
        flows = text.count(" flow_ids:")
        self.assertEqual(flows, text.count("terminating_flow_ids:"))
        self.assertGreaterEqual(flows, 50)  # from the request at c to its segment at s

    def test_spans_are_traces(self):
        if "otlp-spans" not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("lifelines are not built here")
        (self.scratch / "a.log").write_text(self.LIFELINES)
        (self.scratch / "a.nlv").write_text(self.DRAWING)
        result = self.convert("--format", "otlp-spans", "-c", self.scratch / "a.nlv", self.scratch / "a.log")
        self.assertIn(b"9 records were left out", result.stderr)
        spans = [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for line in result.stdout.splitlines()]
        self.assertEqual(len(spans), 150)
        self.assertEqual(len({span["spanId"] for span in spans}), 150)
        roots = {span["spanId"] for span in spans if "parentSpanId" not in span}
        self.assertEqual((len(roots), {span.get("parentSpanId") for span in spans} - {None}), (50, roots))
        back = self.convert("--format", "ulm", "-q", input=result.stdout).stdout
        self.assertEqual(back.count(b"\n"), 2 * 150 + 50)  # and an event for the last step

    def test_chrome_traces_of_others_are_read(self):
        text = b'[{"name":"a","ph":"X","ts":1.5,"dur":2,"pid":1,"tid":2,"args":{"x":1}},\n{"ph":"M","ts":0},\n{"ph":"B"},{"ph":"E","ts":2}]'
        result = self.convert("--format", "ulm", "-q", input=text, status=1)
        self.assertIn(b"-:3: missing ts", result.stderr)
        self.assertEqual(result.stdout.decode(), "DATE=19700101000000.000001500 NL.EVNT=a ph=X dur=2 pid=1 tid=2 x=1\n"
                         "DATE=19700101000000.000002 ph=E\n")

    def test_names_of_processes_in_chrome_traces(self):
        names = [{"name": "process_name", "ph": "M", "pid": 7, "tid": 0, "args": {"name": "tile\"s"}}, {"name": "process_name", "ph": "M", "pid": "a", "args": {"sort": 1, "name": "b"}},
                 {"name": "thread_name", "ph": "M", "pid": 8, "tid": 1, "args": {"name": "main"}}, {"name": "process_name", "ph": "M", "pid": 9, "args": {"name": 3}},
                 {"name": "process_name", "ph": "M", "pid": 10, "args": {}}]
        spans = [{"name": "x", "ph": "X", "ts": n, "dur": 1, "pid": pid, "tid": 1} for n, pid in enumerate((7, "a", 8, 9, 10, 7))] + [{"name": "y", "ph": "i", "ts": 9}]
        result = self.convert("--format", "json", "-q", input=json.dumps({"traceEvents": names + spans}).encode())
        self.assertEqual([json.loads(line).get("prog") for line in result.stdout.splitlines()], ['tile"s', "b", None, None, None, 'tile"s', None])

    def test_names_of_processes_at_the_end_of_a_chrome_trace(self):
        """All events wait for the names, in their order, and errors in them keep their lines."""
        names = [{"name": "process_name", "ph": "M", "pid": pid, "args": {"name": f"p{pid}"}} for pid in (1, 2)]
        spans = [{"name": f"x{n}", "ph": "X", "ts": n, "dur": 1, "pid": 1 + n % 3, "tid": 1, "args": {"text": "y" * 1000}} for n in range(3000)]
        spans[70] = {"name": "bad", "ph": "X", "pid": 1}
        for events in (spans + names, spans[:50] + names[:1] + spans[50:] + names[1:]):
            lines = ",\n".join(json.dumps(e) for e in events)
            result = self.convert("--format", "json", "-q", input=f"[{lines}]".encode(), status=1)
            self.assertIn(b"-:%d: missing ts" % (1 + events.index(spans[70])), result.stderr)
            found = [json.loads(line) for line in result.stdout.splitlines()]
            self.assertEqual([(r["event"], r.get("prog")) for r in found],
                             [(s["name"], {1: "p1", 2: "p2"}.get(s["pid"])) for s in spans if "ts" in s])

    def test_strict_reading_keeps_held_chrome_events_before_malformed_input(self):
        spans = [json.dumps({"name": f"x{n}", "ph": "X", "ts": n, "dur": 1, "pid": 1}) for n in range(3)]
        for bad in '{"name": "bad"', "rubbish", '{"name": "bad", "ph": "X", "pid": 1,}':
            text = f"[{spans[0]},{spans[1]},\n{bad},\n{spans[2]}]"
            result = self.convert("--format", "json", "-q", "--strict", input=text.encode(), status=1)
            self.assertEqual([json.loads(line)["event"] for line in result.stdout.splitlines()], ["x0", "x1"])
            self.assertIn(b"-:2: ", result.stderr)

    def test_chrome_events_of_unnamed_processes_are_held_up_to_a_limit(self):
        span = json.dumps({"name": "x", "ph": "X", "ts": 1, "dur": 1, "pid": 1, "args": {"text": "y" * 100000}})
        name = json.dumps({"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "late"}})
        with open(self.scratch / "trace.json", "w") as trace:
            trace.write("[" + ",\n".join([span] * 10) + ",\n")
            for _ in range(79):
                trace.write(",\n".join([span] * 10) + ",\n")
            trace.write(f"{name},\n{span}]")
        self.convert("--format", "ulm", "-q", "-o", self.scratch / "trace.log", self.scratch / "trace.json")
        with open(self.scratch / "trace.log") as log:
            self.assertEqual(["PROG=late" in line for line in log], [False] * 800 + [True])

    def test_malformed_input_is_told_with_its_place(self):
        cases = {
            "ulm": (b"DATE=20260101000000 A=1\nrubbish\nDATE=20260101000001 A=2\n", b":2: "),
            "json": (b'{"ts":1}\n{"ts":1,}\n\n{"ts":2}\n', b":2: "),
            "csv": (b'ts,a\n1,"x\ny"\n2,3,4\n3,z\n', b":4: more cells"),
            "xml": (b'<log>\n<record time="1"/>\n<record time="x"/>\n<record time="2"/></log>', b":3: invalid time"),
        }
        for format, (text, place) in cases.items():
            with self.subTest(format=format):
                if format not in self.two_way:
                    continue
                reject = self.scratch / "reject"
                result = self.convert("--from-format", format, "--format", "ulm", "--reject", reject, input=text, status=1)
                self.assertEqual(result.stdout.count(b"DATE="), 2)
                self.assertIn(place, result.stderr)
                self.assertTrue(reject.exists())
                result = self.convert("--strict", "--from-format", format, "--format", "ulm", input=text, status=1)
                self.assertEqual(result.stdout.count(b"DATE="), 1)

    def test_xml_that_is_no_log_of_ours(self):
        if "xml" not in self.two_way:
            self.skipTest("XML is not built here")
        bomb = b'<!DOCTYPE log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><log><record time="1" event="&b;"/></log>'
        for text in (bomb, b"<html/>", b"<log><record time='1'", b"<log></lag>", b"<"):
            with self.subTest(text=text):
                self.assertIn(b"-:1: ", self.convert("--from-format", "xml", "--format", "ulm", input=text, status=1).stderr)
        self.assertEqual(self.convert("--format", "ulm", input=b"<html/>", status=1).stderr, b'nlconv: -:1: no DATE=, ts= or time= field: "<html/>"\n')

    def test_encodings_of_xml(self):
        document = '<?xml version="1.0" encoding="{}"?>\n<log>\n<record time="2026-01-01T00:00:00Z" event="e"><f n="A">\u00e9</f></record></log>\n'
        for name, codec in ("UTF-8", "utf-8"), ("iso-8859-1", "latin-1"), ("UTF-16", "utf-16"):
            with self.subTest(name):
                self.assertIn("A=\u00e9".encode(), self.convert("--from-format", "xml", "--format", "ulm", input=document.format(name).encode(codec)).stdout)
        for name in "UT-F8", "X", "windows-1252":
            with self.subTest(name):
                result = self.convert("--format", "ulm", input=document.format(name).encode("latin-1"), status=1)
                self.assertEqual((result.stdout, result.stderr), (b"", b'nlconv: -:1: unsupported encoding; convert the document to UTF-8: "%s"\n' % name.encode()))

    def test_xml_attacks_cost_little(self):
        """nlconv rejects each record or the rest of each input within seconds and in bounded memory. It reads the preceding record."""
        if "xml" not in self.two_way:
            self.skipTest("XML is not built here")
        secret = self.scratch / "secret"
        secret.write_text("secret")
        begin, end = b'<log>\n<record time="1"/>\n', b'<record time="2"/></log>'
        names = b"".join(b"<e%d/>" % i for i in range(500000))
        attacks = {
            "entities": (b'<!DOCTYPE log [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + begin + b'<record time="3" event="&b;"/>' + end,
                         b"DOCTYPE", 0),
            "an external entity": (b'<!DOCTYPE log [<!ENTITY a SYSTEM "file://%s">]>' % bytes(secret) + begin +
                                   b'<record time="3"><f n="a">&a;</f></record>' + end, b"DOCTYPE", 0),
            "external rules": (b'<!DOCTYPE log SYSTEM "file://%s">' % bytes(secret) + begin + end, b"DOCTYPE", 0),
            "an undefined entity": (begin + b'<record time="3"><f n="a">&x;</f></record>' + end, b"Entity 'x' not defined", 1),
            "depth": (begin + b"<a>" * 5000000, b"too deep", 1),
            "attributes": (begin + b"<record time='3' " + b" ".join(b"a%d=''" % i for i in range(500000)) + b"/>" + end,
                           b"larger than 1 MiB", 1),
            "many attributes again and again": (begin + (b"<record time='3' " + b" ".join(b"a%d=''" % i for i in range(900)) + b"/>") * 1000
                                                + end, b"too many", 1),
            "namespaces": (begin + b"<record time='3' " + b" ".join(b"xmlns:a%d='b'" % i for i in range(50000)) + b"/>" + end,
                           b"too many", 1),
            "names": (begin + names + end, b"malformed", 1),
            "a large attribute": (begin + b"<record time='3' event='" + b"x" * 20000000 + b"'/>" + end, b"larger than 1 MiB", 1),
            "a large comment": (begin + b"<!--" + b"x" * 20000000 + b"-->" + end, b"larger than 1 MiB", 1),
            "a large value": (begin + b"<record time='3'><f n='a'>" + b"x" * 70000000 + b"</f></record>\n" + end,
                              b"larger than 64 MiB", 2),
            "many fields": (begin + b"<record time='3'>" + b"<f n='a'/>" * 2000000 + b"</record>\n" + end, b"larger than 64 MiB", 2),
        }
        for name, (text, message, records) in attacks.items():
            with self.subTest(attack=name):
                path = self.scratch / "attack.xml"
                path.write_bytes(text)
                result = subprocess.run(["prlimit", "--as=800000000", "--cpu=20", self.nlconv, "--threads", "1", "--format", "ulm", path],
                                        capture_output=True, timeout=100)
                self.assertEqual((result.returncode, result.stdout.count(b"DATE=")), (1, records), result.stderr[:1000])
                self.assertIn(message, result.stderr)
                self.assertNotIn(b"secret", result.stdout)

    def test_what_a_format_cannot_hold_is_said_once(self):
        nlb = self.convert("--format", "nlb", input=b'{"ts":1,"a":5}\n{"ts":2,"a":6,"b":true}\n').stdout
        result = self.convert("--format", "ulm", input=nlb)
        self.assertEqual(result.stderr.count(b"\n"), 1)
        self.assertIn(b"ulm: 3 numeric or boolean values were written as text", result.stderr)
        self.assertEqual(self.convert("--quiet", "--format", "ulm", input=nlb).stderr, b"")
        self.assertEqual(self.convert("--format", "json", input=nlb).stderr, b"")

    def test_output_takes_its_name_only_when_it_is_there(self):
        out = self.scratch / "out"
        out.write_text("old")
        out.chmod(0o640)
        self.convert("--format", "json", "-o", out, input=b"what is this\n", status=1)
        self.convert("--format", "json", "-o", out, "--strict", input=b"DATE=20260101000000 A=1\nrubbish\n", status=1)
        self.convert("--format", "csv", "-o", out, self.scratch / "absent", status=1)
        self.assertEqual(out.read_text(), "old")
        self.convert("--format", "json", "-o", out, input=b"DATE=20260101000000 A=1\nrubbish\n", status=1)
        self.assertEqual(out.read_text(), '{"ts":"2026-01-01T00:00:00.000000Z","A":1}\n')
        self.assertEqual(out.stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), ["a.bp", "out"])

    def test_who_may_read_a_file_may_read_what_replaces_it(self):
        out, link = self.scratch / "out", self.scratch / "link"
        out.write_text("old")
        out.chmod(0o600)
        link.symlink_to(out)
        self.convert("--format", "json", "-o", link, self.bp)
        self.assertTrue(link.is_symlink())
        self.assertEqual(out.stat().st_mode & 0o7777, 0o600)
        if os.geteuid() == 0:
            out.chmod(0o640)
            os.chown(out, 65534, 65534)
            self.convert("--format", "json", "-o", out, self.bp)
            self.assertEqual((out.stat().st_uid, out.stat().st_gid, out.stat().st_mode & 0o7777), (65534, 65534, 0o640))
            self.scratch.chmod(0o777)  # another user may have put it there
            self.convert("--format", "json", "-o", out, self.bp)
            self.assertEqual((out.stat().st_uid, out.stat().st_mode & 0o7777), (0, 0o600))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([self.nlconv, "--format", "xml" if "xml" in self.two_way else "json", str(self.bp)], stdout=full,
                                    stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)

    def test_where_chooses_records(self):
        out = self.convert("--format", "csv", "--where", "type == 2", self.bp).stdout.decode()
        self.assertEqual(out.splitlines()[0], "ts,event,level,host,prog,type,argv,twice,twice#2,big")
        self.assertEqual(len(out.splitlines()), 2)

    def test_nothing_and_wrong_use(self):
        for format in self.two_way:
            nothing = self.convert("--format", format, input=b"", status=1)
            self.assertEqual((nothing.stdout, nothing.stderr), (b"", b"nlconv: standard input: no records\n"))
        self.convert(status=2)
        self.convert("--format", "nonsense", status=2)
        self.convert("--format", "ulm", "a", "b", status=2)
        self.convert("--format", "ulm", "--threads", "0", status=2)

    def test_damaged_blocks_lose_only_themselves(self):
        log = b"".join(b"DATE=20260101000000 HOST=h N=%d PAD=%s\n" % (i, b"x%d" % i * 9) for i in range(40000))
        nlb = bytearray(self.convert("--format", "nlb", input=log).stdout)
        nlb[len(nlb) // 2] ^= 0xFF
        result = self.convert("--format", "ulm", input=bytes(nlb), status=1)
        lines = set(log.splitlines())
        got = [line.replace(b".000000", b"", 1) for line in result.stdout.splitlines()]
        self.assertTrue(all(line in lines for line in got))
        self.assertGreater(len(got), 30000)
        self.assertLess(len(got), 40000)
        self.assertIn(b"checksum does not match", result.stderr)

    def test_memory_for_blocks_that_expand(self):
        """The output of these blocks is a thousand times larger. nlconv writes while it reads."""
        block, count = hostile.Work.dense()
        log = self.scratch / "log.nlb"
        log.write_bytes(block * 100)
        process = subprocess.Popen([self.nlconv, "--format", "json", log], stdout=subprocess.PIPE)
        lines = sum(line.count(b"\n") for line in process.stdout)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        self.assertEqual(process.returncode, 0)
        self.assertGreaterEqual(lines, 100 * count)
        self.assertLess(usage.ru_maxrss, 150000)


if __name__ == "__main__":
    support.main()
