"""Files beside the log: of odd length, not monotonic, false, of a bad version, missing, orphaned, left over."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path

import pytest

from format import layout
from format.files import offset_index, producer_snapshot, time_index
from format.findings import Finding
from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.limits import Limits
from format.log.encode_batches import encode_message
from format.verbs.ls.ls import ls
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, batches, write_segment
from tests.faults.judging import codes_of, findings_of, partition_of

PARTS = batches(6)
LOG = b"".join(PARTS)
POSITIONS = [sum(len(each) for each in PARTS[:number]) for number in range(7)]
NAME = "00000000000000000000"
INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = (
    NAME + suffix for suffix in (".index", ".timeindex", ".txnindex", ".snapshot")
)
LAST_TIMESTAMP = BASE_TIMESTAMP + 17


def reported(folder: Path, name: str, content: bytes, log: bytes = LOG) -> list[str]:
    return codes_of(findings_of(partition_of(folder, log, {name: content})))


# -- .index --------------------------------------------------------------------------------------------------

SOUND_INDEX = offset_index.write(([5, 11], [POSITIONS[1], POSITIONS[3]]))


def test_sound_indexes_are_silent(tmp_path: Path) -> None:
    assert reported(tmp_path, INDEX, SOUND_INDEX) == []
    assert reported(tmp_path, TIME_INDEX, time_index.write(([BASE_TIMESTAMP + 5, LAST_TIMESTAMP], [5, 17]))) == []


INDEXES: dict[str, tuple[bytes, list[str]]] = {
    "odd length": (SOUND_INDEX + b"\x00\x00\x01", ["index-invalid"]),
    "offsets fall": (
        offset_index.write(([11, 5], [POSITIONS[1], POSITIONS[3]])), ["index-invalid", "offset-index-mismatch"]),
    "positions fall": (
        offset_index.write(([5, 11], [POSITIONS[3], POSITIONS[1]])), ["index-invalid", "offset-index-mismatch"]),
    "negative": (offset_index.write(([-5], [POSITIONS[1]])), ["index-invalid", "offset-index-mismatch"]),
    "position inside a batch": (offset_index.write(([5], [POSITIONS[1] + 3])), ["offset-index-mismatch"]),
    "position past the end": (offset_index.write(([5], [10**6])), ["offset-index-mismatch"]),
    "offset before the batch": (offset_index.write(([2], [POSITIONS[2]])), ["offset-index-mismatch"]),
    "offset of no batch's end": (offset_index.write(([7], [POSITIONS[1]])), ["offset-index-imprecise"]),
    "zeros before an entry": (bytes(8) + SOUND_INDEX, ["index-invalid"]),
    "preallocated": (SOUND_INDEX + bytes(80), ["index-preallocated"]),
    "nothing but zeros": (bytes(80), ["index-preallocated"]),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEXES)
def test_an_offset_index(tmp_path: Path, name: str) -> None:
    content, expected = INDEXES[name]
    assert set(reported(tmp_path, INDEX, content)) == set(expected)


# -- .timeindex ----------------------------------------------------------------------------------------------

TIME_INDEXES: dict[str, tuple[bytes, list[str]]] = {
    "odd length": (time_index.write(([BASE_TIMESTAMP + 5], [5])) + b"\x00", ["index-invalid"]),
    "timestamps fall": (
        time_index.write(([LAST_TIMESTAMP, BASE_TIMESTAMP + 5], [17, 17])), ["index-invalid"]),
    "offsets fall": (
        time_index.write(([BASE_TIMESTAMP + 5, LAST_TIMESTAMP], [5, 2])), ["index-invalid"]),
    "a timestamp that no batch has": (time_index.write(([BASE_TIMESTAMP + 4], [5])), ["time-index-mismatch"]),
    "an offset past the end": (time_index.write(([BASE_TIMESTAMP + 5], [500])), ["time-index-mismatch"]),
}  # fmt: skip


@pytest.mark.parametrize("name", TIME_INDEXES)
def test_a_time_index(tmp_path: Path, name: str) -> None:
    content, expected = TIME_INDEXES[name]
    assert set(reported(tmp_path, TIME_INDEX, content)) == set(expected)


def test_a_time_index_entry_moved_to_a_later_batch_with_the_same_timestamp(tmp_path: Path) -> None:
    """A broker writes the first batch with the largest timestamp: look-ups by that time begin there."""
    log = b"".join(batch(number, [b"value"], max_timestamp=BASE_TIMESTAMP) for number in range(3))
    for offset, expected in ((0, []), (1, ["time-index-mismatch"]), (2, ["time-index-mismatch"])):
        partition = partition_of(tmp_path, log, {TIME_INDEX: time_index.write(([BASE_TIMESTAMP], [offset]))})
        codes = set(codes_of(findings_of(partition))) - {"max-timestamp-mismatch"}
        assert codes == set(expected), offset


@pytest.mark.parametrize("name", [INDEX, TIME_INDEX])
@pytest.mark.parametrize("is_running", [None, True])  # None: it is unknown
def test_an_entry_that_a_broker_is_writing_is_no_damage(
    tmp_path: Path, name: str, is_running: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index is memory that a broker shares with the disk: its first half may be there before its second."""
    index = {INDEX: SOUND_INDEX, TIME_INDEX: time_index.write(([BASE_TIMESTAMP + 5, LAST_TIMESTAMP], [5, 17]))}[name]
    partition = partition_of(tmp_path, LOG, {name: index[:-4] + bytes(4)})
    module = {INDEX: offset_index, TIME_INDEX: time_index}[name]
    read, reads = module.read, []

    def finished_after_the_first(path: Path, *more: object) -> object:
        found = read(path, *more)
        reads.append(path)
        (partition / name).write_bytes(index)
        return found

    monkeypatch.setattr(module, "read", finished_after_the_first)
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), True, is_running))
    codes = codes_of(findings_of(partition))
    assert len(reads) > 1
    assert codes == []


