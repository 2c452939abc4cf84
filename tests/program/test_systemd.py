"""The units, run by a separate systemd, the first process of its own namespaces.

This systemd has the units under test and a few targets of the installed units. It has its own /etc, /run, /var/lib, /dev and
network, and a part of the control groups. It may only read the parts that belong to the whole machine (/proc/sys, /sys).
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import support
from producer import PROGRAM

SYSTEMD = "/lib/systemd/systemd"
UNITS = pathlib.Path("/lib/systemd/system")
TARGETS = ("sysinit", "basic", "sockets", "shutdown", "multi-user")

# $1 is a directory with units, programs and configuration; the other arguments are systemd's command.
INSIDE = r"""
set -e
files=$1; shift
mount --make-rprivate /
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,ro,bind /proc/sys
mount --bind /sys /sys
mount -o remount,ro,bind /sys
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs -o mode=755 none /mnt
cp -a "$files" /mnt/netlogger
mkdir /mnt/dev
for node in null zero full random urandom tty; do
    touch /mnt/dev/$node; mount --bind /dev/$node /mnt/dev/$node
done
ln -s /proc/self/fd /mnt/dev/fd
mkdir /mnt/dev/shm /mnt/dev/pts
mount -t devpts -o newinstance none /mnt/dev/pts
ln -s pts/ptmx /mnt/dev/ptmx
mount --rbind /mnt/dev /dev
cp -a /etc /mnt/etc
rm -rf /mnt/etc/systemd
cp "$files/netlogd.conf" /mnt/etc
mount --bind /mnt/etc /etc
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
ip link set lo up
exec "$@"
"""

SEND = """
import socket, sys
with socket.create_connection(("127.0.0.1", 14830), timeout=60) as s:
    s.sendall(sys.stdin.buffer.read())
    s.shutdown(socket.SHUT_WR)
    assert s.recv(1) == b""
