"""kafkalog salvage: what is lost is listed, and where the result is comes last."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import batches, write_segment
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.record_encoder import NewRecord, encode_record
from tests.running import Run

RunMany = Callable[..., list[Run]]


def test_the_exit_status_of_a_repair(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """A proven field leaves nothing open; a bit that was flipped back is not proven."""
    log = batches(5)
    field, bit = (bytearray(log[2]) for _ in range(2))
    field[16] = 7  # the magic
    bit[70] ^= 1
    sources = [write_segment(tmp_path / name / "t-0", 0, [*log[:2], each, *log[3:]]).parent
               for name, each in (("field", field), ("bit", bit))]  # fmt: skip
    plain, *repaired = run_kafkalog_many(
        [
            ["salvage", source, "--output", tmp_path / f"out-{number}", "--format", "jsonl", *options]
            for number, (source, options) in enumerate(((sources[1], []), *((each, ["--repair"]) for each in sources)))
        ]
    )
    assert plain.check(1).summary["conditions"] == ["damage"]
    assert repaired[0].check(0).rows("finding")[0]["code"] == "batch-repaired"
    [row] = repaired[1].check(3).rows("finding")
    assert (row["code"], row["certainty"]) == ("batch-reconstructed", "reconstructed")
    assert (tmp_path / "out-2" / "t-0" / f"{0:020d}.log").read_bytes() == b"".join(log)


def test_where_the_result_is_comes_after_all_rows(damaged: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "kafkalog_cli", "salvage", damaged, "--format", "table"]
    reported = subprocess.run([*words, "--output", tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert reported.stdout.decode().splitlines()[-1] == f"published: {tmp_path / 'out'}"
    quiet = subprocess.run([*words, "--quiet", "--output", tmp_path / "other"], stderr=subprocess.PIPE)
    assert quiet.stderr == b""


def test_losses_are_counted(damaged: Path, tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    [run] = run_kafkalog_many([["salvage", damaged, "--output", tmp_path / "out", "--format", "jsonl"]])
    assert run.check(1).summary["counts"]["losses"] == len(run.rows("finding")) == 1
    [row] = run.rows("written_segment")
    assert (row["batch_count"], row["lost_bytes"]) == (3, run.rows("finding")[0]["length"])


def nodes_with_wounds(tmp_path: Path, wounds: dict[int, set[int]]) -> list[Path]:
    """Log directories of nodes with the same log, in which batches of these numbers are damaged."""
    for number, damaged in wounds.items():
        node = tmp_path / f"node-{number}"
        ModelReplica(plain(10), damaged=damaged).write(node)
        (node / "meta.properties").write_text(f"version=1\ncluster.id=abcdefghijklmnopqrstuv\nnode.id={number}\n")
    return [tmp_path / f"node-{number}" for number in wounds]


def test_merged_replicas_are_whole_and_the_conclusion_comes_first(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    nodes = nodes_with_wounds(tmp_path, {1: {2}, 2: {5}, 3: {7, 9}})
    words = ["salvage", "--merge", *nodes, "--output"]
    text, rows, again = run_kafkalog_many(
        [
            [*words, tmp_path / "text", "--format", "text"],
            [*words, tmp_path / "rows", "--format", "jsonl"],
            ["verify", tmp_path / "text/orders-0"],
        ]
    )
    first = text.check(0).stdout.splitlines()[0]
    assert first == "orders-0  base node 1 · 1 range filled from node 2 (3 records) · no loss is known"
    ranges = [(row["node_id"], row["is_base"], row["first_offset"]) for row in rows.check(0).rows("merged_range")]
    assert ranges == [(1, True, 0), (2, False, 6), (1, True, 9)]
    again.check(0)
    assert not (tmp_path / "text/meta.properties").exists()


def test_offsets_that_no_replica_has_end_with_status_1(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    nodes = nodes_with_wounds(tmp_path, {1: {2}, 2: {2, 4}})
    [run] = run_kafkalog_many([["salvage", "--merge", *nodes, "--output", tmp_path / "out", "--format", "jsonl"]])
    [found] = run.check(1).rows("finding")
    assert (found["code"], found["lost_offsets"]) == ("no-intact-replica", [6, 8])


def test_what_is_wrong_with_a_branch_is_no_damage_of_the_merged_log(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """The branch ends with a batch at which a broker stops: its producer has an open transaction."""
    shared = plain(4)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(shared).write(nodes[0]) / f"{0:020d}.log"
    with log.open("ab") as file:
        for base, attributes in ((12, 0x10), (13, 0)):
            header = BatchHeader(base, 0, 1, 10**12, 10**12, 0, attributes, producer_id=5, producer_epoch=0)
            record = encode_record(NewRecord(0, 0, b"key", b"stale", ()))
            file.write(encode_batch(msgspec.structs.replace(header, base_sequence=base - 12), record, codec=0))
    ModelReplica([*shared, *plain(3, first=12, epoch=1)]).write(nodes[1])
    words = ["salvage", "--merge", *nodes, "--output", tmp_path / "out", "--branches", tmp_path / "branches"]
    [run] = run_kafkalog_many([[*words, "--format", "jsonl"]])
    severities = {row["code"]: row["severity"] for row in run.check(0).rows("finding")}
    assert severities["branch-left-out"] == "warning"
    assert severities["batch-invalid"] == "info"
    assert list((tmp_path / "branches").rglob("*.quarantine"))


def test_log_directories_of_one_node_are_merged_with_those_of_others(
    tmp_path: Path, run_kafkalog_many: RunMany
) -> None:
    """Each partition is in another log directory of each node; the last node has a partition twice."""
    places = {"1a": [("orders-0", 2)], "1b": [("orders-1", 3)], "2a": [("orders-1", 5)], "2b": [("orders-0", 6)],
              "3a": [("orders-0", 2)], "3b": [("orders-0", 6)]}  # fmt: skip
    for place, partitions in places.items():
        for name, damaged in partitions:
            ModelReplica(plain(8), damaged={damaged}).write(tmp_path / place, name)
        meta = f"version=1\ncluster.id=abcdefghijklmnopqrstuv\nnode.id={place[0]}\n"
        (tmp_path / place / "meta.properties").write_text(meta)
    runs = run_kafkalog_many(
        [
            ["salvage", "--merge", *(tmp_path / each for each in some), "--output", tmp_path / f"out-{number}"]
            for number, some in enumerate((["1a", "1b", "2a", "2b"], ["3a", "3b"]))
        ]
    )
    for number, run in enumerate(runs):
        run.check(0)
        for log in (tmp_path / f"out-{number}").rglob("*.log"):
            assert log.read_bytes() == b"".join(each.encoded() for each in plain(8))
    assert {each.name for each in (tmp_path / "out-0").glob("orders-*")} == {"orders-0", "orders-1"}


def test_the_metadata_log_is_not_merged(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    nodes = nodes_with_wounds(tmp_path, {1: set(), 2: {2}})
    for node in nodes:
        ModelReplica(plain(2)).write(node / "controller", "__cluster_metadata-0")
        (node / "controller/__cluster_metadata-0").rename(node / "__cluster_metadata-0")
    words = ["salvage", "--merge", *nodes, "--output", tmp_path / "out", "--format", "jsonl"]
    logs = [node / "__cluster_metadata-0" for node in nodes]
    both, alone = run_kafkalog_many([words, ["salvage", "--merge", *logs, "--output", tmp_path / "metadata"]])
    assert "rebuild-quorum" in both.check(0).summary["not_checked"][0]
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["manifest.json", "orders-0"]
    assert "rebuild-quorum" in alone.check(2).stderr


def test_a_merge_that_was_killed_goes_on(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    """Killed when the first of two partitions is written; the branch was there before."""
    for number, damaged in ((1, {2}), (2, {5})):
        node = tmp_path / f"node-{number}"
        ModelReplica(plain(10), damaged=damaged).write(node)
        stale = plain(4, first=30, epoch=0, tag="stale") if number == 1 else plain(2, first=30, epoch=1)
        ModelReplica([*plain(10), *stale], damaged=damaged).write(node, "orders-1")
    words = ["salvage", "--merge", tmp_path / "node-1", tmp_path / "node-2", "--output"]
    killed = f"""
