"""groups: the state that coordinators' logs add up to, against what brokers and naive loops say."""

from __future__ import annotations

import gzip
import json
import shutil
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from format.columns import GROUP, GROUP_OFFSET
from format.errors import NotALogDir, UnreadableFile
from format.internal_topics.decoder import decoder_for
from format.io.source import FileSource
from format.layout import coordinator_partition
from format.location import Location
from format.log.walker import batch_chunks
from format.node import log_dir
from format.node.partition import Partition, read_partition
from format.timestamps import DAY_MS, iso_time
from format.verbs.groups import group_list
from format.verbs.groups.answers import ResetCsv, none_of, none_of_topics
from format.verbs.groups.group_list import GroupSelection, GroupTerms
from format.verbs.groups.replicas import Coordinators, log_end_at
from tests.building import BASE_TIMESTAMP, batch, forbid_reading, write_segment
from tests.corpora import DATA_DIR, Corpus
from tests.format.internal_topics.known_messages import records_of
from tests.format.verbs.groups.commit_logs import Answer, Row, batches_of, commit, log_of
from tests.oracle.contradicting_group_records import PROTOCOLS, group_record

_TOPOLOGY = 23  # the record type of the topology of a streams group

# -- what brokers said -----------------------------------------------------------------------------------------


def test_committed_offsets_are_those_that_the_broker_reported(witnessed_corpus: Corpus) -> None:
    truth = witnessed_corpus.truth_json("groups")
    if not any(path.name.startswith("__consumer_offsets-") for path in witnessed_corpus.partitions()):
        pytest.skip("this corpus has no committed offsets")
    answer = Answer(*witnessed_corpus.log_dirs)
    assert truth
    assert answer.committed() == truth
    marks = witnessed_corpus.truth_json("watermarks")
    for row in answer.offsets:
        assert row["lag"] == marks[f"{row['topic']}-{row['partition']}"]["high_watermark"] - row["offset"]


@pytest.fixture(scope="module")
def truth() -> Row:
    """What an AdminClient reported of the node of tests/_data/groups, right before the node was killed."""
    loaded: Row = json.loads(gzip.decompress((DATA_DIR / "groups/truth/groups.json.gz").read_bytes()))
    return loaded


@pytest.fixture(scope="module")
def five_hundred() -> Answer:
    return Answer(DATA_DIR / "groups/node-1", terms=GroupTerms(with_history=True))


def test_five_hundred_groups_are_as_the_broker_reported_them(truth: Row, five_hundred: Answer) -> None:
    assert len(truth["groups"]) > 450
    live = {name: row for name, row in five_hundred.groups.items() if row["state"] != "Dead"}
    assert set(live) == set(truth["groups"])
    for name, said in truth["groups"].items():
        row = live[name]
        assert (row["protocol"], row["state"]) == (said["protocol"], said["state"]), name
        assert row["member_count"] == len(said["members"]), name
        if "generation" in said:
            assert row["generation"] == said["generation"], name
    assert {row["protocol"] for row in live.values()} == {"classic", "consumer", "share", "streams"}
    assert {row["state"] for row in live.values()} >= {"Stable", "Empty", "Assigning", "NotReady"}


def test_offsets_of_five_hundred_groups_are_as_the_broker_reported_them(truth: Row, five_hundred: Answer) -> None:
    expected = {
        (name, place): offset for name, said in truth["groups"].items() for place, offset in said["offsets"].items()
    }
    found = {(row["group"], f"{row['topic']}-{row['partition']}"): row for row in five_hundred.offsets}
    assert {key for key, row in found.items() if row["offset"] is not None} == set(expected)
    for key, said in expected.items():
        row = found[key]
        assert row["offset"] == said["offset"], key
        assert (row["metadata"] or "") == said.get("metadata", ""), key
        assert row["log_end_offset"] == truth["log_ends"][key[1]], key
        if "lag" in said:  # of share groups, which the broker computes itself
            assert row["lag"] == said["lag"], key
        elif truth["groups"][key[0]]["protocol"] != "share":
            assert row["lag"] == truth["log_ends"][key[1]] - said["offset"], key
            assert row["leader_epoch"] == said.get("leader_epoch"), key
    assert sum("lag" in said for said in expected.values()) == 3


