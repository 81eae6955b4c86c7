"""Counts and lists in sentences."""

from __future__ import annotations

import pytest

from format.wording import counted, listed


@pytest.mark.parametrize(("number", "expected"), [(0, "0 logs"), (1, "1 log"), (2, "2 logs"), (1200, "1,200 logs")])
def test_a_number_has_its_noun(number: int, expected: str) -> None:
    assert counted(number, "log") == expected


@pytest.mark.parametrize(
    ("words", "expected"), [(["a"], "a"), (["a", "b"], "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_words_are_listed(words: list[str], expected: str) -> None:
    assert listed(words) == expected
