"""Every program that reads logs reads every format: one table of formats, one of programs, and every combination of them."""
import re
import shutil
import socket
import subprocess

import collector
import support


def requests(count=60):
    """Requests of four steps between two hosts, in ULM as the library writes it; values that need quotes among them."""
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


# The library's formats, and the options of the URL to which nlsort writes each.
OWN = {
    "ulm": "format=ulm&zstd=0", "bp": "format=bp&zstd=0", "logfmt": "format=logfmt&zstd=0", "nlb": "format=nlb&zstd=0",
    "nlb, zstd": "format=nlb&zstd=3",
}


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

    def inputs(self):
        """The log in every format, as it is and compressed, by the format's name."""
        found = {format: self.make(format) for format in OWN}
        if shutil.which("zstd") is not None:
            for format in OWN:
                packed = self.scratch / f"{found[format].name}.packed"
                packed.write_bytes(subprocess.run(["zstd", "-c", found[format]], capture_output=True, check=True).stdout)
                found[f"{format} in zstd"] = packed
        return found

    def says(self, *command):
        """What a program prints, without the name of its input."""
        result = self.run_program(*command)
        self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        return result.stdout.replace(str(command[-1]), "INPUT")

    # ---- the programs: each gives for an input what must be the same for all formats ----

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
        self.assertIn(result.returncode, (0, 1), result.stderr)
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
        shutil.copy(path, same_name) # the picture names the log
        self.says(support.program("nlv/nlv"), "--no-index", "--render", out, same_name)
        return out.read_text()

    PROGRAMS = [nlsort_says, nlsort_by_key_says, nlsort_merges, nlconv_says, nlstat_says, nldiag_says, nlarchive_says, nlwrite_copies,
                nlv_draws]

    def test_every_program_reads_every_format(self):
        paths = self.inputs()
        for program in self.PROGRAMS:
            expected = program(self, self.original)
            self.assertTrue(expected)
            for format, path in paths.items():
                with self.subTest(program=program.__name__, format=format):
                    self.assertEqual(program(self, path), expected)

    def test_netlogd_receives_and_writes_every_format(self):
        """Over TCP, what a file holds; into files of each format, whose names have its suffix."""
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
    """logfmt of other programs: order and fields are kept, and lines without a time are no logfmt."""

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
