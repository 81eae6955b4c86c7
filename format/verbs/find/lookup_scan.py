"""The header scan of a look-up: reads the batch headers of one segment, and selects batches by offset or time."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.findings import Finding, finding
from format.io.source import FileSource
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.log.batch_chunk import BatchRange
from format.log.batch_table import BATCH_COLUMN, BatchTable
from format.log.walker import HEADER_CHUNK_BYTES, header_chunks
from format.scan.protocol import LogUnit
from format.scan.read_log import tail_finding

#: A broker adds an index entry every 4 KiB or so; reading little at once keeps a look-up within a few KiB.
_SHORT_READ_BYTES = 1024
_SHORT_READS = 32
#: Batches above this size are skipped with short reads, however many they are.
_LARGE_BATCH_BYTES = 16 * 1024
_MAX_ORDER_FINDINGS = 20
NO_NEXT_OFFSET = 2**63 - 1


def is_in_order(first_offset: int, offsets: tuple[int, int], next_base_offset: int) -> bool:
    """Whether a batch of this base and last offset fits between the start of the segment and the next batch."""
    most = min(next_base_offset - 1, first_offset + MAX_RELATIVE_OFFSET)
    return first_offset <= offsets[0] <= offsets[1] <= most


class BatchPlace(msgspec.Struct, frozen=True):
    """A batch or outermost v0/v1 message, by its header; ``base_offset`` is None for a compressed message."""

    position: int
    size_bytes: int
    magic: int
    base_offset: int | None
    last_offset: int
    max_timestamp: int

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    def spans(self, offset: int) -> bool:
        """Whether the batch's offset range, records dropped by compaction included, may contain this offset."""
        return (self.base_offset is None or self.base_offset <= offset) and offset <= self.last_offset

    @property
    def words(self) -> str:
        if self.base_offset is None:
            return f"the batch at position {self.position} whose last offset is {self.last_offset}"
        return f"the batch at position {self.position} with offsets {self.base_offset} to {self.last_offset}"


class ScannedBatches(msgspec.Struct, frozen=True):
    """Some batches of a scan; ``is_ordered`` marks those in offset order with the batch after them."""

    table: BatchTable
    is_ordered: NDArray[np.bool_]

    def place(self, row: int) -> BatchPlace:
        values = dict(zip(BATCH_COLUMN, self.table.columns[row].tolist(), strict=True))
        is_wrapper = values["record_count"] < 0 and values["magic"] < 2
        return BatchPlace(
            values["position"],
            values["size_bytes"],
            values["magic"],
            None if is_wrapper else values["base_offset"],
            self.table.last_offset_of(row),
            values["max_timestamp"],
        )


