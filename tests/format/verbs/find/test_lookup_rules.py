"""Kafka's rules of look-ups, read a second time, worked examples of them, and every format."""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from format.io.source import FileSource
from format.log.encode_batches import encode_message
from format.log.walker import header_chunks
from format.timestamps import iso_time
from format.verbs.find.trace import Match, NotFound
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.format.verbs.find.lookup_logs import (
    batch_of,
    split,
    write_checkpoint,
    write_first_example,
    write_indexed,
    write_second_example,
)
from tests.format.verbs.find.lookups import (
    by_max,
    by_offset,
    by_time,
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class BatchPlan:
    """A batch: its range of offsets, its largest timestamp, and the records (offset, timestamp) that are left."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    records: list[tuple[int, int]]


@dataclass(frozen=True)
class LogPlan:
    """Segments by their base offset."""

    segments: list[tuple[int, list[BatchPlan]]]
    log_start_offset: int

    def all_records(self) -> list[tuple[int, int]]:
        return [record for _, batches in self.segments for each in batches for record in each.records]

    def visible(self) -> list[list[BatchPlan]]:
        """The batches of each segment, without segments wholly below the log start offset."""
        ends = [base_offset for base_offset, _ in self.segments[1:]] + [2**63]
        pairs = zip(self.segments, ends, strict=True)
        return [batches for (_, batches), end in pairs if end > self.log_start_offset]

    def first_at(self, timestamp: int) -> int | None:
        """searchOffsetInLocalLog: the first segment that reaches the time, and none after it.

        An empty one has the time of its file, which is later than all of these.
        """
        for batches in self.visible():
            if not batches:
                return None
            if any(each.max_timestamp >= timestamp for each in batches):
                records = [record for each in batches for record in each.records]
                start = self.log_start_offset
                return next((offset for offset, moment in records if moment >= timestamp and offset >= start), None)
        return None

    def first_largest(self) -> int | None:
        """fetchOffsetByTimestamp for MAX_TIMESTAMP: the first batch that has it, and none after that."""
        batches = [each for batches in self.visible() for each in batches]
        if not batches:
            return None
        best = max(batches, key=lambda each: each.max_timestamp)
        return next((offset for offset, moment in best.records if moment == best.max_timestamp), None)


@st.composite
def log_plans(draw: st.DrawFn) -> LogPlan:
    offset = draw(st.sampled_from([0, 1000]))
    segments = []
    for _ in range(draw(st.integers(1, 3))):
        base_offset, batches = offset, []
        for _ in range(draw(st.integers(0 if segments else 1, 6))):
            count = draw(st.integers(1, 4))
            kept = draw(st.sets(st.integers(0, count - 1), min_size=0 if draw(st.booleans()) else count))
            records = [(offset + delta, draw(st.integers(0, 30))) for delta in sorted(kept)]
            # Compaction keeps the header of a batch without records, its largest timestamp too.
            largest = max(moment for _, moment in records) if records else draw(st.integers(0, 30))
            batches.append(BatchPlan(offset, offset + count - 1, largest, records))
            offset += count + draw(st.sampled_from([0, 0, 0, 2]))
        segments.append((base_offset, batches))
        offset += not batches  # two segments cannot have the same base offset
    return LogPlan(segments, draw(st.integers(0, 12)) if segments[0][0] == 0 else 1000)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plan=log_plans(),
    interval_bytes=st.sampled_from([0, 100, 400]),
    is_closed=st.booleans(),
    without=st.sampled_from([(), (), (".index",), (".timeindex",), (".index", ".timeindex")]),
)
def test_rules(tmp_path: Path, plan: LogPlan, interval_bytes: int, is_closed: bool, without: tuple[str, ...]) -> None:
    """Whatever indexes there are, the answers are those of the rules."""
    log_dir = tmp_path / "log"
    shutil.rmtree(log_dir, ignore_errors=True)
    partition = log_dir / "topic-0"
    for number, (base_offset, batches) in enumerate(plan.segments):
        write_indexed(
            partition,
            base_offset,
            [
                batch_of(
                    each.records,
                    base_offset=each.base_offset,
                    last_offset=each.last_offset,
                    max_timestamp=each.max_timestamp,
                )
                for each in batches
            ],
            interval_bytes=interval_bytes,
            is_closed=is_closed or number < len(plan.segments) - 1,
            without=without,
        )
    write_checkpoint(log_dir, "log-start-offset-checkpoint", "topic", 0, plan.log_start_offset)
    for timestamp in range(0, 32, 4):
        lookup = by_time(partition, timestamp)
        assert (lookup.offset, lookup.codes) == (plan.first_at(timestamp), [])
    records = plan.all_records()
    offsets = [offset for offset, _ in records]
    for offset in range(plan.segments[0][0], (offsets[-1] if offsets else 1000) + 3, 2):
        lookup = by_offset(partition, offset)
        is_there = offset in offsets and offset >= plan.log_start_offset
        assert (lookup.offset, lookup.codes) == (offset if is_there else None, [])
        if not is_there and offset >= plan.log_start_offset:
            assert isinstance(lookup.result, NotFound)
            nearest = lookup.result.nearest
            next_offset = next((each for each in offsets if each >= offset), None)
            assert (None if nearest is None else nearest.location.offset) == next_offset
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (plan.first_largest(), [])


def test_first_worked_example(tmp_path: Path) -> None:
    """Offset 368801: the segment 368796, the entry (4, 256), then a scan from position 256."""
    path = write_first_example(tmp_path / "topic-0")
    lookup = by_offset(path.parent, 368801)
    assert (lookup.offset, lookup.codes) == (368801, [])
    first, wanted = (len(each.content) for each in split(path.read_bytes())[1:3])
    assert isinstance(lookup.result, Match)
    assert (lookup.result.location.base_offset, lookup.result.location.position) == (368796, 256 + first)
    assert [each.stage for each in lookup.steps] == ["segment", "offset_index", "scan", "match"]
    assert "segment 368796, 2 of 3" in lookup.detail("segment")
    assert "entry (4, 256)" in lookup.detail("offset_index")
    assert f"bytes 256 to {256 + first + wanted}, 2 batches" in lookup.detail("scan")
    index_step = lookup.steps[1]
    assert index_step.location.path == str(path.with_suffix(".index"))
    assert (index_step.location.position, index_step.location.offset) == (0, 368800)
    assert lookup.steps[2].location.position == 256 + first


def test_second_worked_example(tmp_path: Path) -> None:
    """Offset 170418: the segment 170410, the entry (8, 1325), which names the very offset."""
    path = write_second_example(tmp_path / "topic-0")
    lookup = by_offset(path.parent, 170418)
    assert (lookup.offset, lookup.codes) == (170418, [])
    assert isinstance(lookup.result, Match)
    assert lookup.result.location.position == 1325
    assert "segment 170410, 1 of 1" in lookup.detail("segment")
    assert "entry (8, 1325)" in lookup.detail("offset_index")
    assert "bytes 1325 to" in lookup.detail("scan")
    assert "1 batch:" in lookup.detail("scan")


def test_steps_by_time(tmp_path: Path) -> None:
    """The steps of a look-up by time: the segments, both index floors, the scan."""
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch(offset, [b"x" * 100]) for offset in range(50)], interval_bytes=500)
    write_indexed(partition, 50, [batch(offset, [b"x" * 100]) for offset in range(50, 100)], interval_bytes=500)
    lookup = by_time(partition, BASE_TIMESTAMP + 77)
    assert (lookup.answer, lookup.codes) == ((77, BASE_TIMESTAMP + 77), [])
    assert [each.stage for each in lookup.steps] == [
        "segment",
        "segment",
        "time_index",
        "offset_index",
        "scan",
        "match",
    ]
    assert "before" in lookup.steps[0].detail
    assert "segment 50, 2 of 2" in lookup.steps[1].detail
    entry = lookup.steps[2].location
    assert entry.offset is not None
    assert 50 < entry.offset <= 77
    assert f"entry ({iso_time(BASE_TIMESTAMP + entry.offset)}, {entry.offset - 50})" in lookup.steps[2].detail
    assert lookup.steps[3].location.offset == entry.offset


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages(tmp_path: Path, magic: int) -> None:
    """An offset inside a compressed message, whose header holds only the last one."""
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [wrapper(magic, first, 5) for first in range(0, 100, 5)], interval_bytes=200)
    for offset in (0, 1, 4, 5, 52, 54, 99):
        lookup = by_offset(partition, offset)
        assert (lookup.offset, lookup.codes) == (offset, [])
        assert isinstance(lookup.result, Match)
        assert lookup.result.timestamp == (None if magic == 0 else BASE_TIMESTAMP + offset % 5)
        assert lookup.result.leader_epoch is None
    assert "log end offset 100" in by_offset(partition, 100).reason


def test_entries_of_a_0_8_broker(tmp_path: Path) -> None:
    """Its index names the first offset of a compressed message, below what the message's header says."""
    partition = tmp_path / "topic-0"
    messages = [wrapper(0, first, 5) for first in (0, 5, 10)]
    path = write_indexed(partition, 0, messages)
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 10, len(messages[0] + messages[1])))
    lookup = by_offset(partition, 12)
    assert (lookup.offset, lookup.codes) == (12, [])
    assert "entry (10, " in lookup.detail("offset_index")


