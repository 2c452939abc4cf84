"""Makes a page for each public header, with the declarations that Doxygen finds, and an example of each function."""
import html
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import text

HERE = pathlib.Path(__file__).resolve().parent


class Member:
    """A function, struct, enumeration, type, constant (define) or macro: its name, its lines in the header, and its comment."""

    def __init__(self, kind, name, line, end, words):
        self.kind, self.name, self.line, self.end, self.words = kind, name, line, end, words


class Header:
    def __init__(self, path, essay, members):
        self.path, self.essay, self.members = path, essay, members
        self.name = path.name
        self.lines = path.read_text().splitlines()

    @property
    def about(self):
        """The first paragraph of the header's first comment."""
        return " ".join(self.essay.strip().split("\n\n")[0].split())


def headers(source):
    """Returns the public headers in the order in which netlogger.h includes them. The classic header is last."""
    folder = source / "libnetlogger" / "include"
    umbrella = (folder / "netlogger.h").read_text()
    return [folder / name for name in re.findall(r"^#include <(netlogger/\w+\.h)>", umbrella, re.M)] + [folder / "NetLogger.h"]


def words_of(element):
    """Returns the comment that Doxygen found for an element, as it is in the header."""
    found = element.find("detaileddescription")
    lines = "".join(found.itertext()).strip("\n").splitlines() if found is not None else []
    return "\n".join(re.sub(r"^ ?\*( |$)", "", line) for line in lines).strip()


def extent(header_lines, location):
    """Returns the first and the last line of a declaration whose location Doxygen has found."""
    first = int(location.get("declline") or location.get("line"))
    while header_lines[first - 1].startswith((" ", "\t")):
        first -= 1
    last = max(first, int(location.get("bodyend") or 0))
    while not header_lines[last - 1].rstrip().endswith((";", "}")) and not header_lines[first - 1].startswith("#define"):
        last += 1
    while header_lines[last - 1].endswith("\\"):
        last += 1
    return first, last


def read(source, scratch):
    """Runs Doxygen on the headers. Returns a list of Header. Raises SystemExit if Doxygen prints a warning."""
    scratch.mkdir(parents=True, exist_ok=True)
    paths = headers(source)
    (scratch / "Doxyfile").write_text(
        (HERE / "Doxyfile").read_text() + f"OUTPUT_DIRECTORY = {scratch}\nINPUT = {' '.join(map(str, paths))}\n"
        f'INPUT_FILTER = "{sys.executable} {HERE / "header_filter.py"}"\n')
    result = subprocess.run(["doxygen", str(scratch / "Doxyfile")], capture_output=True, text=True)
    if result.returncode != 0 or result.stderr:
        raise SystemExit("doxygen: " + result.stderr)
    found = {}
    for page in (scratch / "xml").glob("*_8h.xml"):
        compound = ElementTree.parse(page).getroot().find("compounddef")
        found[compound.findtext("compoundname")] = compound
    return [header(path, found[path.name], scratch / "xml") for path in paths]


def header(path, compound, xml):
    lines = path.read_text().splitlines()
    members = {}
    for inner in compound.findall("innerclass"):
        if re.fullmatch(r"\w+", inner.text):
            struct = ElementTree.parse(xml / f"{inner.get('refid')}.xml").getroot().find("compounddef")
            first, last = extent(lines, struct.find("location"))
            members[inner.text] = Member("struct", inner.text, first, last, words_of(struct))
    for element in compound.iter("memberdef"):
        kind, name = element.get("kind"), element.findtext("name")
        if name in members or (kind == "define" and (name.startswith("NETLOGGER_") or element.find("initializer") is None)):
            continue
        first, last = extent(lines, element.find("location"))
        kind = "macro" if kind == "define" and element.find("param") is not None else kind
        members[name] = Member(kind, name, first, last, words_of(element))
    ordered = sorted(members.values(), key=lambda member: member.line)
    for before, member in zip(ordered, ordered[1:]):
        if not member.words and member.line == before.end + 1:
            member.words = None  # the comment above the previous member describes both members
    return Header(path, words_of(compound), ordered)


def undocumented(parsed):
    """Returns the functions and function-like macros that have no comment."""
    names = []
    for part in parsed:
        said = False
        for member in part.members:
            said = said if member.words is None else bool(member.words)
            if member.kind in ("function", "macro") and not said:
                names.append(f"{part.name}: {member.name}")
    return names


