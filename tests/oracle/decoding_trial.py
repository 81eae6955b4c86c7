"""Values written by Confluent's serializers, decoded from a log and held against what their deserializers return.

    pip install 'confluent-kafka[avro,protobuf,json]' grpcio-tools
    python -m tests.oracle.decoding_trial [--values 100000] [--raw-topics 1000] [--seed 1] [--keep FILE]

The registry is the mock of confluent-kafka. What it holds is written as a schema registry writes its topic
(schema-registry storage SchemaKey and SchemaValue), in two replicas; one subject of each kind is deleted. The trial
prints how many values of each schema are equal. Then it decodes topics that nobody wrote with a schema. ``--keep``
writes some values of each schema for the tests that must do without the serializers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import struct
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry._sync.mock_schema_registry_client import MockSchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from format.decoding.decoder import Decoding
from format.decoding.schemas import find_schemas
from format.node.target import targets_at
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.oracle.decoding_schemas import AVRO, JSON_SCHEMAS, PROTOBUF, Family

_VERSIONS = 5
_KEPT_EACH = 3


@dataclass
class Written:
    """A value as a serializer wrote it, and how to know whether JSON text says what its deserializer returns."""

    family: str
    topic: str
    data: bytes
    headers: list[tuple[str, bytes | None]]
    expected: Any
    is_same: Callable[[Any], bool]
    #: What the deserializer returns of bytes and headers.
    read: Callable[[bytes, list[tuple[str, bytes | None]]], Any]


@dataclass
class Registered:
    """The mock registry, and the values of each family."""

    client: Any = field(default_factory=lambda: MockSchemaRegistryClient({"url": "mock://trial"}))
    written: list[Written] = field(default_factory=list)
    #: The texts of .proto files by what the serializer registers for them: a registry keeps text.
    texts: dict[str, str] = field(default_factory=dict)


# -- values ----------------------------------------------------------------------------------------------------------


def random_text(chance: random.Random) -> str:
    """Text with every kind of character that JSON escapes."""
    return "".join(chance.choice('abc xyzÄ€漢😀"\\\n\t\x01\x7f/') for _ in range(chance.randrange(12)))


def _short(name: str) -> str:
    return name.rpartition(".")[2]


class AvroValues:
    """Random values of a schema, for fastavro's writer."""

    def __init__(self, chance: random.Random, named: dict[str, Any]) -> None:
        self._chance = chance
        self._named = named

    def of(self, schema: Any, depth: int = 0) -> Any:
        """A value of a schema."""
        chance = self._chance
        if isinstance(schema, list):
            return self.of(schema[0] if depth > 6 else chance.choice(schema), depth)
        if isinstance(schema, str):
            if _short(schema) in self._named:
                return self.of(self._named[_short(schema)], depth)
            schema = {"type": schema}
        kind, logical = schema["type"], schema.get("logicalType")
        if isinstance(kind, (dict, list)) or _short(kind) in self._named:
            return self.of(kind, depth)
        if kind in ("record", "enum", "fixed"):
            self._named.setdefault(_short(schema["name"]), schema)
        if logical is not None:
            return self._logical(schema, logical)
        count = chance.randrange(4) if depth < 6 else 0
        makers: dict[str, Callable[[], Any]] = {
            "null": lambda: None,
            "boolean": lambda: chance.random() < 0.5,
            "int": lambda: chance.choice((0, -1, 2**31 - 1, -(2**31), chance.randrange(1000))),
            "long": lambda: chance.choice((0, -1, 2**63 - 1, -(2**63), chance.randrange(10**12))),
            "float": lambda: struct.unpack("<f", struct.pack("<f", chance.uniform(-1e6, 1e6)))[0],
            "double": lambda: chance.choice((0.1, -0.0, 1e300, float("inf"), float("nan"), chance.random())),
            "bytes": lambda: chance.randbytes(chance.randrange(20)),
            "string": lambda: random_text(chance),
            "fixed": lambda: chance.randbytes(schema["size"]),
            "enum": lambda: chance.choice(schema["symbols"]),
            "array": lambda: [self.of(schema["items"], depth + 1) for _ in range(count)],
            "map": lambda: {random_text(chance): self.of(schema["values"], depth + 1) for _ in range(count)},
            "record": lambda: {each["name"]: self.of(each["type"], depth + 1) for each in schema["fields"]},
        }
        return makers[kind]()

    def _logical(self, schema: Any, logical: str) -> Any:
        chance = self._chance
        moment = datetime(1, 1, 2, tzinfo=UTC) + timedelta(
            days=chance.randrange(3_600_000), microseconds=chance.randrange(86_400_000_000)
        )
        if logical.endswith("-millis"):
            moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        if logical == "decimal":
            return Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-schema["scale"])
        if logical == "uuid":
            return UUID(bytes=chance.randbytes(16))
        if logical == "date":
            return moment.date()
        if logical.startswith("time-"):
            return moment.time()
        return moment.replace(tzinfo=None) if logical.startswith("local-") else moment


