"""Decoding keys and values: by a kind that is given, or by what the bytes and the schemas prove."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.decoding.avro import AvroSchema
from format.decoding.ecosystem import ecosystem_decoder, ecosystem_topic
from format.decoding.plain import PLAIN, SCHEMA_KINDS, InvalidSchema, Undecodable, is_printable, json_text, string_text
from format.decoding.registry import SchemaVersion, name_without_context
from format.decoding.schemas import Parsed, SchemaOf, Schemas
from format.limits import MIB
from format.wording import listed

Headers = Sequence[tuple[str, bytes | None]]
Int64Column = NDArray[np.int64]
_BY_ID, _BY_GUID = 0, 1
_ID_END, _GUID_END = 5, 17
_APICURIO_ID_END = 9
_GLUE_MAGIC, _GLUE_PLAIN, _GLUE_ZLIB, _GLUE_END = 3, 0, 5, 18
_MOST_INFLATED_BYTES = 64 * MIB
#: How many bytes of text prove a frame whose schema no subject of the topic has.
_PROVING_TEXT_BYTES = 8
#: The longest strings that are found many at once, so that large values are not copied for it.
_MOST_STRING_BYTES = 4096
#: By byte: whether it is not printable ASCII, or is escaped in JSON.
_IS_OTHER = np.array([not 0x20 <= byte < 0x7F or byte in b'"\\' for byte in range(256)])


class ValueReading(msgspec.Struct, frozen=True):
    """How a key or a value was read: by which schema, and from which byte of ``data`` on.

    ``is_framed`` tells whether it was read as what follows a frame of Confluent's. ``headers`` are the names of the
    headers that a reader needs, with the id of the schema; the last ``header_bytes`` of the first are in front of the
    key or value in ``data``.
    """

    schema: Parsed
    data: bytes
    start: int
    is_framed: bool
    headers: tuple[str, ...] = ()
    header_bytes: int = 0

    def text(self) -> str:
        """The value as JSON text. Raises Undecodable."""
        return (self.schema.text_of if self.is_framed else self.schema.bare_text_of)(self.data, self.start)


class Decoded(msgspec.Struct, frozen=True):
    """What a key or a value says.

    ``text`` is JSON, None where the bytes stay raw. ``format`` is one of KINDS without "auto", or the name of a topic
    of Kafka's ecosystem. ``schema_id`` is the id as the bytes or a header name it. ``reason`` says why the bytes could
    not be decoded, None where they were, or where nothing says that they could be. ``reading`` is there where a schema
    decoded them.
    """

    text: str | None
    format: str
    schema_id: int | str | None = None
    reason: str | None = None
    reading: ValueReading | None = None


RAW = Decoded(None, "raw")


class Decoding(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, and the schemas at hand: made once for a command, and pickled for other processes."""

    key_as: str = "auto"
    value_as: str = "auto"
    schemas: Schemas = msgspec.field(default_factory=Schemas)
    schema_of: Mapping[str, SchemaOf] = msgspec.field(default_factory=dict)

    def topic(self, name: str) -> TopicDecoder:
        """The decoders of the records of a topic."""
        return {field: FieldDecoder(self, name, field) for field in ("key", "value")}


class _Frame(msgspec.Struct, frozen=True):
    """A schema id in front of a value, or in the ``header`` with this name; ``start`` is where the value begins.

    ``data`` is the value, after ``header_bytes`` of the header.
    """

    schema_id: int | str
    data: bytes
    start: int
    header: str | None = None
    header_bytes: int = 0

    @property
    def is_certain(self) -> bool:
        """Whether the bytes cannot look like a frame by chance: the id is in a header."""
        return self.header is not None


class _Known(msgspec.Struct, frozen=True):
    """What a schema id means in a topic: a schema, or the reason why there is none.

    ``is_of_topic`` tells whether a subject of the topic has it.
    """

    schema: Parsed | None
    reason: str | None
    is_of_topic: bool


