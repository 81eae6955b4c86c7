"""One record as kafka-dump-log prints it. Source: tools DumpLogSegments (printRecordMetadata, printControlRecord)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from format import layout
from format.errors import KafkaLogError
from format.internal_topics.decoder import decode_control_value
from format.internal_topics.dump_log import dump_log_json
from format.internal_topics.reader import Decoded
from format.verbs.dump_log.batch_text import BatchFacts, java_boolean
from format.verbs.dump_log.contents import Parser
from format.verbs.dump_log.java_text import java_utf8
from format.verbs.dump_log.kafka_reader import KafkaRecord
from format.verbs.dump_log.options import DumpLogOptions, Release
from format.verbs.dump_log.stops import KafkaStops

#: The text before a control record's fields; 4.3.1 put a colon after the newest of them.
_CONTROL_NAMES = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}


def record_line(
    facts: BatchFacts, record: KafkaRecord, options: DumpLogOptions, parse: Parser | None
) -> Iterator[bytes]:
    """The line of a record in parts, ending with its LF; raises KafkaStops between parts where Kafka dies.

    ``parse`` None: contents are not printed.
    """
    is_3_9 = options.emulate is Release.V3_9_1
    shows_metadata = not options.skips_record_metadata
    if shows_metadata:
        yield b"| offset: %d %b: %d keySize: %d valueSize: %d" % (
            record.offset,
            facts.timestamp_type,
            record.timestamp,
            record.key_size,
            record.value_size,
        )
        if facts.magic >= 2:
            keys = b",".join([java_utf8(each) for each in record.header_keys or ()])
            yield b" sequence: %d headerKeys: [%b]" % (record.sequence, keys)
        if record.header_keys is None:
            brace = b"}" if is_3_9 else b""
            yield b" isValid: %b crc: %d%b" % (java_boolean(record.crc_valid), record.crc, brace)
        if facts.is_control:
            yield control_text(record, is_3_9=is_3_9)
    if parse is not None and not facts.is_control:
        if record.fault is not None:
            raise record.fault
        key, value = parse(record.key, record.value, record.offset)
        prefix = b" " if shows_metadata else b"| "
        if key is not None:
            yield b"%bkey: %b" % (prefix, key)
            prefix = b" "
        if value is not None:
            # 3.9.1 omits the bar where it would come first.
            yield b"%bpayload: %b" % (b" " if is_3_9 else prefix, value)
    yield b"\n"


def control_text(record: KafkaRecord, *, is_3_9: bool) -> bytes:
    """The printed text of a control record; raises KafkaStops for one that Kafka cannot decode."""
    if record.key is None:
        raise KafkaStops("java.lang.NullPointerException", code="control-record-invalid")
    if len(record.key) < layout.CONTROL_KEY.size_bytes:
        raise _invalid(f"Invalid value size found for control record key: {len(record.key)} bytes")
    version, number = layout.CONTROL_KEY.struct.unpack_from(record.key)
    if version < 0:
        raise _invalid(f"Invalid version found for control record: {version}. May indicate data corruption")
    name = layout.CONTROL_TYPES[number] if 0 <= number < len(layout.CONTROL_TYPES) else "UNKNOWN"
    if name == "UNKNOWN" or (is_3_9 and name == "LEADER_CHANGE"):
        return f" controlType: {name}({number})".encode()
    try:
        if name not in _CONTROL_NAMES:
            epoch = (decode_control_value(number, record.value).data or {})["coordinatorEpoch"]
            return f" endTxnMarker: {name} coordinatorEpoch: {epoch}".encode()
        return f" {_CONTROL_NAMES[name]} {dump_log_json(_decoded(number, record.value))}".encode("utf-8", "replace")
    except KafkaStops:
        raise
    except KafkaLogError as error:
        raise _invalid(error.message) from error


def _decoded(number: int, value: bytes | None) -> Decoded:
    """A control record's value. Kafka decodes it as the first version, whatever version its first field names."""
    decoded = decode_control_value(number, value)
    if decoded.data is None and value is not None:
        first = decode_control_value(number, bytes(2) + value[2:])
        if first.data is not None:
            return replace(first, data={**first.data, "version": decoded.version})
    return decoded


def _invalid(message: str) -> KafkaStops:
    return KafkaStops(
        f"org.apache.kafka.common.errors.InvalidRecordException: {message}", code="control-record-invalid"
    )
