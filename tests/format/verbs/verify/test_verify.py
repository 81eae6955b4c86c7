"""verify: silent on what brokers left, and telling where a file was changed."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from format.findings import MOST_ALIKE, Certainty, Finding, Severity
from format.node.partition import read_partition
from format.node.partition_surroundings import surroundings_findings
from format.verbs.verify.verify import Level, VerifyTerms, bytes_to_verify, verify
from tests.building import batch, wrapper, write_segment
from tests.corpora import Corpus


def codes(found: list[Finding], at_least: Severity = Severity.WARNING) -> list[str]:
    return [each.code for each in found if each.severity >= at_least]


def run(path: Path, level: Level = Level.FULL) -> list[Finding]:
    return list(verify(path, VerifyTerms(level)))


def test_no_broker_left_anything_that_alarms(corpus: Corpus) -> None:
    for log_dir in corpus.log_dirs:
        found = run(log_dir)
        assert [str(each) for each in found if each.severity >= Severity.WARNING] == []


def test_a_killed_node_is_explained(corpus: Corpus) -> None:
    for log_dir in corpus.log_dirs:
        found = codes(run(log_dir), Severity.INFO)
        if (log_dir / ".kafka_cleanshutdown").exists():
            assert "unclean-shutdown" not in found
            assert "index-preallocated" not in found
        else:
            assert "unclean-shutdown" in found
            assert "index-preallocated" in found


@pytest.mark.parametrize("level", Level)
def test_every_level_goes_through_the_same_batches(data_dir: Path, level: Level) -> None:
    verified = verify(data_dir / "kafka-4.3-single" / "node-1", VerifyTerms(level))
    assert codes(list(verified)) == []
    full = verify(data_dir / "kafka-4.3-single" / "node-1")
    list(full)
    assert verified.coverage.partitions == full.coverage.partitions > 0
    assert full.coverage.batches > verified.coverage.batches or level is Level.FULL
    assert (verified.coverage.records > 0) == (level >= Level.RECORDS)


@pytest.mark.parametrize("level", Level)
def test_progress_ends_where_the_logs_do(node: Path, level: Level) -> None:
    damaged = node / "orders-0" / "00000000000000000000.log"
    flip(damaged, 40_000)
    damaged.write_bytes(damaged.read_bytes()[:-7])
    reported: list[int] = []
    terms = VerifyTerms(level, advance=reported.append)
    for _ in verify(node, terms):
        assert sum(reported) <= bytes_to_verify(node)
    assert sum(reported) == bytes_to_verify(node) == sum(each.stat().st_size for each in node.glob("*-*/*.log"))
    assert all(each >= 0 for each in reported)


def test_progress_through_several_processes(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    node = data_dir / "kafka-4.3-single" / "node-1"
    reported: list[int] = []
    terms = VerifyTerms(jobs=2, advance=reported.append)
    assert [each.code for each in verify(node, terms)] == ["transaction-open"]
    assert sum(reported) == bytes_to_verify(node) > 0


# -- one change, one finding ----------------------------------------------------------------------------------

NODE = "kafka-4.3-single/node-1"


@pytest.fixture
def node(data_dir: Path, tmp_path: Path) -> Path:
    """A copy of a real log directory to damage."""
    return copy_of(data_dir / NODE, tmp_path / "node")


def copy_of(source: Path, copy: Path) -> Path:
    shutil.copytree(source, copy)
    for each in copy.rglob("*"):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return copy


def flip(path: Path, position: int, mask: int = 0x01) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


ORDERS = "orders-0/00000000000000000000"


def first(node: Path, pattern: str) -> Path:
    return min(node.glob(pattern))


def cut(path: Path, by: int) -> None:
    path.write_bytes(path.read_bytes()[:-by])


def remove_first_batch(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[12 + int.from_bytes(content[8:12], "big") :])


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a flipped byte in a batch's body": (lambda node: flip(node / f"{ORDERS}.log", 100), "batch-crc-mismatch"),
    "a flipped base offset": (lambda node: flip(node / f"{ORDERS}.log", 7), "offset-not-increasing"),
    "a flipped leader epoch": (lambda node: flip(node / f"{ORDERS}.log", 15), "leader-epoch-checkpoint-mismatch"),
    "a flipped length": (lambda node: flip(node / f"{ORDERS}.log", 11), "log-framing-broken"),
    "a closed segment cut inside a batch": (lambda node: cut(node / f"{ORDERS}.log", 10), "log-truncated"),
    "the last segment cut inside a batch": (
        lambda node: cut(node / "orders-1/00000000000000000000.log", 10), "tail-torn"),
    "the last segment cut: the high watermark knows": (
        lambda node: cut(node / "orders-1/00000000000000000000.log", 10), "checkpoint-mismatch"),
    "the first batch gone": (lambda node: remove_first_batch(node / f"{ORDERS}.log"), "file-name-mismatch"),
    "an offset index entry's position": (lambda node: flip(node / f"{ORDERS}.index", 7), "offset-index-mismatch"),
    "an offset index of odd length": (lambda node: cut(node / f"{ORDERS}.index", 3), "index-invalid"),
    "a time index entry's timestamp": (lambda node: flip(node / f"{ORDERS}.timeindex", 7), "time-index-mismatch"),
    "a time index that lost its last entry": (
        lambda node: cut(node / f"{ORDERS}.timeindex", 12), "time-index-mismatch"),
    "a missing index": (lambda node: (node / f"{ORDERS}.index").unlink(), "index-missing"),
    "an index without its log": (lambda node: (node / f"{ORDERS}.log").unlink(), "index-orphan"),
    "a snapshot's bytes": (lambda node: flip(first(node, "orders-0/*.snapshot"), 20), "snapshot-invalid"),
    "a checkpoint of words": (
        lambda node: (node / "replication-offset-checkpoint").write_text("0\n1\norders zero 7\n"),
        "checkpoint-invalid"),
    "a foreign file": (lambda node: (node / "orders-0" / "notes.txt").write_text("x"), "entry-unexpected"),
    "a leftover": (
        lambda node: (node / "orders-0" / "00000000000000000000.log.cleaned").write_bytes(b""), "segment-leftover"),
    "a stray directory": (
        lambda node: (node / "gone-0.0123456789abcdef0123456789abcdef-stray").mkdir(), "partition-dir-marked"),
}  # fmt: skip


@pytest.fixture(scope="module")
def sound_codes(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The codes of the log directory before anything is changed."""
    return codes(run(copy_of(data_dir / NODE, tmp_path_factory.mktemp("sound") / "node")), Severity.INFO)


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_reported(node: Path, sound_codes: list[str], name: str) -> None:
    change, code = CHANGES[name]
    assert code not in sound_codes
    change(node)
    assert code in codes(run(node), Severity.INFO)


