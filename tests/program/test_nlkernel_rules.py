"""nlkernel's rules: their results for known events, and for this host's kernel."""
import json
import os
import pathlib
import re
import shutil
import sys

import support

NLKERNEL = support.BUILD / "nlkernel/nlkernel"
RULES = ["application", "bench", "cpus", "disk", "faults", "interrupt", "locking", "request", "scheduler", "stopwatch", "syscalls", "tcp"]


class Case(support.Case):
    """Events with a known meaning, made without a kernel."""

    def setUp(self):
        super().setUp()
        support.program("nlkernel/nlkernel")

    def scheduler_log(self):
        lines = []

        def event(microseconds, name, text, prog="p"):
            lines.append(f"DATE=20260101000000.{microseconds:06d} HOST=h PROG={prog} LVL=System NL.EVNT={name} CPU=0 {text}\n")

        def switch(at, prev, pid, state, following, next_pid):
            event(at, "sched.sched_switch", f"PREV.COMM={prev} PREV.PID={pid} PREV.PRIO=120 PREV.STATE={state} NEXT.COMM={following} "
                  f"NEXT.PID={next_pid} NEXT.PRIO=120")

        switch(0, "swapper/0", 0, 0, "a", 10)
        event(100, "sched.sched_wakeup", "COMM=b EV.PID=20 PRIO=120 TARGET.CPU=0")
        switch(150, "a", 10, 256, "b", 20)
        switch(400, "b", 20, 1, "a", 10)
        switch(1000, "a", 10, 1, "swapper/0", 0)
        event(1100, "sched.sched_wakeup_new", "COMM=a EV.PID=10 PRIO=120 TARGET.CPU=0")
        event(1150, "NetLogger.Lost", "COUNT=5 FROM=20260101000000.001120 TO=20260101000000.001150", "nlkernel")
        switch(1200, "b", 20, 1, "a", 10)
        switch(1300, "a", 10, 0, "swapper/0", 0)
        lines.append("DATE=20260101000000.000200 HOST=h PROG=p LVL=System NL.EVNT=sched.sched_switch CPU=0 PREV.PID=-1\n")
        lines.append("DATE=20260101000000.000300 HOST=h PROG=p LVL=System NL.EVNT=sched.sched_wakeup CPU=99999999 EV.PID=20\n")
        log = self.scratch / "s.log"
        log.write_text("".join(lines[::2] + lines[1::2]))
        return log

    def nlkernel(self, *arguments, status=0, **options):
        result = self.run_program(NLKERNEL, *arguments, **options)
        support.skip_where_processes_are_not_known(self, result.stderr)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def lines(self, events, name="made.log"):
        """Writes a log of events: (microseconds, name, fields, program)."""
        log = self.scratch / name
        log.write_text("".join(f"DATE=20260101000000.{at:06d} HOST=h PROG={prog} LVL=System NL.EVNT={event} {fields}\n"
                               for at, event, fields, prog in events))
        return log

    def report(self, rules, events):
        found = json.loads(self.nlkernel("report", rules, "--json", self.lines(events)))
        return {r["report"]: r["rows"] for r in found["reports"]}


