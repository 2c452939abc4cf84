#!/usr/bin/env python3
"""OTLP: files, and netlogd's listeners for HTTP and gRPC, with hand-made requests and with the SDK of Node.js."""
import collections
import contextlib
import gzip
import http.client
import itertools
import json
import re
import socket
import ssl
import subprocess
import threading

import collector
import otlp
import support

try:
    import grpc
except ImportError:
    grpc = None

TRACES = otlp.traces([
    otlp.span(0, kind=2, traceState="a=b", attributes=[
        *otlp.attributes(text="two words", truth=True, number=-5, half=0.5),
        {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a\"b"}, {"boolValue": False}]}}},
        {"key": "map", "value": {"kvlistValue": {"values": [{"key": "inner", "value": {"intValue": 7}},
                                                            {"key": "deep", "value": {"kvlistValue": {"values": otlp.attributes(x=1.5)}}}]}}},
        {"key": "bytes", "value": {"bytesValue": "AQL/"}}],
        events=[{"timeUnixNano": "1700000000100000000", "name": "cache miss", "attributes": otlp.attributes(key="k")}],
        links=[{"traceId": "ab" * 16, "spanId": "cd" * 8}]),
    otlp.span(1, parentSpanId=f"{1:016x}", status={"code": 2, "message": "disk full"})], service_name="shop", host_name="node1", region="eu")
LOGS = otlp.logs([
    {"timeUnixNano": "1700000000000000001", "severityNumber": 17, "severityText": "oops", "body": {"stringValue": "failed"}},
    {"observedTimeUnixNano": "1700000000000000002", "severityNumber": 9, "eventName": "login", "traceId": "AB" * 16, "spanId": "cd" * 8,
     "body": {"kvlistValue": {"values": otlp.attributes(user="u1")}}}], service_name="shop")
METRICS = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [
    {"name": "temp", "unit": "C", "gauge": {"dataPoints": [{"timeUnixNano": "1700000000000000003", "asDouble": 21.5}]}},
    {"name": "hits", "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [
        {"startTimeUnixNano": "1600000000000000000", "timeUnixNano": "1700000000000000004", "asInt": "12", "attributes": otlp.attributes(path="/")}]}},
    {"name": "wait", "histogram": {"aggregationTemporality": 1, "dataPoints": [
        {"timeUnixNano": "1700000000000000005", "count": "4", "sum": 10, "bucketCounts": ["1", "3"], "explicitBounds": [2.5], "min": 1, "max": 4}]}}]}]}]}
REQUESTS = {"traces": TRACES, "logs": LOGS, "metrics": METRICS}


def read_json(data):
    return [json.loads(line) for line in data.splitlines()]


