"""The C++ binding: events, spans, reading and errors with gcc and clang, and code that must not compile."""
import os
import shutil

import support

PROGRAM = r"""
#include <netlogger.hpp>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace netlogger::literals;
enum class color : short { red = -3 };
enum plain { ONE = 1 };

static void values(const netlogger::log &log)
{
    std::string text = "a b=\"c\"\n";
    char array[] = "array";
    const char *none = nullptr;
    log.event("Numbers"_e, "I"_f = -1, "U"_f = ~0ull, "S"_f = short(-2), "C"_f = 'x', "D"_f = 0.1, "F"_f = 1.5f,
              "N"_f = std::numeric_limits<double>::quiet_NaN(), "B"_f = true);
    log.event("Texts"_e, "T"_f = text, "V"_f = std::string_view(text).substr(0, 1), "L"_f = "literal", "A"_f = array,
              "NONE"_f = none, "EMPTY"_f = "", "COLOR"_f = color::red, "PLAIN"_f = ONE);
    log.event<NL_ERROR>("Bad"_e);
    log.event<NL_DEBUG>("Off"_e, "X"_f = 1);
    log.warning("Warned"_e, "X"_f = 1);
    for (const char *name : {"First", "Second"})
        log.event(std::string(name), "T"_f = text, "I"_f = -1, "U"_f = 1u, "D"_f = 2.5f, "B"_f = false, "E"_f = color::red);
}

static void spans(const netlogger::log &log)
{
    {
        auto span = log.span("Read"_e, "ID"_f = 7, "FILE"_f = std::string("gone") + " by then");
        log.event("Inside"_e);
        auto later = log.detached_span(span.context(), "Later"_e);
        std::thread([&later] { later.end("ROWS"_f = 3); }).join();
        auto child = log.span<NL_ERROR>("Inner"_e);
        child.set_status(5);
    }
    log.event("Outside"_e);
    const char *remote = "00-00112233445566778899aabbccddeeff-0123456789abcdef-01";
    {
        netlogger::attached here(netlogger::context::parse(remote));
        auto span = log.span("Remote"_e);
        if (span.context().traceparent().size() != 55 || span.context().traceparent().compare(0, 36, remote, 36) != 0 ||
            netlogger::context::current().traceparent() != span.context().traceparent())
            log.event("Wrong"_e);
    }
    netlogger::attached none{netlogger::context()};
    setenv("TRACEPARENT", "00-00112233445566778899aabbccddeeff-0123456789abcdef-00", 1);
    auto unsampled = log.detached_span(netlogger::context::environment(), "Unsampled"_e, "A"_f = 1);
    const std::string_view states[] = {"a=1, b=2", "c=3"};
    if (netlogger::join_tracestate(states) != "a=1,b=2,c=3")
        log.event("Wrong"_e);
    try {
        auto span = log.span("Throw"_e, "ID"_f = 8);
        throw std::runtime_error("x");
    } catch (const std::runtime_error &) {
    }
    auto span = log.span("Early"_e, "ID"_f = 9);
    span.end("BYTES"_f = 12);
    span.end("BYTES"_f = 13);
    auto failed = log.span("Failed"_e);
    failed.fail();
}

static void threads(const netlogger::log &log)
{
    std::vector<std::thread> all;
    for (int t = 0; t < 4; t++)
        all.emplace_back([&log, t] {
            for (int i = 0; i < 5000; i++)
                log.event("Step"_e, "T"_f = t, "I"_f = i);
        });
    for (std::thread &thread : all)
        thread.join();
}

static int read(const char *path)
{
    int found = 0;
    netlogger::reader reader(path, "NL.EVNT == Step && T == 2");
    for (const netlogger::record &record : reader)
        if (record.find("I")->integer() != found++ || record.prog() != "cxx" || record.level() != NL_USAGE)
            return 1;
    if (found != 5000 || reader.stats().malformed != 0)
        return 2;
    netlogger::reader one(path, "NL.EVNT == Numbers");
    auto record = one.next();
    if (!record || record->size() != 8 || (*record)[0].name() != "I" || (*record)[4].number() != 0.1 || one.next())
        return 3;
    return 0;
}

static int errors()
{
    int caught = 0;
    for (int i = 0; i < 4; i++)
        try {
            if (i == 0)
                netlogger::log("p", "file:///nowhere/at/all?quiet=yes");
            else if (i == 1)
                netlogger::reader("/nowhere");
            else if (i == 2)
                netlogger::reader("-", "A ==");
            else
                netlogger::log("p", "memory:x").control("nonsense");
        } catch (const netlogger::error &error) {
            caught += *error.what() != '\0';
        }
    netlogger::log off;
    off.flush();
    return caught == 4 && !off && !off.event("E"_e) && !off.event(std::string("E")) ? 0 : 4;
}

static void pass(int id)
{
    NL_MARKER(pass_begin, "ID", id);
    NL_MARKER(pass_end, "ID", id);
}

static int markers(const netlogger::log &log)
{
    int called = 0, listed = 0;
    auto logging = netlogger::probe::logging("pass_end", log);
    auto timing = netlogger::probe::timing("pass_begin", "pass_end");
    {
        auto counting = netlogger::probe::counting("pass_*");
        auto calling = netlogger::probe::calling("pass_end", [&](const char *, const nl_field *fields, std::size_t count) {
            called += count == 1 && fields[0].int_value == 7;
        });
        auto moved = std::move(counting);
        pass(7);
        netlogger::for_each_probe([&](const nl_probe_info &) { listed++; });
        if (moved.read().count != 2 || listed != 4)
            return 5;
    }
    pass(8);
    netlogger::for_each_marker([&](const nl_marker_info &marker) { listed += marker.probes != 0; });
    try {
        netlogger::for_each_marker([](const nl_marker_info &) { throw 17; });
    } catch (int thrown) {
        called += thrown;
    }
    try {
        netlogger::probe::counting("");
    } catch (const netlogger::error &) {
        called++;
    }
    return called == 19 && listed == 6 && timing.read().count == 2 ? 0 : 6;
}

static int rest(const netlogger::log &log, const char *path)
{
    log.set_policy(NL_POLICY_BLOCK, 1000000000);
    log.set_idle(20000000);
    log.write(NL_USAGE, "Printed", "N=%d", 3);
    netlogger::log::check("level Debug\nevent Step off");
    int costs = 0;
    netlogger::for_each_event_cost([&](const nl_event_cost &cost) { costs += cost.ns > 0 && cost.bytes > 0; });
    if (costs < 5)
        return 7;
    bool all = netlogger::recover({nullptr, false, true}, [](const nl_recovered &) {});
    if (!all)
        return 8;
    std::int64_t now = netlogger::now_ns() / 1000 * 1000;
    if (netlogger::parse_time(netlogger::format_time(now)) != now)
        return 9;
    try {
        netlogger::parse_time("yesterday");
        return 10;
    } catch (const netlogger::error &) {
    }
    log.flush();
    netlogger::reader reader(path, "NL.EVNT == Numbers");
    netlogger::stored_record stored(*reader.next());
    if (reader.next() || stored.get().event() != "Numbers" || stored.get().encode(NL_FORMAT_BP).substr(0, 3) != "ts=")
        return 11;
    stored.clear();
    return stored.get().event().empty() ? 0 : 12;
}

int main(int, char **argv)
{
    netlogger::log first("cxx", argv[1]), log;
    log = std::move(first);
    log.set_level(NL_USAGE);
    values(log);
    spans(log);
    threads(log);
    if (int failed = markers(log) + rest(log, argv[1]))
        return failed;
    log.flush();
    if (fork() == 0) {
        log.event("Child"_e);
        log.close();
        _exit(0);
    }
    wait(nullptr);
    log.close();
    log.event("Never"_e);
    return errors() + read(argv[1]);
}
"""

