"""Which part of a log the cleaner may clean, and why not, on made-up segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from format.state.cluster_context import ClusterContext, ContextTerms
from format.verbs.compaction.cleaning import KeyMap
from format.verbs.compaction.compaction import (
    Cleanable,
    CleanerLimits,
    CleanerLog,
    CleanerSegment,
    Compaction,
    CompactionTerms,
    cleanable,
)

NOW = 1_000_000
SEGMENTS = [CleanerSegment(at * 10, 100, NOW - 1000 + at * 100, NOW - 1000 + at * 100) for at in range(5)]


def judged(limits: dict[str, Any] | None = None, **log: Any) -> Cleanable:
    given = {"min_dirty_ratio": 0.5, "min_compaction_lag_ms": 0, "max_compaction_lag_ms": 2**63 - 1} | (limits or {})
    facts = {
        "checkpoint": 20, "log_start_offset": 0, "log_end_offset": 50, "last_stable_offset": 50, "high_watermark": 50,
    }  # fmt: skip
    return cleanable(SEGMENTS, CleanerLog(**{**facts, **log}), CleanerLimits(**given), NOW)


def test_the_active_segment_ends_the_range() -> None:
    found = judged()
    assert (found.clean_bytes, found.dirty_bytes, found.uncleanable_bytes) == (200, 200, 100)
    assert (found.first_dirty_offset, found.first_uncleanable_offset, found.bound_by) == (20, 40, "active_segment")
    assert found.dirty_ratio == 0.5
    assert found.blocked_by == "dirty_ratio"  # it must be above the limit, not at it
    assert judged({"min_dirty_ratio": 0.49}).blocked_by is None


def test_an_open_transaction_ends_the_range_at_its_segment() -> None:
    found = judged(last_stable_offset=35)
    assert (found.first_uncleanable_offset, found.dirty_bytes, found.bound_by) == (30, 100, "last_stable_offset")
    found = judged(last_stable_offset=25)
    assert (found.dirty_bytes, found.blocked_by) == (0, "last_stable_offset")
    assert judged(last_stable_offset=15, high_watermark=15).blocked_by == "high_watermark"


def test_a_young_segment_ends_the_range() -> None:
    found = judged({"min_compaction_lag_ms": 750})
    assert (found.first_uncleanable_offset, found.bound_by) == (30, "min_compaction_lag")


def test_an_old_dirty_segment_overrides_the_ratio() -> None:
    assert judged({"max_compaction_lag_ms": 100}).blocked_by is None
    assert judged({"max_compaction_lag_ms": 900}).blocked_by == "dirty_ratio"


@pytest.mark.parametrize("checkpoint", [None, 51, 3])
def test_a_checkpoint_outside_the_log_counts_for_nothing(checkpoint: int | None) -> None:
    found = judged(checkpoint=checkpoint, log_start_offset=10)
    assert found.first_dirty_offset == 10
    assert found.blocked_by is None
    assert judged(is_compacted=False).blocked_by == "cleanup_policy"


@pytest.mark.slow
def test_a_key_map_against_a_dictionary() -> None:
    draw = np.random.default_rng(1)
    key_map, expected, at = KeyMap(), {}, 0
    for _ in range(30):
        keys = draw.integers(-(2**63), 2**63 - 1, 20_000) // 2**50 * 2**50 + draw.integers(0, 200)
        offsets = np.arange(at, at + len(keys))
        at += len(keys)
        key_map.add(keys, offsets)
        expected |= dict(zip(keys.tolist(), offsets.tolist(), strict=True))
    assert len(key_map) == len(expected)
    known = np.array(list(expected), np.int64)
    assert key_map.offsets_of(known).tolist() == list(expected.values())
    assert key_map.offsets_of(np.array([1, 2**62 + 12345], np.int64)).tolist() == [-1, -1]


def said(**counts: Any) -> str:
    return Compaction(ClusterContext(ContextTerms()), CompactionTerms(NOW), **counts).sentence()


def test_the_sentence_counts_what_is_cleaned_and_why_the_rest_is_not() -> None:
    assert said(logs=2, ready_count=2, freed_bytes=7) == "The cleaner would clean 2 of 2 logs now, and free 7 bytes."
    words = "; not cleaned: 1 log with nothing to clean before the active segment, 2 logs bound by an open transaction."
    waits = {"last_stable_offset": 2, "active_segment": 1}
    assert said(logs=3, blocked=waits) == f"The cleaner would clean none of 3 logs now{words}"
    assert said(logs=4, ready_count=1, freed_bytes=1, blocked=waits) == (
        f"The cleaner would clean 1 of 4 logs now, and free 1 byte{words}"
    )
    assert said() == "No log here is compacted."


def test_every_reason_has_words() -> None:
    reasons = ("active_segment", "cleanup_policy", "damaged_batch", "dirty_ratio", "high_watermark",
               "last_stable_offset", "min_compaction_lag")  # fmt: skip
    words = said(logs=len(reasons), blocked=dict.fromkeys(reasons, 1))
    assert words.count("1 log ") == len(reasons)
    assert not any(f"log {reason}" in words for reason in reasons)
