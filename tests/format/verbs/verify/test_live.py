"""verify beside a running broker: files of different moments are compared again before they are called damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from format import layout
from format.files import offset_checkpoint, offset_index, producer_snapshot, time_index, transaction_index
from format.files.offset_checkpoint import TopicPartitionOffset
from format.findings import Finding, Severity
from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.verbs.ls import partition_listing
from format.verbs.ls.ls import ls
from format.verbs.verify import partition_checks
from format.verbs.verify.terms import Verification
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, batches, write_segment
from tests.faults.test_transactions import ABORT, marker, sent

NAME = f"{0:020d}"
PARTS = batches(6)
ABORTED = sent(18, 0, transactional=True) + marker(21, ABORT)
TXN_ENTRY = transaction_index.write(([7], [18], [21], [22]))


@pytest.fixture
def partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound partition in the log directory of a broker that runs."""
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), True, True))
    monkeypatch.setattr(live_broker, "_PATIENCE_S", 0.1)
    partition = tmp_path / "orders-0"
    write_segment(partition, 0, PARTS)
    (partition / f"{NAME}.index").write_bytes(b"")
    (partition / f"{NAME}.timeindex").write_bytes(b"")
    return partition


def checkpoint(directory: Path, offset: int) -> None:
    content = offset_checkpoint.write([TopicPartitionOffset("orders", 0, offset)])
    (directory / "replication-offset-checkpoint").write_bytes(content)


