"""Replaces the names in records of coordinators' topics, so that the records can still be decoded.

Strings and bytes are replaced inside the structure that Kafka's schemas define: group ids, member ids, client ids and
hosts, transactional ids, metadata of commits. Topic names stay, as they do in the names of directories; so do numbers,
UUIDs and Kafka's own words. Bytes that no schema describes are replaced as a whole, as in any other topic.
"""

from __future__ import annotations

from collections.abc import Iterator

from format.errors import KafkaLogError
from format.internal_topics.cursor import Cursor
from format.internal_topics.decoder import decoder_for
from format.internal_topics.schema import FIXED_WIDTH_TYPES, NO_VERSIONS, Field, Message
from format.internal_topics.schemas.consumer_protocol import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
)
from format.layout import COORDINATOR_TOPICS
from format.verbs.redact.batches import ReplaceRecord
from format.verbs.redact.replacements import Redactor

#: Fields with topic names, which the names of directories show anyway.
_TOPIC_FIELDS = frozenset({"topic", "topics", "topicName", "subscribedTopicNames"})
#: Fields that may hold Kafka's own words, and these words; any other word there comes from a user.
_WORD_FIELDS = frozenset({"protocolType", "protocol", "serverAssignor", "name"})
_WORDS = frozenset(
    b"consumer connect share streams eager compatible sessioned "
    b"range roundrobin sticky cooperative-sticky uniform".split()
)
#: The messages that members of a classic group of consumers exchange.
_BLOBS = {"subscription": CONSUMER_PROTOCOL_SUBSCRIPTION, "assignment": CONSUMER_PROTOCOL_ASSIGNMENT}

_Span = tuple[int, int, bool]  # start, length, whether it is text


def coordinator_redaction(topic: str | None, redactor: Redactor) -> ReplaceRecord | None:
    """The function that replaces the records of a coordinator's topic; None for any other topic."""
    if topic not in COORDINATOR_TOPICS:
        return None
    decoder = decoder_for(topic)
    if decoder is None:
        return None
    types = decoder.record_types

    def replace_record(key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        known = None if key is None or len(key) < 2 else types.get(int.from_bytes(key[:2], "big", signed=True))
        if known is None:
            return _whole(key, redactor), _whole(value, redactor)
        new_key = _inside(key, known.key, redactor, fixed_version=0)
        return new_key, _inside(value, known.value, redactor)

    return replace_record


def _whole(content: bytes | None, redactor: Redactor) -> bytes | None:
    return None if content is None else redactor.replaced(content)


def _inside(
    content: bytes | None, message: Message | None, redactor: Redactor, fixed_version: int | None = None
) -> bytes | None:
    """The content with its strings and bytes replaced, or replaced as a whole if it is no such message."""
    if content is None:
        return None
    if message is None or len(content) < 2:
        return redactor.replaced(content)
    version = int.from_bytes(content[:2], "big", signed=True) if fixed_version is None else fixed_version
    if version not in message.versions:
        return redactor.replaced(content)
    cursor = Cursor(content, "value")
    try:
        cursor.take(2)
        spans = list(_struct_spans(cursor, message.fields, version, version in message.flexible))
    except KafkaLogError:
        return redactor.replaced(content)
    if cursor.position < cursor.end:  # bytes after the message, which nobody reads
        spans.append((cursor.position, cursor.end - cursor.position, False))
    new = bytearray(content)
    for start, length, is_text in spans:
        part = content[start : start + length]
        new[start : start + length] = redactor.replaced_text(part) if is_text else redactor.replaced(part)
    return bytes(new)


def _struct_spans(cursor: Cursor, fields: tuple[Field, ...], version: int, flexible: bool) -> Iterator[_Span]:
    """The places of the strings and bytes of a struct. Raises as the cursor does."""
    present = [each for each in fields if version in each.versions]
    for each in present:
        if each.tag is None:
            yield from _field_spans(cursor, each, version, flexible)
    if not flexible:
        return
    tagged = {each.tag: each for each in present if each.tag is not None}
    for _ in range(cursor.read_unsigned_varint()):
        tag, size_bytes = cursor.read_unsigned_varint(), cursor.read_unsigned_varint()
        start = cursor.take(size_bytes)
        known = tagged.get(tag)
        if known is None:
            yield start, size_bytes, False
            continue
        inner = Cursor(cursor.buffer, cursor.part, cursor.values_left)
        inner.position, inner.end = start, start + size_bytes
        yield from _field_spans(inner, known, version, flexible)
        yield inner.position, inner.end - inner.position, False


def _field_spans(cursor: Cursor, field: Field, version: int, flexible: bool) -> Iterator[_Span]:
    cursor.charge(1)
    if field.element_type is not None:
        count = cursor.read_length(flexible, 4)
        if count > cursor.end - cursor.position:
            cursor.take(count)  # raises: each element has at least one byte
        element = Field(field.name, field.element_type, field.fields, field.versions, NO_VERSIONS, None, None)
        for _ in range(max(count, 0)):
            yield from _field_spans(cursor, element, version, flexible)
    elif field.type == "struct":
        if version in field.nullable:
            is_null = (
                cursor.read_unsigned_varint() == 0 if field.tag is not None else cursor.buffer[cursor.take(1)] >= 0x80
            )
            if is_null:
                return
        yield from _struct_spans(cursor, field.fields, version, flexible)
    elif field.type in FIXED_WIDTH_TYPES:
        cursor.take(FIXED_WIDTH_TYPES[field.type])
    else:
        length = cursor.read_length(flexible, 2 if field.type == "string" else 4)
        if length > 0:
            start = cursor.take(length)
            yield from _leaf_spans(cursor, field, start, length)


def _leaf_spans(cursor: Cursor, field: Field, start: int, length: int) -> Iterator[_Span]:
    """The parts to replace of one string or bytes."""
    is_text = field.type == "string"
    if is_text and field.name in _TOPIC_FIELDS:
        return
    if is_text and field.name in _WORD_FIELDS and cursor.buffer[start : start + length] in _WORDS:
        return
    blob = None if is_text else _BLOBS.get(field.name)
    if blob is None:
        yield start, length, is_text
        return
    inner = Cursor(cursor.buffer, cursor.part, cursor.values_left)
    inner.position, inner.end = start, start + length
    try:
        version = inner.read_int16()
        spans = list(_struct_spans(inner, blob.fields, min(max(version, 0), blob.versions.highest), False))
    except KafkaLogError:
        yield start, length, False
        return
    yield from spans
    if inner.position < inner.end:
        yield inner.position, inner.end - inner.position, False
