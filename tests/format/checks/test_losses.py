"""Losses: within what consumers could read, and no offset twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.checks.losses import LossAccount, after_stop
from format.files import producer_snapshot
from format.findings import Certainty, Finding, Severity, finding
from format.location import Location
from format.node.offsets import PartitionOffsets
from format.rows.finding_rows import finding_as_json, finding_from_json
from format.state.producers import ProducerState
from format.verbs.grep.grep import Criteria, grep
from format.verbs.ls.ls import ls
from format.verbs.verify.verify import verify
from tests.building import batch, batches, wrapper, write_segment
from tests.dumping import dump
from tests.faults.test_transactions import marker
from tests.faults.test_transactions import sent as three_records

Range = tuple[int, int]


def counted(offsets: PartitionOffsets, *ranges: Range) -> list[Range | None]:
    account = LossAccount(offsets)
    found = [finding("log-framing-broken", Location("a"), "", lost_offsets=each) for each in ranges]
    return [each.lost_offsets for one in found for each in account.counted(one)]


@pytest.mark.parametrize(
    ("lost", "expected"),
    [((0, 9), None), ((5, 14), (10, 14)), ((12, 14), (12, 14)), ((90, 120), (90, 99)), ((100, 120), None)],
)
def test_what_was_deleted_or_never_served_is_no_loss(lost: Range, expected: Range | None) -> None:
    offsets = PartitionOffsets(0, log_start_checkpoint=10, high_watermark=100, is_clean_shutdown=True)
    assert counted(offsets, lost) == [expected]


def test_a_high_watermark_that_may_be_old_bounds_nothing() -> None:
    offsets = PartitionOffsets(0, high_watermark=100, is_clean_shutdown=False)
    assert counted(offsets, (90, 120)) == [(90, 120)]


def test_no_offset_is_counted_twice() -> None:
    ranges = ((10, 19), (10, 19), (15, 24), (5, 12), (0, 30), (40, 50))
    assert counted(PartitionOffsets(0), *ranges) == [(10, 19), None, (20, 24), (5, 9), (0, 4), (25, 30), (40, 50)]


@pytest.mark.parametrize("lost", [None, (5, 9)])
@pytest.mark.parametrize("is_clean", [False, True, None])
@pytest.mark.parametrize("topic", ["orders", "__cluster_metadata"])
def test_the_next_step_for_a_torn_end_depends_on_the_stop(
    lost: Range | None, is_clean: bool | None, topic: str
) -> None:
    before = finding("tail-torn", Location("a", topic, 0), "", lost_offsets=lost)
    after = after_stop(before, PartitionOffsets(0, is_clean_shutdown=is_clean))
    is_left = bool(is_clean) and topic == "orders"  # a broker recovers the metadata log at every start
    assert (".kafka_cleanshutdown" in after.next_step) == is_left
    assert ("the lost offsets" in after.next_step) == (is_left and lost is not None)
    assert is_left or after == before


def sent(base_offset: int, producer_id: int, base_sequence: int) -> bytes:
    return batch(base_offset, producer_id=producer_id, producer_epoch=0, base_sequence=base_sequence)


def gaps_of(partition: Path) -> list[Finding]:
    return [each for each in verify(partition) if isinstance(each, Finding) and each.code == "sequence-gap"]


def test_a_gap_behind_a_damaged_batch_names_it(tmp_path: Path) -> None:
    """Producer 7 lost its batch at offset 3. Producer 8 wrote nothing there: its gap is one of its own."""
    content = [sent(0, 7, 0), sent(3, 7, 3), sent(6, 8, 0), sent(9, 7, 6), sent(12, 8, 9)]
    content[1] = content[1][:-1] + bytes([content[1][-1] ^ 1])
    partition = write_segment(tmp_path / "t-0", 0, content).parent
    log = partition / f"{0:020d}.log"
    effect, own = gaps_of(partition)
    assert effect.location.offset == 9
    assert effect.caused_by is not None
    assert effect.caused_by.as_json() == {
        "code": "batch-crc-mismatch",
        "path": str(log),
        "position": len(content[0]),
        "offset": 3,
    }
    assert effect.next_step == "Nothing for this finding: see the damage that caused it."
    assert finding_from_json(finding_as_json(effect)) == effect
    assert (own.location.offset, own.caused_by) == (12, None)
    assert "Look for lost" in own.next_step


def test_damage_in_an_earlier_segment_is_a_cause(tmp_path: Path) -> None:
    lost = sent(3, 7, 3)
    write_segment(tmp_path / "t-0", 0, [sent(0, 7, 0), lost[:-1] + bytes([lost[-1] ^ 1])])
    partition = write_segment(tmp_path / "t-0", 6, [sent(6, 7, 6)]).parent
    (effect,) = gaps_of(partition)
    assert effect.caused_by is not None
    assert effect.caused_by.path == str(partition / f"{0:020d}.log")


def damaged(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


def in_transaction(base_offset: int, producer_id: int, base_sequence: int) -> bytes:
    return three_records(base_offset, base_sequence, producer_id=producer_id, transactional=True)


def causes_of(partition: Path, code: str) -> list[tuple[int | None, int | None]]:
    """The offset of each finding of a code, and that of its cause."""
    return [
        (each.location.offset, None if each.caused_by is None else each.caused_by.offset)
        for each in verify(partition)
        if isinstance(each, Finding) and each.code == code
    ]


@pytest.mark.parametrize("in_two_segments", [False, True])
def test_a_marker_whose_transaction_was_lost_names_the_damage(tmp_path: Path, in_two_segments: bool) -> None:
    """Producer 7 committed a transaction, and another one whose batch is damaged. Producer 8 wrote nothing there."""
    before = [in_transaction(0, 7, 0), marker(3), marker(4, producer_id=8), damaged(in_transaction(5, 7, 3))]
    after = [marker(8), marker(9), marker(10, producer_id=9)]
    if in_two_segments:
        write_segment(tmp_path / "t-0", 0, before)
        write_segment(tmp_path / "t-0", 8, after)
    else:
        write_segment(tmp_path / "t-0", 0, before + after)
    expected = [(4, None), (8, 5), (9, None), (10, 5)]  # of producer 9 nothing else is known: it may have lost records
    assert causes_of(tmp_path / "t-0", "transaction-marker-orphan") == expected


def test_an_open_transaction_names_the_damage_behind_its_last_batch(tmp_path: Path) -> None:
    """The marker of producer 7 is damaged. Producer 8 went on after that, and has an open transaction of its own."""
    content = [in_transaction(0, 7, 0), in_transaction(3, 8, 0), damaged(marker(6)), in_transaction(7, 8, 3)]
    write_segment(tmp_path / "t-0", 0, content)
    assert causes_of(tmp_path / "t-0", "transaction-open") == [(0, 6), (3, None)]


@pytest.mark.parametrize("is_torn", [True, False])
def test_what_a_torn_end_took_names_it(tmp_path: Path, is_torn: bool) -> None:
    """A snapshot, a checkpoint and a leader epoch of offsets that the log no longer reaches."""
    content = [sent(0, 7, 0), sent(3, 7, 3)]
    log = write_segment(tmp_path / "t-0", 0, content)
    (tmp_path / "t-0" / f"{9:020d}.snapshot").write_bytes(producer_snapshot.write(ProducerState().snapshot_columns()))
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n1 8\n")
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 9\n")
    log.write_bytes(log.read_bytes()[: -10 if is_torn else -len(content[1])])
    found = [each for each in verify(tmp_path) if isinstance(each, Finding)]
    codes = {"snapshot-mismatch", "checkpoint-mismatch", "leader-epoch-checkpoint-mismatch"}
    effects = [each for each in found if each.code in codes]
    assert {each.code for each in effects} == codes
    causes = {None if each.caused_by is None else (each.caused_by.code, each.caused_by.offset) for each in effects}
    assert causes == ({("tail-torn", 3)} if is_torn else {None})
    assert all("Nothing for this finding" not in each.next_step for each in effects)


def test_offsets_in_batches_at_other_places_are_not_lost(tmp_path: Path) -> None:
    """Six batches of ten are swapped in pairs and one is cut: what no intact batch has is lost, and nothing else."""
    sound = [batch(number * 3, key=None) for number in range(10)]
    log_dir = log_dir_of(tmp_path, 30, [*sound[:3], *sound[6:8], sound[5][:40], *sound[3:5], *sound[8:]])
    lost = [each.lost_offsets for each in verify(log_dir) if each.lost_offsets is not None]
    assert lost == [(15, 17)]


READERS: dict[str, Callable[[Path], Iterable[object]]] = {
    "verify of the partition": verify,
    "verify of the file": lambda partition: verify(partition / f"{0:020d}.log"),
    "dump": dump,
    "grep": lambda partition: grep(partition, Criteria()),
    "ls": ls,
}


@pytest.mark.parametrize("reader", READERS)
def test_lost_offsets_around_others_are_several_findings(tmp_path: Path, reader: str) -> None:
    """What lies in the wrong place of a file is not lost, whoever reads it; its words are the same."""
    sound = [batch(number * 3, key=None) for number in range(10)]
    content = [*sound[:2], b"x" * 300, *sound[7:], sound[4]]
    write_segment(tmp_path / "t-0", 0, content)
    found = [each for each in READERS[reader](tmp_path / "t-0") if isinstance(each, Finding)]
    found = [each for each in found if each.code == "log-framing-broken"]
    assert [each.lost_offsets for each in found] == [(6, 11), (15, 20)]
    (message,) = {each.message for each in found}
    assert "missing here (only offsets 6 to 11 and offsets 15 to 20 are counted as lost: " in message


@pytest.mark.parametrize("again", [200, 130, 60])
def test_the_start_of_a_log_after_its_end_loses_nothing(tmp_path: Path, again: int) -> None:
    whole = b"".join(batches(10))
    log_dir = log_dir_of(tmp_path, 30, [whole, whole[:again]])
    found = [each for each in verify(log_dir) if each.severity >= Severity.WARNING]
    assert not any(each.lost_offsets for each in found)
    torn = [each for each in found if " missing here" in each.message]
    assert all("(no offset is counted as lost: " in each.message for each in torn)
    assert not any("these offsets" in each.next_step for each in torn)
    hidden = [each for each in found if "a broker takes 3 for the end of the log" in each.message]
    assert len(hidden) == (again >= len(batches(1)[0]))


def test_a_repeated_batch_in_place_of_another_hides_no_loss(tmp_path: Path) -> None:
    sound = [batch(number * 3, key=None) for number in range(10)]
    log_dir = log_dir_of(tmp_path, 30, [*sound[:4], sound[1], *sound[5:]])
    lost = [each.lost_offsets for each in verify(log_dir) if each.lost_offsets is not None]
    assert lost == [(12, 14)]


def test_a_copy_of_a_later_batch_in_place_of_another_hides_no_loss(tmp_path: Path) -> None:
    """Before its own copy is read, it looks as if it had a false base offset."""
    sound = [batch(number * 3, key=None) for number in range(10)]
    log_dir = log_dir_of(tmp_path, 30, [*sound[:4], sound[8], *sound[5:]])
    found = list(verify(log_dir))
    assert [each.lost_offsets for each in found if each.lost_offsets is not None] == [(12, 14)]
    assert any("in the log a second time" in each.message for each in found)


def test_repeated_batches_before_a_damage_hide_no_loss(tmp_path: Path) -> None:
    """A page of later batches lies twice in the middle of the log, over batches that are lost."""
    sound = [batch(number * 3, key=None) for number in range(10)]
    content = [*sound[:3], sound[7], sound[7], sound[4], b"x" * 300, *sound[8:]]
    log_dir = log_dir_of(tmp_path, 30, content)
    lost = {each.lost_offsets for each in verify(log_dir) if each.lost_offsets is not None}
    assert lost == {(9, 11), (15, 20)}


@pytest.mark.parametrize("has_records", [True, False])
def test_a_log_that_starts_with_an_empty_segment_misses_its_offsets(tmp_path: Path, has_records: bool) -> None:
    """A file was cut to nothing: a broker leaves an empty segment before others only where it compacts."""
    log_dir = log_dir_of(tmp_path, 18 if has_records else 9, [])
    write_segment(log_dir / "t-0", 9, batches(3, 9) if has_records else [])
    (found,) = [each for each in verify(log_dir) if each.code == "segment-missing"]
    assert (found.severity, found.certainty) == (Severity.INFO, Certainty.POSSIBLE)
    assert found.message.startswith("offsets 0 to 8 are in no batch here: compaction removed the records, or they are")
    checkpoint = log_dir / "cleaner-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 9\n")
    assert not [each for each in verify(log_dir) if each.code == "segment-missing"]


def test_a_false_base_offset_after_a_damage_hides_no_loss(tmp_path: Path) -> None:
    sound = [batch(number * 3, key=None) for number in range(10)]
    second = [sound[4], b"x" * 300, b"\0" * 8 + sound[7][8:], *sound[8:]]
    log_dir = log_dir_of(tmp_path, 30, sound[:4])
    write_segment(log_dir / "t-0", 12, second)
    lost = [each.lost_offsets for each in verify(log_dir) if each.lost_offsets is not None]
    assert lost == [(15, 23)]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_damaged_first_message_of_a_segment_loses_all_that_was_in_it(tmp_path: Path, magic: int) -> None:
    """The header of a compressed message has only its last offset."""
    log_dir = log_dir_of(tmp_path, 15, [wrapper(magic, 0), wrapper(magic, 3)])
    write_segment(log_dir / "t-0", 6, [damaged(wrapper(magic, 6)), wrapper(magic, 9), wrapper(magic, 12)])
    assert [each.lost_offsets for each in verify(log_dir) if each.lost_offsets is not None] == [(6, 8)]


def log_dir_of(path: Path, end: int, content: list[bytes]) -> Path:
    """A log directory after a clean stop whose one log ended at an offset."""
    write_segment(path / "t-0", 0, content)
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (path / name).write_text(f"0\n1\nt 0 {end}\n")
    (path / "meta.properties").write_text("version=1\ncluster.id=aaaaaaaaaaaaaaaaaaaaaQ\nnode.id=1\n")
    (path / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    return path
