#!/usr/bin/env python3
"""netlogd reads systemd's journal, which systemd-journal-remote writes for the test: fields, restarts, and kills at random moments."""
import collections
import os
import random
import re
import subprocess
import time
import unittest

import collector
import support
import test_nlconv_import as others

SEED = int(os.environ.get("NL_JOURNAL_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)
KILLS = 15


@unittest.skipUnless(os.path.exists(others.JOURNAL_REMOTE), "systemd-journal-remote is not installed")
class Journal(collector.Case):
    def setUp(self):
        super().setUp()
        self.directory = self.scratch / "journal"
        self.directory.mkdir()
        self.count = 0
        self.writer = self.start(others.JOURNAL_REMOTE, "-o", self.directory / "x.journal", "-", stdin=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)

    def add(self, count):
        """Adds entries to the journal while others may read it."""
        for _ in range(count):
            self.count += 1
            data = others.entry(time=1700000000000000 + self.count, __MONOTONIC_TIMESTAMP=self.count, _BOOT_ID="6c7c6013a26343b29e964691ff25d04c",
                                _HOSTNAME="h", SYSLOG_IDENTIFIER="p", PRIORITY=4, _TRANSPORT="syslog",
                                MESSAGE=b"two\nlines" if self.count % 2 else "text", N=self.count)
            self.writer.stdin.write(data.replace(b"__CURSOR=s=1;i=1\n", b""))
        self.writer.stdin.flush()

    def read(self, **options):
        return self.serve(f"--input=journal:{self.directory}", "--recover=0", **options)

    def numbers(self):
        return [int(n) for n in re.findall(rb"[ ]N=(\d+)", self.written())]

    def until(self, count):
        support.wait_until(lambda: len(self.numbers()) >= count, 30, what=f"{count} records")

    def test_entries_and_restarts(self):
        self.add(10)
        process = self.read()
        self.until(10)
        self.add(500)
        self.until(510)
        self.stop(process)
        self.add(20)
        process = self.read()
        self.until(530)
        self.stop(process)
        self.assertEqual(self.numbers(), list(range(1, 531)))
        first = self.written().decode().splitlines()[0]
        self.assertRegex(first, r"^DATE=20231114221320\.000001 HOST=h PROG=p LVL=Warning NL\.EVNT=syslog ")
        for field in ('MESSAGE="two\\nlines"', " PRIORITY=4", " _TRANSPORT=syslog"):
            self.assertIn(field, first)
        self.assertNotIn("CallRefused", self.said())

    def test_kills(self):
        print(f"# NL_JOURNAL_SEED={SEED}")
        rng = random.Random(SEED)
        for _ in range(KILLS):
            process = self.read()
            end = time.monotonic() + rng.random() * 0.4
            while time.monotonic() < end:
                self.add(rng.randrange(1, 50))
                time.sleep(rng.random() * 0.02)
            process.kill()
            process.wait()
        process = self.read()
        self.until(self.count)
        self.stop(process)
        counts = collections.Counter(self.numbers())
        self.assertEqual([n for n, count in counts.items() if count != 1], [])
        self.assertEqual(set(counts), set(range(1, self.count + 1)))

    def test_problems(self):
        problem = self.fails(f"--input=journal:{self.scratch}/none", "--output", self.output, "--listen", f"unix:{self.scratch}/u")
        self.assertIn("open the journal", problem)
        (self.scratch / "all.log.cursor").write_text("nothing\n")
        problem = self.fails(f"--input=journal:{self.directory}", "--output", self.output, "--listen", f"unix:{self.scratch}/u")
        self.assertIn("to read the whole journal again, remove this file", problem)


if __name__ == "__main__":
    support.main()
