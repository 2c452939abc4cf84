"""TLS between programs and the collector: verification, rejections with their messages, and no loss."""
import contextlib
import os
import re
import resource
import signal
import socket
import ssl
import subprocess
import threading
import time

import collector
import support
from collector import Authority, record
from producer import PROGRAM

CLIENT = r"""
#include <netlogger.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    nl_log *log = nl_open("client", argv[1]);
    if (log == NULL) {
        printf("%s\n", nl_error_message());
        return 2;
    }
    for (int i = 0; i < atoi(argv[2]); i++) {
        NL_EVENT(log, NL_USAGE, "E", "N", i);
        if (argc > 3)
            usleep((useconds_t)atoi(argv[3]));
    }
    if (nl_close(log) == NL_OK)
        return 0;
    printf("%s\n", nl_error_message());
    return 1;
}
"""

FORKER = r"""
#include <netlogger.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    nl_log *log = argc > 1 ? nl_open("client", argv[1]) : NULL;
    if (log == NULL)
        return 2;
    for (int i = 0; i < 2000; i++)
        NL_EVENT(log, NL_USAGE, "E", "N", i);
    for (int c = 1; c <= 3; c++) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < 2000; i++)
                NL_EVENT(log, NL_USAGE, "E", "N", c * 2000 + i);
            _exit(nl_close(log) == NL_OK ? 0 : 1);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 3;
    }
    for (int i = 8000; i < 10000; i++)
        NL_EVENT(log, NL_USAGE, "E", "N", i);
    return nl_close(log) == NL_OK ? 0 : 1;
}
"""


