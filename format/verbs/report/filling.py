"""Fills the tables of a report that are made in the same way from logs and from the tables of scans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from format import columns
from format.findings import FINDING_CODES, Finding, Severity
from format.layout import CODEC_BITS_NAMES
from format.node.partition import location_of_directory, parse_partition_dir
from format.rows.finding_rows import finding_row
from format.rows.record_rows import Row
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.survey import ReportSurvey, SurveyedPartition
from format.verbs.report.terms import MOST_PARTITIONS, MOST_ROWS, Report
from format.wording import counted, listed, plural, span

#: The most findings of one code that are kept; the table may have room for fewer.
_MOST_OF_CODE = 500
_MOST_DIRECTORIES = 100_000
#: The most codes in the sentence about damage, and the most places for each of them.
_MOST_CODES = 4
_MOST_NAMED = 3
_MOST_RANGES = 2


class KeptFindings(msgspec.Struct):
    """Counts by code and severity, and the findings that are shown, the most severe first.

    ``owners`` has the node, in words, of a directory or of those in it; it is empty for a single node.
    """

    counts: dict[tuple[Severity, str], int] = msgspec.field(default_factory=dict)
    kept: dict[tuple[Severity, str], list[Finding]] = msgspec.field(default_factory=dict)
    places: dict[tuple[Severity, str], set[str]] = msgspec.field(default_factory=dict)
    lost_offsets: int = 0
    owners: dict[str, str] = msgspec.field(default_factory=dict)

    def add(self, found: Finding) -> None:
        """Count a finding; keep it if there are not too many of its code yet."""
        key = found.severity, found.code
        self.counts[key] = self.counts.get(key, 0) + 1
        kept = self.kept.setdefault(key, [])
        if len(kept) < _MOST_OF_CODE:
            kept.append(found)
        places = self.places.setdefault(key, set())
        if len(places) < _MOST_DIRECTORIES:
            places.add(directory_of(found))
        if found.lost_offsets is not None:
            self.lost_offsets += found.lost_offsets[1] - found.lost_offsets[0] + 1

    def has(self, found: Finding) -> bool:
        """Whether there is a finding of this code about the directory of a finding."""
        return directory_of(found) in self.places.get((found.severity, found.code), ())

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def severities(self) -> dict[str, int]:
        """The number of findings of each severity, the most severe first."""
        found = {severity.label: 0 for severity in sorted(Severity, reverse=True)}
        for (severity, _), count in self.counts.items():
            found[severity.label] += count
        return found

    def shown(self) -> Iterator[Finding]:
        """The findings that a report lists, the most severe first, up to MOST_ROWS."""
        left = MOST_ROWS
        for key in self._order():
            yield from self.kept[key][:left]
            left -= min(left, len(self.kept[key]))

    def summary_rows(self) -> Iterator[Row]:
        """Rows of columns.FINDING_SUMMARY: each code once, the most severe first."""
        for severity, code in self._order():
            entry = FINDING_CODES[code]
            key = severity, code
            yield (
                severity.label, code, self.counts[key], len(self.places[key]), entry.meaning, entry.broker,
                entry.next_step, self._places(key),
            )  # fmt: skip

    def damaged_logs(self) -> frozenset[Path]:
        """The directories with findings that are errors, among them every one with a damaged log."""
        grave = [places for (severity, _), places in self.places.items() if severity >= Severity.ERROR]
        return frozenset(Path(place) for places in grave for place in places)

    def sentence(self) -> str | None:
        """The sentence about damage: the most severe codes, from warnings up, and their places; None without any."""
        grave = [key for key in self._order() if key[0] >= Severity.WARNING]
        if not grave:
            return None
        words = [
            f"{severity.label} {code} in {self._places((severity, code))}" for severity, code in grave[:_MOST_CODES]
        ]
        more = len(grave) - _MOST_CODES
        others = f"; and {counted(more, 'more kind')} of findings, below" if more > 0 else ""
        return f"Damage: {'; '.join(words)}{others}."

    def _places(self, key: tuple[Severity, str]) -> str:
        """The first places of a code in words, one for each partition or file, those with losses first."""
        kept = self.kept[key]
        found: dict[str, list[tuple[int, int]]] = {}
        for each in sorted(kept, key=lambda one: one.lost_offsets is None):
            where = each.location
            name = where.path.rpartition("/")[2] if where.topic is None else f"{where.topic}-{where.partition}"
            losses = found.setdefault(name + self._owner_words(each), [])
            if each.lost_offsets is not None:
                losses.append(each.lost_offsets)
        is_whole = self.counts[key] == len(kept)
        shown = [name + _loss_words(losses, is_whole=is_whole) for name, losses in islice(found.items(), _MOST_NAMED)]
        # Not all findings of a frequent code are kept, but all their places are counted.
        more = max(len(found), len(self.places[key])) - len(shown)
        return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")

    def _owner_words(self, found: Finding) -> str:
        directory = directory_of(found)
        owner = self.owners.get(directory) or self.owners.get(directory.rpartition("/")[0])
        return "" if owner is None else f" of {owner}"

    def _order(self) -> list[tuple[Severity, str]]:
        return sorted(self.counts, key=lambda key: (-key[0], key[1]))


def directory_of(found: Finding) -> str:
    """The directory that a finding is about: the partition's, or the one that its file is in."""
    path = found.location.path
    folder, _, name = path.rpartition("/")
    return folder if parse_partition_dir(name) is None else path


