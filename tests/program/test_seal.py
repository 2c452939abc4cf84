"""Sealed archives: --verify detects every kind of tampering, also with the collector's key, and never reports honest operation.

This file computes the format and the keys independently of netlogd, from the description in seal_chain.h. The attacker of these
tests uses the same functions. The tests also make the attacks with the first key, which a later intruder cannot have. These attacks
must succeed, which shows that the attacks of the tests are correct.
"""
import hashlib
import hmac
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import support
from producer import KILLER, PROGRAM

SEED = 20261123
HEAD = 88
FIXED = "<4sIIIQqQQQ32s"


# Simulates a crash of the machine for netlogd's files: before the CRASH_ATth call that changes a file below out/, all
# files lose all or a part of the data that was appended and not synced, and the process is killed.
CRASHER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static struct { char path[500]; off_t synced; } files[1000];
static int count;
static long find(int fd, char path[500])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, 499);
    path[size > 0 ? size : 0] = 0;
    if (strstr(path, "/out/") == NULL)
        return -1;
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].path, path) == 0)
            return i;
    struct stat status;
    fstat(fd, &status);
    strcpy(files[count].path, path);
    files[count].synced = status.st_size;
    return count++;
}
static void call(void)
{
    static int left = -1;
    if (left < 0) {
        left = getenv("CRASH_AT") ? atoi(getenv("CRASH_AT")) : 0;
        srand((unsigned)left);
    }
    if (left == 0 || --left > 0)
        return;
    for (int i = 0; i < count; i++) {
        struct stat status;
        if (stat(files[i].path, &status) == 0 && status.st_size > files[i].synced &&
            truncate(files[i].path, files[i].synced + rand() % (status.st_size - files[i].synced + 1)) != 0)
            perror(files[i].path);
    }
    kill(getpid(), SIGKILL);
    pause();
}
static void before(int fd)
{
    char path[500];
    if (find(fd, path) >= 0)
        call();
}
ssize_t write(int fd, const void *data, size_t size)
{
    before(fd);
    return ((ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write"))(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    before(fd);
    return ((ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite"))(fd, data, size, at);
}
static int sync_file(int fd, const char *name)
{
    char path[500];
    struct stat status;
    long i = find(fd, path);
    if (i >= 0)
        call();
    int result = ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
    if (i >= 0 && result == 0 && fstat(fd, &status) == 0)
        files[i].synced = status.st_size;
    return result;
}
int fdatasync(int fd) { return sync_file(fd, "fdatasync"); }
int fsync(int fd) { return sync_file(fd, "fsync"); }
int rename(const char *from, const char *to)
{
    call();
    int result = ((int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename"))(from, to);
    for (int i = 0; i < count && result == 0; i++)
        if (strcmp(files[i].path, to) == 0)
            files[i].path[0] = 0;
    for (int i = 0; i < count && result == 0; i++)
        if (strcmp(files[i].path, from) == 0)
            strcpy(files[i].path, to);
    return result;
}
"""


def mac(key, purpose, data=b""):
    return hmac.new(key, purpose + b"\0" + data, hashlib.sha256).digest()


class Key:
    def __init__(self, text):
        name, index, key = text.split()
        assert name == "netlogger-seal-key"
        self.index, self.bytes = int(index), bytes.fromhex(key)

    def at(self, index):
        """The key with that index. The attacker does not know older keys."""
        key = self.bytes
        for _ in range(self.index, index):
            key = mac(key, b"key")
        return key


class Seals:
    """Returns the seals in a file: their fields, pattern and tag."""

    def __init__(self, data):
        self.seals, at = [], HEAD
        while at < len(data):
            size = struct.unpack_from("<I", data, at + 4)[0]
            self.seals.append((list(struct.unpack_from(FIXED, data, at)), data[at + 88:at + size - 32],
                               data[at + size - 32:at + size]))
            at += size

    def encode(self, key, kept):
        """Returns the seal file: the first seals unchanged, all others tagged again with the keys from key on, and the mark."""
        data, tag = b"", bytes(32)
        for index, (fields, pattern, old) in enumerate(self.seals):
            text = struct.pack(FIXED, *fields[:4], index, *fields[5:]) + pattern
            tag = old if index < kept else mac(key.at(index), b"seal", tag + text)
            data += text + tag
        count = struct.pack("<Q", len(self.seals))
        mark = count + mac(key.at(len(self.seals)), b"end", count)
        return b"NLSEAL01" + (mark + bytes(40) if len(self.seals) % 2 else bytes(40) + mark) + data


class Archive(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.random = random.Random(SEED)
        self.folder = self.scratch / "out" / "archive"  # KILLER counts files below out/
        self.folder.mkdir(parents=True)
        self.keys = self.scratch / "out" / "keys"
        self.keys.mkdir()
        self.messages = self.scratch / "messages"
        self.messages.touch()
        self.own = self.scratch / "own.log"
        self.port = support.free_port()
        self.key, self.first = self.keys / "netlogd", self.scratch / "first"
        self.create_key(self.key, self.first)

    def create_key(self, path, first):
        result = self.run_program(self.netlogd, f"--create-seal-key={path}")
        self.assertEqual(result.returncode, 0, result.stderr)
        first.write_text(result.stdout)
        first.chmod(0o600)

    def url(self, name="a-{N}.log", options="", key=None, after="1h"):
        return f"file:{self.folder}/{name}?seal={key or self.key}&seal_time={after}{options}"

    def serve(self, *outputs, environment=None, arguments=()):
        start = len(self.said())
        with open(self.messages, "ab") as messages:
            netlogd = self.start(self.netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{self.port}",
                                 *(f"--output={o}" for o in outputs), f"--log={self.own}", "--recover=0", *arguments,
                                 stderr=messages, env=dict(os.environ, **(environment or {})))
        support.wait_until(lambda: netlogd.poll() is not None or "listening" in self.said()[start:], what="netlogd listens")
        return netlogd

    def said(self):
        return self.messages.read_text(errors="replace")

    def stop(self, netlogd):
        netlogd.send_signal(signal.SIGTERM)
        self.assertEqual(netlogd.wait(30), 0, self.said())

    def lines(self, count, begin=0):
        return b"".join(b"DATE=20260101000000.%06d HOST=h PROG=p LVL=Usage NL.EVNT=E N=%d\n" % (n % 1000000, n)
                        for n in range(begin, begin + count))

    def write(self, data):
        """Sends text, and waits until netlogd has read it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass

    def verify(self, *options, folder=None, key=None):
        return self.run_program(self.netlogd, "--verify", f"--seal-key={key or self.first}", *options, folder or self.folder)

    def proves(self, *options, **more):
        result = self.verify(*options, **more)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr + self.said())
        self.assertRegex(result.stdout, r"(?m)\.seal: proven: ")
        self.assertNotIn("NOT PROVEN", result.stdout)
        return result.stdout

    def rejects(self, *patterns, **more):
        result = self.verify(**more)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("NOT PROVEN", result.stdout)
        for pattern in patterns:
            self.assertRegex(result.stdout, pattern)

    def logs(self):
        return sorted(p for p in self.folder.iterdir() if p.suffix in (".log", ".nlb") and p.stat().st_size > 0)

    def sample(self):
        """Makes an archive of at least five text files, most of them written in several parts. Returns the number of its seals."""
        for part in range(3):
            netlogd = self.serve(self.url(options="&rotate_size=8k"))
            self.write(self.lines(100, 1000 * part))
            self.write(self.lines(100, 1000 * part + 500))
            self.stop(netlogd)
        self.proves()
        self.assertGreaterEqual(len(self.logs()), 5)
        return len(Seals((self.folder / "a.seal").read_bytes()).seals)

    def keep(self):
        shutil.copytree(self.folder, self.scratch / "kept")

    def restore(self):
        shutil.rmtree(self.folder)
        shutil.copytree(self.scratch / "kept", self.folder)


class Tampering(Archive):
    def test_the_format_is_as_described(self):
        """netlogd's seals are those that this file computes from the first key, and cover every byte of every file."""
        count = self.sample()
        key, data = Key(self.first.read_text()), (self.folder / "a.seal").read_bytes()
        seals, covered = Seals(data), {}
        self.assertEqual(seals.encode(key, 0), data)
        self.assertEqual(Key(self.key.read_text()).bytes, key.at(count))
        for fields, pattern, _ in seals.seals[1:]:
            sealed_ns, number, begin, end, digest = fields[5:]
            path = self.folder / pattern.decode().replace("{N}", f"{number:06d}")
            self.assertEqual(begin, covered.get(path, 0))
            self.assertEqual(hashlib.sha256(path.read_bytes()[begin:end]).digest(), digest)
            self.assertLess(abs(time.time() - sealed_ns / 1e9), 600)
            covered[path] = end
        self.assertEqual(covered, {path: path.stat().st_size for path in self.logs()})

    def test_every_altered_byte(self):
        self.sample()
        files = self.logs() + [self.folder / "a.seal"]
        seal = files[-1].read_bytes()
        for turn in range(support.representative(300, 45)):
            path = files[turn % len(files)]
            content = bytearray(path.read_bytes())
            at = self.random.randrange(len(content))
            if path == files[-1] and 8 <= at < HEAD and not any(seal[8 + (at - 8) // 40 * 40:][:40]):
                at = HEAD + at  # the unused place of the end mark has no meaning
            before = content[at]
            content[at] ^= 1 << self.random.randrange(8)
            path.write_bytes(content)
            self.rejects()
            content[at] = before
            path.write_bytes(content)
        self.proves()

    def test_files_deleted_truncated_swapped_and_added(self):
        self.sample()
        self.keep()
        logs = self.logs()
        for path in logs:
            path.unlink()
            self.rejects(f"{path.name}: missing; it had \\d+ bytes, sealed from ")
            self.restore()
            size = path.stat().st_size
            for cut in (size - 1, size // 2, 1, 0):
                os.truncate(path, cut)
                self.rejects(f"{path.name}: bytes \\d+ to \\d+ are cut off; they were sealed at ")
            self.restore()
            with open(path, "ab") as file:
                file.write(self.lines(1))
            self.rejects(f"{path.name}: {len(self.lines(1))} bytes added after the last seal")
            self.restore()
        for one, other in ((0, 1), (1, 3)):
            data = logs[one].read_bytes(), logs[other].read_bytes()
            logs[one].write_bytes(data[1])
            logs[other].write_bytes(data[0])
            self.rejects(f"{logs[one].name}: bytes ", f"{logs[other].name}: bytes ")
            self.restore()
        for name in ("a-000000.log", "a-000002b.log", "a-000900.log", "another.log"):
            (self.folder / name).write_bytes(self.lines(3))
            self.rejects(f"{name}: not sealed; it was added to the archive")
            self.restore()
        for path in logs:
            path.unlink()
        self.rejects("a-000001.log: missing")
        self.restore()
        logs[0].unlink()
        logs[0].symlink_to(self.scratch / "kept" / logs[0].name)
        self.rejects("Too many levels of symbolic links")
        self.restore()
        self.proves()

    def test_records_reordered_within_a_file(self):
        self.sample()
        path = self.logs()[1]
        lines = path.read_bytes().splitlines(keepends=True)
        lines[3], lines[4] = lines[4], lines[3]
        path.write_bytes(b"".join(lines))
        self.rejects(f"{path.name}: bytes \\d+ to \\d+ are altered")

    def test_seals_removed_reordered_and_repeated(self):
        count = self.sample()
        path = self.folder / "a.seal"
        data = path.read_bytes()
        ends = [HEAD + sum(s[0][1] for s in Seals(data).seals[:n]) for n in range(count + 1)]
        parts = [data[a:b] for a, b in zip(ends, ends[1:])]
        step = support.representative(1, 2)
        for n in range(0, count, step):  # removes the last seals; the mark is unchanged, removed, or moved to the other place
            for head in (data[:HEAD], data[:8] + bytes(80), data[:8] + data[48:88] + data[8:48]):
                path.write_bytes(head + b"".join(parts[:n]))
                self.rejects(f"a.seal: seal {n + 1} is missing or damaged")
        for n in range(1, count, step):
            path.write_bytes(data[:HEAD] + b"".join(parts[:n - 1] + parts[n:]))
            self.rejects()
            path.write_bytes(data[:HEAD] + b"".join(parts[:n] + parts[n - 1:]))
            self.rejects()
            path.write_bytes(data[:HEAD] + b"".join(parts[:n - 1] + [parts[n], parts[n - 1]] + parts[n + 1:]))
            self.rejects()
        path.write_bytes(data + 2 * parts[-1])
        self.rejects("bytes added after the last seal")
        path.write_bytes(b"")
        self.rejects("not a seal file")
        path.unlink()
        self.rejects("the directory has no seal file")
        path.write_bytes(data)
        self.proves()

    def attack(self, key, kept):
        """Forges all but the first seals with a key: after it has altered a sealed record, and with a second seal of the same range. Yields a
        description of each attack."""
        path, log = self.folder / "a.seal", self.logs()[0]
        data, content = path.read_bytes(), log.read_bytes()
        altered = content.replace(b"N=3\n", b"N=4\n")
        self.assertNotEqual(altered, content)
        log.write_bytes(altered)
        seals = Seals(data)
        ranges = [fields for fields, _, _ in seals.seals if fields[6] == 1 and fields[8] > fields[7]]
        for fields in ranges:
            fields[9] = hashlib.sha256(altered[fields[7]:fields[8]]).digest()
        path.write_bytes(seals.encode(key, kept))
        yield "altered"
        seals = Seals(data)  # the unchanged seals, and another seal of the same range
        seals.seals.append((ranges[0], b"a-{N}.log", b""))
        path.write_bytes(seals.encode(key, min(kept, len(seals.seals) - 1)))
        yield "sealed again"
        log.write_bytes(content)
        path.write_bytes(data)

    def test_who_takes_over_the_machine_cannot_forge_what_was_sealed_before(self):
        count = self.sample()
        path = self.folder / "a.seal"
        current, data = Key(self.key.read_text()), path.read_bytes()
        self.assertEqual(current.index, count)
        for kept in (count, 2, 0):
            for _ in self.attack(current, kept):
                self.rejects()
        for kept in range(1, count):  # restores an older state, with a forged mark
            seals = Seals(data)
            seals.seals = seals.seals[:kept]
            path.write_bytes(seals.encode(current, kept))
            self.rejects(f"seal {kept + 1} is missing or damaged")
        path.write_bytes(data)
        self.proves()

    def test_who_has_the_first_key_can_forge_everything(self):
        """The attacks above are correct: with the first key, which is kept elsewhere, they succeed."""
        self.sample()
        key = Key(self.first.read_text())
        done = {what: self.verify().returncode for what in self.attack(key, 0)}
        self.assertEqual(done, {"altered": 0, "sealed again": 1}, "the older seal still tells of the alteration")
        path = self.folder / "a.seal"
        seals = Seals(path.read_bytes())
        self.assertEqual(seals.seals[-1][0][7:9], [0, self.logs()[-1].stat().st_size])
        seals.seals = seals.seals[:-2]
        self.logs()[-1].unlink()
        path.write_bytes(seals.encode(key, len(seals.seals)))
        self.proves()

    def test_what_comes_after_a_take_over_can_be_forged(self):
        """A documented limit: nothing proves the records that were written after the theft of the key."""
        count = self.sample()
        forged, path = self.lines(5), self.folder / "a.seal"
        (self.folder / "a-000900.log").write_bytes(forged)
        seals = Seals(path.read_bytes())
        seals.seals.append(([b"NLS1", 129, 1, 9, 0, time.time_ns(), 900, 0, len(forged), hashlib.sha256(forged).digest()],
                            b"a-{N}.log", b""))
        path.write_bytes(seals.encode(Key(self.key.read_text()), count))
        self.assertIn("a-000900.log: sealed: ", self.proves())

    def test_a_copy_of_an_earlier_state_proves_an_earlier_time_only(self):
        """Another documented limit: an attacker who copied the whole archive can restore the copy."""
        self.sample()
        self.keep()
        before = self.proves()
        netlogd = self.serve(self.url())
        self.write(self.lines(10))
        self.stop(netlogd)
        after = self.proves()
        self.restore()
        self.assertEqual(self.proves(), before)
        until = [re.search(r"proven: .* to (\S+) \(", text).group(1) for text in (before, after)]
        self.assertLess(until[0], until[1])
        # The collector detects this, because its key belongs to later seals.
        netlogd = self.serve(self.url())
        self.assertEqual(netlogd.wait(10), 1)
        self.assertRegex(self.said(), r"a.seal: seal \d+ of \d+ is missing or damaged; keep the archive for inspection")

    def test_netlogd_does_not_begin_again_where_seals_were_removed(self):
        self.sample()
        (self.folder / "a.seal").unlink()
        self.assertEqual(self.serve(self.url()).wait(10), 1)
        self.assertIn("a.seal: seal 1 of ", self.said())

    def test_wrong_keys_and_options(self):
        self.sample()
        other = self.scratch / "other"
        self.create_key(self.keys / "other", other)
        self.rejects("seal 1 is missing or damaged, or the key belongs to another archive", key=other)
        result = self.verify(key=self.key)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
        self.assertIn("not the archive's first key; use the key that --create-seal-key printed", result.stderr)
        self.first.chmod(0o644)
        self.assertIn("other users can access the key; run chmod 600", self.verify().stderr)
        self.first.chmod(0o600)
        for wrong in (["--repair", f"--seal-key={self.first}", self.folder], ["--verify", "--since=-1d", self.folder],
                      ["--verify", f"--seal-key={self.first}", self.logs()[0]], [f"--seal-key={self.first}"]):
            self.assertEqual(self.run_program(self.netlogd, *wrong).returncode, 2, wrong)


class Honest(Archive):
    def compile_library(self, text):
        return str(self.compile_preloaded("preloaded.so", text))

    def client(self, name, count, options):
        url = f"x-netlog://127.0.0.1:{self.port}?policy=block&block=60{options}"
        return self.start(self.program, name, url, str(count), "500", stderr=subprocess.PIPE)

    def numbers(self, name):
        """Returns the numbers of a client's records in all files, in ascending order."""
        result = self.run_program(support.program("nlsort/nlsort"), *self.logs())
        self.assertEqual(result.returncode, 0, result.stderr)
        return sorted(int(n) for n in re.findall(rf" PROG={name} LVL=Usage NL.EVNT=Step I=(\d+) ", result.stdout))

    def test_killed_at_many_moments(self):
        """A kill at any call that changes a file, even within a write, does not look like tampering, before and after the restart
        of netlogd. Every record is in the archive once."""
        self.program = self.compile_client(PROGRAM)
        killer = self.compile_library(KILLER)
        output = self.url("a-{N}.nlb", "&rotate_size=24k&zstd=0", after="1s")
        spool = f"&ring=64k&spool={self.scratch}/spool"  # undelivered events of a client wait here for the next client
        killed = turns = 0
        while killed < support.representative(50, 12):
            environment = {"LD_PRELOAD": killer, "KILL_AT": str(self.random.randrange(1, 40)),
                           "ASAN_OPTIONS": "verify_asan_link_order=0"}
            netlogd = self.serve(output, environment=environment)
            client = self.client(f"c{turns}", 2000, spool + "&timeout=1")
            self.assertEqual(client.wait(60), 0, client.stderr.read())
            killed += netlogd.poll() is not None
            turns += 1
            netlogd.kill()
            netlogd.wait()
            if Key(self.key.read_text()).index > 0:
                said = self.verify().stdout  # the rest may show a block that was cut off
                self.assertRegex(said, r"\.seal: proven: ")
                self.assertNotIn("NOT PROVEN", said)
            self.assertLess(turns, 200)
        netlogd = self.serve(output)
        self.proves()
        client = self.client("last", 1, spool + "&timeout=60")
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.proves()  # while netlogd writes
        self.stop(netlogd)
        self.assertNotIn("not sealed", self.proves())
        for turn in range(turns):
            self.assertEqual(self.numbers(f"c{turn}"), list(range(2000)))

    def test_crashes_of_the_machine(self):
        """Sealed data and the journal are on disk for every value of fsync=: netlogd does not cut off sealed data."""
        crasher = self.compile_library(CRASHER)
        crashed = proven = turn = 0
        self.program = self.compile_client(PROGRAM)
        while crashed < support.representative(30, 8):
            environment = {"LD_PRELOAD": crasher, "CRASH_AT": str(self.random.randrange(1, 60)),
                           "ASAN_OPTIONS": "verify_asan_link_order=0"}
            netlogd = self.serve(self.url("a-{N}.nlb", "&rotate_size=24k&zstd=0&fsync=never"), environment=environment)
            client = self.client(f"c{turn}", 4000, f"&ring=64k&spool={self.scratch}/spool&timeout=1")
            self.assertEqual(client.wait(60), 0, client.stderr.read())
            crashed += netlogd.poll() is not None
            turn += 1
            self.assertLess(turn, 200)
            netlogd.kill()
            netlogd.wait()
            if Key(self.key.read_text()).index > 0:
                said = self.verify().stdout
                self.assertRegex(said, r"\.seal: proven: ", said)
                proven = int(re.search(r"proven: (\d+) bytes", said).group(1))
        self.assertGreater(proven, 0)
        self.stop(self.serve(self.url("a-{N}.nlb")))
        said = self.verify().stdout  # with fsync=never, the rest may show that acknowledged records are missing
        self.assertRegex(said, r"\.seal: proven: ", said)
        self.assertNotIn("not sealed", said)

    def test_full_disk(self):
        out = self.folder.parent
        for part in (self.folder, self.keys):
            shutil.rmtree(part)
        if os.geteuid() != 0 or self.run_program("mount", "-t", "tmpfs", "-o", "size=16m", "none", out).returncode != 0:
            self.skipTest("mounting a small file system is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", out)
        self.folder.mkdir()
        self.keys.mkdir()
        self.create_key(self.key, self.first)
        self.program = self.compile_client(PROGRAM)
        output = self.url("a-{N}.nlb", "&rotate_size=64k&zstd=0", after="1s")
        ballast = out / "ballast"
        with self.assertRaises(OSError):
            ballast.write_bytes(b"x" * (17 << 20))
        os.truncate(ballast, ballast.stat().st_size - (300 << 10))
        netlogd = self.serve(output)
        client = self.client("c", 100000, "&timeout=60")
        support.wait_until(lambda: "No space left" in self.said(), what="the message")
        time.sleep(1.5)
        self.proves()
        netlogd.kill()
        netlogd.wait()
        self.proves()
        netlogd = self.serve(output)
        time.sleep(1.5)
        self.proves()
        ballast.unlink()
        self.assertEqual(client.wait(60), 0, [client.stderr.read(), self.said(), netlogd.poll()])
        self.stop(netlogd)
        self.assertNotIn("not sealed", self.proves())
        self.assertEqual(self.numbers("c"), list(range(100000)))

    def test_removal_of_old_files(self):
        """Removed files count as tampering, unless they were sealed before --since and may be removed."""
        self.sample()
        time.sleep(0.01)
        since = f"--since={time.time():.6f}"
        netlogd = self.serve(self.url())
        self.write(self.lines(5))
        self.stop(netlogd)
        logs = self.logs()
        for path in logs[:-1]:
            path.unlink()
            self.rejects(f"{path.name}: missing")
            self.assertIn(f"{path.name}: note: removed; it had ", self.proves(since))
        logs[-1].unlink()
        self.assertEqual(self.verify(since).returncode, 1)

    def test_numbers_of_removed_files_are_not_used_again(self):
        """The newest files are removed while netlogd does not run."""
        self.sample()
        removed = self.logs()[-2:]
        for path in removed:
            path.unlink()
        time.sleep(0.01)
        since = f"--since={time.time():.6f}"
        netlogd = self.serve(self.url())
        self.write(self.lines(5))
        self.stop(netlogd)
        self.assertGreater(self.logs()[-1].name, removed[-1].name)
        self.assertEqual(self.logs()[-1].read_bytes(), self.lines(5))
        said = self.proves(since)
        for path in removed:
            self.assertFalse(path.exists())
            self.assertIn(f"{path.name}: note: removed; it had ", said)

    def test_reload_and_reopen(self):
        config = self.scratch / "netlogd.conf"
        config.write_text(f"output {self.url()}\n")
        netlogd = self.serve(arguments=(f"--config={config}",))

        def reload(text):
            config.write_text(text)
            done = self.own.read_text().count("Netlogd.Reopen")
            netlogd.send_signal(signal.SIGHUP)
            support.wait_until(lambda: self.own.read_text().count("Netlogd.Reopen") > done, what="the reload")

        self.write(self.lines(5))
        reload(f"output {self.url(options='&rotate_size=4k')}\n")
        self.write(self.lines(200))
        self.assertIn("a-000003.log", self.proves())
        reload(f"output {self.url('a-{N}.nlb')}\n")
        self.write(self.lines(5))
        reload(f"output {self.url('a-{N}.nlb', after='1s')}\n")
        self.write(self.lines(5))
        support.wait_until(lambda: "not sealed" not in self.proves(), what="a seal after a second")
        reload(f"output {self.url('a-{N}.nlb', key=self.keys / 'other')}\n")
        self.assertIn("seal= changes only when netlogd restarts", self.said())
        self.stop(netlogd)
        self.assertNotIn("not sealed", self.proves())
        self.assertEqual([p.suffix for p in self.logs()].count(".nlb"), 2)

    def test_an_archive_that_was_there_before(self):
        for output in (f"file:{self.folder}/a-{{N}}.log", self.url()):
            for _ in range(2):
                netlogd = self.serve(output)
                self.write(self.lines(5))
                self.stop(netlogd)
        said = self.proves()
        self.assertEqual(said.count("note: not sealed; it is older than the first seal"), 2)
        self.assertIn("bytes in 2 files", said)

    def test_two_outputs(self):
        folders = [self.scratch / "one", self.scratch / "other"]
        firsts = [self.scratch / "first of one", self.scratch / "first of other"]
        for folder, first in zip(folders, firsts):
            folder.mkdir()
            self.create_key(self.keys / folder.name, first)
        outputs = [f"file:{f}/{{N}}.log?seal={self.keys / f.name}&rotate_size=4k{where}"
                   for f, where in zip(folders, ("", "&where=N<50"))]
        netlogd = self.serve(*outputs)
        self.write(self.lines(200))
        self.stop(netlogd)
        for folder, first in zip(folders, firsts):
            self.proves(folder=folder, key=first)
        self.rejects(folder=folders[0], key=firsts[1])
        netlogd = self.serve(outputs[0], outputs[1].replace(f"seal={self.keys}/other", f"seal={self.keys}/one"))
        self.assertEqual(netlogd.wait(10), 1, "one key for two archives")

    def test_copies_are_proven_too(self):
        self.sample()
        shutil.copytree(self.folder, self.scratch / "copy")
        self.proves(folder=self.scratch / "copy")
        self.proves(folder=f"{self.scratch}/copy/")

    def test_options_and_keys_that_cannot_be_used(self):
        for options, message in (("x.log?seal=/k", "seal= needs numbered files"), ("x-{N}.log?seal=", "seal"),
                                 ("x-{N}.log?seal=/k&seal_time=1ms", "seal_time")):
            result = self.run_program(self.netlogd, f"--output=file:{self.folder}/{options}")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(message, result.stderr)
        self.assertIn("File exists", self.run_program(self.netlogd, f"--create-seal-key={self.key}").stderr)
        self.key.chmod(0o640)
        self.assertEqual(self.serve(self.url()).wait(10), 1)
        self.assertIn("other users can access the key; run chmod 600", self.said())
        self.assertEqual(list(self.folder.glob("*.log")), [])

    def test_confined(self):
        """netlogd replaces the key even if Landlock permits writing only to places of its configuration."""
        netlogd = self.serve(self.url(after="1s"), arguments=("--confine=yes",))
        self.write(self.lines(5))
        support.wait_until(lambda: Key(self.key.read_text()).index == 3, what="the seal")
        self.stop(netlogd)
        self.proves()


support.main()
