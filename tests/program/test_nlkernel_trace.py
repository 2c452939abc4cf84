"""nlkernel trace finds the requests of unmodified servers: nginx, gunicorn, PostgreSQL and Redis on five hosts."""
import collections
import ctypes
import errno
import http.client
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import guest
import support
import trace_stack

FIELD = re.compile(r'([A-Z][A-Z0-9._]*)=("(?:[^"\\]|\\.)*"|\S*)')
BPF_CALLS = {"x86_64": 321, "aarch64": 280}
EXIT_CALLS = {"x86_64": 60, "aarch64": 93}  # exit(), which ends only the calling thread
PROGRAMS = "nginx", "gunicorn", "postgres", "redis-server"


def fields(line):
    return {name: value.strip('"') for name, value in FIELD.findall(line)}


def count_bpf(command):
    """Counts the kernel's BPF objects of one kind with bpf(command), which returns the next ID."""
    bpf, count, attributes = ctypes.CDLL(None, use_errno=True).syscall, 0, (ctypes.c_uint32 * 32)()
    while bpf(BPF_CALLS[platform.machine()], command, attributes, ctypes.sizeof(attributes)) == 0:
        attributes[0] = attributes[1]  # start_id, next_id
        attributes[1] = 0
        count += 1
    if ctypes.get_errno() != errno.ENOENT:
        raise OSError(ctypes.get_errno(), "bpf")
    return count


class Tracing(support.Case):
    def setUp(self):
        super().setUp()
        self.nlkernel = support.program("nlkernel/nlkernel")

    def trace(self, *arguments, log="trace.log"):
        """Starts nlkernel trace, and waits until it traces."""
        self.log = self.scratch / log
        process = self.start(self.nlkernel, "trace", *arguments, "--dest", self.log, stderr=subprocess.PIPE, text=True)
        self.wait_for_tracing(process)
        return process

    def wait_for_tracing(self, process):
        self.assertEqual(process.stderr.readline(), "nlkernel: tracing; press Ctrl-C to stop\n")

    def finish(self, process, log="trace.log"):
        """Returns the records without waits, and the messages. Stores the records of waits in self.waits."""
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 0, errors)
        records = [fields(line) for line in (self.scratch / log).read_text().splitlines()]
        self.assertEqual(records[-1]["NL.EVNT"], "NetLogger.Trace.Finish")
        self.assertEqual(records[-1]["LOST"], "0")
        self.waits = [r for r in records if r["NL.EVNT"].endswith(trace_stack.WAITS)]
        return [r for r in records[:-1] if not r["NL.EVNT"].endswith(trace_stack.WAITS)], errors


class Stack(Tracing):
    unix = False

    @classmethod
    def setUpClass(cls):
        support.program("nlkernel/nlkernel")
        reason = trace_stack.missing()
        if reason is not None:
            raise support.unittest.SkipTest(reason)
        cls.stack = trace_stack.Stack(unix=cls.unix)
        cls.addClassCleanup(cls.stack.end)
        cls.stack.begin()
        cls.next = 1

    def requests(self, count, concurrency, host="web", hosts=({*PROGRAMS, "client"},)):
        """Traces requests. Each set of programs has its own nlkernel. Returns the records, and the application's lines
        about these requests."""
        before = self.stack.truth.read_text().splitlines() if self.stack.truth.exists() else []
        done = {}
        for line in before:
            _, port, _, number = line.split()
            done[port] = int(number) + 1
        options = {name: ("--pid", self.stack.programs[name].pid) for name in PROGRAMS} | {"client": ("--pid", os.getpid())}
        processes = [self.trace(*(word for name in names for word in options[name]), log=f"trace{i}.log") for i, names in enumerate(hosts)]
        self.stack.request(range(self.next, self.next + count), concurrency, host)
        type(self).next += count
        time.sleep(0.1)  # the servers' last calls
        records = [record for i, process in enumerate(processes) for record in self.finish(process, f"trace{i}.log")[0]]
        truth = []
        for line in self.stack.truth.read_text().splitlines()[len(before):]:
            request, cache, db, number = line.split()
            truth.append(f"{request} {cache} {db} {int(number) - done.get(cache, 0)}")
        self.assertEqual(len(truth), count)
        return records, truth


