"""netlogd writes correct time indexes, and a search by time reads only the necessary parts. If the index is missing, truncated,
damaged, older or newer, or belongs to another file, the same records are found."""
import datetime
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess

import collector
import support

START = 1767225600  # 2026-01-01
COUNT = 24000
PIECE = 256 << 10


def second(i):
    """Returns the time of record i: mostly in order, sometimes half a minute late; each client has its own times."""
    return START + i // 20 - (i * 7919 % 31 if i % 3 == 0 else 0)


def when(t):
    return datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y%m%d%H%M%S")


def padding(i):
    """Returns text that hardly compresses."""
    return "".join(f"{(i + k * 77777) * 0x9e3779b97f4a7c15 & (1 << 64) - 1:016x}" for k in range(6))[:i * 31 % 90]


def lines(first, last):
    return [f"DATE={when(second(i))}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E{i % 5} N={i} B={i // 5} X={padding(i)}.\n".encode()
            for i in range(first, last)]


def entries(path):
    """Returns the content of an index: (begin, end, earliest, latest, records) of each piece."""
    data, at, found = pathlib.Path(f"{path}.index").read_bytes(), 0, []
    assert data[:4] == b"NLI1" and (len(data) - 16) % 40 == 0, path
    for i in range(16, len(data), 40):
        end, least, most, count, _, _ = struct.unpack_from("<QqqQII", data, i)
        found.append((at, end, least, most, count))
        at = end
    return found


def block_sizes(data):
    at = 0
    while at < len(data):
        header, stored = struct.unpack_from("<H", data, at + 4)[0], struct.unpack_from("<I", data, at + 12)[0]
        yield header + stored
        at += header + stored


