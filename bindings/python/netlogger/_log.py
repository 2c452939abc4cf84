"""The producing half: Log, Span, and what a child process needs."""
from __future__ import annotations

import enum
import functools
import inspect
import os
import re
import sys
import time
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from . import _core

if TYPE_CHECKING:
    from ._record import Record

_F = TypeVar("_F", bound=Callable[..., Any])


class Level(enum.IntEnum):
    """How urgent an event is, the most urgent first."""

    EMERGENCY = 1
    ALERT = 2
    ERROR = 3
    WARNING = 4
    AUTH = 5
    SECURITY = 6
    USAGE = 7
    SYSTEM = 8
    IMPORTANT = 9
    DEBUG = 10

    @classmethod
    def named(cls, name: str) -> Level:
        """The level of that name, in any case: Level.named("Usage")."""
        number = _core.parse_level(name)
        if number == 0:
            raise ValueError(f"no level: {name}")
        return cls(number)


_PAIR = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9._-]*)=")
_CONVERSION = re.compile(r"%(?:%|[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?[diouxXeEfFgGcrsa])")


@functools.lru_cache(maxsize=1024)
def _fields_of(format: str) -> Tuple[Tuple[str, str, int], ...]:
    """A format's fields: name, format of the value, how many arguments that takes."""
    found = list(_PAIR.finditer(format))
    if not found or format[: found[0].start()].strip():
        raise ValueError(f"no NAME=value begins it: {format}")
    ends = [match.start() for match in found[1:]] + [len(format)]
    fields = []
    for match, end in zip(found, ends):
        value = format[match.end() : end].strip()
        if "%" in _CONVERSION.sub("", value):
            raise ValueError(f"no conversion: {value}")
        taken = [c for c in _CONVERSION.findall(value) if c != "%%"]
        fields.append((match.group(1), value, sum(1 + c.count("*") for c in taken)))
    return tuple(fields)


class Log(_core.Log):
    """A log: a stream of records from one program to one destination.

    prog is the program's name; url a destination as the library takes it: "file:///tmp/a.log",
    "x-netlog://HOST[:PORT]", "-", "memory:NAME" and more, with options ("?policy=newest"), or a path, or None for
    $NETLOGGER_DEST. When that is unset, or $NETLOGGER_ON is 0, logging is off: every call returns False.

    A destination that cannot be reached now is tried again later; a line on standard error reports it. Raises Error if
    the URL is invalid or can never work.
    """

    def __init__(self, prog: str, url: Union[str, os.PathLike[str], None] = None) -> None:
        super().__init__(prog, url)
        _open_logs.add(self)
        _flush_at_exit_of_child()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        self.close()

    def write(self, event: str, format: str = "", *values: object, level: int = Level.USAGE) -> bool:
        """Logs an event whose fields are a text, or a format as that of the operator %:

            log.write("WriteData", "SEND.SZ=" + str(size))
            log.write("WriteData", "SEND.SZ=%d FILE=%s", size, name)

        With values, the format determines the fields. Without values, the text is read like a line of a log: quotes and
        escapes count, and a value ends before the next NAME=. A text without fields, or a format that does not match its
        values, becomes the field MSG.
        """
        if not values:
            return self._write_text(level, event, format) if format.strip() else self.log(level, event)
        fields: Dict[str, object] = {}
        at = 0
        try:
            for name, value_format, count in _fields_of(format):
                fields[name] = value_format % values[at : at + count]
                at += count
            if at < len(values):
                raise TypeError("more values than the format takes")
        except Exception:  # logging an event never fails because of its values
            fields = {"MSG": format, "VALUES": values}
        return self.log(level, event, fields)

    def write_record(self, record: Record) -> bool:
        """Logs a record that was read, with its time, host and program."""
        return self._write_record(
            record.time_ns, record._level, record.host, record.prog, record.event, record.fields
        )

    def switch(self, pattern: str, on: bool) -> None:
        """Switches the events on or off whose name a pattern such as "Write*" matches, in all logs of the process."""
        if not pattern or any(c.isspace() for c in pattern):
            raise ValueError("a pattern is not empty and has no blanks")
        self.control(f"event {pattern} {'on' if on else 'off'}")

    def send_to(self, url: str) -> None:
        """Sends on to another destination; what waits goes there too."""
        if not url or any(c.isspace() for c in url):
            raise ValueError("a URL is not empty and has no blanks")
        self.control(f"destination {url}")

    def span(
        self,
        name: str,
        fields: Optional[Mapping[str, object]] = None,
        /,
        level: int = Level.USAGE,
        **more: object,
    ) -> Span:
        """A span of time: logs NAME.start when it is entered and NAME.end when it is left.

        As a context manager, plain or asynchronous, or as a decorator of functions and coroutines:

            with log.span("Read", **{"BLOCK.ID": 7}) as span:
                span.add(BYTES=len(data))

            @log.span("Parse")
            def parse(text): ...

        NAME.end has the same fields, what was added, STATUS (0, or -1 when an exception left it, whose name is then
        in ERROR) and DUR, the seconds that it took.
        """
        return Span(self, name, {**(fields or {}), **more}, level)


