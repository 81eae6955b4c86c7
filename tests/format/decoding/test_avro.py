"""Avro's binary encoding as JSON text, held against fastavro; and bytes and schemas that ask for too much."""

from __future__ import annotations

import io
import json
import math
import random
import struct
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import format.decoding.avro as module
from format.decoding.avro import AvroSchema
from format.decoding.plain import InvalidSchema, Undecodable
from format.kernel.avro import MOST_DEPTH, MOST_TEXT_BYTES
from tests.faults.plain_kernel import plain_module

PLAIN = plain_module("avro")
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9}


@pytest.fixture(params=["installed", "plain"])
def _twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both the compiled module, where there is one, and the same file as plain Python."""
    if request.param == "plain":
        monkeypatch.setattr(module, "write_avro", PLAIN.write_avro)


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def decoded(schema: Any, data: bytes) -> Any:
    return json.loads(AvroSchema(json.dumps(schema)).text_of(data))


def record(*types: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(types)]}


@pytest.mark.usefixtures("_twin")
@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ("null", [None]),
        ("boolean", [True, False]),
        ("int", [0, -1, 63, -64, 64, 2**31 - 1, -(2**31)]),
        ("long", [0, -1, 2**31, 2**63 - 1, -(2**63)]),
        ("string", ["", "abc", 'ä€漢😀"\\/\n\r\t\b\x00\x1f\x7f', "x" * 500]),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A", "B"]),
        ({"type": "array", "items": "long"}, [[], [1], [1, -2, 3]]),
        ({"type": "map", "values": "long"}, [{}, {"a": 1, 'b"': 2}]),
        (["null", "long", {"type": "array", "items": ["null", "string"]}], [None, 5, ["a", None]]),
        (record(), [{}]),
        (record("long", record("string", name="S")), [{"f0": 1, "f1": {"f0": "x"}}]),
        (record({"type": "array", "items": "R"}, ["null", "R"]), [
            {"f0": [{"f0": [], "f1": None}], "f1": {"f0": [], "f1": None}}]),
    ],
)  # fmt: skip
def test_values_that_are_json_already(schema: Any, values: list[Any]) -> None:
    for value in values:
        assert decoded(schema, encoded(schema, value)) == value


@pytest.mark.usefixtures("_twin")
@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ("double", 0.1, "0.1"),
        ("double", -0.0, "-0.0"),
        ("double", 1e300, "1e+300"),
        ("double", math.nan, '"NaN"'),
        ("double", math.inf, '"Infinity"'),
        ("double", -math.inf, '"-Infinity"'),
        ("float", 0.1, repr(struct.unpack("<f", struct.pack("<f", 0.1))[0])),
        ({"type": "fixed", "name": "F", "size": 3}, b"\x00\xff\x01", '"AP8B"'),
        (record("bytes"), {"f0": b"\x00\xff"}, '{"f0":"AP8="}'),
        (["null", {**DECIMAL, "scale": 2}], Decimal("-12.30"), '"-12.30"'),
        (["null", {**DECIMAL, "scale": 4}], Decimal("0.0001"), '"0.0001"'),
        (["null", DECIMAL], Decimal(10), '"10"'),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 1},
            Decimal("-0.5"),
            '"-0.5"',
        ),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=5), f'"{UUID(int=5)}"'),
        ({"type": "int", "logicalType": "date"}, date(1, 1, 1), '"0001-01-01"'),
        ({"type": "int", "logicalType": "date"}, date(2024, 2, 29), '"2024-02-29"'),
        ({"type": "int", "logicalType": "date"}, date(9999, 12, 31), '"9999-12-31"'),
        ({"type": "int", "logicalType": "time-millis"}, time(23, 59, 59, 999000), '"23:59:59.999"'),
        ({"type": "long", "logicalType": "time-micros"}, time(0, 0, 1, 5), '"00:00:01.000005"'),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
            '"1969-12-31T23:59:59.999Z"',
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime(2024, 3, 1, 1, 2, 3, 4, UTC),
            '"2024-03-01T01:02:03.000004Z"',
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            datetime(1900, 2, 28),
            '"1900-02-28T00:00:00.000"',
        ),
    ],
)
def test_values_with_a_text_of_their_own(schema: Any, value: Any, text: str) -> None:
    assert AvroSchema(json.dumps(schema)).text_of(encoded(schema, value)) == text


@pytest.mark.usefixtures("_twin")
@pytest.mark.parametrize(
    ("schema", "data", "text"),
    [
        ({"type": "long", "logicalType": "timestamp-nanos"}, b"\x02", '"1970-01-01T00:00:00.000000001Z"'),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xff" * 9 + b"\x01", str(-(2**63))),
        ({"type": "int", "logicalType": "date"}, b"\xff\xff\xff\xff\x0f", str(-(2**31))),
        ({"type": "int", "logicalType": "time-millis"}, b"\x01", "-1"),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, bytes(16), f'"{UUID(int=0)}"'),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}, b"\x02\x01", '"AgE="'),
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x04\x00", "[1,2]"),
        ("bytes", b"\x00\x01", '"AAE="'),
        ('"bytes"', b"", '""'),
        ({**DECIMAL, "scale": 2}, b"\x04\xd2", '"12.34"'),
    ],
)
def test_what_fastavro_writes_not_or_reads_in_another_way(schema: Any, data: bytes, text: str) -> None:
    """Years without a form in ISO 8601, blocks with a size, bytes alone, which Confluent writes without a length."""
    source = schema if schema == '"bytes"' else json.dumps(schema)
    assert AvroSchema(source).text_of(data) == text


@pytest.mark.usefixtures("_twin")
@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        ("long", b"", "cut off (byte 0"),
        ("long", b"\x80", "cut off (byte 1"),
        ("long", b"\xff" * 9 + b"\x02", "more than 64 bits"),
        ("long", b"\xff" * 12, "more than 64 bits"),
        ("int", b"\x80\x80\x80\x80\x10", "more than 32 bits"),
        ("long", b"\x02\x02", "bytes follow the value (byte 1"),
        ("boolean", b"\x02", "neither 0 nor 1"),
        ("string", b"\x01", "negative"),
        ("string", b"\x04a", "cut off"),
        ("string", b"\x02\xff", "not UTF-8"),
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "cut off"),
        ("double", b"\0" * 7, "cut off"),
        ("float", b"\0" * 3, "cut off"),
        ({"type": "fixed", "name": "F", "size": 4}, b"abc", "cut off"),
        (["null", "long"], b"\x04", "no such branch"),
        (["null", "long"], b"\x01", "no such branch"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", "no such symbol"),
        ({"type": "array", "items": "long"}, b"\x04\x02", "cut off"),
        ({"type": "array", "items": "long"}, b"\xff" * 9 + b"\x01" + b"\x02\x02", "more than 64 bits"),
        (DECIMAL, b"\xc0\x3e" + bytes(4000), "decimal is too long"),
    ],
)
def test_what_is_no_value_of_the_schema(schema: Any, data: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match="not of the Avro schema") as caught:
        AvroSchema(json.dumps(schema)).text_of(data)
    assert reason in str(caught.value)


def nested_records(count: int) -> dict[str, Any]:
    """Records of two fields of the next record each: 2 ** count nulls without a byte."""
    schema: Any = "null"
    for number in range(count):
        schema = record(schema, f"R{number - 1}" if number else "null", name=f"R{number}")
    return schema  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (record(["null", "R"]), b"\x02" * 5000 + b"\0", "nested too deeply"),
        (record({"type": "array", "items": "R"}), b"\x02" * 5000, "nested too deeply"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "text is too long"),
        ({"type": "array", "items": record()}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "text is too long"),
        (record("R"), b"", "nested too deeply"),
        (nested_records(40), b"", "text is too long"),
    ],
)
def test_no_value_asks_for_much_time_or_memory(schema: Any, data: bytes, reason: str) -> None:
    """fastavro ends with a segmentation fault for the first, and does not end for the third."""
    with pytest.raises(Undecodable, match=reason):
        AvroSchema(json.dumps(schema)).text_of(data)


def test_a_large_value_gets_the_room_that_it_needs() -> None:
    schema = {"type": "array", "items": "string"}
    value = ["\x01" * 100_000, "y" * MOST_TEXT_BYTES] * 2
    [text, again], _ = AvroSchema(json.dumps(schema)).texts_of(
        (data := encoded(schema, value)) * 2, np.array([[0, len(data)], [len(data), 2 * len(data)]], np.int64)
    )
    assert json.loads(str(text)) == value
    assert again == text


def test_many_values_at_once_are_those_one_by_one() -> None:
    schema = AvroSchema(json.dumps(record("string", ["null", "long"])))
    parts = [encoded(record("string", ["null", "long"]), {"f0": "v" * (n % 90), "f1": n}) for n in range(5000)]
    parts[1000] = b"\x04a"
    ends = np.cumsum([len(each) for each in parts])
    spans = np.stack([np.concatenate(([0], ends[:-1])), ends], axis=1)
    found, reasons = schema.texts_of(b"".join(parts), spans)
    assert found[1000] is None
    assert list(reasons) == [1000]
    assert "(byte 1)" in reasons[1000]
    for number, part in enumerate(parts):
        if number != 1000:
            assert found[number] == schema.text_of(part)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("5", "without a valid 'type'"),
        ('"Unknown"', "names the type 'Unknown', which is not there"),
        ('{"type": "record", "name": "R"}', "without a valid 'fields'"),
        ('{"type": "record", "name": "R", "fields": [{"name": "a"}]}', "without a valid 'type'"),
        ('{"type": "record", "fields": []}', "without a valid 'name'"),
        ('{"type": "enum", "name": "E"}', "without a valid 'symbols'"),
        ('{"type": "fixed", "name": "F", "size": -1}', "size"),
        ('{"type": "array"}', "without a valid 'items'"),
        ('[{"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 1}]', "twice"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ('{"type":"array","items":' * 500 + '"null"' + "}" * 500, "nested too deeply"),
        (json.dumps({"type": "enum", "name": "E", "symbols": ["a"] * 200_000}), "more than 100,000 parts"),
    ],
)
def test_schemas_that_are_none(text: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        AvroSchema(text)


def test_comments_in_a_schema() -> None:
    text = """/* of "Acme" */ {"type": "record", "name": "R", // the "R
        "fields": [{"name": "a", "doc": "// \\\\\\" /* ", "type": "int"}]} /* the end"""
    assert AvroSchema(text).text_of(b"\x02") == '{"a":1}'


def test_names_and_references() -> None:
    address = '{"type": "record", "name": "Address", "namespace": "a.b", "fields": [{"name": "x", "type": "int"}]}'
    user = '{"type": "record", "name": "a.b.User", "fields": [{"name": "home", "type": "Address"}]}'
    for schema in (AvroSchema(user, [address]), AvroSchema(user, lookup={"a.b.Address": address}.get)):
        assert schema.text_of(b"\x0a") == '{"home":{"x":5}}'
        assert schema.names == ("a.b.User",)
    with pytest.raises(InvalidSchema, match="'Address', which is not there"):
        AvroSchema(user)
    assert AvroSchema("long").text_of(b"\x0a") == "5"


def schemas() -> Iterator[Any]:
    chance = random.Random(5)

    def some(depth: int) -> Any:
        kind = chance.randrange(16 if depth < 3 else 10)
        if kind < 8:
            return ("null", "boolean", "int", "long", "float", "double", "bytes", "string")[kind]
        if kind == 8:
            return {"type": "int", "logicalType": "date"}
        if kind == 9:
            return {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
        if kind < 12:
            return [some(depth + 1) for _ in range(chance.randrange(3))]
        if kind < 14:
            return {"type": "array" if kind == 12 else "map", "items": some(depth + 1), "values": some(depth + 1)}
        return record(*(some(depth + 1) for _ in range(4)), name=f"R{chance.randrange(10**9)}")

    while True:
        yield some(0)


_MANY = [AvroSchema(json.dumps(schema)) for schema, _ in zip(schemas(), range(60), strict=False)]


@given(st.data(), st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_random_bytes_are_decoded_or_not_and_nothing_else(data: st.DataObject, content: bytes) -> None:
    schema = data.draw(st.sampled_from(_MANY))
    try:
        text = schema.text_of(content)
    except Undecodable:
        return
    json.loads(text)


@pytest.mark.usefixtures("_twin")
def test_the_deepest_value() -> None:
    schema = AvroSchema(json.dumps(record(["null", "R"])))
    levels = MOST_DEPTH // 2 - 1
    assert schema.text_of(b"\x02" * levels + b"\0").count("{") == levels + 1
