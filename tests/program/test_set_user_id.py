"""A set-user-ID program that uses the library: its caller chooses the environment, which must have no effect.

Every public function runs with root's rights in an environment in which every variable leads to a trap. The trap is a port and
a directory with programs, configuration files and places for logs. strace shows that no function touches the trap or starts a
program. The same calls without raised privileges touch the trap, so the trap works."""
import os
import pathlib
import re
import shutil
import socket
import stat
import unittest

import support

EXAMPLES = support.SOURCE / "doc" / "api-examples"
UNPRIVILEGED = 65534

# The calls that read destinations and names from the environment.
ASKS_ENVIRONMENT = r"""
#include <NetLogger.h>
#include <netlogger.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
static void ignore(void *user, const nl_recovered *what) { (void)user, (void)what; }
int main(int argc, char **argv)
{
    if (argc > 2 && !getauxval(AT_SECURE))
        return 77;
    nl_log *none = nl_open("p", NULL);
    NL_EVENT(none, NL_USAGE, "None");
    int opened = none != NULL;
    nl_close(none);
    NL_Handle *old = NetLoggerOpen("p", NULL, NL_ENV);
    opened += old != NULL;
    if (old != NULL)
        NetLoggerWrite(old, "Old", 0, "A=1");
    NetLoggerClose(old);
    nl_log *log = nl_open("p", argv[1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    NL_EVENT(log, NL_DEBUG, "Event");
    nl_close(nl_open("p", "x-netlogs://127.0.0.1:9?timeout=0.1")); /* reads certificates */
    nl_recover(&(nl_recover_options){.list_only = true}, ignore, NULL);
    printf("%d\n", opened);
    return nl_close(log) != NL_OK;
}
"""


