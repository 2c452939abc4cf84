#!/usr/bin/env python3
"""Writes the option lists of the manual pages: man_options.py [--write] SOURCE BUILD. The exit status is 1 if a page differs.

A list stands between the lines

    .\\" options PROGRAM [COMMAND...]
    .\\" end of options

and is generated from the output of PROGRAM [COMMAND...] --help=json. "options PROGRAM: GROUP" gives one group of options; the
group "Own" contains the options without a group title. "url options PROGRAM: GROUP" gives a group of options of URLs.
"variables PROGRAM" gives the environment variables that belong to no option.
The list uses mdoc or man macros, like the page. The lists of programs that are not built remain unchanged.
"""
import json
import pathlib
import re
import subprocess
import sys

REGION = re.compile(r'^\.\\" (url options|options|variables) ([a-z]+)((?: (?:--)?[a-z]+)*)(?:: ([^\n]*))?\n(.*?)^\.\\" end of options\n', re.M | re.S)
PROGRAMS = {"netlogd": "netlogd", "netlogctl": "netlogd", "nlsort": "nlsort", "nlv": "nlv", "nlkernel": "nlkernel", "nlagent": "nlagent",
            "nlagentd": "nlagent", "nlsensor": "nlagent", "nlconv": "nltools", "nlwrite": "nltools", "nlstat": "nltools", "nldiag": "nltools",
            "nlrecover": "nltools", "nlschema": "nltools", "nlarchive": "nltools"}


def describe(build, program, *command):
    """What --help=json prints; None when the program was not built."""
    path = pathlib.Path(build) / PROGRAMS[program] / program
    if not path.exists():
        return None
    return json.loads(subprocess.run([path, *command, "--help=json"], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}).stdout)


def escape(text):
    return re.sub(r"^(?=[.'])", r"\\&", text.replace("\\", r"\e").replace("-", r"\-"))


def notes(option, kind):
    """Returns the notes that help adds: in parentheses, or as a sentence after several sentences."""
    sentence = ". " in option["help"] or "; " in option["help"]
    colon = ":" if sentence else ""
    found = []
    if "default_description" in option:
        found.append("default: " + option["default_description"][1:-1])
    elif "default" in option:
        found.append(f"default{colon} {option['default']}")
    if "environment" in option and kind != "variables":
        found.append("environment: " + option["environment"])
    if option.get("minimum", "0") != "0":
        found.append(f"minimum{colon} {option['minimum']}")
    if "maximum" in option:
        found.append(f"maximum{colon} {option['maximum']}")
    if option.get("repeatable"):
        found.append("repeatable")
    if not found:
        return ""
    text = "; ".join(found)
    return ". " + text[0].upper() + text[1:] if sentence else f" ({text})"


def text_of(option, kind):
    only = option.get("commands", option.get("schemes", ""))
    return re.sub(r"(?<=[.!?]) (?=[A-Z])", "\n", escape((only.replace(" ", ", ") + ": " if only else "") + option["help"] + notes(option, kind))) + "."


def mdoc(option, kind):
    name, value = option["name"], option.get("value_name")
    if kind == "variables":
        return f".It Ev {option['environment']}"
    argument = '"' + value.replace('"', '""') + '"' if value and " " in value else value
    if kind == "url options":
        return f".It Cm {name} Ns = Ns Ar {argument or 'yes|no'}"
    letter, long = option.get("letter"), f"Fl -{name}"
    if value:
        long += f" Ns Oo = Ns Ar {argument} Oc" if option.get("optional_value") else f" Ns = Ns Ar {argument}"
    if not letter:
        return f".It {long}"
    return f".It Fl {letter}" + (f" Ar {argument}" if value and not option.get("optional_value") else "") + f" , {long}"


def man(option):
    name, value = escape(option["name"]), option.get("value_name")
    long = rf"\fB\-\-{name}\fR"
    if value:
        long += rf"[=\fI{escape(value)}\fR]" if option.get("optional_value") else rf"=\fI{escape(value)}\fR"
    return ".TP\n" + (rf"\fB\-{option['letter']}\fR, " if "letter" in option else "") + long


def listed(options, is_mdoc, kind):
    lines = []
    for option in options:
        lines += [mdoc(option, kind) if is_mdoc else man(option), text_of(option, kind)]
    return "".join(f"{line}\n" for line in lines)


def rewrite(text, build):
    """Returns the page with updated lists."""
    is_mdoc = re.search(r"^\.Dd ", text, re.M) is not None

    def made(region):
        kind, program, command, group, old = region.groups()
        about = describe(build, program, *command.split())
        if about is None:
            return region[0]
        options = about[{"url options": "url_options", "options": "options", "variables": "variables"}[kind]]
        options = [o for o in options if kind != "options" or o.get("command_line")]
        if group:
            options = [o for o in options if o.get("group", "Own") == group]
        head, end = region[0].split("\n")[0], '.\\" end of options\n'
        return f"{head}\n{listed(options, is_mdoc, kind)}{end}"

    return REGION.sub(made, text)


def pages(source, build):
    """Yields (path, current text, correct text) for each page with a list."""
    for path in sorted((pathlib.Path(source) / "doc" / "man").iterdir()):
        text = path.read_text()
        if REGION.search(text):
            yield path, text, rewrite(text, build)


def main():
    write = "--write" in sys.argv
    source, build = [word for word in sys.argv[1:] if word != "--write"]
    differ = [(path, new) for path, old, new in pages(source, build) if old != new]
    for path, new in differ:
        print(f"{path.name}: the list of options {'was updated' if write else 'differs from --help; doc/man_options.py --write updates it'}")
        if write:
            path.write_text(new)
    sys.exit(bool(differ) and not write)


if __name__ == "__main__":
    main()
