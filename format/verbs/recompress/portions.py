"""Makes the new batches of a chunk in portions, according to the plan, in any process that has read the chunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, Refused, UnsupportedError
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import batch_location
from format.rewriting.rewriter import Portion
from format.rewriting.written_batches import Decision, NewBatches, copied
from format.verbs.recompress.new_batches import packed, rebuilt, recompressed, rewrapped, unpacked
from format.verbs.recompress.plan import DECISIONS, TOGETHER, PlanTerms, Reason, plan


def portions(
    chunk: BatchChunk, is_kept: NDArray[np.bool_], terms: PlanTerms, limits: Limits, location: Location
) -> Iterator[Portion]:
    """What the kept batches become, in order; a batch that cannot be decompressed is copied, with its error.

    Raises Refused for v0/v1 messages under zstd.
    """
    for reason, rows in plan(chunk.table, is_kept, terms):
        while rows:
            batches, count, error = _new_batches(chunk, reason, rows, terms, limits, location)
            if batches is not None:
                yield Portion(batches)
            if error is not None:
                end = len(rows) if reason in TOGETHER else count + 1
                yield Portion(copied(chunk, rows[count:end]), error, rows[count])
                count = end
            rows = rows[count:]


def _new_batches(
    chunk: BatchChunk, reason: Reason, rows: tuple[int, ...], terms: PlanTerms, limits: Limits, location: Location
) -> tuple[NewBatches | None, int, KafkaLogError | None]:
    """The new batches of the first rows, the number of these rows, and the error of the row after them."""
    first = rows[0]
    decision = DECISIONS[reason][0]
    if decision is Decision.COPIED:
        return copied(chunk, rows), len(rows), None
    magic = int(chunk.table.magic[first])
    if reason is Reason.NEEDS_V2:
        raise Refused(
            f"messages of format v{magic} cannot be compressed with zstd: it exists from v2 on, and no consumer of "
            "that time could read it (KIP-110); convert them with --magic 2, or choose another codec",
            batch_location(location, chunk.table, first),
        )
    if decision is Decision.RECOMPRESSED and magic == 2:
        is_v2 = chunk.table.magic[list(rows)] == 2
        run = rows if is_v2.all() else rows[: int(is_v2.argmin())]
        batches, error = recompressed(chunk, run, terms.target, limits)
        return (batches if len(batches) else None), len(batches), error
    try:
        if reason is Reason.UNPACKED:
            return unpacked(chunk, first, limits), 1, None
        if reason is Reason.PACKED:
            return packed(chunk, rows, terms.target), len(rows), None
        if reason in TOGETHER:
            return rebuilt(chunk, rows, terms.target, limits), len(rows), None
        return rewrapped(chunk, first, terms.target, limits), 1, None
    except (CorruptDataError, UnsupportedError, LimitExceeded) as error:
        return None, 0, error
