#!/usr/bin/env python3
"""Computes the coefficients of the confidence of nldiag's findings from development runs, by logistic regression.

tests/diagnosis/calibrate.py DETAILS... # files that score.py and real.py write with --details

The features are those of confidence() in nltools/diag/findings.c: the group of the cause, whether the finding is the
largest of its run, the logarithm of its share, the part of the variation that it explains, its margin over the best
other explanation, and, for a queue, the logarithm of the number of digits of its probability by chance. The groups are
causes that few other causes resemble, causes that others resemble, the load, which is a consequence of many causes,
queues, limits of TCP connections, and the distribution and size of the work. No coefficient is negative, so that better
evidence never makes a finding less sure.
Prints the coefficients, and a reliability table by ten-fold cross-validation over runs.
"""
import collections
import json
import math
import random
import sys

CONNECTIONS = {"window", "loss", "policed", "reverse"}  # all simulated findings with these causes come from connections
DISTINCT = {"calls", "cold", "hour"}
DEMANDS = {"balance", "size"}
QUEUES = {"lock", "pool"}
OF_LIMITS = {"clock", "failures", "memory", "disk", "softirq", "cpu", "link", "streams"}  # excluded: the model does not apply
NAMES = ("distinct", "resembled", "load", "connections", "queue", "demand", "largest", "log(share)", "explained", "margin", "log(digits)")
FREE = 6  # the intercepts may be negative
RIDGE = 1e-3


def features(cause, largest):
    name = cause["cause"]
    group = 5 if name in DEMANDS else 3 if name in CONNECTIONS else 2 if name == "load" else 4 if name in QUEUES else 0 if name in DISTINCT else 1
    digits = min(300, max(1, -math.log10(max(cause["chance"], 1e-300)))) if group == 4 else 1
    return [float(group == i) for i in range(FREE)] + [float(cause["share"] >= largest), math.log(max(cause["share"], 0.01)),
                                                    max(0, min(1, cause["explained"])), cause["margin"], math.log(digits)]


def collect(paths):
    """Returns (run, features, is right) for each finding, and [right, all] of the rivals of wrong findings."""
    rows, rivals = [], [0, 0]
    for path in paths:
        for line in open(path, encoding="utf-8"):
            run = json.loads(line)
            largest = max((cause["share"] for cause in run["causes"]), default=0)
            for i, cause in enumerate(run["causes"][:3]):
                right, other = i < len(run["right"]) and run["right"][i], cause.get("instead_of", 0) - 1
                if other >= 0:
                    if other < len(run["right"]) and not run["right"][other]:
                        rivals = [rivals[0] + right, rivals[1] + 1]
                elif cause["cause"] not in OF_LIMITS and "margin" in cause:
                    rows.append(((run["kind"], run["seed"]), features(cause, largest), float(right)))
    return rows, rivals


def probability(weights, x):
    return 1 / (1 + math.exp(-max(-30, min(30, sum(w * v for w, v in zip(weights, x))))))


def fit(rows):
    """Maximum likelihood with a small ridge, by projected gradient ascent on standardized features."""
    n, width = len(rows), len(NAMES)
    scale = [1.0] * FREE + [max(1e-6, math.sqrt(sum(x[k] ** 2 for _, x, _ in rows) / n)) for k in range(FREE, width)]
    scaled, weights = [([v / s for v, s in zip(x, scale)], y) for _, x, y in rows], [0.0] * width
    for step in range(1200):
        gradient = [-RIDGE * w for w in weights]
        for x, y in scaled:
            off = (y - probability(weights, x)) / n
            for k in range(width):
                gradient[k] += off * x[k]
        weights = [w + 2.0 * g for w, g in zip(weights, gradient)]
        weights = [w if k < FREE else max(0, w) for k, w in enumerate(weights)]
    return [w / s for w, s in zip(weights, scale)]


def main():
    rows, rivals = collect(sys.argv[1:])
    runs = sorted({run for run, _, _ in rows})
    random.Random(1).shuffle(runs)
    fold_of, bands = {run: i % 10 for i, run in enumerate(runs)}, collections.defaultdict(list)
    for fold in range(10):
        weights = fit([row for row in rows if fold_of[row[0]] != fold])
        for run, x, right in rows:
            if fold_of[run] == fold:
                p = probability(weights, x)
                bands[min(9, int(10 * p))].append((p, right))
    print(f"{len(rows)} findings of {len(runs)} runs")
    for name, weight in zip(NAMES, fit(rows)):
        print(f"{name:14} {weight:7.2f}")
    print("confidence  findings  mean confidence  right (ten-fold cross-validation)")
    for band, of in sorted(bands.items()):
        print(f"{10 * band:3}-{10 * band + 10:3} %  {len(of):8}  {100 * sum(p for p, _ in of) / len(of):13.0f} %  {100 * sum(y for _, y in of) / len(of):4.0f} %")
    print(f"rivals of wrong findings: {rivals[0]} of {rivals[1]} right: {(rivals[0] + 1) / (rivals[1] + 2):.2f}")


if __name__ == "__main__":
    main()
