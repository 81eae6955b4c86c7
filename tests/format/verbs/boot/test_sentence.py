"""The answer of boot in one sentence: what is counted, and in which number."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.verbs.boot.sentence import sentence
from format.verbs.boot.steps import Action, BootResult, BootTerms, Step


@pytest.mark.parametrize(
    ("count", "words"), [(1, "is bad."), (2, "is bad. 1 more refusal follows."), (3, "is bad. 2 more refusals follow.")]
)
def test_further_refusals_are_counted(count: int, words: str) -> None:
    step = Step(Action.REFUSE, Path("/logs/meta.properties"), broker_message="it is bad")
    assert sentence(BootResult(steps=[step] * count), BootTerms()).endswith(words)


def test_one_byte_is_truncated() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/orders-0/00000000000000000000.log"), "orders", 0, bytes=1)
    assert (
        sentence(BootResult(steps=[step]), BootTerms()) == "A 4.4 broker would start: it truncates 1 byte of orders-0."
    )


def test_bytes_that_stay_after_the_last_batch_are_named() -> None:
    """A broker appends after them, so consumers fail there."""
    step = Step(Action.KEEP, Path("/logs/orders-0"), "orders", 0, position=100, bytes=71)
    words = "A 4.4 broker would start: it appends after 71 unreadable bytes at the end of orders-0."
    assert sentence(BootResult(steps=[step]), BootTerms()) == words


def test_a_future_replica_that_is_cut_is_named_loudly() -> None:
    step = Step(Action.TRUNCATE, Path("/logs/orders-0.0123-future"), "orders", 0, offset=0)
    words = "it then cuts the future replica of orders-0 to the empty log (copy it before)."
    assert sentence(BootResult(steps=[step]), BootTerms()).endswith(words)


def test_what_was_lost_before_is_not_lost_by_the_start() -> None:
    step = Step(Action.KEEP, Path("/logs/orders-0"), "orders", 0, lost_offsets=(3, 4))
    words = "it goes on without 2 offsets below the high watermark (orders-0 3 to 4)."
    assert sentence(BootResult(steps=[step]), BootTerms()).endswith(words)