@pytest.mark.parametrize("change", [lambda path: flip(path, 9), lambda path: path.unlink(), lambda path: cut(path, 34)])
def test_a_transaction_index_is_held_against_the_markers(
    data_dir: Path, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    copy = copy_of(data_dir / "kafka-4.3" / "node-1", tmp_path / "node")
    assert "transaction-index-mismatch" not in codes(run(copy))
    change(first(copy, "payments-*/*.txnindex"))
    assert "transaction-index-mismatch" in codes(run(copy))


def test_an_entry_of_an_index_without_a_log_shows_which_records_are_lost(node: Path) -> None:
    partition = copy_of(node / "orders-0", node.parent / "alone" / "orders-0")  # no checkpoint shows it
    index = partition / f"{1102:020}.index"
    index.with_suffix(".log").unlink()

    def lost() -> list[tuple[Severity, tuple[int, int] | None]]:
        return [(each.severity, each.lost_offsets) for each in run(partition) if each.code == "index-orphan"]

    assert lost()
    assert set(lost()) == {(Severity.WARNING, None)}  # an index without entries shows nothing
    index.write_bytes(struct.pack(">iiii", 40, 4096, 90, 8192) + bytes(80))
    assert lost() == [(Severity.ERROR, (1102, 1192))]
    index.write_bytes(struct.pack(">iiii", 90, 4096, 40, 8192))
    assert set(lost()) == {(Severity.WARNING, None)}
    (node / "orders-0" / index.name).write_bytes(struct.pack(">ii", 90, 4096))
    (node / "orders-0" / index.name).with_suffix(".log").unlink()
    found = run(node)  # the high watermark shows the same
    assert [each.lost_offsets for each in found if each.code == "index-orphan"] == [None]
    assert next(each.lost_offsets for each in found if each.code == "checkpoint-mismatch") == (1102, 1263)


def test_a_finding_names_the_byte_range_and_the_offsets_lost(node: Path) -> None:
    log = node / f"{ORDERS}.log"
    length = 12 + int.from_bytes(log.read_bytes()[8:12], "big")
    last = int.from_bytes(log.read_bytes()[23:27], "big")
    flip(log, 100)
    (found,) = [each for each in run(node) if each.severity >= Severity.ERROR]
    assert (found.location.position, found.location.length) == (0, length)
    assert found.lost_offsets == (0, last)
    assert found.location.topic == "orders"


@pytest.mark.parametrize("key", [None, b"k"])
def test_a_removed_segment_is_missed(tmp_path: Path, key: bytes | None) -> None:
    """No cleaner keeps a record without a key; with keys, it may have removed the segment's records."""
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [batch(0, key=key), batch(3, key=key)])
    write_segment(partition, 9, [batch(9, key=key)])
    (found,) = [each for each in run(partition) if each.code == "segment-missing"]
    if key is None:
        assert (found.severity, found.lost_offsets) == (Severity.ERROR, (6, 8))
    else:
        assert (found.severity, found.lost_offsets) == (Severity.INFO, None)


