"""Directories gone wrong: leftovers, strangers, damage, and logs that cannot be read."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from format.findings import Finding
from format.verbs.ls import partition_listing
from format.verbs.ls.ls import LogDirListing, ls
from format.verbs.ls.partition_listing import PartitionListing, SegmentListing
from tests.faults.plain_kernel import plain_module
from tests.format.verbs.ls.listings import (
    LEDGER,
    batches,
    codes,
    copied,
    listed,
    of_type,
    the_partition,
)


def test_marked_directories(log_dir: Path):
    unique = "0123456789abcdef" * 2
    for mark in ("delete", "future", "stray"):
        copied(log_dir / "sensor-0", log_dir / f"sensor-0.{unique}-{mark}")
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\nsensor 0 42\n")
    items = listed(log_dir)
    found = {each.mark: each for each in of_type(items, PartitionListing)}
    assert set(found) == {None, "delete", "future", "stray"}
    assert all((each.topic, each.partition, each.log_end_offset) == ("sensor", 0, 90) for each in found.values())
    assert {mark: each.high_watermark for mark, each in found.items()} == {
        None: 42,
        "future": 42,
        "delete": None,  # the checkpoint may speak of a topic that was rebuilt
        "stray": None,
    }
    assert codes(items) == ["partition-dir-marked"] * 3
    assert "deletion" in found["delete"].notes


def test_leftovers(log_dir: Path):
    partition = log_dir / "sensor-0"
    for suffix in (".log", ".index", ".timeindex"):
        name = f"00000000000000000015{suffix}"
        (partition / (name + ".deleted")).write_bytes((partition / name).read_bytes())
    (partition / "00000000000000000030.log.cleaned").write_bytes(b"")
    (partition / "00000000000000000000.index.swap").write_bytes(b"")
    items = listed(partition)
    assert codes(items) == ["segment-leftover"] * 3
    whole = the_partition(items)
    assert (whole.segment_count, whole.batch_count, whole.log_end_offset) == (6, 6, 90)
    assert whole.log_size_bytes == sum(each.stat().st_size for each in partition.glob("*.log"))
    assert "1 left as .deleted" in whole.notes
    segments = [(each.segment_base_offset, each.leftover) for each in of_type(items, SegmentListing)]
    assert segments == [
        (0, None),
        (15, None),
        (15, "deleted"),
        (30, None),
        (30, "cleaned"),
        (45, None),
        (60, None),
        (75, None),
    ]
    by_mark = {each.leftover: each for each in of_type(items, SegmentListing)}
    assert by_mark["deleted"].last_offset == 29
    assert by_mark["deleted"].time_index_entries == 1
    (alone,) = listed(partition / "00000000000000000015.log.deleted")
    assert alone == by_mark["deleted"]


def test_orphans_and_missing_indexes(log_dir: Path):
    partition = log_dir / "sensor-0"
    (partition / "00000000000000000015.log").unlink()
    (partition / "00000000000000000030.index").unlink()
    (partition / "00000000000000000030.timeindex").unlink()
    items = listed(partition)
    assert codes(items) == ["index-missing", "index-orphan"]
    whole = the_partition(items)
    assert whole.segment_count == 5
    assert whole.notes == "index-missing; 1 base offset without .log"
    third = of_type(items, SegmentListing)[1]
    assert (third.segment_base_offset, third.index_entries, third.time_index_entries) == (30, None, None)
    assert third.notes == "no .index and .timeindex"


def test_strangers(log_dir: Path):
    partition = log_dir / "sensor-0"
    (log_dir / "lost+found").mkdir()
    (log_dir / "heap.hprof").write_bytes(b"x")
    (log_dir / "elsewhere-0").symlink_to(partition)
    (partition / "notes.txt").write_bytes(b"x")
    (partition / "leader-epoch-checkpoint.tmp").write_bytes(b"x")
    os.mkfifo(partition / "00000000000000000090.log")
    (partition / "00000000000000000091.log").symlink_to("00000000000000000000.log")
    (partition / "00000000000000000092.log").mkdir()
    items = listed(log_dir)
    assert codes(items) == ["entry-unexpected"] * 3 + ["file-unreadable"] * 4 + ["segment-leftover"]
    (header,) = of_type(items, LogDirListing)
    assert header.notes == "unexpected: elsewhere-0, heap.hprof, lost+found"
    assert header.partition_count == 1
    assert the_partition(items).log_end_offset is None  # it may lie in what stands for the last log and is not read
    linked = next(each for each in of_type(items, Finding) if each.location.path.endswith("elsewhere-0"))
    assert "symbolic link" in linked.message


def test_a_name_that_is_not_utf8(log_dir: Path):
    with open(os.fsencode(log_dir) + b"/sensor-0/\xff\x1b[2J", "wb"):
        pass
    items = listed(log_dir)
    assert codes(items) == ["entry-unexpected"]
    assert the_partition(items).notes == "unexpected: \udcff\x1b[2J"


def test_an_empty_partition_directory(log_dir: Path):
    (log_dir / "fresh-3").mkdir()
    found = {each.topic: each for each in of_type(listed(log_dir), PartitionListing)}["fresh"]
    assert (found.segment_count, found.size_bytes, found.log_start_offset, found.log_end_offset) == (0, 0, None, None)
    assert found.notes == "no segments"


def test_a_base_offset_past_63_bits(log_dir: Path):
    path = log_dir / "sensor-0" / "99999999999999999999.log"
    path.write_bytes((log_dir / "sensor-0" / "00000000000000000000.log").read_bytes())
    items = listed(log_dir, segments=True)
    assert codes(items) == ["entry-unexpected"]
    assert the_partition(items).log_end_offset == 90
    assert listed(path)[-1].batch_count == 1


def test_a_torn_tail(log_dir: Path):
    path = log_dir / "sensor-0" / "00000000000000000075.log"
    path.write_bytes(path.read_bytes() + (90).to_bytes(8, "big") + path.read_bytes()[8:100])
    items = listed(log_dir)
    assert codes(items) == ["tail-torn"]
    whole = the_partition(items)
    assert (whole.log_end_offset, whole.notes) == (90, "tail-torn")


def test_a_segment_that_others_follow_is_cut_off(log_dir: Path):
    path = log_dir / "sensor-0" / "00000000000000000015.log"
    path.write_bytes(path.read_bytes()[:-5])
    items = listed(log_dir / "sensor-0")
    assert codes(items) == ["log-truncated"]
    assert of_type(items, SegmentListing)[1].last_offset is None
    assert (the_partition(items).batch_count, the_partition(items).log_end_offset) == (5, 90)


def test_damage_in_the_middle_hides_nothing_after_it(data_dir: Path, tmp_path: Path):
    partition = copied(data_dir / LEDGER, tmp_path / "ledger-0")
    path = partition / "00000000000000000000.log"
    content = bytearray(path.read_bytes())
    second = batches(bytes(content))[1]
    content[second["position"] + 16] = 77
    path.write_bytes(content)
    items = listed(partition)
    assert codes(items) == ["log-framing-broken"]
    whole = the_partition(items)
    assert (whole.batch_count, whole.log_end_offset, whole.notes) == (25, 1300, "log-framing-broken")


def test_many_places_of_damage_are_counted(data_dir: Path, tmp_path: Path):
    place = tmp_path / "00000000000000000000.log"
    content = (data_dir / LEDGER / "00000000000000000000.log").read_bytes()
    pieces = [content[each["position"] : each["end"]] for each in batches(content)]
    place.write_bytes((b"\xee" * 20).join(pieces))
    items = listed(place)
    assert items[-1].batch_count == len(pieces)
    assert codes(items).count("log-framing-broken") == partition_listing.MAX_DAMAGE_FINDINGS + 1
    assert f"{len(pieces) - 1} places" in items[-2].message


def test_an_impossible_offset_does_not_move_the_logs_end(data_dir: Path, tmp_path: Path):
    partition = copied(data_dir / LEDGER, tmp_path / "ledger-0")
    path = partition / "00000000000000000000.log"
    last = batches(path.read_bytes())[-1]["position"]
    for forged in (2**63 - 1, 2**40, -5, -(2**63)):
        content = bytearray(path.read_bytes())
        struct.pack_into(">q", content, last, forged)
        path.write_bytes(content)
        items = listed(partition)
        assert codes(items) == ["offset-out-of-segment"]
        assert the_partition(items).log_end_offset == 1250
        assert the_partition(items).batch_count == 26


def test_overlapping_segments(log_dir: Path):
    partition = log_dir / "sensor-0"
    (partition / "00000000000000000020.log").write_bytes(b"")
    assert codes(listed(partition)) == ["segment-overlap"]


def test_a_checkpoint_past_the_logs_end_tells_of_lost_records(log_dir: Path):
    (log_dir / "replication-offset-checkpoint").write_text("0\n1\nsensor 0 90\n")
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\nsensor 0 60\n")
    assert codes(listed(log_dir)) == []
    for suffix in (".log", ".index", ".timeindex"):
        (log_dir / "sensor-0" / f"00000000000000000075{suffix}").unlink()
    for items in (listed(log_dir), listed(log_dir / "sensor-0")):
        assert codes(items) == ["checkpoint-mismatch"]
        assert the_partition(items).notes == "high watermark past the log end"
        assert (the_partition(items).log_end_offset, the_partition(items).high_watermark) == (75, 90)


def test_checkpoints_and_properties_that_cannot_be_read(log_dir: Path):
    (log_dir / "replication-offset-checkpoint").write_text("0\nmany\n")
    (log_dir / "meta.properties").write_text("version=1\n")
    (log_dir / "sensor-0" / "partition.metadata").write_text("version: 0\ntopic_id: x\n")
    (log_dir / "sensor-0" / "leader-epoch-checkpoint").write_text("0\n1\nx y\n")
    items = listed(log_dir)
    assert codes(items) == ["checkpoint-invalid"] * 4
    (header,) = of_type(items, LogDirListing)
    assert (header.cluster_id, header.notes) == (None, "meta.properties: checkpoint-invalid")
    whole = the_partition(items)
    assert (whole.topic_id, whole.leader_epoch, whole.high_watermark, whole.log_end_offset) == (None, None, None, 90)


def test_side_files_that_are_damaged(log_dir: Path):
    partition = log_dir / "sensor-0"
    (partition / "00000000000000000015.index").write_bytes(b"\0\0\0\1\0\0\0\2\0\0\0")
    (partition / "00000000000000000015.timeindex").write_bytes(b"\xff" * 12)
    (partition / "00000000000000000015.snapshot").write_bytes(b"\0\1\0")
    (partition / "00000000000000000015.txnindex").write_bytes(bytes(35))
    assert codes(listed(log_dir)) == []  # no segment is listed, so no side file is read
    items = listed(partition)
    assert codes(items) == ["index-invalid"] * 3 + ["snapshot-invalid"]
    second = of_type(items, SegmentListing)[1]
    assert (second.index_entries, second.time_index_entries, second.aborted_txns) == (1, None, 1)
    assert second.batch_count == 1


def test_a_partition_that_vanishes_is_reported_and_the_others_are_listed(log_dir: Path):
    for topic in ("alpha", "beta"):
        copied(log_dir / "sensor-0", log_dir / f"{topic}-0")
    stream = ls(log_dir)
    assert isinstance(next(stream), LogDirListing)
    shutil.rmtree(log_dir / "beta-0")
    rest = list(stream)
    assert codes(rest) == ["file-changed"]
    assert [(each.topic, each.log_end_offset) for each in of_type(rest, PartitionListing)] == [
        ("alpha", 90),
        ("beta", None),
        ("sensor", 90),
    ]


def test_a_log_that_cannot_be_read_leaves_its_end_unknown(log_dir: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.pread

    def failing(descriptor: int, length: int, position: int) -> bytes:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("75.log"):
            raise OSError(5, "Input/output error")
        return real(descriptor, length, position)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("no /proc to tell descriptors apart")
    monkeypatch.setattr(os, "pread", failing)
    monkeypatch.setattr(
        partition_listing, "sum_logs", plain_module("headers").sum_logs
    )  # the compiled one calls no os.pread
    items = listed(log_dir / "sensor-0")
    assert codes(items) == ["file-unreadable"]
    assert of_type(items, SegmentListing)[-1].batch_count is None
    whole = the_partition(items)
    assert (whole.log_end_offset, whole.batch_count, whole.first_offset) == (None, 5, 0)
