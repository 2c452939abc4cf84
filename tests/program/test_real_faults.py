"""tests/diagnosis/real.py: a run with a fault and a healthy run of real programs, and its report."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time

import support

RUNNER = support.SOURCE / "tests" / "diagnosis" / "real.py"


class RealFaults(support.Case):
    def real(self, *options):
        result = self.run_program(sys.executable, RUNNER, "--build", support.BUILD, "--logs", self.scratch, *options, timeout=300, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_runs_and_score(self):
        if os.geteuid() != 0:
            self.skipTest("only root may make network namespaces and control groups")
        if not (support.BUILD / "bindings/python/lib").exists():
            self.skipTest("the Python binding is not built here")
        shop = ["--seconds", "2", "--programs", "shop", "--faults", "healthy", "--runs", "1"]
        with concurrent.futures.ThreadPoolExecutor() as pool:  # two simultaneous runs do not disturb each other
            healthy = pool.submit(self.real, *shop)
            time.sleep(1)
            printed = self.real("--seconds", "2", "--programs", "pipeline", "--faults", "batch", "--runs", "1")
        self.assertRegex(printed, r"pipeline-batch-1 +(right|top-[23]|place|WRONG) +\S.*\n +true: the store waits for \d+ items\n")
        self.assertRegex(printed, r"Top-1: \S+ \(\S+ to \S+; [01] of 1\)\n")
        printed = healthy.result()
        self.assertRegex(printed, r"(?s)shop-healthy-1 .*False alarms on healthy runs: \S+ \(\S+ to \S+; [01] of 1\)\n.*\nhealthy +\S")
        # Each program of each host has logged, and the log is sorted.
        for name, hosts in ("pipeline-batch-1", "source worker1 worker2 worker3 store"), ("shop-healthy-1", "client frontend stock prices database"):
            log = self.scratch / f"{name}.log"
            text = log.read_text()
            for host in hosts.split():
                self.assertRegex(text, rf"HOST={host} PROG={host.rstrip('123')} LVL=Usage ")
                self.assertIn(f"HOST={host} PROG=nlsensor ", text)
            self.assertEqual(self.run_program(support.program("nlsort/nlsort"), "-c", log).returncode, 0)
        truth = json.loads((self.scratch / "pipeline-batch-1.json").read_text())
        self.assertEqual((truth["causes"], truth["places"][0]), (["batch"], [None, "store", "StoreRecv"]))
        again = self.real("--again", *shop)
        self.assertEqual(re.findall("shop-healthy-1 .*", again), re.findall("shop-healthy-1 .*", printed))

    def test_same_seed_same_runs(self):
        """A seed determines kinds, places and intensities; test seeds differ from development seeds; a quarter of
        the runs has no fault."""
        script = ("import argparse, sys; sys.path.insert(0, sys.argv[1]); import real, real_faults\n"
                  "options = argparse.Namespace(seeds=sys.argv[2], programs=list(real_faults.FAULTS), faults=None, skip=0, runs=80)\n"
                  "for program, kind, seed in real.plan_runs(options): print(seed, real_faults.make_case(program, kind, seed).truth())")
        dev, again, test = (subprocess.run([sys.executable, "-c", script, RUNNER.parent, seeds], capture_output=True, text=True, check=True).stdout.splitlines()
                            for seeds in ("dev", "dev", "test"))
        self.assertEqual(dev, again)
        self.assertEqual(len(dev), 80)
        self.assertFalse({line.split()[0] for line in dev} & {line.split()[0] for line in test})
        for lines in dev, test:
            self.assertEqual(sum("'healthy'" in line for line in lines), 20)
            self.assertGreaterEqual(len({line.split("'")[3] for line in lines}), 20)


if __name__ == "__main__":
    support.main()
