"""Every program that reads logs reads every format: a table of formats, a table of programs, and all combinations."""
import gzip
import os
import pathlib
import re
import shutil
import socket
import subprocess

import collector
import support
import test_nlconv_import as others


def requests(count=60):
    """Returns requests of four steps between two hosts, in ULM as the library writes it; some values need quotes."""
    lines = []
    for i in range(count):
        for step, (event, host, prog) in enumerate([("Client.Send", "a.lbl.gov", "client"), ("Server.Begin", "b.lbl.gov", "server"),
                                                    ("Server.End", "b.lbl.gov", "server"), ("Client.Receive", "a.lbl.gov", "client")]):
            us = i * 20000 + step * 2500 + i * i % 97
            lines.append(f"DATE=20261123010203.{us % 1000000:06d} HOST={host} PROG={prog} LVL=Usage NL.EVNT={event} ID=r{i} "
                         f"SIZE={i * 100} MSG=\"of step {step} = \\\"x\\\"\\n\"\n" if us < 1000000 else
                         f"DATE=20261123010204.{us % 1000000:06d} HOST={host} PROG={prog} LVL=Usage NL.EVNT={event} ID=r{i} "
                         f"SIZE={i * 100} MSG=\"of step {step} = \\\"x\\\"\\n\"\n")
    return "".join(sorted(lines))


# The library's formats, and the URL options with which nlsort writes each.
OWN = {
    "ulm": "format=ulm&zstd=0", "bp": "format=bp&zstd=0", "logfmt": "format=logfmt&zstd=0", "nlb": "format=nlb&zstd=0",
    "nlb, zstd": "format=nlb&zstd=3",
}


# The foreign formats that nlconv writes and reads.
FOREIGN = ["json", "csv", "xml", "otlp", "chrome"]

# Formats that are only read, as other programs write them.
OF_OTHERS = {
    "journal": b"".join(others.entry(time=1700000000000000 + i, _HOSTNAME="h", SYSLOG_IDENTIFIER="p", N=i, MESSAGE=b"two\nlines")
                        for i in range(50)),
    "strace": b"".join(b'100 17000000%02d.000001 read(3, "x\\n", 10) = %d <0.000010>\n' % (i, i) for i in range(50)),
    "syslog": b"".join(b"<14>1 2026-01-31T12:00:00.%06dZ h p 7 E [a@1 n=\"%d\"] text\n" % (i, i) for i in range(50)),
    "perf": b"".join(b"ls %d [000] %d.000002: sched:sched_switch: prev_pid=%d\n" % (i, 100 + i, i) for i in range(50)),
    "ftrace": b"# tracer: function\n" + b"".join(b"   bash-19 [000] d..1. %d.993652: sys_close <-system_call\n" % (100 + i) for i in range(50)),
    "audit": b"".join(b'type=SYSCALL msg=audit(1364481363.%03d:%d): syscall=2 comm="cat"\n' % (i, i) for i in range(50)),
    "pairs": b"".join(b"START=20260101000000.5 END=202601010000%02d.25 HOST=h NL.EVNT=T N=%d\n" % (i + 1, i) for i in range(50)),
}


SCHEMA = """[schema]
name=requests
[Client.Send]
ID=string
SIZE=int64
MSG=string
[Server.Begin]
ID=int64
"""

RULES = """[rules]
title = Servers
[event Server.Begin]
[event Server.End]
[event sched:sched_switch]
[span Serving]
begin = Server.Begin key ID
end = Server.End key ID
field = ID
[report Servers]
title = Time in the server
of = Serving
by = PROG
value = DUR.NS
unit = ns
columns = count sum
"""


