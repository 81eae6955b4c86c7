"""The records of a segment or snapshot file as plain tuples, for the tests of the decoders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format.io.source import FileSource
from format.log.read_records import record_tables
from format.log.walker import batch_chunks


def records_of(path: Path) -> Iterator[tuple[int, bool, bytes | None, bytes | None]]:
    """Offset, whether it is a control record, key and value of each record, in the file's order."""
    with FileSource(path) as source:
        for chunk in batch_chunks(source):
            is_control = chunk.table.is_control
            for table in record_tables(chunk):
                assert not table.problems
                for row in range(len(table)):
                    control = bool(is_control[int(table.batch[row])])
                    yield int(table.offset[row]), control, table.key(row), table.value(row)
