"""Schema ids in front of values and in headers, and what ``auto`` takes them for."""

from __future__ import annotations

import json
import pickle
import struct
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from format.decoding.decoder import Decoded, Decoding
from format.decoding.schemas import SchemaOf, Schemas, find_schemas, schemas_at
from format.node.target import targets_at
from tests.format.decoding.registry_log import Record, deletion, registry_batches, schema, tombstone, write_node

_NAME = '{"type": "record", "name": "a.Name", "fields": [{"name": "name", "type": "string"}]}'
_PROTO = 'syntax = "proto3"; package a; message First { string x = 1; } message Second { int32 n = 1; }'


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Schemas:
    return registry(
        tmp_path_factory.mktemp("registry"),
        schema("orders-value", 1, 1, _NAME),
        schema("orders-key", 1, 2, '"long"'),
        schema("other-value", 1, 3, _NAME.replace("a.Name", "a.Other")),
        schema("orders-a.Event", 1, 4, _NAME.replace("a.Name", "a.Event")),
        schema("proto-value", 1, 5, _PROTO, "PROTOBUF"),
        schema("json-value", 1, 6, "{}", "JSON"),
        schema("orders-value", 2, 7, '"string"'),
        schema("bad-value", 1, 8, "{"),
        schema("new-value", 1, 9, "?", "THRIFT"),
        schema("orders-value", 3, 10, '"long"'),
        deletion("orders-value", 3),
        tombstone("orders-value", 3),
        schema("empty-value", 1, 11, '"bytes"'),
    )


def registry(folder: Path, *records: Record) -> Schemas:
    return find_schemas(targets_at([write_node(folder / "node", registry_batches(records))]))


def framed(schema_id: int, data: bytes) -> bytes:
    return struct.pack(">bI", 0, schema_id) + data


def value(schemas: Schemas, topic: str, data: bytes, headers: Any = (), kind: str = "auto") -> Decoded:
    found = (
        pickle.loads(pickle.dumps(Decoding(value_as=kind, schemas=schemas)))
        .topic(topic)["value"]
        .decoded(data, headers)
    )
    assert found is not None
    return replace(found, reading=None)


def test_confluents_frame(schemas: Schemas) -> None:
    assert value(schemas, "orders", framed(1, b"\x06abc")) == Decoded('{"name":"abc"}', "avro", 1)
    assert value(schemas, "orders", framed(7, b"\x06abc")) == Decoded('"abc"', "avro", 7)
    assert value(schemas, "proto", framed(5, b"\x02\x02\x08\x05")) == Decoded('{"n":5}', "protobuf", 5)
    assert value(schemas, "json", framed(6, b' {"a": 1}')) == Decoded('{"a":1}', "json-schema", 6)
    assert value(schemas, "empty", framed(11, b"")) == Decoded('""', "avro", 11)
    key = Decoding(schemas=schemas).topic("orders")["key"].decoded(framed(2, b"\x0a"), ())
    assert key is not None
    assert replace(key, reading=None) == Decoded("5", "avro", 2)


def test_the_id_of_a_deleted_or_purged_version_still_serves(schemas: Schemas) -> None:
    assert value(schemas, "orders", framed(10, b"\x0a")) == Decoded("5", "avro", 10)


def test_a_subject_named_after_the_topic_and_the_type(schemas: Schemas) -> None:
    assert value(schemas, "orders", framed(4, b"\x02a")) == Decoded('{"name":"a"}', "avro", 4)


def test_the_schema_of_another_topic_needs_text_as_proof(schemas: Schemas) -> None:
    """Big-endian numbers begin like a frame: 8 bytes leave room for a short value by chance."""
    assert value(schemas, "copies", framed(1, b"\x10a letter")) == Decoded('{"name":"a letter"}', "avro", 1)
    assert value(schemas, "numbers", struct.pack(">q", 1 << 24 | 0x046162)) == Decoded(None, "raw")
    assert value(schemas, "numbers", framed(10, b"\x0a")) == Decoded(None, "raw")
    assert value(schemas, "numbers", framed(11, b"[any bytes in brackets]")).format == "raw"
    assert value(schemas, "copies", framed(6, b'{"a": 1}')) == Decoded('{"a":1}', "json-schema", 6)
    assert value(schemas, "copies", framed(6, b"5")) == Decoded(None, "raw")


