"""Requests of OTLP for tests: encodes their JSON form as protobuf. Also installs Node's packages of OpenTelemetry."""
import atexit
import base64
import functools
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

# Members of messages: name -> (number, kind). A kind that is a name in this table is a message.
MESSAGES = {
    "Traces": {"resourceSpans": (1, "ResourceSpans")},
    "ResourceSpans": {"resource": (1, "Resource"), "scopeSpans": (2, "ScopeSpans"), "schemaUrl": (3, "text")},
    "ScopeSpans": {"scope": (1, "Scope"), "spans": (2, "Span")},
    "Span": {"traceId": (1, "id"), "spanId": (2, "id"), "traceState": (3, "text"), "parentSpanId": (4, "id"), "name": (5, "text"),
             "kind": (6, "varint"), "startTimeUnixNano": (7, "fixed"), "endTimeUnixNano": (8, "fixed"), "attributes": (9, "KeyValue"),
             "events": (11, "Event"), "links": (13, "Link"), "status": (15, "Status"), "flags": (16, "fixed32"),
             "droppedAttributesCount": (10, "varint"), "droppedEventsCount": (12, "varint"), "droppedLinksCount": (14, "varint")},
    "Event": {"timeUnixNano": (1, "fixed"), "name": (2, "text"), "attributes": (3, "KeyValue")},
    "Link": {"traceId": (1, "id"), "spanId": (2, "id"), "traceState": (3, "text"), "attributes": (4, "KeyValue"), "flags": (6, "fixed32")},
    "Status": {"message": (2, "text"), "code": (3, "varint")},
    "Logs": {"resourceLogs": (1, "ResourceLogs")},
    "ResourceLogs": {"resource": (1, "Resource"), "scopeLogs": (2, "ScopeLogs")},
    "ScopeLogs": {"scope": (1, "Scope"), "logRecords": (2, "LogRecord")},
    "LogRecord": {"timeUnixNano": (1, "fixed"), "severityNumber": (2, "varint"), "severityText": (3, "text"), "body": (5, "AnyValue"),
                  "attributes": (6, "KeyValue"), "traceId": (9, "id"), "spanId": (10, "id"), "observedTimeUnixNano": (11, "fixed"),
                  "eventName": (12, "text"), "flags": (8, "fixed32")},
    "Metrics": {"resourceMetrics": (1, "ResourceMetrics")},
    "ResourceMetrics": {"resource": (1, "Resource"), "scopeMetrics": (2, "ScopeMetrics")},
    "ScopeMetrics": {"scope": (1, "Scope"), "metrics": (2, "Metric")},
    "Metric": {"name": (1, "text"), "unit": (3, "text"), "gauge": (5, "Gauge"), "sum": (7, "Sum"), "histogram": (9, "Histogram")},
    "Gauge": {"dataPoints": (1, "Number")},
    "Sum": {"dataPoints": (1, "Number"), "aggregationTemporality": (2, "varint"), "isMonotonic": (3, "varint")},
    "Histogram": {"dataPoints": (1, "Distribution"), "aggregationTemporality": (2, "varint")},
    "Number": {"startTimeUnixNano": (2, "fixed"), "timeUnixNano": (3, "fixed"), "asDouble": (4, "double"), "asInt": (6, "fixed"),
               "attributes": (7, "KeyValue")},
    "Distribution": {"startTimeUnixNano": (2, "fixed"), "timeUnixNano": (3, "fixed"), "count": (4, "fixed"), "sum": (5, "double"),
                     "bucketCounts": (6, "packed fixed"), "explicitBounds": (7, "packed double"), "attributes": (9, "KeyValue"),
                     "min": (11, "double"), "max": (12, "double")},
    "Resource": {"attributes": (1, "KeyValue")},
    "Scope": {"name": (1, "text"), "version": (2, "text"), "attributes": (3, "KeyValue")},
    "KeyValue": {"key": (1, "text"), "value": (2, "AnyValue")},
    "AnyValue": {"stringValue": (1, "text"), "boolValue": (2, "varint"), "intValue": (3, "varint"), "doubleValue": (4, "double"),
                 "arrayValue": (5, "List"), "kvlistValue": (6, "Map"), "bytesValue": (7, "bytes")},
    "List": {"values": (1, "AnyValue")},
    "Map": {"values": (1, "KeyValue")},
}
KINDS = {"traces": "Traces", "logs": "Logs", "metrics": "Metrics"}


def varint(value):
    value &= 2 ** 64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, kind, value):
    if kind in ("fixed", "double"):
        return varint(number << 3 | 1) + struct.pack("<d" if kind == "double" else "<Q", float(value) if kind == "double" else int(value) % 2 ** 64)
    if kind == "fixed32":
        return varint(number << 3 | 5) + struct.pack("<I", value)
    if kind == "varint":
        return varint(number << 3) + varint(int(value))
    content = {"text": lambda: value.encode(), "id": lambda: bytes.fromhex(value), "bytes": lambda: base64.b64decode(value),
               "packed fixed": lambda: b"".join(struct.pack("<Q", int(v)) for v in value),
               "packed double": lambda: b"".join(struct.pack("<d", v) for v in value)}.get(kind, lambda: message(kind, value))()
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(kind, members):
    out = b""
    for name, value in members.items():
        number, of = MESSAGES[kind][name]
        for element in value if isinstance(value, list) and not of.startswith("packed") else [value]:
            out += field(number, of, element)
    return out


def protobuf(signal, request):
    """Encodes a request, such as {"resourceSpans": ...} of the signal "traces"."""
    return message(KINDS[signal], request)


def attributes(**values):
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    return [{"key": name.replace("_", "."), "value": {kinds[type(value)]: value}} for name, value in values.items()]


def traces(spans, **resource):
    return {"resourceSpans": [{"resource": {"attributes": attributes(**resource)}, "scopeSpans": [{"scope": {"name": "lib"}, "spans": spans}]}]}


def logs(records, **resource):
    return {"resourceLogs": [{"resource": {"attributes": attributes(**resource)}, "scopeLogs": [{"logRecords": records}]}]}


def span(number, **members):
    return {"traceId": f"{number // 16 + 1:032x}", "spanId": f"{number + 1:016x}", "name": "work",
            "startTimeUnixNano": str(1700000000000000000 + number), "endTimeUnixNano": str(1700000000500000000 + number), **members}


@functools.cache
def node_modules(*packages):
    """Returns a directory node_modules with these packages and the packages that they require. It exists until this process ends, so
    that all tests of a file install the packages once."""
    if not shutil.which("npm"):
        raise unittest.SkipTest("npm is not installed")
    folder = tempfile.mkdtemp(prefix="netlogger-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        result = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefer-offline", "--ignore-scripts", "--prefix", folder,
                                 *packages], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise unittest.SkipTest("the npm registry does not respond in time") from None
    if result.returncode != 0:
        raise unittest.SkipTest("the npm registry cannot be reached")
    return pathlib.Path(folder, "node_modules")
