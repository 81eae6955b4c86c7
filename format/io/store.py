"""The interface of a store, its addresses, and calls into its library that end in time."""

from __future__ import annotations

import os
import re
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import msgspec

T = TypeVar("T")
ItemT = TypeVar("ItemT")
ValueT = TypeVar("ValueT")


class RemoteEntry(msgspec.Struct, frozen=True):
    """A store's entry for one name; times are whole seconds, since some stores return no fractions."""

    name: str
    is_directory: bool
    size_bytes: int
    mtime_s: int
    tag: str = ""  # of the content (ETag), if the store has tags

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return not self.is_directory

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status, with the mode of a readable file or directory."""
        mode = stat.S_IFDIR | 0o555 if self.is_directory else stat.S_IFREG | 0o444
        times = (self.mtime_s, self.mtime_s, self.mtime_s)
        nanoseconds = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), self.mtime_s * 10**9)
        return os.stat_result((mode, 0, 0, 1, 0, 0, self.size_bytes, *times), nanoseconds)


class Opened(msgspec.Struct, frozen=True):
    """An object opened for reading by ranges.

    Several threads may call ``read_at``, with a length and a position. It raises OSError.
    """

    read_at: Callable[[int, int], bytes]
    close: Callable[[], None] = lambda: None


class Store(Protocol):
    """One bucket, container or server. All methods raise OSError, and FileNotFoundError for a missing name."""

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a path in the store."""
        ...

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The paths, relative to a directory, and entries of all that is in it, or with ``is_deep`` below it."""
        ...

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        """Open an object; ``entry`` is its entry."""
        ...


#: More bytes than any store holds in one object; offsets beyond it could not be computed with 64 bits.
_MOST_BYTES = 2**60


def checked_size(size_bytes: int) -> int:
    """The size that a store reports; raises OSError if no object can have it."""
    if not 0 <= size_bytes <= _MOST_BYTES:
        raise OSError(f"the store reports a size of {size_bytes} bytes, which no object has")
    return size_bytes


def error_words(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class."""
    if isinstance(error, OSError) and error.errno is not None and str(error.strerror) == os.strerror(error.errno):
        return os.strerror(error.errno)
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class WrongAddress(OSError):
    """The address itself cannot be used: its scheme or an option is unknown."""


class ObjectReplaced(OSError):
    """The object was replaced by another one while it was read."""


_S3_KEYS = re.compile(r"^(s3[an]?://)[^/@]*@", re.IGNORECASE)
_AZURE_KEY = re.compile(r"^(abfss?://[^/@:]*):[^/@]*@", re.IGNORECASE)


def without_query(address: str) -> str:
    """The address without its query, and without access keys before the name of a bucket or account."""
    address = re.sub(r"\?[A-Za-z_]+=.*$", "", address)
    return _S3_KEYS.sub(r"\1", _AZURE_KEY.sub(r"\1@", address))


def has_listings(path: str | os.PathLike[str]) -> bool:
    """Whether directories can be listed where a path is; a web server has only single files."""
    return not os.fspath(path).lower().startswith(("http://", "https://"))


#: Calls to a store that run at once, where many are needed: each takes tens of milliseconds, however little it reads.
CALLS_AT_ONCE = 16


def processor_count() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(
    call: Callable[[ItemT], ValueT],
    items: Iterable[ItemT],
    count: int = CALLS_AT_ONCE,
    ahead: Callable[[], int] | None = None,
) -> Iterator[ValueT]:
    """The results of a call for each item, in order. The calls for the next items run already, ``count`` at once.

    ``ahead`` says for how many items calls may run or have results that wait, as many as run at once without it.
    """
    threads = ThreadPoolExecutor(count, "near")
    try:
        waiting: deque[Future[ValueT]] = deque()
        for item in items:
            waiting.append(threads.submit(call, item))
            while len(waiting) > (count if ahead is None else ahead()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


# -- calls that end in time ----------------------------------------------------------------------------------

#: The time of one call, with all attempts: a read of up to 8 MiB, the status of a name, a page or a directory.
LONGEST_CALL_S = 30.0
#: The time between two looks at a call that runs.
LOOK_S = 0.1


class Calls:
    """Calls into the libraries of stores. Each runs in a thread, and is given up when it takes too long.

    The main thread waits for that thread, so it can still be interrupted. A call that was given up goes on in its
    thread, which does not keep the process from exiting; its store is not called again.
    """

    def __init__(self) -> None:
        self._given_up: dict[str, str] = {}  # the reasons, by the name of the store

    def has_given_up(self, store: str) -> bool:
        """Whether a call to this store has taken too long, or too much memory."""
        return store in self._given_up

    def bounded(
        self, call: Callable[[], T], store: str, most_bytes: int | None = None, listing_s: float | None = None
    ) -> T:
        """Return or raise what the call does.

        Raises TimeoutError if it takes too long, or if the process grows by more than ``most_bytes`` meanwhile; and at
        once for this store then. ``listing_s`` is the time of the call if it lists a directory with all its pages.
        """
        if store in self._given_up:
            raise TimeoutError(self._given_up[store])
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
            left_s = began + (listing_s or LONGEST_CALL_S) - time.monotonic()
            if left_s <= 0 and listing_s is not None:
                self._given_up[store] = listing_too_long(listing_s)
            elif left_s <= 0:
                self._given_up[store] = (
                    f"{store} did not answer within {LONGEST_CALL_S:.0f} seconds: "
                    "no network, no credentials, or no such host"
                )
            elif most_bytes is not None and _largest_size_bytes() - size_before > most_bytes:
                self._given_up[store] = f"the answer of {store} is larger than any that a sound store gives"
            if store in self._given_up:
                raise TimeoutError(self._given_up[store])
            thread.join(left_s if most_bytes is None else min(left_s, LOOK_S))
        if errors:
            raise errors[0]
        return results[0]


def listing_too_long(longest_s: float) -> str:
    """The message for a directory with too many pages."""
    return f"the listing took more than {longest_s:.0f} seconds: give a directory further down"


def _largest_size_bytes() -> int:
    """The most memory that this process has had."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
