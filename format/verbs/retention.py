"""retention: why each segment is still there, which record keeps it, and when it is deleted; totals by topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from format.columns import SEGMENT_RETENTION
from format.errors import KafkaLogError
from format.files import time_index
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.log.read_records import record_tables
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import Partition, Segment
from format.node.partition_surroundings import unread_findings
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.drivers import size_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogUnit, Needs
from format.scan.selected_logs import every_log_of, log_of_segment, partitions_to_read
from format.scan.selection import Selection
from format.scan.whole_units import WholeUnits, scan_units
from format.state.cluster_context import ClusterContext, TopicConfigs
from format.state.log_headers import log_chunks
from format.timestamps import FUTURE_MARGIN_MS, iso_time
from format.wording import counted

#: Instead of a time: the segment is never deleted by time.
_NEVER = None
_LAST_TIME = 2**63 - 1
_SNAPSHOTS = "snapshots"
_HIGH_WATERMARK = "high_watermark"
#: The configs whose sources are shown.
_DECIDING = ("cleanup.policy", "retention.bytes", "retention.ms")
#: Seconds for each batch and byte. They are too small to measure on 300 MB: for most segments only the last entry of
#: the time index and one batch are read.
_COST = Cost(batch_s=0.0, byte_s=0.005e-9, compressed_byte_s=0.005e-9)


class SegmentTimes(msgspec.Struct, frozen=True):
    """The times of a segment; ``largest_timestamp`` is -1 where no record has one, and then ``modified_ms`` counts.

    ``end_offset`` is known only where the batch headers were read.
    """

    largest_timestamp: int
    modified_ms: int
    offset: int | None = None
    end_offset: int | None = None

    @property
    def counted_ms(self) -> int:
        """The time from which retention counts."""
        return self.largest_timestamp if self.largest_timestamp >= 0 else self.modified_ms


def read_segment_times(
    log: LogUnit, limits: Limits, *, by_headers: bool, with_offset: bool, keeps_indexes: bool = False
) -> tuple[SegmentTimes | None, list[Finding]]:
    """The times of a segment, None if its log cannot be opened, and findings.

    ``by_headers``: the time index is not complete, as of the last segment of a broker that runs or was killed.
    ``keeps_indexes``: a broker does not build the time index again. Where it has no entry, the file's time counts.
    """
    findings: list[Finding] = []
    modified_ms = size_bytes = 0
    try:
        with FileSource(log.path) as source:
            modified_ms, size_bytes = source.mtime_ns // 1_000_000, source.size_bytes
    except KafkaLogError as error:
        return None, [finding_of(error, log.location)]
    if not size_bytes and by_headers:
        return SegmentTimes(-1, modified_ms), []
    largest: int | None = None
    end_offset: int | None = None
    if not by_headers and log.segment is not None:
        largest = time_index.last_timestamp(log.segment.time_index, log.segment.base_offset)
        if largest is None and keeps_indexes and _has_no_times(log.segment):
            return SegmentTimes(-1, modified_ms), []
    if largest is None:
        largest, end_offset = _header_times(log, limits, findings)
    offset = None
    if with_offset and largest >= 0:
        offset = _offset_of(log, largest, limits)
    return SegmentTimes(largest, modified_ms, offset, end_offset), findings


def _has_no_times(segment: Segment) -> bool:
    """Whether the time index is missing or empty, while the .index is there: without that, a broker builds both."""
    return segment.offset_index is not None and not (segment.time_index and size_of(segment.time_index))


def log_bytes(segment: Segment) -> int:
    """The size of a segment's log; 0 where there is none or it is unknown."""
    return 0 if segment.log is None else size_of(segment.log)


def modified_ms(path: Path) -> int:
    """The modification time of a log in ms; 0 where it is unknown."""
    try:
        return path.lstat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _header_times(log: LogUnit, limits: Limits, findings: list[Finding]) -> tuple[int, int | None]:
    """The largest timestamp and the end offset from the batch headers; adds findings about them."""
    largest, end_offset = -1, None
    for item in log_chunks(log, Needs(Depth.HEADERS, limits=limits)):
        if isinstance(item, Finding):
            findings.append(item)
        elif len(item.chunk.table):
            table = item.chunk.table
            largest = max(largest, int(table.max_timestamp.max()))
            end_offset = table.last_offset_of(len(table) - 1) + 1
    return largest, end_offset


