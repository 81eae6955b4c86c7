"""diff on replicas whose truth is known from the models that they were written from."""

from __future__ import annotations

import errno
import random
import shutil
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.errors import InputError
from format.findings import Finding
from format.limits import DEFAULT_LIMITS
from format.node.target import Target
from format.scan import read_log
from format.verbs.diff.diff import LeftOut, PartitionResult, diff, evidence, sentence
from format.verbs.diff.replica_log import Matching, matched
from tests.building import batch, forbid_reading, write_segment
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, compacted, plain
from tests.metadata_logs import write_node


def compare(directory: Path, *replicas: ModelReplica, jobs: int = 1) -> PartitionResult:
    """What diff says of replicas that are written below a directory."""
    shutil.rmtree(directory, ignore_errors=True)
    targets = []
    for number, replica in enumerate(replicas):
        log_dir = directory / f"node-{number}"
        log_dir.mkdir(parents=True)
        replica.write(log_dir)
        targets.append(Target(log_dir))
    (result,) = [each for each in diff(targets, jobs=jobs) if isinstance(each, PartitionResult)]
    return result


def recompressed(batches: list[ModelBatch], codec: int) -> list[ModelBatch]:
    return [replace(each, codec=codec) for each in batches]


def test_a_directory_is_not_compared_with_itself(tmp_path: Path) -> None:
    ModelReplica(plain(3)).write(tmp_path / "node-1")
    (tmp_path / "node-2").symlink_to(tmp_path / "node-1")
    for other in (tmp_path / "node-1", tmp_path / "node-2", tmp_path / "node-1" / "orders-0"):
        with pytest.raises(InputError, match="the same directory as"):
            list(diff([Target(tmp_path / "node-1"), Target(other)]))


def test_logs_of_two_clusters_are_no_replicas(tmp_path: Path) -> None:
    """The topic id of the metadata log is the same in every cluster. It is said once, not for each partition."""
    for number, cluster in enumerate(("cluster-a", "cluster-b")):
        for name in ("__cluster_metadata-0", "orders-0", "orders-1"):
            ModelReplica(plain(3 + number)).write(tmp_path / cluster, name)
        (tmp_path / cluster / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster}\n")
    for name in ("", "__cluster_metadata-0"):
        (matching,) = list(diff([Target(tmp_path / "cluster-a" / name), Target(tmp_path / "cluster-b" / name)]))
        assert isinstance(matching, Matching)
        assert matching.not_checked()[0].endswith("they are of two clusters, cluster-b and cluster-a")
        assert sum("two clusters" in each for each in matching.not_checked()) == 1


