"""groups: read the coordinators' logs into the state of all groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from format.findings import Finding, finding_of
from format.internal_topics.group_replay import REPLAY_CODES, GroupChanges, GroupReplay
from format.internal_topics.record_check import InternalRecordCheck
from format.layout import CONSUMER_OFFSETS_TOPIC as OFFSETS_TOPIC
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.read_records import record_tables
from format.node.log_dir import Kind, TopicPartition
from format.node.target import Target, require_one_cluster
from format.scan.drivers import scan_logs, size_of, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import selected_chunks
from format.scan.selection import EVERYTHING
from format.state.groups import COORDINATOR_TOPICS, VALUE, GroupRecords, Outcome, read_groups
from format.verbs.groups.group_list import GroupList, GroupSelection, GroupTerms, Read, text_of
from format.verbs.groups.replicas import Coordinators, find_replicas
from format.wording import counted

if TYPE_CHECKING:
    from format.state.cluster_context import ClusterContext


# Measured: seconds for each batch, each byte, and each byte of compressed batches.
_COST = Cost(batch_s=1e-6, byte_s=4.5e-9, compressed_byte_s=10e-9)


class LogRecords(msgspec.Struct, frozen=True):
    """One record table of a coordinator's log, reduced to the state of groups."""

    log: LogUnit
    records: GroupRecords


class GroupsScan(msgspec.Struct, frozen=True):
    """groups as a scan: the parts are reduced record tables, which the caller adds to a state across logs.

    ``until`` leaves out records with a later timestamp; ``with_history`` keeps every commit.
    """

    until: int | None = None
    with_history: bool = False
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits, cost=_COST)

    def parts(self, opened: OpenedRange) -> Iterator[GroupRecords | GroupChanges | Finding]:
        """The reduced record tables of a range, and findings about damage."""
        place = opened.log.location
        topic = place.topic if place.topic in COORDINATOR_TOPICS else next(iter(COORDINATOR_TOPICS))
        check = InternalRecordCheck(topic, place)
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
                continue
            for table in record_tables(item.chunk, which=item.readable, limits=self.limits, location=place):
                for problem in table.problems:
                    yield finding_of(problem.error)
                at_time = table if self.until is None else table.rows(table.timestamp <= self.until)
                found = check.summary(at_time).findings
                yield from found
                if self.until is None and place.topic == OFFSETS_TOPIC:
                    changes = GroupChanges()
                    changes.take(table, found)
                    if changes.changes or changes.ends_at is not None:
                        yield changes
                records = read_groups(table, topic, until=self.until, with_history=self.with_history)
                if records is not None:
                    yield records

    def fold(
        self, log: LogUnit, parts: LogParts[GroupRecords | GroupChanges | Finding]
    ) -> Iterator[LogRecords | tuple[LogUnit, GroupChanges] | Finding]:
        """The parts as they come, with their log."""
        for part in with_last_finding(log, parts):
            if isinstance(part, GroupRecords):
                yield LogRecords(log, part)
            else:
                yield part if isinstance(part, Finding) else (log, part)


