"""rebuild-index: the indexes of brokers, byte for byte, and what happens around damage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from format import layout
from format.files import offset_index, time_index
from format.findings import Finding
from format.layout import MANIFEST
from format.rewriting.index_builder import SegmentIndexBuilder
from format.rewriting.publication import Publication
from format.rewriting.rewriter import WrittenSegment
from format.rewriting.sources import read_write_sources
from format.verbs.rebuild_index import IndexRebuilding, rebuild_index
from tests.building import batch, batches, write_segment
from tests.corpora import Corpus
from tests.sources import BytesSource, read_batch_table

pytestmark = pytest.mark.slow

SUFFIXES = (layout.OFFSET_INDEX_SUFFIX, layout.TIME_INDEX_SUFFIX, layout.TRANSACTION_INDEX_SUFFIX)


def run(source: Path, target: Path, *, with_log: bool = False) -> tuple[list[WrittenSegment], list[Finding]]:
    sources = read_write_sources([source])
    with Publication(target, [source], job=sources.job("rebuild-index")) as publication:
        items = list(rebuild_index(sources, publication, IndexRebuilding(with_log=with_log)))
    return (
        [each for each in items if isinstance(each, WrittenSegment)],
        [each for each in items if isinstance(each, Finding)],
    )


def trimmed(path: Path) -> bytes:
    """An index's entries without the padding of an active segment."""
    base_offset = int(path.name[:20])
    if path.suffix == layout.OFFSET_INDEX_SUFFIX:
        return offset_index.write(offset_index.read(path, base_offset).columns)
    if path.suffix == layout.TIME_INDEX_SUFFIX:
        return time_index.write(time_index.read(path, base_offset).columns)
    return path.read_bytes()


def test_they_are_those_of_the_broker(corpus: Corpus, tmp_path: Path, source_snapshot: Callable[[Path], None]) -> None:
    """Every broker since 2.8 writes these; the killed node's lack only the last entry of the time index."""
    if "0.8" in corpus.id:
        pytest.skip("brokers of that time indexed by append, not by batch")
    for number, log_dir in enumerate(corpus.log_dirs):
        source_snapshot(log_dir)
        run(log_dir, tmp_path / str(number))
        was_stopped = (log_dir / layout.CLEAN_SHUTDOWN).exists()
        seen = 0
        for path in sorted(each for suffix in SUFFIXES for each in log_dir.glob(f"*/*{suffix}")):
            new = tmp_path / str(number) / path.relative_to(log_dir)
            theirs, mine = trimmed(path), new.read_bytes() if new.exists() else b""
            if not was_stopped and path.suffix == layout.TIME_INDEX_SUFFIX:
                assert mine[: len(theirs)] == theirs
            else:
                assert mine == theirs, path
            seen += 1
        assert seen
        logs = [each for each in (tmp_path / str(number)).rglob("*") if each.suffix == ".log"]
        assert logs == []


def test_with_log_everything_comes_along(corpus: Corpus, tmp_path: Path) -> None:
    [log_dir, *_] = corpus.log_dirs
    run(log_dir, tmp_path / "out", with_log=True)
    for path in log_dir.rglob("*"):
        if path.is_file() and path.suffix not in SUFFIXES and not path.name.endswith("checkpoint"):
            if path.name == layout.LOCK:
                continue
            assert (tmp_path / "out" / path.relative_to(log_dir)).read_bytes() == path.read_bytes()


def test_damage_is_reported_and_both_sides_are_indexed(tmp_path: Path) -> None:
    parts = [batch(3 * number, [b"x" * 2000] * 3) for number in range(6)]
    content = bytearray(b"".join(parts))
    content[len(content) // 2 - 10] ^= 1
    write_segment(tmp_path / "t-0", 0, [bytes(content)])
    [segment], [found] = run(tmp_path / "t-0", tmp_path / "out")
    assert found.code == "batch-crc-mismatch"
    assert segment.lost_bytes == len(parts[2])
    index = offset_index.read(tmp_path / "out/t-0" / f"{0:020d}.index", 0)
    assert index.offsets.tolist() == [5, 11, 14, 17]
    assert index.positions.tolist() == [len(parts[0]) * number for number in (1, 3, 4, 5)]


def test_a_gap_that_the_old_index_names_is_reported(tmp_path: Path) -> None:
    """The new index would remove the proof."""
    content = batches(6)
    path = write_segment(tmp_path / "t-0", 0, [*content[:2], *content[3:]])
    assert run(tmp_path / "t-0", tmp_path / "without")[1] == []
    path.with_suffix(".index").write_bytes(offset_index.write(([8], [2 * len(content[0])])))
    (found,) = run(tmp_path / "t-0", tmp_path / "with")[1]
    assert (found.code, found.lost_offsets) == ("offset-gap", (6, 8))


def test_only_indexes_are_written(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    run(tmp_path / "t-0", tmp_path / "out")
    names = sorted(str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*") if each.is_file())
    assert names == [MANIFEST, f"t-0/{0:020d}.index", f"t-0/{0:020d}.timeindex"]


# -- the rules of the builder --------------------------------------------------------------------------------


def built(
    parts: list[bytes], interval_bytes: int, pieces: int = 1
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    table = read_batch_table(BytesSource(b"".join(parts)))
    builder = SegmentIndexBuilder(0, interval_bytes)
    for rows in np.array_split(np.arange(len(table)), pieces):
        builder.feed(table.rows(rows))
    offsets = offset_index.read(BytesSource(builder.offset_index()), 0)
    times = time_index.read(BytesSource(builder.time_index()), 0)
    return (
        list(zip(offsets.offsets.tolist(), offsets.positions.tolist(), strict=True)),
        list(zip(times.timestamps.tolist(), times.offsets.tolist(), strict=True)),
    )


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_entries_lie_more_than_the_interval_apart(pieces: int) -> None:
    parts = batches(7)
    size_bytes = len(parts[0])
    offsets, times = built(parts, 2 * size_bytes, pieces)
    assert offsets == [(11, 3 * size_bytes), (20, 6 * size_bytes)]  # 2 * size is not past the interval
    assert [offset for _, offset in times] == [11, 20]


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_time_entry_names_the_first_batch_with_the_largest_timestamp(pieces: int) -> None:
    parts = [batch(3 * n, timestamp=t, max_timestamp=t) for n, t in enumerate([50, 90, 10, 90, 70, 95, 1])]
    _, times = built(parts, 1, pieces)
    assert times == [(90, 5), (95, 17)]


def test_a_segment_without_timestamps_has_no_time_entries() -> None:
    parts = [batch(3 * n, timestamp=-1, max_timestamp=-1) for n in range(4)]
    assert built(parts, 1)[1] == []
