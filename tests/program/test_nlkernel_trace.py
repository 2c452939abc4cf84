"""nlkernel trace finds the requests of unmodified servers: nginx, gunicorn, PostgreSQL and Redis on five hosts."""
import os
import re
import signal
import subprocess
import time

import support
import trace_stack

FIELD = re.compile(r'([A-Z][A-Z0-9._]*)=("(?:[^"\\]|\\.)*"|\S*)')
PROGRAMS = "nginx", "gunicorn", "postgres", "redis-server"


def fields(line):
    return {name: value.strip('"') for name, value in FIELD.findall(line)}


class Tracing(support.Case):
    def setUp(self):
        super().setUp()
        self.nlkernel = support.program("nlkernel/nlkernel")

    def trace(self, *arguments):
        """Starts nlkernel trace, and waits until it traces."""
        self.log = self.scratch / "trace.log"
        process = self.start(self.nlkernel, "trace", *arguments, "--dest", self.log, stderr=subprocess.PIPE, text=True)
        support.wait_until(lambda: process.poll() is not None or self.traces(process.pid), what="nlkernel to trace")
        return process

    @staticmethod
    def traces(pid):
        try:
            return any("bpf_link" in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))
        except FileNotFoundError:
            return False

    def finish(self, process):
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 0, errors)
        records = [fields(line) for line in self.log.read_text().splitlines()]
        self.assertEqual(records[-1]["NL.EVNT"], "NetLogger.Trace.Finish")
        self.assertEqual(records[-1]["LOST"], "0")
        return records[:-1], errors


class Servers(Tracing):
    @classmethod
    def setUpClass(cls):
        support.program("nlkernel/nlkernel")
        reason = trace_stack.missing()
        if reason is not None:
            raise support.unittest.SkipTest(reason)
        cls.stack = trace_stack.Stack()
        cls.addClassCleanup(cls.stack.end)
        cls.stack.begin()
        cls.next = 1

    def requests(self, count, concurrency):
        """Traces requests. Returns the records, and the application's lines about these requests."""
        before = self.stack.truth.read_text().splitlines() if self.stack.truth.exists() else []
        done = {}
        for line in before:
            _, port, _, number = line.split()
            done[port] = int(number) + 1
        process = self.trace(*(word for name in PROGRAMS for word in ("--comm", name)), "--pid", os.getpid())
        self.stack.request(range(self.next, self.next + count), concurrency)
        type(self).next += count
        time.sleep(0.1)  # the servers' last calls
        records, _ = self.finish(process)
        truth = []
        for line in self.stack.truth.read_text().splitlines()[len(before):]:
            request, cache, db, number = line.split()
            truth.append(f"{request} {cache} {db} {int(number) - done.get(cache, 0)}")
        self.assertEqual(len(truth), count)
        return records, truth

    def test_one_client(self):
        records, truth = self.requests(40, 1)
        right, wrong = trace_stack.score(records, truth)
        self.assertEqual((len(right), wrong), (40, {}))
        by_id = {r["SPAN.ID"]: r for r in records}
        roots = [r for r in records if "PARENT.ID" not in r and r["NL.EVNT"] == "http.GET.call"]
        self.assertEqual(len(roots), 40)
        for r in records:
            parent = by_id.get(r.get("PARENT.ID"))
            if parent is not None:  # a span is within its parent
                self.assertEqual(parent["TRACE.ID"], r["TRACE.ID"])
                self.assertLessEqual(int(r["DUR.NS"]), int(parent["DUR.NS"]))
                self.assertLessEqual(r["DATE"], parent["DATE"])
        hosts = {r["PROG"]: r["HOST"] for r in records}
        self.assertEqual([hosts[name] for name in PROGRAMS], ["web", "app", "db", "cache"])
        self.assertNotIn("secret", self.log.read_text())
        self.assertEqual({r["STATUS"] for r in records if r["NL.EVNT"].startswith("http")}, {"200"})
        # The score detects a span in a trace to which it does not belong.
        spans = [r for r in records if r["NL.EVNT"] == "redis.GET"]
        spans[3]["TRACE.ID"], spans[7]["TRACE.ID"] = spans[7]["TRACE.ID"], spans[3]["TRACE.ID"]
        self.assertEqual(len(trace_stack.score(records, truth)[1]), 2)

    def test_many_clients(self):
        records, truth = self.requests(1000, 100)
        right, wrong = trace_stack.score(records, truth)
        self.assertGreaterEqual(len(right), 990, wrong)
        self.assertEqual([r for r in records if r.get("EDGE") == "ambiguous"], [])

    def test_slow_statement(self):
        self.stack.slow.touch()
        self.addCleanup(self.stack.slow.unlink)
        self.requests(100, 4)
        slowest = self.run_program(support.program("nltools/nlstat"), "--slowest", 1, self.log)
        self.assertRegex(slowest.stdout, r"(?m)^ *postgresql\.SELECT\.pg_sleep @postgres ")
        verdict = self.run_program(support.program("nltools/nldiag"), self.log).stdout.splitlines()[0]
        self.assertIn("postgresql.SELECT.pg_sleep of postgres", verdict)


class Command(Tracing):
    def test_usage(self):
        for arguments, message in ((["--port", "80", "--comm", "x"], "--port traces every process"),
                                   ([], "missing processes to trace"),
                                   (["--port", "0"], '"0" is not a port number'),
                                   (["--cgroup", "/nonexistent"], "/nonexistent: no such directory")):
            result = self.run_program(self.nlkernel, "trace", *arguments, "--dest", self.scratch / "x.log")
            self.assertEqual(result.returncode, 2)
            self.assertIn(message, result.stderr)

    def test_rights(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to give it up")
        self.scratch.chmod(0o777)
        result = self.run_program("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", self.nlkernel, "trace", "--comm", "x",
                                  "--dest", self.scratch / "x.log")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Anlkernel: eBPF: this process lacks CAP_BPF and CAP_PERFMON; run nlkernel as root, or grant it: [^\n]*\n\Z")

    def test_command_and_port(self):
        """A program that nlkernel starts, and a protocol that it does not know."""
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        program = ("import socket, threading\n"
                   "s = socket.create_server(('127.0.0.1', 0))\n"
                   "def serve():\n"
                   "    c = s.accept()[0]\n"
                   "    for _ in range(3):\n"
                   "        c.recv(100); c.send(b'done\\n')\n"
                   "    c.close()\n"
                   "t = threading.Thread(target=serve); t.start()\n"
                   "c = socket.create_connection(s.getsockname())\n"
                   "for _ in range(3):\n"
                   "    c.send(b'do password\\n'); c.recv(100)\n"
                   "c.recv(1); t.join()\n")
        log = self.scratch / "trace.log"
        result = self.run_program(self.nlkernel, "trace", "--dest", log, "--", "/usr/bin/python3", "-c", program)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("6 spans of 3 requests", result.stderr)
        records = [fields(line) for line in log.read_text().splitlines()]
        self.assertEqual([r["NL.EVNT"] for r in records].count("tcp.exchange.call"), 3)
        self.assertEqual([r.get("EDGE") for r in records if r["NL.EVNT"] == "tcp.exchange"], ["message"] * 3)
        self.assertNotIn("password", log.read_text())


if __name__ == "__main__":
    support.main()