def test_a_closed_segments_time_index_without_its_last_entry(tmp_path: Path) -> None:
    partition = partition_of(
        tmp_path, {0: LOG, 18: b"".join(batches(1, 18))}, {TIME_INDEX: time_index.write(([BASE_TIMESTAMP + 5], [5]))}
    )
    assert codes_of(findings_of(partition)) == ["time-index-mismatch"]


# -- .txnindex and .snapshot ---------------------------------------------------------------------------------


def test_a_transaction_index_of_a_bad_version_or_range(tmp_path: Path) -> None:
    entry = layout.ABORTED_TXN.struct
    assert reported(tmp_path, TXN_INDEX, entry.pack(9, 7, 0, 3, 3)) == ["version-unknown"]
    assert reported(tmp_path, TXN_INDEX, entry.pack(0, 7, 5, 3, 3)) == ["index-invalid"]
    assert reported(tmp_path, TXN_INDEX, entry.pack(0, -7, 0, 3, 3)) == ["index-invalid"]
    assert reported(tmp_path, TXN_INDEX, entry.pack(0, 7, 0, 3, 3)[:-1]) == ["index-invalid"]


def snapshot(**changes: int) -> bytes:
    fields = dict.fromkeys(layout.PRODUCER_SNAPSHOT_ENTRY.names, 0) | {"producer_id": 7} | changes
    import numpy as np

    return producer_snapshot.write(tuple(np.array([fields[name]]) for name in layout.PRODUCER_SNAPSHOT_ENTRY.names))


def resealed(content: bytes) -> bytes:
    from format.codecs.checksums import crc32c_of

    return content[:2] + struct.pack(">I", crc32c_of(content[6:])) + content[6:]


SNAPSHOTS: dict[str, tuple[bytes, list[str]]] = {
    "a bad crc": (snapshot()[:-1] + b"\x07", ["snapshot-invalid"]),
    "a newer version": (resealed(b"\x00\x09" + snapshot()[2:]), ["version-unknown"]),
    "cut": (resealed(snapshot()[:-5]), ["snapshot-invalid"]),
    "empty": (b"", ["snapshot-invalid"]),
    "a count too high": (resealed(snapshot()[:6] + struct.pack(">i", 9) + snapshot()[10:]), ["snapshot-invalid"]),
    "a huge count": (resealed(snapshot()[:6] + struct.pack(">i", 2**31 - 1) + snapshot()[10:]), ["snapshot-invalid"]),
    "a negative count": (resealed(snapshot()[:6] + struct.pack(">i", -1) + snapshot()[10:]), ["snapshot-invalid"]),
    "a negative producer id": (snapshot(producer_id=-5), ["snapshot-invalid"]),
    "a producer that the log has not": (snapshot(last_offset=4), ["snapshot-mismatch"]),
}  # fmt: skip


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_producer_snapshot(tmp_path: Path, name: str) -> None:
    content, expected = SNAPSHOTS[name]
    assert sorted(set(reported(tmp_path, "00000000000000000018.snapshot", content))) == expected


