"""What damage at either end of a segment loses: up to the next segment, or as far as is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from format.files import offset_checkpoint
from format.files.offset_checkpoint import TopicPartitionOffset
from format.findings import Finding, Severity
from format.layout import CLEAN_SHUTDOWN
from format.verbs.grep.grep import Criteria, grep
from format.verbs.verify.verify import Level, VerifyTerms, verify
from tests.building import batch, batches, write_segment
from tests.dumping import dump

HIGH_WATERMARK = "replication-offset-checkpoint"
RECOVERY_POINT = "recovery-point-offset-checkpoint"

READERS: dict[str, Callable[[Path], Iterable[object]]] = {
    "verify": verify,
    "verify by headers": lambda path: verify(path, VerifyTerms(Level.HEADERS)),
    "verify in two processes": lambda path: verify(path, VerifyTerms(jobs=2)),
    "dump": dump,
    "grep": lambda path: grep(path, Criteria()),
}


def losses(items: Iterable[object]) -> list[tuple[str, tuple[int, int]]]:
    found = [each for each in items if isinstance(each, Finding)]
    return [(each.code, each.lost_offsets) for each in found if each.lost_offsets is not None]


def checkpointed(log_dir: Path, **offsets: int) -> None:
    for name, offset in offsets.items():
        (log_dir / name).write_bytes(offset_checkpoint.write([TopicPartitionOffset("orders", 0, offset)]))


def damaged(path: Path, *, cut: int = 0, zeros_from: int | None = None, garbage_at: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    if cut:
        del content[-cut:]
    if zeros_from is not None:
        content[zeros_from:] = bytes(len(content) - zeros_from)
    if garbage_at is not None:
        content[garbage_at : garbage_at + 40] = b"\xee" * 40
    path.write_bytes(content)


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Offsets 0 to 8, 9 to 17 and 18 to 26 in three segments."""
    for first in (0, 9, 18):
        write_segment(tmp_path / "orders-0", first, batches(3, first))
    return tmp_path / "orders-0"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("is_clean", [False, True])
def test_every_reader_judges_a_cut_off_end_of_an_unknown_magic_by_the_stop(
    partition: Path, reader: str, is_clean: bool
) -> None:
    """Recovery cuts it off; after a clean stop a broker keeps it, and consumers fail on it."""
    if is_clean:
        (partition.parent / CLEAN_SHUTDOWN).touch()
    end = bytearray(batch(27, [b"v" * 50])[:-10])
    end[16] = 9
    with (partition / f"{18:020d}.log").open("ab") as log:
        log.write(end)
    found = [each for each in READERS[reader](partition) if isinstance(each, Finding) and each.code == "tail-torn"]
    assert [each.severity for each in found] == [Severity.FATAL if is_clean else Severity.WARNING]


