"""Patterns: anchors, case, characters past ASCII, and agreement with Python's own search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from format.log.record_table import RecordTable
from format.verbs.grep.pattern import Requirement, bytes_pattern, regex_pattern, text_pattern
from format.verbs.grep.record_search import EVERYWHERE, Places, search
from tests.building import batch
from tests.format.verbs.grep.searches import IN_VALUE, PIECES, Fields, log_of, naive_offsets, offsets_of, tables_of

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


def test_anchors_are_the_ends_of_a_field(tmp_path: Path) -> None:
    path = log_of(tmp_path, batch(0, [b"user-1", b"a user-1", b"user-1 b", b"user-1\n", b"x\nuser-1"], key=b"user"))
    for source, expected in (
        ("^user-1$", [0, 3]),  # Python's $ also stands before a last newline
        (r"\Auser-1\Z", [0]),
        ("^user-1", [0, 2, 3]),
        ("user-1$", [0, 1, 3, 4]),
        ("(?m)^user-1$", [0, 3, 4]),
        (r"\buser-1\b", [0, 1, 2, 3, 4]),
        (r"(?<!.)user-1", [0, 2, 3, 4]),
        (r"(?<![\s\S])user-1(?![\s\S])", [0]),
    ):
        assert offsets_of(path, regex_pattern(source), IN_VALUE) == expected, source
    assert offsets_of(path, regex_pattern("^user$")) == [0, 1, 2, 3, 4]


def test_case(tmp_path: Path) -> None:
    values = ["Straße", "STRASSE", "ΣΟΦΟΣ", "σοφος", "σοφός", "Привет", "ПРИВЕТ", "İi"]
    path = log_of(tmp_path, batch(0, [each.encode() for each in values]))

    def found(text: str) -> list[int]:
        return offsets_of(path, text_pattern(text, ignore_case=True), IN_VALUE)

    assert found("STRA") == [0, 1]
    assert found("straße") == [0]
    assert found("σοφοσ") == [2]
    assert found("σοφος") == [2, 3]
    assert found("пРИВЕт") == [5, 6]
    assert found("I") == [7]
    assert offsets_of(path, text_pattern("привет"), IN_VALUE) == []
    assert offsets_of(path, regex_pattern("^привет+$", ignore_case=True), IN_VALUE) == [5, 6]
    assert offsets_of(path, regex_pattern("^.*SS", ignore_case=True), IN_VALUE) == [1]


def test_characters_past_ascii_are_whole(tmp_path: Path) -> None:
    path = log_of(tmp_path, batch(0, [each.encode() for each in ("é", "éé", "e", "è", "")], key=None))
    assert offsets_of(path, regex_pattern("^é+$")) == [0, 1]
    assert offsets_of(path, regex_pattern("^é?$")) == [0, 4]
    assert offsets_of(path, regex_pattern("^é{2}$")) == [1]
    assert offsets_of(path, regex_pattern("^(é|è)$")) == [0, 3]
    assert offsets_of(path, regex_pattern(r"^\é$")) == [0]
    with pytest.raises(ValueError, match="single bytes"):
        regex_pattern("[éè]")


@pytest.mark.parametrize(
    "source", ["(", "[", "a**", r"\u00e9", "(?P<n", "é(", "(?u)a", "a{99999999999999999999}", "(" * 9999]
)
def test_what_is_no_regular_expression(source: str) -> None:
    with pytest.raises(ValueError):
        regex_pattern(source)


FIELD = st.one_of(st.none(), st.text("abAé.\n{}", max_size=6).map(str.encode), st.binary(max_size=4))

RECORDS = st.lists(
    st.tuples(FIELD, FIELD, st.lists(st.tuples(st.text("abé", max_size=2).map(str.encode), FIELD), max_size=2)),
    min_size=1,
    max_size=6,
)

PLACES = st.builds(
    Places, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([frozenset(), frozenset([b"a", b"b"])])
).filter(lambda each: each.key or each.value or each.headers or bool(each.header_names))


def table_of(tmp_path: Path, records: list[Fields], codec: int) -> RecordTable:
    """The records, and behind them so many empty ones that hits tell records apart."""
    content = [
        batch(at, [value], key=key, headers=tuple(headers), codec=codec)
        for at, (key, value, headers) in enumerate(records)
    ]
    (table,) = tables_of(log_of(tmp_path, *content, batch(len(content), [None] * 60, key=None, codec=codec)))
    return table


WORK = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@WORK
@given(st.lists(PIECES, max_size=5).map("".join), st.booleans(), RECORDS, PLACES, st.sampled_from([0, 4]))
@example("^$", False, [(b"", None, [])], EVERYWHERE, 0)
def test_regular_expressions_agree_with_python(
    tmp_path: Path, source: str, ignore_case: bool, records: list[Fields], places: Places, codec: int
) -> None:
    """The fast way finds what Python's ``re``, tried on every field, finds."""
    try:
        naive = re.compile(source.replace("é", "(?:é)").encode(), re.IGNORECASE if ignore_case else 0)
        pattern = regex_pattern(source, ignore_case=ignore_case)
    except (re.error, ValueError):
        return
    if ignore_case and "é" in source:
        naive = re.compile(source.replace("é", "(?:é|É)").encode(), re.IGNORECASE)
    expected = naive_offsets(enumerate(records), naive.search, places)
    assert search(table_of(tmp_path, records, codec), pattern, places).tolist() == expected


@WORK
@given(st.one_of(st.text("abé", max_size=3).map(str.encode), st.binary(max_size=2)), RECORDS, PLACES)
def test_bytes_agree_with_python(tmp_path: Path, needle: bytes, records: list[Fields], places: Places) -> None:
    expected = naive_offsets(enumerate(records), lambda field: needle in field, places)
    table = table_of(tmp_path, records, 0)
    pattern = bytes_pattern(needle)
    rows = search(table, pattern, places)
    assert rows.tolist() == expected
    for row in rows.tolist():
        for field in (table.key(row) or b"", table.value(row) or b""):
            assert all(field[start:end] == needle for start, end in pattern.spans(field))
