"""Events of killed processes: nlrecover and netlogd deliver them to their destinations."""
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

import collector
import support

PROGRAM = r"""
#include <netlogger.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    nl_log *log = nl_open(argc > 3 ? argv[3] : "killed", argv[1]);
    if (log == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    for (int i = 0; i < atoi(argv[2]); i++)
        NL_EVENT(log, NL_USAGE, "Step", "I", i, "TEXT", "a b");
    raise(9);
}
"""

# Starts processes one after another. Each process exits while its threads log, after some more events were accepted. Prints the number
# of accepted events.
ENDING = r"""
#include <netlogger.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum { THREADS = 3 };
static nl_log *log_;
static unsigned long sum(const volatile unsigned long *accepted)
{
    unsigned long all = 0;
    for (int k = 0; k < THREADS; k++)
        all += accepted[k];
    return all;
}
static void *work(void *user)
{
    volatile unsigned long *accepted = user;
    for (;;) {
        if (nl_write(log_, NL_USAGE, "Step", "I=%lu", *accepted) == NL_OK)
            ++*accepted;
        usleep(5);
    }
    return NULL;
}
int main(int argc, char **argv)
{
    int processes = argc > 2 ? atoi(argv[2]) : 0;
    unsigned long *accepted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < processes; i++) {
        unsigned long before = sum(accepted);
        pid_t child = fork();
        if (child == 0) {
            pthread_t thread;
            log_ = nl_open("ending", argv[1]);
            for (int k = 0; k < THREADS; k++)
                pthread_create(&thread, NULL, work, accepted + k);
            while (sum(accepted) < before + i % 20)
                usleep(10);
            usleep(20 * (i % 10));
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    printf("%lu\n", sum(accepted));
    return 0;
}
"""

