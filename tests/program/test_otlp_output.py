"""netlogd as a sender of OTLP: to @grpc/grpc-js and Node's HTTP server with OpenTelemetry's own decoder, and to a
server that fails on command."""
import contextlib
import gzip
import http.client
import http.server
import json
import random
import re
import subprocess
import threading

import collector
import otlp
import support

PACKAGES = ["@opentelemetry/otlp-transformer@0.203.0", "@opentelemetry/api@1.9.0", "@grpc/grpc-js@1.14.7"]
# Receives requests over gRPC or HTTP, and appends each as a line of JSON to a file before it responds.
RECEIVER = r"""
"use strict";
const [protocol, port, file, folder] = process.argv.slice(2);
const fs = require("fs"), path = require("path");
const root = require(path.join(folder, "node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js"));
const grpc = require(path.join(folder, "node_modules/@grpc/grpc-js"));
const collector = root.opentelemetry.proto.collector;
const kinds = { traces: collector.trace.v1.ExportTraceServiceRequest, logs: collector.logs.v1.ExportLogsServiceRequest };
const hex = (key, value) => value && value.type === "Buffer" ? Buffer.from(value.data).toString("hex") : value;
// A receiver that was killed may have appended a part of a line.
if (fs.existsSync(file)) fs.truncateSync(file, fs.readFileSync(file).lastIndexOf(10) + 1);
const store = (signal, body) =>
  fs.appendFileSync(file, JSON.stringify(kinds[signal].toObject(kinds[signal].decode(body), { longs: String }), hex) + "\n");
if (protocol === "grpc") {
  const server = new grpc.Server();
  const raw = (x) => Buffer.from(x);
  for (const [signal, name] of [["traces", "trace.v1.TraceService"], ["logs", "logs.v1.LogsService"]])
    server.addService({ Export: { path: `/opentelemetry.proto.collector.${name}/Export`, requestStream: false, responseStream: false,
      requestDeserialize: raw, requestSerialize: raw, responseSerialize: raw, responseDeserialize: raw } },
      { Export: (call, done) => { store(signal, call.request); done(null, Buffer.alloc(0)); } });
  server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (e, bound) => { if (e) throw e; console.log(`port ${bound}`); });
} else {
  const server = require("http").createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part)).on("end", () => {
      const body = Buffer.concat(parts), zipped = request.headers["content-encoding"] === "gzip";
      store(request.url.replace("/v1/", ""), zipped ? require("zlib").gunzipSync(body) : body);
      response.setHeader("Content-Type", "application/x-protobuf");
      response.end();
    });
  }).listen(Number(port), "127.0.0.1", () => console.log(`port ${server.address().port}`));
}
"""


def span(number, side, start_us, parent=None, extra=""):
    return (f"DATE=20260101000000.{start_us:06d} HOST=h PROG=shop LVL=Usage NL.EVNT=Work.{side} TRACE.ID={number // 10 + 1:032x} "
            f"SPAN.ID={number + 1:016x}{f' PARENT.ID={parent + 1:016x}' if parent is not None else ''}{extra}\n")


def log(number, extra=""):
    return f"DATE=20260101000001.{number % 1000000:06d} HOST=h PROG=shop LVL=Warning NL.EVNT=Low N={number}{extra}\n"


def nested(**values):
    return {"kvlistValue": {"values": otlp.attributes(**values)}}


# A span and a log record with every member that netlogd stores.
TRACES = otlp.traces([
    otlp.span(0, traceState="a=b", parentSpanId="cd" * 8, kind=2, flags=257, droppedAttributesCount=1, droppedEventsCount=2, droppedLinksCount=3, attributes=[
        *otlp.attributes(text="two words", truth=True, number=-5, half=0.5, host="h#1", level="x", STATUS="idle"),
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": 1}, {"doubleValue": 2.0}, {"stringValue": "a\"b\u00e9"}, {"boolValue": False}, {"bytesValue": "AQL/"},
                                                             {"arrayValue": {"values": []}}, nested(x=1)]}}},
        {"key": "like.a.list", "value": {"stringValue": "[1]"}}, {"key": "like", "value": {"stringValue": "{}"}},
        {"key": "map", "value": {"kvlistValue": {"values": otlp.attributes(inner=7) + [{"key": "deep", "value": nested(x=1.5, y="z")}, {"key": "deeper.still", "value": nested(k=True)}]}}},
        {"key": "none", "value": {"kvlistValue": {}}}, {"key": "bytes", "value": {"bytesValue": "AQL/"}}, {"key": "ascii", "value": {"bytesValue": "YWJj"}},
        {"key": "empty", "value": {}}, {"key": "blank", "value": {"stringValue": ""}}],
        events=[{"timeUnixNano": "1700000000100000000", "name": "cache miss", "attributes": otlp.attributes(key="k") + [{"key": "m", "value": nested(a=1)}]},
                {"timeUnixNano": "1700000000200000000", "name": "x.end"}],
        links=[{"traceId": "ab" * 16, "spanId": "cd" * 8, "traceState": "l=1", "flags": 1, "attributes": otlp.attributes(why="batch")}]),
    otlp.span(1, parentSpanId=f"{1:016x}", kind=3, status={"code": 2, "message": "disk full"}), otlp.span(2, kind=1, status={"code": 1}),
    otlp.span(17, name="", kind=5)],
    host_name="node1", service_name="shop", region="eu", cpus=4)
