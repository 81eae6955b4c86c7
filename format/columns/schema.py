"""What a row type is made of: its columns, their types, and where the values of batches and records come from.

Column types:

``int``        an integer that fits in 64 bits, signed
``bool``       true or false
``string``     text that this program or Kafka's own naming rules made
``timestamp``  epoch milliseconds, an integer
``bytes``      lossless bytes: in JSON a string when valid UTF-8, else ``{"base64": …}``
``headers``    a list of (key bytes, value bytes or None), in order
``any``        a JSON value, for fields whose type depends on the finding or the file
"""

from __future__ import annotations

from format.value_class import value_class


@value_class
class Fill:
    """Where a column of batches or records gets its values.

    ``kind`` names an expression of ``format.rows.column_values``; the compiled writer of lines knows the same kinds
    (``FIELDS`` of the kernel). ``source`` is the column of the batch or record table, the bit of the attributes, or the
    field of the location that the expression reads.
    """

    kind: str
    source: str | int = ""


@value_class
class Column:
    """One column: its name, its type (see the module's list), what it holds, and for batches and records its values."""

    name: str
    type: str
    meaning: str
    fill: Fill | None = None


@value_class
class RowSchema:
    """The columns of one row type; ``type`` is the value of JSON's ``"type"`` key."""

    type: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


#: Columns that many row types have.
TOPIC_COLUMN = Column("topic", "string", "topic, from the directory's name", Fill("constant", "topic"))
PARTITION_COLUMN = Column("partition", "int", "partition number, from the directory's name", Fill("constant", "partition"))
SEGMENT_COLUMN = Column("segment_base_offset", "int", "base offset in the segment's file name", Fill("constant", "base_offset"))
PATH_COLUMN = Column("path", "string", "the file")
