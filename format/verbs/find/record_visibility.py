"""Who can see the records that are shown: what ``find`` says of one record, for many."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from format.columns import RECORD
from format.errors import KafkaLogError
from format.io.session import is_on_disk
from format.limits import DEFAULT_LIMITS, Limits
from format.node.log_dir import Checkpoints
from format.node.partition import read_partition
from format.node.target import Surroundings
from format.rows.record_rows import Row
from format.scan.selection import CommittedView
from format.verbs.find.lookup import Visibility
from format.verbs.find.visibility import read_bounds, read_stability
from format.verbs.txns.partition_transactions import committed_view

_OFFSET, _IS_CONTROL, _IS_TRANSACTIONAL, _PRODUCER_ID = (
    RECORD.names.index(name) for name in ("offset", "is_control", "is_transactional", "producer_id")
)
_NO_END = 2**63 - 1


class _Served(msgspec.Struct):
    """What a partition directory serves: the offsets from ``start`` to before ``stable_end``, as far as is known.

    ``replicated_end`` is the high watermark. ``view`` has the aborted transactions, once a record of one was shown.
    """

    directory: Path
    start: int = 0
    replicated_end: int = _NO_END
    stable_end: int = _NO_END
    view: CommittedView | None = None


class RecordVisibility:
    """The visibility of records, by their partition directories, each of which is looked at once."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._surroundings = Surroundings()
        self._look_at = cache(self._looked_at)

    def of(self, row: Row, directory: Path) -> Visibility | None:
        """The visibility of a row of ``columns.RECORD``, None where it is not known, as at an address."""
        served = self._look_at(directory)
        if served is None:
            return None
        offset = row[_OFFSET]
        if row[_IS_CONTROL]:
            return Visibility.CONTROL
        if offset < served.start:
            return Visibility.BELOW_LOG_START
        if offset >= served.replicated_end:
            return Visibility.NOT_REPLICATED
        if offset >= served.stable_end:
            return Visibility.READ_UNCOMMITTED_ONLY
        if row[_IS_TRANSACTIONAL] and self._is_aborted(served, row[_PRODUCER_ID], offset):
            return Visibility.ABORTED
        return Visibility.VISIBLE

    def plain_range(self, directory: Path) -> tuple[int, int]:
        """The offsets, from the first to before the second, whose records outside transactions are visible."""
        served = self._look_at(directory)
        return (0, 0) if served is None else (served.start, min(served.replicated_end, served.stable_end))

    def _looked_at(self, directory: Path) -> _Served | None:
        if not is_on_disk(directory):
            return None
        try:
            partition = read_partition(directory)
            bounds, _findings = read_bounds(partition, self._limits, self._around(directory))  # verify reports them
            stability = read_stability(partition, bounds, self._limits)
        except KafkaLogError:
            return None
        if partition.key is None:
            return None
        end = _NO_END if bounds.high_watermark is None else bounds.high_watermark
        stable_end = _NO_END if stability.holder is None else stability.last_stable_offset
        return _Served(directory, bounds.log_start_offset, end, stable_end)

    def _around(self, directory: Path) -> Checkpoints:
        return self._surroundings.checkpoints(directory, self._limits)

    def _is_aborted(self, served: _Served, producer_id: int, offset: int) -> bool:
        if served.view is None:
            served.view = committed_view(served.directory, self._limits, self._around(served.directory))
        return served.view.is_aborted(producer_id, offset)
