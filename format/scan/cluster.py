"""The cluster driver's side of the protocol: scans over units, and the cluster that runs them in place of this process.

A unit is what one fold goes over: a log, or all logs of a partition. Units do not depend on each other, so that each
can be folded where its data is. While a cluster is set (``scanned_by``), verbs give it their units and receive the
results of each, in order; a verb needs nothing else to run there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, TypeVar

from format.scan.progress import Advance
from format.scan.protocol import Driver, LogUnit, Walk

UnitT = TypeVar("UnitT")
UnitT_contra = TypeVar("UnitT_contra", contravariant=True)
ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)


class UnitScan(Protocol[UnitT_contra, ResultT_co]):
    """A scan whose units are folded independently. It and its units are picklable."""

    @property
    def walk(self) -> Walk[Any] | None:
        """What makes the parts of the logs; None for a scan that reads without a driver."""
        ...

    def place(self, unit: UnitT_contra) -> Path | None:
        """The log or the partition directory that a unit reads; None where it reads next to nothing."""
        ...

    def logs(self, unit: UnitT_contra) -> Sequence[LogUnit]:
        """The logs of a large unit that several tasks may read in ranges, in the order in which ``results`` asks."""
        ...

    def results(self, unit: UnitT_contra, driver: Driver[Any]) -> Iterator[ResultT_co]:
        """The results of a unit. A result that is bytes or lines is valid until the next one is requested."""
        ...


class Cluster(Protocol):
    """Runs scans on other processes or hosts."""

    def results(self, scan: UnitScan[UnitT, ResultT], units: Sequence[UnitT], advance: Advance) -> Iterator[ResultT]:
        """The results of all units, in their order."""
        ...


_cluster: ContextVar[Cluster | None] = ContextVar("cluster", default=None)


def current_cluster() -> Cluster | None:
    """The cluster that scans run on; None for this process and those that it forks."""
    return _cluster.get()


@contextmanager
def scanned_by(cluster: Cluster | None) -> Iterator[None]:
    """The context in which scans run on a cluster; with None, in this process."""
    token = _cluster.set(cluster)
    try:
        yield
    finally:
        _cluster.reset(token)
