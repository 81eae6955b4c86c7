"""Totals of topics over their partitions: size, codecs, age and skew."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from format.columns import RETENTION_TOTAL
from format.layout import CODEC_BITS_NAMES
from format.rows.record_rows import Row
from format.state.totals import LogTotals
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.survey import SurveyedPartition
from format.verbs.report.terms import Report


class _Topic(msgspec.Struct):
    """The sums over the partitions of one topic."""

    numbers: set[int | None] = msgspec.field(default_factory=set)
    replica_count: int = 0
    size_bytes: int = 0
    log_size_bytes: int = 0
    record_count: int = 0
    batch_count: int = 0
    batch_bytes: int = 0
    finding_count: int = 0
    totals: LogTotals = msgspec.field(default_factory=LogTotals)
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    records_of: dict[int | None, int] = msgspec.field(default_factory=dict)  # of the fullest replica of each partition


class TopicTotals(msgspec.Struct):
    """The topics of a report, by name."""

    now_ms: int
    has_records: bool = True  # the records were counted
    topics: dict[str, _Topic] = msgspec.field(default_factory=dict)

    def add(self, listing: PartitionListing, seen: SurveyedPartition) -> None:
        """Add a partition to its topic."""
        found = self.topics.setdefault(listing.topic or listing.path, _Topic())
        found.numbers.add(listing.partition)
        found.replica_count += 1
        found.size_bytes += listing.size_bytes or 0
        found.log_size_bytes += listing.log_size_bytes or 0
        found.record_count += seen.record_count
        found.batch_bytes += seen.log_bytes
        found.finding_count += seen.finding_count
        found.totals.merge(seen.totals)
        found.batch_count += listing.batch_count or 0
        first, latest = listing.first_timestamp, listing.max_timestamp
        found.first_timestamp = min((each for each in (found.first_timestamp, first) if each is not None), default=None)
        found.max_timestamp = max((each for each in (found.max_timestamp, latest) if each is not None), default=None)
        if listing.mark is None:
            records = found.records_of.get(listing.partition, 0)
            found.records_of[listing.partition] = max(records, seen.record_count)

    def rows(self, report: Report) -> Iterator[Row]:
        """Rows of columns.TOPIC_USAGE, the largest first; the columns of retention come from the report."""
        retention = {row["topic"]: row for row in report.table(RETENTION_TOTAL).objects()}
        for name, each in sorted(self.topics.items(), key=lambda item: (-item[1].size_bytes, item[0])):
            latest = each.max_timestamp
            largest, skew = _skew(each.records_of)
            waits = retention.get(name, {})
            yield (
                name,
                len(each.numbers),
                each.replica_count,
                each.size_bytes,
                each.log_size_bytes,
                each.record_count if self.has_records else None,
                each.batch_count,
                each.batch_bytes // each.batch_count if each.batch_count and self.has_records else None,
                _codecs(each.totals),
                each.first_timestamp,
                latest,
                None if latest is None else self.now_ms - latest,
                largest,
                skew,
                each.finding_count,
                waits.get("next_deletable_at"),
                waits.get("deletable_bytes"),
            )


def _codecs(totals: LogTotals) -> str | None:
    pairs = zip(CODEC_BITS_NAMES, totals.codec_bytes, strict=True)
    return ",".join(f"{name}:{size_bytes}" for name, size_bytes in pairs if size_bytes) or None


def _skew(records_of: dict[int | None, int]) -> tuple[int | None, float | None]:
    """The partition with most records, and the ratio of its records to the mean."""
    total = sum(records_of.values())
    if len(records_of) < 2 or not total:
        return None, None
    largest = max(records_of, key=lambda number: (records_of[number], -(number or 0)))
    return largest, round(records_of[largest] * len(records_of) / total, 3)
