"""The bounds of a look-up: high watermark, log start offset, one segment alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.building import BASE_TIMESTAMP
from tests.format.verbs.find.lookup_logs import (
    batch_of,
    write_checkpoint,
    write_indexed,
)
from tests.format.verbs.find.lookups import (
    by_max,
    by_offset,
    by_time,
    three_segments,
)

pytestmark = pytest.mark.slow


def test_high_watermark(tmp_path: Path) -> None:
    """A broker gives no answer past the high watermark; by offset the record is shown all the same."""
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    assert by_time(partition, BASE_TIMESTAMP + 22).offset == 22
    lookup = by_time(partition, BASE_TIMESTAMP + 23)
    assert "high watermark 23" in lookup.reason
    assert lookup.found.nearest is not None
    assert lookup.found.nearest.location.offset == 23
    assert by_time(partition, BASE_TIMESTAMP + 23, past_high_watermark=True).offset == 23
    assert "high watermark 23" in by_max(partition).reason
    assert by_max(partition, past_high_watermark=True).offset == 29
    lookup = by_offset(partition, 25)
    assert "high watermark 23" in lookup.match.note
    assert by_offset(partition, 22).match.note == ""


def test_another_partitions_checkpoint(tmp_path: Path) -> None:
    """A checkpoint that names other partitions bounds nothing, nor does that of a deleted directory's topic."""
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 1, 3)
    assert by_max(partition).offset == 29
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 3)
    marked = partition.rename(tmp_path / f"topic-0.{'0' * 32}-delete")
    assert by_max(marked).offset == 29


def test_log_start_offset(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 12)
    lookup = by_offset(partition, 4)
    assert "below the log start offset 12" in lookup.reason
    assert "still in the file" in lookup.reason
    assert by_offset(partition, 12).offset == 12
    assert by_time(partition, 0).offset == 12  # the first segment is about to be deleted
    assert by_time(partition, BASE_TIMESTAMP + 14).offset == 14


def test_a_broker_looks_into_one_segment_only(tmp_path: Path) -> None:
    """The first segment reaches the time, but only below the log start offset: the broker answers nothing."""
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch_of([(0, 900), (1, 100)], base_offset=0, last_offset=1)])
    write_indexed(partition, 2, [batch_of([(2, 950)], base_offset=2, last_offset=2)])
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", "topic", 0, 1)
    lookup = by_time(partition, 900)
    assert "looks no further than segment 0" in lookup.reason
    assert lookup.found.nearest is not None
    assert lookup.found.nearest.location.offset == 2


def test_a_broken_checkpoint_is_reported(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text("0\nmany\n")
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (29, ["checkpoint-invalid"])
