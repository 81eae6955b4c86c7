"""Groups of intact batches that lie one directly behind the other, and how certain it is that they are the log's.

The value of a record may be a batch image, or a whole segment, and then lies inside a damaged batch. Behind the last
batch of a value comes the rest of its record; behind the batches of a log comes more of the log, or its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from format import layout
from format.io.source import Source
from format.log.after_damage.candidates import CandidateSearch
from format.log.after_damage.chain_trust import ChainTrust, Trust
from format.log.after_damage.offset_range import OffsetRange
from format.log.after_damage.proofs import value_end_in_message
from format.log.batch_checksums import compute_crc_valid
from format.log.batch_header import HEADER_BYTES, Header, headers_in, read_header
from format.log.batch_table import BatchTable
from format.value_class import state_class, value_class

_FIRST_BYTES = 4 * 1024
_MOST_BYTES = 4 * 1024 * 1024
#: So many zero bytes behind a batch are no value: they were allocated ahead, or a disk lost a block.
_ZERO_BYTES = 4096
#: A group of so many bytes is no value.
_CERTAIN_BYTES = 64 * 1024 * 1024
_OFFSET_BYTES = layout.LOG_ENTRY.offset_of("length")
_MAX_OFFSET = 2**63 - 1


@value_class
class Block:
    """Some batches of a group that were read at once: where they lie, and between which possible offsets."""

    start: int
    end: int
    count: int
    first_offset: int
    last_offset: int
    is_rising: bool


@state_class
class Group:
    """Intact batches one directly behind the other, and where what lies before them starts that is none.

    ``is_led_to``: they begin where the batch before them ends, or says that it does.
    """

    gap_start: int
    start: int
    end: int
    is_led_to: bool
    is_certain: bool = False
    blocks: list[Block] = field(default_factory=list)


def block_of(table: BatchTable, end: int, offsets: OffsetRange) -> Block:
    """The block that these batches are."""
    start, possible = int(table.position[0]), offsets.possible(table)
    if not len(possible):
        return Block(start, end, 0, _MAX_OFFSET, -1, True)
    base, last = possible.base_offset, possible.last_offset
    is_rising = bool((base[1:] > last[:-1]).all())
    return Block(start, end, len(possible), int(base.min()), int(last.max()), is_rising)


class GroupSearch:
    """Finds the groups of one file in order."""

    def __init__(self, source: Source, end: int, search: CandidateSearch, offsets: OffsetRange) -> None:
        self._source = source
        self._end = end
        self._search = search
        self._offsets = offsets
        self._trust = ChainTrust(source, end, search)
        self._open_to = 0  # where a damaged batch ends, if its length is right

    def next_group(self, gap_start: int) -> Group | None:
        """The first group at or behind ``gap_start``; a batch with a wrong CRC whose length leads on is passed over."""
        at = self._behind_trusted(gap_start)
        first = self._search.intact_at(at) or next(self._search.intact_from(at + 1), None)
        if first is None:
            return None
        group = self._extended(gap_start, first, is_led_to=first.position == at)
        value_end = value_end_in_message(self._source, gap_start, first.position)
        if first.position < value_end < group.end and self._is_boundary(first.position, value_end):
            following = self._search.intact_at(value_end)  # the value of a v0 or v1 message, and then the log
            if following is not None:
                group = self._extended(gap_start, following, is_led_to=False)
        return group

    def _behind_trusted(self, position: int) -> int:
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

    def _extended(self, gap_start: int, first: Header, *, is_led_to: bool) -> Group:
        """The group that begins with an intact batch.

        Behind damage, a v0 or v1 message whose offset does not rise begins a group of its own: the value of the damaged
        message may end just before it.
        """
        group = Group(gap_start, first.position, first.position, is_led_to)
        is_behind_damage = not is_led_to
        last: int | None = None
        for table in self._tables(first.position):
            if is_behind_damage:
                base, before = table.base_offset, np.empty(len(table), np.int64)
                before[1:] = table.last_offset[:-1]
                before[0] = -1 if last is None else last
                falls = np.flatnonzero(base <= before)
                if len(falls) and falls[0] + (last is not None) and table.magic[falls[0]] < 2:
                    table = table.rows(slice(0, int(falls[0])))
                    self._add(group, table)
                    return group
                is_behind_damage = not len(falls)
            self._add(group, table)
            last = table.last_offset_of(len(table) - 1)
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
        """The intact batches from a position on, as long as there are any one behind the other."""
        want = _FIRST_BYTES
        while position < self._end:
            buffer = memoryview(self._source.read_at(position, min(want, self._end - position)))
            table = headers_in(buffer, position)
            whole = int(np.searchsorted(table.end_position, position + len(buffer), "right"))
            table = table.rows(slice(0, whole))
            if not whole:
                header = self._search.intact_at(position)
                if header is None:
                    return
                header_bytes = memoryview(self._source.read_at(position, HEADER_BYTES))
                yield headers_in(header_bytes, position)
                position = header.end_position
                continue
            compute_crc_valid(table, buffer, position)
            is_whole = bool(table.crc_valid.all())
            if not is_whole:
                table = table.rows(slice(0, int(np.argmin(table.crc_valid))))
            if len(table):
                yield table
                position = int(table.end_position[-1])
            if not is_whole:
                return
            want = min(4 * want, _MOST_BYTES)

    def _is_certain(self, group: Group, last_offset: int) -> bool:
        """Whether what lies behind a group comes behind a log, and behind no value."""
        if group.end >= self._end or group.end - group.start >= _CERTAIN_BYTES:
            return True
        rest = self._source.read_at(group.end, min(_ZERO_BYTES, self._end - group.end))
        if not any(rest):
            return True
        # A batch that is intact may still claim an offset below zero: that lies outside its CRC.
        expected = (last_offset + 1).to_bytes(_OFFSET_BYTES + 1, "big", signed=True)[1:]
        return expected.startswith(rest[:_OFFSET_BYTES])

    def _is_boundary(self, start: int, position: int) -> bool:
        """Whether hopping from the batch at ``start`` leads to ``position``."""
        while start < position:
            header = read_header(self._source, start)
            if header is None:
                return False
            start = header.end_position
        return start == position
