"""A server in front of a store, which passes requests on and answers some of them with an error."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: The status to answer with, for a method and a target; None passes the request on.
Fault = Callable[[str, str], int | None]

_BODIES = {
    403: b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
    404: b"<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>",
    412: b"<Error><Code>PreconditionFailed</Code></Error>",
    503: b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
}


class FrontServer(ThreadingHTTPServer):
    """``seen`` are the requests so far: methods and targets."""

    def __init__(self, behind: str, fault: Fault) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind.removeprefix("http://")
        self.fault = fault
        self.seen: list[tuple[str, str]] = []

    @property
    def options(self) -> str:
        """The options of an address that lead here."""
        return f"endpoint_override=127.0.0.1:{self.server_port}&scheme=http&region=us-east-1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FrontServer

    def _answer(self) -> None:
        self.server.seen.append((self.command, self.path))
        status = self.server.fault(self.command, self.path)
        if status is not None:
            self._send(status, {"Content-Type": "application/xml"}, _BODIES.get(status, b""))
            return
        connection = http.client.HTTPConnection(self.server.behind)
        connection.request(self.command, self.path, headers=dict(self.headers))
        response = connection.getresponse()
        headers = {name: value for name, value in response.getheaders() if name.lower() not in _NOT_PASSED_ON}
        self._send(response.status, headers, response.read())
        connection.close()

    do_GET = do_HEAD = _answer  # noqa: N815

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


_NOT_PASSED_ON = ("connection", "date", "server", "transfer-encoding")


@contextmanager
def front_server(behind: str, fault: Fault = lambda method, target: None) -> Iterator[FrontServer]:
    """A running server before the one at this address."""
    with FrontServer(behind, fault) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
