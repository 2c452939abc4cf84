"""Schemas: nlschema's header compiles for any schema, every error is reported, and logs are checked."""
import html.parser
import json
import os
import re
import subprocess
import unittest

import support

DPSS = support.SOURCE / "examples/dpss/dpss.schema"
CXX = os.environ.get("NL_CXX", "c++")
INCLUDE = (support.SOURCE / "libnetlogger/include").resolve()

# Replaces NL_EVENT in a netlogger.h without it: accepts any arguments and logs the event without its fields.
STUB = """
#include_next <netlogger.h>
#ifndef NL_EVENT
static inline void stub_event(nl_log *log, nl_level level, const char *event, ...) 
{
    nl_write(log, level, event, NULL);
}
#define NL_EVENT(...) stub_event(__VA_ARGS__)
#define NL_BYTES(data, size) ((nl_string){(data), (size)})
#endif
"""

EVERY_TYPE = """
[schema]
name=every.type
description=one field of each type

[All-Types]
level=debug
description=has everything
B=bool
I8=int8
I16=int16
I32=int32
I64=int64; ns; a time
U8=uint8
U16=uint16
U32=uint32
U64=uint64
F=float
D=double; s
S=string; ; text
X=bytes
E=enum(read|write|read/write)
optional=S; E

[None]
"""

WORDS = """auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool bool
class namespace template this new delete operator private public protected virtual friend try catch throw typename using
and or not xor bitand bitor compl and_eq or_eq xor_eq not_eq true false nullptr constexpr decltype noexcept thread_local
static_assert alignas alignof explicit export mutable typeid wchar_t char16_t size_t int64_t uint8_t log errno unix linux
stdin NULL asm nl_write NL.LOG nl_site_ NL.VALUE.1- nl_string __func__ __attribute__ _x __LINE__ FINAL override main printf""".split()


