"""The collector's output: numbered files, kills at any moment, full disks, damaged ends, --verify and --repair."""
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import support
from producer import KILLER, PROGRAM

def line(number):
    return f"DATE=20260101000000.{number % 1000000:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={number}\n".encode()


FAILING_SYNC = r"""
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <stdio.h>
int fdatasync(int fd)
{
    static int calls;
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, name, sizeof name - 1);
    name[size > 0 ? size : 0] = 0;
    if (strstr(name, "all.nlb") != NULL && strstr(name, "streams") == NULL && ++calls == 3) {
        errno = EIO;
        return -1;
    }
    return fsync(fd);
}
"""


class Output(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.folder = self.scratch / "out"
        self.folder.mkdir()
        self.messages = self.scratch / "messages"
        self.own = self.scratch / "own.log"
        self.port = support.free_port()

    def serve(self, output, *options, environment=None):
        with open(self.messages, "ab") as messages:
            start = self.messages.stat().st_size if self.messages.exists() else 0
            netlogd = self.start(self.netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{self.port}", "--output",
                                 output, "--log", self.own, "--recover", "0", *options, stderr=messages,
                                 env=dict(os.environ, **(environment or {})))
        support.wait_until(lambda: environment and netlogd.poll() is not None or "listening" in self.said()[start:], what="netlogd listens")
        return netlogd

    def said(self):
        return self.messages.read_text(errors="replace") if self.messages.exists() else ""

    def stop(self, netlogd):
        self.send(b"")  # then it is in its loop
        netlogd.send_signal(signal.SIGTERM)
        self.assertEqual(netlogd.wait(20), 0, self.said())

    def client(self, name, count, pause, options="", **more):
        url = f"x-netlog://127.0.0.1:{self.port}?policy=block&block=60{options}"
        return self.start(self.program, name, url, str(count), str(pause), stderr=subprocess.PIPE, **more)

    def files(self):
        return sorted(p for p in self.folder.iterdir() if not p.name.endswith((".streams", ".index", ".values")))

    def text(self, paths=None):
        """Returns the records of the files as text, in the order of the files' numbers."""
        text = ""
        for path in paths or self.files():
            if path.stat().st_size == 0:
                continue
            result = self.run_program(support.program("nlsort/nlsort"), path) if path.suffix != ".log" else None
            self.assertTrue(result is None or (result.returncode == 0 and not result.stderr), result and result.stderr)
            text += result.stdout if result else path.read_text()
        return text

    def numbers(self, name, text):
        return [int(n) for n in re.findall(rf" PROG={name} LVL=Usage NL.EVNT=Step I=(\d+) ", text)]

    def rotate(self, output, suffix):
        """With several clients and small files, every record is in the output once, and every file is valid. Returns the
        files."""
        self.program = self.compile_client(PROGRAM)
        netlogd = self.serve(output)
        clients = [self.client(f"c{i}", 20000, 100) for i in range(3)]
        for client in clients:
            self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.stop(netlogd)
        files = self.files()
        self.assertEqual([p.name for p in files], [f"a-{n + 1:06d}{suffix}" for n in range(len(files))])
        self.assertGreater(len(files), 3)
        text = self.text(files)
        for i in range(3):
            found = self.numbers(f"c{i}", text)
            self.assertEqual(sorted(found), list(range(20000)))
        return files

    def test_rotation_by_size_of_text(self):
        files = self.rotate(f"file:{self.folder}/a-{{N}}.log?rotate_size=512k", ".log")
        for path in files[:-1]:
            self.assertGreaterEqual(path.stat().st_size, 512 << 10)

    def test_rotation_by_size_of_blocks(self):
        files = self.rotate(f"file:{self.folder}/a-{{N}}.nlb?rotate_size=16k&zstd=0", ".nlb")
        for path in files[:-1]:
            self.assertGreaterEqual(path.stat().st_size, 16 << 10)
        blocks = b"".join(p.read_bytes() for p in files)
        self.assertNotIn(bytes(16), [s for s in self.streams(blocks)], "blocks keep their streams")

    def test_rotation_by_size_of_compressed_text(self):
        self.rotate(f"file:{self.folder}/a-{{N}}.log.zst?rotate_size=16k&zstd=3", ".log.zst")

    def test_files_end_at_the_size_asked_for_at_full_speed(self):
        limit = 300 << 10
        lines = b"".join(line(n) for n in range(100000))
        netlogd = self.serve(f"file:{self.folder}/a-{{N}}.log?rotate_size={limit}&fsync=50ms")
        self.send(lines)
        self.stop(netlogd)
        files = self.files()
        self.assertEqual(b"".join(p.read_bytes() for p in files), lines)
        for path in files[:-1]:
            self.assertGreaterEqual(path.stat().st_size, limit)
            self.assertLess(path.stat().st_size, limit + len(line(100000)))
        for path in files:
            path.unlink()
        for asked in ("zstd=0", "zstd=1", "zstd=1&where=N<4000000000"):
            netlogd = self.serve(f"file:{self.folder}/b-{{N}}.nlb?rotate_size={limit}&{asked}")
            self.send(lines)
            self.stop(netlogd)
            files = self.files()
            self.assertEqual(self.text(files).encode(), lines)
            for path in files[:-1]:
                self.assertGreaterEqual(path.stat().st_size, limit)
                self.assertLess(path.stat().st_size, limit + (128 << 10))
            for path in files:
                path.unlink()

    def test_blocks_at_full_speed_end_files_where_they_should(self):
        """One output stores blocks unchanged, another encodes them again because of a filter, and another writes text. Each has
        its own size of files."""
        limit = 100 << 10
        self.program = self.compile_client(PROGRAM)
        netlogd = self.serve(f"file:{self.folder}/a-{{N}}.nlb?rotate_size={limit}&zstd=0", "--output",
                             f"file:{self.folder}/b-{{N}}.log?rotate_size={limit}", "--output",
                             f"file:{self.folder}/c-{{N}}.nlb?rotate_size={limit // 8}&zstd=1&where=I>%3D0")
        client = self.client("c", 300000, 0, "&spool=" + str(self.scratch / "spool"))
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.stop(netlogd)
        for letter, least, block in (("a", limit, 64 << 10), ("b", limit, 4 << 20), ("c", limit // 8, 128 << 10)):
            files = [p for p in self.files() if p.name.startswith(letter)]
            self.assertEqual(sorted(self.numbers("c", self.text(files))), list(range(300000)))
            self.assertGreater(len(files), 2, letter)
            for path in files[:-1]:
                self.assertGreaterEqual(path.stat().st_size, least)
                self.assertLess(path.stat().st_size, least + block)
        self.assertEqual(self.verify(self.folder).returncode, 0)

    @staticmethod
    def streams(blocks):
        at = 0
        while at < len(blocks):
            header, = struct.unpack_from("<H", blocks, at + 4)
            stored, = struct.unpack_from("<I", blocks, at + 12)
            yield blocks[at + 24:at + 40]
            at += header + stored

    def test_lines_that_are_not_decoded(self):
        """For an output with a filter, netlogd decodes every record. For an output without a filter, netlogd copies plain lines.
        Both outputs have the same content."""
        random_ = random.Random(1)
        texts = [lambda n: line(n), lambda n: line(n).replace(b"\n", b"\r\n"), lambda n: line(n).replace(b" N=", b"\tN="),
                 lambda n: line(n).replace(b"PROG=p", b'PROG="p q"'), lambda n: b"prefix: " + line(n),
                 lambda n: line(n)[:random_.randrange(1, 40)] + line(n), lambda n: b"rubbish %d\n" % n, lambda n: b"\n",
                 lambda n: b"ts=2026-01-01T00:00:00.%06dZ event=e host=h N=%d\n" % (n % 1000000, n),
                 lambda n: line(n).replace(b" N=", " M=\u202e \x9b N=".encode()), lambda n: line(n).replace(b" N=", b" M=\xff\x00 N="),
                 lambda n: b"DATE=20260101000000.%06d HOST=h PROG=p LVL=Usage NL.EVNT=Clock.State NOTE=%d\n" % (n % 1000000, n)]
        data = b"".join(texts[random_.randrange(len(texts)) if random_.random() < 0.03 else 0](n) for n in range(60000))
        found = []
        for options in ("", "?where=HOST!=nobody"):
            for old in self.folder.iterdir():
                old.unlink()
            netlogd = self.serve(f"file:{self.folder}/a.log{options}")
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
                at, sizes = 0, random.Random(2)
                while at < len(data):
                    size = sizes.choice([1, 7, 100, 5000, 70000, 300000])
                    s.sendall(data[at:at + size])
                    at += size
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
            self.stop(netlogd)
            found.append((self.files()[0].read_bytes(), re.findall(r"netlogd: (?!listening|stop).*", self.said())))
        self.assertGreater(found[0][0].count(b"\n"), 59000)
        self.assertEqual(found[0], found[1])

    def test_numbers_go_on_and_sighup_begins_another(self):
        pattern = f"{self.folder}/"
        for run in range(2):
            netlogd = self.serve(pattern)
            self.send(line(run * 2))
            netlogd.send_signal(signal.SIGHUP)
            support.wait_until(lambda: len(self.files()) == run * 2 + 2, what="another file")
            self.send(line(run * 2 + 1))
            self.stop(netlogd)
        self.assertEqual([p.name for p in self.files()], [f"netlog-{n:06d}.log" for n in range(1, 5)])
        self.assertEqual([p.read_bytes() for p in self.files()], [line(n) for n in range(4)])

    def test_rotation_by_time(self):
        netlogd = self.serve(f"file:{self.folder}/a-{{N}}.log?rotate_time=1ms")
        for n in range(5):
            self.send(line(n))
            support.wait_until(lambda: any(line(n) in p.read_bytes() for p in self.files()), what="it is written")
            time.sleep(0.01)
        self.stop(netlogd)
        self.assertEqual([p.read_bytes() for p in self.files()], [line(n) for n in range(5)])

    def send(self, data):
        import socket
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(s.recv(1), b"")

    def kills(self, output, kills, seed):
        """Every event whose call returned is in the output once, whenever netlogd is killed."""
        self.program = self.compile_client(PROGRAM)
        rng = random.Random(seed)
        netlogd = self.serve(output)
        clients = [self.client(f"c{i}", "-", 2000, "&timeout=100", stdin=subprocess.PIPE, stdout=subprocess.PIPE) for i in range(2)]
        size = lambda: sum(p.stat().st_size for p in self.folder.iterdir())
        for done in range(kills):
            if done % 4 == 3:  # the clients make progress between the kills even on a busy machine
                before = size()
                support.wait_until(lambda: size() > before or any(c.poll() is not None for c in clients), what="records")
            time.sleep(rng.uniform(0.001, 0.12))
            netlogd.kill()
            netlogd.wait()
            netlogd = self.serve(output)
        counts = []
        for client in clients:
            self.assertIsNone(client.poll())
            client.stdin.close()
        for client in clients:
            status = client.wait(100)
            self.assertEqual(status, 0, f"{client.stderr.read()}; netlogd: {netlogd.poll()}, {self.said()[-2000:]}")
            counts.append(int(client.stdout.read()))
        self.stop(netlogd)
        text = self.text()
        for i, count in enumerate(counts):
            self.assertGreater(count, 1000)
            self.assertEqual(sorted(self.numbers(f"c{i}", text)), list(range(count)))

    def kills_at_calls(self, output, kills, seed):
        """Like the previous test, with kills before, in and after the calls that change files. At least once, netlogd removes an
        incomplete record when it starts again."""
        self.program = self.compile_client(PROGRAM)
        killer = self.compile_preloaded("killer.so", KILLER)
        rng = random.Random(seed)
        spool = f"&spool={self.scratch}/spool&ring=64k"  # makes many small blocks even on a busy machine
        killed = runs = 0
        while killed < kills or "Netlogd.Repaired" not in self.own.read_text():
            environment = {"LD_PRELOAD": str(killer), "KILL_AT": str(rng.randrange(1, 16)),
                           "ASAN_OPTIONS": "verify_asan_link_order=0"}
            netlogd = self.serve(output, environment=environment)
            client = self.client(f"c{runs}", 3000, 1000, spool + "&timeout=5")  # undelivered events wait on disk for the next run
            self.assertEqual(client.wait(60), 0, client.stderr.read())
            killed += netlogd.poll() is not None
            netlogd.kill()
            netlogd.wait()
            runs += 1
            self.assertLess(runs, 200)
        netlogd = self.serve(output)
        client = self.client("last", 1, 0, spool + "&timeout=60")
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.stop(netlogd)
        text = self.text()
        for i in range(runs):
            self.assertEqual(sorted(self.numbers(f"c{i}", text)), list(range(3000)))
        self.assertEqual(self.verify(self.folder).returncode, 0)

    def test_what_the_disk_did_not_take_is_not_acknowledged(self):
        """The kernel reports a failed background write only once: the next fsync succeeds."""
        self.program = self.compile_client(PROGRAM)
        failing = self.compile_preloaded("failing.so", FAILING_SYNC)
        output, spool = f"file:{self.folder}/all.nlb?fsync=flush", f"&spool={self.scratch}/spool&ring=64k&timeout="
        netlogd = self.serve(output, environment={"LD_PRELOAD": str(failing), "ASAN_OPTIONS": "verify_asan_link_order=0"})
        client = self.client("c", 3000, 1000, spool + "5")  # more blocks than syncs before the failing sync
        self.assertEqual(netlogd.wait(30), 1)
        self.assertIn("Input/output error", self.said())
        self.assertIn("not acknowledged", self.said())
        netlogd = self.serve(output)
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        client = self.client("last", 1, 0, spool + "60")
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.stop(netlogd)
        self.assertEqual(sorted(self.numbers("c", self.text())), list(range(3000)))

    def test_removed_files_are_replaced(self):
        self.program = self.compile_client(PROGRAM)
        log, blocks = self.folder / "all.log", self.folder / "a-000001.nlb"
        netlogd = self.serve(f"file:{log}", "--output", f"file:{self.folder}/a-{{N}}.nlb")
        run = lambda name, count: self.assertEqual(self.client(name, count, 0).wait(60), 0)
        run("before", 100)
        log.unlink()
        blocks.unlink()
        run("between", 1000)
        self.assertEqual(self.numbers("between", log.read_text()), list(range(1000)))
        self.assertEqual(self.numbers("between", self.text([self.folder / "a-000002.nlb"])), list(range(1000)))
        for path in (log, blocks):
            self.assertIn(f"{path} was removed; continuing with a new file\n", self.said())
        shutil.rmtree(self.folder)
        client = self.client("after", 1000, 0, "&timeout=60")
        support.wait_until(lambda: f"open {log}: No such file" in self.said(), what="the message")
        self.folder.mkdir()
        self.assertEqual(client.wait(60), 0, client.stderr.read())
        self.assertEqual(self.numbers("after", log.read_text()), list(range(1000)))
        self.assertTrue((self.folder / "all.log.streams").exists(), "the next netlogd detects repeated blocks")
        self.stop(netlogd)
        self.assertEqual(self.verify(self.folder).returncode, 0)

    def test_killed_at_calls_with_text(self):
        self.kills_at_calls(f"file:{self.folder}/all.log", support.representative(20, 7), 4)

    def test_killed_at_calls_with_blocks(self):
        self.kills_at_calls(f"file:{self.folder}/all.nlb?fsync=flush", support.representative(20, 7), 5)

    def test_killed_at_calls_with_numbered_files(self):
        self.kills_at_calls(f"file:{self.folder}/a-{{N}}.nlb?rotate_size=20k&fsync=5ms", support.representative(20, 7), 6)

    def test_killed_at_any_moment_with_text(self):
        self.kills(f"file:{self.folder}/all.log", support.representative(15, 8), 1)

    @support.long
    def test_killed_at_any_moment_with_blocks(self):
        self.kills(f"file:{self.folder}/all.nlb?fsync=flush", 15, 2)

    @support.long
    def test_killed_at_any_moment_with_numbered_files(self):
        self.kills(f"file:{self.folder}/a-{{N}}.nlb?rotate_size=64k&fsync=20ms", 15, 3)

    def test_killed_in_the_middle_of_a_full_disk(self):
        self.small()
        self.program = self.compile_client(PROGRAM)
        for output in [f"file:{self.folder}/all.nlb?zstd=0", f"file:{self.folder}/a-{{N}}.nlb?rotate_size=64k&zstd=0"]:
            ballast = self.folder / "ballast.streams"
            with self.assertRaises(OSError):
                ballast.write_bytes(b"x" * (17 << 20))
            ballast.write_bytes(b"x" * (ballast.stat().st_size - (300 << 10)))
            said = self.said().count("No space left")
            netlogd = self.serve(output)
            client = self.client("full", 250000, 100, "&timeout=20")
            support.wait_until(lambda: self.said().count("No space left") > said, what="the message")
            time.sleep(0.3)
            self.assertEqual(self.said().count("No space left"), said + 1, "said once")
            netlogd.kill()
            netlogd.wait()
            netlogd = self.serve(output)
            ballast.unlink()
            self.assertEqual(client.wait(60), 0, [client.stderr.read(), self.said(), netlogd.poll()])
            self.stop(netlogd)
            files = self.files()
            self.assertEqual(sorted(self.numbers("full", self.text(files))), list(range(250000)))
            verified = self.verify(self.folder)
            self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
            for path in self.folder.iterdir():
                path.unlink()

    def small(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        if self.run_program("mount", "-t", "tmpfs", "-o", "size=16m", "none", self.folder).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(self.run_program, "umount", "-l", self.folder)

    def verify(self, *paths, option="--verify"):
        return self.run_program(self.netlogd, option, *paths)

    def blocks(self):
        """Returns a file of at least four blocks of one client, its bytes, and the number of its records."""
        self.program = self.compile_client(PROGRAM)
        path = self.folder / "log.nlb"
        netlogd = self.serve(f"file:{path}?zstd=0")
        client = self.client("c", "-", 2000, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        support.wait_until(lambda: path.exists() and path.read_bytes().count(b"NLB1") >= 4, what="four blocks")
        client.stdin.close()
        self.assertEqual(client.wait(30), 0, client.stderr.read())
        self.stop(netlogd)
        (self.folder / "log.nlb.streams").unlink()
        return path, path.read_bytes(), int(client.stdout.read())

    def boundaries(self, blocks):
        at, found = 0, [0]
        while at < len(blocks):
            at += struct.unpack_from("<H", blocks, at + 4)[0] + struct.unpack_from("<I", blocks, at + 12)[0]
            found.append(at)
        return found

    def test_damaged_ends_are_cut_at_the_start(self):
        path, data, _ = self.blocks()
        ends = self.boundaries(data)
        text = line(1) + line(2)
        cases = [(path, data[:ends[-1] - 1], ends[-2]), (path, data[:ends[-2] + 3], ends[-2]),
                 (path, data + b"\0" * 5000, len(data)), (path, data[:-1] + b"\xff" * (data[-1] != 255), None),
                 (path, data, len(data)), (path, b"NLB", 0)]
        cases += [(self.folder / "all.log", text + line(3)[:n], len(text)) for n in (1, 40)]
        cases += [(self.folder / "all.log", t, len(t)) for t in (text, b"", data + text, text + data)]
        cases[3] = (path, data[:ends[-1] - 1] + bytes([data[-1] ^ 1]), ends[-2])
        for path, content, kept in cases:
            path.write_bytes(content)
            self.own.unlink(missing_ok=True)
            self.stop(self.serve(path))
            self.assertEqual(path.read_bytes(), content[:kept])
            said = re.findall(r"NL.EVNT=Netlogd.Repaired FILE=(\S+) CUT=(\d+) KEPT=(\d+) ", self.own.read_text())
            cut = len(content) - kept
            self.assertEqual(said, [(str(path), str(cut), str(kept))] if cut else [])

    def test_damaged_end_of_compressed_text(self):
        path = self.folder / "all.log.zst"
        for n in range(3):
            netlogd = self.serve(f"file:{path}?zstd=1")
            self.send(line(n))
            self.stop(netlogd)
        data = path.read_bytes()
        path.write_bytes(data[:-1])
        netlogd = self.serve(f"file:{path}?zstd=1")
        self.send(line(3))
        self.stop(netlogd)
        self.assertEqual(self.text([path]).encode(), line(0) + line(1) + line(3))
        self.assertEqual(self.verify(path).returncode, 0)

    def test_verify_and_repair_blocks(self):
        path, data, count = self.blocks()
        ends = self.boundaries(data)
        result = self.verify(self.folder)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"{path}: sound: {count} records in {len(ends) - 1} blocks", result.stdout)
        damaged = bytearray(data)
        damaged[ends[1] + 120] ^= 1
        path.write_bytes(bytes(damaged[:-2]))
        result = self.verify(path, option="--repair")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(f"{path}: at byte {ends[1]}: {ends[2] - ends[1]} bytes: block's checksum", result.stdout)
        self.assertIn(f"{path}: at byte {ends[-2]}: {ends[-1] - ends[-2] - 2} bytes: truncated: 2 bytes and ", result.stdout)
        self.assertRegex(result.stdout, r": stream [0-9a-f]{32}: \d+ records are missing between ")
        self.assertEqual(path.read_bytes(), data[:ends[1]] + data[ends[2]:ends[-2]])
        aside = self.folder / "log.nlb.damaged"
        self.assertEqual(aside.read_bytes(), bytes(damaged[ends[1]:ends[2]] + damaged[ends[-2]:-2]))
        result = self.verify(self.folder)
        self.assertEqual(result.returncode, 1, "what is missing stays missing")
        self.assertNotIn("at byte", result.stdout)
        path.write_bytes(data + data[:ends[1]])
        result = self.verify(path)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r", \d+ records? stored twice")

    def test_verify_and_repair_text(self):
        path = self.folder / "all.log"
        path.write_bytes(line(1) + b"what is this\r\n" + line(2) + line(3)[:50])
        result = self.verify(self.folder, option="--repair")
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{path}: at byte {len(line(1))}: 12 bytes: ", result.stdout)
        self.assertIn(f"{path}: at byte {len(line(1) + line(2)) + 14}: 50 bytes: incomplete record", result.stdout)
        self.assertEqual(path.read_bytes(), line(1) + line(2))
        self.assertEqual((self.folder / "all.log.damaged").read_bytes(), b"what is this\r\n" + line(3)[:50])
        self.assertEqual(self.verify(self.folder).returncode, 0)

    def test_repair_after_one_that_was_killed(self):
        path, left = self.folder / "all.log", self.folder / "all.log.repaired"
        path.write_bytes(line(1) + b"what is this\n")
        left.write_bytes(line(1)[:10])
        result = self.verify(path, option="--repair")
        self.assertIn(f"{path}: repaired", result.stdout, result.stderr)
        self.assertEqual(path.read_bytes(), line(1))
        self.assertFalse(left.exists())

    def test_what_is_being_written_is_not_repaired(self):
        path = self.folder / "all.log"
        netlogd = self.serve(path)
        self.send(line(1) + line(2))
        support.wait_until(lambda: path.exists() and path.read_bytes() == line(1) + line(2), what="both lines")
        with open(path, "r+b") as file:
            file.write(b"D\xff")
        result = self.verify(path, option="--repair")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rf"netlogd \(process {netlogd.pid}\) is writing to this file; the file is not repaired")
        self.assertFalse((self.folder / "all.log.damaged").exists())
        self.send(line(3))
        self.stop(netlogd)
        self.assertTrue(path.read_bytes().endswith(line(2) + line(3)))
        self.assertIn("repaired", self.verify(path, option="--repair").stdout)
        self.assertEqual(path.read_bytes(), line(2) + line(3))

    def test_a_directory_without_permission(self):
        """The message names the output that the user gave, not a file beside it."""
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        self.folder.chmod(0o700)
        result = self.run_program(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{support.free_port()}",
                                  "--output", self.folder / "all.log", user=61000, group=61000, extra_groups=[])
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"open {self.folder}/all.log: Permission denied\n", result.stderr)

    def test_a_repaired_file_stays_its_owners(self):
        if os.geteuid() != 0:
            self.skipTest("giving files away needs root")
        path = self.folder / "all.log"
        path.write_bytes(line(1) + b"what is this\n")
        os.chown(path, 12345, 12345)
        path.chmod(0o640)
        self.assertIn("repaired", self.verify(path, option="--repair").stdout)
        status = path.stat()
        self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o777), (12345, 12345, 0o640))

    def test_verify_tells_of_files_that_are_gone(self):
        files = self.rotate(f"file:{self.folder}/a-{{N}}.nlb?rotate_size=16k&zstd=0", ".nlb")
        self.assertEqual(self.verify(self.folder).returncode, 0, self.verify(self.folder).stdout)
        last = len(files)
        whole = files[-1].read_bytes()

        def gone(*numbers, status=1):
            for number in numbers:
                files[number - 1].rename(self.scratch / files[number - 1].name)
            result = self.verify(self.folder)
            for number in numbers:
                (self.scratch / files[number - 1].name).rename(files[number - 1])
            self.assertEqual(result.returncode, status, [numbers, result.stdout])
            return result.stdout

        self.assertIn(f'{self.folder}: note: file number 1 of "a" was removed\n', gone(1, status=0))
        self.assertIn(f'{self.folder}: note: file numbers 1 to 2 of "a" were removed\n', gone(1, 2, status=0))
        self.assertNotIn("missing", gone(*range(1, last), status=0), "only the latest is left")
        self.assertIn(f'{self.folder}: file number 2 of "a" is missing\n', gone(2))
        said = gone(1, 3)
        self.assertIn(f'{self.folder}: note: file number 1 of "a" was removed\n', said)
        self.assertIn(f'{self.folder}: file number 3 of "a" is missing\n', said)
        said = gone(last - 1, last)
        self.assertIn(f'{self.folder}: file numbers {last - 1} to {last} of "a" are missing\n', said)
        self.assertRegex(said, r"out: stream [0-9a-f]{32}: \d+ written records are missing after 2")
        self.assertIn(f'file numbers 1 to {last} of "a" are missing', gone(*range(1, last + 1)))
        os.truncate(files[-1], 0)
        self.assertIn(f"{files[-1]}: {len(whole)} written bytes are missing at the end\n", gone())
        files[-1].write_bytes(whole)
        self.assertEqual(self.verify(self.folder).returncode, 0)

    def test_verify_of_folders_that_are_no_archive(self):
        result = self.verify(self.folder)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"netlogd: {self.folder}: no logs in this directory\n"))
        (self.folder / "notes").write_text("x\n")
        result = self.run_program(self.netlogd, "--verify", self.folder)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertEqual(result.stderr, f"netlogd: {self.folder}/notes: no DATE=, ts= or time= field; the whole file is malformed\n")
        (self.folder / "notes").unlink()
        (self.folder / "a-000001.log").write_bytes(line(1))
        (self.folder / "delivered").write_bytes(b"\x01\x02\x03")
        result = self.verify(self.folder)
        self.assertEqual((result.returncode, result.stdout), (0, f"{self.folder}/a-000001.log: sound: 1 record\n"))

    def test_what_is_wrong_with_an_output_is_said(self):
        for status, output, why in [(2, f"file:{self.folder}/a.log?rotate_size=1m", "needs numbered files"),
                                    (2, f"file:{self.folder}/a.log?rotate=1m", "unknown option \"rotate\""),
                                    (2, f"file:{self.folder}/a-{{N}}.log?fsync=often", "\"often\" is not never|flush or a duration"),
                                    (2, f"file:{self.folder}/a-{{N}}.log?fsync=0", "0 is out of range; use at least 1ms"),
                                    (2, f"file:{self.folder}/a-{{N}}.log?rotate_time=0", "0 is out of range; use at least 1ms"),
                                    (2, f"file:{self.folder}/{{N}}/a.log", "is allowed only in the name of a file"),
                                    (2, f"file:{self.folder}/a.log?where=A=", "column 3: expected a value"),
                                    (2, "x-netlog://localhost", "missing option spool=DIRECTORY"),
                                    (2, f"x-netlog://localhost?spool={self.folder}&format=ulm", "requires format=nlb"),
                                    (2, f"x-syslog://moon?spool={self.folder}", "unknown syslog facility"),
                                    (2, "memory:x", "this URL cannot be an output"),
                                    (1, f"{self.folder}/no/", "No such file"),
                                    (1, f"x-netlog://localhost?spool={self.folder}/no/no", "No such file")]:
            result = self.run_program(self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/s", "--output", output)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertIn(why, result.stderr)


if __name__ == "__main__":
    support.main()
