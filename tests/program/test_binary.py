"""Tests the binary format with an independent decoder, which was written from the format's page. The decoder reads the output of
programs. The programs read blocks that were made without the library."""
import random
import re
import resource
import signal
import socket
import subprocess
import unittest

import nlb_decoder
import support


def random_line(rng, number):
    values = ["x", "a b", "", 'q"u', "\\", "1.5", "-7", "t\tt", "\xe4", "=", "long" * rng.randrange(30)]
    fields = [(f"F{rng.randrange(9)}.{i}", rng.choice(values).encode("latin-1")) for i in range(rng.randrange(6))]
    record = nlb_decoder.Record(rng.randrange(-10**9, 2 * 10**9) * 1000, f"h{rng.randrange(4)}".encode(),
                                rng.choice([b"", b"prog"]), rng.choice(["", "Usage", "Debug", "odd", "usage"]),
                                rng.choice([b"", b"Write.Data"]), [(b"N", str(number).encode())] +
                                [(n.encode(), v) for n, v in fields])
    return record.ulm()


class Binary(support.Case):
    def setUp(self):
        super().setUp()
        self.nlsort = support.program("nlsort/nlsort")
        self.nlwrite = support.program("nltools/nlwrite")

    def run_bytes(self, *command, **options):
        result = self.run_program(*command, text=False, **options)
        result.stderr = result.stderr.decode(errors="replace")
        return result

    def log(self, count, seed=3):
        """Writes a sorted text log. Returns its bytes."""
        rng = random.Random(seed)
        path = self.scratch / "some.log"
        path.write_bytes(b"".join(random_line(rng, i) for i in range(count)))
        result = self.run_bytes(self.nlsort, path)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def test_the_page_says_what_is_written(self):
        text = self.log(4000)
        for name, zstd in (("a.nlb", "?zstd=0"), ("b.nlb", ""), ("c.nlb", "?zstd=9"), ("d", "?format=nlb")):
            path = self.scratch / name
            result = self.run_bytes(self.nlsort, "-o", f"file:{path}{zstd}", input=text)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            blocks = list(nlb_decoder.blocks(path.read_bytes()))
            self.assertEqual(all(b.compressed for b in blocks), zstd != "?zstd=0")
            self.assertTrue(all(b.stream == bytes(16) and b.lost == 0 for b in blocks))
            self.assertGreater(len(blocks), 1)
            self.assertEqual(b"".join(r.ulm() for b in blocks for r in b.records), text)
            self.assertEqual(self.run_bytes(self.nlsort, "--format", "ulm", path).stdout, text)

    def test_types_and_nanoseconds_go_through(self):
        rows = [(10**18 + i * 777, b"E", [(b"I", -i * 10**15), (b"D", i / 7), (b"B", i % 2 == 0), (b"S", bytes([i]))])
                for i in range(50)]
        shuffled = rows[:]
        random.Random(1).shuffle(shuffled)
        for arguments in ([], ["-m"], ["-S", "16M"], ["-u"]):
            source = nlb_decoder.encode(rows if arguments == ["-m"] else shuffled)
            path, out = self.scratch / "in", self.scratch / "out.nlb"
            path.write_bytes(source)
            result = self.run_bytes(self.nlsort, *arguments, "-o", out, path)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            records = nlb_decoder.records(out.read_bytes())
            self.assertEqual([(r.time_ns, r.event, r.fields) for r in records], rows)
            self.assertEqual({(r.host, r.prog, r.level) for r in records}, {(b"testhost", b"test", "Usage")})

    def test_nlwrite_writes_and_reads_blocks(self):
        path = self.scratch / "w.nlb"
        for i in range(3):
            self.assertEqual(self.run_program(self.nlwrite, "--dest", path, f"Ev{i}", f"A={i}").returncode, 0)
        records = nlb_decoder.records(path.read_bytes())
        self.assertEqual([(r.event, r.fields) for r in records], [(b"Ev%d" % i, [(b"A", b"%d" % i)]) for i in range(3)])
        result = self.run_bytes(self.nlwrite, "--dest", "-", "-", input=path.read_bytes())
        self.assertEqual(result.stdout, b"".join(r.ulm() for r in records))

    def test_text_and_blocks_together(self):
        text = self.log(300)
        lines = text.splitlines(keepends=True)
        blocks = self.run_bytes(self.nlsort, "--format", "nlb", input=text).stdout
        cut = lines[0][:-1]
        for mixed, count in ((text + blocks, 600), (blocks + text, 600), (blocks + cut + blocks, 601),
                             (b"ULM\0    " + blocks + text + blocks, 900)):
            result = self.run_bytes(self.nlsort, "--format", "ulm", input=mixed)
            self.assertEqual(len(result.stdout.splitlines()), count, result.stderr)
            self.assertEqual(set(result.stdout.splitlines(keepends=True)) - set(lines), set())

    def test_zstd_around_blocks(self):
        text = self.log(100)
        blocks = self.run_bytes(self.nlsort, "--format", "nlb", input=text).stdout
        path = self.scratch / "a.nlb.zst"
        path.write_bytes(subprocess.run(["zstd", "-c"], input=blocks, capture_output=True, check=True).stdout)
        self.assertEqual(self.run_bytes(self.nlsort, "--format", "ulm", path).stdout, text)

    def test_damage_and_loss_are_told(self):
        def block(first, lost=0):
            rows = [(first * 1000, b"E", [(b"N", first)])]
            return nlb_decoder.encode(rows, b"s" * 16, first, lost, (first - lost) * 1000, (first - 1) * 1000)

        good = [block(0), block(1), block(2), block(5, 2)]
        damaged = good[:]
        damaged[1] = damaged[1][:-1] + bytes([damaged[1][-1] ^ 1])
        result = self.run_bytes(self.nlsort, input=b"".join(damaged))
        self.assertEqual(result.returncode, 1)
        self.assertEqual([int(n) for n in re.findall(rb" N=(\d+)", result.stdout)], [0, 2, 5])
        self.assertIn(f"-: byte {len(good[0])}: block's checksum does not match\n", result.stderr)
        self.assertIn("-: 1 record is missing between 19700101000000.000000 and 19700101000000.000002 "
                      "(dropped by the program: 0)\n", result.stderr)
        self.assertIn("-: 2 records are missing between 19700101000000.000003 and 19700101000000.000004 "
                      "(dropped by the program: 2)\n", result.stderr)

    def test_full_disk_leaves_whole_blocks(self):
        path = self.scratch / "full.nlb"
        limit = 100000

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        text = self.log(6000)
        result = self.run_bytes(self.nlwrite, "--dest", f"file:{path}?zstd=0", "-", input=text,
                                preexec_fn=small_files)
        self.assertEqual(result.returncode, 1)
        self.assertIn("File too large", result.stderr)
        data = path.read_bytes()
        self.assertLessEqual(len(data), limit)
        records = nlb_decoder.records(data)
        self.assertEqual([r.event for r in records if r.event.startswith(b"NetLogger.")], [b"NetLogger.Unrecoverable"])
        written = [dict(r.fields)[b"N"] for r in records if not r.event.startswith(b"NetLogger.")]
        self.assertGreaterEqual(len(written), 1000)
        self.assertEqual(re.findall(rb" N=(\d+)", text)[:len(written)], written)

    def test_syslog_takes_none(self):
        result = self.run_program(self.nlwrite, "--dest", "x-syslog://?format=nlb", "E")
        self.assertEqual(result.returncode, 1)
        self.assertIn("syslog accepts only text; use format=ulm", result.stderr)

    def test_wrong_options(self):
        for option in ("zstd=", "zstd=20", "zstd=-1", "zstd=x"):
            result = self.run_program(self.nlwrite, "--dest", f"file:{self.scratch}/x.nlb?{option}", "E")
            self.assertEqual(result.returncode, 1)
            self.assertIn("option zstd: ", result.stderr)


