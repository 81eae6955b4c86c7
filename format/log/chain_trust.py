"""Whether the length of a batch with a wrong CRC can be trusted: does the chain of headers go on where it points?

The length lies outside the CRC and may be what is damaged; then it points into the middle of another batch, or past
whole ones. What stands at the next header decides, never the batch's own bytes: those may hold anything.
"""

from __future__ import annotations

from format.io.source import Source
from format.limits import Limits
from format.log.resynchronise import BatchSearch, Header, has_right_crc, read_header

#: Damaged batches in a row whose lengths are held against each other before they are believed.
_LONGEST_LOOK = 16


class ChainTrust:
    """Judges batches of one file by position, in order; what it has followed once it does not follow again."""

    def __init__(self, source: Source, end: int, limits: Limits) -> None:
        self._source = source
        self._end = end
        self._limits = limits
        self._followed_to = 0

    def trusts(self, position: int) -> bool:
        """Whether the log goes on at the end of the batch at ``position``, which has a wrong CRC."""
        batch = read_header(self._source, position)
        if batch is None or batch.end_position > self._end:
            return False
        if position >= self._followed_to and not self.leads_on(batch):
            return False
        following = read_header(self._source, batch.end_position) if batch.end_position < self._end else None
        if following is not None and batch.is_followed_by(following):
            return True
        return BatchSearch(self._source, batch.end_position, self._limits).true_end(batch) is None

    def leads_on(self, batch: Header) -> bool:
        """Whether a batch, or the end of the log, lies where the batch's length says that it ends."""
        if batch.end_position > self._end:
            return False
        at = batch
        for _ in range(_LONGEST_LOOK):
            if at.end_position >= self._end:
                break
            following = read_header(self._source, at.end_position)
            if following is None:
                rest = self._source.read_at(at.end_position, min(4096, self._end - at.end_position))
                if any(rest):
                    return False
                break
            if at.is_followed_by(following):
                break
            if following.end_position > self._end:
                return False
            if has_right_crc(self._source, following.position, following.size_bytes, following.magic):
                break
            if following.base_offset <= at.base_offset:
                return False
            at = following
        self._followed_to = at.end_position
        return True
