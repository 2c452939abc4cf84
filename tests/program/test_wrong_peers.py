"""If the peer of a sender or a reader is not netlogd, or if only one side uses TLS, the program prints one message with the
remedy."""
import os
import re
import shutil
import socket
import subprocess
import sys
import threading

import collector
import support

CLIENT = r"""
#include <netlogger.h>
int main(int argc, char **argv)
{
    nl_log *log = nl_open("client", argv[1]);
    for (int i = 0; i < argc; i++)
        nl_write(log, NL_USAGE, "Hello", "I=%d", i);
    return nl_close(log) != NL_OK;
}
"""

HTTP = "the peer is an HTTP server, not netlogd; check host and port"
CLOSED = "the peer closed the connection without a reply; perhaps it is not netlogd, does not allow this host, or requires TLS (x-netlogs://)"
SILENT = "no reply; check that the peer is netlogd, and that netlogd can write its output"
TLS_WANTED = "the port requires TLS; use x-netlogs:// in the URL"
NO_TLS = "the port does not use TLS; use x-netlog:// in the URL, or a port of netlogd's x-netlogs listeners"


def answer_late(connection):
    """Replies if the client waits longer than a client waits for an agent."""
    connection.settimeout(12)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Peers(collector.Case):
    def await_said(self, text):
        support.wait_until(lambda: text in self.said(), what=f"netlogd reports: {text}")


