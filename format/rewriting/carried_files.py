"""Files that go into the output as they are, or with offsets held inside the log that is there: no log, no index."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from format import layout
from format.errors import InputError, KafkaLogError
from format.files import leader_epoch_checkpoint, offset_checkpoint, producer_snapshot
from format.files.offset_checkpoint import TopicPartitionOffset
from format.files.side_file import problem_findings
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import LogDir
from format.node.partition import Partition
from format.rewriting.publishing.publication import Publication

_COPY_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets that a partition of the output holds: base offset of the first segment, and log end offset."""

    start_offset: int
    end_offset: int

    def held(self, offset: int) -> int:
        """The offset, moved to the nearest end where it lies outside."""
        return min(max(offset, self.start_offset), self.end_offset)


def copy_file(
    publication: Publication, path: Path, relative_path: str, advance: Callable[[int], None] | None = None
) -> None:
    """Copy a file byte for byte; raises UnreadableFile, FileChanged and OutputError."""
    with FileSource(path) as source, publication.create(relative_path) as new:
        new.mtime_ns = source.mtime_ns
        position = 0
        while position < source.size_bytes:
            part = source.read_at(position, _COPY_BYTES)
            new.write(part)
            position += len(part)
            if advance is not None:
                advance(len(part))


def carry_partition_files(
    publication: Publication, partition: Partition, name: str, *, limits: Limits = DEFAULT_LIMITS, snapshots: bool
) -> Generator[Finding, None, set[int]]:
    """Copy partition.metadata, the leader epochs, quorum-state, KRaft snapshots and (``snapshots``) producer snapshots.

    One that cannot be read or decoded stays out, with findings: a broker builds leader epochs anew from the log, and
    takes a missing partition.metadata as that of its topic. Returns the offsets of the producer snapshots that came
    along; for the others see ``rebuild_snapshots``.
    """
    carried: set[int] = set()
    plain = [partition.metadata, partition.quorum_state]
    plain += [each.path for each in partition.kraft_snapshots if each.leftover is None]
    for path in plain:
        if path is not None:
            yield from _carried(publication, path, name)
    if partition.leader_epoch_checkpoint is not None:
        path = partition.leader_epoch_checkpoint
        try:
            problems = leader_epoch_checkpoint.read(path, limits).problems
        except KafkaLogError as error:
            yield finding_of(error, partition.location(path))
        else:
            yield from problem_findings(problems, partition.location(path))
            yield from _carried(publication, path, name)
    for base_offset, path in sorted(partition.snapshots.items()) if snapshots else ():
        try:
            problems = producer_snapshot.read(path, limits).problems
        except KafkaLogError as error:
            yield finding_of(error, partition.location(path, base_offset))
            continue
        if problems:
            yield from problem_findings(problems, partition.location(path, base_offset))
        else:
            carried.add(base_offset)
            yield from _carried(publication, path, name)
    return carried


def _carried(publication: Publication, path: Path, name: str) -> Iterator[Finding]:
    try:
        with FileSource(path) as source:
            content = source.read_at(0, source.size_bytes)
    except KafkaLogError as error:
        yield finding_of(error, Location(str(path)))
        return
    publication.write_file(f"{name}/{path.name}", content)


def carry_log_dir_files(
    publication: Publication,
    log_dir: LogDir,
    ranges: dict[tuple[str, int], LogRange],
    *,
    is_whole: bool,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Finding]:
    """The files of the log directory itself: identity, bootstrap metadata, offset checkpoints.

    ``ranges`` are the partitions of the output; a checkpoint keeps only theirs. ``is_whole``: the output holds every
    record of the source, so that offsets stay and the clean-shutdown mark comes along. Otherwise offsets are held
    inside the log that is left, and the recovery point is put at its start: a broker then checks it all, and builds
    the producers' state anew.
    """
    for path in (log_dir.meta_properties, log_dir.bootstrap_checkpoint, log_dir.clean_shutdown if is_whole else None):
        if path is not None:
            try:
                copy_file(publication, path, path.name)
            except InputError as error:
                yield finding_of(error, Location(str(path)))
    for name, path in sorted(log_dir.checkpoint_paths.items()):
        try:
            checkpoint = offset_checkpoint.read(path, limits)
        except KafkaLogError as error:
            yield finding_of(error, Location(str(path)))
            continue
        yield from problem_findings(checkpoint.problems, Location(str(path)))
        entries = []
        for (topic, partition), offset in checkpoint.by_partition().items():
            held = ranges.get((topic, partition))
            if held is None:
                continue
            if not is_whole:
                if held.held(offset) != offset and name != layout.RECOVERY_POINT_CHECKPOINT:
                    yield finding(
                        "checkpoint-mismatch",
                        Location(str(path), topic, partition, offset=offset),
                        f"offset {offset} of {topic}-{partition} lies outside the log that is left, offsets "
                        f"{held.start_offset} to {held.end_offset}; {held.held(offset)} is written instead",
                    )
                offset = held.start_offset if name == layout.RECOVERY_POINT_CHECKPOINT else held.held(offset)
            entries.append(TopicPartitionOffset(topic, partition, offset))
        publication.write_file(name, offset_checkpoint.write(entries))
