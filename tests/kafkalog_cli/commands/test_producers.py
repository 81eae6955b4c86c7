"""kafkalog producers as a user runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from format.columns import PRODUCER
from tests.running import Run


def test_rows_and_sentence(run_kafkalog_many: Callable[..., list[Run]], data_dir: Path) -> None:
    node = data_dir / "trials" / "transactions" / "node-1"
    run, one, none = run_kafkalog_many(
        [
            ("producers", "--format", "jsonl", "--topic", "payments", node),
            ("producers", "--format", "jsonl", "--transactional-id", "fenced", node),
            ("producers", "--format", "jsonl", "--producer-id", "4", node / "payments-0"),
        ]
    )
    rows = run.check(0).rows("producer")
    assert {tuple(row)[1:] for row in rows} == {PRODUCER.names}
    assert run.stderr.startswith(f"{len({row['producer_id'] for row in rows})} producers wrote ")
    assert " to 2 of 2 partitions." in run.stderr
    assert {row["transactional_id"] for row in one.check(0).rows("producer")} == {"fenced"}
    assert [row["transactional_id"] for row in none.check(0).rows("producer")] == [None]
    assert none.summary["not_checked"] == ["transactional ids: no __transaction_state was given"]
