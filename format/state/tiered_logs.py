"""Tiered logs: the remote segments that the metadata names, held against the objects that are there, as one tier."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from format import layout
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.side_file import INT64_RANGE
from format.findings import Finding, Judgement, Severity, finding, finding_of
from format.io.session import Session, is_there, session_of
from format.io.source import FileSource
from format.limits import Limits
from format.location import Location
from format.node.log_dir import Kind, LogDir, TopicPartition, list_directory, log_dir_around
from format.node.partition import Partition, Segment, parse_partition_dir, read_partition
from format.node.target import Target
from format.scan.followed_partition import place_of_offset
from format.scan.selected_logs import every_log_of
from format.state.cluster_context import topic_id_in
from format.state.leader_epochs import ReplicaEpochs
from format.state.log_headers import log_parts
from format.state.metadata_log import MetadataRecords


class RemoteTier(msgspec.Struct):
    """The remote segments of each partition, by base offset and without overlaps; ``lost`` have no objects."""

    segments: Mapping[TopicPartition, Sequence[Segment]] = msgspec.field(default_factory=dict)
    lost: Mapping[TopicPartition, Sequence[tuple[int, int]]] = msgspec.field(default_factory=dict)

    def joined(self, key: TopicPartition | None, local: list[Segment]) -> list[Segment]:
        """The segments of a partition as one log: remote segments before the first local one, then the local ones."""
        remote = () if key is None else self.segments.get(key, ())
        if not remote:
            return local
        first_local = local[0].base_offset if local else None
        return [each for each in remote if first_local is None or each.base_offset < first_local] + local


_UUID = "[A-Za-z0-9_-]{22}"
_LOCAL_DIRECTORY = re.compile(rf"(?P<topic>.+)-(?P<partition>[0-9]+)-(?P<topic_id>{_UUID})")
_PLUGIN_DIRECTORY = re.compile(rf"(?P<topic>.+)-(?P<topic_id>{_UUID})")
_OBJECT = re.compile(rf"(?P<offset>[0-9]{{20}})-(?P<segment_id>{_UUID})(?P<suffix>\.[a-z_-]+)")
_MANIFEST = ".rsm-manifest"
_DEPTH = 3
_SUFFIXES = (
    layout.LOG_SUFFIX,
    layout.OFFSET_INDEX_SUFFIX,
    layout.TIME_INDEX_SUFFIX,
    layout.TRANSACTION_INDEX_SUFFIX,
    layout.PRODUCER_SNAPSHOT_SUFFIX,
)


class RemoteObjects(msgspec.Struct, frozen=True):
    """The objects of one remote segment, as files by suffix."""

    directory: Path
    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    files: dict[str, Path]

    @property
    def key(self) -> tuple[str, int, str]:
        """Topic id, partition and segment id."""
        return self.topic_id, self.partition, self.segment_id

    @property
    def path(self) -> Path:
        """The path of the log, or of another file if there is no log."""
        return self.files.get(layout.LOG_SUFFIX) or next(iter(self.files.values()))


def remote_objects(directory: Path, depth: int = _DEPTH) -> Iterator[RemoteObjects]:
    """The objects of all segments at or below a path. Raises UnreadableFile if it cannot be listed."""
    for name, is_dir in list_directory(directory):
        if not is_dir:
            continue
        place = directory / name
        local = _LOCAL_DIRECTORY.fullmatch(name)
        plugin = _PLUGIN_DIRECTORY.fullmatch(name)
        numbers = [each for each, is_below in list_directory(place) if is_below and each.isdigit()] if plugin else []
        if numbers and plugin is not None:
            for number in numbers:
                yield from _objects(place / number, plugin["topic"], plugin["topic_id"], int(number))
        elif local is not None:
            yield from _objects(place, local["topic"], local["topic_id"], int(local["partition"]))
        elif depth:
            yield from remote_objects(place, depth - 1)


def _objects(directory: Path, topic: str, topic_id: str, partition: int) -> Iterator[RemoteObjects]:
    found: dict[tuple[int, str], dict[str, Path]] = {}
    with_manifest: set[tuple[int, str]] = set()
    for name, _ in list_directory(directory):
        match = _OBJECT.fullmatch(name)
        if match is None:
            continue
        key = int(match["offset"]), match["segment_id"]
        if match["suffix"] == _MANIFEST:
            with_manifest.add(key)
        files = found.setdefault(key, {})
        if match["suffix"] in _SUFFIXES:
            files[match["suffix"]] = directory / name
    for (offset, segment_id), files in sorted(found.items()):
        if (offset, segment_id) in with_manifest:
            files = _files_of_plugin(directory, f"{offset:020d}-{segment_id}")
        if files:
            yield RemoteObjects(directory, topic, topic_id, partition, segment_id, offset, files)


def _files_of_plugin(directory: Path, stem: str) -> dict[str, Path]:
    """The files in the plugin's objects: the log, and the indexes in the manifest."""
    text = str(directory)
    address = f"aiven+{text}" if "://" in text else f"aiven+file://{directory.absolute()}"
    session = session_of(directory) or Session()
    paths = {suffix: session.path(f"{address}/{stem}{suffix}") for suffix in _SUFFIXES}
    return {suffix: path for suffix, path in paths.items() if suffix == layout.LOG_SUFFIX or is_there(path)}


