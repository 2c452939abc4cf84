#!/usr/bin/env python3
"""Makes the site of doc/: make_site.py --source TREE --build DIRECTORY --output SITE [--version V]

The pages are the tree's Markdown files (converted with cmark-gfm), the manual pages (mandoc) and the public headers (Doxygen),
in the order of the file `contents`. If a page shows a picture that is not in the tree, the commands of the page make the picture
with the programs in the build directory (pages.py). SITE replaces an earlier site only if all links are valid. A browser can
open SITE from the file system, without a server.
"""
import argparse
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import api
import layout
import links
import manual
import pages
import text

HERE = pathlib.Path(__file__).resolve().parent


class Site:
    """The pages of the site, and the files of the tree that they show."""

    def __init__(self, source, build, output, scratch):
        self.source, self.build, self.output, self.scratch = source, build, output, scratch
        self.sections = []  # (title, [(path in the site, name)])
        self.markdown = {}  # file of the tree -> path in the site
        self.bodies = {}    # path in the site -> (title, HTML)
        self.shown = set()  # files of the tree that pages refer to

    # ---- what there is ----

    def read_contents(self):
        self.manuals = sorted((self.source / "doc" / "man").iterdir(), key=lambda path: (path.suffix != ".1", path.name))
        self.headers = api.read(self.source, self.scratch / "doxygen")
        for line in (HERE / "contents").read_text().splitlines()[2:]:
            if line.startswith("# "):
                self.sections.append((line[2:], []))
            elif line == "man:":
                self.sections[-1][1].extend((f"man/{path.name}.html", path.stem + (f" ({path.suffix[1:]})" if path.stem == "netlogd.conf" else ""))
                                            for path in self.manuals)
            elif line == "api:":
                self.sections[-1][1].append(("api/index.html", "The parts, all functions"))
                self.sections[-1][1].extend((f"api/{part.name}.html", part.name) for part in self.headers)
            elif line:
                file, _, name = (part.strip() for part in line.partition("|"))
                place = re.sub(r"\.md$", ".html", file.removeprefix("doc/"))
                self.markdown[file] = place
                title = re.search(r"^# (.*)$", (self.source / file).read_text(), re.M).group(1)
                self.sections[-1][1].append((place, name or title))

    # ---- Markdown ----

    def target(self, link, file, place):
        """Returns the target in the site of a link in a file of the tree."""
        path, _, fragment = link.partition("#")
        if re.match(r"[a-z]+:", link) or not path:
            return link
        wanted = os.path.normpath(os.path.join(os.path.dirname(file), path))
        full = self.source / wanted
        if full.is_dir() and (full / "README.md").exists():
            wanted, full = os.path.join(wanted, "README.md"), full / "README.md"
        if wanted in self.markdown:
            found = self.markdown[wanted]
        elif re.fullmatch(r"libnetlogger/include/(netlogger/)?\w+\.h", wanted):
            found = f"api/{full.name}.html"
        elif wanted.startswith("libnetlogger/include"):
            found = "api/index.html"
        elif re.fullmatch(r"doc/man/[\w.]+", wanted):
            found = f"man/{full.name}.html"
        elif re.search(r"\.(png|svg)$", wanted):
            found = self.picture(wanted, file)
        elif full.exists():
            self.shown.add(wanted)
            found = f"tree/{wanted}.html"
        else:
            raise SystemExit(f"{file}: {link} is not in the tree")
        return layout.relative(found, place) + ("#" + fragment if fragment else "")

    def picture(self, wanted, file):
        """Returns a picture of the tree, or a picture that the page's own commands have made."""
        made = self.source / wanted
        if not made.exists():
            page, own = os.path.basename(os.path.dirname(wanted)), pathlib.Path(file).stem
            runs = self.scratch / "run"
            made = next((runs / name / "work" / os.path.basename(wanted) for name in (own, page) if (runs / name).exists()), made)
        if not made.exists():
            raise SystemExit(f"{file}: nothing makes {wanted}")
        target = self.output / "pictures" / (pathlib.Path(file).stem + "-" + made.name)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(made, target)
        return f"pictures/{target.name}"

    def run_page(self, file):
        """Runs the commands of a page if they make pictures that the page shows."""
        path = self.source / file
        pictures = re.findall(r"!\[[^]]*\]\((\w[\w-]*\.\w+)\)", path.read_text())
        if any(not (path.parent / picture).exists() for picture in pictures):
            pages.run(path, self.scratch / "run" / path.stem, self.build, self.source)

    def markdown_page(self, file, place):
        written = pages.plain((self.source / file).read_text())
        body = subprocess.run(["cmark-gfm", "-e", "table", "-e", "autolink"], input=written, capture_output=True, text=True, check=True).stdout
        used = set()

        def heading(found):
            level, words = found.group(1), found.group(2)
            name = unique(text.slug(words), used)
            here = f' <a class="here" href="#{name}" aria-label="Link to this part">#</a>' if level != "1" else ""
            return f'<h{level} id="{name}">{words}{here}</h{level}>'

        def attribute(found):
            return f'{found.group(1)}="{html.escape(self.target(html.unescape(found.group(2)), file, place))}"'

        body = re.sub(r"<h([1-4])>(.*?)</h\1>", heading, body)
        body = re.sub(r'\b(href|src)="([^"]*)"', attribute, body)
        body = re.sub(r'<p>(<img [^>]*alt="([^"]*)"[^>]*>)</p>', r"<figure>\1<figcaption>\2</figcaption></figure>", body)
        body = re.sub(r"(<table>.*?</table>)", r'<div class="table">\1</div>', body, flags=re.S)
        title = html.unescape(re.sub("<[^>]*>", "", re.search(r"<h1.*?>(.*?)</h1>", body).group(1)))
        self.bodies[place] = (title, self.with_overview(body))

    @staticmethod
    def with_overview(body):
        """Adds a list of the headings after the title of a long page."""
        parts = re.findall(r'<h2 id="([^"]*)">(.*?)(?: <a class="here".*?)?</h2>', body)
        if len(parts) < 5:
            return body
        items = "".join(f'<li><a href="#{name}">{re.sub("<[^>]*>", "", words)}</a></li>' for name, words in parts)
        return body.replace("</h1>", f'</h1>\n<div class="on-page">On this page<ul>{items}</ul></div>', 1)

    # ---- the other pages ----

    def manual_pages(self):
        names = {path.name for path in self.manuals}
        for path in self.manuals:
            title = f"{path.stem}({path.suffix[1:]})"
            about = html.escape(manual.about(path).replace("\\-", "-"), quote=False)
            body = manual.page(path, names).replace("<h1 ", "<h2 ").replace("</h1>", "</h2>")
            self.bodies[f"man/{path.name}.html"] = (title, f"<h1>{title}: {about}</h1>\n{body}")

    def api_pages(self):
        made = api.Pages(self.headers, api.examples(self.source / "doc" / "api-examples"))
        self.bodies["api/index.html"] = ("The C interface", "<h1>The C interface</h1>\n" + made.index())
        for part in self.headers:
            body = f"<h1>{part.name}</h1>\n" + made.page(part)
            functions = re.findall(r'<h2 id="(\w+)">', body)
            if len(functions) > 4:
                items = "".join(f'<li><a href="#{name}">{name}</a></li>' for name in functions)
                body = body.replace("</h1>", f'</h1>\n<div class="on-page">On this page<ul>{items}</ul></div>', 1)
            self.bodies[f"api/{part.name}.html"] = (part.name, body)
        for path in sorted((self.source / "doc" / "api-examples").glob("*.c")):
            content = made.link(html.escape(path.read_text(), quote=False)).replace('href="', 'href="../api/')
            self.bodies[f"examples/{path.name}.html"] = (path.name, f'<h1>{path.name}</h1>\n<pre class="file">{content}</pre>')

    def tree_pages(self):
        """Makes a page for each file of the tree to which pages refer, and a list of files for each such directory."""
        done = set()
        while self.shown - done:
            file = min(self.shown - done)
            done.add(file)
            full, place = self.source / file, f"tree/{file}.html"
            if full.is_dir():
                inside = sorted(path for path in full.iterdir() if path.is_file())
                items = "".join(f'<li><a href="{self.target(path.name, file + "/x", place)}">{path.name}</a></li>' for path in inside)
                self.bodies[place] = (file, f"<h1>{file}/</h1>\n<ul>{items}</ul>")
            else:
                self.bodies[place] = (file, f"<h1>{file}</h1>\n" + text.file_html(full.read_text(errors="replace")))

    # ---- all of it ----

    def search_index(self):
        entries = []
        for place, (title, body) in self.bodies.items():
            body = re.sub(r'<div class="on-page">.*?</div>', "", body, flags=re.S)
            for part in re.split(r"(?=<h[23][ >])", body):
                name = re.match(r'<h[23][^>]*id="([^"]*)"[^>]*>(.*?)</h[23]>', part, re.S)
                words = re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", " ", part))).strip()
                heading = re.sub(r"\s*#\s*$", "", html.unescape(re.sub("<[^>]*>", "", name.group(2)))) if name else ""
                entries.append([title, heading, place + ("#" + name.group(1) if name else ""), words[:4000]])
        return "window.searchIndex = " + json.dumps(entries, ensure_ascii=False) + ";\n"

    def write(self, version):
        self.read_contents()
        for file in self.markdown:
            self.run_page(file)
        for file, place in self.markdown.items():
            self.markdown_page(file, place)
        self.manual_pages()
        self.api_pages()
        self.tree_pages()
        for place, (title, body) in self.bodies.items():
            path = self.output / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(layout.page(place, title, body, self.sections, version, "Made from the sources' doc/ by make site."))
        for name in "site.css", "search.js":
            shutil.copyfile(HERE / name, self.output / name)
        (self.output / "search-index.js").write_text(self.search_index())
        return links.broken(self.output)


