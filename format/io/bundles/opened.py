"""The bundles that a command was given, and which paths lie in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class StoredFile(Protocol):
    """A file that is read by ranges from where it is stored."""

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    def read(self, length: int, position: int) -> tuple[bytes, int]: ...
    def current_size_bytes(self) -> int: ...
    def close(self) -> None: ...


class BundledFile(StoredFile, Protocol):
    """A file in a bundle. Of a log in ``headers`` only the batch headers are there, and zeros between them.

    ``damage`` are the places where no batch starts, as they were found when the headers were read; ``outline`` returns
    the offsets and timestamps of the records of a batch, where the bundle has them, and ``stored_bytes`` how many bytes
    from a position on are those of the source. ``crc_valid`` says of batches at some positions what verify found when
    the bundle was made: 1 valid, 0 not, -1 unknown.
    """

    has_only_headers: bool

    @property
    def damage(self) -> Mapping[int, Mapping[str, Any]]: ...
    def outline(self, position: int) -> tuple[list[int], list[int]] | None: ...
    def outlined_offset(self, timestamp: int) -> int | None: ...
    def next_header(self, position: int) -> int: ...
    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]: ...
    def stored_bytes(self, position: int) -> int: ...


class OpenedBundle(Protocol):
    """A bundle as a tree of files and directories, by paths below its root."""

    def status(self, inner: str) -> os.stat_result: ...
    def followed_status(self, inner: str) -> os.stat_result: ...
    def listing(self, inner: str) -> AbstractContextManager[Iterable[Any]]: ...
    def open(self, inner: str) -> BundledFile: ...
    def lock_holder(self, inner: str) -> int | None: ...


_opened: dict[str, OpenedBundle] = {}


def add(path: str, bundle: OpenedBundle) -> None:
    """Paths at and below this one are read from the bundle from now on."""
    _opened[path] = bundle


def forget() -> None:
    """Close all bundles."""
    _opened.clear()


def are_opened() -> bool:
    """Whether a command was given a bundle."""
    return bool(_opened)


def opened_at(path: str) -> OpenedBundle | None:
    """The bundle that was opened at a path."""
    return _opened.get(path)


def bundle_of(path: str) -> tuple[str, OpenedBundle, str] | None:
    """The bundle that a path lies in, with its own path before it and the path inside behind it; None for others."""
    for own, bundle in _opened.items():
        if path.startswith(own) and path[len(own) : len(own) + 1] in ("", "/"):
            return own, bundle, path[len(own) + 1 :]
    return None
