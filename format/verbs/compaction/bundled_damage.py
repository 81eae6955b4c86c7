"""What stops the cleaner in a log of which a bundle has only the headers: the damage that was recorded in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from format.findings import Finding, finding
from format.io.session import is_in_bundle
from format.io.source import FileSource, HeadersOnly
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.read_records import known_batches
from format.log.walker import header_chunks
from format.scan.protocol import LogUnit
from format.verbs.compaction.cleaning import CleanedSegment


def are_whole(segments: Sequence[CleanedSegment]) -> bool:
    """Whether the logs are in a bundle with their records, as those of Kafka's own topics are."""
    logs = [each.log for each in segments]
    return any(is_in_bundle(each.path) for each in logs) and not any(map(_has_only_headers, logs))


def damage_in(segments: Sequence[CleanedSegment], start: int, end: int, limits: Limits) -> Finding | None:
    """The first place from one offset to another that a cleaner cannot read; None outside a bundle.

    The cleaner checks no CRCs: a batch with a wrong one stops it only if its records cannot be read.
    """
    if not any(is_in_bundle(each.log.path) for each in segments):
        return None
    for segment in segments:
        if segment.next_base_offset <= start or not _has_only_headers(segment.log):
            continue
        with FileSource(segment.log.path) as source:
            for headers in header_chunks(source, limits=limits):
                chunk, bundled = known_batches(headers, source), source.headers_only
                if bundled is not None and (found := _in_chunk(segment.log, bundled, chunk, start, end)):
                    return found
    return None


def _has_only_headers(log: LogUnit) -> bool:
    with FileSource(log.path) as source:
        return source.headers_only is not None


def _in_chunk(log: LogUnit, bundled: HeadersOnly, chunk: BatchChunk, start: int, end: int) -> Finding | None:
    table = chunk.table
    places = table.position
    is_cleaned = (table.last_offset >= start) & (table.base_offset < end)
    is_bad = bundled.has_bad_records(places)
    for row in np.flatnonzero(is_cleaned & (is_bad | (bundled.crc_valid(places) == 0))).tolist():
        if is_bad[row] or bundled.outline(int(places[row])) is None:
            where = log.location.at(int(places[row]), int(table.size_bytes[row]), int(table.base_offset[row]))
            return finding("record-invalid" if is_bad[row] else "batch-crc-mismatch", where, _WORDS)
    damage = chunk.damage
    after = None if damage is None else damage.after_offset
    if damage is None or (after is not None and after + 1 >= end):
        return None
    if damage.next_base_offset is not None and damage.next_base_offset <= start:
        return None
    return finding(damage.code, log.location.at(damage.position, damage.length), f"{damage.reason}; {_WORDS}")


_WORDS = "the cleaner stops here: it cannot read the records"
