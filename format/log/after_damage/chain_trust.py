"""Whether the length of a batch with a wrong CRC can be trusted: does the chain of headers go on where it points?

The length lies outside the CRC and may be what is damaged; then it points into the middle of another batch, or past
whole ones. What stands at the next header decides, never the batch's own bytes: those may hold anything.
"""

from __future__ import annotations

from enum import Enum

from format.io.source import Source
from format.log.after_damage.candidates import CandidateSearch
from format.log.after_damage.proofs import DamagedBatch
from format.log.batch_header import Header, read_header

#: Damaged batches in a row whose lengths are held against each other before they are believed.
_LONGEST_LOOK = 16
#: A batch does not end with so many zero bytes that it is believed to reach so far into those at the end of the file.
_MOST_ZEROS = 4096
_WINDOW_BYTES = 1024 * 1024


class Trust(Enum):
    """What is known of the length of a batch with a wrong CRC."""

    NO = 0
    YES = 1
    OPEN = 2  # it leads on, but intact batches lie inside: values, or batches of the log that a wrong length covers


class ChainTrust:
    """Judges batches of one file. A chain of damaged batches is followed once."""

    def __init__(self, source: Source, end: int, search: CandidateSearch) -> None:
        self._source = source
        self._end = end
        self._search = search
        self._zeros_from: int | None = None
        self._followed: set[int] = set()  # where the batches of the last chain start

    def trust_in(self, position: int) -> Trust:
        """Whether the log goes on at the end of the batch at ``position``, which has a wrong CRC."""
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
                return Trust.NO  # after the value of a record comes at least the number of its headers
            if _fits_between(found, batch, following) and not damaged.covers(found.position, found.end_position):
                trust = Trust.OPEN
        return trust

    def _zeros_start(self) -> int:
        """Where the zero bytes start that the file ends with, allocated ahead or left by a crash."""
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
        """The last stored bytes between two positions, from where to where."""
        last = None
        data_start, data_end = self._source.data_range(start)
        while data_start < stop:
            last = data_start, min(data_end, stop)
            data_start, data_end = self._source.data_range(data_end)
        return last

    def leads_on(self, batch: Header) -> bool:
        """Whether a batch, or the end of the log, lies where the batch's length says that it ends."""
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
    """Whether a batch inside a damaged one has offsets that are missing between that one and what follows it.

    It counts as one that has, if these two are at odds themselves.
    """
    last = max(batch.last_offset, batch.base_offset)
    if following is None:
        return found.base_offset == last + 1 and found.end_position < batch.end_position
    return following.base_offset <= last or last < found.base_offset <= found.last_offset < following.base_offset
