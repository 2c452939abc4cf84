"""The binary interface does not change by mistake.

libnetlogger/abi lists it, one item per line: the shared library's soname, every exported symbol with its version and
prototype, every public struct's size and its members' offsets and sizes, and every public constant. The built library
and the headers must agree with the list. `test_abi.py --print` prints the list for the built library and its headers.
"""
import pathlib
import re
import subprocess
import sys
import unittest

import support

LIST = support.SOURCE / "libnetlogger" / "abi"
INCLUDE = support.SOURCE / "libnetlogger" / "include"
LIBRARY = support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so"

ADDED = "add this line to libnetlogger/abi in the same commit (test_abi.py --print gives the whole list)"
BROKEN = (
    "programs compiled before would break. If that is meant: edit libnetlogger/abi in the same commit, and raise the soname "
    "(-version-info in libnetlogger/local.mk, the soname line in the list)"
)
GROWN = f"{BROKEN}. Only a struct that programs never make themselves, as nl_record, may grow without that"


def headers():
    """Returns the text of the public headers without comments and preprocessor lines, and their #define constants."""
    text = "".join(path.read_text() for path in sorted((INCLUDE / "netlogger").glob("*.h")))
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    constants = re.findall(r"^#define (NL_\w+) +(?:-?\d+u?|INT64_C\(\d+\))\s*$", text, flags=re.M)
    text = re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return text, constants


def classic():
    """Returns the functions of <NetLogger.h>, declared in the form of the other headers, by their exported names."""
    text = re.sub(r"/\*.*?\*/", " ", (INCLUDE / "NetLogger.h").read_text(), flags=re.S)
    for declaration in re.findall(r"NETLOGGER_CLASSIC_API [^;]*;", text):
        exported_as = re.search(r'(?:__asm__|NETLOGGER_CLASSIC_OLD)\("(\w+)"\)', declaration)
        if exported_as:
            declaration = re.sub(r"\bNetLogger\w+(?= ?\()", exported_as.group(1), declaration[: exported_as.start()]) + ";"
        yield declaration.replace("NETLOGGER_CLASSIC_API", "NL_API")


def split_list(text):
    """Splits at the commas outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def without_name(parameter):
    """Returns a parameter's type: "const char *" for "const char *text". A function pointer stays unchanged."""
    return parameter if "(" in parameter else re.sub(r"(?<=[\s*])\w+(?=(\[[^]]*\])?$)", "", parameter).strip()


def prototypes():
    """Returns the public functions: {name: prototype without parameter names}."""
    text = headers()[0] + " ".join(classic())
    found = {}
    for result, name, parameters in re.findall(r"NL_API\s+([^;()]*?)(\w+)\s*\(((?:[^()]|\([^()]*\))*)\)[^;]*;", text):
        types = ", ".join(without_name(" ".join(p.split())) for p in split_list(parameters))
        found[name] = f"{' '.join(result.split())} ({types})"
    for kind, name, size in re.findall(r"extern NL_API\s+([^;()]*?)(\w+)(\[\w+\])? __attribute__", text):
        found[name] = f"{' '.join(kind.split())} {size}".rstrip()
    return found


def members(body):
    """Returns the member names of a struct's body. The members of an anonymous union belong to the struct."""
    body = re.sub(r"\bunion\s*\{|\}", "", body)
    for declaration in filter(None, (d.strip() for d in body.split(";"))):
        if len(split_list(declaration)) != 1:
            raise AssertionError(f"declare one member at a time, so that it can be found here: {declaration}")
        yield re.search(r"\(\*(\w+)\)|(\w+)(?:\[[^]]*\])?$", declaration).group(1, 2)


def structs():
    """Returns the structs with public members: {name: [member]}."""
    text, _ = headers()
    found = re.findall(r"typedef (?:struct|union) \w+ \{(.*?)\}\s*(nl_\w+);", text, flags=re.S)
    return {name: [a or b for a, b in members(body)] for body, name in found}


def constants():
    text, defined = headers()
    enums = re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, flags=re.S)
    return [re.match(r"\w+", item).group() for body in enums for item in split_list(body)] + defined


