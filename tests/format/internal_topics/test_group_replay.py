"""The replay of group records: across segments, and what it does not judge. The cases are in tests.oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.findings import Finding, Severity
from format.internal_topics.group_replay import GroupChange, GroupChanges, GroupReplay
from format.location import Location
from format.node.target import Target
from format.verbs.groups.group_list import GroupTerms
from format.verbs.groups.groups import GroupsReading
from format.verbs.verify.verify import VerifyTerms, verify
from format.verbs.verify.walk import Level
from tests.oracle.contradicting_group_records import contradictions
from tests.oracle.odd_coordinator_records import OFFSETS, Batch, encoded

CODE = "internal-record-invalid"
RECORDS = contradictions()["consumer record in a share group"]
PLACE = Location("some.log")


def _write(partition: Path, *batches: tuple[int, bytes]) -> Path:
    """A partition with one segment for each batch, which has its base offset."""
    partition.mkdir()
    for offset, content in batches:
        (partition / f"{offset:020d}.log").write_bytes(content)
    return partition


def _batches(first: int = 0) -> list[tuple[int, bytes]]:
    return [(first + number, encoded(Batch((each,)), first + number)) for number, each in enumerate(RECORDS)]


def _found(partition: Path, level: Level = Level.FULL) -> list[Finding]:
    return [each for each in verify(Target(partition), VerifyTerms(level=level)) if each.code == CODE]


def _of_groups(partition: Path) -> list[Finding]:
    found = GroupsReading([Target(partition)], GroupTerms()).read()
    return [each for each in found if isinstance(each, Finding) and each.code == CODE]


@pytest.mark.parametrize("level", [Level.RECORDS, Level.FULL])
def test_a_contradiction_across_segments_is_found(tmp_path: Path, level: Level) -> None:
    partition = _write(tmp_path / f"{OFFSETS}-0", *_batches())
    (found,) = _found(partition, level)
    assert (found.severity, found.location.offset, found.location.position) == (Severity.ERROR, 1, 0)
    assert Path(found.location.path or "").name == f"{1:020d}.log"
    assert "group odd: a record of a consumer group, but the group is a share one" in found.message
    assert [each.message for each in _of_groups(partition)] == [found.message]


def test_below_the_level_of_records_nothing_is_replayed(tmp_path: Path) -> None:
    assert not _found(_write(tmp_path / f"{OFFSETS}-0", *_batches()), Level.CRC)


def test_a_log_without_its_beginning_is_not_judged(tmp_path: Path) -> None:
    partition = _write(tmp_path / f"{OFFSETS}-0", *_batches(7))
    assert not _found(partition)
    assert not _of_groups(partition)


def test_after_a_damaged_batch_nothing_is_judged(tmp_path: Path) -> None:
    """It may have had the tombstone that is missing."""
    first, (offset, second) = _batches()
    tombstone = bytearray(encoded(Batch(((RECORDS[0][0], None),)), 1))
    tombstone[-1] ^= 1
    partition = _write(tmp_path / f"{OFFSETS}-0", first, (1, bytes(tombstone)), (2, encoded(Batch((RECORDS[1],)), 2)))
    assert not _found(partition)
    assert not _of_groups(partition)
    assert offset == 1
    assert second


def test_damage_in_the_same_chunk_hides_only_what_comes_after_it(tmp_path: Path) -> None:
    damaged = bytearray(encoded(Batch((RECORDS[0],)), 2))
    damaged[-1] ^= 1
    whole = b"".join(content for _, content in _batches())
    assert len(_found(_write(tmp_path / f"{OFFSETS}-0", (0, whole + bytes(damaged))))) == 1


def test_a_log_that_is_not_read_ends_the_judgement(tmp_path: Path) -> None:
    first, second = _batches()
    partition = _write(tmp_path / f"{OFFSETS}-0", first, (2, encoded(Batch((RECORDS[1],)), 2)))
    (partition / f"{1:020d}.log").symlink_to(partition / "nowhere")
    assert second
    assert not _found(partition)


def test_other_topics_have_no_group_records(tmp_path: Path) -> None:
    assert not _found(_write(tmp_path / "orders-0", *_batches()))


def test_only_the_first_contradiction_is_reported() -> None:
    """What comes after it, no broker reads."""
    records = [_change(0, 3), _change(1, 11), _change(2, 17)]
    replay = GroupReplay()
    assert len(list(replay.feed(GroupChanges(records), PLACE))) == 1
    assert not list(replay.feed(GroupChanges(records), PLACE))


def test_nothing_is_judged_from_where_a_load_ends() -> None:
    replay = GroupReplay()
    assert not list(replay.feed(GroupChanges([_change(0, 3), _change(1, 11)], ends_at=1), PLACE))
    assert not list(replay.feed(GroupChanges([_change(3, 11)]), PLACE))
    assert len(list(GroupReplay().feed(GroupChanges([_change(0, 3), _change(1, 11)], ends_at=2), PLACE))) == 1


def _change(offset: int, kind: int) -> GroupChange:
    return GroupChange(offset, 0, 80, kind, b"g", b"", False, 0)
