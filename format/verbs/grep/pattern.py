"""The patterns of grep: text, a regular expression or bytes, and the bytes that every match must contain.

A pattern is matched against one field at a time, a key, a value or a header, so its anchors are the field's ends.
Regular expressions are Python's ``re`` on bytes, and cannot be interrupted: one that backtracks without end does so.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from math import log2

import msgspec

ByteSet = frozenset[int]
Run = tuple[ByteSet, ...]

_QUANTIFIER = re.compile(r"\*|\+|\?|\{(?!\})(\d*)(,?)(\d*)\}")
_NAMED_GROUP = re.compile(r"\(\?P<\w+>")
_FLAGS_AT_START = re.compile(r"\(\?([aims]+)\)")
_SKIPPED_GROUP = re.compile(r"\(\?(?:=|!|<=|<!|P=|[aims]*(?:-[ims]+)?:)")
_ZERO_WIDTH = frozenset("bBAZ")
_CLASSES = frozenset("dDsSwW")
_CONTROL = frozenset("afnrtv")
_LAST_ASCII = "\x7f"
#: The most copies of a repeated item in a run.
_MOST_COPIES = 16
_MOST_ALTERNATIVES = 8
_MOST_REQUIREMENTS = 3
_LOWER = bytes(range(256)).lower()


class Needle(msgspec.Struct, frozen=True):
    """Bytes to search for, after the searched bytes were translated by the table, if there is one."""

    text: bytes
    table: bytes | None = None


#: Alternatives: every match contains at least one of these needles.
Requirement = tuple[Needle, ...]


class Unclear(Exception):
    """The expression contains something that this reader does not understand."""


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

    def alternatives(self) -> list[list[Run]]:
        """Sets of runs; a match contains at least one run of each set; the most selective set first."""
        found = [[window] for run in self.runs if (window := _window(run))]
        return sorted([*found, *self.choices], key=_bits, reverse=True)


class _Item(msgspec.Struct, frozen=True):
    """Something that a quantifier may follow: the branches of a group, or a gap."""

    branches: Sequence[_Sequence] = ()
    is_zero_width: bool = False


class _Reader:
    """Reads an expression that compiles, from its start to its end."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags
        self._at = 0
        self._sets: dict[bytes, ByteSet] = {}

    def branches(self, depth: int = 0) -> list[_Sequence]:
        """The branches up to the end of the expression or of the group."""
        found = [_Sequence()]
        while self._at < len(self._source):
            if self._source[self._at] == ")" and depth:
                break
            if self._source[self._at] == "|":
                self._at += 1
                found.append(_Sequence())
                continue
            item = self._item(depth)
            self._repeat(found[-1], item)
        return found

    def _item(self, depth: int) -> _Item:
        character = self._source[self._at]
        if character == "(":
            return self._group(depth)
        if character in "^$":
            self._at += 1
            return _Item(is_zero_width=True)
        if character == ".":
            self._at += 1
            return _Item()
        if character == "[":
            start, self._at = self._at, class_end(self._source, self._at)
            return _run([self._set(encoded(self._source[start : self._at]))])
        if character == "\\":
            return self._escape()
        self._at += 1
        return self._literal(character)

    def _escape(self) -> _Item:
        escaped = self._source[self._at + 1]
        self._at += 2
        if escaped in _ZERO_WIDTH:
            return _Item(is_zero_width=True)
        if escaped in _CLASSES or escaped in _CONTROL:
            return _run([self._set(f"\\{escaped}".encode())])
        if escaped == "x":
            self._at += 2
            return _run([self._set(self._source[self._at - 4 : self._at].encode())])
        if escaped.isalnum() and escaped <= _LAST_ASCII:
            raise Unclear  # a reference to a group, a number
        return self._literal(escaped)

    def _literal(self, character: str) -> _Item:
        if character <= _LAST_ASCII:
            return _run([self._set(re.escape(character).encode())])
        if self._flags & re.IGNORECASE:
            return _Item()
        return _run([frozenset((byte,)) for byte in encoded(character)])

    def _group(self, depth: int) -> _Item:
        source, start = self._source, self._at
        named = _NAMED_GROUP.match(source, start)
        opened = named[0] if named else next((each for each in ("(?:", "(?>") if source.startswith(each, start)), "(")
        if opened == "(" and source.startswith("(?", start):
            if not _SKIPPED_GROUP.match(source, start):
                raise Unclear  # flags that change how the rest is read, a choice by an earlier group
            self._at = group_end(source, start)
            return _Item(is_zero_width=source.startswith(("(?=", "(?!", "(?<"), start))
        self._at += len(opened)
        branches = self.branches(depth + 1)
        self._at += 1
        return _Item(branches)

    def _set(self, source: bytes) -> ByteSet:
        """The bytes that a class, an escape or a character matches."""
        known = self._sets.get(source)
        if known is None:
            pattern = re.compile(source, self._flags)
            known = frozenset(byte for byte in range(256) if pattern.fullmatch(bytes((byte,))))
            self._sets[source] = known
        return known

    def _repeat(self, sequence: _Sequence, item: _Item) -> None:
        """Append an item to a sequence, as often as the quantifier after it requires."""
        least, most = self._quantifier()
        if item.is_zero_width and (least, most) == (1, 1):
            return
        run = _as_run(item.branches)
        if run is not None and least:
            copies = list(run) * min(least, max(1, _MOST_COPIES // max(1, len(run))))
            sequence.runs[-1] += copies
            if most != least or len(copies) < least * len(run):
                sequence.cut()
                sequence.runs[-1] += copies
            return
        if least and item.branches:
            sequence.choices += _choices(item.branches)
        sequence.cut()

    def _quantifier(self) -> tuple[int, int | None]:
        """The least and most repetitions of the item before."""
        found = _QUANTIFIER.match(self._source, self._at)
        if found is None:
            return 1, 1
        self._at = found.end()
        if self._source[self._at : self._at + 1] in ("?", "+"):  # lazy, possessive
            self._at += 1
        if found[0] in "*+?":
            return int(found[0] == "+"), (1 if found[0] == "?" else None)
        least = int(found[1] or 0)
        most = (int(found[3]) if found[3] else None) if found[2] else least
        return least, most


def requirements(source: str, *, ignore_case: bool) -> tuple[Requirement, ...]:
    """The requirements of a valid expression, the most selective first; empty if nothing is certain."""
    if "(?#" in source:  # a comment, unless inside a class: brackets in it have no meaning
        return ()
    flags = re.IGNORECASE if ignore_case else 0
    at_start = _FLAGS_AT_START.match(source)
    if at_start is not None:
        source = source[at_start.end() :]
        flags |= re.IGNORECASE if "i" in at_start[1] else 0
    try:
        choices = _choices(_Reader(source, flags).branches())
    except (Unclear, RecursionError):
        return ()
    choices.sort(key=_bits, reverse=True)
    return tuple(tuple(_needle(run) for run in runs) for runs in choices[:_MOST_REQUIREMENTS])


def lower_case_needle(text: bytes) -> Needle:
    """A needle for text, ignoring the case of ASCII letters."""
    return Needle(text.lower(), _LOWER)


# -- runs --------------------------------------------------------------------------------------------------------


def _run(sets: list[ByteSet]) -> _Item:
    return _Item([_Sequence([sets])])


def _as_run(branches: Sequence[_Sequence]) -> Run | None:
    """The run equal to the branches, if there is one branch that is a run, or each branch is a single byte."""
    if not branches or not all(each.is_run for each in branches):
        return None
    runs = [each.runs[0] for each in branches]
    if len(runs) == 1:
        return tuple(runs[0])
    return (frozenset().union(*(run[0] for run in runs)),) if all(len(run) == 1 for run in runs) else None


def _choices(branches: Sequence[_Sequence]) -> list[list[Run]]:
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


# -- places in an expression -------------------------------------------------------------------------------------


def encoded(text: str) -> bytes:
    """Text in UTF-8; bytes that the command line could not decode are restored. Raises ValueError."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"not text: {error.reason}") from None


def class_end(source: str, start: int) -> int:
    """The index after the class that starts at ``start``; the end of the source if it is not closed."""
    at = start + 1
    if source[at : at + 1] == "^":
        at += 1
    if source[at : at + 1] == "]":
        at += 1
    while at < len(source) and source[at] != "]":
        at += 2 if source[at] == "\\" else 1
    return min(at + 1, len(source))


def group_end(source: str, start: int) -> int:
    """The index after the group that starts at ``start``; the end of the source if it is not closed."""
    depth = 0
    at = start
    while at < len(source):
        character = source[at]
        if character == "[":
            at = class_end(source, at)
            continue
        depth += (character == "(") - (character == ")")
        at += 2 if character == "\\" else 1
        if depth == 0:
            break
    return min(at, len(source))


_RAW_BYTES = range(0xDC80, 0xDD00)  # surrogateescape's stand-ins for bytes that are not UTF-8


class Pattern(msgspec.Struct, frozen=True):
    """A pattern to find in a field.

    Either ``needle`` or ``verifier`` decides whether a field matches. A matching field contains at least one needle of
    each requirement in ``required``; the most selective requirement comes first.
    """

    needle: Needle | None = None
    verifier: re.Pattern[bytes] | None = None
    required: tuple[Requirement, ...] = ()

    def __post_init__(self) -> None:
        if (self.needle is None) == (self.verifier is None):
            raise ValueError("a pattern needs a needle or a verifier")


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
        return _literal(lower_case_needle(text.encode()))
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
    verifier = re.compile(_bytes_source(source, ignore_case), re.IGNORECASE if ignore_case else 0)
    return Pattern(verifier=verifier, required=requirements(source, ignore_case=ignore_case))


# -- a regular expression for bytes -----------------------------------------------------------------------------


def _bytes_source(source: str, ignore_case: bool) -> bytes:
    """The expression for bytes, each character past ASCII a group, so that a quantifier takes it as a whole."""
    if source.isascii():
        return source.encode()
    parts: list[bytes] = []
    at = 0
    while at < len(source):
        character = source[at]
        if character == "[":
            end = class_end(source, at)
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
