"""Batch headers of whole logs: their totals, and a scan of them with the control records among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import add

import msgspec
import numpy as np

from format import layout
from format.findings import Finding
from format.kernel import tables
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_chunk import OffsetRange
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, read_control_records
from format.node.partition import Partition
from format.scan.drivers import SerialDriver, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogUnit, Needs, OpenedRange, PartT, Walk
from format.scan.read_log import IntactElsewhere, LogChunk, selected_chunks, tail_finding
from format.state.producers import ProducerState, newest_sound_snapshot


class LogTotals(msgspec.Struct):
    """Sums over batches in log order; offsets and times of batches with impossible offsets are left out.

    ``first_timestamp`` is the first batch's base timestamp (None where a delete horizon took its place or the format
    has none), ``codec_counts`` the batches of each codec number 0-7, and ``codec_bytes``
    their bytes. ``in_transactions`` counts the batches that are part of a transaction, or end one, and ``gaps`` the
    places where a batch does not begin at the offset after the batch before it. ``is_whole`` is False once something
    was not read.
    """

    batch_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    magics: set[int] = msgspec.field(default_factory=set)
    codec_counts: list[int] = msgspec.field(default_factory=lambda: [0] * len(layout.CODEC_BITS_NAMES))
    codec_bytes: list[int] = msgspec.field(default_factory=lambda: [0] * len(layout.CODEC_BITS_NAMES))
    in_transactions: int = 0
    gaps: int = 0
    is_whole: bool = True
    _has_first: bool = False

    def add(self, table: BatchTable, segment_base_offset: int | None) -> BatchTable | None:
        """Add the next batches of a segment; returns those whose offsets are impossible in it, None for none."""
        sound, impossible, offsets = table, None, OffsetRange.of_segment(segment_base_offset)
        if not _are_plainly_in(offsets, table):
            is_sound = offsets.holds(table.base_offset, table.last_offset_delta)
            if not is_sound.all():
                sound, impossible = table.rows(is_sound), table.rows(~is_sound)
        sums = table.sums
        self.batch_count += len(table)
        self.magics.update(magic for magic in range(3) if sums.magics >> magic & 1)
        self.codec_counts = _added(self.codec_counts, sums.codec_counts)
        self.codec_bytes = _added(self.codec_bytes, sums.codec_bytes)
        self.in_transactions += sums.in_transactions
        if len(sound):
            self.gaps += int((sound.base_offset[1:] != sound.last_offset[:-1] + 1).sum())
            started = None if sound.has_delete_horizon_at(0) else _timestamp(sound.value("base_timestamp", 0))
            last_offset, latest = sound.last_offset_of(len(sound) - 1), _timestamp(sound.sums.max_timestamp)
            self._extend(sound.value("base_offset", 0), started, last_offset, latest)
        return impossible

    def merge(self, later: LogTotals) -> None:
        """Add the totals of the segment that follows."""
        self.is_whole = self.is_whole and later.is_whole
        self.batch_count += later.batch_count
        self.magics |= later.magics
        self.codec_counts = _added(self.codec_counts, later.codec_counts)
        self.codec_bytes = _added(self.codec_bytes, later.codec_bytes)
        self.in_transactions += later.in_transactions
        self.gaps += later.gaps
        if later._has_first:
            self._extend(later.first_offset, later.first_timestamp, later.last_offset, later.max_timestamp)

    def _extend(
        self, first_offset: int | None, first_timestamp: int | None, last_offset: int | None, latest: int | None
    ) -> None:
        """Add the offsets and times of batches that follow."""
        if self.last_offset is not None and first_offset is not None and first_offset != self.last_offset + 1:
            self.gaps += 1
        if not self._has_first:
            self._has_first = True
            self.first_offset, self.first_timestamp = first_offset, first_timestamp
        self.last_offset = last_offset
        if latest is not None and (self.max_timestamp is None or latest > self.max_timestamp):
            self.max_timestamp = latest

    @classmethod
    def of_sums(cls, sums: Sequence[int]) -> LogTotals:
        """The totals of a row of HEADER_SUMS, which the kernel has added up from plainly sound logs."""
        if not sums[tables.H_COUNT]:
            return cls()
        return cls(
            batch_count=sums[tables.H_COUNT],
            first_offset=sums[tables.H_FIRST_OFFSET],
            last_offset=sums[tables.H_LAST_OFFSET],
            first_timestamp=_timestamp(sums[tables.H_FIRST_TIMESTAMP]),
            max_timestamp=_timestamp(sums[tables.H_MAX_TIMESTAMP]),
            magics={magic for magic in range(3) if sums[tables.H_MAGICS] >> magic & 1},
            codec_counts=list(sums[tables.H_CODEC_COUNTS : tables.H_CODEC_COUNTS + len(layout.CODEC_BITS_NAMES)]),
            codec_bytes=list(sums[tables.H_CODEC_BYTES : tables.H_CODEC_BYTES + len(layout.CODEC_BITS_NAMES)]),
            in_transactions=sums[tables.H_IN_TRANSACTIONS],
            gaps=sums[tables.H_GAPS],
            _has_first=True,
        )

    @property
    def magics_text(self) -> str | None:
        """The formats, such as ``0,1,2``; None without batches."""
        return ",".join(map(str, sorted(self.magics))) or None

    @property
    def codecs_text(self) -> str | None:
        """The codecs by number with their batches, such as ``none:12,zstd:3``; None without batches."""
        pairs = zip(layout.CODEC_BITS_NAMES, self.codec_counts, strict=True)
        return ",".join(f"{name}:{count}" for name, count in pairs if count) or None


def _added(mine: list[int], others: list[int]) -> list[int]:
    return list(map(add, mine, others))


def _timestamp(value: int) -> int | None:
    return None if value == layout.NO_TIMESTAMP else value


def _are_plainly_in(offsets: OffsetRange, table: BatchTable) -> bool:
    """Whether all batches are in a range by their sums alone: the usual case, and quick.

    It may be False where the largest offset and the largest delta are in different batches.
    """
    sums = table.sums
    return not len(table) or (
        sums.least_offset >= offsets.first
        and sums.least_delta >= 0
        and sums.greatest_offset <= offsets.last
        and sums.greatest_delta <= offsets.last - sums.greatest_offset
    )


#: Headers are read in windows of this size: larger batches are passed over, smaller ones are read with them.
_WINDOW_BYTES = 512 * 1024
_TABLE_ROWS = 32 * 1024


class Headers(msgspec.Struct, frozen=True):
    """Some consecutive batches, and the control records among them by row."""

    table: BatchTable
    markers: dict[int, ControlRecord]

    def up_to(self, at_ms: int | None) -> Headers:
        """The same without batches that have a later timestamp (ms); None keeps all."""
        if at_ms is None:
            return self
        is_before = self.table.max_timestamp <= at_ms
        number = np.cumsum(is_before) - 1
        markers = {int(number[row]): control for row, control in self.markers.items() if is_before[row]}
        return Headers(self.table.rows(is_before), markers)

    def since(self, offset: int) -> Headers:
        """The same without batches that begin before an offset."""
        before = int(np.searchsorted(self.table.base_offset, offset))
        if not before:
            return self
        markers = {row - before: control for row, control in self.markers.items() if row >= before}
        return Headers(self.table.rows(slice(before, None)), markers)


class HeaderScan(msgspec.Struct, frozen=True):
    """A walk over headers and control batches."""

    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits, chunk_bytes=_WINDOW_BYTES)

    def parts(self, opened: OpenedRange) -> Iterator[Headers | Finding]:
        """Tables of up to a few ten thousand batches, and findings about damage between them."""
        waiting: list[BatchTable] = []
        markers: dict[int, ControlRecord] = {}
        row_count = 0
        elsewhere = IntactElsewhere.of_log(opened.log, self.limits)
        for chunk in opened.chunks:
            controls = read_control_records(chunk, opened.source, self.limits)
            markers.update((row_count + row, control) for row, control in controls.items())
            waiting.append(chunk.headers.unopened())
            row_count += len(chunk.headers)
            if row_count >= _TABLE_ROWS or chunk.damage is not None:
                yield Headers(BatchTable.concatenated(waiting), markers)
                waiting, markers, row_count = [], {}, 0
            if chunk.damage is not None:
                yield from elsewhere.counted(tail_finding(opened.source, chunk, opened.log))
        if row_count:
            yield Headers(BatchTable.concatenated(waiting), markers)


def log_parts(walk: Walk[PartT], log: LogUnit, advance: Advance = no_progress) -> Iterator[PartT | Finding]:
    """The parts of a log, read in this process, and a finding if it cannot be read to its end."""
    return with_last_finding(log, SerialDriver(walk, advance).parts(log))


class _Chunks(msgspec.Struct, frozen=True):
    """A walk whose parts are the chunks themselves."""

    needs: Needs

    def parts(self, opened: OpenedRange) -> Iterator[LogChunk | Finding]:
        return selected_chunks(opened, self.needs)


def log_chunks(log: LogUnit, needs: Needs) -> Iterator[LogChunk | Finding]:
    """The chunks of a log with what is selected of them, and findings about what cannot be read."""
    return log_parts(_Chunks(needs), log)


def producers_after(
    partition: Partition, logs: Iterable[LogUnit], limits: Limits, most_offset: int | None = None
) -> tuple[ProducerState, int]:
    """The producers' state after some logs of a partition, and the end offset of these logs.

    They are replayed from the newest sound producer snapshot on; ``most_offset`` passes over snapshots past it.
    """
    found = newest_sound_snapshot(partition, limits, most_offset)
    start, state = (0, ProducerState()) if found is None else (found[0], ProducerState.of_snapshot(found[1]))
    end = start
    for log in logs:
        following = None if log.segment is None else partition.next_base_offset(log.segment)
        if following is not None and following <= start:
            continue
        end = max(end, log.location.base_offset or 0)
        for item in log_parts(HeaderScan(limits), log):
            if isinstance(item, Headers) and len(item.table):
                end = max(end, item.table.last_offset_of(len(item.table) - 1) + 1)
                later = item.since(start)
                state.feed(later.table, later.markers)
    return state, end
