"""Adds leader epochs, and the times of findings, from tables of batches to the time line of a report set."""

from __future__ import annotations

import msgspec
import numpy as np

from format.findings import Finding, Severity
from format.location import Location
from format.log.batch_table import BatchTable
from format.verbs.report.survey import DamagedPlace
from format.verbs.report.timeline import Timeline
from format.verbs.verify.walk import sound_batches

#: The most findings that wait for their batches.
_MOST_FINDINGS = 100_000
_MOST_EPOCHS = 100


class _Placed(msgspec.Struct):
    """A finding, its offsets, and the batch at or before it among those read so far."""

    found: Finding
    position: int
    place: DamagedPlace | None
    batch_position: int = -1
    timestamp: int | None = None


class TableEvents(msgspec.Struct):
    """Collects findings and leader epochs from batches in any order of files; ``finish`` adds them to a time line."""

    _findings: dict[str, list[_Placed]] = msgspec.field(default_factory=dict)
    _count: int = 0
    _epochs: dict[str, dict[int, tuple[int, int, Location]]] = msgspec.field(default_factory=dict)

    def find(self, found: Finding, place: DamagedPlace | None) -> None:
        """Add a finding, before any batches; findings below warning are not on a time line."""
        position = found.location.position
        if found.severity < Severity.WARNING or position is None or self._count >= _MOST_FINDINGS:
            return
        self._count += 1
        self._findings.setdefault(found.location.path, []).append(_Placed(found, position, place))

    def see(self, where: Location, table: BatchTable) -> None:
        """Add batches of one log, in order of position; ``where`` has its path, topic and partition."""
        for placed in self._findings.get(where.path, ()):
            row = table.row_at(placed.position)
            if row >= 0 and int(table.position[row]) > placed.batch_position:
                placed.batch_position = int(table.position[row])
                placed.timestamp = int(table.max_timestamp[row])
        sound = sound_batches(table)
        epochs = self._epochs.setdefault(where.path.rpartition("/")[0], {})
        found, rows = np.unique(sound.leader_epoch, return_index=True)
        for epoch, row in zip(found.tolist(), rows.tolist(), strict=True):
            offset = int(sound.base_offset[row])
            known = epochs.get(epoch)
            if epoch >= 0 and (len(epochs) < _MOST_EPOCHS if known is None else offset < known[0]):
                at = where.at(int(sound.position[row]), None, offset)
                epochs[epoch] = offset, int(sound.max_timestamp[row]), at

    def finish(self, timeline: Timeline) -> None:
        """Put all events on the time line, and the times of findings at their places."""
        for findings in self._findings.values():
            for placed in findings:
                timeline.damage(placed.found, placed.timestamp)
                if placed.place is not None and placed.timestamp is not None and placed.timestamp >= 0:
                    placed.place.timestamp = placed.timestamp
        for epochs in self._epochs.values():
            for epoch, (_, timestamp, at) in sorted(epochs.items()):
                timeline.leader_epoch(at, timestamp, epoch)
