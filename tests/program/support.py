"""What whole-program tests share: where the built programs are, scratch folders, processes that always end.

A test is a unittest file that ends with `support.main()`; it prints TAP. It runs from `make check`, which sets
NL_BUILD_DIR and NL_SOURCE_DIR, or by hand with both in the environment. With NL_QUICK=1 tests marked `@support.long` are left
out, which ./check without --full does. NL_TEST_TIMES=FILE has a line added to FILE for each test: its seconds, those of a
processor that it and its processes took, its file, its name.
"""
import atexit
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = pathlib.Path(os.environ["NL_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["NL_SOURCE_DIR"])
SHM = tempfile.mkdtemp(prefix="netlogger-test-", dir="/dev/shm") if os.path.isdir("/dev/shm") else None
if SHM is not None:
    atexit.register(shutil.rmtree, SHM, ignore_errors=True)
# What programs say of their clocks is not in the way of tests that are about something else.
os.environ.setdefault("NETLOGGER_CLOCK", "no")
os.environ.setdefault("LSAN_OPTIONS", f"suppressions={SOURCE}/tests/program/leaks.supp:print_suppressions=0")
CC = os.environ.get("NL_CC", "cc")


def program(path):
    """The built program at this path below the build folder; the test is skipped when that part was not built."""
    full = BUILD / path
    if not full.exists():
        raise unittest.SkipTest(f"{path} is not built here")
    return str(full)


def pkg_config_folder(folder):
    """The folder itself, with a netlogger.pc in it that says where the library as built is."""
    (folder / "netlogger.pc").write_text(f"Name: netlogger\nDescription: d\nVersion: 1.0.0\nCflags: -I{SOURCE}/libnetlogger/include\n"
                                         f"Libs: -L{BUILD}/libnetlogger/.libs -lnetlogger\n")
    return str(folder)


_given_ports = []


def free_port():
    """A port, TCP and UDP, that nobody has and that only this test is given while it runs. It lies below those that
    connections get from the kernel: one of them would else take it before a program listens there."""
    connections = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(min(10000, connections // 2), connections)
        given = socket.socket(socket.AF_UNIX)
        try:
            given.bind(f"\0netlogger-test-port-{port}")
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as s:
                    s.bind(("0.0.0.0", port))
        except OSError:
            given.close()
            continue
        _given_ports.append(given)  # as long as this process lives
        return port


def wait_until(condition, seconds=60.0, what="condition"):
    """Calls condition until it is true; a test failure after that many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {seconds} s")


def is_sanitized(process):
    """Whether a running process was built with the address sanitizer, which takes memory of its own."""
    return "asan" in pathlib.Path(f"/proc/{process.pid}/maps").read_text()


def can_connect(port, host="127.0.0.1"):
    """Whether something accepts TCP connections there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def children(*pids):
    """What processes have started and is not gone yet: command lines by number."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rsplit(")", 1)[1].split()[:2]
            if int(parent) in pids and state != "Z":
                found[int(path.parent.name)] = path.with_name("cmdline").read_text().replace("\0", " ").strip()
        except (OSError, IndexError):
            continue
    return found


def skip_where_others_may_not_enter(case):
    """What another user is to run must be where he may go, which is not so of a tree below /root."""
    closed = [folder for folder in (BUILD, *BUILD.parents) if not folder.stat().st_mode & 0o001]
    if closed:
        case.skipTest(f"no other user may enter {closed[0]}")


def skip_where_processes_are_not_known(case, errors=None):
    """In a container nlkernel can't record certain processes, and says so: in errors, or will when it is asked to."""
    words = "in a container, which has numbers of processes of its own"
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" and (errors is None or words in errors):
        case.skipTest("nlkernel knows no processes in a container, which has numbers of its own")


def processor_seconds():
    """What this process took of a processor, and those of its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Case(unittest.TestCase):
    """A test case with a scratch folder (self.scratch) and processes that are ended with it."""

    refuses_calls = False  # a daemon is made to do what its confinement forbids

    def run(self, result=None):
        begun, processor = time.monotonic(), processor_seconds()
        try:
            return super().run(result)
        finally:
            if "NL_TEST_TIMES" in os.environ:
                with open(os.environ["NL_TEST_TIMES"], "a", encoding="utf-8") as times:
                    times.write(f"{time.monotonic() - begun:.2f} {processor_seconds() - processor:.2f} "
                                f"{pathlib.Path(sys.argv[0]).name} {self._testMethodName}\n")

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        self.addCleanup(self.check_refused_calls)
        if SHM is not None:  # what a test leaves there is not for others, nor for their netlogds
            os.environ["NETLOGGER_SHM"] = tempfile.mkdtemp(dir=SHM)

    def check_refused_calls(self):
        """No test needs a system call that a daemon's own filter refuses. Their messages are in files of this name."""
        for messages in self.scratch.rglob("messages") if not self.refuses_calls else ():
            self.assertNotRegex(messages.read_text(errors="replace"), "system call .* was denied by the confinement")

    def run_program(self, *command, **options):
        """Runs to the end, at most 60 s; returns the CompletedProcess with text output."""
        options.setdefault("timeout", 60)
        options.setdefault("text", True)
        options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
        if "input" in options:
            options.pop("stdin")
        return subprocess.run([str(c) for c in command], capture_output=True, **options)

    def run_compiler(self, *command, **options):
        """The same for a compiler, which takes its time on a machine that does other things too: at most 10 minutes."""
        return self.run_program(*command, **{"timeout": 600, **options})

    def compile_client(self, source, *options):
        """A program of the user's, over the library that was built; skips the test where that is not shared."""
        libraries = BUILD / "libnetlogger" / ".libs"
        if not (libraries / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        (self.scratch / "client.c").write_text(source)
        program = self.scratch / "client"
        result = self.run_compiler(
            *CC.split(), "-std=gnu11", "-O1", "-o", program, self.scratch / "client.c", f"-I{SOURCE}/libnetlogger/include",
            f"-L{libraries}", "-lnetlogger", f"-Wl,-rpath,{libraries}", "-lpthread", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return program

    def start(self, *command, **options):
        """Starts a process that is killed at the end of the test if it has not ended by then."""
        process = subprocess.Popen([str(c) for c in command], **options)
        self.addCleanup(self._end, process)
        return process

    def own_address(self):
        """An address of this machine that is none of loopback: a client that connects from it counts as remote."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.99", 9))  # sends nothing
            except OSError as e:
                self.skipTest(f"no network here: {e}")
            address = s.getsockname()[0]
        if address.startswith("127."):
            self.skipTest("no network here")
        return address

    def mount_tracefs(self):
        """A folder of the test's own in which the kernel's tracefs is until its end; skips the test where there is none."""
        folder = self.scratch / "tracing"
        folder.mkdir()
        mounted = self.run_program("mount", "-t", "tracefs", "tracefs", folder)
        if mounted.returncode != 0:
            self.skipTest(f"no tracefs here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(folder)])
        return folder

    def told_by_chronyd(self, command):
        """Runs a shell command beside a chronyd that serves a clock of its own; what chronyc says of that, as its CSV has
        it, and what the command prints. Skips the test where there can be none."""
        if os.geteuid() != 0 or not shutil.which("chronyd") or not shutil.which("chronyc"):
            self.skipTest("chronyd is not here, or may not be started")
        configuration = self.scratch / "chrony.conf"
        configuration.write_text(f"local stratum 7\npidfile {self.scratch}/pid\ndriftfile {self.scratch}/drift\n"
                                 f"port 0\nbindcmdaddress 127.0.0.1\nbindcmdaddress /\ncmdport 323\n")
        script = f"""
            ip link set lo up
            chronyd -x -d -u root -f {configuration} > /dev/null 2>&1 &
            for i in $(seq 100); do chronyc -h 127.0.0.1 -c tracking 2>/dev/null | grep -q ,7, && break; sleep 0.1; done
            chronyc -h 127.0.0.1 -c tracking
            {command}
            kill %1; wait"""
        result = self.run_program("unshare", "-n", "bash", "-c", script)
        if "unshare" in result.stderr or not result.stdout.count(","):
            self.skipTest(f"no namespace or chronyd here: {result.stderr[:100]}")
        told, _, printed = result.stdout.partition("\n")
        return told.split(","), printed

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def long(test):
    """Marks a test, or a class of them, that takes long and that ./check therefore runs with --full only."""
    test.is_long = True
    return test


class QuickLoader(unittest.TestLoader):
    """Loads what is not marked as long."""

    def getTestCaseNames(self, case):
        if getattr(case, "is_long", False):
            return []
        return [name for name in super().getTestCaseNames(case) if not getattr(getattr(case, name), "is_long", False)]


def numbered_ids(lines):
    """The lines with the IDs of traces and spans replaced by T1, S1 and so on, in the order in which they appear."""
    numbers = {}

    def number(match):
        letter = "T" if match[1] == "TRACE" else "S"
        if match[2] not in numbers:
            numbers[match[2]] = letter + str(1 + sum(name.startswith(letter) for name in numbers.values()))
        return f"{match[1]}.ID={numbers[match[2]]}"

    return [re.sub(r"\b(TRACE|SPAN|PARENT)\.ID=([0-9a-f]{32}|[0-9a-f]{16})\b", number, line) for line in lines]


def main():
    """Runs the file's tests and prints TAP."""
    from tap.runner import TAPTestRunner

    runner = TAPTestRunner()
    runner.set_stream(True)
    runner.set_format("{method_name}")
    loader = QuickLoader() if os.environ.get("NL_QUICK") == "1" else unittest.defaultTestLoader
    unittest.main(module="__main__", testRunner=runner, testLoader=loader)
