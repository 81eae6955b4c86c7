"""Reading the metadata log: its records, and the image of the cluster that a snapshot and the log after it give.

Records of a metadata transaction take effect at its end (KIP-868); one that has no end takes no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from format.errors import CorruptDataError, InputError, KafkaLogError, UnreadableFile
from format.files import meta_properties, quorum_state
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC, METADATA_PARTITION
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.control_records import decode_control_record
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.node.log_dir import Kind, LogDir, log_dir_around
from format.node.partition import KraftSnapshot, Partition, Segment, proven_topic_of_file, read_partition
from format.node.target import Target, link_words
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import LogChunk, selected_chunks
from format.scan.selected_logs import log_of_segment
from format.scan.selection import EVERYTHING
from format.state.cluster_image import BrokenImage, ClusterImage, PartitionKey, PartitionState
from format.state.log_headers import log_parts

if TYPE_CHECKING:
    from format.internal_topics.reader import DecodingProblem


#: Why there is no metadata log at a node in ZooKeeper mode.
IN_ZOOKEEPER = "the node ran with ZooKeeper, which has the metadata"
_METADATA_KEY = (CLUSTER_METADATA_TOPIC, 0)


class MetadataSource(msgspec.Struct, frozen=True):
    """A metadata partition, and its node; ``unread`` says why its directory cannot be listed."""

    partition: Partition
    node_id: int | None
    cluster_id: str | None
    unread: Finding | None = None


def metadata_sources(targets: Iterable[Target], limits: Limits) -> list[MetadataSource]:
    """The metadata logs at or below some paths, in their order. Raises InputError if there is none."""
    targets = list(targets)
    found = [source for target in targets for source in _sources(target, limits)]
    if not found:
        message = f"there is no {METADATA_PARTITION} with a log or a snapshot here"
        if ran_with_zookeeper(targets, limits):
            message += f": {IN_ZOOKEEPER}"
        message += link_words(targets, METADATA_PARTITION)
        raise InputError(message, Location(str(targets[0].path)))
    return found


def ran_with_zookeeper(targets: Iterable[Target], limits: Limits) -> bool:
    """Whether a log directory among some targets is of a node in ZooKeeper mode."""
    log_dirs = (log_dir.path for target in targets for log_dir in target.log_dirs)
    return any(meta_properties.is_of_zookeeper([path], limits) for path in log_dirs)


def _sources(target: Target, limits: Limits) -> Iterator[MetadataSource]:
    if target.kind in (Kind.LOG, Kind.KRAFT_SNAPSHOT):
        topic = proven_topic_of_file(target.path)
        if topic not in (None, CLUSTER_METADATA_TOPIC):
            raise InputError(f"a log of the topic {topic} holds no metadata", Location(str(target.path)))
        yield _source(_lone_file(target), None, limits)
        return
    if target.kind is Kind.PARTITION:
        partition = target.partition
        if partition.key == _METADATA_KEY or partition.kraft_snapshots:
            yield _source(partition, log_dir_around(partition.path), limits)
        return
    for log_dir in target.log_dirs:
        for path in log_dir.partitions:
            if path.name == METADATA_PARTITION:
                try:
                    partition = log_dir.partition(path)
                except UnreadableFile as error:
                    lost = _source(Partition(path, *_METADATA_KEY), log_dir, limits)
                    yield msgspec.structs.replace(lost, unread=finding_of(error))
                    continue
                if partition.segments or partition.kraft_snapshots:
                    yield _source(partition, log_dir, limits)


def _lone_file(target: Target) -> Partition:
    """A partition of one file: a snapshot, or a segment without the snapshots beside it."""
    around = read_partition(target.path.parent)
    partition = Partition(target.path, CLUSTER_METADATA_TOPIC, 0)
    if target.kind is Kind.LOG:
        segments = [each for each in around.segments if each.log is not None and each.log.name == target.path.name]
        partition.segments = segments or [Segment(target.path.parent, 0, None, {".log": target.path})]
    else:
        named = [each for each in around.kraft_snapshots if each.path.name == target.path.name]
        partition.kraft_snapshots = [KraftSnapshot(target.path, each.end_offset, each.epoch) for each in named]
        partition.kraft_snapshots = partition.kraft_snapshots or [KraftSnapshot(target.path, 0, 0)]
    return partition


def _source(partition: Partition, log_dir: LogDir | None, limits: Limits) -> MetadataSource:
    node_id, cluster_id, _ = meta_properties.ids_in(None if log_dir is None else log_dir.meta_properties, limits)
    return MetadataSource(partition, node_id, cluster_id)


_NEVER = 2**63 - 1


class MetadataRecord(msgspec.Struct, frozen=True):
    """A decoded record; ``is_control`` is for those of the raft layer, whose type is that of the control record.

    ``version`` and ``value`` are those of a metadata record, as it lies in the log.
    """

    offset: int
    timestamp: int
    record_type: str
    data: dict[str, Any]
    is_control: bool = False
    version: int = 0
    value: bytes = b""


class MetadataRecords(msgspec.Struct, frozen=True):
    """The records of a metadata log or snapshot from an offset on, as a walk; with findings for what cannot be read.

    ``topic`` may also be __remote_log_metadata, whose records are framed in the same way.
    """

    from_offset: int = 0
    limits: Limits = DEFAULT_LIMITS
    topic: str = CLUSTER_METADATA_TOPIC
    only_controls: bool = False

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, EVERYTHING, self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[MetadataRecord | Finding]:
        """The records in log order."""
        for item in selected_chunks(opened, self.needs):
            if isinstance(item, Finding):
                yield item
            else:
                yield from self.of_chunk(item)

    def of_chunk(self, item: LogChunk) -> Iterator[MetadataRecord | Finding]:
        """The records of a chunk, or only those of the raft layer, in log order."""
        table = item.chunk.table
        wanted = item.readable & (table.last_offset >= self.from_offset)
        if self.only_controls:
            wanted &= table.is_control
        for records in record_tables(item.chunk, which=wanted, limits=self.limits, location=item.location):
            yield from (finding_of(problem.error, item.location) for problem in records.problems)
            is_control = table.is_control[records.batch]
            for row in np.flatnonzero(records.offset >= self.from_offset).tolist():
                place = item.location.at(
                    position=int(table.position[records.batch[row]]), offset=int(records.offset[row])
                )
                odd: list[DecodingProblem] = []
                try:
                    found = self._decoded(records, row, place, odd, is_control=bool(is_control[row]))
                except KafkaLogError as error:
                    yield finding_of(error, place)
                else:
                    yield from (each.finding(place) for each in odd)
                    if found is not None:
                        yield found

    def _decoded(
        self, records: RecordTable, row: int, place: Location, odd: list[DecodingProblem], *, is_control: bool
    ) -> MetadataRecord | Finding | None:
        """A record, None for a control record of no interest, or a finding for one that is newer than this program.

        ``odd`` takes what a node does not read in a record that can be decoded.
        """
        from format.internal_topics.decoder import decode_control_value, decoder_for  # only if there is a metadata log

        offset, timestamp = int(records.offset[row]), int(records.timestamp[row])
        value = records.value(row)
        if is_control:
            control = decode_control_record(records.key(row), value)
            if control.is_end_transaction:
                return None
            decoded = decode_control_value(control.type_number, value)
            if decoded.data is None:
                return decoded.newer(place)
            data = decoded.data
            if control.type_name == "LEADER_CHANGE":
                data = {**data, "leaderEpoch": int(records.batches.leader_epoch[records.batch[row]])}
            return MetadataRecord(offset, timestamp, control.type_name, data, is_control=True)
        if value is None:
            raise CorruptDataError("a metadata record without a value", code="internal-record-invalid")
        decoded = decoder_for(self.topic).decode_value(None, value)
        if decoded.data is None or decoded.record_type is None:
            return decoded.newer(place)
        if decoded.problems or records.key_length[row] >= 0:
            from format.internal_topics.record_check import InternalRecordCheck

            check = InternalRecordCheck(self.topic, place)
            odd += [each for each in check.problems(records.key(row), value) if each.severity >= Severity.ERROR]
        version = decoded.version or 0
        return MetadataRecord(offset, timestamp, decoded.record_type, decoded.data, version=version, value=value)


def metadata_records(
    log: LogUnit, from_offset: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[MetadataRecord | Finding]:
    """The records of one file, and findings; one that cannot be read to its end ends with a finding."""
    return log_parts(MetadataRecords(from_offset, limits), log)


class Until(msgspec.Struct, frozen=True):
    """The last record that counts: by its offset, by its time, or the end of the log."""

    offset: int = _NEVER
    timestamp: int = _NEVER

    def includes(self, record: MetadataRecord) -> bool:
        return record.offset <= self.offset and record.timestamp <= self.timestamp


#: Called with each record that takes effect, before it does; what it returns is called after that.
Watch = Callable[[ClusterImage, MetadataRecord], Callable[[], None] | None]


class MetadataReplay(msgspec.Struct):
    """Applies records to an image in log order.

    ``last_offset`` and ``last_timestamp`` are those of the last record, applied or held back in a transaction.
    ``contradictions`` counts the records that contradict what came before them.
    """

    image: ClusterImage = msgspec.field(default_factory=ClusterImage)
    watch: Watch | None = None
    last_offset: int = -1
    last_timestamp: int | None = None
    record_count: int = 0
    contradictions: int = 0
    first_contradiction: tuple[int, str] | None = None
    transaction_start: int | None = None
    _held: list[MetadataRecord] = msgspec.field(default_factory=list)

    def take(self, record: MetadataRecord, *, is_snapshot: bool = False) -> None:
        """Apply a record, or keep it until its transaction ends."""
        if not is_snapshot:
            self.last_offset, self.last_timestamp = record.offset, record.timestamp
            self.record_count += 1
        if record.record_type == "BEGIN_TRANSACTION_RECORD":
            self.transaction_start = record.offset
            self._held = []
        elif record.record_type == "ABORT_TRANSACTION_RECORD":
            self.transaction_start, self._held = None, []
        elif record.record_type == "END_TRANSACTION_RECORD":
            held, self._held = self._held, []
            self.transaction_start = None
            for each in held:
                self._apply(each)
        elif self.transaction_start is not None and not record.is_control:
            self._held.append(record)
        else:
            self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        after = None if self.watch is None else self.watch(self.image, record)
        try:
            if record.is_control:
                self.image.apply_control(record.record_type, record.data)
            else:
                self.image.apply(record.record_type, record.data)
        except BrokenImage as error:
            self.contradictions += 1
            self.first_contradiction = self.first_contradiction or (record.offset, error.text)
            return
        if after is not None:
            after()


class MetadataState(MetadataReplay, kw_only=True):
    """The image as of some offset, its source, and the findings of reading it."""

    path: Path
    snapshot: Path | None = None
    start_offset: int = 0  # of the log that was replayed
    findings: list[Finding] = msgspec.field(default_factory=list)

    @property
    def is_damaged(self) -> bool:
        """Whether something may be missing from the image."""
        return any(each.severity >= Severity.ERROR or each.code == "metadata-incomplete" for each in self.findings)

    def last_findings(self, place: Location) -> Iterator[Finding]:
        """The findings about records that took no effect."""
        if self.transaction_start is not None:
            yield finding(
                "metadata-transaction-open", place.at(offset=self.transaction_start),
                f"a metadata transaction that begins at offset {self.transaction_start} has no end: its records "
                "are not applied",
            )  # fmt: skip
        if self.first_contradiction is not None:
            offset, text = self.first_contradiction
            more = f", and {self.contradictions - 1} records after it" if self.contradictions > 1 else ""
            yield finding(
                "metadata-incomplete", place.at(offset=offset),
                f"the record at offset {offset} builds on something that is not in the image{more}: {text}",
            )  # fmt: skip


def read_metadata(
    partition: Partition, until: Until | None = None, limits: Limits = DEFAULT_LIMITS, watch: Watch | None = None
) -> MetadataState:
    """The image of the cluster in a metadata partition, up to some record.

    It starts from the newest intact snapshot before that; with ``watch`` from the oldest, so that the changes since
    are seen. Damage is in the findings and does not end the replay. Raises InputError if the log begins later.
    """
    until = until or Until()
    first_offset = partition.segments[0].base_offset if partition.segments else None
    state = _first_state(partition, first_offset, until, limits, is_oldest=watch is not None)
    if state.snapshot is None and not state.findings and first_offset != 0:
        _check_reach(partition, first_offset or 0, until)
    check_start(partition, state)
    state.watch = watch
    is_at_end = _replay_log(partition, until, limits, state)
    if until == Until() and state.image.leader is None:
        _read_leader(partition, state, limits)
    state.last_offset = max(state.last_offset, state.start_offset - 1)
    if is_at_end and state.last_offset < until.offset:
        _check_end(partition, state)
    state.findings += state.last_findings(partition.location())
    return state


class UncleanElection(msgspec.Struct, frozen=True):
    """A record that elects a leader which may lack committed records, with the partition before and after it."""

    offset: int
    timestamp: int
    before: PartitionState
    after: PartitionState


#: In a PARTITION_CHANGE_RECORD: the tagged field 5, leaderRecoveryState, of one byte, which is RECOVERING.
_RECOVERING, _IS_RECOVERING = 1, b"\x05\x01\x01"


def unclean_elections(partition: Partition, limits: Limits = DEFAULT_LIMITS) -> dict[PartitionKey, UncleanElection]:
    """The last unclean election of each partition in the history of a metadata log (metadata PartitionChangeBuilder).

    The history is decoded only if the bytes of such a record are in it; there is none in one with damage. Raises the
    errors of ``read_metadata``.
    """
    found: dict[PartitionKey, UncleanElection] = {}

    def watch(image: ClusterImage, record: MetadataRecord) -> Callable[[], None] | None:
        data = record.data
        if record.record_type != "PARTITION_CHANGE_RECORD" or data.get("leaderRecoveryState") != _RECOVERING:
            return None
        key = data["topicId"], data["partitionId"]
        before = image.partitions.get(key, PartitionState())

        def after() -> None:
            found[key] = UncleanElection(record.offset, record.timestamp, before, image.partitions[key])

        return after

    if not any(_has_bytes(each.log, _IS_RECOVERING) for each in partition.segments if each.log is not None):
        return {}
    return {} if read_metadata(partition, limits=limits, watch=watch).is_damaged else found


def _has_bytes(path: Path, sought: bytes) -> bool:
    """Whether bytes are in a file."""
    with FileSource(path) as source:
        step = MIB - len(sought) + 1
        return any(sought in source.read_at(at, min(MIB, source.size_bytes - at))
                   for at in range(0, source.size_bytes, step))  # fmt: skip


def reaches_back(partition: Partition, until: Until, limits: Limits) -> bool:
    """Whether a log, or a snapshot, begins before a record, so that the state as of that record can be read."""
    first_offset = partition.segments[0].base_offset if partition.segments else None
    return (
        first_offset == 0 or _first_state(partition, first_offset, until, limits, is_oldest=True).snapshot is not None
    )


def _check_reach(partition: Partition, first_offset: int, until: Until) -> None:
    """Raises InputError where the state is asked for as of a record before the first snapshot of a log without head."""
    ends = (each.end_offset for each in finished_snapshots(partition))
    least = min((each for each in ends if each >= first_offset), default=None)
    if least is not None and until != Until():
        message = f"the metadata here begins with a snapshot of offset {least - 1}: the state before is not known"
        raise InputError(message, partition.location())


def _read_leader(partition: Partition, state: MetadataState, limits: Limits) -> None:
    """The leader in quorum-state, for a log without a record of it: snapshots do not contain the leader."""
    if partition.quorum_state is None:
        return
    try:
        found = quorum_state.read(partition.quorum_state, limits)
    except KafkaLogError as error:
        state.findings.append(finding_of(error, partition.location(partition.quorum_state)))
        return
    if found.leader_id >= 0:
        state.image.leader = (found.leader_id, found.leader_epoch)


def _replay_log(partition: Partition, until: Until, limits: Limits, state: MetadataState) -> bool:
    """Apply the log after the snapshot; returns whether it ended before a record that does not count."""
    for segment in partition.segments:
        next_base = partition.next_base_offset(segment)
        log = log_of_segment(partition, segment)
        if log is None or (next_base is not None and next_base <= state.start_offset):
            continue
        for item in metadata_records(log, state.start_offset, limits):
            if isinstance(item, Finding):
                first, last = item.lost_offsets or (item.location.offset or 0, _NEVER)
                if first <= until.offset and last >= state.start_offset:
                    state.findings.append(item)
            elif until.includes(item):
                state.take(item)
            else:
                return False
    return True


def finished_snapshots(partition: Partition) -> list[KraftSnapshot]:
    """The snapshots that were finished, the newest first."""
    kept = [each for each in partition.kraft_snapshots if each.leftover is None]
    return sorted(kept, key=lambda each: (each.epoch, each.end_offset), reverse=True)


def unfinished_finding(location: Location) -> Finding:
    """The finding for a snapshot that can be read to its end, but lacks its last record."""
    message = "the snapshot does not end with a SNAPSHOT_FOOTER record: it was not finished"
    return finding("data-truncated", location, message)


def _first_state(
    partition: Partition, first_offset: int | None, until: Until, limits: Limits, *, is_oldest: bool
) -> MetadataState:
    """The state of the snapshot to start from; an empty one where the log begins at 0 or there is no snapshot."""
    empty = MetadataState(path=partition.path)
    if is_oldest and first_offset == 0:
        return empty
    snapshots = finished_snapshots(partition)
    fallback: MetadataState | None = None
    for snapshot in reversed(snapshots) if is_oldest else snapshots:
        if snapshot.end_offset - 1 > until.offset:
            continue
        if first_offset is not None and snapshot.end_offset < first_offset:
            continue
        state = _state_of(partition, snapshot, limits)
        if state.last_timestamp is not None and state.last_timestamp > until.timestamp:
            continue
        is_sound = not state.findings
        empty.findings += state.findings
        state.findings = empty.findings
        if is_sound:
            return state
        fallback = fallback or state
    return empty if first_offset == 0 or fallback is None else fallback


def _state_of(partition: Partition, snapshot: KraftSnapshot, limits: Limits) -> MetadataState:
    """The state of a snapshot, as of the last record that it contains, and what is wrong with the file."""
    location, last_type = partition.location(snapshot.path), None
    state = MetadataState(path=partition.path, snapshot=snapshot.path, start_offset=snapshot.end_offset)
    for item in metadata_records(LogUnit(snapshot.path, location), 0, limits):
        if isinstance(item, Finding):
            state.findings.append(item)
            continue
        last_type = item.record_type
        if last_type == "SNAPSHOT_HEADER":
            state.last_timestamp = item.data.get("lastContainedLogTimestamp")
        state.take(item, is_snapshot=True)
    if last_type != "SNAPSHOT_FOOTER" and not state.findings:
        state.findings.append(unfinished_finding(location))
    return state


def _check_end(partition: Partition, state: MetadataState) -> None:
    """A finding for a log that ends before a snapshot: what changed between, and when, is in no file."""
    end = state.last_offset + 1
    snapshot_end = max((each.end_offset for each in finished_snapshots(partition)), default=0)
    if snapshot_end > end:
        message = f"no file has the records {end} to {snapshot_end - 1}, which are before a snapshot: what changed "
        message += "with them, and when, is not known"
        step = "Ask for a time after the snapshot, or read the metadata of another controller or broker."
        judgement = Judgement(Severity.WARNING, next_step=step)
        place = partition.location().at(offset=end)
        state.findings.append(finding("metadata-incomplete", place, message, judgement=judgement))


def check_start(partition: Partition, state: MetadataState) -> None:
    """A finding for a log whose head was deleted and is in no snapshot."""
    first_offset = partition.first_base_offset
    if state.snapshot is None and first_offset != 0:
        what = "there is no segment" if first_offset is None else f"the log begins at offset {first_offset}"
        message = f"{what}, and no snapshot has the earlier records: the image has only what is left of the log"
        state.findings.append(finding("metadata-incomplete", partition.location(), message))
