#!/usr/bin/env python3
"""Reports missing and obsolete documentation: documented.py SOURCE BUILD. The exit status is 1 if there is a problem.

    functions    of libnetlogger/abi, and macros with arguments: each has a Doxygen comment in its header and a use in
                 doc/api-examples; doc/ and the headers name no other function
    options      of each program and command: the manual page lists the options that --help lists, in the sections whose titles name the
                 command; no page names another option
                 A manual page lists the options of URLs, and the environment variables that belong to no option.
    words        commands, directives and keys of files: the table WORDS
    variables    environment variables: no page names an unknown one. VARIABLES gives the pages for variables that have no option row
    sensors      events and fields: nlsensor --table equals doc/sensors.md
    events       of the programs themselves, as in the source: doc/events.md or doc/sensors.md lists each of them with its fields, and
                 no other

Programs that are not built are skipped and reported.
"""
import collections
import functools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / "doc" / "site"), str(pathlib.Path(__file__).resolve().parent.parent / "doc")]
import api  # noqa: E402
import man_options  # noqa: E402

PROGRAMS = {"netlogd": "netlogd/netlogd", "netlogctl": "netlogd/netlogctl", "nlsort": "nlsort/nlsort", "nlconv": "nltools/nlconv",
            "nlwrite": "nltools/nlwrite", "nlstat": "nltools/nlstat", "nldiag": "nltools/nldiag", "nlv": "nlv/nlv",
            "nlrecover": "nltools/nlrecover", "nlschema": "nltools/nlschema", "nlsensor": "nlagent/nlsensor", "nlkernel": "nlkernel/nlkernel",
            "nlarchive": "nltools/nlarchive", "nlagent": "nlagent/nlagent", "nlagentd": "nlagent/nlagentd"}
