"""txns and find on a node full of transactions, against what its clients and Kafka's own find-hanging said."""

from __future__ import annotations

import json
from pathlib import Path

from tests.oracle.transaction_truth import TransactionTruth, compared


def test_a_node_full_of_transactions(data_dir: Path) -> None:
    """Every offset of four partitions, last stable offsets, open and hanging transactions, transactional ids."""
    corpus = data_dir / "trials" / "transactions"
    truth = TransactionTruth.of_json(json.loads((corpus / "truth" / "transactions.json").read_text()))
    counts = compared(corpus / "node-1", truth)
    assert {name: count for name, count in counts.items() if name.startswith("different")} == {}
    for visibility in (
        "visible",
        "read_uncommitted_only",
        "aborted",
        "control",
        "below_log_start",
        "compacted",
        "past_end",
    ):
        assert counts[f"{visibility} offsets"] > 0
    assert (counts["hanging transactions"], counts["open transactions"], counts["last stable offsets"]) == (2, 4, 4)