RESOURCE = TRACES["resourceSpans"][0]
RESOURCE["resource"]["attributes"] += [{"key": "process.command_args", "value": {"arrayValue": {"values": [{"stringValue": "node"}, {"stringValue": "a b"}]}}},
                                       {"key": "labels", "value": nested(tier="gold")}]
RESOURCE["scopeSpans"][0]["scope"] = {"name": "lib", "version": "1.2", "attributes": otlp.attributes(short="yes") + [{"key": "tags", "value": {"arrayValue": {"values": [{"intValue": 3}]}}}]}
LOGS = {"resourceLogs": [{"resource": RESOURCE["resource"], "scopeLogs": [{"scope": RESOURCE["scopeSpans"][0]["scope"], "logRecords": [
    {"timeUnixNano": "1700000000000000001", "severityNumber": 17, "severityText": "Error", "eventName": "login", "body": {"stringValue": "login"}, "traceId": "ab" * 16,
     "spanId": "cd" * 8, "flags": 1, "attributes": otlp.attributes(level="x") + [{"key": "m", "value": nested(a=1)}]}]}]}]}


class Sender(collector.Case):
    def forward(self, url, *options, listen="x-netlog://127.0.0.1:0", **more):
        output = f"{url}{'&' if '?' in url else '?'}spool={self.scratch}/spool"
        return self.serve("--log", self.scratch / "own.log", *options, output=output, listen=listen, **more)

    def own(self):
        path = self.scratch / "own.log"
        return path.read_text() if path.exists() else ""


