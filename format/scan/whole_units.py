"""Scans whose units are read whole, each by one process, and the loop that distributes units over processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from format.scan.cluster import cluster_for
from format.scan.drivers import is_worth_sharing, size_of
from format.scan.processes import SharedUnits
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Cost, Driver, LogUnit

UnitT = TypeVar("UnitT")
ResultT = TypeVar("ResultT")


class WholeUnits(Generic[UnitT, ResultT]):
    """The base of scans whose logs are not cut into ranges, because reading depends on what was read before.

    Subclasses define ``cost``, ``logs`` and ``read``. Results are picklable.
    """

    __slots__ = ()

    #: The processor time of reading, for the decision whether several processes are faster.
    cost: ClassVar[Cost]
    walk: ClassVar[None] = None  # no log is read in ranges

    def logs(self, unit: UnitT) -> Sequence[LogUnit]:
        """The logs that a unit reads; empty for a unit that reads hardly anything."""
        raise NotImplementedError

    def read(self, unit: UnitT, advance: Advance) -> Iterator[ResultT]:
        """The results of a unit; calls ``advance`` with the bytes of its logs as they are read."""
        raise NotImplementedError

    def place(self, unit: UnitT) -> Path | None:
        """The directory of the unit's first log."""
        return next((log.path.parent for log in self.logs(unit)), None)

    def results(self, unit: UnitT, driver: Driver[Any]) -> Iterator[ResultT]:
        """The results of a unit on a cluster, which counts progress itself."""
        return self.read(unit, no_progress)


def scan_units(
    scan: WholeUnits[UnitT, ResultT], units: Iterable[UnitT], *, jobs: int = 1, advance: Advance = no_progress
) -> Iterator[ResultT]:
    """The results of all units, in their order. Raises WorkerDied, and the errors of reading a unit.

    Units are read by this process, by several processes if that is faster, or by the cluster of the session of the
    first unit with a place.
    """
    cluster, waiting = cluster_for(scan, units)
    if cluster is not None:
        yield from cluster.results(scan, waiting, advance)
        return
    units = list(waiting)
    if jobs > 1:
        paths = [[log.path for log in scan.logs(unit)] for unit in units]
        jobs = min(jobs, sum(map(bool, paths)))
        if jobs > 1 and is_worth_sharing(list(chain.from_iterable(paths)), scan.cost):
            sizes = [sum(map(size_of, each)) for each in paths]
            with closing(
                SharedUnits(lambda number, _: scan.read(units[number], no_progress), dict(enumerate(sizes)), jobs)
            ) as shared:
                for number, size_bytes in enumerate(sizes):
                    yield from shared.results(number)
                    advance(size_bytes)
            return
    for unit in units:
        yield from scan.read(unit, advance)