import os, signal, sys
from format.rewriting.publication import Publication
finish_step = Publication.finish_step
def finish(self, name, result=None):
    finish_step(self, name, result)
    if name == "orders-0 side files":
        os.kill(os.getpid(), signal.SIGKILL)
Publication.finish_step = finish
sys.argv = ["kafkalog", *{[*map(str, [*words, tmp_path / "out", "--branches", tmp_path / "branches"])]!r}]
from kafkalog_cli.__main__ import main
main()
"""
    assert subprocess.run([sys.executable, "-c", killed], capture_output=True).returncode == -9
    assert not (tmp_path / "out").exists()
    resumed, whole, refused = run_kafkalog_many(
        [
            [*words, tmp_path / "out", "--resume"],
            [*words, tmp_path / "whole"],
            [*words, tmp_path / "other", "--branches", tmp_path / "branches", "--resume"],
        ]
    )
    resumed.check(0)
    whole.check(0)
    refused.check(5)
    assert not (tmp_path / "other").exists()
    contents = [
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*-?/*")}
        for root in (tmp_path / "out", tmp_path / "whole")
    ]
    assert contents[0] == contents[1]
    assert list((tmp_path / "branches").rglob("*.log"))
    assert not list(tmp_path.glob(".*.partial-*"))


def test_options_of_merging_go_with_it_alone(tmp_path: Path, run_kafkalog_many: RunMany) -> None:
    nodes = nodes_with_wounds(tmp_path, {1: set(), 2: set()})
    output = ["--output", tmp_path / "out"]
    for run in run_kafkalog_many(
        [
            ["salvage", nodes[0], *output, "--branches", tmp_path / "other"],
            ["salvage", "--merge", *nodes, *output, "--repair"],
            ["salvage", "--merge", nodes[0], nodes[0], *output],
        ]
    ):
        run.check(2)
    assert not (tmp_path / "out").exists()
