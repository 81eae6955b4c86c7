from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, UnreadableFile
from format.files import leader_epoch_checkpoint
from format.files.leader_epoch_checkpoint import EpochEntry, LeaderEpochCheckpoint
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource


def read(content):
    return leader_epoch_checkpoint.read(BytesSource(content))


def test_every_checkpoint_of_a_broker_is_read_and_written_back(corpus):
    found = 0
    for path in corpus.files("leader-epoch-checkpoint"):
        checkpoint = leader_epoch_checkpoint.read(path)
        assert checkpoint.problems == ()
        assert leader_epoch_checkpoint.write(checkpoint) == path.read_bytes()
        found += len(checkpoint.entries)
    assert found > 0


def test_entries_of_a_replica_that_changed_its_leader(data_dir):
    checkpoint = leader_epoch_checkpoint.read(data_dir / "kafka-4.3/node-2/ledger-0/leader-epoch-checkpoint")
    assert checkpoint.entries == (EpochEntry(0, 0), EpochEntry(1, 1250))
    assert checkpoint.version == 0


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=20))
def test_what_is_written_is_read_back(pairs):
    entries = tuple(EpochEntry(*pair) for pair in pairs)
    content = leader_epoch_checkpoint.write(entries)
    checkpoint = read(content)
    assert checkpoint.entries == entries
    assert leader_epoch_checkpoint.write(checkpoint) == content


@pytest.mark.parametrize(
    ("second", "messages"),
    [
        ((4, 50), []),
        ((3, 50), ["line 4: leader epoch 3 is not above the previous one, 3"]),
        ((2, 50), ["line 4: leader epoch 2 is not above the previous one, 3"]),
        ((4, 40), ["line 4: start offset 40 is not above the previous one, 40"]),
        (
            (2, 30),
            [
                "line 4: leader epoch 2 is not above the previous one, 3",
                "line 4: start offset 30 is not above the previous one, 40",
            ],
        ),
    ],
)
def test_falling_and_repeated_entries_are_problems_and_still_given(second, messages):
    entries = (EpochEntry(3, 40), EpochEntry(*second))
    checkpoint = read(leader_epoch_checkpoint.write(entries))
    assert checkpoint.entries == entries
    assert [each.message for each in checkpoint.problems] == messages
    assert {(each.position, each.length) for each in checkpoint.problems} <= {(9, 4)}


@pytest.mark.parametrize("line", ["-1 0", "0 -1", "2147483648 0", "0 9223372036854775808", "a 0", "0 b"])
def test_entries_that_a_broker_refuses_are_refused(line):
    with pytest.raises(InvalidCheckpoint, match="line 3: expected a "):
        read(f"0\n1\n{line}\n".encode())


def test_every_changed_byte_and_every_truncation_is_survived(data_dir):
    content = (data_dir / "kafka-4.3/node-2/ledger-0/leader-epoch-checkpoint").read_bytes()
    for damaged in (single_byte_changes, truncations):
        for changed, checkpoint in outcomes(leader_epoch_checkpoint.read, damaged(content)):
            if isinstance(checkpoint, LeaderEpochCheckpoint) and not checkpoint.problems and changed:
                words = leader_epoch_checkpoint.write(checkpoint).split()
                assert [int(word) for word in changed.split()] == [int(word) for word in words]


def test_a_missing_file_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile):
        leader_epoch_checkpoint.read(tmp_path / "leader-epoch-checkpoint")
