"""The interface of NetLogger 4 (2004 to 2012), for programs that import netlogger.nlapi. New programs use netlogger.open.

    log = nlapi.Log("/tmp/a.log", prefix="stampede")
    log.write("job.start", job__id=7, level=nlapi.Level.INFO)

Records are lines in the format BP. In names of fields, "__" becomes ".", but "__" at the beginning of a name is removed.
"""
from __future__ import annotations

import datetime
import os
import re
import socket
import sys
import time
import urllib.parse
import uuid
from typing import IO, Any, Dict, Mapping, Optional, Union

from ._log import Level as _Level
from ._log import Log as _Log
from ._record import Record

GID_ENV = "NETLOGGER_GUID"
NLDEST_ENV = "NL_DEST"
DEFAULT_PORT = 14830
FIELD_SEP, REC_SEP, EOR, KEYVAL_SEP = " ", "\n", "\n", "="
TS_FIELD, EVENT_FIELD, LEVEL_FIELD = "ts", "event", "level"
STATUS_FIELD, MESSAGE_FIELD, HASH_FIELD = "status", "msg", "nlhash"

_Time = Union[str, float, datetime.datetime, None]


class Level:
    """The levels, from the most urgent to the least urgent. A log writes events up to its own level."""

    NOLOG, FATAL, ERROR, WARN, INFO, DEBUG, DEBUG1, DEBUG2, DEBUG3 = range(9)
    WARNING, TRACE, ALL = WARN, DEBUG1, -1
    names = {
        NOLOG: "NOLOG",
        FATAL: "Fatal",
        ERROR: "Error",
        WARN: "Warn",
        INFO: "Info",
        DEBUG: "Debug",
        TRACE: "Trace",
        DEBUG2: "Debug2",
        DEBUG3: "Debug3",
    }

    @staticmethod
    def getName(level: int) -> str:
        """Returns the name of a level."""
        return Level.names.get(level, "User")

    @staticmethod
    def getLevel(name: str) -> int:
        """Returns the level with a name in capitals."""
        level = getattr(Level, name, None) if name.isupper() else None
        if not isinstance(level, int):
            raise ValueError(f"no such level name: {name}")
        return level


# The library's numbers of these levels. All levels that are not in this table are written as Debug.
_OF_LIBRARY = {Level.NOLOG: 0, Level.FATAL: 1, Level.ERROR: 3, Level.WARN: 4, Level.INFO: 7}
_TO_ESCAPE = re.compile(r'[\s"=\x00-\x1f\x7f]')
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def quotestr(v: str) -> str:
    """Returns the text of a value in a line."""
    if not v:
        return '""'
    if _TO_ESCAPE.search(v) is None:
        return v
    return f'"{v.translate(_ESCAPES)}"'


def getGuid(create: bool = True, env: str = GID_ENV) -> Optional[str]:
    """Returns the identifier in the environment. If it is missing and create is true, makes a new identifier."""
    return os.environ.get(env) or (str(uuid.uuid1()) if create else None)


def setGuid(id: str, env: str = GID_ENV) -> Optional[str]:
    """Sets the identifier in the environment. Returns the previous identifier."""
    before = os.environ.get(env)
    os.environ[env] = id
    return before


def clearGuid(env: str = GID_ENV) -> Optional[str]:
    """Removes the identifier from the environment, and returns the identifier."""
    return os.environ.pop(env, None)


def getHost() -> str:
    """Returns the numeric address of this host."""
    try:
        return socket.gethostbyname(socket.getfqdn())
    except OSError:
        return "127.0.0.1"


def getProg() -> str:
    """Returns the name of the program."""
    return sys.argv[0]


def getDest() -> Optional[str]:
    """Returns the destination in the environment."""
    return os.environ.get(NLDEST_ENV)


