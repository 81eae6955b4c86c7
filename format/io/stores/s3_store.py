"""A bucket of S3 or a compatible server: listings and ranged reads, by plain HTTP requests."""

from __future__ import annotations

import errno
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from datetime import datetime
from urllib.parse import unquote_plus

from format.io.s3_connection import DEFAULT_REGION, region_of_bucket, with_environment
from format.io.stores.aws_credentials import CredentialSource, credential_source, profile_settings
from format.io.stores.aws_signature import Scope, encoded_path, encoded_query, signed_headers
from format.io.stores.http_client import MOST_ANSWER_BYTES, Answer, HttpClient, Request
from format.io.stores.store import ObjectReplaced, Ranges, RemoteEntry, WrongAddress

#: The options that an address may have.
_OPTIONS = frozenset(("region", "scheme", "endpoint_override", "anonymous", "profile"))
_NAMES_PER_REQUEST = 1000
#: Names of buckets that can be part of a host name: the certificate is for ``*.s3.REGION.amazonaws.com``.
_HOST_PART = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")


class S3Store:
    """One bucket; see the protocol Store."""

    def __init__(self, host: str, query: dict[str, str]) -> None:
        """``host`` is ``[KEY:SECRET@]BUCKET``. Raises OSError for options or credentials that cannot be used."""
        unknown = sorted(set(query) - _OPTIONS)
        if unknown:
            raise WrongAddress(f"unknown option {', '.join(unknown)}: an address takes {', '.join(sorted(_OPTIONS))}")
        if query.get("scheme", "https") not in ("http", "https"):
            raise WrongAddress(f"scheme={query['scheme']}: it is http or https")
        keys, _, self._bucket = host.rpartition("@")
        settings = profile_settings(query.get("profile"))
        options = with_environment(query, settings)
        self._credentials: CredentialSource = credential_source(keys, options)
        self._region = options.get("region", "")
        self._endpoint = options.get("endpoint_override")
        self._scheme = options.get("scheme", "https")
        if not self._region:
            self._region = DEFAULT_REGION if self._endpoint else region_of_bucket(self._bucket)
        self._connect()

    def _connect(self) -> None:
        """Make a client. The bucket is in the host name for AWS, and in the path for other servers."""
        if self._endpoint is not None:
            authority, self._prefix = self._endpoint, f"/{self._bucket}"
        elif _HOST_PART.fullmatch(self._bucket):
            authority, self._prefix = f"{self._bucket}.s3.{self._region}.{_domain(self._region)}", ""
        else:
            authority, self._prefix = f"s3.{self._region}.{_domain(self._region)}", f"/{self._bucket}"
        self._client = HttpClient(self._scheme, authority)

    # -- the interface of stores -------------------------------------------------------------------------------

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of an object, or of a directory: a prefix of other names."""
        inner = inner.removeprefix("/")
        name = inner.rsplit("/", 1)[-1]
        if inner and not inner.endswith("/"):
            answer = self._send("HEAD", f"/{inner}")
            if answer.status == 200:
                size_bytes = int(answer.header("content-length") or 0)
                return RemoteEntry(name, False, size_bytes, answer.modified_s, answer.header("etag"))
            if answer.status != 404:
                raise self._error(answer)
        for _ in self._listed(_below(inner), is_deep=True, most=1):
            return RemoteEntry(name, True, 0, 0)
        if not inner:
            return RemoteEntry(name, True, 0, 0)  # an empty bucket
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The objects below a prefix; the parts of their names before a slash are directories."""
        prefix = _below(inner.removeprefix("/"))
        known: set[str] = set()
        is_there = not prefix
        for key, entry in self._listed(prefix, is_deep=is_deep):
            is_there = True
            path = key[len(prefix) :].rstrip("/")
            if not path:
                continue  # the empty object that marks a directory
            for parent in _parents(path):
                if parent not in known:
                    known.add(parent)
                    yield parent, RemoteEntry(parent.rsplit("/", 1)[-1], True, 0, 0)
            if entry.is_directory:
                if path not in known:
                    known.add(path)
                    yield path, entry
            else:
                yield path, entry
        if not is_there:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open an object; nothing is sent yet."""
        return _Object(self, inner.removeprefix("/"), entry)

    # -- requests ----------------------------------------------------------------------------------------------

    def range_of(self, inner: str, tag: str, length: int, position: int) -> bytes:
        """Read a range of an object; it is shorter at the end of the object."""
        headers = {"range": f"bytes={position}-{position + length - 1}"} | ({"if-match": tag} if tag else {})
        answer = self._send("GET", f"/{inner}", headers=headers, most_bytes=length)
        if answer.status == 206 or (answer.status == 200 and position == 0):
            return answer.body
        if answer.status == 416:
            return b""
        if answer.status == 412:
            raise ObjectReplaced("the object was replaced by another one while it was read")
        raise self._error(answer)

    def _listed(self, prefix: str, *, is_deep: bool, most: int = 0) -> Iterator[tuple[str, RemoteEntry]]:
        """Keys with the prefix, and their entries. Without ``is_deep``, a directory stands for the keys below it."""
        parameters = [("list-type", "2"), ("encoding-type", "url"), ("max-keys", str(most or _NAMES_PER_REQUEST))]
        parameters += [("prefix", prefix)] if prefix else []
        parameters += [] if is_deep else [("delimiter", "/")]
        token = ""
        while True:
            of_page = [*parameters, ("continuation-token", token)] if token else parameters
            answer = self._send("GET", "" if self._prefix else "/", of_page)
            if answer.status != 200:
                raise self._error(answer)
            page = _page(answer.body)
            yield from page.entries
            token = page.next_token
            if not token or most:
                return

    def _send(
        self,
        method: str,
        path: str,
        parameters: Sequence[tuple[str, str]] = (),
        headers: dict[str, str] | None = None,
        most_bytes: int = MOST_ANSWER_BYTES,
    ) -> Answer:
        """Send a request, and again to the bucket's own region if that is another one; return the answer."""
        for _ in range(2):
            target = encoded_path(self._prefix + path) + (f"?{encoded_query(parameters)}" if parameters else "")
            complete = {"host": self._client.authority, **(headers or {})}
            credentials = self._credentials()
            if credentials is not None:
                complete = signed_headers(method, target, complete, credentials, Scope(self._region))
            answer = self._client.send(Request(method, target, complete, most_bytes))
            region = answer.header("x-amz-bucket-region")
            if answer.status not in (301, 307, 400) or not region or region == self._region or self._endpoint:
                return answer
            self._region = region
            self._connect()
        return answer

    def _error(self, answer: Answer) -> OSError:
        code, message = _error_code(answer.body)
        shown = f"{answer.status} {code}".strip()
        if code == "NoSuchBucket":
            return FileNotFoundError(errno.ENOENT, f"there is no bucket {self._bucket}")
        if answer.status == 404:
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
            return PermissionError(f"the store does not accept the credentials ({shown})")
        if answer.status in (401, 403):
            who = "without credentials" if self._credentials() is None else "with these credentials"
            return PermissionError(f"the store denies access {who} ({shown})")
        if answer.status in (429, 500, 502, 503, 504):
            return OSError(f"the store is not available ({shown}), after several attempts")
        return OSError(f"the store answers {shown}{': ' if message else ''}{message}")