class Receivers(Sender):
    def install(self):
        (self.scratch / "node_modules").symlink_to(otlp.node_modules(*PACKAGES))
        (self.scratch / "receiver.js").write_text(RECEIVER)
        self.received = self.scratch / "received"

    def receive(self, protocol, port=0):
        process = self.start("node", self.scratch / "receiver.js", protocol, str(port), self.received, self.scratch, stdout=subprocess.PIPE)
        return process, int(re.search(rb"port (\d+)", process.stdout.readline()).group(1))

    def items(self):
        spans, logs = [], []
        complete_lines = self.received.read_text().rpartition("\n")[0] if self.received.exists() else ""
        for line in complete_lines.splitlines():
            request = json.loads(line)
            for resource in request.get("resourceSpans", []):
                spans += [(resource["resource"], s) for scope in resource["scopeSpans"] for s in scope["spans"]]
            for resource in request.get("resourceLogs", []):
                logs += [(resource["resource"], r) for scope in resource["scopeLogs"] for r in scope["logRecords"]]
        return spans, logs

    def values(self, item):
        return {a["key"]: next(iter(a["value"].values())) for a in item.get("attributes", [])}

    def check_spans(self, protocol, scheme):
        self.received.unlink(missing_ok=True)
        receiver, port = self.receive(protocol)
        process = self.forward(f"{scheme}://127.0.0.1:{port}")
        ids = f" TRACE.ID={1:032x} SPAN.ID={2:016x}"
        events = [log(n, ids) for n in range(2, 1023)] + [f"DATE=20260101000000.000021 HOST=h PROG=shop LVL=Usage NL.EVNT=Nested.{side}{ids}\n" for side in ("start", "end")]
        excess = log(1024, ids) + log(1025, ids)
        link = f"DATE=20260101000000.000020 HOST=h PROG=shop LVL=Usage NL.EVNT=Work.link LINK.TRACE={7:032x} LINK.SPAN={8:016x} W=1{ids}\n"
        self.send((span(0, "start", 10, extra=" USER=u%26" + " SPAN.KIND=server") + span(1, "start", 20, 0) + link + "".join(events[:-1]) + log(1, f" TRACE.ID={1:032x}") +
                   log(3, ids).replace("HOST=h", "HOST=other")).encode())
        support.wait_until(lambda: self.items()[1], what="the log record arrives")
        self.assertEqual(self.items()[0], [])  # no span has ended
        self.send((events[-1] + excess).encode())
        support.wait_until(lambda: len(self.items()[1]) == 4, what="the records beyond the limit arrive")
        self.send((span(1, "end", 30, 0, " STATUS=2 STATUS.MESSAGE=full") + span(0, "end", 50, extra=" STATUS=0 ROWS=3") + span(5, "end", 9)).encode())
        support.wait_until(lambda: len(self.items()[0]) == 2 and len(self.items()[1]) == 6, what="all arrive")
        self.stop(process)
        spans, logs = self.items()
        found = {s["spanId"]: s for _, s in spans}
        root, child = found[f"{1:016x}"], found[f"{2:016x}"]
        begun = 1767225600 * 10 ** 9
        self.assertEqual([(s["traceId"], s.get("parentSpanId", ""), s["name"], s["kind"], int(s["startTimeUnixNano"]) - begun, int(s["endTimeUnixNano"]) - begun)
                          for s in (root, child)],
                         [(f"{1:032x}", "", "Work", 2, 10_000, 50_000), (f"{1:032x}", f"{1:016x}", "Work", 1, 20_000, 30_000)])
        self.assertEqual((child["status"]["code"], child["status"]["message"], root.get("status")), (2, "full", None))
        self.assertEqual(self.values(root), {"USER": "u%26", "ROWS": "3"})
        self.assertEqual(self.values(spans[0][0]), {"host.name": "h", "service.name": "shop"})
        self.assertEqual([(e["name"], self.values(e)) for e in child["events"]],
                         [("Low", {"netlogger.level": "Warn", "N": str(n)}) for n in range(2, 1023)] + [("Nested.start", {})])
        self.assertEqual([(x["traceId"], x["spanId"], self.values(x)) for x in child["links"]], [(f"{7:032x}", f"{8:016x}", {"W": "1"})])
        self.assertEqual(child["droppedEventsCount"], 3)
        first = [r for _, r in logs if self.values(r).get("N") == "1"][0]
        self.assertEqual((first["traceId"], first["eventName"], first["severityNumber"]), (f"{1:032x}", "Low", 13))
        self.assertEqual(sorted(r["eventName"] for _, r in logs), ["Low"] * 4 + ["Nested.end", "Work.end"])  # Work.end: without its start
        self.assertEqual({r["spanId"] for _, r in logs if self.values(r).get("N") in ("3", "1024", "1025")}, {f"{2:016x}"})
        receiver.kill()

    def test_spans_arrive_with_parents_and_times(self):
        self.install()
        for protocol, scheme in ("grpc", "otlp"), ("http", "otlp+http"):
            with self.subTest(protocol):
                self.check_spans(protocol, scheme)

    def test_what_arrived_from_a_sender_is_sent_on_unchanged(self):
        """Sends requests to the receiver directly, and through netlogd, and compares what the receiver gets."""
        self.install()
        receiver, port = self.receive("http")
        process = self.forward(f"otlp://127.0.0.1:{self.receive('grpc')[1]}", listen="otlp+http://127.0.0.1:0")
        for signal, request in ("traces", TRACES), ("logs", LOGS):
            with self.subTest(signal):
                self.received.unlink(missing_ok=True)
                for to in port, self.port:
                    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", to, timeout=30)) as connection:
                        connection.request("POST", f"/v1/{signal}", otlp.protobuf(signal, request), {"Content-Type": "application/x-protobuf"})
                        self.assertEqual(connection.getresponse().status, 200)
                support.wait_until(lambda: self.received.read_text().count("\n") == 2, what="both requests arrive")
                direct, through = [json.loads(line) for line in self.received.read_text().splitlines()]
                self.maxDiff = None
                self.assertEqual(through, direct)
        self.stop(process)

    def test_nothing_is_lost_when_netlogd_and_the_receiver_are_killed(self):
        self.install()
        receiver, port = self.receive("grpc")
        listen = f"otlp+http://127.0.0.1:{support.free_port()}"
        sent, choice = 0, random.Random(11)
        open_spans = []
        for kill in range(support.representative(8, 3)):
            process = self.forward(f"otlp://127.0.0.1:{port}", listen=listen)
            for piece in range(6):
                records = []
                for number in range(sent, sent + 50):
                    records += [{"timeUnixNano": str(number + 1), "eventName": "Low", "attributes": otlp.attributes(N=number)}, self.side(number, "start"),
                                {**self.side(number, "start"), "eventName": "Step"}]
                    open_spans.append(number)
                choice.shuffle(open_spans)
                while len(open_spans) > 40:
                    records.append(self.side(open_spans.pop(), "end"))
                self.store(records)
                sent += 50
                if piece == kill % 6:
                    receiver.kill()
                    receiver.wait()
                    receiver, _ = self.receive("grpc", port)
            process.kill() if kill % 2 == 0 else self.stop(process)
            process.wait()
        process = self.forward(f"otlp://127.0.0.1:{port}", listen=listen)
        self.store([self.side(number, "end") for number in open_spans])
        spans, logs = set(range(sent)), set(range(sent))

        def complete():
            found = self.items()
            return {int(s["spanId"], 16) - 1 for _, s in found[0]} == spans and {int(self.values(r)["N"]) for _, r in found[1] if r["eventName"] == "Low"} == logs
        support.wait_until(complete, what="all records arrive")
        for _, item in self.items()[0]:
            self.assertEqual(int(item["endTimeUnixNano"]) - int(item["startTimeUnixNano"]), 7)
            self.assertEqual([e["name"] for e in item["events"]], ["Step"])
        self.assertEqual([r for _, r in self.items()[1] if r["eventName"] != "Low"], [])
        self.stop(process)

    def side(self, number, side):
        return {"timeUnixNano": str(10 ** 9 + 10 * number + 7 * (side == "end")), "eventName": f"Work.{side}", "traceId": f"{number // 10 + 1:032x}",
                "spanId": f"{number + 1:016x}"}

    def store(self, records):
        """Sends log records to netlogd over HTTP. netlogd responds when they are in the spool."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request("POST", "/v1/logs", json.dumps(otlp.logs(records, service_name="shop")), {"Content-Type": "application/json"})
            self.assertEqual(connection.getresponse().status, 200)


class Faults(Sender):
    """A receiver over HTTP that answers with the statuses of a list, and then with 200."""

    def receive(self, *answers):
        test, left = self, list(answers)
        self.requests, self.encodings = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers, content = left.pop(0) if left else (200, {}, b"")
                test.requests.append((self.path, status, body))
                test.encodings.append(self.headers["Content-Encoding"])
                self.send_response(status)
                for name, value in {"Content-Length": len(content), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_port

    def statuses(self):
        return [status for _, status, _ in self.requests]

    def test_failures_are_retried(self):
        port = self.receive((503, {"Retry-After": 1}, b""), (404, {}, b""), (429, {}, b""), (502, {"Connection": "close"}, b""))
        process = self.forward(f"otlp+http://127.0.0.1:{port}")
        self.send(log(1).encode())
        support.wait_until(lambda: 200 in self.statuses(), what="the record is sent again")
        self.stop(process)
        self.assertEqual(self.statuses(), [503, 404, 429, 502, 200])
        self.assertEqual(len({body for _, _, body in self.requests}), 1)
        self.assertIn("the receiver responded 503", self.own())

    def test_large_requests_are_compressed_unless_the_receiver_rejects_them(self):
        port = self.receive((200, {}, b""), (415, {}, b""))
        process = self.forward(f"otlp+http://127.0.0.1:{port}")
        text = "".join(log(n, f" TEXT={'x' * 50}") for n in range(100)).encode()
        for count in 1, 3, 4:
            self.send(text)
            support.wait_until(lambda: len(self.requests) >= count, what="the request arrives")
        self.stop(process)
        self.assertEqual(self.encodings, ["gzip", "gzip", None, None])
        self.assertEqual(gzip.decompress(self.requests[0][2]), self.requests[3][2])
        self.assertLess(len(self.requests[0][2]), len(self.requests[3][2]) // 4)

    def test_rejected_records_are_reported_and_not_sent_again(self):
        partial = b"\x0a\x08\x08\x01\x12\x04late"
        port = self.receive((400, {}, b"\x12\x03bad"), (200, {}, partial))
        process = self.forward(f"otlp+http://127.0.0.1:{port}", "--control", f"unix:{self.scratch}/control")
        for number in 1, 2, 3:
            self.send(log(number).encode())
            support.wait_until(lambda: len(self.requests) == number, what="the request arrives")

        def rejected():
            result = self.run_program(support.program("netlogd/netlogctl"), "--control", self.scratch / "control", "--json", "status")
            return json.loads(result.stdout)["OUTPUTS"][0]["REJECTED"] == 2
        support.wait_until(rejected, what="the records are counted")
        self.stop(process)
        self.assertEqual(self.statuses(), [400, 200, 200])
        self.assertRegex(self.own(), "LVL=Warning NL.EVNT=Netlogd.OutputRejected OUTPUT=\\S+ RECORDS=1 REASON=bad")

    def test_open_spans_of_another_version_are_kept(self):
        url = f"otlp+http://127.0.0.1:{self.receive()}"
        process = self.forward(url)
        self.send((span(0, "start", 10) + log(1)).encode())
        support.wait_until(lambda: self.requests, what="the log record arrives")
        path, = support.wait_until(lambda: list(self.scratch.rglob("open-spans")), what="the file of open spans")
        self.stop(process)
        content = path.read_bytes().replace(b"open-spans 2", b"open-spans 1", 1)
        path.write_bytes(content)
        process = self.forward(url)
        self.send(log(2).encode())
        support.wait_until(lambda: len(self.requests) == 2, what="the second log record arrives")
        self.stop(process)
        kept, = path.parent.glob("open-spans.unread-*")
        self.assertEqual(kept.read_bytes(), content)
        self.assertIn(f"{path}: malformed or written by another version of netlogd, so netlogd sends the open spans without their "
                      f"starts; netlogd renamed the file to {kept}, which you can remove\n", self.said())

    def test_invalid_urls(self):
        for url, message in (("otlp://127.0.0.1", "missing option spool"), (f"otlp://127.0.0.1?spool={self.scratch}/s&format=ulm", "requires format=nlb"),
                             (f"otlp://127.0.0.1?spool={self.scratch}/s&ca=/nowhere", "/nowhere")):
            self.assertIn(message, self.fails("--output", url, status=2))


class Chain(Sender):
    """Into netlogd's own listener: gRPC with and without TLS."""

    def chain(self, options="", listen_options=""):
        end = self.scratch / "end.log"
        port = support.free_port()
        last = self.start(self.netlogd, "--foreground", "--listen", f"otlp://127.0.0.1:{port}{listen_options}", "--output", f"file:{end}?format=bp",
                          stderr=subprocess.DEVNULL)
        process = self.forward(f"otlp://127.0.0.1:{port}{options}")
        self.send((span(3, "start", 1, extra=" A=1") + log(7) + span(3, "end", 5, extra=" STATUS=0")).encode())
        support.wait_until(lambda: end.exists() and end.read_text().count("\n") == 3, what="all arrive")
        self.stop(process)
        self.stop(last)
        return end.read_text()

    def test_to_netlogd(self):
        text = self.chain()
        self.assertRegex(text, r"ts=2026-01-01T00:00:00\.000001Z event=Work\.start level=Info host=h prog=shop TRACE\.ID=0+1 SPAN\.ID=0+4 SPAN\.KIND=internal A=1\n")
        self.assertRegex(text, r"ts=2026-01-01T00:00:00\.000005Z event=Work\.end level=Info host=h prog=shop TRACE\.ID=0+1 SPAN\.ID=0+4 STATUS=0\n")
        self.assertIn("event=Low level=Warn host=h prog=shop N=7", text)

    def test_records_from_a_sender_stay_equal(self):
        """The records of the last collector equal those of the first."""
        files = [self.scratch / f"{n}.nlb" for n in (1, 2)]
        port, listen = support.free_port(), support.free_port()
        last = self.start(self.netlogd, "--foreground", "--listen", f"otlp://127.0.0.1:{port}", "--output", f"file:{files[1]}", stderr=subprocess.DEVNULL)
        process = self.forward(f"otlp://127.0.0.1:{port}", "--output", f"file:{files[0]}", listen=f"otlp+http://127.0.0.1:{listen}")
        for signal, request in ("traces", TRACES), ("logs", LOGS):
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", listen, timeout=30)) as connection:
                connection.request("POST", f"/v1/{signal}", json.dumps(request), {"Content-Type": "application/json"})
                self.assertEqual(connection.getresponse().status, 200)

        def records(path):
            return sorted(self.run_program(support.program("nltools/nlconv"), "--format", "json", path).stdout.splitlines()) if path.exists() else []
        support.wait_until(lambda: len(records(files[1])) == 12, what="all arrive")
        self.assertEqual(records(files[1]), records(files[0]))
        self.stop(process)
        self.stop(last)

    def test_over_tls(self):
        authority = collector.Authority(self, "ca")
        server, client = authority.certify("server"), authority.certify("client")
        text = self.chain(f"?ca={authority.ca}&cert={client}", f"?cert={server}&ca={authority.ca}")
        self.assertEqual(text.count("Work."), 2)


if __name__ == "__main__":
    support.main()
