"""Protobuf: the parser of .proto files, the place of a message, and messages as JSON."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from format.decoding.plain import InvalidSchema, Undecodable
from format.decoding.proto_text import file_of
from format.decoding.protobuf import ProtobufSchema

_FIRST = b"\0"  # the place of the first message


def message(text: str, name: str = "Value") -> Message:
    """An empty message, by the descriptors of Google's own parser of JSON and its pool."""
    pool = DescriptorPool()
    pool.Add(file_of(text, "x.proto"))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()


def decoded(text: str, data: bytes) -> object:
    return json.loads(ProtobufSchema(text, {}).text_of(data))


EVERYTHING = """
// A file with much that does not count, and all that does.
syntax = "proto2"; /* a comment; with { brackets } */
package a.b;
import public "google/protobuf/timestamp.proto";
import weak 'google/protobuf/any' ".proto";
option java_package = "x.y" "z";
option (custom).part = { name: "}" list: [1, 2] };
message Value {
  option message_set_wire_format = false;
  option (custom) = -inf;
  reserved 2, 9 to 11, 50 to max;
  reserved "foo", 'bar';
  required int32 id = 1 [default = -0x10, deprecated = true, (my.option) = {a: [1]}];
  optional string message = 3 [json_name = "x[;]"];
  repeated .a.b.Value.Color colors = 4 [packed = true];
  optional group Part = 5 [lazy = true] { optional bytes group = 1; }
  map<string, .a.b.Other> by_name = 6;
  map < int32 , Value.Color > my_long_name = 7;
  oneof choice { option (o) = 1; string text = 8; Other other = 12; group Deep = 13 { optional int32 x = 1; } }
  enum Color { option allow_alias = true; reserved -10 to -8; RED = 0; CRIMSON = 0 [(v) = "x"]; BLUE = -5; };
  message Inner { message Inmost { optional double d = 1; } optional Inmost inmost = 1; extensions 4, 100 to 200; }
  optional google.protobuf.Timestamp at = 14;
  extensions 1000 to max [declaration = {number: 4}];
  extend Inner { optional int32 inside = 100; repeated group Many = 101 { optional int32 y = 1; } }
}
message Other {}
extend a.b.Value { optional sint64 outside = 1000; }
service S { rpc Call (stream Value) returns (Other) { option (x) = {y: 1}; } rpc B(Other) returns (stream Other); }
"""


def test_the_parser_reads_what_decides_how_bytes_are_read() -> None:
    file = file_of(EVERYTHING, "all.proto")
    assert (file.package, list(file.dependency)) == (
        "a.b",
        ["google/protobuf/timestamp.proto", "google/protobuf/any.proto"],
    )
    assert (list(file.public_dependency), list(file.weak_dependency)) == ([0], [1])
    value = file.message_type[0]
    assert {each.name: each.number for each in value.field} == {
        "id": 1, "message": 3, "colors": 4, "part": 5, "by_name": 6, "my_long_name": 7, "text": 8, "other": 12,
        "deep": 13, "at": 14,
    }  # fmt: skip
    assert [each.name for each in value.nested_type] == [
        "Part", "ByNameEntry", "MyLongNameEntry", "Deep", "Inner", "Many",
    ]  # fmt: skip
    assert [each.name for each in value.field if each.HasField("oneof_index")] == ["text", "other", "deep"]
    assert [(each.start, each.end) for each in value.extension_range] == [(1000, 2**29)]
    assert [(each.name, each.number) for each in value.enum_type[0].value] == [("RED", 0), ("CRIMSON", 0), ("BLUE", -5)]
    assert [each.extendee for each in (*value.extension, *file.extension)] == ["Inner", "Inner", "a.b.Value"]


def test_all_that_a_message_can_hold() -> None:
    schema = ProtobufSchema(EVERYTHING, {})
    data = bytes.fromhex(
        "08f6ffffffffffffffff01"  # id: -10
        "1a0161"  # message: a
        "220b00fbffffffffffffffff01"  # colors: RED, BLUE
        "2b0a02ff002c"  # part
        "32050a016b1200"  # by_name: k
        "3a0d080710fbffffffffffffffff01"  # my_long_name: 7 to BLUE
        "6b08016c"  # deep
        "72020805"  # at: 5 s
        "c03e05"  # the extension outside: -3
    )
    assert json.loads(schema.text_of(_FIRST + data)) == {
        "id": -10,
        "message": "a",
        "colors": ["RED", "BLUE"],
        "part": {"group": "/wA="},
        "by_name": {"k": {}},
        "my_long_name": {"7": "BLUE"},
        "deep": {"x": 1},
        "at": "1970-01-01T00:00:05Z",
        "[a.b.outside]": "-3",
    }


