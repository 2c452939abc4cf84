"""The pages of doc/ with commands: the commands run in order, and print the pages' output. The records of doc/text-formats.md are read and written."""
import os
import re
import shutil
import sys

import support

sys.path.insert(0, str(support.SOURCE / "doc" / "site"))
import pages  # noqa: E402

DOC = support.SOURCE / "doc"
# The number of command blocks that do not run, by page, with the reason.
NOT_RUN = {"kernel-and-program.md": 2, "watch-live.md": 2, "wide-area-throughput.md": 2,
           "from-syslog.md": 1, "sealed-archive.md": 1, "slow-service.md": 5}
WANTED = {"tutorial.md": ("nlv/nlv",), "concepts.md": ("nlv/nlv",), "kernel-and-program.md": ("nlkernel/nlkernel",),
          "watch-live.md": ("netlogd/netlogd", "nlagent/nlsensor"), "wide-area-throughput.md": ("nlv/nlv", "nlagent/nlsensor"),
          "slow-transfer.md": ("nlv/nlv", "nlagent/nlsensor", "nginx", "curl"),
          "a-thousand-hosts.md": ("netlogd/netlogd",), "from-syslog.md": ("netlogd/netlogd", "logger"), "from-opentelemetry.md": ("nlv/nlv",), "instrument-a-server.md": ("netlogd/netlogd",),
          "sealed-archive.md": ("netlogd/netlogd",)}


class Pages(support.Case):
    def run_page(self, name):
        for program in WANTED.get(name, ()):
            if "/" in program:
                support.program(program)
            elif shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
                self.skipTest(f"no {program} here")
        support.program("nltools/nldiag")
        if not (support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        path = next(DOC.rglob(name))
        try:
            pages.run(path, self.scratch / "page", support.BUILD, support.SOURCE)
        except pages.Failed as failure:
            self.fail(str(failure))

    def test_every_page_is_run(self):
        for path in [DOC / "tutorial.md", DOC / "concepts.md", *(DOC / "howto").iterdir()]:
            self.assertTrue(hasattr(self, "test_" + path.stem.replace("-", "_")), path)
            counts = sum(block.language == "sh" and "not-run" in block.words for block in pages.blocks(path.read_text()))
            self.assertEqual(counts, NOT_RUN.get(path.name, 0), path)

    def test_a_page_that_is_wrong_fails(self):
        page = self.scratch / "wrong.md"
        for number, (text, said) in enumerate((("```sh\necho a\nfalse\n```\n", "wrong.md:1: exit status 1"),
                                               ("x\n\n```sh\necho 17 of 20\n```\n\n```text printed\n17 from 20\n```\n", "wrong.md:7: '17 from 20'"),
                                               ("```c file=a.c\nint main(void) { return x; }\n```\n```sh\ncc a.c\n```\n", "wrong.md:4: exit status 1"))):
            page.write_text(text)
            with self.assertRaisesRegex(pages.Failed, re.escape(said)):
                pages.run(page, self.scratch / str(number), support.BUILD, support.SOURCE)

    def test_printed_numbers_may_differ(self):
        page = self.scratch / "right.md"
        page.write_text("```sh\necho took 1.25 s of 8, here\n```\n```text printed\ntook  3 s of … here\n```\n")
        pages.run(page, self.scratch / "right", support.BUILD, support.SOURCE)


class TextFormats(support.Case):
    """nlconv agrees with doc/text-formats.md; doc/site/pages.py explains the words of its blocks."""

    def setUp(self):
        super().setUp()
        self.nlconv = support.program("nltools/nlconv")
        self.text = (DOC / "text-formats.md").read_text()
        self.page = [block for block in pages.blocks(self.text) if block.language in ("ulm", "bp", "logfmt", "text")]

    def convert(self, text, into, *options):
        return self.run_program(self.nlconv, "--quiet", "--format", into, *options, input=text)

    def assert_written(self, block, text, into, *options, written):
        result = self.convert(text, into, *options)
        self.assertEqual((result.stdout, result.stderr, result.returncode), (written, "", 0), f"text-formats.md:{block.line}")

    def of_kind(self, word):
        return [(number, block) for number, block in enumerate(self.page) if word in block.words]

    def test_every_block_is_of_a_known_kind(self):
        known = {"record", "read", "written", "malformed", "why"}
        for block in self.page:
            self.assertEqual(len(known & set(block.words)), 1, f"text-formats.md:{block.line}")
        self.assertEqual(len(self.page), len(re.findall(r"^```\S", self.text, re.M)))

    def test_records_in_both_formats(self):
        records = {}
        for _, block in self.of_kind("record"):
            self.assertNotIn(block.language, records.setdefault(block.words["record"], {}), block.line)
            records[block.words["record"]][block.language] = block
        self.assertGreater(len(records), 3)
        for name, both in records.items():
            self.assertEqual(set(both), {"ulm", "bp"}, name)
            for block in both.values():
                for into in both:
                    self.assert_written(block, block.text, into, written=both[into].text)

    def test_what_is_read(self):
        for number, block in self.of_kind("read"):
            written = self.page[number + 1]
            self.assertIn("written", written.words, block.line)
            options = [f"--fraction={block.words['fraction']}"] if "fraction" in block.words else []
            lines, expected = block.text.splitlines(keepends=True), written.text.splitlines(keepends=True)
            self.assertEqual(len(lines), len(expected), block.line)
            self.assert_written(block, block.text, written.language, *options, written=written.text)
            for line, one in zip(lines, expected):  # the format is also recognized without an option
                self.assert_written(block, line, written.language, *options, written=one)
        self.assertEqual(len(self.of_kind("read")), len(self.of_kind("written")))

    def test_what_is_malformed(self):
        for number, block in self.of_kind("malformed"):
            why = self.page[number + 1]
            self.assertIn("why", why.words, block.line)
            lines, reasons = block.text.splitlines(keepends=True), why.text.splitlines()
            self.assertEqual(len(lines), len(reasons), block.line)
            for line, reason in zip(lines, reasons):
                result = self.convert(line, "ulm", "--from-format", block.language)  # even if it resembles another format
                self.assertEqual(result.returncode, 1, line)
                self.assertIn(f"nlconv: -:1: {reason}: ", result.stderr)
                self.assertNotIn(line.split()[0], result.stdout)  # at most the record after a cut record

    def test_levels(self):
        table = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \|$", self.text, re.M)
        self.assertEqual([int(number) for number, _, _ in table], list(range(1, 11)))
        ulm = "".join(f"DATE=20000330112320.000000 LVL={name}\n" for _, name, _ in table)
        bp = "".join(f"ts=2000-03-30T11:23:20.000000Z level={name}\n" for _, _, name in table)
        self.assertEqual((self.convert(ulm, "bp").stdout, self.convert(bp, "ulm").stdout), (bp, ulm))


def makes_pictures(path):
    """Returns whether the page shows a picture that is not in the tree, but that the page's commands make."""
    return any(not (path.parent / picture).exists() for picture in re.findall(r"!\[[^]]*\]\((\w[\w-]*\.\w+)\)", path.read_text()))


def add(name):
    test = lambda self: self.run_page(name)
    # make_site.py runs these pages in the same way. In ./check, it is enough that test_site starts make_site.py.
    test.is_long = makes_pictures(next(DOC.rglob(name)))
    setattr(Pages, "test_" + name.removesuffix(".md").replace("-", "_"), test)


for file in ["tutorial.md", "concepts.md", *sorted(path.name for path in (DOC / "howto").glob("*.md"))]:
    add(file)

if __name__ == "__main__":
    support.main()
