"""The producers that a broker knows at the end of a log, and the first offset of the oldest open transaction."""

from __future__ import annotations

import msgspec

from format.findings import Finding
from format.limits import Limits
from format.log.control_records import first_control_records
from format.node.partition import Partition
from format.scan.selected_logs import log_of_segment
from format.state.producers import ProducerState, newest_sound_snapshot
from format.verbs.compaction.cleaning import whole_chunks


class KnownProducers(msgspec.Struct, frozen=True):
    """Last data offset (None: its last entry is a marker) and epoch of each producer; the first open offset."""

    last_records: dict[int, tuple[int | None, int]]
    first_open_offset: int | None
    log_end_offset: int


def known_producers(partition: Partition, now_ms: int, expiration_ms: int, limits: Limits) -> KnownProducers:
    """The producers from the newest sound producer snapshot, and the log after it."""
    snapshot = newest_sound_snapshot(partition, limits)
    start, state = (0, ProducerState()) if snapshot is None else (snapshot[0], ProducerState.of_snapshot(snapshot[1]))
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
            state.feed(chunk.table.rows(wanted), first_control_records(chunk, wanted, limits))
            end = max(end, chunk.table.last_offset_of(len(chunk.table) - 1) + 1)
    open_transactions = state.open_transactions
    last_records: dict[int, tuple[int | None, int]] = {}
    for producer_id, entry in state.entries.items():
        if producer_id not in open_transactions and now_ms - entry.timestamp >= expiration_ms:
            continue  # the broker forgets it
        last_records[producer_id] = (entry.last_offset if entry.last_offset >= 0 else None, entry.producer_epoch)
    return KnownProducers(last_records, min(open_transactions.values(), default=None), end)
