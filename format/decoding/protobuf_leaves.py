"""The parts of a Protobuf message, each with its place in the bytes.

Paths are those of Protobuf's JSON: the messages that have a form of their own there (Struct, wrappers, Any) add nothing
of their own. What the schema does not have is found, too, without a name.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from format.decoding.leaves import MAX_U64, Leaf, Path, varint_at
from format.decoding.plain import Undecodable
from format.files.side_file import INT32_RANGE, INT64_RANGE

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
_MOST_DEPTH = 100
_MOST_FIELD = 2**29 - 1
_F = FieldDescriptor
#: How scalars are written, and for varints the form and the bounds.
_VARINTS = {
    _F.TYPE_INT32: ("varint", *INT32_RANGE),
    _F.TYPE_INT64: ("varint", *INT64_RANGE),
    _F.TYPE_UINT32: ("varint", 0, 2**32 - 1),
    _F.TYPE_UINT64: ("varint", 0, MAX_U64),
    _F.TYPE_SINT32: ("zigzag", *INT32_RANGE),
    _F.TYPE_SINT64: ("zigzag", *INT64_RANGE),
    _F.TYPE_BOOL: ("varint", 0, 1),
    _F.TYPE_ENUM: ("varint", *INT32_RANGE),
}
_FIXED = {
    _F.TYPE_FIXED32: ("bytes", 4),
    _F.TYPE_SFIXED32: ("bytes", 4),
    _F.TYPE_FLOAT: ("float", 4),
    _F.TYPE_FIXED64: ("bytes", 8),
    _F.TYPE_SFIXED64: ("bytes", 8),
    _F.TYPE_DOUBLE: ("float", 8),
}
#: What JSON's forms of some messages can say.
_BOUNDS = {
    "google.protobuf.Timestamp.seconds": (-62_135_596_800, 253_402_300_799),
    "google.protobuf.Timestamp.nanos": (0, 10**9 - 1),
    "google.protobuf.Duration.seconds": (-315_576_000_000, 315_576_000_000),
    "google.protobuf.Duration.nanos": (1 - 10**9, 10**9 - 1),
}
_WORDS = "google.protobuf.FieldMask.paths"
#: Messages whose fields have no name in JSON.
_NAMELESS = {f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any")} | {
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
#: Messages that are no object in JSON, or one without the names of fields.
_OWN_FORMS = _NAMELESS | {f"google.protobuf.{name}" for name in ("Timestamp", "Duration", "FieldMask")}
_ANY, _TYPE_URL = "google.protobuf.Any", "type.googleapis.com/"


def message_leaves(message: Descriptor, pool: DescriptorPool, data: bytes, start: int) -> list[Leaf]:
    """The parts of a message from byte ``start`` on, which was parsed. Raises Undecodable."""
    reader = _Leaves(pool, data)
    reader.message(message, start, len(data), (), 0)
    return reader.found


class _Leaves:
    def __init__(self, pool: DescriptorPool, data: bytes) -> None:
        self.found: list[Leaf] = []
        self._pool = pool
        self._data = data

    def message(
        self, message: Descriptor | None, at: int, end: int, path: Path, depth: int, group: int | None = None
    ) -> int:
        """Find the parts of a message, or of a group up to its end; None is one that the schema does not have.

        Returns where it ends.
        """
        if depth > _MOST_DEPTH:
            raise Undecodable("the message is nested too deeply")
        packed = None
        if message is not None and message.full_name == _ANY and group is None:
            packed = self._packed_type(message, at, end)
        while at < end:
            tag, at = varint_at(self._data, at, end)
            number, wire = tag >> 3, tag & 7
            if not 0 < number <= _MOST_FIELD:
                raise Undecodable("a field has no valid number")
            if wire == _GROUP_END:
                if number != group:
                    raise Undecodable("a group ends that did not begin")
                return at
            field = None if message is None else self._field(message, number)
            if packed is not None and wire == _BYTES and number in (1, 2):
                at = self._packed_part(packed, number, at, end, path, depth)
                continue
            at = self._value(field, number, wire, at, end, path, depth)
        if group is not None:
            raise Undecodable("a group does not end")
        return at

    def _field(self, message: Descriptor, number: int) -> FieldDescriptor | None:
        found: FieldDescriptor | None = message.fields_by_number.get(number)
        if found is None and message.is_extendable:
            try:
                found = self._pool.FindExtensionByNumber(message, number)
            except KeyError:
                return None
        return found

    def _value(
        self, field: FieldDescriptor | None, number: int, wire: int, at: int, end: int, path: Path, depth: int
    ) -> int:
        """Find the parts of one field from its value on; returns where it ends."""
        if field is not None and not _is_written_as(field, wire):
            field = None
        path = path if field is None else _path_of(field, path)
        if wire == _VARINT:
            return self._varint(field, path, at, end)
        if wire in (_FIXED32, _FIXED64):
            return self._fixed(field, path, at, at + (4 if wire == _FIXED32 else 8), end)
        if wire == _GROUP:
            return self.message(None if field is None else field.message_type, at, end, path, depth + 1, number)
        if wire != _BYTES:
            raise Undecodable("a field has no valid type")
        length, at = varint_at(self._data, at, end)
        stop = at + length
        if field is None or field.type in (_F.TYPE_STRING, _F.TYPE_BYTES):
            return self._bytes(field, path, at, stop, end)
        if stop > end:
            raise Undecodable("a field is cut off")
        if field.type != _F.TYPE_MESSAGE:
            while at < stop:
                size = _FIXED.get(field.type, ("", 0))[1]
                at = self._fixed(field, path, at, at + size, stop) if size else self._varint(field, path, at, stop)
            return at
        if is_entry(field.message_type):
            key = self._parsed(field.message_type, at, stop).key
            path = (*path, (str(key).lower() if isinstance(key, bool) else str(key)).encode())
        return self.message(field.message_type, at, stop, path, depth + 1)

    def _packed_part(self, packed: Descriptor, number: int, at: int, end: int, path: Path, depth: int) -> int:
        """Find the parts of the message in an Any; the name of its type says nothing that the schema does not."""
        length, at = varint_at(self._data, at, end)
        stop = at + length
        if stop > end:
            raise Undecodable("a field is cut off")
        if number == 2:
            path = (*path, b"value") if packed.full_name in _OWN_FORMS else path
            return self.message(packed, at, stop, path, depth + 1)
        if self._data[at:stop] != (_TYPE_URL + packed.full_name).encode():
            self.found.append(Leaf("text", path, at, stop))
        return stop

    def _varint(self, field: FieldDescriptor | None, path: Path, at: int, end: int) -> int:
        _, stop = varint_at(self._data, at, end)
        form, least, most = ("varint", 0, MAX_U64) if field is None else _VARINTS[field.type]
        choices: tuple[int, ...] = ()
        if field is not None:
            least, most = _BOUNDS.get(field.full_name, (least, most))
            choices = _choices(field.enum_type) if field.type == _F.TYPE_ENUM else ()
        self.found.append(Leaf(form, path, at, stop, least, most, choices, is_name=_is_key(field)))
        return stop

    def _fixed(self, field: FieldDescriptor | None, path: Path, at: int, stop: int, end: int) -> int:
        return self._part("bytes" if field is None else _FIXED[field.type][0], field, path, at, stop, end)

    def _bytes(self, field: FieldDescriptor | None, path: Path, at: int, stop: int, end: int) -> int:
        form = "bytes" if field is None or field.type == _F.TYPE_BYTES else "text"
        if field is not None and field.full_name == _WORDS:
            form = "words"
        return self._part(form, field, path, at, stop, end)

    def _part(self, form: str, field: FieldDescriptor | None, path: Path, at: int, stop: int, end: int) -> int:
        if stop > end:
            raise Undecodable("a field is cut off")
        self.found.append(Leaf(form, path, at, stop, is_name=_is_key(field)))
        return stop

    def _parsed(self, message: Descriptor, at: int, end: int) -> Any:
        found = GetMessageClass(message)()
        try:
            found.ParseFromString(self._data[at:end])
        except DecodeError as error:
            raise Undecodable(f"not a message {message.full_name}: {error}") from None
        return found

    def _packed_type(self, message: Descriptor, at: int, end: int) -> Descriptor | None:
        """The type of the message in an Any; None for one that the schema does not have, or that is not in it."""
        found = self._parsed(message, at, end)
        if not found.type_url.startswith(_TYPE_URL):
            return None
        try:
            packed: Descriptor = self._pool.FindMessageTypeByName(found.type_url.removeprefix(_TYPE_URL))
            GetMessageClass(packed)().ParseFromString(found.value)
        except (KeyError, DecodeError):
            return None
        return packed


def _is_written_as(field: FieldDescriptor, wire: int) -> bool:
    """Whether a field of a schema can be written with a type of the wire; else it is a field that nobody knows."""
    if wire == _BYTES:
        is_packable = field.type in _VARINTS or field.type in _FIXED
        return bool(field.is_repeated if is_packable else field.type != _F.TYPE_GROUP)
    if wire == _VARINT:
        return field.type in _VARINTS
    if wire == _GROUP:
        return bool(field.type == _F.TYPE_GROUP)
    return _FIXED.get(field.type, ("", 0))[1] == (4 if wire == _FIXED32 else 8)


def _path_of(field: FieldDescriptor, path: Path) -> Path:
    owner = field.containing_type
    if is_entry(owner) or owner.full_name in _NAMELESS:
        return path
    return (*path, (f"[{field.full_name}]" if field.is_extension else field.name).encode())


def is_entry(message: Descriptor) -> bool:
    """Whether a message is an entry of a map."""
    return bool(message.GetOptions().map_entry)


def _is_key(field: FieldDescriptor | None) -> bool:
    return field is not None and field.number == 1 and is_entry(field.containing_type)


@lru_cache(1024)
def _choices(enum: EnumDescriptor) -> tuple[int, ...]:
    return tuple(sorted({each.number for each in enum.values}))
