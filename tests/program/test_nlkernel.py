"""nlkernel on this host's kernel: events in logs, losses, rights, and the kernel's previous state afterwards."""
import json
import os
import re
import signal
import subprocess
import time

import collector
import nlb_decoder
import support

# With COUNT: that many calls of getppid. With another argument: calls of gettid, with a reading of the real-time clock between
# two calls. Without arguments: prints the numbers of these system calls.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (argc < 2)
        return printf("%d %d\n", (int)SYS_getppid, (int)SYS_gettid) < 0;
    for (long i = 0; i < atol(argv[1]); i++)
        syscall(SYS_getppid);
    for (int i = 0; argc > 2 && i < 100; i++) {
        struct timespec now;
        syscall(SYS_gettid);
        clock_gettime(CLOCK_REALTIME, &now);
        syscall(SYS_gettid);
        printf("%ld%09ld\n", (long)now.tv_sec, now.tv_nsec);
    }
    return 0;
}
"""
FIELD = re.compile(r' ([A-Z][A-Z0-9._]*)=("(?:[^"\\]|\\.)*"|\S*)')


def fields(line):
    return {name: value.strip('"') for name, value in FIELD.findall(" " + line)}


class Kernel(support.Case):
    """Starts recorders and the programs that they record, and examines tracefs independently of nlkernel."""

    def setUp(self):
        super().setUp()
        self.nlkernel = support.program("nlkernel/nlkernel")
        self.nlsort = support.program("nlsort/nlsort")
        if os.geteuid() != 0:
            self.skipTest("recording requires root")
        self.tracing = self.mount_tracefs()
        self.name = f"calls{os.getpid()}"  # other programs on the machine make such calls too
        self.program = self.compile(PROGRAM)
        self.getppid, self.gettid = (int(n) for n in self.run_program(self.program).stdout.split())
        self.log = self.scratch / "k.nlb"
        self.recorders = []

    def compile(self, source):
        return self.compile_c(self.name, source, "-std=gnu11", "-O1")

    def record(self, *arguments, status=0):
        command = [str(word) for word in (self.nlkernel, "record", *arguments)]
        process = self.start(*command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.recorders.append(process.pid)
        out, errors = process.communicate(timeout=60)
        support.skip_where_processes_are_not_known(self, errors)
        self.assertEqual(process.returncode, status, errors)
        return subprocess.CompletedProcess(command, process.returncode, out, errors)

    def sorted(self, log=None, *arguments, status=0):
        result = self.run_program(self.nlsort, *arguments, log or self.log)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout.splitlines()

    def instances(self):
        return sorted(p.name for p in (self.tracing / "instances").iterdir() if p.name.startswith("nlkernel-"))

    def instance_of(self, process):
        return next((name for name in self.instances() if f"-{process.pid}-" in name), None)

    def assert_nothing_left(self):
        """Checks that no instance of this test's ended recorders is left. Recorders of other programs may exist or may have been killed."""
        mine = lambda name: int(name.split("-")[2]) in self.recorders and not os.path.exists(f"/proc/{name.split('-')[2]}")
        self.assertEqual([name for name in self.instances() if mine(name)], [])

    def start_recording(self, *arguments, **options):
        """Starts a recorder, and returns when it is recording."""
        process = self.start(self.nlkernel, "record", *arguments, stderr=subprocess.PIPE, text=True, **options)
        self.recorders.append(process.pid)

        def is_on():
            self.assertIsNone(process.poll())
            name = self.instance_of(process)
            read = lambda file: (self.tracing / "instances" / name / file).read_text()
            try:
                # The kernel creates an instance with recording on and no events enabled, so the test waits for both
                # settings.
                return name and read("events/raw_syscalls/sys_enter/enable")[0] == "1" and read("tracing_on") == "1\n"
            except FileNotFoundError:
                return False  # The kernel lists the instance before it is complete.

        support.wait_until(is_on, what="it records")
        return process

    def call(self, count, *arguments):
        result = self.run_program(self.program, str(count), *arguments)
        self.assertEqual(result.returncode, 0)
        return result.stdout

    def calls(self, lines, number=None):
        wanted = str(self.getppid if number is None else number)
        return [f for f in map(fields, lines) if f["NL.EVNT"] == "raw_syscalls.sys_enter" and f["ID"] == wanted]


