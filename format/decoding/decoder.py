"""Decoding keys and values: by a kind that is given, or by what the bytes and the schemas prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from format.decoding.plain import PLAIN, Undecodable, is_printable, json_text, string_text
from format.decoding.schemas import SchemaOf, Schemas

#: The kinds with schemas, as a registry names them in other words.
SCHEMA_KINDS = ("avro", "protobuf", "json-schema")
#: What ``key_as`` and ``value_as`` can be.
KINDS = ("auto", "raw", "string", "json", *SCHEMA_KINDS, "int", "long", "double", "uuid")

Headers = Sequence[tuple[str, bytes | None]]


class Decoded(msgspec.Struct, frozen=True):
    """What a key or a value says.

    ``text`` is JSON, None where the bytes stay raw. ``format`` is one of KINDS without "auto", or the name of a topic
    of Kafka's ecosystem. ``schema_id`` is the id as the bytes or a header name it. ``reason`` says why the bytes could
    not be decoded, None where they were, or where nothing says that they could be.
    """

    text: str | None
    format: str
    schema_id: int | str | None = None
    reason: str | None = None


RAW = Decoded(None, "raw")


class Decoding:
    """What is asked for, and the schemas at hand: made once for a command, and pickled for other processes."""

    def __init__(
        self,
        *,
        key_as: str = "auto",
        value_as: str = "auto",
        schemas: Schemas | None = None,
        schema_of: Mapping[str, SchemaOf] | None = None,
    ) -> None:
        self.key_as = key_as
        self.value_as = value_as
        self.schemas = Schemas() if schemas is None else schemas
        self.schema_of = dict(schema_of or {})

    def topic(self, name: str) -> TopicDecoder:
        """The decoder of the records of a topic."""
        return TopicDecoder(self, name)


class TopicDecoder:
    """Decodes the keys and values of one topic; a null stays None. It raises nothing, whatever the bytes are."""

    def __init__(self, decoding: Decoding, topic: str) -> None:
        self._key = _Part(decoding.key_as)
        self._value = _Part(decoding.value_as)

    def key(self, data: bytes | None, headers: Headers = ()) -> Decoded | None:
        """What a key says."""
        return None if data is None else self._key.decoded(data, headers)

    def value(self, data: bytes | None, headers: Headers = ()) -> Decoded | None:
        """What a value says."""
        return None if data is None else self._value.decoded(data, headers)


class _Part:
    """The keys, or the values, of a topic."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def decoded(self, data: bytes, headers: Headers) -> Decoded:
        kind = self._kind
        if kind == "raw":
            return RAW
        if kind == "auto":
            return _proven(data)
        if kind not in PLAIN:
            return Decoded(None, "raw", reason="no schema is known for it")
        try:
            return Decoded(PLAIN[kind](data), kind)
        except Undecodable as error:
            return Decoded(None, "raw", reason=str(error))


def _proven(data: bytes) -> Decoded:
    """JSON objects and arrays, and printable UTF-8; all else stays raw."""
    try:
        if data[:1] in (b"{", b"["):
            return Decoded(json_text(data), "json")
    except Undecodable:
        pass
    try:
        return Decoded(string_text(data), "string") if is_printable(data.decode()) else RAW
    except UnicodeDecodeError:
        return RAW
