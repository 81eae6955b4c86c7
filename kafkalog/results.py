"""Findings and matches with the names that JSON lines give them, and the outcome of a look-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from format.errors import CorruptDataError
from format.findings import Finding as _Finding
from format.rows.finding_rows import finding_row
from format.verbs.find.trace import Match as _Match
from format.verbs.find.trace import match_row


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check saw. The attributes are the columns of the row ``finding`` in docs/output.md."""

    code: str
    severity: str
    certainty: str
    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int | None
    position: int | None
    length: int | None
    offset: int | None
    message: str
    expected: Any
    actual: Any
    next_step: str
    lost_offsets: list[int] | None
    caused_by: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Match:
    """The record that a look-up found. The attributes are the columns of the row ``match`` in docs/output.md."""

    topic: str | None
    partition: int | None
    offset: int
    timestamp: int | None
    segment_base_offset: int | None
    position: int | None
    leader_epoch: int | None
    visibility: str | None
    is_control: bool | None
    is_transactional: bool | None
    transaction_state: str | None
    producer_id: int | None
    producer_epoch: int | None
    batch_base_offset: int | None
    crc_valid: bool | None
    is_leader: bool | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """The outcome of a look-up.

    ``match`` is the record, None where there is none; ``reason`` then says why. ``answer`` says of an offset that was
    not found what is known all the same, such as its visibility. ``findings`` are what was wrong on the way, and
    ``bytes_read`` is how much was read.
    """

    match: Match | None
    reason: str
    answer: Match | None
    findings: tuple[Finding, ...]
    bytes_read: int

    def __bool__(self) -> bool:
        return self.match is not None


class DamageFound(CorruptDataError):
    """Damage was met by a reader that was asked to raise it; ``finding`` is what it is."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding), code=finding.code)
        self.finding = finding


def public_finding(found: _Finding) -> Finding:
    """A finding as the API gives it."""
    return Finding(*finding_row(found))


def public_match(found: _Match | None) -> Match | None:
    """A match as the API gives it."""
    return None if found is None else Match(*match_row(found))