class WrongPeers(Peers):
    def nlwrite(self, url):
        return self.run_program(support.program("nltools/nlwrite"), "--dest", url, "Hello", "A=1")

    def check_senders(self, url, problem):
        """Every sender fails with one message that states the problem. No record is lost without a message."""
        for form in "nlb", "ulm":
            result = self.nlwrite(f"{url}{'&' if '?' in url else '?'}format={form}")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, rf"\Anlwrite: 1 event not delivered; nlrecover delivers it from \S+: {url.split('?')[0]}: "
                             rf"{re.escape(problem)}\n\Z")
        result = self.run_program(self.compile_client(CLIENT), url)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, rf"\Anetlogger: {url.split('?')[0]}: {re.escape(problem)} \(retrying\)\n"
                         rf"netlogger: 2 events not delivered; nlrecover delivers them from \S+: \S+: {re.escape(problem)}\n\Z")
        log = self.scratch / "some.log"
        log.write_bytes(collector.record(1, 1))
        result = self.run_program(support.program("nlsort/nlsort"), "-o", url, log)
        self.assertEqual((result.returncode, result.stderr), (1, f"nlsort: {url.split('?')[0]}: {problem}\n"))

    def check_reader(self, url, problem):
        result = self.run_program(support.program("nltools/nlstat"), url)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlstat: {url}: {problem}\n"))

    def check(self, port, problem, scheme="x-netlog"):
        self.check_senders(f"{scheme}://127.0.0.1:{port}", problem)
        self.check_reader(f"{scheme}://127.0.0.1:{port}", problem)

    def test_http_server(self):
        port = self.http_server()
        self.check(port, HTTP)
        self.check(port, "the peer is an HTTP server without TLS; check the scheme, host and port", scheme="x-netlogs")

    def test_nginx(self):
        if shutil.which("nginx") is None:
            self.skipTest("nginx is not installed")
        port, folder = support.free_port(), self.scratch
        (folder / "nginx.conf").write_text(f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
                                           f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; }} }}\n")
        self.start("nginx", "-c", folder / "nginx.conf", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="nginx listens")
        self.check(port, HTTP)

    def test_servers_that_speak_first(self):
        for text, problem in ((b"SSH-2.0-OpenSSH_9.2\r\n", "the peer is an SSH server, not netlogd; check host and port"),
                              (b"220 mail.example ESMTP\r\n", "the peer is a mail or FTP server, not netlogd; check host and port"),
                              (b"+OK ready\r\n", "the peer is not netlogd; check host and port")):
            port = self.peer(collector.greet(text))
            self.check(port, problem)

    def test_echo_server(self):
        port = self.peer(collector.send_back)
        self.check(port, "the peer is not netlogd, but a service that echoes its input; check host and port")

    def test_agents(self):
        """nlagent names the peer and the remedy, for agents and as a sender."""
        tls = self.peer(lambda connection: (connection.recv(10), connection.sendall(b"\x15\x03\x01\x00\x02\x02\x46")))
        nlagent, wrong = support.program("nlagent/nlagent"), "the peer is not nlagentd; check host and port"
        for port, scheme, problem in (
                (self.http_server(), "http", "the peer is an HTTP server, but not nlagentd (HTTP 501); check host and port"),
                (self.http_server(), "https", "the peer is an HTTP server without TLS; check the scheme, host and port"),
                (self.peer(collector.greet(b"SSH-2.0-OpenSSH_9.2\r\n")), "http", wrong),
                (self.peer(collector.send_back), "http", wrong),
                (self.peer(lambda connection: (connection.recv(1000), connection.sendall(b"HTTP/1.1 200 OK\r\nContent-"))), "http",
                 "the connection ended before the reply was complete"),
                (tls, "http", "the port requires TLS; use https:// in the URL"),
                (self.peer(answer_late), "http", "no reply; check that the peer is nlagentd"),
                (self.peer(lambda connection: connection.recv(10)), "http", "the peer closed the connection without a reply; perhaps it is not "
                 "nlagentd, does not allow this host, or requires TLS (https://)")):
            with self.subTest(problem):
                result = self.run_program(nlagent, "list", "--agent", f"{scheme}://127.0.0.1:{port}")
                self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlagent: {scheme}://127.0.0.1:{port}: {problem}\n"))
        agent, wrong = support.free_port(), self.http_server()
        self.start(support.program("nlagent/nlagentd"), "--foreground", "--listen", f"http://127.0.0.1:{agent}", stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(agent), what="nlagentd listens")
        result = self.run_program(nlagent, "collect", "--agent", f"http://127.0.0.1:{agent}", "--duration", "3", "--dest", f"x-netlog://127.0.0.1:{wrong}",
                                  "cpu")
        self.assertRegex(result.stderr, rf"\Anlagent: x-netlog://127.0.0.1:{wrong}: {HTTP} \(retrying\)\n"
                         rf"nlagent: \d+ events? not delivered; nlrecover delivers \w+ from \S+: x-netlog://127.0.0.1:{wrong}: {HTTP}\n\Z")
        self.assertEqual(result.returncode, 1)

    def test_server_that_closes(self):
        self.check(self.peer(lambda connection: connection.recv(10)), CLOSED)

    def test_silent_server(self):
        """The wait is limited, and the records are kept."""
        port = self.peer(collector.keep_silent)
        self.check_senders(f"x-netlog://127.0.0.1:{port}?timeout=0.3", SILENT)
        self.check_senders(f"x-netlogs://127.0.0.1:{port}?timeout=0.3",
                           "no reply to the TLS handshake; check that netlogd uses TLS there, and check host and port")
        result = self.nlwrite(f"x-netlog://127.0.0.1:{port}")
        self.assertIn(SILENT, result.stderr)
        self.assertEqual(result.returncode, 1)

    def test_unix_socket_of_another_server(self):
        path = self.scratch / "socket"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()

            def run():
                while True:
                    try:
                        connection, _ = listener.accept()
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                        connection.close()
                    except OSError:
                        return

            threading.Thread(target=run, daemon=True).start()
            result = self.nlwrite(f"unix:{path}")
            self.assertRegex(result.stderr, rf"delivers it from \S+: unix:{path}: {HTTP}\n")
            self.assertEqual(result.returncode, 1)
            listener.shutdown(socket.SHUT_RDWR)

    def test_tls_port_of_netlogd_without_tls(self):
        pem = collector.Authority(self, "ca").certify("localhost")
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}")
        self.check(self.port, TLS_WANTED)
        self.await_said("the client does not use TLS; use x-netlogs:// in its URL")

    def test_tls_server_that_is_not_netlogd(self):
        authority = collector.Authority(self, "ca")
        pem, port = authority.certify("localhost"), support.free_port()
        self.start("openssl", "s_server", "-accept", str(port), "-cert", pem, "-key", pem, "-www", stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="s_server listens")
        self.check(port, CLOSED)
        result = self.nlwrite(f"x-netlogs://localhost:{port}?ca={authority.ca}&timeout=0.5")
        self.assertEqual(result.returncode, 1)
        self.assertIn(SILENT, result.stderr)

    def test_plain_port_of_netlogd_with_tls(self):
        self.serve()
        self.check(self.port, NO_TLS, scheme="x-netlogs")
        self.await_said("closed: the client uses TLS, but this port does not")

    def test_control_socket_of_netlogd(self):
        control = self.scratch / "control"
        self.serve("--control", f"unix:{control}")
        self.check_senders(f"unix:{control}", "this is netlogd's control socket, which accepts no events; use one of netlogd's --listen URLs")

    def test_events_are_delivered_when_netlogd_takes_the_place(self):
        """Records in blocks that a wrong peer received are not lost."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            client = self.start(self.compile_client(CLIENT.replace("nl_log *log", "nl_set_message_handler(0, 0);\n    nl_log *log")
                                                    .replace("return nl_close", "while (nl_flush(log) != NL_OK)\n        continue;\n    return nl_close")),
                                f"x-netlog://127.0.0.1:{port}", stderr=subprocess.PIPE)
            connection, _ = listener.accept()
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            connection.close()
        server = self.serve(listen=f"x-netlog://127.0.0.1:{port}")
        self.assertEqual(client.wait(60), 0)
        self.assertIn(HTTP.encode(), client.stderr.read())
        self.stop(server)
        self.assertEqual(re.findall(rb"NL.EVNT=Hello (I=\d)\n", self.written()), [b"I=0", b"I=1"])

    def test_netlogd_with_a_wrong_output(self):
        own, port = self.scratch / "own.log", self.http_server()
        self.serve("--output", f"x-netlog://127.0.0.1:{port}?spool={self.scratch}/spool", "--log", own)
        self.send(collector.record(1, 1))
        said = support.wait_until(lambda: re.search(r"Netlogd.OutputAway .*REASON=\"([^\"]*)\"", own.read_text()), what="it reports")
        self.assertEqual(said.group(1), f"x-netlog://127.0.0.1:{port}: {HTTP}")


class Certificates(Peers):
    """After a failed verification, the message names the remedy and the names in the certificate."""

    def setUp(self):
        super().setUp()
        self.authority = collector.Authority(self, "first CA")

    def attempt(self, options, host="127.0.0.1"):
        result = self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlogs://{host}:{self.port}?{options}", "Hello")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
        return re.sub(r"\Anlwrite: 1 event not delivered; nlrecover delivers it from \S+: x-netlogs://\S+: ", "", result.stderr)[:-1]

    def test_another_name(self):
        pem = self.authority.certify("db1.example", "DNS:db1.example,DNS:localhost")
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}")
        self.assertEqual(self.attempt(f"ca={self.authority.ca}"), "the certificate is for db1.example, localhost, not for 127.0.0.1; "
                         "add the name with netlogctl certificates, or set the option name")
        self.assertEqual(self.attempt(f"ca={self.authority.ca}&name=db2"), "the certificate is for db1.example, localhost, not for db2; "
                         "add the name with netlogctl certificates, or set the option name")
        result = self.run_program(support.program("nltools/nlwrite"), "--dest",
                                  f"x-netlogs://127.0.0.1:{self.port}?ca={self.authority.ca}&name=db1.example", "Hello")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_expired(self):
        pem = self.authority.certify("localhost", days=-1)
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}")
        self.assertRegex(self.attempt(f"ca={self.authority.ca}"),
                         r"^the certificate expired at \d{4}-\d\d-\d\d \d\d:\d\d UTC; renew it with netlogctl certificates$")
        self.await_said("the client reports that this certificate has expired")

    def test_unknown_authority(self):
        pem, other = self.authority.certify("localhost"), collector.Authority(self, "second CA")
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}")
        self.assertEqual(self.attempt(f"ca={other.ca}"), f'the certificate is signed by "first CA", which is not in {other.ca}; '
                         "set the option ca to a file with this CA")
        self.assertEqual(self.attempt("name=localhost"), 'the certificate is signed by "first CA", which is not in this host\'s list of '
                         "CAs; set the option ca to a file with this CA")
        self.await_said("the client does not trust the CA of this certificate; set the client's option ca to a file with that CA")

    def test_client_certificates(self):
        pem, other = self.authority.certify("localhost"), collector.Authority(self, "second CA")
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}&ca={self.authority.ca}")
        ca = f"ca={self.authority.ca}"
        self.assertEqual(self.attempt(ca), "the server requires a client certificate; set the options cert and key "
                         "(netlogctl certificates creates the files)")
        self.await_said("the client has no certificate; set its options cert and key (netlogctl certificates creates the files)")
        self.assertEqual(self.attempt(f"{ca}&cert={other.certify('client')}"), "the server does not trust the CA of this program's "
                         "certificate (option cert); add the CA to the server's ca file")
        self.await_said('the client\'s certificate is signed by \\"second CA\\", which is not in the ca file; set the option ca to a file with the clients\' CA')
        self.assertEqual(self.attempt(f"{ca}&cert={self.authority.certify('old', days=-1)}"),
                         "this program's certificate (option cert) has expired; renew it with netlogctl certificates")
        self.await_said("the client's certificate expired at ")

    def test_certificate_without_key(self):
        self.authority.certify("client")
        cert = self.authority.folder / "client.crt"
        result = self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlogs://127.0.0.1?ca={self.authority.ca}&cert={cert}", "Hello")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rf"\Anlwrite: open x-netlogs://[^\n]*: {cert} has no usable private key; set the option key to the file of the key\n\Z")

    def test_names_with_control_characters(self):
        """The content of a certificate cannot control a terminal."""
        pem = self.authority.certify("a\x1b[31mred", "DNS:x.example")
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={pem}")
        said = self.attempt(f"ca={self.authority.ca}&name=y.example")
        self.assertIn("the certificate is for x.example, a?[31mred, not for y.example", said)


if __name__ == "__main__":
    os.environ.pop("NETLOGGER_QUIET", None)
    support.main()
