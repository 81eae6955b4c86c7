"""Find the next intact batch after damage: by a plausible header, by its CRC, and by what follows it.

A header and a CRC are not enough: the value of a record may be a batch image, or a whole segment, and then lies inside
the damaged batch. So what follows a candidate is looked at too. The batches that a log goes on with lead to the end
of the file; an image in a value leads into the rest of its record. Where it stays in doubt, the damaged batch itself
is asked: its CRC, or its records, may prove where it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from format import layout
from format.codecs.checksums import crc32_of, crc32c_of
from format.io.source import Source
from format.kernel.headers import find_candidate
from format.kernel.records import index_records
from format.kernel.tables import RECORD_COLUMNS, RESULT_COLUMNS, SPAN_COLUMNS
from format.limits import DEFAULT_LIMITS, Limits

_WINDOW_BYTES = 1024 * 1024
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_MAGIC_AT = layout.RECORD_BATCH.offset_of("magic")
_LAST_DELTA = slice(layout.RECORD_BATCH.offset_of("last_offset_delta"), layout.RECORD_BATCH.offset_of("base_timestamp"))
_OFFSET_BYTES = layout.LOG_ENTRY.offset_of("length")
_CRC_BYTES = layout.RECORD_BATCH.offset_of("attributes") - layout.RECORD_BATCH.offset_of("crc")
_MAX_OFFSET = 2**63 - 1
#: How many times the searched bytes may be read again for CRCs before the search gives up on large candidates:
#: a hostile file can hold a forged header at every few bytes, each claiming the rest of the file.
_CRC_BUDGET_FACTOR = 16
_CRC_BUDGET_FLOOR_BYTES = 64 * 1024 * 1024
#: Where a batch of so many bytes seemed to start and did not is remembered.
_LARGE_BYTES = 4096
#: A run of so many bytes is the log going on; following it further would read the file twice.
_RUN_BYTES = 64 * 1024 * 1024
#: Runs that lead nowhere which are put aside before the first of them is taken for want of a better one.
_MOST_DOUBTFUL = 16
#: What was followed is remembered, as the search after the next damage comes by again; no more than so many runs.
_MOST_REMEMBERED = 1024
#: Damaged records are decoded, to see where they end, only in a batch of at most so many bytes.
_DECODED_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """An intact batch: where it lies in the file, and its offsets (of a v0/v1 wrapper the last one is known only).

    ``proof`` says how the bytes before it prove that it comes next, and is empty where they do not.
    """

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    proof: str = ""

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes


@dataclass(frozen=True, slots=True)
class Header:
    """What hopping needs of one batch header; ``is_wrapper`` marks a compressed v0/v1 message."""

    position: int
    size_bytes: int
    magic: int
    base_offset: int
    last_offset: int
    is_wrapper: bool

    @property
    def end_position(self) -> int:
        return self.position + self.size_bytes

    def is_followed_by(self, other: Header) -> bool:
        """Whether the other batch's offsets begin where this one's end."""
        return not other.is_wrapper and other.base_offset == self.last_offset + 1


def read_header(source: Source, position: int) -> Header | None:
    """The header at a position, None where no header of any format can be."""
    header = source.read_at(position, _HEADER_BYTES)
    if len(header) < layout.MESSAGE_V0.size_bytes:
        return None
    base_offset, length = layout.LOG_ENTRY.struct.unpack_from(header)
    magic = header[_MAGIC_AT]
    size_bytes = layout.LOG_ENTRY.size_bytes + length
    if magic > 2 or base_offset < 0 or length < layout.MIN_MESSAGE_LENGTH:
        return None
    if magic == 2:
        if size_bytes < _HEADER_BYTES or len(header) < _HEADER_BYTES:
            return None
        delta = int.from_bytes(header[_LAST_DELTA], "big", signed=True)
        return Header(position, size_bytes, magic, base_offset, base_offset + delta, False)
    attributes = header[layout.MESSAGE_V0.offset_of("attributes")]
    if attributes > 0x0F:
        return None
    return Header(position, size_bytes, magic, base_offset, base_offset, bool(attributes & layout.CODEC_MASK))


class BatchSearch:
    """Searches through one file, with a bound on what each may read again for CRCs."""

    def __init__(self, source: Source, end: int, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = source
        self.end = end
        self._largest = limits.max_decompressed_bytes + _HEADER_BYTES
        self._budget = 0
        self._runs: dict[int, _Run] = {}
        self._refuted: set[int] = set()  # where a large batch seems to start and does not: searches may overlap

    def next_after(self, damaged_from: int, min_base_offset: int = 0) -> FoundBatch | None:
        """The batch that the log goes on with after ``damaged_from``, where a batch should start and none does.

        Its CRC is right and its base offset at least ``min_base_offset``, or the log certainly goes on from it. None
        when there is none. Reads in windows; raises only what the source raises.
        """
        self._refill(self.end - damaged_from)
        doubtful: list[_Run] = []
        certain: FoundBatch | None = None
        for found in self.intact_batches(damaged_from + 1, skips_runs=True):
            run = self._runs[found.position]
            if run.is_certain and not self._is_value(found.position, run.end_position):
                certain = found
                break
            doubtful.append(run)
            if len(doubtful) >= _MOST_DOUBTFUL:
                break
        if not doubtful and certain is None:
            return None
        firsts = [run.first for run in doubtful] + ([certain] if certain is not None else [])
        positions = [first.position for first in firsts]
        for number, proof in enumerate(self._proofs(damaged_from, [*positions, self.end])):
            if proof:
                return replace(firsts[number], proof=proof) if number < len(firsts) else None
        for run in doubtful:
            is_before = certain is None or run.last_offset < certain.base_offset
            is_value = self._is_value(run.first.position, run.end_position)
            if is_before and run.first.base_offset >= min_base_offset and not is_value:
                return run.first
        return certain

    def _refill(self, searched_bytes: int) -> None:
        self._budget = max(_CRC_BUDGET_FLOOR_BYTES, _CRC_BUDGET_FACTOR * searched_bytes)
        if len(self._runs) > _MOST_REMEMBERED:
            self._runs.clear()
        if len(self._refuted) > _MOST_REMEMBERED:
            self._refuted.clear()

    def true_end(self, batch: Header) -> int | None:
        """Where a batch with a wrong CRC ends, if its length alone is wrong and makes it swallow intact batches."""
        self._refill(batch.size_bytes)
        crc_up_to = self._crc_of_damaged(batch.position)
        for found in self.intact_batches(batch.position + 1, stop=batch.end_position):
            if crc_up_to is not None and crc_up_to(found.position):
                return found.position
        return None

    def _is_value(self, position: int, stop: int) -> bool:
        """Whether the bytes up to ``stop`` are the value of a v0/v1 message: its length stands before them."""
        length = self.source.read_at(position - 4, 4) if position >= 4 else b""
        return len(length) == 4 and int.from_bytes(length, "big") == stop - position

    def intact_batches(
        self, start: int, min_base_offset: int = 0, *, stop: int | None = None, skips_runs: bool = False
    ) -> Iterator[FoundBatch]:
        """Batches with a plausible header and a right CRC, by position, wherever they start.

        With ``skips_runs`` each is followed, and the search goes on where that led.
        """
        stop = self.end if stop is None else stop
        least = min(max(min_base_offset, 0), _MAX_OFFSET)
        window_position = start
        while window_position < stop:
            length = min(_WINDOW_BYTES + _HEADER_BYTES, stop - window_position)
            content = self.source.read_at(window_position, length)
            if not content:
                return
            at = 0
            next_window = window_position + _WINDOW_BYTES
            if content.count(0) == len(content):  # a hole, or what was allocated ahead
                window_position = next_window
                continue
            window = memoryview(content)
            while True:
                room = min(self._largest, stop - window_position - at)
                at = find_candidate(window, at, len(window), least, room)
                if at < 0 or window_position + at >= next_window:
                    break
                position = window_position + at
                found = self._runs[position].first if position in self._runs else self._intact_at(position, stop)
                at += 1
                if found is None:
                    continue
                if skips_runs:
                    run = self._runs.get(position) or self._follow(found)
                    self._runs[position] = run
                    at = run.end_position - window_position
                yield found
                if at >= _WINDOW_BYTES:
                    break
            window_position = max(next_window, window_position + at)

    def _intact_at(self, position: int, stop: int) -> FoundBatch | None:
        header = read_header(self.source, position)
        if header is None or header.end_position > stop or not self._has_right_crc(header):
            return None
        return FoundBatch(header.position, header.size_bytes, header.base_offset, header.last_offset)

    def _follow(self, first: FoundBatch) -> _Run:
        """How the file goes on from an intact batch: certainly as a log does, or in a way that a value could too."""
        at, last = first.end_position, first.last_offset
        is_certain = True
        while at < self.end and at - first.position < _RUN_BYTES:
            header = read_header(self.source, at)
            if header is None:
                is_certain = self._may_end(at, last + 1)
                break
            if header.base_offset <= last:
                is_certain = False
                break
            if header.end_position > self.end or not self._has_right_crc(header):
                is_certain = not header.is_wrapper and header.base_offset == last + 1
                break
            at, last = header.end_position, header.last_offset
        return _Run(first, last, at, is_certain)

    def _may_end(self, position: int, next_offset: int) -> bool:
        """Whether a log may end here: in the first bytes of a header with the next offset, or in zeros."""
        rest = self.source.read_at(position, min(4096, self.end - position))
        if not any(rest):
            return True
        # A batch that is intact may still claim an offset below zero: that lies outside its CRC.
        expected = next_offset.to_bytes(_OFFSET_BYTES + 1, "big", signed=True)[1:]
        return len(rest) < _HEADER_BYTES and expected.startswith(rest[:_OFFSET_BYTES])

    def _proofs(self, damaged_from: int, positions: list[int]) -> Iterator[str]:
        """For each of the rising positions, how the damaged bytes prove that their batch ends there."""
        crc_up_to = self._crc_of_damaged(damaged_from)
        decoded = b""
        for position in positions:
            is_possible = position - damaged_from <= self._largest
            if is_possible and crc_up_to is not None and crc_up_to(position):
                length = position - damaged_from - layout.LOG_ENTRY.size_bytes
                yield f"only its length is wrong: its CRC is right for one of {length}"
                continue
            length = position - damaged_from - _HEADER_BYTES
            if 0 < length <= _DECODED_BYTES:
                if len(decoded) < length:
                    decoded = self.source.read_at(damaged_from + _HEADER_BYTES, length)
                if are_records(memoryview(decoded)[:length]):
                    yield "its header is damaged, its records end where the next batch starts"
                    continue
            yield ""

    def _crc_of_damaged(self, damaged_from: int) -> Callable[[int], bool] | None:
        """Tells, for rising positions, whether the damaged batch's CRC is right if the batch ends there."""
        header = self.source.read_at(damaged_from, _HEADER_BYTES)
        if len(header) < _HEADER_BYTES:
            return None
        stored_at, covered_from, crc_of = _crc_of_magic(header[_MAGIC_AT])
        stored = int.from_bytes(header[stored_at : stored_at + _CRC_BYTES], "big")
        at, crc = damaged_from + covered_from, 0

        def is_right_up_to(position: int) -> bool:
            nonlocal at, crc
            while at < position and self._budget > 0:
                part = self.source.read_at(at, min(_WINDOW_BYTES, position - at))
                crc = crc_of(part, crc)
                at += len(part)
                self._budget -= len(part)
            return at == position and crc == stored

        return is_right_up_to

    def _has_right_crc(self, header: Header) -> bool:
        if header.position in self._refuted or header.size_bytes > min(self._budget, self._largest):
            return False
        self._budget -= header.size_bytes
        is_right = has_right_crc(self.source, header.position, header.size_bytes, header.magic)
        if not is_right and header.size_bytes >= _LARGE_BYTES:
            self._refuted.add(header.position)
        return is_right


