"""keep_where= keeps the requests that match when keep= or keep_size= delete files: whole, exactly once, across restarts and kills."""
import collections
import contextlib
import heapq
import os
import random
import re
import urllib.request

import collector
import support

WHERE = 'keep_where=request.duration > 500ms or any(STATUS = "ERROR")'
STEPS = ("Begin", "Parse", "Query", "Reply", "End")
# Kills netlogd before or after the KILL_ATth call that renames or removes a file of the archive, or writes a kept file.
KILLER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static atomic_int calls;
static void step(const char *path)
{
    if (strstr(path, "/out/a") != NULL && atomic_fetch_add(&calls, 1) + 1 == atoi(getenv("KILL_AT")))
        kill(getpid(), SIGKILL);
}
int unlink(const char *path)
{
    int there = access(path, F_OK) == 0, result;
    there ? step(path) : (void)0;
    result = ((int (*)(const char *))dlsym(RTLD_NEXT, "unlink"))(path);
    there ? step(path) : (void)0;
    return result;
}
int rename(const char *from, const char *to)
{
    step(to);
    int result = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
    step(to);
    return result;
}
ssize_t write(int fd, const void *data, size_t size)
{
    char link[40], name[500] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, name, sizeof name - 1) > 0 && strstr(name, ".keeping.new") != NULL)
        step(name);
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}
"""

# The first call that renames a file to the stored decisions fails.
FAILER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
static atomic_int failed;
int rename(const char *from, const char *to)
{
    size_t size = strlen(to);
    if (size > 8 && strcmp(to + size - 8, ".keeping") == 0 && atomic_exchange(&failed, 1) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


def time_text(us):
    seconds, us = divmod(us, 1000000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"202601{days + 1:02d}{hours:02d}{minutes:02d}{seconds:02d}.{us:06d}"


class Traffic:
    """Concurrent requests of one service, in the order of their records. Some requests are slow, and some fail."""

    def __init__(self, count, seed=1, matching=0.04, gap=10000, steps=1):
        rng, waiting, now = random.Random(seed), [], 0
        self.lines, self.requests, self.matching = [], collections.defaultdict(list), set()
        for number in range(count):
            now += rng.randrange(1, 2 * gap)
            matches = rng.random() < matching
            slow = matches and rng.random() < 0.5
            duration = rng.randrange(600000, 2000000) if slow else rng.randrange(1000, 300000)
            times = sorted([0, duration] + [rng.randrange(duration) for _ in range(3 * steps)])
            names = [STEPS[0], *(STEPS[1:4] * steps), STEPS[4]]
            for i, (offset, name) in enumerate(zip(times, names)):
                failed = " STATUS=ERROR" if matches and not slow and i == 2 else ""
                heapq.heappush(waiting, (now + offset, number, i, name, failed))
            if matches:
                self.matching.add(number)
            self.emit(waiting, now)
        self.emit(waiting, float("inf"))

    def emit(self, waiting, until):
        while waiting and waiting[0][0] <= until:
            us, number, i, name, failed = heapq.heappop(waiting)
            line = f"DATE={time_text(us)} HOST=h{i % 3} PROG=p LVL=Usage NL.EVNT={name} REQ=r{number}{failed}\n".encode()
            self.lines.append(line)
            self.requests[number].append(line)


class KeepWhere(collector.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()
        self.own = self.scratch / "own.log"

    def serve(self, options, *arguments, suffix="log", **more):
        return super().serve("--log", self.own, "--recover", "0", *arguments,
                             output=f"file:{self.folder}/a-{{N}}.{suffix}?{options}", **more)

    def send_all(self, lines, part=5000):
        for at in range(0, len(lines), part):
            self.send(b"".join(lines[at:at + part]))

    def files(self, kept, suffix="log"):
        return sorted(p for p in self.folder.glob(f"a-*.{suffix}") if (".kept." in p.name) == kept)

    def read(self, paths):
        lines = []
        for path in paths:
            if path.stat().st_size == 0:
                continue
            result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            lines += result.stdout.encode().splitlines(True)
        return lines

    def size(self, suffix="log", kept=False):
        size = 0
        for path in self.files(kept, suffix):
            with contextlib.suppress(FileNotFoundError):  # netlogd deletes files at the same time
                size += path.stat().st_size
        return size

    def wait_until_small(self, limit, suffix="log"):
        support.wait_until(lambda: self.size(suffix) <= limit and not self.left_over(suffix), what="old files are deleted")

    def left_over(self, suffix):
        """Returns the kept files whose original files still exist."""
        logs = {p.name.split(".")[0] for p in self.files(False, suffix)}
        return [p for p in self.files(True, suffix) if p.name.split(".")[0] in logs]

    def check(self, traffic, suffix="log", exact=True):
        """Every matching request is there, whole and once. Returns the records of the kept files."""
        kept, rest = self.read(self.files(True, suffix)), self.read(self.files(False, suffix))
        found = collections.Counter(kept + rest)
        self.assertEqual([line for line, count in found.items() if count > 1][:3], [], "no record is there twice")
        for number in traffic.matching:
            self.assertEqual([line for line in traffic.requests[number] if line not in found], [], f"request {number} is whole")
        if exact:
            wanted = {line for number in traffic.matching for line in traffic.requests[number]}
            self.assertEqual([line for line in kept if line not in wanted][:3], [], "no other request is kept")
        self.assertTrue(b"".join(traffic.lines).endswith(b"".join(rest)), "the newest records stay")
        self.assertLess(len(rest), len(traffic.lines), "netlogd has deleted files")
        return kept

    def metrics(self, port):
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        return {name: int(value) for name, value in re.findall(r'\nnetlogd_output_(\w+)\{output="[^"]*"\} (\d+)', text)}

    def test_matching_requests_stay(self):
        """Most requests cross the end of a file, because many run at the same time."""
        traffic, port = Traffic(20000), support.free_port()
        control = self.scratch / "control"
        process = self.serve(f"keep_size=2m&{WHERE}", "--metrics", f"http://127.0.0.1:{port}", "--control", f"unix:{control}")
        self.send_all(traffic.lines)
        self.wait_until_small(2 << 20)
        kept = self.check(traffic)
        self.assertGreater(len(kept), 1000)
        counts = self.metrics(port)
        self.assertEqual(counts["kept_records_total"], len(kept))
        self.assertEqual(counts["unsearched_files_total"], 0)
        known = {line: number for number, lines in traffic.requests.items() for line in lines}
        self.assertGreaterEqual(counts["kept_requests_total"], len({known[line] for line in kept}))
        self.assertLessEqual(counts["kept_requests_total"], len(traffic.matching))
        status = self.run_program(support.program("netlogd/netlogctl"), "--control", control, "--json", "status")
        self.assertRegex(status.stdout, rf'"KEPT": ?{counts["kept_requests_total"]}\b', status.stderr)
        self.stop(process)
        # Programs read the directory as one log.
        result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", self.folder)
        self.assertEqual((result.returncode, len(result.stdout.splitlines())), (0, len(kept) + len(self.read(self.files(False)))), result.stderr)
        verified = self.run_program(self.netlogd, "--verify", self.folder)
        self.assertEqual(verified.returncode, 0, verified.stdout)

    def check_format(self, suffix, more):
        traffic = Traffic(20000, seed=2)
        process = self.serve(f"keep_size=128k&{WHERE}{more}", suffix=suffix)
        self.send_all(traffic.lines, 2000)
        self.wait_until_small(128 << 10, suffix)
        self.stop(process)
        self.assertGreater(len(self.check(traffic, suffix)), 1000)

    def test_blocks(self):
        self.check_format("nlb", "")

    def test_compressed_text_with_named_field(self):
        self.check_format("log", "&zstd=1&keep_where_id=REQ")

    def test_restart(self):
        """netlogd ends and starts again while requests are open. The records of a request are in files of several processes."""
        traffic = Traffic(20000, seed=4)
        size = len(traffic.lines) // 8
        for at in range(0, len(traffic.lines), size):
            process = self.serve(f"keep_size=1m&{WHERE}")
            self.send_all(traffic.lines[at:at + size])
            if at % (2 * size) == 0:
                self.wait_until_small(1 << 20)
            self.stop(process)
        process = self.serve(f"keep_size=1m&{WHERE}")
        self.wait_until_small(1 << 20)
        self.stop(process)
        self.assertGreater(len(self.check(traffic)), 1000)

    def test_killed(self):
        """After a kill at any step, the next netlogd continues, and no kept record is lost or there twice."""
        killer, rng, killed = self.compile_preloaded("killer.so", KILLER), random.Random(5), 0
        rounds = support.representative(60, 12) + 1
        traffic = Traffic(rounds * 800, seed=6)
        size = len(traffic.lines) // rounds
        for i in range(rounds - 1):
            environment = dict(os.environ, LD_PRELOAD=str(killer), KILL_AT=str(rng.randrange(1, 40)), ASAN_OPTIONS="verify_asan_link_order=0")
            # netlogd receives the records from a file and remembers its position, so it has each record once.
            self.append(traffic.lines[i * size:(i + 1) * size])
            process = self.serve(f"keep_size=500k&{WHERE}", "--input", f"{self.scratch}/input.log", env=environment)
            support.wait_until(lambda: process.poll() is not None or (self.size() <= 500 << 10 and self.holds(traffic.lines[(i + 1) * size - 1])),
                               what="old files are deleted, or netlogd is killed")
            killed += process.poll() is not None
            process.kill()
            process.wait()
        self.append(traffic.lines[(rounds - 1) * size:])
        process = self.serve(f"keep_size=500k&{WHERE}", "--input", f"{self.scratch}/input.log")
        support.wait_until(lambda: self.holds(traffic.lines[-1]), what="all records arrive")
        self.wait_until_small(500 << 10)
        self.stop(process)
        self.assertGreater(killed, rounds // 4)
        self.check(traffic, exact=False)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.endswith(".new")], [])

    def append(self, lines):
        with open(self.scratch / "input.log", "ab") as source:
            source.write(b"".join(lines))

    def holds(self, line):
        return any(line in p.read_bytes() for p in self.files(False)[-3:])

    def test_no_matching_requests(self):
        traffic = Traffic(10000, seed=7, matching=0)
        process = self.serve(f"keep_size=500k&{WHERE}")
        self.send_all(traffic.lines)
        self.wait_until_small(500 << 10)
        self.stop(process)
        self.check(traffic)
        self.assertEqual(self.files(True), [])

    def test_request_that_does_not_fit_in_memory(self):
        """A request of 200,000 records, of which only the first and the last show that it is slow, is kept completely."""
        traffic = Traffic(20000, seed=8, matching=0)
        large = [f"DATE={time_text(n * 900)} HOST=big PROG=p LVL=Usage NL.EVNT=Part REQ=large N={n}\n".encode() for n in range(200000)]
        traffic.requests[-1] = large
        traffic.matching = {-1}
        traffic.lines = sorted(traffic.lines + large, key=lambda line: line[:30])
        process = self.serve(f"keep_size=4m&rotate_size=512k&{WHERE}", "--max-memory", "32m")
        self.send_all(traffic.lines, 20000)
        self.wait_until_small(4 << 20)
        self.stop(process)
        self.check(traffic, exact=False)

    def test_kept_files_are_limited(self):
        traffic = Traffic(20000, seed=9, matching=0.5)
        process = self.serve(f"keep_size=500k&keep_where_size=300k&{WHERE}")
        self.send_all(traffic.lines)
        self.wait_until_small(500 << 10)
        support.wait_until(lambda: self.size(kept=True) <= 300 << 10, what="kept files are deleted")
        self.assertGreater(self.size(kept=True), 150 << 10)
        support.wait_until(lambda: re.search(r"Netlogd\.FileDeleted FILE=\S+\.kept\.log BYTES=\d+ REASON=keep_where_size", self.own.read_text()),
                           what="an event")
        self.stop(process)
        old = self.files(True)[0]
        os.utime(old, (1500000000, 1500000000))
        process = self.serve(f"keep_size=500k&keep_where_time=1h&{WHERE}")
        support.wait_until(lambda: not old.exists(), what="an old kept file is deleted")
        self.assertTrue(self.files(True), "the other kept files stay")
        self.stop(process)

    def test_kept_file_that_cannot_be_written(self):
        """netlogd does not delete a file if it cannot keep its requests."""
        traffic = Traffic(10000, seed=10)
        blocker = self.folder / "a.kept.keeping.new"
        blocker.mkdir()
        process = self.serve(f"keep_size=64k&rotate_size=64k&keep=1h&{WHERE}")
        self.send_all(traffic.lines[:2000])
        support.wait_until(lambda: "cannot delete this old file" in self.said(), what="netlogd reports the failure")
        self.assertTrue((self.folder / "a-000001.log").exists())
        self.stop(process)

    @support.long
    def test_decisions_that_cannot_be_saved(self):
        """If the decisions about several files cannot be stored, netlogd stores the same decisions a minute later."""
        traffic = Traffic(20000, seed=11)
        failer = self.compile_preloaded("failer.so", FAILER)
        process = self.serve(f"keep_size=1m&rotate_size=64k&{WHERE}",
                             env=dict(os.environ, LD_PRELOAD=str(failer), ASAN_OPTIONS="verify_asan_link_order=0"))
        self.send_all(traffic.lines, 100000)
        support.wait_until(lambda: "cannot delete this old file" in self.said(), what="netlogd reports the failure")
        support.wait_until(lambda: self.size() <= 1 << 20 and not self.left_over("log"), 150, what="old files are deleted")
        self.stop(process)
        self.assertGreater(len(self.check(traffic)), 1000)

    def test_invalid_options(self):
        for options, message in (
                ("keep=7d&keep_where=request.duration >", "a duration such as 50ms"),
                ("keep=7d&keep_where=LVL <= Error", "write tests of records inside any()"),
                ("keep_where=any(A = 1)", "keep_where= needs keep= or keep_size="),
                (f"keep=7d&seal={self.scratch}/key&keep_where=any(A = 1)", "keep_where= cannot be used with seal=")):
            said = self.fails("--listen", "x-netlog://127.0.0.1:0", "--output", f"file:{self.folder}/a-{{N}}.log?{options}", status=2)
            self.assertIn(message, said)

    @support.long
    def test_a_million_records(self):
        traffic = Traffic(200000, seed=11, gap=1000)
        process = self.serve(f"keep_size=8m&{WHERE}")
        self.send_all(traffic.lines, 50000)
        self.wait_until_small(8 << 20)
        self.stop(process)
        self.assertGreater(len(self.check(traffic)), 10000)


if __name__ == "__main__":
    support.main()