class GroupsReading:
    """The coordinators' logs at some paths while they are read; afterwards the list of groups."""

    def __init__(self, targets: Sequence[Target], terms: GroupTerms, context: ClusterContext | None = None) -> None:
        """Find the logs. Raises InputError for a path that holds none, and for paths of two clusters.

        ``context``: that of the same paths, if it was read before.
        """
        self._terms = terms
        self._context = context
        self._targets = targets
        require_one_cluster(targets, terms.limits)
        self.replicas = find_replicas(targets, terms.limits)
        self._logs = [log for log in self.replicas.logs if isinstance(log, LogUnit)]
        self._read = Read(terms, self.replicas)
        self._unread: set[str] = set()
        self._replays: dict[TopicPartition, GroupReplay] = {}
        self._from_start = {_partition_of(log.location) for log in self._logs if not log.location.base_offset}

    def topics(self) -> set[str]:
        """The topics of the partitions at the paths."""
        return {each.topic for target in self._targets for each in target.partitions() if each.topic is not None}

    def read(self, *, jobs: int = 1, advance: Advance = no_progress) -> Iterator[LogRecords | Finding]:
        """Read everything; yields findings, and the records of each table for callers that need their history."""
        terms = self._terms
        scan = GroupsScan(terms.until, terms.with_history, terms.limits)
        read = self._read
        for item in scan_logs(scan, self.replicas.logs, jobs=jobs, advance=advance):
            if isinstance(item, LogRecords):
                partition = read.partitions.setdefault(_partition_of(item.log.location), len(read.partitions))
                read.states.take(item.records, partition, read.paths.setdefault(str(item.log.path), len(read.paths)))
                yield item
            elif isinstance(item, Finding):
                self._note_unread(item)
                yield item
            else:
                log, changes = item
                yield from self._replay_of(log.location).feed(changes, log.location)

    def _replay_of(self, place: Location) -> GroupReplay:
        """The replay of a partition; one whose first log is not there from offset 0 judges nothing."""
        key = _partition_of(place)
        replay = self._replays.get(key)
        if replay is None:
            replay = self._replays[key] = GroupReplay()
            if key not in self._from_start:
                replay.stop()
        return replay

    def _note_unread(self, found: Finding) -> None:
        """What cannot be read of a log is missing from the replay of its partition."""
        if found.location.partition is not None and found.code not in REPLAY_CODES:
            self._replay_of(found.location).stop()
        is_part_lost = found.code == "file-unreadable" or found.lost_offsets is not None
        if is_part_lost and found.location.topic in (None, *COORDINATOR_TOPICS):
            self._unread.add(found.location.path)

    @property
    def unread_count(self) -> int:
        """How many coordinators' logs could not be read to their end: in a bundle without names, all of them."""
        return len(self._unread)

    @property
    def size_bytes(self) -> int:
        """The bytes to read, for a progress bar."""
        return sum(size_of(log.path) for log in self._logs)

    @cached_property
    def coordinators(self) -> Coordinators:
        """The partitions of __consumer_offsets after they were read, and their number from the metadata log."""
        from format.state.cluster_context import ContextTerms, read_context  # it imports much, and few runs need it

        places = [log.location for log in self._logs if log.location.topic == OFFSETS_TOPIC]
        read = frozenset(each.partition for each in places if each.partition is not None)
        unread = frozenset(each.partition for each in places if each.path in self._unread and each.partition in read)
        image = (self._context or read_context(self._targets, ContextTerms(limits=self._terms.limits))).image
        count = None if image is None else image.partition_count(OFFSETS_TOPIC)
        return Coordinators(read, count or None, unread)

    def not_checked(self, found: GroupList) -> list[str]:
        """Notes about what is missing from the answer."""
        words = []
        # All groups of log directories are asked for, rather than those of chosen partitions.
        if not self._logs:
            words.append("no readable log of __consumer_offsets or __share_group_state is at the paths")
        elif any(target.kind is Kind.LOG_DIR for target in self._targets) and self.coordinators.is_lacking:
            words.append(self.coordinators.not_read())
        if self.replicas.left_out:
            (left, chosen), count = self.replicas.left_out[0], len(self.replicas.left_out)
            words.append(
                f"{counted(count, 'replica')} of coordinator partitions that end no later than "
                f"the one that was read, such as {left.path} beside {chosen.path}"
            )
        if found.unknown_count:
            why = "not at the paths, or not readable" if self.replicas.unread_ends else "not at the paths"
            if self.replicas.has_unknown_past:
                why = "not at the paths, not readable, without a record up to that time, or committed past the log end"
            words.append(f"the lag on {counted(found.unknown_count, 'committed partition')}: {why}")
        return words

    def groups(self) -> GroupList:
        """The groups after everything was read."""
        self._read.states.complete()
        return GroupList(self._read, lambda group: self.coordinators.has(group))


def _partition_of(place: Location) -> TopicPartition:
    return place.topic or OFFSETS_TOPIC, place.partition or 0


_Row = tuple[Any, ...]


class CommitHistory:
    """Rows of ``columns.GROUP_COMMIT`` in the order in which the commits took effect.

    A commit in a transaction comes where its end marker is read, with the outcome, or at the end if there is none.
    """

    def __init__(self, narrowing: GroupSelection) -> None:
        self._narrowing = narrowing
        self._open: dict[tuple[TopicPartition, int], list[_Row]] = {}

    def rows_of(self, item: LogRecords) -> Iterator[_Row]:
        """The rows of the next record table of a log."""
        records, narrowing, at = item.records, self._narrowing, VALUE
        partition = _partition_of(item.log.location)
        for producer_id, is_commit in records.ended:
            for row in self._open.pop((partition, producer_id), ()):
                yield (*row[:7], "committed" if is_commit else "aborted", *row[8:])
        if records.history is None:
            return
        names, keys = [text_of(name) for name in records.names], records.keys.tolist()
        for number, value in enumerate(records.history.columns.tolist()):
            group_name, topic_name, committed = keys[value[at["key"]]]
            group, topic = names[group_name], names[topic_name]
            is_wanted = not narrowing.groups or group in narrowing.groups
            if not is_wanted or (narrowing.topics and topic not in narrowing.topics):
                continue
            is_tombstone = bool(value[at["is_tombstone"]])
            outcome = Outcome(value[at["outcome"]])
            epoch, producer_id = value[at["detail"]], value[at["producer_id"]]
            row = (
                group,
                topic,
                committed & 0xFFFFFFFF,
                None if is_tombstone else value[at["number"]],
                None if epoch < 0 else epoch,
                None if is_tombstone else text_of(records.history.texts.get(number, b"")),
                value[at["timestamp"]],
                "deleted" if is_tombstone else outcome.name.lower(),
                None if producer_id < 0 else producer_id,
                str(item.log.path),
                value[at["position"]],
                value[at["record_offset"]],
            )
            if outcome is Outcome.OPEN:
                self._open.setdefault((partition, producer_id), []).append(row)
            else:
                yield row

    def rest(self) -> Iterator[_Row]:
        """The commits in transactions whose end was not seen."""
        for rows in self._open.values():
            yield from rows
