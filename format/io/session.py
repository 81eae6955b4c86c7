"""What a run has: stores, bundles, the read policy, the tier of remote segments and the cluster; and its paths.

A command makes one ``Session`` and passes it on. Paths that a session makes know it, and so do all paths that are made
from them: a file is read as its path's session says, whoever reads it. A plain path is of no session.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import unquote

import msgspec

from format.io.read_policy import ReadPolicy
from format.io.store import CALLS_AT_ONCE, ItemT, ValueT, map_in_threads, without_query

if TYPE_CHECKING:
    from format.io.remote_files import Stores

_REMOTE = re.compile(r"(?!(?i:file):)[A-Za-z][A-Za-z0-9+.-]+://")
#: The address of a local file. Neither a question mark nor a number sign ends the path, as in Hadoop's addresses.
_FILE = re.compile(r"file:(//[^/]*)?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)
#: Schemes whose addresses have no host or bucket: ``local:///mnt/copy``.
_WITHOUT_HOST = ("local", "memory", "aiven+file")

#: How the file name of a bundle ends, and its first member.
BUNDLE_SUFFIX = ".tar.zst"
BUNDLE_MANIFEST = "manifest.json"

PathLike = str | os.PathLike[str]


class Tier(Protocol):
    """The remote segments of tiered logs; see ``format.state.tiered_logs``."""

    lost: Mapping[Any, Sequence[tuple[int, int]]]

    def joined(self, key: Any, local: list[Any]) -> list[Any]: ...


class Description(msgspec.Struct, frozen=True):
    """What another process needs to know of a session: addresses with their options and keys, and the read policy."""

    addresses: tuple[str, ...] = ()
    max_bytes_per_s: int | None = None
    spares_cache: bool = False


class Session:
    """What a run has. ``tier`` is joined with the partitions that are listed; ``cluster`` runs scans, None for none.

    ``open_tables``, with the name of a command and its paths, opens tables that a run writes beside its output.
    ``makes_absolute``: its paths may be read by other hosts. ``bundles`` are by their own paths (see
    ``format.io.bundles.bundle``). A session is pickled as its description: without bundles, tier and cluster.
    """

    def __init__(self, description: Description | None = None) -> None:
        given = description or Description()
        self.policy = ReadPolicy(given.max_bytes_per_s, spares_cache=given.spares_cache)
        self.tier: Tier | None = None
        self.cluster: Any = None
        self.open_tables: Callable[[str, Sequence[str]], Any] | None = None
        self.makes_absolute = False
        self.bundles: dict[str, Any] = {}
        self._stores: Stores | None = None
        if given.addresses:
            self.stores.know(given.addresses)

    @property
    def stores(self) -> Stores:
        """The stores of addresses."""
        if self._stores is None:
            from format.io.remote_files import Stores

            self._stores = Stores(self.policy)
        return self._stores

    @property
    def reads_addresses(self) -> bool:
        """Whether a command was given addresses to read."""
        return self._stores is not None and self._stores.are_given

    @property
    def fetched_bytes(self) -> int:
        """The bytes that were read from stores."""
        return 0 if self._stores is None else self._stores.fetched_bytes

    @property
    def description(self) -> Description:
        """The description for another process."""
        known = () if self._stores is None else self._stores.known()
        return Description(known, self.policy.max_bytes_per_s, self.policy.spares_cache)

    def path(self, path: PathLike) -> Path:
        """The path for a text. An address loses its query and access keys, which the session keeps."""
        text = os.fspath(path)
        made: SessionPath
        if is_remote(text):
            self.stores.know((text,))
            made = RemotePath(without_query(text))
        elif self.bundle_of(text) is not None:
            made = BundlePath(text)
        else:
            made = SessionPath(_local(text))
        made._session = self
        return made.absolute() if self.makes_absolute else made

    def bundle_of(self, path: str) -> tuple[Any, str] | None:
        """The opened bundle that contains a path, and the path in it; None for a path in no bundle."""
        for own, bundle in self.bundles.items():
            if path.startswith(own) and path[len(own) : len(own) + 1] in ("", "/"):
                return bundle, path[len(own) + 1 :]
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return described_session, (self.description,)


@lru_cache(maxsize=4)
def described_session(description: Description) -> Session:
    """The session of this process for a description that another process sent; its connections serve all its tasks."""
    return Session(description)


# -- paths ---------------------------------------------------------------------------------------------------


class SessionPath(PosixPath):
    """A path on this host that knows its session."""

    __slots__ = ("_session",)
    _session: Session

    @property
    def session(self) -> Session:
        """The session that made it. A path that none made gets one of its own."""
        try:
            return self._session
        except AttributeError:
            self._session = Session()
            return self._session

    def _same(self, path: Self) -> Self:
        """A new path, in this path's session."""
        path._session = self.session
        return path

    def __truediv__(self, key: Any) -> Self:
        return self._same(super().__truediv__(key))

    def joinpath(self, *names: PathLike) -> Self:
        return self._same(super().joinpath(*names))

    def with_name(self, name: str) -> Self:
        return self._same(super().with_name(name))

    def with_suffix(self, suffix: str) -> Self:
        return self._same(super().with_suffix(suffix))

    @property
    def parent(self) -> Self:
        return self._same(super().parent)

    def absolute(self) -> Self:
        return self._same(super().absolute())

    def resolve(self, strict: bool = False) -> Self:
        return self._same(super().resolve(strict))

    def __reduce__(self) -> tuple[Any, ...]:
        return _path_in, (type(self), str(self), self.session)


