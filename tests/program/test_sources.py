"""Every program reads all sources: archives, compressed files, pipes, collectors; and reports missing records."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess

import blocks
import support

PROGRAM = r"""
#include <netlogger.h>
#include <stdlib.h>
/* client URL FROM TO: one stream of numbered records, of requests of two steps each, in the file that URL names. */
int main(int argc, char **argv)
{
    nl_log *log = nl_open("p", argv[1]);
    for (int i = atoi(argv[2]); argc == 4 && i < atoi(argv[3]); i++) {
        NL_EVENT(log, NL_USAGE, "Begin", "REQ.ID", i);
        NL_EVENT(log, NL_USAGE, "End", "REQ.ID", i);
        if (i % 50 == 0)
            nl_flush(log);
    }
    return nl_close(log) == NL_OK ? 0 : 1;
}
"""
COUNT = 3000
READER_MEMORY_MAX = 256 << 20  # memory of a reader besides records, in bytes, for any input
MEMORY_PER_BYTE_MAX = 1280  # bytes for each byte of a file of blocks; text is at most 1024 times longer than its block


def line(number, event="E"):
    return f"DATE=20260101000000.{number:06d} HOST=h PROG=p LVL=Usage NL.EVNT={event} N={number}\n"


def characters_read(process):
    """Bytes that a process has read so far, of files and of sockets."""
    with open(f"/proc/{process.pid}/io") as io:
        return int(io.read().split("rchar: ")[1].split()[0])


class Sources(support.Case):
    def setUp(self):
        super().setUp()
        self.nlsort = support.program("nlsort/nlsort")
        self.nlconv = support.program("nltools/nlconv")
        self.archive = self.scratch / "archive"
        self.archive.mkdir()

    def blocks(self, data):
        """Returns the blocks of a file in the binary format (doc/binary-format.md)."""
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at + 4:at + 6], "little") + int.from_bytes(data[at + 12:at + 16], "little")
            yield data[at:at + size]
            at += size

    def make_archive(self, files=4):
        """Makes an archive of that number of numbered files with one stream. Returns a file with the whole stream."""
        client = self.compile_client(PROGRAM)
        whole = self.scratch / "whole.nlb"
        result = self.run_program(client, f"file:{whole}?format=nlb&zstd=0", "0", str(COUNT))
        self.assertEqual(result.returncode, 0, result.stderr)
        found = list(self.blocks(whole.read_bytes()))
        self.assertGreater(len(found), files)
        for i in range(files):
            part = found[i * len(found) // files:(i + 1) * len(found) // files]
            (self.archive / f"a-{i + 1:06d}.nlb").write_bytes(b"".join(part))
        return whole

    def readers(self):
        """Returns every program that reads logs to their end, as a command without the source."""
        schema = self.scratch / "s.schema"
        schema.write_text("[schema]\nname=s\ndescription=d\n[Begin]\nlevel=Usage\ndescription=d\nREQ.ID=int64; ; d\n"
                          "[End]\nlevel=Usage\ndescription=d\nREQ.ID=int64; ; d\n")
        commands = [["nlsort/nlsort"], ["nlsort/nlsort", "-m"], ["nlsort/nlsort", "-k", "REQ.ID"], ["nlsort/nlsort", "-c"],
                    ["nlsort/nlsort", "--window", "1s"], ["nltools/nlconv", "--format", "json"],
                    ["nltools/nlconv", "--format", "chrome"], ["nltools/nlstat"], ["nltools/nlschema", "check", schema],
                    ["nltools/nlwrite", "--dest", self.scratch / "written.log", "-"],
                    ["nlv/nlv", "--render", self.scratch / "out.png"], ["nlkernel/nlkernel", "report", "scheduler"]]
        return [[support.BUILD / c[0], *c[1:]] for c in commands if (support.BUILD / c[0]).exists()]

    def test_an_archive_is_read_as_a_file_is(self):
        whole = self.make_archive()
        for command in self.readers():
            one, archive = (self.run_program(*command, source) for source in (whole, self.archive))
            self.assertEqual((archive.returncode, archive.stderr.replace(str(self.archive), "X")),
                             (one.returncode, one.stderr.replace(str(whole), "X")), command)
            self.assertEqual(archive.stdout.replace(str(self.archive), "X"), one.stdout.replace(str(whole), "X"), command)

    def assert_memory_is_bounded(self, command, log, valid):
        with subprocess.Popen([*command, log], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertIn(process.returncode, (0, 1, 3, 4), errors)
        if b"__asan_init" not in pathlib.Path(command[0]).read_bytes():  # a sanitizer uses additional memory
            self.assertLess(usage.ru_maxrss << 10, READER_MEMORY_MAX + MEMORY_PER_BYTE_MAX * log.stat().st_size)
        (self.assertNotRegex if valid else self.assertRegex)(errors, ": byte [0-9]+: ")

    def test_memory_for_blocks_that_expand(self):
        """The blocks are as small for their records as valid blocks may be, or smaller. In ./check, the commands alternate: a third
        of them reads each log."""
        logs = {"dense": blocks.dense() * 4, "strings": blocks.dense_strings() * 4, "tables": blocks.tables() * 4,
                "requests": b"".join(blocks.dense_requests(i << 20) for i in range(4)),
                "many requests": b"".join(blocks.dense_requests(i << 20) for i in range(50)),
                "invalid": blocks.beyond_limits() * 4}
        diagnose = [[support.BUILD / "nltools/nldiag"]] if (support.BUILD / "nltools/nldiag").exists() else []
        for i, (name, data) in enumerate(logs.items()):
            log = self.scratch / f"{name}.nlb"
            log.write_bytes(data)
            commands = [c for c in diagnose + self.readers() if name != "many requests" or c[0].name in ("nldiag", "nlstat", "nlv")]
            for command in support.representative(commands, commands[i % 3::3]):
                with self.subTest(name, command=command):
                    self.assert_memory_is_bounded(command, log, name != "invalid")

    def test_memory_of_the_analysis(self):
        """The memory depends only on --memory. A verdict on a part of the log is marked."""
        count = support.representative(100, 35)  # without the limit, nldiag would use more than 70 MB for the first two logs
        logs = {"requests": b"".join(blocks.dense_requests(i << 20) for i in range(count)),
                "one request": b"".join(map(blocks.one_request, range(count))),
                "hosts": b"".join(map(blocks.many_hosts, range(support.representative(30, 20)))), "numbers": b"".join(map(blocks.many_numbers, range(count)))}
        for name, data in logs.items():
            log = self.scratch / f"{name}.nlb"
            log.write_bytes(data)
            for program in "nldiag", "nlstat":
                command = [support.BUILD / "nltools" / program, "--memory", "16m", "--id", "NL.ID", log]
                with self.subTest(name, program=program):
                    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                        output = process.stdout.read()
                        _, status, usage = os.wait4(process.pid, 0)
                        process.returncode = os.waitstatus_to_exitcode(status)
                    self.assertIn(process.returncode, (0, 1, 3, 4), output)
                    if b"__asan_init" not in pathlib.Path(command[0]).read_bytes():
                        self.assertLess(usage.ru_maxrss, 70_000, "kB")
                        self.assertLess(usage.ru_utime, 20, "seconds")
                    if (name, program) == ("requests", "nldiag"):
                        self.assertRegex(output, r"(?m)^Incomplete: the verdict covers a sample, [0-9]+ of [0-9]+ requests")

    def test_a_missing_file_of_an_archive_is_told(self):
        self.make_archive()
        missing = int(self.run_program("sh", "-c", f"{self.nlsort} {self.archive}/a-000002.nlb | wc -l").stdout)
        (self.archive / "a-000002.nlb").unlink()
        for command in self.readers():
            result = self.run_program(*command, self.archive)
            self.assertIn(f" {missing} records are missing", result.stderr, command)
            self.assertEqual(result.returncode, 1, command)

    def test_an_archive_out_of_order_is_complete(self):
        """Numbers may have any order: one file may have the gaps of another file, even more than 16 gaps."""
        whole = self.make_archive()
        blocks = list(self.blocks(whole.read_bytes()))
        self.assertGreater(len(blocks), 40)
        random.Random(21).shuffle(blocks)
        for i, path in enumerate(sorted(self.archive.iterdir())):
            path.write_bytes(b"".join(blocks[i::4]))
        records = set(self.run_program(self.nlsort, whole).stdout.splitlines())
        self.assertEqual(len(records), 2 * COUNT)
        other = self.scratch / "other"
        for split in False, True:  # in one archive; then in two archives: a collector's and its backup's
            if split:
                other.mkdir()
                for path in sorted(self.archive.iterdir())[1::2]:
                    path.rename(other / path.name)
            sources = [self.archive, other] if split else [self.archive]
            for command in self.readers():
                if split and command[0].name in ("nlconv", "nlkernel", "nlwrite"):
                    continue  # one source
                result = self.run_program(*command, *sources)
                self.assertNotRegex(result.stderr, "missing|twice", command)
                if not {"-c", "-m"} & set(command):  # these need ordered records
                    in_order = self.run_program(*command, whole)
                    self.assertEqual(result.returncode, in_order.returncode, (command, result.stderr))
            self.assertEqual(set(self.run_program(self.nlsort, *sources).stdout.splitlines()), records)
            if (support.BUILD / "netlogd/netlogd").exists():
                result = self.run_program(support.BUILD / "netlogd/netlogd", "--verify", *sources)
                self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
                self.assertEqual(result.stdout.count(": sound: "), 4, result.stdout)
        result = self.run_program(self.nlsort, self.archive)
        self.assertEqual(result.returncode, 1, "half of an archive is not complete")
        self.assertIn(" records are missing", result.stderr)

    def test_what_an_archive_has_twice_is_read_once(self):
        self.make_archive()
        clean = self.run_program(self.nlsort, self.archive)
        shutil.copy(self.archive / "a-000002.nlb", self.archive / "a-000009.nlb")
        for command in ["nlsort/nlsort"], ["nltools/nlconv", "--format", "ulm"]:
            result = self.run_program(support.BUILD / command[0], *command[1:], self.archive)
            self.assertEqual(result.stdout.splitlines(), clean.stdout.splitlines())
            self.assertRegex(result.stderr, r": ignored \d+ duplicate records? of an archive\n$")

    def test_files_of_any_kind_are_one_archive(self):
        (self.archive / "a-000001.log").write_text(line(1) + line(2))
        shutil.copy(self.archive / "a-000001.log", self.scratch / "text")
        (self.archive / "a-000002.bp").write_text("ts=2026-01-01T00:00:00.000003Z event=E level=Info N=3\n")
        packed = subprocess.run(["zstd", "-c"], input=line(4).encode(), capture_output=True)
        (self.archive / "a-000003.log.zst").write_bytes(packed.stdout)
        (self.archive / "a-000010.log").write_text(line(5) + "garbage\n" + line(6))
        (self.archive / "a.streams").write_text("no log")
        (self.archive / "delivered").write_text("no log")
        for command in ["nlsort/nlsort"], ["nlsort/nlsort", "-m"], ["nltools/nlconv", "--format", "ulm"]:
            result = self.run_program(support.BUILD / command[0], *command[1:], self.archive)
            self.assertEqual(re.findall(r"N=(\d)", result.stdout), list("123456"), command)
            self.assertIn("a-000010.log:2: ", result.stderr)
        result = self.run_program(self.nlconv, "--format", "json", self.archive, stdin=subprocess.DEVNULL)
        self.assertEqual([json.loads(l)["N"] for l in result.stdout.splitlines()], [1, 2, 3, 4, 5, 6])

    def test_a_folder_of_foreign_files_is_refused(self):
        for i in 1, 2:
            (self.archive / f"{i}.csv").write_text("DATE,NL.EVNT\n2026-01-01T00:00:00Z,E\n")
        result = self.run_program(self.nlconv, "--format", "ulm", self.archive)
        self.assertEqual(result.returncode, 1)
        self.assertIn("2.csv: cannot join files in the format csv", result.stderr)

    def test_folders_that_hold_nothing_or_may_not_be_read(self):
        for command in self.readers():
            result = self.run_program(*command, self.scratch / "none")
            self.assertEqual(result.returncode, 1, command)
            self.assertIn("none: No such file or directory", result.stderr, command)
        result = self.run_program(self.nlconv, "--format", "ulm", self.archive)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, "", f"nlconv: {self.archive}: no records\n"))

    def test_help_tells_of_sources(self):
        for command in self.readers():
            words = " ".join(self.run_program(command[0], *(["report"] if "report" in command else []), "--help").stdout.split())
            self.assertIn("a directory that contains an archive of netlogd or a CTF trace; a running collector", words, command)

    def serve(self, output):
        messages = self.scratch / "messages"
        with open(messages, "wb") as file:
            netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", "x-netlog://127.0.0.1:0",
                                 "--output", output, "--recover", "0", stderr=file)
        found = support.wait_until(lambda: re.search(r"listening on (x-netlog://127\.0\.0\.1:\d+)\n", messages.read_text()),
                                   what="netlogd listens")
        return netlogd, found.group(1)

    def test_a_collector_is_read_until_interrupted(self):
        client = self.compile_client(PROGRAM)
        netlogd, url = self.serve(self.scratch / "all.nlb")
        self.assertEqual(self.run_program(client, f"{url}?format=nlb", "0", str(COUNT)).returncode, 0)
        out = self.scratch / "out"
        for command in ["nlsort/nlsort", "-o", out], ["nlsort/nlsort", "-k", "REQ.ID", "-o", out], \
                ["nlsort/nlsort", "-m", "-o", out], ["nltools/nlconv", "--format", "json", "-o", out], ["nltools/nlstat", "--json"]:
            # A record that arrives during the reading shows that the earlier records were read.
            reader = self.start(support.program(command[0]), *command[1:], f"{url}?since=0", stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
            self.assertRegex(reader.stderr.readline(), r"reading live; press Ctrl-C to stop")
            subscribers = lambda: self.sent_to_subscribers(reader)
            support.wait_until(subscribers, what="it has read")
            reader.send_signal(signal.SIGINT)
            printed, said = reader.communicate(timeout=30)
            self.assertEqual((reader.returncode, said), (0, ""), command)
            if "--json" in command:
                self.assertEqual(json.loads(printed)[0]["requests"], COUNT)
            else:
                self.assertEqual(len(out.read_text().splitlines()), 2 * COUNT, command)
                out.unlink()

    @staticmethod
    def sent_to_subscribers(reader):
        """Returns whether the collector has sent everything: the reader has read nothing for a while."""
        read = characters_read(reader)
        before, Sources.read_before = getattr(Sources, "read_before", None), (reader.pid, read)
        if before != (reader.pid, read):
            Sources.still = 0
        else:
            Sources.still += 1
        return Sources.still > 50

    def test_two_interrupts_kill(self):
        netlogd, url = self.serve(self.scratch / "all.nlb")
        reader = self.start(self.nlsort, "-", url, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        reader.stdin.close()
        self.assertIn("reading live", reader.stderr.readline())
        reader.send_signal(signal.SIGINT)
        self.assertEqual(reader.wait(30), 0)


if __name__ == "__main__":
    support.main()
