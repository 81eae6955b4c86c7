"""Fills the tables of a report that are made in the same way from logs and from the tables of scans."""

from __future__ import annotations

from collections.abc import Sequence

from format.columns import (
    BATCH_SIZES,
    BYTES_BY_OFFSET,
    BYTES_BY_TIME,
    DAMAGED_PLACE,
    FINDING,
    FINDING_SUMMARY,
    REPORT_PARTITION,
    TIMELINE_EVENT,
    TOPIC_USAGE,
)
from format.findings import Severity
from format.node.partition import location_of_directory
from format.rows.finding_rows import finding_row
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.kept_findings import KeptFindings
from format.verbs.report.survey import Survey, SurveyedPartition
from format.verbs.report.terms import MOST_PARTITIONS, Report
from format.verbs.report.topics import TopicTotals
from format.wording import counted, plural

#: A partition as ls lists it, its node id, and its facts from the survey.
FoundPartition = tuple[PartitionListing, int | None, SurveyedPartition]


def add_partitions(
    report: Report, now_ms: int, partitions: Sequence[FoundPartition], *, has_records: bool = True
) -> None:
    """Add the partitions, damaged ones first, and their topics. ``has_records``: their records were counted."""
    topics = TopicTotals(now_ms, has_records)
    table = report.table(REPORT_PARTITION, MOST_PARTITIONS)
    for listing, node_id, seen in sorted(partitions, key=_by_damage):
        topics.add(listing, seen)
        record_count = seen.record_count if has_records else None
        table.add((*listing.row(), node_id, record_count, _state(listing, seen, report), seen.finding_count))
    report.table(TOPIC_USAGE).extend(topics.rows(report))


def _by_damage(found: FoundPartition) -> int:
    """The sort key that puts damaged partitions first, the worst before others, and keeps the order of sound ones."""
    worst = found[2].worst
    return 0 if worst is None else -worst


def _state(listing: PartitionListing, seen: SurveyedPartition, report: Report) -> str:
    if seen.worst is not None and seen.worst >= Severity.WARNING:
        return seen.worst.label
    if listing.mark is not None:
        return "marked"
    if listing.path in report.differing:
        return "differs"
    batch_count = listing.log_size_bytes if listing.batch_count is None else listing.batch_count
    return "sound" if batch_count else "empty"


def add_histograms(report: Report, survey: Survey) -> None:
    """Add the sums of batches by time, size and offset, the damaged places and the time line."""
    names = list(survey.topics)
    width = survey.by_time.width_ms
    by_time = report.table(BYTES_BY_TIME, most=len(survey.by_time.sums))
    for (topic, number), (size_bytes, records) in sorted(survey.by_time.sums.items()):
        by_time.add((names[topic], number * width, width, size_bytes, records))
    report.table(BATCH_SIZES).extend(survey.sizes.rows())
    by_offset = report.table(BYTES_BY_OFFSET, most=20_000)
    places = report.table(DAMAGED_PLACE)
    for path, seen in survey.partitions.items():
        where = location_of_directory(path)
        if seen.by_offset is not None:
            by_offset.extend((str(path), where.topic, where.partition, *each) for each in seen.by_offset.ranges())
        places.extend(
            (str(path), where.topic, where.partition, each.code, each.severity.label, each.offset,
             each.last_offset, each.timestamp)
            for each in seen.places
        )  # fmt: skip
    timeline = report.table(TIMELINE_EVENT, most=10_000)
    timeline.extend(survey.timeline.rows())
    timeline.total = survey.timeline.total


def add_findings(report: Report, kept: KeptFindings) -> None:
    """Add the findings, and their counts by code."""
    report.severities = kept.severities()
    report.table(FINDING_SUMMARY).extend(kept.summary_rows())
    table = report.table(FINDING)
    table.extend(finding_row(each) for each in kept.shown())
    table.total = kept.total


def add_overview(report: Report, kept: KeptFindings) -> None:
    """Put the sentences about what was read and what is damaged before all others."""
    damage = kept.sentence()
    report.sentences[:0] = [_overview(report), *([] if damage is None else [damage])]


def _overview(report: Report) -> str:
    """The sentence about what was read, and how many findings there are."""
    counts = report.counts
    found = [f"{count:,} {label}" for label, count in report.severities.items() if count]
    findings = plural("finding") if sum(report.severities.values()) > 1 else "finding"
    words = f"{counted(counts['partitions'], 'partition')} in {counted(counts['log_dirs'], 'log directory')}"
    return (
        f"{words}, {counted(counts['segments'], 'segment')}, "
        f"{counted(counts['records'], 'record')}: {', '.join(found) + f' {findings}' if found else 'no findings'}."
    )
