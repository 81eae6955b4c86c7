"""The intact batches of a log from its first damage on, and which of them belong to the log.

First all groups of intact batches up to the end of the file are found, then they are judged. If the bytes of a damaged
batch prove that a group is inside it, or starts at its end, that decides. Otherwise a group that may be a value belongs
to the log if its offsets fit: if at least half of one of its runs of consecutive offsets is in the longest chain of
batches with rising offsets through the whole file. So one batch with wrong offsets does not exclude many others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.io.source import Source
from format.limits import Limits
from format.log.after_damage.candidates import CandidateSearch
from format.log.after_damage.groups import Block, Group, GroupSearch, block_of
from format.log.after_damage.longest_chain import longest_chain
from format.log.after_damage.offset_range import OffsetRange
from format.log.after_damage.proofs import DamagedBatch
from format.log.batch_checksums import compute_crc_valid
from format.log.batch_chunk import BatchChunk
from format.log.batch_header import has_right_crc, header_tables, headers_in, read_header
from format.log.batch_table import BatchTable, Int64Column
from format.log.legacy_messages import open_wrappers

#: At most this many groups that may be values are read ahead before the first of them is judged.
_MOST_DOUBTFUL = 16
#: At most this many blocks are judged together; a file with more of them is damaged at every few bytes.
_MOST_BLOCKS = 1 << 19
#: Up to this many batches whose offsets contradict each other are compared one by one; above that, whole blocks are.
_MOST_WEIGHED = 1 << 21
_READ_BYTES = 4 * 1024 * 1024
_MAX_OFFSET = 2**63 - 1
#: The group number of the blocks before the first damage; their CRCs are checked only if their offsets do not rise.
_BEFORE = -1


class FoundBatch(msgspec.Struct, frozen=True):
    """The position at which the log continues after damage, and the proof by the bytes before it; empty for none."""

    position: int
    proof: str = ""


class Survey:
    """The groups of one file from its first damage on. The rest of the file is read at the first call."""

    def __init__(self, source: Source, end: int, limits: Limits, search: CandidateSearch, offsets: OffsetRange) -> None:
        self._source = source
        self._end = end
        self._limits = limits
        self._search = search
        self._offsets = offsets
        self._looked_to = -1
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._proofs: dict[int, str] = {}
        self._chain: _Chain | None = None

    def next_after(self, damaged_from: int, after_offset: int | None) -> FoundBatch | None:
        """The batch at which the log continues after ``damaged_from``, None for none.

        At ``damaged_from`` a batch should start but none does; it must rise from call to call. ``after_offset`` is the
        last offset before it, if known. Raises the errors of the source.
        """
        while True:
            if damaged_from >= self._looked_to:
                self._look(damaged_from, after_offset)
            number = bisect_right(self._starts, damaged_from)
            if number and damaged_from < self._ends[number - 1]:  # only headers are read, or the file is changing
                position = self._boundary_after(self._starts[number - 1], damaged_from)
                if position < self._ends[number - 1]:
                    return FoundBatch(position)
            if number < len(self._starts):
                position = self._starts[number]
                return FoundBatch(position, self._proofs.get(position, ""))
            if self._looked_to >= self._end:
                return None
            damaged_from = self._looked_to

    def chain_around(self, position: int) -> tuple[int | None, int | None] | None:
        """The last offset of the longest chain before a position, and the position of its next batch.

        None if all batches found so far are in the chain.
        """
        return None if self._chain is None else self._chain.around(position)

    def _look(self, start: int, after_offset: int | None) -> None:
        is_first = self._looked_to < 0
        found = _Found()
        self._looked_to = self._find_groups(start, found)
        blocks = found.blocks()
        if after_offset is not None:
            blocks = np.concatenate(([_row(Block(start, start, 1, after_offset, after_offset, True), -1)], blocks))
        is_kept = np.ones(len(found.starts), bool)
        self._chain = None
        if not _is_free(blocks).all():
            if is_first:
                before, hopped_to = self._blocks_before(start)
                if hopped_to < start:  # there is damage before the position at which the caller started to read
                    found = _Found()
                    self._looked_to = self._find_groups(hopped_to, found)
                blocks = np.concatenate((before, found.blocks()))
            is_doubtful = ~np.array(found.certain, bool)
            self._chain, is_kept = self._judged(blocks, is_doubtful)
        kept = np.flatnonzero(is_kept).tolist()
        self._starts, self._ends = [found.starts[each] for each in kept], [found.ends[each] for each in kept]
        self._proofs = found.proofs

    def _find_groups(self, start: int, found: _Found) -> int:
        """Add the groups that are not proven to be values to ``found``; returns the position up to which it looked."""
        groups = GroupSearch(self._source, self._end, self._search, self._offsets)
        ahead: deque[Group] = deque()
        gap_start, is_at_end = start, False
        while found.block_count < _MOST_BLOCKS:
            while not is_at_end and len(ahead) < _MOST_DOUBTFUL and not (ahead and ahead[-1].is_certain):
                group = groups.next_group(ahead[-1].end if ahead else gap_start)
                is_at_end = group is None
                ahead.extend([] if group is None else [group])
            if not ahead:
                break
            group, proof = ahead[0], ""
            if not group.is_led_to:
                damaged = DamagedBatch(self._source, gap_start, self._end, self._search)
                reaches_end = is_at_end or ahead[-1].end >= self._end
                number, proof = self._proven(damaged, gap_start, ahead, reaches_end)
                if proof and number == len(ahead):
                    break  # the damaged batch ends with the file
                for _ in range(number):
                    ahead.popleft()
                group = ahead[0]
                if not proof and (damaged.covers(group.start, group.end)):
                    gap_start = ahead.popleft().end
                    continue
            group.is_certain |= bool(proof)
            found.add(group, proof)
            gap_start = ahead.popleft().end
        else:
            return gap_start
        return self._end

    def _proven(self, damaged: DamagedBatch, gap_start: int, ahead: deque[Group], reaches_end: bool) -> tuple[int, str]:
        """The number of the group ahead that starts at the proven end of the damaged batch, and the proof.

        The number is ``len(ahead)`` if the batch ends with the file. The proof is empty for none.
        """
        for number, group in enumerate(ahead):
            if group.start - gap_start > self._search.most_bytes:
                return 0, ""
            proof = damaged.proof_of_end(group.start)
            if proof:
                return number, proof
        if reaches_end and self._end - gap_start <= self._search.most_bytes:
            proof = damaged.proof_of_end(self._end)
            return (len(ahead), proof) if proof else (0, "")
        return 0, ""

    def _blocks_before(self, stop: int) -> tuple[Int64Column, int]:
        """The batches before ``stop`` in blocks, by their headers, and the end of the last one."""
        found = array("q")
        position = 0
        for table in header_tables(self._source, 0, stop):
            position = int(table.end_position[-1])
            found.extend(_row(block_of(table, position, self._offsets), _BEFORE))
        return np.frombuffer(found, np.int64).reshape(-1, _WIDTH), position

    def _judged(self, blocks: Int64Column, is_doubtful: NDArray[np.bool_]) -> tuple[_Chain, NDArray[np.bool_]]:
        """The longest chain through all blocks, and which groups are kept: those that are certain, or in the chain."""
        is_free = _is_free(blocks)
        is_kept = ~is_doubtful
        of_group = blocks[is_free, _GROUP]
        is_kept[of_group[of_group >= 0]] = True
        rows = self._rows(blocks[~is_free], is_doubtful)
        in_chain = longest_chain(rows.base_offset, rows.last_offset, rows.count, rows.is_doubtful)
        is_kept[rows.groups_that_fit(in_chain)] = True
        position = np.concatenate((rows.position[in_chain], blocks[is_free, _START]))
        last_offset = np.concatenate((rows.last_offset[in_chain], blocks[is_free, _LAST]))
        order = np.argsort(position, kind="stable")
        return _Chain(position[order], last_offset[order]), is_kept

    def _rows(self, blocks: Int64Column, is_doubtful: NDArray[np.bool_]) -> _Rows:
        """The batches of some blocks one by one, or the blocks themselves if there are too many batches."""
        doubtful = np.append(is_doubtful, False)[blocks[:, _GROUP]]  # the appended one is for _BEFORE
        if int(blocks[:, _COUNT].sum()) > _MOST_WEIGHED:
            start, end, count, first, last, _, group = blocks.T
            return _Rows(start, end, first, last, count, group, doubtful)
        tables = [
            self._table(int(start), int(end), check_crc=group == _BEFORE)
            for start, end, group in blocks[:, (_START, _END, _GROUP)].tolist()
        ]
        lengths = [len(table) for table in tables]
        table = BatchTable.concatenated(tables)
        return _Rows(
            table.position,
            table.end_position,
            table.base_offset,
            table.last_offset,
            np.ones(len(table), np.int64),
            np.repeat(blocks[:, _GROUP], lengths),
            np.repeat(doubtful, lengths),
        )

    def _table(self, start: int, end: int, *, check_crc: bool) -> BatchTable:
        """The batches of a block with possible offsets and right CRCs; compressed v0/v1 messages are decompressed."""
        buffer = memoryview(self._source.read_at(start, min(_READ_BYTES, end - start)))
        table = headers_in(buffer, start)
        if check_crc and end - start <= len(buffer):
            compute_crc_valid(table, buffer, start)
        elif check_crc:
            sizes = zip(table.position.tolist(), table.size_bytes.tolist(), table.magic.tolist(), strict=True)
            table.crc_valid[:] = [has_right_crc(self._source, *each) for each in sizes]
        table = table.rows(table.crc_valid != 0)
        if table.is_wrapper.any() and end - start <= len(buffer):
            open_wrappers(BatchChunk(table, buffer, start), limits=self._limits)
        return self._offsets.possible(table)

    def _boundary_after(self, start: int, position: int) -> int:
        """The position of the first batch after ``position`` in a group that starts at ``start``."""
        while start <= position:
            header = read_header(self._source, start)
            if header is None:
                return position + 1  # the file has changed
            start = header.end_position
        return start


class _Found(msgspec.Struct):
    """The groups that were found, and the blocks of all of them as rows of numbers."""

    starts: list[int] = msgspec.field(default_factory=list)
    ends: list[int] = msgspec.field(default_factory=list)
    certain: list[bool] = msgspec.field(default_factory=list)
    proofs: dict[int, str] = msgspec.field(default_factory=dict)
    _blocks: array[int] = msgspec.field(default_factory=lambda: array("q"))

    @property
    def block_count(self) -> int:
        return len(self._blocks) // _WIDTH

    def add(self, group: Group, proof: str) -> None:
        number = len(self.starts)
        self.starts.append(group.start)
        self.ends.append(group.end)
        self.certain.append(group.is_certain)
        if proof:
            self.proofs[group.start] = proof
        for block in group.blocks:
            self._blocks.extend(_row(block, number))

    def blocks(self) -> Int64Column:
        return np.array(self._blocks, np.int64).reshape(-1, _WIDTH)


#: The columns of blocks.
_START, _END, _COUNT, _FIRST, _LAST, _IS_RISING, _GROUP = range(7)
_WIDTH = 7


def _row(block: Block, group: int) -> tuple[int, ...]:
    where = (block.start, block.end, block.count)
    return (*where, block.first_offset, block.last_offset, int(block.is_rising), group)


def _is_free(blocks: Int64Column) -> NDArray[np.bool_]:
    """Which blocks fit into every chain: all offsets before them are lower, and all offsets after them are higher."""
    first, last = blocks[:, _FIRST], blocks[:, _LAST]
    before = np.maximum.accumulate(np.concatenate(([-1], last)))[:-1]
    after = np.minimum.accumulate(np.concatenate(([_MAX_OFFSET], first[::-1])))[:-1][::-1]
    is_free: NDArray[np.bool_] = (blocks[:, _IS_RISING] != 0) & (first > before) & (last < after)
    return is_free & (blocks[:, _COUNT] > 0)


class _Rows(msgspec.Struct, frozen=True):
    """Batches, or blocks of batches, one row each, between which the longest chain chooses."""

    position: Int64Column
    end_position: Int64Column
    base_offset: Int64Column
    last_offset: Int64Column
    count: Int64Column
    group: Int64Column
    is_doubtful: NDArray[np.bool_]

    def groups_that_fit(self, in_chain: NDArray[np.bool_]) -> Int64Column:
        """The numbers of the groups of which at least half of one run of consecutive offsets is in the chain.

        Batches with the same offsets as a batch in the chain do not count.
        """
        if not in_chain.any():
            return np.empty(0, np.int64)
        goes_on = (self.group[1:] == self.group[:-1]) & (self.position[1:] == self.end_position[:-1])
        goes_on &= self.base_offset[1:] == self.last_offset[:-1] + 1
        first = np.flatnonzero(np.concatenate(([True], ~goes_on)))
        chosen = np.add.reduceat(in_chain * self.count, first)
        others = np.add.reduceat(~(in_chain | self._has_twin(in_chain)) * self.count, first)
        groups: Int64Column = self.group[first[(chosen > 0) & (chosen >= others)]]
        return np.extract(groups != _BEFORE, groups)

    def _has_twin(self, in_chain: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows have the same offsets as a row in the chain."""
        base, last = self.base_offset[in_chain], self.last_offset[in_chain]
        nearest = np.minimum(np.searchsorted(base, self.base_offset), len(base) - 1)
        has_twin: NDArray[np.bool_] = (base[nearest] == self.base_offset) & (last[nearest] == self.last_offset)
        return has_twin


class _Chain(msgspec.Struct, frozen=True):
    """Positions and last offsets of the batches in the longest chain; a block that is in it as a whole is one row."""

    position: Int64Column
    last_offset: Int64Column

    def around(self, position: int) -> tuple[int | None, int | None]:
        number = int(np.searchsorted(self.position, position))
        before = int(self.last_offset[number - 1]) if number else None
        return before, int(self.position[number]) if number < len(self.position) else None
