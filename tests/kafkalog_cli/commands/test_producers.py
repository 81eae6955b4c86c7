"""kafkalog producers as a user runs it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

from format.columns import PRODUCER, REPEATED_RECORDS
from tests.building import batch, write_segment
from tests.kafkalog_cli.terminals import Terminal, run_on_terminal
from tests.running import Run


def test_rows_and_sentence(run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path) -> None:
    node = data_dir / "trials" / "transactions" / "node-1"
    shutil.copytree(node / "payments-0", tmp_path / "payments-0")
    run, one, beside, none = run_kafkalog_many(
        [
            ("producers", "--format", "jsonl", "--topic", "payments", node),
            ("producers", "--format", "jsonl", "--transactional-id", "fenced", node),
            ("producers", "--format", "jsonl", "--transactional-id", "fenced", node / "payments-0"),
            ("producers", "--format", "jsonl", "--producer-id", "4", tmp_path / "payments-0"),
        ]
    )
    rows = run.check(0).rows("producer")
    assert {tuple(row)[1:] for row in rows} == {PRODUCER.names}
    assert run.stderr.startswith(f"{len({row['producer_id'] for row in rows})} producers wrote ")
    assert " to 2 of 2 partitions." in run.stderr
    assert {row["transactional_id"] for row in one.check(0).rows("producer")} == {"fenced"}
    assert [row["transactional_id"] for row in beside.check(0).rows("producer")] == ["fenced"]
    assert beside.summary["not_checked"] == []
    assert [row["transactional_id"] for row in none.check(0).rows("producer")] == [None]
    assert none.summary["not_checked"] == ["transactional ids: no __transaction_state was read"]


def test_who_wrote_is_shown_on_a_narrow_terminal(data_dir: Path, tmp_path: Path) -> None:
    """Of one partition, and of several."""
    node = data_dir / "trials" / "transactions" / "node-1"
    for words in ([str(node / "payments-0")], ["--topic", "payments", str(node)]):
        lines = run_on_terminal(["producers", *words], Terminal(columns=80), tmp_path).screen(80)
        header = next(line.split() for line in lines if "producer_id" in line)
        assert {"producer_id", "transactional_id"} <= set(header)
        assert ("partition" in header) == (len(words) > 1)


def test_a_producer_that_is_not_found(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path
) -> None:
    """A transactional id is absent only if the partition of __transaction_state that would hold it was read."""
    node = data_dir / "kafka-4.3-single" / "node-1"
    for alone, path in (("known", node), ("unknown", data_dir / "trials" / "transactions" / "node-1")):
        shutil.copytree(path / "payments-0", tmp_path / alone / "payments-0")
    shutil.copytree(node / "__cluster_metadata-0", tmp_path / "known" / "__cluster_metadata-0")
    verbs: list[tuple[str, ...]] = [("txns",), ("producers",), ("producers", "--duplicates")]
    for verb, absent, unread, unknown in zip(
        verbs,
        run_kafkalog_many([(*verb, "--transactional-id", "nobody", node) for verb in verbs]),
        run_kafkalog_many(
            [(*verb, "--transactional-id", "payments-hanging", tmp_path / "known" / "payments-0") for verb in verbs]
        ),
        run_kafkalog_many(
            [(*verb, "--transactional-id", "nobody", tmp_path / "unknown" / "payments-0") for verb in verbs]
        ),
        strict=True,
    ):
        assert "There is no transactional id nobody in __transaction_state." in absent.check(1).stdout, verb
        missing = "Which producers the transactional id payments-hanging had is not known: __transaction_state-"
        assert missing in unread.check(3).stdout, verb
        assert "is not known: " in unknown.check(3).stdout, verb
    one, repeats = run_kafkalog_many(
        [("producers", "--producer-id", "99", node), ("producers", "--duplicates", "--producer-id", "99", node)]
    )
    assert "No batch of producer 99 in 24 partitions." in one.check(1).stdout
    assert ", none of producer 99 repeats one at most 300 s before it, or is repeated so." in repeats.check(0).stdout


def test_the_producer_of_a_record(run_kafkalog_many: Callable[..., list[Run]], data_dir: Path) -> None:
    node = data_dir / "kafka-4.3-single" / "node-1"
    payments, no_id, absent, past, wrong, both = run_kafkalog_many(
        [
            ("producers", "--format", "jsonl", "--record", "payments-0:120", node),
            ("producers", "--format", "jsonl", "--record", "clicks-gzip-0:0", node),
            ("producers", "--record", "payments-9:120", node),
            ("producers", "--record", "payments-0:99999", node),
            ("producers", "--record", "payments:120", node),
            ("producers", "--record", "payments-0:120", "--producer-id", "12", node),
        ]
    )
    (row,) = payments.check(0).rows("producer")
    assert (row["producer_id"], row["first_offset"], row["last_offset"]) == (12, 111, 135)
    assert payments.stderr.startswith(
        "payments-0:120 was written by producer 12 (transactional id payments-hanging).\n"
    )
    assert {row["producer_id"] for row in no_id.check(0).rows("producer")} == {-1}
    assert no_id.stderr.startswith("clicks-gzip-0:0 was written without a producer id")
    assert "there is no partition payments-9 at the paths" in absent.check(2).stderr
    assert "no replica at the paths has a batch with this offset" in past.check(2).stderr
    assert "give TOPIC-PARTITION:OFFSET" in wrong.check(2).stderr
    assert "exclude each other" in both.check(2).stderr


def test_what_else_the_producer_of_a_record_wrote_fits_a_terminal(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path
) -> None:
    """Where it wrote from and to comes before its epochs and codecs."""
    node = data_dir / "kafka-4.3-single" / "node-1"
    (run,) = run_kafkalog_many([("producers", "--format", "table", "--record", "payments-0:120", node)])
    header = next(line.split() for line in run.check(0).stdout.splitlines() if line.startswith("topic"))
    places = [header.index(name) for name in ("first_offset", "last_offset", "record_count")]
    assert max(places) < min(header.index(name) for name in ("epochs", "codecs") if name in header)


def test_duplicates(run_kafkalog_many: Callable[..., list[Run]], tmp_path: Path) -> None:
    write_segment(tmp_path / "node" / "orders-0", 0, [batch(0, timestamp=5), batch(3, timestamp=5), batch(6, [b"z"])])
    found, none, text, wrong, alone = run_kafkalog_many(
        [
            ("producers", "--duplicates", "--format", "jsonl", tmp_path / "node"),
            (
                "producers",
                "--duplicates",
                "--within",
                "0ms",
                "--producer-id",
                "4",
                "--format",
                "jsonl",
                tmp_path / "node",
            ),
            ("producers", "--duplicates", tmp_path / "node"),
            ("producers", "--duplicates", "--within", "soon", tmp_path / "node"),
            ("producers", "--within", "5m", tmp_path / "node"),
        ]
    )
    [row] = found.check(0).rows()
    assert tuple(row)[1:] == REPEATED_RECORDS.names
    assert (row["kind"], row["is_duplicate"], row["earlier_first_offset"], row["first_offset"]) == (
        "batch",
        False,
        0,
        3,
    )
    assert none.check(0).rows() == []
    assert "3 records of orders-0 were written twice, 0 s apart, in equal batches" in text.check(0).stdout + text.stderr
    assert "'soon' is not a duration" in wrong.check(2).stderr
    assert "--within is for --duplicates" in alone.check(2).stderr
    [shown] = run_kafkalog_many([shlex.split(row["command"])[1:]])
    assert shown.check(0).stdout.count("orders") == 6


def test_the_next_command_runs(run_kafkalog_many: Callable[..., list[Run]], tmp_path: Path, data_dir: Path) -> None:
    node, own = data_dir / "kafka-4.3-single" / "node-1", tmp_path / "a node"
    write_segment(own / "orders-0", 0, [batch(0, timestamp=5), batch(3, timestamp=5), batch(6, [b"z"])])
    runs = run_kafkalog_many(
        [("producers", "--record", "payments-0:120", node), ("producers", own), ("producers", "--topic", "orders", own)]
    )
    lines = [next(line for line in run.check(0).stderr.splitlines() if ": kafkalog " in line) for run in runs]
    assert [line.split(": ")[0] for line in lines] == ["Its records", *["What was written twice"] * 2]
    for run in run_kafkalog_many([*shlex.split(line.split(": ")[1])[1:], "--format", "jsonl"] for line in lines):
        assert run.check(0).rows()
