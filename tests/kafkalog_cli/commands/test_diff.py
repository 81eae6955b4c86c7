"""kafkalog diff as a user runs it: the ledger whose replicas diverged, exit codes, mistakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import DIVERGENCE, REPLICA
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.metadata_logs import write_metadata_log, write_node, write_voters
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork."""
    return lambda *arguments: run_kafkalog_many([("diff", *arguments)])[0]


def test_the_ledger_of_the_crashed_leader(kafkalog: Kafkalog, data_dir: Path) -> None:
    """Node 1 was killed with records of epoch 0 that nobody fetched; node 2 wrote 500 of epoch 1 at their offsets."""
    nodes = data_dir / "kafka-4.3" / "node-1", data_dir / "kafka-4.3" / "node-2"
    run = kafkalog("--format", "jsonl", *nodes).check(1)
    (row,) = run.rows("divergence")
    assert tuple(row)[1:] == DIVERGENCE.names
    assert (row["topic"], row["kind"], row["offset"], row["leader_epoch"]) == ("ledger", "diverged", 1250, [0, 1])
    assert (row["log_end_offset"], row["high_watermark"]) == ([1300, 1750], [1000, 1750])
    assert (row["unique_from"], row["unique_to"]) == ([1250, 1250], [1299, 1749])
    assert (row["elect_node_id"], row["lost_if_elected"], row["missing_node_ids"]) == (2, 50, None)
    assert row["truncate_to"] == [[None, 1250], [1250, None]]
    crashed, elected = run.rows("replica")
    assert tuple(crashed)[1:] == REPLICA.names
    assert (crashed["lost_committed_count"], elected["lost_committed_count"]) == (500, 0)
    assert (crashed["lost_if_elected"], crashed["lost_from"], crashed["lost_to"]) == (500, 1250, 1749)
    assert (crashed["elect"], elected["elect"]) == (False, True)
    assert (crashed["truncate_to"], elected["epochs"]) == (1250, [[0, 0], [1, 1250]])
    assert run.stderr.startswith(
        "ledger-0  of these, elect node 2, which loses 50 not known as committed (1250 to 1299) · "
        "node 1 loses 500 committed (1250 to 1749) · whether there are other replicas is not known"
    )
    assert run.summary["conditions"] == ["difference-found"]
    assert run.summary["not_checked"] == [
        "a partition with one replica here: payments-0",
        "whether 1 partition had other replicas: there is no metadata log here (--metadata PATH)",
    ]


