"""A JSON object on one line, with checked fields: the format of quorum-state and of the clean-shutdown mark."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from format.errors import InvalidCheckpoint
from format.files.side_file import Line, decode_text, invalid_line, shown
from format.io.source import Source


class JsonObject(msgspec.Struct, frozen=True):
    """The fields of an object, and its line. ``repeated`` are the names that occur twice, of which the last counts."""

    source: Source
    line: Line
    fields: dict[str, Any]
    repeated: tuple[str, ...] = ()

    def integer(self, name: str, least: int, most: int) -> int:
        """A field that must be an integer from ``least`` to ``most``; raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if type(value) is not int or not least <= value <= most:
            raise self.invalid(name, f"an integer from {least} to {most}")
        return value

    def text(self, name: str) -> str:
        """A field that must be a string; raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise self.invalid(name, "a string")
        return value

    def objects(self, name: str) -> list[JsonObject] | None:
        """A field that must be a list of objects or null (None); raises InvalidCheckpoint."""
        value = self.fields.get(name)
        if value is None and name in self.fields:
            return None
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.invalid(name, "a list of objects")
        return [JsonObject(self.source, self.line, each) for each in value]

    def invalid(self, name: str, expected: str) -> InvalidCheckpoint:
        """The error for a field that is not as expected."""
        actual = _shown_value(self.fields[name]) if name in self.fields else "no such field"
        return invalid_line(self.source, self.line, f"{name} to be {expected}", actual)


def _shown_value(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return shown(value) if isinstance(value, str) else shown(str(value)).strip("'")


def decode_json_object(source: Source, line: Line) -> JsonObject:
    """Decode the object on a line. Raises InvalidCheckpoint for a line that is not one."""
    repeated: list[str] = []

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name in fields:
                repeated.append(name)
            fields[name] = value
        return fields

    try:
        value = json.loads(decode_text(source, line), object_pairs_hook=object_of, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # includes deep nesting, and integers of thousands of digits
        raise invalid_line(source, line, "JSON") from error
    if not isinstance(value, dict):
        raise invalid_line(source, line, "a JSON object")
    return JsonObject(source, line, value, tuple(sorted(set(repeated))))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
