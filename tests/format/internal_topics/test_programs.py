"""The programs of the schemas against the decoder: what the one finds sound, the other reads without a problem."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.errors import KafkaLogError
from format.internal_topics.decoder import INTERNAL_TOPICS, decoder_for
from format.internal_topics.record_check import InternalRecordCheck, programs_of
from format.internal_topics.schema import RecordType
from format.kernel.messages import find_odd_coordinator_record, find_odd_framed_record
from format.kernel.tables import RECORD_COLUMNS
from format.location import Location
from tests.format.internal_topics.known_messages import record_types, shipped
from tests.format.internal_topics.message_encoder import encode, messages
from tests.record_encoder import encode_unsigned_varint

pytestmark = pytest.mark.long

PAIRS = [(topic, each, version) for topic, each in record_types() for version in each.value.versions]


def is_plainly_sound(topic: str, key: bytes | None, value: bytes | None) -> bool:
    """What the kernel says of one record."""
    programs = programs_of(topic)
    row = dict.fromkeys(RECORD_COLUMNS, 0)
    row["key_length"] = -1 if key is None else len(key)
    row["value_start"] = len(key or b"")
    row["value_length"] = -1 if value is None else len(value)
    records = memoryview(np.array([list(row.values())], np.int64))
    messages, steps = memoryview(programs.messages), memoryview(programs.steps)
    find = find_odd_coordinator_record if programs.messages[:, 0].max() >= 0 else find_odd_framed_record
    buffer = (key or b"") + (value or b"")
    return find(buffer, records, messages, programs.messages.shape[1] - 1, steps, 0) == -1


def decodes_without_problem(topic: str, key: bytes | None, value: bytes | None) -> bool:
    """What the decoder says of it."""
    decoder = decoder_for(topic)
    try:
        decoded_key = decoder.decode_key(key)
        return not decoded_key.problems and not decoder.decode_value(decoded_key, value).problems
    except KafkaLogError:
        return False


def record_of(each: RecordType, version: int, key: dict[str, Any], value: dict[str, Any]) -> tuple[bytes | None, bytes]:
    if each.key is None:
        frame = b"".join(map(encode_unsigned_varint, (1, each.id, version)))
        return None, frame + encode(each.value, version, value)
    return struct.pack(">h", each.id) + encode(each.key, 0, key), struct.pack(">h", version) + encode(
        each.value, version, value
    )


@pytest.mark.parametrize(("topic", "each", "version"), PAIRS, ids=lambda word: getattr(word, "name", str(word)))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_random_messages_and_damage_to_them(topic: str, each: RecordType, version: int, data: st.DataObject) -> None:
    """Numbers of something that a broker bounds are the only content that the decoder leaves to the check."""
    words = {} if each.key is None else data.draw(messages(each.key, 0))
    content = data.draw(messages(each.value, version))
    for name, largest in (("transactionStatus", 7), ("clientTransactionVersion", 2)):
        if name in content:
            content[name] %= largest + 1
    key, value = record_of(each, version, words, content)
    assert is_plainly_sound(topic, key, value)
    assert decodes_without_problem(topic, key, value)
    for part in data.draw(st.lists(st.tuples(st.integers(0, len(value)), st.binary(max_size=3)), max_size=4)):
        at, inserted = part
        damaged = value[:at] + inserted + value[at + data.draw(st.integers(0, 2)) :]
        if is_plainly_sound(topic, key, damaged):
            # What is not UTF-8 is read by Kafka, with replacement characters.
            assert decodes_without_problem(topic, key, damaged) or "UTF-8" in problems_of(topic, key, damaged)
        elif decodes_without_problem(topic, key, damaged):
            assert list(InternalRecordCheck(topic, Location("x")).problems(key, damaged))


def problems_of(topic: str, key: bytes | None, value: bytes | None) -> str:
    decoder = decoder_for(topic)
    decoded_key = decoder.decode_key(key)
    found = (*decoded_key.problems, *decoder.decode_value(decoded_key, value).problems)
    return " ".join(each.message for each in found)


def test_records_of_brokers_are_plainly_sound() -> None:
    """The bytes that a broker wrote, of all topics."""
    rows = shipped("broker_records.json")
    assert {row["topic"] for row in rows} <= set(INTERNAL_TOPICS)
    for row in rows:
        key, value = (None if row[each] is None else bytes.fromhex(row[each]) for each in ("key", "value"))
        assert is_plainly_sound(row["topic"], key, value), row
