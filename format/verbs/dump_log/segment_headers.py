"""The batch headers of the segment beside an index, for comparing the two."""

from __future__ import annotations

import os

from format.errors import InputError
from format.io.source import FileSource
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.log.legacy_messages import open_wrappers
from format.log.walker import batch_chunks


def header_tables(
    path: str | os.PathLike[str], limits: Limits
) -> tuple[list[BatchTable], int | None, InputError | None]:
    """The tables of all batches, the position of the first damage (None for none), and why the file cannot be read.

    Wrapped messages are decompressed, since a wrapper's header does not hold its first offset.
    """
    try:
        with FileSource(path) as source:
            for with_bodies in (False, True):
                tables: list[BatchTable] = []
                damaged_from = None
                for chunk in batch_chunks(source, with_bodies=with_bodies, check_crc=with_bodies, limits=limits):
                    if with_bodies:
                        open_wrappers(chunk, limits=limits)
                    tables.append(chunk.table)
                    if chunk.damage is not None and damaged_from is None:
                        damaged_from = chunk.damage.position
                if not any(table.is_wrapper.any() for table in tables):
                    break
            return tables, damaged_from, None
    except InputError as error:
        return [], None, error
