"""The scan of a segment: which batches are intact and in their place, why others are not kept, and their repair."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry
from format.io.session import is_there
from format.io.source import FileSource, PatchedSource, Source
from format.layout import LOG_ENTRY, RECORD_BATCH
from format.limits import Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk, BatchRange, OffsetRange
from format.log.batch_header import HEADER_BYTES, headers_in
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, first_control_records
from format.log.longest_chain import Rival, chosen_chain
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.partition import segment_file_name
from format.rewriting.index_builder import IndexedOffsets

if TYPE_CHECKING:
    from format.log.damaged_batches import CandidateSearch

_SEQUENCES = 2**31
Int64Column = NDArray[np.int64]
_PLAIN, _TRANSACTIONAL, _END, _UNREADABLE = range(4)
_NO_MARKER = (
    "control-record-invalid",
    "the control batch is not a readable end marker: a broker that replays it at its start refuses to start",
)
_OUTSIDE = (
    "batch-invalid",
    "the batch is outside of its producer's open transaction: a broker that replays it at its start refuses to start",
)
_V2 = 2
_MAX_EPOCH = 2**31 - 1
_AT = {name: RECORD_BATCH.offset_of(name) for name in ("base_offset", "length", "leader_epoch", "magic")}
_CRC_END = RECORD_BATCH.offset_of("magic") + 5  # a byte of magic, and the CRC of a v2 batch
_WIDTHS = {"base_offset": 8, "length": 4, "leader_epoch": 4, "magic": 1}
_WORDS = {name: name.replace("_", " ") for name in _AT}


class Placement(msgspec.Struct, frozen=True):
    """What is known of the offsets of a segment's batches, one value for each batch.

    ``rival`` is how good the chain with a batch is that is not kept. ``right_offset`` is the base offset that a batch
    with a false one must have, -1 if it is not proven; ``proofs`` has the reason, by number of the batch.
    """

    is_kept: NDArray[np.bool_]
    rival: NDArray[np.int8]
    right_offset: NDArray[np.int64]
    proofs: dict[int, str]


def placed(
    table: BatchTable,
    last_offset: NDArray[np.int64],
    is_candidate: NDArray[np.bool_],
    offsets: OffsetRange,
    indexed: IndexedOffsets | None,
    has_keyless: Callable[[int], bool] = lambda row: False,
    *,
    judges_end: bool = True,
) -> Placement:
    """Choose the batches whose offsets fit among the candidates, which are intact and have possible offsets.

    ``last_offset`` are the last offsets of the batches. Batches that are intact and no candidates may have a false base
    offset too. ``has_keyless`` says whether the batch of a row has a record without a key. With ``judges_end`` the
    last batch may be false because of the one before it.
    """
    number = len(table)
    base = table.base_offset
    rows = np.flatnonzero(is_candidate)
    is_doubtful = None
    if indexed is not None and (base[rows[1:]] <= last_offset[rows[:-1]]).any():
        named = indexed.names(table.position[rows], base[rows], last_offset[rows])
        is_doubtful = ~named if named.any() else None
    chosen = chosen_chain(base[rows], last_offset[rows], None, is_doubtful, first=offsets.first, end=offsets.last + 1)
    is_kept, rival = np.zeros(number, bool), np.zeros(number, np.int8)
    is_kept[rows], rival[rows] = chosen.is_kept, chosen.rival
    found = Placement(is_kept, rival, np.full(number, -1, np.int64), {})
    if judges_end:
        _judge_last(table, last_offset, offsets, indexed, found, has_keyless)
    _set_right_offsets(table, last_offset, offsets, found)
    return found


def _set_right_offsets(
    table: BatchTable, last_offset: NDArray[np.int64], offsets: OffsetRange, found: Placement
) -> None:
    """Find the right offsets of batches that fill the place between the kept ones around them exactly.

    A batch with a false offset may be kept, in place of one beside it that it overlaps. It is taken for the false one
    if they fill their place exactly when it alone is moved.
    """
    kept = np.flatnonzero(found.is_kept)
    is_known = (table.crc_valid == 1) & (table.last_offset_delta >= 0) & (table.record_count >= 0)
    is_other = is_known & ~found.is_kept
    if not is_other.any():
        return
    for after in np.unique(np.searchsorted(kept, np.flatnonzero(is_other))).tolist():
        start = int(kept[after - 1]) + 1 if after else 0
        stop = int(kept[after]) if after < len(kept) else len(table)
        if not is_other[start:stop].all():
            continue
        for rows in (slice(start, stop), slice(start - 1, stop), slice(start, stop + 1)):
            starts = _exact_starts(table, last_offset, offsets, rows, found.is_kept)
            if starts is None or not is_known[rows].all():
                continue
            is_false = starts != table.base_offset[rows]
            is_run = rows == slice(start, stop)
            if (found.rival[rows] == Rival.EQUAL).any() if is_run else is_false.sum() != 1:
                continue
            found.right_offset[rows][is_false] = starts[is_false]
            if not is_run:
                found.is_kept[rows] = ~is_false
            for row in (np.flatnonzero(is_false) + rows.start).tolist():
                found.proofs[row] = "it fills the place between the batches around it exactly"
            break


def _exact_starts(
    table: BatchTable, last_offset: NDArray[np.int64], offsets: OffsetRange, rows: slice, is_kept: NDArray[np.bool_]
) -> NDArray[np.int64] | None:
    """The base offsets with which batches fill the place between the kept ones around them; None if they do not."""
    start, stop = rows.start, rows.stop
    if start < 0 or stop > len(table) or not _adjoin(table, start, stop):
        return None
    if not is_kept[max(start - 1, 0) : start].all() or not is_kept[stop : stop + 1].all():
        return None
    first = int(last_offset[start - 1]) + 1 if start else offsets.first
    end = int(table.base_offset[stop]) if stop < len(table) else offsets.last + 1
    widths = table.last_offset_delta[rows] + 1
    if sum(widths.tolist()) != end - first:
        return None
    return first + np.concatenate(([0], np.cumsum(widths)[:-1]))


def _adjoin(table: BatchTable, start: int, stop: int) -> bool:
    """Whether no bytes lie between the batches from the one before ``start`` to that at ``stop``."""
    first = max(start - 1, 0)
    if not start and int(table.position[0]) != 0:
        return False
    following = table.position[first + 1 : stop + 1]
    return bool((following == table.end_position[first : first + len(following)]).all())


def _judge_last(
    table: BatchTable,
    last_offset: NDArray[np.int64],
    offsets: OffsetRange,
    indexed: IndexedOffsets | None,
    found: Placement,
    has_keyless: Callable[[int], bool],
) -> None:
    """Drop the last batch if its base offset is proven to be too high."""
    row = len(table) - 1
    if row < 0 or table.crc_valid[row] != 1 or table.last_offset_delta[row] < 0 or table.record_count[row] < 0:
        return
    if row and not (found.is_kept[row - 1] and _adjoin(table, row, row)):
        return
    if not row and int(table.position[0]):
        return
    first = int(last_offset[row - 1]) + 1 if row else offsets.first
    is_whole = row > 0 and _goes_on(table, row) and _is_gapless(table, last_offset, row) and has_keyless(row - 1)
    proof = proof_of_false_end(table.rows(slice(max(row - 1, 0), None)), first, indexed, is_whole=is_whole)
    if proof and first + int(table.last_offset_delta[row]) <= offsets.last:
        found.is_kept[row], found.rival[row] = False, Rival.NONE
        found.right_offset[row] = first
        found.proofs[row] = proof


def proof_of_false_end(end: BatchTable, first: int, indexed: IndexedOffsets | None, *, is_whole: bool) -> str:
    """The proof that the last batch of a log must start at ``first`` and not where it says; empty for none.

    ``end`` is that batch, after the one before it, which it adjoins. ``is_whole``: no offset is missing before them,
    and a record without a key shows that the log was never compacted. Otherwise the batch of another producer may have
    been removed between the two, and the sequence proves nothing.
    """
    base, width = int(end.base_offset[-1]), int(end.last_offset_delta[-1]) + 1
    if base == first:
        return ""
    if indexed is not None:
        named = indexed.within(first, first + width)
        if named is not None and (base < first or indexed.within(base, base + width) is None):
            return f"an index names offset {named} there"
    if is_whole and len(end) > 1 and _goes_on(end, 1):
        return "the sequence of its producer goes on there"
    return ""


def _goes_on(table: BatchTable, row: int) -> bool:
    """Whether a batch and the one before it are of one producer, whose sequence has no gap between them."""
    before = row - 1
    is_one = (
        table.producer_id[row] >= 0
        and table.producer_id[row] == table.producer_id[before]
        and table.producer_epoch[row] == table.producer_epoch[before]
        and table.base_sequence[before] >= 0
    )
    after = int(table.base_sequence[before]) + int(table.last_offset_delta[before]) + 1
    return bool(is_one and int(table.base_sequence[row]) == after % _SEQUENCES)


def _is_gapless(table: BatchTable, last_offset: NDArray[np.int64], stop: int) -> bool:
    """Whether no offset is missing between the batches before ``stop``: compaction removed none of them."""
    return bool((table.base_offset[1:stop] == last_offset[: stop - 1] + 1).all()) and not table.is_sparse[:stop].any()


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


class SegmentScan(msgspec.Struct, frozen=True):
    """The batches of a segment in file order, which of them are kept, and the bytes that are not."""

    table: BatchTable
    is_kept: NDArray[np.bool_]
    offsets: OffsetRange
    placement: Placement
    bad: list[BadBytes]

    @property
    def kept(self) -> BatchTable:
        return self.table.rows(self.is_kept)

    @property
    def has_sparse(self) -> bool:
        """Whether an intact batch has fewer records than offsets, as after compaction."""
        return bool((self.table.is_sparse & (self.table.crc_valid == 1)).any())


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
    offsets: OffsetRange,
    limits: Limits,
    producers: ProducerBatches | None = None,
    indexed: IndexedOffsets | None = None,
    *,
    judges_end: bool = True,
) -> SegmentScan:
    """Scan all batches of a segment, and keep those with a right CRC whose offsets fit.

    With ``producers``, those at which a broker stops are left out.

    The CRC does not cover the base offset. So the offsets must lie in ``offsets``, and of the batches with such offsets
    the longest chain of rising offsets is kept. ``indexed`` are the offsets that the indexes of the source name.
    """
    tables: list[BatchTable] = []
    agree, repeated = [np.empty(0, bool)], [np.empty(0, bool)]
    bad: list[BadBytes] = []
    for chunk in batch_chunks(source, limits=limits, offsets=offsets):
        tables.append(chunk.table)
        agree.append(offsets_agree(chunk))
        repeated.append(np.zeros(len(chunk.table), bool) if chunk.repeated is None else chunk.repeated)
        if producers is not None:
            producers.add(chunk)
        if (damage := chunk.damage) is not None:
            bad.append(BadBytes(damage.position, damage.length, damage.code, damage.reason, damage.reaches_end))
    table = BatchTable.concatenated(tables)
    base, delta, is_intact = table.base_offset, table.last_offset_delta, table.crc_valid == 1
    is_possible = offsets.holds(base, delta) & np.concatenate(agree)
    last = np.where(is_possible, base + np.where(is_possible, delta, 0), base)
    has_keyless = partial(_has_keyless, source, table, limits)
    placement = placed(table, last, is_intact & is_possible, offsets, indexed, has_keyless, judges_end=judges_end)
    is_kept = placement.is_kept.copy()
    stopping = {} if producers is None else producers.stopping(is_kept)
    is_kept[list(stopping)] = False
    is_repeat = np.concatenate(repeated)
    kept_at = dict(zip(base[is_kept].tolist(), last[is_kept].tolist(), strict=True)) if is_repeat.any() else {}
    for row in np.flatnonzero(~is_kept).tolist():
        is_known = bool(is_repeat[row]) and kept_at.get(int(base[row])) == int(last[row])
        if not is_intact[row]:
            is_known, code, reason = False, "batch-crc-mismatch", "the CRC of the batch does not match its bytes"
        elif is_known:
            code = "offset-not-increasing"
            reason = f"the batch of offsets {base[row]} to {last[row]} is earlier in the segment, and kept"
        elif row in stopping:
            code, reason = stopping[row]
        else:
            code = "offset-not-increasing" if is_possible[row] else "offset-out-of-segment"
            reason = _misplaced_words(table, row, placement)
        bad.append(BadBytes(int(table.position[row]), int(table.size_bytes[row]), code, reason, is_repeat=is_known))
    bad.sort(key=lambda each: each.position)
    if bad and bad[-1].reaches_end and (again := _torn_repeat(source, bad[-1], table.rows(is_kept))) is not None:
        bad[-1] = again
    return SegmentScan(table, is_kept, offsets, placement, bad)


def _torn_repeat(source: Source, torn: BadBytes, kept: BatchTable) -> BadBytes | None:
    """The torn end of a segment as a repeat, if it is how a kept batch begins, up to its CRC at least; else None."""
    begins = source.read_at(torn.position, min(torn.length, RECORD_BATCH.size_bytes))
    if len(begins) < _CRC_END:
        return None
    offset = LOG_ENTRY.struct.unpack_from(begins)[0]
    for row in np.flatnonzero((kept.base_offset == offset) & (kept.size_bytes > torn.length)).tolist():
        again = source.read_at(int(kept.position[row]), torn.length)
        if again == source.read_at(torn.position, torn.length):
            reason = f"they are the start of the batch of offset {offset}, which is earlier in the segment, and kept"
            return replace(torn, code="offset-not-increasing", reason=reason, is_repeat=True)
    return None


def _has_keyless(source: Source, table: BatchTable, limits: Limits, row: int) -> bool:
    """Whether a batch has a record without a key, which a compacted topic does not accept."""
    place = BatchRange(int(table.position[row]), int(table.end_position[row]))
    chunks = batch_chunks(source, place, limits=limits)
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


def offsets_agree(chunk: BatchChunk) -> NDArray[np.bool_]:
    """Whether each batch's header has the offsets of its content, which only a v0 wrapper can contradict."""
    agree = np.ones(len(chunk.table), bool)
    for row in np.flatnonzero(chunk.table.is_wrapper & (chunk.table.magic == 0)).tolist():
        if chunk.buffer is not None and chunk.table.record_count[row] >= 0:
            start = int(chunk.table.position[row]) - chunk.buffer_position
            agree[row] = LOG_ENTRY.struct.unpack_from(chunk.buffer, start)[0] == chunk.table.last_offset_of(row)
    return agree


