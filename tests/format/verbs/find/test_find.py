"""Look-ups: what brokers answered, a second reading of Kafka's rules, worked examples, and what must not mislead."""

from __future__ import annotations

import os
import resource
import shutil
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from format.codecs.checksums import crc32c_of
from format.errors import InputError
from format.findings import Finding
from format.io.source import FileSource
from format.log.encode_batches import encode_message
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp, partition_to_search
from format.verbs.find.trace import Match, NotFound, TraceStep
from tests.building import BASE_TIMESTAMP, batch, wrapper
from tests.corpora import Corpus
from tests.format.verbs.find.lookup_logs import (
    batch_of,
    indexes_of,
    split,
    write_checkpoint,
    write_first_example,
    write_indexed,
    write_second_example,
)

NOTHING = (-1, -1)
#: The broker went on compacting this topic after it had answered.
COMPACTED = "users-0"


@dataclass(frozen=True)
class Lookup:
    """All that a look-up told."""

    result: Match | NotFound
    steps: list[TraceStep]
    findings: list[Finding]

    @property
    def offset(self) -> int | None:
        return self.result.location.offset if isinstance(self.result, Match) else None

    @property
    def answer(self) -> tuple[int | None, int | None]:
        """Offset and timestamp as a broker answers them."""
        return (self.offset, self.result.timestamp) if isinstance(self.result, Match) else NOTHING

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def reason(self) -> str:
        assert isinstance(self.result, NotFound), self.result
        return self.result.reason

    def detail(self, stage: str) -> str:
        """What the only step of a stage says."""
        (step,) = [each for each in self.steps if each.stage == stage]
        return step.detail


def told(items: Iterable[Any]) -> Lookup:
    *way, result = items
    assert isinstance(result, (Match, NotFound))
    steps = [each for each in way if isinstance(each, TraceStep)]
    assert steps[-1].stage == "match"
    return Lookup(result, steps, [each for each in way if isinstance(each, Finding)])


def by_offset(path: Path, offset: int) -> Lookup:
    return told(find_offset(partition_to_search(path), offset))


def by_time(path: Path, timestamp: int, **options: bool) -> Lookup:
    return told(find_timestamp(partition_to_search(path), timestamp, **options))


def by_max(path: Path, **options: bool) -> Lookup:
    return told(find_max_timestamp(partition_to_search(path), **options))


# -- what brokers answered -------------------------------------------------------------------------------------


