"""ls of one log as a scan: adds up its batch headers.

The parts are totals of some chunks, with findings; the fold adds them up, and limits the number of findings about
damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import msgspec
import numpy as np

from format.errors import KafkaLogError
from format.findings import Finding, Judgement, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BatchTable
from format.log.read_records import wrapper_table
from format.log.walker import batch_chunks
from format.scan.drivers import SerialDriver, results_of, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import tail_finding
from format.state.totals import LogTotals, OffsetsImpossible

#: The most places of damage in one log that are reported one by one; the others are counted.
MAX_DAMAGE_FINDINGS = 20


class RangeTotals(msgspec.Struct, frozen=True):
    """The totals of some chunks, findings about the last of them, and the damage after it."""

    totals: LogTotals
    findings: tuple[Finding, ...] = ()
    damage: Finding | None = None
    reaches_end: bool = False


class TotalsScan(msgspec.Struct, frozen=True):
    """Reads the batch headers of logs.

    If the first message is a compressed one of v0 or v1, all of it is read, since its header lacks its first offset.
    """

    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[RangeTotals]:
        """The totals up to each place with a finding, and those of the rest."""
        location = opened.log.location
        is_first = opened.batch_range.start == 0
        totals = LogTotals()
        try:
            for chunk in opened.chunks:
                found: list[Finding] = []
                opens_unread = False
                table = chunk.headers.unopened()
                if is_first and len(table):
                    is_first = False
                    if table.is_wrapper[0]:
                        known = _with_first_opened(opened.source, table, location, self.limits, found)
                        table, opens_unread = (table, True) if known is None else (known, False)
                impossible = totals.add(table, location.base_offset)
                if impossible is not None:
                    found.append(_impossible_finding(impossible, location))
                if opens_unread:
                    totals.first_offset = totals.first_timestamp = None
                if chunk.damage is not None:
                    damage = tail_finding(opened.source, chunk, opened.log)
                    yield RangeTotals(totals, tuple(found), damage, chunk.damage.reaches_end)
                    totals = LogTotals()
                elif found:
                    yield RangeTotals(totals, tuple(found))
                    totals = LogTotals()
        except KafkaLogError:
            yield RangeTotals(totals)  # what was read before counts
            raise
        yield RangeTotals(totals)

    def fold(self, log: LogUnit, parts: LogParts[RangeTotals]) -> Iterator[Finding | LogTotals]:
        """Findings, and then the totals of what could be read."""
        totals = LogTotals()
        damage_count = 0
        for part in with_last_finding(log, parts):
            if isinstance(part, Finding):
                totals.is_whole = False
                yield part
                continue
            totals.merge(part.totals)
            yield from part.findings
            if part.damage is not None:
                damage_count += 1
                if damage_count <= MAX_DAMAGE_FINDINGS or part.reaches_end:
                    yield part.damage
        if damage_count > MAX_DAMAGE_FINDINGS:
            message = (
                f"{damage_count} places where a batch should start hold no batch; only the first ones are listed here"
            )
            yield finding(
                "log-framing-broken",
                log.location,
                message,
                judgement=Judgement(next_step="Run verify, which lists them all."),
            )
        yield totals


def read_log_totals(
    log: LogUnit,
    *,
    next_base_offset: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Generator[Finding, None, LogTotals]:
    """Read the headers of one log: yields findings, returns the totals of what could be read."""
    scan = TotalsScan(limits)
    totals = LogTotals()
    for item in results_of(scan, log, SerialDriver(scan, advance)):
        if isinstance(item, Finding):
            yield item
        else:
            totals = item
    if next_base_offset is not None and totals.last_offset is not None and totals.last_offset >= next_base_offset:
        yield finding(
            "segment-overlap",
            log.location.at(offset=totals.last_offset),
            f"the last offset is {totals.last_offset}, but the next segment starts at {next_base_offset}",
        )
    return totals


def _impossible_finding(event: OffsetsImpossible, location: Location) -> Finding:
    more = f", and {event.more} more near it" if event.more else ""
    return finding(
        "offset-out-of-segment",
        location.at(event.position, event.size_bytes, event.base_offset),
        f"a batch claims offsets {event.base_offset} to {event.last_offset}, which this segment cannot hold{more}",
    )


def _with_first_opened(
    source: FileSource, table: BatchTable, location: Location, limits: Limits, found: list[Finding]
) -> BatchTable | None:
    """The table with its first row opened, a compressed v0/v1 message; None if that cannot be read.

    Findings are added to ``found``.
    """
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return None
    if source.headers_only is not None:
        offsets, timestamps = source.headers_only.outline(start) or ([], [])
    else:
        whole = next(batch_chunks(source, BatchRange(start, end), check_crc=False, limits=limits))
        inner = wrapper_table(whole, [0], limits, location)
        found += [finding_of(problem.error, location) for problem in inner.problems]
        offsets, timestamps = inner.offset.tolist(), inner.timestamp.tolist()
    if not offsets:
        return None
    firsts, lasts, counts, times = np.array([[offsets[0]], [offsets[-1]], [len(offsets)], [timestamps[0]]], np.int64)
    return table.with_contents(np.array([0]), firsts, lasts, counts, times)
