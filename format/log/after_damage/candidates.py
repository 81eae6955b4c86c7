"""Every place where a batch with a right CRC starts, whatever it is part of."""

from __future__ import annotations

from collections.abc import Iterator

from format.io.source import Source
from format.kernel.headers import find_candidate
from format.limits import Limits
from format.log.after_damage.crc_index import DIRECT_BYTES, CrcIndex
from format.log.batch_header import CRC_BYTES, HEADER_BYTES, MAGIC_AT, Header, crc_fields, read_header

_FIRST_WINDOW_BYTES = 8 * 1024
_WINDOW_BYTES = 1024 * 1024
#: How many large batches that may start somewhere are looked at: so many at first, and one more for each so many bytes
#: searched. In a hostile file one seems to start at every byte; then some are passed over.
_FIRST_LOOKS = 20_000
_BYTES_FOR_A_LOOK = 1024


class CandidateSearch:
    """Searches one file for intact batches. Each takes little time to look at, whatever size it claims."""

    def __init__(self, source: Source, end: int, limits: Limits) -> None:
        self._source = source
        self._end = end
        self._crcs = {is_v2: CrcIndex(source, end, is_v2=is_v2) for is_v2 in (False, True)}
        self._looks_left = _FIRST_LOOKS
        #: A batch of more bytes is not read.
        self.most_bytes = limits.max_decompressed_bytes + HEADER_BYTES

    def intact_from(self, start: int, stop: int | None = None) -> Iterator[Header]:
        """Batches with a plausible header and a right CRC by position, the overlapping ones included."""
        stop = self._end if stop is None else stop
        position, window_bytes = start, _FIRST_WINDOW_BYTES
        while position < stop:
            data_start, data_end = self._source.data_range(position)
            if data_start >= stop:
                return
            # A header may begin with the last zeros of a hole, and end with the first ones of the next.
            position = max(position, data_start - HEADER_BYTES)
            length = min(window_bytes, data_end - position)
            content = self._source.read_at(position, min(length + HEADER_BYTES, stop - position))
            if not content:
                return
            self._looks_left += length // _BYTES_FOR_A_LOOK
            if content.count(0) != len(content):  # nothing that was allocated ahead
                yield from self._intact_in(memoryview(content), position, length, stop)
            position += length
            window_bytes = min(4 * window_bytes, _WINDOW_BYTES)

    def _intact_in(self, window: memoryview, position: int, window_bytes: int, stop: int) -> Iterator[Header]:
        at = 0
        while at < window_bytes:
            room, end = min(self.most_bytes, stop - position - at), len(window)
            if self._looks_left <= 0:  # the room counts from where the search starts
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
        """The header of the intact batch at a position, None where there is none."""
        header = read_header(self._source, position)
        if header is None or header.end_position > (self._end if stop is None else stop):
            return None
        return header if self.is_intact(header) else None

    def is_intact(self, header: Header) -> bool:
        """Whether the CRC of a batch is right; False for one that is too large to be read."""
        self._looks_left -= header.size_bytes > DIRECT_BYTES
        return header.size_bytes <= self.most_bytes and self.is_crc_right(header.position, header.end_position)

    def is_crc_right(self, start: int, stop: int) -> bool:
        """Whether the CRC that a batch at ``start`` stores is right if the batch ends at ``stop``."""
        header = self._source.read_at(start, HEADER_BYTES)
        if len(header) <= MAGIC_AT:
            return False
        stored_at, covered_from, is_v2 = crc_fields(header[MAGIC_AT])
        stored = int.from_bytes(header[stored_at : stored_at + CRC_BYTES], "big")
        return stop > start + covered_from and self._crcs[is_v2].crc(start + covered_from, stop) == stored
