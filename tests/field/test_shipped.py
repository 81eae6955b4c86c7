"""The shipped selection of the field corpus: logs of many brokers and clients, and what a consumer saw of them."""

from __future__ import annotations

import pytest

from tests.field.judge import Verdict, lookups_compared, records_compared, replicas, verified
from tests.field.shipped import selections
from tests.field.trial import without_remote

SELECTIONS = {name: (nodes, seen) for name, nodes, seen in selections()}


@pytest.mark.parametrize("name", SELECTIONS)
def test_no_false_finding_and_what_clients_saw(name: str) -> None:
    nodes, seen = SELECTIONS[name]
    verdict = Verdict()
    # Partition by partition: the other partitions of the checkpoints are not here.
    paths = [path for place in seen.places for _, path in replicas(nodes, place)]
    verified(verdict, [[path] for path in paths])
    without_remote(seen, nodes)
    for answers in seen.places.values():
        answers["lookups"] = answers.get("lookups", [])[::4]
    records_compared(verdict, nodes, seen)
    lookups_compared(verdict, nodes, seen)
    assert not [each for each in verdict.findings if each["code"] not in seen.shared]
    assert not verdict.differences
    assert sum(verdict.records.values()) >= 100
