"""The partitions at the paths: the coordinators' logs to read, and where the logs of other topics end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec
import numpy as np

from format import layout
from format.errors import KafkaLogError, NotALogDir
from format.files import partition_metadata, time_index
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.layout import CONSUMER_OFFSETS_TOPIC as OFFSETS_TOPIC
from format.layout import coordinator_partition
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BatchTable
from format.log.walker import header_chunks
from format.node.log_dir import Checkpoints, Kind, TopicPartition
from format.node.offsets import offsets_of
from format.node.partition import Partition, Segment, proven_topic_of_file
from format.node.target import Target
from format.scan.drivers import size_of
from format.scan.protocol import LogUnit
from format.scan.read_log import batches_of
from format.scan.selected_logs import LOG_KINDS, logs_of_partition, partitions_below, selected_logs
from format.scan.selection import EVERYTHING, Selection, start_position
from format.state.groups import COORDINATOR_TOPICS
from format.wording import counted, first_of

_LAST = Selection(from_offset=2**63 - 1)


def log_end_of(partition: Partition, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The offset after the last batch of a partition; None where there is no segment, or none that can be read.

    CRCs are not computed: what verify finds damaged counts here as long as its header is plausible.
    """
    try:
        return _log_end(partition, limits)
    except KafkaLogError:
        return None


def _log_end(partition: Partition, limits: Limits) -> int | None:
    last = next((each for each in reversed(partition.segments) if each.log is not None), None)
    if last is None:
        return None
    ends = [int(table.last_offset[-1]) + 1 for table in _headers(last, _LAST, limits) if len(table)]
    return max([last.base_offset, *ends])


