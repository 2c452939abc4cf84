"""Random faults while a program logs to a collector: each event is delivered once, waits for recovery, or is reported as lost.

A schedule is a random combination of a format, options of the log, and faults. Its seed determines the schedule, but not the exact
moment of each fault. After the faults, the test recovers the events that a killed or ended program left behind, and counts each event.
"""
import collections
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import time

import support
from collector import Proxy

PROGRAM = r"""
#include <fcntl.h>
#include <netlogger.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
/* client URL COUNT MICROSECONDS FLUSH FILE: logs numbers, pauses after every hundred, and flushes after every FLUSH. Keeps in FILE
   the numbers of calls that have begun and that have returned. */
int main(int argc, char **argv)
{
    if (argc < 6)
        return 1;
    int fd = open(argv[5], O_RDWR | O_CREAT, 0600), count = atoi(argv[2]), flush = atoi(argv[4]);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return perror("file"), 1;
    atomic_int *calls = (atomic_int *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    nl_log *log = nl_open("client", argv[1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    for (int i = 0; i < count; i++) {
        calls[0]++;
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "some text");
        calls[1]++;
        if (i % 100 == 0)
            usleep(atoi(argv[3]));
        if (flush > 0 && i % flush == flush - 1)
            nl_flush(log);
    }
    if (nl_close(log) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    return 0;
}
"""

STORES = ["nothing", "spool", "small spool", "oldest", "backup", "second collector", "spool and backup"]
FAULTS = ["kill", "end", "stop", "cut", "output full", "store full", "kill program", "kill second", "stop second"]
COUNTS = ["logged", "once", "twice", "recovered", "left", "lost", "in transit", "silently lost"]


