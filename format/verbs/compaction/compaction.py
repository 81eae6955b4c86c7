"""compaction: for each log what the cleaner would keep and free, where its checkpoint is, and what stops it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.files import transaction_index
from format.findings import Finding, finding, finding_of
from format.io.session import is_in_bundle
from format.io.source import FileSource, HeadersOnly
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.read_records import known_batches
from format.log.walker import header_chunks
from format.node.partition import Partition, Segment
from format.node.target import Target
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, LogUnit
from format.scan.selected_logs import every_log_of, log_of_segment
from format.scan.whole_units import scan_units
from format.state.cluster_context import ClusterContext, TopicConfigs, named_nodes
from format.state.log_headers import producers_after
from format.verbs.compaction.cleaning import Cleaned, CleanedSegment, CleaningTerms, clean
from format.verbs.retention import (
    ConfiguredLog,
    ConfiguredLogScan,
    configured_logs,
    log_bytes,
    modified_ms,
    read_segment_times,
)
from format.wording import counted


class CleanerSegment(msgspec.Struct, frozen=True):
    """The facts of a segment for the cleaner's manager; times are ms, ``first_timestamp`` is None if unknown."""

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    first_timestamp: int | None = None


class CleanerLog(msgspec.Struct, frozen=True):
    """The offsets of a log. ``checkpoint`` is that of the cleaner, None where it has never cleaned the log."""

    checkpoint: int | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int | None
    is_compacted: bool = True


class CleanerLimits(msgspec.Struct, frozen=True):
    """The configs that decide when a log is cleaned."""

    min_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


class Cleanable(msgspec.Struct, frozen=True):
    """The range from the first dirty to the first uncleanable offset, the bytes before, in and after it, and reasons.

    ``blocked_by`` is why the cleaner does not clean the log now, None where it does; ``bound_by`` is what ends the
    range.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    dirty_bytes: int
    uncleanable_bytes: int
    bound_by: str
    blocked_by: str | None

    @property
    def dirty_ratio(self) -> float:
        """The share of dirty bytes in the clean and dirty ones; uncleanable bytes do not count."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


def cleanable(segments: Sequence[CleanerSegment], log: CleanerLog, limits: CleanerLimits, now_ms: int) -> Cleanable:
    """The cleanable range of a log at a time; ``segments`` by base offset, at least one."""
    first_dirty = log.log_start_offset
    if log.checkpoint is not None and log.log_start_offset <= log.checkpoint <= log.log_end_offset:
        first_dirty = log.checkpoint
    is_watermark = log.high_watermark is not None and log.last_stable_offset >= log.high_watermark
    bounds = [
        (segments[-1].base_offset, "active_segment"),
        (log.last_stable_offset, "high_watermark" if is_watermark else "last_stable_offset"),
    ]
    dirty_segments = _not_active_from(segments, first_dirty)
    if limits.min_compaction_lag_ms > 0:
        youngest = now_ms - limits.min_compaction_lag_ms
        young = [each.base_offset for each in dirty_segments if each.largest_timestamp > youngest]
        bounds += [(offset, "min_compaction_lag") for offset in young[:1]]
    bound, bound_by = min(bounds, key=lambda each: each[0])
    first_uncleanable = max(first_dirty, bound)
    uncleanable = _not_active_from(segments, first_uncleanable)
    edge = uncleanable[0].base_offset if uncleanable else segments[-1].base_offset
    clean = _bytes_between(segments, -1, first_dirty)
    dirty = _bytes_between(segments, min(first_dirty, edge), edge)
    total = clean + dirty
    times = [each.first_timestamp for each in dirty_segments if each.first_timestamp is not None]
    oldest = min((each for each in times if each > 0), default=None)
    is_overdue = oldest is not None and oldest < now_ms - max(limits.max_compaction_lag_ms, 0)
    if not log.is_compacted:
        blocked = "cleanup_policy"
    elif not dirty:
        blocked = bound_by
    elif is_overdue or dirty / total > limits.min_dirty_ratio:
        blocked = None
    else:
        blocked = "dirty_ratio"
    everything = sum(segment.size_bytes for segment in segments)
    return Cleanable(first_dirty, edge, clean, dirty, everything - total, bound_by, blocked)


