"""The state of a log after recovery, and the summary of a sound log that recovery needs."""

from __future__ import annotations

import msgspec
import numpy as np

from format.layout import MAX_RELATIVE_OFFSET
from format.log.batch_table import BatchTable
from format.verbs.boot.one_log.index_lookups import LogEnd, OffsetIndexView


class Recovered(msgspec.Struct):
    """A segment after recovery: its valid bytes, its end, and the broker's message where it was truncated.

    ``end`` is the end that the broker's reader finds in the valid bytes. ``is_emptied``: the offsets decrease, so the
    broker makes the segment empty. ``epochs`` are (leader epoch, base offset) of each batch with a new highest epoch.
    """

    size_bytes: int
    end: LogEnd
    valid_bytes: int = 0
    last_offset: int | None = None
    map_end_offset: int | None = None  # the offset after the last v2 batch, up to which the producers' state goes
    has_transactions: bool = False  # a producer's transactional or control batches
    message: str | None = None
    is_emptied: bool = False
    epochs: list[tuple[int, int]] = msgspec.field(default_factory=list)
    index: OffsetIndexView = msgspec.field(default_factory=lambda: OffsetIndexView(0))

    @property
    def next_offset(self) -> int:
        return self.end.next_offset

    @property
    def truncated_bytes(self) -> int:
        return self.size_bytes - self.valid_bytes


class ReadLog(msgspec.Struct):
    """A summary of a sound log for recovery, made from its batches in log order.

    ``is_sound`` is False from the first batch on that recovery has to read by itself.
    """

    base_offset: int
    is_sound: bool = True
    valid_bytes: int = 0
    last_offset: int | None = None
    map_end_offset: int | None = None
    has_transactions: bool = False
    epochs: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def add(self, table: BatchTable, *, is_damaged: bool) -> None:
        """Add the next batches; their CRCs are checked, and their offsets are those of the headers."""
        if not self.is_sound:
            return
        last_offset = self.base_offset - 1 if self.last_offset is None else self.last_offset
        if is_damaged or not _is_plain(table, self.base_offset, last_offset):
            self.is_sound = False
            return
        sums, last = table.sums, len(table) - 1
        self.last_offset = table.last_offset_of(last)
        self.valid_bytes = table.value("position", last) + table.value("size_bytes", last)
        last_epoch = self.epochs[-1][0] if self.epochs else -1
        rows = table.higher_epochs(last_epoch)
        self.epochs += [(table.value("leader_epoch", row), table.value("base_offset", row)) for row in rows]
        self.has_transactions |= sums.in_transactions > 0
        if table.value("magic", last) >= 2:
            self.map_end_offset = self.last_offset + 1
        else:
            is_v2 = np.flatnonzero(table.magic >= 2)
            if len(is_v2):
                self.map_end_offset = table.last_offset_of(int(is_v2[-1])) + 1

    def recovered(self, size_bytes: int) -> Recovered | None:
        """The log after recovery; None where its batches have to be read one by one."""
        if not self.is_sound or self.valid_bytes != size_bytes:
            return None
        next_offset = self.base_offset if self.last_offset is None else self.last_offset + 1
        return Recovered(
            size_bytes,
            LogEnd(next_offset, size_bytes, self.last_offset is not None),
            valid_bytes=size_bytes,
            last_offset=self.last_offset,
            map_end_offset=self.map_end_offset,
            has_transactions=self.has_transactions,
            epochs=self.epochs,
            index=OffsetIndexView(self.base_offset),
        )


def _is_plain(table: BatchTable, base_offset: int, last_offset: int) -> bool:
    if not len(table):
        return False
    sums = table.sums
    if sums.right_crcs < len(table) or not sums.rises or sums.least_offset < base_offset:
        return False
    # Offsets that rise are in the range if the first and the last are.
    is_later = table.last_offset_of(0) > max(base_offset - 1, last_offset)
    return is_later and table.last_offset_of(len(table) - 1) - base_offset <= MAX_RELATIVE_OFFSET
