"""Requests to a web server that is busy, silent, slow, or not there: bounded retries, and one sentence at the end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from format.io.stores import http_client
from format.io.stores.http_client import AnswerTooLong, HttpClient, Request, ServerUnreachable, traffic

pytestmark = pytest.mark.slow


class _Server(ThreadingHTTPServer):
    """Answers with the statuses in ``statuses`` one after the other, then with 200."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.requests: list[str] = []
        self.closes = False
        self.body = b"0123456789"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:
            self.close_connection = True
            return  # the connection ends without an answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(self.server.body) + (5 if status == 299 else 0)))
        self.end_headers()
        self.wfile.write(self.server.body)
        self.close_connection = self.server.closes or status == 299

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(http_client, "SILENCE_TIMEOUT_S", 0.3)
    traffic.reset()


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def client(server: _Server) -> HttpClient:
    return HttpClient("http", f"127.0.0.1:{server.server_port}")


def test_one_connection_serves_many_requests(server: _Server, client: HttpClient) -> None:
    for _ in range(5):
        assert client.send(Request("GET", "/a?b=c")).body == b"0123456789"
    assert server.requests == ["/a?b=c"] * 5
    assert (traffic.requests, traffic.bytes_received, traffic.retries) == (5, 50, 0)
    assert len(client._idle) == 1


@pytest.mark.parametrize("status", [503, 429, 500, 0, 299])
def test_a_failure_that_passes_is_tried_again(server: _Server, client: HttpClient, status: int) -> None:
    server.statuses = [status, status]
    assert client.send(Request("GET", "/")).status == 200
    assert traffic.retries == 2


def test_a_busy_server_is_given_up_after_some_attempts(server: _Server, client: HttpClient) -> None:
    server.statuses = [503] * 100
    assert client.send(Request("GET", "/")).status == 503
    assert len(server.requests) == http_client.ATTEMPTS


@pytest.mark.parametrize("status", [403, 404, 416])
def test_an_answer_is_an_answer(server: _Server, client: HttpClient, status: int) -> None:
    server.statuses = [status]
    assert client.send(Request("GET", "/")).status == status
    assert len(server.requests) == 1


def test_a_connection_that_was_closed_while_idle_costs_no_attempt(server: _Server, client: HttpClient) -> None:
    server.closes = True
    for _ in range(3):
        assert client.send(Request("GET", "/")).status == 200
    server.closes = False
    client.send(Request("GET", "/"))
    client._idle[0].sock.shutdown(socket.SHUT_RDWR)
    assert client.send(Request("GET", "/")).status == 200


def test_an_answer_longer_than_asked_for_is_not_read(client: HttpClient) -> None:
    with pytest.raises(AnswerTooLong):
        client.send(Request("GET", "/", most_bytes=9))


def test_a_server_that_is_not_there_is_one_sentence_and_not_asked_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    client = HttpClient("http", f"127.0.0.1:{port}")
    with pytest.raises(ServerUnreachable, match=rf"^cannot reach 127\.0\.0\.1:{port}: Connection refused$"):
        client.send(Request("GET", "/"))
    asked = traffic.requests
    with pytest.raises(ServerUnreachable, match="Connection refused"):
        client.send(Request("GET", "/"))
    assert traffic.requests == asked


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "PATIENCE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = HttpClient("http", f"127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ServerUnreachable, match="no answer in time"):
            client.send(Request("GET", "/"))
    assert 1 <= traffic.requests <= 3


def test_an_answer_that_drips_is_given_up(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "ATTEMPTS", 1)
    monkeypatch.setattr(http_client, "_SLOW_AFTER_S", 0.2)
    stop = threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")
        while not stop.is_set():
            try:
                connection.sendall(b"x")
            except OSError:
                return
            time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, daemon=True).start()
        client = HttpClient("http", f"127.0.0.1:{listening.getsockname()[1]}")
        with pytest.raises(ServerUnreachable, match="no answer in time"):
            client.send(Request("GET", "/"))
    stop.set()


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(ServerUnreachable, match=r"^cannot reach no-such-host\.invalid:443: "):
        HttpClient("https", "no-such-host.invalid", 2.0).send(Request("GET", "/"))


def test_no_address() -> None:
    with pytest.raises(OSError, match="is not the address of a server"):
        HttpClient("http", "host:port")


def test_a_proxy_for_plain_http_is_given_the_whole_address(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("no_proxy", "")
    assert HttpClient("http", "store.invalid:9000").send(Request("GET", "/a")).status == 200
    assert server.requests == ["http://store.invalid:9000/a"]
