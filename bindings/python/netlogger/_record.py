"""The consuming half: Record, Reader."""
from __future__ import annotations

import datetime
import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple, Type, Union

from . import _core
from ._log import Level

if TYPE_CHECKING:
    import pandas
    import pyarrow

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_STANDARD = {
    "DATE": "time_ns",
    "HOST": "host",
    "PROG": "prog",
    "LVL": "level_name",
    "NL.EVNT": "event",
}


class Record(Dict[str, Any]):
    """One event: a dict of its fields, in the order in which they were logged.

    What every record has is in attributes: time_ns, host, prog, level, event; of those host, prog, level and event may
    be None. They are also found by the names that they have in a log (record["NL.EVNT"]), but are no items. Where a
    name repeats, the dict has the first; fields has all.

    Values from the binary format are bool, int, float or str, as they were logged; from text they are str, unless
    the reader was asked for numbers. Bytes that are no UTF-8 are escaped: value.encode("utf-8", "surrogateescape").
    """

    __slots__ = ("time_ns", "_level", "host", "prog", "event", "_repeated")

    time_ns: int  #: nanoseconds since 1970, UTC
    host: Optional[str]
    prog: Optional[str]
    event: Optional[str]
    _level: int
    _repeated: Optional[Tuple[Tuple[str, Any], ...]]

    def __init__(self, *arguments: Any, **fields: Any) -> None:
        super().__init__(*arguments, **fields)
        self.time_ns = 0
        self._level = 0
        self.host = self.prog = self.event = None
        self._repeated = None

    @property
    def level(self) -> Optional[Level]:
        """How urgent it is; None when it doesn't say."""
        return Level(self._level) if self._level else None

    @level.setter
    def level(self, level: Optional[int]) -> None:
        self._level = int(Level(level)) if level else 0

    @property
    def level_name(self) -> Optional[str]:
        """The level as a log spells it: "Usage"."""
        return Level(self._level).name.capitalize() if self._level else None

    @property
    def fields(self) -> Tuple[Tuple[str, Any], ...]:
        """All fields as pairs of name and value, also those whose names repeat."""
        return self._repeated if self._repeated is not None else tuple(self.items())

    @property
    def time(self) -> datetime.datetime:
        """When it was, in UTC, to the microsecond; time_ns has the nanoseconds."""
        return _EPOCH + datetime.timedelta(microseconds=self.time_ns // 1000)

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self, _STANDARD[name])
        except KeyError:
            raise KeyError(name) from None

    def __repr__(self) -> str:
        return f"<Record {self.event} {self.time.isoformat()} {dict(self)}>"

    def __reduce__(self) -> Tuple[Any, ...]:
        state = {name: getattr(self, name) for name in self.__slots__}
        return (Record, (dict(self),), (None, state))


