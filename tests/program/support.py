"""Common functions of the whole-program tests: paths of the built programs, scratch directories, and processes that always end.

A test is a unittest file that ends with `support.main()`. It prints TAP. It runs from `make check`, which sets
NL_BUILD_DIR and NL_SOURCE_DIR, or by hand with both variables in the environment. ./check without --full sets NL_QUICK=1, which skips
tests marked `@support.long` and shortens those that call representative(). NL_TEST_TIMES=FILE adds a line to FILE for each test: its wall time and the processor time of
the test and its processes in seconds, its file, and its name.
"""
import atexit
import ctypes
import faulthandler
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
import threading
import time
import unittest

BUILD = pathlib.Path(os.environ["NL_BUILD_DIR"])
SOURCE = pathlib.Path(os.environ["NL_SOURCE_DIR"])


def mount_own_shared_memory():
    """Gives the processes of this file of tests a /dev/shm of their own, if permitted. They do not see rings that other processes have
    left, and leave none."""
    new_namespace, slave, recursive = 0x20000, 0x80000, 0x4000  # CLONE_NEWNS, MS_SLAVE, MS_REC
    libc = ctypes.CDLL(None)
    if os.geteuid() == 0 and os.path.isdir("/dev/shm") and libc.unshare(new_namespace) == 0 and \
            libc.mount(b"none", b"/", None, ctypes.c_ulong(slave | recursive), None) == 0:
        libc.mount(b"none", b"/dev/shm", b"tmpfs", ctypes.c_ulong(0), b"mode=1777")


mount_own_shared_memory()
SHM = tempfile.mkdtemp(prefix="netlogger-test-", dir="/dev/shm") if os.path.isdir("/dev/shm") else None
if SHM is not None:
    atexit.register(shutil.rmtree, SHM, ignore_errors=True)
# make check sets these variables only for the interpreter of a test (tests/local.mk).
for variable in "PYTHONMALLOC", "GLIBC_TUNABLES":
    os.environ.pop(variable, None)
# Clock records of programs would disturb tests of other features.
os.environ.setdefault("NETLOGGER_CLOCK", "no")
os.environ.setdefault("LSAN_OPTIONS", f"suppressions={SOURCE}/tests/program/leaks.supp:print_suppressions=0")
CC = os.environ.get("NL_CC", "cc")
# Tests of Java are short: a second compiler and a parallel garbage collector would take more time than they save.
JAVA_OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
JAVA = ["java", *JAVA_OPTIONS]
JAVAC = ["javac", *(f"-J{option}" for option in JAVA_OPTIONS)]


def program(path):
    """Returns the built program at this path below the build directory. Skips the test if this part was not built."""
    full = BUILD / path
    if not full.exists():
        raise unittest.SkipTest(f"{path} is not built here")
    return str(full)


def pkg_config_folder(folder):
    """Adds a netlogger.pc for the library in the build directory to the directory `folder`, and returns the
    directory."""
    (folder / "netlogger.pc").write_text(f"Name: netlogger\nDescription: d\nVersion: 1.0.0\nCflags: -I{SOURCE}/libnetlogger/include\n"
                                         f"Libs: -L{BUILD}/libnetlogger/.libs -lnetlogger\n")
    return str(folder)


_given_ports = []


def free_port():
    """Returns a free port, TCP and UDP, which no other test gets at the same time. It is below the kernel's range for outgoing
    connections; otherwise, a connection could take the port before a program listens there."""
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
        _given_ports.append(given)  # reserved until this process ends
        return port


def damage(path, content):
    """Replaces the content of a file as a faulty disk does: the time of the last change stays."""
    status = os.stat(path)
    pathlib.Path(path).write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def wait_until(condition, seconds=60.0, what="condition"):
    """Calls condition until its result is true, and returns the result. Fails the test after that many seconds. Pauses longer if
    the condition takes long, to leave the processors to the programs that it waits for."""
    end = time.monotonic() + seconds
    while (begun := time.monotonic()) < end:
        result = condition()
        if result:
            return result
        time.sleep(min(max(0.01, 2 * (time.monotonic() - begun)), 0.2))
    raise AssertionError(f"{what}: not within {seconds} s")


def is_sanitized(process):
    """Returns whether a running process was built with the address sanitizer, which uses additional memory."""
    return "asan" in pathlib.Path(f"/proc/{process.pid}/maps").read_text()


def can_connect(port, host="127.0.0.1"):
    """Returns whether a server accepts TCP connections there."""
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def children(*pids):
    """Returns the command lines of the existing processes that these processes have started, by process ID."""
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
    """Skips the test if other users cannot reach the programs, for example in a tree below /root."""
    closed = [folder for folder in (BUILD, *BUILD.parents) if not folder.stat().st_mode & 0o001]
    if closed:
        case.skipTest(f"no other user may enter {closed[0]}")


def skip_where_processes_are_not_known(case, errors=None):
    """Skips the test in a container, in which nlkernel cannot record certain processes. If errors is given, skips the test if the
    errors report this."""
    words = "in a container, which has numbers of processes of its own"
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]" and (errors is None or words in errors):
        case.skipTest("nlkernel knows no processes in a container, which has numbers of its own")


