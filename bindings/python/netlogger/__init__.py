"""NetLogger: timestamped events from all parts of a distributed program.

    import netlogger

    with netlogger.open("testprog", "x-netlog://dolly.lbl.gov:14830") as log:
        log.event("WriteData", **{"SEND.SZ": size})

    for record in netlogger.read("/tmp/a.log", where='NL.EVNT == "WriteData"'):
        print(record.time, record["SEND.SZ"])
    frame = netlogger.read("/tmp/a.log").to_pandas()    # or to_arrow(); requires pandas or pyarrow

A call copies the event to memory; a thread of the library sends the event. A call waits only if this memory is full because the
destination is slow. A call that may wait releases the interpreter lock; so do open, flush, close and readers.

A collector that is not running is not an error: the library keeps the events, prints one line on standard error, and tries
again. Logging and closing never raise exceptions because of the destination or of values. NETLOGGER_QUIET=1 suppresses
the line.

Values are logged with their types:

    bool, int, float   as they are; an int of more than 64 bits becomes text
    str                UTF-8; surrogate escapes become the bytes that they stand for
    bytes and similar  the bytes; a reader returns a str, with surrogate escapes for bytes that are not UTF-8
    None               empty text
    with __index__     an int (numpy's integers)
    others             their str()

Names of fields consist of letters, digits, '.', '_' and '-', and begin with a letter or '_'; other characters become '_'.
Constant names are fastest.

Threads may share a log. After fork(), a child may continue to use its parent's logs; its events are a separate stream.
At the end of the program, the library sends the events of all open logs.
"""
from __future__ import annotations

from ._core import Error, memory_free, memory_read, tracestate_join
from ._handler import Handler
from ._log import Context, Level, Log, Span, open
from ._record import Reader, Record, read

__all__ = [
    "Context", "Error", "Handler", "Level", "Log", "Reader", "Record", "Span", "memory_free", "memory_read", "open", "read",
    "tracestate_join",
]
__version__ = "1.0.0"