def layout(scratch):
    """Returns the lines for structs and constants. A program that is compiled with the headers prints them."""
    lines = []
    for name, names in structs().items():
        lines.append(f'printf("struct {name} size %zu\\n", sizeof({name}));')
        for member in names:
            size = f"sizeof((({name} *)0)->{member})"
            lines.append(f'printf("member {name}.{member} at %zu size %zu\\n", offsetof({name}, {member}), {size});')
    for name in constants():
        lines.append(f'printf("constant {name} %lld\\n", (long long){name});')
    source, program = pathlib.Path(scratch) / "layout.c", pathlib.Path(scratch) / "layout"
    source.write_text("#include <netlogger.h>\n#include <stdio.h>\nint main(void)\n{\n%s\n}\n" % "\n".join(lines))
    command = [*support.CC.split(), "-std=gnu11", f"-I{INCLUDE}", str(source), "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    return subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout.splitlines()


def exported():
    """Returns the exported symbols of the shared library: {name: version}, without the names of the versions themselves."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", str(LIBRARY)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    symbols = [line.split()[-1] for line in output.splitlines() if line.split()[-2] != "A"]
    return dict((symbol.replace("@@", "@").split("@") + [""])[:2] for symbol in symbols)


def symbols():
    """Returns the lines for the soname and the exported symbols."""
    known = prototypes()
    dynamic = subprocess.run(["readelf", "-d", str(LIBRARY)], check=True, capture_output=True, text=True, timeout=60).stdout
    lines = ["soname " + re.search(r"SONAME.*\[(.*)\]", dynamic).group(1)]
    lines += [f"symbol {name}@{version} {known.get(name, 'in no header')}" for name, version in exported().items()]
    return lines


def listed(*kinds):
    """Returns the list's lines of these kinds."""
    lines = LIST.read_text().splitlines()
    return [line for line in lines if line.split(" ")[0] in kinds]


def differences(then, now):
    """Returns a sentence for each difference of two lists: new, removed or changed."""
    # The key of an entry is its kind and name; the rest must not change.
    old, new = ({tuple(re.split(r"[ @]", line, maxsplit=2)[:2]): line for line in lines} for lines in (then, now))
    for key in sorted(old.keys() | new.keys()):
        name = " ".join(key)
        if key not in new:
            yield f"{name} is gone: {BROKEN}"
        elif key not in old:
            yield f"{name} is new: {ADDED}:\n    {new[key]}"
        elif old[key] != new[key]:
            why = GROWN if key[0] == "struct" else BROKEN
            yield f"{name} changed: {why}:\n    was: {old[key]}\n    is:  {new[key]}"


class Abi(support.Case):
    def assert_unchanged(self, then, now):
        said = list(differences(then, now))
        if said:
            self.fail("\n" + "\n".join(said))

    def need_library(self):
        if not LIBRARY.exists():
            self.skipTest("no shared library in this build")

    def test_symbols_are_those_listed(self):
        self.need_library()
        self.assert_unchanged(listed("soname", "symbol"), symbols())

    def test_layout_is_the_one_listed(self):
        if sys.maxsize < 2**32:
            self.skipTest("the list is for machines of 64 bits")
        self.assert_unchanged(listed("struct", "member", "constant"), layout(self.scratch))

    def test_exports_begin_with_nl(self):
        self.need_library()
        self.assertEqual([name for name in exported() if not name.startswith(("nl_", "NetLogger", "NetLogOpen"))], [])

    def test_exports_and_headers_are_the_same_functions(self):
        self.need_library()
        self.assertEqual(sorted(exported()), sorted(prototypes()))

    def test_every_function_has_an_example_and_a_user(self):
        """Users do not need a function that no binding and no example program calls."""
        def words(*folders):
            files = [path for folder in folders for path in (support.SOURCE / folder).rglob("*") if path.is_file()]
            return set(re.findall(r"\w+", " ".join(path.read_text(errors="replace") for path in files)))

        public = {name for name in prototypes() if name.startswith("nl_") and not name.startswith("nl_private_")}
        self.assertEqual(sorted(public - words("doc/api-examples")), [])
        self.assertEqual(sorted(public - words("bindings", "examples")), [])
        self.assertLessEqual(len(public), 70)

    def test_headers_are_understood(self):
        self.assertEqual(prototypes()["nl_field_text"], "nl_string (const nl_field *, char [NL_FIELD_TEXT_SIZE])")
        self.assertEqual(prototypes()["nl_write"], "nl_status (nl_log *, nl_level, const char *, const char *, ...)")
        self.assertEqual(prototypes()["nl_version"], "const char * (void)")
        self.assertIn("bool_value", structs()["nl_field"])
        self.assertIn("on_malformed", structs()["nl_reader_options"])
        self.assertNotIn("nl_log", structs())
        self.assertIn("NL_MALFORMED", constants())
        self.assertIn("NL_RECORD_UNTERMINATED", constants())
        declared = "".join(path.read_text() for path in (INCLUDE / "netlogger").glob("*.h"))
        known = [name for name in prototypes() if name.startswith("nl_")]
        self.assertEqual(len(known), len(re.findall(r"^(?:extern )?NL_API ", declared, flags=re.M)))

    def test_list_is_sorted(self):
        lines = [line for line in LIST.read_text().splitlines() if not line.startswith("#")]
        self.assertEqual(lines, sorted(lines))
        self.assertEqual(len(lines), len(set(lines)))

    def test_says_what_to_do(self):
        then = ["symbol nl_a@NL_0 void (int)", "symbol nl_b@NL_0 void (void)", "struct nl_s size 8"]
        now = ["symbol nl_a@NL_1 void (int)", "struct nl_s size 16", "symbol nl_c@NL_0 void (void)"]
        said = list(differences(then, now))
        self.assertEqual(len(said), 4)
        self.assertEqual(said[0], f"struct nl_s changed: {GROWN}:\n    was: struct nl_s size 8\n    is:  struct nl_s size 16")
        self.assertIn(f"symbol nl_a changed: {BROKEN}", said[1])
        self.assertEqual(said[2], f"symbol nl_b is gone: {BROKEN}")
        self.assertEqual(said[3], f"symbol nl_c is new: {ADDED}:\n    symbol nl_c@NL_0 void (void)")
        self.assertEqual(list(differences(then, then)), [])


def print_list():
    import tempfile

    print("# The interface on which programs compiled against the library rely, on 64-bit machines. tests/program/test_abi.py")
    print("# checks it, describes which lines may change, and prints this file with --print.")
    with tempfile.TemporaryDirectory() as scratch:
        print("\n".join(sorted(symbols() + layout(scratch))))


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        print_list()
    else:
        support.main()