TOPIC = "__remote_log_metadata"
#: The states of a remote segment (storage RemoteLogSegmentState), and of a partition that is deleted.
STATES = {0: "copy started", 1: "copied", 2: "delete started", 3: "deleted"}
COPIED, DELETED = 1, 3


class RemoteLogSegment(msgspec.Struct, frozen=True):
    """One remote segment in its latest state: ``state`` is a number (STATES), ``event_timestamp`` is in ms.

    ``epochs`` are its leader epochs, each with its first offset in the segment.
    """

    topic: str
    topic_id: str
    partition: int
    segment_id: str
    start_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp: int
    event_timestamp: int
    state: int
    epochs: tuple[EpochEntry, ...] = ()

    def agreed_end(self, lineage: ReplicaEpochs) -> int:
        """Its last offset that is of the log with these leader epochs: the rest is of a leader that was truncated."""
        own = ReplicaEpochs(self.epochs, self.start_offset, self.end_offset + 1)
        return own.truncated_by(lineage) - 1

    @property
    def state_words(self) -> str:
        return STATES.get(self.state, f"state {self.state}")


class RemoteSegments(msgspec.Struct):
    """The remote segments by topic id, partition and segment id, and findings for records that could not be read."""

    by_id: dict[tuple[str, int, str], RemoteLogSegment] = msgspec.field(default_factory=dict)
    findings: list[Finding] = msgspec.field(default_factory=list)

    def take(self, record_type: str, data: dict[str, Any]) -> None:
        """Apply one record.

        An update without a first record of its segment is ignored: retention deleted that record. So is one of an
        earlier state, which an older replica of the topic has: the numbers of the states rise.
        """
        if record_type == "REMOTE_LOG_SEGMENT_METADATA_RECORD":
            place, segment_id = _id_of(data)
            key = place["id"], place["partition"], segment_id
            if key in self.by_id and self.by_id[key].state > data["remoteLogSegmentState"]:
                return
            self.by_id[key] = RemoteLogSegment(
                topic=place["name"],
                topic_id=place["id"],
                partition=place["partition"],
                segment_id=segment_id,
                start_offset=data["startOffset"],
                end_offset=data["endOffset"],
                size_bytes=data["segmentSizeInBytes"],
                max_timestamp=data["maxTimestampMs"],
                event_timestamp=data["eventTimestampMs"],
                state=data["remoteLogSegmentState"],
                epochs=tuple(EpochEntry(each["leaderEpoch"], each["offset"]) for each in data["segmentLeaderEpochs"]),
            )
        elif record_type == "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD":
            place, segment_id = _id_of(data)
            key = place["id"], place["partition"], segment_id
            known = self.by_id.get(key)
            if known is not None and known.state <= data["remoteLogSegmentState"]:
                state, at = data["remoteLogSegmentState"], data["eventTimestampMs"]
                self.by_id[key] = replace(known, state=state, event_timestamp=at)
        elif record_type == "REMOTE_PARTITION_DELETE_METADATA_RECORD" and data["remotePartitionDeleteState"] == 2:
            place = data["topicIdPartition"]
            for key in [key for key in self.by_id if key[:2] == (place["id"], place["partition"])]:
                self.by_id[key] = replace(self.by_id[key], state=DELETED)