def examples(folder):
    """Returns the uses of each name: name -> [(file, enclosing function)]."""
    found = {}
    for path in sorted(folder.glob("*.c")):
        content = path.read_text()
        for part in re.split(r"\n(?=/\*|static |int main)", content):
            for name in re.findall(r"\b(nl_\w+|NL_[A-Z]+|NetLogger\w+)\b(?=\s*\()", part):
                found.setdefault(name, []).append((path, with_comment(content, part)))
    return found


def with_comment(content, part):
    """Returns a function with the comment above it."""
    at = content.index(part)
    above = re.search(r"(?:\A|\n)(/\*(?:(?!\*/).)*\*/)\n\Z", content[:at], re.S)
    return (above.group(1) + "\n" if above else "") + part.rstrip()


class Pages:
    """The pages of the C interface, in which names of the interface are links."""

    def __init__(self, parsed, used):
        self.headers, self.used = parsed, used
        self.place = {member.name: f"{part.name}.html#{member.name}" for part in parsed for member in part.members}
        self.place.update({part.name: f"{part.name}.html" for part in parsed})

    def link(self, escaped):
        def linked(found):
            place = self.place.get(found.group(0))
            return f'<a href="{place}">{found.group(0)}</a>' if place else found.group(0)

        return re.sub(r"(?<![\w/-])(nl_\w+|NL_[A-Z]\w*|NetLogger\w+|\w+\.h)\b(?!\.\w)", linked, escaped)

    def source(self, part, member):
        text = re.sub(r"^(NL_API|NETLOGGER_CLASSIC_API) ", "", "\n".join(part.lines[member.line - 1:member.end]))
        return self.link(html.escape(text, quote=False))

    def remarks(self, part):
        """Yields (line, text) for each comment above an empty line."""
        lines = "\n".join(part.lines)
        for found in re.finditer(r"\n/\*(?! -| clang)((?:(?!\*/).)*)\*/\n\n", lines[len(part.essay):], re.S):
            line = lines.count("\n", 0, found.start() + len(part.essay)) + 2
            yield line, "\n".join(re.sub(r"^ ?\*( |$)", "", text) for text in found.group(1).strip(" \n").splitlines())

    def example(self, names, about):
        """Returns an example of each name. Prefers the example whose name resembles the name of the header."""
        shown, parts = set(), []
        for name in names:
            uses = self.used.get(name, [(None, None)])
            path, part = next((use for use in uses if use[0] and use[0].stem.startswith(about[:4].rstrip("."))), uses[0])
            if path is not None and part not in shown:
                shown.add(part)
                parts.append(f'<details><summary>Example, from <a href="../examples/{path.name}.html">{path.name}</a></summary>'
                             f"<pre>{self.link(html.escape(part, quote=False))}</pre></details>")
        return "\n".join(parts)

    def page(self, part):
        body = [text.comment_html(part.essay, self.link)]
        remarks, groups = dict(self.remarks(part)), []
        for member in part.members:
            if member.words is None and groups:
                groups[-1].append(member)
            else:
                groups.append([member])
        for group in groups:
            for line in sorted(line for line in remarks if line < group[0].line):
                body.append(text.comment_html(remarks.pop(line), self.link))
            names = [member.name for member in group]
            body.append('<section class="member">' + "".join(f'<h2 id="{name}">{name}</h2>' for name in names))
            body.append(text.comment_html(group[0].words or "", self.link))
            body.append("<pre class=\"declaration\">" + "\n".join(self.source(part, member) for member in group) + "</pre>")
            body += [self.example(names, part.name), "</section>"]
        return "\n".join(body)

    def index(self):
        rows = "".join(f'<tr><td><a href="{part.name}.html">{part.name}</a></td><td>{self.link(html.escape(part.about, quote=False))}</td></tr>'
                       for part in self.headers)
        names = sorted(member.name for part in self.headers for member in part.members if member.kind == "function")
        functions = "".join(f'<li><a href="{self.place[name]}">{name}</a></li>' for name in names)
        return ("<p>A program includes <code>&lt;netlogger.h&gt;</code>, which includes these parts; or, written for the toolkit of 1998 "
                "to 2004, <code>&lt;NetLogger.h&gt;</code>. Each page opens with what its part is about. The text is that of the headers; "
                "the examples are compiled and run by the tests.</p>"
                f"<table><thead><tr><th>part</th><th>about</th></tr></thead><tbody>{rows}</tbody></table>"
                f'<h2 id="functions">All functions</h2><ul class="columns">{functions}</ul>')
