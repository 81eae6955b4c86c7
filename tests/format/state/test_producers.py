"""Producers: the events of hand-made batches, and a state that does not depend on where tables are cut."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from format.files import producer_snapshot
from format.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from format.log.control_records import ControlRecord
from format.state.producers import (
    BatchPlace,
    MarkerOrphaned,
    ProducerEpochFell,
    ProducerEvent,
    ProducerState,
    SequenceBroke,
    TransactionBegan,
    TransactionEnded,
)
from tests.format.state.tables import SIZE, row, table_of

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
    columns = state.snapshot_columns()
    names = ("producer_ids", "producer_epochs", "last_sequences", "last_offsets", "offset_deltas")
    names += ("timestamps", "coordinator_epochs", "current_txn_first_offsets")
    blank = producer_snapshot.ProducerSnapshot("", 1, 0, True, 0, *columns, 0, 0, ())
    snapshot = replace(blank, **dict(zip(names, columns, strict=True)))
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
