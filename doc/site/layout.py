"""The frame of every page of the site: the title, the contents, the search field and the footer."""
import html
import os

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="{root}site.css">
</head>
<body>
<header>
<a class="home" href="{root}index.html">NetLogger</a>
<form id="search" role="search" data-root="{root}"><input type="search" placeholder="Search" aria-label="Search" autocomplete="off"><ol id="found" hidden></ol></form>
</header>
<div class="columns-of-page">
<details class="contents" open><summary>Contents</summary>
<nav aria-label="Contents">
{navigation}
</nav>
</details>
<main>
{body}
</main>
</div>
<footer>NetLogger {version}. {origin}</footer>
<script src="{root}search.js"></script>
</body>
</html>
"""


def relative(target, page):
    """Returns the relative path from a page to a target. Both are paths in the site's directory."""
    return os.path.relpath(target, os.path.dirname(page) or ".")


def navigation(sections, page):
    parts = []
    for title, entries in sections:
        links = []
        for target, name in entries:
            here = ' aria-current="page"' if target == page else ""
            links.append(f'<li><a href="{relative(target, page)}"{here}>{html.escape(name, quote=False)}</a></li>')
        inside = any(target == page for target, _ in entries)
        items = "<ul>" + "".join(links) + "</ul>"
        if len(entries) > 14:  # a long section is closed on the pages of other sections
            parts.append(f'<details class="long"{" open" if inside else ""}><summary>{title}</summary>{items}</details>')
        else:
            parts.append(f"<h2>{title}</h2>{items}")
    return "\n".join(parts)


def page(path, title, body, sections, version, origin):
    root = "../" * path.count("/")
    shown = title if title == "NetLogger" else f"{title} - NetLogger"
    return PAGE.format(title=html.escape(shown, quote=False), root=root, navigation=navigation(sections, path), body=body, version=version,
                       origin=html.escape(origin, quote=False))