class Recording(Kernel):
    def test_every_call_is_there(self):
        self.record("-e", "raw_syscalls:*", "--only-command", "-o", self.log, "--", self.program, "20000")
        lines = self.sorted()
        calls = self.calls(lines)
        self.assertEqual(len(calls), 20000)
        self.assertEqual({c["PROG"] for c in calls}, {self.name})
        self.assertEqual(len({(c["PID"], c["TID"]) for c in calls}), 1)
        self.assertEqual(calls[0]["PID"], calls[0]["TID"])
        returns = [f for f in map(fields, lines) if f["NL.EVNT"] == "raw_syscalls.sys_exit" and f["ID"] == str(self.getppid)]
        self.assertEqual(len(returns), 20000)
        self.assertEqual(len({r["RET"] for r in returns}), 1)
        self.assert_nothing_left()

    def test_blocks_are_as_the_page_says(self):
        self.record("-e", "raw_syscalls:*", "--only-command", "-o", self.log, "--", self.program, "3000")
        blocks = list(nlb_decoder.blocks(self.log.read_bytes()))
        streams = {}
        for block in blocks:
            self.assertEqual(block.first_sequence, streams.get(block.stream, 0))
            streams[block.stream] = block.first_sequence + len(block.records)
        cpus = os.sysconf("SC_NPROCESSORS_CONF")
        self.assertLessEqual(len(streams), cpus + 1)
        for block in blocks:
            events = [dict(r.fields)[b"CPU"] for r in block.records if r.event.startswith(b"raw_syscalls")]
            self.assertLessEqual(len(set(events)), 1)

    def test_text(self):
        for name, options in [("k.log", []), ("k.bp", ["--format", "bp"]), ("k.other", ["--format", "nlb", "--zstd", "3"])]:
            log = self.scratch / name
            self.record("-e", "raw_syscalls:sys_enter", "--only-command", "-o", log, *options, "--", self.program, "500")
            lines = self.sorted(log)
            self.assertEqual(list(self.scratch.glob("*.partial.nlb")), [])
            if name == "k.bp":
                self.assertIn("event=raw_syscalls.sys_enter", "".join(lines))
                self.assertEqual(sum(f" ID={self.getppid} " in line for line in lines), 500)
            else:
                self.assertEqual(len(self.calls(lines)), 500)
        result = self.record("-e", "raw_syscalls:sys_enter", "--only-command", "-o", "-", "--", self.program, "50")
        self.assertEqual(len(self.calls(result.stdout.splitlines())), 50)

    def test_text_of_a_killed_recorder(self):
        """Until the end, the records of a text file are in FILE.partial.nlb, which every program reads."""
        log = self.scratch / "k.log"
        partial = self.scratch / "k.log.partial.nlb"
        process = self.start_recording("-e", "raw_syscalls:sys_enter", "--where", f"ID == {self.getppid} && PROG == {self.name}", "-o", log)
        self.run_program(self.program, "1000")
        support.wait_until(lambda: len(self.calls(self.run_program(self.nlsort, partial).stdout.splitlines())) == 1000, what="the calls are recorded")
        process.kill()
        process.wait(20)
        self.assertEqual(len(self.calls(self.sorted(partial))), 1000)
        self.assertEqual(log.read_text(), "")

    def test_time_is_the_programs(self):
        """A program's reading of the real-time clock is between the times of its calls before and after the reading."""
        result = self.record("-e", "raw_syscalls:sys_enter", "--only-command", "--where", f"ID == {self.gettid}", "-o", self.log, "--", self.program, "0",
                             "clock")
        times = [int(line) for line in result.stdout.split()]
        calls = [r.time_ns for b in nlb_decoder.blocks(self.log.read_bytes()) for r in b.records if r.event == b"raw_syscalls.sys_enter"]
        calls = sorted(calls)[-200:]
        clock = [fields(line) for line in self.sorted() if "NetLogger.Clock" in line]
        error = max(int(c["ERROR.NS"]) for c in clock) + 200  # the kernel's own fast clock may differ slightly
        self.assertEqual(len(times), 100)
        for i, time_ns in enumerate(times):
            self.assertLess(calls[2 * i] - error, time_ns)
            self.assertGreater(calls[2 * i + 1] + error, time_ns)

    def test_it_says_what_it_did(self):
        self.record("-e", "raw_syscalls:sys_enter", "--only-command", "-o", self.log, "--", self.program, "100")
        events = [f["NL.EVNT"] for f in map(fields, self.sorted())]
        for name in ("NetLogger.Record.Begin", "NetLogger.Clock", "NetLogger.Dump.Begin", "NetLogger.Dump.Finish",
                     "NetLogger.Record.Cpu", "NetLogger.Record.Finish"):
            self.assertIn(name, events)
        self.assertEqual(events.count("NetLogger.Dump.Begin"), events.count("NetLogger.Dump.Finish"))
        finish = fields(self.sorted(None, "--where", "NL.EVNT == NetLogger.Record.Finish")[0])
        self.assertEqual(int(finish["EVENTS"]), sum(e.startswith("raw_syscalls") for e in events))
        dumped = sum(int(fields(line)["EVENTS"]) for line in self.sorted(None, "--where", "NL.EVNT == NetLogger.Dump.Finish"))
        self.assertEqual(dumped, int(finish["EVENTS"]))

    def test_names_of_threads_that_are_gone(self):
        self.record("-e", "sched:sched_process_exec", "-e", "sched:sched_process_exit", "--only-command", "-o", self.log, "--", "sh", "-c",
                    "for i in 1 2 3 4 5 6 7 8; do /bin/true; done")
        exits = [f["PROG"] for f in map(fields, self.sorted()) if f["NL.EVNT"] == "sched.sched_process_exit"]
        self.assertEqual(exits.count("true"), 8)

    def test_of_a_process(self):
        support.skip_where_processes_are_not_known(self)
        mine = self.start("sh", "-c", f"read line; {self.program} 500; exec {self.program} 1000", stdin=subprocess.PIPE)
        process = self.start_recording("-e", "raw_syscalls:sys_enter", "--pid", mine.pid, "-o", self.log)
        self.call(300)
        mine.communicate(b"go\n", timeout=60)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        calls = self.calls(self.sorted())
        self.assertEqual(len([c for c in calls if c["PID"] == str(mine.pid)]), 1000 + len(calls) - 1500)
        self.assertEqual(len([c for c in calls if c["PROG"] == self.name]), 1500)  # the shell makes some calls itself

    def test_of_a_cpu(self):
        last = os.sysconf("SC_NPROCESSORS_CONF") - 1
        allowed = os.sched_getaffinity(0)
        if last not in allowed or len(allowed) < 2:
            self.skipTest("needs two processors")
        for cpu, found in ((last, 700), (min(allowed), 0)):
            self.record("-e", "raw_syscalls:sys_enter", "--only-command", "--cpu", str(last), "-o", self.log, "--", "taskset", "-c", str(cpu),
                        self.program, "700")
            self.assertEqual(len(self.calls(self.sorted())), found)

    def test_ends_by_signal_and_by_time(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start_recording("-e", "raw_syscalls:sys_enter", "--where", f"PROG == {self.name}", "-o", self.log)
            self.call(1000)
            process.send_signal(number)
            self.assertEqual(process.wait(60), 0, process.stderr.read())
            self.assertEqual(len([c for c in self.calls(self.sorted()) if c["PROG"] == self.name]), 1000)
            self.assertIsNone(self.instance_of(process))
        self.record("-e", "raw_syscalls:sys_enter", "--duration", "50ms", "-o", self.log)
        self.record("-e", "raw_syscalls:sys_enter", "--duration", "0.05", "--only-command", "-o", self.log, "--", "sleep", "3600")
        self.assert_nothing_left()

    def test_live_to_a_collector(self):
        support.skip_where_processes_are_not_known(self)
        served = collector.Case.serve
        self.netlogd = support.program("netlogd/netlogd")
        self.output, self.messages = self.scratch / "all.log", self.scratch / "messages"
        self.said = lambda: self.messages.read_text(errors="replace")
        served(self)
        result = self.run_program(self.nlkernel, "live", "-e", "raw_syscalls:*", "--only-command", "--where", f"ID == {self.getppid}", "--dest",
                                  f"x-netlog://127.0.0.1:{self.port}?policy=block", "--", self.program, "5000")
        self.assertEqual(result.returncode, 0, result.stderr)
        support.wait_until(lambda: "NetLogger.Record.Finish" in self.output.read_text(), what="all is collected")
        self.assertEqual(len(self.calls(self.output.read_text().splitlines())), 5000)

    def test_report_of_what_was_recorded(self):
        cpu = str(min(os.sched_getaffinity(0)))
        self.record("-e", "sched:sched_switch", "-e", "sched:sched_wakeup*", "-o", self.log, "--", "taskset", "-c", cpu, "sh", "-c",
                    f"{self.program} 400000 & {self.program} 400000; wait")
        result = self.run_program(self.nlkernel, "report", "scheduler", "--json", self.log)
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = {r["report"]: r["rows"] for r in json.loads(result.stdout)["reports"]}
        quanta = next(row for row in rows["Quanta"] if row["by"]["PROG"] == self.name)
        self.assertGreater(quanta["count"], 1)
        ousted = [row for row in rows["Oustings"] if row["by"]["PREV.COMM"] == self.name]
        self.assertTrue(ousted)  # two programs that compete for one processor


class Losses(Kernel):
    def count(self, lines):
        lost = [fields(line) for line in lines if "NL.EVNT=NetLogger.Lost " in line]
        for record in lost:
            self.assertLessEqual(record["FROM"], record["TO"])
            self.assertIn("CPU", record)
        return sum(int(r["COUNT"]) for r in lost)

    def lose(self, buffer, *arguments):
        """Records calls into buffers that no reader empties during the calls."""
        process = self.start_recording("-e", "raw_syscalls:sys_enter", "--where", f"ID == {self.getppid} && PROG == {self.name}", "--buffer-size", buffer, "-o", self.log,
                                       *arguments)
        process.send_signal(signal.SIGSTOP)
        self.call(200000)
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0)
        return process.stderr.read()

    def test_counted_exactly(self):
        for buffer in support.representative(("8k", "64k", "2m"), ("8k", "2m")):
            said = self.lose(buffer)
            self.assertIn("events were lost", said)
            result = self.run_program(self.nlsort, self.log)
            lines = result.stdout.splitlines()
            lost = self.count(lines)
            self.assertGreater(lost, 0)
            self.assertEqual(len(self.calls(lines)) + lost, 200000)
            self.assertIn(f" {lost} lost", said)
            blocks = list(nlb_decoder.blocks(self.log.read_bytes()))
            self.assertEqual(sum(b.lost for b in blocks), lost)
            ends = {}
            for b in blocks:  # the numbers have no gaps: lost calls have numbers too
                self.assertEqual(b.first_sequence, ends.get(b.stream, 0) + b.lost)
                ends[b.stream] = b.first_sequence + len(b.records)

    def test_counted_in_text(self):
        self.log = self.scratch / "k.log"
        self.lose("64k")
        lines = self.sorted()
        self.assertEqual(len(self.calls(lines)) + self.count(lines), 200000)

    def test_while_it_reads(self):
        """A recorder that shares a processor with the recorded program, and has almost no buffer."""
        support.skip_where_processes_are_not_known(self)
        cpu, count = str(min(os.sched_getaffinity(0))), support.representative(300000, 100000)
        result = self.run_program("taskset", "-c", cpu, self.nlkernel, "record", "-e", "raw_syscalls:sys_enter", "--where",
                                  f"ID == {self.getppid}", "--only-command", "--buffer-size", "8k", "-o", self.log, "--", self.program, count)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = self.run_program(self.nlsort, self.log).stdout.splitlines()
        self.assertEqual(len(self.calls(lines)) + self.count(lines), count)


