"""The patterns of grep: text, a regular expression or bytes, and the bytes that every match must contain.

A pattern is matched against one field at a time, a key, a value or a header, so its anchors are the field's ends.
Regular expressions are Python's ``re`` on bytes, and cannot be interrupted: one that backtracks without end does so.

What ``bytes.find`` can search for quickly is a run of byte sets, one per byte: the set of a plain character has one
member, the set of ``[0-9]`` ten. If the sets of a run are pairwise equal or disjoint, each byte of a field can be
translated to the number of its set, and the run becomes a literal. The runs come from the tree that ``re`` itself makes
of the expression. What is not known of that tree is a gap between two runs.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import log2
from re import _constants, _parser  # type: ignore[attr-defined]  # the tree has no public name
from typing import Any

import msgspec

ByteSet = frozenset[int]
Run = tuple[ByteSet, ...]

_LAST_ASCII = "\x7f"
_RAW_BYTES = range(0xDC80, 0xDD00)  # surrogateescape's stand-ins for bytes that are not UTF-8
_ALL_BYTES = frozenset(range(256))
_LOWER = bytes(range(256)).lower()
_SWAPPED = bytes(range(256)).swapcase()
_ZERO_WIDTH = (_constants.AT, _constants.ASSERT, _constants.ASSERT_NOT)
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_CATEGORIES = {
    _constants.CATEGORY_DIGIT: rb"\d",
    _constants.CATEGORY_NOT_DIGIT: rb"\D",
    _constants.CATEGORY_SPACE: rb"\s",
    _constants.CATEGORY_NOT_SPACE: rb"\S",
    _constants.CATEGORY_WORD: rb"\w",
    _constants.CATEGORY_NOT_WORD: rb"\W",
}
#: The most copies of a repeated item in a run.
_MOST_COPIES = 16
_MOST_ALTERNATIVES = 8
_MOST_REQUIREMENTS = 3


class Needle(msgspec.Struct, frozen=True):
    """Bytes to search for, after the searched bytes were translated by the table, if there is one."""

    text: bytes
    table: bytes | None = None


#: Alternatives: every match contains at least one of these needles.
Requirement = tuple[Needle, ...]


class Pattern(msgspec.Struct, frozen=True):
    """A pattern to find in a field.

    Either ``needle`` or ``verifier`` decides whether a field matches, or one of the patterns in ``any_of``. A matching
    field contains at least one needle of each requirement in ``required``; the most selective requirement comes first.
    """

    needle: Needle | None = None
    verifier: re.Pattern[bytes] | None = None
    required: tuple[Requirement, ...] = ()
    any_of: tuple[Pattern, ...] = ()

    def __post_init__(self) -> None:
        if (self.needle is not None) + (self.verifier is not None) + bool(self.any_of) != 1:
            raise ValueError("a pattern needs a needle, a verifier or other patterns")

    def is_in(self, field: bytes) -> bool:
        """Whether a field matches."""
        if self.verifier is not None:
            return self.verifier.search(field) is not None
        if self.needle is not None:
            return self.needle.text in (field if self.needle.table is None else field.translate(self.needle.table))
        return any(each.is_in(field) for each in self.any_of)

    def spans(self, field: bytes) -> Iterator[tuple[int, int]]:
        """The start and end of each match in a field that is not empty, in order unless there are several patterns."""
        for each in self.any_of:
            yield from each.spans(field)
        if self.verifier is not None:
            yield from (match.span() for match in self.verifier.finditer(field) if match.end() > match.start())
        if self.needle is not None and self.needle.text:
            text, table = self.needle.text, self.needle.table
            content = field if table is None else field.translate(table)
            at = content.find(text)
            while at >= 0:
                yield at, at + len(text)
                at = content.find(text, at + len(text))


def any_of(patterns: Sequence[Pattern]) -> Pattern:
    """The pattern that matches where one of these does."""
    return patterns[0] if len(patterns) == 1 else Pattern(any_of=tuple(patterns))


def bytes_pattern(text: bytes) -> Pattern:
    """These bytes, anywhere in a field; no bytes at all lie in every field that is not null."""
    return _literal(Needle(text))


def text_pattern(text: str, *, ignore_case: bool = False) -> Pattern:
    """This text in UTF-8, anywhere in a field.

    ``ignore_case`` takes each character's upper and lower case forms where they are single characters; ASCII letters
    match ASCII letters only. Raises ValueError for text that UTF-8 cannot carry.
    """
    if not ignore_case:
        return _literal(Needle(encoded(text)))
    if text.isascii():
        return _literal(Needle(text.lower().encode(), _LOWER))
    return _regex("".join(re.escape(each) for each in text), ignore_case)


def regex_pattern(source: str, *, ignore_case: bool = False) -> Pattern:
    """A regular expression, Python's on bytes; a character past ASCII stands for its UTF-8 bytes as a whole.

    Raises ValueError for one that does not compile, and for a character past ASCII in a ``[]`` class.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _regex(source, ignore_case)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None


