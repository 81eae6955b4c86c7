"""The view ``records`` returns what Spark's Kafka source returns of the same topics: what a broker serves of them."""

from __future__ import annotations

import json
import struct
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.errors import InputError
from format.log.walker import batch_chunks
from format.verbs.txns import partition_transactions
from format.verbs.verify.verify import VerifyScan
from spark_jobs import log_views, planning, view_reader
from spark_jobs.data_source import KafkaLogDataSource, KafkaLogReader, _schemas
from spark_jobs.view_options import BadOption, parse_options
from spark_jobs.view_reader import units_at
from tests.building import batch, batches, write_segment
from tests.corpora import Corpus
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.truth.test_records import COMPACTED


def _reader(path: Path, options: dict[str, Any]) -> KafkaLogReader:
    parsed = parse_options({"path": str(path), **options})
    return KafkaLogReader(parsed, _schemas(parsed)[1])


def _offsets(path: Path, **options: Any) -> dict[str, list[int]]:
    """The offsets of the records of each partition."""
    reader = _reader(path, options)
    found: dict[str, list[int]] = defaultdict(list)
    for share in reader.partitions():
        for rows in reader.read(share):
            for row in rows.select(["topic", "partition", "offset"]).to_pylist():
                found[f"{row['topic']}-{row['partition']}"].append(row["offset"])
    return {name: sorted(offsets) for name, offsets in found.items()}


@pytest.mark.parametrize("options", [{}, {"rangeBytes": "3000"}, {"minPartitions": "40"}])
def test_the_records_are_those_of_a_consumer(witnessed_corpus: Corpus, options: dict[str, str]) -> None:
    """From the log start offset on, up to the high watermark; replicas that lag have fewer."""
    ends = witnessed_corpus.truth_json("watermarks")
    compared = 0
    for log_dir in witnessed_corpus.log_dirs:
        found = _offsets(log_dir, **options)
        for partition in (each for each in witnessed_corpus.partitions() if each.parent == log_dir):
            truth = witnessed_corpus.true_records(partition.name)
            if truth is None or partition.name == COMPACTED:
                continue
            expected = [record["offset"] for record in truth]
            assert ends[partition.name]["log_start_offset"] <= expected[0]
            assert found[partition.name] == expected, partition
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("options", [{}, {"rangeBytes": "1000"}])
def test_read_committed_gives_what_a_real_consumer_got(data_dir: Path, options: dict[str, str]) -> None:
    corpus = data_dir / "trials" / "transactions"
    truth = json.loads((corpus / "truth" / "transactions.json").read_text())
    found = _offsets(corpus / "node-1", isolationLevel="read_committed", **options)
    assert {name: found[name] for name in truth["committed"]} == truth["committed"]
    by_kafkas_name = _offsets(corpus / "node-1", **{"kafka.isolation.level": "read_committed"}, **options)
    assert by_kafkas_name == found
    everything = _offsets(corpus / "node-1", **options)
    assert {name: sorted(set(everything[name])) for name in truth["uncommitted"]} == truth["uncommitted"]
    assert truth["committed"] != truth["uncommitted"]


def test_read_committed_ends_at_the_last_stable_offset(witnessed_corpus: Corpus) -> None:
    ends = witnessed_corpus.truth_json("watermarks")
    held_back = 0
    for log_dir in witnessed_corpus.log_dirs:
        for name, offsets in _offsets(log_dir, isolationLevel="read_committed").items():
            if name in ends:
                assert offsets[-1] < ends[name]["last_stable_offset"]
                held_back += ends[name]["last_stable_offset"] < ends[name]["high_watermark"]
    assert held_back > 0


def test_read_committed_on_spark(kafkalog: Any, data_dir: Path) -> None:
    corpus = data_dir / "trials" / "transactions"
    truth = json.loads((corpus / "truth" / "transactions.json").read_text())["committed"]
    options = {"subscribePattern": "payments|accounts", "isolationLevel": "read_committed", "minPartitions": 6}
    rows = kafkalog(corpus / "node-1", **options).select("topic", "partition", "offset").collect()
    expected = Counter((*name.rsplit("-", 1), offset) for name, offsets in truth.items() for offset in offsets)
    assert Counter((row.topic, str(row.partition), row.offset) for row in rows) == expected


def _transactions(place: Path) -> Path:
    """Two segments, an aborted transaction, checkpoints inside of both."""
    directory = place / "payments-0"
    write_segment(directory, 0, [data(0, 7), data(2, 8), batch(4), marker(7, 7, commit=False)])
    later = [data(8, 7), marker(10, 8, commit=True), marker(11, 7, commit=True), data(12, 9), batch(14)]
    write_segment(directory, 8, later)
    (place / "log-start-offset-checkpoint").write_text("0\n1\npayments 0 5\n")
    (place / "replication-offset-checkpoint").write_text("0\n1\npayments 0 9\n")
    return directory