class Collector(support.Case):
    def serve(self, output):
        self.messages = self.scratch / "messages"
        with open(self.messages, "wb") as messages:
            process = self.start(support.program("netlogd/netlogd"), "--foreground", "--level", "Debug", "--listen",
                                 "x-netlog://127.0.0.1:0", "--output", output, stderr=messages)
        pattern = r"netlogd: listening on x-netlog://127\.0\.0\.1:(\d+)\n"
        said = lambda: self.messages.read_text(errors="replace")
        found = support.wait_until(lambda: process.poll() is None and re.search(pattern, said()), what="netlogd listens")
        self.port = int(found.group(1))
        return process

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):  # the acknowledged part
                pass

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0)

    def rows(self, first, count):
        return [((first + i) * 1000, b"E", [(b"N", first + i), (b"S", b"a b")]) for i in range(count)]

    def test_takes_blocks_beside_text(self):
        output = self.scratch / "all.log"
        process = self.serve(output)
        first, second = self.rows(0, 500), self.rows(600, 100)
        self.send(nlb_decoder.encode(first, b"x" * 16, 0) + nlb_decoder.encode(second, b"x" * 16, 600))
        self.send(b"DATE=20000330112320.000000 HOST=h N=1\n")
        self.stop(process)
        lines = output.read_bytes().splitlines(keepends=True)
        expected = [nlb_decoder.Record(t, b"testhost", b"test", "Usage", e, f).ulm() for t, e, f in first + second]
        self.assertEqual(lines[:600], expected)
        self.assertEqual(lines[600:], [b"DATE=20000330112320.000000 HOST=h N=1\n"])
        self.assertIn("NL.EVNT=Netlogd.Lost", self.messages.read_text())
        self.assertIn("COUNT=100 DROPPED=0", self.messages.read_text())

    def test_records_out_of_order_are_not_lost(self):
        """A gap that is filled within the grace period is no loss. If it is filled later, the loss is withdrawn."""
        output = self.scratch / "all.log"
        process = self.serve(output)
        parts = {first: nlb_decoder.encode(self.rows(first, 10), b"x" * 16, first) for first in (0, 10, 20, 30, 40)}
        for first in 0, 20, 10:
            self.send(parts[first])
        self.send(parts[40])
        support.wait_until(lambda: "NL.EVNT=Netlogd.Lost" in self.messages.read_text())
        self.send(parts[30])
        support.wait_until(lambda: "NL.EVNT=Netlogd.Found" in self.messages.read_text())
        self.stop(process)
        messages = self.messages.read_text()
        self.assertEqual(messages.count("NL.EVNT=Netlogd.Lost"), 1, messages)
        self.assertRegex(messages, r"NL.EVNT=Netlogd.Lost PEER=\S+ COUNT=10 DROPPED=0 FROM=19700101000000.000029 ")
        self.assertRegex(messages, r"NL.EVNT=Netlogd.Found PEER=\S+ COUNT=10 ")
        self.assertRegex(messages, r"NL.EVNT=Netlogd.Stop.* LOST=0 ")
        self.assertEqual(len(output.read_bytes().splitlines()), 50)

    def test_numbers_that_the_program_dropped_close_their_gap(self):
        """A program's announcement of lost records closes the gap. The records count as lost once, whether the
        announcement arrives before or after netlogd's report."""
        for late in False, True:
            with self.subTest(late=late):
                process = self.serve(self.scratch / f"{late}.log")
                for first in 0, 40:
                    self.send(nlb_decoder.encode(self.rows(first, 10), b"x" * 16, first))
                if late:
                    support.wait_until(lambda: "COUNT=30 DROPPED=0" in self.messages.read_text())
                self.send(nlb_decoder.encode(self.rows(30, 10), b"x" * 16, 30, lost=20, lost_from=1, lost_to=2))
                wanted = "Netlogd.Found PEER" if late else "COUNT=20 DROPPED=20"
                support.wait_until(lambda: wanted in self.messages.read_text())
                self.stop(process)
                messages = self.messages.read_text()
                self.assertEqual(messages.count("NL.EVNT=Netlogd.Lost"), 1, messages)
                self.assertEqual(messages.count("NL.EVNT=Netlogd.Found"), 1 if late else 0, messages)
                self.assertRegex(messages, r"NL.EVNT=Netlogd.Stop.* LOST=20 ")
                self.assertEqual(len((self.scratch / f"{late}.log").read_bytes().splitlines()), 30)

    def test_gaps_without_end_are_only_counted(self):
        process = self.serve(self.scratch / "all.log")
        for stream in b"pq":
            self.send(b"".join(nlb_decoder.encode(self.rows(10 * i, 5), bytes([stream]) * 16, 10 * i) for i in range(1000)))
        self.stop(process)
        messages = self.messages.read_text()
        self.assertEqual(messages.count("NL.EVNT=Netlogd.Lost"), 2 * 11, "ten of each client, and that there are more")
        self.assertEqual(messages.count("NOTE=\"further gaps of this client are only counted\""), 2)
        self.assertRegex(messages, r"NL.EVNT=Netlogd.Stop.* LOST=9990 ")

    def test_writes_blocks(self):
        output = self.scratch / "all.nlb"
        process = self.serve(output)
        rows = self.rows(0, 300)
        self.send(nlb_decoder.encode(rows))
        result = self.run_program(support.program("nltools/nlwrite"), "--dest",
                                  f"x-netlog://127.0.0.1:{self.port}", "Done", "A=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stop(process)
        records = nlb_decoder.records(output.read_bytes())
        self.assertEqual([(r.time_ns, r.event, r.fields) for r in records[:-1]], rows)
        self.assertEqual((records[-1].event, records[-1].fields), (b"Done", [(b"A", b"1")]))

    def test_a_damaged_block_costs_only_itself(self):
        output = self.scratch / "all.log"
        process = self.serve(output)
        blocks = [nlb_decoder.encode(self.rows(i * 10, 10), b"y" * 16, i * 10) for i in range(3)]
        self.send(blocks[0] + blocks[1][:50] + blocks[2])
        self.send(blocks[1])
        self.stop(process)
        numbers = [int(n) for n in re.findall(rb" N=(\d+)", output.read_bytes())]
        self.assertEqual(numbers, [*range(10), *range(20, 30), *range(10, 20)])
        self.assertIn("NL.EVNT=Netlogd.Malformed", self.messages.read_text())


if __name__ == "__main__":
    support.main()
