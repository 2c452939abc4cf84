"""nlkernel trace reads the protocols of real servers, and keeps no value: MariaDB, dnsmasq, and nginx
with TLS."""
import collections
import os
import pwd
import shutil
import socket
import struct
import subprocess
import time

import support
from collector import Authority
from test_nlkernel_trace import Tracing

MYSQL_CLIENT = r"""
import sys, pymysql
connection = pymysql.connect(host="127.0.0.1", port=int(sys.argv[1]), user="tester", password="secret1", autocommit=True)
if sys.argv[2:] == ["unbuffered"]:  # reads the head of each packet first, and then the packet
    connection._rfile = connection._sock.makefile("rb", buffering=0)
cursor = connection.cursor()
cursor.execute("CREATE DATABASE IF NOT EXISTS shop")
connection.select_db("shop")
cursor.execute("CREATE TABLE orders (name VARCHAR(200))")
for i in range(20):
    cursor.execute("INSERT INTO orders VALUES ('secret2 FROM values')")
    cursor.execute("SELECT name FROM `orders` WHERE name <> \"secret3\" LIMIT 1 # secret4")
    cursor.fetchall()
cursor.execute("SELECT a.name, b.name FROM orders a, orders b")
assert len(cursor.fetchall()) == 400
try:
    cursor.execute("SELECT secret5 FROM missing")
except pymysql.err.ProgrammingError:
    pass
cursor.execute("UPDATE orders SET name = 'secret6'")
cursor.execute("SELECT SLEEP(0.3)")
connection.ping()
connection.close()
"""

HTTPS_SERVER = r"""
import http.server, socket, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""

HTTPS_CLIENT = r"""
import http.client, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
sys.stdin.readline()
for first in 0, 4:
    connection = http.client.HTTPSConnection("localhost", int(sys.argv[1]), context=context)
    for i in range(first, first + 4):
        connection.request("GET", f"/item{i}{'missing' if i == 3 else ''}?token=secret", headers={"Authorization": "secret"})
        connection.getresponse().read()
    connection.close()