def _path_in(kind: type[SessionPath], text: str, session: Session) -> SessionPath:
    made = kind(text)
    made._session = session
    return made


class StoredPath(SessionPath):
    """A read-only path that is not on this host: at an address, or in a bundle."""

    __slots__ = ()

    def _place(self) -> tuple[Any, str]:
        """The stores or the bundle, and the path in them. Raises OSError."""
        raise NotImplementedError

    def absolute(self) -> Self:
        """The path itself."""
        return self

    def resolve(self, strict: bool = False) -> Self:
        """The path itself: links are not followed."""
        return self

    def lstat(self) -> os.stat_result:
        """The status: size, modification time and type; raises OSError."""
        return self.stat(follow_symlinks=False)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """The status; raises OSError."""
        tree, inner = self._place()
        status: os.stat_result = tree.followed_status(inner) if follow_symlinks else tree.status(inner)
        return status

    def listing(self) -> AbstractContextManager[Iterable[Entry]]:
        """The entries of a directory; raises OSError, as os.scandir does."""
        tree, inner = self._place()
        found: AbstractContextManager[Iterable[Entry]] = tree.listing(inner)
        return found

    def open_stored(self) -> Any:
        """The file, opened to be read by ranges; raises FileNotFoundError and UnreadableFile."""
        tree, inner = self._place()
        return tree.open(inner)

    def _mode(self, follows: bool) -> int:
        try:
            return self.stat(follow_symlinks=follows).st_mode
        except FileNotFoundError:
            return 0

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether the path exists; raises OSError if that cannot be determined."""
        return self._mode(follow_symlinks) != 0

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a directory; raises OSError if that cannot be determined."""
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file; raises OSError if that cannot be determined."""
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        """Whether it is a symbolic link."""
        return stat.S_ISLNK(self._mode(False))

    def open(self, *arguments: Any, **options: Any) -> Any:
        """Not supported, raises OSError: FileSource reads stored files."""
        raise OSError("a stored file cannot be opened: use FileSource")


class RemotePath(StoredPath):
    """A path at an address, such as ``s3://bucket/kafka/orders-0``; ``str`` returns the address."""

    __slots__ = ()

    @property
    def scheme(self) -> str:
        """The scheme, such as ``s3``."""
        return self.parts[0].removesuffix(":")

    def __str__(self) -> str:
        # A Path collapses the two slashes of an address into one.
        scheme, _, rest = super().__str__().partition(":")
        return f"{scheme}://" + (rest if scheme in _WITHOUT_HOST else rest.removeprefix("/"))

    def __fspath__(self) -> str:
        return str(self)

    @property
    def parent(self) -> Self:
        """The parent; a bucket or host is its own parent, as the root directory is."""
        is_top = len(self.parts) <= (1 if self.scheme in _WITHOUT_HOST else 2)
        return self if is_top else super().parent

    def is_symlink(self) -> bool:
        """Always False: stores have no links."""
        return False

    def _place(self) -> tuple[Stores, str]:
        return self.session.stores, str(self)