def processor_seconds():
    """Returns the processor time of this process and of its children that have ended, in seconds."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Case(unittest.TestCase):
    """A test case with a scratch directory (self.scratch) and processes that end with the test."""

    compiled = {}  # programs of this file's tests: (source, options) -> path
    refuses_calls = False  # lets a test make a daemon do what its confinement forbids

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
        if SHM is not None:  # other programs and netlogds must not see the shared memory that a test leaves
            os.environ["NETLOGGER_SHM"] = tempfile.mkdtemp(dir=SHM)

    def check_refused_calls(self):
        """Checks that the daemons' system call filters refused no call. Their messages are in files with this name."""
        for messages in self.scratch.rglob("messages") if not self.refuses_calls else ():
            self.assertNotRegex(messages.read_text(errors="replace"), "system call .* was denied by the confinement")

    def run_program(self, *command, **options):
        """Runs a program to its end, at most 60 s. Returns the CompletedProcess with text output."""
        options.setdefault("timeout", 60)
        options.setdefault("text", True)
        options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
        if "input" in options:
            options.pop("stdin")
        return subprocess.run([str(c) for c in command], capture_output=True, **options)

    def run_compiler(self, *command, **options):
        """Like run_program, for a compiler, which may be slow on a busy machine: waits at most 10 minutes."""
        return self.run_program(*command, **{"timeout": 600, **options})

    def compile_c(self, target, source, *options):
        """Compiles C source to the file `target` in the scratch directory, and returns its path. Compiles a source only once for
        all tests of a test file that use the same options."""
        key = (source, *map(str, options))
        if key not in Case.compiled:
            if not Case.compiled:
                Case.compiled_folder = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
                atexit.register(shutil.rmtree, Case.compiled_folder, ignore_errors=True)
            built = Case.compiled_folder / str(len(Case.compiled))
            built.with_suffix(".c").write_text(source)
            result = self.run_compiler(*CC.split(), "-o", built, built.with_suffix(".c"), *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            Case.compiled[key] = built
        return pathlib.Path(shutil.copy(Case.compiled[key], self.scratch / target))

    def compile_preloaded(self, target, source):
        """Compiles a library for LD_PRELOAD, and returns its path."""
        return self.compile_c(target, source, "-shared", "-fPIC", "-ldl")

    def compile_client(self, source, *options):
        """Compiles a user's program with the library of the build directory. Skips the test if the library is not shared."""
        libraries = BUILD / "libnetlogger" / ".libs"
        if not (libraries / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        return self.compile_c("client", source, "-std=gnu11", "-O1", f"-I{SOURCE}/libnetlogger/include", f"-L{libraries}", "-lnetlogger",
                              f"-Wl,-rpath,{libraries}", "-lpthread", *options)

    def start(self, *command, **options):
        """Starts a process that is killed at the end of the test if it is still running."""
        process = subprocess.Popen([str(c) for c in command], **options)
        self.addCleanup(self._end, process)
        return process

    def own_address(self):
        """Returns an address of this machine that is not a loopback address: a client that connects from it counts as remote."""
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
        """Returns a directory with the kernel's tracefs, until the end of the test. Skips the test if the kernel has no tracefs."""
        folder = self.scratch / "tracing"
        folder.mkdir()
        mounted = self.run_program("mount", "-t", "tracefs", "tracefs", folder)
        if mounted.returncode != 0:
            self.skipTest(f"no tracefs here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(folder)])
        return folder

    def told_by_chronyd(self, command):
        """Runs a shell command beside a chronyd with its own clock. Returns the output of chronyc as its CSV fields, and the
        output of the command. Skips the test if chronyd cannot run."""
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


IS_QUICK = os.environ.get("NL_QUICK") == "1"


def representative(whole, part):
    """Returns `part` in ./check, and `whole` with --full. For tests that repeat a check with other random values or moments."""
    return part if IS_QUICK else whole


def long(test):
    """Marks a slow test or class. ./check runs it only with --full."""
    test.is_long = True
    return test


class QuickLoader(unittest.TestLoader):
    """Loads tests that are not marked as long."""

    def getTestCaseNames(self, case):
        if getattr(case, "is_long", False):
            return []
        return [name for name in super().getTestCaseNames(case) if not getattr(getattr(case, name), "is_long", False)]


def numbered_ids(lines):
    """Returns the lines with the IDs of traces and spans replaced by T1, S1 and so on, in the order of appearance."""
    numbers = {}

    def number(match):
        letter = "T" if match[1] == "TRACE" else "S"
        if match[2] not in numbers:
            numbers[match[2]] = letter + str(1 + sum(name.startswith(letter) for name in numbers.values()))
        return f"{match[1]}.ID={numbers[match[2]]}"

    return [re.sub(r"\b(TRACE|SPAN|PARENT)\.ID=([0-9a-f]{32}|[0-9a-f]{16})\b", number, line) for line in lines]


def _descendants(parent):
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == parent:
            pid = int(stat.parent.name)
            yield pid
            yield from _descendants(pid)


def _end_at_limit():
    """Ends this process and the processes that it started: `make` waits until all of them have closed the output."""
    faulthandler.dump_traceback()
    for pid in list(_descendants(os.getpid())):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os._exit(1)


def main():
    """Runs the file's tests and prints TAP. Ends the process if the file takes too long, because a test that waits
    forever would stop CI."""
    from tap.runner import TAPTestRunner

    limit = threading.Timer(900 if IS_QUICK else 3600, _end_at_limit)
    limit.daemon = True
    limit.start()
    runner = TAPTestRunner()
    runner.set_stream(True)
    runner.set_format("{method_name}")
    loader = QuickLoader() if IS_QUICK else unittest.defaultTestLoader
    unittest.main(module="__main__", testRunner=runner, testLoader=loader)
