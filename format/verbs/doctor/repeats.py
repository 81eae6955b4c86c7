"""Batches that a producer without an id wrote twice, as a retry does."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding
from format.io.session import path_of
from format.limits import Limits
from format.log.batch_table import BatchTable
from format.node.partition import Partition, read_partition
from format.scan.selected_logs import every_log_of
from format.state.log_headers import HeaderScan, log_parts
from format.verbs.doctor.draft import Draft, command
from format.verbs.doctor.evidence import Evidence
from format.wording import counted

#: Among how many batches before it, and for how long, an equal one is looked for: a client gives up after two minutes.
_REMEMBERED = 4096
_RETRIED_MS = 5 * 60 * 1000
_MOST_PAIRS = 2


class _Pair(msgspec.Struct, frozen=True):
    """The first and last offsets of two equal batches."""

    earlier: tuple[int, int]
    later: tuple[int, int]
    record_count: int


def repeated_batches(evidence: Evidence) -> Iterator[Draft]:
    """Partitions with equal batches, where logs are read whole."""
    if not evidence.reads_records or evidence.is_bundled:
        return
    compacted = evidence.context.compacted_topics()
    for each in evidence.longest_replicas():
        topic = each.topic or ""
        if topic in compacted or each.cleaner_offset is not None or (each.batch_count or 0) < 2:
            continue
        try:
            pairs = list(_equal_batches(read_partition(path_of(each.path)), evidence.limits))
        except KafkaLogError:
            continue  # verify reports it
        if not pairs:
            continue
        count = sum(pair.record_count for pair in pairs)
        verb = "is" if count == 1 else "are"
        words = (
            f"{counted(count, 'record')} {verb} there twice, in equal batches without a producer id, as after a retry: "
        )
        words += "; ".join(f"{_span(pair.earlier)} and {_span(pair.later)}" for pair in pairs[:_MOST_PAIRS])
        words += f"; and {counted(len(pairs) - _MOST_PAIRS, 'more pair')}" if len(pairs) > _MOST_PAIRS else ""
        follow = command("producers", "--duplicates", "--topic", topic, each.path)
        yield Draft("records-twice", f"{topic}-{each.partition}", f"{words}.", each.path, pairs[0].earlier[0], follow,
                    weight=count)  # fmt: skip


def _equal_batches(partition: Partition, limits: Limits) -> Iterator[_Pair]:
    """Pairs of equal batches.

    The times in a batch must differ: a producer that sends one record again and again within a millisecond makes equal
    batches too, but none that begins before the one before it ends.
    """
    known = BatchTable.empty()
    for log in every_log_of(partition):
        for item in log_parts(HeaderScan(limits), log):
            if isinstance(item, Finding):
                continue  # verify reports it
            table = BatchTable.concatenated([known, item.table])
            newest = np.maximum.accumulate(table.max_timestamp)
            _, group, counts = np.unique(table.crc, return_inverse=True, return_counts=True)
            may_be = (counts[group] > 1) & (table.magic == 2) & ~table.is_control
            may_be &= (table.producer_id == layout.NO_PRODUCER_ID) & (table.max_timestamp > table.base_timestamp)
            seen: dict[tuple[int, ...], int] = {}
            for row in np.flatnonzero(may_be & (newest - table.base_timestamp <= _RETRIED_MS)).tolist():
                columns = table.crc, table.size_bytes, table.base_timestamp, table.max_timestamp, table.record_count
                earlier = seen.setdefault(tuple(int(column[row]) for column in columns), row)
                if earlier != row and row >= len(known):
                    yield _Pair(_offsets(table, earlier), _offsets(table, row), int(table.record_count[row]))
            known = table.rows(slice(max(len(table) - _REMEMBERED, 0), None))


def _offsets(table: BatchTable, row: int) -> tuple[int, int]:
    return int(table.base_offset[row]), table.last_offset_of(row)


def _span(offsets: tuple[int, int]) -> str:
    first, last = offsets
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"
