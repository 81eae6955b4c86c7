"""Fields that are kept of Avro and Protobuf values: readers of the original schema read them; nothing else is left."""

from __future__ import annotations

import io
import json
import math
import zlib
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any
from uuid import UUID

import fastavro
import pytest
from google.protobuf import (
    any_pb2,
    duration_pb2,
    field_mask_pb2,
    json_format,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from format.decoding.decoder import Decoding
from format.decoding.proto_text import file_of
from format.decoding.schemas import SchemaOf, Schemas
from format.verbs.redact.fields import FieldRedaction, Replaced, field_paths
from format.verbs.redact.replacements import Mode, Redactor
from tests.format.decoding.test_recorded import SAMPLES, recorded_schemas

HASH, FILL = Redactor(Mode.HASH, b"k" * 16), Redactor(Mode.FILL)


def replaced(
    files: dict[str, str], content: bytes, keep: list[str], redactor: Redactor = HASH, **decoding: str
) -> Replaced:
    """A value of the topic ``t`` by the only file, but for the fields to keep."""
    [name] = files
    asked = Decoding(schemas=Schemas(files=files), schema_of={"t": SchemaOf(name)}, **decoding)
    found = FieldRedaction(field_paths(keep), redactor, asked, "t").replaced("value", content, ())
    assert len(found.content) == len(content)
    return found


# -- Avro ----------------------------------------------------------------------------------------------------

_ADDRESS = {"type": "record", "name": "Address", "fields": [
    {"name": "city", "type": "string"}, {"name": "country", "type": "string"}]}  # fmt: skip
_FIELDS: dict[str, Any] = {
    "name": "string",
    "home": _ADDRESS,
    "others": {"type": "array", "items": ["null", "Address"]},
    "labels": {"type": "map", "values": "string"},
    "by_name": {"type": "map", "values": "Address"},
    "status": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]},
    "is_paid": "boolean",
    "small": "int",
    "large": "long",
    "negative": "long",
    "single": "float",
    "double": "double",
    "raw": "bytes",
    "hash": {"type": "fixed", "name": "Hash", "size": 20},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    "id": {"type": "string", "logicalType": "uuid"},
    "day": {"type": "int", "logicalType": "date"},
    "clock": {"type": "int", "logicalType": "time-millis"},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "none": ["null", "string"],
}
_SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": name, "type": kind} for name, kind in _FIELDS.items()],
}
_VALUE = {
    "name": "Ana Müller of nowhere",
    "home": {"city": "Winterthur", "country": "Switzerland"},
    "others": [None, {"city": "Reykjavik", "country": "Iceland-"}],
    "labels": {"environment": "production"},
    "by_name": {"holidays": {"city": "Lugano-Paradiso", "country": "Ticino--"}},
    "status": "PAID",
    "is_paid": True,
    "small": 4711,
    "large": 2**62 + 12345,
    "negative": -(10**12),
    "single": -1.5,
    "double": 2.5e100,
    "raw": b"some raw bytes",
    "hash": b"twenty bytes of fixed",
    "price": Decimal("-1234567.89"),
    "id": UUID("12345678-9abc-def0-1234-56789abcdef0"),
    "day": date(9999, 12, 31),
    "clock": time(23, 59, 59, 999000),
    "at": datetime(1, 1, 1, tzinfo=UTC),
    "none": None,
}
_VALUE["hash"] = b"twenty bytes of fixe"


def avro(value: Any = _VALUE, schema: Any = _SCHEMA) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read_avro(content: bytes, schema: Any = _SCHEMA) -> Any:
    return fastavro.schemaless_reader(io.BytesIO(content), fastavro.parse_schema(schema), None)


@pytest.mark.parametrize("redactor", [HASH, FILL])
@pytest.mark.parametrize("frame", [b"", b"\0\0\0\0\7", b"\0" + bytes(7) + b"\7", b"\3\0" + bytes(range(16))])
def test_every_type_of_avro(redactor: Redactor, frame: bytes) -> None:
    keep = ["home.country", "others.country", "by_name.holidays.country", "small"]
    found = replaced({"o.avsc": json.dumps(_SCHEMA)}, frame + avro(), keep, redactor)
    assert not found.is_whole, found.reason
    assert found.content.startswith(frame)
    read = read_avro(found.content[len(frame) :])
    assert read["home"]["country"] == "Switzerland"
    assert [each and each["country"] for each in read["others"]] == [None, "Iceland-"]
    assert read["by_name"]["holidays"]["country"] == "Ticino--"
    assert read["small"] == 4711
    assert read["none"] is None
    assert read["negative"] < 0 < read["large"]
    assert -2 < read["single"] < 0 < read["double"] < 2
    assert read["price"] < 0
    assert len(read["price"].as_tuple().digits) == 9
    assert isinstance(read["id"], UUID)
    assert {type(read[name]) for name in ("day", "clock", "at")} == {date, time, datetime}
    same = {name for name, each in read.items() if each == _VALUE[name]} - {"status", "is_paid"}
    assert same == {"small", "none"}
    gone = (b"Ana", b"Winterthur", b"Reykjavik", b"environment", b"production", b"Lugano", b"some raw", b"twenty")
    assert not [each for each in gone if each in found.content]
    for name in ("large", "negative", "double", "day", "clock", "at", "price"):
        assert avro(_VALUE[name], _FIELDS[name]) not in found.content, name


