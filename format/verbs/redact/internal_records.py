"""Replaces the names in records of coordinators' topics, so that the records can still be decoded.

Strings and bytes are replaced inside the structure that Kafka's schemas define: group ids, member ids, client ids and
hosts, transactional ids, metadata of commits. Topic names stay, as they do in the names of directories; so do numbers,
UUIDs and Kafka's own words. Bytes that no schema describes are replaced as a whole, as in any other topic.
"""

from __future__ import annotations

from format.errors import KafkaLogError
from format.internal_topics.decoder import CONSUMER_BLOBS, decoder_for
from format.internal_topics.reader import Cursor, Reader, reader_for
from format.internal_topics.schema import Message, schema_of
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

_Span = tuple[int, int, bool]  # start, length, whether it is text


def coordinator_redaction(topic: str | None, redactor: Redactor) -> ReplaceRecord | None:
    """The function that replaces the records of a coordinator's topic; None for any other topic."""
    if topic not in COORDINATOR_TOPICS:
        return None
    types = decoder_for(topic).record_types

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
    cursor.take(2)
    spans = _spans(cursor, reader_for(message, version))
    if spans is None:
        return redactor.replaced(content)
    new = bytearray(content)
    for start, length, is_text in spans:
        part = content[start : start + length]
        new[start : start + length] = redactor.replaced_text(part) if is_text else redactor.replaced(part)
    return bytes(new)


def _spans(cursor: Cursor, read: Reader) -> list[_Span] | None:
    """The parts to replace in what is left of a cursor's bytes, None if they are no such message.

    They are the strings and bytes that the decoder reads, tagged fields that it does not know, and bytes after the
    message, which nobody reads.
    """
    cursor.leaves = []
    try:
        read(cursor)
    except KafkaLogError:
        return None
    found: list[_Span] = []
    for leaf in cursor.leaves:
        content = cursor.buffer[leaf.position : leaf.position + leaf.length]
        if leaf.is_text and (leaf.name in _TOPIC_FIELDS or (leaf.name in _WORD_FIELDS and content in _WORDS)):
            continue
        inner = _blob_spans(content, CONSUMER_BLOBS[leaf.name]) if leaf.name in CONSUMER_BLOBS else None
        if inner is None:
            found.append((leaf.position, leaf.length, leaf.is_text))
        else:
            found += [(leaf.position + start, length, is_text) for start, length, is_text in inner]
    if cursor.position < cursor.end:
        found.append((cursor.position, cursor.end - cursor.position, False))
    return found


def _blob_spans(content: bytes, name: str) -> list[_Span] | None:
    """The parts to replace in a version and a message of the consumer protocol, None if the bytes are none."""
    if len(content) < 2:
        return None
    cursor, message = Cursor(content, "value"), schema_of("consumer_protocol").messages[name]
    return _spans(cursor, reader_for(message, min(max(cursor.read_int16(), 0), message.versions.highest)))
