"""Counts and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """A number with its noun, as ``1 log`` or ``1,200 logs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """One or more words as ``a``, ``a and b`` or ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
