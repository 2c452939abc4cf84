"""Loggers of NetLogger 4 (2008 to 2012), for programs that import netlogger.nllog. New programs use netlogger.Handler.

    log = nllog.get_logger(__file__)
    log.info("my.event", value=88.7, units="seconds")

The loggers belong to the standard library's logging. Their messages are lines in the format BP (see nlapi).
"""
from __future__ import annotations

import logging
import os
import traceback
from typing import Any, Optional, Type

from . import nlapi
from .nlapi import Level

TRACE = logging.DEBUG - 1
PROJECT_NAMESPACE = "netlogger"

_logger_class: Type[logging.Logger]


def setLoggerClass(clazz: Type[logging.Logger]) -> None:
    """Sets the class of new loggers."""
    global _logger_class
    _logger_class = clazz


set_logger_class = setLoggerClass


def _logger(name: str) -> logging.Logger:
    """Returns the logger "netlogger.NAME". If the name begins with ".", returns the logger with the rest of the name."""
    if not name:
        name = PROJECT_NAMESPACE
    elif name.startswith("."):
        name = name[1:]
    elif not name.startswith(PROJECT_NAMESPACE):
        name = f"{PROJECT_NAMESPACE}.{name}"
    usual = logging.getLoggerClass()
    logging.setLoggerClass(_logger_class)
    try:
        return logging.getLogger(name)
    finally:
        logging.setLoggerClass(usual)


def get_logger(filename: str) -> Any:
    """Returns the logger of a file, such as __file__. Its name is the path after a directory "netlogger" or "scripts"."""
    if filename.startswith("."):
        return _logger(filename)
    path = os.path.splitext(filename)[0] if filename.endswith((".py", ".pyc")) else filename
    names = [part for part in path.split("/") if part not in ("", ".")]
    for top in PROJECT_NAMESPACE, "scripts":
        if top in names:
            names = names[len(names) - names[::-1].index(top) :]
    return _logger(".".join(names))


def get_root_logger() -> Any:
    """Returns the parent of all these loggers."""
    return _logger("")


class DoesLogging:
    """A base class that sets the member log to the logger of the class."""

    def __init__(self, name: Optional[str] = None) -> None:
        if name is None:
            here = type(self)
            name = here.__name__ if here.__module__ == "__main__" else f"{here.__module__}.{here.__name__}"
        self.log: Any = _logger(name)
        self._dbg = self.log.isEnabledFor(logging.DEBUG)
        self._trace = self.log.isEnabledFor(TRACE)


class BPLogger(logging.Logger):
    """A logger whose methods have an event and its fields as arguments. The logger's name precedes that of the event."""

    def __init__(self, qualname: str) -> None:
        super().__init__(qualname)
        self._format = nlapi.Log(newline=False, level=Level.ALL)

    def set_meta(self, **kw: Any) -> None:
        """Sets the fields that follow those of every event."""
        self._format.setMeta(None, **kw)

    def log(self, level: int, nl_level: int, event: str, exc_info: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event with a level of logging and a level of nlapi."""
        if self.isEnabledFor(level):
            name = f"{self.name}.{event}" if self.name else event
            line = self._format.write(name, None, nl_level, **kwargs)
            super().log(level, "%s", line, exc_info=exc_info)

    def trace(self, event: str, **kwargs: Any) -> None:
        """Logs an event of level TRACE."""
        self.log(TRACE, Level.TRACE, event, **kwargs)

    def debug(self, event: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level DEBUG."""
        self.log(logging.DEBUG, Level.DEBUG, event, **kwargs)

    def info(self, event: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level INFO."""
        self.log(logging.INFO, Level.INFO, event, **kwargs)

    def warning(self, event: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level WARN."""
        self.log(logging.WARNING, Level.WARN, event, **kwargs)

    def error(self, event: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level ERROR."""
        self.log(logging.ERROR, Level.ERROR, event, **kwargs)

    def critical(self, event: str, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level FATAL."""
        self.log(logging.CRITICAL, Level.FATAL, event, **kwargs)

    def exception(self, event: str, err: object, **kwargs: Any) -> None:  # type: ignore[override]
        """Logs an event of level ERROR with the current exception: its message and traceback."""
        trace = " | ".join(line.strip() for line in traceback.format_exc().split("\n"))
        self.error(event, msg=str(err), status=-1, traceback=trace, **kwargs)

    warn = warning  # type: ignore[assignment]
    exc = exception


setLoggerClass(BPLogger)
