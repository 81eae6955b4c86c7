"""The walk over a log: from batch header to batch header, with checks of CRCs, and past damage.

A log to which a part of itself was appended has repeated batches: batches with the same offsets, size and CRC as an
earlier one. The offsets of a sound log rise, so no batch is remembered until an offset does not rise; then the headers
before it are read again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import NotInBundle
from format.io.source import FileSource, HeadersOnly, Source
from format.kernel.headers import HOP_STOPS, find_candidate, hop
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import (
    WHOLE_LOG,
    BatchChunk,
    BatchRange,
    Damage,
    HeaderChunk,
    OffsetRange,
    offset_before,
    possible_offsets,
)
from format.log.batch_header import MAGIC_AT, checked_crcs, has_right_crc, header_tables, no_batch_words, read_header
from format.log.batch_table import BATCH_COLUMN, BatchTable, HeaderTable, Int64Column
from format.log.read_records import open_wrappers
from format.offset_ranges import without

if TYPE_CHECKING:
    from format.log.after_damage import Survey
    from format.log.damaged_batches import CandidateSearch, ChainTrust, WrongField


Keys = NDArray[np.bytes_]


class RepeatedBatches:
    """Finds the repeated batches of one file.

    Tables must be passed in log order. ``read_from`` is the position in the file from which on batches were read, and
    ``after_offset`` the last offset before the first table.
    """

    def __init__(self, source: Source, read_from: int, after_offset: int | None) -> None:
        self._source = source
        self._read_from = read_from
        self._highest = -1 if after_offset is None else after_offset
        self._passed_over = array("q")  # starts and ends of bytes that are not an intact batch
        self._seen: list[Keys] | None = None  # sorted

    def pass_over(self, start: int, end: int) -> None:
        """Record a range of bytes that is not an intact batch."""
        self._passed_over.extend((start, end))

    def in_table(self, table: BatchTable) -> NDArray[np.bool_] | None:
        """Which batches of the next table repeat an earlier one; None if none does. CRCs must be computed."""
        sums = table.sums
        if self._seen is None and sums.follows and sums.right_crcs == len(table) and sums.least_offset > self._highest:
            self._highest = max(self._highest, table.last_offset_of(len(table) - 1))
            return None  # the usual case
        is_intact = table.crc_valid == 1
        for row in np.flatnonzero(~is_intact).tolist():
            self.pass_over(int(table.position[row]), int(table.end_position[row]))
        intact = table if is_intact.all() else table.rows(is_intact)
        if not len(intact):
            return None
        if self._seen is None:
            before = np.concatenate(([self._highest], intact.last_offset[:-1]))
            if (intact.base_offset > np.maximum.accumulate(before)).all():
                self._highest = max(self._highest, int(intact.last_offset.max()))
                return None
            self._seen = []
            self._read_again(int(intact.position[0]))
        keys = _keys(intact)
        repeats = np.ones(len(keys), bool)
        repeats[np.unique(keys, return_index=True)[1]] = False
        for seen in self._seen:
            repeats |= seen[np.minimum(np.searchsorted(seen, keys), len(seen) - 1)] == keys
        self._remember(keys[~repeats])
        if not repeats.any():
            return None
        repeated = np.zeros(len(table), bool)
        repeated[np.flatnonzero(is_intact)] = repeats
        return repeated

    def _read_again(self, stop: int) -> None:
        """Remember the batches from ``read_from`` up to ``stop``."""
        gaps = np.array(self._passed_over, np.int64).reshape(-1, 2)
        position = self._read_from
        for start, end in [*gaps.tolist(), (stop, stop)]:
            for table in header_tables(self._source, position, min(start, stop)):
                self._remember(_keys(table.unopened()))
            position = max(position, end)
        self._passed_over = array("q")

    def _remember(self, more: Keys) -> None:
        """Add batches; small pieces are joined to larger ones, so that there are few pieces to search."""
        seen = self._seen
        if seen is None or not len(more):
            return
        while seen and len(seen[-1]) < 2 * len(more):
            more = np.concatenate((seen.pop(), more))
        seen.append(np.sort(more))


def _keys(table: BatchTable) -> Keys:
    """The offset, size and CRC of each batch as 16 bytes, which can be sorted and compared."""
    both = np.column_stack((table.base_offset, table.size_bytes << 32 | table.crc))
    return np.ascontiguousarray(both, ">i8").view("S16").ravel()


def recorded_damage(bundled: HeadersOnly, position: int) -> Damage | None:
    """The damage that was found at a position, None for none."""
    found = bundled.damage.get(position)
    if found is None:
        return None
    return Damage(**{name: getattr(found, name) for name in Damage.__struct_fields__})


def is_cut_off(source: Source, position: int, end: int) -> bool:
    """Whether the bytes from ``position`` to the end of the file are the beginning of a batch, as a broker reads it.

    A broker ends the log there without an error, whatever the offset and the magic are; recovery cuts the bytes off
    (FileLogInputStream.nextBatch).
    """
    if end - position <= layout.UP_TO_MAGIC_BYTES:
        return True
    _, length = layout.LOG_ENTRY.struct.unpack_from(source.read_at(position, layout.LOG_ENTRY.size_bytes))
    end_position = position + layout.LOG_ENTRY.size_bytes + length
    return bool(length >= layout.MIN_MESSAGE_LENGTH and end_position > end)


def is_zero(source: Source, position: int, end: int) -> bool:
    """Whether there are only zero bytes from ``position`` to the end of the file; holes are not read."""
    while position < end:
        position, data_end = source.data_range(position)
        part = source.read_at(position, min(1 << 20, data_end - position, end - position))
        if part.count(0) != len(part):
            return False
        if not part:
            return position >= end
        position += len(part)
    return True


_PAST_END = "the batch ends past the end of the file"
_NO_BATCH = "no batch starts here: the offset or the attributes are impossible, and the CRC is wrong"
_COLUMN = BATCH_COLUMN
#: The bytes that are read at once for whole batches, and for headers only.
BODY_CHUNK_BYTES = 4 * 1024 * 1024
HEADER_CHUNK_BYTES = 64 * 1024
_TABLE_ROWS = 32 * 1024
#: The bytes of a chunk of compressed v0/v1 messages, whose content is kept until the chunk is done with.
_WRAPPER_CHUNK_BYTES = 1024 * 1024


def batch_chunks(
    source: Source,
    batch_range: BatchRange = WHOLE_LOG,
    *,
    check_crc: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    chunk_bytes: int = BODY_CHUNK_BYTES,
    offsets: OffsetRange | None = None,
) -> Iterator[BatchChunk]:
    """The batches of a range of a log, in chunks of bounded size, with the damage between them.

    The range must start at a batch boundary. Its ``read_from`` is the position at which reading of the log began, None
    for the start of the range: batches before the range may be repeated in it. After damage the next batch is found by
    its header and CRC, and by the offsets of all other batches; offsets outside ``offsets`` do not count. If
    ``offsets`` is None, the file's name limits the possible offsets. Raises the errors of the source.
    """
    return _walker(source, batch_range, limits, offsets).bodies(batch_range.start, chunk_bytes, check_crc)


class BatchWalk:
    """The chunks of a log from a position on, as ``batch_chunks`` yields them, without those that a caller skips."""

    def __init__(self, source: Source, batch_range: BatchRange, limits: Limits) -> None:
        self._position, self._walker = batch_range.start, _walker(source, batch_range, limits)
        self._chunks: Iterator[BatchChunk] | None = None

    def __iter__(self) -> BatchWalk:
        return self

    def __next__(self) -> BatchChunk:
        if self._chunks is None:
            self._chunks = self._walker.bodies(self._position, BODY_CHUNK_BYTES, True)
        return next(self._chunks)

    def skip(self, chunk: BatchChunk) -> None:
        """Go on after a chunk that is known to follow the one before, with its bytes and without damage."""
        self._walker.pass_by(chunk.table)
        self._position, self._chunks = chunk.buffer_position + chunk.covered_bytes, None


def header_chunks(
    source: Source,
    batch_range: BatchRange = WHOLE_LOG,
    *,
    limits: Limits = DEFAULT_LIMITS,
    chunk_bytes: int = HEADER_CHUNK_BYTES,
) -> Iterator[HeaderChunk]:
    """The batches of a range of a log by their headers alone, as ``batch_chunks``; no CRC is checked."""
    return _walker(source, batch_range, limits).headers(batch_range.start, chunk_bytes)


def _walker(source: Source, batch_range: BatchRange, limits: Limits, offsets: OffsetRange | None = None) -> _Walker:
    """The walk over a range: with damage as it is found, or for a log in a bundle as it was found before."""
    is_bundled = isinstance(source, FileSource) and source.headers_only is not None
    return (_RecordedWalker if is_bundled else _Walker)(source, batch_range, limits, offsets)


class _Walker:
    """The state of one walk: the last offset that was seen, and what is known of damage and repeated batches."""

    def __init__(self, source: Source, batch_range: BatchRange, limits: Limits, offsets: OffsetRange | None) -> None:
        after_offset = batch_range.after_offset
        read_from = batch_range.start if batch_range.read_from is None else batch_range.read_from
        self.source = source
        self.end = source.size_bytes if batch_range.end is None else min(batch_range.end, source.size_bytes)
        self.limits = limits
        self.last_offset = after_offset
        #: The offset before the base offset in the file's name, for a log that is read from its start on.
        self.before_first = offset_before(source.path) if read_from == 0 and after_offset is None else None
        self.bundled = source.headers_only if isinstance(source, FileSource) else None
        self._repeated = RepeatedBatches(source, read_from, after_offset)
        self._lost_to = -1  # the last offset that was reported as lost
        self._offsets = possible_offsets(source.path) if offsets is None else offsets
        self._status = np.zeros(3, np.int64)
        self._scratch = np.empty((0, len(_COLUMN)), np.int64)

    @cached_property
    def _after_damage(self) -> tuple[ChainTrust, Survey, CandidateSearch]:
        """The classes that search after damage; their modules are imported at the first damage."""
        from format.log.after_damage import Survey
        from format.log.damaged_batches import CandidateSearch, ChainTrust

        search = CandidateSearch(self.source, self.end, self.limits)
        trust = ChainTrust(self.source, self.end, search)
        return trust, Survey(self.source, self.end, self.limits, search, self._offsets), search

    def _hop(self, buffer: memoryview, position: int) -> tuple[Int64Column, str, int]:
        """Rows of the headers in the buffer, why the hop stopped (HOP_STOPS), and the position of the next header."""
        count = hop(buffer, 0, len(buffer), position, memoryview(self._scratch), 0, memoryview(self._status))
        return self._scratch[:count].copy(), HOP_STOPS[self._status[0]], position + int(self._status[1])

    def pass_by(self, table: BatchTable) -> None:
        """Note batches that are not walked over: they follow, and all are sound."""
        self._repeated.in_table(table)
        self.last_offset = table.last_offset_of(len(table) - 1)

    def _make_scratch(self, chunk_bytes: int) -> None:
        """Make room for the rows of a chunk: a look-up reads a few headers, and a large table takes longer to make."""
        rows = min(_TABLE_ROWS, chunk_bytes // layout.MESSAGE_V0.size_bytes + 1)
        self._scratch = np.empty((rows, len(_COLUMN)), np.int64)

    def headers(self, start: int, chunk_bytes: int) -> Iterator[HeaderChunk]:
        self._make_scratch(chunk_bytes)
        position = start
        last_row_at = start  # position of the last batch that was yielded
        self._status[2] = 0
        while position < self.end:
            buffer = memoryview(self.source.read_at(position, min(chunk_bytes, self.end - position)))
            columns, stop, next_position = self._hop(buffer, position)
            at_end = position + len(buffer) >= self.end
            reason = ""
            if next_position > self.end:  # the last row's batch is cut off, or its length is wrong
                columns, next_position = columns[:-1], int(columns[-1, _COLUMN["position"]])
                reason = _PAST_END
            elif stop == "suspicious" and not self._is_intact(next_position):
                is_cut = is_cut_off(self.source, next_position, self.end)
                reason = _PAST_END if is_cut else _NO_BATCH
            elif stop in ("bad-length", "bad-magic") or (stop == "more-bytes" and at_end):
                reason = no_batch_words(stop, buffer[next_position - position :])
            damage = None
            if reason:
                columns, next_position = self._retreated(columns, next_position, last_row_at)
            self._remember(columns)
            if reason:
                damage = self._damage(next_position, reason)
            if len(columns):
                last_row_at = int(columns[-1, _COLUMN["position"]])
            if len(columns) or damage:
                yield HeaderChunk(headers=HeaderTable(columns), buffer_position=position, damage=damage, window=buffer)
            position = next_position if damage is None else damage.position + damage.length
            if damage is not None:
                self._status[2] = damage.next_base_offset or 0
            elif stop == "suspicious":
                yield self._one_header(position)
                last_row_at, position = position, position + int(self._scratch[0, _COLUMN["size_bytes"]])

    def _one_header(self, position: int) -> HeaderChunk:
        """The batch at a position, with any offset; the offsets after it are compared with its offset."""
        self._status[2] = -1
        buffer = memoryview(self.source.read_at(position, layout.RECORD_BATCH.size_bytes))
        hop(buffer, 0, len(buffer), position, memoryview(self._scratch[:1]), 0, memoryview(self._status))
        columns = self._scratch[:1].copy()
        self._remember(columns)
        self._status[2] = max(int(columns[0, _COLUMN["base_offset"]]), 0)
        return HeaderChunk(headers=HeaderTable(columns), buffer_position=position)

    def _is_intact(self, position: int) -> bool:
        """Whether a batch with a right CRC is at a position, with any base offset and attributes."""
        header = self.source.read_at(position, layout.RECORD_BATCH.size_bytes)
        if len(header) < layout.RECORD_BATCH.size_bytes:
            return False
        _, length = layout.LOG_ENTRY.struct.unpack_from(header)
        size_bytes = layout.LOG_ENTRY.size_bytes + length
        magic = header[layout.RECORD_BATCH.offset_of("magic")]
        least = layout.RECORD_BATCH.size_bytes if magic == 2 else layout.MESSAGE_V0.size_bytes
        if size_bytes < least or position + size_bytes > self.end:
            return False
        return has_right_crc(self.source, position, size_bytes, magic)

    def _retreated(self, columns: Int64Column, damaged_from: int, last_row_at: int) -> tuple[Int64Column, int]:
        """The rows before damage without those that may have led to it by a wrong length, and the start of the damage.

        CRCs were not checked so far; those of the removed rows are. The batch that was yielded last is not removed.
        """
        while True:
            position = int(columns[-1, _COLUMN["position"]]) if len(columns) else last_row_at
            header = read_header(self.source, position) if position < damaged_from else None
            if header is None or has_right_crc(self.source, position, header.size_bytes, header.magic):
                return columns, damaged_from
            if self._is_trusted(position):
                return columns, damaged_from
            damaged_from = position
            if not len(columns):
                return columns, damaged_from
            columns = columns[:-1]

    def bodies(self, start: int, chunk_bytes: int, check_crc: bool) -> Iterator[BatchChunk]:
        self._make_scratch(chunk_bytes)
        position = start
        want = chunk_bytes
        rest: memoryview | None = None  # the rest of a buffer after a full table
        self._status[2] = -1
        while position < self.end:
            after_offset = self.last_offset
            buffer = memoryview(self.source.read_at(position, min(want, self.end - position))) if rest is None else rest
            want = chunk_bytes
            is_rest, rest = rest is not None, None
            columns, stop, next_position = self._hop(buffer, position)
            buffer_end = position + len(buffer)
            at_end = buffer_end >= self.end
            damage = None
            if next_position > buffer_end and len(columns):  # the last batch ends after the buffer
                last_position, last_size = (int(n) for n in columns[-1, :2])
                columns, next_position = columns[:-1], last_position
                if last_position + last_size > self.end:
                    stop = "past-end"
                elif last_size > self.limits.max_decompressed_bytes + layout.RECORD_BATCH.size_bytes:
                    stop = "too-large"
                elif not len(columns):
                    if not is_rest:
                        want = max(last_size, chunk_bytes)  # a batch larger than a chunk: read all of it
                    continue
                else:
                    stop = "more-bytes"
                    at_end = False
            has_wrappers = bool(HeaderTable(columns).is_wrapper.any())
            count = len(columns)
            if has_wrappers:  # few of them belong to one chunk
                positions = columns[:, _COLUMN["position"]]
                count = max(int(np.searchsorted(positions, position + _WRAPPER_CHUNK_BYTES)), 1)
            if count < len(columns):
                next_position, stop = int(columns[count, _COLUMN["position"]]), "table-full"
                columns, at_end = columns[:count], False
            headers = HeaderTable(columns)
            distrusted = repeated = None
            if check_crc:
                headers = headers.with_crcs(checked_crcs(headers, buffer, position))
                if not headers.crc_valid.all():
                    distrusted = self._first_distrusted(headers, buffer, position)
                if distrusted is not None:
                    next_position = int(headers.position[distrusted])
                    headers = headers.rows(slice(0, distrusted))
            table = headers.unopened()
            if check_crc:
                repeated = self._repeated.in_table(table)
            self._remember(table.columns, table.crc_valid)
            if distrusted is not None:
                damage = self._damage(next_position, "the CRC of the batch is wrong, and its length cannot be trusted")
            elif stop in ("bad-length", "bad-magic", "past-end", "too-large") or (stop == "more-bytes" and at_end):
                damage = self._damage_at(stop, next_position, buffer[next_position - position :])
            elif stop == "table-full":
                rest = buffer[next_position - position :]
            if len(table) or damage:
                next_offset = self._next_offset(next_position) if damage is None and table.crc_valid[-1] == 0 else None
                chunk = BatchChunk(
                    headers=headers,
                    buffer_position=position,
                    damage=damage,
                    after_offset=after_offset,
                    next_offset=next_offset,
                    table=table,
                    buffer=buffer,
                    repeated=repeated,
                )
                yield open_wrappers(chunk, self.limits) if has_wrappers else chunk
            position = next_position
            if damage is not None:
                position = damage.position + damage.length
                self._repeated.pass_over(damage.position, position)

    def _damage_at(self, stop: str, position: int, rest: memoryview) -> Damage:
        """The damage at a position at which a hop stopped; ``rest`` is the buffer from there on."""
        if stop == "past-end":
            return self._damage(position, _PAST_END)
        if stop != "too-large":
            return self._damage(position, no_batch_words(stop, rest))
        reason = f"the batch is larger than {self.limits.max_decompressed_bytes} bytes by its length"
        return self._too_large(position, reason) or self._damage(position, reason)

    def _next_offset(self, position: int) -> int | None:
        """The first offset of the batch at a position; None if there is no batch with a right CRC."""
        header = read_header(self.source, position) if position < self.end else None
        if header is None or header.end_position > self.end:
            return None
        if not has_right_crc(self.source, position, header.size_bytes, header.magic):
            return None
        return self._first_offset_at(position)

    def _first_distrusted(self, table: HeaderTable, buffer: memoryview, buffer_position: int) -> int | None:
        """The row of the first batch with a wrong CRC whose length cannot be trusted, None for none."""
        is_followed = table.header_offset[1:] == table.last_offset[:-1] + 1
        is_followed &= (table.magic[1:] == 2) | (table.codec[1:] == 0)
        is_followed = np.append(is_followed, False)
        for row in np.flatnonzero(table.crc_valid == 0).tolist():
            position, size_bytes = int(table.position[row]), int(table.size_bytes[row])
            start = position - buffer_position
            is_alone = find_candidate(buffer, start + 1, start + size_bytes, 0, size_bytes - 1) < 0
            if not (is_followed[row] and is_alone) and not self._is_trusted(position):
                return int(row)
        return None

    def _is_trusted(self, position: int) -> bool:
        """Whether the length of a batch with a wrong CRC is right: the next batch starts there, and none before."""
        from format.log.damaged_batches import Trust

        chain_trust, survey, _ = self._after_damage
        trust = chain_trust.trust_in(position)
        if trust is not Trust.OPEN:
            return trust is Trust.YES
        header = read_header(self.source, position)
        found = survey.next_after(position, self.last_offset)
        return header is None or found is None or found.position >= header.end_position

    def _remember(self, columns: Int64Column, crc_valid: NDArray[np.int8] | None = None) -> None:
        """Set ``last_offset`` from the last row whose CRC is not wrong."""
        row = len(columns) - 1
        if crc_valid is not None and row >= 0 and crc_valid[row] == 0:
            good = np.flatnonzero(crc_valid)
            row = int(good[-1]) if len(good) else -1
        if row >= 0:
            last = columns[row]
            self.last_offset = int(last[_COLUMN["base_offset"]]) + int(last[_COLUMN["last_offset_delta"]])

    def _too_large(self, position: int, reason: str) -> Damage | None:
        """A batch over the limit that is left out, if a batch follows it and its length is thus right; None if not."""
        header = read_header(self.source, position)
        if header is None or not self._after_damage[0].leads_on(header):
            return None
        after, self.last_offset = self.last_offset, header.last_offset
        return Damage("limit-exceeded", position, header.size_bytes, f"{reason}; it was left out", after)

    def _damage(self, position: int, reason: str) -> Damage:
        """The damage from ``position`` to the next intact batch, or to the end of the file."""
        after = self.last_offset
        found = self._after_damage[1].next_after(position, after)
        if found is not None:
            if found.proof:
                reason = f"{reason}; {found.proof}"
            first = self._first_offset_at(found.position)
            length, lost = found.position - position, self._lost_offsets(position, found.position, first)
            wrong = self._wrong_field(position, found.position) if found.proof else None
            readable = None if wrong is None else wrong.readable
            if lost is not None and readable is not None:
                lost = next(iter(without([lost], [readable])), None)
            return Damage(
                "log-framing-broken", position, length, reason, after, first, lost_offsets=lost, readable=readable
            )
        is_cut = is_cut_off(self.source, position, self.end)
        header = self.source.read_at(position, layout.UP_TO_MAGIC_BYTES + 1)
        has_magic = len(header) <= layout.UP_TO_MAGIC_BYTES or header[MAGIC_AT] <= 2
        code = "tail-torn" if is_cut and has_magic else "log-framing-broken"
        # Fewer zeros may be the start of a torn batch: of its base offset.
        if self.end - position >= layout.LOG_ENTRY.size_bytes and is_zero(self.source, position, self.end):
            code, reason = "tail-zeros", "only zero bytes up to the end of the file"
        lost_from, readable = self._lost_from(position), None
        wrong = None if code == "tail-zeros" else self._wrong_field(position, self.end)
        if wrong is not None:
            is_cut = False
            code, reason, readable = "log-framing-broken", f"{reason}; {wrong.words}", wrong.readable
            if lost_from is not None and readable is not None and readable[0] <= lost_from:
                lost_from = max(lost_from, readable[1] + 1)
        return Damage(
            code, position, self.end - position, reason, after, reaches_end=True, lost_from=lost_from,
            readable=readable, is_cut=is_cut,
        )  # fmt: skip

    def _wrong_field(self, position: int, end: int) -> WrongField | None:
        """The only wrong field of the damaged batch from ``position`` to ``end``, if that is proven."""
        from format.log.damaged_batches import wrong_field

        search = self._after_damage[2]
        return wrong_field(self.source, search, position, end) if end - position <= search.most_bytes else None

    def _lost_offsets(self, position: int, next_position: int, next_offset: int) -> tuple[int, int] | None:
        """The first and last offset that are lost in damage: those between the batches around it, None for none.

        A batch after it with an offset that the segment cannot have is passed over: its base offset is false. If some
        batches are not in the longest chain, they are the offsets between the chain's batches around it. No offset is
        returned twice, although batches between two damages may not be in the chain.
        """
        until = next_offset
        chain = self._after_damage[1].chain_around(position)
        if chain is not None:
            if chain[1] is None:
                return None
            until = self._first_offset_at(chain[1])
        elif not self._offsets.first <= next_offset <= self._offsets.last:
            until = self._possible_offset_from(next_position)
        first = self._lost_from(position)
        if first is None or first >= until:
            return None
        self._lost_to = until - 1
        return first, until - 1

    def _possible_offset_from(self, position: int) -> int:
        """The first offset of the first intact batch from a position on that the segment can have; -1 for none."""
        for table in header_tables(self.source, position, self.end):
            for each in self._offsets.possible(table.unopened()).position.tolist():
                if self._after_damage[2].intact_at(each) is not None:
                    return self._first_offset_at(each)
        return -1

    def _lost_from(self, position: int) -> int | None:
        """The first offset that may be lost in damage and was not reported yet; None if it is unknown."""
        chain = self._after_damage[1].chain_around(position)
        before = self.last_offset if chain is None else chain[0]
        if before is None:
            before = self.before_first
        return None if before is None else max(before, self._lost_to) + 1

    def _first_offset_at(self, position: int) -> int:
        """The first offset of the batch at a position; for a compressed v0/v1 message that of its first inner one."""
        header = read_header(self.source, position)
        if header is None:
            return -1  # an intact batch with a negative offset, or the file has changed
        if not header.is_wrapper:
            return header.base_offset
        where = BatchRange(position, header.end_position)
        for chunk in batch_chunks(self.source, where, check_crc=False, limits=self.limits):
            if len(chunk.table):
                return int(chunk.table.base_offset[0])
        return header.base_offset


class _RecordedWalker(_Walker):
    """A walk over the headers in a bundle, with the damage that was found when the bundle was made."""

    def bodies(self, start: int, chunk_bytes: int, check_crc: bool) -> Iterator[BatchChunk]:
        for chunk in super().bodies(start, chunk_bytes, False):
            for position, size_bytes in zip(
                chunk.table.position.tolist(), chunk.table.size_bytes.tolist(), strict=True
            ):
                if self.bundled is not None and self.bundled.stored_bytes(position) < size_bytes:
                    message = "the bundle has only the headers of this log, not its records"
                    raise NotInBundle(message, Location(self.source.path, position=position, length=size_bytes))
            yield replace(chunk, table=chunk.table.with_crcs(np.ones(len(chunk.table), np.int8)))

    def _is_intact(self, position: int) -> bool:
        return True

    def _retreated(self, columns: Int64Column, damaged_from: int, last_row_at: int) -> tuple[Int64Column, int]:
        return columns, damaged_from

    def _damage(self, position: int, reason: str) -> Damage:
        found = None if self.bundled is None else recorded_damage(self.bundled, position)
        if found is not None or self.bundled is None:
            return found or super()._damage(position, reason)
        end = min(self.bundled.next_header(position), self.end)
        return Damage("log-framing-broken", position, end - position, reason, self.last_offset, None, end == self.end)