def test_a_message_is_found_by_its_place() -> None:
    text = """syntax = "proto3"; message A { message B { int32 b = 1; message C { int32 c = 1; } } int32 a = 1; }
        message D { int32 d = 1; }"""
    places = {b"\0": "a", b"\x02\x00": "a", b"\x02\x02": "d", b"\x04\x00\x00": "b", b"\x06\x00\x00\x00": "c"}
    for place, name in places.items():
        assert decoded(text, place + b"\x08\x05") == {name: 5}
    for place in (
        b"",
        b"\x02",
        b"\x02\x04",
        b"\x04\x00\x02",
        b"\x01",
        b"\x80\x80\x80\x80\x80\x80",
        b"\x7e" + bytes(80),
    ):
        with pytest.raises(Undecodable, match=r"place|no message at"):
            decoded(text, place + b"\x08\x05" * (place != b""))


_MAPS = (
    'syntax = "proto3"; message A { map<string, int32> m = 1; message B { int32 b = 1; } message C { string c = 1; } }'
)


def test_the_entries_of_maps_count_as_messages_or_not() -> None:
    """Java does not count them, Python does: what it means is clear where only one of the two can be read."""
    assert decoded(_MAPS, b"\x04\x00\x00\x08\x05") == {"b": 5}
    assert decoded(_MAPS, b"\x04\x00\x02\x08\x05") == {"b": 5}  # B, or with entries counted C
    assert decoded(_MAPS, b"\x04\x00\x04\x0a\x01x") == {"c": "x"}
    with pytest.raises(Undecodable, match=r"A\.C or A\.B|A\.B or A\.C"):
        decoded(_MAPS, b"\x04\x00\x02")
    explicit = """syntax = "proto3"; message A {
        message MEntry { option map_entry = true; string key = 1; int32 value = 2; }
        repeated MEntry m = 1; message B { int32 b = 1; } }"""
    assert decoded(explicit, b"\x04\x00\x02\x08\x05") == {"b": 5}
    assert decoded(explicit, b"\x00\x0a\x05\x0a\x01k\x10\x07") == {"m": {"k": 7}}


def test_a_descriptor_in_base64_is_a_schema_too() -> None:
    file = file_of(_MAPS, "any-name.proto")
    schema = ProtobufSchema(b64encode(file.SerializeToString()).decode(), {})
    assert json.loads(schema.text_of(b"\x04\x00\x02\x08\x05")) == {"b": 5}


def test_imports() -> None:
    text = 'syntax = "proto3"; package x; import "b.proto"; message A { b.B b = 1; google.type.Date day = 2; }'
    imports = {
        "b.proto": 'syntax = "proto3"; package x.b; import public "google/type/date.proto"; message B { int32 n = 1; }'
    }
    schema = ProtobufSchema(text, imports)
    assert json.loads(schema.text_of(b"\0\x0a\x02\x08\x05\x12\x02\x18\x07")) == {"b": {"n": 5}, "day": {"day": 7}}
    assert schema.names == ("x.A",)
    decimal = 'syntax = "proto3"; import "confluent/type/decimal.proto"; message A { confluent.type.Decimal d = 1; }'
    assert decoded(decimal, b"\0\x0a\x02\x18\x02") == {"d": {"scale": 2}}
    wrapper = ProtobufSchema('syntax = "proto3"; import public "b.proto";', imports)
    assert json.loads(wrapper.text_of(b"\0\x08\x05")) == {"n": 5}
    for missing in ('import "c.proto";', 'import "google/protobuf/none.proto";', 'import "google/os.proto";'):
        with pytest.raises(InvalidSchema, match="imports"):
            ProtobufSchema(f'syntax = "proto3"; {missing} message A {{}}', imports)
    circle = {"a.proto": 'import "b.proto";', "b.proto": 'import "a.proto";'}
    with pytest.raises(InvalidSchema):
        ProtobufSchema('import "a.proto"; message A {}', circle)


def test_a_message_without_a_place() -> None:
    text = 'syntax = "proto3"; package x; message A { int32 a = 1; } message B { int32 b = 1; }'
    assert ProtobufSchema(text, {}).bare_text_of(b"\x08\x05") == '{"a":5}'
    for name in ("B", "x.B"):
        assert ProtobufSchema(text, {}, name).bare_text_of(b"\x08\x05") == '{"b":5}'
    with pytest.raises(InvalidSchema, match="0 messages with the name C"):
        ProtobufSchema(text, {}, "C")


def test_proto3_presence_and_editions() -> None:
    text = """syntax = "proto3"; message Value { optional int32 a = 1; int32 b = 2; oneof c { string d = 3; }
        optional string e = 4; int32 _a = 5; }"""
    assert decoded(text, b"\0\x08\x00\x10\x00\x22\x00") == {"a": 0, "e": ""}
    edition = """edition = "2023"; option features.field_presence = IMPLICIT; message Value {
        int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; repeated int32 c = 3; }"""
    assert decoded(edition, b"\0\x08\x00\x10\x00\x1a\x02\x01\x02") == {"b": 0, "c": [1, 2]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "message",
        "message A {",
        "message A { int32 a; }",
        "message A { int32 a = x; }",
        "message A { int32 a = 0; }",
        "message A { int32 a = 99999999999; }",
        "message A { Missing a = 1; }",
        "message A { int32 a = 1; int32 a = 2; }",
        "message A { int32 a = 1 [; }",
        "message A { map<string a = 1; }",
        'syntax = "proto9"; message A {}',
        'edition = "1999"; message A {}',
        "enum E { A = 9999999999; }",
        'message A {} "',
        "message A {} /* no end",
        "message A {" * 500,
        "message A { group B = 1 {" * 100,
        "option (x) = {" * 1000,
        "()" * 100,
        "AAAA",
        "////",
        'syntax = "proto3"; import "a.proto"; import "a.proto"; message A {}',
    ],
)
def test_schemas_that_are_none(text: str) -> None:
    with pytest.raises(InvalidSchema):
        ProtobufSchema(text, {"a.proto": 'import "a.proto";'})