def test_offsets_in_open_transactions_are_pending(truth: Row, five_hundred: Answer) -> None:
    names = ("group", "topic", "partition")
    expected = {tuple(each[name] for name in names): each["offset"] for each in truth["pending"]}
    found = {tuple(row[name] for name in names): row["pending_offset"] for row in five_hundred.offsets}
    assert {key: offset for key, offset in found.items() if offset is not None} == expected
    assert len(expected) > 20
    assert f"{len(expected)} offsets wait for a transaction" in five_hundred.sentences


def test_the_history_adds_up_to_the_offsets(five_hundred: Answer) -> None:
    latest: dict[tuple[str, str, int], Row] = {}
    for row in five_hundred.commits:
        if row["outcome"] in ("plain", "committed", "deleted"):
            key = (row["group"], row["topic"], row["partition"])
            if key not in latest or latest[key]["record_offset"] < row["record_offset"]:
                latest[key] = row
    expected = {key: row["offset"] for key, row in latest.items() if row["offset"] is not None}
    share = {name for name, row in five_hundred.groups.items() if row["protocol"] == "share"}
    assert expected == {
        (row["group"], row["topic"], row["partition"]): row["offset"]
        for row in five_hundred.offsets
        if row["offset"] is not None and row["group"] not in share
    }
    assert {row["outcome"] for row in five_hundred.commits} == {"plain", "committed", "aborted", "open", "deleted"}
    commits = sum(row["commit_count"] for row in five_hundred.groups.values())
    assert commits == sum(row["outcome"] != "deleted" for row in five_hundred.commits)


# -- small logs --------------------------------------------------------------------------------------------------


def test_a_commit_counts_once_its_transaction_is_committed(tmp_path: Path) -> None:
    answer = Answer(
        log_of(
            tmp_path,
            (commit("a", 0, 5), None),
            (commit("a", 0, 9), 1),
            (commit("b", 0, 9), 2),
            (commit("c", 0, 9), 3),
            ("COMMIT", 1),
            ("ABORT", 2),
        )
    )
    assert answer.committed() == {"a": {"orders-0": 9}}
    (pending,) = (row for row in answer.offsets if row["pending_offset"] is not None)
    assert (pending["group"], pending["offset"], pending["pending_offset"], pending["pending_producer_id"]) == (
        "c", None, 9, 3,
    )  # fmt: skip
    assert (pending["record_offset"], answer.groups["c"]["state"], answer.groups["b"]["state"]) == (3, "Empty", "Dead")


def test_what_was_committed_later_stays_whenever_the_marker_comes(tmp_path: Path) -> None:
    answer = Answer(
        log_of(
            tmp_path,
            (commit("a", 0, 5), 1),
            (commit("b", 0, 5), 1),
            (commit("c", 0, 5), 1),
            (commit("a", 0, 3), None),
            (commit("b", 0, None), None),
            ("COMMIT", 1),
            (commit("d", 0, 5), 1),
            (commit("d", 0, None), None),
        )
    )
    assert answer.committed() == {"a": {"orders-0": 3}, "c": {"orders-0": 5}}
    assert not [row for row in answer.offsets if row["pending_offset"] is not None]


