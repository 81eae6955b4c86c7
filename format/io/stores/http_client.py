"""Requests to one HTTP server, with persistent connections, timeouts, bounded retries and counts of the traffic."""

from __future__ import annotations

import http.client
import os
import random
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import field
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from format.value_class import state_class, value_class

CONNECT_TIMEOUT_S = 5.0
SILENCE_TIMEOUT_S = 8.0  # without a byte
#: After this time no further attempt is made, and no request is sent to a failed server for the same time.
PATIENCE_S = 12.0
ATTEMPTS = 4
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 3.0
#: An answer that is slower than this after _SLOW_AFTER_S counts as a timeout.
_LEAST_BYTES_PER_S = 1024
_SLOW_AFTER_S = 20.0
_PIECE_BYTES = 1024 * 1024
_BUSY = frozenset((408, 425, 429, 500, 502, 503, 504))
#: The largest answer to a request other than for a range of an object.
MOST_ANSWER_BYTES = 64 * 1024 * 1024


@state_class
class Traffic:
    """Counts of the requests of this process."""

    requests: int = 0
    bytes_received: int = 0
    retries: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, bytes_received: int, *, is_retry: bool) -> None:
        """Count one request."""
        with self._lock:
            self.requests += 1
            self.bytes_received += bytes_received
            self.retries += is_retry

    def reset(self) -> None:
        """Set all counts to 0."""
        with self._lock:
            self.requests = self.bytes_received = self.retries = 0


traffic = Traffic()


class AnswerTooLong(OSError):
    """The answer has more bytes than the request allows."""


class ServerUnreachable(OSError):
    """The server gave no usable answer after several attempts; the message is a sentence."""


