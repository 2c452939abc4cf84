"""nlv --serve: the HTTP server, with valid and hostile requests, and the page in a headless Chromium with real input events."""
import atexit
import functools
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

import nlv_window
import support


class ServeCase(support.Case):
    SLOW, FAILED = {1234, 2345}, {1999}

    def setUp(self):
        super().setUp()
        self.nlv = support.program("nlv/nlv")
        self.log = self.scratch / "a.log"
        self.log.write_text(nlv_window.branching_requests(3000, self.SLOW, self.FAILED))
        self.environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}

    def serve(self, *arguments):
        self.process = self.start(self.nlv, "--serve=http://127.0.0.1:0", *arguments, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.token = parts.port, parts.fragment.removeprefix("token=")

    def get(self, path, method="GET", token=True, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        if token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, body

    def get_document(self, path):
        response, body = self.get(path)
        self.assertEqual(response.status, 200, body)
        return json.loads(body)

    def wait_for_requests(self):
        support.wait_until(lambda: self.get_document("/state")["requests"] == 3000, what="all requests")


class Server(ServeCase):
    def test_failures_name_the_remedy(self):
        log = self.scratch / "a.log"
        log.write_text("DATE=20260101120000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=A\n")
        taken = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(taken.close)
        port = taken.getsockname()[1]
        result = self.run_program(support.program("nlv/nlv"), f"--serve=http://127.0.0.1:{port}", log)
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"nlv: listen on 127.0.0.1 port {port}: Address already in use; choose another port: --serve=http://127.0.0.1:PORT\n"))
        hidden = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        result = self.run_program(support.program("nlv/nlv"), log, env=hidden)
        self.assertEqual(result.returncode, 1)
        self.assertIn("nlv: cannot open a display; use --serve to draw in a browser, or --render FILE to draw a picture\n", result.stderr)

    def test_views_need_the_token_the_host_and_the_origin(self):
        self.serve(self.log)
        page, body = self.get("/", token=False)
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertNotIn(self.token.encode(), body)
        self.assertEqual(self.get("/state", token=False)[0].status, 401)
        for wrong in "", "Bearer ", f"Bearer {self.token[:-1]}", f"Bearer {self.token}0", f"Bearer {'0' * 32}", self.token:
            self.assertEqual(self.get("/state", token=False, Authorization=wrong)[0].status, 401, wrong)
        self.assertEqual(self.get("/state", Host="attacker.example")[0].status, 421)
        self.assertEqual(self.get("/state", Origin="http://attacker.example")[0].status, 403)
        self.assertEqual(self.get("/state", method="POST")[0].status, 405)
        response, _ = self.get("/state")
        self.assertEqual(response.status, 200)
        self.assertIsNone(response.headers["Access-Control-Allow-Origin"])

    def test_the_views_of_a_log(self):
        self.serve(self.log)
        self.wait_for_requests()
        slowest = self.get_document("/requests?sort=duration&descending=yes&rows=2")
        self.assertEqual({row["name"] for row in slowest["rows"]}, {"r1234", "r2345"})
        self.assertEqual({row["slowest"] for row in slowest["rows"]}, {"Query"})
        self.assertEqual(self.get_document("/requests?text=failed")["found"], 1)
        self.assertEqual(self.get_document("/requests?errors=yes")["found"], 1)
        support.wait_until(lambda: self.get_document("/state")["found"] == 1, what="the end of the search for requests")
        response, body = self.get("/picture?width=1600&height=900")
        place = json.loads(response.headers["X-Place"])
        self.assertTrue(body.startswith(b"\x89PNG"))
        self.assertLess(len(body), 1 << 20)
        self.assertTrue(place["heat"])
        row = slowest["rows"][0]
        response, body = self.get(f"/waterfall?step={row['step']}&place={row['place']}&lifeline=0&width=600&height=200")
        self.assertTrue(body.startswith(b"\x89PNG"))
        self.assertGreater(json.loads(response.headers["X-Place"])["height"], 80)
        text = self.get_document(f"/span?step={row['step']}&place={row['place']}&lifeline=0&y=60")["text"]
        self.assertIn("on the critical path", text)

    def ask_for(self, row, path):
        return f"/{path}?step={row['step']}&place={row['place']}&lifeline={row['lifeline']}&width=600&height=200"

    def test_single_records_with_durations_are_requests(self):
        """A web server's access log: no field identifies requests, but each record has a duration."""
        log = self.scratch / "access.json"
        durations = {40: 2.5, 170: 1.25}
        log.write_text("".join(json.dumps({
            "time": f"2026-01-01T12:{i // 60:02}:{i % 60:02}.500Z", "host": "web1", "event": "request", "method": "GET",
            "uri": f"/page/{i}", "status": 502 if i == 99 else 200, "request_time": durations.get(i, 0.01 + i % 7 / 1000)}) + "\n"
            for i in range(300)))
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["requests"] == 300, what="all requests")
        slow = self.get_document("/requests?sort=duration&descending=yes&rows=2")["rows"]
        self.assertEqual([(row["name"], row["durationText"], row["slowest"], row["error"]) for row in slow],
                         [("GET /page/40", "2.5 s", "request", ""), ("GET /page/170", "1.25 s", "request", "")])
        self.assertEqual(slow[0]["startText"], "2026-01-01T12:00:38.000000Z")
        failed = self.get_document("/requests?errors=yes")["rows"]
        self.assertEqual([(row["name"], row["error"]) for row in failed], [("GET /page/99", "failed")])
        self.assertTrue(json.loads(self.get("/picture?width=1600&height=900")[0].headers["X-Place"])["heat"])
        self.assertIn("request, web1: 2.5 s", self.get_document(self.ask_for(slow[0], "span") + "&y=30")["text"])
        at = f"/find?width=1000&height=600&from={slow[0]['start']}&to={int(slow[0]['start']) + 2500000000}"
        found = [self.get_document(f"{at}&x=500&y={y}") for y in range(0, 600, 4)]
        self.assertIn(slow[0]["step"], [place.get("step") for place in found if place.get("lifeline") == slow[0]["lifeline"]],
                      "a click on the bar selects the request")
        self.process.send_signal(signal.SIGINT)
        self.process.wait(10)
        self.serve("--where", "request.duration > 1s", log)
        support.wait_until(lambda: self.get_document("/state")["records"] == 2, what="the records of the filter")

    def test_durations_in_nanoseconds(self):
        """A later duration shows that the durations are in nanoseconds. This also applies to the first requests."""
        self.log.write_text("".join(json.dumps({"time": f"2026-01-01T12:00:{i:02}Z", "host": "web", "duration": 40000 if i < 20 else 400000000}) + "\n"
                                    for i in range(60)))
        self.serve(self.log)
        support.wait_until(lambda: (state := self.get_document("/state"))["requests"] == 60 and state["found"] == 1, what="all requests")
        for descending, duration in ("yes", "400 ms"), ("no", "40 µs"):
            rows = self.get_document(f"/requests?sort=duration&descending={descending}&rows=1")["rows"]
            self.assertEqual(rows[0]["durationText"], duration)
        rows = self.get_document("/requests?sort=start&descending=yes&clock=relative&rows=1")["rows"]
        self.assertEqual(rows[0]["startText"], "+0:00:58.6", "59 s - 0.4 s")

    def test_spans_of_threads_are_requests(self):
        """In a trace of Chrome, spans of a thread are nested; spans of another thread are not part of the request."""
        log, events = self.scratch / "trace.json", []
        for i in range(20):
            length = 90000 if i == 11 else 1000
            for name, thread, begin, end in [("Frame", 1, 0, length), ("Layout", 1, length // 10, length // 2),
                                             ("Paint", 1, length // 2, length), ("Io", 2, length // 10, length // 3)]:
                events.append({"name": name, "ph": "X", "ts": i * 100000 + begin, "dur": end - begin, "pid": 1, "tid": thread})
        log.write_text(json.dumps({"traceEvents": events}) + "\n")
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["requests"] == 40, what="the frames and the I/O")
        row = self.get_document("/requests?sort=duration&descending=yes&rows=1")["rows"][0]
        self.assertEqual((row["durationText"], row["slowest"]), ("90 ms", "Paint"))
        spans = [self.get_document(self.ask_for(row, "span") + f"&y={y}")["text"] for y in range(0, 140, 4)]
        self.assertEqual([name for name in ["Frame", "Layout", "Paint", "Io"] if any(text.startswith(name + ",") for text in spans)],
                         ["Frame", "Layout", "Paint"])

    def test_filter_on_records_keeps_whole_requests_without_ids(self):
        """A request without an ID is an outermost span of a thread: a filter on records keeps all its spans. Records outside of spans
        are kept if they match."""
        log, events = self.scratch / "trace.json", []
        for i in range(20):
            for name, begin, end in [("Frame", 0, 1000), ("Layout", 100, 500), ("Paint", 500, 1000)][: 2 if i % 4 else 3]:
                events.append({"name": name, "ph": "X", "ts": i * 100000 + begin, "dur": end - begin, "pid": 1, "tid": 1})
        log.write_text(json.dumps({"traceEvents": events}) + "\n")
        for where, records in [('name == "Paint" || NL.EVNT == "Paint"', 15), ('!any(name == "Paint" || NL.EVNT == "Paint")', 30)]:
            self.serve("--where", where, log)
            support.wait_until(lambda: self.get_document("/state")["settled"] and self.get_document("/state")["records"] == records,
                               what=f"{records} records")
            self.process.send_signal(signal.SIGINT)
            self.process.wait(10)
        log = self.scratch / "a.log"
        log.write_text("".join(f"DATE=20260101120000.{i:03d}000 HOST=h PROG=p LVL={'Error' if i % 10 == 0 else 'Usage'} NL.EVNT=Note PID=7 N={i}\n"
                               for i in range(200)))
        for where, records in [("LVL == Error", 20), ("!any(LVL == Error)", 180)]:
            self.serve("--where", where, log)
            support.wait_until(lambda: self.get_document("/state")["settled"] and self.get_document("/state")["records"] == records,
                               what=f"{records} records")
            self.process.send_signal(signal.SIGINT)
            self.process.wait(10)

    def test_filters_of_colors_keep_the_other_conditions(self):
        self.log.write_text("".join(f"DATE=20260101120000.{i * 10000 + step:06d} HOST=web{i % 3} PROG=shop LVL=Usage NL.EVNT=Serve.{name} REQ.ID=r{i}\n"
                                    for i in range(60) for step, name in [(0, "start"), (1000 + 100 * i, "end")]))
        self.serve(self.log)

        def filter_with(text, records):
            """Sets the filter, waits until it is applied, and returns the colors: {host: (hidden, isolate, hide)}."""
            self.assertEqual(self.get_document("/filter?" + urllib.parse.urlencode({"text": text})), {})
            support.wait_until(lambda: self.get_document("/state")["settled"] and self.get_document("/state")["records"] == records,
                               what=f"{records} records that match {text}")
            return {color["text"]: (color["hidden"], color["isolate"], color["hide"]) for color in self.get_document("/colors")["colors"]}

        def has(host):
            return f'any(HOST == "{host}")'

        support.wait_until(lambda: len(self.get_document("/colors")["colors"]) == 3, what="the colors")
        either = f'request.duration > 4.95ms || {has("web0")}'
        colors = filter_with(either, 2 * (20 + 14))
        self.assertEqual(colors["web1"], (False, f'({either}) && {has("web1")}', f'({either}) && !{has("web1")}'))
        colors = filter_with(colors["web1"][1], 2 * 7)
        self.assertEqual([colors[f"web{i}"][0] for i in range(3)], [True, False, True])
        self.assertEqual(colors["web1"][1], either, "a second click shows all colors")
        self.assertEqual(colors["web2"][2], f'({either}) && !{has("web2")}', "a hidden color replaces an isolated color")
        colors = filter_with(f'!{has("web1")} && !{has("web2")}', 2 * 20)
        self.assertEqual([colors[f"web{i}"][0] for i in range(3)], [False, True, True])
        self.assertEqual(colors["web2"][2], f'!{has("web1")}')
        self.assertEqual(colors["web0"][1], 'HOST == "web0"')
        colors = filter_with(f'{has("web0")} || request.duration > 1s && !{has("web1")}', 2 * 20)
        self.assertEqual([colors[f"web{i}"][0] for i in range(3)], [False, False, False], "the last term applies only to an alternative")
        support.wait_until(lambda: self.get_document("/requests")["total"] == 20, what="the table contains only the requests that match")

    def test_threads_and_tracks(self):
        """The page shows threads, collapses and pins tracks, and scrolls them. A link contains this."""
        self.log.write_text(nlv_window.threads(200))
        self.serve("--threads", self.log)
        self.assertTrue(self.get_document("/state")["threads"])
        view = "width=1000&height=500&threads=yes"
        place = support.wait_until(lambda: (place := json.loads(self.get(f"/picture?{view}")[0].headers["X-Place"]))["scrollMax"] > 2000 and place,
                                   what="the rows of all threads")
        found = [self.get_document(f"/find?{view}&x={x}&y={y}") for x in (400, 500, 600) for y in range(100, 200, 4)]
        self.assertTrue(any("Query, 40 ms" in place.get("text", "") for place in found))
        self.assertTrue(any("waiting for disk, 40 ms" in place.get("text", "") for place in found))
        host = self.get_document(f"/track?{view}&action=next")
        self.assertEqual(host["name"], "h0")
        first = self.get_document(f"/track?{view}&action=next&track={host['track']}")
        self.assertEqual(first["name"], "h0 app 100")
        collapsed = self.get_document(f"/track?{view}&action=toggle&track={host['track']}")["collapsed"]
        less = json.loads(self.get(f"/picture?{view}&collapsed={collapsed}")[0].headers["X-Place"])["scrollMax"]
        self.assertLess(less, place["scrollMax"] * 2 / 3)
        pinned = self.get_document(f"/track?{view}&action=pin&track={first['track']}")["pinned"]
        self.assertEqual(int(pinned, 16), first["track"])
        self.assertEqual(self.get_document(f"/track?{view}&action=next&pinned={pinned}")["name"], "h0 app 100", "pinned tracks are first")
        self.assertGreater(self.get_document(f"/track?{view}&action=next&track={first['track']}&scroll=1000000")["scroll"] + 1, 0)

    def test_hostile_parameters_are_rejected(self):
        self.serve(self.log)
        for query in ["width=100000", "width=-1", "width=nan", "width=", "width=1e9", "width=8192&height=8192",
                      "width=3000&height=2000&scale=3", "from=nan&to=inf", "from=2&to=1", "from=0&to=99", "from=9223372036854775807",
                      "from=99999999999999999999&to=5", "rows=1000000", "rows=0", "text=" + 1000 * "a", "sort=nothing", "unknown=1",
                      "x=%00", "dark=maybe", "color=257", "color=-1", "place=18446744073709551616", "&".join(40 * ["x=1"])]:
            response, body = self.get(f"/picture?{query}")
            self.assertEqual(response.status, 400, (query, body[:100]))
        for query in ["from=-4611686018427387903&to=4611686018427387903", "from=0&to=100", "width=8192&height=50",
                      "from=1767268800000000000&to=1767268800000000100", "step=1&place=9223372036854775807&lifeline=255"]:
            self.assertEqual(self.get(f"/picture?{query}")[0].status, 200, query)
        self.assertEqual(self.get("/waterfall?lifeline=200")[0].status, 404)
        self.assertEqual(self.get("/nothing")[0].status, 404)
        self.assertEqual(self.get("/" + 20000 * "a")[0].status // 100, 4)

    def test_many_connections_do_not_stop_it(self):
        self.serve(self.log)
        idle = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(80)]  # 64 are accepted; the rest fit the backlog
        for connection in idle:
            self.addCleanup(connection.close)
        self.assertIsNone(self.process.poll())
        for connection in idle:
            connection.close()
        support.wait_until(lambda: self.get("/state")[0].status == 200, what="an answer")

    def test_a_growing_log_and_the_end(self):
        self.serve(self.log)
        self.wait_for_requests()
        with self.log.open("a") as log:
            log.write("DATE=20260101120100.000000 HOST=web PROG=shop LVL=Usage NL.EVNT=Serve.start REQ.ID=new\n")
        support.wait_until(lambda: self.get_document("/state")["records"] == 24001, what="the new record")
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(10), 0)
        self.assertEqual(self.process.stderr.read(), "")

    def test_what_cannot_be_served(self):
        empty = self.scratch / "empty.log"
        empty.touch()
        for arguments, problem in [((self.scratch / "missing.log",), "No such file"), ((empty,), "no records")]:
            result = self.run_program(self.nlv, "--serve=127.0.0.1:0", *arguments, env=self.environment)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1), result.stderr)
            self.assertIn(problem, result.stderr)
        (self.scratch / "text.pem").write_text("no certificate\n")
        for address, problem in [("0.0.0.0:0", "requires TLS"), ("https://localhost", "cert"), ("127.0.0.1:x", "use http://"),
                                 ("ftp://localhost", "use http://"), ("http://localhost?cert=a", "cert"), ("https://localhost?ca=a", "ca"),
                                 (f"https://localhost?cert={self.scratch}/missing.pem", "missing.pem"),
                                 (f"https://localhost?cert={self.scratch}/text.pem", "text.pem"), ("127.0.0.1:70000", "use http://")]:
            result = self.run_program(self.nlv, f"--serve={address}", self.log, env=self.environment)
            self.assertEqual((result.returncode, result.stdout, result.stderr.count("\n")), (1, "", 1), (address, result.stderr))
            self.assertIn(problem, result.stderr)


