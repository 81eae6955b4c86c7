"""Views of logs that are damaged and cut in ranges: rows and damage are those of the whole log."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

from format.columns import BATCH
from format.findings import Finding
from format.rows.record_rows import RowBlock
from spark_jobs import log_views, planning
from spark_jobs.data_source import _schemas
from spark_jobs.schemas import columns_of_view, view_schema
from spark_jobs.view_options import ReadOptions, parse_options
from spark_jobs.view_reader import KafkaLogReader, plan_logs
from tests.building import batches, write_segment
from tests.dumping import dump

_COLUMNS = columns_of_view("records")
_RECORDS = view_schema(_COLUMNS, _COLUMNS)[1]


def _cut(directory: Path, range_bytes: int, view: str) -> tuple[Counter[str], Counter[Finding]]:
    rows: Counter[str] = Counter()
    reported: Counter[Finding] = Counter()

    def tell(found: Finding) -> None:
        reported[found] += 1

    for task in plan_logs([directory], range_bytes=range_bytes).tasks:
        for item in task:
            made = (
                log_views.batches(item, ReadOptions(()), tell)
                if view == "batches"
                else log_views.records(item, ReadOptions(()), _RECORDS, tell)
            )
            for each in made:
                columns = each.columns[:-1] if view == "batches" else each.columns  # but for the path
                rows.update(map(repr, zip(*(column.to_pylist() for column in columns), strict=True)))
    return rows, reported


def _shown(directory: Path) -> Counter[str]:
    blocks = (each for each in dump(directory) if isinstance(each, RowBlock) and each.schema is BATCH)
    return Counter(repr(row) for block in blocks for row in block.rows)


def damage(log: Path, rng: random.Random) -> None:
    """Damage a log in one of several ways."""
    content = bytearray(log.read_bytes())
    at = rng.randrange(len(content))
    how = rng.randrange(6)
    if how == 0:
        content[at] ^= 1 << rng.randrange(8)
    elif how == 1:
        del content[at:]
    elif how == 2:
        content[at : at + 300] = bytes(len(content[at : at + 300]))
    elif how == 3:
        content[8:12] = rng.choice((300, 5000, 2**31 - 1)).to_bytes(4, "big")
    elif how == 4:
        del content[at : at + rng.randrange(400)]
    else:  # what lies there once more, in the middle of something else
        from_there = rng.randrange(len(content))
        content[at:at] = content[from_there : from_there + rng.randrange(2000)]
    log.write_bytes(content)


@pytest.mark.parametrize("view", ["batches", "records"])
def test_a_damaged_log_in_ranges_is_as_the_whole_one(data_dir: Path, tmp_path: Path, view: str) -> None:
    logs: list[Any] = sorted((data_dir / "kafka-4.3-single" / "node-1").rglob("*.log"))
    logs = [each for each in logs if each.stat().st_size > 2500]
    rng = random.Random(1)
    told_of_damage = 0
    for number in range(80):
        log = rng.choice(logs)
        directory = tmp_path / str(number) / log.parent.name
        shutil.copytree(log.parent, directory)
        damage(directory / log.name, rng)
        if number % 3 == 0:
            (directory / log.name).with_suffix(".index").unlink(missing_ok=True)
        expected = _cut(directory, 2**40, view)
        told_of_damage += len(expected[1])
        assert _cut(directory, rng.choice((400, 700, 1500, 3000)), view) == expected, (number, log)
        if view == "batches":
            assert expected[0] == _shown(directory)
    assert told_of_damage > 40


def test_the_segments_of_a_large_partition_are_listed_by_several_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are those of the partition as a whole, with that of a deleted segment."""
    monkeypatch.setattr(planning, "SMALLEST_TASK_BYTES", 1)
    partition = tmp_path / "t-0"
    for number in range(3):
        write_segment(partition, number * 1000, [*batches(40, number * 1000)[:-1], b"torn"])
    write_segment(partition, 5000, batches(5, 5000))
    (partition / f"{5000:020d}.log").rename(partition / f"{5000:020d}.log.deleted")

    def listed(**options: str) -> tuple[int, list[Any]]:
        parsed = parse_options({"path": str(partition), "view": "segments", **options})
        reader = KafkaLogReader(parsed, _schemas(parsed)[1])
        shares = reader.partitions()
        rows = (row for share in shares for each in reader.read(share) for row in each.to_pylist())
        return len(shares), sorted(map(repr, rows))

    count, rows = listed(rangeBytes="1000")
    assert (count, rows) == (4, listed()[1])
    assert listed()[0] == 1
    assert len(rows) == 4
