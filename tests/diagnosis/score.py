#!/usr/bin/env python3
"""Measures nldiag on simulated runs: how often it names the fault, and how often it reports a fault in a healthy run.

    tests/diagnosis/score.py --nldiag build/dev/nltools/nldiag            # development seeds
    tests/diagnosis/score.py --nldiag PROGRAM --test                     # test seeds: once, with everything frozen

Prints Top-1 and Top-3 (place and mechanism both right), false alarms on healthy runs, findings on logs without structure,
a table by kind of fault, and how often findings of each confidence are right. Each figure has its sample size.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import subprocess
import tempfile

import simulate

DEVELOPMENT, TEST = 1, 1_000_001  # the first seeds


def is_right(cause, truth, mechanism=True):
    """Returns whether a finding names the right place and, if `mechanism` is true, also the right mechanism."""
    if mechanism and cause["cause"] not in truth["causes"]:
        return False
    events = " ".join(str(cause.get(k) or "") for k in ("span", "from_event", "to_event", "title"))
    host = f"{cause.get('host') or ''} {cause.get('from_host') or ''} {cause.get('to_host') or ''} {cause.get('title')}"
    if truth["kind"] == "clock":
        return truth["host"] in host
    if truth["kind"] == "slow-link":
        return truth["host"] in host and truth["program"] in f"{events} {cause.get('program')}"
    if truth["host"] is not None and truth["host"] not in host:
        return False
    if truth["span"] is None:  # a whole program
        return truth["program"] in f"{cause.get('program')} {cause.get('title')} {host}"
    return truth["span"] in events or (truth["kind"] == "failures" and truth["program"] in str(cause.get("program")))


def diagnose(arguments, path):
    result = subprocess.run([arguments.nldiag, "--json", path], capture_output=True, text=True, timeout=300, check=False)
    try:
        return json.loads(result.stdout), result
    except ValueError:
        return {"causes": [], "verdict": f"status {result.returncode}: {result.stderr[:100]}"}, result


def make(kind, seed, directory, connections=False, graded=False):
    """Writes the log of a run, unless it is in the directory already. Returns its path and the truth."""
    name = f"{kind}-{seed}{'-connections' if connections else ''}{'-graded' if graded else ''}"
    path, about = directory / f"{name}.log", directory / f"{name}.json"
    if about.exists():
        return path, json.loads(about.read_text())
    if kind in simulate.DISTRIBUTIONS:
        simulate.make_random(kind, seed, path)
        truth = {"kind": kind, "causes": []}
    else:
        truth = simulate.make_run(kind, seed, path, connections, graded)
    about.write_text(json.dumps(truth))
    return path, truth


def run(task):
    arguments, kind, seed = task
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as scratch:
        path, truth = make(kind, seed, pathlib.Path(arguments.logs or scratch), arguments.connections, arguments.graded)
        if truth is None:
            return None
        found, result = diagnose(arguments, path)
        causes = found["causes"]
        for c in causes:
            c.pop("view", None)
        return {"kind": kind, "seed": seed, "truth": truth, "causes": causes[:6], "requests": found.get("requests"), "verdict": found.get("verdict"), "status": result.returncode,
                "right": [is_right(c, truth) for c in causes[:3]] if truth["causes"] else [],
                "placed": [is_right(c, truth, False) for c in causes[:3]] if truth["causes"] else []}


def share(part, whole):
    """Returns a share with Wilson's 95 % confidence interval."""
    if whole == 0:
        return "no runs"
    p, z = part / whole, 1.96
    middle, half = p + z * z / (2 * whole), z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole * whole))
    low, high = ((middle + sign * half) / (1 + z * z / whole) for sign in (-1, 1))
    return f"{p:.3f} ({max(low, 0):.3f} to {min(high, 1):.3f}; {part} of {whole})"


def report(results, kinds=tuple(simulate.KINDS), others=(simulate.HEALTHY, *simulate.DISTRIBUTIONS)):
    """kinds: kinds of faults; others: kinds of runs without a fault."""
    faults = [r for r in results if r["kind"] in kinds]
    healthy = [r for r in results if r["kind"] == simulate.HEALTHY]
    loose = [r for r in results if r["kind"] in simulate.DISTRIBUTIONS]
    print(f"Top-1: {share(sum(r['right'][:1] == [True] for r in faults), len(faults))}")
    print(f"Top-3: {share(sum(any(r['right']) for r in faults), len(faults))}")
    print(f"Place alone, first: {share(sum(r['placed'][:1] == [True] for r in faults), len(faults))}")
    print(f"False alarms on healthy runs: {share(sum(r['verdict'] == 'finding' for r in healthy), len(healthy))}")
    if loose:
        print(f"Findings on logs without structure: {share(sum(bool(r['causes']) for r in loose), len(loose))}")
    print(f"\n{'kind':16} {'runs':>5} {'top-1':>6} {'top-3':>6} {'place':>6}  first causes")
    for kind in [*kinds, *others]:
        of = [r for r in results if r["kind"] == kind]
        if not of:
            continue
        first = collections.Counter((r["causes"][0]["cause"] if r["causes"] else r["verdict"] or "none") for r in of)
        text = ", ".join(f"{name} {count}" for name, count in first.most_common(6))
        print(f"{kind:16} {len(of):5} {sum(r['right'][:1] == [True] for r in of):6} {sum(any(r['right']) for r in of):6} "
              f"{sum(r['placed'][:1] == [True] for r in of):6}  {text}")
    print("\nconfidence  findings  right")
    bands = collections.defaultdict(list)
    for r in faults + healthy:
        for i, c in enumerate(r["causes"][:3]):
            bands[min(9, int(10 * c["sure"]))].append(i < len(r["right"]) and r["right"][i])
    for band in sorted(bands):
        print(f"{10 * band:3}-{10 * band + 10:3} %  {len(bands[band]):8}  {100 * sum(bands[band]) / len(bands[band]):3.0f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nldiag", required=True)
    parser.add_argument("--test", action="store_true", help="the test seeds")
    parser.add_argument("--runs", type=int, default=5, help="runs of each kind of fault (default 5)")
    parser.add_argument("--random", type=int, default=5, help="logs of each distribution (default 5)")
    parser.add_argument("--kind", action="append", help="only this kind")
    parser.add_argument("--connections", action="store_true", help="add records of TCP connections to all logs; some connections are limited, but are no cause")
    parser.add_argument("--graded", action="store_true", help="let faults be weak, and logs short")
    parser.add_argument("--skip", type=int, default=0, help="begin with a later seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--logs", metavar="DIRECTORY", help="keep the logs, and use those that are there")
    parser.add_argument("--details", metavar="FILE", help="write each run's findings as JSON")
    arguments = parser.parse_args()
    first = (TEST if arguments.test else DEVELOPMENT) + arguments.skip
    tasks = []
    for kind in arguments.kind or [*simulate.KINDS, simulate.HEALTHY, *simulate.DISTRIBUTIONS]:
        runs = {simulate.HEALTHY: arguments.runs * 8}.get(kind, arguments.random if kind in simulate.DISTRIBUTIONS else arguments.runs)
        tasks += [(arguments, kind, first + i) for i in range(runs)]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        results = [r for r in pool.map(run, tasks, chunksize=4) if r is not None]
    report(results)
    if arguments.details:
        with open(arguments.details, "w", encoding="utf-8") as out:
            for r in results:
                out.write(json.dumps(r) + "\n")


if __name__ == "__main__":
    main()
