"""Avro: a schema as a program for ``format.kernel.avro``, which writes values as JSON text.

The text has what a deserializer returns: the value of a union alone, enums and UUIDs as strings, bytes and fixed in
base64, decimals as strings with all their digits, dates and times in ISO 8601. A date or time for which ISO 8601 has no
form (a year before 1 or after 9999) is its number, and a float that is no number is "NaN", "Infinity" or "-Infinity".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any

import msgspec
import numpy as np

from format.decoding.leaves import Leaf, Path, zigzag_at
from format.decoding.plain import InvalidSchema, Undecodable
from format.files.side_file import INT32_RANGE, INT64_RANGE
from format.kernel.avro import AVRO_ERRORS, AVRO_NODES, MOST_TEXT_BYTES, MOST_TEXT_PER_BYTE, write_avro
from format.log.batch_table import Int64Column

_NODE = {name: number for number, name in enumerate(AVRO_NODES)}
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_DEFINING = ("record", "error", "enum", "fixed")
#: Logical types of dates and times: their type, their node, its digits after the second, and whether it is in UTC.
_MOMENTS = {
    "date": ("int", "date", 0, 0),
    "time-millis": ("int", "time", 3, 0),
    "time-micros": ("long", "time", 6, 0),
    "timestamp-millis": ("long", "timestamp", 3, 1),
    "timestamp-micros": ("long", "timestamp", 6, 1),
    "timestamp-nanos": ("long", "timestamp", 9, 1),
    "local-timestamp-millis": ("long", "timestamp", 3, 0),
    "local-timestamp-micros": ("long", "timestamp", 6, 0),
    "local-timestamp-nanos": ("long", "timestamp", 9, 0),
}
#: The most nodes of a schema, and the most levels of types in each other.
_MOST_NODES = 100_000
_MOST_DEPTH = 100
_MOST_SIZE = 2**31 - 1
_MOST_SCALE = 1_000
_UUID_BYTES = 16
_DAY_S = 86_400
#: The days from 1970-01-01 to the first and the last day of the years 1 to 9999.
_FIRST_DAY, _LAST_DAY = (each.toordinal() - date(1970, 1, 1).toordinal() for each in (date.min, date.max))
_ROOM_BYTES = 256 * 1024
#: A string, which is kept, or a comment, which Avro's own parser passes over.
_COMMENT = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|/\*.*?(?:\*/|\Z)|//[^\n]*', re.DOTALL)
_encode = msgspec.json.Encoder().encode


Lookup = Callable[[str], str | None]


class AvroSchema:
    """A schema that values can be decoded with. Raises InvalidSchema.

    ``references`` are the schemas that it refers to, in an order in which each only refers to those before it;
    ``lookup`` returns the schema of any other named type, None for one that is not there.
    """

    kind = "avro"

    def __init__(self, text: str, references: Iterable[str] = (), lookup: Lookup = lambda name: None) -> None:
        program = _Program(lookup)
        for each in references:
            program.node_of(schema_json(each), "", 0)
        root = program.node_of(schema_json(text), "", 0)
        self.names = tuple(name for name, row in program.names.items() if row == root)
        program.start_with(root)
        self._rows = program.rows
        self._nodes = memoryview(np.array(program.rows, np.int64))
        self._pieces = bytes(program.pieces)
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self._span, self._result = np.empty((1, 2), np.int64), memoryview(np.empty((1, 4), np.int64))

    def text_of(self, data: bytes, start: int = 0) -> str:
        """The value that the bytes from ``start`` on hold, as JSON text. Raises Undecodable."""
        self._span[0] = start, len(data)
        done = write_avro(self._nodes, self._pieces, data, memoryview(self._span), 0, self._room, self._result)
        if done and not self._result[0, 2]:
            return str(self._room[: self._result[0, 1]], "utf-8")
        [text], reasons = self.texts_of(data, self._span)
        if text is None:
            raise Undecodable(reasons[0])
        return text

    bare_text_of = text_of

    def leaves_of(self, data: bytes, start: int, *, is_framed: bool) -> list[Leaf]:
        """The parts of a value that ``text_of`` decodes. Raises Undecodable."""
        reader = _Leaves(self._rows, self._pieces, data, start)
        reader.read(0, ())
        return reader.found

    def texts_of(self, buffer: bytes | memoryview, spans: Int64Column) -> tuple[list[str | None], dict[int, str]]:
        """The text of each value of ``spans`` (starts and ends in the buffer); by its number why one has none."""
        texts: list[str | None] = []
        reasons: dict[int, str] = {}
        results = np.empty((len(spans), 4), np.int64)
        table = memoryview(np.ascontiguousarray(spans))
        first = 0
        while first < len(spans):
            done = write_avro(self._nodes, self._pieces, buffer, table, first, self._room, memoryview(results))
            if done == first:
                most = MOST_TEXT_BYTES + MOST_TEXT_PER_BYTE * int(spans[first, 1] - spans[first, 0])
                self._room = memoryview(bytearray(min(most, 4 * len(self._room))))
                continue
            written = bytes(self._room[: results[done - 1, 1]])
            texts += [written[start:end].decode() for start, end in results[first:done, :2].tolist()]
            for number in (first + np.flatnonzero(results[first:done, 2])).tolist():
                at = int(results[number, 3] - spans[number, 0])
                reasons[number] = f"not of the Avro schema: {AVRO_ERRORS[int(results[number, 2])]} (byte {at})"
                texts[number] = None
            if len(self._room) > _ROOM_BYTES:
                self._room = memoryview(bytearray(_ROOM_BYTES))
            first = done
        return texts, reasons


def schema_json(text: str) -> Any:
    """The schema as JSON, which may have comments; the name of a primitive type may stand without quotes.

    Raises InvalidSchema.
    """
    if text.strip() in _PRIMITIVES:
        return text.strip()
    try:
        return msgspec.json.decode(_COMMENT.sub(r"\1", text))
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidSchema(f"the schema is not JSON: {error}") from None
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None


def names_in(schema: Any, namespace: str = "") -> Iterator[str]:
    """The full names of the types that a schema defines, the outermost first. Raises InvalidSchema."""
    if isinstance(schema, list):
        for each in schema:
            yield from names_in(each, namespace)
    elif isinstance(schema, dict):
        if schema.get("type") in _DEFINING:
            yield (name := _full_name(schema, namespace))
            namespace = name.rpartition(".")[0]
        for part in ("type", "items", "values", "fields"):
            yield from names_in(schema.get(part), namespace)


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    """The name of a type that is defined in a namespace."""
    name: str = _of(schema, "name", (str,))
    own = schema.get("namespace", namespace)
    return f"{own}.{name}" if "." not in name and isinstance(own, str) and own else name


class _Program:
    """The nodes of schemas, by the names of the types that have one. The first row is left for the whole value."""

    def __init__(self, lookup: Lookup) -> None:
        self.rows: list[tuple[int, int, int, int]] = [(0, 0, 0, 0)]
        self.pieces = bytearray()
        self.names: dict[str, int] = {}
        self._lookup = lookup

    def start_with(self, root: int) -> None:
        """Make a node that of the whole value. Confluent writes bytes, where they are all, without their length."""
        kind, size, scale, _ = self.rows[root]
        if kind == _NODE["bytes"]:
            self._set(0, "all-bytes")
        elif kind == _NODE["decimal"] and size < 0:
            self._set(0, "decimal", -2, scale)
        else:
            self.rows[0] = self.rows[root]

    def node_of(self, schema: Any, namespace: str, depth: int) -> int:
        """The row of the node of a schema in a namespace."""
        if depth > _MOST_DEPTH:
            raise InvalidSchema("the schema is nested too deeply")
        if isinstance(schema, str):
            return self._named(schema, namespace, depth)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        kind = _of(schema, "type", (str, dict, list))
        if isinstance(kind, (dict, list)):
            return self.node_of(kind, namespace, depth + 1)
        if kind == "array":
            return self._row("array", self.node_of(_of(schema, "items"), namespace, depth + 1))
        if kind == "map":
            return self._row("map", self.node_of(_of(schema, "values"), namespace, depth + 1))
        if kind in _PRIMITIVES:
            return self._primitive(schema, kind)
        if kind in _DEFINING:
            return self._defined(schema, kind, namespace, depth)
        return self._named(kind, namespace, depth)

    def _named(self, name: str, namespace: str, depth: int) -> int:
        if name in _PRIMITIVES:
            return self._row(name)
        for each in (f"{namespace}.{name}" if namespace and "." not in name else name, name):
            if each not in self.names and (text := self._lookup(each)) is not None:
                self.node_of(schema_json(text), "", depth + 1)
            if each in self.names:
                return self.names[each]
        raise InvalidSchema(f"the schema names the type {name!r}, which is not there")

    def _union(self, branches: list[Any], namespace: str, depth: int) -> int:
        first = self._parts(len(branches))
        for number, branch in enumerate(branches):
            self._set_part(first + number, self.node_of(branch, namespace, depth + 1))
        return self._row("union", first, len(branches))

    def _primitive(self, schema: dict[str, Any], kind: str) -> int:
        logical = schema.get("logicalType")
        if isinstance(logical, str) and _MOMENTS.get(logical, ("",))[0] == kind:
            return self._row(*_MOMENTS[logical][1:])
        if kind == "bytes" and logical == "decimal" and (scale := _scale(schema)) is not None:
            return self._row("decimal", -1, scale)
        return self._row(kind)

    def _defined(self, schema: dict[str, Any], kind: str, namespace: str, depth: int) -> int:
        """The node of a type with a name."""
        name = _full_name(schema, namespace)
        if name in self.names:
            raise InvalidSchema(f"the schema defines the type {name!r} twice")
        row = self.names[name] = self._row("null")
        if kind == "fixed":
            size = _of(schema, "size", (int,))
            if not 0 <= size <= _MOST_SIZE:
                raise InvalidSchema(f"the size of the type {name!r} is {size}")
            scale = _scale(schema) if schema.get("logicalType") == "decimal" else None
            self._set(row, "fixed" if scale is None else "decimal", size, scale or 0)
            if schema.get("logicalType") == "uuid" and size == _UUID_BYTES:
                self._set(row, "uuid")
            return row
        parts = _of(schema, "symbols" if kind == "enum" else "fields", (list,))
        first = self._parts(len(parts))
        if kind == "enum":
            for number, symbol in enumerate(parts):
                self._set_part(first + number, 0, _encode(symbol))
            self._set(row, "enum", first, len(parts))
            return row
        inside = name.rpartition(".")[0]
        self._set(row, "record", first, len(parts))
        for number, field in enumerate(parts):
            text = (b"," if number else b"{") + _encode(_of(field, "name", (str,))) + b":"
            self._set_part(first + number, self.node_of(_of(field, "type"), inside, depth + 1), text)
        return row

    def _row(self, kind: str, *numbers: int) -> int:
        if len(self.rows) > _MOST_NODES:
            raise InvalidSchema(f"the schema has more than {_MOST_NODES:,} parts")
        self.rows.append((0, 0, 0, 0))
        self._set(len(self.rows) - 1, kind, *numbers)
        return len(self.rows) - 1

    def _set(self, row: int, kind: str, *numbers: int) -> None:
        first, second, third = (*numbers, 0, 0, 0)[:3]
        self.rows[row] = (_NODE[kind], first, second, third)

    def _parts(self, count: int) -> int:
        """The first of so many rows for the parts of an enum, a record or a union."""
        for _ in range(count):
            self._row("part")
        return len(self.rows) - count

    def _set_part(self, row: int, node: int, text: bytes = b"") -> None:
        start = len(self.pieces)
        self.pieces += text
        self._set(row, "part", node, start, len(self.pieces))


def _of(schema: Any, name: str, kinds: tuple[type, ...] = (str, dict, list)) -> Any:
    """An attribute of a schema, which must be there and of one of these types."""
    found = schema.get(name) if isinstance(schema, dict) else None
    if not isinstance(found, kinds) or isinstance(found, bool):
        raise InvalidSchema(f"the schema has a part without a valid {name!r}")
    return found


def _scale(schema: dict[str, Any]) -> int | None:
    """The scale of a decimal, None where it is not valid: the bytes then stay bytes, as the specification says."""
    scale, precision = schema.get("scale", 0), schema.get("precision")
    if not isinstance(scale, int) or not isinstance(precision, int) or not 0 <= scale <= min(precision, _MOST_SCALE):
        return None
    return scale


class _Leaves:
    """Finds the parts of a value, which is known to be of the schema. What is not found here only tells its structure:
    lengths, numbers of items, and branches of unions.
    """

    def __init__(self, rows: list[tuple[int, int, int, int]], pieces: bytes, data: bytes, start: int) -> None:
        self.found: list[Leaf] = []
        self._rows = rows
        self._pieces = pieces
        self._data = data
        self._at = start

    def read(self, row: int, path: Path) -> None:
        """Read the value of a node."""
        number, first, second, _ = self._rows[row]
        kind = AVRO_NODES[number]
        if kind == "record":
            for field in range(first, first + second):
                self.read(self._rows[field][1], (*path, self._name(field)))
        elif kind == "union":
            self.read(self._rows[first + self._long()][1], path)
        elif kind in ("array", "map"):
            self._blocks(first, path, is_map=kind == "map")
        elif kind == "string":
            self._part("text", path, self._long())
        elif kind in ("bytes", "fixed", "all-bytes", "uuid"):
            sizes = {"fixed": first, "uuid": _UUID_BYTES, "all-bytes": len(self._data) - self._at}
            self._part("bytes", path, sizes[kind] if kind in sizes else self._long())
        elif kind == "decimal":
            whole = len(self._data) - self._at
            self._part("decimal", path, whole if first < -1 else self._long() if first < 0 else first)
        elif kind in ("float", "double"):
            self._part("float", path, 4 if kind == "float" else 8)
        elif kind == "boolean":
            self._part("varint", path, 1, 0, 1)
        elif kind != "null":
            start = self._at
            self._long()
            size, self._at = self._at - start, start
            self._part("zigzag", path, size, *_bounds(kind, first, second))

    def _blocks(self, item: int, path: Path, *, is_map: bool) -> None:
        while count := self._long():
            stop = None
            if count < 0:
                count, size = -count, self._long()
                stop = self._at + size
            for _ in range(count):
                inside = path
                if is_map:
                    length = self._long()
                    inside = (*path, self._data[self._at : self._at + length])
                    self._part("text", inside, length, is_name=True)
                self.read(item, inside)
            if stop not in (None, self._at):
                raise Undecodable("a block of items has another size than it says")

    def _long(self) -> int:
        value, self._at = zigzag_at(self._data, self._at, len(self._data))
        return value

    def _part(self, form: str, path: Path, size: int, least: int = 0, most: int = 0, *, is_name: bool = False) -> None:
        self.found.append(Leaf(form, path, self._at, self._at + size, least, most, is_name=is_name))
        self._at += size

    def _name(self, field: int) -> bytes:
        _, _, start, end = self._rows[field]
        name: str = msgspec.json.decode(self._pieces[start + 1 : end - 1])
        return name.encode()


def _bounds(kind: str, first: int, second: int) -> tuple[int, int]:
    """The least and the largest number that a node can have; ``first`` and ``second`` are its numbers."""
    if kind == "enum":
        return 0, second - 1
    if kind == "date":
        return _FIRST_DAY, _LAST_DAY
    if kind == "time":
        return 0, _DAY_S * 10**first - 1
    if kind == "timestamp":
        return _FIRST_DAY * _DAY_S * 10**first, min((_LAST_DAY + 1) * _DAY_S * 10**first - 1, INT64_RANGE[1])
    return INT32_RANGE if kind == "int" else INT64_RANGE
