"""Files of a web server: sizes by HEAD, ranges by GET, and directories from the index pages of the server."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urljoin, urlsplit

from format.io.stores.http_client import MOST_ANSWER_BYTES, Answer, AnswerTooLong, HttpClient, Request
from format.io.stores.store import ObjectReplaced, Ranges, RemoteEntry, WrongAddress

_MOST_REDIRECTS = 5
_DEPTH = 8
_NO_RANGES = "the server does not support ranges (it ignores the Range header)"


class HttpStore:
    """One web server; see the protocol Store. Paths are those of addresses, unquoted."""

    def __init__(self, scheme: str, host: str, query: dict[str, str]) -> None:
        if query:
            raise WrongAddress(f"an address of a web server takes no options ({', '.join(sorted(query))})")
        self._client = HttpClient(scheme, host)
        self._base = f"{scheme}://{host}"

    def entry(self, inner: str) -> RemoteEntry:
        """The entry of a file or directory; the server redirects a directory to the name with a slash."""
        name = inner.rstrip("/").rsplit("/", 1)[-1]
        answer, target = self._send("HEAD", _path(inner))
        if answer.status == 405:
            raise OSError("the server does not accept HEAD requests (405)")
        self._check(answer)
        if urlsplit(target).path.endswith("/"):
            return RemoteEntry(name, True, 0, 0)
        if not answer.header("content-length").isdigit():
            raise OSError("the server does not report the size of the file")
        return RemoteEntry(name, False, int(answer.header("content-length")), answer.modified_s, answer.header("etag"))

    def entries(self, inner: str, is_deep: bool) -> Iterator[tuple[str, RemoteEntry]]:
        """The links of the index page to names in the directory; takes a HEAD request for each file."""
        yield from self._entries(inner.rstrip("/"), "", _DEPTH if is_deep else 0)

    def _entries(self, directory: str, below: str, depth: int) -> Iterator[tuple[str, RemoteEntry]]:
        answer, target = self._send("GET", _path(directory).rstrip("/") + "/")
        self._check(answer)
        if "html" not in answer.header("content-type"):
            raise OSError("the server returns no index page for this directory")
        page = _Links()
        page.feed(answer.body.decode("utf-8", "replace"))
        base = urljoin(self._base, target)
        for link in dict.fromkeys(urljoin(base, each) for each in page.links):
            start, _, rest = link.partition(base)
            name = unquote(rest.rstrip("/"))
            if start or not name or "/" in name or "?" in rest or "#" in rest:
                continue
            path = f"{below}/{name}" if below else name
            if not rest.endswith("/"):
                yield path, self.entry(f"{directory}/{name}")
                continue
            yield path, RemoteEntry(name, True, 0, 0)
            if depth:
                yield from self._entries(f"{directory}/{name}", path, depth - 1)

    def open(self, inner: str, entry: RemoteEntry) -> Ranges:
        """Open a file; nothing is sent yet."""
        return _File(self, inner, entry)

    def range_of(self, inner: str, entry: RemoteEntry, length: int, position: int) -> bytes:
        """Read a range of a file; it is shorter at the end of the file."""
        headers = {"Range": f"bytes={position}-{position + length - 1}", "Accept-Encoding": "identity"}
        if entry.tag and not entry.tag.startswith("W/"):
            headers["If-Match"] = entry.tag
        try:
            answer, _ = self._send("GET", _path(inner), headers, length)
        except AnswerTooLong:
            raise OSError(_NO_RANGES) from None
        if answer.status == 412:
            raise ObjectReplaced("the file was replaced by another one while it was read")
        if answer.status == 416:
            return b""
        self._check(answer)
        if answer.status != 206 and position:
            raise OSError(_NO_RANGES)
        return answer.body

    def _send(
        self, method: str, target: str, headers: dict[str, str] | None = None, most_bytes: int = MOST_ANSWER_BYTES
    ) -> tuple[Answer, str]:
        """Send a request, and follow redirects within the server; return the answer and the last target."""
        complete = {"Host": self._client.authority, **(headers or {})}
        for _ in range(_MOST_REDIRECTS):
            answer = self._client.send(Request(method, target, complete, most_bytes))
            if answer.status not in (301, 302, 303, 307, 308):
                return answer, target
            link = urljoin(f"{self._base}{target}", answer.header("location"))
            if not link.startswith(f"{self._base}/"):
                raise OSError(f"the server redirects to another one ({link}): use that address")
            target = link.removeprefix(self._base)
        raise OSError(f"the server answers with more than {_MOST_REDIRECTS} redirects")

    def _check(self, answer: Answer) -> None:
        if answer.status in (404, 410):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + self._hint(answer))
        if answer.status in (401, 403):
            raise PermissionError(f"the server denies access ({answer.status}){self._hint(answer)}")
        if answer.status >= 400:
            raise OSError(f"the server answers with status {answer.status}")

    def _hint(self, answer: Answer) -> str:
        """How to read the address from a server with the protocol of S3, which needs credentials and lists names."""
        if not (answer.header("x-amz-request-id") or answer.header("x-amzn-requestid")):
            return ""
        host = urlsplit(self._base).hostname or ""
        if host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
            return "; it is S3: give s3://BUCKET/PATH"
        options = f"endpoint_override={self._client.authority}" + ("&scheme=http" * self._base.startswith("http:"))
        return f"; it speaks the protocol of S3: give 's3://BUCKET/PATH?{options}'"


class _File:
    def __init__(self, store: HttpStore, inner: str, entry: RemoteEntry) -> None:
        self._store, self._inner, self._entry = store, inner, entry

    def read_at(self, length: int, position: int) -> bytes:
        return self._store.range_of(self._inner, self._entry, length, position)

    def close(self) -> None:
        pass


class _Links(HTMLParser):
    """The targets of the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add the target of a link."""
        if tag == "a":
            self.links += [value for name, value in attrs if name == "href" and value]


def _path(inner: str) -> str:
    return quote(f"/{inner.lstrip('/')}", safe="/-_.~")
