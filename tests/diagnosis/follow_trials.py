#!/usr/bin/env python3
"""Measures nldiag --follow: follow_trials.py --nldiag PROGRAM (--weeks N | --rate RATE) [--seed SEED]

With --weeks, makes N simulated weeks of healthy load, with 2 requests/s at full load, and counts the alerts. With --rate, makes a
log for each kind of fault with RATE records/s, and prints the first alert, and the time from the fault to the alert, according to
the records. Also prints nldiag's processor time and its largest memory. A program that needs less processor time than the log lasts
can follow such a log on one core.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import subprocess
import sys
import threading

import follow_load
import score

FAULT, SECONDS, WITHIN = 30, 44, 10  # seconds
RECORDS = 8 * follow_load.day_load(0)  # number of records per second at midnight if the rate is 1
PLACES = {"failures": "failed requests", "pause": "Parse.end of web -> Query.start of db"}  # other kinds: Query of db


def follow(nldiag, **load):
    """Returns the alerts, nldiag's processor time in seconds, and its largest memory in bytes."""
    process = subprocess.Popen([nldiag, "--follow", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    follow_load.write(process.stdin, **load)
    process.stdin.close()
    reader.join()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        sys.exit(f"nldiag ended with status {process.returncode}")
    return [json.loads(line) for line in lines], usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def week(task):
    arguments, seed = task
    return seed, *follow(arguments.nldiag, seconds=7 * 86400, rate=2, seed=seed)


def fault(task):
    arguments, kind = task
    return kind, *follow(arguments.nldiag, seconds=SECONDS, rate=arguments.rate / RECORDS, seed=arguments.seed, fault=FAULT, kind=kind)


def delay(alert):
    """Returns the time from the fault to the alert in seconds."""
    at = datetime.datetime.fromisoformat(alert["time"].replace("Z", "+00:00")).timestamp()
    return at - follow_load.START - FAULT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nldiag", required=True)
    parser.add_argument("--weeks", type=int, default=0, help="healthy weeks")
    parser.add_argument("--rate", type=float, default=0, help="records/s of the logs with a fault")
    parser.add_argument("--kind", action="append", choices=follow_load.KINDS, help="only this kind of fault")
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    with concurrent.futures.ThreadPoolExecutor(1) if arguments.jobs == 1 else concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        alarms = 0
        for seed, alerts, seconds, memory in pool.map(week, [(arguments, arguments.seed + i) for i in range(arguments.weeks)]):
            begins = [a for a in alerts if a["alert"] == "begin"]
            alarms += len(begins)
            print(f"week of seed {seed}: {len(begins)} alerts; {seconds:.1f} s of processor time, {memory / 1e6:.0f} MB", flush=True)
            for a in begins:
                print(f"    {a['time']} {a['cause']}: {a['place']}")
        if arguments.weeks:
            print(f"false alarms: {alarms} in {arguments.weeks} weeks")
        kinds, right = (arguments.kind or list(follow_load.KINDS)) if arguments.rate else [], 0
        for kind, alerts, seconds, memory in pool.map(fault, [(arguments, kind) for kind in kinds]):
            first = alerts[0] if alerts else None
            good = first is not None and first["cause"] == follow_load.KINDS[kind] and first["place"] == PLACES.get(kind, "Query of db") and 0 <= delay(first) <= WITHIN
            right += good
            text = f"{first['cause']} at {first['place']}, {delay(first):.1f} s after the fault" if first else "no alert"
            print(f"{kind:9} {'right' if good else 'WRONG'}: {text}; {len(alerts)} alerts; "
                  f"{seconds:.1f} s of processor time for {SECONDS} s, {memory / 1e6:.0f} MB", flush=True)
        if kinds:
            print(f"right place and cause within {WITHIN} s: {score.share(right, len(kinds))}")


if __name__ == "__main__":
    main()
