"""The file systems of pyarrow and fsspec, as stores; calls that take too long are abandoned."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from format.io.addresses import without_query
from format.io.stores.bounded_calls import bounded
from format.io.stores.http_client import Answer, HttpClient, Request
from format.io.stores.store import Ranges, RemoteEntry, WrongAddress
from format.wording import installing

T = TypeVar("T")

_GCS_RETRY_S = 10
_GCS_HOST = "storage.googleapis.com"
_GCS_METADATA = "metadata.google.internal"
_AZURE_DOMAIN = ".core.windows.net"
_AZURE_VARIABLES = ("AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE", "IDENTITY_ENDPOINT", "MSI_ENDPOINT")
_INSTANCE_METADATA = "169.254.169.254"
_NEAR_BY_S = 1.5
#: The names of the modification time in the entries of fsspec's file systems.
_MODIFIED = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
_EXTRAS = {"gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "hdfs": "hdfs", "viewfs": "hdfs"}


def connected(scheme: str, host: str, query: dict[str, str]) -> tuple[ArrowStore | FsspecStore, str]:
    """A new store for a scheme, and the path of the host in it.

    Raises ImportError, with the command to install it, for a missing library, and the errors of the libraries.
    """
    try:
        from pyarrow import ArrowInvalid, fs
    except ImportError:
        extra = _EXTRAS.get(scheme, "remote")
        raise ImportError(f"{scheme}:// needs pyarrow: {installing(extra)}") from None
    if scheme in ("gs", "gcs"):
        return ArrowStore(_connected_gcs(fs, query), fs, f"{scheme}://{host}"), host
    if scheme in ("abfs", "abfss"):
        _check_azure(host)
    words = f"?{urlencode(query)}" if query else ""
    name = without_query(f"{scheme}://{host}")
    try:
        system, root = bounded(lambda: fs.FileSystem.from_uri(f"{scheme}://{host}/{words}"), name)
    except OSError as error:
        if "libjvm" not in str(error) and "libhdfs" not in str(error):
            raise
        raise OSError(
            f"{error_words(error)}: set JAVA_HOME, HADOOP_HOME and CLASSPATH (hadoop classpath --glob)"
        ) from None
    except ArrowInvalid as error:
        if "nrecognized" not in str(error):
            raise
        return _connected_by_fsspec(scheme, host, query)
    return ArrowStore(system, fs, name), root.rstrip("/")


def _connected_gcs(fs: Any, query: dict[str, str]) -> Any:
    """The file system for Google Cloud Storage; raises OSError at once if there can be no credentials.

    The library itself would look for credentials for minutes.
    """
    options: dict[str, Any] = dict(query)
    if options.pop("anonymous", "false") == "true":
        options["anonymous"] = True
    elif not ({"endpoint_override", "access_token"} & options.keys() or _may_have_google_credentials()):
        raise OSError(
            "no Google credentials: set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default "
            "login, or add ?anonymous=true to the address"
        )
    if "endpoint_override" not in options:
        HttpClient("https", _GCS_HOST).send(Request("HEAD", "/"))  # fails early without a network
    return fs.GcsFileSystem(**options, retry_time_limit=timedelta(seconds=_GCS_RETRY_S))


def _may_have_google_credentials() -> bool:
    """Whether there is a file of credentials, or this is a host of Google Cloud, which may have a service account."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if named:
        if not os.path.isfile(named):
            raise OSError(f"no Google credentials: there is no file {named} (GOOGLE_APPLICATION_CREDENTIALS)")
        return True
    if (
        os.environ.get("CLOUDSDK_CONFIG")
        or (Path.home() / ".config/gcloud/application_default_credentials.json").exists()
    ):
        return True
    answer = _answers(_GCS_METADATA, "/", {"Metadata-Flavor": "Google"})
    return answer is not None and answer.header("metadata-flavor") == "Google"


def _check_azure(host: str) -> None:
    """Raise OSError if Azure's library would find no credentials or no network, with a clearer message than its own."""
    container, _, account = host.rpartition("@")
    if ":" not in container and not _may_have_azure_credentials():
        raise OSError(
            "no Azure credentials: set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run az login, or "
            "write the account key into the address (abfs://CONTAINER:KEY@ACCOUNT.dfs.core.windows.net/…)"
        )
    if account.endswith(_AZURE_DOMAIN):
        HttpClient("https", account).send(Request("HEAD", "/"))