def _offset_of(log: LogUnit, timestamp: int, limits: Limits) -> int | None:
    """The offset of the first record with a timestamp, which the time index leads to; None where it cannot be read."""
    needs = Needs(Depth.RECORDS, Selection(from_timestamp=timestamp), limits, chunk_bytes=MIB)
    try:
        with FileSource(log.path) as source:
            if source.headers_only is not None:
                return source.headers_only.outlined_offset(timestamp)
    except KafkaLogError:
        return None
    for item in log_chunks(log, needs):
        if isinstance(item, Finding):
            continue
        for table in record_tables(item.chunk, which=item.readable, limits=limits):
            rows = np.flatnonzero(table.timestamp == timestamp)
            if len(rows):
                return int(table.offset[rows[0]])
    return None


ResultT = TypeVar("ResultT")


class ConfiguredLog(msgspec.Struct, frozen=True):
    """A log, its configs, and whether it has no other replica by the metadata."""

    partition: Partition
    offsets: PartitionOffsets
    configs: TopicConfigs
    is_only_replica: bool


def configured_logs(
    target: Target, context: ClusterContext, limits: Limits, takes: Callable[[Partition, TopicConfigs], bool]
) -> Iterator[ConfiguredLog | Finding]:
    """The logs at or below a path for which ``takes`` is true, and findings about files that no reader opens."""
    for found in partitions_to_read(target, limits):
        if isinstance(found, Finding):
            yield found
            continue
        partition, checkpoints = found
        yield from unread_findings(partition)
        configs = context.configs_of(partition, checkpoints)
        if partition.segments and takes(partition, configs):
            offsets = offsets_of(partition, checkpoints)
            yield ConfiguredLog(partition, offsets, configs, context.is_only_replica(partition))


class ConfiguredLogScan(WholeUnits[ConfiguredLog | Finding, ResultT | Finding]):
    """The base of scans that judge logs one by one; subclasses define ``cost`` and ``judged``."""

    __slots__ = ()

    def judged(self, log: ConfiguredLog, advance: Advance) -> Iterator[ResultT | Finding]:
        """Findings about a log, and the verb's result for it; calls ``advance`` with the bytes that are done."""
        raise NotImplementedError

    def logs(self, unit: ConfiguredLog | Finding) -> Sequence[LogUnit]:
        """The logs of the segments."""
        return () if isinstance(unit, Finding) else tuple(every_log_of(unit.partition))

    def read(self, unit: ConfiguredLog | Finding, advance: Advance) -> Iterator[ResultT | Finding]:
        """A finding unchanged, or the results for a log."""
        if isinstance(unit, Finding):
            yield unit
        else:
            yield from self.judged(unit, advance)


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
    verdicts = [
        Verdict(deleted_by=by, deletable_at=_end_of(each, log) if by == "time" else now_ms)
        for each, by in zip(segments, deleted, strict=False)
    ]
    rest = segments[len(deleted) :]
    excess = sum(segment.size_bytes for segment in rest) - log.retention_bytes
    has_size = "delete" in log.policies and log.retention_bytes >= 0
    through = 0
    held_by: int | None = None
    at: int | None = 0
    for segment in rest:
        reason, own_at = _reason(segment, log, now_ms)
        # A segment is deleted only after all segments before it.
        at = None if at is None or own_at is None else max(at, own_at)
        through += segment.size_bytes
        if not _is_below_high_watermark(segment, log) and (reason is None or (has_size and through <= excess)):
            reason = _HIGH_WATERMARK  # without it, the next check would delete the segment
        verdicts.append(
            Verdict(
                retained_by="preceding_segment" if reason is None else reason,
                held_by=held_by if reason is None else None,
                deletable_at=at,
                bytes_until_deletable=max(through - excess, 0) if has_size else None,
            )
        )
        if reason is not None and held_by is None:
            held_by = segment.base_offset
    return verdicts


