"""Every program that reads logs reports an input that it cannot read with one message, and prints no result."""
import gzip
import itertools
import os
import random
import shutil
import subprocess

import support

SCHEMA = ("[schema]\nname=s\ndescription=d\n[Work.start]\nlevel=Usage\ndescription=d\nREQ.ID=int64; ; d\n"
          "[Work.end]\nlevel=Usage\ndescription=d\nREQ.ID=int64; ; d\n")
# program, arguments before the source; OUT is a file that must not exist after the run
PROGRAMS = [
    ("nltools/nldiag",), ("nltools/nldiag", "--json"), ("nltools/nldiag", "--html", "OUT.html"),
    ("nltools/nlstat",), ("nltools/nlstat", "--json"), ("nltools/nlstat", "--plot", "OUT.png"),
    ("nlv/nlv", "--render", "OUT.png"), ("nlv/nlv", "--render", "OUT.svg"), ("nlv/nlv", "--write-config", "OUT.nlv"),
    ("nlsort/nlsort",), ("nlsort/nlsort", "-o", "OUT.log"), ("nlsort/nlsort", "-c"), ("nlsort/nlsort", "-m", "-o", "OUT.log"),
    ("nlsort/nlsort", "-k", "REQ.ID", "-o", "OUT.log"), ("nlsort/nlsort", "--window", "1s", "-o", "OUT.log"),
    ("nlsort/nlsort", "--fix-clocks", "-o", "OUT.log"),
    ("nltools/nlconv", "--format", "json", "-o", "OUT.json"), ("nltools/nlconv", "--format", "csv", "-o", "OUT.csv"),
    ("nltools/nlconv", "--format", "chrome"), ("nltools/nlconv", "--format", "otlp", "-o", "OUT.json"),
    ("nltools/nlconv", "--format", "xml"), ("nltools/nlconv", "--format", "nlb"),
    ("nltools/nlarchive", "load", "OUT.db"), ("nltools/nlschema", "check", "SCHEMA"),
    ("nltools/nlwrite", "--dest", "OUT.log", "-"),
    ("nlkernel/nlkernel", "report", "scheduler"), ("nlkernel/nlkernel", "report", "--perl", "scheduler"),
    ("nlkernel/nlkernel", "calls"), ("nlkernel/nlkernel", "graph", "-o", "OUT.svg"),
    ("netlogd/netlogd", "--verify"),
]
TRUNCATED = "truncated: 600 bytes and "


def text(count=2000):
    return "".join(f"DATE=20260101000000.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT=Work.{('start', 'end')[i % 2]} REQ.ID={i // 2}\n"
                   for i in range(count))


