"""Buckets of S3, Google and Azure, and files of web servers, read through obstore."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

import msgspec

from format.io.store import (
    LOOK_S,
    Calls,
    ObjectReplaced,
    Opened,
    RemoteEntry,
    WrongAddress,
    checked_size,
    error_words,
    listing_too_long,
)
from format.wording import installing

T = TypeVar("T")

S3 = ("s3", "s3a", "s3n")
WEB = ("http", "https")
_GOOGLE = ("gs", "gcs")
_AZURE = ("abfs", "abfss")
SCHEMES = (*S3, *_GOOGLE, *_AZURE, *WEB)
#: The options that an address may have.
_OPTIONS = {
    **dict.fromkeys(S3, ("anonymous", "endpoint_override", "profile", "region", "scheme")),
    **dict.fromkeys(_GOOGLE, ("anonymous", "endpoint_override", "scheme")),
    **dict.fromkeys(_AZURE, ("anonymous", "endpoint_override", "scheme")),
}
_DEFAULT_REGION = "us-east-1"  # of a custom endpoint, which accepts any value
_AWS = "https://s3.amazonaws.com"
#: A store answers with at most this many keys per request.
_KEYS_PER_CALL = 1000
#: The most memory for the names of one listing. A broker of 4,000 partitions has about 120,000 files: a third of it.
MOST_LISTED_BYTES = 128 * 1024 * 1024
_ENTRY_BYTES = 300  # without its path
#: The library reads a page of a listing, a directory and the text of an error whole, however long they are. If the
#: process grows by more than this meanwhile, the store is given up. A page has 1,000 keys; other reads run beside large
#: work.
_MOST_PAGE_BYTES = 256 * 1024 * 1024
_MOST_ANSWER_BYTES = 1024 * 1024 * 1024
#: Requests for credentials: of instance and container roles, and for tokens of Google, Azure and AWS.
_FOR_CREDENTIALS = re.compile(
    r"/latest/(?:api/token|meta-data)|/computeMetadata/|/metadata/identity|token request|AssumeRole|/v2/credentials"
)
_HOST = re.compile(r"Error performing [A-Z]+ [a-z]+://([^/\s]+)")
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
#: What the library says of a failed connection or an answer, and the words for it.
_CAUSES = (
    ("InvalidContentType", "it does not speak TLS; without TLS: http://… or the option scheme=http"),
    ("invalid peer certificate", "its certificate is not trusted"),
    ("TimedOut", "no answer in time"),
    ("IncompleteBody", "the answer was cut off"),
    ("IncompleteMessage", "the connection ended without an answer"),
    ("ContentLengthInvalid", "the answer has an invalid length"),
    ("Parse(", "the answer is not HTTP"),
)
_CAUSE = re.compile(r'(?:message|error): "([^"]+)"')
_NO_CREDENTIALS = {
    "AWS": "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or add ?anonymous=true to the address",
    "Google": "Set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login, or add "
    "?anonymous=true to the address",
    "Azure": "Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or write the account key into the "
    "address (abfs://CONTAINER:KEY@ACCOUNT.dfs.core.windows.net/…)",
}


class Patience(msgspec.Struct, frozen=True):
    """How long requests may take; ``store.LONGEST_CALL_S`` bounds each with all its attempts."""

    connect_s: float = 5.0
    silence_s: float = 8.0  # without a byte
    request_s: float = 25.0  # of one attempt, from the connection to the end of the answer
    retry_s: float = 12.0  # no further attempt is made after this time, and none to a server that could not be reached
    attempts: int = 4
    first_pause_s: float = 0.2
    longest_pause_s: float = 3.0
    listing_s: float = 120.0  # of a listing, with all its pages


PATIENCE = Patience()


def connected(scheme: str, host: str, query: dict[str, str], calls: Calls) -> tuple[ObjectStore, str]:
    """A new store for a scheme and host, and the path of the host in it.

    Raises WrongAddress for an address or an option that cannot be used, and OSError.
    """
    try:
        import obstore.store as stores
    except ImportError as error:
        raise ImportError(f"{scheme}:// is read with obstore, which cannot be loaded: {error}") from error
    _check_options(scheme, query)
    endpoint = _endpoint(query.get("endpoint_override"), query.get("scheme", "https"))
    provider = "AWS" if scheme in S3 else "Google" if scheme in _GOOGLE else "Azure" if scheme in _AZURE else ""
    settings = _settings()
    config: dict[str, Any] = {}
    if query.get("anonymous", "false").lower() == "true":
        config["skip_signature"] = True
    try:
        if scheme in WEB:
            _ = urlsplit(f"{scheme}://{host}").port  # raises ValueError
            store = stores.HTTPStore.from_url(f"{scheme}://{host}", **settings)
            return ObjectStore(store, f"{scheme}://{host}", provider, settings, calls), ""
        if scheme in S3:
            _check_named(host.rpartition("@")[2], f"bucket: {scheme}://BUCKET/PATH")
            bucket, found, credentials = _s3_config(host, query, endpoint, calls)
            config |= found
            if credentials is not None and "skip_signature" not in config:
                settings["credential_provider"] = credentials
        elif scheme in _GOOGLE:
            bucket = host
            _check_named(bucket, f"bucket: {scheme}://BUCKET/PATH")
            config |= {"base_url": endpoint} if endpoint else {}
        else:
            container, _, account = host.rpartition("@")
            bucket, _, key = container.partition(":")
            _check_named(account and bucket, f"container: {scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH")
            config |= {"account_name": account.partition(".")[0]} | ({"account_key": unquote(key)} if key else {})
            config |= {"endpoint": endpoint} if endpoint else {}
        settings["config"] = config
        made = {"AWS": stores.S3Store, "Google": stores.GCSStore, "Azure": stores.AzureStore}[provider]
        return ObjectStore(made(bucket, **settings), f"{scheme}://{bucket}", provider, settings, calls), ""
    except ValueError as error:
        raise WrongAddress(f"{host} is not the address of a store: {error_words(error)}") from error
    except OSError:
        raise
    except Exception as error:  # the classes of obstore's errors have only Exception in common
        raise OSError(f"{f'no {provider} credentials: ' * bool(provider)}{_summary(error)}") from error


def _check_named(name: str, form: str) -> None:
    if not name:
        raise WrongAddress(f"this names no {form}")


def _check_options(scheme: str, query: dict[str, str]) -> None:
    known = _OPTIONS.get(scheme, ())
    unknown = sorted(set(query) - set(known))
    if unknown and not known:
        raise WrongAddress(f"an address of a web server takes no options ({', '.join(unknown)})")
    if unknown:
        raise WrongAddress(f"unknown option {', '.join(unknown)}: an address takes {', '.join(known)}")
    if query.get("scheme", "https") not in WEB:
        raise WrongAddress(f"scheme={query['scheme']}: it is http or https")


def _endpoint(text: str | None, scheme: str = "https") -> str | None:
    """The URL of ``HOST:PORT`` or of a URL; raises WrongAddress."""
    if not text:
        return None
    url = text if "://" in text else f"{scheme}://{text}"
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError as error:
        raise WrongAddress(f"{text} is not the address of a server: {error}") from None
    if split.scheme not in WEB or not split.hostname or not split.netloc.isascii():
        raise WrongAddress(f"{text} is not the address of a server")
    return url.rstrip("/")


def _settings() -> dict[str, Any]:
    """The timeouts, the attempts, and the certificates for the library."""
    client: dict[str, Any] = {
        "allow_http": True,
        "connect_timeout": timedelta(seconds=PATIENCE.connect_s),
        "read_timeout": timedelta(seconds=PATIENCE.silence_s),
        "timeout": timedelta(seconds=PATIENCE.request_s),
        "user_agent": "kafkalog",
    }
    bundle = os.environ.get("AWS_CA_BUNDLE")
    if bundle:
        client["root_certificate"] = Path(bundle).read_bytes()
    retries = {
        "max_retries": PATIENCE.attempts - 1,
        "retry_timeout": timedelta(seconds=PATIENCE.retry_s),
        "backoff": {
            "init_backoff": timedelta(seconds=PATIENCE.first_pause_s),
            "max_backoff": timedelta(seconds=PATIENCE.longest_pause_s),
            "base": 2,
        },
    }
    return {"client_options": client, "retry_config": retries}


# -- S3 ------------------------------------------------------------------------------------------------------


def _s3_config(host: str, query: dict[str, str], endpoint: str | None, calls: Calls) -> tuple[str, dict[str, Any], Any]:
    """The bucket of ``[KEY:SECRET@]BUCKET``, what the library needs to know of it, and the source of credentials.

    Without such a source (None) the library looks itself: in the environment, then for the role of a web identity, a
    container, or the instance.
    """
    environment = os.environ
    keys, _, bucket = host.rpartition("@")
    credentials: Any = None
    profile: dict[str, str] = {}
    if keys:
        access_key, _, secret_key = map(unquote, keys.partition(":"))
        found = {"access_key_id": access_key, "secret_access_key": secret_key, "token": None, "expires_at": None}
        credentials = lambda: found  # noqa: E731
    elif query.get("anonymous", "false").lower() != "true":
        name = query.get("profile") or environment.get("AWS_PROFILE")
        if query.get("profile") or not environment.get("AWS_ACCESS_KEY_ID"):
            credentials, profile = calls.bounded(lambda: _profile(name), _AWS)
            _check_any_credentials(credentials)
    endpoint = endpoint or _endpoint(
        environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or profile.get("endpoint_url")
    )
    region = query.get("region")
    by_default = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or profile.get("region")
    if endpoint is None:
        region = region or calls.bounded(lambda: _region_of_bucket(bucket, by_default), _AWS)
        if region.startswith("cn-"):
            endpoint = f"https://s3.{region}.amazonaws.com.cn"
    config: dict[str, Any] = {"region": region or by_default or _DEFAULT_REGION}
    return bucket, config | ({"endpoint": endpoint} if endpoint else {}), credentials


def _profile(name: str | None) -> tuple[Any, dict[str, str]]:
    """The source of credentials in the files of the AWS tools, None if they have none, and the profile's settings.

    boto3 reads these files. It is needed only for a profile that is named.
    """
    files = (
        environ_path("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
        environ_path("AWS_CONFIG_FILE", "~/.aws/config"),
    )
    if name is None and not any(each.exists() for each in files):
        return None, {}
    try:
        import botocore.session
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        if name is None:
            return None, {}
        raise OSError(
            f"no AWS credentials: the profile {name} is read with boto3, which is missing ({installing('remote')}). "
            'Without it: eval "$(aws configure export-credentials --format env)"'
        ) from None
    try:
        session = botocore.session.Session(profile=name)
        settings = {key: value for key, value in session.get_scoped_config().items() if isinstance(value, str)}
        return (None if session.get_credentials() is None else Boto3CredentialProvider(session)), settings
    except Exception as error:  # botocore has many error classes
        raise OSError(f"no AWS credentials: {error_words(error)}") from error


def environ_path(variable: str, default: str) -> Path:
    """The file that a variable of the environment names."""
    return Path(os.environ.get(variable) or os.path.expanduser(default))


def _check_any_credentials(credentials: Any) -> None:
    """Raise OSError where the library could only ask for the role of the instance, and must not."""
    names = ("WEB_IDENTITY_TOKEN_FILE", "CONTAINER_CREDENTIALS_RELATIVE_URI", "CONTAINER_CREDENTIALS_FULL_URI")
    has_others = credentials is not None or any(os.environ.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", *names))
    if not has_others and os.environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        raise OSError(f"no AWS credentials: the environment and ~/.aws have none. {_NO_CREDENTIALS['AWS']}")


def _region_of_bucket(bucket: str, by_default: str | None) -> str:
    """The region of a bucket, which AWS reports without credentials; raises OSError if it does not."""
    import urllib.error
    import urllib.request

    request = urllib.request.Request(f"{_AWS}/{quote(bucket, safe='')}", method="HEAD")
    status = 200
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE.connect_s) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as error:  # the region is also reported to clients that may not read the bucket
        status, headers = error.code, error.headers
        error.close()
    except (OSError, ValueError) as error:
        if by_default:
            return by_default
        raise OSError(
            f"AWS does not report the bucket's region ({error_words(error)}): set AWS_REGION, or AWS_ENDPOINT_URL"
        ) from error
    region = headers.get("x-amz-bucket-region")
    if not region and status == 404:
        raise OSError("there is no such bucket")
    return region or by_default or _DEFAULT_REGION


# -- the store -----------------------------------------------------------------------------------------------


class ObjectStore:
    """A bucket, container or web server; see the protocol Store.

    A name below which there are others is a directory. A web server has no listings, so there every name is a file.
    """

    def __init__(self, store: Any, name: str, provider: str, settings: dict[str, Any], calls: Calls) -> None:
        self._store, self._name, self._provider, self._settings = store, name, provider, settings
        self._calls = calls
        self._failure: tuple[float, OSError] | None = None
        self._pid = os.getpid()

    @property
    def _is_web(self) -> bool:
        return not self._provider

    @property
    def bucket(self) -> str:
        """The bucket or container, or the host of a web server."""
        return self._name.partition("://")[2]

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of an object, or of a directory."""
        path, name = inner.strip("/"), inner.rstrip("/").rsplit("/", 1)[-1]
        if self._is_web or (path and not inner.endswith("/")):
            try:
                return _entry(name, self._call(lambda: self._store.head(path)))
            except FileNotFoundError:
                if self._is_web:
                    raise
        first = next(self._pages(path), None)
        if first is None and path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return RemoteEntry(name, True, 0, 0)

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The objects below a prefix; the parts of their names before a slash are directories."""
        if self._is_web:
            raise OSError("a web server has no listings: give the address of one file")
        prefix = inner.strip("/")
        start = len(prefix) + 1 if prefix else 0
        directories: set[str] = set()
        held_bytes = 0
        for key in chain.from_iterable(self._pages(prefix)) if is_deep else self._first_keys(prefix):
            path = key["path"][start:]
            *parents, name = path.split("/") if is_deep else path.split("/")[:2]
            for end in range(1, len(parents) + 1):
                parent = "/".join(parents[:end])
                if parent not in directories:
                    directories.add(parent)
                    held_bytes += _ENTRY_BYTES + len(parent)
                    yield parent, RemoteEntry(parents[end - 1], True, 0, 0)
            if is_deep or not parents:
                yield path, _entry(name, key)
            held_bytes += _ENTRY_BYTES + len(path)
            if held_bytes > MOST_LISTED_BYTES:
                raise OSError("the listing has too many names: give a directory further down")
        if not held_bytes and prefix:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def _first_keys(self, prefix: str) -> Iterator[Any]:
        """The objects in a directory, and for each directory in it an object, or the path of the directory and a slash.

        Where most of a page lies deeper, the rest comes from a listing without what is deeper, which the library
        returns as a whole: directories are then by themselves, after the objects.
        """
        start = len(prefix) + 1 if prefix else 0
        last = ""
        for page in self._pages(prefix):
            deeper_count = sum("/" in key["path"][start:] for key in page)
            if len(page) >= _KEYS_PER_CALL and 2 * deeper_count > len(page):
                found = self._call(lambda: asyncio.run(self._listed(prefix)), _MOST_PAGE_BYTES, PATIENCE.listing_s)
                yield from (key for key in found["objects"] if key["path"] > last)
                yield from ({"path": f"{each}/"} for each in found["common_prefixes"])
                return
            yield from page
            last = page[-1]["path"]

    async def _listed(self, prefix: str) -> Any:
        """The objects and directories in a directory. The requests end when the store is given up meanwhile."""
        listing = asyncio.ensure_future(self._store.list_with_delimiter_async(prefix or None))
        while not listing.done():
            await asyncio.wait((listing,), timeout=LOOK_S)
            if self._calls.has_given_up(self._name):
                listing.cancel()
        return listing.result()

    def _pages(self, prefix: str) -> Iterator[list[Any]]:
        """Pages of the objects below a prefix in order; raises OSError if the store takes too long to list them."""
        deadline = time.monotonic() + PATIENCE.listing_s
        stream = self._call(lambda: self._store.list(prefix or None, chunk_size=_KEYS_PER_CALL))
        while True:
            found = self._call(lambda: next(stream, None), _MOST_PAGE_BYTES)
            if found is None:
                return
            if found:
                yield found
            if time.monotonic() > deadline:
                raise OSError(listing_too_long(PATIENCE.listing_s))

    def open(self, inner: str, entry: RemoteEntry) -> Opened:
        """Open an object; nothing is sent yet."""
        path = inner.strip("/")
        return Opened(lambda length, position: self._range(path, entry, length, position))

    def _range(self, path: str, entry: RemoteEntry, length: int, position: int) -> bytes:
        """Read a range of an object; it is shorter at the end of the object. Never reads more than ``length``."""
        if length <= 0:
            return b""
        options: dict[str, Any] = {}
        if position or length < entry.size_bytes:  # some web servers ignore ranges: small files need none
            options["range"] = (position, position + length)
        if entry.tag and not entry.tag.startswith("W/"):
            options["if_match"] = entry.tag

        def fetched() -> bytes:
            pieces = self._store.get(path, options=options).stream(length)  # the first has at least this length, or all
            return bytes(next(iter(pieces), b""))[:length]

        try:
            return self._call(lambda: _again_if_cut(fetched))
        except _PastEnd:
            return b""

    def put(self, file: Path, inner: str) -> None:
        """Write an object with the content of a local file; raises OSError."""
        try:
            self._store.put(inner.strip("/"), file)
        except Exception as error:
            raise self._error(error) from error

    def writable(self) -> Any:
        """The store as a file system of fsspec, which can also write; raises OSError."""
        if self._is_web:
            raise OSError("a web server cannot be written to")
        try:
            from obstore import fsspec
        except ImportError:
            raise OSError(f"writing to a store needs fsspec: {installing('remote')}") from None
        system: Any = fsspec.FsspecStore
        protocol = {"AWS": "s3", "Google": "gs", "Azure": "abfs"}[self._provider]
        return system(protocol, skip_instance_cache=True, **self._settings)

    def _call(self, call: Callable[[], T], most_bytes: int = _MOST_ANSWER_BYTES, listing_s: float | None = None) -> T:
        """What a call of the library returns, within its time and memory; raises OSError with a sentence.

        A server that could not be reached is not asked again for a while.
        """
        if self._pid != os.getpid():
            raise OSError("this process is a copy of the one that opened the store, and must open it anew")
        if self._failure is not None and time.monotonic() < self._failure[0]:
            raise self._failure[1]
        try:
            return self._calls.bounded(call, self._name, most_bytes, listing_s)
        except TimeoutError:
            raise
        except Exception as error:
            found = self._error(error)
            if isinstance(found, _Unreachable):
                self._failure = time.monotonic() + PATIENCE.retry_s, found
            raise found from error

    def _error(self, error: BaseException) -> OSError:
        """The error of the library as an OSError with one sentence."""
        text, summary = str(error), _summary(error)
        status = _STATUS.search(summary)
        if _FOR_CREDENTIALS.search(summary):
            return _Unreachable(
                f"no {self._provider} credentials: neither the environment nor the host's own role has any "
                f"({summary.rpartition(' - ')[2]}). {_NO_CREDENTIALS.get(self._provider, '')}"
            )
        if status is not None:
            code = _CODE.search(text)
            return self._refusal(int(status[1]), code[1] if code else "")
        kind = type(error).__name__
        if kind == "NotSupportedError":
            return OSError("the server does not support ranges (it ignores the Range header)")
        if kind == "PreconditionError":
            return ObjectReplaced("the object was replaced by another one while it was read")
        if "redirect without LOCATION" in summary:
            return OSError("the store redirects to another region: add ?region=REGION to the address")
        if "Content-Length Header missing" in summary:
            return OSError("the server does not report the size of the file")
        cause = next((words for mark, words in _CAUSES if mark in text), None)
        if cause is None:
            messages = _CAUSE.findall(text)
            cause = messages[-1] if messages else None
        if cause is not None:
            host = _HOST.search(summary)
            host_name = host[1] if host else self.bucket
            return _Unreachable(f"cannot reach {host_name}: {cause}")
        return OSError(f"the store's answer cannot be used: {summary}")

    def _refusal(self, status: int, code: str) -> OSError:
        """The error for a status that is not a success."""
        shown = f"{status} {code}".strip()
        hint = ""
        if self._is_web:
            options = f"endpoint_override={self.bucket}{'&scheme=http' * self._name.startswith('http:')}"
            hint = f"; a web server has single files, and a bucket there is 's3://BUCKET/PATH?{options}'"
        if code == "NoSuchBucket":
            return FileNotFoundError(errno.ENOENT, f"there is no bucket {self.bucket}")
        if status in (404, 410):
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + hint)
        if status == 412:
            return ObjectReplaced("the object was replaced by another one while it was read")
        if status == 416:
            return _PastEnd("the object ends before the range")
        if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
            return PermissionError(f"the store does not accept the credentials ({shown})")
        if status in (401, 403) and self._is_web:
            return PermissionError(f"the server denies access ({shown}){hint}")
        if status in (401, 403):
            is_anonymous = "skip_signature" in self._settings["config"]
            who = "without credentials" if is_anonymous else "with these credentials"
            return PermissionError(f"the store denies access {who} ({shown})")
        if 300 <= status < 400:
            return OSError(f"the store redirects ({status}) to an address that cannot be used")
        if status in (408, 429, 500, 502, 503, 504):
            return OSError(f"the store is not available ({shown}), after several attempts")
        return OSError(f"the store answers {shown}")


class _Unreachable(OSError):
    """The server or the source of credentials gave no usable answer."""


class _PastEnd(OSError):
    """The object ends before the range."""


def _again_if_cut(fetched: Callable[[], bytes]) -> bytes:
    """What a request returns, tried again if the answer breaks off: the library does that only up to its first byte."""
    began = time.monotonic()
    for attempt in range(1, PATIENCE.attempts):
        try:
            return fetched()
        except Exception as error:
            if "body error" not in _summary(error) or time.monotonic() - began > PATIENCE.retry_s:
                raise
        time.sleep(min(PATIENCE.first_pause_s * 2**attempt, PATIENCE.longest_pause_s))
    return fetched()


def _entry(name: str, meta: Any) -> RemoteEntry:
    return RemoteEntry(
        name, False, checked_size(meta["size"]), int(meta["last_modified"].timestamp()), meta["e_tag"] or ""
    )


def _summary(error: BaseException) -> str:
    """The library's message without its details, on one line."""
    words = " ".join(str(error).partition("\n\nDebug source")[0].split())
    return re.sub(r"^Generic \w+ error: ", "", words)[:500]
