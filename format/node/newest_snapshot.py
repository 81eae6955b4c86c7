"""The newest sound producer snapshot of a partition."""

from __future__ import annotations

from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.producer_snapshot import ProducerSnapshot
from format.limits import Limits
from format.node.partition import Partition


def newest_sound_snapshot(
    partition: Partition, limits: Limits, most_offset: int | None = None
) -> tuple[int, ProducerSnapshot] | None:
    """The offset and the content of the newest producer snapshot without problems; None where there is none.

    Snapshots past ``most_offset`` are passed over, if one is given. A broker goes on to an older one, too, where it
    cannot read the newest (storage ProducerStateManager.loadFromSnapshot).
    """
    for offset in sorted(partition.snapshots, reverse=True):
        if most_offset is not None and offset > most_offset:
            continue
        try:
            snapshot = producer_snapshot.read(partition.snapshots[offset], limits)
        except KafkaLogError:
            continue
        if not snapshot.problems:
            return offset, snapshot
    return None