def _may_have_azure_credentials() -> bool:
    if any(os.environ.get(name) for name in _AZURE_VARIABLES) or shutil.which("az"):
        return True
    return _answers(_INSTANCE_METADATA, "/metadata/instance?api-version=2021-02-01", {"Metadata": "true"}) is not None


def _answers(authority: str, target: str, headers: dict[str, str]) -> Answer | None:
    """The answer of a metadata service, which only cloud hosts have; None if there is none."""
    try:
        answer = HttpClient("http", authority, _NEAR_BY_S).send(Request("GET", target, {"Host": authority, **headers}))
    except OSError:
        return None
    return answer if answer.status == 200 else None


def _connected_by_fsspec(scheme: str, host: str, query: dict[str, str]) -> tuple[FsspecStore, str]:
    try:
        import fsspec
    except ImportError:
        raise ImportError(
            f"pyarrow knows no scheme {scheme}, and fsspec, which may, is not installed: {installing('remote')}"
        ) from None
    try:
        fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise WrongAddress(f"no store has the scheme {scheme}: there are s3, gs, abfs, hdfs, https and http") from None
    name = f"{scheme}://{host}"
    system, root = bounded(lambda: fsspec.core.url_to_fs(f"{name}/", **query), name)
    return FsspecStore(system, name), root.rstrip("/")


class ArrowStore:
    """A file system of pyarrow; see the protocol Store."""

    def __init__(self, system: Any, fs: Any, name: str) -> None:
        self.system = system
        self._fs, self._name = fs, name

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a path."""
        info = self._call(lambda: self.system.get_file_info(inner))
        if info.type == self._fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self._entry(info)

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The entries of a directory, or with ``is_deep`` of everything below it."""
        found = self._call(lambda: self.system.get_file_info(self._fs.FileSelector(inner, recursive=is_deep)))
        for info in found:
            yield info.path[len(inner) :].strip("/"), self._entry(info)

    def _entry(self, info: Any) -> RemoteEntry:
        is_directory = info.type == self._fs.FileType.Directory
        return RemoteEntry(info.base_name, is_directory, info.size or 0, (info.mtime_ns or 0) // 10**9)

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open a file."""
        return _ArrowRanges(self._call, self._call(lambda: self.system.open_input_file(inner)))

    def _call(self, call: Callable[[], T]) -> T:
        with only_os_errors():
            return bounded(call, self._name)


class _ArrowRanges:
    def __init__(self, bounded_call: Callable[[Callable[[], bytes]], bytes], opened: Any) -> None:
        self._call, self._opened = bounded_call, opened

    def read_at(self, length: int, position: int) -> bytes:
        return self._call(lambda: self._opened.read_at(length, position))

    def close(self) -> None:
        self._opened.close()


class FsspecStore:
    """A file system of fsspec; see the protocol Store."""

    def __init__(self, system: Any, name: str) -> None:
        self.system = system
        self._name = name

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a path."""
        return self._entry(self._call(lambda: self.system.info(inner)))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The entries of a directory, or with ``is_deep`` of everything below it."""

        def listed() -> dict[str, Any]:
            self.system.invalidate_cache()
            found: dict[str, Any] = self.system.find(inner, withdirs=True, detail=True, maxdepth=None if is_deep else 1)
            if not found and not self.system.isdir(inner):
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
        return RemoteEntry(name, info["type"] == "directory", int(info.get("size") or 0), mtime_s, tag)

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open a file; nothing is sent yet."""
        return _FsspecRanges(self._call, self.system, inner)

    def _call(self, call: Callable[[], T]) -> T:
        with only_os_errors():
            return bounded(call, self._name)


class _FsspecRanges:
    def __init__(self, bounded_call: Callable[[Callable[[], bytes]], bytes], system: Any, inner: str) -> None:
        self._call, self._system, self._inner = bounded_call, system, inner

    def read_at(self, length: int, position: int) -> bytes:
        return self._call(lambda: self._system.cat_file(self._inner, start=position, end=position + length))

    def close(self) -> None:
        pass


@contextmanager
def only_os_errors() -> Iterator[None]:
    """Turn all errors of a library into OSError, since their types are not known."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(error_words(error)) from error


def error_words(error: BaseException) -> str:
    """The first line of an error's message, or the name of its class."""
    if isinstance(error, OSError) and error.errno is not None and str(error.strerror) == os.strerror(error.errno):
        return os.strerror(error.errno)
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
