"""The options of a verification, and the counts of what it has checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from format.checks.key_placement import Misplaced
from format.limits import DEFAULT_LIMITS, Limits
from format.node.offsets import unread_heads_words
from format.scan.drivers import SerialDriver
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogParts, LogUnit
from format.verbs.verify.walk import Level, LogWalk, PartitionCounts, WalkedChunk

if TYPE_CHECKING:
    from format.verbs.boot.steps import KeptStart

#: What a run of each level does not check.
NOT_CHECKED = {
    Level.HEADERS: ("CRCs", "records", "indexes, checkpoints, producer state"),
    Level.CRC: ("records", "indexes, checkpoints, producer state"),
    Level.RECORDS: ("indexes, checkpoints, producer state",),
    Level.FULL: (),
}


class Coverage(msgspec.Struct):
    """Counts of what was checked; they grow while verify runs. ``misplaced`` is by the name of the partition."""

    partitions: int = 0
    segments: int = 0
    side_files: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    remote_heads: int = 0  # heads of logs in remote storage, which are not checked
    misplaced: dict[str, Misplaced] = msgspec.field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers by name."""
        names = ("partitions", "segments", "side_files", "batches", "records", "bytes")
        return {name: getattr(self, name) for name in names}

    def add_misplaced(self, name: str, found: Misplaced) -> None:
        """Add records of a partition that belong in other ones."""
        known = self.misplaced.get(name)
        self.misplaced[name] = found if known is None else known + found

    def add(self, other: Coverage) -> None:
        """Add the counts of another run."""
        self.partitions += other.partitions
        self.segments += other.segments
        self.side_files += other.side_files
        self.batches += other.batches
        self.records += other.records
        self.bytes += other.bytes
        for name, found in other.misplaced.items():
            self.add_misplaced(name, found)
        self.remote_heads += other.remote_heads


def not_checked(terms: Verification) -> Iterator[str]:
    """What a run did not check, in words."""
    yield from NOT_CHECKED[terms.level]
    if terms.coverage.remote_heads:
        yield unread_heads_words(terms.coverage.remote_heads)


#: Called with each chunk of a log before it is checked.
Watch = Callable[[LogUnit, WalkedChunk], None]


def watch_nothing(log: LogUnit, walked: WalkedChunk) -> None:
    """Ignore the chunk."""


class Verification(msgspec.Struct):
    """The options of one run, and what it has checked so far."""

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS
    coverage: Coverage = msgspec.field(default_factory=Coverage)
    driver: Driver[WalkedChunk] | None = None  # None reads each log in this process
    partition_counts: PartitionCounts = None  # see LogWalk
    compacted_topics: frozenset[str] = frozenset()  # by their configs in the metadata log
    elsewhere: Mapping[Path, frozenset[tuple[str, int]]] = msgspec.field(default_factory=dict)  # see replicas_elsewhere
    jobs: int = 1  # processes that share the work
    advance: Advance = no_progress  # called with the bytes of the logs that were read since the last call
    watch: Watch = watch_nothing  # for callers that add up what verify reads anyway
    kept_start: KeptStart | None = None  # for callers that simulate a start, too

    @property
    def walk(self) -> LogWalk:
        """The scan of this run."""
        return LogWalk(self.level, self.limits, self.partition_counts)

    def looking_again(self) -> Verification:
        """The terms of another reading of what was read before: it counts nothing, and no caller watches it."""
        return replace(
            self,
            coverage=Coverage(),
            driver=None,
            jobs=1,
            advance=no_progress,
            watch=watch_nothing,
            kept_start=None,
        )

    def parts(self, log: LogUnit) -> LogParts[WalkedChunk]:
        """The parts of a log, from the driver."""
        driver = SerialDriver(self.walk, self.advance) if self.driver is None else self.driver
        return driver.parts(log)
