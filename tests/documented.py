#!/usr/bin/env python3
"""Says what is not documented, or documented and gone: documented.py SOURCE BUILD; exit 1 when there is anything.

    functions    of libnetlogger/abi: each has words in its header, by Doxygen, and a use in doc/api-examples; none is named in
                 doc/ or a header that is not there
    options      of each program, and of nlkernel's subcommands: what --help lists is what its manual page lists; no page names
                 another
    directives   of netlogd: the table of netlogd/main.c is what netlogd.conf(5) and packaging/netlogd.conf have
    sensors      events and fields: nlsensor --table is doc/sensors.md
    events       of the programs' own, as they stand in the source: each is in doc/events.md, and no other

What is not built is passed over, and said.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "doc" / "site"))
import api  # noqa: E402

PROGRAMS = {"netlogd": "netlogd/netlogd", "netlogctl": "netlogd/netlogctl", "nlsort": "nlsort/nlsort", "nlconv": "nltools/nlconv",
            "nlwrite": "nltools/nlwrite", "nlstat": "nltools/nlstat", "nldiag": "nltools/nldiag", "nlv": "nlv/nlv",
            "nlrecover": "nltools/nlrecover", "nlschema": "nltools/nlschema", "nlsensor": "nlagent/nlsensor", "nlkernel": "nlkernel/nlkernel",
            "nlarchive": "nltools/nlarchive", "nlagent": "nlagent/nlagent", "nlagentd": "nlagent/nlagentd"}
SUBCOMMANDS = {"nlkernel": ["list", "record", "live", "report", "schema run", "bench", "control", "graph", "symbols"],
               "nlschema": ["header", "doc", "check", "bench"], "nlarchive": ["load", "query", "info"]}
COMMON = {"help", "usage", "version"}
OWN_EVENTS = r"(?:NetLogger|Netlogd|Nlagent|Nlagentd)\.[A-Z]\w*(?:\.[A-Z]\w*)*"


class Tree:
    """A source tree and what was built of it; problems gathers what is wrong."""

    def __init__(self, source, build):
        self.source, self.build = pathlib.Path(source), pathlib.Path(build)
        self.problems, self.passed_over = [], []

    def say(self, kind, things, what):
        self.problems += [f"{kind}: {thing} {what}" for thing in sorted(things)]

    def text(self, path):
        return (self.source / path).read_text()

    def pages(self):
        """Every page of words, but for HACKING.md, which is about the inside."""
        return [self.source / "README.md", *(self.source / "doc").rglob("*.md"), *(self.source / "doc" / "man").iterdir()]

    # ---- functions ----

    def check_functions(self):
        public = {name for name in re.findall(r"^symbol (\w+)", self.text("libnetlogger/abi"), re.M) if not name.startswith("nl_private")}
        headers = "\n".join(path.read_text() for path in api.headers(self.source))
        known = set(re.findall(r"\b(?:nl_\w+|NL_\w+|NetLogger\w+)", re.sub(r"/\*.*?\*/", "", headers, flags=re.S)))
        if shutil.which("doxygen") is None:
            self.passed_over.append("functions' words: there is no doxygen")
        else:
            with tempfile.TemporaryDirectory() as scratch:
                parsed = api.read(self.source, pathlib.Path(scratch))
            self.say("function", api.undocumented(parsed), "has no words in its header")
            seen = {member.name for part in parsed for member in part.members}
            self.say("function", {name for name in public - seen if not name.startswith("NetLoggerOld")}, "is in no public header")
        examples = "\n".join(path.read_text() for path in sorted((self.source / "doc" / "api-examples").glob("*.c")))
        inline = set(re.findall(r"^static inline \w+ (nl_\w+)\(", headers, re.M)) - {"nl_bytes"}
        wanted = {name.replace("NetLoggerOld", "NetLogger") for name in public} | inline | {"NL_EVENT", "NL_MARKER", "NL_BYTES"}
        self.say("function", wanted - set(re.findall(r"\b(\w+)\(", examples)) - set(re.findall(r"\b(\w+),", examples)), "is used by no example")
        for path in self.pages() + api.headers(self.source):
            named = set(re.findall(r"\b(nl_[a-z]\w+)\b(?!\.\w|/)", path.read_text()))
            self.say(path.name, named - known, "is no name of a public header")

    # ---- options ----

    def help_of(self, program):
        path = self.build / PROGRAMS[program]
        calls = [[], *(name.split() for name in SUBCOMMANDS.get(program, []))]
        return "\n".join(subprocess.run([str(path), *call, "--help"], capture_output=True, text=True).stdout for call in calls)

    def check_options(self):
        options = {}
        for program, path in PROGRAMS.items():
            if not (self.build / path).exists():
                self.passed_over.append(f"options of {program}: it is not built")
                continue
            listed = set(re.findall(r"^ +(?:-\S(?:, )?)? *--([a-z][a-z-]*)", self.help_of(program), re.M)) - COMMON
            page = next((self.source / "doc" / "man").glob(f"{program}.[18]"), None)
            if page is None:
                self.say("program", [program], "has no manual page")
                continue
            items = "\n".join(self.items(page.read_text()))
            told = set(re.findall(r"--([a-z][a-z-]*)", items)) - COMMON
            self.say(program, {f"--{name}" for name in listed - told}, "is not in its manual page")
            self.say(program, {f"--{name}" for name in told - listed}, "is in its manual page, and gone")
            options[program] = listed | COMMON
        self.check_named_options(options)

    @staticmethod
    def items(page):
        """The heads of a manual page's items, as text: "-o, --output=FILE"."""
        page = page.replace("\\-", "-")
        if ".Dd " in page:
            return [re.sub(r"Fl -", "--", line) for line in re.findall(r"^\.It (.*)$", page, re.M) if "Fl -" in line]
        return [found for found in re.findall(r"^\.TP\n(?:\.PD.*\n)?(.*)$", page, re.M) if "--" in found]

    def check_named_options(self, options):
        """Commands that pages show, in code: PROGRAM ... --option, up to what ends the command."""
        for path in self.pages():
            text = path.read_text().replace("\\-", "-").replace("\\\n", " ")
            commands = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^\s*((?:nl[a-z]+|netlogd|netlogctl) .*)$", text, re.M)
            for program, rest in (found for command in commands for found in re.findall(r"(?<![\w./$-])(nl[a-z]+|netlogd|netlogctl)( [^|;&`]*)", command)):
                named = set(re.findall(r" --([a-z][a-z-]*)", rest.split(" -- ")[0])) if program in options else set()
                self.say(path.name, {f"{program} --{name}" for name in named - options.get(program, named)}, "is no option")

    # ---- directives, sensors, events ----

    def check_directives(self):
        table = self.text("netlogd/main.c").partition("} directives[] = {")[2].partition("\n};")[0]
        directives = set(re.findall(r'^    \{"([a-z-]+)",', table, re.M))
        for page, pattern in (("doc/man/netlogd.conf.5", r"^\.It Ic ([a-z-]+)"), ("packaging/netlogd.conf", r"^#?([a-z-]+) \S+$|^#?(output|listen) ")):
            told = {name for found in re.findall(pattern, self.text(page), re.M) for name in ([found] if isinstance(found, str) else found) if name}
            self.say("directive", directives - told, f"is not in {page}")
            self.say("directive", told - directives, f"is in {page}, and gone")

    def check_sensors(self):
        program = self.build / PROGRAMS["nlsensor"]
        if not program.exists():
            self.passed_over.append("sensors: nlsensor is not built")
            return
        told = self.text("doc/sensors.md").splitlines()
        true = subprocess.run([str(program), "--table"], capture_output=True, text=True).stdout.splitlines()
        self.say("sensor", (repr(line) for line in set(true) - set(told)), "is not in doc/sensors.md (nlsensor --table makes it)")
        self.say("sensor", (repr(line) for line in set(told) - set(true)), "is in doc/sensors.md, and gone")

    def check_events(self):
        made = set()
        for folder in "libnetlogger", "netlogd", "nlagent", "nlkernel", "nlsort", "nltools":
            for path in (self.source / folder).rglob("*.[ch]"):
                made |= set(re.findall(rf'"({OWN_EVENTS})"', path.read_text()))
        made = {name for name in made if not re.search(r"\.(c|h|xs)$", name)}
        told = set(re.findall(rf"^\| `({OWN_EVENTS})`", self.text("doc/events.md"), re.M))
        self.say("event", made - told, "is not in doc/events.md")
        self.say("event", told - made, "is in doc/events.md, and gone")

    def check(self):
        for check in self.check_functions, self.check_options, self.check_directives, self.check_sensors, self.check_events:
            check()
        return self.problems


if __name__ == "__main__":
    tree = Tree(*sys.argv[1:3])
    found = tree.check()
    print("\n".join([*found, *(f"passed over: {what}" for what in tree.passed_over)]))
    sys.exit(1 if found else 0)
