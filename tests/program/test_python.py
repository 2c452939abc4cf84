"""The Python binding: every type, errors, spans, logging, threads, forks, readers; and its installation by pip."""
import asyncio
import datetime
import logging
import math
import os
import pathlib
import pickle
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import types
import unittest
import unittest.mock

import support

LIB = support.BUILD / "bindings" / "python" / "lib"
if (support.BUILD / "bindings" / "python" / "built").exists():
    sys.path.insert(0, str(LIB))
    import netlogger
else:
    netlogger = None


class Case(support.Case):
    def setUp(self):
        if netlogger is None:
            self.skipTest("the library in Python is not built here: configure says why")
        super().setUp()
        self.path = self.scratch / "a.log"

    def lines(self):
        """Returns the log's lines from NL.EVNT on."""
        return [line.split(" NL.EVNT=", 1)[1] for line in self.path.read_text(errors="surrogateescape").splitlines()]

    def script(self, text, *arguments, code=0, **options):
        """Runs a program in a separate interpreter. Returns its output."""
        environment = dict(os.environ, PYTHONPATH=str(LIB), **options)
        result = self.run_program(sys.executable, "-X", "faulthandler", "-c", text, *arguments, env=environment)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout


class Types(Case):
    def logged(self, value):
        with netlogger.open("p", self.path) as log:
            self.assertTrue(log.event("E", V=value))
        text = self.lines()[-1].split("V=", 1)[1]
        self.path.unlink()
        return text

    def test_every_type(self):
        class Number:
            def __index__(self):
                return 17

        for value, expected in (
            (0, "0"), (-1, "-1"), (2**63 - 1, "9223372036854775807"), (-(2**63), "-9223372036854775808"),
            (2**63, "9223372036854775808"), (2**64 - 1, "18446744073709551615"), (2**64, "18446744073709551616"),
            (-(2**63) - 1, "-9223372036854775809"), (10**100, "1" + "0" * 100), (True, "true"), (False, "false"),
            (0.1, "0.1"), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (-0.0, "-0"), (1e300, "1e+300"),
            ("", '""'), ("a b", '"a b"'), ('"', r'"\""'), ("a\nb\tc\r", r'"a\nb\tc\r"'), ("=\\", r'"=\\"'), ("ü世🌍", "ü世🌍"),
            ("\0", r'"\x00"'), (b"a\xff\0", '"a\udcff\\x00"'), (bytearray(b"xy"), "xy"), (memoryview(b"xy"), "xy"),
            ("\udcff", "\udcff"), (None, '""'), (pathlib.Path("/a b"), '"/a b"'), (Number(), "17"),
            (netlogger.Level.ERROR, "3"), ([1, 2], '"[1, 2]"'),
        ):
            with self.subTest(value=value):
                self.assertEqual(self.logged(value), expected)
        self.assertEqual(self.logged("\ud800").encode(errors="surrogateescape"), b'"\xed\xa0\\x80"')  # a surrogate without its partner

    def test_ints_that_python_does_not_print(self):
        self.assertEqual(self.logged(16**5000), "0x1" + "0" * 5000)

    def test_subclasses(self):
        class Integer(int):
            def __str__(self):
                return "text"

        class Text(str):
            pass

        class Real(float):
            pass

        self.assertEqual(self.logged(Integer(5)), "5")
        self.assertEqual(self.logged(Integer(2**70)), str(2**70))
        self.assertEqual(self.logged(Text("x")), "x")
        self.assertEqual(self.logged(Real(0.5)), "0.5")

    def test_long_values(self):
        log = netlogger.open("p", self.path)
        self.assertTrue(log.event("Long", V="x" * 131072))
        self.assertTrue(log.event("Cut", V="y" * 200000))
        self.assertFalse(log.event("Lost", {f"F{i}": "z" * 100000 for i in range(20)}))
        self.assertFalse(log.close())
        lines = self.lines()
        self.assertEqual([line.split("=")[-1] for line in lines[:2]], ["x" * 131072, "y" * 131072])
        self.assertTrue(lines[2].startswith("NetLogger.Lost COUNT=1 "), lines[2][:100])

    def test_fields_of_all_kinds(self):
        with netlogger.open("p", self.path) as log:
            log.event("None")
            log.event("Both", {"A.B": 1}, C=2)
            log.event("Named", self=1, event=2, fields=3, level=4)
            log.event("Cleaned", {"a b=": 1, "": 2, "ü": 3})
            log.event("Many", {f"F{i}": i for i in range(100)})
            log.event("Mapping", os.environ.__class__(
                {"A": "1"}, lambda k: k, lambda k: k, lambda v: v, lambda v: v))
            log.event("naïve \"event\"", X=1)
        self.assertEqual(self.lines(), [
            "None", "Both A.B=1 C=2", "Named self=1 event=2 fields=3 level=4", "Cleaned a_b_=1 _=2 __=3",
            "Many " + " ".join(f"F{i}={i}" for i in range(100)), "Mapping A=1", '"naïve \\"event\\"" X=1'])

    def test_names_made_as_it_goes(self):
        with netlogger.open("p", self.path.with_suffix(".nlb")) as log:
            for i in range(20000):
                self.assertTrue(log.event(f"E{i % 7000}", {f"F{i % 7000}": i}))
        with netlogger.read(self.path.with_suffix(".nlb")) as reader:
            for i, record in enumerate(reader):
                self.assertEqual((record.event, dict(record)), (f"E{i % 7000}", {f"F{i % 7000}": i}))
        self.assertEqual(i, 19999)