class Switching(Kernel):
    def control(self, process, *command, status=0):
        result = self.run_program(self.nlkernel, "control", "--recorder", process.pid, *command)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def begin(self, *arguments):
        return self.start_recording("-e", "raw_syscalls:*", "--where", f"ID in ({self.getppid}, {self.gettid}) && PROG == {self.name}", "-o",
                                    self.log, *arguments)

    def finish(self, process):
        """Returns (enters, exits, [(event, state)]) of a recording."""
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        found = [fields(line) for line in self.sorted()]
        count = lambda name: sum(f["NL.EVNT"] == f"raw_syscalls.{name}" for f in found)
        return count("sys_enter"), count("sys_exit"), [(f["EVENT"], f["STATE"]) for f in found if f["NL.EVNT"] == "NetLogger.Record.Switch"]

    def test_by_command(self):
        process = self.begin()
        self.call(1000)
        self.control(process, "off")
        self.call(100)
        self.control(process, "on")
        self.call(10)
        self.control(process, "event", "raw_syscalls:*exit", "off")
        self.call(1)
        self.control(process, "event sys_exit off")  # the real one
        self.assertIn('no recorded event matches "sched"', self.control(process, "event", "sched", "off", status=1))
        self.assertIn('invalid command "event on"', self.control(process, "event", "on", status=1))
        self.assertIn("invalid command", self.control(process, "x" * 3000, status=1))
        self.assertEqual(self.finish(process), (1011, 1010, [("*", "off"), ("*", "on"), ("raw_syscalls.sys_exit", "off")]))
        self.assertIn("is not a recorder", self.control(process, "on", status=1))

    def test_by_file(self):
        activation = self.scratch / "activation"
        activation.write_text("# until told otherwise\n\noff\n")
        process = self.start(self.nlkernel, "record", "-e", "raw_syscalls:*", "--where", f"ID in ({self.getppid}, {self.gettid}) && PROG == {self.name}",
                             "-o", self.log, "--activation", activation, stderr=subprocess.PIPE, text=True)
        self.recorders.append(process.pid)

        def instance(file):
            path = self.tracing / "instances" / self.instance_of(process) / file
            return path.read_text().strip() if path.exists() else None  # while the kernel creates the instance, only its directory exists

        def activate(text):
            """Replaces the file in one step, because nlkernel applies even a half-written file."""
            (self.scratch / "aside").write_text(text)
            (self.scratch / "aside").rename(activation)

        support.wait_until(lambda: self.instance_of(process) and instance("events/raw_syscalls/sys_exit/enable") == "1" and instance("tracing_on") == "0")
        self.call(1000)
        activate("event raw_syscalls:sys_enter off\n")
        support.wait_until(lambda: instance("tracing_on") == "1")
        self.call(100)
        activate("rubbish\nevent sys_exit off\n")
        support.wait_until(lambda: [instance(f"events/raw_syscalls/sys_{event}/enable") for event in ("enter", "exit")] == ["1", "0"])
        self.call(10)
        activation.unlink()
        support.wait_until(lambda: instance("events/raw_syscalls/sys_exit/enable") == "1")
        self.call(1)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertIn(f'{activation}:1: invalid command "rubbish"', said)
        found = [fields(line) for line in self.sorted()]
        self.assertEqual(sum(f["NL.EVNT"] == "raw_syscalls.sys_enter" for f in found), 11)
        self.assertEqual(sum(f["NL.EVNT"] == "raw_syscalls.sys_exit" for f in found), 101)

    def test_of_who_may_not(self):
        process = self.begin()
        copy = self.scratch / "nlkernel"
        copy.write_bytes(open(self.nlkernel, "rb").read())
        copy.chmod(0o755)
        self.scratch.chmod(0o755)
        result = self.run_program("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, "control", "-r", process.pid, "off")
        self.assertEqual(result.returncode, 1)
        self.assertIn("only root and the user who started the recorder (user ID 0) may control it", result.stderr)
        self.assertEqual(self.finish(process), (0, 0, []))


class Counters(Kernel):
    def with_counters(self, names, *arguments):
        process = self.start(self.nlkernel, "record", "-e", "raw_syscalls:*", "--counters", names, "--where",
                             f"ID == {self.getppid} && PROG == {self.name}", "-o", self.log, *arguments, stderr=subprocess.PIPE, text=True)
        self.recorders.append(process.pid)
        said = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 0, said)
        return said, [fields(line) for line in self.run_program(self.nlsort, self.log).stdout.splitlines()]

    def test_with_each_event(self):
        said, found = self.with_counters("page-faults,cycles,context-switches", "--", self.program, "3000")
        states = {f["COUNTER"]: f["STATE"] for f in found if f["NL.EVNT"] == "NetLogger.Counter"}
        self.assertEqual((states["page-faults"], states["context-switches"]), ("present", "present"))
        events = [f for f in found if f["NL.EVNT"].startswith("raw_syscalls")]
        self.assertEqual(len(events), 6000)
        for cpu in {e["CPU"] for e in events}:
            for counter in ("PAGE.FAULTS", "CONTEXT.SWITCHES"):
                values = [int(e[counter]) for e in events if e["CPU"] == cpu]
                self.assertEqual(values, sorted(values))
        self.assertEqual({"CYCLES" in e for e in events}, {states["cycles"] == "present"})
        if states["cycles"] == "absent":
            self.assertRegex(said, "--counters cycles: omitted: .")
        self.assert_nothing_left()

    def test_that_the_machine_has_none_of(self):
        said, found = self.with_counters("bus-cycles", "--", self.program, "100")
        counter = next(f for f in found if f["NL.EVNT"] == "NetLogger.Counter")
        self.assertEqual(counter["STATE"] == "absent", "bus-cycles: omitted" in said)
        self.assertEqual(sum(f["NL.EVNT"].startswith("raw_syscalls") for f in found), 200)

    def test_losses(self):
        count = support.representative(300000, 100000)
        said, found = self.with_counters("page-faults", "--buffer-size", "64k", "--", self.program, str(count))
        lost = sum(int(f["COUNT"]) for f in found if f["NL.EVNT"] == "NetLogger.Lost")
        self.assertEqual(sum(f["NL.EVNT"].startswith("raw_syscalls") for f in found) + lost, 2 * count)

    def test_switched(self):
        process = self.start(self.nlkernel, "record", "-e", "raw_syscalls:*", "--counters", "page-faults", "--where",
                             f"ID == {self.getppid} && PROG == {self.name}", "-o", self.log, stderr=subprocess.PIPE, text=True)
        control = lambda *command: self.run_program(self.nlkernel, "control", "-r", process.pid, *command).returncode
        support.wait_until(lambda: control("on") == 0, what="it listens")
        support.wait_until(lambda: self.call(1) == "" and control("event", "sys_exit", "off") == 0)
        self.call(1000)
        control("off")
        self.call(100)
        control("on")
        self.call(10)
        control("event", "sys_exit", "on")
        self.call(10000)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 0, process.stderr.read())
        found = [fields(line)["NL.EVNT"] for line in self.sorted()]
        self.assertIn(found.count("raw_syscalls.sys_enter") - 11010, (0, 1))
        self.assertIn(found.count("raw_syscalls.sys_exit") - 10000, (0, 1))

    def test_wrong_use(self):
        for arguments, words in ((["--counters", "x"], 'unknown counter "x"'), (["--counters", ""], "--counters: the value is empty"),
                                 (["--counters", "cycles", "--only-command", "--", "true"], "counts for whole CPUs")):
            self.assertIn(words, self.record("-e", "sched", *arguments, status=2).stderr)


