"""The bundles that a command opened, and the paths in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from format.io.bundles.schemas import RecordedDamage


class StoredFile(Protocol):
    """A remote or bundled file, read by ranges.

    ``read`` returns the bytes, and how many bytes were fetched for them.
    """

    size_bytes: int
    mtime_ns: int
    device_inode: tuple[int, int]

    def read(self, length: int, position: int) -> tuple[bytes, int]: ...
    def current_size_bytes(self) -> int: ...
    def close(self) -> None: ...


class BundledFile(StoredFile, Protocol):
    """A file in a bundle: whole, or with ``has_only_headers`` a log of batch headers with zeros between them.

    ``damage`` are the places, by position, where no batch was found when the bundle was made. ``outline`` returns the
    offsets and timestamps of the records of a batch, if the bundle has them: none for a batch with a wrong CRC whose
    records can be read. ``stored_bytes`` is how many bytes from a position on the bundle contains. ``crc_valid``
    returns the result of verify at that time for batches at some positions: 1 valid, 0 wrong, -1 unknown, and
    ``has_bad_records`` whether the CRC is right and the records could not be read. ``inner_offsets`` returns the first
    offset and the number of the records in compressed v0/v1 messages, -1 for unknown.
    """

    has_only_headers: bool

    @property
    def damage(self) -> Mapping[int, RecordedDamage]: ...
    def outline(self, position: int) -> tuple[list[int], list[int]] | None: ...
    def outlined_offset(self, timestamp: int) -> int | None: ...
    def inner_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]: ...
    def next_header(self, position: int) -> int: ...
    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]: ...
    def has_bad_records(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]: ...
    def stored_bytes(self, position: int) -> int: ...


class OpenedBundle(Protocol):
    """A bundle as a tree of files and directories, which have paths relative to its root."""

    def status(self, inner: str) -> os.stat_result: ...
    def followed_status(self, inner: str) -> os.stat_result: ...
    def listing(self, inner: str) -> AbstractContextManager[Iterable[Any]]: ...
    def open(self, inner: str) -> BundledFile: ...
    def lock_holder(self, inner: str) -> int | None: ...


_opened: dict[str, OpenedBundle] = {}


def add(path: str, bundle: OpenedBundle) -> None:
    """Read paths at and below this one from the bundle from now on."""
    _opened[path] = bundle


def forget() -> None:
    """Close all bundles."""
    _opened.clear()


def are_opened() -> bool:
    """Whether a bundle is open."""
    return bool(_opened)


def bundle_of(path: str) -> tuple[str, OpenedBundle, str] | None:
    """The bundle that contains a path: its own path, the bundle, and the path in it. None for paths in no bundle."""
    for bundle_path, bundle in _opened.items():
        if path.startswith(bundle_path) and path[len(bundle_path) : len(bundle_path) + 1] in ("", "/"):
            return bundle_path, bundle, path[len(bundle_path) + 1 :]
    return None
