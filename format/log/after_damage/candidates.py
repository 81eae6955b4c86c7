"""The search for intact batches: every place where a batch with a right CRC starts, in the log or in a value."""

from __future__ import annotations

from collections.abc import Iterator

from format.io.source import Source
from format.kernel.headers import find_candidate
from format.limits import Limits
from format.log.after_damage.crc_index import DIRECT_BYTES, CrcIndex
from format.log.batch_header import CRC_BYTES, HEADER_BYTES, MAGIC_AT, Header, crc_fields, read_header

_FIRST_WINDOW_BYTES = 8 * 1024
_WINDOW_BYTES = 1024 * 1024
#: The CRCs of this many candidates larger than DIRECT_BYTES are computed, and of one more for each _BYTES_FOR_A_LOOK
#: bytes searched. In a hostile file every byte may look like the start of a batch; then some candidates are skipped.
_FIRST_LOOKS = 20_000
_BYTES_FOR_A_LOOK = 1024


class CandidateSearch:
    """Searches one file for intact batches, in a time that does not depend on the sizes in their headers."""

    def __init__(self, source: Source, end: int, limits: Limits) -> None:
        self._source = source
        self._end = end
        self._crcs = {is_v2: CrcIndex(source, end, is_v2=is_v2) for is_v2 in (False, True)}
        self._looks_left = _FIRST_LOOKS
        #: Larger batches are not read.
        self.most_bytes = limits.max_decompressed_bytes + HEADER_BYTES

    def intact_from(self, start: int, stop: int | None = None) -> Iterator[Header]:
        """Batches with a plausible header and a right CRC, by position; they may overlap."""
        stop = self._end if stop is None else stop
        position, window_bytes = start, _FIRST_WINDOW_BYTES
        while position < stop:
            data_start, data_end = self._source.data_range(position)
            if data_start >= stop:
                return
            # A header may start with the last zeros of a hole, and end with the first zeros of the next one.
            position = max(position, data_start - HEADER_BYTES)
            length = min(window_bytes, data_end - position)
            content = self._source.read_at(position, min(length + HEADER_BYTES, stop - position))
            if not content:
                return
            self._looks_left += length // _BYTES_FOR_A_LOOK
            if content.count(0) != len(content):  # not preallocated
                yield from self._intact_in(memoryview(content), position, length, stop)
            position += length
            window_bytes = min(4 * window_bytes, _WINDOW_BYTES)

    def _intact_in(self, window: memoryview, position: int, window_bytes: int, stop: int) -> Iterator[Header]:
        at = 0
        while at < window_bytes:
            room, end = min(self.most_bytes, stop - position - at), len(window)
            if self._looks_left <= 0:  # find_candidate counts the room from the start of the search
                room, end = min(room, DIRECT_BYTES), min(end, at + DIRECT_BYTES // 2 + HEADER_BYTES)
            next_at = find_candidate(window, at, end, 0, room)
            if next_at < 0 and end < len(window):
                at += DIRECT_BYTES // 2
                continue
            if next_at < 0 or next_at >= window_bytes:
                return
            at = next_at
            found = self.intact_at(position + at, stop)
            if found is not None:
                yield found
            at += 1

    def intact_at(self, position: int, stop: int | None = None) -> Header | None:
        """The header of the intact batch at a position, None for none."""
        header = read_header(self._source, position)
        if header is None or header.end_position > (self._end if stop is None else stop):
            return None
        return header if self.is_intact(header) else None

    def is_intact(self, header: Header) -> bool:
        """Whether the CRC of a batch is right; False for a batch of more than ``most_bytes``."""
        self._looks_left -= header.size_bytes > DIRECT_BYTES
        return header.size_bytes <= self.most_bytes and self.is_crc_right(header.position, header.end_position)

    def is_crc_right(self, start: int, stop: int, *, is_v2: bool = False) -> bool:
        """Whether the stored CRC of the batch at ``start`` is right if the batch ends at ``stop``.

        The format is that of its magic, or v2 for any magic if ``is_v2``.
        """
        header = self._source.read_at(start, HEADER_BYTES)
        if len(header) <= MAGIC_AT:
            return False
        stored_at, covered_from, is_v2 = crc_fields(2 if is_v2 else header[MAGIC_AT])
        stored = int.from_bytes(header[stored_at : stored_at + CRC_BYTES], "big")
        return stop > start + covered_from and self._crcs[is_v2].crc(start + covered_from, stop) == stored
