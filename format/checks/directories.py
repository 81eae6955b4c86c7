"""Files of log directories and partitions: identity, checkpoints, topic ids, snapshots, and what does not belong."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from format import layout
from format.checks.losses import judged_at_end
from format.errors import KafkaLogError
from format.files import clean_shutdown, meta_properties, offset_index, quorum_state
from format.files.side_file import HasProblems, problem_findings
from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.io.session import is_remote, is_there
from format.limits import Limits
from format.location import Location
from format.log.control_records import ControlRecord
from format.node.log_dir import Checkpoints, LogDir
from format.node.offsets import CHECKPOINT_WORDS, PartitionOffsets
from format.node.partition import Partition, Segment, missing_indexes, parse_partition_dir, segment_file_name
from format.node.partition_surroundings import interrupted_finding, unexpected_finding
from format.state.cluster_context import topic_id_in
from format.wording import offsets_are


class KraftSnapshotCheck:
    """Checks the first and the last control record of a snapshot, which are fed in order."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self._types: list[str] = []

    def feed(self, markers: dict[int, ControlRecord]) -> None:
        for row in sorted(markers):
            self._types = [*self._types[:1], markers[row].type_name]

    def findings(self, *, is_bootstrap: bool) -> Iterator[Finding]:
        """Findings after the last record; ``bootstrap.checkpoint`` has the format of a snapshot."""
        what = "bootstrap.checkpoint" if is_bootstrap else "snapshot"
        if not self._types or self._types[0] != "SNAPSHOT_HEADER":
            yield finding(
                "data-corrupt", self._location, f"the {what} does not begin with a SNAPSHOT_HEADER record",
                expected="SNAPSHOT_HEADER", actual=self._types[0] if self._types else None,
            )  # fmt: skip
        if not self._types or self._types[-1] != "SNAPSHOT_FOOTER":
            yield finding(
                "data-truncated", self._location,
                f"the {what} does not end with a SNAPSHOT_FOOTER record: it was not finished",
                expected="SNAPSHOT_FOOTER", actual=self._types[-1] if self._types else None,
            )  # fmt: skip


def check_topic_ids(log_dir: LogDir, limits: Limits) -> Iterator[Finding]:
    """Findings for topics with the same id, and for partitions of one topic with different ids.

    If the metadata log is in the same directory, its records decide, and the start of a broker is judged by them.
    Remote stores are not checked: a request for each partition would be too slow.
    """
    if is_remote(log_dir.path) or any(topic == layout.CLUSTER_METADATA_TOPIC for topic, _ in log_dir.topic_partitions):
        return
    id_of_topic: dict[str, str] = {}
    topic_of_id: dict[str, str] = {}
    for directory in log_dir.partitions:
        parsed = parse_partition_dir(directory.name)
        path = directory / layout.PARTITION_METADATA
        if parsed is None or parsed[2] is not None:
            continue
        topic, number, _ = parsed
        topic_id = topic_id_in(path if is_there(path) else None, limits)
        if topic_id is None:
            continue
        location = Location(str(path), topic, number)
        first_id = id_of_topic.setdefault(topic, topic_id)
        first_topic = topic_of_id.setdefault(topic_id, topic)
        if first_topic != topic:
            yield finding(
                "topic-id-conflict",
                location,
                f"the topic id {topic_id} is also the topic id of {first_topic}",
                actual=topic_id,
            )
        elif first_id != topic_id:
            yield finding(
                "topic-id-conflict",
                location,
                f"the topic id is {topic_id}, but another partition of the topic has {first_id}",
                expected=first_id,
                actual=topic_id,
            )


_MARKS = {
    "delete": "the partition was deleted or moved away; the broker removes the directory after file.delete.delay.ms",
    "future": "a replica that is being moved into this log directory",
    "stray": "the cluster's metadata does not place this partition here",
}


def check_orphans(partition: Partition, limits: Limits, *, is_compacted: bool) -> Iterator[Finding]:
    """Findings for indexes without a log. An entry of one shows that the log had records up to its offset.

    Before the first segment, retention may have removed them; of a compacted log the cleaner, before the last one.
    """
    bases = [each.base_offset for each in partition.segments]
    for orphan in () if partition.is_deleted else partition.orphans:
        base_offset = orphan.base_offset
        if base_offset in (*partition.unread_logs, *bases):
            continue
        name = segment_file_name(base_offset, layout.LOG_SUFFIX)
        last = None
        if bases and base_offset > (bases[-1] if is_compacted else bases[0]):
            last = _last_indexed(orphan, limits)
        for suffix, path in sorted(orphan.files.items()):
            place, message = partition.location(path, base_offset), f"there is no {name} beside this {suffix}"
            if last is None and suffix != layout.PRODUCER_SNAPSHOT_SUFFIX:
                yield finding("index-orphan", place, message)
            elif last is not None and suffix == layout.OFFSET_INDEX_SUFFIX:
                message += f", whose last entry is of offset {last}: the segment is lost"
                step = "Look for the segment's file; compare with another replica."
                judgement = Judgement(certainty=Certainty.LIKELY, next_step=step)
                yield finding("index-orphan", place, message, lost_offsets=(base_offset, last), judgement=judgement)


