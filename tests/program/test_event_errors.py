"""The compiler's messages for wrong uses of NL_EVENT and NL_MARKER: one clear error, and little else."""
import re
import shutil

import support

INCLUDE = support.SOURCE / "libnetlogger" / "include"

PROGRAM = r"""
#include <netlogger.h>
%s
struct group { int a; };
"""

# Statement number N and its messages have the line number FIRST + N.
FIRST = 10000
FUNCTION = r"""
void f%(place)d(nl_log *log, struct group group, int *pointer, int number);
#line %(place)d "here"
void f%(place)d(nl_log *log, struct group group, int *pointer, int number) { %(statement)s (void)log, (void)group, (void)pointer, (void)number; }
"""

CXX = r"""
#include <string>
struct number_like { operator int() const { return 5; } };
enum class scoped { one };
enum plain { ONE, MINUS = -1 };
void main_like();
"""

HALF = "a field name without a value"
TYPE = "not a type that NL_EVENT can log"
FIELD = ', "F", 1'

WRONG = [
    ('NL_EVENT(log, NL_USAGE, "E", "F");', HALF),
    ('NL_EVENT(log, NL_USAGE, "E", "F", 1, "G");', HALF),
    ('NL_EVENT(log, "E", "F", 1);', HALF),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 16}, "F");', HALF),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 17});', "an event can have at most 16 fields"),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 32});', "an event can have at most 16 fields"),
    ("NL_EVENT(log, NL_USAGE);", "an event needs a name"),
    ('NL_EVENT(log, NL_USAGE, "");', "an event needs a name"),
    ('NL_EVENT(log, (nl_level)number, "E");', "the level of NL_EVENT must be a constant"),
    ('NL_EVENT(log, NL_LEVEL_NONE, "E");', "the level of an event must be from NL_EMERGENCY to NL_DEBUG"),
    ('NL_EVENT(log, NL_USAGE, "E", "F", group);', TYPE),
    ('NL_EVENT(log, NL_USAGE, "E", "F", pointer);', f"field F: {TYPE}"),
    ('NL_MARKER(place, "F");', HALF),
    ("NL_MARKER();", "a marker needs a name"),
    (f"NL_MARKER(place{FIELD * 9});", "a marker can have at most 8 fields"),
    (f"NL_MARKER(place{FIELD * 17});", "a marker can have at most 8 fields"),
    ('NL_MARKER(place, "F", group);', TYPE),
]

WRONG_CXX = ["nullptr", "number_like()", "scoped::one", 'std::string("x")', "main_like"]

RIGHT = [
    'NL_EVENT(log, NL_USAGE, "E");',
    f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 16});',
    'NL_EVENT(log, NL_USAGE, "E", "F", number, "G", "text", "H", NL_BYTES("x", 1));',
    'if (number) NL_EVENT(log, NL_USAGE, "E"); else NL_MARKER(place);',
    f"NL_MARKER(place{FIELD * 8});",
]


class EventErrors(support.Case):
    """All statements of a kind are compiled together, each in a separate function. #line sets the line numbers to the
    statement's index, so that the compiler's messages contain the index."""

    def compile(self, compiler, head, statements, suffix, *flags):
        """Returns the compiler's messages with the index of their statement: [(index or None, line)]; and the exit status."""
        path = self.scratch / f"all{suffix}"
        path.write_text(PROGRAM % head + "".join(FUNCTION % {"place": FIRST + place, "statement": statement}
                                                 for place, statement in enumerate(statements)))
        result = self.run_compiler(*compiler.split(), *flags, "-Wall", "-Wextra", "-fsyntax-only", f"-I{INCLUDE}", path)
        said, place = [], None
        for line in result.stderr.splitlines():
            if found := re.match(r"here:(\d+):", line) or re.search(r"In function .*\bf(\d+)\b", line):
                place = int(found.group(1)) - FIRST
            said.append((place, line))
        return result.returncode, said

    def compilers(self):
        """Yields (compiler, suffix, flags) of the installed compilers."""
        yield support.CC, ".c", ["-std=gnu11"]
        for name, suffix, standard in [("clang", ".c", "gnu11"), ("g++", ".cc", "c++11"), ("clang++", ".cc", "c++11")]:
            if shutil.which(name):
                yield name, suffix, [f"-std={standard}", *(["-ferror-limit=0"] if "clang" in name else [])]

    def check_wrong(self, compiler, head, wrong, suffix, flags):
        """wrong: [(statement, expected message)]."""
        status, said = self.compile(compiler, head, [statement for statement, _ in wrong], suffix, *flags)
        self.assertNotEqual(status, 0)
        for place, (statement, words) in enumerate(wrong):
            with self.subTest(compiler=compiler, statement=statement):
                of_it = [line for at, line in said if at == place]
                self.assertIn(words, next((line for line in of_it if "error:" in line), ""))
                self.assertLess(len(of_it), 120, of_it)

    def test_wrong(self):
        for compiler, suffix, flags in self.compilers():
            self.check_wrong(compiler, "", WRONG, suffix, flags)

    def test_wrong_types_in_cxx(self):
        wrong = [(f'NL_EVENT(log, NL_USAGE, "E", "F", {value});', TYPE) for value in WRONG_CXX]
        for compiler, suffix, flags in self.compilers():
            if suffix == ".cc":
                self.check_wrong(compiler, CXX, wrong, suffix, flags)

    def test_right(self):
        for compiler, suffix, flags in self.compilers():
            more = ['NL_EVENT(log, NL_USAGE, "E", "F", MINUS);'] if suffix == ".cc" else []
            strict = ["-Wold-style-cast"] if suffix == ".cc" else ["-Wstrict-prototypes", "-Wenum-compare"]
            head = CXX if suffix == ".cc" else ""
            with self.subTest(compiler=compiler):
                status, said = self.compile(compiler, head, RIGHT + more, suffix, *flags, *strict, "-Werror", "-pedantic")
                self.assertEqual(status, 0, [line for _, line in said])


if __name__ == "__main__":
    support.main()
