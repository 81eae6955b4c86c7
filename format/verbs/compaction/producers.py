"""The producers that a broker knows at the end of a log, and where its oldest open transaction begins."""

from __future__ import annotations

from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.findings import Finding
from format.limits import Limits
from format.node.partition import Partition
from format.scan.selected_logs import log_of_segment
from format.state.producers import ProducerState
from format.value_class import value_class
from format.verbs.compaction.cleaning import markers_of, whole_chunks


@value_class
class KnownProducers:
    """Last data offset (None: its last entry is a marker) and epoch of each producer; the first open offset."""

    last_records: dict[int, tuple[int | None, int]]
    first_open_offset: int | None
    log_end_offset: int


def known_producers(partition: Partition, now_ms: int, expiration_ms: int, limits: Limits) -> KnownProducers:
    """From the newest producer snapshot that can be read, and the log after it."""
    state, start = _newest_snapshot(partition, limits)
    end = start
    for segment in partition.segments:
        next_base = partition.next_base_offset(segment)
        log = log_of_segment(partition, segment)
        if log is None or (next_base is not None and next_base <= start):
            continue
        end = max(end, segment.base_offset)
        for chunk in whole_chunks(log, limits):
            if isinstance(chunk, Finding) or not len(chunk.table):
                continue
            wanted = chunk.table.base_offset >= start
            markers = markers_of(chunk, chunk.table.is_control & wanted, limits)
            numbers = wanted.cumsum() - 1
            state.feed(chunk.table.rows(wanted), {int(numbers[row]): each for row, each in markers.items()})
            end = max(end, chunk.table.last_offset_of(len(chunk.table) - 1) + 1)
    open_transactions = state.open_transactions
    last_records: dict[int, tuple[int | None, int]] = {}
    for producer_id, entry in state.entries.items():
        if producer_id not in open_transactions and now_ms - entry.timestamp >= expiration_ms:
            continue  # the broker forgets it
        last_records[producer_id] = (entry.last_offset if entry.last_offset >= 0 else None, entry.producer_epoch)
    return KnownProducers(last_records, min(open_transactions.values(), default=None), end)


def _newest_snapshot(partition: Partition, limits: Limits) -> tuple[ProducerState, int]:
    for offset in sorted(partition.snapshots, reverse=True):
        try:
            snapshot = producer_snapshot.read(partition.snapshots[offset], limits)
        except KafkaLogError:
            continue  # the broker goes on to the one before
        if not snapshot.problems:
            return ProducerState.of_snapshot(snapshot), offset
    return ProducerState(), 0