def _id_of(data: dict[str, Any]) -> tuple[dict[str, Any], str]:
    identity = data["remoteLogSegmentId"]
    return identity["topicIdPartition"], identity["id"]


def read_remote_segments(partitions: Iterable[Partition], limits: Limits) -> RemoteSegments:
    """The remote segments in the records of these partitions of the topic."""
    found = RemoteSegments()
    for log in (log for partition in partitions for log in every_log_of(partition)):
        for part in log_parts(MetadataRecords(limits=limits, topic=TOPIC), log):
            if isinstance(part, Finding):
                found.findings.append(part)
            else:
                found.take(part.record_type, part.data)
    return found


_COMPARED_BYTES = 4 * 1024 * 1024
Key = tuple[str, int]


class TieredLogs(msgspec.Struct):
    """The tier, findings for objects that are missing or differ from the metadata, and what was not checked."""

    tier: RemoteTier
    findings: list[Finding] = msgspec.field(default_factory=list)
    not_checked: list[str] = msgspec.field(default_factory=list)


def tiered_logs(targets: Iterable[Target], remote: Path, limits: Limits) -> TieredLogs:
    """The remote part of the partitions at some paths. Raises UnreadableFile where the objects cannot be listed.

    Without records of __remote_log_metadata, objects belong together by their names.
    """
    log_dirs = list(_log_dirs(targets))
    known = read_remote_segments(_metadata_partitions(log_dirs), limits)
    objects = {each.key: each for each in remote_objects(remote)}
    found = TieredLogs(RemoteTier(), list(known.findings))
    partitions = {key: partition for log_dir in log_dirs for key, partition in _partitions(log_dir)}
    if not known.by_id:
        found.not_checked.append(f"the states of remote segments: no record of {TOPIC} was found")
    segments: dict[Key, Sequence[Segment]] = {}
    lost: dict[Key, Sequence[tuple[int, int]]] = {}
    for key, partition in partitions.items():
        topic_id = topic_id_in(partition.metadata, limits)
        there = [each for each in objects.values() if (each.topic, each.partition) == key]
        there = [each for each in there if topic_id in (None, each.topic_id)]
        named = [each for each in known.by_id.values() if (each.topic, each.partition) == key]
        named = [each for each in named if topic_id in (None, each.topic_id)]
        if known.by_id:
            missing = list(_missing(partition, named, objects))
            lost[key] = [each.lost_offsets for each in missing if each.lost_offsets is not None]
            found.findings += missing
            found.findings += _orphans(there, named)
            copied = {each.segment_id for each in named if each.state == COPIED}
            there = [each for each in there if each.segment_id in copied]
        first_local = partition.segments[0].base_offset if partition.segments else None
        lineage = _lineage(partition, named, limits)
        segments[key] = list(_without_overlaps(there, named, first_local, lineage))
    found.tier = RemoteTier(segments, lost)
    return found


def compared_with_local(tier: RemoteTier, targets: Iterable[Target]) -> Iterator[Finding]:
    """Findings for remote segments whose log is also on the local disk, with other bytes."""
    for log_dir in _log_dirs(targets):
        for key, partition in _partitions(log_dir):
            local = {each.base_offset: each for each in partition.segments if not each.is_remote}
            for remote in tier.segments.get(key, ()):
                same = local.get(remote.base_offset)
                if same is not None and same.log is not None and remote.log is not None:
                    yield from _difference(partition, remote, remote.log, same.log)