def test_equal_parts_of_avro_stay_equal() -> None:
    files = {"o.avsc": '{"type": "array", "items": "string"}'}
    first, second, other = read_avro(
        replaced(files, avro(["a text", "a text", "no text"], {"type": "array", "items": "string"}), ["x"]).content,
        {"type": "array", "items": "string"},
    )
    assert first == second != other


def test_what_names_a_length_that_is_false_is_replaced_whole() -> None:
    """The size of a block is a number that no reader needs: anything could stand there."""
    files = {"o.avsc": '{"type": "array", "items": "string"}'}
    honest, false = b"\x01\x0e\x0csecret\0", b"\x01\x7e\x0csecret\0"
    assert read_avro(false, {"type": "array", "items": "string"}) == ["secret"]
    assert not replaced(files, honest, ["x"]).is_whole
    found = replaced(files, false, ["x"])
    assert found.is_whole
    assert found.reason == "a block of items has another size than it says"
    padded = replaced({"o.avsc": '"int"'}, b"\x82\x80\x80\x80\x80\x80\x00", ["x"])
    assert (padded.is_whole, padded.reason) == (True, "a number is written in more bytes than it needs")


def test_what_is_compressed_is_replaced_whole() -> None:
    packed = b"\3\5" + bytes(16) + zlib.compress(avro("a text", "string"))
    found = replaced({"o.avsc": '"string"'}, packed, ["x"])
    assert (found.is_whole, found.reason) == (True, "it is compressed")
    assert found.content == HASH.replaced(packed)


@pytest.mark.parametrize("kind", ["raw", "string", "json", "long"])
def test_no_field_is_kept_of_what_was_asked_to_be_something_else(kind: str) -> None:
    content = avro()
    found = replaced({"o.avsc": json.dumps(_SCHEMA)}, content, ["small"], value_as=kind)
    assert found.is_whole
    assert found.content == HASH.replaced(content)


# -- Protobuf ------------------------------------------------------------------------------------------------

_PROTO = """syntax = "proto2"; package a;
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/any.proto"; import "google/protobuf/wrappers.proto";
import "google/protobuf/field_mask.proto";
message Value {
  required string name = 1; optional Address home = 2; repeated Address others = 3; map<string, Address> by_name = 4;
  map<int32, string> by_number = 5; optional group Part = 6 { optional string code = 1; optional string free = 2; }
  repeated int64 packed = 7 [packed = true]; repeated double doubles = 8; optional Color color = 9;
  optional sint32 zigzag = 10; optional fixed64 eight = 11; optional sfixed32 four = 12; optional bool yes = 13;
  optional bytes raw = 14; optional google.protobuf.Timestamp at = 15; optional google.protobuf.Duration took = 16;
  optional google.protobuf.Struct more = 17; optional google.protobuf.Any any = 18; optional int32 minus = 19;
  optional google.protobuf.StringValue text = 20; optional google.protobuf.FieldMask mask = 21;
  enum Color { RED = 0; BLUE = -5; GREEN = 300; }
  extensions 1000 to max;
}
message Address { optional string city = 1; optional string country = 2; }
extend Value { optional string note = 1000; }
"""
_JSON = {
    "name": "Ana of nowhere",
    "home": {"city": "Winterthur", "country": "Switzerland"},
    "others": [{"city": "Reykjavik", "country": "Iceland-"}],
    "by_name": {"holidays": {"city": "Lugano-Paradiso", "country": "Ticino--"}},
    "by_number": {"77777": "a text of a number"},
    "part": {"code": "code of a group", "free": "free text of a group"},
    "packed": ["1", "-1", str(2**62)],
    "doubles": [1.5, -2.5e200],
    "color": "BLUE",
    "zigzag": -70000,
    "eight": str(2**60),
    "four": -7777777,
    "yes": True,
    "raw": "c29tZSByYXcgYnl0ZXM=",
    "at": "9999-12-31T23:59:59.999999999Z",
    "took": "-12.500s",
    "more": {"kept": "kept text", "secret": ["a secret", 1.5, None, {"deep": True}]},
    "any": {"@type": "type.googleapis.com/a.Address", "city": "Lausanne-Ouchy", "country": "Vaud----"},
    "minus": -5,
    "text": "a wrapped text",
    "mask": "oneField,other.field",
    "[a.note]": "a note of an extension",
}


