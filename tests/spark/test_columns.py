"""Columns that a query names: the same values as in the whole view, and no more work than they need."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from crc32c import crc32c

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from pyspark.sql import Row

from spark_jobs import log_views
from spark_jobs.data_source import KafkaLogReader, _schemas
from spark_jobs.view_options import parse_options
from tests.building import batch, write_segment
from tests.corpora import Corpus

FROM_HEADERS = "topic, partition, offset, timestampType, path, broker_id"


COLUMNS = (FROM_HEADERS, "offset", "timestamp,offset", "key", "batch_base_offset,headers")


@pytest.mark.parametrize(
    "narrowed", [{}, {"startingOffsets": "7", "endingOffsets": "44"}, {"startingTimestamp": 1_700_000_000_000}]
)
def test_named_columns_are_those_of_the_whole_view(
    kafkalog: Any, corpus: Corpus, damaged_copy: Path, narrowed: dict[str, Any]
) -> None:
    for path in (*corpus.log_dirs, damaged_copy):
        whole = kafkalog(path, includeHeaders=True, includeDetails=True, **narrowed)
        rows = whole.collect()
        for columns in COLUMNS:
            names = [each.strip() for each in columns.split(",")]
            pruned = kafkalog(path, columns=columns, **narrowed)
            assert pruned.schema == whole.select(*names).schema
            expected = Counter(repr(Row(**{name: row[name] for name in names})) for row in rows)
            assert Counter(map(repr, pruned.collect())) == expected


def test_a_schema_with_some_of_the_columns(spark: Any, kafkalog: Any, data_dir: Path) -> None:
    path = str(data_dir / "kafka-4.3-single" / "node-1")
    whole = kafkalog(path)
    schema = "offset BIGINT, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, topic STRING"
    given = spark.read.schema(schema).format("kafkalog").load(path)
    assert given.columns == ["offset", "headers", "topic"]
    assert given.count() == whole.count()
    assert given.where("headers IS NOT NULL").count() > 0
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW few (offset BIGINT, topic STRING) USING kafkalog OPTIONS (path '{path}')"
    )
    ends = spark.sql("SELECT topic, max(offset) FROM few GROUP BY topic ORDER BY topic").collect()
    assert ends == whole.groupBy("topic").agg({"offset": "max"}).orderBy("topic").collect()
    with_case = spark.read.schema("OFFSET BIGINT, TimestampType INT").format("kafkalog").load(path)
    assert with_case.columns == ["OFFSET", "TimestampType"]
    assert Counter(with_case.collect()) == Counter(whole.select("offset", "timestampType").collect())
    for wrong in ("offset INT", "ofset BIGINT", "offset BIGINT, extra STRING"):
        with pytest.raises(Exception, match="give some of its columns"):
            spark.read.schema(wrong).format("kafkalog").load(path).collect()
    with pytest.raises(Exception, match="give one of the two"):
        spark.read.schema("topic STRING").format("kafkalog").option("columns", "offset").load(path).collect()


def test_columns_of_the_other_views(kafkalog: Any, damaged_copy: Path) -> None:
    for view, columns in (
        ("batches", "codec, size_bytes, topic"),
        ("segments", "topic,broker_id,size_bytes"),
        ("findings", "message,code"),
        ("offsets", "high_watermark"),
        ("index_entries", "offset,kind"),
        ("transactions", "producer_id,state"),
    ):
        names = [each.strip() for each in columns.split(",")]
        expected = kafkalog(damaged_copy, view).select(*names)
        pruned = kafkalog(damaged_copy, view, columns=columns)
        assert pruned.schema == expected.schema
        assert Counter(map(repr, pruned.collect())) == Counter(map(repr, expected.collect()))


def test_wrong_columns(kafkalog: Any, tmp_path: Path) -> None:
    for wrong, words in (
        (
            {"columns": "offset,nothing"},
            "names nothing, which is not a column; the columns of the view records are key, value",
        ),
        ({"columns": "offset,offset"}, "names one twice"),
        ({"columns": "offset,OFFSET"}, "names one twice"),
        ({"columns": " , "}, "names nothing"),
        ({"columns": "offset", "includeValue": False}, "leave out includeValue"),
    ):
        with pytest.raises(Exception, match=words):
            kafkalog(tmp_path, **wrong)


def test_the_case_of_columns_does_not_count(kafkalog: Any, tmp_path: Path) -> None:
    write_segment(tmp_path / "t-3", 0, [batch(0, [b"a", b"b"])])
    frame = kafkalog(tmp_path, columns="Offset, PARTITION")
    assert frame.columns == ["offset", "partition"]
    assert sorted(map(tuple, frame.collect())) == [(0, 3), (1, 3)]


def test_rows_that_follow_from_headers_decompress_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_segment(tmp_path / "t-3", 0, [batch(base, [b"value"] * 9, codec=4) for base in range(0, 900, 9)])
    read: list[int] = []
    tables = log_views.record_tables

    def watched(chunk: Any, which: Any, **options: Any) -> Any:
        read.append(int(which.sum()))
        return tables(chunk, which=which, **options)

    monkeypatch.setattr(log_views, "record_tables", watched)

    def offsets(**given: str) -> list[int]:
        options = parse_options({"path": str(tmp_path / "t-3"), "columns": "offset,partition", **given})
        reader = KafkaLogReader(options, _schemas(options)[1])
        rows = [each for share in reader.partitions() for each in reader.read(share)]
        assert {number for each in rows for number in each["partition"].to_pylist()} == {3}
        return [offset for each in rows for offset in each["offset"].to_pylist()]

    assert offsets() == list(range(900))
    assert sum(read) == 0
    assert sorted(offsets(startingOffsets="100", endingOffsets="800")) == list(range(100, 800))
    assert sum(read) == 2  # the batches at the two ends
    # A header that names more records than the batch has room for is not taken at its word.
    odd = bytearray(log.read_bytes() + batch(900, [b"value"] * 2))
    at = log.stat().st_size
    odd[at + 23 : at + 27] = struct.pack(">i", 99_999)  # last offset delta
    odd[at + 57 : at + 61] = struct.pack(">i", 100_000)  # record count
    odd[at + 17 : at + 21] = struct.pack(">I", crc32c(bytes(odd[at + 21 :])))
    log.write_bytes(odd)
    assert len(offsets()) == 902
    assert sum(read) == 3