def test_a_snapshot_past_the_end_of_the_log(tmp_path: Path) -> None:
    assert "snapshot-mismatch" in reported(tmp_path, "00000000000000000099.snapshot", snapshot())


# -- checkpoints ---------------------------------------------------------------------------------------------

CHECKPOINTS: dict[str, bytes] = {
    "a wrong count": b"0\n2\n0 0\n",
    "a count too low": b"0\n1\n0 0\n1 5\n",
    "words for numbers": b"0\n1\nzero 0\n",
    "one word": b"0\n1\n0\n",
    "three words": b"0\n1\n0 0 0\n",
    "a negative offset": b"0\n1\n0 -1\n",
    "a negative count": b"0\n-1\n",
    "an offset past 63 bits": b"0\n1\n0 9223372036854775808\n",
    "epochs fall": b"0\n2\n5 0\n4 3\n",
    "offsets fall": b"0\n2\n0 3\n1 0\n",
    "not text": bytes(range(128, 256)),
    "a version alone": b"0\n",
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_leader_epoch_checkpoint(tmp_path: Path, name: str) -> None:
    found = reported(tmp_path, "leader-epoch-checkpoint", CHECKPOINTS[name])
    assert set(found) == {"checkpoint-invalid"}


def test_a_leader_epoch_checkpoint_of_another_version(tmp_path: Path) -> None:
    assert reported(tmp_path, "leader-epoch-checkpoint", b"7\n1\n0 0\n") == ["version-unknown"]


def test_a_leader_epoch_past_the_end_of_the_log(tmp_path: Path) -> None:
    assert reported(tmp_path, "leader-epoch-checkpoint", b"0\n2\n0 0\n1 500\n") == ["leader-epoch-checkpoint-mismatch"]


@pytest.mark.parametrize("content", [b"0\n1\n" + b"x" * 200_000, b"0\n9\n" + b"0 0\n" * 100_000, b"9" * (70 << 20)])
def test_text_without_end_meets_a_limit(tmp_path: Path, content: bytes) -> None:
    found = findings_of(
        partition_of(tmp_path, LOG, {"leader-epoch-checkpoint": content}),
        limits=Limits(max_line_bytes=10_000, max_lines=50_000),
    )
    assert codes_of(found) in (["limit-exceeded"], ["checkpoint-invalid"])
    assert len(found) == 1


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "partition.metadata", "quorum-state"])
def test_a_line_of_a_gigabyte_is_not_read(tmp_path: Path, name: str) -> None:
    partition = partition_of(tmp_path, LOG)
    with open(partition / name, "wb") as file:
        file.write(b"0")
        file.truncate(2**30)  # a hole: it takes no disk
    tracemalloc.start()
    try:
        found = findings_of(partition)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert codes_of(found) == ["limit-exceeded"]
    assert found[0].is_incomplete
    assert peak_bytes < 32 * 2**20


CHECKPOINT_LINES: dict[str, tuple[bytes, list[str]]] = {
    "sound": (b"0\n1\nt 0 18\n", []),
    "a wrong count": (b"0\n5\nt 0 18\n", ["checkpoint-invalid"]),
    "words": (b"0\n1\nt 0 many\n", ["checkpoint-invalid"]),
    "a partition twice": (b"0\n2\nt 0 18\nt 0 17\n", ["checkpoint-invalid"]),
    "past the end": (b"0\n1\nt 0 99\n", ["checkpoint-mismatch"]),
    "another partition": (b"0\n2\nt 0 18\nu 0 18\n", ["checkpoint-stale-entry"]),
}


