"""The pages of doc/ that show commands: these are run, in order, and print what the pages say."""
import os
import re
import shutil
import sys

import support

sys.path.insert(0, str(support.SOURCE / "doc" / "site"))
import pages  # noqa: E402

DOC = support.SOURCE / "doc"
# How many blocks of commands are not run, by page; each says why beside it.
NOT_RUN = {"tutorial.md": 1, "kernel-and-program.md": 3, "watch-live.md": 2, "wide-area-throughput.md": 2, "a-thousand-hosts.md": 1,
           "from-syslog.md": 1}
WANTED = {"tutorial.md": ("nlv/nlv",), "concepts.md": ("nlv/nlv",), "kernel-and-program.md": ("nlkernel/nlkernel",),
          "watch-live.md": ("netlogd/netlogd", "nlagent/nlsensor"), "wide-area-throughput.md": ("nlv/nlv", "nlagent/nlsensor"),
          "a-thousand-hosts.md": ("netlogd/netlogd", "openssl"), "from-syslog.md": ("netlogd/netlogd", "rsyslogd", "logger"), "from-opentelemetry.md": ("nlv/nlv",), "instrument-a-server.md": ("netlogd/netlogd",)}


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
        counts = sum(block.language == "sh" and "not-run" in block.words for block in pages.blocks(path.read_text()))
        self.assertEqual(counts, NOT_RUN.get(name, 0))
        try:
            pages.run(path, self.scratch / "page", support.BUILD, support.SOURCE)
        except pages.Failed as failure:
            self.fail(str(failure))

    def test_every_page_is_run(self):
        for path in [DOC / "tutorial.md", DOC / "concepts.md", *(DOC / "howto").iterdir()]:
            self.assertTrue(hasattr(self, "test_" + path.stem.replace("-", "_")), path)

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


def add(name):
    setattr(Pages, "test_" + name.removesuffix(".md").replace("-", "_"), lambda self: self.run_page(name))


for file in ["tutorial.md", "concepts.md", *sorted(path.name for path in (DOC / "howto").glob("*.md"))]:
    add(file)

if __name__ == "__main__":
    support.main()
