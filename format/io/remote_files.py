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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from format import layout
from format.errors import InputError
from format.io.addresses import has_listings, without_query
from format.io.stores import bounded_calls, fsspec_store, obstore_store
from format.io.stores.fsspec_store import FsspecStore
from format.io.stores.obstore_store import SCHEMES, ObjectStore
from format.io.stores.store import RemoteEntry, Store, WrongAddress, error_words
from format.location import Location

_PLUGIN = "aiven+"  # prefix of the scheme for objects that Aiven's tiered-storage plugin wrote
#: The most names of a directory that are remembered for look-ups of single files in it.
_MOST_AROUND = 5_000
#: A connection that failed is not tried again for this time.
_FAILED_FOR_S = 20.0


# -- addresses -----------------------------------------------------------------------------------------------

_queries: dict[tuple[str, str], dict[str, str]] = {}
_stores: dict[tuple[str, str], tuple[Store, str]] = {}
_hosts: dict[tuple[str, str], str] = {}  # hosts with access keys before their names
_failures: dict[tuple[str, str], tuple[float, str]] = {}  # when a connection failed, and why
_remembered: dict[str, dict[str, RemoteEntry]] = {}  # names in a directory, by its address
_given: dict[str, bool] = {}  # addresses that a command was given, and whether everything below them was listed
_absent: dict[str, str] = {}  # addresses that a command was given or looked up and that do not exist, and why
_too_large: set[str] = set()  # directories with too many names to be remembered


class _Fetched:
    """The bytes that this process read from stores."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self._lock = threading.Lock()

    def add(self, size_bytes: int) -> None:
        """Count the bytes of one answer."""
        with self._lock:
            self.size_bytes += size_bytes


fetched = _Fetched()


def know(addresses: Iterable[str]) -> None:
    """Remember the options and keys in these addresses for all paths with the same scheme and host.

    Every process that reads such paths must call this. Texts that are not addresses are ignored.
    """
    for address in addresses:
        if "://" not in address:
            continue
        query = dict(parse_qsl(urlsplit(address).query))
        key, host = _key(without_query(address)), _key(address)[1]
        if host != key[1]:
            _hosts[key] = host
        if query and _queries.get(key) != query:
            _queries[key] = query
            _stores.pop(key, None)
            _failures.pop(key, None)


def known() -> tuple[str, ...]:
    """Addresses with all remembered options and keys, for ``know`` in other processes."""
    return tuple(
        f"{scheme}://{_hosts.get((scheme, host), host)}/?{urlencode(_queries.get((scheme, host), {}))}"
        for scheme, host in sorted(_queries.keys() | _hosts.keys())
    )


def _key(address: str) -> tuple[str, str]:
    scheme, _, rest = address.partition("://")
    return scheme.lower(), rest.split("/", 1)[0].split("?", 1)[0]


def store_of(address: str) -> tuple[Store, str]:
    """The store of an address, and the path in it. Raises InputError."""
    key = _key(address)
    if key not in _stores:
        tried_at, words = _failures.get(key, (-math.inf, ""))
        if time.monotonic() - tried_at < _FAILED_FOR_S:
            raise InputError(words, Location(address))
        try:
            _stores[key] = _connected(key[0], _hosts.get(key, key[1]), _queries.get(key, {}))
        except Exception as error:  # the libraries raise errors of their own
            words = str(error) if isinstance(error, WrongAddress) else f"cannot connect: {error_words(error)}"
            if not isinstance(error, WrongAddress):
                _failures[key] = time.monotonic(), words
            raise InputError(words, Location(address)) from error
    store, root = _stores[key]
    inner = address.partition("://")[2].partition("/")[2]
    return store, f"{root}/{inner}" if inner else root or "/"


def _connected(scheme: str, host: str, query: dict[str, str]) -> tuple[Store, str]:
    """A new store for a scheme and host, and the path of the host in it; raises the errors of the libraries."""
    if scheme.startswith(_PLUGIN):
        from format.io.stores.aiven_store import AivenStore, LocalStore

        if scheme == f"{_PLUGIN}file":
            return AivenStore(LocalStore()), ""
        inner = scheme.removeprefix(_PLUGIN)
        store, root = _connected(inner, _hosts.get((inner, host), host), query or _queries.get((inner, host), {}))
        return AivenStore(store), root
    if scheme in SCHEMES:
        return obstore_store.connected(scheme, host, query)
    return fsspec_store.connected(scheme, host, query)


def writable_store(address: str) -> tuple[Any, str]:
    """pyarrow's file system for an address, and the path in it: that of reports. Raises InputError."""
    store, path = _writable(address)
    try:
        from pyarrow import fs

        system = store.writable()
    except (ImportError, OSError) as error:
        raise InputError(f"cannot be written to: {error_words(error)}", Location(address)) from error
    if isinstance(store, ObjectStore):  # its paths begin with the bucket
        path = f"{store.bucket}/{path.strip('/')}".rstrip("/")
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def upload(file: Path, address: str) -> None:
    """Write a local file to an address, in place of what is there. Raises InputError and OSError."""
    store, path = _writable(address)
    store.put(file, path)


def _writable(address: str) -> tuple[ObjectStore | FsspecStore, str]:
    store, path = store_of(address)
    if not isinstance(store, (ObjectStore, FsspecStore)):
        raise InputError("what Aiven's plugin wrote is only read", Location(address))
    return store, path


# -- status and listings -------------------------------------------------------------------------------------


