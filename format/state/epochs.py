"""Leader epochs along a log: the highest so far, and where they fall."""

from __future__ import annotations

import numpy as np

from format import layout
from format.log.batch_table import BatchTable
from format.value_class import state_class, value_class


@value_class
class EpochFell:
    """A batch has a lower leader epoch than one before it, or none (-1); ``row`` is its number in the table."""

    row: int
    leader_epoch: int
    highest_epoch: int


@state_class
class LeaderEpochs:
    """``highest`` is the highest leader epoch of the batches fed so far, NO_LEADER_EPOCH before the first."""

    highest: int = layout.NO_LEADER_EPOCH

    def feed(self, table: BatchTable) -> list[EpochFell]:
        """Take the next batches in log order; returns where epochs fall. Formats before v2 have none."""
        if not len(table):
            return []
        epochs = np.where(table.magic == 2, table.leader_epoch, layout.NO_LEADER_EPOCH)
        running = np.maximum.accumulate(np.concatenate(([self.highest], epochs)))
        fallen = np.flatnonzero((epochs < running[:-1]) & (table.magic == 2) & (epochs >= layout.NO_LEADER_EPOCH))
        self.highest = int(running[-1])
        return [EpochFell(row, int(epochs[row]), int(running[row])) for row in fallen.tolist()]