def test_what_is_no_message() -> None:
    text = """syntax = "proto3"; import "google/protobuf/any.proto";
        message A { string a = 1; A b = 2; google.protobuf.Any c = 3; }"""
    for data in (b"\x0a", b"\x0a\x05a", b"\x0a\x01\xff", b"\x00", b"\xff" * 12):
        with pytest.raises(Undecodable, match="not a message A"):
            decoded(text, _FIRST + data)
    deep = b""
    for _ in range(120):
        deep = b"\x12" + _varint(len(deep)) + deep
    with pytest.raises(Undecodable, match="not a message A"):
        decoded(text, _FIRST + deep)


@pytest.mark.parametrize("url", ["type.googleapis.com/Nope", "type.googleapis.com/A", "nothing", "/", ""])
def test_an_any_that_cannot_be_opened_is_shown_by_its_fields(url: str) -> None:
    """Its type is not in the schema, or its bytes are no message of this type."""
    text = """syntax = "proto3"; import "google/protobuf/any.proto";
        message A { string a = 1; google.protobuf.Any b = 2; }"""
    packed = (b"\x0a" + _varint(len(url)) + url.encode()) * bool(url) + b"\x12\x02\xff\xfe"
    data = _FIRST + b"\x0a\x01x\x12" + _varint(len(packed)) + packed
    shown = {"type_url": url, "value": "//4="} if url else {"value": "//4="}
    assert decoded(text, data) == {"a": "x", "b": shown}
    leaves = ProtobufSchema(text, {}).leaves_of(data, 0, is_framed=True)
    assert [each.path for each in leaves] == [(b"a",)] + [(b"b",)] * len(shown)


def test_a_string_that_is_not_utf8_is_not_shown_as_python_writes_bytes() -> None:
    text = 'syntax = "proto2"; message Value { optional string s = 1; map<string, Value> m = 2; }'
    for string in (b"\xff\xfe", b"\xff'", b"b'\xff"):
        field = bytes([0x0A, len(string)]) + string
        for content in (field, bytes([0x12, len(field)]) + field):
            with pytest.raises(Undecodable, match=r"not UTF-8|utf-8"):
                decoded(text, b"\0" + content)
    assert decoded(text, b"\0\x0a\x05b'\\x'") == {"s": "b'\\x'"}


def test_a_value_that_would_take_much_memory_is_refused() -> None:
    """A message of a thousand fields takes thousands of bytes for each two bytes of such a value."""
    fields = "".join(f"optional int64 f{number} = {number};" for number in range(2, 1002))
    text = f'syntax = "proto3"; message A {{ repeated B b = 1; }} message B {{ {fields} }}'
    with pytest.raises(Undecodable, match="too large to be decoded"):
        decoded(text, _FIRST + b"\x0a\x00" * 200_000)
    assert decoded(text, _FIRST + b"\x0a\x00" * 2) == {"b": [{}, {}]}


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


_SCHEMA = ProtobufSchema(EVERYTHING, {})


@given(st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_decoded_or_not_and_nothing_else(content: bytes) -> None:
    for data in (content, _FIRST + content):
        try:
            json.loads(_SCHEMA.text_of(data))
        except Undecodable:
            continue


@given(st.text(alphabet='messagenuoptirdxtl{}[]();="<>,.123 \n/*', max_size=60))
@settings(max_examples=300, deadline=None)
def test_random_text_is_a_schema_or_not_and_nothing_else(text: str) -> None:
    for each in (text, f'syntax = "proto3"; message A {{ {text} }}'):
        try:
            ProtobufSchema(each, {})
        except InvalidSchema:
            continue


def test_the_json_is_that_of_googles_own_mapping() -> None:
    text = """syntax = "proto3"; message Value { int64 a = 1; uint64 b = 2; double c = 3; float d = 4; bool e = 5;
        bytes some_bytes = 6; repeated fixed32 g = 7; Value h = 8; }"""
    value = message(text)
    json_format.ParseDict(
        {
            "a": -(2**63),
            "b": 2**64 - 1,
            "c": "NaN",
            "d": 0.1,
            "e": True,
            "some_bytes": "AP8=",
            "g": [1, 2],
            "h": {"e": True},
        },
        value,
    )
    found = decoded(text, _FIRST + value.SerializeToString())
    assert found == json_format.MessageToDict(value, preserving_proto_field_name=True)
    assert json_format.ParseDict(found, message(text)) is not None
