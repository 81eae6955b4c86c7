"""Who can be elected, and what a majority holds, with all voters' logs and with some."""

from __future__ import annotations

import pytest

from format.state.quorum import can_lead, held_by_majority


@pytest.mark.parametrize(
    ("ends", "voters", "able"),
    [
        ({1: (1, 9), 2: (1, 8), 3: (1, 5)}, 3, {1: True, 2: True, 3: False}),
        ({1: (2, 5), 2: (1, 9), 3: (1, 9)}, 3, {1: True, 2: True, 3: True}),  # the epoch comes first
        ({1: (1, 9), 2: (1, 8)}, 3, {1: True, 2: None}),
        ({1: (1, 9)}, 3, {1: None}),
        ({1: (1, 9)}, 1, {1: True}),
        ({1: (1, 9), 2: (1, 8), 3: (1, 7)}, 5, {1: True, 2: None, 3: None}),
        ({1: (1, 9), 2: (1, 8), 3: (1, 7), 4: (1, 6)}, 5, {1: True, 2: True, 3: None, 4: False}),
    ],
)
def test_a_voter_votes_for_no_log_that_ends_before_its_own(
    ends: dict[int, tuple[int, int]], voters: int, able: dict[int, bool | None]
) -> None:
    assert can_lead(ends, voters) == able


@pytest.mark.parametrize(
    ("ends", "voters", "held"),
    [
        ([9, 8, 5], 3, (8, 8)),
        ([9, 8], 3, (8, 9)),
        ([9], 3, (0, 9)),
        ([9, 8, 7], 5, (7, 9)),
        ([9, 8], 5, (0, 9)),
        ([], 3, (0, 0)),
    ],
)
def test_what_a_majority_holds(ends: list[int], voters: int, held: tuple[int, int]) -> None:
    assert held_by_majority(ends, voters) == held
