"""nlagentd: sensors on demand, faulty sensors, its configuration, the kernel's events."""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import nlagents
import support

# Starts a program with a listening Unix socket, as systemd does.
INHERITED = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
os.dup2(s.detach(), 100)
os.dup2(100, 3)
os.close(100)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="agent")
os.execv(sys.argv[2], sys.argv[2:])
"""


class OnDemand(nlagents.Agent):
    def test_sensor_lives_as_long_as_somebody_looks(self):
        agent = self.start_agent()
        self.assertEqual(self.children(agent), {})
        first = self.subscribe(agent, "load", "-i", "0.1")
        self.assertIn("LoadAverage", first.stdout.readline())
        second = self.subscribe(agent, "load", "-i", "0.05")
        self.assertIn("LoadAverage", second.stdout.readline())
        self.assertEqual(len(self.children(agent)), 1, "consumers of one sensor share one process")
        before = self.children(agent)
        first.kill()
        first.wait()
        for _ in range(3):
            self.assertIn("LoadAverage", second.stdout.readline())
        self.assertEqual(self.children(agent), before)
        second.kill()
        second.wait()
        support.wait_until(lambda: self.children(agent) == {}, what="the sensor's end")
        support.wait_until(lambda: "Nlagentd.SensorStopped SENSOR=load" in self.log_text(agent))

    def test_query_runs_it_only_for_that(self):
        agent = self.start_agent()
        result = self.ask(agent, "query", "cpu")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout.count("NL.EVNT=CpuOne "), os.cpu_count())
        self.assertIn("HOST=a ", result.stdout)
        support.wait_until(lambda: self.children(agent) == {}, what="the sensor's end")
        self.assertIn("NL.EVNT=CpuLoad", self.ask(agent, "query", "cpu", "--where", "NL.EVNT == CpuLoad").stdout)
        again = ["--where", "NL.EVNT == Nothing"] * 30
        self.assertIn("NL.EVNT=CpuLoad", self.ask(agent, "query", "cpu", *again, "--where", "NL.EVNT == CpuLoad").stdout, "the last holds")

    def test_start_and_stop(self):
        agent = self.start_agent()
        self.assertEqual(self.ask(agent, "start", "memory", "-i", "0.1").returncode, 0)
        support.wait_until(lambda: len(self.children(agent)) == 1)
        listed = self.ask(agent, "list").stdout
        self.assertRegex(listed, r"\* memory running=true consumers=0 held=true interval=0.1 pid=\d+")
        self.assertIn("query", self.ask(agent, "--help").stdout)
        self.assertEqual(self.ask(agent, "stop", "memory").returncode, 0)
        support.wait_until(lambda: self.children(agent) == {})

    def test_settings_are_read_back(self):
        agent = self.start_agent("--min-interval", "0.05", "--sensor", "a=echo", "--sensor", "b=echo b")
        settings = re.findall(r"NL.EVNT=Nlagentd.Setting OPTION=(\S+) VALUE=(.*)", self.ask(agent, "settings").stdout)
        for setting in [("min-interval", "50ms"), ("max-sensors", "100"), ("host", "a"), ("sensor", "a=echo"), ("sensor", '"b=echo b"'),
                        ("listen", agent.url), ("confine", "yes")]:
            self.assertIn(setting, [(name, value.replace('"a=echo"', "a=echo")) for name, value in settings])

    def test_slow_measurement(self):
        """An agent can need more time for a measurement than the maximum time that nlagent waits for a silent peer."""
        agent = self.start_agent("--sensor", "late=sleep 7; echo 'DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Late'; sleep 100")
        result = self.ask(agent, "query", "late")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("NL.EVNT=Late", result.stdout)

    def test_unknown_and_wrong(self):
        agent = self.start_agent()
        for wrong, words in [("nosuch", "NotFound: unknown sensor"), ("cpu?x=1", "BadRequest: sensor cpu has no argument named"),
                             ("ping", "BadRequest: sensor ping: missing argument; use ping?host=NAME"),
                             ("path?rate=5", "BadRequest: sensor path: missing argument; use path?peer=HOST"),
                             ("kernel", "BadRequest: expected event="), ("kernel?rules=/etc/passwd", "BadRequest: rules="), ("", "missing argument: sensor")]:
            result = self.ask(agent, "query", wrong)
            self.assertEqual(result.returncode, 1, wrong)
            self.assertIn(words, result.stderr)
        result = self.ask(agent, "query", "cpu", "--where", "=")
        self.assertIn("BadRequest", result.stderr)
        self.assertEqual(self.ask(agent, "nonsense").returncode, 2)
        result = self.ask(agent, "start", "path")
        self.assertEqual(result.returncode, 1)
        self.assertIn("sensor path: missing argument; use path?peer=HOST", result.stderr)
        self.assertEqual(self.children(agent), {})

    def test_conditions(self):
        go = self.scratch / "go"
        agent = self.start_agent("--sensor", f"steps=while [ ! -e {go} ]; do echo; sleep 0.1; done; for v in 1 1 5 9 6 4 9 9 3 1 1000; "
                                 "do echo \"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=S X=$v\"; sleep 0.25; done; sleep 100")
        cases = {("--field", "X", "--change"): [1, 5, 9, 6, 4, 9, 3, 1],
                 ("--field", "X", "--above", "5", "--below", "4"): [9, 3],
                 ("--field", "X", "--above", "5", "--below", "5"): [9, 4, 9, 3],
                 ("--field", "X", "--percent", "100"): [1, 5],
                 ("--where", "X > 5"): [9, 6, 9, 9],
                 (): [1, 1, 5, 9, 6, 4, 9, 9, 3, 1]}
        processes = {c: self.subscribe(agent, "steps", "-i", "0.01", *c) for c in cases}
        support.wait_until(lambda: f"consumers={len(cases)} " in self.ask(agent, "list").stdout, what="all have subscribed")
        go.touch()
        for condition, expected in cases.items():
            seen = []
            while seen[-1:] != [1000]:  # this value meets each condition
                seen.append(int(re.search(r" X=(\d+)", processes[condition].stdout.readline())[1]))
            self.assertEqual(seen, [*expected, 1000], condition)

    def test_rate_of_each_consumer(self):
        agent = self.start_agent()
        fast = self.subscribe(agent, "load", "-i", "0.05", "--duration", "3")
        slow = self.subscribe(agent, "load", "-i", "0.5", "--duration", "3")
        many, few = len(fast.communicate(timeout=60)[0].splitlines()), len(slow.communicate(timeout=60)[0].splitlines())
        self.assertGreater(many, 3 * few)
        self.assertGreater(few, 1)


class Trouble(nlagents.Agent):
    def test_sensor_that_crashes_is_started_again_and_reported(self):
        agent = self.start_agent("--sensor", "bad=echo 'DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Bad'; "
                                 "echo broken >&2; exit 3")
        out = self.subscribe(agent, "bad", "--duration", "6").communicate(timeout=60)[0]
        self.assertIn("Nlagentd.SensorFailed SENSOR=bad REASON=\"exited with status 3: broken\" AGAIN=1", out)
        self.assertIn("AGAIN=2", out)
        self.assertIn("Nlagentd.SensorRestarted", out)
        self.assertIn(out.count("NL.EVNT=Bad"), (2, 3))
        self.assertIn("AGAIN=2", self.log_text(agent))

    def test_sensor_that_is_killed_comes_back(self):
        agent = self.start_agent()
        reader = self.subscribe(agent, "load", "-i", "0.1")
        reader.stdout.readline()
        os.kill(list(self.children(agent))[0], signal.SIGKILL)
        for line in reader.stdout:
            if "SensorRestarted" in line:
                break
        self.assertIn("LoadAverage", reader.stdout.readline())

    def test_sensor_that_hangs_is_killed(self):
        agent = self.start_agent()
        reader = self.subscribe(agent, "load", "-i", "0.1")
        reader.stdout.readline()
        pid = list(self.children(agent))[0]
        os.kill(pid, signal.SIGSTOP)
        for line in reader.stdout:
            if "SensorFailed" in line:
                break
        self.assertIn("did not respond; nlagentd killed it", line)
        support.wait_until(lambda: pid not in self.children(agent))

    def test_sensor_that_is_mute_and_stays_is_killed(self):
        """The sensor closes its output and ignores SIGTERM."""
        agent = self.start_agent("--sensor", "mute=trap '' TERM; exec >&-; while :; do sleep 1; done")
        self.assertEqual(self.call(agent, "Start", [("sensor", "mute")])[0], 200)
        pid = list(self.children(agent))[0]
        support.wait_until(lambda: "Nlagentd.SensorFailed SENSOR=mute" in self.log_text(agent), what="its end")
        self.assertIn('REASON="closed its output without exiting; nlagentd killed it"', self.log_text(agent))
        support.wait_until(lambda: pid not in self.children(agent))

    def test_numbers_that_are_too_many_to_be_summed_up_are_counted(self):
        agent = self.start_agent("--sensor", "many=i=0; while [ $i -lt 1010 ]; do i=$((i+1)); echo "
                                 "\"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=M DISK.NAME=d$i X=1\"; done; exec sleep 1000")
        self.assertEqual(self.call(agent, "Start", [("sensor", "many")])[0], 200)
        support.wait_until(lambda: re.search(r"\* many .* unsummed=10$", self.ask(agent, "list").stdout, re.M), what="the last of them")

    def test_other_formats_become_ulm(self):
        """nlagentd decodes lines that are not plain ULM: BP, CRLF, control characters, and text between records."""
        good = "DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=E N=%d"
        for name, lines, expected in [
                ("bp", "ts=2026-01-01T00:00:00Z event=E level=Info n=1\\n", ["NL.EVNT=E n=1"]),
                ("crlf", (good % 1) + "\\r\\n" + (good % 2) + "\\n", ["NL.EVNT=E N=1", "NL.EVNT=E N=2"]),
                ("noise", (good % 1) + "\\nnonsense\\n" + (good % 2) + "\\n", ["NL.EVNT=E N=1", "NL.EVNT=E N=2"]),
                ("two", (good % 1) + " " + (good % 2) + "\\n", ["NL.EVNT=E N=2"]),
                ("controls", (good % 1) + " S=a\\033b\\n", ['NL.EVNT=E N=1 S="a\\x1bb"'])]:
            agent = self.start_agent("--sensor", f"s=printf '{lines}'; sleep 100", name=name)
            out = self.ask(agent, "subscribe", "s", "--duration", "1s").stdout
            self.assertEqual([line[line.index("NL.EVNT"):] for line in out.splitlines() if "NL.EVNT=E" in line], expected, name)

    def test_sensor_of_nonsense_harms_nobody(self):
        agent = self.start_agent("--sensor", "noise=head -c 3000000 /dev/urandom; sleep 100",
                                 "--sensor", "long=head -c 30000000 /dev/zero | tr '\\0' x; sleep 100")
        readers = [self.subscribe(agent, "noise", "--duration", "2"), self.subscribe(agent, "long", "--duration", "2")]
        self.assertIn("LoadAverage", self.ask(agent, "query", "load").stdout)
        for r in readers:
            r.communicate(timeout=60)
        self.assertIsNone(agent.poll())

    def test_slow_consumer_is_told_and_delays_nobody(self):
        agent = self.start_agent("--queue", "100", "--sensor",
                                 "flood=i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "
                                 "\"DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=F N=$i TEXT=" + "x" * 300 + "\"; done; sleep 100")
        _, text = self.call(agent, "Subscribe", [("sensor", "flood")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        slow = socket.create_connection(("127.0.0.1", agent.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /stream?subscription={name} HTTP/1.0\r\n\r\n".encode())
        fast = self.subscribe(agent, "load", "-i", "0.05")
        for _ in range(20):
            self.assertIn("LoadAverage", fast.stdout.readline())
        support.wait_until(lambda: "MISSED=0 " not in self.ask(agent, "status").stdout, what="records that are missed")
        support.wait_until(lambda: int(re.search(r"RECORDS=(\d+)", self.ask(agent, "status").stdout).group(1)) > 20000)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # now it reads
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, 1 << 20)
        slow.settimeout(60)
        missed = seen = 0
        try:
            for line in slow.makefile("rb"):
                missed += sum(int(n) for n in re.findall(rb"Nlagentd\.Missed SENSOR=flood COUNT=(\d+)", line))
                seen += line.count(b"NL.EVNT=F ")
                if missed + seen >= 20000:
                    slow.settimeout(3)  # for more clients than the limit
        except TimeoutError:
            pass
        slow.close()
        self.assertEqual(missed + seen, 20000)
        self.assertGreater(missed, 0)

    def test_limits(self):
        agent = self.start_agent("--max-per-consumer", "3", "--max-sensors", "2")
        for i in range(3):
            self.assertEqual(self.call(agent, "Subscribe", [("sensor", "load")])[0], 200)
        status, text = self.call(agent, "Subscribe", [("sensor", "load")])
        self.assertEqual(status, 500)
        self.assertIn("LimitReached", text)
        agent = self.start_agent("--max-sensors", "2", name="b")
        for sensor in "load", "memory":
            self.assertEqual(self.call(agent, "Start", [("sensor", sensor)])[0], 200)
        self.assertIn("LimitReached", self.call(agent, "Start", [("sensor", "cpu")])[1])
        for operation in "Summaries", "Stop":  # these requests start no process
            self.assertEqual(self.call(agent, operation, [("sensor", "cpu")])[0], 200, operation)
            self.assertIn("NotFound", self.call(agent, operation, [("sensor", "nosuch")])[1])
        self.assertEqual(self.ask(agent, "query", "load").returncode, 0, "one that runs")
        self.assertEqual(set(re.findall(r"(?m)^    \* (\S+)", self.ask(agent, "list").stdout)), {"load", "memory"})
        self.assertIn("BadRequest", self.call(agent, "Start", [("sensor", "load"), ("interval", "0.0001")])[1])

    def test_consumer_that_vanishes_is_forgotten(self):
        agent = self.start_agent()
        self.assertEqual(self.call(agent, "Subscribe", [("sensor", "load"), ("lease", "1")])[0], 200)
        self.assertEqual(len(self.children(agent)), 1)
        support.wait_until(lambda: self.children(agent) == {}, what="the lease's end")

    def test_fetch_waits_and_gives_xml_that_is_ulm(self):
        agent = self.start_agent("--sensor", r"""odd=printf '%s\n' 'DATE=20260101000000.123456789 HOST=h PROG=p LVL=Usage """
                                 r"""NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E="é"'; sleep 100""")
        _, text = self.call(agent, "Subscribe", [("sensor", "odd")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        status, text = self.call(agent, "Fetch", [("subscription", name), ("wait", "20")])
        self.assertEqual(status, 200)
        record = re.search(r"<record.*</record>", text).group(0)
        log = f'<log xmlns="urn:netlogger:log:1">{record}</log>'
        (self.scratch / "x.xml").write_text(log)
        self.assertEqual(self.run_program("xmllint", "--noout", "--schema", support.SOURCE / "doc/netlogger.xsd",
                                          self.scratch / "x.xml").returncode, 0)
        back = self.run_program(support.program("nltools/nlconv"), "--format", "ulm", self.scratch / "x.xml", errors="backslashreplace")
        self.assertIn(r'NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E=é', back.stdout)
        self.assertIn("DATE=20260101000000.123456789", back.stdout)
        query = self.ask(agent, "query", "odd", errors="backslashreplace").stdout
        self.assertIn(r'NL.EVNT=Odd A="<&>\"\\ " B="\x01\xff" C="" D=1 E="é"', query, "as the sensor wrote it")
        self.assertEqual(self.call(agent, "Unsubscribe", [("subscription", name)])[0], 200)
        self.assertIn("NotFound", self.call(agent, "Fetch", [("subscription", name)])[1])

    def test_stops_with_all_its_sensors(self):
        agent = self.start_agent("--sensor", "stubborn=trap '' TERM; while :; do sleep 1; done")
        self.call(agent, "Start", [("sensor", "stubborn")])
        self.call(agent, "Start", [("sensor", "load")])
        pids = list(self.children(agent))
        self.assertEqual(len(pids), 2)
        agent.terminate()
        self.assertEqual(agent.wait(20), 0)
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"))


class Background(nlagents.Agent):
    def test_it_lets_go_of_its_streams_and_has_its_log_open_once(self):
        """A shell's $(nlagentd) returns, because no process keeps its standard output open."""
        port, log, shm = support.free_port(), self.scratch / "own.log", self.scratch / "shm"
        shm.mkdir()

        def daemons():
            found = []
            for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    if str(log) in path.read_text():
                        found.append(int(path.parent.name))
            return found

        def kill():
            for pid in daemons():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        def descriptors(pid):
            return [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]

        self.addCleanup(kill)
        result = self.run_program("sh", "-c", 'out=$("$0" "$@" 2>&1); echo "$? $out"', self.nlagentd, "--listen", f"http://127.0.0.1:{port}",
                                  "--log", f"file:{log}", env={**os.environ, "NETLOGGER_SHM": str(shm)}, timeout=20)
        self.assertEqual(result.stdout, f"0 nlagentd: listening on http://127.0.0.1:{port}\n")
        main, starter = sorted(daemons(), key=lambda pid: str(log) not in descriptors(pid))
        self.assertEqual([descriptors(pid).count(str(log)) for pid in (main, starter)], [1, 0])
        support.wait_until(lambda: len(list(shm.iterdir())) == 1, what="the log's rings")
        os.kill(main, signal.SIGTERM)
        support.wait_until(lambda: not daemons(), what="nlagentd ends")
        self.assertEqual(list(shm.iterdir()), [], "the log is closed: it has nothing to recover")


class Configuration(nlagents.Agent):
    def setUp(self):
        super().setUp()
        self.file = self.scratch / "nlagentd.conf"
        self.number = 0

    def start_with(self, text):
        port = support.free_port()
        self.file.write_text(f"# what it is told\nlisten http://127.0.0.1:{port}\nhost a\nlog file://{self.scratch}/a.log\n{text}")
        # Freed memory keeps no content that could be mistaken for valid data.
        agent = self.start(self.nlagentd, "--foreground", "--config", self.file, stderr=subprocess.DEVNULL, env={**os.environ, "MALLOC_PERTURB_": "90"})
        agent.port, agent.log, agent.url = port, self.scratch / "a.log", f"http://127.0.0.1:{port}"
        support.wait_until(lambda: support.can_connect(port), what="nlagentd")
        return agent

    def reload(self, agent, change, event="Nlagentd.Reload "):
        before = self.log_text(agent).count(event)
        self.file.write_text(change(self.file.read_text()))
        agent.send_signal(signal.SIGHUP)
        support.wait_until(lambda: self.log_text(agent).count(event) > before, what=event)

    def test_what_is_wrong_is_said_with_its_line(self):
        for text, words in [("lisen x\n", "lisen: unknown directive"), ("queue 0\n", "0 is out of range; use 1 to 1000000"), ("queue\n", "the value is empty"),
                            ("sensor x\n", "NAME=COMMAND"), ("listen ftp://x\n", "unsupported URL; expected http://HOST"), ("listen http\n", "unsupported URL; expected http://HOST"), ("allow x\n", "ADDRESS"),
                            ("serve-directory perhaps\n", "neither yes nor no"), ("register-token /nowhere\n", "No such file"),
                            ("ttl 0.5\n", "0.5 is out of range; use 1s to 1d")]:
            self.file.write_text("# a comment\n\n" + text)
            result = self.run_program(self.nlagentd, "--config", self.file)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn(f"{self.file}:3: ", result.stderr)
            self.assertIn(words, result.stderr)
        self.assertIn("open /nowhere: No such file", self.run_program(self.nlagentd, "--config", "/nowhere").stderr)

    def test_sensors_limits_and_access_change(self):
        access = self.scratch / "access"
        access.write_text("loopback all\n")
        ticker = "while :; do echo DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=%s X=1; sleep 0.1; done"
        agent = self.start_with(f"serve-directory yes\naccess {access}\nsensor one={ticker % 'One'}\n")
        reader = self.subscribe(agent, "one")
        self.assertIn("NL.EVNT=One", reader.stdout.readline())
        self.reload(agent, lambda text: text.replace("NL.EVNT=One", "NL.EVNT=Changed") + f"sensor two={ticker % 'Two'}\nmax-sensors 2\n")
        self.assertIn("NL.EVNT=Two", self.ask(agent, "query", "two").stdout)
        self.assertIn("NL.EVNT=One", reader.stdout.readline(), "what runs goes on as it was begun")
        support.wait_until(lambda: len(self.children(agent)) == 1)
        self.assertEqual(self.ask(agent, "start", "two").returncode, 0)
        self.assertIn("LimitReached", self.ask(agent, "start", "load").stderr)
        reader.kill()
        reader.wait()
        support.wait_until(lambda: len(self.children(agent)) == 1)
        self.assertIn("NL.EVNT=Changed", self.ask(agent, "query", "one").stdout)
        self.reload(agent, lambda text: re.sub("sensor one.*\n", "", text))
        self.assertIn("NotFound", self.ask(agent, "query", "one").stderr)
        access.write_text("loopback none\n")
        self.reload(agent, lambda text: text)
        self.assertIn("AccessDenied", self.ask(agent, "list").stderr)

    def test_what_cannot_be_used_changes_nothing(self):
        agent = self.start_with("sensor one=echo; sleep 100\n")
        for change, words in [(lambda text: text + "nonsense 1\n", "nonsense: unknown directive"), (lambda text: text + "ttl 5\n", "ttl: a reload cannot change this"),
                              (lambda text: text.replace("listen http://127.0.0.1", "listen http://127.0.0.2"), "listen: a reload cannot change this"),
                              (lambda text: text + "access /nowhere\n", "/nowhere")]:
            good = self.file.read_text()
            self.reload(agent, lambda text: change(text).replace("sensor one", "sensor two"), "Nlagentd.ReloadRefused")
            self.assertIn(words, self.log_text(agent).splitlines()[-1])
            self.assertRegex(self.ask(agent, "list").stdout, "(?m)^one$")
            self.file.write_text(good)
        self.reload(agent, lambda text: text.replace("sensor one", "sensor two"))
        self.assertRegex(self.ask(agent, "list").stdout, "(?m)^two$")

    def test_directory_is_told_of_new_sensors(self):
        directory = self.start_agent("--serve-directory", name="d")
        agent = self.start_with(f"register {directory.url}\nttl 3600\n")
        find = lambda name: self.run_program(self.nlagent, "--agent", directory.url, "find", f"sensor={name} & host=a").returncode == 0
        support.wait_until(lambda: find("load"), what="it is registered")
        self.assertFalse(find("late"))
        self.reload(agent, lambda text: text + "sensor late=echo; sleep 100\n")
        support.wait_until(lambda: find("late"), what="the new sensor")

    def test_directory_that_goes_after_a_reload(self):
        directory = self.start_agent("--serve-directory", name="d")
        agent = self.start_with(f"register {directory.url}\nttl 1\n")
        support.wait_until(lambda: "Nlagentd.Registered" in self.log_text(agent), what="it is registered")
        self.reload(agent, lambda text: text)
        directory.kill()
        directory.wait()
        support.wait_until(lambda: "Nlagentd.NotRegistered" in self.log_text(agent), what="what went wrong")
        self.assertIn(f"NotRegistered DIRECTORY={directory.url} ", self.log_text(agent))

    def test_a_socket_in_the_file_system(self):
        """Clients of this socket can ask everything, but the agent's directory entries do not contain its address."""
        path = self.scratch / "socket"
        command = [sys.executable, "-c", INHERITED, str(path), self.nlagentd, "--foreground", "--listen", "inherited:agent", "--log", "/dev/null"]
        with self.start(*command, stderr=subprocess.DEVNULL) as process:
            with socket.socket(socket.AF_UNIX) as client:
                support.wait_until(lambda: client.connect_ex(str(path)) == 0, what="the socket")
                client.settimeout(20)
                client.sendall(b"GET /nlagent.wsdl HTTP/1.0\r\n\r\n")
                self.assertIn(b"200", client.recv(1000))
            process.terminate()
            self.assertEqual(process.wait(20), 0)
        path.unlink()
        result = self.run_program(*command, "--register", "http://127.0.0.1:1")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("add --url URL", result.stderr)


class ManyKernelEvents(nlagents.Agent):
    def test_all_are_asked_of_nlkernel(self):
        """A program that prints its arguments, in place of the built program."""
        kernel, folder = self.scratch / "nlkernel", self.scratch / "nlagent"
        for path in kernel, folder:
            path.mkdir()
        (kernel / "nlkernel").write_text('#!/bin/sh\necho "DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Told WORDS=\\"$*\\""\nexec sleep 1000\n')
        (kernel / "nlkernel").chmod(0o755)
        self.nlagentd = shutil.copy(self.nlagentd, folder)
        agent = self.start_agent()
        events = [f"sched:e{i}" for i in range(50)]
        told = self.ask(agent, "query", f"kernel?event={','.join(events)}&filter=x").stdout
        self.assertIn("live --quiet --dest - " + " ".join(f"--event {e}" for e in events) + " --where x", told)


class Hops(nlagents.Agent):
    def test_records_are_passed_on_as_the_sensor_wrote_them(self):
        """The bytes stay unchanged, although no other program writes them like this: only the sensor encodes them."""
        lines = [f'DATE=2026010100000{i}.50 HOST="h"  PROG=p LVL=USAGE NL.EVNT=Told  A="b" N=0{i} S="x\\ty"' for i in range(5)]
        kernel, folder = self.scratch / "nlkernel", self.scratch / "nlagent"
        for path in kernel, folder:
            path.mkdir()
        (self.scratch / "lines").write_text("".join(line + "\n" for line in lines))
        (kernel / "nlkernel").write_text(f'#!/bin/sh\ncat {self.scratch}/lines\nexec sleep 1000\n')
        (kernel / "nlkernel").chmod(0o755)
        self.nlagentd = shutil.copy(self.nlagentd, folder)
        agent = self.start_agent()
        decoded = lambda: int(re.search(r"DECODED=(\d+)", self.ask(agent, "status").stdout)[1])
        hops = {
            "subscribe": self.ask(agent, "subscribe", "kernel?event=a:b", "--duration", "2s").stdout,
            "collect": self.ask(agent, "collect", "kernel?event=a:b", "--duration", "2s").stdout,
        }
        self.assertEqual(decoded(), 0, "nlagentd passes records on without decoding them")
        hops["a filter"] = self.ask(agent, "subscribe", "kernel?event=a:b", "--where", "N > 1", "--duration", "2s").stdout
        self.assertEqual(decoded(), len(lines), "each record once")
        for hop, text in hops.items():
            with self.subTest(hop):
                wanted = lines[2:] if hop == "a filter" else lines
                self.assertEqual([line for line in text.splitlines() if "PROG=p" in line], wanted)


class Kernel(nlagents.Agent):
    """The kernel's events as a sensor, through the tracefs of this machine."""

    def setUp(self):
        super().setUp()
        support.program("nlkernel/nlkernel")
        if os.geteuid() != 0:
            self.skipTest("recording requires root")
        self.tracing = pathlib.Path("/sys/kernel/tracing")
        if not self.tracing.joinpath("instances").exists():
            self.tracing = self.mount_tracefs()

    def instances(self):
        return set(os.listdir(self.tracing / "instances"))

    def test_events_come_as_long_as_somebody_looks(self):
        agent = self.start_agent()
        before = self.instances()
        reader = self.subscribe(agent, "kernel?event=sched:sched_switch,sched:sched_wakeup")
        lines = [reader.stdout.readline() for _ in range(200)]
        events = {re.search(r"NL.EVNT=(\S+)", line).group(1) for line in lines}
        self.assertEqual({event for event in events if not event.startswith("NetLogger.")},
                         {"sched.sched_switch", "sched.sched_wakeup"}, lines[:5])
        own = self.instances() - before  # other recordings on this machine can begin and end
        self.assertNotEqual(own, set(), "of its own")
        listed = self.ask(agent, "list").stdout
        self.assertIn("kernel?event=sched:sched_switch", listed)
        reader.kill()
        support.wait_until(lambda: self.children(agent) == {} and not own <= self.instances(), what="its end, and the instance's")

    def test_rules(self):
        agent = self.start_agent()
        reader = self.subscribe(agent, "kernel?rules=scheduler")
        line = reader.stdout.readline()
        self.assertIn("NL.EVNT=", line)
        self.assertNotIn("Nlagentd.", line)
        reader.kill()
        support.wait_until(lambda: self.children(agent) == {})

    def test_what_there_is_not(self):
        agent = self.start_agent()
        result = self.ask(agent, "query", "kernel?event=no:such")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no:such", result.stderr)
        self.assertIn("nosuch", self.ask(agent, "query", "kernel?rules=nosuch").stderr)


if __name__ == "__main__":
    support.main()