def _deleted(segments: Sequence[SegmentFacts], log: LogFacts, now_ms: int) -> list[str]:
    """The checks that delete the first segments, one for each deleted segment; a broker runs them in this order."""
    checks = ("log_start_offset", "size", "time") if "delete" in log.policies else ("log_start_offset",)
    deleted: list[str] = []
    while True:
        count = len(deleted)
        for check in checks:
            rest = segments[len(deleted) :]
            excess = sum(segment.size_bytes for segment in rest) - log.retention_bytes
            for segment in rest:
                if check == "size":
                    is_breached = log.retention_bytes >= 0 and max(segment.size_bytes, 0) <= excess
                    excess -= segment.size_bytes
                elif check == "time":
                    is_breached = 0 <= log.retention_ms < now_ms - segment.counted_ms
                else:
                    is_breached = _is_below_log_start(segment, log)
                is_empty_last = segment.is_last and segment.size_bytes == 0
                if is_empty_last or not is_breached or not _is_below_high_watermark(segment, log):
                    break
                deleted.append(check)
        if len(deleted) == count:
            return deleted


def _is_below_high_watermark(segment: SegmentFacts, log: LogFacts) -> bool:
    return log.high_watermark is None or segment.upper_offset is None or log.high_watermark >= segment.upper_offset


def _is_below_log_start(segment: SegmentFacts, log: LogFacts) -> bool:
    if segment.is_last or segment.upper_offset is None or log.log_start_offset is None:
        return False
    return segment.upper_offset <= log.log_start_offset


def _end_of(segment: SegmentFacts, log: LogFacts) -> int | None:
    """When the time of a segment is over; None where no clock gets that far."""
    at = segment.counted_ms + log.retention_ms + 1
    return at if at <= _LAST_TIME else _NEVER


def _reason(segment: SegmentFacts, log: LogFacts, now_ms: int) -> tuple[str | None, int | None]:
    """What keeps a segment itself (None: nothing), and when it is deletable by itself (None: never)."""
    has_time = "delete" in log.policies and log.retention_ms >= 0
    at = _end_of(segment, log) if has_time else _NEVER
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
    return "future_timestamp" if segment.counted_ms > now_ms + FUTURE_MARGIN_MS else "time", at


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

    def add(self, size_bytes: int, verdict: Verdict, now_ms: int) -> None:
        """Add a segment, judged at a time."""
        self.segment_count += 1
        self.size_bytes += size_bytes
        if verdict.deleted_by is not None:
            self.deletable_count += 1
            self.deletable_bytes += size_bytes
            return
        reason = verdict.retained_by or ""
        self.retained[reason] = self.retained.get(reason, 0) + size_bytes
        at = verdict.deletable_at
        # What is allowed already waits for the high watermark.
        if at is not None and at > now_ms and (self.next_deletable_at is None or at < self.next_deletable_at):
            self.next_deletable_at = at


class LogRetention(msgspec.Struct, frozen=True):
    """The rows of a log, the size and verdict of each segment, and notes on unknown facts."""

    name: str
    rows: list[Row]
    judged: list[tuple[int, Verdict]]
    knows_watermark: bool
    is_remote: bool
    may_be_cleaned: bool


