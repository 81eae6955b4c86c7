"""Reading after damage: which of the intact batches that follow belong to the log, and which are parts of values.

The value of a record may be a copy of a batch, or a whole segment, and is then found inside a damaged batch. First all
groups of consecutive intact batches up to the end of the file are found, then they are judged. If the bytes of a
damaged batch prove that a group is inside it, or starts at its end, that decides. The last batch in a value is followed
by the rest of the record; the batches of a log are followed by more of the log, or its end. Otherwise a group that may
be a value belongs to the log if its offsets fit: if at least half of one of its runs of consecutive offsets is in the
longest chain of batches with rising offsets through the whole file. So one batch with wrong offsets does not exclude
many others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.io.source import Source
from format.limits import Limits
from format.log.batch_chunk import BatchChunk, OffsetRange
from format.log.batch_header import (
    HEADER_BYTES,
    Header,
    checked_crcs,
    has_right_crc,
    header_tables,
    headers_in,
    read_header,
)
from format.log.batch_table import BatchTable, Int64Column
from format.log.damaged_batches import CandidateSearch, ChainTrust, DamagedBatch, Trust, value_end_in_message
from format.log.longest_chain import chosen_chain
from format.log.read_records import open_wrappers

_FIRST_BYTES = 4 * 1024
_MOST_BYTES = 4 * 1024 * 1024
#: A batch before this many zero bytes is not in a value: the zeros were preallocated, or a disk lost a block.
_ZERO_BYTES = 4096
#: Of a group that is certain since a damaged batch leads to it, this many bytes will do.
_ENOUGH_LED_TO_BYTES = 256 * 1024
#: A group of this many bytes or more is not a value.
_CERTAIN_BYTES = 64 * 1024 * 1024
#: Bytes that are an offset as little after the last one as this are not the rest of a record.
_NEAR_OFFSETS = 1 << 20
_OFFSET_BYTES = layout.LOG_ENTRY.offset_of("length")
_MAX_OFFSET = 2**63 - 1


class Block(NamedTuple):
    """Batches of a group that were read at once: their positions, and the lowest and highest of the possible offsets.

    ``batch_count`` are those with possible offsets; ``is_rising`` if each starts after the end of the one before.
    """

    start: int
    end: int
    batch_count: int
    first_offset: int
    last_offset: int
    is_rising: bool


class Group(msgspec.Struct):
    """Consecutive intact batches from ``start`` to ``end``, after a gap without intact batches.

    ``is_led_to`` if they start at the end of the batch before them, by its length; ``is_certain`` if they belong to the
    log and not to a value.
    """

    start: int
    end: int
    is_led_to: bool
    is_certain: bool = False
    blocks: list[Block] = msgspec.field(default_factory=list)


def block_of(table: BatchTable, end: int, offsets: OffsetRange) -> Block:
    """The block of these batches, which end at ``end``."""
    start, possible = int(table.position[0]), offsets.possible(table)
    if not len(possible):
        return Block(start, end, 0, _MAX_OFFSET, -1, True)
    base, last = possible.base_offset, possible.last_offset
    is_rising = bool((base[1:] > last[:-1]).all())
    return Block(start, end, len(possible), int(base.min()), int(last.max()), is_rising)


class GroupSearch:
    """Finds the groups of one file, in order."""

    def __init__(self, source: Source, end: int, search: CandidateSearch, offsets: OffsetRange) -> None:
        self._source = source
        self._end = end
        self._search = search
        self._offsets = offsets
        self._trust = ChainTrust(source, end, search)
        self._open_to = 0  # the end of the last damaged batch with Trust.OPEN, if its length is right

    def next_group(self, gap_start: int, *, may_be_cut: bool = False) -> Group | None:
        """The first group at or after ``gap_start``; batches with a wrong CRC and a right length are skipped.

        ``may_be_cut``: of a group that such a batch leads to, _ENOUGH_LED_TO_BYTES will do.
        """
        at = self._after_trusted(gap_start)
        first = self._search.intact_at(at) or next(self._search.intact_from(at + 1), None)
        if first is None:
            return None
        value_end = value_end_in_message(self._source, gap_start, first.position)
        is_led_to = first.position == at
        may_be_cut &= is_led_to and gap_start < at and value_end <= at
        group = self._extended(gap_start, first, is_led_to=is_led_to, is_cut=may_be_cut)
        if first.position < value_end < group.end and self._is_boundary(first.position, value_end):
            following = self._search.intact_at(value_end)  # the value of a v0 or v1 message, followed by the log
            if following is not None:
                group = self._extended(gap_start, following, is_led_to=False)
        return group

    def _after_trusted(self, position: int) -> int:
        """The position after the damaged batches from ``position`` on whose length is right."""
        while position < self._end:
            header = read_header(self._source, position)
            if header is None or self._search.intact_at(position) is not None:
                break
            if header.size_bytes > self._search.most_bytes:
                trust = Trust.YES if self._trust.leads_on(header) else Trust.NO
            else:
                trust = self._trust.trust_in(position)
            if trust is Trust.OPEN:
                self._open_to = max(self._open_to, header.end_position)
            if trust is not Trust.YES:
                break
            position = header.end_position
        return position

    def _extended(self, gap_start: int, first: Header, *, is_led_to: bool, is_cut: bool = False) -> Group:
        """The group that starts with an intact batch; ``is_cut``: only _ENOUGH_LED_TO_BYTES of it, and some more.

        After damage, a v0 or v1 message whose offset does not rise starts another group: the value of the damaged
        message may end just before it.
        """
        group = Group(first.position, first.position, is_led_to)
        is_after_damage = not is_led_to
        last: int | None = None
        for table in self._tables(first.position):
            if is_after_damage:
                base, before = table.base_offset, np.empty(len(table), np.int64)
                before[1:] = table.last_offset[:-1]
                before[0] = -1 if last is None else last
                falls = np.flatnonzero(base <= before)
                if len(falls) and falls[0] + (last is not None) and table.magic[falls[0]] < 2:
                    table = table.rows(slice(0, int(falls[0])))
                    self._add(group, table)
                    return group
                is_after_damage = not len(falls)
            self._add(group, table)
            last = table.last_offset_of(len(table) - 1)
            if is_cut and group.end - group.start >= _ENOUGH_LED_TO_BYTES:
                break
        if (is_led_to and gap_start < first.position) or first.position == self._open_to:
            group.is_certain = True
        elif group.end > self._open_to:
            group.is_certain = self._is_certain(group, -1 if last is None else last)
        return group

    def _add(self, group: Group, table: BatchTable) -> None:
        if len(table):
            group.end = int(table.end_position[-1])
            group.blocks.append(block_of(table, group.end, self._offsets))

    def _tables(self, position: int) -> Iterator[BatchTable]:
        """Consecutive intact batches from a position on, until the first gap."""
        want = _FIRST_BYTES
        while position < self._end:
            buffer = memoryview(self._source.read_at(position, min(want, self._end - position)))
            table = headers_in(buffer, position).unopened()
            whole = int(np.searchsorted(table.end_position, position + len(buffer), "right"))
            table = table.rows(slice(0, whole))
            if not whole:
                header = self._search.intact_at(position)
                if header is None:
                    return
                header_bytes = memoryview(self._source.read_at(position, HEADER_BYTES))
                yield headers_in(header_bytes, position).unopened()
                position = header.end_position
                want = min(4 * want, _MOST_BYTES)
                continue
            crc_valid = checked_crcs(table, buffer, position)
            is_whole = bool(crc_valid.all())
            table = table.with_crcs(crc_valid)
            if not is_whole:
                table = table.rows(slice(0, int(np.argmin(crc_valid))))
            if len(table):
                yield table
                position = int(table.end_position[-1])
            if not is_whole:
                return
            want = min(4 * want, _MOST_BYTES)

    def _is_certain(self, group: Group, last_offset: int) -> bool:
        """Whether the bytes after a group cannot be the rest of a record, so that the group is not in a value."""
        if group.end >= self._end or group.end - group.start >= _CERTAIN_BYTES:
            return True
        rest = self._source.read_at(group.end, min(_ZERO_BYTES, self._end - group.end))
        if not any(rest):
            return True
        if len(rest) >= _OFFSET_BYTES:  # a compressed v0 or v1 message has its last offset in front
            return 0 < int.from_bytes(rest[:_OFFSET_BYTES], "big") - last_offset <= _NEAR_OFFSETS
        # The CRC does not cover the base offset, so that an intact batch may have a negative one.
        expected = (last_offset + 1).to_bytes(_OFFSET_BYTES + 1, "big", signed=True)[1:]
        return expected.startswith(rest)

    def _is_boundary(self, start: int, position: int) -> bool:
        """Whether a batch starts at ``position``, by the lengths from the batch at ``start`` on."""
        while start < position:
            header = read_header(self._source, start)
            if header is None:
                return False
            start = header.end_position
        return start == position


#: At most this many groups that may be values are read ahead before the first of them is judged.
_MOST_DOUBTFUL = 16
#: At most this many blocks are judged together; a file with more of them is damaged at every few bytes.
_MOST_BLOCKS = 1 << 19
#: Up to this many batches whose offsets contradict each other are compared one by one; above that, whole blocks are.
_MOST_WEIGHED = 1 << 21
_READ_BYTES = 4 * 1024 * 1024
#: After a group of this many bytes that is certain to belong to the log, the rest of the file is left for later.
_ENOUGH_BYTES = 16 * 1024 * 1024
#: The group number of the blocks before the first damage; their CRCs are checked only if their offsets do not rise.
_BEFORE = -1


class FoundBatch(msgspec.Struct, frozen=True):
    """The position at which the log continues after damage, and the proof by the bytes before it; empty for none."""

    position: int
    proof: str = ""


class Survey:
    """The groups of one file from its first damage on.

    A call reads on to a long group that is certain, or else the rest of the file. Where offsets contradict each other,
    all groups of the file are judged together.
    """

    def __init__(self, source: Source, end: int, limits: Limits, search: CandidateSearch, offsets: OffsetRange) -> None:
        self._source = source
        self._end = end
        self._limits = limits
        self._search = search
        self._offsets = offsets
        self._looked_to = -1
        self._has_judged = False  # groups of the whole file, or of as much as can be judged together
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
        found = _Found()
        looked_to = self._find_groups(start, found)
        blocks = found.blocks()
        if after_offset is not None:
            blocks = np.concatenate(([(start, start, 1, after_offset, after_offset, True, _BEFORE)], blocks))
        is_kept = np.ones(len(found.starts), bool)
        self._chain = None
        if not _is_free(blocks).all():
            if not self._has_judged:
                before, hopped_to = self._blocks_before(start)
                if hopped_to < start or looked_to < self._end:  # not all groups of the file are found
                    found = _Found()
                    looked_to = self._find_groups(hopped_to, found, is_whole=True)
                blocks = np.concatenate((before, found.blocks()))
            self._has_judged = True
            is_doubtful = ~np.array(found.certain, bool)
            self._chain, is_kept = self._judged(blocks, is_doubtful)
        self._looked_to = looked_to
        kept = np.flatnonzero(is_kept).tolist()
        self._starts, self._ends = [found.starts[each] for each in kept], [found.ends[each] for each in kept]
        self._proofs = found.proofs

    def _find_groups(self, start: int, found: _Found, *, is_whole: bool = False) -> int:
        """Add the groups that are not proven to be values to ``found``; returns the position up to which it looked.

        ``is_whole``: not only up to a long group that is certain.
        """
        groups = GroupSearch(self._source, self._end, self._search, self._offsets)
        ahead: deque[Group] = deque()
        gap_start, is_at_end = start, False
        while found.block_count < _MOST_BLOCKS:
            may_end = not is_whole and all(found.certain)
            while not is_at_end and len(ahead) < _MOST_DOUBTFUL and not (ahead and ahead[-1].is_certain):
                group = groups.next_group(ahead[-1].end if ahead else gap_start, may_be_cut=may_end and not ahead)
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
            enough = _ENOUGH_LED_TO_BYTES if group.is_led_to else _ENOUGH_BYTES
            if may_end and group.is_certain and not ahead and group.end - group.start >= enough:
                return gap_start
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
            found.extend((*block_of(table.unopened(), position, self._offsets), _BEFORE))
        return np.frombuffer(found, np.int64).reshape(-1, _WIDTH), position

    def _judged(self, blocks: Int64Column, is_doubtful: NDArray[np.bool_]) -> tuple[_Chain, NDArray[np.bool_]]:
        """The longest chain through all blocks, and which groups are kept: those that are certain, or in the chain."""
        is_free = _is_free(blocks)
        is_kept = ~is_doubtful
        of_group = blocks[is_free, _GROUP]
        is_kept[of_group[of_group >= 0]] = True
        rows = self._rows(blocks[~is_free], is_doubtful)
        in_chain = chosen_chain(rows.base_offset, rows.last_offset, rows.count, rows.is_doubtful).is_kept
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
        headers = headers_in(buffer, start)
        is_read = end - start <= len(buffer)
        if check_crc and is_read:
            headers = headers.with_crcs(checked_crcs(headers, buffer, start))
        elif check_crc:
            sizes = zip(headers.position.tolist(), headers.size_bytes.tolist(), headers.magic.tolist(), strict=True)
            headers = headers.with_crcs(np.array([has_right_crc(self._source, *each) for each in sizes], np.int8))
        headers = headers.rows(headers.crc_valid != 0)
        table = headers.unopened()
        if is_read:
            chunk = BatchChunk(headers=headers, buffer_position=start, table=table, buffer=buffer)
            table = open_wrappers(chunk, self._limits).table
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
            self._blocks.extend((*block, number))

    def blocks(self) -> Int64Column:
        return np.array(self._blocks, np.int64).reshape(-1, _WIDTH)


#: The columns of blocks.
_START, _END, _COUNT, _FIRST, _LAST, _IS_RISING, _GROUP = range(7)
_WIDTH = 7


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