class Span:
    """What Log.span makes."""

    __slots__ = ("_log", "_name", "_fields", "_level", "_more", "_begin_ns", "status")

    def __init__(self, log: Log, name: str, fields: Dict[str, object], level: int) -> None:
        self._log = log
        self._name = name
        self._fields = fields
        self._level = level
        self._more: Dict[str, object] = {}
        self._begin_ns = 0
        self.status = 0  #: what STATUS of NAME.end says, unless an exception ends the span

    def add(self, fields: Optional[Mapping[str, object]] = None, /, **more: object) -> None:
        """Adds fields to NAME.end."""
        self._more.update(fields or {}, **more)

    def __enter__(self) -> Span:
        self._more = {}
        self._log.log(self._level, self._name + ".start", self._fields)
        self._begin_ns = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        seconds = (time.perf_counter_ns() - self._begin_ns) / 1e9
        end: Dict[str, object] = {**self._fields, **self._more, "STATUS": self.status if kind is None else -1, "DUR": seconds}
        if kind is not None:
            end["ERROR"] = kind.__name__
        self._log.log(self._level, self._name + ".end", end)

    async def __aenter__(self) -> Span:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        self.__exit__(kind, error, where)

    def _again(self) -> Span:
        """One of its own for every call of what it decorates."""
        return Span(self._log, self._name, self._fields, self._level)

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def plain(*arguments: Any, **keywords: Any) -> Any:
            with self._again():
                return function(*arguments, **keywords)

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **keywords: Any) -> Any:
            with self._again():
                return await function(*arguments, **keywords)

        return coroutine if inspect.iscoroutinefunction(function) else plain  # type: ignore[return-value]


def open(prog: str, url: Union[str, os.PathLike[str], None] = None) -> Log:
    """Opens a log; see Log."""
    return Log(prog, url)


# ---- children of multiprocessing, which end without exit() and so without the library's own last flush ----

_open_logs: weakref.WeakSet[Log] = weakref.WeakSet()
_finalizers: List[Any] = []


def _flush_all() -> None:
    for log in list(_open_logs):
        try:
            if not log.closed:
                log.flush()
        except _core.Error:
            pass  # it is kept in shared memory, for nlrecover


def _flush_at_exit_of_child() -> None:
    """Has multiprocessing, when it is in use, flush all logs at the end of this process."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and (not _finalizers or _finalizers[0] != os.getpid()):
        _finalizers[:] = [os.getpid(), util.Finalize(None, _flush_all, exitpriority=-1000)]


class _Fork:
    """What multiprocessing.util calls in a child after it forgot what its parent wanted to be called."""


_fork = _Fork()


def _in_child() -> None:
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_fork, lambda unused: _flush_at_exit_of_child())


os.register_at_fork(after_in_child=_in_child)
