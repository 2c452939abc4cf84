"""Functions for the comparisons in bench/: the order in which sides take turns, ports, and the rows of bench/run's table.

A program under bench/ imports this module with

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import paired

The program runs its sides round by round in the order of in_turn, and passes its results to note. If bench/run has not started
the program, note does nothing.
"""
import json
import os
import pathlib
import socket


def in_turn(sides, turn):
    """Returns the sides in the order of a round. Each round begins with the next side."""
    sides = list(sides)
    at = turn % len(sides) if sides else 0
    return sides[at:] + sides[:at]


def free_port():
    """Returns a TCP port of 127.0.0.1 on which no program listens now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def note(comparison, unit, measured, ours, peers=None, more_is_better=False):
    """
    Adds a comparison to the table. measured is {side: values} with one value per round, in the order of the rounds, so that
    values of the same round can be compared. If only a summary is known, it is {side: (median, minimum, maximum)} with tuples.
    The table contains the ratio of the side `ours` to each other side, which is higher if `ours` is better.
    """
    if "NL_BENCH_ROWS" not in os.environ or ours not in measured:
        return
    row = {"comparison": comparison, "unit": unit, "ours": ours, "more_is_better": more_is_better,
           "peers": [side for side in (measured if peers is None else peers) if side != ours and side in measured],
           "summarized": isinstance(measured[ours], tuple), "measured": measured}
    with open(os.environ["NL_BENCH_ROWS"], "a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def inside(build):
    """Returns compiler options for a program that uses core/ directly: headers in the source tree, libraries in BUILD."""
    source = pathlib.Path(__file__).resolve().parent.parent
    return [f"-I{source}/libnetlogger/include", f"-I{source}/core", build / "libnetlogger/.libs/libproducer.a",
            build / "core/.libs/libcore.a", "-lzstd", "-lssl", "-lcrypto", "-lpthread"]
