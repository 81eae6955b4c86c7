"""Builds producer snapshots from written logs, where the source has none that fits.

After a clean shutdown a broker does not replay a log that has no snapshot: all producers are then unknown, and their
open transactions count as ended. A broker also takes a snapshot where it rolls a segment, and it copies no segment to
tiered storage without the snapshot at the next segment's base offset (UnifiedLog.rebuildProducerState,
RemoteLogManager).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from format import layout
from format.files import producer_snapshot
from format.io.source import FileSource
from format.limits import Limits
from format.log.control_records import first_control_records
from format.log.walker import batch_chunks
from format.node.partition import Partition, segment_file_name
from format.rewriting.publishing.publication import Publication
from format.rewriting.written_segments import WrittenSegment
from format.state.producers import ProducerState


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
    """Write the snapshots that the ``written`` logs lack into the partition directory ``name`` of the output.

    ``carried`` are the offsets of the source's snapshots that were copied: then the snapshots of rolled segments are
    built, and those in place of unsound ones. It is None where none was copied because the log has lost batches: then
    only a snapshot at the log's end is built, if the log has producers. Raises OutputError.
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
    state = (
        ProducerState()
        if start is None
        else ProducerState.of_snapshot(producer_snapshot.read(partition.snapshots[start], limits))
    )
    for each in written:
        if start is not None and each.segment_base_offset < start:
            continue
        if each.segment_base_offset in wanted and carried is not None:
            _write(publication, name, each.segment_base_offset, state)
            wanted.remove(each.segment_base_offset)
        if wanted:
            _feed(state, publication.place_of(each.path), limits)
    if end_offset in wanted and (carried is not None or state.entries):
        _write(publication, name, end_offset, state)


def _feed(state: ProducerState, log: Path, limits: Limits) -> None:
    with FileSource(log) as source:
        for chunk in batch_chunks(source, check_crc=False, limits=limits):
            if (chunk.table.producer_id < 0).all():
                continue
            markers = first_control_records(chunk, np.ones(len(chunk.table), bool), limits)
            state.feed(chunk.table, markers)  # what is odd about the producers is reported by verify


def _write(publication: Publication, name: str, offset: int, state: ProducerState) -> None:
    file_name = segment_file_name(offset, layout.PRODUCER_SNAPSHOT_SUFFIX)
    publication.write_file(f"{name}/{file_name}", producer_snapshot.write(state.snapshot_columns()))
