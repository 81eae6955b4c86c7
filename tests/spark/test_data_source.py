"""The tables of ``format("kafkalog")`` hold what the command line shows and what real clients saw."""

from __future__ import annotations

import base64
import importlib
import json
import os
import shutil
import struct
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from pyspark.sql.types import LongType, StructField, StructType

from format.columns import BATCH, FINDING, SEGMENT, TRANSACTION, RowSchema
from format.errors import KafkaLogError
from format.findings import Severity
from format.log.batch_chunk import BatchRange
from format.log.walker import batch_chunks
from format.node.target import Target
from format.rows.record_rows import RowBlock
from format.verbs.ls.ls import ListTerms, ls
from format.verbs.ls.partition_listing import PartitionListing, SegmentListing
from format.verbs.txns.txns import Transactions, TransactionTerms, ended_rows, open_row, open_transactions
from format.verbs.verify.verify import verify
from spark_jobs import log_views
from spark_jobs.data_source import KafkaLogDataSource, KafkaLogReader, _schemas
from spark_jobs.schemas import INDEX_ENTRY, columns_of_view
from spark_jobs.view_options import OPTIONS, VIEW_NAMES, BadOption, parse_options
from spark_jobs.view_reader import DamagedData
from tests.building import batch, batches, wrapper, write_segment
from tests.corpora import Corpus
from tests.decoded_node import SCHEMAS, VALUES, order, write_node
from tests.dumping import dump
from tests.spark.scanning import EVERY_RECORD, Printed
from tests.spark.scanning import shown as as_shown


def _shown_records(path: Path) -> list[tuple[Any, ...]]:
    """topic, partition, offset, key, value, timestamp of every data record that dump shows."""
    rows = []
    for block in dump(path, records=True):
        if isinstance(block, RowBlock):
            for row in block.rows:
                named = dict(zip(block.schema.names, row, strict=True))
                if not named["is_control"]:
                    rows.append(tuple(named[name] for name in ("topic", "partition", "offset", "key", "value")))
    return rows


def _spark_records(frame: Any) -> list[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        return bytes(value) if isinstance(value, bytearray) else value

    rows = frame.select("topic", "partition", "offset", "key", "value").collect()
    return [tuple(plain(value) for value in row) for row in rows]


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: (row[0] or "", row[1] or 0, row[2]))


def test_the_columns_are_those_of_sparks_own_kafka_source(kafkalog: Any, data_dir: Path) -> None:
    frame = kafkalog(data_dir / "kafka-4.3-single" / "node-1", includeHeaders=True)
    assert [(name, kind) for name, kind in frame.dtypes] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
        ("headers", "array<struct<key:string,value:binary>>"),
    ]


@pytest.mark.parametrize("range_bytes", [None, 2000])
def test_records_are_those_of_dump(kafkalog: Any, corpus: Corpus, range_bytes: int | None) -> None:
    log_dir = corpus.log_dirs[0]
    options = {} if range_bytes is None else {"rangeBytes": range_bytes}
    got = _spark_records(kafkalog(log_dir, **EVERY_RECORD, **options))
    assert _sorted(got) == _sorted(_shown_records(log_dir))


def test_records_are_those_that_clients_read(kafkalog: Any, witnessed_corpus: Corpus) -> None:
    by_partition: dict[str, list[Any]] = {}
    for row in kafkalog(None, paths=json.dumps([str(each) for each in witnessed_corpus.log_dirs])).collect():
        by_partition.setdefault(f"{row.topic}-{row.partition}", []).append(row)
    compared = 0
    for partition in witnessed_corpus.partitions():
        truth = witnessed_corpus.true_records(partition.name)
        if truth is None:
            continue
        seen = {row.offset: row for row in by_partition.get(partition.name, [])}
        for true in truth:
            row = seen.get(true["offset"])
            if row is None:
                continue  # below the log start, or a replica that lags: tests/truth distinguishes them
            for name in ("key", "value"):
                expected = None if true[name] is None else base64.b64decode(true[name])
                assert (None if row[name] is None else bytes(row[name])) == expected
            assert round(row.timestamp.timestamp() * 1000) == true["timestamp"]
            compared += 1
    assert compared > 20


