#!/usr/bin/env python3
"""Writes a log for nldiag --follow: a service of two programs, whose load follows the time of day, with at most one fault.

    tests/diagnosis/follow_load.py --days 7 --rate 2 --seed 1 | nldiag --follow
    tests/diagnosis/follow_load.py --seconds 60 --rate 12500 --fault 30 --seed 1 | nldiag --follow    # 100,000 records/s

Each request has eight records. The durations are log-normal (sigma 0.4) and up to 30 % longer under load. One request of
1,000 takes ten times as long. Between --fault and --end (seconds), Query takes four times as long.
"""
import argparse
import heapq
import math
import random
import sys
import time

START = 1_767_225_600  # 2026-01-01


def day_load(at):
    """Returns the load at a time of day: 0.2 to 1."""
    return 0.6 - 0.4 * math.cos(2 * math.pi * (at % 86400) / 86400)


def records(seconds, rate, seed, fault=None, end=1e18):
    """Yields (time, text) in the order of time. Text is without DATE."""
    chance, pending, at, number = random.Random(seed), [], 0.0, 0
    web, db = "HOST=a PROG=web LVL=Usage", "HOST=b PROG=db LVL=Usage"
    normal, uniform, exponential = chance.gauss, chance.random, chance.expovariate
    while at < seconds:
        load = day_load(at)
        at += exponential(rate * load)
        number += 1
        unit = 0.005 * (1 + 0.3 * load) * (10 if uniform() < 0.001 else 1)
        t = at
        ids = [f"TRACE.ID={number} SPAN.ID={number}.{i}" + (f" PARENT.ID={number}.0" if i else "") for i in range(4)]
        heapq.heappush(pending, (t, f"{web} NL.EVNT=Handle.start {ids[0]} KIND={'ab'[number % 2]}"))
        for i, (name, where, part) in enumerate((("Parse", web, 1), ("Query", db, 2), ("Render", web, 1)), 1):
            t += 0.0002 * (0.5 + uniform())
            heapq.heappush(pending, (t, f"{where} NL.EVNT={name}.start {ids[i]}"))
            slow = 4 if name == "Query" and fault is not None and fault <= at < end else 1
            t += unit * part * slow * math.exp(normal(0, 0.4))
            heapq.heappush(pending, (t, f"{where} NL.EVNT={name}.end {ids[i]}"))
        t += 0.0002
        heapq.heappush(pending, (t, f"{web} NL.EVNT=Handle.end {ids[0]}"))
        while pending and pending[0][0] <= at:
            yield heapq.heappop(pending)
    while pending:
        yield heapq.heappop(pending)


def write(out, seconds, rate, seed, fault=None, end=1e18):
    second, text = None, ""
    for at, rest in records(seconds, rate, seed, fault, end):
        whole = int(at)
        if whole != second:
            second, text = whole, time.strftime("%Y%m%d%H%M%S", time.gmtime(START + whole))
        out.write(f"DATE={text}.{int((at - whole) * 1e6):06d} {rest}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--rate", type=float, default=2, help="requests a second at full load")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault", type=float, help="seconds until the fault")
    parser.add_argument("--end", type=float, default=1e18, help="seconds until its end")
    a = parser.parse_args()
    write(sys.stdout, a.days * 86400 + a.seconds, a.rate, a.seed, a.fault, a.end)


if __name__ == "__main__":
    main()
