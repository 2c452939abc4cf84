#!/usr/bin/env python3
"""Doxygen's input filter: makes the headers' comments Doxygen's, line by line, and their text verbatim.

The headers are written to be read as they are, in plain comments. A comment above a declaration becomes its
documentation, one behind a member that member's, the first one the file's; one with an empty line below it belongs to
nothing, and stays as it is (api.py shows it where it stands). Lines keep their numbers.
"""
import re
import sys


def filtered(text):
    first = True

    def turned(found):
        nonlocal first
        comment, behind = found.group(0), found.end()
        inside = comment[2:-2]
        line_start = text.rfind("\n", 0, found.start()) + 1
        trailing = text[line_start:found.start()].strip() != ""
        if first:
            first = False
            head, _, rest = inside.lstrip("\n").partition("\n")
            return "/** @file\n@verbatim " + head.removeprefix(" * ") + "\n" + rest + "@endverbatim */"
        if trailing:
            return f"/**< @verbatim {inside}@endverbatim */"
        if re.match(r"\n\n", text[behind:]):
            return comment
        return f"/** @verbatim {inside}@endverbatim */"

    text = re.sub(r" \*/\n/\* clang-format on \*/", "\n */", text.replace("/* clang-format off */", ""))
    return re.sub(r"/\*.*?\*/", turned, text, flags=re.S)


if __name__ == "__main__":
    sys.stdout.write(filtered(open(sys.argv[1]).read()))