BATCH = len(batches(1)[0])
BEFORE_OTHERS = {
    "cut in a batch": ({"cut": 7}, ("log-truncated", (15, 17))),
    "cut in the first batch": ({"cut": 3 * BATCH - 20}, ("log-truncated", (9, 17))),
    "zeros": ({"zeros_from": BATCH}, ("log-truncated", (12, 17))),
    "garbage at the end": ({"garbage_at": 2 * BATCH}, ("log-framing-broken", (15, 17))),
    "garbage at the start": ({"garbage_at": 0}, ("log-framing-broken", (9, 11))),
    "only zeros": ({"zeros_from": 0}, ("log-truncated", (9, 17))),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", BEFORE_OTHERS)
def test_a_segment_that_others_follow_loses_all_up_to_the_next_one(partition: Path, reader: str, case: str) -> None:
    how, expected = BEFORE_OTHERS[case]
    damaged(partition / f"{9:020d}.log", **how)
    assert losses(READERS[reader](partition)) == [expected]


def test_zeros_behind_a_whole_segment_lose_nothing(partition: Path) -> None:
    path = partition / f"{9:020d}.log"
    path.write_bytes(path.read_bytes() + bytes(100))
    found = [each for each in verify(partition) if each.code == "tail-zeros"]
    assert [each.lost_offsets for each in found] == [None]


@pytest.mark.parametrize("reader", READERS)
def test_the_end_of_the_last_segment_is_that_of_the_high_watermark(partition: Path, reader: str) -> None:
    damaged(partition / f"{18:020d}.log", cut=7)
    checkpointed(partition.parent, **{HIGH_WATERMARK: 26, RECOVERY_POINT: 40})
    assert losses(READERS[reader](partition)) == [("tail-torn", (24, 25))]


@pytest.mark.parametrize("reader", READERS)
def test_without_a_high_watermark_it_is_that_of_the_recovery_point(partition: Path, reader: str) -> None:
    damaged(partition / f"{18:020d}.log", cut=7)
    checkpointed(partition.parent, **{RECOVERY_POINT: 27})
    assert losses(READERS[reader](partition)) == [("tail-torn", (24, 26))]


def test_a_torn_end_is_an_error_only_where_consumers_could_read_what_is_lost(partition: Path) -> None:
    """Only after a clean stop: else the checkpoint may be newer than a copy of the log."""
    damaged(partition / f"{18:020d}.log", cut=7)
    for is_clean in (False, True):
        if is_clean:
            (partition.parent / CLEAN_SHUTDOWN).touch()
        for offset, is_lost in ((20, False), (24, False), (25, True)):
            checkpointed(partition.parent, **{HIGH_WATERMARK: offset})
            (torn,) = [each for each in verify(partition) if each.code == "tail-torn"]
            assert torn.severity is (Severity.ERROR if is_lost and is_clean else Severity.WARNING)


@pytest.mark.parametrize("zeros_from", [BATCH + BATCH // 2, 2 * BATCH + BATCH // 2])
def test_a_torn_write_of_zeros_inside_a_batch_is_one_finding(partition: Path, zeros_from: int) -> None:
    """4.3.1 cut such a log at the batch when it started."""
    path = partition / f"{18:020d}.log"
    damaged(path, zeros_from=zeros_from)
    first = 18 + zeros_from // BATCH * 3
    for mark, point, lost in ((first, 18, None), (first + 1, 18, (first, first)), (first, first + 1, None)):
        checkpointed(partition.parent, **{HIGH_WATERMARK: mark, RECOVERY_POINT: point})
        torn, *rest = [each for each in verify(partition) if each.code.startswith(("tail-", "batch-"))]
        assert (torn.code, torn.location.position, torn.lost_offsets) == (
            "tail-torn",
            zeros_from // BATCH * BATCH,
            lost,
        )
        assert torn.severity is (Severity.WARNING if max(mark, point) == first else Severity.ERROR)
        assert [(each.code, each.caused_by and each.caused_by.code) for each in rest] == [
            ("batch-crc-mismatch", "tail-torn")
        ]
    (partition.parent / CLEAN_SHUTDOWN).touch()
    found = [each for each in verify(partition) if each.code == "batch-crc-mismatch"]
    assert [(each.severity, each.caused_by) for each in found] == [(Severity.FATAL, None)]


def test_an_intact_batch_after_a_wrong_one_is_no_torn_end(partition: Path) -> None:
    """Recovery removes it, too."""
    path = partition / f"{18:020d}.log"
    content = path.read_bytes()
    path.write_bytes(content[: 2 * BATCH - 9] + bytes(9) + content[2 * BATCH :])
    checkpointed(partition.parent, **{HIGH_WATERMARK: 18, RECOVERY_POINT: 18})
    found = [each for each in verify(partition) if each.code in ("tail-torn", "batch-crc-mismatch")]
    assert [(each.code, each.severity) for each in found] == [("batch-crc-mismatch", Severity.FATAL)]


def test_an_end_that_waits_in_a_swap_file_is_not_lost(partition: Path) -> None:
    """A broker completes the swap when it starts."""
    checkpointed(partition.parent, **{HIGH_WATERMARK: 27})
    for path in list(partition.glob(f"{18:020d}.*")):
        path.rename(f"{path}.swap")
    assert [each.code for each in verify(partition) if each.severity >= Severity.WARNING] == ["index-missing"] * 6


def test_what_is_not_known_is_said(partition: Path) -> None:
    damaged(partition / f"{18:020d}.log", cut=7)
    (torn,) = [each for each in verify(partition) if each.code == "tail-torn"]
    assert torn.lost_offsets is None
    assert torn.message.endswith("it is not known where the log ended")
    checkpointed(partition.parent, **{HIGH_WATERMARK: 20})
    (torn,) = [each for each in verify(partition) if each.code == "tail-torn"]
    assert torn.location.offset is not None
    assert torn.location.offset > 20
    assert torn.message.endswith(f"; no checkpoint or snapshot shows a record from offset {torn.location.offset} on")


def test_a_checkpoint_past_a_torn_end_names_its_cause(partition: Path) -> None:
    damaged(partition / f"{18:020d}.log", cut=7)
    checkpointed(partition.parent, **{HIGH_WATERMARK: 27})
    found = {each.code: each for each in verify(partition)}
    cause = found["checkpoint-mismatch"].caused_by
    assert cause is not None
    assert cause.code == "tail-torn"
    assert "another finding has the same offsets" in found["checkpoint-mismatch"].message


def test_an_impossible_header_at_the_end_of_a_segment_loses_no_more_than_there_is_room_for(partition: Path) -> None:
    path = partition / f"{9:020d}.log"
    content = bytearray(path.read_bytes())
    content[2 * BATCH + 23 : 2 * BATCH + 27] = (2_000_000).to_bytes(4, "big")  # the last offset delta, under the CRC
    path.write_bytes(content)
    assert losses(verify(partition)) == [("batch-crc-mismatch", (15, 17))]


def test_losses_that_are_none_say_why(partition: Path) -> None:
    damaged(partition / f"{9:020d}.log", garbage_at=0)
    checkpointed(partition.parent, **{"log-start-offset-checkpoint": 11})
    (broken,) = [each for each in verify(partition) if each.code == "log-framing-broken"]
    assert broken.lost_offsets == (11, 11)
    assert "below the log start offset 11 were deleted on purpose" in broken.message


@pytest.mark.parametrize("has_segment", [True, False])
def test_a_partition_whose_segments_are_gone_lost_all_of_its_log(tmp_path: Path, has_segment: bool) -> None:
    partition = tmp_path / "orders-0"
    write_segment(partition, 0, batches(2))
    (partition / f"{0:020d}.log").rename(partition / (f"{0:020d}.log" + (".deleted" if has_segment else ".swap")))
    checkpointed(tmp_path, **{HIGH_WATERMARK: 6, "log-start-offset-checkpoint": 2})
    assert losses(verify(partition)) == ([("checkpoint-mismatch", (2, 5))] if has_segment else [])


def test_a_log_that_is_a_link_is_not_gone(tmp_path: Path) -> None:
    elsewhere = write_segment(tmp_path / "elsewhere", 0, batches(2))
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / elsewhere.name).symlink_to(elsewhere)
    checkpointed(tmp_path, **{HIGH_WATERMARK: 6})
    assert losses(verify(tmp_path / "orders-0")) == []


def test_a_gap_before_an_empty_last_segment_is_seen(tmp_path: Path) -> None:
    keyless = batch(0, key=None)
    write_segment(tmp_path / "orders-0", 0, [keyless, *batches(1, 3)])
    write_segment(tmp_path / "orders-0", 9, [])
    assert losses(verify(tmp_path / "orders-0")) == [("segment-missing", (6, 8))]
    write_segment(tmp_path / "whole-0", 0, [keyless, *batches(2, 3)])
    write_segment(tmp_path / "whole-0", 9, [])
    assert losses(verify(tmp_path / "whole-0")) == []


def test_a_log_whose_name_has_fewer_digits_hides_the_log(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, batches(3))
    (tmp_path / "orders-0" / "3.log").write_bytes(b"")
    (found,) = [each for each in verify(tmp_path / "orders-0") if each.code == "entry-unexpected"]
    assert found.severity is Severity.ERROR
    assert f"opens {3:020d}.log instead" in found.message
    (tmp_path / "orders-0" / "3.log").rename(tmp_path / "orders-0" / "0.log")  # the log that is opened is there
    (found,) = [each for each in verify(tmp_path / "orders-0") if each.code == "entry-unexpected"]
    assert found.severity is Severity.INFO
