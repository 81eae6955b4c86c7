"""Look-ups: what brokers answered, a second reading of Kafka's rules, worked examples, and what must not mislead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from format.errors import InputError
from format.verbs.find.find import partition_to_search
from tests.building import BASE_TIMESTAMP, batch
from tests.corpora import Corpus
from tests.format.verbs.find.lookup_logs import (
    indexes_of,
    split,
)
from tests.format.verbs.find.lookups import (
    NOTHING,
    by_max,
    by_offset,
    by_time,
    records_on_disk,
    three_segments,
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
