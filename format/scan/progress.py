"""How an operation tells how far it is: a function that takes the bytes done since it was last called."""

from __future__ import annotations

from collections.abc import Callable

#: Told how many bytes of the sources are done.
Advance = Callable[[int], None]


def no_progress(length_bytes: int) -> None:
    """Where nobody watches."""