def unique(name, used):
    """Returns the name, with a number if the name is already used."""
    number, found = 1, name
    while found in used:
        number += 1
        found = f"{name}-{number}"
    used.add(found)
    return found


def main():
    parser = argparse.ArgumentParser(description="makes the site of doc/")
    for name in "source", "build", "output":
        parser.add_argument("--" + name, type=pathlib.Path, required=True)
    parser.add_argument("--version", default="")
    arguments = parser.parse_args()
    missing = [name for name in ("cmark-gfm", "mandoc", "doxygen") if shutil.which(name) is None]
    if missing:
        raise SystemExit(f"make_site: there is no {', '.join(missing)} (packaging/install-dependencies site)")
    output = arguments.output.resolve()
    with tempfile.TemporaryDirectory(prefix="netlogger-site-", dir=output.parent) as scratch:
        made = pathlib.Path(scratch) / "site"
        made.mkdir()
        site = Site(arguments.source.resolve(), arguments.build.resolve(), made, pathlib.Path(scratch))
        try:
            wrong = site.write(arguments.version)
        except pages.Failed as failure:
            raise SystemExit(f"make_site: {failure}")
        if wrong:
            raise SystemExit("\n".join(wrong))
        shutil.rmtree(output, ignore_errors=True)
        os.rename(made, output)
        output.chmod(0o755)
    print(f"The site: {output / 'index.html'} ({len(site.bodies)} pages)")


if __name__ == "__main__":
    sys.exit(main())
