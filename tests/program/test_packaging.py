"""The collector's package: manual pages, the commented configuration, systemd units."""
import json
import pathlib
import re
import shutil
import subprocess

import support

MAN = support.SOURCE / "doc" / "man"
CONFIGURATION = support.SOURCE / "packaging" / "netlogd.conf"


def directives(program="netlogd/netlogd"):
    """Returns the options that the program's configuration file may have: name -> description from --help=json."""
    about = json.loads(subprocess.run([support.program(program), "--help=json"], capture_output=True, check=True).stdout)
    return {option["name"]: option for option in about["options"] if option.get("file")}


class Packaging(support.Case):
    def test_configure_finds_bpftool_outside_of_the_path_of_users(self):
        """Debian installs bpftool in /usr/sbin, so the makefiles need its path."""
        makefile = (support.BUILD / "Makefile").read_text()
        tool = re.search(r"^BPFTOOL = (\S+)$", makefile, re.M)
        if not tool:
            self.skipTest("nlkernel is not built here")
        self.assertTrue(pathlib.PurePath(tool[1]).is_absolute(), tool[0])

    def test_every_verb_is_in_its_page(self):
        result = self.run_program(support.program("netlogd/netlogctl"), "--help=json")
        verbs = {command["name"] for command in json.loads(result.stdout)["commands"]}
        self.assertIn("status", verbs)
        text = (MAN / "netlogctl.8").read_text()
        self.assertEqual(set(re.findall(r"^\.It Cm (\w+)", text, re.M)), verbs)

    def test_pages_are_well_written(self):
        if shutil.which("mandoc") is None:
            self.skipTest("no mandoc here")
        pages = sorted(MAN.iterdir())
        self.assertEqual([p.name for p in pages if p.suffix[1:].isdigit()], [p.name for p in pages])
        result = self.run_program("mandoc", "-Tlint", "-Wwarning", *pages)
        self.assertEqual((result.returncode, result.stdout + result.stderr), (0, ""))
        others = {("ssh", "1")}
        for page in pages:
            for name, section in re.findall(r"\.Xr (\S+) (\d)", page.read_text()):
                self.assertTrue((name, section) in others or (MAN / f"{name}.{section}").exists(), f"{page.name} names {name}({section})")

    def example(self, configuration=CONFIGURATION):
        """Returns the lines for this test: (directive, value) of active lines, and of lines that are commented out."""
        text = configuration.read_text()
        for path in ("/var/lib/netlogd", "/run/netlogd", "/etc/netlogd"):
            text = text.replace(path, str(self.scratch))
        text = re.sub(r":148\d\d\b", lambda m: f":{support.free_port()}", text)
        return (re.findall(rf"^{mark}([a-z-]+) (\S.*)$", text, re.M) for mark in ("", "#"))

    def agents_example(self):
        active, commented = self.example(support.SOURCE / "packaging" / "nlagentd.conf")
        return active, [(name, value.replace("/etc/netlogger", str(self.scratch))) for name, value in commented]

    def test_agents_example_names_every_directive(self):
        active, commented = self.agents_example()
        self.assertEqual({name for name, _ in active + commented}, directives("nlagent/nlagentd").keys())

    def test_agents_example_is_taken(self):
        """The file unchanged, and with all comments that are settings active. A limit in it is the default."""
        self.certify()
        (self.scratch / "access").write_text("loopback all\n")
        (self.scratch / "token").write_text("x" * 20 + "\n")
        active, commented = self.agents_example()
        port = f"listen http://127.0.0.1:{support.free_port()}\n"
        path = self.scratch / "nlagentd.conf"
        some = [(name, value) for name, value in commented
                if not value.startswith("inherited:") and value != "http://127.0.0.1" and name != "sensor-program"]
        for lines in active, active + some:
            path.write_text("".join(f"{name} {value}\n" for name, value in lines) + port)
            agent = self.start(support.program("nlagent/nlagentd"), "--foreground", "--config", path, stderr=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, text=True)
            self.assertIn("listening on", agent.stderr.readline())
            agent.terminate()
            said = agent.stderr.read()
            self.assertEqual(agent.wait(30), 0, said)
        self.assert_defaults(commented, directives("nlagent/nlagentd"))

    def assert_defaults(self, commented, known):
        """A setting that is commented out shows the default, except examples of settings without default."""
        told = 0
        for name, value in commented:
            if "default" in known[name] and name != "log":
                told += 1
                self.assertEqual(value, known[name]["default"], name)
        self.assertGreater(told, 5)

    def serve(self, lines):
        """Checks that netlogd accepts these lines: starts netlogd with them, and ends it when it listens."""
        path = self.scratch / "netlogd.conf"
        path.write_text("".join(f"{name} {value}\n" for name, value in lines))
        netlogd = self.start(support.program("netlogd/netlogd"), "--foreground", "--config", path, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True)
        said = line = netlogd.stderr.readline()
        while line and "listening on" not in line:
            line = netlogd.stderr.readline()
            said += line
        netlogd.terminate()
        said += netlogd.stderr.read()
        self.assertEqual(netlogd.wait(30), 0, said)

    def certify(self):
        certificate = self.scratch / "server.pem"
        result = self.run_program("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout",
                                  self.scratch / "key.pem", "-out", certificate)
        self.assertEqual(result.returncode, 0, result.stderr)
        shutil.copy(certificate, self.scratch / "ca.pem")
        certificate.write_text(certificate.read_text() + (self.scratch / "key.pem").read_text())

    def test_example_is_taken(self):
        """The file unchanged, and with all settings in comments active."""
        self.certify()
        active, _ = self.example()
        self.serve(active + [("listen", f"unix:{self.scratch}/here")])
        self.assertTrue(list(self.scratch.glob("netlog*.nlb")))
        for attempt in range(5):
            active, commented = self.example()
            try:
                self.serve(active + [(name, value) for name, value in commented if not value.startswith("inherited:")])
            except AssertionError as why:
                # Another process may use one of these ports now.
                if "Address already in use" not in str(why) or attempt == 4:
                    raise
            else:
                break

    def test_defaults_of_the_example_are_true(self):
        """A limit that is commented out shows the default in --help."""
        _, commented = self.example()
        self.assert_defaults(commented, directives())

    # ---- systemd ----

    def units(self):
        """The installed units, with the built program."""
        for name in ("netlogd.service.in", "netlogd.socket", "nlrecover.service.in", "nlrecover.timer"):
            text = (support.SOURCE / "packaging" / name).read_text()
            for here, built in (("@bindir@/netlogd", "netlogd/netlogd"), ("@bindir@/netlogctl", "netlogd/netlogctl"),
                                ("@bindir@/nlrecover", "nltools/nlrecover")):
                text = text.replace(here, support.program(built))
            text = text.replace("@sysconfdir@", "/etc")
            (self.scratch / name.removesuffix(".in")).write_text(text)
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze here")
        return [self.scratch / name for name in ("netlogd.service", "netlogd.socket", "nlrecover.service", "nlrecover.timer")]

    def test_units_are_right(self):
        result = self.run_program("systemd-analyze", "verify", "--man=no", *self.units())
        # The output includes complaints about other units of the machine.
        ours = [line for line in (result.stdout + result.stderr).splitlines() if "netlogd" in line or "nlrecover" in line]
        self.assertEqual(ours, [])

    def test_agents_service(self):
        """The unit is well-formed and has few rights."""
        if shutil.which("systemd-analyze") is None:
            self.skipTest("no systemd-analyze here")
        text = (support.SOURCE / "packaging" / "nlagentd.service.in").read_text()
        service = self.scratch / "nlagentd.service"
        service.write_text(text.replace("@bindir@/nlagentd", "/bin/true").replace("@sysconfdir@", "/etc"))
        result = self.run_program("systemd-analyze", "verify", "--man=no", service)
        self.assertEqual(re.findall(r"^.*nlagentd\.service.*$", result.stderr, re.M), [])
        result = self.run_program("systemd-analyze", "security", "--offline=yes", "--no-pager", service)
        level = re.search(r"Overall exposure level for nlagentd\.service: ([0-9.]+)", result.stdout)
        if level is None:
            self.skipTest(f"systemd-analyze does not say: {result.stderr.strip()}")
        self.assertLessEqual(float(level.group(1)), 2.0, result.stdout)

    def test_packages_have_the_version_of_what_is_in_them(self):
        configured = re.search(r"^AC_INIT\(\[netlogger\], \[(.*?)\]\)", (support.SOURCE / "configure.ac").read_text(), re.M)[1]
        changelog = (support.SOURCE / "packaging" / "debian" / "changelog").read_text()
        self.assertEqual(re.match(r"netlogger \((.*?)\)", changelog)[1], configured)

    def test_service_may_do_little(self):
        service = self.units()[0]
        result = self.run_program("systemd-analyze", "security", "--offline=yes", "--no-pager", service)
        level = re.search(r"Overall exposure level for netlogd\.service: ([0-9.]+)", result.stdout)
        if level is None:
            self.skipTest(f"systemd-analyze does not say: {result.stderr.strip()}")
        self.assertLess(float(level[1]), 2.0, result.stdout)


if __name__ == "__main__":
    support.main()