def _last_indexed(segment: Segment, limits: Limits) -> int | None:
    """The offset of the last entry of an .index without problems; None where there is none."""
    if segment.offset_index is None:
        return None
    try:
        index = offset_index.read(segment.offset_index, segment.base_offset, limits)
    except KafkaLogError:
        return None
    return int(index.offsets[-1]) if index.entry_count and not index.problems else None


def check_partition_files(partition: Partition, limits: Limits) -> Iterator[Finding]:
    """Findings for the files of the directory except its logs."""
    location = partition.location()
    if partition.mark is not None:
        yield finding("partition-dir-marked", location, _MARKS[partition.mark])
    for leftover in partition.leftovers:
        for suffix, path in sorted(leftover.files.items()):
            yield finding(
                "segment-leftover",
                partition.location(path, leftover.base_offset),
                f"a {suffix} file marked .{leftover.leftover}",
                actual=leftover.leftover,
            )
    for segment in () if partition.is_deleted else partition.segments:
        for suffix in missing_indexes(segment):
            location = partition.location(segment.log, segment.base_offset)
            yield finding("index-missing", location, f"the segment has no {suffix}")
    for path in partition.interrupted_writes:
        yield interrupted_finding(path, partition.location(path))
    for path in partition.unexpected:
        yield unexpected_finding(path, partition.location(path))
    for file, read in ((partition.metadata, partition.topic_id_file), (partition.quorum_state, quorum_state.read)):
        yield from _problems(file, partition.location(file), read, limits)
    yield from _leader_without_vote(partition, limits)


def _leader_without_vote(partition: Partition, limits: Limits) -> Iterator[Finding]:
    """The finding for a quorum-state whose leader is not one of its voters: the node starts without a known leader."""
    if partition.quorum_state is None:
        return
    with suppress(KafkaLogError):  # reported with the other problems of the file
        state = quorum_state.read(partition.quorum_state, limits)
        if state.leader_id >= 0 and state.current_voters and state.leader_id not in state.current_voters:
            voters = ", ".join(map(str, state.current_voters))
            yield finding(
                "quorum-leader-unknown",
                partition.location(partition.quorum_state),
                f"the leader of the quorum is node {state.leader_id}, the voters are {voters}",
                expected=voters,
                actual=state.leader_id,
            )


def _problems(
    path: Path | None, location: Location, read: Callable[[Path, Limits], HasProblems], limits: Limits
) -> Iterator[Finding]:
    """Findings for a file that a broker reads all the same, whatever its problems; None where there is no file."""
    if path is not None:
        try:
            yield from problem_findings(read(path, limits).problems, location, severity=Severity.WARNING)
        except KafkaLogError as error:
            yield finding_of(error, location)


def check_log_dir_files(
    log_dir: LogDir, checkpoints: Checkpoints, limits: Limits, elsewhere: Collection[tuple[str, int]] = ()
) -> Iterator[Finding]:
    """Findings for the directory's own files; the checkpoints have already been read.

    ``elsewhere`` are the partitions in other log directories of the node.
    """
    for file, read in ((log_dir.meta_properties, meta_properties.read), (log_dir.clean_shutdown, clean_shutdown.read)):
        yield from _problems(file, Location(str(file)), read, limits)
    if log_dir.clean_shutdown is None and log_dir.meta_properties is not None and log_dir.is_marked_at_shutdown:
        yield _unclean(log_dir, checkpoints)
    yield from _no_log_starts(log_dir, limits)
    for path in log_dir.interrupted_writes:
        yield interrupted_finding(path, Location(str(path)))
    for path in log_dir.unexpected:
        yield unexpected_finding(path, Location(str(path)))
    yield from _stale_entries(log_dir, checkpoints, limits, elsewhere)


def _unclean(log_dir: LogDir, checkpoints: Checkpoints) -> Finding:
    location = Location(str(log_dir.path))
    if checkpoints.is_lock_held:
        return finding(
            "unclean-shutdown",
            location,
            "a broker is running on this directory (.lock is held): files may change while they are read",
            judgement=Judgement(
                next_step="Files that the broker is writing may look damaged. To be sure, run again on a snapshot of "
                "the volume, or when the broker is stopped."
            ),
        )
    return finding(
        "unclean-shutdown",
        location,
        "there is no .kafka_cleanshutdown: the broker was killed, or this is a copy of a running one; at its next "
        "start a broker checks every segment past the recovery points, trims preallocated indexes and cuts off torn "
        "tails",
    )


