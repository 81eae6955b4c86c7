"""The counts of gaps and of batches in transactions, from sums of the kernel and from tables of batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.node.log_dir import Checkpoints
from format.verbs.ls import partition_listing
from format.verbs.ls.partition_listing import PartitionTerms, list_partition
from tests.building import batch, batches, write_segment
from tests.format.verbs.txns.transaction_logs import data, marker

SEGMENTS: dict[int, list[bytes]] = {
    0: [*batches(2), data(6, 7), marker(8, 7, commit=True), batch(9)],
    12: [batch(12), batch(20)],  # a gap in a segment
    30: [batch(30)],  # and one before a segment
}


@pytest.mark.parametrize("is_summed", [True, False])
def test_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_summed: bool) -> None:
    for base_offset, content in SEGMENTS.items():
        log = write_segment(tmp_path / "orders-0", base_offset, content)
        for suffix in (".index", ".timeindex"):
            log.with_suffix(suffix).touch()
    if not is_summed:
        monkeypatch.setattr(partition_listing, "is_read_plainly", lambda path: False)
    totals = list_partition(tmp_path / "orders-0", Checkpoints(), PartitionTerms(segments=False)).totals
    assert (totals.batch_count, totals.gaps, totals.in_transactions) == (8, 2, 2)
