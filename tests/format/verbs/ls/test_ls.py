"""ls: the listings against what clients saw, the file system and an independent walk; and directories gone wrong."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from format.columns import LOG_DIR, PARTITION, SEGMENT
from format.errors import InputError, NotALogDir
from format.findings import Finding
from format.node.log_dir import Kind
from format.node.target import Target
from format.verbs.ls.ls import SORT_KEYS, LogDirListing
from format.verbs.ls.partition_listing import PartitionListing, SegmentListing
from tests.corpora import Corpus
from tests.format.verbs.ls.listings import (
    CODECS,
    LEDGER,
    LEGACY,
    SENSOR,
    USERS,
    batches,
    codes,
    copied,
    listed,
    of_type,
    the_partition,
)
from tests.oracle.dump_log_parser import parse_dump_log

# -- what real brokers wrote -------------------------------------------------------------------------------------


def test_offsets_are_those_that_clients_saw(corpus: Corpus):
    truth = corpus.truth_json("watermarks")
    compared = 0
    for log_dir in corpus.log_dirs:
        for found in of_type(listed(log_dir), PartitionListing):
            seen = truth.get(f"{found.topic}-{found.partition}")
            if seen is not None:
                assert found.log_end_offset == seen["high_watermark"], found.path
                assert found.high_watermark == seen["high_watermark"], found.path
                assert found.log_start_offset == seen["log_start_offset"], found.path
                compared += 1
    # Of the cluster only two partitions ship; everywhere else there is a replica of each that clients read.
    assert compared >= (len(truth) if corpus.id != "kafka-4.3" else 1)


def test_healthy_corpora_give_no_finding_above_info(corpus: Corpus):
    for log_dir in corpus.log_dirs:
        loud = [each for each in of_type(listed(log_dir, segments=True), Finding) if each.severity > 0]
        assert not loud


def test_sizes_and_counts_are_those_of_the_files(corpus: Corpus):
    for log_dir in corpus.log_dirs:
        items = listed(log_dir, segments=True)
        header = items[[isinstance(each, LogDirListing) for each in items].index(True)]
        assert header.size_bytes == sum(each.stat().st_size for each in log_dir.rglob("*") if each.is_file())
        assert header.partition_count == sum(each.parent == log_dir for each in corpus.partitions()) > 0
        for found in of_type(items, PartitionListing):
            files = [each for each in Path(found.path).iterdir() if each.is_file()]
            logs = [each for each in files if each.suffix == ".log"]
            assert found.size_bytes == sum(each.stat().st_size for each in files)
            assert found.log_size_bytes == sum(each.stat().st_size for each in logs)
            assert found.segment_count == len(logs)
        for found in of_type(items, SegmentListing):
            assert found.size_bytes == os.stat(found.path).st_size


def test_batches_are_those_of_an_independent_walk(corpus: Corpus):
    for log_dir in corpus.log_dirs:
        items = listed(log_dir, segments=True)
        of_partition: dict[str, list[dict[str, int]]] = {}
        for found in of_type(items, SegmentListing):
            walked = batches(Path(found.path).read_bytes())
            of_partition.setdefault(os.path.dirname(found.path), []).extend(walked)
            compare_with_walk(found, walked)
        for found in of_type(items, PartitionListing):
            compare_with_walk(found, of_partition[found.path])


def compare_with_walk(found: Any, walked: list[dict[str, int]]) -> None:
    assert found.batch_count == len(walked)
    counts = [sum(each["codec"] == number for each in walked) for number in range(5)]
    expected = ",".join(f"{name}:{count}" for name, count in zip(CODECS, counts, strict=True) if count)
    assert found.codecs == (expected or None)
    assert found.magics == (",".join(str(each) for each in sorted({each["magic"] for each in walked})) or None)
    latest = max((each["max_timestamp"] for each in walked), default=-1)
    assert found.max_timestamp == (None if latest == -1 else latest)
    if isinstance(found, SegmentListing):
        assert found.last_offset == (walked[-1]["last_offset"] if walked else None)


def test_index_entries_are_those_that_are_not_zero(corpus: Corpus):
    for log_dir in corpus.log_dirs:
        for found in of_type(listed(log_dir, segments=True), SegmentListing):
            log = Path(found.path)
            for suffix, size_bytes, count in (
                (".index", 8, found.index_entries),
                (".timeindex", 12, found.time_index_entries),
            ):
                content = log.with_suffix(suffix).read_bytes()
                slots = [content[at : at + size_bytes] for at in range(0, len(content), size_bytes)]
                assert count == sum(any(slot) for slot in slots)
            for suffix, skip, size_bytes, count in (
                (".txnindex", 0, 34, found.aborted_txns),
                (".snapshot", 10, 46, found.snapshot_producers),
            ):
                path = log.with_suffix(suffix)
                assert count == ((path.stat().st_size - skip) // size_bytes if path.exists() else None)


@pytest.mark.oracle
def test_segments_are_what_kafka_dump_log_says(kafka_lab: Any, data_dir: Path):
    logs = [data_dir / each / "00000000000000000000.log" for each in (LEDGER, USERS, SENSOR)]
    done = kafka_lab("4.3.1", "--files", ",".join(map(str, logs)))
    for path, dumped in parse_dump_log(done.stdout).items():
        (found,) = listed(Path(path))
        assert found.batch_count == len(dumped.batches)
        assert found.first_offset == dumped.batches[0]["base_offset"]
        assert found.last_offset == dumped.batches[-1]["last_offset"]
        assert found.max_timestamp == max(each["timestamp"] for each in dumped.batches)
        codecs = Counter(each["codec"] for each in dumped.batches)
        assert dict(pair.split(":") for pair in found.codecs.split(",")) == {
            name: str(count) for name, count in codecs.items()
        }


def test_a_log_dir_says_whose_it_is(data_dir: Path):
    header = listed(data_dir / "kafka-4.3-single" / "node-1")[0]
    assert (header.cluster_id, header.node_id) == ("sLZZJDpNSA-KeEwGHaxFSA", 1)
    assert (header.directory_id, header.clean_shutdown, header.lock_held) == ("qdjf3iRK0hQ-aXAzdHP3xg", True, False)
    assert header.notes is None

    killed = listed(data_dir / "kafka-4.3" / "node-1")
    (header,) = of_type(killed, LogDirListing)
    assert header.clean_shutdown is False
    assert "no clean shutdown" in header.notes
    assert "checkpoints name " in header.notes  # the excerpt lacks most of its partitions
    assert set(codes(killed)) == {"unclean-shutdown", "checkpoint-stale-entry"}


def test_a_partition_finds_the_checkpoints_beside_it(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(data_dir / USERS)
    for place in (data_dir / USERS, Path("."), Path("../users-0")):
        found = the_partition(listed(place))
        got = (found.high_watermark, found.recovery_point, found.cleaner_offset, found.leader_epoch)
        assert got == (1000, 1000, 750, 0), place
        assert (found.topic, found.log_end_offset) == ("users", 1000)
    alone = the_partition(listed(copied(data_dir / USERS, tmp_path / "users-0")))
    assert (alone.high_watermark, alone.recovery_point, alone.cleaner_offset) == (None, None, None)
    assert alone.log_end_offset == 1000
    assert alone.topic_id is not None


def test_a_delete_horizon_is_no_timestamp(data_dir: Path):
    first = of_type(listed(data_dir / USERS), SegmentListing)[0]
    header = Path(first.path).read_bytes()[:61]
    assert header[22] & 0x40, "the first batch was to have a delete horizon"
    assert first.first_timestamp is None
    assert first.max_timestamp is not None


def test_version_0_has_no_timestamp(data_dir: Path):
    assert the_partition(listed(data_dir / LEGACY)).first_timestamp is None


def test_a_wrapper_at_the_start_is_opened_for_its_first_offset(data_dir: Path, tmp_path: Path):
    content = (data_dir / LEGACY / "00000000000000000000.log").read_bytes()
    walked = batches(content)
    checked = set()
    for before, batch in pairwise(walked):
        if batch["magic"] < 2 and batch["codec"]:
            first_offset = before["last_offset"] + 1
            place = tmp_path / f"legacy-{first_offset}" / f"{first_offset:020d}.log"
            place.parent.mkdir()
            place.write_bytes(content[batch["position"] :])
            found = of_type(listed(place), SegmentListing)[0]
            assert found.first_offset == first_offset < batch["last_offset"]
            if batch["magic"] == 1:
                assert found.first_timestamp is not None
                assert found.first_timestamp <= batch["max_timestamp"]
            else:
                assert found.first_timestamp is None
            checked.add((batch["magic"], batch["codec"]))
    assert checked == {(magic, codec) for magic in (0, 1) for codec in (1, 2, 3)}


def test_a_wrapper_that_cannot_be_opened_leaves_the_first_offset_unknown(data_dir: Path, tmp_path: Path):
    content = (data_dir / LEGACY / "00000000000000000000.log").read_bytes()
    batch = next(each for each in batches(content) if each["magic"] == 1 and each["codec"] == 1)
    broken = bytearray(content[batch["position"] : batch["end"]])
    broken[-40:] = bytes(40)
    place = tmp_path / "00000000000000000000.log"
    place.write_bytes(broken)
    items = listed(place)
    assert items[-1].first_offset is None
    assert items[-1].last_offset == batch["last_offset"]
    assert codes(items) == ["decompression-failed", "index-missing"]


def test_rows_are_aligned_with_the_schemas(data_dir: Path):
    schemas = {LogDirListing: LOG_DIR, PartitionListing: PARTITION, SegmentListing: SEGMENT}
    items = listed(data_dir / "kafka-4.3-single" / "node-1", segments=True)
    for kind, schema in schemas.items():
        assert kind.__struct_fields__ == schema.names
        rows = [each.row() for each in of_type(items, kind)]
        assert rows
        for row in rows:
            for column, value in zip(schema.columns, row, strict=True):
                of_type_ = {"string": str, "int": int, "timestamp": int, "bool": bool, "any": dict}[column.type]
                assert value is None or type(value) is of_type_, (schema.type, column.name)


# -- one file ----------------------------------------------------------------------------------------------------


def test_any_file_of_a_segment_stands_for_it(data_dir: Path):
    found = {
        each.name: listed(each)
        for each in (data_dir / SENSOR).iterdir()
        if each.name.startswith("00000000000000000015")
    }
    assert len(found) == 4
    assert len({tuple(items) for items in found.values()}) == 1
    (segment,) = next(iter(found.values()))
    assert segment.path.endswith("00000000000000000015.log")
    assert (segment.topic, segment.partition, segment.segment_base_offset) == ("sensor", 0, 15)
    assert segment.snapshot_producers == 0


def test_a_snapshot_at_the_logs_end_has_no_log(data_dir: Path):
    (found,) = listed(data_dir / SENSOR / "00000000000000000090.snapshot")
    assert found.size_bytes is None
    assert found.notes == "no .log"
    assert found.snapshot_producers == 0


def test_a_kraft_snapshot_is_a_log(data_dir: Path):
    directory = data_dir / "kafka-4.3-single" / "node-1" / "__cluster_metadata-0"
    snapshot = sorted(directory.glob("*-*.checkpoint"))[-1]
    (found,) = listed(snapshot)
    assert found.batch_count == len(batches(snapshot.read_bytes()))
    assert found.segment_base_offset is None


def test_a_log_of_another_name(data_dir: Path, tmp_path: Path):
    place = tmp_path / "rescued.bin"
    place.write_bytes((data_dir / LEDGER / "00000000000000000000.log").read_bytes())
    with pytest.raises(NotALogDir, match="--as"):
        listed(place)
    (found,) = listed(Target(place, Kind.LOG))
    assert (found.topic, found.segment_base_offset, found.first_offset, found.last_offset) == (None, None, 0, 1299)


def test_a_partition_whose_name_is_none(data_dir: Path, tmp_path: Path):
    copy = shutil.copytree(data_dir / LEDGER, tmp_path / "backup_ledger")
    found = listed(copy)[0]
    assert (found.topic, found.partition) == (None, None)
    assert found.notes == "the directory's name is not TOPIC-PARTITION"


def test_other_files_and_other_paths_are_refused(data_dir: Path, tmp_path: Path):
    for name in ("meta.properties", "recovery-point-offset-checkpoint"):
        with pytest.raises(NotALogDir, match="dump"):
            listed(data_dir / "kafka-4.3-single" / "node-1" / name)
    with pytest.raises(NotALogDir):
        listed(tmp_path)
    with pytest.raises(InputError):
        listed(tmp_path / "absent")


# -- wishes ------------------------------------------------------------------------------------------------------


def test_without_a_scan_no_log_and_no_index_is_read(log_dir: Path):
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n1\nsensor 0 60\n")
    for path in (log_dir / "sensor-0").glob("0*"):
        path.write_bytes(b"\xee" * 99)
    items = listed(log_dir, scan=False, segments=True)
    assert codes(items) == []
    whole = the_partition(items)
    assert (whole.segment_count, whole.log_size_bytes, whole.recovery_point, whole.leader_epoch) == (6, 594, 60, 0)
    assert (whole.log_start_offset, whole.log_end_offset, whole.batch_count, whole.codecs) == (0, None, None, None)
    assert [each.segment_base_offset for each in of_type(items, SegmentListing)] == [0, 15, 30, 45, 60, 75]
    assert {each.index_entries for each in of_type(items, SegmentListing)} == {None}


def test_the_end_of_an_empty_last_segment_is_known_without_a_scan(log_dir: Path):
    (log_dir / "sensor-0" / "00000000000000000090.log").write_bytes(b"")
    assert the_partition(listed(log_dir, scan=False)).log_end_offset == 90
    assert the_partition(listed(log_dir)).log_end_offset == 90


def test_sorting(data_dir: Path):
    directory = data_dir / "kafka-4.3-single" / "node-1"
    plain = of_type(listed(directory), PartitionListing)
    by = {
        "name": lambda each: (each.topic, each.partition),
        "size": lambda each: -each.log_size_bytes,
        "segments": lambda each: -each.segment_count,
        "batches": lambda each: -each.batch_count,
        "time": lambda each: -(each.max_timestamp or 0),
    }
    assert tuple(by) == SORT_KEYS
    for sort, key in by.items():
        expected = sorted(plain, key=key)  # stable: ties stay in the order of their names
        assert of_type(listed(directory, sort=sort), PartitionListing) == expected, sort
        assert of_type(listed(directory, sort=sort, reverse=True), PartitionListing) == expected[::-1], sort
    by_name = of_type(listed(directory / "users-0"), SegmentListing)
    assert of_type(listed(directory / "users-0", sort="size", reverse=True), SegmentListing) == by_name[::-1]


def test_segments_come_below_their_partition(data_dir: Path):
    items = listed(data_dir / "kafka-4.3-single" / "node-1", segments=True, sort="batches")
    current = None
    for each in items:
        if isinstance(each, PartitionListing):
            current = each.path
        elif isinstance(each, SegmentListing):
            assert os.path.dirname(each.path) == current
    assert of_type(listed(data_dir / USERS, segments=False), SegmentListing) == []


def test_nothing_is_touched(log_dir: Path, source_snapshot: Any):
    source_snapshot(log_dir)
    listed(log_dir, segments=True)
