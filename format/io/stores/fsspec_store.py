"""File systems of fsspec as stores: HDFS, SFTP and all others that obstore does not read."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from format.io.stores.bounded_calls import bounded
from format.io.stores.store import Ranges, RemoteEntry, WrongAddress, checked_size, error_words
from format.wording import installing

T = TypeVar("T")

#: The names of the modification time in the entries of fsspec's file systems.
_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created", "last_modified_time")


def connected(scheme: str, host: str, query: dict[str, str]) -> tuple[FsspecStore, str]:
    """A new store for a scheme, and the path of the host in it.

    Raises ImportError, with the command to install it, for a missing library, WrongAddress for an unknown scheme, and
    the errors of the libraries.
    """
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{scheme}:// is read with fsspec, which is not installed: {installing('remote')}") from None
    name = f"{scheme}://{host}"
    try:
        fsspec.get_filesystem_class(scheme)
        system, root = bounded(lambda: fsspec.core.url_to_fs(f"{name}/", **query), name)
    except ValueError:
        raise WrongAddress(f"no store has the scheme {scheme}: there are s3, gs, abfs, hdfs, https and http") from None
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs a package: {error_words(error)}") from error
    except OSError as error:
        if "libjvm" not in str(error) and "libhdfs" not in str(error):
            raise
        raise OSError(
            f"{error_words(error)}: set JAVA_HOME, HADOOP_HOME and CLASSPATH (hadoop classpath --glob)"
        ) from None
    return FsspecStore(system, name), root.rstrip("/")


class FsspecStore:
    """A file system of fsspec; see the protocol Store."""

    def __init__(self, system: Any, name: str) -> None:
        self._system = system
        self._name = name

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a path."""
        return self._entry(self._call(lambda: self._system.info(inner)))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The entries of a directory, or with ``is_deep`` of everything below it."""

        def listed() -> dict[str, Any]:
            self._system.invalidate_cache()
            found: dict[str, Any] = self._system.find(
                inner, withdirs=True, detail=True, maxdepth=None if is_deep else 1
            )
            if not found and not self._system.isdir(inner):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            return found

        for path, info in self._call(listed).items():
            name = path[len(inner) :].strip("/")
            if name:
                yield name, self._entry(info)

    def _entry(self, info: dict[str, Any]) -> RemoteEntry:
        modified: Any = next(filter(None, map(info.get, _MODIFIED)), None)
        mtime_s = int(modified.timestamp() if hasattr(modified, "timestamp") else _number(modified))
        name = str(info["name"]).rstrip("/").rsplit("/", 1)[-1]
        tag = str(info.get("ETag") or info.get("etag") or info.get("ino") or "")
        is_directory = info["type"] == "directory"
        size_bytes = 0 if is_directory else checked_size(int(info.get("size") or 0))
        return RemoteEntry(name, is_directory, size_bytes, mtime_s, tag)

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open a file; nothing is sent yet."""
        return _File(self, inner)

    def range_of(self, inner: str, length: int, position: int) -> bytes:
        """Read a range of a file; it is shorter at the end of the file."""
        content: bytes = self._call(lambda: self._system.cat_file(inner, start=position, end=position + length))
        return content

    def put(self, file: Path, inner: str) -> None:
        """Write a file with the content of a local one; raises OSError."""
        with _only_os_errors():
            self._system.makedirs(inner.rpartition("/")[0], exist_ok=True)
            self._system.put_file(str(file), inner)

    def writable(self) -> Any:
        """The file system of fsspec."""
        return self._system

    def _call(self, call: Callable[[], T]) -> T:
        with _only_os_errors():
            return bounded(call, self._name)


class _File:
    def __init__(self, store: FsspecStore, inner: str) -> None:
        self._store, self._inner = store, inner

    def read_at(self, length: int, position: int) -> bytes:
        return self._store.range_of(self._inner, length, position)

    def close(self) -> None:
        pass


@contextmanager
def _only_os_errors() -> Iterator[None]:
    """Turn all errors of a library into OSError, since their types are not known."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(error_words(error)) from error


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
