"""Folding of the parts of one log, with a finding if the log cannot be read to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from format.errors import KafkaLogError, WorkerDied
from format.findings import Finding, finding_of
from format.scan.protocol import Driver, LogParts, LogUnit, PartT, ResultT, Scan


def results_of(scan: Scan[PartT, ResultT], log: LogUnit, driver: Driver[PartT]) -> Iterator[ResultT | Finding]:
    """The results for one log, and a finding if it cannot be read to its end. Raises WorkerDied."""
    parts = driver.parts(log)
    try:
        yield from scan.fold(log, parts)
    except WorkerDied:
        raise
    except KafkaLogError as error:
        yield finding_of(error, log.location)
    finally:
        parts.close()


def with_last_finding(log: LogUnit, parts: LogParts[PartT]) -> Iterator[PartT | Finding]:
    """The parts, and a finding if the log cannot be read to its end, for folds that go on. Raises WorkerDied."""
    try:
        yield from parts
    except WorkerDied:
        raise
    except KafkaLogError as error:
        yield finding_of(error, log.location)


def take_results(
    results: Iterator[ResultT | Finding], count: int, take: Callable[[ResultT], object]
) -> Iterator[Finding]:
    """The findings before and between the next ``count`` results of a scan; ``take`` is called with each result."""
    while count:
        item = next(results)
        if isinstance(item, Finding):
            yield item
        else:
            take(item)
            count -= 1
