"""The Java binding: text and typed events, spans, reading, errors, threads, java.util.logging and SLF4J."""
import datetime
import pathlib
import os
import shutil

import collector
import support

JAR = support.BUILD / "bindings" / "java" / "netlogger.jar"

# From the paper.
PAPER = r"""
import netlogger.*;

public class Client {
    public static void main(String[] args) {
        int sz = 49332;
        NetLogger eventLog = new NetLogger("testprog");
        eventLog.open("127.0.0.1", Integer.parseInt(args[0]));
        eventLog.write("WriteIt", "SEND.SZ=" + sz);
        eventLog.close();
    }
}
"""

# In the style of services of 2012, which pass the message to a text logger.
MESSAGES = r"""
import gov.lbl.netlogger.LogMessage;
import java.util.*;

public class Client {
    public static void main(String[] args) {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put("guid", "a-1");
        fields.put("msg", "\"quoted 'by' the caller\"");
        fields.put("url", "http://h/?a=b");
        fields.put("empty", "");
        LogMessage message = new LogMessage("service.start");
        for (String name : fields.keySet())
            message.add(name, fields.get(name));
        Object logged = message.add("i", 1).add("l", 1L << 40).add("f", 2.5f).add("d", 0.1).add("t", "two \"words\"\n");
        message.setTimeStampNanos(System.nanoTime() - 3_600_000_000_000L);
        System.out.println(logged);
        System.out.println(new LogMessage("now"));
        System.out.println(new LogMessage("then").setTimeStampMillis(1200000000123L));
    }
}
"""