def test_a_batch_of_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that spreads over several record tables is searched to its end."""
    monkeypatch.setattr("format.log.read_records.MOST_ROWS", 10)
    records = [(offset, BASE_TIMESTAMP + offset) for offset in range(45)]
    path = write_indexed(tmp_path / "t-0", 0, [batch_of(records, base_offset=0, last_offset=44)])
    for offset in (0, 9, 10, 33, 44):
        assert by_offset(path, offset).offset == offset
        assert by_time(path, BASE_TIMESTAMP + offset).offset == offset
    assert by_max(path).offset == 44


def test_format_0_has_no_time(tmp_path: Path) -> None:
    """For a segment of messages without timestamps a broker takes the file's own time, and looks no further."""
    partition = tmp_path / "topic-0"
    old = write_indexed(partition, 0, [encode_message(0, offset, b"k", b"v") for offset in range(5)])
    lookup = by_time(partition, 5)
    assert "the log has none" in lookup.reason
    assert "format 0" in by_max(partition).reason
    write_indexed(partition, 5, [batch(5)])
    lookup = by_time(partition, BASE_TIMESTAMP)
    assert "looks no further than segment 0" in lookup.reason
    assert "the next one is at offset 5" in lookup.reason
    os.utime(old, (0, BASE_TIMESTAMP / 1000 - 1))
    assert by_time(partition, BASE_TIMESTAMP).answer == (5, BASE_TIMESTAMP + 5)
    assert by_max(partition).answer == (7, BASE_TIMESTAMP + 7)


