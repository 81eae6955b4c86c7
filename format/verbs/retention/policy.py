"""A broker's retention rules: which segments it deletes, and what keeps the others, from facts read before.

Source: storage UnifiedLog.deleteOldSegments and deletableSegments, core LogManager.cleanupLogs. Segments are deleted
from the oldest on; the first that stays keeps all after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

#: Instead of a time: the segment is never deleted by time.
_NEVER = None
_LAST_TIME = 2**63 - 1


class SegmentFacts(msgspec.Struct, frozen=True):
    """A segment: ``counted_ms`` is its largest timestamp, or the file's modification time where it has none.

    ``upper_offset`` is the base offset of the next segment, or the log end offset.
    """

    base_offset: int
    size_bytes: int
    counted_ms: int
    upper_offset: int | None
    is_last: bool


class LogFacts(msgspec.Struct, frozen=True):
    """The facts of a log that limit retention; an unknown ``high_watermark`` is None and limits nothing."""

    policies: frozenset[str]
    retention_ms: int
    retention_bytes: int
    log_start_offset: int | None
    high_watermark: int | None


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on a segment: either ``deleted_by`` or ``retained_by`` is set.

    ``held_by`` is the base offset of an earlier segment that keeps it; ``deletable_at`` None means never by time.
    """

    deleted_by: str | None = None
    retained_by: str | None = None
    held_by: int | None = None
    deletable_at: int | None = None
    bytes_until_deletable: int | None = None


def judge(segments: Sequence[SegmentFacts], log: LogFacts, now_ms: int) -> list[Verdict]:
    """The verdict on each segment, by base offset, after the broker's checks until nothing more is deleted."""
    deleted = _deleted(segments, log, now_ms)
    verdicts = [Verdict(deleted_by=by, deletable_at=_own_time(each, log, by, now_ms))
                for each, by in zip(segments, deleted, strict=False)]  # fmt: skip
    rest = segments[len(deleted) :]
    missing = _bytes_missing(rest, log)
    held_by: int | None = None
    at: int | None = 0
    for number, segment in enumerate(rest):
        reason, own_at = _reason(segment, log, now_ms)
        # A segment is deleted only after all segments before it.
        at = None if at is None or own_at is None else max(at, own_at)
        verdicts.append(
            Verdict(
                retained_by="preceding_segment" if reason is None else reason,
                held_by=held_by if reason is None else None,
                deletable_at=at,
                bytes_until_deletable=None if missing is None else missing[number],
            )
        )
        if reason is not None and held_by is None:
            held_by = segment.base_offset
    return verdicts


def _deleted(segments: Sequence[SegmentFacts], log: LogFacts, now_ms: int) -> list[str]:
    """The checks that delete the first segments, one for each deleted segment."""
    deleted: list[str] = []
    while True:
        count = len(deleted)
        for name, is_breached in _conditions(segments, log, now_ms):
            check = is_breached(segments[len(deleted) :])
            for segment in segments[len(deleted) :]:
                is_empty_last = segment.is_last and segment.size_bytes == 0
                if is_empty_last or not _is_below_high_watermark(segment, log) or not check(segment):
                    break
                deleted.append(name)
        if len(deleted) == count:
            return deleted


Check = Callable[[SegmentFacts], bool]


def _conditions(
    segments: Sequence[SegmentFacts], log: LogFacts, now_ms: int
) -> list[tuple[str, Callable[[Sequence[SegmentFacts]], Check]]]:
    """The checks in the broker's order; each is made anew for the segments that are left."""

    def log_start(rest: Sequence[SegmentFacts]) -> Check:
        return lambda segment: _is_below_log_start(segment, log)

    def size(rest: Sequence[SegmentFacts]) -> Check:
        excess = [sum(segment.size_bytes for segment in rest) - log.retention_bytes]

        def takes(segment: SegmentFacts) -> bool:
            if log.retention_bytes < 0 or excess[0] < segment.size_bytes or excess[0] < 0:
                return False
            excess[0] -= segment.size_bytes
            return True

        return takes

    def time(rest: Sequence[SegmentFacts]) -> Check:
        return lambda segment: log.retention_ms >= 0 and now_ms - segment.counted_ms > log.retention_ms

    by_limits = [("size", size), ("time", time)] if "delete" in log.policies else []
    return [("log_start_offset", log_start), *by_limits]


def _is_below_high_watermark(segment: SegmentFacts, log: LogFacts) -> bool:
    return log.high_watermark is None or segment.upper_offset is None or log.high_watermark >= segment.upper_offset


def _is_below_log_start(segment: SegmentFacts, log: LogFacts) -> bool:
    if segment.is_last or segment.upper_offset is None or log.log_start_offset is None:
        return False
    return segment.upper_offset <= log.log_start_offset


def _own_time(segment: SegmentFacts, log: LogFacts, by: str, now_ms: int) -> int | None:
    return _end_of(segment, log) if by == "time" else now_ms


def _end_of(segment: SegmentFacts, log: LogFacts) -> int | None:
    """When the time of a segment is over; None where no clock gets that far."""
    at = segment.counted_ms + log.retention_ms + 1
    return at if at <= _LAST_TIME else _NEVER


def _reason(segment: SegmentFacts, log: LogFacts, now_ms: int) -> tuple[str | None, int | None]:
    """What keeps a segment itself (None: nothing), and when it is deletable by itself (None: never)."""
    has_time = "delete" in log.policies and log.retention_ms >= 0
    at = _end_of(segment, log) if has_time else _NEVER
    if not _is_below_high_watermark(segment, log):
        return "high_watermark", at
    if segment.is_last and segment.size_bytes == 0:
        return "active", _NEVER
    if _is_below_log_start(segment, log):
        return None, now_ms
    if "delete" not in log.policies:
        return "compact" if "compact" in log.policies else "no_policy", _NEVER
    if not has_time:
        return "size" if log.retention_bytes >= 0 else "unlimited", _NEVER
    if at is not None and at <= now_ms:
        return None, at
    return "future_timestamp" if segment.counted_ms > now_ms else "time", at


def _bytes_missing(rest: Sequence[SegmentFacts], log: LogFacts) -> list[int] | None:
    """How many bytes the log must grow until each segment is deleted by size; None without a limit."""
    if "delete" not in log.policies or log.retention_bytes < 0:
        return None
    excess = sum(segment.size_bytes for segment in rest) - log.retention_bytes
    missing = []
    through = 0
    for segment in rest:
        through += segment.size_bytes
        missing.append(max(through - excess, 0))
    return missing