# An argument throws an exception: the scope then has no span.
THROWS = r"""
#include <netlogger.h>

#include <cstring>

static int fail(bool how)
{
    if (how)
        throw 1;
    return 2;
}

static __attribute__((noinline)) int fill()
{
    volatile char used[4096];
    for (char volatile &byte : used)
        byte = 'x';
    return used[9];
}

static __attribute__((noinline)) void throws(nl_log *log, bool how)
{
    NL_SPAN (log, NL_USAGE, "Inner", "A", fail(how))
        nl_span_set_status(7);
}

int main(int, char **argv)
{
    nl_log *log = nl_open("cxx", argv[1]);
    int caught = 0;
    NL_SPAN (log, NL_USAGE, "Outer") {
        nl_span_set_status(4);
        for (int i = 0; i < 4; i++)
            try {
                fill();
                throws(i == 3 ? nullptr : log, i % 2 == 0);
            } catch (int) {
                caught++;
            }
    }
    return nl_close(log) == NL_OK && caught == 2 ? 0 : 1;
}
"""

# Spans of 300 names that end without fields, and of 300 names that end with one field.
MANY_NAMES = r"""
#include <netlogger.hpp>

#include <utility>

template <int N> struct numbered {
    using type = netlogger::event_name<'N', '0' + N / 100, '0' + N / 10 % 10, '0' + N % 10>;
};

template <int N> static void log_span(const netlogger::log &log)
{
    auto span = log.span(typename numbered<N>::type{});
}

template <int N> static void log_span_with_field(const netlogger::log &log)
{
    using namespace netlogger::literals;
    log.span(typename numbered<N>::type{}).end("I"_f = N);
}

template <int... N> static void log_spans(const netlogger::log &log, std::integer_sequence<int, N...>)
{
    (log_span<N>(log), ...);
    (log_span_with_field<N>(log), ...);
}

int main(int, char **argv)
{
    netlogger::log log("cxx", argv[1]);
    log_spans(log, std::make_integer_sequence<int, 300>());
    log_spans(log, std::make_integer_sequence<int, 300>());
    log.close();
}
"""

