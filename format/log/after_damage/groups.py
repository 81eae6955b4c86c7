"""Groups of consecutive intact batches, and whether they certainly belong to the log.

The value of a record may be a copy of a batch, or a whole segment, and is then found inside a damaged batch. The last
batch in a value is followed by the rest of the record; the batches of a log are followed by more of the log, or its
end.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
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

_FIRST_BYTES = 4 * 1024
_MOST_BYTES = 4 * 1024 * 1024
#: A batch before this many zero bytes is not in a value: the zeros were preallocated, or a disk lost a block.
_ZERO_BYTES = 4096
#: A group of this many bytes or more is not a value.
_CERTAIN_BYTES = 64 * 1024 * 1024
_OFFSET_BYTES = layout.LOG_ENTRY.offset_of("length")
_MAX_OFFSET = 2**63 - 1


class Block(msgspec.Struct, frozen=True):
    """Batches of a group that were read at once: their positions, and the lowest and highest of the possible offsets.

    ``count`` are the batches with possible offsets; ``is_rising`` if each starts after the end of the one before.
    """

    start: int
    end: int
    count: int
    first_offset: int
    last_offset: int
    is_rising: bool


class Group(msgspec.Struct):
    """Consecutive intact batches from ``start`` to ``end``, after a gap from ``gap_start`` without intact batches.

    ``is_led_to`` if they start at the end of the batch before them, by its length; ``is_certain`` if they belong to the
    log and not to a value.
    """

    gap_start: int
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

    def next_group(self, gap_start: int) -> Group | None:
        """The first group at or after ``gap_start``; batches with a wrong CRC and a right length are skipped."""
        at = self._after_trusted(gap_start)
        first = self._search.intact_at(at) or next(self._search.intact_from(at + 1), None)
        if first is None:
            return None
        group = self._extended(gap_start, first, is_led_to=first.position == at)
        value_end = value_end_in_message(self._source, gap_start, first.position)
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

    def _extended(self, gap_start: int, first: Header, *, is_led_to: bool) -> Group:
        """The group that starts with an intact batch.

        After damage, a v0 or v1 message whose offset does not rise starts another group: the value of the damaged
        message may end just before it.
        """
        group = Group(gap_start, first.position, first.position, is_led_to)
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
        """Whether the bytes after a group cannot be the rest of a record, so that the group is not in a value."""
        if group.end >= self._end or group.end - group.start >= _CERTAIN_BYTES:
            return True
        rest = self._source.read_at(group.end, min(_ZERO_BYTES, self._end - group.end))
        if not any(rest):
            return True
        # The CRC does not cover the base offset, so that an intact batch may have a negative one.
        expected = (last_offset + 1).to_bytes(_OFFSET_BYTES + 1, "big", signed=True)[1:]
        return expected.startswith(rest[:_OFFSET_BYTES])

    def _is_boundary(self, start: int, position: int) -> bool:
        """Whether a batch starts at ``position``, by the lengths from the batch at ``start`` on."""
        while start < position:
            header = read_header(self._source, start)
            if header is None:
                return False
            start = header.end_position
        return start == position
