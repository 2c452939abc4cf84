"""Tests that a logging call does not use the heap in a signal handler, and needs no privileges."""
import os
import stat
import subprocess
import unittest

import support

# Every call of malloc and similar functions ends the program while `inside` is set. While `armed` is set, each raises a
# signal whose handler logs: in the middle of another event's call, and of the heap's own work.
IN_HANDLERS = r"""
#define _GNU_SOURCE
#include <netlogger.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static __thread volatile sig_atomic_t armed, inside;
static volatile long refused, logged;
static nl_log *log_;
static void touched(void)
{
    if (inside && write(2, "the heap was used in a handler\n", 31))
        _exit(3);
    if (armed)
        raise(SIGUSR1);
}
void *malloc(size_t size) { touched(); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { touched(); return __libc_calloc(count, size); }
void *realloc(void *old, size_t size) { touched(); return __libc_realloc(old, size); }
static void handler(int number)
{
    inside = 1;
    if (nl_write(log_, NL_USAGE, "Handler", "I=%d S=%s", number, "text") == NL_OK)
        logged++;
    else
        refused++;
    NL_EVENT(log_, NL_USAGE, "Typed", "I", number);
    inside = 0;
}
static void *work(void *unused)
{
    char format[200];
    static int n;
    /* A thread's first calls: once from the handler itself, once with a handler in the middle of them. */
    if (n % 2 == 0)
        raise(SIGUSR1);
    snprintf(format, sizeof format, "A%d=%%d B%d=x%%dy C%d=%%s", n, n, n);
    n++;
    armed = 1;
    nl_write(log_, NL_USAGE, "Main", format, 1, 2, "three");
    armed = 0;
    return unused;
}
int main(int argc, char **argv)
{
    (void)argc;
    signal(SIGUSR1, handler);
    log_ = nl_open("p", argv[1]);
    nl_write(log_, NL_USAGE, "Handler", "I=%d S=%s", 0, "text");
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
    }
    signal(SIGUSR1, SIG_IGN);
    nl_close(log_);
    printf("%ld %ld\n", logged, refused);
    return 0;
}
"""

# Makes all threads appear to run on processor 0, although another processor exists.
AFFINITY = r"""
#define _GNU_SOURCE
#include <netlogger.h>
#include <pthread.h>
#include <sched.h>
static volatile int calls;
int sched_getcpu(void) { return 0; }
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void)pid, (void)size;
    CPU_ZERO(set);
    CPU_SET(0, set);
    CPU_SET(1, set);
    return 0;
}
int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) { (void)pid, (void)size, (void)set; calls++; return 0; }
int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    (void)thread, (void)size, (void)set;
    calls++;
    return 0;
}
int main(int argc, char **argv)
{
    (void)argc;
    nl_log *log = nl_open("p", argv[1]);
    if (log == NULL)
        return 2;
    for (int i = 0; i < 1000000; i++)
        NL_EVENT(log, NL_USAGE, "Event", "I", i);
    return nl_close(log) != NL_OK || calls > 0;
}
"""

ENVIRONMENT = r"""
#include <netlogger.h>
#include <stdio.h>
#include <sys/auxv.h>
int main(int argc, char **argv)
{
    (void)argc;
    if (!getauxval(AT_SECURE))
        return 77;
    nl_log *log = nl_open("p", argv[1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    NL_EVENT(log, NL_DEBUG, "Event");
    return nl_close(log) != NL_OK;
}
"""


class Calls(support.Case):
    def compile_plain(self, source):
        if "sanitize" in support.CC:
            self.skipTest("the sanitizers have a heap of their own, and no privileges")
        return self.compile_client(source)

    def test_no_heap_in_handlers(self):
        program = self.compile_plain(IN_HANDLERS)
        result = self.run_program(program, self.scratch / "log")
        self.assertEqual(result.returncode, 0, result.stderr)
        logged, refused = map(int, result.stdout.split())
        self.assertGreaterEqual(logged, 10)
        self.assertGreater(refused, 0)

    def test_affinity_is_left_alone(self):
        """The writer thread competes with a thread that logs without a pause."""
        program = self.compile_plain(AFFINITY)
        result = self.run_program(program, f"file:{self.scratch}/log?ring=64k")
        self.assertEqual(result.returncode, 0, result.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to make a set-user-id program")
    def test_environment_of_a_set_user_id_program(self):
        support.skip_where_others_may_not_enter(self)
        program = self.compile_plain(ENVIRONMENT)
        output = self.scratch / "log"
        output.touch()
        os.chown(output, 65534, 65534)
        self.scratch.chmod(0o755)
        os.chown(program, 65534, 65534)
        program.chmod(0o755 | stat.S_ISUID)
        hostile = {"NETLOGGER_HOST": "forged", "NETLOGGER_LEVEL": "Error", "NETLOGGER_ON": "off",
                   "NETLOGGER_SHM": str(self.scratch)}
        result = subprocess.run([program, f"file:{output}"], env={**os.environ, **hostile}, capture_output=True,
                                text=True, timeout=60)
        if result.returncode == 77:
            self.skipTest("set-user-id has no effect here")
        self.assertEqual(result.returncode, 0, result.stderr)
        text = output.read_text()
        self.assertIn("NL.EVNT=Event", text)
        self.assertNotIn("forged", text)


if __name__ == "__main__":
    support.main()
