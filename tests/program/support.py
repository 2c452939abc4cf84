"""What whole-program tests share: where the built programs are, scratch folders, processes that always end.

A test is a unittest file that ends with `support.main()`; it prints TAP. It runs from `make check`, which sets
NL_BUILD_DIR and NL_SOURCE_DIR, or by hand with both in the environment.
"""
import atexit
import os
import pathlib
import shutil
import signal
import socket
import subprocess
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
CC = os.environ.get("NL_CC", "cc")


def program(path):
    """The built program at this path below the build folder; the test is skipped when that part was not built."""
    full = BUILD / path
    if not full.exists():
        raise unittest.SkipTest(f"{path} is not built here")
    return str(full)


def pkg_config_folder(folder):
    """The folder itself, with a netlogger.pc in it that says where the library as built is."""
    (folder / "netlogger.pc").write_text(f"Name: netlogger\nDescription: d\nVersion: 0.1.0\nCflags: -I{SOURCE}/libnetlogger/include\n"
                                         f"Libs: -L{BUILD}/libnetlogger/.libs -lnetlogger\n")
    return str(folder)


def free_port():
    """A TCP port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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


class Case(unittest.TestCase):
    """A test case with a scratch folder (self.scratch) and processes that are ended with it."""

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)
        if SHM is not None:  # what a test leaves there is not for others, nor for their netlogds
            os.environ["NETLOGGER_SHM"] = tempfile.mkdtemp(dir=SHM)

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

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def main():
    """Runs the file's tests and prints TAP."""
    from tap.runner import TAPTestRunner

    runner = TAPTestRunner()
    runner.set_stream(True)
    runner.set_format("{method_name}")
    unittest.main(module="__main__", testRunner=runner)
