"""kafkalog txns as a user runs it: the sentence, rows, options, exit codes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import TRANSACTION
from format.timestamps import iso_time
from tests.building import write_segment
from tests.format.verbs.txns.transaction_logs import coordinator_batch, data, marker
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("txns", *arguments)])[0]


@pytest.fixture
def node(data_dir: Path) -> Path:
    return data_dir / "kafka-4.3-single" / "node-1"


def test_the_answer_comes_first(kafkalog: Kafkalog, node: Path) -> None:
    run = kafkalog("--format", "jsonl", node).check(0)
    assert run.stderr.startswith(
        "payments-hanging (producer 12 epoch 0) holds the last stable offset of payments-0 at 111"
    )
    rows = run.rows("transaction")
    assert {tuple(row)[1:] for row in rows} == {TRANSACTION.names}
    assert [row["state"] for row in rows] == ["open"] + ["committed"] * 6
    assert run.summary["counts"] == {"transaction": 7, "open_transactions": 1}
    assert run.summary["not_checked"] == []


def test_options_narrow(kafkalog: Kafkalog, node: Path) -> None:
    def offsets(*options: str) -> list[int]:
        return [
            row["first_offset"] for row in kafkalog("--format", "jsonl", *options, node).check(0).rows("transaction")
        ]

    assert offsets("--open") == [111]
    assert offsets("--hanging") == []
    assert kafkalog("--hanging", node).stdout.startswith(
        "1 open transaction in 20 partitions, and none of them hangs: their coordinators have them under way "
        "(--open shows what is open).\n"
    )
    assert offsets("--topic", "orders") == []
    assert offsets("--producer-id", "9") == [0, 0]
    assert offsets("--transactional-id", "payments-1") == offsets("--producer-id", "10") != []
    assert offsets("--open", "--at", "2026-11-21T08:41:36.400") == []


def test_without_coordinators_it_says_what_is_not_known(kafkalog: Kafkalog, node: Path, tmp_path: Path) -> None:
    """Those beside a partition are read."""
    (row,) = kafkalog("--format", "jsonl", "--open", node / "payments-0").check(0).rows("transaction")
    assert (row["transactional_id"], row["coordinator_state"]) == ("payments-hanging", "Ongoing")
    shutil.copytree(node / "payments-0", tmp_path / "payments-0")
    run = kafkalog("--format", "jsonl", "--open", tmp_path / "payments-0").check(0)
    (row,) = run.rows("transaction")
    assert (row["transactional_id"], row["coordinator_state"], row["timeout_ms"], row["is_hanging"]) == (None,) * 4
    assert any("no __transaction_state" in each for each in run.summary["not_checked"])


def test_a_hanging_transaction_and_the_command_that_aborts_it(kafkalog: Kafkalog, tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=1_700_000_000_000)])
    write_segment(tmp_path / "__transaction_state-0", 0, [coordinator_batch(0, "billing", 7, 4, {})])
    run = kafkalog("--hanging", "--bootstrap-server", "kafka:9092", tmp_path).check(0)
    command = (
        "kafka-transactions.sh --bootstrap-server kafka:9092 abort --topic payments --partition 0 --start-offset 0"
    )
    assert f"\nTo abort it: {command}\n" in run.stdout
    (row,) = kafkalog("--hanging", "--bootstrap-server", "kafka:9092", "--format", "jsonl", tmp_path).rows(
        "transaction"
    )
    assert row["abort_command"] == command
    (line,) = kafkalog("--hanging", "--max-timeout", "9999999", tmp_path).check(0).stdout.splitlines()
    assert line.startswith("1 open transaction in 1 partition, and ")


def test_people_read_hanging_ones_first_and_ended_ones_counted(kafkalog: Kafkalog, data_dir: Path) -> None:
    node = data_dir / "trials" / "transactions" / "node-1"
    run = kafkalog("--format", "table", "--columns", "producer_id,state", node).check(0)
    rows = [line.split() for line in run.stdout.splitlines() if line.split()[1:] == ["open"]]
    assert [row[0] for row in rows] == ["0", "999000", "6", "7"]
    assert not [line for line in run.stdout.splitlines() if line.split()[1:] == ["committed"]]
    assert run.stdout.count("To abort it: ") == 2
    counted = kafkalog("--format", "table", node).check(0).stdout
    assert "payments          1               14              4           2 " in counted
    every = kafkalog("--format", "table", "--every-row", node).check(0).stdout
    assert every.count(" committed ") == 2 + 3 + 13 + 14
    chosen = kafkalog("--format", "table", "--producer-id", "6", node).check(0).stdout
    assert "committed_count" not in chosen


def test_a_script_can_page_when_a_transaction_hangs(kafkalog: Kafkalog, tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=1_700_000_000_000)])
    write_segment(tmp_path / "__transaction_state-0", 0, [coordinator_batch(0, "billing", 7, 4, {})])
    run = kafkalog("--hanging", "--fail-on", "warning", "--format", "jsonl", tmp_path).check(1)
    (found,) = run.rows("finding")
    assert (found["code"], found["severity"], found["offset"]) == ("transaction-hanging", "warning", 0)
    assert found["next_step"].startswith("To abort it: kafka-transactions.sh")
    assert not kafkalog("--max-timeout", "9999999", "--format", "jsonl", tmp_path).check(0).rows("finding")


@pytest.mark.parametrize(
    ("partitions", "sentence"),
    [({"payments": [0]}, "their coordinators have them under way"), ({}, "no coordinator has all of them under way")],
)
def test_the_limit_of_fifteen_minutes_is_no_comfort(
    kafkalog: Kafkalog, tmp_path: Path, partitions: dict[str, list[int]], sentence: str
) -> None:
    """A coordinator that is done ends nothing; that the limit has not passed is said, and when it will have."""
    last = time.time_ns() // 1_000_000 - 60_000
    write_segment(tmp_path / "payments-0", 0, [data(0, 7, time=last)])
    write_segment(tmp_path / "__transaction_state-0", 0, [coordinator_batch(0, "billing", 7, 4, partitions)])
    due = f"from {iso_time(last + 15 * 60_000)} on"
    hanging = kafkalog("--hanging", tmp_path).check(0).stdout
    assert sentence in hanging
    assert (f"1 counts as hanging {due}" in hanging) == (not partitions)
    everything = kafkalog(tmp_path).check(0).stdout
    assert (f"counts it so {due}" in everything) == (not partitions)
    at_once = kafkalog("--hanging", "--max-timeout", "0", "--fail-on", "warning", tmp_path)
    assert at_once.check(0 if partitions else 1).stdout.count("To abort it") == (0 if partitions else 1)


def test_many_that_hold_are_counted(kafkalog: Kafkalog, tmp_path: Path) -> None:
    for number in range(5):
        write_segment(tmp_path / f"payments-{number}", 0, [data(0, 7)])
    write_segment(tmp_path / "orders-0", 0, [data(0, 7), marker(2, 7, commit=True)])
    run = kafkalog(tmp_path).check(0)
    assert "2 more transactions hold a last stable offset, or hang" in run.stdout
    assert "No open transaction in 1 partition." in kafkalog(tmp_path / "orders-0").check(0).stdout


def test_damage_is_a_finding(kafkalog: Kafkalog, tmp_path: Path) -> None:
    log = write_segment(tmp_path / "payments-0", 0, [data(0, 7), data(2, 7), data(4, 7)])
    content = bytearray(log.read_bytes())
    content[len(data(0, 7)) + 16] = 9
    log.write_bytes(content)
    run = kafkalog("--format", "jsonl", tmp_path).check(1)
    assert [row["code"] for row in run.rows("finding")] == ["log-framing-broken"]
    assert len(run.rows("transaction")) == 1


def test_a_path_without_logs(kafkalog: Kafkalog, tmp_path: Path, node: Path) -> None:
    kafkalog(node / "meta.properties").check(2)
    (tmp_path / "orders-0").mkdir()
    kafkalog(tmp_path / "orders-0").check(3)
