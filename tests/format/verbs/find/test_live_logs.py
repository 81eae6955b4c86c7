"""Look-ups beside a running broker, which writes its checkpoint and its indexes at other moments than the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from format.errors import KafkaLogError
from format.findings import Finding
from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.node.partition import read_partition
from format.verbs.find.find import find_offset
from format.verbs.find.lookup import Visibility
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.format.verbs.find.lookups import by_max, by_offset, by_time, seen, three_segments, write_checkpoint
from tests.format.verbs.txns.transaction_logs import data, marker

WRONG_ENTRY = (6).to_bytes(4, "big") + (1).to_bytes(4, "big")


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that holds each lock."""
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), True, True, 4711))
    monkeypatch.setattr(live_broker, "_PATIENCE_S", 0.02)
    monkeypatch.setattr(live_broker, "_PAUSE_S", 0.001)


def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Let a broker change a file after the first look."""
    monkeypatch.setattr(live_broker.time, "sleep", lambda _: change())


def test_the_checkpoint_of_a_running_broker_hides_no_record(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    for found in (by_max(partition), by_time(partition, BASE_TIMESTAMP + 29)):
        assert (found.offset, found.codes) == (29, [])
        [unknown] = found.found.not_checked
        assert "high watermark 23, and the running broker a newer one" in unknown
    assert by_time(partition, BASE_TIMESTAMP + 22).found.not_checked == []
    assert by_max(partition, past_high_watermark=True).found.not_checked == []


def test_a_broker_that_starts_as_the_only_replica_in_sync_serves_what_is_past_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.3.1 returned such records right after a crash: the reason must not say that a broker has no answer."""
    monkeypatch.undo()
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    reason = by_time(partition, BASE_TIMESTAMP + 29).reason
    assert reason.startswith("the record at offset 29 is at or past the high watermark 23 of the checkpoint: a broker ")
    assert reason.endswith("at once if no other replica is in sync")


@pytest.mark.parametrize(
    ("offset", "unsure"), [(22, ""), (23, "if it is replicated: the checkpoint has high watermark 23")]
)
def test_who_can_see_an_offset_past_the_checkpoint(tmp_path: Path, offset: int, unsure: str) -> None:
    partition = three_segments(tmp_path)
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "topic", 0, 23)
    match = by_offset(partition, offset).match
    assert match.visibility is Visibility.VISIBLE
    assert match.unsure.startswith(unsure)
    assert bool(match.unsure) is bool(unsure)


def test_a_marker_past_the_checkpoint_ends_a_transaction(tmp_path: Path) -> None:
    write_segment(tmp_path / "payments-0", 0, [data(0, 7), batch(2), marker(5, 7, commit=True)])
    write_checkpoint(tmp_path, "replication-offset-checkpoint", "payments", 0, 5)
    assert by_offset(tmp_path / "payments-0", 0).match.visibility is Visibility.VISIBLE


def test_an_entry_that_is_wrong_for_a_moment_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = three_segments(tmp_path)
    index = partition / f"{0:020d}.index"
    sound = index.read_bytes()
    index.write_bytes(WRONG_ENTRY)
    meanwhile(monkeypatch, lambda: index.write_bytes(sound))
    found = by_offset(partition, 7)
    assert (found.offset, found.codes) == (7, [])


def test_an_entry_that_stays_wrong_is_reported(tmp_path: Path) -> None:
    partition = three_segments(tmp_path)
    (partition / f"{0:020d}.index").write_bytes(WRONG_ENTRY)
    found = by_offset(partition, 7)
    assert (found.offset, found.codes) == (7, ["offset-index-mismatch"])


def test_a_segment_that_was_deleted_after_the_listing(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    partition = read_partition(directory)
    assert len(partition.segments) == 3
    for path in directory.glob(f"{0:020d}.*"):
        path.unlink()
    found = seen(find_offset(partition, 3))
    assert (found.offset, found.codes) == (None, [])
    assert found.reason.startswith("offset 3 is below the log start offset 10")


def test_a_partition_that_was_deleted_after_the_listing(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    partition = read_partition(directory)
    assert len(partition.segments) == 3
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    found = find_offset(partition, 3)
    assert isinstance(found.error, KafkaLogError)
    assert not any(isinstance(each, Finding) for each in found.findings)
