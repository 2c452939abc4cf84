"""A netlogd for a test: runs on a free port, keeps its messages, and ends with the test. Also makes certificates for it."""
import math
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import support


def record(client, number, padding=""):
    return f"DATE=20260101000000.{number % 1000000:06d} HOST=h{client} PROG=p LVL=Usage NL.EVNT=E N={number}{padding}\n".encode()


QUESTION_END = b"\r\n\r\n"  # the end of the time question with which the library opens a connection
ACKNOWLEDGEMENT = b"NLA1\x08" + bytes(3) + b"\x01" + bytes(7)  # the reply to this question


def keep_silent(connection):
    while connection.recv(65536):
        pass


def send_back(connection):
    while data := connection.recv(65536):
        connection.sendall(data)


def greet(text):
    def serve(connection):
        connection.sendall(text)
        keep_silent(connection)
    return serve


class Proxy:
    """Passes bytes between clients and a collector, and cuts the connection after so many bytes each time. Pauses for
    `pause` seconds after each 4 KiB from a client, and for `answer_pause` seconds before it passes on a reply."""

    def __init__(self, port, cuts, pause=0, answer_pause=0):
        self.target = port
        self.cuts = cuts
        self.pause = pause
        self.answer_pause = answer_pause
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # the collector is not running
                client.close()
                continue
            back = threading.Thread(target=self.copy, args=(server, client, math.inf, self.answer_pause), daemon=True)
            back.start()
            self.copy(client, server, self.cuts.pop(0) if self.cuts else math.inf)
            back.join()
            client.close()
            server.close()

    def copy(self, source, to, left, delay=0):
        """Passes `left` bytes on, and ends both connections."""
        try:
            while left > 0:
                data = source.recv(min(4096, left))
                if not data:
                    break
                time.sleep(delay)
                to.sendall(data)
                if len(data) == 4096:
                    time.sleep(self.pause)
                left -= len(data)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.listener.close()


class Authority:
    """Makes certificates, with the openssl command."""

    def __init__(self, case, name):
        self.case, self.folder = case, case.scratch / name
        self.folder.mkdir()
        self.ca = self.folder / "ca.pem"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "3", "-subj",
                     f"/CN={name}", "-keyout", self.folder / "ca.key", "-out", self.ca)

    def openssl(self, *arguments):
        result = self.case.run_program("openssl", *arguments)
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    def certify(self, name, alternative="DNS:localhost,IP:127.0.0.1", days=2):
        """Returns a file with a certificate and its key."""
        files = {kind: self.folder / f"{name}.{kind}" for kind in ("key", "csr", "ext", "crt", "pem")}
        files["ext"].write_text(f"subjectAltName={alternative}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", files["key"], "-out", files["csr"])
        self.openssl("x509", "-req", "-in", files["csr"], "-CA", self.ca, "-CAkey", self.folder / "ca.key", "-CAcreateserial",
                     "-days", str(days), "-extfile", files["ext"], "-out", files["crt"])
        files["pem"].write_bytes(files["crt"].read_bytes() + files["key"].read_bytes())
        return files["pem"]


    def revoke(self, *names, name="crl", times=("-crldays", "2")):
        """Returns a revocation list with these certificates and the certificates that were revoked earlier."""
        database, config = self.folder / "index", self.folder / "ca.conf"
        if not config.exists():
            database.write_text("")
            (self.folder / "number").write_text("01\n")
            config.write_text(f"[ca]\ndefault_ca=own\n[own]\ndatabase={database}\ndefault_md=sha256\ncrlnumber={self.folder}/number\n")
        common = ["ca", "-config", config, "-cert", self.ca, "-keyfile", self.folder / "ca.key"]
        for revoked in names:
            self.openssl(*common, "-revoke", self.folder / f"{revoked}.crt")
        crl = self.folder / f"{name}.pem"
        self.openssl(*common, "-gencrl", *times, "-out", crl)
        return crl


class Case(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.output = self.scratch / "all.log"
        self.messages = self.scratch / "messages"

    def serve(self, *arguments, output=None, listen="x-netlog://127.0.0.1:0", **options):
        """Starts netlogd. Sets self.port to the port of its first listener on 127.0.0.1."""
        self.check_refused_calls()
        self.messages.write_bytes(b"")
        with open(self.messages, "ab") as messages:
            process = self.start(self.netlogd, "--foreground", *(["--listen", listen] if listen else []), "--output",
                                 output or self.output, *arguments, stderr=messages, **options)
        pattern = r"netlogd: listening on [-a-z+]+://127\.0\.0\.1:(\d+)\n"
        found = support.wait_until(lambda: process.poll() is None and re.search(pattern, self.said()),
                                   what="netlogd listens")
        self.port = int(found.group(1))
        return process

    def said(self):
        return self.messages.read_text(errors="replace")

    def written(self):
        return self.output.read_bytes() if self.output.exists() else b""

    def send(self, data):
        """Sends all data, and waits until netlogd has read it and closed. netlogd acknowledges only blocks."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while part := s.recv(4096):
                answer += part
            frames = [answer[at:at + 16] for at in range(0, len(answer), 16)]
            self.assertEqual([frame for frame in frames if len(frame) != 16 or not frame.startswith(b"NLA1")], [])

    def stop(self, process, sent=signal.SIGTERM):
        process.send_signal(sent)
        self.assertEqual(process.wait(20), 0, self.said())

    def fails(self, *arguments, status=1, **options):
        result = self.run_program(self.netlogd, "--foreground", *arguments, timeout=10, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def peer(self, serve):
        """Starts a server that calls serve for each connection. Returns the port."""
        listener = socket.create_server(("127.0.0.1", 0))

        def one(connection):
            with connection:
                try:
                    serve(connection)
                except OSError:
                    pass

        def run():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=one, args=(connection,), daemon=True).start()

        threading.Thread(target=run, daemon=True).start()
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return listener.getsockname()[1]

    def http_server(self):
        server = self.start(sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0", stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, cwd=self.scratch)
        return int(re.search(rb" port (\d+) ", server.stdout.readline()).group(1))
