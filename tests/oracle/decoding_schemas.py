"""The schemas of ``decoding_trial``: families of Avro, Protobuf and JSON Schema, each with several versions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Family:
    """A schema and how its versions come about, the schemas that it refers to, and the messages that are written.

    ``text`` returns the schema of a version from 0 on. Without ``evolves`` there is one version.
    """

    name: str
    kind: str
    text: Callable[[int], str]
    references: dict[str, str] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    evolves: bool = True
    in_header: bool = False

    def version_count(self, most: int) -> int:
        """How many versions there are, of so many."""
        return most if self.evolves else 1


def _record(name: str, *fields: dict[str, Any], **more: Any) -> Callable[[int], str]:
    """A record that gets a field with a default in each version, and loses one in the last."""

    def text(version: int) -> str:
        own = list(fields)
        own += [{"name": f"added{n}", "type": ["null", "string", "long"], "default": None} for n in range(version)]
        if version == 4:
            del own[len(fields) - 1]
        return json.dumps({"type": "record", "name": name, **more, "fields": own})

    return text


def _always(schema: Any) -> Callable[[int], str]:
    return lambda version: json.dumps(schema)


def _of(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def _logical(kind: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": logical, **more}


_STATUS = {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SHIPPED"]}
_ADDRESS = json.dumps(
    {"type": "record", "name": "com.acme.Address", "fields": [_of("street", "string"), _of("number", "int")]}
)
_CUSTOMER = json.dumps(
    {
        "type": "record",
        "name": "com.acme.Customer",
        "fields": [_of("name", "string"), _of("address", ["null", "com.acme.Address"])],
    }
)
AVRO = (
    Family("avro-flat", "avro", _record("Flat", *(_of(each, each) for each in (
        "boolean", "int", "long", "float", "double", "bytes", "string", "null")))),
    Family("avro-nested", "avro", _record(
        "Nested", _of("items", {"type": "array", "items": {
            "type": "record", "name": "Item", "fields": [_of("sku", "string"), _of("count", "int")]}}),
        _of("prices", {"type": "map", "values": {"type": "array", "items": "double"}}), namespace="com.acme")),
    Family("avro-unions", "avro", _record(
        "Unions", _of("status", _STATUS), _of("any", [
            "null", "boolean", "long", "double", "string", "bytes", "Status",
            {"type": "record", "name": "Left", "fields": [_of("left", "long")]},
            {"type": "record", "name": "Right", "fields": [_of("right", "string")]},
            {"type": "array", "items": "long"}, {"type": "map", "values": "string"}]))),
    Family("avro-logical", "avro", _record(
        "Logical", _of("price", _logical("bytes", "decimal", precision=9, scale=2)),
        _of("fixed_price", _logical("fixed", "decimal", precision=18, scale=5, name="Price", size=8)),
        _of("whole", _logical("bytes", "decimal", precision=9, scale=0)),
        _of("id", _logical("string", "uuid")), _of("day", _logical("int", "date")),
        _of("time_ms", _logical("int", "time-millis")), _of("time_us", _logical("long", "time-micros")),
        _of("at_ms", _logical("long", "timestamp-millis")), _of("at_us", _logical("long", "timestamp-micros")),
        _of("local_ms", _logical("long", "local-timestamp-millis")),
        _of("local_us", _logical("long", "local-timestamp-micros")),
        _of("maybe", ["null", _logical("long", "timestamp-millis")]))),
    Family("avro-tree", "avro", _record(
        "Tree", _of("value", "long"), _of("children", {"type": "array", "items": "Tree"}),
        _of("parent", ["null", "Tree"]))),
    Family("avro-names", "avro", _record(
        "a.b.Outer", _of("inner", {"type": "record", "name": "Inner", "fields": [_of("x", "int")]}),
        _of("same", "Inner"), _of("full", "a.b.Inner"),
        _of("other", {"type": "fixed", "name": "Hash", "namespace": "c", "size": 4}), _of("again", "c.Hash"))),
    Family("avro-references", "avro", _record(
        "com.acme.Order", _of("id", "long"), _of("customer", "com.acme.Customer"),
        _of("ship_to", ["null", "com.acme.Address"])),
        references={"com.acme.Address": _ADDRESS, "com.acme.Customer": _CUSTOMER}),
    Family("avro-header", "avro", _record("Header", _of("text", "string")), in_header=True),
    Family("avro-string", "avro", _always({"type": "string"}), evolves=False),
    Family("avro-long", "avro", _always({"type": "long"}), evolves=False),
    Family("avro-bytes", "avro", _always({"type": "bytes"}), evolves=False),
    Family("avro-array", "avro", _always({"type": "array", "items": ["null", "string"]}), evolves=False),
    Family("avro-union", "avro", _always(["null", "long", "string"]), evolves=False),
)  # fmt: skip


def _proto(head: str, body: str, *, label: str = "", messages: str = "") -> Callable[[int], str]:
    """A file whose first message gets fields in each version, and loses its first one at the end."""

    def text(version: int) -> str:
        added = "".join(
            f"{label}string added{n} = {100 + n}; repeated sint64 many{n} = {200 + n};\n" for n in range(version)
        )
        own = body if version < 4 else body.split(";", 1)[1]
        return f"{head}\nmessage Value {{\n{own}\n{added}}}\n{messages}"

    return text


_PROTO3 = 'syntax = "proto3";\npackage acme.shop;\n'
PROTOBUF = (
    Family("proto-scalars", "protobuf", _proto(_PROTO3, "\n".join(
        f"{kind} f_{kind} = {number}; repeated {kind} r_{kind} = {number + 30};" for number, kind in enumerate((
            "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
            "sfixed32", "sfixed64", "bool", "string", "bytes"), 1))), messages=(), ),
    Family("proto-nested", "protobuf", _proto(_PROTO3, """
        string id = 1; Inner inner = 2; repeated Inner many = 3; map<string, Inner> by_name = 4;
        map<int32, double> numbers = 5; map<bool, bytes> flags = 6;
        message Inner { int64 x = 1; repeated string words = 2; Deep deep = 3; message Deep { bool y = 1; } }""")),
    Family("proto-oneof", "protobuf", _proto(_PROTO3, """
        string id = 1; oneof choice { string text = 2; int64 number = 3; Inner inner = 4; bytes raw = 5; }
        optional int32 maybe = 6; optional string word = 7; message Inner { optional bool b = 1; }""")),
    Family("proto-known", "protobuf", _proto(_PROTO3 + "".join(
        f'import "google/protobuf/{each}.proto";\n' for each in (
            "timestamp", "duration", "struct", "any", "wrappers", "field_mask", "empty")), """
        string id = 1; google.protobuf.Timestamp at = 2; google.protobuf.Duration took = 3;
        google.protobuf.Struct more = 4; google.protobuf.Any any = 5; google.protobuf.Int64Value count = 6;
        google.protobuf.StringValue name = 7; google.protobuf.FieldMask mask = 8; google.protobuf.Empty none = 9;
        google.protobuf.Value value = 10; google.protobuf.ListValue list = 11; google.protobuf.BoolValue yes = 12;
        repeated google.protobuf.Timestamp times = 13;""")),
    Family("proto-two", "protobuf", _proto('syntax = "proto2";\npackage acme.old;\n', """
        optional string id = 1 [default = "none: \\"x\\" }"]; required int32 needed = 2;
        repeated int32 packed = 3 [packed = true]; optional group Part = 4 { optional string name = 1; } optional Color color = 5 [default = RED];
        enum Color { option allow_alias = true; RED = 0; CRIMSON = 0; BLUE = -5; }
        reserved 50 to 60, 70; reserved "old";
        extensions 1000 to max;""", label="optional ",
        messages="extend Value { optional string note = 1000; optional int64 number = 1001; }")),
    Family("proto-import", "protobuf", _proto(
        _PROTO3 + 'import "acme/common.proto";\nimport public "acme/money.proto";\n', """
        string id = 1; common.Person person = 2; .acme.common.Person.Kind kind = 3; acme.Money price = 4;"""),
        references={
            "acme/money.proto": 'syntax = "proto3"; package acme; message Money { int64 units = 1; string code = 2; }',
            "acme/common.proto": 'syntax = "proto3"; package acme.common; import "acme/money.proto"; message Person { '
            "string name = 1; acme.Money owes = 2; Kind kind = 3; enum Kind { UNKNOWN = 0; FRIEND = 1; } }",
        }),
    Family("proto-messages", "protobuf", _proto(_PROTO3, """
        string id = 1; message First { int32 a = 1; } message Second { string b = 1; message Third { bool c = 1; } }
        """, messages="message Other { string name = 1; map<string, string> tags = 2; message In { int64 n = 1; } }"),
        messages=("acme.shop.Value", "acme.shop.Value.Second", "acme.shop.Value.Second.Third", "acme.shop.Other",
                  "acme.shop.Other.In")),
    Family("proto-tree", "protobuf", _proto(_PROTO3, """
        string id = 1; Value left = 2; Value right = 3; map<string, Value> more = 4;""")),
    Family("proto-header", "protobuf", _proto(_PROTO3, "string id = 1; int32 n = 2;"), in_header=True),
)  # fmt: skip
PROTOBUF = tuple(
    Family(
        each.name, each.kind, each.text, each.references,
        each.messages or (("acme.old" if each.name == "proto-two" else "acme.shop") + ".Value",),
        each.evolves, each.in_header,
    )
    for each in PROTOBUF
)  # fmt: skip


def _object(title: str, **properties: Any) -> Callable[[int], str]:
    def text(version: int) -> str:
        own = properties | {f"added{n}": {"type": "string"} for n in range(version)}
        return json.dumps(
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "title": title,
                "type": "object",
                "properties": own,
            }
        )

    return text


_STREET = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Address",
        "type": "object",
        "properties": {"street": {"type": "string"}, "number": {"type": "integer"}},
    }
)
JSON_SCHEMAS = (
    Family("json-flat", "json-schema", _object("Flat", **{
        each: {"type": each} for each in ("string", "integer", "number", "boolean", "null")})),
    Family("json-nested", "json-schema", _object("Nested", list={"type": "array", "items": {"type": "number"}}, inner={
        "type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}})),
    Family("json-references", "json-schema", _object("Ref", address={"$ref": "address.json"}),
        references={"address.json": _STREET}),
    Family("json-header", "json-schema", _object("Header", text={"type": "string"}), in_header=True),
    Family("json-array", "json-schema", _always({
        "title": "List", "type": "array", "items": {"type": "integer"}}), evolves=False),
    Family("json-string", "json-schema", _always({"title": "Text", "type": "string"}), evolves=False),
    Family("json-number", "json-schema", _always({"title": "Number", "type": "number"}), evolves=False),
    Family("json-wide", "json-schema", _object("Wide", **{f"field{n}": {"type": "string"} for n in range(40)})),
)  # fmt: skip
