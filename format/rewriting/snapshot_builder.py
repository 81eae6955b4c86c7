"""Producer snapshots built from a log that was written, where the source has none that fits.

A broker that was stopped cleanly does not replay a log without any snapshot: it takes the producers for unknown, and
their open transactions for ended. It would also have taken a snapshot where a segment was rolled, and copies no segment
to tiered storage without that of the next one's base offset (UnifiedLog.rebuildProducerState, RemoteLogManager).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from format import layout
from format.files import producer_snapshot
from format.io.source import FileSource
from format.limits import Limits
from format.log.walker import batch_chunks
from format.node.partition import Partition
from format.node.segment import segment_file_name
from format.rewriting.index_builder import end_markers
from format.rewriting.publish import Publication
from format.rewriting.written_segments import WrittenSegment
from format.state.producers import ProducerEntry, ProducerState


def rebuild_snapshots(
    publication: Publication,
    partition: Partition,
    name: str,
    written: Sequence[WrittenSegment],
    end_offset: int,
    carried: set[int] | None,
    *,
    limits: Limits,
) -> None:
    """Write what snapshots the logs of ``written`` lack into the partition directory ``name`` of the output.

    ``carried`` are the offsets of the source's snapshots that came along: then those of rolled segments are built, and
    in the place of unsound ones. None where they were left out, because the log has lost batches: then one at the
    log's end is, if there is a producer in it. Raises OutputError.
    """
    base_offsets = [each.segment_base_offset for each in written]
    if not base_offsets or (carried is not None and not partition.snapshots):
        return
    wanted = {end_offset}
    if carried is not None:
        rolled = set(base_offsets) - {each.base_offset for each in partition.segments} - carried
        unsound = set(partition.snapshots) - carried
        wanted = rolled | (unsound & {*base_offsets, end_offset}) if carried else {*rolled, end_offset}
    if not wanted:
        return
    start = max((each for each in carried or () if each in base_offsets and each <= min(wanted)), default=None)
    state = ProducerState() if start is None else _state_of(partition.snapshots[start], limits)
    for each in written:
        if start is not None and each.segment_base_offset < start:
            continue
        if each.segment_base_offset in wanted and carried is not None:
            _write(publication, name, each.segment_base_offset, state)
            wanted.remove(each.segment_base_offset)
        if wanted:
            _feed(state, publication.place_of(each.path), partition, limits)
    if end_offset in wanted and (carried is not None or state.entries):
        _write(publication, name, end_offset, state)


def _feed(state: ProducerState, log: Path, partition: Partition, limits: Limits) -> None:
    with FileSource(log) as source:
        for chunk in batch_chunks(source, check_crc=False, limits=limits):
            if (chunk.table.producer_id < 0).all():
                continue
            markers = end_markers(chunk, np.ones(len(chunk.table), bool), limits)
            for _ in state.feed(chunk.table, markers, partition.location(log), is_compacted=True):
                pass  # what is odd about the producers is for verify to tell


def _state_of(path: Path, limits: Limits) -> ProducerState:
    state = ProducerState()
    snapshot = producer_snapshot.read(path, limits)
    for producer_id, *values, coordinator_epoch, first_offset in zip(
        *(column.tolist() for column in snapshot.columns), strict=True
    ):
        producer_epoch, last_sequence, last_offset, offset_delta, timestamp = values
        entry = ProducerEntry(producer_epoch, last_sequence, last_offset, offset_delta, timestamp)
        entry.coordinator_epoch = None if coordinator_epoch < 0 else coordinator_epoch
        if first_offset >= 0:
            entry.current_txn_first_offset = state.open_transactions[producer_id] = first_offset
        state.entries[producer_id] = entry
    return state


def _write(publication: Publication, name: str, offset: int, state: ProducerState) -> None:
    rows = [
        (
            producer_id,
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
            entry.timestamp,
            -1 if entry.coordinator_epoch is None else entry.coordinator_epoch,
            -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset,
        )
        for producer_id, entry in state.entries.items()
    ]
    columns = tuple(np.array(rows, np.int64).reshape(-1, 8).T)
    file_name = segment_file_name(offset, layout.PRODUCER_SNAPSHOT_SUFFIX)
    publication.write_file(f"{name}/{file_name}", producer_snapshot.write(columns))