class Reports(Case):
    def test_scheduler(self):
        found = json.loads(self.nlkernel("report", "scheduler", "--json", self.scheduler_log()))
        self.assertEqual((found["lost"], found["cpus"]), (5, 1))
        rows = {r["report"]: {tuple(row["by"].values()): row for row in r["rows"]} for r in found["reports"]}
        a, b = rows["Quanta"][("a",)], rows["Quanta"][("b",)]
        self.assertEqual([a[c] for c in ("count", "sum", "p50", "p90", "max")], [3, 850000, 150000, 600000, 600000])
        self.assertEqual(b["sum"], 250000)
        a, b = rows["Delays"][("a",)], rows["Delays"][("b",)]
        self.assertEqual((a["count"], a["max"], b["max"]), (1, 250000, 50000))
        self.assertEqual({by: row["count"] for by, row in rows["Oustings"].items()}, {("a", "b"): 1})
        text = self.nlkernel("report", "scheduler", self.scheduler_log())
        self.assertRegex(text, r"(?m)^0.001 s, 1 CPU, \d+ records, 5 events lost")
        self.assertRegex(text, r"(?m)^a +3 +850\.0 us .* 150\.0 us +600\.0 us")
        self.assertRegex(text, r"(?m)^a +b +1 ")
        self.assertEqual(self.nlkernel("report", "scheduler", "--cdf", "a", self.scheduler_log()).splitlines()[33], "150.000 0.34")

    def test_pictures(self):
        for name, begin in (("p.png", b"\x89PNG"), ("p.svg", b"<?xml")):
            picture = self.scratch / name
            self.nlkernel("report", "scheduler", "--plot", picture, self.scheduler_log())
            self.assertTrue(picture.read_bytes().startswith(begin))
            self.assertGreater(picture.stat().st_size, 2000)
        self.assertIn("the name must end in", self.nlkernel("report", "scheduler", "--plot", self.scratch / "p.gif",
                                                                     self.scheduler_log(), status=1))

    def test_all_rows_are_in_the_picture(self):
        """The chart has a bar for each row, and one bar for all rows that do not fit."""
        def texts(rows):
            events = [(1, "raw_syscalls.sys_enter", "TID=1 CPU=0 ID=1", "x")]
            events = [(i, f"exceptions.page_fault_user", "TID=1 CPU=0 ADDRESS=1 IP=1 ERROR.CODE=6", f"prog{n}") for n in range(rows) for i in range(n + 1)]
            picture = self.scratch / "bars.svg"
            self.nlkernel("report", "faults", "--plot", picture, self.lines(events))
            return picture.read_text().count("<rect"), int(re.search(r'height="(\d+)', picture.read_text())[1])
        few, many, more = texts(3), texts(40), texts(200)
        self.assertEqual(many[1] - few[1], 20 * 37)
        self.assertEqual(more[1] - few[1], 20 * 57)

    def test_records_that_were_made(self):
        made = self.scratch / "made.out"
        self.nlkernel("report", "scheduler", "--derived", made, self.scheduler_log())
        lines = made.read_text().splitlines()
        self.assertEqual(sum("NL.EVNT=Quantum" in line for line in lines), 4)
        self.assertIn("PROG=b LVL=System NL.EVNT=RunQueue TID=20 CPU=0 WAKER=p FROM=20260101000000.000100 DUR.NS=50000", "\n".join(lines))

    def test_lanes_of_processors(self):
        """nlv draws a lane for each processor, with the threads that the kernel switched in and out."""
        switch = "CPU=%d PREV.COMM=%s PREV.PID=%d PREV.STATE=1 NEXT.COMM=%s NEXT.PID=%d"
        log = self.lines([(1, "sched.sched_switch", switch % (1, "swapper/1", 0, "a", 10), "swapper/1"),
                          (5, "sched.sched_switch", switch % (1, "a", 10, "b", 20), "a"), (9, "sched.sched_switch", switch % (0, "c", 30, "swapper/0", 0), "c")])
        made = self.scratch / "lanes.out"
        self.nlkernel("report", "cpus", "--derived", made, log)
        found = [re.search(r"PROG=(\S+) .*NL.EVNT=(Cpu\S+) CPU=(\d) TID=(\d+)", line) for line in made.read_text().splitlines()]
        self.assertEqual(sorted(m.groups() for m in found if m), [("a", "Cpu1.in", "1", "10"), ("a", "Cpu1.out", "1", "10"), ("b", "Cpu1.in", "1", "20"),
                                                                  ("c", "Cpu0.out", "0", "30")])

    def test_perl(self):
        text = self.nlkernel("report", "scheduler", "--perl", self.scheduler_log())
        self.assertIn('{\n    header => {\n        "type" => "sched.sched_switch",\n        "serial" => "0",\n'
                      '        "timestamp" => "1767225600000000000",\n', text)
        if not shutil.which("perl"):
            self.skipTest("perl is not installed")
        (self.scratch / "log.pl").write_text(text)
        program = 'my $l = do "./log.pl"; print scalar(@$l), " $l->[0]{header}{type} $l->[0]{q(NEXT.COMM)}"'
        result = self.run_program("perl", "-e", program, cwd=self.scratch)
        self.assertEqual(result.stdout, "11 sched.sched_switch a")

    def test_stopwatch(self):
        events = [(10, "a.b", "TID=1 CPU=0", "x"), (20, "a.b", "TID=2 CPU=1", "x"), (110, "c.d", "TID=1 CPU=0", "x"),
                  (320, "c.d", "TID=2 CPU=1", "y"), (400, "c.d", "TID=2 CPU=1", "y")]
        log = self.lines(events)
        found = json.loads(self.nlkernel("report", "stopwatch", "--set", "BEGIN=a:b", "--set", "END=c:d", "--json", log))
        rows = {row["by"]["PROG"]: row for row in found["reports"][0]["rows"]}
        self.assertEqual((rows["x"]["count"], rows["x"]["max"], rows["y"]["count"], rows["y"]["max"]), (1, 100000, 1, 300000))
        self.assertIn("from a:b to c:d", found["title"])

    def test_interrupts_and_noise(self):
        events = [(1000, "Noise.Begin", "CPU=1 TID=7", "nlkernel"), (1100, "irq_vectors.local_timer_entry", "CPU=1 TID=7 VECTOR=236", "nlkernel-noise"),
                  (1110, "irq_vectors.local_timer_exit", "CPU=1 TID=7 VECTOR=236", "nlkernel-noise"),
                  (1110, "irq.softirq_entry", "CPU=1 TID=7 VEC=1", "nlkernel-noise"),
                  (1115, "irq.irq_handler_entry", "CPU=1 TID=7 IRQ=5 NAME=eth0", "nlkernel-noise"),
                  (1118, "irq.irq_handler_exit", "CPU=1 TID=7 IRQ=5 RET=1", "nlkernel-noise"),
                  (1130, "irq.softirq_exit", "CPU=1 TID=7 VEC=1", "nlkernel-noise"),
                  (1500, "sched.sched_switch", "CPU=1 TID=7 PREV.COMM=nlkernel-noise PREV.PID=7 PREV.STATE=0 NEXT.COMM=other NEXT.PID=8", "nlkernel-noise"),
                  (1700, "sched.sched_switch", "CPU=1 TID=8 PREV.COMM=other PREV.PID=8 PREV.STATE=1 NEXT.COMM=nlkernel-noise NEXT.PID=7", "other"),
                  (2250, "Noise.End", "CPU=1 TID=7 TOOK.NS=1250000 NOISE.NS=250000", "nlkernel")]
        found = self.report("interrupt", events)
        noise = {row["value"]: row for row in found["Noise"]}
        self.assertEqual({v: row["sum"] for v, row in noise.items()},
                         {"NOISE.NS": 250000, "INTERRUPT.NS": 13000, "SOFTIRQ.NS": 17000, "OTHERS.NS": 200000})
        self.assertAlmostEqual(noise["OTHERS.NS"]["share"], 0.8)
        handlers = {row["by"]["HANDLER"]: row["sum"] for row in found["Handlers"]}
        self.assertEqual(handlers, {"local_timer": 10000, "TIMER": 20000, "eth0": 3000})

    def test_locks_and_futexes(self):
        events = [(10, "lock.contention_begin", "TID=1 CPU=0 LOCK.ADDR=18446612682090000000 FLAGS=1", "x"),
                  (14, "lock.contention_end", "TID=1 CPU=0 LOCK.ADDR=18446612682090000000 RET=0", "x"),
                  (20, "lock.contention_begin", "TID=2 CPU=1 LOCK.ADDR=18446612682090000000 FLAGS=32", "y"),
                  (50, "lock.contention_end", "TID=2 CPU=1 LOCK.ADDR=18446612682090000000 RET=0", "y"),
                  (60, "syscalls.sys_enter_futex", "TID=3 CPU=1 PID=3 UADDR=4096 OP=128 VAL=2", "z"),
                  (65, "syscalls.sys_enter_futex", "TID=4 CPU=0 PID=3 UADDR=4096 OP=129 VAL=1", "z"),
                  (66, "syscalls.sys_exit_futex", "TID=4 CPU=0 PID=3 RET=1", "z"),
                  (70, "syscalls.sys_exit_futex", "TID=3 CPU=1 PID=3 RET=0", "z")]
        found = self.report("locking", events)
        self.assertEqual({row["by"]["KIND"]: row["sum"] for row in found["Kinds"]}, {"spinlock": 4000, "mutex": 30000})
        self.assertEqual([(row["by"]["FUTEX"], row["count"], row["sum"]) for row in found["Futexes"]], [("0x1000", 1, 10000)])
        self.assertEqual({row["by"]["LOCK"] for row in found["Locks"]}, {hex(18446612682090000000)})

    def test_shares_are_of_the_recording_that_a_row_is_about(self):
        """A report covers recordings of 1 ms and of 4 ms. Each wait is a share of the time of its recording."""
        events = []
        for n, length, wait in ((1, 0.001, 100), (8, 0.004, 800)):
            events += [(n * 10000, "NetLogger.Record.Begin", f"CPUS=2 N={n}", "nlkernel"),
                       (n * 10000 + 1, "lock.contention_begin", f"TID=1 CPU=0 LOCK.ADDR=1 FLAGS=1 N={n}", "x"),
                       (n * 10000 + 1 + wait, "lock.contention_end", f"TID=1 CPU=0 LOCK.ADDR=1 RET=0 N={n}", "x"),
                       (n * 10000 + 5000, "NetLogger.Record.Finish", f"EVENTS=2 LOST=0 SECONDS={length} N={n}", "nlkernel")]
        found = self.report("locking", [(at, name, re.sub(r" N=\d+$", "", fields), prog) for at, name, fields, prog in events])
        self.assertAlmostEqual(found["Callers"][0]["share"], 1)
        (row,) = found["Kinds"]
        self.assertAlmostEqual(row["cpu"], 0.0009 / 0.005 / 2)
        rules = self.scratch / "vary.rules"
        rules.write_text("[rules]\ntitle = x\n[event lock:contention_begin]\n[event lock:contention_end]\n[span W]\n"
                          "begin = lock.contention_begin key TID,N\nend = lock.contention_end key TID,N\nfield = N\n"
                          "[report R]\nof = W\nby = N\nvalue = DUR.NS\nunit = ns\ncolumns = count rate sum cpu\norder = key\n")
        found = json.loads(self.nlkernel("report", rules, "--json", self.lines(events)))["reports"][0]["rows"]
        self.assertEqual([row["by"]["N"] for row in found], ["1", "8"])
        self.assertAlmostEqual(found[0]["cpu"], 0.1 / 2)
        self.assertAlmostEqual(found[1]["cpu"], 0.2 / 2)
        self.assertAlmostEqual(found[1]["rate"], 250)

    def test_disk(self):
        events = [(10, "block.block_rq_insert", "TID=1 CPU=0 DEV=266338304 SECTOR=100 NR.SECTOR=8 BYTES=4096 RWBS=R COMM=x", "x"),
                  (30, "block.block_rq_issue", "TID=1 CPU=0 DEV=266338304 SECTOR=100 NR.SECTOR=8 BYTES=4096 RWBS=R COMM=x", "x"),
                  (530, "block.block_rq_complete", "TID=0 CPU=1 DEV=266338304 SECTOR=100 NR.SECTOR=8 RWBS=R", "swapper/1")]
        found = self.report("disk", events)
        self.assertEqual([(r["by"]["DEV"], r["by"]["RWBS"], r["sum"]) for r in found["Requests"]], [("254:0", "R", 500000)])
        self.assertEqual(found["Queue"][0]["sum"], 20000)
        self.assertEqual((found["Bytes"][0]["by"]["PROG"], found["Bytes"][0]["sum"]), ("x", 4096))

    def test_tcp(self):
        def sockaddr(*parts):
            return "0200" + "%04x" % 5001 + "%02x%02x%02x%02x" % parts + "00" * 20
        probe = f"SADDR={sockaddr(10, 0, 0, 1)} DADDR={sockaddr(10, 0, 0, 2)} SPORT=5001 DPORT=80 SND.CWND=%d SSTHRESH=7 SND.WND=1000 SRTT=%d RCV.WND=1 SKADDR=5 CPU=0"
        events = [(10, "tcp.tcp_probe", probe % (10, 300), "x"), (20, "tcp.tcp_probe", probe % (20, 500), "x"),
                  (30, "tcp.tcp_retransmit_skb", "SADDR=0a000001 DADDR=0a000002 SPORT=5001 DPORT=80 SKADDR=5 CPU=0", "x")]
        found = self.report("tcp", events)
        row = found["Rtt"][0]
        self.assertEqual(list(row["by"].values()), ["10.0.0.1", "5001", "10.0.0.2", "80"])
        self.assertEqual((row["min"], row["max"], found["Window"][0]["max"]), (300, 500, 20))
        self.assertEqual(list(found["Retransmits"][0]["by"].values()), ["10.0.0.1", "5001", "10.0.0.2", "80"])

    def test_system_calls(self):
        number = os.uname().machine == "x86_64" and 110
        if not number:
            self.skipTest("the numbers of system calls are another machine's")
        events = [(10, "raw_syscalls.sys_enter", f"TID=1 CPU=0 ID={number}", "x"), (12, "raw_syscalls.sys_exit", f"TID=1 CPU=0 ID={number} RET=-2", "x")]
        found = self.report("syscalls", events)
        self.assertEqual((found["Calls"][0]["by"]["CALL"], found["Calls"][0]["sum"]), ("getppid", 2000))
        self.assertEqual(found["Errors"][0]["by"], {"PROG": "x", "CALL": "getppid", "RET": "-2"})

    def test_faults(self):
        found = self.report("faults", [(10, "exceptions.page_fault_user", "TID=1 CPU=0 ADDRESS=4096 IP=77 ERROR.CODE=6", "x")] * 3)
        self.assertEqual((found["Programs"][0]["count"], found["Places"][0]["by"]), (3, {"PROG": "x", "IP": "0x4d"}))
        self.assertEqual(found["Kinds"][0]["by"], {"KIND": "wrote a missing page"})

    def test_application(self):
        """Only the end of a thread's wait in read(2) shows its cause."""
        switch = "PREV.COMM=%s PREV.PID=%d PREV.STATE=%d NEXT.COMM=%s NEXT.PID=%d CPU=0"
        events = [(0, "Begin", "ID=7 TID=5", "app"), (100, "sched.sched_switch", switch % ("app", 5, 1, "swapper/0", 0), "app"),
                  (400, "sched.sched_wakeup", "EV.PID=5 COMM=app CPU=0", "swapper/0"), (450, "sched.sched_switch", switch % ("swapper/0", 0, 0, "app", 5), "x"),
                  (460, "sock.sock_recv_length", "TID=5 CPU=0 RET=8", "app"),
                  (500, "sched.sched_switch", switch % ("app", 5, 2, "swapper/0", 0), "app"), (800, "sched.sched_wakeup", "EV.PID=5 COMM=app CPU=0", "x"),
                  (800, "sched.sched_switch", switch % ("swapper/0", 0, 0, "app", 5), "x"), (900, "syscalls.sys_enter_futex", "TID=5 CPU=0 OP=128", "app"),
                  (910, "sched.sched_switch", switch % ("app", 5, 1, "swapper/0", 0), "app"), (990, "sched.sched_wakeup", "EV.PID=5 COMM=app CPU=0", "x"),
                  (990, "sched.sched_switch", switch % ("swapper/0", 0, 0, "app", 5), "x"), (995, "syscalls.sys_exit_futex", "TID=5 CPU=0 RET=0", "app"),
                  (1000, "End", "ID=7 TID=5", "app")]
        log = self.lines([(at, name, text, prog) for at, name, text, prog in events])
        text = log.read_text().replace("LVL=System NL.EVNT=Begin", "LVL=Usage NL.EVNT=Begin").replace("LVL=System NL.EVNT=End", "LVL=Usage NL.EVNT=End")
        log.write_text(text)
        made = self.scratch / "made.out"
        found = json.loads(self.nlkernel("report", "application", "--json", "--derived", made, log))
        rows = {row["value"]: row["sum"] for row in found["reports"][0]["rows"]}
        self.assertEqual(rows, {"DUR.NS": 1000000, "RUN.NS": 270000, "CPU.NS": 50000, "DISK.NS": 300000, "LOCK.NS": 80000, "NETWORK.NS": 300000,
                                "SLEEP.NS": 0, "UNKNOWN.NS": 0})
        self.assertRegex(made.read_text(), r"DATE=20260101000000\.000100 .*NL.EVNT=Segment.network TID=5 ID=7 .*DUR.NS=300000")

    def test_request(self):
        events = [(0, "syscalls.sys_enter_sendto", "TID=1 CPU=0 FD=4", "client"), (1, "net.net_dev_queue", "TID=1 CPU=0 SKBADDR=100 LEN=60", "client"),
                  (2, "net.netif_receive_skb", "TID=1 CPU=0 SKBADDR=100 LEN=60", "client"), (3, "sched.sched_wakeup", "TID=1 CPU=0 COMM=server EV.PID=2", "client"),
                  (4, "irq.softirq_exit", "TID=1 CPU=0 VEC=3", "client"),
                  (5, "sched.sched_switch", "CPU=1 PREV.COMM=x PREV.PID=0 PREV.STATE=0 NEXT.COMM=server NEXT.PID=2 TID=0", "x"),
                  (9, "syscalls.sys_exit_recvfrom", "TID=2 CPU=1 RET=8", "server")]
        found = self.report("request", events)
        self.assertEqual({row["by"]["NL.EVNT"]: row["max"] for row in found["Steps"]},
                         {"Request.sent": 0, "Request.packet": 1000, "Request.received": 2000, "Request.woken": 3000, "Request.running": 5000,
                          "Request.answered": 9000})

    def test_selected_records(self):
        """--where, --since and --until select events, but keep the recorder's reports of losses."""
        events = [(10, "a.b", "TID=1 CPU=0", "x"), (20, "c.d", "TID=1 CPU=0", "x"), (30, "a.b", "TID=1 CPU=0", "y"), (40, "NetLogger.Lost", "CPU=0 COUNT=7", "nlkernel"),
                  (50, "c.d", "TID=1 CPU=0", "y"), (60, "a.b", "TID=1 CPU=0", "y"), (70, "c.d", "TID=1 CPU=0", "y")]
        log, watch = self.lines(events), ["report", "stopwatch", "--set", "BEGIN=a:b", "--set", "END=c:d", "--json"]

        def found(*arguments):
            about = json.loads(self.nlkernel(*watch, *arguments, log))
            return {row["by"]["PROG"]: row["count"] for row in about["reports"][0]["rows"]}, about["lost"]
        self.assertEqual(found(), ({"x": 1, "y": 1}, 7))  # the loss hides an event of y
        self.assertEqual(found("--where", "PROG == y"), ({"y": 1}, 7))
        self.assertEqual(found("--since", "2026-01-01T00:00:00.000055"), ({"y": 1}, 0))
        self.assertEqual(found("--until", "2026-01-01T00:00:00.000025"), ({"x": 1}, 0))
        self.assertEqual(found("--from-format", "ulm"), ({"x": 1, "y": 1}, 7))
        self.assertIn("--from-format", self.nlkernel(*watch, "--from-format", "nosuch", log, status=2))

    def test_nothing_to_report(self):
        empty = self.scratch / "empty.log"
        empty.write_text("")
        self.assertIn("empty.log: no records\n", self.nlkernel("report", "scheduler", empty, status=1))
        other = self.scratch / "other.log"
        other.write_text("DATE=20260101000000 HOST=h NL.EVNT=E\n")
        said = self.nlkernel("report", "scheduler", other, status=1)
        self.assertIn("no records for the rules scheduler", said)
        self.assertIn("-e sched:sched_switch", said)
        self.assertIn('--cdf: the CDF of scheduler has no row "c"', self.nlkernel("report", "scheduler", "--cdf", "c", self.scheduler_log(), status=1))
        self.assertIn("what: unknown rules", self.nlkernel("report", "what", empty, status=2))
        self.assertIn("No such file", self.nlkernel("report", "scheduler", self.scratch / "none", status=1))


