"""The directory that extract writes is read as one data set by the libraries that data engineers use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from format.findings import Finding
from format.layout import DATA_SET_MANIFEST
from format.rewriting.publication import Publication
from format.verbs.extract import Extraction, ParquetFormat, extract, extract_job, extract_sources
from tests.building import BASE_TIMESTAMP, batch, batches, write_segment

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions: records 0 to 5, and 0 to 2, of which the last batch has timestamps that no calendar has."""
    root = tmp_path_factory.mktemp("node")
    write_segment(root / "orders-0", 0, batches(2))
    write_segment(root / "orders-1", 0, [batch(0, [b"a", b"b"]), batch(2, [b"c"], timestamp=2**63 - 1)])
    terms = Extraction(ParquetFormat())
    found = extract_sources([root / "orders-0", root / "orders-1"], terms)
    output = root / "records"
    with Publication(output, [root / "orders-0"], job=extract_job([root], found), manifest=DATA_SET_MANIFEST) as into:
        assert not [each for each in extract(found, into, terms) if isinstance(each, Finding)]
    return output


def test_the_manifest_is_hidden_from_readers(data_set: Path) -> None:
    assert sorted(path.name for path in data_set.iterdir()) == ["_manifest.json", "topic=orders"]


def test_arrow(data_set: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    table = dataset.dataset(data_set, partitioning="hive").to_table()
    assert table.num_rows == 9
    assert table.schema.field("timestamp").type == pa.timestamp("ms", "UTC")
    assert table.column("timestamp").cast(pa.int64()).to_pylist()[-1] == 2**63 - 1


def _pandas(path: Path) -> list[Any]:
    frame = pytest.importorskip("pandas", reason="pandas is not installed").read_parquet(path)
    return [each.to_pydatetime() for each in frame[(frame.partition == 0)].sort_values("offset").timestamp]


def _polars(path: Path) -> list[Any]:
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    frame = polars.read_parquet(path / "**/*.parquet", hive_partitioning=True).filter(polars.col("partition") == 0)
    return list(frame.sort("offset")["timestamp"])


def _duckdb(path: Path) -> list[Any]:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    rows = duckdb.sql(f"SELECT epoch_ms(timestamp) FROM '{path}/**/*.parquet' WHERE partition = 0 ORDER BY \"offset\"")
    return [datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=row[0]) for row in rows.fetchall()]


@pytest.mark.parametrize("read", [_pandas, _polars, _duckdb])
def test_other_libraries(data_set: Path, read: Callable[[Path], list[Any]]) -> None:
    first = datetime.fromtimestamp(BASE_TIMESTAMP / 1000, UTC)
    assert read(data_set) == [first + timedelta(milliseconds=number) for number in range(6)]