PROGRAM = r"""
import netlogger.*;
import java.util.*;

public class Client {
    static void check(boolean holds, String what) {
        if (!holds)
            throw new AssertionError(what);
    }

    static long inner(NetLogger log) {
        log.event("Inner").put("X", 1).write();
        return 2;
    }

    static void values(NetLogger log) {
        log.event("Numbers").put("I", 1).put("L", Long.MIN_VALUE).put("D", 0.1).put("F", 0.1f).put("F2", 1.5f)
            .put("N", Double.NaN).put("M", Double.NEGATIVE_INFINITY).put("B", true).put("C", (short) -3).write();
        String nothing = null;
        log.event("Texts").put("T", "a b=\"c\"\n").put("U", "\u00e9\u20ac\ud83d\ude00").put("H", "\ud83d!").put("E", "")
            .put("O", nothing).put("Y", new byte[] {(byte) 0xff, 0, 'x'}).put("S", new StringBuilder("built")).write();
        log.event(Level.ERROR, "Bad").write();
        log.event("Outer").put("A", 1).put("B", inner(log)).put("C", 3).write();
        char[] large = new char[100000];
        Arrays.fill(large, '\u00e9');
        log.event("Large").put("A", "first").put("T", new String(large)).put("Z", 7).write();
        for (String name : new String[] {"One", "Two"})
            log.event(new String(name)).put(new String("N"), 1).write();
        log.write("Text", "A=1 B=\"two words\" LVL=Warning");
        log.write("Talk", "only words");
        for (int i = 0; i < 5000; i++)
            log.event("Kind" + i).put("F" + i, i).write();
    }

    /* Once it is warm an event allocates nothing, of whatever types its fields are. */
    static void allocations(NetLogger log) {
        var threads = (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        long me = Thread.currentThread().getId(), took = 0;
        String[] texts = {"ascii", "gr\u00fc\u00dfe \ud83d\ude00"};
        byte[] bytes = new byte[20];
        StringBuilder built = new StringBuilder("built");
        for (int round = 0; round < 3; round++) {
            long before = threads.getThreadAllocatedBytes(me);
            for (int i = 0; i < 10000; i++)
                log.event("Free").put("I", i).put("D", i / 3.0).put("B", i % 2 == 0).put("T", texts[i % 2]).put("Y", bytes)
                    .put("S", built).write();
            took = threads.getThreadAllocatedBytes(me) - before;
        }
        check(took < 10000, "10000 events allocated " + took + " bytes");
    }

    /* Events that were begun and never written, or are open at the same time, or are written by another thread. */
    static void open(NetLogger log) throws InterruptedException {
        for (int i = 0; i < 1000; i++)
            log.event("Forgotten").put("I", i);
        Event[] all = new Event[10];
        for (int i = 0; i < all.length; i++)
            all[i] = log.event("Open").put("I", i);
        for (int i = all.length; i-- > 0;)
            all[i].put("J", i).write();
        Event event = log.event("Elsewhere").put("I", 1);
        Thread other = new Thread(event::write);
        other.start();
        other.join();
    }

    /* A log that is closed and opened again while others use it: what they were told is written is there. */
    static void closing(String path) throws InterruptedException {
        NetLogger log = new NetLogger("closing");
        var written = new java.util.concurrent.atomic.AtomicLong();
        var ends = new java.util.concurrent.atomic.AtomicBoolean();
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            int me = t;
            all.add(new Thread(() -> {
                for (int i = 0; !ends.get(); i++) {
                    boolean there = me == 0 ? log.write("Text", "A=1") : log.event("Typed").put("T", "x".repeat(i % 100)).write();
                    if (there)
                        written.incrementAndGet();
                    log.isOn(Level.USAGE);
                    if (i % 1000 == 0)
                        log.flush();
                }
            }));
        }
        for (Thread thread : all)
            thread.start();
        for (int round = 0; round < 100; round++) {
            log.open("file://" + path + "?append=yes&policy=block&block=600&ring=64k");
            Thread.sleep(2);
            log.close();
        }
        ends.set(true);
        for (Thread thread : all)
            thread.join();
        long found = 0;
        try (Reader reader = new Reader(path)) {
            for (LogRecord record : reader)
                found++;
            check(reader.malformed() == 0, "all can be read");
        }
        check(found == written.get() && found > 0, found + " events of " + written.get());
    }

    /* A reader that waits is closed by another thread, or interrupted. */
    static void waiting(String path) throws Exception {
        for (boolean closes : new boolean[] {true, false}) {
            Reader reader = new Reader(path, "NL.EVNT == Never", true);
            var outcome = new java.util.concurrent.CompletableFuture<String>();
            Thread thread = new Thread(() -> {
                try {
                    outcome.complete(reader.hasNext() ? "a record" : "the end");
                } catch (NetLoggerException e) {
                    outcome.complete(e.getMessage());
                }
            });
            thread.start();
            while (thread.getState() != Thread.State.TIMED_WAITING)
                Thread.yield();
            if (closes)
                reader.close();
            else
                thread.interrupt();
            check(outcome.get().equals(closes ? "the end" : "interrupted"), outcome.get());
            reader.close();
        }
    }

    @SuppressWarnings("try")
    static void spans(NetLogger log) {
        try (NetLogger.Span span = log.span("Read").put("ID", 7).put("WHAT", "x").start()) {
            span.put("BYTES", 12);
        }
        try (NetLogger.Span span = log.span(Level.ERROR, "Fail").start()) {
            span.fail();
        }
        String remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01";
        try (Context.Attached here = Context.parse(remote).attach();
             NetLogger.Span outer = log.span("Outer").start()) {
            check(Context.current().traceparent().equals(outer.context().traceparent()), "the span is current");
            log.event("Inside").write();
            NetLogger.Span apart = log.span("Apart").begin();
            Thread thread = new Thread(() -> {
                apart.put("THERE", true).close();
                apart.close();
                log.event("Unattached").write();
            });
            thread.start();
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            try (NetLogger.Span trace = log.span("Trace").parent(new Context()).start()) {
                trace.setStatus(3);
            }
        }
        check(Context.current().isEmpty(), "no context is attached");
        try (NetLogger.Span span = log.span("Unsampled").parent(Context.parse(remote.substring(0, 54) + "0")).start()) {
            check(span.context().traceparent().startsWith(remote.substring(0, 36)), "the trace is passed on");
        }
        check(Context.parse("00-").isEmpty() && Context.parse(null).traceparent().isEmpty(), "an invalid header");
        check(Context.joinTracestate("a=1 , b=2", "a=3").equals("a=1,b=2"), "tracestate");
        check(Context.joinTracestate("a=1", "B=2").isEmpty(), "an invalid tracestate");
        check(Context.fromEnvironment().traceparent().equals(remote), "TRACEPARENT");
    }

    static void wrong(NetLogger log) {
        int caught = 0;
        for (int i = 0; i < 6; i++)
            try {
                switch (i) {
                    case 0: new NetLogger("p").open("file:///nowhere/at/all"); break;
                    case 1: new Reader("/nowhere"); break;
                    case 2: new Reader("-", "A =="); break;
                    case 3: log.control("nonsense"); break;
                    case 4: Event e = log.event("Once"); e.write(); e.put("A", 1); break;
                    default:
                        Event many = log.event("Many");
                        for (int k = 0; k < 17; k++)
                            many.put("K", k);
                }
            } catch (NetLoggerException | IllegalArgumentException | IllegalStateException e) {
                check(e.getMessage().length() > 0, "a reason");
                caught++;
            }
        check(caught == 6, "what is wrong is refused");
        NetLogger closed = new NetLogger("p");
        check(!closed.event("E").put("A", 1).write() && !closed.write("E", "A=1"), "nothing is written where nothing is open");
        closed.flush();
        closed.close();
    }

    static void threads(NetLogger log) throws InterruptedException {
        List<Thread> all = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            int me = t;
            all.add(new Thread(() -> {
                for (int i = 0; i < 5000; i++)
                    log.event("Step").put("T", me).put("I", i).write();
            }));
        }
        for (Thread thread : all)
            thread.start();
        for (Thread thread : all)
            thread.join();
    }

    static void read(String path) {
        long next = 0;
        try (Reader reader = new Reader(path, "NL.EVNT == Step && T == 2")) {
            for (LogRecord record : reader)
                check(record.getLong("I") == next++ && record.prog().equals("java") && record.level() == Level.USAGE, "a step");
            check(reader.malformed() == 0, "all can be read");
        }
        check(next == 5000, "all steps");
        try (Reader reader = new Reader(path, "NL.EVNT == Texts")) {
            LogRecord record = reader.next();
            check(record.get("U").equals("\u00e9\u20ac\ud83d\ude00"), "text comes back");
            check(Arrays.equals(record.bytes("Y"), new byte[] {(byte) 0xff, 0, 'x'}), "bytes come back");
            check(record.fields().size() == 7 && record.get("NONE") == null && !reader.hasNext(), "the fields");
        }
        try (Reader reader = new Reader(path, "NL.EVNT == Numbers")) {
            LogRecord record = reader.next();
            check(Double.isNaN(record.getDouble("N")) && record.getDouble("D") == 0.1, "numbers come back");
            check(record.getLong("L") == Long.MIN_VALUE && record.time().getEpochSecond() > 1000, "and the time");
        }
    }

    public static void main(String[] args) throws Exception {
        NetLogger log = new NetLogger("java");
        log.open("file://" + args[0]);
        allocations(log); // before there are more kinds of events than the library remembers
        values(log);
        open(log);
        spans(log);
        wrong(log);
        threads(log);
        log.setLevel(Level.ERROR);
        check(!log.isOn(Level.USAGE) && !log.event("Filtered").write(), "levels");
        log.setLevel(Level.DEBUG);
        java.util.logging.Logger jul = java.util.logging.Logger.getLogger("jul");
        jul.setUseParentHandlers(false);
        jul.addHandler(new NetLogHandler(log));
        jul.log(java.util.logging.Level.WARNING, "hello {0}", "world");
        jul.log(java.util.logging.Level.SEVERE, "bad", new RuntimeException("why"));
        TextLogger text = new TextLogger(log, "text");
        text.info("sent {} bytes to {}", 12, "host");
        text.error("lost {}", "it", new RuntimeException("why"));
        log.flush();
        log.close();
        check(!log.event("Never").write(), "closed");
        read(args[0]);
        waiting(args[0]);
        closing(args[0] + ".closing");
        System.out.println("done");
    }
}
"""

