"""A decoder of the binary format, written only from doc/binary-format.md. It is slow, strict and independent of the library.

Times are in nanoseconds; records are Record; input that violates the page raises AssertionError.
"""
import dataclasses
import struct
import subprocess

LEVELS = [None, "Emergency", "Alert", "Error", "Warning", "Auth", "Security", "Usage", "System", "Important", "Debug"]


def _crc_table():
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass
class Record:
    time_ns: int
    host: bytes
    prog: bytes
    level: str
    event: bytes
    fields: list  # pairs (name, value); a value is bytes, int, float or bool

    def ulm(self):
        """Returns the record as a line of ULM. The time has six digits, or nine if six are not exact."""
        seconds, ns = divmod(self.time_ns, 10**9)
        import datetime

        when = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
        fraction = f"{ns:09d}" if ns % 1000 else f"{ns // 1000:06d}"
        parts = [f"DATE={when:%Y%m%d%H%M%S}.{fraction}".encode()]
        for name, value in (("HOST", self.host), ("PROG", self.prog), ("LVL", self.level.encode()),
                            ("NL.EVNT", self.event)):
            if value:
                parts.append(name.encode() + b"=" + quote(value))
        for name, value in self.fields:
            parts.append(name + b"=" + (quote(value) if isinstance(value, bytes) else str(value).encode()))
        return b" ".join(parts) + b"\n"


def _controls(c):
    """Returns whether the text formats escape a character. The text was read with surrogateescape."""
    code = ord(c)
    return (code < 32 or 0x7f <= code < 0xa0 or code in (0x61c, 0x200e, 0x200f) or 0x202a <= code <= 0x202e or
            0x2066 <= code <= 0x2069 or 0xdc80 <= code < 0xdca0)


def quote(value):
    text = value.decode("utf-8", "surrogateescape")
    if value and not any(c in ' "=' or _controls(c) for c in text):
        return value
    names = {"\n": b"\\n", "\t": b"\\t", "\r": b"\\r", '"': b'\\"', "\\": b"\\\\"}
    as_bytes = lambda c: c.encode("utf-8", "surrogateescape")
    quoted = (names.get(c) or (b"".join(b"\\x%02x" % b for b in as_bytes(c)) if _controls(c) else as_bytes(c)) for c in text)
    return b'"' + b"".join(quoted) + b'"'


@dataclasses.dataclass
class Block:
    stream: bytes
    first_sequence: int
    lost: int
    lost_from: int
    lost_to: int
    compressed: bool
    stored_size: int
    records: list


class _Payload:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data), "runs past the end"
        self.at += size
        return self.data[self.at - size:self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                assert shift <= 70 and value < 1 << 64, "number is too long"
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 if value & 1 == 0 else -(value >> 1) - 1

    def string(self):
        return self.take(self.varint())

    def value(self, kind, before):
        if kind == 1:
            code = self.varint()
            return before if code == 0 else self.take(code - 1)
        if kind == 2:
            return _signed(before + self.zigzag())
        if kind == 3:
            return before + self.zigzag() & (1 << 64) - 1
        if kind == 4:
            return struct.unpack("<d", self.take(8))[0]
        assert kind == 5, "unknown type"
        byte = self.take(1)[0]
        assert byte <= 1, "neither true nor false"
        return byte == 1


def _signed(value):
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _records(data, count, min_time, max_time):
    p = _Payload(data)
    sources = [(p.string(), p.string()) for _ in range(p.varint())]
    shapes = []
    for _ in range(p.varint()):
        source, level = sources[p.varint()], p.take(1)[0]
        spelling = LEVELS[level] if level > 0 else p.string().decode("latin-1")
        event = p.string()
        fields = [(p.take(1)[0], p.string()) for _ in range(p.varint())]
        shapes.append((source, spelling, event, fields, [b"" if kind == 1 else 0 for kind, _ in fields]))
    records, time_ns = [], min_time
    for _ in range(count):
        (host, prog), level, event, fields, before = shapes[p.varint()]
        time_ns = _signed(time_ns + p.zigzag())
        before[:] = [p.value(kind, value) for (kind, _), value in zip(fields, before)]
        values = [(name, value) for (_, name), value in zip(fields, before)]
        records.append(Record(time_ns, host, prog, level, event, values))
    assert p.at == len(data), "goes on after the last record"
    if records:
        assert min(r.time_ns for r in records) == min_time and max(r.time_ns for r in records) == max_time
    return records


def blocks(data):
    """Returns all blocks of a complete and valid log."""
    at = 0
    while at < len(data):
        (magic, header_size, kind, flags, crc, stored, raw, count, stream, first, min_time, max_time, lost, lost_from,
         lost_to, reserved) = struct.unpack_from("<4sHBBIIII16sQqqQqqQ", data, at)
        assert magic == b"NLB1" and header_size >= 96 and flags <= 1 and reserved == 0
        assert stored <= 16 << 20 and raw <= 16 << 20 and at + header_size + stored <= len(data)
        whole = data[at:at + header_size + stored]
        assert crc32c(whole[:8] + b"\0\0\0\0" + whole[12:]) == crc, "checksum"
        payload = whole[header_size:]
        if flags & 1:
            payload = subprocess.run(["zstd", "-dcq"], input=payload, capture_output=True, check=True).stdout
        assert len(payload) == raw
        at += len(whole)
        if kind == 1:
            yield Block(stream, first, lost, lost_from, lost_to, flags & 1 == 1, stored,
                        _records(payload, count, min_time, max_time))


def records(data):
    return [record for block in blocks(data) for record in block.records]


def encode(rows, stream=bytes(16), first_sequence=0, lost=0, lost_from=0, lost_to=0):
    """Returns a block of (time_ns, event, [(name, value)]) rows, each with its own shape; for tests that send blocks."""

    def varint(value):
        out = bytearray()
        while value >= 128:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
        return bytes(out)

    def zigzag(value):
        return varint((value << 1 ^ value >> 63) & (1 << 64) - 1)

    def string(value):
        return varint(len(value)) + value

    kinds = {bytes: (1, lambda v: varint(len(v) + 1) + v), int: (2, zigzag), float: (4, lambda v: struct.pack("<d", v)),
             bool: (5, lambda v: bytes([v]))}
    times = [row[0] for row in rows] or [0]
    payload = varint(1) + string(b"testhost") + string(b"test") + varint(len(rows))
    for _, event, fields in rows:
        payload += varint(0) + bytes([7]) + string(event) + varint(len(fields))
        for name, value in fields:
            payload += bytes([kinds[type(value)][0]]) + string(name)
    before = min(times)
    for place, (time_ns, _, fields) in enumerate(rows):
        payload += varint(place) + zigzag(time_ns - before)
        before = time_ns
        for _, value in fields:
            payload += kinds[type(value)][1](value)

    def header(crc):
        return struct.pack("<4sHBBIIII16sQqqQqqQ", b"NLB1", 96, 1, 0, crc, len(payload), len(payload), len(rows), stream,
                           first_sequence, min(times), max(times), lost, lost_from, lost_to, 0)

    return header(crc32c(header(0) + payload)) + payload
