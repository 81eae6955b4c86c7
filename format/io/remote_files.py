"""Files on other file systems: connections by address, sizes and listings, and files that are read by ranges.

pyarrow's file systems come first (s3, gs, abfs, hdfs); for any other scheme fsspec is asked, where it is installed.
Credentials and endpoints come from the usual environment (AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL, …) or
from the query behind an address (``s3://bucket/kafka?endpoint_override=host:9000&scheme=http``).
"""

from __future__ import annotations

import errno
import os
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from format.errors import FileChanged, InputError, UnreadableFile
from format.io.s3_connection import connected_s3
from format.limits import MIB
from format.location import Location
from format.value_class import value_class

#: The smallest fetch: a request takes tens of milliseconds, however small it is.
_LEAST_FETCH_BYTES = MIB
_GCS_RETRY_S = 10
#: The names that fsspec's file systems use for a file's modification time.
_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


@value_class
class RemoteEntry:
    """A store's entry for one name; times are whole seconds, since some store interfaces return no fractions."""

    name: str
    is_directory: bool
    size_bytes: int
    mtime_s: int
    tag: str = ""  # of the content, where the store has one

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory."""
        return self.is_directory

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return not self.is_directory

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status, with the mode of a readable file."""
        mode = stat.S_IFDIR | 0o555 if self.is_directory else stat.S_IFREG | 0o444
        times = (self.mtime_s, self.mtime_s, self.mtime_s)
        nanoseconds = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), self.mtime_s * 10**9)
        return os.stat_result((mode, 0, 0, 1, 0, 0, self.size_bytes, *times), nanoseconds)


class _Ranges(Protocol):
    def read_at(self, length: int, position: int) -> bytes: ...

    def close(self) -> None: ...


# -- addresses -----------------------------------------------------------------------------------------------

_queries: dict[tuple[str, str], dict[str, str]] = {}
_stores: dict[tuple[str, str], tuple[_ArrowStore | _FsspecStore, str]] = {}
_remembered: dict[str, dict[str, RemoteEntry]] = {}  # names in a directory, by its address


def know(addresses: Iterable[str]) -> None:
    """Remember the options in these addresses for all paths with the same scheme and host.

    Every process that reads such paths must call this. Texts that are not such addresses are ignored.
    """
    for address in addresses:
        query = dict(parse_qsl(urlsplit(address).query)) if "://" in address else {}
        if query:
            key = _key(address)
            if _queries.get(key) != query:
                _queries[key] = query
                _stores.pop(key, None)


def known() -> tuple[str, ...]:
    """Addresses with options, to be passed to ``know`` in other processes."""
    return tuple(f"{scheme}://{host}/?{urlencode(query)}" for (scheme, host), query in sorted(_queries.items()))


def _key(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    return scheme.lower(), rest.split("/", 1)[0].split("?", 1)[0]


def _store_of(address: str) -> tuple[_ArrowStore | _FsspecStore, str]:
    """The connected file system of an address, and the path in it."""
    key = _key(address)
    if key not in _stores:
        try:
            _stores[key] = _connected(*key, _queries.get(key, {}))
        except Exception as error:  # the libraries raise errors of their own
            raise InputError(f"cannot connect: {_words(error)}", Location(address)) from error
    store, root = _stores[key]
    inner = address.partition("://")[2].partition("/")[2]
    return store, f"{root}/{inner}" if inner else root or "/"


def writable_store(address: str) -> tuple[Any, str]:
    """pyarrow's file system of an address, and the path in it, to write reports to. Raises InputError."""
    from pyarrow import fs

    store, inner = _store_of(address)
    if isinstance(store, _FsspecStore):
        return fs.PyFileSystem(fs.FSSpecHandler(store.system)), inner
    return store.system, inner


def _connected(scheme: str, host: str, query: dict[str, str]) -> tuple[_ArrowStore | _FsspecStore, str]:
    try:
        from pyarrow import ArrowInvalid, fs
    except ImportError:
        raise ImportError("pyarrow is not installed: pip install 'kafkalog[arrow]'") from None
    if scheme in ("s3", "s3a", "s3n"):
        system, root = connected_s3(host, query)
        return _ArrowStore(system, fs), root
    if scheme in ("gs", "gcs"):
        return _ArrowStore(_connected_gcs(fs, query), fs), host
    words = f"?{urlencode(query)}" if query else ""
    try:
        system, root = fs.FileSystem.from_uri(f"{scheme}://{host}/{words}")
    except ArrowInvalid as error:
        if "nrecognized" not in str(error):
            raise
        return _connected_by_fsspec(scheme, host, query)
    return _ArrowStore(system, fs), root.rstrip("/")


def _connected_gcs(fs: Any, query: dict[str, str]) -> Any:
    """Google's store, which is asked again for half a minute at the most, and not for a quarter of an hour."""
    options: dict[str, Any] = dict(query)
    if options.pop("anonymous", "false") == "true":
        options["anonymous"] = True
    return fs.GcsFileSystem(**options, retry_time_limit=timedelta(seconds=_GCS_RETRY_S))


def _connected_by_fsspec(scheme: str, host: str, query: dict[str, str]) -> tuple[_ArrowStore | _FsspecStore, str]:
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"pyarrow knows no scheme {scheme}, and fsspec, which may, is not installed") from None
    system, root = fsspec.core.url_to_fs(f"{scheme}://{host}/", **query)
    return _FsspecStore(system), root.rstrip("/")


