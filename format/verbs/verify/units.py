"""verify as a scan of units, for a cluster: each unit is a partition, a file or a log directory's own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Checkpoints, Kind, read_log_dir
from format.node.offsets import offsets_of
from format.node.partition import key_of_directory, location_of_file, read_partition
from format.node.target import Target
from format.scan.protocol import Driver, LogUnit
from format.scan.selected_logs import every_log_of
from format.verbs.verify.places import verify_file, verify_log_dir_files, verify_partition_dir
from format.verbs.verify.terms import Coverage, Verification
from format.verbs.verify.walk import Level, LogWalk, PartitionCounts, WalkedChunk


class LogDirFiles(msgspec.Struct, frozen=True):
    """A log directory's own files."""

    path: Path


class PartitionDirectory(msgspec.Struct, frozen=True):
    """A partition directory, and its entries in the checkpoints of the log directory."""

    path: Path
    checkpoints: Checkpoints


class LoneFile(msgspec.Struct, frozen=True):
    """A file that is checked by itself."""

    path: Path
    kind: Kind


Unit = LogDirFiles | PartitionDirectory | LoneFile | Finding


def units_of(target: Target, limits: Limits) -> Iterator[Unit]:
    """The units of a target in the order of verify, and findings about links. Raises InputError as ``Target.kind``."""
    if target.kind is Kind.PARTITION:
        yield PartitionDirectory(target.path, target.checkpoints_around(limits))
        return
    if target.kind is not Kind.LOG_DIR:
        yield LoneFile(target.path, target.kind)
        return
    yield from target.link_findings()
    for log_dir in target.log_dirs:
        # Checkpoints come before the logs: a broker that runs meanwhile only moves the logs' ends past them.
        checkpoints = log_dir.checkpoints(limits)
        yield LogDirFiles(log_dir.path)
        for path in log_dir.partitions:
            yield PartitionDirectory(path, checkpoints.of_partition(key_of_directory(path)))


class VerifyScan(msgspec.Struct, frozen=True):
    """verify as a scan of units: its results are the findings of each unit, and then the unit's Coverage."""

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS
    partition_counts: PartitionCounts = None
    compacted_topics: frozenset[str] = frozenset()
    elsewhere: Mapping[Path, frozenset[tuple[str, int]]] = msgspec.field(default_factory=dict)

    @property
    def walk(self) -> LogWalk:
        return LogWalk(self.level, self.limits, self.partition_counts)

    def place(self, unit: Unit) -> Path | None:
        """The partition directory or the file of a unit; None for a log directory's own files."""
        return unit.path if isinstance(unit, (PartitionDirectory, LoneFile)) else None

    def logs(self, unit: Unit) -> Sequence[LogUnit]:
        """The logs of a partition, or a log by itself."""
        if isinstance(unit, LoneFile) and unit.kind is Kind.LOG:
            return (LogUnit(unit.path, location_of_file(unit.path)),)
        if not isinstance(unit, PartitionDirectory):
            return ()
        try:
            partition = read_partition(unit.path)
            return tuple(every_log_of(partition, offsets_of(partition, unit.checkpoints)))
        except KafkaLogError:
            return ()  # verifying the unit reports it

    def results(self, unit: Unit, driver: Driver[WalkedChunk]) -> Iterator[Finding | Coverage]:
        """The findings, and the coverage."""
        terms = Verification(
            self.level,
            self.limits,
            Coverage(),
            driver,
            self.partition_counts,
            self.compacted_topics,
            self.elsewhere,
        )
        if isinstance(unit, Finding):
            yield unit
        elif isinstance(unit, LogDirFiles):
            yield from verify_log_dir_files(read_log_dir(unit.path), terms)
        elif isinstance(unit, PartitionDirectory):
            yield from verify_partition_dir(unit.path, partial(read_partition, unit.path), unit.checkpoints, terms)
        else:
            yield from verify_file(unit.path, unit.kind, terms)
        yield terms.coverage
