#!/usr/bin/env python3
"""Checks what "healthy" promises: power.py --nldiag PROGRAM [--runs N] [--skip N] [--graded] [--kind KIND]...

nldiag may call a log healthy only if it would have found a cause of a tenth of the requests' time with a probability of
90 %. For each seed whose healthy log is called healthy, this program adds a fault to the same run, scales it until it costs
a tenth of the time, and counts how often nldiag names it, anywhere among its findings.
"""
import argparse
import concurrent.futures
import pathlib
import tempfile

import score
import simulate

SHARE = 0.1
KINDS = ("value", "slow-host", "changed")


def make_fault(kind, seed, healthy_mean, graded):
    """Returns a run whose fault costs about a tenth of the time, and the exact share. Returns None if the fault
    cannot be scaled to this share."""
    factor = 0.3
    for _ in range(8):
        run = simulate.Run(kind, seed, graded=graded)
        run.cost *= factor
        mean = run.simulate(logs=False).truth["mean"]
        cost = 1 - healthy_mean / mean
        if abs(cost - SHARE) < 0.004:
            run = simulate.Run(kind, seed, graded=graded)
            run.cost *= factor
            return run, cost
        if cost <= 0.005:
            factor *= 4
        else:
            factor *= min(4, (SHARE / (1 - SHARE)) / (cost / (1 - cost)))
    return None


def trial(task):
    """Returns nldiag's verdict on the healthy log, and whether nldiag finds each kind of fault."""
    arguments, seed = task
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "a.log"
        healthy = simulate.Run(simulate.HEALTHY, seed, graded=arguments.graded)
        mean = healthy.write(path)["mean"]
        found, _ = score.diagnose(arguments, path)
        said, results = (found["verdict"] or "").split(":")[0], {}
        if said != "healthy":
            return said, results
        for kind in arguments.kind or KINDS:
            try:
                made = make_fault(kind, seed, mean, arguments.graded)
            except ValueError:
                continue  # the graph cannot have the fault
            if made is not None:
                truth = made[0].write(path)
                found, _ = score.diagnose(arguments, path)
                results[kind] = any(score.is_right(c, truth) for c in found["causes"]), bool(found["causes"]), found["verdict"]
        return said, results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nldiag", required=True)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--skip", type=int, default=0, help="begin with a later seed")
    parser.add_argument("--kind", action="append", help=f"kinds of faults (default: {', '.join(KINDS)})")
    parser.add_argument("--graded", action="store_true", help="let logs be short")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    first = score.DEVELOPMENT + arguments.skip
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(trial, [(arguments, first + i) for i in range(arguments.runs)]))
    for said in sorted({said for said, _ in results}):
        print(f"{said or 'a cause'}: {sum(s == said for s, _ in results)} of {len(results)} healthy logs")
    for kind in arguments.kind or KINDS:
        of = [r[kind] for _, r in results if kind in r]
        print(f"{kind:12} named: {score.share(sum(right for right, _, _ in of), len(of))}; any finding: "
              f"{score.share(sum(some for _, some, _ in of), len(of))}")
        for _, _, verdict in [r for r in of if not r[0]][:5]:
            print(f"    missed: {verdict}")


if __name__ == "__main__":
    main()
