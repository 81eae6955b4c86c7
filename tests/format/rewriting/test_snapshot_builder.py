"""Producer snapshots of the output: those of real brokers, where the source's do not fit or are missing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from format import layout
from format.files import producer_snapshot
from format.limits import DEFAULT_LIMITS
from format.node.partition import Partition, read_partition, segment_file_name
from format.rewriting.publication import Publication
from format.rewriting.rewriter import written_segment
from format.rewriting.run import rebuild_snapshots
from format.rewriting.sources import read_write_sources
from format.verbs.rebuild_index import IndexRebuilding, rebuild_index
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from format.verbs.salvage import salvage
from format.verbs.verify.verify import verify
from tests.building import batch, write_segment
from tests.corpora import Corpus

pytestmark = pytest.mark.slow

Entries = dict[int, tuple[int, ...]]


def entries_of(path: Path) -> Entries:
    snapshot = producer_snapshot.read(path)
    assert snapshot.problems == ()
    return {values[0]: tuple(values[1:]) for values in zip(*(each.tolist() for each in snapshot.columns), strict=True)}


def snapshot_path(directory: Path, offset: int) -> Path:
    return directory / segment_file_name(offset, layout.PRODUCER_SNAPSHOT_SUFFIX)


def with_snapshots(corpus: Corpus) -> Iterator[Partition]:
    """The partitions that a broker cannot have compacted, with snapshots where segments start or the log ends."""
    for log_dir in corpus.log_dirs:
        for partition in read_write_sources([log_dir]).partitions.values():
            if partition.snapshots and partition.topic is not None and not partition.topic.startswith("__"):
                yield partition


def test_they_hold_what_brokers_wrote(corpus: Corpus, tmp_path: Path) -> None:
    """At a segment's start from the snapshots before it, and at the log's end from the log alone."""
    compared = 0
    for number, partition in enumerate(with_snapshots(corpus)):
        end = max(partition.snapshots)
        logs = {each.base_offset: each.log for each in partition.segments if each.log is not None}
        if min(logs) > 0:
            continue  # the snapshots know of batches before the log
        with Publication(tmp_path / str(number), []) as publication:
            written = [written_segment("p", partition.topic, partition.number, each) for each in logs]
            for each in written:
                publication.write_file(each.path, logs[each.segment_base_offset].read_bytes())
            for offset in set(partition.snapshots) & set(logs):
                lacking = Partition(partition.path, partition.topic, partition.number)
                lacking.snapshots = partition.snapshots
                lacking.segments = [each for each in partition.segments if each.base_offset != offset]
                made = _made(publication, lacking, written, end, set(partition.snapshots) - {offset})
                assert made == {offset: entries_of(partition.snapshots[offset])}, partition.path
                compared += 1
            if end > max(logs):
                made = _made(publication, partition, written, end, None)
                assert made.get(end, {}) == entries_of(partition.snapshots[end]), partition.path
                compared += 1
    assert compared or not any(min(each.snapshots) for each in with_snapshots(corpus))


def _made(
    publication: Publication, partition: Partition, written: list[Any], end: int, carried: set[int] | None
) -> dict[int, Entries]:
    """The snapshots that are built, by offset; they are taken away again."""
    rebuild_snapshots(publication, partition, "p", written, end, carried, limits=DEFAULT_LIMITS)
    found = {int(path.stem): entries_of(path) for path in (publication.path / "p").glob("*.snapshot")}
    for path in (publication.path / "p").glob("*.snapshot"):
        path.unlink()
        publication._files.pop(f"p/{path.name}")
    return found


# -- the commands --------------------------------------------------------------------------------------------


def producing(base_offset: int, sequence: int, producer_id: int = 7) -> bytes:
    return batch(base_offset, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments of two producers, with the snapshots that a broker leaves: of the second segment and of the end."""
    directory = tmp_path / "t-0"
    write_segment(directory, 0, [producing(0, 0), producing(3, 3), producing(6, 0, 8), producing(9, 6)])
    write_segment(directory, 12, [producing(12, 9), producing(15, 12)])
    written = [written_segment("t-0", "t", 0, base_offset) for base_offset in (0, 12)]
    with Publication(tmp_path / "made", []) as publication:
        for each in written:
            publication.write_file(each.path, (tmp_path / each.path).read_bytes())
        source = read_partition(directory)
        source.snapshots = {12: tmp_path, 18: tmp_path}
        rebuild_snapshots(publication, source, "t-0", written, 18, None, limits=DEFAULT_LIMITS)
        shutil.copy(snapshot_path(publication.path / "t-0", 18), directory)
        rebuild_snapshots(publication, source, "t-0", written[:1], 12, None, limits=DEFAULT_LIMITS)
        shutil.copy(snapshot_path(publication.path / "t-0", 12), directory)
    assert entries_of(snapshot_path(directory, 12))[7][:3] == (0, 8, 11)
    return directory


