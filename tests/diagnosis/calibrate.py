#!/usr/bin/env python3
"""Derives the certainty of nldiag's findings from development runs: for each class of findings, the share that is
right.

tests/diagnosis/calibrate.py DETAILS... # files that score.py and real.py write with --details

A class is a group of causes, and a range of the share that the finding claims (confidence() in
nltools/diag/findings.c); findings that are not the largest of their run are in a class of their own. The groups are
causes that no other causes resemble, causes that others resemble, and the load, which is a consequence of many causes.
The confidence is (right + 1) / (all + 2). It never decreases with the share: ranges that contradict this are joined.
"""
import json
import sys

RESEMBLED = {"peer", "timeout", "pool", "field", "changed"}
RANGES = (0.13, 0.2, 1.01)  # of shares
OF_LIMITS = {"clock", "failures", "memory", "disk", "softirq", "cpu", "link", "window", "loss", "streams"}  # these have their own confidence


def class_of(cause, largest):
    """Returns a finding's class. Range 0 is for findings that are not the largest of their run."""
    group = "load" if cause["cause"] == "load" else "resembled" if cause["cause"] in RESEMBLED else "distinct"
    return group, next(i for i, end in enumerate(RANGES, 1) if cause["share"] < end) if cause["share"] >= largest else 0


def collect(paths):
    """Returns [right, all] for each class, and for the rivals of wrong findings."""
    classes, rivals = {(group, i): [0, 0] for group in ("distinct", "resembled", "load") for i in range(len(RANGES) + 1)}, [0, 0]
    for path in paths:
        for line in open(path, encoding="utf-8"):
            run = json.loads(line)
            largest = max((cause["share"] for cause in run["causes"][:3]), default=0)
            for i, cause in enumerate(run["causes"][:3]):
                right = i < len(run["right"]) and run["right"][i]
                other = cause.get("instead_of", 0) - 1
                if other >= 0:
                    if other < len(run["right"]) and not run["right"][other]:
                        rivals = [rivals[0] + right, rivals[1] + 1]
                elif cause["cause"] not in OF_LIMITS:
                    of = classes[class_of(cause, largest)]
                    of[0] += right
                    of[1] += 1
    return classes, rivals


def share(of):
    return (of[0] + 1) / (of[1] + 2)


def join_contradictions(of):
    """Isotonic regression over ranges: joins neighbours until the shares increase. Returns the sums for each range."""
    pools = []
    for sums in of:
        pools.append([list(sums), 1])
        while len(pools) > 1 and share(pools[-2][0]) > share(pools[-1][0]):
            last = pools.pop()
            pools[-1] = [[x + y for x, y in zip(pools[-1][0], last[0])], pools[-1][1] + last[1]]
    return [sums for sums, count in pools for _ in range(count)]


def main():
    classes, rivals = collect(sys.argv[1:])
    for group in ("distinct", "resembled", "load"):
        of = [classes[group, i] for i in range(len(RANGES) + 1)]
        for i, pooled in enumerate(join_contradictions(of)):
            print(f"{group:9} {f'share < {RANGES[i - 1]:.2f}' if i > 0 else 'not largest'} {of[i][0]:4} of {of[i][1]:4} right: {share(pooled):.2f}")
    print(f"rivals of wrong findings: {rivals[0]} of {rivals[1]} right: {share(rivals):.2f}")


if __name__ == "__main__":
    main()
