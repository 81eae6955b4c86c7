"""The scan of a whole segment: which batches are intact and in their place, and why other bytes are not kept.

Intact batches at which a broker stops when it starts can be left out, too: a control batch of a producer that is no end
marker, and a batch of a producer outside of its open transaction (storage ProducerAppendInfo).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.io.source import Source
from format.layout import LOG_ENTRY, MAX_RELATIVE_OFFSET
from format.limits import Limits
from format.log.batch_chunk import BatchChunk, BatchRange, OffsetRange
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, first_control_records
from format.log.longest_chain import Rival
from format.log.read_records import record_tables
from format.log.walker import BODY_CHUNK_BYTES, batch_chunks
from format.rewriting.false_offsets import Placement, placed
from format.rewriting.index_builder import IndexedOffsets

Int64Column = NDArray[np.int64]
_MAX_INT64 = 2**63 - 1
_PLAIN, _TRANSACTIONAL, _END, _UNREADABLE = range(4)
_NO_MARKER = (
    "control-record-invalid",
    "the control batch is not a readable end marker: a broker that replays it at its start refuses to start",
)
_OUTSIDE = (
    "batch-invalid",
    "the batch is outside of its producer's open transaction: a broker that replays it at its start refuses to start",
)


class BadBytes(msgspec.Struct, frozen=True):
    """Bytes of a segment that are not kept; ``code`` is a finding code, ``reaches_end`` marks a torn end.

    ``is_repeat``: they are a batch that the segment has before, byte for byte, and that is kept there.
    """

    position: int
    length: int
    code: str
    reason: str
    reaches_end: bool = False
    is_repeat: bool = False


class SegmentScan(msgspec.Struct):
    """The batches of a segment in file order as columns, which of them are kept, and the bytes that are not.

    ``is_opened`` is False for a compressed v0/v1 message whose first offset is not known. ``has_sparse``: a batch has
    fewer records than offsets, as after compaction.
    """

    table: BatchTable
    position: Int64Column
    end_position: Int64Column
    base_offset: Int64Column
    last_offset: Int64Column
    is_intact: NDArray[np.bool_]
    is_kept: NDArray[np.bool_]
    is_opened: NDArray[np.bool_]
    offsets: OffsetRange
    has_sparse: bool
    placement: Placement
    bad: list[BadBytes] = msgspec.field(default_factory=list)


class KeptBatches(msgspec.Struct, frozen=True):
    """Which batches of a log are kept, by their number, and the range of offsets that its batches can have."""

    which: NDArray[np.bool_]
    offsets: OffsetRange


def unreadable_markers(table: BatchTable, markers: dict[int, ControlRecord]) -> Iterator[int]:
    """The rows of the control batches of producers that are no end markers; ``markers`` are their first records."""
    for row in np.flatnonzero(table.is_control & (table.producer_id >= 0) & (table.record_count != 0)).tolist():
        if row not in markers or not markers[row].is_end_transaction:
            yield row


class ProducerBatches:
    """The batches of the producers in one segment, in file order, by their number and what they are."""

    def __init__(self, open_producers: Collection[int], limits: Limits) -> None:
        """``open_producers`` have open transactions when the segment begins."""
        self._open = set(open_producers)
        self._limits = limits
        self._batch_count = 0
        self._columns: list[NDArray[np.int64]] = [np.empty((0, 3), np.int64)]

    def add(self, chunk: BatchChunk) -> None:
        """Take the next batches, those without a right CRC too."""
        table = chunk.table
        kinds = np.where(table.is_transactional, _TRANSACTIONAL, _PLAIN)
        control = table.is_control & (table.crc_valid == 1) & (table.producer_id >= 0)
        kinds[control] = _END
        if control.any():
            number = np.cumsum(control) - 1
            rows = np.flatnonzero(control)
            found = first_control_records(chunk, control, self._limits)
            markers = {int(row): found[int(number[row])] for row in rows if int(number[row]) in found}
            kinds[[row for row in unreadable_markers(table, markers) if control[row]]] = _UNREADABLE
        which = np.flatnonzero((table.producer_id >= 0) & (table.crc_valid == 1))
        self._columns.append(np.column_stack((which + self._batch_count, table.producer_id[which], kinds[which])))
        self._batch_count += len(table)

    def stopping(self, is_kept: NDArray[np.bool_]) -> dict[int, tuple[str, str]]:
        """The numbers of the kept batches at which a broker stops: a finding code for each, and the reason."""
        batches = np.concatenate(self._columns)
        batches = batches[is_kept[batches[:, 0]]]
        kinds = batches[:, 2]
        found = dict.fromkeys(batches[kinds == _UNREADABLE, 0].tolist(), _NO_MARKER)
        known = self._open | set(batches[kinds == _TRANSACTIONAL, 1].tolist())
        if not known or not (kinds == _PLAIN).any():
            return found
        open_now = set(self._open)
        for number, producer_id, kind in batches[np.isin(batches[:, 1], list(known))].tolist():
            if kind == _TRANSACTIONAL:
                open_now.add(producer_id)
            elif kind == _END:
                open_now.discard(producer_id)
            elif kind == _PLAIN and producer_id in open_now:
                found[number] = _OUTSIDE
        return found


def scan_segment(
    source: Source,
    *,
    first_possible: int,
    next_base_offset: int | None,
    base_offset: int,
    limits: Limits,
    producers: ProducerBatches | None = None,
    indexed: IndexedOffsets | None = None,
) -> SegmentScan:
    """Scan all batches of a segment, and keep those with a right CRC whose offsets fit.

    With ``producers``, those at which a broker stops are left out.

    The CRC does not cover the base offset. So the offsets must lie between ``first_possible`` and the next segment, and
    of the batches with such offsets the longest chain of rising offsets is kept. ``indexed`` are the offsets that the
    indexes of the source name.
    """
    tables: list[BatchTable] = []
    agree: list[NDArray[np.bool_]] = []
    opened: list[NDArray[np.bool_]] = []
    repeated: list[NDArray[np.bool_]] = []
    has_sparse = False
    bad: list[BadBytes] = []
    most = base_offset + MAX_RELATIVE_OFFSET if next_base_offset is None else next_base_offset - 1
    offsets = OffsetRange(first_possible, min(most, _MAX_INT64 - 1))
    for chunk in salvage_chunks(source, limits, offsets=offsets):
        table = chunk.table
        tables.append(table)
        agree.append(offsets_agree(chunk))
        opened.append(table.record_count >= 0)
        if producers is not None:
            producers.add(chunk)
        repeated.append(np.zeros(len(table), bool) if chunk.repeated is None else chunk.repeated)
        has_sparse |= bool((table.is_sparse & (table.crc_valid == 1)).any())
        for row in np.flatnonzero(table.crc_valid != 1).tolist():
            place = int(table.position[row]), int(table.size_bytes[row])
            bad.append(BadBytes(*place, "batch-crc-mismatch", "the CRC of the batch does not match its bytes"))
        if chunk.damage is not None:
            damage = chunk.damage
            bad.append(BadBytes(damage.position, damage.length, damage.code, damage.reason, damage.reaches_end))
    joined = BatchTable.concatenated(tables)
    position, end_position = joined.position, joined.end_position
    base, delta = joined.base_offset, joined.last_offset_delta
    is_intact = joined.crc_valid == 1
    is_opened = np.concatenate([np.empty(0, bool), *opened])
    is_possible = offsets.holds(base, delta) & np.concatenate([np.empty(0, bool), *agree])
    last = np.where(is_possible, base + np.where(is_possible, delta, 0), base)
    placement = placed(
        joined, last, is_intact & is_possible, offsets, indexed, partial(_has_keyless, source, joined, limits)
    )
    is_kept = placement.is_kept.copy()
    stopping = {} if producers is None else producers.stopping(is_kept)
    is_kept[list(stopping)] = False
    is_repeat = np.concatenate([np.empty(0, bool), *repeated])
    kept_at = dict(zip(base[is_kept].tolist(), last[is_kept].tolist(), strict=True)) if is_repeat.any() else {}
    for row in np.flatnonzero(is_intact & ~is_kept).tolist():
        if is_repeat[row] and kept_at.get(int(base[row])) == int(last[row]):
            length = int(end_position[row] - position[row])
            reason = f"the batch of offsets {base[row]} to {last[row]} is in the segment before, and kept"
            bad.append(BadBytes(int(position[row]), length, "offset-not-increasing", reason, is_repeat=True))
            continue
        if row in stopping:
            bad.append(BadBytes(int(position[row]), int(end_position[row] - position[row]), *stopping[row]))
            continue
        code = "offset-not-increasing" if is_possible[row] else "offset-out-of-segment"
        reason = _misplaced_words(joined, row, placement)
        bad.append(BadBytes(int(position[row]), int(end_position[row] - position[row]), code, reason))
    bad.sort(key=lambda each: each.position)
    return SegmentScan(
        joined, position, end_position, base, last, is_intact, is_kept, is_opened, offsets, has_sparse, placement, bad
    )


def _has_keyless(source: Source, table: BatchTable, limits: Limits, row: int) -> bool:
    """Whether a batch has a record without a key, which a compacted topic does not accept."""
    chunks = salvage_chunks(source, limits, int(table.position[row]), int(table.end_position[row]))
    return any((each.key_length < 0).any() for chunk in chunks for each in record_tables(chunk, limits=limits))


def _misplaced_words(table: BatchTable, row: int, placement: Placement) -> str:
    """Why an intact batch is not kept."""
    base = int(table.base_offset[row])
    right = int(placement.right_offset[row])
    if right >= 0:
        return (
            f"only its base offset is wrong: it is {base}, and must be {right}, as {placement.proofs[row]}; its CRC is "
            "right"
        )
    reason = f"the batch's bytes are intact, but its offsets, from {base} on, do not fit its place"
    if placement.rival[row] != Rival.NONE:
        reason += "; or those of a batch beside it are the false ones, which is not known"
    return reason


def salvage_chunks(
    source: Source,
    limits: Limits,
    start: int = 0,
    end: int | None = None,
    *,
    check_crc: bool = True,
    chunk_bytes: int = BODY_CHUNK_BYTES,
    offsets: OffsetRange | None = None,
) -> Iterator[BatchChunk]:
    """The batches from ``start``, a batch boundary, to ``end``, with bodies and CRCs; v0 and v1 wrappers are opened.

    The same file always gives the same batches. ``check_crc`` False computes no CRCs, for a file in which all are
    right. After ``scan_segment``, ``offsets`` are those of the scan.
    """
    return batch_chunks(
        source, BatchRange(start, end), check_crc=check_crc, limits=limits, chunk_bytes=chunk_bytes, offsets=offsets
    )


def offsets_agree(chunk: BatchChunk) -> NDArray[np.bool_]:
    """Whether each batch's header has the offsets of its content, which only a v0 wrapper can contradict."""
    agree = np.ones(len(chunk.table), bool)
    for row in np.flatnonzero(chunk.table.is_wrapper & (chunk.table.magic == 0)).tolist():
        if chunk.buffer is not None and chunk.table.record_count[row] >= 0:
            start = int(chunk.table.position[row]) - chunk.buffer_position
            agree[row] = LOG_ENTRY.struct.unpack_from(chunk.buffer, start)[0] == chunk.table.last_offset_of(row)
    return agree