def test_state_does_not_depend_on_where_tables_and_segments_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = np.random.default_rng(3)
    records: list[tuple[tuple[bytes, bytes | None] | str, int | None]] = []
    for number in range(400):
        kind = int(chance.integers(0, 10))
        group, partition = f"g{chance.integers(0, 40):02d}", int(chance.integers(0, 3))
        producer = int(chance.integers(1, 4))
        if kind == 0:
            records.append(("COMMIT" if chance.integers(0, 2) else "ABORT", producer))
        elif kind == 1:
            records.append((commit(group, partition, None), None))
        else:
            metadata = "" if kind < 6 else f"m{number}"
            records.append((commit(group, partition, number, metadata), producer if kind % 2 else None))
    expected: dict[tuple[str, int], tuple[int, int | None]] = {}  # the broker's own steps, one by one
    open_commits: dict[int, list[tuple[tuple[str, int], int, int | None]]] = {}
    for at, (record, producer_id) in enumerate(records):
        if isinstance(record, str):
            for key, place, offset in open_commits.pop(producer_id or 0, []):
                if record == "COMMIT" and expected.get(key, (-1, None))[0] < place:
                    expected[key] = (place, offset)
            continue
        key = (record[0][4:7].decode(), struct.unpack(">i", record[0][-4:])[0])
        offset = None if record[1] is None else struct.unpack_from(">q", record[1], 2)[0]
        if producer_id is None:
            expected[key] = (at, offset)
        else:
            open_commits.setdefault(producer_id, []).append((key, at, offset))
    batches = batches_of(*records)
    for name, cuts in (("one", [0]), ("many", [0, 3, 90, 91, 300])):
        for start, end in zip(cuts, [*cuts[1:], len(batches)], strict=True):
            write_segment(tmp_path / name / "__consumer_offsets-0", start, batches[start:end])
    whole = Answer(tmp_path / "one")
    found = {(row["group"], row["partition"]): row["offset"] for row in whole.offsets if row["offset"] is not None}
    assert found == {key: offset for key, (_, offset) in expected.items() if offset is not None}
    monkeypatch.setattr("format.log.read_records.MOST_ROWS", 7)
    cut = Answer(tmp_path / "many", terms=GroupTerms(with_history=True))
    without = {"path", "position"}
    assert [{name: row[name] for name in row.keys() - without} for row in cut.offsets] == [
        {name: row[name] for name in row.keys() - without} for row in whole.offsets
    ]
    assert cut.raw_groups == whole.raw_groups
    assert [row["record_offset"] for row in cut.commits if row["outcome"] == "plain"] == [
        at for at, (record, producer_id) in enumerate(records)
        if not isinstance(record, str) and producer_id is None and record[1] is not None
    ]  # fmt: skip


