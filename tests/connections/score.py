#!/usr/bin/env python3
"""The score of nlstat --connections: transfers over emulated paths whose limits are known.

    sudo tests/connections/score.py --build build/dev --count 200 --seed N [--jobs 3] [--keep DIRECTORY]
    sudo tests/connections/score.py --build build/dev --gains --seed N

Each scenario has parameters from the seed and one dominant limit, or phases. The truth does not use tcp_info:
- The parameters leave a factor of at least 2.5 between the dominant limit and the next. The dominant limit applies
  to the transfer after the start.
- The start is the number of round trips in which a window that doubles reaches the limit.
- The program measures how long it takes to connect, and knows when it had no unsent data (SIOCOUTQNSD).
A transfer that only the rate of the path limits is healthy. Seeds from 1000 are for tests, others for development.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import random
import sys

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--build", type=pathlib.Path, required=True)
arguments.add_argument("--count", type=int, default=24)
arguments.add_argument("--seed", type=int, required=True)
arguments.add_argument("--jobs", type=int, default=3)
arguments.add_argument("--kind", help="only scenarios of this kind")
arguments.add_argument("--keep", type=pathlib.Path, help="keep the logs in this directory")
arguments.add_argument("--algorithm", default="reno", help="congestion control")
arguments.add_argument("--again", action="store_true", help="judge the logs in --keep again, without new transfers")
arguments.add_argument("--gains", action="store_true", help="compare predicted gains with the gains after the advice was followed")

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MSS = 1448
INITIAL = 10 * MSS  # initial window
PATH = {"path rate", "path rate, with a queue"}
TOLERANCE = 0.05
ATTEMPTS = 3  # on a busy machine, the emulated path delivers packets late, so that delays vary without a queue


def rounds(window):
    """Returns the number of round trips in which a window that doubles grows from its initial value to `window` bytes."""
    return max(0, math.log2(window / INITIAL))


def path_options(rate, rtt, *more):
    return ["--rate", f"{rate / 1e6:.3f}mbit", "--delay", f"{rtt * 500:.3f}ms", *more]


def after_start(start, cause, seconds):
    share = min(1, start / seconds)
    return {"slow start": share, cause: 1 - share}


def path(r, name):
    rate, rtt = r.uniform(3e6, 40e6), r.uniform(0.002, 0.06)
    product = rate / 8 * rtt
    buffer = max(30000, product * r.uniform(0.7, 1.5))
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", str(int(buffer))), seconds=6)
    return scenario, lambda log: after_start(rounds(product) * rtt, "path", log["seconds"])


def bloat(r, name):
    rate, rtt = r.uniform(3e6, 10e6), r.uniform(0.005, 0.03)
    product = rate / 8 * rtt
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", str(int(max(60000, product * r.uniform(5, 10))))), seconds=6)
    return scenario, lambda log: after_start(rounds(product) * rtt, "path rate, with a queue", log["seconds"])


def receive_buffer(r, name):
    size, rtt = int(2 ** r.uniform(14, 17)), r.uniform(0.02, 0.2)
    rate = max(5e6, 5 * size * 8 / rtt)
    scenario = paths.Scenario(name, path_options(rate, rtt), receive=(size, 1 << 20, 0), seconds=max(6, 30 * rtt))
    return scenario, lambda log: after_start(rounds(size) * rtt, "receive buffer", log["seconds"])


def send_buffer(r, name):
    size, rtt = int(2 ** r.uniform(14, 17)), r.uniform(0.02, 0.2)
    rate = max(5e6, 5 * size * 8 / rtt)
    scenario = paths.Scenario(name, path_options(rate, rtt), send=(size, 65536, 0, 0), seconds=max(6, 30 * rtt))
    return scenario, lambda log: after_start(rounds(size) * rtt, "send buffer", log["seconds"])


def reader(r, name):
    rtt, rate, size = r.uniform(0.005, 0.05), r.uniform(20e6, 40e6), int(2 ** r.uniform(15, 17))
    reads = min(rate / 8, size / rtt) * r.uniform(0.1, 0.35)  # bytes/s
    pause = r.uniform(0.005, 0.03)
    scenario = paths.Scenario(name, path_options(rate, rtt), receive=(size, max(1000, int(reads * pause)), pause), seconds=6)
    return scenario, lambda log: after_start(rounds(size) * rtt, "receiving program", log["seconds"])


def writer(r, name):
    rtt, rate = r.uniform(0.002, 0.15), r.uniform(10e6, 40e6)
    chunk = r.uniform(1000, INITIAL)
    pause = max(r.uniform(0.02, 0.2), chunk * 8 / rate * 4)
    scenario = paths.Scenario(name, path_options(rate, rtt), send=(0, int(chunk), pause, 0), seconds=6)
    return scenario, lambda log: {"sender idle": 1}


def bursts(r, name):
    rtt, rate = r.uniform(0.002, 0.03), r.uniform(5e6, 15e6)
    burst, pause = rate / 8 * r.uniform(0.3, 1), r.uniform(0.5, 2)
    product = rate / 8 * rtt
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", str(int(max(30000, product)))), send=(0, int(burst), pause, 0), seconds=8)

    def truth(log):
        idle, start = log["idle"] / log["seconds"], rounds(product) * rtt / log["seconds"]
        return {"sender idle": idle, "slow start": start, "path": 1 - idle - start}
    return scenario, truth


def loss(r, name):
    rtt, share = r.uniform(0.02, 0.1), r.uniform(0.005, 0.03)
    rate = max(10e6, 4 * MSS * 8 / rtt * 1.22 / math.sqrt(share))
    scenario = paths.Scenario(name, path_options(rate, rtt, "--loss", f"{share:.4f}", "--seed", str(r.randrange(1000000))), seconds=max(6, 80 * rtt))
    return scenario, lambda log: after_start(rounds(MSS / share) * rtt, "loss", log["seconds"])


def policed(r, name):
    rtt = r.uniform(0.01, 0.03)
    rate = MSS * 8 / rtt * r.uniform(8, 20)
    scenario = paths.Scenario(name, path_options(rate, rtt, "--policed", "--buffer", str(int(r.uniform(6000, 15000)))), seconds=8)
    return scenario, lambda log: after_start(rounds(rate / 8 * rtt) * rtt, "policed rate", log["seconds"])


def start(r, name):
    rtt, rate = r.uniform(0.08, 0.2), 50e6
    total = int(rate / 8 * rtt * r.uniform(0.3, 0.8))
    scenario = paths.Scenario(name, path_options(rate, rtt), send=(0, total, 0, total), seconds=30)

    def truth(log):
        idle = log["idle"] / log["seconds"]  # the window stays below the bandwidth-delay product, so the path is never the limit
        return {"sender idle": idle, "slow start": 1 - idle}
    return scenario, truth


def back(r, name):
    rtt, rate = r.uniform(0.01, 0.06), r.uniform(20e6, 40e6)
    back_rate = rate / 2 / MSS * 52 * r.uniform(0.1, 0.3)
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", "1m", "--back-rate", f"{back_rate / 1e3:.3f}kbit"), seconds=8)
    return scenario, lambda log: after_start(rounds(back_rate / 52 * 2 * MSS / 8 * rtt) * rtt, "reverse path", log["seconds"])


def lossy(r, name):
    """Random losses alone would permit at least 2.5 times the rate of the path."""
    rtt, share = r.uniform(0.005, 0.05), r.uniform(0.0002, 0.005)
    rate = MSS * 8 / rtt * 1.22 / math.sqrt(share) / r.uniform(2.5, 4)
    product = rate / 8 * rtt
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", str(int(max(30000, product * r.uniform(0.7, 1.5)))), "--loss", f"{share:.5f}", "--seed",
                                                 str(r.randrange(1000000))), seconds=8)
    return scenario, lambda log: after_start(rounds(product) * rtt, "path", log["seconds"])


def shared(r, name):
    """Several connections share the rate of the path."""
    rate, rtt, count = r.uniform(10e6, 40e6), r.uniform(0.02, 0.06), r.randrange(2, 5)
    product = rate / 8 * rtt
    scenario = paths.Scenario(name, path_options(rate, rtt, "--buffer", str(int(max(60000, product * r.uniform(0.7, 1.5))))), seconds=8, connections=count)
    return scenario, lambda log: after_start(rounds(product / count) * rtt, "path", log["seconds"])


KINDS = [path, bloat, receive_buffer, send_buffer, reader, writer, bursts, loss, policed, start, back]
MORE_KINDS = [lossy, shared]  # only with --kind


def measured_shares(connection, truth):
    """Returns the reported shares. Adds up the two causes of a healthy path, unless the truth distinguishes them."""
    shares = collections.defaultdict(float)
    for cause in connection["causes"]:
        name = cause["cause"]
        shares["path" if name in PATH and name not in truth else name] += cause["share"]
    return shares


def transfer(scenario, keep, again=False):
    """Returns the reports on the transfers, and the first sender's own times."""
    case = support.Case()
    case.setUp()
    try:
        log = (keep or case.scratch) / f"{scenario.name}.log"
        own = log.with_suffix(".times")
        for _ in range(0 if again else ATTEMPTS):
            world = paths.World(case, scenario)
            own_times = world.transfer(log)
            own_times["late"] = not world.end()
            own.write_text(json.dumps(own_times))
            if not own_times["late"]:
                break
        times = json.loads(own.read_text())
        result = case.run_program(support.program("nltools/nlstat"), "--connections", "--json", log)
        case.assertEqual(result.returncode, 0, result.stderr)
        connections = [c for c in json.loads(result.stdout) if c["connection"].endswith("> 10.77.0.2:7000")]
        case.assertEqual([c["sharing"] for c in connections], [scenario.connections - 1] * scenario.connections)
        return connections, times
    finally:
        case.doCleanups()


