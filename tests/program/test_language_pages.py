"""Gaps in the bindings' documentation, found by each language's own tool."""
import os
import re
import shutil
import sys

import support

BINDINGS = support.SOURCE / "bindings"

DOXYFILE = """
INPUT = {header}
OUTPUT_DIRECTORY = {output}
GENERATE_LATEX = NO
GENERATE_HTML = NO
GENERATE_XML = YES
HAVE_DOT = NO
QUIET = YES
EXCLUDE_SYMBOLS = netlogger::detail netlogger::detail::*
WARN_IF_INCOMPLETE_DOC = NO
"""


class Pages(support.Case):
    def tool(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"no {name} here")
        return name

    def test_javadoc(self):
        sources = sorted((BINDINGS / "java" / "src" / "netlogger").glob("*.java"))
        result = self.run_compiler(self.tool("javadoc"), "-quiet", "-Xdoclint:all", "-Werror", "--release", "11",
                                   "-d", self.scratch, *sources)
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))

    def test_doxygen(self):
        (self.scratch / "Doxyfile").write_text(DOXYFILE.format(header=BINDINGS / "cxx" / "netlogger.hpp", output=self.scratch))
        result = self.run_compiler(self.tool("doxygen"), self.scratch / "Doxyfile")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_pod(self):
        pages = [path for path in (BINDINGS / "perl").rglob("*.pm")]
        self.assertEqual(len(pages), 3)
        result = self.run_program(self.tool("podchecker"), "-warnings", "-warnings", *pages)
        self.assertEqual((result.returncode, re.sub(r".* pod syntax OK\.\n", "", result.stderr)), (0, ""))

    def test_fortran_comments(self):
        """FORD uses the comment above a declaration that begins with "!>". Every public name has such a comment."""
        lines = (BINDINGS / "fortran" / "netlogger.f90").read_text().splitlines()
        self.assertTrue(lines[0].startswith("!> "))
        for place, line in enumerate(lines):
            bound = re.match(r"\s+(?:procedure|generic) :: (?!.*private)", line) or re.search(r", public( ::|$)", line)
            if bound and "private" not in line:
                with self.subTest(line=line.strip()):
                    above = next(text for text in reversed(lines[:place]) if not re.match(r"\s+procedure(, private)? :: ", text))
                    self.assertRegex(above, r"^\s*!>")

    def test_pydoc(self):
        support.program("bindings/python/built")
        environment = {**os.environ, "PYTHONPATH": str(support.BUILD / "bindings/python/lib"), "PAGER": "cat"}
        result = self.run_program(sys.executable, "-m", "pydoc", "netlogger", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        for said in ("NetLogger: timestamped events", "class Log(", "event(self, event, fields=None, /, **more)",
                     "read(url:", "class Handler(", "Names of fields"):
            self.assertIn(said, result.stdout)


if __name__ == "__main__":
    support.main()
