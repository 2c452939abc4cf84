"""tests/documented.py reports each public item that is not documented, and each documented item that does not exist."""
import atexit
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile

import support

sys.path.insert(0, str(support.SOURCE / "tests"))
import documented  # noqa: E402


class Documented(support.Case):
    def test_nothing_is_missing(self):
        tree = documented.Tree(support.SOURCE, support.BUILD)
        self.assertEqual(tree.check(), [])
        print("\n".join(f"# passed over: {what}" for what in tree.passed_over))

    # ---- it can fail ----

    @staticmethod
    def undo(copy, file):
        (copy / file).unlink()
        os.symlink(support.SOURCE.resolve() / file, copy / file)

    @staticmethod
    @functools.cache
    def copy_of_tree():
        """Returns a copy of the tree, whose files are symbolic links. It exists until this process ends."""
        copy = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        for name in *documented.FOLDERS, "doc", "packaging":
            shutil.copytree(support.SOURCE.resolve() / name, copy / name, ignore=shutil.ignore_patterns("*.png"), copy_function=os.symlink)
        os.symlink(support.SOURCE.resolve() / "README.md", copy / "README.md")
        for path in filter(pathlib.Path.is_dir, copy.rglob("*")):
            path.chmod(0o755)  # a release is tested in a read-only tree
        return copy

    def assert_found(self, check, *changes):
        """Makes each change (file, old, new, expected messages ...) in one copy of the tree, and checks that a check of the copy reports the messages."""
        copy = self.copy_of_tree()
        for file, old, new, *_ in changes:
            text = (copy / file).read_text()
            changed = re.sub(old, new, text, count=1, flags=re.M | re.S)
            self.assertTrue(changed != text, f"{file} has no {old}")
            (copy / file).unlink()
            (copy / file).write_text(changed)
            self.addCleanup(self.undo, copy, file)
        tree = documented.Tree(copy, support.BUILD)
        getattr(tree, "check_" + check)()
        for file, old, new, *all_said in changes:
            for said in all_said:
                with self.subTest(file=file, old=old, new=new):
                    self.assertTrue(any(said in problem for problem in tree.problems), f"{said!r} is not among {tree.problems}")

    def test_functions(self):
        include, examples = "libnetlogger/include/netlogger/", "doc/api-examples/"
        gone = [(file, old, f"Call {name}(log).\n", f"{name} is not a name in a public header")
                for file, old, name in (("doc/concepts.md", r"\Z", "nl_gone"), ("doc/concepts.md", r"\Z", "NL_GONE"),
                                        ("doc/concepts.md", r"\Z", "NetLoggerGone"), (include + "reader.h", r"(?<=Opens a source)", "nl_gone_too"))]
        # Neither a name in a comment nor a name in a string is a use.
        used = [(examples + "records.c", r"nl_level_parse\([^)]*\)", "0 /* nl_level_parse(text) */", "nl_level_parse is used by no example"),
                (examples + "reading.c", r"nl_reader_seek\([^)]*\)", 'puts("nl_reader_seek(reader)")', "nl_reader_seek is used by no example")]
        words = [(include + "filter.h", r"^/\* Frees a filter[^/]*\*/\n", "", "filter.h: nl_filter_free has no words"),
                 (include + "marker.h", r"^/\*\s(?: \* )?Defines a marker at[^/]*\*/\n", "", "marker.h: NL_MARKER has no words"),
                 (include + "filter.h", r"^NL_API nl_filter \*nl_filter_parse.*?;\n", "", "nl_filter_parse is in no public header")]
        self.assert_found("functions", *gone, *used, *(words if shutil.which("doxygen") else []))

    def test_options(self):
        support.program("nltools/nlstat")
        self.assert_found(
            "options",
            ("doc/man/nlstat.1", r"^\.It Fl -slowest[^\n]*\n", "", "nlstat: --slowest is not in its manual page"),
            ("doc/man/nlstat.1", r"^\.It Fl h ", ".It Fl -gone\nx\n.It Fl h ", "nlstat: --gone is in its manual page, and gone"),
            ("doc/man/nldiag.1", r"^Stop at the first malformed", "Stop at the last malformed", "nldiag.1: .. has lists of options that differ"),
            ("doc/concepts.md", r"\Z", "Say `nlstat --gone a.log`.\n", "concepts.md: nlstat --gone is no option"),
            ("doc/man/netlogger.7", r"^\.It Cm timeout Ns", ".It Cm gone Ns", "netlogger.7: .. has lists of options that differ from --help"),
            ("doc/man/netlogger.7", r'^\.\\" url options nlwrite: Options of a log\'s URL\n', "",
             'nlwrite: "Options of a log\'s URL" is a group of options of URLs that no manual page lists'),
            ("doc/man/netlogger.7", r'^\.\\" variables nlwrite\n', "", "nlwrite: variables are listed in no manual page"),
            # A page in the older macros.
            ("doc/man/nlsort.1", r"^[^\n]*unique[^\n]*\n", "", "nlsort: --unique is not in its manual page"))

    def test_options_of_commands(self):
        support.program("nlkernel/nlkernel")
        page = "doc/man/nlkernel.1"
        self.assert_found(
            "options",
            (page, r"^[^\n]*cdf[^\n]*\nPrint the cumulative distribution", "Print the cumulative distribution", "nlkernel report: --cdf is not in its manual page"),
            (page, r"^\.SS symbols", ".SS control", "nlkernel symbols: --output is not in its manual page",
             "nlkernel control: --output is in its manual page, and gone"),
            ("doc/concepts.md", r"\Z", "Say `nlkernel list --dest URL`.\n", "concepts.md: nlkernel list --dest is no option"))

    def test_words(self):
        man, synthesis = "doc/man/", "doc/synthesis.md"
        changes = [
            (man + "nlkernel.1", r"^\.B nlkernel graph\n", ".B nlkernel gone\n", "command of nlkernel: graph is not in doc/man/nlkernel.1",
             "command of nlkernel: gone is in doc/man/nlkernel.1, and gone"),
            (man + "nlkernel.1", r"^\.B nlkernel rules show\n", "", "command of nlkernel rules: show is not in doc/man/nlkernel.1"),
            (man + "nlschema.1", r"^\.It Cm json\n", "", "command of nlschema: json is not in doc/man/nlschema.1"),
            (man + "nlschema.1", r"^\.Cm json Ar", ".Cm gone Ar", "command of nlschema: gone is in doc/man/nlschema.1, and gone"),
            (man + "nlarchive.1", r"^\.Cm query", ".Cm ask", "command of nlarchive: query is not in doc/man/nlarchive.1"),
            (man + "nlagent.1", r"^\.It Cm find\n", "", "command of nlagent: find is not in doc/man/nlagent.1"),
            (man + "nlagent.1", r"^\.Cm list \| status", ".Cm list | status | gone", "command of nlagent: gone is in doc/man/nlagent.1, and gone"),
            (man + "netlogd.conf.5", r"^\.It Ic max-rate", ".It Ic gone", "directive of netlogd: max-rate is not in doc/man/netlogd.conf.5",
             "directive of netlogd: gone is in doc/man/netlogd.conf.5, and gone"),
            ("packaging/netlogd.conf", r"^#max-rate", "#gone", "directive of netlogd: max-rate is not in packaging/netlogd.conf",
             "directive of netlogd: gone is in packaging/netlogd.conf, and gone"),
            (man + "nlv.1", r"^\[point Retransmits\]\n", "", "section of nlv's files: point is not in"),
            (man + "nlv.1", r"^\.Cm again=true\n", "", "key of nlv's files: again is not in"),
            ("common/requests/drawing.c", r'section, "color"', 'section, "fresh"', "key of nlv's files: fresh is not in",
             "key of nlv's files: color is in doc/man/nlv.1, and gone"),
            (man + "nlschema.1", r"^\.Ql prefix=\n", "", "key of nlschema's files: prefix is not in"),
            (synthesis, r"`\[follow NAME\]`", "", "section of a rules file: follow is not in"),
            (synthesis, r"`unmark = STATE: \.\.\.`", "`gone = STATE`", "key of a rules file: unmark is not in", "key of a rules file: gone is in"),
            ("nlkernel/rules_command.c", r'section, "when"', 'section, "fresh"', "key of a rules file: fresh is not in"),
            (synthesis, r"`device\(FIELD\)`", "", "function of a rules file: device is not in"),
            (synthesis, r" p999 ", " ", "column of a report: p999 is not in"),
            (synthesis, r" `bars`,", "", "plot of a report: bars is not in"),
            ("nlkernel/summary.c", r"orders\[\] =", "kinds[] =", "order of a report: nlkernel/summary.c has none where it should"),
        ]
        self.assert_found("words", *changes)

    def test_variables(self):
        self.assert_found(
            "variables",
            ("doc/man/netlogger.7", "NETLOGGER_LEVEL", "NETLOGGER_GONE", "netlogger.7: NETLOGGER_GONE is a variable that nothing reads"),
            ("doc/man/nlrecover.1", "NETLOGGER_SHM", "NETLOGGER_GONE", "nlrecover.1: NETLOGGER_GONE is a variable that nothing reads"),
            ("common/program/temporary_file.c", '"TMPDIR"', '"FRESH"', "FRESH of common/program/temporary_file.c is not in doc/man/nlconv.1"),
            ("nltools/nlstat.c", r"\Z", 'const char *a = getenv("FRESH");\n', "FRESH is read in nltools/nlstat.c, for which VARIABLES has no page"),
            ("doc/man/nlv.1", r"^\.It Ev TMPDIR", ".It Ev GONE", "nlv.1: GONE is a variable that nothing reads"),
            ("doc/concepts.md", r"\Z", "Set `$NETLOGGER_GONE`.\n", "concepts.md: NETLOGGER_GONE is a variable that nothing reads"))

    def test_sensors(self):
        support.program("nlagent/nlsensor")
        self.assert_found("sensors", ("doc/sensors.md", r"^- `CPU\.BUSY` [^\n]*\n", "", "- `CPU.BUSY`"),
                          ("doc/sensors.md", r"^### CpuOne$", "### CpuGone", "CpuGone"))

    def test_events(self):
        page = "doc/events.md"
        self.assert_found(
            "events",
            # Logged by nl_write, by a function that makes a record, by nl_record_set_event, by a constant, and by a structure.
            *((page, rf"^\| `{event}`[^\n]*\n", "", f"event: {event} is not in doc/events.md")
              for event in ("Netlogd.Tls", "Noise.Begin", "Summary", "ClockStep", "Netlogd.OverRate")),
            ("netlogd/server.c", r"\Z", 'void f(nl_log *log) { NL_EVENT(log, NL_USAGE, "Fresh", "A", 1); }\n', "event: Fresh is not in doc/events.md"),
            (page, "`Netlogd.Garbage`", "`Netlogd.Gone`", "event: Netlogd.Gone is in doc/events.md, and gone"),
            (page, r"reads from, a URL \| `URL`", "reads from, a URL | `GONE`", "field of Netlogd.Listen: URL is not in doc/events.md",
             "field of Netlogd.Listen: GONE is in doc/events.md, and gone"),
            (page, "`SIDE`", "side", "field of Bench: SIDE is not in doc/events.md"))


if __name__ == "__main__":
    support.main()