def log_end_at(partition: Partition, at_ms: int, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """The log end offset at a time: that of the first batch with a later timestamp. None as for ``log_end_of``.

    A batch is appended as a whole after its last record was made. The clocks of producers are trusted. None also where
    no batch is left of that time: what was there then was deleted, or belonged to an earlier topic of the same name.
    """
    has_earlier = False
    for segment in partition.segments:
        is_closed = partition.next_base_offset(segment) is not None
        last = time_index.last_timestamp(segment.time_index, segment.base_offset) if is_closed else None
        is_earlier = last is not None and 0 <= last <= at_ms
        has_earlier |= is_earlier
        if segment.log is None or is_earlier:
            continue
        try:
            for table in _headers(segment, Selection(from_timestamp=at_ms + 1), limits):
                later = np.flatnonzero(table.max_timestamp > at_ms)
                if len(later):
                    has_earlier |= int(table.position[later[0]]) > 0
                    return int(table.base_offset[later[0]]) if has_earlier else None
                has_earlier |= len(table) > 0
        except KafkaLogError:
            return None
    return log_end_of(partition, limits)


def _headers(segment: Segment, wanted: Selection, limits: Limits) -> Iterator[BatchTable]:
    """The batches of a segment from where its index has the selection, by their headers. Raises KafkaLogError."""
    if segment.log is None:
        return
    with FileSource(segment.log) as source:
        start = start_position(segment, source, wanted)
        for chunk in header_chunks(source, BatchRange(start), limits=limits):
            yield batches_of(chunk, source, limits).table


class LogBounds(NamedTuple):
    """The log end, high watermark and log start of a partition over all replicas at the paths; None where unknown."""

    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None


class CoordinatorReplicas(msgspec.Struct):
    """The partitions at the paths.

    ``logs`` are the coordinators' logs in the order of their partitions, and findings about what is not read.
    ``left_out`` are pairs of a coordinator's replica that is not read and the replica that is read instead, whose log
    ends at least as late. ``unread_ends`` are about the logs whose end ``log_bounds`` could not read, and
    ``has_unknown_past`` says whether a log did not show its end at a time in the past.
    """

    logs: list[LogUnit | Finding] = msgspec.field(default_factory=list)
    left_out: list[tuple[Partition, Partition]] = msgspec.field(default_factory=list)
    unread_ends: list[Finding] = msgspec.field(default_factory=list)
    has_unknown_past: bool = False
    _others: dict[TopicPartition, list[tuple[Partition, Checkpoints]]] = msgspec.field(default_factory=dict)

    @property
    def has_coordinators(self) -> bool:
        return any(isinstance(log, LogUnit) for log in self.logs)

    def coordinator_bytes(self) -> dict[int, int]:
        """The size of the logs of each partition of __consumer_offsets that is read."""
        found: dict[int, int] = {}
        for log in self.logs:
            if isinstance(log, LogUnit) and log.location.topic == OFFSETS_TOPIC and log.location.partition is not None:
                found[log.location.partition] = found.get(log.location.partition, 0) + size_of(log.path)
        return found

    def log_bounds(self, key: TopicPartition, limits: Limits = DEFAULT_LIMITS, at_ms: int | None = None) -> LogBounds:
        """The largest log end and the smallest log start of a partition's replicas, now or at a time in the past.

        A high watermark and a log start of the past are not known. A log start is not known without its checkpoint:
        the head may be in remote storage.
        """
        ends, marks = [], []
        starts: list[int | None] = []
        for partition, checkpoints in self._others.get(key, ()):
            if at_ms is not None:
                ends.append(log_end_at(partition, at_ms, limits))
                self.has_unknown_past |= ends[-1] is None
                continue
            try:
                ends.append(_log_end(partition, limits))
            except KafkaLogError as error:
                self.unread_ends.append(finding_of(error, partition.location()))
            offsets = offsets_of(partition, checkpoints)
            marks.append(offsets.high_watermark)
            is_known = layout.LOG_START_OFFSET_CHECKPOINT in checkpoints.by_name
            starts.append(offsets.log_start_offset if is_known else None)
        start = None if None in starts else min((each for each in starts if each is not None), default=None)
        return LogBounds(_largest(ends), _largest(marks), start)

    def topic_names(self) -> dict[str, str]:
        """The names of the topics at the paths by their ids."""
        found: dict[str, str] = {}
        seen: set[str] = set()
        for (topic, _), replicas in self._others.items():
            for partition, _ in replicas:
                if topic not in seen and partition.metadata is not None:
                    with suppress(KafkaLogError):
                        found[partition_metadata.read(partition.metadata).topic_id] = topic
                        seen.add(topic)
        return found


def find_replicas(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> CoordinatorReplicas:
    """The partitions at some paths. Raises InputError for a path that holds no logs."""
    found = CoordinatorReplicas()
    coordinators: dict[TopicPartition, list[tuple[Partition, Checkpoints]]] = {}
    for target in targets:
        if target.kind not in LOG_KINDS:
            raise NotALogDir(
                f"a file of the kind {target.kind.value} holds no records of groups", Location(str(target.path))
            )
        if target.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            topic = proven_topic_of_file(target.path)
            if topic is not None and topic not in COORDINATOR_TOPICS:
                message = f"a log of the topic {topic} holds no records of groups"
                raise NotALogDir(message, Location(str(target.path)))
            found.logs.extend(selected_logs(target, EVERYTHING))
            continue
        for each in partitions_below(target):
            if isinstance(each, Finding):
                found.logs.append(each)
                continue
            partition, checkpoints = each
            key = partition.key
            if key is None or (partition.mark is not None and target.kind is Kind.LOG_DIR):
                continue
            group = coordinators if key[0] in COORDINATOR_TOPICS else found._others
            group.setdefault(key, []).append((partition, checkpoints))
    for _, replicas in sorted(coordinators.items(), key=lambda item: item[0]):
        chosen = replicas[0]
        if len(replicas) > 1:  # that with the highest log end; the first of them where several have it
            chosen = max(replicas, key=lambda each: log_end_of(each[0], limits) or -1)
            found.left_out += [(partition, chosen[0]) for partition, _ in replicas if partition is not chosen[0]]
        found.logs.extend(logs_of_partition(*chosen, EVERYTHING))
    return found


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


_MOST_NAMED = 5


class Coordinators(msgspec.Struct, frozen=True):
    """The partitions at the paths, and ``count``, how many the topic has; None where no metadata log was found.

    ``unread`` are those of them with a log that cannot be read, or not to its end.
    """

    read: frozenset[int]
    count: int | None = None
    unread: frozenset[int] = frozenset()

    @property
    def missing(self) -> list[int]:
        """The partitions that are not at the paths, as far as their number is known."""
        return [] if self.count is None else [each for each in range(self.count) if each not in self.read]

    def partition_of(self, group: str) -> int | None:
        """The partition that holds a group, None where the number of partitions is not known."""
        return coordinator_partition(group, self.count) if self.count else None

    @property
    def is_lacking(self) -> bool:
        """Whether a partition, or every one, is not at the paths."""
        return bool(self.missing) or not self.read

    def has(self, group: str) -> bool:
        """Whether the partition that holds a group was read, as far as it is known."""
        place = self.partition_of(group)
        return bool(self.read) if place is None else place in self.read

    def unknown(self, groups: Iterable[str]) -> dict[str, str]:
        """The groups that may be in a partition that was not read, each with that partition in words."""
        found = {}
        for group in sorted(groups):
            place = self.partition_of(group)
            if place is not None and place not in self.read:
                found[group] = f"{OFFSETS_TOPIC}-{place}, which is not at the paths"
            elif self.unread and place in (None, *self.unread):
                first = min(self.unread) if place is None else place
                found[group] = f"{OFFSETS_TOPIC}-{first}, which cannot be read as a whole"
        return found

    def words(self) -> str:
        """What was read, such as "partition 0 of the 4 of __consumer_offsets"; empty where nothing is missing."""
        if not self.missing or not self.read:
            return ""
        shown = first_of([str(each) for each in sorted(self.read)], _MOST_NAMED)
        return f"{'partition' if len(self.read) == 1 else 'partitions'} {shown} of the {self.count} of {OFFSETS_TOPIC}"

    def not_read(self) -> str:
        """A note about the groups that the answer cannot have."""
        which = counted(len(self.missing), "partition") if self.missing else "the partitions"
        return f"groups in {which} of {OFFSETS_TOPIC}: not at the paths"
