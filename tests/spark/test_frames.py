"""``read_view``: views whose partitions several tasks read have the rows of the data source, which reads them whole."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow.parquet as pq

from format.columns import FINDING
from pyspark_kafkalog import read_view
from spark_jobs import planning, tasks
from spark_jobs.data_source import _schemas
from spark_jobs.view_options import VIEW_NAMES, parse_options
from spark_jobs.view_reader import WALKS, KafkaLogReader
from tests.building import batches, write_segment
from tests.spark.scanning import Printed
from tests.spark.test_views import damage

#: The views of one transaction's state that are compared have one clock.
_OPTIONS: dict[str, dict[str, Any]] = {"findings": {}, "transactions": {"at": 1_900_000_000_000}}


def _rows(frame: Any) -> Counter[str]:
    return Counter(map(repr, frame.collect()))


def _log_dirs(data_dir: Path, damaged_copy: Path) -> list[Path]:
    """Sound logs, logs with transactions, and damaged ones."""
    return [
        data_dir / "kafka-4.3-single" / "node-1",
        data_dir / "trials" / "transactions" / "node-1",
        damaged_copy,
    ]


@pytest.mark.parametrize("view", WALKS)
def test_the_rows_are_those_of_the_data_source(
    spark: Any, kafkalog: Any, data_dir: Path, damaged_copy: Path, view: str
) -> None:
    compared = 0
    for log_dir in _log_dirs(data_dir, damaged_copy):
        whole = kafkalog(log_dir, view, **_OPTIONS[view])
        expected = _rows(whole)
        compared += expected.total()
        for options in ({"rangeBytes": 700}, {"minPartitions": 5}, {}):
            cut = read_view(spark, view, log_dir, **options, **_OPTIONS[view])
            assert cut.schema == whole.schema
            assert _rows(cut) == expected, (log_dir, options)
    assert compared > 10


def _in_parts(directory: Path, view: str, range_bytes: int) -> tuple[int, int]:
    """Compare the rows of parts with those of whole partitions; returns the number of logs, and how many parts fit."""
    given = {"path": str(directory), "view": view, "rangeBytes": str(range_bytes)}
    options = parse_options(given | {name: str(value) for name, value in _OPTIONS[view].items()})
    reader, walk = KafkaLogReader(options, _schemas(options)[1]), WALKS[view]
    made, query = reader.planned(2, folds=True)
    items = [item for task in made.tasks for item in task if isinstance(item, planning.LogPart)]
    results = sorted(
        (result for item in items for result in tasks.results_of_part(item, walk)),
        key=lambda each: (each.unit, each.phase, each.segment, each.part, each.step),
    )
    travelled = list(tasks.results_in(tasks.as_batches(results)))
    count = fitting = 0
    for number, content in made.split.items():
        unit = planning.unpacked(content)
        own = [each for each in travelled if each.unit == number]
        for log in unit.logs:
            statuses = [each.value for each in own if each.phase == tasks.STATUS and each.segment == log.number]
            count, fitting = count + 1, fitting + tasks.parts_fit(log, statuses)
        driver: tasks.ReplayedParts = tasks.ReplayedParts(walk, unit, iter(own))
        rows, expected = (
            [repr(row) for batch in reader.folded(unit.unit, query, each) for row in batch.to_pylist()]
            for each in (driver, None)
        )
        assert rows == expected, directory
    return count, fitting


@pytest.mark.parametrize("view", WALKS)
def test_parts_of_damaged_logs_are_as_the_whole_ones(data_dir: Path, tmp_path: Path, view: str) -> None:
    """Parts of sound logs are folded; a log whose parts do not fit, as it is damaged, is read whole by the fold."""
    roots = _log_dirs(data_dir, tmp_path)
    logs = sorted((log for root in roots for log in root.rglob("*.log") if log.stat().st_size > 2500), key=str)
    rng = random.Random(3)
    counts = fitting = 0
    for number in range(60):
        log = rng.choice(logs)
        directory = tmp_path / str(number) / log.parent.name
        shutil.copytree(log.parent, directory)
        for _ in range(rng.randrange(3)):
            damage(directory / log.name, rng)
        if number % 3 == 0:
            (directory / log.name).with_suffix(".index").unlink(missing_ok=True)
        found = _in_parts(directory, view, rng.choice((500, 1000, 3000)))
        counts, fitting = counts + found[0], fitting + found[1]
    assert 10 < fitting < counts - 10


def test_a_large_partition_is_many_tasks_of_equal_bytes(tmp_path: Path) -> None:
    for number in range(8):
        with (tmp_path / f"{number * 1000:020d}.log").open("wb") as log:
            log.truncate(1 << 30)
    directory = tmp_path.rename(tmp_path.parent / "t-0")
    for view, most_bytes in (("findings", 1 << 26), ("transactions", 1 << 28)):
        options = parse_options({"path": str(directory), "view": view})
        reader = KafkaLogReader(options, _schemas(options)[1])
        assert len(reader.partitions()) == 1
        made, _ = reader.planned(2, folds=True)
        sizes = [sum(item.size_bytes for item in task) for task in made.tasks]
        assert sizes == [most_bytes] * (2**33 // most_bytes)
        assert len(made.split) == 1


def test_all_views_and_their_options(spark: Any, kafkalog: Any, tmp_path: Path) -> None:
    for name in ("a-0", "a-1", "b-0"):
        write_segment(tmp_path / name, 0, [*batches(3), b"torn"])
    for view in VIEW_NAMES:
        assert _rows(read_view(spark, view, tmp_path)) == _rows(kafkalog(tmp_path, view)), view
    columns = "CODE,partition"
    few = read_view(spark, "findings", [tmp_path / "a-0", str(tmp_path / "b-0")], columns=columns, topics="b")
    assert few.columns == ["code", "partition"]
    assert ("tail-torn", 0) in [tuple(row) for row in few.collect()]
    for options, words in (
        ({"topics": "c"}, "no partition of the topic c"),
        ({"mode": "FAILFAST"}, "is for the views"),
    ):
        with pytest.raises(Exception, match=words):
            read_view(spark, "findings", tmp_path, **options)


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_executors_write_the_table_of_a_report_set(
    spark: Any, damaged_copy: Path, tmp_path: Path, printed: Callable[..., Printed], kind: str
) -> None:
    """The findings of a log directory in any format that Spark has are those of ``scan verify --output``."""
    output, written = tmp_path / "report", str(tmp_path / "written")
    printed("scan", "verify", damaged_copy, "--output", output)
    found = read_view(spark, "findings", damaged_copy, rangeBytes=3000)
    found.write.format(kind).partitionBy("broker_id").save(written)
    expected = pq.read_table(output / "findings").select(FINDING.names).to_pylist()
    rows = spark.read.format(kind).load(written).select(*FINDING.names).collect()
    texts = {"lost_offsets", "caused_by"}

    def plain(row: dict[str, Any]) -> str:
        return repr({name: row[name] for name in FINDING.names if name not in texts})

    assert Counter(plain(row.asDict()) for row in rows) == Counter(map(plain, expected))
    lost = [json.loads(row["lost_offsets"]) for row in expected if row["lost_offsets"]]
    assert sorted(map(list, lost)) == sorted(list(row["lost_offsets"]) for row in rows if row["lost_offsets"])
