"""txns against what brokers said of the corpora, and on logs made for single cases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.files import producer_snapshot
from format.io.source import FileSource
from format.log.walker import batch_chunks
from format.state.producers import ProducerState
from format.verbs.txns.txns import TransactionTerms, open_transactions, sentences
from tests.building import batch, forbid_reading, write_segment
from tests.corpora import Corpus
from tests.format.verbs.txns.transaction_logs import MINUTE, NOW, coordinator_batch, data, marker, read

ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT = 1, 2, 4


def test_last_stable_offsets_are_those_of_the_broker(witnessed_corpus: Corpus) -> None:
    _, result, _ = read(*witnessed_corpus.log_dirs)
    found = {f"{topic}-{number}": each.last_stable_offset for (topic, number), each in result.partitions.items()}
    expected = {name: marks["last_stable_offset"] for name, marks in witnessed_corpus.truth_json("watermarks").items()}
    common = found.keys() & expected.keys()
    assert {name: found[name] for name in common} == {name: expected[name] for name in common}
    assert len(common) > 0


def test_the_open_transaction_of_a_corpus(data_dir: Path, tmp_path: Path) -> None:
    """The log of its coordinator is also found beside the partition."""
    node = data_dir / "kafka-4.3-single" / "node-1"
    rows, _, findings = read(node)
    assert findings == []
    (row,) = (each for each in rows if each["state"] == "open")
    assert (row["topic"], row["partition"], row["first_offset"], row["last_offset"]) == ("payments", 0, 111, 135)
    assert (row["transactional_id"], row["coordinator_state"], row["timeout_ms"]) == (
        "payments-hanging",
        "Ongoing",
        900_000,
    )
    assert (row["record_count"], row["waiting_record_count"], row["is_hanging"]) == (25, 65, False)
    assert row["abort_command"] is None, "its coordinator will end it"
    assert read(node / "payments-0", only_open=True)[0] == [row]
    shutil.copytree(node / "payments-0", tmp_path / "payments-0")
    (alone,) = read(tmp_path / "payments-0", only_open=True)[0]
    assert alone["is_hanging"] is None
    assert alone["abort_command"] == (
        "kafka-transactions.sh --bootstrap-server localhost:9092 abort "
        "--topic payments --partition 0 --start-offset 111"
    )
    assert {each["state"] for each in rows} == {"open", "committed"}


def test_transactions_go_on_from_segment_to_segment(tmp_path: Path) -> None:
    directory = tmp_path / "payments-3"
    write_segment(directory, 0, [data(0, 7, time=10), batch(2), data(5, 8, 3, time=20)])
    write_segment(
        directory, 8, [data(8, 7, time=30), marker(10, 7, commit=False, time=40, epoch=1), data(11, 9, time=50)]
    )
    rows, result, _ = read(directory)
    assert [(each["state"], each["producer_id"]) for each in rows] == [("open", 8), ("open", 9), ("aborted", 7)]
    aborted, holder = rows[2], rows[0]
    assert (aborted["first_offset"], aborted["last_offset"], aborted["record_count"]) == (0, 10, 4)
    assert (aborted["producer_epoch"], aborted["coordinator_epoch"], aborted["duration_ms"]) == (0, 3, 30)
    assert (holder["holds_last_stable_offset"], rows[1]["holds_last_stable_offset"]) == (True, False)
    assert (holder["waiting_record_count"], rows[1]["waiting_record_count"]) == (3 + 2 + 2, 2)
    assert (holder["segment_base_offset"], rows[1]["segment_base_offset"], rows[1]["position"] > 0) == (0, 8, True)
    assert result.partitions["payments", 3].last_stable_offset == 5


def test_a_transaction_that_began_before_the_log_comes_from_a_snapshot(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    lost = write_segment(tmp_path / "lost", 0, [data(0, 7), data(2, 8)])
    state = ProducerState()
    write_segment(directory, 4, [batch(4), marker(7, 8, commit=True)])
    with FileSource(lost) as source:
        for chunk in batch_chunks(source):
            state.feed(chunk.table, {})
    (directory / f"{4:020d}.snapshot").write_bytes(producer_snapshot.write(state.snapshot_columns()))
    rows, result, _ = read(directory)
    assert [(each["state"], each["producer_id"], each["first_offset"]) for each in rows] == [
        ("open", 7, 0),
        ("committed", 8, 2),
    ]
    assert (rows[0]["record_count"], rows[0]["waiting_record_count"], rows[0]["start_timestamp"]) == (0, 3, None)
    assert rows[0]["position"] is None
    assert result.partitions["payments", 0].last_stable_offset == 4  # the log's start


@pytest.mark.parametrize(
    ("known", "snapshot_offset", "log_start", "expected"),
    [
        ({}, 5, 3, []),
        ({}, 5, 1, [7]),  # one of its records is not deleted
        ({}, 2, 3, []),
        ({}, 1, 3, [7]),  # the snapshot is older than its last record
        ({7: 0}, 5, 3, [7]),  # brokers since 2.4
        ({7: -1}, 5, 3, []),
        ({8: 1}, 5, 3, []),
    ],
)
def test_an_open_transaction_that_a_broker_forgot_with_its_last_record(
    tmp_path: Path, known: dict[int, int], snapshot_offset: int, log_start: int, expected: list[int]
) -> None:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [data(0, 7), batch(2), batch(5)])
    (tmp_path / "log-start-offset-checkpoint").write_text(f"0\n1\npayments 0 {log_start}\n")
    entries = [(each, 0, 1, 1, 1, 0, -1, first) for each, first in known.items()]
    columns = tuple(map(list, zip(*entries, strict=True))) if entries else ([],) * 8
    (directory / f"{snapshot_offset:020d}.snapshot").write_bytes(producer_snapshot.write(columns))
    rows, result, _ = read(directory)
    assert [each["producer_id"] for each in rows] == expected
    assert result.partitions["payments", 0].last_stable_offset == (log_start if expected else 8)
    assert [each["producer_id"] for each in read(directory, at_ms=1)[0]] == [7]


def test_as_of_a_time(tmp_path: Path) -> None:
    directory = tmp_path / "payments-0"
    write_segment(directory, 0, [data(0, 7, time=100), marker(2, 7, commit=True, time=200), data(3, 7, time=300)])
    states = {
        at: [(each["state"], each["first_offset"]) for each in read(directory, at_ms=at)[0]]
        for at in (99, 150, 250, 300)
    }
    assert states == {
        99: [],
        150: [("open", 0)],
        250: [("committed", 0)],
        300: [("open", 3), ("committed", 0)],
    }
    (row,) = read(directory, at_ms=150)[0]
    assert row["duration_ms"] == 50


@pytest.mark.parametrize(
    ("status", "partitions", "silent_ms", "expected"),
    [
        (ONGOING, {"payments": [0]}, 20 * MINUTE, False),  # the coordinator will end it
        (ONGOING, {"payments": [1], "orders": [0]}, 20 * MINUTE, True),  # the coordinator knows of other partitions
        (COMPLETE_COMMIT, {}, 20 * MINUTE, True),
        (COMPLETE_COMMIT, {}, 15 * MINUTE, False),  # it may be on its way
    ],
)
def test_what_hangs(
    tmp_path: Path, status: int, partitions: dict[str, list[int]], silent_ms: int, expected: bool
) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=NOW - silent_ms)])
    write_segment(tmp_path / "__transaction_state-0", 0, [coordinator_batch(0, "billing", 7, status, partitions)])
    (row,) = read(tmp_path)[0]
    assert (row["transactional_id"], row["is_hanging"]) == ("billing", expected)
    assert len(read(tmp_path, only_hanging=True)[0]) == expected


@pytest.mark.parametrize(
    ("status", "timeout_ms", "words"),
    [
        (ONGOING, 60_000, "state Ongoing, timeout 60 s."),
        (ONGOING, 1_209_600_500, "state Ongoing, timeout 1,209,600.5 s."),
        (ONGOING, 2**31 - 1, "Ongoing, without a timeout, as this is a two-phase commit; its client has to end it."),
        (PREPARE_COMMIT, 2**31 - 1, "PrepareCommit, without a timeout, as this is a two-phase commit."),
    ],
)
def test_when_a_coordinator_will_end_it(tmp_path: Path, status: int, timeout_ms: int, words: str) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=NOW)])
    state = coordinator_batch(0, "billing", 7, status, {"payments": [0]}, timeout_ms=timeout_ms)
    write_segment(tmp_path / "__transaction_state-0", 0, [state])
    _, result, _ = read(tmp_path)
    terms = TransactionTerms(now_ms=NOW)
    [said] = sentences(result, open_transactions(result, terms), terms)
    assert said.endswith(words)


@pytest.mark.parametrize(("is_damaged", "is_hanging"), [(False, True), (True, None)])
def test_a_damaged_log_of_a_coordinator_may_have_it_under_way(
    tmp_path: Path, is_damaged: bool, is_hanging: bool | None
) -> None:
    """4.3.1 checks no CRC when it loads that log: it had the transaction in state Ongoing."""
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=NOW - 3_600_000)])
    under_way = {"payments": [0]} if is_damaged else {}
    last = bytearray(coordinator_batch(1, "billing", 7, ONGOING if is_damaged else COMPLETE_COMMIT, under_way))
    last[18] ^= is_damaged  # in the CRC
    first = coordinator_batch(0, "billing", 7, COMPLETE_COMMIT, {})
    write_segment(tmp_path / "__transaction_state-0", 0, [first, bytes(last)])
    (row,) = read(tmp_path)[0]
    assert (row["coordinator_state"], row["is_hanging"]) == ("CompleteCommit", is_hanging)
    _, result, _ = read(tmp_path)
    terms = TransactionTerms(now_ms=NOW)
    [said] = sentences(result, open_transactions(result, terms), terms)
    assert ("may have it under way (the last known state: CompleteCommit)" in said) == is_damaged


def test_a_producer_that_no_coordinator_knows(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=0)])
    (row,) = read(tmp_path)[0]
    assert row["is_hanging"] is None
    write_segment(tmp_path / "__transaction_state-0", 0, [coordinator_batch(0, "billing", 8, ONGOING, {})])
    (row,) = read(tmp_path)[0]
    assert row["is_hanging"] is None  # it may be in another partition


def test_a_transactional_id_that_took_another_producer_id(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7), marker(2, 7, commit=True), data(3, 8), data(5, 9)])
    write_segment(
        tmp_path / "__transaction_state-0",
        0,
        [coordinator_batch(0, "billing", 7, COMPLETE_COMMIT, {}), coordinator_batch(1, "billing", 8, ONGOING, {})],
    )
    rows, _, _ = read(tmp_path, transactional_id="billing")
    assert [(each["state"], each["producer_id"], each["coordinator_state"]) for each in rows] == [
        ("open", 8, "Ongoing"),
        ("committed", 7, None),  # it is the state of another producer by now
    ]
    assert [each["producer_id"] for each in read(tmp_path, producer_id=9)[0]] == [9]


def test_of_two_replicas_the_one_that_is_further_counts(tmp_path: Path) -> None:
    short, long = [data(0, 7)], [data(0, 7), marker(2, 7, commit=True)]
    for name, content in (("node-1", short), ("node-2", long), ("node-3", short)):
        write_segment(tmp_path / name / "payments-0", 0, content)
    rows, _, _ = read(*(tmp_path / f"node-{number}" for number in (1, 2, 3)))
    assert [(each["state"], each["path"]) for each in rows] == [("committed", str(tmp_path / "node-2" / "payments-0"))]
    newer = [data(0, 7, leader_epoch=5)]
    write_segment(tmp_path / "node-3" / "payments-0", 0, newer)
    assert [each["state"] for each in read(tmp_path)[0]] == ["open"]


def test_a_marker_without_records_before_it(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [batch(0), marker(3, 7, commit=False)])
    (row,) = read(tmp_path / "payments-0")[0]
    assert (row["state"], row["first_offset"], row["last_offset"], row["record_count"]) == ("aborted", None, 3, 0)


def test_a_transaction_whose_marker_is_not_replicated_holds_the_last_stable_offset(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [batch(0), data(3, 7), marker(5, 7, commit=True), batch(6)])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 5\n")
    _, result, _ = read(tmp_path)
    assert result.partitions["payments", 0].last_stable_offset == 3


def test_partitions_that_cannot_be_read_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1, 2):
        write_segment(tmp_path / f"payments-{number}", 0, [data(0, 7)] if number == 1 else [batch(0)])
    forbid_reading(tmp_path / "payments-1" / f"{0:020d}.log", monkeypatch)
    terms = TransactionTerms(now_ms=NOW)
    _, result, _ = read(tmp_path)
    [said] = sentences(result, open_transactions(result, terms), terms)
    assert said == "No open transaction in 2 partitions; 1 partition cannot be read as a whole."


def test_a_high_watermark_below_an_open_transaction_is_not_held_by_it(tmp_path: Path) -> None:
    """The checkpoint is older than the log of a running broker."""
    write_segment(tmp_path / "payments-0", 0, [batch(0), data(3, 7)])
    for mark, words in (
        (5, "producer 7 epoch 0 holds the last stable offset of payments-0 at 3"),
        (2, "producer 7 epoch 0 has the oldest open transaction of payments-0, from offset 3 on,"),
    ):
        (tmp_path / "replication-offset-checkpoint").write_text(f"0\n1\npayments 0 {mark}\n")
        terms = TransactionTerms(now_ms=NOW)
        _, result, _ = read(tmp_path)
        [said] = sentences(result, open_transactions(result, terms), terms)
        assert said.startswith(words)
        assert said.endswith("Whether a coordinator will end it is not known: find out before you abort it.")


def test_damage_is_found_and_the_rest_is_read(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "payments-0", 0, [data(0, 7), data(2, 8), marker(4, 7, commit=True)])
    content = bytearray(log.read_bytes())
    size = len(data(0, 7))
    content[size : size + 17] = bytes(17)
    log.write_bytes(content)
    rows, _, findings = read(tmp_path / "payments-0")
    assert [each.code for each in findings] == ["log-framing-broken"]
    assert [(each["state"], each["producer_id"]) for each in rows] == [("committed", 7)]


def test_the_command_for_old_brokers(tmp_path: Path) -> None:
    write_segment(
        tmp_path / "a-0", 0, [marker(0, 7, commit=True, coordinator=6), data(1, 7, epoch=4), data(3, 8, epoch=2)]
    )
    rows, _, _ = read(tmp_path, before_3_0=True, only_open=True, bootstrap_server="kafka:1")
    assert [each["abort_command"] for each in rows] == [
        f"kafka-transactions.sh --bootstrap-server kafka:1 abort --topic a --partition 0 --producer-id {producer} "
        f"--producer-epoch {epoch} --coordinator-epoch {coordinator}"
        for producer, epoch, coordinator in ((7, 4, 6), (8, 2, 0))
    ]