class TimeIndex(collector.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()

    def give(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            for i in range(0, len(data), 40000):  # netlogd writes pieces of this size
                s.sendall(data[i:i + 40000])
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass

    def blocks_of(self, text, size=2000):
        """Returns the lines as blocks of that many records."""
        out = b""
        for i in range(0, len(text), size):
            result = subprocess.run([support.program("nltools/nlconv"), "--from-format", "ulm", "--format", "nlb"], input=b"".join(text[i:i + size]),
                                    stdout=subprocess.PIPE, check=True)
            out += result.stdout
        return out

    def make(self, output, data=None):
        process = self.serve(output=f"file:{self.folder}/{output}")
        self.give(data if data is not None else b"".join(lines(0, COUNT)))
        self.stop(process)
        return sorted(p for p in self.folder.iterdir() if p.suffix not in (".streams", ".index", ".values", ".damaged"))

    def every(self):
        """Makes a file of each kind for which an index is useful, with its index."""
        self.make("a.log")
        self.make("z.log.zst?zstd=1", b"".join(lines(0, COUNT)))
        return self.make("b.nlb?zstd=0", self.blocks_of(lines(0, COUNT)))

    def text_of(self, path, data=None):
        """Returns the content of a file, or of a part of it, as text."""
        part = self.scratch / ("part" + path.suffix)
        part.write_bytes(path.read_bytes() if data is None else data)
        result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", part)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def verify(self, *paths, option="--verify"):
        return self.run_program(self.netlogd, option, *paths)

    def nlstat(self, source, begin, end):
        times = [*(["--since", when(begin)] if begin else []), *(["--until", when(end)] if end else [])]
        return self.run_program(support.program("nltools/nlstat"), "--json", "--id", "B", *times, source)

    def ask(self, source, begin, end):
        """Returns nlstat's report for a time range, which must not depend on the method of the search."""
        result = self.nlstat(source, begin, end)
        self.assertNotRegex(result.stderr, r"missing|malformed|:\d+:", source)
        return result.returncode, result.stdout.replace(str(source), "SOURCE")

    RANGES = [(None, START + 1), (START - 100, START - 50), (START + 100, START + 101), (START + 600, None), (START + 1170, None),
              (START + 1e6, None), (START + 300, START + 900), (None, START + 40)]

    def answers(self, source, every=1):
        return [self.ask(source, *r) for r in self.RANGES[::every]]

    def test_it_says_what_is_so(self):
        for path in self.every() + self.make("n-{N}.log?rotate_size=600k"):
            data = path.read_bytes()
            found = entries(path)
            self.assertEqual(found[-1][1], len(data), path)
            if path.suffix != ".zst":
                self.assertGreaterEqual(len(found), len(data) // (2 * PIECE), path)
                # A piece ends with the batch in which it reaches its size. A batch is as long, and ends with a whole record
                # or block.
                longest = max(block_sizes(data) if path.suffix == ".nlb" else map(len, data.splitlines(True)))
                self.assertLess(max(e[1] - e[0] for e in found), 2 * PIECE + longest, path)
            for begin, end, least, most, count in found:
                times = re.findall(r"^DATE=(\d+)\.", self.text_of(path, data[begin:end]), re.M)
                self.assertEqual(len(times), count, path)
                ns = lambda t: int(datetime.datetime.strptime(t + "+0000", "%Y%m%d%H%M%S%z").timestamp()) * 10**9
                self.assertEqual((ns(min(times)), ns(max(times))), (least, most), path)
        self.assertEqual(self.verify(self.folder).returncode, 0)

    def test_what_is_found_does_not_depend_on_it(self):
        paths = self.every()
        by_index = [self.answers(p) for p in paths]
        numbered = self.scratch / "numbered"
        numbered.mkdir()
        self.folder = numbered
        self.make("n-{N}.log?rotate_size=600k")
        by_index.append(self.answers(numbered))
        for index in [*numbered.glob("*.index"), *(self.scratch / "out").glob("*.index")]:
            index.unlink()
        self.assertEqual([self.answers(p) for p in [*paths, numbered]], by_index)
        self.assertNotEqual(by_index[0][2], by_index[0][3])

    def test_what_is_passed_over_is_not_read(self):
        """With the index, a search does not read garbage in pieces of other times; without the index, it does."""
        path = self.make("a.log")[0]
        data = bytearray(path.read_bytes())
        for begin, end, *_ in entries(path)[1:3]:
            data[begin:begin + 1000] = b"#" * 1000
        support.damage(path, data)
        for begin, end in ((START + 1000, None), (None, START + 40)):
            self.ask(path, begin, end)
        pathlib.Path(f"{path}.index").unlink()
        result = self.nlstat(path, START + 1000, None)
        self.assertEqual(result.returncode, 1)
        self.assertIn("a.log:", result.stderr)

    def test_a_line_has_its_number_behind_what_is_passed_over(self):
        path = self.make("a.log")[0]
        text = path.read_bytes().splitlines(True)
        text[-5] = b"#" * (len(text[-5]) - 1) + b"\n"
        support.damage(path, b"".join(text))
        result = self.nlstat(path, START + 1180, None)
        self.assertIn(f"{path}:{len(text) - 4}: ", result.stderr)

    def test_numbers_of_records_are_not_missed_where_some_are_passed_over(self):
        program = support.program("nltools/nlwrite")
        process = self.serve(output=f"file:{self.folder}/b.nlb?zstd=0")
        url = f"x-netlog://127.0.0.1:{self.port}?policy=block&block=60"
        text = lines(0, COUNT)
        text[COUNT // 2] = text[COUNT // 2].replace(b"DATE=2026", b"DATE=2036")
        result = subprocess.run([program, "--dest", url, "-"], input=b"".join(text), stderr=subprocess.PIPE, timeout=100)
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.stop(process)
        path = self.folder / "b.nlb"
        self.assertGreater(len(entries(path)), 3)
        self.ask(path, START + 1150, None)
        self.ask(self.folder, START + 1150, None)

    def bad_indexes(self, path, other):
        """Yields (the defect, the bytes of the index, whether --verify must report it)."""
        good = pathlib.Path(f"{path}.index").read_bytes()
        flip = lambda at: good[:at] + bytes([good[at] ^ 4]) + good[at + 1:]
        yield "missing", None, False
        yield "empty", b"", False  # as after a kill before the header is written
        yield "cut in the header", good[:9], True
        yield "a header", good[:16], False
        yield "cut in an entry", good[:16 + 40 + 13], True
        yield "cut behind an entry", good[:16 + 40], False
        yield "another file's", other, True
        yield "garbage", random.Random(1).randbytes(len(good)), True
        yield "zeros behind", good + bytes(400), True
        for at in (0, 5, 9, 13, 16, 25, 33, 41, 50, 16 + 40 + 36, len(good) - 1):
            yield f"bit at {at}", flip(at), True
        yield "entries swapped", good[:16] + good[56:96] + good[16:56] + good[96:], True
        yield "header of another", other[:16] + good[16:], True
        yield "entries of another", good[:16] + other[16:], True

    @support.long
    def test_bad_indexes(self):
        for path in self.every():
            answers = self.answers(path, 3)
            index = pathlib.Path(f"{path}.index")
            good = index.read_bytes()
            other = self.other_index(path)
            for what, bad, fault in self.bad_indexes(path, other):
                index.unlink(missing_ok=True)
                if bad is not None:
                    index.write_bytes(bad)
                self.assertEqual(self.answers(path, 3), answers, (path, what))
                result = self.verify(path)
                self.assertEqual((result.returncode, ".index: " in result.stdout), (int(fault), fault), (path, what, result.stdout))
                result = self.verify(path, option="--repair")
                self.assertIn(f"{index}: rebuilt\n", result.stdout, (path, what))
                self.assertEqual(entries(path)[-1][1], path.stat().st_size, (path, what))
                result = self.verify(path)
                self.assertEqual((result.returncode, ".index: " in result.stdout), (0, False), (path, what, result.stdout))
                self.assertEqual(self.answers(path, 3), answers, (path, what))
                index.write_bytes(good)

    def other_index(self, path):
        """Returns the index of a file with other records."""
        folder, self.folder = self.folder, self.scratch / f"other{path.suffix}"
        self.folder.mkdir()
        text = [line.replace(b"HOST=h", b"HOST=other") for line in lines(5, COUNT)]
        made = self.make(path.name + ("?zstd=1" if path.suffix == ".zst" else "?zstd=0"),
                         self.blocks_of(text) if path.suffix == ".nlb" else b"".join(text))
        self.folder = folder
        return pathlib.Path(f"{made[0]}.index").read_bytes()

    def test_a_file_that_is_not_as_it_was(self):
        """A file is shorter or longer than its index describes, is changed in the middle, or is replaced by a file with the same
        beginning."""
        path = self.make("a.log")[0]
        data = path.read_bytes()
        cut = data[:data.index(b"\n", len(data) * 2 // 3) + 1]
        late = [line.replace(b"DATE=2026", b"DATE=2025") for line in lines(0, 3000)]
        cases = {"shorter": cut, "longer": data + b"".join(lines(COUNT, COUNT + 5000)), "moved": data[:9000] + b"\n" + data[9000:],
                 "other behind": cut + b"".join(late), "other from the first piece on": data[:600] + b"\n" + b"".join(late) * 9}
        for what, content in cases.items():
            path.write_bytes(content)
            plain = self.scratch / "plain.log"
            plain.write_bytes(content)
            for r in self.RANGES[::support.representative(1, 3)] + [(START - 40000000, START - 10000000), (START + 1200, None)]:
                by_index, without = (self.nlstat(p, *r).stdout.replace(str(p), "X") for p in (path, plain))
                self.assertEqual(by_index, without, (what, r))

    def test_odd_things_in_its_place(self):
        path = self.make("a.log")[0]
        answers = self.answers(path, 3)
        index = pathlib.Path(f"{path}.index")
        index.unlink()
        for put, take in ((index.mkdir, index.rmdir), (lambda: os.mkfifo(index), index.unlink),
                          (lambda: index.symlink_to("/dev/zero"), index.unlink), (lambda: index.symlink_to(index), index.unlink)):
            put()
            self.assertEqual(self.answers(path, 3), answers)
            process = self.serve(output=f"file:{path}")
            self.give(b"".join(lines(COUNT, COUNT + 6000)))
            self.stop(process)
            self.assertEqual(path.read_bytes(), b"".join(lines(0, COUNT + 6000)))
            self.assertEqual(self.said().count(".index: "), 1, self.said())
            take()
            path.write_bytes(b"".join(lines(0, COUNT)))

    def test_a_file_is_gone_on_with(self):
        """netlogd continues a log with its index, with an older index, without an index, and after the log was moved."""
        path, index = self.folder / "a.log", self.folder / "a.log.index"
        parts = [b"".join(lines(i, i + 6000)) for i in range(0, COUNT, 6000)]
        for change in (lambda: None, lambda: index.write_bytes(index.read_bytes()[:16 + 40]), index.unlink, lambda: index.write_bytes(b"no"),
                       lambda: index.write_bytes(index.read_bytes() + b"half an entry")):
            for part in parts:
                self.make("a.log", part)
                if part is not parts[-1]:
                    change()
            self.assertEqual(path.read_bytes(), b"".join(parts))
            self.assertEqual(entries(path)[-1][1], len(path.read_bytes()))
            self.assertEqual(sum(e[4] for e in entries(path)), COUNT)
            self.assertEqual(self.verify(path).returncode, 0)
            for left in self.folder.iterdir():
                left.unlink()
        process = self.serve(output=f"file:{path}")
        self.give(parts[3])
        path.rename(self.folder / "old.log")
        index.exists() and index.rename(self.folder / "old.log.index")
        process.send_signal(signal.SIGHUP)
        support.wait_until(path.exists, what="the new file")
        self.give(parts[0])
        self.stop(process)
        self.assertEqual(self.verify(self.folder).returncode, 0)
        self.assertEqual(sum(e[4] for e in entries(path)), 6000)

    def test_subscribers_get_the_same(self):
        for output, data in (("a.log", b"".join(lines(0, COUNT))), ("n-{N}.log?rotate_size=300k", b"".join(lines(0, COUNT))),
                             ("b.nlb?zstd=0", self.blocks_of(lines(0, COUNT)))):
            process = self.serve(output=f"file:{self.folder}/{output}")
            self.give(data)
            for since in support.representative((START - 10, START + 500, START + 1170, START + 1199), (START + 500, START + 1199)):
                wanted = [line for i, line in enumerate(lines(0, COUNT)) if second(i) >= since]
                with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                    s.sendall(b"NETLOGGER/1 subscribe SINCE=%s\n" % when(since).encode())
                    stream = s.makefile("rb")
                    self.assertIn(b"Netlogd.Subscribed", stream.readline())
                    self.assertEqual([stream.readline() for _ in wanted], wanted, (output, since))
            self.stop(process)

    @support.long
    def test_killed_at_any_moment(self):
        """After each start, the indexes describe the lines of their files correctly."""
        rng = random.Random(os.environ.get("NL_SEED", "5"))
        for output in ("a.log", "n-{N}.log?rotate_size=700k"):
            sent = 0
            for _ in range(8):
                process = self.serve(output=f"file:{self.folder}/{output}")
                with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                    for _ in range(rng.randrange(1, 60)):
                        s.sendall(b"".join(lines(sent, sent + 400)))
                        sent += 400
                    process.kill()
                    process.wait()
            process = self.serve(output=f"file:{self.folder}/{output}")
            self.give(b"".join(lines(sent, sent + 1000)))
            self.stop(process)
            result = self.verify(self.folder)
            self.assertEqual((result.returncode, ".index" in result.stdout), (0, False), result.stdout)
            files = [p for p in self.folder.iterdir() if p.suffix == ".log"]
            for path in files:
                indexed = entries(path) if pathlib.Path(f"{path}.index").exists() else []
                if path.stat().st_size > 64 << 10:
                    self.assertEqual(indexed[-1][1], path.stat().st_size, path)
            answers = [self.answers(p) for p in files]
            for path in files:
                pathlib.Path(f"{path}.index").unlink(missing_ok=True)
            self.assertEqual([self.answers(p) for p in files], answers)
            for left in self.folder.iterdir():
                left.unlink()


if __name__ == "__main__":
    support.main()
