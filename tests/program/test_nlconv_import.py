#!/usr/bin/env python3
"""nlconv reading other programs' formats: made by these programs if installed, and by hand for special cases."""
import concurrent.futures
import json
import os
import random
import re
import shutil
import struct
import subprocess
import unittest

import support

JOURNAL_REMOTE = "/usr/lib/systemd/systemd-journal-remote"
MICROSECOND = 1000


class ImportCase(support.Case):
    def setUp(self):
        super().setUp()
        self.nlconv = support.program("nltools/nlconv")

    def convert(self, data, *arguments, status=0, environment=None):
        """Returns the records as JSON objects, and standard error."""
        path = self.scratch / "input"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        result = self.run_program(self.nlconv, "--format", "json", *arguments, path, text=False, env={**os.environ, **(environment or {})})
        self.assertEqual(result.returncode, status, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr.decode(errors="replace")


def entry(time=1700000000000000, **fields):
    """Returns a journal entry in the export format; bytes are written in binary form."""
    out = b""
    for name, value in {"__CURSOR": "s=1;i=1", "__REALTIME_TIMESTAMP": str(time), **fields}.items():
        if isinstance(value, bytes):
            out += name.encode() + b"\n" + struct.pack("<Q", len(value)) + value + b"\n"
        else:
            out += f"{name}={value}\n".encode()
    return out + b"\n"


class Journal(ImportCase):
    def test_what_fields_become(self):
        data = entry(_HOSTNAME="h", SYSLOG_IDENTIFIER="sshd", PRIORITY=3, MESSAGE="a=b c", _PID=5, _TRANSPORT="syslog")
        data += entry(_HOSTNAME="h", _COMM="x", _SOURCE_REALTIME_TIMESTAMP=1600000000000001, MESSAGE_ID="39f53479d3a045ac8e11786248231fbf")
        records, _ = self.convert(data)
        self.assertEqual(records[0], {
            "ts": "2023-11-14T22:13:20.000000Z", "event": "syslog", "level": "Error", "host": "h", "prog": "sshd",
            "__CURSOR": "s=1;i=1", "__REALTIME_TIMESTAMP": "1700000000000000", "PRIORITY": 3, "MESSAGE": "a=b c", "_PID": 5,
            "_TRANSPORT": "syslog"})
        self.assertEqual((records[1]["ts"], records[1]["event"], records[1]["prog"]), ("2020-09-13T12:26:40.000001Z", "unit.started", "x"))

    def test_values_in_binary_form_come_byte_for_byte(self):
        values = [b"two\nlines", b"", b"\n\n", bytes(range(256)), b"__CURSOR=x\n\nNAME=1\n", b"x" * 3000000]
        data = b"".join(entry(MESSAGE=value, N=i) for i, value in enumerate(values))
        path = self.scratch / "input"
        path.write_bytes(data)
        text = self.run_program(self.nlconv, "--format", "nlb", "-o", self.scratch / "out", path)
        self.assertEqual((text.returncode, text.stderr), (0, ""))
        back = self.run_program(self.nlconv, "--format", "json", self.scratch / "out")
        got = [json.loads(line)["MESSAGE"] for line in back.stdout.splitlines()]
        self.assertEqual(len(got), len(values))
        for value, json_value in zip(values, got):
            if isinstance(json_value, dict):
                import base64
                self.assertEqual(base64.b64decode(json_value["$bytes"]), value)
            else:
                self.assertEqual(json_value.encode(), value)

    def test_a_field_that_is_there_more_than_once(self):
        data = entry(A=1)[:-1] + b"A=2\nA\n" + struct.pack("<Q", 1) + b"3\n\n"
        records, _ = self.convert(data)
        self.assertEqual([records[0][name] for name in ("A", "A#2", "A#3")], [1, 2, 3])

    def test_damage_loses_only_its_entry(self):
        good = entry(N=1)
        cases = {
            "no time": b"A=1\n\n",
            "a time that is none": entry(time="x"),
            "a time beyond all": entry(time=99999999999999999999),
            "a size beyond all": b"__CURSOR=1\nMESSAGE\n" + b"\xff" * 8 + b"rubbish\n\n",
            "a size that is wrong": b"__CURSOR=1\nMESSAGE\n" + struct.pack("<Q", 3) + b"rubbish\n\n",
            "no name": b"=1\nA=2\n\n",
        }
        for what, bad in cases.items():
            with self.subTest(what=what):
                records, errors = self.convert(good + bad + good, status=1)
                self.assertEqual(len(records), 2)
                self.assertRegex(errors, r"input:5: ")
                records, _ = self.convert(good + bad + good, "--strict", status=1)
                self.assertEqual(len(records), 1)

    def test_an_input_that_ends_anywhere(self):
        data = entry(N=1) + entry(MESSAGE=b"two\nlines")

        def read(size):
            path = self.scratch / f"input{size}"
            path.write_bytes(data[:size])
            return size, self.run_program(self.nlconv, "--from-format", "journal", "--format", "json", path)

        with concurrent.futures.ThreadPoolExecutor(2 * os.cpu_count()) as pool:
            for size, result in pool.map(read, range(1, len(data))):
                self.assertIn(result.returncode, (0, 1), size)
                if size > len(entry(N=1)):
                    self.assertIn('"N":1', result.stdout, size)

    def test_many_entries_are_cut_well(self):
        data = b"".join(entry(time=1700000000000000 + i, N=i, MESSAGE=b"\n\n" * (i % 5) if i % 3 else f"text {i}") for i in range(40000))
        for threads in 1, 4:
            records, errors = self.convert(data, "--threads", str(threads))
            self.assertEqual([r["N"] for r in records], list(range(40000)))
            self.assertEqual(errors, "")

    @unittest.skipUnless(os.path.exists(JOURNAL_REMOTE) and shutil.which("journalctl"), "systemd-journal-remote is not installed")
    def test_a_journal_of_systemds(self):
        """systemd makes a journal from our entries, and we read it."""
        data = b"".join(entry(time=1700000000000000 + i * 1000, __MONOTONIC_TIMESTAMP=i + 1, _BOOT_ID="6c7c6013a26343b29e964691ff25d04c",
                              _HOSTNAME="h", PRIORITY=i % 8, MESSAGE=b"line %d\nof two \x01" % i if i % 2 else f"line {i}")
                        for i in range(200))
        (self.scratch / "in").write_bytes(data.replace(b"__CURSOR=s=1;i=1\n", b""))
        made = self.run_program(JOURNAL_REMOTE, "-o", self.scratch / "x.journal", self.scratch / "in")
        self.assertEqual(made.returncode, 0, made.stderr)
        exported = self.run_program("journalctl", "--file", self.scratch / "x.journal", "-o", "export", text=False).stdout
        as_json = self.run_program("journalctl", "--file", self.scratch / "x.journal", "-o", "json", "--all").stdout
        records, errors = self.convert(exported)
        self.assertEqual(errors, "")
        theirs = [json.loads(line) for line in as_json.splitlines()]
        self.assertEqual(len(records), 200)
        for ours, their in zip(records, theirs):
            for name, value in their.items():
                value = bytes(value).decode() if isinstance(value, list) else value
                self.assertEqual(str(ours["host" if name == "_HOSTNAME" else name]), value)


STRACE = """100 10:00:00.000001 execve("/bin/a \\"x", ["a"], 0x7f /* 3 vars */) = 0 <0.000010>
100 10:00:00.000020 write(1, "a) = b", 6) = 6 <0.000002>
100 10:00:00.000030 read(0,  <unfinished ...>
101 10:00:00.000031 openat(AT_FDCWD</tmp>, "x", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000003>
101 10:00:00.000040 openat(AT_FDCWD</tmp>, "y", O_RDONLY) = 3</tmp/a b)> <0.000003>
100 10:00:00.000050 <... read resumed>"x", 10) = 1 <0.000025>
100 10:00:00.000060 poll([{fd=3, events=POLLIN}], 1, 5) = 1 ([{fd=3, revents=POLLIN}]) <0.000004>
100 10:00:00.000070 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=101} ---
100 10:00:00.000080 futex(0x1, FUTEX_WAIT, 1, NULL) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <0.000009>
101 10:00:00.000090 <... wait4 resumed>) = 7 <0.000001>
101 10:00:00.000095 exit_group(0) = ?
101 10:00:00.000100 +++ exited with 0 +++
100 10:00:00.000110 +++ killed by SIGSEGV (core dumped) +++
"""


class Strace(ImportCase):
    UTC = {"TZ": "UTC"}

    def read(self, text, *arguments, status=0, zone="UTC"):
        return self.convert(text, "--base", "2026-01-02", *arguments, status=status, environment={"TZ": zone})

    def test_what_calls_become(self):
        records, errors = self.read(STRACE)
        self.assertEqual(errors, "")
        by = {}
        for record in records:
            by.setdefault(record.get("CALL"), []).append(record)
        self.assertEqual([r["event"] for r in by[1]], ["execve.start", "execve.end"])
        self.assertEqual([r["ts"] for r in by[1]], ["2026-01-02T10:00:00.000001Z", "2026-01-02T10:00:00.000011Z"])
        self.assertEqual((by[2][0]["ARGS"], by[2][1]["RET"], by[2][1]["DURATION"]), ('1, "a) = b", 6', 6, 0.000002))
        self.assertEqual([(r["event"], r["TID"], r.get("ARGS")) for r in by[3]],
                         [("read.start", 100, 0), ("read.end", 100, '"x", 10')])
        self.assertEqual(by[3][1]["ts"], "2026-01-02T10:00:00.000055Z")
        self.assertEqual([by[4][1][k] for k in ("RET", "ERRNO", "ERROR")], [-1, "ENOENT", "No such file or directory"])
        self.assertEqual((by[5][1]["RET"], by[5][1]["RET.PATH"]), (3, "/tmp/a b)"))
        self.assertEqual(by[6][1]["INFO"], "[{fd=3, revents=POLLIN}]")
        self.assertEqual((by[7][1]["RET"], by[7][1]["ERRNO"]), ("?", "ERESTARTSYS"))
        self.assertEqual([r["event"] for r in by[8]], ["wait4.end"])
        rest = by[None]
        self.assertEqual([r["event"] for r in rest], ["signal", "exit_group", "exit", "killed"])
        self.assertEqual((rest[0]["SIGNAL"], rest[0]["si_pid"], rest[2]["STATUS"]), ("SIGCHLD", 101, 0))
        self.assertEqual((rest[3]["SIGNAL"], rest[3]["CORE"]), ("SIGSEGV", "true"))

    def test_the_day_is_followed_over_midnight(self):
        text = "".join(f"1 {t}.5 getpid() = 1 <0.1>\n" for t in ("23:59:59", "00:00:00", "23:59:59", "00:00:01", "12:00:00", "23:00:00", "01:00:00"))
        records, _ = self.read(text)
        self.assertEqual([r["ts"][8:16] for r in records[::2]], ["02T23:59", "03T00:00", "02T23:59", "03T00:00", "03T12:00", "03T23:00", "04T01:00"])

    def test_times_are_local(self):
        records, _ = self.read("1 12:00:00.5 getpid() = 1 <0.1>\n", zone="UTC+5")
        self.assertEqual(records[0]["ts"], "2026-01-02T17:00:00.500000Z")

    def test_without_a_base_the_day_is_when_the_file_was_written(self):
        path = self.scratch / "t"
        path.write_text("1 22:00:00.5 getpid() = 1 <0.1>\n")
        for written, day in ((1767391200 + 7200, "02"), (1767391200 - 7200, "01")):  # 2026-01-02 22:00, plus or minus 2 h
            os.utime(path, (written, written))
            result = self.run_program(self.nlconv, "--format", "json", path, env={**os.environ, "TZ": "UTC"})
            self.assertEqual(json.loads(result.stdout.splitlines()[0])["ts"], f"2026-01-{day}T22:00:00.500000Z")

    def test_other_layouts(self):
        cases = {
            "16:00:00.5 getpid() = 1 <0.1>\n": [("getpid.start", None), ("getpid.end", None)],
            "16:00:00 getpid() = 1\n": [("getpid", None)],
            "7 1700000000.123456 getpid() = 1 <0.1>\n": [("getpid.start", 7), ("getpid.end", 7)],
            "[pid     7] 16:00:00.5 getpid() = 1 <0.1>\n": [("getpid.start", 7), ("getpid.end", 7)],
            "[pid 7<a b>] 16:00:00.5 getpid() = 1 <0.1>\n": [("getpid.start", 7), ("getpid.end", 7)],
            "7<a b> 16:00:00.5 getpid()      = 1 <0.1>\n": [("getpid.start", 7), ("getpid.end", 7)],
            "strace: Process 8 attached\n7 16:00:00.5 clone(xstrace: Process 8 attached\n <unfinished ...>\n": [("clone.start", 7)],
            "7 16:00:00.5 ???? ( <unfinished ...>\n": None,
        }
        for text, expected in cases.items():
            with self.subTest(text=text):
                records, errors = self.read(text, status=0 if expected else 1)
                if expected:
                    self.assertEqual([(r["event"], r.get("TID")) for r in records], expected)
        records, _ = self.read("7<a b> 16:00:00.5 getpid() = 1 <0.1>\n")
        self.assertEqual(records[0]["prog"], "a b")

    def test_a_thread_that_gets_its_number_late(self):
        text = ('10:00:00.1 execve("/bin/sh", ["sh"], 0x1) = 0 <0.1>\n10:00:00.3 clone(flags=x <unfinished ...>\n'
                "[pid 8] 10:00:00.4 getpid() = 8 <0.1>\n[pid 7] 10:00:00.5 <... clone resumed>) = 8 <0.2>\n"
                "[pid 7] 10:00:00.6 wait4(-1,  <unfinished ...>\n[pid 8] 10:00:00.7 +++ exited with 0 +++\n"
                "10:00:00.8 <... wait4 resumed>0x1) = 8 <0.2>\n")
        records, errors = self.read(text)
        self.assertEqual(errors, "")
        calls = [(r["event"], r.get("TID"), r["prog"]) for r in records if r.get("CALL") in (2, 4)]
        self.assertEqual(calls, [("clone.start", None, "sh"), ("clone.end", 7, "sh"), ("wait4.start", 7, "sh"), ("wait4.end", 7, "sh")])

    def test_what_cannot_be_read_is_told_with_its_place(self):
        good = "1 10:00:00.5 getpid() = 1 <0.1>\n"
        bad = ["hello from the program", "1 10:00:00.5 rubbish", "1 10:00:00.5 getpid(", "1 25:00:00.5 getpid() = 1", "1 0.000012 getpid() = 1",
               "99999999999 10:00:00.5 getpid() = 1", "1 10:00:00.5 --- SIGX", "1 10:00:00.5 +++ exited", "1 10:00:00.5 <... x", "[pid x] 1",
               "1 99999999999999999999.5 getpid() = 1", "1 10:00:00.5 " + "x" * 5000 + "() = 1", "1 10:00:00.5 getpid() = "]
        for line in bad[:-1]:
            with self.subTest(line=line[:60]):
                records, errors = self.read(good + line + "\n" + good, status=1)
                self.assertEqual(len(records), 4)
                self.assertIn("input:2: ", errors)
                records, _ = self.read(good + line + "\n" + good, "--strict", status=1)
                self.assertEqual(len(records), 2)

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_what_strace_prints(self):
        script = "ls / | cat >/dev/null; (exec sleep 0.01) & wait; kill -9 $$"
        for options in (["-tt"], ["-ttt", "-y"], ["-tt", "-Y"], ["-t", "-v"]):
            with self.subTest(options=options):
                path = self.scratch / "trace"
                result = subprocess.run(["strace", "-f", "-T", *options, "-o", path, "sh", "-c", script], capture_output=True, text=True, timeout=60)
                if "ptrace" in result.stderr or not path.exists():
                    self.skipTest("strace may not trace here: " + result.stderr)
                text = path.read_text(errors="replace")
                records, errors = self.convert(text.encode(errors="replace"))
                self.assertEqual(errors, "")
                starts = [r for r in records if r["event"].endswith(".start")]
                ends = [r for r in records if r["event"].endswith(".end")]
                with_duration = len(re.findall(r"(?m)> *<?$|<\d+\.\d+>$", text))
                self.assertEqual(len(ends), len(re.findall(r"(?m)<\d+\.\d+>$|resumed>.*\?$", text)))
                self.assertGreater(with_duration, 20)
                self.assertEqual({r["CALL"] for r in ends} - {r["CALL"] for r in starts}, set())
                self.assertTrue({"sh", "ls", "cat"} <= {r.get("prog") for r in records})
                self.assertEqual([r["event"] for r in records if r["event"] in ("exit", "killed")].count("killed"), 1)

    def test_nlstat_knows_the_calls(self):
        nlstat = support.program("nltools/nlstat")
        text = "".join(f"1 10:00:{i // 10:02}.{i % 10} read(0, \"\", 1) = 1 <0.0{i % 3 + 1}>\n1 10:00:{i // 10:02}.{i % 10}5 write(1, \"\", 1) = 1 <0.01>\n" for i in range(100))
        (self.scratch / "trace").write_text(text)
        self.assertEqual(self.run_program(self.nlconv, "--format", "ulm", "-o", self.scratch / "log", self.scratch / "trace").returncode, 0)
        shown = self.run_program(nlstat, self.scratch / "log").stdout
        self.assertIn("Requests by CALL: 200", shown)
        self.assertRegex(shown, r"\n  read +\S+ % +100 ")


PERF = """# ========
# cmdline : /usr/bin/perf record
swapper     0 [001]  100.000001:     250000 cpu-clock:pppH: 
	ffffffff8171a795 pidfs_add_pid+0x55 ([kernel.kallsyms])
	           d43b8 std::vector<int, a b>::f(int)+0x8 (/usr/lib/a (deleted))
	               0 [unknown] ([unknown])

Web Content 12 3456/3457 [000] 100.000002: sched:sched_switch: prev_comm=Web Content prev_pid=512 prev_state=R+ ==> next_comm=a=b next_pid=18
 cc1   489 [000] 100.000003123: syscalls:sys_enter_openat: dfd: 0xffffff9c, filename: 0x12361fb0, __mode: 0x00000000
 cc1   489 100.5:  1 cycles:u:      55a f+0x1 (/bin/x)
 cc1   489 [003] 101.5: probe:x: (ffffffff81) pid=5
 cc1   489 [003] 102.5: workqueue:go: just text here
"""


FTRACE = """# tracer: function
#
            bash-1977    [000] d..1. 17284.993652: sys_close <-system_call_fastpath
 Web Content-12 (   11) [003] .... 100.5: sched_switch: prev_comm=Web Content prev_pid=512 ==> next_comm=a=b
  0)   1.250 us    |    lock();
  0)               |  }
"""


class Ftrace(ImportCase):
    def test_what_lines_become(self):
        records, _ = self.convert(FTRACE)
        self.assertEqual(records[0], {"ts": "1970-01-01T04:48:04.993652Z", "event": "ftrace.function", "level": "System", "prog": "bash", "CPU": 0,
                                      "TID": 1977, "FUNCTION": "sys_close", "CALLER": "system_call_fastpath"})
        self.assertEqual([records[1].get(k) for k in ("prog", "event", "CPU", "TID", "PID", "PREV.COMM", "PREV.PID", "NEXT.COMM")],
                         ["Web Content", "sched_switch", 3, 12, 11, "Web Content", 512, "a=b"])
        self.assertEqual([records[2].get(k) for k in ("event", "CPU", "FUNCTION", "DEPTH", "DURATION.NS")], ["ftrace.funcgraph_entry", 0, "lock", 1, 1250])
        self.assertEqual([records[3].get(k) for k in ("event", "DEPTH")], ["ftrace.funcgraph_exit", 0])

    def test_what_cannot_be_read_is_told_with_its_place(self):
        good = "  cc1-489 [000] 100.000003: f <-g\n"
        for line in ("rubbish", " cc1 [000] 100.5: f <-g", " cc1-1 [000] 100: f <-g", " cc1-1 [000] 99999999999999999999.5: f <-g", " cc1-1 [000] 100.5: f g",
                     " 99999) |  f();", " 0) f();", " 5)  a => b"):
            with self.subTest(line=line):
                records, errors = self.convert(good + line + "\n" + good, status=1)
                self.assertEqual(len(records), 2)
                self.assertIn("input:2: ", errors)


class Perf(ImportCase):
    def test_what_samples_become(self):
        records, errors = self.convert(PERF)
        self.assertIn("times without a date", errors)
        self.assertEqual(records[0], {
            "ts": "1970-01-01T00:01:40.000001Z", "event": "cpu-clock:pppH", "level": "System", "prog": "swapper", "CPU": 1, "TID": 0,
            "PERIOD": 250000, "SYMBOL": "pidfs_add_pid", "FILE": "[kernel.kallsyms]", "ADDRESS": "ffffffff8171a795",
            "STACK": "[unknown];std::vector<int, a b>::f(int);pidfs_add_pid"})
        self.assertEqual(records[1], {
            "ts": "1970-01-01T00:01:40.000002Z", "event": "sched.sched_switch", "level": "System", "prog": "Web Content 12", "CPU": 0, "PID": 3456,
            "TID": 3457, "PREV.COMM": "Web Content", "PREV.PID": 512, "PREV.STATE": "R+", "NEXT.COMM": "a=b", "NEXT.PID": 18})
        self.assertEqual(records[2]["ts"], "1970-01-01T00:01:40.000003123Z")
        self.assertEqual([records[2][k] for k in ("DFD", "FILENAME", "MODE")], ["0xffffff9c", "0x12361fb0", "0x00000000"])
        self.assertEqual([records[3][k] for k in ("event", "PERIOD", "SYMBOL", "FILE", "ADDRESS")], ["cycles:u", 1, "f", "/bin/x", "55a"])
        self.assertEqual((records[4]["event"], records[4]["TEXT"], records[4]["EV.PID"]), ("probe.x", "(ffffffff81)", 5))
        self.assertEqual(records[5]["TEXT"], "just text here")
        records, _ = self.convert("             :-1    -1/-1 [000] 50000.788094: sched:sched_switch: prev_pid=1\n")
        self.assertEqual([records[0][k] for k in ("prog", "PID", "TID", "PREV.PID")], [":-1", -1, -1, 1])

    def test_base_and_host(self):
        records, errors = self.convert(PERF, "--base", "2026-01-01T00:00:00Z", "--host", "h1")
        self.assertEqual((errors, records[0]["ts"], records[0]["host"]), ("", "2026-01-01T00:01:40.000001Z", "h1"))
        self.convert(PERF, "--base", "noon", status=2)
        records, _ = self.convert(PERF, "--base", "2026-01-01 12:00:00", environment={"TZ": "UTC+1"})
        self.assertEqual(records[0]["ts"], "2026-01-01T13:01:40.000001Z")

    def test_what_cannot_be_read_is_told_with_its_place(self):
        good = " cc1 489 [000] 100.000003: probe:x: A=1\n"
        for line in ("rubbish", " cc1 x [000] 100.5: probe:x:", " cc1 1 [000] 100.5: probe", " cc1 1 [000] 99999999999999999999.5: probe:x:",
                     "\tno frame", " cc1 1 [000] 100.5:"):
            with self.subTest(line=line):
                records, errors = self.convert(good + line + "\n" + good, status=1)
                self.assertEqual(len(records), 2)
                self.assertIn("input:2: ", errors)
                records, _ = self.convert(good + line + "\n" + good, "--strict", status=1)
                self.assertEqual(len(records), 1 if line[0] != "\t" else 0)

    def test_chains_are_not_cut(self):
        sample = " a b 5 [000] {}.5:  1 cycles: \n" + "".join(f"\t   {i:x} f{i}+0x1 (/bin/x)\n" for i in range(50)) + "\n"
        data = "".join(sample.format(i + 1) for i in range(3000))
        for threads in "1", "4":
            records, errors = self.convert(data, "--base", "2026-01-01T00:00:00Z", "--threads", threads)
            self.assertEqual((errors, len(records)), ("", 3000))
            self.assertEqual({r["STACK"].count(";") for r in records}, {49})

    @unittest.skipUnless(shutil.which("perf"), "perf is not installed")
    def test_what_perf_prints(self):
        data = self.scratch / "perf.data"
        for record, event in ((["-g"], None), ([], None), (["-e", "sched:sched_switch", "-a"], "sched.sched_switch")):
            with self.subTest(record=record):
                done = subprocess.run(["perf", "record", "-q", "-o", data, *record, "--", "ls", "-lR", "/usr/share/doc"], capture_output=True, text=True, timeout=60)
                if done.returncode != 0:
                    self.skipTest("perf may not record here: " + done.stderr)
                text = subprocess.run(["perf", "script", "-i", data], capture_output=True, timeout=60).stdout
                heads = len(re.findall(rb"(?m)^ *\S.* -?\d+ .*\d+\.\d+: ", text))
                if heads == 0:
                    continue
                records, errors = self.convert(text, "--base", "2026-01-01T00:00:00Z")
                self.assertEqual((errors, len(records)), ("", heads))
                if event:
                    self.assertEqual({r["event"] for r in records}, {event})
                    self.assertTrue(all("PREV.COMM" in r and "NEXT.PRIO" in r for r in records))
                else:
                    self.assertTrue(all("ADDRESS" in r for r in records))


CTF_METADATA = """/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { integer { size = 32; } magic; integer { size = 32; } stream_id; }; };
env { hostname = "h1"; };
clock { name = "c"; freq = 1000000000; offset_s = 1700000000; absolute = true; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time_t;
typealias integer { size = 32; align = 8; signed = true; } := int32;
typealias integer { size = 8; align = 8; } := byte;
stream { id = 0;
  packet.context := struct { integer { size = 64; align = 8; } packet_size; integer { size = 64; align = 8; } content_size;
    time_t timestamp_begin; time_t timestamp_end; integer { size = 64; align = 8; } events_discarded; byte cpu_id; };
  event.header := struct { byte id; time_t timestamp; };
  event.context := struct { string procname; int32 _vpid; }; };
event { id = 0; name = "app:all"; stream_id = 0; loglevel = 3;
  fields := struct { int32 _n; floating_point { exp_dig = 11; mant_dig = 53; align = 8; } d; string s; byte a[3];
    struct { int32 x; byte y; } inner; enum : byte { ONE = 1, TWO = 2, MANY = 3 ... 9 } e; enum : byte { X = 1 } f; byte len; int32 seq[len]; }; };
event { id = 1; name = "bare"; stream_id = 0; };
"""
CTF_START = 1700000000


def ctf_packet(events, begin, end, discarded=0, cpu=3, cut=0):
    body = b"".join(events)
    size = (4 + 4 + 8 * 5 + 1 + len(body)) * 8
    return struct.pack("<IIQQQQQB", 0xC1FC1FC1, 0, size, size, begin, end, discarded, cpu) + body[: len(body) - cut]


def ctf_all(time, n, text=b"text"):
    return (struct.pack("<BQ", 0, time) + b"prog\0" + struct.pack("<i", 77) + struct.pack("<id", n, 0.5) + text + b"\0" + b"\1\2\3"
            + struct.pack("<iB", -4, 9) + b"\2\7" + struct.pack("<Bii", 2, 10, -11))


def ctf_bare(time):
    return struct.pack("<BQ", 1, time) + b"prog\0" + struct.pack("<i", 77)


class Audit(ImportCase):
    def test_what_lines_become(self):
        records, errors = self.convert(
            'type=SYSCALL msg=audit(1364481363.243:24287): arch=c000003e success=no comm="a cat" key=(null)\n'
            "node=h1 type=USER_LOGIN msg=audit(1364481364.001:24288): pid=1 msg='op=login acct=\"root\" res=ok'\x1dUID=\"root\"\n")
        self.assertEqual(errors, "")
        self.assertEqual(records, [
            {"ts": "2013-03-28T14:36:03.243000Z", "event": "SYSCALL", "level": "System", "prog": "a cat", "SERIAL": 24287,
             "arch": "c000003e", "success": "no", "key": "(null)"},
            {"ts": "2013-03-28T14:36:04.001000Z", "event": "USER_LOGIN", "level": "System", "host": "h1", "SERIAL": 24288, "pid": 1,
             "op": "login", "acct": "root", "res": "ok", "UID": "root"}])

    def test_malformed_lines(self):
        good = "type=CWD msg=audit(1364481363.243:1): cwd=\"/\"\n"
        records, errors = self.convert(good + "type=CWD msg=audit(x:1): a=b\nrubbish\n" + good, status=1)
        self.assertEqual(len(records), 2)
        self.assertIn("input:2: invalid time", errors)
        self.assertIn("input:3: expected \"type=TYPE msg=audit(TIME:SERIAL):\"", errors)


class TimeFields(ImportCase):
    """Times in fields that are not the format's own time."""

    def test_json_of_other_programs(self):
        for value, time in [('"@timestamp":"2026-01-01T00:00:00.123Z"', "00.123000Z"), ('"time":1767225600123', "00.123000Z"),
                            ('"timestamp":1767225600.5', "00.500000Z"), ('"time":"2026-01-01T01:00:01+01:00"', "01.000000Z"),
                            ('"timestamp":1767225600000000007', "00.000000007Z"), ('"time":"1767225600123456"', "00.123456Z"),
                            ('"time":"noon","timestamp":1767225602', "02.000000Z")]:
            records, errors = self.convert('{"event":"a",%s,"n":1}\n' % value)
            self.assertEqual((records[0]["ts"], records[0]["n"], errors), ("2026-01-01T00:00:" + time, 1, ""), value)
            self.assertNotIn("@timestamp", records[0])

    def test_a_named_field(self):
        line = '{"event":"a","ts":"2025-01-01T00:00:00Z","when":"2026-01-01T00:00:00Z"}\n'
        records, errors = self.convert(line + '{"event":"b"}\n', "--time-field", "when", status=1)
        self.assertEqual([(r["ts"], r["ts#2"]) for r in records], [("2026-01-01T00:00:00.000000Z", "2025-01-01T00:00:00Z")])
        self.assertIn("input:2: no field when that contains a time", errors)

    def test_a_record_without_the_named_field_is_reported(self):
        """In every format, a record without the field of --time-field is reported, and the other records are converted."""
        span = {"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "s", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        when = {"key": "WHEN", "value": {"stringValue": "2026-01-01T00:00:00Z"}}
        log = {"timeUnixNano": "1", "eventName": "good", "attributes": [when]}
        data = {
            "strace": ("1 10:00:00.000001 a() = 0 <0.000001>\n1 10:00:00.000002 b() = 0\n1 10:00:00.000003 c( <unfinished ...>\n"
                       "1 10:00:00.000004 <... c resumed>) = 0\n1 10:00:00.000005 --- SIGCHLD {WHEN=1767225600} ---\n", "1234"),
            "ftrace": (" f-1 [000] 100.000003: f <-g\n f-1 [000] 100.000004: e: WHEN=1767225600\n f-1 [000] 100.000005: e: N=1\n 0) 1.0 us | f();\n", "134"),
            "perf": (" f 1 [000] 100.000003: p:x: N=1\n\t55a f (/bin/x)\n f 1 [000] 100.000004: p:x: WHEN=1767225600\n", "1"),
            "audit": ("type=CWD msg=audit(1.5:1): WHEN=1767225600\ntype=CWD msg=audit(1.5:2): a=b\n", "2"),
            "syslog": ("<14>Jan  1 00:00:00 h p: text\n<14>1 2026-01-01T00:00:00Z h p - - [x@1 WHEN=\"1767225600\"] t\n", "1"),
            "chrome": ('[{"name":"a","ph":"i","ts":1,"args":{"WHEN":1767225600}},\n{"name":"b","ph":"i","ts":2}]\n', "2"),
            "otlp": (json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}]}) + "\n" + json.dumps(
                {"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": [when]}]}]}]}), "2"),
        }
        for name, (text, lines) in data.items():
            with self.subTest(format=name):
                field = "x@1.WHEN" if name == "syslog" else "WHEN"
                records, errors = self.convert(text, "--from-format", name, "--base", "2026-01-02", "--time-field", field, status=1)
                self.assertEqual([r["ts"] for r in records], ["2026-01-01T00:00:00.000000Z"], errors)
                self.assertEqual(re.findall(r"input:(\d+): .*(?:no field %s that contains a time|a record has no time in the field that --time-field names)" % field, errors),
                                 list(lines), errors)

    def test_named_fields_that_are_standard_or_long(self):
        records, errors = self.convert('{"event":"a"}\n{"event":"b","ts":"2026-01-01T00:00:00Z"}\n', "--time-field", "ts", status=1)
        self.assertEqual([r["event"] for r in records], ["b"])
        self.assertIn("input:1: no field ts that contains a time", errors)
        for name in ("x" * 300, "@" + "y" * 299):
            records, errors = self.convert('{"event":"a"}\n{"event":"b","%s":1767225600}\n' % name, "--time-field", name, status=1)
            self.assertEqual([(r["event"], r["ts"]) for r in records], [("b", "2026-01-01T00:00:00.000000Z")])
            self.assertRegex(errors, "input:1: no field .* that contains a time")

    def test_names_of_loggers(self):
        """In JSON of other programs, msg names the event, service the program, and hostname the host, if the usual members are absent."""
        records, _ = self.convert('{"time":"2026-01-01T00:00:00Z","service":"gateway","hostname":"h","msg":"request received","n":1}\n'
                                  '{"time":"2026-01-01T00:00:01Z","service":"gateway","msg":"took 12 ms"}\n'
                                  '{"time":"2026-01-01T00:00:02Z","prog":"p","service":"s","event":"e","msg":"m"}\n')
        self.assertEqual([[r.get(n) for n in ("event", "prog", "host", "msg", "service")] for r in records],
                         [["request received", "gateway", "h", "request received", "gateway"], [None, "gateway", None, "took 12 ms", "gateway"],
                          ["e", "p", None, "m", "s"]])

    def test_csv(self):
        records, _ = self.convert("timestamp,event,n\n2026-01-01T00:00:00Z,a,1\n1767225601,b,2\n")
        self.assertEqual([(r["ts"][-10:], r["event"]) for r in records], [("00.000000Z", "a"), ("01.000000Z", "b")])
        records, _ = self.convert("when,event\n1767225601,b\n", "--from-format", "csv", "--time-field", "when")
        self.assertEqual(records, [{"ts": "2026-01-01T00:00:01.000000Z", "event": "b"}])

    def test_start_and_end(self):
        """The time of a line without DATE is END; START remains, so that the record has a duration."""
        line = "START=20260101000000.5417 %sHOST=h NL.EVNT=T MSG=\"a b\" NBYTES=5\n"
        records, errors = self.convert(line % "END=20260101000002.25 " + line % "")
        self.assertEqual(([r["ts"][17:] for r in records], errors), (["02.250000Z", "00.541700Z"], ""))
        self.assertEqual((records[0]["MSG"], records[0]["START"], "START" in records[1]), ("a b", "20260101000000.5417", False))
        log = self.scratch / "input"
        result = self.run_program(support.program("nltools/nlstat"), "--json", log)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn('"total_ns": 1708300000', result.stdout)

    def test_span_with_an_end_without_the_named_time(self):
        """The attributes of a span are fields of its first record only, so the span is rejected as a whole."""
        span = {"traceId": "01" * 16, "spanId": "02" * 8, "name": "S", "startTimeUnixNano": "1767225600000000000",
                "endTimeUnixNano": "1767225601000000000", "attributes": [{"key": "WHEN", "value": {"stringValue": "2026-01-01T00:00:00Z"}}]}
        text = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n"
        records, errors = self.convert(text, "--time-field", "WHEN", status=1)
        self.assertEqual(records, [])
        self.assertIn("a record has no time in the field that --time-field names", errors)
        self.assertEqual(len(self.convert(text)[0]), 2)

    def test_a_named_field_of_lines(self):
        records, errors = self.convert("A=1 WHEN=2026-01-01T00:00:00Z B=\"x y\"\nA=2\n", "--from-format", "pairs", "--time-field", "WHEN", status=1)
        self.assertEqual(records, [{"ts": "2026-01-01T00:00:00.000000Z", "A": 1, "B": "x y"}])
        self.assertIn("input:2: no time field", errors)

    def test_microseconds_that_are_not_padded(self):
        """--fraction applies to START and END, too, even if DATE is padded; nlsort and nlconv agree."""
        self.convert("DATE=20260101000002.250000 START=20260101000000.5417 HOST=h PROG=p NL.EVNT=T NBYTES=100\n")
        for program in (["nltools/nlconv", "-q", "--format", "ulm"], ["nlsort/nlsort"]):
            result = self.run_program(support.program(program[0]), *program[1:], "--fraction", "microseconds", self.scratch / "input")
            self.assertIn(" START=20260101000000.005417 ", result.stdout)
            self.assertIn("DATE=20260101000002.250000 ", result.stdout)
        result = self.run_program(support.program("nltools/nlstat"), "--json", "--fraction", "microseconds", self.scratch / "input")
        self.assertIn('"total_ns": 2244583000', result.stdout)