# Begins a span named NAME that another module ends.
PLUGIN = r"""
#include <netlogger.h>

extern "C" void plugin_begin(nl_log *log, nl_span *span);
extern "C" void plugin_begin(nl_log *log, nl_span *span)
{
    *span = nl_span_begin(log, NL_USAGE, NAME, NL_NO_PARENT);
}
"""

# Loads and unloads plugins, probably at the same address, and switches events while no plugin is loaded.
HOST = r"""
#include <netlogger.h>

#include <dlfcn.h>

int main(int argc, char **argv)
{
    nl_log *log = nl_open("host", argv[1]);
    for (int i = 2; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr)
            return 2;
        nl_span span;
        reinterpret_cast<void (*)(nl_log *, nl_span *)>(dlsym(library, "plugin_begin"))(log, &span);
        nl_span_end(&span, "I", i);
        dlclose(library);
        if (dlopen(argv[i], RTLD_NOW | RTLD_NOLOAD) != nullptr)
            return 3;
        nl_control(log, "event Other* off\nevent Other* on", 32);
    }
    return nl_close(log) == NL_OK ? 0 : 1;
}
"""

# A wrong use, and the compiler's message.
WRONG = [
    ('log.event(""_e);', "an event needs a name"),
    ('log.event("E"_e, "a b"_f = 1);', "a field name may contain only letters"),
    ('log.event("E"_e, "F"_f = nullptr);', "cannot be logged"),
    ('struct x { int a; } y{}; log.event("E"_e, "F"_f = y);', "cannot be logged"),
    ('log.event<NL_LEVEL_NONE>("E"_e);', "the level of an event must be from NL_EMERGENCY to NL_DEBUG"),
    ('log.event("E"_e' + ', "F"_f = 1' * 17 + ");", "at most 16 fields"),
]


