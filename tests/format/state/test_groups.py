"""What the kernel reads of coordinators' records, against the decoder of every field, and the reduction to states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import KafkaLogError
from format.internal_topics.decoder import Decoder, decoder_for
from format.kernel.group_records import GROUP_RECORD_ERRORS, SHARE_STATE_TYPES, read_group_records
from format.kernel.tables import GROUP_COLUMNS, RECORD_COLUMNS
from format.state.groups import DistinctRows, distinct_strings
from tests.format.internal_topics.known_messages import bytes_of, record_types, shipped
from tests.format.internal_topics.message_encoder import encode, messages

TOPICS = {"__consumer_offsets": 0, "__share_group_state": SHARE_STATE_TYPES}
_WHOLE_TEXT = 15


def facts_of(key: bytes | None, value: bytes | None, first_type: int) -> dict[str, Any]:
    """The row of one record; names and texts as bytes."""
    buffer = b"\x7f" * 3 + (key or b"") + (value or b"") + b"\x7f" * 40
    record = np.zeros((1, len(RECORD_COLUMNS)), np.int64)
    for name, start, content in (("key", 3, key), ("value", 3 + len(key or b""), value)):
        record[0, RECORD_COLUMNS.index(f"{name}_start")] = start
        record[0, RECORD_COLUMNS.index(f"{name}_length")] = -1 if content is None else len(content)
    table = np.full((1, len(GROUP_COLUMNS)), 77, np.int64)
    read_group_records(memoryview(buffer), memoryview(record), first_type, memoryview(table))
    found = dict(zip(GROUP_COLUMNS, table[0].tolist(), strict=True))
    for name in ("group", "name", "text"):
        start, length = found.pop(f"{name}_start"), found.pop(f"{name}_length")
        found[name] = None if length < 0 else buffer[start : start + length]
        assert length <= 0 or 3 <= start < start + length <= len(buffer) - 40
    return found


def expected_of(decoder: Decoder, key: bytes, value: bytes | None, first_type: int) -> dict[str, Any]:
    """The same from the decoder that reads every field."""
    decoded = decoder.decode_key(key)
    assert decoded.data is not None
    fields = decoder.decode_value(decoded, value).data
    names = decoded.data
    name = names.get("topic", names.get("memberId", names.get("regularExpression")))
    found = {
        "error": 0,
        "type": decoded.type_id + first_type if decoded.type_id is not None else None,
        "group": names.get("group", names.get("groupId")).encode(),
        "name": None if name is None else name.encode(),
        "partition": names.get("partition", -1),
        **dict.fromkeys(("number", "detail", "timestamp", "expire_timestamp"), -1),
        "text": None,
    }
    if "topicId" in names:
        found["name"] = key[-20:-4]
    if fields is None:
        return found
    if decoded.record_type in ("OFFSET_COMMIT", "LEGACY_OFFSET_COMMIT"):
        found |= {
            "number": fields["offset"],
            "detail": fields.get("leaderEpoch", -1),
            "timestamp": fields["commitTimestamp"],
            "expire_timestamp": fields.get("expireTimestamp", -1),
            "text": fields["metadata"].encode(),
        }
    elif decoded.record_type == "GROUP_METADATA":
        found |= {
            "number": fields["generation"],
            "detail": len(fields["members"]),
            "timestamp": fields.get("currentStateTimestamp", -1),
            "text": None if fields["leader"] is None else fields["leader"].encode(),
        }
    elif "memberEpoch" in fields:
        found |= {"number": fields["memberEpoch"], "detail": fields["state"] & 0xFF}
    elif "startOffset" in fields:
        found |= {
            "number": fields["startOffset"],
            "detail": fields["leaderEpoch"],
            "timestamp": fields.get("writeTimestamp", -1),
            "expire_timestamp": fields.get("deliveryCompleteCount", -1),
        }
    elif "epoch" in fields or "assignmentEpoch" in fields:
        found["number"] = fields.get("epoch", fields.get("assignmentEpoch"))
        found["detail"] = fields.get("validatedTopologyEpoch", -1)
    if decoded.type_id == _WHOLE_TEXT:
        found["text"] = value
    return found


def test_the_kernel_reads_what_the_decoder_reads_of_the_records_of_brokers() -> None:
    for row in shipped("broker_records.json"):
        if row["topic"] in TOPICS:
            decoder, first_type = decoder_for(row["topic"]), TOPICS[row["topic"]]
            key, value = bytes_of(row, "key"), bytes_of(row, "value")
            assert key is not None
            assert facts_of(key, value, first_type) == expected_of(decoder, key, value, first_type)


@pytest.mark.slow
@given(st.data())
def test_the_kernel_reads_what_the_decoder_reads_of_every_version(data: st.DataObject) -> None:
    topic, record_type = data.draw(st.sampled_from([each for each in record_types() if each[0] in TOPICS]))
    assert record_type.key is not None
    key = record_type.id.to_bytes(2, "big") + encode(record_type.key, 0, data.draw(messages(record_type.key, 0)))
    versions = record_type.value.versions
    version = data.draw(st.integers(versions.lowest, versions.highest))
    fields = data.draw(messages(record_type.value, version))
    value = version.to_bytes(2, "big") + encode(record_type.value, version, fields)
    decoder, first_type = decoder_for(topic), TOPICS[topic]
    assert facts_of(key, None, first_type) == expected_of(decoder, key, None, first_type)
    try:
        expected = expected_of(decoder, key, value, first_type)
    except KafkaLogError:  # the bytes of a classic member's subscription, which are read no further here
        assert record_type.name == "GROUP_METADATA"
        return
    assert facts_of(key, value, first_type) == expected
    # What is cut off is an error or what stands before the cut; it is never read past.
    facts_of(key, value[: data.draw(st.integers(0, len(value)))], first_type)
    facts_of(key[: data.draw(st.integers(0, len(key)))], value, first_type)


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 1, 2, 3])
@given(st.data())
def test_a_committed_offset_without_its_end_is_an_error(version: int, data: st.DataObject) -> None:
    (record_type,) = (each for _, each in record_types() if each.name == "OFFSET_COMMIT" and each.id == 1)
    assert record_type.key is not None
    key = (1).to_bytes(2, "big") + encode(record_type.key, 0, data.draw(messages(record_type.key, 0)))
    value = version.to_bytes(2, "big") + encode(
        record_type.value, version, data.draw(messages(record_type.value, version))
    )
    assert facts_of(key, value, 0)["error"] == 0
    for length in range(len(value)):
        assert facts_of(key, value[:length], 0)["error"] != 0


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (None, b"", "the key is missing or cut off"),
        (b"\0", b"", "the key is missing or cut off"),
        (b"\0\1\0\5abc", b"", "the key is missing or cut off"),
        (b"\0\x12\0\1a", b"", "the record type is not known"),
        (b"\x7f\xff\0\1a", b"", "the record type is not known"),
        (b"\0\2\0\1g", b"\0", "the value is cut off"),
        (b"\0\2\0\1g", b"\0\5", "the version of the value is not known"),
        (b"\0\3\0\1g", b"\0\1\0\0\0\1\0", "the version of the value is not known"),
        (b"\0\1\0\1g\0\1t\0\0\0\0", b"\0\1" + b"\0" * 8 + b"\xff\xff" + b"\0" * 16, "the value has an invalid length"),
        (b"\0\2\0\1g", b"\0\0\xff\xff", "the value has an invalid length"),
    ],
)
def test_what_contradicts_the_schema_has_an_error(key: bytes | None, value: bytes, words: str) -> None:
    assert GROUP_RECORD_ERRORS[facts_of(key, value, 0)["error"]] == words


def test_equal_strings_and_rows_have_equal_numbers() -> None:
    chance = np.random.default_rng(5)
    words = [b"", b"a", b"group-1", b"group-2", b"x" * 300, *(b"n%d" % number for number in range(700))]
    chosen = chance.integers(0, len(words), 5000)
    starts = np.cumsum([0, *(len(word) for word in words)])
    spans = np.stack((starts[chosen], np.array([len(words[each]) for each in chosen])), axis=1)
    spans[::50, 1] = -1
    numbers, firsts = distinct_strings(memoryview(b"".join(words)), spans)
    expected: dict[int, int] = {}
    for row, word in enumerate(chosen.tolist()):
        wanted = -1 if row % 50 == 0 else expected.setdefault(word, len(expected))
        assert numbers[row] == wanted
    assert [chosen[first] for first in firsts.tolist()] == list(expected)
    rows = chance.integers(-3, 3, (20_000, 3)) << chance.integers(0, 3, (20_000, 1)) * 20
    known = DistinctRows(3)
    seen: dict[tuple[int, ...], int] = {}
    for part in np.array_split(rows, 7):  # it grows while numbers stay
        assert known.numbers_of(part).tolist() == [seen.setdefault(tuple(row), len(seen)) for row in part.tolist()]
    assert len(known) == len(seen)
    assert known.rows.tolist() == [list(row) for row in seen]
