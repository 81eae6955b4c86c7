"""kafkalog verify as a user runs it: usage errors, levels, what was not checked."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.building import batches, write_segment
from tests.corpora import REPOSITORY
from tests.running import Run

RunMany = Callable[..., list[Run]]


@pytest.mark.parametrize(
    "words",
    [
        ["--partitions", "3"],
        ["--partitioner", "murmur2", "--partitions", "0"],
        ["--partitioner", "murmur2", "--partitions", "3", "--level", "crc"],
        ["--level", "deep"],
        ["--as", "parquet"],
    ],
)
def test_usage_errors(words: list[str], data_dir: Path, run_kafkalog_many: RunMany) -> None:
    [run] = run_kafkalog_many([["verify", data_dir / "kafka-4.3-single" / "node-1" / "orders-0", *words]])
    run.check(2)
    assert not run.stdout


def test_each_level_says_what_it_leaves_out(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    levels = ("headers", "crc", "records", "full")
    runs = run_kafkalog_many([["verify", partition, "--level", level, "--format", "jsonl"] for level in levels])
    left_out = [len(run.check(0).summary["not_checked"]) for run in runs]
    assert left_out == sorted(left_out, reverse=True)
    assert left_out[0] > left_out[-1] == 0
    counts = [run.summary["counts"] for run in runs]
    assert [each["records"] > 0 for each in counts] == [False, False, True, True]
    assert len({each["batches"] for each in counts}) == 1


def test_a_file_by_itself_is_checked_without_its_neighbours(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    log = next((data_dir / "kafka-4.3-single" / "node-1" / "orders-0").glob("*.log"))
    [run] = run_kafkalog_many([["verify", log, "--format", "jsonl"]])
    assert run.check(0).summary["not_checked"] == ["the files beside a file that is given alone"]


def test_keys_of_other_partitions(data_dir: Path, run_kafkalog_many: RunMany) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    words = ["--partitioner", "murmur2", "--format", "jsonl", "--partitions"]
    [run] = run_kafkalog_many([["verify", log_dir / "orders-0", *words, "1000"]])
    assert "record-misplaced" in {row["code"] for row in run.rows("finding")}


def test_a_partition_loads_nothing_that_only_log_directories_need(data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    script = "import sys; from kafkalog_cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script, "verify", partition], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    loaded = done.stderr.split()
    assert "format.verbs.verify.verify" in loaded
    assert not [name for name in loaded if name.startswith(("format.verbs.boot", "format.internal_topics"))]


def test_a_partition_in_two_log_directories_of_a_node(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    for name, node_id in (("one", 1), ("two", 1), ("three", 2)):
        write_segment(tmp_path / name / "t-0", 0, batches(1))
        write_segment(tmp_path / name / f"{name}-0", 0, batches(1))
        write_segment(tmp_path / name / f"t-1.{'0' * 32}-future", 0, batches(1))
        (tmp_path / name / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={node_id}\n")
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    lines = [["verify", *paths, "--format", "jsonl"] for paths in ([one, two], [tmp_path], [one, three])]
    apart, together, other_node = run_kafkalog_many(lines)
    for run, place in ((apart, two), (together, two)):
        found = [row for row in run.check(1).rows("finding") if "Duplicate log directories" in row["message"]]
        expected = ("boot-refused", "error", "likely")
        assert [(row["code"], row["severity"], row["certainty"]) for row in found] == [expected]
        assert Path(found[0]["path"]).parent in (one, place)
    assert "Duplicate" not in other_node.check(0).stdout


@pytest.mark.parametrize("name", ["no cluster id", "a copy", "other directory ids"])
def test_two_directories_of_one_node_id_may_be_of_two_clusters_or_copies(
    tmp_path: Path, run_kafkalog_many: RunMany, name: str
) -> None:
    """Brokers 0.10.2 and 1.1 write no cluster id. Neither log may be deleted: other directory ids are proof."""
    for number, own in enumerate(("u-0", "w-0")):
        place = tmp_path / f"d{number}"
        for partition in ("t-0", own)[: 1 if name == "a copy" and number else 2]:
            write_segment(place / partition, 0, batches(1))
        lines = {"no cluster id": "version=0\nbroker.id=1\n"}.get(name, "version=1\nnode.id=1\ncluster.id=c\n")
        lines += f"directory.id={'ABCDEFGHIJKLMNOPQRSTU'}{'Aw'[number]}\n" if name == "other directory ids" else ""
        (place / "meta.properties").write_text(lines)
    [run] = run_kafkalog_many([["verify", tmp_path, "--format", "jsonl"]])
    [found] = [row for row in run.rows("finding") if "Duplicate log directories" in row["message"]]
    is_proven = name == "other directory ids"
    assert (found["severity"], found["certainty"]) == (("error", "proven") if is_proven else ("warning", "possible"))
    assert ("or one of the two directories is a copy, or of another cluster" in found["message"]) != is_proven
    assert "remove" not in str(found)
    assert run.code == is_proven


def test_two_damaged_and_two_clean_brokers_below_one_root(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Their directories could be names of partitions."""
    store = tmp_path / "store"
    for number in (1, 2, 3, 4):
        contents = batches(20)
        if number in (2, 4):
            contents[7] = contents[7][:-3] + b"xyz"
        write_segment(store / f"kafka-{number}" / "t-0", 0, contents)
        (store / f"kafka-{number}" / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id={number}\n")
    lines = [["verify", path, "--format", "jsonl"] for path in (store, *sorted(store.iterdir()))]
    together, *alone = run_kafkalog_many(lines)
    assert [run.code for run in (together, *alone)] == [1, 0, 1, 0, 1]
    damage = [row["path"] for row in together.rows("finding") if row["code"] == "batch-crc-mismatch"]
    assert damage == [str(store / f"kafka-{number}" / "t-0" / f"{0:020d}.log") for number in (2, 4)]
    assert (together.summary["complete"], together.summary["counts"]["segments"]) == (True, 4)
