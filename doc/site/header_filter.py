#!/usr/bin/env python3
"""Doxygen's input filter: converts the plain comments of headers to comments of Doxygen with verbatim text.

The first comment becomes the documentation of the file. A comment above a declaration becomes the documentation of the
declaration, and a comment after a member becomes that of the member. A comment above an empty line stays unchanged;
api.py shows this comment between the declarations. The numbers of lines do not change.
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