def test_a_replica_fetched_from_a_compacted_leader_is_not_accused(tmp_path: Path) -> None:
    """Batches of one record each: those that compaction removed leave gaps, in the sequences too."""
    partition = tmp_path / "t-0"
    kept = [0, 3, 4, 9, 17, 18]
    producer = {"producer_id": 5, "producer_epoch": 0}
    write_segment(partition, 0, [batch(each, [b"v"], base_sequence=each, **producer) for each in kept[:4]])
    write_segment(partition, 12, [batch(each, [b"v"], base_sequence=each, **producer) for each in kept[4:]])
    found = [each for each in run(partition) if each.code not in ("index-missing",)]
    assert {each.code for each in found} == {"offset-gap", "segment-missing", "file-name-mismatch"}
    assert {each.severity for each in found} == {Severity.INFO}
    assert not any(each.lost_offsets for each in found)


def test_gaps_of_a_topic_that_is_configured_as_compacted(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [batch(each, [b"v"]) for each in (0, 3, 9)])
    write_segment(partition, 12, [batch(12, [b"v"])])

    def found(topics: dict[str, bool]) -> set[tuple[str, Severity, Certainty]]:
        verified = verify(partition, VerifyTerms(Level.HEADERS, compacted_topics=topics))
        return {(each.code, each.severity, each.certainty) for each in verified}

    codes = ("offset-gap", "segment-missing")
    assert found({"t": True}) == set()
    assert found({"other": True}) == {(code, Severity.INFO, Certainty.POSSIBLE) for code in codes}
    assert found({"t": False}) == {(code, Severity.WARNING, Certainty.LIKELY) for code in codes}


def test_compaction_gaps_are_no_loss(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [batch(0, [b"a"], last_offset_delta=4), batch(20)])
    assert not {"offset-gap", "segment-missing"} & set(codes(run(partition), Severity.INFO))


