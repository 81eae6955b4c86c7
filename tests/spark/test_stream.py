"""``readStream``: directories that grow, read exactly once across restarts, and what retention means for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from pyspark.sql.types import LongType, StringType, StructType

from format import layout
from format.findings import Finding
from spark_jobs import stream_reader
from spark_jobs.data_source import KafkaLogDataSource, _schemas
from spark_jobs.stream_reader import DataLost, KafkaLogStreamReader, StreamOffset
from spark_jobs.view_options import BadOption, parse_options
from spark_jobs.view_reader import Share
from tests.building import batches, write_segment
from tests.dumping import dump

RECORDS_IN_A_BATCH = 3


def _append(partition: Path, base_offset: int, first_offset: int, count: int) -> int:
    """Append batches to a segment; returns the log end offset."""
    partition.mkdir(parents=True, exist_ok=True)
    with (partition / f"{base_offset:020d}.log").open("ab") as log:
        log.write(b"".join(batches(count, first_offset)))
    return first_offset + count * RECORDS_IN_A_BATCH


def _metadata(partition: Path, topic_id: str) -> None:
    (partition / layout.PARTITION_METADATA).write_text(f"version: 0\ntopic_id: {topic_id}\n")


def _reader(path: Path, **options: str) -> KafkaLogStreamReader:
    parsed = parse_options({"path": str(path), **options})
    return KafkaLogStreamReader(parsed, _schemas(parsed)[1])


def _offsets(reader: KafkaLogStreamReader, start: StreamOffset, end: StreamOffset) -> list[tuple[str, int, int]]:
    """Topic, partition and offset of all records that the stream reads between two offsets."""
    found = []
    for share in reader.partitions(start, end):
        assert isinstance(share, Share)
        for each in reader.read(share):
            found += list(zip(*(each[name].to_pylist() for name in ("topic", "partition", "offset")), strict=True))
    return sorted(found)


def _all(topic: str, number: int, first: int, end: int) -> list[tuple[str, int, int]]:
    return [(topic, number, offset) for offset in range(first, end)]


def test_what_is_appended_is_read_once(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 10)
    reader = _reader(tmp_path)
    begin = reader.initialOffset()
    first = reader.latestOffset(begin, None)
    assert _offsets(reader, begin, first) == _all("t", 0, 0, end)
    assert reader.latestOffset(first, None) == first
    assert reader.partitions(first, first) == []

    later = _append(tmp_path / "t-0", 0, end, 2)
    later = _append(tmp_path / "t-0", later, later, 5)  # a new segment
    other = _append(tmp_path / "new-7", 0, 0, 1)
    again = _reader(tmp_path)  # another process, which has the offset of the checkpoint and no more
    second = again.latestOffset(first, None)
    assert _offsets(again, first, second) == _all("new", 7, 0, other) + _all("t", 0, end, later)
    assert _offsets(_reader(tmp_path, rangeBytes="300"), first, second) == _offsets(again, first, second)


def test_only_files_of_some_names_are_read(tmp_path: Path) -> None:
    for number in (0, 30, 60):
        _append(tmp_path / "t-0", number, number, 10)
    reader = _reader(tmp_path, pathGlobFilter="*30.log")
    begin = reader.initialOffset()
    assert _offsets(reader, begin, reader.latestOffset(begin, None)) == _all("t", 0, 30, 60)
    with pytest.raises(BadOption, match="a stream has failOnDataLoss=false in place of ignoreMissingFiles"):
        _reader(tmp_path, ignoreMissingFiles="true")


def test_the_columns_have_the_names_of_the_schema(tmp_path: Path) -> None:
    _append(tmp_path / "t-0", 0, 0, 3)
    source = KafkaLogDataSource({"path": str(tmp_path)})
    reader = source.streamReader(StructType().add("OFFSET", LongType()).add("Topic", StringType()))
    assert isinstance(reader, KafkaLogStreamReader)
    (share,) = reader.partitions({}, reader.latestOffset({}, None))
    assert isinstance(share, Share)
    (rows,) = reader.read(share)
    assert rows.to_pydict() == {"OFFSET": [*range(9)], "Topic": ["t"] * 9}


def test_a_batch_that_is_still_being_written_is_left_for_later(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 4)
    more = batches(1, end)[0]
    with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as log:
        log.write(more[:-5])
        log.flush()
        reader = _reader(tmp_path)
        begin = reader.initialOffset()
        middle = reader.latestOffset(begin, None)
        assert _offsets(reader, begin, middle) == _all("t", 0, 0, end)
        log.write(more[-5:])
    assert _offsets(reader, middle, reader.latestOffset(middle, None)) == _all("t", 0, end, end + 3)


def test_a_partition_is_read_up_to_its_high_watermark(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 4)
    _append(tmp_path / "u-0", 0, 0, 1)  # not in the checkpoint yet
    checkpoint = tmp_path / layout.REPLICATION_OFFSET_CHECKPOINT
    checkpoint.write_text("0\n1\nt 0 5\n")
    reader = _reader(tmp_path)
    begin = reader.initialOffset()
    middle = reader.latestOffset(begin, None)
    assert _offsets(reader, begin, middle) == _all("t", 0, 0, 5)
    checkpoint.write_text("0\n2\nt 0 3\nu 0 3\n")  # a high watermark that went back
    back = reader.latestOffset(middle, None)
    assert _offsets(reader, middle, back) == _all("u", 0, 0, 3)
    checkpoint.write_text(f"0\n1\nt 0 {end}\n")
    assert _offsets(reader, back, reader.latestOffset(back, None)) == _all("t", 0, 5, end)
    to_end = _reader(tmp_path, upTo="logEnd")
    assert _offsets(to_end, {}, to_end.latestOffset({}, None)) == _all("t", 0, 0, end) + _all("u", 0, 0, 3)


def test_a_stream_begins_at_the_log_start_offset(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 4)
    (tmp_path / layout.LOG_START_OFFSET_CHECKPOINT).write_text("0\n1\nt 0 5\n")
    reader, every = _reader(tmp_path), _reader(tmp_path, includeBelowLogStart="true")
    begin = reader.initialOffset()
    assert _offsets(reader, begin, reader.latestOffset(begin, None)) == _all("t", 0, 5, end)
    from_first = every.initialOffset()
    assert _offsets(every, from_first, every.latestOffset(from_first, None)) == _all("t", 0, 0, end)
    with pytest.raises(DataLost, match="t-0: offsets 0 to 4 were deleted before they were read"):
        reader.partitions(from_first, reader.latestOffset(from_first, None))


def test_each_batch_is_streamed_once(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 30)
    reader = _reader(tmp_path, view="batches", rangeBytes="400")
    offset = reader.initialOffset()
    found: list[int] = []
    for to in (7, 40, end, end + 6):
        if to > end:
            _append(tmp_path / "t-0", end, end, 2)
        for share in reader.partitions(offset, _with_end(offset, to)):
            found += [each for rows in reader.read(share) for each in rows["base_offset"].to_pylist()]
        offset = _with_end(offset, to)
    assert found == list(range(0, end + 6, RECORDS_IN_A_BATCH))


@pytest.mark.parametrize("view", ["records", "findings"])
def test_damage_is_streamed_once(tmp_path: Path, view: str) -> None:
    """Without an index each trigger reads the log from its start, and past the end of what it takes."""
    contents = batches(30)
    for number in (2, 15, 28):
        contents[number] = contents[number][:-3] + b"xyz"
    write_segment(tmp_path / "t-0", 0, [*contents[:20], bytes(30), *contents[20:]])
    damage = {"columnNameOfCorruptRecord": "damage"} if view == "records" else {"view": view}
    reader = _reader(tmp_path, rangeBytes="400", **damage)
    offset = reader.initialOffset()
    found: list[tuple[int, str]] = []
    for to in (7, 40, 46, 60, 61, 90):
        for share in reader.partitions(offset, _with_end(offset, to)):
            rows = [row for each in reader.read(share) for row in each.to_pylist()]
            codes = [row["code"] if view == "findings" else (row["damage"] or "").partition(":")[0] for row in rows]
            found += [(row["offset"], code) for row, code in zip(rows, codes, strict=True) if code]
        offset = _with_end(offset, to)
    assert found == [
        (6, "batch-crc-mismatch"),
        (45, "batch-crc-mismatch"),
        (60, "log-framing-broken"),
        (84, "batch-crc-mismatch"),
    ]


@pytest.mark.parametrize("place", ["damaged", "transactions"])
def test_streamed_findings_are_those_of_dump_before_the_end_of_a_log(
    place: str, damaged_copy: Path, data_dir: Path
) -> None:
    """Damage up to the end of a file may be a batch that is being written."""
    path = damaged_copy if place == "damaged" else data_dir / "trials" / "transactions" / "node-1"
    reader = _reader(path, view="findings", upTo="logEnd", includeBelowLogStart="true")
    start = reader.initialOffset()
    shares = reader.partitions(start, reader.latestOffset(start, None))
    rows = [row for share in shares for each in reader.read(share) for row in each.to_pylist()]
    expected = [each for each in dump(path, records=True) if isinstance(each, Finding)]
    inside = [each for each in expected if not _ends_a_partition(each)]
    assert 5 < len(inside) < len(expected) if place == "damaged" else len(inside) == len(expected) == 2
    names = ("path", "code", "position", "offset", "message")
    assert sorted(tuple(row[name] for name in names) for row in rows) == sorted(
        (each.location.path, each.code, each.location.position, each.location.offset, each.message) for each in inside
    )


def _ends_a_partition(found: Finding) -> bool:
    """Whether it is of the last bytes of the last log, and these are no batch."""
    log = Path(found.location.path)
    end = (found.location.position or 0) + (found.location.length or 0)
    is_batch = found.code in ("batch-crc-mismatch", "record-offset-invalid")
    return not is_batch and log == max(log.parent.glob("*.log")) and end == log.stat().st_size


def test_a_stream_of_findings_in_spark(spark: Any, tmp_path: Path) -> None:
    contents = batches(6)
    contents[2] = contents[2][:-3] + b"xyz"
    write_segment(tmp_path / "node" / "t-0", 0, contents)
    stream = spark.readStream.format("kafkalog").option("view", "findings").load(str(tmp_path / "node"))
    for _ in range(2):
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert [(row.code, row.offset, row.lost_offsets.last) for row in found] == [("batch-crc-mismatch", 6, 8)]


def _with_end(offset: StreamOffset, to: int) -> StreamOffset:
    return {broker: {"t": {**topics["t"], "0": to}} for broker, topics in offset.items()}


def test_directories_that_did_not_change_are_not_listed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 4)
    _append(tmp_path / "u-0", 0, 0, 1)
    listed: list[str] = []
    read = stream_reader.read_partition
    monkeypatch.setattr(stream_reader, "read_partition", lambda path: listed.append(path.name) or read(path))

    def trigger() -> tuple[StreamOffset, list[str]]:
        listed.clear()
        return reader.latestOffset(reader.initialOffset(), None), sorted(set(listed))

    reader = _reader(tmp_path)
    first = trigger()[0]
    assert trigger()[1] == ["t-0", "u-0"]  # what changed just now may change again unseen
    for name in ("t-0", "u-0"):
        os.utime(tmp_path / name, (1_000_000_000, 1_000_000_000))
    trigger()
    assert trigger() == (first, [])
    _append(tmp_path / "t-0", 0, end, 1)  # no new file
    moved, again = trigger()
    assert again == ["t-0"]
    assert _offsets(reader, first, moved) == _all("t", 0, end, end + 3)
    _append(tmp_path / "u-0", 3, 3, 2)
    later, again = trigger()
    assert again == ["u-0"]
    assert _offsets(reader, moved, later) == _all("u", 0, 3, 9)


def test_what_retention_deleted_is_an_error_or_left_out(tmp_path: Path) -> None:
    end = _append(tmp_path / "t-0", 0, 0, 3)
    reader = _reader(tmp_path)
    begin = reader.initialOffset()
    last = _append(tmp_path / "t-0", end, end, 3)
    latest = reader.latestOffset(begin, None)
    shares = reader.partitions(begin, latest)
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    with pytest.raises(DataLost, match="t-0: offsets 0 to 8 were deleted"):
        reader.partitions(begin, latest)
    with pytest.raises(DataLost, match="was deleted before it was read; with failOnDataLoss=false"):
        [list(reader.read(share)) for share in shares]
    lossy = _reader(tmp_path, failOnDataLoss="false")
    assert _offsets(lossy, begin, latest) == _all("t", 0, end, last)
    assert sum(each.num_rows for share in shares for each in lossy.read(share)) == last - end


@pytest.mark.parametrize("options", [{}, {"upTo": "logEnd"}], ids=["highWatermark", "logEnd"])
def test_a_log_that_was_truncated_below_what_was_read_is_an_error(tmp_path: Path, options: dict[str, str]) -> None:
    kept = _append(tmp_path / "t-0", 0, 0, 2)
    log = tmp_path / "t-0" / f"{0:020d}.log"
    kept_bytes = log.stat().st_size
    end = _append(tmp_path / "t-0", 0, kept, 3)
    (tmp_path / layout.REPLICATION_OFFSET_CHECKPOINT).write_text(f"0\n1\nt 0 {end}\n")
    reader = _reader(tmp_path, **options)
    read = reader.latestOffset(reader.initialOffset(), None)
    (tmp_path / layout.REPLICATION_OFFSET_CHECKPOINT).write_text(f"0\n1\nt 0 {kept}\n")
    # a high watermark of earlier is no loss
    assert reader.latestOffset(read, None) == read
    with log.open("r+b") as file:
        file.truncate(kept_bytes)
    for each in (reader, _reader(tmp_path, **options)):
        with pytest.raises(DataLost, match=f"t-0 ends at offset {kept} and was read up to {end}: it was truncated"):
            each.latestOffset(read, None)
    lossy = _reader(tmp_path, failOnDataLoss="false", **options)
    assert lossy.latestOffset(read, None) == read


def test_a_topic_that_was_made_anew_is_another_topic(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    end = _append(tmp_path / "t-0", 0, 0, 3)
    reader = _reader(tmp_path)
    without_id = reader.latestOffset(reader.initialOffset(), None)
    _metadata(tmp_path / "t-0", "AAAAAAAAQACAAAAAAAAAAQ")  # which a broker writes a moment later
    first = reader.latestOffset(without_id, None)
    assert _offsets(reader, without_id, first) == []
    shutil.rmtree(tmp_path / "t-0")
    gone = reader.latestOffset(first, None)
    assert gone == first
    _append(tmp_path / "t-0", 0, 0, 5)
    _metadata(tmp_path / "t-0", "AAAAAAAAQACAAAAAAAAAAg")
    second = reader.latestOffset(gone, None)
    assert _offsets(reader, gone, second) == _all("t", 0, 0, 15)
    assert end == 9


def test_a_partition_that_moves_between_log_directories_of_a_broker(tmp_path: Path) -> None:
    for name in ("d1", "d2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text("version=1\nnode.id=3\ncluster.id=abcdefghijklmnopqrstuw\n")
    end = _append(tmp_path / "d1" / "t-0", 0, 0, 3)
    reader = _reader(tmp_path)
    first = reader.latestOffset(reader.initialOffset(), None)
    assert list(first) == ["3"]
    shutil.move(tmp_path / "d1" / "t-0", tmp_path / "d2" / "t-0")
    last = _append(tmp_path / "d2" / "t-0", 0, end, 1)
    assert _offsets(reader, first, reader.latestOffset(first, None)) == _all("t", 0, end, last)


def test_where_a_stream_begins(tmp_path: Path) -> None:
    for number in (0, 1):
        _append(tmp_path / f"t-{number}", 0, 0, 20 * (number + 1))
    latest = _reader(tmp_path, startingOffsets="latest")
    assert latest.initialOffset() == latest.latestOffset({}, None)
    one = _reader(tmp_path, startingOffsets='{"t": {"0": -1, "1": -2}}')
    assert _offsets(one, one.initialOffset(), one.latestOffset({}, None)) == _all("t", 1, 0, 120)
    some = _reader(tmp_path, startingOffsets='{"t": {"0": 50}}', partitions="0")
    assert _offsets(some, some.initialOffset(), some.latestOffset({}, None)) == _all("t", 0, 50, 60)


def test_a_stream_does_not_begin_at_a_partition_that_is_not_there(tmp_path: Path) -> None:
    _append(tmp_path / "t-0", 0, 0, 2)
    with pytest.raises(BadOption, match="startingOffsets: there is no partition t-1 at the paths"):
        _reader(tmp_path, startingOffsets='{"t": {"0": 3, "1": 3}}').initialOffset()


def test_how_much_a_trigger_takes(tmp_path: Path) -> None:
    if find_spec("pyspark.sql.streaming.datasource") is None:
        with pytest.raises(BadOption, match=r"needs Spark 4\.2"):
            _reader(tmp_path, maxOffsetsPerTrigger="30")
        return
    for number in (0, 1):
        _append(tmp_path / f"t-{number}", 0, 0, 20 * (number + 1))
    little = _reader(tmp_path, maxOffsetsPerTrigger="30")
    limit = little.getDefaultReadLimit()
    at, found, triggers = little.initialOffset(), [], 0
    while (moved := little.latestOffset(at, limit)) != at:
        read = _offsets(little, at, moved)
        assert len(read) <= 32
        found, at, triggers = found + read, moved, triggers + 1
    assert sorted(found) == _all("t", 0, 0, 60) + _all("t", 1, 0, 120)
    assert triggers == 6


def test_spark_names_the_reason_of_a_refused_stream_and_nothing_else(spark: Any, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(1))
    for option, value, words in (
        ("view", "segments", "readStream reads the views records, batches and findings, not"),
        ("endingOffsets", 5, "endingOffsets"),
    ):
        frame = spark.readStream.format("kafkalog").option(option, value).load(str(tmp_path))
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        with pytest.raises(Exception, match=words) as raised:
            writer.start().awaitTermination(60)
        assert "UnboundLocalError" not in str(raised.value)


def test_what_is_no_stream_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="readStream reads the views records, batches and findings, not"):
        _reader(tmp_path, view="segments")
    with pytest.raises(BadOption, match="a stream reads with isolationLevel=read_uncommitted"):
        _reader(tmp_path, isolationLevel="read_committed")
    with pytest.raises(BadOption, match="endingOffsets"):
        _reader(tmp_path, endingOffsets="5")
    log = write_segment(tmp_path / "t-0", 0, batches(1))
    with pytest.raises(BadOption, match="neither"):
        _reader(log).initialOffset()


@pytest.fixture
def run_once(spark: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs the stream until it has read all that is there, from the checkpoint of the run before."""

    def run(path: Path) -> None:
        stream = spark.readStream.format("kafkalog").load(str(path)).select("topic", "partition", "offset", "value")
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    return run


def test_a_query_that_is_restarted_goes_on_where_it_was(
    spark: Any, run_once: Callable[[Path], None], tmp_path: Path
) -> None:
    log_dir = tmp_path / "node"
    end = _append(log_dir / "t-0", 0, 0, 5)
    run_once(log_dir)
    more = _append(log_dir / "t-0", 0, end, 5)
    more = _append(log_dir / "t-0", more, more, 5)
    run_once(log_dir)
    found = [row.offset for row in spark.read.parquet(str(tmp_path / "out")).collect()]
    assert sorted(found) == list(range(more))
