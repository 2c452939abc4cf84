"""netlogctl certificates, checked by openssl and by a real netlogd and nlwrite with TLS."""
import os
import re
import signal
import ssl
import stat
import subprocess
import time
import urllib.request

import support


CLIENT = r"""
#include <netlogger.h>
int main(int argc, char **argv)
{
    nl_log *log = nl_open("client", argv[1]);
    return argc != 2 || log == NULL || nl_write(log, NL_USAGE, "Client.Event", NULL) != NL_OK || nl_close(log) != NL_OK;
}
"""


class Certificates(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogctl = support.program("netlogd/netlogctl")
        self.directory = self.scratch / "ca"

    def run_with(self, status, *command):
        """Runs a program that must end with this status; returns what it printed on standard output and error."""
        result = self.run_program(*command)
        self.assertEqual(result.returncode, status, result)
        return result.stdout + result.stderr

    def make(self, *hosts, status=0):
        return self.run_with(status, self.netlogctl, "certificates", "--ca", self.directory, *hosts)

    def openssl(self, *arguments):
        return self.run_with(0, "openssl", *arguments)

    def issue(self, host, days):
        """Makes a certificate of the authority, with the host's own key, that is valid for that number of days."""
        request = self.scratch / "request"
        self.openssl("req", "-new", "-key", self.directory / f"{host}.key", "-subj", f"/CN={host}", "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", self.directory / "ca.crt", "-CAkey", self.directory / "ca.key", "-days", str(days),
                     "-out", self.directory / f"{host}.crt")

    def days(self, host):
        """The number of whole days for which a certificate is valid from now on."""
        end = self.openssl("x509", "-in", self.directory / f"{host}.crt", "-noout", "-enddate").removeprefix("notAfter=").strip()
        return int((ssl.cert_time_to_seconds(end) - time.time()) // 86400)

    def test_files(self):
        printed = self.make("collector.example.org", "10.0.0.1", "::1")
        names = {path.name for path in self.directory.iterdir()}
        self.assertEqual(names, {f"{n}.{k}" for n in ("ca", "collector.example.org", "10.0.0.1", "::1") for k in ("crt", "key")})
        for path in self.directory.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        self.assertEqual(stat.S_IMODE(self.directory.stat().st_mode), 0o700)
        for host, name in ("collector.example.org", "DNS:collector.example.org"), ("10.0.0.1", "IP Address:10.0.0.1"):
            self.assertIn(name, self.openssl("x509", "-in", self.directory / f"{host}.crt", "-noout", "-ext", "subjectAltName"))
            for purpose in "sslserver", "sslclient":
                self.openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", self.directory / "ca.crt", self.directory / f"{host}.crt")
        self.assertIn(self.days("10.0.0.1"), (364, 365))
        self.assertIn(self.days("ca"), (3649, 3650))
        self.assertIn("netlogd --listen 'x-netlogs://", printed)
        self.assertIn("--output all.log", printed)
        self.assertIn("--dest 'x-netlogs://collector.example.org?cert=", printed)

    def test_the_printed_commands(self):
        printed = self.make("127.0.0.1", "localhost").replace("/etc/netlogger", str(self.directory))
        listen = re.search(r"netlogd --listen '([^']*)'", printed)[1].replace("0.0.0.0", "127.0.0.1:0")
        output, messages = self.scratch / "out.log", self.scratch / "messages"
        with open(messages, "wb") as stderr:
            self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", listen, "--output", output, "--log", "/dev/null",
                       stderr=stderr)
        support.wait_until(lambda: "listening" in messages.read_text(), what="netlogd")
        port = re.search(r"listening on x-netlogs://127\.0\.0\.1:(\d+)", messages.read_text())[1]
        dest = re.search(r"--dest '([^']*)'", printed)[1].replace("127.0.0.1?", f"127.0.0.1:{port}?")
        self.run_with(0, support.program("nltools/nlwrite"), "--dest", dest, "Test.Event")
        support.wait_until(lambda: output.exists() and "Test.Event" in output.read_text(), what="the event")
        # A program that logs to this netlogd prints nothing, and needs no second destination.
        client = self.compile_client(CLIENT)
        result = self.run_program(client, f"{dest}&backup={self.scratch}/backup.log", env=dict(os.environ, NETLOGGER_SHM=str(self.scratch)))
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        support.wait_until(lambda: "Client.Event" in output.read_text(), what="the program's event")
        self.assertFalse((self.scratch / "backup.log").exists())
        # Without a certificate, the program is rejected.
        refused = self.run_program(support.program("nltools/nlwrite"), "--dest", re.sub(r"cert=[^&]*&key=[^&]*&", "", dest), "Other.Event")
        self.assertNotEqual(refused.returncode, 0)
        self.assertNotIn("Other.Event", output.read_text())

    def test_renewal(self):
        self.make("a", "b")
        key, kept = (self.directory / "a.key").read_bytes(), (self.directory / "b.crt").read_bytes()
        authority = (self.directory / "ca.crt").read_bytes()
        self.issue("a", 30)
        printed = self.make("a", "b")
        self.assertRegex(printed, r"a\.crt: renewed, valid until")
        self.assertRegex(printed, r"b\.crt: kept, valid until")
        self.assertTrue(self.days("a") >= 360)
        self.assertEqual(key, (self.directory / "a.key").read_bytes())
        self.assertEqual(kept, (self.directory / "b.crt").read_bytes())
        self.assertEqual(authority, (self.directory / "ca.crt").read_bytes())
        # A certificate of another authority, or of another key, is replaced.
        (self.directory / "a.crt").write_bytes(kept)
        self.assertRegex(self.make("a"), r"a\.crt: renewed")
        (self.directory / "b.key").unlink()
        self.assertRegex(self.make("b"), r"b\.crt: renewed")
        self.openssl("verify", "-CAfile", self.directory / "ca.crt", self.directory / "a.crt", self.directory / "b.crt")

    def test_netlogd_warns_before_a_certificate_expires(self):
        self.make("localhost", "client")
        log, metrics = self.scratch / "own.log", support.free_port()
        tls = "cert={0}/{1}.crt&key={0}/{1}.key&ca={0}/ca.crt"

        def start():
            process = self.start(
                support.program("netlogd/netlogd"), "--foreground", "--log", f"file:{log}", "--metrics", f"http://127.0.0.1:{metrics}",
                "--listen", "x-netlogs://127.0.0.1:0?" + tls.format(self.directory, "localhost"),
                "--output", "x-netlogs://localhost:1?" + tls.format(self.directory, "client") + f"&spool={self.scratch}/spool",
                stderr=subprocess.DEVNULL)
            support.wait_until(lambda: support.can_connect(metrics), what="metrics")
            return process

        def first():
            text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=30).read().decode()
            return int(re.search(r"^netlogd_certificate_expiry_timestamp_seconds (\d+)$", text, re.M)[1])

        netlogd = start()
        support.wait_until(lambda: first() > 0, what="the first check")
        self.assertTrue(364 * 86400 < first() - time.time() <= 365 * 86400)
        self.assertNotIn("CertificateExpires", log.read_text() if log.exists() else "")
        self.issue("client", 13)
        self.issue("localhost", 10)
        issued = int(time.time())
        support.wait_until(lambda: time.time() >= issued + 1, what="the certificates are valid for a little less than whole days")
        netlogd.send_signal(signal.SIGHUP)
        support.wait_until(lambda: log.exists() and log.read_text().count("Netlogd.CertificateExpires") == 2, what="the warnings")
        self.assertRegex(log.read_text(), r"NL\.EVNT=Netlogd\.CertificateExpires OF=x-netlogs://127\.0\.0\.1:0 EXPIRES=\S+Z DAYS=9\n")
        self.assertRegex(log.read_text(), r"NL\.EVNT=Netlogd\.CertificateExpires OF=\S*localhost:1 EXPIRES=\S+Z DAYS=12\n")
        self.assertTrue(9 * 86400 < first() - time.time() <= 10 * 86400)

    def test_what_cannot_be_done(self):
        for host in "../x", "", "a b", "-a", "ca", "x" * 300:
            problem = self.make("--", "good", host, status=1)
            self.assertEqual(problem, f"netlogctl: {host}: not a host name or address\n")
            self.assertEqual(list(self.directory.iterdir()), [])
        self.assertIn("missing HOST", self.make(status=2))
        self.assertIn("missing --ca DIR", self.run_with(2, self.netlogctl, "certificates", "a"))
        self.make("a")
        key = (self.directory / "ca.key").read_bytes()
        (self.directory / "ca.key").unlink()
        self.assertRegex(self.make("a", status=1), r"^netlogctl: \S*ca\.key is missing; restore it")
        (self.directory / "ca.key").write_bytes((self.directory / "a.key").read_bytes())
        self.assertIn("is not the private key that belongs to", self.make("a", status=1))
        (self.directory / "ca.key").write_bytes(b"damaged")
        self.assertEqual(self.make("a", status=1).count("\n"), 1)
        (self.directory / "ca.key").write_bytes(key)
        valid = (self.directory / "ca.crt").read_bytes()
        self.openssl("x509", "-in", self.directory / "ca.crt", "-signkey", self.directory / "ca.key", "-days", "-1", "-out",
                     self.directory / "ca.crt")
        self.assertRegex(self.make("b", status=1), r"^netlogctl: \S*ca\.crt has expired; create a new CA in another directory\n$")
        self.assertFalse((self.directory / "b.crt").exists())
        (self.directory / "ca.crt").write_bytes(valid)
        self.directory.chmod(0o777)
        self.assertIn("other users can write to", self.make("a", status=1))
        self.directory = self.scratch / "missing" / "ca"
        self.assertIn("No such file or directory", self.make("a", status=1))


if __name__ == "__main__":
    support.main()