class BundlePath(StoredPath):
    """A path in an opened bundle: the path of the bundle, and the path in it."""

    __slots__ = ()

    def _place(self) -> tuple[Any, str]:
        found = self.session.bundle_of(str(self))
        if found is None:
            raise FileNotFoundError(f"not in an opened bundle: {self}")
        return found

    def lock_holder(self) -> int | None:
        """The id of the process that held a ``.lock``: 0 if it is unknown, None if no process held it."""
        bundle, inner = self._place()
        holder: int | None = bundle.lock_holder(inner)
        return holder


class Entry(Protocol):
    """One entry of a directory listing; os.DirEntry is one."""

    @property
    def name(self) -> str: ...

    def is_dir(self, *, follow_symlinks: bool = True) -> bool: ...

    def is_file(self, *, follow_symlinks: bool = True) -> bool: ...

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result: ...


def session_of(path: PathLike) -> Session | None:
    """The session of a path, None for a plain path."""
    found: Session | None = getattr(path, "session", None)
    return found


def joins_remote_segments(path: PathLike) -> bool:
    """Whether the partition at a path is joined with its segments in remote storage."""
    session = session_of(path)
    return session is not None and session.tier is not None


def is_read_plainly(path: PathLike) -> bool:
    """Whether files at a path are read as the system does it: without a bound of the rate, and through its cache."""
    session = session_of(path)
    return session is None or session.policy.is_plain


def is_remote(path: PathLike) -> bool:
    """Whether a path is on another file system: it begins with a scheme other than ``file:``."""
    return _REMOTE.match(path) is not None if isinstance(path, str) else isinstance(path, RemotePath)


def is_bundle(path: str) -> bool:
    """Whether a file begins as a bundle does: with its manifest."""
    import zstandard

    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            return stream.read(512).startswith(BUNDLE_MANIFEST.encode() + b"\0")
    except (OSError, zstandard.ZstdError):
        return False


def is_on_disk(path: PathLike) -> bool:
    """Whether a path is on a file system of this machine: neither remote nor in a bundle."""
    return not isinstance(path, StoredPath) and not is_remote(path)


def is_in_bundle(path: PathLike) -> bool:
    """Whether a path is in an opened bundle."""
    return isinstance(path, BundlePath)


def path_of(path: PathLike) -> Path:
    """The Path for a text: a local Path, also for ``file:///…``, or the path of an address, in a session of its own."""
    if isinstance(path, Path):
        return path
    text = os.fspath(path)
    return Session().path(text) if is_remote(text) else Path(_local(text))


def _local(text: str) -> str:
    address = _FILE.match(text)
    return text if address is None else unquote(address["path"])


def entries_of(path: PathLike) -> AbstractContextManager[Iterable[Entry]]:
    """The entries of a directory, as a context manager like os.scandir; raises OSError."""
    place = path_of(path)
    return place.listing() if isinstance(place, StoredPath) else os.scandir(place)


def map_near(call: Callable[[ItemT], ValueT], items: Iterable[ItemT], place: PathLike) -> Iterator[ValueT]:
    """The results of a call for each item, in order; all items are near a place.

    For a store several calls run at once: in threads, or where the session has a cluster, in its tasks. So the call,
    the items and the results are picklable, and the call raises nothing that is expected.
    """
    session = session_of(place)
    if not is_remote(place) or session is None:
        yield from map(call, items)
        return
    rest = iter(items)
    first = list(islice(rest, 2 * CALLS_AT_ONCE))
    if session.cluster is not None and len(first) == 2 * CALLS_AT_ONCE:
        yield from session.cluster.mapped(call, chain(first, rest))
    else:
        yield from map_in_threads(call, chain(first, rest))


def is_there(path: PathLike) -> bool:
    """Whether the name exists, also as a broken link; raises nothing."""
    place = path if isinstance(path, Path) or not is_remote(path) else path_of(path)
    if not isinstance(place, StoredPath):
        return os.path.lexists(place)
    try:
        place.lstat()
    except OSError:
        return False
    return True


def absolute(path: Path) -> Path:
    """The absolute path without ``.`` and ``..``; a stored path is returned as it is."""
    if isinstance(path, StoredPath):
        return path
    found = os.path.abspath(path)
    session = session_of(path)
    return Path(found) if session is None else _path_in(SessionPath, found, session)