def test_a_snapshot_past_the_log_tells_of_a_lost_end(node: Path) -> None:
    log = node / "orders-1" / "00000000000000000000.log"
    content = log.read_bytes()
    position = 0
    while True:
        following = position + 12 + struct.unpack_from(">i", content, position + 8)[0]
        if following >= len(content):
            break
        position = following
    log.write_bytes(content[:position])  # the last batch is gone, at its boundary
    found = codes(run(node))
    assert "snapshot-mismatch" in found
    assert "checkpoint-mismatch" in found


def test_many_alike_are_counted_not_dropped(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    write_segment(partition, 0, [batch(0, [b"%d" % each]) for each in range(MOST_ALIKE + 50)])
    alike = [each for each in run(partition) if each.code == "offset-not-increasing"]
    assert len(alike) == MOST_ALIKE + 1
    assert alike[-1].message.startswith("49 more like it")


def test_nothing_is_written(node: Path, source_snapshot: Callable[[Path], None]) -> None:
    for each in node.rglob("*.index"):
        each.unlink()
    source_snapshot(node)
    run(node)


def test_a_swap_that_a_start_completes_is_verified(node: Path) -> None:
    """A 4.3.1 broker took the file for the segment, and consumers failed on the batch."""
    log = node / "orders-0" / f"{0:020}.log"
    for each in node.glob(f"orders-0/{0:020}.*index"):
        each.rename(f"{each}.swap")
    swap = log.rename(f"{log}.swap")
    assert codes(run(node)) == []
    flip(swap, 1000)
    found = [each for each in run(node) if each.severity >= Severity.WARNING]
    assert [(each.code, each.location.path) for each in found] == [("batch-crc-mismatch", str(swap))]


@pytest.mark.parametrize(("recovery_point", "is_wrong"), [(1264, True), (500, False)])
def test_zeros_at_the_end_of_the_time_index_of_a_closed_segment(
    node: Path, recovery_point: int, *, is_wrong: bool
) -> None:
    """4.3.1 found no time in the segment, unless its start built the index again."""
    index = node / "orders-0" / f"{0:020}.timeindex"
    index.write_bytes(index.read_bytes() + bytes(24))
    (node / ".kafka_cleanshutdown").unlink(missing_ok=True)
    (node / "recovery-point-offset-checkpoint").write_text(f"0\n1\norders 0 {recovery_point}\n")
    wrong = [each.location.path for each in run(node) if each.code == "time-index-mismatch"]
    assert wrong == ([str(index)] if is_wrong else [])


def test_the_base_offset_of_a_compressed_message_that_cannot_be_opened_is_not_wrong(tmp_path: Path) -> None:
    """It is in what is compressed. Brokers of that time put it into the index."""
    sound, damaged = wrapper(1, 0), bytearray(wrapper(1, 3))
    damaged[60] ^= 1
    log = write_segment(tmp_path / "t-0", 0, [sound, bytes(damaged)])
    log.with_suffix(".index").write_bytes(struct.pack(">ii", 3, len(sound)))
    assert sorted(codes(run(log.parent))) == ["batch-crc-mismatch", "index-missing"]  # there is no .timeindex


@pytest.mark.parametrize("lost", [(), (".log",), (".index",), (".log", ".index")])
def test_what_a_broker_leaves_of_a_deleted_partition_is_not_wrong(node: Path, lost: tuple[str, ...]) -> None:
    deleted = node / "orders-0.0123456789abcdef0123456789abcdef-delete"
    shutil.copytree(node / "orders-0", deleted)
    last = max(deleted.glob("*.log"))
    last.with_suffix(".timeindex").write_bytes(bytes(12))  # a stop completes those of other logs only
    for suffix in lost:
        last.with_suffix(suffix).unlink()
    assert codes(run(node)) == []
    assert codes(list(surroundings_findings(read_partition(deleted)))) == []
