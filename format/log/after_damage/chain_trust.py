"""Whether the length of a batch with a wrong CRC can be trusted: whether the next batch starts where it ends.

The CRC does not cover the length, so the length may be the damaged part; then it leads into the middle of another
batch, or past whole batches. The header at the end of the batch decides, not the bytes of the batch, which may be
anything.
"""

from __future__ import annotations

from enum import Enum

from format.io.source import Source
from format.log.after_damage.candidates import CandidateSearch
from format.log.after_damage.proofs import DamagedBatch
from format.log.batch_header import Header, read_header

#: This many consecutive damaged batches are followed; their lengths are trusted if there are more.
_LONGEST_LOOK = 16
#: A batch is not trusted if it ends more than this many bytes inside the zeros at the end of the file.
_MOST_ZEROS = 4096
_WINDOW_BYTES = 1024 * 1024


class Trust(Enum):
    """Whether the length of a batch with a wrong CRC is right."""

    NO = 0
    YES = 1
    OPEN = 2  # a batch starts at its end, but intact batches are inside: values, or batches that a wrong length covers


class ChainTrust:
    """Judges the lengths of damaged batches in one file. A chain of damaged batches is followed once."""

    def __init__(self, source: Source, end: int, search: CandidateSearch) -> None:
        self._source = source
        self._end = end
        self._search = search
        self._zeros_from: int | None = None
        self._followed: set[int] = set()  # positions of the batches in the last chain

    def trust_in(self, position: int) -> Trust:
        """Whether the length of the batch at ``position``, whose CRC is wrong, is right."""
        batch = read_header(self._source, position)
        if batch is None or batch.end_position > self._end:
            return Trust.NO
        if position not in self._followed and not self.leads_on(batch):
            return Trust.NO
        following = read_header(self._source, batch.end_position) if batch.end_position < self._end else None
        damaged = DamagedBatch(self._source, position, batch.end_position, self._search)
        trust = Trust.YES
        for found in self._search.intact_from(position + 1, batch.end_position):
            if damaged.proof_of_end(found.position):
                return Trust.NO
            if found.end_position == batch.end_position and batch.magic == 2:
                return Trust.NO  # not a value: the number of headers follows the value of a record
            if _fits_between(found, batch, following) and not damaged.covers(found.position, found.end_position):
                trust = Trust.OPEN
        return trust

    def _zeros_start(self) -> int:
        """The position of the zero bytes at the end of the file, which were preallocated or left by a crash."""
        position = self._end if self._zeros_from is None else self._zeros_from
        window_bytes = _WINDOW_BYTES
        while self._zeros_from is None and position > 0:
            start = max(0, position - window_bytes)
            last = self._last_data(start, position)
            if last is None:  # a hole
                position = start
                window_bytes *= 2
                continue
            start, end = max(last[0], last[1] - _WINDOW_BYTES), last[1]
            content = self._source.read_at(start, end - start).rstrip(b"\0")
            position = start + len(content)
            window_bytes = _WINDOW_BYTES
            if content:
                break
        self._zeros_from = position
        return position

    def _last_data(self, start: int, stop: int) -> tuple[int, int] | None:
        """Start and end of the last bytes between two positions that are not in a hole; None for none."""
        last = None
        data_start, data_end = self._source.data_range(start)
        while data_start < stop:
            last = data_start, min(data_end, stop)
            data_start, data_end = self._source.data_range(data_end)
        return last

    def leads_on(self, batch: Header) -> bool:
        """Whether a batch starts, or the log ends, at the end of ``batch`` by its length."""
        if batch.end_position > self._end:
            return False
        at, followed = batch, {batch.position}
        for _ in range(_LONGEST_LOOK):
            if at.end_position >= self._end:
                break
            following = read_header(self._source, at.end_position)
            if following is None:
                if not 0 <= at.end_position - self._zeros_start() <= _MOST_ZEROS:
                    return False
                break
            if at.is_followed_by(following):
                break
            if following.end_position > self._end:
                return False
            if self._search.is_intact(following):
                break
            if following.base_offset <= at.base_offset:
                return False
            at = following
            followed.add(at.position)
        self._followed = followed
        return True


def _fits_between(found: Header, batch: Header, following: Header | None) -> bool:
    """Whether the offsets of a batch inside a damaged batch fit between those of the damaged batch and the next one.

    True if the offsets of these two contradict each other.
    """
    last = max(batch.last_offset, batch.base_offset)
    if following is None:
        return found.base_offset == last + 1 and found.end_position < batch.end_position
    return following.base_offset <= last or last < found.base_offset <= found.last_offset < following.base_offset
