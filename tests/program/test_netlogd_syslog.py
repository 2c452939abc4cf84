#!/usr/bin/env python3
"""netlogd as a receiver of syslog: RFC 5424 and 3164 over UDP, TCP and TLS, from hand-made senders and from real ones."""
import datetime
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
import unittest

import collector
import support

RSYSLOGD = "/usr/sbin/rsyslogd"
SYSLOG_NG = shutil.which("syslog-ng", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NUL_AND_LATIN = b"a\0b \xff\xfe\xe9"

# message, without framing -> the record, without DATE if the message has no time
CASES = [
    (b"<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \xef\xbb\xbf'su root' failed for lonvick",
     "DATE=20031011221415.003000 HOST=mymachine.example.com PROG=su LVL=Error NL.EVNT=ID47 FACILITY=auth PRIORITY=2 "
     "MESSAGE=\"'su root' failed for lonvick\""),
    (b"<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
     "DATE=20030824121415.000003 HOST=192.0.2.1 PROG=myproc LVL=Important NL.EVNT=syslog FACILITY=local4 PRIORITY=5 PROCID=8710 "
     "MESSAGE=\"%% It's time to make the do-nuts.\""),
    (b'<165>1 2003-10-11T22:14:15.003Z h evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Appl \\"x\\" [1\\] \\\\ \\n"]'
     b'[priority@32473 class="high"][empty] BOM-less',
     "DATE=20031011221415.003000 HOST=h PROG=evntslog LVL=Important NL.EVNT=ID47 FACILITY=local4 PRIORITY=5 exampleSDID_32473.iut=3 "
     "exampleSDID_32473.eventSource=\"Appl \\\"x\\\" [1] \\\\ \\\\n\" priority_32473.class=high empty=\"\" MESSAGE=BOM-less"),
    (b'<14>1 2003-10-11T22:14:15Z h p - - [broken x="1" no end', "DATE=20031011221415.000000 HOST=h PROG=p LVL=Usage NL.EVNT=syslog "
     "FACILITY=user PRIORITY=6 MESSAGE=\"[broken x=\\\"1\\\" no end\""),
    (b"<0>1 - - - - - -", "HOST=HERE LVL=Emergency NL.EVNT=syslog FACILITY=kern PRIORITY=0 MESSAGE=\"\""),
    (b"<13>Feb 29 12:00:00 host prog[12]: leap day", "HOST=host PROG=prog LVL=Important NL.EVNT=syslog FACILITY=user PRIORITY=5 "
     "PROCID=12 MESSAGE=\"leap day\""),
    (b"<86>Jan  2 03:04:05 sshd[7]: no host", "HOST=HERE PROG=sshd LVL=Usage NL.EVNT=syslog FACILITY=authpriv PRIORITY=6 PROCID=7 "
     "MESSAGE=\"no host\""),
    (b"<11>2026-01-31T12:00:00.5+01:00 host kernel: iso", "DATE=20260131110000.500000 HOST=host PROG=kernel LVL=Error NL.EVNT=syslog "
     "FACILITY=user PRIORITY=3 MESSAGE=iso"),
    (b"<191>app: no time", "HOST=HERE PROG=app LVL=Debug NL.EVNT=syslog FACILITY=local7 PRIORITY=7 MESSAGE=\"no time\""),
    (b"<192>not a priority", "HOST=HERE LVL=Important NL.EVNT=syslog FACILITY=user PRIORITY=5 MESSAGE=\"<192>not a priority\""),
    (b"no syslog at all", "HOST=HERE LVL=Important NL.EVNT=syslog FACILITY=user PRIORITY=5 MESSAGE=\"no syslog at all\""),
]


def counted(messages):
    return b"".join(b"%d %s" % (len(m), m) for m in messages)


def on_lines(messages):
    return b"".join(m + b"\n" for m in messages)


def without_time(line):
    return re.sub(r"^DATE=\S+ ", "", line)


class Case(collector.Case):
    def serve(self, *arguments, **options):
        return super().serve(*arguments, env={**os.environ, "NETLOGGER_HOST": "HERE", "TZ": "UTC"}, **options)

    def lines(self):
        return self.written().decode("latin-1").splitlines()

    def until(self, count):
        return support.wait_until(lambda: len(self.lines()) >= count and self.lines(), what=f"{count} records")

    def check_cases(self, lines):
        self.assertEqual(len(lines), len(CASES))
        for line, (message, expected) in zip(lines, CASES):
            self.assertEqual(line if expected.startswith("DATE=") else without_time(line), expected, message)


class Messages(Case):
    def test_messages_in_both_framings_in_pieces_of_any_size(self):
        data = on_lines(m for m, _ in CASES) + counted(m for m, _ in CASES[:5])
        for step in (len(data), 1, 7):
            self.output.unlink(missing_ok=True)
            process = self.serve(listen="syslog+tcp://127.0.0.1:0")
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for at in range(0, len(data), step):
                    s.sendall(data[at:at + step])
            lines = self.until(len(CASES) + 5)
            self.stop(process)
            self.check_cases(lines[:len(CASES)])
            for line, (_, expected) in zip(lines[len(CASES):], CASES):
                self.assertEqual(without_time(line), without_time(expected))

    def test_datagrams(self):
        process = self.serve(listen="syslog+udp://127.0.0.1:0")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for message, _ in CASES:
                s.sendto(message, ("127.0.0.1", self.port))
            s.sendto(b"<13>1 - h p - - - one\ntwo\n", ("127.0.0.1", self.port))
        lines = self.until(len(CASES) + 1)
        self.stop(process)
        self.check_cases(lines[:-1])
        self.assertTrue(lines[-1].endswith('MESSAGE="one\\ntwo"'), lines[-1])

    def test_times_without_a_year_are_at_most_a_day_after_the_receipt(self):
        process = self.serve(listen="syslog+tcp://127.0.0.1:0")
        now = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None)
        times = [now, now + datetime.timedelta(hours=20), now + datetime.timedelta(days=3), now - datetime.timedelta(days=300)]
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(on_lines(b"<13>" + t.strftime("%b %e %H:%M:%S").encode() + b" h p: m" for t in times))
        lines = self.until(len(times))
        self.stop(process)
        times[2] = times[2].replace(year=times[2].year - 1)
        self.assertEqual([line.split()[0] for line in lines], [t.strftime("DATE=%Y%m%d%H%M%S.000000") for t in times])

    def test_bytes_that_are_not_text_are_kept(self):
        process = self.serve(listen="syslog+tcp://127.0.0.1:0")
        message = b"<13>1 - h p - - - " + NUL_AND_LATIN + b"\nnext"
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(counted([message]))
        self.until(1)
        self.stop(process)
        converted = self.run_program(support.program("nltools/nlconv"), "--format", "json", self.output).stdout
        encoded = re.search(r'"MESSAGE":\{"\$bytes":"(\S+)"\}', converted).group(1)
        import base64
        self.assertEqual(base64.b64decode(encoded), NUL_AND_LATIN + b"\nnext")

    def test_messages_that_are_too_long_are_rejected_and_counted(self):
        reject = self.scratch / "reject"
        process = self.serve("--max-record-size", "2k", "--reject", reject, "--listen", "syslog+udp://127.0.0.1:0",
                             listen="syslog+tcp://127.0.0.1:0")
        udp = int(re.search(r"syslog\+udp://127\.0\.0\.1:(\d+)", self.said()).group(1))
        good, long = b"<13>1 - h p - - - good", b"<13>1 - h p - - - " + b"x" * 300000
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(counted([good, long, good]) + on_lines([good, long, good]) + b"15 <13>1 - h p")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(long[:20000], ("127.0.0.1", udp))
            s.sendto(good, ("127.0.0.1", udp))
        lines = self.until(5)
        support.wait_until(lambda: "incomplete message" in self.said(), what="the incomplete message")
        self.stop(process)
        self.assertEqual({without_time(line) for line in lines},
                         {"HOST=h PROG=p LVL=Important NL.EVNT=syslog FACILITY=user PRIORITY=5 MESSAGE=good"})
        self.assertEqual(len(lines), 5)
        self.assertEqual(self.said().count("the message is larger than max-record-size"), 3)
        self.assertRegex(self.said(), r"Netlogd\.Stop RECORDS=5 MALFORMED=4 ")
        self.assertEqual(len(reject.read_bytes().splitlines()), 4)

    def test_other_protocols_are_turned_away(self):
        process = self.serve(listen="syslog+tcp://127.0.0.1:0")
        for data, answer in ((b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400"), (b"\x16\x03\x01\x00\x05hello", b"\x15\x03")):
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(data)
                self.assertTrue(s.recv(1000).startswith(answer))
        self.send(b"<13>1 - h p - - - NETLOGGER/1 status")
        self.assertEqual(len(self.until(1)), 1)
        self.stop(process)

    def test_limits(self):
        """Incomplete messages count for max-memory, and max-rate slows down connections and drops datagrams."""
        process = self.serve("--max-memory", "2m", "--max-rate", "50", "--listen", "syslog+udp://127.0.0.1:0", listen="syslog+tcp://127.0.0.1:0")
        udp = int(re.search(r"syslog\+udp://127\.0\.0\.1:(\d+)", self.said()).group(1))
        clients = []
        for _ in range(8):
            clients.append(socket.create_connection(("127.0.0.1", self.port)))
            self.addCleanup(clients[-1].close)
            clients[-1].sendall(b"900000 <13>1 - h p - - - " + b"x" * 500000)
        support.wait_until(lambda: "closed: clients used too much memory" in self.said(), what="max-memory")
        with socket.create_connection(("127.0.0.1", self.port)) as s, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as d:
            for n in range(150):
                d.sendto(b"<13>1 - udp p - - - %d" % n, ("127.0.0.1", udp))
            s.sendall(b"".join(b"<13>1 - tcp p - - - %d\n" % n for n in range(100)))
            s.shutdown(socket.SHUT_WR)
            support.wait_until(lambda: sum("HOST=tcp" in line for line in self.lines()) == 100, what="all messages of the connection")
        support.wait_until(lambda: "Netlogd.OverRate" in self.said(), what="a report of dropped datagrams")
        self.stop(process)
        stored = sum("HOST=udp" in line for line in self.lines())
        dropped = sum(int(n) for n in re.findall(r"Netlogd\.OverRate PEER=\S+ REASON=\".*?\" COUNT=(\d+)", self.said()))
        self.assertEqual(stored + dropped, 150)
        self.assertLess(stored, 120)


class Files(support.Case):
    def convert(self, data, *arguments):
        path = self.scratch / "in"
        path.write_bytes(data)
        result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", *arguments, path, env={**os.environ, "TZ": "UTC"})
        return result.stdout.splitlines(), result.stderr

    def test_files_of_daemons(self):
        for line in (b"2026-01-31T12:00:00.123456+00:00 node1 sshd[7]: a=1 b", b"<86>1 2026-01-31T12:00:00.123456Z node1 sshd 7 - - a=1 b",
                     b"<86>2026-01-31T12:00:00.123456+00:00 node1 sshd[7]: a=1 b"):
            level = "LVL=Usage " if line[:1] == b"<" else ""
            priority = "FACILITY=authpriv PRIORITY=6 " if line[:1] == b"<" else ""
            expected = f'DATE=20260131120000.123456 HOST=node1 PROG=sshd {level}NL.EVNT=syslog {priority}PROCID=7 MESSAGE="a=1 b"'
            self.assertEqual(self.convert(line + b"\n" + line), ([expected] * 2, ""))
            self.assertEqual(self.convert(counted([line] * 2), "--from-format", "syslog")[0] if line[:1] == b"<" else [expected] * 2,
                             [expected] * 2)
        lines, errors = self.convert(b"Jan 31 12:00:00 node1 kernel: x\nnothing\nJan 31 12:00:01 node1 CRON[3]: y\n")
        self.assertEqual([without_time(line) for line in lines], ["HOST=node1 PROG=kernel NL.EVNT=syslog MESSAGE=x",
                                                                  "HOST=node1 PROG=CRON NL.EVNT=syslog PROCID=3 MESSAGE=y"])
        self.assertIn("neither a priority nor a time", errors)

    def test_netlogger_records_with_a_prefix_are_not_syslog(self):
        record = "DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E"
        self.assertEqual(self.convert(f"Jan  1 00:00:00 h p: {record}\n".encode()), ([record], ""))


class Senders(Case):
    """Each sender sends numbered messages over each transport; netlogd has every message once."""

    def certificates(self):
        authority = collector.Authority(self, "authority")
        return authority, authority.certify("server"), authority.certify("client")

    def listener(self, transport):
        if transport != "tls":
            return f"syslog+{transport}://127.0.0.1:0", ""
        self.authority, server, client = self.certificates()
        return f"syslog+tls://127.0.0.1:0?cert={server}&ca={self.authority.ca}", client

    def check(self, count, pattern):
        lines = self.until(count)
        found = [re.search(pattern, line) for line in lines]
        self.assertEqual(sorted(int(m.group(1)) for m in found if m), list(range(count)), lines[:3])

    def test_logger(self):
        for transport, options in (("udp", ["-d", "--rfc5424"]), ("udp", ["-d", "--rfc3164"]), ("tcp", ["-T", "--rfc5424"]),
                                   ("tcp", ["-T", "--rfc3164"]), ("tcp", ["-T", "--rfc5424", "--octet-count"])):
            self.output.unlink(missing_ok=True)
            process = self.serve(listen=f"syslog+{transport}://127.0.0.1:0")
            more = ["--sd-id", "ex@32473", "--sd-param", 'a="b c"', "--msgid", "LOGIN"] if "--rfc5424" in options else []
            for n in range(3):
                result = self.run_program("logger", "-n", "127.0.0.1", "-P", str(self.port), *options, *more, "-p", "daemon.warning", "-t", "app",
                                          "-i", f"number {n} \"quoted\"")
                self.assertEqual(result.returncode, 0, result.stderr)
            self.check(3, r'PROG=app LVL=Warning NL\.EVNT=(?:syslog|LOGIN) FACILITY=daemon PRIORITY=4 PROCID=\d+ .*MESSAGE="number (\d+) \\"quoted\\""$')
            self.assertEqual(all('ex_32473.a="b c"' in line for line in self.lines()), bool(more))
            self.stop(process)

    @unittest.skipUnless(os.path.exists(RSYSLOGD), "rsyslog is not installed")
    def test_rsyslog(self):
        for transport, options in (("udp", 'template="RSYSLOG_SyslogProtocol23Format"'), ("tcp", 'template="RSYSLOG_ForwardFormat"'),
                                   ("tcp", 'template="RSYSLOG_TraditionalForwardFormat" TCP_Framing="octet-counted"'),
                                   ("tls", 'template="RSYSLOG_SyslogProtocol23Format" TCP_Framing="octet-counted" streamDriverMode="1" '
                                           'streamDriver="ossl" streamDriverAuthMode="x509/certvalid"')):
            if transport == "tls" and not any((path / "lmnsd_ossl.so").exists() for path in support.pathlib.Path("/usr/lib").glob("*/rsyslog")):
                self.skipTest("rsyslog-openssl is not installed")
            self.output.unlink(missing_ok=True)
            listen, client = self.listener(transport)
            process = self.serve(listen=listen)
            config, entries = self.scratch / "rsyslog.conf", self.scratch / "entries"
            tls = f'global(defaultNetstreamDriverCAFile="{self.authority.ca}" defaultNetstreamDriverCertFile="{client.with_suffix(".crt")}" ' \
                  f'defaultNetstreamDriverKeyFile="{client.with_suffix(".key")}")\n' if client else ""
            config.write_text(f'{tls}module(load="imuxsock" sysSock.use="off")\ninput(type="imuxsock" socket="{entries}" rateLimit.interval="0")\n'
                              f'*.* action(type="omfwd" protocol="{"udp" if transport == "udp" else "tcp"}" target="127.0.0.1" '
                              f'port="{self.port}" {options})\n')
            daemon = self.start(RSYSLOGD, "-n", "-f", config, "-i", self.scratch / "rsyslog.pid", stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
            support.wait_until(entries.exists, what="rsyslog listens")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.connect(str(entries))
                for n in range(100):
                    s.send(b"<30>Jan 31 12:00:00 app[%d]: number %d" % (n + 1, n))
            self.check(100, r'PROG=app LVL=Usage NL\.EVNT=syslog FACILITY=daemon PRIORITY=6 PROCID=\d+ MESSAGE=" ?number (\d+)"$')
            daemon.terminate()
            daemon.wait()
            self.stop(process)
            entries.unlink(missing_ok=True)

    @unittest.skipUnless(SYSLOG_NG, "syslog-ng is not installed (in Debian, it cannot be installed beside rsyslog)")
    def test_syslog_ng(self):
        for transport in ("udp", "tcp", "tls"):
            self.output.unlink(missing_ok=True)
            listen, client = self.listener(transport)
            process = self.serve(listen=listen)
            config, entries = self.scratch / "ng.conf", self.scratch / "entries"
            tls = f'tls(ca-file("{self.authority.ca}") cert-file("{client}") key-file("{client}"))' if client else ""
            config.write_text(f'@version: 3.35\nsource s {{ unix-dgram("{entries}"); }};\n'
                              f'destination d {{ syslog("127.0.0.1" port({self.port}) transport("{transport}") {tls}); }};\n'
                              'log { source(s); destination(d); };\n')
            daemon = self.start(SYSLOG_NG, "-F", "--no-caps", "-f", config, "-R", self.scratch / "ng.persist", "-c", self.scratch / "ng.ctl",
                                "-p", self.scratch / "ng.pid", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            support.wait_until(entries.exists, what="syslog-ng listens")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
                s.connect(str(entries))
                for n in range(100):
                    s.send(b"<30>Jan 31 12:00:00 app[%d]: number %d" % (n + 1, n))
            self.check(100, r'PROG=app LVL=Usage NL\.EVNT=syslog FACILITY=daemon PRIORITY=6 PROCID=\d+ .*MESSAGE="number (\d+)"$')
            daemon.terminate()
            daemon.wait()
            self.stop(process)
            entries.unlink(missing_ok=True)

    def test_tls_needs_a_certificate_that_names_the_host(self):
        authority = collector.Authority(self, "authority")
        server, client = authority.certify("server"), authority.certify("client", "DNS:node1")
        process = self.serve(listen=f"syslog+tls://127.0.0.1:0?cert={server}&ca={authority.ca}&certified_hosts=yes")
        context = ssl.create_default_context(cafile=authority.ca)
        with self.assertRaises(OSError), context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)),
                                                             server_hostname="localhost") as s:
            s.sendall(counted([CASES[0][0]]))
            s.recv(1)
        context.load_cert_chain(client)
        with context.wrap_socket(socket.create_connection(("127.0.0.1", self.port)), server_hostname="localhost") as s:
            s.sendall(counted([b"<13>1 - node1 p - - - mine", b"<13>1 - node2 p - - - not mine"]))
        support.wait_until(lambda: "HOST is not a name" in self.said(), what="the rejected message")
        self.stop(process)
        self.assertEqual([line.split()[-1] for line in self.lines()], ["MESSAGE=mine"])


if __name__ == "__main__":
    support.main()