def judge(seed, number, kind, keep, again):
    scenario, find_truth = kind(random.Random(f"{seed} {number} {kind.__name__}"), f"s{number}")
    scenario.algorithm = options.algorithm
    connections, times = transfer(scenario, keep, again)
    truth = find_truth(times)
    truth["handshake"] = times["handshake"] / times["seconds"]
    main = max(truth, key=truth.get)
    truth[main] -= truth["handshake"]
    error, worst, connection, shares = -1, "", None, {}
    for c in connections:  # judges the worst report of the transfers
        of = measured_shares(c, truth)
        difference, cause = max((abs(of[c] - truth.get(c, 0)), c) for c in {*of, *truth})
        if difference > error:
            error, worst, connection, shares = difference, cause, c, of
    right = all(c["first"] == main or main == "path" and c["first"] in PATH for c in connections)
    return {"kind": kind.__name__, "number": number, "main": main, "first": connection["first"], "right": right, "error": error, "worst": worst, "late": times.get("late"),
            "truth": truth, "shares": dict(shares), "options": scenario.path, "send": scenario.send, "receive": scenario.receive}


def print_scores(results):
    def part(some, all_of):
        return f"{len(some) / len(all_of):.3f} ({len(some)} of {len(all_of)})" if all_of else "none"
    print("First cause:", part([r for r in results if r["right"]], results))
    print(f"All shares within {TOLERANCE * 100:.0f} points:", part([r for r in results if r["error"] <= TOLERANCE], results))
    shares = [abs(r["shares"].get(c, 0) - r["truth"].get(c, 0)) <= TOLERANCE for r in results for c in {*r["shares"], *r["truth"]}
              if r["shares"].get(c, 0) + r["truth"].get(c, 0) > 0]
    print("Single shares within it:", part([s for s in shares if s], shares))
    healthy = [r for r in results if r["kind"] in ("path", "bloat", "shared")]
    print("Healthy paths called faulty:", part([r for r in healthy if r["first"] not in PATH], healthy))
    print("Runs with more than 2 % late packets in each attempt:", sum(bool(r["late"]) for r in results))
    print("\nkind             runs  first  shares  median error  first causes")
    for kind in KINDS + MORE_KINDS:
        some = [r for r in results if r["kind"] == kind.__name__]
        if some:
            causes = collections.Counter(r["first"] for r in some)
            errors = sorted(r["error"] for r in some)
            print(f"{kind.__name__:15s} {len(some):5d} {sum(r['right'] for r in some):6d} {sum(r['error'] <= TOLERANCE for r in some):7d} "
                  f"{errors[len(errors) // 2]:13.3f}  " + ", ".join(f"{c} {n}" for c, n in causes.most_common()))


