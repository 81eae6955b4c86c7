"""What the files of a partition say of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from format.checks.partition_files import check_partition_files
from format.limits import DEFAULT_LIMITS
from format.node.partition import read_partition


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