class BadInput(support.Case):
    def setUp(self):
        super().setUp()
        self.out = self.scratch / "out"
        self.schema = self.scratch / "a.schema"
        self.schema.write_text(SCHEMA)

    def put(self, name, data):
        path = self.scratch / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    def packed(self, data):
        data = data if isinstance(data, bytes) else data.encode()
        return {"log": data, "gz": gzip.compress(data), "zst": subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout}

    def blocks(self):
        """Returns the bytes of a file of one block."""
        path = self.scratch / "whole.nlb"
        result = self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", path, self.put("whole.log", text()))
        self.assertEqual(result.returncode, 0, result.stderr)
        return path.read_bytes()

    def run_one(self, program, source, environment=(), **options):
        """Returns a program's result for a source, and the files that it leaves."""
        self.out.mkdir()
        names = {"SCHEMA": self.schema}
        command = [support.BUILD / program[0], *(names.get(a, self.out / a if a.startswith("OUT") else a) for a in program[1:]), source]
        try:
            result = self.run_program(*environment, *command, **options)
            return result, sorted(p.name for p in self.out.iterdir())
        finally:
            shutil.rmtree(self.out)

    def each(self, programs=PROGRAMS):
        found = [p for p in programs if (support.BUILD / p[0]).exists()]
        self.assertTrue(found)
        return found

    @staticmethod
    def chosen(program, sources):
        """Returns all sources. In ./check, returns half of the sources if PROGRAMS has the program with other options, which read the others."""
        variants = [p for p in PROGRAMS if p[0] == program[0]]
        return support.representative(sources, sources[variants.index(program) % 2::2] if len(variants) > 1 else sources)

    def assert_one_message(self, program, source, *parts, environment=(), **options):
        name = program[0].split("/")[1]
        with self.subTest(program=program, source=str(source)):
            result, files = self.run_one(program, source, environment, **options)
            self.assertEqual((result.returncode, result.stdout, files), (1, "", []), result.stderr)
            self.assertRegex(result.stderr, f"^{name}: [^\n]*\n$")
            for part in parts:
                self.assertIn(part, result.stderr)

    def test_missing(self):
        for program in self.each():
            for source in self.chosen(program, [self.scratch / "none.log", self.scratch / "none.nlb"]):
                self.assert_one_message(program, source, f"{source}: No such file or directory")

    def test_empty(self):
        sources = ["/dev/null", self.put("blank.log", "\n\n")]
        sources += [self.put(f"empty.{kind}", data) for kind, data in self.packed("").items()] + [self.put("empty.nlb", "")]
        for program in self.each():
            for source in self.chosen(program, sources):
                self.assert_one_message(program, source, str(source))
        for program in self.each([p for p in PROGRAMS if p[0] == "nltools/nldiag"]):
            self.assert_one_message(program, "/dev/null", "nldiag: cannot tell: /dev/null: no records\n")

    def test_empty_standard_input(self):
        for program in self.each([p for p in PROGRAMS if p[0] not in ("netlogd/netlogd", "nltools/nlarchive")]):
            self.assert_one_message(program, "-", "standard input: no records")

    def test_directory_without_logs(self):
        folder = self.scratch / "folder"
        folder.mkdir()
        for program in self.each():
            self.assert_one_message(program, folder, f"{folder}: no ")

    def test_permission(self):
        environment = ()
        if os.geteuid() == 0:
            support.skip_where_others_may_not_enter(self)
            environment = ("setpriv", "--reuid", "65534", "--clear-groups", "--")
            self.scratch.chmod(0o777)
            self.schema.chmod(0o644)
            os.umask(0)
            self.addCleanup(os.umask, 0o022)
        source = self.put("secret.log", text(10))
        source.chmod(0)
        for program in self.each():
            self.assert_one_message(program, source, f"{source}: Permission denied", environment=environment)

    def test_unreachable_collectors(self):
        for program in self.each([p for p in PROGRAMS if p[0] != "netlogd/netlogd"]):
            for source, reason in self.chosen(program, [("x-netlog://no-such-host.invalid", "no-such-host.invalid"),
                                                        (f"x-netlog://127.0.0.1:{support.free_port()}", "Connection refused"), ("x-nothing://host", "unknown scheme")]):
                self.assert_one_message(program, source, reason)

    def test_malformed(self):
        rng = random.Random(1)
        words = "".join(f"some words here {i}\n" for i in range(20))
        sources = [self.put(f"words.{kind}", data) for kind, data in self.packed(words).items()]
        sources += [self.put("noise.log", bytes(rng.randrange(256) for _ in range(20000))), self.put("one.log", "hello\n")]
        damaged = bytearray(self.blocks())
        for at in range(40, len(damaged)):
            damaged[at] ^= 0x55
        sources.append(self.put("damaged.nlb", bytes(damaged)))
        for program in self.each():
            for source in self.chosen(program, sources):
                self.assert_one_message(program, source, str(source))
        for program in self.each([("nltools/nlstat",), ("nlsort/nlsort",), ("nltools/nlconv", "--format", "json"), ("nltools/nlarchive", "load", "OUT.db")]):
            self.assert_one_message(program, sources[0], f": {sources[0]}:1: no DATE=, ts= or time= field; "
                                    "all 20 lines are malformed; name the format with --from-format\n")
            self.assert_one_message(program, sources[-3], f": {sources[-3]}:1: no DATE=, ts= or time= field; all ", " lines are malformed; name the format with ")
            self.assert_one_message(program, self.put("zeros.log", bytes(100)), "zeros.log:1: no DATE=, ts= or time= field: ")

    def test_truncated_before_the_first_record(self):
        data = self.blocks()
        packed = self.packed(text())["zst"]
        sources = {self.put("cut.nlb", data[:-600]): TRUNCATED, self.put("head.nlb", data[:50]): "truncated within the header",
                   self.put("cut.zst", packed[:len(packed) // 2]): "truncated"}
        for program in self.each():
            for source, reason in self.chosen(program, list(sources.items())):
                parts = (reason, "; the next load reads it if the file has grown") if program[0] == "nltools/nlarchive" and source.suffix == ".nlb" else (reason,)
                self.assert_one_message(program, source, f"{source}: ", *parts)

    def test_truncated_later(self):
        """The programs use the readable part. One message states what is missing."""
        data, count = self.blocks(), 2000
        lines = text(1501).encode()
        sources = {self.put("cut.nlb", data + data[:-600].replace(b"", b"")): (f"truncated: 600 bytes and {count} records of the last block are missing", 1),
                   self.put("cut.gz", self.packed(lines)["gz"][:-3000]): ("the gzip data is truncated", 1),
                   self.put("cut.log", lines[:-10]): ("the last line has no newline; its last value may be incomplete", 1),
                   self.put("date.log", lines + b"DATE=20260101000000.0"): ("the last line has no newline", 1)}
        results = [("nltools/nldiag",), ("nltools/nlstat",), ("nlv/nlv", "--render", "OUT.png"), ("nlsort/nlsort", "-o", "OUT.log"),
                   ("nlsort/nlsort", "-m"), ("nlsort/nlsort", "-k", "REQ.ID"), ("nltools/nlconv", "--format", "json"),
                   ("nltools/nlconv", "--format", "csv"), ("nltools/nlwrite", "--dest", "OUT.log", "-"), ("nltools/nlschema", "check", "SCHEMA")]
        for program in self.each(results):
            for source, (reason, status) in sources.items():
                with self.subTest(program=program, source=source.name):
                    result, files = self.run_one(program, source)
                    self.assertEqual(result.returncode, status, result.stderr)
                    printed = result.stderr
                    if (program[0], source.name) == ("nlv/nlv", "date.log"):  # the truncated time is earlier than the other times
                        unordered = "nlv: 1 of 1502 records was out of order; nlv shows all records in time order\n"
                        self.assertIn(unordered, printed)
                        printed = printed.replace(unordered, "")
                    self.assertRegex(printed, f"^{program[0].split('/')[1]}: {source}: [^\n]*\n$")
                    self.assertIn(reason, printed)
                    self.assertTrue(result.stdout or files)

    def test_a_cut_line_is_not_out_of_order(self):
        source = self.put("cut.log", text(100) + "DATE=20260101000000.0")
        for keys in [], ["-k", "DATE"], ["-u"]:
            for mode in "-c", "-m":
                with self.subTest(keys=keys, mode=mode):
                    result = self.run_program(support.program("nlsort/nlsort"), *keys, mode, source)
                    self.assertEqual((result.returncode, result.stderr),
                                     (1, f"nlsort: {source}: the last line has no newline; its last value may be incomplete\n"))

    def test_a_file_that_was_there_stays(self):
        for program in self.each([p for p in PROGRAMS if any(a.startswith("OUT") and a != "OUT.db" for a in p) and "nlwrite" not in p[0]]):
            with self.subTest(program=program):
                self.out.mkdir()
                target = next(self.out / a for a in program if a.startswith("OUT"))
                target.write_text("before")
                result = self.run_program(support.BUILD / program[0], *(target if a.startswith("OUT") else a for a in program[1:]), "/dev/null")
                self.assertEqual((result.returncode, target.read_text()), (1, "before"), result.stderr)
                shutil.rmtree(self.out)

    def test_one_bad_input_of_several(self):
        """The programs use the other inputs. An empty input is no problem, because archives contain empty files."""
        good, empty = self.put("good.log", text(10)), self.put("empty.log", "")
        nlsort = support.program("nlsort/nlsort")
        result = self.run_program(nlsort, good, empty)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, text(10), ""))
        result = self.run_program(nlsort, self.scratch / "none.log", good)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (1, text(10), f"nlsort: {self.scratch}/none.log: No such file or directory\n"))

    def test_each_bad_input_has_one_message(self):
        """If none of several inputs can be read, the program prints one message for each."""
        missing, bad = self.scratch / "none.log", self.put("bad.log", "hello\nworld\n")
        result = self.run_program(support.program("nlsort/nlsort"), "-o", self.scratch / "out.log", missing, bad)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, rf"\Anlsort: {missing}: No such file or directory\nnlsort: {bad}:1: [^\n]*all 2 lines are malformed[^\n]*\n\Z")
        self.assertFalse((self.scratch / "out.log").exists())

    def test_compared_inputs(self):
        """Each input that cannot be compared has one message, and no message follows from another one."""
        good, empty = self.put("good.log", text(10)), self.put("empty.log", "")
        words = [self.put(f"words{n}.log", "hello\nworld\n" * n) for n in (1, 9)]
        cut = self.put("cut.nlb", self.blocks()[:-600])
        reasons = {good: None, self.scratch / "none.log": "No such file or directory", empty: "no records", cut: TRUNCATED,
                   words[0]: "all 2 lines are malformed", words[1]: "all 18 lines are malformed"}
        for program in self.each([("nltools/nldiag", "--compare"), ("nltools/nlstat", "--compare")]):
            for before, after in itertools.permutations(reasons, 2):
                with self.subTest(program=program, before=before.name, after=after.name):
                    result = self.run_program(support.BUILD / program[0], *program[1:], before, after)
                    self.assertEqual((result.returncode, result.stdout), (1, ""), result.stderr)
                    lines = result.stderr.splitlines()
                    expected = [(source, reasons[source]) for source in (before, after) if reasons[source]]
                    self.assertEqual(len(lines), len(expected), result.stderr)
                    for line, (source, reason) in zip(lines, expected):
                        self.assertIn(f": {source}:", line)
                        self.assertIn(reason, line)

    def test_unwritable_output(self):
        """The program prints one message with the name of the file that the user gave."""
        environment = ()
        if os.geteuid() == 0:
            support.skip_where_others_may_not_enter(self)
            environment = ("setpriv", "--reuid", "65534", "--clear-groups", "--")
            self.scratch.chmod(0o777)
        folder, source = self.scratch / "locked", self.put("good.log", text())
        folder.mkdir(mode=0o555)
        source.chmod(0o644)
        commands = [(program, [support.BUILD / program[0], *(folder / a if a.startswith("OUT") else a for a in program[1:]), source])
                    for program in self.each([p for p in PROGRAMS if any(a.startswith("OUT") for a in p) and "graph" not in p and "--fix-clocks" not in p])]
        if (support.BUILD / "netlogd/netlogd").exists():
            listen = ["--foreground", "--recover", "0", "--listen", "x-netlog://127.0.0.1:0", "--output"]
            commands.append((("netlogd/netlogd",), [support.BUILD / "netlogd/netlogd", *listen, folder / "OUT.log"]))
        for program, command in commands:
            with self.subTest(program=program):
                result = self.run_program(*environment, *command)
                self.assertEqual(result.returncode, 1, result.stderr)
                name = program[0].split("/")[1]
                self.assertRegex(result.stderr, rf"\A{name}: [^\n]*{folder}/OUT[^\n]*: Permission denied\n\Z")
                self.assertEqual(result.stderr.count(str(folder)), 1)

    def test_verify_reads_gzip(self):
        netlogd = support.program("netlogd/netlogd")
        data = self.packed(text(1000))["gz"]
        whole, cut = self.put("whole.gz", data), self.put("cut.gz", data[:-100])
        result = self.run_program(netlogd, "--verify", whole)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, f"{whole}: sound: 1000 records\n", ""))
        result = self.run_program(netlogd, "--verify", cut)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        self.assertRegex(result.stdout, rf"\A{cut}: the gzip data is truncated\n{cut}: damaged: \d+ records\n\Z")

    def test_strict_has_one_message(self):
        source = self.put("odd.log", text(4) + "odd\n" + text(2))
        for program in self.each([("nltools/nlstat", "--strict"), ("nlsort/nlsort", "--strict"), ("nltools/nlconv", "--format", "json", "--strict"),
                                  ("nltools/nlarchive", "load", "-q", "OUT.db", "--strict")]):
            with self.subTest(program=program):
                result, _ = self.run_one(program, source)
                self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
                self.assertIn(f"{source}:5: ", result.stderr)


if __name__ == "__main__":
    support.main()