class FieldDecoder:
    """Decodes the keys, or the values, of a topic. It raises nothing, whatever the bytes are.

    ``decoded`` takes a key or value and the headers of its record.
    """

    def __init__(self, decoding: Decoding, topic: str, part: str) -> None:
        kind = decoding.key_as if part == "key" else decoding.value_as
        self.kind = kind
        self._topic = topic
        self._part = part
        self._schemas = decoding.schemas
        self._file = decoding.schema_of.get(topic) if part == "value" else None
        self._known: dict[int | str, _Known] = {}
        self._expects_schema = self._file is not None or any(
            name_without_context(each.subject) == f"{topic}-{part}" for each in self._schemas.versions
        )
        self._ecosystem = ecosystem_topic(topic)
        self.decoded: Callable[[bytes, Headers], Decoded] = {
            "raw": self._raw,
            "auto": self._proven,
            **dict.fromkeys(SCHEMA_KINDS, self._of_kind),
        }.get(kind, self._plain)

    def framed(
        self, buffer: memoryview, starts: Int64Column, lengths: Int64Column
    ) -> Iterator[tuple[NDArray[np.intp], Parsed, int, list[str | None], dict[int, str]]]:
        """The keys or values that begin with the id of a schema of Avro, by id, where no header has another.

        For each id: the rows, the schema, the id, the text of each row, and by number why one has none. It is what
        ``decoded`` says of each, but much faster.
        """
        if self.kind not in ("auto", "avro") or self._ecosystem is not None:
            return
        content = np.frombuffer(buffer, np.uint8)
        rows = np.flatnonzero(lengths >= _ID_END)
        rows = rows[content[starts[rows]] == _BY_ID]
        ids = np.zeros(len(rows), np.int64)
        for place in range(1, _ID_END):
            ids = ids << 8 | content[starts[rows] + place]
        for schema_id in np.unique(ids).tolist():
            known = self._meaning(schema_id)
            if known is None or not isinstance(known.schema, AvroSchema):
                continue
            if self.kind == "auto" and not known.is_of_topic:
                continue
            of_id = rows[ids == schema_id]
            spans = np.stack((starts[of_id] + _ID_END, starts[of_id] + lengths[of_id]), axis=1)
            yield of_id, known.schema, schema_id, *known.schema.texts_of(buffer, spans)

    def strings(
        self, buffer: memoryview, starts: Int64Column, lengths: Int64Column
    ) -> tuple[NDArray[np.intp], list[str]]:
        """The keys or values that are strings of ASCII without anything to escape, where none has headers.

        The rows, and the text of each: what ``decoded`` says of each, but much faster.
        """
        if self.kind != "auto" or self._ecosystem is not None or self._file is not None:
            return np.empty(0, np.intp), []
        rows = np.flatnonzero((lengths >= 0) & (lengths <= _MOST_STRING_BYTES))
        places = zip(starts[rows].tolist(), (starts + lengths)[rows].tolist(), strict=True)
        content = b"".join([buffer[start:end] for start, end in places])
        data = np.frombuffer(content, np.uint8)
        count_of_others = np.concatenate(([0], np.cumsum(_IS_OTHER[data])))
        ends = np.cumsum(lengths[rows])
        begins = ends - lengths[rows]
        is_string = count_of_others[ends] == count_of_others[begins]
        has_first = begins < ends
        is_string[has_first] &= ~np.isin(data[begins[has_first]], (ord("{"), ord("[")))  # which may be JSON
        text, spans = content.decode("latin-1"), zip(begins[is_string].tolist(), ends[is_string].tolist(), strict=True)
        return rows[is_string], [f'"{text[begin:end]}"' for begin, end in spans]

    def _raw(self, data: bytes, headers: Headers) -> Decoded:
        return RAW

    def _plain(self, data: bytes, headers: Headers) -> Decoded:
        try:
            return Decoded(PLAIN[self.kind](data), self.kind)
        except Undecodable as error:
            return Decoded(None, "raw", reason=str(error))

    def _of_kind(self, data: bytes, headers: Headers) -> Decoded:
        """A value with a schema of the kind that was asked for, whatever its subject is."""
        frame = self._frame(data, headers)
        known = None if frame is None else self._meaning(frame.schema_id)
        if frame is not None and known is not None and (known.schema or self._file is None):
            if known.schema is not None and known.schema.kind != self.kind:
                reason = f"the schema {frame.schema_id} is not one of {self.kind}, but of {known.schema.kind}"
                return Decoded(None, "raw", frame.schema_id, reason)
            return self._by_schema(frame, known)
        if self._file is not None:
            return self._by_file(self._file, data, headers)
        if frame is None:
            return Decoded(None, "raw", reason="no schema id is in front of it or in its headers")
        return Decoded(None, "raw", frame.schema_id, f"no schema has the id {frame.schema_id}")

    def _proven(self, data: bytes, headers: Headers) -> Decoded:
        """What the bytes prove; all else stays raw, with a reason where a schema should have decoded it."""
        if self._ecosystem is not None:
            with suppress(Undecodable):
                return Decoded(ecosystem_decoder(self._ecosystem, self._part)(data), self._ecosystem)
        frame = self._frame(data, headers)
        known = None if frame is None else self._meaning(frame.schema_id)
        reason: str | None = None
        schema_id: int | str | None = None
        if frame is not None and known is not None:
            found = self._by_schema(frame, known)
            if known.is_of_topic or frame.is_certain or (found.text and _is_proven(found, frame)):
                return found
        elif frame is not None and frame.is_certain and self._file is None:
            return Decoded(None, "raw", frame.schema_id, f"no schema has the id {frame.schema_id}")
        if self._file is not None:
            return self._by_file(self._file, data, headers)
        plain = _plainly(data)
        if plain is RAW and self._expects_schema:
            if frame is not None and isinstance(frame.schema_id, int) and known is None:
                schema_id, reason = frame.schema_id, f"no schema has the id {frame.schema_id}"
            elif known is None:
                reason = "no schema id is in front of it or in its headers, though the topic has a schema"
            else:
                schema_id = frame.schema_id if frame is not None else None
                reason = f"the schema {schema_id} is of no subject of this topic, and the bytes do not prove it"
        return plain if reason is None else Decoded(None, "raw", schema_id, reason)

    def _by_schema(self, frame: _Frame, known: _Known) -> Decoded:
        schema = known.schema
        if schema is None:
            return Decoded(None, "raw", frame.schema_id, known.reason)
        headers = () if frame.header is None else (frame.header,)
        reading = ValueReading(schema, frame.data, frame.start, True, headers, frame.header_bytes)
        try:
            return Decoded(reading.text(), schema.kind, frame.schema_id, reading=reading)
        except Undecodable as error:
            return Decoded(None, "raw", frame.schema_id, str(error))

    def _by_file(self, named: SchemaOf, data: bytes, headers: Headers) -> Decoded:
        """A value by the schema in a file: with any frame in front, or none. It must be readable in one way only."""
        try:
            schema = self._schemas.parsed_file(named)
        except InvalidSchema as error:
            return Decoded(None, "raw", reason=f"{named.file}: {error}")
        found: dict[str, tuple[int | str | None, ValueReading]] = {}
        reason = ""
        apicurio_id, needed = _apicurio_header(self._part, headers)
        for schema_id, content, start in _framings(data, schema.kind):
            reading = ValueReading(schema, content, start, start == _ID_END)
            if start == 0 and schema_id is None:
                schema_id, reading = apicurio_id, replace(reading, headers=needed)
            try:
                found.setdefault(reading.text(), (schema_id, reading))
            except Undecodable as error:
                reason = reason or str(error)
        if len(found) == 1:
            [(text, (schema_id, reading))] = found.items()
            return Decoded(text, schema.kind, schema_id, reading=reading)
        if found:
            reason = "it can be read in several ways: with a schema id in front of it and without"
        return Decoded(None, "raw", reason=reason)

    def _frame(self, data: bytes, headers: Headers) -> _Frame | None:
        """The schema id in a header or in front of a value; of those in front only one with a length of Confluent's."""
        if headers:
            name = f"__{self._part}_schema_id"
            for header, content in reversed(headers):
                if header == name and content:
                    return _header_frame(name, data, content)
        if len(data) >= _ID_END and data[0] == _BY_ID:
            return _Frame(int.from_bytes(data[1:_ID_END], "big"), data, _ID_END)
        return None

    def _meaning(self, schema_id: int | str) -> _Known | None:
        """What a schema id means in this topic; None for an id that no schema has."""
        if schema_id not in self._known:
            versions = self._schemas.with_id(schema_id)
            if not versions:
                return None  # not kept: random bytes have many ids
            self._known[schema_id] = self._known_among(versions)
        return self._known[schema_id]

    def _known_among(self, versions: Sequence[SchemaVersion]) -> _Known:
        """The schema that is meant by an id, which each context and each registry gives by itself."""
        of_topic = [each for each in versions if self._is_of_topic(each)]
        meant = of_topic or [each for each in versions if each.context == "."] or versions
        texts = {(each.kind, each.text, each.references) for each in meant}
        if len(texts) > 1:
            places = sorted({f"{each.context} of {each.registry}" for each in meant})
            return _Known(None, f"the id {meant[0].id} means several schemas: in {listed(places)}", bool(of_topic))
        try:
            return _Known(self._schemas.parsed(meant[0]), None, bool(of_topic))
        except InvalidSchema as error:
            return _Known(None, str(error), bool(of_topic))

    def _is_of_topic(self, version: SchemaVersion) -> bool:
        """Whether a subject is named after the topic, or after the topic and the type (TopicRecordNameStrategy)."""
        name = name_without_context(version.subject)
        if name == f"{self._topic}-{self._part}":
            return True
        if not name.startswith(f"{self._topic}-"):
            return False
        try:
            names = self._schemas.parsed(version).names
        except InvalidSchema:
            return False
        return name[len(self._topic) + 1 :] in names