COMMON = {"help", "usage", "version"}
HEADERS = "libnetlogger/include/netlogger/"
RULES_KEY = r'strcmp\(key, "(\w+)"\)|\.key, "(\w+)"|nl_section_value\(section, "(\w+)"'
ITEM = r"^\.(?:It )?Cm (\w+)(?: Ar \w+)?$"
SYNOPSIS = r"(?:^\.Cm|\|) (\w+)", ".Sh SYNOPSIS", ".Sh"
QUOTED = r'"(\w+)"'
# The kind of word; the places that define it; the places that document it. A place is a file and a pattern, and optionally the text
# before and after the relevant part; or the relevant part of a program's --help=json.
WORDS = [
    ("command of nlkernel", [("nlkernel --help=json", "commands")], [("doc/man/nlkernel.1", r"^\.B nlkernel (\w+)", ".SH SYNOPSIS", ".SH")]),
    ("command of nlkernel rules", [("nlkernel rules --help=json", "commands")],
     [("doc/man/nlkernel.1", r"^\.B nlkernel rules (\w+)", ".SH SYNOPSIS", ".SH")]),
    ("command of nlschema", [("nlschema --help=json", "commands")],
     [("doc/man/nlschema.1", *SYNOPSIS), ("doc/man/nlschema.1", ITEM, ".Sh DESCRIPTION", ".Sh")]),
    ("command of nlarchive", [("nlarchive --help=json", "commands")],
     [("doc/man/nlarchive.1", *SYNOPSIS), ("doc/man/nlarchive.1", ITEM, ".Sh DESCRIPTION", ".Sh")]),
    ("command of nlagent", [("nlagent --help=json", "commands")],
     [("doc/man/nlagent.1", *SYNOPSIS), ("doc/man/nlagent.1", ITEM, ".Sh DESCRIPTION", ".Sh")]),
    ("directive of netlogd", [("netlogd --help=json", "directives")],
     [("doc/man/netlogd.conf.5", r"^\.It Ic ([a-z-]+)"), ("packaging/netlogd.conf", r"^#?([a-z-]+) \S+$|^#?(output|listen) ")]),
    ("section of nlv's files", [("common/requests/drawing.c", r'(?:strcmp|prefix)\(section, "(\w+) ?"', "bool read_section(", "\n}")],
     [("doc/man/nlv.1", r"^\[(\w+)", ".Sh WHAT IS DRAWN", ".Sh")]),
    ("key of nlv's files", [("common/requests/drawing.c", r'(?:read_text|read_list|g_key_file_get_\w+)\(file, section, "(\w+)"')],
     [("doc/man/nlv.1", r"^\.Cm ([a-z]+)(?:=\w+)?$|^([a-z]+)=", ".Sh WHAT IS DRAWN", ".Sh")]),
    ("key of nlschema's files", [("nltools/schema/schema.c", r'strcmp\((?:e->)?key, "(\w+)"\)')],
     [("doc/man/nlschema.1", r"^(?:\.Ql )?([a-z]+)=", ".Sh DESCRIPTION", ".Sh")]),
    ("section of a rules file", [("common/synthesis/rules.c", QUOTED, "bool read_section(", "\n}"),
                                ("common/synthesis/rules.c", r'\{"(\w+)", \w+_take,')],
     [("doc/synthesis.md", r"`\[([a-z]+)[ \]]")]),
    ("key of a rules file", [("common/synthesis", r'strcmp\((?:setting->)?key, "(\w+)"\)|\{"(\w+)", ROLE_|section, "(\w+)"'),
                         *((f"nlkernel/{name}.c", RULES_KEY) for name in ("kernel_sum", "rules_command", "rules_file", "summary")),
                         ("nlkernel/rules/application.rules", r"^(help) =")],
     [("doc/synthesis.md", r"\b([a-z]+) =(?!=)")]),
    ("key of a protocol's rules", [("nlkernel/trace/description.c", r'strcmp\(key, "(\w+)"\)')],
     [("doc/man/nlkernel.1", r"^([a-z]+) =|, ([a-z]+) =", ".SS Protocols in rules files", ".SS Fields")]),
    ("function of a rules file", [("common/synthesis/make.c", r'\{"(\w+)", convert_')], [("doc/synthesis.md", r"^\| `(\w+)\(")]),
    ("column of a report", [("nlkernel/summary.c", r'\{"(\w+)", COLUMN_')], [("doc/synthesis.md", r"(\w+)(?=[ \w]*` \|)", "`columns =`", "\n")]),
    ("order of a report", [("nlkernel/summary.c", QUOTED, "orders[] =", ";")], [("doc/synthesis.md", r"`(\w+)`", "`order =`", "\n")]),
    ("plot of a report", [("nlkernel/summary.c", r'"(\w+)"', "plots[] =", ";")], [("doc/synthesis.md", r"`(\w+)`", "`plot =`", "\n")]),
]
# Environment variables that have no option row, and the pages that must document them, by source file. The first
# matching row counts.
VARIABLES = {
    "bindings/classic": ["doc/man/netlogger.7"], "common/service/inherited.c": ["doc/man/netlogd.8", "doc/man/nlagentd.8"],
    "common/agents": ["doc/man/nlagent.1"],
    "common/program/temporary_file.c": ["doc/formats.md", "doc/man/nlconv.1", "doc/man/nlkernel.1"],
    "libnetlogger/log/trace_context.c": ["doc/man/netlogger.7"],
    "nlagent/nlagent.c": ["doc/man/nlagent.1"], "nlkernel": ["doc/man/nlkernel.1"], "nlv": ["doc/man/nlv.1"],
    "nltools/schema": ["doc/man/nlschema.1"],
}
FOLDERS = ["bindings/classic", "core", "libnetlogger", "common", "netlogd", "nlagent", "nlkernel", "nlsort", "nltools", "nlv"]
EVENT = r"[A-Z]\w*(?:\.[A-Z]\w*)*"
FIELD = r"[A-Z][A-Z0-9]*(?:\.[A-Z0-9]+)*"

def stripped(code, strings=False):
    """Returns C code without comments. Also removes the content of strings, unless strings is true."""
    def kept(found):
        return "" if found[0].startswith("/") else found[0] if strings else '""'

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', kept, code, flags=re.S)


def arguments(code, at):
    """Returns the arguments of the call whose parenthesis opens just before code[at]."""
    parts, depth = [""], 1
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|.', code[at:], re.S):
        depth += (found[0] in "([{") - (found[0] in ")]}")
        if depth == 0:
            break
        if found[0] == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += found[0]
    return parts


@functools.cache
def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


