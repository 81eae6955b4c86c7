"""Servers that answer what no honest store answers: bytes as they are given, drips, and listings without an end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

#: What is sent for a request (its first line): pieces of bytes, each after a pause in seconds.
Script = Callable[[str], Iterable[tuple[float, bytes]]]


@contextmanager
def hostile_server(script: Script) -> Iterator[str]:
    """A running server; yields ``HOST:PORT``. Each connection serves one request."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        stop = threading.Event()

        def serve(connection: socket.socket) -> None:
            with connection:
                request = b""
                while b"\r\n\r\n" not in request:
                    got = connection.recv(65536)
                    if not got:
                        return
                    request += got
                try:
                    for pause_s, piece in script(request.split(b"\r\n", 1)[0].decode()):
                        if stop.wait(pause_s):
                            return
                        connection.sendall(piece)
                    connection.shutdown(socket.SHUT_WR)
                    time.sleep(0.01)
                except OSError:
                    pass

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        host, port = listening.getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            stop.set()
            listening.shutdown(socket.SHUT_RDWR)


def answer(status: str, headers: str = "", body: bytes = b"") -> list[tuple[float, bytes]]:
    """An answer with these headers, each ended by CR and LF; without them it has the length of its body."""
    headers = headers or f"Content-Length: {len(body)}\r\n"
    return [(0, f"HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n".encode() + body)]


def page(entries: str, token: str = "") -> list[tuple[float, bytes]]:
    """A page of a listing of S3; with a token, another page follows."""
    more = f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>" if token else ""
    body = f'<?xml version="1.0"?><ListBucketResult><Name>b</Name>{entries}{more}</ListBucketResult>'
    return answer("200 OK", body=body.encode())


def contents(key: str, size: int = 5) -> str:
    """One object of a listing."""
    return (
        f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag>"
        f"<Size>{size}</Size></Contents>"
    )
