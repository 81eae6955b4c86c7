"""The logs below a target, restricted to what read_committed consumers get where the selection asks for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.node.partition import read_partition
from format.node.target import Target
from format.scan.progress import no_progress
from format.scan.protocol import LogUnit
from format.scan.selected_logs import selected_logs
from format.scan.selection import CommittedView, Selection


def logs_below(target: Target, selection: Selection, limits: Limits = DEFAULT_LIMITS) -> Iterator[LogUnit | Finding]:
    """The logs that may hold selected records, in order, and findings."""
    logs = selected_logs(target, selection)
    return logs if not selection.read_committed else _committed(logs, limits)


def _committed(logs: Iterator[LogUnit | Finding], limits: Limits) -> Iterator[LogUnit | Finding]:
    """The same logs with their views. The headers of a partition are read once, before its first log."""
    directory: Path | None = None
    view: CommittedView | None = None
    for log in logs:
        if isinstance(log, LogUnit):
            if log.path.parent != directory:
                directory = log.path.parent
                view = committed_view(directory, limits)
            yield replace(log, committed=view)
        else:
            yield log


def committed_view(directory: Path, limits: Limits = DEFAULT_LIMITS) -> CommittedView:
    """What read_committed consumers see of a partition; damage is not reported here but when records are read."""
    from format.verbs.txns import partition_transactions  # imported only here: few runs need it

    checkpoints = Target(directory).checkpoints_around(limits)
    found = partition_transactions.PartitionTransactions.of_partition(read_partition(directory), checkpoints)
    list(partition_transactions.read_partition_transactions(found, None, limits, no_progress))
    column = {name: number for number, name in enumerate(partition_transactions.ENDED_COLUMNS)}
    aborted: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    if found.ended:
        table = np.concatenate(found.ended)
        table = table[(table[:, column["is_aborted"]] == 1) & (table[:, column["first_offset"]] >= 0)]
        for producer_id in np.unique(table[:, column["producer_id"]]).tolist():
            own = table[table[:, column["producer_id"]] == producer_id]
            aborted[producer_id] = own[:, column["first_offset"]], own[:, column["last_offset"]]
    return CommittedView(found.offsets.log_start_offset or 0, found.last_stable_offset, aborted)