@value_class
class Answer:
    """A server's answer; the names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def header(self, name: str) -> str:
        """A header, empty if it is missing."""
        return self.headers.get(name, "")

    @property
    def modified_s(self) -> int:
        """The modification time of the resource in epoch seconds, 0 if the server does not report it."""
        try:
            return int(parsedate_to_datetime(self.header("last-modified")).timestamp())
        except (TypeError, ValueError):
            return 0


@value_class
class Request:
    """A request; ``most_bytes`` bounds the body of a successful answer."""

    method: str
    target: str  # path and query
    headers: Mapping[str, str] = field(default_factory=dict)
    most_bytes: int = MOST_ANSWER_BYTES


class HttpClient:
    """A client of one server, which several threads may use. After a fork, the child opens its own connections."""

    def __init__(self, scheme: str, authority: str, patience_s: float | None = None) -> None:
        """``authority`` is ``HOST`` or ``HOST:PORT``; raises OSError if it is not.

        ``patience_s`` (default PATIENCE_S) bounds the time for a connection, and the time for further attempts.
        """
        try:
            split = urlsplit(f"{scheme}://{authority}")
            self._port = split.port or (443 if scheme == "https" else 80)
        except ValueError as error:
            raise OSError(f"{authority} is not the address of a server: {error}") from None
        self._scheme, self._host = scheme, split.hostname or ""
        self.authority = authority
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._context: ssl.SSLContext | None = None
        self._is_resolved = False
        self._failure: tuple[float, str] | None = None

    def send(self, request: Request) -> Answer:
        """Send a request and return the answer, also one that reports an error; raises ServerUnreachable.

        After a failed connection or an answer of a busy server it tries again, with growing pauses, within PATIENCE_S.
        """
        if self._failure is not None and time.monotonic() < self._failure[0]:
            raise ServerUnreachable(self._failure[1])
        began = time.monotonic()
        words, answer = "", None
        for attempt in range(ATTEMPTS):
            is_last = attempt == ATTEMPTS - 1
            try:
                answer = self._attempt(request, is_retry=attempt > 0)
                if answer.status not in _BUSY:
                    self._failure = None
                    return answer
            except ssl.SSLCertVerificationError as error:
                words, answer, is_last = f"its certificate is not trusted ({error.verify_message})", None, True
            except AnswerTooLong:
                raise
            except ssl.SSLError as error:
                words, answer = _reason(error), None
                if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
                    words = "it does not speak TLS; without TLS: http://… or the option scheme=http"
                    is_last = True
            except (OSError, http.client.HTTPException) as error:
                words, answer = _reason(error), None
            pause = _pause_s(attempt, answer)
            if is_last or time.monotonic() - began + pause > self._patience_s:
                break
            time.sleep(pause)
        if answer is not None:
            return answer
        failure = f"cannot reach {self._host}:{self._port}: {words}"
        self._failure = time.monotonic() + self._patience_s, failure
        raise ServerUnreachable(failure)

    def _attempt(self, request: Request, *, is_retry: bool) -> Answer:
        connection = self._kept()
        if connection is not None:
            try:
                return self._exchange(connection, request, is_retry=is_retry)
            except (ConnectionError, http.client.BadStatusLine, ssl.SSLEOFError):
                pass  # the server closed a connection that was idle
        return self._exchange(self._connected(), request, is_retry=is_retry)

    def _exchange(self, connection: http.client.HTTPConnection, request: Request, *, is_retry: bool) -> Answer:
        received = 0
        try:
            connection.request(
                request.method, self._target(connection, request), headers={"User-Agent": "kafkalog", **request.headers}
            )
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            most_bytes = request.most_bytes if response.status < 300 else MOST_ANSWER_BYTES
            body = b"" if request.method == "HEAD" else _body(response, most_bytes)
            received = len(body)
        except BaseException:
            connection.close()
            raise
        finally:
            traffic.add(received, is_retry=is_retry)
        if response.will_close or not response.isclosed():
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return Answer(response.status, headers, body)

    def _target(self, connection: http.client.HTTPConnection, request: Request) -> str:
        """The target in the form that the peer expects: for a proxy of plain HTTP it is the whole address."""
        is_proxy = self._scheme == "http" and (connection.host, connection.port) != (self._host, self._port)
        return f"{self._scheme}://{self.authority}{request.target}" if is_proxy else request.target

    def _kept(self) -> http.client.HTTPConnection | None:
        with self._lock:
            if self._pid != os.getpid():  # after a fork: the connections belong to the parent
                self._idle, self._pid = [], os.getpid()
            return self._idle.pop() if self._idle else None

    def _connected(self) -> http.client.HTTPConnection:
        proxy = None if proxy_bypass(self._host) else getproxies().get(self._scheme)
        split = None if proxy is None else urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        host, port = (self._host, self._port) if split is None else (split.hostname or "", split.port)
        self._resolve(host)
        connection: http.client.HTTPConnection
        if self._scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port or 443, timeout=self._connect_timeout_s(), context=self._tls_context()
            )
        else:
            connection = http.client.HTTPConnection(host, port or 80, timeout=self._connect_timeout_s())
        if self._scheme == "https" and split is not None:
            connection.set_tunnel(self._host, self._port, _proxy_headers(split.username, split.password))
        connection.connect()
        connection.sock.settimeout(SILENCE_TIMEOUT_S)
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _connect_timeout_s(self) -> float:
        return min(CONNECT_TIMEOUT_S, self._patience_s)

    def _resolve(self, host: str) -> None:
        """Look up the host's name once, in a thread: resolvers have no time limit, a connection has one."""
        if self._is_resolved:
            return
        errors: list[OSError] = []

        def look() -> None:
            try:
                socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except OSError as error:
                errors.append(error)

        thread = threading.Thread(target=look, daemon=True, name="resolver")
        thread.start()
        thread.join(self._connect_timeout_s())
        if thread.is_alive():
            raise TimeoutError
        if errors:
            raise errors[0]
        self._is_resolved = True

    def _tls_context(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE") or None)
        return self._context

    def close(self) -> None:
        """Close all idle connections."""
        with self._lock:
            for each in self._idle:
                each.close()
            self._idle.clear()


def _proxy_headers(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Proxy-Authorization": "Basic " + b64encode(pair.encode()).decode()}


def _body(response: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """The whole body; raises OSError for one that is too long or comes too slowly."""
    began = time.monotonic()
    length = response.length
    if length is not None and length > most_bytes:
        raise AnswerTooLong(f"the answer has {length} bytes, over the limit of {most_bytes}")
    if length is not None and length <= _PIECE_BYTES:
        return response.read()  # raises IncompleteRead
    pieces, received = [], 0
    while piece := response.read1(_PIECE_BYTES):
        pieces.append(piece)
        received += len(piece)
        if received > most_bytes:
            raise AnswerTooLong(f"the answer has more bytes than the limit of {most_bytes}")
        seconds = time.monotonic() - began
        if seconds > _SLOW_AFTER_S and received < seconds * _LEAST_BYTES_PER_S:
            raise TimeoutError
    if length is not None and received < length:
        raise http.client.IncompleteRead(b"", length - received)
    return b"".join(pieces)


def _pause_s(attempt: int, answer: Answer | None) -> float:
    """The pause before the next attempt: as the server asks for in Retry-After, else growing, with a random part."""
    asked = answer.header("retry-after") if answer is not None else ""
    if asked.isdigit():
        return min(float(asked), _LONGEST_PAUSE_S)
    return float(min(_FIRST_PAUSE_S * 2.0**attempt, _LONGEST_PAUSE_S) * random.uniform(0.5, 1.0))


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.IncompleteRead):
        return "the answer was cut off"
    if isinstance(error, http.client.HTTPException):
        return f"the answer is not HTTP ({type(error).__name__})"
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    return str(error) or type(error).__name__
