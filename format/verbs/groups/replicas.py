"""The partitions at the paths: the coordinators' logs to read, and where the logs of other topics end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from format import layout
from format.errors import KafkaLogError, NotALogDir
from format.files import partition_metadata
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, TopicPartition
from format.node.offsets import offsets_of
from format.node.partition import Partition, proven_topic_of_file
from format.node.target import Target
from format.scan.protocol import LogUnit
from format.scan.selected_logs import LOG_KINDS, logs_of_partition, partitions_below, selected_logs
from format.scan.selection import EVERYTHING
from format.state.groups import COORDINATOR_TOPICS
from format.verbs.groups.log_ends import log_end_at, log_end_of


class LogBounds(msgspec.Struct, frozen=True):
    """The log end, high watermark and log start of a partition over all replicas at the paths; None where unknown."""

    log_end_offset: int | None = None
    high_watermark: int | None = None
    log_start_offset: int | None = None


class Replicas(msgspec.Struct):
    """The partitions at the paths.

    ``logs`` are the coordinators' logs in the order of their partitions, and findings about what is not read.
    ``left_out`` are pairs of a coordinator's replica that is not read and the replica that is read instead, whose log
    ends at least as late.
    """

    logs: list[LogUnit | Finding] = msgspec.field(default_factory=list)
    left_out: list[tuple[Partition, Partition]] = msgspec.field(default_factory=list)
    _others: dict[TopicPartition, list[tuple[Partition, Checkpoints]]] = msgspec.field(default_factory=dict)
    _topic_names: dict[str, str] | None = None

    @property
    def has_coordinators(self) -> bool:
        return any(isinstance(log, LogUnit) for log in self.logs)

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
                continue
            ends.append(log_end_of(partition, limits))
            offsets = offsets_of(partition, checkpoints)
            marks.append(offsets.high_watermark)
            is_known = layout.LOG_START_OFFSET_CHECKPOINT in checkpoints.by_name
            starts.append(offsets.log_start_offset if is_known else None)
        start = None if None in starts else min((each for each in starts if each is not None), default=None)
        return LogBounds(_largest(ends), _largest(marks), start)

    def topic_names(self) -> dict[str, str]:
        """The names of the topics at the paths by their ids."""
        if self._topic_names is None:
            self._topic_names = {}
            seen: set[str] = set()
            for (topic, _), replicas in self._others.items():
                for partition, _ in replicas:
                    if topic not in seen and partition.metadata is not None:
                        try:
                            self._topic_names[partition_metadata.read(partition.metadata).topic_id] = topic
                        except KafkaLogError:
                            continue
                        seen.add(topic)
        return self._topic_names


def find_replicas(targets: Iterable[Target], limits: Limits = DEFAULT_LIMITS) -> Replicas:
    """The partitions at some paths. Raises InputError for a path that holds no logs."""
    found = Replicas()
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
    for key in sorted(coordinators):
        found.logs.extend(_chosen(coordinators[key], found, limits))
    return found


def _chosen(
    replicas: Sequence[tuple[Partition, Checkpoints]], found: Replicas, limits: Limits
) -> Iterator[LogUnit | Finding]:
    """The logs of the replica with the highest log end; the first of them where several have it."""
    chosen = replicas[0]
    if len(replicas) > 1:
        chosen = max(replicas, key=lambda each: log_end_of(each[0], limits) or -1)
        found.left_out += [(partition, chosen[0]) for partition, _ in replicas if partition is not chosen[0]]
    yield from logs_of_partition(*chosen, EVERYTHING)


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
