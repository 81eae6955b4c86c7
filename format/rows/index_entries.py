"""The entries of the offset index and the time index of a log, as one table in Arrow. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from format import layout
from format.columns import OFFSET_INDEX_ENTRY, Column, RowSchema
from format.files import offset_index, time_index
from format.files.side_file import problem_findings
from format.findings import Finding
from format.io.session import is_there
from format.location import Location
from format.node.partition import location_of_file
from format.rows.arrow_columns import ARROW_TYPES, arrow_schema, constant, ints

INDEX_ENTRY = RowSchema(
    "index_entry",
    (
        Column("path", "string", "the file"),
        Column("topic", "string", "topic, from the directory's name"),
        Column("partition", "int", "partition number, from the directory's name"),
        Column("kind", "string", "offset_index_entry or time_index_entry"),
        *(column for column in OFFSET_INDEX_ENTRY.columns if column.name != "position"),
        Column("position", "int", "byte position in the segment; null in a time index"),
        Column("timestamp", "timestamp", "ms; null in an offset index"),
    ),
)


def index_entries(log: Path, location: Location) -> Iterator[pa.RecordBatch | Finding]:
    """The entries of the .index and the .timeindex beside a log, and findings about them. Raises KafkaLogError."""
    for is_offsets in (True, False):
        path = log.with_suffix(layout.OFFSET_INDEX_SUFFIX if is_offsets else layout.TIME_INDEX_SUFFIX)
        if not is_there(path):
            continue
        read: Any = offset_index.read if is_offsets else time_index.read
        index = read(path, location.base_offset or 0)
        count = len(index.relative_offsets)
        none = pa.nulls(count, ARROW_TYPES["int"])
        columns = {
            "path": constant(str(path), count, "string"),
            "topic": constant(location.topic, count, "string"),
            "partition": constant(location.partition, count, "int"),
            "kind": constant("offset_index_entry" if is_offsets else "time_index_entry", count, "string"),
            "segment_base_offset": constant(location.base_offset, count, "int"),
            "relative_offset": ints(index.relative_offsets),
            "offset": ints(index.offsets),
            "position": ints(index.positions) if is_offsets else none,
            "timestamp": none if is_offsets else ints(index.timestamps),
        }
        schema = arrow_schema(INDEX_ENTRY)
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        yield from problem_findings(index.problems, location_of_file(path))
