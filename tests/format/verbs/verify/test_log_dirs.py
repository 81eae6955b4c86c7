"""Whole log directories: heads in remote storage, empty ones, topic ids, snapshots, records gone after a clean stop."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from format.files import offset_checkpoint, partition_metadata
from format.files.offset_checkpoint import TopicPartitionOffset
from format.findings import Cause, Finding, Severity
from format.node.partition import read_partition
from format.verbs.find.find import find_offset, find_timestamp
from format.verbs.ls.ls import ls
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batches, write_segment
from tests.corpora import DATA_DIR
from tests.dumping import dump
from tests.oracle.boot_mutations.node import batch_positions, overwrite


def codes(items: object) -> list[str]:
    return [each.code for each in items if isinstance(each, Finding) and each.code != "index-missing"]  # type: ignore[attr-defined]


def write_checkpoint(directory: Path, name: str, offset: int) -> None:
    (directory / name).write_bytes(offset_checkpoint.write([TopicPartitionOffset("orders", 0, offset)]))


@pytest.fixture
def tiered(tmp_path: Path) -> Path:
    """A log directory of a broker with tiered storage: offsets 3 to 29 of orders-0 are remote."""
    write_segment(tmp_path / "orders-0", 30, batches(2, 30))
    (tmp_path / "remote-log-index-cache").mkdir()
    write_checkpoint(tmp_path, "log-start-offset-checkpoint", 3)
    return tmp_path


def remote_heads(path: Path) -> int:
    """The heads in remote storage that a verification did not check."""
    verified = verify(path)
    assert "log-head-remote" not in codes(verified)
    return verified.coverage.remote_heads


def test_a_remote_head_is_said_to_be_unread(tiered: Path) -> None:
    partition = tiered / "orders-0"
    assert remote_heads(tiered) == remote_heads(partition) == 1
    for items in (dump(tiered), dump(partition)):
        (head,) = [each for each in items if isinstance(each, Finding)]
        assert (head.code, head.is_incomplete) == ("log-head-remote", True)
        assert head.message == "offsets 3 to 29 are in remote storage, and not read"
    listed = list(ls(tiered))
    assert "log-head-remote" not in codes(listed)
    (listing,) = [each for each in listed if isinstance(each, PartitionListing)]
    assert (listing.log_start_offset, listing.notes) == (3, "index-missing; head in remote storage")


def test_look_ups_in_a_log_with_a_remote_head(tiered: Path) -> None:
    partition = read_partition(tiered / "orders-0")
    by_offset = find_offset(partition, 29)
    assert codes(by_offset.findings) == ["log-head-remote"]
    assert by_offset.reason == "offset 29 is in remote storage, which is not read"
    assert "log-head-remote" in codes(find_timestamp(partition, BASE_TIMESTAMP).findings)
    assert "below the log start offset 3" in find_offset(partition, 2).reason


def test_a_clean_stop_tells_of_a_remote_head_too(tiered: Path) -> None:
    (tiered / "remote-log-index-cache").rmdir()
    assert remote_heads(tiered) == 0
    (mismatch,) = [each for each in verify(tiered) if each.code == "checkpoint-mismatch"]
    assert mismatch.severity is Severity.INFO
    (tiered / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    assert remote_heads(tiered) == 1
    assert "checkpoint-mismatch" not in codes(verify(tiered))


def test_nothing_read_is_never_complete(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    for path in (tmp_path, tmp_path / "orders-0"):
        assert codes(verify(path))[-1] == codes(dump(path))[-1] == "nothing-to-read"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["a", "a", "b"], []),
        (["a", "c", "b"], ["orders-1"]),
        (["a", "a", "a"], ["payments-0"]),
    ],
)
def test_topic_ids(tmp_path: Path, ids: list[str], expected: list[str]) -> None:
    for name, topic_id in zip(("orders-0", "orders-1", "payments-0"), ids, strict=True):
        write_segment(tmp_path / name, 0, batches(1))
        (tmp_path / name / "partition.metadata").write_bytes(partition_metadata.write(topic_id * 21 + "A"))
    found = [each for each in verify(tmp_path) if each.code == "topic-id-conflict"]
    assert [Path(each.location.path).parent.name for each in found] == expected
    assert all(each.severity is Severity.ERROR for each in found)


def test_the_newest_snapshot_in_zeros_is_damage(data_dir: Path, tmp_path: Path) -> None:
    node = Path(shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node"))
    snapshots = sorted((node / "__cluster_metadata-0").glob("*.checkpoint"))
    for path in (*snapshots[-2:], node / "bootstrap.checkpoint"):
        path.chmod(0o644)
        path.write_bytes(bytes(path.stat().st_size))
    found = {Path(each.location.path).name: each.severity for each in verify(node) if each.code == "data-truncated"}
    assert found == {
        "bootstrap.checkpoint": Severity.ERROR,
        snapshots[-2].name: Severity.WARNING,
        snapshots[-1].name: Severity.ERROR,
    }
    assert "tail-zeros" not in codes(verify(node))


def stopped_node(data_dir: Path, tmp_path: Path) -> Path:
    """A copy of the single node, which was stopped cleanly."""
    node = Path(shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node"))
    for each in node.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    (node / ".kafka_cleanshutdown").touch()
    return node


@pytest.mark.parametrize("excess", [1, 7])
def test_a_base_offset_that_is_too_high_in_the_last_batch_is_an_error(
    data_dir: Path, tmp_path: Path, excess: int
) -> None:
    """Outside the CRC: only the end of the log at the clean stop, and the gap before the batch, show it."""
    node = stopped_node(data_dir, tmp_path)
    log = sorted((node / "orders-1").glob("*.log"))[-1]
    position, _, base, _ = batch_positions(log)[-1]
    overwrite(log, position, struct.pack(">q", base + excess))
    (found,) = [each for each in verify(node) if each.code == "checkpoint-mismatch"]
    assert found.severity is Severity.ERROR
    assert found.message.endswith(f"the base offsets after that gap are {excess} too high")


def test_a_log_past_the_recovery_point_without_such_a_gap_is_suspicious_only(data_dir: Path, tmp_path: Path) -> None:
    node = stopped_node(data_dir, tmp_path)
    checkpoint = node / "recovery-point-offset-checkpoint"
    checkpoint.write_text(checkpoint.read_text().replace("orders 1 1166", "orders 1 1160"))
    (found,) = [each for each in verify(node) if each.code == "checkpoint-mismatch"]
    assert found.severity is Severity.WARNING


def test_a_head_that_is_lost_is_not_called_remote_as_well(data_dir: Path, tmp_path: Path) -> None:
    node = stopped_node(data_dir, tmp_path)
    for each in (node / "orders-0").glob(f"{0:020}.*"):
        each.unlink()
    (node / "log-start-offset-checkpoint").write_text("0\n2\ntrimmed 0 300\norders 0 500\n")
    found = [each for each in verify(node) if each.location.topic == "orders"]
    assert [(each.code, each.lost_offsets) for each in found] == [("checkpoint-mismatch", (500, 1101))]
    assert remote_heads(node) == 0


@pytest.mark.parametrize("is_cut", [True, False])
def test_records_gone_after_a_clean_stop_are_an_error_and_counted_once(
    data_dir: Path, tmp_path: Path, is_cut: bool
) -> None:
    node = Path(shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node"))
    log = sorted((node / "orders-1").glob("*.log"))[-1]
    log.chmod(0o644)
    content = log.read_bytes()
    log.write_bytes(content[:61] if is_cut else bytes(len(content)))
    found = [each for each in verify(node) if each.location.topic == "orders" and each.location.partition == 1]
    lost = [each for each in found if each.lost_offsets is not None]
    code = "tail-torn" if is_cut else "tail-zeros"
    assert [(each.code, each.severity) for each in lost] == [(code, Severity.ERROR)]
    (watermark, *_) = [each for each in found if each.code == "checkpoint-mismatch"]
    assert watermark.caused_by == Cause.of(lost[0])
    assert watermark.severity is Severity.ERROR
    assert lost[0].lost_offsets == (int(log.stem), watermark.actual - 1)


# -- a first segment that no broker deleted ------------------------------------------------------------------------


@pytest.fixture
def headless(tmp_path: Path) -> Path:
    """A node that stopped cleanly. Then the first segment of orders-2 was lost, with its offsets 0 to 1031."""
    node = tmp_path / "node-1"
    shutil.copytree(DATA_DIR / "kafka-4.3-single" / "node-1", node)
    for path in (node / "orders-2").glob("00000000000000000000.*"):
        path.unlink()
    return node


def lost_heads(path: Path) -> list[tuple[str, tuple[int, int] | None]]:
    found = [each for each in verify(path) if each.code == "log-head-missing"]
    return [(each.severity.label, each.lost_offsets) for each in found]


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_lost_first_segment_is_a_warning(headless: Path, is_clean: bool) -> None:
    """Also after a clean stop: a crash long before, or a copy that was started, may have left the old checkpoint."""
    if not is_clean:
        (headless / ".kafka_cleanshutdown").unlink()
    assert lost_heads(headless) == lost_heads(headless / "orders-2") == [("warning", (0, 1031))]


def test_a_partition_by_itself_may_have_its_head_in_remote_storage(headless: Path, tmp_path: Path) -> None:
    alone = Path(shutil.move(headless / "orders-2", tmp_path / "orders-2"))
    assert lost_heads(alone) == [("info", None)]


@pytest.mark.parametrize("case", ["moved", "remote", "deleted"])
def test_a_first_segment_that_a_broker_deleted_is_not_lost(headless: Path, case: str) -> None:
    partition = headless / "orders-2"
    if case == "moved":
        (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 1032\n")
    elif case == "remote":
        (headless / "log-start-offset-checkpoint").write_text("0\n1\norders 2 0\n")
    else:
        (partition / f"{0:020d}.log.deleted").touch()
    assert lost_heads(headless) == []
