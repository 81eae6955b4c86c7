"""Decoded keys and values as kafka-dump-log prints them, byte for byte.

Source: tools DumpLogSegments (its message parsers), Jackson's JsonNode.toString, storage-api RemoteLogMetadata's
toString methods.
"""

from __future__ import annotations

import base64
import re
from decimal import Decimal
from typing import Any

from format.errors import KafkaLogError
from format.internal_topics.decoder import Decoder
from format.internal_topics.reader import TAGGED_FIELDS, Cursor, DecodedMessage

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SEGMENT_STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
_PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")


def dump_log_json(decoded: DecodedMessage) -> str:
    """The text that kafka-dump-log prints for a decoded key, value or control record.

    It is ``{"type":"1","data":{…}}`` for the key of a coordinator, ``{"version":"3","data":{…}}`` or ``<DELETE>`` for
    its value, ``{"type":"TOPIC_RECORD","version":0,"data":{…}}`` for a metadata record, only the fields for a control
    record, and text that is not JSON for remote log metadata. Raises ValueError for a record that is not decoded, or
    that Kafka itself rejects.
    """
    if decoded.is_tombstone:
        return "<DELETE>"
    fields = decoded.data
    if fields is None:
        raise ValueError(f"the {decoded.part} is not decoded")
    if decoded.part == "control":
        return to_json_text(fields)
    if decoded.topic == "__remote_log_metadata":
        return _remote_text(decoded.name or "", fields)
    if decoded.topic == "__cluster_metadata":
        return to_json_text({"type": decoded.record_type, "version": decoded.version, "data": fields})
    if decoded.part == "key":
        return to_json_text({"type": str(decoded.type_id), "data": fields})
    return to_json_text({"version": str(decoded.version), "data": fields})


def dump_log_contents(
    decoder: Decoder, key: bytes | None, value: bytes | None, offset: int
) -> tuple[str | None, str | None]:
    """The key and the payload that kafka-dump-log prints for a record with its decoder; None for a missing one.

    For a record that it cannot decode, Kafka prints an error in place of the key or payload. The end of that text, in
    Kafka the message of a Java exception, is the message of this program.
    """
    framed = decoder.is_framed
    try:
        if framed:
            decoded = decoder.decode_value(None, value)
            if decoded.data is None or any(each.part == "value" for each in decoded.problems):
                refused = _refusal(decoded)
                if refused is not None:
                    raise ValueError(refused)
            return None, dump_log_json(decoded)
        decoded_key = decoder.decode_key(key)
        if decoded_key.data is None:
            return f"Unknown record type {decoded_key.type_id} at offset {offset}, skipping.", None
        decoded = decoder.decode_value(decoded_key, value)
        if decoded.raw is not None:
            raise ValueError(f"Found an unknown record version {decoded.version} for {decoded.type_id} type")
        return dump_log_json(decoded_key), dump_log_json(decoded)
    except (KafkaLogError, ValueError) as error:
        message = error.message if isinstance(error, KafkaLogError) else str(error)
        where = str(offset) if decoder.topic == "__cluster_metadata" else f"offset {offset}"
        text = f"Error at {where}, skipping. {message}"
        return (None, text) if framed else (text, None)


def _refusal(decoded: DecodedMessage) -> str | None:
    """The error of Kafka for a metadata record that is newer or has bytes left over; None if Kafka decodes it."""
    if decoded.data is None:
        frame_version = Cursor(decoded.raw or b"\x01", "value").read_unsigned_varint()
        if frame_version == 0:
            return (
                "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
                "release of KRaft in 2.8 to newer versions are not supported."
            )
        if frame_version != 1:
            return (
                "Could not deserialize metadata record due to unknown frame version "
                f"{frame_version}(only frame version 1 is supported)"
            )
        if decoded.name is None and decoded.type_id is not None:
            exception = "org.apache.kafka.common.errors.UnsupportedVersionException"
            return f"{exception}: Unknown metadata id {decoded.type_id}"
        return "; ".join(each.message for each in decoded.problems) or "no value"
    left = [each for each in decoded.problems if " bytes are left after " in each.message]
    return f"Found {left[0].message.split()[0]} byte(s) of garbage after {decoded.type_id}" if left else None