class Live(ServeCase):
    def test_a_collector_is_restarted(self):
        """nlv connects again, keeps the records, and shows those that arrive later."""
        port = support.free_port()
        url = f"x-netlog://127.0.0.1:{port}"

        def collector():
            process = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", url, "--output", self.scratch / "all.log")
            support.wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, what="the collector")
            return process

        def write_until(event, count):
            result = self.run_program(support.program("nltools/nlwrite"), "--dest", url, event)
            self.assertEqual(result.returncode, 0, result.stderr)
            return self.get_document("/state")["records"] >= count

        first = collector()
        self.serve(url)
        support.wait_until(lambda: write_until("Before", 5), what="records")
        count = self.get_document("/state")["records"]
        first.terminate()
        first.wait()
        collector()
        support.wait_until(lambda: write_until("After", count + 5), what="records of the new collector")


class JaegerApi(ServeCase):
    """Jaeger's query API, with the requests that jaeger-ui sends."""
    FIRST_US = 1767268800000000  # 2026-01-01T12:00:00Z

    def setUp(self):
        super().setUp()
        self.serve(self.log)
        self.wait_for_requests()

    def search(self, **parameters):
        return self.get_document("/api/traces?" + urllib.parse.urlencode({"service": "shop", "limit": 20, **parameters}))

    @staticmethod
    def spans(trace):
        return {span["operationName"]: span for span in trace["spans"]}

    def test_services_and_operations(self):
        self.assertEqual(self.get_document("/api/services")["data"], ["shop"])
        self.assertEqual(set(self.get_document("/api/services/shop/operations")["data"]), {"request", "Serve", "Query", "Lookup", "Render"})
        self.assertIn({"name": "Query", "spanKind": ""}, self.get_document("/api/operations?service=shop")["data"])
        self.assertEqual(self.get_document("/api/operations?service=shop&spanKind=server")["data"], [])
        self.assertEqual(self.get_document("/api/services/other/operations")["data"], [])
        self.assertEqual(self.get_document("/api/dependencies?endTs=1800000000000&lookback=604800000000")["data"], [])

    def test_search_returns_the_newest_traces_that_match(self):
        newest = self.search()["data"]
        self.assertEqual(len(newest), 20)
        starts = [self.spans(trace)["Serve"]["startTime"] for trace in newest]
        self.assertEqual(starts, sorted(starts, reverse=True))
        slow = self.search(operation="Query", minDuration="240ms")["data"]
        self.assertEqual(len(slow), len(self.SLOW))
        for trace in slow:
            spans = self.spans(trace)
            self.assertEqual(set(spans), {"request", "Serve", "Query", "Lookup", "Render"})
            self.assertEqual(spans["Query"]["duration"], 250000)
            self.assertEqual(spans["Query"]["references"],
                             [{"refType": "CHILD_OF", "traceID": trace["traceID"], "spanID": spans["request"]["spanID"]}])
            self.assertIn(spans["request"]["tags"][-1]["value"], {f"r{i}" for i in self.SLOW})
            process = trace["processes"][spans["Query"]["processID"]]
            self.assertEqual((process["serviceName"], process["tags"][0]["value"]), ("shop", "db"))
        failed = self.search(tags='{"error":"true"}')["data"]
        self.assertEqual(len(failed), len(self.FAILED))
        self.assertIn({"key": "STATUS", "type": "int64", "value": 500}, self.spans(failed[0])["Serve"]["tags"])
        self.assertEqual([trace["traceID"] for trace in self.search(tags='{"STATUS":"500"}')["data"]], [failed[0]["traceID"]])
        start = self.spans(failed[0])["Serve"]["startTime"]
        self.assertEqual(len(self.search(tags='{"error":"true"}', start=start, end=start + 1)["data"]), 1)
        self.assertEqual(self.search(tags='{"error":"true"}', end=start)["data"], [])
        self.assertEqual(self.search(service="other")["data"], [])

    def test_a_trace_is_found_by_its_identifier(self):
        for trace in self.search(limit=2)["data"] + self.search(limit=1, end=self.FIRST_US + 1000000)["data"]:
            found = self.get_document(f"/api/traces/{trace['traceID']}")["data"]
            self.assertEqual(found, [trace])
        both = [trace["traceID"] for trace in self.search(limit=2)["data"]]
        self.assertEqual([trace["traceID"] for trace in
                          self.get_document(f"/api/traces?traceID={both[0]}&traceID={both[1]}")["data"]], both)

    def test_traces_keep_the_identifiers_of_the_log(self):
        log = self.scratch / "b.log"
        ids = [f"{i:032x}" for i in range(1, 41)]
        log.write_text("".join(
            f"DATE=202601011200{i:02d}.{ms:06d} HOST={host} PROG={prog} LVL=Usage NL.EVNT={event} TRACE.ID={ids[i]} SPAN.ID={span}{more}\n"
            for i in range(40) for ms, host, prog, event, span, more in [
                (1000, "a", "front", "Get.start", f"{i:015x}a", " SPAN.KIND=server"),
                (2000, "b", "back", "Load.start", f"{i:015x}b", f" PARENT.ID={i:015x}a"),
                (3000, "b", "back", "Miss", f"{i:015x}b", " key=k"),
                (9000, "b", "back", "Load.end", f"{i:015x}b", " STATUS=2" if i == 7 else " STATUS=0"),
                (9500, "a", "front", "Get.end", f"{i:015x}a", " STATUS=0")]))
        self.process.terminate()
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["requests"] == 40, what="all requests")
        trace, = self.get_document(f"/api/traces/{ids[7]}")["data"]
        spans = self.spans(trace)
        self.assertEqual({name: span["spanID"] for name, span in spans.items()}, {"Get": f"{7:015x}a", "Load": f"{7:015x}b"})
        self.assertEqual(spans["Load"]["references"][0]["spanID"], f"{7:015x}a")
        self.assertIn({"key": "error", "type": "bool", "value": True}, spans["Load"]["tags"])
        self.assertIn({"key": "span.kind", "type": "string", "value": "server"}, spans["Get"]["tags"])
        self.assertEqual(spans["Load"]["logs"], [{"timestamp": self.FIRST_US + 7003000, "fields": [
            {"key": "event", "type": "string", "value": "Miss"}, {"key": "key", "type": "string", "value": "k"}]}])
        self.assertEqual(self.get_document("/api/dependencies?endTs=1767268900000&lookback=604800000")["data"],
                         [{"parent": "front", "child": "back", "callCount": 40}])

    def test_requests_of_one_name_have_different_traces(self):
        log = self.scratch / "c.log"
        log.write_text("".join(f"DATE=20260101120000.{i * 1000 + us:06d} HOST=a PROG=p TID=7 LVL=Usage NL.EVNT=Handle.{event}{more}\n"
                               for i in range(200) for us, event, more in [(100, "start", f" I={i}"), (900, "end", "")]))
        self.process.terminate()
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["requests"] == 200, what="all requests")
        traces = self.get_document("/api/traces?limit=1000")["data"]
        self.assertEqual(len({trace["traceID"] for trace in traces}), 200)
        for trace in traces[::10] + traces[-3:]:
            self.assertEqual(self.get_document(f"/api/traces/{trace['traceID']}")["data"], [trace])

    def test_the_size_of_an_answer_is_bounded(self):
        log = self.scratch / "d.log"
        log.write_text("".join(
            f"DATE=2026010112{i:02d}{n // 100:02d}.{n % 100:02d}{n % 10}000 HOST=a PROG=p LVL=Usage NL.EVNT={event} REQ.ID=r{i} "
            + " ".join(f"F{k}={n}" for k in range(8)) + "\n"
            for i in range(15) for n in range(3000) for event in ["Work.start" if n == 0 else "Work.end" if n == 2999 else "Step"]))
        self.process.terminate()
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["found"] == 1, what="all requests")
        small = self.get_document("/api/traces?limit=2")
        self.assertEqual((len(small["data"]), small["errors"]), (2, None))
        large = self.get_document("/api/traces?limit=100")
        self.assertIn("the reply is too large", large["errors"][0]["msg"])
        tags = sum(len(log["fields"]) for trace in large["data"] for span in trace["spans"] for log in span["logs"])
        self.assertLess(tags, 350000)
        long = self.scratch / "f.log"
        long.write_text("".join(f"DATE=2026010112{i // 60:02d}{i % 60:02d}.{us:06d} HOST=a PROG=p LVL=Usage NL.EVNT=Work.{event} REQ.ID=r{i} TEXT={'x' * 20000}\n"
                                for i in range(3000) for us, event in [(100, "start"), (900, "end")]))
        self.process.terminate()
        self.serve(long)
        support.wait_until(lambda: self.get_document("/state")["found"] == 1, what="all requests")
        response, body = self.get("/api/traces?limit=1500")
        self.assertLess(len(body), 50 << 20)

    def test_the_starts_are_in_the_zone_of_the_ends(self):
        """The jobs begin in another time zone, which nlv corrects. A trace has corrected times, and a search by time finds it."""
        log = self.scratch / "g.bp"
        log.write_text("".join(f"ts=2026-01-01T04:{i:02d}:05.0Z event=plan level=Info job={i} host=w\n"
                               f"ts=2026-01-01T04:{i:02d}:10.0Z event=inv.start level=Info job={i} host=w\n"
                               f"ts=2026-01-01T12:{i:02d}:20.0Z event=inv.end level=Info job={i} host=w dur=4.5\n" for i in range(30)))
        self.process.terminate()
        self.serve(log)
        plan = self.FIRST_US + 7 * 60000000 + 5000000

        def found():
            traces = self.get_document(f"/api/traces?limit=40&operation=inv&start={plan - 1000000}&end={plan + 1000000}")["data"]
            return traces if self.get_document("/state")["settled"] else []
        support.wait_until(found, what="the trace at its corrected time")
        trace, = found()
        spans = self.spans(trace)
        self.assertEqual((spans["inv"]["startTime"], spans["inv"]["duration"]), (plan + 5000000, 4500000))
        self.assertEqual([log["timestamp"] for span in trace["spans"] for log in span["logs"]], [plan])
        self.assertEqual(self.get_document(f"/api/traces/{trace['traceID']}")["data"], [trace])

    def test_durations_in_nanoseconds(self):
        log = self.scratch / "e.log"
        log.write_text("".join(f'{{"time":"2026-01-01T12:00:{i % 60:02d}.{i:06d}Z","prog":"p","msg":"Get","id":"q{i}","duration":{50000 + i}}}\n'
                               for i in range(200)) +
                       '{"time":"2026-01-01T12:01:00Z","prog":"p","msg":"Get","id":"last","duration":9000000000}\n')
        self.process.terminate()
        self.serve(log)
        support.wait_until(lambda: self.get_document("/state")["requests"] >= 200 and self.get_document("/state")["settled"], what="all requests")
        traces = self.get_document("/api/traces?limit=5&maxDuration=1s")["data"]
        self.assertEqual(len(traces), 5)
        self.assertLess(max(span["duration"] for trace in traces for span in trace["spans"]), 1000)

    def test_invalid_requests(self):
        self.assertEqual(self.get("/api/services", token=False)[0].status, 401)
        for path, status in [("/api/", 404), ("/api/metrics/latencies", 404), ("/api/traces/nosuch", 404), ("/api/traces/" + "f" * 3000, 404),
                             ("/api/traces?start=x", 400), ("/api/traces?start=99999999999999999999", 400), ("/api/traces?minDuration=5", 400),
                             ("/api/traces?minDuration=1e400s", 400), ("/api/traces?tags=%7B", 400), ("/api/traces?tags=%7B%22error%22:null%7D", 400), ("/api/traces?tags=%7B%7Dx", 400),
                             ("/api/traces?tags=" + urllib.parse.quote(json.dumps({str(i): 1 for i in range(17)})), 400), ("/api/traces?tags=[1]", 400),
                             ("/api/operations", 400), ("/api/dependencies?endTs=-1", 400), ("/api/traces?" + "a=b&" * 40, 400),
                             ("/api/services/operations", 200), ("/api/traces?service=%00", 400)]:
            response, body = self.get(path)
            self.assertEqual(response.status, status, (path, body))
        self.assertEqual(self.get_document("/api/services")["data"], ["shop"])

    def test_the_token_can_be_in_a_file(self):
        self.process.terminate()
        token = self.scratch / "token"
        token.write_text("0123456789abcdefABCDEF0123456789\n")
        for name, problem in [("short", "invalid token"), ("nosuch", "No such file or directory")]:
            (self.scratch / "short").write_text("secret\n")
            result = self.run_program(self.nlv, f"--serve=http://127.0.0.1:0?token={self.scratch / name}", self.log)
            self.assertEqual(result.returncode, 1)
            self.assertIn(problem, result.stderr)
        self.process = self.start(self.nlv, f"--serve=http://127.0.0.1:0?token={token}", self.log, env=self.environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.port = urllib.parse.urlsplit(self.process.stdout.readline().strip()).port
        self.token = "0123456789abcdefABCDEF0123456789"
        self.assertEqual(self.get("/api/services")[0].status, 200)
        self.token = "0123456789abcdefABCDEF0123456788"
        self.assertEqual(self.get("/api/services")[0].status, 401)


class Secure(ServeCase):
    ADDRESS = "10.9.8.7"
    CLIENT = """
import http.client, ssl, sys
address, port, ca, token, host = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
connection = http.client.HTTPSConnection(address, int(port), timeout=20, context=context)
headers = {"Authorization": "Bearer " + token, **({"Host": host} if host else {})}
connection.request("GET", "/state", headers=headers)
response = connection.getresponse()
print(response.status, connection.sock.version() if connection.sock else "")
"""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("needs root: it makes a network namespace")
        self.ca = self.scratch / "ca"
        self.checked(support.program("netlogd/netlogctl"), "certificates", "--ca", self.ca, "viewer.example", self.ADDRESS)

    def checked(self, *command):
        result = self.run_program(*command)
        self.assertEqual(result.returncode, 0, result)
        return result.stdout

    def serve_secure(self, host):
        """Serves in a network namespace of its own, whose loopback interface has an address that is not loopback."""
        command = f'ip link set lo up && ip addr add {self.ADDRESS}/32 dev lo && exec "$0" "$@"'
        url = f"https://{host}:0?cert={self.ca}/{self.ADDRESS}.crt&key={self.ca}/{self.ADDRESS}.key"
        self.process = self.start("unshare", "-n", "sh", "-c", command, self.nlv, f"--serve={url}", self.log, env=self.environment,
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.url = self.process.stdout.readline().strip()
        parts = urllib.parse.urlsplit(self.url)
        self.assertEqual(parts.scheme, "https")
        self.port, self.token = parts.port, parts.fragment.removeprefix("token=")
        return parts.hostname

    def inside(self, *command):
        return self.run_program("nsenter", "-t", str(self.process.pid), "-n", *command)

    def ask(self, token=None, host=""):
        return self.checked("nsenter", "-t", str(self.process.pid), "-n", "/usr/bin/python3", "-c", self.CLIENT, self.ADDRESS, str(self.port),
                            self.ca / "ca.crt", self.token if token is None else token, host).split()

    def test_beyond_loopback(self):
        self.assertEqual(self.serve_secure(self.ADDRESS), self.ADDRESS)
        self.assertEqual(self.ask(), ["200", "TLSv1.3"])
        self.assertEqual(self.ask(token="0" * 32)[0], "401")
        self.assertEqual(self.ask(host="attacker.example")[0], "421")
        self.assertEqual(self.ask(host=f"{self.ADDRESS}:{self.port}")[0], "200")
        plain = self.inside("/usr/bin/python3", "-c", "import http.client, sys\nc = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]), timeout=20)\n"
                            "c.request('GET', '/')\nprint(c.getresponse().status)", self.ADDRESS, str(self.port))
        self.assertNotEqual(plain.returncode, 0)
        self.assertEqual(plain.stdout, "")
        old = self.inside("openssl", "s_client", "-connect", f"{self.ADDRESS}:{self.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
        self.assertNotEqual(old.returncode, 0)
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(10), 0)
        self.assertEqual(self.process.stderr.read(), "")

    def test_all_addresses(self):
        self.assertEqual(self.serve_secure("0.0.0.0"), socket.gethostname().lower())
        self.assertEqual(self.ask()[0], "200")


class Chromium:
    """A headless Chromium for all tests of this file, controlled by the DevTools protocol through a pair of pipes."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="netlogger-test-")
        to_read, self.output = os.pipe()
        self.input, to_write = os.pipe()
        command = (f"exec chromium --headless=new --no-sandbox --disable-gpu --remote-debugging-pipe --window-size=1200,800 "
                   f"--disable-dev-shm-usage --user-data-dir={folder}/browser about:blank 3<&{to_read} 4>&{to_write}")
        process = subprocess.Popen(["bash", "-c", command], pass_fds=[to_read, to_write], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder})
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(process.wait)
        atexit.register(process.kill)
        os.close(to_read)
        os.close(to_write)
        self.number, self.rest = 0, b""

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                data = os.read(self.input, 1 << 16)
                if not data:
                    raise AssertionError("Chromium has ended")
                self.rest += data
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(answer["error"])
                return answer["result"]


chromium = functools.cache(Chromium)


class Browser:
    """A page of the Chromium with cookies and storage of its own, until the end of the test."""

    def __init__(self, case):
        context = chromium().call("Target.createBrowserContext")["browserContextId"]
        case.addCleanup(chromium().call, "Target.disposeBrowserContext", browserContextId=context)
        target = chromium().call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = chromium().call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)

    def call(self, method, **parameters):
        return chromium().call(method, self.session, **parameters)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression)["result"].get("value")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name, text=""):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)


class Page(ServeCase):
    def setUp(self):
        super().setUp()
        if shutil.which("chromium") is None:
            self.skipTest("no chromium here")

    def wait_for(self, expression, what):
        return support.wait_until(lambda: self.browser.value(expression), what=what)

    def range(self):
        return tuple(int(self.browser.value(name)) for name in ("String(from)", "String(to)"))

    def drawn(self):
        return int(self.browser.value("document.body.dataset.drawn || '0'"))

    def mark_in_histogram(self):
        """Marks the longest requests in the histogram: the table lists them, and the view stays."""
        browser = self.browser

        def mark():  # again if the picture was still changing, because its parts then move
            left, right, top, bottom = (browser.value(f"main.getBoundingClientRect().{side} + shown.{name}")
                                        for side, name in (("left", "overviewRight"), ("left", "right"), ("top", "overviewTop"), ("top", "overviewBottom")))
            before = self.range()
            browser.mouse("mousePressed", left + 20, top + 2, button="left", clickCount=1)
            browser.mouse("mouseMoved", right - 5, top + (bottom - top) / 3, button="left", buttons=1)
            browser.mouse("mouseReleased", right - 5, top + (bottom - top) / 3, button="left", clickCount=1)
            time.sleep(1)
            return browser.value("area.from === undefined && area.shortest !== undefined && rows.length === 2") and self.range() == before

        self.wait_for("shown.right - shown.overviewRight > 50 && shown.from === String(from)", "the picture with the histogram")
        support.wait_until(mark, what="the two longest requests")
        self.assertEqual({browser.value(f"rows[{i}].name") for i in range(2)}, {"r1234", "r2345"})

    def click_legend(self, number):
        """Clicks on an entry of the heat map's legend, and waits until the table shows this number of requests."""
        browser = self.browser

        def entries():  # again if the picture was still changing
            places = {}
            for x in range(int(browser.value("shown.left")), int(browser.value("shown.right")), 12):
                y = browser.value("Math.round(shown.overviewBottom + main.clientHeight) / 2")
                place = self.get_document(f"/find?width={browser.value('main.clientWidth')}&height={browser.value('main.clientHeight')}"
                                          f"&from={browser.value('String(from)')}&to={browser.value('String(to)')}&x={x}&y={int(y)}").get("list")
                if place is not None:
                    places["errors" in place] = (x, y)
            return places if len(places) == 2 else None

        left, top = browser.value("main.getBoundingClientRect().left"), browser.value("main.getBoundingClientRect().top")
        x, y = support.wait_until(entries, what="both entries")[number == 1]
        browser.mouse("mouseMoved", left + x, top + y)
        self.wait_for("document.getElementById('tip').textContent === 'Click: list these requests'", "the tooltip")
        browser.mouse("mousePressed", left + x, top + y, button="left", clickCount=1)
        browser.mouse("mouseReleased", left + x, top + y, button="left", clickCount=1)
        self.wait_for(f"rows.length === {number}", "the table")

    def test_the_legend_lists_slow_and_failed_requests(self):
        self.serve(self.log)
        self.wait_for_requests()
        browser = self.browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("Boolean(firstDone && shown.heat)", "the first picture")
        self.click_legend(2)
        self.assertEqual({browser.value(f"rows[{i}].name") for i in range(2)}, {"r1234", "r2345"})
        self.click_legend(1)
        self.assertEqual(browser.value("rows[0].name"), "r1999")

    def test_filter_and_colors_of_the_legend(self):
        self.log.write_text("".join(f"DATE=20260101120000.{i * 10000 + step:06d} HOST=web{i % 3} PROG=shop LVL=Usage NL.EVNT=Serve.{name} REQ.ID=r{i}\n"
                                    for i in range(60) for step, name in [(0, "start"), (1000 + 100 * i, "end")]))
        self.serve(self.log)
        browser = self.browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("Boolean(firstDone && shown.heat)", "the first picture")
        left, top = browser.value("main.getBoundingClientRect().left"), browser.value("main.getBoundingClientRect().top")

        def colors():
            size = f"width={browser.value('main.clientWidth')}&height={browser.value('main.clientHeight')}"
            view = f"from={browser.value('String(from)')}&to={browser.value('String(to)')}"
            names = {color["color"]: color["text"] for color in self.get_document(f"/colors?{size}&{view}")["colors"]}
            found = {}
            for x in range(int(browser.value("shown.left")), int(browser.value("shown.left")) + 400, 12):
                color = self.get_document(f"/find?{size}&{view}&x={x}&y=46").get("color")
                if color is not None:
                    found[names[color]] = x
            return found if len(found) == 3 else None

        def matching():
            return self.get_document("/state")["records"]

        at = support.wait_until(colors, what="the hosts' colors")["web1"]
        shift = 8  # the bit of the Shift key in modifiers
        for records, modifiers, filter_text in [(40, 0, 'HOST == "web1"'), (120, 0, ""), (80, shift, '!any(HOST == "web1")'),
                                                (40, 0, 'HOST == "web1"'), (80, shift, '!any(HOST == "web1")'), (120, shift, "")]:
            browser.mouse("mouseMoved", left + at, top + 46)
            self.wait_for("document.getElementById('tip').textContent.startsWith('Click: show only')", "the tooltip")
            browser.mouse("mousePressed", left + at, top + 46, button="left", clickCount=1, modifiers=modifiers)
            browser.mouse("mouseReleased", left + at, top + 46, button="left", clickCount=1, modifiers=modifiers)
            support.wait_until(lambda: matching() == records, what=f"{records} records")
            self.wait_for(f"document.getElementById('filter').value === '{filter_text}'", "the filter in the field")
        browser.key("l", "l")
        self.wait_for("framed === 0", "the first color is framed")
        browser.key("ArrowRight")
        self.wait_for("framed === 1", "the second color is framed")
        browser.key("Delete")
        support.wait_until(lambda: matching() == 80, what="the key hides web1")
        browser.key("ArrowLeft")
        self.wait_for("framed === 0", "the first color is framed again")
        browser.key("Delete")
        support.wait_until(lambda: matching() == 40, what="the key also hides web0")
        browser.key("Enter", "\r")
        support.wait_until(lambda: self.get_document("/state").get("filter") == 'HOST == "web0"', what="the key isolates web0")
        browser.key("Enter", "\r")
        support.wait_until(lambda: matching() == 120, what="all colors")
        self.wait_for("document.getElementById('filter').value === ''", "the reply to the key")
        browser.key("Escape")
        self.wait_for("framed === -1", "the end of the choice of colors")
        browser.key("f", "f")
        self.wait_for("document.activeElement === document.getElementById('filter')", "the filter has the focus")
        browser.call("Input.insertText", text="request.duration > 5.95ms")
        browser.key("Enter", "\r")
        support.wait_until(lambda: matching() == 20, what="the requests that match")
        self.wait_for("location.href.includes('filter=request.duration')", "the filter in the link")
        browser.value("filter('request.duration >')")
        self.wait_for("document.getElementById('status').textContent.includes('request.duration')", "the message about an invalid filter")
        self.assertEqual(matching(), 20)

    def test_threads_and_tracks_in_the_page(self):
        """The button and the key V show the threads, PageDown and the wheel on the labels scroll them, and K collapses and pins a track."""
        self.log.write_text(nlv_window.threads(200))
        self.serve(self.log)
        self.browser = browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("shown && state.settled && shown.scrollMax === 0", "the events")
        browser.value("canvas.focus()")
        browser.key("v", "v")
        self.wait_for("shown.scrollMax > 2000", "the threads")
        self.assertEqual(browser.value("$('threads').getAttribute('aria-pressed')"), "true")
        browser.key("PageDown")
        self.wait_for("shown.scroll > 100", "the next threads")
        browser.key("PageUp")
        self.wait_for("shown.scroll === 0", "the first threads")
        x, y = browser.value("main.getBoundingClientRect().left + 20"), browser.value("main.getBoundingClientRect().top + shown.top + 60")
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=400)
        self.wait_for("shown.scroll === 200", "the threads below")
        before = browser.value("shown.scrollMax")
        browser.key("k", "k")
        self.wait_for("$('status').textContent.startsWith('h0 ') && shown.scroll === 0", "the first track")
        browser.key("Enter", "\r")
        self.wait_for(f"shown.scrollMax < {before} * 2 / 3 && look.collapsed", "a collapsed host")
        browser.key("ArrowDown")
        self.wait_for("$('status').textContent.startsWith('h1 ')", "the other host")
        browser.key("ArrowDown")
        self.wait_for("$('status').textContent.startsWith('h1 app 101')", "its first thread")
        browser.key("p", "p")
        self.wait_for("look.pinned", "a pinned thread")
        link = browser.value("location.hash")
        self.assertIn("threads=yes", link)
        self.assertIn("collapsed=", link)
        browser.key("Escape")
        browser.value("$('threads').click()")
        self.wait_for("shown.scrollMax === 0 && !look.threads", "the events")
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=self.url.split("#")[0] + link)
        self.wait_for("look.threads && look.pinned && shown && shown.scrollMax > 500", "the view of the link")

    def test_comparison_of_two_logs_and_of_two_groups(self):
        other = self.scratch / "b.log"
        other.write_text(nlv_window.branching_requests(3000, set(range(0, 3000, 4)), seed=2))
        self.serve(self.log, other)
        support.wait_until(lambda: self.get_document("/state")["requests"] == 6000, what="the requests of both logs")
        browser = self.browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("typeof firstDone !== 'undefined' && firstDone && state.logs === 2", "the page")
        browser.key("c", "c")
        self.wait_for("document.getElementById('comparison').width > 300 && !document.getElementById('comparison').hidden", "the comparison of the logs")
        answer = browser.value("document.getElementById('answer').textContent")
        self.assertIn("Query", answer)
        browser.value("document.getElementById('sideA').value = 'request.duration >'")
        browser.key("Enter", "\r")
        self.wait_for("document.getElementById('answer').textContent.includes('request.duration >')", "the message about an invalid side")
        browser.value("document.getElementById('sideA').value = 'request.duration > 200ms'")
        browser.key("Enter", "\r")
        self.wait_for("!document.getElementById('comparison').hidden", "the comparison of the groups")
        browser.key("Escape")
        self.wait_for("document.getElementById('compared').hidden && !document.getElementById('requests').hidden", "the end of the comparison")

    def test_the_picture_moves_once_when_the_table_appears_or_disappears(self):
        self.serve(self.log)
        self.wait_for_requests()
        browser = self.browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("Boolean(firstDone && shown.heat && rows.length > 0 && row === 0)", "the picture and the table, which is there from the start")
        # In each frame, record whether the picture has the size of its place.
        browser.value("window.frames_ = []; (function look() { const wrong = parseFloat(canvas.style.height) !== main.clientHeight;"
                      " if (frames_.length < 100000) frames_.push(wrong); requestAnimationFrame(look); })()")
        for key, hidden in [("Escape", "true"), ("r", "false"), ("Escape", "true"), ("e", "false")]:
            seen = browser.value("frames_.length")
            browser.key(key, key if len(key) == 1 else "")
            self.wait_for(f"document.getElementById('requests').hidden === {hidden}", f"the effect of {key}")
            self.wait_for(f"frames_.length > {seen} + 20", "further frames")
        self.assertEqual(browser.value("frames_.filter(wrong => wrong).length"), 0)

    def test_the_page_with_mouse_wheel_and_keyboard(self):
        self.serve(self.log)
        self.wait_for_requests()
        browser = self.browser = Browser(self)
        browser.call("Page.navigate", url=self.url)
        self.wait_for("Boolean(firstDone && shown.heat)", "the first picture")
        self.assertNotIn(self.token, browser.value("location.href"))
        before = self.range()
        browser.mouse("mouseWheel", 600, 300, deltaX=0, deltaY=-300)
        support.wait_until(lambda: self.range()[1] - self.range()[0] < (before[1] - before[0]) * 0.6, what="the wheel zooms")
        before = self.range()
        browser.mouse("mousePressed", 600, 300, button="left", clickCount=1)
        browser.mouse("mouseMoved", 700, 300, button="left", buttons=1)
        browser.mouse("mouseReleased", 700, 300, button="left", clickCount=1)
        support.wait_until(lambda: self.range()[0] < before[0], what="a drag moves")
        browser.key("Home")
        self.wait_for("String(from) === state.allFrom", "the whole log")
        browser.key("r", "r")
        self.wait_for("rows.length > 0 && row === 0", "the table")
        self.assertIn(browser.value("rows[0].name"), ("r1234", "r2345"))
        browser.key("Enter", "\r")
        support.wait_until(lambda: 2e8 < self.range()[1] - self.range()[0] < 4e8, what="the slowest request is shown")
        self.mark_in_histogram()
        link = browser.value("location.href")
        before = self.range()
        browser.key("e", "e")
        self.wait_for("rows.length > 0 && rows[0].error === 'failed'", "the failed request")
        self.assertEqual(browser.value("rows[0].name"), "r1999")
        self.wait_for("document.getElementById('waterfall').width > 300", "the waterfall")
        if "NL_PICTURES" in os.environ:
            import base64
            import pathlib
            time.sleep(0.5)
            shot = browser.call("Page.captureScreenshot", format="png")["data"]
            (pathlib.Path(os.environ["NL_PICTURES"]) / "serve.png").write_bytes(base64.b64decode(shot))
        browser.call("Page.navigate", url="about:blank")
        browser.call("Page.navigate", url=link)
        self.wait_for("typeof shown !== 'undefined' && Boolean(shown)", "the picture of the link")
        self.assertEqual(self.range(), before)
        self.wait_for("Boolean(chosen)", "the selected request of the link")


if __name__ == "__main__":
    support.main()
