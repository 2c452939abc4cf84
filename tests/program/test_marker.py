"""Markers from outside: the activation file of a running program, loaded and unloaded libraries, tracers."""
import os
import re
import shutil
import subprocess

import support

INCLUDE = support.SOURCE / "libnetlogger" / "include"
LIBRARY = support.BUILD / "libnetlogger" / ".libs"

# Passes two markers and logs an event in a loop, until its input ends. A second argument
# limits the number of repetitions.
PROGRAM = r"""
#include <netlogger.h>
#include <poll.h>
#include <stdlib.h>

static void pass(long i, const char *name)
{
    NL_MARKER(disk_read, "BLOCK.ID", i, "NAME", name);
    NL_MARKER(disk_write, "BLOCK.ID", i, "PART", 0.5);
}

int main(int argc, char **argv)
{
    nl_log *log = nl_open("prog", argv[1]);
    long times = argc > 2 ? atol(argv[2]) : -1;
    struct pollfd input = {0, POLLIN, 0};
    for (long i = 0; times < 0 ? poll(&input, 1, 1) == 0 : i < times; i++) {
        pass(i, argv[0]);
        NL_EVENT(log, NL_USAGE, "Step", "I", i);
        NL_EVENT(log, NL_DEBUG, "Detail", "I", i);
    }
    return nl_close(log) == NL_OK ? 0 : 1;
}
"""

PLUGIN = r"""
#include <netlogger.h>

void plugin_pass(void);
void plugin_pass(void)
{
    NL_MARKER(plugin_read, "N", 1);
    NL_MARKER(disk_read, "N", 2);
}
"""

# Loads and unloads the plugin while a probe waits for its markers.
HOST = r"""
#include <netlogger.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static size_t places;

static void count_place(void *user, const nl_marker_info *marker)
{
    (void)user;
    places += strcmp(marker->name, "plugin_read") == 0;
}

static size_t listed(void)
{
    places = 0;
    nl_marker_list(count_place, NULL);
    return places;
}

static nl_probe attach_count(const char *pattern)
{
    nl_probe_options options = {0};
    options.kind = NL_PROBE_COUNT;
    options.pattern = pattern;
    return nl_marker_attach(&options);
}

static nl_probe wanted;

static void keep_wanted(void *user, const nl_probe_info *probe)
{
    if (probe->probe == wanted)
        *(nl_probe_info *)user = *probe;
}

static nl_probe_info results_of(nl_probe probe)
{
    nl_probe_info info = {0};
    wanted = probe;
    nl_probe_list(keep_wanted, &info);
    return info;
}

int main(int argc, char **argv)
{
    (void)argc;
    nl_probe read = attach_count("*_read"), plugin = attach_count("plugin_*");
    nl_probe_info info;
    for (int i = 0; i < 20; i++) {
        NL_MARKER(disk_read, "N", i);
        if (listed() != 0)
            return printf("listed before it is loaded\n");
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL)
            return printf("%s\n", dlerror());
        void (*pass)(void) = (void (*)(void))dlsym(library, "plugin_pass");
        if (listed() != 1)
            return printf("not listed\n");
        pass();
        nl_probe later = attach_count("plugin_read");
        pass();
        nl_marker_detach(plugin);
        pass();
        plugin = attach_count("plugin_*");
        info = results_of(later);
        if (info.count != 2 || info.markers != 1)
            return printf("%llu passes\n", (unsigned long long)info.count);
        if (i % 2 == 0)
            nl_marker_detach(later);
        dlclose(library);
        if (dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) != NULL)
            return printf("not unloaded\n");
        if (i % 2 == 1)
            nl_marker_detach(later);
    }
    info = results_of(read);
    printf("%llu\n", (unsigned long long)info.count);
    return 0;
}
"""

