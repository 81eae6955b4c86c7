"""Files of log directories and partitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from format.checks.directories import check_partition_checkpoints, check_partition_files
from format.findings import Certainty, Finding, Severity
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.node.offsets import PartitionOffsets
from format.node.partition import read_partition
from format.node.partition_surroundings import unexpected_finding


def found(is_clean: bool | None, log_end: int, **offsets: int) -> list[Finding]:
    known = PartitionOffsets(0, is_clean_shutdown=is_clean, log_end_offset=log_end, **offsets)
    return list(check_partition_checkpoints(known, Location("orders-0")))


def test_committed_records_are_gone_below_the_high_watermark_of_a_clean_stop() -> None:
    (watermark, point) = found(True, 5329, high_watermark=6118, recovery_point=6118)
    assert (watermark.severity, watermark.lost_offsets) == (Severity.ERROR, (5329, 6117))
    assert (point.severity, point.lost_offsets) == (Severity.WARNING, None)


@pytest.mark.parametrize("is_clean", [False, None])
@pytest.mark.parametrize("known", [{"high_watermark": 6118, "recovery_point": 5329}, {"recovery_point": 6118}])
def test_without_a_clean_stop_a_newer_checkpoint_may_be_that_of_a_live_copy(
    is_clean: bool | None, known: dict[str, int]
) -> None:
    (past_end,) = found(is_clean, 5329, **known)
    assert (past_end.severity, past_end.lost_offsets) == (Severity.WARNING, (5329, 6117))
    assert past_end.certainty is Certainty.LIKELY
    assert "so does copying the files of a running broker, or deleting a topic and making it anew" in past_end.message


def test_a_log_that_ends_below_the_high_watermark_of_a_running_broker() -> None:
    known = PartitionOffsets(0, is_clean_shutdown=False, is_broker_running=True, high_watermark=9, log_end_offset=5)
    (watermark,) = check_partition_checkpoints(known, Location("orders-0"))
    assert (watermark.severity, watermark.lost_offsets) == (Severity.ERROR, (5, 8))


@pytest.mark.parametrize("recovery_point", [5000, 4000])
def test_a_high_watermark_past_the_end_of_a_clean_stop_is_no_proof(recovery_point: int) -> None:
    watermark = found(True, 5000, high_watermark=99_999, recovery_point=recovery_point)[0]
    assert (watermark.severity, watermark.lost_offsets) == (Severity.WARNING, None)
    assert "or the checkpoint is wrong" in watermark.message


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_start_past_the_high_watermark_makes_a_broker_delete_the_log(is_clean: bool) -> None:
    (start,) = found(is_clean, 100, log_start_checkpoint=999, high_watermark=100, recovery_point=100)
    assert (start.severity, start.lost_offsets) == (Severity.ERROR, (0, 99))
    (start,) = found(is_clean, 100, log_start_checkpoint=999)
    assert (start.severity, start.lost_offsets) == (Severity.WARNING, None)


def test_the_recovery_point_tells_of_a_loss_where_no_high_watermark_is_known() -> None:
    lost = [each.lost_offsets for each in found(True, 100, recovery_point=120, cleaner_offset=110)]
    assert lost == [(100, 119), None]
    lost = [each.lost_offsets for each in found(True, 100, high_watermark=100, recovery_point=120)]
    assert lost == [None]


def test_a_log_that_goes_on_after_a_clean_stop() -> None:
    (one,) = found(True, 101, high_watermark=100, recovery_point=100)
    assert (one.code, one.severity) == ("checkpoint-mismatch", Severity.WARNING)
    assert found(True, 100, high_watermark=100, recovery_point=100) == []
    assert [each.code for each in found(False, 101, recovery_point=100)] == ["unflushed-segment"]


def quorum_state(leader_id: int, voters: list[int]) -> dict[str, object]:
    return {
        "clusterId": "",
        "leaderId": leader_id,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": each} for each in voters],
        "data_version": 0,
    }


@pytest.mark.parametrize(
    ("leader_id", "voters", "codes"),
    [
        (7, [1, 2], ["quorum-leader-unknown"]),
        (1, [1, 2], []),
        (-1, [1, 2], []),
        (7, [], []),  # the voters are in the log
    ],
)
def test_a_leader_of_the_quorum_that_is_no_voter(
    tmp_path: Path, leader_id: int, voters: list[int], codes: list[str]
) -> None:
    """A broker of 4.3.1 starts on it and elects another leader, so that it is a warning."""
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()
    (partition / "quorum-state").write_text(json.dumps(quorum_state(leader_id, voters)))
    found = [*check_partition_files(read_partition(partition), DEFAULT_LIMITS)]
    assert [each.code for each in found] == codes


def test_what_a_broker_reads_all_the_same_is_a_warning(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: ZMGsfH-JSHCR2XS8acmPGw\nmore: 1\n")
    (found,) = check_partition_files(read_partition(partition), DEFAULT_LIMITS)
    assert (found.code, found.severity) == ("checkpoint-invalid", Severity.WARNING)
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: ZMG\n")
    (found,) = check_partition_files(read_partition(partition), DEFAULT_LIMITS)
    assert found.severity is Severity.ERROR


def test_a_partition_that_is_a_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "disk" / "orders-0").mkdir(parents=True)
    (tmp_path / "orders-0").symlink_to(tmp_path / "disk" / "orders-0")
    found = unexpected_finding(tmp_path / "orders-0", Location(str(tmp_path / "orders-0")))
    assert (found.code, found.location.topic, found.location.partition) == ("file-unreadable", "orders", 0)
