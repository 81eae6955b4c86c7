"""The patterns of grep: text, a regular expression or bytes, and the bytes that every match must contain.

A pattern is matched against one field at a time, a key, a value or a header, so its anchors are the field's ends.
Regular expressions are Python's ``re`` on bytes, and cannot be interrupted: one that backtracks without end does so.
"""

from __future__ import annotations

import re
import warnings

import msgspec

from format.verbs.grep.required_bytes import Needle, Requirement, class_end, encoded, lower_case_needle, requirements

_LAST_ASCII = "\x7f"
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
