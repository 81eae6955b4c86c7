"""Computes which part of a log the cleaner may clean now, and what stops it.

Source: storage LogCleanerManager.cleanableOffsets, calculateCleanableBytes, maxCompactionDelay and
grabFilthiestCompactedLog.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class CleanerSegment(msgspec.Struct, frozen=True):
    """The facts of a segment for the cleaner's manager; times are ms, ``first_timestamp`` is None if unknown."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    first_timestamp: int | None = None


class CleanerLog(msgspec.Struct, frozen=True):
    """The offsets of a log. ``checkpoint`` is that of the cleaner, None where it has never cleaned the log."""

    checkpoint: int | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int | None
    is_compacted: bool = True


class CleanerLimits(msgspec.Struct, frozen=True):
    """The configs that decide when a log is cleaned."""

    min_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


class Cleanable(msgspec.Struct, frozen=True):
    """The range from the first dirty to the first uncleanable offset, the bytes before, in and after it, and reasons.

    ``blocked_by`` is why the cleaner does not clean the log now, None where it does; ``bound_by`` is what ends the
    range.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    uncleanable_bytes: int
    bound_by: str
    blocked_by: str | None

    @property
    def dirty_ratio(self) -> float:
        """The share of dirty bytes in the clean and dirty ones; uncleanable bytes do not count."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(segments: Sequence[CleanerSegment], log: CleanerLog, limits: CleanerLimits, now_ms: int) -> Cleanable:
    """The cleanable range of a log at a time; ``segments`` by base offset, at least one."""
    first_dirty = _first_dirty_offset(log)
    bounds = [
        (segments[-1].base_offset, "active_segment"),
        (log.last_stable_offset, _stable_bound(log)),
    ]
    if limits.min_compaction_lag_ms > 0:
        bounds += [
            (segment.base_offset, "min_compaction_lag")
            for segment in _not_active_from(segments, first_dirty)
            if segment.largest_timestamp > now_ms - limits.min_compaction_lag_ms
        ][:1]
    bound, bound_by = min(bounds, key=lambda each: each[0])
    first_uncleanable = max(first_dirty, bound)
    edge = next(
        (segment.base_offset for segment in _not_active_from(segments, first_uncleanable)), segments[-1].base_offset
    )
    clean = _bytes_between(segments, -1, first_dirty)
    dirty = _bytes_between(segments, min(first_dirty, edge), edge)
    total = clean + dirty
    ratio = dirty / total if total else 0.0
    if not log.is_compacted:
        blocked = "cleanup_policy"
    elif not dirty:
        blocked = bound_by
    elif _delay_ms(segments, first_dirty, limits, now_ms) > 0 or ratio > limits.min_dirty_ratio:
        blocked = None
    else:
        blocked = "dirty_ratio"
    everything = sum(segment.size_bytes for segment in segments)
    return Cleanable(first_dirty, edge, clean, dirty, everything - total, bound_by, blocked)


def _first_dirty_offset(log: CleanerLog) -> int:
    """The checkpoint, or the log start offset where the checkpoint is missing or outside the log."""
    if log.checkpoint is None or not log.log_start_offset <= log.checkpoint <= log.log_end_offset:
        return log.log_start_offset
    return log.checkpoint


def _stable_bound(log: CleanerLog) -> str:
    is_watermark = log.high_watermark is not None and log.last_stable_offset >= log.high_watermark
    return "high_watermark" if is_watermark else "last_stable_offset"


def _not_active_from(segments: Sequence[CleanerSegment], offset: int) -> Sequence[CleanerSegment]:
    """The segments from the one with an offset on, without the active one (LocalLog.nonActiveLogSegmentsFrom)."""
    if offset > segments[-1].base_offset:
        return ()
    return [segment for segment in _segments_between(segments, offset, None) if segment is not segments[-1]]


def _segments_between(segments: Sequence[CleanerSegment], start: int, end: int | None) -> Sequence[CleanerSegment]:
    """The segments with the offsets from ``start`` to before ``end`` (LogSegments.values)."""
    first = 0
    for number, segment in enumerate(segments):
        if segment.base_offset <= start:
            first = number
    return [segment for segment in segments[first:] if end is None or segment.base_offset < end]


def _bytes_between(segments: Sequence[CleanerSegment], start: int, end: int) -> int:
    return sum(segment.size_bytes for segment in _segments_between(segments, start, end)) if start < end else 0


def _delay_ms(segments: Sequence[CleanerSegment], first_dirty: int, limits: CleanerLimits, now_ms: int) -> int:
    """By how much the oldest dirty segment exceeds max.compaction.lag.ms."""
    times = [each.first_timestamp for each in _not_active_from(segments, first_dirty)]
    known = [each for each in times if each is not None and each > 0]
    until = now_ms - max(limits.max_compaction_lag_ms, 0)
    return max(until - min(known), 0) if known else 0
