"""Tests nlwrite with every destination, and its messages for failures."""
import collections
import datetime
import os
import pathlib
import re
import select
import socket
import struct
import subprocess
import threading
import unittest

import collector
import support


class Nlwrite(support.Case):
    def setUp(self):
        super().setUp()
        self.nlwrite = support.program("nltools/nlwrite")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("NETLOGGER_")}

    def write(self, *arguments, **options):
        environment = {**self.environment, **options.pop("environment", {})}
        return self.run_program(self.nlwrite, *arguments, env=environment, **options)

    def test_one_event_to_standard_output(self):
        result = self.write("--host", "h", "Backup.Done", "SIZE=5", 'FILE=/home/a "b"\n=\\', "EMPTY=")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(
            result.stdout,
            r'^DATE=\d{14}\.\d{6} HOST=h PROG=nlwrite LVL=Usage NL\.EVNT=Backup\.Done SIZE=5 '
            r'FILE="/home/a \\"b\\"\\n=\\\\" EMPTY=""\n$',
        )

    def test_what_was_written_is_read_back(self):
        values = ["a b", 'quo"te', "tab\tnew\nline\rreturn", "back\\slash", "=", "", "ü€", "x=1 y=2", "\x01\x7f"]
        log = self.scratch / "a.log"
        fields = [f"V{i}={value}" for i, value in enumerate(values)]
        self.assertEqual(self.write("--dest", log, "Event", *fields).returncode, 0)
        again = self.write("--dest", f"file:{self.scratch}/b.log?format=bp", "-", input=log.read_text())
        self.assertEqual(again.returncode, 0, again.stderr)
        back = self.write("-", input=(self.scratch / "b.log").read_text())
        self.assertEqual(back.stdout, log.read_text())

    def test_records_that_are_passed_on(self):
        lines = [f"DATE=2026010112000{i}.000000 HOST=h PROG=p LVL=Usage NL.EVNT=E{i}\n" for i in range(6)]
        result = self.write("--since", "2026-01-01T12:00:01", "--until", "2026-01-01T12:00:05", "--where", "NL.EVNT != E3", "-", input="".join(lines))
        self.assertEqual((result.returncode, result.stdout), (0, "".join(lines[i] for i in (1, 2, 4))), result.stderr)

    def test_options_that_do_not_apply_to_copied_records(self):
        for option, value in [("--host", "h"), ("--level", "Error")]:
            result = self.write(option, value, "-", input="DATE=20260101120000 HOST=a PROG=p LVL=Usage NL.EVNT=E\n")
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(f"nlwrite: {option} applies only to EVENT", result.stderr)

    def test_a_record_of_a_pipe_is_passed_on_at_once(self):
        process = self.start(self.nlwrite, "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        line = b"DATE=20260101120000.000000 HOST=h PROG=p LVL=Usage NL.EVNT=A\n"
        process.stdin.write(line)  # the connection stays open
        self.assertTrue(select.select([process.stdout], [], [], 20)[0], "nothing came")
        self.assertEqual(process.stdout.readline(), line)

    def test_environment(self):
        log = self.scratch / "env.log"
        names = {"NETLOGGER_DEST": str(log), "NETLOGGER_HOST": "myhost"}
        self.assertEqual(self.write("E1", environment=names).returncode, 0)
        self.assertEqual(self.write("E2", environment={**names, "NETLOGGER_ON": "0"}).returncode, 0)
        self.assertEqual(self.write("E3", "--level", "Debug", environment={**names, "NETLOGGER_LEVEL": "Usage"}).returncode, 0)
        lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn("HOST=myhost", lines[0])

    def test_missing_directory(self):
        missing = self.scratch / "no"
        result = self.write("--dest", missing / "a.log", "Lost")
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"nlwrite: open {missing}/a.log: No such file or directory; create the directory {missing}\n"))

    def test_events_that_wait_in_a_spool(self):
        """Without a collector, nlwrite succeeds, and prints where the event waits. The next nlwrite delivers it; nlrecover does not list it."""
        port, spool = support.free_port(), self.scratch / "spool"
        url = f"x-netlog://127.0.0.1:{port}?spool={spool}"
        result = self.write("--dest", url, "Waits")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (0, 1), result.stderr)
        self.assertRegex(result.stderr, rf"\Anlwrite: .*: 1 event remains in the spool {re.escape(str(spool))}; "
                                        r"this user's next program with this URL delivers it\n\Z")
        self.assertNotIn("spool", self.run_program(support.program("nltools/nlrecover"), "--list").stdout)
        output = self.scratch / "all.log"
        netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output", output,
                             stderr=subprocess.DEVNULL)
        support.wait_until(lambda: self.write("--dest", url, "Follows").stderr == "", what="netlogd listens")
        support.wait_until(lambda: output.exists() and "NL.EVNT=Follows" in output.read_text(), what="the last event")
        netlogd.terminate()
        self.assertEqual(netlogd.wait(20), 0)
        self.assertEqual(output.read_text().count("NL.EVNT=Waits"), 1)

    def assert_fails(self, destination, reason):
        result = self.write("--dest", destination, "E")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("nlwrite: "), result.stderr)
        self.assertIn(reason, result.stderr)

    def test_failures_are_one_clear_message(self):
        self.assert_fails(f"x-netlog://127.0.0.1:{support.free_port()}", "Connection refused")
        self.assert_fails("x-netlog://no-such-host.invalid", "x-netlog://no-such-host.invalid: ")
        self.assert_fails(f"unix:{self.scratch}/none.sock", "No such file or directory")
        self.assert_fails(f"{self.scratch}/none/a.log", "No such file or directory")
        self.assert_fails(str(self.scratch), "Is a directory")
        self.assert_fails("/dev/full", "No space left on device")
        known = "use x-netlog, x-netlogs, x-syslog, unix, memory or file\n"
        self.assert_fails("gopher://x", f"unknown scheme; {known}")
        self.assert_fails("x-netlg://x", f"unknown scheme (did you mean x-netlog?); {known}")
        self.assert_fails("x-netlog://h:99999", "is not a port")
        self.assert_fails("file:a?colour=red", 'unknown option "colour"')
        self.assert_fails("file:a?buffer=64k", 'unknown option "buffer"')
        self.assert_fails("x-syslog://nosuch", "unknown syslog facility")

    def test_fields_that_would_be_renamed_are_refused(self):
        for field, why in [("HOST=h", "HOST is a standard field; use --host"), ("DATE=2026", "DATE is a standard field"),
                           ("a b=1", '"a b" is not a field name'), ("1a=1", '"1a" is not a field name')]:
            result = self.write("E", field)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn(why, result.stderr)
        self.assertIn(" host=h ts=1\n", self.write("E", "host=h", "ts=1").stdout)
        self.assertIn("host is a standard", self.write("--dest", f"file:{self.scratch}/a?format=bp", "E", "host=h").stderr)

    def test_options_behind_a_bare_name_are_no_file(self):
        bare = f"{self.scratch}/a.log?format=bp"
        self.assert_fails(bare, f"no such file; to give options, write file:{bare}")
        self.assertEqual(list(self.scratch.glob("a.log*")), [])
        self.assertEqual(self.write("--dest", f"file:{bare}", "E").returncode, 0)
        self.assertTrue((self.scratch / "a.log").read_text().startswith("ts="))

    def test_the_address_of_a_host_is_no_file(self):
        for address in ("localhost", "127.0.0.1", "dolly:14830", socket.gethostname()):
            result = self.write("--dest", address, "E", cwd=self.scratch)
            self.assertEqual((result.returncode, result.stderr), (1, f'nlwrite: URL "{address}": no such file; for a collector, write '
                                                                     f"x-netlog://{address}; for a new file, write ./{address}\n"))
        self.assertEqual(list(self.scratch.iterdir()), [])
        for _ in range(2):
            self.assertEqual(self.write("--dest", "./localhost", "E", cwd=self.scratch).returncode, 0)
        self.assertEqual(self.write("--dest", "localhost", "E", cwd=self.scratch).returncode, 0)
        self.assertEqual(len((self.scratch / "localhost").read_text().splitlines()), 3)

    def test_wrong_use_is_status_2(self):
        for arguments in [[], ["--level", "Loud", "E"], ["E", "novalue"], ["E", "=x"], ["--nonsense"]]:
            self.assertEqual(self.write(*arguments).returncode, 2, arguments)
        self.assertEqual(self.write("--help").returncode, 0)
        self.assertRegex(self.write("--version").stdout, r"^nlwrite \(NetLogger\) \d+\.\d+\.\d+\n$")

    def test_no_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may write everywhere")
        closed = self.scratch / "closed.log"
        closed.touch(0o444)
        self.assert_fails(str(closed), "Permission denied")

    def test_full_disk_leaves_whole_lines(self):
        if os.geteuid() != 0:
            self.skipTest("mounting a small file system needs root")
        small = self.scratch / "small"
        small.mkdir()
        mounted = self.run_program("mount", "-t", "tmpfs", "-o", "size=64k", "none", small)
        if mounted.returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(self.run_program, "umount", small)
        lines = "".join(f"DATE=20260101000000.{i:06d} HOST=h PROG=p LVL=Usage NL.EVNT=E N={i}\n" for i in range(3000))
        self.environment["NETLOGGER_SHM"] = str(self.scratch)  # without the events of other programs
        result = self.write("--dest", f"file:{small}/a.log?append=yes", "-", input=lines)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No space left on device", result.stderr)
        read = int(re.search(r"nlwrite: stopped after (\d+) records?; the rest of the input is not copied\n\Z", result.stderr)[1])
        missing = int(re.search(r"nlwrite: (\d+) events not delivered", result.stderr)[1])
        kept = (small / "a.log").read_text()
        self.assertEqual(read - missing, kept.count("\n"))
        rest = self.run_program(support.program("nltools/nlrecover"), "--dest", self.scratch / "rest.log", env=self.environment)
        self.assertIn(f"{missing} events recovered", rest.stderr)
        self.assertEqual(kept + (self.scratch / "rest.log").read_text(), "".join(lines.splitlines(True)[:read]))
        self.assertGreater(len(kept), 30000)
        self.assertTrue(lines.startswith(kept))
        self.assertTrue(kept.endswith("\n"))

    def test_malformed_input_is_counted_and_passed_over(self):
        text = "DATE=20260101000000 NL.EVNT=A\n" + "garbage\n" * 9 + "DATE=20260101000001 NL.EVNT=B\n"
        reject = self.scratch / "reject"
        result = self.write("--reject", reject, "-", input=text)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stdout.count("NL.EVNT="), 2)
        self.assertIn("-:2: no DATE= field", result.stderr)
        self.assertIn("4 more malformed lines", result.stderr)
        self.assertEqual(reject.read_text(), "garbage\n" * 9)


