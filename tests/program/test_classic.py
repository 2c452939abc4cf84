"""The classic interface: programs written for the toolkit of 1998 to 2004, compiled without changes."""
import os
import re

import collector
import support

# A program in the style of transfer programs of 1998 to 2004: URL from the environment, constant text, levels, tags.
THREE = r"""
#include <string.h>
#include <unistd.h>
#include "NetLogger.h"

static int emit(NLhandle *log, char *key, char *data, char *text) { return NetLoggerWrite(log, key, data, text); }

int main(int argc, char **argv)
{
    char *url = argc > 1 ? argv[1] : NULL;
    NLhandle *log = NetLoggerOpen("testprog", url, argc > 2 ? NL_ENV | NL_APPEND : NL_ENV);
    if (log == NULL)
        return 3;
    int size = 49332;
    printf("%d", NetLoggerWrite(log, "WriteData", "", "SEND.SZ=%d FILE=%s", size, "a b=c\n\"d\""));
    printf("%d", NetLoggerWrite(log, "Constant", "A=1 B=two words C=\"q \\\" q\"", "D=%.2f", 2.5));
    printf("%d", NetLoggerWrite(log, "Whole", "%s", "%s", "X=1 Y=two"));
    printf("%d", emit(log, "Composed", "URL.DEST=x", "BYTES=12 TIME=3.5"));
    printf("%d", NetLoggerWrite(log, "Levelled", "LVL=Error HOST=other", ""));
    printf("%d", NetLoggerWrite(log, "Said", "A=1", "LVL=%s HOST=%s PROG=%d B=%s", "Warning", "h=1 x", 5, "b LVL=c"));
    printf("%d", NetLoggerWrite(log, "Odd", "", "LVL=%s LVLS=%d", "loud", 2));
    printf("%d", NetLoggerWrite(log, "Talk", NULL, "just %d words", 3));
    printf("%d", NetLoggerWriteString(log, "Text", "K=1", "V=2"));
    printf("%d", NetLoggerGTWrite(log, 889644821, 333739, "Then", "", "N=%ld", 5L));
    printf("%d", NetLoggerGTWrite(log, -1, 0, "Never", "", ""));
    printf("%d", NetLoggerWrite(log, NULL, "", ""));
    printf(" %d", NetLoggerWriteLvl(log, 1, "Filtered", "", ""));
    NetLoggerSetLevel(log, 3);
    printf("%d", NetLoggerWriteLvl(log, 3, "Three", "", "L=%d", 3));
    printf("%d", NetLoggerWriteLvl(log, 4, "Four", "", ""));
    printf("%d", NetLoggerGTWriteLvl(log, 1, 2, 3, "ThreeThen", "", "L=%d S=%s", 3, "s"));
    printf("%d", NetLoggerGTWriteStringLvl(log, 2, 1, 2, "TwoThen", "", "L=2"));
    printf("%d", NetLoggerGTWriteString(log, 1, 2, "StringThen", "", "L=0"));
    printf(" %d", NetLoggerSetTag(log, "TAG=mine"));
    printf("%d", NetLoggerSetGlobalTag("GLOBAL=ours"));
    printf("%d", NetLoggerWrite(log, "Tagged", "C=1", "V=%d", 2));
    printf("%d", NetLoggerFastWrite(log, "Fast", "V=%d", 2));
    NetLoggerSetTag(log, ""), NetLoggerSetGlobalTag(NULL), NetLoggerSetGlobalTag("");
    printf("%d", NetLoggerWrite(log, "Bare", "", ""));
    char large[100001];
    memset(large, 'x', 100000), large[100000] = 0;
    printf("%d", NetLoggerWrite(log, "Large", "", "TEXT=%s", large));
    printf(" %d", NetLoggerFlush(log));
    printf("%d", NetLoggerClose(log));
    printf(" %d%d%d%d\n", NetLoggerWrite(NULL, "E", "", ""), NetLoggerFlush(NULL), NetLoggerClose(NULL),
           NetLoggerSetTag(NULL, "A=1"));
    return 0;
}
"""

