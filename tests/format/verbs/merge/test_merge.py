"""salvage --merge: what is intact on one replica of the history is in the result, and nothing of another one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, compacted, plain
from tests.format.verbs.merge.merging import merged_models, records_in


def content(batches: list[ModelBatch]) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {offset: record for batch in batches for offset, record in batch.records.items()}


def encoded(batches: list[ModelBatch]) -> bytes:
    return b"".join(each.encoded() for each in batches)


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
    assert "no replica here has 9–11" in found.plan.sentence()


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
    from tests.format.verbs.merge.merging import merged

    found = merged([tmp_path / "node-1", tmp_path / "node-2"], tmp_path / "out")
    assert found.losses == []
    names = sorted(int(each.stem) for each in found.directory.glob("*.log"))
    assert names == [0, 12, 24]
    assert found.log_bytes == encoded(batches)


# -- history -------------------------------------------------------------------------------------------------


def test_a_branch_is_never_mixed_in_and_written_apart(tmp_path: Path) -> None:
    shared = plain(4)
    stale = [*shared, *plain(5, first=12, epoch=0, tag="stale")]
    right = [*shared, *plain(3, first=12, epoch=1)]
    found = merged_models([ModelReplica(stale), ModelReplica(right, damaged={1, 5})], tmp_path, branches=True)
    assert found.plan.base == 1
    assert found.codes == ["no-intact-replica", "branch-left-out"]
    assert found.lost == {15, 16, 17}
    assert found.records == content(shared + [right[4], right[6]])
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
    from tests.format.verbs.merge.merging import merged

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
    from tests.format.verbs.merge.merging import merged

    found = merged(nodes, tmp_path / "out")
    assert found.losses == []
    assert found.log_bytes == encoded(batches)
    assert (found.directory / "leader-epoch-checkpoint").read_text().split() == "0 3 0 0 2 9 5 18".split()


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