# -- the two kinds of file systems: their methods raise OSError, and FileNotFoundError for a missing path ------


class _ArrowStore:
    def __init__(self, system: Any, fs: Any) -> None:
        self.system = system
        self._fs = fs

    def entry(self, inner: str) -> RemoteEntry:
        with _only_os_errors():
            info = self.system.get_file_info(inner)
        if info.type == self._fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._entry(info)

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        with _only_os_errors():
            found = self.system.get_file_info(self._fs.FileSelector(inner, recursive=is_deep))
        for info in found:
            yield info.path[len(inner) :].strip("/"), self._entry(info)

    def _entry(self, info: Any) -> RemoteEntry:
        is_directory = info.type == self._fs.FileType.Directory
        return RemoteEntry(info.base_name, is_directory, info.size or 0, (info.mtime_ns or 0) // 10**9)

    def open(self, inner: str) -> _Ranges:
        opened: _Ranges = self.system.open_input_file(inner)
        return opened


class _FsspecStore:
    def __init__(self, system: Any) -> None:
        self.system = system

    def entry(self, inner: str) -> RemoteEntry:
        with _only_os_errors():
            return self._entry(self.system.info(inner))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        with _only_os_errors():
            self.system.invalidate_cache()
            found = self.system.find(inner, withdirs=True, detail=True, maxdepth=None if is_deep else 1)
            if not found and not self.system.isdir(inner):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        for path, info in found.items():
            name = path[len(inner) :].strip("/")
            if name:
                yield name, self._entry(info)

    def _entry(self, info: dict[str, Any]) -> RemoteEntry:
        modified: Any = next(filter(None, map(info.get, _MODIFIED)), None)
        mtime_s = int(modified.timestamp() if hasattr(modified, "timestamp") else _number(modified))
        name = str(info["name"]).rstrip("/").rsplit("/", 1)[-1]
        tag = str(info.get("ETag") or info.get("etag") or info.get("ino") or "")
        return RemoteEntry(name, info["type"] == "directory", int(info.get("size") or 0), mtime_s, tag)

    def open(self, inner: str) -> _Ranges:
        return _FsspecRanges(self.system, inner)


@dataclass(slots=True)
class _FsspecRanges:
    system: Any
    inner: str

    def read_at(self, length: int, position: int) -> bytes:
        with _only_os_errors():
            got: bytes = self.system.cat_file(self.inner, start=position, end=position + length)
            return got

    def close(self) -> None:
        pass


@contextmanager
def _only_os_errors() -> Iterator[None]:
    """Turn every error of the libraries below fsspec into an OSError, since their types are not known."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(_words(error)) from error


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def _words(error: BaseException) -> str:
    """The first line of an error, as one sentence."""
    if isinstance(error, OSError) and error.errno is not None and str(error.strerror) == os.strerror(error.errno):
        return os.strerror(error.errno)
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


# -- status and listings -------------------------------------------------------------------------------------


def status_of(address: str) -> os.stat_result:
    """The size, time and type of a path; raises OSError."""
    return _entry_of(address).stat()


def _entry_of(address: str) -> RemoteEntry:
    parent, _, name = address.rstrip("/").rpartition("/")
    if parent in _remembered:
        found = _remembered[parent].get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return found
    try:
        store, inner = _store_of(address)
    except InputError as error:
        raise OSError(error.message) from error
    return store.entry(inner)


@contextmanager
def listing(address: str) -> Iterator[Iterable[RemoteEntry]]:
    """The entries of a directory; raises OSError, as os.scandir does."""
    directory = address.rstrip("/")
    if directory in _remembered:
        yield list(_remembered[directory].values())
        return
    try:
        store, inner = _store_of(address)
    except InputError as error:
        raise OSError(error.message) from error
    yield [entry for name, entry in store.entries(inner, False) if "/" not in name]


@contextmanager
def listed_at_once(address: str) -> Iterator[None]:
    """List everything below a directory at once, and use that listing while the context lasts.

    A store returns a thousand names per request, so this takes a few requests instead of one per directory. If it
    fails, each directory is listed by itself.
    """
    top = address.rstrip("/")
    found: dict[str, dict[str, RemoteEntry]] = {top: {}}
    try:
        store, inner = _store_of(address)
        for path, entry in store.entries(inner, True):
            parent, _, name = path.rpartition("/")
            found.setdefault(f"{top}/{parent}" if parent else top, {})[name] = entry
            if entry.is_directory:
                found.setdefault(f"{top}/{path}", {})
    except (OSError, InputError):
        found = {}
    _remembered.update(found)
    try:
        yield
    finally:
        for directory in found:
            _remembered.pop(directory, None)


# -- reading -------------------------------------------------------------------------------------------------


class RemoteFile:
    """A file on another file system, read in ranges of at least 1 MiB.

    A ``FileSource`` reads from it when its path is an address.
    """

    __slots__ = ("_ahead", "_ahead_position", "_file", "device_inode", "mtime_ns", "path", "size_bytes")

    def __init__(self, path: str) -> None:
        """Open; raises UnreadableFile if it is not a file or cannot be read, FileChanged if it is missing."""
        self.path = path
        self._ahead, self._ahead_position = b"", 0
        try:
            store, inner = _store_of(path)
            entry = store.entry(inner)
            if entry.is_directory:
                raise UnreadableFile("cannot read: not a regular file", Location(path))
            self._file: _Ranges | None = store.open(inner)
        except FileNotFoundError as error:
            raise FileChanged("cannot open: the file is not there, or not any more", Location(path)) from error
        except OSError as error:
            raise UnreadableFile(f"cannot open: {_words(error)}", Location(path)) from error
        except InputError as error:
            raise UnreadableFile(error.message, Location(path)) from error
        self.size_bytes = entry.size_bytes
        self.mtime_ns = entry.mtime_s * 10**9 or time.time_ns()  # some stores do not report it
        # A store has no inodes: a file is another one when its time, size or tag is.
        self.device_inode = (entry.mtime_s, zlib.crc32(f"{entry.size_bytes} {entry.tag}".encode()))

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Up to ``length`` bytes from ``position``, and how many were fetched: these differ when reading ahead."""
        ahead = position - self._ahead_position
        if ahead >= 0 and ahead + length <= len(self._ahead):
            return self._ahead[ahead : ahead + length], 0
        if length >= _LEAST_FETCH_BYTES:
            got = self._fetch(position, length)
            return got, len(got)
        self._ahead = self._fetch(position, min(_LEAST_FETCH_BYTES, self.size_bytes - position))
        self._ahead_position = position
        return self._ahead[:length], len(self._ahead)

    def _fetch(self, position: int, length: int) -> bytes:
        if self._file is None:
            raise UnreadableFile("the source was closed", Location(self.path))
        try:
            return self._file.read_at(length, position)
        except FileNotFoundError as error:
            raise FileChanged("read failed: the file is not there any more", Location(self.path)) from error
        except OSError as error:
            raise UnreadableFile(
                f"read failed: {_words(error)}", Location(self.path, position=position, length=length)
            ) from error

    def current_size_bytes(self) -> int:
        """The file's size now; raises UnreadableFile if the store does not report it."""
        try:
            return status_of(self.path).st_size
        except OSError as error:
            raise UnreadableFile(f"cannot look: {_words(error)}", Location(self.path)) from error

    def close(self) -> None:
        """Release the connection."""
        if self._file is not None:
            self._file.close()
            self._file = None