class NetlogdTls(collector.Case):
    def setUp(self):
        super().setUp()
        self.nlwrite = support.program("nltools/nlwrite")
        self.authority = Authority(self, "authority")
        self.server = self.authority.certify("server")
        self.client = self.authority.certify("client")

    def serve_tls(self, *arguments, options="", **more):
        return self.serve(*arguments, listen=f"x-netlogs://127.0.0.1:0?cert={self.server}{options}", **more)

    def url(self, options="", host="127.0.0.1"):
        return f"x-netlogs://{host}:{self.port}?ca={self.authority.ca}{options}"

    def write(self, url, event="Ev"):
        return self.run_program(self.nlwrite, "--dest", url, "--prog", "p", event, "A=1")

    def refused(self, url, why):
        result = self.write(url)
        self.assertEqual(result.returncode, 1, result)
        self.assertRegex(result.stderr, why)

    def context(self, certificate=None):
        context = ssl.create_default_context(cafile=self.authority.ca)
        if certificate:
            context.load_cert_chain(certificate)
        return context

    def connect(self, certificate=None):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return self.context(certificate).wrap_socket(plain, server_hostname="localhost")

    def numbers(self):
        return [int(n) for n in re.findall(rb" N=(\d+)\n", self.written())]

    def test_right(self):
        process = self.serve_tls()
        for options in ("", "&format=ulm", "&name=localhost"):
            self.assertEqual(self.write(self.url(options)).returncode, 0)
        self.assertEqual(self.write(self.url(host="localhost")).returncode, 0)
        data = b"".join(record(1, n) for n in range(20000))
        with self.connect() as s:
            self.assertIn(s.version(), ("TLSv1.3", "TLSv1.2"))
            s.sendall(data)
            s.unwrap()
        self.stop(process)
        self.assertEqual(self.written().count(b"NL.EVNT=Ev"), 4)
        self.assertEqual(b"".join(re.findall(rb".*HOST=h1.*\n", self.written())), data)

    def test_server_that_is_not_believed(self):
        self.server = self.authority.certify("other", alternative="DNS:other.example")
        process = self.serve_tls()
        self.refused(self.url(), "is for other.example, other, not for 127.0.0.1")
        self.refused(self.url(host="localhost"), "is for other.example, other, not for localhost")
        self.assertEqual(self.write(self.url("&name=other.example")).returncode, 0)
        self.refused(self.url().replace(str(self.authority.ca), str(Authority(self, "another").ca)), "certificate")
        self.refused(f"x-netlogs://127.0.0.1:{self.port}?name=other.example", "certificate")
        self.stop(process)
        self.assertEqual(self.written().count(b"\n"), 1)
        self.assertIn("NL.EVNT=Netlogd.Tls", self.said())

    def test_expired_server(self):
        self.server = self.authority.certify("expired", days=-1)
        process = self.serve_tls()
        self.refused(self.url(), "the certificate expired at ")
        self.stop(process)

    def test_client_certificates(self):
        process = self.serve_tls(options=f"&ca={self.authority.ca}")
        stranger = Authority(self, "stranger").certify("stranger")
        expired = self.authority.certify("late", days=-1)
        for options in ("", "&format=ulm"):
            self.refused(self.url(options), "requires a client certificate")
            self.refused(self.url(f"&cert={stranger}{options}"), "does not trust the CA of this program")
            self.refused(self.url(f"&cert={expired}{options}"), "\\(option cert\\) has expired")
            self.assertEqual(self.write(self.url(f"&cert={self.client}{options}")).returncode, 0)
        with self.connect(self.client) as s:
            s.sendall(record(1, 1))
            s.unwrap()
        self.stop(process)
        self.assertEqual(self.written().count(b"\n"), 3)
        self.assertIn("the client has no certificate", self.said())

    def test_old_tls_is_refused(self):
        process = self.serve_tls()
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as plain:
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                old.wrap_socket(plain)
        support.wait_until(lambda: "unsupported protocol" in self.said(), what="the reason")
        self.stop(process)

    def test_garbage_instead_of_a_handshake(self):
        process = self.serve_tls("--handshake-timeout", "5")
        for garbage in (record(1, 1), b"GET / HTTP/1.0\r\n\r\n", b"\0" * 5000, b"\x16\x03\x01\xff\xff" + b"A" * 70000):
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as s:
                try:
                    s.sendall(garbage)
                    while s.recv(4096):
                        pass
                except ConnectionError:
                    pass
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as silent, \
                socket.create_connection(("127.0.0.1", self.port), timeout=20) as half:
            half.sendall(b"\x16\x03\x01")
            self.assertEqual(half.recv(1), b"")
            self.assertEqual(silent.recv(1), b"")  # it sends nothing
        self.assertEqual(self.write(self.url()).returncode, 0)
        self.stop(process)
        self.assertEqual(self.written().count(b"\n"), 1)
        self.assertIn("the TLS handshake took too long", self.said())

    def test_who_is_silent_after_the_handshake_may_be(self):
        process = self.serve_tls("--handshake-timeout", "5")
        with self.connect() as s:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as later:
                self.assertEqual(later.recv(1), b"", "it has said nothing at all")
            s.sendall(record(1, 1))
            support.wait_until(lambda: self.written() == record(1, 1), what="the line")
        self.stop(process)
        self.assertEqual(self.said().count("the TLS handshake took too long"), 1)

    def test_the_handshake_has_its_time_after_a_pause(self):
        """While the output is blocked, netlogd does not read from clients. A client that connects during this time
        must not count as silent."""
        process = self.serve_tls("--handshake-timeout", "6",
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY)))
        data = b"".join(record(1, n) for n in range(1000))
        with self.connect() as s:
            s.sendall(data)
            support.wait_until(lambda: "File too large" in self.said(), what="the message")
            later = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            time.sleep(7)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            support.wait_until(lambda: self.written() == data, what="all lines")
            time.sleep(1.5)  # netlogd checks every second
            with self.context().wrap_socket(later, server_hostname="localhost") as late:
                late.sendall(record(2, 1))
                support.wait_until(lambda: self.written() == data + record(2, 1), what="the line")
        self.stop(process)
        self.assertNotIn("the TLS handshake took too long", self.said())

    def test_a_cut_connection_keeps_whole_lines_only(self):
        process = self.serve_tls()
        s = self.connect()
        s.sendall(record(1, 1) + record(1, 2)[:30])
        support.wait_until(lambda: self.written() == record(1, 1), what="the line")
        s.close()  # without TLS's end: an attacker could have cut the connection
        self.stop(process)
        self.assertEqual(self.written(), record(1, 1))

    def test_a_plain_program_and_a_plain_collector(self):
        process = self.serve()
        self.refused(self.url("&timeout=1"), "the port does not use TLS; use x-netlog://")
        self.stop(process)
        process = self.serve_tls()
        self.write(f"x-netlog://127.0.0.1:{self.port}")
        self.stop(process)
        self.assertEqual(self.written(), b"")

    def test_files_that_cannot_be_used(self):
        process = self.serve_tls()
        broken = self.scratch / "broken.pem"
        broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n")
        stray = self.authority.folder / "client.key"
        for options, why in ((f"&cert={self.scratch}/none", "none: No such file"), (f"&cert={broken}", "broken.pem"),
                             (f"&cert={self.client}&key={stray.with_name('server.key')}", "key values mismatch"),
                             (f"&key={stray}", "missing cert=FILE"), ("&insecure=1", 'unknown option "insecure"')):
            self.refused(self.url(options), why)
        self.refused(f"x-netlog://127.0.0.1:{self.port}?ca={self.authority.ca}", 'option ca is valid only in x-netlogs otlp otlp\\+http URLs')
        self.stop(process)
        listen = "x-netlogs://127.0.0.1:0"
        self.assertIn("missing cert=FILE", self.fails("--listen", listen, status=2))
        self.assertIn("broken.pem", self.fails("--listen", f"{listen}?cert={broken}", status=2))
        self.assertIn('unknown option "cart"', self.fails("--listen", f"{listen}?cart={broken}", status=2))
        self.assertIn("x-netlog URLs have no options", self.fails("--listen", f"x-netlog://127.0.0.1:0?cert={broken}", status=2))

    def test_off_loopback(self):
        everywhere = f"x-netlogs://0.0.0.0:0?cert={self.server}"
        self.assertIn("require client certificates with cert=, key= and ca= in the URL", self.fails("--listen", everywhere, "--output", self.output))
        process = self.serve("--listen", f"{everywhere}&ca={self.authority.ca}")
        support.wait_until(lambda: "listening on x-netlogs://0.0.0.0:" in self.said(), what="netlogd listens everywhere")
        self.stop(process)

    def test_nothing_is_lost_when_the_collector_is_killed(self):
        port = support.free_port()
        listen = f"x-netlogs://127.0.0.1:{port}?cert={self.server}&ca={self.authority.ca}"
        process = self.serve(listen=listen)
        client = self.compile_client(PROGRAM)
        url = self.url(f"&cert={self.client}&policy=block&block=60&timeout=60")
        program = self.start(client, "client", url, "-", "10000", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        numbers = lambda: [int(n) for n in re.findall(rb" I=(\d+) TEXT=\"some text\"\n", self.written())]
        for _ in range(3):
            before = len(numbers())
            support.wait_until(lambda: len(numbers()) > before + 500, what="events come")
            process.kill()
            process.wait()
            process = self.serve(listen=listen)
        count, errors = program.communicate(timeout=100)
        self.assertEqual(program.returncode, 0, errors)
        self.stop(process)
        self.assertEqual(sorted(set(numbers())), list(range(int(count))))

    def test_an_idle_producer_that_is_closed_loses_nothing(self):
        """netlogd closes the connection after each event, because it is idle; the library reconnects for the next event."""
        client = self.compile_client(CLIENT)
        process = self.serve_tls("--idle-timeout", "1", "--level", "Debug")
        result = self.run_program(client, self.url(), "4", "2500000", timeout=60)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.stop(process)
        self.assertEqual(self.numbers(), list(range(4)))
        self.assertGreaterEqual(self.said().count("NL.EVNT=Netlogd.Idle"), 3)

    def test_fork(self):
        process = self.serve_tls()
        client = self.compile_client(FORKER)
        for options in ("", "&format=ulm"):
            result = self.run_program(client, self.url(f"{options}&policy=block"))
            self.assertEqual(result.returncode, 0, result)
        self.stop(process)
        self.assertEqual(sorted(self.numbers()), sorted(list(range(10000)) * 2))

    def test_a_collector_is_read(self):
        process = self.serve_tls("--level", "Debug", options=f"&ca={self.authority.ca}")
        nlsort, at = support.program("nlsort/nlsort"), f"since=2026-01-01T00:00:00Z&where=PROG%20%3D%3D%20\"p\""
        refused = self.run_program(nlsort, self.url(f"&{at}"))
        self.assertEqual((refused.returncode, "certificate" in refused.stderr), (1, True), refused.stderr)
        readers = [self.start(nlsort, "-o", self.scratch / f"sorted{i}", self.url(f"&cert={self.client}&{at}{more}"))
                   for i, more in enumerate(("", "&format=ulm"))]
        support.wait_until(lambda: self.said().count("NL.EVNT=Netlogd.Subscribed") == 2, what="they have subscribed")
        data = b"".join(record(1, n) for n in range(50000))
        with self.connect(self.client) as s:
            s.sendall(data)
            s.unwrap()
        support.wait_until(lambda: self.written().count(b"HOST=h1 ") == 50000, what="all records")
        self.stop(process)  # ends the streams
        for i, reader in enumerate(readers):
            self.assertEqual(reader.wait(20), 0)
            self.assertTrue((self.scratch / f"sorted{i}").read_bytes() == data, i)

    def reload(self, process, event):
        """Sends SIGHUP, and waits for another event of that kind."""
        count = self.said().count(f"NL.EVNT={event} ")
        process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: self.said().count(f"NL.EVNT={event} ") > count, what=event)

    def test_reload(self):
        config, place = self.scratch / "netlogd.conf", self.scratch / "used.pem"
        place.write_bytes(self.server.read_bytes())
        good = f"# the house's\nlisten x-netlogs://127.0.0.1:0?cert={place}\n"
        config.write_text(good)
        process = self.serve("--config", config, listen=None)
        old = self.connect()
        old.sendall(record(1, 1))
        client = self.compile_client(CLIENT)
        program = self.start(client, self.url("&policy=block&block=60"), "3000", "1000", stdout=subprocess.PIPE,
                             text=True)
        support.wait_until(lambda: len(self.numbers()) > 100, what="events come")
        for bad, why in ((good + "listn x\n", f"{config}:3: listn: unknown directive"),
                         (good.replace("used", "gone"), f"{config}:2: listen: .*gone.pem: No such file"),
                         (good + "max-connections no\n", f'{config}:3: max-connections: .*no.* is not a whole number'),
                         (good + "listen x-netlog://127.0.0.1:0\n", "x-netlog://127.0.0.1:0: a reload cannot change the addresses"),
                         (good + "reject elsewhere\n", "reject: a reload cannot change this setting")):
            config.write_text(bad)
            self.reload(process, "Netlogd.ReloadRefused")
            self.assertRegex(self.said(), f"netlogd: {why}")
            self.assertRegex(self.said(), f"NL.EVNT=Netlogd.ReloadRefused REASON=\"{why}")
        config.write_text(good)
        place.write_text("nothing")
        self.reload(process, "Netlogd.ReloadRefused")
        self.assertEqual(self.write(self.url()).returncode, 0, "the old one holds")
        another = Authority(self, "another")
        place.write_bytes(another.certify("new").read_bytes())
        self.reload(process, "Netlogd.Reload")
        self.refused(self.url(), "certificate")
        self.assertEqual(self.write(f"x-netlogs://127.0.0.1:{self.port}?ca={another.ca}").returncode, 0)
        old.sendall(record(1, 2))
        old.unwrap()
        self.assertEqual(program.wait(60), 0, program.stdout.read())
        self.stop(process)
        self.assertEqual(self.numbers().count(2), 2)
        self.assertEqual(sorted(set(self.numbers())), list(range(3000)))

    def test_reload_demands_certificates_from_then_on(self):
        config = self.scratch / "netlogd.conf"
        config.write_text(f"listen x-netlogs://127.0.0.1:0?cert={self.server}\n")
        process = self.serve("--config", config, listen=None)
        self.assertEqual(self.write(self.url()).returncode, 0)
        config.write_text(f"listen x-netlogs://127.0.0.1:0?cert={self.server}&ca={self.authority.ca}\n")
        self.reload(process, "Netlogd.Reload")
        self.refused(self.url(), "requires a client certificate")
        self.assertEqual(self.write(self.url(f"&cert={self.client}")).returncode, 0)
        self.stop(process)

    def test_peers_by_name(self):
        """peers= accepts clients by the common name, and by names of each kind in subjectAltName. A wildcard matches one
        label."""
        a = self.authority
        certificates = {
            "common": a.certify("producer.example", "DNS:other.example"), "dns": a.certify("x1", "DNS:web7.Lab.Example"),
            "address": a.certify("x2", "IP:192.0.2.7"), "six": a.certify("x3", "IP:2001:db8::7"), "uri": a.certify("x4", "URI:spiffe://site/Producer"),
            "deep": a.certify("x5", "DNS:a.b.lab.example"), "bare": a.certify("x6", "DNS:lab.example"), "star": a.certify("x7", "DNS:*.lab.example"),
            "none": a.certify("x8", "DNS:elsewhere.example"), "case": a.certify("x9", "URI:spiffe://site/producer"),
            "stranger": Authority(self, "strangers").certify("producer.example")}
        peers = "PRODUCER.example,*.lab.example,192.0.2.7,2001:db8:0:0::7,spiffe://site/Producer"
        process = self.serve_tls(options=f"&ca={a.ca}&peers={peers}")
        for kind in ("common", "dns", "address", "six", "uri"):
            self.assertEqual(self.write(self.url(f"&cert={certificates[kind]}"), kind).returncode, 0, kind)
        for kind in ("deep", "bare", "star", "none", "case", "stranger"):
            self.assertEqual(self.write(self.url(f"&cert={certificates[kind]}"), kind).returncode, 1, kind)
        self.stop(process)
        self.assertEqual([e.decode() for e in re.findall(rb"NL.EVNT=(\w+)", self.written())], ["common", "dns", "address", "six", "uri"])
        self.assertIn("the client's certificate has none of the names in peers=", self.said())

    def test_expired_client(self):
        process = self.serve_tls(options=f"&ca={self.authority.ca}")
        self.refused(self.url(f"&cert={self.authority.certify('old', days=-1)}"), "expired")
        self.stop(process)

    def test_revoked_clients(self):
        """SIGHUP makes netlogd read the list again and disconnect the revoked clients. With an expired list, no client may connect."""
        a, config = self.authority, self.scratch / "netlogd.conf"
        mallory = a.certify("mallory")
        lists = a.revoke(name="list")
        listen = f"listen x-netlogs://127.0.0.1:0?cert={self.server}&ca={a.ca}"
        config.write_text(f"{listen}&crl={lists}\n")
        process = self.serve("--config", config, listen=None)
        for certificate in (mallory, self.client):
            self.assertEqual(self.write(self.url(f"&cert={certificate}")).returncode, 0, "nobody is revoked")
        connected = {name: self.connect(certificate) for name, certificate in (("mallory", mallory), ("client", self.client))}
        for i, s in enumerate(connected.values()):
            s.sendall(record(1, i))
        reader = self.connect(mallory)
        reader.sendall(b"NETLOGGER/1 subscribe\n")
        self.assertIn(b"Netlogd.Subscribed", reader.recv(1000))
        support.wait_until(lambda: sorted(self.numbers()) == [0, 1], what="both are connected")
        a.revoke("mallory", name="list")
        self.reload(process, "Netlogd.Reload")
        self.refused(self.url(f"&cert={mallory}"), "revoked")
        self.assertEqual(self.write(self.url(f"&cert={self.client}")).returncode, 0)
        for s in (connected["mallory"], reader):
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                while s.recv(1000):
                    pass
        connected["client"].sendall(record(1, 2))
        support.wait_until(lambda: sorted(self.numbers()) == [0, 1, 2], what="who is not revoked goes on")
        a.revoke(name="list", times=("-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"))
        self.reload(process, "Netlogd.Reload")
        self.refused(self.url(f"&cert={self.client}"), "expired")
        a.revoke(name="list")
        self.reload(process, "Netlogd.Reload")
        self.assertEqual(self.write(self.url(f"&cert={self.client}")).returncode, 0, "a new list")
        other = Authority(self, "another")
        lists.write_bytes(other.revoke().read_bytes())
        self.reload(process, "Netlogd.Reload")
        self.refused(self.url(f"&cert={self.client}"), "does not trust the CA of this program")
        lists.write_text("nothing")
        self.reload(process, "Netlogd.ReloadRefused")
        self.assertIn("revocation list", self.said())
        self.stop(process)

    def test_options_that_need_certificates(self):
        for option in ("peers=a", f"crl={self.authority.ca}", "certified_hosts=yes"):
            said = self.fails("--listen", f"x-netlogs://127.0.0.1:0?cert={self.server}&{option}", status=2)
            self.assertIn("ca=FILE", said)

    def test_hosts_of_the_certificate(self):
        """Records of other hosts count as malformed, in lines and in blocks."""
        certificate = self.authority.certify("h1", "DNS:h2.example,DNS:*.lab.example,IP:192.0.2.9")
        reject = self.scratch / "reject"
        process = self.serve_tls("--reject", reject, options=f"&ca={self.authority.ca}&certified_hosts=yes")
        hosts = {"h1": True, "H2.example": True, "h2": False, "x.lab.example": True, "x.y.lab.example": False, "192.0.2.9": True,
                 "192.0.2.8": False, "*.lab.example": False, "root": False}
        with self.connect(certificate) as s:
            for i, host in enumerate(hosts):
                s.sendall(record(1, i).replace(b"HOST=h1 ", f"HOST={host} ".encode()))
            s.unwrap()
        support.wait_until(lambda: len(self.numbers()) == 4, what="those of its own")
        for host in ("h1", "h3"):
            client = self.compile_client(CLIENT)
            result = self.run_program(client, self.url(f"&cert={certificate}"), "100", env={**os.environ, "NETLOGGER_HOST": host})
            self.assertEqual(result.returncode, 0, result.stdout)
        self.stop(process)
        self.assertEqual(self.numbers()[:4], [i for i, good in enumerate(hosts.values()) if good])
        self.assertEqual(self.numbers()[4:], list(range(100)))
        self.assertNotIn(b"HOST=h3", self.written())
        self.assertIn(b"HOST=root", reject.read_bytes())
        self.assertIn("HOST is not a name in the client's certificate", self.said())
        # Five records of the first connection, and the first ten of the connection that sends records of h3.
        self.assertEqual(self.said().count("NL.EVNT=Netlogd.Malformed"), 5 + 10, self.said())
        self.assertEqual(self.said().count("further malformed input of this client is only counted"), 1, self.said())

    def test_records_that_blocks_cannot_hold_are_reported(self):
        archive = self.scratch / "all.nlb"
        process = self.serve_tls(output=archive)
        wide = record(1, 1, padding="".join(f" F{i}={i}" for i in range(20000)))
        with self.connect() as s:
            s.sendall(record(1, 0) + wide + record(1, 2))
            s.unwrap()
        self.stop(process)
        self.assertRegex(self.said(), r"all.nlb: a record has \d+ fields, but the nlb format allows 16384; use a text format; record omitted")
        verified = self.run_program(self.netlogd, "--verify", archive)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertNotIn("missing", verified.stdout + verified.stderr)
        self.assertIn("2 records", verified.stdout)

    def test_rejected_hosts_leave_no_gaps(self):
        certificate, archive = self.authority.certify("h1"), self.scratch / "all.nlb"
        client = self.compile_client(r"""
            #include <netlogger.h>
            int main(int argc, char **argv)
            {
                nl_log *log = nl_open("p", argv[argc - 1]);
                for (int i = 0; i < 100; i++) {
                    nl_record *record = nl_record_new();
                    nl_record_set_time(record, nl_time_now_ns());
                    nl_record_set_level(record, NL_USAGE);
                    nl_record_set_host(record, i % 2 ? "h1" : "h3", 2);
                    nl_record_set_prog(record, "p", 1);
                    nl_record_set_event(record, "E", 1);
                    nl_record_add_uint(record, "N", i);
                    nl_write_record(log, record);
                    nl_record_free(record);
                }
                return nl_close(log) == NL_OK ? 0 : 1;
            }
            """)
        process = self.serve_tls(options=f"&ca={self.authority.ca}&certified_hosts=yes", output=archive)
        self.assertEqual(self.run_program(client, self.url(f"&cert={certificate}")).returncode, 0)
        self.stop(process)
        lines = self.run_program(support.program("nlsort/nlsort"), "--format", "ulm", archive).stdout.splitlines()
        self.assertEqual([int(line.rpartition("N=")[2]) for line in lines if " HOST=h1 " in line], list(range(1, 100, 2)))
        self.assertEqual(sum("NL.EVNT=Netlogd.Rejected PEER=127.0.0.1:" in line for line in lines), 50)
        self.assertEqual(len(lines), 100)
        verified = self.run_program(self.netlogd, "--verify", archive)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertNotIn("missing", verified.stdout + verified.stderr)

    def test_many_clients_at_once(self):
        process = self.serve_tls()
        chunks = {c: b"".join(record(c, n) for n in range(2000)) for c in range(10)}

        def send(data):
            with self.connect() as s:
                s.sendall(data)
                s.unwrap()

        threads = [threading.Thread(target=send, args=(data,)) for data in chunks.values()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.stop(process)
        lines = self.written().splitlines(keepends=True)
        self.assertEqual(len(lines), 20000)
        for c, data in chunks.items():
            self.assertEqual(b"".join(l for l in lines if f"HOST=h{c} ".encode() in l), data)


if __name__ == "__main__":
    support.main()
