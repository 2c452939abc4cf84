"""keep_where=: before netlogd deletes a file of an archive, it copies the selected requests, whole and once, whenever it is killed."""
import os
import re
import urllib.request

import collector
import support

KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <fcntl.h>
#include <sys/stat.h>
static void step(const char *path)
{
    static int left = -1;
    if (left < 0)
        left = atoi(getenv("KILL_AT"));
    if (path != NULL && (strstr(path, "/kept") != NULL || strstr(path, "/out/a-") != NULL) && --left <= 0)
        kill(getpid(), SIGKILL);
}
#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
int unlink(const char *path) { step(path); int r = NEXT(int (*)(const char *), "unlink")(path); step(path); return r; }
int rename(const char *a, const char *b) { step(b); int r = NEXT(int (*)(const char *, const char *), "rename")(a, b); step(b); return r; }
int mkdir(const char *a, mode_t m) { step(a); int r = NEXT(int (*)(const char *, mode_t), "mkdir")(a, m); step(a); return r; }
int linkat(int d, const char *a, int e, const char *b, int f)
{
    step(b);
    int r = NEXT(int (*)(int, const char *, int, const char *, int), "linkat")(d, a, e, b, f);
    step(b);
    return r;
}
int fsync(int fd) { step("/kept"); return NEXT(int (*)(int), "fsync")(fd); }
"""


def is_slow(request):
    return request % 50 == 7


def has_failed(request):
    return request % 80 == 3


def events(request):
    """Returns the records of a request as (time in ms, line). A slow request takes 3 s, the others take 40 ms."""
    found = []
    for step, name in enumerate(("Begin", "Read", "Write", "End")):
        ms = request * 20 + step * (1000 if is_slow(request) else 13)
        status = " STATUS=500" if has_failed(request) and name == "Write" else ""
        found.append((ms, f"DATE=20260101{ms // 3600000:02d}{ms // 60000 % 60:02d}{ms // 1000 % 60:02d}.{ms % 1000:03d}000 HOST=h PROG=p LVL=Usage "
                          f"NL.EVNT={name} TRACE.ID={request * 0x9e3779b97f4a7c15 & (1 << 64) - 1:016x} R={request}{status} X={'y' * 60}\n"))
    return found


def log(first, last):
    """Returns the lines of these requests in the order of time."""
    return [line for _, line in sorted(e for r in range(first, last) for e in events(r))]


class Keeping(collector.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()
        self.own = self.scratch / "own.log"

    def serve(self, options, *arguments, name="a-{N}.log", **more):
        return super().serve("--log", self.own, *arguments, output=f"file:{self.folder}/{name}?{options}", **more)

    def logs(self, pattern="a-*"):
        return sorted(p for p in self.folder.glob(pattern) if p.suffix in (".log", ".nlb", ".zst"))

    def size(self):
        return sum(p.stat().st_size for p in self.folder.glob("a-*") if p.is_file())

    def records(self, *paths):
        """Returns the records of logs as (request, event) in the order of the files, and checks that all are readable."""
        result = self.run_program(support.program("nlsort/nlsort"), "--format", "ulm", *paths) if paths else None
        if result is None:
            return []
        self.assertEqual(result.returncode, 0, result.stderr)
        return [(int(r), e) for e, r in re.findall(r" NL\.EVNT=(\w+) .* R=(\d+)", result.stdout)]

    def kept(self):
        return sorted(p for p in (self.folder / "kept").glob("*") if p.name[0] != ".")

    def check(self, select, sent):
        """Checks that each selected request that has ended in a deleted file was kept whole, once, and no other request."""
        kept = self.records(*self.kept())
        self.assertEqual(len(kept), len(set(kept)), "each record is kept once")
        requests = {r for r, _ in kept}
        self.assertEqual(len(kept), 4 * len(requests), "requests are kept whole")
        rest = {r for r, _ in self.records(*self.logs())}
        waiting = {r for path in (self.folder / "kept").glob(".*.open") for r, _ in self.records(path)}
        expected = {r for r in range(sent) if select(r)}
        self.assertEqual(requests - expected, set(), "no other request is kept")
        self.assertEqual(expected - requests - rest - waiting, set(), "no request is missing")
        return requests

    def run_archive(self, where, options="", name="a-{N}.log", sent=6000):
        process = self.serve(f"keep_size=300k&rotate_size=70k&zstd=0&keep_where={where}{options}", name=name)
        for r in range(0, sent, 500):
            self.send("".join(log(r, r + 500)).encode())
        support.wait_until(lambda: self.size() <= 300 << 10, what="the archive is small enough")
        self.stop(process)

    def test_failed_requests(self):
        port = support.free_port()
        process = self.serve("keep_size=300k&rotate_size=70k&keep_where=any(STATUS >= 500)", "--metrics", f"http://127.0.0.1:{port}")
        for r in range(0, 6000, 500):
            self.send("".join(log(r, r + 500)).encode())
        support.wait_until(lambda: self.size() <= 300 << 10, what="the archive is small enough")
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        self.stop(process)
        requests = self.check(has_failed, 6000)
        self.assertGreater(len(requests), 40)
        for what, count in (("requests", len(requests)), ("records", 4 * len(requests))):
            self.assertRegex(text, rf'\nnetlogd_output_kept_{what}_total\{{output="[^"]*"\}} {count}\n')
        noted = re.findall(r"NL\.EVNT=Netlogd\.RequestsKept FILE=(\S+) REQUESTS=(\d+) RECORDS=(\d+)", self.own.read_text())
        self.assertEqual(sum(int(n) for _, n, _ in noted), len(requests))
        result = self.run_program(support.program("nltools/nlstat"), "--json", self.folder / "kept")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.run_program(self.netlogd, "--verify", self.folder).returncode, 0)

    def test_slow_requests_cross_files(self):
        """Slow requests are spread over files, and are kept whole; a restart in between changes nothing."""
        for name in ("a-{N}.log", "a-{N}.nlb"):
            with self.subTest(name):
                for half in (0, 1):
                    process = self.serve("keep_size=300k&rotate_size=70k&zstd=0&keep_where=request.duration > 1s", name=name)
                    for r in range(3000 * half, 3000 * half + 3000, 500):
                        self.send("".join(log(r, r + 500)).encode())
                    support.wait_until(lambda: self.size() <= 300 << 10, what="the archive is small enough")
                    self.stop(process)
                self.assertGreater(len(self.check(is_slow, 6000)), 60)
                for path in sorted(self.folder.rglob("*"), reverse=True):
                    path.unlink() if path.is_file() else path.rmdir()

    def test_kept_size(self):
        self.run_archive("request.duration > 0s", "&kept_size=100k")
        self.assertLessEqual(sum(p.stat().st_size for p in self.kept()), 100 << 10)
        self.assertGreater(len(self.kept()), 1)

    def test_unwritable(self):
        """A file whose requests cannot be copied stays."""
        (self.folder / "kept").write_text("in the way")
        process = self.serve("keep_size=300k&rotate_size=70k&keep_where=any(STATUS >= 500)")
        for r in range(0, 3000, 500):
            self.send("".join(log(r, r + 500)).encode())
        support.wait_until(lambda: "is kept longer than its output's options say" in self.said(), what="a report")
        self.assertEqual(self.logs()[0].name, "a-000001.log")
        (self.folder / "kept").unlink()
        process.kill()
        process.wait()
        process = self.serve("keep_size=300k&rotate_size=70k&keep_where=any(STATUS >= 500)")
        support.wait_until(lambda: self.size() <= 300 << 10, what="the archive is small enough")
        self.stop(process)
        self.check(has_failed, 3000)

    def test_invalid_options(self):
        for options, message in (("keep_where=any(STATUS > 1)", "keep="), ("keep=7d&keep_where=STATUS > 1", "requests"),
                                 ("keep=7d&keep_where=any(", "keep_where")):
            said = self.fails("--listen", "x-netlog://127.0.0.1:0", "--output", f"file:{self.folder}/a-{{N}}.log?{options}", status=2)
            self.assertIn(message, said)

    def test_killed_at_every_step(self):
        """After kills before and after each step, each selected request is kept whole and once."""
        killer = self.scratch / "killer.so"
        (self.scratch / "killer.c").write_text(KILLER)
        result = self.run_program(*support.CC.split(), "-shared", "-fPIC", "-o", killer, self.scratch / "killer.c", "-ldl")
        self.assertEqual(result.returncode, 0, result.stderr)
        where, sent, killed = "keep_size=300k&rotate_size=70k&keep_where=request.duration > 1s || any(STATUS >= 500)", 3000, 0
        process = self.serve("rotate_size=70k")
        for r in range(0, sent, 500):
            self.send("".join(log(r, r + 500)).encode())
        self.stop(process)
        for step in range(1, 40):
            environment = dict(os.environ, LD_PRELOAD=str(killer), KILL_AT=str(step % 13 + 1), ASAN_OPTIONS="verify_asan_link_order=0")
            process = self.serve(where, env=environment)
            support.wait_until(lambda: process.poll() is not None or self.size() <= 300 << 10, what="a kill, or the end of the deletion")
            killed += process.poll() is not None
            process.kill()
            process.wait()
            self.check(lambda r: is_slow(r) or has_failed(r), sent)
        self.assertGreater(killed, 20)
        process = self.serve(where)
        support.wait_until(lambda: self.size() <= 300 << 10, what="the archive is small enough")
        self.stop(process)
        self.assertGreater(len(self.check(lambda r: is_slow(r) or has_failed(r), sent)), 40)


if __name__ == "__main__":
    support.main()