def _not_active_from(segments: Sequence[CleanerSegment], offset: int) -> Sequence[CleanerSegment]:
    """The segments from the one with an offset on, without the active one (LocalLog.nonActiveLogSegmentsFrom)."""
    return _segments_between(segments, offset, None)[:-1] if offset <= segments[-1].base_offset else ()


def _segments_between(segments: Sequence[CleanerSegment], start: int, end: int | None) -> Sequence[CleanerSegment]:
    """The segments with the offsets from ``start`` to before ``end`` (LogSegments.values)."""
    first = max((number for number, each in enumerate(segments) if each.base_offset <= start), default=0)
    return [segment for segment in segments[first:] if end is None or segment.base_offset < end]


def _bytes_between(segments: Sequence[CleanerSegment], start: int, end: int) -> int:
    return sum(segment.size_bytes for segment in _segments_between(segments, start, end)) if start < end else 0


class KnownProducers(msgspec.Struct, frozen=True):
    """Last data offset (None: its last entry is a marker) and epoch of each producer; the first open offset."""

    last_records: dict[int, tuple[int | None, int]]
    first_open_offset: int | None
    log_end_offset: int


def known_producers(partition: Partition, now_ms: int, expiration_ms: int, limits: Limits) -> KnownProducers:
    """The producers from the newest sound producer snapshot, and the log after it."""
    state, end = producers_after(partition, every_log_of(partition), limits)
    open_transactions = state.open_transactions
    last_records: dict[int, tuple[int | None, int]] = {}
    for producer_id, entry in state.entries.items():
        if producer_id not in open_transactions and now_ms - entry.timestamp >= expiration_ms:
            continue  # the broker forgets it
        last_records[producer_id] = (entry.last_offset if entry.last_offset >= 0 else None, entry.producer_epoch)
    return KnownProducers(last_records, min(open_transactions.values(), default=None), end)


def are_whole(segments: Sequence[CleanedSegment]) -> bool:
    """Whether the logs are in a bundle with their records, as those of Kafka's own topics are."""
    logs = [each.log for each in segments]
    return any(is_in_bundle(each.path) for each in logs) and not any(map(_has_only_headers, logs))


def damage_in(
    segments: Sequence[CleanedSegment], start: int, end: int, limits: Limits
) -> tuple[Finding | None, list[Finding]]:
    """The first place from one offset to another that a cleaner cannot read; without one, what it takes in spite of it.

    Those are batches with a wrong CRC, which the cleaner does not check. Outside a bundle there is neither.
    """
    wrong: list[Finding] = []
    if not any(is_in_bundle(each.log.path) for each in segments):
        return None, wrong
    for segment in segments:
        if not _has_only_headers(segment.log):
            continue
        with FileSource(segment.log.path) as source:
            for headers in header_chunks(source, limits=limits):
                chunk, bundled = known_batches(headers, source), source.headers_only
                if bundled is None:
                    continue
                found = _in_chunk(segment.log, bundled, chunk, start, end) if segment.next_base_offset > start else None
                if found is not None:
                    return found, []
                is_wrong = (bundled.crc_valid(chunk.table.position) == 0) & (chunk.table.base_offset < end)
                for row in np.flatnonzero(is_wrong).tolist():
                    words = "the CRC of the batch does not match its bytes"
                    wrong.append(finding("batch-crc-mismatch", _place(segment.log, chunk, row), words))
    return None, wrong


def _has_only_headers(log: LogUnit) -> bool:
    with FileSource(log.path) as source:
        return source.headers_only is not None


def _in_chunk(log: LogUnit, bundled: HeadersOnly, chunk: BatchChunk, start: int, end: int) -> Finding | None:
    table = chunk.table
    places = table.position
    is_cleaned = (table.last_offset >= start) & (table.base_offset < end)
    is_bad = bundled.has_bad_records(places)
    for row in np.flatnonzero(is_cleaned & (is_bad | (bundled.crc_valid(places) == 0))).tolist():
        if is_bad[row] or bundled.outline(int(places[row])) is None:
            code = "record-invalid" if is_bad[row] else "batch-crc-mismatch"
            return finding(code, _place(log, chunk, row), _WORDS)
    damage = chunk.damage
    after = None if damage is None else damage.after_offset
    if damage is None or (after is not None and after + 1 >= end):
        return None
    if damage.next_base_offset is not None and damage.next_base_offset <= start:
        return None
    return finding(damage.code, log.location.at(damage.position, damage.length), f"{damage.reason}; {_WORDS}")


