"""Decoders of the keys and values of internal topics, of control records, and of what is embedded in them.

Topics of coordinators (__consumer_offsets, __transaction_state, __share_group_state): the key is an int16 record type
and a message in version 0; the value is an int16 version and a message (CoordinatorRecordSerde). The metadata log and
__remote_log_metadata: there is no key; the value is a frame version, a record type and a version, each an unsigned
varint, and a message (AbstractApiMessageSerde). Control records: clients record/ControlRecordType, ControlRecordUtils,
EndTransactionMarker. Members of classic groups: clients consumer/internals/ConsumerProtocol.
"""

from __future__ import annotations

import base64
from functools import cache
from typing import Any, Final

import msgspec

from format.errors import CorruptDataError, LimitExceeded, TruncatedData, UnknownVersion
from format.findings import Severity
from format.internal_topics.reader import INVALID, Cursor, DecodedMessage, DecodingProblem, reader_for
from format.internal_topics.schema import Message, RecordType, Release, schema_of
from format.wording import counted_plainly

FRAME_VERSION = 1  # 0 is the preview of KRaft in Kafka 2.8, with other records under the same type numbers
#: The topics that have a decoder.
INTERNAL_TOPICS = (
    "__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata",
)  # fmt: skip
#: transactionStatus in __transaction_state by number (transaction-coordinator TransactionState).
TRANSACTION_STATUSES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
#: The protocol type of consumer groups; other groups ("connect") have blobs in other formats.
CONSUMER_PROTOCOL_TYPE: Final = "consumer"
#: The fields of a member of a classic consumer group that have messages of their own.
CONSUMER_BLOBS = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}


@cache
def decoder_for(topic: str, release: Release | None = None) -> Decoder:
    """The decoder of an internal topic's records as a release knows them, by default the newest known one.

    Raises ValueError for another topic.
    """
    if topic not in INTERNAL_TOPICS:
        raise ValueError(f"there is no decoder of {topic}")
    types = schema_of(topic).types
    if release is not None:
        known = [each for each in types.values() if each.since is None or each.since <= release]
        types = {each.id: each.as_of(release) for each in known}
    return Decoder(topic, types, is_framed=all(each.key is None for each in types.values()))


class Decoder(msgspec.Struct, frozen=True):
    """Decodes the keys and values of one internal topic; with ``is_framed``, values contain their record type.

    Both methods raise TruncatedData or CorruptDataError (code "internal-record-invalid", no location) for bytes that
    contradict the schema, and LimitExceeded for a message of millions of values. An unknown type or version is not an
    error: ``raw`` has the bytes, and ``problems`` reports it.
    """

    topic: str
    record_types: dict[int, RecordType]
    is_framed: bool

    def decode_key(self, raw: bytes | None) -> DecodedMessage:
        """Decode a key; for a topic without keys the result is empty."""
        if self.is_framed:
            problem = DecodingProblem(INVALID, Severity.INFO, f"a key, although {self.topic} has no keys", "key", 0)
            return DecodedMessage(self.topic, "key", problems=() if raw is None else (problem,), raw=raw)
        if raw is None:
            raise CorruptDataError(f"a record of {self.topic} has no key", code=INVALID)
        cursor = Cursor(raw, "key")
        type_id = _guarded(cursor, None, Cursor.read_int16)
        kind = self.record_types.get(type_id)
        if kind is None or kind.key is None:
            return self._unknown(cursor, None, type_id, None, f"record type {type_id}")
        fields = read_message(cursor, kind.key, 0)
        return DecodedMessage(self.topic, "key", kind.key.name, kind.name, type_id, 0, fields, tuple(cursor.problems))

    def decode_value(self, key: DecodedMessage | None, raw: bytes | None) -> DecodedMessage:
        """Decode the value of a record with this key; ``key`` may be None for a topic without keys."""
        type_id = None if key is None else key.type_id
        kind = None if type_id is None else self.record_types.get(type_id)
        if raw is None:
            message = f"no value, although {self.topic} has no tombstones"
            problems = (DecodingProblem(INVALID, Severity.WARNING, message, "value", 0),) if self.is_framed else ()
            return DecodedMessage(self.topic, "value", *_names(kind), type_id, problems=problems, is_tombstone=True)
        cursor, frame_version = Cursor(raw, "value"), FRAME_VERSION
        if self.is_framed:
            frame_version, type_id, version = _guarded(cursor, None, _frame)
            kind = self.record_types.get(type_id)
        else:
            version = _guarded(cursor, _names(kind)[0], Cursor.read_int16)
        if frame_version != FRAME_VERSION:
            return self._unknown(cursor, kind, type_id, version, f"frame version {frame_version}")
        if kind is None:
            what = "record type" if self.is_framed else "a value of record type"
            return self._unknown(cursor, kind, type_id, version, f"{what} {type_id}")
        value = kind.value
        if version not in value.versions:
            return self._unknown(cursor, kind, type_id, version, f"{value.name} in version {version}")
        fields = read_message(cursor, value, version)
        if value.name == "GroupMetadataValue" and fields["protocolType"] == CONSUMER_PROTOCOL_TYPE:
            _decode_members(fields["members"], cursor)
        return DecodedMessage(
            self.topic, "value", value.name, kind.name, type_id, version, fields, tuple(cursor.problems)
        )

    def _unknown(
        self, cursor: Cursor, kind: RecordType | None, type_id: int | None, version: int | None, what: str
    ) -> DecodedMessage:
        """What is left of a key or value of a newer type or version."""
        cursor.warn("version-unknown", f"{what} is not known", Severity.INFO)
        problems = tuple(cursor.problems)
        return DecodedMessage(self.topic, cursor.part, *_names(kind), type_id, version, None, problems, cursor.buffer)


