#!/usr/bin/env python3
"""Writes a log for nldiag --follow: a service of two programs, whose load follows the time of day, with at most one fault.

    tests/diagnosis/follow_load.py --days 7 --rate 2 --seed 1 | nldiag --follow
    tests/diagnosis/follow_load.py --seconds 60 --rate 62500 --fault 30 --kind lock --seed 1 | nldiag --follow    # 100,000 records/s

The log begins at midnight, when the load is a fifth of the rate. Most requests have eight records. The durations are log-normal
(sigma 0.4) and up to 30 % longer under load. One request of 1,000 takes ten times as long. Query runs on three hosts in turn. It has
the fault between --fault and --end (seconds).
"""
import argparse
import heapq
import math
import random
import sys
import time

START = 1_767_225_600  # 2026-01-01
# Each fault with the cause that names it.
KINDS = {
    "slow": "slower",  # all visits take four times as long
    "value": "field",  # visits with KIND=b take eight times as long
    "host": "peer",  # visits on one host take eight times as long
    "lock": "lock",  # only one visit at a time; the visits need 105 % of the time
    "timeout": "timeout",  # one visit of 20 waits for 300 ms
    "pause": "pause",  # the program stops for 200 ms in each 700 ms
    "calls": "calls",  # one request of ten makes 30 calls
    "poll": "timer",  # visits end at multiples of 60 ms
    "failures": "failures",  # one request of five fails
}
DB_HOSTS, SLOW_HOST = ("b1", "b2", "b3"), "b2"


def day_load(at):
    """Returns the load at a time of day: 0.2 to 1."""
    return 0.6 - 0.4 * math.cos(2 * math.pi * (at % 86400) / 86400)


class Query:
    """The durations and results of visits to Query during a fault."""

    def __init__(self, kind, rate, seed):
        self.kind, self.rate, self.free, self.chance = kind, rate, 0.0, random.Random(f"fault {seed}")

    def awake(self, at):
        """Converts a time of a program without pauses to the time at which the program with pauses does the same."""
        return math.floor(at / 0.7) * 0.7 + 0.2 if self.kind == "pause" and at % 0.7 < 0.2 else at

    def took(self, begin, usual, number, host):
        """Returns the duration of a visit that usually takes `usual` seconds."""
        kind = self.kind
        if kind == "slow":
            return 4 * usual
        if (kind == "value" and number % 2) or (kind == "host" and host == SLOW_HOST):
            return 8 * usual
        if kind == "lock":
            self.free = max(begin, self.free) + 1.05 / (self.rate * day_load(begin))
            return self.free - begin + usual / 10
        if kind == "timeout" and self.chance.random() < 0.05:
            return usual + 0.3
        if kind == "pause":
            return self.awake(begin + usual) - begin
        if kind == "poll":
            return (math.floor((begin + usual) / 0.06) + 1) * 0.06 - begin
        return usual

    def calls(self, number):
        return 30 if self.kind == "calls" and number % 10 == 3 else 1

    def fails(self, number):
        return self.kind == "failures" and number % 5 == 2


def records(seconds, rate, seed, fault=None, end=1e18, kind="slow"):
    """Yields (time, text) in the order of time. The text does not contain DATE."""
    chance, pending, at, number = random.Random(seed), [], 0.0, 0
    web, faulty, healthy = "HOST=a PROG=web LVL=Usage", Query(kind, rate, seed), Query(None, rate, seed)
    normal, uniform, exponential, push = chance.gauss, chance.random, chance.expovariate, heapq.heappush
    while at < seconds:
        load = day_load(at)
        at += exponential(rate * load)
        number += 1
        unit = 0.005 * (1 + 0.3 * load) * (10 if uniform() < 0.001 else 1)
        t, spans = at, 0
        query = faulty if fault is not None and fault <= at < end else healthy
        status = " STATUS=error" if query.fails(number) else ""
        root = f"TRACE.ID={number} SPAN.ID={number}.0"
        push(pending, (t, f"{web} NL.EVNT=Handle.start {root} KIND={'ab'[number % 2]}"))
        for name, part, calls in ("Parse", 1, 1), ("Query", 2, query.calls(number)), ("Render", 1, 1):
            for _ in range(calls):
                spans += 1
                t += 0.0002 * (0.5 + uniform())
                host = DB_HOSTS[number % 3]
                t = query.awake(t) if name == "Query" else t
                where = f"HOST={host} PROG=db LVL=Usage" if name == "Query" else web
                ids = f"TRACE.ID={number} SPAN.ID={number}.{spans} PARENT.ID={number}.0"
                push(pending, (t, f"{where} NL.EVNT={name}.start {ids}"))
                usual = unit * part * math.exp(normal(0, 0.4))
                t += query.took(t, usual, number, host) if name == "Query" else usual
                push(pending, (t, f"{where} NL.EVNT={name}.end {ids}{status if name == 'Query' else ''}"))
        t += 0.0002
        push(pending, (t, f"{web} NL.EVNT=Handle.end {root}{status}"))
        while pending and pending[0][0] <= at:
            yield heapq.heappop(pending)
    while pending:
        yield heapq.heappop(pending)


def write(out, seconds, rate, seed, fault=None, end=1e18, kind="slow"):
    second, text = None, ""
    for at, rest in records(seconds, rate, seed, fault, end, kind):
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
    parser.add_argument("--kind", choices=KINDS, default="slow", help="the fault (default slow)")
    a = parser.parse_args()
    write(sys.stdout, a.days * 86400 + a.seconds, a.rate, a.seed, a.fault, a.end, a.kind)


if __name__ == "__main__":
    main()
