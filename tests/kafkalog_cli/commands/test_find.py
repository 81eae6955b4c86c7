"""``kafkalog find``: what it shows, says and exits with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from format.timestamps import iso_time
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.format.verbs.find.lookups import (
    write_checkpoint,
    write_indexed,
    write_second_example,
)
from tests.kafkalog_cli.reading import read_text_line
from tests.kafkalog_cli.terminals import Terminal, run_on_terminal
from tests.metadata_logs import write_metadata_log, write_node
from tests.running import Run, Word

RunMany = Callable[[Iterable[Iterable[Word]]], list[Run]]
JSON = ("--format", "jsonl")


def partition_of(tmp_path: Path) -> Path:
    """Offsets 0 to 59, a record a millisecond, in two segments; an entry for every few batches."""
    partition = tmp_path / "topic-0"
    for base_offset in (0, 30):
        batches = [batch(offset, [b"x" * 50] * 3, leader_epoch=4) for offset in range(base_offset, base_offset + 30, 3)]
        write_indexed(partition, base_offset, batches, interval_bytes=500)
    return partition


def run_one(run_kafkalog_many: RunMany, *words: Word) -> Run:
    (run,) = run_kafkalog_many([words])
    return run


IN_ONE_REPLICA = (
    "visible in this replica, if it is replicated: no high watermark is here. Consumers read from the leader, which is "
    "not known: there is no metadata log here (--metadata PATH)"
)


def test_the_metadata_in_another_log_directory_of_the_node(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    first, second = (write_node(tmp_path / name, 1) for name in ("disk-1", "disk-2"))
    write_metadata_log(first, replicas=(1,), isr=(1,))
    write_segment(second / "orders-0", 0, [batch(0)])
    for paths in ((first, second), (second, first)):
        run = run_one(run_kafkalog_many, "find", "orders-0:0", *paths).check(0)
        assert "while node 1 leads orders-0" in " ".join(run.stdout.split())


def test_a_match(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """One row, whichever way it was asked for."""
    partition = partition_of(tmp_path)
    ways = (("--offset", "37"), ("--timestamp", str(BASE_TIMESTAMP + 37)), ("--timestamp", "2023-11-14T22:13:20.037Z"))
    runs = run_kafkalog_many(("find", partition, *way, *JSON) for way in ways)
    for run in runs:
        (row,) = run.check(0).rows()
        position = row.pop("position")
        assert row == {
            "type": "match",
            "topic": "topic",
            "partition": 0,
            "offset": 37,
            "timestamp": BASE_TIMESTAMP + 37,
            "segment_base_offset": 30,
            "leader_epoch": 4,
            "visibility": "visible",
            "is_control": False,
            "is_transactional": False,
            "transaction_state": None,
            "producer_id": -1,
            "producer_epoch": -1,
            "batch_base_offset": 36,
            "crc_valid": True,
            "is_leader": None,
            "node_id": None,
            "leader": None,
            "isr": None,
            "eligible_leader_replicas": None,
            "path": str(partition / f"{30:020d}.log"),
        }
        assert position > 0
        when = "2023-11-14T22:13:20.037Z"
        at = f"offset 37, of {when}, is the first record at or after {when}\n" if run is not runs[0] else ""
        assert run.stderr == f"{at}offset 37 is {IN_ONE_REPLICA}\n"
        assert run.summary["complete"] is True
        assert run.summary["exit_code"] == 0
        assert run.summary["counts"]["match"] == 1
        assert 0 < run.summary["counts"]["bytes_read"] < 64 * 1024


def test_the_largest_timestamp(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Who sees it is said as for an offset, or that it was not looked up."""
    partition = partition_of(tmp_path)
    run = run_one(run_kafkalog_many, "find", partition, "--max-timestamp", *JSON)
    (row,) = run.check(0).rows()
    assert (row["offset"], row["timestamp"], row["visibility"]) == (59, BASE_TIMESTAMP + 59, "visible")
    first = f"offset 59, of {iso_time(BASE_TIMESTAMP + 59)}, is the first record with the largest timestamp\n"
    assert run.stderr == f"{first}offset 59 is {IN_ONE_REPLICA}\n"
    run = run_one(run_kafkalog_many, "find", partition, "--max-timestamp", "--visibility-limit", "1", *JSON)
    assert [each["visibility"] for each in run.check(0).rows()] == [None]
    assert run.stderr == first
    assert "who can see the record" in run.summary["not_checked"][0]
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 60)  # the segment is still there
    run = run_one(run_kafkalog_many, "find", partition, "--max-timestamp", *JSON)
    assert [each["visibility"] for each in run.check(0).rows()] == ["below_log_start"]