class Cxx(support.Case):
    def setUp(self):
        super().setUp()
        self.libraries = support.BUILD / "libnetlogger" / ".libs"
        if not (self.libraries / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        self.log = self.scratch / "a.log"

    def compile(self, compiler, text, *options):
        if shutil.which(compiler) is None:
            self.skipTest(f"no {compiler} here")
        source, program = self.scratch / "client.cc", self.scratch / f"client-{compiler}"
        source.write_text(text)
        result = self.run_compiler(
            compiler, "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", program, source, *options,
            f"-I{support.SOURCE}/libnetlogger/include", f"-I{support.SOURCE}/bindings/cxx", f"-L{self.libraries}", "-lnetlogger",
            f"-Wl,-rpath,{self.libraries}", "-pthread")
        return program, result

    def check(self, compiler, *options):
        program, result = self.compile(compiler, PROGRAM, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.log.unlink(missing_ok=True)
        result = self.run_program(program, f"{self.log}", env={**os.environ, "NETLOGGER_LEVEL": "Debug"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line.split(" ", 2)[2] for line in self.log.read_text().splitlines() if "NL.EVNT=Step" not in line]
        start = "PROG=cxx LVL=Usage NL.EVNT="
        self.assertEqual(support.numbered_ids(lines), [
            start + "Numbers I=-1 U=18446744073709551615 S=-2 C=120 D=0.1 F=1.5 N=nan B=true",
            start + 'Texts T="a b=\\"c\\"\\n" V=a L=literal A=array NONE=(null) EMPTY="" COLOR=-3 PLAIN=1',
            "PROG=cxx LVL=Error NL.EVNT=Bad",
            "PROG=cxx LVL=Warning NL.EVNT=Warned X=1",
            *[start + f'{name} T="a b=\\"c\\"\\n" I=-1 U=1 D=2.5 B=false E=-3' for name in ("First", "Second")],
            start + 'Read.start TRACE.ID=T1 SPAN.ID=S1 ID=7 FILE="gone by then"',
            start + "Inside TRACE.ID=T1 SPAN.ID=S1",
            start + "Later.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2",
            start + "Later.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 STATUS=0 ROWS=3",
            "PROG=cxx LVL=Error NL.EVNT=Inner.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S3",
            "PROG=cxx LVL=Error NL.EVNT=Inner.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S3 STATUS=5",
            start + "Read.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0",
            start + "Outside",
            start + "Remote.start PARENT.ID=S4 TRACE.ID=T2 SPAN.ID=S5",
            start + "Remote.end PARENT.ID=S4 TRACE.ID=T2 SPAN.ID=S5 STATUS=0",
            start + "Throw.start TRACE.ID=T3 SPAN.ID=S6 ID=8",
            start + "Throw.end TRACE.ID=T3 SPAN.ID=S6 STATUS=-1",
            start + "Early.start TRACE.ID=T4 SPAN.ID=S7 ID=9",
            start + "Early.end TRACE.ID=T4 SPAN.ID=S7 STATUS=0 BYTES=12",
            start + "Failed.start TRACE.ID=T5 SPAN.ID=S8",
            start + "Failed.end TRACE.ID=T5 SPAN.ID=S8 STATUS=-1",
            start + "pass_end ID=7",
            start + "pass_end ID=8",
            start + "Printed N=3",
            start + "Child",
        ])

    def test_gcc(self):
        self.check("g++", "-O2", "-std=c++20")

    def test_clang(self):
        self.check("clang++", "-O0")

    def test_arguments_that_throw(self):
        for level in "-O0", "-O2":
            program, result = self.compile("g++", THROWS, level)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.log.unlink(missing_ok=True)
            result = self.run_program(program, f"{self.log}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            ends = [line.split(" NL.EVNT=")[1].split() for line in self.log.read_text().splitlines()]
            self.assertEqual([(fields[0], fields[-1]) for fields in ends if fields[0].endswith(".end")],
                             [("Inner.end", "STATUS=7"), ("Outer.end", "STATUS=4")])

    def test_spans_of_many_names(self):
        program, result = self.compile("g++", MANY_NAMES, "-O0")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_program(program, f"{self.log}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line.split(" NL.EVNT=")[1].split() for line in self.log.read_text().splitlines()]
        names = [f"N{n:03}" for n in range(300)]
        self.assertEqual([fields[0] for fields in lines], [f"{name}.{suffix}" for name in names * 4 for suffix in ("start", "end")])
        self.assertEqual([fields[-1] for fields in lines if fields[0].endswith(".end")],
                         (["STATUS=0"] * 300 + [f"I={n}" for n in range(300)]) * 2)

    def test_spans_of_plugins_that_are_unloaded(self):
        plugins = {}
        for name in "First", "Second", "Third":
            built, result = self.compile("g++", PLUGIN, "-shared", "-fPIC", f'-DNAME="{name}"')
            self.assertEqual(result.returncode, 0, result.stderr)
            plugins[name] = built.rename(self.scratch / f"{name}.so")
        program, result = self.compile("g++", HOST, "-ldl")
        self.assertEqual(result.returncode, 0, result.stderr)
        names = ["First", "Second", "First", "Third", "Second"]
        result = self.run_program(program, f"{self.log}", *[plugins[name] for name in names])
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = [line.split(" NL.EVNT=")[1].split() for line in self.log.read_text().splitlines()]
        self.assertEqual([(fields[0], fields[-1]) for fields in lines if fields[0].endswith(".end")],
                         [(f"{name}.end", f"I={i}") for i, name in enumerate(names, 2)])

    def test_wrong_uses_do_not_compile(self):
        text = "#include <netlogger.hpp>\nusing namespace netlogger::literals;\n"
        for use, _ in WRONG:
            text += f"void wrong(netlogger::log &log) {{ {use} }}\n".replace("wrong", f"wrong{text.count('wrong')}")
        _, result = self.compile("g++", text, "-fsyntax-only")
        self.assertNotEqual(result.returncode, 0)
        for use, said in WRONG:
            with self.subTest(use=use):
                self.assertIn(said, result.stderr)
        self.assertGreaterEqual(result.stderr.count("cannot be logged"), 2)


if __name__ == "__main__":
    support.main()