@pytest.mark.parametrize(
    ("topic", "data", "schema_id", "reason"),
    [
        ("orders", framed(1, b"\x06ab"), 1, "not of the Avro schema: the value is cut off"),
        ("orders", framed(1, b"\x02ab"), 1, "bytes follow the value"),
        ("proto", framed(5, b"\x00\x0a"), 5, "not a message a.First"),
        ("proto", framed(5, b"\x02\x08"), 5, "no message at"),
        ("json", framed(6, b"{"), 6, "not JSON"),
        ("bad", framed(8, b"\x02a"), 8, "the schema is not JSON"),
        ("new", framed(9, b"\x02a"), 9, "schemas of the type THRIFT are not known"),
        ("orders", framed(77, b"\x02a"), 77, "no schema has the id 77"),
        ("orders", b"\x01\x02\xff", None, "no schema id is in front of it or in its headers"),
        ("orders", framed(3, b"\x02a"), 3, "the schema 3 is of no subject of this topic"),
    ],
)
def test_why_a_value_of_a_topic_with_a_schema_is_not_decoded(
    schemas: Schemas, topic: str, data: bytes, schema_id: int | None, reason: str
) -> None:
    found = value(schemas, topic, data)
    assert (found.text, found.format, found.schema_id) == (None, "raw", schema_id)
    assert reason in (found.reason or "")


def test_what_has_no_schema_needs_no_reason(schemas: Schemas) -> None:
    for data in (b"\x00", b"\x00\x00\x00\x00", framed(77, b"abc"), b"\xff" * 20, framed(1, b"\xff")):
        assert value(schemas, "plain", data) == Decoded(None, "raw")
    assert value(schemas, "orders", b'{"a":1}') == Decoded('{"a":1}', "json")


def test_ids_in_headers(schemas: Schemas) -> None:
    [version] = schemas.with_id(1)
    guid = UUID(version.guid)
    by_guid = [("x", None), ("__value_schema_id", b"\x01" + guid.bytes)]
    assert value(schemas, "any", b"\x02a", by_guid) == Decoded('{"name":"a"}', "avro", version.guid)
    by_id = [("__value_schema_id", b"\x00\x00\x00\x00\x05\x02\x02")]
    assert value(schemas, "any", b"\x08\x05", by_id) == Decoded('{"n":5}', "protobuf", 5)
    assert value(schemas, "any", b"\xff", [("__key_schema_id", b"\x01" + guid.bytes)]) == Decoded(None, "raw")
    last = [("__value_schema_id", b"\x00\x00\x00\x00\x09"), *by_guid]
    assert value(schemas, "any", b"\x02a", last).format == "avro"
    unknown = value(schemas, "any", b"\x02a", [("__value_schema_id", b"\x01" + bytes(16))])
    assert unknown == Decoded(None, "raw", str(UUID(int=0)), f"no schema has the id {UUID(int=0)}")
    for broken in (b"", b"\x01abc", b"\x07" * 17, None):
        assert value(schemas, "any", b"abc", [("__value_schema_id", broken)]) == Decoded('"abc"', "string")


def test_a_kind_that_is_asked_for_needs_no_subject(schemas: Schemas) -> None:
    assert value(schemas, "any", framed(1, b"\x02a"), kind="avro") == Decoded('{"name":"a"}', "avro", 1)
    found = value(schemas, "any", framed(1, b"\x02a"), kind="protobuf")
    assert found == Decoded(None, "raw", 1, "the schema 1 is not one of protobuf, but of avro")
    assert value(schemas, "any", b"abc", kind="avro").reason == "no schema id is in front of it or in its headers"
    assert value(schemas, "any", framed(77, b""), kind="avro").reason == "no schema has the id 77"


