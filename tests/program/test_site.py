"""The site of doc/: it is complete, opens from the file system, and broken links are found."""
import re
import shutil
import sys

import support

HERE = support.SOURCE / "doc" / "site"
sys.path.insert(0, str(HERE))
import links  # noqa: E402


class Site(support.Case):
    def test_made(self):
        for tool in "cmark-gfm", "mandoc", "doxygen":
            if shutil.which(tool) is None:
                self.skipTest(f"no {tool} here")
        for program in "nlv/nlv", "netlogd/netlogd", "nlkernel/nlkernel", "nlagent/nlsensor":
            support.program(program)
        if not (support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        site = self.scratch / "html"
        result = self.run_program(sys.executable, HERE / "make_site.py", "--source", support.SOURCE, "--build", support.BUILD, "--output", site,
                                  timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(links.broken(site), [])
        self.assertGreater(len(list((site / "pictures").glob("*.png"))), 4)
        for page in site.rglob("*.html"):
            text = page.read_text()
            self.assertEqual(re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:[a-z]+:)?//[^"]*"', text), [], page.name)
            self.assertIn('name="viewport"', text)
        for page in (support.SOURCE / "doc" / "man").iterdir():
            self.assertTrue((site / "man" / f"{page.name}.html").exists(), page.name)
        # A search for a page's name finds the page.
        index = (site / "search-index.js").read_text()
        for word in "nl_open", "max-rate", "CpuLoad", "Netlogd.Tls", "lifeline":
            self.assertIn(word, index)

    def test_every_page_is_in_the_contents(self):
        contents = (HERE / "contents").read_text()
        for page in [*(support.SOURCE / "doc").rglob("*.md"), *(support.SOURCE / "examples").rglob("*.md")]:
            self.assertRegex(contents, rf"(?m)^{re.escape(str(page.relative_to(support.SOURCE)))}( \||$)")

    def test_broken_links_are_found(self):
        (self.scratch / "a.html").write_text('<a href="b.html">b</a><a href="#x">x</a><img src="c.png"><a href="/d">d</a>'
                                             '<p id="t"></p><p id="t"></p><a href="https://example.org">e</a><a href="a.html#t">t</a>')
        self.assertEqual(links.broken(self.scratch), ["a.html: two places called t", "a.html: b.html leads nowhere", "a.html: there is no #x",
                                                      "a.html: c.png leads nowhere", "a.html: /d leads nowhere"])


if __name__ == "__main__":
    support.main()
