"""The programs' manual pages: their examples run. test_documented.py checks that they are complete."""
import os
import re
import shutil

import support

MAN = support.SOURCE / "doc" / "man"
PROGRAMS = {"netlogd": "netlogd/netlogd", "netlogctl": "netlogd/netlogctl", "nlsort": "nlsort/nlsort",
            "nlconv": "nltools/nlconv", "nlwrite": "nltools/nlwrite", "nlstat": "nltools/nlstat", "nldiag": "nltools/nldiag", "nlv": "nlv/nlv",
            "nlrecover": "nltools/nlrecover", "nlschema": "nltools/nlschema", "nlsensor": "nlagent/nlsensor",
            "nlkernel": "nlkernel/nlkernel", "nlarchive": "nltools/nlarchive",
            "nlagent": "nlagent/nlagent", "nlagentd": "nlagent/nlagentd"}

# Patterns of examples that cannot run here, each with the number of matching examples and the reason.
NOT_RUN = {
    "x-netlog://HOST": (9, "there is no collector of that name"),
    "^nlv dpss.log$": (1, "it opens a window"),
    "netlogd": (5, "it goes into the background; test_netlogd.py tests it"),
    "netlogctl": (3, "it requires a collector; test_netlogctl.py tests it"),
    "nlkernel symbols": (1, "it requires a kernel's DWARF; test_nlkernel_functions.py tests it"),
    "nlkernel record": (4, "it requires the kernel's tracefs; test_nlkernel.py tests it"),
    "nlkernel trace": (2, "it requires servers to trace; test_nlkernel_trace.py tests it"),
    "nlkernel rules run": (3, "it requires the kernel's tracefs; test_nlkernel_rules.py tests it"),
    "nlkernel list": (1, "it requires the kernel's tracefs"),
    "^nlagent ": (9, "it requires an agent; test_nlagentd.py runs these"),
    r"^nlagentd\b": (5, "it serves until it is ended; test_nlagentd.py tests it"),
    "&& nlv": (1, "it opens a window"),
    "^strace ": (1, "it traces a program; test_nlconv_import.py tests it"),
    "^journalctl ": (1, "it requires a systemd journal; test_nlconv_import.py tests it"),
    "^perf script ": (1, "it requires a recording of perf; test_nlconv_import.py tests it"),
}


def examples(page):
    """Returns the commands of a page's EXAMPLES."""
    text = page.read_text()
    found = re.search(r"^\.S[Hh] EXAMPLES?\n(.*?)(?=^\.S[Hh] |\Z)", text, re.M | re.S)
    blocks = re.findall(r"^\.(?:EX|nf|Bd [^\n]*)\n(.*?)^\.(?:EE|fi|Ed)$", found.group(1), re.M | re.S) if found else []
    for block in blocks:
        block = block.replace("\\-", "-").replace("\\e", "\\").replace("\\\n", "")
        for line in block.splitlines():
            if line.strip() and not line.startswith(("{", "#", " ")):
                yield line


class Manual(support.Case):
    def event(self, number, event, **fields):
        rest = "".join(f" {name}={value}" for name, value in fields.items())
        return f"DATE=20260101000000.{number:06d} HOST=h{number % 2} PROG=dpss LVL=Usage NL.EVNT={event}{rest}\n"

    def set_up_files(self):
        """Makes the files that the examples use."""
        life = "".join(self.event(i * 1000 + k * 10, name, **{"BLOCK.ID": i, "SEND.SZ": 100})
                       for i in range(50) for k, name in enumerate(("Begin", "WriteData", "End")))
        for name in "dpss.log", "before.log", "after.log", "all.log", "program.log", "host1.log", "host2.log", "a.log", "journal.log", "perf.log", "gridftp.log":
            (self.scratch / name).write_text(life)
        (self.scratch / "calls.txt").write_text(
            "".join(f'7 12:00:0{i}.000000 openat(AT_FDCWD, "x", O_RDONLY) = 3 <0.000021>\n' for i in range(3)))
        (self.scratch / "functions.nlb").write_text(self.event(1, "ftrace.function", FUNCTION="tcp_sendmsg", CALLER="sock_sendmsg"))
        (self.scratch / "kernel.map").write_text("tcp_sendmsg\tnet/ipv4/tcp.c:1\n")
        (self.scratch / "archive").mkdir()
        (self.scratch / "archive" / "netlog-000001.log").write_text(life)
        shutil.copytree(self.scratch / "archive", self.scratch / "logs")
        for name in "dpss.schema", "dpss.nlv":
            shutil.copy(support.SOURCE / "examples" / "dpss" / name, self.scratch)
        (self.scratch / "dpss.schema").write_text(
            "[schema]\nname=dpss\ndescription=d\n" +
            "".join(f"[{e}]\nlevel=Usage\ndescription=d\nBLOCK.ID=int64; ; d\nSEND.SZ=int64; bytes; d\n"
                    for e in ("Begin", "WriteData", "End")))
        (self.scratch / "s.nlb").write_text(
            "".join(self.event(i, "sched.sched_switch", **{"CPU": 0, "PREV.COMM": "a", "PREV.PID": 1, "PREV.PRIO": 120,
                                                           "PREV.STATE": 0, "NEXT.COMM": "b", "NEXT.PID": 2,
                                                           "NEXT.PRIO": 120}) for i in range(3)))

    def test_examples_run(self):
        self.set_up_files()
        folders = {str((support.BUILD / p).parent) for p in PROGRAMS.values()}
        environment = {**os.environ, "PATH": ":".join(folders) + ":" + os.environ["PATH"]}
        environment.pop("NETLOGGER_DEST", None)
        counts = dict.fromkeys(NOT_RUN, 0)
        run = 0
        for page in sorted(MAN.iterdir()):
            program = PROGRAMS.get(page.stem)
            if program is None:
                continue
            self.assertGreater(len(list(examples(page))), 0, f"{page.name} has no examples")
            for command in examples(page):
                reason = next((key for key in NOT_RUN if re.search(key, command)), None)
                if reason is not None:
                    counts[reason] += 1
                elif (support.BUILD / program).exists() and shutil.which(command.split()[0], path=environment["PATH"]):
                    result = self.run_program("sh", "-c", command, cwd=self.scratch, env=environment)
                    verdicts = (0, 3, 4) if program.endswith("nldiag") else (0,)
                    self.assertTrue(result.returncode in verdicts and "rror" not in result.stderr,
                                     f"{page.name}: {command}: {result.stderr}")
                    run += 1
        self.assertEqual(counts, {key: count for key, (count, _) in NOT_RUN.items()})
        self.assertGreater(run, 25)

    def test_every_program_has_a_page(self):
        for path in PROGRAMS.values():
            if (support.BUILD / path).exists():
                self.assertTrue(list(MAN.glob(f"{path.split('/')[1]}.[18]")), f"{path} has no page")
        readme = (support.SOURCE / "README.md").read_text()
        for page in MAN.iterdir():
            self.assertIn(f"(doc/man/{page.name})", readme)


if __name__ == "__main__":
    support.main()