class Reader(_core.Reader):
    """Records from a source: an iterator, which is to be closed or used in a with statement.

    url is a path, "-", "memory:NAME", or a collector: "x-netlog://HOST?since=-60". Format and compression are told by
    the content. where is an expression that chooses records ('LVL <= Warning && HOST ~ dpss*'); since, a datetime or
    seconds since 1970, leaves out what was before; follow waits at the end of a file for more; numbers makes int
    or float of text that is a number from end to end.

    Raises Error when it can't be opened or read, ValueError when where is no expression. Lines that are no records are
    passed over and counted (stats). A reader is for one thread at a time. Waiting ends with KeyboardInterrupt.
    """

    def __init__(
        self,
        url: Union[str, os.PathLike[str]],
        where: Optional[str] = None,
        *,
        since: Union[datetime.datetime, float, None] = None,
        follow: bool = False,
        numbers: bool = False,
    ) -> None:
        if isinstance(since, datetime.datetime):
            since = since.timestamp()
        since_ns = -(1 << 63) if since is None else int(since * 1e9)
        if since is not None:
            later = f"DATE >= {datetime.datetime.fromtimestamp(since, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}"
            where = later if where is None else f"({where}) && {later}"
        super().__init__(Record, url, where, follow, numbers, since_ns)

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        where: Optional[TracebackType],
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Record]:
        return self

    def to_columns(self) -> Dict[str, List[Any]]:
        """The records that are left as lists, a column each: time_ns, host, prog, level, event, then the fields.

        None where a record has no such field. A field that is called as one of the first five gets "field." before
        its name. In a column of text that is numbers throughout these are int or float.
        """
        return _columns(self)

    def to_arrow(self) -> pyarrow.Table:
        """The records that are left as a table of Arrow; pyarrow is needed for it."""
        import pyarrow

        columns = self.to_columns()
        times = pyarrow.array(columns.pop("time_ns"), pyarrow.timestamp("ns", tz="UTC"))
        arrays = {"time": times, **{name: _arrow_array(pyarrow, values) for name, values in columns.items()}}
        return pyarrow.table(arrays)

    def to_pandas(self) -> pandas.DataFrame:
        """The records that are left as a data frame; pandas is needed for it."""
        import pandas

        columns = self.to_columns()
        times = pandas.to_datetime(columns.pop("time_ns"), unit="ns", utc=True)
        frame = pandas.DataFrame({"time": times})
        for name, values in columns.items():
            dtype = "Int64" if _are(values, int) and any(v is None for v in values) and _fit(values) else None
            frame[name] = pandas.Series(values, dtype=dtype)
        return frame


_FIRST = ("time_ns", "host", "prog", "level", "event")


def _columns(records: Iterable[Record]) -> Dict[str, List[Any]]:
    columns: Dict[str, List[Any]] = {name: [] for name in _FIRST}
    count = 0
    for record in records:
        for name, value in zip(_FIRST, (record.time_ns, record.host, record.prog, record.level_name, record.event)):
            columns[name].append(value)
        for name, value in record.items():
            column = columns.setdefault("field." + name if name in _FIRST or name == "time" else name, [])
            column.extend([None] * (count - len(column)))
            column.append(value)
        count += 1
    for name, column in columns.items():
        column.extend([None] * (count - len(column)))
        if name not in _FIRST:
            columns[name] = _as_numbers(column)
    return columns


def _as_numbers(column: List[Any]) -> List[Any]:
    if not _are(column, str):
        return column
    for kind in (int, float):
        try:
            return [value if value is None else _number(kind, value) for value in column]
        except ValueError:
            pass
    return column


def _number(kind: Any, text: str) -> Any:
    if "_" in text or text != text.strip():  # what Python alone takes for a number
        raise ValueError(text)
    return kind(text)


def _are(column: List[Any], kind: type) -> bool:
    return all(value is None or type(value) is kind for value in column) and any(v is not None for v in column)


def _fit(column: List[Any]) -> bool:
    return all(value is None or -(1 << 63) <= value < 1 << 63 for value in column)


def _arrow_array(pyarrow: Any, values: List[Any]) -> Any:
    """An array; what is mixed, or too large, becomes text."""
    for kind in (bool, int, float):
        if _are(values, kind) and (kind is not int or _fit(values)):
            return pyarrow.array(values)
    if _are(values, int) and all(value is None or 0 <= value < 1 << 64 for value in values):
        return pyarrow.array(values, pyarrow.uint64())
    if all(value is None or type(value) in (int, float) for value in values) and any(type(v) is float for v in values):
        return pyarrow.array([None if value is None else float(value) for value in values])
    texts = (None if v is None else str(v).encode("utf-8", "surrogateescape").decode("utf-8", "replace") for v in values)
    return pyarrow.array(list(texts), pyarrow.string())


def read(
    url: Union[str, os.PathLike[str]],
    where: Optional[str] = None,
    *,
    since: Union[datetime.datetime, float, None] = None,
    follow: bool = False,
    numbers: bool = False,
) -> Reader:
    """Reads a source; see Reader."""
    return Reader(url, where, since=since, follow=follow, numbers=numbers)
