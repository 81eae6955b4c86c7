"""The generic reader: Kafka's own bytes, random ones, and bytes that nobody wrote."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from format.errors import CorruptDataError, LimitExceeded, TruncatedData
from format.internal_topics.dump_log import to_json_text
from format.internal_topics.reader import INVALID, MAX_PROBLEMS, Cursor, reader_for
from format.internal_topics.schema import read_schema
from tests.format.internal_topics.known_messages import MESSAGES, VERSIONS, shipped
from tests.format.internal_topics.message_encoder import encode, messages
from tests.record_encoder import encode_unsigned_varint

SHIPPED: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
for row in shipped("kafka_messages.json"):
    SHIPPED[row["name"], row["version"]].append(row)

GONE = {"AccessControlRecord", "RemoveFeatureLevelRecord"} | {
    f"ShareGroupPartitionMetadata{part}" for part in ("Key", "Value")
}


def read(name: str, version: int, raw: bytes) -> tuple[dict[str, Any], Cursor]:
    cursor = Cursor(raw, "value")
    return reader_for(MESSAGES[name], version)(cursor), cursor


def test_shipped_bytes_cover_every_version() -> None:
    assert {each for each in VERSIONS if each[0] not in GONE} == set(SHIPPED)


@pytest.mark.parametrize(("name", "version"), sorted(SHIPPED))
def test_kafka_wrote_it_and_kafka_reads_the_same(name: str, version: int) -> None:
    for row in SHIPPED[name, version]:
        raw = bytes.fromhex(row["hex"])
        data, cursor = read(name, version, raw)
        assert to_json_text(data) == row["json"]
        assert data == json.loads(row["json"])
        assert list(data) == list(json.loads(row["json"]))
        assert cursor.position == len(raw)
        assert cursor.problems == []
        assert encode(MESSAGES[name], version, data) == raw


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), sorted(SHIPPED))
def test_every_truncation_is_reported(name: str, version: int) -> None:
    for row in SHIPPED[name, version]:
        raw = bytes.fromhex(row["hex"])
        for length in range(len(raw)):
            with pytest.raises(TruncatedData):
                read(name, version, raw[:length])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version"), sorted(SHIPPED))
def test_changed_bytes_raise_nothing_else(name: str, version: int) -> None:
    dice = random.Random(f"{name} {version}")
    for row in SHIPPED[name, version]:
        raw = bytes.fromhex(row["hex"])
        for at in range(len(raw)):
            for value in {0, 0x7F, 0x80, 0xFF, dice.randrange(256)}:
                try:
                    data, _ = read(name, version, raw[:at] + bytes([value]) + raw[at + 1 :])
                except CorruptDataError:
                    continue
                json.dumps(data, allow_nan=False)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_round_trip(data: st.DataObject) -> None:
    name, version = data.draw(st.sampled_from(VERSIONS))
    content = data.draw(messages(MESSAGES[name], version))
    raw = encode(MESSAGES[name], version, content)
    found, cursor = read(name, version, raw)
    assert found == content
    assert list(found) == list(content)
    assert cursor.position == len(raw)
    assert cursor.problems == []


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(VERSIONS), st.binary(max_size=300) | st.integers(0, 300).map(bytes))
def test_random_bytes(which: tuple[str, int], raw: bytes) -> None:
    try:
        data, cursor = read(*which, raw)
    except CorruptDataError:
        return
    assert cursor.position <= len(raw)
    json.dumps(data, allow_nan=False)


# -- one rule each -------------------------------------------------------------------------------------------

EVERYTHING = read_schema("""
message Everything 0-2 flexible 2+
  text string?1+, blob bytes
  numbers []int32?
  names []string
  inner struct?1+
    flag bool
  later int8 1+
  tail int16 2+ @0 = -1
  part struct? 2+ @5
    id uuid