TWO = r"""
#include <NetLogger.h>

int main(int argc, char **argv)
{
    NL_Handle *log = NetLoggerOpen(NULL, argc > 1 ? argv[1] : 0, 0);
    if (!log)
        return 3;
    NetLoggerSetLevel(log, 1);
    int sum = NetLoggerWrite(log, "Write", "A=%d B=%s", 1, "two") + NetLoggerWrite(log, "Any", "%s", "A=1") +
              NetLoggerGTWrite(log, 10L, 20L, "GTWrite", "A=%d", 1) + NetLoggerWriteLvl(log, 1, "WriteLvl", "A=%d", 1) +
              NetLoggerGTWriteLvl(log, 10L, 20L, 1, "GTWriteLvl", "A=%d", 1) +
              NetLoggerWriteString(log, "WriteString", "A=1") + NetLoggerWriteStringLvl(log, 1, "WriteStringLvl", "A=1") +
              NetLoggerGTWriteString(log, 10L, 20L, "GTWriteString", "A=1") +
              NetLoggerGTWriteStringLvl(log, 1, 10L, 20L, "GTWriteStringLvl", "A=1") +
              NetLoggerFastWrite(log, "FastWrite", "A=%d", 1);
    return NetLoggerClose(log) == 1 && sum == 10 ? 0 : 1;
}
"""

# Examples from the papers and manuals of that time, in the C of that time. FORMAT( stands for the arguments before the format.
PAPER = r"""
#include "NetLogger.h"
#include <stdlib.h>
#ifdef OLD_API
#define FORMAT(format) format
#else
#define FORMAT(format) "", format
#endif

static NLhandle *lp = NULL;

static send_it(size)
    long size;
{
    if (lp)
        return NetLoggerWrite(lp, "WriteIt", FORMAT("SEND.SZ=%ld"), size);
    return 0;
}

main(argc, argv)
    int argc;
    char *argv[];
{
    int data1 = 1, data2 = 2;
    char *string = "three";
    double fdata = 4.0;
    struct tm_like { long sec, usec; } then;

    if (argc > 1 && !(lp = NetLoggerOpen("testprog", argv[1], NL_MEM))) {
        fprintf(stderr, "NetLoggerOpen failed, url: %s\n", argv[1]);
        exit(-1);
    }
    NetLoggerWrite(lp, "EVENT_NAME", FORMAT("F1=%d F2=%d F3=%s F4=%.2f"), data1, data2, string, fdata);
    send_it(49332L);
    then.sec = 953684586, then.usec = 957943;
    NetLoggerGTWrite(lp, then.sec, then.usec, "Then", FORMAT("LVL=%s"), "Error");
    NetLoggerClose(lp);
    exit(0);
}
"""

# A program in the style of a memory server of that time: it opens a log for each record.
JANUARY_2001 = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "logging.h"

static int send_state(int method, char *file, char *host, int port)
{
    char message[200] = "SEQN=979579264 TIMEOUT=60 FIELD0=12.5", date[DATE_LEN];
    NLhandle *log = NetLoggerOpen(method, (char *)"MEMORY", file, host, port);
    if (log == NULL)
        return 0;
    snprintf(date, sizeof date, "2001");
    int written = NetLoggerWrite(log, "CPU_HOST A=1", (char *)"%s", message);
    return written == 1 && NetLoggerClose(log) == 1;
}

int main(int argc, char **argv)
{
    int port = argc > 3 ? atoi(argv[3]) : 0;
    int fd = NetLogOpen(argv[2], port);
    const char line[] = "DATE=20010115172104.1 HOST=h PROG=p LVL=Usage NL.EVNT=Line\n";
    int sent = fd >= 0 && write(fd, line, strlen(line)) == (ssize_t)strlen(line) && close(fd) == 0;
    setenv(NL_DEST_ENV, argv[1], 1);
    printf("%d%d%d%d%d%d%d\n", sent, send_state(NL_FILE, argv[1], NULL, 0), send_state(NL_FILE_MEM, argv[1], NULL, 0),
           send_state(NL_HOST, argv[1], argv[2], port), send_state(NL_HOST_MEM, argv[1], argv[2], port),
           send_state(NL_ENV_METHOD, NULL, NULL, 0), send_state(NL_HOST, argv[1], NULL, 0) + send_state(9, argv[1], argv[2], port));
    return 0;
}
"""

BOTH = r"""
#include <netlogger.h>
#include <NetLogger.h>
#include <netlogger.h>
int main(void) { return NL_OK + (NL_OFF == 3 ? 0 : 1); }
"""

THREADS = r"""
#include <NetLogger.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static NLhandle *handle;

