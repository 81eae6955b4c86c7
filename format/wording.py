"""Counts, ranges of offsets and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun, as ``1 log`` or ``1,200 batches``; ``noun`` is in the singular."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def counted_plainly(number: int, noun: str) -> str:
    """The same without separators, as in the messages of findings: ``1200 batches``."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The regular plural of an English noun, as ``logs``, ``batches`` or ``log directories``."""
    if noun.endswith(("s", "x", "tch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def offset_range(first: int, last: int) -> str:
    """The offsets from ``first`` to ``last``, both included, as ``offset 5`` or ``offsets 5 to 9``."""
    return f"offset {first}" if first == last else f"offsets {first} to {last}"


def offsets_are(first: int, last: int) -> str:
    """The same with its verb, as ``offset 5 is`` or ``offsets 5 to 9 are``."""
    return f"{offset_range(first, last)} {'is' if first == last else 'are'}"


def are(number: int) -> str:
    """The verb after a count: ``is`` for 1, else ``are``."""
    return "is" if number == 1 else "are"


def listed(words: Sequence[str]) -> str:
    """One or more words as ``a``, ``a and b`` or ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
