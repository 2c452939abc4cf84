"""Converts the text of comments and source files to HTML."""
import html
import re


def slug(words):
    """Returns the anchor of a heading. Like the anchors of code hosting sites, it has no apostrophes."""
    words = html.unescape(re.sub(r"<[^>]*>", "", words)).lower()
    return re.sub(r"[^a-z0-9]+", "-", re.sub("['\u2019]", "", words)).strip("-") or "part"


def comment_html(text, link):
    """Returns the paragraphs of a comment. Indented text keeps its lines. link(escaped text) adds links."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        shown = None
        for line in paragraph.split("\n"):
            indented = line.startswith("  ")
            if indented != shown:
                parts.append(("pre" if indented else "p", []))
                shown = indented
            parts[-1][1].append(line[2:] if indented else line)
    # Join consecutive indented paragraphs.
    joined = []
    for kind, lines in parts:
        if kind == "pre" and joined and joined[-1][0] == "pre":
            joined[-1][1].extend(["", *lines])
        else:
            joined.append((kind, list(lines)))
    return "\n".join(f"<{kind}>" + link(html.escape("\n".join(lines), quote=False)) + f"</{kind}>" for kind, lines in joined if any(lines))


def file_html(text):
    """Returns the content of a file as HTML."""
    return f'<pre class="file">{html.escape(text, quote=False)}</pre>'
