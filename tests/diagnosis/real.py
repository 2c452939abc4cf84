#!/usr/bin/env python3
"""Measures nldiag on real processes: how often it names the fault, and how often it reports a fault in a healthy run.

    tests/diagnosis/real.py --build build/dev --seeds dev --runs 20

Three of four runs have a fault; kinds and programs change from run to run. Only root may make network namespaces and
control groups. The exit status is 1 if a run failed or the score is below the target. $NLDIAG names the nldiag to measure
(default: nldiag of the build directory).
"""
import argparse
import collections
import json
import os
import pathlib
import random
import signal
import sys
import tempfile

sys.dont_write_bytecode = True

import real_faults  # noqa: E402
import real_programs  # noqa: E402
import score  # noqa: E402

SEEDS = {"dev": 1, "test": 1_000_001}  # the first seeds


def plan_runs(options):
    """Yields program, kind and seed of each run. A kind occurs again only after all other kinds."""
    first = SEEDS[options.seeds]
    pairs = [(program, kind) for program in options.programs for kind in real_faults.FAULTS[program] if not options.faults or kind in options.faults]
    order, healthy = random.Random(f"order {first}"), 0
    order.shuffle(pairs)
    for number in range(options.skip + options.runs):
        if (number % 4 == 3 and not options.faults) or not pairs:
            program, kind = options.programs[healthy % len(options.programs)], real_faults.HEALTHY
            healthy += 1
        else:
            program, kind = pairs[(number - healthy) % len(pairs)]
        if number >= options.skip:
            yield program, kind, first + number


def is_right(cause, truth, mechanism=True):
    return any(score.is_right(cause, {**truth, "host": host, "program": program, "span": span}, mechanism) for host, program, span in truth["places"])


def judge(options, truth, log):
    found, result = score.diagnose(options, log)
    causes = found["causes"][:4]
    return {"kind": truth["kind"], "truth": truth, "causes": causes, "verdict": found.get("verdict"), "status": result.returncode,
            "right": [is_right(c, truth) for c in causes[:3]], "placed": [is_right(c, truth, False) for c in causes[:3]]}


def describe(result):
    causes = result["causes"]
    said = f"[{causes[0]['cause']}] {causes[0]['title']}" if causes else result["verdict"]
    if result["kind"] == real_faults.HEALTHY:
        return f"{'WRONG' if causes else 'right':7} {said}"
    right = result["right"]
    word = "right" if right[:1] == [True] else f"top-{right.index(True) + 1}" if any(right) else "place" if result["placed"][:1] == [True] else "WRONG"
    return f"{word:7} {said}"


def print_confusion(results):
    """The rows are the true kinds, and the columns are the first cause or the verdict."""
    cells, columns = collections.Counter(), collections.Counter()
    for r in results:
        said = r["causes"][0]["cause"] if r["causes"] else str(r["verdict"]).split(":")[0]
        cells[r["kind"], said] += 1
        columns[said] += 1
    names = [name for name, _ in columns.most_common()]
    print("\n" + " " * 15 + " ".join(f"{name[:9]:>9}" for name in names))
    for kind in sorted({r["kind"] for r in results}):
        print(f"{kind:15}" + " ".join(f"{cells[kind, name] or '.':>9}" for name in names))


def run_all(options, directory):
    programs, results = {}, []
    for program, kind, seed in plan_runs(options):
        name = f"{program}-{kind}-{seed}"
        log, about = directory / f"{name}.log", directory / f"{name}.json"
        if options.again:
            if not about.exists():
                continue
            truth = json.loads(about.read_text())
        else:
            case = real_faults.make_case(program, kind, seed)
            if program not in programs:
                programs[program] = real_programs.PROGRAMS[program](options.build, options.seconds)
            try:
                programs[program].run(case, log)
            except real_programs.worlds.Failure as problem:
                print(f"{name}: {problem}", file=sys.stderr)
                return results, False
            truth = case.truth()
            about.write_text(json.dumps(truth))
        results.append(judge(options, truth, log))
        print(f"{name:34} {describe(results[-1])}\n{'':34} true: {truth['what']}", flush=True)
    return results, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--seeds", choices=SEEDS, default="dev", help="test: only once, when nothing changes any more")
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--skip", type=int, default=0, help="begin with a later run")
    parser.add_argument("--seconds", type=float, default=6, help="length of a run (default %(default)s)")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=list(real_faults.FAULTS))
    parser.add_argument("--faults", type=lambda text: text.split(","), help="only these kinds, and no healthy runs; healthy: only healthy runs")
    parser.add_argument("--logs", type=pathlib.Path, help="keep the logs here")
    parser.add_argument("--details", metavar="FILE", help="write each run's findings as JSON, for calibrate.py")
    parser.add_argument("--target", type=float, default=0, help="exit status 1 if Top-1 is lower")
    parser.add_argument("--again", action="store_true", help="judge the logs in --logs again, instead of running programs")
    options = parser.parse_args()
    options.nldiag = os.environ.get("NLDIAG", options.build / "nltools/nldiag")
    if not options.again and os.geteuid() != 0:
        print("real.py: only root may make network namespaces and control groups", file=sys.stderr)
        return 1
    for number in signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # removes the hosts
    real_programs.worlds.sweep_leftovers()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.logs or pathlib.Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        results, good = run_all(options, directory)
    kinds = sorted({kind for program in options.programs for kind in real_faults.FAULTS[program]})
    score.report(results, kinds, [real_faults.HEALTHY])
    print_confusion(results)
    if options.details:
        pathlib.Path(options.details).write_text("".join(json.dumps(r) + "\n" for r in results), encoding="utf-8")
    faults = [r["right"][:1] == [True] for r in results if r["kind"] != real_faults.HEALTHY]
    return 0 if good and sum(faults) >= options.target * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
