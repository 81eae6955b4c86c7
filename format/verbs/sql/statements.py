"""Statements of SQL: a text cut at its semicolons, and errors with their place in it."""

from __future__ import annotations

import re

import msgspec

from format.errors import BadQuery, LimitExceeded
from format.wording import did_you_mean

#: What a semicolon or a name may stand in without being one: strings, quoted names, comments.
_APART = r"[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|(?P<tag>\$\w*\$).*?(?P=tag)|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/"
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
    "Optimizer rule 'simplify_expressions' failed caused by ",
    "Parser error: ",
    "type_coercion caused by ",
    "This feature is not implemented: ",
)
#: Statements that the engine refuses, some of them in words about something else.
_REFUSED = frozenset(("copy", "create", "insert", "update", "delete", "drop", "alter", "set", "prepare", "execute"))
_NO_QUESTION = re.compile("(DDL|DML|Statement) not supported")
_UNKNOWN = re.compile(r"No field named (\S+?)\. .*Valid fields are (.*)")
_NO_TABLE = re.compile(r"table '(?:datafusion\.public\.)?(.+)' not found")
_OF_TEXT = re.compile("Function '([^']+)' requires String, but received Binary")
#: What the engine says of times that it cannot take, and what to write. A record may have any time.
_OF_TIMES = (
    (
        re.compile("represented as nanoseconds"),
        "a time as text is from 1677-09-22 to 2262-04-11: another one is written as '2300-01-01'::timestamp(3)",
    ),
    (
        re.compile("[Tt]imestamp.*(out of range|representable|to datetime)|to datetime for Timestamp"),
        "a timestamp is no date: add timestamp BETWEEN '1678-01-01' AND '2262-01-01', or take timestamp::bigint",
    ),
    (
        re.compile("comparison operation .*(Timestamp.* Int64|Int64 .*Timestamp)|compare Timestamp.*Int64"),
        "a time is compared with text, such as '2026-11-01T08:00:00', or with to_timestamp_millis(MILLISECONDS)",
    ),
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


def check_sampling(statement: Statement) -> None:
    """Raises BadQuery for TABLESAMPLE, which the engine passes over: it would give all rows as if they were some."""
    for match in _WORD.finditer(statement.text):
        if match[0].lower() == "tablesample":
            words = "TABLESAMPLE is not supported: give a condition such as random() < 0.01"
            raise BadQuery(words, _excerpt(*_around(statement, match.start())))


def error_of(error: Exception, statement: Statement) -> BadQuery | LimitExceeded:
    """The error for one of the engine, with the place in the text as far as the engine says it."""
    words = " ".join(str(error).split())
    match = _PARSER.fullmatch(words)
    words = match[1] if match else words
    while any(words.startswith(each) for each in _PREFIXES):
        words = next(words.removeprefix(each) for each in _PREFIXES if words.startswith(each))
    if words.startswith(_EXHAUSTED):
        return LimitExceeded(f"the query needs more memory than it may take ({words.removeprefix(_EXHAUSTED)})")
    first = statement.text.split(maxsplit=1)[0].lower()
    if first in _REFUSED or _NO_QUESTION.match(words):
        words = "only questions are answered, such as SELECT: nothing can be made, set, changed or written"
        return BadQuery(words, _excerpt(*_around(statement, 0)))
    if "non UTF-8" in words:
        return BadQuery("a value is not UTF-8: give text(value), in which such bytes are U+FFFD, or compare bytes")
    for pattern, said in _OF_TIMES:
        if pattern.search(words):
            return BadQuery(said)
    of_text = _OF_TEXT.search(words)
    if of_text:
        name = of_text[1]
        return BadQuery(f"{name} takes text, not bytes: give text(value); size(value) is the number of bytes")
    if "information_schema is enabled" in words:
        return BadQuery("SHOW is not supported: kafkalog sql --tables lists the tables and their columns")
    at = _position(words, statement.text)
    unknown = _UNKNOWN.match(words)
    if unknown:
        name, known = unknown[1], [each.strip(" .") for each in unknown[2].split(",")]
        words = f"there is no column {name}.{did_you_mean(name, [each.rpartition('.')[2] for each in known])}"
        words += " kafkalog sql --tables lists them"
    words = _NO_TABLE.sub(r"there is no table \1; kafkalog sql --tables lists them", words)
    words = _PLACE.sub("", words).removesuffix(".")
    if at is None:
        return BadQuery(words or type(error).__name__)
    before, after = _around(statement, at)
    line = statement.whole.count("\n", 0, statement.start + at) + 1
    return BadQuery(f"line {line}, column {len(before) + 1}: {words}", _excerpt(before, after))


def _around(statement: Statement, at: int) -> tuple[str, str]:
    """The line of a place in a statement: what is before it, and the rest."""
    whole, place = statement.whole, statement.start + at
    return whole[whole.rfind("\n", 0, place) + 1 : place], whole[place:].partition("\n")[0]


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