"""


def line(number):
    return f"DATE=20260101000000.{number % 1000000:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={number}\n"


class Systemd(support.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("namespaces require root")
        for program in (SYSTEMD, "/usr/bin/systemctl", "/usr/bin/setpriv", "/usr/bin/unshare", "/usr/bin/nsenter"):
            if not os.path.exists(program):
                self.skipTest(f"no {program} here")
        self.place_files()
        self.make_group()
        self.boot()

    # ---- preparation ----

    def place_files(self):
        """Makes the units, programs and configuration as they are installed, except that the programs are in the build
        directory."""
        self.files = self.scratch / "netlogger"
        (self.files / "units").mkdir(parents=True)
        for program in ("netlogd", "netlogctl"):
            built = pathlib.Path(support.program(f"netlogd/{program}"))
            real = built.parent / ".libs" / program
            shutil.copy(real if real.exists() else built, self.files / program)
        if b"__asan_init" in (self.files / "netlogd").read_bytes() or b"__tsan_init" in (self.files / "netlogd").read_bytes():
            self.skipTest("a sanitizer does what the unit does not allow")
        for library in (support.BUILD / "libnetlogger" / ".libs").glob("libnetlogger.so.?"):
            shutil.copy(library, self.files)
        for name in ("netlogd.service.in", "netlogd.socket"):
            text = (support.SOURCE / "packaging" / name).read_text()
            for here, there in (("@bindir@", "/mnt/netlogger"), ("@sysconfdir@", "/etc")):
                text = text.replace(here, there)
            (self.files / "units" / name.removesuffix(".in")).write_text(text)
        drop_in = self.files / "units" / "netlogd.service.d"
        drop_in.mkdir()
        (drop_in / "test.conf").write_text("[Service]\nEnvironment=LD_LIBRARY_PATH=/mnt/netlogger\n"
                                           "StandardOutput=append:/mnt/netlogger/said\nStandardError=append:/mnt/netlogger/said\n")
        for target in TARGETS:
            shutil.copy(UNITS / f"{target}.target", self.files / "units")
        (self.files / "units" / "test.target").write_text("[Unit]\nDescription=test\nDefaultDependencies=no\n")
        shutil.copy(support.SOURCE / "packaging" / "netlogd.conf", self.files)

    def make_group(self):
        """Makes a control group below that of this process."""
        mounts = pathlib.Path("/proc/self/mounts").read_text()
        mounted = re.search(r"^\S+ (\S+) cgroup2 ", mounts, re.M)
        here = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.M)
        if not mounted or not here:
            self.skipTest("no control groups of version 2 here")
        self.group = pathlib.Path(mounted[1] + here[1].rstrip("/")) / self.scratch.name
        try:
            self.group.mkdir()
        except OSError as error:
            self.skipTest(f"a control group cannot be made: {error}")
        self.addCleanup(self.remove_group)

    def remove_group(self):
        def removed():
            for folder, _, _ in os.walk(self.group, topdown=False):
                try:
                    os.rmdir(folder)
                except OSError:  # the last process of the service is still exiting
                    return False
            return True
        support.wait_until(removed, what="the control groups are empty")

    def boot(self):
        (self.scratch / "inside.sh").write_text(INSIDE)
        environment = {"PATH": os.environ["PATH"], "container": "test", "SYSTEMD_UNIT_PATH": "/mnt/netlogger/units",
                       "SYSTEMD_GENERATOR_PATH": "/nonexistent", "SYSTEMD_ENVIRONMENT_GENERATOR_PATH": "/nonexistent"}
        enter = f'echo $$ >{self.group}/cgroup.procs && exec "$@"'
        with open(self.scratch / "console", "wb") as console:
            self.outer = self.start(
                "sh", "-c", enter, "enter", "setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--ipc",
                "--uts", "--cgroup", "--net", "--kill-child=KILL", "sh", self.scratch / "inside.sh", self.files, SYSTEMD,
                "--unit=test.target", "--log-target=console", "--show-status=no", stdout=console, stderr=console,
                env=environment)
        self.first = support.wait_until(self.find_first, what="systemd starts")
        self.addCleanup(self.end_first)
        support.wait_until(lambda: self.outer.poll() is not None or self.control("is-active", "test.target") == 0,
                           what="systemd runs")
        if self.outer.poll() is not None:
            self.skipTest(f"systemd cannot run here: {self.console()}")

    def find_first(self):
        """Returns the process ID of systemd outside of the namespace, or None before systemd runs."""
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        try:
            for child in children.read_text().split():
                if os.readlink(f"/proc/{child}/exe").endswith("/systemd"):
                    return int(child)
        except OSError:
            pass
        if self.outer.poll() is not None:
            self.skipTest(f"namespaces cannot be made here: {self.console()}")
        return None

    def end_first(self):
        if self.outer.poll() is None:
            os.kill(self.first, signal.SIGKILL)  # kills all processes of its namespace
        self.outer.wait()

    def console(self):
        return (self.scratch / "console").read_text(errors="replace")[-2000:]

    # ---- actions inside ----

    def inside(self, *command, **options):
        return self.run_program("nsenter", "--target", self.first, "--all", *command, **options)

    def control(self, *words):
        self.answer = self.inside("systemctl", *words)
        return self.answer.returncode

    def must(self, *words):
        self.assertEqual(self.control(*words), 0, self.answer.stdout + self.answer.stderr + self.said() + self.console())

    def show(self, name, unit="netlogd.service"):
        self.must("show", "--value", "--property", name, unit)
        return self.answer.stdout.strip()

    def path(self, path):
        return pathlib.Path(f"/proc/{self.first}/root{path}")

    def said(self):
        said = self.path("/mnt/netlogger/said")
        return said.read_text(errors="replace") if said.exists() else ""

    def send(self, text):
        result = self.inside("/usr/bin/python3", "-c", SEND, input=text)
        self.assertEqual(result.returncode, 0, result.stderr + self.said() + self.console())

    def service(self):
        """Returns the process ID of netlogd outside of the namespace."""
        inside = int(self.show("MainPID"))
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                numbers = re.search(r"^NSpid:\s+(.*)$", status.read_text(), re.M)[1].split()
                if len(numbers) > 1 and int(numbers[-1]) == inside and self.is_ours(status.parent):
                    return int(status.parent.name)
            except OSError:
                pass
        return self.fail(f"no process {inside}")

    def is_ours(self, process):
        return os.readlink(process / "ns" / "pid") == os.readlink(f"/proc/{self.first}/ns/pid")

    def records(self):
        """Returns the whole content of the archive, as text."""
        archive = self.scratch / "archive"
        shutil.rmtree(archive, ignore_errors=True)
        shutil.copytree(self.path("/var/lib/private/netlogd"), archive)
        result = self.run_program(support.program("nlsort/nlsort"), archive)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    # ---- checks ----

    def test_socket_activation_and_what_the_service_may_do(self):
        self.must("start", "netlogd.socket")
        self.assertNotEqual(self.control("is-active", "netlogd.service"), 0, "it is started by its first client")
        self.send(line(1))
        self.must("is-active", "netlogd.service")
        support.wait_until(lambda: self.records() == line(1), what="the record is written")
        process = self.service()
        status = pathlib.Path(f"/proc/{process}/status").read_text()
        for name, value in (("CapEff", "0000000000000000"), ("CapBnd", "0000000000000000"), ("NoNewPrivs", "1"),
                            ("Seccomp", "2"), ("Groups", re.search(r"^Gid:\s+(\d+)", status, re.M)[1])):
            self.assertRegex(status, rf"(?m)^{name}:\s+{value}\s*$")
        self.assertGreater(int(re.search(r"^Seccomp_filters:\s+(\d+)", status, re.M)[1]), 0)
        self.assertNotIn("confine", self.said())
        user = int(re.search(r"^Uid:\s+(\d+)", status, re.M)[1])
        self.assertTrue(61184 <= user <= 65519, f"{user} is one of the users that are made for a service")
        mounts = pathlib.Path(f"/proc/{process}/mounts").read_text()
        self.assertRegex(mounts, r"(?m)^\S+ / \S+ ro,", "it can write nothing")
        self.assertRegex(mounts, r"(?m)^\S+ /var/lib/private/netlogd \S+ rw,", "but its own folder")
        self.assertEqual(os.stat(self.path("/var/lib/private/netlogd")).st_mode & 0o777, 0o750)
        answer = self.inside("/mnt/netlogger/netlogctl", "--json", "status",
                             env=dict(os.environ, LD_LIBRARY_PATH="/mnt/netlogger"))
        self.assertIn('"RECORDS":1', answer.stdout.replace(" ", ""), answer.stderr)
        self.must("stop", "netlogd.service", "netlogd.socket")
        self.assertEqual(self.show("Result"), "success")

    def test_reload(self):
        self.must("start", "netlogd.service")
        first = self.show("MainPID")
        configuration = self.path("/etc/netlogd.conf")
        good = configuration.read_text()
        configuration.write_text(good + "max-rate 100000\n")
        self.must("reload", "netlogd.service")
        support.wait_until(lambda: "Netlogd.Reload " in self.said(), what="the event")
        configuration.write_text(good + "max-rat 5\n")
        self.assertNotEqual(self.control("reload", "netlogd.service"), 0, "systemctl fails when netlogd refuses")
        self.assertIn(f"/etc/netlogd.conf:{good.count(chr(10)) + 1}: max-rat: unknown directive", self.said())
        self.must("is-active", "netlogd.service")
        self.assertEqual(self.show("MainPID"), first)
        # systemd does not retry a service that fails at its start.
        self.assertNotEqual(self.control("restart", "netlogd.service"), 0)
        self.assertEqual((self.show("ActiveState"), self.show("NRestarts")), ("failed", "0"))

    def test_restarts_and_kills_lose_nothing_and_refuse_nobody(self):
        program = self.compile_client(PROGRAM)
        self.must("start", "netlogd.socket", "netlogd.service")
        count = 30000
        client = self.start("nsenter", "--target", self.first, "--net", "--ipc", program, "c",
                            "x-netlog://127.0.0.1?policy=block&block=60&timeout=60", str(count), "3000",
                            stderr=subprocess.PIPE)
        for i in range(6):
            size = lambda: sum(p.stat().st_size for p in self.path("/var/lib/private/netlogd").glob("*.nlb"))
            before = size()
            support.wait_until(lambda: size() > before or client.poll() is not None, what="that something is collected")
            if i % 2 == 0:
                self.must("restart", "netlogd.service")
            else:
                killed = int(self.show("NRestarts"))
                os.kill(self.service(), signal.SIGKILL)
                support.wait_until(lambda: int(self.show("NRestarts")) > killed, what="that systemd starts it again")
                support.wait_until(lambda: self.show("ActiveState") == "active", what="that it runs again")
            self.send(line(i))  # the connection waits until netlogd has started, and is not refused
        self.assertEqual(client.wait(120), 0, client.stderr.read())
        self.must("stop", "netlogd.service", "netlogd.socket")
        text = self.records()
        found = sorted(int(n) for n in re.findall(r" PROG=c LVL=Usage NL.EVNT=Step I=(\d+) ", text))
        self.assertEqual(found, list(range(count)))
        self.assertEqual(sorted(re.findall(r"DATE=\S+ HOST=h PROG=p .*\n", text)), sorted(line(i) for i in range(6)))


if __name__ == "__main__":
    support.main()
