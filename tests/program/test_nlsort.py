"""nlsort compared with an oracle: Python's stable sort."""
import functools
import os
import pathlib
import random
import re
import resource
import select
import signal
import subprocess
import unittest

import support
import test_netlogd_hostile


def line(time, event="E", **fields):
    extra = "".join(f" {k}={v}" for k, v in fields.items())
    return f"DATE=20260101{time // 3600:02d}{time // 60 % 60:02d}{time % 60:02d}.5 HOST=h PROG=p LVL=Usage NL.EVNT={event}{extra}"


class Nlsort(support.Case):
    def setUp(self):
        super().setUp()
        self.nlsort = support.program("nlsort/nlsort")

    def sort(self, *arguments, **options):
        return self.run_program(self.nlsort, *arguments, **options)

    def write(self, name, lines):
        path = self.scratch / name
        path.write_text("".join(l + "\n" for l in lines))
        return path

    # Several tests use the same lists, and do not change them.
    @staticmethod
    @functools.cache
    def random_lines(count, times=500, seed=1):
        rng = random.Random(seed)
        return [line(rng.randrange(times), N=i, SZ=rng.randrange(-50, 50)) for i in range(count)]

    def test_by_time_and_stable(self):
        lines = self.random_lines(20000)
        result = self.sort(self.write("a", lines))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.splitlines(), sorted(lines, key=lambda l: l[:21]))

    def test_larger_than_memory_gives_the_same(self):
        lines = self.random_lines(400000, times=80000)
        path = self.write("a", lines)
        out = self.scratch / "out"
        result = self.sort("-S", "16M", "-T", self.scratch, "-o", out, path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(out.read_text().splitlines(), sorted(lines, key=lambda l: l[:21]))
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), ["a", "out"], "no temporary file is left")

    def test_keys(self):
        lines = self.random_lines(2000)
        size = lambda l: int(l.rsplit("SZ=", 1)[1])
        self.assertEqual(self.sort("-k", "SZ", self.write("a", lines)).stdout.splitlines(), sorted(lines, key=size))
        result = self.sort("-k", "SZ:nr", "-k", "N:nr", self.write("a", lines))
        number = lambda l: int(l.split("N=")[1].split()[0])
        self.assertEqual(result.stdout.splitlines(), sorted(lines, key=lambda l: (-size(l), -number(l))))
        result = self.sort("-r", self.write("a", lines))
        self.assertEqual(result.stdout.splitlines(), sorted(lines, key=lambda l: l[:21], reverse=True))

    def test_where(self):
        lines = self.random_lines(2000)
        size = lambda l: int(l.rsplit("SZ=", 1)[1])
        path = self.write("a", lines)
        wanted = sorted((l for l in lines if size(l) > 40), key=lambda l: l[:21])
        self.assertEqual(self.sort("--where", "SZ > 40", path).stdout.splitlines(), wanted)
        ordered = self.write("ordered", sorted(lines, key=lambda l: l[:21]))
        self.assertEqual(self.sort("-m", "--where", "SZ > 40 and has N", ordered).stdout.splitlines(), wanted)
        both = self.sort("--where", "SZ > 40 || SZ < -40", "--where", "SZ < 0 || N == 1", path)
        self.assertEqual(both.stdout.splitlines(),
                         sorted((l for l in lines if size(l) < -40 or size(l) > 40 and "N=1 " in l), key=lambda l: l[:21]))
        none = self.sort("--where", "has NONE", path)
        self.assertEqual((none.returncode, none.stdout, none.stderr), (0, "", ""))

    def test_where_sees_only_what_it_matches(self):
        path = self.write("a", [line(1, N=1), line(3, N=2), line(2, N=1), line(4, N=1)])
        self.assertEqual(self.sort("-c", path).returncode, 1)
        self.assertEqual(self.sort("-c", "--where", "N == 1", path).returncode, 0)

    def test_where_that_is_wrong(self):
        result = self.sort("--where", "SZ > 5 & N == 1", os.devnull)
        self.assertEqual(result.returncode, 2)
        self.assertIn('column 8: expected &&, || or the end, not "&"', result.stderr)

    def test_keys_by_content(self):
        values = ["10", "9", "-1.5", "1e3", "abc", "", "9007199254740993", "9007199254740992", "Abc", None,
                  "18446744073709551615", "18446744073709551614", "9223372036854775808", "9223372036854775807",
                  "-9223372036854775807", "-9223372036854775808"]
        lines = [line(0, **({} if v is None else {"V": '""' if v == "" else v})) for v in values]
        expected = [None, "-9223372036854775808", "-9223372036854775807", "-1.5", "9", "10", "1e3", "9007199254740992",
                    "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551614",
                    "18446744073709551615", "", "Abc", "abc"]
        expected = [lines[values.index(v)] for v in expected]
        result = self.sort("-k", "V", self.write("a", lines))
        self.assertEqual(result.stdout.splitlines(), expected)
        result = self.sort("-k", "V:r", self.write("a", lines))
        self.assertEqual(result.stdout.splitlines(), expected[::-1])

    def test_check(self):
        self.assertEqual(self.sort("-c", self.write("a", [line(1), line(1), line(2)])).returncode, 0)
        result = self.sort("-c", self.write("b", [line(1), line(3), line(2, N=7)]))
        self.assertEqual(result.returncode, 1)
        self.assertIn("record 3 is out of order", result.stderr)
        self.assertEqual(self.sort("-c", "-u", self.write("c", [line(1), line(1)])).returncode, 1)

    def test_merge_more_inputs_than_descriptors(self):
        lines = sorted(self.random_lines(6000, times=80000), key=lambda l: l[:21])
        paths = [self.write(f"part{i:03d}", lines[i::300]) for i in range(300)]
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        result = self.sort("-m", *paths, preexec_fn=limit)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([l[:21] for l in result.stdout.splitlines()], [l[:21] for l in lines])
        self.assertEqual(sorted(result.stdout.splitlines()), sorted(lines))

    def test_merge_says_what_is_not_sorted(self):
        result = self.sort("-m", self.write("a", [line(2), line(1)]), self.write("b", [line(3)]))
        self.assertEqual(result.returncode, 1)
        self.assertIn("record 2 is out of order", result.stderr)
        self.assertEqual(len(result.stdout.splitlines()), 3)

    def test_unique(self):
        lines = [line(2, N=1), line(1, N=1), line(2, N=1), line(2, N=2), line(1, N=1)]
        self.assertEqual(self.sort("-u", self.write("a", lines)).stdout.splitlines(), [lines[1], lines[0], lines[3]])

    def test_unique_among_many(self):
        rng = random.Random(9)
        for name, times in [("few", 40), ("many", 80000)]:
            lines = [line(rng.randrange(times), N=rng.randrange(3), X="x" * rng.randrange(40)) for _ in range(60000)]
            expected = sorted(set(lines), key=lambda l: (l[:21], l + "\n"))
            path = self.write(name, lines)
            for extra in [], ["-S", "16M", "-T", self.scratch], ["-o", self.scratch / "out"]:
                result = self.sort("-u", *extra, path, path)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                text = (self.scratch / "out").read_text() if "-o" in extra else result.stdout
                self.assertTrue(text.splitlines() == expected, (name, extra))
            whole = self.write("whole", sorted(lines, key=lambda l: l[:21]))
            self.assertTrue(self.sort("-m", "-u", whole, self.scratch / "out", whole).stdout.splitlines() == expected, name)
        self.assertEqual(self.sort("-u", "-r", path).stdout.splitlines(),
                         sorted(set(lines), key=lambda l: (-int(l[13:19]), l + "\n")))

    def test_unique_among_many_merged_files(self):
        """nlsort merges more files than it can merge as text at once."""
        lines = [line(time, N=n) for time in range(3) for n in (3, 1, 2)]
        files = [self.write(f"part{i}", lines) for i in range(70)]
        result = self.sort("-m", "-u", *files)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines(), sorted(set(lines)))
        files = [self.write(f"part{i}", lines[::-1]) for i in range(70)]
        result = self.sort("-m", "-u", "-r", *files)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines(), sorted(set(lines), key=lambda l: (-int(l[13:19]), l)))

    def test_output_over_input(self):
        path = self.write("a", [line(2), line(1)])
        self.assertEqual(self.sort("-o", path, path).returncode, 0)
        self.assertEqual(path.read_text().splitlines(), [line(1), line(2)])

    def test_who_may_read_a_log_may_read_it_sorted(self):
        path = self.write("a", [line(2), line(1)])
        for mode in (0o600, 0o640, 0o664):
            path.chmod(mode)
            self.assertEqual(self.sort("-o", path, path, umask=0o022).returncode, 0)
            self.assertEqual(path.stat().st_mode & 0o7777, mode)
        new = self.scratch / "new"
        self.assertEqual(self.sort("-o", new, path, umask=0o027).returncode, 0)
        self.assertEqual(new.stat().st_mode & 0o7777, 0o640)
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            self.assertEqual(self.sort("-o", path, path).returncode, 0)
            self.assertEqual((path.stat().st_uid, path.stat().st_gid), (65534, 65534))

    def test_mixed_formats_and_odd_lines(self):
        path = self.scratch / "mixed"
        path.write_bytes(b"DATE=20260101000003 NL.EVNT=C\r\nts=2026-01-01T00:00:02Z event=B level=Info\n\nnonsense\n"
                         b"DATE=20260101000001 NL.EVNT=A")
        result = self.sort(path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{path}:4: no ts= field", result.stderr)
        self.assertIn("the last line has no newline", result.stderr)
        self.assertEqual(result.stdout.splitlines(), ["DATE=20260101000001 NL.EVNT=A",
                                                      "DATE=20260101000002.000000 LVL=Usage NL.EVNT=B",
                                                      "DATE=20260101000003 NL.EVNT=C"])

    def test_empty_and_unreadable(self):
        empty = self.write("empty", [])
        result = self.sort(empty)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlsort: {empty}: no records\n"))
        result = self.sort(self.scratch / "none", self.write("a", [line(1)]))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none: No such file or directory", result.stderr)
        self.assertEqual(result.stdout.splitlines(), [line(1)])
        hidden = self.write("unreadable", [line(2)])
        hidden.chmod(0)
        if os.geteuid() != 0:
            self.assertIn("Permission denied", self.sort(hidden).stderr)
        for arguments in [["-k", ":n"], ["-k", "A:q"], ["-m", "-c"], ["-S", "x"], ["--nonsense"],
                          ["--window", "x"], ["--window", "5s", "-m"], ["--window", "5s", "-k", "A"], ["--follow"], ["--late", "x"]]:
            self.assertEqual(self.sort(*arguments).returncode, 2, arguments)

    def test_hostile_lines_as_the_decoder_reads_them(self):
        """All implementations give the same result as reading record by record. With an expression that matches all records,
        --where uses the method that reads record by record."""
        rng = random.Random(4)
        date = lambda: f"DATE=2026010112{rng.randrange(60):02d}{rng.randrange(62):02d}"
        kinds = [
            lambda i: f"{date()}.{rng.randrange(10**6):06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={i}",
            lambda i: f"{date()} N={i}",
            lambda i: f"{date()}.5 N={i}\r",
            lambda i: f"[{i}] Thu Jul 27 12:59:42 2023 :: Transfer stats: {date()} N={i}",
            lambda i: f"{date()} HOST=h {date()}.25 HOST=i N={i}",
            lambda i: f"{date()} HOST=h SENDATE=20260101120000.25 HOST=i N={i}",
            lambda i: f"{date()} TEXT=\"a {date()} b\" N={i}",
            lambda i: f'DATE="20260101120001" N={i}',
            lambda i: f"N={i} {date()}",
            lambda i: f"{date()} DEST=1[128.135.152.241] FILE=//tmp/a b N={i}",
            lambda i: f"ts=2026-01-01T12:{rng.randrange(60):02d}:00.{i:06d}Z event=e level=Info n={i}",
            lambda i: f"ts=1767268800.{i:06d} event=e n={i} counts=5",
            lambda i: f"no time here {i}",
            lambda i: f"DATE=20261301000000 N={i}",
            lambda i: "",
            lambda i: "  ",
            lambda i: f"{date()} LONG={'x' * rng.randrange(200000)}" if i % 50 == 0 else date(),
        ]
        for seed, weights, end in [(1, None, "\n"), (2, [200] + [1] * 16, ""), (3, [1] * 10 + [200, 50] + [1] * 5, "\n")]:
            rng.seed(seed)
            lines = [kind(i) for i, kind in enumerate(rng.choices(kinds, weights, k=6000))]
            path = self.scratch / f"hostile{seed}"
            path.write_bytes(("\n".join(lines) + end).encode())
            slow = self.sort("--where", "has NONE || ! has NONE", path)
            for extra in [], ["-S", "16M"], ["-T", self.scratch]:
                fast = self.sort(*extra, path)
                self.assertEqual(fast.stdout, slow.stdout, (seed, extra))
                self.assertEqual((fast.stderr, fast.returncode), (slow.stderr, slow.returncode), (seed, extra))
            twice = self.sort("--reject", self.scratch / f"reject{seed}", path, path)
            self.assertEqual(self.sort("-r", path, path).stdout,
                             self.sort("-r", "--where", "has NONE || ! has NONE", path, path).stdout)
            self.assertEqual(len(twice.stdout.splitlines()), 2 * len(slow.stdout.splitlines()))
            self.assertEqual(self.sort("--format", "bp", path).stdout,
                             self.sort("--format", "bp", "--where", "has NONE || ! has NONE", path).stdout)
            micro = ["--fraction", "microseconds"]
            self.assertEqual(self.sort(*micro, path).stdout,
                             self.sort(*micro, "--where", "has NONE || ! has NONE", path).stdout)

    def test_lines_longer_than_all_memory(self):
        path = self.scratch / "long"
        path.write_bytes(f"{line(3)}\n{line(2)} LONG={'x' * (40 << 20)}\n{line(1)}\n".encode())
        result = self.sort("-S", "16M", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(":2: record is longer than", result.stderr)
        self.assertEqual(result.stdout.splitlines(), [line(1), line(3)])

    def test_blocks_among_text_and_nuls(self):
        text = self.write("a", [line(9), line(2)])
        blocks = self.scratch / "b.nlb"
        self.assertEqual(self.sort("-o", blocks, self.write("c", [line(5), line(1)])).returncode, 0)
        mixed = self.scratch / "mixed"
        mixed.write_bytes(text.read_bytes() + blocks.read_bytes() + b"DATE=20260101000003 A=\0\n")
        expected = [line(1), line(2), "DATE=20260101000003 A=\0", line(5), line(9)]
        self.assertEqual([l[:21] for l in self.sort(mixed).stdout.splitlines()], [l[:21] for l in expected])
        self.assertEqual(len(self.sort(blocks, text, mixed).stdout.splitlines()), 9)

    def test_nearly_in_order(self):
        rng = random.Random(5)
        order = sorted(range(100000), key=lambda i: i + rng.randrange(3000))
        lines = [line(i % 80000 // 1, N=i) for i in order]
        path = self.write("a", lines)
        for extra in [], ["-S", "16M", "-T", self.scratch]:
            self.assertEqual(self.sort(*extra, path).stdout.splitlines(), sorted(lines, key=lambda l: l[:21]))
        self.assertEqual(self.sort("-r", path).stdout.splitlines(), sorted(lines, key=lambda l: l[:21], reverse=True))

    def gnu_sorted(self, path):
        """Runs GNU sort by the first field, with a stable order. GNU sort does not parse times."""
        result = self.run_program("sort", "-s", "-k1,1", path, env={**os.environ, "LC_ALL": "C"})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    @staticmethod
    @functools.cache
    def nearly_ordered(count=150000, lateness=3000, seed=7):
        """Returns lines that are nearly in order of time. Several lines have the same second, and must keep their order."""
        rng = random.Random(seed)
        order = sorted(range(count), key=lambda i: i + rng.randrange(lateness))
        return [line(i * 80000 // count, N=n) for n, i in enumerate(order)]

    def test_as_gnu_sort_does(self):
        near, random_ones = self.nearly_ordered(), self.random_lines(150000, times=700)
        far = near[:140000] + [line(5, N="late")] + near[140000:]
        early = near[:90000] + [line(80000, N="early")] + near[90000:]
        parted = near[::2] + near[1::2]
        turned = near[:70000] + near[:69000:-1] + near[70000:]
        for number, (name, lines) in enumerate([("near", near), ("ordered", sorted(near)), ("random", random_ones), ("far", far), ("early", early),
                                                ("parted", parted), ("turned", turned), ("equal", [line(1, N=i) for i in range(150000)])]):
            path, out = self.write(name, lines), self.scratch / "out"
            expected = self.gnu_sorted(path)
            little = ["-S", "16M", "-T", self.scratch]
            for extra in support.representative(([], little), ([], little) if name == "random" else (([], little)[number % 2],)):
                result = self.sort(*extra, "-o", out, path)
                self.assertEqual((result.returncode, result.stderr), (0, ""), name)
                self.assertTrue(out.read_text() == expected, (name, extra))
                result = self.sort(*extra, path)
                self.assertTrue(result.stdout == expected, (name, extra, "to standard output"))
        self.assertEqual([p.name for p in self.scratch.glob("*out*")], ["out"])

    def test_odd_lines_in_a_log_nearly_in_order(self):
        lines = self.nearly_ordered()
        odd = {"malformed": "no time here", "empty": "", "other": "ts=2026-01-01T00:00:02Z event=B level=Info",
               "two": f"{line(3)} {line(4)}", "last": None, "long": f"{line(9)} LONG={'x' * 3_000_000}"}
        for name, extra in odd.items():
            path, out = self.scratch / name, self.scratch / "out"
            text = lines if extra is None else lines[:100000] + [extra] + lines[100000:]
            path.write_text("\n".join(text) + ("\n" if extra is not None else ""))
            result = self.sort("-S", "16M", "-o", out, path)
            slow = self.sort("--where", "has NONE || ! has NONE", path)
            self.assertEqual((result.returncode, result.stderr), (slow.returncode, slow.stderr), name)
            self.assertTrue(out.read_text() == slow.stdout, name)
        path.write_bytes("".join(l + "\r\n" for l in lines).encode())
        self.assertEqual(self.sort("-S", "16M", "-o", out, path).returncode, 0)
        self.assertEqual(out.read_bytes().decode().splitlines(), sorted(lines, key=lambda l: l[:21]))

    def test_merge_and_check_as_record_by_record(self):
        all_match = ["--where", "has NONE || ! has NONE"]
        lines = sorted(self.random_lines(60000, times=80000), key=lambda l: l[:21])
        parts = [self.write(f"part{i}", lines[i::5]) for i in range(5)]
        odd = self.scratch / "odd"
        odd.write_text("\n".join([line(1, N="x"), "nonsense", "ts=2026-01-01T00:00:02Z event=B", line(3), line(2, N="y"), line(5)]))
        blocks = self.scratch / "b.nlb"
        self.assertEqual(self.sort("-m", "-o", blocks, *parts[:2]).returncode, 0)
        for files in [parts, [*parts, odd], [odd, *parts], [blocks, *parts[2:]], [parts[0], parts[0]], [odd]]:
            for extra in [], ["-S", "16M"]:
                fast, slow = self.sort("-m", *extra, *files), self.sort("-m", *all_match, *files)
                self.assertTrue(fast.stdout == slow.stdout, files)
                self.assertEqual(fast.returncode, slow.returncode)
                self.assertEqual(sorted(fast.stderr.splitlines()), sorted(slow.stderr.splitlines()))
            fast, slow = self.sort("-c", *files), self.sort("-c", *all_match, *files)
            self.assertEqual((fast.returncode, fast.stderr), (slow.returncode, slow.stderr))
        self.write("turned", lines[::-1])
        self.assertEqual(self.sort("-c", "-r", self.scratch / "turned").returncode, 0)
        self.assertEqual(self.sort("-m", "-r", self.scratch / "turned").stdout.splitlines(), lines[::-1])

    def sort_within(self, memory_max_kb, *arguments):
        """Runs nlsort. It must succeed and use at most that much memory."""
        program = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        result = self.run_program("/usr/bin/python3", "-c", program, self.nlsort, "-T", self.scratch, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        if b"__asan_init" not in pathlib.Path(self.nlsort).read_bytes():  # a sanitizer uses additional memory
            self.assertLess(int(result.stdout), memory_max_kb)

    def test_memory_stays_within_its_bound(self):
        path = self.write("a", self.random_lines(700000, times=80000))
        self.sort_within(32 << 10, "-S", "32M", "-o", self.scratch / "out", path)
        self.assertEqual((self.scratch / "out").stat().st_size, path.stat().st_size)

    def test_unique_lines_of_one_time_stay_within_the_memory_bound(self):
        """Sorts 60 MB (30 MB in ./check) of lines with equal times, each line twice. Some lines are short, and of the others only a few fit in
        memory.

        The 8 MB in addition to -S are for the program itself and for buffers of several long lines.
        """
        rng = random.Random(11)
        short = [line(2, N=rng.randrange(10**9), X="x" * rng.randrange(20, 60)) for _ in range(support.representative(300000, 150000))]
        long = [line(5, N=rng.randrange(10**9), X="x" * rng.randrange(200_000, 300_000)) for _ in range(support.representative(120, 70))]
        for name, large in [("short", short), ("long", long)]:
            lines = (large + [l.replace("PROG=p", "PROG=q") for l in large[:len(large) // 50]] + [line(1, N=1), line(9, N=2)]) * 2
            lines += [line(7, N=n) for n in (3, 1, 3)]
            expected = sorted(set(lines), key=lambda l: (l[:21], l + "\n"))
            rng.shuffle(lines)
            path, ordered = self.write(name, lines), self.write(f"{name}.ordered", sorted(lines, key=lambda l: l[:21]))
            for arguments in [path], ["-m", ordered]:
                with self.subTest(name, merge=len(arguments) > 1):
                    out = self.scratch / "out"
                    self.sort_within((16 + 8) << 10, "-u", "-S", "16M", "-o", out, *arguments)
                    self.assertTrue(out.read_text().splitlines() == expected, "the output is that of sort -u")

    def test_memory_stays_within_its_bound_whatever_blocks_expand_to(self):
        """170 KB of blocks expand to 140 MB of text."""
        expanding, count = test_netlogd_hostile.Work.dense()
        path = self.scratch / "dense.nlb"
        path.write_bytes(expanding * 80)
        for extra in [], ["-k", "PROG"], ["-m"]:
            with self.subTest(extra):
                self.sort_within(40 << 10, "-S", "32M", "-o", self.scratch / "out.log", *extra, path)
                with open(self.scratch / "out.log", "rb") as out:
                    self.assertEqual(sum(chunk.count(b"\n") for chunk in iter(lambda: out.read(1 << 20), b"")), 80 * count)

    def long_lines(self, name, count, seed):
        rng = random.Random(seed)
        words = ["x" * rng.randrange(800, 1600) for _ in range(100)]
        return self.write(name, [line(rng.randrange(80000), FILE=name, N=i, W=rng.choice(words)) for i in range(count)])

    def test_text_that_is_left_in_its_files(self):
        """The lines fit in the memory that -S allows. nlsort writes only the result to disk, and the result is the same."""
        first, second = self.long_lines("a", 30000, 1), self.long_lines("b", 12000, 2)
        odd = self.scratch / "odd"
        far = "DATE=20260101070000 NL.EVNT=LONG W=" + "y" * (9 << 20) + "\n"
        with open(first) as lines:
            rest = "".join(f"[{i}] Thu Jul 27 12:59:42 2023 :: Transfer: {l}" if i % 3 else l.replace("\n", "\r\n") for i, l in enumerate(lines) if i < 2000)
        odd.write_text(rest + "rubbish\n" + far + line(5, N="cut"), newline="")
        for options in ([], ["-r"], ["-u"]):
            with self.subTest(options=options):
                out = {}
                for memory in ("64M", "1G"):
                    path = self.scratch / f"out{memory}"
                    result = self.sort(*options, "-S", memory, "-T", "/nowhere", "-o", path, first, odd, second)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn(f"{odd}:2001: ", result.stderr)
                    out[memory] = path.read_bytes()
                self.assertTrue(out["64M"] == out["1G"])
                self.assertGreater(len(out["64M"]), 50 << 20)

    @support.long
    def test_shorter_lines_than_guessed_go_by_way_of_the_disk(self):
        rng = random.Random(1)
        paths = [self.scratch / "a", self.scratch / "b"]
        for path in paths:
            path.write_text("".join(f"DATE=2026010100{rng.randrange(3600) // 60:02d}{i % 60:02d}.5\n" for i in range(1200000)))
        both = [self.scratch / "out", self.scratch / "all"]
        for memory, out in zip(("64M", "1G"), both):
            result = self.sort("-S", memory, "-T", self.scratch, "-o", out, *paths)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(both[0].read_bytes() == both[1].read_bytes())

    def test_strict(self):
        path = self.write("a", [line(2), "rubbish", line(1), "more rubbish"])
        for options in ([], ["-m"], ["-c"], ["-k", "NL.EVNT"], ["--window", "5s"]):
            result = self.sort("--strict", *options, path)
            self.assertEqual(result.returncode, 1, options)
            self.assertIn(f'{path}:2: no DATE= field: "rubbish"', result.stderr)
            self.assertNotIn("more rubbish", result.stderr)
            self.assertIn("stopped because of --strict", result.stderr)
        out = self.write("out", ["as it was"])
        self.assertEqual(self.sort("--strict", "-o", out, path).returncode, 1)
        self.assertEqual(out.read_text(), "as it was\n")
        self.assertEqual(sorted(p.name for p in self.scratch.iterdir()), ["a", "out"])
        good = self.write("good", [line(2), line(1)])
        self.assertEqual(self.sort("--strict", good).returncode, 0)

    def test_many_inputs(self):
        lines = self.random_lines(10000)
        paths = [self.write(f"part{i:03d}", lines[i * 100:(i + 1) * 100]) for i in range(100)]
        self.assertEqual(self.sort(*paths).stdout.splitlines(), sorted(lines, key=lambda l: l[:21]))

    def test_an_archive(self):
        archive = self.scratch / "archive"
        archive.mkdir()
        for name, times in [("netlog-000001.log", [5, 1]), ("netlog-000002.log", [4, 1]), ("netlog.streams", [0])]:
            self.write(archive / name, [line(t, N=name) for t in times])
        found = [l.split("N=")[1] for l in self.sort(archive).stdout.splitlines()]
        self.assertEqual(found, ["netlog-000001.log", "netlog-000002.log"] * 1 + ["netlog-000002.log", "netlog-000001.log"])
        empty = self.scratch / "empty"
        empty.mkdir()
        result = self.sort(empty)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlsort: {empty}: no records\n"))

    def test_a_pipe(self):
        lines = self.random_lines(20000)
        result = self.sort(input="".join(l + "\n" for l in lines))
        self.assertEqual(result.stdout.splitlines(), sorted(lines, key=lambda l: l[:21]))
        with open(self.write("a", lines)) as file:
            result = self.run_program("sh", "-c", f"read first; exec {self.nlsort}", stdin=file)
        self.assertEqual(len(result.stdout.splitlines()), 20000 - 1)

    def test_file_size_limit(self):
        path = self.write("a", self.random_lines(50000))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        for extra in [], ["-S", "16M", "-T", self.scratch]:
            result = self.sort(*extra, "-o", self.scratch / "out", path, preexec_fn=limit)
            self.assertEqual(result.returncode, 1)
            self.assertIn("File too large", result.stderr)
            self.assertEqual([p.name for p in self.scratch.iterdir()], ["a"])

    def test_window(self):
        rng = random.Random(6)
        order = sorted(range(20000), key=lambda i: i + rng.randrange(1000))
        lines = [line(i, N=i) for i in order]
        text = "".join(l + "\n" for l in lines)
        result = self.sort("--window", "1000s", input=text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout.splitlines(), sorted(lines, key=lambda l: l[:21]))
        result = self.sort("--window", "100s", "--late", self.scratch / "late", input=text)
        self.assertEqual(result.returncode, 1)
        self.assertIn("late record of", result.stderr)
        kept, late = result.stdout.splitlines(), (self.scratch / "late").read_text().splitlines()
        self.assertEqual(kept, sorted(kept, key=lambda l: l[:21]))
        self.assertEqual(sorted(kept + late), sorted(lines))
        self.assertIn(f"{len(late)} late records", result.stderr)
        result = self.sort("--window", "100s", input=text)
        self.assertEqual(sorted(result.stdout.splitlines()), sorted(lines))

    def test_window_and_times_that_are_centuries_apart(self):
        """If a record is later than 64 bits of nanoseconds can express, the message still gives the delay."""
        lines = [line(0), line(1000), line(0).replace("DATE=2026", "DATE=1680")]
        result = self.sort("--window", "1s", input="".join(l + "\n" for l in lines))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"late record of 1680\d{10}\.\d+: nlsort has already written records that are 109\d{8}\.\d{3} s later")

    def test_window_is_live(self):
        process = self.start(self.nlsort, "--window", "200ms", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for time in (3, 1, 2):
            process.stdin.write((line(time) + "\n").encode())
        process.stdin.flush()  # the connection stays open
        self.assertEqual([process.stdout.readline().decode().rstrip() for _ in range(3)], [line(1), line(2), line(3)])

    def test_window_is_live_for_a_block_without_a_newline(self):
        nlconv = [support.program("nltools/nlconv"), "--format", "nlb"]
        found = (subprocess.run(nlconv, input=(line(3, N=i) + "\n").encode(), capture_output=True).stdout for i in range(50))
        block = next(b for b in found if b and b"\n" not in b)
        process = self.start(self.nlsort, "--window", "1ms", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        process.stdin.write(block)  # the connection stays open
        self.assertTrue(select.select([process.stdout], [], [], 20)[0], "nothing came")

    def test_window_follows_files_and_ends_in_good_order(self):
        paths = [self.write(name, [line(t, F=name) for t in times]) for name, times in [("a", [1, 3, 5]), ("b", [2, 4])]]
        out = self.scratch / "out"
        process = self.start(self.nlsort, "--window", "2h", "--follow", "-o", out, *paths, stderr=subprocess.PIPE)
        with open(paths[0], "a") as more:
            more.write(line(10800, F="late in the day") + "\n")
        support.wait_until(lambda: out.exists() and out.read_text().count("\n") == 5, what="the window passes")
        process.terminate()
        self.assertEqual((process.wait(), process.stderr.read()), (0, b""))
        self.assertEqual([l[:21] for l in out.read_text().splitlines()], [line(t)[:21] for t in (1, 2, 3, 4, 5, 10800)])

    def test_compressed(self):
        path = self.write("a", self.random_lines(1000))
        if subprocess.call(["zstd", "-q", path], stderr=subprocess.DEVNULL) != 0:
            self.skipTest("no zstd here")
        self.assertEqual(self.sort(f"{path}.zst").stdout, self.sort(path).stdout)

    def test_full_disk_leaves_the_old_output(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        small = self.scratch / "small"
        small.mkdir()
        if self.run_program("mount", "-t", "tmpfs", "-o", "size=300k", "none", small).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(self.run_program, "umount", small)
        path = self.write("a", self.random_lines(20000))
        (small / "out").write_text("old\n")
        result = self.sort("-o", small / "out", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual((small / "out").read_text(), "old\n")
        self.assertEqual([p.name for p in small.iterdir()], ["out"])
        near = self.write("near", self.nearly_ordered())
        result = self.sort("-S", "16M", "-o", small / "out", near)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)
        self.assertEqual((small / "out").read_text(), "old\n")
        self.assertEqual([p.name for p in small.iterdir()], ["out"])
        big = self.write("b", self.random_lines(400000, times=80000))
        result = self.sort("-S", "16M", "-T", small, "-o", self.scratch / "never", big)
        self.assertEqual(result.returncode, 1)
        self.assertIn("temporary file", result.stderr)
        self.assertFalse((self.scratch / "never").exists())
        self.assertEqual([p.name for p in small.iterdir()], ["out"])

    def test_ended_half_way_leaves_nothing(self):
        rng = random.Random(8)
        work = self.scratch / "work"
        work.mkdir()
        for name, lines in [("random", self.random_lines(400000, times=80000)), ("near", self.nearly_ordered(400000))]:
            path = self.write(name, lines)
            for how in [signal.SIGKILL, signal.SIGTERM, signal.SIGINT] * support.representative(3, 1):
                process = self.start(self.nlsort, "-S", "16M", "-T", work, "-o", work / "out", path)
                try:
                    process.wait(rng.random() / 3)
                except subprocess.TimeoutExpired:
                    process.send_signal(how)
                process.wait()
                self.assertIn([p.name for p in work.iterdir()], [[], ["out"]])
                if (work / "out").exists():
                    self.assertEqual((work / "out").stat().st_size, path.stat().st_size)
                    (work / "out").unlink()

    def test_the_manuals_examples(self):
        page = (support.SOURCE / "doc/man/nlsort.1").read_text().replace("\\-", "-")
        examples = [part.split(".EE")[0].strip() for part in page.split(".EX")[1:]]
        self.assertGreaterEqual(len(examples), 5)
        lines = sorted(self.random_lines(20), key=lambda l: l[:21])
        self.write("host1.log", lines[::2])
        self.write("host2.log", lines[1::2])
        (self.scratch / "archive").mkdir()
        self.write("archive/netlog-000001.log", lines)
        path = f"{pathlib.Path(self.nlsort).parent}:{os.environ['PATH']}"
        for example in examples:
            result = self.run_program("sh", "-c", example, cwd=self.scratch, env={**os.environ, "PATH": path})
            self.assertEqual((result.returncode, result.stderr), (0, ""), example)
        self.assertEqual((self.scratch / "all.log").read_text().splitlines(), lines)

    def test_the_manual_names_every_option(self):
        page = (support.SOURCE / "doc/man/nlsort.1").read_text().replace("\\-", "-")
        for option in re.findall(r"--[a-z-]+", self.sort("--help").stdout):
            if option not in ("--help", "--version", "--what"):
                self.assertIn(option, page)

if __name__ == "__main__":
    support.main()
