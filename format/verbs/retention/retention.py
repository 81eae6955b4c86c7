"""retention: why each segment is still there, which record keeps it, and when it is deleted; totals by topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from format.findings import Finding
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import Partition, Segment
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost
from format.scan.selected_logs import log_of_segment
from format.scan.whole_units import scan_units
from format.state.cluster_context import ClusterContext
from format.state.topic_configs import TopicConfigs
from format.timestamps import iso_time
from format.verbs.retention.configured_logs import ConfiguredLog, ConfiguredLogScan, configured_logs
from format.verbs.retention.policy import LogFacts, SegmentFacts, Verdict, judge
from format.verbs.retention.segment_times import SegmentTimes, log_bytes, modified_ms, read_segment_times
from format.wording import counted

_SNAPSHOTS = "snapshots"
#: The configs whose sources are shown.
_DECIDING = ("cleanup.policy", "retention.bytes", "retention.ms")
#: Seconds for each batch and byte. They are too small to measure on 300 MB: for most segments only the last entry of
#: the time index and one batch are read.
_COST = Cost(batch_s=0.0, byte_s=0.005e-9, compressed_byte_s=0.005e-9)


class RetentionTerms(msgspec.Struct, frozen=True):
    """The options: the time to judge at, and whether to look up the records that keep segments.

    ``with_rows`` False leaves out the rows of segments, for callers that need only totals. ``header_times`` are the
    largest timestamp and the end offset of last segments whose headers the caller has read.
    """

    now_ms: int
    limits: Limits = DEFAULT_LIMITS
    with_offsets: bool = True
    with_rows: bool = True
    header_times: Mapping[Path, tuple[int, int]] = msgspec.field(default_factory=dict)


class TopicTotal(msgspec.Struct):
    """Sums over the segments of a topic."""

    partitions: int = 0
    segment_count: int = 0
    size_bytes: int = 0
    deletable_count: int = 0
    deletable_bytes: int = 0
    next_deletable_at: int | None = None
    retained: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, size_bytes: int, verdict: Verdict) -> None:
        """Add a segment."""
        self.segment_count += 1
        self.size_bytes += size_bytes
        if verdict.deleted_by is not None:
            self.deletable_count += 1
            self.deletable_bytes += size_bytes
            return
        reason = verdict.retained_by or ""
        self.retained[reason] = self.retained.get(reason, 0) + size_bytes
        at = verdict.deletable_at
        if at is not None and (self.next_deletable_at is None or at < self.next_deletable_at):
            self.next_deletable_at = at


class LogRetention(msgspec.Struct, frozen=True):
    """The rows of a log, the size and verdict of each segment, and notes on unknown facts."""

    name: str
    rows: list[Row]
    judged: list[tuple[int, Verdict]]
    knows_watermark: bool
    is_remote: bool


class RetentionScan(msgspec.Struct, ConfiguredLogScan[LogRetention], frozen=True):
    """Judges logs one by one."""

    terms: RetentionTerms

    @property
    def cost(self) -> Cost:
        return _COST

    def judged(self, log: ConfiguredLog, advance: Advance) -> Iterator[LogRetention | Finding]:
        """Findings about a log, and its retention."""
        partition = log.partition
        times: list[SegmentTimes] = []
        facts: list[SegmentFacts] = []
        for segment in partition.segments:
            found, findings = self._times(partition, segment)
            yield from findings
            size_bytes, next_base_offset = log_bytes(segment), partition.next_base_offset(segment)
            is_active = next_base_offset is None
            upper_offset = found.end_offset if is_active else next_base_offset
            times.append(found)
            facts.append(SegmentFacts(segment.base_offset, size_bytes, found.counted_ms, upper_offset, is_active))
            advance(size_bytes)
        yield self._verdicts(log, times, facts)

    def _verdicts(self, unit: ConfiguredLog, times: list[SegmentTimes], facts: list[SegmentFacts]) -> LogRetention:
        partition = unit.partition
        log = _log_facts(unit, facts)
        if partition.topic == CLUSTER_METADATA_TOPIC:
            verdicts = [Verdict(retained_by=_SNAPSHOTS)] * len(facts)
        else:
            verdicts = judge(facts, log, self.terms.now_ms)
        return LogRetention(
            partition.topic or partition.path.name,
            _rows(unit, log, times, list(zip(facts, verdicts, strict=True))) if self.terms.with_rows else [],
            [(fact.size_bytes, verdict) for fact, verdict in zip(facts, verdicts, strict=True)],
            log.high_watermark is not None,
            _is_remote(unit.configs),
        )

    def _times(self, partition: Partition, segment: Segment) -> tuple[SegmentTimes, list[Finding]]:
        log = log_of_segment(partition, segment)
        if log is None:
            return SegmentTimes(-1, 0), []
        terms = self.terms
        known = terms.header_times.get(log.path)
        if known is not None and log.is_last_segment and not terms.with_offsets:
            modified = modified_ms(log.path) if known[0] < 0 or terms.with_rows else 0
            return SegmentTimes(known[0], modified, None, known[1]), []
        return read_segment_times(log, terms.limits, by_headers=log.is_last_segment, with_offset=terms.with_offsets)


def _rows(
    unit: ConfiguredLog, log: LogFacts, times: list[SegmentTimes], judged: list[tuple[SegmentFacts, Verdict]]
) -> list[Row]:
    """The rows of the segments of a log."""
    partition = unit.partition
    if partition.topic == CLUSTER_METADATA_TOPIC:
        source = "metadata.max.retention.ms, metadata.max.retention.bytes"
    else:
        source = unit.configs.sources(_DECIDING)
    return [
        (
            partition.topic,
            partition.number,
            segment.base_offset,
            fact.size_bytes,
            found.largest_timestamp if found.largest_timestamp >= 0 else None,
            found.offset,
            verdict.retained_by,
            verdict.deletable_at,
            source,
            verdict.deleted_by,
            verdict.held_by,
            verdict.bytes_until_deletable,
            None if found.largest_timestamp >= 0 else found.modified_ms,
            log.retention_ms,
            log.retention_bytes,
            ",".join(sorted(log.policies)),
            log.log_start_offset,
            log.high_watermark,
            str(segment.log),
        )
        for segment, found, (fact, verdict) in zip(partition.segments, times, judged, strict=True)
    ]


def _log_facts(unit: ConfiguredLog, facts: list[SegmentFacts]) -> LogFacts:
    configs, offsets = unit.configs, unit.offsets
    is_remote = _is_remote(configs)
    retention_ms = _number(configs, "retention.ms")
    retention_bytes = _number(configs, "retention.bytes")
    if is_remote and _number(configs, "local.retention.ms") != -2:
        retention_ms = _number(configs, "local.retention.ms")
    if is_remote and _number(configs, "local.retention.bytes") != -2:
        retention_bytes = _number(configs, "local.retention.bytes")
    high_watermark = offsets.high_watermark
    if unit.is_only_replica:
        high_watermark = facts[-1].upper_offset  # the only replica: everything is replicated
    return LogFacts(configs.policies, retention_ms, retention_bytes, offsets.log_start_offset, high_watermark)


def _is_remote(configs: TopicConfigs) -> bool:
    return configs.get("remote.storage.enable").value == "true"


class Retention(msgspec.Struct):
    """One run: yields findings and rows of segments, and keeps the totals."""

    context: ClusterContext
    terms: RetentionTerms
    totals: dict[str, TopicTotal] = msgspec.field(default_factory=dict)
    unknown_watermarks: int = 0
    has_remote: bool = False

    def of_target(self, target: Target, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[Finding | Row]:
        """The rows of the partitions at or below a path. Raises InputError for one without partitions."""
        target.require_partitions("retention is decided for whole logs")
        logs = configured_logs(target, self.context, self.terms.limits, self.takes)
        yield from self.of_logs(logs, jobs=jobs, advance=advance)

    @staticmethod
    def takes(partition: Partition, configs: TopicConfigs) -> bool:
        """Whether retention applies to a partition directory."""
        return partition.mark in (None, "future")

    def of_logs(
        self, logs: Iterable[ConfiguredLog | Finding], *, jobs: int = 1, advance: Advance = no_progress
    ) -> Iterator[Finding | Row]:
        """The rows of logs that ``takes`` is true for; findings are passed on."""
        for item in scan_units(
            RetentionScan(self.terms),
            logs,
            jobs=jobs,
            advance=advance,
        ):
            if isinstance(item, Finding):
                yield item
            else:
                self._count(item)
                yield from item.rows

    def _count(self, found: LogRetention) -> None:
        self.unknown_watermarks += not found.knows_watermark
        self.has_remote = self.has_remote or found.is_remote
        total = self.totals.setdefault(found.name, TopicTotal())
        total.partitions += 1
        for size_bytes, verdict in found.judged:
            total.add(size_bytes, verdict)

    def total_rows(self) -> Iterator[tuple[object, ...]]:
        """A row for each topic, those with most to delete first."""
        for topic, total in sorted(self.totals.items(), key=lambda item: (-item[1].deletable_bytes, item[0])):
            yield (
                topic, total.partitions, total.segment_count, total.size_bytes, total.deletable_count,
                total.deletable_bytes, total.next_deletable_at, total.retained,
            )  # fmt: skip

    def sentence(self) -> str:
        """What the next check deletes, and when a segment is deleted after that."""
        totals = self.totals.values()
        count, size = sum(each.deletable_count for each in totals), sum(each.deletable_bytes for each in totals)
        left = sum(each.segment_count for each in totals) - count
        times = [each.next_deletable_at for each in totals if each.next_deletable_at is not None]
        deleted = f"{counted(count, 'segment')} of {counted(size, 'byte')}" if count else "nothing"
        stay = f"{counted(left, 'segment')} {'stays' if left == 1 else 'stay'}"
        first = f"At {iso_time(self.terms.now_ms)} the next check deletes {deleted}; {stay}"
        if self.context.unknown_topic_count:
            topics = counted(self.context.unknown_topic_count, "topic")
            first = f"With Kafka's defaults for {topics} whose configs are not known: {first[:1].lower()}{first[1:]}"
        if not times:
            return f"{first}, and retention.ms deletes none of them later."
        return f"{first}, and retention.ms deletes the next at {iso_time(min(times))}."

    def not_checked(self) -> Iterator[str]:
        """What the answer leaves out."""
        yield from self.context.not_checked()
        if self.unknown_watermarks:
            what = counted(self.unknown_watermarks, "partition")
            them = "it" if self.unknown_watermarks == 1 else "them"
            yield f"high watermarks of {what}: no readable replication-offset-checkpoint names {them}"
        if self.has_remote:
            yield "which segments are in remote storage: those that are not copied yet stay"


def _number(configs: TopicConfigs, name: str) -> int:
    """A config as a number; any other text counts as no limit, since a broker refuses it."""
    try:
        return configs.get(name).number
    except ValueError:
        return -1
