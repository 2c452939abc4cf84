"""nlsort from blocks to blocks, compared with Python's stable sort and with an independent decoder of the format."""
import random
import signal
import struct
import subprocess

import blocks
import nlb_decoder
import support


def zigzag(n):
    return blocks.varint((n << 1 if n >= 0 else ~n << 1 | 1) & (1 << 64) - 1)


class Shape:
    """An event with its fields: pairs of a name and a type of the format."""

    def __init__(self, rng, name):
        self.source = (rng.choice([b"h1", b"h2", b""]), rng.choice([b"p", b""]))
        self.level = rng.randrange(1, 11)
        self.event = name
        self.fields = [(b"F%d" % i, rng.randrange(1, 6)) for i in range(rng.randrange(5))]

    def values(self, rng):
        texts = [b"", b"a\nb\n", b"\x1bn\x1b", b"x" * rng.randrange(60), bytes(range(256))]
        make = [None, lambda: rng.choice(texts), lambda: rng.randrange(-2**63, 2**63) >> rng.randrange(64),
                lambda: rng.randrange(2**64) >> rng.randrange(64), lambda: rng.choice([0.0, -1.5, 1e300]), lambda: rng.random() < 0.5]
        return [make[kind]() for _, kind in self.fields]


def encode(records, stream=bytes(16), first=0, compress=False):
    """Returns a block of records (time, shape, values)."""
    shapes = list(dict.fromkeys(shape for _, shape, _ in records))
    sources = list(dict.fromkeys(shape.source for shape in shapes))
    out = blocks.varint(len(sources)) + b"".join(blocks.string(host) + blocks.string(prog) for host, prog in sources)
    out += blocks.varint(len(shapes))
    for s in shapes:
        out += blocks.varint(sources.index(s.source)) + bytes([s.level]) + blocks.string(s.event) + blocks.varint(len(s.fields))
        out += b"".join(bytes([kind]) + blocks.string(name) for name, kind in s.fields)
    before, time = {}, 0
    for when, shape, values in records:
        out += blocks.varint(shapes.index(shape)) + zigzag(when - time)
        time = when
        known = before.setdefault(shape, [b"" if kind == 1 else 0 for _, kind in shape.fields])
        for i, ((_, kind), value) in enumerate(zip(shape.fields, values)):
            if kind == 1:
                out += b"\0" if value == known[i] else blocks.varint(len(value) + 1) + value
            elif kind in (2, 3):
                rise = (value - known[i]) & (1 << 64) - 1
                out += zigzag(rise - (1 << 64) if rise >> 63 else rise)
            else:
                out += struct.pack("<d", value) if kind == 4 else bytes([value])
            known[i] = value
    return blocks.compressed(out, len(records), len(out) // 100) if compress else blocks.block(out, len(records), stream=stream, first=first)


class NlsortBlocks(support.Case):
    def setUp(self):
        super().setUp()
        self.nlsort = support.program("nlsort/nlsort")

    def sort(self, *arguments, **options):
        return self.run_program(self.nlsort, *arguments, **options)

    def write(self, name, data):
        path = self.scratch / name
        path.write_bytes(data)
        return path

    def sorted_records(self, *arguments, status=0, message=""):
        out = self.scratch / "out.nlb"
        result = self.sort("-o", out, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message, result.stderr)
        if not message:
            self.assertEqual(result.stderr, "")
        decoded = list(nlb_decoder.blocks(out.read_bytes()))
        self.assertTrue(all(block.stream == bytes(16) for block in decoded), "sorted blocks have no stream")
        return [(r.time_ns, r.host, r.prog, r.level, r.event, r.fields) for block in decoded for r in block.records]

    @staticmethod
    def expected(records, reverse=False):
        if reverse:
            records = records[::-1]
        ordered = sorted(records, key=lambda r: r[0])
        if reverse:
            ordered = ordered[::-1]
        return [(time, *s.source, nlb_decoder.LEVELS[s.level], s.event, [(name, v) for (name, _), v in zip(s.fields, values)])
                for time, s, values in ordered]

    def random_blocks(self, seed, count, size=40, times=300, kinds=12):
        """Blocks with different sets of shapes, some compressed, some of streams, with many equal times."""
        rng = random.Random(seed)
        shapes = [Shape(rng, b"E%d" % i) for i in range(kinds)]
        parts, numbers = [], [0, 0]
        for i in range(count):
            some = rng.sample(shapes, min(4, kinds))
            records = [(rng.randrange(times) * 1_000_000_007, s, s.values(rng)) for s in rng.choices(some, k=rng.randrange(1, size))]
            stream = i % 3
            if stream == 2:
                parts.append((records, encode(records, compress=True)))
                continue
            parts.append((records, encode(records, bytes([stream + 1]) * 16, numbers[stream])))
            numbers[stream] += len(records)
        return parts

    def test_same_records_in_the_order_of_a_stable_sort(self):
        parts = self.random_blocks(1, 60)
        records = [r for part, _ in parts for r in part]
        path = self.write("a.nlb", b"".join(data for _, data in parts))
        for extra in [], ["-S", "16M", "-T", self.scratch]:
            self.assertEqual(self.sorted_records(*extra, path), self.expected(records))
        self.assertEqual(self.sorted_records("-r", path), self.expected(records, reverse=True))
        halves = [self.write(f"half{i}.nlb", b"".join(data for _, data in parts[i::2])) for i in range(2)]
        several = [r for i in range(2) for part, _ in parts[i::2] for r in part]
        everything = ["--where", "has NONE || ! has NONE"]
        self.assertEqual(self.sorted_records(*halves), self.expected(several))
        self.assertEqual(self.sorted_records(*everything, *halves), self.expected(several), "as record by record")
        self.assertEqual(self.sorted_records("-u", path), self.sorted_records("-u", *everything, path))

    def test_merge(self):
        rng, shapes = random.Random(2), []
        logs = []
        for i in range(5):
            shapes.append(Shape(rng, b"E%d" % i))
            records = sorted(((rng.randrange(500), s, s.values(rng)) for s in rng.choices(shapes, k=2000)), key=lambda r: r[0])
            data = b"".join(encode(records[at:at + 70], compress=i == 3) for at in range(0, 2000, 70))
            logs.append((records, self.write(f"{i}.nlb", data)))
        records, paths = [r for part, _ in logs for r in part], [path for _, path in logs]
        self.assertEqual(self.sorted_records("-m", *paths), self.expected(records))
        self.assertEqual(self.sorted_records("-m", "-S", "16M", *paths), self.expected(records))
        turned = self.write("turned.nlb", encode([(2, shapes[0], shapes[0].values(rng)), (1, shapes[0], shapes[0].values(rng))]))
        result = self.sort("-m", "-o", self.scratch / "out.nlb", paths[0], turned)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{turned}: record 2 is out of order", result.stderr)

    def test_larger_than_memory(self):
        """A file with many copies of a block is larger than the memory, so nlsort merges runs on disk."""
        rng = random.Random(3)
        shape = Shape(rng, b"E")
        shape.fields = [(b"N", 2), (b"S", 1)]
        records = [(rng.randrange(1000), shape, [i, b"x" * rng.randrange(100)]) for i in range(3000)]
        path = self.write("a.nlb", encode(records) * 100)
        out = self.scratch / "out.nlb"
        result = self.sort("-S", "16M", "-T", self.scratch, "-o", out, path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), ["a.nlb", "out.nlb"], "no temporary file is left")
        whole = self.sort("-S", "1G", "--format", "nlb", "-o", self.scratch / "whole.nlb", path)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertTrue(out.read_bytes() == (self.scratch / "whole.nlb").read_bytes())
        text = self.sort(out).stdout.splitlines()
        order = [i for i, _ in sorted(enumerate(records), key=lambda p: p[1][0])]
        found = [int(line.split(" N=")[1].split()[0]) for line in text]
        times = [records[i][0] for i in order]
        expected = []
        for time in sorted(set(times)):
            expected += [i for i in order if records[i][0] == time] * 100
        self.assertTrue(found == expected, "records with equal times keep their order")

    def test_damaged_and_truncated_blocks(self):
        parts = self.random_blocks(4, 9)
        good = [r for i, (part, _) in enumerate(parts) if i not in (2, 8) for r in part]
        data = [bytearray(d) for _, d in parts]
        data[2][-1] ^= 0x55
        data[8] = data[8][:-1]
        path = self.write("a.nlb", b"".join(data))
        self.assertEqual(self.sorted_records(path, status=1, message="checksum does not match"), self.expected(good))
        invalid = blocks.block(blocks.SOURCE + blocks.varint(1) + b"\0\7\1E" + blocks.varint(1) + b"\5\1B" + b"\0\2\7", 1)
        path = self.write("b.nlb", parts[0][1] + invalid + parts[1][1])
        self.assertEqual(self.sorted_records(path, status=1, message="block's record is damaged"),
                         self.expected(parts[0][0] + parts[1][0]))

    def test_text_among_blocks(self):
        parts = self.random_blocks(5, 4)
        records = [r for part, _ in parts for r in part]
        text = b"DATE=19700101000000.5 HOST=h NL.EVNT=T A=1\nrubbish\n"
        path = self.write("a.nlb", parts[0][1] + text + b"".join(data for _, data in parts[1:]))
        got = self.sorted_records(path, status=1, message="rubbish")
        self.assertEqual([r for r in got if r[4] != b"T"], self.expected(records))
        self.assertEqual([r[0] for r in got], sorted([500_000_000] + [r[0] for r in records]))

    def test_more_shapes_than_the_table_holds(self):
        parts, records = [], []
        for i in range(0, 20000, 500):
            block = []
            for n in range(i, i + 500):
                shape = Shape(random.Random(7), b"E%d" % n)
                block.append((n % 7, shape, shape.values(random.Random(n))))
            records += block
            parts.append(encode(block))
        self.assertEqual(self.sorted_records(self.write("a.nlb", b"".join(parts))), self.expected(records))

    def test_a_record_of_nine_megabytes_with_newlines(self):
        shape = Shape(random.Random(8), b"E")
        shape.fields = [(b"S", 1)]
        huge = b"\n\x1bn" * (3 << 20)
        records = [(5, shape, [b"last"]), (3, shape, [huge]), (1, shape, [b"first"])]
        out = self.scratch / "out.nlb"
        path = self.write("a.nlb", b"".join(encode([r], compress=True) for r in records))
        self.assertEqual(self.sort("-o", out, path).returncode, 0)
        text = self.sort(out).stdout.splitlines()
        self.assertEqual([len(line) > 1000 for line in text], [False, True, False])
        self.assertIn('S="' + r"\n\x1bn" * 10, text[1])
        self.assertEqual(text[1].count(r"\n\x1bn"), 3 << 20)

    def test_ended_half_way_leaves_nothing(self):
        rng = random.Random(9)
        shape = Shape(rng, b"E")
        records = [(rng.randrange(1000), shape, shape.values(rng)) for _ in range(3000)]
        work = self.scratch / "work"
        work.mkdir()
        path = self.write("a.nlb", encode(records) * 200)
        for how in [signal.SIGKILL, signal.SIGTERM, signal.SIGINT] * 3:
            process = self.start(self.nlsort, "-S", "16M", "-T", work, "-o", work / "out.nlb", path)
            try:
                process.wait(rng.random() / 3)
            except subprocess.TimeoutExpired:
                process.send_signal(how)
            process.wait()
            self.assertIn([p.name for p in work.iterdir()], [[], ["out.nlb"]])
            if (work / "out.nlb").exists():
                self.assertEqual(process.returncode, 0)
                (work / "out.nlb").unlink()


if __name__ == "__main__":
    support.main()
