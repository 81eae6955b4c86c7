"""The offsets of a partition: what checkpoints and names say, and why something is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.files import offset_checkpoint
from format.files.offset_checkpoint import TopicPartitionOffset
from format.node.log_dir import read_log_dir
from format.node.offsets import PartitionOffsets, offsets_of
from format.node.partition import read_partition
from tests.building import batches, write_segment


def write_checkpoint(directory: Path, name: str, offset: int, topic: str = "orders") -> None:
    (directory / name).write_bytes(offset_checkpoint.write([TopicPartitionOffset(topic, 0, offset)]))


def test_what_checkpoints_and_names_say(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 30, batches(2, 30))
    write_checkpoint(tmp_path, "replication-offset-checkpoint", 33)
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", 31)
    write_checkpoint(tmp_path, "cleaner-offset-checkpoint", 5, topic="other")
    (tmp_path / "recovery-point-offset-checkpoint").write_text("damaged")
    checkpoints = read_log_dir(tmp_path).checkpoints()
    assert [each.code for each in checkpoints.findings] == ["checkpoint-invalid"]
    offsets = offsets_of(read_partition(tmp_path / "orders-0"), checkpoints)
    assert (offsets.local_start_offset, offsets.log_start_offset, offsets.high_watermark) == (30, 31, 33)
    assert (offsets.recovery_point, offsets.cleaner_offset, offsets.log_end_offset) == (None, None, None)
    assert offsets.unknown == {
        "recovery_point": "there is no readable recovery-point-offset-checkpoint",
        "cleaner_offset": "the partition is not in cleaner-offset-checkpoint",
    }
    assert offsets.with_log_end(36).log_end_offset == 36
    assert offsets.with_log_end(36).last_stable_offset is None


@pytest.mark.parametrize(
    ("log_end", "high_watermark", "first_unstable", "expected"),
    [
        (36, None, None, 36),
        (36, 33, None, 33),
        (36, 33, 32, 32),
        (36, 33, 34, 33),
        (36, None, 34, 34),
        (36, 20, 10, 31),  # nothing below the log start offset is served
    ],
)
def test_the_last_stable_offset_is_bounded_by_transactions_and_replication(
    log_end: int, high_watermark: int | None, first_unstable: int | None, expected: int
) -> None:
    offsets = PartitionOffsets(30, log_start_checkpoint=31, is_clean_shutdown=True, high_watermark=high_watermark)
    known = offsets.with_transactions(log_end, first_unstable)
    assert (known.log_end_offset, known.last_stable_offset) == (log_end, expected)


def test_a_deleted_partition_takes_nothing_from_checkpoints(tmp_path: Path) -> None:
    directory = tmp_path / f"orders-0.{'0' * 32}-delete"
    write_segment(directory, 0, batches(1))
    write_checkpoint(tmp_path, "replication-offset-checkpoint", 3)
    offsets = offsets_of(read_partition(directory), read_log_dir(tmp_path).checkpoints())
    assert offsets.high_watermark is None
    assert offsets.unknown["high_watermark"] == "the directory is not a replica"