def test_contexts(tmp_path: Path) -> None:
    found = registry(
        tmp_path,
        schema("orders-value", 1, 1, '"long"'),
        schema(":.lab:trial-value", 1, 1, '"string"'),
        schema(":.a:x-value", 1, 2, '"long"'),
        schema(":.b:x-value", 1, 2, '"string"'),
        schema(":.b:y-value", 1, 3, '{"type": "array", "items": "T"}', references=[
            {"name": "T", "subject": "t-value", "version": 1}]),
        schema(":.b:t-value", 1, 4, '{"type": "fixed", "name": "T", "size": 1}'),
    )  # fmt: skip
    assert value(found, "orders", framed(1, b"\x02")) == Decoded("1", "avro", 1)
    assert value(found, "trial", framed(1, b"\x02a")) == Decoded('"a"', "avro", 1)
    assert "the id 2 means several schemas: in .a of cluster-a and .b of" in (
        value(found, "x", framed(2, b"")).reason or ""
    )
    assert value(found, "y", framed(3, b"\x02a\0")) == Decoded('["YQ=="]', "avro", 3)


def test_references(tmp_path: Path) -> None:
    def needs(*pairs: tuple[str, str]) -> list[dict[str, Any]]:
        return [{"name": name, "subject": subject, "version": 1} for name, subject in pairs]

    record = '{"type": "record", "name": "%s", "fields": [%s]}'
    found = registry(
        tmp_path,
        schema("low", 1, 1, record % ("Low", '{"name": "n", "type": "int"}')),
        schema("mid", 1, 2, record % ("Mid", '{"name": "low", "type": "Low"}'), references=needs(("Low", "low"))),
        schema("top-value", 1, 3, record % ("Top", '{"name": "m", "type": "Mid"}, {"name": "l", "type": "Low"}'),
            references=needs(("Mid", "mid"), ("Low", "low"))),
        schema("lost-value", 1, 4, '"long"', references=needs(("Gone", "gone"))),
        schema("circle-value", 1, 5, '"long"', references=needs(("Circle", "circle-value"))),
        deletion("low", 1),
    )  # fmt: skip
    assert value(found, "top", framed(3, b"\x02\x04")).text == '{"m":{"low":{"n":1}},"l":{"n":2}}'
    reason = value(found, "lost", framed(4, b"\x02")).reason or ""
    assert "the schema needs version 1 of gone, which is not there" in reason
    assert value(found, "circle", framed(5, b"\x02")).text == "1"


def from_files(folder: Path, named: SchemaOf, data: bytes, kind: str = "auto") -> Decoded:
    found = schemas_at(targets_at([folder]))
    decoding = Decoding(value_as=kind, schemas=found, schema_of={"orders": named})
    decoded = pickle.loads(pickle.dumps(decoding)).topic("orders")["value"].decoded(data, ())
    assert isinstance(decoded, Decoded)
    return replace(decoded, reading=None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "name.avsc").write_text(_NAME)
    (tmp_path / "pair.avsc").write_text(
        '{"type": "record", "name": "a.Pair", "fields": [{"name": "x", "type": "Name"}, {"name": "y", "type": "Name"}]}'
    )
    (tmp_path / "deep" / "all.proto").write_text('import "base.proto"; ' + _PROTO.replace("string x", "b.Base x"))
    (tmp_path / "base.proto").write_text('syntax = "proto3"; package b; message Base { int32 n = 1; }')
    (tmp_path / "any.json").write_text("{}")
    (tmp_path / "latin.avsc").write_bytes(b"\xff")
    return tmp_path


