"""Replicas of random logs with random wounds: what is intact on one is in the result, byte for byte, and no more."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from format.log import walker
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, compacted, plain
from tests.format.verbs.merge.merging import Content, merged, records_in

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def small_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second seed reads a few batches at a time, so that replicas share chunks before and after damage."""
    if request.node.callspec.params["seed"] % 2:
        monkeypatch.setattr(walker, "BODY_CHUNK_BYTES", 1000)


def history(chance: random.Random, *, is_compacted: bool) -> list[ModelBatch]:
    """Consecutive batches of some leader epochs."""
    found: list[ModelBatch] = []
    offset = epoch = 0
    for _ in range(chance.randint(1, 3)):
        for _ in range(chance.randint(4, 14)):
            size = chance.randint(1, 6)
            records: Content = {}
            for at in range(offset, offset + size):
                is_tombstone = is_compacted and chance.random() < 0.25
                value = None if is_tombstone else b"value-%d-%d" % (at, chance.randrange(10 ** chance.randint(1, 40)))
                records[at] = (b"key-%d" % chance.randrange(9), value)
            found.append(ModelBatch(offset, offset + size - 1, epoch, records, chance.choice([0, 0, 1, 4])))
            offset += size
        epoch += chance.randint(1, 3)
    return found


def wound(chance: random.Random, directory: Path) -> None:
    """Damage one of the logs, or remove it."""
    logs = sorted(directory.glob("*.log"))
    log = chance.choice(logs)
    content = bytearray(log.read_bytes())
    kind = chance.choice(["flip", "zeros", "noise", "cut", "gone"])
    at = chance.randrange(max(len(content), 1))
    if kind == "gone":
        if len(logs) > 1 and log != logs[0]:  # no retention may have removed the first one
            log.unlink()
        return
    if kind == "cut":
        del content[at:]
    else:
        length = 1 if kind == "flip" else chance.randint(1, 300)
        part = content[at : at + length]
        new = {"zeros": bytes(len(part)), "noise": chance.randbytes(len(part)), "flip": bytes(x ^ 64 for x in part)}
        content[at : at + length] = new[kind]
    log.write_bytes(content)


def flip_header(chance: random.Random, directory: Path, batches: list[ModelBatch], starts: tuple[int, ...]) -> None:
    """Flip a bit that no CRC covers: of the base offset, the length, the leader epoch or the magic of a batch."""
    position, places = dict.fromkeys(starts, 0), []
    for each in batches:
        start = max(one for one in starts if one <= each.base_offset)
        places.append((start, position[start]))
        position[start] += len(each.encoded())
    start, at = chance.choice(places)
    at += chance.choice([7, 7, 7, chance.randrange(17)])
    log = directory / f"{start:020d}.log"
    content = bytearray(log.read_bytes()) if log.exists() else bytearray()
    if at < len(content):
        content[at] ^= 1 << chance.randrange(7)
        log.write_bytes(content)


def intact_in(directory: Path, batches: list[ModelBatch], starts: tuple[int, ...]) -> dict[int, bytes]:
    """The batches whose bytes are still at their place, by base offset."""
    found, position = {}, dict.fromkeys(starts, 0)
    for each in batches:
        start = max(one for one in starts if one <= each.base_offset)
        log, encoded = directory / f"{start:020d}.log", each.encoded()
        content = log.read_bytes() if log.exists() else b""
        if content[position[start] : position[start] + len(encoded)] == encoded:
            found[each.base_offset] = encoded
        position[start] += len(encoded)
    return found


def newest(records: Content) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, (key, value) in sorted(records.items())}


@pytest.mark.parametrize("seed", range(40))
def test_every_intact_batch_is_there_and_every_loss_is_said(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    batches = history(chance, is_compacted=False)
    end, starts = batches[-1].last_offset + 1, tuple(sorted({0, *(each.base_offset for each in batches[5::6])}))
    nodes, intact = [], dict[int, bytes]()
    for number in range(chance.choice([2, 3])):
        at = chance.randrange(2, len(batches))
        own = batches
        if number and batches[at].epoch > batches[at - 1].epoch:  # it missed the new leader, and led on
            own = batches[:at] + plain(4, first=batches[at].base_offset, epoch=batches[at - 1].epoch, tag="stale")
        nodes.append(tmp_path / f"node-{number + 1}")
        directory = ModelReplica(own, end if own is batches else 0, segment_starts=starts).write(nodes[-1])
        for _ in range(chance.randint(1, 4)):
            wound(chance, directory)
        intact |= intact_in(directory, [each for each in own if each in batches], starts)
    found = merged(nodes, tmp_path / "out")
    truth = {offset: record for each in batches for offset, record in each.records.items()}
    assert found.records.items() <= truth.items()
    for each in intact.values():
        assert each in found.log_bytes
    assert set(range(end)) == set(found.records) ^ found.lost


@pytest.mark.parametrize("seed", range(60))
def test_no_batch_is_at_a_false_offset_that_a_replica_contradicts(tmp_path: Path, seed: int) -> None:
    """The last replica is damaged elsewhere than the others, and shows the right offsets."""
    chance = random.Random(seed)
    batches = history(chance, is_compacted=False)
    end, starts = batches[-1].last_offset + 1, tuple(sorted({0, *(each.base_offset for each in batches[5::6])}))
    nodes, intact = [], dict[int, bytes]()
    for number in range(3):
        nodes.append(tmp_path / f"node-{number + 1}")
        directory = ModelReplica(batches, end, segment_starts=starts).write(nodes[-1])
        for _ in range(chance.randint(2, 5) if number < 2 else 1):
            if chance.random() < 0.6:
                flip_header(chance, directory, batches, starts)
            else:
                wound(chance, directory)
        intact |= intact_in(directory, batches, starts)
    found = merged(nodes, tmp_path / "out")
    truth = {offset: record for each in batches for offset, record in each.records.items()}
    assert found.records.items() <= truth.items()
    for each in intact.values():
        assert each in found.log_bytes
    assert set(range(end)) == set(found.records) ^ found.lost


@pytest.mark.parametrize("seed", range(40))
def test_no_newest_value_is_missing_and_no_deleted_key_comes_back_unsaid(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    batches = history(chance, is_compacted=True)
    end, starts = batches[-1].last_offset + 1, tuple(sorted({0, *(each.base_offset for each in batches[5::6])}))
    nodes, held = [], set[int]()
    for number in range(chance.choice([2, 3])):
        point = chance.choice([0, *(each.base_offset for each in batches)])
        own = compacted(batches, point)
        for each in own if chance.random() < 0.6 else ():  # its tombstones are old enough to go
            for at in [at for at, (_, value) in each.records.items() if value is None and at < point]:
                del each.records[at]
        own = [each for each in own if each.records]
        nodes.append(tmp_path / f"node-{number + 1}")
        replica = ModelReplica(own, end, segment_starts=starts)
        directory = replica.write(nodes[-1])
        (nodes[-1] / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {point}\n")
        for _ in range(chance.randint(1, 4)):
            wound(chance, directory)
        there = intact_in(directory, own, starts)
        held |= {at for each in own if each.base_offset in there for at in each.records}
    found = merged(nodes, tmp_path / "out")
    truth = {offset: record for each in batches for offset, record in each.records.items()}
    assert found.records.items() <= truth.items()
    kept = newest(found.records)
    for key, (offset, value) in newest(truth).items():
        if value is not None and offset in held:
            assert kept[key] == (offset, value)
        elif value is None and kept.get(key, (0, None))[1] is not None:
            assert offset in found.lost or "tombstone-unknown" in found.codes
    assert records_in(found.directory) == found.records