static void *run(void *name)
{
    for (int i = 0; i < 20000; i++)
        if (NetLoggerWrite(handle, "Step", "WHERE=here", "WHO=%s I=%d", (char *)name, i) != 1)
            return name;
        else if (i % 1000 == 0)
            NetLoggerSetTag(handle, i % 2000 == 0 ? "TAG=a" : "TAG=b");
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    handle = NetLoggerOpen("threads", argv[1], 0);
    pthread_t threads[4];
    char *names[] = {"a", "b", "c", "d"};
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, run, names[i]);
    void *failed = NULL;
    for (int i = 0; i < 4 && failed == NULL; i++)
        pthread_join(threads[i], &failed);
    if (failed != NULL)
        return 1;
    if (fork() == 0) {
        NetLoggerWrite(handle, "Child", "", "PID=%d", (int)getpid());
        _exit(NetLoggerClose(handle) == 1 ? 0 : 1);
    }
    int status;
    wait(&status);
    return status == 0 && NetLoggerClose(handle) == 1 ? 0 : 1;
}
"""


class Classic(support.Case):
    def setUp(self):
        super().setUp()
        self.log = self.scratch / "a.log"

    def events(self):
        """Returns the text of each event's line before NL.EVNT and after the event's name, by this name."""
        found = {}
        for line in self.log.read_text().splitlines():
            head, _, tail = line.partition(" NL.EVNT=")
            event, _, fields = tail.partition(" ")
            self.assertNotIn(event, found, line)
            found[event] = (head, fields)
        return found

    def compile_old(self, source, *options):
        """Compiles as maintainers of such programs do: older C, warnings as errors."""
        return self.compile_client(source, "-std=gnu89", "-Wall", "-Werror", "-Wno-format-security", "-fno-common",
                                   "-Wno-declaration-after-statement", *options)

    def test_three_strings(self):
        program = self.compile_client(THREE)
        environment = {**os.environ, "NETLOGGER_DEST": f"file://{self.log}"}
        result = self.run_program(program, "file:///nowhere/at/all", env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "1111111111-1-1 010111 101111 11 0000\n")
        events = self.events()
        fields = {event: rest for event, (_, rest) in events.items()}
        self.assertEqual(fields["WriteData"], 'SEND.SZ=49332 FILE="a b=c\\n\\"d\\""')
        self.assertEqual(fields["Constant"], 'A=1 B="two words" C="q \\" q" D=2.50')
        self.assertEqual(fields["Whole"], "X=1 Y=two MSG=%s")
        self.assertEqual(fields["Composed"], "URL.DEST=x BYTES=12 TIME=3.5")
        self.assertIn("HOST=other PROG=testprog LVL=Error", events["Levelled"][0])
        self.assertIn(' HOST="h=1 x" PROG=5 LVL=Warning', events["Said"][0])
        self.assertEqual(fields["Said"], 'A=1 B="b LVL=c"')
        self.assertRegex(events["Odd"][0], " LVL=loud$")
        self.assertEqual(fields["Odd"], "LVLS=2")
        self.assertEqual(fields["Talk"], 'MSG="just 3 words"')
        self.assertEqual(fields["Text"], "K=1 V=2")
        self.assertEqual((events["Then"][0][:26], fields["Then"]), ("DATE=19980311193341.333739", "N=5"))
        self.assertNotIn("Filtered", events)
        self.assertEqual((fields["Three"], "Four" in events), ("L=3", False))
        self.assertEqual((events["ThreeThen"][0][:26], fields["ThreeThen"]), ("DATE=19700101000001.000002", "L=3 S=s"))
        self.assertEqual((fields["TwoThen"], fields["StringThen"]), ("L=2", "L=0"))
        self.assertEqual(fields["Tagged"], "TAG=mine GLOBAL=ours C=1 V=2")
        self.assertEqual(fields["Fast"], "TAG=mine GLOBAL=ours V=2")
        self.assertEqual(fields["Bare"], "")
        self.assertEqual(fields["Large"], "TEXT=" + 100000 * "x")

    def test_two_strings(self):
        program = self.compile_old(TWO, "-DOLD_API")
        self.assertEqual(self.run_program(program, f"file://{self.log}").returncode, 0)
        events = self.events()
        self.assertEqual(len(events), 10)
        for event, (head, fields) in events.items():
            self.assertEqual(fields, "A=1 B=two" if event == "Write" else "A=1", event)
            self.assertEqual(head.startswith("DATE=19700101000010.000020 "), event.startswith("GT"))
            self.assertRegex(head, r" PROG=\d+ ")

    def test_the_papers_examples(self):
        for options in [], ["-DOLD_API"]:
            program = self.compile_client(PAPER, "-std=gnu89", "-fno-common", "-Wno-implicit-int", *options)
            result = self.run_program(program, f"file://{self.log}")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            events = self.events()
            self.assertEqual({event: fields for event, (_, fields) in events.items()},
                             {"EVENT_NAME": "F1=1 F2=2 F3=three F4=4.00", "WriteIt": "SEND.SZ=49332", "Then": ""})
            self.assertRegex(events["Then"][0], r"^DATE=20000322002306\.957943 HOST=\S+ PROG=testprog LVL=Error$")
            self.assertEqual(self.run_program(program).returncode, 0)  # without a log, no call has an effect
            self.run_program(program, f"file://{self.log}", env={**os.environ, "NETLOGGER_LEVEL": "Error"})
            self.assertEqual(list(self.events()), ["Then"])

    def test_fields_in_the_event_name(self):
        program = self.compile_client(r"""
