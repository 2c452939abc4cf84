"""keep= and keep_size= delete whole files with their side files, oldest first, even if netlogd is killed at any moment. They
delete no file that is still to be read."""
import contextlib
import fcntl
import os
import pathlib
import random
import re
import signal
import socket
import time
import urllib.request

import collector
import support
from producer import PROGRAM

KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int unlink(const char *path)
{
    static int left = -1;
    if (left < 0)
        left = atoi(getenv("KILL_AT"));
    if (strstr(path, "/out/a-") == NULL || access(path, F_OK) != 0)
        return ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
    if (--left == 0)
        kill(getpid(), SIGKILL);
    int result = ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
    if (left == 1)
        kill(getpid(), SIGKILL);
    return result;
}
"""
# The thread that makes indexes creates the index of the first file after retention has deleted the index, and before
# retention deletes the file. With KILL, netlogd is killed when the file is deleted. The thread keeps its normal priority,
# because on a busy machine a thread of the idle class may not run for a long time.
LATE_INDEX = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static atomic_int deleted;
static int ends(const char *path, const char *with)
{
    size_t size = strlen(path), end = strlen(with);
    return size >= end && strcmp(path + size - end, with) == 0;
}
int open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    for (int i = 0; flags & O_CREAT && ends(path, "a-000001.log.values") && !deleted && i < 9000; i++)
        usleep(10000);
    return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
int open64(const char *path, int flags, ...) __attribute__((alias("open")));
int sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters)
{
    return 0;
}
int unlink(const char *path)
{
    char values[4096];
    snprintf(values, sizeof values, "%s.values", path);
    for (int i = 0; ends(path, "a-000001.log") && access(values, F_OK) != 0 && i < 6000; i++)
        usleep(10000);
    if (ends(path, "a-000001.log"))
        sleep(1); /* so that the thread closes the index */
    int result = ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
    if (ends(path, "a-000001.log") && getenv("KILL") != NULL)
        kill(getpid(), SIGKILL);
    if (ends(path, "a-000001.log.values"))
        deleted = 1;
    return result;
}
"""
OLD = 1500000000  # a time in 2017


def lines(first, last, size=100):
    return b"".join(collector.record(0, n, " X=" + "y" * size) for n in range(first, last))


