"""Statements of SQL: a text cut at its semicolons, and errors with their place in it."""

from __future__ import annotations

import re

import msgspec

from format.errors import BadQuery, LimitExceeded

#: What a semicolon or a name may stand in without being one: strings, quoted names, comments.
_APART = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
_CUT = re.compile(rf"{_APART}|;", re.DOTALL)
_BLANK = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(rf"(?P<apart>{_APART})|(?P<word>\w+)", re.DOTALL)
_PLACE = re.compile(r" at Line: (\d+), Column: (\d+)")
_PARSER = re.compile(r'SQL error: ParserError\("(.*)"\)')
_MOST_BEFORE, _MOST_AFTER = 40, 30
#: Words of the engine in front of its messages.
_PREFIXES = (
    "Error during planning: ",
    "Schema error: ",
    "SQL error: ",
    "DataFusion error: ",
    "Execution error: ",
    "Arrow error: ",
    "External error: ",
    "This feature is not implemented: ",
)
_EXHAUSTED = "Resources exhausted: "
#: Messages that name what is wrong, the name being the last word of the first group.
_NAMED = (
    re.compile(r"No field named ([^\s]+?)\.(?:\s|$)"),
    re.compile(r"table '(?:datafusion\.public\.)?([^']+)' not found"),
    re.compile(r"table function '([^']+)' not found"),
    re.compile(r"Invalid function '([^']+)'"),
    re.compile(r'column "([^"]+)" must appear'),
)


class Statement(msgspec.Struct, frozen=True):
    """A statement: its text, and the whole text with its place in it."""

    text: str
    whole: str
    start: int


def statements_of(whole: str) -> list[Statement]:
    """The statements of a text, without empty ones."""
    found: list[Statement] = []
    first = 0
    for end in (*(match.start() for match in _CUT.finditer(whole) if match[0] == ";"), len(whole)):
        blank = _BLANK.match(whole, first, end)
        start = first if blank is None else blank.end()
        if start < end:
            found.append(Statement(whole[start:end].rstrip(), whole, start))
        first = end + 1
    return found


def error_of(error: Exception, statement: Statement) -> BadQuery | LimitExceeded:
    """The error for one of the engine, with the place in the text as far as the engine says it."""
    words = " ".join(str(error).split())
    match = _PARSER.fullmatch(words)
    words = match[1] if match else words
    while any(words.startswith(each) for each in _PREFIXES):
        words = next(words.removeprefix(each) for each in _PREFIXES if words.startswith(each))
    if words.startswith(_EXHAUSTED):
        return LimitExceeded(f"the query needs more memory than it may take ({words.removeprefix(_EXHAUSTED)})")
    at = _position(words, statement.text)
    words = _PLACE.sub("", words).removesuffix(".")
    if at is None:
        return BadQuery(words or type(error).__name__)
    at += statement.start
    before, after = statement.whole[:at], statement.whole[at:]
    line, column = before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1
    shown, rest = before.rpartition("\n")[2], after.partition("\n")[0]
    return BadQuery(f"line {line}, column {column}: {words}", excerpt=_excerpt(shown, rest))


def _excerpt(before: str, after: str) -> str:
    """The text around a place, and a caret below it."""
    before, after = (each.expandtabs(1) for each in (before, after))
    if len(before) > _MOST_BEFORE:
        before = "…" + before[-_MOST_BEFORE:]
    if len(after) > _MOST_AFTER:
        after = after[:_MOST_AFTER] + "…"
    return f"{before}{after}\n{' ' * len(before)}^"


def _position(words: str, text: str) -> int | None:
    """The place in a statement that a message is about."""
    place = _PLACE.search(words)
    if place is not None:
        lines = text.split("\n")
        line = min(int(place[1]), len(lines)) - 1
        return sum(len(each) + 1 for each in lines[:line]) + min(int(place[2]) - 1, len(lines[line]))
    if words.endswith("found: EOF"):
        return len(text)
    for pattern in _NAMED:
        named = pattern.search(words)
        if named is not None:
            name = named[1].rpartition(".")[2].strip('"').lower()
            for match in _WORD.finditer(text):
                if match[0].strip('"').lower() == name:
                    return match.start()
    return None
