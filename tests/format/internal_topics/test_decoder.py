"""The decoders of the internal topics: framing, record types, versions, tombstones."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from format.errors import CorruptDataError, TruncatedData
from format.findings import FINDING_CODES, Severity
from format.internal_topics.decoder import decoder_for
from format.internal_topics.reader import INVALID, Decoded
from format.location import Location
from tests.format.internal_topics.known_messages import bytes_of, record_types, shipped
from tests.format.internal_topics.message_encoder import encode
from tests.record_encoder import encode_unsigned_varint

RECORDS = shipped("broker_records.json")


OFFSETS = decoder_for("__consumer_offsets")
METADATA = decoder_for("__cluster_metadata")
KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
VALUE = bytes.fromhex("0003 0000000000000007 00000002 0001 6d 0000000000000005")


@pytest.mark.parametrize("row", RECORDS, ids=lambda row: f"{row['file']}@{row['offset']}")
def test_what_brokers_wrote(row: dict[str, Any]) -> None:
    decoder = decoder_for(row["topic"])
    key, value = bytes_of(row, "key"), bytes_of(row, "value")
    decoded_key = decoder.decode_key(key)
    decoded = decoder.decode_value(decoded_key, value)
    assert decoded_key.problems == decoded.problems == ()
    if key is not None:
        expected = json.loads(row["key_text"])
        assert (str(decoded_key.type_id), decoded_key.data) == (expected["type"], expected["data"])
        assert decoded_key.type_id == decoded.type_id
    if row["payload_text"] == "<DELETE>":
        assert decoded.is_tombstone
        assert decoded.data is decoded.raw is decoded.version is None
        return
    expected = json.loads(row["payload_text"])
    assert str(decoded.version) == str(expected["version"])
    assert decoded.data == expected["data"]
    if key is None:
        assert decoded.record_type == expected["type"]
    for length in range(len(key or b"")):
        with pytest.raises(TruncatedData) as reported:
            decoder.decode_key((key or b"")[:length])
        assert reported.value.code == INVALID
    for length in range(len(value or b"")):
        with pytest.raises(TruncatedData) as reported:
            decoder.decode_value(decoded_key, (value or b"")[:length])
        assert reported.value.code == INVALID


def test_a_committed_offset() -> None:
    key = OFFSETS.decode_key(KEY)
    expected = {"group": "g", "topic": "t", "partition": 3}
    assert key == Decoded("__consumer_offsets", "key", "OffsetCommitKey", "OFFSET_COMMIT", 1, 0, expected)
    value = OFFSETS.decode_value(key, VALUE)
    expected = {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5}
    assert value == Decoded("__consumer_offsets", "value", "OffsetCommitValue", "OFFSET_COMMIT", 1, 3, expected)


@pytest.mark.parametrize(("topic", "record_type"), list(record_types()), ids=lambda each: getattr(each, "name", each))
def test_every_record_type(topic: str, record_type: Any) -> None:
    decoder = decoder_for(topic)
    message = record_type.value
    version = message.versions.highest
    content = {each.name: each.default for each in message.fields if each.tag is None and version in each.versions}
    body = encode(message, version, content)
    if record_type.key is None:
        decoded = decoder.decode_value(
            None, b"\x01" + encode_unsigned_varint(record_type.id) + encode_unsigned_varint(version) + body
        )
    else:
        names = {each.name: each.default for each in record_type.key.fields}
        raw = record_type.id.to_bytes(2, "big") + encode(record_type.key, 0, names)
        key = decoder.decode_key(raw)
        assert (key.name, key.record_type, key.type_id) == (record_type.key.name, record_type.name, record_type.id)
        decoded = decoder.decode_value(key, version.to_bytes(2, "big") + body)
    assert (decoded.name, decoded.record_type, decoded.version) == (message.name, record_type.name, version)
    assert decoded.data == content
    assert decoded.problems == ()


def unknown(decoded: Decoded, raw: bytes) -> str:
    assert decoded.data is None
    assert decoded.raw == raw
    (problem,) = decoded.problems
    assert (problem.code, problem.severity, problem.part) == ("version-unknown", Severity.INFO, decoded.part)
    return problem.message


@pytest.mark.parametrize("type_id", [18, 24, 32767, -1])
def test_an_unknown_record_type(type_id: int) -> None:
    raw = type_id.to_bytes(2, "big", signed=True) + b"whatever"
    key = OFFSETS.decode_key(raw)
    assert str(type_id) in unknown(key, raw)
    assert key.name is None
    assert key.type_id == type_id
    assert str(type_id) in unknown(OFFSETS.decode_value(key, VALUE), VALUE)
    assert OFFSETS.decode_value(key, None).is_tombstone


@pytest.mark.parametrize("version", [5, 32767, -1])
def test_an_unknown_value_version(version: int) -> None:
    raw = version.to_bytes(2, "big", signed=True) + VALUE[2:]
    decoded = OFFSETS.decode_value(OFFSETS.decode_key(KEY), raw)
    assert f"OffsetCommitValue in version {version}" in unknown(decoded, raw)
    assert (decoded.name, decoded.version) == ("OffsetCommitValue", version)


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        ("00 02 00", "frame version 0"),
        ("02 02 00", "frame version 2"),
        ("01 0d 00", "record type 13"),
        ("01 02 09", "TopicRecord in version 9"),
    ],
)
def test_unknown_metadata(raw: str, what: str) -> None:
    data = bytes.fromhex(raw) + b"\x05name"
    assert what in unknown(METADATA.decode_value(None, data), data)


def test_no_key_where_there_must_be_one() -> None:
    with pytest.raises(CorruptDataError, match="no key"):
        OFFSETS.decode_key(None)
    assert unknown(OFFSETS.decode_value(None, VALUE), VALUE)


def test_a_key_where_there_is_none() -> None:
    assert METADATA.decode_key(None).problems == ()
    key = METADATA.decode_key(b"key")
    assert key.raw == b"key"
    assert [each.code for each in key.problems] == [INVALID]


def test_no_value_where_there_must_be_one() -> None:
    decoded = METADATA.decode_value(None, None)
    assert decoded.is_tombstone
    assert [each.code for each in decoded.problems] == [INVALID]


def test_bytes_that_are_left_over() -> None:
    key = OFFSETS.decode_key(KEY + b"!")
    value = OFFSETS.decode_value(key, VALUE + b"xyz")
    assert value.data is not None
    for decoded, left, position in ((key, 1, len(KEY)), (value, 3, len(VALUE))):
        (problem,) = decoded.problems
        assert problem.message.startswith(f"{left} bytes are left")
        assert (problem.code, problem.severity, problem.position) == (INVALID, Severity.WARNING, position)


def test_an_unknown_tagged_field_is_kept() -> None:
    plain = bytes.fromhex("0004 0000000000000007 00000002 026d 0000000000000005")
    raw = plain + bytes.fromhex("01 09 02 beef")
    decoded = OFFSETS.decode_value(OFFSETS.decode_key(KEY), raw)
    assert decoded.data is not None
    assert decoded.data["_taggedFields"] == {"9": base64.b64encode(b"\xbe\xef").decode()}
    assert [each.code for each in decoded.problems] == ["version-unknown"]


def test_errors_name_the_field() -> None:
    with pytest.raises(
        TruncatedData, match=r"^value\.OffsetCommitValue\.metadata: needs 1 byte at byte 16"
    ) as reported:
        OFFSETS.decode_value(OFFSETS.decode_key(KEY), VALUE[:16])
    assert reported.value.code == INVALID
    group = bytes.fromhex("0000 0000 00000000 ffff ffff 00000001 0001 61 0001 62 0001 63 00000000 7fffffff") + bytes(9)
    with pytest.raises(TruncatedData, match=r"^value\.GroupMetadataValue\.members\[0\]\.subscription: "):
        OFFSETS.decode_value(OFFSETS.decode_key(bytes.fromhex("0002 0001 67")), group)


def test_problems_become_findings() -> None:
    decoded = OFFSETS.decode_key(KEY + b"!")
    found = decoded.problems[0].finding(Location("00000000000000000000.log", offset=5))
    assert found.code in FINDING_CODES
    assert found.message.startswith("key: 1 bytes are left")
    assert found.location.offset == 5