""").messages["Everything"]


def read_everything(raw: bytes, version: int) -> tuple[dict[str, Any], Cursor]:
    cursor = Cursor(raw, "value")
    return reader_for(EVERYTHING, version)(cursor), cursor


def test_lengths_before_flexible_versions() -> None:
    raw = bytes.fromhex("0001 6100000002 010200000001 0000000700000001 000002")
    expected = {"text": "a", "blob": "AQI=", "numbers": [7], "names": [""], "inner": {"flag": True}}
    assert read_everything(raw, 0)[0] == expected


def test_null_is_minus_one() -> None:
    raw = bytes.fromhex("ffff00000000ffffffff00000000ff05")
    expected = {"text": None, "blob": "", "numbers": None, "names": [], "inner": None, "later": 5}
    assert read_everything(raw, 1)[0] == expected
    with pytest.raises(CorruptDataError, match="null") as refused:
        read_everything(raw, 0)
    assert not isinstance(refused.value, TruncatedData)


@pytest.mark.parametrize(
    ("raw", "version"),
    [
        ("fffe", 0),  # a string of length -2
        ("0000 fffffffe", 0),  # bytes
        ("0000 ffffffff", 0),  # bytes that are null
        ("00 00", 2),  # compact bytes that are null
        ("8080808010", 2),  # a varint of 33 bits
        ("ffffffff7f", 2),  # of 35 bits
        ("808080808001", 2),  # of six bytes
        ("818002" + "61" * 0x8000, 2),  # a string of 32768 bytes
    ],
)
def test_impossible_lengths(raw: str, version: int) -> None:
    with pytest.raises(CorruptDataError) as refused:
        read_everything(bytes.fromhex(raw), version)
    assert not isinstance(refused.value, TruncatedData)


def test_any_negative_length_is_null() -> None:
    raw = bytes.fromhex("800000000000fffffffe000000008005")
    data, cursor = read_everything(raw, 1)
    assert (data["text"], data["numbers"], data["inner"]) == (None, None, None)
    assert [(each.code, each.position) for each in cursor.problems] == [(INVALID, 2), (INVALID, 10)]


@pytest.mark.parametrize("count", ["7fffffff", "00000002"])
def test_a_count_that_the_bytes_cannot_hold(count: str) -> None:
    raw = bytes.fromhex("0000 00000000" + count + "00000007")
    with pytest.raises(TruncatedData, match="elements"):
        read_everything(raw, 0)


def tagged(*fields: tuple[int, bytes]) -> bytes:
    """A message of version 2: empty text, blob and arrays, an inner struct, then these tagged fields."""
    plain = bytes([1, 1, 1, 1, 1, 0, 0, 9])
    return (
        plain
        + encode_unsigned_varint(len(fields))
        + b"".join(encode_unsigned_varint(tag) + encode_unsigned_varint(len(raw)) + raw for tag, raw in fields)
    )


ID = bytes(range(16))
PART = {"id": "AAECAwQFBgcICQoLDA0ODw"}


def test_tagged_fields() -> None:
    data, cursor = read_everything(tagged((0, b"\x00\x03"), (5, b"\x01" + ID + b"\x00")), 2)
    assert data["tail"] == 3
    assert data["part"] == PART
    assert list(data) == ["text", "blob", "numbers", "names", "inner", "later", "tail", "part"]
    assert cursor.problems == []


def test_a_tagged_field_with_its_default_is_left_out() -> None:
    data, _ = read_everything(tagged((0, b"\xff\xff"), (5, b"\x00")), 2)
    assert "tail" not in data
    assert data["part"] is None


def test_unknown_tagged_fields_are_kept() -> None:
    data, cursor = read_everything(tagged((0, b"\x00\x03"), (3, b"new")), 2)
    assert data["tail"] == 3
    assert data["_taggedFields"] == {"3": "bmV3"}
    assert [each.code for each in cursor.problems] == ["version-unknown"]


@pytest.mark.parametrize("size", [0, 1, 3, 300])
def test_a_tagged_field_of_the_wrong_size(size: int) -> None:
    raw = tagged((0, b"\x00\x03"))
    assert raw[-3:] == b"\x02\x00\x03"
    data, cursor = read_everything(raw[:-3] + encode_unsigned_varint(size) + raw[-2:], 2)
    assert data["tail"] == 3
    assert [each.code for each in cursor.problems] == [INVALID]


def test_an_unknown_tagged_field_past_the_end() -> None:
    raw = tagged((3, b"new"))
    with pytest.raises(TruncatedData):
        read_everything(raw[:-4] + b"\x04new", 2)


def test_tags_out_of_order_are_a_problem() -> None:
    data, cursor = read_everything(tagged((3, b""), (0, b"\x00\x07")), 2)
    assert data["tail"] == 7
    assert [each.code for each in cursor.problems] == ["version-unknown", INVALID]


def test_text_that_is_not_utf8() -> None:
    raw = bytes.fromhex("0003 61ff6200000000000000000000000000")
    data, cursor = read_everything(raw, 0)
    assert data["text"] == "a\ufffdb"
    assert [(each.code, each.position) for each in cursor.problems] == [(INVALID, 5)]


def test_problems_are_bounded() -> None:
    raw = bytes.fromhex("0000 00000000 0000000000000100") + b"\x00\x01\xff" * 256 + b"\x00"
    data, cursor = read_everything(raw, 0)
    assert data["names"] == ["\ufffd"] * 256
    assert len(cursor.problems) == MAX_PROBLEMS


def test_values_are_bounded() -> None:
    raw = bytes.fromhex("0000 00000000 00000400") + b"\x00\x00\x00\x01" * 1024 + bytes.fromhex("00000000 00")
    cursor = Cursor(raw, "value", max_values=1000)
    with pytest.raises(LimitExceeded):
        reader_for(EVERYTHING, 0)(cursor)
    assert len(reader_for(EVERYTHING, 0)(Cursor(raw, "value", max_values=1024))["numbers"]) == 1024
