"""Blocks of the binary format (doc/binary-format.md), made without the library: valid blocks and blocks that attack readers."""
import functools
import random
import struct
import subprocess

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ 0x82f63b78 * (_byte & 1)
    _TABLE.append(_byte)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def string(text):
    return varint(len(text)) + text


def block(payload, count, raw_size=None, stream=bytes(16), first=0, lost=0):
    """Returns a block with count records. raw_size is the uncompressed size of a compressed payload."""
    def header(crc):
        return struct.pack("<4sHBBIIII16sQqqQqqQ", b"NLB1", 96, 1, raw_size is not None, crc, len(payload),
                           len(payload) if raw_size is None else raw_size, count, stream, first, 0, 0, lost, 0, 0, 0)
    return header(crc32c(header(0) + payload)) + payload


def compressed(payload, count, stored_min=0):
    """Returns a compressed block of at least stored_min bytes; a frame that decoders skip fills it."""
    stored = subprocess.run(["zstd", "-q", "-c", "-3"], input=payload, capture_output=True, check=True).stdout
    if len(stored) < stored_min:
        stored += struct.pack("<II", 0x184d2a50, stored_min - len(stored)) + bytes(stored_min - len(stored))
    return block(stored, count, raw_size=len(payload))


def numbers(program, values, stream, first):
    """Returns a block of records of one program with the field N."""
    payload = varint(1) + string(b"h") + string(program) + varint(1) + b"\0\7\1E" + varint(1) + b"\3\1N"
    return block(payload + b"".join(b"\0\0" + varint(2 * value) for value in values), len(values), stream=stream, first=first)


SOURCE = varint(1) + string(b"h") + string(b"attack")


@functools.cache
def wide():
    """Returns a block of some hundred bytes with no records and one shape of 2^20 fields."""
    return compressed(SOURCE + varint(1) + b"\0\7\1E" + varint(1 << 20) + b"\3\1N" * (1 << 20), 0)


@functools.cache
def dense():
    """Returns a block with the maximum number of records, which are tiny until netlogd writes them as text."""
    count = (2 << 20) // 80
    return compressed(SOURCE + varint(1) + b"\0\7\1E" + varint(0) + b"\0\0" * count, count, (2 << 20) // 1024)


def _requests(between):
    """Returns a block with the maximum number of records, of two events. between is the difference between consecutive IDs."""
    def make(first):
        count = (2 << 20) // 200
        shapes = b"".join(b"\0\7" + string(event) + varint(1) + b"\3" + string(b"NL.ID") for event in (b"E", b"F"))
        step = b"\2" + varint(2 * between)
        records = b"".join(shape + b"\2" + varint(2 * first) for shape in (b"\0", b"\1")) + (b"\0" + step + b"\1" + step) * (count - 1)
        return compressed(SOURCE + varint(2) + shapes + records, 2 * count, (2 << 20) // 1024)
    return make


def dense_requests(first):
    """Returns requests of two steps, whose IDs are consecutive numbers from `first`."""
    return _requests(1)(first)


def one_request(first):
    """Returns one request of many steps."""
    return _requests(0)(first)


def many_hosts(number):
    """Returns requests with 64 IDs, with steps on 1,000 random hosts of a million."""
    rng, count = random.Random(number), 1000
    sources = varint(count) + b"".join(string(b"h%d" % rng.randrange(1 << 20)) + string(b"p") for _ in range(count))
    shapes = b"".join(varint(i) + b"\7" + string(event) + varint(1) + b"\3" + string(b"NL.ID") for i in range(count) for event in (b"E", b"F"))
    records = b"".join(varint(rng.randrange(2 * count)) + b"\2" + varint(2 * rng.randrange(64)) for _ in range(4000))
    return compressed(sources + varint(2 * count) + shapes + records, 4000, 2000)


def many_numbers(number):
    """Returns records with 4,000 numeric fields."""
    count = 4000
    shape = b"\0\7" + string(b"R%d" % number) + varint(count) + b"".join(b"\3" + string(b"f%d" % i) for i in range(count))
    return compressed(SOURCE + varint(1) + shape + (b"\0\0" + b"\2" * count) * 10, 10, 2000)


@functools.cache
def dense_strings():
    """Returns a block with the maximum number of records, all with the same string of 1,000 bytes."""
    size = 1000
    count = (2 << 20) // (size + 100)
    first = b"\0\2" + varint(size + 1) + b"a" * size
    return compressed(SOURCE + varint(1) + b"\0\7\1E" + varint(1) + b"\1\1S" + first + b"\0\2\0" * (count - 1), count, (2 << 20) // 1024)


@functools.cache
def beyond_limits():
    """Returns a block of 2 KB with the maximum number of records that fit in a payload of 16 MB."""
    begin = SOURCE + varint(1) + b"\0\7\1E" + varint(0)
    count = ((16 << 20) - len(begin)) // 2
    return compressed(begin + b"\0\0" * count, count, 2000)


@functools.cache
def tables():
    """Returns a block with tables of the maximum size, and one record."""
    shape = b"\0\7\1E" + varint(1 << 14) + b"\3\1N" * (1 << 14)
    return compressed(SOURCE + varint(4) + shape * 4 + b"\0\0" + b"\2" * (1 << 14), 1, 2000)


def matching():
    """Returns a record whose string makes the filter EXPENSIVE slow."""
    text = b"ab" * 30
    return block(SOURCE + varint(1) + b"\0\7\1E" + varint(1) + b"\1\1S" + b"\0\0" + varint(len(text) + 1) + text, 1)


EXPENSIVE = " || ".join(f"S =~ 'a[ab]{{{n}}}c'" for n in range(124, 84, -1))
