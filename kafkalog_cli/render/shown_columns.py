"""Which columns a table shows, if not all of them."""

from __future__ import annotations

from typing import Self

from format.columns import RECORD, RowSchema


class ShownColumns(tuple[str, ...]):
    """Names of columns in their order, and those that a narrow terminal drops first; after them it drops the last.

    ``whole`` are names that are not folded while other columns can be dropped.
    """

    first_to_go: tuple[str, ...]
    whole: tuple[str, ...]

    def __new__(
        cls, names: tuple[str, ...], first_to_go: tuple[str, ...] = (), whole: tuple[str, ...] = ("topic", "group")
    ) -> Self:
        made = super().__new__(cls, names)
        made.first_to_go = first_to_go
        made.whole = whole
        return made


#: The columns of records: keys and values first; the topic and partition are mostly known.
RECORD_COLUMNS = ShownColumns(
    ("topic", "partition", "offset", "timestamp", "codec", "key", "value", "headers"),
    first_to_go=("codec", "headers", "topic", "partition"),
)


def record_columns(schema: RowSchema) -> ShownColumns:
    """The columns of records, and those that the schema has besides the usual ones: they were asked for."""
    added = schema.names[len(RECORD.names) :]
    marks = [name for name in added if name != "path"]
    at = RECORD_COLUMNS.index("key")
    names = (*RECORD_COLUMNS[:at], *marks, *RECORD_COLUMNS[at:], *(name for name in added if name == "path"))
    return ShownColumns(names, RECORD_COLUMNS.first_to_go)