#: The decoders of a topic: of its keys ("key") and of its values ("value").
TopicDecoder = dict[str, FieldDecoder]


def _header_frame(name: str, data: bytes, content: bytes) -> _Frame | None:
    """The frame in a header of Confluent's newer serializers: the id, and with Protobuf the place of the message."""
    if content[0] == _BY_ID and len(content) >= _ID_END:
        schema_id: int | str = int.from_bytes(content[1:_ID_END], "big")
        end = _ID_END
    elif content[0] == _BY_GUID and len(content) >= _GUID_END:
        schema_id, end = str(UUID(bytes=content[1:_GUID_END])), _GUID_END
    else:
        return None
    return _Frame(schema_id, content[end:] + data, 0, name, len(content) - end)


def _apicurio_header(part: str, headers: Headers) -> tuple[int | None, tuple[str, ...]]:
    """The id in Apicurio's header, None for none, and the names of the headers that its deserializer needs."""
    name, encoding = f"apicurio.{part}.globalId", f"apicurio.{part}.encoding"
    for header, content in reversed(headers):
        if header == name and content is not None and len(content) == _APICURIO_ID_END - 1:
            return int.from_bytes(content, "big"), (name, encoding)
    return None, ()


def _framings(data: bytes, kind: str) -> Iterator[tuple[int | str | None, bytes, int]]:
    """The ways in which a value of a known schema can be framed: the id, the bytes, and where the value begins.

    Those of Apicurio and Glue are known for Avro and JSON; with Protobuf they name the message in ways of their own.
    """
    yield None, data, 0
    if len(data) >= _ID_END and data[0] == _BY_ID:
        yield int.from_bytes(data[1:_ID_END], "big"), data, _ID_END
    if kind == "protobuf":
        return
    if len(data) >= _APICURIO_ID_END and data[0] == _BY_ID:
        yield int.from_bytes(data[1:_APICURIO_ID_END], "big"), data, _APICURIO_ID_END
    if len(data) >= _GLUE_END and data[0] == _GLUE_MAGIC and data[1] in (_GLUE_PLAIN, _GLUE_ZLIB):
        schema_id = str(UUID(bytes=data[2:_GLUE_END]))
        if data[1] == _GLUE_PLAIN:
            yield schema_id, data, _GLUE_END
        elif (content := _inflated(data[_GLUE_END:])) is not None:
            yield schema_id, content, 0


def _inflated(data: bytes) -> bytes | None:
    """What zlib unpacks of bytes; None where they are not of zlib, or it is too much."""
    unpacking = zlib.decompressobj()
    try:
        content = unpacking.decompress(data, _MOST_INFLATED_BYTES)
    except zlib.error:
        return None
    return content if unpacking.eof and not unpacking.unused_data else None


def _plainly(data: bytes) -> Decoded:
    """JSON objects and arrays, and printable UTF-8; all else stays raw."""
    if data[:1] in (b"{", b"["):
        with suppress(Undecodable):
            return Decoded(json_text(data), "json")
    try:
        return Decoded(string_text(data), "string") if is_printable(data.decode()) else RAW
    except UnicodeDecodeError:
        return RAW


def _is_proven(found: Decoded, frame: _Frame) -> bool:
    """Whether a value has so much text that its frame cannot be chance: a JSON object, or strings of some bytes."""
    content = frame.data[frame.start :]
    if found.format == "json-schema":
        return content[:1] in (b"{", b"[")
    strings = [each.encode() for each in _strings_in(msgspec.json.decode(found.text or "null")) if is_printable(each)]
    return sum(len(each) for each in strings if each in content) >= _PROVING_TEXT_BYTES


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings_in(each)
