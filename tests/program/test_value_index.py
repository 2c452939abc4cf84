"""netlogd writes value indexes, and a search for a value reads only the necessary parts. If the index is missing, truncated,
damaged, older or newer, or belongs to another file, the same records are found."""
import functools
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess

import collector
import support

COUNT = 24000


def trace(i):
    """Returns the trace ID of record i. A trace has eight records, which are mixed with those of other traces."""
    return f"{(i // 64 * 8 + i % 8) * 0x9e3779b97f4a7c15f39cc0605cedc834 & (1 << 128) - 1:032x}"


def padding(i):
    """Returns text that hardly compresses."""
    return "".join(f"{(i + k * 77777) * 0x9e3779b97f4a7c15 & (1 << 64) - 1:016x}" for k in range(6))[:i * 31 % 90]


@functools.cache
def lines(first, last):
    return tuple(f"DATE=20260101{i // 3600000 % 24:02d}{i // 60000 % 60:02d}{i // 1000 % 60:02d}.{i % 1000:03d}000 HOST=h PROG=p LVL=Usage "
            f"NL.EVNT=E{i // 8 % 8} TRACE.ID={trace(i)} N={i} X={padding(i)}.\n".encode() for i in range(first, last))


def indexed(output):
    """Returns the output with index=auto, unless it has the option index=."""
    return output if "index=" in output else f"{output}{'&' if '?' in output else '?'}index=auto"


def segments(path):
    """Returns the content of an index: (offset, size, first piece, number of pieces) of each segment."""
    data, at, found = pathlib.Path(f"{path}.values").read_bytes(), 0, []
    while at < len(data):
        magic, size, _, _, first, count = struct.unpack_from("<4sIQQII", data, at)
        assert magic == b"NLV1", path
        found.append((at, size, first, count))
        at += size
    assert at == len(data), path
    return found


