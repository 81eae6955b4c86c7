"""Makes the new batches of logs that are plainly sound, as most are.

Where a chunk is not plainly sound, nothing that was made here of its log is used: the log is scanned as a whole
instead, so that the output never depends on which process made it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import UnreadableFile
from format.io.source import FileSource
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, first_control_records
from format.log.walker import batch_chunks
from format.rewriting.intact_batches import offsets_agree, unreadable_markers
from format.rewriting.rewriter import Rewriter, SourceLog
from format.rewriting.written_batches import NewBatches, joined
from format.sorted_values import distinct_values

#: The size of the new batches that are passed on at once: large enough that sending them to a process costs little.
_PORTION_BYTES = 1024 * 1024


class MadeChunk(msgspec.Struct, frozen=True):
    """A sound chunk, which comes before its new batches: its range in the source, and what the indexes need.

    ``last_base_offset`` is where its last batch starts, and ``end_before_last`` the last offset of the batch before
    that one, None if that is in another chunk. ``transactional`` are its transactional and control batches, ``markers``
    the control records by row of those, and ``plain_producers`` the producers of the others.
    """

    start: int
    end: int
    first_offset: int
    last_offset: int
    last_base_offset: int
    end_before_last: int | None
    record_count: int
    transactional: BatchTable
    markers: dict[int, ControlRecord]
    plain_producers: frozenset[int]

    def may_stop_broker(self, open_producers: Collection[int]) -> bool:
        """Whether a broker may stop at a batch of it; ``open_producers`` have open transactions before it."""
        table = self.transactional
        if next(unreadable_markers(table, self.markers), None) is not None:
            return True
        begun = table.producer_id[~table.is_control].tolist() if self.plain_producers else ()
        return not self.plain_producers.isdisjoint(open_producers) or not self.plain_producers.isdisjoint(begun)


class MadeDigest(msgspec.Struct, frozen=True):
    """The digest of a chunk's content, which comes after the new batches of the chunk."""

    digest: bytes


class NotSound(Exception):
    """A chunk is not plainly sound, or cannot be read."""


def made_chunks(
    chunks: Iterable[BatchChunk], log: SourceLog, rewriter: Rewriter, after_offset: int | None
) -> Iterator[MadeChunk | NewBatches | MadeDigest]:
    """The chunks of a log, or of a range of it, in order, each before its new batches. Raises NotSound, Refused.

    ``after_offset`` is the last offset before them.
    """
    first_possible = log.first_possible(after_offset)
    for chunk in chunks:
        if not _is_sound(chunk, first_possible, log.last_possible):
            raise NotSound
        if rewriter.wants_every_offset and (chunk.table.base_offset[1:] != chunk.table.last_offset[:-1] + 1).any():
            raise NotSound
        made = _made_chunk(chunk, rewriter)
        yield made
        yield from _new_batches(chunk, log, rewriter)
        first_possible = made.last_offset + 1


def made_here(
    source: FileSource, log: SourceLog, rewriter: Rewriter, after_offset: int | None
) -> Iterator[MadeChunk | NewBatches | MadeDigest]:
    """The chunks of a whole log that this process reads, as ``made_chunks`` yields them."""
    chunks = batch_chunks(source, limits=rewriter.terms.limits, chunk_bytes=rewriter.chunk_bytes)
    try:
        yield from made_chunks(chunks, log, rewriter, after_offset)
    except UnreadableFile as error:
        raise NotSound from error


def _is_sound(chunk: BatchChunk, first_possible: int, last_possible: int) -> bool:
    """Whether no batch of the chunk has to be left out."""
    table = chunk.table
    if chunk.buffer is None or not len(table) or not chunk.is_sound_after(first_possible - 1):
        return False
    return table.last_offset_of(len(table) - 1) <= last_possible and bool(offsets_agree(chunk).all())


def _made_chunk(chunk: BatchChunk, rewriter: Rewriter) -> MadeChunk:
    table = chunk.table
    which = transactional_rows(table)
    plain = table.producer_id[~which]
    return MadeChunk(
        int(table.position[0]),
        int(table.end_position[-1]),
        int(table.base_offset[0]),
        table.last_offset_of(len(table) - 1),
        int(table.base_offset[-1]),
        table.last_offset_of(len(table) - 2) if len(table) > 1 else None,
        int(np.maximum(table.record_count, 0).sum()),
        table.rows(which),
        first_control_records(chunk, which, rewriter.terms.limits),
        frozenset(distinct_values(plain[plain >= 0]).tolist()),
    )


def transactional_rows(table: BatchTable) -> NDArray[np.bool_]:
    """The batches that the transaction index is built from."""
    which: NDArray[np.bool_] = table.is_transactional | table.is_control
    return which


def _new_batches(chunk: BatchChunk, log: SourceLog, rewriter: Rewriter) -> Iterator[NewBatches | MadeDigest]:
    gathered: list[NewBatches] = []
    gathered_bytes = 0
    digest = None
    for portion in rewriter.portions(chunk, np.ones(len(chunk.table), bool), log.location):
        if portion.error is not None or portion.batches is None:
            raise NotSound
        digest = portion.digest
        gathered.append(portion.batches)
        gathered_bytes += len(portion.batches.content)
        if gathered_bytes >= _PORTION_BYTES:
            yield joined(gathered)
            gathered, gathered_bytes = [], 0
    if gathered:
        yield joined(gathered)
    if digest is not None:
        yield MadeDigest(digest)
