"""The rows that dump shows, by keywords."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.node.target import Target
from format.rows.record_rows import RowBlock
from format.scan.selection import EVERYTHING, Selection
from format.verbs.dump import DumpTerms, dumped_rows


def dump(
    path: Path | Target,
    *,
    records: bool = False,
    selection: Selection = EVERYTHING,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[RowBlock | Finding]:
    """Rows of the file or directory at ``path`` (batches or records of logs, entries of side files), and findings.

    Records of a batch with a wrong CRC are not shown; a finding reports them. Raises InputError for a path that does
    not belong to Kafka.
    """
    return dumped_rows(path, DumpTerms(records, selection, limits))
