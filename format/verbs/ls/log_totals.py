"""The totals of logs, from their batch headers: one log with its damage, and many small sound ones in one call."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec
import numpy as np

from format.findings import Finding, Judgement, finding, finding_of
from format.io.session import is_read_plainly
from format.kernel.headers import sum_logs
from format.kernel.tables import HEADER_SUMS
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.batch_table import BatchTable, batch_location
from format.log.read_records import wrapper_table
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

    def parts(self, opened: OpenedRange) -> Iterator[tuple[OpenedRange, HeaderChunk]]:
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
        table = chunk.headers.unopened()
        if is_first and len(table):
            is_first = False
            if table.is_wrapper[0]:
                known = _with_first_opened(opened, table, limits, found)
                table, opens_unread = (table, True) if known is None else (known, False)
        impossible = totals.add(table, location.base_offset)
        if impossible is not None:
            more = f", and {len(impossible) - 1} more near it" if len(impossible) > 1 else ""
            base_offset = impossible.value("base_offset", 0)
            last_offset = base_offset + impossible.value("last_offset_delta", 0)
            message = f"a batch claims offsets {base_offset} to {last_offset}, which this segment cannot hold{more}"
            found.append(finding("offset-out-of-segment", batch_location(location, impossible, 0), message))
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


def _with_first_opened(
    opened: OpenedRange, table: BatchTable, limits: Limits, found: list[Finding]
) -> BatchTable | None:
    """The table with its first row opened, a compressed v0/v1 message; None if that cannot be read.

    Findings are added to ``found``.
    """
    source, location = opened.source, opened.log.location
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return None
    if source.headers_only is not None:
        offsets, timestamps = source.headers_only.outline(start) or ([], [])
    else:
        whole = next(batch_chunks(source, BatchRange(start, end), check_crc=False, limits=limits))
        inner = wrapper_table(whole, 0, limits, location)
        found += [finding_of(problem.error, location) for problem in inner.problems]
        offsets, timestamps = inner.offset.tolist(), inner.timestamp.tolist()
    if not offsets:
        return None
    firsts, lasts, counts, times = np.array([[offsets[0]], [offsets[-1]], [len(offsets)], [timestamps[0]]], np.int64)
    return table.with_contents(np.array([0]), firsts, lasts, counts, times)


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
