"""Templates whose conditions need a cluster, a full disk or a running broker: both sides of each, without the files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from format.findings import Finding, Judgement, Severity, finding
from format.io import live_broker
from format.io.live_broker import BrokerLock
from format.limits import DEFAULT_LIMITS
from format.location import Location
from format.node.target import Target
from format.state.cluster_context import ClusterContext, ContextTerms, read_context
from format.state.cluster_image import ClusterImage, PartitionState
from format.state.metadata_log import MetadataState
from format.verbs.doctor import diagnose as diagnosing
from format.verbs.doctor.diagnose import conclude, diagnose
from format.verbs.doctor.diagnosis import TEMPLATES
from format.verbs.doctor.evidence import Evidence, place_of
from format.verbs.ls.partition_listing import PartitionListing
from format.verbs.report.terms import Report
from tests.building import batch, write_segment
from tests.format.verbs.diff.building_replicas import ModelReplica, plain
from tests.format.verbs.doctor.looking import DAY_MS, NOW_MS, codes, looked_at, node
from tests.metadata_logs import topic_id_of, write_metadata_log, write_node, write_voters

ID = "AAAAAAAAAAAAAAAAAAAAbw"
LOG = "/k/orders-0/00000000000000000000.log"


def evidence(**values: Any) -> Evidence:
    return Evidence((), NOW_MS, DEFAULT_LIMITS, **values)


def of_findings(*found: Finding) -> list[tuple[str, Severity]]:
    made = evidence()
    for each in found:
        made.take(each)
    return [(each.code, each.severity) for each in diagnose(made)]


def of_cluster(state: PartitionState, **brokers: dict[str, Any]) -> list[str]:
    """The codes for one partition; the brokers by name and number, such as n1."""
    image = ClusterImage(names={ID: "orders"}, partitions={(ID, 0): state})
    image.brokers = {
        int(name[1:]): {"fenced": False, "inControlledShutdown": False} | each for name, each in brokers.items()
    }
    context = ClusterContext(ContextTerms(), MetadataState(path=Path("/k/__cluster_metadata-0"), image=image))
    return [each.code for each in diagnose(evidence(context=context))]


@pytest.mark.parametrize(
    ("node_id", "registered", "expected"),
    [
        (2, {1: "here"}, ["directory-foreign"]),
        (2, {1: "here", 2: "elsewhere"}, ["directory-foreign"]),
        (1, {1: "here"}, ["directory-stray"]),
        (2, {1: "here", 2: "here"}, ["directory-stray"]),  # the disk went to another node
        (2, {1: "elsewhere"}, ["directory-stray"]),
    ],
)
def test_a_wrong_node_id_is_the_cause_of_what_does_not_belong_there(
    tmp_path: Path, node_id: int, registered: dict[int, str], expected: list[str]
) -> None:
    """4.3.1 did not start as node 1, and as node 2 renamed the logs of node 1 to -stray."""
    write_node(tmp_path, node_id, directory="here")
    write_segment(tmp_path / "orders-0", 0, [batch(0)])
    image = ClusterImage(brokers={key: {"logDirs": [topic_id_of(name)]} for key, name in registered.items()})
    context = ClusterContext(ContextTerms(), MetadataState(path=Path("/k/__cluster_metadata-0"), image=image))
    made = Evidence((Target(tmp_path),), NOW_MS, DEFAULT_LIMITS, context)
    made.take(finding("replica-stray", Location(str(tmp_path / "orders-0"), "orders", 0), "is of node 1"))
    found = [each for each in diagnose(made) if each.code.startswith("directory-")]
    assert [each.code for each in found] == expected
    assert (found[0].evidence_path == str(tmp_path / "meta.properties")) == (expected == ["directory-foreign"])


def test_every_template_is_tested() -> None:
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    assert [code for code in TEMPLATES if f'"{code}"' not in texts] == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("boot-refused", "start-refused"),
        ("boot-unserved", "not-served"),
        ("replica-missing", "replica-missing"),
        ("replica-stray", "directory-stray"),
        ("metadata-incomplete", "metadata-damaged"),
        ("topic-id-conflict", "directory-foreign"),
        ("checkpoint-invalid", "file-damaged"),
        ("quorum-leader-unknown", "suspicious"),
        ("sequence-gap", "sequences-wrong"),
        ("sequence-duplicate", "sequences-wrong"),
    ],
)
def test_findings(code: str, expected: str) -> None:
    """A finding is a diagnosis unless it is a mere fact or has another cause."""
    where = Location("/k/orders-0", "orders", 0)
    found = finding(code, where, "words")
    assert of_findings(found) == [(expected, found.severity)]
    assert of_findings(finding(code, where, "words", judgement=Judgement(severity=Severity.INFO))) == []


def test_who_wrote_a_sequence_twice_is_shown() -> None:
    where = Location(LOG, "orders", 0, offset=9)
    for code, expected in (
        ("sequence-duplicate", "kafkalog producers --duplicates --topic orders /k/orders-0"),
        ("sequence-gap", "kafkalog verify /k/orders-0"),
    ):
        made = evidence()
        made.take(finding(code, where, "words"))
        assert [each.command for each in diagnose(made)] == [expected]


@pytest.mark.parametrize("code", ["unclean-shutdown", "index-preallocated", "unflushed-segment", "segment-leftover"])
def test_facts_are_no_diagnoses(code: str) -> None:
    assert of_findings(finding(code, Location(LOG, "orders", 0), "words")) == []


def test_what_a_broker_mends_is_no_diagnosis() -> None:
    """It rebuilds all indexes of a segment without .index, and makes an empty .timeindex where only that is missing."""
    both = [
        finding("index-missing", Location(LOG, "orders", 0), f"the segment has no {name}")
        for name in (".index", ".timeindex")
    ]
    aborted = finding("transaction-index-mismatch", Location(LOG, "orders", 0, offset=9), "and no .txnindex")
    wrong = finding("time-index-mismatch", Location(LOG.replace(".log", ".timeindex"), "orders", 0), "words")
    assert of_findings(*both, aborted, wrong) == []
    assert of_findings(both[1]) == [("index-wrong", Severity.WARNING)]
    assert of_findings(aborted) == of_findings(wrong) == [("index-wrong", Severity.ERROR)]


def test_a_directory_that_lost_its_files_is_not_only_stray() -> None:
    place = Location("/k/orders-0", "orders", 0)
    empty = finding("replica-stray", place, "no topic id", judgement=Judgement(severity=Severity.WARNING))
    missing = finding("replica-missing", place, "its log is missing", lost_offsets=(0, 9))
    lost = finding("checkpoint-mismatch", place, "all of it is lost", lost_offsets=(0, 9))
    assert of_findings(empty, missing, lost) == [("replica-missing", Severity.ERROR)]
    assert of_findings(empty, lost) == [("directory-stray", Severity.WARNING)]  # the metadata has no such partition
    assert of_findings(finding("replica-stray", place, "other id"), missing) == [("directory-stray", Severity.ERROR)]


def test_what_was_not_read_is_said_to_be_not_known() -> None:
    made = evidence()
    made.take(finding("file-unreadable", Location("s3://bucket/orders-0/0.log"), "cannot open"))
    made.take(finding("codec-unknown", Location(LOG), "compression type 5 is unknown"))
    assert diagnose(made) == []
    assert {
        "1 path not read: kafkalog verify names the reason",
        "1 place in a format that this program does not know",
    } <= {*made.not_known()}


def test_paths_that_cannot_be_read() -> None:
    """A broker gets an I/O error, too; it may have the permissions that this process lacks."""
    denied, other = (
        finding("file-unreadable", Location(path, "orders", 0), "cannot open: Permission denied")
        for path in (f"{LOG}.index", f"{LOG}.timeindex")
    )
    broken = finding("file-unreadable", Location(LOG, "orders", 0), "read failed: Input/output error")
    linked = finding("file-unreadable", Location(LOG), "is a link", judgement=Judgement(next_step="Pass the path."))
    assert of_findings(denied) == [("paths-unreadable", Severity.WARNING)]
    assert of_findings(denied, broken) == [("paths-unreadable", Severity.ERROR)]
    assert of_findings(linked) == []
    made = evidence()
    for each in (denied, broken, denied, other):  # two verbs find one of them
        made.take(each)
    (found,) = diagnose(made)
    assert found.sentence == (
        "3 paths cannot be read (read failed: Input/output error). A broker that gets this error stops using the log "
        "directory."
    )
    assert not any("cannot be read" in words for words in made.not_known())


def test_no_leader() -> None:
    """Said only while a broker with a replica runs: after a stop of all no partition has a leader."""
    state = PartitionState((1, 2), isr=(1,), leader=-1)
    assert of_cluster(state, n1={"fenced": True}, n2={}) == ["no-leader"]
    assert of_cluster(state, n1={"fenced": True}, n2={"fenced": True}) == []
    assert of_cluster(PartitionState((1, 2), isr=(1,), leader=1), n1={}, n2={"fenced": True}) == []


@pytest.mark.parametrize(
    ("directory", "expected"),
    [
        ("gone", ["no-leader"]),
        ("AAAAAAAAAAAAAAAAAAAAAQ", ["no-leader"]),  # lost
        ("here", []),  # an election is under way
        ("AAAAAAAAAAAAAAAAAAAAAA", []),
        ("AAAAAAAAAAAAAAAAAAAAAg", []),
    ],
)
def test_no_leader_as_a_log_directory_is_offline(directory: str, expected: list[str]) -> None:
    state = PartitionState((1,), isr=(1,), leader=-1, directories=(directory,))
    assert of_cluster(state, n1={"logDirs": ["here", "other"]}) == expected
    assert of_cluster(state, n1={"logDirs": ["here"], "fenced": True}) == []
    if directory == "gone":
        assert of_cluster(state, n1={"logDirs": []}) == []  # before 3.7 no directory is known


def test_replicas_out_of_sync() -> None:
    """Said only of replicas whose broker runs: that of a stopped broker is out of sync of course."""
    state = PartitionState((1, 2), isr=(1,), leader=1)
    assert of_cluster(state, n1={}, n2={}) == ["replicas-out-of-sync"]
    assert of_cluster(state, n1={}, n2={"fenced": True}) == []
    assert of_cluster(state, n1={}, n2={"inControlledShutdown": True}) == []
    assert of_cluster(PartitionState((1, 2), isr=(1, 2), leader=1), n1={}, n2={}) == []


@pytest.mark.parametrize(("free", "expected"), [(1, ["disk-full"]), (10, [])])
def test_disk_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, expected: list[str]) -> None:
    made = node(tmp_path / "node-1", {"orders-0": {0: [batch(0)]}})
    size = (made / "orders-0" / f"{0:020}.log").stat().st_size
    os.truncate(made / "orders-0" / f"{0:020}.index", 800 * size)  # preallocated: it takes no room
    full = SimpleNamespace(f_fsid=1, f_flag=0, f_frsize=1, f_blocks=100 * size, f_bavail=free * size)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert codes(made) == []  # the logs are a hundredth of it, and no broker runs
    full.f_blocks, full.f_bavail = 10 * size, free * size // 10
    assert codes(made) == expected


@pytest.mark.parametrize(("minutes", "expected"), [(60, ["cleaner-behind"]), (1, [])])
def test_cleaner_behind(tmp_path: Path, minutes: int, expected: list[str]) -> None:
    """A log of __consumer_offsets whose closed segments wait, by the timestamps and by the times of the files."""
    segments = {3 * number: [batch(3 * number, key=b"k%d" % number)] for number in range(5)}
    segments[15] = [batch(15, timestamp=batch_time(15) + minutes * 60_000)]
    made = node(tmp_path / "node-1", {"compacted-0": segments})
    (made / "cleaner-offset-checkpoint").write_text("0\n1\ncompacted 0 0\n")
    assert codes(made) == []  # all files are of one time, as in a copy
    for log in (made / "compacted-0").glob("*.log"):
        os.utime(log, (0, 1000 if log.name.startswith("00000000000000000015") else 1000 - minutes * 60))
    assert codes(made) == expected


def batch_time(offset: int) -> int:
    from tests.building import BASE_TIMESTAMP

    return BASE_TIMESTAMP + offset


@pytest.mark.parametrize(("commits_per_hour", "expected"), [(7_201, ["group-commits"]), (7_199, [])])
def test_group_commits(commits_per_hour: int, expected: list[str]) -> None:
    made = evidence()
    made.groups = [
        {
            "group": "poller", "total_lag": 0, "last_commit_timestamp": 1, "committed_partitions": 2,
            "member_count": 0, "commits_per_hour": commits_per_hour, "size_bytes": 10 * 2**20, "commit_count": 9,
            "coordinator_partition": 7,
        }
    ]  # fmt: skip
    assert [each.code for each in diagnose(made)] == expected


@pytest.mark.parametrize("blocked_by", ["damaged_batch", "dirty_ratio"])
def test_cleaner_stopped(blocked_by: str) -> None:
    from format.verbs.compaction.compaction import Cleanable

    partition = SimpleNamespace(path=Path("/k/compacted-0"), topic="compacted", number=0)
    range_ = Cleanable(5, 9, 0, 100, 0, "active_segment", blocked_by)
    made = evidence()
    made.cleaners = [SimpleNamespace(partition=partition, range=range_, blocked_by=blocked_by)]
    found = [(each.code, each.evidence_offset) for each in diagnose(made)]
    assert found == ([("cleaner-stopped", 5)] if blocked_by == "damaged_batch" else [])


@pytest.mark.parametrize(("blocked_by", "is_said"), [("dirty_ratio", True), ("damaged_batch", False)])
def test_the_cleaner_hides_a_wrong_crc(blocked_by: str, is_said: bool) -> None:
    """As 4.3.1 did: consumers failed on a batch before it was cleaned, and then read the damaged value."""
    place = Location("/k/compacted-0/0.log", "compacted", 0, offset=3)
    made = evidence(findings=[finding("batch-crc-mismatch", place, "wrong", lost_offsets=(3, 5))])
    partition = SimpleNamespace(path=Path("/k/compacted-0"), topic="compacted", number=0)
    range_ = SimpleNamespace(first_dirty_offset=0, dirty_bytes=0, clean_bytes=9)
    made.cleaners = [SimpleNamespace(partition=partition, range=range_, blocked_by=blocked_by)]
    [sentence] = [each.sentence for each in diagnose(made) if each.code == "records-damaged"]
    assert ("what it keeps of a damaged batch gets a right one" in sentence) == is_said


def test_of_running_brokers_the_ends_of_replicas_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ModelReplica(plain(5), 15).write(tmp_path / "node-1")
    ModelReplica(plain(7), 21).write(tmp_path / "node-2")
    assert codes(tmp_path / "node-1", tmp_path / "node-2") == ["replica-behind"]
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), True))
    monkeypatch.setattr(live_broker, "_PATIENCE_S", 0.1)
    made = looked_at(tmp_path / "node-1", tmp_path / "node-2")
    assert made.diagnoses == []
    assert "what the running broker has not written yet" in made.not_known


@pytest.mark.parametrize(("is_held", "expected"), [(True, []), (False, ["retention-held"])])
def test_a_running_broker_writes_on(
    is_held: bool, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it writes while the doctor looks, however long that takes, has no timestamp in the future."""
    monkeypatch.setattr(live_broker, "probe", lambda path: BrokerLock(str(path), is_held))
    monkeypatch.setattr(live_broker, "_PATIENCE_S", 0.1)
    log = {0: [batch(0, timestamp=NOW_MS + 2 * DAY_MS)], 3: [batch(3)]}
    made = node(tmp_path / "node-1", {"orders-0": log}, marks={"orders-0": 6})
    assert codes(made) == codes(made, deep=True) == expected


