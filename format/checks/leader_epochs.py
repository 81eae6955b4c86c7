"""Checks the leader-epoch-checkpoint against the leader epochs of the batches, which are fed table by table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import LeaderEpochCheckpoint
from format.files.side_file import problem_findings
from format.findings import Cause, Certainty, Finding, Judgement, Severity, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.log.batch_table import BatchTable, batch_location

_NEVER = 2**63


class LeaderEpochCheck:
    """A batch's epoch must be that of the last checkpoint entry at or below its base offset (LeaderEpochFileCache)."""

    def __init__(
        self,
        path: Path | None,
        location: Location,
        limits: Limits,
        *,
        first_offset: int | None = None,
        read: Callable[[Path, Limits], LeaderEpochCheckpoint] = leader_epoch_checkpoint.read,
    ) -> None:
        """``first_offset`` is the log start offset if it is certain: the first entry starts there or before.

        ``read`` reads the checkpoint.
        """
        self._starts = np.empty(0, np.int64)
        self._epochs = np.empty(0, np.int64)
        self._opening: list[Finding] = []
        self._name = "leader-epoch-checkpoint" if path is None else str(path)
        self._location = location
        self._first_offset = first_offset
        self._early: Finding | None = None
        if path is not None:
            self._take(lambda: read(path, limits))

    def _take(self, read: Callable[[], LeaderEpochCheckpoint]) -> None:
        try:
            checkpoint = read()
        except KafkaLogError as error:
            self._opening.append(finding_of(error, self._location))
            self._first_offset = None
            return
        self._opening.extend(problem_findings(checkpoint.problems, self._location))
        if checkpoint.problems:
            self._first_offset = None
        else:
            self._starts = np.array([entry.start_offset for entry in checkpoint.entries], np.int64)
            self._epochs = np.array([entry.leader_epoch for entry in checkpoint.entries], np.int64)

    def opening_findings(self) -> list[Finding]:
        """Findings for the checkpoint itself."""
        return self._opening

    def feed(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        """Findings for one table of batches; batches before the first entry cannot be judged."""
        if not len(table):
            return
        yield from self._before_first_entry(table, location)
        if len(self._starts):
            yield from self._differences(table, location)

    def _before_first_entry(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        """The finding for the first batch with an epoch that is before all entries; once for a log.

        Brokers leave such checkpoints on replicas that were reassigned or fetched anew: it is information only.
        It is yielded at the first entry or at the end: messages of an old format would have emptied the checkpoint.
        """
        if self._first_offset is None:
            return
        is_old = table.magic < 2
        if self._early is not None and is_old.any():
            self._early = None
        first_start = int(self._starts[0]) if len(self._starts) else _NEVER
        judged = (table.leader_epoch >= 0) & (table.base_offset >= self._first_offset) & (table.crc_valid != 0)
        early = np.flatnonzero(judged & ~is_old & (table.base_offset < first_start))
        if is_old.any():
            early = early[early > np.flatnonzero(is_old)[-1]]
        if self._early is None and len(early):
            self._early = self._early_finding(table, location, int(early[0]))
        if int(table.base_offset[-1]) >= first_start:
            yield from self._settled_early()

    def _settled_early(self) -> Iterator[Finding]:
        if self._early is not None:
            yield self._early
        self._early = self._first_offset = None

    def _early_finding(self, table: BatchTable, location: Location, row: int) -> Finding:
        begins = f"begins at offset {self._starts[0]}" if len(self._starts) else "has no entry"
        return finding(
            "leader-epoch-checkpoint-mismatch",
            batch_location(location, table, row),
            f"the batch has leader epoch {table.leader_epoch[row]}, but the checkpoint {begins}: a leader cannot look "
            "up the end of this epoch for its followers",
            expected=int(table.base_offset[row]),
            actual=int(self._starts[0]) if len(self._starts) else None,
            judgement=Judgement(
                severity=Severity.INFO,
                certainty=Certainty.POSSIBLE,
                next_step="Nothing, if this replica was fetched anew; else compare with another replica's checkpoint.",
            ),
        )

    def _differences(self, table: BatchTable, location: Location) -> Iterator[Finding]:
        entry = np.searchsorted(self._starts, table.base_offset, side="right") - 1
        expected = self._epochs[np.maximum(entry, 0)]
        judged = (entry >= 0) & (table.magic == 2) & (table.leader_epoch >= 0)
        for row in np.flatnonzero(judged & (table.leader_epoch != expected)).tolist():
            yield finding(
                "leader-epoch-checkpoint-mismatch",
                batch_location(location, table, row),
                f"the batch has leader epoch {table.leader_epoch[row]}, but the checkpoint has {expected[row]} "
                f"from offset {self._starts[entry[row]]} on",
                expected=int(expected[row]),
                actual=int(table.leader_epoch[row]),
            )

    def end_findings(
        self,
        log_end_offset: int | None,
        torn_end: Cause | None = None,
        judged_at_end: Callable[[Finding], Finding] = lambda found: found,
    ) -> Iterator[Finding]:
        """Findings for entries that start past the end of the log; the damage at the end, if any, is their cause."""
        yield from self._settled_early()
        if log_end_offset is None:
            return
        for number in np.flatnonzero(self._starts > log_end_offset).tolist():
            found = finding(
                "leader-epoch-checkpoint-mismatch",
                self._location.at(offset=int(self._starts[number])),
                f"epoch {self._epochs[number]} starts at offset {self._starts[number]}, but the log ends at "
                f"{log_end_offset}",
                expected=log_end_offset,
                actual=int(self._starts[number]),
                judgement=Judgement(caused_by=torn_end),
            )
            yield judged_at_end(found)