SLF4J = r"""
public class Client {
    public static void main(String[] args) {
        netlogger.NetLogger log = new netlogger.NetLogger("slf4j");
        log.open("file://" + args[0]);
        java.util.logging.Logger root = java.util.logging.Logger.getLogger("");
        root.addHandler(new netlogger.NetLogHandler(log));
        org.slf4j.LoggerFactory.getLogger("some.where").warn("sent {} bytes", 12);
        log.close();
    }
}
"""


def run_java(case, source, *arguments, jars=(), **options):
    """Compiles and runs the class Client."""
    if not JAR.exists():
        case.skipTest("the Java binding is not built here")
    if shutil.which("javac") is None:
        case.skipTest("no javac here")
    path = ":".join([str(case.scratch), str(JAR), *map(str, jars)])
    (case.scratch / "Client.java").write_text(source)
    result = case.run_compiler(*support.JAVAC, "-Xlint:all", "-Werror", "-cp", path, "-d", case.scratch, case.scratch / "Client.java")
    case.assertEqual(result.returncode, 0, result.stderr)
    return case.run_program(*support.JAVA, "-Xcheck:jni", "-Xmx128m", f"-Djava.io.tmpdir={case.scratch}", "-cp", path, "Client",
                            *arguments, **options)


class Java(support.Case):
    def setUp(self):
        super().setUp()
        self.log = self.scratch / "a.log"

    def lines(self):
        return [line.split(" ", 2)[2] for line in self.log.read_text(errors="surrogateescape").splitlines()]

    def test_all_of_it(self):
        remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01"
        result = run_java(self, PROGRAM, self.log, env={**os.environ, "TRACEPARENT": remote})
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1:]), (0, ["done"]), result.stderr)
        start = "PROG=java LVL=Usage NL.EVNT="
        lines = [line for line in self.lines() if not any(f"NL.EVNT={name}" in line for name in ("Step", "Kind", "Free"))]
        self.assertEqual(support.numbered_ids(lines), [
            start + "Numbers I=1 L=-9223372036854775808 D=0.1 F=0.1 F2=1.5 N=nan M=-inf B=true C=-3",
            start + 'Texts T="a b=\\"c\\"\\n" U=\u00e9\u20ac\U0001f600 H=?! E="" O=null Y="\udcff\\x00x" S=built',
            "PROG=java LVL=Error NL.EVNT=Bad",
            start + "Inner X=1",
            start + "Outer A=1 B=2 C=3",
            start + "Large A=first T=" + 65536 * "\u00e9" + " Z=7",
            start + "One N=1",
            start + "Two N=1",
            'PROG=java LVL=Warning NL.EVNT=Text A=1 B="two words"',
            start + 'Talk MSG="only words"',
            *[start + f"Open I={i} J={i}" for i in reversed(range(10))],
            start + "Elsewhere I=1",
            start + "Read.start TRACE.ID=T1 SPAN.ID=S1 ID=7 WHAT=x",
            start + "Read.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0 BYTES=12",
            "PROG=java LVL=Error NL.EVNT=Fail.start TRACE.ID=T2 SPAN.ID=S2",
            "PROG=java LVL=Error NL.EVNT=Fail.end TRACE.ID=T2 SPAN.ID=S2 STATUS=-1",
            start + "Outer.start PARENT.ID=S3 TRACE.ID=T3 SPAN.ID=S4",
            start + "Inside TRACE.ID=T3 SPAN.ID=S4",
            start + "Apart.start PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S5",
            start + "Apart.end PARENT.ID=S4 TRACE.ID=T3 SPAN.ID=S5 STATUS=0 THERE=true",
            start + "Unattached",
            start + "Trace.start TRACE.ID=T4 SPAN.ID=S6",
            start + "Trace.end TRACE.ID=T4 SPAN.ID=S6 STATUS=3",
            start + "Outer.end PARENT.ID=S3 TRACE.ID=T3 SPAN.ID=S4 STATUS=0",
            start + "Once",
            'PROG=java LVL=Warning NL.EVNT=Log MSG="hello world" LOGGER=jul',
            'PROG=java LVL=Error NL.EVNT=Log MSG=bad LOGGER=jul EXCEPTION="java.lang.RuntimeException: why"',
            start + 'Log MSG="sent 12 bytes to host" LOGGER=text',
            'PROG=java LVL=Error NL.EVNT=Log MSG="lost it" LOGGER=text EXCEPTION="java.lang.RuntimeException: why"',
        ])
        kinds = [line for line in self.lines() if "NL.EVNT=Kind" in line]
        self.assertEqual(kinds, [start + f"Kind{i} F{i}={i}" for i in range(5000)])
        self.assertEqual(list(self.scratch.glob("netlogger*")), [], "nothing unpacked is left behind")

    def test_slf4j(self):
        jars = [pathlib.Path("/usr/share/java") / f"slf4j-{name}.jar" for name in ("api", "jdk14")]
        if not all(jar.exists() for jar in jars):
            self.skipTest("no SLF4J here")
        result = run_java(self, SLF4J, self.log, jars=jars)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.lines(), ['PROG=slf4j LVL=Warning NL.EVNT=Log MSG="sent 12 bytes" LOGGER=some.where'])


class Paper(collector.Case):
    def test_messages_of_netlogger_4(self):
        result = run_java(self, MESSAGES)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0].partition(" ")[2],
                         'event=service.start guid=a-1 msg="quoted \'by\' the caller" url="http://h/?a=b" empty="" i=1 '
                         'l=1099511627776 f=2.5 d=0.1 t="two \\"words\\"\\n"')
        self.assertEqual(lines[1].partition(" ")[2], "event=now")
        self.assertEqual(lines[2], "ts=2008-01-10T21:20:00.123000Z event=then")
        times = [datetime.datetime.strptime(line.split()[0], "ts=%Y-%m-%dT%H:%M:%S.%fZ") for line in lines[:2]]
        self.assertAlmostEqual((times[1] - times[0]).total_seconds(), 3600, delta=5)

    def test_the_papers_example(self):
        process = self.serve()
        result = run_java(self, PAPER, self.port)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.stop(process)
        self.assertRegex(self.output.read_text(), r"PROG=testprog LVL=Usage NL\.EVNT=WriteIt SEND\.SZ=49332\n$")


if __name__ == "__main__":
    support.main()