class RetentionScan(msgspec.Struct, ConfiguredLogScan[LogRetention], frozen=True):
    """Judges logs one by one."""

    cost = _COST

    terms: RetentionTerms

    def judged(self, log: ConfiguredLog, advance: Advance) -> Iterator[LogRetention | Finding]:
        """Findings about a log, and its retention; no retention if one of its segments cannot be opened."""
        partition = log.partition
        times: list[SegmentTimes] = []
        facts: list[SegmentFacts] = []
        for segment in partition.segments:
            found, findings = self._times(log, segment)
            yield from findings
            if found is None:
                return
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
            {"compact", "delete"} <= log.policies and _may_be_cleaned(unit, facts, self.terms.now_ms),
        )

    def _times(self, unit: ConfiguredLog, segment: Segment) -> tuple[SegmentTimes | None, list[Finding]]:
        log = log_of_segment(unit.partition, segment, unit.offsets)
        if log is None:
            return SegmentTimes(-1, 0), []
        terms = self.terms
        known = terms.header_times.get(log.path)
        if known is not None and log.is_last_segment and not terms.with_offsets:
            modified = modified_ms(log.path) if known[0] < 0 or terms.with_rows else 0
            return SegmentTimes(known[0], modified, None, known[1]), []
        return read_segment_times(
            log,
            terms.limits,
            by_headers=log.is_last_segment,
            with_offset=terms.with_offsets,
            keeps_indexes=unit.offsets.keeps_indexes(unit.partition.next_base_offset(segment)),
        )


def _rows(
    unit: ConfiguredLog, log: LogFacts, times: list[SegmentTimes], judged: list[tuple[SegmentFacts, Verdict]]
) -> list[Row]:
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


def _may_be_cleaned(unit: ConfiguredLog, facts: list[SegmentFacts], now_ms: int) -> bool:
    """Whether the cleaner may take a log, by its segments before the last one.

    A cleaner cleans the dirtiest log, and then deletes segments of all logs with both policies, except for those in
    which damage has stopped it since the broker started (storage LogCleaner, LogCleanerManager.deletableLogs).
    """
    cleaned, closed = unit.offsets.cleaner_offset or 0, facts[:-1]
    dirty = [each for each in closed if each.upper_offset is None or each.upper_offset > cleaned]
    size_bytes, dirty_bytes = (sum(each.size_bytes for each in some) for some in (closed, dirty))
    try:
        ratio = float(unit.configs.get("min.cleanable.dirty.ratio").value)
        lag_ms = unit.configs.get("max.compaction.lag.ms").number
    except ValueError:
        return bool(dirty)
    return dirty_bytes > ratio * size_bytes or any(each.counted_ms < now_ms - lag_ms for each in dirty)


_COLUMN = {name: number for number, name in enumerate(SEGMENT_RETENTION.names)}
_OF_FUTURE = (
    "topic", "partition", "segment_base_offset", "largest_timestamp", "largest_timestamp_offset", "deletable_at",
    "config_source", "modified",
)  # fmt: skip
#: What keeps a segment in spite of the topic's configs.
_ODD_REASONS = ("future_timestamp", "high_watermark")


def until_words(deletable_at: int | None, config_source: str) -> str:
    """Until when a future timestamp keeps a segment. A default is only that of Kafka: brokers may have another."""
    if deletable_at is None:
        return "for ever"
    by = " by Kafka's default retention.ms" if "retention.ms=default" in config_source else ""
    at = iso_time(deletable_at)
    return f"until {'after the year 9999' if at.isdigit() else at}{by}"


def is_held_back(row: Row) -> bool:
    """Whether a timestamp in the future or the high watermark keeps a segment of columns.SEGMENT_RETENTION."""
    return row[_COLUMN["retained_by"]] in _ODD_REASONS


