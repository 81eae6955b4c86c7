"""The time line: leader epochs, metadata changes, transactions, segment rolls and damage, as rows of one table."""

from __future__ import annotations

import msgspec

from format.findings import Finding, Severity
from format.location import Location
from format.rows.record_rows import Row

KINDS = ("damage", "transaction", "leader_epoch", "metadata", "segment")
#: The most events of each kind that are kept, the latest ones; the others are counted.
_MOST_EVENTS = 1_000


class Timeline(msgspec.Struct):
    """Events by kind; events without a time are left out."""

    events: dict[str, list[Row]] = msgspec.field(default_factory=lambda: {kind: [] for kind in KINDS})
    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(KINDS, 0))

    def _add(
        self, kind: str, timestamp: int | None, where: Location, detail: str, severity: Severity = Severity.INFO
    ) -> None:
        if timestamp is None or timestamp < 0:
            return
        self.counts[kind] += 1
        events = self.events[kind]
        events.append((timestamp, kind, where.topic, where.partition, where.offset, detail, severity.label, where.path))
        if len(events) >= 2 * _MOST_EVENTS:
            events.sort(key=_time)
            del events[:-_MOST_EVENTS]

    def leader_epoch(self, where: Location, timestamp: int, epoch: int) -> None:
        """Add the first batch of a leader epoch."""
        self._add("leader_epoch", timestamp, where, f"leader epoch {epoch} begins")

    def segment(self, where: Location, timestamp: int) -> None:
        """Add the first batch of a segment."""
        place = where.at(offset=where.base_offset)
        self._add("segment", timestamp, place, f"segment {where.base_offset} begins")

    def damage(self, found: Finding, timestamp: int | None) -> None:
        """Add a finding, at the time of the batch at or before it."""
        self._add("damage", timestamp, found.location, f"{found.code}: {found.message}", found.severity)

    def transaction(
        self, where: Location, timestamp: int | None, detail: str, severity: Severity = Severity.INFO
    ) -> None:
        """Add a transaction that is open or was aborted."""
        self._add("transaction", timestamp, where, detail, severity)

    def metadata(self, where: Location, timestamp: int, detail: str) -> None:
        """Add a change of the cluster's metadata."""
        self._add("metadata", timestamp, where, detail)

    def rows(self) -> list[Row]:
        """Rows of columns.TIMELINE_EVENT by time, the latest of each kind."""
        kept = [row for events in self.events.values() for row in sorted(events, key=_time)[-_MOST_EVENTS:]]
        return sorted(kept, key=_time)

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def _time(row: Row) -> tuple[int, str]:
    return row[0], row[1]