class Files(Case):
    def test_list_and_show(self):
        listed = {line.split()[0] for line in self.nlkernel("rules", "list").splitlines()}
        self.assertLessEqual(set(RULES), listed)
        for name in RULES:
            self.assertIn("[rules]", self.nlkernel("rules", "show", name))

    def test_ones_own(self):
        own = self.scratch / "own.rules"
        own.write_text("[rules]\ntitle = Mine\n[event sched:sched_switch]\n[report R]\nof = a.b\n")
        listed = self.nlkernel("rules", "list", env={**os.environ, "NETLOGGER_RULES": str(self.scratch)})
        self.assertRegex(listed, r"(?m)^own +Mine$")
        log = self.lines([(1, "a.b", "X=1", "p")])
        self.assertIn("Mine", self.nlkernel("report", own, log))
        shutil.copy(own, self.scratch / "scheduler.rules")
        listed = self.nlkernel("rules", "list", env={**os.environ, "NETLOGGER_RULES": str(self.scratch)})
        self.assertRegex(listed, r"(?m)^scheduler +Mine$")

    def test_wrong_ones_say_where(self):
        for text, words in [("x = 1\n", "1: expected [SECTION] before"), ("[span A\n", "1: missing ]"),
                            ("[span A]\nbegin = a key B\n", "[A]: missing end ="),
                            ("[span A]\nbegin = a key B\nend = c key B,C\n", "3: the key has 2 fields here, but 1 in line 2"),
                            ("[span A]\nbegin = a key B where X ==\nend = c key B\n", "2: filter"),
                            ("[nonsense]\n", "1: [nonsense]: unknown section"),
                            ("[sum A]\nof = a\nevery = fast\n", '3: "fast" is not a duration'),
                            ("[span A]\nbegin = ${X} key B\nend = c key B\n", "no [parameter] section declares ${X}"),
                            ("[report A]\nof = a\ncolumns = what\n", '3: unknown column "what"'),
                            ("[report A]\n", "missing of ="), ("[event a:b]\nwhat = 1\n", '2: expected "need =" or "where ="'),
                            ("[make A]\nof = a\nfield = B T[C]\n", "3: "), ("no equals\n", "1: expected [SECTION] or"),
                            ("[states A]\nstate = run: a\n", "2: missing key FIELD"),
                            ("[follow A]\nbegin = a to thread TID\npass = b from thread TID\n", "3: pass requires \"from KIND FIELD to"),
                            ("[span A]\nbegin = " + "\xff" * 3 + "\n", "missing end =")]:
            with self.subTest(words):
                wrong = self.scratch / "wrong.rules"
                wrong.write_text(text)
                self.assertIn(words, self.nlkernel("report", wrong, self.scheduler_log(), status=2))
        self.assertIn('unknown parameter "NO"', self.nlkernel("report", "stopwatch", "--set", "NO=1", self.scheduler_log(), status=2))

    def test_wrong_use(self):
        for arguments, words in [(["rules"], "missing command; the commands are list, show, run"), (["rules", "what"], "what: unknown command"),
                                 (["rules", "run"], "the first argument must be RULES"), (["rules", "show"], "missing RULES"),
                                 (["rules", "run", "scheduler", "--vary", "N=1"], "--vary requires a COMMAND"),
                                 (["rules", "run", "nosuch"], "nosuch: unknown rules"), (["report"], "missing RULES"),
                                 (["live"], "missing --event"), (["live", "--rules", "nosuch"], "nosuch: unknown rules")]:
            self.assertIn(words, self.nlkernel(*arguments, status=2))