def _place(log: LogUnit, chunk: BatchChunk, row: int) -> Location:
    table = chunk.table
    return log.location.at(int(table.position[row]), int(table.size_bytes[row]), int(table.base_offset[row]))


_WORDS = "the cleaner stops here: it cannot read the records"
_WRONG_CRC = "; the cleaner checks no CRC, and what it leaves of a batch gets a right one"


_MAP_ENTRY_BYTES = 24
#: Measured on records of 144 bytes: seconds for each batch, byte and byte of compressed batches.
_COST = Cost(batch_s=1e-6, byte_s=13e-9, compressed_byte_s=65e-9)
#: The configs whose sources are shown.
_DECIDING = ("cleanup.policy", "delete.retention.ms", "min.cleanable.dirty.ratio", "min.compaction.lag.ms")

#: Why a log is not cleaned: the cleaner fails at a batch that it cannot read, and gives the log up.
DAMAGED_BATCH = "damaged_batch"
#: What the logs are by the reason why they are not cleaned, in words.
_WAITING = {
    "active_segment": "with nothing to clean before the active segment",
    "cleanup_policy": "not compacted",
    DAMAGED_BATCH: "stopped by damage",
    "dirty_ratio": "not above min.cleanable.dirty.ratio",
    "high_watermark": "bound by the high watermark",
    "last_stable_offset": "bound by an open transaction",
    "min_compaction_lag": "within min.compaction.lag.ms",
}
_MOST_NAMED = 3

Row = tuple[object, ...]


class CompactionTerms(msgspec.Struct, frozen=True):
    """The options: the time to judge at, whether logs that are not compacted are shown, whether to return kept offsets.

    ``reads_records`` False leaves out what a run would keep, for which the records of the dirty part are read, except
    for the partition directories in ``damaged``: there the records show whether damage stops the cleaner. Of the others
    only the log end and the first open transaction of producers are needed: ``known`` are those of partition
    directories that the caller has read.
    """

    now_ms: int
    limits: Limits = DEFAULT_LIMITS
    every_log: bool = False
    with_offsets: bool = False
    reads_records: bool = True
    known: Mapping[Path, KnownProducers] = msgspec.field(default_factory=dict)
    damaged: frozenset[Path] = frozenset()


class LogCompaction(msgspec.Struct):
    """One log: its cleanable range, and the result of a run; ``cleaned`` is None where nothing is dirty.

    ``damage`` is the place that stops the cleaner.
    """

    partition: Partition
    range: Cleanable
    cleaned: Cleaned | None
    cleaner_offset: int | None
    last_stable_offset: int
    configs: TopicConfigs
    damage: Finding | None = None

    @property
    def blocked_by(self) -> str | None:
        if self.cleaned is not None and self.cleaned.damaged is not None:
            return DAMAGED_BATCH
        return self.range.blocked_by

    def gravity(self) -> tuple[bool, bool, int]:
        """A key that sorts logs: those that damage stops first, then those that can be cleaned, the dirtiest first."""
        return self.blocked_by != DAMAGED_BATCH, self.blocked_by is not None, -self.range.dirty_bytes

    def row(self) -> Row:
        found, cleaned = self.range, self.cleaned
        return (
            self.partition.topic,
            self.partition.number,
            self.cleaner_offset,
            found.dirty_bytes,
            found.clean_bytes,
            round(found.dirty_ratio, 4),
            None if cleaned is None else cleaned.kept_bytes,
            None if cleaned is None else cleaned.read_bytes - cleaned.kept_bytes,
            None if cleaned is None else cleaned.tombstone_count,
            None if cleaned is None else cleaned.delete_horizon,
            self.blocked_by,
            found.first_dirty_offset,
            found.first_uncleanable_offset,
            found.bound_by,
            found.uncleanable_bytes,
            self.last_stable_offset,
            None if cleaned is None else cleaned.end_offset,
            None if cleaned is None else cleaned.record_count,
            None if cleaned is None else cleaned.kept_records,
            None if cleaned is None else cleaned.key_count,
            None if cleaned is None else cleaned.is_full,
            None if cleaned is None else cleaned.is_estimate,
            self.configs.sources(_DECIDING),
            str(self.partition.path),
        )


