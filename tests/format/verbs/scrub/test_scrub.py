"""scrub: what is due, what is found, what no broker can have changed, and a state that survives."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from format.errors import InputError, OutputError, Refused
from format.findings import Certainty, Finding
from format.node.target import targets_at
from format.timestamps import DAY_MS
from format.verbs.scrub.compare import Compared, compare
from format.verbs.scrub.scrub import ScrubPlan, ScrubTerms, plan_pass, scrub
from format.verbs.scrub.state import KnownFinding, State, reading_state, writing_state
from format.verbs.scrub.status import status_of
from tests.building import batch, batches, forbid_reading, write_segment

Pass = Callable[..., list[Finding]]


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A log directory with two partitions: one of three segments, and one of one."""
    node = tmp_path / "node"
    for base_offset in (0, 30, 60):
        write_segment(node / "orders-0", base_offset, batches(10, base_offset))
    write_segment(node / "payments-0", 0, batches(4))
    return node


@pytest.fixture
def state_path(tmp_path: Path) -> Path:
    return tmp_path / "scrub.db"


@pytest.fixture
def one_pass(node: Path, state_path: Path) -> Pass:
    """One pass over the node; ``days`` after now, with a period of one week."""

    def work(days: float = 0, period_days: float = 7, **terms: object) -> list[Finding]:
        clock = ScrubTerms().now_ms() + int(days * DAY_MS)
        with writing_state(str(state_path)) as state:
            given = ScrubTerms(int(period_days * DAY_MS), now_ms=lambda: clock, **terms)  # type: ignore[arg-type]
            plan = plan_pass(targets_at([node]), state, given)
            return list(scrub(plan, state, given))

    return work


def planned(node: Path, state_path: Path, days: float = 0) -> ScrubPlan:
    clock = ScrubTerms().now_ms() + int(days * DAY_MS)
    with writing_state(str(state_path)) as state:
        return plan_pass(targets_at([node]), state, ScrubTerms(7 * DAY_MS, now_ms=lambda: clock))


def due(plan: ScrubPlan) -> list[tuple[str, int]]:
    return [(each.replica.path.name, each.base_offset) for each in plan.due()]


def open_findings(state_path: Path) -> list[KnownFinding]:
    with reading_state(str(state_path)) as state:
        return state.findings()


def log_of(node: Path, base_offset: int) -> Path:
    return node / "orders-0" / f"{base_offset:020d}.log"


def rewritten(log: Path, content: bytes, state_path: Path | None = None) -> None:
    """Write into the same file, and give it the time that it had; with a state, as if the disk had changed it."""
    status = log.stat()
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(content)
    os.utime(log, ns=(status.st_atime_ns, status.st_mtime_ns))
    if state_path is not None:
        connection = sqlite3.connect(state_path)
        with connection:
            query = "UPDATE segments SET ctime_ns = ? WHERE inode = ?"
            connection.execute(query, (log.stat().st_ctime_ns, log.stat().st_ino))
        connection.close()


def test_everything_is_due_once_in_a_period(node: Path, state_path: Path, one_pass: Pass) -> None:
    assert due(planned(node, state_path)) == [
        ("orders-0", 0), ("orders-0", 30), ("orders-0", 60), ("payments-0", 0),
    ]  # fmt: skip
    assert one_pass() == []
    assert due(planned(node, state_path)) == []
    assert due(planned(node, state_path, days=6.9)) == []
    assert len(due(planned(node, state_path, days=7.1))) == 4
    assert len(due(planned(node, state_path, days=7.1))) == 4  # planning verifies nothing


