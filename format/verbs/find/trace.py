"""The output of a look-up: its steps, and the record that it found or why there is none."""

from __future__ import annotations

from typing import Any

from format.findings import Finding
from format.location import Location
from format.value_class import value_class


@value_class
class TraceStep:
    """One step of a look-up; ``stage`` is segment, time_index, offset_index, scan or match.

    The location's position is a byte in the file at its path, its offset the logical offset that the step found.
    """

    stage: str
    location: Location
    detail: str


@value_class
class Match:
    """The record that a look-up found: the location of its batch, with the record's own offset.

    ``timestamp`` is ms, None in message format 0; ``leader_epoch`` None in formats without one. ``note`` is a remark
    about the match, ``bytes_read`` is how much the look-up read from all files.
    """

    location: Location
    timestamp: int | None
    leader_epoch: int | None
    note: str = ""
    bytes_read: int = 0


@value_class
class NotFound:
    """Why there is no such record, and the nearest record, if any."""

    reason: str
    nearest: Match | None = None
    bytes_read: int = 0


#: What a look-up yields on its way, and what it ends with.
LookupStep = TraceStep | Finding
Result = Match | NotFound


def step_row(step: TraceStep) -> tuple[Any, ...]:
    """A step as a row of columns.STEP."""
    where = step.location
    return step.stage, where.path, where.position, where.offset, step.detail


def match_row(match: Match) -> tuple[Any, ...]:
    """A match as a row of columns.MATCH."""
    where = match.location
    return (
        where.topic,
        where.partition,
        where.offset,
        match.timestamp,
        where.base_offset,
        where.position,
        match.leader_epoch,
    )


def counted(number: int, noun: str) -> str:
    """``1 batch``, ``2 batches``: a number and its noun."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"