class CompactionScan(msgspec.Struct, ConfiguredLogScan[LogCompaction], frozen=True):
    """Judges logs one by one."""

    cost = _COST

    terms: CompactionTerms

    def judged(self, log: ConfiguredLog, advance: Advance) -> Iterator[LogCompaction | Finding]:
        """Findings about a log, and what the cleaner would do with it; nothing if a closed segment cannot be opened."""
        found: list[Finding] = []
        judged = self._judged(log, found)
        yield from found
        if judged is not None:
            yield judged
        advance(sum(log_bytes(each) for each in log.partition.segments))

    def _judged(self, unit: ConfiguredLog, found: list[Finding]) -> LogCompaction | None:
        terms, partition, configs, offsets = self.terms, unit.partition, unit.configs, unit.offsets
        expiration = _number(configs.of_broker("producer.id.expiration.ms").value, 86_400_000)
        reads_records = terms.reads_records or partition.path in terms.damaged
        producers = None if reads_records else terms.known.get(partition.path)
        if producers is None:
            producers = known_producers(partition, terms.now_ms, int(expiration), terms.limits)
        end = producers.log_end_offset
        high_watermark = end if unit.is_only_replica else offsets.high_watermark
        offsets = replace(offsets, high_watermark=high_watermark)
        stable = offsets.with_transactions(end, producers.first_open_offset).last_stable_offset or 0
        log = CleanerLog(
            offsets.cleaner_offset, offsets.log_start_offset or 0, end, stable, high_watermark, configs.is_compacted
        )
        limits = CleanerLimits(
            _number(configs.get("min.cleanable.dirty.ratio").value, 0.5),
            int(_number(configs.get("min.compaction.lag.ms").value, 0)),
            int(_number(configs.get("max.compaction.lag.ms").value, 2**63 - 1)),
        )
        opened = [self._segment(unit, each, found) for each in partition.segments]
        segments = [each for each in opened if each is not None]
        if len(segments) < len(opened):
            return None
        range_ = cleanable(segments, log, limits, terms.now_ms)
        cleaned = damage = None
        to_clean = _to_clean(partition, range_)
        stopped, wrong = damage_in(to_clean, range_.first_dirty_offset, range_.first_uncleanable_offset, terms.limits)
        if stopped is not None:
            damage = stopped
            range_ = replace(range_, blocked_by=DAMAGED_BATCH)
        elif range_.dirty_bytes and (reads_records or are_whole(to_clean)):
            cleaning = self._cleaning_terms(configs, range_, partition, producers.last_records)
            aborted = _aborted(partition, range_.first_uncleanable_offset, terms.limits, found)
            cleaned = clean(to_clean, replace(cleaning, aborted=aborted))
            wrong = cleaned.wrong_crcs
            if isinstance(cleaned.damaged, Finding):
                damage = cleaned.damaged
            elif cleaned.damaged is not None:
                damage = finding_of(cleaned.damaged.error, partition.location())
        if damage is None and range_.dirty_bytes:
            found += [replace(each, message=f"{each.message}{_WRONG_CRC}") for each in wrong]
        found += [damage] if damage is not None else []
        return LogCompaction(partition, range_, cleaned, offsets.cleaner_offset, stable, configs, damage)

    def _segment(self, unit: ConfiguredLog, segment: Segment, found: list[Finding]) -> CleanerSegment | None:
        log = log_of_segment(unit.partition, segment)
        if log is None:
            return CleanerSegment(segment.base_offset, 0, -1)
        if log.is_last_segment:  # the active segment is not cleaned: its times do not matter
            return CleanerSegment(segment.base_offset, log_bytes(segment), -1)
        keeps_indexes = unit.offsets.keeps_indexes(unit.partition.next_base_offset(segment))
        times, findings = read_segment_times(
            log, self.terms.limits, by_headers=False, with_offset=False, keeps_indexes=keeps_indexes
        )
        found += findings
        if times is None:
            return None
        first_timestamp = _first_timestamp(segment, self.terms.limits)
        return CleanerSegment(segment.base_offset, log_bytes(segment), times.counted_ms, first_timestamp)

    def _cleaning_terms(
        self,
        configs: TopicConfigs,
        range_: Cleanable,
        partition: Partition,
        producers: dict[int, tuple[int | None, int]],
    ) -> CleaningTerms:
        retention = int(_number(configs.get("delete.retention.ms").value, 86_400_000))
        clean_times = [
            _modified_ms(each) for each in partition.segments if each.base_offset < range_.first_dirty_offset
        ]
        buffer = _number(configs.of_broker("log.cleaner.dedupe.buffer.size").value, 134_217_728)
        threads = max(_number(configs.of_broker("log.cleaner.threads").value, 1), 1)
        factor = _number(configs.of_broker("log.cleaner.io.buffer.load.factor").value, 0.9)
        slots = int(min(buffer / threads, 2**31 - 1)) // _MAP_ENTRY_BYTES
        return CleaningTerms(
            now_ms=self.terms.now_ms,
            first_dirty_offset=range_.first_dirty_offset,
            first_uncleanable_offset=range_.first_uncleanable_offset,
            delete_retention_ms=retention,
            legacy_horizon_ms=clean_times[-1] - retention if clean_times else 0,
            most_keys=int(slots * factor),
            producers=producers,
            limits=self.terms.limits,
            with_offsets=self.terms.with_offsets,
        )


