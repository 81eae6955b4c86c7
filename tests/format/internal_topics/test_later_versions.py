"""What a later Kafka may add to records: tagged fields are read over, a later version is not known."""

from __future__ import annotations

import pytest

from format.internal_topics.decoder import decode_control_value, decoder_for, read_message
from format.internal_topics.reader import TAGGED_FIELDS, Cursor
from format.internal_topics.schema import schema_of
from format.layout import CONTROL_TYPES
from tests.format.internal_topics.known_messages import MESSAGES, VERSIONS, record_types
from tests.format.internal_topics.message_encoder import encode
from tests.format.internal_topics.zero_messages import UNKNOWN_TAGS, zero_message
from tests.record_encoder import encode_unsigned_varint

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