class Filters(Kernel):
    def kept(self, expression):
        self.record("-e", "raw_syscalls:*", "--only-command", "--where", expression, "-o", self.log, "--", self.program, "1000", "clock")
        return [f for f in map(fields, self.sorted()) if f["NL.EVNT"].startswith("raw_syscalls")]

    def test_same_as_afterwards(self):
        """The filters of the kernel and of nlkernel accept the same records as nlsort --where."""
        whole = self.scratch / "whole.nlb"
        self.record("-e", "raw_syscalls:*", "--only-command", "-o", whole, "--", self.program, "1000", "clock")
        for expression in [
                f"ID == {self.getppid}",
                f"ID in ({self.getppid}, {self.gettid})",
                f"!(ID in ({self.getppid}, {self.gettid})) && NL.EVNT ~ *exit",
                f"ID == {self.getppid} && RET > 0 || ID == {self.gettid} && NL.EVNT ~ *enter",
                f"has RET && (ID < {self.getppid} || ID >= {self.gettid})",
                f"ID == {self.getppid} && ID =~ '^1'",
                f"ID == '{self.getppid}'",
                "ID > 1.5 && ID < 18446744073709551617",
                f"LVL == System && HOST ~ * && PROG == {self.name} && ID == {self.getppid}",
                f"ID == {self.getppid} && (PROG !~ 'x*' && CPU >= 0)",
                f"DATE > 2020-01-01T00:00 && PID > 1 && ID == {self.getppid}",
                "RET < 0"]:
            with self.subTest(expression):
                after = [fields(line) for line in self.sorted(whole, "--where", expression)]
                after = [f for f in after if f["NL.EVNT"].startswith("raw_syscalls")]
                mine = [f for f in self.kept(expression) if int(f["ID"]) in (self.getppid, self.gettid)]
                after = [f for f in after if int(f["ID"]) in (self.getppid, self.gettid)]
                shape = lambda records: sorted((f["NL.EVNT"], f["ID"]) for f in records)
                self.assertEqual(shape(mine), shape(after))

    def test_texts(self):
        for expression, found in [('COMM == "true"', True), ("FILENAME ~ */true", True), ("FILENAME =~ 'tru.$'", True),
                                  ("FILENAME !~ */true", False), ("FILENAME != /nonexistent", True), ("FILENAME == 1", False)]:
            with self.subTest(expression):
                self.record("-e", "sched:sched_process_exec", "-e", "sched:sched_process_exit", "--only-command", "--where", expression, "-o",
                            self.log, "--", "/bin/true")
                self.assertEqual(any("NL.EVNT=sched.sched_process" in line for line in self.sorted()), found)

    def test_pushed_to_the_kernel(self):
        process = self.start_recording("-e", "raw_syscalls:*", "--where", "ID == 3 && RET != 0 || NL.EVNT ~ *enter && ID < 2", "-o", self.log)
        events = self.tracing / "instances" / self.instance_of(process) / "events/raw_syscalls"
        self.assertEqual((events / "sys_exit/filter").read_text().strip(), "(id == 3) && (ret != 0)")
        self.assertEqual((events / "sys_enter/filter").read_text().strip(), "id < 2")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)

    def test_wrong_ones(self):
        result = self.record("-e", "raw_syscalls:*", "--where", "ID ==", "-o", self.log, status=2)
        self.assertIn('--where: filter "ID ==": column 6', result.stderr)
        result = self.record("-e", "raw_syscalls:*", "--where", "PREV.PID == 3", "-o", self.log, status=2)
        self.assertIn("--where: none of the chosen events can match", result.stderr)


