"""Files on other file systems: stores by address, sizes and listings.

obstore reads S3, Google, Azure and web servers, and fsspec all other schemes, if it is installed. Credentials and
endpoints come from the usual environment variables (AWS_ACCESS_KEY_ID, AWS_PROFILE, AWS_ENDPOINT_URL, …) or from the
query of an address (``s3://bucket/kafka?endpoint_override=host:9000&scheme=http``).
"""

from __future__ import annotations

import errno
import math
import os
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from format import layout
from format.errors import FileChanged, InputError, UnreadableFile
from format.io import obstore_store
from format.io.obstore_store import SCHEMES, ObjectStore
from format.io.read_policy import ReadPolicy
from format.io.store import (
    Calls,
    ObjectReplaced,
    Opened,
    RemoteEntry,
    Store,
    WrongAddress,
    checked_size,
    error_words,
    has_listings,
    map_in_threads,
    without_query,
)
from format.limits import MIB
from format.location import Location
from format.wording import installing

T = TypeVar("T")

#: The names of the modification time in the entries of fsspec's file systems.
_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created", "last_modified_time")


def _fsspec_store(scheme: str, host: str, query: dict[str, str], calls: Calls) -> tuple[FsspecStore, str]:
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
        system, root = calls.bounded(lambda: fsspec.core.url_to_fs(f"{name}/", **query), name)
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
    return FsspecStore(system, name, calls), root.rstrip("/")


class FsspecStore:
    """A file system of fsspec; see the protocol Store."""

    def __init__(self, system: Any, name: str, calls: Calls) -> None:
        self._system, self._name, self._calls = system, name, calls

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

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        """Open a file; nothing is sent yet."""
        system = self._system
        return Opened(
            lambda length, position: self._call(
                lambda: bytes(system.cat_file(inner, start=position, end=position + length))
            )
        )

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
            return self._calls.bounded(call, self._name)


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


#: A search fetches aligned blocks: a request takes tens of milliseconds, however small it is.
BLOCK_BYTES = 64 * 1024
_KEPT_BLOCKS = 16
#: Fetches grow up to this size while a file is read in order, and then run ahead of the reader.
MOST_FETCH_BYTES = 8 * MIB
#: A fetch that takes longer makes later ones smaller, so that each ends in time over a slow network.
_LONG_FETCH_S = 5.0
_FETCHES_AHEAD = 2
_AHEAD_FROM_BYTES = MIB
#: Larger reads do not use blocks.
_LARGE_BYTES = 8 * BLOCK_BYTES
#: After this many reads in order, with small gaps between them, each fetch is larger than the read that needs it.
_FIRST_READS = 2


