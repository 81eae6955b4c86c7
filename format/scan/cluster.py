"""Scans on a cluster: the protocol of scans over units, and the cluster that runs them instead of this process.

A unit is the input of one fold: a log, or all logs of a partition. Units are independent, so each can be folded where
its data is. If the session that the paths of the units belong to has a cluster, verbs pass their units to it, and
receive the results of all units in order. A verb needs nothing else to run on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeVar

from format.io.session import session_of
from format.io.store import ItemT, ValueT
from format.scan.progress import Advance
from format.scan.protocol import Driver, LogUnit, Walk

UnitT = TypeVar("UnitT")
UnitT_contra = TypeVar("UnitT_contra", contravariant=True)
ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class UnitScan(Protocol[UnitT_contra, ResultT_co]):
    """A scan whose units are folded independently. The scan and its units are picklable."""

    @property
    def walk(self) -> Walk[Any] | None:
        """The walk that makes the parts of the logs; None for a scan that reads without a driver."""
        ...

    def place(self, unit: UnitT_contra) -> Path | None:
        """The log or partition directory that a unit reads; None if it reads hardly anything."""
        ...

    def logs(self, unit: UnitT_contra) -> Sequence[LogUnit]:
        """The logs of a unit, which several tasks may read in ranges, in the order in which ``results`` reads them."""
        ...

    def results(self, unit: UnitT_contra, driver: Driver[Any]) -> Iterator[ResultT_co]:
        """The results of a unit. A result that is bytes or lines is valid until the next one is requested."""
        ...


class Cluster(Protocol):
    """Runs scans on other processes or hosts."""

    def results(self, scan: UnitScan[UnitT, ResultT], units: Iterable[UnitT], advance: Advance) -> Iterator[ResultT]:
        """The results of all units, in their order. ``units`` are requested once, as there may be very many."""
        ...

    def mapped(self, call: Callable[[ItemT], ValueT], items: Iterable[ItemT]) -> Iterator[ValueT]:
        """The results of a call for each item, in order; all are picklable. See ``session.map_near``."""
        ...


def cluster_of(path: Path) -> Cluster | None:
    """The cluster of the session that a path belongs to; None for this process and its worker processes."""
    session = session_of(path)
    found: Cluster | None = None if session is None else session.cluster
    return found


def cluster_for(scan: UnitScan[UnitT, ResultT], units: Iterable[UnitT]) -> tuple[Cluster | None, Iterator[UnitT]]:
    """The cluster of the first unit with a place, None for this process, and all units."""
    rest = iter(units)
    ahead: list[UnitT] = []
    for unit in rest:
        ahead.append(unit)
        place = scan.place(unit)
        if place is not None:
            return cluster_of(place), chain(ahead, rest)
    return None, iter(ahead)
