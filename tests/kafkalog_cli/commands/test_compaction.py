"""kafkalog compaction as a user runs it, and against what a real broker's cleaner left."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from format.columns import CLEANER
from format.layout import RECORD_BATCH
from tests.kafkalog_cli.page.reports import report_of
from tests.oracle.compaction_trial import offsets_in, predicted
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("compaction", "--format", "jsonl", *arguments)])[0]


@pytest.fixture
def sample(data_dir: Path) -> Path:
    return data_dir / "trials" / "compaction"


@pytest.fixture
def truth(sample: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sample / "truth" / "compaction.json").read_text())
    return found


def test_equals_what_the_cleaner_left(sample: Path, truth: dict[str, Any]) -> None:
    judged = predicted(sample / "node-1", truth["now"])
    assert set(judged) == set(truth["left"])
    cleaned = 0
    for name, log in judged.items():
        edge = log.range.first_uncleanable_offset
        kept = offsets_in(sample / "node-1" / name)
        if log.blocked_by is None:
            assert log.cleaned is not None
            cleaned += log.cleaned.record_count > log.cleaned.kept_records
            columns = log.cleaned.kept_offsets
            kept = [*chain.from_iterable(each.tolist() for each in columns), *(each for each in kept if each >= edge)]
        assert kept == truth["left"][name], name
    assert cleaned > 3


def test_rows(kafkalog: Kafkalog, sample: Path, truth: dict[str, Any]) -> None:
    run = kafkalog("--at", str(truth["now"]), sample / "node-1").check(0)
    rows = run.rows("cleaner")
    assert {tuple(row)[1:] for row in rows} == {CLEANER.names}
    assert "The cleaner would clean" in run.stderr
    assert any(row["blocked_by"] for row in rows)
    for row in rows:
        if row["would_keep_bytes"] is not None:
            assert row["would_keep_bytes"] + row["would_free_bytes"] == row["clean_bytes"] + row["dirty_bytes"]


def test_what_if(kafkalog: Kafkalog, sample: Path, truth: dict[str, Any]) -> None:
    at = ("--at", str(truth["now"]), sample / "node-1")
    lazy = kafkalog("--min-cleanable-dirty-ratio", "1", *at).check(0).rows("cleaner")
    assert all(row["blocked_by"] for row in lazy)
    young = kafkalog("--min-compaction-lag-ms", str(2**62), *at).check(0).rows("cleaner")
    assert {row["bound_by"] for row in young if row["dirty_bytes"] == 0} & {"min_compaction_lag"}
    kafkalog("--min-cleanable-dirty-ratio", "2", *at).check(2)


def test_a_file_is_no_log_and_nothing_is_concluded_of_it(kafkalog: Kafkalog, sample: Path) -> None:
    file = sample / "node-1" / "meta.properties"
    alone = kafkalog(file).check(2)
    assert alone.stderr.count("\n") == 1
    assert "whole logs" in alone.stderr
    assert "The cleaner would clean" in kafkalog(file, sample / "node-1").check(2).stderr


def test_a_batch_that_cannot_be_read_stops_the_cleaner(
    kafkalog: Kafkalog, sample: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    rows = kafkalog("--at", str(truth["now"]), sample / "node-1").rows("cleaner")
    name = next(f"{row['topic']}-{row['partition']}" for row in rows if row["blocked_by"] is None)
    copy = with_a_record_of_wrong_length(sample / "node-1", name, tmp_path)
    run = kafkalog("--at", str(truth["now"]), copy / name)
    assert [row["blocked_by"] for row in run.rows("cleaner")] == ["damaged_batch"]
    (found,) = run.rows("finding")
    assert (found["path"].startswith(str(copy / name)), f"{found['topic']}-{found['partition']}") == (True, name)
    assert run.stderr.startswith(
        f"Damage stops the cleaner in {name}: it cannot read the batch at offset {found['offset']:,} "
        f"({Path(found['path']).name}, position {found['position']:,}), and cleans the log no more."
    )
    report = report_of(copy)
    row = next(row for row in report.tables["cleaner"].objects() if f"{row['topic']}-{row['partition']}" == name)
    assert row["blocked_by"] == "damaged_batch"


def test_a_wrong_crc_does_not_stop_the_cleaner_and_is_said(
    kafkalog: Kafkalog, sample: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    log = shutil.copytree(sample / "node-1", tmp_path / "node-1") / "drawn-3-0"
    before = kafkalog("--at", str(truth["now"]), log).check(0).rows("cleaner")
    path = min(log.glob("*.log"))
    content = bytearray(path.read_bytes())
    content[RECORD_BATCH.offset_of("crc")] ^= 1
    path.write_bytes(content)
    run = kafkalog("--at", str(truth["now"]), log).check(1)
    assert [(row["blocked_by"], row["would_free_bytes"]) for row in run.rows("cleaner")] == [
        (None, row["would_free_bytes"]) for row in before
    ]
    (found,) = run.rows("finding")
    assert (found["code"], found["path"], found["position"]) == ("batch-crc-mismatch", str(path), 0)
    assert "gets a right one" in found["message"]


def test_bytes_that_are_no_batch_stop_the_cleaner(
    kafkalog: Kafkalog, sample: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    log = shutil.copytree(sample / "node-1", tmp_path / "node-1") / "drawn-3-0"
    path = min(log.glob("*.log"))
    content = bytearray(path.read_bytes())
    content[RECORD_BATCH.offset_of("magic")] = 9
    path.write_bytes(content)
    run = kafkalog("--at", str(truth["now"]), log)
    assert [row["blocked_by"] for row in run.rows("cleaner")] == ["damaged_batch"]
    assert run.stderr.startswith("Damage stops the cleaner in drawn-3-0")


def with_a_record_of_wrong_length(node: Path, name: str, tmp_path: Path) -> Path:
    """A copy of a node in which the first record of a partition has another length than it says."""
    copy = shutil.copytree(node, tmp_path / "node-1")
    path = min((copy / name).glob("*.log"))
    content = bytearray(path.read_bytes())
    content[RECORD_BATCH.size_bytes] ^= 0x55
    path.write_bytes(content)
    return copy


def test_without_a_metadata_log_other_evidence_shows_what_is_compacted(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path
) -> None:
    """Brokers' own topics have policies that are known, and a cleaner's checkpoint names topics that it cleaned."""
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    expected = {row["topic"] for row in kafkalog(node).check(0).rows("cleaner")}
    assert expected == {"__consumer_offsets", "__transaction_state", "users"}
    shutil.rmtree(node / "__cluster_metadata-0")
    rows = kafkalog(node).check(0).rows("cleaner")
    assert {row["topic"] for row in rows} == expected
    sources = {row["topic"]: row["config_source"].partition(",")[0] for row in rows}
    assert sources["users"] == "cleanup.policy=cleaner_checkpoint"
    assert sources["__consumer_offsets"] == "cleanup.policy=internal_topic"
    said = kafkalog(node).check(0).stderr
    assert "Whether 11 other topics are compacted is not known: the configs of topics are not at hand" in said
    alone = kafkalog(node / "orders-0").check(0).stderr
    assert "No log here is known to be compacted: the configs of topics are not at hand" in alone


def test_with_a_metadata_log_that_no_log_is_compacted_is_known(kafkalog: Kafkalog, data_dir: Path) -> None:
    orders = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"
    assert kafkalog(orders).check(0).stderr.startswith("No log here is compacted.")


def test_people_read_damage_first_and_then_the_dirtiest(
    run_kafkalog_many: Callable[..., list[Run]], kafkalog: Kafkalog, sample: Path, truth: dict[str, Any], tmp_path: Path
) -> None:
    at = ("--at", str(truth["now"]))
    rows = kafkalog(*at, sample / "node-1").rows("cleaner")
    ready = [row for row in rows if row["blocked_by"] is None]
    names = [f"{row['topic']}-{row['partition']}" for row in sorted(ready, key=lambda row: -row["dirty_bytes"])]
    copy = with_a_record_of_wrong_length(sample / "node-1", names[-1], tmp_path)
    (run,) = run_kafkalog_many([("compaction", "--format", "table", *at, copy)])
    first, *lines = run.stdout.splitlines()
    assert first.startswith(f"Damage stops the cleaner in {names[-1]}: ")
    shown = ["-".join(line.split()[:2]) for line in lines if line.startswith("drawn-")]
    assert shown[: len(names)] == [names[-1], *names[:-1]]
