"""boot on files that are no plain files, or that have odd names: each verdict is one of a broker of 4.3.1."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from format.layout import RECORD_BATCH
from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootResult, BootTerms
from tests.oracle.boot_mutations.earlier_release import make_earlier
from tests.oracle.boot_mutations.node import (
    CLEAN_MARK,
    CLEANER,
    HIGH_WATERMARK,
    LOG_START,
    METADATA,
    RECOVERY_POINT,
    UNIQUE,
    Node,
    batch_positions,
    cut,
    flip,
)

pytestmark = pytest.mark.slow

LOOP = "Too many levels of symbolic links"
FOLDER = "Is a directory"


def booted(node: Node) -> BootResult:
    return boot(node.log_dirs, BootTerms(every_file=True), node_id=1)


def refusals(node: Node) -> list[str]:
    return [step.broker_message or "" for step in booted(node).having(Action.REFUSE)]


def linked(node: Node, path: Path) -> Path:
    """Move a file out of the log directory, and leave a link in its place. Returns the file."""
    target = node.work / f"moved-{path.name}"
    path.rename(target)
    path.symlink_to(target)
    return target


FILES = (
    "orders-1/00000000000000000000.log",
    "orders-1/00000000000000000000.index",
    "orders-1/leader-epoch-checkpoint",
    "orders-1/partition.metadata",
    f"{METADATA}/quorum-state",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "meta.properties",
    "bootstrap.checkpoint",
    CLEAN_MARK,
)


@pytest.mark.parametrize("name", FILES)
def test_a_link_to_a_file_is_followed(node: Node, name: str) -> None:
    sound = booted(node)
    linked(node, node.first / name)
    result = booted(node)
    assert not result.is_refused
    assert not result.is_unknown
    assert [each.row() for each in result.steps] == [each.row() for each in sound.steps]
    assert ("symbolic links" in " ".join(result.not_checked)) == name.startswith("orders-1/")


def test_a_damaged_log_behind_a_link_is_cut(node: Node) -> None:
    log = linked(node, node.segments("orders-1")[0])
    position = batch_positions(log)[3][0]
    flip(log, position + 70)
    (node.first / CLEAN_MARK).unlink()
    node.set_offset(RECOVERY_POINT, "orders-1", 0)
    (step,) = [each for each in booted(node).having(Action.TRUNCATE) if each.topic == "orders"]
    assert (step.path, step.position) == (node.segments("orders-1")[0], position)


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        ("orders-1/00000000000000000000.index", [LOOP]),
        ("orders-1/00000000000000000000.timeindex", [LOOP]),
        ("orders-1/00000000000000000000.txnindex", []),
        ("orders-1/partition.metadata", []),
        ("orders-1/leader-epoch-checkpoint", ["Error while reading checkpoint file"]),
        ("orders-7", []),
        ("recovery-point-offset-checkpoint", ["NoSuchFileException"]),
    ],
)
def test_a_link_to_itself_is_no_file(node: Node, name: str, messages: list[str]) -> None:
    path = node.first / name
    path.unlink(missing_ok=True)
    path.symlink_to(path)
    found = refusals(node)
    assert [each in one for each, one in zip(messages, found, strict=True)] == [True] * len(messages)
    assert not booted(node).is_unknown


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orders-1/00000000000000000000.index", FOLDER),
        ("orders-1/00000000000000000000.timeindex", FOLDER),
        ("orders-1/00000000000000000000.txnindex", FOLDER),
        ("replication-offset-checkpoint", FOLDER),
        ("bootstrap.checkpoint", FOLDER),
        (".lock", "Disk error while locking directory"),
        (f"{METADATA}/quorum-state", "Error while reading the Quorum status"),
        (f"{METADATA}/00000000000000009999-0000000009.checkpoint", FOLDER),
    ],
)
def test_a_folder_in_place_of_a_file_stops_the_broker(node: Node, name: str, message: str) -> None:
    path = node.first / name
    path.unlink(missing_ok=True)
    path.mkdir()
    assert any(message in each for each in refusals(node))


def test_a_folder_in_place_of_an_index_that_is_not_opened_stops_nothing(node: Node) -> None:
    path = node.segments("orders-0")[0].with_suffix(".index")
    path.unlink()
    path.mkdir()
    result = booted(node)
    assert not result.is_refused
    assert not [each for each in result.having(Action.RECOVER) if each.topic == "orders"]


def test_an_index_whose_log_is_a_folder_is_no_orphan(node: Node) -> None:
    log = node.segments("orders-0")[-1]
    log.unlink()
    log.mkdir()
    assert not [each for each in booted(node).having(Action.DELETE) if each.path.suffix == ".index"]


def test_a_log_that_cannot_be_made_stops_the_broker(node: Node) -> None:
    """The only log of a partition is a folder: the broker makes the first segment, which has its name."""
    log = node.segments(METADATA)[0]
    log.unlink()
    log.mkdir()
    assert refusals(node) == [FOLDER]


def test_a_link_to_a_missing_file_makes_the_file_unless_its_folder_is_missing_too(node: Node) -> None:
    index = node.segments("orders-1")[0].with_suffix(".index")
    index.unlink()
    index.symlink_to(node.work / "moved.index")
    assert not booted(node).is_refused
    index.unlink()
    index.symlink_to(node.work / "gone" / "moved.index")
    assert refusals(node) == ["No such file or directory"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.checkpoint", "begin "),
        ("real-00000000000000000009-0000000001.checkpoint", 'For input string: "real-000000000000000"'),
        ("00000000000000000009-000000000x.checkpoint", 'For input string: "000000000x"'),
        ("00000000000000000001-0000000000-more.checkpoint.part", None),
        ("notes.checkpoint.bak", None),
    ],
)
def test_the_name_of_a_metadata_snapshot_has_to_begin_with_an_offset_and_an_epoch(
    node: Node, name: str, message: str | None
) -> None:
    (node.partition(METADATA) / name).write_bytes(b"x")
    assert [message in each for each in refusals(node) if message] == ([True] if message else [])
    assert booted(node).is_refused == (message is not None)


def test_the_newest_metadata_snapshot_behind_a_link_to_nothing_is_passed_over(node: Node) -> None:
    newest = sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]
    newest.unlink()
    newest.symlink_to("nowhere")
    result = booted(node)
    assert not result.is_refused
    assert not result.is_unknown
    assert not result.having(Action.RENAME)


def test_a_missing_newest_metadata_snapshot_stops_older_brokers(node: Node) -> None:
    newest = sorted(make_earlier(node).partition(METADATA).glob("*.checkpoint"))[-1]
    newest.unlink()
    newest.symlink_to("nowhere")
    (step,) = boot(node.log_dirs, BootTerms(version=(3, 9)), node_id=1).having(Action.REFUSE)
    assert (step.broker_message or "").startswith("Unable to Opens a snapshot file")


def test_the_torn_end_of_a_metadata_snapshot_is_passed_over(node: Node) -> None:
    newest = sorted(node.partition(METADATA).glob("*.checkpoint"))[-1]
    cut(newest, newest.stat().st_size - 20)
    assert not booted(node).is_unknown
    assert not booted(node).is_refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"leaderEpoch":1', '"leaderEpoch":2147483647'), "Received invalid partition leader epoch entry"),
        (('[{"voterId":1}]', "null"), 'currentVoters()" is null'),
        (('[{"voterId":1}]', '[{"voterId":1},{"voterId":2}]'), None),
        (('[{"voterId":1}]', "[{}]"), "Voter: unable to locate field 'voterId'"),
        (('[{"voterId":1}]', '[{"voterId":1.5}]'), "Voter expected"),
        (
            ('"data_version":0', '"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1'),
            "Can't read version 1 of Voter",
        ),
        (('"data_version":0', '"votedDirectoryId":7,"data_version":0'), "QuorumStateData: "),
    ],
)
def test_a_quorum_state_that_no_node_writes(node: Node, change: tuple[str, str], message: str | None) -> None:
    path = node.partition(METADATA) / "quorum-state"
    path.write_text(path.read_text().replace(*change))
    assert [message in each for each in refusals(node) if message] == ([True] if message else [])
    assert booted(node).is_refused == (message is not None)


def test_digits_of_any_script_are_an_offset(node: Node) -> None:
    """Long.parseLong takes them: the name is that of an index whose log is there."""
    (node.partition("orders-1") / "\u0660\u0660.index").write_bytes(b"")
    assert not refusals(node)


def test_digits_of_any_script_are_an_offset_in_a_checkpoint(node: Node) -> None:
    node.set_checkpoint(LOG_START, {"orders 0": 0})
    path = node.first / LOG_START
    path.write_text(path.read_text().replace("orders 0 0", "orders 0 \u0665"))
    (step,) = [each for each in booted(node).steps if each.path == node.partition("orders-0")]
    assert step.log_start_offset == 5
    path.write_text(path.read_text().replace("\u0665", "\U0001d7d3"))  # two chars to Java, none of them a digit
    (step,) = [each for each in booted(node).steps if each.path == node.partition("orders-0")]
    assert step.log_start_offset == 0


@pytest.mark.parametrize("kind", ["loop", "folder", "link into a missing folder"])
@pytest.mark.parametrize("which", [0, -1])
def test_a_snapshot_that_cannot_be_written_after_a_crash_costs_its_segment(node: Node, kind: str, which: int) -> None:
    """A broker from 4.0 on takes every I/O error of a recovery for invalid offsets, and goes on without the records."""
    segments = node.segments("orders-0")
    base_offset, size_bytes = int(segments[-1].stem), segments[-1].stat().st_size
    path = sorted(node.partition("orders-0").glob("*.snapshot"))[which]  # of the segment's start, and of the log's end
    high_watermark = node.checkpoint(HIGH_WATERMARK)["orders 0"]
    if which == 0:
        node.set_offset(RECOVERY_POINT, "orders-0", 0)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else node.work / "gone" / path.name)
    (node.first / CLEAN_MARK).unlink()
    result = booted(node)
    assert not result.is_refused
    (cut_step,) = [
        each for each in result.having(Action.TRUNCATE) if each.topic == "orders" and each.path.suffix == ".log"
    ]
    if which == 0:  # the recovery of the first segment ends there already, and the segments behind it go too
        assert (cut_step.offset, cut_step.lost_offsets) == (0, (0, high_watermark - 1))
        assert segments[-1] in [each.path for each in result.having(Action.DELETE)]
    else:
        assert (cut_step.position, cut_step.bytes) == (0, size_bytes)
        assert cut_step.lost_offsets == (base_offset, high_watermark - 1)
    assert "creating an empty one with starting offset" in (cut_step.broker_message or "")
    assert boot(node.log_dirs, BootTerms(version=(3, 9)), node_id=1).is_refused


def test_a_snapshot_that_cannot_be_written_after_a_clean_stop_stops_the_broker(node: Node) -> None:
    path = max(node.partition("orders-0").glob("*.snapshot"))
    path.unlink()
    path.mkdir()
    assert refusals(node) == [FOLDER]


def test_a_swapped_in_snapshot_that_is_deleted_has_one_step(node: Node) -> None:
    path = node.partition("orders-0") / f"{0:020}.snapshot.swap"
    path.write_bytes(b"x")
    steps = [each for each in booted(node).steps if each.path == path]
    assert [each.action for each in steps] == [Action.DELETE]


def test_a_topic_id_of_another_topic_keeps_other_partitions_from_a_leader_too(node: Node) -> None:
    shutil.copy(node.partition("users-0") / "partition.metadata", node.partition("orders-0"))
    reasons = [
        each.reason for each in booted(node).having(Action.OFFLINE) if each.kafka_class == "UnifiedLog.assignTopicId"
    ]
    assert [("others of which the broker becomes the leader" in each) for each in reasons] == [True]


def test_a_future_replica_is_cut_to_the_empty_log_that_is_made_for_its_partition(node: Node) -> None:
    future = node.second() / f"orders-1.{UNIQUE}-future"
    node.partition("orders-1").rename(future)
    result = booted(node)
    (made,) = [each for each in result.having(Action.CREATE) if each.path == node.partition("orders-1")]
    assert made.lost_offsets == (0, 1165)
    (cut,) = [each for each in result.having(Action.TRUNCATE) if each.path == future]
    assert "cut to the empty log; it holds offsets 0 to 1165" in cut.reason
    assert cut.lost_offsets is None, "the log that is made has the loss"


WAITED_FOR = (
    "orders-0/leader-epoch-checkpoint",
    "orders-0/partition.metadata",
    f"{METADATA}/leader-epoch-checkpoint",
    f"{METADATA}/partition.metadata",
    f"{METADATA}/quorum-state",
    f"{METADATA}/*.checkpoint",
    f"{METADATA}/*.snapshot",
    "orders-0/*.snapshot",
    RECOVERY_POINT,
    LOG_START,
    HIGH_WATERMARK,
    "meta.properties",
    "bootstrap.checkpoint",
    CLEAN_MARK,
)


@pytest.mark.parametrize("name", WAITED_FOR)
def test_a_start_never_ends_at_a_pipe_that_the_broker_reads_or_writes(node: Node, name: str) -> None:
    path = max(node.first.glob(name), default=node.first / name)
    pipe_at(path)
    result = booted(node)
    assert [(each.path, each.broker_message) for each in result.having(Action.REFUSE)] == [(path, None)]
    assert not result.is_unknown


def pipe_at(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("name", "is_clean", "messages"),
    [
        ("orders-0/*.index", True, ["Illegal seek"]),
        ("orders-0/*.timeindex", True, ["Illegal seek"]),
        ("orders-0/*.index", False, ['OffsetIndex.mmap()" is null']),
        ("orders-0/*.timeindex", False, ['TimeIndex.mmap()" is null']),
        (f"orders-0/{0:020}.index", True, []),
        (f"orders-0/{0:020}.txnindex", True, ["Illegal seek"]),
        (f"{METADATA}/*.log", True, ["Illegal seek"]),
        ("orders-0/notes", True, []),
        (CLEANER, True, []),
        (".lock", True, []),
    ],
)
def test_a_pipe_cannot_be_given_a_size(node: Node, name: str, is_clean: bool, messages: list[str]) -> None:
    if not is_clean:
        (node.first / CLEAN_MARK).unlink()
    pipe_at(max(node.first.glob(name), default=node.first / name))
    assert refusals(node) == messages
    assert not booted(node).is_unknown


def test_names_that_are_not_utf_8_are_not_seen_by_a_broker(node: Node) -> None:
    os.mkdir(os.fsencode(node.first) + b"/\xff\xfe")
    (node.partition("orders-1") / os.fsdecode(b"\xff.log")).write_bytes(b"x")
    result = booted(node)
    assert not result.is_refused
    assert not result.having(Action.RENAME)


def test_bootstrap_metadata_is_read_batch_by_batch(node: Node) -> None:
    """Records that cannot be read stop it before a length that no batch has."""
    path = node.first / "bootstrap.checkpoint"
    found = batch_positions(path)
    content = bytearray(path.read_bytes())
    position, size, *_ = found[1]
    content[position + 62 : position + size] = b"\x7f" * (size - 62)
    content[found[2][0] + 8 : found[2][0] + 12] = bytes(4)
    path.write_bytes(content)
    assert refusals(node) == ["InvalidRecordException"]
    path.write_bytes(path.read_bytes()[:position] + content[found[2][0] :])
    (message,) = refusals(node)
    assert message.startswith("Found record size 0 smaller than minimum record overhead (14)")


def test_bootstrap_metadata_is_read_record_by_record(node: Node) -> None:
    """A record that cannot be decoded stops it before a record that cannot be read."""
    path = node.first / "bootstrap.checkpoint"
    position, *_ = next(each for each in batch_positions(path) if each[1] > 150)
    content = bytearray(path.read_bytes())
    first = position + RECORD_BATCH.size_bytes
    length = content[first] >> 1  # a zigzag varint of one byte
    content[first + 1 + length] = 0x01  # the length of the next record is -1
    path.write_bytes(content)
    assert refusals(node) == ["InvalidRecordException"]
    content[first + 7] = 99  # the type of the first record
    path.write_bytes(content)
    assert refusals(node) == ["unable to deserialize record"]