def _no_log_starts(log_dir: LogDir, limits: Limits) -> Iterator[Finding]:
    """The finding for log start offsets that were removed after a clean stop.

    A broker makes the file when it starts, and writes it just before the clean-shutdown mark, also without entries
    (LogManager.shutdown, checkpointLogStartOffsetsInDir). Brokers before 0.11 do not; none of these is of KRaft.
    """
    if log_dir.clean_shutdown is None or layout.LOG_START_OFFSET_CHECKPOINT in log_dir.checkpoint_paths:
        return
    if not log_dir.is_marked_at_shutdown or not meta_properties.is_of_kraft(log_dir.meta_properties, limits):
        return
    yield finding(
        "checkpoint-missing",
        Location(str(log_dir.path)),
        f"the {layout.LOG_START_OFFSET_CHECKPOINT} is missing, and was there when the broker stopped: a broker that "
        "starts begins every log with its first segment, so that records come back that were deleted before an offset, "
        "as kafka-delete-records.sh and Kafka Streams do",
    )


def _stale_entries(
    log_dir: LogDir, checkpoints: Checkpoints, limits: Limits, elsewhere: Collection[tuple[str, int]]
) -> Iterator[Finding]:
    """Findings for entries of checkpoints without a partition.

    A broker that stops writes the high watermarks of its replicas: one that is gone was removed since. With a metadata
    log, boot says what is missing.
    """
    present = log_dir.topic_partitions
    is_exact = checkpoints.is_clean_shutdown and meta_properties.is_of_zookeeper([log_dir.path], limits)
    for name, path in sorted(log_dir.checkpoint_paths.items()):
        for (topic, partition), offset in checkpoints.by_name.get(name, {}).items():
            if (topic, partition) in present:
                continue
            words = f"{topic}-{partition} is not in this directory"
            is_removed = is_exact and name == layout.REPLICATION_OFFSET_CHECKPOINT and offset > 0
            if is_removed and (topic, partition) not in elsewhere:
                words = (
                    f"the log directory had the partition when its broker stopped, with a high watermark of {offset}, "
                )
                words += (
                    "and has it no more: a broker makes an empty log if the partition is still assigned to it, and "
                )
                words += "followers cut theirs to it if it leads"
                place = Location(str(log_dir.path / f"{topic}-{partition}"), topic, partition)
                yield finding("replica-missing", place, words, judgement=Judgement(certainty=Certainty.LIKELY))
            else:
                place = Location(str(path), topic, partition, offset=offset)
                yield finding("checkpoint-stale-entry", place, words)


def check_partition_checkpoints(
    offsets: PartitionOffsets, location: Location, torn_end: Cause | None = None, *, last_gap_count: int = 0
) -> Iterator[Finding]:
    """Findings for checkpoints' offsets of this partition that are outside its log; ``torn_end`` is damage at its end.

    ``last_gap_count`` is the number of offsets that are missing in the last gap of the log.
    A broker writes its high watermarks every five seconds, and when it stops (server ReplicaManager). In between,
    retention may delete segments up to a newer high watermark: only after a clean stop the log cannot start past it.
    """
    log_end_offset, first_base_offset = offsets.log_end_offset, offsets.local_start_offset
    if log_end_offset is None or first_base_offset is None:
        return
    for name, offset in offsets.checkpointed().items():
        if name == layout.LOG_START_OFFSET_CHECKPOINT and _is_impossible_start(offset, offsets, log_end_offset):
            yield _impossible_start(offset, offsets, first_base_offset, log_end_offset, location)
        elif offset > log_end_offset:
            found = replace(_past_the_end(name, offset, offsets, log_end_offset, location), caused_by=torn_end)
            yield judged_at_end(found, offsets)
    head = offsets.missing_head
    if head is not None and not offsets.is_head_remote:
        yield finding(
            "checkpoint-mismatch",
            location.at(offset=head[0]),
            f"the log start offset is {head[0]} ({layout.LOG_START_OFFSET_CHECKPOINT}), but the log begins at "
            f"{first_base_offset}: segments were deleted since the checkpoint was written, or are in remote storage",
            expected=first_base_offset,
            actual=head[0],
            judgement=Judgement(severity=Severity.INFO, certainty=Certainty.POSSIBLE),
        )
    high_watermark = offsets.high_watermark
    if offsets.is_clean_shutdown and high_watermark is not None and high_watermark < first_base_offset:
        yield finding(
            "checkpoint-mismatch",
            location.at(offset=high_watermark),
            f"the high watermark is {high_watermark} ({layout.REPLICATION_OFFSET_CHECKPOINT}), but the log begins at "
            f"{first_base_offset}",
            expected=first_base_offset,
            actual=high_watermark,
        )
    recovery_point = offsets.recovery_point
    if recovery_point is None or recovery_point >= log_end_offset:
        return
    if offsets.is_clean_shutdown:
        # A broker that stops puts the recovery point at the end of each log (core LogManager.shutdown).
        past = log_end_offset - recovery_point
        message = f"the log ends at {log_end_offset}, but ended at the recovery point {recovery_point} when the broker "
        message += "stopped"
        severity = None
        if past == last_gap_count:
            message += f"; the last gap in it is as large, so the base offsets after that gap are {past} too high"
            severity = Severity.ERROR
        yield finding(
            "checkpoint-mismatch",
            location.at(offset=recovery_point),
            message,
            expected=recovery_point,
            actual=log_end_offset,
            judgement=Judgement(severity=severity, certainty=Certainty.LIKELY),
        )
    else:
        yield finding(
            "unflushed-segment",
            location.at(offset=recovery_point),
            f"{offsets_are(recovery_point, log_end_offset - 1)} past the recovery point: at its next start the broker "
            "checks the log from there on, batch by batch",
        )