def test_schemas_of_files(folder: Path) -> None:
    pair = SchemaOf("pair.avsc")
    text = '{"x":{"name":"a"},"y":{"name":"b"}}'
    guid = UUID(int=7)
    assert from_files(folder, pair, b"\x02a\x02b") == Decoded(text, "avro")
    assert from_files(folder, pair, framed(5, b"\x02a\x02b")) == Decoded(text, "avro", 5)
    assert from_files(folder, pair, struct.pack(">bq", 0, 5) + b"\x02a\x02b") == Decoded(text, "avro", 5)
    glue = b"\x03\x00" + guid.bytes + b"\x02a\x02b"
    assert from_files(folder, pair, glue) == Decoded(text, "avro", str(guid))
    packed = b"\x03\x05" + guid.bytes + zlib.compress(b"\x02a\x02b")
    assert from_files(folder, pair, packed, "avro") == Decoded(text, "avro", str(guid))
    assert from_files(folder, SchemaOf("any.json"), b"[1]") == Decoded("[1]", "json-schema")
    assert from_files(folder, SchemaOf("deep/all.proto"), b"\x0a\x02\x08\x05") == Decoded('{"x":{"n":5}}', "protobuf")
    second = SchemaOf("deep/all.proto", "Second")
    assert from_files(folder, second, b"\x08\x05") == Decoded('{"n":5}', "protobuf")
    assert from_files(folder, second, framed(5, b"\x02\x02\x08\x05")) == Decoded('{"n":5}', "protobuf", 5)


def test_types_that_another_file_defines_inside(tmp_path: Path) -> None:
    """Avro's tools know all types of the files that they have read."""
    inner = {"type": "enum", "name": "Inner", "symbols": ["X"]}
    outer = {"type": "record", "name": "b.Outer", "fields": [{"name": "x", "type": {"type": "array", "items": inner}}]}
    (tmp_path / "types.avsc").write_text(json.dumps([{"type": "fixed", "name": "F", "size": 1}, outer]))
    fields = [{"name": "i", "type": "b.Inner"}, {"name": "f", "type": "F"}]
    (tmp_path / "user.avsc").write_text(json.dumps({"type": "record", "name": "U", "fields": fields}))
    assert from_files(tmp_path, SchemaOf("user.avsc"), b"\x00\x01").text == '{"i":"X","f":"AQ=="}'


@pytest.mark.slow
def test_what_the_schema_of_a_file_does_not_decode(folder: Path) -> None:
    found = from_files(folder, SchemaOf("pair.avsc"), b"\x02a")
    assert (found.format, found.reason) == ("raw", "not of the Avro schema: the value is cut off (byte 2)")
    assert "no file of a schema with the name" in (from_files(folder, SchemaOf("none.avsc"), b"").reason or "")
    bomb = b"\x03\x05" + bytes(16) + zlib.compress(bytes(100 * 2**20))
    assert from_files(folder, SchemaOf("name.avsc"), bomb).format == "raw"
    twice = from_files(folder, SchemaOf("name.avsc"), b"\x00")
    assert twice == Decoded('{"name":""}', "avro")
    codes = [(each.code, Path(each.location.path).name) for each in schemas_at(targets_at([folder])).findings]
    assert codes == [("file-unreadable", "latin.avsc")]


def test_a_value_that_can_be_read_in_two_ways_is_not_decoded(tmp_path: Path) -> None:
    (tmp_path / "all.avsc").write_text('{"type": "fixed", "name": "F", "size": 5}')
    (tmp_path / "list.avsc").write_text('{"type": "array", "items": "boolean"}')
    assert from_files(tmp_path, SchemaOf("all.avsc"), bytes(10)).format == "avro"
    twice = struct.pack(">bI", 0, 5) + b"\x00"
    assert from_files(tmp_path, SchemaOf("list.avsc"), twice) == Decoded("[]", "avro", 5)
    (tmp_path / "pair.avsc").write_text('{"type": "record", "name": "P", "fields": [{"name": "a", "type": "bytes"}, '
        '{"name": "b", "type": "bytes"}]}')  # fmt: skip
    both = b"\x00\x08\x00\x00\x00\x00"[:6]
    found = from_files(tmp_path, SchemaOf("pair.avsc"), both)
    assert found.text == json.dumps({"a": "", "b": "AAAAAA=="}, separators=(",", ":"))