class Files(support.Case):
    def convert(self, data, *arguments, status=0):
        path = self.scratch / "input"
        path.write_bytes(data)
        result = self.run_program(support.program("nltools/nlconv"), "--format", "json", *arguments, path, text=False)
        self.assertEqual(result.returncode, status, result.stderr)
        return read_json(result.stdout)

    def test_a_request_gives_the_same_records_in_each_encoding(self):
        for name, request in REQUESTS.items():
            one_line, indented = (json.dumps(request, indent=indent).encode() for indent in (None, 2))
            body = otlp.protobuf(name, request)
            expected = self.convert(one_line)
            self.assertEqual(self.convert(indented + b"\n" + indented), expected * 2, name)
            self.assertEqual(self.convert(json.dumps(request, indent=0).encode()), expected, name)
            self.assertEqual(self.convert(len(body).to_bytes(4, "big") + body), expected, name)
            self.assertEqual(self.convert(one_line + b"\n" + one_line, "--from-format", "otlp"), expected * 2, name)

    def test_spans(self):
        start, link, event, end, other, failed = self.convert(json.dumps(TRACES).encode())
        ids = {"TRACE.ID": f"{1:032x}", "SPAN.ID": f"{1:016x}"}
        common = {"host": "node1", "prog": "shop", "level": "Info"}
        self.assertEqual(start, {"ts": "2023-11-14T22:13:20.000000Z", "event": "work.start", **common, "region": "eu", "otel.scope.name": "lib",
                                 **ids, "SPAN.KIND": "server", "TRACE.STATE": "a=b", "text": "two words", "truth": True, "number": -5,
                                 "half": 0.5, "otel.kinds": "list=array map=map map.deep=map", "list": '[1,"a\\"b",false]', "map.inner": 7, "map.deep.x": 1.5, "bytes": {"$bytes": "AQL/"}})
        self.assertEqual({k: link[k] for k in ("event", "LINK.TRACE", "LINK.SPAN")},
                         {"event": "work.link", "LINK.TRACE": "ab" * 16, "LINK.SPAN": "cd" * 8})
        self.assertEqual(event, {"ts": "2023-11-14T22:13:20.100000Z", "event": "cache miss", **common, **ids, "key": "k"})
        self.assertEqual(end, {"ts": "2023-11-14T22:13:20.500000Z", "event": "work.end", **common, **ids, "STATUS": 0})
        self.assertEqual(other["PARENT.ID"], f"{1:016x}")
        self.assertEqual([failed[k] for k in ("event", "level", "PARENT.ID", "STATUS", "STATUS.MESSAGE")],
                         ["work.end", "Error", f"{1:016x}", 2, "disk full"])

    def test_links_and_resources_are_exported(self):
        path = self.scratch / "input"
        path.write_text(json.dumps(TRACES))
        result = self.run_program(support.program("nltools/nlconv"), "-q", "--format", "otlp-spans", path, text=False)
        resource = [r for line in read_json(result.stdout) for r in line["resourceSpans"] if r["scopeSpans"][0]["spans"][0]["spanId"] == f"{1:016x}"][0]
        wanted, found = TRACES["resourceSpans"][0]["scopeSpans"][0]["spans"][0], resource["scopeSpans"][0]["spans"][0]
        self.assertEqual(resource["scopeSpans"][0]["scope"], {"name": "lib"})
        self.assertIn({"key": "region", "value": {"stringValue": "eu"}}, resource["resource"]["attributes"])
        self.assertEqual([{k: link[k] for k in ("traceId", "spanId")} for link in found["links"]], wanted["links"])
        self.assertEqual([e["name"] for e in found["events"]], ["cache miss"])
        keys = [a["key"] for a in found["attributes"]]
        self.assertEqual(keys, [a["key"] for a in wanted["attributes"]])
        value = found["attributes"][keys.index("map")]["value"]
        self.assertEqual(value["kvlistValue"]["values"][0], {"key": "inner", "value": {"intValue": "7"}})

    def test_logs_and_metrics(self):
        failed, login = self.convert(json.dumps(LOGS).encode())
        self.assertEqual([failed[k] for k in ("event", "level", "severity_text", "prog")], ["failed", "Error", "oops", "shop"])
        self.assertEqual([login[k] for k in ("event", "level", "body.user", "TRACE.ID", "SPAN.ID")], ["login", "Info", "u1", "ab" * 16, "cd" * 8])
        temp, hits, wait = self.convert(json.dumps(METRICS).encode())
        self.assertEqual([temp["event"], temp["VALUE"], temp["UNIT"]], ["temp", 21.5, "C"])
        self.assertEqual([hits[k] for k in ("VALUE", "TEMPORALITY", "MONOTONIC", "SINCE.NS", "path")],
                         [12, "cumulative", True, 1600000000000000000, "/"])
        self.assertEqual([wait[k] for k in ("COUNT", "SUM", "MEAN", "MIN", "MAX", "BUCKETS", "BOUNDS")], [4, 10.0, 2.5, 1.0, 4.0, "[1,3]", "[2.5]"])

    def test_damaged_items_and_requests_cost_only_themselves(self):
        spans = [otlp.span(0), {**otlp.span(1), "startTimeUnixNano": None}, {**otlp.span(2), "traceId": ""}, otlp.span(3)]
        found = self.convert(json.dumps(otlp.traces(spans)).encode(), status=1)
        self.assertEqual([r["SPAN.ID"] for r in found], [f"{n:016x}" for n in (1, 1, 4, 4)])
        good = json.dumps(otlp.traces([otlp.span(0)]), indent=1).encode()
        self.assertEqual(len(self.convert(good + b"\n" + good[:-30] + b"\n" + good, status=1)), 4)
        deep = {"stringValue": "x"}
        for _ in range(40):
            deep = {"arrayValue": {"values": [deep]}}
        body = otlp.protobuf("traces", otlp.traces([otlp.span(0, attributes=[{"key": "k", "value": deep}]), otlp.span(1)]))
        found = self.convert(len(body).to_bytes(4, "big") + body, status=1)
        self.assertEqual([r["SPAN.ID"] for r in found], [f"{2:016x}"] * 2)


    def test_times_of_0(self):
        times = [("0", "0"), ("0", "5"), ("0", None), ("7", "0"), ("7", "9")]  # starts and ends of spans; in JSON, an absent time differs from 0
        spans = [otlp.span(n, startTimeUnixNano=start, endTimeUnixNano=end, events=[{"timeUnixNano": start, "name": "e"}])
                 for n, (start, end) in enumerate(times)]
        events = [r["event"] for r in self.convert(json.dumps(otlp.traces(spans)).encode())]
        self.assertEqual(events, ["work.start", "e", "work.end"] * 2 + ["work.start", "e"] * 2 + ["work.start", "e", "work.end"])
        log = {"timeUnixNano": "0", "eventName": "a"}
        records = self.convert(json.dumps(otlp.logs([log, {**log, "observedTimeUnixNano": "1000"}, {"eventName": "b"}])).encode(), status=1)
        self.assertEqual([r["ts"] for r in records], ["1970-01-01T00:00:00.000000Z", "1970-01-01T00:00:00.000001Z"])
        body = otlp.protobuf("traces", otlp.traces([otlp.span(0, startTimeUnixNano="0"), otlp.span(1)]))
        self.assertEqual(len(self.convert(len(body).to_bytes(4, "big") + body, status=1)), 2, "in protobuf, 0 is the value of an absent time")

    def test_a_chrome_trace_from_time_0_is_read_back(self):
        chrome = [{"name": "all", "ph": "X", "ts": 0, "dur": 3, "pid": 1, "tid": 1}, {"name": "first", "ph": "X", "ts": 0, "dur": 0, "pid": 1, "tid": 1},
                  {"name": "last", "ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]
        path = self.scratch / "trace.json"
        path.write_text(json.dumps(chrome))
        result = self.run_program(support.program("nltools/nlconv"), "-q", "--format", "otlp-spans", path, text=False)
        spans = [s for line in read_json(result.stdout) for r in line["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]]
        self.assertIn("0", [s["startTimeUnixNano"] for s in spans])
        found = [r["event"] for r in self.convert(result.stdout)]
        for span in spans:
            self.assertIn(f"{span['name']}.start", found)
            self.assertIn(f"{span['name']}.end", found)


class Listener(collector.Case):
    def listen(self, *arguments, url="otlp+http://127.0.0.1:0", **options):
        options.setdefault("output", f"file:{self.output}?format=bp")
        return self.serve(*arguments, listen=url, **options)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def post(self, path="/v1/traces", body=b"", kind="application/x-protobuf", connection=None, method="POST", **headers):
        """Returns the status, the body and the headers of the response."""
        own = connection or self.connect()
        own.request(method, path, body, {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}})
        response = own.getresponse()
        result = response.status, response.read(), response.headers
        if connection is None:
            own.close()
        return result

    def events(self):
        return [line for line in self.written().decode(errors="replace").splitlines() if "event=" in line]


class Http(Listener):
    def test_each_encoding_and_compression_is_stored_before_the_response(self):
        process = self.listen()
        lines = trace = 0
        with contextlib.closing(self.connect()) as connection:
            for name, kind in itertools.product(REQUESTS, ("application/x-protobuf", "application/json; charset=utf-8")):
                count = {"traces": 6, "logs": 2, "metrics": 3}[name]
                for coding, pack in ("identity", bytes), ("gzip", gzip.compress), ("zstd", self.zstd):
                    trace += 1
                    request = json.loads(json.dumps(REQUESTS[name]).replace(f"{1:032x}", f"{trace + 100:032x}"))
                    packed = pack(json.dumps(request, indent=1).encode() if "json" in kind else otlp.protobuf(name, request))
                    status, answer, headers = self.post(f"/v1/{name}", packed, kind, connection, Content_Encoding=coding)
                    self.assertEqual((status, answer, headers["Content-Type"]), (200, b"{}" if "json" in kind else b"", kind.split(";")[0]))
                    lines += count
                    self.assertEqual(len(self.events()), lines, (name, kind, coding))
        metric = [line for line in self.events() if "event=temp" in line][0]
        self.assertIn(f"host={socket.gethostname()}", metric)
        self.stop(process)

    def zstd(self, data):
        return subprocess.run(["zstd", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout

    def test_chunks_continue_and_pipelining(self):
        self.listen()
        bodies = [otlp.protobuf("traces", otlp.traces([otlp.span(n)])) for n in range(6)]
        body = bodies[0]
        head = b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-protobuf\r\n"
        wholes = [head + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s, s.makefile("rb") as answers:
            s.sendall(head + b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
            self.assertEqual(answers.readline(), b"HTTP/1.1 100 Continue\r\n")
            answers.readline()
            s.sendall(body)
            self.read_response(answers)
            body = bodies[1]
            chunks = b"".join(b"%x;x=y\r\n" % len(part) + part + b"\r\n" for part in (body[:7], body[7:])) + b"0\r\nX: y\r\n\r\n"
            for byte in head + b"Transfer-Encoding: chunked\r\n\r\n" + chunks:
                s.sendall(bytes([byte]))
            self.read_response(answers)
            s.sendall(b"".join(wholes[2:5]))
            for _ in range(3):
                self.read_response(answers)
            s.sendall(wholes[5][:-5])
        self.assertEqual(len(self.events()), 10)

    def read_response(self, answers, status=b"200"):
        line = answers.readline()
        self.assertTrue(line.startswith(b"HTTP/1.1 " + status), line)
        length = 0
        while (line := answers.readline()).strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return answers.read(length)

    def test_permanent_errors(self):
        self.listen("--max-record-size", "64k")
        body = otlp.protobuf("traces", TRACES)
        bomb = gzip.compress(bytes(17 << 20))
        zstd_bomb = self.zstd(bytes(17 << 20))
        cases = [
            (400, {"body": b"\xff"}), (400, {"body": b"{", "kind": "application/json"}), (400, {"body": body[:-1]}),
            (400, {"body": b"not gzip", "Content_Encoding": "gzip"}), (400, {"body": gzip.compress(body)[:-9], "Content_Encoding": "gzip"}),
            (400, {"body": b"not zstd", "Content_Encoding": "zstd"}), (400, {"body": self.zstd(body)[:-5], "Content_Encoding": "zstd"}),
            (413, {"body": bomb, "Content_Encoding": "gzip"}), (413, {"body": zstd_bomb, "Content_Encoding": "zstd"}),
            (413, {"body": b"", "Content_Length": str(1 << 30)}), (415, {"kind": "text/plain"}), (415, {"Content_Encoding": "br"}),
            (404, {"path": "/v1/profiles"}), (405, {"method": "GET"}), (403, {"body": body, "Origin": "http://evil.example"}),
            (431, {"X": "x" * (20 << 10)}), (400, {"body": otlp.protobuf("traces", otlp.traces([otlp.span(0, attributes=otlp.attributes(a="x" * 70000))]))}),
        ]
        for status, request in cases:
            self.assertEqual(self.post(**request)[0], status, request)
        for line, status in (b"Content-Length: 5\r\nContent-Length: 6", b"400"), (b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"400"), \
                (b"Content-Length: -5", b"400"), (b"Transfer-Encoding: gzip", b"501"), (b"A: b", b"411"), (b"A : b", b"400"):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s, s.makefile("rb") as answers:
                s.sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Type: application/json\r\n" + line + b"\r\n\r\n")
                self.read_response(answers, status)
        code = self.post(body=b"{", kind="application/json")[1]
        self.assertEqual(json.loads(code)["code"], 3)
        status, answer, headers = self.post(path="/v1/trace", body=b"{}", kind="application/json")
        self.assertEqual((status, headers["Content-Type"], json.loads(answer)["message"]),
                         (404, "application/json", "unknown path; use /v1/traces, /v1/logs or /v1/metrics"))
        status, answer, _ = self.post("/v1/logs", json.dumps(TRACES).encode(), "application/json")
        self.assertEqual((status, json.loads(answer)["message"]), (400, "the path of the request is for another kind of data"))
        self.assertEqual(self.events(), [])

    def test_partial_success(self):
        self.listen()
        request = otlp.traces([otlp.span(0), {**otlp.span(1), "startTimeUnixNano": None}, otlp.span(2)])
        status, answer, _ = self.post(body=json.dumps(request).encode(), kind="application/json")
        self.assertEqual((status, json.loads(answer)), (200, {"partialSuccess": {"rejectedSpans": "1", "errorMessage": "missing time"}}))
        request = otlp.traces([otlp.span(3), {**otlp.span(4), "startTimeUnixNano": "0"}, otlp.span(5)])
        status, answer, _ = self.post(body=otlp.protobuf("traces", request))
        self.assertEqual((status, answer), (200, b"\x0a\x10\x08\x01\x12\x0cmissing time"))
        self.assertEqual(len(self.events()), 8)
        self.assertEqual(self.post(body=b"")[:2], (200, b""))

    def test_all_parts_of_a_compressed_body_are_read(self):
        self.listen()
        body = otlp.protobuf("traces", otlp.traces([otlp.span(n) for n in range(40)]))
        middle = body[:len(body) // 2], body[len(body) // 2:]
        for coding, pack in ("gzip", gzip.compress), ("zstd", self.zstd):
            self.assertEqual(self.post(body=b"".join(map(pack, middle)), Content_Encoding=coding)[:2], (200, b""))
            self.assertEqual(len(self.events()), 80)
            self.assertEqual(self.post(body=pack(body) + b"rubbish", Content_Encoding=coding)[0], 400)
        request = json.dumps(otlp.traces([otlp.span(50)])).encode()
        self.assertEqual(self.post(body=request + request, kind="application/json")[0], 400)
        self.assertEqual(self.post(body=request + b"\r\n ", kind="application/json")[0], 200)

    def test_a_rejected_span_can_be_sent_again(self):
        self.listen()
        number = {"key": "n", "value": {"doubleValue": "many"}}
        for wrong in {"startTimeUnixNano": None}, {"startTimeUnixNano": str(2**63)}, {"attributes": [number]}, {"events": [{"name": "e"}]}:
            request = otlp.traces([{**otlp.span(0), **wrong}])
            self.assertEqual(self.post(body=json.dumps(request).encode(), kind="application/json")[0], 400, wrong)
        self.assertEqual(self.post(body=otlp.protobuf("traces", otlp.traces([otlp.span(0)])))[0], 200)
        self.assertEqual(len(self.events()), 2, "a rejected span has no record")

    def test_attributes_of_a_resource_are_limited(self):
        self.listen(output="file:/dev/null")
        spans = [otlp.span(n, endTimeUnixNano=None) for n in range(1000)]
        body = gzip.compress(json.dumps(otlp.traces(spans, large="x" * 500000)).encode())
        status, answer, _ = self.post(body=body, kind="application/json", Content_Encoding="gzip")
        partial = json.loads(answer)["partialSuccess"]
        self.assertEqual((status, partial["errorMessage"]), (200, "the records of the request are too large"))
        self.assertEqual(int(partial["rejectedSpans"]), 1000 - (128 << 20) // 500000)  # 128 MiB of text are the limit

    def test_a_resource_is_at_most_as_large_as_a_record(self):
        self.listen()
        status, answer, _ = self.post(body=json.dumps(otlp.traces([otlp.span(0)], large="x" * (1 << 20))).encode(), kind="application/json")
        self.assertEqual((status, json.loads(answer)["message"]), (400, "a resource is longer than max-record-size"))

    def test_a_client_that_reads_no_responses_is_not_served(self):
        self.listen()
        request = b"POST /v1/logs HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            s.connect(("127.0.0.1", self.port))
            s.settimeout(1)
            sent = 0
            with self.assertRaises(TimeoutError):
                while sent < 64 << 20:
                    sent += s.send(request * 1000)
            s.settimeout(20)
            s.shutdown(socket.SHUT_WR)
            with s.makefile("rb") as answers:
                self.assertEqual(answers.read().count(b"HTTP/1.1 400"), (sent + len(request) - 1) // len(request))

    def test_limits_are_answered_with_a_time_to_retry(self):
        self.listen("--max-rate", "20")
        with contextlib.closing(self.connect()) as client:
            def send(first):
                body = otlp.protobuf("traces", otlp.traces([otlp.span(n) for n in range(first, first + 15)]))
                return self.post(body=body, connection=client)
            self.assertEqual(send(0)[0], 200)
            status, _, headers = send(20)
            self.assertEqual((status, headers["Retry-After"]), (429, "1"))
            support.wait_until(lambda: send(20)[0] == 200, what="the allowance has grown")
        self.assertEqual(len(self.events()), 60)

    def test_spans_that_are_sent_again_are_stored_once(self):
        self.listen()
        for first, last in (0, 10), (0, 10), (5, 15), (0, 15):
            request = otlp.traces([otlp.span(n) for n in range(first, last)] * 2)
            self.assertEqual(self.post(body=otlp.protobuf("traces", request))[:2], (200, b""))
            self.assertEqual(self.post(body=json.dumps(request).encode(), kind="application/json")[:2], (200, b"{}"))
        self.assertEqual(len(self.events()), 30)

    def test_memory_for_known_spans_is_limited(self):
        for restarts in False, True:
            self.output.unlink(missing_ok=True)
            for file in self.scratch.glob("*.spans*"):
                file.unlink()
            process = self.listen("--max-memory", "1m")  # the table then has space for 10485 spans
            for first in range(0, 30000, 1000):
                request = otlp.traces([otlp.span(n) for n in range(first, first + 1000)])
                self.assertEqual(self.post(body=otlp.protobuf("traces", request))[0], 200)
            if restarts:
                process.kill()
                process.wait()
                self.listen("--max-memory", "1m")
            for number, stored in (29999, 60000), (15000, 60000), (0, 60002):
                self.assertEqual(self.post(body=otlp.protobuf("traces", otlp.traces([otlp.span(number)])))[0], 200)
                self.assertEqual(len(self.events()), stored, number)

    def test_spans_that_are_sent_again_after_a_kill_are_stored_once(self):
        bodies = [otlp.protobuf("traces", otlp.traces([otlp.span(n) for n in range(first, first + 50)])) for first in range(0, 3000, 50)]
        confirmed, port = 0, 0
        for kill in range(6):
            process = self.listen(url=f"otlp+http://127.0.0.1:{port}")
            port = self.port
            end = threading.Timer(0.05 + 0.03 * kill, process.kill)
            end.start()
            with contextlib.closing(self.connect()) as connection, contextlib.suppress(OSError, http.client.HTTPException):
                for body in bodies[:confirmed]:  # sends the confirmed requests again
                    self.assertEqual(self.post(body=body, connection=connection)[0], 200)
                while confirmed < 10 * (kill + 1) and self.post(body=bodies[confirmed], connection=connection)[0] == 200:
                    confirmed += 1
            end.join()
            process.wait()
        self.assertGreater(confirmed, 10)
        with open(next(self.scratch.glob("*.spans")), "ab") as file:
            file.write(b"torn")  # as a kill within a write leaves it
        process = self.listen(url=f"otlp+http://127.0.0.1:{port}")
        for body in bodies[:confirmed] * 2:
            self.assertEqual(self.post(body=body)[0], 200)
        self.stop(process)
        found = re.findall(r"event=work.start .*SPAN.ID=(\w+)", self.written().decode())
        counts = collections.Counter(int(n, 16) - 1 for n in found)
        self.assertEqual({n: counts[n] for n in range(50 * confirmed)}, {n: 1 for n in range(50 * confirmed)})

    def test_no_confirmed_item_is_lost_when_netlogd_is_killed(self):
        confirmed = []
        port = 0
        for kill in range(6):
            process = self.listen(url=f"otlp+http://127.0.0.1:{port}")
            port = self.port
            end = threading.Timer(0.1 + 0.07 * kill, process.kill)
            end.start()
            with contextlib.closing(self.connect()) as connection, contextlib.suppress(OSError, http.client.HTTPException):
                while True:
                    numbers = range(len(confirmed), len(confirmed) + 20)
                    if self.post(body=otlp.protobuf("traces", otlp.traces([otlp.span(n) for n in numbers])), connection=connection)[0] == 200:
                        confirmed += numbers
            end.join()
            process.wait()
        self.assertGreater(len(confirmed), 100)
        self.stop(self.listen(url=f"otlp+http://127.0.0.1:{port}"))
        found = set(re.findall(r"event=(\S+) .*SPAN.ID=(\w+)", self.written().decode()))
        for number in confirmed:
            self.assertLessEqual({("work.start", f"{number + 1:016x}"), ("work.end", f"{number + 1:016x}")}, found)

    def test_memory_is_limited(self):
        self.listen("--max-memory", "1m")
        status, _, headers = self.post(body=bytes(2 << 20))
        self.assertEqual((status, headers["Retry-After"]), (503, "1"))
        self.assertEqual(self.post(body=otlp.protobuf("traces", TRACES))[0], 200)

    def test_a_blocked_output_makes_clients_retry(self):
        process = self.listen(output="/dev/full")
        body = otlp.protobuf("traces", TRACES)
        with contextlib.closing(self.connect()) as first:
            first.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
            support.wait_until(lambda: "clients wait until netlogd can write to the output" in self.said(), what="the output is blocked")
            status, _, headers = self.post(body=body)
            self.assertEqual((status, headers["Retry-After"]), (503, "1"))
            process.kill()
            with self.assertRaises((OSError, http.client.HTTPException)):
                first.getresponse()  # never confirmed

    def test_tls_and_certificates(self):
        own, other = collector.Authority(self, "own"), collector.Authority(self, "other")
        server = own.certify("server")
        self.listen(url=f"otlp+http://127.0.0.1:0?cert={server}&ca={own.ca}&certified_hosts=yes")
        named = otlp.traces([otlp.span(0)], host_name="localhost")
        foreign = otlp.traces([otlp.span(1)], host_name="elsewhere")

        def post(pem, request):
            context = ssl.create_default_context(cafile=own.ca)
            if pem:
                context.load_cert_chain(pem)
            with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=20)) as connection:
                return self.post(body=otlp.protobuf("traces", request), connection=connection)[0]
        self.assertEqual(post(own.certify("client"), named), 200)
        self.assertEqual(post(own.certify("client2"), foreign), 400)
        for pem in None, other.certify("client"):
            with self.assertRaises(OSError):
                post(pem, named)
        with self.assertRaises((OSError, http.client.HTTPException)):
            self.post(body=otlp.protobuf("traces", named))
        self.assertEqual(len(self.events()), 2)

    def test_slow_clients_are_closed(self):
        self.listen("--record-timeout", "1", "--handshake-timeout", "1")
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
            s.sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Le")
            self.assertEqual(s.recv(10), b"")


class Grpc(Listener):
    def setUp(self):
        super().setUp()
        if grpc is None:
            self.skipTest("grpc for Python is not installed")

    def listen(self, *arguments, url="otlp://127.0.0.1:0", **options):
        return super().listen(*arguments, url=url, **options)

    def channel(self, credentials=None):
        channel = grpc.secure_channel(f"localhost:{self.port}", credentials) if credentials else grpc.insecure_channel(f"127.0.0.1:{self.port}")
        self.addCleanup(channel.close)
        return channel

    def method(self, channel, signal="traces", path=None):
        name = {"traces": "trace"}.get(signal, signal)
        path = path or f"/opentelemetry.proto.collector.{name}.v1.{name.capitalize() if name != 'traces' else 'Trace'}Service/Export"
        return channel.unary_unary(path)  # requests and responses are bytes

    def code(self, body, channel=None, compression=None, **method):
        """Returns the status of a request, and the error."""
        try:
            self.method(channel or self.channel(), **method)(body, timeout=20, compression=compression)
        except grpc.RpcError as error:
            return error.code().name, error
        return "OK", None

    def spans(self, *numbers, **resource):
        return otlp.protobuf("traces", otlp.traces([otlp.span(n) for n in numbers], **resource))

    def test_each_signal_and_compression_is_stored_before_the_response(self):
        process = self.listen()
        lines = trace = 0
        channel = self.channel()
        for name, compression in itertools.product(REQUESTS, (None, grpc.Compression.Gzip)):
            trace += 1
            lines += {"traces": 6, "logs": 2, "metrics": 3}[name]
            request = json.loads(json.dumps(REQUESTS[name]).replace(f"{1:032x}", f"{trace + 100:032x}"))
            self.assertEqual(self.method(channel, name)(otlp.protobuf(name, request), timeout=20, compression=compression), b"")
            self.assertEqual(len(self.events()), lines, (name, compression))
        request = otlp.traces([otlp.span(3), {**otlp.span(4), "startTimeUnixNano": "0"}, otlp.span(5)])
        self.assertEqual(self.method(channel)(otlp.protobuf("traces", request), timeout=20), b"\x0a\x10\x08\x01\x12\x0cmissing time")
        self.assertEqual(self.method(channel)(b"", timeout=20), b"")
        self.stop(process)

    def test_concurrent_requests_and_large_requests(self):
        self.listen()
        send = self.method(self.channel())
        calls = [send.future(self.spans(n % 250), timeout=60) for n in range(500)]  # each span twice
        calls += [send.future(self.spans(n, large="x" * 900000), timeout=60) for n in range(1000, 1008)]
        large = [otlp.span(n, attributes=otlp.attributes(a="x" * 200000)) for n in range(2000, 2020)]
        calls.append(send.future(otlp.protobuf("traces", otlp.traces(large)), timeout=60))
        self.assertEqual({call.result() for call in calls}, {b""})
        self.assertEqual(len(self.events()), 2 * (250 + 8 + 20))

    def test_permanent_errors(self):
        self.listen()
        gzip_ = grpc.Compression.Gzip
        for code, body, options in (("INVALID_ARGUMENT", b"\xff", {}), ("INVALID_ARGUMENT", otlp.protobuf("traces", TRACES)[:-1], {}),
                                    ("RESOURCE_EXHAUSTED", bytes(17 << 20), {}), ("RESOURCE_EXHAUSTED", bytes(17 << 20), {"compression": gzip_}),
                                    ("UNIMPLEMENTED", b"", {"compression": grpc.Compression.Deflate}), ("UNIMPLEMENTED", b"", {"path": "/a.B/Export"})):
            found, error = self.code(body, **options)
            self.assertEqual(found, code, options)
            self.assertNotIn("grpc-status-details-bin", dict(error.trailing_metadata()))
        self.assertEqual(error.details(), "netlogd implements Export of TraceService, LogsService and MetricsService")
        self.assertEqual((self.code(self.spans(0))[0], len(self.events())), ("OK", 2))

    def test_limits_are_answered_with_a_time_to_retry(self):
        self.listen("--max-rate", "20", "--max-memory", "1m")
        retry = b"\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x04\x0a\x02\x08\x01"
        channel = self.channel()
        self.assertEqual(self.code(self.spans(*range(15)), channel)[0], "OK")
        for body, message in (self.spans(*range(20, 30)), b"more records than max-rate allows"), (bytes(2 << 20), b"clients use too much memory"):
            code, error = self.code(body, channel)
            details = dict(error.trailing_metadata())["grpc-status-details-bin"]
            self.assertEqual((code, details), ("UNAVAILABLE", b"\x08\x0e\x12" + bytes([len(message)]) + message + b"\x1a" + bytes([len(retry)]) + retry))
        support.wait_until(lambda: self.code(self.spans(*range(20, 30)), channel)[0] == "OK", what="the allowance has grown")
        self.assertEqual(len(self.events()), 50)

    def test_no_confirmed_item_is_lost_when_netlogd_is_killed(self):
        confirmed = []
        port = 0
        for kill in range(4):
            process = self.listen(url=f"otlp://127.0.0.1:{port}")
            port = self.port
            end = threading.Timer(0.2 + 0.07 * kill, process.kill)
            end.start()
            send = self.method(self.channel())
            with contextlib.suppress(grpc.RpcError):
                while True:
                    first = confirmed[-1] + 1 if confirmed else 0
                    calls = [(n, send.future(self.spans(*range(n, n + 20)), timeout=20)) for n in range(first, first + 200, 20)]
                    for n, call in calls:
                        call.result()
                        confirmed += range(n, n + 20)
            end.join()
            process.wait()
        self.assertGreater(len(confirmed), 100)
        self.stop(self.listen(url=f"otlp://127.0.0.1:{port}"))
        found = set(re.findall(r"event=(\S+) .*SPAN.ID=(\w+)", self.written().decode()))
        for number in confirmed:
            self.assertLessEqual({("work.start", f"{number + 1:016x}"), ("work.end", f"{number + 1:016x}")}, found)

    def test_tls_and_certificates(self):
        own, other = collector.Authority(self, "own"), collector.Authority(self, "other")
        self.listen(url=f"otlp://127.0.0.1:0?cert={own.certify('server')}&ca={own.ca}&certified_hosts=yes")
        ca = own.ca.read_bytes()

        def code(pem, host, number):
            pem = pem and pem.read_bytes()
            return self.code(self.spans(number, host_name=host), self.channel(grpc.ssl_channel_credentials(ca, pem, pem)))[0]
        self.assertEqual(code(own.certify("client"), "localhost", 0), "OK")
        self.assertEqual(code(own.certify("client2"), "elsewhere", 1), "INVALID_ARGUMENT")
        self.assertEqual([code(pem, "localhost", 2) for pem in (None, other.certify("client"))], ["UNAVAILABLE"] * 2)
        self.assertEqual(self.code(self.spans(3))[0], "UNAVAILABLE")
        self.assertEqual(len(self.events()), 2)

    PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

    def frame(self, kind, payload=b"", flags=0, stream=0):
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def headers(self, stream, flags=4, **more):
        """A HEADERS frame of a request to an unknown path, in literals without Huffman coding (RFC 7541, section 6.2.2)."""
        fields = {":method": "POST", ":scheme": "http", ":path": "/x", "content-type": "application/grpc", **more}
        block = b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in fields.items())
        return self.frame(1, block, flags, stream)

    def exchange(self, *frames, until=None):
        """Sends frames on a new connection, and returns the (type, flags, stream, payload) of the frames that netlogd sends until its end."""
        found = []
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s, s.makefile("rb") as answers:
            with contextlib.suppress(ConnectionError):
                s.sendall(b"".join(frames))
            with contextlib.suppress(ConnectionError):
                while len(head := answers.read(9)) == 9:
                    found.append((head[3], head[4], int.from_bytes(head[5:], "big"), answers.read(int.from_bytes(head[:3], "big"))))
                    if until and until(found[-1]):
                        break
        return found

    def test_pings_are_answered_while_requests_wait(self):
        """The output cannot be written. netlogd answers PING, and lets the client send no more than the windows allow."""
        process = self.listen(output="/dev/full")
        body = self.spans(0)
        path = {":path": "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "host": "h"}
        call = self.headers(1, **path) + self.frame(0, b"\0" + len(body).to_bytes(4, "big") + body, 1, 1)
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s, s.makefile("rb") as answers:
            def answer(kind):
                while (head := answers.read(9))[3] != kind:
                    answers.read(int.from_bytes(head[:3], "big"))
                return head[4], answers.read(int.from_bytes(head[:3], "big"))
            s.sendall(self.PREFACE + self.frame(4) + call)
            support.wait_until(lambda: "clients wait until netlogd can write to the output" in self.said(), what="the output is blocked")
            for number in range(3):
                ping = number.to_bytes(8, "big")
                s.sendall(self.frame(6, ping))
                self.assertEqual(answer(6), (1, ping))
            s.sendall(self.headers(3, **path) + b"".join(self.frame(0, b"\0\0\xff\xff\xff" + bytes(10000), 0, 3) for _ in range(110)))
            self.assertEqual(answer(3)[1], (3).to_bytes(4, "big"), "more than the stream's window is a FLOW_CONTROL_ERROR")
            process.kill()

    def test_frames(self):
        self.listen("--record-timeout", "1")
        settings = self.frame(4)
        found = self.exchange(self.PREFACE, settings, self.frame(6, b"12345678"), until=lambda frame: frame[0] == 6)
        self.assertEqual(found[-1], (6, 1, 0, b"12345678"), "a ping is answered")
        self.assertEqual(self.exchange(b"GET / HTTP/1.1\r\n\r\n" + bytes(40))[-1][0], 7, "another protocol is answered with GOAWAY")
        many = b"".join(self.headers(2 * n + 1) for n in range(300))
        found = self.exchange(self.PREFACE, settings, many)
        self.assertEqual([f[3] for f in found if f[0] == 3].count((7).to_bytes(4, "big")), 200, "100 streams are open at once, and the others are refused")
        large = {f"h{n}": "x" * 120 for n in range(120)}
        found = self.exchange(self.PREFACE, settings, self.headers(1, **large), until=lambda frame: frame[0] == 3)
        self.assertEqual((found[-1][2], [f for f in found if f[0] == 1]), (1, []), "a stream with large headers is reset")
        flood = b"".join(self.headers(2 * n + 1, 0x4) + self.frame(3, bytes(4), 0, 2 * n + 1) for n in range(5000))
        self.assertIn(7, [f[0] for f in self.exchange(self.PREFACE, settings, flood)], "a client that resets many streams is disconnected")
        self.assertEqual((self.code(self.spans(0))[0], len(self.events())), ("OK", 2))

    def test_slow_clients_are_closed(self):
        self.listen("--record-timeout", "1")
        for frames in [], [self.PREFACE, self.frame(4)], [self.PREFACE, self.frame(4), self.headers(1, 0)]:
            self.exchange(*frames)  # returns when netlogd has closed the connection


PACKAGES = {"api": "1.9.1", "instrumentation-http": "0.223.0", "sdk-trace-node": "2.12.0", "exporter-trace-otlp-proto": "0.223.0",
            "exporter-trace-otlp-http": "0.223.0", "sdk-logs": "0.223.0", "exporter-logs-otlp-proto": "0.223.0", "sdk-metrics": "2.12.0",
            "exporter-metrics-otlp-proto": "0.223.0", "exporter-logs-otlp-http": "0.223.0",
            "exporter-metrics-otlp-http": "0.223.0", "exporter-trace-otlp-grpc": "0.223.0", "exporter-logs-otlp-grpc": "0.223.0",
            "exporter-metrics-otlp-grpc": "0.223.0"}
# Sends spans of an HTTP server and of its client, a log record and metrics.
PROGRAM = r"""
"use strict";
const [endpoint, protocol, count] = process.argv.slice(2);
const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { HttpInstrumentation } = require("@opentelemetry/instrumentation-http");
const { registerInstrumentations } = require("@opentelemetry/instrumentation");
const { OTLPTraceExporter } = require(`@opentelemetry/exporter-trace-otlp-${protocol}`);
const { LoggerProvider, SimpleLogRecordProcessor } = require("@opentelemetry/sdk-logs");
const { OTLPLogExporter } = require(`@opentelemetry/exporter-logs-otlp-${protocol}`);
const { MeterProvider, PeriodicExportingMetricReader } = require("@opentelemetry/sdk-metrics");
const { OTLPMetricExporter } = require(`@opentelemetry/exporter-metrics-otlp-${protocol}`);
const { resourceFromAttributes } = require("@opentelemetry/resources");

const url = (signal) => protocol === "grpc" ? endpoint : `${endpoint}/v1/${signal}`;
const resource = resourceFromAttributes({ "service.name": "shop" });
const traces = new NodeTracerProvider({ resource,
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: url("traces"), compression: "gzip" }))] });
traces.register();
registerInstrumentations({ tracerProvider: traces, instrumentations: [new HttpInstrumentation()] });
const logs = new LoggerProvider({ resource, processors: [new SimpleLogRecordProcessor({ exporter: new OTLPLogExporter({ url: url("logs") }) })] });
const metrics = new MeterProvider({ resource,
  readers: [new PeriodicExportingMetricReader({ exporter: new OTLPMetricExporter({ url: url("metrics") }) })] });
const http = require("http");
const orders = metrics.getMeter("shop").createHistogram("orders");

const server = http.createServer((request, response) => response.end("ok"));
server.listen(0, "127.0.0.1", async () => {
  for (let i = 0; i < Number(count); i++) {
    await new Promise((done) => http.get({ port: server.address().port, path: `/order/${i}` }, (r) => r.resume().on("end", done)));
    orders.record(i);
  }
  logs.getLogger("shop").emit({ severityNumber: 13, severityText: "careful", body: "low stock", attributes: { items: ["a", 1], left: 3 } });
  server.close();
  await Promise.all([traces.forceFlush(), logs.forceFlush(), metrics.forceFlush()]);
  await Promise.all([traces.shutdown(), logs.shutdown(), metrics.shutdown()]);
});
"""


class Sdk(Listener):
    def install(self):
        modules = otlp.node_modules(*(f"@opentelemetry/{name}@{version}" for name, version in PACKAGES.items()))
        (self.scratch / "node_modules").symlink_to(modules)
        (self.scratch / "app.js").write_text(PROGRAM)

    def test_node(self):
        self.install()
        for protocol in "proto", "http", "grpc":  # protobuf, JSON, and protobuf over gRPC
            self.output.unlink(missing_ok=True)
            process = self.listen(url="otlp://127.0.0.1:0" if protocol == "grpc" else "otlp+http://127.0.0.1:0")
            result = self.run_program("node", self.scratch / "app.js", f"http://127.0.0.1:{self.port}", protocol, "5", timeout=60)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.stop(process)
            records = [dict(re.findall(r'(\S+?)=("(?:[^"\\]|\\.)*"|\S+)', line)) for line in self.events()]
            starts = {r["SPAN.ID"]: r for r in records if r["event"] == "GET.start"}
            ends = {r["SPAN.ID"] for r in records if r["event"] == "GET.end"}
            self.assertEqual((len(starts), set(starts)), (10, ends))
            servers = [r for r in starts.values() if r["SPAN.KIND"] == "server"]
            self.assertEqual(len(servers), 5)
            for server in servers:
                client = starts[server["PARENT.ID"]]
                self.assertEqual((client["SPAN.KIND"], client["TRACE.ID"], client["prog"]), ("client", server["TRACE.ID"], "shop"))
            log, = [r for r in records if r["event"] == '"low stock"']
            self.assertEqual([log["level"], log["left"], log["severity_text"]], ["Warn", "3", "careful"])
            self.assertEqual({r["COUNT"] for r in records if r["event"] == "orders"}, {"5"})


if __name__ == "__main__":
    support.main()
