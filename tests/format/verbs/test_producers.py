"""producers against what a broker says of its producers, against records, and on logs made for single cases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from format.columns import PRODUCER
from format.findings import Finding
from format.io.source import FileSource
from format.layout import NO_PRODUCER_ID
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.node.target import Target
from format.verbs.producers import (
    Producers,
    ProducerTerms,
    has_broken_sequences,
    producer_rows,
    producer_sentence,
    ranges_text,
)
from tests.building import batch, write_segment
from tests.format.verbs.txns.transaction_logs import coordinator_batch, data, marker


def read(*paths: Path, **terms: Any) -> list[dict[str, Any]]:
    """The rows as dicts."""
    asked = ProducerTerms(**terms)
    result = Producers(tuple(Target(path) for path in paths))
    assert all(isinstance(found, Finding) for found in result.read(asked))
    return [dict(zip(PRODUCER.names, row, strict=True)) for row in producer_rows(result, asked)]


def test_last_sequences_are_those_of_the_broker(data_dir: Path) -> None:
    """describeProducers has no sequence of a producer whose epoch a marker raised, and the last one of others."""
    corpus = data_dir / "trials" / "transactions"
    truth = json.loads((corpus / "truth" / "transactions.json").read_text())["producers"]
    rows = {(f"{row['topic']}-{row['partition']}", row["producer_id"]): row for row in read(corpus / "node-1")}
    compared = 0
    for name, producers in truth.items():
        for known in producers:
            if known["last_sequence"] >= 0:
                row = rows[name, known["producer_id"]]
                assert row["last_sequence"] == known["last_sequence"]
                assert row["last_timestamp"] == known["timestamp"]
                assert str(known["producer_epoch"]) in row["epochs"].replace("-", ",").split(",")
                compared += 1
    assert compared >= 4
    assert {row["transactional_id"] for row in rows.values()} >= {None, "fenced", "billing-0", "left-open-1"}


def test_counts_are_those_of_the_records(data_dir: Path) -> None:
    directory = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    records: Counter[int] = Counter()
    batches: dict[int, set[int]] = {}
    for log in sorted(directory.glob("*.log")):
        with FileSource(log) as source:
            for chunk in batch_chunks(source):
                for table in record_tables(chunk):
                    producers = table.batches.producer_id[table.batch].tolist()
                    records.update(producers)
                    for producer, first in zip(producers, table.batches.base_offset[table.batch].tolist(), strict=True):
                        batches.setdefault(producer, set()).add(first)
    rows = {row["producer_id"]: row for row in read(directory)}
    assert {producer: row["record_count"] for producer, row in rows.items()} == records
    assert {producer: row["batch_count"] for producer, row in rows.items()} == {
        producer: len(each) for producer, each in batches.items()
    }
    counted = {(row["gap_count"], row["duplicate_count"], row["repeated_batch_count"]) for row in rows.values()}
    assert counted == {(0, 0, None) if producer >= 0 else (None, None, 0) for producer in rows}


def test_gaps_duplicates_and_epochs(tmp_path: Path) -> None:
    def wrote(offset: int, sequence: int, epoch: int, time: int = 0) -> bytes:
        return data(offset, 7, 2, epoch=epoch, base_sequence=sequence, attributes=0, time=time)

    log = [
        wrote(0, 0, 0), wrote(2, 2, 0), wrote(4, 9, 0), wrote(6, 9, 0), wrote(8, 0, 1), wrote(10, 2, 3),
        wrote(12, 4, 3, time=500),
    ]  # fmt: skip
    write_segment(tmp_path / "orders-0", 0, log[:4])
    write_segment(tmp_path / "orders-0", 8, [*log[4:], batch(14)])
    producer, without = read(tmp_path / "orders-0")
    # Sequence 9 after 3, and epoch 3, which begins at 2: what came before is missing.
    assert (producer["gap_count"], producer["duplicate_count"], producer["epochs"]) == (2, 1, "0-1,3")
    assert (producer["first_sequence"], producer["last_sequence"], producer["last_offset"]) == (0, 5, 13)
    assert (producer["batch_count"], producer["record_count"], producer["codecs"]) == (7, 14, "none:7")
    assert producer["mean_batch_bytes"] == len(log[0])
    assert (without["producer_id"], without["epochs"], without["record_count"]) == (-1, None, 3)
    (before,) = read(tmp_path / "orders-0", at_ms=499, producer_id=7)
    assert (before["last_offset"], before["last_timestamp"]) == (11, 0)


def test_of_a_transactional_id(tmp_path: Path) -> None:
    write_segment(tmp_path / "a-0", 0, [data(0, 7), marker(2, 7, commit=True), data(3, 9)])
    write_segment(tmp_path / "b-0", 0, [data(0, 8)])
    write_segment(
        tmp_path / "__transaction_state-0",
        0,
        [coordinator_batch(0, "billing", 7, 4, {}), coordinator_batch(1, "billing", 8, 1, {"b": [0]})],
    )
    rows = read(tmp_path, transactional_id="billing")
    assert [(row["topic"], row["producer_id"], row["batch_count"]) for row in rows] == [("a", 7, 1), ("b", 8, 1)]
    assert [row["topic"] for row in read(tmp_path, topics=frozenset({"b"}))] == ["b"]


def test_ranges() -> None:
    assert ranges_text([]) == ""
    assert ranges_text([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


def producer(producer_id: int, gaps: int | None = 0, duplicates: int | None = 0) -> tuple[Any, ...]:
    values = {
        "producer_id": producer_id, "topic": "orders", "partition": 0, "batch_count": 2,
        "gap_count": gaps, "duplicate_count": duplicates, "repeated_batch_count": None if producer_id >= 0 else 0,
    }  # fmt: skip
    return tuple(values.get(name) for name in PRODUCER.names)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([producer(5), producer(NO_PRODUCER_ID, None, None)], ""),
        ([producer(5, gaps=1)], " The sequences of producer 5 on orders-0 have 1 gap (compaction makes gaps, too)."),
        ([producer(4), producer(5, duplicates=2)], " The sequences of producer 5 on orders-0 have 2 duplicates."),
        (
            [producer(5, 1, 1), producer(6, 0, 1), producer(7, 0, 1)],
            (
                " The sequences of producer 5 on orders-0 have 1 gap and 1 duplicate, "
                "and those of 2 more rows are broken, too (compaction makes gaps, too)."
            ),
        ),
    ],
)
def test_broken_sequences_are_said(rows: list[tuple[Any, ...]], words: str) -> None:
    assert producer_sentence(rows, 1).partition(" to 1 of 1 partition.")[2] == words
    assert any(map(has_broken_sequences, rows)) is bool(words)