def _log_dirs(targets: Iterable[Target]) -> Iterator[LogDir]:
    seen: set[Path] = set()
    for target in targets:
        around = None if target.kind is Kind.LOG_DIR else log_dir_around(target.path.parent)
        if target.kind is Kind.PARTITION:
            around = log_dir_around(target.path)
        for log_dir in target.log_dirs or (() if around is None else (around,)):
            if log_dir.path not in seen:
                seen.add(log_dir.path)
                yield log_dir


def _metadata_partitions(log_dirs: Iterable[LogDir]) -> Iterator[Partition]:
    for log_dir in log_dirs:
        for path in log_dir.partitions:
            parsed = parse_partition_dir(path.name)
            if parsed is not None and parsed[0] == TOPIC and parsed[2] is None:
                yield read_partition(path)


def _partitions(log_dir: LogDir) -> Iterator[tuple[Key, Partition]]:
    """The live partitions, listed without the help of the log directory, which keeps what it has listed."""
    for path in log_dir.partitions:
        parsed = parse_partition_dir(path.name)
        if parsed is None or parsed[2] is not None:
            continue
        try:
            yield parsed[:2], read_partition(path)
        except KafkaLogError:
            continue  # its reader reports it


def _missing(
    partition: Partition, named: Iterable[RemoteLogSegment], objects: dict[tuple[str, int, str], RemoteObjects]
) -> Iterator[Finding]:
    """Findings for segments that the metadata names, and whose objects are not there or have another size."""
    first_local = partition.segments[0].base_offset if partition.segments else None
    for each in sorted(named, key=lambda one: one.start_offset):
        place = partition.location(None, each.start_offset).at(offset=each.start_offset)
        there = objects.get((each.topic_id, each.partition, each.segment_id))
        if each.state == DELETED:
            continue
        range_words = f"offsets {each.start_offset} to {each.end_offset} (segment {each.segment_id})"
        if each.state != COPIED:
            yield finding("remote-segment-unfinished", place, f"{range_words}: {each.state_words}")
        elif there is None or layout.LOG_SUFFIX not in there.files:
            is_local = first_local is not None and each.start_offset >= first_local
            where = "only on the disk" if is_local else "nor on the disk"
            yield finding(
                "remote-segment-missing",
                place,
                f"the metadata names {range_words}, but their log is not among the objects, {where}",
                lost_offsets=None if is_local else (each.start_offset, each.end_offset),
                judgement=Judgement(severity=Severity.WARNING if is_local else None),
            )
        else:
            yield from _size_mismatch(partition, each, there, range_words)


def _size_mismatch(
    partition: Partition, each: RemoteLogSegment, there: RemoteObjects, range_words: str
) -> Iterator[Finding]:
    log = there.files[layout.LOG_SUFFIX]
    place = partition.location(log, each.start_offset)
    try:
        size_bytes = log.lstat().st_size
    except OSError as error:
        yield finding("file-unreadable", place, f"cannot access: {error}")
        return
    if size_bytes != each.size_bytes:
        yield finding(
            "remote-segment-mismatch",
            place,
            f"{range_words}: the log has {size_bytes} bytes, and {each.size_bytes} by the metadata",
            expected=each.size_bytes,
            actual=size_bytes,
        )


def _orphans(there: Iterable[RemoteObjects], named: Iterable[RemoteLogSegment]) -> Iterator[Finding]:
    """Findings for objects that no record of the metadata names, or that should have been deleted."""
    states = {each.segment_id: each.state for each in named}
    for each in there:
        state = states.get(each.segment_id)
        if state is None or state == DELETED:
            words = "the metadata says that it was deleted" if state == DELETED else "no metadata names it"
            where = Location(str(each.path), each.topic, each.partition, each.start_offset)
            yield finding("remote-object-orphan", where, f"objects of segment {each.segment_id}: {words}")