# Places of markers in C++ headers: inline functions, templates, lambdas, namespaces, several units.
CPP = r"""
#include <netlogger.h>
#include <cstdio>
namespace { void in_unnamed(int n) { NL_MARKER(cpp_unnamed, "N", n); } }
namespace deep {
inline void in_inline(int n) { NL_MARKER(cpp_inline, "N", n, "TEXT", "x"); }
template <typename T> void in_template(T n) { NL_MARKER(cpp_template, "N", n); }
struct thing { thing() { NL_MARKER(cpp_constructor); } };
}
#ifdef SECOND
void second() { in_unnamed(2); deep::in_inline(2); deep::in_template(2.5); deep::in_template(3u); deep::thing t; }
#else
void second();
static unsigned long places, passes;
static nl_probe attach_count(const char *pattern)
{
    nl_probe_options options = {};
    options.kind = NL_PROBE_COUNT;
    options.pattern = pattern;
    return nl_marker_attach(&options);
}
int main()
{
    nl_probe probe = attach_count("cpp_*");
    in_unnamed(1);
    deep::in_inline(1);
    deep::in_template(1);
    [](bool b) { NL_MARKER(cpp_lambda, "B", b, "BYTES", NL_BYTES("ab", 2), "F", 1.5f, "L", 2.0L, "C", 'c'); }(true);
    second();
    nl_probe_list([](void *, const nl_probe_info *info) { passes += info->count; }, nullptr);
    nl_marker_list([](void *, const nl_marker_info *) { places++; }, nullptr);
    std::printf("%llu %lu\n", static_cast<unsigned long long>(passes), places);
    return nl_marker_detach(probe);
}
#endif
"""


def compilers():
    """The C compiler of the build, and the others that are here."""
    return list(dict.fromkeys([support.CC, *filter(shutil.which, ("gcc", "clang"))]))