# -- JSON as Jackson writes it -------------------------------------------------------------------------------


def to_json_text(value: Any) -> str:
    """Decoded data as Jackson writes it, without spaces and with Java's doubles, and without unknown tagged fields."""
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, list):
        return "[" + ",".join([to_json_text(each) for each in value]) + "]"
    return (
        "{" + ",".join([f"{_quoted(k)}:{to_json_text(each)}" for k, each in value.items() if k != TAGGED_FIELDS]) + "}"
    )


def _quoted(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def java_double(number: float) -> str:
    """A finite double as Java's Double.toString writes it: without an exponent from 0.001 to 10 million."""
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    minus = "-" if sign else ""
    if text == "0":
        return minus + "0.0"
    point = len(digits) + int(exponent)  # digits before the decimal point
    if -2 <= point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{minus}{text[:point]}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


# -- remote log metadata, as toString writes it --------------------------------------------------------------


def _remote_text(name: str, fields: dict[str, Any]) -> str:
    if name == "RemotePartitionDeleteMetadataRecord":
        return (
            f"RemotePartitionDeleteMetadata{{topicPartition={_topic_id_partition(fields['topicIdPartition'])}"
            f", state={_state(fields['remotePartitionDeleteState'], _PARTITION_STATES)}"
            f", eventTimestampMs={fields['eventTimestampMs']}, brokerId={fields['brokerId']}}}"
        )
    custom = fields["customMetadata"]
    custom_text = "Optional.empty"
    if custom is not None:
        custom_text = f"Optional[CustomMetadata{{{len(base64.b64decode(custom))} bytes}}]"
    state = _state(fields["remoteLogSegmentState"], _SEGMENT_STATES)
    if name == "RemoteLogSegmentMetadataUpdateRecord":
        return (
            f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(fields['remoteLogSegmentId'])}"
            f", customMetadata={custom_text}, state={state}"
            f", eventTimestampMs={fields['eventTimestampMs']}, brokerId={fields['brokerId']}}}"
        )
    start, end = fields["startOffset"], fields["endOffset"]
    is_snapshot = name == "RemoteLogSegmentMetadataSnapshotRecord"
    if start < 0 and not is_snapshot:
        raise ValueError(f"Unexpected start offset = {start}. StartOffset for a remote segment cannot be negative")
    if end < start and not is_snapshot:
        raise ValueError(
            f"Unexpected end offset = {end}. EndOffset for a remote segment cannot be less than startOffset = {start}"
        )
    epochs = {each["leaderEpoch"]: each["offset"] for each in fields["segmentLeaderEpochs"]}
    if not epochs:
        raise ValueError("segmentLeaderEpochs can not be null or empty")
    epochs_text = "{" + ", ".join(f"{epoch}={epochs[epoch]}" for epoch in sorted(epochs)) + "}"
    sizes = f"segmentLeaderEpochs={epochs_text}, segmentSizeInBytes={fields['segmentSizeInBytes']}"
    empty = str(fields.get("txnIndexEmpty", False)).lower()
    if is_snapshot:
        return (
            f"RemoteLogSegmentMetadataSnapshot{{segmentId={fields['segmentId']}, startOffset={start}, endOffset={end}"
            f", maxTimestampMs={fields['maxTimestampMs']}, {sizes}, customMetadata={custom_text}"
            f", state={state}, txnIdxEmpty={empty}}}"
        )
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(fields['remoteLogSegmentId'])}"
        f", startOffset={start}, endOffset={end}, brokerId={fields['brokerId']}"
        f", maxTimestampMs={fields['maxTimestampMs']}, eventTimestampMs={fields['eventTimestampMs']}, {sizes}"
        f", customMetadata={custom_text}, state={state}, txnIdxEmpty={empty}}}"
    )


def _state(number: int, names: tuple[str, ...]) -> str:
    if not 0 <= number < len(names):
        raise ValueError("state can not be null")
    return names[number]


def _topic_id_partition(entry: dict[str, Any]) -> str:
    return f"{entry['id']}:{entry['name']}-{entry['partition']}"


def _segment_id(entry: dict[str, Any]) -> str:
    partition = _topic_id_partition(entry["topicIdPartition"])
    return f"RemoteLogSegmentId{{topicIdPartition={partition}, id={entry['id']}}}"
