"""nlagentd: sensors on demand, who may ask, what becomes of bad input and bad sensors; by our client and by others'."""
import glob
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import textwrap
import time
import unittest

import support

ENVELOPE = ('<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
            '<%s xmlns="urn:netlogger:agent:1">%s</%s></s:Body></s:Envelope>')


class Agent(support.Case):
    """A running agent, and ways to ask it."""

    def setUp(self):
        super().setUp()
        self.nlagentd = support.program("nlagent/nlagentd")
        self.nlagent = support.program("nlagent/nlagent")

    def start_agent(self, *options, name="a", wait=True, listen="http://127.0.0.1:%d"):
        port = support.free_port()
        log = self.scratch / f"{name}.log"
        process = self.start(self.nlagentd, "--listen", listen % port, "--host", name, "--log", f"file://{log}", *options,
                             stderr=subprocess.DEVNULL)
        process.port, process.log, process.url = port, log, f"http://127.0.0.1:{port}"
        if wait:
            support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        return process

    def ask(self, agent, *arguments, **options):
        return self.run_program(self.nlagent, "--agent", agent.url, *arguments, **options)

    def post(self, agent, body, headers=(), content_type="text/xml; charset=utf-8", timeout=30):
        """Status and text of the answer to bytes sent to /soap."""
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=timeout)
        self.addCleanup(connection.close)
        connection.request("POST", "/soap", body, {"Content-Type": content_type, "SOAPAction": '""', **dict(headers)})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")

    def call(self, agent, operation, fields=(), headers=()):
        inside = "".join(f"<{name}>{value}</{name}>" for name, value in fields)
        return self.post(agent, ENVELOPE % (operation, inside, operation), headers)

    def children(self, agent):
        """The sensors' processes, by their command lines."""
        found = {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                state, parent = pathlib.Path(path).read_text().rsplit(")", 1)[1].split()[:2]
                if int(parent) == agent.pid and state != "Z":
                    pid = int(path.split("/")[2])
                    found[pid] = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
            except (OSError, IndexError):
                continue
        return found

    def log_text(self, agent):
        return agent.log.read_text() if agent.log.exists() else ""

    def subscribe(self, agent, *arguments):
        return self.start(self.nlagent, "--agent", agent.url, "subscribe", *arguments, stdout=subprocess.PIPE, text=True)


class OnDemand(Agent):
    def test_sensor_lives_as_long_as_somebody_looks(self):
        agent = self.start_agent()
        self.assertEqual(self.children(agent), {})
        first = self.subscribe(agent, "load", "-i", "0.1")
        self.assertIn("LoadAverage", first.stdout.readline())
        second = self.subscribe(agent, "load", "-i", "0.05")
        self.assertIn("LoadAverage", second.stdout.readline())
        self.assertEqual(len(self.children(agent)), 1, "consumers of one sensor share one process")
        before = self.children(agent)
        first.kill()
        first.wait()
        for _ in range(3):
            self.assertIn("LoadAverage", second.stdout.readline())
        self.assertEqual(self.children(agent), before)
        second.kill()
        second.wait()
        support.wait_until(lambda: self.children(agent) == {}, what="the sensor's end")
        support.wait_until(lambda: "Nlagentd.SensorStopped SENSOR=load" in self.log_text(agent))

    def test_query_runs_it_only_for_that(self):
        agent = self.start_agent()
        result = self.ask(agent, "query", "cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("NL.EVNT=CpuOne "), os.cpu_count())
        self.assertIn("HOST=a ", result.stdout)
        support.wait_until(lambda: self.children(agent) == {}, what="the sensor's end")
        self.assertIn("NL.EVNT=CpuLoad", self.ask(agent, "query", "cpu", "--where", "NL.EVNT == CpuLoad").stdout)

    def test_start_and_stop(self):
        agent = self.start_agent()
        self.assertEqual(self.ask(agent, "start", "memory", "-i", "0.1").returncode, 0)
        support.wait_until(lambda: len(self.children(agent)) == 1)
        listed = self.ask(agent, "list").stdout
        self.assertRegex(listed, r"\* memory running=true consumers=0 held=true interval=0.1 pid=\d+")
        self.assertIn("query", self.ask(agent, "--help").stdout)
        self.assertEqual(self.ask(agent, "stop", "memory").returncode, 0)
        support.wait_until(lambda: self.children(agent) == {})

    def test_unknown_and_wrong(self):
        agent = self.start_agent()
        for wrong, words in [("nosuch", "UnknownSensor: there is no sensor"), ("cpu?x=1", "BadRequest: the sensor cpu has no"),
                             ("ping", "NoData: it ended with status 1: nlsensor: sensor ping: ping: host=NAME"),
                             ("kernel", "BadRequest: event="), ("", "sensor is wanted")]:
            result = self.ask(agent, "query", wrong)
            self.assertEqual(result.returncode, 1, wrong)
            self.assertIn(words, result.stderr)
        result = self.ask(agent, "query", "cpu", "--where", "=")
        self.assertIn("BadRequest", result.stderr)
        self.assertEqual(self.ask(agent, "nonsense").returncode, 2)

    def test_conditions(self):
        agent = self.start_agent("--sensor", "steps=for v in 1 1 5 9 6 4 9 9 3 1; do echo "
                                 "\"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=S X=$v\"; sleep 0.25; done; sleep 100")
        cases = {("--field", "X", "--change"): [1, 5, 9, 6, 4, 9, 3, 1],
                 ("--field", "X", "--above", "5", "--below", "4"): [9, 3],
                 ("--field", "X", "--above", "5", "--below", "5"): [9, 4, 9, 3],
                 ("--field", "X", "--percent", "100"): [1, 5],
                 ("--where", "X > 5"): [9, 6, 9, 9],
                 (): [1, 1, 5, 9, 6, 4, 9, 9, 3, 1]}
        processes = {c: self.subscribe(agent, "steps", "-i", "0.1", "-s", "4", *c) for c in cases}
        for condition, expected in cases.items():
            out = processes[condition].communicate(timeout=60)[0]
            seen = [int(v) for v in re.findall(r" X=(\d+)", out)]
            self.assertIn(seen, [expected, expected[1:], expected[2:]], condition)  # who comes later may miss the first

    def test_rate_of_each_consumer(self):
        agent = self.start_agent()
        fast = self.subscribe(agent, "load", "-i", "0.05", "-s", "3")
        slow = self.subscribe(agent, "load", "-i", "0.5", "-s", "3")
        many, few = len(fast.communicate(timeout=60)[0].splitlines()), len(slow.communicate(timeout=60)[0].splitlines())
        self.assertGreater(many, 3 * few)
        self.assertIn(few, range(2, 9))


class Trouble(Agent):
    def test_sensor_that_crashes_is_started_again_and_reported(self):
        agent = self.start_agent("--sensor", "bad=echo 'DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Bad'; "
                                 "echo broken >&2; exit 3")
        out = self.subscribe(agent, "bad", "-s", "6").communicate(timeout=60)[0]
        self.assertIn("Nlagentd.SensorFailed SENSOR=bad REASON=\"it ended with status 3: broken\" AGAIN=1", out)
        self.assertIn("AGAIN=2", out)
        self.assertIn("Nlagentd.SensorRestarted", out)
        self.assertIn(out.count("NL.EVNT=Bad"), (2, 3))
        self.assertIn("AGAIN=2", self.log_text(agent))

    def test_sensor_that_is_killed_comes_back(self):
        agent = self.start_agent()
        reader = self.subscribe(agent, "load", "-i", "0.1")
        reader.stdout.readline()
        os.kill(list(self.children(agent))[0], signal.SIGKILL)
        for line in reader.stdout:
            if "SensorRestarted" in line:
                break
        self.assertIn("LoadAverage", reader.stdout.readline())

    def test_sensor_that_hangs_is_killed(self):
        agent = self.start_agent()
        reader = self.subscribe(agent, "load", "-i", "0.1")
        reader.stdout.readline()
        pid = list(self.children(agent))[0]
        os.kill(pid, signal.SIGSTOP)
        for line in reader.stdout:
            if "SensorFailed" in line:
                break
        self.assertIn("it hung, and was killed", line)
        support.wait_until(lambda: pid not in self.children(agent))

    def test_sensor_of_nonsense_harms_nobody(self):
        agent = self.start_agent("--sensor", "noise=head -c 3000000 /dev/urandom; sleep 100",
                                 "--sensor", "long=head -c 30000000 /dev/zero | tr '\\0' x; sleep 100")
        readers = [self.subscribe(agent, "noise", "-s", "2"), self.subscribe(agent, "long", "-s", "2")]
        self.assertIn("LoadAverage", self.ask(agent, "query", "load").stdout)
        for r in readers:
            r.communicate(timeout=60)
        self.assertIsNone(agent.poll())

    def test_slow_consumer_is_told_and_delays_nobody(self):
        agent = self.start_agent("--queue", "100", "--sensor",
                                 "flood=i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "
                                 "\"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=F N=$i TEXT=" + "x" * 300 + "\"; done; sleep 100")
        _, text = self.call(agent, "Subscribe", [("sensor", "flood")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        slow = socket.create_connection(("127.0.0.1", agent.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /stream?subscription={name} HTTP/1.0\r\n\r\n".encode())
        fast = self.subscribe(agent, "load", "-i", "0.05")
        for _ in range(20):
            self.assertIn("LoadAverage", fast.stdout.readline())
        support.wait_until(lambda: "MISSED=0 " not in self.ask(agent, "status").stdout, what="records that are missed")
        support.wait_until(lambda: int(re.search(r"RECORDS=(\d+)", self.ask(agent, "status").stdout).group(1)) > 20000)
        slow.settimeout(3)
        data = b""
        try:
            while piece := slow.recv(1 << 20):
                data += piece
        except TimeoutError:
            pass
        slow.close()
        missed = sum(int(n) for n in re.findall(rb"Nlagentd\.Missed SENSOR=flood COUNT=(\d+)", data))
        self.assertEqual(missed + data.count(b"NL.EVNT=F "), 20000)
        self.assertGreater(missed, 0)

    def test_limits(self):
        agent = self.start_agent("--max-per-consumer", "3", "--max-sensors", "2")
        for i in range(3):
            self.assertEqual(self.call(agent, "Subscribe", [("sensor", "load")])[0], 200)
        status, text = self.call(agent, "Subscribe", [("sensor", "load")])
        self.assertEqual(status, 500)
        self.assertIn("LimitReached", text)
        agent = self.start_agent("--max-sensors", "2", name="b")
        for sensor in "load", "memory":
            self.assertEqual(self.call(agent, "Start", [("sensor", sensor)])[0], 200)
        self.assertIn("LimitReached", self.call(agent, "Start", [("sensor", "cpu")])[1])
        self.assertIn("BadRequest", self.call(agent, "Start", [("sensor", "load"), ("interval", "0.0001")])[1])

    def test_consumer_that_vanishes_is_forgotten(self):
        agent = self.start_agent()
        self.assertEqual(self.call(agent, "Subscribe", [("sensor", "load"), ("lease", "1")])[0], 200)
        self.assertEqual(len(self.children(agent)), 1)
        support.wait_until(lambda: self.children(agent) == {}, what="the lease's end")

    def test_fetch_waits_and_gives_xml_that_is_ulm(self):
        agent = self.start_agent("--sensor", r"""odd=printf '%s\n' 'DATE=20260101000000.123456789 HOST=h PROG=p LVL=Usage """
                                 r"""NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E="é"'; sleep 100""")
        _, text = self.call(agent, "Subscribe", [("sensor", "odd")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        status, text = self.call(agent, "Fetch", [("subscription", name), ("wait", "20")])
        self.assertEqual(status, 200)
        record = re.search(r"<record.*</record>", text).group(0)
        log = f'<log xmlns="urn:netlogger:log:1">{record}</log>'
        (self.scratch / "x.xml").write_text(log)
        self.assertEqual(self.run_program("xmllint", "--noout", "--schema", support.SOURCE / "doc/netlogger.xsd",
                                          self.scratch / "x.xml").returncode, 0)
        back = self.run_program(support.program("nltools/nlconv"), "--to", "ulm", self.scratch / "x.xml", errors="backslashreplace")
        self.assertIn(r'NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E=é', back.stdout)
        self.assertIn("DATE=20260101000000.123456789", back.stdout)
        query = self.ask(agent, "query", "odd", errors="backslashreplace").stdout
        self.assertIn(r'NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E=é', query)
        self.assertEqual(self.call(agent, "Unsubscribe", [("subscription", name)])[0], 200)
        self.assertIn("UnknownSubscription", self.call(agent, "Fetch", [("subscription", name)])[1])

    def test_stops_with_all_its_sensors(self):
        agent = self.start_agent("--sensor", "stubborn=trap '' TERM; while :; do sleep 1; done")
        self.call(agent, "Start", [("sensor", "stubborn")])
        self.call(agent, "Start", [("sensor", "load")])
        pids = list(self.children(agent))
        self.assertEqual(len(pids), 2)
        agent.terminate()
        self.assertEqual(agent.wait(20), 0)
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))


class Hostile(Agent):
    def memory(self, agent):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{agent.pid}/status").read()).group(1))

    def test_each_is_refused_with_a_fault(self):
        agent = self.start_agent()
        call = ENVELOPE % ("List", "", "List")
        laughs = '<!DOCTYPE l [<!ENTITY a "lol">' + "".join(
            f'<!ENTITY {chr(98 + i)} "' + f"&{chr(97 + i)};" * 10 + '">' for i in range(12)) + "]>"
        secret = self.scratch / "secret"
        secret.write_text("secret-words")
        cases = {
            "entity expansion": (call.replace('"1.0"?>', '"1.0"?>' + laughs).replace("></List", ">&m;</List"), "document type"),
            "external entity": (call.replace('"1.0"?>', f'"1.0"?><!DOCTYPE l [<!ENTITY x SYSTEM "file://{secret}">]>')
                                .replace("></List", ">&x;</List"), "document type"),
            "external subset": (call.replace('"1.0"?>', f'"1.0"?><!DOCTYPE l SYSTEM "file://{secret}">'), "document type"),
            "unknown entity": (call.replace("></List", ">&x;</List"), "Entity"),
            "deep": (ENVELOPE % ("List", "<a>" * 60000, "List"), "nested too deep"),
            "deep and ended": (ENVELOPE % ("List", "<a>" * 20 + "</a>" * 20, "List"), "nested too deep"),
            "many": (ENVELOPE % ("List", "<a/>" * 50000, "List"), "too many elements"),
            "a name": (ENVELOPE % ("List", f"<{'a' * 200000}/>", "List"), "Client"),
            "nothing": ("", "Client"),
            "no XML": ("hello", "Client"),
            "no SOAP": ("<a/>", "no Envelope"),
            "SOAP 1.2": (call.replace("schemas.xmlsoap.org/soap/envelope/", "www.w3.org/2003/05/soap-envelope"), "VersionMismatch"),
            "must understand": (call.replace("<s:Body>", '<s:Header><x s:mustUnderstand="1"/></s:Header><s:Body>'), "MustUnderstand"),
            "another's": (call.replace("urn:netlogger:agent:1", "urn:x"), "namespace"),
            "unknown": (ENVELOPE % ("Nothing", "", "Nothing"), "UnknownOperation"),
            "two": (call.replace("</s:Body>", "<b/></s:Body>"), "more than one"),
            "no body": (re.sub("<s:Body>.*</s:Body>", "<s:Body/>", call), "nothing in the Body"),
            "half": (call[:-40], "Client"),
            "instruction": (call.replace("<s:Body>", "<?x y?><s:Body>"), "processing instructions"),
            "no number": (ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>x</interval>", "Subscribe"), "no number"),
            "not a number": (ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>nan</interval>", "Subscribe"), "no number"),
            "negative": (ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>-1</interval>", "Subscribe"), "BadRequest"),
            "a huge value": (ENVELOPE % ("Query", f"<sensor>{'c' * 200000}</sensor>", "Query"), "BadRequest"),
            "a huge attribute": (ENVELOPE % ("List", f'<a b="{"x" * 200000}"/>', "List"), None),
            "many attributes": (ENVELOPE % ("List", "<a " + " ".join(f'a{i}=""' for i in range(20000)) + "/>", "List"), None),
            "UTF-16": (call.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"), None),
            "a file as destination": (ENVELOPE % ("Collect", "<agent>http://a</agent><sensor>cpu</sensor><destination>/tmp/x"
                                                  "</destination>", "Collect"), "a collector's"),
        }
        before = self.memory(agent)
        for name, (body, words) in cases.items():
            with self.subTest(name):
                status, text = self.post(agent, body if isinstance(body, bytes) else body.encode())
                if words is not None:
                    self.assertEqual(status, 500, text)
                    self.assertIn("Fault", text)
                    self.assertIn(words, text)
                self.assertNotIn("secret-words", text)
        if not support.is_sanitized(agent):
            self.assertLess(self.memory(agent), before + 40000)
        self.assertEqual(self.call(agent, "List")[0], 200)

    def test_sizes_and_http(self):
        agent = self.start_agent()
        def refused(function):
            try:
                return function()[0] >= 400
            except (OSError, http.client.HTTPException):
                return True
        self.assertTrue(refused(lambda: self.post(agent, b"x" * 3000000)))
        self.assertTrue(refused(lambda: self.post(agent, b"x", headers=[("X", "y" * 100000)])))
        self.assertTrue(refused(lambda: self.post(agent, ENVELOPE % ("List", "", "List"), content_type="text/plain")))
        for request in [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 5000, b"PUT /soap HTTP/1.1\r\n\r\n", b"GET /stream HTTP/1.0\r\n\r\n",
                        b"GET /stream?subscription=x&format=y HTTP/1.0\r\n\r\n", b"GET /../../etc/passwd HTTP/1.0\r\n\r\n",
                        b"POST /soap HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0"]:
            with socket.create_connection(("127.0.0.1", agent.port)) as s:
                s.settimeout(1)
                s.sendall(request)
                try:
                    self.assertNotIn(b" 200 ", s.recv(4096))
                except TimeoutError:
                    pass
        self.assertEqual(self.call(agent, "List")[0], 200)

    def test_consumer_that_talks_instead_of_listening(self):
        agent = self.start_agent()
        before = self.memory(agent)
        for path in "stream", "fetch":
            _, text = self.call(agent, "Subscribe", [("sensor", "load"), ("where", "X == 1"), ("lease", "5")])
            name = re.search(r"<subscription>(\w+)<", text).group(1)
            s = socket.create_connection(("127.0.0.1", agent.port))
            self.addCleanup(s.close)
            body = ENVELOPE % ("Fetch", f"<subscription>{name}</subscription><wait>3</wait>", "Fetch")
            s.sendall(f"GET /stream?subscription={name} HTTP/1.1\r\n\r\n".encode() if path == "stream" else
                      f"POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            time.sleep(0.3)
            s.settimeout(2)
            try:
                for _ in range(500):
                    s.sendall(b"x" * 100000)
            except OSError:
                pass
        self.assertEqual(self.call(agent, "List")[0], 200)
        if not support.is_sanitized(agent):
            self.assertLess(self.memory(agent), before + 20000)

    def test_out_of_descriptors(self):
        port = support.free_port()
        agent = self.start("sh", "-c", f"ulimit -n 40; exec {self.nlagentd} --listen http://127.0.0.1:{port}", stderr=subprocess.PIPE)
        support.wait_until(lambda: support.can_connect(port))
        agent.port, agent.url = port, f"http://127.0.0.1:{port}"
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        time.sleep(1)
        ticks = [int(n) for n in pathlib.Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]]
        self.assertLess(sum(ticks), 50, "it does not spin")
        for s in idle:
            s.close()
        support.wait_until(lambda: self.ask(agent, "query", "load").returncode == 0)

    def test_clients_that_vanish_in_the_midst(self):
        agent = self.start_agent()
        for i in range(100):
            with socket.create_connection(("127.0.0.1", agent.port)) as s:
                body = (ENVELOPE % ("Query", "<sensor>cpu</sensor>", "Query")).encode()
                head = f"POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                s.sendall((head + body)[:len(head) + len(body) * (i % 3) // 2])
        support.wait_until(lambda: self.children(agent) == {}, what="queries that nobody waits for")
        self.assertEqual(self.call(agent, "List")[0], 200)
        support.wait_until(lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) < 30, what="closed connections")


class Access(Agent):
    TOKENS = {"reader": "r" * 20, "starter": "s" * 20, "summer": "u" * 20, "none": "x" * 20}

    def start_with_access(self):
        path = self.scratch / "access"
        path.write_text("# who may\nloopback none\ntoken %s reader read\ntoken %s starter start\ntoken %s summer summaries\n" %
                        (self.TOKENS["reader"], self.TOKENS["starter"], self.TOKENS["summer"]))
        return self.start_agent("--access", path)

    def test_tokens(self):
        agent = self.start_with_access()
        may = {"reader": "List", "starter": "List Query Subscribe Start Stop Summaries Status", "summer": "List Summaries Status",
               "none": "", None: ""}
        for who, allowed in may.items():
            headers = [("Authorization", f"Bearer {self.TOKENS[who]}")] if who else []
            for operation in "List Status Query Subscribe Start Stop Summaries".split():
                with self.subTest(who=who, operation=operation):
                    status, text = self.call(agent, operation, [] if operation == "List" else [("sensor", "load")], headers)
                    if operation in allowed.split() or (who == "reader" and operation in "List Status Summaries"):
                        self.assertEqual(status, 200, text)
                    elif who == "reader" and operation in ("Query", "Subscribe"):
                        pass  # whether it runs just now: the next test
                    else:
                        self.assertEqual(status, 500, text)
                        self.assertIn("AccessDenied", text)

    def test_readers_read_what_runs(self):
        agent = self.start_with_access()
        reader, starter = ([("Authorization", f"Bearer {self.TOKENS[who]}")] for who in ("reader", "starter"))
        status, text = self.call(agent, "Subscribe", [("sensor", "load")], reader)
        self.assertIn("may not have it started", text)
        self.assertEqual(self.call(agent, "Start", [("sensor", "load")], starter)[0], 200)
        status, text = self.call(agent, "Subscribe", [("sensor", "load")], reader)
        self.assertEqual(status, 200)
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        self.assertIn("UnknownSubscription", self.call(agent, "Fetch", [("subscription", name)], starter)[1],
                      "a subscription is its owner's")
        token = self.scratch / "token"
        token.write_text(self.TOKENS["reader"] + "\n")
        self.assertEqual(self.ask(agent, "--token-file", token, "query", "load").returncode, 0)

    def test_bad_access_files(self):
        for text, words in [("token short x read", "could be guessed"), ("nonsense", "of whom"), ("network 300.0.0.1 read", "no network"),
                            ("token " + "a" * 20 + " x fly", "rights"), ("loopback", "which rights")]:
            path = self.scratch / "access"
            path.write_text(text + "\n")
            result = self.run_program(self.nlagentd, "--access", path, "--listen", "http://127.0.0.1:0")
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)
        result = self.run_program(self.nlagentd, "--listen", f"http://0.0.0.0:{support.free_port()}")
        self.assertEqual(result.returncode, 1)
        self.assertIn("open to other machines", result.stderr)

    def make_certificates(self):
        script = """
            set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
            for n in server alice mallory; do
                openssl req -newkey rsa:2048 -nodes -keyout $n.key -out $n.csr -subj /CN=$n
                printf 'subjectAltName=IP:127.0.0.1,DNS:localhost' > ext
                openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $n.pem -days 2 -extfile ext
            done"""
        result = self.run_program("bash", "-c", script, cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_certificates(self):
        self.make_certificates()
        path = self.scratch / "access"
        path.write_text("loopback none\ncertificate alice start\ncertificate m* summaries\n")
        s = self.scratch
        agent = self.start_agent("--access", path, listen="https://127.0.0.1:%d" + f"?cert={s}/server.pem&key={s}/server.key&ca={s}/ca.pem")
        agent.url = f"https://127.0.0.1:{agent.port}"
        def as_user(name, *arguments):
            return self.ask(agent, "--ca", s / "ca.pem", "--cert", s / f"{name}.pem", "--key", s / f"{name}.key", *arguments)
        result = as_user("alice", "query", "load")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("LoadAverage", as_user("alice", "subscribe", "load", "-i", "0.1", "-s", "1").stdout)
        self.assertIn("AccessDenied", as_user("mallory", "query", "load").stderr)
        self.assertEqual(as_user("mallory", "summaries", "load").returncode, 0)
        self.assertEqual(self.ask(agent, "--ca", s / "ca.pem", "list").returncode, 1, "without a certificate")
        self.assertEqual(self.ask(agent, "--cert", s / "alice.pem", "--key", s / "alice.key", "list").returncode, 1,
                         "an agent that nobody vouches for")


class Directory(Agent):
    def test_agents_register_and_are_found_and_expire(self):
        directory = self.start_agent("--directory", name="dir")
        agents = [self.start_agent("--register", directory.url, "--ttl", "3", name=f"dpss{i}") for i in range(3)]
        support.wait_until(lambda: len(self.ask(directory, "find", "sensor=tcp").stdout.splitlines()) == 3, what="agents")
        found = self.ask(directory, "find", "sensor=tcp & host=dpss*").stdout
        self.assertEqual(sorted(line.split("\t")[0] for line in found.splitlines()), ["dpss0", "dpss1", "dpss2"])
        self.assertIn("TcpSegments", found)
        self.assertEqual(len(self.ask(directory, "find", 'host=dpss1 & (sensor=c* | events ~ *Pressure*)').stdout.splitlines()), 4)
        self.assertIn("column", self.ask(directory, "find", "host=").stderr)
        agents[0].terminate()
        agents[0].wait()
        self.assertNotIn("dpss0", self.ask(directory, "find", "sensor=tcp").stdout, "it has withdrawn")
        agents[1].kill()
        support.wait_until(lambda: "dpss1" not in self.ask(directory, "find", "").stdout, what="expiry")
        self.assertIn("dpss2", self.ask(directory, "find", "sensor=tcp").stdout)
        self.assertIn("NoDirectory", self.ask(agents[2], "find", "sensor=tcp").stderr)

    def test_dead_directory_holds_up_nothing(self):
        agent = self.start_agent("--register", f"http://127.0.0.1:{support.free_port()}")
        self.assertIn("LoadAverage", self.ask(agent, "query", "load").stdout)
        support.wait_until(lambda: "Nlagentd.NotRegistered" in self.log_text(agent))
        self.assertIn("refused", self.log_text(agent))

    def test_collect_follows_agents_that_vanish_and_come_back(self):
        first, second = self.start_agent(name="h1"), self.start_agent(name="h2")
        out = self.scratch / "all.log"
        collector = self.start(self.nlagent, "collect", "load", "memory", "-a", first.url, "-a", second.url, "-i", "0.1", "-o", out)
        support.wait_until(lambda: out.exists() and {"h1", "h2"} <= set(re.findall(r"HOST=(h\d)", out.read_text())))
        second.kill()
        second.wait()
        support.wait_until(lambda: "Nlagent.Lost" in out.read_text())
        again = self.start(self.nlagentd, "--listen", second.url, "--host", "h3", stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "HOST=h3" in out.read_text(), what="the agent that came back")
        self.assertIn("Nlagent.Back", out.read_text())
        collector.terminate()
        self.assertEqual(collector.wait(20), 0)
        support.wait_until(lambda: self.children(first) == {} and self.children(again) == {})

    def test_collector_merges_application_and_sensors(self):
        netlogd = support.program("netlogd/netlogd")
        port, out = support.free_port(), self.scratch / "merged.log"
        self.start(netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output", out, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port))
        directory = self.start_agent("--directory", name="dir")
        agent = self.start_agent("--register", directory.url, name="dpss1")
        support.wait_until(lambda: "dpss1" in self.ask(directory, "find", "").stdout)
        status, text = self.call(directory, "Collect", [("hosts", "host=dpss*"), ("sensor", "load"), ("sensor", "tcp"),
                                                        ("interval", "0.1"), ("destination", f"x-netlog://127.0.0.1:{port}")])
        self.assertEqual(status, 200, text)
        name = re.search("<collection>(.*)</collection>", text).group(1)
        self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{port}", "App.Event", "N=1")
        support.wait_until(lambda: out.exists() and all(w in out.read_text() for w in ("LoadAverage", "TcpSegments", "App.Event")))
        self.assertIn("HOST=dpss1", out.read_text())
        self.assertEqual(self.call(directory, "Release", [("collection", name)])[0], 200)
        support.wait_until(lambda: self.children(agent) == {}, what="sensors that nobody looks at")
        self.assertIn("UnknownCollection", self.call(directory, "Release", [("collection", name)])[1])
        # The same by one command into one file.
        both = self.scratch / "both.log"
        command = self.start(self.nlagent, "--directory", directory.url, "collect", "load", "--hosts", "host=dpss*", "-i", "0.1",
                             "--with", f"x-netlog://127.0.0.1:{port}", "-o", both)
        support.wait_until(lambda: both.exists() and "LoadAverage" in both.read_text())
        def written():
            self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{port}", "App.Other")
            return "App.Other" in both.read_text()
        support.wait_until(written)
        command.terminate()
        self.assertEqual(command.wait(20), 0)


class Manual(Agent):
    def test_examples_run(self):
        agent = self.start_agent("--directory")
        other = self.start_agent("--register", agent.url, name="dpss1")
        support.wait_until(lambda: "dpss1" in self.ask(agent, "find", "").stdout)
        page = (support.SOURCE / "doc/man/nlagent.1").read_text()
        commands = [line for line in page[page.index(".Sh EXAMPLES"):].splitlines()
                    if line.startswith("nlagent ") and "x-netlog" not in line]
        self.assertGreater(len(commands), 8)
        environment = {**os.environ, "NLAGENT": agent.url, "PATH": f"{support.BUILD / 'nlagent'}:{os.environ['PATH']}"}
        for command in commands:
            result = self.run_program("sh", "-c", command, env=environment, cwd=self.scratch)
            self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        self.assertIn("TcpSegments", (self.scratch / "sensors.log").read_text())
        self.assertIsNone(other.poll())

    def test_shell_sensor(self):
        path = f"{support.BUILD / 'nltools'}:{os.environ['PATH']}"
        script = support.SOURCE / "examples/sensors/logins"
        agent = self.start_agent("--sensor", f"logins=PATH={path} {script}")
        self.assertRegex(self.ask(agent, "query", "logins").stdout, r"PROG=logins LVL=System NL.EVNT=Logins LOGINS=\d+")


class Ldap(Agent):
    def start_slapd(self):
        slapd = next((p for p in ("/usr/sbin/slapd", "/usr/local/libexec/slapd") if os.path.exists(p)), None)
        if slapd is None:
            self.skipTest("slapd is not here")
        port, folder = support.free_port(), self.scratch / "db"
        folder.mkdir()
        (self.scratch / "secret").write_text("secret\n")
        (self.scratch / "slapd.conf").write_text(textwrap.dedent(f"""\
            include /etc/ldap/schema/core.schema
            include {support.SOURCE}/doc/nlagent.schema
            modulepath /usr/lib/ldap
            moduleload back_mdb
            pidfile {self.scratch}/slapd.pid
            database mdb
            suffix "dc=example"
            rootdn "cn=admin,dc=example"
            rootpw secret
            directory {folder}
            index nlSensor,nlExpires eq
            """))
        # slapd 2.5 forgets its threads' signals when it is in the background
        self.start(slapd, "-h", f"ldap://127.0.0.1:{port}", "-f", self.scratch / "slapd.conf", "-d", "0",
                   stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="slapd")
        entries = ("dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\n"
                   "dn: ou=netlogger,dc=example\nobjectClass: organizationalUnit\nou: netlogger\n")
        self.admin = ["-x", "-H", f"ldap://127.0.0.1:{port}", "-D", "cn=admin,dc=example", "-w", "secret"]
        result = self.run_program("ldapadd", *self.admin, input=entries)
        self.assertEqual(result.returncode, 0, result.stderr)
        return port

    def test_agents_register_and_are_found_and_expire(self):
        port = self.start_slapd()
        where = ("--ldap-base", "ou=netlogger,dc=example")
        agents = [self.start_agent("--register", f"ldap://127.0.0.1:{port}", *where, "--ldap-bind", "cn=admin,dc=example",
                                   "--ldap-password", self.scratch / "secret", "--ttl", "3", name=f"dpss{i}") for i in range(2)]
        def find(expression):
            result = self.run_program(self.nlagent, "--directory", f"ldap://127.0.0.1:{port}", *where, "find", expression)
            return sorted(line.split("\t")[:3] for line in result.stdout.splitlines())
        expected = [[f"dpss{i}", a.url, "tcp"] for i, a in enumerate(agents)]
        support.wait_until(lambda: find("sensor=tcp & host=dpss*") == expected, what="agents in LDAP")
        support.wait_until(lambda: len(find("sensor=c*")) == 2 * 3)
        self.assertEqual(find("sensor=tcp & host=dpss1"), expected[1:])
        agents[0].kill()
        support.wait_until(lambda: find("sensor=tcp") == expected[1:], what="expiry")
        agents[1].terminate()
        agents[1].wait()
        self.assertEqual(find(""), [])
        left = self.run_program("ldapsearch", *self.admin, "-LLL", "-b", "ou=netlogger,dc=example", "(objectClass=nlAgent)", "nlHost")
        self.assertNotIn("dpss1", left.stdout)


class Others(Agent):
    """Clients that others wrote."""

    def test_zeep(self):
        if self.run_program("/usr/bin/python3", "-c", "import zeep").returncode != 0:
            self.skipTest("python3-zeep is not here")
        agent = self.start_agent("--directory")
        script = textwrap.dedent(f"""
            import zeep
            client = zeep.Client("{agent.url}/nlagent.wsdl")
            service = client.create_service("{{urn:netlogger:agent:1}}AgentSoap", "{agent.url}/soap")
            sensors = service.List(details=True)
            assert "tcp" in [s.name for s in sensors], sensors
            assert any(f.name == "TCP.RETRANS" for s in sensors for f in s.field)
            records = service.Query(sensor="memory")
            total = [f._value_1 for f in records[0].f if f.n == "MEM.TOTAL"][0]
            assert int(total) == int(open("/proc/meminfo").read().split()[1]) * 1024
            assert records[0].event == "MemoryFree"
            name = service.Subscribe(sensor="cpu", interval=0.1).subscription
            answer = service.Fetch(subscription=name, wait=10, most=5)
            assert answer.missed == 0 and len(answer.record) >= 1, answer
            service.Unsubscribe(subscription=name)
            service.Register(agent=dict(host="z1", url="http://z1:1", ttl=60, sensor=[dict(name="tcp", what="w", events="T")]))
            assert service.Find(expression="host=z*")[0].sensor[0].name == "tcp"
            try:
                service.Query(sensor="nosuch")
                assert False
            except zeep.exceptions.Fault as fault:
                assert fault.message.startswith("UnknownSensor"), fault
            print("all well")
            """)
        result = self.run_program("/usr/bin/python3", "-c", script)
        self.assertIn("all well", result.stdout, result.stderr)

    def test_gsoap(self):
        if self.run_program("sh", "-c", "command -v wsdl2h soapcpp2").returncode != 0:
            self.skipTest("gsoap is not here")
        agent = self.start_agent()
        for name in "nlagent.wsdl", "netlogger.xsd":
            (self.scratch / name).write_bytes((support.SOURCE / "doc" / name).read_bytes())
        steps = [["wsdl2h", "-c", "-o", "nlagent.h", "nlagent.wsdl"], ["soapcpp2", "-c", "-C", "-L", "-x", "nlagent.h"]]
        for step in steps:
            result = self.run_program(*step, cwd=self.scratch)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        header = (self.scratch / "nlagent.h").read_text()
        prefix = re.search(r"int __(ns\d+)__Query\(", header).group(1)
        record = re.search(r"\* *(\w+__record)\b", header).group(1)  # with the namespace's prefix
        (self.scratch / "main.c").write_text(textwrap.dedent(f"""\
            #include "soapH.h"
            #include "AgentSoap.nsmap"
            int main(int argc, char **argv)
            {{
                struct soap *soap = soap_new();
                struct _{prefix}__Query query = {{.sensor = argv[2]}};
                struct _{prefix}__QueryResponse answer;
                if (soap_call___{prefix}__Query(soap, argv[1], NULL, &query, &answer) != SOAP_OK) {{
                    soap_print_fault(soap, stderr);
                    return 1;
                }}
                for (int i = 0; i < answer.__sizerecord; i++)
                    printf("%s %d\\n", answer.{record}[i].event, answer.{record}[i].__sizef);
                return 0;
            }}
            """))
        result = self.run_program(support.CC, "-o", "client", "main.c", "soapC.c", "soapClient.c", "-lgsoap", cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_program(self.scratch / "client", agent.url + "/soap", "load")
        self.assertIn("LoadAverage 5", result.stdout, result.stderr)
        result = self.run_program(self.scratch / "client", agent.url + "/soap", "nosuch")
        self.assertIn("UnknownSensor", result.stderr)

    def test_curl_like_by_hand(self):
        agent = self.start_agent()
        status, text = self.call(agent, "Subscribe", [("sensor", "load"), ("interval", "0.1")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=30)
        connection.request("GET", f"/stream?subscription={name}&format=xml")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertIn(b"<record xmlns=", answer.readline())
        connection.close()
        support.wait_until(lambda: self.children(agent) == {})


if __name__ == "__main__":
    support.main()