class Multiline(ImportCase):
    """Newlines in quoted values of the library's text formats."""
    HEAD = "DATE=20260101000000.500000 HOST=h PROG=p NL.EVNT=e "

    def test_many_threads_read_what_one_line_would_give(self):
        """The log has many pieces, which end anywhere in a record; 4 MB."""
        chance, raw, escaped = random.Random(8), [], []
        for i in range(20_000):
            texts = ["\n".join("x" * chance.randrange(60) for _ in range(chance.choice((1, 1, 2, 5, 40)))) for _ in range(2)]
            raw.append(f'{self.HEAD}N={i} SQL="{texts[0]}" B="{texts[1]}" C=1\n')
            escaped.append(raw[-1][:-1].replace("\n", "\\n") + "\n")
        path = self.scratch / "raw.log"
        path.write_text("".join(raw))
        for threads in "1", "4":
            result = self.run_program(self.nlconv, "--format", "ulm", "--threads", threads, path)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            expected = self.run_program(self.nlconv, "--format", "ulm", "-", input="".join(escaped)).stdout
            self.assertTrue(result.stdout == expected)

    def test_a_missing_quote_hides_no_record(self):
        """The lines after it are reported. A record may have up to 64 KiB, and blanks or nothing follow its closing quote."""
        whole = self.HEAD + 'A="1\n2"\n'
        for lines, records, malformed in (('A="1\n2\n', 1, [4]), ('A="1\n2"3\n', 1, [4]), ('A="' + "x\n" * 40_000 + '"\n', 1, [4]),
                                          ('A="' + "x\n" * 30_000 + '"\n', 1, []), ('A="1\n\n" \t\r\n', 1, [])):
            with self.subTest(lines=lines[:20], size=len(lines)):
                found, errors = self.convert(whole + self.HEAD + lines + self.HEAD + "A=3\n", status=1 if malformed else 0)
                self.assertEqual(([r["A"] for r in found][::2], len(found)), (["1\n2", 3], 2 + records))
                self.assertEqual([int(n) for n in re.findall(r"input:(\d+): ", errors)][:1], malformed)

    def test_detected_or_named(self):
        """Only the beginning of a log is examined."""
        late = (self.HEAD + "A=1\n") * 2000 + self.HEAD + 'A="1\n2"\n'
        self.assertIn("input:2002: ", self.convert(late, status=1)[1])
        self.assertEqual(self.convert(late, "--from-format", "multiline")[0][-1]["A"], "1\n2")


