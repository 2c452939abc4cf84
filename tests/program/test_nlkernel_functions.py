"""nlkernel records calls of the kernel's functions, reads them from other programs' files, and reports and draws their
callers."""
import datetime
import json
import os
import re
import resource
import shlex
import shutil
import struct
import subprocess
import unittest

import guest
import support

# The sums of the calls below: (caller, function): calls.
CALLS = {("entry", "vfs_read"): 5, ("vfs_read", "tcp_recvmsg"): 4, ("vfs_read", "lock"): 5, ("tcp_recvmsg", "lock"): 8}
TRACE = """# tracer: function
#
# entries-in-buffer/entries-written: 22/22   #P:1
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
"""
GRAPH = """# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 0)   0.100 us    |  } /* left_over */
 0)               |  vfs_read() {
 0)   1.250 us    |    lock();
 0)               |    /* sched_waking: comm=x pid=1 prio=120 target_cpu=000 */
 1)               |  softirq [mod]() {
 0)               |    tcp_recvmsg(sk=0x1, n=2) {
 0) + 10.000 us   |      lock();
 1)   0.500 us    |    lock();
 1)   2.000 us    |  }
 0) ! 120.500 us  |    }
 0) ! 130.000 us  |  }
 ------------------------------------------
 0)   a b-c-12    =>   d-13
 ------------------------------------------
 0)   3.000 us    |    lock();
"""


def calls():
    return [pair for pair, count in CALLS.items() for _ in range(count)]


