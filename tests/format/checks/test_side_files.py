"""Side files that do not match the batches."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.checks.side_files import (
    LeaderEpochCheck,
    LogAround,
    SegmentTransactions,
    TimeIndexCheck,
    check_producer_snapshot,
    check_transaction_index,
)
from format.files import offset_index, producer_snapshot, time_index, transaction_index
from format.findings import Finding, Severity
from format.layout import TRANSACTION_INDEX_SUFFIX
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.offsets import PartitionOffsets
from format.node.partition import Segment
from format.state.producers import ProducerState
from format.timestamps import iso_time
from format.verbs.verify.verify import verify
from tests.building import batch, batches, wrapper, write_segment
from tests.format.state.tables import row, table_of
from tests.format.state.test_producers import ABORT, COMMIT, data, marker
from tests.sources import BytesSource, read_batch_table

BATCH = len(batches(1)[0])


def index_findings(tmp_path: Path, entries: list[tuple[int, int]], damaged: int | None = 2) -> list[Finding]:
    """The findings of verify for six batches of three records, one of them damaged, and an index of these entries."""
    content = batches(6)
    if damaged is not None:
        content[damaged] = content[damaged][:70] + b"\xff" + content[damaged][71:]
    path = write_segment(tmp_path / "orders-0", 0, content)
    offsets, positions = zip(*entries, strict=True)
    path.with_suffix(".index").write_bytes(offset_index.write((list(offsets), list(positions))))
    return [each for each in verify(tmp_path / "orders-0") if each.location.path.endswith(".index")]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ((8, 2 * BATCH), None),  # the damaged batch
        ((11, 3 * BATCH), None),
        ((14, 2 * BATCH + 5), None),  # in the midst of the damaged batch
        ((11, 3 * BATCH + 5), "where no batch starts"),
        ((9, 4 * BATCH), "would miss records"),
        ((13, 3 * BATCH), None),  # starts or ends no batch that is intact
    ],
)
def test_an_entry_past_damage_is_held_against_intact_batches(
    tmp_path: Path, entry: tuple[int, int], words: str | None
) -> None:
    found = index_findings(tmp_path, [entry])
    assert [words in each.message for each in found if words is not None] == ([] if words is None else [True])
    assert bool(found) == (words is not None)


def test_an_entry_of_an_append_that_ends_in_damage_is_not_called_imprecise(tmp_path: Path) -> None:
    assert index_findings(tmp_path, [(8, BATCH)]) == []
    assert [each.code for each in index_findings(tmp_path, [(7, BATCH)], damaged=None)] == ["offset-index-imprecise"]


def test_entries_that_damage_moved_are_one_finding_with_its_cause(tmp_path: Path) -> None:
    entries = [(number * 3 + 2, number * BATCH + 7) for number in range(3, 6)]
    (found,) = index_findings(tmp_path, entries)
    assert found.message.startswith("entries 0 to 2 point to positions")
    assert found.caused_by is not None
    assert found.caused_by.code == "batch-crc-mismatch"


@pytest.mark.parametrize(
    ("entries", "padding", "severity"),
    [
        ([(2, 0), (5, BATCH), (20, 4 * BATCH + 7)], 80, Severity.WARNING),
        ([(2, 0), (8, 2 * BATCH), (5, BATCH + 7)], 80, Severity.WARNING),  # not above the one before
        ([(2, 0), (20, 4 * BATCH)], 80, Severity.WARNING),  # where a batch starts by chance
        ([(2, 0), (5, BATCH), (20, 4 * BATCH + 7)], 0, Severity.ERROR),  # cut to what is in use
        ([(2, 0), (5, BATCH + 7), (8, 2 * BATCH)], 80, Severity.ERROR),  # a right entry follows
        ([(2, 0), (5, BATCH + 7), (6, 2 * BATCH)], 80, Severity.ERROR),  # of the first offset of its batch
    ],
)
def test_entries_that_a_truncation_leaves_in_a_preallocated_index(
    tmp_path: Path, entries: list[tuple[int, int]], padding: int, severity: Severity
) -> None:
    """4.3.1 left them in the active segment of a follower whose leader had been elected uncleanly."""
    path = write_segment(tmp_path / "orders-0", 0, batches(6))
    offsets, positions = zip(*entries, strict=True)
    path.with_suffix(".index").write_bytes(offset_index.write((list(offsets), list(positions))) + bytes(padding))
    found = [each for each in verify(tmp_path / "orders-0") if each.location.path.endswith(".index")]
    assert {each.severity for each in found} == {severity}
    assert all(("truncates the log" in each.message) == (severity is Severity.WARNING) for each in found)


def test_an_entry_that_cannot_be_is_reported_once(tmp_path: Path) -> None:
    assert [each.code for each in index_findings(tmp_path, [(2, 0), (-5, -7)], damaged=None)] == ["index-invalid"]


def test_a_last_entry_past_the_end_hides_the_active_segment(tmp_path: Path) -> None:
    (found,) = index_findings(tmp_path, [(2**20, 0)], damaged=None)
    assert (found.code, found.severity) == ("offset-index-mismatch", Severity.ERROR)
    assert "serves nothing of this segment" in found.message


APPENDED = 1_700_000_000_000


@pytest.mark.parametrize(
    ("magic", "code"), [(0, "time-index-imprecise"), (1, "time-index-mismatch"), (2, "time-index-mismatch")]
)
@pytest.mark.parametrize("is_cut", [False, True])
def test_times_that_the_messages_lack(tmp_path: Path, magic: int, code: str, is_cut: bool) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([APPENDED], [1])))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path)))
    rows = [row(0, -1, magic=magic, max_timestamp=-1), row(1, -1, magic=1, max_timestamp=-1), row(2, -1, magic=1)]
    for each in [[part] for part in rows] if is_cut else [rows]:
        check.feed(table_of(each))
    assert [each.code for each in check.findings(None, is_closed=True)] == [code]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ((APPENDED + 9, 12), None),  # a damaged batch may have that time
        ((APPENDED, 12), "time-index-mismatch"),  # the intact one of offset 12 has a later one
        ((APPENDED + 5, 11), None),  # the damaged batch
    ],
)
def test_past_damage_an_intact_batch_with_a_later_time_shows_an_entry_to_be_wrong(
    tmp_path: Path, entry: tuple[int, int], code: str | None
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([entry[0]], [entry[1]])))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path)))
    check.feed(table_of([row(10, -1, max_timestamp=APPENDED), row(12, -1, max_timestamp=APPENDED + 5)]))
    found = list(check.findings(10, is_closed=False))
    assert [each.code for each in found] == ([] if code is None else [code])
    assert all(each.message.endswith(f"it is {iso_time(APPENDED + 5)} or larger") for each in found)


@pytest.mark.parametrize(
    ("entry", "codes"), [((APPENDED, 11), ["time-index-mismatch"]), ((-1, 11), []), ((-1, 10), [])]
)
def test_an_entry_in_no_batch_and_one_that_no_broker_writes(
    tmp_path: Path, entry: tuple[int, int], codes: list[str]
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([entry[0]], [entry[1]])))
    index = time_index.read(path, 0)
    assert bool(index.problems) == (entry[0] < 0)  # reported once, by the reader of the file
    check = TimeIndexCheck(index, Location(str(path)))
    check.feed(table_of([row(10, -1, max_timestamp=APPENDED), row(12, -1, max_timestamp=APPENDED)]))
    assert [each.code for each in check.findings(None, is_closed=False)] == codes


@pytest.mark.parametrize(
    ("stopped_cleanly", "topic", "codes"),
    [
        (True, "orders", ["time-index-mismatch"]),
        (True, "__cluster_metadata", []),  # not in 4.4.0
        (False, "orders", []),
        (None, "orders", []),
    ],
)
def test_a_clean_stop_completes_the_time_index_of_the_last_segment(
    tmp_path: Path, stopped_cleanly: bool | None, topic: str, codes: list[str]
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(([APPENDED], [0])))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path), topic, 0))
    check.feed(table_of([row(0, -1, max_timestamp=APPENDED), row(1, -1, max_timestamp=APPENDED + 5)]))
    offsets = PartitionOffsets(is_clean_shutdown=stopped_cleanly)
    assert [each.code for each in check.findings(None, is_closed=False, offsets=offsets)] == codes


@pytest.mark.parametrize(
    ("entries", "words"), [(([APPENDED], [0]), "skip the segment"), (([], []), "later times may not be found")]
)
def test_what_a_broker_answers_by_a_time_index_that_ends_early(
    tmp_path: Path, entries: tuple[list[int], list[int]], words: str
) -> None:
    path = tmp_path / f"{0:020d}.timeindex"
    path.write_bytes(time_index.write(entries))
    check = TimeIndexCheck(time_index.read(path, 0), Location(str(path)))
    check.feed(table_of([row(0, -1, max_timestamp=APPENDED), row(1, -1, max_timestamp=APPENDED + 5)]))
    (found,) = check.findings(None, is_closed=True)
    assert words in found.message
    assert " -1," not in found.message


Entry = tuple[int, int, int, int]


def codes(
    tmp_path: Path, entries: list[Entry], rows: list[dict[str, int]], first_offset: int = 0, *, is_whole: bool = True
) -> list[str]:
    """The findings for a segment with these batches, markers all ABORT, whose index has these entries."""
    path = tmp_path / f"{0:020d}{TRANSACTION_INDEX_SUFFIX}"
    columns = [list(each) for each in zip(*entries, strict=True)]
    path.write_bytes(transaction_index.write((columns[0], columns[1], columns[2], columns[3])))
    transactions = SegmentTransactions()
    markers = {number: ABORT for number, each in enumerate(rows) if each["base_sequence"] == -1}
    transactions.add(ProducerState().feed(table_of(rows), markers))
    transactions.cover(table_of(rows))
    segment = Segment(tmp_path, 0, None, {TRANSACTION_INDEX_SUFFIX: path})
    found = check_transaction_index(
        segment,
        transactions,
        Location("orders-0/0.log", "orders", 0),
        LogAround(first_offset, is_compacted=False, is_whole=is_whole),
        DEFAULT_LIMITS,
    )
    return [each.code for each in found]


def written(base_offset: int, producer_id: int) -> dict[str, int]:
    return data(base_offset, producer_id, 0, transactional=True)


#: Producer 1 from 10 to its marker at 12; producer 2 begins at 20, producer 1 again at 15.
ROWS = [written(10, 1), marker(12, 1), written(15, 1), written(20, 2), written(25, 3)]


@pytest.mark.parametrize("stable", [13, 20])  # 20: the follower fetched the marker and producer 2's batch at once
def test_last_stable_offsets_of_leader_and_follower(tmp_path: Path, stable: int) -> None:
    assert codes(tmp_path, [(1, 10, 12, stable)], ROWS) == []


@pytest.mark.parametrize("stable", [12, 14, 15, 21, 25, 99])
def test_last_stable_offsets_of_nobody(tmp_path: Path, stable: int) -> None:
    assert codes(tmp_path, [(1, 10, 12, stable)], ROWS) == ["transaction-index-mismatch"]


def test_an_open_transaction_holds_it_back_on_a_follower_too(tmp_path: Path) -> None:
    rows = [written(8, 4), *ROWS]
    assert codes(tmp_path, [(1, 10, 12, 8)], rows) == []
    assert codes(tmp_path, [(1, 10, 12, 20)], rows) == ["transaction-index-mismatch"]


def test_a_transaction_that_began_in_the_head_that_is_gone(tmp_path: Path) -> None:
    assert codes(tmp_path, [(1, 4, 12, 13)], ROWS, first_offset=10) == []
    assert codes(tmp_path, [(1, 4, 12, 13)], ROWS, first_offset=3) == ["transaction-index-mismatch"]


def test_a_transaction_that_was_open_in_the_head_that_is_gone(tmp_path: Path) -> None:
    assert codes(tmp_path, [(1, 10, 12, 0)], ROWS, first_offset=10) == []
    assert codes(tmp_path, [(1, 10, 12, 0)], ROWS, first_offset=0) == ["transaction-index-mismatch"]


@pytest.mark.parametrize(
    ("entry", "rows", "is_right"),
    [
        ((1, 5, 12, 13), ROWS, True),  # its first batch may be among what damage took
        ((1, 11, 12, 13), ROWS, False),  # it began before that
        ((1, 10, 12, 7), ROWS, True),  # another one may have been open
        ((1, 10, 12, 13), ROWS[1:], True),  # the marker is there, its transaction is not
        ((1, 10, 12, 13), [ROWS[0], *ROWS[2:]], True),  # the marker is not there
        ((1, 10, 16, 17), ROWS, True),  # nothing is there
        ((9, 14, 15, 16), ROWS, False),  # an intact batch is there, and it is no marker
    ],
)
def test_beside_damage_only_what_intact_batches_contradict_is_wrong(
    tmp_path: Path, entry: Entry, rows: list[dict[str, int]], is_right: bool
) -> None:
    entries = [entry] if (entry[0], entry[2]) == (1, 12) else [(1, 10, 12, 13), entry]
    assert codes(tmp_path, entries, rows, is_whole=False) == ([] if is_right else ["transaction-index-mismatch"])


@pytest.mark.parametrize(
    ("entries", "first_offset", "actual"),
    [("1\n8 3", 0, [3]), ("0", 0, [None]), ("1\n8 3", 3, []), ("1\n8 3", None, []), ("1\n8 0", 0, [])],
)
def test_a_checkpoint_that_begins_after_the_log(
    tmp_path: Path, entries: str, first_offset: int | None, actual: list[int | None]
) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text(f"0\n{entries}\n")
    check = LeaderEpochCheck(path, Location(str(path)), DEFAULT_LIMITS, first_offset=first_offset)
    found: list[Finding] = []
    for number in range(3):
        table = read_batch_table(BytesSource(batch(3 * number, leader_epoch=8)))
        found += check.feed(table, Location("x"))
    found += check.end_findings(9)
    assert [each.actual for each in found] == actual
    assert {each.severity for each in found} <= {Severity.INFO}  # brokers leave it on replicas that were fetched anew


def test_a_checkpoint_that_an_older_format_has_emptied(tmp_path: Path) -> None:
    path = tmp_path / "leader-epoch-checkpoint"
    path.write_text("0\n1\n8 6\n")
    check = LeaderEpochCheck(path, Location(str(path)), DEFAULT_LIMITS, first_offset=0)
    for content in (batch(0, leader_epoch=8), wrapper(1, 3), batch(6, leader_epoch=8)):
        assert not [*check.feed(read_batch_table(BytesSource(content)), Location("x"))]
    assert not [*check.end_findings(9)]


#: Producer 1 has a batch and a marker in the log, of producer 2 only the marker is left.
ROWS_OF_TEST_PRODUCER_SNAPSHOTS = [data(10, 1, 4, transactional=True), marker(11, 1), marker(12, 2)]
WHOLE = {1: (0, 4, 10, 0, 11, 7, -1), 2: (0, 9, 6, 2, 12, 7, -1)}


def messages(
    tmp_path: Path,
    entries: dict[int, tuple[int, ...]],
    first_offset: int = 10,
    rows: list[dict[str, int]] = ROWS_OF_TEST_PRODUCER_SNAPSHOTS,
    *,
    is_compacted: bool = False,
) -> list[str]:
    path = tmp_path / f"{13:020d}.snapshot"
    columns = tuple(map(list, zip(*((key, *values) for key, values in entries.items()), strict=True)))
    path.write_bytes(producer_snapshot.write(columns))
    state = ProducerState()
    state.feed(table_of(rows), dict.fromkeys(range(len(rows) - 2, len(rows)), COMMIT))
    found = check_producer_snapshot(
        path,
        13,
        state,
        Location(str(path)),
        first_offset=first_offset,
        is_compacted=is_compacted,
        limits=DEFAULT_LIMITS,
    )
    return [each.message for each in found]


def test_what_went_with_the_head_cannot_be_compared(tmp_path: Path) -> None:
    assert messages(tmp_path, WHOLE) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((4, 0, 12, 0, 11, 7, -1), []),  # aborted batches of later epochs were removed
        ((2, 4, 10, 0, 11, 9, -1), []),  # and the content of a marker of a later coordinator
        ((1, 4, 10, 0, 11, 7, -1), ["producer 1 has producer_epoch 1 in the snapshot, but 2 in the log"]),
        ((2, 4, 10, 0, 11, 6, -1), ["producer 1 has coordinator_epoch 6 in the snapshot, but 7 in the log"]),
    ],
)
def test_in_a_compacted_log_only_a_lower_epoch_contradicts_it(
    tmp_path: Path, values: tuple[int, ...], expected: list[str]
) -> None:
    rows = [data(10, 1, 4, 2, transactional=True), marker(11, 1, 2)]
    assert messages(tmp_path, {1: values}, rows=rows, is_compacted=True) == expected
    assert messages(tmp_path, {1: values}, rows=rows) != []


def test_a_producer_that_expired_and_came_back(tmp_path: Path) -> None:
    assert messages(tmp_path, WHOLE | {1: (0, 4, 10, 0, 11, -1, -1)}) == []


def test_an_open_transaction_below_the_log_start_that_old_releases_forgot(tmp_path: Path) -> None:
    rows = [data(9, 3, 0, transactional=True), *ROWS_OF_TEST_PRODUCER_SNAPSHOTS]
    assert messages(tmp_path, WHOLE, 10, rows) == []
    (message,) = messages(tmp_path, WHOLE, 9, rows)
    assert message == "producer 3 has an open transaction in the log and is not in the snapshot"


@pytest.mark.parametrize(
    "values",
    [
        (0, 4, 11, 0, 11, 7, -1),  # 0.11: the marker as a batch of one record
        (0, 4, 10, 0, 10, 7, -1),  # 1.0 to 2.4: the timestamp of the last data batch
    ],
)
def test_what_old_releases_wrote_after_a_marker(tmp_path: Path, values: tuple[int, ...]) -> None:
    assert messages(tmp_path, WHOLE | {1: values}) == []


@pytest.mark.parametrize(
    ("producer_id", "values", "name"),
    [
        (1, (1, 4, 10, 0, 11, 7, -1), "producer_epoch"),
        (1, (0, 5, 10, 0, 11, 7, -1), "last_sequence"),
        (1, (0, 4, 10, 0, 11, 6, -1), "coordinator_epoch"),
        (2, (0, 9, 10, 2, 12, 7, -1), "last_offset"),  # within the log, where no batch of it lies
        (2, (0, 9, 6, 2, 13, 7, -1), "timestamp"),
        (1, (0, 4, 11, 1, 11, 7, -1), "last_offset"),
    ],
)
def test_what_contradicts_the_log(tmp_path: Path, producer_id: int, values: tuple[int, ...], name: str) -> None:
    found = messages(tmp_path, WHOLE | {producer_id: values})
    assert any(f"has {name}" in each for each in found)


def test_a_snapshot_over_the_limit_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / f"{13:020d}.snapshot"
    path.write_bytes(bytes(100))
    found = check_producer_snapshot(
        path, 13, ProducerState(), Location(str(path)),
        first_offset=10, is_compacted=False, limits=Limits(max_side_file_bytes=99),
    )  # fmt: skip
    assert [each.code for each in found] == ["limit-exceeded"]
