"""Calls into libraries that may block for minutes: they run in a thread, and are given up after half a minute."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ANSWER_TIMEOUT_S = 20.0
_abandoned: list[threading.Thread] = []
_silent: set[str] = set()


def bounded(call: Callable[[], T], store: str) -> T:
    """What the call returns or raises; raises TimeoutError if it takes too long, and at once for the same store again.

    The thread of a call that was given up goes on: see ``has_abandoned_calls``.
    """
    if store in _silent:
        raise TimeoutError(_words(store))
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="store")
    thread.start()
    thread.join(ANSWER_TIMEOUT_S)
    if thread.is_alive():
        _abandoned.append(thread)
        _silent.add(store)
        raise TimeoutError(_words(store))
    if errors:
        raise errors[0]
    return results[0]


def _words(store: str) -> str:
    return f"{store} gave no answer within {ANSWER_TIMEOUT_S:.0f} seconds: no network, no credentials, or no such host"


def has_abandoned_calls() -> bool:
    """Whether a call that was given up still runs: the interpreter would wait for its library at the end."""
    return any(thread.is_alive() for thread in _abandoned)
