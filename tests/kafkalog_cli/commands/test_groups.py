"""``kafkalog groups``: what it prints, and what it exits with."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpora import DATA_DIR
from tests.running import Run

RunOne = Callable[..., Run]


@pytest.fixture
def run_kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> RunOne:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([arguments])[0]


NODE = DATA_DIR / "kafka-4.3-single/node-1"
GROUPS = DATA_DIR / "groups/node-1"


def test_groups_and_their_offsets(run_kafkalog: RunOne) -> None:
    run = run_kafkalog("groups", "--format", "jsonl", NODE).check(0)
    (group,) = run.rows("group")
    assert (group["group"], group["protocol"], group["state"], group["total_lag"]) == (
        "group-0",
        "classic",
        "Empty",
        235,
    )
    assert (group["committed_partitions"], group["coordinator_partition"], group["record_count"]) == (3, 2, 13)
    truth = json.loads((DATA_DIR / "kafka-4.3-single/truth/groups.json").read_text())
    offsets = {f"{row['topic']}-{row['partition']}": row["offset"] for row in run.rows("group_offset")}
    assert {"group-0": offsets} == truth
    first = run.rows("group_offset")[0]
    assert (first["path"], first["position"], first["record_offset"]) == (
        str(NODE / "__consumer_offsets-2/00000000000000000000.log"), 948, 6,
    )  # fmt: skip
    assert run.summary["counts"] == {"group": 1, "group_offset": 3}
    assert run.stderr.startswith("Group group-0 is 235 records behind, 170 of them on orders-2; its last commit there")


def test_without_the_topics_the_lag_is_unknown(run_kafkalog: RunOne) -> None:
    run = run_kafkalog("groups", "--format", "jsonl", NODE / "__consumer_offsets-2").check(0)
    assert {row["lag"] for row in run.rows("group_offset")} == {None}
    assert run.rows("group")[0]["total_lag"] is None
    assert run.summary["not_checked"] == ["the lag on 3 committed partitions: not at the paths"]
    assert run.stderr.startswith("1 group; no lag is known.")


def test_history_and_narrowing(run_kafkalog: RunOne) -> None:
    words = ("groups", "--history", "--group", "in-transaction-2-1", "--topic", "orders", GROUPS)
    run = run_kafkalog(*words, "--format", "jsonl").check(0)
    assert {row["outcome"] for row in run.rows("group_commit")} == {"committed", "aborted", "open"}
    assert not run.rows("group_offset")
    table = run_kafkalog(*words, "--format", "table").check(0)
    assert table.stdout.startswith("group               topic   partition  offset")
    rows = list(csv.DictReader(run_kafkalog(*words, "--format", "csv", "-q").check(0).stdout.splitlines()))
    assert len(rows) == len(run.rows("group_commit"))


def test_no_such_group(run_kafkalog: RunOne) -> None:
    run = run_kafkalog("groups", "--group", "nobody", "--format", "jsonl", NODE).check(1)
    assert run.summary["conditions"] == ["nothing-found"]
    assert run_kafkalog("groups", NODE / "orders-0").check(3).stdout.startswith("No group is known: no readable log of")
    assert "no records of groups" in run_kafkalog("groups", NODE / "meta.properties").check(2).stderr


def test_a_group_of_a_partition_that_is_not_there_is_not_said_to_be_absent(
    run_kafkalog: RunOne, tmp_path: Path
) -> None:
    node = tmp_path / "node-1"
    shutil.copytree(NODE, node)
    shutil.rmtree(node / "__consumer_offsets-2")
    run = run_kafkalog("groups", "--group", "group-0", "--format", "jsonl", node).check(3)
    assert run.stderr.startswith("It is not known whether group group-0 exists: it would be in __consumer_offsets-2")
    assert run.summary["not_checked"] == ["groups in 1 partition of __consumer_offsets: not at the paths"]
    run = run_kafkalog("groups", node).check(1)
    assert run.stdout.startswith("There is no group in partitions 0, 1 and 3 of the 4 of __consumer_offsets; ")


def test_reset_csv(run_kafkalog: RunOne, tmp_path: Path) -> None:
    path = tmp_path / "reset.csv"
    run = run_kafkalog("groups", "--group", "group-0", "--reset-csv", path, "--format", "jsonl", NODE).check(0)
    assert path.read_text() == "group-0,orders,2,1000\ngroup-0,payments,0,111\ngroup-0,payments,1,109\n"
    assert run.summary["counts"]["reset_csv_line"] == 3
    assert run.stderr.splitlines()[-1] == (
        "kafka-consumer-groups.sh --bootstrap-server localhost:9092 --reset-offsets --group group-0 "
        f"--from-file {path} --execute"
    )
    run_kafkalog("groups", "--reset-csv", path, NODE).check(5)  # it exists
    words = ("--group", "share-reader-1", "--reset-csv", tmp_path / "none.csv", "--format", "jsonl")
    none = run_kafkalog("groups", *words, GROUPS).check(0)
    assert "--reset-csv leaves out 1 group: the tool does not reset share groups" in none.summary["not_checked"]
    run_kafkalog("groups", "--reset-csv", NODE / "reset.csv", NODE).check(5)


def test_state_in_the_past(run_kafkalog: RunOne) -> None:
    run = run_kafkalog("groups", "--at", "2026-11-21T08:42:13.92Z", "--format", "jsonl", NODE).check(0)
    assert {(row["topic"], row["partition"]): row["offset"] for row in run.rows("group_offset")} == {("orders", 2): 800}
    assert run.rows("group")[0]["state"] == "Stable"


def test_a_group_that_is_not_there_is_answered_with_those_that_are(run_kafkalog: RunOne) -> None:
    assert (
        run_kafkalog("groups", "--group", "billing", NODE)
        .check(1)
        .stdout.startswith("There is no group billing; there is group-0.\n")
    )
    words = run_kafkalog("groups", "--group", "nobody", GROUPS).check(1).stdout
    assert words.startswith("There is no group nobody; there are ")
    assert " more.\n" in words


def test_nothing_found_up_to_a_time_says_so(run_kafkalog: Callable[..., Run]) -> None:
    run = run_kafkalog("groups", "--at", "2020-01-01", "--format", "jsonl", NODE).check(1)
    assert "There is no group." in run.stderr
    assert "This is as of 2020-01-01T00:00:00.000Z; later records are not counted." in run.stderr


def test_people_read_who_is_behind_and_the_others_counted(run_kafkalog: RunOne) -> None:
    words = ("groups", "--format", "table", NODE)
    lines = run_kafkalog(*words).check(0).stdout.splitlines()
    assert lines[0].startswith("Group group-0 is 235 records behind, 170 of them on orders-2; ")
    assert [line.split()[2] for line in lines if line.startswith("group-0  orders")] == ["2"]
    assert "Not listed: 1 offset without lag (--every-row lists them)." in lines
    for options in (("--every-row",), ("--group", "group-0")):
        whole = run_kafkalog(*words, *options).check(0).stdout
        assert "Not listed" not in whole
        assert whole.count("\ngroup-0  ") == 4


def test_commits_that_cannot_be_read_may_be_later_than_those_that_can(run_kafkalog: RunOne, tmp_path: Path) -> None:
    broken = tmp_path / "__consumer_offsets-2"
    shutil.copytree(NODE / "__consumer_offsets-2", broken)
    (log,) = broken.glob("*.log")
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    words = " There may be later commits: 1 log of coordinators cannot be read as a whole."
    assert words in run_kafkalog("groups", "--format", "table", broken).check(1).stdout.replace("\n", " ")
    assert "later commits" not in run_kafkalog("groups", "--format", "table", NODE).check(0).stdout