class Ctf(ImportCase):
    def setUp(self):
        super().setUp()
        if "  ctf " not in self.run_program(self.nlconv, "--formats").stdout:
            self.skipTest("CTF is not built here")

    def make(self, *packets, name="trace"):
        folder = self.scratch / name
        folder.mkdir(parents=True)
        (folder / "metadata").write_text(CTF_METADATA)
        (folder / "stream").write_bytes(b"".join(packets))
        return folder

    def read(self, folder, *arguments, status=0):
        result = self.run_program(self.nlconv, "--format", "json", *arguments, folder)
        self.assertEqual(result.returncode, status, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()], result.stderr

    def test_what_events_become(self):
        records, errors = self.read(self.make(ctf_packet([ctf_all(5, -6), ctf_bare(7)], 5, 7)))
        self.assertEqual(errors, "")
        self.assertEqual(records[0], {
            "ts": "2023-11-14T22:13:20.000000005Z", "event": "app:all", "level": "Error", "host": "h1", "prog": "prog", "cpu_id": 3,
            "vpid": 77, "n": -6, "d": 0.5, "s": "text", "a": "[1,2,3]", "inner.x": -4, "inner.y": 9, "e": "TWO", "f": 7, "len": 2,
            "seq": "[10,-11]"})
        self.assertEqual((records[1]["event"], records[1]["level"], records[1]["vpid"]), ("bare", "System", 77))

    def test_without_a_clock(self):
        """The records have the time of the origin, in the order of the events."""
        folder = self.make()
        (folder / "metadata").write_text(re.sub(r"clock \{.*?\};\n| map = clock.c.value;|time_t timestamp(_begin|_end)?;", "", CTF_METADATA))
        events = [bytes([event[0]]) + event[9:] for event in (ctf_all(5, n) for n in range(50))]
        body = b"".join(events)
        size = (4 + 4 + 8 * 3 + 1 + len(body)) * 8
        (folder / "stream").write_bytes(struct.pack("<IIQQQB", 0xC1FC1FC1, 0, size, size, 0, 3) + body)
        records, errors = self.read(folder, "--base", "2026-01-01T00:00:00Z")
        self.assertEqual([(r["ts"], r["n"]) for r in records], [("2026-01-01T00:00:00.000000Z", n) for n in range(50)], errors)

    def test_events_without_the_named_time_field(self):
        folder = self.make(ctf_packet([ctf_all(1, 5), ctf_bare(1)], 1, 2), ctf_packet([ctf_bare(10)], 9, 10, discarded=5))
        records, errors = self.read(folder, "--time-field", "n", status=1)
        self.assertEqual([(r["event"], r["ts"]) for r in records], [("app:all", "1970-01-01T00:00:05.000000Z")])
        self.assertEqual(len(re.findall("(?m)^nlconv: .*: no field n that contains a time", errors)), 3, errors)

    def test_losses_are_records(self):
        records, _ = self.read(self.make(ctf_packet([ctf_bare(1)], 1, 2), ctf_packet([ctf_bare(10)], 9, 10, discarded=5)))
        self.assertEqual([(r["event"], r.get("COUNT")) for r in records], [("bare", None), ("NetLogger.Lost", 5), ("bare", None)])

    def test_several_traces_in_a_folder(self):
        self.make(ctf_packet([ctf_bare(1)], 1, 1), name="all/a/b")
        self.make(ctf_packet([ctf_bare(2), ctf_bare(3)], 2, 3), name="all/c")
        (self.scratch / "all" / "empty").mkdir()
        self.assertEqual(len(self.read(self.scratch / "all")[0]), 3)

    def test_into_formats_that_are_written_in_two_passes(self):
        folder = self.make(ctf_packet([ctf_all(5, -6), ctf_bare(7)], 5, 7))
        result = self.run_program(self.nlconv, "--format", "csv", folder)
        self.assertEqual((result.returncode, len(result.stdout.splitlines())), (0, 3), result.stderr)
        self.assertTrue(result.stdout.startswith("ts,event,level,host,prog,cpu_id,vpid,n,d,s,a,inner.x"))

    def test_many_events(self):
        packets = [ctf_packet([ctf_all(i * 1000 + j, j) for j in range(1000)], i * 1000, i * 1000 + 999) for i in range(100)]
        records, errors = self.read(self.make(*packets))
        self.assertEqual((len(records), errors), (100000, ""))
        self.assertEqual([r["n"] for r in records[99000:]], list(range(1000)))

    def test_nlstat_nests_spans_by_thread(self):
        """Two threads of each of two processes overlap. A frame takes 100 us, of which a query takes 30 us."""
        events = ("app:frame_start", "app:query_start", "app:query_end", "app:frame_end")
        folder = self.make()
        (folder / "metadata").write_text(CTF_METADATA.replace("int32 _vpid;", "int32 _vpid; int32 _vtid;") + "".join(
            f'event {{ id = {i}; name = "{name}"; stream_id = 0; fields := struct {{ int32 _n; }}; }};\n' for i, name in enumerate(events, 2)))
        records = []
        for i in range(10):
            for process in (77, 78):
                for thread in (1, 2):
                    at = i * 1000000 + process * 100 + thread * 5000
                    for event, us in (("app:frame_start", 0), ("app:query_start", 10), ("app:query_start", 15), ("app:query_end", 22),
                                      ("app:query_end", 40), ("app:frame_end", 100)):
                        records.append((at + us * 1000, 2 + events.index(event), process, thread))
        body = [struct.pack("<BQ", event, time) + b"prog\0" + struct.pack("<iii", process, thread, 5) for time, event, process, thread in sorted(records)]
        (folder / "stream").write_bytes(ctf_packet(body, 0, max(records)[0]))
        result = self.run_program(support.program("nltools/nlstat"), "--json", folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        (found,) = json.loads(result.stdout)
        self.assertEqual((found["id"], found["requests"], found["total_ns"]), (["thread"], 40, 40 * 100000))
        self.assertEqual({r["span"]: (r["count"], r["mean_ns"], r["self_ns"]) for r in found["rows"] if r["kind"] == "span"},
                         {"app:frame": (40, 100000, 40 * 70000), "app:query": (80, 18500, 40 * 30000)})

    def test_spans_that_overlap_in_one_thread(self):
        """An LTTng trace without IDs: nlstat reports spans of one thread that cross, and measures the others."""
        events = ("app:page_start", "app:page_end", "app:query_start", "app:query_end")
        folder = self.make()
        (folder / "metadata").write_text(CTF_METADATA.replace("int32 _vpid;", "int32 _vpid; int32 _vtid;") + "".join(
            f'event {{ id = {i}; name = "{name}"; stream_id = 0; fields := struct {{ int32 _n; }}; }};\n' for i, name in enumerate(events, 2)))
        records = []
        for i in range(100):
            for event, us in ((0, 0), (2, 100), (1, 600), (3, 900)) if i < 3 else ((0, 0), (2, 100), (3, 600), (1, 900)):
                records.append((i * 1000000 + us * 1000, 2 + event))
        body = [struct.pack("<BQ", event, time) + b"prog\0" + struct.pack("<iii", 77, 1, 5) for time, event in records]
        (folder / "stream").write_bytes(ctf_packet(body, 0, records[-1][0]))
        result = self.run_program(support.program("nltools/nlstat"), "--json", folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        (found,) = json.loads(result.stdout)
        self.assertEqual((found["requests"], found["overlapping_spans"], found["total_ns"]), (97, 6, 97 * 900_000))

    def test_what_is_damaged_is_told_and_the_next_trace_read(self):
        self.make(ctf_packet([ctf_bare(1)], 1, 1), b"rubbish" * 20, name="all/a")
        self.make(ctf_packet([ctf_bare(1), ctf_bare(2)], 1, 2, cut=3), name="all/b")
        bad = self.make(ctf_packet([ctf_bare(1)], 1, 1), name="all/c")
        (bad / "metadata").write_text("/* CTF 1.8 */ trace {")
        self.make(ctf_packet([ctf_bare(3)], 3, 3), name="all/d")
        records, errors = self.read(self.scratch / "all", status=1)
        self.assertEqual(records[-1]["ts"][-4:], "003Z")
        self.assertGreaterEqual(len(re.findall("(?m)^nlconv: .*all", errors)), 2, errors)
        records, _ = self.read(self.scratch / "all", "--strict", status=1)
        self.assertLess(len(records), 3)

    def test_ctf2(self):
        """libbabeltrace2 2.0 cannot read CTF 2. The message names the version and the remedy."""
        folder = self.make(ctf_packet([ctf_bare(1)], 1, 1))
        (folder / "metadata").write_bytes(b"\x1e" + json.dumps({"type": "preamble", "version": 2}).encode() + b"\n")
        _, errors = self.read(folder, status=1)
        self.assertIn("libbabeltrace2 cannot read this CTF 2 trace; convert it with babeltrace2 2.1 to CTF 1.8", errors)

    def test_a_trace_on_which_the_library_fails(self):
        """libbabeltrace2 divides by the frequency of the clock. The following traces are named as not read."""
        for name in ("all/a", "all/b", "all/c"):
            self.make(ctf_packet([ctf_bare(1)], 1, 1), name=name)
        metadata = self.scratch / "all" / "b" / "metadata"
        metadata.write_text(CTF_METADATA.replace("freq = 1000000000", "frequency = 1000000000"))
        records, errors = self.read(self.scratch / "all", status=1)
        self.assertEqual(len(records), 1)
        self.assertIn("libbabeltrace2 failed while it read the trace", errors)
        self.assertIn("not read, because libbabeltrace2 failed on an earlier trace", errors)

    def test_only_damaged_traces(self):
        folder = self.make(ctf_packet([ctf_bare(1)], 1, 1))
        (folder / "metadata").write_text("/* CTF 1.8 */ trace {")
        for program in (["nltools/nlconv", "--format", "ulm"], ["nltools/nlstat"], ["nlsort/nlsort"]):
            result = self.run_program(support.program(program[0]), *program[1:], folder)
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_folders_that_are_none(self):
        self.assertIn("not a CTF trace", self.read(self.scratch, "--from-format", "ctf", status=1)[1])
        (self.scratch / "file").write_text("x")
        self.assertIn("not a CTF trace", self.read(self.scratch / "file", "--from-format", "ctf", status=1)[1])

    @unittest.skipUnless(shutil.which("babeltrace2"), "babeltrace2 is not installed")
    def test_babeltrace2_sees_the_same(self):
        text = "".join(f"[ {i}.{i:06}] line {i} of \"many\"\n" for i in range(1, 500))
        (self.scratch / "dmesg").write_text(text)
        made = self.run_program("babeltrace2", "run", "--component=src:source.text.dmesg", f'--params=path="{self.scratch}/dmesg"',
                                "--component=m:filter.utils.muxer", "--component=out:sink.ctf.fs", f'--params=path="{self.scratch}/t"',
                                "--connect=src:m", "--connect=m:out")
        self.assertEqual(made.returncode, 0, made.stderr)
        for folder, fields in ((self.scratch / "t", ["str"]), (self.make(ctf_packet([ctf_all(i, i, b"t%d" % i) for i in range(50)], 0, 49)), ["s", "n"])):
            theirs = self.run_program("babeltrace2", folder, "--clock-seconds", "--no-delta").stdout.splitlines()
            records, _ = self.read(folder, "--base", "1970-01-01T00:00:00Z")
            self.assertEqual(len(records), len(theirs))
            for record, line in zip(records, theirs):
                for field in fields:
                    value = record[field]
                    quoted = '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else value
                    self.assertIn(f"{field} = {quoted}", line)


class LoadedLibraries(support.Case):
    """libxml2 and libbabeltrace2 are loaded when a program first needs them."""

    def run_without(self, prefix, *command):
        """Runs a program with an empty file in place of the library. Returns its result and the library's name."""
        library = re.search(rf'#define {prefix}_LIBRARY "(.*)"', (support.BUILD / "config.h").read_text())[1]
        folder = self.scratch / "libraries"
        folder.mkdir(exist_ok=True)
        (folder / library).touch()
        return self.run_program(*command, env={**os.environ, "LD_LIBRARY_PATH": str(folder)}), library

    def test_other_formats_need_none(self):
        log = self.scratch / "a.log"
        log.write_text("DATE=20260101000000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E N=1\n")
        for prefix in "XML", "BABELTRACE":
            for program in "nlsort/nlsort", "nltools/nlconv", "nltools/nlwrite", "nltools/nlarchive":
                result, _ = self.run_without(prefix, support.program(program), "--version")
                self.assertEqual((result.returncode, result.stderr), (0, ""), program)
            result, _ = self.run_without(prefix, support.program("nlsort/nlsort"), "--format", "ulm", log)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, log.read_text(), ""))

    def test_missing_libraries_are_named(self):
        document = self.scratch / "a.xml"
        document.write_text("<?xml version=\"1.0\"?><log></log>\n")
        folder = self.scratch / "trace"
        folder.mkdir()
        (folder / "metadata").write_text(CTF_METADATA)
        for prefix, path in ("XML", document), ("BABELTRACE", folder):
            result, library = self.run_without(prefix, support.program("nltools/nlconv"), "--format", "json", path)
            self.assertNotEqual(result.returncode, 0)
            self.assertEqual(result.stdout, "")
            self.assertRegex(result.stderr, f"cannot load the library: .*{library}")


if __name__ == "__main__":
    support.main()