class Retention(msgspec.Struct):
    """One run: yields findings and rows of segments, and keeps the totals."""

    context: ClusterContext
    terms: RetentionTerms
    totals: dict[str, TopicTotal] = msgspec.field(default_factory=dict)
    unknown_watermarks: int = 0
    has_remote: bool = False
    future_count: int = 0
    held_count: int = 0
    merged_count: int = 0
    may_stop_count: int = 0  # logs with such segments: damage in them may stop the cleaner
    first_future: Row | None = None

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
        for item in scan_units(RetentionScan(self.terms), logs, jobs=jobs, advance=advance):
            if isinstance(item, Finding):
                yield item
            else:
                self._count(item)
                yield from item.rows

    def _count(self, found: LogRetention) -> None:
        self.unknown_watermarks += not found.knows_watermark
        self.has_remote = self.has_remote or found.is_remote
        for row in found.rows:
            if row[_COLUMN["retained_by"]] == "future_timestamp":
                self.future_count += 1
                self.first_future = self.first_future or row
        total = self.totals.setdefault(found.name, TopicTotal())
        total.partitions += 1
        self.may_stop_count += found.may_be_cleaned and any(each.deleted_by is not None for _, each in found.judged)
        for size_bytes, verdict in found.judged:
            self.held_count += verdict.retained_by == _HIGH_WATERMARK
            self.merged_count += found.may_be_cleaned and verdict.deleted_by in ("size", "time")
            total.add(size_bytes, verdict, self.terms.now_ms)

    def total_rows(self) -> Iterator[tuple[object, ...]]:
        """A row for each topic, those with most to delete first."""
        for topic, total in sorted(self.totals.items(), key=lambda item: (-item[1].deletable_bytes, item[0])):
            yield (
                topic, total.partitions, total.segment_count, total.size_bytes, total.deletable_count,
                total.deletable_bytes, total.next_deletable_at, total.retained,
            )  # fmt: skip

    def sentence(self) -> str:
        """What the next check deletes, and when a segment is deleted after that.

        Before that, the segments that a timestamp after the time of the check keeps, with the first such record. Topics
        whose configs are not known are counted, since Kafka's defaults are taken for them.
        """
        totals = self.totals.values()
        count, size = sum(each.deletable_count for each in totals), sum(each.deletable_bytes for each in totals)
        left = sum(each.segment_count for each in totals) - count
        times = [each.next_deletable_at for each in totals if each.next_deletable_at is not None]
        deleted = f"{counted(count, 'segment')} of {counted(size, 'byte')}" if count else "nothing"
        stay = f"{counted(left, 'segment')} {'stays' if left == 1 else 'stay'}"
        if self.merged_count:
            deleted += f" ({self.merged_count:,} of them unless the cleaner takes their log first: what it merges is "
            deleted += "as old as the newest record in it, and nothing is deleted of a log in which damage stops it)"
        if self.held_count:
            stay = f"{stay} ({counted(self.held_count, 'segment')} until a replica catches up)"
        first = f"At {iso_time(self.terms.now_ms)} the next check deletes {deleted}; {stay}"
        if self.context.unknown_topic_count:
            topics = counted(self.context.unknown_topic_count, "topic")
            first = f"With Kafka's defaults for {topics} whose configs are not known: {first[:1].lower()}{first[1:]}"
        first = f"{self._future_words()}{first}"
        if not left:
            return f"{first}."
        if not times:
            return f"{first}, and retention.ms deletes none of them later."
        return f"{first}, and retention.ms deletes the next at {iso_time(min(times))}."

    def _future_words(self) -> str:
        row = self.first_future
        if row is None:
            return ""
        topic, number, base_offset, timestamp, offset, at, source, modified = (
            row[_COLUMN[name]] for name in _OF_FUTURE
        )
        what = "A timestamp in the future keeps the segment of"
        if self.future_count > 1:
            what = f"Timestamps in the future keep {counted(self.future_count, 'segment')}, the first of them"
        record = "a record" if offset is None else f"the record at offset {offset}"
        if timestamp is None:
            record, timestamp = "no timestamp counts, and its file", modified
        return (
            f"{what} {topic}-{number} from offset {base_offset} on: {record} has {iso_time(timestamp)}, which keeps it "
            f"{until_words(at, source)}. "
        )

    def not_checked(self) -> Iterator[str]:
        """What the answer leaves out."""
        yield from self.context.not_checked()
        if self.unknown_watermarks:
            what = counted(self.unknown_watermarks, "partition")
            them = "it" if self.unknown_watermarks == 1 else "them"
            yield f"high watermarks of {what}: no readable replication-offset-checkpoint names {them}"
        if self.may_stop_count:
            yield f"whether damage in {counted(self.may_stop_count, 'log')} stops the cleaner: kafkalog compaction"
        if self.has_remote:
            yield "which segments are in remote storage: those that are not copied yet stay"


def _number(configs: TopicConfigs, name: str) -> int:
    """A config as a number; any other text counts as no limit, since a broker refuses it."""
    try:
        return configs.get(name).number
    except ValueError:
        return -1