@unittest.skipUnless(os.geteuid() == 0, "needs root, to make a set-user-ID program")
class SetUserId(support.Case):
    def setUp(self):
        super().setUp()
        if "sanitize" in support.CC:
            self.skipTest("the sanitizers' run-time library has no privileges")
        self.strace = shutil.which("strace")
        if self.strace is None:
            self.skipTest("strace is not installed")
        support.skip_where_others_may_not_enter(self)
        self.scratch.chmod(0o755)
        self.work = self.scratch / "work"
        self.work.mkdir(mode=0o755)
        self.make_trap()

    def make_trap(self):
        """Everything in the trap could be used: root may write everywhere in it."""
        self.trap = self.scratch / "trap"
        for folder in ("bin", "home", "tmp", "shm", "schemas", "certificates", "locale", "zone"):
            (self.trap / folder).mkdir(parents=True)
        for name in ("nlkernel", "netlogd", "nlrecover", "sh", "chronyc"):
            path = self.trap / "bin" / name
            path.write_text(f"#!/bin/sh\n: > {self.trap}/ran-{name}\n")
            path.chmod(0o755)
        (self.trap / "activation").write_text("level Emergency\n")
        (self.trap / "openssl.cnf").write_text("openssl_conf = x\n")
        self.listener = socket.socket()
        self.addCleanup(self.listener.close)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.notify.close)
        self.notify.bind(str(self.trap / "notify"))
        self.before = self.trap_files()

    def trap_files(self):
        return {str(p): p.stat().st_mtime_ns for p in self.trap.rglob("*")}

    def hostile(self, destination):
        """Returns an environment with every variable that the library and its libraries use, except NETLOGGER_ON."""
        library = (support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so").read_bytes()
        names = {name.decode() for name in re.findall(rb"\bN(?:ETLOGGER|ETLOGD|LAGENT|L)_?[A-Z]*[A-Z_]+\b", library)}
        environment = {name: f"{self.trap}/{name}" for name in names}
        self.assertIn("NETLOGGER_DEST", environment)
        environment |= {
            "NETLOGGER_DEST": destination, "NETLOGGER_SHM": f"{self.trap}/shm", "NETLOGGER_HOST": "forged",
            "NETLOGGER_ACTIVATION": f"{self.trap}/activation", "NETLOGGER_LEVEL": "Emergency", "NETLOGGER_CLOCK": "0.1", "NETLOGGER_QUIET": "yes",
            "NETLOGGER_SCHEMAS": f"{self.trap}/schemas",
            "NETLOGD_CONTROL": f"{self.trap}/control", "NLAGENT": f"http://127.0.0.1:{self.port}/",
            "NOTIFY_SOCKET": f"{self.trap}/notify", "LISTEN_FDS": "1", "PATH": f"{self.trap}/bin",
            "HOME": f"{self.trap}/home", "TMPDIR": f"{self.trap}/tmp", "TZ": f":{self.trap}/zone/here",
            "TZDIR": f"{self.trap}/zone", "LOCPATH": f"{self.trap}/locale", "NLSPATH": f"{self.trap}/locale/%N",
            "OPENSSL_CONF": f"{self.trap}/openssl.cnf", "SSL_CERT_FILE": f"{self.trap}/certificates/all.pem",
            "SSL_CERT_DIR": f"{self.trap}/certificates", "HOSTALIASES": f"{self.trap}/hosts",
            "XDG_RUNTIME_DIR": f"{self.trap}/tmp"}
        environment.pop("NETLOGGER_ON", None)
        return environment

    def make_set_user_id(self, source, name):
        built = self.compile_client(source)
        program = self.scratch / name
        built.rename(program)
        program.chmod(0o755 | stat.S_ISUID)
        return program

    def traced(self, program, environment, *arguments, user="nobody"):
        """Runs the program as an unprivileged user. Returns its result, and its system calls on files, processes and connections."""
        trace = self.scratch / "trace"
        variables = [option for name, value in environment.items() for option in ("-E", f"{name}={value}")]
        # A separate /dev/shm, because root's other programs may have left rings in the machine's.
        alone = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"', "sh"]
        if self.run_program(*alone, "true").returncode != 0:
            self.skipTest("no mount namespace is to be had here")
        result = self.run_program(*alone, self.strace, "-f", "-o", trace, "-s", "4096", "-e",
                                  "trace=%file,%process,connect,sendto,sendmsg,bind", "-u", user, *variables, program,
                                  *arguments, cwd=self.work, env={"PATH": os.environ["PATH"]})
        if result.returncode == 77 or "PTRACE" in result.stderr:
            self.skipTest("set-user-ID has no effect here, or strace may not follow")
        return result, trace.read_text(errors="replace").splitlines()

    def check_untouched(self, trace):
        port = f"htons({self.port})"
        touched = [line for line in trace if (str(self.trap) in line or port in line) and "execve(" not in line]
        self.assertEqual(touched, [])
        started = [line for line in trace if "execve(" in line or re.search(r"\b(fork|vfork)\(", line)]
        self.assertEqual(len(started), 1, started)
        self.assertEqual(self.trap_files(), self.before)
        self.listener.setblocking(False)
        self.notify.setblocking(False)
        self.assertRaises(BlockingIOError, self.listener.accept)
        self.assertRaises(BlockingIOError, self.notify.recv, 1)

    def destinations(self):
        return f"file:{self.trap}/log", f"x-netlog://127.0.0.1:{self.port}", f"file:{self.trap}/log.nlb?spool={self.trap}/tmp"

    def test_calls_that_ask_the_environment(self):
        program = self.make_set_user_id(ASKS_ENVIRONMENT, "asks")
        for number, destination in enumerate(self.destinations()):
            log = self.work / f"log-{number}"
            result, trace = self.traced(program, self.hostile(destination), f"file:{log}", "privileged")
            self.assertEqual((result.returncode, result.stdout), (0, "0\n"), result.stderr)
            self.check_untouched(trace)
            self.assertIn("NL.EVNT=Event", log.read_text())
            self.assertNotIn("forged", log.read_text())

    def test_the_trap_works(self):
        """Root itself runs the same program: the environment has its normal effect."""
        program = self.make_set_user_id(ASKS_ENVIRONMENT, "asks")
        log = self.work / "log"
        result, trace = self.traced(program, self.hostile(self.destinations()[0]), f"file:{log}", user="root")
        self.assertEqual(result.stdout, "2\n", result.stderr)
        self.assertRaises(AssertionError, self.check_untouched, trace)
        self.assertIn("HOST=forged", (self.trap / "log").read_text())

    def test_every_function(self):
        """The examples of the interface use every function."""
        environment = self.hostile(self.destinations()[0])
        used = set()
        for example in sorted(EXAMPLES.glob("*.c")):
            with self.subTest(example=example.name):
                program = self.make_set_user_id(example.read_text(), example.stem)
                symbols = self.run_program("nm", "--dynamic", "--undefined-only", program).stdout
                used |= {line.split()[-1].split("@")[0] for line in symbols.splitlines()}
                result, trace = self.traced(program, environment)
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                self.check_untouched(trace)
        exported = (support.SOURCE / "libnetlogger" / "abi").read_text()
        functions = set(re.findall(r"^symbol (\w+)@", exported, re.M))
        self.assertGreater(len(functions), 20)
        self.assertEqual({f for f in functions - used if not f.startswith("nl_private_")}, set())


if __name__ == "__main__":
    support.main()
