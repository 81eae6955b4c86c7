"""The batch headers of the segment beside an index, for comparing the two."""

from __future__ import annotations

import os

from format.errors import InputError
from format.io.source import FileSource
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.log.walker import batch_chunks, header_chunks


def header_tables(
    path: str | os.PathLike[str], limits: Limits
) -> tuple[list[BatchTable], int | None, InputError | None]:
    """The tables of all batches, the position of the first damage (None for none), and why the file cannot be read.

    Wrapped messages are decompressed, since a wrapper's header does not hold its first offset.
    """
    try:
        with FileSource(path) as source:
            headers = list(header_chunks(source, limits=limits))
            if any(chunk.headers.is_wrapper.any() for chunk in headers):
                batches = [(chunk.table, chunk.damage) for chunk in batch_chunks(source, limits=limits)]
            else:
                batches = [(chunk.headers.unopened(), chunk.damage) for chunk in headers]
            damaged_from = next((damage.position for _, damage in batches if damage is not None), None)
            return [table for table, _ in batches], damaged_from, None
    except InputError as error:
        return [], None, error