class Marker(support.Case):
    def setUp(self):
        super().setUp()
        if not (LIBRARY / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")

    def compile(self, name, source, *flags, compiler=support.CC, suffix=".c"):
        path = self.scratch / (name + suffix)
        path.write_text(source)
        return self.build(name, compiler, path, *flags)

    def build(self, name, compiler, *arguments):
        output = self.scratch / name
        command = [*compiler.split(), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", *arguments, "-o", output,
                   f"-L{LIBRARY}", f"-Wl,-rpath,{LIBRARY}", "-lnetlogger", "-ldl"]
        done = self.run_program(*command)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return output

    # ---- the activation file ----

    def begin(self, options="", **environment):
        self.log, self.file = self.scratch / "out.log", self.scratch / "activation"
        self.process = self.start(self.compile("prog", PROGRAM), f"file://{self.log}?{options}", stdin=subprocess.PIPE,
                                  env={**os.environ, **environment})

    def finish(self):
        self.process.stdin.close()
        self.assertEqual(self.process.wait(60), 0)
        return self.log.read_text()

    def replace(self, text):
        aside = self.scratch / "aside"
        aside.write_text(text)
        aside.rename(self.file)

    def write_over(self, text):
        """Overwrites the file with one write. The library applies even a half-written file."""
        with open(self.file, "r+") as file:
            file.write(text.ljust(self.file.stat().st_size, "\n"))

    def wait_for(self, text, after=0, absent=False):
        """Waits until the log has the text after its first bytes (or, if absent is true, has grown without the text). Returns the
        log's size."""
        def there():
            log = self.log.read_text()[after:] if self.log.exists() else ""
            if absent:
                tail = log.splitlines()[-20:]
                return len(tail) == 20 and not any(text in line for line in tail)
            return text in log
        support.wait_until(there, 30, f"{'no ' if absent else ''}{text} in the log")
        return len(self.log.read_text())

    def test_the_file_is_watched(self):
        self.begin(f"activation={self.scratch}/activation")
        at = self.wait_for("Detail")
        self.assertNotIn("disk_read", self.log.read_text())
        # The file appears.
        self.replace("marker disk_read log System\nmarker disk_* count\n")
        at = self.wait_for(" LVL=System NL.EVNT=disk_read BLOCK.ID=", at)
        # The file is replaced: probes in both versions stay.
        self.replace("marker disk_* count\nlevel Usage\nevent Step off\nmarker disk_read time disk_write\n")
        at = self.wait_for("DONE=4 UNDONE=1", at)
        # The file is overwritten, and no longer contains the probes.
        self.write_over("marker disk_* count\nmarker disk_write log\n")
        at = self.wait_for("NL.EVNT=disk_write", at)
        self.wait_for("NL.EVNT=Step", at)
        at = self.wait_for("NL.EVNT=Detail", at)
        # The file is truncated.
        self.file.write_text("")
        at = self.wait_for("DONE=0 UNDONE=2", at)
        self.wait_for("disk_", at, absent=True)
        # Invalid lines are reported; the valid lines count.
        self.write_over("marker disk_write count\nfly\nlevel Loud\n")
        at = self.wait_for("NL.EVNT=NetLogger.Activation.Error", at)
        # The file is removed.
        self.file.unlink()
        at = self.wait_for("DONE=0 UNDONE=1", at)
        log = self.finish()
        self.assertRegex(log, r"LVL=Warning NL.EVNT=NetLogger.Activation.Error BY=\S+ MSG=\"line 2: unknown command .*line 3: ")
        counts = re.findall(r"NetLogger.Marker NAME=disk_\* COUNT=(\d+)\n", log)
        self.assertEqual(len(set(counts)), len(counts))
        self.assertEqual(sorted(counts, key=int), counts)
        self.assertRegex(log, r"NetLogger.Marker NAME=disk_read TO=disk_write COUNT=\d+ MIN.NS=\d+ MEAN.NS=\d+ MAX.NS=\d+ P50.NS=")
        self.assertRegex(log, r"NetLogger.Marker NAME=disk_write COUNT=\d+\n")

    def test_the_file_holds_from_the_first_event(self):
        (self.scratch / "activation").write_text("event Detail off\nmarker disk_read log\n")
        self.begin(NETLOGGER_ACTIVATION=str(self.scratch / "activation"))
        self.wait_for("NL.EVNT=Step")
        log = self.finish()
        self.assertNotIn("NL.EVNT=Detail", log)
        self.assertIn("NL.EVNT=disk_read BLOCK.ID=0 ", log)
        self.assertEqual(log.count("NL.EVNT=disk_read"), log.count("NL.EVNT=Step"))

    def test_the_destination_follows_the_file(self):
        other = self.scratch / "other.log"
        self.begin(f"append=no&activation={self.scratch}/activation")
        self.wait_for("NL.EVNT=Step")
        self.file.write_text(f"destination file://{other}\n")
        support.wait_until(lambda: other.exists() and "NL.EVNT=Step" in other.read_text(), 30)
        at = len(self.log.read_text())
        self.write_over(f"destination file://{self.scratch}/nowhere/at/all\n")
        support.wait_until(lambda: "NetLogger.Activation.Error" in other.read_text(), 30)
        self.file.unlink()
        self.wait_for("NL.EVNT=Step", at)
        log = self.finish() + other.read_text()
        steps = sorted(int(i) for i in re.findall(r"NL.EVNT=Step I=(\d+)", log))
        self.assertEqual(steps, list(range(len(steps))))

    def test_a_program_that_logs_nothing_is_activated(self):
        self.begin(f"activation={self.scratch}/activation", NETLOGGER_LEVEL="Emergency")
        self.file.write_text("level Debug\n")
        self.wait_for("NL.EVNT=Detail")
        self.finish()

    # ---- libraries ----

    def test_a_plugin_comes_and_goes(self):
        plugin = self.compile("plugin.so", PLUGIN, "-shared", "-fPIC")
        done = self.run_program(self.compile("host", HOST), plugin)
        self.assertEqual((done.stdout, done.returncode), (f"{20 * (1 + 3 * 2)}\n", 0))

    @support.long
    def test_cplusplus(self):
        built = 0
        for compiler in "g++", "clang++":
            for flags in ["-std=c++11", "-O0"], ["-std=c++20", "-fPIC"], ["-Os", "-flto", "-ffunction-sections"]:
                if shutil.which(compiler) is None or (compiler == "clang++" and "-flto" in flags):
                    continue
                for unit in "FIRST", "SECOND":
                    source = self.scratch / f"{unit}.cpp"
                    source.write_text(CPP)
                    done = self.run_program(compiler, "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{INCLUDE}", *flags,
                                            f"-D{unit}", "-c", source, "-o", self.scratch / f"{unit}.o")
                    self.assertEqual((done.returncode, done.stderr), (0, ""), (compiler, flags))
                program = self.build("cpp", compiler, *flags, self.scratch / "FIRST.o", self.scratch / "SECOND.o")
                done = self.run_program(program)
                count, places = done.stdout.split()
                self.assertEqual((count, done.returncode), ("9", 0), (compiler, flags))
                self.assertGreaterEqual(int(places), 5)
                built += 1
        if built == 0:
            self.skipTest("no C++ compiler")

    def test_a_wrong_marker_is_an_error(self):
        nine = ", ".join(f'"F{i}", {i}' for i in range(9))
        for bad in f"NL_MARKER(m, {nine})", 'NL_MARKER(m, "A")', 'NL_MARKER(m, "A", (void *)0)', 'NL_MARKER("m")':
            path = self.scratch / "bad.c"
            path.write_text("#include <netlogger.h>\nvoid f(void);\nvoid f(void) { %s; }\n" % bad)
            done = self.run_program(*support.CC.split(), f"-I{INCLUDE}", "-c", path, "-o", self.scratch / "bad.o")
            self.assertNotEqual(done.returncode, 0, bad)

    def test_without_markers_the_header_needs_no_library(self):
        path = self.scratch / "bare.c"
        path.write_text("#include <netlogger.h>\nint main(void) { return 0; }\n")
        done = self.run_program(*support.CC.split(), f"-I{INCLUDE}", path, "-o", self.scratch / "bare")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.run_program(self.scratch / "bare").returncode, 0)

    # ---- tracers ----

    def test_usdt_notes(self):
        if os.uname().machine not in ("x86_64", "aarch64"):
            self.skipTest(f"no USDT notes on {os.uname().machine}")
        for compiler in compilers():
            program = self.compile("noted", PROGRAM, compiler=compiler)
            notes = self.run_program("readelf", "-n", program).stdout
            found = re.findall(r"Provider: netlogger\s+Name: (\w+)\s+Location: (\S+), Base: (\S+), Semaphore: (\S+)\s+"
                               r"Arguments: (.*)", notes)
            self.assertEqual(sorted({name for name, *_ in found}), ["disk_read", "disk_write"], compiler)
            semaphores = {name: semaphore for name, _, _, semaphore, _ in found}
            self.assertEqual(len(set(semaphores.values())), 2)
            for name, location, base, semaphore, arguments in found:
                self.assertNotEqual(int(location, 16) * int(base, 16) * int(semaphore, 16), 0)
                self.assertEqual(semaphore, semaphores[name])
                self.assertEqual(len(arguments.split(" ")), 2, arguments)

    def test_beside_systemtaps_header(self):
        header = "#include <sys/sdt.h>\n"
        if self.run_program(*support.CC.split(), "-E", "-xc", "-", input=header).returncode != 0:
            self.skipTest("no sys/sdt.h (systemtap-sdt-dev)")
        source = PROGRAM.replace("NL_MARKER(disk_write", 'STAP_PROBE1(other, name, i);\n    NL_MARKER(disk_write')
        for text in header + source, source.replace("<netlogger.h>", "<netlogger.h>\n" + header):
            notes = self.run_program("readelf", "-n", self.compile("beside", text)).stdout
            self.assertIn("Provider: other", notes)
            self.assertIn("Name: disk_write", notes)

    def test_bpftrace_counts(self):
        if shutil.which("bpftrace") is None:
            self.skipTest("no bpftrace")
        if os.geteuid() != 0:
            self.skipTest("bpftrace requires root")
        if not self.attach_anything():
            self.skipTest("uprobes do not work here")
        program = self.compile("traced", PROGRAM)
        script = (f"usdt:{program}:netlogger:disk_read {{ @reads = count(); @ids = sum(arg0); @name[str(arg1)] = count(); }} "
                  f"usdt:{program}:netlogger:disk_write {{ @writes = count(); @parts = sum(arg1); }}")
        done = self.run_program("bpftrace", "-e", script, "-c", f"{program} file:///dev/null 1000", timeout=120)
        self.assertIn("@reads: 1000\n", done.stdout, done.stderr)
        self.assertIn("@writes: 1000\n", done.stdout)
        self.assertIn(f"@ids: {sum(range(1000))}\n", done.stdout)
        self.assertIn("@parts: 0\n", done.stdout)
        self.assertIn(f"@name[{str(program)[:63]}]: 1000\n", done.stdout)

    def attach_anything(self):
        """Returns whether bpftrace can attach to a program of its own."""
        source = "__attribute__((noinline)) void here(void);\nvoid here(void) { __asm__ volatile(\"\"); }\nint main(void) { here(); return 0; }\n"
        program = self.compile("plain", source)
        try:
            done = self.run_program("bpftrace", "-e", f"uprobe:{program}:here {{ @ = count(); }}", "-c", program, timeout=60)
        except subprocess.TimeoutExpired:
            return False
        return "@: 1" in done.stdout


if __name__ == "__main__":
    support.main()