def test_not_found(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Exit status 1, and the reason on standard error; of an offset a row says what became of it."""
    partition = partition_of(tmp_path)
    for way, words, visibilities in (
        (("--offset", "60"), "log end offset 60", ["past_end"]),
        (("--timestamp", str(BASE_TIMESTAMP + 60)), f"the largest is {iso_time(BASE_TIMESTAMP + 59)}", []),
    ):
        run = run_one(run_kafkalog_many, "find", partition, *way, *JSON).check(1)
        assert [row["visibility"] for row in run.rows()] == visibilities
        assert run.summary["conditions"] == ["nothing-found"]
        assert run.summary["complete"] is True
        assert run.stderr.startswith("not found: ")
        assert words in run.stderr
    words = ("find", partition, "--timestamp", "9999999999999", "--quiet")
    quiet = run_one(run_kafkalog_many, *words, *JSON).check(1)
    assert (quiet.rows(), quiet.stderr) == ([], "")
    quiet = run_one(run_kafkalog_many, *words).check(1)
    assert quiet.stdout.startswith("not found: ")
    assert quiet.stderr == ""


def test_explain(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """The steps come before the match, and only when they are asked for."""
    path = write_second_example(tmp_path / "topic-0")
    words = ("find", path.parent, "--offset", "170418", *JSON)
    run, without = (each.check(0) for each in run_kafkalog_many([(*words, "--explain"), words]))
    assert [row["type"] for row in run.rows()] == ["step"] * 4 + ["match"]
    steps = run.rows("step")
    assert [row["stage"] for row in steps] == ["segment", "offset_index", "scan", "match"]
    assert "segment 170410" in steps[0]["detail"]
    assert "entry (8, 1325)" in steps[1]["detail"]
    assert steps[1]["path"] == str(path.with_suffix(".index"))
    assert "bytes 1325 to" in steps[2]["detail"]
    assert steps[2]["position"] == 1325
    assert steps[3]["offset"] == 170418
    assert without.rows() == run.rows("match")


def test_explain_on_a_narrow_terminal(tmp_path: Path) -> None:
    """A step is a paragraph with its path and its detail whole: a column of 16 characters was left for the detail."""
    path = write_second_example(tmp_path / "topic-0")
    words = ["find", path.parent.name, "--offset", "170418", "--explain"]
    screen = run_on_terminal(words, Terminal(columns=80), tmp_path).screen(80)
    assert any(f"{path.parent.name}/{path.name}" in line for line in screen)
    assert "the greatest base offset at or below 170418" in " ".join(" ".join(screen).split())


def test_explain_of_nothing(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    run = run_one(run_kafkalog_many, "find", partition_of(tmp_path), "--offset", "60", "--explain", *JSON).check(1)
    assert run.rows("step")[-1]["detail"].startswith("not found: ")


def test_every_format(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    text, table, csv, csv_steps = run_kafkalog_many(
        [
            ("find", partition, "--offset", "37", "--format", "logfmt"),
            ("find", partition, "--offset", "37", "--format", "table"),
            ("find", partition, "--offset", "37", "--format", "csv"),
            ("find", partition, "--offset", "37", "--explain", "--format", "csv"),
        ]
    )
    kind, words = read_text_line(text.check(0).stdout.rstrip("\n"), set())
    assert (kind, words["offset"], words["segment_base_offset"]) == ("match", b"37", b"30")
    assert "2023-11-14T22:13:20.037Z" in table.check(0).stdout
    header, row = csv.check(0).stdout.splitlines()
    assert header.split(",")[:3] == ["topic", "partition", "offset"]
    assert row.split(",")[:3] == ["topic", "0", "37"]
    assert csv_steps.check(0).stdout.splitlines()[0] == "stage,path,position,offset,detail"


def test_an_index_that_lies(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """The answer is right, the index is a finding, and the exit status says so; --fail-on moves that."""
    partition = partition_of(tmp_path)
    index = partition / f"{30:020d}.index"
    content = bytearray(index.read_bytes())
    content[7] ^= 1
    index.write_bytes(content)
    words = ("find", partition, "--offset", "43", *JSON)
    strict, lenient = run_kafkalog_many([words, (*words, "--fail-on", "fatal")])
    for run in (strict.check(1), lenient.check(0)):
        assert [row["offset"] for row in run.rows("match")] == [43]
        (found,) = run.rows("finding")
        assert (found["code"], found["path"], found["position"]) == ("offset-index-mismatch", str(index), 0)
        assert run.summary["findings"] == {"error": 1}


def test_high_watermark(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 50)
    hidden, shown, by_offset = run_kafkalog_many(
        [
            ("find", partition, "--max-timestamp", *JSON),
            ("find", partition, "--max-timestamp", "--past-high-watermark", *JSON),
            ("find", partition, "--offset", "55", *JSON),
        ]
    )
    assert hidden.check(1).rows() == []
    assert "high watermark 50" in hidden.stderr
    assert [(row["offset"], row["visibility"]) for row in shown.check(0).rows("match")] == [(59, "not_replicated")]
    assert [row["offset"] for row in by_offset.check(0).rows("match")] == [55]
    assert "high watermark 50" in by_offset.stderr


def test_usage(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Exactly one question, and a partition to ask it of; what is wrong is said with what to try."""
    partition = partition_of(tmp_path)
    cases = (
        (("find", partition), "exactly one of"),
        (("find", partition, "--offset", "1", "--max-timestamp"), "exactly one of"),
        (("find", partition, "--offset", "1", "--past-high-watermark"), "--past-high-watermark is for times"),
        (("find", partition, "--offset", "-1"), "whole number"),
        (("find", partition, "--offset", "1", "--value-as", "json", "--format", "jsonl"), "use dump --records"),
        (("find", partition, "--offset", "1", "--key-as", "json", "--explain"), "without --explain"),
        (("find", partition, "--timestamp", "noon"), "is not a time"),
        (("find", tmp_path, "--offset", "1"), "give one partition directory, such as"),
        (("find", partition / f"{0:020d}.index", "--offset", "1"), "give a partition directory or a .log file"),
        (("find", tmp_path / "missing-0", "--offset", "1"), "no such file"),
    )
    for (_, words), run in zip(cases, run_kafkalog_many(command for command, _ in cases), strict=True):
        assert run.check(2).stdout == ""
        assert words in " ".join(run.stderr.split())
    assert str(partition) in run_one(run_kafkalog_many, "find", tmp_path, "--offset", "1").stderr


def test_several_paths_and_directories_of_many_partitions(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """What was meant is said: the partition's directory, a partition of a user's topic, each log directory."""
    log_dir = tmp_path / "nodes" / "node 1"
    log_dir.mkdir(parents=True)
    partition = partition_of(log_dir)
    write_indexed(log_dir / "__cluster_metadata-0", 0, [batch(0)])
    write_indexed(tmp_path / "nodes" / "node-2" / "topic-1", 0, [batch(0)])
    logs = sorted(partition.glob("*.log"))
    whole = f"to search all segments of a partition, give its directory: '{partition}'\n"
    one = f"give one partition directory, such as '{partition}'\n"
    cases = (
        (logs, f"find searches one partition, and 2 paths are given; {whole}"),
        ([partition, log_dir], "2 paths are given; run it once for each"),
        ([log_dir], f"this is a log directory: {one}"),
        ([tmp_path / "nodes"], f"2 log directories lie here, node 1 and node-2: {one}"),
        ([f"local://{tmp_path}/nodes"], "2 log directories lie here, node 1 and node-2: give one partition directory"),
        ([log_dir / "topic"], "topic is a topic, and its partition is topic-0: give that directory\n"),
    )
    runs = run_kafkalog_many(("find", *paths, "--offset", "1") for paths, _ in cases)
    for (_, words), run in zip(cases, runs, strict=True):
        assert words in run.check(2).stderr


def test_a_timestamp_past_the_last_write_of_its_file_is_remarked(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    year_2100 = 4_102_444_800_000
    write_indexed(tmp_path / "topic-0", 0, [batch(0), batch(3, timestamp=year_2100)])
    ways = (("--max-timestamp",), ("--timestamp", "2090-01-01"), ("--offset", "3"))
    runs = run_kafkalog_many(("find", tmp_path / "topic-0", *way, *JSON) for way in ways)
    for run, day in zip(runs, ("2100-01-01T00:00:00.002Z", *["2100-01-01T00:00:00.000Z"] * 2), strict=True):
        assert re.search(
            rf"the timestamp of offset \d, {day}, lies [\d,]+ days past the last write", run.check(0).stderr
        )
    (usual,) = run_kafkalog_many([("find", tmp_path / "topic-0", "--offset", "0", *JSON)])
    assert "last write" not in usual.check(0).stderr


def test_a_log_that_cannot_be_searched(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A log that is gone, or no regular file, is reported: the answer may lie there."""
    partition = partition_of(tmp_path)
    path = partition / f"{30:020d}.log"
    path.rename(tmp_path / "moved")
    gone = run_one(run_kafkalog_many, "find", partition, "--offset", "37", *JSON).check(1)
    assert [row["code"] for row in gone.rows("finding")] == ["index-orphan"]
    words = "offset 37 would be in segment 30, which has an index, but no .log"
    assert words in run_one(run_kafkalog_many, "find", partition, "--offset", "37").stdout
    path.symlink_to(tmp_path / "moved")
    linked = run_one(run_kafkalog_many, "find", partition, "--offset", "37", *JSON).check(1)
    assert [(row["code"], row["path"]) for row in linked.rows("finding")] == [
        ("index-orphan", str(path.with_suffix(".index"))),
        ("file-unreadable", str(path)),
    ]
    assert linked.summary["complete"] is False
    assert words not in run_one(run_kafkalog_many, "find", partition, "--offset", "37").stdout
    assert run_one(run_kafkalog_many, "find", partition, "--offset", "7", *JSON).check(3).rows("match")


def test_in_a_process_of_its_own(data_dir: Path, run_kafkalog: Callable[..., Run]) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    run = run_kafkalog("find", partition, "--timestamp", "1793781747356", "--explain", *JSON).check(0)
    assert [row["stage"] for row in run.rows("step")] == ["segment", "time_index", "offset_index", "scan", "match"]
    assert run.rows("match")[0]["offset"] == 481
    assert "EXIT STATUS" in run_kafkalog("find", "--help").check(0).stdout


def test_the_leader_that_the_metadata_names(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    partition = partition_of(tmp_path)
    write_node(tmp_path, 2)
    (metadata := tmp_path / "elsewhere").mkdir()
    write_metadata_log(metadata, "topic", leader=1, leader_epoch=9)
    write_metadata_log(tmp_path, "topic", leader=2, leader_epoch=9)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 50)
    beside, named, past = run_kafkalog_many(
        [
            ("find", partition, "--offset", "37", *JSON),
            ("find", partition, "--offset", "37", "--metadata", metadata, *JSON),
            ("find", partition, "--offset", "99", "--metadata", metadata, *JSON),
        ]
    )
    assert [row["is_leader"] for row in beside.check(0).rows("match")] == [True]
    assert beside.stderr.startswith(
        "offset 37 is visible to every consumer while node 2 leads topic-0, as it does by the"
    )
    (row,) = named.check(0).rows("match")
    assert (row["is_leader"], row["node_id"], row["leader"], row["isr"]) == (False, 2, 1, [1, 2, 3])
    assert named.stderr.startswith(
        "offset 37 is visible in this replica. Consumers read from the leader, node 1 by the"
    )
    assert "log end offset 60. Consumers read from the leader, node 1 by the" in past.check(1).stderr


def test_a_place_in_several_replicas(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A row for each replica; found if one has it. People see the record itself, too."""
    long = write_segment(tmp_path / "node-1" / "t-0", 0, [batch(0, [b'{"a":1}', b"b"])]).parent
    short = write_segment(tmp_path / "node-2" / "t-0", 0, [batch(0, [b'{"a":1}'])]).parent
    write_segment(tmp_path / "node-2" / "t-1", 0, [batch(0)])
    both, text, none, elsewhere, two, alone, twice = run_kafkalog_many(
        [
            ("find", "t-0:1", tmp_path, *JSON),
            ("find", "t-0:0", long.parent, "--format", "text"),
            ("find", "t-0:2", long.parent, short.parent, *JSON),
            ("find", "t-7:0", tmp_path),
            ("find", long, short, "--offset", "0"),
            ("find", "t-0:1"),
            ("find", "t-0:1", tmp_path, "--offset", "1"),
        ]
    )
    rows = both.check(0).rows("match")
    assert [(row["visibility"], Path(row["path"]).parts[-2 if row["crc_valid"] else -1]) for row in rows] == [
        ("visible", "t-0"),
        ("past_end", "t-0"),
    ]
    assert f"{short}: not found" in both.stderr
    assert 't-0 @ 0  2023-11-14T22:13:20.000Z  k  {"a":1}' in text.check(0).stdout.splitlines()
    assert [row["visibility"] for row in none.check(1).rows("match")] == ["past_end"] * 2
    for run, words in (
        (elsewhere, "there is no t-7 at the paths"),
        (two, "2 paths are given"),
        (alone, "no PATH after t-0:1"),
        (twice, "exactly one of TOPIC-P:OFFSET"),
    ):
        assert words in run.check(2).stderr