def is_same(mine: Any, theirs: Any) -> bool:
    """Whether JSON says what a deserializer returned."""
    if isinstance(theirs, dict):
        return (
            isinstance(mine, dict)
            and list(mine) == list(theirs)
            and all(is_same(mine[k], v) for k, v in theirs.items())
        )
    if isinstance(theirs, list):
        return isinstance(mine, list) and len(mine) == len(theirs) and all(map(is_same, mine, theirs))
    if isinstance(theirs, bytes):
        return isinstance(mine, str) and b64decode(mine, validate=True) == theirs
    if isinstance(theirs, Decimal):
        return isinstance(mine, str) and Decimal(mine) == theirs and "E" not in mine
    if isinstance(theirs, datetime):
        return isinstance(mine, str) and datetime.fromisoformat(mine) == theirs
    if isinstance(theirs, (date, time)):
        return isinstance(mine, str) and type(theirs).fromisoformat(mine) == theirs
    if isinstance(theirs, UUID):
        return mine == str(theirs)
    if isinstance(theirs, float):
        return float(mine) == theirs or (theirs != theirs and mine == "NaN")
    return type(mine) is type(theirs) and bool(mine == theirs)


def fill_message(message: Any, chance: random.Random, depth: int = 0) -> Any:
    """Set random fields of a Protobuf message."""
    for each in message.DESCRIPTOR.fields:
        if chance.random() < 0.3 and not each.is_required:
            continue
        is_message = each.message_type is not None
        if is_message and depth > 3:
            continue
        if each.is_repeated and is_message and each.message_type.GetOptions().map_entry:
            entries = getattr(message, each.name)
            value_field = each.message_type.fields_by_name["value"]
            for _ in range(chance.randrange(3)):
                key = _scalar(each.message_type.fields_by_name["key"], chance)
                if value_field.message_type is not None:
                    _fill_known(entries[key], chance, depth + 1)
                else:
                    entries[key] = _scalar(value_field, chance)
        elif each.is_repeated:
            values = getattr(message, each.name)
            for _ in range(chance.randrange(4)):
                if is_message:
                    _fill_known(values.add(), chance, depth + 1)
                else:
                    values.append(_scalar(each, chance))
        elif is_message:
            inner = getattr(message, each.name)
            inner.SetInParent()
            _fill_known(inner, chance, depth + 1)
        else:
            setattr(message, each.name, _scalar(each, chance))
    for each in message.DESCRIPTOR.file.pool.FindAllExtensions(message.DESCRIPTOR):
        if not each.is_repeated and each.message_type is None:
            message.Extensions[each] = _scalar(each, chance)
    return message