def test_times_that_messages_of_format_0_lack(tmp_path: Path) -> None:
    """Releases before 0.11 put the times of a newer producer into the index, and store the messages without them."""
    partition = tmp_path / "topic-0"
    old = write_indexed(partition, 0, [encode_message(0, offset, b"k", b"v") for offset in range(5)])
    old.with_suffix(".timeindex").write_bytes(struct.pack(">qi", BASE_TIMESTAMP - 10, 4))
    write_indexed(partition, 5, [batch(5)])
    lookup = by_time(partition, BASE_TIMESTAMP)
    assert (lookup.answer, lookup.codes) == ((5, BASE_TIMESTAMP + 5), [])
    lookup = by_time(partition, BASE_TIMESTAMP - 10)
    assert "looks no further than segment 0" in lookup.reason


def test_append_time(tmp_path: Path) -> None:
    """With LogAppendTime every record has the batch's largest timestamp."""
    partition = tmp_path / "topic-0"
    batches = [
        batch(offset, attributes=8, timestamp=BASE_TIMESTAMP, max_timestamp=BASE_TIMESTAMP + 100 * offset)
        for offset in (0, 3, 6)
    ]
    write_indexed(partition, 0, batches, interval_bytes=0)
    assert by_time(partition, BASE_TIMESTAMP + 1).answer == (3, BASE_TIMESTAMP + 300)
    assert by_max(partition).answer == (6, BASE_TIMESTAMP + 600)


def test_control_records_are_found(data_dir: Path) -> None:
    """A transaction marker has an offset too."""
    partition = data_dir / "kafka-4.3-single" / "node-1" / "payments-0"
    with FileSource(partition / f"{0:020d}.log") as source:
        table = next(header_chunks(source)).headers.unopened()
        markers = table.base_offset[table.is_control].tolist()
    assert markers
    for offset in markers[:5]:
        assert by_offset(partition, offset).offset == offset


def test_empty_partitions(tmp_path: Path) -> None:
    partition = tmp_path / "topic-0"
    write_indexed(partition, 7, [], is_closed=False)
    assert "log end offset 7" in by_offset(partition, 7).reason
    assert "below the log start offset 7" in by_offset(partition, 6).reason
    assert "the log has none" in by_time(partition, 0).reason
    assert "no records" in by_max(partition).reason
    (partition / f"{7:020d}.log").unlink()
    for lookup in (by_offset(partition, 7), by_max(partition)):
        assert "no segment" in lookup.reason
