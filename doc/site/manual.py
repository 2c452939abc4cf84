"""Converts manual pages to HTML with mandoc."""
import re
import subprocess


def page(path, names):
    """Returns a manual page as HTML. References to the pages in `names`, such as "nlsort.1", become links."""
    result = subprocess.run(["mandoc", "-T", "html", "-O", "fragment,toc,man=%N.%S.html", str(path)], capture_output=True, text=True, check=True)
    body = re.sub(r'<table class="(head|foot)">.*?</table>', "", result.stdout, flags=re.S)

    def reference(found):
        return found.group(0) if found.group(1) in names else found.group(2)

    body = re.sub(r'<a class="Xr" href="([\w.]+)\.html">(.*?)</a>', reference, body)

    def named(found):  # a reference that the older macros leave as text: <b>nlsort</b>(1)
        name = f"{found.group(1)}.{found.group(2)}"
        return f'<a href="{name}.html">{found.group(1)}({found.group(2)})</a>' if name in names else found.group(0)

    body = re.sub(r"(?:<b>)?\b(netlog\w+|netlogd\.conf|nl[a-z]+)\b(?:</b>)?\(([158])\)(?!</a>)", named, body)
    return re.sub(r"\bdoc/([\w-]+)\.md\b", r'<a href="../\1.html">\1</a>', body)


def about(path):
    """Returns the description in the section NAME."""
    text = path.read_text()
    found = re.search(r"^\.Nd (.*)$", text, re.M) or re.search(r"^\.S[Hh] NAME\n.*? \\?- (.*)$", text, re.M)
    return found.group(1)
