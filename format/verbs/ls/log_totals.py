"""The totals of logs, from their batch headers: one log with its damage, and many small sound ones in one call."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from format.findings import Finding, Judgement, finding, finding_of
from format.io.session import is_read_plainly
from format.kernel.headers import sum_logs
from format.kernel.tables import HEADER_SUMS
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange
from format.log.legacy_messages import wrapper_table
from format.log.walker import HEADER_CHUNK_BYTES, batch_chunks
from format.node.partition import LiveFiles, Partition
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange
from format.scan.read_log import tail_finding
from format.state.log_headers import LogTotals, log_parts

#: The most places of damage in one log that are reported one by one; the others are counted.
MAX_DAMAGE_FINDINGS = 20
_NO_SUMS = bytes(8 * len(HEADER_SUMS))


class _HeaderChunks(msgspec.Struct, frozen=True):
    """A walk over chunks of headers, each with the range that it is read from."""

    limits: Limits

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[tuple[OpenedRange, BatchChunk]]:
        return ((opened, chunk) for chunk in opened.chunks)


def read_log_totals(
    log: LogUnit,
    found: list[Finding],
    *,
    next_base_offset: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> LogTotals:
    """The totals of what can be read of one log; findings are added to ``found``.

    If the first message is a compressed one of v0 or v1, all of it is read, since its header lacks its first offset.
    """
    totals, location = LogTotals(), log.location
    damage_count = 0
    is_first = True
    for part in log_parts(_HeaderChunks(limits), log, advance):
        if isinstance(part, Finding):
            totals.is_whole = False
            found.append(part)
            continue
        opened, chunk = part
        opens_unread = False
        if is_first and len(chunk.table):
            is_first = False
            opens_unread = not _open_first_wrapper(opened, chunk, limits, found)
        impossible = totals.add(chunk.table, location.base_offset)
        if impossible is not None:
            more = f", and {impossible.more} more near it" if impossible.more else ""
            found.append(
                finding(
                    "offset-out-of-segment",
                    location.at(impossible.position, impossible.size_bytes, impossible.base_offset),
                    f"a batch claims offsets {impossible.base_offset} to {impossible.last_offset}, which this segment "
                    f"cannot hold{more}",
                )
            )
        if opens_unread:
            totals.first_offset = totals.first_timestamp = None
        if chunk.damage is not None:
            damage_count += 1
            if damage_count <= MAX_DAMAGE_FINDINGS or chunk.damage.reaches_end:
                found.append(tail_finding(opened.source, chunk, log))
    if damage_count > MAX_DAMAGE_FINDINGS:
        message = f"{damage_count} places where a batch should start hold no batch; only the first ones are listed here"
        judgement = Judgement(next_step="Run verify, which lists them all.")
        found.append(finding("log-framing-broken", location, message, judgement=judgement))
    if next_base_offset is not None and totals.last_offset is not None and totals.last_offset >= next_base_offset:
        message = f"the last offset is {totals.last_offset}, but the next segment starts at {next_base_offset}"
        found.append(finding("segment-overlap", location.at(offset=totals.last_offset), message))
    return totals


def _open_first_wrapper(opened: OpenedRange, chunk: BatchChunk, limits: Limits, found: list[Finding]) -> bool:
    """Put the first inner message's offset and timestamp into the first row, where that is a compressed v0/v1 message.

    Returns whether the first row now has its first offset; findings are added to ``found``.
    """
    source, table = opened.source, chunk.table
    if not table.is_wrapper[0]:
        return True
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return False
    if source.headers_only is not None:
        outline = source.headers_only.outline(start)
        if outline is None or not outline[0]:
            return False
        first, last, timestamp = outline[0][0], outline[0][-1], outline[1][0]
    else:
        whole = next(batch_chunks(source, BatchRange(start, end), check_crc=False, limits=limits))
        inner = wrapper_table(whole, [0], limits, opened.log.location)
        found += [finding_of(problem.error, opened.log.location) for problem in inner.problems]
        if not len(inner):
            return False
        first, last, timestamp = int(inner.offset[0]), int(inner.offset[-1]), int(inner.timestamp[0])
    table.base_offset[0] = first
    table.last_offset_delta[0] = last - first
    table.base_timestamp[0] = timestamp
    return True


class SoundLogs:
    """The small sound logs of one partition, added up by the kernel without tables of batches; a context manager.

    All other logs are left to ``read_log_totals``, which reports what is wrong with them. No log is added where a read
    policy is set, or the partition is not on a disk. With ``scan`` False logs are passed over, not read.
    """

    def __init__(self, partition: Partition, advance: Advance, *, scan: bool = True) -> None:
        self._advance = advance
        self._sums, self._kept = array("q", _NO_SUMS), array("q", _NO_SUMS)
        self._files = partition.live_files
        self._scan = scan
        self._directory_fd = -1
        if scan and is_read_plainly(partition.path) and self._files:
            with suppress(OSError):
                self._directory_fd = os.open(partition.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def add(self, start: int, end: int) -> int:
        """Add the logs of segments from ``start`` to before ``end``; returns the number of the next one.

        It stops at a segment that needs a closer look: it lacks an index, or its log is large or not sound.
        """
        if self._files is None:
            return start
        if not self._scan:
            return end if self._files.have_indexes else start
        if self._directory_fd < 0:
            return start
        sums, kept = memoryview(self._sums), memoryview(self._kept)
        stop = sum_logs(self._directory_fd, self._files.table, start, end, _reading_room(), sums, kept)
        self._advance(self._files.log_size_bytes(start, stop))
        return stop

    def log(self, number: int) -> tuple[int, int]:
        """The base offset of a segment that was added, and the size of its log."""
        files = self._files or LiveFiles(array("q"))
        return files.base_offset(number), files.log_bytes(number)

    def taken(self) -> LogTotals:
        """The totals of the logs that were added since the last call."""
        totals = LogTotals.of_sums(self._sums)
        self._sums = array("q", _NO_SUMS)
        return totals

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._directory_fd >= 0:
            os.close(self._directory_fd)


_room: memoryview | None = None  # for one log, and one more byte, which shows whether it has grown


def _reading_room() -> memoryview:
    global _room
    if _room is None or len(_room) != HEADER_CHUNK_BYTES + 1:
        _room = memoryview(bytearray(HEADER_CHUNK_BYTES + 1))
    return _room