class OnThisKernel(Case):
    """Runs each of the rules on this kernel."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("recording requires root")
        listed = self.run_program(NLKERNEL, "list", "--json")
        if listed.returncode != 0:
            self.skipTest(f"no events of the kernel here: {listed.stderr.strip()}")
        self.events = {e["event"].replace(".", ":", 1) for e in json.loads(listed.stdout)}

    def run_rules(self, name, *arguments, needs=()):
        missing = [event for event in needs if event not in self.events]
        if missing:
            self.skipTest(f"this kernel has no event {missing[0]}")
        found = json.loads(self.nlkernel("rules", "run", name, "--json", *arguments))
        return {r["report"]: r["rows"] for r in found["reports"]}

    def need_switches_from_idle(self):
        """Skips the test on a kernel with this defect: after many recordings, a kernel no longer traced the switches from the idle thread of
        a processor."""
        folder = pathlib.Path(f"/sys/kernel/tracing/instances/netlogger-test-{os.getpid()}")
        try:
            folder.mkdir()
            try:
                enable = folder / "events/sched/sched_switch/enable"
                enable.write_text("1")
                for cpu in os.sched_getaffinity(0):  # the processor is idle before and after this thread
                    self.run_program("taskset", "-c", cpu, "sleep", "0.3")
                enable.write_text("0")
                lines = (folder / "trace").read_text().splitlines()
            finally:
                folder.rmdir()
        except OSError:
            return  # makes nlkernel use another tracefs
        for cpu in os.sched_getaffinity(0):
            own = [line for line in lines if f"[{cpu:03}]" in line]
            if any(" next_pid=0 " in line for line in own) and not any(" prev_pid=0 " in line for line in own):
                self.skipTest(f"this kernel does not trace switches from the idle thread of CPU {cpu}")

    def test_scheduler(self):
        found = self.run_rules("scheduler", "--", "sh", "-c", "sleep 0.1; true", needs=["sched:sched_switch"])
        programs = {row["by"]["PROG"] for row in found["Quanta"]}
        if "sleep" not in programs:
            self.need_switches_from_idle()
        self.assertIn("sleep", programs)
        self.assertGreater(found["Cost"][0]["p50"], 0)

    def test_interrupt(self):
        found = self.run_rules("interrupt", "--set", "LOOPS=100", needs=["irq:softirq_entry"])
        self.assertEqual(found["Loops"][0]["count"], 100)
        self.assertTrue(found["Handlers"])

    def test_stopwatch(self):
        found = self.run_rules("stopwatch", "--only-command", "--", "true", needs=["raw_syscalls:sys_enter"])
        self.assertGreater(found["All"][0]["count"], 3)

    def test_system_calls(self):
        found = self.run_rules("syscalls", "--only-command", "--", "cat", "/nonexistent", needs=["raw_syscalls:sys_enter"])
        self.assertIn(("cat", "-2"), {(row["by"]["PROG"], row["by"]["RET"]) for row in found["Errors"]})

    def test_faults(self):
        found = self.run_rules("faults", "--only-command", "--", "true", needs=["exceptions:page_fault_user"])
        self.assertTrue(found["Programs"])

    def test_locks_are_summed_by_the_kernel(self):
        """Some locks always have waiters. nlkernel must load the eBPF program, or print why it cannot."""
        result = self.run_program(NLKERNEL, "rules", "run", "locking", "--json", "--set", "X=1")
        self.assertIn('unknown parameter "X"', result.stderr)
        result = self.run_program(NLKERNEL, "rules", "run", "locking", "--json", "--", "sh", "-c",
                                  "for i in $(seq 40); do (for j in $(seq 20); do :; done; cat /proc/self/maps > /dev/null) & done; wait")
        if "the report lacks the kernel's sums" in result.stderr:
            self.skipTest(result.stderr.strip())
        if "no records for the rules" in result.stderr:
            self.skipTest("no lock was waited for")
        self.assertEqual(result.returncode, 0, result.stderr)
        json.loads(result.stdout)

    def test_rules_live(self):
        """Logs the records that the rules make, as they occur."""
        log = self.scratch / "live.log"
        rules = self.scratch / "live.rules"
        rules.write_text("[event sched:sched_process_exec]\n[make Started]\nof = sched.sched_process_exec where FILENAME ~ */${NAME}\n"
                          "field = FILENAME\n[parameter NAME]\ndefault = x\n[rate Rate]\nof = sched.sched_process_exec where FILENAME ~ */${NAME}\n"
                          "every = 100ms\n")
        own = self.scratch / "true-of-this-test"  # no other process runs this program
        shutil.copy("/bin/true", own)
        result = self.run_program(NLKERNEL, "live", "--rules", rules, "--set", f"NAME={own.name}", "--dest", log, "--", "sh", "-c",
                                  f"sleep 0.6; {own}; sleep 0.3; {own}; sleep 0.3")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = log.read_text().splitlines()
        events = [re.search(r"NL.EVNT=(\S+)", line).group(1) for line in lines]
        self.assertLessEqual(set(events), {"Started", "Rate"})
        self.assertEqual(sum("NL.EVNT=Started" in line and f"FILENAME={own}" in line for line in lines), 2)
        self.assertIn("RATE=0", "".join(lines))
        self.assertIn("RATE=10", "".join(lines))

    def test_bench(self):
        found = {r["report"]: r["rows"] for r in json.loads(self.nlkernel("bench", "-n", "2000", "--rounds", "1", "--json"))["reports"]}
        sides = {row["by"]["SIDE"] for row in found["Calls"]}
        self.assertLessEqual({"nothing", "ftrace", "nlkernel"}, sides)
        self.assertEqual(found["Stopwatch"][0]["count"], 100)

    def test_tcp(self):
        """The report prints readable addresses of this host's connections."""
        if "tcp:tcp_probe" not in self.events:
            self.skipTest("this kernel has no event tcp:tcp_probe")
        program = ("import socket; l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname()); s, _ = l.accept()\n"
                   "for i in range(50): c.send(b'x'); s.recv(1); s.send(b'y'); c.recv(1)\nprint(l.getsockname()[1])")
        result = self.run_program(NLKERNEL, "rules", "run", "tcp", "--json", "--", sys.executable, "-c", program)
        self.assertEqual(result.returncode, 0, result.stderr)
        port, report = result.stdout.split("\n", 1)
        rows = {r["report"]: r["rows"] for r in json.loads(report)["reports"]}
        self.assertIn(("127.0.0.1", port), {(row["by"]["TO.ADDR"], row["by"]["TO.PORT"]) for row in rows["Rtt"]})

    def test_varied(self):
        found = self.run_rules("stopwatch", "--only-command", "--vary", "N=1,3", "--", "sh", "-c", "for i in $(seq {N}); do /bin/true; done",
                                needs=["raw_syscalls:sys_enter"])
        self.assertTrue(found["All"])


support.main()