def test_a_copy_of_a_node_from_before_its_topic_was_made_again_is_no_damage(tmp_path: Path) -> None:
    for name, letter in (("live", "B"), ("backup", "C")):
        ModelReplica(plain(3)).write(write_node(tmp_path / name, 1))
        (tmp_path / name / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {letter * 21}A\n")
    (matching,) = list(diff([Target(tmp_path / "live"), Target(tmp_path / "backup")]))
    assert isinstance(matching, Matching)
    assert matching.not_checked()[0].endswith("both are of node 1, and of two topics of one name")


def test_the_same_bytes_are_identical(tmp_path: Path) -> None:
    result = compare(tmp_path, ModelReplica(plain(20)), ModelReplica(plain(20)))
    assert (result.kind, result.offset) == ("identical", None)
    assert [each.lost.count for each in result.replicas] == [0, 0]
    assert result.truncate_to == [[None, 60], [60, None]]


def test_other_segments_and_the_same_batches_are_identical(tmp_path: Path) -> None:
    one, other = ModelReplica(plain(20)), ModelReplica(plain(20), segment_starts=(15, 33))
    assert compare(tmp_path, one, other).kind == "identical"


def test_one_that_ends_earlier_is_behind(tmp_path: Path) -> None:
    result = compare(tmp_path, ModelReplica(plain(12), high_watermark=30), ModelReplica(plain(20), high_watermark=48))
    assert (result.kind, result.offset, result.best) == ("behind", 36, 1)
    short, long = result.replicas
    assert (short.lost.first, short.lost.last, short.lost.count) == (36, 59, 24)
    assert short.lost_committed.ends == [36, 47]
    assert (long.unique.ends, long.lost.ends) == ([36, 59], None)
    assert (short.kind, long.kind) == ("behind", None)


def test_other_codecs_are_the_same_records(tmp_path: Path) -> None:
    for codec in (1, 2, 3, 4):
        result = compare(tmp_path, ModelReplica(plain(20)), ModelReplica(recompressed(plain(20), codec)))
        assert (result.kind, result.offset) == ("different_bytes", 0)
        assert [each.lost.count for each in result.replicas] == [0, 0]


def test_merged_batches_are_the_same_records(tmp_path: Path) -> None:
    one = plain(20)
    pairs = zip(one[::2], one[1::2], strict=True)
    merged = [ModelBatch(a.base_offset, b.last_offset, 0, a.records | b.records) for a, b in pairs]
    # A record's timestamp is its batch's base and a delta, which the model keeps equal.
    result = compare(tmp_path, ModelReplica(one), ModelReplica(merged))
    assert (result.kind, result.offset) == ("different_bytes", 0)


def test_compaction_is_no_loss(tmp_path: Path) -> None:
    batches = plain(40)
    result = compare(
        tmp_path, ModelReplica(batches), ModelReplica(compacted(batches, 90), was_cleaned=True), ModelReplica(batches)
    )
    assert result.kind == "different_bytes"
    assert [each.lost.count for each in result.replicas] == [0, 0, 0]
    gone = len(ModelReplica(batches).records) - len(ModelReplica(compacted(batches, 90)).records)
    assert result.replicas[1].compacted_count == gone > 50


def test_a_hole_without_a_cleaner_is_a_loss(tmp_path: Path) -> None:
    batches = plain(40)
    result = compare(tmp_path, ModelReplica(batches), ModelReplica(batches[:10] + batches[12:]))
    assert (result.kind, result.offset) == ("diverged", 30)
    assert result.replicas[1].lost.ends == [30, 35]
    assert result.best == 0


def test_the_last_record_of_a_key_is_never_compacted_away(tmp_path: Path) -> None:
    batches = plain(40)
    lone = ModelBatch(30, 32, 0, {30: (b"only", b"1"), 31: (b"key-1", b"2"), 32: (b"key-2", b"3")})
    whole = [*batches[:10], lone, *batches[11:]]
    result = compare(tmp_path, ModelReplica(whole), ModelReplica(batches[:10] + batches[11:], was_cleaned=True))
    assert (result.kind, result.offset) == ("diverged", 30)
    assert result.replicas[1].lost.ends == [30, 30]
    assert result.replicas[1].compacted_count == 2


def test_a_replica_that_is_behind_was_not_cleaned_by_what_came_later(tmp_path: Path) -> None:
    batches = plain(40)
    behind = ModelReplica(batches[:20])
    result = compare(tmp_path / "1", behind, ModelReplica(compacted(batches, 90), was_cleaned=True))
    assert (result.kind, result.offset) == ("behind", 60)
    assert result.replicas[1].lost.count == 0
    assert result.is_decided
    # A later tombstone that was removed, too, is possible only where offsets are missing after the end of the first.
    lone = ModelBatch(30, 32, 0, {30: (b"only", b"1"), 31: (b"key-1", b"2"), 32: (b"key-2", b"3")})
    behind = ModelReplica([*batches[:10], lone, *batches[11:20]])
    without = batches[:10] + batches[11:]
    result = compare(tmp_path / "2", behind, ModelReplica(compacted(without, 90), was_cleaned=True))
    assert result.kind == "behind"
    assert result.replicas[1].lost.count == 0
    [note] = [each for each in result.not_checked if each.startswith("whether")]
    assert note == f"whether 1 record that {tmp_path / '2' / 'node-1' / 'orders-0'} lacks was compacted away"
    assert not result.is_decided
    result = compare(tmp_path / "3", behind, ModelReplica(without, was_cleaned=True))
    assert (result.kind, result.offset) == ("diverged", 30)
    assert result.replicas[1].lost.ends == [30, 30]


def test_a_damaged_batch_is_no_divergence(tmp_path: Path) -> None:
    result = compare(tmp_path, ModelReplica(plain(20)), ModelReplica(plain(20), damaged={7}))
    assert (result.kind, result.offset, result.best) == ("different_bytes", 21, 0)
    assert result.replicas[1].damaged == [(21, 23)]
    assert result.replicas[1].lost.ends == [21, 23]
    assert [each.code for each in result.findings] == ["batch-crc-mismatch"]


def test_a_replica_that_cannot_be_read_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lacks nothing that is known; the permissions are those of this user."""
    for name in ("one", "two", "three"):
        write_segment(tmp_path / name / "orders-0", 0, [batch(0), batch(3)])
    forbid_reading(tmp_path / "two" / "orders-0" / f"{0:020d}.log", monkeypatch)
    found = list(diff([Target(tmp_path / name) for name in ("one", "two", "three")]))
    [result] = [each for each in found if isinstance(each, PartitionResult)]
    assert (result.kind, len(result.replicas)) == ("identical", 2)
    assert [each.code for each in found if isinstance(each, Finding)] == ["file-unreadable"]


def test_a_log_that_the_disk_does_not_give_is_behind_for_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        for base in (0, 6):
            write_segment(tmp_path / name / "orders-0", base, [batch(base + at, leader_epoch=0) for at in (0, 3)])
    failed = tmp_path / "two" / "orders-0" / f"{6:020d}.log"
    forbid_reading(failed, monkeypatch, OSError(errno.EIO, "Input/output error"))
    [result] = [each for each in diff([Target(tmp_path / name) for name in ("one", "two")])
                if isinstance(each, PartitionResult)]  # fmt: skip
    assert (result.kind, result.offset, result.best) == ("behind", 6, 0)
    assert "from offset 6 on, where one of them cannot be read" in evidence(result)
    forbid_reading(tmp_path / "one" / "orders-0" / failed.name, monkeypatch, OSError(errno.EIO, "Input/output error"))
    [result] = [each for each in diff([Target(tmp_path / name) for name in ("one", "two")])
                if isinstance(each, PartitionResult)]  # fmt: skip
    assert result.kind == "identical"
    assert "are the same as far as they can be read" in sentence(result)
    failed.write_bytes(b"")
    monkeypatch.undo()
    [result] = [each for each in diff([Target(tmp_path / name) for name in ("one", "two")])
                if isinstance(each, PartitionResult)]  # fmt: skip
    assert (result.kind, result.offset) == ("behind", 6)
    assert "cannot be read" not in evidence(result)


@pytest.mark.parametrize("key", [b"k", None])
def test_a_segment_that_retention_deletes_meanwhile_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: bytes | None
) -> None:
    for name in ("one", "two"):
        for base in (0, 6, 12):
            content = [batch(base + at, key=key, leader_epoch=0) for at in (0, 3)]
            write_segment(tmp_path / name / "orders-0", base, content)
    forbid_reading(tmp_path / "two" / "orders-0" / f"{6:020d}.log", monkeypatch, FileNotFoundError())
    found = list(diff([Target(tmp_path / name) for name in ("one", "two")]))
    [result] = [each for each in found if isinstance(each, PartitionResult)]
    assert (result.kind, result.is_complete) == ("identical", False)
    assert [(each.lost.count, each.unique.first) for each in result.replicas] == [(0, None)] * 2
    assert [each.code for each in result.findings] == ["file-changed"]


def test_replicas_of_running_brokers_are_of_no_one_moment(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_segment(tmp_path / name / "orders-0", 0, [batch(0)])
    matching = matched([Target(tmp_path / name) for name in ("one", "two")], DEFAULT_LIMITS)
    assert matching.not_checked() == []
    [group] = matching.groups
    for number, each in enumerate(group.replicas, 1):
        group.replicas[number - 1] = msgspec.structs.replace(
            each, node_id=number, offsets=msgspec.structs.replace(each.offsets, is_broker_running=True)
        )
    assert matching.not_checked() == ["one moment of all replicas: nodes 1 and 2 run"]


def test_damage_that_all_replicas_have_is_reported_for_each(tmp_path: Path) -> None:
    result = compare(tmp_path, ModelReplica(plain(20), damaged={7}), ModelReplica(plain(20), damaged={7}))
    assert result.kind == "identical"
    assert [each.damaged for each in result.replicas] == [[(21, 23)], [(21, 23)]]
    assert len(result.findings) == 2


def test_a_replica_without_a_batch(tmp_path: Path) -> None:
    result = compare(tmp_path, ModelReplica([]), ModelReplica(plain(3)), ModelReplica([]))
    assert (result.kind, result.offset, result.best) == ("behind", 0, 1)
    assert result.replicas[0].lost.ends == [0, 8]


def test_the_same_epoch_with_other_records_is_not_repaired_by_kafka(tmp_path: Path) -> None:
    other = [*plain(10), *plain(10, first=30, tag="b")]
    result = compare(tmp_path, ModelReplica(plain(20)), ModelReplica(other))
    assert (result.kind, result.offset) == ("diverged", 30)
    assert result.truncate_to == [[None, 60], [60, None]]


@st.composite
def replica_pairs(draw: st.DrawFn) -> tuple[list[ModelReplica], random.Random]:
    """A log that both replicas began with, and what became of each: cut, recompressed, diverged under another epoch."""
    source = random.Random(draw(st.integers(0, 2**32)))
    common = plain(source.randint(0, 30), size=source.randint(1, 5))
    replicas = []
    is_unchanged, codecs = source.random() < 0.2, source.choice(((0,), (0, 0, 1, 2, 3, 4)))
    for number in range(source.choice((2, 2, 3))):
        is_cut = not is_unchanged and source.random() < 0.6
        batches = common[: source.randint(0, len(common))] if is_cut else list(common)
        batches = [replace(each, codec=source.choice(codecs)) for each in batches]
        end = batches[-1].last_offset + 1 if batches else 0
        for epoch in sorted(source.sample(range(1, 5), 0 if is_unchanged else source.randint(0, 2))):
            size = source.randint(1, 7)
            more = plain(
                source.randint(1, 8), size=size, first=end, epoch=epoch, tag=source.choice(("x", f"r{number}"))
            )
            batches += more
            end = more[-1].last_offset + 1
        replica = ModelReplica(batches, high_watermark=source.choice((None, source.randint(0, end))))
        replica.segment_starts = tuple(each.base_offset for each in batches if source.random() < 0.1)
        replicas.append(replica)
    return replicas, source


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(replica_pairs())
def test_every_offset_is_judged_as_the_models_say(
    tmp_path_factory: pytest.TempPathFactory, pair: tuple[list[ModelReplica], random.Random]
) -> None:
    replicas, source = pair
    chunk_bytes = source.choice((None, 100, 300, 2000))
    with pytest.MonkeyPatch.context() as patch:
        if chunk_bytes is not None:
            whole = read_log.batch_chunks
            patch.setattr(
                read_log, "batch_chunks", lambda *args, **terms: whole(*args, **terms, chunk_bytes=chunk_bytes)
            )
        result = compare(tmp_path_factory.getbasetemp() / "property", *replicas)
    records = [each.records for each in replicas]
    ends = [each.end for each in replicas]
    differing = set()
    for one in range(len(replicas)):
        for other in range(one + 1, len(replicas)):
            both = range(min(ends[one], ends[other]))
            differing |= {at for at in both if records[one].get(at) != records[other].get(at)}
    if differing:
        assert (result.kind, result.offset) == ("diverged", min(differing))
    elif len(set(ends)) > 1:
        assert (result.kind, result.offset) == ("behind", min(ends))
    else:
        assert result.kind in ("identical", "different_bytes")
        codecs = [[(each.base_offset, each.codec) for each in replica.batches] for replica in replicas]
        assert (result.kind == "identical") == all(each == codecs[0] for each in codecs)
    for number, mine in enumerate(records):
        others = [each for at, each in enumerate(records) if at != number]
        unique = {at for at, record in mine.items() if all(each.get(at) != record for each in others)}
        lost = {at for each in others for at, record in each.items() if mine.get(at) != record}
        committed = {
            at
            for holder, each in enumerate(records)
            for at, record in each.items()
            if mine.get(at) != record and at < (replicas[holder].high_watermark or 0)
        }
        found = result.replicas[number]
        for span, offsets in ((found.unique, unique), (found.lost, lost), (found.lost_committed, committed)):
            assert span.count == len(offsets)
            assert span.ends == ([min(offsets), max(offsets)] if offsets else None)


def test_several_processes_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.whole_units.is_worth_sharing", lambda *_: True)
    for number in range(5):
        ModelReplica(plain(5 + number)).write(tmp_path / "a" / f"{number}", f"t{number}-0")
        ModelReplica(plain(9, tag="b")).write(tmp_path / "b" / f"{number}", f"t{number}-0")
    targets = [Target(tmp_path / "a"), Target(tmp_path / "b")]

    def rows(jobs: int) -> list[object]:
        results = [each for each in diff(targets, jobs=jobs) if isinstance(each, PartitionResult)]
        return [(each.row(), *each.replica_rows()) for each in results]

    assert len(rows(1)) == 5
    assert rows(1) == rows(3)


def test_what_is_not_known_of_many_replicas_is_said_once_for_each_log_directory(tmp_path: Path) -> None:
    for node, names in (("node-1", 3), ("node-2", 3)):
        for number in range(names):
            ModelReplica(plain(3)).write(tmp_path / node, f"orders-{number}")
    left_out = LeftOut()
    for each in diff([Target(tmp_path / "node-1"), Target(tmp_path / "node-2")]):
        if isinstance(each, PartitionResult):
            left_out.take(each)
            last = LeftOut()
            last.take(each)
    reason = "were committed: the partition is not in replication-offset-checkpoint"
    notes = [each for each in left_out.not_checked() if each.endswith(reason)]
    assert notes == [f"which records of 3 partitions in {tmp_path / node} {reason}" for node in ("node-1", "node-2")]
    assert f"which records of {tmp_path}/node-1/orders-2 {reason}" in list(last.not_checked())


def test_replicas_that_are_damaged_alike_are_the_same_only_as_far_as_they_can_be_read(tmp_path: Path) -> None:
    for node, place in (("node-1", 70), ("node-2", 75)):
        ModelReplica(plain(3)).write(tmp_path / node)
        log = tmp_path / node / "orders-0" / f"{0:020d}.log"
        content = bytearray(log.read_bytes())
        content[place] ^= 0xFF
        log.write_bytes(content)
    found = diff([Target(tmp_path / "node-1"), Target(tmp_path / "node-2")])
    (result,) = (each for each in found if isinstance(each, PartitionResult))
    assert (result.kind, result.is_complete, result.is_read) == ("identical", True, False)
    assert "are the same as far as they can be read · " in sentence(result)