class Compaction(msgspec.Struct):
    """One run over some targets, with its totals."""

    context: ClusterContext
    terms: CompactionTerms
    unknown_checkpoints: int = 0
    logs: int = 0
    freed_bytes: int = 0
    ready_count: int = 0
    blocked: dict[str, int] = msgspec.field(default_factory=dict)
    stuck: list[LogCompaction] = msgspec.field(default_factory=list)

    def of_target(
        self, target: Target, *, jobs: int = 1, advance: Advance = no_progress
    ) -> Iterator[Finding | LogCompaction]:
        """The compacted logs at or below a path. Raises InputError for one without partitions."""
        target.require_partitions("the cleaner works on whole logs")
        logs = configured_logs(target, self.context, self.terms.limits, self.takes)
        yield from self.of_logs(logs, jobs=jobs, advance=advance)

    def of_logs(
        self, logs: Iterable[ConfiguredLog | Finding], *, jobs: int = 1, advance: Advance = no_progress
    ) -> Iterator[Finding | LogCompaction]:
        """The results for logs that ``takes`` is true for; findings are passed on."""
        for item in scan_units(CompactionScan(self.terms), logs, jobs=jobs, advance=advance):
            yield item
            if not isinstance(item, Finding):
                self._count(item)

    def takes(self, partition: Partition, configs: TopicConfigs) -> bool:
        """Whether the cleaner takes a log; with ``every_log`` whether it would if the topic were compacted."""
        if partition.mark is not None or partition.topic == CLUSTER_METADATA_TOPIC:
            return False
        return configs.is_compacted or self.terms.every_log

    def _count(self, judged: LogCompaction) -> None:
        self.logs += 1
        self.unknown_checkpoints += judged.cleaner_offset is None
        blocked = judged.blocked_by
        if blocked == DAMAGED_BATCH:
            self.stuck.append(judged)
        if blocked is not None:
            self.blocked[blocked] = self.blocked.get(blocked, 0) + 1
        elif judged.cleaned is not None:
            self.ready_count += 1
            self.freed_bytes += judged.cleaned.read_bytes - judged.cleaned.kept_bytes

    def sentence(self) -> str:
        """How many logs the cleaner would clean now, and why not the others.

        Before that, the logs in which damage stops the cleaner; after it, whether other logs here are compacted, where
        that is not known. Where none is, it says so.
        """
        others = self.context.compacted_words(self.logs)
        if not self.logs:
            return others
        logs = counted(self.logs, "log")
        ready = f"The cleaner would clean none of {logs} now"
        if self.ready_count:
            freed = counted(self.freed_bytes, "byte")
            ready = f"The cleaner would clean {self.ready_count:,} of {logs} now, and free {freed}"
        waits = self.waits()
        judged = f"{self.stuck_words()}{ready}; not cleaned: {waits}." if waits else f"{ready}."
        return f"{judged} {others}".rstrip()

    def waits(self) -> str:
        """How many logs wait for what."""
        blocked = sorted(self.blocked.items())
        return ", ".join(f"{counted(count, 'log')} {_WAITING[reason]}" for reason, count in blocked)

    def stuck_words(self) -> str:
        """The sentences about logs in which damage stops the cleaner, with the place; empty where there is none."""
        if not self.stuck:
            return ""
        words, others = "", [self._others_of(each.partition) for each in self.stuck]
        for each, replicas in zip(self.stuck[:_MOST_NAMED], others, strict=False):
            words += f"Damage stops the cleaner in {each.partition.name}{replicas}: it cannot read "
            is_taken = each.range.blocked_by is None and "delete" in each.configs.policies
            deletes = ", nor deletes of it" if is_taken else ""
            words += f"{_batch_words(each.damage)}, and cleans the log no more{deletes}. "
        more = len(self.stuck) - _MOST_NAMED
        words += f"It stops in {counted(more, 'other log')}, too. " if more > 0 else ""
        if any(others):
            words += "'kafkalog verify' of the log directories of all these nodes says which replica is intact there. "
        return words

    def _others_of(self, partition: Partition) -> str:
        """The other replicas of a partition, in parentheses; empty where none is known."""
        assignment = self.context.assignment_of(partition)
        others = assignment.missing([self.context.node_id_of(partition)])
        if not others:
            return ""
        leader = "no node leads" if assignment.leader is None else f"node {assignment.leader} leads"
        return f" ({leader}, other replicas: {named_nodes(others)})"

    def not_checked(self) -> Iterator[str]:
        """What the answer leaves out."""
        yield from self.context.not_checked()
        yield "whether other logs are dirtier: the cleaner takes the dirtiest first"
        if self.unknown_checkpoints:
            count = self.unknown_checkpoints
            were, them = ("was", "it") if count == 1 else ("were", "them")
            words = f"{were} ever cleaned: no readable cleaner-offset-checkpoint names {them}"
            yield f"whether {counted(count, 'log')} {words}"