class Retention(collector.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()
        self.own = self.scratch / "own.log"

    def serve(self, options, *arguments, name="a-{N}.log", **more):
        return super().serve("--log", self.own, *arguments, output=f"file:{self.folder}/{name}?{options}", **more)

    def logs(self, pattern="a-*.log"):
        return sorted(self.folder.glob(pattern))

    def size(self):
        size = 0
        for path in self.folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # netlogd deletes files at the same time
                size += path.stat().st_size if path.name != "a.streams" else 0
        return size

    def age(self, files):
        for path in files:
            os.utime(path, (OLD, OLD))

    def events(self, event):
        return re.findall(rf" NL\.EVNT=Netlogd\.{event} FILE=(\S+) (.*)", self.own.read_text() if self.own.exists() else "")

    def make_files(self, options="", size=100, *arguments):
        """Sends 5,000 records, which make some files. Returns the process."""
        process = self.serve(f"rotate_size={size // 2 + 50}k&{options}", *arguments)
        for n in range(0, 5000, 500):
            self.send(lines(n, n + 500, size))
        self.assertGreater(len(self.logs()), 5)
        return process

    def test_size(self):
        limit = 600 << 10
        port = support.free_port()
        process = self.serve(f"keep_size={limit}", "--metrics", f"http://127.0.0.1:{port}")
        sent = 20000
        for n in range(0, sent, 500):
            self.send(lines(n, n + 500))
        support.wait_until(lambda: self.size() <= limit, what="the files are small enough")
        rest = b"".join(p.read_bytes() for p in self.logs())
        self.assertTrue(lines(0, sent).endswith(rest), "the newest records stay")
        self.assertGreater(len(rest), limit * 3 / 4, "no more is deleted than necessary")
        first = int(self.logs()[0].name[2:8])
        deleted = support.wait_until(lambda: len(self.events("FileDeleted")) == first - 1 and self.events("FileDeleted"), what="events")
        self.assertEqual([name for name, _ in deleted], [f"{self.folder}/a-{n:06d}.log" for n in range(1, first)])
        size = sum(int(re.fullmatch(r"BYTES=(\d+) REASON=keep_size", rest).group(1)) for _, rest in deleted)
        self.assertEqual(size, len(lines(0, sent)) - len(rest))
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        for what, count in (("files", len(deleted)), ("bytes", size)):
            self.assertRegex(text, rf'\nnetlogd_output_deleted_{what}_total\{{output="[^"]*"\}} {count}\n')
        self.stop(process)
        result = self.run_program(self.netlogd, "--verify", self.folder)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_age(self):
        process = self.make_files("keep=1h")
        files = self.logs()
        for suffix in (".index", ".damaged"):
            pathlib.Path(f"{files[0]}{suffix}").write_text("x")
        other = self.folder / "a-000001.log.mine"
        other.write_text("x")
        self.age([*files[:2], files[-1], other])
        self.send(lines(0, 2000))  # begins another file; netlogd then looks at the files
        support.wait_until(lambda: not files[1].exists(), what="old files are deleted")
        self.assertEqual([p.exists() for p in files], [False, False] + [True] * (len(files) - 2))
        self.assertEqual(list(self.folder.glob("a-00000[12].*")), [other])
        support.wait_until(lambda: [rest.split()[-1] for _, rest in self.events("FileDeleted")] == ["REASON=keep"] * 2, what="events")
        newest = self.logs()[-1]
        self.age(self.logs())
        self.stop(process)
        process = self.serve("rotate_size=100k&keep=1h")
        support.wait_until(lambda: not newest.exists(), what="after a restart, all old files are deleted")
        self.assertEqual([p.stat().st_size for p in self.logs()], [0])
        self.send(lines(0, 1))
        self.age(self.logs())
        time.sleep(1.5)
        self.assertEqual([p.read_bytes() for p in self.logs()], [lines(0, 1)], "the newest file stays")
        self.stop(process)

    def test_subscriber_still_reads(self):
        process = self.make_files("keep=1h", 5000, "--subscriber-queue", "64k")
        files = self.logs()
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            s.sendall(b"NETLOGGER/1 subscribe SINCE=2016-01-01T00:00:00Z\n")
            self.assertEqual(s.recv(1), b"D")
            self.age(files)
            self.send(lines(0, 2000, 5000))
            support.wait_until(lambda: self.events("FileKept"), what="a file is kept")
            kept, reason = self.events("FileKept")[0]
            self.assertIn("a subscriber has not read it yet", reason)
            self.assertTrue(all(p.exists() for p in files[files.index(pathlib.Path(kept)):]))
            received = bytearray(s.recv(1 << 20))
            want = lines(0, 5000, 5000) + lines(0, 2000, 5000)
            while not received.endswith(want[-100:]) or len(received) < len(want):
                received += s.recv(1 << 20) or self.fail("the subscription has ended")
            self.assertTrue(received.endswith(want), "the subscriber has read every record")
        self.age(self.logs())
        self.send(lines(0, 2000, 5000))
        support.wait_until(lambda: not files[-1].exists(), what="then the files are deleted")
        self.stop(process)

    def test_file_that_another_process_has_locked_stays(self):
        process = self.make_files("keep=1h")
        files = self.logs()
        self.age(files[:3])
        with open(files[1], "rb") as locked:
            fcntl.flock(locked, fcntl.LOCK_EX)
            self.send(lines(0, 2000))
            support.wait_until(lambda: self.events("FileKept"), what="a file is kept")
            self.assertEqual([p.exists() for p in files[:3]], [False, True, True])
            self.assertIn(f"{files[1]}: cannot delete this old file: ", self.said())
        self.send(lines(0, 2000))
        support.wait_until(lambda: not files[2].exists(), what="the files are deleted")
        self.stop(process)

    def test_invalid_options(self):
        for options, name, message in (
                ("keep=7d", "a.log", "keep= needs numbered files"), ("keep_size=1g", "a.log", "keep_size= needs numbered files"),
                ("keep=1ms", "a-{N}.log", "keep"), ("keep_size=4k", "a-{N}.log", "keep_size")):
            said = self.fails("--listen", "x-netlog://127.0.0.1:0", "--output", f"file:{self.folder}/{name}?{options}", status=2)
            self.assertIn(message, said)
        said = self.fails("--listen", "x-netlog://127.0.0.1:0", "--output", f"x-netlog://h?spool={self.folder}&keep=7d", status=2)
        self.assertIn("keep", said)

    def serve_late_index(self, **environment):
        late = self.scratch / "late.so"
        (self.scratch / "late.c").write_text(LATE_INDEX)
        result = self.run_program(*support.CC.split(), "-shared", "-fPIC", "-o", late, self.scratch / "late.c", "-ldl")
        self.assertEqual(result.returncode, 0, result.stderr)
        environment = dict(os.environ, LD_PRELOAD=str(late), ASAN_OPTIONS="verify_asan_link_order=0", **environment)
        return self.serve("rotate_size=700k&keep_size=2m&index=N", "--recover", "0", env=environment)

    def indexes_without_file(self):
        names = {p.name for p in self.folder.iterdir()}
        return [n for n in names if n.endswith(".values") and n.removesuffix(".values") not in names]

    def test_index_of_values_that_is_made_during_the_deletion(self):
        process = self.serve_late_index()
        for n in range(0, 30000, 1000):
            self.send(lines(n, n + 1000))
        support.wait_until(lambda: self.events("FileDeleted"), what="deletion")
        self.stop(process)
        self.assertEqual(self.indexes_without_file(), [])
        self.assertTrue(list(self.folder.glob("*.values")), "netlogd makes indexes of values")

    def test_killed_after_it_deletes_a_file_with_a_new_index(self):
        """The next netlogd deletes the index of a file that the killed netlogd has deleted."""
        process = self.serve_late_index(KILL="1")
        try:
            for n in range(0, 30000, 1000):
                self.send(lines(n, n + 1000))
        except OSError:
            pass  # netlogd was killed
        process.wait(timeout=120)
        self.assertEqual(self.indexes_without_file(), ["a-000001.log.values"])
        process = self.serve("rotate_size=700k&keep_size=2m&index=N", "--recover", "0")
        support.wait_until(lambda: not self.indexes_without_file(), what="the index is deleted")
        self.assertTrue((self.folder / "a-000002.log.values").exists() or not (self.folder / "a-000002.log").exists())
        self.stop(process)

    def test_killed_while_it_deletes(self):
        """After a kill between any two steps, the archive is valid and the next netlogd deletes the rest."""
        killer = self.compile_preloaded("killer.so", KILLER)
        program = self.compile_client(PROGRAM)
        rng, killed, options = random.Random(1), 0, "rotate_size=70k&zstd=0&keep_size=300k&fsync=5ms"
        kills, i = support.representative(5, 3), 0
        while killed < kills:
            self.assertLess(i := i + 1, 8 * kills)
            environment = dict(os.environ, LD_PRELOAD=str(killer), KILL_AT=str(rng.randrange(1, 8)), ASAN_OPTIONS="verify_asan_link_order=0")
            process = self.serve(options, "--recover", "0", name="a-{N}.nlb", env=environment, listen=f"x-netlog://127.0.0.1:{self.listening()}")
            url = f"x-netlog://127.0.0.1:{self.port}?policy=block&block=60&spool={self.scratch}/spool&ring=64k&timeout=4"
            client = self.start(program, f"c{i}", url, "20000", "1000")
            client.wait(60)
            process.poll() is None and support.wait_until(lambda: process.poll() is not None or self.size() <= 300 << 10, what="deletion")
            killed += process.poll() is not None
            process.kill()
            process.wait()
            names = {p.name for p in self.folder.iterdir()}
            logs = sorted(n for n in names if n.endswith(".nlb"))
            self.assertEqual([int(n[2:8]) for n in logs], list(range(int(logs[0][2:8]), int(logs[-1][2:8]) + 1)))
            self.assertEqual([n for n in names if n.endswith(".index") and n[:-6] not in names], [])
        process = self.serve(options, "--recover", "0", name="a-{N}.nlb", listen=f"x-netlog://127.0.0.1:{self.listening()}")
        url = f"x-netlog://127.0.0.1:{self.port}?policy=block&block=60&spool={self.scratch}/spool&timeout=60"
        self.assertEqual(self.start(program, "last", url, "20000", "100").wait(60), 0)
        support.wait_until(lambda: self.size() <= 300 << 10, what="deletion")
        self.stop(process)
        result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotRegex(result.stderr, "missing|malformed|twice")
        found = [int(n) for n in re.findall(r" PROG=last LVL=Usage NL.EVNT=Step I=(\d+) ", result.stdout)]
        self.assertEqual(found, list(range(20000 - len(found), 20000)), "the newest records, once")
        self.assertGreater(len(found), 1000)

    def listening(self):
        """Returns the port of all servers of a test, so that clients deliver what they could not."""
        self.one_port = getattr(self, "one_port", None) or support.free_port()
        return self.one_port


if __name__ == "__main__":
    support.main()
