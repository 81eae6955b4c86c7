"""Follows transactions as the cleaner does: which batches were aborted, and which markers are not needed any more.

Source: storage CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

import msgspec

from format.log.control_records import ControlRecord


class CleanedTransactions(msgspec.Struct):
    """The transactions of batches in log order; ``add_aborted`` takes their transaction index entries beforehand."""

    _aborted: list[tuple[int, int]] = msgspec.field(default_factory=list)  # first offset and producer id
    _known: set[tuple[int, int]] = msgspec.field(default_factory=set)
    _ongoing_aborted: dict[int, bool] = msgspec.field(
        default_factory=dict
    )  # producer id -> whether a batch of it was seen
    _ongoing_committed: set[int] = msgspec.field(default_factory=set)

    def add_aborted(self, entries: Iterable[tuple[int, int]]) -> None:
        """Add aborted transactions: the first offset and the producer of each."""
        for entry in entries:
            if entry not in self._known:
                self._known.add(entry)
                heappush(self._aborted, entry)

    def is_aborted(self, producer_id: int, last_offset: int, *, is_transactional: bool) -> bool:
        """Whether a data batch belongs to an aborted transaction."""
        self._begin_aborted_up_to(last_offset)
        if not is_transactional:
            return False
        if producer_id in self._ongoing_aborted:
            self._ongoing_aborted[producer_id] = True
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def is_needless(self, producer_id: int, last_offset: int, marker: ControlRecord | None) -> bool:
        """Whether a control batch may be removed: its transaction has no batch left, or it is empty already."""
        self._begin_aborted_up_to(last_offset)
        if marker is None:
            return True
        if marker.type_name == "ABORT":
            return not self._ongoing_aborted.pop(producer_id, False)
        if marker.type_name == "COMMIT":
            was_seen = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not was_seen
        return False

    def _begin_aborted_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            _, producer_id = heappop(self._aborted)
            self._ongoing_aborted.setdefault(producer_id, False)