def test_the_longest_unverified_is_first(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass()
    write_segment(node / "orders-0", 90, batches(10, 90))
    write_segment(node / "early-0", 0, batches(2))
    one_pass(days=2)
    write_segment(node / "late-0", 0, batches(2))
    assert due(planned(node, state_path, days=7.5)) == [
        ("late-0", 0), ("orders-0", 0), ("orders-0", 30), ("orders-0", 60), ("payments-0", 0),
    ]  # fmt: skip


def test_the_last_segment_may_grow_until_it_is_sealed(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass()
    write_segment(node / "orders-0", 60, batches(20, 60))
    assert due(planned(node, state_path)) == []
    write_segment(node / "orders-0", 120, batches(1, 120))
    assert due(planned(node, state_path)) == [("orders-0", 120), ("orders-0", 60)]
    assert one_pass() == []
    assert due(planned(node, state_path)) == []


def test_what_is_gone_is_forgotten(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass()
    log_of(node, 0).unlink()
    shutil.rmtree(node / "payments-0")
    one_pass()
    with reading_state(str(state_path)) as state:
        (only,) = state.partitions()
        assert only.topic == "orders"
        assert [each.base_offset for each in state.segments(only.id)] == [30, 60]


def test_a_replica_made_anew_is_due(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass()
    kept = (node / "payments-0").rename(node.parent / "aside")  # keeps its inode, so that another one is taken
    write_segment(node / "payments-0", 0, [batch(0, [b"other"]), *batches(3, 1)])
    assert due(planned(node, state_path)) == [("payments-0", 0)]
    assert one_pass() == []
    assert kept.exists()


def test_a_topic_made_again_in_a_directory_with_the_inode_of_before(
    node: Path, state_path: Path, one_pass: Pass
) -> None:
    for base_offset in (0, 30):
        write_segment(node / "orders-0", base_offset, batches(10, base_offset))
    metadata = node / "orders-0" / "partition.metadata"
    metadata.write_text(f"version: 0\ntopic_id: {'B' * 21}A\n")
    one_pass()
    metadata.write_text(f"version: 0\ntopic_id: {'C' * 21}A\n")
    rewritten(log_of(node, 30), b"".join([*batches(9, 30), batch(57, [b"other"] * 3)]))
    assert one_pass(period_days=0) == []
    with reading_state(str(state_path)) as state:
        assert [each.topic_id for each in state.partitions() if each.topic == "orders"] == [f"{'C' * 21}A"]


def test_a_topic_made_again_between_plan_and_reading(node: Path, state_path: Path, one_pass: Pass) -> None:
    metadata = node / "orders-0" / "partition.metadata"
    metadata.write_text(f"version: 0\ntopic_id: {'B' * 21}A\n")
    one_pass()

    def made_again() -> bool:
        metadata.write_text(f"version: 0\ntopic_id: {'C' * 21}A\n")
        rewritten(log_of(node, 30), b"".join([*batches(9, 30), batch(57, [b"other"] * 3)]))
        return False

    assert one_pass(period_days=0, ends=made_again) == []


def test_a_flipped_bit(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass()
    content = bytearray(log_of(node, 30).read_bytes())
    content[-20] ^= 1
    rewritten(log_of(node, 30), bytes(content))
    (found,) = one_pass(period_days=0)
    assert (found.code, found.location.path) == ("batch-crc-mismatch", str(log_of(node, 30)))
    (known,) = open_findings(state_path)
    assert (known.code, known.path, known.gone_ms) == ("batch-crc-mismatch", str(log_of(node, 30)), None)


def test_a_segment_that_cannot_be_opened(node: Path, state_path: Path, one_pass: Pass) -> None:
    """It is no sound one, and not forgotten as one that a broker deleted; it is due again when it changed."""
    with pytest.MonkeyPatch.context() as patch:
        forbid_reading(log_of(node, 30), patch)
        assert [each.code for each in one_pass()] == ["file-unreadable"]
    assert [each.finding.code for each in open_findings(state_path)] == ["file-unreadable"]
    assert due(planned(node, state_path)) == []
    log_of(node, 30).chmod(0o600)
    assert due(planned(node, state_path)) == [("orders-0", 30)]
    assert one_pass() == []
    assert open_findings(state_path) == []


def test_a_finding_is_open_until_the_segment_is_sound(node: Path, state_path: Path, one_pass: Pass) -> None:
    sound = log_of(node, 30).read_bytes()
    log_of(node, 30).write_bytes(sound[:-20] + b"\xff" + sound[-19:])
    assert [each.code for each in one_pass()] == ["batch-crc-mismatch"]
    first = open_findings(state_path)
    one_pass(days=8)
    (second,) = open_findings(state_path)
    assert (second.found_ms, second.seen_ms > first[0].seen_ms) == (first[0].found_ms, True)
    log_of(node, 30).unlink()
    log_of(node, 30).write_bytes(sound)
    assert due(planned(node, state_path)) == [("orders-0", 30)]  # damaged before, and another file now
    assert one_pass() == []
    assert open_findings(state_path) == []
    with reading_state(str(state_path)) as state:
        assert [each.gone_ms is None for each in state.findings(with_gone=True)] == [False]


@pytest.mark.parametrize("by_the_disk", [True, False])
def test_other_batches_with_right_crcs(node: Path, state_path: Path, one_pass: Pass, by_the_disk: bool) -> None:
    (node / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {'B' * 21}A\n")
    one_pass()
    sound = log_of(node, 30).read_bytes()
    other = b"".join([*batches(4, 30), batch(42, [b"value-0", b"value-1", b"VALUE-2"]), *batches(5, 45)])
    assert len(other) == len(sound)
    rewritten(log_of(node, 30), other, state_path if by_the_disk else None)
    (found,) = one_pass(period_days=0)
    assert found.code == "segment-changed"
    assert found.certainty is (Certainty.PROVEN if by_the_disk else Certainty.LIKELY)
    assert [each.code for each in one_pass(period_days=0)] == ["segment-changed"]  # it stays
    rewritten(log_of(node, 30), sound)
    assert one_pass(period_days=0) == []


def test_a_batch_that_is_gone(node: Path, one_pass: Pass) -> None:
    one_pass()
    rewritten(log_of(node, 30), log_of(node, 30).read_bytes()[: -len(batches(1, 57)[0])])
    assert [each.code for each in one_pass(period_days=0)] == ["segment-changed"]


def test_swapped_segments(node: Path, one_pass: Pass) -> None:
    one_pass()
    first, second = log_of(node, 0), log_of(node, 30)
    first.rename(node / "aside")
    second.rename(first)
    (node / "aside").rename(second)
    assert {each.location.base_offset for each in one_pass(period_days=0)} == {0, 30}


def test_compaction_explains_another_file(node: Path, one_pass: Pass) -> None:
    one_pass()
    (node / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 60\n")
    kept = batches(10, 0)[::2]
    aside = write_segment(node.parent / "cleaned", 0, kept)
    aside.replace(log_of(node, 0))
    assert one_pass(period_days=0) == []


def test_compaction_writes_no_file_that_is_as_it_was(node: Path, state_path: Path, one_pass: Pass) -> None:
    (node / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 60\n")
    one_pass()
    other = b"".join([*batches(9, 0), batch(27, [b"value-0", b"value-1", b"VALUE-2"])])
    rewritten(log_of(node, 0), other)  # the cleaner's file may have the inode, the size and the time of the one before
    assert one_pass(period_days=0) == []
    rewritten(log_of(node, 0), b"".join(batches(10, 0)), state_path)
    assert [each.code for each in one_pass(period_days=0)] == ["segment-changed"]


def test_truncation_and_a_later_leader_explain_other_batches(node: Path, one_pass: Pass) -> None:
    one_pass()
    log_of(node, 60).unlink()
    written = [batch(45 + 3 * number, [b"value-9"] * 3, leader_epoch=7) for number in range(5)]
    rewritten(log_of(node, 30), b"".join([*batches(5, 30), *written]))
    write_segment(node / "orders-0", 60, [batch(60, leader_epoch=7)])
    assert one_pass(period_days=0) == []


def test_truncation_alone_explains_a_shorter_log(node: Path, one_pass: Pass) -> None:
    one_pass()
    log_of(node, 60).unlink()
    rewritten(log_of(node, 30), b"".join(batches(5, 30)))
    assert one_pass(period_days=0) == []
    write_segment(node / "orders-0", 45, batches(5, 45))
    assert one_pass(period_days=0) == []


def test_a_pass_that_is_stopped_goes_on_where_it_was(node: Path, state_path: Path, one_pass: Pass) -> None:
    answers: Iterator[bool] = iter([False, False, True])
    one_pass(ends=lambda: next(answers))
    assert due(planned(node, state_path)) == [("orders-0", 60), ("payments-0", 0)]
    with reading_state(str(state_path)) as state:
        last = state.last_pass()
        assert last is not None
        assert (last.segment_count, last.is_complete) == (2, False)
    one_pass()
    with reading_state(str(state_path)) as state:
        assert state.totals()[0] == 4  # none twice


def test_only_one_process_writes_a_state(state_path: Path) -> None:
    with writing_state(str(state_path)), pytest.raises(Refused), writing_state(str(state_path)):
        pass
    with writing_state(str(state_path)):
        pass


def test_foreign_files_are_no_state(tmp_path: Path) -> None:
    text, foreign = tmp_path / "text", tmp_path / "foreign"
    text.write_text("not a database at all, but long enough to be one" * 40)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE other (id)")
    connection.close()
    for path in (text, foreign):
        content = path.read_bytes()
        with pytest.raises(InputError), writing_state(str(path)):
            pass
        with pytest.raises(InputError), reading_state(str(path)):
            pass
        assert path.read_bytes() == content
    with pytest.raises(InputError), reading_state(str(tmp_path / "absent")):
        pass


def test_the_rate_follows_from_the_period(node: Path, state_path: Path) -> None:
    plan = planned(node, state_path)
    plan.size_bytes = 10_000_000_000_000
    assert plan.rate(21 * DAY_MS) == pytest.approx(10_000_000_000_000 / (21 * 86_400 * 0.8), rel=0.01)
    assert plan.rate(DAY_MS) == plan.rate(0) == 100 * 1024 * 1024
    plan.size_bytes = 0
    assert plan.rate(21 * DAY_MS) == 1024 * 1024


def test_status_counts_what_is_overdue(node: Path, state_path: Path, one_pass: Pass) -> None:
    one_pass(days=-3)
    write_segment(node / "late-0", 0, batches(2))
    one_pass(ends=lambda: True)
    with reading_state(str(state_path)) as state:
        status = status_of(state, 7 * DAY_MS)
        assert (status.overdue_count, status.directories[0].segment_count) == (1, 5)
        assert status_of(state, 2 * DAY_MS).overdue_count == 5


# -- two nodes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def compared(tmp_path: Path) -> Callable[[Path, Path], Compared]:
    def work(*nodes: Path) -> Compared:
        states = []
        for number, node in enumerate(nodes):
            path = str(tmp_path / f"compared-{number}.db")
            with writing_state(path) as state:
                terms = ScrubTerms(0)
                assert list(scrub(plan_pass(targets_at([node]), state, terms), state, terms)) == []
            states.append(path)
        with reading_state(states[0]) as first, reading_state(states[1]) as second:
            return compare(first, second)

    return work


def test_replicas_that_rolled_elsewhere_are_equal(
    node: Path, tmp_path: Path, compared: Callable[[Path, Path], Compared]
) -> None:
    other = tmp_path / "other"
    for first, last in ((0, 5), (5, 17), (17, 30)):
        write_segment(other / "orders-0", 3 * first, batches(last - first, 3 * first))
    write_segment(other / "payments-0", 0, batches(4))
    result = compared(node, other)
    assert (result.differences, result.partition_count, result.apart) == ([], 2, {})


def test_the_range_of_a_batch_that_differs(
    node: Path, tmp_path: Path, compared: Callable[[Path, Path], Compared]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(node, other)
    log_of(other, 30).write_bytes(
        b"".join([*batches(4, 30), batch(42, [b"value-0", b"value-1", b"VALUE-2"]), *batches(5, 45)])
    )
    (found,) = compared(node, other).differences
    assert (found.topic, found.partition) == ("orders", 0)
    assert found.first_offset <= 42 <= 44 <= found.last_offset < 90
    assert (found.path_1, found.path_2) == (str(log_of(node, 30)), str(log_of(other, 30)))


def test_only_what_both_hold_is_compared(
    node: Path, tmp_path: Path, compared: Callable[[Path, Path], Compared]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(node, other)
    log_of(other, 0).unlink()  # retention
    write_segment(other / "orders-0", 60, batches(25, 60))  # ahead of the other one
    result = compared(node, other)
    assert result.differences == []
    assert result.partition_count == 2


def test_compacted_logs_and_other_topics_are_not_compared(
    node: Path, tmp_path: Path, compared: Callable[[Path, Path], Compared]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(node, other)
    (other / "cleaner-offset-checkpoint").write_text("0\n1\npayments 0 12\n")
    for place, topic_id in ((node, "B" * 21 + "A"), (other, "C" * 21 + "A")):
        (place / "orders-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    result = compared(node, other)
    assert result.partition_count == 0
    assert set(result.apart) == {"orders-0", "payments-0"}


def test_two_clusters_are_not_compared(node: Path, tmp_path: Path, compared: Callable[[Path, Path], Compared]) -> None:
    """The topic id of the metadata log is the same in every cluster."""
    other = tmp_path / "other"
    shutil.copytree(node, other)
    write_segment(other / "payments-0", 0, batches(5))
    for place, cluster_id in ((node, "one"), (other, "two")):
        (place / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id}\n")
    result = compared(node, other)
    assert (result.partition_count, set(result.apart.values())) == (0, {"the cluster ids differ"})


def test_a_state_that_another_process_writes_can_be_read(state_path: Path, one_pass: Pass) -> None:
    one_pass()
    with writing_state(str(state_path)) as writer, reading_state(str(state_path)) as reader:
        assert isinstance(writer, State)
        assert len(reader.partitions()) == 2


def test_a_full_disk_is_not_a_wrong_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("format.verbs.scrub.state._prepare", full)
    wrong = pytest.raises(OutputError, match="cannot use the state: database or disk is full")
    with wrong, writing_state(str(tmp_path / "scrub.db")):
        pass