class UnixSockets(Stack):
    """nginx, gunicorn, PostgreSQL and Redis use Unix sockets."""
    unix = True

    def test_requests(self):
        old = 16 + 8 * 2  # idle connections of nginx, and connections of gunicorn's threads
        for turn in range(2):  # in the second turn, the connections are older than the trace
            records, truth = self.requests(500, 20)
            right, wrong = trace_stack.score(records, truth)
            self.assertGreaterEqual(len(right), 495 - turn * old, list(wrong.items())[:3])
            owners = {}
            for number, error in wrong.items():  # no trace contains spans of two requests
                self.assertIsInstance(error, dict)
                for trace in {i for group in error.values() for i in group}:
                    owners.setdefault(trace, set()).add(number)
            self.assertEqual({len(numbers) for numbers in owners.values()} - {1}, set())
            ends = {r["LOCAL"].split(":")[0] for r in records if r["PROG"] in ("gunicorn", "postgres", "redis-server")}
            self.assertEqual(ends, {"unix"})
            self.log.unlink()


class Servers(Stack):
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
                self.assertLessEqual(int(r["DUR.NS"]), int(parent["DUR.NS"]), (r, parent))
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
        self.assertGreaterEqual(len(right), 990, list(wrong.items())[:3])
        self.assertEqual([r for r in records if r.get("EDGE") == "ambiguous"], [])

    def test_translated_addresses(self):
        if not self.stack.translate_addresses():
            self.skipTest("no address translation here")
        records, truth = self.requests(40, 4, "translated")
        self.assertEqual({r["PEER"] for r in records if r["NL.EVNT"] == "http.GET.call" and r["PROG"] != "nginx"}, {"10.99.0.1:8080"})
        self.assertEqual(trace_stack.score(records, truth)[1], {})

    def test_several_hosts(self):
        """Each nlkernel traces only some of the programs, as if each were on its own host. No nlkernel traces the client."""
        parts = {"nginx"}, {"gunicorn"}, {"postgres", "redis-server"}
        records, truth = self.requests(100, 10, hosts=parts)
        self.assertEqual(trace_stack.score(records, truth, trace_stack.SPANS - 1)[0], [])
        logs = [self.scratch / f"trace{i}.log" for i in range(len(parts))]
        result = self.run_program(self.nlkernel, "join", *reversed(logs))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"\Anlkernel: joined 4\d\d requests with calls; the logs do not contain the calls of 100 other requests\n\Z")
        joined = [r for r in map(fields, result.stdout.splitlines()) if "TRACE.ID" in r and not r["NL.EVNT"].endswith(trace_stack.WAITS)]
        self.assertEqual(len(joined), len(records))
        self.assertEqual(trace_stack.score(joined, truth, trace_stack.SPANS - 1)[1], {})
        ids = {r["SPAN.ID"] for r in joined}
        self.assertEqual([r for r in joined if "PARENT.ID" in r and r["PARENT.ID"] not in ids], [])
        missing = self.run_program(self.nlkernel, "join", logs[1])
        self.assertIn("joined 0 requests with calls; the logs do not contain the calls of 100 other requests\n", missing.stderr)

    def diagnose(self, statement, concurrency, sensors=(), statuses=(3, 4)):
        """Traces requests. Every second request executes a statement. Each sensor is a host and its arguments.
        Returns the first line of nldiag's answer or, with the status 0, the line of the first requested work."""
        self.stack.statement.write_text(statement)
        self.addCleanup(self.stack.statement.unlink)
        logs, processes = [], []
        for host, *arguments in sensors:
            logs.append(self.scratch / f"{host}.log")
            processes.append(self.stack.start(host, support.program("nlagent/nlsensor"), "--interval", "0.01", "--dest", f"file:{logs[-1]}", *arguments))
            support.wait_until(lambda log=logs[-1]: log.exists() and log.stat().st_size > 0, what="the sensors measure")
        self.requests(200, concurrency)
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(10)
        diagnosis = self.run_program(support.program("nltools/nldiag"), "trace0.log", *logs, cwd=self.scratch)
        self.assertIn(diagnosis.returncode, statuses)
        self.assertEqual(diagnosis.stderr, "")
        lines = diagnosis.stdout.splitlines()
        return lines[0] if diagnosis.returncode else next(line for line in lines if "% of the requests' time: " in line)

    def test_slow_statement(self):
        # Either the time is constant, or only these requests contain the statement. Then it may be requested work, and the status is 0.
        self.assertRegex(self.diagnose("SELECT pg_sleep(0.05)", 4, statuses=(0, 3)), r"^(1\. )?[89]\d % .*postgresql\.SELECT\.pg_sleep of postgres")
        slowest = self.run_program(support.program("nltools/nlstat"), "--slowest", 1, self.log)
        self.assertRegex(slowest.stdout, r"(?m)^ *postgresql\.SELECT\.pg_sleep @postgres ")

    def test_lock(self):
        """Each statement locks the same row until it ends."""
        answer = self.diagnose("UPDATE items SET name = 'item' RETURNING pg_sleep(0.01)", 8)
        self.assertIn("postgresql.UPDATE.items of postgres on db lets one request through at a time", answer)

    def test_full_pool(self):
        """gunicorn has eight threads."""
        self.requests(100, 24)  # each thread connects to the database at its first request
        answer = self.diagnose("SELECT pg_sleep(0.01 + 0.02 * random())", 24)
        self.assertRegex(answer, r"http\.GET of gunicorn on app lets \d+ requests through at a time \(a pool of \d+\); peak demand was 24")

    def test_slow_disk(self):
        with self.stack.slow_disk() as is_slow:
            if not is_slow:
                self.skipTest("writes cannot be limited here")
            answer = self.diagnose("INSERT INTO items VALUES ('item') RETURNING name", 8, [("db", "disk", "pressure")])
        # One process of PostgreSQL writes for the others, which wait for it on a futex.
        self.assertRegex(answer, r"a disk at its limit on db \(postgresql\.INSERT\.items\.(disk|futex) of postgres\)")
        waits = collections.Counter(r["NL.EVNT"] for r in self.waits)
        self.assertGreater(waits["postgresql.INSERT.items.disk"], 0, waits)

    def test_slow_link(self):
        with self.stack.slow_link("db"):
            answer = self.diagnose("SELECT repeat('x', 100000)", 8, [("db", "connections"), ("app", "connections")])
        self.assertRegex(answer, r"the rate of the path limits the connections from db \(postgresql\.SELECT\.\w+ of postgres -> ")