class Repair(msgspec.Struct, frozen=True):
    """A field of the batch at ``position`` with its wrong and its right value, and the proof.

    ``size_bytes`` and the offsets are those of the batch with the right field. For a compressed v0 or v1 message the
    first offset is not known, and is the last one.
    """

    position: int
    size_bytes: int
    field: str
    wrong: int
    right: int
    proof: str
    first_offset: int
    last_offset: int

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    @property
    def is_offered(self) -> bool:
        """Whether ``--repair`` makes it."""
        return True

    @property
    def words(self) -> str:
        """What is wrong with the batch, for a message."""
        return f"its {_WORDS[self.field]} is {self.wrong}, and must be {self.right}: {self.proof}"

    def apply(self, source: PatchedSource) -> None:
        """Let a source show the right field."""
        width = _WIDTHS[self.field]
        source.patch(self.position + _AT[self.field], self.right.to_bytes(width, "big", signed=True))


def proven_repairs(source: PatchedSource, scan: SegmentScan, location: Location, limits: Limits) -> list[Repair]:
    """The repairs that the bytes of a segment prove, by position; at most one for each batch.

    A repair may make another one possible: the segment must be scanned again with them.
    """
    from format.log.damaged_batches import CandidateSearch  # verify imports this module for sound logs too

    search = CandidateSearch(source, source.size_bytes, limits)
    found = [
        repair
        for bad in scan.bad
        if bad.length <= search.most_bytes and not bad.is_repeat
        and (repair := _of_damage(source, search, bad)) is not None
    ]  # fmt: skip
    found += _of_base_offsets(scan)
    found += _of_leader_epochs(scan.table, scan, location, limits)
    return sorted(found, key=lambda each: each.position)


