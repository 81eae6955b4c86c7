"""Calls that end in time: a call into a library runs in a thread, and is given up when it takes too long.

The main thread waits for that thread, so it can still be interrupted. A call that was given up goes on in its thread,
which does not keep the process from exiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The time of one call, with all attempts: a read of up to 8 MiB, the status of a name, or a page of a listing.
LONGEST_CALL_S = 30.0
_silent: set[str] = set()


def bounded(call: Callable[[], T], store: str) -> T:
    """Return or raise what the call does. Raises TimeoutError if it takes too long, and at once for this store then."""
    if store in _silent:
        raise TimeoutError(_words(store))
    results: list[T] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(call())
        except Exception as error:
            errors.append(error)
        except BaseException as error:  # a library in Rust has given up: its panic is no Exception
            errors.append(OSError(f"the library of the store failed: {error}"))

    thread = threading.Thread(target=run, daemon=True, name="store")
    thread.start()
    thread.join(LONGEST_CALL_S)
    if thread.is_alive():
        _silent.add(store)
        raise TimeoutError(_words(store))
    if errors:
        raise errors[0]
    return results[0]


def forget() -> None:
    """Ask stores again that were given up."""
    _silent.clear()


def _words(store: str) -> str:
    return f"{store} did not answer within {LONGEST_CALL_S:.0f} seconds: no network, no credentials, or no such host"