def _lineage(partition: Partition, named: Iterable[RemoteLogSegment], limits: Limits) -> ReplicaEpochs:
    """The leader epochs of a log: those of its checkpoint, or else of its remote segments."""
    entries: Sequence[EpochEntry] = ()
    if partition.leader_epoch_checkpoint is not None:
        with suppress(KafkaLogError):  # verify reports it
            entries = leader_epoch_checkpoint.read(partition.leader_epoch_checkpoint, limits).entries
    if not entries:
        starts: dict[int, int] = {}
        for entry in (entry for each in named if each.state == COPIED for entry in each.epochs):
            starts[entry.leader_epoch] = min(entry.start_offset, starts.get(entry.leader_epoch, entry.start_offset))
        entries = [EpochEntry(*each) for each in sorted(starts.items())]
    return ReplicaEpochs(tuple(entries), 0, INT64_RANGE[1])


def _without_overlaps(
    there: Iterable[RemoteObjects], named: Iterable[RemoteLogSegment], first_local: int | None, lineage: ReplicaEpochs
) -> Iterator[Segment]:
    """The segments by base offset, as far as their leader epochs are those of the log.

    By these a broker chooses, too (storage RemoteLogMetadataCache), and not by the time of the copy: a leader that was
    replaced may copy late. Leaders may begin their segments at different offsets: each segment ends where the next, or
    the local log, begins. Of those with the same first offset, the one that reaches furthest or was copied last counts.
    """
    known = {each.segment_id: each for each in named}
    last_of = {segment_id: each.agreed_end(lineage) for segment_id, each in known.items()}

    def reach(each: RemoteObjects) -> tuple[int, int]:
        segment = known.get(each.segment_id)
        return (-1, -1) if segment is None else (last_of[each.segment_id], segment.event_timestamp)

    best = {each.start_offset: each for each in sorted(there, key=reach)}
    kept: list[tuple[Segment, int | None, bool]] = []  # each with its last offset, and whether it has more
    end = -1
    for offset in sorted(best):
        each = best[offset]
        last = last_of.get(each.segment_id)
        is_covered = last is not None and last <= max(end, offset - 1)
        if is_covered or layout.LOG_SUFFIX not in each.files:
            continue
        end = max(end, offset if last is None else last)
        found = Segment(each.directory, offset, None, each.files, is_remote=True)
        kept.append((found, last, last is not None and last < known[each.segment_id].end_offset))
    starts = sorted({*(found.base_offset for found, *_ in kept), *(() if first_local is None else (first_local,))})
    for found, last, has_more in kept:
        following = starts[bisect_right(starts, found.base_offset) :][:1]
        until = last + 1 if last is not None and has_more else None
        if following and (last is None or last >= following[0]):
            until = following[0]
        yield found if until is None else replace(found, end=_position_of(until, found))


def _position_of(offset: int, segment: Segment) -> int | None:
    """Where the batch with an offset begins in a log; None if it ends before it, or cannot be read."""
    with suppress(KafkaLogError), FileSource(segment.files[layout.LOG_SUFFIX]) as source:  # its reader reports errors
        place = place_of_offset(segment, source, offset)
        return None if place is None else place.position
    return None


def _difference(partition: Partition, segment: Segment, remote: Path, local: Path) -> Iterator[Finding]:
    """The finding for a remote log that has other bytes than the local one, as far as both go."""
    place = partition.location(remote, segment.base_offset)
    try:
        with FileSource(remote) as theirs, FileSource(local) as ours:
            size_bytes = min(theirs.size_bytes, ours.size_bytes, *(() if segment.end is None else (segment.end,)))
            for position in range(0, size_bytes, _COMPARED_BYTES):
                length = min(_COMPARED_BYTES, size_bytes - position)
                left, right = theirs.read_at(position, length), ours.read_at(position, length)
                if left != right:
                    at = position + next(
                        n for n, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]
                    )
                    message = f"the remote log differs from {local} from byte {at} on"
                    yield finding("remote-segment-mismatch", place.at(position=at), message)
                    return
    except KafkaLogError as error:
        yield finding_of(error, place)