class Surroundings(Kernel):
    def test_nothing_to_record_leaves_the_file_alone(self):
        result = self.run_program(self.nlkernel, "record", "-e", "nosuch", "-o", self.log)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse(self.log.exists())
        self.log.write_text("what was there")
        self.run_program(self.nlkernel, "record", "-e", "nosuch", "-o", self.log)
        self.assertEqual(self.log.read_text(), "what was there")

    def test_a_killed_one_is_cleaned_up_after(self):
        """The next recorder removes the instance. If another recorder on this machine has already removed the instance, the test
        repeats."""
        for attempt in range(5):
            process = self.start_recording("-e", "raw_syscalls:*", "--buffer-size", "4m", "-o", self.log)
            self.call(300000)
            name = self.instance_of(process)
            process.kill()
            process.wait()
            left = self.tracing / "instances" / name
            if left.exists():
                support.wait_until(lambda: not left.exists() or (left / "tracing_on").read_text() == "0\n",
                                   what="the kernel has stopped it")
            result = self.run_program(self.nlsort, "-o", "/dev/null", self.log)  # the written part is valid
            self.assertNotIn("malformed", result.stderr)
            other = self.record("-e", "raw_syscalls:sys_enter", "--only-command", "-o", self.scratch / "next.nlb", "--", self.program, "10")
            self.assertFalse(left.exists())
            if "of killed recorders" in other.stderr:
                break
        self.assertIn("of killed recorders", other.stderr)
        self.assert_nothing_left()

    def test_two_at_once_and_a_strangers(self):
        stranger = self.tracing / "instances" / f"stranger-{os.getpid()}"
        stranger.mkdir()
        self.addCleanup(stranger.rmdir)
        (stranger / "events/raw_syscalls/sys_enter/filter").write_text(f"id == {self.getppid}")
        (stranger / "events/raw_syscalls/sys_enter/enable").write_text("1")
        global_state = lambda: [(self.tracing / f).read_text() for f in
                                ("tracing_on", "trace_clock", "buffer_size_kb", "set_event", "set_event_pid", "current_tracer")]
        before = global_state()
        first = self.start_recording("-e", "raw_syscalls:*", "--where", f"PROG == {self.name}", "-o", self.scratch / "1.nlb")
        second = self.start_recording("-e", "raw_syscalls:sys_enter", "--where", f"ID == {self.gettid}", "-o", self.scratch / "2.nlb")
        for process in (first, second):
            self.assertIsNotNone(self.instance_of(process))
        self.call(1000, "clock")
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(60), 0)
        self.call(1000, "clock")
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(60), 0)
        one, two = (self.sorted(self.scratch / name) for name in ("1.nlb", "2.nlb"))
        self.assertEqual(len(self.calls(one)), 1000)
        self.assertEqual(len(self.calls(two)), 0)
        self.assertGreaterEqual(len(self.calls(two, self.gettid)), 400)
        self.assert_nothing_left()
        self.assertEqual(global_state(), before)
        self.assertEqual((stranger / "events/raw_syscalls/sys_enter/enable").read_text(), "1\n")
        seen = (stranger / "trace").read_text().count(f"NR {self.getppid} ")
        (stranger / "events/raw_syscalls/sys_enter/enable").write_text("0")
        self.assertGreaterEqual(seen, 2000)

    def test_nothing_is_left_when_it_fails(self):
        for arguments, status, words in [
                (["--", "/nonexistent"], 1, "/nonexistent: cannot start: No such file or directory"),
                (["--pid", "2147483647"], 1, "--pid 2147483647: no such process"),
                (["--cpu", "8000"], 1, "CPU 8000 does not exist"),
                (["-o", "/nonexistent/k.nlb"], 1, "/nonexistent/k.nlb: No such file or directory"),
                (["-o", "x-netlog://localhost"], 1, "record writes only files"),
                (["--format", "nlb", "-o", "/dev/full", "--duration", "5"], 1, "/dev/full: write: No space left on device")]:
            with self.subTest(arguments):
                result = self.record("-e", "raw_syscalls:*", "-o", self.log, *arguments, status=status)
                self.assertIn(words, result.stderr)
                self.assert_nothing_left()

    def test_another_user_is_told_what_is_missing(self):
        copy = self.scratch / "nlkernel"
        copy.write_bytes(open(self.nlkernel, "rb").read())
        copy.chmod(0o755)
        self.scratch.chmod(0o777)
        as_other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        record = [copy, "record", "-e", "sched:sched_switch", "--duration", "10ms", "-o", self.scratch / "other.nlb"]
        result = self.run_program(*as_other, *record, "--tracefs", self.tracing)
        self.assertEqual(result.returncode, 1)
        self.assertIn("user 65534 lacks CAP_DAC_OVERRIDE", result.stderr)
        self.assertIn(f"sudo setcap cap_dac_override+ep {copy}", result.stderr)
        granted = self.run_program("setcap", "cap_dac_override+ep", copy)
        if granted.returncode != 0:
            self.skipTest(f"setcap: {granted.stderr.strip()}")
        result = self.run_program(*as_other, *record, "--tracefs", self.tracing)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.scratch / "other.nlb").stat().st_uid, 65534)
        kept = self.scratch / "root's"
        kept.write_text("root's own")
        kept.chmod(0o600)
        result = self.run_program(*as_other, *record[:-1], kept, "--tracefs", self.tracing)
        self.assertEqual((result.returncode, kept.read_text()), (1, "root's own"))
        self.assertEqual(self.run_program(*as_other, copy, "list", "sched:sched_switch", "--tracefs", self.tracing).returncode, 0)
        log = self.scratch / "other.nlb"
        for command in (["workload", "noise", kept], ["calls", kept], ["calls", "--plot", kept, log],
                        ["graph", "-o", kept, log], ["symbols", self.nlkernel, "-o", kept], ["rules", "show", kept],
                        ["live", "--rules", kept, "--duration", "10ms", "--dest", f"file:{self.scratch}/live"]):
            result = self.run_program(*as_other, copy, *command)
            self.assertEqual(kept.read_text(), "root's own", command)
            self.assertNotEqual(result.returncode, 0, command)
            self.assertNotIn("own", result.stdout + result.stderr.replace(str(kept), ""), command)


    def test_in_a_container(self):
        unshare = ["unshare", "--pid", "--fork", "--mount-proc", self.nlkernel, "record", "-e", "sched:sched_switch", "--duration", "100ms",
                   "--tracefs", self.tracing, "-o", self.log]
        if subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], check=False).returncode != 0:
            self.skipTest("no namespace of processes can be made here")
        for arguments in (["--pid", "1"], ["--only-command", "--", "true"]):
            result = self.run_program(*unshare, *arguments)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("--pid and --only-command do not work in a container", result.stderr)
        result = self.run_program(*unshare)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(sum("sched.sched_switch" in line for line in self.sorted()), 0)


