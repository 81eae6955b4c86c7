"""Calls to libraries that may block for minutes: they run in a thread, and are abandoned after 20 seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ANSWER_TIMEOUT_S = 20.0
_abandoned: list[threading.Thread] = []
_silent: set[str] = set()


def bounded(call: Callable[[], T], store: str) -> T:
    """Return or raise what the call does. Raises TimeoutError if it takes too long, and at once for this store then.

    The thread of an abandoned call goes on: see ``has_abandoned_calls``.
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
    return f"{store} did not answer within {ANSWER_TIMEOUT_S:.0f} seconds: no network, no credentials, or no such host"


def has_abandoned_calls() -> bool:
    """Whether an abandoned call still runs: at its exit, the interpreter would wait for the library."""
    return any(thread.is_alive() for thread in _abandoned)
