"""The notation of the schema files, and the files written in it."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator

import pytest

from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.internal_topics.schema import MessageField, Versions, read_schema
from tests.corpora import REPOSITORY
from tests.format.internal_topics.known_messages import MESSAGES, record_types

EXAMPLE = """
# A comment.
struct Pair: key string, value string?

type 7 PLANT since 4.1 until 4.3
  key PlantKey 0: name string
  value PlantValue 1-3 flexible 2+, 3 since 4.2, 2 since 4.1  # another comment
    height int32, leaves []Pair? 2+
    roots []struct
      depth int8
    seed uuid 3+ @1
    age int64 @0 = -1 since 4.2

message Soil 0
"""


def _plain(fields: tuple[MessageField, ...]) -> list[object]:
    return [(each.name, each.type, each.default) for each in fields]


def test_the_notation() -> None:
    schema = read_schema(EXAMPLE)
    kind = schema.types[7]
    assert (kind.id, kind.name, kind.since, kind.until) == (7, "PLANT", (4, 1), (4, 3))
    assert list(schema.messages) == ["PlantKey", "PlantValue", "Soil"]
    assert kind.key is schema.messages["PlantKey"]
    assert _plain(kind.key.fields) == [("name", "string", "")]
    assert 0 not in kind.key.flexible
    value = kind.value
    assert (list(value.versions), 1 in value.flexible, 9 in value.flexible) == ([1, 2, 3], False, True)
    assert value.since == {3: (4, 2), 2: (4, 1)}
    height, leaves, roots, seed, age = value.fields
    assert (height.type, leaves.type, roots.type) == ("int32", "[]struct", "[]struct")
    assert _plain(leaves.fields) == [("key", "string", ""), ("value", "string", "")]
    assert (0 in leaves.fields[1].nullable, 0 in leaves.fields[0].nullable) == (True, False)
    assert (leaves.versions, leaves.nullable) == (Versions(2, 32767), Versions(2, 32767))
    assert _plain(roots.fields) == [("depth", "int8", 0)]
    assert (seed.tag, seed.default, seed.since) == (1, "A" * 22, None)
    assert (age.tag, age.default, age.since) == (0, -1, (4, 2))
    assert schema.messages["Soil"].fields == ()


def test_a_release_has_what_it_knew() -> None:
    kind = read_schema(EXAMPLE).types[7]
    assert kind.as_of((4, 2)) is kind
    earlier = kind.as_of((4, 1)).value
    assert (list(earlier.versions), [each.name for each in earlier.fields]) == (
        [1, 2],
        ["height", "leaves", "roots", "seed"],
    )
    assert list(kind.as_of((4, 0)).value.versions) == [1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("message Soil 0: name int24", "line 1: unknown type int24"),
        ("message Soil 0: names []map", "line 1: unknown type map"),
        ("message Soil 0\n  name", "line 2: 'name' is not understood"),
        ("message Soil none", "line 1: 'message Soil none' is not understood"),
        ("# empty\n    name int8", "line 2 is too deep"),
        ("type 0 SOIL\n  key SoilKey 0", "line 1: the type has no value"),
        ("type 0 SOIL\n  value SoilValue 0\n  message Soil 0", "line 1: the type has no value, or something else"),
        ("type SOIL", "line 1: 'type SOIL' is not understood"),
    ],
)
def test_a_line_that_is_not_understood(line: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read_schema(line)


def test_defaults_are_the_types_zero() -> None:
    fields = (
        read_schema(
            "message M 0\n  s struct\n    n int32\n    t string @0\n    a []int8\n"
            "  b bool, c string, d bytes, e float64, f uuid, g string? @1 = null"
        )
        .messages["M"]
        .fields
    )
    assert [each.default for each in fields] == [{"n": 0, "a": []}, False, "", "", 0.0, "A" * 22, None]


def _structs(fields: tuple[MessageField, ...]) -> Iterator[tuple[MessageField, ...]]:
    yield fields
    for each in fields:
        if each.fields:
            yield from _structs(each.fields)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_schemas_are_sound(name: str) -> None:
    table = MESSAGES[name]
    for fields in _structs(table.fields):
        assert [n for n, count in Counter(each.name for each in fields).items() if count > 1] == []
        for version in table.versions:
            tags = [each.tag for each in fields if each.tag is not None and version in each.versions]
            assert len(tags) == len(set(tags))
            if tags:
                assert version in table.flexible
        for each in fields:
            assert bool(each.fields) == (each.type in ("struct", "[]struct"))
            assert each.versions.lowest <= table.versions.highest
            json.dumps(each.default)


def test_record_types_are_unique() -> None:
    for topic in INTERNAL_TOPICS:
        of_topic = [each for where, each in record_types() if where == topic]
        assert len({each.name for each in of_topic}) == len(of_topic)
        keyed = {each.key is not None for each in of_topic}
        assert keyed == {topic not in ("__cluster_metadata", "__remote_log_metadata")}
    assert sorted(decoder_for("__consumer_offsets").record_types) == [*range(18), *range(19, 24)]
    with pytest.raises(ValueError, match="orders"):
        decoder_for("orders")


@pytest.mark.parametrize(
    ("release", "newest_type", "broker_version", "change_version"),
    [((3, 9), 27, 3, 2), ((4, 0), 28, 3, 2), ((4, 2), 28, 3, 2), ((4, 3), 28, 4, 3), ((4, 4), 29, 4, 3)],
)
def test_metadata_records_of_releases(
    release: tuple[int, int], newest_type: int, broker_version: int, change_version: int
) -> None:
    """As the oracle tests find them in the jars."""
    types = decoder_for("__cluster_metadata", release).record_types
    assert max(types) == newest_type
    assert (types[0].value.versions.highest, types[17].value.versions.highest) == (broker_version, change_version)
    assert types[2] is decoder_for("__cluster_metadata").record_types[2]


def test_defaults_of_tagged_fields_that_are_not_zero() -> None:
    found = {
        f"{message.name}.{each.name}": each.default
        for message in MESSAGES.values()
        for fields in _structs(message.fields)
        for each in fields
        if each.tag is not None and each.default is not None and each.default not in (0, "", [], "A" * 22)
    }
    assert found.pop("ConsumerGroupMemberMetadataValue.classicMemberMetadata") == {
        "sessionTimeoutMs": 0,
        "supportedProtocols": [],
    }
    assert found.pop("PartitionChangeRecord.leader") == -2
    assert found == dict.fromkeys(
        (
            *(f"TransactionLogValue.{each}" for each in ("previousProducerId", "nextProducerId", "nextProducerEpoch")),
            *(f"Share{each}Value.deliveryCompleteCount" for each in ("Snapshot", "Update")),
            *(f"StreamsGroupMetadataValue.{each}TopologyEpoch" for each in ("validated", "storedDescription")),
            "StreamsGroupMetadataValue.failedDescriptionTopologyEpoch",
            "PartitionChangeRecord.leaderRecoveryState",
        ),
        -1,
    )


def test_the_files_are_packaged() -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        assert "*.schema" in tomllib.load(file)["tool"]["setuptools"]["package-data"]["*"]