def records_on_disk(partition: Path) -> list[tuple[int, int]]:
    """(offset, timestamp) of every record, read from the logs without any index."""
    found = []
    for path in sorted(partition.glob("*.log")):
        with FileSource(path) as source:
            for chunk in batch_chunks(source):
                for table in record_tables(chunk):
                    found += list(zip(table.offset.tolist(), table.timestamp.tolist(), strict=True))
    return found


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
            if isinstance(lookup.result, Match) and lookup.result.timestamp is not None:
                assert lookup.result.timestamp == timestamps[offset]
        moments = sorted({timestamp for _, timestamp in records if timestamp >= 0})
        for timestamp in {each + extra for each in moments[:: max(1, len(moments) // 8)] for extra in (-1, 0, 1)}:
            first = next((each for each in records if each[0] >= start and each[1] >= timestamp), NOTHING)
            lookup = by_time(partition, timestamp, past_high_watermark=True)
            assert (lookup.answer, lookup.codes) == (first, []), (partition, timestamp)


def log_start_offset(partition: Path) -> int:
    topic, _, number = partition.name.rpartition("-")
    lines = (partition.parent / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    return next((int(line.split()[2]) for line in lines if line.split()[:2] == [topic, number]), 0)


# -- Kafka's rules, read a second time -------------------------------------------------------------------------


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
        """searchOffsetInLocalLog: the first segment that reaches the time, and none after it."""
        for batches in self.visible():
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


# -- worked examples -------------------------------------------------------------------------------------------


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
    assert f"entry ({BASE_TIMESTAMP + entry.offset}, {entry.offset - 50})" in lookup.steps[2].detail
    assert lookup.steps[3].location.offset == entry.offset


# -- formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("magic", [0, 1])
def test_compressed_messages(tmp_path: Path, magic: int) -> None:
    """An offset inside a compressed message, whose header tells only the last one."""
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


# -- bounds ----------------------------------------------------------------------------------------------------


def three_segments(tmp_path: Path) -> Path:
    """Offsets 0 to 29, a record a millisecond, in segments of 10 and batches of 5."""
    partition = tmp_path / "topic-0"
    for base_offset in (0, 10, 20):
        batches = [batch(offset, [b"v"] * 5) for offset in (base_offset, base_offset + 5)]
        write_indexed(partition, base_offset, batches, is_closed=base_offset < 20)
    return partition


def test_high_watermark(tmp_path: Path) -> None:
    """A broker gives no answer past the high watermark; by offset the record is shown all the same."""
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    assert by_time(partition, BASE_TIMESTAMP + 22).offset == 22
    lookup = by_time(partition, BASE_TIMESTAMP + 23)
    assert "high watermark 23" in lookup.reason
    assert isinstance(lookup.result, NotFound)
    assert lookup.result.nearest is not None
    assert lookup.result.nearest.location.offset == 23
    assert by_time(partition, BASE_TIMESTAMP + 23, past_high_watermark=True).offset == 23
    assert "high watermark 23" in by_max(partition).reason
    assert by_max(partition, past_high_watermark=True).offset == 29
    lookup = by_offset(partition, 25)
    assert isinstance(lookup.result, Match)
    assert "high watermark 23" in lookup.result.note
    assert by_offset(partition, 22).result.note == ""  # type: ignore[union-attr]


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
    assert isinstance(lookup.result, NotFound)
    assert lookup.result.nearest is not None
    assert lookup.result.nearest.location.offset == 2


def test_a_broken_checkpoint_is_told(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text("0\nmany\n")
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (29, ["checkpoint-invalid"])


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
        assert isinstance(lookup.result, Match)
        assert lookup.codes == ["entry-unexpected"]


# -- indexes that mislead --------------------------------------------------------------------------------------


def indexed_partition(tmp_path: Path) -> Path:
    """Three segments whose timestamps wander, the last of them active."""
    partition = tmp_path / "topic-0"
    moments = iter([5, 3, 9, 7, 12, 11, 20, 14, 15, 30, 22, 25, 28, 41, 33, 36, 50, 44, 47, 48, 60])
    offset = 0
    for number in range(3):
        base_offset, batches = offset, []
        for _ in range(7):
            moment = 1000 + next(moments)
            records = [(offset, moment), (offset + 1, moment - 1)]
            batches.append(batch_of(records, base_offset=offset, last_offset=offset + 1, value=b"x" * 60))
            offset += 2
        write_indexed(partition, base_offset, batches, interval_bytes=180, is_closed=number < 2)
    return partition


def test_every_index_byte(tmp_path: Path) -> None:
    """Whatever byte of an index is changed, the answers stay right."""
    partition = indexed_partition(tmp_path)

    def answers() -> list[Lookup]:
        found = [by_offset(partition, offset) for offset in (0, 9, 13, 27, 31, 40)]
        return [*found, *(by_time(partition, moment) for moment in range(1002, 1063, 9)), by_max(partition)]

    expected = [each.answer for each in answers()]
    codes = set()
    for path in sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")]):
        content = path.read_bytes()
        for at in range(min(len(content), len(content.rstrip(b"\0")) + 13)):
            mask = (0x01, 0xFF, 0x80)[at % 3]
            path.write_bytes(content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :])
            now = answers()
            assert [each.answer for each in now] == expected, (path.name, at, mask)
            codes |= {code for each in now for code in each.codes}
        path.write_bytes(content)
    assert codes == {"offset-index-mismatch", "time-index-mismatch", "time-index-imprecise", "index-invalid"}


def test_every_truncation_of_an_index(tmp_path: Path) -> None:
    partition = indexed_partition(tmp_path)
    moments = range(1001, 1063, 12)
    expected = [by_time(partition, moment).answer for moment in moments]
    for path in sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")]):
        content = path.read_bytes()
        for length in range(0, min(len(content), 60), 3):
            path.write_bytes(content[:length])
            assert [by_time(partition, moment).answer for moment in moments] == expected, (path.name, length)
            assert by_offset(partition, 21).offset == 21
        path.write_bytes(content)


def test_an_entry_into_a_value(tmp_path: Path) -> None:
    """An index entry that points to the image of a batch inside a record's value is not followed."""
    partition = tmp_path / "topic-0"
    phantom = batch(6, [b"phantom"] * 10)
    carrier = batch(4, [b"x", phantom])
    log = [batch(0, [b"a"] * 4), carrier, batch(6, [b"b"] * 6), batch(12, [b"c"] * 6)]
    path = write_indexed(partition, 0, log)
    position = len(log[0]) + carrier.index(phantom)
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 8, position))
    lookup = by_offset(partition, 9)
    assert (lookup.offset, lookup.codes) == (9, ["offset-index-mismatch"])
    assert isinstance(lookup.result, Match)
    assert lookup.result.location.position == len(log[0] + carrier)
    (found,) = lookup.findings
    assert (found.location.path, found.location.position) == (str(path.with_suffix(".index")), 0)
    assert "is wrong" in lookup.detail("offset_index")


def test_a_time_index_that_was_cut_short(tmp_path: Path) -> None:
    """A closed segment's index without its last entry would hide the segment's end."""
    partition = tmp_path / "topic-0"
    path = write_indexed(partition, 0, [batch(offset, [b"x" * 100]) for offset in range(40)], interval_bytes=500)
    write_indexed(partition, 40, [batch(40)])
    index = path.with_suffix(".timeindex")
    index.write_bytes(index.read_bytes()[:-24])
    lookup = by_time(partition, BASE_TIMESTAMP + 39)
    assert (lookup.offset, lookup.codes) == (39, ["time-index-mismatch"])


# -- damage in the log -----------------------------------------------------------------------------------------


def flip(path: Path, position: int, mask: int = 0x10) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def test_a_batch_with_a_wrong_crc(tmp_path: Path) -> None:
    """It is told; a record that can still be read is found, another is not."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6)]
    path = write_indexed(partition, 0, log)
    flip(path, len(log[0] + log[1]) - 2)  # in the last record's value
    lookup = by_offset(partition, 4)
    assert (lookup.offset, lookup.codes) == (4, ["batch-crc-mismatch"])
    assert by_offset(partition, 6).codes == []
    flip(path, len(log[0]) + 61, 0xFF)  # the first record's length
    lookup = by_offset(partition, 4)
    assert lookup.codes == ["batch-crc-mismatch", "record-invalid"]
    assert "cannot be read" in lookup.reason
    assert by_offset(partition, 6).offset == 6
    assert by_time(partition, BASE_TIMESTAMP + 4).codes != []


def test_damage_over_the_offset(tmp_path: Path) -> None:
    """An offset in a range that cannot be read is lost, not compacted."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6), batch(9)]
    path = write_indexed(partition, 0, log)
    flip(path, len(log[0]) + 16, 0xFF)  # the magic
    lookup = by_offset(partition, 4)
    assert lookup.codes == ["log-framing-broken"]
    assert lookup.reason.startswith("offset 4 is lost")
    lookup = by_offset(partition, 7)
    assert (lookup.offset, lookup.codes) == (7, ["log-framing-broken"])


def test_a_base_offset_that_was_hit(tmp_path: Path) -> None:
    """The base offset lies outside the CRC: a batch out of order does not hide the one that has the offset."""
    partition = tmp_path / "topic-0"
    log = [batch(0), batch(3), batch(6), batch(9)]
    path = write_indexed(partition, 0, log)
    write_indexed(partition, 12, [batch(12)])
    flip(path, len(log[0]) + 7, 3 ^ 6)  # offsets 3 to 5 become 6 to 8
    lookup = by_offset(partition, 7)
    assert (lookup.offset, lookup.codes) == (7, ["offset-not-increasing"])
    assert isinstance(lookup.result, Match)
    assert lookup.result.location.position == len(log[0] + log[1])
    flip(path, len(log[0]) + 4, 0x01)
    assert by_offset(partition, 7).codes == ["offset-out-of-segment"]
    assert by_offset(partition, 10).offset == 10


def test_a_largest_timestamp_that_no_record_has(tmp_path: Path) -> None:
    partition = tmp_path / "topic-0"
    write_indexed(partition, 0, [batch(0, max_timestamp=BASE_TIMESTAMP + 500)])
    lookup = by_max(partition)
    assert lookup.codes == ["max-timestamp-mismatch"]
    assert "none of its records has it" in lookup.reason


def test_each_finding_is_told_once(tmp_path: Path) -> None:
    """The same damage is passed when the largest timestamp and when the record is looked for."""
    partition = tmp_path / "topic-0"
    log = [batch(offset) for offset in range(0, 90, 3)]
    path = write_indexed(partition, 0, log, without=(".index", ".timeindex"))
    flip(path, len(log[0]) * 20 + 16, 0xFF)
    lookup = by_time(partition, BASE_TIMESTAMP + 70)
    assert (lookup.offset, lookup.codes) == (70, ["log-framing-broken"])


# -- how much is read ------------------------------------------------------------------------------------------


def stamped(template: bytes, count: int, timestamp: int) -> Iterator[bytes]:
    """The same v2 batch again and again, offsets and timestamps (a second apart) going on."""
    content = bytearray(template)
    records = struct.unpack_from(">i", content, 57)[0]
    for number in range(count):
        struct.pack_into(">q", content, 0, number * records)
        moment = timestamp + number * 1000
        struct.pack_into(">qq", content, 27, moment, moment + records - 1)
        struct.pack_into(">I", content, 17, crc32c_of(memoryview(content)[21:]))
        yield bytes(content)


@pytest.mark.parametrize(
    ("values", "value_bytes", "count"), [(100, 600, 1000), (3, 300, 30_000)], ids=["60 KB batches", "1 KB batches"]
)
@pytest.mark.parametrize("is_closed", [True, False])
def test_little_is_read(tmp_path: Path, values: int, value_bytes: int, count: int, is_closed: bool) -> None:
    """Of tens of megabytes a look-up reads some kilobytes and the batch found."""
    template = batch(0, [b"x" * value_bytes] * values)
    partition = tmp_path / "topic-0"
    path = partition / f"{0:020d}.log"
    partition.mkdir()
    size_bytes = len(template)
    with path.open("wb") as log:
        log.writelines(stamped(template, count, BASE_TIMESTAMP))
    step = max(1, -(-4097 // size_bytes))  # batches between two index entries
    numbers = np.arange(step, count, step)
    last_deltas = (numbers + 1) * values - 1
    positions = np.stack([last_deltas, numbers * size_bytes], axis=1).astype(">i4").tobytes()
    times = np.empty(len(numbers), [("timestamp", ">i8"), ("relative_offset", ">i4")])
    times["timestamp"], times["relative_offset"] = BASE_TIMESTAMP + numbers * 1000 + values - 1, last_deltas
    last = struct.pack(">qi", BASE_TIMESTAMP + (count - 1) * 1000 + values - 1, count * values - 1)
    stamps = times.tobytes()
    stamps += last if is_closed and not stamps.endswith(last) else b""
    padding = b"" if is_closed else bytes(1_200_000)
    path.with_suffix(".index").write_bytes(positions + padding)
    path.with_suffix(".timeindex").write_bytes(stamps + padding)
    assert path.stat().st_size > 25_000_000
    end = count * values
    for offset in (0, 1, end // 3, end // 2, end - 1, end):
        lookup = by_offset(partition, offset)
        assert (lookup.offset, lookup.codes) == (offset if offset < end else None, [])
        assert 0 < lookup.result.bytes_read < 64 * 1024 + size_bytes
    for number in (0, 1, count // 3, count - 1):
        lookup = by_time(partition, BASE_TIMESTAMP + number * 1000)
        assert (lookup.offset, lookup.codes) == (number * values, [])
        assert 0 < lookup.result.bytes_read < 64 * 1024 + size_bytes
    lookup = by_max(partition)
    assert (lookup.offset, lookup.codes) == (end - 1, [])
    assert 0 < lookup.result.bytes_read < 64 * 1024 + size_bytes


def test_few_files_are_open(tmp_path: Path) -> None:
    """Of many segments, only that which is looked into has its files open."""
    partition = tmp_path / "topic-0"
    for base_offset in range(0, 300, 3):
        write_indexed(
            partition,
            base_offset,
            [batch_of([], base_offset=base_offset, last_offset=base_offset + 2, max_timestamp=5)],
        )
    write_indexed(partition, 300, [batch(300)])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.dup(0) for _ in range(12)]  # other tests of this process may have left any number open
    for each in free:
        os.close(each)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    try:
        answers = [by_offset(partition, 0).result, by_time(partition, 6).result, by_max(partition).result]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert isinstance(answers[0], NotFound)
    nearest = answers[0].nearest
    assert [each.location.offset for each in (nearest, *answers[1:]) if isinstance(each, Match)] == [300, 300, 302]


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