class Nlschema(support.Case):
    def setUp(self):
        super().setUp()
        self.nlschema = support.program("nltools/nlschema")

    def schema(self, text):
        path = self.scratch / "a.schema"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run_schema(self, command, path, *arguments, status=0, **options):
        result = self.run_program(self.nlschema, command, path, *arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr + result.stdout)
        return result

    def stub(self):
        """Returns a directory with a netlogger.h that has NL_EVENT."""
        folder = self.scratch / "stub"
        folder.mkdir(exist_ok=True)
        (folder / "netlogger.h").write_text(STUB)
        return folder

    def compile(self, text, user=""):
        """Compiles a schema's header and its users, as C and as C++, with all warnings as errors."""
        header = self.scratch / "schema.h"
        self.run_schema("header", self.schema(text), "-o", header)
        stub = self.stub()
        for compiler, standard, suffix in [
            (support.CC, "c11", "c"), (support.CC, "gnu11", "c"), (CXX, "c++11", "cc"), (CXX, "gnu++20", "cc"),
        ]:
            source = self.scratch / f"user.{suffix}"
            source.write_text('#include "schema.h"\n#include "schema.h"\n' + user)
            result = self.run_program(*compiler.split(), f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                                      "-I", stub, "-I", INCLUDE, "-I", self.scratch, source)
            self.assertEqual(result.returncode, 0, f"{compiler} -std={standard}: {result.stderr}")
        return header.read_text()

    def mistakes(self, text, *expected):
        """Checks that nlschema reports exactly the expected errors, in order. Each is "LINE: text", with .* as a wildcard."""
        path = self.schema(text)
        result = self.run_schema("header", path, status=1)
        self.assertEqual(result.stdout, "")
        lines = result.stderr.splitlines()
        for line in lines:
            self.assertTrue(line.startswith(f"nlschema: {path}:"), line)
        found = [line.removeprefix(f"nlschema: {path}:") for line in lines]
        self.assertEqual(len(found), len(expected), result.stderr)
        for one, pattern in zip(found, expected):
            self.assertRegex(one, "^" + pattern)

    def test_header_of_every_type(self):
        text = self.compile(EVERY_TYPE, """
            void use(nl_log *log);
            void use(nl_log *log)
            {
                nl_string x = {"a", 1};
                every_type_all_types(log, true, 1, 2, 3, 4, 5, 6, 7, 8, 9.5f, 10.5, "s", x, EVERY_TYPE_ALL_TYPES_E_READ_WRITE);
                every_type_all_types_required(log, true, 1, 2, 3, 4, 5, 6, 7, 8, 9.5f, 10.5, x);
                every_type_none(log);
            }""")
        flat = re.sub(r"\s+", " ", text)
        self.assertIn('NL_EVENT(log, NL_DEBUG, "All-Types", "B", b, "I8", i8,', flat)
        self.assertIn('"E", every_type_all_types_e_name(e));', flat)
        self.assertIn('NL_EVENT(log, NL_USAGE, "None");', flat)
        self.assertIn("I64: a time [ns]", flat)

    def test_words_of_c_and_of_the_library(self):
        events = [WORDS[i : i + 16] for i in range(0, len(WORDS), 16)]
        text = "[schema]\nname=words\n"
        for i, names in enumerate(events):
            text += f"[E{i}]\n" + "".join(f"{name}=int32\n" for name in names)
        text += "".join(f"[{word}]\n" for word in WORDS if word not in ("_x",))
        self.compile(text, "#include <errno.h>\n#include <stdio.h>\n")

    def test_functions_that_are_not_to_be_had(self):
        self.mistakes("[schema]\nname=static\n[assert]\n", "3: the event assert has the reserved C name static_assert")
        self.mistakes("[schema]\nname=nl\n[Write]\n", "3: the event Write has the reserved C name nl_write")
        self.mistakes("[schema]\nname=size\n[t]\n", "3: .*size_t")
        self.compile("[schema]\nname=nl\nprefix=mine\n[Write]\n")

    def test_hostile_texts(self):
        evil = r'*/ int x; /* // ??/ ???/ ??/\n*/#error \t\r"\\" %s%n | <b>&amp;`*_[](x) ' + "\u202e\u202a /* \\\\"
        path = f"[schema]\nname=evil\ndescription={evil}\n[E]\ndescription={evil}\nF=int32; {evil}; {evil}\n"
        path += 'G=enum("|*/|??/|\\\\|%s|x\\n y|/*|é|;); ' + evil + "\n"
        # The values' C names differ only in the number of underscores.
        self.mistakes(path, *["7: .*the value .* of G of E have the same C name, EVIL_E_G__"] * 4)
        path = path.replace('"|*/|??/|\\\\|%s|', '"|*/|??/|%s; "|').replace("|/*|é|;)", "|;;;;)")
        header = self.compile(path)
        self.assertIn(r'return "\?\?/";', header)
        schema = json.loads(self.run_schema("json", self.schema(path)).stdout)
        self.assertEqual(schema["events"][0]["fields"][1]["values"], ['"', "*/", "??/", '%s; "', "x\n y", ";;;;"])
        self.assertTrue(schema["description"].endswith("/* \\"))
        for line in self.run_schema("doc", self.schema(path)).stdout.splitlines():
            if line.startswith("|"):
                self.assertEqual(len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)), 5, line)
                self.assertNotIn("<b>", line)
        page = self.run_schema("doc", self.schema(path), "--format=html").stdout
        self.assertNotIn("<b>", page)
        self.assertNotIn("\u202e", page)

    @support.long
    def test_thousand_events(self):
        text = "[schema]\nname=many\n"
        for i in range(1000):
            text += f"[Event.{i}]\ndescription=number {i}\n" + "".join(f"FIELD.{f}=int64; bytes; {f}\n" for f in range(5))
        self.compile(text)
        self.assertEqual(len(json.loads(self.run_schema("json", self.schema(text)).stdout)["events"]), 1000)

    def test_mistakes_of_the_file(self):
        self.mistakes("", " missing .schema.", " no event is declared")
        self.mistakes("# nothing\n", "1: missing .schema.", "1: no event")
        self.mistakes(b"[schema]\nname=a\xff\n[E]\nF=int32; \0\n", "1: .schema. has no name", "2: not UTF-8", "4: not UTF-8")
        self.mistakes("[schema\n[E] x\nA=int32\n[]\n[a b]\n=int8\nx",
                      "1: invalid section", "1: missing .schema.", "2: invalid section", '4: "" is not a name', '5: "a b" is not a name',
                      "7: expected", "7: no event")
        self.mistakes("name=x\n[schema]\nname=1x\nprefix=_\nfoo=\n[E]\nA B=int8\n=int8\n",
                      r"1: expected \[schema\] or \[EVENT\] before the first KEY=VALUE", '3: name: "1x"',
                      '4: prefix: "_"', "5: .* no key foo", '7: "A B"', '8: ""')
        result = self.run_schema("json", self.scratch / "none", status=1)
        self.assertEqual(result.stderr, f"nlschema: {self.scratch}/none: No such file or directory\n")

    def test_mistakes_of_events(self):
        self.mistakes(
            "[schema]\nname=a\n[E]\nA=int32\nA=int64\nB=\nC=integer\nD=enum()\nF=enum(a\nG=enum(a|a||b)\nH=string text\n"
            "HOST=string\nlevel=Loud\ndescription=\\q\noptional=A;Z\n\n[E]\nA=bool\n[e]\n[A.b]\n[A-B]\n[A]\nX.Y=bool\nX-Y=bool\n",
            "5: A is repeated; it already appears in line 4", '6: B: "" is not a type', '7: C: "integer" is not a type',
            "8: D: an enum has no values", r"9: F: the enum has no \)", "10: G: the value a is repeated",
            "10: G: an enum has an empty value", '11: H: "; UNIT; DESCRIPTION" must follow the type', "12: every event has HOST",
            '13: "Loud" is not a level; use one of Emergency, .*Debug', r"14: description: invalid escape", '15: .* no field "Z"', "17: .*repeated; it already appears in line 3",
            "18: A is repeated; it already appears in line 4", "19: the event E and the event e have the same C name, a_e",
            "21: the event A.b and the event A-B have the same C name, a_a_b", "24: X.Y and X-Y have the same C name, x_y")

    def test_sixteen_fields_are_the_most(self):
        fields = "".join(f"F{i}=int32\n" for i in range(16))
        self.compile("[schema]\nname=a\n[E]\n" + fields)
        self.mistakes("[schema]\nname=a\n[E]\n" + fields + "G=int8\nH=int8\n", "20: G is field 17 of E; the maximum is 16")

    def test_names_in_quotes_are_fields(self):
        text = '\ufeff[schema]\r\nname=a\r\n["schema"]\r\n"level"=int32\r\n"optional"=bool\r\nlevel=Error\r\noptional="level"\r\n'
        self.mistakes(text, '4: every event has level', '7: .*no field')
        text = '[E]\nEncoding=int32\n"description"=string\n["schema"]\n[schema]\nname=a\n'
        self.compile(text)
        events = json.loads(self.run_schema("json", "-", input=text).stdout)["events"]
        self.assertEqual([e["name"] for e in events], ["E", "schema"])
        self.assertEqual([f["name"] for f in events[0]["fields"]], ["Encoding", "description"])

    def test_wrong_use(self):
        for arguments in [[], ["header"], ["nonsense", DPSS], ["header", DPSS, "x"], ["doc", "--strict", DPSS],
                          ["check", "--format=html", DPSS], ["header", "--json", DPSS], ["check", "-n", "1", DPSS]]:
            result = self.run_program(self.nlschema, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertTrue(result.stderr.startswith("nlschema: "), result.stderr)
        self.assertEqual(self.run_program(self.nlschema, "header", DPSS, "-o", "/dev/full").returncode, 1)
        output = self.scratch / "kept.h"
        output.write_text("kept")
        self.run_schema("header", self.schema("[x]"), "-o", output, status=1)
        self.assertEqual(output.read_text(), "kept", "a bad schema leaves the old header alone")

    def test_doc(self):
        markdown = self.run_schema("doc", self.schema(EVERY_TYPE)).stdout
        self.assertIn("\n## All-Types\n\nLevel Debug. has everything\n\n| Field | Type | Unit | Description |\n", markdown)
        self.assertIn("\n| I64 | int64 | ns | a time |\n", markdown)
        self.assertIn("\n| E | enum(read\\|write\\|read/write), optional |  |  |\n", markdown)
        text = self.run_schema("doc", self.schema(EVERY_TYPE), "--format=text").stdout
        self.assertRegex(text, r"\n  I64    int64 +ns    a time\n")
        page = self.run_schema("doc", self.schema(EVERY_TYPE), "--format=html").stdout
        self.assertIn("<tr><td>I64</td><td>int64</td><td>ns</td><td>a time</td></tr>", page)
        opened = []

        class Tags(html.parser.HTMLParser):
            def handle_starttag(self, tag, attributes):
                if tag != "meta":
                    opened.append(tag)

            def handle_endtag(self, tag):
                assert opened.pop() == tag, tag

        Tags().feed(page)
        self.assertEqual(opened, [])

    def check(self, schema, log, *arguments, status=1):
        path = self.scratch / "a.log"
        path.write_text(log)
        result = self.run_schema("check", self.schema(schema), "--json", *arguments, path, status=status)
        report = json.loads(result.stdout)
        return report, {k["kind"]: k for k in report["kinds"]}

    def test_check_of_values(self):
        good = {
            "bool": "true false 1 0", "int8": "-128 127 +1 -0", "int32": "-2147483648 2147483647 007",
            "int64": "-9223372036854775808 9223372036854775807", "uint8": "0 255", "uint64": "0 18446744073709551615",
            "float": "1 -1.5e3 3e38 inf nan", "double": "1e300 0.1 -0", "string": 'a "" "x y"', "bytes": '"\\x00" x',
            "enum(a|b c)": 'a "b c"',
        }
        wrong = {
            "bool": 'yes "" TRUE 2', "int8": 'x 1.5 "" - + 1e3 0x1 " 1" "1 " "1\\x00" 1- --1 +-1', "uint64": "x 1.0 -",
            "float": '1.5x "" .', "double": '"1,5"',
        }
        beyond = {
            "int8": "128 -129", "int16": "32768 -32769", "int32": "2147483648 -2147483649 99999999999999999999999999",
            "int64": "9223372036854775808", "uint8": "256 -1", "uint16": "65536", "uint32": "4294967296",
            "uint64": "18446744073709551616 -1", "float": "1e39 -3.5e38",
        }
        strange = {"enum(a|b c)": 'A b "" "a\\x00"'}
        for table, kind in [(good, None), (wrong, "wrong type"), (beyond, "out of range"), (strange, "not in enum")]:
            for of_type, values in table.items():
                values = re.findall(r'"[^"]*"|\S+', values)
                log = "".join(f"DATE=20000101000000 HOST=h PROG=p LVL=Usage NL.EVNT=E F={value}\n" for value in values)
                _, kinds = self.check(f"[schema]\nname=a\n[E]\nF={of_type}\n", log, status=1 if kind else 0)
                self.assertEqual({name: found["count"] for name, found in kinds.items()}, {kind: len(values)} if kind else {},
                                 (of_type, kinds))

    def test_check_of_records(self):
        schema = "[schema]\nname=a\n[E]\nlevel=Error\nA=int32\nB=string\noptional=B\n"
        start = "DATE=20000101000000 HOST=h PROG=p "
        log = "".join(start + rest + "\n" for rest in [
            "LVL=Error NL.EVNT=E A=1", "NL.EVNT=E B= A=1 NL.SEQ=5", "LVL=Error NL.EVNT=E", "LVL=Usage NL.EVNT=E A=1",
            "LVL=Loud NL.EVNT=E A=1", "LVL=Error NL.EVNT=E A=1 A=2", "LVL=Error NL.EVNT=E A=1 a=2",
            "LVL=Error NL.EVNT=F X=1", "LVL=Error X=1", 'LVL=Error NL.EVNT="E\\x00" A=1'])
        report, kinds = self.check(schema, log)
        self.assertEqual({k: v["count"] for k, v in kinds.items()}, {
            "unknown event": 3, "wrong level": 2, "missing field": 1, "unexpected field": 1, "repeated field": 1})
        self.assertEqual((report["records"], report["deviations"]), (10, 5))
        self.assertEqual([f["record"] for f in kinds["wrong level"]["first"]], [4, 5])
        self.assertEqual(kinds["missing field"]["first"][0],
                         {"file": str(self.scratch / "a.log"), "record": 3, "event": "E", "what": "A is missing"})
        self.assertEqual(self.check(schema, log, "--strict")[0]["deviations"], 8)
        unknown = start + "LVL=Error NL.EVNT=F\n"
        self.check(schema, unknown, status=0)
        self.check(schema, unknown, "--strict", status=1)
        self.check(schema, "ts=2000-01-01T00:00:00Z event=E level=Error A=1\n", status=0)
        self.check(schema, unknown + "what is this\n", status=1)

    def test_check_of_some_records(self):
        schema = "[schema]\nname=a\n[E]\nA=int32\n"
        log = "".join(f"DATE=2026010112000{i}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E A={value}\n" for i, value in enumerate("x1y2z"))
        report, kinds = self.check(schema, log, "--since", "2026-01-01T12:00:01", "--until", "2026-01-01T12:00:04")
        self.assertEqual((report["records"], [f["record"] for f in kinds["wrong type"]["first"]]), (3, [3]))
        self.check(schema, log, "--where", "A == 1 || A == 2", status=0)

    def test_check_shows_the_first_ten(self):
        line = "DATE=20000101000000 HOST=h PROG=p LVL=Usage NL.EVNT=E F=\"\\x1b[31m\\n\"\n"
        path = self.scratch / "a.log"
        path.write_text(line * 25)
        result = self.run_schema("check", self.schema("[schema]\nname=a\n[E]\nF=int8\n"), path, path, status=1)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[:11], [f'{path}: record {i}: E: F: " [31m " is not of type int8' for i in range(1, 11)] +
                         ["  and 40 more: wrong type"])
        self.assertEqual(lines[-2:], ["50 records, 50 deviations from a", "  wrong type             50"])
        result = self.run_schema("check", DPSS, self.scratch / "none.log", status=1)
        self.assertIn("No such file", result.stderr)

    def library_flags(self):
        """Returns the flags that compile a program with the library of the build directory, and the flags that link it."""
        library = support.BUILD.resolve() / "libnetlogger"
        if not (library / ".libs/libnetlogger.so").exists():
            self.skipTest("there is no shared library in this build")
        return f"-I'{INCLUDE}'", f"-L'{library}/.libs' -Wl,-rpath,'{library}/.libs' -lnetlogger"

    def test_bench(self):
        cflags, libs = self.library_flags()
        flags = ["--cflags", f"-I'{self.stub()}' {cflags}", "--libs", libs]
        path = self.schema(EVERY_TYPE)
        result = self.run_schema("bench", path, "-n", "1000", "--json", *flags,
                                 env={**os.environ, "CC": support.CC, "NETLOGGER_ON": "0"})
        table = json.loads(result.stdout)
        self.assertEqual([row["event"] for row in table], ["All-Types", "None"])
        for row in table:
            self.assertGreater(row["bytes"], 50)
            self.assertGreater(row["ns"], 0)
        result = self.run_schema("bench", path, "-n", "10", *flags)
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()], ["event", "All-Types", "None"])

    def test_what_the_functions_log(self):
        cflags, libs = self.library_flags()
        probe = self.scratch / "probe.c"
        probe.write_text("#include <netlogger.h>\n#ifndef NL_EVENT\n#error none\n#endif\n")
        if self.run_program(*support.CC.split(), "-fsyntax-only", "-I", INCLUDE, probe).returncode != 0:
            self.skipTest("netlogger.h has no NL_EVENT")
        path = self.schema(EVERY_TYPE)
        self.run_schema("header", path, "-o", self.scratch / "schema.h")
        source, program, log = (self.scratch / name for name in ("user.c", "user", "user.log"))
        source.write_text(r"""
            #include "schema.h"
            int main(int argc, char **argv)
            {
                nl_log *log = nl_open("user", argv[argc - 1]);
                nl_set_level(log, NL_DEBUG);
                nl_string x = {"\0\xff\n", 3};
                every_type_all_types(log, true, INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN, UINT8_MAX, UINT16_MAX, UINT32_MAX,
                                     UINT64_MAX, 3.4e38f, 1e300, "s \"", x, EVERY_TYPE_ALL_TYPES_E_READ_WRITE);
                every_type_all_types_required(log, false, 1, 2, 3, 4, 5, 6, 7, 8, 9.5f, 10.5, x);
                every_type_none(log);
                every_type_none(NULL);
                return nl_close(log) == NL_OK ? 0 : 1;
            }""")
        command = f"{support.CC} -Wall -Wextra -Werror '{source}' -o '{program}' -I'{self.scratch}' {cflags} {libs}"
        result = self.run_program("sh", "-c", command)
        self.assertEqual(result.returncode, 0, result.stderr)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NETLOGGER_")}
        self.assertEqual(self.run_program(program, log, env=environment).returncode, 0)
        report = json.loads(self.run_schema("check", path, "--strict", "--json", log).stdout)
        self.assertEqual((report["records"], report["deviations"]), (3, 0))
        self.assertIn(b"U64=18446744073709551615 ", log.read_bytes())
        self.assertIn(b"E=read/write", log.read_bytes())

    def test_bench_that_cannot_be(self):
        for environment, flags, words in [
            ({"CC": "no-such-compiler"}, ["--cflags", "", "--libs", ""], "no-such-compiler"),
            ({"CC": '"cc'}, ["--cflags", "", "--libs", ""], "quote"),
            ({"CC": "false"}, ["--cflags", "", "--libs", ""], "false failed"),
            ({"PKG_CONFIG": "false"}, [], "false failed"),
            ({"TMPDIR": "/no-such-folder"}, [], "/no-such-folder"),
        ]:
            result = self.run_schema("bench", DPSS, *flags, env={**os.environ, **environment}, status=1)
            self.assertTrue(result.stderr.startswith("nlschema: bench: "), result.stderr)
            self.assertIn(words, result.stderr)
            self.assertEqual(result.stdout, "")
        for count in ["0", "-1", "x", "", "1x"]:
            self.run_schema("bench", DPSS, "-n", count, status=2)

    def test_the_example_logs_what_its_schema_says(self):
        server, get = support.program("examples/dpss/dpss_server"), support.program("examples/dpss/dpss_get")
        data = self.scratch / "data"
        data.write_bytes(os.urandom(1_000_001))
        port = support.free_port()
        logs = [self.scratch / "server.log", self.scratch / "client.log"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NETLOGGER_")}
        process = self.start(server, "--listen", f"127.0.0.1:{port}", data, env={**environment, "NETLOGGER_DEST": str(logs[0])},
                             stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port), what="the server listens")
        result = self.run_program(get, "-o", self.scratch / "copy", f"127.0.0.1:{port}",
                                  env={**environment, "NETLOGGER_DEST": str(logs[1])})
        self.assertEqual(result.returncode, 0, result.stderr)
        support.socket.create_connection(("127.0.0.1", port)).sendall(b"no request at all, surely" * 9)
        support.wait_until(lambda: "BadRequest" in logs[0].read_text(), what="the server refuses")
        process.terminate()
        self.assertEqual(process.wait(10), 0)
        report = json.loads(self.run_schema("check", DPSS, "--strict", "--json", *logs).stdout)
        self.assertEqual(report["deviations"], 0)
        self.assertGreater(report["records"], 16 * 8)
        logged = set(re.findall(r"NL\.EVNT=(\S+)", logs[0].read_text() + logs[1].read_text()))
        declared = {e["name"] for e in json.loads(self.run_schema("json", DPSS).stdout)["events"]}
        self.assertEqual(logged, declared)
        self.compile(DPSS.read_text())


if __name__ == "__main__":
    support.main()
