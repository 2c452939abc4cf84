"""What the compiler says of wrong uses of NL_EVENT and NL_MARKER: an error, in words, and little else."""
import shutil
import unittest

import support

INCLUDE = support.SOURCE / "libnetlogger" / "include"

PROGRAM = r"""
#include <netlogger.h>
%s
struct group { int a; };
void f(nl_log *log, struct group group, int *pointer, int number);
void f(nl_log *log, struct group group, int *pointer, int number)
{
    (void)log, (void)group, (void)pointer, (void)number;
    %s
}
"""

CXX = r"""
#include <string>
struct number_like { operator int() const { return 5; } };
enum class scoped { one };
enum plain { ONE, MINUS = -1 };
"""

HALF = "a field name without a value"
TYPE = "not a type that NL_EVENT can log"
FIELD = ', "F", 1'

WRONG = [
    ('NL_EVENT(log, NL_USAGE, "E", "F");', HALF),
    ('NL_EVENT(log, NL_USAGE, "E", "F", 1, "G");', HALF),
    ('NL_EVENT(log, "E", "F", 1);', HALF),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 16}, "F");', HALF),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 17});', "an event has at most 16 fields"),
    (f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 32});', "an event has at most 16 fields"),
    ("NL_EVENT(log, NL_USAGE);", "an event has a name"),
    ('NL_EVENT(log, NL_USAGE, "");', "an event has a name"),
    ('NL_EVENT(log, (nl_level)number, "E");', "the level of NL_EVENT is a constant"),
    ('NL_EVENT(log, NL_LEVEL_NONE, "E");', "not a level of events"),
    ('NL_EVENT(log, NL_USAGE, "E", "F", group);', TYPE),
    ('NL_EVENT(log, NL_USAGE, "E", "F", pointer);', f"field F: {TYPE}"),
    ('NL_MARKER(place, "F");', HALF),
    ("NL_MARKER();", "a marker has a name"),
    (f"NL_MARKER(place{FIELD * 9});", "a marker has at most 8 fields"),
    (f"NL_MARKER(place{FIELD * 17});", "a marker has at most 8 fields"),
    ('NL_MARKER(place, "F", group);', TYPE),
]

WRONG_CXX = ["nullptr", "number_like()", "scoped::one", 'std::string("x")', "f"]

RIGHT = [
    'NL_EVENT(log, NL_USAGE, "E");',
    f'NL_EVENT(log, NL_USAGE, "E"{FIELD * 16});',
    'NL_EVENT(log, NL_USAGE, "E", "F", number, "G", "text", "H", NL_BYTES("x", 1));',
    'if (number) NL_EVENT(log, NL_USAGE, "E"); else NL_MARKER(place);',
    f"NL_MARKER(place{FIELD * 8});",
]


class EventErrors(support.Case):
    def compile(self, compiler, head, statement, suffix, *flags):
        path = self.scratch / f"wrong{suffix}"
        path.write_text(PROGRAM % (head, statement))
        return self.run_program(*compiler.split(), *flags, "-Wall", "-Wextra", "-fsyntax-only", f"-I{INCLUDE}", path)

    def compilers(self):
        """(compiler, suffix, flags) of those that are here."""
        yield support.CC, ".c", ["-std=gnu11"]
        for name, suffix, standard in [("clang", ".c", "gnu11"), ("g++", ".cc", "c++11"), ("clang++", ".cc", "c++11")]:
            if shutil.which(name):
                yield name, suffix, [f"-std={standard}"]

    def check_wrong(self, compiler, head, statement, words, suffix, flags):
        with self.subTest(compiler=compiler, statement=statement):
            result = self.compile(compiler, head, statement, suffix, *flags)
            self.assertNotEqual(result.returncode, 0)
            first = next((line for line in result.stderr.splitlines() if "error:" in line), "")
            self.assertIn(words, first)
            self.assertLess(len(result.stderr.splitlines()), 120, result.stderr)

    def test_wrong(self):
        for compiler, suffix, flags in self.compilers():
            for statement, words in WRONG:
                self.check_wrong(compiler, "", statement, words, suffix, flags)

    def test_wrong_types_in_cxx(self):
        for compiler, suffix, flags in self.compilers():
            for value in WRONG_CXX if suffix == ".cc" else []:
                statement = f'NL_EVENT(log, NL_USAGE, "E", "F", {value});'
                self.check_wrong(compiler, CXX, statement, TYPE, suffix, flags)

    def test_right(self):
        for compiler, suffix, flags in self.compilers():
            more = ['NL_EVENT(log, NL_USAGE, "E", "F", MINUS);'] if suffix == ".cc" else []
            strict = ["-Wold-style-cast"] if suffix == ".cc" else ["-Wstrict-prototypes", "-Wenum-compare"]
            for statement in RIGHT + more:
                with self.subTest(compiler=compiler, statement=statement):
                    head = CXX if suffix == ".cc" else ""
                    result = self.compile(compiler, head, statement, suffix, *flags, *strict, "-Werror", "-pedantic")
                    self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    support.main()
