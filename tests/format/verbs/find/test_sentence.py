"""The sentence about who can see an offset, on both sides of each of its conditions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from format.location import Location
from format.state.cluster_context import Assignment
from format.state.cluster_image import PartitionState
from format.verbs.find.lookup import FoundRecord, Visibility
from format.verbs.find.visibility import standing, visibility_sentence

LED = Assignment(PartitionState((1, 2, 3), isr=(1, 2), leader=1), source="the metadata of node 2 as of T")
LOST = replace(LED, state=PartitionState((1, 2, 3), isr=(), leader=-1, eligible_leader_replicas=(3,)))
UNKNOWN = Assignment(unknown="there is no metadata log here (--metadata PATH)")
VISIBLE = FoundRecord(Location("", "orders", 0, offset=7), None, None, visibility=Visibility.VISIBLE)
ABORTED = replace(VISIBLE, visibility=Visibility.ABORTED, note="part of a transaction of producer 4 that was aborted")


SOURCE = "the metadata of node 2 as of T"
FOLLOWS = f"Consumers read from the leader, node 1 by {SOURCE}"
NOT_READ = f"{FOLLOWS}: its replica was not read"
HERE = "offset 7 is visible in this replica. "


@pytest.mark.parametrize(
    ("match", "assignment", "node_id", "words"),
    [
        (VISIBLE, LED, 1, f"offset 7 is visible to every consumer while node 1 leads orders-0, as it does by {SOURCE}"),
        (VISIBLE, LED, 2, f"{HERE}{NOT_READ}. Node 2 is in the ISR"),
        (VISIBLE, LED, 3, f"{HERE}{NOT_READ}. Node 3 is out of sync (ISR: nodes 1 and 2)"),
        (
            VISIBLE, replace(LED, other_directory="X"), 2,
            f"{HERE}{NOT_READ}. Node 2 is in the ISR, and its replica is assigned to another directory, X",
        ),
        (VISIBLE, LED, None, f"{HERE}{FOLLOWS}: no meta.properties says whose replica this is"),
        (VISIBLE, LED, 4, f"{HERE}Node 4 has no replica of orders-0. {NOT_READ}"),
        (
            VISIBLE, LOST, 3,
            f"{HERE}orders-0 has no leader (ISR: none, ELR: node 3), by {SOURCE}: no consumer reads it",
        ),
        (VISIBLE, UNKNOWN, 1, f"{HERE}Consumers read from the leader, which is not known: {UNKNOWN.unknown}"),
        (ABORTED, LED, 1, f"offset 7 is {ABORTED.note}"),
        (ABORTED, LED, 2, f"offset 7 is {ABORTED.note}. {NOT_READ}. Node 2 is in the ISR"),
    ],
)  # fmt: skip
def test_every_consumer_needs_the_leader(
    match: FoundRecord, assignment: Assignment, node_id: int | None, words: str
) -> None:
    assert visibility_sentence(match, "orders-0", assignment, node_id) == words


def test_every_consumer_needs_a_high_watermark() -> None:
    unsure = replace(VISIBLE, unsure="if it is replicated: no high watermark is here")
    for node_id in (1, 2):
        words = visibility_sentence(unsure, "orders-0", LED, node_id)
        assert ", if it is replicated: no high watermark is here" in words


def test_no_consumer_reads_the_metadata_log() -> None:
    found = replace(
        VISIBLE, location=Location("", "__cluster_metadata", 0, offset=7), unsure="no high watermark is here"
    )
    words = visibility_sentence(found, "__cluster_metadata-0", UNKNOWN, 1)
    assert words.endswith("Consumers never read this log")
    assert "every consumer" not in words


def test_an_unknown_visibility_is_not_told() -> None:
    assert visibility_sentence(replace(VISIBLE, visibility=None), "orders-0", LED, 1) == ""


def test_what_is_not_in_the_leader_s_log_needs_no_remark() -> None:
    assert standing("orders-0", LED, 1) == ""
    assert standing("orders-0", LED, 2).startswith("Consumers read from the leader, node 1")
