"""kafkalog retention as a user runs it, and against what a real broker left."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from format.columns import RETENTION_TOTAL, SEGMENT_RETENTION
from tests.running import Run

Kafkalog = Callable[..., Run]


@pytest.fixture
def kafkalog(run_kafkalog_many: Callable[..., list[Run]]) -> Kafkalog:
    """One run of the program, in a fork: quicker than a process of its own."""
    return lambda *arguments: run_kafkalog_many([("retention", "--format", "jsonl", *arguments)])[0]


@pytest.fixture
def sample(data_dir: Path) -> Path:
    return data_dir / "trials" / "retention"


def test_equals_what_a_broker_left(kafkalog: Kafkalog, sample: Path) -> None:
    truth = json.loads((sample / "truth" / "retention.json").read_text())
    run = kafkalog("--at", str(truth["now"]), sample / "node-1").check(0)
    rows = run.rows("segment_retention")
    assert {tuple(row)[1:] for row in rows} == {SEGMENT_RETENTION.names}
    stays: dict[str, list[int]] = {}
    for row in rows:
        left = stays.setdefault(f"{row['topic']}-{row['partition']}", [])
        assert (row["deletable_by"] is None) != (row["retained_by"] is None)
        if row["deletable_by"] is None:
            left.append(row["segment_base_offset"])
    names = {name for name in truth["left"] if not name.startswith(("random-", "untimed-", "__"))}
    assert len(names) == 14
    assert {name: stays[name] for name in names} == {name: truth["left"][name] for name in names}
    totals = run.rows("retention_total")
    assert {tuple(row)[1:] for row in totals} == {RETENTION_TOTAL.names}
    assert sum(row["segment_count"] for row in totals) == len(rows)
    assert sum(row["deletable_count"] for row in totals) == sum(row["deletable_by"] is not None for row in rows)


def test_the_record_that_keeps_a_segment(kafkalog: Kafkalog, sample: Path) -> None:
    truth = json.loads((sample / "truth" / "retention.json").read_text())
    rows = kafkalog("--at", str(truth["now"]), sample / "node-1" / "future-0").check(0).rows("segment_retention")
    assert [row["retained_by"] for row in rows] == [None, None, *["future_timestamp"] * 3]
    assert [row["largest_timestamp_offset"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[2]["deletable_at"] == rows[2]["largest_timestamp"] + rows[2]["retention_ms"] + 1
    assert rows[2]["config_source"] == "cleanup.policy=default,retention.bytes=default,retention.ms=topic"


@pytest.mark.parametrize("lost", [".timeindex", ".index", "content"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_segment_without_its_times_goes_by_the_time_of_its_file(
    kafkalog: Kafkalog, sample: Path, tmp_path: Path, lost: str, is_clean: bool
) -> None:
    node = tmp_path / "node-1"
    shutil.copytree(sample / "node-1", node)
    (node / ".kafka_cleanshutdown").unlink(missing_ok=True)
    (node / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    if is_clean:
        (node / ".kafka_cleanshutdown").touch()
    log = min((node / "by-time-0").glob("*.log"))
    os.utime(log, (4_000_000_000, 4_000_000_000))
    for suffix in (".timeindex", ".index") if lost == ".index" else [".timeindex"]:
        log.with_suffix(suffix).write_bytes(b"")
        if lost != "content":
            log.with_suffix(suffix).unlink()
    row, *_ = kafkalog("--at", "2026-12-24", node / "by-time-0").check(0).rows("segment_retention")
    is_by_file = is_clean and lost != ".index"  # without an .index a broker builds both
    assert (row["largest_timestamp"] is None) == is_by_file
    assert (row["retained_by"] == "future_timestamp") == is_by_file


def test_the_time_of_a_file_that_lies_in_the_future(run_kafkalog: Kafkalog, sample: Path, tmp_path: Path) -> None:
    node = tmp_path / "node-1"
    shutil.copytree(sample / "node-1", node)
    log = min((node / "by-time-0").glob("*.log"))
    log.with_suffix(".timeindex").write_bytes(b"")
    os.utime(log, (4_000_000_000, 4_000_000_000))
    run = run_kafkalog("retention", "--at", "2026-12-24", node / "by-time-0").check(0)
    words = "by-time-0 from offset 0 on: no timestamp counts, and its file has 2096-10-02T07:06:40.000Z, which keeps it"
    assert f"{words} until 2096-10-02" in run.stdout


def test_what_waits_for_a_replica_is_not_deleted_next(run_kafkalog: Kafkalog, data_dir: Path) -> None:
    ledger = data_dir / "kafka-4.3" / "node-1" / "ledger-0"
    run = run_kafkalog("retention", "--at", "2026-12-24", ledger).check(0)
    assert "deletes nothing; 1 segment stays (1 segment until a replica catches up), and retention.ms" in run.stdout
    assert "deletes none of them later" in run.stdout


def test_the_cleaner_may_merge_segments_before_they_are_deleted(
    run_kafkalog: Kafkalog, sample: Path, tmp_path: Path
) -> None:
    """A broker cleans the dirtiest log, and only then deletes: with 4.3.1 seven old segments became one younger one."""
    node = shutil.copytree(sample / "node-1", tmp_path / "node-1")
    words = "(5 of them unless the cleaner takes their log first"

    def sentence(policy: str, name: str = "by-time-0") -> str:
        now = json.loads((sample / "truth" / "retention.json").read_text())["now"]
        run = run_kafkalog("retention", "--at", str(now), "--cleanup-policy", policy, node / name)
        return " ".join(f"{run.stdout} {run.stderr}".split())

    (node / "replication-offset-checkpoint").unlink()
    merged = sentence("compact,delete")
    assert words in merged
    assert "nothing is deleted of a log in which damage stops it" in merged  # 4.3.1 kept all of it
    assert "whether damage in 1 log stops the cleaner: kafkalog compaction" in merged
    assert "the cleaner" not in sentence("delete")
    assert "unless the cleaner" not in sentence("compact")
    assert "unless the cleaner" not in sentence("compact,delete", "compact-and-delete-0")  # a ratio of 1.0
    (node / "cleaner-offset-checkpoint").write_text("0\n1\nby-time 0 7\n")
    assert "unless the cleaner" not in sentence("compact,delete")


def test_what_if(kafkalog: Kafkalog, sample: Path, tmp_path: Path) -> None:
    partition = sample / "node-1" / "unlimited-0"
    assert {row["retained_by"] for row in kafkalog(partition).rows("segment_retention")} == {"unlimited"}
    rows = kafkalog("--retention-ms", "1000", partition).rows("segment_retention")
    assert {row["deletable_by"] for row in rows} == {"time"}
    rows = kafkalog("--retention-ms", "1000", "--cleanup-policy", "compact", partition).rows("segment_retention")
    assert {row["retained_by"] for row in rows} == {"compact"}
    properties = tmp_path / "server.properties"
    properties.write_text("log.retention.bytes=1\nlog.retention.hours=1\n")
    alone = tmp_path / "unlimited-0"
    shutil.copytree(partition, alone)
    run = kafkalog("--broker-properties", properties, alone).check(0)
    assert {row["deletable_by"] for row in run.rows("segment_retention")} == {"size", "time"}
    assert "the configs of topics" in run.summary["not_checked"][0]
    run = kafkalog("--metadata", sample / "node-1", alone).check(0)
    assert {row["retained_by"] for row in run.rows("segment_retention")} == {"unlimited"}


def test_a_missing_time_index_and_a_damaged_log(kafkalog: Kafkalog, sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / "by-time-0"
    shutil.copytree(sample / "node-1" / "by-time-0", copy)
    whole = kafkalog(copy).rows("segment_retention")
    for path in copy.glob("*.timeindex"):
        path.unlink()
    names = ("segment_base_offset", "largest_timestamp", "largest_timestamp_offset")
    again = kafkalog(copy).check(0).rows("segment_retention")
    assert [[row[name] for name in names] for row in again] == [[row[name] for name in names] for row in whole]
    last = max(copy.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-7])
    run = kafkalog(copy)
    assert run.rows("finding")
    assert len(run.rows("segment_retention")) == len(whole)


def test_mistakes(kafkalog: Kafkalog, sample: Path) -> None:
    kafkalog("--retention-ms", "-2", sample / "node-1").check(2)
    kafkalog("--retention-ms", "9" * 5000, sample / "node-1").check(2)
    kafkalog("--cleanup-policy", "none", sample / "node-1").check(2)
    kafkalog("--totals", "--every-row", sample / "node-1").check(2)
    logs = sorted((sample / "node-1" / "by-time-0").glob("*.log"))
    for paths in logs[:1], logs[:2]:
        run = kafkalog(*paths).check(2)
        assert run.stderr.count("whole logs") == run.stderr.count("\n") == len(paths)  # and no answer


def test_without_a_metadata_log_it_judges_by_defaults_and_says_so(
    kafkalog: Kafkalog, data_dir: Path, tmp_path: Path
) -> None:
    node = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    assert "With Kafka's defaults" not in kafkalog(node).check(0).stderr
    shutil.rmtree(node / "__cluster_metadata-0")
    run = kafkalog(node).check(0)
    assert "With Kafka's defaults for 14 topics whose configs are not known" in run.stderr
    policies = {row["topic"]: row["cleanup_policy"] for row in run.rows("segment_retention")}
    assert (policies["users"], policies["__consumer_offsets"], policies["orders"]) == ("compact", "compact", "delete")
    assert ", and retention.ms deletes none of them later." in run.stderr
    nothing_left = kafkalog("--at", "2027-12-01", data_dir / "kafka-0.8-to-2.8" / "data").check(0).stderr
    assert "deletes 2 segments of 275,408 bytes; 0 segments stay.\n" in nothing_left


def test_a_timestamp_in_the_future_is_said_first(kafkalog: Kafkalog, sample: Path, tmp_path: Path) -> None:
    truth = json.loads((sample / "truth" / "retention.json").read_text())
    future, other = sample / "node-1" / "future-0", sample / "node-1" / "unlimited-0"
    words = (
        "Timestamps in the future keep 3 segments, the first of them future-0 from offset 2 on: the record at offset 2"
    )
    assert kafkalog("--at", str(truth["now"]), other, future).check(0).stderr.startswith(words)
    assert "in the future" not in kafkalog("--at", str(truth["now"]), other).check(0).stderr
    by_default = "by Kafka's default retention.ms. "
    assert by_default not in kafkalog("--at", str(truth["now"]), future).check(0).stderr
    shutil.copytree(future, tmp_path / "future-0")  # without the metadata beside it
    unknown = kafkalog("--at", str(truth["now"]), tmp_path / "future-0").check(0).stderr
    assert re.search(f"which keeps it until [^ ]+ {by_default}", unknown)
    later = kafkalog("--at", "2027-01-01", future).check(0)
    assert "in the future" not in later.stderr
    one = kafkalog("--at", "2026-11-24T08:30", future).check(0).stderr
    assert one.startswith("A timestamp in the future keeps the segment of future-0 from offset 4 on: ")


def test_people_read_what_no_config_keeps_and_the_totals(
    run_kafkalog_many: Callable[..., list[Run]], sample: Path
) -> None:
    truth = json.loads((sample / "truth" / "retention.json").read_text())
    words = ("retention", "--format", "table", "--at", str(truth["now"]))
    node = sample / "node-1"
    folded, every, one = run_kafkalog_many(
        [(*words, node), (*words, "--every-row", node), (*words, node / "by-time-0")]
    )
    lines = folded.check(0).stdout.splitlines()
    assert lines[0].startswith("Timestamps in the future keep 3 segments")
    assert [line.split()[1] for line in lines[4:7]] == ["future_timestamp"] * 3
    assert "Not listed: 87 segments (--every-row lists them)." in lines
    assert "Not listed" not in every.check(0).stdout
    assert every.stdout.count("\n") > folded.stdout.count("\n") + 80
    assert "Not listed" not in one.check(0).stdout
    assert "deletable_by" in one.stdout