def test_every_type_of_protobuf() -> None:
    pool = DescriptorPool()
    for known in (timestamp_pb2, duration_pb2, struct_pb2, any_pb2, wrappers_pb2, field_mask_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file_of(_PROTO, "o.proto"))
    value = GetMessageClass(pool.FindMessageTypeByName("a.Value"))()
    json_format.ParseDict(_JSON, value, descriptor_pool=pool)
    unknown = b"\xba\x3e\x0esecret unknown"[:2] + b"\x0esecret unknown" + b"\xc0\x3e\x8f\xf9\x20"
    content = value.SerializeToString() + unknown
    keep = ["home.country", "others.country", "by_name.holidays.country", "part.code", "more.kept", "any.country"]
    for frame, redactor in ((b"", HASH), (b"\0\0\0\0\7\0", HASH), (b"\0\0\0\0\7\0", FILL)):
        found = replaced({"o.proto": _PROTO}, frame + content, keep, redactor)
        assert not found.is_whole, found.reason
        assert found.content.startswith(frame)
        again = type(value)()
        again.ParseFromString(found.content[len(frame) :])
        read = json_format.MessageToDict(again, preserving_proto_field_name=True, descriptor_pool=pool)
        assert read.keys() == _JSON.keys()
        assert read["home"]["country"] == "Switzerland"
        assert read["others"][0]["country"] == "Iceland-"
        assert read["by_name"]["holidays"]["country"] == "Ticino--"
        assert read["part"]["code"] == "code of a group"
        assert read["more"]["kept"] == "kept text"
        assert read["any"]["country"] == "Vaud----"
        assert read["zigzag"] < 0
        assert read["minus"] < 0
        assert read["took"].startswith("-")
        assert all(math.isfinite(each) for each in read["doubles"])
        same = {name for name, each in read.items() if each == _JSON[name]}
        assert same <= {"color", "yes"}
        gone = [b"Ana", b"Winterthur", b"Reykjavik", b"Lugano", b"a text", b"free text", b"some raw", b"secret",
                b"deep", b"Lausanne", b"wrapped", b"one_field", b"a note", b"\x8f\xf9\x20"]  # fmt: skip
        assert not [each for each in gone if each in found.content]


def test_a_message_that_nobody_can_parse_is_replaced_whole() -> None:
    found = replaced({"o.proto": _PROTO}, b"\x0a\x03Ana\x13", ["name"])
    assert found.is_whole
    assert "not a message a.Value" in (found.reason or "")


# -- values of Confluent's serializers -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Schemas:
    return recorded_schemas(tmp_path_factory.mktemp("registry"))


def _parts(value: Any, keep: set[str], *, is_kept: bool = False) -> Iterator[tuple[bool, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _parts(each, keep, is_kept=is_kept or name in keep or name == "@type")
    elif isinstance(value, list):
        for each in value:
            yield from _parts(each, keep, is_kept=is_kept)
    elif isinstance(value, str):
        yield is_kept, value


def test_recorded_values(schemas: Schemas) -> None:
    """Top-level fields are kept at random; the redacted values decode, also those with the schema id in a header."""
    chance = Random(5)
    decoding = Decoding(schemas=schemas)
    kept_count = 0
    for each in SAMPLES:
        headers = [(name, b64decode(value)) for name, value in each["headers"]]
        content, topic = b64decode(each["value"]), each["topic"]
        decoder = decoding.topic(topic)
        before = decoder["value"].decoded(content, headers)
        assert before is not None
        if before.format == "json-schema":
            continue
        mine = json.loads(before.text or "")
        names = sorted(mine) if isinstance(mine, dict) else []
        keep = {name for name in names if chance.random() < 0.4 and "." not in name and name}
        fields = FieldRedaction(field_paths(keep), chance.choice([HASH, FILL]), decoding, topic)
        found = fields.replaced("value", content, headers)
        assert not found.is_whole, (topic, found.reason)
        assert found.headers == tuple(name for name, _ in headers)
        after = decoder["value"].decoded(found.content, headers)
        assert after is not None
        assert after.text is not None, after.reason
        theirs = json.loads(after.text)
        assert json.dumps([mine[name] for name in keep]) == json.dumps([theirs[name] for name in keep])
        kept_count += len(keep)
        parts = list(_parts(mine, keep))
        kept = "\0".join(text for is_kept, text in parts if is_kept)
        for is_kept, text in parts:
            is_gone = is_kept or len(text.encode()) < 6 or text in kept or text.encode() not in found.content
            assert is_gone, (topic, text)
    assert kept_count > 100


def test_any_bytes(schemas: Schemas) -> None:
    """Values with bytes changed are replaced in part or as a whole, at the same length, and nothing else happens."""
    chance = Random(6)
    decoding = Decoding(schemas=schemas, value_as="auto")
    samples = [each for each in SAMPLES if not each["headers"]]
    whole = 0
    for _ in range(1500):
        each = chance.choice(samples)
        content = bytearray(b64decode(each["value"]))
        for _ in range(chance.randrange(1, 4)):
            if len(content) > 6:
                content[chance.randrange(5, len(content))] = chance.randrange(256)
        fields = FieldRedaction(field_paths(["id"]), HASH, decoding, each["topic"])
        found = fields.replaced("value", bytes(content), ())
        assert len(found.content) == len(content)
        whole += found.is_whole
    assert 50 < whole < 1450


def test_without_schemas() -> None:
    fields = FieldRedaction(field_paths(["id"]), HASH, Decoding(), "t")
    assert fields.replaced("key", b"\0\0\0\0\7\2a", ()) == Replaced(HASH.replaced(b"\0\0\0\0\7\2a"), True)