LOST, STOPPED, RUNS = (
    {"fenced": is_fenced, "inControlledShutdown": is_stopping}
    for is_fenced, is_stopping in ((True, False), (True, True), (False, False))
)
WIN = "Of its voters 1, 2 and 3, node 2 is not here; nodes 1 and 3 are a majority, and"


@pytest.mark.parametrize(
    ("lengths", "brokers", "words"),
    [
        (
            {1: 9, 3: 4},
            {1: RUNS, 2: RUNS, 3: LOST},
            f"{WIN} only node 1 can lead: node 3 lacks offsets 4 to 8. Node 3 was",
        ),
        (
            {1: 9, 3: 8},
            {1: RUNS, 2: RUNS, 3: LOST},
            f"{WIN} only node 1 can lead: node 3 lacks offset 8. Node 3 was fenced",
        ),
        ({1: 9, 3: 9}, {1: RUNS, 2: LOST, 3: RUNS}, f"{WIN} each of them can lead. Node 2 was fenced"),
        ({1: 9, 3: 9}, {1: RUNS, 2: RUNS, 3: LOST}, ""),
        ({1: 9, 3: 4}, {1: RUNS, 2: STOPPED, 3: STOPPED}, ""),
        ({1: 9, 3: 4}, {1: RUNS, 2: RUNS, 3: RUNS}, ""),
        ({1: 9, 3: 4}, {1: STOPPED, 2: STOPPED, 3: LOST}, ""),
        ({1: 9, 3: 4}, {}, ""),
        ({1: 9}, {1: RUNS, 2: LOST, 3: LOST}, ""),
        ({1: 9, 2: 4, 3: 4}, {1: RUNS, 2: LOST, 3: LOST}, ""),
    ],
)
def test_a_voter_that_is_absent(
    lengths: dict[int, int], brokers: dict[int, dict[str, Any]], words: str, tmp_path: Path
) -> None:
    """Said only where the metadata proves that one was lost: that a node was not given says nothing."""
    targets = [Target(tmp_path / f"node-{number}") for number in lengths]
    for number, length in lengths.items():
        log = write_metadata_log(write_node(tmp_path / f"node-{number}", number), extra_topics=length - 2)
        write_voters(log, (1, 2, 3))
    context = read_context(targets, ContextTerms())
    assert context.image is not None
    context.image.brokers = brokers
    made = Evidence(targets, NOW_MS, context=context)
    made.partitions = [
        PartitionListing(f"{each.path}/__cluster_metadata-0", "__cluster_metadata", 0, None) for each in targets
    ]
    report = Report(NOW_MS, [])
    conclude(report, made)
    found = [each for each in report.diagnoses if each.code == "voter-absent"]
    is_open = set(lengths) == {1, 3} and lengths[3] == 4 and not words
    open_words = "whether node 3, which lacks offsets 4 to 8 of the metadata log, can lead without node 2"
    assert (open_words in report.not_known) == is_open
    assert not (is_open and report.finds_nothing_wrong)
    assert [(each.severity, each.sentence[: len(words)]) for each in found] == [(Severity.WARNING, words)] * bool(words)


def test_the_most_urgent_comes_first() -> None:
    names = {"sequence-gap": "0.log", "checkpoint-invalid": "leader-epoch-checkpoint", "boot-refused": "x.snapshot"}
    mixed = [finding(code, Location(f"/k/orders-0/{name}", "orders", 0), "words") for code, name in names.items()]
    assert [code for code, _ in of_findings(*mixed)] == ["start-refused", "file-damaged", "sequences-wrong"]


def test_conditions_are_sentences() -> None:
    for each in TEMPLATES.values():
        assert re.fullmatch(r"[A-Z].*\.", each.condition), each
        assert each.severity >= Severity.WARNING
    assert set(diagnosing._TEMPLATE_OF.values()) <= TEMPLATES.keys()


def test_a_directory_around_a_log_directory_is_no_partition() -> None:
    """As kafka-1/data, of which the next command has to be about kafka-1/data."""
    assert place_of(finding("boot-unserved", Location("kafka-1/data"), "closed")) == "kafka-1/data"
    assert place_of(finding("boot-unserved", Location("data/orders-1/0.log", "orders", 1), "closed")) == "data/orders-1"
