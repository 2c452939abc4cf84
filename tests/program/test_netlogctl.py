"""netlogctl, netlogd's answers to it, and netlogd's metrics, with real sockets and programs."""
import functools
import json
import os
import re
import signal
import socket
import stat
import unittest.mock
import urllib.error
import urllib.request

import support


def record(number, prog="p"):
    return f"DATE=20260101000000.{number:06d} HOST=h PROG={prog} LVL=Usage NL.EVNT=E N={number}\n".encode()


TALKER = r"""
#include <netlogger.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    char line[100];
    nl_log *log = nl_open(argv[1], argv[2]);
    nl_set_level(log, NL_USAGE);
    while (fgets(line, sizeof line, stdin) != NULL) {
        nl_write(log, NL_USAGE, "Said", NULL);
        nl_write(log, NL_DEBUG, "Debug", NULL);
        NL_MARKER(disk_read, "BLOCK.ID", 7);
        if (nl_flush(log) != NL_OK)
            return 1;
        puts("flushed");
        fflush(stdout);
    }
    return nl_close(log) != NL_OK;
}
"""


class Netlogctl(support.Case):
    def setUp(self):
        super().setUp()
        self.netlogd = support.program("netlogd/netlogd")
        self.netlogctl = support.program("netlogd/netlogctl")
        self.output = self.scratch / "all.log"
        self.control = self.scratch / "control"

    def serve(self, *arguments, port=0):
        self.messages = self.scratch / "messages"
        with open(self.messages, "ab") as messages:
            process = self.start(self.netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output",
                                 self.output, "--control", f"unix:{self.control}", *arguments, stderr=messages)
        found = support.wait_until(
            lambda: process.poll() is None and re.search(r"listening on x-netlog://127\.0\.0\.1:(\d+)\n", self.said()),
            what="netlogd listens")
        self.port = int(found.group(1))
        return process

    def said(self):
        return self.messages.read_text(errors="replace")

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(20), 0, self.said())

    def send(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(s.recv(1), b"")

    def ctl(self, *arguments, status=0):
        result = self.run_program(self.netlogctl, "--control", self.control, *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout if status == 0 else result.stderr

    def ask(self, *arguments):
        return json.loads(self.ctl("--json", *arguments))

    def test_answers_name_the_host_as_its_records_do(self):
        with unittest.mock.patch.dict(os.environ, NETLOGGER_HOST="central"):
            process = self.serve()
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.control))
            s.sendall(b"NETLOGGER/1 clocks\n")
            self.assertIn(b" HOST=central ", s.recv(1000))
        self.stop(process)

    def test_status_and_lists(self):
        process = self.serve()
        self.assertEqual(stat.S_IMODE(os.stat(self.control).st_mode), 0o600)
        self.send(b"".join(record(n) for n in range(100)) + b"nonsense\n")
        status = self.ask("status")
        self.assertEqual((status["RECORDS"], status["MALFORMED"], status["PID"], status["BLOCKED"]),
                         (100, 1, process.pid, False))
        self.assertRegex(self.ctl("status"), r"(?m)^records +100$")
        self.assertEqual(self.ask("clients"), [])
        empty = self.run_program(self.netlogctl, "--control", f"unix:{self.control}", "clients")
        self.assertEqual((empty.returncode, empty.stdout, empty.stderr), (0, "", "no clients\n"))
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(record(1, "talker") + record(2, "talker"))
            support.wait_until(lambda: [c["RECORDS"] for c in self.ask("clients")] == [2])
            client = self.ask("clients")[0]
            self.assertEqual((client["CLIENT"], client["FORMAT"], client["MALFORMED"]), ("talker", "ulm", 0))
            self.assertEqual(client["PEER"], "127.0.0.1:%d" % s.getsockname()[1])
            table = self.ctl("clients").splitlines()
            self.assertEqual(len(table), 2)
            self.assertEqual(table[0].index("CLIENT"), table[1].index("talker"))
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b'NETLOGGER/1 subscribe WHERE="A = \\"b c\\""\n')
            self.assertIn(b"Subscribed", s.recv(1000))
            self.assertEqual(self.ask("subscribers")[0]["WHERE"], 'A = "b c"')
        self.assertEqual({d["WHAT"]: d["COUNT"] for d in self.ask("drops")},
                         {"malformed": 1, "lost": 0, "refused": 0, "displaced": 0, "streams": 0, "gaps": 0, "foreign": 0, "over-rate": 0, "unread": 0, "cut": 0, "unwritten": 0,
                          "undecided": 0, "unsearched": 0, "costly": 0, "failed": 0, "missed": 0})
        self.stop(process)
        self.assertFalse(self.control.exists())

    def test_names_that_are_no_utf8(self):
        process = self.serve()
        for name, shown in ((b"a\xff", "a\ufffd"), (b"\xc3\xa9\xf0\x9f\x8c\x8d", "\u00e9\U0001f30d"), (b"\xed\xa0\x80\xc0", "\ufffd" * 4)):
            with socket.create_connection(("127.0.0.1", self.port)) as s:
                s.sendall(record(1).replace(b"PROG=p ", b"PROG=" + name + b" "))
                support.wait_until(lambda: [c["CLIENT"] for c in self.ask("clients") if "CLIENT" in c] == [shown], what=shown)
            support.wait_until(lambda: not self.ask("clients"))
        self.stop(process)

    def test_many_clients_in_one_answer(self):
        process = self.serve()
        clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(500)]
        support.wait_until(lambda: len(self.ask("clients")) == 500)
        for s in clients:
            s.close()
        self.stop(process)

    def test_reload(self):
        process = self.serve()
        self.send(record(1))
        self.output.rename(self.scratch / "old.log")
        self.ctl("reload")
        self.assertTrue(self.output.exists())
        self.stop(process)

    def test_tail(self):
        process = self.serve()
        self.send(record(1) + record(2))
        for options, lines in [((), [record(1), record(2), record(3)]), (("--where", "N > 1"), [record(2), record(3)])]:
            tail = self.start(self.netlogctl, "--control", self.control, "tail", "--since", "2026-01-01T00:00:00Z",
                              *options, stdout=-1)
            self.assertEqual(tail.stdout.readline(), lines[0])
            if not options:
                self.send(record(3))
            self.assertEqual([tail.stdout.readline() for _ in lines[1:]], lines[1:])
            tail.kill()
            tail.wait()
        support.wait_until(lambda: self.ask("subscribers") == [], what="netlogd knows that they have gone")
        tail = self.start(self.netlogctl, "--control", self.control, "tail", "--json", stdout=-1)
        support.wait_until(lambda: [s["STATE"] for s in self.ask("subscribers")] == ["live"])
        self.send(record(4))
        self.assertEqual(json.loads(tail.stdout.readline()),
                         {"ts": "2026-01-01T00:00:00.000004Z", "host": "h", "prog": "p", "level": "Usage", "event": "E",
                          "N": 4})
        self.stop(process)
        self.assertEqual(tail.wait(20), 0)

    def test_tell_is_kept_and_taken_back(self):
        process = self.serve()
        program = self.compile_client(TALKER)

        def talker(name):
            return self.start(program, name, f"x-netlog://127.0.0.1:{self.port}", stdin=-1, stdout=-1)

        def say(t):
            t.stdin.write(b"go\n")
            t.stdin.flush()
            self.assertEqual(t.stdout.readline(), b"flushed\n")

        def debugs(name):
            return len(re.findall(rf"PROG={name} LVL=Debug NL.EVNT=Debug", self.output.read_text()))

        def hears(t, name):
            before = debugs(name)
            say(t)
            return debugs(name) > before

        one, other = talker("one"), talker("other")
        self.assertFalse(hears(one, "one") or hears(other, "other"))
        self.assertEqual([(s["NEXT"] > 0, s["MISSING"], len(str(s["STREAM"]))) for s in self.ask("streams")],
                         [(True, 0, 32)] * 2)
        self.assertEqual(self.ask("--prog", "one*", "tell", "level Debug"), {"CLIENTS": 2})
        support.wait_until(lambda: hears(one, "one"), what="it logs more")
        later = talker("one")  # a later client receives the command, too
        say(later)
        support.wait_until(lambda: hears(later, "one"), what="so does one that came later")
        self.assertFalse(hears(other, "other"))
        self.ctl("--prog", "one*", "tell", "")
        support.wait_until(lambda: not hears(one, "one"), what="it is undone")
        self.stop(process)

    def logs_more(self, talker, text):
        """Lets the program log. Returns whether netlogd writes more records with the text."""
        before = self.output.read_text().count(text) if self.output.exists() else 0
        talker.stdin.write(b"go\n")
        talker.stdin.flush()
        self.assertEqual(talker.stdout.readline(), b"flushed\n")
        return self.output.read_text().count(text) > before

    def test_a_command_is_revoked_after_a_restart(self):
        process = self.serve()
        talker = self.start(self.compile_client(TALKER), "one", f"x-netlog://127.0.0.1:{self.port}", stdin=-1, stdout=-1)
        logs_more = functools.partial(self.logs_more, talker, "NL.EVNT=Debug")
        self.assertFalse(logs_more())
        self.ctl("tell", "level Debug")
        support.wait_until(logs_more, what="the command has an effect")
        self.stop(process)
        self.messages.unlink()
        process = self.serve(port=self.port)
        self.assertTrue(logs_more(), "a restart does not revoke the command")
        self.ctl("tell", "")
        support.wait_until(lambda: not logs_more(), what="the command is revoked")
        self.stop(process)

    def test_markers_are_attached_and_taken_back(self):
        process = self.serve()
        talker = self.start(self.compile_client(TALKER), "one", f"x-netlog://127.0.0.1:{self.port}", stdin=-1, stdout=-1)
        passes = functools.partial(self.logs_more, talker, "BLOCK.ID=7")
        self.assertFalse(passes())
        self.assertEqual(self.ask("tell", "marker disk_* log"), {"CLIENTS": 1})
        support.wait_until(passes, what="what passes the marker is logged")
        self.assertRegex(self.output.read_text(), r"PROG=one LVL=\w+ NL.EVNT=disk_read .*BLOCK.ID=7")
        self.ctl("tell", "")
        support.wait_until(lambda: not passes(), what="the marker lies dormant again")
        self.stop(process)

    def test_activation_file_and_told_commands_together(self):
        commands = self.scratch / "commands"
        commands.write_text("event Nothing off")
        process = self.serve("--activation", commands)
        self.assertEqual(self.ask("tell", "level Debug"), {"CLIENTS": 0})
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            memory = self.scratch / "block.nlb"
            nlsort = support.program("nlsort/nlsort")
            self.assertEqual(self.run_program(nlsort, "-o", memory, "-", input=record(1).decode()).returncode, 0)
            s.sendall(memory.read_bytes())
            s.settimeout(20)
            text = b"event Nothing off\nlevel Debug"
            told = b""
            while len(told) < 8 + len(text):
                told += s.recv(1000)
            self.assertTrue(told.startswith(b"NLC1" + len(text).to_bytes(4, "little") + text), told)
        self.stop(process)

    def test_a_mistaken_command_is_not_kept(self):
        process = self.serve()
        for command, why in [("levl Debug", 'unknown command "levl"'), ("level Loud", '"level" requires one of Emergency'),
                             ("marker a frob", '"marker" requires a pattern'), ("event E of", '"event" requires a pattern'),
                             ("destination file:/tmp/x", "may set only a collector as destination")]:
            self.assertIn(why, self.ctl("tell", command, status=1))
        self.assertNotIn("level Loud", self.ctl("status"))
        self.stop(process)

    def test_wrong_use(self):
        process = self.serve()
        self.assertIn('nonsense: unknown command', self.ctl("nonsense", status=2))
        self.ctl(status=2)
        self.assertIn("tell: missing COMMAND", self.ctl("tell", status=2))
        same = self.run_program(self.netlogctl, "--control", f"unix:{self.control}", "status")  # as netlogd names it
        self.assertEqual((same.returncode, same.stderr), (0, ""))
        self.assertIn("--where: the status command does not have this option", self.ctl("status", "--where", "A", status=2))
        self.assertIn("WHERE: ", self.ctl("tail", "--where", "A >", status=1))
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.control))
            s.sendall(record(1))
            self.assertIn(b"invalid request", s.recv(1000))
        self.stop(process)
        self.assertIn("No such file or directory; start netlogd with --control unix:PATH", self.ctl("status", status=1))

    def metrics(self, url):
        with urllib.request.urlopen(url, timeout=20) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            text = answer.read().decode()
        values = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
                base = name.split("{")[0]
                self.assertRegex(text, rf"(?m)^# HELP {base} \S.*\n# TYPE {base} (counter|gauge)\n")
        self.assertTrue(text.endswith("\n"))
        return values

    def test_metrics(self):
        process = self.serve("--metrics", "http://127.0.0.1:0")
        url = re.search(r"metrics on (\S+)\n", self.said()).group(1)
        self.assertEqual(self.metrics(url)["netlogd_records_total"], 0)
        self.send(record(1) + record(2) + b"nonsense\n")
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"NETLOGGER/1 subscribe\n")
            self.assertIn(b"Subscribed", s.recv(1000))
            values = self.metrics(url)
        self.assertEqual((values["netlogd_records_total"], values["netlogd_malformed_total"]), (2, 1))
        self.assertEqual((values["netlogd_subscribers"], values["netlogd_connections"]), (1, 1))
        with self.assertRaises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(url + "/else", timeout=20)
        self.assertEqual(failed.exception.code, 404)
        failed.exception.close()
        with socket.create_connection(("127.0.0.1", int(url.split(":")[2].split("/")[0]))) as s:
            s.sendall(b"GET /metrics HTTP/1.0\r\nX: " + b"x" * 20000)
            self.send(record(3))
        self.assertEqual(self.metrics(url)["netlogd_records_total"], 3)
        self.stop(process)

    def test_metrics_stay_on_this_machine(self):
        result = self.run_program(self.netlogd, "--foreground", "--listen", "x-netlog://127.0.0.1:0", "--metrics",
                                  "http://0.0.0.0:0", timeout=20)
        self.assertEqual(result.returncode, 1)
        self.assertIn("--allow", result.stderr)


if __name__ == "__main__":
    support.main()