def _fill_known(message: Any, chance: random.Random, depth: int) -> None:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = chance.randrange(10**10), chance.randrange(10**9)
    elif name == "google.protobuf.Duration":
        message.seconds, message.nanos = chance.randrange(10**6), chance.randrange(10**9)
    elif name == "google.protobuf.FieldMask":
        message.paths.extend(["a.b", "some_field"])
    elif name == "google.protobuf.Struct":
        message.update({"number": 1.5, "text": random_text(chance), "list": [True, None, {"a": "b"}]})
    elif name in ("google.protobuf.Value", "google.protobuf.ListValue"):
        json_format.ParseDict([1.5, "x", None] if name.endswith("ListValue") else {"x": 1.0}, message)
    elif name == "google.protobuf.Any":
        duration = message_factory.GetMessageClass(
            message.DESCRIPTOR.file.pool.FindMessageTypeByName("google.protobuf.Duration")
        )(seconds=5)
        message.Pack(duration)
    else:
        fill_message(message, chance, depth)


def _scalar(each: Any, chance: random.Random) -> Any:
    kind = each.cpp_type
    if kind == each.CPPTYPE_STRING:
        return chance.randbytes(chance.randrange(9)) if each.type == each.TYPE_BYTES else random_text(chance)
    if kind == each.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if kind == each.CPPTYPE_ENUM:
        return chance.choice(each.enum_type.values).number
    if kind == each.CPPTYPE_DOUBLE:
        return chance.choice((0.1, -1e300, float("inf"), chance.random()))
    if kind == each.CPPTYPE_FLOAT:
        return struct.unpack("<f", struct.pack("<f", chance.uniform(-1e6, 1e6)))[0]
    most = {each.CPPTYPE_INT32: 2**31, each.CPPTYPE_INT64: 2**63, each.CPPTYPE_UINT32: 2**32}.get(kind, 2**64)
    least = -most if kind in (each.CPPTYPE_INT32, each.CPPTYPE_INT64) else 0
    return chance.choice((least, most - 1, 0, chance.randrange(1000)))