class Tree:
    """A source tree and its build directory. problems collects the problems."""

    def __init__(self, source, build):
        self.source, self.build = pathlib.Path(source), pathlib.Path(build)
        self.problems, self.passed_over = [], []

    def say(self, kind, things, what):
        self.problems += [f"{kind}: {thing} {what}" for thing in sorted(things)]

    def text(self, path):
        """Returns the content of a file, or of all C files of a directory."""
        path = self.source / path
        return "\n".join(file.read_text() for file in sorted(path.rglob("*.c"))) if path.is_dir() else path.read_text()

    def run(self, program, *options):
        return output_of(str(self.build / PROGRAMS[program]), *options)

    def pages(self):
        """Returns every page except HACKING.md, which is about the source."""
        return [self.source / "README.md", *(self.source / "doc").rglob("*.md"), *(self.source / "doc" / "man").iterdir()]

    # ---- functions ----

    def check_functions(self):
        public = {name for name in re.findall(r"^symbol (\w+)", self.text("libnetlogger/abi"), re.M) if not name.startswith("nl_private")}
        headers = "\n".join(path.read_text() for path in api.headers(self.source))
        known = set(re.findall(r"\b(?:nl_\w+|NL_\w+|NetLogger\w+)", stripped(headers)))
        known |= public | set(re.findall(r'"(NL_[A-Z_]+)"', self.text("nlagent/agent/definition.c") + self.text("bindings/classic/nl.c")))
        if shutil.which("doxygen") is None:
            self.passed_over.append("functions' words: there is no doxygen")
        else:
            with tempfile.TemporaryDirectory() as scratch:
                parsed = api.read(self.source, pathlib.Path(scratch))
            self.say("function", api.undocumented(parsed), "has no words in its header")
            seen = {member.name for part in parsed for member in part.members}
            self.say("function", {name for name in public - seen if not name.startswith("NetLoggerOld")}, "is in no public header")
        examples = "\n".join(stripped(path.read_text()) for path in sorted((self.source / "doc" / "api-examples").glob("*.c")))
        inline = set(re.findall(r"^static inline \w+ (nl_\w+)\(", headers, re.M)) - {"nl_bytes"}
        wanted = {name.replace("NetLoggerOld", "NetLogger") for name in public} | inline | {"NL_EVENT", "NL_MARKER", "NL_BYTES"}
        self.say("function", wanted - set(re.findall(r"\b(\w+)\(", examples)) - set(re.findall(r"\b(\w+),", examples)), "is used by no example")
        for path in self.pages() + api.headers(self.source):
            named = set(re.findall(r"\b(nl_[a-z]\w+|NL_[A-Z0-9_]*[A-Z0-9]|NetLogger[A-Z]\w*)\b(?!\.\w|/)", path.read_text()))
            self.say(path.name, named - known, "is not a name in a public header")

    # ---- options ----

    def check_options(self):
        options = {}
        for program, path in PROGRAMS.items():
            if not (self.build / path).exists():
                self.passed_over.append(f"options of {program}: it is not built")
                continue
            page = next((self.source / "doc" / "man").glob(f"{program}.[18]"), None)
            if page is None:
                self.say("program", [program], "has no manual page")
                continue
            page = page.read_text().replace("\\-", "-")
            self.check_listed([program], page, options)
        for path, has, wanted in man_options.pages(self.source, self.build):
            self.say(path.name, [".."] if has != wanted else [], "has lists of options that differ from --help: doc/man_options.py --write makes them")
        self.check_url_options()
        self.check_named_options(options)

    def check_url_options(self):
        """Checks that a manual page lists each group of URL options, and each environment variable that belongs to no option."""
        text = "\n".join(path.read_text() for path in (self.source / "doc" / "man").iterdir())
        for program in PROGRAMS:
            about = man_options.describe(self.build, program)
            if about is None:
                continue
            groups = {option["group"] for option in about["url_options"]}
            self.say(program, {f'"{group}"' for group in groups if not re.search(rf'^\.\\" url options \w+: {re.escape(group)}$', text, re.M)},
                     "is a group of options of URLs that no manual page lists")
            self.say(program, ["variables"] if about["variables"] and f'.\\" variables {program}\n' not in text else (), "are listed in no manual page")

    def check_listed(self, call, page, options):
        """Checks a program, or a command with its own options, against its --help=json."""
        about = man_options.describe(self.build, *call)
        listed = {option["name"] for option in about["options"] if option.get("command_line")}
        options[" ".join(call)] = listed | {word[2:] for word in call if word.startswith("--")}
        commands = [[*call, command["name"]] for command in about["commands"]]
        if commands and call[0] == "nlkernel":
            for command in commands:
                self.check_listed(command, page, options)
            return
        told = set(re.findall(r"--([a-z][a-z-]*)", "\n".join(self.items(page, " ".join(call[1:]))))) - {"usage"}
        self.say(" ".join(call), {f"--{name}" for name in listed - told - COMMON}, "is not in its manual page")
        self.say(" ".join(call), {f"--{name}" for name in told - listed}, "is in its manual page, and gone")

    @staticmethod
    def commands_in(title):
        """Returns each command of a list such as "report, schema run and bench"."""
        return set(re.split(", | and |\n", title)) - {""}

    def items(self, page, command):
        """Returns the headings of a manual page's items as text, such as "-o, --output=FILE". For a command: only in sections whose titles name it."""
        if command:
            parts = re.split(r"^\.S[SH] (.*)\n", page, flags=re.M)
            page = "\n".join(part for title, part in zip(parts[1::2], parts[2::2]) if command in self.commands_in(title))
        if re.search(r"^\.(?:Dd|It) ", page, re.M):
            return [re.sub(r"Fl -", "--", line) for line in re.findall(r"^\.It (.*)$", page, re.M) if "Fl -" in line]
        return [re.sub(r"\\f.", "", found) for found in re.findall(r"^\.TP\n(?:\.PD.*\n)?(.*)$", page, re.M) if "--" in found]

    def check_named_options(self, options):
        """Reports the options in the pages' commands (in backquotes, and on lines that begin with a program) that the program does not have."""
        for path in self.pages():
            text = path.read_text().replace("\\-", "-").replace("\\\n", " ")
            commands = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^\s*((?:nl[a-z]+|netlogd|netlogctl) .*)$", text, re.M)
            for shown in (found for command in commands for found in re.findall(r"(?<![\w./$-])((?:nl[a-z]+|netlogd|netlogctl) [^|;&`]*)", command)):
                call = max((call for call in options if f"{shown} ".startswith(f"{call} ")), key=len, default=None)
                named = set(re.findall(r" --([a-z][a-z-]*)", shown.split(" -- ")[0])) if call else set()
                self.say(path.name, {f"{call} --{name}" for name in named - options.get(call, named)}, "is no option")

    # ---- words, variables ----

    @staticmethod
    def found(pattern, text):
        """Returns the matches of all groups of the pattern."""
        return {name for found in re.finditer(pattern, text, re.M) for name in found.groups() if name}

    def names(self, path, pattern, begin="", end=""):
        """Returns the words at a place of WORDS; None if the place is a program that is not built."""
        if path.endswith(" --help=json"):
            about = man_options.describe(self.build, *path.split()[:-1])
            if about is None:
                return None
            return {row["name"] for row in (about["commands"] if pattern == "commands" else about["options"]) if pattern == "commands" or "file" in row}
        text = self.text(path)
        text = text.partition(begin)[2] if begin else text
        text = text.partition(end)[0] if end else text
        return self.found(pattern, text)

    def check_words(self):
        for what, sources, pages in WORDS:
            places = [(place[0], self.names(*place)) for place in sources + pages]
            self.passed_over += [f"{what}: {path} is not built" for path, names in places if names is None]
            self.say(what, {path for path, names in places if names is not None and not names}, "has none where it should: see WORDS")
            known = set().union(*(names or () for _, names in places[:len(sources)]))
            for path, told in (place for place in places[len(sources):] if place[1]):
                self.say(what, known - told, f"is not in {path}")
                self.say(what, told - known, f"is in {path}, and gone")

    def check_variables(self):
        known = {"NL_SENSOR_INTERVAL"}
        for program, path in PROGRAMS.items():
            if (self.build / path).exists():
                commands = [[]] if program != "nlkernel" else [[command["name"]] for command in man_options.describe(self.build, program)["commands"]
                                                               if command["name"] != "schema"]
                for command in commands:
                    about = man_options.describe(self.build, program, *command)
                    rows = about["options"] + about["url_options"] + about["variables"]
                    known |= {row["environment"] for row in rows if "environment" in row}
            else:
                self.passed_over.append(f"variables of {program}: it is not built")
        for path in sorted(path for folder in FOLDERS for path in (self.source / folder).rglob("*.c")):
            code, file = stripped(path.read_text(), strings=True), str(path.relative_to(self.source))
            read = self.found(r'(?:getenv|nl_environment_value)\("(\w+)"\)', code)
            if file in VARIABLES: # the options of no program contain the rows of these files
                read |= self.found(r'\.environment = "(\w+)"', code)
            known |= read | self.found(r'g_environ_setenv\(\w+, "(\w+)"', code)
            pages = next((pages for start, pages in VARIABLES.items() if file.startswith(start)), [])
            self.say("variable", read if not pages else (), f"is read in {file}, for which VARIABLES has no page")
            for page in pages:
                self.say("variable", {name for name in read if not re.search(rf"\b{name}\b", self.text(page))}, f"of {file} is not in {page}")
        for path in self.pages():
            named = self.found(r"^\.(?:It )?Ev (\w+)|\b((?:NETLOGGER|NETLOGD|NLAGENT)_[A-Z_]+)\b", path.read_text())
            self.say(path.name, named - known, "is a variable that nothing reads")

    # ---- sensors, events ----

    def check_sensors(self):
        program = self.build / PROGRAMS["nlsensor"]
        if not program.exists():
            self.passed_over.append("sensors: nlsensor is not built")
            return
        told = self.text("doc/sensors.md").splitlines()
        true = self.run("nlsensor", "--table").splitlines()
        true, told = collections.Counter(true), collections.Counter(told)
        self.say("sensor", (repr(line) for line in true - told), "is not in doc/sensors.md (nlsensor --table makes it)")
        self.say("sensor", (repr(line) for line in told - true), "is in doc/sensors.md, and gone")

    def events(self):
        """Returns the events that programs log on their own: name -> [fields near the name, all code that contains it]."""
        code = {path: stripped(path.read_text(), strings=True) for folder in FOLDERS for path in sorted((self.source / folder).rglob("*.[ch]"))}
        macros = dict(re.findall(r'^#define (NL_\w+) ("[^"]*") *$', "\n".join(code.values()), re.M))
        code = {path: re.sub(r"\bNL_\w+", lambda word: macros.get(word[0], word[0]), text) for path, text in code.items()}
        # NL_EVENT, and the functions that log an event: (the file that defines the function, its name, the index of the event's
        # parameter).
        loggers = [("", "NL_EVENT", 2)]
        for path, text in code.items():
            for static, name, parameters in re.findall(r"^(static )?[\w *]*?(\w+)\(([^()]*\bconst char \*event\b[^()]*)\)", text, re.M):
                loggers.append((path if static else "", name, [part.endswith("*event") for part in parameters.split(",")].index(True)))
        found = {}
        for path, text in code.items():
            which = {name: place for where, name, place in loggers if where in ("", path)}
            calls = list(re.finditer(rf"\b({'|'.join(which)})\(", text))
            for call, after in zip(calls, [*calls[1:], None]):
                given = arguments(text, call.end()) + [""] * 4
                rest = text[call.end():after and after.start()].partition("\n}")[0]
                beside = re.findall(rf'add\w*\(\w+, "({FIELD})"', rest) + re.findall(rf"\b({FIELD})=", given[3])
                for name in re.findall(rf'"({EVENT})"', given[which[call[1]]]):
                    found.setdefault(name, [set(), ""])[0].update(beside)
            # The last alternative is a table of events by index.
            for name in re.findall(rf'\bevent = "({EVENT})"|\] = "([A-Z]\w*(?:\.[A-Z]\w*)+)"', text):
                name = name[0] or name[1]
                found.setdefault(name, [set(), ""])
        for event, of in found.items():
            of[1] = "\n".join(text for text in code.values() if f'"{event}"' in text)
        return found

    def check_events(self):
        made, told = self.events(), {}
        for table in re.findall(r"^\| event (?:\(level\) )?\|.*\n(?:\|.*\n)+", self.text("doc/events.md"), re.M):
            for event, row in re.findall(rf"^\| `({EVENT})` (.*)", table, re.M):
                told[event] = set(re.findall(rf"`({FIELD})`", row)), "| fields |" in table
        of_sensors = set(re.findall(rf"^### ({EVENT})$", self.text("doc/sensors.md"), re.M))
        self.say("event", made.keys() - told.keys() - of_sensors, "is not in doc/events.md")
        self.say("event", told.keys() - made.keys(), "is in doc/events.md, and gone")
        for event in made.keys() & told.keys():
            (beside, code), (fields, all_of_them) = made[event], told[event]
            # FIELD.0 stands for numbered fields.
            there = {name for name in fields if re.search(rf'"{name.removesuffix(".0")}(?:\.%\w+)?"|\b{name}=', code)}
            self.say(f"field of {event}", beside - fields if all_of_them else (), "is not in doc/events.md")
            self.say(f"field of {event}", fields - there, "is in doc/events.md, and gone")

    def check(self):
        for check in self.check_functions, self.check_options, self.check_words, self.check_variables, self.check_sensors, self.check_events:
            check()
        return self.problems


if __name__ == "__main__":
    tree = Tree(*sys.argv[1:3])
    found = tree.check()
    print("\n".join([*found, *(f"passed over: {what}" for what in tree.passed_over)]))
    sys.exit(1 if found else 0)
