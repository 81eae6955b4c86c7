"""The choice of a driver for some logs, and the loop that folds one log after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Generic

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding
from format.scan.cluster import cluster_of
from format.scan.cost import is_worth_sharing
from format.scan.folding import results_of
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Driver, LogUnit, PartT, ResultT, Scan, Walk
from format.scan.serial import SerialDriver

if TYPE_CHECKING:
    from format.scan.forked import ForkedDriver


def scan_logs(
    scan: Scan[PartT, ResultT],
    logs: Iterable[LogUnit | Finding],
    *,
    jobs: int = 1,
    advance: Advance = no_progress,
    may_stop: bool = False,
) -> Iterator[ResultT | Finding]:
    """The results for some logs, in order, and a finding for each log that cannot be read to its end.

    Findings among the logs, for what could not be listed, are yielded in their place. The cluster of the session of the
    first log reads them, if there is one. With several jobs all logs are listed first, otherwise each is listed when it
    is read or passed to the cluster. With ``may_stop`` the caller may need only the first results, so no cluster makes
    all of them. Raises WorkerDied, and the errors of iterating over
    ``logs``, after the results of the logs before them.
    """
    listing = _Listing(logs)
    rest = iter(listing)
    ahead: list[LogUnit | Finding] = []  # up to the first log
    for each in rest:
        ahead.append(each)
        if isinstance(each, LogUnit):
            break
    first = ahead[-1] if ahead else None
    cluster = None if may_stop or not isinstance(first, LogUnit) else cluster_of(first.path)
    if cluster is not None:
        yield from cluster.results(LogByLog(scan), chain(ahead, rest), advance)
    elif jobs > 1 and may_be_shared(scan):
        listed = [*ahead, *rest]
        with open_driver(scan, [log for log in listed if isinstance(log, LogUnit)], jobs, advance) as driver:
            yield from _results(scan, listed, driver)
    else:
        with SerialDriver(scan, advance) as serial:
            yield from _results(scan, chain(ahead, rest), serial)
    listing.raise_error()


def _results(
    scan: Scan[PartT, ResultT], logs: Iterable[LogUnit | Finding], driver: Driver[PartT]
) -> Iterator[ResultT | Finding]:
    for log in logs:
        if isinstance(log, Finding):
            yield log
        else:
            yield from results_of(scan, log, driver)


class _Listing:
    """The logs up to the first error of listing them, which is raised after their results."""

    def __init__(self, logs: Iterable[LogUnit | Finding]) -> None:
        self._logs = logs
        self._error: KafkaLogError | None = None

    def __iter__(self) -> Iterator[LogUnit | Finding]:
        try:
            yield from self._logs
        except KafkaLogError as error:
            self._error = error

    def raise_error(self) -> None:
        """Raise the error that ended the listing, if there was one."""
        if self._error is not None:
            raise self._error


class LogByLog(msgspec.Struct, Generic[PartT, ResultT], frozen=True):
    """A scan of single logs as a scan of units: each log is a unit, and so is each finding among them."""

    scan: Scan[PartT, ResultT]

    @property
    def walk(self) -> Walk[PartT]:
        return self.scan

    def place(self, unit: LogUnit | Finding) -> Path | None:
        """The path of the log."""
        return unit.path if isinstance(unit, LogUnit) else None

    def logs(self, unit: LogUnit | Finding) -> Sequence[LogUnit]:
        """The log itself."""
        return (unit,) if isinstance(unit, LogUnit) else ()

    def results(self, unit: LogUnit | Finding, driver: Driver[PartT]) -> Iterator[ResultT | Finding]:
        """The results for one log, or the finding itself."""
        if isinstance(unit, Finding):
            yield unit
        else:
            yield from results_of(self.scan, unit, driver)


def open_driver(
    walk: Walk[PartT], logs: Sequence[LogUnit], jobs: int, advance: Advance = no_progress
) -> SerialDriver[PartT] | ForkedDriver[PartT]:
    """The driver that reads these logs faster; it is a context manager."""
    cost = walk.needs.cost
    if jobs == 1 or cost is None or not logs or not may_be_shared(walk):
        return SerialDriver(walk, advance)
    if not is_worth_sharing([log.path for log in logs], cost):
        return SerialDriver(walk, advance)
    from format.scan.forked import ForkedDriver  # imported only if it is used

    return ForkedDriver(walk, logs, jobs, advance)


def may_be_shared(walk: Walk[PartT]) -> bool:
    """Whether several processes can be faster at all. A scan that may end early would waste what was read ahead."""
    needs = walk.needs
    return needs.cost is not None and needs.reads_bodies and not needs.may_end_early
