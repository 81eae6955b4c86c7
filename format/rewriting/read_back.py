"""Reads written logs back and compares them with their sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from format.io.source import FileSource, Source
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.rewriting.compare_records import ReadBackMismatch, Rows, compare, paired
from format.rewriting.intact_batches import KeptBatches, salvage_chunks
from format.scan.progress import Advance

_COMPARE_BYTES = 1024 * 1024


class OutputRange(NamedTuple):
    """A range of bytes of a written log."""

    path: Path
    start: int
    end: int


class Became(NamedTuple):
    """The bytes of a source log from ``start`` to ``end``, and the ranges of the output that were written for them.

    ``digest`` is that of the written content, where this is not the content of the source.
    """

    start: int
    end: int
    outputs: tuple[OutputRange, ...]
    digest: bytes | None = None


def compare_with_source(
    source: Source,
    became: Sequence[Became],
    kept: KeptBatches | None,
    limits: Limits,
    chunk_bytes: int,
    location: Location,
    advance: Advance,
) -> None:
    """Compare the records of adjoining source ranges, in order, with those of the output.

    ``kept`` are the batches that were kept of the whole log; None where all were, as all their CRCs were right. Raises
    ReadBackMismatch, UnreadableFile.
    """
    if not became:
        return
    if kept is not None:
        chunks = salvage_chunks(source, limits, chunk_bytes=chunk_bytes, offsets=kept.offsets)
    else:
        start, end = became[0].start, became[-1].end
        chunks = salvage_chunks(source, limits, start, end, check_crc=False, chunk_bytes=chunk_bytes)
    is_kept = None if kept is None else kept.which
    outputs = joined_ranges(became)
    for pair in paired(_source_rows(chunks, is_kept, advance), _output_rows(outputs, limits), location):
        compare(pair, limits, location)


def joined_ranges(became: Sequence[Became]) -> list[OutputRange]:
    """The ranges of the output; adjoining ranges of a file become one."""
    joined: list[OutputRange] = []
    for each in (each for one in became for each in one.outputs):
        if joined and (joined[-1].path, joined[-1].end) == (each.path, each.start):
            joined[-1] = joined[-1]._replace(end=each.end)
        else:
            joined.append(each)
    return joined


def _source_rows(chunks: Iterator[BatchChunk], is_kept: NDArray[np.bool_] | None, advance: Advance) -> Iterator[Rows]:
    """The kept batches, read once more; a batch that has changed since then differs from the output."""
    first = 0
    for chunk in chunks:
        rows = np.arange(len(chunk.table))
        yield Rows(chunk, rows if is_kept is None else np.flatnonzero(is_kept[first : first + len(rows)]))
        first += len(rows)
        advance(chunk.covered_bytes)


def _output_rows(outputs: Sequence[OutputRange], limits: Limits) -> Iterator[Rows]:
    for chunk in output_chunks(outputs, limits):
        yield Rows(chunk, np.arange(len(chunk.table)))


def output_chunks(outputs: Sequence[OutputRange], limits: Limits) -> Iterator[BatchChunk]:
    """The chunks of what was written. Raises ReadBackMismatch for a wrong CRC, or bytes that are no batch."""
    for path, start, end in outputs:
        with FileSource(path) as output:
            for chunk in salvage_chunks(output, limits, start, end):
                if chunk.damage is not None or (chunk.table.crc_valid != 1).any():
                    raise ReadBackMismatch("what was written is damaged", Location(str(path)))
                yield chunk


def compare_bytes(source: Source, position: int, outputs: Sequence[OutputRange], advance: Advance) -> None:
    """Compare a source from ``position`` on with its copy, byte for byte. Raises ReadBackMismatch, UnreadableFile."""
    for path, start, end in outputs:
        with FileSource(path) as output:
            while start < end:
                length = min(_COMPARE_BYTES, end - start)
                content = source.read_at(position, length)
                if not content or content != output.read_at(start, length):
                    raise ReadBackMismatch("what was read back is not what was written", Location(str(path)))
                start, position = start + length, position + length
                advance(length)
