"""Row types: their columns, the types of columns, and the sources of the values for batches and records.

Column types:

``int``        a signed integer of 64 bits
``bool``       true or false
``string``     text that comes from this program or obeys Kafka's naming rules
``timestamp``  epoch milliseconds, an integer
``bytes``      lossless bytes: in JSON a string when valid UTF-8, else ``{"base64": …}``
``headers``    a list of (key bytes, value bytes or None), in order
``any``        a JSON value, for fields whose type depends on the finding or the file
"""

from __future__ import annotations

import msgspec


class Fill(msgspec.Struct, frozen=True):
    """The source of the values of a column of batches or records.

    ``kind`` is the name of an expression in ``format.rows.record_rows``, and of a field in the kernel's writer of lines
    (``FIELDS``). ``source`` is what the expression reads: a column of the batch or record table, a bit of the attributes,
    or a field of the location.
    """

    kind: str
    source: str | int = ""


class Column(msgspec.Struct, frozen=True):
    """One column: its name, its type (see above), its description, and for batches and records the source of values."""

    name: str
    type: str
    meaning: str
    fill: Fill | None = None


class RowSchema(msgspec.Struct, frozen=True):
    """The columns of one row type; ``type`` is the value of JSON's ``"type"`` key."""

    type: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


#: Columns of many row types.
TOPIC_COLUMN = Column("topic", "string", "topic, from the directory's name", Fill("constant", "topic"))
PARTITION_COLUMN = Column(
    "partition", "int", "partition number, from the directory's name", Fill("constant", "partition")
)
SEGMENT_COLUMN = Column(
    "segment_base_offset", "int", "base offset in the segment's file name", Fill("constant", "base_offset")
)
PATH_COLUMN = Column("path", "string", "the file")
