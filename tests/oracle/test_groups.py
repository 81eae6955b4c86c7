"""The CSV that groups writes, read by kafka-consumer-groups on a real broker; and what the tool says of the groups."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest

from tests.corpora import DATA_DIR
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab
from tests.running import run_in_process_of_its_own

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

VERSION = "4.3.1"
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
#: Groups of the corpus that the broker of another one has not: names with a comma, quotes and letters beyond ASCII.
_GROUPS = ('classic grüße, "103"', 'classic grüße, "53"', "consumer-186", "in-transaction-2-1")


def test_kafka_takes_the_csv_and_sets_the_offsets(tmp_path: Path) -> None:
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    words = [word for group in _GROUPS for word in ("--group", group)]
    path = tmp_path / "reset.csv"
    node = DATA_DIR / "groups/node-1"
    run_in_process_of_its_own("groups", *words, "--topic", "orders", "--reset-csv", path, node).check(0)
    lines = {tuple(row) for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8")))}
    assert {row[0] for row in lines} == set(_GROUPS)
    copy = tmp_path / "node-1"
    shutil.copytree(DATA_DIR / "kafka-4.3-single/node-1", copy)
    for each in [copy, *copy.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    with Broker(lab, VERSION, copy, tmp_path / "broker") as broker:
        said = broker.run(_TOOL, "--reset-offsets", *words, "--from-file", str(path), "--execute")
        assert "ERROR" not in said.upper(), said
    answer = run_in_process_of_its_own("groups", *words, "--format", "jsonl", copy).check(0)
    names = ("group", "topic", "partition", "offset")
    assert {tuple(str(row[name]) for name in names) for row in answer.rows("group_offset")} == lines
    assert len(lines) > 8