class RemoteFile:
    """A file on another file system, which a ``FileSource`` reads when its path is an address.

    Fetches grow while reads are in order, with or without small gaps. All other reads are answered from blocks, of
    which the last few are kept.
    """

    headers_only = None

    def __init__(self, stores: Stores, path: str) -> None:
        """Open; raises UnreadableFile if it is not a file or cannot be read, FileChanged if it is missing."""
        self.path = path
        self._stores = stores
        try:
            entry = stores.entry_of(path)
            if entry.is_directory:
                raise UnreadableFile("cannot read: not a regular file", Location(path))
            store, inner = stores.store_of(path)
            self._file: Opened | None = store.open(inner, entry)
        except FileNotFoundError as error:
            raise FileChanged("cannot open: the file does not exist, or no longer exists", Location(path)) from error
        except OSError as error:
            raise UnreadableFile(f"cannot open: {error_words(error)}", Location(path)) from error
        except UnreadableFile:
            raise
        except InputError as error:
            raise UnreadableFile(error.message, Location(path)) from error
        self.size_bytes = entry.size_bytes
        self.mtime_ns = entry.mtime_s * 10**9 or time.time_ns()  # some stores do not report it
        # A store has no inodes: time, size and tag identify a file.
        self.device_inode = (entry.mtime_s, zlib.crc32(f"{entry.size_bytes} {entry.tag}".encode()))
        self._blocks: OrderedDict[int, bytes] = OrderedDict()  # by number, the last used at the end
        self._stream, self._stream_position = b"", 0  # the last fetch for reads in order
        self._end = 0  # of the last read
        self._in_order_count = 0  # the number of reads in order up to the last one
        self._fetch_bytes = BLOCK_BYTES
        self._most_fetch_bytes = MOST_FETCH_BYTES
        self._ahead: deque[tuple[int, int, Future[bytes]]] = deque()  # positions and lengths, in order
        self._threads: ThreadPoolExecutor | None = None

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes that were fetched for them."""
        end = min(position + length, self.size_bytes)
        gap, self._end = position - self._end, end
        is_in_order = 0 <= gap <= max(BLOCK_BYTES, self._fetch_bytes // 2)
        self._in_order_count = self._in_order_count + 1 if is_in_order else 0
        if self._stream_position <= position and end <= self._stream_position + len(self._stream):
            return self._stream[position - self._stream_position : end - self._stream_position], 0
        if not is_in_order:
            self._drop_ahead()
            self._stream, self._fetch_bytes = b"", BLOCK_BYTES
        is_large = end - position > _LARGE_BYTES
        if is_large or (self._in_order_count > _FIRST_READS and not self._has_blocks(position, end)):
            got, fetched_bytes = self._from_stream(position, end)
        else:
            got, fetched_bytes = self._from_blocks(position, end)
        self._stores.policy.pace(fetched_bytes)
        return got, fetched_bytes

    def _has_blocks(self, position: int, end: int) -> bool:
        return all(number in self._blocks for number in range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES)))

    def _from_blocks(self, position: int, end: int) -> tuple[bytes, int]:
        """Read from blocks; missing blocks are fetched with one request."""
        numbers = range(position // BLOCK_BYTES, -(-end // BLOCK_BYTES))
        missing = [number for number in numbers if number not in self._blocks]
        fetched_bytes = 0
        if missing:
            first, start = missing[0], missing[0] * BLOCK_BYTES
            content = self._fetch(start, min((missing[-1] + 1) * BLOCK_BYTES, self.size_bytes) - start)
            fetched_bytes = len(content)
            for number in range(first, missing[-1] + 1):
                at = (number - first) * BLOCK_BYTES
                self._blocks[number] = content[at : at + BLOCK_BYTES]
        for number in numbers:
            self._blocks.move_to_end(number)
        joined = b"".join(self._blocks[number] for number in numbers)
        while len(self._blocks) > _KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        start = position - numbers[0] * BLOCK_BYTES if numbers else 0
        return joined[start : start + end - position], fetched_bytes

    def _from_stream(self, position: int, end: int) -> tuple[bytes, int]:
        """Read at or after the end of the last read; what is fetched beyond it is kept for the next one."""
        if self._in_order_count:
            self._fetch_bytes = min(self._fetch_bytes * 2, self._most_bytes())
        stream_end = self._stream_position + len(self._stream)
        if self._stream and self._stream_position <= position <= stream_end:
            pieces, start = [self._stream[position - self._stream_position :]], position
        elif self._ahead and self._ahead[0][0] <= position:
            pieces, start = [], self._ahead[0][0]
        else:
            pieces, start = [self._blocks.get(position // BLOCK_BYTES, b"")[position % BLOCK_BYTES :]], position
        at, fetched_bytes = start + sum(map(len, pieces)), 0
        while at < end:
            piece = self._ahead_at(at)
            if piece is None:
                wanted = max(end - at, self._fetch_bytes if self._in_order_count else 0)
                piece = self._fetch(at, min(wanted, self._most_bytes(), self.size_bytes - at))
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
            fetched_bytes += len(piece)
        if self._fetch_bytes >= _AHEAD_FROM_BYTES:
            self._fetch_ahead(at)
        self._stream, self._stream_position = b"".join(pieces), start
        return self._stream[position - start : end - start], fetched_bytes

    def _most_bytes(self) -> int:
        rate = self._stores.policy.max_bytes_per_s
        most_bytes = self._most_fetch_bytes
        return most_bytes if rate is None else max(BLOCK_BYTES, min(rate // 4, most_bytes))

    def _ahead_at(self, position: int) -> bytes | None:
        """Wait for the fetch ahead that begins at ``position`` and return its bytes; None if there is none."""
        if not self._ahead or self._ahead[0][0] != position:
            self._drop_ahead()
            return None
        return self._ahead.popleft()[2].result()

    def _fetch_ahead(self, position: int) -> None:
        end = self._ahead[-1][0] + self._ahead[-1][1] if self._ahead else position
        while len(self._ahead) < _FETCHES_AHEAD and end < self.size_bytes:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_FETCHES_AHEAD, "read-ahead")
            length = min(self._fetch_bytes, self._most_bytes(), self.size_bytes - end)
            self._ahead.append((end, length, self._threads.submit(self._fetch, end, length)))
            end += length

    def _drop_ahead(self) -> None:
        for _, _, future in self._ahead:
            future.cancel()
        self._ahead.clear()

    def _fetch(self, position: int, length: int) -> bytes:
        if self._file is None:
            raise UnreadableFile("the source was closed", Location(self.path))
        began = time.monotonic()
        try:
            content = self._file.read_at(length, position)
        except FileNotFoundError as error:
            raise FileChanged("read failed: the file no longer exists", Location(self.path)) from error
        except ObjectReplaced as error:
            raise FileChanged(str(error), Location(self.path)) from error
        except OSError as error:
            raise UnreadableFile(
                f"read failed: {error_words(error)}", Location(self.path, position=position, length=length)
            ) from error
        if time.monotonic() - began > _LONG_FETCH_S:
            self._most_fetch_bytes = max(BLOCK_BYTES, length // 2)
        self._stores.count(len(content))
        return content

    def current_size_bytes(self) -> int:
        """The present size of the file; raises UnreadableFile if the store does not report it."""
        try:
            return self._stores.fresh_entry_of(self.path).size_bytes
        except OSError as error:
            raise UnreadableFile(f"cannot access: {error_words(error)}", Location(self.path)) from error

    def close(self) -> None:
        """Release the connection, and end the threads."""
        self._drop_ahead()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None
        if self._file is not None:
            self._file.close()
            self._file = None
        self._stream = b""
        self._blocks.clear()


_PLUGIN = "aiven+"  # prefix of the scheme for objects that Aiven's tiered-storage plugin wrote
#: The most names of a directory that are remembered for look-ups of single files in it.
_MOST_AROUND = 5_000
#: So many names below an address are listed at once where partitions are left to others, or read one after the other.
FEW_NAMES = 20_000
#: A connection that failed is not tried again for this time.
_FAILED_FOR_S = 20.0


class Stores:
    """The stores of a session by address: their options and keys, connections, and what is remembered of listings."""

    def __init__(self, policy: ReadPolicy | None = None) -> None:
        self.policy = policy or ReadPolicy()
        self.calls = Calls()
        self.fetched_bytes = 0
        self._lock = threading.Lock()
        self._queries: dict[tuple[str, str], dict[str, str]] = {}
        self._stores: dict[tuple[str, str], tuple[Store, str]] = {}
        self._hosts: dict[tuple[str, str], str] = {}  # hosts with access keys before their names
        self._failures: dict[tuple[str, str], tuple[float, str]] = {}  # when a connection failed, and why
        self._remembered: dict[str, dict[str, RemoteEntry]] = {}  # names in a directory, by its address
        self._given: dict[str, bool] = {}  # addresses of a command, and whether all below them was listed
        self._absent: dict[str, str] = {}  # addresses that were given or looked up and do not exist, and why
        self._too_large: set[str] = set()  # directories with too many names to be remembered
        self._names_left: int | None = None  # that may be remembered of partitions, None for all

    @property
    def are_given(self) -> bool:
        """Whether a command was given addresses."""
        return bool(self._given)

    def count(self, size_bytes: int) -> None:
        """Count the bytes of one answer; threads call this."""
        with self._lock:
            self.fetched_bytes += size_bytes

    # -- as a tree of files ----------------------------------------------------------------------------------

    def status(self, address: str) -> os.stat_result:
        """The status of a path: size, modification time and type; raises OSError."""
        return self.entry_of(address).stat()

    followed_status = status

    def open(self, address: str) -> RemoteFile:
        """Open a file; raises UnreadableFile and FileChanged."""
        return RemoteFile(self, address)

    # -- addresses -------------------------------------------------------------------------------------------

    def know(self, addresses: Iterable[str]) -> None:
        """Remember the options and keys in these addresses for all paths with the same scheme and host.

        Every process that reads such paths must call this. Texts that are not addresses are ignored.
        """
        for address in addresses:
            if "://" not in address:
                continue
            query = dict(parse_qsl(urlsplit(address).query))
            key, host = _key(without_query(address)), _key(address)[1]
            if host != key[1]:
                self._hosts[key] = host
            if query and self._queries.get(key) != query:
                self._queries[key] = query
                self._stores.pop(key, None)
                self._failures.pop(key, None)

    def known(self) -> tuple[str, ...]:
        """Addresses with all remembered options and keys, for ``know`` in other processes."""
        return tuple(
            f"{scheme}://{self._hosts.get((scheme, host), host)}/?{urlencode(self._queries.get((scheme, host), {}))}"
            for scheme, host in sorted(self._queries.keys() | self._hosts.keys())
        )

    def store_of(self, address: str) -> tuple[Store, str]:
        """The store of an address, and the path in it. Raises InputError."""
        key = _key(address)
        if key not in self._stores:
            tried_at, words = self._failures.get(key, (-math.inf, ""))
            if time.monotonic() - tried_at < _FAILED_FOR_S:
                raise InputError(words, Location(address))
            try:
                self._stores[key] = self._connected(key[0], self._hosts.get(key, key[1]), self._queries.get(key, {}))
            except Exception as error:  # the libraries raise errors of their own
                words = str(error) if isinstance(error, WrongAddress) else f"cannot connect: {error_words(error)}"
                if not isinstance(error, WrongAddress):
                    self._failures[key] = time.monotonic(), words
                raise InputError(words, Location(address)) from error
        store, root = self._stores[key]
        inner = address.partition("://")[2].partition("/")[2]
        return store, f"{root}/{inner}" if inner else root or "/"

    def _connected(self, scheme: str, host: str, query: dict[str, str]) -> tuple[Store, str]:
        """A new store for a scheme and host, and the path of the host in it; raises the errors of the libraries."""
        if scheme.startswith(_PLUGIN):
            from format.io.aiven_store import AivenStore, LocalStore

            if scheme == f"{_PLUGIN}file":
                return AivenStore(LocalStore()), ""
            inner = scheme.removeprefix(_PLUGIN), host
            query = query or self._queries.get(inner, {})
            store, root = self._connected(inner[0], self._hosts.get(inner, host), query)
            return AivenStore(store), root
        if scheme in SCHEMES:
            return obstore_store.connected(scheme, host, query, self.calls)
        return _fsspec_store(scheme, host, query, self.calls)

    def writable_store(self, address: str) -> tuple[Any, str]:
        """pyarrow's file system for an address, and the path in it: that of reports. Raises InputError."""
        store, path = self._writable(address)
        try:
            from pyarrow import fs

            system = store.writable()
        except (ImportError, OSError) as error:
            raise InputError(f"cannot be written to: {error_words(error)}", Location(address)) from error
        if isinstance(store, ObjectStore):  # its paths begin with the bucket
            path = f"{store.bucket}/{path.strip('/')}".rstrip("/")
        return fs.PyFileSystem(fs.FSSpecHandler(system)), path

    def upload(self, file: Path, address: str) -> None:
        """Write a local file to an address, in place of what is there. Raises InputError and OSError."""
        store, path = self._writable(address)
        store.put(file, path)

    def _writable(self, address: str) -> tuple[ObjectStore | FsspecStore, str]:
        store, path = self.store_of(address)
        if not isinstance(store, (ObjectStore, FsspecStore)):
            raise InputError("what Aiven's plugin wrote is only read", Location(address))
        return store, path

    # -- entries and listings ---------------------------------------------------------------------------------

    def entry_of(self, address: str) -> RemoteEntry:
        """The entry of a path, from a remembered listing if there is one; raises OSError."""
        path = address.rstrip("/")
        if path.startswith(_PLUGIN):  # a listing has the plugin's objects, not the files made from them
            return self.fresh_entry_of(address)
        self._list_given(path)
        parent, _, name = path.rpartition("/")
        if parent not in self._remembered and self._given and not parent.endswith("/"):
            self._remember_around(parent)
        if path in self._remembered:
            return RemoteEntry(name, True, 0, 0)
        if parent in self._remembered:
            found = self._remembered[parent].get(name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, self._absent.get(parent) or os.strerror(errno.ENOENT))
            return found
        if path in self._absent:
            raise FileNotFoundError(errno.ENOENT, self._absent[path])
        store, inner = self._reached(address)
        try:
            return store.entry(inner)
        except FileNotFoundError as error:
            if self._given:
                self._absent[path] = error.strerror or error_words(error)
            raise

    def fresh_entry_of(self, address: str) -> RemoteEntry:
        """The entry of a path as the store has it now; raises OSError."""
        store, inner = self._reached(address)
        return store.entry(inner)

    def why_absent(self, address: str) -> str:
        """What the store says of an address that does not exist, such as that there is no bucket; may be empty."""
        path = address.rstrip("/")
        words = self._absent.get(path) or self._absent.get(path.rpartition("/")[0], "")
        if not self._given:  # so nothing is remembered
            try:
                self.fresh_entry_of(address)
            except OSError as error:
                words = error.strerror or ""
        return "" if words == os.strerror(errno.ENOENT) else words.removeprefix(os.strerror(errno.ENOENT)).lstrip("; ")

    @contextmanager
    def listing(self, address: str) -> Iterator[Iterable[RemoteEntry]]:
        """The entries of a directory; raises OSError, as os.scandir does."""
        directory = address.rstrip("/")
        self._list_given(directory)
        if directory in self._absent:
            raise FileNotFoundError(errno.ENOENT, self._absent[directory])
        if directory not in self._remembered:
            store, inner = self._reached(address)
            names = {name: entry for name, entry in store.entries(inner, False) if "/" not in name}
            if not self._given:
                yield list(names.values())
                return
            if self._names_left is not None and any(map(layout.SEGMENT_FILE.match, names)):
                yield list(names.values())
                return
            self._remembered[directory] = names
        yield list(self._remembered[directory].values())

    def _reached(self, address: str) -> tuple[Store, str]:
        try:
            return self.store_of(address)
        except InputError as error:
            if isinstance(error.__cause__, WrongAddress):
                raise error.__cause__ from error
            raise OSError(error.message) from error

    def give(self, addresses: Iterable[str]) -> None:
        """Remember listings at, below and around these addresses, for a command that reads them once.

        Everything below an address is listed when the first name there is looked up.
        """
        self.know(addresses)
        for address in addresses:
            path = without_query(address).rstrip("/")
            name = path.rpartition("/")[2]
            is_file = layout.SEGMENT_FILE.match(name) is not None or name in layout.LOG_DIR_FILES
            self._given.setdefault(path, is_file)

    def remember_less(self) -> None:
        """Remember the names of partitions only if there are few, for a command that leaves partitions to others."""
        self._names_left = FEW_NAMES

    def _list_given(self, path: str) -> None:
        """List everything below the given address that ``path`` is at or below, if that was not done before."""
        for top, is_listed in self._given.items():
            if not is_listed and (path == top or path.startswith(f"{top}/")):
                self._given[top] = True
                if self._names_left != 0:
                    found = self._listed_below(top, self._names_left)
                    self._remembered.update(found)
                    if self._names_left is not None:
                        self._names_left = max(self._names_left - sum(map(len, found.values())), 0) if found else 0

    def _remember_around(self, directory: str) -> None:
        """Remember the names in the directory of a file, unless they are many: a listing costs as much as a look-up."""
        if directory in self._too_large or "/" not in directory.partition("://")[2]:
            return
        try:
            store, inner = self._reached(directory)
            if not has_listings(directory):
                return
            names = dict(islice(store.entries(inner, False), _MOST_AROUND))
        except FileNotFoundError as error:  # so nothing is in it either
            self._absent[directory], self._remembered[directory] = error.strerror or error_words(error), {}
            return
        except OSError:
            self._too_large.add(directory)
            return
        if len(names) == _MOST_AROUND:
            self._too_large.add(directory)
        else:
            self._remembered[directory] = names

    @contextmanager
    def listed_at_once(self, address: str) -> Iterator[None]:
        """List everything below a directory at once, and use that listing while the context lasts.

        A store returns a thousand names per request, so this takes a few requests instead of one per directory. If that
        fails, each directory is listed by itself.
        """
        with closing(self.listed_in_turn((address,))) as turns:
            next(turns)
            yield

    def listed_in_turn(self, addresses: Iterable[str], most_names: int | None = None) -> Generator[bool, None, None]:
        """List everything below directories: each listing is used until the next one is requested.

        Some of the next ones are listed meanwhile. Whether a directory was listed is yielded: not if that fails, or if
        there are more names than ``most_names``.
        """
        listed = partial(self._listed_below, most_names=most_names)
        for found in map_in_threads(listed, (address.rstrip("/") for address in addresses)):
            self._remembered.update(found)
            try:
                yield bool(found)
            finally:
                for directory in found:
                    self._remembered.pop(directory, None)

    def _listed_below(self, top: str, most_names: int | None) -> dict[str, dict[str, RemoteEntry]]:
        """The names in each directory at or below ``top``; empty if listing fails or there are too many names."""
        found: dict[str, dict[str, RemoteEntry]] = {top: {}}
        try:
            store, inner = self.store_of(top)
            for count, (path, entry) in enumerate(store.entries(inner, True)):
                if count == most_names:
                    return {}
                parent, _, name = path.rpartition("/")
                found.setdefault(f"{top}/{parent}" if parent else top, {})[name] = entry
                if entry.is_directory:
                    found.setdefault(f"{top}/{path}", {})
        except (OSError, InputError):
            return {}
        return found


def _key(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    return scheme.lower(), rest.split("/", 1)[0].split("?", 1)[0]