class ValueIndex(collector.Case):
    def setUp(self):
        super().setUp()
        self.folder = self.scratch / "out"
        self.folder.mkdir()

    def give(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
            for i in range(0, len(data), 40000):
                s.sendall(data[i:i + 40000])
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass

    def blocks_of(self, text, size=2000):
        out = b""
        for i in range(0, len(text), size):
            result = subprocess.run([support.program("nltools/nlconv"), "--from-format", "ulm", "--format", "nlb"], input=b"".join(text[i:i + size]),
                                    stdout=subprocess.PIPE, check=True)
            out += result.stdout
        return out

    def make(self, output, data):
        process = self.serve(output=f"file:{self.folder}/{indexed(output)}")
        self.give(data)
        self.stop(process)
        return self.logs()

    def logs(self):
        return sorted(p for p in self.folder.iterdir() if p.suffix not in (".streams", ".index", ".values", ".damaged"))

    def every(self, text=None):
        """Makes a file of each kind, with its indexes."""
        text = text or lines(0, COUNT)
        self.make("a.log?", b"".join(text))
        self.make("z.log.zst?zstd=1", b"".join(text))
        blocks = self.blocks_of(text)
        self.make("c.nlb?zstd=1", blocks)
        return self.make("b.nlb?zstd=0", blocks)

    def find(self, where, *sources, convert=True):
        """Returns the numbers N of the records that match, and the other output of nlsort. If convert is true, nlconv must find the same
        records."""
        numbers = lambda text: sorted(map(int, re.findall(r" N=(\d+) ", text)))
        result = self.run_program(support.program("nlsort/nlsort"), "--format", "ulm", "--where", where, *sources)
        if not convert:
            return numbers(result.stdout), result
        converted = [self.run_program(support.program("nltools/nlconv"), "--format", "ulm", "--where", where, source) for source in sources]
        self.assertEqual(numbers("".join(c.stdout for c in converted)), numbers(result.stdout), (where, sources))
        self.assertEqual(any("missing" in c.stderr for c in converted), "missing" in result.stderr, (where, sources))
        return numbers(result.stdout), result

    def expect(self, where, numbers, *sources, convert=True):
        found, result = self.find(where, *sources, convert=convert)
        self.assertEqual(found, sorted(numbers), (where, sources, result.stderr))

    def test_finds_every_value(self):
        """The records of each trace are found in each kind of file, even at the edges of pieces."""
        for path in self.every():
            self.assertEqual(segments(path)[-1][2] + segments(path)[-1][3], (len(pathlib.Path(f"{path}.index").read_bytes()) - 16) // 40, path)
            for i in [*range(0, COUNT, support.representative(2311, 6007)), COUNT - 1]:
                self.expect(f"TRACE.ID == {trace(i)}", [k for k in range(i // 64 * 64, i // 64 * 64 + 64) if trace(k) == trace(i)], path)
        self.assertEqual(self.run_program(self.netlogd, "--verify", self.folder).returncode, 0)

    def test_expressions(self):
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        a, b = trace(10), trace(20000)
        of = lambda t: [k for k in range(COUNT) if trace(k) == t]
        cases = {f"TRACE.ID == {a} || TRACE.ID == {b}": of(a) + of(b), f"TRACE.ID in ({a}, {b}, x)": of(a) + of(b),
                 f"TRACE.ID == {a} && NL.EVNT == E0": of(a)[:1], f"TRACE.ID == {a} || N == 12345": of(a) + [12345],
                 f"!(TRACE.ID != {a})": of(a), f"TRACE.ID == {a} && TRACE.ID == {b}": [], "TRACE.ID == nothing": [],
                 f"N < 20 && !(TRACE.ID == {a})": [k for k in range(20) if trace(k) != a], f"TRACE.ID == \"{b}\"": of(b),
                 f"(TRACE.ID == {a} || PROG == p) && N in (3, 4)": [3, 4], f"TRACE.ID =~ {a[:9]} && N < 64": [k for k in of(a)]}
        for where, numbers in cases.items():
            self.expect(where, numbers, path)

    def test_numbers_and_text(self):
        """A value is found by every operand that equals it. In ./check, one file is searched for all operands, and each other file for a
        part."""
        values = ["7", "7.0", "07", "7e0", '"7 "', "+7", "-0", "0", "1e400", "18446744073709551616", "18446744073709551615", "0.1", "nan", "true",
                  "a=b", '"a b"', "a b", '"x\\"y"', '""', "x\\y", "\u00e9", "-", ".", "12345678901234567890123456789012", "inf", "Infinity"]
        text = [f"DATE=20260101000000.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={i} TRACE.ID={values[i % 1000]} X={padding(i)}\n".encode()
                if i % 1000 < len(values) else lines(i, i + 1)[0] for i in range(20000)]
        operands = ["7", '"7"', '"7.0"', "7.0", "0", "1e400", "18446744073709551616", "18446744073709551615", "0.1", '"0.1"', "nan", "true", '"a=b"',
                    '"a b"', '"x\\"y"', '""', '"x\\\\y"', "\u00e9", "-", ".", "12345678901234567890123456789012", "inf", '"Infinity"', '"7 "']
        for number, path in enumerate(self.every(text)):
            chosen = support.representative(operands, operands if number == 0 else operands[number::4])
            indexed = [self.find(f"TRACE.ID == {o}", path)[0] for o in chosen]
            os.unlink(f"{path}.values")
            self.assertEqual([self.find(f"TRACE.ID == {o}", path, convert=False)[0] for o in chosen], indexed, path)
            self.assertGreater(min(len(found) for operand, found in zip(chosen, indexed) if operand in operands[:5]), 19)

    def test_other_parts_are_not_read(self):
        """With the index, a search does not read garbage in pieces without the value. Without the index, it reads the garbage."""
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        data, index = bytearray(path.read_bytes()), pathlib.Path(f"{path}.index").read_bytes()
        ends = [struct.unpack_from("<Q", index, i)[0] for i in range(16, len(index), 40)]
        self.assertGreater(len(ends), 8)
        for end in ends[2:8]:
            data[end + 1000:end + 2000] = b"#" * 1000
        support.damage(path, data)
        last = COUNT - 1
        numbers = [k for k in range(COUNT - 100, COUNT) if trace(k) == trace(last)]
        for program in (("nltools/nlstat", "--id", "TRACE.ID"), ("nltools/nldiag", "--id", "TRACE.ID"), ("nltools/nlconv", "--format", "ulm")):
            result = self.run_program(support.program(program[0]), *program[1:], "--where", f"TRACE.ID == {trace(last)}", path)
            self.assertNotIn("a.log:", result.stderr, program)
        found, result = self.find(f"TRACE.ID == {trace(last)}", path)
        self.assertEqual((found, result.stderr), (numbers, ""))
        os.unlink(f"{path}.values")
        found, result = self.find(f"TRACE.ID == {trace(last)}", path)
        self.assertEqual(found, numbers)
        self.assertIn("a.log:", result.stderr)

    def test_positions_after_skipped_parts(self):
        """nlconv and nlsort report the positions of malformed lines correctly after they have skipped parts of the file."""
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        data, last = path.read_bytes(), COUNT - 1
        at = data.rindex(b"DATE=", 0, data.rindex(f"TRACE.ID={trace(last)}".encode()) - 20000)
        support.damage(path, data[:at] + b"#" + data[at + 1:])
        number = data[:at].count(b"\n") + 1
        for options in (("nlsort/nlsort",), ("nltools/nlconv", "--format", "ulm"), ("nltools/nlconv", "--format", "ulm", "--threads", "1")):
            result = self.run_program(support.program(options[0]), *options[1:], "--where", f"TRACE.ID == {trace(last)}", path)
            self.assertIn(f"a.log:{number}:", result.stderr, options)
            self.assertEqual(result.stdout.count(trace(last)), 8)

    def test_subscription_reads_few_parts(self):
        """A subscription to stored records reads only the parts of finished files in which a record can match."""
        text = [line.replace(b"X=", b"Y=" + b"y" * 300 + b" X=") for line in lines(0, COUNT)]
        process = self.serve(output=f"file:{self.folder}/n-{{N}}.log?rotate_size=2m&index=TRACE.ID")
        self.give(b"".join(text))
        logs = self.logs()
        self.assertGreater(len(logs), 4)
        policies = [os.sched_getscheduler(int(task)) for task in os.listdir(f"/proc/{process.pid}/task")]
        self.assertIn(os.SCHED_IDLE, policies)
        self.assertEqual(os.sched_getscheduler(process.pid), os.SCHED_OTHER)
        support.wait_until(lambda: all(pathlib.Path(f"{p}.values").exists() for p in logs[:-1]), what="the finished files have indexes")
        read = lambda: int(re.search(r"rchar: (\d+)", pathlib.Path(f"/proc/{process.pid}/io").read_text())[1])
        before, i = read(), 9000
        url = f"x-netlog://127.0.0.1:{self.port}?since=2020-01-01T00:00:00Z&where=TRACE.ID%20%3D%3D%20{trace(i)}"
        client = self.start(support.program("nlsort/nlsort"), "--follow", "--window", "100ms", "--format", "ulm", url, stdout=subprocess.PIPE)
        found = [int(re.search(rb" N=(\d+) ", client.stdout.readline())[1]) for _ in range(8)]
        self.assertEqual(found, [k for k in range(i // 64 * 64, i // 64 * 64 + 64) if trace(k) == trace(i)])
        self.assertLess(read() - before, sum(p.stat().st_size for p in logs) / 2)
        client.kill()
        client.wait()
        self.stop(process)

    def test_many_different_values(self):
        """
        If each record has another value, the index also has at most 2 % of the file's size. It excludes most parts of a file that
        is not compressed.
        In a compressed file, 2 % are less than 2 bits for each value, which exclude some parts.
        """
        text = [b"DATE=20260101000000.%06d HOST=h PROG=p LVL=Usage NL.EVNT=E N=%d TRACE.ID=%016x\n"
                % (i, i, i * 0x9e3779b97f4a7c15 & (1 << 64) - 1) for i in range(300000)]
        for name, data, most in (("b.nlb?zstd=0", self.blocks_of(text, 60000), True), ("c.nlb?zstd=1", self.blocks_of(text, 60000), False),
                                 ("z.log.zst?zstd=1", b"".join(text), False)):
            self.make(f"{name}&index=TRACE.ID", data)
            path = self.folder / name.partition("?")[0]
            values = pathlib.Path(f"{path}.values")
            self.assertLessEqual(values.stat().st_size, path.stat().st_size / 50)
            self.assertEqual(sum(count for *_, count in segments(path)), (pathlib.Path(f"{path}.index").stat().st_size - 16) // 40)
            i = 123456
            self.assertEqual(self.find(f"TRACE.ID == {i * 0x9e3779b97f4a7c15 & (1 << 64) - 1:016x}", path)[0], [i])
            data = bytearray(path.read_bytes())
            ends = [struct.unpack_from("<Q", pathlib.Path(f"{path}.index").read_bytes(), at)[0] for at in range(16, path.with_name(path.name + ".index").stat().st_size, 40)]
            for end in ends[:-1]: # damages all pieces; most pieces are not read
                data[end + 5000:end + 6000] = bytes(1000)
            support.damage(path, data)
            result = self.run_program(support.program("nlsort/nlsort"), "--where", "TRACE.ID == absent", path)
            self.assertLess(result.stderr.count(path.name), len(ends) / 2 if most else len(ends) - 1, result.stderr)

    def test_inferred_and_chosen_fields(self):
        """ID fields are inferred; index= chooses other fields, or none."""
        text = [line.replace(b"TRACE.ID=", b"JOB.ID=") for line in lines(0, COUNT)]
        for output, fields in (("a.log", {b"TRACE.ID", b"JOB.ID"}), ("b.log?index=N", {b"N"}), ("c.log?index=N,JOB.ID", {b"N", b"JOB.ID"})):
            self.make(output, b"".join(text))
            self.assertEqual(self.fields(self.folder / output.partition("?")[0]), fields)
            self.expect(f"JOB.ID == {trace(9000)} && N < 9000", [k for k in range(9000) if trace(k) == trace(9000)], self.folder / output.partition("?")[0])
        self.make("d.log?index=none", b"".join(text))
        self.assertFalse((self.folder / "d.log.values").exists())
        for output, fields in (("e-{N}.log", {b"TRACE.ID", b"JOB.ID"}), ("f.log", None)):  # only archives have an index by default
            process = self.serve(output=f"file:{self.folder}/{output}")
            self.give(b"".join(text))
            self.stop(process)
            path = self.folder / output.replace("{N}", "000001")
            self.assertEqual(self.fields(path) if pathlib.Path(f"{path}.values").exists() else None, fields)
        for bad in ("HOST", "a,b,c,d,e", ",", ""):
            said = self.fails("--listen", "x-netlog://127.0.0.1:0", "--output", f"file:{self.folder}/e.log?index={bad}", status=2)
            self.assertIn("index", said)

    def test_share(self):
        """An index that would exceed its share of the file is not written; other parts of the file keep their index."""
        text = [b"DATE=20260101000000 NL.EVNT=E TRACE.ID=%d\n" % (i * 7919) for i in range(60000)]
        path = self.make("a.log", b"".join(text))[0]
        values = pathlib.Path(f"{path}.values")
        self.assertLessEqual(values.stat().st_size if values.exists() else 0, path.stat().st_size / 50)
        self.assertEqual(self.run_program(support.program("nlsort/nlsort"), "--where", "TRACE.ID == 7919", path).stdout.encode(), text[1])
        path.unlink()
        for path in self.every():
            self.assertLessEqual(pathlib.Path(f"{path}.values").stat().st_size, path.stat().st_size / 50, path)

    def bad_indexes(self, path, other):
        good = pathlib.Path(f"{path}.values").read_bytes()
        rng = random.Random(1)
        yield "missing", None
        yield "empty", b""
        for cut in (9, 51, 60, len(good) // 2, len(good) - 1):
            yield f"cut at {cut}", good[:cut]
            yield f"zeros from {cut}", good[:cut] + bytes(len(good) - cut)
        yield "another file's", other
        yield "garbage", rng.randbytes(len(good))
        yield "half of another", good[:len(good) // 2] + other[len(good) // 2:]
        for at in [*range(0, 60, 5), *(rng.randrange(len(good)) for _ in range(support.representative(25, 5)))]:
            yield f"bit at {at}", good[:at] + bytes([good[at] ^ 4]) + good[at + 1:]

    def test_bad_indexes(self):
        """With any index, the same records are found. --verify reports damage, and --repair makes the index again."""
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        values, good = pathlib.Path(f"{path}.values"), pathlib.Path(f"{path}.values").read_bytes()
        folder, self.folder = self.folder, self.scratch / "other"
        self.folder.mkdir()
        other = self.make("a.log", b"".join(line.replace(b"HOST=h", b"HOST=other") for line in lines(0, COUNT)))[0]
        self.folder = folder
        number = 13000
        numbers = [k for k in range(number - 64, number + 64) if trace(k) == trace(number)]
        for what, bad in self.bad_indexes(path, pathlib.Path(f"{other}.values").read_bytes()):
            values.unlink(missing_ok=True)
            if bad is not None:
                values.write_bytes(bad)
            found, result = self.find(f"TRACE.ID == {trace(number)}", path)
            self.assertEqual((found, result.stderr), (numbers, ""), what)
            if bad:
                result = self.run_program(self.netlogd, "--verify", path)
                self.assertEqual((result.returncode, ".values: byte " in result.stdout), (1, True), (what, result.stdout))
        result = self.run_program(self.netlogd, "--repair", path)
        self.assertEqual(self.run_program(self.netlogd, "--verify", path).returncode, 0, result.stdout)
        self.assertEqual(sum(count for *_, count in segments(path)), (pathlib.Path(f"{path}.index").stat().st_size - 16) // 40)
        self.assertEqual(self.find(f"TRACE.ID == {trace(number)}", path)[0], numbers)

    def fields(self, path):
        """Returns the names of the fields in the first segment of an index."""
        data = pathlib.Path(f"{path}.values").read_bytes()
        names, at = set(), 52
        while at < 52 + (struct.unpack_from("<I", data, 32)[0] & 0xffffff):
            names.add(data[at + 1:at + 1 + data[at]])
            at += 1 + data[at]
        return names

    def test_repair_keeps_the_fields(self):
        """--repair indexes the fields of the old index, even if the time index or the file was damaged."""
        text = b"".join(lines(0, COUNT))
        for damage in ("values", "time", "file"):
            self.make(f"{damage}.log?index=N", text)
            path = self.folder / f"{damage}.log"
            bad = {"values": pathlib.Path(f"{path}.values"), "time": pathlib.Path(f"{path}.index"), "file": path}[damage]
            data = bytearray(bad.read_bytes())
            data[len(data) // 2:len(data) // 2 + 20] = bytes(20)
            bad.write_bytes(data)
            self.run_program(self.netlogd, "--repair", path)
            self.assertEqual(self.run_program(self.netlogd, "--verify", path).returncode, 0, damage)
            self.assertEqual(self.fields(path), {b"N"}, damage)
            self.assertEqual(self.find("N == 5", path)[0], [5])
        values = pathlib.Path(f"{path}.values")
        values.write_bytes(bytes(100))  # the fields are unknown
        self.run_program(self.netlogd, "--repair", path)
        self.assertIn(b"TRACE.ID", self.fields(path))

    def test_changed_files(self):
        """A file that is shorter than its indexes, longer, changed, or replaced, is read as it is."""
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        data = path.read_bytes()
        cut = data[:data.index(b"\n", len(data) * 2 // 3) + 1]
        new = b"".join(line.replace(trace(5).encode(), trace(900).encode()) for line in lines(0, 3000))
        cases = {"shorter": cut, "longer": data + new, "moved": data[:9000] + b"\n" + data[9000:], "other behind": cut + new * 3,
                 "replaced": new * 9, "empty": b""}
        for what, content in cases.items():
            path.write_bytes(content)
            plain = self.scratch / "plain.log"
            plain.write_bytes(content)
            for i in support.representative((5, 900, 2999, COUNT - 1), (900, COUNT - 1)):
                self.assertEqual(*(self.find(f"TRACE.ID == {trace(i)}", p)[0] for p in (path, plain)), (what, i))

    def test_edited_files(self):
        """The indexes do not hide a value or a time that an editor has put into a finished file, although all sizes are unchanged."""
        for path in self.every():
            if path.suffix != ".log":
                continue
            data = path.read_bytes()
            self.assertGreater(data.count(trace(9000).encode()), 0)
            path.write_bytes(data.replace(trace(9000).encode(), b"7" * 32))
            self.expect(f"TRACE.ID == {'7' * 32}", [k for k in range(COUNT) if trace(k) == trace(9000)], path)
            path.write_bytes(data.replace(b"DATE=20260101000010.5", b"DATE=20270101000010.5"))
            result = self.run_program(support.program("nlsort/nlsort"), "--since", "2026-06-01T00:00:00Z", path)
            self.assertEqual(result.stdout.count("DATE=2027"), 100)
            self.run_program(self.netlogd, "--repair", path)
            self.assertEqual(self.find(f"TRACE.ID == {trace(20000)}", path)[0], [k for k in range(COUNT) if trace(k) == trace(20000)])

    def write_random_log(self, rng):
        """Writes a log of random format. Its fields have values that expressions may take for text or for numbers."""
        pools = {"TRACE.ID": [f"{rng.getrandbits(128):032x}" for _ in range(300)] + ["7", "7.0", "a b", "x=y", "-0", "1e3", "1000", "inf", "nan", "q\"q", "b\\s"],
                 "JOB.ID": [str(rng.randrange(1 << rng.choice((4, 20, 63, 65)))) for _ in range(200)] + ["0.1", "1e-1", "true", "+5", "05", "5"]}
        text, turns = [], {name: rng.random() for name in pools}
        for i in range(rng.randrange(3000, 14000)):
            fields = []
            for name, pool in pools.items():
                for _ in range(rng.choice((0, 1, 1, 1, 1, 2)) if turns[name] < 0.7 else rng.random() < 0.01):
                    value = pool[(i // 50 + rng.randrange(3)) % len(pool)]
                    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                    fields.append(f'{name}="{quoted}"' if rng.random() < 0.3 or set(value) & set(' ="\\') else f"{name}={value}")
            rng.shuffle(fields)
            text.append(f"DATE=20260101{i // 3600 % 24:02d}{i // 60 % 60:02d}{i % 60:02d}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E{i % 3} N={i} "
                        f"{' '.join(fields)} X={padding(rng.randrange(1 << 40)) * rng.choice((1, 1, 30))}.\n".encode())
        output = rng.choice(("a.log", "n-{N}.log?rotate_size=1m", "a.log.zst?zstd=1", "b.nlb?zstd=1", "n-{N}.nlb?rotate_size=1m&zstd=0", "n-{N}.log.zst?rotate_size=600k&zstd=1"))
        output += rng.choice(("", ("&" if "?" in output else "?") + "index=TRACE.ID,JOB.ID,N"))
        process = self.serve(output=f"file:{self.folder}/{indexed(output)}")
        for part in range(0, len(text), 4000):
            given = text[part:part + 4000]
            self.give(self.blocks_of(given) if rng.random() < 0.3 else b"".join(given))
        self.stop(process)
        return pools | {"N": [str(rng.randrange(len(text))) for _ in range(50)], "NL.EVNT": ["E0", "E1", "none"]}

    def expression(self, rng, pools, depth=0):
        if depth < 3 and rng.random() < 0.55:
            parts = [self.expression(rng, pools, depth + 1) for _ in range(rng.choice((1, 2, 2, 3)))]
            return rng.choice(("", "", "!")) + "(" + rng.choice((" && ", " || ")).join(parts) + ")"
        name = rng.choice(list(pools))
        quote = lambda v: '"' + v.replace("\\", "\\\\").replace('"', '\\"') + '"'
        value = lambda: (lambda v: quote(v) if rng.random() < 0.4 or set(v) & set(' ="\\') else v)(rng.choice(pools[name]))
        kind = rng.choice(("==",) * 6 + ("in", "in", "!=", "not in", "has", ">"))
        if kind in ("in", "not in"):
            return f"{name} in ({', '.join(value() for _ in range(rng.choice((1, 2, 40))))})" if kind == "in" else f"!({name} in ({value()}))"
        return f"has {name}" if kind == "has" else f"{name} {kind} {value()}"

    def test_random_comparison(self):
        """With the index, random expressions find the same records as a scan of copies that have no index. In ./check, one log with an
        index is enough."""
        rng, skipped, compared = random.Random(os.environ.get("NL_SEED", "11")), 0, 0
        expressions = support.representative(20, 10)
        for logs in range(1, 7):
            pools = self.write_random_log(rng)
            plain = self.scratch / "plain"
            plain.mkdir()
            for path in self.logs():
                shutil.copy(path, plain)
            skipped += len(list(self.folder.glob("*.values")))
            for _ in range(expressions):
                where = self.expression(rng, pools)
                (indexed, result), (scanned, scan) = self.find(where, self.folder), self.find(where, plain, convert=False)
                self.assertEqual((indexed, result.stderr), (scanned, scan.stderr), (where, self.logs()))
                compared += len(indexed) > 0
            shutil.rmtree(plain)
            for left in self.folder.iterdir():
                left.unlink()
            if skipped > support.representative(1000, 0):
                break
        self.assertGreater(skipped, support.representative(3, 0))
        self.assertGreater(compared, expressions * logs // 3)

    def test_border_of_segments(self):
        """A value in the first piece of the second segment is found, even if the first piece of the first segment also has it."""
        line = lambda i, value, size: f"DATE=20260101{i // 3600:02d}{i // 60 % 60:02d}{i % 60:02d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={i} TRACE.ID={value} X={'x' * size}\n".encode()
        text = [line(i, f"v{i}", 60) for i in range(90)]
        text += [line(i, "other", 60000) for i in range(90, 1050)]
        text += [line(i, f"v{i - 1050}", 120000) for i in range(1050, 1140)]
        path = self.make("a.log", b"".join(text))[0]
        self.assertGreater(len(segments(path)), 1)
        for i in range(0, 90, support.representative(1, 5)):
            self.expect(f"TRACE.ID == v{i}", [i, 1050 + i], path, convert=i % 10 == 0)

    def test_small_files_have_no_index(self):
        path = self.make("a.log", b"".join(lines(0, 1800)))[0]
        self.assertGreater(path.stat().st_size, 256 << 10)
        self.assertEqual({p.name for p in self.folder.iterdir()} - {"a.log.index", "a.log.streams"}, {"a.log"})

    def test_no_permission(self):
        """A search by a user who may not read the index reads the whole file."""
        path = self.make("a.log", b"".join(lines(0, COUNT)))[0]
        os.chmod(f"{path}.values", 0)
        command = [support.program("nlsort/nlsort"), "--format", "ulm", "--where", f"TRACE.ID == {trace(9000)}", path]
        if os.geteuid() == 0:
            command = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-dac_override,-dac_read_search", "--"] + command
        result = self.run_program(*command)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(map(int, re.findall(r" N=(\d+) ", result.stdout))), [k for k in range(COUNT) if trace(k) == trace(9000)])

    def test_nothing_to_search(self):
        """Searches work in an empty log, in a log without an index, and beside an index without a log."""
        (self.folder / "a.log").touch()
        (self.folder / "a.log.values").write_bytes(b"NLV1")
        self.assertEqual(self.find("TRACE.ID == 1", self.folder / "a.log")[0], [])
        self.make("a.log", b"".join(lines(0, 100)))
        self.expect(f"TRACE.ID == {trace(9)}", [k for k in range(64) if trace(k) == trace(9)], self.folder / "a.log")
        self.assertFalse((self.folder / "a.log.values").exists())

    def test_odd_things_in_its_place(self):
        values = self.folder / "a.log.values"
        for put, take in ((values.mkdir, values.rmdir), (lambda: os.mkfifo(values), values.unlink),
                          (lambda: values.symlink_to("/dev/zero"), values.unlink), (lambda: values.symlink_to(values), values.unlink)):
            put()
            path = self.make("a.log", b"".join(lines(0, 6000)))[0]
            self.assertEqual(path.read_bytes(), b"".join(lines(0, 6000)))
            self.expect(f"TRACE.ID == {trace(9)}", [k for k in range(64) if trace(k) == trace(9)], path)
            take()
            for left in self.folder.iterdir():
                left.unlink()

    def test_continued_files(self):
        """Indexes are continued with the file, and made again if they are missing, older or torn."""
        path, values, index = self.folder / "a.log", self.folder / "a.log.values", self.folder / "a.log.index"
        parts = [b"".join(lines(i, i + 6000)) for i in range(0, COUNT, 6000)]
        for change in (lambda: None, values.unlink, lambda: values.write_bytes(b"no"), lambda: values.write_bytes(values.read_bytes()[:-100]),
                       lambda: values.write_bytes(values.read_bytes() + bytes(99)), index.unlink, lambda: index.write_bytes(index.read_bytes()[:56])):
            for part in parts:
                self.make("a.log", part)
                if part is not parts[-1]:
                    change()
            self.assertEqual(path.read_bytes(), b"".join(parts))
            result = self.run_program(self.netlogd, "--verify", path)
            self.assertEqual(result.returncode, 0, result.stdout)
            covered = [p for _, _, first, count in segments(path) for p in range(first, first + count)]
            self.assertEqual(covered, list(range((index.stat().st_size - 16) // 40)))
            for i in support.representative((1, 7000, 15000, COUNT - 1), (1, 7000)):
                self.expect(f"TRACE.ID == {trace(i)}", [k for k in range(i // 64 * 64, i // 64 * 64 + 64) if trace(k) == trace(i)], path)
            for left in self.folder.iterdir():
                left.unlink()

    def test_growing_and_numbered_files(self):
        """Values are found while netlogd writes, in all files of an archive, and the indexes go with deleted files."""
        process = self.serve(output=f"file:{self.folder}/n-{{N}}.log?rotate_size=1m&keep_size=2m&index=auto")
        for n in range(0, COUNT, 2000):
            self.give(b"".join(lines(n, n + 2000)))
            self.expect(f"TRACE.ID == {trace(n + 100)}", [k for k in range(n, n + 200) if trace(k) == trace(n + 100)], self.folder)
        support.wait_until(lambda: not (self.folder / "n-000001.log").exists(), what="the oldest file is deleted")
        self.stop(process)
        logs = {p.name for p in self.logs()}
        self.assertEqual({p.name[:-7] for p in self.folder.glob("*.values")} - logs, set())
        self.assertGreater(len(list(self.folder.glob("*.values"))), 1)

    @support.long
    def test_killed_at_any_moment(self):
        """After each kill, all values are found; after the next start, the indexes are sound."""
        rng = random.Random(os.environ.get("NL_SEED", "5"))
        for output in ("a.log", "n-{N}.log?rotate_size=2m"):
            sent = 0
            for _ in range(10):
                process = self.serve(output=f"file:{self.folder}/{indexed(output)}")
                with socket.create_connection(("127.0.0.1", self.port), timeout=60) as s:
                    for _ in range(rng.randrange(1, 90)):
                        s.sendall(b"".join(lines(sent, sent + 400)))
                        sent += 400
                    process.kill()
                    process.wait()
                text = b"".join(p.read_bytes() for p in self.logs())
                for i in rng.sample(range(sent), 8):
                    found, _ = self.find(f"TRACE.ID == {trace(i)}", *self.logs())
                    want = [int(n) for n in re.findall(rb" TRACE\.ID=" + trace(i).encode() + rb" N=(\d+) X=[0-9a-f]*\.\n", text)]
                    self.assertEqual(found, sorted(want))
            process = self.serve(output=f"file:{self.folder}/{indexed(output)}")
            self.give(b"".join(lines(sent, sent + 1000)))
            self.stop(process)
            result = self.run_program(self.netlogd, "--verify", self.folder)
            self.assertEqual((result.returncode, ".values" in result.stdout), (0, False), result.stdout)
            for left in self.folder.iterdir():
                left.unlink()


if __name__ == "__main__":
    support.main()
