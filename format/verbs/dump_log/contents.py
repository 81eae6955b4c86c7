"""Keys and values as kafka-dump-log prints them, through Kafka's decoder classes or its internal topics' parsers.

Source: tools DumpLogSegments (MessageParser and its classes), tools-api StringDecoder, IntegerDecoder, LongDecoder and
DefaultDecoder; up to 3.9 the same under kafka.serializer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from format.internal_topics.decoder import Decoder, decoder_for
from format.internal_topics.dump_log import dump_log_contents
from format.verbs.dump_log.java_text import java_utf8
from format.verbs.dump_log.options import Contents, DumpLogOptions, Release
from format.verbs.dump_log.stops import KafkaStops

_PACKAGE = "org.apache.kafka.tools.api."
_OLD_PACKAGE = "kafka.serializer."
_UNDERFLOW = "java.nio.BufferUnderflowException"

#: The text after "key: " and after "payload: "; None where nothing is printed.
Texts = tuple[bytes | None, bytes | None]


class Parser(Protocol):
    """Formats a record's key and value as text; raises KafkaStops where they make Kafka die."""

    def __call__(self, key: bytes | None, value: bytes | None, offset: int) -> Texts: ...


def _fixed(length: int) -> Callable[[bytes], bytes]:
    def decode(raw: bytes) -> bytes:
        if len(raw) < length:
            raise KafkaStops(f"{_UNDERFLOW}: {len(raw)} bytes where {length} are needed")
        return b"%d" % int.from_bytes(raw[:length], "big", signed=True)

    return decode


def _hexadecimal(raw: bytes) -> bytes:
    """The text of a byte array. Kafka prints the array's address in memory, which is of no use."""
    return raw.hex().encode()


_CLASSES: dict[str, Callable[[bytes], bytes]] = {
    "StringDecoder": java_utf8,
    "IntegerDecoder": _fixed(4),
    "LongDecoder": _fixed(8),
    "DefaultDecoder": _hexadecimal,
}


def decoder_class(name: str, emulate: Release | None) -> Callable[[bytes], bytes] | None:
    """The decoder with this class name; None for a class that Kafka, or the emulated release, does not have."""
    packages = (_PACKAGE,) if emulate is Release.V4_3_1 else (_PACKAGE, _OLD_PACKAGE)
    for package in packages:
        found = _CLASSES.get(name.removeprefix(package))
        if found is not None and name.startswith(package):
            return found
    return None


def prints_strings(options: DumpLogOptions) -> bool:
    """Whether keys and values are printed unchanged, except for malformed UTF-8."""
    return options.contents is Contents.CLASSES and all(
        decoder_class(name, options.emulate) is java_utf8 for name in (options.key_decoder, options.value_decoder)
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
    """The parser for these options; raises KafkaStops for a decoder class that is not one of Kafka's."""
    if options.contents is not Contents.CLASSES:
        if options.emulate is Release.V3_9_1:
            from format.verbs.dump_log.contents_3_9 import ParserOf39

            return ParserOf39(options.contents)
        known = (4, 3) if options.emulate is Release.V4_3_1 else None
        return _topic_parser(decoder_for(options.contents.value, known), is_emulated=options.emulate is not None)
    classes = []
    for name in (options.value_decoder, options.key_decoder):
        found = decoder_class(name, options.emulate)
        if found is None:
            raise KafkaStops(f"java.lang.RuntimeException: Failed to load decoder class: {name}")
        classes.append(found)
    decode_value, decode_key = classes

    def parse(key: bytes | None, value: bytes | None, offset: int) -> Texts:
        return None if key is None else decode_key(key), None if value is None else decode_value(value)

    return parse


def _topic_parser(decoder: Decoder, *, is_emulated: bool) -> Parser:
    has_keys = decoder.topic not in (Contents.CLUSTER_METADATA.value, Contents.REMOTE_LOG_METADATA.value)

    def parse(key: bytes | None, value: bytes | None, offset: int) -> Texts:
        if is_emulated and has_keys and key is None:
            raise KafkaStops(
                f"java.lang.RuntimeException: Failed to decode message at offset {offset} using the specified decoder "
                "(message had a missing key)"
            )
        key_text, value_text = dump_log_contents(decoder, key, value, offset)
        return _encoded(key_text), _encoded(value_text)

    return parse


def _encoded(text: str | None) -> bytes | None:
    """The text in UTF-8. As in Java, a character that UTF-8 cannot encode becomes a question mark."""
    return None if text is None else text.encode("utf-8", "replace")
