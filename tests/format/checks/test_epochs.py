"""Leader epochs along hand-made batches."""

from __future__ import annotations

import pytest

from format.checks.batches import EpochFell, LeaderEpochs
from tests.format.state.tables import row, table_of


@pytest.mark.parametrize("is_cut", [False, True])
def test_epochs_rise_and_fall(is_cut: bool) -> None:
    epochs = [-1, 0, 2, 2, 1, -1, 2, 3]
    rows = [row(number, -1, leader_epoch=each) for number, each in enumerate(epochs)]
    state = LeaderEpochs()
    if is_cut:
        events = [(number, each) for number, row_ in enumerate(rows) for each in state.feed(table_of([row_]))]
        assert [(number, each.leader_epoch, each.previous_epoch) for number, each in events] == [(4, 1, 2), (5, -1, 1)]
    else:
        assert state.feed(table_of(rows)) == [EpochFell(4, 1, 2), EpochFell(5, -1, 1)]
    assert state.last == 3


def test_old_formats_have_no_epoch() -> None:
    state = LeaderEpochs()
    assert state.feed(table_of([row(0, -1, leader_epoch=4), row(1, -1, magic=1, leader_epoch=0)])) == []


@pytest.mark.parametrize("is_cut", [False, True])
def test_one_epoch_that_is_too_high_is_one_event(is_cut: bool) -> None:
    rows = [row(number, -1, leader_epoch=each) for number, each in enumerate([0, 7, 0, 0, -1, -1, 0, 5, 4])]
    state = LeaderEpochs()
    tables = [[each] for each in rows] if is_cut else [rows]
    events = [each for table in tables for each in state.feed(table_of(table))]
    assert [(each.leader_epoch, each.previous_epoch) for each in events] == [(0, 7), (-1, 0), (4, 5)]
    assert state.last == 4
