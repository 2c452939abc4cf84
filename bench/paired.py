"""What the comparisons in bench/ share: the order in which sides take their turns, ports, and the rows of bench/run's table.

A program under bench/ imports it by

    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    import paired

runs its sides round by round in the order of in_turn, and hands what it measured to note, which does nothing unless
bench/run asked for it.
"""
import json
import os
import pathlib
import socket


def in_turn(sides, turn):
    """The sides of a round, each time beginning with another one: none is always the first, or always after the same one."""
    sides = list(sides)
    at = turn % len(sides) if sides else 0
    return sides[at:] + sides[:at]


def free_port():
    """A TCP port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def note(comparison, unit, measured, ours, peers=None, more_is_better=False):
    """
    Adds a comparison to the table. measured is {side: values}, a value a round, in the order of the rounds, so that those of
    one round can be paired; where only a summary is known, {side: (median, least, most)} with tuples. ours is the side
    whose ratio to each of the peers (all others) is told, as how many times as good ours is.
    """
    if "NL_BENCH_ROWS" not in os.environ or ours not in measured:
        return
    row = {"comparison": comparison, "unit": unit, "ours": ours, "more_is_better": more_is_better,
           "peers": [side for side in (measured if peers is None else peers) if side != ours and side in measured],
           "summarized": isinstance(measured[ours], tuple), "measured": measured}
    with open(os.environ["NL_BENCH_ROWS"], "a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def inside(build):
    """Compiler options for a program that uses core/ directly: HEADERS of the source tree and the static libraries of BUILD."""
    source = pathlib.Path(__file__).resolve().parent.parent
    return [f"-I{source}/libnetlogger/include", f"-I{source}/core", build / "libnetlogger/.libs/libproducer.a",
            build / "core/.libs/libcore.a", "-lzstd", "-lssl", "-lcrypto", "-lpthread"]