def _names(kind: RecordType | None) -> tuple[str | None, str | None]:
    """The names of a record type's value and of the type."""
    return (None, None) if kind is None else (kind.value.name, kind.name)


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


def _decode_members(members: list[dict[str, Any]], cursor: Cursor) -> None:
    """Put the decoded subscriptions and assignments of a classic group's members in the place of their bytes.

    A blob that cannot be decoded remains in base64, and is a problem of the cursor. An empty blob, of a member without
    an assignment, remains too, and is not a problem.
    """
    messages = schema_of("consumer_protocol").messages
    for number, member in enumerate(members):
        for name, message in CONSUMER_BLOBS.items():
            blob = base64.b64decode(member[name])
            if not blob:
                continue
            try:
                member[name] = _decode_blob(blob, messages[message], cursor)
            except (CorruptDataError, LimitExceeded, UnknownVersion) as error:
                is_newer = isinstance(error, UnknownVersion)
                code, severity = (error.code, Severity.INFO) if is_newer else (INVALID, Severity.WARNING)
                cursor.warn(code, f"members[{number}].{name} stays undecoded: {error.message}", severity)


def _decode_blob(blob: bytes, message: Message, outer: Cursor) -> dict[str, Any]:
    """Decode a version and a message; bytes after it are ignored, and ``outer`` counts the values for the limit.

    A newer version is decoded as the newest known one, as Kafka does, unless the message has partitions, whose layout
    may have changed. Raises UnknownVersion for these.
    """
    cursor = Cursor(blob, outer.part, outer.values_left)
    version = cursor.read_int16()
    if version < 0:
        raise CorruptDataError(f"version {version} at byte 0")
    found = reader_for(message, min(version, message.versions.highest))(cursor)
    outer.values_left = cursor.values_left
    if version > message.versions.highest and (found.get("ownedPartitions") or found.get("assignedPartitions")):
        raise UnknownVersion(f"{message.name} in version {version} is not known")
    for problem in cursor.problems:
        outer.warn(problem.code, f"in a member's {message.name}: {problem.message}", problem.severity)
    return found


def decode_control_value(type_number: int, raw: bytes | None, topic: str = "") -> DecodedMessage:
    """Decode the value of a control record, by the type number in its key.

    All values start with their version. For an unknown type or version, the result has ``raw`` and a problem; but a
    newer transaction marker is decoded as the newest known version, as brokers do. Raises TruncatedData and
    CorruptDataError (code "internal-record-invalid") for bytes that contradict the schema.
    """
    if raw is None or len(raw) < 2:
        found = "no value" if raw is None else counted_plainly(len(raw), "byte")
        raise TruncatedData(f"value: {found}, too short for a control record", code=INVALID)
    cursor = Cursor(raw, "value")
    version = cursor.read_int16()
    kind = schema_of("control_records").types.get(type_number)
    name, type_name = _names(kind)
    newest = 0 if kind is None else kind.value.versions.highest
    is_marker = name == "EndTxnMarker"
    if kind is None or (version not in kind.value.versions and not (is_marker and version > newest)):
        unknown = f"control record type {type_number}" if kind is None else f"{name} in version {version}"
        cursor.warn("version-unknown", f"{unknown} is not known", Severity.INFO)
        problems = tuple(cursor.problems)
        return DecodedMessage(topic, "control", name, type_name, type_number, version, None, problems, raw)
    if version > newest:
        cursor.warn("version-unknown", f"{name} in version {version} is read as {newest}", Severity.INFO)
    if not is_marker:
        cursor.position = 0  # the version is the first field of the message
    fields = read_message(cursor, kind.value, min(version, newest))
    return DecodedMessage(topic, "control", name, type_name, type_number, version, fields, tuple(cursor.problems))
