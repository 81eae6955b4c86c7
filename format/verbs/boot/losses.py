"""The offsets that a start loses from a log: those between log start offset and high watermark, which can be read."""

from __future__ import annotations

from msgspec.structs import replace

from format.layout import LOG_SUFFIX
from format.verbs.boot.log_dir_state import FoundLog
from format.verbs.boot.steps import Action, Step
from format.wording import counted_plainly


def lost_range(first: int, end: int, log_start: int, high_watermark: int | None) -> tuple[int, int] | None:
    """First and last of the offsets from ``first`` to before ``end`` that lie between log start and high watermark."""
    if high_watermark is None:
        return None
    first, end = max(first, log_start), min(end, high_watermark)
    return (first, end - 1) if end > first else None


def steps_with_losses(steps: list[Step], found: FoundLog) -> list[Step]:
    """The steps of one log with the offsets that they lose, and one step for the log itself."""
    log, log_dir = found.log, found.log_dir
    high_watermark = log_dir.committed_end(found.key)
    log_start = max(log_dir.log_starts.get(found.key, 0), 0)
    bases = [segment.base_offset for segment in log.segments]
    result: list[Step] = []
    end_is_reported = False
    for step in steps:
        if step.action is Action.TRUNCATE and step.path.name.endswith(LOG_SUFFIX) and step.offset is not None:
            later = [base for base in bases if base > step.offset and base > int(step.path.name.partition(".")[0])]
            end = min(later) if later else 2**63
            lost = lost_range(step.offset, end, log_start, high_watermark)
            end_is_reported |= not later
            reason = step.reason
            if high_watermark is None:
                reason += "; no high watermark is known, so it is not known whether this was committed"
            elif lost is None:
                reason += f"; nothing below the high watermark {high_watermark} is lost"
            step = replace(step, lost_offsets=lost, reason=reason, may_lose=high_watermark is None)
        result.append(step)
    if log.is_cleared and high_watermark is not None and log_start > high_watermark:
        return [*result, _cleared_step(found, steps, log_start, high_watermark)]
    return [*result, _log_step(found, high_watermark, None if end_is_reported else log_start)]


def _cleared_step(found: FoundLog, steps: list[Step], log_start: int, high_watermark: int) -> Step:
    """The step of a log that the broker deletes for a log start offset that it cannot have had."""
    deleted = [step.offset for step in steps if step.action is Action.DELETE and step.path.name.endswith(LOG_SUFFIX)]
    first = min((offset for offset in deleted if offset is not None), default=log_start)
    reason = (
        f"the log start offset {log_start} of the checkpoint is past the high watermark {high_watermark}: the broker "
        "deletes all segments, and the log starts again there"
    )
    return Step(
        Action.KEEP,
        found.path,
        *found.key,
        reason=reason,
        kafka_class="LogLoader",
        lost_offsets=lost_range(first, high_watermark, first, high_watermark),
        log_start_offset=found.log.log_start,
        log_end_offset=found.log.log_end,
    )


def _log_step(found: FoundLog, high_watermark: int | None, log_start: int | None) -> Step:
    """The step of the log itself: where it starts and ends, and what was lost before this start."""
    log = found.log
    lost = None if log_start is None else lost_range(log.log_end, 2**63, log_start, high_watermark)
    reason = "the log is kept as it is"
    if log.is_cleared:
        reason = "the log is emptied and starts again at its log start offset"
    elif any(step.action is not Action.KEEP for step in found.files.steps):
        reason = "the log is served after these changes"
    starts = found.log_dir.log_starts
    checkpointed = max(starts.get(found.key, 0), 0)
    if lost is None and found.key in starts and found.log_dir.clean and checkpointed < log.log_start:
        lost = lost_range(checkpointed, log.log_start, checkpointed, high_watermark)
        reason = (
            f"the log starts at {log.log_start}, past the log start offset {checkpointed} of the clean stop, and the "
            "topic keeps nothing in remote storage: its first segments are gone"
        )
    elif lost is not None:
        reason = f"the log ends at {log.log_end}, below its high watermark {high_watermark}; it goes on from there"
    if not log.segments:
        return Step(Action.KEEP, found.path, *found.key, reason="the log is recovered", kafka_class="UnifiedLog")
    active = log.segments[-1]
    end = active.end()
    behind = active.size_bytes - end.position
    if behind > 0:
        what = "after its last batch" if end.has_batches else "that the broker does not see"
        stay = (
            "stays, and the next batch is written after it"
            if behind == 1
            else "stay, and the next batch is written after them"
        )
        reason += f"; {counted_plainly(behind, 'byte')} {what} {stay}"
    return Step(
        Action.KEEP,
        found.path,
        *found.key,
        position=end.position if behind > 0 else None,
        bytes=behind if behind > 0 else None,
        reason=reason,
        kafka_class="UnifiedLog",
        lost_offsets=lost,
        log_start_offset=log.log_start,
        log_end_offset=log.log_end,
    )
