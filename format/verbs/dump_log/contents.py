"""Keys and values as kafka-dump-log prints them, through Kafka's decoder classes or its internal topics' parsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.internal_topics.decoder import FRAME_VERSION, TRANSACTION_STATUSES, Decoder, decoder_for
from format.internal_topics.dump_log import dump_log_contents, dump_log_json
from format.internal_topics.reader import Cursor
from format.layout import string_hash
from format.verbs.dump_log.java_text import java_utf8, scala_places
from format.verbs.dump_log.options import Contents, DumpLogOptions, KafkaStops, Release

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
#: Formats a record's key and value as text, by its offset; raises KafkaStops where they make Kafka die.
Parser = Callable[[bytes | None, bytes | None, int], Texts]
_PACKAGE = "org.apache.kafka.tools.api."
_OLD_PACKAGE = "kafka.serializer."


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
            raise _no_key(offset)
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
            raise _no_key(offset)
        try:
            decoded_key = self._decoder.decode_key(key)
            if decoded_key.data is None:
                return f"unknown::version={decoded_key.type_id}", None
            key_text = f"transaction_metadata::transactionalId={decoded_key.data['transactionalId']}"
            decoded = self._decoder.decode_value(decoded_key, value)
        except KafkaLogError as error:
            raise KafkaStops(error.message) from error
        if decoded.is_tombstone:
            return key_text, "<DELETE>"
        fields = decoded.data
        if fields is None:
            raise KafkaStops(f"unknown version {decoded.version}")
        status = fields["transactionStatus"]
        if not 0 <= status < len(TRANSACTION_STATUSES):
            raise KafkaStops(f"unknown transaction state id {status}")
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
        raise KafkaStops("the transaction has no partitions")
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


def _no_key(offset: int) -> KafkaStops:
    return KafkaStops(f"the record at offset {offset} has no key")


def _encoded(text: str | None) -> bytes | None:
    """The text in UTF-8. As in Java, a character that UTF-8 cannot encode becomes a question mark."""
    return None if text is None else text.encode("utf-8", "replace")


def _fixed(length: int) -> Callable[[bytes], bytes]:
    def decode(raw: bytes) -> bytes:
        if len(raw) < length:
            raise KafkaStops(f"{len(raw)} bytes where {length} are needed")
        return b"%d" % int.from_bytes(raw[:length], "big", signed=True)

    return decode


_CLASSES: dict[str, Callable[[bytes], bytes]] = {
    "StringDecoder": java_utf8,
    "IntegerDecoder": _fixed(4),
    "LongDecoder": _fixed(8),
    "DefaultDecoder": lambda raw: raw.hex().encode(),  # Kafka prints the address of the array, which is of no use
}


def decoder_class(name: str) -> Callable[[bytes], bytes] | None:
    """The decoder with this class name; None for a class that Kafka does not have."""
    package, dot, short_name = name.rpartition(".")
    return _CLASSES.get(short_name) if package + dot in (_PACKAGE, _OLD_PACKAGE) else None


def prints_strings(options: DumpLogOptions) -> bool:
    """Whether keys and values are printed unchanged, except for malformed UTF-8."""
    return options.contents is Contents.CLASSES and all(
        decoder_class(name) is java_utf8 for name in (options.key_decoder, options.value_decoder)
    )


def deprecation_lines(options: DumpLogOptions) -> bytes:
    """The warnings that 3.9.1 prints for each log when decoders are given by their old names."""
    if options.emulate is not Release.V3_9_1 or options.contents is not Contents.CLASSES:
        return b""
    lines = []
    for name in (options.value_decoder, options.key_decoder):
        new_name = _PACKAGE + name.removeprefix(_OLD_PACKAGE)
        if name.startswith(_OLD_PACKAGE) and new_name.removeprefix(_PACKAGE) in _CLASSES:
            lines.append(f"{name} is deprecated. Please use {new_name} instead\n".encode())
    return b"".join(lines)


def parser_for(options: DumpLogOptions) -> Parser:
    """The parser for these options, whose decoder classes are Kafka's."""
    if options.contents is not Contents.CLASSES:
        if options.emulate is Release.V3_9_1:
            return ParserOf39(options.contents)
        known = (4, 3) if options.emulate is Release.V4_3_1 else None
        return _topic_parser(decoder_for(options.contents.value, known), is_emulated=options.emulate is not None)
    decode_value, decode_key = decoder_class(options.value_decoder), decoder_class(options.key_decoder)
    if decode_value is None or decode_key is None:
        raise ValueError(f"no decoder of the name {options.value_decoder} or {options.key_decoder}")

    def parse(key: bytes | None, value: bytes | None, offset: int) -> Texts:
        return None if key is None else decode_key(key), None if value is None else decode_value(value)

    return parse


def _topic_parser(decoder: Decoder, *, is_emulated: bool) -> Parser:
    has_keys = decoder.topic not in (Contents.CLUSTER_METADATA.value, Contents.REMOTE_LOG_METADATA.value)

    def parse(key: bytes | None, value: bytes | None, offset: int) -> Texts:
        if is_emulated and has_keys and key is None:
            raise _no_key(offset)
        key_text, value_text = dump_log_contents(decoder, key, value, offset)
        return _encoded(key_text), _encoded(value_text)

    return parse