def print_gains(seed, jobs):
    """Follows the advice for three kinds of limits, and compares the gains."""
    r = random.Random(f"{seed} gains")
    pairs = []
    for number in range(4):
        size, rtt = int(2 ** r.uniform(14, 16.5)), r.uniform(0.02, 0.1)
        options = path_options(8 * size * 8 / rtt + 5e6, rtt)
        for kind, field in (("receive buffer", "receive"), ("send buffer", "send")):
            values = [((s, 1 << 20, 0) if field == "receive" else (s, 65536, 0, 0)) for s in (size, 2 * size)]
            pairs.append((kind, "gain_of_doubling", [paths.Scenario(f"g{number}{field[0]}{i}", options, seconds=6, **{field: v}) for i, v in enumerate(values)]))
        total, rtt = int(r.uniform(3e5, 6e5)), r.uniform(0.08, 0.15)
        pairs.append(("slow start", "gain_of_reuse", [paths.Scenario(f"g{number}u{i}", path_options(50e6, rtt), send=(0, total, 0, total), seconds=30,
                                                                     warm_up=i * 2000000) for i in range(2)]))
    print("first cause       advice for      predicted     after the fix")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for (kind, field, _), (before, after) in zip(pairs, pool.map(lambda pair: [transfer(s, None) for s in pair[2]], pairs)):
            before, after = (before[0][0], before[1]), (after[0][0], after[1])
            if field == "gain_of_reuse":
                gain = before[1]["seconds"] / after[1]["seconds"]
            else:
                gain = after[0]["bytes_per_second"] / before[0]["bytes_per_second"]
            prediction = f"{before[0].get(field, 1):.2f}" + (f" to {before[0].get(field + '_max', 1):.2f}" if field == "gain_of_reuse" else "")
            print(f"{before[0]['first']:17s} {kind:15s} {prediction:12s} {gain:14.2f}")


if __name__ == "__main__":
    options = arguments.parse_args()
    os.environ["NL_BUILD_DIR"], os.environ["NL_SOURCE_DIR"] = str(options.build.resolve()), str(SOURCE)
    sys.path.insert(0, str(SOURCE / "tests/program"))
    import paths
    import support
    if options.gains:
        print_gains(options.seed, options.jobs)
        sys.exit()
    kinds = [k for k in KINDS + MORE_KINDS if options.kind == k.__name__] if options.kind else KINDS[:]
    if options.algorithm == "bbr" and loss in kinds:
        kinds.remove(loss)  # BBR fills the path in spite of random losses
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
        scores = list(workers.map(lambda n: judge(options.seed, n, kinds[n % len(kinds)], options.keep, options.again), range(options.count)))
    if options.keep:
        (options.keep / "results.json").write_text(json.dumps(scores, indent=1))
    print_scores(scores)
