"""ls of one log as a scan: adds up its batch headers.

The parts are totals of some chunks, with findings; the fold adds them up, and limits the number of findings about
damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import msgspec

from format.errors import KafkaLogError
from format.findings import Finding, Judgement, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange
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
                if is_first and len(chunk.table):
                    is_first = False
                    opens_unread = not _open_first_wrapper(opened.source, chunk, location, self.limits, found)
                impossible = totals.add(chunk.table, location.base_offset)
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


def _open_first_wrapper(
    source: FileSource, chunk: BatchChunk, location: Location, limits: Limits, found: list[Finding]
) -> bool:
    """Put the first inner message's offset and timestamp into the first row, where that is a compressed v0/v1 message.

    Returns whether the first row now has its first offset; findings are added to ``found``.
    """
    table = chunk.table
    if not table.is_wrapper[0]:
        return True
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return False
    if source.bundled is not None and source.bundled.has_only_headers:
        outline = source.bundled.outline(start)
        if outline is None or not outline[0]:
            return False
        table.base_offset[0] = outline[0][0]
        table.last_offset_delta[0] = outline[0][-1] - outline[0][0]
        table.base_timestamp[0] = outline[1][0]
        return True
    whole = next(batch_chunks(source, BatchRange(start, end), check_crc=False, limits=limits))
    inner = wrapper_table(whole, [0], limits, location)
    for problem in inner.problems:
        found.append(finding_of(problem.error, location))
    if not len(inner):
        return False
    first_offset, last_offset = int(inner.offset[0]), int(inner.offset[-1])
    table.base_offset[0] = first_offset
    table.last_offset_delta[0] = last_offset - first_offset
    table.base_timestamp[0] = int(inner.timestamp[0])
    return True