@pytest.mark.parametrize("is_file", [False, True])
def test_the_bounds_of_a_log(tmp_path: Path, is_file: bool) -> None:
    directory = _transactions(tmp_path)

    def offsets(**options: str) -> list[int]:
        paths = sorted(directory.glob("*.log")) if is_file else [tmp_path]
        return sorted(each for path in paths for each in _offsets(path, **options).get("payments-0", []))

    assert offsets() == [5, 6, 8]
    assert offsets(includeControl="true") == [5, 6, 7, 8]
    assert offsets(includeBelowLogStart="true") == [0, 1, 2, 3, 4, 5, 6, 8]
    assert offsets(upTo="logEnd") == [5, 6, 8, 9, 12, 13, 14, 15, 16]
    assert offsets(startingOffsets="6", endingOffsets="100") == [6, 8]
    assert offsets(startingOffsets="0", endingOffsets='{"payments": {"0": 6}}') == [5]
    assert offsets(isolationLevel="read_committed") == []  # the marker of producer 8 is not replicated
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 13\n")
    assert offsets() == [5, 6, 8, 9, 12]
    assert offsets(isolationLevel="read_committed") == [5, 6, 8, 9]  # the transaction of producer 9 is open


def test_a_log_without_checkpoints_is_read_whole(tmp_path: Path) -> None:
    directory = _transactions(tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nother 0 9\n")
    assert _offsets(directory) == {"payments-0": [5, 6, 8, 9, 12, 13, 14, 15, 16]}
    (tmp_path / "log-start-offset-checkpoint").unlink()
    assert _offsets(directory, endingOffsets="3") == {"payments-0": [0, 1, 2]}


def test_a_damaged_batch_does_not_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last offset past the high watermark, in a batch with a wrong CRC: the chunks after it are read."""
    monkeypatch.setattr(log_views, "batch_chunks", partial(batch_chunks, chunk_bytes=100))
    contents = batches(4)
    wrong = bytearray(contents[1])
    wrong[23:27] = (2**30).to_bytes(4, "big")  # the last offset delta
    write_segment(tmp_path / "t-0", 0, [contents[0], bytes(wrong), *contents[2:]])
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 12\n")
    assert _offsets(tmp_path / "t-0") == {"t-0": [0, 1, 2, 6, 7, 8, 9, 10, 11]}


@pytest.mark.parametrize("range_bytes", ["100", "8MiB"])
def test_records_of_a_repeated_batch_are_read_once(tmp_path: Path, range_bytes: str) -> None:
    """As dump does: a part of the log was appended to it, and its batches are there a second time."""
    contents = batches(6)
    log = write_segment(tmp_path / "t-0", 0, [*contents[:4], *contents[1:4], *contents[4:]])
    size = len(contents[0])
    log.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", 3 * n + 2, size * n) for n in range(1, 4)))
    options = {"columnNameOfCorruptRecord": "damage", "rangeBytes": range_bytes}
    reader = _reader(tmp_path / "t-0", options)
    rows = [row for share in reader.partitions() for each in reader.read(share) for row in each.to_pylist()]
    assert [row["offset"] for row in rows if row["damage"] is None] == list(range(18))
    said = [row["damage"] for row in rows if row["damage"] is not None]
    assert said and all(each.startswith("offset-not-increasing: ") for each in said)  # noqa: PT018


@pytest.mark.parametrize("has_index", [False, True])
def test_no_task_begins_in_a_copy_of_batches(tmp_path: Path, has_index: bool) -> None:
    """A task that begins there would not know that the records were read before."""
    contents = batches(40)
    log = write_segment(tmp_path / "t-0", 0, [*contents[:30], *contents[5:30], *contents[30:]])
    size = len(contents[0])
    if has_index:  # with entries of the copy
        offsets = [*range(30), *range(5, 30), *range(30, 40)]
        entries = (struct.pack(">ii", 3 * number + 2, size * at) for at, number in enumerate(offsets))
        log.with_suffix(".index").write_bytes(b"".join(entries))
    for range_bytes in ("200", "500", "1500"):
        found = _offsets(tmp_path / "t-0", rangeBytes=range_bytes)
        assert found == {"t-0": list(range(120))}, range_bytes


def test_directories_that_no_consumer_reads(tmp_path: Path) -> None:
    names = ["t-0", *(f"t-0.{'ab' * 16}-{mark}" for mark in ("delete", "future", "stray"))]
    for number, name in enumerate(names):
        write_segment(tmp_path / name, 10 * number, batches(1, 10 * number))
    assert _offsets(tmp_path) == {"t-0": [0, 1, 2]}
    assert _offsets(tmp_path, recursiveFileLookup="true") == {"t-0": [0, 1, 2]}
    assert _offsets(tmp_path / names[1]) == {"t-0": [10, 11, 12]}


def test_topics_and_partitions(tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "ab-0", "b-0"):
        write_segment(tmp_path / name, 0, batches(1))

    def names(**options: str) -> list[str]:
        return sorted(_offsets(tmp_path, **options))

    assert names(subscribe="a, b") == names(topics="a,b") == ["a-0", "a-1", "b-0"]
    assert names(subscribePattern="a.*") == ["a-0", "a-1", "ab-0"]
    assert names(subscribePattern="a") == ["a-0", "a-1"]
    assert names(assign='{"a": [1], "b": [0]}') == ["a-1", "b-0"]
    for options, words in (
        ({"subscribe": "a", "assign": '{"a": [1]}'}, "subscribe and assign both select topics"),
        ({"subscribePattern": "("}, "no regular expression"),
        ({"assign": '{"a": 1}'}, "partitions by topic, as"),
        ({"assign": '{"a": [-1]}'}, "partitions by topic, as"),
        ({"assign": '{"a": [2]}'}, "there is no partition a-2 at the paths"),
        ({"subscribe": "aa"}, "there is no partition of the topic aa at the paths"),
    ):
        with pytest.raises(BadOption, match=words):
            names(**options)


def test_the_number_of_tasks(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(400))
    for name in ("u-0", "v-0", "w-0"):
        write_segment(tmp_path / name, 0, batches(10))
    size = log.stat().st_size // 400
    entries = b"".join((number * 3).to_bytes(4, "big") + (number * size).to_bytes(4, "big") for number in range(1, 400))
    log.with_suffix(".index").write_bytes(entries)
    expected = _offsets(tmp_path)
    assert len(_reader(tmp_path, {}).partitions()) == 1
    for least in (2, 7, 50):
        assert least <= len(_reader(tmp_path, {"minPartitions": str(least)}).partitions()) <= 1.2 * least + 4
        assert _offsets(tmp_path, minPartitions=str(least)) == expected


def test_ranges_that_would_be_absurdly_many_are_refused(tmp_path: Path) -> None:
    """Before a plan of as many parts as the log has bytes is made."""
    write_segment(tmp_path / "t-0", 0, batches(1))
    with (tmp_path / "t-0" / f"{3:020d}.log").open("wb") as log:
        log.truncate(10**9)
    for options in ({"rangeBytes": "1"}, {"minPartitions": "1000000000"}):
        with pytest.raises(InputError, match=r"ranges of 1 byte, and 200,000 are the most.* of at least 5,001 bytes"):
            _reader(tmp_path, options).partitions()
    with pytest.raises(InputError, match="give ranges"):
        next(planning.plan_units(VerifyScan(), units_at(tmp_path), parallelism=2, range_bytes=1))
    assert len(_reader(tmp_path, {"rangeBytes": "1MB"}).partitions()) > 1


def test_a_worker_reads_the_headers_of_a_partition_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SMALLEST_TASK_BYTES", 1)
    directory = _transactions(tmp_path)
    read: list[Path] = []

    def counted(place: Path) -> Any:
        read.append(place)
        return partition_transactions.committed_view(place)

    monkeypatch.setattr(view_reader, "committed_view", counted)
    options = {"isolationLevel": "read_committed", "rangeBytes": "100"}
    assert len(_reader(directory, options).partitions()) > 1
    assert _offsets(directory, **options) == {}
    assert read == [directory]
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\npayments 0 12\n")
    assert _offsets(directory, **options) == {"payments-0": [5, 6, 8, 9]}  # another query looks again
    assert read == [directory, directory]


def test_options_of_sparks_kafka_source_are_accepted_or_answered() -> None:
    for options, words in (
        (
            {"kafka.bootstrap.servers": "b:9092"},
            r"is of Spark's Kafka source, not of this one: give the path of the logs",
        ),
        ({"kafka.group.id": "g"}, "no offsets are committed"),
        ({"kafka.fetch.max.bytes": "1"}, "no broker is asked"),
        ({"startingOffsetsByTimestamp": "{}"}, "use startingTimestamp"),
        ({"maxRecordsPerPartition": "1"}, "use rangeBytes or minPartitions"),
        ({"minOffsetsPerTrigger": "1"}, "the interval of the trigger"),
        ({"isolationLevel": "committed"}, "it may be read_uncommitted, read_committed"),
        ({"isolationLevel": "read_committed", "includeControl": "true"}, "leave out includeControl"),
        ({"isolationLevel": "read_committed", "upTo": "logEnd"}, "leave out upTo"),
        ({"kafka.isolation.level": "read_committed", "includeBelowLogStart": "true"}, "leave out includeBelowLogStart"),
        ({"isolationLevel": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "give one of them"),
        ({"view": "segments", "kafka.isolation.level": "read_committed"}, "is for the view records, not for segments"),
    ):
        with pytest.raises(BadOption, match=words):
            parse_options({"path": "x", **options})
    for options, words in (
        ({"startingOffsets": "latest"}, "that is for readStream"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "that is for readStream"),
        ({"view": "batches", "includeBelowLogStart": "true"}, "the view batches has all that is there"),
        ({"view": "segments", "upTo": "logEnd"}, "the view segments has all that is there"),
        ({"view": "findings", "startingOffsets": "5"}, "the view findings has all that is there"),
    ):
        source = KafkaLogDataSource({"path": "x", **options})
        with pytest.raises(BadOption, match=words):
            source.reader(None)  # type: ignore[arg-type]
