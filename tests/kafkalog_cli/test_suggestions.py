"""Names that are not there: what is said of them, and which names are suggested."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog_cli.main import main


@pytest.fixture
def node(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data_dir / "kafka-4.3-single")


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["find", "node-1/paymets-0", "--offset", "3"], 2, "Did you mean node-1/payments-0 or node-1/payments-1?"),
        (["find", "node-1/orders-9", "--offset", "3"], 2, "the partitions of orders here are orders-0, orders-1 and"),
        (["find", "orders-0", "node-1", "--offset", "3"], 2, "directory. Did you mean node-1/orders-0?"),
        (["ls", "nod-1"], 2, "there is no such file or directory. Did you mean node-1?"),
        (["groups", "--topic", "ordrs", "node-1"], 1, "No group has offsets of topic ordrs. Did you mean orders?"),
        (["groups", "--group", "group-0", "--topic", "x", "node-1"], 1, "Group group-0 has no offsets of topic x.\n"),
        (
            ["txns", "--topic", "ordrs", "node-1"],
            1,
            "is no partition of topic ordrs at the paths. Did you mean orders?",
        ),
        (["producers", "--topic", "ordrs", "node-1"], 1, "is no partition of topic ordrs at the paths. Did you mean"),
        (["producers", "--record", "payments-9:3", "node-1"], 2, "Did you mean payments-1 or payments-0?"),
        (["metadata", "--topic", "ordrs", "node-1"], 1, "no topic ordrs in the metadata. Did you mean orders?"),
        (
            ["txns", "--transactional-id", "payment-hanging", "node-1"],
            1,
            "no transactional id payment-hanging in __transaction_state. Did you mean payments-hanging?",
        ),
        (["extract", "--format", "parquet", "node-1", "--output", "x"], 2, "'kafkalog extract --to parquet' writes"),
        (["grep", "node-1/orders-0", "customer"], 2, "the PATTERN comes before the PATH"),
    ],
)
def test_a_name_that_is_not_there(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert words in captured.err + captured.out


@pytest.mark.parametrize(("arguments", "usage"), [(["help"], "[OPTIONS] COMMAND"), (["help", "verify"], "verify [")])
def test_help_as_a_command(arguments: list[str], usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith(f"Usage: kafkalog {usage}")


def test_columns_of_row_types(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "schema", "leader_epoch", "record"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("leader_epoch:\n  path (string)       the file\n  epoch (int)         leader epoch\n")
    assert "\nrecord:\n" in printed
    assert "with --with path" in printed
    assert main(["help", "schema", "recrd"]) == 2
    assert "there is no row type 'recrd'; the row types are log_dir, partition," in capsys.readouterr().err
