"""What recompress has written, read back and compared with what it was made from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.io.source import FileSource, Source
from format.limits import Limits
from format.location import Location
from format.rewriting.compare_records import ReadBackMismatch, Rows, compare, paired
from format.rewriting.intact_batches import SegmentScan, salvage_chunks
from format.rewriting.written_segments import Advance, no_progress
from format.verbs.recompress.rolled_segments import OutputRange
from format.verbs.recompress.terms import Recompression


def compare_output(
    source: Source,
    outputs: tuple[OutputRange, ...],
    terms: Recompression,
    location: Location,
    *,
    start: int = 0,
    end: int | None = None,
    scan: SegmentScan | None = None,
    advance: Advance = no_progress,
) -> None:
    """Compare a source from ``start`` to ``end``, or the batches that a scan of all of it kept, with its output.

    Without a scan all its CRCs were right, or there would be no output. Raises ReadBackMismatch, UnreadableFile.
    """
    sides = _source_rows(source, start, end, scan, terms, advance), _output_rows(outputs, terms.limits)
    for each in paired(*sides, location):
        compare(each, terms.limits, location)


def _source_rows(
    source: Source, start: int, end: int | None, scan: SegmentScan | None, terms: Recompression, advance: Advance
) -> Iterator[Rows]:
    """The batches that were taken, read once more; what is not as it was then differs from the output."""
    first = 0
    chunks = salvage_chunks(source, terms.limits, start, end, check_crc=scan is not None, chunk_bytes=terms.chunk_bytes)
    for chunk in chunks:
        rows = np.arange(len(chunk.table))
        yield Rows(chunk, rows if scan is None else np.flatnonzero(scan.is_kept[first : first + len(rows)]))
        first += len(rows)
        advance(chunk.covered_bytes)


def _output_rows(outputs: tuple[OutputRange, ...], limits: Limits) -> Iterator[Rows]:
    for path, start, end in outputs:
        with FileSource(path) as output:
            for chunk in salvage_chunks(output, limits, start, end):
                if chunk.damage is not None or (chunk.table.crc_valid != 1).any():
                    raise ReadBackMismatch("what was written is damaged", Location(str(path)))
                yield Rows(chunk, np.arange(len(chunk.table)))
