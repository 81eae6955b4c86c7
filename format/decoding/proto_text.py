"""Parsing .proto files into descriptors.

Only what decides how bytes are read is kept: options without a part in that are passed over, and so are services,
reserved names and default values. The names of types stay as they are written, since the pool of descriptors resolves
them. The grammar is that of proto2, proto3 and editions (protobuf.dev).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from google.protobuf import descriptor_pb2

from format.decoding.plain import InvalidSchema

_TOKEN = re.compile(
    r"""(?P<space>(?:\s+|//[^\n]*|/\*.*?\*/)+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>(?:0[xX][0-9A-Fa-f]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\w*)
    |(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<symbol>[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)
_MOST_TEXT = 4 * 1024 * 1024
_MOST_DEPTH = 30
_END = ""
_LABELS = {
    "optional": descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    "required": descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED,
}
_SCALARS = {
    name: descriptor_pb2.FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in (
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
        "sfixed64", "bool", "string", "bytes",
    )
}  # fmt: skip
_MOST_FIELD, _MOST_MESSAGE_SET_FIELD, _MOST_INT32 = 2**29 - 1, 2**31 - 2, 2**31 - 1
_EDITIONS = {"2023": descriptor_pb2.EDITION_2023}
#: Options of messages, enums and fields that decide how bytes are read.
_MESSAGE_OPTIONS = ("map_entry", "message_set_wire_format")
_ENUM_OPTIONS = ("allow_alias",)
_FIELD_OPTIONS = ("packed",)
_FILE_OPTIONS: tuple[str, ...] = ()
Fields = list[descriptor_pb2.FieldDescriptorProto]
T = TypeVar("T")


def file_of(text: str, name: str) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of a .proto file. Raises InvalidSchema."""
    if len(text) > _MOST_TEXT:
        raise InvalidSchema(f"the schema has more than {_MOST_TEXT:,} characters")
    return _Parser(text).file(name)


class _Parser:
    """Reads the tokens of a file one after the other."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._lines: list[int] = []
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise InvalidSchema(f"line {line} of the schema: {text[at : at + 20]!r} has no end or no meaning")
            if found.lastgroup != "space":
                self._tokens.append(found[0])
                self._lines.append(line)
            line += found[0].count("\n")
            at = found.end()
        self._lines.append(line)
        self._tokens += [_END] * 3
        self._at = 0
        self._is_proto3 = False

    # -- tokens --------------------------------------------------------------------------------------------------

    def _wrong(self, wanted: str) -> InvalidSchema:
        token = self._tokens[self._at] or "the end"
        line = self._lines[min(self._at, len(self._lines) - 1)]
        return InvalidSchema(f"line {line} of the schema: {wanted} in place of {token[:40]}")

    def _next(self) -> str:
        token = self._tokens[self._at]
        if token is _END:
            raise self._wrong("more is wanted")
        self._at += 1
        return token

    def _is_next(self, *tokens: str) -> bool:
        return self._tokens[self._at : self._at + len(tokens)] == list(tokens)

    def _taken(self, token: str) -> bool:
        if self._tokens[self._at] != token:
            return False
        self._at += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._taken(token):
            raise self._wrong(f"{token!r} is wanted")

    def _name(self) -> str:
        token = self._tokens[self._at]
        if not token.isidentifier():
            raise self._wrong("a name is wanted")
        self._at += 1
        return token

    def _full_name(self) -> str:
        parts = "." if self._taken(".") else ""
        parts += self._name()
        while self._taken("."):
            parts += f".{self._name()}"
        return parts

    def _number(self) -> int:
        is_negative = self._taken("-")
        token = self._tokens[self._at]
        try:
            number = int(token, 8 if re.fullmatch("0[0-7]+", token) else 0)
        except ValueError:
            raise self._wrong("a whole number is wanted") from None
        self._at += 1
        return -number if is_negative else number

    def _string(self) -> str:
        if self._tokens[self._at][:1] not in ('"', "'"):
            raise self._wrong("a string is wanted")
        text = ""
        while self._tokens[self._at][:1] in ('"', "'"):
            text += re.sub(r"\\(.)", r"\1", self._next()[1:-1])
        return text

    def _skip_to_end(self) -> None:
        """Pass over the rest of a statement: up to a semicolon, with all brackets in between."""
        while not self._taken(";"):
            if self._is_next("{") or self._is_next("["):
                self._skip_brackets()
            elif self._is_next("}"):
                raise self._wrong("';' is wanted")
            else:
                self._next()

    def _skip_brackets(self) -> None:
        depth = 0
        while True:
            token = self._next()
            depth += (token in ("{", "[", "(")) - (token in ("}", "]", ")"))
            if depth == 0:
                return

    # -- statements ----------------------------------------------------------------------------------------------

    def file(self, name: str) -> descriptor_pb2.FileDescriptorProto:
        """The whole file."""
        file = descriptor_pb2.FileDescriptorProto(name=name)
        while not self._is_next(_END):
            if self._taken("syntax"):
                self._expect("=")
                file.syntax = self._string()
                if file.syntax not in ("proto2", "proto3"):
                    raise InvalidSchema(f"the syntax {file.syntax!r} is not known")
                self._is_proto3 = file.syntax == "proto3"
                self._expect(";")
            elif self._taken("edition"):
                self._expect("=")
                edition = self._string()
                if edition not in _EDITIONS:
                    raise InvalidSchema(f"the edition {edition!r} is not known")
                file.syntax, file.edition = "editions", _EDITIONS[edition]
                self._expect(";")
            elif self._taken("package"):
                file.package = self._full_name()
                self._expect(";")
            elif self._taken("import"):
                is_weak, is_public = self._taken("weak"), self._taken("public")
                if is_public:
                    file.public_dependency.append(len(file.dependency))
                if is_weak:
                    file.weak_dependency.append(len(file.dependency))
                file.dependency.append(self._string())
                self._expect(";")
            elif self._taken("message"):
                self._message(file.message_type.add(), 0)
            elif self._taken("enum"):
                self._enum(file.enum_type.add())
            elif self._taken("extend"):
                self._extend(file.extension, file.message_type.add, 0)
            elif self._taken("service"):
                self._name()
                self._skip_brackets()
            elif self._taken("option"):
                self._option(file.options, _FILE_OPTIONS)
            elif not self._taken(";"):
                raise self._wrong("a definition is wanted")
        return file

    def _message(self, message: descriptor_pb2.DescriptorProto, depth: int) -> None:
        message.name = self._name()
        self._body(message, depth)

    def _body(self, message: descriptor_pb2.DescriptorProto, depth: int) -> None:
        if depth > _MOST_DEPTH:
            raise InvalidSchema("the schema is nested too deeply")
        ranges: list[tuple[int, int | None]] = []
        self._expect("{")
        while not self._taken("}"):
            if self._taken(";"):
                continue
            if self._taken("message"):
                self._message(message.nested_type.add(), depth + 1)
            elif self._taken("enum"):
                self._enum(message.enum_type.add())
            elif self._taken("oneof"):
                self._oneof(message, depth)
            elif self._taken("extend"):
                self._extend(message.extension, message.nested_type.add, depth)
            elif self._taken("option"):
                self._option(message.options, _MESSAGE_OPTIONS)
            elif self._taken("extensions"):
                ranges += self._ranges()
            elif self._is_next("reserved"):
                self._skip_to_end()
            else:
                self._field(message.field, message, depth)
        most = _MOST_MESSAGE_SET_FIELD if message.options.message_set_wire_format else _MOST_FIELD
        for first, last in ranges:
            message.extension_range.add(start=first, end=(most if last is None else last) + 1)
        names = {each.name for each in (*message.field, *message.oneof_decl, *message.nested_type, *message.enum_type)}
        for field in message.field:
            if field.proto3_optional:  # a oneof of its own, after all others
                name = f"_{field.name}"
                while name in names:
                    name = f"X{name}"
                names.add(name)
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=name)

    def _ranges(self) -> list[tuple[int, int | None]]:
        found: list[tuple[int, int | None]] = []
        while True:
            first = self._number()
            last: int | None = first
            if self._taken("to"):
                last = None if self._taken("max") else self._number()
            found.append((first, last))
            if not self._taken(","):
                self._skip_to_end()
                return found

    def _oneof(self, message: descriptor_pb2.DescriptorProto, depth: int) -> None:
        number = len(message.oneof_decl)
        message.oneof_decl.add(name=self._name())
        self._expect("{")
        while not self._taken("}"):
            if self._is_next("option"):
                self._skip_to_end()
            elif not self._taken(";"):
                first = len(message.field)
                self._field(message.field, message, depth)
                for field in message.field[first:]:
                    field.oneof_index = number

    def _extend(self, fields: Fields, new_message: Callable[[], descriptor_pb2.DescriptorProto], depth: int) -> None:
        extendee = self._full_name()
        self._expect("{")
        while not self._taken("}"):
            if not self._taken(";"):
                holder = descriptor_pb2.DescriptorProto()
                self._field(fields, holder, depth)
                fields[-1].extendee = extendee
                fields[-1].ClearField("proto3_optional")
                for each in holder.nested_type:  # that of a group
                    new_message().CopyFrom(each)

    def _field(self, fields: Fields, message: descriptor_pb2.DescriptorProto, depth: int) -> None:
        field = fields.add()  # type: ignore[attr-defined]
        field.label = _LABELS["optional"]
        label = self._tokens[self._at]
        if label in _LABELS:
            self._next()
            field.label = _LABELS[label]
            field.proto3_optional = self._is_proto3 and label == "optional"
            if not field.proto3_optional:
                field.ClearField("proto3_optional")
        if self._is_next("group") and self._tokens[self._at + 2] == "=":
            self._group(field, message, depth)
            return
        if self._is_next("map", "<"):
            self._map(field, message)
            return
        self._type(field)
        field.name = self._name()
        self._expect("=")
        field.number = self._field_number()
        self._field_options(field)
        self._expect(";")

    def _field_number(self) -> int:
        number = self._number()
        if not 1 <= number <= _MOST_INT32:
            raise InvalidSchema(f"the number of a field is {number}")
        return number

    def _type(self, field: descriptor_pb2.FieldDescriptorProto) -> None:
        if self._tokens[self._at] in _SCALARS and self._tokens[self._at + 1] != ".":
            field.type = _SCALARS[self._next()]
        else:
            field.type_name = self._full_name()  # the pool finds out what it is

    def _group(
        self, field: descriptor_pb2.FieldDescriptorProto, message: descriptor_pb2.DescriptorProto, depth: int
    ) -> None:
        self._next()
        name = self._name()
        self._expect("=")
        field.number = self._field_number()
        field.name, field.type_name = name.lower(), name
        field.type = descriptor_pb2.FieldDescriptorProto.TYPE_GROUP
        self._field_options(field)
        group = message.nested_type.add(name=name)
        self._body(group, depth + 1)

    def _map(self, field: descriptor_pb2.FieldDescriptorProto, message: descriptor_pb2.DescriptorProto) -> None:
        self._next()
        self._expect("<")
        entry = message.nested_type.add()
        entry.options.map_entry = True
        for number, name in ((1, "key"), (2, "value")):
            part = entry.field.add(name=name, number=number, label=_LABELS["optional"])
            self._type(part)
            self._expect("," if number == 1 else ">")
        field.name = self._name()
        field.label = _LABELS["repeated"]
        entry.name = "".join(word[:1].upper() + word[1:] for word in field.name.split("_")) + "Entry"
        field.type_name, field.type = entry.name, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
        self._expect("=")
        field.number = self._field_number()
        self._field_options(field)
        self._expect(";")

    def _enum(self, enum: descriptor_pb2.EnumDescriptorProto) -> None:
        enum.name = self._name()
        self._expect("{")
        while not self._taken("}"):
            if self._taken(";"):
                continue
            if self._taken("option"):
                self._option(enum.options, _ENUM_OPTIONS)
            elif self._is_next("reserved"):
                self._skip_to_end()
            else:
                value = enum.value.add(name=self._name())
                self._expect("=")
                number = self._number()
                if not -(2**31) <= number < 2**31:
                    raise InvalidSchema(f"the number of the enum's value {value.name} is {number}")
                value.number = number
                self._skip_to_end()

    def _field_options(self, field: descriptor_pb2.FieldDescriptorProto) -> None:
        if not self._is_next("["):
            return
        start = self._at
        self._skip_brackets()
        end, self._at = self._at, start + 1
        while self._at < end - 1:
            self._one_option(field.options, _FIELD_OPTIONS)
            if not self._taken(","):
                break
        self._at = end

    def _option(self, options: object, known: tuple[str, ...]) -> None:
        self._one_option(options, known)
        self._expect(";")

    def _one_option(self, options: object, known: tuple[str, ...]) -> None:
        """Read an option, and keep it if it is one that counts."""
        names: list[str] = []
        while True:
            if self._is_next("("):
                self._skip_brackets()
                names.append("(")
            else:
                names.append(self._name())
            if not self._taken("."):
                break
        self._expect("=")
        if self._is_next("{") or self._is_next("["):
            self._skip_brackets()
            return
        self._taken("-") or self._taken("+")
        value = self._next()
        while value[:1] in ('"', "'") and self._tokens[self._at][:1] in ('"', "'"):
            self._next()
        if len(names) == 1 and names[0] in known:
            setattr(options, names[0], value == "true")
        elif len(names) == 2 and names[0] == "features":
            features = options.features  # type: ignore[attr-defined]
            found = features.DESCRIPTOR.fields_by_name.get(names[1])
            if found is not None and found.enum_type is not None and value in found.enum_type.values_by_name:
                setattr(features, names[1], found.enum_type.values_by_name[value].number)