def _of_damage(source: PatchedSource, search: CandidateSearch, bad: BadBytes) -> Repair | None:
    """The repair of the length or the magic of a damaged batch."""
    from format.log.damaged_batches import wrong_field

    end = bad.position + bad.length
    wrong = wrong_field(source, search, bad.position, end)
    if wrong is None:  # more than one damaged batch
        _, length = LOG_ENTRY.struct.unpack(
            source.read_at(bad.position, LOG_ENTRY.size_bytes).ljust(LOG_ENTRY.size_bytes)
        )
        own_end = bad.position + LOG_ENTRY.size_bytes + length
        if bad.position < own_end < end:
            end, wrong = own_end, wrong_field(source, search, bad.position, own_end)
    if wrong is None:
        return None
    proof = "with it the CRC is right"
    if wrong.field == "length":
        proof += ", and the batch ends " + (
            "with the file" if end >= source.size_bytes else "where the next one starts"
        )
    size_bytes = end - bad.position
    return Repair(
        bad.position, size_bytes, wrong.field, wrong.wrong, wrong.right, proof, wrong.first_offset, wrong.last_offset
    )


def _of_base_offsets(scan: SegmentScan) -> list[Repair]:
    table, found = scan.table, []
    for row in np.flatnonzero(scan.placement.right_offset >= 0).tolist():
        # The offset of a compressed message is that of its last inner one.
        right = int(scan.placement.right_offset[row])
        last = right + int(table.last_offset_delta[row])
        is_wrapper = bool(table.is_wrapper[row])
        if is_wrapper and table.magic[row] == 0:
            continue  # its inner messages have offsets of their own, which a CRC covers
        delta = int(table.last_offset_delta[row]) if is_wrapper else 0
        wrong = int(table.base_offset[row]) + delta
        position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
        proof = scan.placement.proofs[row]
        found.append(Repair(position, size_bytes, "base_offset", wrong, right + delta, proof, right, last))
    return found


