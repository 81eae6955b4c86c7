"""Records of internal topics as printed by kafka-dump-log 3.9.1, which knows fewer types and fields.

Source: core DumpLogSegments of 3.9.1, TransactionLog.formatRecordKeyAndValue, and the schemas in that release's jars.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.internal_topics.decoder import FRAME_VERSION, TRANSACTION_STATUSES, decoder_for
from format.internal_topics.dump_log import dump_log_contents, dump_log_json
from format.internal_topics.reader import Cursor
from format.verbs.dump_log.java_text import scala_places, string_hash
from format.verbs.dump_log.options import Contents
from format.verbs.dump_log.stops import KafkaStops

#: The newest type of record in __consumer_offsets whose key 3.9.1 prints.
_LAST_GROUP_TYPE = 8
_LAST_METADATA_TYPE = 27
_REGISTER_BROKER_TYPE, _REGISTER_BROKER_VERSION = 0, 3
#: Fields added in later releases: skipped, as tagged fields are, and not printed.
_LATER_FIELDS = {
    "ConsumerGroupTargetAssignmentMetadataValue": {"assignmentTimestamp"},
    "ConsumerGroupCurrentMemberAssignmentValue": {"assignmentEpochs"},
    "ConsumerGroupMetadataValue": {"metadataHash"},
    "OffsetCommitValue": {"topicId"},
    "BrokerRegistrationChangeRecord": {"cordonedLogDirs"},
}
_LATER_REMOTE_FIELD = re.compile(", txnIdxEmpty=(?:true|false)}$")

Texts = tuple[bytes | None, bytes | None]


class ParserOf39:
    """The parser that one of 3.9.1's decoder flags selects."""

    def __init__(self, contents: Contents) -> None:
        self._decoder = decoder_for(contents.value)
        self._parse = {
            Contents.OFFSETS: self._group,
            Contents.TRANSACTION_LOG: self._transaction,
            Contents.CLUSTER_METADATA: self._metadata,
        }.get(contents, self._as_later)

    def __call__(self, key: bytes | None, value: bytes | None, offset: int) -> Texts:
        key_text, value_text = self._parse(key, value, offset)
        return _encoded(key_text), _encoded(value_text)

    def _as_later(self, key: bytes | None, value: bytes | None, offset: int) -> tuple[str | None, str | None]:
        key_text, value_text = dump_log_contents(self._decoder, key, value, offset)
        return key_text, None if value_text is None else _LATER_REMOTE_FIELD.sub("}", value_text)

    def _group(self, key: bytes | None, value: bytes | None, offset: int) -> tuple[str | None, str | None]:
        if key is None:
            raise _no_key(offset, "using offset topic decoder")
        try:
            decoded_key = self._decoder.decode_key(key)
            type_id = decoded_key.type_id
            if type_id is None or not 0 <= type_id <= _LAST_GROUP_TYPE:
                return f"Unknown record type {type_id} at offset {offset}, skipping.", None
            decoded = self._decoder.decode_value(decoded_key, value)
        except KafkaLogError as error:
            return f"Error at offset {offset}, skipping. {error.message}", None
        if decoded.raw is not None:
            return self._as_later(key, value, offset)
        return dump_log_json(decoded_key), dump_log_json(replace(decoded, data=_without(decoded.name, decoded.data)))

    def _metadata(self, key: bytes | None, value: bytes | None, offset: int) -> tuple[str | None, str | None]:
        try:
            decoded = self._decoder.decode_value(None, value)
        except KafkaLogError:
            return self._as_later(key, value, offset)
        if decoded.raw and Cursor(decoded.raw, "value").read_unsigned_varint() != FRAME_VERSION:
            return self._as_later(key, value, offset)
        type_id, version = decoded.type_id, decoded.version
        if type_id is not None and type_id > _LAST_METADATA_TYPE:
            unknown = f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {type_id}"
            return None, f"Error at {offset}, skipping. {unknown}"
        if type_id == _REGISTER_BROKER_TYPE and version is not None and version > _REGISTER_BROKER_VERSION:
            return None, f"Error at {offset}, skipping. Failed to deserialize record with type {type_id}"
        if decoded.name not in _LATER_FIELDS or decoded.data is None or decoded.problems:
            return self._as_later(key, value, offset)
        return None, dump_log_json(replace(decoded, data=_without(decoded.name, decoded.data)))

    def _transaction(self, key: bytes | None, value: bytes | None, offset: int) -> tuple[str | None, str | None]:
        if key is None:
            raise KafkaStops("java.lang.NullPointerException")
        try:
            decoded_key = self._decoder.decode_key(key)
            if decoded_key.data is None:
                return f"unknown::version={decoded_key.type_id}", None
            key_text = f"transaction_metadata::transactionalId={decoded_key.data['transactionalId']}"
            decoded = self._decoder.decode_value(decoded_key, value)
        except KafkaLogError as error:
            raise KafkaStops(f"java.lang.RuntimeException: {error.message}") from error
        if decoded.is_tombstone:
            return key_text, "<DELETE>"
        fields = decoded.data
        if fields is None:
            raise KafkaStops(f"java.lang.IllegalStateException: Unknown version {decoded.version}")
        status = fields["transactionStatus"]
        if not 0 <= status < len(TRANSACTION_STATUSES):
            raise KafkaStops(f"java.lang.IllegalStateException: Unknown transaction state id {status}")
        partitions = [] if status == 0 else _partitions(fields["transactionPartitions"])
        return key_text, (
            f"producerId:{fields['producerId']},producerEpoch:{fields['producerEpoch']}"
            f",state={TRANSACTION_STATUSES[status]},partitions=[{','.join(partitions)}]"
            f",txnLastUpdateTimestamp={fields['transactionLastUpdateTimestampMs']}"
            f",txnTimeoutMs={fields['transactionTimeoutMs']}"
        )


def _partitions(topics: list[Mapping[str, Any]] | None) -> list[str]:
    """The partitions of a transaction in the order of Scala's hash table."""
    if topics is None:
        raise KafkaStops("java.lang.NullPointerException")
    found = list(dict.fromkeys((each["topic"], number) for each in topics for number in each["partitionIds"]))
    hashes = [(31 * (31 + number) + string_hash(topic)) & 0xFFFFFFFF for topic, number in found]
    ordered = sorted(zip(scala_places(hashes), found, strict=True))
    return [f"{topic}-{number}" for _, (topic, number) in ordered]


def _without(name: str | None, data: Any) -> Any:
    """Decoded data without the fields that 3.9.1 does not know."""
    later = _LATER_FIELDS.get(name or "")
    if later is None or data is None:
        return data
    if isinstance(data, dict):
        return {key: _without(name, value) for key, value in data.items() if key not in later}
    if isinstance(data, list):
        return [_without(name, each) for each in data]
    return data


def _no_key(offset: int, words: str) -> KafkaStops:
    return KafkaStops(
        f"java.lang.RuntimeException: Failed to decode message at offset {offset} {words} (message had a missing key)"
    )


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "replace")
