"""All languages that are built give the same result: the ten events of examples/languages/README.md, and the paper's example."""
import atexit
import functools
import os
import pathlib
import re
import shutil
import socket
import sys
import tempfile

import collector
import nlb_decoder
import support

EXAMPLES = support.SOURCE / "examples" / "languages"


@functools.cache
def compiled_folder():
    """Returns a directory of compiled programs, so that each is compiled only once. It exists until this process ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def compiled_c(case, name):
    """Returns the command that runs examples/languages/NAME.c."""
    return [case.compile_client((EXAMPLES / f"{name}.c").read_text(), "-lm")]


def interpreted(binding, suffix, interpreter, variable, *folders):
    """Returns a function that returns the command of an example whose binding is below bindings/BINDING."""

    def command(case, name):
        support.program(f"bindings/{binding}/built")
        paths = os.pathsep.join(str(support.BUILD / "bindings" / binding / folder) for folder in folders)
        return ["env", f"{variable}={paths}", interpreter, EXAMPLES / f"{name}.{suffix}"]

    return command


def compiled(compiler, suffix, folder, needed, *options):
    """Returns a function that compiles an example with the headers or modules in folder, and returns its command. It skips the test if `needed` was not built."""

    def command(case, name):
        libraries = support.BUILD / "libnetlogger" / ".libs"
        if shutil.which(compiler) is None or not all(path.exists() for path in (libraries / "libnetlogger.so", *needed)):
            case.skipTest(f"no {compiler}, or it is not built here")
        program = compiled_folder() / f"{name}-{suffix}"
        if program.exists():
            return [program]
        result = case.run_compiler(compiler, "-o", program, EXAMPLES / f"{name}.{suffix}", f"-I{folder}",
                                  f"-I{support.SOURCE}/libnetlogger/include", *options, *needed, f"-L{libraries}", "-lnetlogger",
                                  f"-Wl,-rpath,{libraries}")
        case.assertEqual(result.returncode, 0, result.stderr)
        return [program]

    return command


def java(case, name):
    jar = support.program("bindings/java/netlogger.jar")
    if shutil.which("java") is None:
        case.skipTest("no java here")
    return [*support.JAVA, f"-Djava.io.tmpdir={case.scratch}", "-cp", jar, EXAMPLES / f"{name.capitalize()}.java"]


def compiled_java(case, name):
    """Like java, but compiles the source file only once. java(1) would compile the file each time that it runs the program."""
    *command, _, path, source = java(case, name)
    classes = compiled_folder() / f"{name}-java"
    if not classes.exists():
        result = case.run_compiler(*support.JAVAC, "-cp", path, "-d", classes, source)
        case.assertEqual(result.returncode, 0, result.stderr)
    return [*command, "-cp", f"{path}{os.pathsep}{classes}", source.stem]


FORTRAN = support.BUILD / "bindings" / "fortran"

# A language's name, and a function that returns the command of its program of a name ("ten", "dolly"). The function skips the
# test with SkipTest if the binding is not built. Other languages are compared with C.
LANGUAGES = {
    "Python": interpreted("python", "py", sys.executable, "PYTHONPATH", "lib"),
    "Perl": interpreted("perl", "pl", "perl", "PERL5LIB", "work/blib/lib", "work/blib/arch"),
    "C++": compiled("c++", "cpp", support.SOURCE / "bindings" / "cxx", [], "-std=c++17", "-Wall", "-Wextra", "-Werror"),
    "Fortran": compiled("gfortran", "f90", FORTRAN, [FORTRAN / "libnetlogger-fortran.a"], "-Wall", "-Werror"),
    "Java": java,
}


class Languages(collector.Case):
    def ten(self, command, suffix):
        """Returns the log of one language."""
        path = self.scratch / f"{len(list(self.scratch.iterdir()))}.{suffix}"
        result = self.run_compiler(*command, f"file://{path}")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return path

    def lines(self, command):
        """Returns every line without its time, sorted."""
        return sorted(line.split(b" ", 1)[1] for line in self.ten(command, "log").read_bytes().splitlines())

    def records(self, command):
        """Returns every record without its time, sorted: host, program, level, event, fields with their types."""
        records = nlb_decoder.records(self.ten(command, "nlb").read_bytes())
        return sorted((r.level, r.event, repr((r.host, r.prog, r.fields))) for r in records)

    reference = None  # the lines and the records of ten.c, for comparison

    def expected(self):
        if Languages.reference is None:
            command = compiled_c(self, "ten")
            Languages.reference = self.lines(command), self.records(command)
        return Languages.reference

    def check_ten(self, make):
        command = make(self, "ten")
        lines, records = self.expected()
        self.assertEqual(len(lines), 10)
        self.assertEqual(self.lines(command), lines)
        self.assertEqual(self.records(command), records)

    SPANS = ["Request.start TRACE.ID=T1 SPAN.ID=S1 ID=7",
             'Query.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 SQL="SELECT 1"',
             "Row N=1 TRACE.ID=T1 SPAN.ID=S2",
             "Query.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S2 STATUS=3",
             "Copy.start PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S3",
             "Copy.end PARENT.ID=S1 TRACE.ID=T1 SPAN.ID=S3 STATUS=0 BYTES=700",
             "Reply TRACE.ID=T1 SPAN.ID=S1",
             "Request.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0",
             "Idle"]

    def check_spans(self, make):
        """Begin, end and scope of spans: the parents, and the events that belong to them."""
        lines = self.ten(make(self, "spans"), "log").read_text().splitlines()
        self.assertEqual(support.numbered_ids([line.split(" LVL=Usage NL.EVNT=")[1] for line in lines]), self.SPANS)

    def test_spans_in_c(self):
        self.check_spans(compiled_c)

    def check_dolly(self, make):
        command = make(self, "dolly")
        server = self.serve()
        result = self.run_compiler(*command, "127.0.0.1", self.port)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.stop(server)
        self.assertRegex(self.written(), rb"^DATE=\S+ HOST=\S+ PROG=testprog LVL=Usage NL\.EVNT=WriteData SEND\.SZ=49332\n$")

    def test_the_papers_example_in_c(self):
        self.check_dolly(compiled_c)

    def test_ten_events_of_c_are_as_the_table_says(self):
        lines = b"\n".join(self.expected()[0]).decode()
        for said in (
            "LVL=Usage NL.EVNT=Ten.Integers ZERO=0 NEGATIVE=-49332 LEAST=-9223372036854775808 MOST=9223372036854775807\n",
            "NL.EVNT=Ten.Reals TENTH=0.1 LARGE=-1.5e+300 NAN=nan INFINITE=inf NEGATIVE=-inf\n",
            "LVL=Debug NL.EVNT=Ten.Truth YES=true NO=false\n",
            r"""LVL=Warning NL.EVNT=Ten.Quotes TEXT="say \"hello\", \\ and 'goodbye' A=1" """.strip(),
            r'LVL=Error NL.EVNT=Ten.Lines TEXT="one\ntwo\tthree\r\n"',
            'LVL=Important NL.EVNT=Ten.Utf8 TEXT="Grüße, 世界 🌍"',
            'LVL=System NL.EVNT=Ten.Empty TEXT=""\n',
            "0123456789 AFTER=1\n",
            "LVL=Alert NL.EVNT=Ten.Nothing",
            "F15=15 F16=16",
        ):
            self.assertIn(said, lines)


class Readme(collector.Case):
    """The examples of examples/languages/README.md in Python and Perl, with another destination."""

    def run_block(self, language, *interpreter, **environment):
        process = self.serve()
        hello = self.scratch / "hello.log"
        hello.write_text("DATE=20260101000000 HOST=h PROG=hello LVL=Usage NL.EVNT=Request.Parsed REQ.ID=7 BYTES=700\n"
                         "DATE=20260101000000 HOST=h PROG=hello LVL=Usage NL.EVNT=Request.Parsed REQ.ID=8 BYTES=100\n")
        text = (support.SOURCE / "examples" / "languages" / "README.md").read_text()
        block = re.search(rf"```{language}\n(.*?)```", text, re.S).group(1)
        self.assertIn("x-netlog://localhost", block)
        block = block.replace("x-netlog://localhost", f"x-netlog://127.0.0.1:{self.port}").replace("/tmp/", f"{self.scratch}/")
        result = self.run_program(*interpreter, block, env={**os.environ, **environment})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.stop(process)
        return result.stdout, [line.split(" NL.EVNT=")[1] for line in self.output.read_text().splitlines()]

    def test_python(self):
        support.program("bindings/python/built")
        said, lines = self.run_block("python", sys.executable, "-c", PYTHONPATH=str(support.BUILD / "bindings/python/lib"))
        self.assertRegex(said, r"^2026-01-01 00:00:00\+00:00 7\n$")
        self.assertEqual(support.numbered_ids(lines[:3]), [
            "WriteData SEND.SZ=49332", "Read.start TRACE.ID=T1 SPAN.ID=S1 FILE=a",
            "Read.end TRACE.ID=T1 SPAN.ID=S1 STATUS=0"])

    def test_perl(self):
        support.program("bindings/perl/built")
        work = support.BUILD / "bindings/perl/work/blib"
        said, lines = self.run_block("perl", "perl", "-we", PERL5LIB=f"{work}/lib:{work}/arch")
        self.assertEqual((said, lines), ("", ["WriteData SEND.SZ=49332"]))


CLASSIC = """
#include <NetLogger.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char url[100];
    snprintf(url, sizeof url, "x-netlog://%s:%s", argv[1], argv[argc - 1]);
    NL_Handle *log = NetLoggerOpen("testprog", url, 0);
    NetLoggerWrite(log, "WriteData", "", "SEND.SZ=%d", 49332);
    NetLoggerClose(log);
    return 0;
}
"""


class Unreachable(collector.Case):
    """The messages of a user's first program if its collector is not running, or if its URL names another server."""

    def check(self, command):
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        memory = self.scratch / "shm"
        memory.mkdir()
        environment = {**os.environ, "NETLOGGER_SHM": str(memory)}
        environment.pop("NETLOGGER_CLOCK", None)
        result = self.run_compiler(*command, "127.0.0.1", port, env=environment)
        url = f"x-netlog://127.0.0.1:{port}"
        refused = rf"{url}: Connection refused; is netlogd running there\?"
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, rf"\Anetlogger: {refused} \(retrying\)\n"
                         rf"netlogger: 1 event not delivered; nlrecover delivers it from {memory}/netlogger-\S+: {refused}\n\Z")
        quiet = self.run_compiler(*command, "127.0.0.1", port, env={**environment, "NETLOGGER_QUIET": "1"})
        self.assertEqual((quiet.returncode, quiet.stderr), (0, ""))
        delivered = self.scratch / "delivered.log"
        recovered = self.run_program(support.program("nltools/nlrecover"), "--dest", delivered, env=environment)
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        self.assertEqual([line.split(" LVL=")[1] for line in delivered.read_text().splitlines()],
                         2 * ["Usage NL.EVNT=WriteData SEND.SZ=49332"])

    def check_wrong_peers(self, command, whole=False):
        """In both formats, the program prints one message at its start and one at its end, and loses no event. In ./check, the format
        alternates unless whole is true, because all languages use the same library."""
        memory = self.scratch / "shm"
        memory.mkdir()
        environment = {**os.environ, "NETLOGGER_SHM": str(memory)}
        tls = support.free_port()
        pem = collector.Authority(self, "ca").certify("localhost")
        self.serve(listen=f"x-netlogs://127.0.0.1:{tls}?cert={pem}")
        peers = [(self.http_server(), "the peer is an HTTP server, not netlogd; check host and port"),
                 (self.peer(collector.greet(b"SSH-2.0-OpenSSH_9.2\r\n")), "the peer is an SSH server, not netlogd; check host and port"),
                 (self.peer(collector.send_back), "the peer is not netlogd, but a service that echoes its input; check host and port"),
                 (self.peer(lambda connection: connection.recv(10)), "the peer closed the connection without a reply; perhaps "),
                 (self.peer(collector.keep_silent), "no reply; check that the peer is netlogd, "),
                 (tls, "the port requires TLS; use x-netlogs:// in the URL")]
        for number, (port, problem) in enumerate(peers):
            both = "?timeout=0.4", "?timeout=0.4&format=ulm"
            for options in both if whole else support.representative(both, (both[number % 2],)):
                with self.subTest(problem=problem, options=options):
                    result = self.run_compiler(*command, f"x-netlog://127.0.0.1:{port}{options}", env=environment)
                    self.assertIn("10 events not delivered", result.stderr)
                    found = rf"x-netlog://127.0.0.1:{port}: {re.escape(problem)}[^\n]*"
                    self.assertRegex(result.stderr, rf"\Anetlogger: {found} \(retrying\)\n"
                                     rf"netlogger: 10 events not delivered; nlrecover delivers them from {memory}/netlogger-\S+: {found}\n")

    def test_wrong_peers_c(self):
        self.check_wrong_peers(compiled_c(self, "ten"), whole=True)

    def test_c(self):
        self.check(compiled_c(self, "dolly"))

    def test_classic(self):
        self.check([self.compile_client(CLASSIC)])


def add_language(language):
    make = compiled_java if language == "Java" else LANGUAGES[language]

    def test_ten(self):
        self.check_ten(make)

    def test_spans(self):
        self.check_spans(LANGUAGES[language])

    def test_dolly(self):
        self.check_dolly(make)

    def test_unreachable(self):
        self.check(make(self, "dolly"))

    def test_wrong_peers(self):
        self.check_wrong_peers(make(self, "ten"))

    name = language.lower().replace("+", "x")
    setattr(Languages, f"test_{name}_emits_the_same_ten_events", test_ten)
    setattr(Languages, f"test_spans_in_{name}", test_spans)
    setattr(Languages, f"test_the_papers_example_in_{name}", test_dolly)
    setattr(Unreachable, f"test_{name}", test_unreachable)
    setattr(Unreachable, f"test_wrong_peers_{name}", test_wrong_peers)


for language in LANGUAGES:
    add_language(language)

if __name__ == "__main__":
    support.main()