def status_of(address: str) -> os.stat_result:
    """The status of a path: size, modification time and type; raises OSError."""
    return entry_of(address).stat()


def entry_of(address: str) -> RemoteEntry:
    """The entry of a path, from a remembered listing if there is one; raises OSError."""
    path = address.rstrip("/")
    if path.startswith(_PLUGIN):  # a listing has the plugin's objects, not the files made from them
        return fresh_entry_of(address)
    _list_given(path)
    parent, _, name = path.rpartition("/")
    if parent not in _remembered and _given and not parent.endswith("/"):
        _remember_around(parent)
    if path in _remembered:
        return RemoteEntry(name, True, 0, 0)
    if parent in _remembered:
        found = _remembered[parent].get(name)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, _absent.get(parent) or os.strerror(errno.ENOENT))
        return found
    if path in _absent:
        raise FileNotFoundError(errno.ENOENT, _absent[path])
    store, inner = _reached(address)
    try:
        return store.entry(inner)
    except FileNotFoundError as error:
        if _given:
            _absent[path] = error.strerror or error_words(error)
        raise


def fresh_entry_of(address: str) -> RemoteEntry:
    """The entry of a path as the store has it now; raises OSError."""
    store, inner = _reached(address)
    return store.entry(inner)


def why_absent(address: str) -> str:
    """What the store says of an address that does not exist, such as that there is no bucket; may be empty."""
    path = address.rstrip("/")
    words = _absent.get(path) or _absent.get(path.rpartition("/")[0], "")
    if not _given:  # so nothing is remembered
        try:
            fresh_entry_of(address)
        except OSError as error:
            words = error.strerror or ""
    return "" if words == os.strerror(errno.ENOENT) else words.removeprefix(os.strerror(errno.ENOENT)).lstrip("; ")


@contextmanager
def listing(address: str) -> Iterator[Iterable[RemoteEntry]]:
    """The entries of a directory; raises OSError, as os.scandir does."""
    directory = address.rstrip("/")
    _list_given(directory)
    if directory in _absent:
        raise FileNotFoundError(errno.ENOENT, _absent[directory])
    if directory not in _remembered:
        store, inner = _reached(address)
        names = {name: entry for name, entry in store.entries(inner, False) if "/" not in name}
        if not _given:
            yield list(names.values())
            return
        _remembered[directory] = names
    yield list(_remembered[directory].values())


def _reached(address: str) -> tuple[Store, str]:
    try:
        return store_of(address)
    except InputError as error:
        if isinstance(error.__cause__, WrongAddress):
            raise error.__cause__ from error
        raise OSError(error.message) from error


def give(addresses: Iterable[str]) -> None:
    """Remember listings at, below and around these addresses, for a command that reads them once.

    Everything below an address is listed when the first name there is looked up.
    """
    know(addresses)
    for address in addresses:
        path = without_query(address).rstrip("/")
        name = path.rpartition("/")[2]
        is_file = layout.SEGMENT_FILE.match(name) is not None or name in layout.LOG_DIR_FILES
        _given.setdefault(path, is_file)


def are_given() -> bool:
    """Whether a command was given addresses."""
    return bool(_given)


def forget() -> None:
    """Forget the addresses that a command was given, their options, their listings, and the count of the bytes read."""
    _queries.clear()
    _hosts.clear()
    _stores.clear()
    fetched.size_bytes = 0
    bounded_calls.forget()
    _given.clear()
    _remembered.clear()
    _absent.clear()
    _too_large.clear()
    _failures.clear()


def _list_given(path: str) -> None:
    """List everything below the given address that ``path`` is at or below, if that was not done before."""
    for top, is_listed in _given.items():
        if not is_listed and (path == top or path.startswith(f"{top}/")):
            _given[top] = True
            _remembered.update(_listed_below(top))


def _remember_around(directory: str) -> None:
    """Remember the names in the directory of a file, unless they are many: a listing costs as much as one look-up."""
    if directory in _too_large or "/" not in directory.partition("://")[2]:
        return
    try:
        store, inner = _reached(directory)
        if not has_listings(directory):
            return
        names = dict(islice(store.entries(inner, False), _MOST_AROUND))
    except FileNotFoundError as error:  # so nothing is in it either
        _absent[directory], _remembered[directory] = error.strerror or error_words(error), {}
        return
    except OSError:
        _too_large.add(directory)
        return
    if len(names) == _MOST_AROUND:
        _too_large.add(directory)
    else:
        _remembered[directory] = names


@contextmanager
def listed_at_once(address: str) -> Iterator[None]:
    """List everything below a directory at once, and use that listing while the context lasts.

    A store returns a thousand names per request, so this takes a few requests instead of one per directory. If that
    fails, each directory is listed by itself.
    """
    found = _listed_below(address.rstrip("/"))
    _remembered.update(found)
    try:
        yield
    finally:
        for directory in found:
            _remembered.pop(directory, None)


def _listed_below(top: str) -> dict[str, dict[str, RemoteEntry]]:
    """The names in each directory at or below ``top``; empty if listing fails or there are too many names."""
    found: dict[str, dict[str, RemoteEntry]] = {top: {}}
    try:
        store, inner = store_of(top)
        for path, entry in store.entries(inner, True):
            parent, _, name = path.rpartition("/")
            found.setdefault(f"{top}/{parent}" if parent else top, {})[name] = entry
            if entry.is_directory:
                found.setdefault(f"{top}/{path}", {})
    except (OSError, InputError):
        return {}
    return found