def random_json(schema: dict[str, Any], chance: random.Random) -> Any:
    """A value of one of the JSON Schemas of the trial."""
    kind = schema.get("type")
    if "$ref" in schema:
        return {"street": random_text(chance), "number": chance.randrange(100)}
    if kind == "object":
        return {name: random_json(each, chance) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [random_json(schema["items"], chance) for _ in range(chance.randrange(4))]
    return {
        "string": lambda: random_text(chance),
        "integer": lambda: chance.choice((0, -5, 2**53, 10**25)),
        "number": lambda: chance.choice((0.1, 1e30, -2.5, 7)),
        "boolean": lambda: chance.random() < 0.5,
        "null": lambda: None,
    }[str(kind)]()


# -- serializers -----------------------------------------------------------------------------------------------------


def write_avro(family: Family, registered: Registered, count: int, chance: random.Random) -> None:
    """Values of each version of a family of Avro schemas."""
    client = registered.client
    references = []
    named: dict[str, Any] = {}
    for name, text in family.references.items():
        client.register_schema(f"{name}-reference", Schema(text, "AVRO", list(references)))
        references.append(SchemaReference(name, f"{name}-reference", 1))
        named[_short(name)] = json.loads(text)
    deserializer = AvroDeserializer(client)
    for version in range(family.version_count(_VERSIONS)):
        text = family.text(version)
        serializer = AvroSerializer(client, Schema(text, "AVRO", references), conf=_conf(family))
        values = AvroValues(chance, dict(named))
        for _ in range(count):
            _write(registered, family, serializer, deserializer, values.of(json.loads(text)), _same_as)


def write_protobuf(family: Family, registered: Registered, count: int, chance: random.Random) -> None:
    """Values of each version of a family of Protobuf schemas, of each of the messages that it names."""
    for version in range(family.version_count(_VERSIONS)):
        pool = compiled(family, version)
        for name, text in {**family.references, f"{family.name}_{version}.proto": family.text(version)}.items():
            registered.texts[b64encode(pool.FindFileByName(name).serialized_pb).decode()] = text
        for name in family.messages:
            message_class = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
            serializer = ProtobufSerializer(message_class, registered.client, _conf(family))
            deserializer = ProtobufDeserializer(message_class, schema_registry_client=registered.client)

            def same_as(expected: Any, pool: DescriptorPool = pool) -> Callable[[Any], bool]:
                theirs = json_format.MessageToDict(expected, preserving_proto_field_name=True, descriptor_pool=pool)

                def check(mine: Any) -> bool:
                    again = json_format.ParseDict(mine, type(expected)(), descriptor_pool=pool)
                    return bool(mine == json.loads(json.dumps(theirs))) and again == expected

                return check

            for _ in range(max(1, count // len(family.messages))):
                message = fill_message(message_class(), chance)
                _write(registered, family, serializer, deserializer, message, same_as)


def compiled(family: Family, version: int) -> DescriptorPool:
    """The messages of a family, compiled by protoc."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**family.references, f"{family.name}_{version}.proto": family.text(version)}.items():
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(text)
        out = Path(folder, "out.ds")
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", folder, f"--descriptor_set_out={out}"]
        subprocess.run([*command, "--include_imports", f"{family.name}_{version}.proto"], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = DescriptorPool()
    for each in files.file:
        pool.Add(each)
    return pool


def write_json(family: Family, registered: Registered, count: int, chance: random.Random) -> None:
    """Values of each version of a family of JSON Schemas."""
    client = registered.client
    references = []
    for name, text in family.references.items():
        client.register_schema(f"{name}-reference", Schema(text, "JSON", []))
        references.append(SchemaReference(name, f"{name}-reference", 1))
    for version in range(family.version_count(_VERSIONS)):
        text = family.text(version)
        schema = Schema(text, "JSON", references)
        serializer = JSONSerializer(schema, client, conf=_conf(family))
        deserializer = JSONDeserializer(schema, schema_registry_client=client)
        for _ in range(count):
            _write(registered, family, serializer, deserializer, random_json(json.loads(text), chance), _same_as)


def _conf(family: Family) -> dict[str, Any]:
    return {"schema.id.serializer": header_schema_id_serializer} if family.in_header else {}


def _same_as(expected: Any) -> Callable[[Any], bool]:
    return lambda mine: is_same(mine, expected)


def _write(
    registered: Registered,
    family: Family,
    serializer: Any,
    deserializer: Any,
    value: Any,
    same_as: Callable[[Any], Callable[[Any], bool]],
) -> None:
    headers: list[tuple[str, bytes | None]] = []
    context = SerializationContext(family.name, MessageField.VALUE, headers)
    data = serializer(value, context)
    if data is None or (family.kind == "avro" and len(data) <= 5):
        return  # what the deserializer refuses

    def read(data: bytes, headers: list[tuple[str, bytes | None]]) -> Any:
        return deserializer(data, SerializationContext(family.name, MessageField.VALUE, list(headers)))

    expected = read(data, headers)
    registered.written.append(Written(family.name, family.name, data, list(headers), expected, same_as(expected), read))


# -- the log ---------------------------------------------------------------------------------------------------------


def registry_records(registered: Registered, deleted: set[str]) -> Iterator[tuple[bytes, bytes | None]]:
    """The records of the topic of a registry with these schemas; some subjects are deleted at the end."""
    yield json.dumps({"keytype": "NOOP", "magic": 0}).encode(), None
    yield (
        json.dumps({"keytype": "CONFIG", "subject": None, "magic": 0}).encode(),
        json.dumps({"compatibilityLevel": "NONE"}).encode(),
    )
    store = registered.client._store
    versions = sorted(store.schema_id_index.values(), key=lambda each: each.schema_id)
    last: dict[str, int] = {}
    for each in versions:
        key = {"keytype": "SCHEMA", "subject": each.subject, "version": each.version, "magic": 1}
        value: dict[str, Any] = {"subject": each.subject, "version": each.version, "id": each.schema_id}
        if each.schema.schema_type != "AVRO":
            value["schemaType"] = each.schema.schema_type
        if each.schema.references:
            value["references"] = [
                {"name": one.name, "subject": one.subject, "version": one.version} for one in each.schema.references
            ]
        text = each.schema.schema_str
        if each.schema_id % 4:  # the others as they are, in base64
            text = registered.texts.get(text, text)
        value |= {"schema": text, "deleted": False}
        last[each.subject] = max(last.get(each.subject, 0), each.version)
        yield json.dumps(key, separators=(",", ":")).encode(), json.dumps(value, separators=(",", ":")).encode()
    for subject in sorted(deleted):
        yield (
            json.dumps({"keytype": "DELETE_SUBJECT", "subject": subject, "magic": 0}).encode(),
            json.dumps({"subject": subject, "version": last[subject]}).encode(),
        )


def write_registry(folder: Path, records: list[tuple[bytes, bytes | None]]) -> None:
    """The topic of a registry in two replicas: of each, another half has damage."""
    for node in (1, 2):
        batches = [
            batch(offset, [value], key=key, timestamp=BASE_TIMESTAMP) for offset, (key, value) in enumerate(records)
        ]
        lost = range(len(batches) // 4, len(batches) // 3) if node == 1 else range(len(batches) // 2, len(batches))
        for number in lost:
            damaged = bytearray(batches[number])
            damaged[-1] ^= 0xFF
            batches[number] = bytes(damaged)
        home = folder / f"node-{node}"
        write_segment(home / "_schemas-0", 0, batches)
        properties = f"version=1\nnode.id={node}\ncluster.id=trial-cluster-00000000\n"
        (home / "meta.properties").write_text(properties)


def raw_values(topic: int, ids: list[int], chance: random.Random) -> Iterator[bytes]:
    """Values of a topic without schemas: random bytes, and what many programs write that begins with a zero."""
    kinds: list[Callable[[], bytes]] = [
        lambda: chance.randbytes(chance.randrange(64)),
        lambda: b"\0" + chance.randbytes(chance.randrange(40)),
        lambda: struct.pack(">q", (chance.choice(ids) << 24) + chance.randrange(2**24)),
        lambda: struct.pack(">qq", (chance.choice(ids) << 24) + chance.randrange(2**24), chance.randrange(2**40)),
        lambda: struct.pack(">bi", 0, chance.choice(ids)) + chance.randbytes(chance.randrange(30)),
        lambda: struct.pack(">qd", chance.randrange(2**34), chance.random()),
        lambda: struct.pack(">bi", 0, n := chance.randrange(60)) + bytes(chance.choices(b"abcdefgh ", k=n)),
        lambda: bytes(chance.choices((0, 0, 0, 1, 2, 8, 16), k=chance.randrange(6, 20))),
    ]
    make = kinds[topic % len(kinds)]
    for _ in range(200):
        yield make()


# -- the trial -------------------------------------------------------------------------------------------------------


def main() -> int:
    """Run the trial; the exit status is 1 where anything is not equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=100_000)
    parser.add_argument("--raw-topics", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    registered = Registered()
    families = [*AVRO, *PROTOBUF, *JSON_SCHEMAS]
    writers = {"avro": write_avro, "protobuf": write_protobuf, "json-schema": write_json}
    version_count = sum(each.version_count(_VERSIONS) for each in families)
    for family in families:
        writers[family.kind](family, registered, -(-options.values // version_count), chance)
    deleted = {f"{each[0].name}-value" for each in (AVRO, PROTOBUF, JSON_SCHEMAS)}
    records = list(registry_records(registered, deleted))
    with tempfile.TemporaryDirectory() as folder:
        write_registry(Path(folder), records)
        schemas = find_schemas(targets_at(sorted(Path(folder).iterdir())))
    decoding = Decoding(schemas=schemas)
    ids = {each.schema_id: each.guid for each in registered.client._store.schema_id_index.values()}
    guids = {ids[each.id]: each.guid for each in schemas.versions}
    same: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    topics = {each.name: decoding.topic(each.name) for each in families}
    for each in registered.written:
        headers = [(name, with_guid(value, guids)) for name, value in each.headers]
        found = topics[each.topic].value(each.data, headers)
        assert found is not None
        tried[each.family] += 1
        kind = next(one.kind for one in families if one.name == each.family)
        if found.text is not None and found.format == kind and each.is_same(json.loads(found.text)):
            same[each.family] += 1
        elif tried[each.family] - same[each.family] < 3:
            print("not equal:", each.family, found, each.expected, sep="\n  ")
    for family in families:
        print(f"{family.name:24} {family.kind:12} {same[family.name]:>7,} of {tried[family.name]:>7,}")
    print(
        f"{len(families)} families, {len(schemas.versions)} schemas: {same.total():,} of {tried.total():,} values equal"
    )
    wrong = _raw_trial(decoding, schemas, options.raw_topics, chance)
    if options.keep:
        _keep(options.keep, records, registered)
    return int(same != tried or wrong > 0)


def _raw_trial(decoding: Decoding, schemas: Any, topic_count: int, chance: random.Random) -> int:
    """Decode topics without schemas; return how many values were taken for values with one."""
    ids = [each.id for each in schemas.versions]
    formats: Counter[str] = Counter()
    for topic in range(topic_count):
        decoder = decoding.topic(f"raw-{topic}")
        for data in raw_values(topic, ids, chance):
            found = decoder["value"].decoded(data, ())
            assert found is not None
            formats[found.format] += 1
            if found.format not in ("raw", "string", "json"):
                print("decoded wrongly:", data, found)
    print(f"{topic_count:,} topics without schemas: {dict(sorted(formats.items()))}")
    return sum(count for name, count in formats.items() if name not in ("raw", "string", "json"))


def with_guid(header: bytes | None, guids: dict[str, str]) -> bytes | None:
    """A header with the GUID that a registry gives, since the mock gives any."""
    if header is None or header[0] != 1:
        return header
    return header[:1] + UUID(guids[str(UUID(bytes=header[1:17]))]).bytes + header[17:]


def _keep(file: Path, records: list[tuple[bytes, bytes | None]], registered: Registered) -> None:
    kept: Counter[tuple[str, bytes]] = Counter()
    lines: list[dict[str, Any]] = [
        {"registry": [key.decode(), None if value is None else value.decode()]} for key, value in records
    ]
    for each in registered.written:
        place = each.family, (each.headers[0][1] or b"") if each.headers else each.data[:5]
        kept[place] += 1
        if kept[place] <= _KEPT_EACH:
            lines.append({
                "topic": each.topic,
                "value": b64encode(each.data).decode(),
                "headers": [[name, b64encode(value or b"").decode()] for name, value in each.headers],
                "expected": as_json(each.expected),
            })  # fmt: skip
    with gzip.GzipFile(file, "wb", mtime=0) as out:
        out.writelines(json.dumps(each).encode() + b"\n" for each in lines)


def as_json(value: Any) -> Any:
    """What a deserializer returned, in the JSON of this program."""
    if hasattr(value, "DESCRIPTOR"):
        return json_format.MessageToDict(
            value, preserving_proto_field_name=True, descriptor_pool=value.DESCRIPTOR.file.pool
        )
    if isinstance(value, dict):
        return {name: as_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, bytes):
        return {"bytes": b64encode(value).decode()}
    if isinstance(value, (Decimal, UUID)):
        return {type(value).__name__: str(value)}
    if isinstance(value, (datetime, date, time)):
        return {type(value).__name__: value.isoformat()}
    return value


if __name__ == "__main__":
    raise SystemExit(main())
