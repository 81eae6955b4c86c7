"""Checks of the files in a partition directory: missing, left over, orphaned and unexpected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from format import layout
from format.errors import KafkaLogError
from format.files import quorum_state
from format.files.side_file import Problem, problem_findings
from format.findings import Finding, Severity, finding, finding_of
from format.limits import Limits
from format.node.partition import Partition, missing_indexes, segment_file_name
from format.node.partition_surroundings import interrupted_finding, unexpected_finding


class _HasProblems(Protocol):
    @property
    def problems(self) -> tuple[Problem, ...]: ...


_MARKS = {
    "delete": "the partition was deleted or moved away; the broker removes the directory after file.delete.delay.ms",
    "future": "a replica that is being moved into this log directory",
    "stray": "the cluster's metadata does not place this partition here",
}


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
    unread_logs = partition.unread_logs
    for orphan in partition.orphans:
        if orphan.base_offset in unread_logs:
            continue
        for suffix, path in sorted(orphan.files.items()):
            if suffix != layout.PRODUCER_SNAPSHOT_SUFFIX:
                yield finding(
                    "index-orphan",
                    partition.location(path, orphan.base_offset),
                    f"there is no {segment_file_name(orphan.base_offset, layout.LOG_SUFFIX)} beside this {suffix}",
                )
    for segment in partition.segments:
        for suffix in missing_indexes(segment):
            location = partition.location(segment.log, segment.base_offset)
            yield finding("index-missing", location, f"the segment has no {suffix}")
    for path in partition.interrupted_writes:
        yield interrupted_finding(path, partition.location(path))
    for path in partition.unexpected:
        yield unexpected_finding(path, partition.location(path))
    yield from _problems(partition, partition.metadata, partition.topic_id_file, limits)
    yield from _problems(partition, partition.quorum_state, quorum_state.read, limits)
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
    partition: Partition, path: Path | None, read: Callable[[Path, Limits], _HasProblems], limits: Limits
) -> Iterator[Finding]:
    if path is None:
        return
    where = partition.location(path)
    try:
        # A broker reads the file all the same.
        yield from problem_findings(read(path, limits).problems, where, severity=Severity.WARNING)
    except KafkaLogError as error:
        yield finding_of(error, where)
