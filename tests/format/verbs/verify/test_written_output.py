"""The output of a writing verb is verified before it is published: what its source has is reported, once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.codecs import compress
from format.files import offset_checkpoint
from format.files.offset_checkpoint import TopicPartitionOffset
from format.findings import Certainty, Finding, Severity
from format.io.source import FileSource
from format.log.batch_header import header_tables
from format.log.encode_batches import BatchHeader, reseal, seal_batch
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.rebuild_index import IndexRebuilding, rebuild_index
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from format.verbs.salvage import salvage
from tests.building import batch, batches, write_segment
from tests.corpora import DATA_DIR
from tests.oracle.boot_mutations.node import batch_positions
from tests.running import Run


def with_record_count(content: bytes, count: int) -> bytes:
    changed = bytearray(content)
    changed[57:61] = count.to_bytes(4, "big")
    return reseal(changed)


def moved(content: bytes, base_offset: int) -> bytes:
    """The batch at another base offset, which lies outside the CRC."""
    return base_offset.to_bytes(8, "big") + content[8:]


#: Logs that a writer can write, with what verify says of them.
ILL = {
    "record-count-mismatch": [with_record_count(batch(0), 4), batch(3)],
    "record-trailing-bytes": [with_record_count(batch(0), 2), batch(3)],
    "record-invalid": [seal_batch(BatchHeader(0, 0, 1), b"\xff" * 30, codec=0), batch(1)],
    "decompression-failed": [batch(0), seal_batch(BatchHeader(3, 0, 1), compress(1, b"\xff" * 30), codec=4)],
    "leader-epoch-decreasing": [batch(0, leader_epoch=5), batch(3, leader_epoch=4)],
    "offset-gap": [batch(0), batch(9)],
    "max-timestamp-mismatch": [batch(0, max_timestamp=5)],
    "offset-out-of-segment": [batch(0), moved(batch(3), 2**31 + 7)],
}


def reported(verb: str, source: Path, target: Path) -> list[Finding]:
    sources = read_write_sources([source])
    with Publication(target, [source], job=sources.job(verb)) as publication:
        items: Any = {
            "recompress": lambda: recompress(
                sources, publication, Recompression(plan=PlanTerms(TargetFormat(3)), skip_damaged=True)
            ),
            "salvage": lambda: salvage(sources, publication),
            "rebuild-index": lambda: rebuild_index(sources, publication, IndexRebuilding(with_log=True)),
        }[verb]()
        return [each for each in items if isinstance(each, Finding)]


@pytest.mark.parametrize("verb", ["recompress", "salvage", "rebuild-index"])
@pytest.mark.parametrize("code", ILL)
def test_what_verify_says_of_the_source_is_said_of_the_output(tmp_path: Path, verb: str, code: str) -> None:
    write_segment(tmp_path / "t-0", 0, ILL[code])
    found = reported(verb, tmp_path / "t-0", tmp_path / "out")
    # What recompress leaves out for its offset is not in the output; it says so in its own words.
    assert {code, "offset-not-increasing"} & {each.code for each in found}, found
    known = {str(tmp_path / place) for place in ("t-0", "out/t-0")}
    assert {str(Path(each.location.path).parent) for each in found} <= known


@pytest.mark.slow
def test_a_base_offset_that_was_flipped_is_not_passed_over(
    tmp_path: Path, run_kafkalog_many: Callable[..., list[Run]]
) -> None:
    parts = batches(4)
    lines = []
    for number, place in enumerate([*range(4)]):
        for bit in (0, 5, 20, 33):
            wrong = moved(parts[place], (3 * place) ^ (1 << bit))
            source = tmp_path / f"{number}-{bit}" / "t-0"
            write_segment(source, 0, [*parts[:place], wrong, *parts[place + 1 :]])
            write_segment(source, 12, batches(2, 12))
            words = ["recompress", source, "--output", source.parent / "out", "--codec", "lz4", "--format", "jsonl"]
            lines += [words, [*words[:3], source.parent / "other", *words[4:], "--skip-damaged"]]
    for run in run_kafkalog_many(lines):
        run.check(1, 5)
        assert run.rows("finding")


def test_damage_is_reported_once(tmp_path: Path) -> None:
    content = bytearray(b"".join(batches(6)))
    content[len(content) // 2 + 20] ^= 1
    write_segment(tmp_path / "t-0", 0, [bytes(content)])
    assert [each.code for each in reported("salvage", tmp_path / "t-0", tmp_path / "a")] == ["batch-crc-mismatch"]
    found = reported("rebuild-index", tmp_path / "t-0", tmp_path / "b")
    assert [each.code for each in found] == ["batch-crc-mismatch"]
    found = reported("recompress", tmp_path / "t-0", tmp_path / "c")
    assert [each.code for each in found] == ["batch-crc-mismatch"]


def test_the_output_of_a_sound_source_has_nothing_to_report(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(6))
    for verb in ("recompress", "salvage", "rebuild-index"):
        assert reported(verb, tmp_path / "t-0", tmp_path / verb) == []


def test_the_place_of_a_finding_is_that_of_the_published_file(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, ILL["leader-epoch-decreasing"])
    [found] = reported("salvage", tmp_path / "t-0", tmp_path / "out")
    assert found.location.path == str(tmp_path / "out" / "t-0" / log.name)
    assert (found.location.topic, found.location.partition, found.location.position) == ("t", 0, len(batch(0)))


def test_gaps_that_the_cleaner_of_the_source_explains_are_not_reported(tmp_path: Path) -> None:
    source = tmp_path / "node" / "t-0"
    write_segment(source, 0, ILL["offset-gap"])
    assert [each.code for each in reported("recompress", source, tmp_path / "a")] == ["offset-gap"]
    entries = [TopicPartitionOffset("t", 0, 10)]
    (source.parent / "cleaner-offset-checkpoint").write_bytes(offset_checkpoint.write(entries))
    assert reported("recompress", source, tmp_path / "b") == []


def test_a_gap_that_an_index_of_the_source_proves_is_an_error(tmp_path: Path) -> None:
    """A batch was cut out: the old index names an offset of it, and the new one does not."""
    source = shutil.copytree(DATA_DIR / "kafka-4.3-single" / "node-1" / "orders-0", tmp_path / "orders-0")
    log = source / f"{0:020d}.log"
    with FileSource(log) as file:
        table = next(header_tables(file, 0, log.stat().st_size)).unopened()
    first, until = int(table.base_offset[4]), int(table.base_offset[5])
    content = log.read_bytes()
    log.write_bytes(content[: int(table.position[4])] + content[int(table.position[5]) :])
    for number, verb in enumerate(("recompress", "salvage", "rebuild-index")):
        (gap,) = (each for each in reported(verb, source, tmp_path / str(number)) if each.code == "offset-gap")
        assert (gap.severity, gap.certainty) == (Severity.ERROR, Certainty.PROVEN)
        assert gap.lost_offsets == (first, until - 1)
    for index in (*source.glob("*.index"), *source.glob("*.timeindex")):
        index.unlink()  # nothing proves it now: compaction may have removed the records
    (gap,) = (each for each in reported("recompress", source, tmp_path / "unproven") if each.code == "offset-gap")
    assert (gap.severity, gap.lost_offsets) == (Severity.INFO, None)


def test_a_source_without_a_segment_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n0\n")
    for verb in ("recompress", "salvage", "rebuild-index"):
        [found] = reported(verb, tmp_path / "t-0", tmp_path / verb)
        assert (found.code, found.location.path, found.is_incomplete) == (
            "nothing-to-read",
            str(tmp_path / "t-0"),
            True,
        )


def test_no_message_names_the_unfinished_directory(tmp_path: Path) -> None:
    source = tmp_path / "node"
    shutil.copytree(DATA_DIR / "kafka-4.3-single" / "node-1" / "__cluster_metadata-0", source / "__cluster_metadata-0")
    shutil.copy(DATA_DIR / "kafka-4.3-single" / "node-1" / "meta.properties", source)
    whole = (DATA_DIR / "kafka-4.3-single" / "node-1" / "bootstrap.checkpoint").read_bytes()
    sizes = [
        size for _, size, _, _ in batch_positions(DATA_DIR / "kafka-4.3-single" / "node-1" / "bootstrap.checkpoint")
    ]
    # Its first and its last batch, without the records between, stop a broker with a message that names the file.
    (source / "bootstrap.checkpoint").write_bytes(whole[: sizes[0]] + whole[-sizes[-1] :])
    found = reported("salvage", source, tmp_path / "out")
    assert any(f"at {tmp_path / 'out'}" in each.message or str(tmp_path / "out") in each.message for each in found)
    assert not [each for each in found if "partial" in each.message + each.location.path]


def test_no_finding_names_the_partial_directory(tmp_path: Path) -> None:
    node = tmp_path / "node-1"
    partition = node / "clicks-gzip-0"
    shutil.copytree(DATA_DIR / "kafka-4.3-single" / "node-1" / partition.name, partition)
    (log,) = partition.glob("*.log")
    log.write_bytes(log.read_bytes()[:-9])  # the last batch is cut, which is the cause of what follows
    found = reported("rebuild-index", partition, tmp_path / "out")
    causes = [each.caused_by for each in found if each.caused_by is not None]
    assert {str(Path(each.path).parent) for each in causes} <= {str(partition), str(tmp_path / "out" / partition.name)}
    assert causes
    assert ".partial-" not in repr(found)
