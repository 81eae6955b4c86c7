"""The state of producers and transactions after the batches fed."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import astuple

from format.files import producer_snapshot
from format.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from format.log.control_records import ControlRecord
from format.state.producers import (
    BatchPlace,
    MarkerOrphaned,
    NoEndMarker,
    ProducerEpochFell,
    ProducerEvent,
    ProducerState,
    SequenceBroke,
    Transaction,
    TransactionBegan,
    TransactionEnded,
    TransactionLeft,
    TransactionState,
)
from tests.format.state.tables import SIZE, row, table_of

ABORT, COMMIT = ControlRecord(0, 0, "ABORT", 7), ControlRecord(0, 1, "COMMIT", 7)
Rows = list[dict[str, int]]
Markers = dict[int, ControlRecord]


def a_log(rnd: random.Random) -> tuple[Rows, Markers]:
    """Batches of a few producers, some transactional, and end markers, some of which end nothing."""
    rows: Rows = []
    markers: Markers = {}
    for number in range(rnd.randrange(1, 80)):
        producer = rnd.randrange(-1, 4)
        fields = {"base_timestamp": 1000 + number, "max_timestamp": 1005 + number, "producer_epoch": rnd.randrange(3)}
        if rnd.random() < 0.3 and producer >= 0:
            rows.append(row(number * 10, producer, attributes=TRANSACTIONAL_BIT | CONTROL_BIT, **fields))
            if rnd.random() < 0.9:
                markers[number] = rnd.choice((ABORT, COMMIT))
        else:
            count = rnd.randrange(1, 10)
            fields |= {"record_count": count, "last_offset_delta": count - 1, "size_bytes": 61 + 10 * count}
            rows.append(row(number * 10, producer, attributes=rnd.choice((0, TRANSACTIONAL_BIT)), **fields))
    return rows, markers


def naive(rows: Rows, markers: Markers) -> tuple[list[tuple[object, ...]], dict[int, Transaction], int]:
    """What began and ended, what is open, and how many records there are, batch by batch."""
    seen: list[tuple[object, ...]] = []
    open_now: dict[int, Transaction] = {}
    left: set[int] = set()
    records = size = 0
    for number, each in enumerate(rows):
        producer, offset = each["producer_id"], each["base_offset"]
        if number in markers:
            ended = open_now.pop(producer, None)
            stable = min((one.first_offset for one in open_now.values()), default=offset + 1)
            is_aborted = markers[number] is ABORT
            seen.append(("end", offset, producer, is_aborted, None if ended is None else (astuple(ended), stable)))
            left.discard(producer)
        if each["attributes"] & CONTROL_BIT:
            continue
        if each["attributes"] and producer >= 0:
            known = open_now.get(producer)
            if known is None:
                known = Transaction(producer, 0, offset, each["position"], data_before=(records, size))
                known.start_timestamp = each["base_timestamp"]
                open_now[producer] = known
                seen.append(("begin", offset, producer))
            known.producer_epoch = each["producer_epoch"]
            known.last_offset = offset + each["last_offset_delta"]
            known.last_timestamp = each["max_timestamp"]
            known.record_count += each["record_count"]
            known.size_bytes += each["size_bytes"]
        elif producer in open_now and producer not in left:
            left.add(producer)
            seen.append(("left", offset, producer, open_now[producer].first_offset))
        records += each["record_count"]
        size += each["size_bytes"]
    return seen, open_now, records


def in_words(events: list[ProducerEvent]) -> list[tuple[object, ...]]:
    """The events as the naive loop writes them."""
    seen: list[tuple[object, ...]] = []
    for each in events:
        if isinstance(each, TransactionBegan):
            seen.append(("begin", each.first_offset, each.producer_id))
        elif isinstance(each, TransactionEnded):
            assert each.transaction is not None
            ended = (astuple(each.transaction), each.last_stable_offset)
            seen.append(("end", each.last_offset, each.producer_id, each.is_aborted, ended))
        elif isinstance(each, TransactionLeft):
            seen.append(("left", each.place.offset, each.producer_id, each.first_offset))
        elif isinstance(each, MarkerOrphaned):
            seen.append(("end", each.place.offset, each.producer_id, each.is_aborted, None))
    return seen


@pytest.mark.parametrize("seed", range(60))
def test_transactions_are_those_of_a_loop_over_batches(seed: int) -> None:
    rnd = random.Random(seed)
    rows, markers = a_log(rnd)
    expected, expected_open, records = naive(rows, markers)
    state = TransactionState()
    events: list[ProducerEvent] = []
    first = 0
    while first < len(rows):
        last = min(len(rows), first + rnd.choice((1, 5, 100)))
        part = {number - first: each for number, each in markers.items() if first <= number < last}
        events += state.feed(table_of(rows[first:last]), part)
        first = last
        assert state.first_open_offset() == min((each.first_offset for each in state.open.values()), default=None)
    assert in_words(events) == expected
    assert state.open == expected_open
    assert state.data_records == records


def test_a_control_record_of_a_producer_that_is_no_end_marker() -> None:
    rows = [row(10 * number, producer, attributes=CONTROL_BIT) for number, producer in enumerate((5, -1, 6))]
    other = ControlRecord(0, 2, "LEADER_CHANGE")
    events = TransactionState().feed(table_of(rows), {0: other, 1: other, 2: COMMIT})
    assert [(each.place.offset, each.control) for each in events if isinstance(each, NoEndMarker)] == [(0, other)]


def test_a_transaction_that_a_snapshot_holds_ends() -> None:
    state = TransactionState()
    state.add_open(Transaction(5, 1, 3))
    assert state.first_open_offset() == 3
    marker = row(40, 5, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
    (ended,) = state.feed(table_of([marker]), {0: COMMIT})
    assert isinstance(ended, TransactionEnded)
    assert (ended.first_offset, ended.last_stable_offset, state.first_open_offset()) == (3, 41, None)


@pytest.mark.parametrize(("position", "start_timestamp"), [(None, -1), (0, 7), (300, 7)])
def test_when_a_transaction_began_is_unknown_if_its_first_batch_was_not_read(
    position: int | None, start_timestamp: int
) -> None:
    state = TransactionState()
    state.add_open(Transaction(5, 1, 3, position))
    later = [row(20 + number, 5, attributes=TRANSACTIONAL_BIT, base_timestamp=7 + number) for number in range(2)]
    for each in later:
        assert state.feed(table_of([each]), {}) == []
    assert (state.open[5].start_timestamp, state.open[5].record_count, state.open[5].last_offset) == (
        start_timestamp,
        2,
        21,
    )


ABORT, COMMIT = ControlRecord(0, 0, "ABORT", 7), ControlRecord(0, 1, "COMMIT", 7)


def data(
    base_offset: int, producer_id: int, sequence: int, epoch: int = 0, *, transactional: bool = False
) -> dict[str, int]:
    attributes = TRANSACTIONAL_BIT if transactional else 0
    return row(base_offset, producer_id, base_sequence=sequence, producer_epoch=epoch, attributes=attributes)


def marker(base_offset: int, producer_id: int, epoch: int = 0) -> dict[str, int]:
    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    return row(base_offset, producer_id, base_sequence=-1, producer_epoch=epoch, attributes=attributes)


def place(offset: int) -> BatchPlace:
    return BatchPlace(offset * SIZE, SIZE, offset)


def test_a_transaction_begins_and_ends_around_another() -> None:
    rows = [
        data(0, 1, 0, transactional=True),
        data(1, 2, 0, transactional=True),
        data(2, 1, 1, transactional=True),
        marker(3, 2),
        marker(4, 1),
        marker(5, 9),
    ]
    state = ProducerState()
    events = state.feed(table_of(rows), {3: ABORT, 4: COMMIT, 5: ABORT})
    assert events == [
        TransactionBegan(place(0), 1, 0),
        TransactionBegan(place(1), 2, 0),
        TransactionEnded(place(3), 2, 0, 1, last_stable_offset=0, is_aborted=True, coordinator_epoch=7),
        TransactionEnded(place(4), 1, 0, 0, last_stable_offset=5, is_aborted=False, coordinator_epoch=7),
        MarkerOrphaned(place(5), 9, 0, is_aborted=True, coordinator_epoch=7),
    ]
    assert state.open_transactions == {}


@pytest.mark.parametrize(
    ("second", "event"),
    [
        (data(1, 1, 1), None),
        (data(1, 1, 3), SequenceBroke(place(1), 1, 0, 0, 0, 1, 3, is_gap=True)),
        (data(1, 1, 0), SequenceBroke(place(1), 1, 0, 0, 0, 1, 0, is_gap=False)),
        (data(1, 1, 0, epoch=1), None),
        (data(1, 1, 5, epoch=1), SequenceBroke(place(1), 1, 1, 0, -1, 0, 5, is_gap=True)),
        (data(1, 2, 5), None),
    ],
)
@pytest.mark.parametrize("is_cut", [False, True])
def test_sequences(second: dict[str, int], event: SequenceBroke | None, is_cut: bool) -> None:
    state, rows = ProducerState(), [data(0, 1, 0), second]
    tables = [table_of([each]) for each in rows] if is_cut else [table_of(rows)]
    events = [each for table in tables for each in state.feed(table, {})]
    assert events == ([] if event is None else [event])


def test_sequences_wrap_and_epochs_fall() -> None:
    state = ProducerState()
    assert state.feed(table_of([data(0, 1, 2**31 - 1, 3), data(1, 1, 0, 3)]), {}) == []
    events = state.feed(table_of([data(2, 1, 0, 2)]), {})
    assert events == [ProducerEpochFell(place(2), 1, 2, 3)]


def a_history(rnd: random.Random) -> tuple[list[dict[str, int]], dict[int, ControlRecord]]:
    rows: list[dict[str, int]] = []
    markers: dict[int, ControlRecord] = {}
    for offset in range(rnd.randrange(1, 60)):
        producer = rnd.randrange(4)
        epoch = rnd.randrange(2)
        if rnd.random() < 0.3:
            markers[offset] = rnd.choice((ABORT, COMMIT))
            rows.append(marker(offset, producer, epoch))
        else:
            sequence = rnd.choice((-1, offset, rnd.randrange(3)))
            rows.append(data(offset, producer - 1, sequence, epoch, transactional=rnd.random() < 0.5))
    return rows, markers


@pytest.mark.parametrize("seed", range(40))
def test_the_state_does_not_depend_on_where_tables_are_cut(seed: int) -> None:
    rnd = random.Random(seed)
    rows, markers = a_history(rnd)
    whole, cut = ProducerState(), ProducerState()
    expected = whole.feed(table_of(rows), markers)
    events: list[ProducerEvent] = []
    first = 0
    while first < len(rows):
        last = min(len(rows), first + rnd.randrange(1, 8))
        part = {number - first: each for number, each in markers.items() if first <= number < last}
        events += cut.feed(table_of(rows[first:last]), part)
        first = last
    assert cut == whole
    assert [each.tolist() for each in cut.snapshot_columns()] == [each.tolist() for each in whole.snapshot_columns()]
    assert events == expected


def test_a_state_goes_through_a_snapshot() -> None:
    rows = [data(0, 1, 5, 2, transactional=True), data(1, 3, 0), data(2, 4, 0, transactional=True), marker(3, 4)]
    state = ProducerState()
    state.feed(table_of(rows), {3: COMMIT})
    assert state.entries[1].current_txn_first_offset == 0
    assert state.entries[4].coordinator_epoch == 7
    snapshot = producer_snapshot.ProducerSnapshot("", state.snapshot_columns(), 0, ())
    known = ProducerState.of_snapshot(snapshot)  # of a transaction a snapshot holds the producer and the first offset
    assert (known.entries, known.open_transactions) == (state.entries, state.open_transactions)


def test_no_sequences_where_a_group_coordinator_writes() -> None:
    """The classic coordinator gives each batch of a transaction's offsets the sequence 0, and no broker minds."""
    rows = [data(0, 1, 0, transactional=True), data(1, 1, 0, transactional=True)]
    repeated = ProducerState.of_topic("orders").feed(table_of(rows), {})
    assert [type(event) for event in repeated] == [TransactionBegan, SequenceBroke]
    assert [type(event) for event in ProducerState.of_topic("__consumer_offsets").feed(table_of(rows), {})] == [
        TransactionBegan
    ]
