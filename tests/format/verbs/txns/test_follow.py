"""txns --follow: what is open at first, then each transaction once, when it ends or begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from format.columns import TRANSACTION
from format.findings import Finding
from format.node.target import Target
from format.verbs.txns.txns import TransactionTerms, follow_transactions
from tests.building import batch, write_segment
from tests.format.scan.scripted import Step, shown_by
from tests.format.verbs.txns.transaction_logs import NOW, coordinator_batch, data, marker


def append(path: Path, content: bytes) -> Callable[[], None]:
    def do() -> None:
        with path.open("ab") as file:
            file.write(content)

    return do


def shown(root: Path, steps: list[Step], *, first: int = 0, **terms: Any) -> list[tuple[Any, ...] | str]:
    wanted = TransactionTerms(now_ms=NOW, **terms)
    items = shown_by(lambda follow: follow_transactions([Target(root)], wanted, follow), steps, first=first)
    return [_short(each) for each in items]


def _short(item: tuple[Any, ...] | Finding) -> tuple[Any, ...] | str:
    if isinstance(item, Finding):
        return item.code
    row = dict(zip(TRANSACTION.names, item, strict=True))
    return row["producer_id"], row["state"], row["first_offset"], row["last_offset"]


def test_each_transaction_is_shown_once(tmp_path: Path) -> None:
    directory = tmp_path / "payments-3"
    log = write_segment(directory, 0, [data(0, 6), marker(2, 6, commit=True), data(3, 7)])
    second = directory / "00000000000000000010.log"
    steps: list[Step] = [
        (append(log, data(5, 8) + marker(7, 7, commit=False)), 1),
        (append(log, data(8, 9)), 0),
        (append(second, marker(10, 8, commit=True) + batch(11)), 1),
        (append(second, marker(14, 9, commit=True)), 1),
    ]
    assert shown(directory, steps, first=1) == [
        (7, "open", 3, 4),
        (7, "aborted", 3, 7),
        (8, "committed", 5, 10),
        (9, "committed", 8, 14),
    ]


def test_open_transactions_as_they_begin(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "payments-3", 0, [data(0, 6)])
    steps: list[Step] = [
        (append(log, data(2, 7)), 1),
        (append(log, data(4, 7) + marker(6, 7, commit=True) + data(7, 7)), 1),
    ]
    rows = shown(log.parent, steps, first=1, only_open=True)
    assert rows == [(6, "open", 0, 1), (7, "open", 2, 3), (7, "open", 7, 8)]


def test_a_log_that_is_cut_is_read_once_more(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "payments-3", 0, [data(0, 6), data(2, 7)])
    size = log.stat().st_size
    steps: list[Step] = [
        (append(log, marker(4, 6, commit=True) + marker(5, 7, commit=True)), 2),
        (lambda: os.truncate(log, size + len(marker(4, 6, commit=True))), 1),
        (append(log, marker(5, 7, commit=False)), 1),
    ]
    assert shown(log.parent, steps, first=2) == [
        (6, "open", 0, 1),
        (7, "open", 2, 3),
        (6, "committed", 0, 4),
        (7, "committed", 2, 5),
        "followed-log-cut",
        (7, "aborted", 2, 5),
    ]


def test_the_records_of_coordinators_are_followed(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    log = write_segment(tmp_path / "payments-3", 0, [data(0, 6)])
    ids = write_segment(tmp_path / "__transaction_state-0", 0, [])
    steps: list[Step] = [
        (append(ids, coordinator_batch(0, "billing", 6, 1, {"payments": [3]})), 0),
        (append(log, marker(2, 6, commit=True)), 1),
    ]
    terms = TransactionTerms(now_ms=NOW)
    items = shown_by(lambda follow: follow_transactions([Target(tmp_path)], terms, follow), steps, first=1)
    column = TRANSACTION.names.index("transactional_id")
    assert [item[column] for item in items] == [None, "billing"]