class Logs(Case):
    def test_levels(self):
        with netlogger.open("p", self.path) as log:
            for level in netlogger.Level:
                getattr(log, level.name.lower())("Method")
                log.log(level, "Log")
            log.set_level(netlogger.Level.ERROR)
            self.assertFalse(log.event("Off"))
            self.assertTrue(log.error("On"))
            self.assertTrue(log.is_on(netlogger.Level.ALERT))
            self.assertFalse(log.is_on(netlogger.Level.USAGE))
        names = [line.split(" LVL=")[1].split()[0] for line in self.path.read_text().splitlines()]
        self.assertEqual(names, [level.name.capitalize() for level in netlogger.Level for _ in "12"] + ["Error"])
        self.assertEqual(netlogger.Level.named("warning"), netlogger.Level.WARNING)
        self.assertRaises(ValueError, netlogger.Level.named, "loud")

    def test_fields_as_text(self):
        with netlogger.open("p", self.path) as log:
            log.write("WriteData", "SEND.SZ=" + str(49332))
            log.write("Quoted", 'A="x \\" y" B=two words C=')
            log.write("Percent", "A=100%")
            log.write("Format", "A=%d B=%s C=%5.2f%% D=%*d E=x", 7, "a b=c\n", 2.5, 4, 1)
            log.write("Nothing")
            log.write("Error", "A=1", level=netlogger.Level.ERROR)
            for text in ("just words", "=1"):
                self.assertTrue(log.write("Text", text))
            for wrong in (("%s", "A=1"), ("A=%n", 1), ("A=%d", "x"), ("A=%d B=%d", 1), ("A=%d", 1, 2)):
                self.assertTrue(log.write("Wrong", *wrong))
        self.assertEqual(self.lines(), [
            "WriteData SEND.SZ=49332", 'Quoted A="x \\" y" B="two words" C=""', "Percent A=100%",
            'Format A=7 B="a b=c\\n" C=" 2.50%" D="   1" E=x', "Nothing", "Error A=1", 'Text MSG="just words"', 'Text MSG="=1"',
            "Wrong MSG=%s VALUES=\"('A=1',)\"", 'Wrong MSG="A=%n" VALUES=(1,)', "Wrong MSG=\"A=%d\" VALUES=('x',)",
            'Wrong MSG="A=%d B=%d" VALUES=(1,)', 'Wrong MSG="A=%d" VALUES="(1, 2)"'])

    def test_wrong_calls(self):
        with netlogger.open("p", self.path) as log:
            for wrong in (lambda: log.event(), lambda: log.event(1), lambda: log.event("E", {1: 2}),
                          lambda: log.event("E", 5), lambda: log.event("E", {}, {}), lambda: log.log("Error", "E"),
                          lambda: log.log(), lambda: log.control(5), lambda: log.event(b"E")):
                self.assertRaises(TypeError, wrong)
            for wrong in (lambda: log.log(0, "E"), lambda: log.log(11, "E"), lambda: log.set_level(99),
                          lambda: log.switch("a b", True), lambda: log.send_to("")):
                self.assertRaises(ValueError, wrong)

            class Bad:
                def __str__(self):
                    raise OSError("no words")

            self.assertTrue(log.event("E", A=1, B=Bad(), C=2))
        self.assertEqual(self.lines(), ['E A=1 B="<unprintable Bad>" C=2'])

    def test_a_value_that_closes_the_log(self):
        log = netlogger.open("p", self.path)
        fields = {}

        class Closes:
            def __str__(self):
                fields.clear()
                log.close()
                return "x"

        fields.update(A="text" * 100, B=Closes(), C="text" * 100)
        self.assertFalse(log.event("E", fields))
        self.assertTrue(log.closed)

    def test_errors_are_the_librarys_words(self):
        with self.assertRaisesRegex(netlogger.Error, "^.*no/such/a.log: No such file or directory"):
            netlogger.open("p", self.scratch / "no/such/a.log")
        with self.assertRaises(netlogger.Error):
            netlogger.open("p", "no-scheme://x")
        self.assertRaises(TypeError, netlogger.open)
        self.assertRaises(ValueError, netlogger.open, "p\0q", self.path)
        self.assertRaises(TypeError, netlogger.open, "p", 5)
        log = netlogger.open("p", "x-netlog://127.0.0.1:1?quiet=yes")
        self.assertTrue(log.event("E"))
        with self.assertRaisesRegex(netlogger.Error, "127.0.0.1:1: Connection refused"):
            log.flush()
        self.assertFalse(log.close())
        log = netlogger.open("p", "file:///dev/full")
        log.event("E")
        with self.assertRaisesRegex(netlogger.Error, "No space left"):
            log.flush()
        self.assertFalse(log.close())
        self.assertTrue(log.closed)
        self.assertTrue(log.close())
        with netlogger.open("p", self.path) as log, self.assertRaisesRegex(netlogger.Error, "nonsense"):
            log.control("nonsense")

    def test_closed(self):
        log = netlogger.open("p", self.path)
        log.close()
        log.close()
        for call in (log.flush, lambda: log.control(""), lambda: log.set_level(1)):
            self.assertRaisesRegex(ValueError, "closed", call)
        self.assertFalse(log.event("E"))
        self.assertFalse(log.write("E", "A=1"))
        self.assertFalse(log.is_on(1))

    def test_switched_off(self):
        self.assertEqual(self.script(
            "import netlogger\n"
            "with netlogger.open('p') as log: print(log.event('E', A=1), log.write('E', 'A=%d', 1), log.is_on(1))\n",
            NETLOGGER_DEST="/nowhere/at/all", NETLOGGER_ON="0"), "False False False\n")

    def test_switching_events(self):
        with netlogger.open("p", self.path) as log:
            log.switch("Wri*", False)
            self.assertFalse(log.event("Write", A=1))
            log.switch("Wri*", True)
            self.assertTrue(log.event("Write", A=1))
            log.flush()
            log.send_to(f"file://{self.scratch}/b.log")
            log.event("There")
        self.assertEqual(self.lines()[0], "Write A=1")
        self.assertIn("NL.EVNT=There", (self.scratch / "b.log").read_text())

    def test_a_log_that_is_forgotten_is_closed(self):
        log = netlogger.open("p", self.path)
        log.event("E")
        del log
        self.assertEqual(self.lines(), ["E"])
        self.script("import netlogger, sys\nlog = netlogger.open('p', sys.argv[1])\nlog.event('AtExit')\n", self.path)
        self.assertEqual(self.lines(), ["E", "AtExit"])


    def test_no_memory_for_an_event(self):
        """Logging raises no exception if the library has no memory for the names of an event."""
        library = self.scratch / "no_memory.so"
        (self.scratch / "no_memory.c").write_text(
            "#include <stddef.h>\nvoid *nl_event_kind_new(int level, ...) { (void)level; return NULL; }\n")
        result = self.run_compiler(*support.CC.split(), "-shared", "-fPIC", "-o", library, self.scratch / "no_memory.c")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = "import netlogger, sys\nwith netlogger.open('p', sys.argv[1]) as log:\n    print(log.event('E', A=1), log.event('F'))\n"
        self.assertEqual(self.script(text, self.path, LD_PRELOAD=str(library)), "False False\n")


