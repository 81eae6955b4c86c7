"""The decoders of the internal topics: framing, record types, versions, tombstones."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from format.errors import CorruptDataError, TruncatedData
from format.findings import FINDING_CODES, Severity
from format.internal_topics.decoder import decode_control_value, decoder_for, read_message
from format.internal_topics.dump_log import dump_log_json
from format.internal_topics.reader import INVALID, TAGGED_FIELDS, Cursor, DecodedMessage
from format.internal_topics.schema import schema_of
from format.layout import CONTROL_TYPES
from format.location import Location
from tests.corpora import Corpus
from tests.format.internal_topics.known_messages import MESSAGES, VERSIONS, bytes_of, record_types, records_of, shipped
from tests.format.internal_topics.message_encoder import UNKNOWN_TAGS, encode, zero_message
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
    assert key == DecodedMessage("__consumer_offsets", "key", "OffsetCommitKey", "OFFSET_COMMIT", 1, 0, expected)
    value = OFFSETS.decode_value(key, VALUE)
    expected = {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 5}
    assert value == DecodedMessage("__consumer_offsets", "value", "OffsetCommitValue", "OFFSET_COMMIT", 1, 3, expected)


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


def unknown(decoded: DecodedMessage, raw: bytes) -> str:
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


CONTROL_RECORDS = shipped("broker_control_records.json")


def test_every_control_type_has_a_message() -> None:
    assert [each.name for each in schema_of("control_records").types.values()] == list(CONTROL_TYPES)
    assert {row["type"] for row in CONTROL_RECORDS} == set(range(2, len(CONTROL_TYPES)))


@pytest.mark.parametrize("row", CONTROL_RECORDS, ids=lambda row: f"{row['file']}@{row['offset']}")
def test_control_records_that_brokers_wrote(row: dict[str, Any]) -> None:
    raw = bytes.fromhex(row["value"])
    decoded = decode_control_value(row["type"], raw)
    assert decoded.record_type == CONTROL_TYPES[row["type"]]
    assert decoded.data == json.loads(row["text"])
    assert dump_log_json(decoded) == row["text"]
    assert decoded.problems == ()
    for length in range(len(raw)):
        with pytest.raises(TruncatedData):
            decode_control_value(row["type"], raw[:length])


def test_a_leader_change_with_directories() -> None:
    ids = bytes(15) + b"\x01"
    raw = bytes.fromhex("0001 00000003 02 00000002") + ids + bytes.fromhex("00 01 00")
    decoded = decode_control_value(2, raw)
    assert decoded.version == 1
    voter = {"voterId": 2, "voterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    assert decoded.data == {"version": 1, "leaderId": 3, "voters": [voter], "grantingVoters": []}


@pytest.mark.parametrize(("type_number", "name"), [(0, "ABORT"), (1, "COMMIT")])
def test_transaction_markers(type_number: int, name: str) -> None:
    decoded = decode_control_value(type_number, bytes.fromhex("0000 00000007"))
    assert (decoded.name, decoded.record_type, decoded.data) == ("EndTxnMarker", name, {"coordinatorEpoch": 7})
    newer = decode_control_value(type_number, bytes.fromhex("0001 00000007"))
    assert newer.data == {"coordinatorEpoch": 7}
    assert [each.code for each in newer.problems] == ["version-unknown"]


@pytest.mark.parametrize(("type_number", "raw"), [(7, "0000"), (-1, "0000"), (3, "0001 00"), (2, "0002 00")])
def test_a_newer_control_record(type_number: int, raw: str) -> None:
    decoded = decode_control_value(type_number, bytes.fromhex(raw))
    assert decoded.data is None
    assert decoded.raw == bytes.fromhex(raw)
    assert [each.code for each in decoded.problems] == ["version-unknown"]


@pytest.mark.parametrize("raw", [None, b"", b"\x00"])
def test_a_control_record_without_a_value(raw: bytes | None) -> None:
    with pytest.raises(CorruptDataError):
        decode_control_value(2, raw)


TOPICS = {"topics": ["orders"], "userData": None}
OWNED = {"ownedPartitions": [{"topic": "orders", "partitions": [1, 2]}]}
ASSIGNED = {"assignedPartitions": [{"topic": "orders", "partitions": [0]}], "userData": "AQI="}


def decode(protocol_type: str, subscription: bytes, assignment: bytes) -> tuple[dict[str, Any], list[str]]:
    member = {
        "memberId": "m",
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 1,
        "sessionTimeout": 2,
        "subscription": base64.b64encode(subscription).decode(),
        "assignment": base64.b64encode(assignment).decode(),
    }
    group = {
        "protocolType": protocol_type,
        "generation": 1,
        "protocol": None,
        "leader": None,
        "currentStateTimestamp": -1,
        "members": [member],
    }
    decoder = decoder_for("__consumer_offsets")
    key = decoder.decode_key(bytes.fromhex("0002 0001 67"))
    decoded = decoder.decode_value(key, b"\x00\x03" + encode(MESSAGES["GroupMetadataValue"], 3, group))
    assert decoded.data is not None
    found = decoded.data["members"][0]
    assert list(found) == list(member)
    return found, [each.code for each in decoded.problems]


def subscription(version: int, content: dict[str, Any]) -> bytes:
    return version.to_bytes(2, "big") + encode(MESSAGES["ConsumerProtocolSubscription"], min(version, 3), content)


ASSIGNMENT = b"\x00\x01" + encode(MESSAGES["ConsumerProtocolAssignment"], 1, ASSIGNED)


@pytest.mark.parametrize(
    ("version", "content"),
    [
        (0, TOPICS),
        (1, TOPICS | OWNED),
        (2, TOPICS | OWNED | {"generationId": 5}),
        (3, TOPICS | OWNED | {"generationId": 5, "rackId": "r1"}),
        (4, TOPICS | {"ownedPartitions": [], "generationId": 5, "rackId": None}),
    ],
)
def test_every_version_of_a_subscription(version: int, content: dict[str, Any]) -> None:
    member, problems = decode("consumer", subscription(version, content), ASSIGNMENT)
    assert member["subscription"] == content
    assert member["assignment"] == ASSIGNED
    assert problems == []


def test_a_newer_version_with_partitions_stays() -> None:
    blob = subscription(4, TOPICS | OWNED | {"generationId": 5, "rackId": None})
    member, problems = decode("consumer", blob, b"\x00\x04" + ASSIGNMENT[2:])
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert isinstance(member["assignment"], str)
    assert problems == ["version-unknown", "version-unknown"]


def test_a_tail_of_a_subscription_is_ignored() -> None:
    member, problems = decode("consumer", subscription(0, TOPICS) + b"tail", ASSIGNMENT)
    assert member["subscription"] == TOPICS
    assert problems == []


def test_other_protocols_keep_their_bytes() -> None:
    blob = subscription(0, TOPICS)
    member, problems = decode("connect", blob, b"")
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert problems == []


@pytest.mark.parametrize("blob", [b"\x00", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff", b"\x00\x00\x00\x00\x00\x01"])
def test_a_blob_that_cannot_be_decoded_stays(blob: bytes) -> None:
    member, problems = decode("consumer", blob, ASSIGNMENT)
    assert member["subscription"] == base64.b64encode(blob).decode()
    assert member["assignment"] == ASSIGNED
    assert problems == [INVALID]


def test_a_member_without_an_assignment_yet() -> None:
    member, problems = decode("consumer", subscription(0, TOPICS), b"")
    assert member["assignment"] == ""
    assert problems == []


TOPIC = "__consumer_offsets"


def committed_offsets(partitions: list[Path]) -> dict[str, dict[str, int]]:
    """The last commit of each group and partition, without those that a tombstone took back."""
    decoder = decoder_for(TOPIC)
    found: dict[str, dict[str, int]] = {}
    for partition in partitions:
        for segment in sorted(partition.glob("*.log")):
            for _, is_control, raw_key, raw_value in records_of(segment):
                if is_control:
                    continue
                key = decoder.decode_key(raw_key)
                value = decoder.decode_value(key, raw_value)
                assert key.problems == value.problems == ()
                if key.record_type != "OFFSET_COMMIT":
                    continue
                assert key.data is not None
                of_group = found.setdefault(key.data["group"], {})
                name = f"{key.data['topic']}-{key.data['partition']}"
                if value.data is None:
                    of_group.pop(name, None)
                else:
                    of_group[name] = value.data["offset"]
    return {group: offsets for group, offsets in found.items() if offsets}


def test_committed_offsets(corpus: Corpus) -> None:
    partitions = [each for each in corpus.partitions() if each.name.startswith(TOPIC + "-")]
    expected = corpus.truth_json("groups") if partitions else {}
    assert committed_offsets(partitions) == expected


FLEXIBLE = [(name, version) for name, version in VERSIONS if version in MESSAGES[name].flexible]


@pytest.mark.parametrize(("name", "version"), FLEXIBLE)
def test_a_message_with_unknown_tagged_fields_is_read_as_without(name: str, version: int) -> None:
    message = MESSAGES[name]
    cursor = Cursor(encode(message, version, zero_message(message, version, tags=UNKNOWN_TAGS)), "value")
    found = read_message(cursor, message, version)
    assert found.pop(TAGGED_FIELDS) == UNKNOWN_TAGS
    plain = read_message(Cursor(encode(message, version, zero_message(message, version)), "value"), message, version)
    assert found == plain
    assert {each.code for each in cursor.problems} == {"version-unknown"}
    assert cursor.position == cursor.end


@pytest.mark.parametrize("rest", [b"", bytes(40), b"\xff" * 40], ids=["cut-off", "zeros", "ones"])
def test_a_later_version_is_unknown_whatever_follows(rest: bytes) -> None:
    """No byte after the version is read: its layout is not known."""
    for topic, each in record_types():
        decoder = decoder_for(topic)
        later = each.value.versions.highest + 1
        if decoder.is_framed:
            raw = b"\x01" + encode_unsigned_varint(each.id) + encode_unsigned_varint(later) + rest
            decoded = decoder.decode_value(None, raw)
        else:
            assert each.key is not None
            key = decoder.decode_key(each.id.to_bytes(2, "big") + encode(each.key, 0, zero_message(each.key, 0)))
            raw = later.to_bytes(2, "big") + rest
            decoded = decoder.decode_value(key, raw)
        assert (decoded.data, decoded.raw) == (None, raw), each.name
        assert [problem.code for problem in decoded.problems] == ["version-unknown"], each.name


@pytest.mark.parametrize("name", [each for each in CONTROL_TYPES if each not in ("ABORT", "COMMIT")])
@pytest.mark.parametrize("rest", [b"", bytes(40), b"\xff" * 40], ids=["cut-off", "zeros", "ones"])
def test_a_later_control_value_is_unknown_whatever_follows(name: str, rest: bytes) -> None:
    number = CONTROL_TYPES.index(name)
    raw = (schema_of("control_records").types[number].value.versions.highest + 1).to_bytes(2, "big") + rest
    decoded = decode_control_value(number, raw)
    assert (decoded.data, decoded.raw) == (None, raw)
    assert [problem.code for problem in decoded.problems] == ["version-unknown"]
