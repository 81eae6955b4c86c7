"""What the files of a partition say of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from format.checks.directories import check_partition_files
from format.findings import Severity
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.node.partition import read_partition
from format.node.partition_surroundings import unexpected_finding


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