def append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def change_before_log(change: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a change once, after the directory was listed and other files were read, and before its log is opened."""
    changes = [change]
    verify_log_file = partition_checks.verify_log_file

    def changed(*arguments: object, **more: object) -> object:
        if changes:
            changes.pop()()
        return verify_log_file(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(partition_checks, "verify_log_file", changed)


def change_when_read(change: Callable[[], object]) -> Verification:
    """The terms of a run during which a change is made once, after the log was opened and its end fixed."""
    changes = [change]

    def watch(*_: object) -> None:
        if changes:
            changes.pop()()

    return Verification(watch=watch)


def accusations(log_dir: Path, terms: Verification | None = None) -> list[str]:
    found = verify(log_dir, terms or Verification())
    return [each.code for each in found if each.severity > Severity.INFO]


# -- what a broker writes between two readings: for each pair of files -------------------------------------------------


def test_a_transaction_that_ends_after_the_end_of_the_log_was_fixed(partition: Path) -> None:
    def abort() -> None:
        append(partition / f"{NAME}.log", ABORTED)
        (partition / f"{NAME}.txnindex").write_bytes(TXN_ENTRY)

    assert accusations(partition.parent, change_when_read(abort)) == []


def test_an_abort_whose_entry_is_written_after_its_marker(partition: Path) -> None:
    append(partition / f"{NAME}.log", ABORTED)
    (partition / f"{NAME}.txnindex").write_bytes(b"")
    read, entries = transaction_index.read, [b"", TXN_ENTRY]

    def read_and_written(path: Path, *more: object) -> object:
        path.write_bytes(entries.pop(0) if len(entries) > 1 else TXN_ENTRY)
        return read(path, *more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transaction_index, "read", read_and_written)
        assert accusations(partition.parent) == []


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_of_a_log_that_is_compacted_meanwhile(
    partition: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = [sum(map(len, PARTS[:number])) for number in range(7)]
    entries: dict[str, tuple[list[int], list[int]]] = {
        ".index": ([5, 11], positions[1:5:2]),
        ".timeindex": ([BASE_TIMESTAMP + 5, BASE_TIMESTAMP + 11], [5, 11]),
    }
    module = {".index": offset_index, ".timeindex": time_index}[suffix]
    (partition / f"{NAME}{suffix}").write_bytes(module.write(entries[suffix]))  # type: ignore[arg-type]

    def compact() -> None:
        cleaned = partition / "cleaned"
        cleaned.write_bytes(b"".join([PARTS[0], *PARTS[4:]]))
        cleaned.rename(partition / f"{NAME}.log")
        (partition / f"{NAME}{suffix}").write_bytes(b"")

    change_before_log(compact, monkeypatch)
    assert accusations(partition.parent) == []


def test_segments_that_are_merged_meanwhile(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(partition, 18, batches(1, 18))
    for suffix in (".index", ".timeindex"):
        (partition / f"{18:020d}{suffix}").write_bytes(b"")
    (partition / f"{NAME}.timeindex").write_bytes(time_index.write(([BASE_TIMESTAMP + 17], [17])))

    def merge() -> None:
        append(partition / f"{NAME}.log", batch(18))
        for each in partition.glob(f"{18:020d}.*"):
            each.rename(f"{each}.deleted")

    change_before_log(merge, monkeypatch)
    assert accusations(partition.parent) == []


def test_a_listing_of_segments_that_are_merged_meanwhile(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(partition, 18, batches(1, 18))
    for suffix in (".index", ".timeindex"):
        (partition / f"{18:020d}{suffix}").write_bytes(b"")
    list_segment, merges = partition_listing.list_segment, [True]

    def merged(*arguments: object, **more: object) -> object:
        if merges:
            merges.pop()
            append(partition / f"{NAME}.log", batch(18))
            for each in partition.glob(f"{18:020d}.*"):
                each.rename(f"{each}.deleted")
        return list_segment(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(partition_listing.SoundLogs, "add", lambda _, start, stop: start)
    monkeypatch.setattr(partition_listing, "list_segment", merged)
    found = [each.code for each in ls(partition.parent) if isinstance(each, Finding) and each.severity > Severity.INFO]
    assert (found, merges) == ([], [])


def test_a_leader_that_changes_meanwhile(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = partition / "leader-epoch-checkpoint"
    epochs.write_text("0\n1\n0 0\n")

    def elect() -> None:
        epochs.write_text("0\n2\n0 0\n3 18\n")
        append(partition / f"{NAME}.log", batch(18, leader_epoch=3))

    change_before_log(elect, monkeypatch)
    assert accusations(partition.parent) == []


def test_a_snapshot_that_is_half_written(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = partition / f"{18:020d}.snapshot"
    whole = producer_snapshot.write(tuple(np.empty(0, np.int64) for _ in layout.PRODUCER_SNAPSHOT_ENTRY.names))
    snapshot.write_bytes(whole[:6])
    check = partition_checks.check_producer_snapshot

    def written_after_the_first(*arguments: object, **more: object) -> object:
        found = [*check(*arguments, **more)]  # type: ignore[arg-type]
        assert snapshot.read_bytes() == whole or [each.code for each in found] == ["snapshot-invalid"]
        snapshot.write_bytes(whole)
        return found

    monkeypatch.setattr(partition_checks, "check_producer_snapshot", written_after_the_first)
    assert accusations(partition.parent) == []


def test_a_topic_that_is_created_again_meanwhile(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint(partition.parent, 900)
    (partition.parent / "meta.properties").write_text("version=1\ncluster.id=abc\nnode.id=1\n")
    change_before_log(lambda: checkpoint(partition.parent, 18), monkeypatch)
    assert "checkpoint-mismatch" not in accusations(partition.parent)


def test_a_file_that_is_created_while_its_directory_is_listed(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (partition / f"{NAME}.index").unlink()
    change_before_log(lambda: (partition / f"{NAME}.index").write_bytes(b""), monkeypatch)
    assert accusations(partition.parent) == []


def test_a_partition_that_is_deleted_meanwhile(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (partition / f"{NAME}.timeindex").write_bytes(time_index.write(([BASE_TIMESTAMP + 99], [17])))
    change_before_log(lambda: shutil.rmtree(partition), monkeypatch)
    assert set(accusations(partition.parent)) == {"file-changed"}


# -- what stays -------------------------------------------------------------------------------------------------------


def test_damage_beside_a_running_broker_is_reported_with_all_it_says(partition: Path) -> None:
    (partition / f"{NAME}.timeindex").write_bytes(time_index.write(([BASE_TIMESTAMP + 99], [17])))
    terms = Verification()
    found = [each for each in verify(partition.parent, terms) if each.severity > Severity.INFO]
    assert [(each.code, each.severity) for each in found] == [("time-index-mismatch", Severity.ERROR)]
    assert (terms.coverage.segments, terms.coverage.batches) == (1, 6)


def test_a_partition_that_is_read_once_where_nothing_is_wrong(partition: Path) -> None:
    reads: list[object] = []
    assert accusations(partition.parent, Verification(watch=lambda *each: reads.append(each))) == []
    assert len(reads) == 1


def test_damage_of_one_batch_is_not_read_again(partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker never changes the bytes of a batch; to read a large log again takes long."""
    content = bytearray(b"".join(PARTS))
    content[-1] ^= 1
    (partition / f"{NAME}.log").write_bytes(content)
    monkeypatch.setattr(live_broker.time, "sleep", lambda _: pytest.fail("it looked again"))
    assert accusations(partition.parent) == ["batch-crc-mismatch"]


def test_files_that_never_agree_are_not_compared(partition: Path) -> None:
    """Each reading finds another entry wrong, as beside a busy broker."""
    offsets = iter(range(18))
    read = time_index.read

    def changing(path: Path, *more: object) -> object:
        path.write_bytes(time_index.write(([BASE_TIMESTAMP + 99], [next(offsets)])))
        return read(path, *more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time_index, "read", changing)
        found = [each for each in verify(partition.parent, Verification()) if each.severity > Severity.INFO]
    assert [each.code for each in found] == ["file-changed"]
    assert "cannot be compared (time-index-mismatch)" in found[0].message
