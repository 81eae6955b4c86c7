"""Decoders of the keys and values of one internal topic, for the two framings of Kafka.

Topics of coordinators (__consumer_offsets, __transaction_state, __share_group_state): the key is an int16 record type
and a message in version 0; the value is an int16 version and a message (CoordinatorRecordSerde). The metadata log and
__remote_log_metadata: there is no key; the value is a frame version, a record type and a version, each an unsigned
varint, and a message (AbstractApiMessageSerde).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from format.errors import CorruptDataError, LimitExceeded, TruncatedData
from format.findings import Severity
from format.internal_topics.cursor import Cursor
from format.internal_topics.decoded import INVALID, Decoded, Problem
from format.internal_topics.reader import reader_for
from format.internal_topics.schema import Message, RecordType

FRAME_VERSION = 1  # 0 is the preview of KRaft in Kafka 2.8, with other records under the same type numbers


class Decoder(Protocol):
    """Decodes the keys and values of one internal topic.

    Both methods raise TruncatedData or CorruptDataError (code "internal-record-invalid", no location) for bytes that
    contradict the schema, and LimitExceeded for a message of millions of values. An unknown type or version is not an
    error: ``raw`` has the bytes, and ``problems`` reports it.
    """

    topic: str
    record_types: dict[int, RecordType]

    def decode_key(self, raw: bytes | None) -> Decoded:
        """Decode a key; for a topic without keys the result is empty."""
        ...

    def decode_value(self, key: Decoded | None, raw: bytes | None) -> Decoded:
        """Decode the value of a record with this key; ``key`` may be None for a topic without keys."""
        ...


class CoordinatorDecoder:
    """The decoder of a coordinator's topic; see the protocol Decoder."""

    def __init__(self, topic: str, record_types: tuple[RecordType, ...]) -> None:
        self.topic = topic
        self.record_types = {each.id: each for each in record_types}

    def decode_key(self, raw: bytes | None) -> Decoded:
        if raw is None:
            raise CorruptDataError(f"a record of {self.topic} has no key", code=INVALID)
        cursor = Cursor(raw, "key")
        type_id = _guarded(cursor, None, Cursor.read_int16)
        record_type = self.record_types.get(type_id)
        if record_type is None or record_type.key is None:
            cursor.warn("version-unknown", f"record type {type_id} is not known", Severity.INFO)
            return Decoded(self.topic, "key", None, None, type_id, None, None, tuple(cursor.problems), raw)
        fields = read_message(cursor, record_type.key, 0)
        return Decoded(
            self.topic, "key", record_type.key.name, record_type.name, type_id, 0, fields, tuple(cursor.problems)
        )

    def decode_value(self, key: Decoded | None, raw: bytes | None) -> Decoded:
        type_id = None if key is None else key.type_id
        record_type = None if type_id is None else self.record_types.get(type_id)
        name = None if record_type is None else record_type.name
        value = None if record_type is None else record_type.value
        value_name = None if value is None else value.name
        if raw is None:
            return Decoded(self.topic, "value", value_name, name, type_id, None, None, is_tombstone=True)
        cursor = Cursor(raw, "value")
        version = _guarded(cursor, value_name, Cursor.read_int16)
        if value is None or version not in value.versions:
            what = f"a value of record type {type_id}" if value is None else f"{value.name} in version {version}"
            cursor.warn("version-unknown", f"{what} is not known", Severity.INFO)
            return Decoded(self.topic, "value", value_name, name, type_id, version, None, tuple(cursor.problems), raw)
        fields = read_message(cursor, value, version)
        if value.name == "GroupMetadataValue":
            from format.internal_topics.consumer_protocol import with_decoded_members

            fields = with_decoded_members(fields, cursor)
        return Decoded(self.topic, "value", value.name, name, type_id, version, fields, tuple(cursor.problems))