def _literal(needle: Needle) -> Pattern:
    return Pattern(needle, required=((needle,),) if needle.text else ())


def _regex(source: str, ignore_case: bool) -> Pattern:
    flags = re.IGNORECASE if ignore_case else 0
    content = _bytes_source(source, ignore_case)
    return Pattern(verifier=re.compile(content, flags), required=_requirements(content, flags))


# -- what every match contains ---------------------------------------------------------------------------------


class _Sequence(msgspec.Struct):
    """What is known about one branch of an alternation: its runs, and the alternations inside it."""

    runs: list[list[ByteSet]] = msgspec.field(default_factory=lambda: [[]])
    choices: list[list[Run]] = msgspec.field(default_factory=list)
    is_run: bool = True  # the branch consists of exactly one run

    def cut(self) -> None:
        """End the current run: what follows need not be adjacent to it."""
        self.is_run = False
        if self.runs[-1]:
            self.runs.append([])

    def repeat(self, branches: list[_Sequence], least: int, most: int) -> None:
        """Append one of the branches, as often as a quantifier requires."""
        run = branches[0].runs[0] if len(branches) == 1 and branches[0].is_run else None
        if run is None or not least:
            if least:
                self.choices += _choices(branches)
            self.cut()
            return
        copies = run * min(least, max(1, _MOST_COPIES // max(1, len(run))))
        self.runs[-1] += copies
        if most != least or len(copies) < least * len(run):
            self.cut()
            self.runs[-1] += copies

    def alternatives(self) -> list[list[Run]]:
        """Sets of runs; a match contains at least one run of each set; the most selective set first."""
        found = [[window] for run in self.runs if (window := _window(run))]
        return sorted([*found, *self.choices], key=_bits, reverse=True)


def _requirements(source: bytes, flags: int) -> tuple[Requirement, ...]:
    """The requirements of a valid expression, the most selective first; empty if nothing is certain."""
    tree = _parser.parse(source, flags)
    choices = _read(tree, tree.state.flags).alternatives()
    return tuple(tuple(_needle(run) for run in runs) for runs in choices[:_MOST_REQUIREMENTS])


def _read(tree: Iterable[tuple[Any, Any]], flags: int) -> _Sequence:
    """A part of an expression's tree, in which the flags hold."""
    found = _Sequence()
    for kind, content in tree:
        members = _members(kind, content, flags)
        if members is not None:
            found.runs[-1].append(members)
        elif kind is _constants.SUBPATTERN:
            _, added, removed, inner = content
            found.repeat([_read(inner, (flags | added) & ~removed)], 1, 1)
        elif kind is _constants.ATOMIC_GROUP:
            found.repeat([_read(content, flags)], 1, 1)
        elif kind is _constants.BRANCH:
            found.repeat([_read(each, flags) for each in content[1]], 1, 1)
        elif kind in _REPEATS:
            least, most, inner = content
            found.repeat([_read(inner, flags)], least, most)
        elif kind not in _ZERO_WIDTH:
            found.cut()
    return found


def _members(kind: Any, content: Any, flags: int) -> ByteSet | None:
    """The bytes that an item of one byte matches; None for other items, and where they depend on the locale."""
    if flags & re.LOCALE or kind not in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN):
        return None
    is_negated = kind is _constants.NOT_LITERAL
    found: set[int] = set()
    for each, value in content if kind is _constants.IN else [(_constants.LITERAL, content)]:
        if each is _constants.NEGATE:
            is_negated = True
        elif each is _constants.LITERAL:
            found.add(value)
        elif each is _constants.RANGE:
            found.update(range(value[0], value[1] + 1))
        elif each is _constants.CATEGORY and value in _CATEGORIES:
            found |= _category(_CATEGORIES[value])
        else:
            return None
    if flags & re.IGNORECASE:
        found |= {_SWAPPED[each] for each in found}
    return _ALL_BYTES - found if is_negated else frozenset(found)


@cache
def _category(source: bytes) -> ByteSet:
    return frozenset(each for each in _ALL_BYTES if re.fullmatch(source, bytes((each,))))


def _choices(branches: list[_Sequence]) -> list[list[Run]]:
    """Sets of runs, valid for all branches together; a match contains at least one run of each set."""
    of_branches = [each.alternatives() for each in branches]
    if len(of_branches) == 1:
        return of_branches[0]
    if not all(of_branches):
        return []
    runs = [run for choices in of_branches for run in choices[0]]
    return [runs] if len(runs) <= _MOST_ALTERNATIVES else []


def _window(run: list[ByteSet]) -> Run:
    """The most selective part of a run whose sets are pairwise equal or disjoint."""
    best: Run = ()
    start = 0
    for end in range(1, len(run) + 1):
        others = range(end - 2, start - 1, -1)
        start = next((at + 1 for at in others if run[at] != run[end - 1] and run[at] & run[end - 1]), start)
        window = tuple(run[start:end])
        if _bits([window]) > _bits([best]):
            best = window
    return best


def _bits(runs: list[Run]) -> float:
    """The selectivity, in bits, of finding one of the runs, if all bytes were equally likely."""
    if not all(all(run) for run in runs):
        return 0.0
    return min((sum(8 - log2(len(each)) for each in run) for run in runs), default=0.0) - log2(max(1, len(runs)))


def _needle(run: Run) -> Needle:
    if all(len(each) == 1 for each in run):
        return Needle(bytes(min(each) for each in run))
    lowered = [{_LOWER[byte] for byte in each} for each in run]
    if all(len(each) == 1 for each in lowered):
        return Needle(bytes(min(each) for each in lowered), _LOWER)
    table = bytearray(256)
    numbers: dict[ByteSet, int] = {}
    for each in run:
        number = numbers.setdefault(each, len(numbers) + 1)
        for byte in each:
            table[byte] = number
    return Needle(bytes(numbers[each] for each in run), bytes(table))


# -- a regular expression for bytes -----------------------------------------------------------------------------


def encoded(text: str) -> bytes:
    """Text in UTF-8; bytes that the command line could not decode are restored. Raises ValueError."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"not text: {error.reason}") from None


def _bytes_source(source: str, ignore_case: bool) -> bytes:
    """The expression for bytes, each character past ASCII a group, so that a quantifier takes it as a whole."""
    if source.isascii():
        return source.encode()
    parts: list[bytes] = []
    at = 0
    while at < len(source):
        character = source[at]
        if character == "[":
            end = _class_end(source, at)
            parts.append(_class_bytes(source[at:end]))
            at = end
            continue
        is_escape = character == "\\" and at + 1 < len(source)
        if is_escape and source[at + 1] <= _LAST_ASCII:
            parts.append(source[at : at + 2].encode())
            at += 2
            continue
        if is_escape:  # of a character that does not need it
            at += 1
            character = source[at]
        parts.append(character.encode() if character <= _LAST_ASCII else _group(character, ignore_case))
        at += 1
    return b"".join(parts)


def _group(character: str, ignore_case: bool) -> bytes:
    forms = _case_forms(character) if ignore_case else [character]
    return b"(?:" + b"|".join(re.escape(encoded(form)) for form in forms) + b")"


def _class_bytes(text: str) -> bytes:
    for character in text:
        if character > _LAST_ASCII and ord(character) not in _RAW_BYTES:
            raise ValueError(f"a class in [] holds single bytes, and {character!r} takes more: write (a|b)")
    return encoded(text)


def _case_forms(character: str) -> list[str]:
    forms = {character}
    for _ in range(2):  # the second round finds a final sigma's sibling
        forms |= {form for each in forms for form in (each.lower(), each.upper()) if len(form) == 1}
    return sorted(forms)


def _class_end(source: str, start: int) -> int:
    """The index after the class that starts at ``start``; the end of the source if it is not closed."""
    at = start + 1
    if source[at : at + 1] == "^":
        at += 1
    if source[at : at + 1] == "]":
        at += 1
    while at < len(source) and source[at] != "]":
        at += 2 if source[at] == "\\" else 1
    return min(at + 1, len(source))