class HeaderScan:
    """The batches of a segment's log from a batch boundary on, by their headers alone.

    Collects findings on the way in ``findings``. ``batch_count`` and ``end_offset`` (the offset after the last batch
    so far, None before the first) are its progress. The location's base offset is the segment's.
    """

    def __init__(
        self, log: FileSource, start: int, *, unit: LogUnit, limits: Limits, read_bytes: int = _SHORT_READ_BYTES
    ) -> None:
        self._log = log
        self._unit = unit
        self._location = unit.location
        self._first_offset = unit.location.base_offset or 0
        self._next_base_offset = unit.next_base_offset
        self._limits = limits
        self._read_bytes = read_bytes
        self.start = start
        self.findings: list[Finding] = []
        self.repairable: list[tuple[tuple[int, int], Finding]] = []  # offsets behind a damaged header, and its finding
        self.is_damaged = False
        self.batch_count = 0
        self.end_offset: int | None = None
        self._positions = np.empty(0, np.int64)

    def __iter__(self) -> Iterator[ScannedBatches]:
        """The batches in log order; each is held back until the header after it is known."""
        held = BatchTable.empty()
        for table in self._tables():
            known = BatchTable.concatenated([held, table]) if len(held) else table
            if len(known) > 1:
                yield self._ordered(known.rows(slice(0, -1)), known.base_offset[1:])
            held = known.rows(slice(-1, None))
        if len(held):
            next_base_offset = NO_NEXT_OFFSET if self._next_base_offset is None else self._next_base_offset
            yield self._ordered(held, np.array([next_base_offset], np.int64))

    def _tables(self) -> Iterator[BatchTable]:
        """Short reads first, since the target is usually near; longer ones after many small batches."""
        position, read_bytes = self.start, self._read_bytes
        reads = batch_count = 0
        is_done = False
        while not is_done:
            is_done = True
            for chunk in header_chunks(self._log, BatchRange(position), limits=self._limits, chunk_bytes=read_bytes):
                if chunk.damage is None:
                    position = int(chunk.headers.end_position[-1])
                else:
                    self.is_damaged = True
                    self.findings.append(tail_finding(self._log, chunk, self._unit))
                    if chunk.damage.readable is not None:
                        self.repairable.append((chunk.damage.readable, self.findings[-1]))
                    position = chunk.damage.position + chunk.damage.length
                if len(chunk.headers):
                    yield chunk.headers.unopened()
                reads += 1
                batch_count += len(chunk.headers)
                is_dense = position - self.start < _LARGE_BATCH_BYTES * batch_count
                if reads >= _SHORT_READS and is_dense and read_bytes < HEADER_CHUNK_BYTES:
                    read_bytes, is_done = HEADER_CHUNK_BYTES, False
                    break

    def _ordered(self, table: BatchTable, next_base_offsets: NDArray[np.int64]) -> ScannedBatches:
        is_ordered = self._are_ordered(table, next_base_offsets)
        for row in np.flatnonzero(~is_ordered).tolist():
            if len(self.findings) < _MAX_ORDER_FINDINGS:
                self.findings.append(self._order_finding(table, row, int(next_base_offsets[row])))
        self.batch_count += len(table)
        self._positions = table.position
        self.end_offset = table.last_offset_of(len(table) - 1) + 1
        return ScannedBatches(table, is_ordered)

    def _are_ordered(self, table: BatchTable, next_base_offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which batches are in order. One batch, as look-ups mostly read it, is compared without columns."""
        if len(table) == 1:
            offsets = int(table.base_offset[0]), table.last_offset_of(0)
            return np.array([is_in_order(self._first_offset, offsets, int(next_base_offsets[0]))])
        base_offset, last_offset = table.base_offset, table.last_offset
        is_ordered = base_offset >= self._first_offset
        is_ordered &= last_offset >= base_offset
        is_ordered &= last_offset < next_base_offsets
        is_ordered &= last_offset - self._first_offset <= MAX_RELATIVE_OFFSET
        return is_ordered

    def count_before(self, position: int) -> int:
        """How many of the scanned batches start before this position, which must not lie far back."""
        return self.batch_count - int(np.count_nonzero(self._positions >= position))

    def _order_finding(self, table: BatchTable, row: int, next_base_offset: int) -> Finding:
        first, last, end = int(table.base_offset[row]), table.last_offset_of(row), self._next_base_offset
        where = self._location.at(int(table.position[row]), int(table.size_bytes[row]), first)
        message = f"the batch has offsets {first} to {last}"
        most = self._first_offset + MAX_RELATIVE_OFFSET if end is None else end - 1
        if not self._first_offset <= first <= last <= most:
            message += f", its segment may have those from {self._first_offset} to {most}"
            return finding("offset-out-of-segment", where, message)
        return finding("offset-not-increasing", where, f"{message}, the one after it starts at {next_base_offset}")

    def places_from(self, offset: int) -> Iterator[BatchPlace]:
        """The batches whose last offset is at or past this one, in order.

        The CRC does not cover the base offset. So a batch out of offset order is yielded only if no batch in order
        spans the offset; it then comes first.
        """
        doubtful: BatchPlace | None = None
        is_first = True
        for batches in self:
            for row in np.flatnonzero(batches.table.last_offset >= offset).tolist():
                place = batches.place(row)
                if not batches.is_ordered[row]:
                    if is_first and doubtful is None and place.spans(offset):
                        doubtful = place
                    continue
                if is_first and doubtful is not None and not place.spans(offset):
                    yield doubtful
                is_first = False
                yield place
        if is_first and doubtful is not None:
            yield doubtful
