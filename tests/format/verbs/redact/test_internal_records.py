"""What redact replaces inside the records of coordinators, by the schemas of these."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from format.internal_topics.decoder import decoder_for
from format.internal_topics.schema import MessageField, RecordType
from format.layout import COORDINATOR_TOPICS
from format.verbs.redact.internal_records import coordinator_redaction
from format.verbs.redact.replacements import Mode, Redactor
from tests.format.internal_topics.known_messages import record_types, shipped
from tests.format.internal_topics.message_encoder import encode, zero_message

KINDS = [(topic, kind) for topic, kind in record_types() if topic in COORDINATOR_TOPICS and kind.until is None]
#: Fields whose content stays, in part or as a whole: topics, and words of Kafka's own.
KEPT = {"topic", "topics", "topicName", "subscribedTopicNames", "protocol", "protocolType", "serverAssignor", "name"}
SHIPPED: dict[tuple[str, int], list[bytes]] = {}
for row in shipped("kafka_messages.json"):
    SHIPPED.setdefault((row["name"], row["version"]), []).append(bytes.fromhex(row["hex"]))


def redacted(topic: str, key: bytes, value: bytes) -> tuple[bytes, bytes]:
    replace = coordinator_redaction(topic, Redactor(Mode.FILL))
    assert replace is not None
    new_key, new_value = replace(key, value)
    assert new_key is not None
    assert new_value is not None
    assert (len(new_key), len(new_value)) == (len(key), len(value))
    return new_key, new_value


def check_replaced(fields: tuple[MessageField, ...], before: Any, after: Any) -> None:
    """Strings and bytes are filler of the same length, and everything else is as it was."""
    assert list(before) == list(after)
    for field in (each for each in fields if each.name in before):
        old, new = before[field.name], after[field.name]
        if old is None or not field.type.startswith("[]"):
            old, new = [old], [new]
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            if isinstance(one, dict):
                check_replaced(field.fields, one, other)
            elif one and field.type.endswith("string") and field.name not in KEPT:
                assert other == "x" * len(one.encode())
            elif one and field.type == "bytes" and field.name not in KEPT:
                assert base64.b64decode(other) == b"x" * len(base64.b64decode(one))
            elif field.name not in KEPT:
                assert other == one, field.name


@pytest.mark.parametrize(("topic", "kind"), KINDS, ids=lambda each: getattr(each, "name", each))
def test_strings_and_bytes_are_replaced_and_nothing_else(topic: str, kind: RecordType) -> None:
    assert kind.key is not None
    decoder = decoder_for(topic)
    for version in kind.value.versions:
        for raw_key, raw in zip(SHIPPED[kind.key.name, 0], SHIPPED[kind.value.name, version], strict=False):
            key, value = kind.id.to_bytes(2) + raw_key, version.to_bytes(2) + raw
            new_key, new_value = redacted(topic, key, value)
            old, new = decoder.decode_key(key), decoder.decode_key(new_key)
            check_replaced(kind.key.fields, old.data, new.data)
            before, after = decoder.decode_value(old, value), decoder.decode_value(new, new_value)
            assert not after.problems
            check_replaced(kind.value.fields, before.data, after.data)


KEY = bytes.fromhex("0001 0001 67 0001 74 00000003")
COMMIT = bytes.fromhex("0004 0000000000000007 00000002 01 0000000000000005")
SECRET = b"a secret"


@pytest.mark.parametrize(
    ("tagged", "is_whole"),
    [
        (b"\x01\x09\x08" + SECRET, False),  # a tagged field that is not known
        (b"\x01\x00\x10" + bytes(16) + SECRET, False),  # bytes after the message
        (b"\x01\x00\x18" + bytes(16) + SECRET, True),  # a known tagged field that is longer than its value
        (b"\x02\x00\x10" + bytes(16) + b"\x09\x7f" + SECRET, True),  # cut off
    ],
)
def test_nothing_that_no_schema_describes_is_kept(tagged: bytes, is_whole: bool) -> None:
    _, value = redacted("__consumer_offsets", KEY, COMMIT + tagged)
    assert SECRET not in value
    assert value.startswith(b"x" if is_whole else COMMIT)


def test_an_unknown_type_or_version_is_replaced_as_a_whole() -> None:
    assert redacted("__consumer_offsets", b"\0\x63" + SECRET, SECRET) == (b"x" * 10, b"x" * 8)
    assert redacted("__consumer_offsets", KEY, b"\0\x09" + SECRET)[1] == b"x" * 10


def test_the_blobs_of_a_member_are_replaced_inside() -> None:
    """Topics and numbers of a subscription stay; what is no subscription is replaced as a whole."""
    kind = decoder_for("__consumer_offsets").record_types[2]
    subscription = bytes.fromhex("0001 00000001 0006") + b"orders" + bytes.fromhex("00000008") + SECRET + bytes(4)
    member = zero_message(kind.value, 3) | {"members": [
        {"memberId": "m", "groupInstanceId": None, "clientId": "c", "clientHost": "h", "rebalanceTimeout": 1,
         "sessionTimeout": 2, "subscription": base64.b64encode(subscription + SECRET).decode(),
         "assignment": base64.b64encode(b"\0\0" + SECRET).decode()},
    ]}  # fmt: skip
    _, value = redacted("__consumer_offsets", bytes.fromhex("0002 0001 67"), b"\0\x03" + encode(kind.value, 3, member))
    assert SECRET not in value
    assert subscription.replace(SECRET, b"x" * 8) + b"x" * 8 in value
    assert value.endswith(bytes.fromhex("0000000a") + b"x" * 10)
