"""Records of the metadata log at which a node stops, as 4.3.1 did in the trials; and levels of other releases."""

from __future__ import annotations

import re

import pytest

from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootTerms
from tests.oracle.boot_mutations.earlier_release import make_earlier
from tests.oracle.boot_mutations.node import Node
from tests.oracle.boot_mutations.odd_metadata import odd_metadata

pytestmark = pytest.mark.slow

#: What a 4.3.1 node prints; None where it starts.
MESSAGES: dict[str, str | None] = {
    "nothing odd": None,
    "null value": "Missing value in the record when a value was expected",
    "empty value": "Got an unexpected empty value in the record",
    "frame version 0": "Could not deserialize metadata record with frame version 0",
    "frame version 2": "Could not deserialize metadata record due to unknown frame version 2",
    "frame version 70000": "Value for frame version was too large.",
    "only a frame version": "Error while reading type",
    "unknown type 99": "Unknown metadata id 99",
    "type 70000": "Value for type was too large.",
    "type of a removed record": "Unknown metadata id 6",
    "a type without a version": "Error while reading version",
    "a version of five bytes": "Failed to deserialize record with type 20",  # it is -1
    "a version of six bytes": "Error while reading version",
    "a type below 0": "Unknown metadata id -1",
    "no-op of version 40000": "Value for version was too large.",
    "no-op without tagged fields": "Failed to deserialize record with type 20",
    "no-op with more behind": "Found 4 byte(s) of garbage after 20",
    "no-op with an unknown tagged field": None,
    "no-op with a cut tagged field": "Failed to deserialize record with type 20",
    "topic": None,
    "topic cut": "Failed to deserialize record with type 2",
    "topic with a null name": "Failed to deserialize record with type 2",
    "topic with an empty name": None,
    "topic with a long name": None,
    "topic with a longer name": "Failed to deserialize record with type 2",
    "topic that is not UTF-8": None,
    "topic without a topic id": None,
    "removal of a topic that is not there": "Error loading metadata log record from offset 1048",
    "feature of level -5": "No MetadataVersion with feature level -5. Valid feature levels are from 7 to 31.",
    "feature of level 9999": "No MetadataVersion with feature level 9999. Valid feature levels are from 7 to 31.",
    "unknown feature": "Tried to apply FeatureLevelRecord",
    "config of an unknown kind": None,
    "config without a name": None,
    "a key": "Got key in the record when no key was expected",
    "a header": "Got numHeaders of ",
    "attributes": None,
    "a timestamp delta": "Got timestamp delta of 5, but this is invalid",
    "a control record of type 1": "Got an unexpected empty value in the record",
    "a control record of type 77": "Got an unexpected empty value in the record",
    "a control record without a key": "Missing key in the record when a key was expected",
    "snapshot: nothing odd": None,
    "snapshot: unknown type 99": "Unknown metadata id 99",
    "snapshot: no-op with more behind": "Found 4 byte(s) of garbage after 20",
    "snapshot: topic cut": "Failed to deserialize record with type 2",
}
ODD = dict(odd_metadata())


def refusals(node: Node, version: tuple[int, int] = (4, 3)) -> list[str | None]:
    result = boot(node.log_dirs, BootTerms(version=version), node_id=1)
    return [step.broker_message for step in result.having(Action.REFUSE)]


@pytest.mark.parametrize("name", MESSAGES)
def test_what_stops_it(node: Node, name: str) -> None:
    ODD[name](node)
    message = MESSAGES[name]
    assert refusals(node) == ([] if message is None else [message])


@pytest.mark.parametrize(
    "name",
    [
        "no-op of version 1",
        "topic of version 1",
        "snapshot: no-op of version 1",
        "a version of five bytes, and fields",
        "a version of five bytes with a bit too many",
        "a frame version of five bytes",
        "a type of five bytes",
    ],
)
def test_a_newer_version_that_a_node_may_read_is_not_predicted(node: Node, name: str) -> None:
    ODD[name](node)
    result = boot(node.log_dirs, BootTerms(), node_id=1)
    assert result.is_unknown
    assert not result.is_refused


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ((3, 9), "No MetadataVersion with feature level 30"),
        ((4, 0), "No MetadataVersion with feature level 30. Valid feature levels are from 7 to 26."),
        ((4, 1), "No MetadataVersion with feature level 30. Valid feature levels are from 7 to 29."),
        ((4, 2), "Failed to deserialize record with type 0"),
    ],
)
def test_an_earlier_release_does_not_start_on_a_node_of_a_later_one(
    node: Node, version: tuple[int, int], message: str
) -> None:
    """As 3.9.1, 4.0.0 and 4.2.0 did; on a node whose features have low levels they start."""
    assert refusals(node, version) == [message]
    assert refusals(make_earlier(node), version) == []


def test_a_level_that_is_named_and_not_supported(node: Node) -> None:
    make_earlier(node)
    log = node.segments("__cluster_metadata-0")[0]
    assert refusals(node) == []
    ODD["feature of level 9999"](node)
    content = log.read_bytes()
    assert re.search(rb"metadata\.version\x27\x0f", content)
    message = "No MetadataVersion with feature level 9999. Valid feature levels are from 7 to 30."
    assert refusals(node, (4, 2)) == [message]
