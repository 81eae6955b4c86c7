"""Leader epochs along a log, and where they fall."""

from __future__ import annotations

import msgspec
import numpy as np

from format import layout
from format.log.batch_table import BatchTable

_ONLY_V2 = 1 << 2  # in the bits of magics


class EpochFell(msgspec.Struct, frozen=True):
    """A batch has a lower leader epoch than the batches before it, or none (-1); ``row`` is its number in the table."""

    row: int
    leader_epoch: int
    previous_epoch: int


class LeaderEpochs(msgspec.Struct):
    """The leader epochs of a log: ``last`` of the last batch fed, ``_current`` of the last batch that has one."""

    last: int = layout.NO_LEADER_EPOCH
    _current: int = layout.NO_LEADER_EPOCH

    def feed(self, table: BatchTable) -> list[EpochFell]:
        """Take the next batches in log order; returns where epochs fall. Formats before v2 have none.

        Only the first of the batches that follow with the lower epoch is returned: one batch whose epoch is too high
        does not make all that follow it wrong.
        """
        sums = table.sums
        if sums.lowest_epoch == sums.highest_epoch == self._current == self.last and sums.magics == _ONLY_V2:
            return []  # the usual case
        rows = np.flatnonzero((table.magic == 2) & (table.leader_epoch >= layout.NO_LEADER_EPOCH))
        if not len(rows):
            return []
        epochs = table.leader_epoch[rows].astype(np.int64)
        has_epoch = epochs >= 0
        last_with_epoch = np.maximum.accumulate(np.where(has_epoch, np.arange(len(rows)), -1))
        current = np.where(last_with_epoch >= 0, epochs[last_with_epoch], self._current)
        before = np.concatenate(([self._current], current[:-1]))
        previous = np.concatenate(([self.last], epochs[:-1]))
        fallen = np.flatnonzero((epochs < before) & (has_epoch | (previous >= 0)))
        self.last, self._current = int(epochs[-1]), int(current[-1])
        return [EpochFell(int(rows[at]), int(epochs[at]), int(before[at])) for at in fallen.tolist()]
