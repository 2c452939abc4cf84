"""The HTTP example: its servers on loopback, their span trees, nlstat's report, and the headers that they forward."""
import os
import re
import shutil
import socket
import subprocess
import threading

import support

EXAMPLE = support.SOURCE / "examples" / "http"
TRACE, PARENT = "00112233445566778899aabbccddeeff", "0123456789abcdef"


def records(path):
    """Returns the records of a log, each as a dict of its fields."""
    return [dict(re.findall(r'([\w.]+)=("(?:[^"\\]|\\.)*"|\S*)', line)) for line in path.read_text().splitlines()]


class Http(support.Case):
    def setUp(self):
        super().setUp()
        self.shop = support.program("examples/http/shop")

    # ---- the whole example ----

    def run_example(self):
        folder = self.scratch / f"run{len(list(self.scratch.iterdir()))}"
        folder.mkdir()
        result = self.run_program(EXAMPLE / "run", support.BUILD, folder, text=True,
                                  env={**os.environ, "PYTHON": shutil.which("python3", path="/usr/bin") or "python3"})
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder, result

    def test_missing_programs(self):
        """The script prints one message with the remedy."""
        for reason in (": not a build directory; give the directory in which you built NetLogger: run DIRECTORY",
                       f"/examples/http/shop does not exist; build it: make -C {self.scratch} examples/http/shop"):
            result = self.run_program(EXAMPLE / "run", self.scratch, text=True)
            self.assertEqual((result.returncode, result.stderr), (1, f"run: {self.scratch}{reason}\n"))
            (self.scratch / "Makefile").touch()

    @staticmethod
    def slowest_paths(report):
        """Returns the steps in which the slowest request and the other requests waited."""
        paths = re.findall(r" critical path .*\n((?:      \S.*\n)+)", report)
        steps = [[line[6:].partition("  ")[0].strip() for line in path.splitlines()] for path in paths]
        return [[step for step in path if step.startswith(("Prices @", "Query @", "Render @"))] for path in steps]

    def test_run(self):
        if not (support.BUILD / "bindings" / "python" / "lib").exists():
            self.skipTest("the Python binding is not built here")
        folder, result = self.run_example()
        self.assertEqual(result.stdout.splitlines()[:4], ["7 in stock, 9.99"] * 4)
        self.assertIn("Requests by TRACE.ID: 4,", result.stdout)
        spans, events = {}, []
        for name in ("frontend", "stock", "prices", "database"):
            for record in records(folder / f"{name}.log"):
                event = record["NL.EVNT"]
                if event.endswith(".start"):
                    spans[record["SPAN.ID"]] = {**record, "PLACE": f"{name}/{event[:-6]}"}
                elif event.endswith(".end"):
                    self.assertEqual(record["STATUS"], "0", record)
                    spans[record["SPAN.ID"]]["ENDED"] = True
                else:
                    events.append(record)
        self.assertTrue(all(span.get("ENDED") for span in spans.values()))
        self.assertEqual(len(spans), 4 * 7)
        edges = sorted((spans[span["PARENT.ID"]]["PLACE"] if "PARENT.ID" in span else None) or "" for span in spans.values())
        self.assertEqual(edges, sorted(4 * ["", "frontend/Order", "frontend/Order", "frontend/Order", "frontend/Call",
                                            "frontend/Call", "stock/Stock"]))
        for span in spans.values():
            if "PARENT.ID" in span:
                self.assertEqual(span["TRACE.ID"], spans[span["PARENT.ID"]]["TRACE.ID"])
        self.assertEqual(sorted(spans[event["SPAN.ID"]]["PLACE"] for event in events),
                         4 * ["prices/Prices"] + 4 * ["stock/Stock"])
        # The slowest request waited for the prices, the others for the database. A busy machine can delay any request, so
        # more runs may show the paths.
        expected = [["Prices @prices", "Render @frontend"], ["Query @database", "Render @frontend"]]
        paths = self.slowest_paths(result.stdout)
        for _ in range(3):
            if paths != expected:
                paths = self.slowest_paths(self.run_example()[1].stdout)
        self.assertEqual(paths, expected)

    # ---- headers ----

    def serve(self, name, *arguments):
        """Starts a server. Returns the port."""
        process = subprocess.Popen([self.shop, name, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "NETLOGGER_DEST": f"file:{self.scratch / name}.log"})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.server = process
        return int(process.stdout.readline())

    def fake_backend(self):
        """Starts a server that keeps the headers of its requests. Returns the port."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.received = []

        def answer():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    self.received.append(connection.recv(65536).decode())
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")

        threading.Thread(target=answer, daemon=True).start()
        return listener.getsockname()[1]

    def ask(self, port, *headers):
        """Sends a request. Returns the headers traceparent and tracestate that the backend received."""
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall("".join(f"{line}\r\n" for line in ["GET /order?pen HTTP/1.1", *headers, ""]).encode())
            answer = b""
            while part := connection.recv(65536):
                answer += part
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
        received = dict(re.findall(r"(trace\w+): (.*)\r\n", self.received.pop()))
        return received.get("traceparent"), received.get("tracestate")

    def test_headers(self):
        port = self.serve("stock", self.fake_backend())
        parent = f"traceparent: 00-{TRACE}-{PARENT}-01"
        kept = [
            ([parent, "tracestate: a=1"], "a=1", "01"),
            ([parent.replace("traceparent", "TraceParent"), "TRACESTATE: a=1 ,b=2", "tracestate: c=3"], "a=1,b=2,c=3", "01"),
            ([f"traceparent: \t00-{TRACE}-{PARENT}-03 \t", "tracestate:", "tracestate: a=1"], "a=1", "03"),
            ([parent, "tracestate: A=1", "tracestate: b=2"], None, "01"),
            ([f"traceparent: 42-{TRACE}-{PARENT}-01-later"], None, "01"),
        ]
        for headers, state, flags in kept:
            traceparent, tracestate = self.ask(port, *headers)
            self.assertRegex(traceparent, f"^00-{TRACE}-[0-9a-f]{{16}}-{flags}$")
            self.assertNotIn(PARENT, traceparent)
            self.assertEqual(tracestate, state)
        renewed = [
            [],
            ["tracestate: a=1"],
            [parent, parent],
            ["trace-parent: " + parent.partition(" ")[2], "tracestate: a=1"],
            [f"traceparent: 00-{TRACE}-{PARENT}-01-more", "tracestate: a=1"],
            [f"traceparent: ff-{TRACE}-{PARENT}-01"],
            [f"traceparent: 00-{32 * '0'}-{PARENT}-01"],
        ]
        for headers in renewed:
            traceparent, tracestate = self.ask(port, *headers)
            self.assertRegex(traceparent, "^00-[0-9a-f]{32}-[0-9a-f]{16}-03$")
            self.assertNotIn(TRACE, traceparent)
            self.assertIsNone(tracestate)
        traceparent, tracestate = self.ask(port, f"traceparent: 00-{TRACE}-{PARENT}-02", "tracestate: a=1")
        self.assertRegex(traceparent, f"^00-{TRACE}-[0-9a-f]{{16}}-02$")
        self.assertNotIn(PARENT, traceparent)
        self.assertEqual(tracestate, "a=1")
        self.server.terminate()
        self.assertEqual(self.server.wait(), 0)
        logged = records(self.scratch / "stock.log")
        events = [r["NL.EVNT"] for r in logged if "TRACE.ID" in r]
        self.assertEqual(events, ["Stock.start", "CacheMiss", "Stock.end"] * (len(kept) + len(renewed)))
        self.assertEqual([r["NL.EVNT"] for r in logged if "TRACE.ID" not in r], ["CacheMiss"])  # of the unsampled request
        self.assertEqual([r.get("PARENT.ID") for r in logged if r["NL.EVNT"] == "Stock.start"],
                         [PARENT] * len(kept) + [None] * len(renewed))


if __name__ == "__main__":
    support.main()
