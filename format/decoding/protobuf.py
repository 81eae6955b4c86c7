"""Protobuf: the messages of a schema, and their JSON.

A schema is the text of a .proto file, or, as Confluent's serializer of Python registers it, its descriptor in base64.
JSON is that of Protobuf's own mapping with the names of the schema: 64-bit integers and bytes are strings, and fields
that are not set, or have their default in proto3, are left out.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec
from google.protobuf import descriptor_pb2, json_format, message_factory, unknown_fields
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message

from format.decoding.leaves import Leaf, zigzag_at
from format.decoding.plain import InvalidSchema, Undecodable, utf8
from format.decoding.proto_text import file_of
from format.decoding.protobuf_leaves import is_entry, message_leaves
from format.limits import MIB

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*")
#: Files that come with Google's packages.
_GOOGLE = re.compile(r"google/(protobuf|type|rpc|api)/([a-z][a-z0-9_]*)\.proto")
#: What a schema registry has of its own.
_CONFLUENT = {
    "confluent/meta.proto": """syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";
        message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }""",
    "confluent/type/decimal.proto": """syntax = "proto3"; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }""",
    "confluent/type/variant.proto": """syntax = "proto3"; package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; }""",
}
_MOST_FILES = 1_000
#: A name that no import can have.
_ROOT = "*value*.proto"
#: A message can take the memory of all its fields for each two bytes of a value.
_MOST_BYTES_TIMES_FIELDS = 256 * MIB
_MOST_VALUE_BYTES = 16 * MIB
_MOST_INDEXES = 32
_VARINT_BYTES = 5


class ProtobufSchema:
    """A schema and its messages. Raises InvalidSchema.

    ``imports`` are the texts of other files by the names under which they are imported. ``message`` is the type of
    values without the place of their message in front of them; without it, it is the first message.
    """

    kind = "protobuf"

    def __init__(self, text: str, imports: Mapping[str, str], message: str | None = None) -> None:
        self._pool = DescriptorPool()
        self._imports = imports
        self._files: dict[str, FileDescriptor] = {}
        try:
            self._file = self._added(_ROOT, text, 0)
        except (TypeError, KeyError, ValueError, RecursionError) as error:
            raise InvalidSchema(f"the schema is not valid: {error}") from None
        self._entries_count = _BASE64.fullmatch(text) is not None
        while not self._file.message_types_by_name and len(self._file.public_dependencies) == 1:
            self._file = self._file.public_dependencies[0]
        messages = _all_messages(self._file.message_types_by_name.values())
        if not messages:
            raise InvalidSchema("the schema has no message")
        self.names = tuple(each.full_name for each in messages)
        self._field_count = max(
            len(each.fields)
            for file in self._files.values()
            for each in _all_messages(file.message_types_by_name.values())
        )
        named = (
            messages[:1] if message is None else [each for each in messages if message in (each.name, each.full_name)]
        )
        if len(named) != 1:
            raise InvalidSchema(f"the schema has {len(named)} messages with the name {message}")
        self._message = named[0]

    def text_of(self, data: bytes, start: int = 0) -> str:
        """A value as JSON text: the place of its message in the schema, and the message. Raises Undecodable."""
        message, start = self._placed(data, start)
        return self._text(message, data[start:])

    def leaves_of(self, data: bytes, start: int, *, is_framed: bool) -> list[Leaf]:
        """The parts of a value that ``text_of``, or with ``is_framed`` False ``bare_text_of``, decodes.

        Raises Undecodable.
        """
        message = self._message
        if is_framed:
            message, start = self._placed(data, start)
        return message_leaves(message, self._pool, data, start)

    def _placed(self, data: bytes, start: int) -> tuple[Descriptor, int]:
        """The message whose place in the schema is in front of it, and where it begins. Raises Undecodable."""
        places, start = _message_place(data, start)
        found = self._messages_at(places)
        if not found:
            raise Undecodable(f"the schema has no message at {places}")
        content = data[start:]
        if len(found) > 1:
            found = [each for each in found if not self._has_unknown_fields(each, content)] or found
        if len(found) > 1:
            names = " or ".join(each.full_name for each in found)
            raise Undecodable(f"its message can be {names}, as the serializer counts the entries of maps or not")
        return found[0], start

    def bare_text_of(self, data: bytes, start: int = 0) -> str:
        """A message without its place in the schema as JSON text. Raises Undecodable."""
        return self._text(self._message, data[start:])

    def _added(self, name: str, text: str | None, depth: int) -> FileDescriptor:
        """Add a file and all that it imports to the pool."""
        if name in self._files:
            return self._files[name]
        if len(self._files) + depth > _MOST_FILES:
            raise InvalidSchema(f"the schema needs more than {_MOST_FILES:,} others")
        file = _file_of(name, text)
        for each in file.dependency:
            self._added(each, self._imports.get(each), depth + 1)
        self._pool.Add(file)
        self._files[name] = found = self._pool.FindFileByName(name)
        return found

    def _messages_at(self, places: Sequence[int]) -> list[Descriptor]:
        """The messages that a place can mean: serializers count the entries of maps among the messages, or do not."""
        found: list[Descriptor] = []
        for entries_count in {self._entries_count, True}:
            message = None
            siblings = list(self._file.message_types_by_name.values())
            for place in places:
                if not 0 <= place < len(siblings):
                    break
                message = siblings[place]
                siblings = [each for each in message.nested_types if entries_count or not is_entry(each)]
            else:
                if message is not None and message not in found:
                    found.append(message)
        return found

    def _parsed(self, message: Descriptor, content: bytes) -> Message:
        if len(content) * self._field_count > _MOST_BYTES_TIMES_FIELDS or len(content) > _MOST_VALUE_BYTES:
            raise Undecodable("it is too large to be decoded by this schema within the limits of memory")
        parsed = message_factory.GetMessageClass(message)()
        try:
            parsed.ParseFromString(content)
        except DecodeError as error:
            raise Undecodable(f"not a message {message.full_name}: {error}") from None
        return parsed

    def _has_unknown_fields(self, message: Descriptor, content: bytes) -> bool:
        try:
            return len(unknown_fields.UnknownFieldSet(self._parsed(message, content))) > 0
        except Undecodable:
            return True

    def _text(self, message: Descriptor, content: bytes) -> str:
        parsed = self._parsed(message, content)
        try:
            printer = _Printer(preserving_proto_field_name=True, descriptor_pool=self._pool)
            found = printer._MessageToJsonObject(parsed)
            text = msgspec.json.encode(found).decode()
        except (json_format.Error, TypeError, ValueError, KeyError, OverflowError, RecursionError) as error:
            raise Undecodable(f"a message {message.full_name} that has no form in JSON: {error}") from None
        if "\"b'" in text or '"b\\"' in text:  # so stands a string of proto2 that is not UTF-8
            for leaf in message_leaves(message, self._pool, content, 0):
                if leaf.form == "text":
                    utf8(content[leaf.start : leaf.end])
        return text


class _Printer(json_format._Printer):  # type: ignore[misc]
    """Protobuf's own printer of JSON, but an Any that cannot be opened is shown by its two fields.

    So does Protobuf's printer of text. Its printer of JSON refuses the whole message, for one part whose type the
    schema need not have.
    """

    def _AnyMessageToJsonObject(self, message: Message) -> dict[str, Any]:  # noqa: N802
        try:
            opened: dict[str, Any] = super()._AnyMessageToJsonObject(message)
        except (TypeError, DecodeError):  # no such type, or not a message of it
            return dict(self._RegularMessageToJsonObject(message, {}))
        return opened


def _file_of(name: str, text: str | None) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a file by its text, or of one that Google's packages or a registry have."""
    text = _CONFLUENT.get(name) if text is None else text
    if text is not None:
        if _BASE64.fullmatch(text) is None:
            return file_of(text, name)
        file = descriptor_pb2.FileDescriptorProto()
        try:
            file.ParseFromString(b64decode(text))
        except (ValueError, DecodeError):
            raise InvalidSchema("the schema is neither the text of a .proto file nor a descriptor in base64") from None
        file.name = name
        return file
    google = _GOOGLE.fullmatch(name)
    if google is None:
        raise InvalidSchema(f"the schema imports {name}, which is not there")
    try:
        module = import_module(f"google.{google[1]}.{google[2]}_pb2")
    except ImportError:
        raise InvalidSchema(f"the schema imports {name}, which this program does not have") from None
    file = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(file)
    return file


def _message_place(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """The place of a message: its number, and those of the ones in it; and where the message begins."""
    count, start = _place_number(data, start)
    if not 0 <= count <= _MOST_INDEXES:
        raise Undecodable("no place of a message is in front of it")
    if count == 0:
        return (0,), start
    places = []
    for _ in range(count):
        place, start = _place_number(data, start)
        places.append(place)
    return tuple(places), start


def _place_number(data: bytes, at: int) -> tuple[int, int]:
    try:
        return zigzag_at(data, at, at + _VARINT_BYTES)
    except Undecodable:
        raise Undecodable("no place of a message is in front of it") from None


def _all_messages(messages: Iterable[Descriptor]) -> list[Descriptor]:
    """Messages and all messages in them, the outermost first."""
    found = list(messages)
    for each in found:
        found += (inner for inner in each.nested_types if not is_entry(inner))
    return found