def _time_of(ts: _Time) -> datetime.datetime:
    """Returns a time in UTC."""
    if isinstance(ts, str):
        ts = datetime.datetime.strptime(ts.rstrip("Z"), "%Y-%m-%dT%H:%M:%S.%f" if "." in ts else "%Y-%m-%dT%H:%M:%S")
        return ts.replace(tzinfo=datetime.timezone.utc)
    if isinstance(ts, datetime.datetime):
        return ts.astimezone(datetime.timezone.utc) if ts.tzinfo is not None else ts.replace(tzinfo=datetime.timezone.utc)
    return datetime.datetime.fromtimestamp(ts or time.time(), datetime.timezone.utc)


def _name_of(name: str) -> str:
    return (name[2:] if name.startswith("__") else name).replace("__", ".")


def _text_of(value: object) -> str:
    if isinstance(value, str):
        return quotestr(value)
    if isinstance(value, float):
        return f"{value:f}"
    if isinstance(value, int):
        return f"{value:d}"
    return quotestr(str(value))


class Log:
    """A log. Without logfile, the object is only a formatter: write returns the line.

    logfile is a file, a path, or a URL: file://PATH, "-", "&" (standard error), or x-netlog://HOST[:PORT]. If a
    collector cannot be reached now, the library tries again later. The log writes events with levels up to level. Each
    event gets the prefix and the fields of meta. It also gets the field guid if guid is a string, or if guid is True and
    $NETLOGGER_GUID is set.
    """

    class OpenError(Exception):
        """The destination cannot be opened."""

    def __init__(
        self,
        logfile: Union[str, IO[str], None] = None,
        flush: bool = False,
        prefix: Optional[str] = None,
        level: int = Level.INFO,
        newline: bool = True,
        guid: Union[bool, str] = True,
        pretty: bool = False,
        float_time: bool = False,
        meta: Optional[Mapping[str, object]] = None,
    ) -> None:
        self._file: Optional[IO[str]] = None
        self._log: Optional[_Log] = None
        self._flush = flush
        self._level = level
        self._end = REC_SEP if newline else ""
        self._pretty = pretty
        self._float_time = float_time
        self._meta: Dict[Optional[str], Dict[str, Any]] = {None: dict(meta or {})}
        self.setPrefix(prefix)
        if guid is True:
            guid = getGuid(create=False) or False
        if guid:
            self._meta[None]["guid"] = guid
        try:
            if not isinstance(logfile, str):
                self._file = logfile
            elif urltype(logfile) == "tcp" and not pretty:
                self._log = _Log(os.path.basename(getProg()) or "python", logfile)
            else:
                self._file = urlfile(logfile)
        except (OSError, ValueError) as error:
            raise self.OpenError(error) from error

    def setLevel(self, level: int) -> None:
        """Sets the threshold: events with higher levels are not written."""
        self._level = level

    def setPrefix(self, prefix: Optional[str]) -> None:
        """Sets the beginning of the names of events; a "." follows it."""
        self._prefix = "" if not prefix else prefix if prefix.endswith(".") else prefix + "."

    def setMeta(self, event: Optional[str] = None, **kw: Any) -> None:
        """Sets the fields that follow those of an event, or of all events."""
        self._meta[event] = kw

    def debugging(self) -> bool:
        """Returns whether events of level DEBUG are written."""
        return self._level >= Level.DEBUG

    def write(self, event: str = "event", ts: _Time = None, level: int = Level.INFO, **kw: Any) -> Optional[str]:
        """Writes an event, at the time ts (seconds since 1970, a datetime in UTC, or text of ISO 8601), or now.

        Returns None. If the log has no destination, returns the line, or "" if events of this level are not written.
        """
        is_formatter = self._file is None and self._log is None
        if self._level != Level.ALL and level > self._level:
            return "" if is_formatter else None
        event = self._prefix + event
        if self._log is not None:
            self._send(event, ts, level, kw)
            return None
        line = self.format(event, ts or time.time(), level, kw)
        if self._file is None:
            return line
        self._file.write(line)
        if self._flush:
            self.flush()
        return None

    __call__ = write

    def error(self, event: str = "", **kwargs: Any) -> Optional[str]:
        """Writes an event of level ERROR."""
        return self.write(event, level=Level.ERROR, **kwargs)

    def warn(self, event: str = "", **kwargs: Any) -> Optional[str]:
        """Writes an event of level WARN."""
        return self.write(event, level=Level.WARN, **kwargs)

    def info(self, event: str = "", **kwargs: Any) -> Optional[str]:
        """Writes an event of level INFO."""
        return self.write(event, level=Level.INFO, **kwargs)

    def debug(self, event: str = "", **kwargs: Any) -> Optional[str]:
        """Writes an event of level DEBUG."""
        return self.write(event, level=Level.DEBUG, **kwargs)

    def _fields(self, event: str, kw: Mapping[str, Any]) -> Dict[str, Any]:
        every = [kw, self._meta.get(event, {}), self._meta.get(None, {})]
        return {_name_of(name): value for fields in every for name, value in fields.items()}

    def _send(self, event: str, ts: _Time, level: int, kw: Mapping[str, Any]) -> None:
        record = Record(self._fields(event, kw))
        record.event = event
        number = _OF_LIBRARY.get(level, _Level.DEBUG)
        record.level = _Level(number) if number else None
        if ts:
            since = _time_of(ts) - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
            record.time_ns = since // datetime.timedelta(microseconds=1) * 1000
        if self._log is not None:
            self._log.write_record(record)
            if self._flush:
                self._log.flush()

    def format(self, event: str, ts: _Time, level: Union[int, str, None], kw: Mapping[str, Any]) -> str:
        """Returns the line of an event."""
        name = Level.getName(level) if isinstance(level, int) else level
        text = ts if isinstance(ts, str) else f"{_time_of(ts):%Y-%m-%dT%H:%M:%S.%fZ}"
        if self._pretty:
            rest = dict(kw)
            message, trace = rest.pop("msg", None), rest.pop("traceback", None)
            fields = ",".join(f"{key}={value}" for key, value in rest.items())
            said = f"{message}. {fields}" if message else fields
            return f"{text} {(name or '').upper():<6} {event} | {said}" + (f"\n{trace}" if trace else "") + self._end
        if self._float_time and not isinstance(ts, str):
            text = f"{_time_of(ts).timestamp():.6f}"
        parts = [f"ts={text}", f"event={quotestr(event)}"]
        if name is not None:
            parts.append(f"level={name}")
        parts += [f"{key}={_text_of(value)}" for key, value in self._fields(event, kw).items()]
        return FIELD_SEP.join(parts) + self._end

    def flush(self) -> None:
        """Sends all events that were written."""
        if self._file is not None:
            self._file.flush()
        if self._log is not None:
            self._log.flush()

    def close(self) -> None:
        """Flushes the log, and closes its connection to a collector."""
        if self._log is not None:
            self._log.close()
        elif self._file is not None and not self._file.closed:
            self._file.flush()


def urltype(url: str) -> Optional[str]:
    """Returns "file", "tcp", or None for another URL."""
    return {"file": "file", "": "file", "x-netlog": "tcp"}.get(urllib.parse.urlparse(url).scheme)


def urlfile(url: str) -> IO[str]:
    """Returns a file that writes lines to a path or a URL."""
    parts = urllib.parse.urlparse(url)
    if parts.scheme == "x-netlog":
        return socket.create_connection((parts.hostname or "localhost", parts.port or DEFAULT_PORT)).makefile("w")
    if parts.scheme not in ("", "file"):
        raise ValueError(f"the scheme of {url} is neither file nor x-netlog")
    if parts.path == "-":
        return sys.stdout
    if parts.path == "&":
        return sys.stderr
    return open(parts.path, "a", encoding="utf-8")
