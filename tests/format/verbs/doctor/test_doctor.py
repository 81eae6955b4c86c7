"""What the doctor says of directories: each template on both sides of its condition."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from format.errors import InputError
from format.findings import Severity
from format.verbs.boot.boot import boot
from format.verbs.boot.steps import BootTerms
from format.verbs.doctor import doctor
from format.verbs.doctor.diagnosis import Diagnosis
from tests.building import BASE_TIMESTAMP, batch, batches
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.format.verbs.doctor.looking import DAY_MS, NOW_MS, codes, diagnoses, looked_at, node
from tests.format.verbs.groups.commit_logs import batches_of, commit
from tests.format.verbs.txns.transaction_logs import coordinator_batch, data, marker
from tests.metadata_logs import change_of, removal_of, topic_id_of, write_metadata_log, write_node, write_voters
from tests.oracle.boot_mutations.node import CLEAN_MARK, copied_node

SOUND = {0: batches(4), 12: batches(4, 12)}


def test_nothing_is_said_of_a_sound_node(tmp_path: Path) -> None:
    made = looked_at(node(tmp_path / "node-1", {"orders-0": SOUND}, marks={"orders-0": 24}))
    assert made.diagnoses == []
    assert made.counts["partitions"] == 1
    assert made.counts["segments"] == 2
    assert made.not_known == [
        "leaders, other replicas and configs: there is no metadata log here (--metadata PATH)",
        "whether a start that finds none keeps the partitions: kafkalog boot",
    ]


@pytest.mark.parametrize("deep", [False, True])
def test_an_empty_log_directory_beside_others(tmp_path: Path, deep: bool) -> None:
    """Its disk may not be mounted. By itself it may be any directory."""
    sound, empty = node(tmp_path / "a", {"orders-0": SOUND}), tmp_path / "b"
    empty.mkdir()
    made = looked_at(sound, empty, deep=deep)
    [found] = made.diagnoses
    assert (found.code, found.severity, found.subject) == ("directory-empty", Severity.ERROR, str(empty))
    assert found.command == f"kafkalog boot {sound} {empty}"
    assert not any("directory without a log" in words for words in made.not_known)
    with pytest.raises(InputError):
        looked_at(empty, deep=deep)
    (empty / "lost+found").mkdir()  # a new file system is mounted; a broker stops at this name
    assert codes(sound, empty, deep=deep) == ["start-refused"]
    (empty / "notes.txt").touch()
    with pytest.raises(InputError):
        looked_at(sound, empty, deep=deep)


def test_replicas_in_a_log_directory_that_is_not_here(tmp_path: Path) -> None:
    """The metadata assigns the partition to a directory that was lost, or was not given."""
    here, other = (write_node(tmp_path / name, 1, directory=name) for name in ("here", "directory-1"))
    write_metadata_log(here, replicas=(1,), isr=(1,))
    words = "1 partition that node 1 should have, in no log directory here"
    assert looked_at(here).not_known == [words]
    ModelReplica(plain(4)).write(other)
    (other / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")
    assert looked_at(here, other).not_known == []


@pytest.mark.parametrize("deep", [False, True])
def test_records_lost(tmp_path: Path, deep: bool) -> None:
    """A high watermark past the end of the log; without a clean stop a crash may explain it."""
    clean = node(tmp_path / "clean", {"orders-0": SOUND}, marks={"orders-0": 30}, is_clean=True)
    [found] = diagnoses(clean, deep=deep)
    assert (found.code, found.severity, found.rank) == ("records-lost", Severity.ERROR, 1)
    assert "high watermark is 30" in found.sentence
    assert found.command is not None
    assert found.command.startswith("kafkalog salvage ")
    emptied = node(tmp_path / "emptied", {"orders-0": {}}, marks={"orders-0": 30}, is_clean=True)
    [found] = [each for each in diagnoses(emptied, deep=deep) if each.code == "records-lost"]
    assert found.command == f"kafkalog verify {emptied}/orders-0"  # nothing is left to salvage
    killed = node(tmp_path / "killed", {"orders-0": SOUND}, marks={"orders-0": 30})
    [found] = diagnoses(killed, deep=deep)
    assert (found.code, found.severity) == ("records-lost", Severity.WARNING)
    assert codes(node(tmp_path / "sound", {"orders-0": SOUND}, marks={"orders-0": 24}, is_clean=True), deep=deep) == []


@pytest.mark.parametrize(
    "name", ["orders-0/leader-epoch-checkpoint", "replication-offset-checkpoint", "meta.properties"]
)
def test_a_damaged_file_that_stops_a_broker_is_one_diagnosis(tmp_path: Path, name: str) -> None:
    made = node(tmp_path / "node-1", {"orders-0": SOUND})
    (made / "bootstrap.checkpoint").touch()  # as KRaft has
    (made / name).write_text("0\n2\nfoo\n")
    found = [each for each in diagnoses(made) if each.evidence_path == str(made / name)]
    assert [each.question for each in found] == ["boot"]


def test_many_of_a_kind_are_one(tmp_path: Path) -> None:
    names = [f"orders-{number}" for number in range(40)]
    logs = dict.fromkeys(names, SOUND)
    [found] = diagnoses(node(tmp_path / "node-1", logs, marks=dict.fromkeys(names, 30), is_clean=True))
    assert found.sentence.startswith("40 partitions have lost offsets: orders-0, orders-1, orders-2 and 37 more.")
    assert found.subject == "node-1"
    assert found.command == f"kafkalog verify {tmp_path / 'node-1'}"
    three = node(
        tmp_path / "node-2", dict.fromkeys(names[:3], SOUND), marks=dict.fromkeys(names[:3], 30), is_clean=True
    )
    assert codes(three) == ["records-lost"] * 3


def test_records_damaged(tmp_path: Path) -> None:
    """Framing shows in the headers; a wrong CRC only where the records are read."""
    content = bytearray(b"".join(batches(4)))
    broken = node(tmp_path / "framing", {"orders-0": {0: [bytes(content[:100]), b"\xff" * 40, *batches(2, 30)]}})
    [found] = diagnoses(broken)
    assert found.code == "records-damaged"
    assert found.evidence_path == str(broken / "orders-0" / "00000000000000000000.log")
    content[90] ^= 1
    wrong = node(tmp_path / "crc", {"orders-0": {0: [bytes(content)]}})
    assert codes(wrong) == []
    [found] = diagnoses(wrong, deep=True)
    assert (found.code, found.evidence_offset) == ("records-damaged", 0)
    assert "offsets 0 to 2 (batch-crc-mismatch)" in found.sentence


def test_what_a_start_removes_behind_the_damage(tmp_path: Path) -> None:
    """Recovery after an unclean stop cuts the log at the first damaged batch, with the sound ones after it."""
    content = bytearray(b"".join(batches(4)))
    content[90] ^= 1
    logs = {"orders-0": {0: [bytes(content)], 12: batches(2, 12)}}
    words = ". A broker that starts cuts the log there, and removes offsets 3 to 17 too"
    [unclean] = diagnoses(node(tmp_path / "unclean", logs), deep=True)
    assert words in unclean.sentence
    alone = shutil.copytree(tmp_path / "unclean" / "orders-0", tmp_path / "orders-0")
    clean = node(tmp_path / "clean", logs, is_clean=True)
    for path in (alone, clean):  # how a broker stopped shows in its log directory
        [found] = diagnoses(path, deep=True)
        assert "starts" not in found.sentence
    assert found.code == "records-damaged"
    (clean / ".kafka_cleanshutdown").unlink()
    (clean / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 13\n")  # only the second segment is read
    [found] = diagnoses(clean, deep=True)
    assert "starts" not in found.sentence


def test_small_directories_are_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytearray(b"".join(batches(4)))
    content[90] ^= 1
    wrong = node(tmp_path / "node-1", {"orders-0": {0: [bytes(content)]}})
    assert looked_at(wrong).looked_at.endswith("headers, checkpoints, metadata (--deep reads records and indexes)")
    monkeypatch.setattr(doctor, "SMALL_SEGMENTS", 1)
    made = looked_at(wrong)
    assert [each.code for each in made.diagnoses] == ["records-damaged"]
    assert made.looked_at.endswith("records and all files beside them")
    monkeypatch.setattr(doctor, "SMALL_BYTES", len(content) - 1)
    assert codes(wrong) == []


def test_a_node_that_is_older_than_its_last_start(data_dir: Path, tmp_path: Path) -> None:
    """Its metadata log ends before the offset at which it registered."""
    made = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    older = shutil.copytree(made, tmp_path / "older")
    log = older / "__cluster_metadata-0" / "00000000000000000000.log"
    with log.open("rb") as file:
        end = struct.unpack(">qi", file.read(12))[1] + 12
    os.truncate(log, end)  # one batch is left
    assert "node-older" in codes(made, older)
    assert {"node-older", "metadata-damaged"}.intersection(codes(older)) == {"metadata-damaged"}  # its own snapshot
    assert "node-older" not in codes(made, shutil.copytree(made, tmp_path / "copy"))
    for place, name in ((older, "orders-0"), (made, "orders-1")):  # of the other directory of the node nothing is said
        last = max((place / name).glob("*.log"))
        last.write_bytes(b"")
    (found,) = [each for each in diagnoses(made, older) if each.code == "node-older"]
    assert "It lacks committed records of 1 partition, such as orders-0 " in found.sentence


def test_a_lost_end_of_the_only_replica_is_an_error(tmp_path: Path) -> None:
    """A power failure leaves zeros for what was not flushed; the checkpoint of high watermarks was."""
    for replicas, mark, severity in (((1,), 12, 2), ((1,), 6, 1), ((1, 2), 12, 1), ((2,), 12, 1)):
        torn = b"".join(batches(3)) + bytes(4096)  # up to offset 8
        made = node(tmp_path / f"{replicas}-{mark}", {"orders-0": {0: [torn]}}, marks={"orders-0": mark})
        (made / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")
        write_metadata_log(made, replicas=replicas, isr=replicas)
        [found] = [each for each in diagnoses(made) if each.code == "tail-torn"]
        assert (found.severity, "no other node has a replica" in found.sentence) == (severity, severity == 2)


@pytest.mark.parametrize(("epoch", "is_older"), [(-1, False), (2, True), (None, False), (10**6, False)])
def test_a_log_directory_that_the_last_start_did_not_use(
    data_dir: Path, tmp_path: Path, epoch: int | None, is_older: bool
) -> None:
    made = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    mark = made.second() / CLEAN_MARK
    if epoch is not None:
        mark.write_text(f'{{"version":0,"brokerEpoch":{epoch}}}')
    assert codes(*made.log_dirs) == (["node-older"] if is_older else [])
    notes = [each for each in boot(made.log_dirs, BootTerms()).not_checked if each.startswith("what was lost before")]
    assert len(notes) == is_older
    made.unclean()
    assert ("node-older" in codes(*made.log_dirs)) == is_older
    (made.first / CLEAN_MARK).write_text('{"version":0,"brokerEpoch":2}')  # the last start failed before it used any
    assert "node-older" not in codes(*made.log_dirs)


def test_the_intact_replica_is_named(tmp_path: Path) -> None:
    sound = b"".join(batches(4))
    content = bytearray(sound)
    content[90] ^= 1
    one = node(tmp_path / "node-1", {"orders-0": {0: [bytes(content)]}}, node_id=1)
    two = node(tmp_path / "node-2", {"orders-0": {0: [sound]}}, node_id=2)
    found = next(each for each in diagnoses(one, two, deep=True) if each.code == "records-damaged")
    assert found.subject == "orders-0 on node 1"
    assert "Its replica on node 2 is intact there: if node 1 leads, move leadership to it" in found.sentence
    assert found.command == f"kafkalog diff {one / 'orders-0'} {two / 'orders-0'}"
    shutil.rmtree(two)
    short = node(tmp_path / "node-2", {"orders-0": {0: []}}, node_id=2)
    found = next(each for each in diagnoses(one, short, deep=True) if each.code == "records-damaged")
    assert "No replica at hand is intact there: that of node 2 has no intact batch" in found.sentence
    assert found.command is not None
    assert found.command.startswith("kafkalog salvage ")


def test_a_metadata_log_is_not_fetched_anew(tmp_path: Path) -> None:
    """A voter without its metadata log might elect a leader that lacks committed records."""
    content = bytearray(b"".join(batches(4)))
    content[90] ^= 1
    one = node(tmp_path / "node-1", {"__cluster_metadata-0": {0: [bytes(content)]}}, node_id=1)
    two = node(tmp_path / "node-2", {"__cluster_metadata-0": {0: batches(4)}}, node_id=2)
    found = next(each for each in diagnoses(one, two, deep=True) if each.subject.endswith(" on node 1"))
    assert found.code == "records-damaged"
    assert "anew" not in found.sentence
    assert found.command is not None
    assert found.command.startswith("kafkalog diff ")


def test_tail_torn(tmp_path: Path) -> None:
    """Killed while writing: a warning, which says what is cut off."""
    torn = b"".join(batches(4))[:-10]
    [found] = diagnoses(node(tmp_path / "killed", {"orders-0": {0: [torn]}}))
    assert (found.code, found.severity) == ("tail-torn", Severity.WARNING)
    assert found.command == f"kafkalog boot {tmp_path / 'killed'}"
    [found] = diagnoses(node(tmp_path / "clean", {"orders-0": {0: [torn]}}, is_clean=True, marks={"orders-0": 12}))
    assert (found.code, found.severity) == ("records-damaged", Severity.ERROR)
    for is_clean, does in ((True, "a broker appends after them"), (False, "a broker cuts them off when it starts")):
        path = tmp_path / f"whole-{is_clean}"
        [found] = diagnoses(node(path, {"orders-0": {0: [torn]}}, is_clean=is_clean, marks={"orders-0": 9}))
        assert (found.code, found.sentence.endswith(f"; {does}.")) == ("tail-torn", True), found.sentence


def test_segments_lost(tmp_path: Path) -> None:
    """A missing segment of keyless records, in which only the records show that nothing was compacted."""
    keyless = {0: [batch(0, key=None)], 6: [batch(6, key=None)]}
    lost = node(tmp_path / "node-1", {"orders-0": keyless})
    assert codes(lost) == codes(lost, deep=True) == ["segments-lost"]
    keyed = node(tmp_path / "node-2", {"orders-0": {0: [batch(0)], 6: [batch(6)]}})
    assert codes(keyed) == codes(keyed, deep=True) == []


def test_replicas_diverge(tmp_path: Path) -> None:
    common = plain(5)
    ModelReplica([*common, *plain(2, first=15, epoch=1, tag="x")], 15).write(tmp_path / "node-1")
    ModelReplica([*common, *plain(3, first=15, epoch=2, tag="y")], 24).write(tmp_path / "node-2")
    found = diagnoses(tmp_path / "node-1", tmp_path / "node-2")[0]
    assert found.code == "replicas-diverge"
    assert found.subject == "orders-0"
    assert f"Elect {tmp_path / 'node-2'}" in found.sentence
    assert f"{tmp_path / 'node-1' / 'orders-0'} loses 9 committed offsets (15 to 23)" in found.sentence


def test_unclean_election(tmp_path: Path) -> None:
    """Where the replicas are equal again, only the history of the metadata shows it."""
    nodes = [write_node(tmp_path / f"node-{each}", each, directory=f"directory-{each}") for each in (1, 2)]
    log = write_metadata_log(nodes[1], replicas=(1, 2), isr=(1,)) / f"{0:020d}.log"
    start = log.read_bytes()
    unclean = change_of("orders", leader=2, isr=[2], leaderRecoveryState=1)
    clean = change_of("orders", isr=[1, 2], leaderRecoveryState=0)
    for each in nodes:
        ModelReplica([*plain(5), *plain(2, first=15, epoch=1)], 21).write(each)
        (each / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")

    def written(*values: bytes) -> list[Diagnosis]:
        changes = [batch(at, [value], key=None, leader_epoch=1) for at, value in enumerate(values, 2)]
        log.write_bytes(start + b"".join(changes))
        return diagnoses(*nodes)

    assert written(change_of("orders", leader=2, isr=[2]), clean) == []
    [found] = written(unclean, clean)
    assert (found.code, found.severity, found.subject, found.evidence_offset) == (
        "unclean-election", Severity.WARNING, "orders-0", 2)  # fmt: skip
    assert "by an unclean election: node 1 had all committed records. What node 2 lacked is lost, from offset 15" in (
        found.sentence
    )
    assert found.command == f"kafkalog metadata --history --topic orders {log.parent}"
    away = change_of("orders", leader=-1, isr=[], lastKnownElr=[2])
    assert written(away, unclean, clean) == []  # the last leader has returned
    deleted = written(unclean, clean, removal_of("orders"))
    assert "unclean-election" not in [each.code for each in deleted]
    shutil.rmtree(nodes[0] / "orders-0")  # the old leader has not come back yet: what is lost is seen
    ModelReplica([*plain(5), *plain(2, first=15, tag="x")], 21).write(nodes[0])
    assert "unclean-election" not in [each.code for each in written(unclean, clean)]


def test_replica_behind(tmp_path: Path) -> None:
    """Behind is worth a word only where committed records are missing."""
    ModelReplica(plain(5), 15).write(tmp_path / "node-1")
    ModelReplica(plain(7), 21).write(tmp_path / "node-2")
    [found] = diagnoses(tmp_path / "node-1", tmp_path / "node-2")
    assert found.code == "replica-behind"
    assert "lacks 6 committed offsets (15 to 20). Elect" in found.sentence
    shutil.rmtree(tmp_path / "node-2")
    ModelReplica(plain(7), 15).write(tmp_path / "node-2")
    assert codes(tmp_path / "node-1", tmp_path / "node-2") == []


@pytest.mark.parametrize(
    ("replicas", "adding", "expected"), [((1, 2), (), ["replica-behind"]), ((1, 2), (1,), []), ((2,), (), [])]
)
def test_a_replica_that_a_reassignment_adds_or_has_moved_away_is_not_behind(
    tmp_path: Path, replicas: tuple[int, ...], adding: tuple[int, ...], expected: list[str]
) -> None:
    nodes = [write_node(tmp_path / f"node-{each}", each, directory=f"directory-{each}") for each in (1, 2)]
    write_metadata_log(nodes[1], replicas=replicas, isr=(2,), leader=2, adding=adding)
    ModelReplica(plain(5), 15).write(nodes[0])
    ModelReplica(plain(7), 21).write(nodes[1])
    assert [each for each in codes(*nodes) if each.startswith("replica-")] == expected


def test_two_copies_of_one_node_are_named_by_their_paths(tmp_path: Path) -> None:
    for name, count in (("now", 8), ("backup", 4)):
        node(tmp_path / name, {"orders-0": {0: batches(count)}}, marks={"orders-0": 3 * count})
    [found] = [each for each in diagnoses(tmp_path / "now", tmp_path / "backup") if each.code == "replica-behind"]
    assert found.sentence.startswith(
        f"{tmp_path}/backup/orders-0 lacks 12 committed offsets (12 to 23). Its logs here all have the node id 1, and "
        "differ from offset 12 on: no election decides between them."
    )


def test_two_directories_of_one_node_id_and_no_cluster_id(tmp_path: Path) -> None:
    """Brokers 0.10.2 and 1.1 write no cluster id: the directories may be of two clusters, and no log may be deleted."""
    one, two = tmp_path / "one", tmp_path / "two"
    for each, count in ((one, 4), (two, 3)):
        ModelReplica(plain(count, tag=each.name), 3 * count).write(each)
        (each / "meta.properties").write_text("version=0\nbroker.id=1\n")
    found = {each.code: each for each in diagnoses(one, two)}
    assert found["start-refused"].severity is Severity.WARNING
    assert found["start-refused"].command == f"kafkalog diff {two / 'orders-0'} {one / 'orders-0'}"
    assert "no election decides between them" in found["replicas-diverge"].sentence
    assert not any(words in each.sentence for each in found.values() for words in ("remove", "Elect"))


def test_log_directories_of_two_clusters(tmp_path: Path) -> None:
    """Several paths are one cluster, so a broker with both in log.dirs stops, and boot says so."""
    one = node(tmp_path / "one", {"orders-0": SOUND}, cluster_id="one")
    two = node(tmp_path / "two", {"orders-0": SOUND, "orders-1": SOUND}, cluster_id="two")
    made = looked_at(one, two)
    [found] = made.diagnoses
    assert (found.code, found.severity, found.subject) == ("directory-foreign", Severity.ERROR, str(two))
    assert found.sentence == f"The log directory is of another cluster: its cluster.id is not that of {one}."
    assert made.looked_at.startswith("2 nodes, ")
    assert made.not_known[0] == "groups and transactions: the paths are of several clusters"


def test_replicas_of_equal_ends_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from format.verbs.diff import diff

    ModelReplica(plain(5), 15).write(tmp_path / "node-1")
    ModelReplica(plain(5), 15).write(tmp_path / "node-2")
    monkeypatch.setattr(diff, "compared", None)
    assert codes(tmp_path / "node-1", tmp_path / "node-2") == []


def test_transactions(tmp_path: Path) -> None:
    """One that its coordinator has under way is no trouble; one that no coordinator has hangs."""
    log = {0: [data(0, 7, time=BASE_TIMESTAMP), batch(2)]}
    under_way = {0: [coordinator_batch(0, "pay", 7, 1, {"orders": [0]}, time=BASE_TIMESTAMP)]}
    done = {0: [coordinator_batch(0, "pay", 7, 4, {}, time=BASE_TIMESTAMP)]}
    assert codes(node(tmp_path / "a", {"orders-0": log, "__transaction_state-0": under_way})) == []
    [found] = diagnoses(node(tmp_path / "b", {"orders-0": log, "__transaction_state-0": done}))
    assert (found.code, found.evidence_offset) == ("transaction-hangs", 0)
    assert found.sentence.startswith("pay (producer 7) has a transaction open from offset 0 on")
    assert found.command is not None
    assert found.command.startswith("kafka-transactions.sh ")
    ended = {0: [data(0, 7, time=BASE_TIMESTAMP), marker(2, 7, commit=True, time=BASE_TIMESTAMP)]}
    assert codes(node(tmp_path / "c", {"orders-0": ended})) == []


def test_transaction_open(tmp_path: Path) -> None:
    """Without its coordinator a transaction is said to be open where later records show that it is silent for long."""
    for minutes, expected in ((20, ["transaction-open"]), (10, [])):
        later = batch(2, timestamp=BASE_TIMESTAMP + minutes * 60_000)
        log = {0: [data(0, 7, time=BASE_TIMESTAMP), later]}
        assert codes(node(tmp_path / f"{minutes}", {"orders-0": log})) == expected


def test_group_out_of_range(tmp_path: Path) -> None:
    for offset, expected in ((25, ["group-out-of-range"]), (24, [])):
        commits = {0: batches_of((commit("billing", 0, offset), None))}
        made = node(tmp_path / f"{offset}", {"orders-0": SOUND, "__consumer_offsets-7": commits})
        assert codes(made) == expected


def test_group_behind(tmp_path: Path) -> None:
    """A lag alone is no trouble: only one of a group that stopped to commit, or has read less than half."""
    commits = {0: batches_of((commit("billing", 0, 1300), None))}
    for minutes, expected in ((30, ["group-behind"]), (5, [])):
        long = batch(0, [b"x"] * 2400, timestamp=BASE_TIMESTAMP + minutes * 60_000)
        made = node(tmp_path / f"{minutes}", {"orders-0": {0: [long]}, "__consumer_offsets-7": commits})
        assert codes(made) == expected


@pytest.mark.parametrize(("lag", "expected"), [(1300, ["group-behind"]), (1100, [])])
def test_group_behind_by_half(tmp_path: Path, lag: int, expected: list[str]) -> None:
    """At once, where it has read less than half of what the partition holds."""
    commits = {0: batches_of((commit("billing", 0, 2400 - lag), None))}
    long = batch(0, [b"x"] * 2400)
    assert codes(node(tmp_path / "node-1", {"orders-0": {0: [long]}, "__consumer_offsets-7": commits})) == expected


def test_retention_held(tmp_path: Path) -> None:
    for days, expected in ((400, ["retention-held"]), (0, [])):
        log = {0: [batch(0, timestamp=NOW_MS + days * DAY_MS - 1000)], 3: [batch(3)]}
        assert codes(node(tmp_path / f"{days}", {"orders-0": log}, marks={"orders-0": 6})) == expected


def test_what_is_wrong_with_records_is_said_once_for_all_replicas(tmp_path: Path) -> None:
    log = {0: [batch(0, timestamp=NOW_MS + 400 * DAY_MS)], 3: [batch(3)]}
    nodes = [
        node(tmp_path / f"node-{number}", {"orders-0": log}, marks={"orders-0": 6}, node_id=number) for number in (1, 2)
    ]
    (found,) = diagnoses(*nodes)
    assert (found.code, found.subject) == ("retention-held", "orders-0 on node 1 and node 2")


@pytest.mark.parametrize(("seconds", "expected"), [(3600, []), (3601, ["retention-held"])])
def test_retention_held_past_the_margin(tmp_path: Path, seconds: int, expected: list[str]) -> None:
    """A broker accepts what is ahead of its clock by an hour."""
    log = {0: [batch(0, [b"x"], timestamp=NOW_MS + seconds * 1000)], 1: [batch(1)]}
    made = node(tmp_path / "node-1", {"orders-0": log}, marks={"orders-0": 4})
    assert codes(made) == codes(made, deep=True) == expected


def test_records_twice(tmp_path: Path) -> None:
    """An equal batch is a retry where the times in it differ; the longest replica is the one that counts."""
    log = {0: [*batches(2), batch(6, timestamp=BASE_TIMESTAMP), batch(9, timestamp=BASE_TIMESTAMP)]}
    made = node(tmp_path / "node-1", {"orders-0": log})
    [found] = diagnoses(made, deep=True)
    assert (found.code, found.subject, found.evidence_offset) == ("records-twice", "orders-0", 6)
    words = "3 records are there twice, in equal batches without a producer id, as after a retry: 6 to 8 and 9 to 11."
    assert found.sentence == words
    assert found.command == f"kafkalog producers --duplicates --topic orders {made / 'orders-0'}"
    other = node(tmp_path / "node-2", {"orders-0": log}, node_id=2)
    assert codes(made, other, deep=True) == ["records-twice"]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("orders-0", {}, {"timestamp": BASE_TIMESTAMP + 1}),
        ("orders-0", {"max_timestamp": BASE_TIMESTAMP}, {"max_timestamp": BASE_TIMESTAMP}),
        ("orders-0", {"producer_id": 7, "base_sequence": 0}, {"producer_id": 7, "base_sequence": 3}),
        ("__orders-0", {}, {}),
    ],
)
def test_no_records_twice(name: str, first: dict[str, int], second: dict[str, int], tmp_path: Path) -> None:
    """Equal records that a producer may well have sent again on purpose, and topics that repeat themselves."""
    log = [batch(0, **{"timestamp": BASE_TIMESTAMP, **first}), batch(3, **{"timestamp": BASE_TIMESTAMP, **second})]
    found = codes(node(tmp_path / "node-1", {name: {0: log}}), deep=True)
    assert "records-twice" not in found


def test_no_records_twice_in_what_is_compacted_or_much_later(tmp_path: Path) -> None:
    twice = [batch(number * 3, timestamp=BASE_TIMESTAMP) for number in range(2)]
    made = node(tmp_path / "node-1", {"orders-0": {0: twice}})
    assert codes(made, deep=True) == ["records-twice"]
    assert codes(made) == []  # by headers alone
    (made / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 6\n")
    assert codes(made, deep=True) == []
    later = batch(3, timestamp=BASE_TIMESTAMP + 5 * 60_000)
    log = [twice[0], later, batch(6, timestamp=BASE_TIMESTAMP)]
    assert "records-twice" not in codes(node(tmp_path / "later", {"orders-0": {0: log}}), deep=True)


def test_index_wrong(tmp_path: Path) -> None:
    """A broken index shows in a deep look, and in any look at a partition that is odd in another way."""
    made = node(tmp_path / "node-1", {"orders-0": SOUND})
    index = made / "orders-0" / "00000000000000000000.index"
    index.write_bytes(bytes([0, 0, 0, 5, 0, 0, 0, 7]))
    assert codes(made, deep=True) == ["index-wrong"]
    index.write_bytes(b"")
    assert codes(made, deep=True) == []


def test_directory_of_another_topic_is_stray(data_dir: Path, tmp_path: Path) -> None:
    made = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "node-1")
    assert codes(made) == []
    path = made / "orders-0" / "partition.metadata"
    path.write_text(path.read_text().rpartition(" ")[0] + " AAAAAAAAAAAAAAAAAAAAbw\n")
    found = diagnoses(made)
    assert "directory-stray" in [each.code for each in found]
    assert all(each.command for each in found)


ZOOKEEPER_META = "version=0\nbroker.id=1\ncluster.id=zookeeperzookeeperzooA\n"


def test_a_future_replica_without_a_current_one_where_zookeeper_assigns(tmp_path: Path) -> None:
    """2.8.2 and 3.9.1 made an empty log and cut the future replica to it; they leave one beside a current one."""
    future = f"orders-0.{'0' * 32}-future"
    one = node(tmp_path / "a", {future: SOUND})
    two = node(tmp_path / "b", {"orders-1": SOUND})
    for each in (one, two):
        (each / "meta.properties").write_text(ZOOKEEPER_META)
    [found] = diagnoses(one, two)
    assert (found.code, found.severity) == ("replica-missing", Severity.WARNING)
    assert "may cut this future replica to it: copy it before" in found.sentence  # not read, as the stop was not clean
    (one / ".kafka_cleanshutdown").touch()
    [found] = diagnoses(one, two)
    assert "may cut this future replica, with offsets 0 to 23, to it: copy it before" in found.sentence
    (two / "orders-1").rename(two / "orders-0")
    assert codes(one, two) == []
    shutil.rmtree(two)
    for each in (one / future).glob("*.log"):
        each.write_bytes(b"")
    (one / ".kafka_cleanshutdown").unlink()
    assert "replica-missing" not in codes(one)


def test_log_start_offsets_that_were_removed_after_a_clean_stop(tmp_path: Path) -> None:
    """4.3.1 wrote the file without entries too, and served 200 deleted records again after it was removed."""
    made = node(tmp_path / "node-1", {"orders-0": SOUND}, marks={"orders-0": 24}, is_clean=True)
    assert codes(made) == []
    (made / "log-start-offset-checkpoint").unlink()
    [found] = diagnoses(made)
    assert (found.code, found.severity, found.evidence_path) == ("suspicious", Severity.WARNING, str(made))
    assert "begins every log with its first segment" in found.sentence
    assert found.command == f"kafkalog verify {made}"
    properties = (made / "meta.properties").read_text()
    (made / "meta.properties").write_text(ZOOKEEPER_META)  # before 0.11 no broker wrote the file
    assert codes(made) == []
    (made / "meta.properties").write_text(properties)
    (made / ".kafka_cleanshutdown").unlink()  # a copy of some files
    assert codes(made) == []


def test_a_replica_that_was_removed_after_a_clean_stop_where_zookeeper_assigns(tmp_path: Path) -> None:
    """With KRaft, the metadata shows what is missing; after a crash the checkpoint may have what was deleted."""
    marks = {"orders-0": 24, "gone-1": 9, "empty-0": 0}
    one = node(tmp_path / "a", {"orders-0": SOUND}, marks=marks, is_clean=True)
    assert codes(one) == []
    (one / "meta.properties").write_text(ZOOKEEPER_META)
    [found] = diagnoses(one)
    assert (found.code, found.severity, found.subject) == ("replica-missing", Severity.ERROR, "gone-1")
    assert "with a high watermark of 9, and has it no more" in found.sentence
    assert found.command == f"kafkalog verify {one}"
    two = node(tmp_path / "b", {"gone-1": SOUND}, is_clean=True)
    (two / "meta.properties").write_text(ZOOKEEPER_META)
    assert codes(one, two) == []  # moved to another disk of the node
    (one / ".kafka_cleanshutdown").unlink()
    assert codes(one) == []


def test_directory_that_is_marked_as_stray_needs_no_metadata(tmp_path: Path) -> None:
    made = node(tmp_path / "node-1", {f"orders-0.{'0' * 32}-stray": SOUND})
    [found] = [each for each in diagnoses(made) if each.code == "directory-stray"]
    assert found.sentence.endswith("not assigned to this broker when it started. A broker does not serve it.")
    assert found.severity is Severity.ERROR
    empty = node(tmp_path / "node-2", {f"orders-0.{'0' * 32}-stray": {0: []}})
    [found] = [each for each in diagnoses(empty) if each.code == "directory-stray"]
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_stray_of_a_deleted_topic_is_no_error(tmp_path: Path, is_deleted: bool) -> None:
    one = write_node(tmp_path / "node-1", 1)
    log = write_metadata_log(one, extra_topics=3) / f"{0:020d}.log"
    if is_deleted:
        log.write_bytes(log.read_bytes() + batch(5, [removal_of("orders")], key=None, leader_epoch=1))
    name = f"orders-0.{'0' * 32}-stray"
    two = node(tmp_path / "node-2", {name: SOUND}, node_id=2, cluster_id="cluster-a")
    (two / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")
    [found] = [each for each in diagnoses(one, two) if each.code == "directory-stray"]
    assert found.severity is (Severity.WARNING if is_deleted else Severity.ERROR)
    assert ("the topic of that id was deleted" in found.sentence) == is_deleted


@pytest.mark.parametrize("is_known", [False, True])
def test_a_topic_that_only_the_older_metadata_has_was_deleted(tmp_path: Path, is_known: bool) -> None:
    """A snapshot that was made after the deletion has neither the topic nor its removal."""
    one = write_node(tmp_path / "node-1", 1)
    write_metadata_log(one, "payments", extra_topics=3)
    two = node(tmp_path / "node-2", {"orders-0": SOUND}, node_id=2, cluster_id="cluster-a")
    (two / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")
    write_voters(write_metadata_log(two, "orders" if is_known else "others"), (1, 2))
    [found] = [each for each in diagnoses(one, two) if each.code == "directory-stray"]
    assert found.severity is (Severity.WARNING if is_known else Severity.ERROR)
    assert ("the topic of that id was deleted" in found.sentence) == is_known


def test_stray_by_the_metadata_of_another_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that was deleted and made anew: the command takes the metadata that shows it, and both ids are named."""
    own, other = topic_id_of("payments"), topic_id_of("orders")
    one = write_node(tmp_path / "node-1", 1)
    write_metadata_log(one, extra_topics=3)
    two = node(tmp_path / "node-2", {"orders-0": SOUND}, node_id=2, cluster_id="cluster-a")
    (two / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {own}\n")
    [found] = [each for each in diagnoses(one, two) if each.code == "directory-stray"]
    assert found.command == f"kafkalog boot --metadata {one} {two}"
    assert f"id {own}; there orders has the id {other}" in found.sentence
    write_metadata_log(two)
    [found] = [each for each in diagnoses(two) if each.code == "directory-stray"]
    assert found.command == f"kafkalog boot {two}"
    monkeypatch.chdir(two)
    [found] = [each for each in diagnoses(Path("orders-0")) if each.code == "directory-stray"]
    assert found.command == "kafkalog boot ."


@pytest.mark.parametrize("right", [1, 2])
def test_a_topic_that_was_made_again_accuses_only_the_older_directory(tmp_path: Path, right: int) -> None:
    ids = {1: topic_id_of("orders" if right == 1 else "before"), 2: topic_id_of("before" if right == 1 else "orders")}
    nodes = [write_node(tmp_path / f"node-{each}", each) for each in ids]
    for each, log_dir in zip(ids, nodes, strict=True):
        directory = ModelReplica(plain(5), 15).write(log_dir)
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {ids[each]}\n")
    controller = write_node(tmp_path / "controller", 3)
    write_metadata_log(controller, replicas=(1, 2), isr=(1, 2))
    made = diagnoses(*nodes, controller)
    foreign = {each.code for each in made if each.code == "directory-foreign"}
    stray = {Path(each.evidence_path or "").parent.name for each in made if each.code == "directory-stray"}
    assert (foreign, stray) == (set(), {f"node-{3 - right}"})


def test_a_log_is_no_stray_by_the_older_metadata_of_its_node_alone(tmp_path: Path) -> None:
    """A broker fetches what its metadata log lacks before it looks at its logs; tried with 4.4.0."""
    one = node(tmp_path / "node-1", {"orders-0": SOUND}, node_id=1, cluster_id="cluster-a")
    (one / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id_of('orders')}\n")
    write_voters(write_metadata_log(one, "before"), (1, 2))
    [found] = [each for each in diagnoses(one) if each.code == "directory-stray"]
    assert "by its own metadata: other controllers may have later metadata" in found.sentence
    two = write_node(tmp_path / "node-2", 2)
    write_voters(write_metadata_log(two, "orders", replicas=(1, 2), isr=(1,), extra_topics=3), (1, 2))
    assert "directory-stray" not in codes(one, two)
    three = write_node(tmp_path / "node-3", 2)
    write_voters(write_metadata_log(three, "orders", replicas=(2,), isr=(2,), leader=2, extra_topics=3), (1, 2))
    assert "directory-stray" in codes(one, three)


def test_leftovers(tmp_path: Path) -> None:
    made = node(tmp_path / "node-1", {"orders-0": SOUND, "orders-1.0123456789abcdef0123456789abcdef-delete": SOUND})
    assert codes(made) == []
    log = made / "orders-1.0123456789abcdef0123456789abcdef-delete" / "00000000000000000012.log"
    os.truncate(log.with_suffix(".index"), 80 * 2**20)  # preallocated: it takes no room
    assert "leftovers" not in codes(made)
    os.truncate(log, 80 * 2**20)  # a hole
    assert "leftovers" in codes(made)


def test_ranks_follow_urgency(tmp_path: Path) -> None:
    log = {0: [data(0, 7, time=BASE_TIMESTAMP), batch(2)]}
    done = {0: [coordinator_batch(0, "pay", 7, 4, {}, time=BASE_TIMESTAMP)]}
    logs = {"orders-0": log, "orders-1": SOUND, "orders-2": {0: [b"".join(batches(4))[:-10]]}}
    made = node(tmp_path / "node-1", {**logs, "__transaction_state-0": done}, is_clean=False, marks={"orders-1": 30})
    found = diagnoses(made)
    assert [each.rank for each in found] == [1, 2, 3]
    assert [each.code for each in found] == ["transaction-hangs", "records-lost", "tail-torn"]


def test_the_next_command_names_all_disks_of_the_node(tmp_path: Path) -> None:
    """boot of one disk takes what lies on the others for missing."""
    disks = [node(tmp_path / name, {f"orders-{at}": SOUND}) for at, name in enumerate(("disk-1", "disk-2"))]
    other = node(tmp_path / "other", {"orders-0": SOUND}, node_id=2)
    log = disks[1] / "orders-1" / f"{12:020}.log"
    log.write_bytes(log.read_bytes()[:-5])
    [found] = [each for each in diagnoses(*disks, other) if each.code == "tail-torn"]
    assert found.command == f"kafkalog boot {disks[0]} {disks[1]}"