def test_a_copy_is_identical_whatever_its_name(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    original = data_dir / "kafka-4.3" / "node-1" / "payments-0"
    copy = tmp_path / "saved"
    shutil.copytree(original, copy)
    run = kafkalog("--format", "jsonl", original, copy).check(0)
    (row,) = run.rows("divergence")
    assert (row["kind"], row["offset"], row["topic"]) == ("identical", None, "payments")
    assert "1 partition compared: all replicas here are the same." in run.stderr


def test_a_byte_that_turned_is_found_on_its_replica(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    log = node / "ledger-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[1000] ^= 1
    log.write_bytes(content)
    run = kafkalog("--format", "jsonl", data_dir / "kafka-4.3" / "node-2", node).check(1)
    (row,) = run.rows("divergence")
    assert (row["kind"], row["offset"], row["damaged"]) == ("different_bytes", 50, [[], [[50, 99]]])
    assert [each["code"] for each in run.rows("finding")] == ["batch-crc-mismatch"]
    assert "cannot be read at offsets 50 to 99" in run.stderr


def test_topics_of_one_name_that_are_not_one_topic(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    metadata = node / "ledger-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    run = kafkalog("--format", "jsonl", data_dir / "kafka-4.3" / "node-1", node).check(1)
    assert not run.rows("divergence")
    assert [each["code"] for each in run.rows("finding")] == ["topic-id-conflict"]


def test_paths_that_cannot_be_compared(kafkalog: Kafkalog, data_dir: Path) -> None:
    node = data_dir / "kafka-4.3" / "node-1"
    kafkalog(node / "ledger-0", node / "payments-0").check(2)
    kafkalog(node / "ledger-0" / "00000000000000000000.log", node).check(2)
    assert kafkalog(node).check(3).stdout.startswith("No partition has two readable replicas at the paths: ")
    kafkalog(node, node).check(2)


def test_the_table_shows_the_replicas_of_what_differs_below_the_conclusion(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path
) -> None:
    nodes = data_dir / "kafka-4.3" / "node-1", data_dir / "kafka-4.3" / "node-2"
    run = kafkalog("--format", "table", *nodes).check(1)
    conclusion, empty, evidence, _, header, *rows = run.stdout.splitlines()
    assert conclusion.startswith("ledger-0  of these, elect node 2, ")
    assert (empty, evidence) == (
        "", "ledger-0: node 1 diverges from node 2 at offset 1250. Under node 2, Kafka truncates node 1 to 1250."
    )  # fmt: skip
    assert (header.split()[0], [row.split()[0] for row in rows[:2]]) == ("node_id", ["1", "2"])
    partitions = kafkalog("--format", "table", "--columns", "kind,elect_node_id", *nodes).check(1)
    assert "elect_node_id" in partitions.stdout
    copy = shutil.copytree(nodes[0] / "ledger-0", tmp_path / "ledger-0")
    same = kafkalog("--format", "table", nodes[0] / "ledger-0", copy).check(0)
    assert same.stdout == "1 partition compared: all replicas here are the same.\n"


def test_the_summary_counts_partitions_and_not_their_kinds(kafkalog: Kafkalog, data_dir: Path, tmp_path: Path) -> None:
    nodes = [shutil.copytree(data_dir / "kafka-4.3" / "node-1", tmp_path / name) for name in ("one", "two")]
    log = nodes[1] / "payments-0" / "00000000000000000000.log"
    content = bytearray(log.read_bytes())
    content[1000] ^= 1
    log.write_bytes(content)
    run = kafkalog(*nodes).check(1)
    counts = next(line for line in run.stderr.splitlines() if line.startswith("diff: "))
    assert counts == "diff: 2 partitions compared, 4 replicas, 1 identical, 1 in other bytes."
    assert run.stdout.startswith(
        "2 partitions compared: 1 with differences; the replicas here of 1 partition are the same.\npayments-0  "
    )


def test_the_replicas_that_the_metadata_names(kafkalog: Kafkalog, tmp_path: Path) -> None:
    for node_id in (2, 3):
        ModelReplica(plain(8 + node_id)).write(write_node(tmp_path / f"node-{node_id}", node_id))
    write_metadata_log(tmp_path / "elsewhere", isr=(1,), leader=1)
    nodes = tmp_path / "node-2", tmp_path / "node-3"
    run = kafkalog("--format", "jsonl", *nodes, "--metadata", tmp_path / "elsewhere").check(1)
    (row,) = run.rows("divergence")
    assert (row["elect_node_id"], row["missing_node_ids"]) == (3, [1])
    assert "not here: node 1, whose records are not counted" in run.stderr
    assert run.summary["not_checked"][-1] == "the replica of node 1 of 1 partition"
    kafkalog(*nodes, "--metadata", tmp_path / "node-2").check(2)
    (tmp_path / "node-3" / "meta.properties").unlink()  # it may be that of node 1
    run = kafkalog(*nodes, "--metadata", tmp_path / "elsewhere").check(1)
    assert f"the node of {nodes[1]}/orders-0 is not known: nodes 1 and 3 may not be here" in run.stdout
    assert f"elect {nodes[1]}/orders-0, which loses none of what these have" in run.stdout
    assert "ISR or the ELR" not in run.stdout
    logs = [write_metadata_log(each, extra_topics=length) for length, each in enumerate(nodes)]
    for each in logs:
        write_voters(each, (1, 2, 3))
    run = kafkalog(*logs).check(1)
    assert f"the node of {logs[1]} is not known: nodes 1 and 3 may not be here" in run.stdout
    assert "observer" not in run.stdout


@pytest.mark.parametrize("is_same", [False, True])
def test_a_report_ends_as_diff_does(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path, is_same: bool
) -> None:
    """A page that says that all is sound while the replicas differ would be believed."""
    nodes = [data_dir / "kafka-4.3" / "node-1", data_dir / "kafka-4.3" / "node-2"]
    if is_same:
        nodes[1] = shutil.copytree(nodes[0], tmp_path / "node-1")
    compared, report = run_kafkalog_many([("diff", *nodes), ("report", *nodes, "--format", "json")])
    code = 0 if is_same else 1
    compared.check(code)
    document = json.loads(report.check(code).stdout)
    states = {row["topic"]: row["state"] for row in document["tables"]["report_partition"]["rows"]}
    assert states == {"ledger": "sound" if is_same else "differs", "payments": "sound"}
    assert ("A difference found. Exit status 1." in report.stderr) is not is_same
    known = f"whether {2 if is_same else 1} partition{'s' * is_same} had other replicas: there is no metadata log here"
    assert any(words.startswith(known) for words in document["not_checked"])


def test_a_report_has_the_findings_of_diff(
    run_kafkalog_many: Callable[..., list[Run]], data_dir: Path, tmp_path: Path
) -> None:
    node = tmp_path / "node-2"
    shutil.copytree(data_dir / "kafka-4.3" / "node-2", node)
    (node / "ledger-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAg")
    nodes = data_dir / "kafka-4.3" / "node-1", node
    compared, report = run_kafkalog_many([("diff", *nodes), ("report", *nodes, "--format", "json")])
    compared.check(1)
    document = json.loads(report.check(1).stdout)
    assert [row["code"] for row in document["tables"]["finding"]["rows"]].count("topic-id-conflict") == 1


def test_the_replicas_of_several_partitions_are_only_counted(kafkalog: Kafkalog, tmp_path: Path) -> None:
    """Else the tables of one partition push the conclusion on another one off the screen."""
    for number, lengths in enumerate(((9, 12), (9, 17))):
        for node_id, length in enumerate(lengths, 1):
            node = write_node(tmp_path / f"node-{node_id}", node_id)
            ModelReplica(plain(length)).write(node, f"orders-{number}")
    nodes = tmp_path / "node-1", tmp_path / "node-2"
    run = kafkalog("--format", "table", *nodes).check(1)
    assert "diff: 2 partitions compared, 4 replicas, 2 behind." in run.stderr
    lines = run.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["2", "orders-1", "orders-0", "Not"], "the gravest first"
    assert lines[-1] == "Not listed: the replicas of 2 partitions (--every-row lists them)."
    every = kafkalog("--format", "table", "--every-row", *nodes).check(1).stdout
    assert "Not listed" not in every
    assert every.count("node_id ") == 2
    one = kafkalog("--format", "table", *(node / "orders-0" for node in nodes)).check(1).stdout
    assert one.count("node_id ") == 1
    assert "Not listed" not in one


def test_replicas_that_begin_at_different_offsets_are_the_same_where_they_overlap(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path
) -> None:
    """A follower deletes what is before the log start of its leader, so a lost head spreads with an election."""
    for number in (1, 2):
        for name in ("orders-1", "orders-2"):
            shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / name, tmp_path / f"node-{number}" / name)
    for path in (tmp_path / "node-1" / "orders-2").glob(f"{0:020d}.*"):
        path.unlink()
    one = kafkalog(tmp_path / "node-1" / "orders-2", tmp_path / "node-2" / "orders-2").check(0)
    assert "are the same from offset 1032 on · the log begins on " in one.stdout
    assert "a leader that begins at 1032 makes the others delete what is before" in one.stdout
    both = kafkalog(tmp_path / "node-1", tmp_path / "node-2").check(0)
    assert "the same where they overlap; 1 partition with different log starts." in both.stdout
    whole = kafkalog(tmp_path / "node-1" / "orders-1", tmp_path / "node-2" / "orders-1").check(0)
    assert "1 partition compared: all replicas here are the same." in whole.stdout