class Client(support.Case):
    """Compiles a user's program with the library of the build directory."""

    PROGRAM = r"""
#include <netlogger.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static nl_log *log_;

static void *work(void *argument)
{
    for (int i = 0; i < 10000; i++)
        if (nl_write(log_, NL_USAGE, "Work", "THREAD=%ld I=%d TEXT=%s", (long)argument, i, "a b=\"c\"") != NL_OK)
            abort();
    return NULL;
}

static void *chatter(void *stop)
{
    while (!*(volatile int *)stop) {
        nl_write(log_, NL_DEBUG, "Chatter", NULL);
        usleep(10);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    log_ = nl_open("client", argv[2]);
    if (log_ == NULL)
        return fprintf(stderr, "%s\n", nl_error_message()), 1;
    if (strcmp(argv[1], "threads") == 0) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, work, (void *)i);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    } else if (strcmp(argv[1], "forks") == 0) {
        int stop = 0;
        pthread_t thread;
        pthread_create(&thread, NULL, chatter, &stop);
        for (int i = 0; i < atoi(argv[3]); i++) {
            nl_write(log_, NL_USAGE, "Parent", "N=%d", i);
            pid_t child = fork();
            if (child == 0) {
                nl_write(log_, NL_USAGE, "Child", "N=%d", i);
                nl_close(log_);
                _exit(0);
            }
            int status;
            if (waitpid(child, &status, 0) != child || status != 0)
                return 3;
        }
        stop = 1;
        pthread_join(thread, NULL);
    } else {
        for (int i = 0; i < atoi(argv[3]); i++) {
            nl_write(log_, NL_USAGE, "Tick", "N=%d", i);
            if (atoi(argv[4]) > 0)
                usleep(atoi(argv[4]));
        }
    }
    if (nl_close(log_) != NL_OK)
        return fprintf(stderr, "%s\n", nl_error_message()), 2;
    return 0;
}
"""

    def setUp(self):
        super().setUp()
        self.program = self.compile_client(self.PROGRAM)

    def test_threads_write_whole_lines(self):
        log = self.scratch / "threads.log"
        result = self.run_program(self.program, "threads", f"file:{log}?append=yes")
        self.assertEqual(result.returncode, 0, result.stderr)
        seen = set()
        first, last, late = None, datetime.datetime.min, {}
        for line in log.read_text().splitlines():
            self.assertTrue(line.endswith('TEXT="a b=\\"c\\""'), line)
            thread, number = line.split()[5:7]
            seen.add((thread, number))
            now = datetime.datetime.strptime(line[5:26], "%Y%m%d%H%M%S.%f")
            # Records wait up to 100 ms for a thread that stopped within an event, so a late record precedes a gap of this length
            # in its thread. While the first events of several threads are in progress, the wait begins with the first of these events.
            first = first or now
            if number == "I=1" and thread in late:
                late[thread] = first
            self.assertGreater(now - late.pop(thread, datetime.datetime.min), datetime.timedelta(seconds=0.09), line)
            if now < last:
                late[thread] = now
            last = max(now, last)
        self.assertEqual(len(seen), 40000)

    def test_forked_children_log_on_without_repeating(self):
        log = self.scratch / "forks.log"
        count = support.representative(200, 60)
        result = self.run_program(self.program, "forks", f"file:{log}?append=yes", str(count))
        self.assertEqual(result.returncode, 0, result.stderr)
        counts = collections.Counter(line.split("NL.EVNT=", 1)[1] for line in log.read_text().splitlines())
        for who in ["Parent", "Child"]:
            for i in range(count):
                self.assertEqual(counts[f"{who} N={i}"], 1, (who, i))

    def test_collector_that_returns(self):
        """The collector ends, and another collector starts on the same port. All records that are logged afterwards arrive there
        completely."""
        port = support.free_port()
        listener = socket.create_server(("127.0.0.1", port))
        client = self.start(self.program, "ticks", f"x-netlog://127.0.0.1:{port}?format=ulm", "60", "50000", stderr=subprocess.PIPE)
        first, _ = listener.accept()
        first.sendall(collector.ACKNOWLEDGEMENT)
        text = b""
        while text.count(b"\n") < 5:
            text += first.recv(4096)
        listener.close()
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # reset the connection
        first.close()
        support.wait_until(lambda: client.poll() is None, what="the client lives on")
        second_listener = socket.create_server(("127.0.0.1", port))
        self.addCleanup(second_listener.close)
        second_listener.settimeout(10)
        second, _ = second_listener.accept()
        second.sendall(collector.ACKNOWLEDGEMENT)
        rest = b""
        while chunk := second.recv(65536):
            rest += chunk
        second.close()
        # Text is not acknowledged: some lines may be lost with the first connection.
        self.assertEqual(client.wait(), 2)
        self.assertIn(b"the collector closed a connection before it had read all text", client.stderr.read())
        numbers = [int(line.rsplit(b"N=", 1)[1]) for line in rest.split(collector.QUESTION_END)[1].splitlines()]
        self.assertEqual(numbers, list(range(numbers[0], 60)), "nothing is missing after the return, and in order")

    def test_collector_that_reads_nothing_costs_the_timeout_only(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = listener.getsockname()[1]
        client = self.start(self.program, "ticks", f"x-netlog://127.0.0.1:{port}?timeout=0.3", "2000000", "0",
                            stderr=subprocess.PIPE)
        connection, _ = listener.accept()
        self.addCleanup(connection.close)
        listener.close()
        self.assertEqual(client.wait(300), 2)
        self.assertIn(b"waiting; nlrecover delivers them from ", client.stderr.read())


class Syslog(support.Case):
    def test_syslog_reaches_a_real_rsyslogd(self):
        if os.geteuid() != 0:
            self.skipTest("/dev/log of one's own needs root")
        rsyslogd = "/usr/sbin/rsyslogd"
        if not os.path.exists(rsyslogd):
            self.skipTest("no rsyslogd here")
        config = self.scratch / "rsyslog.conf"
        output = self.scratch / "syslog"
        config.write_text(
            f'module(load="imuxsock" SysSock.Use="off")\ninput(type="imuxsock" Socket="{self.scratch}/log")\n'
            f'template(name="t" type="string" string="%syslogfacility-text%.%syslogseverity-text% %programname% %msg%\\n")\n'
            f'*.* action(type="omfile" file="{output}" template="t")\n'
        )
        daemon = self.start(rsyslogd, "-n", "-f", config, "-i", self.scratch / "pid", stderr=subprocess.DEVNULL)
        support.wait_until(lambda: (self.scratch / "log").exists(), what="rsyslogd's socket")
        nlwrite = support.program("nltools/nlwrite")
        script = (f"touch /dev/log && mount --bind {self.scratch}/log /dev/log && "
                  f"exec {nlwrite} --dest x-syslog://local3 --prog tester --level Error It.Broke 'WHY=a b'")
        result = self.run_program("unshare", "-m", "sh", "-c", script)
        if "mount" in result.stderr or "unshare" in result.stderr:
            self.skipTest(f"no mount namespace here: {result.stderr.strip()}")
        self.assertEqual(result.returncode, 0, result.stderr)
        support.wait_until(lambda: output.exists() and "It.Broke" in output.read_text(), what="the message in the log")
        line = output.read_text().splitlines()[-1]
        self.assertRegex(line, r'^local3\.err tester .*LVL=Error NL\.EVNT=It\.Broke WHY="a b"$')
        daemon.terminate()


if __name__ == "__main__":
    support.main()
