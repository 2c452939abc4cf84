"""nlagentd: directories, the collector, the examples of its documentation, and third-party clients."""
import http.client
import os
import re
import socket
import subprocess
import textwrap

import nlagents
import support


class Directory(nlagents.Agent):
    def test_agents_register_and_are_found_and_expire(self):
        directory = self.start_agent("--serve-directory", name="dir")
        agents = [self.start_agent("--register", directory.url, "--ttl", "3", name=f"dpss{i}") for i in range(3)]
        support.wait_until(lambda: len(self.ask(directory, "find", "sensor=tcp").stdout.splitlines()) == 3, what="agents")
        found = self.ask(directory, "find", "sensor=tcp & host=dpss*").stdout
        self.assertEqual(sorted(line.split("\t")[0] for line in found.splitlines()), ["dpss0", "dpss1", "dpss2"])
        self.assertIn("TcpSegments", found)
        self.assertEqual(len(self.ask(directory, "find", 'host=dpss1 & (sensor=c* | events ~ *Pressure*)').stdout.splitlines()), 5)
        self.assertIn("column", self.ask(directory, "find", "host=").stderr)
        agents[0].terminate()
        agents[0].wait()
        self.assertNotIn("dpss0", self.ask(directory, "find", "sensor=tcp").stdout, "it has withdrawn")
        agents[1].kill()
        support.wait_until(lambda: "dpss1" not in self.ask(directory, "find", "").stdout, what="expiry")
        self.assertIn("dpss2", self.ask(directory, "find", "sensor=tcp").stdout)
        self.assertIn("NotFound: this agent is not a directory", self.ask(agents[2], "find", "sensor=tcp").stderr)

    def test_dead_directory_holds_up_nothing(self):
        agent = self.start_agent("--register", f"http://127.0.0.1:{support.free_port()}")
        self.assertIn("LoadAverage", self.ask(agent, "query", "load").stdout)
        support.wait_until(lambda: "Nlagentd.NotRegistered" in self.log_text(agent))
        self.assertIn("refused", self.log_text(agent))

    def test_directory_that_hangs_does_not_keep_the_agent_from_ending(self):
        """A server begins a response and never ends it. An agent waits for more than a minute, unless the agent itself ends."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            agent = self.start_agent("--register", f"http://127.0.0.1:{listener.getsockname()[1]}")
            self.call(agent, "Start", [("sensor", "load")])
            pids = list(self.children(agent))
            self.assertEqual(len(pids), 1)
            connection, _ = listener.accept()
            with connection:
                connection.recv(100)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                agent.terminate()
                self.assertEqual(agent.wait(40), 0)
        self.assertFalse(os.path.exists(f"/proc/{pids[0]}"))

    def test_an_agent_of_many_sensors(self):
        directory = self.start_agent("--serve-directory")
        sensors = "".join(f"<sensor><name>s{i}</name><what>w</what><events>E</events></sensor>" for i in range(512))
        status, text = self.call(directory, "Register", [("agent", f"<host>h</host><url>http://h:1</url>{sensors}")])
        self.assertEqual(status, 200, text)
        self.assertEqual(self.ask(directory, "find", "sensor=s511").stdout, "h\thttp://h:1\ts511\tE\n")

    def test_collect_of_many_sensors(self):
        agent = self.start_agent("--sensor", 'own=echo "DATE=20260101000000 HOST=h PROG=p LVL=Usage NL.EVNT=Own N=$NL_ARGUMENT_n"; exec sleep 1000')
        out = self.scratch / "all.log"
        self.start(self.nlagent, "collect", *(f"own?n={i}" for i in range(70)), "-a", agent.url, "-o", out)
        numbers = lambda: set(re.findall(r" N=(\d+)", out.read_text())) if out.exists() else set()
        support.wait_until(lambda: numbers() == {str(i) for i in range(70)}, what="what all sensors say")

    def test_collect_follows_agents_that_vanish_and_come_back(self):
        first, second = self.start_agent(name="h1"), self.start_agent(name="h2")
        out = self.scratch / "all.log"
        collector = self.start(self.nlagent, "collect", "load", "memory", "-a", first.url, "-a", second.url, "-i", "0.1", "-o", out)
        support.wait_until(lambda: out.exists() and {"h1", "h2"} <= set(re.findall(r"HOST=(h\d)", out.read_text())))
        second.kill()
        second.wait()
        support.wait_until(lambda: "Nlagent.Lost" in out.read_text())
        again = self.start(self.nlagentd, "--foreground", "--listen", second.url, "--host", "h3", stderr=subprocess.DEVNULL)
        support.wait_until(lambda: "HOST=h3" in out.read_text(), what="the agent that came back")
        self.assertIn("Nlagent.Back", out.read_text())
        collector.terminate()
        self.assertEqual(collector.wait(20), 0)
        support.wait_until(lambda: self.children(first) == {} and self.children(again) == {})

    def test_collector_merges_application_and_sensors(self):
        netlogd = support.program("netlogd/netlogd")
        port, out = support.free_port(), self.scratch / "merged.log"
        self.start(netlogd, "--foreground", "--listen", f"x-netlog://127.0.0.1:{port}", "--output", out, stderr=subprocess.DEVNULL)
        support.wait_until(lambda: support.can_connect(port))
        directory = self.start_agent("--serve-directory", name="dir")
        agent = self.start_agent("--register", directory.url, name="dpss1")
        support.wait_until(lambda: "dpss1" in self.ask(directory, "find", "").stdout)
        status, text = self.call(directory, "Collect", [("hosts", "host=dpss*"), ("sensor", "load"), ("sensor", "tcp"),
                                                        ("interval", "0.1"), ("destination", f"x-netlog://127.0.0.1:{port}?policy=newest&amp;ring=64k&amp;zstd=0")])
        self.assertEqual(status, 200, text)
        name = re.search("<collection>(.*)</collection>", text).group(1)
        self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{port}", "App.Event", "N=1")
        support.wait_until(lambda: out.exists() and all(w in out.read_text() for w in ("LoadAverage", "TcpSegments", "App.Event")))
        self.assertIn("HOST=dpss1", out.read_text())
        self.assertEqual(self.call(directory, "Release", [("collection", name)])[0], 200)
        support.wait_until(lambda: self.children(agent) == {}, what="sensors that nobody looks at")
        self.assertIn("NotFound", self.call(directory, "Release", [("collection", name)])[1])
        # Like the previous test, with one command and one file.
        both = self.scratch / "both.log"
        command = self.start(self.nlagent, "--directory", directory.url, "collect", "load", "--hosts", "host=dpss*", "-i", "0.1",
                             "--with", f"x-netlog://127.0.0.1:{port}", "-o", both)
        support.wait_until(lambda: both.exists() and "LoadAverage" in both.read_text())
        def written():
            self.run_program(support.program("nltools/nlwrite"), "--dest", f"x-netlog://127.0.0.1:{port}", "App.Other")
            return "App.Other" in both.read_text()
        support.wait_until(written)
        command.terminate()
        self.assertEqual(command.wait(20), 0)


class Manual(nlagents.Agent):
    def test_examples_run(self):
        agent = self.start_agent("--serve-directory")
        other = self.start_agent("--register", agent.url, name="dpss1")
        support.wait_until(lambda: "dpss1" in self.ask(agent, "find", "").stdout)
        page = (support.SOURCE / "doc/man/nlagent.1").read_text()
        commands = [line for line in page[page.index(".Sh EXAMPLES"):].splitlines()
                    if line.startswith("nlagent ") and "x-netlog" not in line]
        self.assertGreater(len(commands), 8)
        environment = {**os.environ, "NLAGENT": agent.url, "PATH": f"{support.BUILD / 'nlagent'}:{os.environ['PATH']}"}
        for command in commands:
            result = self.run_program("sh", "-c", command, env=environment, cwd=self.scratch)
            if command.startswith("nlagent summaries"): # the agent has just begun to make summaries
                self.assertEqual(result.returncode, 1, command)
                self.assertRegex(result.stderr, "^nlagent: load: no summaries yet; .*\n$")
            else:
                self.assertEqual((result.returncode, result.stderr), (0, ""), command)
        self.assertIn("TcpSegments", (self.scratch / "sensors.log").read_text())
        self.assertIsNone(other.poll())

    def test_shell_sensor(self):
        path = f"{support.BUILD / 'nltools'}:{os.environ['PATH']}"
        script = support.SOURCE / "examples/sensors/logins"
        agent = self.start_agent("--sensor", f"logins=PATH={path} {script}")
        self.assertRegex(self.ask(agent, "query", "logins").stdout, r"PROG=logins LVL=System NL.EVNT=Logins LOGINS=\d+")


class Ldap(nlagents.Agent):
    def start_slapd(self):
        slapd = next((p for p in ("/usr/sbin/slapd", "/usr/local/libexec/slapd") if os.path.exists(p)), None)
        if slapd is None:
            self.skipTest("slapd is not here")
        port, folder = support.free_port(), self.scratch / "db"
        folder.mkdir()
        (self.scratch / "secret").write_text("secret\n")
        (self.scratch / "slapd.conf").write_text(textwrap.dedent(f"""\
            include /etc/ldap/schema/core.schema
            include {support.SOURCE}/doc/nlagent.schema
            modulepath /usr/lib/ldap
            moduleload back_mdb
            pidfile {self.scratch}/slapd.pid
            database mdb
            suffix "dc=example"
            rootdn "cn=admin,dc=example"
            rootpw secret
            directory {folder}
            index nlSensor,nlExpires eq
            """))
        # in the background, slapd 2.5 loses the signal settings of its threads
        self.questions = self.scratch / "questions"
        with self.questions.open("w") as said:
            self.start(slapd, "-h", f"ldap://127.0.0.1:{port}", "-f", self.scratch / "slapd.conf", "-d", "stats", stderr=said)
        support.wait_until(lambda: support.can_connect(port), what="slapd")
        entries = ("dn: dc=example\nobjectClass: dcObject\nobjectClass: organization\no: example\ndc: example\n\n"
                   "dn: ou=netlogger,dc=example\nobjectClass: organizationalUnit\nou: netlogger\n")
        self.admin = ["-x", "-H", f"ldap://127.0.0.1:{port}", "-D", "cn=admin,dc=example", "-w", "secret"]
        result = self.run_program("ldapadd", *self.admin, input=entries)
        self.assertEqual(result.returncode, 0, result.stderr)
        return port

    def test_agents_register_and_are_found_and_expire(self):
        port = self.start_slapd()
        where = ("--ldap-base", "ou=netlogger,dc=example")
        agents = [self.start_agent("--register", f"ldap://127.0.0.1:{port}", *where, "--ldap-bind", "cn=admin,dc=example",
                                   "--ldap-password", self.scratch / "secret", "--ttl", "3", name=f"dpss{i}") for i in range(2)]
        def find(expression):
            result = self.run_program(self.nlagent, "--directory", f"ldap://127.0.0.1:{port}", *where, "find", expression)
            return sorted(line.split("\t")[:3] for line in result.stdout.splitlines())
        expected = [[f"dpss{i}", a.url, "tcp"] for i, a in enumerate(agents)]
        support.wait_until(lambda: find("sensor=tcp & host=dpss*") == expected, what="agents in LDAP")
        support.wait_until(lambda: len(find("sensor=c*")) == 2 * 4)
        self.assertEqual(find("sensor=tcp & host=dpss1"), expected[1:])
        for expression, chosen, count in [("sensor=tcp", True, 2), ("sensor = tcp", True, 2), ("host=dpss* & sensor=tcp & url=h*", True, 2),
                                          ('sensor == "tcp"', True, 2), ("sensor=tcp | sensor=load", False, 4), ("sensor=tc*", False, 2),
                                          ("!(sensor=tcp) & sensor ~ t*", False, 0), ("sensor=tcp | host=nobody", False, 2)]:
            begun = len(self.questions.read_text())
            self.assertEqual(len(find(expression)), count, expression)
            asked = re.findall(r'filter="(.*nlSensorEntry.*)"', self.questions.read_text()[begun:])
            self.assertEqual(["(nlSensor=tcp)" in filter for filter in asked], [chosen], "what the server chose by itself")
        agents[0].kill()
        support.wait_until(lambda: find("sensor=tcp") == expected[1:], what="expiry")
        agents[1].terminate()
        agents[1].wait()
        self.assertNotIn("dpss1", [host for host, _, _ in find("")])
        support.wait_until(lambda: find("") == [], what="expiry of all sensors")
        left = self.run_program("ldapsearch", *self.admin, "-LLL", "-b", "ou=netlogger,dc=example", "(objectClass=nlAgent)", "nlHost")
        self.assertNotIn("dpss1", left.stdout)


class NoDirectory(nlagents.Agent):
    def test_no_ldap_server(self):
        url = f"ldap://127.0.0.1:{support.free_port()}"
        result = self.run_program(self.nlagent, "--directory", url, "--ldap-base", "o=grid", "find")
        self.assertEqual((result.returncode, result.stderr),
                         (1, f"nlagent: LDAP: {url}: Can't contact LDAP server; is an LDAP server running there?\n"))


class Others(nlagents.Agent):
    """Tests with clients of other projects."""

    def test_zeep(self):
        if self.run_program("/usr/bin/python3", "-c", "import zeep").returncode != 0:
            self.skipTest("python3-zeep is not here")
        agent = self.start_agent("--serve-directory")
        script = textwrap.dedent(f"""
            import zeep
            client = zeep.Client("{agent.url}/nlagent.wsdl")
            service = client.create_service("{{urn:netlogger:agent:1}}AgentSoap", "{agent.url}/soap")
            sensors = service.List(details=True)
            assert "tcp" in [s.name for s in sensors], sensors
            assert any(f.name == "TCP.RETRANS" for s in sensors for f in s.field)
            records = service.Query(sensor="memory")
            total = [f._value_1 for f in records[0].f if f.n == "MEM.TOTAL"][0]
            assert int(total) == int(open("/proc/meminfo").read().split()[1]) * 1024
            assert records[0].event == "MemoryFree"
            name = service.Subscribe(sensor="cpu", interval=0.1).subscription
            answer = service.Fetch(subscription=name, wait=10, most=5)
            assert answer.missed == 0 and len(answer.record) >= 1, answer
            service.Unsubscribe(subscription=name)
            service.Register(agent=dict(host="z1", url="http://z1:1", ttl=60, sensor=[dict(name="tcp", what="w", events="T")]))
            assert service.Find(expression="host=z*")[0].sensor[0].name == "tcp"
            try:
                service.Query(sensor="nosuch")
                assert False
            except zeep.exceptions.Fault as fault:
                assert fault.message.startswith("NotFound"), fault
            print("all well")
            """)
        result = self.run_program("/usr/bin/python3", "-c", script)
        self.assertIn("all well", result.stdout, result.stderr)

    def test_gsoap(self):
        if self.run_program("sh", "-c", "command -v wsdl2h soapcpp2").returncode != 0:
            self.skipTest("gsoap is not here")
        agent = self.start_agent()
        for name in "nlagent.wsdl", "netlogger.xsd":
            (self.scratch / name).write_bytes((support.SOURCE / "doc" / name).read_bytes())
        steps = [["wsdl2h", "-c", "-o", "nlagent.h", "nlagent.wsdl"], ["soapcpp2", "-c", "-C", "-L", "-x", "nlagent.h"]]
        for step in steps:
            result = self.run_program(*step, cwd=self.scratch)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        header = (self.scratch / "nlagent.h").read_text()
        prefix = re.search(r"int __(ns\d+)__Query\(", header).group(1)
        record = re.search(r"\* *(\w+__record)\b", header).group(1)  # with the namespace's prefix
        (self.scratch / "main.c").write_text(textwrap.dedent(f"""\
            #include "soapH.h"
            #include "AgentSoap.nsmap"
            int main(int argc, char **argv)
            {{
                struct soap *soap = soap_new();
                struct _{prefix}__Query query = {{.sensor = argv[2]}};
                struct _{prefix}__QueryResponse answer;
                if (soap_call___{prefix}__Query(soap, argv[1], NULL, &query, &answer) != SOAP_OK) {{
                    soap_print_fault(soap, stderr);
                    return 1;
                }}
                for (int i = 0; i < answer.__sizerecord; i++)
                    printf("%s %d\\n", answer.{record}[i].event, answer.{record}[i].__sizef);
                return 0;
            }}
            """))
        result = self.run_program(support.CC, "-o", "client", "main.c", "soapC.c", "soapClient.c", "-lgsoap", cwd=self.scratch)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_program(self.scratch / "client", agent.url + "/soap", "load")
        self.assertIn("LoadAverage 5", result.stdout, result.stderr)
        result = self.run_program(self.scratch / "client", agent.url + "/soap", "nosuch")
        self.assertIn("NotFound", result.stderr)

    def test_curl_like_by_hand(self):
        agent = self.start_agent()
        status, text = self.call(agent, "Subscribe", [("sensor", "load"), ("interval", "0.1")])
        name = re.search(r"<subscription>(\w+)<", text).group(1)
        connection = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=30)
        connection.request("GET", f"/stream?subscription={name}&format=xml")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertIn(b"<record xmlns=", answer.readline())
        connection.close()
        support.wait_until(lambda: self.children(agent) == {})


if __name__ == "__main__":
    support.main()
