"""Look-ups: what brokers answered, a second reading of Kafka's rules, worked examples, and what must not mislead."""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from format.errors import InputError
from format.io.source import FileSource
from format.log.encode_batches import encode_message
from format.log.walker import batch_chunks
from format.timestamps import iso_time
from format.verbs.find.find import partition_to_search
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.corpora import Corpus
from tests.format.verbs.find.lookups import (
    NOTHING,
    batch_of,
    by_max,
    by_offset,
    by_time,
    indexes_of,
    records_on_disk,
    split,
    three_segments,
    write_checkpoint,
    write_first_example,
    write_indexed,
    write_second_example,
)

pytestmark = pytest.mark.slow

#: The broker went on compacting this topic after it had answered.
COMPACTED = "users-0"


# -- what brokers answered -------------------------------------------------------------------------------------


def test_answers_of_brokers(witnessed_corpus: Corpus) -> None:
    """Every answer to a look-up by time that was recorded, those for nothing too."""
    lookups = witnessed_corpus.truth_json("lookups")
    asked = 0
    for partition in witnessed_corpus.partitions():
        if partition.name not in lookups:
            continue
        left = {offset for offset, _ in records_on_disk(partition)} if partition.name == COMPACTED else None
        questions = [(int(timestamp), answer) for timestamp, answer in lookups[partition.name]["for_timestamp"].items()]
        for timestamp, answer in [*questions, (None, lookups[partition.name]["max_timestamp"])]:
            if left is not None and answer[0] not in left | {-1}:
                continue  # compacted away since
            lookup = by_max(partition) if timestamp is None else by_time(partition, timestamp)
            assert lookup.answer == tuple(answer), (partition, timestamp)
            assert lookup.codes == [], (partition, timestamp)
            asked += 1
    assert asked > 20


def test_samples_of_every_partition(corpus: Corpus) -> None:
    """Offsets and times all over each partition, those between and past its records too; no finding on the way."""
    for partition in corpus.partitions():
        records = records_on_disk(partition)
        start = log_start_offset(partition)
        timestamps = dict(records)
        end = records[-1][0] + 1 if records else 0
        sample = {
            *range(0, end + 2, max(1, end // 12)),
            *(offset for offset, _ in records[:: max(1, len(records) // 8)]),
        }
        for offset in sorted(sample):
            lookup = by_offset(partition, offset)
            assert (lookup.offset == offset) == (offset in timestamps and offset >= start), (partition, offset)
            assert lookup.codes == [], (partition, offset)
            if lookup.found.match is not None and lookup.match.timestamp is not None:
                assert lookup.match.timestamp == timestamps[offset]
        moments = sorted({timestamp for _, timestamp in records if timestamp >= 0})
        for timestamp in {each + extra for each in moments[:: max(1, len(moments) // 8)] for extra in (-1, 0, 1)}:
            first = next((each for each in records if each[0] >= start and each[1] >= timestamp), NOTHING)
            lookup = by_time(partition, timestamp, past_high_watermark=True)
            assert (lookup.answer, lookup.codes) == (first, []), (partition, timestamp)


def log_start_offset(partition: Path) -> int:
    topic, _, number = partition.name.rpartition("-")
    lines = (partition.parent / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, number]), 0)


# -- what may be searched --------------------------------------------------------------------------------------


def test_a_log_file_stands_for_its_partition(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    assert by_offset(partition / f"{10:020d}.log", 25).offset == 25


def test_a_leftover_is_searched_by_itself(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    leftover = (partition / f"{10:020d}.log").rename(partition / f"{10:020d}.log.deleted")
    assert by_offset(leftover, 12).offset == 12
    assert "log end offset 20" in by_offset(leftover, 25).reason


def test_what_is_no_partition(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    with pytest.raises(InputError, match=r"a log directory: give one partition directory, such as .*topic-0"):
        partition_to_search(tmp_path)
    with pytest.raises(InputError, match=r"a \.log file"):
        partition_to_search(partition / f"{10:020d}.index")
    (partition / "other.log").write_bytes(b"")
    with pytest.raises(InputError, match="20 digits"):
        partition_to_search(partition / "other.log")
    with pytest.raises(InputError, match="no such"):
        partition_to_search(tmp_path / "missing-0")


def test_a_name_that_no_segment_can_have(tmp_path: Path) -> None:
    """Twenty digits hold more than an offset."""
    partition = three_segments(tmp_path)
    (partition / f"{'9' * 20}.log").write_bytes(batch(0))
    for lookup in (by_offset(partition, 25), by_max(partition)):
        assert lookup.codes == ["entry-unexpected"]


# -- how much is read ------------------------------------------------------------------------------------------


def test_nothing_is_written(tmp_path: Path, source_snapshot: Any) -> None:
    partition = three_segments(tmp_path)
    source_snapshot(tmp_path)
    by_offset(partition, 12)
    by_time(partition, BASE_TIMESTAMP + 12)
    by_max(partition)


def test_the_builder_writes_what_a_broker_writes(data_dir: Path) -> None:
    """The tests' own indexes are those of a real broker where its batches came one by one."""
    partition = data_dir / "kafka-4.3-single" / "node-1" / "payments-0"
    log = (partition / f"{0:020d}.log").read_bytes()
    assert b"".join(each.content for each in split(log)) == log
    offsets, times = indexes_of(log, 0, 4096, True)
    assert offsets == (partition / f"{0:020d}.index").read_bytes()
    assert times == (partition / f"{0:020d}.timeindex").read_bytes()


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
            nearest = lookup.found.nearest
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
    assert (lookup.match.location.base_offset, lookup.match.location.position) == (368796, 256 + first)
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
    assert lookup.match.location.position == 1325
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
        assert lookup.match.timestamp == (None if magic == 0 else BASE_TIMESTAMP + offset % 5)
        assert lookup.match.leader_epoch is None
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
        table = next(iter(batch_chunks(source, with_bodies=False))).table
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
