"""salvage: around any damage every intact batch is kept, none is invented, and every lost offset is listed."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from format import layout
from format.errors import UnreadableFile
from format.files import offset_index
from format.findings import Cause, Finding, Severity
from format.io.source import FileSource
from format.layout import MANIFEST
from format.log.encode_batches import encode_message
from format.rewriting.publication import Publication
from format.rewriting.rewriter import RewritingResult, WrittenSegment
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from format.verbs.verify.verify import verify
from tests.building import batch, batches, wrapper, write_segment
from tests.corpora import Corpus
from tests.oracle.boot_mutations.node import copied_node

pytestmark = pytest.mark.slow

LOG = f"{0:020d}.log"


def run(source: Path, target: Path) -> tuple[list[WrittenSegment], list[Finding], RewritingResult]:
    sources = read_write_sources([source], takes_files=True)
    result = RewritingResult()
    with Publication(target, [source], job=sources.job("salvage")) as publication:
        items = list(salvage(sources, publication, result=result))
    segments = [each for each in items if isinstance(each, WrittenSegment)]
    return segments, [each for each in items if isinstance(each, Finding)], result


def lost_offsets(result: RewritingResult) -> set[int]:
    return {
        offset
        for each in result.losses
        if each.lost_offsets is not None
        for offset in range(each.lost_offsets[0], each.lost_offsets[1] + 1)
    }


# -- whole logs ----------------------------------------------------------------------------------------------


def test_a_sound_corpus_comes_out_as_it_is(
    corpus: Corpus, tmp_path: Path, source_snapshot: Callable[[Path], None]
) -> None:
    for number, log_dir in enumerate(corpus.log_dirs):
        source_snapshot(log_dir)
        target = tmp_path / str(number)
        _, findings, result = run(log_dir, target)
        if corpus.is_shared:  # the shipped ones are excerpts, whose checkpoints speak of more
            assert result.losses == []
        for partition in read_write_sources([log_dir]).partitions.values():
            for segment in partition.segments:
                assert segment.log is not None
                assert (target / partition.path.name / segment.log.name).read_bytes() == segment.log.read_bytes()
        old = {(each.code, each.message) for each in verify(log_dir)}
        new = [each for each in verify(target) if each.severity >= 1]
        assert [each for each in new if (each.code, each.message) not in old] == []
        assert not (target / layout.CLEAN_SHUTDOWN).exists()
        assert [each for each in findings if each.severity >= 2] == []


# -- one damaged range ---------------------------------------------------------------------------------------


def mixed_log() -> list[bytes]:
    """v0, v1 and v2, packed and not, in order of offsets; three offsets a batch."""
    return [
        wrapper(0, 0, codec=1),
        wrapper(0, 3, codec=2),
        wrapper(1, 6, codec=3),
        wrapper(1, 9, codec=1),
        *(batch(12 + 3 * n, [b"value-%d" % n * 9] * 3, codec=n % 5) for n in range(10)),
    ]


@pytest.mark.parametrize("seed", range(60))
def test_one_damaged_range(tmp_path: Path, seed: int) -> None:
    """Overwritten, zeroed, cut out or put in: what does not touch it is kept byte for byte, in order, and no more."""
    rng = random.Random(seed)
    parts = mixed_log()
    content = bytearray(b"".join(parts))
    ends = np.cumsum([len(each) for each in parts]).tolist()
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.choice([1, 2, 8, 40, 300]))
    kind = rng.choice(["random", "zero", "cut", "insert"])
    hit = [s < end and e > start for s, e in zip([0, *ends[:-1]], ends, strict=True)]
    if kind == "random":
        content[start:end] = bytes((byte + rng.randrange(1, 256)) % 256 for byte in content[start:end])
    elif kind == "zero":
        content[start:end] = bytes(end - start)
    elif kind == "cut":
        del content[start:end]
    else:
        content[start:start] = rng.randbytes(end - start)
        hit = [s < start < e for s, e in zip([0, *ends[:-1]], ends, strict=True)]
    write_segment(tmp_path / "t-0", 0, [bytes(content)])
    intact = [each for each, is_hit in zip(parts, hit, strict=True) if not is_hit]
    [segment], _, result = run(tmp_path / "t-0", tmp_path / "out")
    kept = (tmp_path / "out/t-0" / LOG).read_bytes()
    saved = [each for each in parts if each in kept]
    # What was hit only where no CRC looks may still be there; what was not hit must be.
    assert all(each in saved for each in intact), (kind, start, end)
    quarantined = b"".join(each.read_bytes() for each in (tmp_path / "out").glob("*.quarantine"))
    assert segment.size_bytes == len(kept)
    assert segment.lost_bytes == len(content) - len(kept)
    if kind != "insert" and len(kept) != sum(len(each) for each in intact):
        # Bytes outside the CRC were hit: the batch is there with another leader epoch, or apart with other offsets.
        assert len(kept) > sum(map(len, intact)) or quarantined
    last = 12 + 3 * 10
    present = set()
    for number, each in enumerate(parts):
        at = kept.find(each[17:]) if number >= 4 else kept.find(each[12:])
        if at >= 0:
            present |= {3 * number + delta for delta in range(3)}
    missing = set(range(last)) - present
    open_end = {loss.location.offset for loss in result.losses if loss.lost_offsets is None}
    beyond = {offset for offset in missing if any(first is not None and offset >= first for first in open_end)}
    assert missing <= lost_offsets(result) | beyond, (kind, start, end)
    # A leader epoch lies outside the CRC: nothing can tell which of two is wrong, and verify says so.
    bad = [each for each in verify(tmp_path / "out/t-0") if each.severity >= 2]
    assert [each for each in bad if each.code != "leader-epoch-decreasing"] == []


def test_a_wrong_base_offset_costs_one_batch_that_is_put_apart(tmp_path: Path) -> None:
    parts = batches(6)
    wrong = bytearray(parts[2])
    wrong[2] ^= 1
    write_segment(tmp_path / "t-0", 0, [*parts[:2], bytes(wrong), *parts[3:]])
    _, findings, result = run(tmp_path / "t-0", tmp_path / "out")
    assert (tmp_path / "out/t-0" / LOG).read_bytes() == b"".join([*parts[:2], *parts[3:]])
    assert (tmp_path / "out" / f"t-0.{0:020d}.quarantine").read_bytes() == bytes(wrong)
    assert lost_offsets(result) == {6, 7, 8}
    assert [each.code for each in findings] == ["offset-out-of-segment"]


def test_a_batch_image_in_a_value_is_no_batch(tmp_path: Path) -> None:
    image = batch(500)
    parts = [batch(0), batch(3, [image]), batch(4)]
    write_segment(tmp_path / "t-0", 0, parts)
    [segment], _, _ = run(tmp_path / "t-0", tmp_path / "out")
    assert segment.batch_count == 3


def test_a_message_that_cannot_be_opened_is_kept_with_its_bytes(tmp_path: Path) -> None:
    parts = [wrapper(1, 0), encode_message(1, 3, b"k", None, timestamp=1, attributes=1), wrapper(1, 4)]
    write_segment(tmp_path / "t-0", 0, parts)
    run(tmp_path / "t-0", tmp_path / "out")
    assert (tmp_path / "out/t-0" / LOG).read_bytes() == b"".join(parts)


# -- ends ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("has_next", "code"), [(False, "tail-torn"), (True, "log-truncated")])
def test_a_torn_end(tmp_path: Path, has_next: bool, code: str) -> None:
    parts = batches(3)
    write_segment(tmp_path / "t-0", 0, [b"".join(parts)[:-5]])
    if has_next:
        write_segment(tmp_path / "t-0", 9, batches(1, 9))
    _, [found], result = run(tmp_path / "t-0", tmp_path / "out")
    assert (found.code, found.location.offset) == (code, 6)
    assert lost_offsets(result) == ({6, 7, 8} if has_next else set())
    assert result.lost_bytes == len(parts[2]) - 5


def test_a_segment_cut_at_a_boundary_shows_by_the_next(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    write_segment(tmp_path / "t-0", 9, batches(1, 9))
    _, [found], result = run(tmp_path / "t-0", tmp_path / "out")
    assert found.code == "log-truncated"
    assert lost_offsets(result) == {6, 7, 8}


def test_a_log_cut_at_its_end_shows_by_the_checkpoint(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs/t-0", 0, batches(2))
    (tmp_path / "logs/replication-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    (tmp_path / "logs/recovery-point-offset-checkpoint").write_text("0\n2\nt 0 9\ngone 0 5\n")
    _, findings, result = run(tmp_path / "logs", tmp_path / "out")
    assert {each.code for each in findings} == {"checkpoint-mismatch"}
    assert lost_offsets(result) == {6, 7, 8}
    assert (tmp_path / "out/replication-offset-checkpoint").read_text() == "0\n1\nt 0 6\n"
    assert (tmp_path / "out/recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 0\n"


def test_a_torn_end_is_the_cause_of_what_the_checkpoint_misses(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs/t-0", 0, [*batches(2), batches(1, 6)[0][:-5]])
    (tmp_path / "logs/replication-offset-checkpoint").write_text("0\n1\nt 0 99\n")
    (tmp_path / "logs/recovery-point-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    (tmp_path / "logs/.kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":3}')
    _, findings, result = run(tmp_path / "logs", tmp_path / "out")
    torn, end, written = (each for each in findings if each.code in ("tail-torn", "checkpoint-mismatch"))
    assert end.caused_by == Cause.of(torn)
    assert "6 is written instead" in written.message
    assert lost_offsets(result) == {6, 7, 8}  # the log ended at the recovery point when the broker stopped


def test_a_swap_without_a_batch_leaves_no_gap(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    (tmp_path / "t-0" / f"{99:020d}.log.swap").write_bytes(b"garbage")
    _, findings, result = run(tmp_path / "t-0", tmp_path / "out")
    assert [each.code for each in findings] == ["segment-leftover"]
    assert lost_offsets(result) == set()


def test_a_snapshot_past_the_end_of_a_clean_stop_proves_no_loss(tmp_path: Path) -> None:
    write_segment(tmp_path / "logs/t-0", 0, batches(2))
    (tmp_path / "logs/t-0" / f"{99:020d}.snapshot").write_bytes(b"")
    (tmp_path / "logs/recovery-point-offset-checkpoint").write_text("0\n1\nt 0 6\n")
    (tmp_path / "logs/.kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":3}')
    assert lost_offsets(run(tmp_path / "logs", tmp_path / "out")[2]) == set()


def test_a_zero_tail_is_no_loss(tmp_path: Path) -> None:
    parts = batches(2)
    write_segment(tmp_path / "t-0", 0, [*parts, bytes(5000)])
    _, [found], result = run(tmp_path / "t-0", tmp_path / "out")
    assert found.code == "tail-zeros"
    assert result.losses == []
    assert (tmp_path / "out/t-0" / LOG).read_bytes() == b"".join(parts)


def test_nothing_but_garbage(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [b"\x55" * 10_000])
    [segment], _, result = run(tmp_path / "t-0", tmp_path / "out")
    assert (segment.batch_count, segment.size_bytes, result.lost_bytes) == (0, 0, 10_000)


def test_one_file_by_itself(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 30, batches(2, 30))
    run(path, tmp_path / "out")
    assert (tmp_path / "out/t-0" / path.name).read_bytes() == path.read_bytes()
    assert sorted(each.name for each in (tmp_path / "out/t-0").iterdir()) == [
        f"{30:020d}.index", f"{30:020d}.log", f"{30:020d}.timeindex",
    ]  # fmt: skip


def test_the_manifest_is_known_when_the_output_is_verified(tmp_path: Path) -> None:
    write_segment(tmp_path / "a-0", 0, batches(2))
    run(tmp_path / "a-0", tmp_path / "out")
    (tmp_path / "out" / "other.json").touch()
    reported = {
        Path(each.location.path).name: each for each in verify(tmp_path / "out") if each.code == "entry-unexpected"
    }
    assert "kafkalog" in reported[MANIFEST].message
    assert reported[MANIFEST].next_step == "Nothing."
    assert reported["other.json"].next_step == "Move it elsewhere."


def test_an_unreadable_checkpoint_is_reported_once(tmp_path: Path) -> None:
    node = tmp_path / "node"
    for name in ("a-0", "a-1", "b-0"):
        write_segment(node / name, 0, batches(2))
    (node / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (node / layout.RECOVERY_POINT_CHECKPOINT).write_text("0\nmany\n")
    _, findings, _ = run(node, tmp_path / "whole")
    assert [each.code for each in findings].count("checkpoint-invalid") == 1
    sources = read_write_sources([node / "a-0", node / "b-0"])
    with Publication(tmp_path / "parts", [node], job=sources.job("salvage")) as publication:
        items = list(salvage(sources, publication))
    assert [each.code for each in items if isinstance(each, Finding)].count("checkpoint-invalid") == 1


def test_partitions_that_the_metadata_assigns_here_and_that_are_gone(data_dir: Path, tmp_path: Path) -> None:
    """As of a disk that is not mounted: their high watermarks show what they held."""
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    assert [each.code for each in run(node.first, tmp_path / "whole")[2].losses] == []
    shutil.rmtree(node.partition("orders-1"))
    _, findings, result = run(node.first, tmp_path / "out")
    (gone,) = [each for each in findings if each.code == "replica-missing"]
    assert (gone.severity, gone.lost_offsets, gone.location.topic) == (Severity.ERROR, (0, 1165), "orders")
    assert result.losses == [gone]


def test_a_batch_that_was_cut_out_is_a_loss_where_the_old_index_names_it(tmp_path: Path) -> None:
    content = batches(6)
    size = len(content[0])
    path = write_segment(tmp_path / "t-0", 0, [*content[:2], *content[3:]])
    path.with_suffix(".index").write_bytes(offset_index.write(([11], [2 * size])))
    _, findings, result = run(tmp_path / "t-0", tmp_path / "without")
    assert [(each.code, each.severity) for each in findings] == [("offset-gap", Severity.INFO)]
    assert result.losses == []
    path.with_suffix(".index").write_bytes(offset_index.write(([8], [2 * size])))
    _, findings, result = run(tmp_path / "t-0", tmp_path / "with")
    assert [(each.code, each.severity, each.lost_offsets) for each in result.losses] == [
        ("offset-gap", Severity.ERROR, (6, 8))
    ]


@pytest.mark.parametrize("place", [5, 10])
def test_a_repeated_batch_is_no_loss(tmp_path: Path, place: int) -> None:
    """Neither in the middle nor at the end: the segment has its records, and they are kept."""
    sound = batches(10)
    write_segment(tmp_path / "orders-0", 0, [*sound[:place], sound[2], *sound[place:]])
    _, found, result = run(tmp_path / "orders-0", tmp_path / "saved")
    assert [(each.code, each.severity) for each in found] == [("offset-not-increasing", Severity.WARNING)]
    assert found[0].message.endswith("is earlier in the segment, and kept; nothing is lost")
    assert not result.losses
    assert result.lost_bytes == 0
    assert (tmp_path / "saved" / "orders-0" / LOG).read_bytes() == b"".join(sound)


@pytest.mark.parametrize("again", [30, 75, 200])
def test_the_start_of_a_log_after_its_end_is_no_loss(tmp_path: Path, again: int) -> None:
    """Also the first bytes of a batch, which are those of a kept one, if they hold its CRC."""
    whole = b"".join(batches(10))
    write_segment(tmp_path / "orders-0", 0, [whole, whole[:again]])
    _, found, result = run(tmp_path / "orders-0", tmp_path / "saved")
    assert [each.message.endswith("; nothing is lost") for each in found] == [True]
    assert not result.losses
    assert (tmp_path / "saved" / "orders-0" / LOG).read_bytes() == whole


def test_a_torn_end_after_repeated_batches_is_told_before_them(tmp_path: Path) -> None:
    sound = batches(10)
    write_segment(tmp_path / "orders-0", 0, [*sound, sound[0], sound[1], batch(30)[:40]])
    _, (found,), result = run(tmp_path / "orders-0", tmp_path / "saved")
    assert (
        "40 bytes of a batch header; 2 batches of it are earlier in the segment, and kept; the records" in found.message
    )
    assert result.lost_bytes == 40


def test_a_batch_of_the_same_offsets_with_other_records_is_a_loss(tmp_path: Path) -> None:
    sound = batches(10)
    other = batch(2, [b"another"])
    write_segment(tmp_path / "orders-0", 0, [*sound, other])
    _, found, _ = run(tmp_path / "orders-0", tmp_path / "saved")
    assert [each.severity for each in found] == [Severity.ERROR]
    assert "nothing is lost" not in found[0].message


def test_the_manifest_lists_the_losses(tmp_path: Path) -> None:
    content = bytearray(b"".join(batches(3)))
    content[-1] ^= 1
    write_segment(tmp_path / "t-0", 0, [bytes(content)])
    _, _, result = run(tmp_path / "t-0", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    [loss] = manifest["losses"]
    assert (loss["code"], loss["length"], loss["offset"]) == ("batch-crc-mismatch", result.lost_bytes, 6)


# -- a failing disk ------------------------------------------------------------------------------------------


def test_what_the_disk_does_not_give_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = batches(400, values=20)
    path = write_segment(tmp_path / "t-0", 0, parts)
    bad = range(40_960, 45_056)
    real = os.pread

    def failing(fd: int, length: int, position: int) -> bytes:
        if os.fstat(fd).st_ino == inode and position < bad.stop and position + length > bad.start:
            raise OSError(5, "Input/output error")
        return real(fd, length, position)

    inode = path.stat().st_ino
    monkeypatch.setattr(os, "pread", failing)
    _, findings, result = run(tmp_path / "t-0", tmp_path / "out")
    ends = np.cumsum([len(each) for each in parts]).tolist()
    starts = [0, *ends[:-1]]
    kept = [p for p, s, e in zip(parts, starts, ends, strict=True) if e <= bad.start or s >= bad.stop]
    assert (tmp_path / "out/t-0" / LOG).read_bytes() == b"".join(kept)
    assert "could not be read from the disk" in findings[0].message
    assert len(lost_offsets(result)) == 20 * (400 - len(kept))


def test_a_log_that_cannot_be_opened_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    write_segment(tmp_path / "t-0", 6, batches(2, 6))
    from format.rewriting import segment_rewriting as room

    def opened(path: Path) -> FileSource:
        if path.name == LOG:
            raise UnreadableFile("cannot open: Input/output error")
        return FileSource(path)

    monkeypatch.setattr(room, "FileSource", opened)
    segments, _, result = run(tmp_path / "t-0", tmp_path / "out")
    assert [each.segment_base_offset for each in segments] == [6]
    assert lost_offsets(result) == set(range(6))
