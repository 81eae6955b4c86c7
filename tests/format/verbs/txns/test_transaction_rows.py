"""Rows of transactions whose producers had wrong clocks."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.columns import TRANSACTION
from format.layout import TRANSACTIONAL_BIT
from format.node.target import Target
from format.verbs.txns.txns import Transactions, TransactionTerms, open_row, open_transactions
from tests.building import BASE_TIMESTAMP, batch, write_segment


@pytest.mark.parametrize(
    ("timestamp", "duration"),
    [(BASE_TIMESTAMP, 5), (0, BASE_TIMESTAMP + 5), (-1, None), (BASE_TIMESTAMP + 6, None), (2**63 - 3, None)],
)
def test_no_transaction_lasts_less_than_no_time(tmp_path: Path, timestamp: int, duration: int | None) -> None:
    one = batch(0, timestamp=timestamp, producer_id=7, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL_BIT)
    write_segment(tmp_path / "orders-0", 0, [one])
    found, terms = Transactions((Target(tmp_path / "orders-0"),)), TransactionTerms(now_ms=BASE_TIMESTAMP + 5)
    assert not list(found.read(terms))
    (opened,) = open_transactions(found, terms)
    assert dict(zip(TRANSACTION.names, open_row(opened, terms), strict=True))["duration_ms"] == duration
