"""What rows look like as lines: JSON, logfmt or CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from format.columns import RowSchema

#: The formats of lines. The kernel knows each by its number here.
LINE_FORMATS = ("jsonl", "logfmt", "csv")


class LineStyle(msgspec.Struct, frozen=True):
    """How a row becomes a line: ``start``, then for each column its label and its value, then ``end``.

    ``format_name`` is one of LINE_FORMATS. ``writers`` write a value that is not null, by the type of its column;
    ``unsafe_ranges`` are the first and last code points of the characters that are always escaped.
    """

    format_name: str
    writers: Mapping[str, Callable[[Any], str]]
    unsafe_ranges: tuple[tuple[int, int], ...]

    def string(self, text: str) -> str:
        """Text of this program as a value."""
        return self.writers["string"](text)

    @property
    def null(self) -> str:
        return {"jsonl": "null", "logfmt": "-", "csv": ""}[self.format_name]

    def start(self, schema: RowSchema) -> str:
        return {"jsonl": f'{{"type":{self.string(schema.type)}', "logfmt": schema.type, "csv": ""}[self.format_name]

    def label(self, schema: RowSchema, name: str) -> str:
        """What stands before the value of a column."""
        if self.format_name == "csv":
            return "" if name == schema.names[0] else ","
        return f",{self.string(name)}:" if self.format_name == "jsonl" else f" {name}="

    @property
    def end(self) -> str:
        return "}\n" if self.format_name == "jsonl" else "\n"