def _of_leader_epochs(table: BatchTable, scan: SegmentScan, location: Location, limits: Limits) -> list[Repair]:
    """Epochs never fall, so that one between two equal epochs is the same.

    Of two batches between which the epoch falls, one is false if the leader-epoch-checkpoint has another epoch there.
    """
    rows = np.flatnonzero(scan.is_kept & (table.magic == _V2))
    epoch = table.leader_epoch[rows]
    least = np.concatenate(([-1], epoch[:-1]))
    most = np.append(epoch[1:], _first_epoch(Path(location.path), scan.offsets.last + 1))
    most[most < 0] = _MAX_EPOCH
    proof = "the batches before and after it have this one, and epochs never fall"
    is_between = (least == most) & (epoch != most)
    right = {int(row): (int(each), proof) for row, each in zip(rows[is_between], most[is_between], strict=True)}
    proof = "the leader-epoch-checkpoint has this one there, and epochs never fall"
    is_doubtful = ((epoch < least) | (epoch > most)) & ~is_between & (epoch != layout.NO_LEADER_EPOCH)
    entries = _checkpoint_entries(location, limits) if is_doubtful.any() else ()
    for row, low, high in zip(*(each[is_doubtful].tolist() for each in (rows, least, most)), strict=True):
        base, last = int(table.base_offset[row]), table.last_offset_of(row)
        known = [each for each in entries if each.start_offset <= last]
        if known and known[-1].start_offset <= base and low <= known[-1].leader_epoch <= high:
            right[row] = known[-1].leader_epoch, proof
    return [
        Repair(
            int(table.position[row]),
            int(table.size_bytes[row]),
            "leader_epoch",
            int(table.leader_epoch[row]),
            value,
            proof,
            int(table.base_offset[row]),
            table.last_offset_of(row),
        )
        for row, (value, proof) in right.items()
    ]


def _first_epoch(log: Path, next_base_offset: int) -> int:
    """The leader epoch of the first batch of the next segment; -1 if there is none."""
    path = log.with_name(segment_file_name(next_base_offset, layout.LOG_SUFFIX))
    try:
        if not is_there(path):
            return -1
        with FileSource(path) as source:
            table = headers_in(memoryview(source.read_at(0, HEADER_BYTES)), 0)
    except KafkaLogError:
        return -1
    return int(table.leader_epoch[0]) if len(table) and table.magic[0] == _V2 else -1


def _checkpoint_entries(location: Location, limits: Limits) -> tuple[EpochEntry, ...]:
    """The entries of the leader-epoch-checkpoint beside a log, in order; none if it is not plainly right."""
    path = Path(location.path).with_name(layout.LEADER_EPOCH_CHECKPOINT)
    try:
        checkpoint = leader_epoch_checkpoint.read(path, limits) if is_there(path) else None
    except KafkaLogError:
        return ()  # another finding reports it
    return () if checkpoint is None or checkpoint.problems else checkpoint.entries