class WithoutTracefs(support.Case):
    def test_where_there_is_none(self):
        nlkernel = support.program("nlkernel/nlkernel")
        for arguments in (["list"], ["record", "-e", "sched", "-o", self.scratch / "k.nlb"]):
            result = self.run_program(nlkernel, *arguments, "--tracefs", self.scratch)
            self.assertEqual((result.returncode, result.stderr), (1, f"nlkernel: {self.scratch}: not a mount point of tracefs\n"))

    def test_wrong_use(self):
        nlkernel = support.program("nlkernel/nlkernel")
        for arguments, words in [
                ([], "missing command"), (["what"], "what: unknown command"), (["record"], "missing --event"),
                (["record", "-e", "sched", "--cpu", "1-"], '--cpu: "1-"'), (["record", "-e", "sched", "--pid", "1,x"], '--pid: "1,x"'),
                (["record", "-e", "sched", "--duration", "0"], "--duration: 0 is out of range; use at least 1ms"), (["record", "-e", "sched", "--duration", "3 days"], '--duration: "3 days" is not a duration'),
                (["record", "-e", "sched", "--buffer-size", "1"], "--buffer-size: 1 is out of range; use 8k to 16g"), (["record", "-e", "sched", "--low-water", "101"], "--low-water: 101 is out of range; use 0 to 100"),
                (["record", "-e", "sched", "--format", "xml"], '--format: "xml" is not one of'), (["record", "-e", "sched", "--only-command"], "--only-command requires a COMMAND"),
                (["record", "-e", "sched", "--zstd", "99"], "--zstd: 99 is out of range; use 0 to 19"), (["workload", "noise"], "missing NAME or FILE")]:
            result = self.run_program(nlkernel, *arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn(words, result.stderr)

    def test_words_of_other_programs(self):
        """Times and formats have the same spelling as in the other programs."""
        nlkernel = support.program("nlkernel/nlkernel")
        for options in (["--duration", "1d"], ["--duration", "20ms"], ["--duration", "2m"], ["--duration", ".5h"], ["--format", "NLB"]):
            result = self.run_program(nlkernel, "record", "-e", "sched", *options, "-o", self.scratch / "k.nlb", "--tracefs", self.scratch)
            self.assertEqual((result.returncode, result.stderr), (1, f"nlkernel: {self.scratch}: not a mount point of tracefs\n"))

    def test_no_such_workload(self):
        kept = self.scratch / "kept"
        kept.write_text("kept")
        result = self.run_program(support.program("nlkernel/nlkernel"), "workload", "nonsense", kept)
        self.assertEqual((result.returncode, kept.read_text()), (1, "kept"))
        self.assertIn("nonsense: unknown workload; the workloads are noise, switch and syscalls", result.stderr)


class Listing(Kernel):
    def test_events_and_fields(self):
        result = self.run_program(self.nlkernel, "list", "sched:sched_switch")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^sched:sched_switch\n    PREV.COMM +string +\(char\[16\] prev_comm\)\n")
        everything = self.run_program(self.nlkernel, "list")
        self.assertIn("\nraw_syscalls:sys_enter\n    ID  ", everything.stdout)
        listed = json.loads(self.run_program(self.nlkernel, "list", "--json", "sched").stdout)
        names = [e["event"] for e in listed]
        self.assertIn("sched.sched_wakeup", names)
        self.assertTrue(all(n.startswith("sched.") for n in names))
        json.loads(self.run_program(self.nlkernel, "list", "--json").stdout)

    def test_names_that_there_are_not(self):
        for arguments, words in [(["list", "sched_swich"], 'no event "sched_swich"; did you mean sched_switch?'),
                                 (["list", "sched:sched_swich"], "did you mean sched:sched_switch?"),
                                 (["list", "raw_syscall:sys_entr"], "raw_syscalls:sys_enter"),
                                 (["list", "zzzzzzzzzz:*"], "nlkernel list prints all"),
                                 (["record", "-e", "sched:sched_switch", "-e", "shed:nothing_like_it_at_all", "-o", "k.nlb"], "no event")]:
            result = self.run_program(self.nlkernel, *arguments, cwd=self.scratch)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(words, result.stderr)


support.main()