#include <NetLogger.h>
int main(int argc, char **argv)
{
    NLhandle *log = NetLoggerOpen("p", argc > 1 ? argv[1] : "", 0);
    char name[1000];
    snprintf(name, sizeof name, "%0300d A=1", 0);
    int sum = NetLoggerWrite(log, "DPSS_START A=1", "C=3", "D=%s", "4 E=5") + NetLoggerWrite(log, "Two words B=x y  C=1", "", "") +
              NetLoggerWriteString(log, "Text\tA=\"q q\" LVL=Error", "", "B=2") + NetLoggerWrite(log, "NoField=1", "", "A=%d", 2) +
              NetLoggerWrite(log, "Words only", "", "A=%d", 2) + NetLoggerWrite(log, name, "", "B=%d", 2);
    name[0] = 'x', name[1] = ' ';
    for (int i = 0; i < 2; i++)
        sum += NetLoggerWrite(log, i == 0 ? "First I=0" : "Second I=1", "", "B=%d", 2);
    return NetLoggerClose(log) == 1 && sum == 8 ? 0 : 1;
}
""")
        self.assertEqual(self.run_program(program, f"file://{self.log}").returncode, 0)
        lines = [line.partition(" NL.EVNT=")[2] for line in self.log.read_text().splitlines()]
        self.assertEqual(lines, ['DPSS_START A=1 C=3 D="4 E=5"', '"Two words" B="x y" C=1', 'Text A="q q" B=2', '"NoField=1" A=2',
                                 '"Words only" A=2', f"{300 * '0'} A=1 B=2", "First I=0 B=2", "Second I=1 B=2"])

    def test_both_headers(self):
        self.assertEqual(self.run_program(self.compile_client(BOTH)).returncode, 0)
        swapped = BOTH.replace("#include <netlogger.h>\n", "", 1)
        self.assertEqual(self.run_program(self.compile_client(swapped)).returncode, 0)

    def test_from_cxx(self):
        source = self.scratch / "client.cc"
        source.write_text(THREE.replace("static int emit(NLhandle *log, char *key, char *data, char *text)",
                                        "static int emit(NLhandle *log, const char *key, const char *data, const char *text)"))
        libraries = support.BUILD / "libnetlogger" / ".libs"
        if not (libraries / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        compiler = support.CC.replace("clang", "clang++").replace("gcc", "g++")
        if compiler == support.CC:
            compiler = "c++"
        program = self.scratch / "cxx"
        result = self.run_compiler(*compiler.split(), "-o", program, source, f"-I{support.SOURCE}/libnetlogger/include",
                                  f"-L{libraries}", "-lnetlogger", f"-Wl,-rpath,{libraries}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.run_program(program, f"file://{self.log}").returncode, 0)
        self.assertIn("WriteData", self.events())

    def test_files_are_begun_anew_or_added_to(self):
        program = self.compile_client(THREE)
        for times, options in [(1, []), (1, []), (2, ["append"])]:
            self.assertEqual(self.run_program(program, f"file://{self.log}", *options).returncode, 0)
            self.assertEqual(self.log.read_text().count("NL.EVNT=Bare"), times)
        for name in ["bare name?a&b%", "x/y"]:
            (self.scratch / "x").mkdir(exist_ok=True)
            self.run_program(program, name, "append", cwd=self.scratch)
            self.run_program(program, name, "append", cwd=self.scratch)
            self.assertEqual((self.scratch / name).read_text().count("NL.EVNT=Bare"), 2, name)
        self.run_program(program, "file://relative.log", cwd=self.scratch)
        self.assertTrue((self.scratch / "relative.log").exists())

    def test_an_open_descriptor(self):
        program = self.compile_client(r"""