"""

HTTPS_PROXY = """
daemon off;
master_process off;
pid {directory}/nginx.pid;
error_log {directory}/nginx.err;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  upstream server {{ server 127.0.0.1:{server}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate};
    ssl_certificate_key {certificate};
    location / {{ proxy_pass https://server; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
"""


class Protocols(Tracing):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("tracing needs root")

    def need(self, program):
        path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
        if path is None:
            self.skipTest(f"no {program} here")
        return path

    def test_mysql(self):
        server, install = self.need("mariadbd"), self.need("mariadb-install-db")
        if subprocess.run(["/usr/bin/python3", "-c", "import pymysql"], capture_output=True).returncode != 0:
            self.skipTest("no python3-pymysql here")
        user = pwd.getpwnam("mysql")
        data, port = self.scratch / "mysql", support.free_port()
        self.scratch.chmod(0o755)
        data.mkdir()
        shutil.chown(data, user.pw_uid, user.pw_gid)
        result = self.run_program(install, "--no-defaults", f"--datadir={data}", "--user=mysql", "--skip-test-db", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        with (self.scratch / "mysql.err").open("w") as errors:
            process = self.start(server, "--no-defaults", f"--datadir={data}", "--user=mysql", f"--port={port}", "--bind-address=127.0.0.1",
                                 f"--socket={data}/socket", f"--pid-file={data}/pid", "--skip-grant-tables", "--skip-name-resolve",
                                 stdout=subprocess.DEVNULL, stderr=errors)
        support.wait_until(lambda: process.poll() is not None or support.can_connect(port), what="MariaDB to listen")
        tracer = self.trace("--port", str(port))
        client = self.run_program("/usr/bin/python3", "-c", MYSQL_CLIENT, str(port), timeout=60)
        self.assertEqual(client.returncode, 0, client.stderr)
        time.sleep(0.1)
        records, _ = self.finish(tracer)
        self.assertNotIn("secret", self.log.read_text())
        names = collections.Counter(r["NL.EVNT"] for r in records)
        for suffix in "", ".call":
            self.assertEqual({name: names[name + suffix] for name in (
                "mysql.login", "mysql.INSERT.orders", "mysql.SELECT.orders", "mysql.SELECT.missing", "mysql.UPDATE.orders", "mysql.SELECT.SLEEP",
                "mysql.ping", "mysql.quit")},
                {"mysql.login": 1, "mysql.INSERT.orders": 20, "mysql.SELECT.orders": 21, "mysql.SELECT.missing": 1, "mysql.UPDATE.orders": 1,
                 "mysql.SELECT.SLEEP": 1, "mysql.ping": 1, "mysql.quit": 1}, names)
        by_name = {r["NL.EVNT"]: r for r in records}
        self.assertEqual(by_name["mysql.SELECT.missing"]["STATUS"], "1146")
        self.assertEqual(by_name["mysql.SELECT.missing"]["LVL"], "Error")
        self.assertGreaterEqual(int(by_name["mysql.SELECT.SLEEP"]["DUR.NS"]), 300_000_000)
        self.assertEqual(by_name["mysql.SELECT.missing.call"]["STATUS"], "1146")
        ids = {r["SPAN.ID"] for r in records if r["NL.EVNT"].endswith(".call")}
        servers = [r for r in records if r["NL.EVNT"].startswith("mysql.") and not r["NL.EVNT"].endswith(".call")]
        self.assertEqual([r for r in servers if r.get("PARENT.ID") not in ids or r["EDGE"] != "message"], [])
        # The client reads the head of each packet before the rest of the packet.
        tracer = self.trace("--port", str(port), log="heads.log")
        client = self.run_program("/usr/bin/python3", "-c", MYSQL_CLIENT.replace("CREATE TABLE", "CREATE OR REPLACE TABLE"), str(port), "unbuffered", timeout=60)
        self.assertEqual(client.returncode, 0, client.stderr)
        time.sleep(0.1)
        records, _ = self.finish(tracer, "heads.log")
        by_name = {r["NL.EVNT"]: r for r in records}
        self.assertEqual((by_name["mysql.SELECT.missing.call"]["STATUS"], by_name["mysql.SELECT.missing.call"]["LVL"]), ("1146", "Error"))
        self.assertNotIn("STATUS", by_name["mysql.INSERT.orders.call"])
        # A client sends hostile bytes instead of a login. The server rejects the bytes, and nlkernel continues.
        tracer = self.trace("--port", str(port), log="hostile.log")
        for text in b"\xff\xff\xff\x00\x03SELECT", b"\x00" * 2000, b"\x01\x00\x00\x00\x0e" * 400, os.urandom(1500):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
                connection.sendall(text)
                time.sleep(0.05)
        self.finish(tracer, "hostile.log")

    def test_reply_in_pieces(self):
        server, port = self.need("redis-server"), support.free_port()
        self.start(server, "--port", str(port), "--save", "", "--appendonly", "no", stdout=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="Redis to listen")
        tracer = self.trace("--port", str(port))
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            for size in 1, 3, 5, 1000:
                for command, end in ((b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n", b"+OK\r\n"), (b"*2\r\n$4\r\nLLEN\r\n$1\r\nk\r\n", b"value\r\n"),
                                     (b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"$1\r\nv\r\n")):
                    connection.sendall(command)
                    reply = b""
                    while not reply.endswith(end):
                        reply += connection.recv(size)
        time.sleep(0.1)
        records, _ = self.finish(tracer)
        found = collections.Counter((r["NL.EVNT"], r.get("STATUS")) for r in records if r["NL.EVNT"].startswith("redis."))
        for suffix in "", ".call":
            self.assertEqual([found["redis.SET" + suffix, None], found["redis.GET" + suffix, None], found["redis.LLEN" + suffix, "WRONGTYPE"]],
                             [4, 4, 4], found)

    def test_lines_that_rules_describe(self):
        server, port = self.need("beanstalkd"), support.free_port()
        self.start(server, "-l", "127.0.0.1", "-p", str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="beanstalkd to listen")
        rules = self.scratch / "queue.rules"
        rules.write_text((support.SOURCE / "nlkernel/rules/beanstalkd.rules").read_text().replace("11300", str(port)))
        tracer = self.trace("--port", str(port), "--rules", rules)
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, connection.makefile("rb") as replies:
            def ask(request, expected, body=False):
                connection.sendall(request)
                line = replies.readline()
                self.assertTrue(line.startswith(expected), line)
                return replies.read(int(line.split()[-1]) + 2) if body else line
            for size in 6, 5000:
                for i in range(20):
                    job = ask(b"put 0 0 60 %d\r\n%s\r\n" % (size, b"secret" * (size // 6) + b"x" * (size % 6)), b"INSERTED").split()[1]
                    ask(b"reserve\r\n", b"RESERVED", True)
                    ask(b"delete %s\r\n" % job, b"DELETED")
            ask(b"delete 4711\r\n", b"NOT_FOUND")
            ask(b"watch secret\r\n", b"WATCHING")
            ask(b"delete secret\r\n", b"BAD_FORMAT")
            connection.sendall(b"quit\r\n")
        time.sleep(0.1)
        records, _ = self.finish(tracer)
        self.assertNotIn("secret", self.log.read_text())
        found = collections.Counter((r["NL.EVNT"], r.get("STATUS")) for r in records if r["NL.EVNT"].startswith("beanstalkd."))
        for suffix in "", ".call":
            self.assertEqual({key: found["beanstalkd." + key[0] + suffix, key[1]] for key in (
                ("put", "INSERTED"), ("reserve", "RESERVED"), ("delete", "DELETED"), ("delete", "NOT_FOUND"), ("watch", "WATCHING"),
                ("delete", "BAD_FORMAT"), ("quit", None))},
                {("put", "INSERTED"): 40, ("reserve", "RESERVED"): 40, ("delete", "DELETED"): 40, ("delete", "NOT_FOUND"): 1,
                 ("watch", "WATCHING"): 1, ("delete", "BAD_FORMAT"): 1, ("quit", None): 1}, found)
        self.assertEqual({r["EDGE"] for r in records if not r["NL.EVNT"].endswith(".call")}, {"message"})
        result = self.run_program(self.nlkernel, "trace", "--port", "1", "--rules", "stopwatch", "--dest", self.scratch / "x.log")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, "stopwatch.rules: no section \\[protocol NAME\\]\n")

    def test_lengths_that_rules_describe(self):
        server, dig, address = self.need("dnsmasq"), self.need("dig"), "127.77.5.5"
        process = self.start(server, "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", f"--listen-address={address}", "--bind-interfaces",
                             "--user=root", "--pid-file=", "--address=/known.example/10.1.2.3", "--no-resolv", stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while socket.socket().connect_ex((address, 53)) != 0:
            if process.poll() is not None or time.monotonic() > deadline:
                self.skipTest("dnsmasq cannot use port 53 here")
            time.sleep(0.05)
        rules = self.scratch / "names.rules"
        rules.write_text("[rules]\ntitle = Names\n[protocol names]\nport = 53\nframe = length at 0 size 2 big add 2\n"
                         "request-at = 4 1\nrequest = 1 query\nreply-at = 5 1\nreply = 0x80 found\nfailed = 0x85 refused\n")
        tracer = self.trace("--port", "53", "--rules", rules)
        for name in 10 * ["known.example"] + ["nothing.invalid"]:
            self.run_program(dig, f"@{address}", "+tcp", "+noedns", "+noadflag", "+tries=1", name, "A")
        time.sleep(0.1)
        records, _ = self.finish(tracer)
        found = collections.Counter((r["NL.EVNT"], r.get("STATUS")) for r in records)
        for event in "names.query", "names.query.call":
            self.assertEqual((found[event, "found"], found[event, "refused"]), (10, 1), found)

    def test_tls(self):
        """The functions of OpenSSL and GnuTLS show the requests on encrypted connections."""
        if not os.path.exists("/sys/bus/event_source/devices/uprobe"):
            self.skipTest("this kernel has no uprobes")
        nginx, wget, ports = self.need("nginx"), self.need("wget"), (support.free_port(), support.free_port())
        authority = Authority(self, "authority")
        certificate = authority.certify("server")
        self.scratch.chmod(0o755)
        (self.scratch / "nginx.conf").write_text(HTTPS_PROXY.format(directory=self.scratch, port=ports[0], server=ports[1], certificate=certificate))
        processes = [self.start("/usr/bin/python3", "-c", HTTPS_SERVER, ports[1], certificate, stderr=subprocess.DEVNULL),
                     self.start(nginx, "-c", self.scratch / "nginx.conf", "-p", self.scratch, "-e", self.scratch / "nginx.err"),
                     self.start("/usr/bin/python3", "-c", HTTPS_CLIENT, ports[0], authority.ca, stdin=subprocess.PIPE, text=True)]
        for port in ports:
            support.wait_until(lambda port=port: support.can_connect(port))
        maps = f"/proc/{processes[2].pid}/maps"
        support.wait_until(lambda: "libssl" in open(maps).read(), what="the client to load its library")
        tracer = self.trace("--comm", "wget", *(word for process in processes for word in ("--pid", process.pid)))
        processes[2].communicate("go\n", timeout=20)
        records, errors = self.finish(tracer)
        self.assertNotIn("encrypted requests may have no names", errors)
        self.assertNotIn("secret", self.log.read_text())
        traces = collections.defaultdict(list)
        for r in records:
            if r["NL.EVNT"] in ("http.GET", "http.GET.call"):
                traces[r["TRACE.ID"]].append((r["PATH"], r["STATUS"], r["NL.EVNT"], r["PROG"]))
        expected = [[(path, status, event, program) for event, program in (("http.GET", "nginx"), ("http.GET", "python3"), ("http.GET.call", "nginx"), (
            "http.GET.call", "python3"))] for path, status in [(f"/item{i}", "200") for i in range(8) if i != 3] + [("/item3missing", "404")]]
        self.assertEqual(sorted(sorted(trace) for trace in traces.values()), sorted(expected), self.log.read_text())
        # wget uses GnuTLS. It must run when nlkernel finds the library. nlkernel searches again after the shell has executed wget.
        urls = [f"https://localhost:{ports[0]}/wget{i}" for i in range(3)]
        client = self.start("sh", "-c", 'read go; exec "$@"', "sh", wget, "--quiet", "--wait=1", "--ca-certificate", authority.ca,
                            "--output-document=-", *urls, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        tracer = self.trace("--pid", client.pid, "--pid", processes[1].pid)
        time.sleep(3.5)
        self.assertEqual(client.communicate("go\n", timeout=20)[0], 3 * "secret")
        records, _ = self.finish(tracer)
        self.assertIn(("http.GET.call", "/wget2", "200"), {(r["NL.EVNT"], r.get("PATH"), r.get("STATUS")) for r in records if r["PROG"] == "wget"},
                      self.log.read_text())

    def test_replaced_library(self):
        """A named pipe with the name of a library that a process maps does not stop nlkernel, which reports that it cannot use the library."""
        library = self.scratch / "libssl.so"
        script = """if True:
            import mmap, os, sys
            library = sys.argv[1]
            with open(library, "rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            os.unlink(library)
            if sys.argv[2] == "pipe":
                os.mkfifo(library + " (deleted)")
            print("mapped", flush=True)
            sys.stdin.read()"""
        for kind in "deleted", "pipe":
            library.write_bytes(bytes(4096))
            process = self.start("/usr/bin/python3", "-c", script, library, kind, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "mapped\n")
            _, errors = self.finish(self.trace("--pid", process.pid))
            self.assertIn("encrypted requests may have no names", errors)
            process.communicate(timeout=20)

    def test_dns(self):
        server, dig = self.need("dnsmasq"), self.need("dig")
        address, upstream = "127.77.5.3", "127.77.5.4"
        for at, options in ((upstream, ["--address=/known.example/10.1.2.3", "--no-resolv"]), (address, [f"--server={upstream}", "--no-resolv"])):
            process = self.start(server, "--keep-in-foreground", "--conf-file=/dev/null", "--no-hosts", f"--listen-address={at}", "--bind-interfaces",
                                 "--user=root", "--pid-file=", "--cache-size=0", *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            deadline = time.monotonic() + 20
            while socket.socket().connect_ex((at, 53)) != 0:
                if process.poll() is not None or time.monotonic() > deadline:
                    self.skipTest("dnsmasq cannot use port 53 here")
                time.sleep(0.05)
        tracer = self.trace("--port", "53")

        def ask(*words):
            result = self.run_program(dig, f"@{address}", "+tries=1", "+time=10", "+short", *words)
            self.assertEqual(result.returncode, 0, result.stdout)
            return result.stdout.strip()
        for i in range(10):
            self.assertEqual(ask(f"Host{i}.Known.example", "A"), "10.1.2.3")
        ask("known.example", "TXT")
        self.assertEqual(ask("+tcp", "tcp.known.example", "A"), "10.1.2.3")
        ask("nothing.invalid", "A")
        # The C library sends the queries for both kinds of addresses with one call. Hostile datagrams are no queries.
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as hostile:
            for i in range(50):
                hostile.sendto(os.urandom(12 + i), (address, 53))
                hostile.sendto(struct.pack(">HHHHHH", i, 0x0100, 1, 0, 0, 0) + b"\x3f" * 40, (address, 53))
        time.sleep(0.1)
        records, _ = self.finish(tracer)
        found = collections.Counter((r["NL.EVNT"], r.get("NAME"), r.get("STATUS")) for r in records)
        for i in range(10):  # two calls (of dig and of the first dnsmasq), and two servers (the first and the second dnsmasq)
            self.assertEqual((found["dns.A.call", f"host{i}.known.example", "NOERROR"], found["dns.A", f"host{i}.known.example", "NOERROR"]), (2, 2), found)
        self.assertEqual((found["dns.A.call", "tcp.known.example", "NOERROR"], found["dns.A", "tcp.known.example", "NOERROR"]), (2, 2), found)
        self.assertEqual((found["dns.TXT", "known.example", "REFUSED"], found["dns.A", "nothing.invalid", "REFUSED"]), (2, 2), found)
        # A request is one trace, in all four records.
        for i in range(10):
            chain = [r for r in records if r.get("NAME") == f"host{i}.known.example"]
            self.assertEqual(len({r["TRACE.ID"] for r in chain}), 1, chain)
            self.assertEqual(len([r for r in chain if "PARENT.ID" in r]), 3, chain)


if __name__ == "__main__":
    support.main()
