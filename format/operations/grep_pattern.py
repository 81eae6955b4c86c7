"""What grep looks for: text, a regular expression or bytes, and a literal by which to find candidates fast.

A pattern is matched against one field at a time, a key, a value or a header, so its anchors are the field's ends.
Regular expressions are Python's ``re`` on bytes, and cannot be interrupted: one that backtracks without end does so.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Literal

_ZERO_WIDTH_OR_CLASS = frozenset("dDsSwWbBAZ")
_QUANTIFIER = re.compile(r"\{\d*,?\d*\}")
# Groups that change how the rest is read: flags, comments. Named groups do not.
_SETS_FLAGS = re.compile(r"\(\?(?!P)[a-zA-Z#-]")
_LAST_ASCII = "\x7f"
_RAW_BYTES = range(0xDC80, 0xDD00)  # what surrogateescape makes of bytes that are no UTF-8


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is looked for in a field.

    ``needle``: bytes that every matching field contains, in lower case where ``folds_ascii``; None where none are
    known. ``verifier`` decides on a field; without one a field matches that contains the needle.
    """

    needle: bytes | None
    folds_ascii: bool = False
    verifier: re.Pattern[bytes] | None = None

    def match_in(self, field: bytes) -> tuple[int, int] | None:
        """Start and end of the first match in a field, None for no match."""
        if self.verifier is not None:
            match = self.verifier.search(field)
            return None if match is None else match.span()
        if self.needle is None:
            raise ValueError("a pattern needs a needle or a verifier")
        at = (field.lower() if self.folds_ascii else field).find(self.needle)
        return None if at < 0 else (at, at + len(self.needle))


def bytes_pattern(needle: bytes) -> Pattern:
    """These bytes, anywhere in a field; no bytes at all lie in every field that is not null."""
    return Pattern(needle)


def text_pattern(text: str, *, ignore_case: bool = False) -> Pattern:
    """This text in UTF-8, anywhere in a field.

    ``ignore_case`` takes each character's upper and lower case forms where they are single characters; ASCII letters
    match ASCII letters only. Raises ValueError for text that UTF-8 cannot carry.
    """
    if not ignore_case:
        return Pattern(_encoded(text))
    if text.isascii():
        return Pattern(_encoded(text).lower(), folds_ascii=True)
    source = "".join(re.escape(each) for each in text)
    verifier = re.compile(_bytes_source(source, ignore_case=True), re.IGNORECASE)
    return Pattern(_required_literal(source, ignore_case=True), folds_ascii=True, verifier=verifier)


def regex_pattern(source: str, *, ignore_case: bool = False) -> Pattern:
    """A regular expression, Python's on bytes; a character past ASCII stands for its UTF-8 bytes as a whole.

    Raises ValueError for one that does not compile, and for a character past ASCII in a ``[]`` class.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verifier = re.compile(_bytes_source(source, ignore_case), re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from None
    return Pattern(_required_literal(source, ignore_case), folds_ascii=ignore_case, verifier=verifier)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(f"not text: {error.reason}") from None


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
            end = _class_end(source, at)
            parts.append(_class_bytes(source[at:end]))
            at = end
            continue
        is_escape = character == "\\" and at + 1 < len(source)
        if is_escape and source[at + 1] <= _LAST_ASCII:
            parts.append(source[at : at + 2].encode())
            at += 2
            continue
        if is_escape:  # of a character that needs none
            at += 1
            character = source[at]
        parts.append(character.encode() if character <= _LAST_ASCII else _group(character, ignore_case))
        at += 1
    return b"".join(parts)


def _group(character: str, ignore_case: bool) -> bytes:
    forms = _case_forms(character) if ignore_case else [character]
    return b"(?:" + b"|".join(re.escape(_encoded(form)) for form in forms) + b")"


def _class_bytes(text: str) -> bytes:
    for character in text:
        if character > _LAST_ASCII and ord(character) not in _RAW_BYTES:
            raise ValueError(f"a class in [] holds single bytes, and {character!r} takes more: write (a|b)")
    return _encoded(text)


def _class_end(source: str, start: int) -> int:
    """The place after the class that starts at ``start``; the end where it is not closed."""
    at = start + 1
    if source[at : at + 1] == "^":
        at += 1
    if source[at : at + 1] == "]":
        at += 1
    while at < len(source) and source[at] != "]":
        at += 2 if source[at] == "\\" else 1
    return min(at + 1, len(source))


def _case_forms(character: str) -> list[str]:
    forms = {character}
    for _ in range(2):  # the second round finds a final sigma's sibling
        forms |= {form for each in forms for form in (each.lower(), each.upper()) if len(form) == 1}
    return sorted(forms)


# -- the literal that any match contains ------------------------------------------------------------------------


def _required_literal(source: str, ignore_case: bool) -> bytes | None:
    """The longest run of plain characters outside groups, which every match holds; None where none is certain."""
    if _SETS_FLAGS.search(source):
        return None
    runs: list[str] = [""]
    at = 0
    while at < len(source):
        character = source[at]
        kind, length = _token(source, at)
        if kind == "unknown":
            return None
        if kind == "literal":
            is_certain = not ignore_case or character <= _LAST_ASCII
            if is_certain:
                runs[-1] += source[at + length - 1]
            else:
                runs.append("")
        elif kind == "optional":
            runs[-1] = runs[-1][:-1]
            runs.append("")
        else:
            runs.append("")
        at += length
    needle = max((_encoded(run) for run in runs), key=len)
    return (needle.lower() if ignore_case else needle) or None


Token = Literal["literal", "optional", "break", "unknown"]


def _token(source: str, at: int) -> tuple[Token, int]:
    """What starts at a place and how long it is; "optional" says that what came before it may be missing."""
    character = source[at]
    if character == "\\":
        escaped = source[at + 1 : at + 2]
        if escaped in _ZERO_WIDTH_OR_CLASS:
            return "break", 2
        is_plain = bool(escaped) and escaped <= _LAST_ASCII and not escaped.isalnum()
        return ("literal", 2) if is_plain else ("unknown", 2)
    if character == "[":
        return "break", _class_end(source, at) - at
    if character == "(":
        end = _group_end(source, at)
        return ("break", end - at) if end else ("unknown", 1)
    if character == "|":
        return "unknown", 1
    if character in "*?":
        return "optional", 1
    if character == "{":
        quantifier = _QUANTIFIER.match(source, at)
        return ("optional", len(quantifier[0])) if quantifier else ("literal", 1)
    return ("break", 1) if character in ".^$+)" else ("literal", 1)


def _group_end(source: str, start: int) -> int:
    """The place after the group that starts at ``start``; 0 where it is not closed."""
    depth = 0
    at = start
    while at < len(source):
        character = source[at]
        if character == "[":
            at = _class_end(source, at)
            continue
        depth += (character == "(") - (character == ")")
        at += 2 if character == "\\" else 1
        if depth == 0:
            return at
    return 0