#include <NetLogger.h>
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    int fd = open(argv[1], O_WRONLY | O_CREAT, 0666);
    if (write(fd, "before\n", 7) != 7)
        return 1;
    NLhandle *log = NetLoggerOpenFd("p", fd, NL_MEM);
    if (log == NULL || NetLoggerOpenFd("p", 99, 0) != NULL)
        return 2;
    NetLoggerWrite(log, "E", "", "A=%d", 1);
    if (NetLoggerClose(log) != 1 || write(fd, "after\n", 6) != 6)
        return 3;
    return 0;
}
""")
        self.assertEqual(self.run_program(program, self.log).returncode, 0)
        lines = self.log.read_text().splitlines()
        self.assertEqual((lines[0], lines[2], len(lines)), ("before", "after", 3))
        self.assertTrue(lines[1].endswith("NL.EVNT=E A=1"))

    def test_what_cannot_be_opened(self):
        program = self.compile_client(THREE)
        environment = {key: value for key, value in os.environ.items() if key != "NETLOGGER_DEST"}
        for arguments in [[], [""], ["gopher://x"], ["file:///nowhere/at/all"], ["x-netlog://"]]:
            result = self.run_program(program, *arguments, env=environment)
            self.assertEqual((result.returncode, result.stdout), (3, ""), arguments)
            self.assertRegex(result.stderr, r"\Anetlogger: [^\n]+\n\Z" if arguments not in ([], [""]) else r"\A\Z", arguments)
        result = self.run_program(program, f"file://{self.log}", env={**environment, "NETLOGGER_ON": "off"})
        self.assertEqual(result.returncode, 3)
        self.assertFalse(self.log.exists())

    def test_url_and_signals_are_left_alone(self):
        program = self.compile_client(r"""
#define _GNU_SOURCE
#include <NetLogger.h>
#include <signal.h>
#include <string.h>
/* What is done at each signal, and whether it is blocked. */
typedef struct { void (*handler)(int); int flags, blocked; } state;
static void find(state *all)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < 65; i++) {
        struct sigaction action = {0};
        sigaction(i, NULL, &action);
        all[i] = (state){action.sa_handler, action.sa_flags, sigismember(&mask, i)};
    }
}
int main(int argc, char **argv)
{
    static state before[65], after[65];
    char url[1000], tag[] = "TAG=1", format[] = "A=%d B=%s";
    find(before);
    for (int i = 1; i < argc; i++) {
        NLhandle *log = NetLoggerOpen("p", strcpy(url, argv[i]), NL_APPEND);
        NetLoggerSetTag(log, tag);
        NetLoggerWrite(log, "E", format, format, 1, "x y");
        NetLoggerFlush(log);
        NetLoggerClose(log);
        if (strcmp(url, argv[i]) != 0 || strcmp(tag, "TAG=1") != 0 || strcmp(format, "A=%d B=%s") != 0)
            return 1;
    }
    find(after);
    for (int i = 1; i < 65; i++)
        if (before[i].handler != after[i].handler || before[i].flags != after[i].flags || before[i].blocked != after[i].blocked)
            return 2;
    return 0;
}
""")
        result = self.run_program(program, f"file://{self.log}?policy=block", "x-netlog://127.0.0.1:1", "x-syslog://", "gopher://x",
                                  self.log, env={**os.environ, "NETLOGGER_QUIET": "1"})
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_threads_and_fork(self):
        program = self.compile_client(THREADS)
        self.assertEqual(self.run_program(program, f"file://{self.log}").returncode, 0)
        lines = self.log.read_text().splitlines()
        self.assertEqual(len(lines), 80001)
        for who in "abcd":
            mine = [line for line in lines if f" WHO={who} " in line]
            self.assertEqual([int(line.rsplit("=", 1)[1]) for line in mine], list(range(20000)))
            self.assertTrue(all(" WHERE=here WHO=" in line for line in mine))


# A program in the style of a pipeline's manager of 2006: its logs have names and constant fields, and write to one file.
MODULES = r"""
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include "nl_log.h"

