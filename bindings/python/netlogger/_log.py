"""The classes Log, Span and Context, and the flush of logs at the end of child processes."""
from __future__ import annotations

import contextvars
import enum
import functools
import inspect
import os
import re
import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, Union

from . import _core

if TYPE_CHECKING:
    from ._record import Record

_F = TypeVar("_F", bound=Callable[..., Any])


class Level(enum.IntEnum):
    """The levels of events, from the most urgent to the least urgent."""

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
        """Returns the level with this name, in any case: Level.named("Usage")."""
        number = _core.parse_level(name)
        if number == 0:
            raise ValueError(f"invalid level: {name}")
        return cls(number)


_PAIR = re.compile(r"(?:^|\s)([A-Za-z_][A-Za-z0-9._-]*)=")
_CONVERSION = re.compile(r"%(?:%|[-#0 +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?[diouxXeEfFgGcrsa])")


@functools.lru_cache(maxsize=1024)
def _fields_of(format: str) -> Tuple[Tuple[str, str, int], ...]:
    """For each field of a format, returns its name, the format of its value, and the number of arguments for this format."""
    found = list(_PAIR.finditer(format))
    if not found or format[: found[0].start()].strip():
        raise ValueError(f"the format does not begin with NAME=: {format}")
    ends = [match.start() for match in found[1:]] + [len(format)]
    fields = []
    for match, end in zip(found, ends):
        value = format[match.end() : end].strip()
        if "%" in _CONVERSION.sub("", value):
            raise ValueError(f"invalid conversion: {value}")
        taken = [c for c in _CONVERSION.findall(value) if c != "%%"]
        fields.append((match.group(1), value, sum(1 + c.count("*") for c in taken)))
    return tuple(fields)


class Log(_core.Log):
    """A log: a stream of records from one program to one destination.

    prog is the program's name. url is a path or a URL of netlogger(7), such as "file:///tmp/a.log",
    "x-netlog://HOST[:PORT]", "-" or "memory:NAME", with options ("?policy=newest"). None means $NETLOGGER_DEST. If
    this variable is unset, or $NETLOGGER_ON is 0, logging is off, and every call returns False.

    If the destination cannot be reached now, the library prints a line on standard error and tries again later. Raises
    Error if the URL is invalid, or its destination can never work.
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
        """Logs an event with fields from a text or a format of the operator %:

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
                raise TypeError("more values than conversions in the format")
        except Exception:  # logging an event never fails because of its values
            fields = {"MSG": format, "VALUES": values}
        return self.log(level, event, fields)

    def write_record(self, record: Record) -> bool:
        """Logs a record of a reader with its time, host and program."""
        return self._write_record(
            record.time_ns, record._level, record.host, record.prog, record.event, record.fields
        )

    def switch(self, pattern: str, on: bool) -> None:
        """Switches events whose name matches a pattern such as "Write*" on or off in all logs of the process."""
        if not pattern or any(c.isspace() for c in pattern):
            raise ValueError("a pattern must not be empty or contain spaces")
        self.control(f"event {pattern} {'on' if on else 'off'}")

    def send_to(self, url: str) -> None:
        """Changes the destination of later events, and of the events that wait to be sent."""
        if not url or any(c.isspace() for c in url):
            raise ValueError("a URL must not be empty or contain spaces")
        self.control(f"destination {url}")

    def span(
        self,
        name: str,
        fields: Optional[Mapping[str, object]] = None,
        /,
        parent: Optional[Context] = None,
        level: int = Level.USAGE,
        **more: object,
    ) -> Span:
        """Returns a span, which logs NAME.start when it is entered and NAME.end when it is left.

        Use it as a context manager, also asynchronous, or as a decorator of functions and coroutines:

            with log.span("Read", **{"BLOCK.ID": 7}) as span:
                span.add(BYTES=len(data))

            @log.span("Parse")
            def parse(text): ...

        The parent is the current context unless a Context is given; Context() begins a trace. With "with", the span is the
        thread's current context until it is left, and the thread's events carry its ID. With "async with", it is the
        parent of the task's later spans; use span.event to log events with its ID.

        NAME.end has the added fields and STATUS, which is 0 by default. After an exception, STATUS is -1, and ERROR is the
        name of the exception.
        """
        return Span(self, name, {**(fields or {}), **more}, parent, level)


class Context:
    """A trace and a span in it (W3C Trace Context). Pass it to other threads, and its traceparent to other processes.

    Context() is empty. Context(text) is the context of a traceparent header; it is empty if the header is invalid.
    """

    __slots__ = ("_bytes",)

    def __init__(self, traceparent: str = "") -> None:
        self._bytes = _core._traceparent_parse(traceparent)

    @classmethod
    def _of(cls, data: bytes) -> Context:
        context = cls()
        context._bytes = data
        return context

    @classmethod
    def current(cls) -> Context:
        """The current context of the task or, if the task has no context, of the thread."""
        return _current.get() or cls._of(_core._current())

    @classmethod
    def from_environment(cls) -> Context:
        """The context in TRACEPARENT, which a program inherits from its parent process."""
        return cls._of(_core._traceparent_parse(None))

    @property
    def traceparent(self) -> str:
        """The header for requests, and the value of TRACEPARENT for programs to start; "" if the context is empty."""
        return _core._traceparent_format(self._bytes)

    def __bool__(self) -> bool:
        return any(self._bytes[:16])

    def __enter__(self) -> Context:
        """Makes this the thread's current context until __exit__. Several threads may enter the same context."""
        _attached.set((*_attached.get(), (self, _core._attach(self._bytes), _current.get())))
        _current.set(self)
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        attached = _attached.get()
        for at in reversed(range(len(attached))):
            if attached[at][0] is self:
                _attached.set(attached[:at] + attached[at + 1 :])
                _core._attach(attached[at][1])
                _current.set(attached[at][2])
                break


