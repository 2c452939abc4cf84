"""nlagentd: bad input and access rights."""
import html
import http.client
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import nlagents
import support


class Hostile(nlagents.Agent):
    def memory(self, agent):
        return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{agent.pid}/status").read()).group(1))

    def test_each_is_refused_with_a_fault(self):
        agent = self.start_agent("--serve-directory")
        call = nlagents.ENVELOPE % ("List", "", "List")
        laughs = '<!DOCTYPE l [<!ENTITY a "lol">' + "".join(
            f'<!ENTITY {chr(98 + i)} "' + f"&{chr(97 + i)};" * 10 + '">' for i in range(12)) + "]>"
        secret = self.scratch / "secret"
        secret.write_text("secret-words")
        cases = {
            "entity expansion": (call.replace('"1.0"?>', '"1.0"?>' + laughs).replace("></List", ">&m;</List"), "DOCTYPE"),
            "external entity": (call.replace('"1.0"?>', f'"1.0"?><!DOCTYPE l [<!ENTITY x SYSTEM "file://{secret}">]>')
                                .replace("></List", ">&x;</List"), "DOCTYPE"),
            "external subset": (call.replace('"1.0"?>', f'"1.0"?><!DOCTYPE l SYSTEM "file://{secret}">'), "DOCTYPE"),
            "unknown entity": (call.replace("></List", ">&x;</List"), "Entity"),
            "deep": (nlagents.ENVELOPE % ("List", "<a>" * 60000, "List"), "nested too deep"),
            "deep and ended": (nlagents.ENVELOPE % ("List", "<a>" * 20 + "</a>" * 20, "List"), "nested too deep"),
            "many": (nlagents.ENVELOPE % ("List", "<a/>" * 50000, "List"), "too many elements"),
            "a name": (nlagents.ENVELOPE % ("List", f"<{'a' * 200000}/>", "List"), "Client"),
            "nothing": ("", "Client"),
            "no XML": ("hello", "Client"),
            "no SOAP": ("<a/>", "not a SOAP Envelope"),
            "SOAP 1.2": (call.replace("schemas.xmlsoap.org/soap/envelope/", "www.w3.org/2003/05/soap-envelope"), "VersionMismatch"),
            "must understand": (call.replace("<s:Body>", '<s:Header><x s:mustUnderstand="1"/></s:Header><s:Body>'), "MustUnderstand"),
            "another's": (call.replace("urn:netlogger:agent:1", "urn:x"), "namespace"),
            "unknown": (nlagents.ENVELOPE % ("Nothing", "", "Nothing"), "NotFound"),
            "two": (call.replace("</s:Body>", "<b/></s:Body>"), "more than one"),
            "no body": (re.sub("<s:Body>.*</s:Body>", "<s:Body/>", call), "the Body is empty"),
            "half": (call[:-40], "Client"),
            "instruction": (call.replace("<s:Body>", "<?x y?><s:Body>"), "processing instructions"),
            "no number": (nlagents.ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>x</interval>", "Subscribe"), "interval: invalid number"),
            "not a number": (nlagents.ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>nan</interval>", "Subscribe"), "interval: invalid number"),
            "negative": (nlagents.ENVELOPE % ("Subscribe", "<sensor>load</sensor><interval>-1</interval>", "Subscribe"), "BadRequest"),
            "a huge value": (nlagents.ENVELOPE % ("Query", f"<sensor>{'c' * 200000}</sensor>", "Query"), "BadRequest"),
            "a huge attribute": (nlagents.ENVELOPE % ("List", f'<a b="{"x" * 200000}"/>', "List"), "an attribute is too large"),
            "a huge namespace": (nlagents.ENVELOPE % ("List", f'<a xmlns:b="{"x" * 200000}"/>', "List"), "an attribute is too large"),
            "a huge header": (call.replace("<s:Body>", f'<s:Header><h a="{"x" * 20000}"/></s:Header><s:Body>'), "an attribute is too large"),
            "many attributes": (nlagents.ENVELOPE % ("List", "<a " + " ".join(f'a{i}=""' for i in range(20000)) + "/>", "List"), "too many attributes"),
            "UTF-16": (call.replace('"1.0"', '"1.0" encoding="UTF-16"').encode("utf-16"), None),
            "a file as destination": (nlagents.ENVELOPE % ("Collect", "<agent>http://a</agent><sensor>cpu</sensor><destination>/tmp/x"
                                                  "</destination>", "Collect"), "invalid destination; use a collector"),
            "301 agents": (nlagents.ENVELOPE % ("Collect", "<agent>http://a</agent>" * 301 + "<sensor>cpu</sensor><destination>x-netlog://h"
                                                "</destination>", "Collect"), "agent: too many values; the maximum is 300"),
            "513 sensors": (nlagents.ENVELOPE % ("Register", "<agent><host>h</host><url>http://h</url>" + "<sensor><name>s</name></sensor>" * 513
                                                 + "</agent>", "Register"), "LimitReached: too many sensors"),
        }
        # Files that would be written and read with the agent's rights.
        for option in ("backup=file:/tmp/x", "spool=/tmp/x", "activation=/tmp/x", "ca=/tmp/x", "cert=/tmp/x", "key=/tmp/x", "append=no",
                       "buffer=1", "spool_size=1m", "spool_full=stop", "another=1", "b%61ckup=file:/tmp/x", "ring=64k&amp;backup=/tmp/x"):
            name = option.rpartition(";")[2].partition("=")[0].replace("%61", "a")
            cases[option] = (nlagents.ENVELOPE % ("Collect", "<agent>http://a</agent><sensor>cpu</sensor><destination>x-netlogs://h?"
                                                  f"{option}</destination>", "Collect"), f"the destination's option \"{name}\" is not permitted")
        before = self.memory(agent)
        for name, (body, words) in cases.items():
            with self.subTest(name):
                status, text = self.post(agent, body if isinstance(body, bytes) else body.encode())
                if words is not None:
                    self.assertEqual(status, 500, text)
                    self.assertIn("Fault", text)
                    self.assertIn(words, html.unescape(text))
                self.assertNotIn("secret-words", text)
        if not support.is_sanitized(agent):
            self.assertLess(self.memory(agent), before + 40000)
        self.assertEqual(self.call(agent, "List")[0], 200)

    def test_an_agents_url_names_no_files(self):
        """Clients may get an agent's URL from a directory, so the URL must not make them read files."""
        for url in "https://127.0.0.1:1?key=%2Fetc%2Fpasswd", "https://127.0.0.1:1/?ca=x", "http://127.0.0.1:1?x=y":
            result = self.run_program(self.nlagent, "--agent", url, "list")
            self.assertEqual(result.returncode, 2, url)
            self.assertIn("use http://HOST[:PORT] or https://HOST[:PORT]", result.stderr)

    def test_sizes_and_http(self):
        agent = self.start_agent()
        def refused(function):
            try:
                return function()[0] >= 400
            except (OSError, http.client.HTTPException):
                return True
        self.assertTrue(refused(lambda: self.post(agent, b"x" * 3000000)))
        self.assertTrue(refused(lambda: self.post(agent, b"x", headers=[("X", "y" * 100000)])))
        self.assertTrue(refused(lambda: self.post(agent, nlagents.ENVELOPE % ("List", "", "List"), content_type="text/plain")))
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
            body = nlagents.ENVELOPE % ("Fetch", f"<subscription>{name}</subscription><wait>3</wait>", "Fetch")
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
        agent = self.start("sh", "-c", f"ulimit -n 40; exec {self.nlagentd} --foreground --listen http://127.0.0.1:{port}", stderr=subprocess.PIPE)
        support.wait_until(lambda: support.can_connect(port))
        agent.port, agent.url = port, f"http://127.0.0.1:{port}"
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        time.sleep(1)
        ticks = [int(n) for n in pathlib.Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]]
        self.assertLess(sum(ticks), 50, "it does not spin")
        for s in idle:
            s.close()
        support.wait_until(lambda: self.ask(agent, "query", "load").returncode == 0)

    def raw(self, agent, request, timeout=10):
        """Returns the response to bytes, up to the agent's end of the connection; None if the agent does not close."""
        with socket.create_connection(("127.0.0.1", agent.port), timeout=timeout) as s:
            answer = b""
            try:
                s.sendall(request)
                while data := s.recv(4096):
                    answer += data
            except ConnectionError:
                pass
            except TimeoutError:
                return None
            return answer

    def test_other_methods_are_refused_at_once(self):
        agent = self.start_agent()
        for request, status in [
                (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", b" 405 "),
                (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b" 405 "),
                (b"DELETE /soap HTTP/1.1\r\nHost: localhost\r\n\r\n", b" 405 "),
                (b"BREW /soap HTTP/1.1\r\nHost: localhost\r\n\r\n", b" 405 "),
                (b"P", None), (b"PU", b" 405 "), (b"get / HTTP/1.1\r\n\r\n", b" 400 "),
                (b"\x16\x03\x01\x02\0\x01\0", b" 400 "), (b"\0" * 3000, b" 400 "), (b"nonsense\r\n", b" 400 "),
                (b"\r\nGET / HTTP/1.0\r\n\r\n", b" 400 "), (b"GET / HTTP/1.0\r\n\r\n", b" 404 ")]:
            answer = self.raw(agent, request, 0.5 if status is None else 10)
            if status is None:
                self.assertIsNone(answer, request)
            else:
                self.assertIsNotNone(answer, f"{request[:30]} is not answered")
                self.assertIn(status, answer, request[:30])
        self.assertEqual(self.call(agent, "List")[0], 200)

    def test_slow_requests_have_a_deadline(self):
        """Clients send half of a header or half of a body, or open connections without TLS or a request."""
        agent = self.start_agent()
        halves = [b"", b"GET /nlagent.wsdl HTTP/1.1\r\nHost: loc", b"POST /soap HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\n"
                  b"Content-Length: 1000\r\n\r\nxxx"]
        slow = [socket.create_connection(("127.0.0.1", agent.port), timeout=60) for _ in halves]
        begun = time.monotonic()
        for s, half in zip(slow, halves):
            s.sendall(half)
        over = set()
        while len(over) < len(slow) and time.monotonic() - begun < 40:
            for s in slow:
                s.settimeout(0.5)
                try:
                    s.sendall(b" ") if halves[slow.index(s)] else None  # single bytes now and then do not extend the time limit
                    if s.recv(100) == b"":
                        over.add(s)
                except TimeoutError:
                    pass
                except OSError:
                    over.add(s)
        self.assertEqual(len(over), len(slow))
        self.assertGreater(time.monotonic() - begun, 15)
        for s in slow:
            s.close()

    def test_silent_connections_lock_nobody_out(self):
        for accepted in "one by one", "all at once":
            with self.subTest(accepted):
                agent = self.start_agent("--max-connections", "50", "--max-per-address", "40", name=accepted[:3])
                self.raw(agent, b"GET / HTTP/1.0\r\n\r\n")  # nlagentd has then also closed the connection of start_agent
                if accepted == "all at once":
                    agent.send_signal(signal.SIGSTOP)
                silent = [socket.create_connection(("127.0.0.1", agent.port), source_address=(f"127.0.0.{2 + i % 2}", 0))
                          for i in range(100)]
                continued = threading.Timer(0.5, agent.send_signal, [signal.SIGCONT])
                begun = time.monotonic()
                continued.start()
                self.assertEqual(self.call(agent, "List")[0], 200, "from an address that has no other connection")
                self.assertLess(time.monotonic() - begun, 5)
                for s in silent:
                    s.close()
                support.wait_until(lambda: "Nlagentd.Displaced" in self.log_text(agent), what="the message")
                support.wait_until(lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) < 30, what="closed connections")

    def test_expressions_that_cost_too_much(self):
        """nlagentd ends the subscription with the reason as its last record. Until then, it serves other clients."""
        go = self.scratch / "go"
        agent = self.start_agent("--sensor", f"long=while [ ! -e {go} ]; do echo; sleep 0.1; done; s=$(head -c 60000 /dev/zero | tr '\\0' a); "
                                 "i=0; while :; do i=$((i+1)); echo \"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=L N=$i S=$s\"; "
                                 "sleep 0.05; done", "--max-subscriptions", "1000", "--max-per-consumer", "1000")
        costly = html.escape("S =~ 'a[ab]{124}c'", quote=False)
        honest = self.subscribe(agent, "long", "-i", "0.01", "--where", "N > 0")
        support.wait_until(lambda: "consumers=1 " in self.ask(agent, "list").stdout, what="the honest client")
        readers = []
        for i in range(200):
            _, text = self.call(agent, "Subscribe", [("sensor", "long"), ("where", costly), ("interval", "0.01")])
            if i % 10 == 0:
                readers.append(socket.create_connection(("127.0.0.1", agent.port), timeout=1))
                self.addCleanup(readers[-1].close)
                subscription = re.search(r"<subscription>(\w+)<", text).group(1)
                readers[-1].sendall(f"GET /stream?subscription={subscription} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        go.touch()
        for _ in range(20):
            self.assertEqual(self.call(agent, "List")[0], 200)
        # The remaining subscriptions, some of this machine, cost no more than the budget.
        support.wait_until(lambda: self.log_text(agent).count("Nlagentd.CostlyFilter") > 150, what="most are ended")
        ended = 0
        for reader in readers:
            said, until = b"", time.monotonic() + 1
            while not said.endswith(b"\r\n0\r\n\r\n") and time.monotonic() < until:
                try:
                    said += reader.recv(65536)
                except TimeoutError:
                    break
            if said.endswith(b"\r\n0\r\n\r\n"):
                self.assertIn(b"NL.EVNT=Nlagentd.CostlyFilter", said)
                ended += 1
        self.assertGreater(ended, 10)
        for _ in range(2):
            self.assertIn("NL.EVNT=L N=", honest.stdout.readline())

    def test_a_blocked_standard_error_holds_nobody_up(self):
        """nlagentd drops and counts messages and events of its own that it cannot write at once."""
        config, port, reloads = self.scratch / "conf", support.free_port(), 200
        config.write_text(f"listen http://127.0.0.1:{port}\nlog file:///dev/stderr?ring=64k\n")
        read_end, write_end = os.pipe()
        agent = self.start(self.nlagentd, "--foreground", "--config", config, stderr=write_end)
        agent.port = port
        support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        own = os.open(f"/proc/self/fd/{write_end}", os.O_WRONLY | os.O_NONBLOCK)  # nlagentd's descriptor stays blocking
        os.close(write_end)
        try:
            while True:
                os.write(own, b"\n")
        except BlockingIOError:
            os.close(own)
        config.write_text("nonsense\n")
        for _ in range(reloads):
            agent.send_signal(signal.SIGHUP)
            self.assertEqual(self.call(agent, "List")[0], 200)
        said = bytearray()
        reader = threading.Thread(target=lambda: [said.extend(data) for data in iter(lambda: os.read(read_end, 65536), b"")])
        reader.start()
        support.wait_until(lambda: b"Nlagentd.ReloadRefused" in said, what="the pipe is read")
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: b" dropped: standard error was blocked" in said, what="the messages are counted")
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(20), 0)
        reader.join()
        os.close(read_end)

    def test_requests_for_other_hosts_are_refused(self):
        """DNS rebinding: the name of a web page resolves to this machine, and the browser sends that name as Host."""
        agent = self.start_agent(listen="http://127.0.0.1:%d?names=alias.example,other.example")
        for host, status in [("localhost", 200), ("LOCALHOST.:80", 200), (f"127.0.0.1:{agent.port}", 200), ("[::1]:80", 200),
                             ("a", 200), (socket.gethostname(), 200), ("alias.example", 200), ("other.example:1", 200),
                             ("evil.example", 421), ("example", 421), ("127.0.0.1.evil.example", 421), ("198.51.100.7", 421),
                             ("localhost@evil.example", 400)]:
            self.assertEqual(self.call(agent, "List", headers=[("Host", host)])[0], status, host)
            self.assertIn(f" {status} ".encode(), self.raw(agent, f"GET /nlagent.wsdl HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()), host)
        for origin, status in [(f"http://localhost:{agent.port}", 200), ("http://evil.example", 403), ("null", 403),
                               ("http://localhost:1", 403)]:
            headers = [("Host", f"localhost:{agent.port}"), ("Origin", origin)]
            self.assertEqual(self.call(agent, "List", headers=headers)[0], status, origin)

    def test_clients_that_vanish_in_the_midst(self):
        agent = self.start_agent()
        for i in range(100):
            with socket.create_connection(("127.0.0.1", agent.port)) as s:
                body = (nlagents.ENVELOPE % ("Query", "<sensor>cpu</sensor>", "Query")).encode()
                head = f"POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                s.sendall((head + body)[:len(head) + len(body) * (i % 3) // 2])
        support.wait_until(lambda: self.children(agent) == {}, what="queries that nobody waits for")
        self.assertEqual(self.call(agent, "List")[0], 200)
        support.wait_until(lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) < 30, what="closed connections")


class Access(nlagents.Agent):
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
                        pass  # this test does not check whether the sensor runs; the next test does
                    else:
                        self.assertEqual(status, 500, text)
                        self.assertIn("AccessDenied", text)

    def test_readers_read_what_runs(self):
        agent = self.start_with_access()
        reader, starter = ([("Authorization", f"Bearer {self.TOKENS[who]}")] for who in ("reader", "starter"))
        status, text = self.call(agent, "Subscribe", [("sensor", "load")], reader)
        self.assertIn("you are not allowed to start it", text)
        self.assertEqual(self.call(agent, "Start", [("sensor", "load")], starter)[0], 200)
        status, text = self.call(agent, "Subscribe", [("sensor", "load")], reader)
        self.assertEqual(status, 200)
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        self.assertIn("NotFound", self.call(agent, "Fetch", [("subscription", name)], starter)[1],
                      "a subscription is its owner's")
        token = self.scratch / "token"
        token.write_text(self.TOKENS["reader"] + "\n")
        self.assertEqual(self.ask(agent, "--token-file", token, "query", "load").returncode, 0)

    def test_bad_access_files(self):
        for text, words in [("token short x read", "the token is too short"), ("nonsense", "unknown kind"), ("network 300.0.0.1 read", "is not a network"),
                            ("token " + "a" * 20 + " x fly", "unknown right"), ("loopback", "missing rights")]:
            path = self.scratch / "access"
            path.write_text(text + "\n")
            result = self.run_program(self.nlagentd, "--access", path, "--listen", "http://127.0.0.1:0")
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)
        url = f"http://0.0.0.0:{support.free_port()}"
        result = self.run_program(self.nlagentd, "--listen", url)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"nlagentd: listen on {url}: the address is open to other hosts; add --allow NETWORK, or require client "
                      "certificates: https://HOST?cert=FILE&key=FILE&ca=FILE\n", result.stderr)

    def make_certificates(self):
        script = """
            set -e
            openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
            for n in server alice mallory nameless; do
                subject=/CN=$n
                [ $n = nameless ] && subject=/O=somebody
                openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $n.key -out $n.csr -subj $subject
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
            return self.ask(agent, "--ca", s / "ca.pem", "--cert", s / f"{name}.pem", "--cert-key", s / f"{name}.key", *arguments)
        result = as_user("alice", "query", "load")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("LoadAverage", as_user("alice", "subscribe", "load", "-i", "0.1", "--duration", "1").stdout)
        self.assertIn("AccessDenied", as_user("mallory", "query", "load").stderr)
        result = as_user("mallory", "summaries", "load")
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (1, "", "nlagent: load: no summaries yet; nlagentd computes them after the first request, while the sensor runs\n"))
        self.assertEqual(self.ask(agent, "--ca", s / "ca.pem", "list").returncode, 1, "without a certificate")
        result = self.run_program("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=alice", "-days", "2",
                                  "-keyout", s / "self.key", "-out", s / "self.pem")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.ask(agent, "--ca", s / "ca.pem", "--cert", s / "self.pem", "--cert-key", s / "self.key", "list")
        self.assertEqual(result.returncode, 1, "a certificate of an unknown CA")
        self.assertEqual(as_user("alice", "query", "load").returncode, 0, "and the agent still serves others")
        self.assertEqual(self.ask(agent, "--cert", s / "alice.pem", "--cert-key", s / "alice.key", "list").returncode, 1,
                         "an agent that nobody vouches for")

    def test_peers_by_name(self):
        self.make_certificates()
        s = self.scratch
        agent = self.start_agent(listen="https://127.0.0.1:%d" + f"?cert={s}/server.pem&key={s}/server.key&ca={s}/ca.pem&peers=alice")
        agent.url = f"https://127.0.0.1:{agent.port}"
        def as_user(name):
            return self.ask(agent, "--ca", s / "ca.pem", "--cert", s / f"{name}.pem", "--cert-key", s / f"{name}.key", "list")
        self.assertEqual(as_user("alice").returncode, 0)
        self.assertEqual(as_user("mallory").returncode, 1)

    def test_parts_of_a_message_that_come_together_within_tls(self):
        """Many clients send the header and the body in separate TLS records; nlagentd must read both at once."""
        self.make_certificates()
        s = self.scratch
        agent = self.start_agent(listen="https://127.0.0.1:%d" + f"?cert={s}/server.pem&key={s}/server.key")
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = ssl.create_default_context(cafile=str(s / "ca.pem")).wrap_bio(received, sent, server_hostname="127.0.0.1")
        body = (nlagents.ENVELOPE % ("List", "", "List")).encode()
        with socket.create_connection(("127.0.0.1", agent.port), timeout=30) as connection:
            def repeat(function):
                while True:
                    try:
                        return function()
                    except ssl.SSLWantReadError:
                        connection.sendall(sent.read())
                        received.write(connection.recv(1 << 16))
            repeat(tls.do_handshake)
            tls.write(b"POST /soap HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n" % len(body))
            tls.write(body)
            connection.sendall(sent.read())
            self.assertIn(b" 200 ", repeat(lambda: tls.read(1000)))

    def test_networks_certificates_and_tokens(self):
        """A token alone does not permit a connection. If no networks are allowed, a certificate with any name does."""
        self.make_certificates()
        s, own, port = self.scratch, self.own_address(), support.free_port()
        file, log = s / "nlagentd.conf", s / "a.log"
        listen = f"listen https://0.0.0.0:{port}?cert={s}/server.pem&key={s}/server.key"
        file.write_text(f"{listen}\nallow {own}\nlog file://{log}\n")
        agent = self.start(self.nlagentd, "--foreground", "--config", file, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        context = ssl.create_default_context(cafile=str(s / "ca.pem"))
        context.check_hostname = False

        def ask(connection, headers=()):
            connection.request("POST", "/soap", nlagents.ENVELOPE % ("List", "", "List"), {"Content-Type": "text/xml", **dict(headers)})
            return connection.getresponse().read().decode()

        def connect():
            connection = http.client.HTTPSConnection(own, port, timeout=30, context=context)
            self.addCleanup(connection.close)
            return connection

        early = connect()
        self.assertIn("ListResponse", ask(early))
        file.write_text(f"{listen}&ca={s}/ca.pem\nlog file://{log}\n")
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: "Nlagentd.Reload " in log.read_text(), what="the reload")
        with self.assertRaises(OSError, msg="nlagentd has closed the connection of a client that is not allowed any more"):
            ask(early)
        for name in "alice", "nameless":
            context.load_cert_chain(s / f"{name}.pem", s / f"{name}.key")
            self.assertIn("ListResponse", ask(connect()), name)
        file.write_text(f"{listen}&ca={s}/ca.pem\nallow 198.51.100.0/24\nlog file://{log}\n")
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: log.read_text().count("Nlagentd.Reload ") == 2, what="the reload")
        for _ in range(50):  # closed without a byte of a response or of TLS
            with socket.create_connection((own, port), timeout=30) as closed:
                try:
                    self.assertEqual(closed.recv(100), b"", "with networks, those hold for certificates too")
                except ConnectionError:
                    pass
        self.assertIn("Nlagentd.Refused", support.wait_until(lambda: "Nlagentd.Refused" in log.read_text() and log.read_text()))


if __name__ == "__main__":
    support.main()
