"""nlsort against an oracle: Python's stable sort."""
import os
import random
import resource
import subprocess
import unittest

import support


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

    def random_lines(self, count, times=500, seed=1):
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
        self.assertIn('column 8: &&, || or the end is expected, not "&"', result.stderr)

    def test_keys_by_content(self):
        values = ["10", "9", "-1.5", "1e3", "abc", "", "9007199254740993", "9007199254740992", "Abc", None]
        lines = [line(0, **({} if v is None else {"V": '""' if v == "" else v})) for v in values]
        expected = [None, "-1.5", "9", "10", "1e3", "9007199254740992", "9007199254740993", "", "Abc", "abc"]
        result = self.sort("-k", "V", self.write("a", lines))
        self.assertEqual(result.stdout.splitlines(), [lines[values.index(v)] for v in expected])

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

    def test_output_over_input(self):
        path = self.write("a", [line(2), line(1)])
        self.assertEqual(self.sort("-o", path, path).returncode, 0)
        self.assertEqual(path.read_text().splitlines(), [line(1), line(2)])

    def test_mixed_formats_and_odd_lines(self):
        path = self.scratch / "mixed"
        path.write_bytes(b"DATE=20260101000003 NL.EVNT=C\r\nts=2026-01-01T00:00:02Z event=B level=Info\n\nnonsense\n"
                         b"DATE=20260101000001 NL.EVNT=A")
        result = self.sort(path)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{path}:4: no ts= field", result.stderr)
        self.assertIn("without a newline", result.stderr)
        self.assertEqual(result.stdout.splitlines(), ["DATE=20260101000001 NL.EVNT=A",
                                                      "DATE=20260101000002.000000 LVL=Usage NL.EVNT=B",
                                                      "DATE=20260101000003 NL.EVNT=C"])

    def test_empty_and_unreadable(self):
        result = self.sort(self.write("empty", []))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        result = self.sort(self.scratch / "none", self.write("a", [line(1)]))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none: No such file or directory", result.stderr)
        self.assertEqual(result.stdout.splitlines(), [line(1)])
        self.assertIn("Is a directory", self.sort(self.scratch).stderr)
        for arguments in [["-k", ":n"], ["-k", "A:q"], ["-m", "-c"], ["-S", "x"], ["--nonsense"]]:
            self.assertEqual(self.sort(*arguments).returncode, 2, arguments)

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
        big = self.write("b", self.random_lines(400000, times=80000))
        result = self.sort("-S", "16M", "-T", small, "-o", self.scratch / "never", big)
        self.assertEqual(result.returncode, 1)
        self.assertIn("temporary file", result.stderr)
        self.assertFalse((self.scratch / "never").exists())
        self.assertEqual([p.name for p in small.iterdir()], ["out"])

    def test_killed_half_way_leaves_nothing(self):
        path = self.write("a", self.random_lines(400000, times=80000))
        work = self.scratch / "work"
        work.mkdir()
        for delay in [0.02, 0.1, 0.2]:
            process = self.start(self.nlsort, "-S", "16M", "-T", work, "-o", work / "out", path)
            try:
                process.wait(delay)
            except subprocess.TimeoutExpired:
                process.kill()
            process.wait()
            self.assertIn([p.name for p in work.iterdir()], [[], ["out"]])
            if (work / "out").exists():
                self.assertEqual((work / "out").stat().st_size, path.stat().st_size)


if __name__ == "__main__":
    support.main()