class Span:
    """A span, which Log.span returns."""

    __slots__ = ("_log", "_name", "_fields", "_parent", "_level", "_more", "_state", "_token", "context", "status")

    def __init__(self, log: Log, name: str, fields: Dict[str, object], parent: Optional[Context], level: int) -> None:
        self._log = log
        self._name = name
        self._fields = fields
        self._parent = parent
        self._level = level
        self._more: Dict[str, object] = {}
        self._state: Optional[bytes] = None
        self._token: Any = None
        self.context = Context()  #: for child spans and requests; the parent's context if the span is off
        self.status = 0  #: STATUS of NAME.end, unless an exception ends the span

    def add(self, fields: Optional[Mapping[str, object]] = None, /, **more: object) -> None:
        """Adds fields to NAME.end."""
        self._more.update(fields or {}, **more)

    def event(self, event: str, fields: Optional[Mapping[str, object]] = None, /, **more: object) -> bool:
        """Logs an event with the span's ID, even if the thread has another current context."""
        with Context._of(self.context._bytes):
            return self._log.log(self._level, event, fields, **more)

    def begin(self) -> Span:
        """Logs NAME.start, but does not make the span the current context.

        Use it for spans that end in another thread or function.
        """
        parent = self._parent if self._parent is not None else Context.current()
        self._more = {}
        context, self._state = self._log._begin_span(self._level, self._name, self._fields, parent._bytes)
        self.context = Context._of(context)
        return self

    def end(self) -> None:
        """Logs NAME.end. Any thread may call this method. Later calls do nothing."""
        state, self._state = self._state, None
        if state is not None:
            self._log._end_span(state, self._name, self.status, self._more)

    def _fail(self, kind: Optional[Type[BaseException]]) -> None:
        if kind is not None:
            self.status = -1
            self._more["ERROR"] = kind.__name__

    def __enter__(self) -> Span:
        self.begin()
        if self._state is not None:
            self.context.__enter__()
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        if self._state is not None:
            self.context.__exit__(kind, error, where)
        self._fail(kind)
        self.end()

    async def __aenter__(self) -> Span:
        self.begin()
        self._token = _current.set(self.context)
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        _current.reset(self._token)
        self._fail(kind)
        self.end()

    def _again(self) -> Span:
        """Returns a new span for a call of a decorated function."""
        return Span(self._log, self._name, self._fields, self._parent, self._level)

    def __call__(self, function: _F) -> _F:
        @functools.wraps(function)
        def plain(*arguments: Any, **keywords: Any) -> Any:
            with self._again():
                return function(*arguments, **keywords)

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **keywords: Any) -> Any:
            async with self._again():
                return await function(*arguments, **keywords)

        return coroutine if inspect.iscoroutinefunction(function) else plain  # type: ignore[return-value]


#: The innermost context of each task. The library's own current context belongs to the thread, not to a task.
_current: contextvars.ContextVar[Optional[Context]] = contextvars.ContextVar("netlogger_context", default=None)

#: The contexts that each task, or thread without tasks, has entered, with their previous contexts.
_attached: contextvars.ContextVar[Tuple[Tuple[Context, bytes, Optional[Context]], ...]] = contextvars.ContextVar(
    "netlogger_attached", default=()
)


def open(prog: str, url: Union[str, os.PathLike[str], None] = None) -> Log:
    """Opens a log; see Log."""
    return Log(prog, url)


# ---- children of multiprocessing, which end without exit() and thus without the library's last flush ----

_open_logs: weakref.WeakSet[Log] = weakref.WeakSet()
_finalizers: List[Any] = []


def _flush_all() -> None:
    for log in list(_open_logs):
        try:
            if not log.closed:
                log.flush()
        except _core.Error:
            pass  # the events remain in shared memory for nlrecover


def _flush_at_exit_of_child() -> None:
    """If the program uses multiprocessing, makes multiprocessing flush all logs at the end of this process."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and (not _finalizers or _finalizers[0] != os.getpid()):
        _finalizers[:] = [os.getpid(), util.Finalize(None, _flush_all, exitpriority=-1000)]


class _Fork:
    """An object for multiprocessing.util.register_after_fork, which calls a function in a child that has no finalizers yet."""


_fork = _Fork()


def _in_child() -> None:
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.register_after_fork(_fork, lambda unused: _flush_at_exit_of_child())


os.register_at_fork(after_in_child=_in_child)
