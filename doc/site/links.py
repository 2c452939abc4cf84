"""Finds broken links in a directory of HTML pages: to pages, to anchors, to pictures and to style sheets."""
import html.parser
import os
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]
        self.places += [attributes[name] for name in ("id", "name") if name in attributes and tag != "meta"]


def broken(folder):
    """Returns a line for each problem."""
    folder = pathlib.Path(folder).resolve()
    pages = {path: Page(path.read_text()) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        found += [f"{name}: two places called {place}" for place in sorted({p for p in page.places if page.places.count(p) > 1})]
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = path if not parts.path else pathlib.Path(os.path.normpath(path.parent / urllib.parse.unquote(parts.path)))
            if parts.scheme or folder not in target.parents or not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].places:
                found.append(f"{name}: there is no {link}")
    return found


if __name__ == "__main__":
    wrong = broken(sys.argv[1])
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)
