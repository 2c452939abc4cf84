"""Record and Reader."""
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
    """One event: a dict of its fields, in the order of logging.

    The standard fields are attributes: time_ns, host, prog, level, event. All but time_ns may be None. The attributes are
    also available under their names in logs (record["NL.EVNT"]), but are not items. If a name repeats, the dict has the
    first field; fields has all.

    Values from the binary format are bool, int, float or str, as they were logged. Values from text are str, unless the
    reader has numbers=True. Bytes that are not UTF-8 are escaped: value.encode("utf-8", "surrogateescape").
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
        """The level, or None."""
        return Level(self._level) if self._level else None

    @level.setter
    def level(self, level: Optional[int]) -> None:
        self._level = int(Level(level)) if level else 0

    @property
    def level_name(self) -> Optional[str]:
        """The level's name in logs: "Usage"."""
        return Level(self._level).name.capitalize() if self._level else None

    @property
    def fields(self) -> Tuple[Tuple[str, Any], ...]:
        """All fields as pairs of name and value, including repeated names."""
        return self._repeated if self._repeated is not None else tuple(self.items())

    @property
    def time(self) -> datetime.datetime:
        """The time in UTC, rounded down to microseconds; time_ns has nanoseconds."""
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
    """An iterator over the records of a source. Close it, or use it in a with statement.

    url is a path, "-", "memory:NAME", or a collector: "x-netlog://HOST?since=-60". The reader detects format and
    compression. where is an expression that selects records ('LVL <= Warning && HOST ~ dpss*'). since, a datetime or
    seconds since 1970, excludes earlier records. If follow is true, the reader waits for more records at the end of a file. If
    numbers is true, text that is a number becomes int or float.

    Raises Error if the source cannot be opened or read, and ValueError if where is invalid. Malformed lines are skipped
    and counted (stats). Only one thread at a time may use a reader. KeyboardInterrupt ends a wait.
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
        """Returns the remaining records as a list per column: time_ns, host, prog, level, event, then the fields.

        A column has None where a record lacks the field. A field with the name of one of the first five columns, or with the name "time", gets the
        prefix "field.". A column of text that consists of numbers becomes int or float.
        """
        return _columns(self)

    def to_arrow(self) -> pyarrow.Table:
        """Returns the remaining records as an Arrow table; requires pyarrow."""
        import pyarrow

        columns = self.to_columns()
        times = pyarrow.array(columns.pop("time_ns"), pyarrow.timestamp("ns", tz="UTC"))
        arrays = {"time": times, **{name: _arrow_array(pyarrow, values) for name, values in columns.items()}}
        return pyarrow.table(arrays)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the remaining records as a data frame; requires pandas."""
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
    if "_" in text or text != text.strip():  # valid numbers in Python only
        raise ValueError(text)
    return kind(text)


def _are(column: List[Any], kind: type) -> bool:
    return all(value is None or type(value) is kind for value in column) and any(v is not None for v in column)


def _fit(column: List[Any]) -> bool:
    return all(value is None or -(1 << 63) <= value < 1 << 63 for value in column)


def _arrow_array(pyarrow: Any, values: List[Any]) -> Any:
    """Returns an Arrow array. Values of different types, and integers that are too large, become text."""
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
    """Returns a reader of a source; see Reader."""
    return Reader(url, where, since=since, follow=follow, numbers=numbers)