@dataclass(frozen=True, slots=True)
class _Run:
    """Intact batches one behind the other, with rising offsets; whether only a log goes on as the file does there."""

    first: FoundBatch
    last_offset: int
    end_position: int
    is_certain: bool


def are_records(content: memoryview) -> bool:
    """Whether bytes are v2 records, one behind the other, exactly to their end."""
    most = len(content) // layout.MIN_RECORD_BYTES + 1
    spans = np.zeros((1, len(SPAN_COLUMNS)), np.int64)
    spans[0, 2], spans[0, 3] = len(content), most
    columns = np.empty((most, len(RECORD_COLUMNS)), np.int64)
    results = np.zeros((1, len(RESULT_COLUMNS)), np.int64)
    index_records(content, memoryview(spans), 0, 1, memoryview(columns), 0, memoryview(results))
    error, _, _, end = (int(each) for each in results[0])
    return not error and end == len(content)


def has_right_crc(source: Source, position: int, size_bytes: int, magic: int) -> bool:
    """Whether the bytes of a batch or message have the CRC that it stores; reads them in windows."""
    stored_at, covered_from, crc_of = _crc_of_magic(magic)
    stored = int.from_bytes(source.read_at(position + stored_at, _CRC_BYTES), "big")
    at, end, crc = position + covered_from, position + size_bytes, 0
    while at < end:
        part = source.read_at(at, min(_WINDOW_BYTES, end - at))
        if not part:
            return False
        crc = crc_of(part, crc)
        at += len(part)
    return crc == stored


def _crc_of_magic(magic: int) -> tuple[int, int, Callable[[bytes, int], int]]:
    """Where the CRC stands, where the bytes begin that it covers, and what computes it."""
    if magic < 2:
        return layout.MESSAGE_V0.offset_of("crc"), layout.MESSAGE_V0.offset_of("magic"), crc32_of
    return layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"), crc32c_of