class Spans(Case):
    def test_spans(self):
        with netlogger.open("p", self.path.with_suffix(".nlb")) as log:
            with log.span("Read", **{"BLOCK.ID": 7}) as span:
                span.add(BYTES=10)
            with self.assertRaises(KeyError), log.span("Failing", level=netlogger.Level.DEBUG):
                raise KeyError("x")

            @log.span("Parse", N=1)
            def parse(n):
                """Words."""
                return n + 1 if n > 2 else parse(n + 1)

            @log.span("Wait")
            async def wait():
                await asyncio.sleep(0)
                return 5

            self.assertEqual((parse(2), parse.__doc__, asyncio.run(wait())), (4, "Words.", 5))

            async def inside():
                async with log.span("Async") as span:
                    span.status = 3

            asyncio.run(inside())
        records = list(netlogger.read(self.path.with_suffix(".nlb")))
        ends = [record for record in records if record.event.endswith(".end")]
        self.assertEqual([r.event for r in records], [
            "Read.start", "Read.end", "Failing.start", "Failing.end", "Parse.start", "Parse.start", "Parse.end",
            "Parse.end", "Wait.start", "Wait.end", "Async.start", "Async.end"])
        self.assertEqual(list(records[0]), ["TRACE.ID", "SPAN.ID", "BLOCK.ID"])
        self.assertEqual(list(ends[0]), ["TRACE.ID", "SPAN.ID", "STATUS", "BYTES"])
        self.assertEqual([r["STATUS"] for r in ends], [0, -1, 0, 0, 0, 3])
        self.assertEqual((ends[1]["ERROR"], ends[1].level), ("KeyError", netlogger.Level.DEBUG))
        outer, inner = records[4:6]  # parse calls itself
        self.assertEqual((inner["PARENT.ID"], inner["TRACE.ID"]), (outer["SPAN.ID"], outer["TRACE.ID"]))
        self.assertEqual(len({r["SPAN.ID"] for r in records}), 6)

    def numbered(self):
        lines = [re.sub(r".* NL\.EVNT=", "", line) for line in self.path.read_text().splitlines()]
        return support.numbered_ids(lines)

    def test_contexts(self):
        remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        with netlogger.open("p", self.path) as log:
            with netlogger.Context(remote) as context:
                self.assertEqual(context.traceparent, remote)
                with log.span("Outer", {"": None, "A B": 1}) as outer:
                    log.event("Inside")
                    self.assertEqual(netlogger.Context.current().traceparent, outer.context.traceparent)
                    apart = log.span("Apart", parent=netlogger.Context()).begin()
                    elsewhere = log.span("Elsewhere").begin()

                    def work():
                        log.event("Thread")
                        with outer.context:
                            log.event("Attached")
                        elsewhere.end()
                        elsewhere.end()

                    thread = threading.Thread(target=work)
                    thread.start()
                    thread.join()
                    apart.event("OfApart", N=1)
                    apart.end()
            log.event("Outside")
            with netlogger.Context(remote[:-1] + "0"), log.span("Unsampled") as unsampled:
                log.event("InUnsampled")
                self.assertNotEqual(unsampled.context.traceparent, unsampled.context.traceparent)
                self.assertEqual(unsampled.context.traceparent[:36], remote[:36])
        self.assertEqual(self.numbered(), [
            "Outer.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 _=\"\" A_B=1",
            "Inside TRACE.ID=T1 SPAN.ID=S2",
            "Apart.start TRACE.ID=T2 SPAN.ID=S3",
            "Elsewhere.start PARENT.ID=S2 TRACE.ID=T1 SPAN.ID=S4",
            "Thread",
            "Attached TRACE.ID=T1 SPAN.ID=S2",
            "Elsewhere.end PARENT.ID=S2 TRACE.ID=T1 SPAN.ID=S4 STATUS=0",
            "OfApart N=1 TRACE.ID=T2 SPAN.ID=S3",
            "Apart.end TRACE.ID=T2 SPAN.ID=S3 STATUS=0",
            "Outer.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 STATUS=0",
            "Outside",
            "InUnsampled",
        ])

    def test_threads_share_a_context(self):
        failed = []
        with netlogger.open("p", self.path) as log:
            outer = log.span("Outer").begin()
            entered = threading.Barrier(2)
            left = threading.Event()

            def work(first):
                try:
                    with outer.context:
                        entered.wait(10)
                        if not first:
                            left.wait(10)
                        with log.span("Inner"), outer.context, outer.context:
                            log.event("Inside")
                    log.event("After")
                except Exception as error:
                    failed.append(error)
                left.set()

            threads = [threading.Thread(target=work, args=(n == 0,)) for n in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            outer.end()
        self.assertEqual(failed, [])
        inside = ["Inner.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S{0}", "Inside TRACE.ID=T1 SPAN.ID=S1",
                  "Inner.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S{0} STATUS=0"]
        lines = self.numbered()
        self.assertEqual([line for line in lines if line != "After"], [
            "Outer.start TRACE.ID=T1 SPAN.ID=S1", *[line.format(n) for n in (2, 3) for line in inside],
            "Outer.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0"])
        self.assertEqual(lines.count("After"), 2)

    def test_tasks_have_their_own_spans(self):
        async def handle(log, n, turn):
            async with log.span("Request", N=n) as request:
                await turn.wait()
                async with log.span("Query", N=n):
                    await asyncio.sleep(0)
                with log.span("Parse", N=n):
                    log.event("Parsed", N=n)
                    with log.span("Token", N=n):
                        pass
                request.event("Answered", N=n)

        async def both(log):
            turn = asyncio.Event()
            tasks = [asyncio.create_task(handle(log, n, turn)) for n in range(2)]
            await asyncio.sleep(0)
            turn.set()
            await asyncio.gather(*tasks)

        with netlogger.open("p", self.path) as log:
            asyncio.run(both(log))
        records = list(netlogger.read(self.path))
        for n in range(2):
            mine = {r.event: r for r in records if r.get("N") == str(n)}
            span = mine["Request.start"]["SPAN.ID"]
            self.assertEqual(mine["Query.start"]["PARENT.ID"], span)
            self.assertEqual(mine["Parse.start"]["PARENT.ID"], span)
            self.assertEqual(mine["Token.start"]["PARENT.ID"], mine["Parse.start"]["SPAN.ID"])
            self.assertEqual(mine["Parsed"]["SPAN.ID"], mine["Parse.start"]["SPAN.ID"])
            self.assertEqual(mine["Answered"]["SPAN.ID"], span)

    def test_environment_and_tracestate(self):
        value = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        program = "import netlogger\nprint(netlogger.Context.from_environment().traceparent)\n"
        self.assertEqual(self.script(program, TRACEPARENT=value), value + "\n")
        self.assertEqual(self.script(program, TRACEPARENT="00-"), "\n")
        self.assertEqual(netlogger.tracestate_join("a=1 , b=2", "", "a=3,c=4"), "a=1,b=2,c=4")
        self.assertEqual(netlogger.tracestate_join("a=1", "B=2", "c=3"), "")
        self.assertFalse(netlogger.Context("00-zz"))
        self.assertTrue(netlogger.Context(value))
        with self.assertRaises(TypeError):
            netlogger.tracestate_join(1)

    def test_a_span_of_a_closed_log(self):
        log = netlogger.open("p", self.path)
        span = log.span("Span").begin()
        log.close()
        span.end()
        with log.span("Closed") as closed:
            self.assertEqual(closed.context.traceparent, "")
        with self.assertRaises(TypeError), netlogger.open("p", self.path) as other:
            other.span("Name", {1: 2}).begin()


class Handlers(Case):
    def setUp(self):
        super().setUp()
        self.logger = logging.Logger("disk.reader")

    def test_records_of_logging(self):
        log = netlogger.open("p", self.path)
        handler = netlogger.Handler(log)
        self.logger.addHandler(handler)
        self.logger.info("read %d %s", 7, "blocks", extra={"BLOCKS": 7})
        for level in (logging.DEBUG, logging.WARNING, logging.ERROR, logging.CRITICAL):
            self.logger.log(level, "m", extra={"event": "Named"})
        try:
            raise KeyError("here")
        except KeyError:
            self.logger.exception("bad")
        handler.flush()
        handler.close()
        self.assertTrue(log.event("StillOpen"))
        log.close()
        lines = self.lines()
        self.assertEqual(lines[0], 'disk.reader MSG="read 7 blocks" BLOCKS=7')
        self.assertEqual(lines[1:5], ["Named MSG=m"] * 4)
        self.assertRegex(lines[5], r'^disk\.reader MSG=bad EXC="Traceback .*\\n.*KeyError: .here.')
        levels = [line.split(" LVL=")[1].split()[0] for line in self.path.read_text().splitlines()]
        self.assertEqual(levels[:6], ["Usage", "Debug", "Warning", "Error", "Alert", "Error"])

    def test_a_log_of_its_own(self):
        handler = netlogger.Handler(str(self.path), "name")
        self.logger.addHandler(handler)
        self.logger.warning("words")
        handler.close()
        handler.close()
        self.assertIn(" PROG=name LVL=Warning NL.EVNT=disk.reader MSG=words\n", self.path.read_text())


class Many(Case):
    THREADS, EVENTS = 8, 5000

    def test_threads(self):
        path = self.path.with_suffix(".nlb")
        with netlogger.open("p", f"file://{path}?policy=block&block=60&ring=64k") as log:
            def write(thread):
                for i in range(self.EVENTS):
                    log.event("E", T=thread, N=i, TEXT="x" * (i % 50))

            threads = [threading.Thread(target=write, args=(i,)) for i in range(self.THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = [[] for _ in range(self.THREADS)]
        for record in netlogger.read(path):
            found[record["T"]].append(record["N"])
        self.assertEqual(found, [list(range(self.EVENTS))] * self.THREADS)

    def test_closing_while_others_log(self):
        for _ in range(20):
            log = netlogger.open("p", f"file://{self.path}?ring=64k")
            refused = []

            def write():
                while not log.closed:
                    log.event("E", TEXT="x" * 1000)
                refused.append(not log.event("E"))

            threads = [threading.Thread(target=write) for _ in range(3)]
            for thread in threads:
                thread.start()
            log.close()
            for thread in threads:
                thread.join()
            self.assertEqual(refused, [True] * 3)
            self.path.unlink()

    def test_others_run_while_one_waits_for_room(self):
        fifo = self.scratch / "fifo"
        os.mkfifo(fifo)
        said = self.script("""
import netlogger, os, sys, threading
end = os.open(sys.argv[1], os.O_RDWR)  # no reader: the ring becomes full
log = netlogger.open("p", f"file://{sys.argv[1]}?policy=block&block=300&ring=64k")
def fill():
    while True:
        log.event("E", TEXT="x" * 1000)
thread = threading.Thread(target=fill, daemon=True)
thread.start()
while not os.path.exists(f"/proc/self/task/{thread.native_id}"):
    pass
count = 0
while True:  # this thread continues until the other thread sleeps in the library
    count += 1
    if count > 100000 and open(f"/proc/self/task/{thread.native_id}/stat").read().rsplit(") ")[1][0] == "S":
        break
print("went on", flush=True)
os._exit(0)
""", fifo)
        self.assertEqual(said, "went on\n")

    def test_fork(self):
        self.script("""
import netlogger, os, sys
log = netlogger.open("p", sys.argv[1])
log.event("Before", N=0)
for i in range(5):
    if os.fork() == 0:
        log.event("Child", N=i)
        log.close()
        os._exit(0)
for i in range(5):
    assert os.wait()[1] == 0
log.event("After", N=0)
log.close()
""", self.path)
        self.assertEqual(sorted(self.lines()), ["After N=0", "Before N=0"] + [f"Child N={i}" for i in range(5)])

    def test_multiprocessing(self):
        program = self.scratch / "program.py"
        program.write_text("""
import multiprocessing, netlogger, sys

log = None

def work(n):
    global log
    if log is None:
        log = netlogger.open("p", sys.argv[1])
    log.event("Work", N=n)
    return n

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[2])
    if sys.argv[2] == "fork":
        log = netlogger.open("p", sys.argv[1])
    with multiprocessing.Pool(3) as pool:
        assert pool.map(work, range(300)) == list(range(300))
        pool.close()
        pool.join()
    processes = [multiprocessing.Process(target=work, args=(300 + i,)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
""")
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                result = self.run_program(sys.executable, program, self.path, method,
                                          env=dict(os.environ, PYTHONPATH=str(LIB)))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(sorted(int(line.split("N=")[1]) for line in self.lines()), list(range(303)))
                self.path.unlink()

    def test_killed(self):
        recover = support.program("nltools/nlrecover")
        self.script("import netlogger, os, sys\nlog = netlogger.open('p', sys.argv[1])\n"
                    "for i in range(1000): log.event('E', N=i)\nos.kill(os.getpid(), 9)\n", self.path,
                    code=-signal.SIGKILL)
        self.run_program(recover)
        self.assertEqual(self.lines(), [f"E N={i}" for i in range(1000)])


class Readers(Case):
    VALUES = dict(I=-5, U=2**64 - 1, F=0.1, B=True, S='a "b"\n', E="", Y=b"\xff\0", H="x" * 100000, BIG=2**80)

    def write(self, path):
        with netlogger.open("prog", path) as log:
            log.event("Types", self.VALUES)
            for i in range(10):
                log.warning("Count", N=i)

    def test_round_trip(self):
        for suffix in (".nlb", ".log"):
            path = self.path.with_suffix(suffix)
            self.write(path)
            with netlogger.read(path, numbers=suffix == ".log") as reader:
                records = list(reader)
                self.assertEqual(list(reader), [])
                self.assertEqual({**reader.stats(), "bytes": 0}, {
                    "records": 11, "malformed": 0, "unterminated": 0, "lost": 0, "repeated": 0, "bytes": 0})
            self.assertTrue(reader.closed)
            self.assertRaisesRegex(ValueError, "closed", next, reader)
            first = records[0]
            expected = dict(self.VALUES, Y="\udcff\0", BIG=str(2**80))
            if suffix == ".log":  # numbers beyond 64 bits become floats, if numbers are requested
                expected.update(U=float(2**64), BIG=float(2**80), B="true")
            self.assertEqual(dict(first), expected)
            self.assertEqual((first.event, first.prog, first.level), ("Types", "prog", netlogger.Level.USAGE))
            self.assertEqual((first["NL.EVNT"], first["LVL"], first["PROG"]), ("Types", "Usage", "prog"))
            self.assertEqual(first["DATE"], first.time_ns)
            self.assertRaises(KeyError, lambda: first["NONE"])
            self.assertNotIn("PROG", first)
            self.assertAlmostEqual(first.time.timestamp(), first.time_ns / 1e9, places=5)
            self.assertEqual([r["N"] for r in records[1:]], list(range(10)))
            copy = pickle.loads(pickle.dumps(first))
            self.assertEqual((copy, copy.event, copy.time_ns), (first, "Types", first.time_ns))
            self.assertIn("Types", repr(first))

    def test_text_is_text(self):
        self.write(self.path)
        self.assertEqual(next(netlogger.read(self.path))["I"], "-5")

    def test_choosing(self):
        self.write(self.path)
        self.assertEqual([r["N"] for r in netlogger.read(self.path, 'NL.EVNT == "Count" && N >= 8')], ["8", "9"])
        times = [r.time_ns for r in netlogger.read(self.path)]
        self.assertEqual(list(netlogger.read(self.path, since=times[-1] / 1e9 + 5)), [])
        self.assertEqual(len(list(netlogger.read(self.path, "N == 3", since=times[0] / 1e9 - 5))), 1)
        self.assertRaisesRegex(ValueError, "column", netlogger.read, self.path, "&&")

    def test_names_that_repeat_and_what_is_absent(self):
        self.path.write_text("DATE=20260101000000 NL.EVNT=E A=1 B=2 A=3\nno line\nDATE=20260101000001.5 X=1\nDATE=2026")
        with netlogger.read(self.path) as reader:
            first, second = list(reader)
            self.assertEqual((dict(first), first.fields), ({"A": "1", "B": "2"}, (("A", "1"), ("B", "2"), ("A", "3"))))
            self.assertEqual((second.event, second.level, second.host, second.level_name), (None, None, None, None))
            self.assertEqual(reader.stats()["malformed"], 2)

    def test_records_go_on(self):
        self.path.write_text("DATE=20200101000000.000000 HOST=far PROG=other LVL=Error NL.EVNT=E A=1 B=x A=3\n")
        second = self.scratch / "b.log"
        with netlogger.open("p", second) as log:
            for record in netlogger.read(self.path):
                self.assertTrue(log.write_record(record))
            made = netlogger.Record(N=1.5)
            made.event, made.level = "Made", netlogger.Level.DEBUG
            log.write_record(made)
            self.assertRaises(TypeError, log.write_record, netlogger.Record({1: 2}))
        lines = second.read_text().splitlines()
        self.assertEqual(lines[0], self.path.read_text().strip())
        self.assertIn("PROG=p LVL=Debug NL.EVNT=Made N=1.5", lines[1])

    def test_errors(self):
        with self.assertRaisesRegex(netlogger.Error, "No such file"):
            netlogger.read(self.scratch / "none")
        self.assertRaises(TypeError, netlogger.read, 5)
        with self.assertRaises(netlogger.Error):
            list(netlogger.read(self.scratch))  # a folder

    def test_hostile_input(self):
        self.write(self.path.with_suffix(".nlb"))
        good = self.path.with_suffix(".nlb").read_bytes()
        for size in range(0, len(good), 997):
            for bad in (good[:size], good[:size] + b"\xff" * 50 + good[size + 50:]):
                self.path.write_bytes(bad)
                for record in netlogger.read(self.path):
                    self.assertIsInstance(record.fields, tuple)

    def test_following(self):
        self.path.write_text("DATE=20260101000000 NL.EVNT=E N=0\n")
        with netlogger.read(self.path, follow=True) as reader:
            self.assertEqual(reader.read()["N"], "0")
            self.assertIsNone(reader.read(timeout=0))
            self.assertIsNone(reader.read(timeout=0.05))
            with self.path.open("a") as out:
                out.write("DATE=20260101000001 NL.EVNT=E N=1\n")
            self.assertEqual(next(reader)["N"], "1")
            self.assertRaises(ValueError, reader.read, timeout=-1)

    def test_one_thread_at_a_time(self):
        self.path.write_text("")
        with netlogger.read(self.path, follow=True) as reader:
            records = []

            def read():
                while not records:
                    try:
                        records.append(reader.read())
                    except ValueError:  # the other process reads
                        pass
            thread = threading.Thread(target=read, daemon=True)
            thread.start()
            with self.assertRaisesRegex(ValueError, "another thread"):
                while thread.is_alive():
                    reader.read(timeout=0)
            self.assertRaises(ValueError, reader.close)
            self.path.write_text("DATE=20260101000000 NL.EVNT=E N=0\n")
            thread.join(60)
            self.assertEqual(records[0]["N"], "0")

    def test_waiting_is_interrupted(self):
        self.path.write_text("")
        self.script("import netlogger, os, signal, sys, threading\n"
                    "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it\n"
                    "try:\n    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
                    "    next(netlogger.read(sys.argv[1], follow=True))\n"
                    "except KeyboardInterrupt:\n    sys.exit(7)\n", self.path, code=7)

    def test_columns(self):
        self.path.write_text("DATE=20260101000000 NL.EVNT=E A=1 S=x event=own\nDATE=20260101000001 HOST=h A=2 R=1\n"
                             "DATE=20260101000002 R=0.5\n")
        self.assertEqual(netlogger.read(self.path).to_columns(), {
            "time_ns": [1767225600000000000 + i * 10**9 for i in range(3)], "host": [None, "h", None], "prog": [None] * 3,
            "level": [None] * 3, "event": ["E", None, None], "A": [1, 2, None], "S": ["x", None, None],
            "field.event": ["own", None, None], "R": [None, 1.0, 0.5]})

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        self.write(self.path.with_suffix(".nlb"))
        frame = netlogger.read(self.path.with_suffix(".nlb")).to_pandas()
        self.assertEqual(len(frame), 11)
        self.assertEqual(str(frame["N"].dtype), "Int64")
        self.assertEqual(frame["N"].sum(), 45)
        self.assertEqual(frame["F"][0], 0.1)
        self.assertEqual(str(frame["time"].dtype), "datetime64[ns, UTC]")
        self.assertEqual(list(frame["level"])[1], "Warning")
        self.assertTrue(pandas.isna(frame["N"][0]))

    def test_arrow(self):
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            self.skipTest("pyarrow is not installed")
        self.write(self.path.with_suffix(".nlb"))
        table = netlogger.read(self.path.with_suffix(".nlb")).to_arrow()
        self.assertEqual(table.num_rows, 11)
        self.assertEqual(str(table.schema.field("N").type), "int64")
        self.assertEqual(str(table.schema.field("time").type), "timestamp[ns, tz=UTC]")


    def test_what_arrow_is_given(self):
        """The columns and types that the binding requests from pyarrow, even if pyarrow is not installed."""
        arrow = types.ModuleType("pyarrow")
        arrow.timestamp, arrow.string = lambda unit, tz: f"timestamp[{unit}, tz={tz}]", lambda: "string"
        arrow.uint64 = lambda: "uint64"
        arrow.array, arrow.table = lambda values, type=None: (values, type), lambda columns: columns
        self.write(self.path.with_suffix(".nlb"))
        with unittest.mock.patch.dict(sys.modules, pyarrow=arrow):
            table = netlogger.read(self.path.with_suffix(".nlb")).to_arrow()
        none = [None] * 10
        self.assertEqual(list(table), ["time", "host", "prog", "level", "event", *self.VALUES, "N"])
        self.assertEqual((len(table["time"][0]), table["time"][1]), (11, "timestamp[ns, tz=UTC]"))
        self.assertEqual(table["level"], (["Usage"] + ["Warning"] * 10, "string"))
        self.assertEqual(table["N"], ([None, *range(10)], None))
        self.assertEqual((table["F"], table["B"]), (([0.1, *none], None), ([True, *none], None)))
        self.assertEqual(table["U"], ([2**64 - 1, *none], "uint64"))
        self.assertEqual((table["S"], table["Y"][0][0]), ((['a "b"\n', *none], "string"), "\ufffd\0"))


class Installed(Case):
    @support.long
    def test_pip(self):
        """pip installs the binding from the source tree into a virtual environment, without a network."""
        environment = dict(os.environ, HOME=str(self.scratch), PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
                           PIP_NO_CACHE_DIR="1")
        venv = self.scratch / "venv"
        made = self.run_program(sys.executable, "-m", "venv", "--system-site-packages", venv, env=environment, timeout=300)
        if made.returncode != 0:
            self.skipTest(f"no venv: {made.stdout}{made.stderr}")
        if self.run_program(venv / "bin/python", "-m", "pip", "--version", env=environment).returncode != 0:
            self.skipTest("no pip")
        source = self.scratch / "source"  # pip leaves its working files there
        self.run_program("cp", "-r", support.SOURCE / "bindings/python", source)
        self.run_program("chmod", "-R", "u+w", source)
        pc = support.pkg_config_folder(self.scratch)
        install = [venv / "bin/python", "-m", "pip", "install", "--no-build-isolation", source]
        result = self.run_program(*install, timeout=300, env=dict(environment, PKG_CONFIG_PATH=pc))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        said = self.run_program(venv / "bin/python", "-c", "import netlogger; print(netlogger.__file__)\n"
                                "with netlogger.open('p', 'memory:m') as log: log.event('E', N=1)\n"
                                "print(netlogger.memory_read('m').decode().split(' NL.')[1])", cwd=self.scratch, env=environment)
        self.assertIn(f"{venv}/lib", said.stdout, said.stderr)
        self.assertIn("EVNT=E N=1\n", said.stdout)
        files = [p.name for p in (venv / "lib").rglob("netlogger/*")]
        self.assertIn("_core.abi3.so", files)
        self.assertIn("py.typed", files)
        result = self.run_program(*install, "--force-reinstall", timeout=300,
                                  env=dict(environment, PKG_CONFIG_PATH="/none", PKG_CONFIG_LIBDIR="/none"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("PKG_CONFIG_PATH=", result.stdout + result.stderr)

    def test_the_limited_api(self):
        """The extension uses only declarations of the limited API of 3.9."""
        for tool in ("nm", "cc"):
            if shutil.which(tool) is None:
                self.skipTest(f"no {tool} here")
        used = self.run_program("nm", "-D", "--undefined-only", LIB / "netlogger/_core.abi3.so").stdout
        names = {line.split()[-1] for line in used.splitlines() if re.match(r"_?Py", line.split()[-1])}
        self.assertGreater(len(names), 50)
        declared = self.run_compiler("cc", "-E", "-P", "-DPy_LIMITED_API=0x03090000", "-DPY_SSIZE_T_CLEAN",
                                     f"-I{sysconfig.get_path('include')}", "-include", "Python.h", "-x", "c", "/dev/null")
        self.assertEqual(declared.returncode, 0, declared.stderr)
        # With PY_SSIZE_T_CLEAN, these are the real names of PyArg_ParseTuple and similar functions, in every version.
        names -= {"_PyArg_ParseTuple_SizeT", "_PyArg_ParseTupleAndKeywords_SizeT", "_Py_BuildValue_SizeT"}
        self.assertEqual(names - set(re.findall(r"\w+", declared.stdout)), set())

    def test_other_versions_of_python(self):
        """One build works with all versions of Python; the test uses the installed versions."""
        tried = 0
        for minor in range(9, 30):
            python = shutil.which(f"python3.{minor}")
            if python is None or minor == sys.version_info.minor or subprocess.run(
                    [python, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode != 0:
                continue
            tried += 1
            result = self.run_program(python, "-c", "import netlogger\nwith netlogger.open('p', 'memory:m') as log:\n"
                                      "    log.event('E', {'A': 1}, B=0.5, C='x')\n    with log.span('S'): pass\n"
                                      "print(*[r.event for r in netlogger.read('memory:m')])\n",
                                      env=dict(os.environ, PYTHONPATH=str(LIB), PYTHONDONTWRITEBYTECODE="1"))
            self.assertEqual((result.stdout, result.stderr), ("E S.start S.end\n", ""), python)
        if tried == 0:
            self.skipTest("no other Python here")

    def test_types(self):
        """The module's type annotations are consistent, and the stubs agree with the extension."""
        if shutil.which("mypy") is None or shutil.which("stubtest") is None:
            self.skipTest("no mypy here")
        shutil.copytree(LIB / "netlogger", self.scratch / "netlogger")
        options = ["--config-file", support.SOURCE / "bindings/python/pyproject.toml", "--cache-dir", self.scratch / "cache"]
        result = self.run_compiler("mypy", *options, "-p", "netlogger", cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        (self.scratch / "user.py").write_text("import netlogger\nlog = netlogger.open('p', 'memory:m')\n"
                                              "log.event('E', {'A': 1}, B=2)\nlog.event(1)\n"
                                              "for record in netlogger.read('a'):\n    record.time_ns + 1\n    record.time + 1\n")
        result = self.run_compiler("mypy", *options, "user.py", cwd=self.scratch)
        wrong = [int(line.split(":")[1]) for line in result.stdout.splitlines() if ": error: " in line]
        self.assertEqual(wrong, [4, 7], result.stdout + result.stderr)
        result = self.run_compiler("stubtest", "--mypy-config-file", options[1], "netlogger._core", cwd=self.scratch,
                                   env=dict(os.environ, PYTHONPATH=str(self.scratch)))
        # stubtest loads the extension with its own Python.
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_every_name_is_explained(self):
        for name in netlogger.__all__:
            self.assertTrue(getattr(netlogger, name).__doc__, name)
        for kind in (netlogger.Log, netlogger.Reader, netlogger.Record, netlogger.Span):
            for name, member in vars(kind).items():
                if not name.startswith("_") and callable(member):
                    self.assertTrue(member.__doc__, name)


class Version4(Case):
    """netlogger.nlapi and netlogger.nllog, as a workflow monitor of 2011 uses them."""

    def setUp(self):
        super().setUp()
        from netlogger import nlapi, nllog
        self.nlapi, self.nllog = nlapi, nllog

    def test_lines(self):
        nlapi = self.nlapi
        encode = nlapi.Log(level=nlapi.Level.ALL, prefix="stampede.")
        then = datetime.datetime(2012, 3, 14, 14, 4, 46, 5)
        self.assertEqual(encode("job.start", then, nlapi.Level.INFO, xwf__id="a-1", job__id=7, x=0.5, __class="c", b=True, n=None),
                         "ts=2012-03-14T14:04:46.000005Z event=stampede.job.start level=Info xwf.id=a-1 job.id=7 x=0.500000 class=c b=1 n=None\n")
        self.assertEqual(encode.write("e", "2012-03-14T14:04:46Z", text='two "words" \\', empty="", equal="a=b", line="a\nb", path="c:\\d"),
                         'ts=2012-03-14T14:04:46Z event=stampede.e level=Info text="two \\"words\\" \\\\" empty="" equal="a=b" '
                         'line="a\\nb" path=c:\\d\n')
        self.assertRegex(encode.error("bad"), r"^ts=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z event=stampede.bad level=Error\n$")
        log = nlapi.Log(newline=False, guid="g", meta={"m": 1}, level=nlapi.Level.WARN, float_time=True)
        self.assertEqual((log.info("off"), log.debugging()), ("", False))
        self.assertEqual(log.warn("on", ts=1.5), "ts=1.500000 event=on level=Warn m=1 guid=g")
        log.setMeta("on", k="v")
        self.assertEqual(log.warn("on", ts=1.5), "ts=1.500000 event=on level=Warn k=v m=1 guid=g")
        pretty = nlapi.Log(pretty=True, level=nlapi.Level.ALL, newline=False)
        self.assertEqual(pretty.write("e", "T", nlapi.Level.DEBUG2, msg="said", a=1), "T DEBUG2 e | said. a=1")
        self.assertEqual((nlapi.Level.getName(99), nlapi.Level.getLevel("TRACE")), ("User", 6))
        self.assertRaises(ValueError, nlapi.Level.getLevel, "names")

    def test_destinations(self):
        nlapi = self.nlapi
        for url in str(self.path), f"file://{self.path}":
            log = nlapi.Log(url)
            log.write("e", "2012-03-14T14:04:46Z", a=1)
            log.debug("off")
            log.close()
        self.assertEqual(self.path.read_text(), 2 * "ts=2012-03-14T14:04:46Z event=e level=Info a=1\n")
        self.assertEqual([(r.event, r["a"]) for r in netlogger.read(self.path)], [("e", "1"), ("e", "1")])
        self.assertRaises(nlapi.Log.OpenError, nlapi.Log, "gopher://x")
        self.assertRaises(nlapi.Log.OpenError, nlapi.Log, "/no/such/folder/a.log")
        self.assertEqual((nlapi.urltype("x-netlog://h"), nlapi.urltype("a"), nlapi.urltype("gopher://x")), ("tcp", "file", None))
        with unittest.mock.patch.dict(os.environ):
            self.assertIsNone(nlapi.setGuid("g-1"))
            self.assertIn("guid=g-1", nlapi.Log().write("e"))
            self.assertEqual((nlapi.getGuid(), nlapi.clearGuid(), nlapi.getGuid(create=False)), ("g-1", "g-1", None))

    def test_loggers(self):
        nllog = self.nllog
        lines = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append((record.levelno, record.getMessage().partition(" ")[2]))
        root = nllog.get_root_logger()
        root.addHandler(handler)
        self.addCleanup(root.removeHandler, handler)
        root.setLevel(nllog.TRACE)

        class Loader(nllog.DoesLogging):
            pass

        Loader("loader").log.info("my.event", value=88.5, job__id="100 %s")
        self.assertEqual(lines.pop(), (logging.INFO, 'event=netlogger.loader.my.event level=Info value=88.500000 job.id="100 %s"'))
        log = nllog.get_logger("/usr/lib/netlogger/analysis/load.py")
        self.assertEqual((log.name, nllog.get_logger(".own").name), ("netlogger.analysis.load", "own"))
        log.set_meta(host="h")
        log.trace("t")
        log.critical("c")
        self.assertEqual(lines, [(nllog.TRACE, "event=netlogger.analysis.load.t level=Trace host=h"),
                                 (logging.CRITICAL, "event=netlogger.analysis.load.c level=Fatal host=h")])
        try:
            raise ValueError("no\nvalue")
        except ValueError as error:
            log.exc("failed", error)
        self.assertRegex(lines[-1][1], r'^event=netlogger.analysis.load.failed level=Error msg="no\\nvalue" status=-1 traceback="Traceback .*" host=h$')
        log.setLevel(logging.WARNING)
        log.info("off")
        self.assertEqual(len(lines), 3)
        self.assertIs(type(logging.getLogger("an.own.logger.of.others")), logging.Logger)


if __name__ == "__main__":
    support.main()
