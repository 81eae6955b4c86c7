"""salvage --merge: what is intact on one replica of the history is in the result, and nothing of another one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from format import layout
from format.findings import Certainty
from format.log.encode_batches import BatchHeader, encode_batch, encode_message
from tests.building import forbid_reading, wrapper, write_segment
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, compacted, plain
from tests.format.verbs.merge.merging import merged, merged_models, records_in
from tests.record_encoder import NewRecord, encode_record


def content(batches: list[ModelBatch]) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {offset: record for batch in batches for offset, record in batch.records.items()}


def encoded(batches: list[ModelBatch]) -> bytes:
    return b"".join(each.encoded() for each in batches)


def copied(source: Path, target: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(source, target)
    for path in target.iterdir():
        path.chmod(0o644)
    return target


# -- damage --------------------------------------------------------------------------------------------------


def test_wounds_at_different_places_are_filled_byte_for_byte(tmp_path: Path) -> None:
    batches = plain(20)
    replicas = [
        ModelReplica(batches, damaged={3, 4}),
        ModelReplica(batches, damaged={0, 9}),
        ModelReplica(batches, damaged={12, 19}),
    ]
    found = merged_models(replicas, tmp_path)
    assert found.losses == [] == found.codes
    assert found.log_bytes == encoded(batches)
    sources = {each["path"].split("/")[-3] for each in found.manifest["merged"][0]["ranges"]}
    assert sources == {"node-1", "node-2"}


def test_wounds_that_overlap_on_two_of_three_lose_nothing(tmp_path: Path) -> None:
    batches = plain(10)
    replicas = [ModelReplica(batches, damaged=each) for each in ({2, 3}, {3, 4}, {5})]
    found = merged_models(replicas, tmp_path)
    assert found.losses == []
    assert found.log_bytes == encoded(batches)


def test_what_is_damaged_on_all_is_lost_and_named(tmp_path: Path) -> None:
    batches = plain(10)
    replicas = [ModelReplica(batches, damaged=each) for each in ({2, 3}, {3, 4}, {3, 7})]
    found = merged_models(replicas, tmp_path)
    assert found.lost == {9, 10, 11}
    assert found.codes == ["no-intact-replica"]
    assert found.records == content([each for number, each in enumerate(batches) if number != 3])
    assert "no replica here has 9 to 11" in found.plan.sentence()


def test_a_cut_tail_is_appended_from_a_replica_of_the_same_epoch(tmp_path: Path) -> None:
    batches = plain(10)
    found = merged_models([ModelReplica(batches[:6], damaged={1}), ModelReplica(batches, damaged={8})], tmp_path)
    assert found.plan.base == 1
    assert found.lost == set(range(24, 27))
    assert found.records == content(batches[:8] + batches[9:])


def test_missing_segments_are_taken_with_their_boundaries(tmp_path: Path) -> None:
    batches = plain(12)
    for number in (1, 2):
        ModelReplica(batches, segment_starts=(12, 24)).write(tmp_path / f"node-{number}")
    (tmp_path / "node-1/orders-0" / f"{12:020d}.log").unlink()
    (tmp_path / "node-2/orders-0" / f"{24:020d}.log").unlink()
    found = merged([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.losses == []
    names = sorted(int(each.stem) for each in found.directory.glob("*.log"))
    assert names == [0, 12, 24]
    assert found.log_bytes == encoded(batches)


def test_a_replica_that_cannot_be_read_may_have_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = plain(10)
    for number in (1, 2):
        ModelReplica(batches, damaged={3}).write(tmp_path / f"node-{number}")
    forbid_reading(tmp_path / "node-2/orders-0" / f"{0:020d}.log", monkeypatch)
    found = merged([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.plan.sentence().endswith("no replica that could be read has 9 to 11 · 1 replica could not be read")
    lost, unread = sorted(found.findings, key=lambda each: each.severity, reverse=True)
    assert (lost.code, lost.certainty) == ("no-intact-replica", Certainty.POSSIBLE)
    assert lost.next_step is not None
    assert lost.next_step.startswith("Run it again as a user that can read every replica")
    assert unread.code == "file-unreadable"


# -- history -------------------------------------------------------------------------------------------------


def test_a_branch_is_never_mixed_in_and_written_apart(tmp_path: Path) -> None:
    shared = plain(4)
    stale = [*shared, *plain(5, first=12, epoch=0, tag="stale")]
    right = [*shared, *plain(3, first=12, epoch=1)]
    found = merged_models([ModelReplica(stale), ModelReplica(right, damaged={1, 5})], tmp_path, branches=True)
    assert found.plan.base == 1
    assert found.codes == ["no-intact-replica", "branch-left-out"]
    assert found.lost == {15, 16, 17}
    assert found.records == content([*shared, right[4], right[6]])
    assert records_in(tmp_path / "branches/replica-1/orders-0") == content(stale[4:])


def test_an_epoch_that_only_a_checkpoint_knows_ends_the_history(tmp_path: Path) -> None:
    """The leader of epoch 1 has lost its own records: those of epoch 0 at these offsets are still no part of it."""
    shared = plain(4)
    stale = ModelReplica([*shared, *plain(5, first=12, epoch=0, tag="stale")])
    cut = ModelReplica([*shared, *plain(3, first=12, epoch=1)], high_watermark=21)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    stale.write(nodes[0])
    log = cut.write(nodes[1]) / f"{0:020d}.log"
    log.write_bytes(encoded(shared[:3]))
    found = merged(nodes, tmp_path / "out")
    assert found.records == content(shared)
    assert found.lost == set(range(12, 21))
    assert "branch-left-out" in found.codes


def test_a_history_of_several_epochs_is_filled_without_checkpoints(tmp_path: Path) -> None:
    batches = [*plain(3), *plain(3, first=9, epoch=2), *plain(3, first=18, epoch=5)]
    nodes = []
    for number, damaged in enumerate(({2, 3, 4}, {0, 7}, {5, 6})):
        nodes.append(tmp_path / f"node-{number + 1}")
        directory = ModelReplica(batches, damaged=damaged).write(nodes[-1])
        (directory / "leader-epoch-checkpoint").unlink()
    found = merged(nodes, tmp_path / "out")
    assert found.losses == []
    assert found.log_bytes == encoded(batches)
    assert (found.directory / "leader-epoch-checkpoint").read_text().splitlines() == ["0", "3", "0 0", "2 9", "5 18"]


def test_the_first_epoch_holds_before_its_start_which_moves_with_the_log_start(tmp_path: Path) -> None:
    batches = plain(6)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    for node, damaged in zip(nodes, ({0}, {4}), strict=True):
        directory = ModelReplica(batches, damaged=damaged).write(node)
        (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 2\n")
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def test_swapped_pages_cost_only_what_stands_in_the_wrong_place(tmp_path: Path) -> None:
    batches = plain(20)
    log = ModelReplica(batches).write(tmp_path / "node-1") / f"{0:020d}.log"
    size = len(batches[0].encoded())
    swapped = bytearray(encoded(batches))
    swapped[: size + 9], swapped[-size - 9 :] = swapped[-size - 9 :], swapped[: size + 9]
    log.write_bytes(swapped)
    found = merged([tmp_path / "node-1"], tmp_path / "out")
    assert found.records == content(batches[2:18])
    assert found.lost == {*range(6)}


def test_one_epoch_that_a_flipped_bit_made_does_not_change_the_history(tmp_path: Path) -> None:
    batches = plain(6)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(batches[:4]).write(nodes[0]) / f"{0:020d}.log"
    content_of_log = bytearray(log.read_bytes())
    content_of_log[len(encoded(batches[:3])) + layout.RECORD_BATCH.offset_of("leader_epoch") + 1] ^= 1
    log.write_bytes(content_of_log)
    ModelReplica(batches, damaged={1}).write(nodes[1])
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


@pytest.mark.parametrize("number", [2, 5])
def test_a_false_base_offset_is_no_batch_of_its_own(tmp_path: Path, number: int) -> None:
    """Neither inside the log nor at its end, where nothing follows that contradicts it."""
    batches = plain(6)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(batches).write(nodes[0]) / f"{0:020d}.log"
    content_of_log = bytearray(log.read_bytes())
    content_of_log[len(encoded(batches[:number])) + 6] ^= 1
    log.write_bytes(content_of_log)
    ModelReplica(batches, damaged={0}).write(nodes[1])
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def with_header(log: Path, batches: list[ModelBatch], number: int, field: str, value: int) -> None:
    """Change a field of a batch that no CRC covers."""
    at = len(encoded(batches[:number])) + layout.RECORD_BATCH.offset_of(field)
    width = {"base_offset": 8, "leader_epoch": 4}[field]
    content_of_log = bytearray(log.read_bytes())
    content_of_log[at : at + width] = value.to_bytes(width, "big", signed=True)
    log.write_bytes(content_of_log)


@pytest.mark.parametrize(
    ("damaged", "number", "value"),
    [
        ({10}, 11, 33 + 2**26),  # at the end of the log
        ({5, 7}, 6, 20),  # too high, where the other replica has damage
        ({4, 5, 7}, 6, 12),  # too low, there
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_false_base_offset_alone_between_damage_gives_way_to_the_batch_of_another_replica(
    tmp_path: Path, damaged: set[int], number: int, value: int, is_first: bool
) -> None:
    batches = plain(12)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    wounded, other = nodes if is_first else nodes[::-1]
    log = ModelReplica(batches, damaged=damaged).write(wounded) / f"{0:020d}.log"
    with_header(log, batches, number, "base_offset", value)
    ModelReplica(batches, damaged={4, 7}).write(other)
    found = merged(nodes, tmp_path / "out")
    gone = damaged & {4, 7}
    assert found.records == content([each for at, each in enumerate(batches) if at not in gone])
    assert found.lost == {offset for at in gone for offset in batches[at].records}


def test_a_batch_alone_between_damage_is_taken_where_no_other_replica_has_it(tmp_path: Path) -> None:
    batches = plain(10)
    replicas = [ModelReplica(batches, damaged={1, 3, 5, 8}), ModelReplica(batches, damaged={2, 4, 9})]
    found = merged_models(replicas, tmp_path)
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def test_a_batch_that_was_sent_twice_is_no_proof_of_a_false_offset(tmp_path: Path) -> None:
    """The two have the same CRC; each replica has one of them alone."""
    batches = plain(10)
    batches[6] = replace(batches[2], base_offset=18, last_offset=20)
    twice = batches[2].encoded()[8:]
    replicas = [ModelReplica(batches, damaged=each) for each in ({5, 7}, {1, 6})]
    for number, replica in enumerate(replicas, 1):
        log = replica.write(tmp_path / f"node-{number}") / f"{0:020d}.log"
        at = len(encoded(batches[:6]))
        log.write_bytes(log.read_bytes()[: at + 8] + twice + log.read_bytes()[at + 8 + len(twice) :])
        if number == 2:
            log.write_bytes(log.read_bytes()[: at + len(twice) + 7] + b"x" + log.read_bytes()[at + len(twice) + 8 :])
    found = merged([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.codes == []
    assert sorted(found.records) == list(range(30))


def test_a_false_base_offset_of_another_replica_is_no_branch(tmp_path: Path) -> None:
    """It contradicts the records of the base at the same offsets."""
    batches = plain(10)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    ModelReplica(batches, damaged={4, 5, 8}).write(nodes[0])
    log = ModelReplica(batches, damaged={0, 1, 3}).write(nodes[1]) / f"{0:020d}.log"
    with_header(log, batches, 2, "base_offset", 9)
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def test_of_two_offsets_that_contradict_each_other_the_one_that_fits_the_segment_is_right(tmp_path: Path) -> None:
    batches = plain(4)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(batches, damaged={2, 3}).write(nodes[0]) / f"{0:020d}.log"
    with_header(log, batches, 0, "base_offset", 64)
    ModelReplica(batches, damaged={1, 3}).write(nodes[1])
    found = merged(nodes, tmp_path / "out")
    assert found.records == content(batches[:3])


def test_a_false_leader_epoch_between_two_equal_ones_is_no_branch(tmp_path: Path) -> None:
    batches = plain(6, epoch=3)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    ModelReplica(batches, damaged={3}).write(nodes[0])
    log = ModelReplica(batches[:5]).write(nodes[1]) / f"{0:020d}.log"
    with_header(log, batches, 3, "leader_epoch", 7)
    found = merged(nodes, tmp_path / "out")
    assert "branch-left-out" not in found.codes
    assert found.lost == set()
    assert found.records == content(batches)


@pytest.mark.parametrize("epoch", [-(2**31), 2**30 + 3])
def test_a_right_leader_epoch_comes_before_a_false_one(tmp_path: Path, epoch: int) -> None:
    batches = plain(6, epoch=3)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(batches).write(nodes[0]) / f"{0:020d}.log"
    with_header(log, batches, 3, "leader_epoch", epoch)
    ModelReplica(batches, damaged={2, 4}).write(nodes[1])
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def test_a_false_leader_epoch_at_a_false_offset_shows_no_end_of_the_log(tmp_path: Path) -> None:
    batches = plain(6)
    nodes = [tmp_path / "node-1", tmp_path / "node-2"]
    log = ModelReplica(batches).write(nodes[0]) / f"{0:020d}.log"
    with_header(log, batches, 5, "leader_epoch", 4)
    with_header(log, batches, 5, "base_offset", 15 + 64)
    ModelReplica(batches, damaged={1}).write(nodes[1])
    found = merged(nodes, tmp_path / "out")
    assert found.codes == []
    assert found.log_bytes == encoded(batches)


def test_the_last_batch_after_a_loss_keeps_its_offset_whatever_the_sequence_of_its_producer_is(tmp_path: Path) -> None:
    """The lost batch was of another producer: without it, the sequence goes on from the batch before."""
    log = b""
    ends = []
    for base, producer, sequence in ((0, 5, 0), (1, 6, 0), (2, 5, 1)):
        header = BatchHeader(base, 0, 1, 10**12, 10**12, 0, 0, producer, 0, sequence)
        log += encode_batch(header, encode_record(NewRecord(0, 0, None, b"value", ())), codec=0)
        ends.append(len(log))
    for number in (1, 2):
        directory = tmp_path / f"node-{number}" / "orders-0"
        directory.mkdir(parents=True)
        wounded = bytearray(log)
        wounded[ends[1] - 1 - number] ^= 1
        (directory / f"{0:020d}.log").write_bytes(wounded)
    found = merged([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.codes == ["no-intact-replica"]
    assert found.log_bytes == log[: ends[0]] + log[ends[1] :]


# -- old formats, transactions -------------------------------------------------------------------------------


def messages(magic: int, tag: bytes = b"") -> list[bytes]:
    plain_ones = [encode_message(magic, offset, b"k", b"v%d" % offset + tag, timestamp=10**12) for offset in range(4)]
    compressed = [wrapper(magic, first, 3) for first in (4, 7, 10)]
    last = [encode_message(magic, offset, b"k", b"v%d" % offset + tag, timestamp=10**12) for offset in range(13, 18)]
    return [*plain_ones, *compressed, *last]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_without_epochs_are_filled_where_all_others_agree(tmp_path: Path, magic: int) -> None:
    whole = messages(magic)
    for number, wounds in ((1, (2, 5)), (2, (0, 8))):
        log = write_segment(tmp_path / str(number) / "orders-0", 0, whole)
        content_of_log = bytearray(log.read_bytes())
        for wound in wounds:
            content_of_log[len(b"".join(whole[: wound + 1])) - 1] ^= 1
        log.write_bytes(content_of_log)
    found = merged([tmp_path / "1/orders-0", tmp_path / "2/orders-0"], tmp_path / "out")
    assert found.losses == []
    assert found.log_bytes == b"".join(whole)


def test_messages_without_epochs_that_contradict_the_base_are_a_branch(tmp_path: Path) -> None:
    whole, others = messages(1), messages(1, b"-other")
    first = bytearray(b"".join(whole))
    for wound in (1, 9):
        first[len(b"".join(whole[: wound + 1])) - 1] ^= 1
    write_segment(tmp_path / "1/orders-0", 0, [bytes(first)])
    write_segment(tmp_path / "2/orders-0", 0, [*whole[:7], *others[7:]])
    found = merged([tmp_path / "1/orders-0", tmp_path / "2/orders-0"], tmp_path / "out")
    assert found.codes == ["no-intact-replica", "branch-left-out"]
    assert found.log_bytes == b"".join([*whole[:9], *whole[10:]])


def test_what_was_taken_of_a_replica_before_it_contradicts_the_base_is_taken_back(tmp_path: Path) -> None:
    """The base has lost message 5; the other one parts from it somewhere after message 4, which shows at message 6."""
    whole, others = messages(1)[:4], messages(1, b"-other")[:4]
    for number in range(4, 8):
        value = b"v%d" % number
        whole.append(encode_message(1, number, b"k", value, timestamp=10**12))
        others.append(encode_message(1, number, b"k", value + b"-other", timestamp=10**12))
    damaged = bytearray(whole[5])
    damaged[-1] ^= 1
    write_segment(tmp_path / "1/orders-0", 0, [*whole[:5], bytes(damaged), *whole[6:]])
    write_segment(tmp_path / "2/orders-0", 0, [*whole[:5], others[5]])
    write_segment(tmp_path / "2/orders-0", 6, others[6:])
    found = merged([tmp_path / "1/orders-0", tmp_path / "2/orders-0"], tmp_path / "out", branches=tmp_path / "branches")
    assert found.log_bytes == b"".join([*whole[:5], *whole[6:]])
    assert found.lost == {5}
    assert sorted(records_in(tmp_path / "branches/replica-2/orders-0")) == [5, 6, 7]


@pytest.mark.parametrize(
    "source",
    [
        "kafka-0.8-to-2.8/data/legacy-0",
        "kafka-4.3-single/node-1/payments-0",
        "kafka-4.3-single/node-1/users-0",
        "kafka-4.3-single/node-1/__transaction_state-0",
        "field/0.11.0.3-clients-transactions/node-1-0/payments-0",
        "field/4.3.1-expired-producers/node-1-0/expired-0",
    ],
)
def test_wounded_copies_of_a_real_log_make_the_whole_log_again(tmp_path: Path, data_dir: Path, source: str) -> None:
    original = data_dir / source
    copies = [copied(original, tmp_path / f"node-{number}" / original.name) for number in (1, 2, 3)]
    for number, copy in enumerate(copies):
        for log in sorted(copy.glob("*.log")):
            wounded = bytearray(log.read_bytes())
            third = len(wounded) // 3
            wounded[number * third + 1 : (number + 1) * third] = bytes(max(third - 1, 0))
            log.write_bytes(wounded)
    found = merged(copies, tmp_path / "out")
    shutil.copytree(original, tmp_path / "whole" / original.name)
    expected = merged([tmp_path / "whole" / original.name], tmp_path / "expected")
    lost = {each for each in expected.records if each in found.lost}
    assert found.records == {offset: record for offset, record in expected.records.items() if offset not in lost}
    if not lost:
        for file in expected.directory.iterdir():
            assert (found.directory / file.name).read_bytes() == file.read_bytes(), file.name


# -- compaction ----------------------------------------------------------------------------------------------


def newest(records: dict[int, tuple[bytes | None, bytes | None]]) -> dict[bytes | None, bytes]:
    values: dict[bytes | None, bytes] = {}
    for _, (key, value) in sorted(records.items()):
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
    return values


@pytest.mark.parametrize("points", [(0, 30), (30, 0), (15, 45), (60, 60)])
def test_replicas_cleaned_to_other_points_keep_the_newest_value_of_every_key(
    tmp_path: Path, points: tuple[int, int]
) -> None:
    batches = plain(20, keys=7)
    batches[8] = replace(batches[8], records={**batches[8].records, 25: (b"key-4", None)})
    replicas = [ModelReplica(compacted(batches, point), was_cleaned=True) for point in points]
    replicas[0].damaged = {1, 4}
    replicas[1].damaged = {2, 6}
    found = merged_models(replicas, tmp_path)
    for key, value in newest(found.records).items():
        assert value == newest(content(batches))[key]
    lost = {key for offset, (key, _) in content(batches).items() if offset in found.lost}
    assert set(newest(content(batches))) - set(newest(found.records)) <= lost


def test_a_deleted_key_stays_deleted_where_one_replica_has_removed_its_tombstone(tmp_path: Path) -> None:
    """The value is damaged where the tombstone is gone, and comes back with the tombstone of the other replica."""
    value, tombstone = (
        ModelBatch(0, 0, 0, {0: (b"gone", b"old")}),
        ModelBatch(3, 3, 0, {3: (b"gone", None)}),
    )
    batches = [value, *plain(1, size=2, first=1), tombstone, *plain(4, first=4)]
    cleaned = ModelReplica([batches[1], *batches[3:]], was_cleaned=True, damaged={0})
    found = merged_models([cleaned, ModelReplica(batches)], tmp_path)
    assert found.codes == []
    assert newest(found.records) == newest(content(batches))


def test_a_tombstone_that_only_a_damaged_replica_had_is_said_to_be_unknown(tmp_path: Path) -> None:
    value, tombstone = (
        ModelBatch(0, 0, 0, {0: (b"gone", b"old")}),
        ModelBatch(3, 3, 0, {3: (b"gone", None)}),
    )
    batches = [value, *plain(1, size=2, first=1), tombstone, *plain(4, first=4)]
    cleaned = ModelReplica([batches[1], *batches[3:]], was_cleaned=True)
    found = merged_models([cleaned, ModelReplica(batches, damaged={2})], tmp_path)
    assert found.codes == ["tombstone-unknown"]


@pytest.mark.parametrize("lost", [2, 6])
def test_a_tombstone_may_be_among_what_no_replica_of_a_compacted_topic_has(tmp_path: Path, lost: int) -> None:
    """Inside the log, and at its end, which a checkpoint shows."""
    batches = [ModelBatch(0, 0, 0, {0: (b"gone", b"old")}), *plain(6, first=1)]
    batches[lost] = replace(
        batches[lost], records={**batches[lost].records, batches[lost].base_offset: (b"gone", None)}
    )
    replicas = [ModelReplica(batches, 19, was_cleaned=True, damaged={lost}) for _ in range(2)]
    found = merged_models(replicas, tmp_path)
    assert found.lost == set(batches[lost].records)
    assert found.codes[:2] == ["no-intact-replica", "tombstone-unknown"]


# -- what is missing before the first segments -----------------------------------------------------------------


def written_nodes(tmp_path: Path, epoch_starts: list[int], *, is_noted: bool | None = False) -> list[Path]:
    """Two nodes whose logs begin at offset 6, with the first starts of their leader-epoch-checkpoints."""
    batches = plain(6, first=6)
    nodes = []
    for number, start in enumerate(epoch_starts, 1):
        nodes.append(tmp_path / f"node-{number}")
        directory = ModelReplica(batches, segment_starts=(6,)).write(nodes[-1])
        (directory / f"{0:020d}.log").unlink()
        (directory / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {start}\n")
        if is_noted is not None:
            entries = "1\norders 0 0\n" if is_noted else "0\n"
            (nodes[-1] / "log-start-offset-checkpoint").write_text(f"0\n{entries}")
    return nodes


def test_first_segments_that_are_missing_everywhere_are_named(tmp_path: Path) -> None:
    found = merged(written_nodes(tmp_path, [0, 3]), tmp_path / "out")
    assert found.lost == {3, 4, 5}  # retention had removed the others on the second node
    [missing] = found.findings
    assert (missing.code, missing.severity.label, missing.certainty.value) == ("no-intact-replica", "warning", "likely")
    assert "no replica here has 3 to 5" in found.plan.sentence()


@pytest.mark.parametrize(
    ("starts", "is_noted"),
    [
        ([6, 0], False),  # retention has removed them on one node
        ([0, 0], None),  # without the checkpoint they may be in remote storage
        ([0, 0], True),
        ([8, 8], False),  # the first messages have no epochs
    ],
)
def test_first_segments_that_may_have_been_removed_are_no_loss(
    tmp_path: Path, starts: list[int], is_noted: bool | None
) -> None:
    assert merged(written_nodes(tmp_path, starts, is_noted=is_noted), tmp_path / "out").codes == []