class Schedule:
    """The choices of one schedule. Each combination of a format and a store occurs once in 14 consecutive seeds."""

    def __init__(self, seed):
        rng = random.Random(f"delivery {seed}")
        self.seed = seed
        self.format = ["nlb", "ulm"][seed % 2]
        self.store = STORES[seed // 2 % len(STORES)]
        self.count = rng.choice([20000, 40000, 80000])
        self.pause_us = rng.choice([0, 200, 1000, 3000])
        self.flush = rng.choice([0, 5000])
        self.ring = rng.choice(["256k", "1m", "16m"])
        self.timeout = rng.choice(["0.5", "2", "10"])
        self.cuts = [rng.randrange(1, 300000) for _ in range(rng.randrange(1, 5))]
        names = rng.sample(FAULTS, rng.randrange(1, 4))
        unsuitable = {"kill second", "stop second"} if self.store != "second collector" else set()
        if self.store in ("nothing", "second collector"):
            unsuitable.add("store full")
        names = [name for name in names if name not in unsuitable] or ["stop"]
        # Each fault begins at a random time and lasts for a while. The program ends only once.
        self.faults = sorted((rng.uniform(0.02, 0.8), name, rng.uniform(0.02, 1.0)) for name in names)

    def __str__(self):
        faults = ", ".join(f"{name} at {at:.2f} for {length:.2f}" for at, name, length in self.faults)
        return (f"seed {self.seed}: {self.format}, {self.store}, {self.count} events, pause {self.pause_us} us, flush {self.flush}, "
                f"ring {self.ring}, timeout {self.timeout}: {faults}")


class Run:
    """Executes a schedule."""

    def __init__(self, case, schedule, program):
        self.case, self.schedule, self.program = case, schedule, program
        self.folder = case.scratch / f"seed-{schedule.seed}"
        self.messages = ""
        self.environment = dict(os.environ)
        self.small = set()
        self.ending = contextlib.ExitStack()
        self.ending.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for name in ["shm", "out", "store"]:
            (self.folder / name).mkdir(parents=True)
        (self.folder / "shm").chmod(0o700)
        self.environment["NETLOGGER_SHM"] = str(self.folder / "shm")
        for name in ["out", "store"]:
            if case.run_program("mount", "-t", "tmpfs", "-o", "size=48m", "none", self.folder / name).returncode == 0:
                self.ending.callback(subprocess.run, ["umount", "-l", str(self.folder / name)], check=False)
                self.small.add(name)
        suffix = "nlb" if schedule.format == "nlb" else "log"
        self.outputs = [self.folder / "out" / f"{name}.{suffix}" for name in ("collected", "second")]
        self.backup = self.folder / "store" / f"backup.{suffix}"
        self.ports = [support.free_port(), support.free_port()]
        self.collectors = [self.serve(index) for index in range(2 if schedule.store == "second collector" else 1)]
        target = self.ports[0]
        if any(name == "cut" for _, name, _ in schedule.faults):
            proxy = Proxy(self.ports[0], list(schedule.cuts))
            self.ending.callback(proxy.close)
            target = proxy.port
        self.url = self.make_url(target)

    def make_url(self, port):
        s = self.schedule
        options = [f"timeout={s.timeout}", f"ring={s.ring}", *(["format=ulm"] if s.format == "ulm" else [])]
        if "spool" in s.store or s.store == "oldest":
            options += [f"spool={self.folder}/store/spool", f"spool_size={'1m' if s.store in ('small spool', 'oldest') else '256m'}"]
        if s.store == "oldest":
            options.append("spool_full=oldest")
        if s.store.endswith("backup"):
            options.append(f"backup=file:{self.backup}")
        if s.store == "second collector":
            options.append(f"backup=x-netlog://127.0.0.1:{self.ports[1]}")
        return f"x-netlog://127.0.0.1:{port}?" + "&".join(options)

    def serve(self, index):
        port = self.ports[index]
        messages = open(self.folder / f"messages-{port}", "ab")
        netlogd = self.case.start(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}",
                                  "--output", self.outputs[index], stderr=messages, env=self.environment)
        messages.close()
        support.wait_until(lambda: netlogd.poll() is not None or support.can_connect(port), what="netlogd listens")
        return netlogd

    def fill(self, name):
        filler = self.folder / name / "filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                return filler

    def begin(self, name):
        """Begins a fault, and returns the function that ends it."""
        if name in ("output full", "store full"):
            folder = "out" if name == "output full" else "store"
            return self.fill(folder).unlink if folder in self.small else lambda: None
        if name == "kill program":
            self.client.kill()
        index = 1 if name.endswith("second") else 0
        if name.startswith(("kill", "end")) and name != "kill program":
            self.collectors[index].send_signal(signal.SIGTERM if name == "end" else signal.SIGKILL)
            return lambda: self.restart(index)
        if name.startswith("stop"):
            self.collectors[index].send_signal(signal.SIGSTOP)
            return lambda: self.collectors[index].send_signal(signal.SIGCONT)
        return lambda: None

    def restart(self, index):
        netlogd = self.collectors[index]
        netlogd.send_signal(signal.SIGCONT)
        try:
            netlogd.wait(20)
        except subprocess.TimeoutExpired:
            netlogd.kill()
            netlogd.wait()
        self.collectors[index] = self.serve(index)

    def run(self):
        """Returns the counts of events as a dictionary."""
        calls = self.folder / "calls"
        errors = open(self.folder / "errors", "wb")
        self.client = self.case.start(self.program, self.url, self.schedule.count, self.schedule.pause_us, self.schedule.flush, calls,
                                      stderr=errors, env=self.environment)
        started = time.monotonic()
        events = [(at, True, name) for at, name, _ in self.schedule.faults]
        events += [(at + length, False, name) for at, name, length in self.schedule.faults]
        ends = {}
        for at, begins, name in sorted(events):
            time.sleep(max(0, started + at - time.monotonic()))
            if begins:
                ends[name] = self.begin(name)
            else:
                ends.pop(name)()
        self.client.wait(120)
        errors.close()
        self.messages = (self.folder / "errors").read_text()
        calls = [int.from_bytes(calls.read_bytes()[at:at + 4], "little") for at in (0, 4)] if calls.exists() else [0, 0]
        before = len(self.numbers(*self.outputs[:1]))
        self.recover()
        return self.count(calls, before)

    def recover(self):
        """Delivers the events in shared memory and in the spool, and the blocks in the backup. Ends the collectors."""
        for _ in range(10):
            recovered = self.case.run_program(support.program("nltools/nlrecover"), env=self.environment)
            again = self.case.run_program(self.program, self.url + "&policy=block&block=60", "0", "0", "0", self.folder / "again",
                                          env=self.environment, timeout=120)
            if recovered.returncode == 0 and again.returncode == 0 and not list(self.folder.rglob("*.spool")):
                break
            time.sleep(0.5)
        self.messages += f"\nnlrecover: {recovered.stdout}{recovered.stderr}\nlast program: {again.stderr}"
        for netlogd in reversed(self.collectors):
            if netlogd is self.collectors[0] and self.schedule.format == "nlb":
                self.send_copies()
            netlogd.terminate()
            netlogd.wait(60)

    def send_copies(self):
        """Sends the blocks of the backup and of the second collector to the first collector."""
        for path in self.outputs[1], self.backup:
            if path.exists() and path.stat().st_size > 0:
                sent = self.case.run_program(support.program("nltools/nlrecover"), "--dest", f"x-netlog://127.0.0.1:{self.ports[0]}", path,
                                             env=self.environment)
                self.messages += f"\nnlrecover of {path}: {sent.stderr}"

    def text(self, *paths):
        """Returns the records of logs as text."""
        paths = [path for path in paths if path.exists() and path.stat().st_size > 0]
        if self.schedule.format == "ulm" or not paths:
            return "".join(path.read_text(errors="replace") for path in paths)
        sorter = self.case.run_program(support.program("nlsort/nlsort"), "--format", "ulm", *paths)
        self.messages += f"\nnlsort: {sorter.stderr}"
        return sorter.stdout

    def numbers(self, *paths):
        return collections.Counter(int(n) for n in re.findall(r" NL.EVNT=Step I=(\d+) TEXT=\"some text\"\n", self.text(*paths)))

    def count(self, calls, before):
        paths = self.outputs[:1] if self.schedule.format == "nlb" else [*self.outputs, self.backup]
        text, found = self.text(*paths), self.numbers(*paths)
        told = re.search(r"(\d+) (?:events? )?lost", self.messages)
        by_spool = by_ring = 0
        for line in re.findall(r" NL.EVNT=NetLogger.Lost .*\n", text):
            lost = int(re.search(r" COUNT=(\d+)", line)[1])
            if "the spool was full" in line:
                by_spool += lost
            else:
                by_ring += lost
        lost = by_spool + max(by_ring, int(told[1]) if told else 0)
        missing = calls[1] - sum(1 for n in found if n < calls[1])
        left = len(list((self.folder / "shm").glob("netlogger-*"))) + len(list(self.folder.rglob("*.spool")))
        rest = missing - lost
        faults = {name for _, name, _ in self.schedule.faults}
        # Nobody can report text that was lost with the memory of a collector or a program, or in a network.
        in_transit = self.schedule.format == "ulm" and ("may be lost" in self.messages or
                                                        faults & {"kill", "kill second", "cut", "kill program"})
        counts = {"logged": calls[1], "once": sum(1 for n in found.values() if n == 1),
                  "twice": sum(1 for n in found.values() if n > 1), "recovered": len(found) - before, "left": left, "lost": lost,
                  "in transit": rest if in_transit and rest > 0 else 0, "silently lost": 0 if in_transit and rest > 0 else rest}
        if max(found, default=-1) >= calls[0]:
            counts["silently lost"] = -1000000  # a record that was never logged
        return counts


class Delivery(support.Case):
    def test_random_faults(self):
        """Blocks are delivered once. Text may be repeated if the program is killed, and lost if a collector or a connection fails."""
        program = self.compile_client(PROGRAM)
        table = {}
        for seed in range(0, support.representative(100, 88), support.representative(1, 11)):
            schedule = Schedule(seed)
            with self.subTest(str(schedule)):
                run = Run(self, schedule, program)
                with run.ending:
                    counts = run.run()
                row = table.setdefault((schedule.format, schedule.store), collections.Counter())
                row.update(counts)
                self.assertEqual((counts["silently lost"], counts["left"]), (0, 0), (counts, run.messages))
                if schedule.format == "nlb" or "kill program" not in {name for _, name, _ in schedule.faults}:
                    self.assertEqual(counts["twice"], 0, (counts, run.messages))
        for (format_name, store), row in sorted(table.items()):
            print(f"# {format_name}, {store}: " + ", ".join(f"{row[name]} {name}" for name in COUNTS))


if __name__ == "__main__":
    support.main()
