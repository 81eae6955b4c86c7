from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from format.errors import InvalidCheckpoint, UnreadableFile
from format.files import offset_checkpoint
from format.files.offset_checkpoint import OffsetCheckpoint, TopicPartitionOffset
from format.layout import OFFSET_CHECKPOINTS
from tests.format.damage import outcomes, single_byte_changes, truncations
from tests.sources import BytesSource

TOPICS = st.text(st.sampled_from("abcXYZ019._-"), min_size=1, max_size=20)


def read(content):
    return offset_checkpoint.read(BytesSource(content))


def test_every_checkpoint_of_a_broker_is_read_and_written_back(corpus):
    found = 0
    for path in corpus.files(*OFFSET_CHECKPOINTS):
        checkpoint = offset_checkpoint.read(path)
        assert checkpoint.problems == ()
        assert (checkpoint.version is None) == (path.stat().st_size == 0)
        assert offset_checkpoint.write(checkpoint) == path.read_bytes()
        assert len(checkpoint.by_partition()) == len(checkpoint.entries)
        found += len(checkpoint.entries)
    assert found > 0


def test_high_watermarks_are_what_the_broker_reported_to_its_clients(corpus):
    if not corpus.id.endswith("kafka-4.3-single"):
        pytest.skip("this corpus has no answers of its last moment: its clients asked before the last writes")
    checkpoint = offset_checkpoint.read(corpus.log_dirs[0] / "replication-offset-checkpoint").by_partition()
    watermarks = corpus.truth_json("watermarks")
    assert len(watermarks) > 10
    for name, reported in watermarks.items():
        topic, _, partition = name.rpartition("-")
        assert checkpoint[topic, int(partition)] == reported["high_watermark"]


@given(st.lists(st.tuples(TOPICS, st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=20))
def test_what_is_written_is_read_back(rows):
    entries = tuple(TopicPartitionOffset(*row) for row in rows)
    content = offset_checkpoint.write(entries)
    checkpoint = read(content)
    assert checkpoint.entries == entries
    assert checkpoint.by_partition() == {row[:2]: row[2] for row in rows}
    assert len(checkpoint.problems) == len(rows) - len(checkpoint.by_partition())
    assert offset_checkpoint.write(checkpoint) == content


@pytest.mark.parametrize(
    "line",
    [
        "orders 0",
        "orders 0 1 2",
        "orders -1 5",
        "orders 0 -9223372036854775809",
        "orders x 5",
        "orders 0 five",
        "orders 0 9223372036854775808",
    ],
)
def test_malformed_lines_are_refused(line):
    with pytest.raises(InvalidCheckpoint, match="line 4: expected a") as caught:
        read(f"0\n2\nusers 0 7\n{line}\n".encode())
    assert (caught.value.location.position, caught.value.location.length) == (14, len(line))


def test_a_repeated_partition_and_an_impossible_topic_are_problems():
    checkpoint = read("0\n3\norders 0 5\norders 0 7\nör 1 9\n".encode())
    assert checkpoint.by_partition() == {("orders", 0): 7, ("ör", 1): 9}
    assert [each.message for each in checkpoint.problems] == [
        "line 4: partition 'orders-0' has an earlier line; a broker uses the last one",
        r"line 5: '\xf6r' is not a valid topic name",
    ]


def test_every_changed_byte_and_every_truncation_is_survived(data_dir):
    content = (data_dir / "kafka-4.3/node-2/recovery-point-offset-checkpoint").read_bytes()
    for damaged in (single_byte_changes, truncations):
        for changed, checkpoint in outcomes(offset_checkpoint.read, damaged(content)):
            if isinstance(checkpoint, OffsetCheckpoint) and changed.startswith(content[:5]):
                negative = sum("is below 0" in each.message for each in checkpoint.problems)
                assert len(checkpoint.entries) + negative == content.count(b"\n") - 2


def test_a_missing_file_is_unreadable(tmp_path):
    with pytest.raises(UnreadableFile):
        offset_checkpoint.read(tmp_path / "recovery-point-offset-checkpoint")


def test_an_offset_below_0_costs_no_other_partition_its_offset():
    """A broker starts with such a file (``boot_trials``, "negative offset")."""
    checkpoint = read(b"0\n3\norders 0 5\norders 1 -5\norders 2 9\n")
    assert checkpoint.by_partition() == {("orders", 0): 5, ("orders", 2): 9}
    assert [each.message for each in checkpoint.problems] == [
        "line 4: the offset -5 is below 0: a broker starts, as without the line"
    ]