class FramedDecoder:
    """The decoder of a topic whose values contain their record type; see the protocol Decoder."""

    def __init__(self, topic: str, record_types: tuple[RecordType, ...]) -> None:
        self.topic = topic
        self.record_types = {each.id: each for each in record_types}

    def decode_key(self, raw: bytes | None) -> Decoded:
        problems: tuple[Problem, ...] = ()
        if raw is not None:
            problems = (Problem(INVALID, Severity.INFO, f"a key, although {self.topic} has no keys", "key", 0),)
        return Decoded(self.topic, "key", None, None, None, None, None, problems, raw)

    def decode_value(self, key: Decoded | None, raw: bytes | None) -> Decoded:
        if raw is None:
            message = f"no value, although {self.topic} has no tombstones"
            problem = Problem(INVALID, Severity.WARNING, message, "value", 0)
            return Decoded(self.topic, "value", None, None, None, None, None, (problem,), is_tombstone=True)
        cursor = Cursor(raw, "value")
        frame_version, type_id, version = _guarded(cursor, None, _frame)
        record_type = self.record_types.get(type_id)
        if frame_version != FRAME_VERSION:
            unknown = f"frame version {frame_version}"
        elif record_type is None:
            unknown = f"record type {type_id}"
        elif version not in record_type.value.versions:
            unknown = f"{record_type.value.name} in version {version}"
        else:
            value = record_type.value
            fields = read_message(cursor, value, version)
            problems = tuple(cursor.problems)
            return Decoded(self.topic, "value", value.name, record_type.name, type_id, version, fields, problems)
        cursor.warn("version-unknown", f"{unknown} is not known", Severity.INFO)
        value_name, name = (None, None) if record_type is None else (record_type.value.name, record_type.name)
        return Decoded(self.topic, "value", value_name, name, type_id, version, None, tuple(cursor.problems), raw)


def _frame(cursor: Cursor) -> tuple[int, int, int]:
    return cursor.read_unsigned_varint(), cursor.read_unsigned_varint(), cursor.read_unsigned_varint()


def read_message(cursor: Cursor, message: Message, version: int) -> dict[str, Any]:
    """Read a message from the cursor's position to its end; bytes after the message are a problem."""
    fields: dict[str, Any] = _guarded(cursor, message.name, reader_for(message, version))
    if cursor.position < cursor.end:
        left = cursor.end - cursor.position
        cursor.warn(INVALID, f"{left} bytes are left after {message.name} in version {version}", Severity.WARNING)
    return fields


def _guarded(cursor: Cursor, name: str | None, read: Any) -> Any:
    """Call ``read``; its errors get the code of this package, and the path of the field in their message."""
    try:
        return read(cursor)
    except (CorruptDataError, LimitExceeded) as error:
        steps = [*([] if name is None else [name]), *reversed(cursor.path)]
        place = ".".join([cursor.part, *steps]).replace(".[", "[")
        message = f"{place}: {error.message}"
        if isinstance(error, LimitExceeded):
            raise LimitExceeded(message) from None
        kind = TruncatedData if isinstance(error, TruncatedData) else CorruptDataError
        raise kind(message, code=INVALID) from None


#: The framing of each topic, and the modules of ``schemas`` with its messages, which ``decoder_for`` imports.
_TABLES: dict[str, tuple[Callable[[str, tuple[RecordType, ...]], Decoder], tuple[str, ...]]] = {
    "__consumer_offsets": (CoordinatorDecoder, ("classic_groups", "consumer_groups", "share_groups", "streams_groups")),
    "__transaction_state": (CoordinatorDecoder, ("transaction_state",)),
    "__share_group_state": (CoordinatorDecoder, ("share_group_state",)),
    "__cluster_metadata": (FramedDecoder, ("cluster_metadata",)),
    "__remote_log_metadata": (FramedDecoder, ("remote_log_metadata",)),
}
#: The topics that have a decoder.
INTERNAL_TOPICS = tuple(_TABLES)


@cache
def decoder_for(topic: str) -> Decoder | None:
    """The decoder of an internal topic's records, None for other topics."""
    if topic not in _TABLES:
        return None
    framing, names = _TABLES[topic]
    modules = (import_module(f"format.internal_topics.schemas.{name}") for name in names)
    return framing(topic, tuple(record_type for module in modules for record_type in module.RECORD_TYPES))
