#!/usr/bin/env python3
"""Measures nldiag --compare: how often it reports a change between equal programs, and how often it finds a change
of 2 %.

    tests/diagnosis/compare_trials.py --nldiag build/dev/nltools/nldiag              # development seeds
    tests/diagnosis/compare_trials.py --nldiag PROGRAM --test --trials 1000         # test seeds: once, with everything frozen

Without a change, anything but "no change found", status 0 and an empty list is a false alarm. With a change, one span takes
2 % longer; the trial succeeds if the status is 3 and this span is the first of the list. The kinds of load:

    independent   one log of 3,000 requests on each side; each span's time varies by 10 %
    correlated    the same, but slow requests come in groups (AR(1) with 0.9)
    mixed         three types of requests with different times, and fields that mean nothing
    runs          five logs of 400 requests on each side; runs differ by 1 %
    services      simulated services (simulate.py), one log on each side; no trials with a change
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simulate  # pylint: disable=wrong-import-position

DEVELOPMENT, TEST = 1, 1_000_001  # the first seeds
SPANS = {"Parse": ("web", 0.001), "Query": ("db", 0.004), "Store": ("disk", 0.0015), "Render": ("web", 0.002)}
SLOWER = "Query"
KINDS = ("independent", "correlated", "mixed", "runs", "services")


def write_log(path, chance, requests, *, factor=1.0, slower=1.0, correlation=0.0, mixed=False):
    lines, noise = [], dict.fromkeys(SPANS, 0.0)
    for number in range(requests):
        at, kind = number * 0.02 + chance.uniform(0, 0.005), chance.choice(["page", "item", "item", "report"]) if mixed else "page"
        scale = factor * {"page": 1, "item": 0.8, "report": 1.5}[kind]
        root = f"HOST=web PROG=web LVL=Usage TRACE.ID={number} SPAN.ID={number}.0"
        lines.append((at, f"{root} NL.EVNT=Handle.start KIND={kind} CUSTOMER=c{chance.randrange(5)} SIZE={chance.uniform(1, 9):.2f}"))
        for i, (span, (program, mean)) in enumerate(SPANS.items()):
            noise[span] = correlation * noise[span] + math.sqrt(1 - correlation ** 2) * chance.gauss(0, 1)
            at += 1e-4 * (1 + 0.1 * chance.gauss(0, 1))
            fields = f"HOST={program} PROG={program} LVL=Usage TRACE.ID={number} SPAN.ID={number}.{i + 1} PARENT.ID={number}.0"
            lines.append((at, f"{fields} NL.EVNT={span}.start"))
            at += mean * scale * (slower if span == SLOWER else 1) * max(0.2, 1 + 0.1 * noise[span])
            lines.append((at, f"{fields} NL.EVNT={span}.end CACHE={chance.choice(['hit', 'hit', 'miss'])}"))
        lines.append((at + 1e-4, f"{root} NL.EVNT=Handle.end"))
    simulate.write_lines(path, sorted(lines))


def write_service(path, seed, side):
    run = simulate.Run(simulate.HEALTHY, seed)
    run.noise = random.Random(f"noise {seed} {side}")
    run.write(path)


def write_side(directory, kind, seed, side, slower):
    """Writes one side's logs. Returns their paths."""
    chance = random.Random(f"{kind} {seed} {side}")
    paths = [directory / f"{side}{i}.log" for i in range(5 if kind == "runs" else 1)]
    for path in paths:
        if kind == "services":
            write_service(path, seed, side)
        elif kind == "runs":
            write_log(path, chance, 400, factor=1 + 0.01 * chance.gauss(0, 1), slower=slower)
        else:
            write_log(path, chance, 3000, slower=slower, correlation=0.9 * (kind == "correlated"), mixed=kind == "mixed")
    return paths


def trial(nldiag, kind, seed, change):
    """Compares two sides. Returns the report and the exit status."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        before = write_side(pathlib.Path(scratch), kind, seed, "before", 1.0)
        after = write_side(pathlib.Path(scratch), kind, seed, "after", 1.0 + change)
        result = subprocess.run([nldiag, "--json", "--compare", *before, "--with", *after], capture_output=True, text=True, timeout=300, check=False)
    if not result.stdout:
        raise RuntimeError(f"{kind} {seed}: {result.stderr}")
    return json.loads(result.stdout), result.returncode


def is_alarm(report, status):
    return status != 0 or report["verdict"] != "no change found" or report["changes"] != [] or report["mix"] is not None


def is_found(report, status):
    return status == 3 and report["changes"] != [] and report["changes"][0]["place"].startswith(f"{SLOWER} of ")


def run(task):
    nldiag, kind, seed, change = task
    report, status = trial(nldiag, kind, seed, change)
    return kind, change, is_found(report, status) if change else is_alarm(report, status), seed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nldiag", required=True)
    parser.add_argument("--test", action="store_true", help="the test seeds")
    parser.add_argument("--trials", type=int, default=50, help="trials without a change, and half as many with one (default 50)")
    parser.add_argument("--require", action="store_true", help="fail if more than 1 %% are false alarms, or fewer than 95 %% of the changes are found")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    first = TEST if arguments.test else DEVELOPMENT
    each = arguments.trials // len(KINDS)
    tasks = [(arguments.nldiag, kind, first + i, 0.0) for kind in KINDS for i in range(each)]
    tasks += [(arguments.nldiag, kind, first + 100_000 + i, 0.02) for kind in ("independent", "mixed") for i in range(arguments.trials // 4)]
    # Five runs that differ by 1 % cannot show 2 %.
    tasks += [(arguments.nldiag, "runs", first + 100_000 + i, 0.1) for i in range(each)]
    counts = collections.defaultdict(lambda: [0, 0])
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for kind, change, yes, seed in pool.map(run, tasks, chunksize=4):
            counts[(change, kind)][yes] += 1
            if yes != (change > 0):
                print(f"  {kind}, change {100 * change:g} %: seed {seed}", file=sys.stderr)
    for (change, kind), (no, yes) in sorted(counts.items()):
        what = f"{100 * change:g} % longer, found" if change else "false alarms"
        print(f"{kind:12} {what:24} {yes:5} of {no + yes}")
    alarms = sum(yes for (change, _), (_, yes) in counts.items() if change == 0)
    found = [sum(yes for (change, _), (_, yes) in counts.items() if change == 0.02), sum(no + yes for (change, _), (no, yes) in counts.items() if change == 0.02)]
    print(f"all false alarms: {alarms} of {each * len(KINDS)}; changes of 2 % found: {found[0]} of {found[1]}")
    if arguments.require and (alarms > 0.01 * each * len(KINDS) or found[0] < 0.95 * found[1]):
        sys.exit(1)


if __name__ == "__main__":
    main()
