#!/usr/bin/env python3
"""Derives how sure nldiag's findings are from development runs: for each class of findings, the share that is right.

    tests/diagnosis/calibrate.py DETAILS...    # files that score.py and real.py write with --details

A class is whether other causes resemble the cause, and whether the finding claims or explains little (confidence() in
nltools/diag/findings.c). The share is (right + 1) / (all + 2). It never increases from a strong class to a weak class, or from a
distinct to a resembled cause: classes that contradict this are joined.
"""
import json
import sys

RESEMBLED = {"peer", "timeout", "pool", "field", "changed", "load"}
OF_LIMITS = {"clock", "failures", "memory", "disk", "softirq", "cpu", "link", "window", "loss", "streams"}  # these have their own confidence


def collect(paths):
    """Returns [right, all] for each class, and for the rivals of wrong findings."""
    classes, rivals = {(a, b): [0, 0] for a in (False, True) for b in (False, True)}, [0, 0]
    for path in paths:
        for line in open(path, encoding="utf-8"):
            run = json.loads(line)
            for i, cause in enumerate(run["causes"][:3]):
                right = i < len(run["right"]) and run["right"][i]
                other = cause.get("instead_of", 0) - 1
                if other >= 0:
                    if other < len(run["right"]) and not run["right"][other]:
                        rivals = [rivals[0] + right, rivals[1] + 1]
                elif cause["cause"] not in OF_LIMITS:
                    of = classes[cause["cause"] in RESEMBLED, cause["share"] < 0.13 or cause["explained"] < 0.4]
                    of[0] += right
                    of[1] += 1
    return classes, rivals


def share(of):
    return (of[0] + 1) / (of[1] + 2)


def join_contradictions(classes):
    """Isotonic regression on the order of the classes, by joining classes until the order holds."""
    groups = {c: [c] for c in classes}
    pooled = dict(classes)
    pairs = [((a, False), (a, True)) for a in (False, True)] + [((False, b), (True, b)) for b in (False, True)]
    again = True
    while again:
        again = False
        for high, low in pairs:
            if groups[high] is groups[low] or share(pooled[high]) >= share(pooled[low]):
                continue
            members = groups[high] + groups[low]
            total = [sum(classes[c][k] for c in members) for k in (0, 1)]
            for c in members:
                groups[c], pooled[c] = members, total
            again = True
    return pooled


def main():
    classes, rivals = collect(sys.argv[1:])
    pooled = join_contradictions(classes)
    for (resembled, weak), of in sorted(classes.items()):
        print(f"{'resembled' if resembled else 'distinct':9} {'weak' if weak else 'strong':6} {of[0]:4} of {of[1]:4} right: {share(pooled[resembled, weak]):.2f}")
    print(f"rivals of wrong findings: {rivals[0]} of {rivals[1]} right: {share(rivals):.2f}")


if __name__ == "__main__":
    main()