class Functions(support.Case):
    def setUp(self):
        super().setUp()
        self.nlkernel = support.program("nlkernel/nlkernel")

    def write(self, name, text):
        path = self.scratch / name
        path.write_text(text)
        return path

    def log(self):
        return self.write("calls.log", "".join(
            f"DATE=20260101000000.{i:06d} HOST=h PROG=p LVL=System NL.EVNT=ftrace.function CPU=0 PID=1 TID=1 FUNCTION={function} CALLER={caller}\n"
            for i, (caller, function) in enumerate(calls())))

    def report(self, *arguments, status=0, **options):
        result = self.run_program(self.nlkernel, "calls", "--top", "0", "--json", *arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        return json.loads(result.stdout) if status == 0 else result.stderr

    def edges(self, report):
        return {(c["function"], f["function"]): c["calls"] for f in report["list"] for c in f["callers"]}

    def graph(self, *arguments, status=0):
        result = self.run_program(self.nlkernel, "graph", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stderr

    def dot(self, *arguments):
        """Returns ({function: color}, {(caller, function): calls}) as drawn."""
        path = self.scratch / "calls.dot"
        self.graph("-o", path, *arguments)
        text = path.read_text()
        nodes = {n.strip('"'): c for n, c in re.findall(r'^\t("?[\w.]+"?)\t\[fillcolor="(#\w+)"', text, re.M)}
        edges = {(a.strip('"'), b.strip('"')): l for a, b, l in re.findall(r'^\t("?[\w.]+"?) -> ("?[\w.]+"?)\t\[.*?label="?([^",]+)', text, re.M | re.S)}
        return nodes, edges


class Sources(Functions):
    def assert_calls(self, *arguments, **options):
        found = self.report(*arguments, **options)
        self.assertEqual(self.edges(found), CALLS)
        self.assertEqual(found["calls"], sum(CALLS.values()))

    def test_logs(self):
        self.assert_calls(self.log())
        self.assert_calls(input=self.log().read_text())
        nlb = self.scratch / "calls.nlb"
        self.assertEqual(self.run_program(support.program("nltools/nlconv"), "--format", "nlb", "-o", nlb, self.log()).returncode, 0)
        self.assert_calls(nlb)
        self.assertEqual(self.report(nlb, self.log())["calls"], 2 * sum(CALLS.values()))

    def test_a_function_with_very_many_callers(self):
        """Time grows with the number of callers, not with its square."""
        def seconds(count):
            text = "".join(f"DATE=20260101000000 NL.EVNT=ftrace.function FUNCTION=lock CALLER=f{i}\n" for i in range(count))
            path, before = self.write(f"{count}.log", text), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.assertEqual(len(self.edges(self.report(path))), count)
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        few = seconds(10000)
        self.assertLess(seconds(80000), 20 * few + 1)

    def test_selected_calls(self):
        path = self.scratch / "trace.dat"
        path.write_bytes(self.trace_dat(100))
        for source in self.log(), path:
            self.assertEqual(set(self.edges(self.report("--where", "FUNCTION == lock && CALLER == vfs_read", source))), {("vfs_read", "lock")})
        self.assertEqual(self.report("--until", "2026-01-01T00:00:00.000005", self.log())["calls"], 5)
        self.assertEqual(self.report("--since", "2026-01-01T00:00:00.000005", self.log())["calls"], sum(CALLS.values()) - 5)
        self.assertIn("no function calls found", self.report("--where", "FUNCTION == nosuch", path, status=1))

    def test_text_of_trace(self):
        for head, line in (
                (TRACE, "            bash-1977    [000] d..1. 17284.{i:06d}: {f} <-{c}\n"), ("", "  a-b [001] c-12 (   12) [003] .... 1.{i:06d}: {f} <-{c}\n"),
                ("", "  <idle>-0     (-------) [003] 1.{i:06d}: {f} <-{c}\n"), ("cpus=2\n", "  trace-cmd-5 [001] 1.{i:06d}: function:             {f} <-- {c}\n")):
            with self.subTest(line):
                text = head + "".join(line.format(i=i, f=f, c=c) for i, (c, f) in enumerate(calls()))
                self.assert_calls(self.write("trace", text))
                self.assert_calls(input=text)

    def test_text_of_the_function_graph(self):
        with_more = re.sub(r"(?m)^( ([01])\))(.*\|)", r"  12.345678 |  \1 bash-7\2 |\3", GRAPH.partition(" ---")[0])
        for text, locks in ((GRAPH, 4), (with_more, 3)):
            found = self.report(self.write("trace", text))
            self.assertEqual(self.edges(found), {("vfs_read", "lock"): 1, ("vfs_read", "tcp_recvmsg"): 1, ("tcp_recvmsg", "lock"): 1, ("softirq", "lock"): 1})
            functions = {f["function"]: f for f in found["list"]}
            self.assertEqual(functions["lock"]["calls"], locks)
            self.assertEqual(functions["tcp_recvmsg"]["time_ns"], 120500)
            self.assertEqual(functions["lock"]["time_ns"], 11750 + 3000 * (locks - 3))

    def test_threads_that_move(self):
        """The caller is the function that the thread entered before, on any CPU. After a loss, the caller is unknown."""
        def log(*steps):
            return self.write("graph.log", "".join(
                f"DATE=20260101000000.{us:06d} HOST=h PROG=p LVL=System NL.EVNT={'NetLogger.Lost COUNT=3 CPU=0' if f is None else f'ftrace.funcgraph_entry CPU={cpu} PID=1 TID={tid} FUNCTION={f} DEPTH={depth}'}\n"
                for us, cpu, tid, depth, f in steps))
        first, second = [(1, 0, 7, 0, "read"), (2, 0, 7, 1, "wait"), (3, 0, 8, 0, "write"), (4, 0, 8, 1, "lock")], [(5, 1, 7, 2, "wake"), (6, 1, 7, 1, "copy")]
        wanted = {("read", "wait"): 1, ("write", "lock"): 1, ("wait", "wake"): 1, ("read", "copy"): 1}
        self.assertEqual(self.edges(self.report(log(*first, *second))), wanted)
        self.assertEqual(self.edges(self.report(log(*second, *first))), wanted)
        lost = self.report(log(*second, *first, (5, 0, 0, 0, None)))
        self.assertEqual((self.edges(lost), lost["lost"]), ({("read", "wait"): 1, ("write", "lock"): 1}, 3))

    def test_what_perf_script_prints(self):
        samples = "".join(
            f" cc1   489 [000] 100.{i:06d}:     250000 cpu-clock:pppH: \n" + "".join(f"\tffffffff8171a79{n} {s}+0x55 ([kernel.kallsyms])\n" for n, s in enumerate(chain)) + "\n"
            for i, chain in enumerate([["lock", "tcp_recvmsg", "vfs_read"]] * 3 + [["lock", "vfs_read"]]))
        self.assertEqual(self.edges(self.report(self.write("perf", samples))), {("vfs_read", "tcp_recvmsg"): 3, ("tcp_recvmsg", "lock"): 3, ("vfs_read", "lock"): 1})
        found = self.report(input=" cc1   489 [000] 100.5: ftrace:function:  tcp_recvmsg <-- vfs_read\n")
        self.assertEqual(self.edges(found), {("vfs_read", "tcp_recvmsg"): 1})

    def trace_dat(self, calls_count=100):
        """Returns a file trace.dat of version 6 with calls of one function."""
        page_header = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n" \
                      b"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
        function = b"name: function\nID: 1\nformat:\n" + b"".join(
            b"\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n%s" % (*f, b"\n" * (f[1] == 4)) for f in (
                (b"unsigned short common_type", 0, 2, 0), (b"unsigned char common_flags", 2, 1, 0), (b"unsigned char common_preempt_count", 3, 1, 0),
                (b"int common_pid", 4, 4, 1), (b"unsigned long ip", 8, 8, 0), (b"unsigned long parent_ip", 16, 8, 0))) + b'\nprint fmt: ""\n'
        symbols = b"ffffffff81000000 T _text\nffffffff81000100 T vfs_read\nffffffff81000200 t lock\t[mod]\nffffffff81000300 D data\n"
        sized = lambda size, data: struct.pack(size, len(data)) + data
        head = b"\x17\x08\x44tracing6\0\0\x08" + struct.pack("<I", 4096) + b"header_page\0" + sized("<Q", page_header) + b"header_event\0" + sized("<Q", b"x")
        head += struct.pack("<I", 1) + sized("<Q", function) + struct.pack("<I", 0) + sized("<I", symbols) + sized("<I", b"") + sized("<Q", b"1 x\n")
        head += struct.pack("<I", 1) + b"options  \0" + struct.pack("<H", 0) + b"flyrecord\0"
        event = struct.pack("<I", 6 | 100 << 5) + struct.pack("<HBBiQQ", 1, 0, 0, 7, 0xffffffff81000204, 0xffffffff81000150)
        pages = b""
        while calls_count > 0:
            count = min(calls_count, 4080 // len(event))
            pages += (struct.pack("<QQ", 10**9, count * len(event)) + event * count).ljust(4096, b"\0")
            calls_count -= count
        return head + struct.pack("<QQ", len(head) + 16, len(pages)) + pages

    def test_trace_dat(self):
        data = self.trace_dat(1000)
        path = self.scratch / "trace.dat"
        path.write_bytes(data)
        self.assertEqual(self.edges(self.report(path)), {("vfs_read", "lock"): 1000})

    def test_damaged_trace_dat(self):
        data = self.trace_dat(5)
        path = self.scratch / "trace.dat"
        for size in list(range(10, 1100, 37)) + [len(data) - 4000]:
            path.write_bytes(data[:size])
            self.assertIn("trace.dat: ", self.report(path, status=1))
        for what, said in ((data.replace(b"tracing6\0\0", b"tracing6\0\1"), "unsupported byte order"), (data.replace(b"tracing6", b"tracing9"), "unsupported version"),
                           (data.replace(b"offset:16;\tsize:4080", b"offset:99;\tsize:4080"), "invalid description of pages"),
                           (data.replace(b"commit;\toffset:8;\tsize:8", b"commit;\toffset:0;\tsize:4").replace(b"offset:16;", b"offset:04;"), "invalid description of pages"),
                           ((support.SOURCE / "tests/fuzz/corpus/trace_dat/version_7_of_no_layout").read_bytes(), "invalid description of pages")):
            path.write_bytes(what)
            self.assertIn(said, self.report(path, status=1))

    def test_nothing_of_calls(self):
        self.assertIn("no function calls found", self.report(self.write("x", "DATE=20260101000000 PROG=p NL.EVNT=e\n"), status=1))
        self.assertIn("No such file", self.report(self.scratch / "none", status=1))
        bad = self.write("trace", TRACE + "  a-1 [000] 1.5: f <-g\nrubbish\n")
        self.assertIn("trace:8: ", self.report(bad, status=1))


class Pictures(Functions):
    def test_hot_is_redder(self):
        nodes, edges = self.dot(self.log())
        self.assertEqual(edges, {pair: str(count) for pair, count in CALLS.items()})
        self.assertEqual(set(nodes), {"entry", "vfs_read", "tcp_recvmsg", "lock"})
        green = {name: int(color[3:5], 16) for name, color in nodes.items()}
        self.assertLess(green["lock"], green["vfs_read"])
        self.assertLess(green["vfs_read"], green["entry"])

    def test_what_is_left_out(self):
        self.assertEqual(set(self.dot("--min-count", "8", self.log())[0]), {"vfs_read", "tcp_recvmsg", "lock"})
        self.assertEqual(set(self.dot("--top", "1", self.log())[0]), {"lock"})
        self.assertIn("no function with at least 1000 calls", self.graph("--min-count", "1000", "-o", self.scratch / "x.dot", self.log(), status=1))
        self.assertFalse((self.scratch / "x.dot").exists())

    def test_formats(self):
        starts = {"pdf": b"%PDF", "svg": b"<?xml", "png": b"\x89PNG", "dot": b"digraph"}
        for name, start in starts.items():
            for command in (["graph", "-o"], ["calls", "--plot"])[:2 if name in ("svg", "png") else 1]:
                path = self.scratch / f"calls.{name}"
                path.unlink(missing_ok=True)
                result = self.run_program(self.nlkernel, *command, path, self.log())
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(path.read_bytes().startswith(start))
        self.assertIn("must end in .png or .svg", self.report("--plot", self.scratch / "calls.pdf", self.log(), status=1))
        self.assertIn("must end in .pdf, .svg, .png or .dot", self.graph("-o", "calls.gif", self.log(), status=2))
        self.assertIn("/nonexistent/x.svg: No such file or directory", self.graph("-o", "/nonexistent/x.svg", self.log(), status=1))

    def test_a_picture_takes_its_name_when_it_is_whole(self):
        """Files in the same directory have no effect: nlkernel opens no other file, and leaves no file."""
        for name in "svg", "dot":
            path = self.scratch / "folder" / f"calls.{name}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("old")
            path.chmod(0o640)
            os.link(path, self.scratch / f"old.{name}")
            self.graph("-o", path, self.log())
            self.assertEqual((self.scratch / f"old.{name}").read_text(), "old")
            self.assertIn("tcp_recvmsg", path.read_text())
            self.assertEqual(path.stat().st_mode & 0o777, 0o640)
        self.assertEqual(sorted(p.name for p in path.parent.iterdir()), ["calls.dot", "calls.svg"])

    def test_names_that_mean_something_elsewhere(self):
        log = self.write("x.log", 'DATE=20260101000000 PROG=p NL.EVNT=ftrace.function FUNCTION="a<b>&\\"c" CALLER="{x|y}"\n')
        self.graph("-o", self.scratch / "x.svg", log)
        self.assertIn("a&lt;b&gt;&amp;", (self.scratch / "x.svg").read_text())

    def test_json_of_any_bytes(self):
        log = self.scratch / "x.log"
        log.write_bytes('DATE=20260101000000 PROG=p NL.EVNT=ftrace.function FUNCTION="grüße€\x7f" CALLER="a'.encode() + b'\xff\xc3"\n')
        found = self.report(log)
        self.assertEqual(self.edges(found), {("a\ufffd\ufffd", "grüße€\x7f"): 1})
        self.assertIn('"grüße€', self.run_program(self.nlkernel, "calls", "--json", log).stdout)

    def test_text(self):
        result = self.run_program(self.nlkernel, "calls", self.log())
        self.assertRegex(result.stdout, r"^22 calls of 4 functions in 0.000 s; 3 shown\n")
        self.assertRegex(result.stdout, r"(?m)^ +13  59.1 %  lock +tcp_recvmsg 62 %, vfs_read 38 %$")


class Symbols(Functions):
    SOURCES = {"net/ipv4/tcp.c": "int tcp_recvmsg(int a) { return a * 2; }\nstatic int __attribute__((noinline)) lock(int a) { return a; }\nint use(int a) { return lock(a); }\n",
               "kernel/sched/core.c": "static int __attribute__((noinline)) lock(int a) { return a + 1; }\nint sched(int a) { return lock(a); }\n",
               "fs/read_write.c": "int tcp_recvmsg(int); int use(int); int sched(int);\nint main(void) { return tcp_recvmsg(1) + use(1) + sched(1); }\n"}

    def vmlinux(self, *options, folder=None):
        source = self.scratch / "linux"
        for name, text in self.SOURCES.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        folder = folder or source
        folder.mkdir(exist_ok=True)
        program = self.scratch / "vmlinux"
        result = self.run_program(*shlex.split(support.CC), "-g", "-O1", *options, "-o", program, *(os.path.relpath(source / n, folder) for n in self.SOURCES), cwd=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return program

    def map(self, program, *arguments, status=0):
        result = self.run_program(self.nlkernel, "symbols", program, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def test_map(self):
        wanted = "lock\tkernel/sched/core.c:1\nlock\tnet/ipv4/tcp.c:2\nmain\tfs/read_write.c:2\nsched\tkernel/sched/core.c:2\ntcp_recvmsg\tnet/ipv4/tcp.c:1\nuse\tnet/ipv4/tcp.c:3\n"
        self.assertEqual(self.map(self.vmlinux()), wanted)
        # Distributions compile the kernel outside the source directory.
        self.assertEqual(self.map(self.vmlinux(folder=self.scratch / "out")), wanted)

    def test_units_that_say_other_folders(self):
        """As in Debian's vmlinux: most units name a relative directory, and assembler units their real one."""
        self.vmlinux()
        source, elsewhere = self.scratch / "linux", self.scratch / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "entry.c").write_text("int entry(void) { return 1; }\n")
        compiler, objects = shlex.split(support.CC), []
        for i, (folder, name, options) in enumerate([(source, name, [f"-fdebug-prefix-map={source}=debian/build"]) for name in self.SOURCES] + [(elsewhere, "entry.c", [])]):
            objects.append(self.scratch / f"{i}.o")
            result = self.run_program(*compiler, "-g", "-O1", "-c", *options, "-o", objects[-1], name, cwd=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
        program = self.scratch / "vmlinux2"
        result = self.run_program(*compiler, "-o", program, *objects)
        self.assertEqual(result.returncode, 0, result.stderr)
        found = dict(line.split("\t") for line in self.map(program).splitlines())
        self.assertEqual((found["main"], found["use"]), ("fs/read_write.c:2", "net/ipv4/tcp.c:3"))
        self.assertRegex(found["entry"], "^/.*/elsewhere/entry.c:1$")

    def test_functions_of_some_files(self):
        path = self.scratch / "kernel.map"
        self.map(self.vmlinux(), "-o", path)
        for symbols in (path, self.scratch / "vmlinux"):
            nodes, edges = self.dot("--symbols", symbols, "--filter-filepath", "net,kernel/sched", self.log())
            self.assertEqual((set(nodes), edges), ({"tcp_recvmsg", "lock"}, {("tcp_recvmsg", "lock"): "8"}))
        self.assertEqual(set(self.dot("--symbols", path, "--filter-filepath", "kernel/sched/", self.log())[0]), {"lock"})
        self.assertIn("the log contains no function in files below ne", self.graph("--symbols", path, "--filter-filepath", "ne", "-o", "x.dot", self.log(), status=1))
        found = self.report("--symbols", path, "--filter-filepath", "net/ipv4/tcp.c", self.log())
        self.assertEqual({f["function"]: f["file"] for f in found["list"]}, {"tcp_recvmsg": "net/ipv4/tcp.c", "lock": "net/ipv4/tcp.c"})

    def test_what_compilers_append(self):
        path = self.write("kernel.map", "lock\tkernel/locking/mutex.c:7\n")
        log = self.write("x.log", "DATE=20260101000000 PROG=p NL.EVNT=ftrace.function FUNCTION=lock.isra.0 CALLER=f\n")
        self.assertEqual(self.report("--symbols", path, log)["list"][0]["file"], "kernel/locking/mutex.c")

    def test_what_is_no_map(self):
        self.assertIn("has no DWARF", self.map(self.vmlinux("-s"), status=1))
        self.assertIn("the file is not an ELF file", self.map(self.write("x", "no map\n"), status=1))
        self.assertIn("No such file", self.map(self.scratch / "none", status=1))
        (self.scratch / "cut").write_bytes(self.vmlinux().read_bytes()[:3000])
        self.map(self.scratch / "cut", status=1)
        result = self.run_program(self.nlkernel, "graph", "--filter-filepath", "net", "-o", self.scratch / "x.dot", self.log())
        self.assertRegex(result.stderr, "--symbols FILE|none of the 4 functions")


class Recording(Functions):
    def test_where_it_is_refused(self):
        """On this kernel, nlkernel either records calls or prints why it cannot."""
        log = self.scratch / "k.nlb"
        result = self.run_program(self.nlkernel, "record", "--functions", "--filter-function", "vfs_*", "--duration", "200ms", "-o", log)
        if result.returncode == 0:
            return
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "function tracer|CAP_|tracefs|kallsyms|--filter-function")

    def test_wrong_use(self):
        for arguments, words in ((["--filter-function", "x", "-e", "sched"], "--filter-function requires --functions"), (["--functions", "--filter-function", ""], "--filter-function: the value is empty"),
                                 (["--functions=x"], '--functions: "x" is not one of graph|calls'), (["--functions", "--cpu", "0x3"], "not a list of CPUs")):
            result = self.run_program(self.nlkernel, "record", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(words, result.stderr)

    def assert_times(self, log, times):
        """A program's readings of a clock that is set during the recording are between the surrounding calls of gettid (186)."""
        result = self.run_program(support.program("nltools/nlconv"), "--format", "json", log)
        records = [json.loads(line) for line in result.stdout.splitlines()]
        calls = [r["ts"] for r in records if r.get("ID") == 186]
        seconds = lambda ts: datetime.datetime.fromisoformat(ts[:19] + "+00:00").timestamp() * 10**9 + int(ts[20:].rstrip("Z").ljust(9, "0"))
        calls = [seconds(ts) for ts in calls]
        self.assertEqual(len(calls), 2 * len(times))
        self.assertGreater(max(times) - min(times), 10**9 * 3600)  # the clock was set by more than an hour
        for i, time_ns in enumerate(times):
            self.assertLess(calls[2 * i] - 10**6, time_ns)
            self.assertGreater(calls[2 * i + 1] + 10**6, time_ns)
        self.assertGreaterEqual(sum(r["event"] == "NetLogger.Clock" for r in records), 3)

    def assert_graph(self, before, after, killed, mended, said):
        """The guest's logs contain the calls with their durations, and the previous state of the kernel's main instance was restored: by the recording itself, or after SIGKILL by the next recording."""
        found = self.report(self.scratch / "g.nlb")
        functions = {f["function"]: f for f in found["list"]}
        self.assertEqual(found["lost"], 0)
        self.assertEqual(self.edges(found)["ksys_write", "vfs_write"], 200)
        sends = [calls for (caller, function), calls in self.edges(found).items()
                 if caller in ("sock_sendmsg", "__sock_sendmsg") and function == "inet_sendmsg"]  # depends on the kernel's version
        self.assertEqual(sends, [200])
        for name in "udp_sendmsg", "udp_recvmsg", "vfs_write":
            self.assertEqual(functions[name]["calls"], 200)
        self.assertGreater(functions["vfs_write"]["time_ns"], 0)
        self.assertGreater(functions["ksys_write"]["time_ns"], functions["vfs_write"]["time_ns"])
        text = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", self.scratch / "g.nlb").stdout
        self.assertEqual(sum("sys_enter" in line and " ID=44 " in line for line in text.splitlines()), 200)  # recording of events continues
        functions = {f["function"]: f for f in self.report(self.scratch / "gu.nlb")["list"]}
        self.assertTrue(all(name.startswith("udp_") for name in functions), functions)
        self.assertEqual(functions["udp_sendmsg"]["calls"], 200)
        size = r"buffer_size_kb: (?:\d+ \(expanded: )?(\d+)\)?\n"  # not used yet, or in whole pages
        sizes = [int(re.search(size, text)[1]) for text in (before, after, mended)]
        self.assertLess(max(sizes) - min(sizes), 8)
        before, after, mended = (re.sub(size, "", text) for text in (before, after, mended))
        self.assertIn("current_tracer: nop\n", before)
        self.assertEqual(after, before)
        self.assertIn("current_tracer: function_graph\n", killed)
        self.assertIn("tracing_on: 0\n", killed)
        self.assertEqual(mended, before)
        self.assertRegex(said, r"which are in use: .*current_tracer is function; use --functions=calls")

    @support.long
    def test_in_a_guest(self):
        """nlkernel records in a guest with Debian's kernel, and draws the result on this host."""
        machine = guest.Guest(self)
        machine.add(self.nlkernel)
        record = ["/bin/nlkernel", "record", "--functions"]
        work = ["--", "/init", "work", "200"]
        commands = [[*record, "--only-command", "-o", "/k.nlb", *work],
                    [*record, "--filter-function", "udp*", "--filter-function", "!udp_recvmsg", "--cpu", "0", "-o", "/u.log", *work],
                    [*record, "--filter-function", "no_such_function*", "-o", "/n.log", *work],
                    [*record, "-e", "raw_syscalls:sys_enter", "--only-command", "--where", "FUNCTION == udp_sendmsg || ID == 45", "-o", "/e.log", *work]]
        commands.append(["/bin/nlkernel", "record", "-e", "raw_syscalls:sys_enter", "--only-command", "-o", "/c.nlb", "--", "/init", "clock", "/c.txt"])
        trace_cmd = shutil.which("trace-cmd")
        if trace_cmd:
            machine.add(trace_cmd)
            commands.append([f"/bin/{os.path.basename(trace_cmd)}", "record", "-q", "-p", "function", "-l", "udp*", "-F", "-o", "/t.dat", *work[1:]])
        graph = ["/bin/nlkernel", "record", "--functions=graph"]
        states = [f"/s{n}.txt" for n in range(4)]
        state = [["/init", "state", path] for path in states]
        tracer = "/sys/kernel/tracing/current_tracer"
        commands += [state[0], [*graph, "--only-command", "-e", "raw_syscalls:sys_enter", "-o", "/g.nlb", *work], state[1],
                     [*graph, "--filter-function", "udp_*", "--only-command", "-o", "/gu.nlb", *work],
                     ["/init", "kill", "/x.nlb", *graph, "--filter-function", "vfs_*", "-o", "/x.nlb"], state[2],
                     ["/bin/nlkernel", "record", "-q", "-e", "sched:sched_switch", "--duration", "100ms", "-o", "/dev/null"], state[3],
                     ["/init", "put", tracer, "function"], [*graph, "--duration", "100ms", "-o", "/y.nlb"], ["/init", "put", tracer, "nop"]]
        files = machine.run(commands, ["/k.nlb", "/u.log", "/n.log", "/e.log", "/t.dat", "/c.nlb", "/c.txt", "/g.nlb", "/gu.nlb", *states], seconds=600)
        for name, data in files.items():
            (self.scratch / name.strip("/")).write_bytes(data)
        self.assertIn("/k.nlb", files, machine.said)
        found = self.report(self.scratch / "k.nlb")
        edges = self.edges(found)
        self.assertGreater(found["calls"], 10000)
        self.assertEqual(found["lost"], 0)
        self.assertEqual(edges["ksys_write", "vfs_write"], 200)
        self.assertEqual({f["function"]: f["calls"] for f in found["list"]}["udp_sendmsg"], 200)
        functions = {f["function"]: f["calls"] for f in self.report(self.scratch / "u.log")["list"]}
        self.assertTrue(all(name.startswith("udp") for name in functions), functions)
        self.assertEqual(functions["udp_sendmsg"], 200)
        self.assertNotIn("udp_recvmsg", functions)
        self.assertIn("--filter-function no_such_function*: no traceable function matches", machine.said)
        log = files["/e.log"].decode().splitlines()
        self.assertEqual(sum("FUNCTION=udp_sendmsg " in line for line in log), 200)
        self.assertEqual(sum("NL.EVNT=raw_syscalls.sys_enter" in line and " ID=45 " in line for line in log), 200)
        if trace_cmd:
            functions = {f["function"]: f["calls"] for f in self.report(self.scratch / "t.dat")["list"]}
            # Tracing begins while the program already works: for example, between the two ends of a packet.
            self.assertGreater(functions["udp_sendmsg"], 0)
            self.assertIn(functions["udp_recvmsg"] - functions["udp_sendmsg"], (0, 1))
        self.assert_graph(*(files.get(path, b"").decode() for path in states), machine.said)
        self.assert_times(self.scratch / "c.nlb", [int(line) for line in files["/c.txt"].split()])
        for name in ("pdf", "svg", "png"):
            self.graph("-o", self.scratch / f"calls.{name}", self.scratch / "k.nlb")
        self.assertIn(">vfs_write<", (self.scratch / "calls.svg").read_text())


support.main()
