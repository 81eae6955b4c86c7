"""recompress: every record of every corpus under every codec, and what it does with each kind of batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from format import layout
from format.codecs import compress
from format.errors import OutputError, Refused
from format.findings import Finding
from format.io.source import FileSource
from format.layout import MANIFEST
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.log.batch_table import whole_batches
from format.log.encode_batches import BatchHeader, encode_message, seal_batch
from format.log.walker import batch_chunks
from format.rewriting.publication import Publication
from format.rewriting.read_back import ReadBackMismatch
from format.rewriting.rewriter import WrittenSegment
from format.rewriting.sources import read_write_sources
from format.rows.record_rows import RowBlock
from format.verbs.recompress import new_batches
from format.verbs.recompress.estimate import explain_recompress
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from format.verbs.verify.verify import verify
from tests.building import batch, batches, wrapper, write_segment
from tests.corpora import Corpus
from tests.dumping import dump
from tests.sources import BytesSource, read_batch_table

pytestmark = pytest.mark.long

CODECS = layout.CODEC_NAMES
#: Columns of RECORD that another batch, codec or place changes.
_OF_THE_PLACE = ("codec", "batch_base_offset", "segment_base_offset", "position", "size_bytes")


Outcome = tuple[list[WrittenSegment], list[Finding]]


def run(source: Path | list[Path], target: Path, codec: str, **terms: Any) -> Outcome:
    plan_names = ("force", "merge_bytes")
    plan = {name: terms.pop(name) for name in plan_names if name in terms}
    wanted = TargetFormat(CODECS.index(codec), terms.pop("level", None), terms.pop("magic", None))
    paths = source if isinstance(source, list) else [source]
    sources = read_write_sources(paths)
    with Publication(target, paths, job=sources.job("recompress", codec=codec)) as publication:
        items = list(recompress(sources, publication, Recompression(plan=PlanTerms(wanted, **plan), **terms)))
    return (
        [each for each in items if isinstance(each, WrittenSegment)],
        [each for each in items if isinstance(each, Finding)],
    )


def records(path: Path, *, drop: tuple[str, ...] = _OF_THE_PLACE) -> Iterator[tuple[Any, ...]]:
    """Every record below a path, without what belongs to its place."""
    for block in dump(path, records=True):
        if isinstance(block, RowBlock):
            keep = [number for number, name in enumerate(block.schema.names) if name not in drop]
            for row in block.rows:
                yield tuple(row[number] for number in keep)
        else:
            assert block.severity < 2, block


def codecs_of(directory: Path) -> set[str]:
    found = set()
    for path in directory.glob("*.log"):
        with FileSource(path) as source:
            table = read_batch_table(source, check_crc=True)
        assert (table.crc_valid == 1).all()
        found |= {CODECS[codec] for codec in table.codec[~table.is_control & (table.record_count != 0)].tolist()}
    return found


# -- the corpora ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_every_record_of_every_partition(
    corpus: Corpus, tmp_path: Path, codec: str, source_snapshot: Callable[[Path], None]
) -> None:
    for number, log_dir in enumerate(corpus.log_dirs):
        source_snapshot(log_dir)
        target = tmp_path / str(number)
        magic = 2 if codec == "zstd" else None
        run(log_dir, target, codec, magic=magic)
        drop = _OF_THE_PLACE if magic is None else (*_OF_THE_PLACE, *_OF_THE_FORMAT)
        for partition in read_write_sources([log_dir]).partitions.values():
            theirs = list(records(partition.path, drop=drop))
            mine = list(records(target / partition.path.name, drop=drop))
            assert mine == theirs, partition.path
            if theirs and partition.topic != layout.CLUSTER_METADATA_TOPIC:
                assert codecs_of(target / partition.path.name) <= {codec}
        old = {(each.code, each.message) for each in verify(log_dir)}
        assert [each for each in verify(target) if each.severity >= 1 and (each.code, each.message) not in old] == []
        assert json.loads((target / MANIFEST).read_text())["skipped"] == []


#: What a record of v0 or v1 has otherwise once it is in v2.
_OF_THE_FORMAT = ("magic", "timestamp", "timestamp_type", "headers", "leader_epoch", "producer_id", "producer_epoch",
                  "sequence", "is_transactional", "is_control")  # fmt: skip


def test_converted_messages_keep_their_timestamps(legacy_corpus: Corpus, tmp_path: Path) -> None:
    [log_dir] = legacy_corpus.log_dirs
    run(log_dir, tmp_path / "out", "none", magic=2)
    columns = ("offset", "timestamp", "timestamp_type", "headers")
    old, new = ({}, {})
    for found, path in ((old, log_dir), (new, tmp_path / "out")):
        for block in dump(path / "legacy-0", records=True):
            assert isinstance(block, RowBlock)
            for row in block.rows:
                values = dict(zip(block.schema.names, row, strict=True))
                found[values["offset"]] = tuple(values[name] for name in columns)
                if found is new:
                    assert values["magic"] == 2
    assert new.keys() == old.keys()
    for offset, (_, timestamp, kind, headers) in old.items():
        if kind == "NoTimestampType":
            assert new[offset] == (offset, -1, "CreateTime", [])
        else:
            assert new[offset] == (offset, timestamp, kind, headers or [])


# -- kinds of batches ----------------------------------------------------------------------------------------


def table_of(path: Path) -> Any:
    with FileSource(path) as source:
        return read_batch_table(source, check_crc=True)


def test_a_batch_with_the_codec_is_copied_unless_forced(tmp_path: Path) -> None:
    content = b"".join(batches(3, codec=1, values=50))
    write_segment(tmp_path / "t-0", 0, [content])
    [segment], _ = run(tmp_path / "t-0", tmp_path / "copied", "gzip")
    assert (segment.copied_count, segment.recompressed_count) == (3, 0)
    assert (tmp_path / "copied/t-0" / f"{0:020d}.log").read_bytes() == content
    [segment], _ = run(tmp_path / "t-0", tmp_path / "forced", "gzip", force=True, level=9)
    assert (segment.copied_count, segment.recompressed_count) == (0, 3)
    assert list(records(tmp_path / "forced/t-0")) == list(records(tmp_path / "t-0"))


@pytest.mark.parametrize("codec", CODECS)
def test_header_fields_stay(tmp_path: Path, codec: str) -> None:
    fields = {"leader_epoch": 7, "producer_id": 5, "producer_epoch": 3, "base_sequence": 2**31 - 2}
    horizon = layout.DELETE_HORIZON_BIT | layout.TRANSACTIONAL_BIT
    # Compaction left three of ten offsets, and a delete horizon in the place of the base timestamp.
    write_segment(
        tmp_path / "t-0",
        10,
        [
            batch(10, attributes=horizon, last_offset_delta=9, **fields),
            batch(20, attributes=layout.TIMESTAMP_TYPE_BIT, max_timestamp=99, codec=4),
            batch(30, (), last_offset_delta=4, **fields),
        ],
    )
    run(tmp_path / "t-0", tmp_path / "out", codec)
    old, new = (table_of(tmp_path / each / f"{10:020d}.log") for each in ("t-0", "out/t-0"))
    for name in ("base_offset", "last_offset_delta", "record_count", "leader_epoch", "base_timestamp", "max_timestamp",
                 "producer_id", "producer_epoch", "base_sequence", "magic"):  # fmt: skip
        assert np.array_equal(getattr(old, name), getattr(new, name)), name
    assert np.array_equal(old.attributes & ~layout.CODEC_MASK, new.attributes & ~layout.CODEC_MASK)
    assert new.codec.tolist() == [CODECS.index(codec)] * 2 + [0]
    assert list(records(tmp_path / "out/t-0")) == list(records(tmp_path / "t-0"))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("old", "new"), [("gzip", "lz4"), ("gzip", "none"), ("snappy", "gzip"), ("lz4", "snappy")])
def test_legacy_wrappers(tmp_path: Path, magic: int, old: str, new: str) -> None:
    content = [wrapper(magic, 10 * number, codec=CODECS.index(old)) for number in range(3)]
    write_segment(tmp_path / "t-0", 0, content)
    [segment], _ = run(tmp_path / "t-0", tmp_path / "out", new)
    assert list(records(tmp_path / "out/t-0")) == list(records(tmp_path / "t-0"))
    assert table_of(tmp_path / "out/t-0" / f"{0:020d}.log").magic.tolist() == [magic] * (9 if new == "none" else 3)
    assert (segment.rebuilt_count, segment.recompressed_count) == ((9, 0) if new == "none" else (0, 3))


@pytest.mark.parametrize("magic", [0, 1])
def test_zstd_is_refused_for_old_formats(tmp_path: Path, magic: int) -> None:
    write_segment(tmp_path / "t-0", 0, [wrapper(magic, 0)])
    with pytest.raises(Refused, match=r"zstd.*--magic 2"):
        run(tmp_path / "t-0", tmp_path / "out", "zstd")
    assert not (tmp_path / "out").exists()
    run(tmp_path / "t-0", tmp_path / "out", "zstd", magic=2)
    assert codecs_of(tmp_path / "out/t-0") == {"zstd"}


# -- merging and splitting -----------------------------------------------------------------------------------


def test_neighbours_without_producers_are_merged(tmp_path: Path) -> None:
    content = [
        *batches(4),
        batch(12, leader_epoch=1),
        batch(15, leader_epoch=1, producer_id=9, producer_epoch=0, base_sequence=0),
        batch(18, leader_epoch=1, producer_id=9, producer_epoch=0, base_sequence=3),
        batch(21, leader_epoch=1, headers=((b"h", None),), key=None),
        batch(40, leader_epoch=1, timestamp=5),
    ]
    write_segment(tmp_path / "t-0", 0, content)
    [segment], _ = run(tmp_path / "t-0", tmp_path / "out", "lz4", merge_bytes=10_000)
    table = table_of(tmp_path / "out/t-0" / f"{0:020d}.log")
    assert table.base_offset.tolist() == [0, 12, 15, 18, 21]
    assert table.last_offset.tolist() == [11, 14, 17, 20, 42]
    assert segment.rebuilt_count == 2
    drop = (*_OF_THE_PLACE,)
    assert list(records(tmp_path / "out/t-0", drop=drop)) == list(records(tmp_path / "t-0", drop=drop))


def test_merging_stops_at_the_size(tmp_path: Path) -> None:
    content = batches(6)
    write_segment(tmp_path / "t-0", 0, content)
    run(tmp_path / "t-0", tmp_path / "out", "none", merge_bytes=2 * len(content[0]))
    assert table_of(tmp_path / "out/t-0" / f"{0:020d}.log").record_count.tolist() == [6, 6, 6]


def test_append_times_are_merged_only_when_equal(tmp_path: Path) -> None:
    attributes = layout.TIMESTAMP_TYPE_BIT
    content = [batch(3 * n, attributes=attributes, max_timestamp=1000 + n // 2) for n in range(4)]
    write_segment(tmp_path / "t-0", 0, content)
    run(tmp_path / "t-0", tmp_path / "out", "gzip", merge_bytes=10_000)
    assert table_of(tmp_path / "out/t-0" / f"{0:020d}.log").max_timestamp.tolist() == [1000, 1001]
    assert list(records(tmp_path / "out/t-0")) == list(records(tmp_path / "t-0"))


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_old_messages_are_packed(tmp_path: Path, magic: int) -> None:
    content = [encode_message(magic, offset, b"k", b"v%d" % offset, timestamp=offset) for offset in (0, 1, 5, 9)]
    write_segment(tmp_path / "t-0", 0, content)
    run(tmp_path / "t-0", tmp_path / "one", "gzip")
    assert len(table_of(tmp_path / "one/t-0" / f"{0:020d}.log")) == 4
    run(tmp_path / "t-0", tmp_path / "all", "gzip", merge_bytes=10_000)
    assert len(table_of(tmp_path / "all/t-0" / f"{0:020d}.log")) == 1
    for name in ("one", "all"):
        assert list(records(tmp_path / name / "t-0")) == list(records(tmp_path / "t-0"))


def test_a_segment_past_its_size_is_split_as_a_broker_rolls(tmp_path: Path) -> None:
    content = batches(10)
    size_bytes = len(content[0])
    write_segment(tmp_path / "t-0", 0, content)
    segments, _ = run(tmp_path / "t-0", tmp_path / "out", "none", segment_bytes=4 * size_bytes + 1)
    assert [each.segment_base_offset for each in segments] == [0, 12, 24]
    assert [each.size_bytes for each in segments] == [4 * size_bytes, 4 * size_bytes, 2 * size_bytes]
    assert list(records(tmp_path / "out/t-0")) == list(records(tmp_path / "t-0"))
    assert [each for each in verify(tmp_path / "out/t-0") if each.severity >= 1] == []


def test_a_segment_past_32_bits_of_offsets_is_refused(tmp_path: Path) -> None:
    """No broker writes one: it rolls the segment first. So a base offset is damaged."""
    write_segment(tmp_path / "t-0", 0, [batch(0), batch(2**31 - 2, codec=1), batch(2**31 + 5)])
    with pytest.raises(Refused):
        run(tmp_path / "t-0", tmp_path / "out", "zstd")


# -- damage --------------------------------------------------------------------------------------------------


def damaged(tmp_path: Path) -> Path:
    content = bytearray(b"".join(batches(9, values=20)))
    content[len(content) // 2] ^= 1
    write_segment(tmp_path / "t-0", 0, [bytes(content)])
    return tmp_path / "t-0"


def test_a_damaged_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="salvage"):
        run(damaged(tmp_path), tmp_path / "out", "zstd")
    assert not (tmp_path / "out").exists()


def test_damage_is_skipped_and_listed(tmp_path: Path) -> None:
    [segment], findings = run(damaged(tmp_path), tmp_path / "out", "zstd", skip_damaged=True)
    assert (segment.batch_count, segment.lost_bytes) == (8, segment.source_bytes // 9)
    assert [each.lost_offsets for each in findings] == [(80, 99)]
    assert json.loads((tmp_path / "out" / MANIFEST).read_text())["skipped"][0]["lost_offsets"] == [80, 99]


def test_what_cannot_be_decompressed_is_refused_or_copied(tmp_path: Path) -> None:
    broken = seal_batch(BatchHeader(3, 2, 3), b"no zstd frame", codec=4)
    write_segment(tmp_path / "t-0", 0, [batch(0), broken, batch(6)])
    with pytest.raises(Refused):
        run(tmp_path / "t-0", tmp_path / "out", "lz4")
    [segment], findings = run(tmp_path / "t-0", tmp_path / "out", "lz4", skip_damaged=True)
    assert (segment.copied_count, segment.recompressed_count, segment.lost_bytes) == (1, 2, 0)
    assert [each.code for each in findings] == ["decompression-failed"]
    assert broken in (tmp_path / "out/t-0" / f"{0:020d}.log").read_bytes()


def null_wrapper(magic: int) -> bytes:
    return encode_message(magic, 3, b"k", None, timestamp=1, attributes=1)


def unreadable_wrapper(magic: int) -> bytes:
    """A gzip message around bytes that are no message set."""
    return encode_message(magic, 3, b"k", compress(1, b"\xff" * 40, magic=magic), timestamp=1, attributes=1)


@pytest.mark.parametrize("codec", ["none", "lz4", "gzip"])
@pytest.mark.parametrize("merge_bytes", [0, 10_000])
@pytest.mark.parametrize(
    "content",
    [
        [encode_message(1, 2, b"k", b"v", timestamp=1), null_wrapper(1), encode_message(1, 4, b"k", b"v", timestamp=1)],
        [wrapper(0, 0), null_wrapper(0), wrapper(0, 4)],
        [wrapper(1, 0), unreadable_wrapper(1), wrapper(1, 4)],
        [batch(0), seal_batch(BatchHeader(3, 0, 1), b"\xff" * 20, codec=0), batch(4), batch(7)],
        [batch(0, codec=1), seal_batch(BatchHeader(3, 0, 1), compress(3, b"\xff" * 20), codec=3), batch(4, codec=1)],
    ],
    ids=["null-v1", "null-v0", "unreadable-wrapper", "unreadable-record", "unreadable-compressed-record"],
)
def test_one_batch_that_cannot_be_read_costs_no_other(
    tmp_path: Path, codec: str, merge_bytes: int, content: list[bytes]
) -> None:
    write_segment(tmp_path / "t-0", 0, content)
    terms: dict[str, Any] = {"skip_damaged": True, "merge_bytes": merge_bytes}
    run(tmp_path / "t-0", tmp_path / "out", codec, **terms)
    table = table_of(tmp_path / "out/t-0" / f"{0:020d}.log")
    assert int(table.last_offset[-1]) == int(table_of(tmp_path / "t-0" / f"{0:020d}.log").last_offset[-1])
    assert (table.crc_valid == 1).all()


def test_batches_in_disorder_are_refused(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0), batch(6), batch(3)])
    with pytest.raises(Refused):
        run(tmp_path / "t-0", tmp_path / "out", "lz4")


@pytest.mark.parametrize("what", ["value", "key", "timestamp", "offset", "header", "lost", "extra"])
def test_a_wrong_output_is_noticed_before_it_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0), batch(3), batch(6)])
    wrong = {
        "value": [batch(3, (b"a", b"B", b"c"))],
        "key": [batch(3, key=None)],
        "timestamp": [batch(3, timestamp=1)],
        "offset": [batch(4)],
        "header": [batch(3, leader_epoch=1)],
        "lost": [batch(3, (), last_offset_delta=2)],
        "extra": [batch(3, (b"a", b"b"), last_offset_delta=2)],
    }[what]
    recompressed = new_batches.recompressed

    def falsified(*arguments: Any) -> Any:
        made, error = recompressed(*arguments)
        number = list(made.first_offsets).index(3)
        sizes_bytes = whole_batches(made.content, 0, len(made)).size_bytes
        contents = [bytes(each.content) for each in made.each(sizes_bytes)]
        contents[number] = b"".join(wrong)
        return replace(made, content=b"".join(contents)), error

    monkeypatch.setattr(new_batches, "recompressed", falsified)
    with pytest.raises(ReadBackMismatch):
        run(tmp_path / "t-0", tmp_path / "out", "gzip")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["t-0"]


@pytest.mark.parametrize("what", ["value", "key", "timestamp", "offset", "headers", "null", "lost", "extra"])
def test_a_wrong_merged_batch_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    content = [batch(3 * number, headers=((b"h", b"%d" % number),)) for number in range(40)]
    write_segment(tmp_path / "t-0", 0, content)
    wrong = {
        "value": batch(60, (b"a", b"B", b"c"), headers=((b"h", b"20"),)),
        "key": batch(60, key=b"K", headers=((b"h", b"20"),)),
        "timestamp": batch(60, timestamp=1, headers=((b"h", b"20"),)),
        "offset": batch(61, (b"b", b"c"), headers=((b"h", b"20"),)),
        "headers": batch(60, headers=((b"h", b"21"),)),
        "null": batch(60, (b"a", None, b"c"), headers=((b"h", b"20"),)),
        "lost": batch(60, (), last_offset_delta=2),
        "extra": batch(60, (b"a", b"b"), headers=((b"h", b"20"),), last_offset_delta=2),
    }[what]
    rebuilt = new_batches.rebuilt

    def falsified(chunk: Any, rows: Any, *more: Any) -> Any:
        source = BytesSource(b"".join([*content[:20], wrong, *content[21:]]))
        [other] = batch_chunks(source)
        return rebuilt(other, rows, *more)

    terms: dict[str, Any] = {"merge_bytes": 500}
    run(tmp_path / "t-0", tmp_path / "right", "gzip", **terms)
    monkeypatch.setattr(new_batches, "rebuilt", falsified)
    with pytest.raises(ReadBackMismatch):
        run(tmp_path / "t-0", tmp_path / "out", "gzip", **terms)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["right", "t-0"]


def test_headers_that_say_the_same_in_other_bytes_are_no_difference() -> None:
    from format.log.encode_batches import BatchHeader, encode_batch
    from format.rewriting.read_back import ChunkRows, compare
    from tests.record_encoder import NewRecord, encode_record

    record = encode_record(NewRecord(0, 0, b"k", b"v", ((b"name", b"x"),)))
    at = record.index(b"name") - 1
    longer = bytes((record[0] + 2,)) + record[1:at] + b"\x88\x00" + record[at + 1 :]  # the length 4 in two bytes
    [[mine], [same], [other]] = (
        batch_chunks(BytesSource(encode_batch(BatchHeader(0, 0, 1), each)))
        for each in (record, longer, record.replace(b"name", b"nama"))
    )
    rows = np.arange(1)
    compare([ChunkRows(mine, rows)], [ChunkRows(same, rows)], DEFAULT_LIMITS, Location(""))
    with pytest.raises(ReadBackMismatch, match="offset 0 differs in headers"):
        compare([ChunkRows(mine, rows)], [ChunkRows(other, rows)], DEFAULT_LIMITS, Location(""))


def test_two_partitions_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_segment(tmp_path / name / "t-0", 0, batches(1))
    with pytest.raises(Exception, match="two sources"):
        run([tmp_path / "a" / "t-0", tmp_path / "b" / "t-0"], tmp_path / "out", "lz4")


def test_explain_says_why(tmp_path: Path) -> None:
    write_segment(
        tmp_path / "t-0",
        0,
        [
            wrapper(1, 0, codec=1),
            batch(3, codec=4),
            batch(6, codec=3),
            batch(9, attributes=layout.CONTROL_BIT | layout.TRANSACTIONAL_BIT),
            batch(12, ()),
        ],
    )
    sources = read_write_sources([tmp_path / "t-0"])
    for target, reasons in (
        (TargetFormat(4), ["zstd-needs-v2", "same-codec", "codec-differs", "control-batch", "no-records"]),
        (TargetFormat(4, None, 2), ["format-conversion", "same-codec", "codec-differs", "control-batch", "no-records"]),
        (TargetFormat(0), ["legacy-unpacked", "codec-differs", "codec-differs", "control-batch", "no-records"]),
    ):
        items: Any = explain_recompress(sources, PlanTerms(target), limits=DEFAULT_LIMITS)
        rows = [row for item in items for row in item]
        assert [row[-2] for row in rows] == reasons


def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, batches(2))
    with pytest.raises(OutputError):
        run(tmp_path / "t-0", tmp_path / "missing" / "out", "gzip")