def errors(path: Path) -> list[Any]:
    return [each for each in verify(path) if each.severity >= 1]


def recompressed(source: Path, target: Path, **terms: Any) -> None:
    sources = read_write_sources([source])
    plan = PlanTerms(TargetFormat(layout.CODEC_NAMES.index("none")))
    with Publication(target, [source]) as publication:
        list(recompress(sources, publication, Recompression(plan=plan, **terms)))


def test_a_rolled_segment_gets_one(partition: Path, tmp_path: Path) -> None:
    size_bytes = len(producing(0, 0))
    recompressed(partition, tmp_path / "out", segment_bytes=2 * size_bytes)
    output = tmp_path / "out" / "t-0"
    assert sorted(int(each.stem) for each in output.glob("*.log")) == [0, 6, 12]
    assert sorted(int(each.stem) for each in output.glob("*.snapshot")) == [6, 12, 18]
    assert entries_of(snapshot_path(output, 6)) == {7: (0, 5, 5, 2, 1_700_000_000_005, -1, -1)}
    for offset in (12, 18):
        assert snapshot_path(output, offset).read_bytes() == snapshot_path(partition, offset).read_bytes()
    assert errors(output) == []


def test_a_rolled_segment_keeps_the_one_that_the_source_has_for_it(partition: Path, tmp_path: Path) -> None:
    shutil.copy(snapshot_path(partition, 12), snapshot_path(partition, 6))  # as of a shutdown, within a segment
    recompressed(partition, tmp_path / "out", segment_bytes=2 * len(producing(0, 0)))
    output = tmp_path / "out" / "t-0"
    assert sorted(int(each.stem) for each in output.glob("*.log")) == [0, 6, 12]
    assert sorted(int(each.stem) for each in output.glob("*.snapshot")) == [6, 12, 18]
    assert snapshot_path(output, 6).read_bytes() == snapshot_path(partition, 6).read_bytes()


def test_an_unsound_one_is_built_anew(partition: Path, tmp_path: Path) -> None:
    sound = {offset: entries_of(snapshot_path(partition, offset)) for offset in (12, 18)}
    for broken in ((18,), (12,), (12, 18)):
        source = tmp_path / f"source-{len(broken)}{broken[0]}" / "t-0"
        shutil.copytree(partition, source)
        for offset in broken:
            snapshot_path(source, offset).write_bytes(b"no snapshot")
        recompressed(source, source.parent / "recompressed")
        with Publication(source.parent / "indexed", [source]) as publication:
            list(rebuild_index(read_write_sources([source]), publication, IndexRebuilding(with_log=True)))
        for name in ("recompressed", "indexed"):
            output = source.parent / name / "t-0"
            # With none to carry that of the end is enough: the broker looks at the newest only.
            assert {int(each.stem): entries_of(each) for each in output.glob("*.snapshot")} == (
                sound if len(broken) == 1 else {18: sound[18]}
            )


def test_salvage_builds_that_of_the_end(partition: Path, tmp_path: Path) -> None:
    """The source's speak of batches that are lost; without any a broker that stopped cleanly forgets the producers."""
    log = partition / segment_file_name(12, layout.LOG_SUFFIX)
    content = bytearray(log.read_bytes())
    content[-3] ^= 1
    log.write_bytes(content)
    with Publication(tmp_path / "out", [partition]) as publication:
        list(salvage(read_write_sources([partition]), publication))
    output = tmp_path / "out" / "t-0"
    assert [int(each.stem) for each in output.glob("*.snapshot")] == [15]
    assert entries_of(snapshot_path(output, 15)) == {
        7: (0, 11, 14, 2, 1_700_000_000_014, -1, -1),
        8: (0, 2, 8, 2, 1_700_000_000_008, -1, -1),
    }
    assert errors(output) == []
    with Publication(tmp_path / "one", [log]) as publication:
        list(salvage(read_write_sources([log], takes_files=True), publication))
    assert not list((tmp_path / "one").rglob("*.snapshot"))
