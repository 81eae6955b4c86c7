"""The CSV that groups writes, read by kafka-consumer-groups on a real broker; and what the tool says of the groups."""

from __future__ import annotations

import csv
import io
import os
import shlex
import shutil
import time
from pathlib import Path

import pytest

from format.timestamps import iso_time
from tests.corpora import DATA_DIR
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.running import run_in_process_of_its_own

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

VERSION = "4.3.1"
_OFFSETS_TOOL = "org.apache.kafka.tools.GetOffsetShell"
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
#: Groups of the corpus that the broker of another one has not: names with a comma, quotes and letters beyond ASCII.
_GROUPS = ('classic grüße, "103"', 'classic grüße, "53"', "consumer-186", "in-transaction-2-1")


def _lab() -> KafkaLab:
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    return lab


def _writable_node(tmp_path: Path) -> Path:
    copy = tmp_path / "node-1"
    shutil.copytree(DATA_DIR / "kafka-4.3-single/node-1", copy)
    for each in [copy, *copy.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return copy


def test_kafka_takes_the_csv_and_sets_the_offsets(tmp_path: Path) -> None:
    lab = _lab()
    words = [word for group in _GROUPS for word in ("--group", group)]
    path = tmp_path / "reset.csv"
    node = DATA_DIR / "groups/node-1"
    run = run_in_process_of_its_own("groups", *words, "--topic", "orders", "--reset-csv", path, node).check(0)
    commands = [shlex.split(line) for line in run.stderr.splitlines() if line.startswith("kafka-consumer-groups.sh ")]
    assert len(commands) == len(_GROUPS)
    lines = {tuple(row) for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8")))}
    assert {row[0] for row in lines} == set(_GROUPS)
    copy = _writable_node(tmp_path)
    with Broker(lab, VERSION, copy, tmp_path / "broker") as broker:
        for command in commands:
            assert "ERROR" not in broker.run(_TOOL, *command[3:]).upper()
    answer = run_in_process_of_its_own("groups", *words, "--format", "jsonl", copy).check(0)
    names = ("group", "topic", "partition", "offset")
    assert {tuple(str(row[name]) for name in names) for row in answer.rows("group_offset")} == lines
    assert len(lines) > 8


def test_the_lag_of_offsets_out_of_range_is_that_of_the_tool(tmp_path: Path) -> None:
    """A log that lost its end in a crash, and one whose start was raised, under the offsets of a group."""
    lab, node = _lab(), _writable_node(tmp_path)
    for file in (node / "orders-2").glob("00000000000000001032*"):
        file.unlink()
    os.truncate(node / "orders-2/00000000000000000000.log", 48_000)
    (node / ".kafka_cleanshutdown").unlink()
    (node / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 150\n")
    rows = run_in_process_of_its_own("groups", "--group", "group-0", "--format", "jsonl", node).check(0)
    found = {f"{row['topic']}-{row['partition']}": row for row in rows.rows("group_offset")}
    with Broker(lab, VERSION, node, tmp_path / "broker") as broker:
        lines = broker.run(_TOOL, "--describe", "--group", "group-0").splitlines()
        starts = broker.run(_OFFSETS_TOOL, "--topic-partitions", "payments:0,orders:2", "--time", "earliest")
    said = {f"{words[1]}-{words[2]}": words[3:6] for words in map(str.split, lines) if words[:1] == ["group-0"]}
    names = ("offset", "log_end_offset", "lag")
    assert {place: [str(row[name]) for name in names] for place, row in found.items()} == said
    assert found["orders-2"]["lag"] < 0
    assert set(starts.split()) == {"payments:0:150", "orders:2:0"}
    assert {place: row["out_of_range"] for place, row in found.items() if row["out_of_range"]} == {
        "orders-2": "past_log_end",
        "payments-0": "before_log_start",
    }


def test_a_deleted_group_is_set_back_by_the_commands(tmp_path: Path) -> None:
    """The time of the deletion, the offsets just before it, and the commands that are printed, as they are printed."""
    lab, node, path = _lab(), _writable_node(tmp_path), tmp_path / "reset.csv"
    settings = {"offsets.retention.minutes": "10000000"}
    with Broker(lab, VERSION, node, tmp_path / "first", settings) as broker:
        before = _described(broker)
        start = time.time_ns() // 1_000_000
        broker.run(_TOOL, "--delete", "--group", "group-0")
        end = time.time_ns() // 1_000_000
    asked = run_in_process_of_its_own("groups", "--group", "group-0", "--format", "jsonl", node).check(0)
    [group] = asked.rows("group")
    assert (group["state"], len(before)) == ("Dead", 3)
    assert start <= group["deleted_timestamp"] <= end
    assert f"Group group-0 was deleted at {iso_time(group['deleted_timestamp'])}, " in asked.stderr
    command = shlex.split(asked.stderr.split("in the log: ")[1])
    written = run_in_process_of_its_own(*command[1:], "--reset-csv", path).check(0)
    words = shlex.split(
        next(line for line in written.stderr.splitlines() if line.startswith("kafka-consumer-groups.sh"))
    )
    assert words[1:3] == ["--bootstrap-server", "localhost:9092"]
    with Broker(lab, VERSION, node, tmp_path / "second", settings) as broker:
        broker.run(_TOOL, *words[3:])
        assert _described(broker) == before


def _described(broker: Broker) -> set[tuple[str, ...]]:
    """Topic, partition and committed offset of the group, as the tool says them."""
    lines = map(str.split, broker.run(_TOOL, "--describe", "--group", "group-0").splitlines())
    return {tuple(words[1:4]) for words in lines if words[:1] == ["group-0"]}