class Formats(collector.Case):
    def setUp(self):
        super().setUp()
        self.nlsort = support.program("nlsort/nlsort")
        self.ulm = requests()
        self.original = self.scratch / "original.log"
        self.original.write_text(self.ulm)

    def make(self, format):
        """The log in that format."""
        path = self.scratch / re.sub("[^a-z]", "_", format)
        result = self.run_program(self.nlsort, "-o", f"file:{path}?{OWN[format]}", self.original)
        self.assertEqual((result.returncode, result.stderr), (0, ""), format)
        return path

    def convert(self, format, source, name):
        path = self.scratch / name
        result = self.run_program(support.program("nltools/nlconv"), "-q", "--format", format, "-o", path, source)
        self.assertEqual(result.returncode, 0, result.stderr)
        return path

    def pack(self, path, how):
        """Returns a file compressed as two members or frames, divided within a record."""
        data, packed = path.read_bytes(), path.with_name(f"{path.name}.{how}")
        pieces = [data[: len(data) // 3], data[len(data) // 3:]]
        pack = gzip.compress if how == "gzip" else lambda piece: subprocess.run(["zstd", "-c"], input=piece, capture_output=True, check=True).stdout
        packed.write_bytes(b"".join(pack(piece) for piece in pieces))
        return packed

    def inputs(self):
        """Returns the log in every format, plain and compressed, by the format's name."""
        found = {format: self.make(format) for format in OWN}
        found.update({format: self.convert(format, self.original, format) for format in FOREIGN})
        found["multiline"] = self.scratch / "multiline"
        found["multiline"].write_text(self.ulm.replace('\\n"', '\n"'))
        for how in ["gzip"] + ["zstd"] * (shutil.which("zstd") is not None):
            for format, path in list(found.items()):
                if not format.endswith(("gzip", "zstd")) or format in OWN:
                    found[f"{format} in {how}"] = self.pack(path, how)
        return found

    def says(self, *command):
        """Returns a program's output without the name of its input."""
        result = self.run_program(*command)
        errors = [line for line in result.stderr.splitlines() if "numeric or boolean value" not in line]
        self.assertEqual((result.returncode, errors), (0, []), command)
        return result.stdout.replace(str(command[-1]), "INPUT")

    # ---- the programs: each returns a result that must be the same for all formats ----

    def nlsort_says(self, path):
        return self.says(self.nlsort, "--format", "ulm", path)

    def nlsort_by_key_says(self, path):
        return self.says(self.nlsort, "--format", "ulm", "-k", "ID", path)

    def nlsort_merges(self, path):
        return self.says(self.nlsort, "--format", "ulm", "-m", path)

    def nlconv_says(self, path):
        return self.says(support.program("nltools/nlconv"), "--format", "bp", "-q", path)

    def nlstat_says(self, path):
        return self.says(support.program("nltools/nlstat"), "--id", "ID", path)

    def nldiag_says(self, path):
        result = self.run_program(support.program("nltools/nldiag"), "--id", "ID", path)
        self.assertIn(result.returncode, (0, 1, 3, 4), result.stderr)
        return result.stdout.replace(str(path), "INPUT")

    def nlarchive_says(self, path):
        database = self.scratch / f"{path.name}.db"
        nlarchive = support.program("nltools/nlarchive")
        self.assertEqual(self.run_program(nlarchive, "load", database, path).returncode, 0)
        return self.says(nlarchive, "query", "--format", "ulm", database)

    def nlwrite_copies(self, path):
        out = self.scratch / f"{path.name}.copy"
        self.says(support.program("nltools/nlwrite"), "--dest", f"file:{out}?format=ulm", "-", path)
        return self.says(self.nlsort, out)

    def nlv_draws(self, path):
        out, same_name = self.scratch / "out.svg", self.scratch / "log"
        same_name.unlink(missing_ok=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, same_name) # the picture names the log
        self.says(support.program("nlv/nlv"), "--no-index", "--render", out, same_name)
        if same_name.is_dir():
            shutil.rmtree(same_name)
        return out.read_text()

    def nlschema_checks(self, path):
        schema = self.scratch / "a.schema"
        schema.write_text(SCHEMA)
        result = self.run_program(support.program("nltools/nlschema"), "check", schema, path)
        return result.returncode, result.stdout.replace(str(path), "INPUT")

    def nlkernel_reports(self, path):
        rules = self.scratch / "a.rules"
        rules.write_text(RULES)
        return self.says(support.program("nlkernel/nlkernel"), "report", "--json", rules, path)

    PROGRAMS = [nlschema_checks, nlkernel_reports, nlsort_says, nlsort_by_key_says, nlsort_merges, nlconv_says, nlstat_says, nldiag_says, nlarchive_says, nlwrite_copies,
                nlv_draws]

    def test_every_program_reads_every_format(self):
        """In ./check, each program reads a third of the formats, and a third of the programs reads each format."""
        paths = self.inputs()
        for i, program in enumerate(self.PROGRAMS):
            expected = program(self, self.original)
            self.assertTrue(expected)
            for format, path in support.representative(list(paths.items()), list(paths.items())[i % 3::3]):
                with self.subTest(program=program.__name__, format=format):
                    self.assertEqual(program(self, path), expected)

    def test_every_program_reads_what_other_programs_write(self):
        """The result is that of the same records in blocks. A CTF trace is a directory. In ./check, half of the programs read each
        format, and half of these read a compressed file."""
        paths = {}
        for format, data in OF_OTHERS.items():
            paths[format] = self.scratch / format
            paths[format].write_bytes(data)
        paths["ctf"] = self.scratch / "ctf"
        paths["ctf"].mkdir()
        (paths["ctf"] / "metadata").write_text(others.CTF_METADATA)
        (paths["ctf"] / "stream").write_bytes(others.ctf_packet([others.ctf_all(i * 1000, i) for i in range(50)], 0, 49000))

        def says(*command):
            result = self.run_program(*command)
            errors = [line for line in result.stderr.splitlines() if not re.search("times without a date|numeric or boolean value", line)]
            return result.returncode, result.stdout.replace(str(command[-1]), "INPUT"), [e.replace(str(command[-1]), "INPUT") for e in errors]

        self.says = says
        for number, (format, path) in enumerate(paths.items()):
            blocks = self.convert("nlb", path, f"{format}.nlb")
            packed = self.pack(path, "gzip") if path.is_file() else path
            for i, program in enumerate(support.representative(self.PROGRAMS, self.PROGRAMS[number % 2::2]), number):
                expected = program(self, blocks)
                for source in support.representative({path, packed}, {(path, packed)[i % 2]}):
                    with self.subTest(program=program.__name__, format=format, source=source.name):
                        self.assertEqual(program(self, source), expected)
            self.assertGreaterEqual(len(self.says(self.nlsort, "--format", "ulm", path)[1].splitlines()), 50)

    def test_every_program_can_be_told_the_format(self):
        """The first line of strace's output looks like ULM, and its times have no date."""
        log, blocks = self.scratch / "text" / "calls", self.scratch / "blocks" / "calls"
        log.parent.mkdir()
        blocks.parent.mkdir()
        log.write_text("".join(f'100 01:02:{i:02}.000001 write(1, "x DATE=20261123010203 HOST=h PROG=p NL.EVNT=e\\n", 50) = 50 <0.000010>\n' for i in range(50)))
        told = ["--from-format", "strace", "--base", "2026-01-31"]
        schema, rules = self.scratch / "a.schema", self.scratch / "a.rules"
        self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", blocks, *told, log)
        schema.write_text("[schema]\nname=calls\n[write.start]\nCALL=string\n[write.end]\n")
        rules.write_text(RULES.replace("Server.Begin", "write.start").replace("Server.End", "write.end").replace("key ID", "key CALL").replace("= ID", "= CALL"))
        programs = {"nlsort/nlsort": ["--format", "ulm"], "nltools/nlconv": ["--format", "ulm"], "nltools/nlstat": ["--id", "CALL"],
                    "nltools/nldiag": ["--id", "CALL"], "nltools/nlwrite": ["--dest", "file:/dev/stdout?format=ulm", "-"],
                    "nltools/nlschema": ["check", schema], "nlkernel/nlkernel": ["report", "--json", rules],
                    "nltools/nlarchive": ["load", "-q"], "nlv/nlv": ["--no-index", "--render", self.scratch / "x.svg"]}
        for program, arguments in programs.items():
            def says(source, *options):
                database = [source.with_suffix(".db")] if program.endswith("nlarchive") else []
                result = self.run_program(support.program(program), *arguments, *options, *database, source)
                out, errors = result.stdout.replace(str(source), "INPUT"), result.stderr.replace(str(source), "INPUT")
                if database:
                    out = self.says(support.program(program), "query", "--format", "ulm", *database)
                if program.endswith("nlv"):
                    out = (self.scratch / "x.svg").read_text()
                return result.returncode, out, errors.replace(str(source.with_suffix(".db")), "DATABASE")
            with self.subTest(program):
                expected = says(blocks)
                self.assertEqual(says(log, *told), expected)
                self.assertRegex(expected[1], 'write|"count": ?50|<svg')
                self.assertEqual(self.run_program(support.program(program), *arguments, "--from-format", "nosuch", log).returncode, 2)
                result = self.run_program(support.program(program), *arguments, *[self.scratch / "x.db"] * program.endswith("nlarchive"), "--from-format", "ctf", log)
                self.assertIn("not a CTF trace", result.stderr)
                self.assertGreaterEqual(result.returncode, 1)

    def test_standard_input_in_every_format(self):
        for format, path in self.inputs().items():
            with self.subTest(format=format), open(path, "rb") as file:
                pipe = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
                result = subprocess.run([self.nlsort, "--format", "ulm", "-"], stdin=pipe.stdout, capture_output=True, text=True, timeout=60)
                pipe.communicate()
                self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", self.ulm))

    def test_what_is_malformed_is_reported_with_its_place(self):
        path = self.scratch / "a.json"
        path.write_text('{"ts":1}\n{"ts":1,}\n\n{"ts":2}\n')
        for program in self.nlsort, support.program("nltools/nlwrite"):
            reject = self.scratch / f"{program.rpartition('/')[2]}.reject"
            command = [program, "--dest", "file:/dev/stdout", "-"] if program.endswith("nlwrite") else [program]
            result = self.run_program(*command, "--reject", reject, path)
            self.assertEqual((result.returncode, result.stdout.count("DATE=")), (1, 2), result.stderr)
            self.assertIn("a.json:2: ", result.stderr)
            self.assertEqual(reject.read_text(), '{"ts":1,}\n')

    def test_damaged_gzip_is_an_error(self):
        whole = gzip.compress(self.ulm.encode())
        for name, data in {"truncated": whole[:-100], "damaged": whole[:100] + b"rubbish" + whole[107:]}.items():
            with self.subTest(name):
                path = self.scratch / "a.gz"
                path.write_bytes(data)
                result = self.run_program(self.nlsort, path)
                self.assertEqual(result.returncode, 1)
                self.assertIn(name, result.stderr)

    def test_a_foreign_log_that_grows(self):
        """nlsort follows the file, and nlarchive loads the new records."""
        path, database, nlarchive = self.scratch / "a.json", self.scratch / "a.db", support.program("nltools/nlarchive")
        path.write_text("".join(f'{{"ts":{i},"event":"e"}}\n' for i in range(10)))
        follow = subprocess.Popen([self.nlsort, "--follow", "--window", "0.1", "--format", "ulm", path], stdout=subprocess.PIPE, text=True)
        self.addCleanup(follow.wait)
        self.addCleanup(follow.kill)
        seen = 0
        for count in 10, 10, 25:
            with open(path, "a") as out:
                out.write("".join(f'{{"ts":{i},"event":"e"}}\n' for i in range(seen or 10, count)))
            for _ in range(count - seen):
                self.assertIn("NL.EVNT=e", follow.stdout.readline())
            seen = count
            self.assertEqual(self.run_program(nlarchive, "load", database, path).returncode, 0)
            self.assertEqual(self.says(nlarchive, "query", "--format", "ulm", database).count("\n"), count)

    def test_a_followed_gzip_file_that_is_replaced(self):
        """The new file may be plain or compressed, and in another format. A member that was cut off is reported."""
        path, new = self.scratch / "a.log", self.scratch / "new"
        ulm = ["".join(f"DATE=2026112301{n:02}{i:02}.000000 HOST=h PROG=p NL.EVNT=e{n}\n" for i in range(20)) for n in range(5)]
        json = "".join(f'{{"ts":"2026-11-23T01:04:{i:02}Z","host":"h","prog":"p","event":"e4"}}\n' for i in range(20))
        contents = [gzip.compress(ulm[0].encode()), gzip.compress(ulm[1].encode()), ulm[2].encode(), gzip.compress(ulm[3].encode()),
                    gzip.compress(json.encode())]
        path.write_bytes(contents[0])
        follow = self.start(self.nlsort, "--follow", "--window", "0.1", "--format", "ulm", path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for n, content in enumerate(contents):
            if n > 0:
                new.write_bytes(content)
                new.rename(path)
            self.assertEqual([follow.stdout.readline() for _ in range(20)], ulm[n].splitlines(keepends=True))
        new.write_bytes(contents[0][:-8])
        new.rename(path)
        self.assertEqual([follow.stdout.readline() for _ in range(20)], ulm[0].splitlines(keepends=True))
        new.write_bytes(contents[1])
        new.rename(path)
        self.assertEqual([follow.stdout.readline() for _ in range(20)], ulm[1].splitlines(keepends=True))
        follow.terminate()
        self.assertIn("truncated", follow.communicate(timeout=30)[1])

    def test_a_followed_file_whose_first_byte_comes_alone(self):
        path, out, lines = self.scratch / "a.log", self.scratch / "out.log", "".join(self.ulm.splitlines(keepends=True)[:3])
        path.touch()
        follow = self.start(self.nlsort, "--follow", "--window", "0.1", "--format", "ulm", "-o", out, path, stderr=subprocess.PIPE, text=True)

        def position():
            for fd in pathlib.Path(f"/proc/{follow.pid}/fd").iterdir():
                if fd.is_symlink() and os.readlink(fd) == str(path):
                    return int(pathlib.Path(f"/proc/{follow.pid}/fdinfo/{fd.name}").read_text().split()[1])

        support.wait_until(lambda: position() == 0, what="nlsort opens the file")
        for part in lines[:1], lines[1:]:
            with open(path, "a") as log:
                log.write(part)
            support.wait_until(lambda: position() == path.stat().st_size, what="nlsort reads what was appended")
        follow.terminate()
        self.assertEqual((follow.communicate(timeout=30)[1], follow.returncode), ("", 0))
        self.assertEqual(out.read_text(), lines)

    def test_netlogd_receives_and_writes_every_format(self):
        """netlogd accepts each format over TCP, and writes files of each format. The names of the files have the format's
        suffix."""
        suffixes = {"ulm": ".log", "bp": ".bp", "logfmt": ".logfmt", "nlb": ".nlb"}
        for sent in OWN:
            data = self.make(sent).read_bytes()
            folders = {written: self.scratch / f"{sent}-{written}".replace(", ", "-") for written in suffixes}
            outputs = [f"--output=file:{folder}/?format={written}" for written, folder in folders.items()]
            for folder in folders.values():
                folder.mkdir()
            netlogd = self.serve(*outputs[1:], output=outputs[0].removeprefix("--output="))
            self.send(data)
            self.stop(netlogd)
            for written, folder in folders.items():
                with self.subTest(sent=sent, written=written):
                    files = [path for path in folder.iterdir() if path.suffix == suffixes[written]]
                    self.assertEqual(len(files), 1, list(folder.iterdir()))
                    lines = self.says(self.nlsort, "--format", "ulm", "--where", "PROG = client or PROG = server", files[0])
                    self.assertEqual(lines, self.ulm)

    def test_netlogd_receives_text_in_datagrams(self):
        for format in "ulm", "bp", "logfmt":
            with self.subTest(format=format):
                out = self.scratch / f"udp-{format}.log"
                lines = self.make(format).read_bytes().splitlines(keepends=True)
                netlogd = self.serve(listen="x-netlog+udp://127.0.0.1:0", output=f"file:{out}?format=ulm")
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                    for line in lines:
                        sender.sendto(line, ("127.0.0.1", self.port))
                support.wait_until(lambda: out.exists() and out.read_text().count("PROG=client") + out.read_text().count("PROG=server")
                                   == len(lines), what="all datagrams")
                self.stop(netlogd)
                self.assertEqual(self.says(self.nlsort, "--where", "PROG = client or PROG = server", out), self.ulm)


HEROKU = ('2026-11-23T01:02:03.4+00:00 heroku[router]: at=info method=GET path="/a?b=c" host=x.example fwd="204.204.204.204" dyno=web.1 '
          'connect=1ms service=18ms status=200\n')
PROMETHEUS = 'level=info ts=2026-11-23T01:02:04.000Z caller=main.go:123 component=tsdb msg="x \\"y\\"" verbose\n'


class Logfmt(collector.Case):
    """logfmt of other programs: order and fields stay, and lines without a time are rejected."""

    def test_netlogd_keeps_the_lines_of_others(self):
        out = self.scratch / "out.logfmt"
        netlogd = self.serve(output=f"file:{out}")
        self.send((PROMETHEUS + HEROKU).encode())
        self.stop(netlogd)
        lines = [line for line in out.read_text().splitlines(keepends=True) if "prog=netlogd" not in line]
        self.assertEqual(lines, [PROMETHEUS,
                                 'time=2026-11-23T01:02:03.400000Z level=info host=x.example prog=heroku[router] method=GET path="/a?b=c" '
                                 'fwd=204.204.204.204 dyno=web.1 connect=1ms service=18ms status=200\n'])

    def test_nlsort_orders_them(self):
        log = self.scratch / "a.log"
        log.write_text(PROMETHEUS + HEROKU)
        result = self.run_program(support.program("nlsort/nlsort"), log)
        self.assertEqual((result.returncode, result.stderr, result.stdout), (0, "", HEROKU + PROMETHEUS))

    def test_lines_without_a_time_are_no_logfmt(self):
        log = self.scratch / "a.log"
        log.write_text("at=info method=GET path=/ status=200\nlevel=info msg=hello\n")
        result = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", log)
        self.assertEqual((result.returncode, result.stdout), (1, ""))


if __name__ == "__main__":
    support.main()
