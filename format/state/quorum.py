"""The votes of a metadata quorum: who can be elected, and what a majority holds, from the ends of the voters' logs.

A voter votes for no candidate whose log ends before its own: the last leader epoch counts, then the end offset
(KIP-595). Some voters may not be at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: The leader epoch of the last batch, and the end offset; in this order they compare as the voters do.
LogEnd = tuple[int, int]


def majority_of(voter_count: int) -> int:
    """How many voters elect a leader."""
    return voter_count // 2 + 1


def can_lead(ends: Mapping[int, LogEnd], voter_count: int) -> dict[int, bool | None]:
    """By node id, whether a voter can be elected; None where that depends on voters that are not at hand."""
    majority, absent = majority_of(voter_count), voter_count - len(ends)
    found: dict[int, bool | None] = {}
    for node_id, end in ends.items():
        votes = sum(end >= other for other in ends.values())
        found[node_id] = True if votes >= majority else None if votes + absent >= majority else False
    return found


def held_by_majority(ends: Sequence[int], voter_count: int) -> tuple[int, int]:
    """The offset before which a majority certainly has all records, and before which it may have them.

    ``ends`` has, of each voter at hand, the offset before which its records are those of the longest log.
    """
    ordered, majority = sorted(ends, reverse=True), majority_of(voter_count)
    absent = voter_count - len(ordered)
    certain = ordered[majority - 1] if len(ordered) >= majority else 0
    possible = ordered[max(majority - absent, 1) - 1] if ordered else 0
    return certain, possible