@pytest.mark.parametrize("mode", ["PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize("range_bytes", [None, 1500])
def test_a_damaged_directory_gives_all_that_dump_gives(
    kafkalog: Any, damaged_copy: Path, mode: str, range_bytes: int | None
) -> None:
    options = {} if range_bytes is None else {"rangeBytes": range_bytes}
    got = _spark_records(kafkalog(damaged_copy, mode=mode, **EVERY_RECORD, **options))
    assert _sorted(got) == _sorted(_shown_records(damaged_copy))


def test_failfast_says_where_in_one_line(kafkalog: Any, damaged_copy: Path) -> None:
    from spark_jobs.session import one_line_reason

    with pytest.raises(Exception) as caught:
        kafkalog(damaged_copy, mode="FAILFAST").count()
    assert "position" in one_line_reason(caught.value)
    assert str(damaged_copy) in one_line_reason(caught.value)


def test_records_with_wrong_offsets_are_damage_but_not_left_out(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def damage_of(**options: str) -> list[str | None]:
        path = str(data_dir / "trials" / "transactions" / "node-1")
        parsed = parse_options({"path": path, "columnNameOfCorruptRecord": "damage", **EVERY_RECORD, **options})
        reader = KafkaLogReader(parsed, _schemas(parsed)[1])
        batches_read = chain.from_iterable(map(reader.read, reader.partitions()))
        return [row["damage"] for batch in batches_read for row in batch.to_pylist()]

    said = damage_of()
    assert ["record-offset-invalid" in each for each in said if each is not None] == [True, True]
    assert damage_of(mode="DROPMALFORMED") == [None] * (len(said) - 2)
    assert capsys.readouterr().err == ""
    with pytest.raises(DamagedData, match="record offset 105 is out of order"):
        damage_of(mode="FAILFAST")


def test_damage_can_be_rows(kafkalog: Any, damaged_copy: Path) -> None:
    frame = kafkalog(damaged_copy, columnNameOfCorruptRecord="_corrupt_record", **EVERY_RECORD)
    said = [row._corrupt_record for row in frame.where("_corrupt_record is not null").collect()]
    assert any(each.startswith("batch-crc-mismatch") for each in said)
    assert frame.where("_corrupt_record is null").count() == len(_shown_records(damaged_copy))


def test_a_filtered_frame_that_is_used_again_gives_right_counts(kafkalog: Any, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(100))
    frame = kafkalog(tmp_path / "t-0")
    assert frame.where("offset < 30").count() == 30
    assert frame.count() == 300
    assert frame.where("offset >= 290").count() == 10
    assert frame.where("offset < 30").count() == 30
    assert frame.count() == 300


def test_batches_segments_and_findings_are_those_of_the_commands(kafkalog: Any, damaged_copy: Path) -> None:
    shown = [
        row
        for block in dump(damaged_copy)
        if isinstance(block, RowBlock) and block.schema is BATCH
        for row in block.rows
    ]
    rows = kafkalog(damaged_copy, "batches").collect()
    got = [as_shown(row, BATCH) for row in rows]
    assert sorted(map(repr, got)) == sorted(map(repr, shown))
    assert {row.broker_id for row in rows} == {1}
    assert all(Path(row.path).parent.name == f"{row.topic}-{row.partition}" for row in rows)

    listed = [each.row() for each in ls(damaged_copy, ListTerms(segments=True)) if isinstance(each, SegmentListing)]
    frame = kafkalog(damaged_copy, "segments")
    assert frame.columns == [*SEGMENT.names, "broker_id"]
    assert sorted(repr(as_shown(row, SEGMENT)) for row in frame.collect()) == sorted(map(repr, listed))

    frame = kafkalog(damaged_copy, "findings")
    assert frame.columns == [*FINDING.names, "broker_id"]
    expected = sorted((each.code, each.location.path, each.message) for each in verify(damaged_copy))
    assert sorted((row.code, row.path, row.message) for row in frame.collect()) == expected


def test_findings_about_several_partitions_and_compacted_topics(
    spark: Any, tmp_path: Path, data_dir: Path, printed: Callable[..., Printed]
) -> None:
    """A partition in two log directories of a broker, a link, and gaps that the cleaner of a topic left."""
    places = [tmp_path / name for name in ("d1", "d2")]
    for place in places:
        write_segment(place / "t-0", 0, batches(2))
        (place / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=abcdefghijklmnopqrstuw\n")
    (places[1] / "u-0").symlink_to(places[0] / "t-0")
    places.append(data_dir / "kafka-4.3-single" / "node-1")
    lines = printed("verify", *places, "--format", "jsonl")[1].splitlines()[:-1]
    expected = sorted((row["code"], row["path"], row["message"]) for row in map(json.loads, lines))
    assert "Duplicate log directories" in repr(expected)
    reader = (
        spark.read.format("kafkalog").option("view", "findings").option("paths", json.dumps(list(map(str, places))))
    )
    assert sorted((row.code, row.path, row.message) for row in reader.load().collect()) == expected
    narrowed = reader.option("topics", "t").load().collect()
    assert {row.topic for row in narrowed} == {"t"}
    assert {row.broker_id for row in narrowed} == {1}


def test_index_entries(kafkalog: Any, data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    expected = []
    for path in sorted(log_dir.rglob("*.*index")):
        if path.suffix in (".index", ".timeindex"):
            for block in dump(path):
                if isinstance(block, RowBlock):
                    names = block.schema.names
                    for row in block.rows:
                        named = dict(zip(names, row, strict=True))
                        expected.append((str(path), named["offset"], named.get("position"), named.get("timestamp")))
    got = kafkalog(log_dir, "index_entries").select("path", "offset", "position", "timestamp").collect()
    columns = [column for column in INDEX_ENTRY.columns if column.name in ("path", "offset", "position", "timestamp")]
    rows = [as_shown(row, RowSchema("", tuple(columns))) for row in got]
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_options_narrow(kafkalog: Any, tmp_path: Path) -> None:
    for topic in ("a", "b"):
        for number in (0, 1):
            write_segment(tmp_path / f"{topic}-{number}", 0, batches(10))
            write_segment(tmp_path / f"{topic}-{number}", 30, batches(10, 30))
    assert kafkalog(tmp_path).count() == 240
    assert kafkalog(tmp_path, topics="a").count() == 120
    assert kafkalog(tmp_path, topics="a, b", partitions="1").count() == 120
    assert kafkalog(tmp_path, pathGlobFilter="*30.log").count() == 120
    assert kafkalog(tmp_path, startingOffsets="40", endingOffsets="50").count() == 40
    by_topic = json.dumps({"a": {"0": 59}, "b": {"0": -2}})
    assert kafkalog(tmp_path, startingOffsets=by_topic, partitions="0").count() == 61
    frame = kafkalog(tmp_path, startingTimestamp=1_700_000_000_010, endingTimestamp=1_700_000_000_012)
    assert frame.count() == 8
    assert "value" not in kafkalog(tmp_path, includeValue=False).columns
    nested = tmp_path / "deep" / "node-1"  # a log directory may be called like a partition
    nested.mkdir(parents=True)
    shutil.move(tmp_path / "b-1", nested / "b-1")
    shutil.move(tmp_path / "b-0", nested / "b-0")
    assert kafkalog(tmp_path, recursiveFileLookup=True).count() == 240
    paths = json.dumps([str(tmp_path / "a-0"), str(nested / "b-0")])
    assert kafkalog(None, paths=paths).count() == 120


def test_sql(spark: Any, kafkalog: Any, damaged_copy: Path, tmp_path: Path) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW f USING kafkalog OPTIONS (path '{damaged_copy}', view 'findings')")
    rows = spark.sql("SELECT code, count(*) AS n FROM f WHERE severity = 'error' GROUP BY ALL").collect()
    assert {row.code: row.n for row in rows} == Counter(
        each.code for each in verify(damaged_copy) if each.severity is Severity.ERROR
    )
    spark.sql(f"CREATE TABLE logged USING kafkalog OPTIONS (path '{damaged_copy}')")
    try:
        wanted = f"path = '{damaged_copy}', topics = 'payments', startingOffsets = '20'"
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW late AS SELECT * FROM logged WITH ({wanted})")
        assert spark.sql("SELECT min(offset), max(topic) FROM late").collect() == [(20, "payments")]
        with pytest.raises(Exception, match="SELECT … FROM table WITH"):
            spark.sql("SELECT * FROM logged").collect()
    finally:
        spark.sql("DROP TABLE logged")


def test_a_table_of_the_catalog_has_the_columns_of_its_view(spark: Any, damaged_copy: Path) -> None:
    options = f"path '{damaged_copy}', view 'segments', ignoreMissingFiles 'true'"
    spark.sql(f"CREATE TABLE listed USING kafkalog OPTIONS ({options}) TBLPROPERTIES (team = 'a') COMMENT 'words'")
    try:
        assert spark.table("listed").columns == list(
            _schemas(parse_options({"path": "x", "view": "segments"}))[1].names
        )
        query = f"SELECT count(*) AS n FROM listed WITH (path = '{damaged_copy}'"
        assert spark.sql(f"{query}, view = 'segments')").first().n > 0
        with pytest.raises(Exception, match=r"it fits the option view=segments"):
            spark.sql(f"{query})").collect()
    finally:
        spark.sql("DROP TABLE listed")
    with pytest.raises(Exception, match=r"there is no option veiw\. Did you mean view"):
        spark.sql(f"CREATE TABLE listed USING kafkalog OPTIONS (path '{damaged_copy}', veiw 'segments')")


def test_patterns_in_paths(kafkalog: Any, tmp_path: Path) -> None:
    for node in ("node-1", "node-2", "node-31"):
        write_segment(tmp_path / node / "t-0", 0, batches(10))
        write_segment(tmp_path / node / "t-0", 30, batches(10, 30))
        write_segment(tmp_path / node / "u-0", 0, batches(10))
        (tmp_path / node / "meta.properties").write_text("version=1\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "README").write_text("no log\n")
    for pattern, count in (
        ("node-*", 270),
        ("*", 270),
        ("node-?", 180),
        ("node-[13]*", 180),
        ("node-{1,31}", 180),
        ("{node-1,node-2}/t-*", 120),
        ("node-*/t-0", 180),
        ("*/*/*30.log", 90),
        ("node-1/*", 90),  # without meta.properties, which is no log
    ):
        assert kafkalog(tmp_path / pattern).count() == count, pattern
    assert kafkalog(f"file://{tmp_path}/node-[12]").count() == 180
    assert kafkalog(None, paths=json.dumps([f"{tmp_path}/node-?", f"{tmp_path}/node-31"])).count() == 270
    with pytest.raises(Exception, match=r"no directory and no log fits the path .*node-x\*"):
        kafkalog(tmp_path / "node-x*").count()
    (tmp_path / "a[1]").mkdir()
    write_segment(tmp_path / "a[1]" / "t-0", 0, batches(1))
    write_segment(tmp_path / "a1" / "t-0", 0, batches(2))
    assert kafkalog(tmp_path / "a[1]").count() == 3  # a path that exists is no pattern


def test_a_file_that_is_no_log_is_refused(kafkalog: Any, tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(10))
    log.with_suffix(".index").write_bytes(b"")
    (tmp_path / "meta.properties").write_text("version=1\n")
    for file in (log.with_suffix(".index"), tmp_path / "meta.properties"):
        for view in ("records", "batches", "index_entries", "offsets", "transactions"):
            with pytest.raises(
                Exception, match=f"is not a log: the view {view} reads log directories, partitions and logs"
            ):
                kafkalog(file, view).collect()
    assert kafkalog(log).count() == 30


def test_views_of_offsets_and_transactions(kafkalog: Any, data_dir: Path) -> None:
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    listed = {
        (each.topic, each.partition): (each.log_start_offset, each.log_end_offset, each.high_watermark, each.topic_id)
        for each in ls(log_dir)
        if isinstance(each, PartitionListing)
    }
    rows = kafkalog(log_dir, "offsets").collect()
    assert {
        (row.topic, row.partition): (row.log_start_offset, row.log_end_offset, row.high_watermark, row.topic_id)
        for row in rows
    } == listed
    assert {row.broker_id for row in rows} == {1}

    result, terms = Transactions((Target(log_dir),)), TransactionTerms(now_ms=0)
    assert list(result.read(terms)) == []
    expected = [row for is_aborted in (True, False) for row in ended_rows(result, terms, is_aborted=is_aborted)]
    frame = kafkalog(log_dir, "transactions")
    assert frame.columns == [*TRANSACTION.names, "broker_id"]
    got = [as_shown(row, TRANSACTION) for row in frame.where("state <> 'open'").collect()]
    assert sorted(map(repr, got)) == sorted(map(repr, expected))
    assert any(row[TRANSACTION.names.index("transactional_id")] for row in got)


def test_transactions_as_of_a_time(kafkalog: Any, data_dir: Path) -> None:
    """Those of ``txns --at``: what ended later is not shown as ended."""
    log_dir = data_dir / "kafka-4.3-single" / "node-1"
    every = kafkalog(log_dir, "transactions").collect()
    at = max(round(row.last_timestamp.timestamp() * 1000) for row in every) - 1
    rows = kafkalog(log_dir, "transactions", at=at).collect()
    result, terms = Transactions((Target(log_dir),)), TransactionTerms(now_ms=0, at_ms=at)
    assert list(result.read(terms)) == []
    expected = [open_row(each, terms) for each in open_transactions(result, terms)]
    expected += [row for is_aborted in (True, False) for row in ended_rows(result, terms, is_aborted=is_aborted)]
    assert sorted(repr(as_shown(row, TRANSACTION)) for row in rows) == sorted(map(repr, expected))
    assert len(rows) > 0
    assert rows != every


def test_headers_alone_are_read_where_no_more_is_asked_for(kafkalog: Any, tmp_path: Path) -> None:
    contents = batches(100)
    contents[5] = contents[5][:-1] + b"?"
    write_segment(tmp_path / "t-0", 0, contents)
    by_crc, by_header = (kafkalog(tmp_path / "t-0", "batches", level=level) for level in ("crc", "headers"))
    assert by_crc.groupBy("crc_valid").count().orderBy("crc_valid").collect() == [(False, 1), (True, 99)]
    assert by_header.groupBy("crc_valid").count().collect() == [(None, 100)]
    assert by_header.selectExpr("sum(record_count)").collect() == [(300,)]


def test_what_lies_before_and_behind_the_offsets_wanted_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = batches(300)
    positions = [sum(map(len, contents[:number])) for number in range(len(contents))]
    log = write_segment(tmp_path / "t-0", 0, contents)
    log.with_suffix(".index").write_bytes(
        b"".join(struct.pack(">II", number * 3, positions[number]) for number in range(10, 300, 10))
    )
    starts, ends = [], []

    def watched(source: Any, batch_range: BatchRange, **options: Any) -> Any:
        starts.append(batch_range.start)
        for chunk in batch_chunks(source, batch_range, chunk_bytes=1000, **options):
            ends.append(int(chunk.table.end_position[-1]))
            yield chunk

    monkeypatch.setattr(log_views, "batch_chunks", watched)
    options = parse_options({"path": str(tmp_path / "t-0"), "startingOffsets": "456", "endingOffsets": "470"})
    reader = KafkaLogReader(options, _schemas(options)[1])
    shares = reader.partitions()
    found = [offset for share in shares for each in reader.read(share) for offset in each["offset"].to_pylist()]
    assert found == list(range(456, 470))
    assert starts == [positions[150]]
    assert max(ends) < positions[200]


def test_ansi_mode_and_a_write(spark: Any, kafkalog: Any, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(10))
    counts = []
    for is_ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", is_ansi)
        frame = kafkalog(tmp_path / "t-0").where("partition = 0 AND timestamp > '2001-01-01' AND offset < 12")
        counts.append(frame.selectExpr("count(*)", "max(CAST(value AS STRING))", "sum(timestampType)").collect())
    spark.conf.unset("spark.sql.ansi.enabled")
    assert counts[0] == counts[1]
    assert counts[0][0][0] == 12
    with pytest.raises(Exception, match="kafkalog reads the logs of brokers and never writes them"):
        frame.write.format("kafkalog").mode("append").save(str(tmp_path / "t-1"))
    assert not (tmp_path / "t-1").exists()


def test_details_and_headers(kafkalog: Any, tmp_path: Path) -> None:
    headers = ((b"a", b"1"), (b"\xff", None))
    contents = [batch(0, [b"x", None], headers=headers), batch(2, [b"y"], key=None), wrapper(1, 3), wrapper(0, 6)]
    write_segment(tmp_path / "t-0", 0, contents)
    rows = kafkalog(tmp_path / "t-0", includeHeaders=True, includeDetails=True).orderBy("offset").collect()
    assert [row.magic for row in rows] == [2, 2, 2, 1, 1, 1, 0, 0, 0]
    assert [(each.key, each.value) for each in rows[0].headers] == [("a", bytearray(b"1")), ("�", None)]
    assert [bytes(each.key) for each in rows[0].raw_headers] == [b"a", b"\xff"]
    assert rows[2].headers is None
    assert rows[8].timestamp is None
    assert rows[8].timestampType == -1
    assert rows[3].timestampType == 0


def test_decoded_values_are_those_of_dump(kafkalog: Any, tmp_path: Path, run_kafkalog: Any) -> None:
    """By the schemas beside the partition, or those of another place; without the options there is no column of it."""
    node = tmp_path / "node"
    partition = write_node(node, [*VALUES, *(order(number, f"customer {number}") for number in range(300))])
    shown = run_kafkalog("dump", "--records", "--value-as", "auto", "--format", "jsonl", partition).rows("record")
    names = [f"{field}_{name}" for field in ("key", "value") for name in ("decoded", "schema_id", "format")]
    expected = [[_as_text(name, row[name]) for name in names] for row in shown]
    assert {row[4] for row in expected} == {"7", "8", "99", None}
    alone = tmp_path / "orders-0"
    shutil.copytree(partition, alone)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "order.avsc").write_text(json.dumps(SCHEMAS[7]))
    for frame in (
        kafkalog(partition, valueAs="auto"),
        kafkalog(node, topics="orders", keyAs="AUTO"),
        kafkalog(alone, schemas=str(node / "_schemas-0"), mode="DROPMALFORMED"),
        kafkalog(partition, valueAs="auto", columns=",".join(["offset", *names])),
    ):
        found = frame.select("offset", *names).orderBy("offset").collect()
        assert [list(row)[1:] for row in found] == expected
    by_file = kafkalog(alone, schemas=str(tmp_path / "files"), schemaOf="orders=order.avsc", keyAs="raw")
    assert by_file.where("value_format = 'avro'").count() == 302
    assert by_file.where("key_decoded IS NOT NULL").count() == 0
    assert not set(kafkalog(partition, valueAs="raw", includeDetails=True).columns) & set(names)
    with pytest.raises(Exception, match="the value does not decode"):
        kafkalog(partition, valueAs="auto", mode="FAILFAST").collect()
    rows = kafkalog(partition, valueAs="auto", columnNameOfCorruptRecord="wrong").where("wrong IS NOT NULL").collect()
    assert [row.offset for row in rows] == [3, 5]


def _as_text(name: str, value: Any) -> str | None:
    """A value of JSON lines as the text that a table has."""
    if value is None or name.endswith("format"):
        return None if value is None else str(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False) if name.endswith("decoded") else str(value)


def test_files_that_vanish_or_cannot_be_read(kafkalog: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "t-0", 0, batches(10))
    other = write_segment(tmp_path / "t-1", 0, batches(10))
    frames = [kafkalog(tmp_path), kafkalog(tmp_path, ignoreMissingFiles=True)]
    other.unlink()
    assert frames[0].count() == 30  # planned when it runs, not when it is defined
    (tmp_path / "t-1" / f"{0:020d}.log").symlink_to("/nowhere")
    assert kafkalog(tmp_path).count() == 30


def test_an_empty_directory_is_an_empty_table(kafkalog: Any, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    assert kafkalog(tmp_path / "t-0").count() == 0
    assert kafkalog(tmp_path / "t-0", "findings").where("severity = 'error'").count() == 0


def test_options_that_cannot_be_say_so() -> None:
    for options, words in (
        ({"path": "x", "mod": "x"}, r"there is no option mod\. Did you mean mode\? The options are view"),
        ({"path": "x", "startingOffset": "1"}, r"Did you mean startingOffsets"),
        ({"path": "x", "mode": "STRICT"}, "PERMISSIVE"),
        ({"path": "x", "startingOffsets": "{"}, "the option startingOffsets is {; it may be earliest"),
        ({"path": "x", "partitions": "a"}, "numbers"),
        ({"path": "x", "partitions": "0,-1"}, "numbers from 0 on"),
        ({"path": "x", "startingOffsets": "-3"}, "of negative ones there is -2, earliest and -1, latest"),
        ({"path": "x", "endingOffsets": '{"t": {"0": -2}}'}, "of negative ones there is -1, latest"),
        ({"path": "x", "endingOffsets": "earliest"}, "it may be latest, a number, or"),
        ({"path": "x", "maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({"paths": "/a,/b"}, "must be a JSON list of paths"),
        ({"paths": '"/a"'}, "must be a JSON list of paths"),
        ({"paths": "[1]"}, "must be a JSON list of paths"),
        ({}, "no path"),
        ({"path": "x", "valueAs": "thrift"}, "the option valueAs is thrift; it may be auto, raw, string"),
        ({"path": "x", "schemaOf": "orders"}, "is not TOPIC=FILE"),
        ({"path": "x", "view": "batches", "valueAs": "auto"}, "valueAs is for the view records, not for batches"),
        ({"path": "x", "view": "offsets", "startingOffsets": "5"}, "records, batches and findings, not for offsets"),
        (
            {"path": "x", "view": "segments", "endingTimestamp": "5"},
            "is for the views records and batches, not for seg",
        ),
        (
            {"path": "x", "view": "offsets", "pathGlobFilter": "0*"},
            "records, batches and index_entries, not for offsets",
        ),
        ({"path": "x", "startingOffsets": "7", "endingOffsets": '{"t": {"0": 6}}'}, "the range of t-0 is empty"),
        (
            {"path": "x", "startingTimestamp": "7", "endingTimestamp": "6"},
            "startingTimestamp lies past endingTimestamp",
        ),
        ({"path": "x", "startingTimestamp": "9" * 19}, "a whole number of at most 64 bits"),
        ({"path": "x", "columnNameOfCorruptRecord": ""}, "the option columnNameOfCorruptRecord is empty"),
    ):
        with pytest.raises(BadOption, match=words):
            parse_options(options)
    assert parse_options({"path": "x", "startingOffsets": "-2", "endingOffsets": "-1"}) == parse_options({"path": "x"})
    assert "pushfilters" not in OPTIONS
    assert not hasattr(KafkaLogDataSource, "pushFilters")
    assert "pushFilters" not in vars(KafkaLogReader)


@pytest.mark.parametrize(
    "offsets",
    [
        *('{"t": {"0": 1.5}}', '{"t": {"0": true}}', '{"t": {"0": 1e400}}', '{"t": {"0": 9223372036854775808}}'),
        *('{"t": {"1_0": 5}}', '{"": {"-1": 5}}', "1_0", "9" * 19),
    ],
)
def test_offsets_are_whole_numbers_of_a_log(offsets: str) -> None:
    """A fraction would be cut, and -1 of no topic would stand for every partition."""
    with pytest.raises(BadOption, match=r"the option startingOffsets is .*; it may be earliest, latest, a number, or"):
        parse_options({"path": "x", "startingOffsets": offsets})


@pytest.mark.parametrize("name", ["topic", "Offset", "path"])
def test_the_column_of_damage_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(BadOption, match=f"columnNameOfCorruptRecord is {name}, which is another column"):
        KafkaLogDataSource({"path": "x", "columnNameOfCorruptRecord": name}).schema()


def test_spark_without_data_sources_in_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql.datasource", None)
    with pytest.raises(
        ImportError,
        match=r"needs Spark 4\.0 or later, which has data sources in Python; this is [0-9].*kafkalog extract",
    ):
        importlib.reload(sys.modules["spark_jobs.data_source"])


def test_the_size_of_a_range_has_a_unit() -> None:
    for given, expected in (("8388608", 8 << 20), ("8MiB", 8 << 20), ("2 kb", 2000), ("1g", 10**9)):
        assert parse_options({"path": "/x", "rangeBytes": given}).range_bytes == expected
    for wrong in ("8 miles", "-1", "0", "1.5MiB"):
        with pytest.raises(BadOption, match="such as 8388608 or 8MiB"):
            parse_options({"path": "/x", "rangeBytes": wrong})


@pytest.mark.parametrize("option", ["maxOffsetsPerTrigger", "failOnDataLoss"])
def test_what_is_for_streams_is_refused(option: str) -> None:
    options = {"path": "x", option: "1" if option.startswith("max") else "false"}
    with pytest.raises(BadOption, match=f"{option} is for readStream: use "):
        KafkaLogDataSource(options).reader(StructType([StructField("offset", LongType())]))


def test_what_cannot_be_read_is_said_in_few_lines(tmp_path: Path) -> None:
    """Spark puts the whole traceback before the message."""
    options = {"path": str(tmp_path / "nothing")}
    reader = KafkaLogDataSource(options).reader(StructType([StructField("offset", LongType())]))
    with pytest.raises(KafkaLogError, match="no such file or directory") as missing:
        reader.partitions()
    with pytest.raises(BadOption, match="there is no option veiw") as unknown:
        KafkaLogDataSource({**options, "veiw": "batches"}).schema()
    for caught in (missing, unknown):
        lines = "".join(traceback.format_exception(caught.value)).splitlines()
        assert sum(" File " in line for line in lines) == 2  # this test, and the call


def test_what_fails_a_task_is_said_in_few_lines(damaged_copy: Path) -> None:
    reader = KafkaLogDataSource({"path": str(damaged_copy), "mode": "FAILFAST"}).reader(
        StructType([StructField("offset", LongType())])
    )
    with pytest.raises(DamagedData, match="position") as caught:
        list(chain.from_iterable(map(reader.read, reader.partitions())))
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert sum(" File " in line for line in lines) == 3  # this test, and the wrapper of the generator


def test_a_path_that_is_not_utf_8_is_escaped(tmp_path: Path) -> None:
    """In every view: the names of directories may have any bytes."""
    place = tmp_path / os.fsdecode(b"caf\xe9")
    log = write_segment(place / "t-0", 0, [*batches(3), b"torn" * 20])
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 1, 100))
    for view in VIEW_NAMES:
        columns = columns_of_view(view, "damage" if view == "records" else None)
        options = {"path": str(place), "view": view, "columns": ",".join(columns)}
        if view == "records":
            options["columnNameOfCorruptRecord"] = "damage"
        parsed = parse_options(options)
        reader = KafkaLogReader(parsed, _schemas(parsed)[1])
        rows = [row for share in reader.partitions() for batch in reader.read(share) for row in batch.to_pylist()]
        assert rows or view == "transactions", view
        assert not rows or "caf\\udce9" in repr(rows).replace("\\\\", "\\"), view