class _Object:
    def __init__(self, store: S3Store, inner: str, entry: RemoteEntry) -> None:
        self._store, self._inner, self._tag = store, inner, entry.tag

    def read_at(self, length: int, position: int) -> bytes:
        return self._store.range_of(self._inner, self._tag, length, position)

    def close(self) -> None:
        pass


class _Page:
    """One page of a listing."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, RemoteEntry]] = []
        self.next_token = ""


def _page(body: bytes) -> _Page:
    """Decode one page of a listing; raises OSError for any other answer."""
    page = _Page()
    try:
        root = ET.fromstring(body)
        for element in root:
            kind = _local(element)
            values = {_local(each): each.text or "" for each in element}
            if kind == "Contents":
                key = unquote_plus(values["Key"])
                name = key.rstrip("/").rsplit("/", 1)[-1]
                mtime_s = int(datetime.fromisoformat(values["LastModified"]).timestamp())
                entry = RemoteEntry(name, key.endswith("/"), int(values["Size"]), mtime_s, values.get("ETag", ""))
                page.entries.append((key, entry))
            elif kind == "CommonPrefixes":
                key = unquote_plus(values["Prefix"])
                page.entries.append((key, RemoteEntry(key.rstrip("/").rsplit("/", 1)[-1], True, 0, 0)))
            elif kind == "NextContinuationToken":
                page.next_token = element.text or ""
    except (ET.ParseError, KeyError, ValueError) as error:
        raise OSError(f"the answer is not a listing of a bucket ({error})") from error
    return page


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _error_code(body: bytes) -> tuple[str, str]:
    try:
        values = {_local(each): each.text or "" for each in ET.fromstring(body)}
    except ET.ParseError:
        return "", ""
    return values.get("Code", ""), " ".join(values.get("Message", "").split())[:200]


def _below(inner: str) -> str:
    return f"{inner.rstrip('/')}/" if inner.strip("/") else ""


def _parents(path: str) -> Iterator[str]:
    """The parent directories of a path, the uppermost first."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
