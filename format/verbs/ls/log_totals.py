"""Reads the batch headers of one log file and adds them up."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from format.errors import KafkaLogError
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.legacy_messages import wrapper_table
from format.log.walker import batch_chunks
from format.scan.read_log import tail_finding
from format.state.totals import LogTotals, OffsetsImpossible

#: So many places of damage in one log are reported one by one; the rest are counted.
MAX_DAMAGE_FINDINGS = 20


def read_log_totals(
    path: Path,
    location: Location,
    *,
    is_last_segment: bool = True,
    next_base_offset: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Generator[Finding, None, LogTotals]:
    """Hop over the batch headers of a log file: yields what is wrong, returns the totals of what could be read.

    Only headers are read, and the first message where it is a compressed one of v0 or v1, whose header does not tell
    its first offset.
    """
    totals = LogTotals()
    damage_count = 0
    try:
        with FileSource(path) as source:
            is_first = True
            for chunk in batch_chunks(source, with_bodies=False, limits=limits):
                opens_unread = False
                if is_first and len(chunk.table):
                    is_first = False
                    opens_unread = not (yield from _open_first_wrapper(source, chunk, location, limits))
                impossible = totals.add(chunk.table, location.base_offset)
                if impossible is not None:
                    yield _impossible_finding(impossible, location)
                if opens_unread:
                    totals.first_offset = totals.first_timestamp = None
                if chunk.damage is not None:
                    damage_count += 1
                    if damage_count <= MAX_DAMAGE_FINDINGS or chunk.damage.reaches_end:
                        yield tail_finding(source, chunk, location, is_last_segment)
    except KafkaLogError as error:
        totals.is_whole = False
        yield finding_of(error, location)
    if damage_count > MAX_DAMAGE_FINDINGS:
        message = f"{damage_count} places where a batch should start hold none; only the first ones are told here"
        yield finding("log-framing-broken", location, message, next_step="Run verify, which tells them all.")
    if next_base_offset is not None and totals.last_offset is not None and totals.last_offset >= next_base_offset:
        yield finding(
            "segment-overlap",
            location.at(offset=totals.last_offset),
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
    source: FileSource, chunk: BatchChunk, location: Location, limits: Limits
) -> Generator[Finding, None, bool]:
    """Put the first inner message's offset and timestamp into the first row, where that is a compressed v0/v1 message.

    Returns whether the first row now tells the truth.
    """
    table = chunk.table
    if not table.is_wrapper[0]:
        return True
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return False
    whole = next(batch_chunks(source, start, end, check_crc=False, limits=limits))
    inner = wrapper_table(whole, [0], limits, location)
    for problem in inner.problems:
        yield finding_of(problem.error, location)
    if not len(inner):
        return False
    first_offset, last_offset = int(inner.offset[0]), int(inner.offset[-1])
    table.base_offset[0] = first_offset
    table.last_offset_delta[0] = last_offset - first_offset
    table.base_timestamp[0] = int(inner.timestamp[0])
    return True
