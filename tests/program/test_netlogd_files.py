#!/usr/bin/env python3
"""netlogd follows log files: formats, rotation by renaming, by copying and truncating, and by compression, and kills at random moments."""
import collections
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request

import collector
import support

KILLS = int(os.environ.get("NL_FILES_KILLS", "30"))
SEED = int(os.environ.get("NL_FILES_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 30)


def ulm(number):
    return f"DATE=20260101000000.{number % 1000000:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={number}\n"


class Case(collector.Case):
    def setUp(self):
        super().setUp()
        self.logs = self.scratch / "logs"
        self.logs.mkdir()
        self.log = self.logs / "app.log"

    def follow(self, *patterns, more=(), **options):
        inputs = [f"--input=file:{pattern}" for pattern in patterns or [self.log]]
        return self.serve(*inputs, *more, env={**os.environ, "NETLOGGER_HOST": "HERE"}, **options)

    def append(self, *lines, path=None):
        with open(path or self.log, "a") as file:
            file.write("".join(lines))

    def lines(self):
        return self.written().decode().splitlines(keepends=True)

    def until(self, count):
        support.wait_until(lambda: len(self.lines()) >= count, 30, what=f"{count} records")
        self.assertEqual(len(self.lines()), count)
        return self.lines()


class Files(Case):
    def test_formats(self):
        """Each format gives the records of nlconv. Lines that the format rejects become records, too."""
        syslog = b"<14>1 2026-01-31T12:00:00.5Z h p 7 E - text\n"
        (self.logs / "lines.log").write_text(ulm(1) + "Traceback: not a record\nts=2026-01-01T00:00:00Z event=B level=Info x=1\n" + ulm(2))
        (self.logs / "json.log").write_text('{"ts":"2026-01-01T00:00:00Z","event":"J","n":1}\n{broken\n')
        (self.logs / "csv.log").write_text("ts,event,level,host,prog,x\r\n2026-01-01T00:00:00Z,C,Info,h,p,1\r\n")
        (self.logs / "syslog.log").write_bytes(syslog)
        (self.logs / "packed.log").write_bytes(gzip.compress(ulm(3).encode()))
        (self.logs / "text.out.log").write_text("first line\n  at one\n\tat two\nsecond\n\nthird\n")
        metrics = support.free_port()
        process = self.follow(self.logs / "*.log", more=["--metrics", f"http://127.0.0.1:{metrics}"])
        lines = self.until(12)
        text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=20).read().decode()
        self.assertRegex(text, "\nnetlogd_file_records_total 12\n(.*\n)*netlogd_files 6\n(.*\n)*netlogd_journal_records_total 0\n")
        self.stop(process)
        rest = collections.Counter(re.sub(r"^DATE=\S+ ", "", line).replace(str(self.logs), "LOGS") for line in lines)
        line = "HOST=HERE PROG={} LVL=Usage NL.EVNT=line FILE=LOGS/{} MESSAGE={}\n".format
        self.assertEqual(rest, collections.Counter([
            *(re.sub(r"^DATE=\S+ ", "", ulm(n)) for n in (1, 2, 3)), line("lines", "lines.log", '"Traceback: not a record"'),
            "LVL=Usage NL.EVNT=B x=1\n", "HOST=HERE NL.EVNT=J n=1\n", line("json", "json.log", "{broken"),
            "HOST=h PROG=p LVL=Usage NL.EVNT=C x=1\n", "HOST=h PROG=p LVL=Usage NL.EVNT=E FACILITY=user PRIORITY=6 PROCID=7 MESSAGE=text\n",
            line("text", "text.out.log", '"first line\\n  at one\\n\\tat two"'), line("text", "text.out.log", "second"),
            line("text", "text.out.log", "third")]))

    def test_positions_survive_a_restart(self):
        for number in range(3):
            self.append(ulm(2 * number), ulm(2 * number + 1)[:20])
            process = self.follow()
            self.until(2 * number + 1)
            self.append(ulm(2 * number + 1)[20:])
            self.until(2 * number + 2)
            self.stop(process)
        self.assertEqual(self.lines(), [ulm(n) for n in range(6)])

    def test_rotation_while_netlogd_runs_and_while_it_does_not(self):
        for running in (True, False):
            for name, rotate in Rotation.KINDS.items():
                for path in (*self.logs.iterdir(), *self.scratch.glob("all.log*")):
                    path.unlink()
                process = self.follow()
                self.append(*(ulm(n) for n in range(100)))
                self.until(100)
                if not running:
                    self.stop(process, signal.SIGTERM)
                self.append(*(ulm(n) for n in range(100, 200)))
                rotate(self.log, 1)
                self.append(*(ulm(n) for n in range(200, 300)))
                if not running:
                    process = self.follow()
                lines = self.until(300)
                self.stop(process)
                self.assertEqual(sorted(lines), sorted(ulm(n) for n in range(300)), (name, running))

    def test_a_file_that_is_rotated_before_a_piece_is_stored(self):
        """netlogd is killed after it has read the first lines of a file, and before the output's journal contains them."""
        for name, rotate in Rotation.KINDS.items():
            for path in (*self.logs.iterdir(), *self.scratch.glob("all.log*")):
                path.unlink()
            self.append(*(ulm(n) for n in range(100, 200)))
            process = self.follow(self.logs / "app.log*", output=f"file:{self.output}?fsync=1h")
            self.until(100)
            process.kill()
            process.wait()
            rotate(self.log, 1)
            self.append(*(ulm(n) for n in range(200, 300)))
            process = self.follow(self.logs / "app.log*")
            support.wait_until(lambda: len(self.lines()) >= 200, 30, what="200 records")
            self.stop(process)
            self.assertEqual(sorted(self.lines()), [ulm(n) for n in range(100, 300)], name)
            self.assertNotIn("InputLost", self.said())

    def test_a_finished_copy_that_grows(self):
        """netlogd reads the new lines, although it did not expect the copy to grow. A line is complete at its end."""
        process = self.follow(self.logs / "app.log*")
        self.append(*(ulm(n) for n in range(100)))
        self.until(100)
        Rotation.copy_truncate(self.log, 1)
        positions, copy = pathlib.Path(str(self.output) + ".inputs"), self.logs / "app.log.1"
        support.wait_until(lambda: re.search(r"\nfile 1 \d+ \d+ 3 .*/app.log.1\n", positions.read_text()), 30, what="the end of the copy")
        self.append(*(ulm(n) for n in range(100, 200)), ulm(200)[:40], path=copy)
        self.until(200)
        time.sleep(1.3)  # one more search for new files
        self.append(ulm(200)[40:], path=copy)
        self.assertEqual(self.until(201), [ulm(n) for n in range(201)])
        self.stop(process)

    def test_copies_that_match_the_pattern_are_not_read_twice(self):
        process = self.follow(self.logs / "app.log*")
        self.append(*(ulm(n) for n in range(100)))
        self.until(100)
        for number, rotate in enumerate(Rotation.KINDS.values(), 1):
            rotate(self.log, number)
            self.append(ulm(100 * number), *(ulm(n) for n in range(100 * number + 1, 100 * number + 100)))
            self.until(100 * number + 100)
            time.sleep(1.3)  # one more search for new files
        self.until(100 * number + 100)
        self.stop(process)
        process = self.follow(self.logs / "app.log*")
        time.sleep(1.3)
        self.until(100 * number + 100)
        self.stop(process)

    def test_copies_in_progress_are_not_read(self):
        """A rotated file is copied, and the copy is compressed, more slowly than netlogd searches for new files."""
        process = self.follow(self.logs / "app.log*")
        self.append(*(ulm(n) for n in range(100)))
        self.until(100)
        content, copy, packed = self.log.read_bytes(), self.logs / "app.log.1", self.logs / "app.log.1.gz"
        for path, data in ((copy, content), (packed, gzip.compress(content))):
            for part in (data[:0], data[:10], data[10:len(data) // 2], data[len(data) // 2:]):
                with open(path, "ab") as file:
                    file.write(part)
                time.sleep(2.5 if part == data[10:len(data) // 2] else 1.2)  # at least one search, also on a busy machine
            if path == copy:
                os.truncate(self.log, 0)
            else:
                copy.unlink()
        self.append(*(ulm(n) for n in range(100, 200)))
        self.until(200)
        time.sleep(1.3)
        self.until(200)
        self.stop(process)

    def test_copies_that_stay_beside_their_original(self):
        """A copy is slow, and its original is truncated long after the copy was made; later, compressed copies remain."""
        process = self.follow(self.logs / "app.log*")
        self.append(*(ulm(n) for n in range(2000)))
        self.until(2000)
        content, copy = self.log.read_bytes(), self.logs / "app.log.1"
        for part in (content[:1000], content[1000:]):
            with open(copy, "ab") as file:
                file.write(part)
            time.sleep(7.5)  # longer than the maximum pause in the writing of a copy
        os.truncate(self.log, 0)
        self.append(*(ulm(n) for n in range(2000, 2100)))
        self.until(2100)
        for number in (1, 2):
            (self.logs / f"app.log.{number}.gz").write_bytes(gzip.compress(content))
        time.sleep(7.5)
        positions = pathlib.Path(str(self.output) + ".inputs")
        before = positions.stat().st_size
        time.sleep(2.5)  # two searches for new files
        self.assertEqual(positions.stat().st_size, before)
        self.until(2100)
        self.stop(process)
        self.assertNotIn("begins like", self.said())

    def test_a_file_that_begins_like_another(self):
        """A new file begins like a followed file. netlogd reads the new file, and reports that it may be a copy."""
        for name, more in (("app.log.new", [ulm(200)]), ("other.log", [])):
            for path in (*self.logs.iterdir(), *self.scratch.glob("all.log*")):
                path.unlink()
            self.append(*(ulm(n) for n in range(100)))
            process = self.follow(self.logs / "*.log*")
            self.until(100)
            copied = [ulm(n) for n in range(100)] + more
            self.append(*copied, path=self.logs / name)
            self.assertEqual(sorted(self.until(100 + len(copied))), sorted([*(ulm(n) for n in range(100)), *copied]), name)
            self.stop(process)
            self.assertIn(f"{name}: begins like {self.log}; if this file is a copy, its lines are stored twice", self.said())
            self.assertIn("Netlogd.InputCopy", self.said())

    def test_a_growing_file_is_read_although_a_removed_file_began_like_it(self):
        """A removed file was empty, or had the same header. A new file at its path never stays unchanged for long."""
        header = "DATE,HOST,PROG,LVL,NL.EVNT,N," + ",".join(f"UNUSED{n}" for n in range(40)) + "\n"

        def row(number):
            return f"20260101000000.{number:06d},h,p,Usage,E,{number},{',' * 38}\n"
        positions, empty, rows = pathlib.Path(str(self.output) + ".inputs"), self.logs / "empty", self.logs / "rows"
        empty.touch()
        rows.write_text(header + "".join(row(n) for n in range(100)))
        process = self.follow(self.logs / "*")
        self.until(100)
        support.wait_until(lambda: f"{empty}\n" in positions.read_text(), 30, what="the empty file to be found")
        for log in (empty, rows):
            log.unlink()
            support.wait_until(lambda: re.search(rf"\nfile \d+ \d+ \d+ [13] .*{log}\n", positions.read_text()), 30, what=f"the end of {log}")
        self.append(ulm(100), path=empty)
        self.append(header + row(100), path=rows)
        for number in range(101, 161):
            time.sleep(0.25)
            self.append(ulm(number), path=empty)
            self.append(row(number), path=rows)
        numbers = [int(re.search(r" N=(\d+)", line)[1]) for line in self.lines()]
        self.assertEqual(numbers.count(100), 2, "both growing files are read")
        self.stop(process)

    def test_a_growing_file_is_read_although_another_file_is_its_beginning(self):
        """Another process wrote the same first line and ended. The new file never stays unchanged for long."""
        process = self.follow(self.logs / "*")
        self.append(ulm(0))
        self.until(1)
        for number in range(60):
            self.append(ulm(number), path=self.logs / "other")
            time.sleep(0.25)
        self.assertIn(ulm(30), self.lines())
        support.wait_until(lambda: len(self.lines()) >= 61, 30, what="61 records")
        self.stop(process)
        self.assertEqual(sorted(self.lines()), sorted([ulm(0), *(ulm(n) for n in range(60))]))

    def test_a_compressed_file_is_decompressed_once(self):
        rng, path = random.Random(1), self.logs / "packed.log"
        lines = [ulm(n).replace("\n", f" X={rng.randbytes(60).hex()}\n") for n in range(20000)]
        path.write_bytes(gzip.compress("".join(lines).encode(), compresslevel=1))
        process = self.follow(path)
        self.assertEqual(self.until(20000), lines)
        counts = dict(line.split(": ") for line in pathlib.Path(f"/proc/{process.pid}/io").read_text().splitlines())
        self.stop(process)
        self.assertLess(int(counts["rchar"]), 4 * path.stat().st_size)

    def test_a_new_compressed_file_that_grows_slowly(self):
        """netlogd reads a compressed file once, when the file is complete."""
        process = self.follow(self.logs / "*")
        packed, path = gzip.compress("".join(ulm(n) for n in range(100)).encode()), self.logs / "new.gz"
        for part in (packed[:10], packed[10:len(packed) // 2], packed[len(packed) // 2:]):
            with open(path, "ab") as file:
                file.write(part)
            time.sleep(6.5)  # longer than the maximum pause in the writing of a copy
        self.assertEqual(self.until(100), [ulm(n) for n in range(100)])
        self.stop(process)

    def test_content_that_disappears_is_reported(self):
        process = self.follow()
        self.append(ulm(1))
        self.until(1)
        self.log.write_text(ulm(2))
        self.until(2)
        support.wait_until(lambda: "Netlogd.InputLost" in self.said(), what="the report")
        self.stop(process)
        self.assertIn("the file was removed, replaced or truncated; lines that netlogd had not read are lost", self.said())

    def test_content_that_is_found_later(self):
        """After a kill, netlogd finds the rest of a log only after several searches, with and without stored first lines."""
        for fsync in ("1s", "1h"):
            for path in (*self.logs.iterdir(), *self.scratch.glob("all.log*")):
                path.unlink()
            self.append(*(ulm(n) for n in range(100)))
            process = self.follow(output=f"file:{self.output}?fsync={fsync}")
            self.until(100)
            process.kill()
            process.wait()
            self.append(*(ulm(n) for n in range(100, 200)))
            self.log.rename(self.scratch / "elsewhere")
            self.append(ulm(200))
            process = self.follow()
            time.sleep(2.5)  # longer than two searches
            (self.scratch / "elsewhere").rename(self.logs / "app.log.1")
            support.wait_until(lambda: len(self.lines()) >= 201, 30, what="201 records")
            self.stop(process)
            self.assertEqual(sorted(self.lines()), [ulm(n) for n in range(201)], fsync)
            self.assertNotIn("InputLost", self.said())

    def test_the_copy_of_a_truncated_file_appears_later(self):
        """netlogd reads the new content at once, and the rest of the old content when it finds the copy."""
        self.append(*(ulm(n) for n in range(100)))
        process = self.follow()
        self.until(100)
        process.send_signal(signal.SIGSTOP)
        self.append(*(ulm(n) for n in range(100, 200)))
        shutil.copyfile(self.log, self.scratch / "elsewhere")
        self.log.write_text(ulm(200))
        process.send_signal(signal.SIGCONT)
        self.until(101)
        (self.scratch / "elsewhere").rename(self.logs / "app.log.1")
        support.wait_until(lambda: len(self.lines()) >= 201, 30, what="201 records")
        self.stop(process)
        self.assertEqual(sorted(self.lines()), [ulm(n) for n in range(201)])
        self.assertNotIn("InputLost", self.said())

    def test_lost_content_is_reported_once(self):
        self.append(*(ulm(n) for n in range(3000)))
        process = self.follow(output=f"file:{self.output}?fsync=1h")
        self.until(3000)
        self.append(*(ulm(n) for n in range(3000)))
        self.until(6000)
        process.kill()
        process.wait()
        self.log.unlink()
        process = self.follow()
        support.wait_until(lambda: "Netlogd.InputLost" in self.said(), what="the report")
        self.append(ulm(1))
        support.wait_until(lambda: self.lines()[-1:] == [ulm(1)], what="the new file")
        positions = pathlib.Path(str(self.output) + ".inputs")
        support.wait_until(lambda: "\nstored 6001\n" in positions.read_text(), what="the line to be stored")
        self.assertEqual(self.said().count("lines that netlogd had not read are lost"), 1)
        process.kill()
        process.wait()
        process = self.follow()
        self.append(ulm(2))
        support.wait_until(lambda: self.lines()[-1:] == [ulm(2)], what="the next line")
        self.stop(process)
        self.assertNotIn("lines that netlogd had not read are lost", self.said())

    def test_settings(self):
        self.assertIn("requires an output with a file", self.fails("--input", f"file:{self.log}", "--output", "-", "--listen", "unix:" + str(self.scratch / "u")))
        self.assertIn("or file:PATH", self.fails("--input", "x-netlog://h", status=2))
        positions = pathlib.Path(str(self.output) + ".inputs")
        positions.write_text("something else\n")
        self.assertIn("invalid line", self.fails("--input", f"file:{self.log}", "--output", self.output, "--listen", "unix:" + str(self.scratch / "u")))
        self.assertEqual(positions.read_text(), "something else\n")

    def test_status_and_confinement(self):
        control = f"unix:{self.scratch}/control"
        self.append(ulm(1))
        with open(self.messages, "ab") as messages:
            process = self.start(self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/u", "--control", control, "--output", self.output,
                                 "--input", f"file:{self.log}", stderr=messages)
        self.until(1)
        clients = self.run_program(support.program("netlogd/netlogctl"), "--control", control, "clients").stdout
        self.assertIn(str(self.log), clients)
        self.stop(process)
        self.assertNotIn("CallRefused", self.said())


class Rotation:
    """Rotates a log as logrotate does."""

    @staticmethod
    def rename(log, number):
        log.rename(f"{log}.{number}")

    @staticmethod
    def copy_truncate(log, number):
        shutil.copyfile(log, f"{log}.{number}")
        os.truncate(log, 0)

    @staticmethod
    def compress(log, number):
        rotated = pathlib.Path(f"{log}.{number}")
        log.rename(rotated)
        Rotation.pack(rotated)

    @staticmethod
    def copy_truncate_compress(log, number):
        Rotation.copy_truncate(log, number)
        Rotation.pack(pathlib.Path(f"{log}.{number}"))

    @staticmethod
    def pack(rotated):
        with gzip.open(f"{rotated}.gz", "wb") as packed:
            packed.write(rotated.read_bytes())
        rotated.unlink()


Rotation.KINDS = {name: getattr(Rotation, name) for name in ("rename", "copy_truncate", "compress", "copy_truncate_compress")}


class Kills(Case):
    def write(self, rng, done):
        """Writes lines and rotates the log until `done` is set."""
        number, rotations = 0, 0
        while not done.is_set():
            count = rng.randrange(1, 60)
            self.append(*(ulm(n) for n in range(number, number + count)))
            number += count
            if rng.random() < 0.1:
                rotations += 1
                rng.choice(list(Rotation.KINDS.values()))(self.log, rotations)
            time.sleep(rng.random() * 0.01)
        self.written_lines, self.rotations = number, rotations

    def check_kills(self, name, seed):
        output, rng, done = self.scratch / name, random.Random(seed), threading.Event()
        writer = threading.Thread(target=self.write, args=(random.Random(seed + 1), done))
        writer.start()
        self.addCleanup(writer.join)
        self.addCleanup(done.set)
        command = [self.netlogd, "--foreground", "--listen", f"unix:{self.scratch}/u", "--output", output, "--recover", "0",
                   "--input", f"file:{self.log}*"]
        for _ in range(KILLS // 2):
            with open(self.messages, "ab") as messages:
                process = self.start(*command, stderr=messages)
            time.sleep(rng.random() * 0.3)
            process.kill()
            process.wait()
        done.set()
        writer.join()
        with open(self.messages, "ab") as messages:
            process = self.start(*command, stderr=messages)

        def lines():
            converted = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", output)
            return [line for line in converted.stdout.splitlines(keepends=True) if "NL.EVNT=E" in line]
        support.wait_until(lambda: len(lines()) >= self.written_lines, what=f"{self.written_lines} lines")
        self.stop(process)
        counts = collections.Counter(lines())
        self.assertEqual([], [line for line, count in counts.items() if count != 1][:5], "lines that are doubled")
        self.assertEqual(set(counts), {ulm(n) for n in range(self.written_lines)})
        self.assertNotIn("InputLost", self.said())
        self.assertGreater(self.rotations, KILLS / 60)

    def test_kills_with_an_output_of_text(self):
        print(f"# NL_FILES_SEED={SEED} NL_FILES_KILLS={KILLS}")
        self.check_kills("all.log", SEED)

    def test_kills_with_an_output_of_blocks(self):
        self.check_kills("all.nlb", SEED + 2)


if __name__ == "__main__":
    support.main()
