"""netlogd and nlagentd confine themselves, even if a user starts them with every feature. Forbidden actions fail."""
import ctypes
import errno
import os
import pathlib
import signal
import socket
import tempfile

import collector
import nlagents
import support
from collector import Authority, record

SOURCE = pathlib.Path(__file__).with_name("forbidden.c")
DENIED = {"write-shadow": errno.EACCES, "read-elsewhere": errno.EACCES, "create-elsewhere": errno.EACCES, "connect": errno.EACCES,
          "socket-packet": errno.EPERM, "socket-raw": errno.EPERM, "socket-tcp": 0, "unshare": errno.ENOSYS, "mount": errno.ENOSYS,
          "bpf": errno.ENOSYS, "setuid": errno.ENOSYS, "writable-code": errno.EPERM, "kill-parent": errno.EPERM,
          "ptrace": errno.ENOSYS, "fork": errno.EPERM, "execute": errno.ENOSYS, "end": 0}


def has_sanitizer(program):
    return b"__asan_init" in pathlib.Path(program).read_bytes()


def landlock_version():
    landlock_create_ruleset, version = 444, 1
    return ctypes.CDLL(None).syscall(landlock_create_ruleset, None, 0, version)


class Confined(support.Case):
    """Common functions of both daemons' tests."""

    def assert_confined(self, pid):
        """Returns the number of threads. Threads are confined before they read anything, but after they open a socket."""
        support.wait_until(lambda: "Seccomp:\t2\n" in pathlib.Path(f"/proc/{pid}/status").read_text(), what="confinement")
        tasks = list(pathlib.Path(f"/proc/{pid}/task").iterdir())
        for task in tasks:
            status = (task / "status").read_text()
            self.assertIn("Seccomp:\t2\n", status, task)
            self.assertIn("NoNewPrivs:\t1\n", status, task)
        return len(tasks)

    def intruder(self, program):
        """The environment that makes a program attempt forbidden actions on SIGUSR2."""
        library = self.scratch / "forbidden.so"
        sanitized = ["-DWITH_SANITIZER"] if has_sanitizer(program) else []
        result = self.run_program(*support.CC.split(), *sanitized, "-shared", "-fPIC", "-o", library, SOURCE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.results = self.scratch / "results"
        elsewhere = tempfile.NamedTemporaryFile(dir="/var/tmp")
        self.addCleanup(elsewhere.close)
        return {**os.environ, "LD_PRELOAD": str(library), "FORBIDDEN_RESULTS": str(self.results),
                "FORBIDDEN_FILE": elsewhere.name, "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def try_forbidden(self, process, **others):
        process.send_signal(signal.SIGUSR2)
        support.wait_until(lambda: "end" in self.results.read_text(), what="all attempts")
        found = {name: int(number) for name, number in map(str.split, self.results.read_text().splitlines())}
        if landlock_version() < 4:
            del found["connect"]
        self.assertEqual(found, {name: {**DENIED, **others}[name] for name in found})


class Netlogd(collector.Case, Confined):
    def test_what_is_forbidden_fails(self):
        environment = self.intruder(self.netlogd)
        folder = self.scratch / "output"
        folder.mkdir()
        process = self.serve(output=folder / "all.log", env=environment)
        self.assert_confined(process.pid)
        self.refuses_calls = True
        self.try_forbidden(process, connect=errno.ECONNREFUSED)  # a reload may name any collector
        support.wait_until(lambda: "system call execve was denied by the confinement of netlogd" in self.said(), what="the report")
        self.assertEqual(self.said().count("system call socket was denied by the confinement"), 1)
        support.wait_until(lambda: "NL.EVNT=Netlogd.CallRefused CALL=unshare" in self.said(), what="the event")
        self.send(record(1, 1))
        self.stop(process)
        self.assertEqual((folder / "all.log").read_bytes(), record(1, 1))

    def test_every_feature(self):
        ca = Authority(self, "ca")
        pem = ca.certify("collector")
        folders = {name: self.scratch / name for name in ("text", "spool", "spool2", "own", "sockets", "second")}
        for folder in folders.values():
            folder.mkdir()
        second = self.start(self.netlogd, "--foreground", "--recover", "0", "--listen", f"x-netlogs://127.0.0.1:0?cert={pem}&key={pem}",
                            "--output", folders["second"] / "all.nlb", stderr=open(self.scratch / "second.messages", "w"))
        said = support.wait_until(lambda: "listening on" in (self.scratch / "second.messages").read_text() and
                                  (self.scratch / "second.messages").read_text(), what="the second collector")
        port = said.split("127.0.0.1:")[1].split()[0]
        (self.scratch / "activation").write_text("level Debug\n")
        metrics, tls = support.free_port(), support.free_port()
        config = self.scratch / "netlogd.conf"
        config.write_text(f"""
listen x-netlogs://127.0.0.1:{tls}?cert={pem}&key={pem}
listen x-netlog+udp://127.0.0.1:0
listen unix:{folders['sockets']}/in
control unix:{folders['sockets']}/control
metrics http://127.0.0.1:{metrics}
pid-file {folders['sockets']}/pid
activation {self.scratch}/activation
reject {folders['own']}/rejected
recover 1
log file:{folders['own']}/own.log
output file:{folders['text']}/n-{{N}}.nlb?rotate_size=100k&zstd=3&fsync=0.05
output file:{folders['text']}/all.bp?format=bp&where=N > 0
output x-netlogs://localhost:{port}?spool={folders['spool']}&ca={ca.ca}
output x-syslog://local0?spool={folders['spool2']}
""")
        process = self.serve("--config", config)
        for i in range(20):
            self.send(b"".join(record(1, i * 1000 + k) for k in range(1000)))
        self.send(b"DATE=none\n")
        s = socket.create_connection(("127.0.0.1", metrics), timeout=20)
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertIn(b" 200 ", s.recv(100))
        s.close()
        self.run_program(support.program("netlogd/netlogctl"), "--control", f"{folders['sockets']}/control", "status")
        pem.write_bytes(ca.certify("again").read_bytes())
        process.send_signal(signal.SIGHUP)
        own = folders["own"] / "own.log"
        support.wait_until(lambda: "Netlogd.Reload " in own.read_text(), what="the reload")
        support.wait_until(lambda: "Netlogd.Delivered" in own.read_text() or (folders["second"] / "all.nlb").stat().st_size > 1000,
                           what="records at the second collector")
        self.assertGreater(self.assert_confined(process.pid), 3)
        self.assert_confined(second.pid)
        for pid in support.children(process.pid):
            self.assert_confined(pid)
        # The process refuses a reload that needs rights that the process gave up, and names the remedy.
        for line in (f"output /var/tmp/{self.scratch.name}/x.log", f"listen x-netlogs://127.0.0.1:{tls}?cert=/var/tmp/x.pem&key=/var/tmp/x.pem"):
            before = self.said().count("restart the daemon (see --confine)")
            text = config.read_text()
            config.write_text(f"{text}{line}\n" if line.startswith("output") else line + "\n")
            process.send_signal(signal.SIGHUP)
            support.wait_until(lambda: self.said().count("restart the daemon (see --confine)") > before, what=f"{line}: {self.said()}")
            config.write_text(text)
        self.stop(process)
        self.stop(second)
        self.assertNotIn("CallRefused", own.read_text())
        self.assertNotIn("confine", (self.scratch / "second.messages").read_text())


class Nlagentd(nlagents.Agent, Confined):
    def test_what_is_forbidden_fails(self):
        environment = self.intruder(self.nlagentd)
        self.refuses_calls = True
        agent = self.start_agent("--sensor", "own=echo DATE=20260101120000 HOST=a PROG=own LVL=Usage NL.EVNT=Own; sleep 60", env=environment)
        watcher = self.subscribe(agent, "own")
        self.assertIn("NL.EVNT=Own", watcher.stdout.readline())
        self.assert_confined(agent.pid)
        for pid in support.children(agent.pid):
            self.assert_confined(pid)
        self.try_forbidden(agent)
        support.wait_until(lambda: "Nlagentd.CallRefused CALL=execve" in self.log_text(agent), what="the report")
        # The sensors can run and stop as before.
        self.assertEqual(len(self.children(agent)), 1)
        watcher.terminate()
        support.wait_until(lambda: self.children(agent) == {}, what="the sensor's end")

    def test_without_the_process_that_starts_sensors_it_ends(self):
        agent = self.start_agent()
        os.kill(next(iter(support.children(agent.pid))), signal.SIGKILL)
        watcher = self.subscribe(agent, "cpu")
        self.assertEqual(agent.wait(20), 1)
        watcher.wait(20)


del Confined


if __name__ == "__main__":
    support.main()
