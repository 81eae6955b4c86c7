"""The results of a run: the segments that were written, and what was found and lost on the way."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import asdict

from format import layout
from format.columns import WRITTEN_SEGMENT
from format.findings import Finding
from format.node.partition import segment_file_name
from format.rows.finding_rows import finding_as_json, finding_from_json
from format.rows.record_rows import Row


class WrittenSegment(msgspec.Struct):
    """One row of columns.WRITTEN_SEGMENT, which documents the fields: what was written for one segment."""

    path: str
    topic: str | None
    partition: int | None
    segment_base_offset: int
    source_bytes: int = 0
    size_bytes: int = 0
    batch_count: int = 0
    copied_count: int = 0
    recompressed_count: int = 0
    rebuilt_count: int = 0
    lost_bytes: int = 0
    index_entries: int = 0
    time_index_entries: int = 0
    aborted_txns: int = 0

    def row(self) -> Row:
        """The row of WRITTEN_SEGMENT."""
        return tuple(getattr(self, name) for name in WRITTEN_SEGMENT.names)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def written_segment(directory: str, topic: str | None, partition: int | None, base_offset: int) -> WrittenSegment:
    """A segment that is about to be written into ``directory`` of the output; its counts are 0."""
    path = f"{directory}/{segment_file_name(base_offset, layout.LOG_SUFFIX)}"
    return WrittenSegment(path, topic, partition, base_offset)


class SegmentResult(msgspec.Struct):
    """The result of one source segment: the segments that it became, and findings, each with whether it is a loss.

    ``last_offset`` is the last offset written so far; ``open_transactions`` are the first offsets of the transactions
    that are open there, by producer id. ``lost_bytes`` counts the bytes of the source that the output lacks.
    """

    last_offset: int | None
    open_transactions: dict[int, int] = msgspec.field(default_factory=dict)
    findings: list[tuple[Finding, bool]] = msgspec.field(default_factory=list)
    segments: list[WrittenSegment] = msgspec.field(default_factory=list)
    lost_bytes: int = 0
    record_count: int = 0
    is_read: bool = True  # False: the file could not be opened, or not read to its end

    def add(self, found: Finding, is_loss: bool) -> None:
        """Add a finding."""
        self.findings.append((found, is_loss))

    def as_json(self) -> dict[str, Any]:
        """The result in JSON values, for the journal."""
        return {
            "last_offset": self.last_offset,
            "open_transactions": self.open_transactions,
            "findings": [{"finding": finding_as_json(found), "is_loss": is_loss} for found, is_loss in self.findings],
            "segments": [each.as_json() for each in self.segments],
            "lost_bytes": self.lost_bytes,
            "record_count": self.record_count,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> SegmentResult:
        """The result from which ``as_json`` made these values."""
        return cls(
            values["last_offset"],
            {int(producer): first for producer, first in values["open_transactions"].items()},
            [(finding_from_json(each["finding"]), each["is_loss"]) for each in values["findings"]],
            [WrittenSegment(**each) for each in values["segments"]],
            values["lost_bytes"],
            values["record_count"],
        )


class RewritingResult(msgspec.Struct):
    """The result of a whole run: the segments written, the findings, and those of them that are losses.

    ``left_out`` describes what was left out on purpose.
    """

    segments: list[WrittenSegment] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    losses: list[Finding] = msgspec.field(default_factory=list)
    left_out: list[str] = msgspec.field(default_factory=list)
    lost_bytes: int = 0
    record_count: int = 0

    def add(self, result: SegmentResult) -> None:
        """Add the result of a segment."""
        self.segments += result.segments
        self.findings += [found for found, _ in result.findings]
        self.losses += [found for found, is_loss in result.findings if is_loss]
        self.lost_bytes += result.lost_bytes
        self.record_count += result.record_count
