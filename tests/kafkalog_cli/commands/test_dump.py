"""kafkalog dump as a user runs it: batches or records, ranges, limits, and what a table shows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from format.columns import SCHEMAS
from kafkalog_cli.commands import dump as command
from tests.building import batches, write_segment
from tests.running import Run

RunMany = Callable[..., list[Run]]


def test_batches_or_records(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = write_segment(tmp_path / "t-0", 0, batches(4)).parent
    plain, records, some, few = run_kafkalog_many(
        [
            ["dump", partition, "--format", "jsonl"],
            ["dump", partition, "--records", "--format", "jsonl"],
            ["dump", partition, "--records", "--from-offset", "2", "--to-offset", "7", "--format", "jsonl"],
            ["dump", partition, "--records", "--from-offset", "2", "--limit", "2", "--format", "jsonl"],
        ]
    )
    assert [row["base_offset"] for row in plain.check(0).rows("batch")] == [0, 3, 6, 9]
    assert [row["offset"] for row in records.check(0).rows("record")] == list(range(12))
    assert [row["offset"] for row in some.check(0).rows("record")] == [2, 3, 4, 5, 6, 7]
    assert [row["offset"] for row in few.check(0).rows("record")] == [2, 3]


def test_a_range_in_which_nothing_lies_is_said(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = write_segment(tmp_path / "logs" / "t-0", 0, batches(4)).parent
    write_segment(tmp_path / "logs" / "t-1", 7, [])
    past, early, later, all_of_it, quiet, held, plain, lone = run_kafkalog_many(
        ["dump", *words]
        for words in (
            [partition, "--from-offset", "12"],
            [partition, "--records", "--from-offset", "12", "--format", "jsonl"],
            [partition, "--from-time", "now"],
            [tmp_path / "logs", "--from-offset", "99", "--last", "3"],
            [partition, "--from-offset", "12", "--quiet"],
            [partition, "--from-offset", "11"],
            [write_segment(tmp_path / "empty-0", 0, []).parent],
            [write_segment(tmp_path / "empty-0", 0, [])],
        )
    )
    held_words = "No record in the range: the log of t-0 goes from offset 0 to 11"
    for run in (past, early):
        assert run.check(0).stderr == f"{held_words}.\n"
    largest = "2023-11-14T22:13:20.011Z"
    assert later.check(0).stderr == f"{held_words}, and its largest timestamp is {largest}.\n"
    assert all_of_it.check(0).stderr == f"{held_words}; t-1 is empty, at offset 7.\n"
    assert [run.check(0).stderr for run in (quiet, held)] == ["", ""]
    assert plain.check(0).stderr == "No record: empty-0 is empty, at offset 0.\n"
    assert lone.check(0).stderr == "Nothing to show.\n"


def test_raw_records_of_an_internal_topic(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    paths = [each for each in log_dir.glob("__consumer_offsets-*") if any(map(_has_bytes, each.glob("*.log")))]
    decoded, raw = run_kafkalog_many(
        [["dump", *paths, "--records", *more, "--limit", "5", "--format", "jsonl"] for more in ((), ("--raw",))]
    )
    keys = [row["key"] for row in decoded.check(0).rows("record")]
    assert any(isinstance(key, dict) and "base64" not in key for key in keys)
    assert all(key is None or isinstance(key, str) or set(key) == {"base64"} for key in raw_keys(raw))


def raw_keys(run: Run) -> list[object]:
    return [row["key"] for row in run.check(0).rows("record")]


def _has_bytes(path: Path) -> bool:
    return path.stat().st_size > 0


def test_a_table_shows_columns_that_there_are() -> None:
    schemas = {each.type: each for each in SCHEMAS}
    for row_type, columns in command._COLUMNS.items():
        assert set(columns) <= set(schemas[row_type].names)


def test_a_place_in_several_replicas(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    for node in (1, 2):
        write_segment(tmp_path / f"node-{node}" / "t-0", 0, batches(4))
        write_segment(tmp_path / f"node-{node}" / "t-1", 0, batches(4))
    one, three, batch, refused = run_kafkalog_many(
        [
            ["dump", "--records", "t-0:5", tmp_path, "--format", "jsonl"],
            ["dump", "--records", "t-0:5", tmp_path, "-m", "3", "--format", "jsonl"],
            ["dump", "t-0:5", tmp_path / "node-1" / "t-0", "--format", "jsonl"],
            ["dump", "t-0:5", "--from-offset", "3", tmp_path],
        ]
    )
    assert [(row["partition"], row["offset"]) for row in one.check(0).rows("record")] == [(0, 5), (0, 5)]
    assert [row["offset"] for row in three.check(0).rows("record")] == [5, 6, 7] * 2
    assert [row["base_offset"] for row in batch.check(0).rows("batch")] == [3]
    assert "a range of its own" in refused.check(2).stderr


def test_records_for_people(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Text has one line for each, and a chosen column gives a table; the other formats have all columns."""
    partition = write_segment(tmp_path / "t-0", 0, batches(1, values=2)).parent
    text, table, chosen = run_kafkalog_many(
        [
            ["dump", partition, "--records"],
            ["dump", partition, "--records", "--format", "table"],
            ["dump", partition, "--records", "--columns", "offset,value"],
        ]
    )
    time = "2023-11-14T22:13:20.00"
    assert text.check(0).stdout == f"t-0 @ 0  {time}0Z  k  value-0\nt-0 @ 1  {time}1Z  k  value-1\n"
    assert table.check(0).stdout.splitlines()[:3] == [f"t-0 @ 0  {time}0Z  k", "    value-0", f"t-0 @ 1  {time}1Z  k"]
    assert chosen.check(0).stdout.split() == ["offset", "value", "0", "value-0", "1", "value-1"]
