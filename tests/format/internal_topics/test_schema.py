"""The schema language and the tables written in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.internal_topics.schema import Field, Versions, field, message, parse_versions
from tests.format.internal_topics.known_messages import MESSAGES, record_types


@pytest.mark.parametrize(
    ("text", "expected", "inside", "outside"),
    [
        ("0", Versions(0, 0), [0], [1, -1]),
        ("2", Versions(2, 2), [2], [1, 3]),
        ("0-4", Versions(0, 4), [0, 4], [5]),
        ("3+", Versions(3, 32767), [3, 32767], [2]),
        ("none", Versions(0, -1), [], [0, -1, 1]),
    ],
)
def test_versions(text: str, expected: Versions, inside: list[int], outside: list[int]) -> None:
    parsed = parse_versions(text)
    assert parsed == expected
    assert str(parsed) == text
    assert all(each in parsed for each in inside)
    assert not any(each in parsed for each in outside)


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="int24"):
        field("name", "int24")
    with pytest.raises(ValueError, match="map"):
        field("name", "[]map")


def test_defaults_are_the_types_zero() -> None:
    struct = field("s", "struct", field("n", "int32"), field("t", "string", tag=0), field("a", "[]int8"))
    assert struct.default == {"n": 0, "a": []}
    assert [field("x", type).default for type in ("bool", "string", "bytes", "float64")] == [False, "", "", 0.0]
    assert field("x", "uuid").default == "A" * 22
    assert field("x", "string", nullable="0+", default=None).default is None


def _structs(fields: tuple[Field, ...]) -> Iterator[tuple[Field, ...]]:
    yield fields
    for each in fields:
        if each.fields:
            yield from _structs(each.fields)


@pytest.mark.parametrize("name", sorted(MESSAGES))
def test_tables_are_sound(name: str) -> None:
    table = MESSAGES[name]
    for fields in _structs(table.fields):
        assert [n for n, count in Counter(each.name for each in fields).items() if count > 1] == []
        for version in range(table.versions.lowest, table.versions.highest + 1):
            tags = [each.tag for each in fields if each.tag is not None and version in each.versions]
            assert len(tags) == len(set(tags))
            if tags:
                assert version in table.flexible
        for each in fields:
            assert bool(each.fields) == (each.type in ("struct", "[]struct"))
            assert each.versions.lowest <= table.versions.highest
            json.dumps(each.default)


def test_record_types_are_unique() -> None:
    assert len(MESSAGES) == len({id(each) for each in MESSAGES.values()})
    for topic in INTERNAL_TOPICS:
        of_topic = [each for where, each in record_types() if where == topic]
        assert len({each.name for each in of_topic}) == len(of_topic)
        keyed = {each.key is not None for each in of_topic}
        assert keyed == {topic not in ("__cluster_metadata", "__remote_log_metadata")}
    consumer_offsets = decoder_for("__consumer_offsets")
    assert consumer_offsets is not None
    assert sorted(consumer_offsets.record_types) == [*range(18), *range(19, 24)]
    assert decoder_for("orders") is None


def test_a_message_is_flexible_by_default() -> None:
    plain = message("Plain", field("a", "int8"))
    assert 0 in plain.flexible
    assert plain.versions == Versions(0, 0)
