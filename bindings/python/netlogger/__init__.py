"""NetLogger: timestamped events from every part of a distributed program.

    import netlogger

    with netlogger.open("testprog", "x-netlog://dolly.lbl.gov:14830") as log:
        log.event("WriteData", **{"SEND.SZ": size})

    for record in netlogger.read("/tmp/a.log", where='NL.EVNT == "WriteData"'):
        print(record.time, record["SEND.SZ"])
    frame = netlogger.read("/tmp/a.log").to_pandas()    # or to_arrow(), where pandas or pyarrow is installed

An event is put into memory, typed, and a thread of the library writes and sends it; a call waits for nothing unless
the destination is so slow that this memory is full. Then the interpreter's lock is let go, as it is by open, flush,
close and readers.

Values are bool, float (nan and inf too), int, str, bytes; what they become:

    int                beyond 64 bits the text of its digits, in hexadecimal where Python prints no decimal ones
    str                UTF-8; surrogate escapes, as in names of files, become the bytes that they stand for
    bytes and alike    these very bytes; a reader gives a str, with surrogate escapes for what is no UTF-8
    None               an empty text
    with __index__     an int (numpy's integers)
    any other          str() of it

Field names are letters, digits, '.', '_' and '-', the first a letter or '_'; any other character becomes '_'. Names
that are constants in the program are fastest.

Threads may share a log. After a fork, multiprocessing's too, a child goes on with its parent's logs, as a stream of its
own. What a program logged is sent when it ends, though it closed nothing.
"""
from __future__ import annotations

from ._core import Error, memory_free, memory_read
from ._handler import Handler
from ._log import Level, Log, Span, open
from ._record import Reader, Record, read

__all__ = ["Error", "Handler", "Level", "Log", "Reader", "Record", "Span", "memory_free", "memory_read", "open", "read"]
__version__ = "1.0.0"
