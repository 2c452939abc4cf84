"""Everything public is documented, and nothing that is gone: tests/documented.py, which must be able to fail."""
import re
import shutil
import sys

import support

sys.path.insert(0, str(support.SOURCE / "tests"))
import documented  # noqa: E402


class Documented(support.Case):
    def test_nothing_is_missing(self):
        tree = documented.Tree(support.SOURCE, support.BUILD)
        self.assertEqual(tree.check(), [])
        print("\n".join(f"# passed over: {what}" for what in tree.passed_over))

    # ---- it can fail ----

    def changed(self, file, old, new):
        """A copy of the tree with one thing taken out or put in."""
        copy = self.scratch / "tree"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(support.SOURCE, copy, symlinks=True, ignore=shutil.ignore_patterns("build", ".git", "bench", "fuzz", "autom4te.cache", "*.png"))
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)  # a release is tested read-only
        text = (copy / file).read_text()
        changed = re.sub(old, new, text, count=1, flags=re.M | re.S)
        self.assertTrue(changed != text, f"{file} has no {old}")
        (copy / file).write_text(changed)
        return documented.Tree(copy, support.BUILD)

    def assert_found(self, check, said, file, old, new=""):
        with self.subTest(file=file, old=old):
            tree = self.changed(file, old, new)
            getattr(tree, "check_" + check)()
            self.assertTrue(any(said in problem for problem in tree.problems), f"{said!r} is not among {tree.problems}")

    def test_functions(self):
        header = "libnetlogger/include/netlogger/url.h"
        if shutil.which("doxygen"):
            self.assert_found("functions", "nl_url_option_value has no words", header, r"^/\* The value of an option[^/]*\*/\n")
            self.assert_found("functions", "nl_url_parse is in no public header", header, r"^NL_API nl_url \*nl_url_parse.*?;\n")
        self.assert_found("functions", "nl_url_option_value is used by no example", "doc/api-examples/urls.c", "nl_url_option_value", "other")
        self.assert_found("functions", "nl_gone is no name of a public header", "doc/concepts.md", r"\Z", "Call `nl_gone(log)`.\n")
        self.assert_found("functions", "nl_gone is no name of a public header", header, "nl_url_free", "nl_gone")

    def test_options(self):
        support.program("nltools/nlstat")
        self.assert_found("options", "--slowest is not in its manual page", "doc/man/nlstat.1", r"^\.It Fl n [^\n]*Fl -slowest[^\n]*\n")
        self.assert_found("options", "--gone is in its manual page, and gone", "doc/man/nlstat.1", r"^\.It Fl -usage", ".It Fl -gone\nx\n.It Fl -usage")
        self.assert_found("options", "nlstat --gone is no option", "doc/concepts.md", r"\Z", "Say `nlstat --gone a.log`.\n")
        # One of the pages in the older macros.
        self.assert_found("options", "--unique", "doc/man/nlsort.1", r"^[^\n]*unique[^\n]*\n")

    def test_directives(self):
        self.assert_found("directives", "max-rate is not in doc/man/netlogd.conf.5", "doc/man/netlogd.conf.5", r"^\.It Ic max-rate[^\n]*\n")
        self.assert_found("directives", "gone is in doc/man/netlogd.conf.5, and gone", "doc/man/netlogd.conf.5", r"^\.It Ic max-rate", ".It Ic gone")
        self.assert_found("directives", "max-rate is not in packaging/netlogd.conf", "packaging/netlogd.conf", r"^#max-rate[^\n]*\n")
        self.assert_found("directives", "gone is in packaging/netlogd.conf, and gone", "packaging/netlogd.conf", r"^#max-rate", "#gone")

    def test_sensors(self):
        support.program("nlagent/nlsensor")
        self.assert_found("sensors", "CpuLoad", "doc/sensors.md", r"^\| CpuLoad \| CPU\.BUSY[^\n]*\n")
        self.assert_found("sensors", "CpuGone", "doc/sensors.md", r"\| CpuLoad \| CPU\.BUSY", "| CpuGone | CPU.BUSY")

    def test_events(self):
        self.assert_found("events", "Netlogd.Tls is not in doc/events.md", "doc/events.md", r"^\| `Netlogd\.Tls`[^\n]*\n")
        self.assert_found("events", "Netlogd.Gone is in doc/events.md, and gone", "doc/events.md", r"`Netlogd\.Tls`", "`Netlogd.Gone`")


if __name__ == "__main__":
    support.main()