# Delays each connection that a program makes.
SLOW_TO_CONNECT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int (*original)(int, const struct sockaddr *, socklen_t) = dlsym(RTLD_NEXT, "connect");
    usleep(atoi(getenv("BEFORE_US")));
    int result = original(fd, address, size);
    usleep(atoi(getenv("AFTER_US")));
    return result;
}
"""

# The exit handler runs after the library's destructor, because it is registered before the libraries are initialised.
LATE = r"""
#include <netlogger.h>
#include <stdlib.h>
static nl_log *log_;
static void log_late(int status, void *user)
{
    NL_EVENT(log_, NL_USAGE, "Late", "A", 1);
}
static void watch(void)
{
    on_exit(log_late, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*first)(void) = watch;
int main(int argc, char **argv)
{
    log_ = nl_open("late", argv[1]);
    if (argc > 2)
        NL_EVENT(log_, NL_USAGE, "Early", "A", 1);
    return 0;
}
"""


class Nlrecover(support.Case):
    def setUp(self):
        super().setUp()
        self.shm = self.scratch / "shm"
        self.shm.mkdir()
        self.environment = {**os.environ, "NETLOGGER_SHM": str(self.shm)}
        self.program = self.compile_client(PROGRAM)

    def be_killed(self, url, count=1000):
        result = self.run_program(self.program, url, str(count), env=self.environment, cwd=self.scratch)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)

    def recover(self, *arguments):
        return self.run_program(support.program("nltools/nlrecover"), *arguments, env=self.environment)

    def assert_numbers(self, text, count=1000):
        self.assertEqual([int(n) for n in re.findall(r" NL.EVNT=Step I=(\d+) TEXT=\"a b\"\n", text)], list(range(count)))

    def test_to_where_it_was_going(self):
        self.be_killed("file:a.log")
        listed = self.recover("--list")
        self.assertEqual(listed.returncode, 0)
        self.assertEqual(listed.stderr, "")
        self.assertRegex(listed.stdout, r"^killed \(process \d+\): \d+ events waiting for file:/.*/a\.log\n$")
        result = self.recover()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("events recovered, for file:", result.stderr)
        self.assert_numbers((self.scratch / "a.log").read_text())
        again = self.recover()
        self.assertEqual((again.returncode, again.stderr), (0, "nothing to recover\n"))
        self.assertEqual(list(self.shm.iterdir()), [])

    def test_a_damaged_ring(self):
        """nlrecover and netlogd keep a ring with a damaged header, and report how to discard it."""
        self.be_killed("file:a.log")
        ring, = self.shm.glob("netlogger-*/ring-*")
        with open(ring, "r+b") as file:
            file.write(b"?")
        problem = rf"\? \(process \d+\), 0 events for {ring}: damaged header; .*; to discard them, remove the file\n"
        for _ in range(2):
            result = self.recover()
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, problem)
            self.assertTrue(ring.exists())
        messages = self.scratch / "messages"
        with open(messages, "w") as out:
            netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen",
                                 f"x-netlog://127.0.0.1:{support.free_port()}", "--output", self.scratch / "b.log",
                                 "--recover", "1", env=self.environment, stderr=out)
        support.wait_until(lambda: "Netlogd.RecoverFailed" in messages.read_text(), what="netlogd reports the ring")
        netlogd.terminate()
        netlogd.wait()
        self.assertRegex(messages.read_text(), rf" URL={ring} REASON=\"damaged header; .*; to discard them, remove the file\"")
        ring.unlink()
        self.assertEqual(self.recover().returncode, 0)
        self.assertEqual(list(self.shm.iterdir()), [])

    def test_processes_that_end_while_threads_log(self):
        """Every accepted event is in the log, and no shared memory remains."""
        processes, threads = support.representative(100, 40), 3
        log = self.scratch / "ending.log"
        result = self.run_program(self.compile_client(ENDING), f"file:{log}", str(processes), env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        accepted = int(result.stdout)
        self.assertGreaterEqual(accepted, processes // 20 * sum(range(20)))
        recovered = self.recover()
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        events = log.read_text().count(" NL.EVNT=Step ")
        self.assertGreaterEqual(events, accepted)
        self.assertLessEqual(events, accepted + processes * threads)  # the process ended before the thread counted the event
        self.assertEqual(list(self.shm.iterdir()), [])
        self.assertIn("the program is ending; events that its threads still log are lost", result.stderr)

    def test_first_event_of_a_place_after_the_end(self):
        """When the process has ended its logs, the first event of a place does not create the shared memory again."""
        program = self.compile_client(LATE)
        for arguments in [], ["early"]:
            log = self.scratch / "late.log"
            result = self.run_program(program, f"file:{log}", *arguments, env=self.environment)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(log.read_text().count(" NL.EVNT=Early ") if log.exists() else 0, len(arguments))
            self.assertIn("the program is ending; events that its threads still log are lost", result.stderr)
            self.assertEqual(list(self.shm.iterdir()), [])

    def test_control_characters_of_a_name_are_not_printed(self):
        """The shared memory belongs to another user. Its names may contain control sequences for terminals, or text that looks
        like another line."""
        folder = self.scratch / "folder"
        folder.mkdir()
        result = self.run_program(self.program, "file:folder/a.log", "10", "k\x1b]2;x\x07\nd\t", env=self.environment, cwd=self.scratch)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)
        lines = [self.recover("--list").stdout]
        shutil.rmtree(folder)
        lines.append(self.recover().stderr)
        folder.mkdir()
        lines.append(self.recover().stderr)
        name = r"k\?]2;x\?\?d\? \(process \d+\)"
        for line, pattern in zip(lines, [r"{}: \d+ events? waiting for .*", r"nlrecover: {}, \d+ events? for .*: No such file .*", r"{}: \d+ events? recovered, for .*"]):
            self.assertRegex(line, rf"^{pattern.format(name)}\n$")

    def test_to_another_destination_and_format(self):
        self.be_killed("file:b.nlb")
        result = self.recover("--quiet", "--dest", f"file:{self.scratch}/other.bp?format=bp")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        text = (self.scratch / "other.bp").read_text()
        numbers = [int(n) for n in re.findall(r" event=Step .*?I=(\d+) ", text)]
        written = (self.scratch / "b.nlb").stat().st_size
        self.assertEqual(numbers[-1], 999)
        self.assertEqual(numbers, list(range(numbers[0], 1000)))
        self.assertTrue(numbers[0] == 0 or written > 0)

    def test_a_destination_that_is_away(self):
        port = support.free_port()
        netlogd, output = self.start_collector(port)
        self.be_killed(f"x-netlog://127.0.0.1:{port}?ring=64k", 100)
        first = output.read_text() if output.exists() else ""
        netlogd.terminate()
        netlogd.wait()
        result = self.recover()
        if "nothing to recover" not in result.stderr and "recovered" not in result.stderr:
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"nlrecover: killed \(process \d+\), \d+ events for x-netlog:.*: .*refused")
        netlogd, output = self.start_collector(port)
        self.assertEqual(self.recover().returncode, 0)
        netlogd.terminate()
        netlogd.wait()
        # Text over TCP is not acknowledged: lines that were in transit when the process was killed may arrive twice.
        numbers = re.findall(r" NL.EVNT=Step I=(\d+) ", output.read_text())
        self.assertEqual(sorted({int(n) for n in numbers}), list(range(100)))

    def test_relative_names_hold_in_any_folder(self):
        port = support.free_port()
        self.be_killed(f"x-netlog://127.0.0.1:{port}?spool=away%20and%26")
        spool = self.scratch / "away and&"
        result = self.recover()
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(f"moved to the spool {spool}", result.stderr)
        self.assertTrue(any(spool.iterdir()))
        netlogd, output = self.start_collector(port, "--recover", "0")
        self.assertEqual(self.recover().returncode, 0)
        netlogd.terminate()
        netlogd.wait()
        self.assert_numbers(output.read_text())

    def test_a_spool(self):
        """If the collector is away, nlrecover puts the events of a killed process in the spool. A later call delivers them."""
        for options in ["", "&format=nlb"]:
            port, spool = support.free_port(), self.scratch / "spool"
            self.be_killed(f"x-netlog://127.0.0.1:{port}?spool={spool}{options}")
            for _ in range(2):
                result = self.recover()
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, rf"events for x-netlog:.*: moved to the spool {spool}: x-netlog://.*refused")
                self.assertNotEqual(list(spool.rglob("*.spool")), [])
            netlogd, output = self.start_collector(port, "--recover", "0")
            result = self.recover()
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("1000 events recovered, for x-netlog:", result.stderr)
            self.assertEqual(self.recover().stderr, "nothing to recover\n")
            self.assertEqual(list(spool.rglob("*.spool")), [])
            netlogd.terminate()
            netlogd.wait()
            self.assert_numbers(output.read_text())
            output.unlink()

    def test_a_backup_file(self):
        """A collector stores each block of a backup file once. Damaged and incomplete blocks are reported."""
        port, backup = support.free_port(), self.scratch / "backup.nlb"
        url, count = f"x-netlog://127.0.0.1:{port}", 5000
        lines = "".join(f'DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Step I={i} TEXT="a b"\n' for i in range(count))
        written = self.run_program(support.program("nltools/nlwrite"), "--dest", f"{url}?backup=file:{backup}", "-", input=lines,
                                   env=self.environment)
        self.assertEqual(written.returncode, 0, written.stderr)
        away = self.recover("--dest", url, backup)
        self.assertEqual(away.returncode, 1)
        self.assertRegex(away.stderr, r"\Anlrecover: x-netlog://.*refused.*\n\Z")
        netlogd, output = self.start_collector(port)
        content = backup.read_bytes()
        pieces = self.scratch / "pieces.nlb"
        pieces.write_bytes(b"NLB1 no block" + content[:len(content) // 2])
        result = self.recover("--dest", url, pieces)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, rf"\Anlrecover: {pieces}: skipped \d+ bytes outside of whole blocks\n"
                                        rf"{pieces}: \d+ events sent to {url}\n\Z")
        for _ in range(2):
            result = self.recover("--dest", url, backup)
            self.assertEqual((result.returncode, result.stderr), (0, f"{backup}: {count} events sent to {url}\n"))
        netlogd.terminate()
        netlogd.wait()
        self.assert_numbers(output.read_text(), count)

    def test_wrong_backup_files(self):
        port, text = support.free_port(), self.scratch / "backup.log"
        netlogd, output = self.start_collector(port)
        text.write_text("DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=E\n")
        url = f"x-netlog://127.0.0.1:{port}"
        result = self.recover("--dest", url, text)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{text}: no blocks; to send text, use nlwrite --dest {url} - {text}", result.stderr)
        self.assertIn("No such file", self.recover("--dest", url, self.scratch / "none").stderr)
        for arguments in [[text], ["--dest", "a.log", text], ["--dest", f"{url}?format=ulm", text], ["--dest", url, "--list", text]]:
            result = self.recover(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertIn("FILE ", result.stderr)
        netlogd.terminate()
        netlogd.wait()
        self.assertEqual(output.read_text() if output.exists() else "", "")

    def test_events_that_another_destination_already_has(self):
        """With --dest, a collector that already has the events of a killed program stores them only once."""
        port = support.free_port()
        self.be_killed(f"x-netlog://127.0.0.1:{port}?ring=16m")
        directory, = self.shm.iterdir()
        shutil.copytree(directory, self.scratch / "copy")
        netlogd, output = self.start_collector(port, "--recover", "0")
        self.assertEqual(self.recover().returncode, 0)
        shutil.copytree(self.scratch / "copy", directory)
        self.assertEqual(self.recover("--dest", f"x-netlog://localhost:{port}").returncode, 0)
        self.assertFalse(directory.exists())
        netlogd.terminate()
        netlogd.wait()
        self.assert_numbers(output.read_text())

    def test_an_empty_log_of_standard_error(self):
        """A killed netlogd leaves a log to standard error. If this log has no events, nlrecover removes it."""
        netlogd, _ = self.start_collector(port := support.free_port())
        self.assertIn("Netlogd.Listen", netlogd.stderr.readline())
        self.assertTrue(support.can_connect(port))
        tasks = list(pathlib.Path(f"/proc/{netlogd.pid}/task").iterdir())  # the log is empty when its writer thread sleeps again
        support.wait_until(lambda: all((t / "stat").read_text().rpartition(")")[2].split()[0] == "S" for t in tasks), what="netlogd's threads sleep")
        self.assertEqual(len(list(self.shm.glob("netlogger-*"))), 1)
        netlogd.kill()
        netlogd.wait()
        result = self.recover()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(list(self.shm.glob("netlogger-*")), [])

    def start_collector(self, port, *options, environment={}):
        output = self.scratch / "collected.log"
        netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}",
                             "--output", output, *options, env={**self.environment, **environment}, stderr=subprocess.PIPE, text=True)
        support.wait_until(lambda: "listening" in netlogd.stderr.readline(), what="netlogd listens")
        return netlogd, output

    def test_netlogd_does_it_by_itself(self):
        self.be_killed("file:c.log")
        netlogd, _ = self.start_collector(support.free_port(), "--recover", "1")
        log = self.scratch / "c.log"
        support.wait_until(lambda: log.exists() and log.read_text().count("\n") == 1000, what="the events are recovered")
        self.be_killed("file:d.log")
        log = self.scratch / "d.log"
        support.wait_until(lambda: log.exists() and log.read_text().count("\n") == 1000, what="later ones too")
        self.assert_numbers(log.read_text())
        netlogd.terminate()
        netlogd.wait()

    def be_killed_early(self, port, count):
        """Returns the numbers of events sent to a collector that has ended since. The others must be recovered."""
        with socket.create_server(("127.0.0.1", port)) as before:
            sent = []

            def serve():
                with before.accept()[0] as connection:
                    connection.sendall(collector.ACKNOWLEDGEMENT)
                    sent.append(connection.makefile("rb").read())

            server = threading.Thread(target=serve, daemon=True)
            server.start()
            self.be_killed(f"x-netlog://127.0.0.1:{port}?ring=4m&format=ulm", count)
            server.join(60)
            return self.numbers(sent[0].split(collector.QUESTION_END)[1].decode())

    def numbers(self, text):
        return {int(n) for n in re.findall(r" NL.EVNT=Step I=(\d+) TEXT=", text)}

    def test_a_collector_that_ends_while_it_recovers_to_itself(self):
        """At its end, netlogd stores the events that its own recovery has delivered. The next netlogd delivers the rest."""
        port, count, slow = support.free_port(), 5000, self.scratch / "slow.so"
        (self.scratch / "slow.c").write_text(SLOW_TO_CONNECT)
        subprocess.run([*shlex.split(support.CC), "-shared", "-fPIC", "-o", slow, self.scratch / "slow.c"], check=True)
        for before, after in [(0, 0), (200000, 0), (0, 200000), (10**8, 0), (0, 10**8)]:
            numbers = self.be_killed_early(port, count)
            for options, environment in [((), {"LD_PRELOAD": str(slow), "BEFORE_US": str(before), "AFTER_US": str(after),
                                               "ASAN_OPTIONS": "verify_asan_link_order=0"}), (("--recover", "0"), {})]:
                netlogd, output = self.start_collector(port, *options, environment=environment)
                if options:
                    self.assertEqual(self.recover().returncode, 0)
                netlogd.terminate()
                self.assertEqual(netlogd.wait(60), 0)
            self.assertEqual(sorted(numbers | self.numbers(output.read_text())), list(range(count)))
            output.unlink()

    def test_a_daemon_that_closed_all_its_descriptors_lives(self):
        program = self.compile_client("""
            #include <netlogger.h>
            #include <stdio.h>
            #include <unistd.h>
            int main(int argc, char **argv)
            {
                nl_log *log = nl_open("daemon", argv[1]);
                NL_EVENT(log, NL_USAGE, "Step", "I", 0, "TEXT", "a b");
                for (int fd = 3; fd < 1000; fd++)
                    close(fd);
                puts("closed");
                fflush(stdout);
                getchar();
                (void)argc;
                return 0;
            }""")
        daemon = self.start(program, "file:e.log", env=self.environment, cwd=self.scratch, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
        self.assertEqual(daemon.stdout.readline(), "closed\n")
        self.assertEqual(self.recover().stderr, "nothing to recover\n")
        daemon.kill()
        daemon.wait()
        self.assertEqual(self.recover().returncode, 0)
        self.assert_numbers((self.scratch / "e.log").read_text(), 1)

    def prepare_users(self, *users):
        """Makes shared memory and a home for each user. Returns the homes' parent, the shared memory and the homes."""
        if os.geteuid() != 0:
            self.skipTest("only root can recover the processes of other users")
        shared = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-users-", dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, shared)
        shm = shared / "shm"
        shm.mkdir()
        for path in shared, shm:
            path.chmod(0o1777)
        self.environment["NETLOGGER_SHM"] = str(shm)
        self.environment["LD_LIBRARY_PATH"] = str(shutil.copytree(support.BUILD / "libnetlogger/.libs", shared / "lib"))
        self.shared_program = shutil.copy(self.program, shared)
        homes = {user: shared / str(user) for user in users}
        for user, home in homes.items():
            home.mkdir(mode=0o700)
            os.chown(home, user, user)
        return shared, shm, homes

    def log_as(self, user, home, url, groups=()):
        result = self.run_program(self.shared_program, url, "1000", user=user, group=user, extra_groups=groups, env=self.environment, cwd=home)
        self.assertEqual(result.returncode, -signal.SIGKILL, result.stderr)

    def test_users_without_entries(self):
        """Each user has exactly the right permissions: a user without a database entry, one in an unknown group, and one with a
        second group."""
        unknown, no_group, known = 61001, 61002, 61003
        shared, _, homes = self.prepare_users(unknown, no_group, known)
        (shared / "passwd").write_text("root:x:0:0::/root:/bin/sh\n"
                                       f"nogroup1:x:{no_group}:61012::/:/bin/sh\nknown:x:{known}:61013::/:/bin/sh\n")
        (shared / "group").write_text("root:x:0:\nknown:x:61013:\nsecond:x:61014:known\n")
        second = shared / "second"
        second.mkdir()
        os.chown(second, 0, 61014)
        second.chmod(0o770)
        logs = {unknown: homes[unknown] / "own.log", no_group: homes[no_group] / "own.log", known: second / "own.log"}
        written = {}  # the events that the program has written before its end
        for user, log in logs.items():
            self.log_as(user, homes[user], f"file:{log}", groups=[61014] if user == known else [])
            written[user] = log.read_text()
            log.unlink()
        result = self.run_program("unshare", "-m", "sh", "-c", 'mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/group" /etc/group && exec "$2" --everyone',
                                  "sh", shared, support.program("nltools/nlrecover"), env=self.environment)
        if "unshare failed" in result.stderr or "mount:" in result.stderr:
            self.skipTest("needs the right to mount")
        self.assertEqual(result.returncode, 0, result.stderr)
        for user, group in (unknown, 65534), (no_group, 61012), (known, 61013):
            self.assert_numbers(written[user] + logs[user].read_text())
            status = logs[user].stat()
            self.assertEqual((status.st_uid, status.st_gid), (user, group))

    def test_all_users(self):
        """nlrecover writes the events of a user only where this user may write, even if a URL names another place. nlrecover
        needs only the right to change its user."""
        users = (61001, 61002)
        shared, shm, homes = self.prepare_users(*users)

        # A user's shared memory names a file that only root may write.
        secret = shared / "secret.log"
        for _ in range(50):
            secret.write_text("")
            secret.chmod(0o666)
            self.log_as(users[0], homes[users[0]], f"file:{secret}")
            written = secret.read_text()
            if not re.match(r"[^:]*: 0 events", self.recover("--list", "--everyone").stdout):
                break
            self.recover("--everyone")
        secret.chmod(0o600)
        for user in users:
            self.log_as(user, homes[user], f"file:{homes[user]}/own.log")
        self.be_killed(f"file:{shared}/root.log")
        waiting = {path.name.split("-")[1] for path in shm.iterdir()}
        self.assertEqual(waiting, {"0", "61001", "61002"})

        rights = ["setpriv", "--bounding-set=-all,+setuid,+setgid", "--no-new-privs"]
        result = self.run_program(*rights, support.program("nltools/nlrecover"), "--everyone", env=self.environment)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("Permission denied"), 1, result.stderr)
        for user in users:
            log = homes[user] / "own.log"
            self.assert_numbers(log.read_text())
            self.assertEqual(log.stat().st_uid, user)
            self.assertEqual([path.name for path in homes[user].iterdir()], ["own.log"])
        self.assert_numbers((shared / "root.log").read_text())
        self.assertEqual(secret.read_text(), written)
        self.assertEqual({path.name.split("-")[1] for path in shm.iterdir()}, {"61001"}, "what cannot be written stays")

        result = self.run_program(support.program("nltools/nlrecover"), "--everyone", env=self.environment, user=users[0],
                                  group=users[0], extra_groups=[])
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("only root", result.stderr)

    def test_wrong_use(self):
        self.assertEqual(self.recover("--nonsense").returncode, 2)
        self.assertEqual(self.recover("--help").returncode, 0)

    def test_standard_output_is_gone_with_its_process(self):
        self.run_program(self.program, "-", "100", env=self.environment)
        result = self.recover()
        if "nothing" not in result.stderr:
            self.assertEqual(result.returncode, 1)
            reason = (r"the killed program wrote to its own output or memory, which no longer exists \(the events remain in (\S+); "
                      r"to deliver them elsewhere, use nlrecover --dest; to discard them, remove this directory\)\n\Z")
            self.assertRegex(result.stderr, reason)
            directory = pathlib.Path(re.search(reason, result.stderr)[1])
            shutil.copytree(directory, self.scratch / "copy")
            shutil.rmtree(directory)
            self.assertEqual(self.recover().stderr, "nothing to recover\n")
            shutil.copytree(self.scratch / "copy", directory)
            failed = self.recover("-d", "/dev/full")
            self.assertEqual(failed.returncode, 1)
            self.assertRegex(failed.stderr, rf"No space left on device \(the events remain in {directory}\)\n")
        self.assertEqual(self.recover("-d", "-").returncode, 0)


if __name__ == "__main__":
    support.main()
