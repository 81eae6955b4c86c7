"""producers --duplicates: which repeats are found, what is proven of them, and how much is remembered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from format.columns import REPEATED_RECORDS
from format.findings import Finding
from format.layout import TRANSACTIONAL_BIT
from format.node.target import Target
from format.verbs import repeated_records
from format.verbs.producers import ProducerTerms
from format.verbs.repeated_records import RepeatedRecords, repeat_sentences, repeated_rows
from tests.building import batch, wrapper, write_segment
from tests.format.verbs.txns.transaction_logs import marker

MINUTE = 60_000
VALUES = (b"one", b"two", b"three")


def read(*paths: Path, within_ms: int = 5 * MINUTE, **terms: Any) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """The rows as dicts, the sentences, and what was not checked."""
    asked = ProducerTerms(**terms)
    result = RepeatedRecords(tuple(Target(path) for path in paths))
    assert all(isinstance(found, Finding) for found in result.read(asked, within_ms))
    rows = [dict(zip(REPEATED_RECORDS.names, row, strict=True)) for row in repeated_rows(result, asked)]
    return rows, repeat_sentences(result, asked, "300 s"), result.not_checked()


def sent(
    offset: int, producer: int = -1, *, epoch: int = 0, sequence: int = 0, at: int | None = None, **more: Any
) -> bytes:
    own = {} if producer < 0 else {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
    time = 1_000_000 + offset * 100 if at is None else at
    return batch(offset, **({"values": VALUES, "timestamp": time} | own | more))


@pytest.mark.parametrize(
    ("first", "again", "kind", "words"),
    [
        (sent(0, 7), sent(3, 7), "sequence", "by producer 7 with the same sequence: duplicates"),
        (sent(0, at=5), sent(3, at=5), "batch", "in equal batches without a producer id, as by a retry"),
        (sent(0, 7), sent(3, 8), "new_producer", "by producers 7 and 8, which began after it, as after a restart"),
        (sent(0, 7), sent(3, 7, epoch=1), "new_epoch", "by producer 7 in epochs 0 and 1"),
        (sent(0, 7), sent(3, 7, sequence=3), "same_producer", "by producer 7 with different sequences"),
        (sent(0), sent(3), "unknown_producer", "by producers without an id"),
        (sent(0, 7), sent(3), "unknown_producer", "once by a producer without an id"),
    ],
    ids=lambda each: each if isinstance(each, str) and " " not in each else "",
)
def test_what_is_said_of_records_written_twice(
    tmp_path: Path, first: bytes, again: bytes, kind: str, words: str
) -> None:
    write_segment(tmp_path / "orders-0", 0, [first, again, sent(6, 9, values=[b"other"])])
    [row], [sentence], _ = read(tmp_path / "orders-0")
    assert (row["kind"], row["is_duplicate"]) == (kind, kind == "sequence")
    assert (row["earlier_first_offset"], row["earlier_last_offset"]) == (0, 2)
    assert (row["first_offset"], row["last_offset"], row["record_count"]) == (3, 5, 3)
    apart = 0 if kind == "batch" else 300
    assert row["time_apart_ms"] == apart
    assert sentence.startswith(f"3 records of orders-0 were written twice, {apart / 1000:g} s apart, {words}")
    assert "offsets 0 to 2 and 3 to 5. To see them: kafkalog dump --records --from-offset 0 --to-offset 5 " in sentence
    assert ("duplicate" in sentence) == (kind == "sequence")


def test_a_producer_that_goes_on_was_not_restarted(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, [sent(0, 7), sent(3, 8), sent(6, 7, sequence=3, values=[b"later"])])
    [row], [sentence], _ = read(tmp_path / "orders-0")
    assert row["kind"] == "other_producer"
    assert "by producers 7 and 8: offsets 0 to 2 and 3 to 5." in sentence


def test_what_is_no_repeat(tmp_path: Path) -> None:
    """Too late, another key, null and empty values, an aborted transaction, and a log of a group coordinator."""
    log = [
        sent(0, 7, at=0), sent(3, 8, at=5 * MINUTE + 3), sent(6, 9, at=5 * MINUTE, key=b"other"),
        sent(9, 1, values=[b"", None], at=0), sent(11, 2, values=[b"a"], at=0, attributes=TRANSACTIONAL_BIT),
        marker(12, 2, commit=False), sent(13, 2, values=[b"a"], at=0, sequence=1),
    ]  # fmt: skip
    write_segment(tmp_path / "orders-0", 0, log)
    write_segment(tmp_path / "__consumer_offsets-0", 0, [sent(0), sent(3)])
    rows, sentences, _ = read(tmp_path / "orders-0", tmp_path / "__consumer_offsets-0")
    assert rows == []
    assert sentences == ["None of the 12 records read in 1 partition repeats one at most 300 s before it."]
    rows, _, _ = read(tmp_path / "orders-0", within_ms=5 * MINUTE + 3)
    assert [row["first_offset"] for row in rows] == [3]
    rows, _, _ = read(tmp_path / "__consumer_offsets-0", topics=frozenset({"__consumer_offsets"}))
    assert len(rows) == 1


def test_a_record_again_and_again_is_one_run(tmp_path: Path) -> None:
    log = [sent(offset, 7, sequence=offset, values=[b"beat"]) for offset in range(9)]
    write_segment(tmp_path / "orders-0", 0, log)
    [row], [sentence], _ = read(tmp_path / "orders-0")
    assert (row["first_offset"], row["last_offset"], row["record_count"]) == (1, 8, 8)
    assert sentence.startswith("8 records of orders-0 repeat the one 1 record before, 0.1 s apart, by producer 7 with")


def test_old_formats_and_compression(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, [wrapper(1, 0), wrapper(1, 3)])
    write_segment(tmp_path / "orders-1", 0, [sent(0, 7, codec=4), sent(3, 8)])
    rows, _, _ = read(tmp_path / "orders-0", tmp_path / "orders-1")
    found = [(row["partition"], row["kind"], row["record_count"], row["producer_epoch"]) for row in rows]
    assert found == [(0, "batch", 3, -1), (1, "new_producer", 3, 0)]


def test_producers_are_chosen_on_either_side(tmp_path: Path) -> None:
    write_segment(
        tmp_path / "orders-0", 0, [sent(0, 7), sent(3, 8), sent(6, 9, values=[b"u"]), sent(7, 9, values=[b"u"])]
    )
    assert [len(read(tmp_path / "orders-0", producer_id=each)[0]) for each in (7, 8, 9, 10)] == [1, 1, 1, 0]


def test_memory_is_bounded_and_what_is_forgotten_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats further back than what is remembered are named as not checked, if the window would reach them."""
    monkeypatch.setattr(repeated_records, "REMEMBERED", 8)
    monkeypatch.setattr(repeated_records, "_SLICE", 3)
    monkeypatch.setattr(repeated_records, "MOST_RUNS", 1)
    values = [b"%d" % each for each in (0, 1, 2, 3, 4, 2, 6, 7, 8, 7, 10, 0)]
    write_segment(tmp_path / "orders-0", 0, [sent(0, 7, values=values)])
    [row], _, not_checked = read(tmp_path / "orders-0")
    assert (row["earlier_first_offset"], row["first_offset"]) == (2, 5)
    assert not_checked == ["orders-0: repeats further back than 8 records", "orders-0: 1 further run of repeats"]
    assert read(tmp_path / "orders-0", within_ms=2)[2] == []
