"""README.md's promises: the ten-line program compiles with the installed library, logs, and nlv draws its events."""
import fnmatch
import os
import pathlib
import re
import shutil
import sys
import tempfile

import support


def make(case, target, root):
    result = case.run_compiler("make", "-C", support.BUILD, target, f"DESTDIR={root}")
    case.assertEqual(result.returncode, 0, result.stderr)


class Install(support.Case):
    root = None  # one installation for all tests

    def setUp(self):
        super().setUp()
        if not (support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        if Install.root is None:
            Install.root = pathlib.Path(tempfile.mkdtemp(prefix="netlogger-test-"))
            self.addClassCleanup(shutil.rmtree, self.root, ignore_errors=True)
            make(self, "install", self.root)
        headers = list(self.root.rglob("netlogger.h"))
        self.assertEqual(len(headers), 1)
        self.include = headers[0].parent
        self.lib = next(self.root.rglob("libnetlogger.so")).parent
        self.bin = next(self.root.rglob("bin/nlsort")).parent

    def readme_program(self):
        text = (support.SOURCE / "README.md").read_text()
        program = re.search(r"```c\n(.*?)```", text, re.S).group(1)
        self.assertIn("#include <netlogger.h>", program)
        return program.replace("/tmp/hello.log", str(self.scratch / "hello.log"))

    def environment(self):
        return {**os.environ, "LD_LIBRARY_PATH": str(self.lib)}

    def compile(self, compiler, source, *flags):
        """Compiles source with the installed library, with the flags of pkg-config."""
        pkg_config = {
            **os.environ,
            "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.root),
        }
        found = self.run_program("pkg-config", "--cflags", "--libs", "netlogger", env=pkg_config)
        self.assertEqual(found.returncode, 0, found.stderr)
        program = self.scratch / "program"
        result = self.run_compiler(
            *compiler.split(), *flags, "-Wall", "-Wextra", "-Werror", "-pedantic", source, "-o", program, *found.stdout.split()
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return program

    def test_users_find_the_programs_in_their_path(self):
        """The documents start netlogd and nlagentd as a user, whose PATH lacks sbin."""
        self.assertEqual(list(self.root.rglob("sbin")), [])
        for program in "netlogd/netlogd", "nlagent/nlagentd":
            if (support.BUILD / program).exists():
                self.assertTrue(os.access(self.bin / pathlib.PurePath(program).name, os.X_OK), program)

    def test_what_a_desktop_finds(self):
        nlv = list(self.root.rglob("bin/nlv"))
        if not nlv:
            self.skipTest("no nlv in this build")
        share = nlv[0].parent.parent / "share"
        for path in ["applications/org.netlogger.nlv.desktop", "metainfo/org.netlogger.nlv.metainfo.xml",
                     "mime/packages/netlogger.xml", "icons/hicolor/scalable/apps/org.netlogger.nlv.svg",
                     *(f"netlogger/drawings/{name}.nlv" for name in
                       ["connections", "dpss", "gridftp", "http", "bp-workflow", "kernel-sched", "kernel-interrupts", "kernel-cpus", "kernel-request", "path", "time-sequence"])]:
            self.assertTrue((share / path).is_file(), path)
        log = self.scratch / "a.log"
        log.write_text("DATE=20260101000000 HOST=h NL.EVNT=HTTP.Client.Start HTTP.ID=1\n"
                       "DATE=20260101000001 HOST=h NL.EVNT=HTTP.Client.End HTTP.ID=1\n")
        result = self.run_program(nlv[0], "--config", "http", "--render", self.scratch / "a.png", log,
                                  env={**self.environment(), "XDG_DATA_DIRS": str(share)})
        self.assertEqual(result.returncode, 0, result.stderr)
        if shutil.which("update-mime-database") and shutil.which("gio"):
            self.run_program("update-mime-database", share / "mime")
            told = self.run_program("gio", "info", "-a", "standard::content-type", log.rename(self.scratch / "a"),
                                    env={**os.environ, "XDG_DATA_DIRS": f"{share}:/usr/share"})
            self.assertIn("application/x-netlogger-ulm", told.stdout)

    def test_readme_program(self):
        source = self.scratch / "hello.c"
        source.write_text(self.readme_program())
        program = self.compile(support.CC, source, "-std=gnu11")
        result = self.run_program(program, env=self.environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = (self.scratch / "hello.log").read_text().splitlines()
        self.assertEqual(len(lines), 300)
        for line in lines:
            self.assertRegex(line, r"^DATE=\d{14}\.\d{6} HOST=\S+ PROG=hello LVL=Usage NL\.EVNT=Request\.\w+ REQ\.ID=\d+")

        diagnosis = self.run_program(self.bin / "nldiag", self.scratch / "hello.log", env=self.environment())
        self.assertRegex(diagnosis.stdout, r"^(\d+ % of the requests' time: Request of hello is slow for KIND=large; this time is between Request.Parsed and Request.Done|cannot tell: .*)\n")  # on a busy host
        invalid = self.run_program(program, "http://localhost", env=self.environment())
        self.assertEqual(invalid.returncode, 1)
        self.assertRegex(invalid.stderr, r"\Anetlogger: URL \"http://localhost\": unknown scheme; use [^\n]*\n\Z")

        # A second run uses the same IDs; its requests remain separate.
        self.assertEqual(self.run_program(program, env=self.environment()).returncode, 0)
        result = self.run_program(self.bin / "nlstat", self.scratch / "hello.log", env=self.environment())
        self.assertIn("Requests by REQ.ID: 200, ", result.stdout)

        viewer = self.bin / "nlv"
        if not viewer.exists():
            self.skipTest("nlv is not built here")
        picture = self.scratch / "hello.svg"
        result = self.run_program(viewer, "--render", picture, self.scratch / "hello.log", env=self.environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("<svg", picture.read_text())

    def test_header_in_cxx(self):
        if shutil.which("g++") is None:
            self.skipTest("no C++ compiler here")
        source = self.scratch / "hello.cc"
        source.write_text(self.readme_program())
        self.compile("g++", source, "-std=c++17")

    def installed(self, name):
        """Returns the directory of an installed file. Skips the test if the file is not built here."""
        found = list(self.root.rglob(name))
        if not found:
            self.skipTest(f"{name} is not built here")
        self.assertEqual(len(found), 1, found)
        return found[0].parent

    def check_library(self, module):
        """An installed module finds the library in the installation or in the system's directories, and not here."""
        if shutil.which("readelf") is None:
            return
        said = self.run_program("readelf", "-d", module).stdout
        folders = [folder for found in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", said) for folder in found.split(":")]
        prefix = "/" + str(self.lib.relative_to(self.root))
        self.assertLessEqual(set(folders), {prefix})
        self.assertTrue(folders or prefix.startswith("/usr/lib"), said)
        self.assertNotIn(str(support.BUILD), said)

    def say(self, *command, **environment):
        """Runs a program that logs an event to scratch/a.log. Returns the line from the event's name on."""
        result = self.run_compiler(*command, env={**self.environment(), **environment}, cwd=self.scratch)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        line = (self.scratch / "a.log").read_text()
        (self.scratch / "a.log").unlink()
        return line.split(" NL.EVNT=")[1]

    def test_python(self):
        folder = self.installed("_core.abi3.so")
        self.check_library(folder / "_core.abi3.so")
        self.assertEqual(self.say(sys.executable, "-c", "import importlib.metadata, netlogger\n"
                                  "with netlogger.open('p', 'a.log') as log: log.event('E', A=1)\n"
                                  "assert importlib.metadata.version('netlogger') == netlogger.__version__",
                                  PYTHONPATH=str(folder.parent)), "E A=1\n")
        for name in ("py.typed", "_core.pyi"):
            self.assertTrue((folder / name).exists(), name)

    def test_python_that_cannot_build_the_module(self):
        """configure prints what the Python lacks, and the remedy."""
        result = self.run_program(sys.executable, "-I", "-S", support.SOURCE / "bindings/python/missing.py")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"\Ano setuptools in \S+; run packaging/install-dependencies build, or configure with BINDING_PYTHON=PROGRAM\n\Z")

    def test_perl(self):
        library = self.installed("NetLogger.so")
        self.check_library(library / "NetLogger.so")
        self.assertEqual(self.say("perl", "-MNetLogger", "-e", "my $log = NetLogger->open('p', 'a.log'); $log->event('E', A => 1);",
                                  PERL5LIB=str(library.parent.parent)), "E A=1\n")
        page = self.installed("NetLogger.3pm") / "NetLogger.3pm"
        self.assertIn("NetLogger", page.read_text())

    def test_java(self):
        jar = self.installed("netlogger.jar") / "netlogger.jar"
        program = self.scratch / "P.java"
        program.write_text("public class P { public static void main(String[] a) { var log = new netlogger.NetLogger(\"p\");"
                           "log.open(\"a.log\"); log.event(\"E\").put(\"A\", 1).write(); log.close(); } }")
        self.assertEqual(self.say(*support.JAVA, f"-Djava.io.tmpdir={self.scratch}", "-cp", jar, program), "E A=1\n")

    def test_fortran(self):
        module, program = self.installed("netlogger.mod"), self.scratch / "p.f90"
        program.write_text("program p\n use netlogger\n type(nl_log) :: log\n call log%open('p', 'a.log')\n"
                           " call log%write('E', 'A', 1)\n call log%close()\nend program\n")
        result = self.run_compiler("gfortran", f"-I{module}", program, "-o", self.scratch / "p", f"-L{self.lib}",
                                   "-lnetlogger-fortran", "-lnetlogger")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.say(self.scratch / "p"), "E A=1\n")

    def test_cxx(self):
        if shutil.which("g++") is None:
            self.skipTest("no C++ compiler here")
        source = self.scratch / "p.cc"
        source.write_text("#include <netlogger.hpp>\nusing namespace netlogger::literals;\n"
                          "int main() { netlogger::log log(\"p\", \"a.log\"); log.event(\"E\"_e, \"A\"_f = 1); }\n")
        self.assertEqual(self.say(self.compile("g++", source, "-std=c++17")), "E A=1\n")

    def test_every_installed_file_is_in_a_package(self):
        patterns = [p for f in (support.SOURCE / "packaging" / "debian").glob("*.install") for p in f.read_text().split()]
        self.assertGreater(len(patterns), 20)
        prefix = self.bin.parent
        files = [f for d in ("bin", "include", "libexec", "share") for f in (prefix / d).rglob("*") if not f.is_dir()]
        self.assertGreater(len(files), 50)
        paths = ["usr/" + str(f.relative_to(prefix)) for f in files]
        self.assertEqual([p for p in paths if not any(fnmatch.fnmatchcase(p, q) or fnmatch.fnmatchcase(p, f"{q}/*") for q in patterns)], [])

    def test_uninstall_leaves_nothing(self):
        root = self.scratch / "root"
        shutil.copytree(self.root, root, symlinks=True)
        make(self, "uninstall", root)
        # Directories shared with other programs may stay, but not ours.
        left = [str(p) for p in root.rglob("*") if not p.is_dir() or "netlogger" in p.name.lower()]
        self.assertEqual(left, [])


if __name__ == "__main__":
    support.main()