def test_several_processes_give_the_same(five_hundred: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    shared = Answer(DATA_DIR / "groups/node-1", terms=GroupTerms(with_history=True), jobs=2)
    assert (shared.raw_groups, shared.raw_offsets) == (five_hundred.raw_groups, five_hundred.raw_offsets)
    assert shared.commits == five_hundred.commits


def test_a_time_in_the_past(tmp_path: Path) -> None:
    log = log_of(tmp_path, (commit("a", 0, 5), None), (commit("a", 0, 6), 1), ("COMMIT", 1), (commit("b", 0, 7), None))
    for until, expected in ((0, {"a": {"orders-0": 5}}), (1, {"a": {"orders-0": 5}}), (2, {"a": {"orders-0": 6}})):
        answer = Answer(log, terms=GroupTerms(until=BASE_TIMESTAMP + until))
        assert answer.committed() == expected
        assert answer.not_checked == ["the lag on 1 committed partition: not at the paths"]
    assert not Answer(log, terms=GroupTerms(until=BASE_TIMESTAMP - 1)).groups


def test_only_some_groups_and_topics(five_hundred: Answer) -> None:
    narrowing = GroupSelection(frozenset({"classic-1", "classic-10"}), frozenset({"payments"}))
    answer = Answer(DATA_DIR / "groups/node-1", terms=GroupTerms(narrowing, with_history=True))
    wanted = [row for row in five_hundred.offsets if row["group"] in narrowing.groups and row["topic"] == "payments"]
    assert answer.offsets == wanted
    assert set(answer.groups) == {"classic-1", "classic-10"}
    assert answer.groups["classic-1"]["total_lag"] == sum(row["lag"] for row in wanted if row["group"] == "classic-1")
    assert {(row["group"], row["topic"]) for row in answer.commits} == {
        ("classic-1", "payments"), ("classic-10", "payments"),
    }  # fmt: skip


def test_the_replica_with_the_highest_log_end_is_read(tmp_path: Path) -> None:
    made = batches_of(*((commit("a", 0, number), None) for number in range(5)))
    for node, count in (("node-1", 3), ("node-2", 5), ("node-3", 4)):
        write_segment(tmp_path / node / "__consumer_offsets-0", 0, made[:count])
        write_segment(tmp_path / node / "orders-0", 0, [batch(0, [b"x"] * 2 * count)])
    answer = Answer(*(tmp_path / f"node-{number}" for number in (1, 2, 3)))
    (row,) = answer.offsets
    assert (row["offset"], row["log_end_offset"], row["lag"]) == (4, 10, 6)
    assert row["path"] == str(tmp_path / "node-2/__consumer_offsets-0/00000000000000000000.log")
    (words,) = answer.not_checked
    assert words.startswith("2 replicas of coordinator partitions that end no later than the one that was read")


def test_the_lag_at_a_time(tmp_path: Path) -> None:
    """Against the first batch with a later timestamp, over closed segments with time indexes and without."""
    node = tmp_path / "node"
    write_segment(node / "__consumer_offsets-0", 0, batches_of((commit("a", 0, 4), None)))
    source = DATA_DIR / "kafka-4.3-single" / "node-1" / "orders-0"
    shutil.copytree(source, node / "orders-0")
    partition = read_partition(node / "orders-0")
    rows = [
        (int(table.max_timestamp[row]), int(table.base_offset[row]), table.last_offset_of(row))
        for segment in partition.segments
        if segment.log is not None
        for table in [chunk.table for chunk in batch_chunks(FileSource(segment.log))]
        for row in range(len(table))
    ]
    assert len(partition.segments) > 1
    for at_ms in sorted({stamp + delta for stamp, _, _ in rows for delta in (-1, 0, 1)}):
        later = [base for stamp, base, _ in rows if stamp > at_ms]
        at_first = None if len(later) == len(rows) else rows[-1][2] + 1
        assert log_end_at(partition, at_ms) == (later[0] if 0 < len(later) < len(rows) else at_first), at_ms
    at_ms = max(rows)[0] - 1
    answer = Answer(node, terms=GroupTerms(until=max(at_ms, BASE_TIMESTAMP + 10)))
    (row,) = answer.offsets
    assert row["log_end_offset"] == log_end_at(partition, max(at_ms, BASE_TIMESTAMP + 10))
    assert row["lag"] == row["log_end_offset"] - row["offset"]
    assert row["high_watermark"] is None


def test_the_lag_before_the_first_batch_that_is_left_is_not_known(tmp_path: Path) -> None:
    """Of a topic that was created again since, and of one whose head was deleted: not 0, and not 91."""
    write_segment(tmp_path / "__consumer_offsets-0", 0, batches_of(*((commit("a", part, 9), None) for part in (0, 1))))
    for number, base_offset in enumerate((0, 100)):
        made = batch(base_offset, [b"x"], timestamp=BASE_TIMESTAMP + 60_000)
        write_segment(tmp_path / f"orders-{number}", base_offset, [made])
    answer = Answer(tmp_path, terms=GroupTerms(until=BASE_TIMESTAMP + 30_000))
    assert [(row["offset"], row["log_end_offset"], row["lag"]) for row in answer.offsets] == [(9, None, None)] * 2
    assert answer.groups["a"]["partitions_without_lag"] == 2
    (note,) = answer.not_checked
    assert note.startswith("the lag on 2 committed partitions: not at the paths, not readable, without a record up to")
    later = Answer(tmp_path, terms=GroupTerms(until=BASE_TIMESTAMP + 60_000))
    assert [row["log_end_offset"] for row in later.offsets] == [1, 101]


def test_damage_is_a_finding_and_the_rest_is_read(tmp_path: Path) -> None:
    made = batches_of((commit("a", 0, 1), None), (commit("a", 0, 2), None), (commit("b", 0, 3), None))
    made[1] = made[1][:-9] + b"\xff" + made[1][-8:]
    strange = batch(3, [b"\0\3\0\0"] * 2, key=b"\0\1\0\1g\0\1t\0\0\0\0") + batch(5, [b""], key=b"\0\x7f\0\1g")
    write_segment(tmp_path / "__consumer_offsets-0", 0, [*made, strange])
    answer = Answer(tmp_path / "__consumer_offsets-0")
    assert answer.committed() == {"a": {"orders-0": 1}, "b": {"orders-0": 3}}
    assert [(each.code, each.location.offset) for each in answer.findings] == [
        ("batch-crc-mismatch", 1), ("internal-record-invalid", 3), ("version-unknown", 5),
    ]  # fmt: skip
    assert answer.findings[1].message.endswith("; 1 more record like it")


def test_what_fills_the_log_of_a_coordinator(five_hundred: Answer) -> None:
    """Named where no lag is known: the other topics are not at the path."""
    assert "The largest by bytes" not in five_hundred.sentences
    alone = Answer(DATA_DIR / "groups" / "node-1" / "__consumer_offsets-1")
    largest = sorted(alone.groups.values(), key=lambda row: -row["size_bytes"])[:3]
    first, second, third = (
        f"{row['group']} ({row['size_bytes']:,} bytes, {row['record_count']} records)" for row in largest
    )
    assert f" The largest by bytes: {first}, {second} and {third}. Group " in alone.sentences


@pytest.mark.parametrize(
    ("commits", "others", "sibling", "until", "is_said"),
    [
        (18, 2, 1, None, True),
        (17, 2, 1, None, False),  # others made more than a tenth of the records
        (18, 2, 0, None, True),
        (18, 2, 4, None, False),  # a sibling has more than a tenth of its bytes
        (18, 2, None, None, False),  # no sibling is here
        (18, 2, 1, BASE_TIMESTAMP + 10**6, False),  # of a time in the past the bytes are not known
    ],
)
def test_the_group_that_fills_a_partition_far_larger_than_its_siblings(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: int,
    others: int,
    sibling: int | None,
    until: int | None,
    is_said: bool,
) -> None:
    monkeypatch.setattr(group_list, "_LARGE_BYTES", 1000)
    often = [(commit("poller", 0, number, "x" * 40), None) for number in range(commits)]
    log = batches_of(*often, *((commit("other", 0, number), None) for number in range(others)))
    path = tmp_path / "__consumer_offsets-2"
    write_segment(path, 0, log)
    if sibling is not None:
        third = batches_of(*((commit("third", 0, number), None) for number in range(sibling)))
        write_segment(tmp_path / "__consumer_offsets-1", 0, third)
    answer = Answer(tmp_path, terms=GroupTerms(until=until))
    made = commits + others + (sibling or 0)
    size = sum(each.stat().st_size for each in path.glob("*.log")) / 1e6
    words = f"Group poller made {commits} of {made} commits: {size:,.1f} MB of __consumer_offsets-2; no other"
    assert (words in answer.sentences) is is_said
    assert ("Group poller made" in answer.sentences) is is_said
    monkeypatch.undo()
    assert "Group poller made" not in Answer(tmp_path).sentences, "a small log is nothing unusual"


def test_nothing_to_read(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", 0, [batch(0)])
    answer = Answer(tmp_path)
    assert not answer.groups
    assert answer.sentences == "There is no group."
    assert answer.not_checked == ["no readable log of __consumer_offsets or __share_group_state is at the paths"]
    (tmp_path / "orders-0" / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    with pytest.raises(NotALogDir, match="a log of the topic orders holds no records of groups"):
        Answer(next((tmp_path / "orders-0").glob("*.log")))
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(NotALogDir):
        Answer(tmp_path / "meta.properties")


@pytest.mark.parametrize(
    ("group", "partition"),
    [("group-0", 2), ("", 0), ("ünï-😀", 37), ("polygenelubricants", 0), ("billing", 9), ("before-10", 31)],
)
def test_the_partition_of_a_group_is_the_hash_of_java(group: str, partition: int) -> None:
    """The absolute value of a negative hash counts; of -2**31, which polygenelubricants has, there is none."""
    assert coordinator_partition(group, 4 if group == "group-0" else 50) == partition


def test_groups_in_partitions_that_were_not_read() -> None:
    some = Coordinators(frozenset({0, 3}), 4)
    assert some.missing == [1, 2]
    assert some.words() == "partitions 0 and 3 of the 4 of __consumer_offsets"
    words = "It is not known whether group group-0 exists: it would be in __consumer_offsets-2, which is not at "
    assert none_of(["group-0"], [], some) == f"{words}the paths."
    assert none_of(["group-0"], ["a"], Coordinators(frozenset({2}), 4)) == "There is no group group-0; there is a."
    unknown = Coordinators(frozenset({0}))
    assert (unknown.missing, unknown.words(), unknown.unknown(["group-0"])) == ([], "", {})
    read = frozenset({0, 2})
    for broken in (Coordinators(read, 4, frozenset({2})), Coordinators(read, None, frozenset({2}))):
        assert none_of(["group-0"], [], broken).endswith("in __consumer_offsets-2, which cannot be read as a whole.")
    assert none_of(["group-0"], [], Coordinators(read, 4, frozenset({0}))).startswith("There is no group")


def _with_one_group(tmp_path: Path) -> Path:
    """A node with a group that lags on two partitions of orders, and its coordinator's log."""
    node = tmp_path / "node"
    commits = [(commit("app", number, 1), None) for number in (0, 1)]
    write_segment(node / "__consumer_offsets-0", 0, batches_of(*commits))
    for number in (0, 1):
        write_segment(node / f"orders-{number}", 0, [batch(0)])
    return node


def test_an_offset_that_waits_for_its_transaction_is_no_lag(tmp_path: Path) -> None:
    commits = [(commit("app", 0, 1), None), (commit("app", 1, 1), 7)]
    write_segment(tmp_path / "__consumer_offsets-0", 0, batches_of(*commits))
    for number in (0, 1):
        write_segment(tmp_path / f"orders-{number}", 0, [batch(0)])
    assert Answer(tmp_path).sentences.startswith("Group app is 2 records behind on orders-0; ")


@pytest.mark.parametrize(
    ("committed", "words"),
    [
        ((3,), "The other group is not behind."),
        ((2,), "The other group is behind, too."),
        ((2, 3), "Of 2 other groups 1 is behind, too."),
    ],
)
def test_what_is_said_of_the_other_groups(tmp_path: Path, committed: tuple[int, ...], words: str) -> None:
    others = [(commit(f"other-{number}", 0, offset), None) for number, offset in enumerate(committed)]
    write_segment(tmp_path / "__consumer_offsets-0", 0, batches_of((commit("app", 0, 1), None), *others))
    write_segment(tmp_path / "orders-0", 0, [batch(0)])
    assert Answer(tmp_path).sentences.endswith(f" {words}")


def test_the_lag_on_a_log_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = _with_one_group(tmp_path)
    assert Answer(node).sentences.startswith("Group app is 4 records behind, 2 of them on orders-0; ")
    forbid_reading(node / "orders-1" / f"{0:020d}.log", monkeypatch)
    answer = Answer(node)
    words = answer.sentences
    assert words.startswith("Group app is at least 2 records behind on orders-0; ")
    assert words.endswith("Its lag on 1 other partition is not known.")
    assert [each.code for each in answer.reading.replicas.unread_ends] == ["file-unreadable"]


def test_only_logs_of_coordinators_count_as_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = _with_one_group(tmp_path)
    read_topic = log_dir.LogDir.partition

    def refuse(self: log_dir.LogDir, path: Path, **options: bool) -> Partition:
        if path.name == "orders-1":
            raise UnreadableFile("cannot list: Permission denied", Location(str(path), "orders", 1))
        return read_topic(self, path, **options)

    monkeypatch.setattr(log_dir.LogDir, "partition", refuse)
    assert Answer(node).reading.unread_count == 0
    forbid_reading(node / "__consumer_offsets-0" / f"{0:020d}.log", monkeypatch)
    answer = Answer(node)
    assert answer.reading.unread_count == 1
    assert answer.reading.coordinators.unread == {0}


def test_a_damaged_log_of_a_coordinator_is_not_read_as_a_whole(tmp_path: Path) -> None:
    node = _with_one_group(tmp_path)
    log = node / "__consumer_offsets-0" / f"{0:020d}.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    answer = Answer(node)
    assert [each.code for each in answer.findings] == ["batch-crc-mismatch"]
    assert (answer.reading.unread_count, answer.reading.coordinators.unread) == (1, {0})
    words = none_of_topics(GroupSelection(topics=frozenset({"clicks"})), ["orders"], answer.reading.unread_count)
    assert words == (
        "No group has offsets of topic clicks in what can be read: 1 log of coordinators cannot be read as a whole."
    )


# -- the CSV to reset offsets ------------------------------------------------------------------------------------


def test_reset_csv_has_what_the_tool_can_reset(five_hundred: Answer) -> None:
    made = ResetCsv(five_hundred.raw_groups)
    lines = list(made.lines(five_hundred.raw_offsets))
    protocols = {name: row["protocol"] for name, row in five_hundred.groups.items()}
    wanted = [
        row for row in five_hundred.offsets
        if row["offset"] is not None and protocols[row["group"]] in ("classic", "consumer")
    ]  # fmt: skip
    assert len(lines) == len(wanted) > 1000
    assert '"classic grüße, ""103""",orders,0,254\n' in "".join(lines)
    assert set(made.left_out) == {f"the tool does not reset {each} groups" for each in ("share", "streams")}


def test_a_line_break_in_a_name_has_no_line() -> None:
    rows = [
        tuple({"group": name, "protocol": "classic"}.get(column) for column in GROUP.names) for name in ("a\nb", "c")
    ]
    made = ResetCsv(rows)
    offsets = [
        tuple({"group": name, "topic": "t", "partition": 0, "offset": 4}.get(column) for column in GROUP_OFFSET.names)
        for name in ("a\nb", "c")
    ]
    assert list(made.lines(offsets)) == ["c,t,0,4\n"]
    assert made.left_out == {"the tool cannot read a name with a line break": 1}


def test_records_of_a_share_group_are_those_of_both_topics(five_hundred: Answer) -> None:
    counts: Counter[str] = Counter()
    for topic in ("__consumer_offsets", "__share_group_state"):
        decoder = decoder_for(topic)
        for log in sorted((DATA_DIR / "groups/node-1").glob(f"{topic}-*/*.log")):
            keys = [decoder.decode_key(key).data or {} for _, is_control, key, _ in records_of(log) if not is_control]
            counts.update(each["groupId"] for each in keys if "groupId" in each)
    share = {name: row["record_count"] for name, row in five_hundred.groups.items() if row["protocol"] == "share"}
    assert share
    assert share == {name: counts[name] for name in share}


def test_the_state_of_a_share_group_is_not_known_without_its_coordinator(tmp_path: Path) -> None:
    """The members are in __consumer_offsets, which another log directory of the node may have."""
    for log in (DATA_DIR / "groups/node-1").glob("__share_group_state-*"):
        shutil.copytree(log, tmp_path / log.name)
    answer = Answer(tmp_path)
    with_offsets = [row for row in answer.groups.values() if row["committed_partitions"]]
    assert with_offsets
    assert {(row["state"], row["member_count"]) for row in with_offsets} == {(None, None)}
    assert "groups in the partitions of __consumer_offsets: not at the paths" in answer.not_checked


@pytest.mark.parametrize(
    ("protocol", "member_state", "state"),
    [
        ("consumer", 0, "Stable"),
        ("consumer", 1, "Reconciling"),
        ("streams", 1, "Stable"),
        ("streams", 2, "Reconciling"),
    ],
)
def test_a_member_that_has_its_assignment_is_stable(
    tmp_path: Path, protocol: str, member_state: int, state: str
) -> None:
    """Kafka numbers the states of members from 0, those of streams groups from 1."""
    group, member, target, _, current = PROTOCOLS[protocol]
    records = [group_record(group, validatedTopologyEpoch=0), group_record(member, "m"), group_record(target)]
    records += [group_record(current, "m", state=member_state), group_record(_TOPOLOGY, epoch=0)]
    answer = Answer(log_of(tmp_path, *((record, None) for record in records)))  # type: ignore[misc]
    assert [row["state"] for row in answer.groups.values()] == [state]


@pytest.mark.parametrize(("count", "more"), [(1, ""), (3, ""), (4, " 1 other group was deleted before.")])
def test_deleted_groups_are_named_with_the_time(tmp_path: Path, count: int, more: str) -> None:
    records = [commit(f"g{number}", 0, offset) for number in range(count) for offset in (5, None)]
    answer = Answer(log_of(tmp_path, *((each, None) for each in records)))
    times = [iso_time(BASE_TIMESTAMP + 2 * number + 1) for number in range(count)]
    said = [f"Group g{number} was deleted at {times[number]}, 1 ms after its last commit." for number in range(count)]
    assert answer.sentences == f"{' '.join(said[::-1][:3])}{more}"
    assert [row["deleted_timestamp"] for row in answer.groups.values()] == [
        BASE_TIMESTAMP + 2 * number + 1 for number in range(count)
    ]


def test_a_deletion_is_told_apart_from_what_looks_like_it(tmp_path: Path) -> None:
    """A group that came back, one with an aborted commit, one without a commit, and one that may have expired."""
    came_back = [commit("a", 0, 5), commit("a", 0, None), commit("a", 0, 6)]
    answer = Answer(log_of(tmp_path / "1", *((each, None) for each in came_back), (commit("b", 0, 9), 1), ("ABORT", 1)))
    assert "deleted" not in answer.sentences
    assert {row["deleted_timestamp"] for row in answer.groups.values()} == {None}
    answer = Answer(log_of(tmp_path / "2", (commit("a", 0, 5), None), (commit("b", 0, None), None)))
    assert answer.sentences.endswith(f"Group b was deleted at {iso_time(BASE_TIMESTAMP + 1)}.")
    assert answer.next_command == ""
    key, value = commit("a", 0, 5)
    log = [batch(0, [value], key=key), batch(1, [None], key=key, timestamp=BASE_TIMESTAMP + 8 * DAY_MS)]
    write_segment(tmp_path / "3/__consumer_offsets-7", 0, log)
    answer = Answer(tmp_path / "3/__consumer_offsets-7")
    assert answer.sentences.endswith(", 8 days after its last commit: its offsets may have expired.")
    at = iso_time(BASE_TIMESTAMP + 8 * DAY_MS - 1)
    assert answer.next_command.endswith(f": kafkalog groups --group a --at {at} '/x y'")
