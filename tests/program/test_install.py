"""What README.md promises: the ten-line program compiles against the installed library, logs, and is seen in nlv."""
import os
import re
import shutil
import subprocess
import unittest

import support


class Install(support.Case):
    def setUp(self):
        super().setUp()
        if not (support.BUILD / "libnetlogger" / ".libs" / "libnetlogger.so").exists():
            self.skipTest("no shared library in this build")
        self.root = self.scratch / "root"
        result = self.run_program("make", "-C", support.BUILD, "install", f"DESTDIR={self.root}", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        headers = list(self.root.rglob("netlogger.h"))
        self.assertEqual(len(headers), 1)
        self.include = headers[0].parent
        self.lib = next(self.root.rglob("libnetlogger.so")).parent
        self.bin = next(self.root.rglob("nlsort")).parent

    def readme_program(self):
        text = (support.SOURCE / "README.md").read_text()
        program = re.search(r"```c\n(.*?)```", text, re.S).group(1)
        self.assertIn("#include <netlogger.h>", program)
        return program.replace("/tmp/hello.log", str(self.scratch / "hello.log"))

    def environment(self):
        return {**os.environ, "LD_LIBRARY_PATH": str(self.lib)}

    def compile(self, compiler, source, *flags):
        """Compiles source against what was installed, by the flags that pkg-config gives."""
        pkg_config = {
            **os.environ,
            "PKG_CONFIG_PATH": str(self.lib / "pkgconfig"),
            "PKG_CONFIG_SYSROOT_DIR": str(self.root),
        }
        found = self.run_program("pkg-config", "--cflags", "--libs", "netlogger", env=pkg_config)
        self.assertEqual(found.returncode, 0, found.stderr)
        program = self.scratch / "program"
        result = self.run_program(
            *compiler.split(), *flags, "-Wall", "-Wextra", "-Werror", "-pedantic", source, "-o", program, *found.stdout.split()
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        return program

    def test_readme_program(self):
        source = self.scratch / "hello.c"
        source.write_text(self.readme_program())
        program = self.compile(support.CC, source, "-std=gnu11")
        result = self.run_program(program, env=self.environment())
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = (self.scratch / "hello.log").read_text().splitlines()
        self.assertEqual(len(lines), 60)
        for line in lines:
            self.assertRegex(line, r"^DATE=\d{14}\.\d{6} HOST=\S+ PROG=hello LVL=Usage NL\.EVNT=Request\.\w+ REQ\.ID=\d+")

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

    def test_uninstall_leaves_no_file(self):
        result = self.run_program("make", "-C", support.BUILD, "uninstall", f"DESTDIR={self.root}", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        left = [str(p) for p in self.root.rglob("*") if not p.is_dir()]
        self.assertEqual(left, [])


if __name__ == "__main__":
    support.main()
