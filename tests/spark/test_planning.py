"""The memory of plans: the driver needs no more for many segments than for few."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kafkalog[spark]'")

import pyarrow as pa

from format.node.log_dir import Checkpoints
from format.verbs.verify.verify import PartitionDirectory, VerifyScan
from spark_jobs import planning, stream_reader
from spark_jobs.planning import plan_units
from spark_jobs.stream_reader import KafkaLogStreamReader
from spark_jobs.view_options import parse_options
from spark_jobs.view_reader import KafkaLogReader, Share

_SCHEMA = pa.schema([pa.field("offset", pa.int64())])
_PARTITIONS = 60
_SEGMENTS = 10


def _make(root: Path, partitions: int) -> Path:
    """Partitions of ten segments of 1 GiB, which are holes."""
    for number in range(partitions):
        directory = root / f"topic-{number}"
        directory.mkdir(parents=True)
        for segment in range(_SEGMENTS):
            with (directory / f"{segment * 1000:020d}.log").open("wb") as log:
                log.truncate(1 << 30)
    (root / "meta.properties").write_text("version=1\nnode.id=1\n")
    return root


def _of_query(root: Path) -> int:
    shares = KafkaLogReader(parse_options({"path": str(root)}), _SCHEMA).partitions()
    return sum(len(each.items) for each in shares if isinstance(each, Share))


def _of_stream(root: Path) -> int:
    reader = KafkaLogStreamReader(parse_options({"path": str(root)}), _SCHEMA)
    start = reader.initialOffset()
    shares = reader.partitions(start, reader.latestOffset(start))
    return sum(len(each.items) for each in shares if isinstance(each, Share))


def _peak(planned: Callable[[], int]) -> int:
    """The most bytes that a plan takes."""
    gc.collect()  # finalizers of what other tests left
    tracemalloc.start()
    try:
        assert planned() > 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _growth(few: Callable[[], int], many: Callable[[], int]) -> int:
    """How many more bytes the plan of many takes."""
    few()  # what is imported and cached
    peaks = [min(_peak(each) for _ in range(2)) for each in (few, many)]
    return peaks[1] - peaks[0]


@pytest.mark.parametrize("planned", [_of_query, _of_stream])
def test_memory_does_not_grow_with_segments(
    planned: Callable[[Path], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A segment takes its share of the name of its partition, and its place in the file of tasks."""
    monkeypatch.setattr(planning, "_MOST_BYTES_IN_MEMORY", 4096)
    monkeypatch.setattr(planning, "_IN_A_GROUP", 8)
    monkeypatch.setattr(stream_reader, "log_end_of", lambda partition: _SEGMENTS * 1000)
    few, many = _make(tmp_path / "few", 10), _make(tmp_path / "many", _PARTITIONS)
    assert _growth(partial(planned, few), partial(planned, many)) < 400 * (_PARTITIONS - 10) * _SEGMENTS


def test_many_small_units_are_read_by_several_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has so many units that all cores have work, and the jobs follow each other in the order of the units."""
    monkeypatch.setattr(planning, "_ITEMS_OF_A_JOB", 100)
    monkeypatch.setattr(planning, "_MOST_ITEMS_IN_A_TASK", 8)

    def jobs(parallelism: int) -> list[list[int]]:
        many = (PartitionDirectory(tmp_path / f"topic-{number}", Checkpoints()) for number in range(1000))
        plans = plan_units(VerifyScan(), many, parallelism=parallelism)
        return [[item.number for task in each.tasks for item in task] for each in plans]  # type: ignore[union-attr]

    for parallelism, expected in ((1, 100), (2, 128), (5, 320), (20, 1280)):
        found = jobs(parallelism)
        assert [len(each) for each in found[:-1]] == [expected] * (len(found) - 1), parallelism
        assert [*chain.from_iterable(found)] == [*range(1000)]


def test_memory_does_not_grow_with_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_MOST_BYTES_IN_MEMORY", 4096)

    def of_units(count: int) -> int:
        many = (PartitionDirectory(tmp_path / f"topic-{number}", Checkpoints()) for number in range(count))
        return sum(sum(map(len, each.tasks)) for each in plan_units(VerifyScan(), many, parallelism=2))

    assert of_units(300) == 300
    assert _growth(partial(of_units, 300), partial(of_units, 3000)) < 100 * 2700