# First receives from all connections, and later handles the requests, with a pool of connections to a slow, asynchronous server.
# Logs the port of the connection that each request used.
LOOP = """
import asyncio, sys
async def store(reader, writer):
    while line := await reader.readline():
        await asyncio.sleep(0.002)
        writer.write(b"value of " + line)
async def main():
    store_server = await asyncio.start_server(store, "127.0.0.1", 0)
    pool = asyncio.Queue()
    for _ in range(8):
        pool.put_nowait(await asyncio.open_connection(*store_server.sockets[0].getsockname()))
    async def serve(reader, writer):
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            number = head.split()[1].decode()
            for _ in range(2):
                connection = await pool.get()
                print(number, connection[1].get_extra_info("sockname")[1], flush=True)
                connection[1].write(f"GET {number}\\n".encode())
                await connection[0].readline()
                pool.put_nowait(connection)
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


class EventLoop(Tracing):
    def run_requests(self, concurrency):
        """Returns the numbers of calls with the right parent, with a wrong parent, and without a parent."""
        server = self.start("/usr/bin/python3", "-c", LOOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = int(server.stdout.readline())
        process = self.trace("--pid", server.pid)

        def client(numbers):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            for number in numbers:
                connection.request("GET", f"/{number}")
                connection.getresponse().read()
            connection.close()
        threads = [threading.Thread(target=client, args=(range(i, 200, concurrency),)) for i in range(concurrency)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        records, errors = self.finish(process)
        ambiguous = sum(r.get("EDGE") == "ambiguous" for r in records)
        said = "call may belong to several requests, and has" if ambiguous == 1 else "calls may belong to several requests, and have"
        self.assertEqual(f"{ambiguous} {said} no parent" in errors, ambiguous > 0, errors)
        server.kill()
        truth = {}
        for line in server.stdout.read().splitlines():
            path, local = line.split()
            truth.setdefault(local, []).append(path)
        server.stdout.close()
        paths = {r["SPAN.ID"]: r["PATH"] for r in records if r["NL.EVNT"] == "http.GET"}
        self.assertEqual(len(paths), 200)
        calls = {}
        for r in sorted((r for r in records if r["NL.EVNT"] == "tcp.exchange.call"), key=lambda r: r["DATE"]):
            calls.setdefault(r["LOCAL"].rsplit(":", 1)[1], []).append(r)
        right = wrong = without = 0
        for local, expected in truth.items():
            self.assertEqual(len(calls[local]), len(expected))
            for call, path in zip(calls[local], expected):
                if "PARENT.ID" not in call:
                    without += 1
                elif paths[call["PARENT.ID"]] == path:
                    right += 1
                else:
                    wrong += 1
        return right, wrong, without

    def test_one_client(self):
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        self.assertEqual(self.run_requests(1), (400, 0, 0))

    def test_many_clients(self):
        """With many clients, nlkernel names no parent rather than a wrong parent."""
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        right, wrong, without = self.run_requests(20)
        print(f"# {right} right, {wrong} wrong, {without} without a parent")
        self.assertEqual(wrong, 0)
        self.assertEqual(right + without, 400)


class Memcached(Tracing):
    def test_requests(self):
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        if shutil.which("memcached") is None:
            self.skipTest("no memcached here")
        port = support.free_port()
        server = self.start("memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", str(port), "-t", "2")
        support.wait_until(lambda: support.can_connect(port))
        process = self.trace("--pid", server.pid)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, connection.makefile("rb") as replies:
            def ask(request, end=b"\r\n"):
                connection.sendall(request)
                while not replies.readline().endswith(end):
                    pass
            for i in range(20):
                ask(b"set secret%d 0 60 6\r\nsecret\r\n" % i)
                ask(b"get secret%d secretmiss\r\n" % i, b"END\r\n")
            ask(b"set secretbig 0 60 100000\r\n" + b"x" * 100000 + b"\r\n")
            ask(b"get secretbig\r\n", b"END\r\n")
            ask(b"delete secretmiss\r\n")
            ask(b"set secretlast 0 60 6 noreply\r\nsecret\r\nversion\r\n")
        time.sleep(0.1)
        records, _ = self.finish(process)
        results = collections.Counter((r["NL.EVNT"], r.get("STATUS")) for r in records)
        self.assertEqual({key: results[key] for key in results if key[0] != "memcached.set"},
                         {("memcached.get", None): 21, ("memcached.delete", "NOT_FOUND"): 1})
        self.assertEqual(results["memcached.set", "STORED"], 21)
        self.assertNotIn("secret", self.log.read_text())


class Guest(Tracing):
    @support.long
    def test_another_kernel(self):
        """Debian's kernel, which is older than bpf_rdonly_cast."""
        machine = guest.Guest(self)
        if shutil.which("redis-server") is None:
            self.skipTest("no redis-server here")
        machine.add(self.nlkernel)
        for name in "redis-server", "redis-benchmark":
            machine.add(shutil.which(name))
        files = machine.run([["/bin/redis-server", "--daemonize", "yes", "--save", "", "--dir", "/tmp"],
                             ["/bin/nlkernel", "trace", "--comm", "redis-server", "--dest", "/tmp/trace.log", "--",
                              "/bin/redis-benchmark", "-n", "20", "-c", "2", "-t", "set"]], ["/tmp/trace.log"])
        self.assertIn("/tmp/trace.log", files, machine.said)
        records = [fields(line) for line in files["/tmp/trace.log"].decode().splitlines()]
        names = [r["NL.EVNT"] for r in records]
        self.assertEqual((names.count("redis.SET"), names.count("redis.SET.call")), (20, 20), machine.said)
        self.assertEqual({r.get("EDGE") for r in records if r["NL.EVNT"] == "redis.SET"}, {"message"})
        self.assertEqual(records[-1]["LOST"], "0")


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
        self.assertRegex(result.stderr, r"\Anlkernel: eBPF: this process lacks CAP_BPF and CAP_PERFMON; run nlkernel as root, or grant the capabilities: [^\n]*\n\Z")

    def test_another_user_with_the_capabilities(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to grant capabilities and to give up the rest")
        copy = self.scratch / "nlkernel"
        shutil.copy(self.nlkernel, copy)
        copy.chmod(0o755)
        self.scratch.chmod(0o777)
        granted = self.run_program("setcap", "cap_bpf,cap_perfmon,cap_dac_override+ep", copy)
        if granted.returncode != 0:
            self.skipTest(f"setcap: {granted.stderr.strip()}")
        port = support.free_port()
        server = self.start("/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", str(port), stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, cwd=self.scratch)
        support.wait_until(lambda: support.can_connect(port))
        self.log = self.scratch / "trace.log"
        process = self.start("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", copy, "trace", "--pid", str(server.pid), "--dest",
                             self.log, stderr=subprocess.PIPE, text=True)
        self.wait_for_tracing(process)
        for _ in range(5):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", "/")
            self.assertEqual(connection.getresponse().status, 200)
            connection.close()
        time.sleep(0.1)
        records, errors = self.finish(process)
        self.assertIn("encrypted requests may have no names, because nlkernel lacks CAP_SYS_PTRACE", errors)
        self.assertEqual([(r["NL.EVNT"], r["STATUS"]) for r in records if r["NL.EVNT"] == "http.GET"], 5 * [("http.GET", "200")])
        self.assertEqual(self.log.stat().st_uid, 65534)

    @support.long
    def test_a_thousand_attachments_leave_nothing(self):
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        if platform.machine() not in BPF_CALLS:
            self.skipTest(f"the number of bpf() on {platform.machine()} is not in this test")
        kinds = {"programs": 11, "maps": 12, "links": 31}  # BPF_PROG_GET_NEXT_ID, BPF_MAP_GET_NEXT_ID, BPF_LINK_GET_NEXT_ID
        before = {kind: count_bpf(command) for kind, command in kinds.items()}
        sleeper = self.start("sleep", "infinity")
        self.assertIn("libssl", pathlib.Path("/proc/self/maps").read_text())  # the kernel removes probes of libraries slowly
        for i in range(1000):
            log = self.scratch / "trace.log"
            pid = os.getpid() if i % 20 < 3 else sleeper.pid
            process = self.start(self.nlkernel, "trace", "--pid", pid, "--dest", log, stderr=subprocess.PIPE, text=True)
            self.wait_for_tracing(process)
            process.send_signal(signal.SIGKILL if i % 3 == 2 else signal.SIGINT)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, -signal.SIGKILL if i % 3 == 2 else 0)
            log.unlink(missing_ok=True)
        # The kernel frees the BPF objects after a grace period. Programs of other processes may also have ended since the count.
        for kind, command in kinds.items():
            support.wait_until(lambda: count_bpf(command) <= before[kind], what=f"the kernel to free all {kind}")
        self.assertEqual([path.name for path in self.scratch.iterdir()], [])

    def test_container(self):
        if os.geteuid() != 0:
            self.skipTest("a PID namespace needs root")
        result = self.run_program("unshare", "--pid", "--fork", self.nlkernel, "trace", "--comm", "x", "--dest", self.scratch / "x.log")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Anlkernel: --comm, --pid, --cgroup and COMMAND do not work in a container, [^\n]*\n\Z")

    def test_port(self):
        """nlkernel traces every process on a port, and no process on other ports."""
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        ports = support.free_port(), support.free_port()
        servers = [self.start("/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", self.scratch, port,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for port in ports]
        for port in ports:
            support.wait_until(lambda port=port: support.can_connect(port))
        process = self.trace("--port", ports[0])
        for port in ports:
            self.run_program("/usr/bin/python3", "-c", f"import urllib.request; urllib.request.urlopen('http://127.0.0.1:{port}/?a=b').read()")
        records, _ = self.finish(process)
        self.assertEqual([(r["NL.EVNT"], r["PATH"], r["STATUS"]) for r in records if r["PROG"] != "nlkernel"],
                         [("http.GET", "/", "200"), ("http.GET.call", "/", "200")])
        self.assertEqual(len({r["TRACE.ID"] for r in records}), 1)
        for server in servers:
            server.kill()

    def test_command(self):
        """nlkernel starts a program that uses an unknown protocol. The program's main thread ends before the requests."""
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")
        program = ("import ctypes, os, socket, threading\n"
                   "s = socket.create_server(('127.0.0.1', 0))\n"
                   "main = threading.main_thread().native_id\n"
                   "def serve():\n"
                   "    c = s.accept()[0]\n"
                   "    for _ in range(3):\n"
                   "        c.recv(100); c.send(b'done\\n')\n"
                   "    c.close()\n"
                   "def request():\n"
                   "    while ') Z ' not in open(f'/proc/self/task/{main}/stat').read():\n"
                   "        pass\n"
                   "    c = socket.create_connection(s.getsockname())\n"
                   "    for _ in range(3):\n"
                   "        c.send(b'do password\\n'); c.recv(100)\n"
                   "    c.recv(1); os._exit(0)\n"
                   "for target in serve, request:\n"
                   "    threading.Thread(target=target).start()\n"
                   f"ctypes.CDLL(None).syscall({EXIT_CALLS.get(platform.machine())}, 0)\n")
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
