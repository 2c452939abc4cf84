"""The library with scarce memory: it never ends the program, and no accepted event disappears without a report.

scarce_memory.c uses every way to log. For each allocation of the library (malloc and similar functions, mmap, pthread_create),
one run makes this allocation fail, and another run makes it and all later ones fail. Further runs limit the address space."""
import re
import shutil

import collector
import support

COUNTED = ("Write", "Record", "Kind", "Thread", "Classic", "Named.start", "Named.end", "Other.start")


class ScarceMemory(collector.Case):
    def setUp(self):
        super().setUp()
        if "sanitize" in support.CC:
            self.skipTest("the sanitizers have a heap of their own")
        source = (support.SOURCE / "tests" / "program" / "scarce_memory.c").read_text()
        self.program = self.compile_client(source, "-ldl", "-fno-builtin")
        self.nlsort = support.program("nlsort/nlsort")
        self.nlrecover = support.program("nltools/nlrecover")
        self.shm = self.scratch / "shm"

    # ---- the places that can contain events: the logs, the shared memory of a closed log, and a spool ----

    def count(self, paths):
        """Returns the events in logs, and the events that the logs report as lost: in records of text, in headers of blocks."""
        found = lost = 0
        for path in paths:
            if not path.exists() or path.stat().st_size == 0:
                continue
            result = self.run_program(self.nlsort, path)
            self.assertNotIn("malformed", result.stderr)
            found += sum(len(re.findall(rf" NL\.EVNT={name} ", result.stdout)) for name in COUNTED)
            lost += sum(int(n) for n in re.findall(r" NL\.EVNT=NetLogger\.Lost COUNT=(\d+)", result.stdout))
            lost += sum(int(n) for n in re.findall(r": (\d+) records are missing", result.stderr))
        return found, lost

    @staticmethod
    def told(text):
        """Returns the number of events that nl_close reported as lost. nlrecover delivers the waiting events."""
        told = re.search(r"^close: (\d+) events? (lost|not delivered)(.*)", text, re.M)
        if told is None:
            return 0
        some = re.search(r": (\d+) lost ", told.group(3))
        return int(some.group(1)) if some else 0 if "nlrecover delivers" in told.group(3) else int(told.group(1))

    def run_once(self, arguments, name, logs, destinations, lasting=None, end=None):
        """Performs one run. `name` names the failure. The files of `logs` are empty at the start, and those of `lasting` are
        kept. `end` delivers waiting events."""
        before = self.count([lasting]) if lasting else (0, 0)
        if self.shm.exists():
            shutil.rmtree(self.shm)
        self.shm.mkdir()
        for path in logs:
            path.unlink(missing_ok=True)
        environment = {"NETLOGGER_SHM": str(self.shm), "NETLOGGER_CLOCK": "no", "PATH": "/usr/bin:/bin"}
        result = self.run_program(self.program, *arguments, *destinations, env=environment, timeout=120)
        self.assertEqual(result.returncode, 0, f"{name}: {result.stdout}{result.stderr}")
        self.assertRegex(result.stderr, r"\A(netlogger: [^\n]+\n)*\Z", name)
        numbers = {key: int(value) for key, value in re.findall(r"^(\w+) (\d+)$", result.stdout, re.M)}
        if any(self.shm.iterdir()):
            recovered = self.run_program(self.nlrecover, env=environment)
            self.assertIn(recovered.returncode, (0, 1), recovered.stderr)
        if end is not None:
            end()
        found, lost = self.count([*logs, *([lasting] if lasting else [])])
        found, lost = found - before[0], lost - before[1] + self.told(result.stdout)
        self.assertGreaterEqual(found + lost, numbers["logged"], f"{name}: {result.stdout}")
        self.assertLessEqual(found, numbers["logged"] + numbers["failed"], f"{name}: {result.stdout}")
        return numbers, found

    def fail_each(self, step, *scenario, **options):
        """Every step-th allocation fails: alone, and with all later ones."""
        numbers, found = self.run_once(["0", "0"], "nothing fails", *scenario, **options)
        self.assertEqual(numbers["failed"], 0)
        self.assertEqual(found, numbers["logged"])
        self.assertGreater(numbers["allocations"], 30)
        for first in range(1, numbers["allocations"] + 3, step):
            for count in ("1", "1000000"):
                self.run_once([str(first), count], f"allocation {first}, {count}", *scenario, **options)

    def limit(self, sizes, *scenario, **options):
        for size in sizes:
            self.run_once(["limit", str(size)], f"{size} bytes", *scenario, **options)

    def to_files(self, suffix=""):
        logs = [self.scratch / f"log{suffix}", self.scratch / "classic.log"]
        return logs, [f"file:{logs[0]}", f"file:{logs[1]}"]

    # The quick tests use only text, and do not fail every allocation.

    def test_some_allocations_fail(self):
        self.fail_each(support.representative(7, 25), *self.to_files())

    def test_little_address_space(self):
        self.limit(range(0, 8 << 20, 512 << 10), *self.to_files())

    # ---- the functions that read or recover events ----

    def call(self, *arguments):
        environment = {"NETLOGGER_SHM": str(self.shm), "NETLOGGER_CLOCK": "no", "PATH": "/usr/bin:/bin"}
        return self.run_program(self.program, *arguments, env=environment, timeout=120)

    def read_with(self, source, first, count):
        result = self.call("read", str(first), str(count), source)
        self.assertEqual((result.returncode, result.stderr), (0, ""), f"allocation {first}, {count}: {result.stdout}")
        allocations, records, end = re.fullmatch(r"allocations (\d+)\nrecords (\d+)\n(.*)\n", result.stdout).groups()
        return int(allocations), int(records), end

    def test_reading(self):
        """Each allocation of a reader and a filter fails: either it reports the failure, or all records are read."""
        self.shm.mkdir()
        for suffix, options in (("ulm", ""), ("bp", "&format=bp"), ("nlb", "&format=nlb"), ("zstd.nlb", "&format=nlb&zstd=3")):
            source = self.scratch / f"source.{suffix}"
            self.assertEqual(self.call("0", "0", f"file:{source}?append=no{options}").returncode, 0)
            allocations, all_records, end = self.read_with(source, 0, 0)
            self.assertEqual(end, "complete")
            self.assertGreater(all_records, 20)
            self.assertGreater(allocations, 20)
            failures = 0
            tried = range(1, allocations + 1, support.representative(1, 3))
            for first in tried:
                for count in 1, 1000000:
                    with self.subTest(suffix=suffix, first=first, count=count):
                        _, records, end = self.read_with(source, first, count)
                        self.assertLessEqual(records, all_records)
                        if end != "complete":
                            self.assertRegex(end, "^failed: .")
                            failures += 1
                        else:
                            self.assertEqual(records, all_records)
            self.assertGreater(failures, len(tried) // 2)

    def recover_with(self, first, count, log):
        result = self.call("recover", str(first), str(count))
        self.assertEqual((result.returncode, result.stderr), (0, ""), f"allocation {first}, {count}: {result.stdout}")
        return re.fullmatch(r"allocations (\d+)\n(.*)\n", result.stdout).groups()

    def test_activation(self):
        """If memory runs out while a log applies the activation file, the log applies the file later."""
        for first in range(1, 31):
            commands, log = self.scratch / "commands", self.scratch / "log"
            commands.unlink(missing_ok=True)
            if self.shm.exists():
                shutil.rmtree(self.shm)
            self.shm.mkdir()
            result = self.call("activation", str(first), "1", f"file:{log}?activation={commands}", str(commands))
            self.assertEqual((result.returncode, result.stderr), (0, ""), f"allocation {first}: {result.stdout}")
            self.assertRegex(result.stdout, r"\Aallocations \d+\napplied\n\Z", f"allocation {first}")
            if int(re.search(r"\d+", result.stdout).group()) < first:
                break

    def test_recovery(self):
        """Each allocation of nl_recover fails: a later call recovers the rest, and no event twice."""
        self.shm.mkdir()
        for suffix in "log", "nlb":
            log = self.scratch / f"killed.{suffix}"
            self.assertEqual(self.call("kill", f"file:{log}").returncode, -9)
            first, allocations = 1, int(self.recover_with(0, 0, log)[0])
            while first <= allocations:
                for count in 1, 1000000:
                    log.unlink(missing_ok=True)
                    self.assertEqual(self.call("kill", f"file:{log}").returncode, -9)
                    made, end = self.recover_with(first, count, log)
                    allocations = max(allocations, int(made) if count == 1 else 0)
                    if end != "complete":
                        self.assertRegex(end, "^failed: .")
                    self.assertEqual(self.recover_with(0, 0, log)[1], "complete")
                    self.assertEqual(list(self.shm.iterdir()), [], f"{suffix}, allocation {first}, {count}: {end}")
                    found, lost = self.count([log])
                    self.assertEqual((found, lost), (500, 0), f"{suffix}, allocation {first}, {count}: {end}")
                first += support.representative(1, 6)
            self.assertGreater(allocations, 10)

    # ---- the whole library ----

    def test_nothing_aborts(self):
        library = support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so"
        wanted = self.run_program("nm", "--dynamic", "--undefined-only", library).stdout
        self.assertIn(" malloc@", wanted)
        self.assertFalse(re.search(r" (abort|__assert_fail)@", wanted), "the library refers to abort")
        java = support.BUILD / "bindings" / "java" / ".libs" / "libnetlogger_jni.so"
        if java.exists():
            wanted = self.run_program("nm", "--dynamic", "--undefined-only", java).stdout
            self.assertIn(" malloc@", wanted)
            self.assertFalse(re.search(r" (abort|__assert_fail)@", wanted), "the Java binding refers to abort")

    @support.long
    def test_each_allocation_fails_text(self):
        self.fail_each(1, *self.to_files())

    @support.long
    def test_each_allocation_fails_blocks(self):
        self.fail_each(1, *self.to_files(".nlb"))

    @support.long
    def test_each_allocation_fails_collector(self):
        classic = self.scratch / "classic.log"
        self.serve()
        self.fail_each(2, [classic], [f"x-netlog://127.0.0.1:{self.port}?format=nlb", f"file:{classic}"], lasting=self.output)

    @support.long
    def test_each_allocation_fails_tls(self):
        """A TLS connection makes thousands of allocations, most of them in OpenSSL."""
        authority = collector.Authority(self, "authority")
        classic = self.scratch / "classic.log"
        self.serve(listen=f"x-netlogs://127.0.0.1:0?cert={authority.certify('server')}")
        url = f"x-netlogs://127.0.0.1:{self.port}?ca={authority.ca}"
        self.fail_each(101, [classic], [url, f"file:{classic}"], lasting=self.output)

    @support.long
    def test_each_allocation_fails_spool(self):
        """The collector is away: all events wait on disk until the next program delivers them."""
        port = support.free_port()
        spool = self.scratch / "spool"
        classic = self.scratch / "classic.log"
        url = f"x-netlog://127.0.0.1:{port}?spool={spool}&timeout=5"

        def deliver():
            netlogd = self.serve(listen=f"x-netlog://127.0.0.1:{port}")
            result = self.run_program(support.program("nltools/nlwrite"), "--dest", url, "Delivered", env={
                "NETLOGGER_CLOCK": "no", "PATH": "/usr/bin:/bin"})
            self.assertEqual(result.returncode, 0, result.stderr)
            netlogd.terminate()
            self.assertEqual(netlogd.wait(timeout=60), 0)

        self.fail_each(5, [classic], [url, f"file:{classic}"], lasting=self.output, end=deliver)

    @support.long
    def test_address_space_in_steps(self):
        self.limit(range(0, 8 << 20, 64 << 10), *self.to_files())
        self.limit(range(0, 8 << 20, 64 << 10), *self.to_files(".nlb"))


if __name__ == "__main__":
    support.main()
