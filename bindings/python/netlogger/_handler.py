"""A handler of the standard library's logging."""
from __future__ import annotations

import logging
import os
import traceback
from typing import Dict, Union

from ._log import Level, Log

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _level_of(number: int) -> Level:
    if number >= logging.CRITICAL:
        return Level.ALERT
    if number >= logging.ERROR:
        return Level.ERROR
    if number >= logging.WARNING:
        return Level.WARNING
    return Level.USAGE if number >= logging.INFO else Level.DEBUG


class Handler(logging.Handler):
    """A logging handler that writes to a log, or to a destination URL as the program prog.

        logging.getLogger().addHandler(netlogger.Handler("x-netlog://localhost", "testprog"))
        logging.getLogger("disk").info("read %d blocks", 7, extra={"BLOCKS": 7})

    The event's name is the member "event" of extra, or otherwise the logger's name. The fields are MSG, the other members of
    extra, and EXC, the traceback of an exception. CRITICAL becomes Alert, and INFO becomes Usage. If the handler was created
    with a log, closing the handler does not close the log.
    """

    def __init__(
        self, log: Union[Log, str, os.PathLike[str], None] = None, prog: str = "python", level: int = logging.NOTSET
    ) -> None:
        super().__init__(level)
        self._own = not isinstance(log, Log)
        self._log: Log = log if isinstance(log, Log) else Log(prog, log)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            fields: Dict[str, object] = {"MSG": record.getMessage()}
            event = record.name
            for name, value in vars(record).items():
                if name == "event":
                    event = str(value)
                elif name not in _USUAL:
                    fields[name] = value
            if record.exc_info and record.exc_info[0] is not None:
                fields["EXC"] = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            self._log.log(_level_of(record.levelno), event, fields)
        except Exception:
            self.handleError(record)

    def flush(self) -> None:
        if not self._log.closed:
            self._log.flush()

    def close(self) -> None:
        if self._own and not self._log.closed:
            self._log.close()
        super().close()
