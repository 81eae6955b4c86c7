"""The columns that a table shows, where these are not all."""

from __future__ import annotations

from typing import Self

from format.columns import RECORD, RowSchema


class ShownColumns(tuple[str, ...]):
    """Names of columns, in their order. A narrow terminal drops those in ``first_to_go``, and then from the end.

    Columns in ``whole`` are not folded while others can be dropped. A wide terminal shows other columns, too, but not
    those in ``on_request``. With ``as_paragraphs``, a terminal on which a row does not fit shows paragraphs in place of
    a table.
    """

    first_to_go: tuple[str, ...]
    whole: tuple[str, ...]
    on_request: tuple[str, ...]
    as_paragraphs: bool

    def __new__(
        cls,
        names: tuple[str, ...],
        first_to_go: tuple[str, ...] = (),
        whole: tuple[str, ...] = ("topic", "group"),
        *,
        on_request: tuple[str, ...] = (),
        as_paragraphs: bool = False,
    ) -> Self:
        made = super().__new__(cls, names)
        made.first_to_go = first_to_go
        made.whole = whole
        made.on_request = on_request
        made.as_paragraphs = as_paragraphs
        return made


#: The columns of records. The topic and the partition are dropped before keys and values, as they are mostly known.
RECORD_COLUMNS = ShownColumns(
    ("topic", "partition", "offset", "timestamp", "codec", "key", "value", "headers"),
    first_to_go=("codec", "headers", "topic", "partition"),
)


def record_columns(schema: RowSchema) -> ShownColumns:
    """The columns of records, with those that the schema has on request."""
    added = schema.names[len(RECORD.names) :]
    marks = [name for name in added if name != "path"]
    at = RECORD_COLUMNS.index("key")
    names = (*RECORD_COLUMNS[:at], *marks, *RECORD_COLUMNS[at:], *(name for name in added if name == "path"))
    return ShownColumns(names, RECORD_COLUMNS.first_to_go)
