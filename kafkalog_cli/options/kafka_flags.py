"""Flags as Kafka's tools read them (jopt-simple without abbreviations), for click.

The differences: one dash is as good as two; a value after ``=`` is ignored if the flag takes none; a required value may
begin with a dash, an optional one may not; other words are ignored; nothing is abbreviated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Takes(Enum):
    """Whether a flag takes a value."""

    NOTHING = "nothing"
    VALUE = "value"
    OPTIONAL_VALUE = "optional value"


class FlagError(Exception):
    """A command line that jopt-simple refuses; the message is its own. ``unknown`` is a flag that does not exist."""

    def __init__(self, message: str, unknown: str | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown


@dataclass
class ParsedFlags:
    """The flags in their order, each with its value (None for one that takes none or was not given one)."""

    flags: list[tuple[str, str | None]] = field(default_factory=list)
    other_words: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return any(flag == name for flag, _ in self.flags)

    def values(self, name: str) -> list[str]:
        return [value for flag, value in self.flags if flag == name and value is not None]


def parse_flags(words: Sequence[str], known: Mapping[str, Takes]) -> ParsedFlags:
    """Parse a command line; ``known`` has the flags without dashes. Raises FlagError."""
    parsed = ParsedFlags()
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            parsed.other_words += words[at:]
            break
        if not _looks_like_flag(word):
            parsed.other_words.append(word)
            continue
        name, equals, value = (word[2:] if word[:2] == "--" else word[1:]).partition("=")
        if name not in known:
            raise FlagError(f"{name if word[:2] == '--' else name[:1]} is not a recognized option", name)
        takes = known[name]
        if takes is Takes.NOTHING:
            parsed.flags.append((name, None))
        elif equals:
            parsed.flags.append((name, value))
        elif at < len(words) and (takes is Takes.VALUE or not _looks_like_flag(words[at])):
            parsed.flags.append((name, words[at]))
            at += 1
        elif takes is Takes.VALUE:
            raise FlagError(f"Option {name} requires an argument")
        else:
            parsed.flags.append((name, None))
    return parsed


def _looks_like_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"
