"""What the doctor says of keys in a topic to which partitions were added."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.log.record_table import partition_for_key
from tests.building import BASE_TIMESTAMP, batch
from tests.format.verbs.doctor.looking import codes, diagnoses, node
from tests.metadata_logs import write_grown_topic

ADDED = BASE_TIMESTAMP + 60_000
UNAWARE = ADDED + 5 * 60_000
ONCE = {BASE_TIMESTAMP: 2, ADDED: 3}
KEYS = [b"key-%d" % number for number in range(40)]
#: Keys by time: each with the number of partitions that its producer knew.
OLD, LATE, NEW = (ADDED - 1, 2), (UNAWARE, 2), (UNAWARE + 1, 3)


def grown(root: Path, *eras: tuple[int, int], counts: dict[int, int] = ONCE, keys: list[bytes] = KEYS) -> Path:
    """A node on which each key was written at some times by a producer that knew so many partitions."""
    logs: dict[str, list[bytes]] = {f"orders-{number}": [] for number in range(3)}
    for timestamp, known in eras:
        for key in keys:
            log = logs[f"orders-{partition_for_key(key, known)}"]
            log.append(batch(len(log), [b"v"], key=key, timestamp=timestamp))
    made = node(root, {name: {0: log} for name, log in logs.items()}, cluster_id="cluster-a")
    write_grown_topic(made, counts)
    return made


def moved(count: int = 3) -> int:
    return sum(partition_for_key(key, 2) != partition_for_key(key, count) for key in KEYS)


def test_keys_moved(tmp_path: Path) -> None:
    made = grown(tmp_path / "node-1", OLD, LATE, NEW)
    [found] = [each for each in diagnoses(made, deep=True) if each.code == "partitions-added"]
    assert found.subject == "orders"
    assert found.sentence.startswith(f"{2 * moved()} of 120 keyed records lie where a producer would not write them")
    assert "(2 before, 3 since)" in found.sentence
    assert found.command is not None
    assert found.command.startswith(f"kafkalog verify --partitioner murmur2 --partitions 3 {made / 'orders-0'}")
    assert "partitions-added" not in codes(made)  # by headers alone


@pytest.mark.parametrize(
    ("eras", "counts", "keys"),
    [
        ([OLD, (UNAWARE + 1, 2)], ONCE, KEYS),  # a producer that places keys in another way
        ([(ADDED - 1, 3)], ONCE, KEYS),
        ([NEW], ONCE, KEYS),  # nothing is misplaced
        ([OLD, NEW], ONCE, KEYS[:15]),  # too few to prove it
        ([OLD], {BASE_TIMESTAMP: 3}, KEYS),  # none were added
        ([OLD, NEW], {BASE_TIMESTAMP: 1, BASE_TIMESTAMP + 1: 2, ADDED: 3}, KEYS),  # more than once
        ([(ADDED - 1, 1)], {BASE_TIMESTAMP: 1, ADDED: 3}, KEYS),  # in one partition all keys are in their place
    ],
)
def test_no_keys_moved(eras: list[tuple[int, int]], counts: dict[int, int], keys: list[bytes], tmp_path: Path) -> None:
    made = grown(tmp_path / "node-1", *eras, counts=counts, keys=keys)
    assert "partitions-added" not in codes(made, deep=True)