@pytest.mark.parametrize("checkpoint", layout.OFFSET_CHECKPOINTS)
@pytest.mark.parametrize("name", CHECKPOINT_LINES)
def test_an_offset_checkpoint(tmp_path: Path, name: str, checkpoint: str) -> None:
    content, expected = CHECKPOINT_LINES[name]
    partition_of(tmp_path, LOG)
    (tmp_path / checkpoint).write_bytes(content)
    found = [each for each in verify(tmp_path) if each.code not in ("index-missing", "unflushed-segment")]
    # An I/O error of the reader fails the log directory; only high watermarks that are no numbers do harm as well.
    is_high_watermark = checkpoint == layout.REPLICATION_OFFSET_CHECKPOINT
    unserved = ["boot-unserved"] if name == "a wrong count" or (name == "words" and is_high_watermark) else []
    assert codes_of(found) == unserved + expected


@pytest.mark.parametrize(("is_clean", "expected"), [(True, ["checkpoint-mismatch"]), (False, [])])
def test_a_high_watermark_before_the_log(tmp_path: Path, is_clean: bool, expected: list[str]) -> None:
    """A broker that runs, or was killed, may have deleted segments since it last wrote its high watermarks."""
    partition_of(tmp_path, {100: b"".join(batches(3, 100))})
    (tmp_path / layout.REPLICATION_OFFSET_CHECKPOINT).write_bytes(b"0\n1\nt 0 99\n")
    if is_clean:
        (tmp_path / layout.CLEAN_SHUTDOWN).write_bytes(b"")
    assert codes_of(findings_of(tmp_path)) == expected


# -- what is missing, orphaned, left over --------------------------------------------------------------------


def test_missing_indexes(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, PARTS)
    assert codes_of(verify(tmp_path / "t-0")) == ["index-missing", "index-missing"]


def test_a_new_segment_has_no_indexes_before_the_first_append(tmp_path: Path) -> None:
    """As a live broker or a killed one leaves a segment that retention made it begin."""
    log = write_segment(tmp_path / "t-0", 80, [])
    log.with_suffix(".timeindex").write_bytes(bytes(12 * 100))
    assert "index-missing" not in codes_of(verify(tmp_path / "t-0"))
    assert [each.code for each in ls(tmp_path / "t-0") if isinstance(each, Finding)] == []


def test_brokers_before_0_10_1_write_no_time_index(tmp_path: Path) -> None:
    """A log of format 0 messages; one of zeros is none."""
    content = [encode_message(0, offset, b"k", b"v") for offset in range(3)]
    log = write_segment(tmp_path / "t-0", 0, content)
    log.with_suffix(".index").write_bytes(b"")
    assert codes_of(verify(tmp_path / "t-0")) == []
    assert [each.code for each in ls(tmp_path / "t-0") if isinstance(each, Finding)] == []
    log.write_bytes(bytes(200))
    assert "index-missing" in codes_of(verify(tmp_path / "t-0"))


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".txnindex"])
def test_orphans(tmp_path: Path, suffix: str) -> None:
    assert reported(tmp_path, f"{100:020d}{suffix}", b"") == ["index-orphan"]


@pytest.mark.parametrize("mark", layout.LEFTOVER_SUFFIXES)
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex", ".snapshot"])
def test_leftovers(tmp_path: Path, suffix: str, mark: str) -> None:
    assert reported(tmp_path, f"{0:020d}{suffix}{mark}", b"") == ["segment-leftover"]


@pytest.mark.parametrize("name", [each + ".tmp" for each in layout.ATOMICALLY_WRITTEN])
def test_a_write_that_was_cut_off_is_a_leftover(tmp_path: Path, name: str) -> None:
    partition_of(tmp_path, LOG)
    for folder in (tmp_path, tmp_path / "t-0"):
        (folder / name).write_bytes(b"0\n")
        (found,) = (each for each in verify(tmp_path) if each.code != "index-missing")
        assert found.code == "segment-leftover"
        assert "was interrupted before it took effect" in found.message
        (folder / name).unlink()


def test_the_cache_of_tiered_storage_belongs_there(tmp_path: Path) -> None:
    partition_of(tmp_path, LOG)
    (tmp_path / "remote-log-index-cache").mkdir()
    assert codes_of(each for each in verify(tmp_path) if each.code != "index-missing") == []
    (tmp_path / "something-else").mkdir()
    found = codes_of(each for each in verify(tmp_path) if each.code != "index-missing")
    assert found == ["boot-refused", "entry-unexpected"]