def _loss_words(losses: Sequence[tuple[int, int]], *, is_whole: bool) -> str:
    """The lost offsets of one place in brackets; ``is_whole`` says whether these are all of them."""
    if not losses:
        return ""
    ranges = [span(*each) for each in losses[:_MOST_RANGES]]
    if len(losses) > len(ranges):
        more = len(losses) - len(ranges)
        ranges.append(counted(more, "more range") if is_whole else "others")
    is_one = len(losses) == 1 and losses[0][0] == losses[0][1]
    return f" ({'offset' if is_one else 'offsets'} {listed(ranges)} lost)"


class FoundPartition(msgspec.Struct, frozen=True):
    """A partition as ls lists it, its node id, and its facts from the survey."""

    listing: PartitionListing
    node_id: int | None
    seen: SurveyedPartition


def add_partitions(
    report: Report, now_ms: int, partitions: Sequence[FoundPartition], *, has_records: bool = True
) -> None:
    """Add the partitions, damaged ones first, and their topics. ``has_records``: their records were counted."""
    table = report.table(columns.REPORT_PARTITION, MOST_PARTITIONS)
    topics: dict[str, list[FoundPartition]] = {}
    for each in sorted(partitions, key=lambda one: -(one.seen.worst or 0)):
        listing, seen = each.listing, each.seen
        topics.setdefault(listing.topic or listing.path, []).append(each)
        record_count = seen.record_count if has_records else None
        table.add((*listing.row(), each.node_id, record_count, _state(listing, seen, report), seen.finding_count))
    retention = {row["topic"]: row for row in report.table(columns.RETENTION_TOTAL).objects()}
    rows = [_topic_row(name, found, retention.get(name, {}), now_ms, has_records) for name, found in topics.items()]
    size = columns.TOPIC_USAGE.names.index("size_bytes")
    report.table(columns.TOPIC_USAGE).extend(sorted(rows, key=lambda row: (-row[size], row[0])))


def _state(listing: PartitionListing, seen: SurveyedPartition, report: Report) -> str:
    if seen.worst is not None and seen.worst >= Severity.WARNING:
        return seen.worst.label
    if listing.mark is not None:
        return "marked"
    if listing.path in report.differing:
        return "differs"
    batch_count = listing.log_size_bytes if listing.batch_count is None else listing.batch_count
    return "sound" if batch_count else "empty"