static void handle(int signal)
{
    NL_fatal("err", "Received signal, terminating", "", "");
    (void)signal;
}

int main(int argc, char **argv)
{
    char *file = argc > 1 ? argv[1] : NULL;
    NL_logger_module("err1", file, NL_LVL_ERROR, NL_TYPE_APP, "");
    NL_fatal("err1", "Failed.init", "PROG=s", "slice");
    NL_info("err1", "filtered", "");
    NL_logger_module_const("dbg", file, NL_LVL_INFO, "STAGE:iMYPID:iHOST:sPROG:s", 3, 42, "10.0.0.1", "manager");
    NL_logger_module_const("err", file, NL_LVL_ERROR, "MYPID:iPROG:sHOST:s", 42, "manager", "10.0.0.1");
    NL_info("dbg", "main.start", "", "");
    if (*ipaddr() == '\0')
        return 3;
    NL_info("dbg", "system.start", "ITERATION=iCOMMAND=s", 1, "run --a=b \"c\"");
    NL_debug("dbg", "filtered", "A=i", 1);
    signal(SIGTERM, handle);
    raise(SIGTERM);
    if (NL_info("none", "none", "") != NL_ERROR || NL_info("dbg", "invalid", "A=q", 1) != NL_ERROR)
        return 1;
    NL_logger_module("dbg", file, NL_LVL_DEBUG, NL_TYPE_DBG, "");
    NL_debug("dbg", "replaced", "NULL=s", (char *)0);
    NL_logger_del();
    return NL_info("dbg", "deleted", "") == NL_ERROR ? 0 : 2;
}
"""

# A program in the style of a transfer driver of 2008.
TRANSFERS = r"""
#include <stdlib.h>
#include <string.h>
#include "nl.h"
#include "nltransfer.h"
#include "nlsumm.h"

