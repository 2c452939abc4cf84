"""nlarchive loads logs into SQLite and PostgreSQL, with each event once in all circumstances, and exports them."""
import json
import os
import pathlib
import pwd
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest

import nlb_decoder
import support

PROGRAM = r"""
#include <netlogger.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    nl_log *log = nl_open("p", argv[1]);
    for (int i = atoi(argv[2]); argc == 4 && i < atoi(argv[3]); i++) {
        NL_EVENT(log, NL_USAGE, "Begin", "REQ.ID", i, "TEXT", "a 'b' \"c\"");
        NL_EVENT(log, NL_USAGE, "End", "REQ.ID", i, "SEND.SZ", 2.5, "GOOD", true);
        if (i % 50 == 0)
            nl_flush(log);
    }
    return nl_close(log) == NL_OK ? 0 : 1;
}
"""


def line(number, event="E", rest=""):
    return (f"DATE=20260101{number // 3600000000 % 24:02d}{number // 60000000 % 60:02d}{number // 1000000 % 60:02d}.{number % 1000000:06d} "
            f"HOST=h{number % 3} PROG=p LVL=Usage NL.EVNT={event} N={number}{rest}\n")


class Archive(support.Case):
    """Functions that the tests of both kinds of database share."""

    def setUp(self):
        super().setUp()
        self.nlarchive = support.program("nltools/nlarchive")
        self.nlsort = support.program("nlsort/nlsort")
        self.log = self.scratch / "a.log"

    def load(self, *arguments, status=0, **options):
        result = self.run_program(self.nlarchive, "load", *arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr + result.stdout

    def query(self, *arguments, status=0):
        result = self.run_program(self.nlarchive, "query", *arguments, errors="surrogateescape")
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout


class OnEach:
    """Tests for both kinds of database: self.db is its name, self.sql(...) returns rows."""

    def test_what_goes_in_comes_out(self):
        text = (line(1, rest=' A="x y" A=2 EMPTY="" ODD="a\\x00b\\xff\\t\\\\u0000"') + line(2, rest=" F=0.10 I=007") + "DATE=20251231235959.123456789\n" +
                line(3).replace("LVL=Usage", "LVL=odd"))
        self.log.write_text(text)
        self.load(self.db, self.log)
        as_written = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", self.log, errors="surrogateescape")
        self.assertEqual(sorted(self.query(self.db).splitlines()), sorted(as_written.stdout.splitlines()))
        rows = self.sql("SELECT host, prog, level, event FROM events ORDER BY time_ns")
        self.assertEqual([tuple(r) for r in rows], [(None, None, None, None), ("h1", "p", "Usage", "E"), ("h2", "p", "Usage", "E"),
                                                    ("h0", "p", "odd", "E")])
        self.assertEqual([int(r[0]) for r in self.sql("SELECT time_ns FROM events ORDER BY time_ns")][0], 1767225599123456789)

    def test_formats_of_query(self):
        client = self.compile_client(PROGRAM)
        log = self.scratch / "a.nlb"
        self.assertEqual(self.run_program(client, f"file:{log}?format=nlb", "0", "300").returncode, 0)
        self.load(self.db, log)
        nlconv = support.program("nltools/nlconv")
        ordered = self.scratch / "ordered.nlb"
        self.assertEqual(self.run_program(self.nlsort, "-o", ordered, log).returncode, 0)
        for form in "ulm", "bp", "json", "csv", "xml", "otlp", "spans", "chrome":
            expected = self.run_program(nlconv, "--format", form, "-q", ordered)
            if expected.returncode == 2:
                continue
            self.assertEqual(self.query("-q", "--format", form, self.db), expected.stdout, form)
        found = self.scratch / "found.nlb"
        self.query("--format", "nlb", "-o", found, self.db)
        self.assertEqual(self.run_program(nlconv, "--format", "json", found).stdout, self.run_program(nlconv, "--format", "json", ordered).stdout)

    def test_only_what_is_new_is_loaded(self):
        lines = [line(i) for i in range(1000)]
        self.log.write_text("".join(lines[:10]) + lines[10][:30])
        said = self.load(self.db, self.log)
        self.assertIn("incomplete record in the last 30 bytes; the next load reads it if the file has grown", said)
        self.assertIn("10 records loaded", said)
        self.log.write_text("".join(lines[:500]))
        self.assertIn("490 records loaded", self.load(self.db, self.log))
        self.assertTrue(self.load(self.db, self.log).startswith("0 records loaded"))
        self.log.rename(self.scratch / "a.log.1")
        self.log.write_text("".join(lines[500:]))
        self.assertIn("500 records loaded", self.load(self.db, self.scratch / "a.log.1", self.log))
        self.assertEqual(self.query(self.db), "".join(lines))

    def test_archives_and_files_of_one_stream_are_loaded_once(self):
        client = self.compile_client(PROGRAM)
        folder = self.scratch / "logs"
        folder.mkdir()
        log = folder / "a-000001.nlb"
        self.assertEqual(self.run_program(client, f"file:{log}?format=nlb&zstd=0", "0", "2000").returncode, 0)
        data = log.read_bytes()
        log.write_bytes(data[:len(data) // 2])
        said = self.load(self.db, folder)
        self.assertRegex(said, r"a-000001\.nlb: truncated: \d+ bytes and 100 records of the last block are missing; the next load reads it if the file has grown\n")
        log.write_bytes(data)
        shutil.copy(log, self.scratch / "copy.nlb")
        self.load(self.db, folder, self.scratch / "copy.nlb")
        self.load(self.db, "-", input=data.decode("latin-1"), encoding="latin-1")
        self.assertEqual([int(r[0]) for r in self.sql("SELECT count(*) FROM events")], [4000])
        ids = self.sql("SELECT lifeline, count(*), min(steps), max(steps) FROM lifelines GROUP BY lifeline")
        self.assertEqual([(r[0], int(r[1]), int(r[2]), int(r[3])) for r in ids], [("REQ.ID", 2000, 2, 2)])
        steps = self.sql("SELECT event, next_event, count(*) FROM steps WHERE next_event IS NOT NULL GROUP BY event, next_event")
        self.assertEqual([(r[0], r[1], int(r[2])) for r in steps], [("Begin", "End", 2000)])

    def test_what_fills_many_gaps_is_loaded(self):
        """A file has every second block of a stream; another file, loaded later, has the other blocks."""
        blocks = [nlb_decoder.encode([(1000 * n, b"E", [(b"N", n)])], b"s" * 16, n) for n in range(201)]
        for name, part, status in (("even", blocks[::2], 1), ("odd", blocks[1::2], 1), ("all", blocks, 0)):  # 1: some records are missing
            file = self.scratch / f"{name}.nlb"
            file.write_bytes(b"".join(part))
            self.load(self.db, file, status=status)
        found = sorted(int(n) for n in re.findall(r" N=(\d+)\n", self.query(self.db)))
        self.assertEqual(found, list(range(201)))

    def test_where_and_times(self):
        self.log.write_text("".join(line(i * 1000000, event=f"E{i % 5}") for i in range(100)))
        self.load(self.db, self.log)
        for where in ("HOST == h1", "NL.EVNT == E3 && N > 50000000", "HOST == h1 || HOST == h2", "DATE >= 2026-01-01T00:01:00",
                      "DATE < '2026-01-01T00:00:10' && PROG == p", "!(HOST == h1)", "HOST in (h1, h2) && NL.EVNT != E1", "LVL == Usage",
                      "host == h1 && event == E1", "N == 5000000", "HOST ~ 'h*' && (HOST == h1 && NL.EVNT == E2)"):
            expected = self.run_program(self.nlsort, "--where", where, self.log)
            self.assertEqual(self.query("--where", where, self.db), expected.stdout, where)
        found = self.query("--since", "2026-01-01T00:00:10", "--until", "2026-01-01T00:00:12", self.db)
        self.assertEqual(re.findall(r"N=(\d+)", found), ["10000000", "11000000"])

    def test_malformed_and_damaged(self):
        self.log.write_text(line(1) + "garbage\n" + line(2))
        said = self.load(self.db, self.log, status=1)
        self.assertIn(f"{self.log}:2: ", said)
        self.assertIn("2 records loaded", said)
        self.log.write_text(line(1) + "garbage\n" + line(2) + line(3) + "more garbage\n")
        said = self.load(self.db, self.log, status=1)
        self.assertIn(f"{self.log}:5: ", said)
        self.assertNotIn(f"{self.log}:2: ", said)
        self.assertIn("none: No such file", self.load(self.db, self.scratch / "none", status=1))
        self.assertEqual(len(self.query(self.db).splitlines()), 3)

    def test_a_damaged_block_is_reported(self):
        damaged = self.scratch / "damaged.nlb"
        self.log.write_text(line(1) + line(2))
        self.assertEqual(self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", damaged, self.log).returncode, 0)
        content = bytearray(damaged.read_bytes())
        content[-3] ^= 1
        damaged.write_bytes(content)
        self.assertRegex(self.load(self.db, damaged, status=1), r"\Anlarchive: .*damaged\.nlb: byte 0: .*checksum")

    def test_a_source_without_records_is_reported_each_time(self):
        self.load(self.db, "-", input=line(1))
        noise, words, begin = self.scratch / "noise", self.scratch / "words", self.scratch / "begin"
        noise.write_bytes(random.Random(1).randbytes(5000))
        words.write_text("".join(f"word {n}\n" for n in range(8)))
        begin.write_text(line(2)[:30])
        for _ in range(2):
            for path, reason in ((noise, rf"nlarchive: {noise}:1: no DATE=, ts= or time= field; all \d+ lines are malformed; name the format with --from-format"),
                                 (words, f"nlarchive: {words}:1: no DATE=, ts= or time= field; all 8 lines are malformed; name the format with --from-format"),
                                 (begin, f"nlarchive: {begin}: incomplete record in the last 30 bytes; the next load reads it if the file has grown")):
                self.assertRegex(self.load(self.db, path, status=1), rf"\A{reason}\n\Z")
        self.log.write_text(line(2))
        self.load(self.db, self.log)
        said = self.load(self.db, words, self.log, status=1)
        self.assertEqual(said.count(f"{words}:"), 5, said)
        self.assertIn("3 more malformed lines\n", said)
        words.write_text("".join(f"word {n}\n" for n in range(8)) + line(3))
        self.assertIn("1 record loaded", self.load(self.db, words, status=1))
        self.assertIn("0 records loaded", self.load(self.db, words))

    def test_strict(self):
        self.log.write_text(line(1) + "garbage\n" + line(2))
        said = self.load(self.db, "--strict", self.log, status=1)
        self.assertIn(f"{self.log}:2: ", said)
        self.assertIn("stopped because of --strict", said)
        self.assertNotIn("loaded", said)
        self.load(self.db, self.log, status=1)
        self.assertEqual(len(self.query(self.db).splitlines()), 2)

    def test_killed_at_any_moment(self):
        lines = [line(i) for i in range(support.representative(400000, 200000))]
        self.log.write_text("".join(lines))
        chance = random.Random(5)
        kills = 0
        while True:
            load = self.start(self.nlarchive, "load", "-q", self.db, self.log, stderr=subprocess.PIPE)
            try:
                load.wait(chance.uniform(0, support.representative(0.5, 0.25) + kills * 0.2))
                break
            except subprocess.TimeoutExpired:
                load.kill()
                load.wait()
                kills += 1
        self.assertEqual(load.returncode, 0, load.stderr.read())
        self.assertGreater(kills, 0)
        self.assertEqual([int(r[0]) for r in self.sql("SELECT count(*) FROM events")], [len(lines)])
        self.assertEqual(self.query(self.db), "".join(lines))

    def test_grows_while_it_is_followed(self):
        self.log.write_text(line(0))
        load = self.start(self.nlarchive, "load", "--follow", self.db, self.log, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        count = lambda: [int(r[0]) for r in self.sql("SELECT count(*) FROM events")] if self.exists() else [0]
        support.wait_until(lambda: count() == [1], what="it is loaded")
        with open(self.log, "a") as log:
            for i in range(1, 2001):
                log.write(line(i))
        support.wait_until(lambda: count() == [2001], what="what was appended is loaded")
        load.send_signal(signal.SIGINT)
        said = load.communicate(timeout=30)[0]
        self.assertEqual((load.returncode, "2001 records loaded" in said), (0, True), said)

    def test_follows_what_cannot_be_read_yet(self):
        """nlarchive reports a missing or damaged source once, and loads the other sources. It loads the source when it is
        readable."""
        late, packed, folder = self.scratch / "late.log", self.scratch / "packed.log", self.scratch / "folder"
        whole = subprocess.run(["zstd", "-c"], input=line(50).encode(), capture_output=True, check=True).stdout
        packed.write_bytes(whole[:5] + b"\xff" + whole[6:])
        self.log.write_text(line(0))
        load = self.start(self.nlarchive, "load", "--follow", self.db, late, packed, folder, self.log, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
        count = lambda: [int(r[0]) for r in self.sql("SELECT count(*) FROM events")] if self.exists() else [0]
        support.wait_until(lambda: load.poll() is not None or count() == [1], what="what can be read is loaded")
        for i in range(1, 6):  # repeats until nlarchive has checked all records
            with open(self.log, "a") as log:
                log.write(line(i))
            support.wait_until(lambda: load.poll() is not None or count() == [1 + i], what="what was appended is loaded")
        late.write_text(line(10))
        folder.mkdir()
        (folder / "0001").write_text(line(11))
        packed.write_bytes(whole)
        support.wait_until(lambda: load.poll() is not None or count() == [9], what="all is loaded")
        late.unlink()
        with open(self.log, "a") as log:
            log.write(line(20))
        support.wait_until(lambda: load.poll() is not None or count() == [10], what="it goes on")
        load.send_signal(signal.SIGTERM)
        said = load.communicate(timeout=30)[0]
        self.assertEqual((load.returncode, "10 records loaded" in said), (1, True), said)
        self.assertIn(said.count(f"{late}: No such file"), (1, 2), said)
        self.assertEqual((said.count(f"{folder}: No such file"), said.count("data is damaged")), (1, 1), said)

    def test_a_collector_each_record_once(self):
        netlogd = support.program("netlogd/netlogd")
        client = self.compile_client(PROGRAM)
        messages = self.scratch / "messages"
        with open(messages, "wb") as file:
            self.start(netlogd, "--foreground", "--listen", "x-netlog://127.0.0.1:0", "--output", self.scratch / "all.log",
                       "--recover", "0", stderr=file)
        url = support.wait_until(lambda: re.search(r"listening on (x-netlog://127\.0\.0\.1:\d+)\n", messages.read_text()),
                                 what="netlogd listens").group(1)
        count = lambda: [int(r[0]) for r in self.sql("SELECT count(*) FROM events")] if self.exists() else [0]
        for round in range(4):
            self.assertEqual(self.run_program(client, f"{url}?format=nlb", str(round * 100), str(round * 100 + 100)).returncode, 0)
            load = self.start(self.nlarchive, "load", self.db, f"{url}?since=0", stderr=subprocess.PIPE)
            support.wait_until(lambda: load.poll() is not None or count()[0] >= 200 * (round + 1), what="it is loaded")
            self.assertIsNone(load.poll(), load.poll() is not None and load.stderr.read())
            load.send_signal(signal.SIGKILL if round % 2 else signal.SIGINT)
            load.wait(30)
        self.assertEqual(count(), [800])
        self.assertEqual(sorted(self.query(self.db).splitlines()), sorted((self.scratch / "all.log").read_text().splitlines()))

    def test_the_documents_questions(self):
        life = "".join(line(i * 1000 + k, event=e, rest=f" BLOCK.ID={i} SEND.SZ=10") for i in range(30)
                       for k, e in enumerate(("Begin", "Send", "End")))
        self.log.write_text(life)
        self.load("--id", "BLOCK.ID", self.db, self.log)
        page = (support.SOURCE / "doc/archive.md").read_text()
        questions = re.findall(r"```sql\n(.*?)```", page, re.S)
        self.assertEqual(len(questions), 3)
        for question in questions:
            self.assertGreater(len(list(self.sql(question))), 0, question)
        self.assertEqual(sum(int(r[1]) for r in self.sql(questions[0])), 90)

    def test_a_newer_version_and_strangers_are_refused(self):
        self.log.write_text(line(1))
        self.load(self.db, self.log)
        self.change("UPDATE archive SET version = 2")
        for command in ["load", self.db, self.log], ["query", self.db]:
            result = self.run_program(self.nlarchive, *command)
            self.assertEqual(result.returncode, 1)
            self.assertIn("the tables have version 2; this nlarchive supports version 1", result.stderr)

    def test_two_loads_at_once(self):
        self.log.write_text("".join(line(i) for i in range(150000)))
        loads = [self.start(self.nlarchive, "load", self.db, self.log, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [l.communicate(timeout=60)[1] for l in loads]
        self.assertIn(0, [l.returncode for l in loads], said)
        self.load(self.db, self.log)
        self.assertEqual([int(r[0]) for r in self.sql("SELECT count(*) FROM events")], [150000], said)


class Sqlite(OnEach, Archive):
    def setUp(self):
        super().setUp()
        self.db = self.scratch / "all.db"
        if "without SQLite" in self.run_program(self.nlarchive, "query", self.db).stderr:
            self.skipTest("no SQLite in this build")

    def exists(self):
        with sqlite3.connect(self.db, timeout=60) as db:
            return bool(list(db.execute("SELECT * FROM sqlite_master WHERE name = 'events'")))

    def sql(self, question):
        with sqlite3.connect(self.db, timeout=60) as db:
            return list(db.execute(question))

    def change(self, statement):
        with sqlite3.connect(self.db, timeout=60) as db:
            db.execute(statement)

    def test_locked(self):
        self.log.write_text(line(1))
        self.load(self.db, self.log)
        with sqlite3.connect(self.db, isolation_level=None) as db:
            db.execute("BEGIN EXCLUSIVE")
            self.log.write_text(line(1) + line(2))
            self.assertIn("locked by another program", self.load(self.db, self.log, status=1))
            db.execute("ROLLBACK")
        self.assertIn("1 record loaded", self.load(self.db, self.log))

    def test_full_disk(self):
        self.log.write_text("".join(line(i) for i in range(150000)))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))
        said = self.load(self.db, self.log, status=1, preexec_fn=limit)
        self.assertRegex(said, "full|I/O error|disk")
        self.load(self.db, self.log)
        self.assertEqual(self.sql("SELECT count(*) FROM events"), [(150000,)])

    def test_what_is_no_archive(self):
        self.log.write_text(line(1))
        self.assertIn("a.log", self.load(self.log, self.log, status=1))
        self.assertEqual(self.log.read_text(), line(1))
        self.run_program(self.nlarchive, "query", self.scratch / "none.db")
        self.assertFalse((self.scratch / "none.db").exists())
        result = self.run_program(self.nlarchive, "query", self.log)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not a database of nlarchive", result.stderr)
        self.assertIn(f"open {self.scratch}/no/a.db: No such file or directory\n", self.load(self.scratch / "no" / "a.db", self.log, status=1))

    @unittest.skipIf(os.geteuid() != 0, "only root can become somebody else")
    def test_wrong_permissions(self):
        support.skip_where_others_may_not_enter(self)
        self.log.write_text(line(1))
        self.load(self.db, self.log)
        self.scratch.chmod(0o755)
        nobody = pwd.getpwnam("nobody")
        become = lambda: (os.setgid(nobody.pw_gid), os.setuid(nobody.pw_uid))
        self.assertRegex(self.load(self.db, self.log, status=1, preexec_fn=become), "readonly|unable to open|permission")
        result = self.run_program(self.nlarchive, "query", self.db, preexec_fn=become)
        self.assertEqual((result.returncode, result.stdout), (0, line(1)), result.stderr)

    def test_montage(self):
        log = pathlib.Path(os.environ.get("NL_MONTAGE", support.SOURCE.parent / "shared/data/montage.bp"))
        if not log.exists():
            self.skipTest("the log is not here: NL_MONTAGE says where")
        self.load(self.db, log)
        self.assertEqual(sorted(self.query("--format", "bp", self.db).splitlines()), sorted(log.read_text().splitlines()))

    def test_wrong_use(self):
        for arguments, words in [([], "missing command"), (["frob", "a"], "frob: unknown command; the commands are load, query"), (["load"], "load: missing DATABASE"),
                                 (["query", "a", "b"], "query: b: unexpected argument"), (["load", "--format", "ulm", "a"], "--format: the load command does not have this option"),
                                 (["query", "--follow", "a"], "--follow: the query command does not have this option"), (["load", "--id", "a b", "a"], '--id: "a b" is not a comma-separated list of field names'),
                                 (["query", "--since", "5", "--until", "4", "a"], "the range is empty"),
                                 (["query", "--format", "x", "a"], "--format: x: unknown format")]:
            result = self.run_program(self.nlarchive, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr)


class Postgres(OnEach, Archive):
    """A server on its own socket; PostgreSQL refuses to run as root."""

    @classmethod
    def setUpClass(cls):
        places = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin")) if os.path.isdir("/usr/lib/postgresql") else []
        if not places:
            raise unittest.SkipTest("no PostgreSQL here")
        cls.bin = places[-1]
        cls.folder = pathlib.Path(subprocess.run(["mktemp", "-d", "/tmp/netlogger-pg-XXXXXX"], capture_output=True, text=True).stdout.strip())
        cls.user = pwd.getpwnam("postgres" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name)
        os.chown(cls.folder, cls.user.pw_uid, cls.user.pw_gid)
        cls.command(cls.bin / "initdb", "-D", cls.folder / "data", "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale=C")
        cls.begin()

    @classmethod
    def become(cls):
        if os.geteuid() == 0:
            os.setgid(cls.user.pw_gid)
            os.setuid(cls.user.pw_uid)

    @classmethod
    def command(cls, *words):
        result = subprocess.run([str(w) for w in words], preexec_fn=cls.become, capture_output=True, text=True, cwd="/",
                                env={**os.environ, "LC_ALL": "C"}, timeout=120)
        if result.returncode != 0:
            raise AssertionError(result.stderr)

    @classmethod
    def begin(cls):
        cls.command(cls.bin / "pg_ctl", "-D", cls.folder / "data", "-w", "-l", cls.folder / "log", "-o",
                    f"-k {cls.folder} -c listen_addresses='' -c fsync=off", "start")

    @classmethod
    def end(cls, how):
        cls.command(cls.bin / "pg_ctl", "-D", cls.folder / "data", "-w", "-m", how, "stop")

    @classmethod
    def tearDownClass(cls):
        cls.end("immediate")
        shutil.rmtree(cls.folder, ignore_errors=True)

    count = 0

    def setUp(self):
        super().setUp()
        Postgres.count += 1
        self.name = f"test{Postgres.count}"
        self.command("createdb", "-h", self.folder, "-U", "tester", self.name)
        self.db = f"postgresql://tester@/{self.name}?host={self.folder}"
        if "without PostgreSQL" in self.run_program(self.nlarchive, "query", self.db).stderr:
            self.skipTest("no PostgreSQL in this build")

    def sql(self, question):
        result = self.run_program("psql", "-h", self.folder, "-U", "tester", "-At", "-F", "\x1f", "-P", "null=\x1e", "-c", question, self.name)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [[None if c == "\x1e" else c for c in l.split("\x1f")] for l in result.stdout.split("\n") if l]

    change = sql

    def test_the_killed_loads_session_goes_on(self):
        """The server may still execute statements of a killed load; the next load waits for their result."""
        lines = [line(i) for i in range(60000)]
        self.log.write_text("".join(lines))
        load = self.start(self.nlarchive, "load", "-q", "--follow", self.db, self.log)
        support.wait_until(lambda: self.exists() and self.sql("SELECT count(*) FROM entry") != [["0"]], what="some is loaded")
        session = int(self.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted")[0][0])
        os.kill(session, signal.SIGSTOP)
        load.kill()
        load.wait()
        after = self.start(self.nlarchive, "load", "-q", self.db, self.log, stderr=subprocess.PIPE)
        try:
            self.assertRaises(subprocess.TimeoutExpired, after.wait, 1)
        finally:
            os.kill(session, signal.SIGCONT)
        self.assertEqual(after.wait(60), 0, after.stderr.read())
        self.assertEqual(self.sql("SELECT count(*) FROM events"), [[str(len(lines))]])

    def exists(self):
        return self.sql("SELECT count(*) FROM information_schema.views WHERE table_name = 'events'") == [["1"]]

    def test_the_server_goes_away(self):
        self.log.write_text("".join(line(i) for i in range(300000)))
        load = self.start(self.nlarchive, "load", self.db, self.log, stderr=subprocess.PIPE, text=True)
        support.wait_until(lambda: load.poll() is not None or self.exists(), what="it loads")
        self.end("immediate")
        said = load.communicate(timeout=60)[1]
        self.begin()
        if load.returncode != 0:
            self.assertRegex(said, "server closed the connection|terminating connection|connection lost|could not send|shut")
        self.load(self.db, self.log)
        self.assertEqual(self.sql("SELECT count(*) FROM events"), [["300000"]])

    def test_nobody_there(self):
        self.log.write_text(line(1))
        said = self.load("postgresql://u:secret@/none?host=/nonexistent", self.log, status=1)
        self.assertIn("connect: ", said)
        self.assertIn("; is PostgreSQL running there?\n", said)
        self.assertNotIn("secret", said)

    def test_where_backslashes_are_escapes(self):
        """The settings of a database and of a user may differ from standard SQL; a file may have any name."""
        role = f"escaping{Postgres.count}"
        self.sql(f"CREATE ROLE {role} SUPERUSER LOGIN")
        self.sql(f"ALTER ROLE {role} SET standard_conforming_strings = off")
        self.sql(f"ALTER DATABASE {self.name} SET standard_conforming_strings = off")
        self.assertEqual(self.sql("SHOW standard_conforming_strings"), [["off"]])
        for number, db in enumerate((self.db, self.db.replace("tester@", f"{role}@"))):
            log = self.scratch / f"a\\'{number} back\\slash.log"
            log.write_text(line(number))
            self.load(db, log)
            self.assertIn([str(log)], self.sql("SELECT name FROM source"))
        self.assertEqual(self.query("--where", "HOST == h1", self.db), line(1))

    def test_no_right_to_write(self):
        self.log.write_text(line(1))
        self.load(self.db, self.log)
        self.sql("CREATE ROLE reader%d LOGIN" % Postgres.count)
        self.sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader%d" % Postgres.count)
        reader = self.db.replace("tester@", f"reader{Postgres.count}@")
        self.log.write_text(line(1) + line(2))
        self.assertIn("permission denied", self.load(reader, self.log, status=1))
        self.assertEqual(self.query(reader), line(1))


if __name__ == "__main__":
    support.main()
