"""Statements cut at their semicolons, and the places of errors."""

from __future__ import annotations

import pytest

from format.errors import BadQuery, LimitExceeded
from format.verbs.sql.statements import error_of, statements_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", ["SELECT 1"]),
        (" ;; SELECT 1 ; ", ["SELECT 1"]),
        ("SELECT ';' ; SELECT \"a;b\" -- c; d\n; /* ; */ SELECT 3", ["SELECT ';'", 'SELECT "a;b" -- c; d', "SELECT 3"]),
        ("SELECT 'it''s; so'; SELECT 2", ["SELECT 'it''s; so'", "SELECT 2"]),
        ("SELECT E'a\\';b'; SELECT $$;$$, $x$ ; $$ ; $x$", ["SELECT E'a\\';b'", "SELECT $$;$$, $x$ ; $$ ; $x$"]),
        ("-- only a comment", []),
        ("", []),
    ],
)
def test_statements(text: str, expected: list[str]) -> None:
    found = statements_of(text)
    assert [each.text for each in found] == expected
    assert all(text[each.start :].startswith(each.text) for each in found)


@pytest.mark.parametrize(
    ("words", "message", "excerpt"),
    [
        (
            'SQL error: ParserError("Expected: an expression, found: FROM at Line: 2, Column: 3")',
            "line 3, column 3: Expected: an expression, found: FROM",
            "  FROM records\n  ^",
        ),
        (
            "Schema error: No field named ofset.\nValid fields are records.topic, records.offset.",
            "line 2, column 12: there is no column ofset. Did you mean offset? kafkalog sql --tables lists them",
            " SELECT 1, ofset\n           ^",
        ),
        ("Error during planning: Cannot coerce", "Cannot coerce", ""),
    ],
)
def test_errors_show_their_place_in_the_whole_text(words: str, message: str, excerpt: str) -> None:
    statement = statements_of("SELECT 0;\n SELECT 1, ofset\n  FROM records")[1]
    error = error_of(ValueError(words), statement)
    assert isinstance(error, BadQuery)
    assert (error.message, error.excerpt) == (message, excerpt)


def test_a_long_line_is_cut_around_the_place() -> None:
    (statement,) = statements_of(f"SELECT '{'a' * 200}', nope, '{'b' * 200}'")
    error = error_of(ValueError("Schema error: No field named nope. Valid fields are r.a."), statement)
    line, caret = error.excerpt.split("\n")  # type: ignore[union-attr]
    assert len(line) <= 74
    assert line[caret.index("^") :].startswith("nope")


def test_memory_that_does_not_suffice_is_a_limit() -> None:
    (statement,) = statements_of("SELECT 1")
    assert isinstance(error_of(ValueError("Resources exhausted: Failed to allocate"), statement), LimitExceeded)
