"""Calls that end in time: a call into a library runs in a thread, and is given up when it takes too long.

The main thread waits for that thread, so it can still be interrupted. A call that was given up goes on in its thread,
which does not keep the process from exiting.
"""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The time of one call, with all attempts: a read of up to 8 MiB, the status of a name, or a page of a listing.
LONGEST_CALL_S = 30.0
_LOOK_S = 0.1  # at the memory
_given_up: dict[str, str] = {}  # why no call is made to a store any more


def bounded(call: Callable[[], T], store: str, most_bytes: int | None = None) -> T:
    """Return or raise what the call does.

    Raises TimeoutError if it takes too long, or if the process grows by more than ``most_bytes`` meanwhile; and at once
    for this store then.
    """
    if store in _given_up:
        raise TimeoutError(_given_up[store])
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
    began, size_before = time.monotonic(), _largest_size_bytes()
    thread.start()
    while thread.is_alive():
        left_s = began + LONGEST_CALL_S - time.monotonic()
        if left_s <= 0:
            _given_up[store] = (
                f"{store} did not answer within {LONGEST_CALL_S:.0f} seconds: "
                "no network, no credentials, or no such host"
            )
        elif most_bytes is not None and _largest_size_bytes() - size_before > most_bytes:
            _given_up[store] = f"the answer of {store} is larger than any that a sound store gives"
        if store in _given_up:
            raise TimeoutError(_given_up[store])
        thread.join(left_s if most_bytes is None else min(left_s, _LOOK_S))
    if errors:
        raise errors[0]
    return results[0]


def forget() -> None:
    """Ask stores again that were given up."""
    _given_up.clear()


def _largest_size_bytes() -> int:
    """The most memory that this process has had."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