def _batch_words(damage: Finding | None) -> str:
    """The batch that cannot be read, as "the batch at offset 120 (00000000000000000100.log, position 200,594)"."""
    if damage is None or damage.location.position is None:
        return "a batch there"
    where = damage.location
    offset = "" if where.offset is None else f" at offset {where.offset}"
    return f"the batch{offset} ({Path(where.path).name}, position {where.position:,})"


def _to_clean(partition: Partition, range_: Cleanable) -> list[CleanedSegment]:
    segments = []
    for segment in partition.segments:
        next_base = partition.next_base_offset(segment)
        log = log_of_segment(partition, segment)
        if log is None or next_base is None or segment.base_offset >= range_.first_uncleanable_offset:
            continue
        segments.append(CleanedSegment(log, segment.base_offset, next_base, _modified_ms(segment)))
    return segments


def _aborted(partition: Partition, end: int, limits: Limits, found: list[Finding]) -> tuple[tuple[int, int, int], ...]:
    """The aborted transactions that begin before an offset, also those in the indexes of later segments."""
    entries: list[tuple[int, int, int]] = []
    for segment in partition.segments:
        if segment.transaction_index is None:
            continue
        try:
            index = transaction_index.read(segment.transaction_index, segment.base_offset, limits)
        except KafkaLogError as error:
            found.append(finding_of(error, partition.location(segment.transaction_index)))
            continue
        columns = (index.first_offsets, index.last_offsets, index.producer_ids)
        entries += [each for each in zip(*(column.tolist() for column in columns), strict=True) if each[0] < end]
    return tuple(entries)


def _first_timestamp(segment: Segment, limits: Limits) -> int | None:
    """The largest timestamp of the first batch, which the cleaner takes for the first timestamp of the segment."""
    if segment.log is None:
        return None
    try:
        with FileSource(segment.log) as source:
            for chunk in header_chunks(source, limits=limits):
                if len(chunk.headers):
                    return int(chunk.headers.max_timestamp[0])
    except KafkaLogError:
        return None  # reading the records reports it
    return None


def _modified_ms(segment: Segment) -> int:
    return 0 if segment.log is None else modified_ms(segment.log)


def _number(text: str, otherwise: float) -> float:
    """A config as a number; any other text counts as the default, since a broker refuses it."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return otherwise