int main(int argc, char **argv)
{
    NL_log_T log = NL_open(argc > 3 ? argv[3] : NULL), unsummed = NL_open("/never");
    NL_summ_T summ = NL_summ();
    struct timeval then = {1200000000, 5};
    NL_set_level(log, NL_LVL_DEBUG);
    NL_set_level(unsummed, NL_LVL_DEBUG2);
    NL_set_const(log, 0, "HOST:s", "127.0.0.2");
    NL_set_const(unsummed, "constant:s", "a value");
    if (!NL_is_active(log) || NL_get_level(log) != NL_LVL_DEBUG)
        return 1;
    NL_write(log, NL_LVL_INFO, "xio.open.start", "sock=i uuid=s r=d n=l", 7, "id A", 2.5, 1LL << 40);
    NL_write(log, NL_LVL_DEBUG1, "filtered", "");
    NL_write_ts(unsummed, &then, NL_LVL_DEBUG2, "then", "A=i  B=s", 1, "");
    NL_summ_set_shared_output(summ, log);
    NL_transfer_init(summ, -1, NL_LVL_DEBUG);
    if (strcmp(argv[1], "pass") == 0)
        NL_transfer_set_passthrough(summ);
    if (NL_summ_add_log(summ, log) != 0)
        return 2;
    for (int i = 0; i < 5; i++) {
        NL_transfer_start(log, NL_LVL_DEBUG, NL_TRANSFER_NET_READ, "id", 3, i);
        NL_transfer_end(log, NL_LVL_DEBUG, NL_TRANSFER_NET_READ, "id", 3, i, 100.0 * i);
    }
    NL_transfer_start(unsummed, NL_LVL_INFO, NL_TRANSFER_DISK_WRITE, "other", 1, 2);
    if (NL_transfer_get_num_streams(summ, NL_TRANSFER_NET_READ, "id") != 1)
        return 3;
    NL_transfer_finalize(summ);
    char *text = NL_transfer_get_result_string(summ, "id"), *address = NL_get_ipaddr();
    fputs(text, stdout);
    NL_transfer_init(summ, -1, NL_LVL_DEBUG);
    if (NL_transfer_get_num_streams(summ, NL_TRANSFER_NET_READ, "id") != 0)
        return 4; /* blocks that were summarized are not counted again */
    NL_transfer_start(log, NL_LVL_DEBUG, NL_TRANSFER_NET_READ, "id", 3, 5);
    NL_transfer_end(log, NL_LVL_DEBUG, NL_TRANSFER_NET_READ, "id", 3, 5, 1);
    NL_transfer_init(summ, -1, NL_LVL_DEBUG);
    if (NL_transfer_get_num_streams(summ, NL_TRANSFER_NET_READ, "id") != 1)
        return 5;
    free(text);
    free(address);
    NL_summ_del(summ);
    NL_close(unsummed);
    NL_close(log);
    return NL_is_active(NL_open(argv[2])) + (address == NULL);
}
"""


class Version4(support.Case):
    def compile_version_4(self, source, *options):
        archive = support.BUILD / "bindings" / "classic" / "libnetlogger-classic.a"
        return self.compile_client(source, "-Wall", f"-I{support.SOURCE}/bindings/classic", *options, archive, "-lnetlogger", "-lm")

    def bp(self, text):
        """Returns the lines from the event's name on."""
        lines = text.splitlines()
        self.assertTrue(all(line.startswith("ts=20") for line in lines), text)
        return [line.partition(" event=")[2] for line in lines]

    def test_logs_by_name(self):
        log = self.scratch / "a.log"
        log.write_text("ts=2006-01-01T00:00:00.000000Z event=before\n")
        environment = {name: value for name, value in os.environ.items() if name not in ("NL_DEST", "NETLOGGER_DEST")}
        result = self.run_program(self.compile_version_4(MODULES), log, env=environment)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        host = re.search(r"host=(\S+) prog=client", log.read_text()).group(1)
        self.assertEqual(self.bp(log.read_text())[0], "before")
        self.assertEqual(sorted(self.bp(log.read_text())[1:]), [  # the logs write independently
            '"Received signal, terminating" level=Fatal host=10.0.0.1 prog=manager MYPID=42',
            f"Failed.init level=Fatal host={host} prog=slice",
            "main.start level=Info host=10.0.0.1 prog=manager STAGE=3 MYPID=42",
            f'replaced level=Debug host={host} prog=client NULL=""',
            'system.start level=Info host=10.0.0.1 prog=manager STAGE=3 MYPID=42 ITERATION=1 COMMAND="run --a=b \\"c\\""',
        ])

    def test_transfers(self):
        program = self.compile_version_4(TRANSFERS)
        log = self.scratch / "a.log"
        summary = (r"transfer.net.read.summ level=\w+ host=\S+ (prog=\S* )?guid=id stream.id=3 n=5 nv=5 dur=\S+ t.m=\S+ t.x=\S+ t.s=\S+ "
                   r"t.sd=\S+ v.m=0 v.x=400 v.s=1000 v.sd=158.113883\d+ r.m=0 r.x=\S+ r.s=\S+ r.sd=\S+")
        for passes in False, True:
            log.unlink(missing_ok=True)
            result = self.run_program(program, "pass" if passes else "no", "/nowhere/at/all/a.log",
                                      env={**os.environ, "NL_DEST": str(log), "NETLOGGER_DEST": "/never", "NETLOGGER_QUIET": "1"})
            # NL_DEST replaces every URL, so that the last log opens.
            self.assertEqual((result.returncode, result.stderr), (1, ""))
            self.assertRegex(result.stdout, rf"\Ats=\S+ event={summary}\n\Z")
            lines = self.bp(log.read_text())
            self.assertIn('xio.open.start level=Info host=127.0.0.2 prog=client sock=7 uuid="id A" r=2.5 n=1099511627776', lines)
            self.assertRegex(log.read_text(), r'(?m)^ts=2008-01-10T21:20:00.000005Z event=then level=DEBUG2 host=\S+ prog=client '
                                              r'constant="a value" A=1 B=""$')
            self.assertEqual(sum(re.fullmatch(summary, line) is not None for line in lines), 1)
            self.assertEqual(sum("transfer.disk.write.start level=Info" in line for line in lines), 1)
            blocks = [line for line in lines if line.startswith("transfer.net.read.")]
            self.assertEqual(len(blocks), 13 if passes else 1)
            if passes:
                self.assertEqual(sum(line.endswith(" guid=id stream.id=3 block.id=4 bytes=400") for line in blocks), 1)

    def test_destinations(self):
        program = self.compile_version_4(TRANSFERS)
        environment = {name: value for name, value in os.environ.items() if name not in ("NL_DEST", "NETLOGGER_DEST")}
        result = self.run_program(program, "no", "x-netlog://", "-", env={**environment, "NETLOGGER_QUIET": "1"})
        self.assertEqual(result.returncode, 0)
        self.assertEqual(sum("event=xio.open.start" in line for line in result.stdout.splitlines()), 1)
        result = self.run_program(program, "no", "x-netlog://", "&", env={**environment, "NETLOGGER_QUIET": "1"})
        self.assertEqual(sum("event=xio.open.start" in line for line in result.stderr.splitlines()), 1)