def _topic_row(
    name: str, partitions: Sequence[FoundPartition], retention: dict[str, Any], now_ms: int, has_records: bool
) -> Row:
    """A row of columns.TOPIC_USAGE; the columns of retention come from its row for the topic."""
    listings, seen = [each.listing for each in partitions], [each.seen for each in partitions]
    batch_count = sum(each.batch_count or 0 for each in listings)
    codec_bytes = [sum(column) for column in zip(*(each.totals.codec_bytes for each in seen), strict=True)]
    codecs = [f"{codec}:{count}" for codec, count in zip(CODEC_BITS_NAMES, codec_bytes, strict=True) if count]
    latest = max((each.max_timestamp for each in listings if each.max_timestamp is not None), default=None)
    records_of: dict[int | None, int] = {}  # of the fullest replica of each partition
    for each in partitions:
        number = each.listing.partition
        if each.listing.mark is None:
            records_of[number] = max(records_of.get(number, 0), each.seen.record_count)
    largest, skew = _skew(records_of)
    return (
        name,
        len({each.partition for each in listings}),
        len(partitions),
        sum(each.size_bytes or 0 for each in listings),
        sum(each.log_size_bytes or 0 for each in listings),
        sum(each.record_count for each in seen) if has_records else None,
        batch_count,
        sum(each.log_bytes for each in seen) // batch_count if batch_count and has_records else None,
        ",".join(codecs) or None,
        min((each.first_timestamp for each in listings if each.first_timestamp is not None), default=None),
        latest,
        None if latest is None else now_ms - latest,
        largest,
        skew,
        sum(each.finding_count for each in seen),
        retention.get("next_deletable_at"),
        retention.get("deletable_bytes"),
    )


def _skew(records_of: dict[int | None, int]) -> tuple[int | None, float | None]:
    """The partition with most records, and the ratio of its records to the mean."""
    total = sum(records_of.values())
    if len(records_of) < 2 or not total:
        return None, None
    largest = max(records_of, key=lambda number: (records_of[number], -(number or 0)))
    return largest, round(records_of[largest] * len(records_of) / total, 3)


def without_metadata(row: Row) -> Row:
    """A row of columns.GROUP_OFFSET without the metadata of a commit, which is free text of an application."""
    at = columns.GROUP_OFFSET.names.index("metadata")
    return (*row[:at], None, *row[at + 1 :])


def add_histograms(report: Report, survey: ReportSurvey) -> None:
    """Add the sums of batches by time, size and offset, the damaged places and the time line."""
    names = list(survey.topics)
    width = survey.by_time.width_ms
    by_time = report.table(columns.BYTES_BY_TIME, most=len(survey.by_time.sums))
    for (topic, number), (size_bytes, records) in sorted(survey.by_time.sums.items()):
        by_time.add((names[topic], number * width, width, size_bytes, records))
    report.table(columns.BATCH_SIZES).extend(survey.sizes.rows())
    by_offset = report.table(columns.BYTES_BY_OFFSET, most=20_000)
    places = report.table(columns.DAMAGED_PLACE)
    for path, seen in survey.partitions.items():
        where = location_of_directory(path)
        if seen.by_offset is not None:
            by_offset.extend((str(path), where.topic, where.partition, *each) for each in seen.by_offset.ranges())
        places.extend(
            (str(path), where.topic, where.partition, each.code, each.severity.label, each.offset,
             each.last_offset, each.timestamp)
            for each in seen.places
        )  # fmt: skip
    timeline = report.table(columns.TIMELINE_EVENT, most=10_000)
    timeline.extend(survey.timeline.rows())
    timeline.total = survey.timeline.total


def add_findings(report: Report, kept: KeptFindings) -> None:
    """Add the findings, their counts by code, and the sentence about what was read."""
    report.counts["lost_offsets"] = kept.lost_offsets
    report.severities = kept.severities()
    report.table(columns.FINDING_SUMMARY).extend(kept.summary_rows())
    table = report.table(columns.FINDING)
    table.extend(finding_row(each) for each in kept.shown())
    table.total = kept.total
    report.sentences.insert(0, _overview(report))


def _overview(report: Report) -> str:
    """The sentence about what was read, and how many findings there are."""
    counts = report.counts
    found = [f"{count:,} {label}" for label, count in report.severities.items() if count]
    findings = plural("finding") if sum(report.severities.values()) > 1 else "finding"
    words = counted(counts["partitions"], "partition")
    if counts["log_dirs"]:  # none: single partitions, or tables without those of ls
        words += f" in {counted(counts['log_dirs'], 'log directory')}"
    return (
        f"{words}, {counted(counts['segments'], 'segment')}, "
        f"{counted(counts['records'], 'record')}: {', '.join(found) + f' {findings}' if found else 'no findings'}."
    )
