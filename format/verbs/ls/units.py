"""ls as a scan of units: the partitions of a log directory, each listed by itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from format.findings import Finding
from format.io.live_broker import settled
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Checkpoints
from format.node.partition import Partition, location_of_directory
from format.node.target import Target
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogUnit
from format.verbs.ls.partition_listing import ListedPartition, PartitionTerms, list_partition


class ListUnit(msgspec.Struct, frozen=True):
    """A partition directory, and the checkpoints around it."""

    path: Path
    checkpoints: Checkpoints


class ListScan(msgspec.Struct, frozen=True):
    """The scan of partitions: the results are the findings about each, and then its listing."""

    scan: bool = True
    segments: bool = True
    limits: Limits = DEFAULT_LIMITS

    @property
    def walk(self) -> None:
        """None: logs are not cut into ranges, since headers are read fast."""
        return

    def place(self, unit: ListUnit) -> Path:
        """The partition directory."""
        return unit.path

    def logs(self, unit: ListUnit) -> tuple[LogUnit, ...]:
        """None: the listing opens them itself."""
        return ()

    def results(self, unit: ListUnit, driver: Driver[Any]) -> Iterator[Finding | ListedPartition]:
        """The findings, and the listing."""
        return self.listed(unit, None, no_progress)

    def listed(
        self, unit: ListUnit, listed: Callable[[], Partition] | None, advance: Advance
    ) -> Iterator[Finding | ListedPartition]:
        """The results of a unit; ``listed`` returns the partition where its directory was listed before.

        Beside a running broker, what is wrong is looked at again.
        """
        terms = PartitionTerms(self.scan, self.segments, self.limits, advance)
        first = list_partition(unit.path, unit.checkpoints, terms, listed=listed)
        if unit.checkpoints.lock is None or not unit.checkpoints.lock.may_be_held:
            yield (yield from first)
            return

        def again() -> tuple[list[Finding], ListedPartition]:
            own = PartitionTerms(self.scan, self.segments, self.limits)
            return _read(list_partition(unit.path, Target(unit.path).checkpoints_around(self.limits), own))

        findings, partition = settled(_read(first), again, location_of_directory(unit.path))
        yield from findings
        yield partition


def _read(listing: Generator[Finding, None, ListedPartition]) -> tuple[list[Finding], ListedPartition]:
    """The findings about a partition, and its listing."""
    findings: list[Finding] = []
    while True:
        try:
            findings.append(next(listing))
        except StopIteration as end:
            return findings, end.value