def _is_impossible_start(offset: int, offsets: PartitionOffsets, log_end_offset: int) -> bool:
    """Whether a log start offset lies past the log's end, and past all that consumers ever could read."""
    high_watermark = offsets.high_watermark
    return offset > log_end_offset and high_watermark is not None and offset > high_watermark


def _impossible_start(
    offset: int, offsets: PartitionOffsets, first_base_offset: int, log_end_offset: int, location: Location
) -> Finding:
    end = min(offsets.high_watermark or 0, log_end_offset)
    return finding(
        "checkpoint-mismatch",
        location.at(offset=offset),
        f"the log start offset is {offset} ({layout.LOG_START_OFFSET_CHECKPOINT}), past the high watermark "
        f"{offsets.high_watermark}: a broker deletes the whole log when it starts",
        expected=log_end_offset,
        actual=offset,
        lost_offsets=(first_base_offset, end - 1) if end > first_base_offset else None,
        judgement=Judgement(
            severity=Severity.ERROR, next_step="Remove the partition's line from the checkpoint before a broker starts."
        ),
    )


def check_lost_log(offsets: PartitionOffsets, partition: Partition) -> Iterator[Finding]:
    """The finding for a partition without segments that had records according to its checkpoints and snapshots."""
    first, end = max(offsets.log_start_checkpoint or 0, 0), offsets.known_end
    is_swapped = any(each.leftover == "swap" and each.log is not None for each in partition.leftovers)
    if end is None or end <= first or partition.unread_logs:
        return
    if is_swapped or offsets.has_remote_storage:
        return  # a broker completes an interrupted swap; the log may be complete in remote storage
    yield finding(
        "checkpoint-mismatch",
        partition.location().at(offset=end),
        f"the partition has no segment, but by its checkpoints or snapshots the log reached offset {end}: all of it "
        "is lost",
        expected=first,
        actual=end,
        lost_offsets=(first, end - 1),
        judgement=Judgement(severity=Severity.ERROR),
    )


def _past_the_end(
    name: str, offset: int, offsets: PartitionOffsets, log_end_offset: int, location: Location
) -> Finding:
    """The finding for a checkpoint's offset past the end of the log.

    Only the high watermark proves that consumers could read the lost offsets; if it is unknown, the recovery point
    shows that they were written. After a clean stop the recovery point is the end of the log: a high watermark past it
    proves nothing.
    """
    is_watermark = name == layout.REPLICATION_OFFSET_CHECKPOINT
    end = offset
    if is_watermark and offsets.committed_end is not None:
        end = offsets.committed_end
    message = f"the {_WORDS[name]} is {offset} ({name}), but the log ends at {log_end_offset}: the log lost its end"
    if is_watermark and end < offset:
        message += f", or the checkpoint is wrong: the recovery point after the clean stop is {end}"
    is_next_best = offsets.high_watermark is None and name == layout.RECOVERY_POINT_CHECKPOINT
    is_lost = (is_watermark or is_next_best) and end > log_end_offset
    is_proven = is_lost and (is_watermark or bool(offsets.is_clean_shutdown))
    return finding(
        "checkpoint-mismatch",
        location.at(offset=offset),
        message,
        expected=log_end_offset,
        actual=offset,
        lost_offsets=(log_end_offset, end - 1) if is_lost else None,
        judgement=Judgement(severity=Severity.ERROR if is_proven else None),
    )


_WORDS = {**CHECKPOINT_WORDS, layout.CLEANER_OFFSET_CHECKPOINT: "first dirty offset"}