class Collected(collector.Case):
    def test_the_form_of_january_2001(self):
        program = self.compile_client(JANUARY_2001, "-std=gnu89", "-Wall", "-Wno-declaration-after-statement",
                                      f"-I{support.SOURCE}/libnetlogger/include/netlogger/classic")
        port = support.free_port()
        netlogd = self.serve(listen=f"x-netlog://127.0.0.1:{port}")
        log = self.scratch / "file.log"
        result = self.run_program(program, log, "127.0.0.1", port, env={**os.environ, "NETLOGGER_QUIET": "1"})
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "1111110\n", ""))
        self.stop(netlogd)
        line = r"DATE=\S+ HOST=\S+ PROG=MEMORY LVL=Usage NL.EVNT=CPU_HOST A=1 SEQN=979579264 TIMEOUT=60 FIELD0=12.5\n"
        self.assertRegex(log.read_text(), rf"\A({line}){{3}}\Z")
        self.assertRegex(self.output.read_text(), rf"(?s)NL.EVNT=Line\n.*({line}.*){{2}}")

    def test_a_collector_that_comes_back(self):
        """The log works again after a failed write. The original toolkit stopped permanently at the first failed
        write."""
        program = self.compile_client(r"""
#include <NetLogger.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    NLhandle *log = NetLoggerOpen("p", argv[1], 0);
    char line[64];
    for (int i = 0; fgets(line, sizeof line, stdin) != NULL; i++) {
        NetLoggerWrite(log, "Line", "", "I=%d", i);
        printf("%d\n", NetLoggerFlush(log)), fflush(stdout);
    }
    return NetLoggerClose(log) == 1 ? 0 : 1;
}
""")
        listen = f"x-netlog://127.0.0.1:{support.free_port()}"
        netlogd = self.serve(listen=listen)
        client = self.start(program, f"{listen}?format=nlb&timeout=5", stdin=-1, stdout=-1, text=True)

        def step():
            client.stdin.write("x\n")
            client.stdin.flush()
            return client.stdout.readline().strip()

        self.assertEqual(step(), "1")
        self.stop(netlogd)
        self.assertEqual(step(), "-1")
        netlogd = self.serve(listen=listen)
        support.wait_until(lambda: step() == "1", what="the collector is used again")
        client.stdin.close()
        self.assertEqual(client.wait(30), 0)
        self.stop(netlogd)
        lines = self.output.read_text().splitlines()
        steps = [int(line.rsplit("=", 1)[1]) for line in lines if "NL.EVNT=Line" in line]
        self.assertEqual(steps, list(range(len(steps))))
        self.assertGreater(len(steps), 2)


if __name__ == "__main__":
    support.main()
