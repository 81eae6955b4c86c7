"""The bytes that a regular expression requires: every text that matches holds them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.verbs.grep.pattern import Requirement, regex_pattern
from tests.format.verbs.grep.searches import (
    PIECES,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("order-4711", ["order-4711"]),
        ("^order-[0-9]+$", ["order-5", "5"]),
        ("ab?cde", ["cde", "a"]),
        ("ab+", ["ab", "b"]),
        ("abc*", ["ab"]),
        ("abc{0,3}de", ["ab", "de"]),
        ("ab{3}c", ["abbbc"]),
        ("ab{2,}c", ["abb", "bbc"]),
        ("a{2,3}?b", ["aab", "aa"]),
        ('{"id": 7', ['{"id": 7']),
        ("a{}", ["a{}"]),
        ("(abc)+de", ["abcde", "abc"]),
        ("a|b", ["a"]),
        ("foo|ba[rz]", ["foo|bar"]),
        ("foo|ba*", ["foo|b"]),
        ("foo|b*", []),
        ("(foo|bar)[0-9]", ["foo|bar", "5"]),
        ("(foo|bar)?z", ["z"]),
        ("x(1|2)y", ["x1y"]),
        ("(?:x|)abc", ["abc"]),
        ("(?P<n>x|y)abc", ["xabc"]),
        ("(?i)abc", ["abc"]),
        ("(?i:abc)d", ["abcd"]),
        ("(?x)a b", ["ab"]),
        ("(?#x)ab", ["ab"]),
        (r"(a)\1b", ["a", "b"]),
        (r"(a)?(?(1)b|c)", []),
        (r"(?L)\wabc", []),
        (r"(?:(?!x)a|b)c", ["c", "a|b"]),
        (r"\.abc", [".abc"]),
        (r"\d+abc\bd", ["5abcd", "5"]),
        (r"\x41bc", ["Abc"]),
        (r"a\nb", ["a\nb"]),
        ("a.b", ["a", "b"]),
        ("[|]ab", ["|ab"]),
        ("[]|]ab", ["]ab"]),
        (r"[^\s\S]ab", []),
        (r"\d{4}-\d\d", ["5555-55"]),
        (r"\d\w\d{3}x", ["555x"]),
        ("a(?=b)c", ["ac"]),
        ("a(?!b)c(?<=c)d", ["acd"]),
        ("é*ab", ["ab"]),
        ("éa", ["éa"]),
        ("a" * 10, ["a" * 10]),
        ("a{1000}b", ["a" * 16 + "b", "a" * 16]),
    ],
)
def test_what_a_regular_expression_requires(source: str, held: list[str]) -> None:
    """What lies in every match, what says most first: text, with 5 for any digit, or one of several."""
    assert [_shown(needles) for needles in regex_pattern(source).required] == held


def _shown(needles: Requirement) -> str:
    """The characters that a needle stands for, where that is more than one the lowest; 5 for digits."""
    return "|".join(
        bytes(53 if needle.table.count(code) == 10 else needle.table.index(code) for code in needle.text).decode()
        if needle.table and needle.table != bytes(range(256)).lower()
        else needle.text.decode()
        for needle in needles
    )


SOURCES = st.recursive(
    PIECES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join),
        inner.map("({})".format),
        inner.map("(?:{})+".format),
        inner.map("(?:{}){{2}}".format),
        inner.map("(?>{})?".format),
        inner.map("(?i){}".format),
        inner.map("(?s:{})".format),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=1000)
@given(SOURCES, st.booleans(), st.lists(st.text("abABéÉ.\n{}", max_size=12).map(str.encode), min_size=1, max_size=20))
def test_what_matches_holds_what_is_required(source: str, ignore_case: bool, fields: list[bytes]) -> None:
    """Of every requirement a match holds one needle."""
    try:
        pattern = regex_pattern(source, ignore_case=ignore_case)
    except ValueError:
        return
    assert pattern.verifier is not None
    for match in filter(None, map(pattern.verifier.search, fields)):
        for needles in pattern.required:
            assert any(
                needle.text in (match[0].translate(needle.table) if needle.table else match[0]) for needle in needles
            ), (needles, match)
