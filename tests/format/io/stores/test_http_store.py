"""Files of a web server with index pages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from format.errors import UnreadableFile
from format.io import remote_files
from format.io.remote_path import path_of
from format.io.source import FileSource
from format.io.stores.http_store import HttpStore
from format.verbs.verify.verify import verify
from tests.building import batches, write_segment

pytestmark = pytest.mark.slow


class _Handler(SimpleHTTPRequestHandler):
    serves_ranges = True

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        path = Path(self.translate_path(self.path))
        if wanted is None or not self.serves_ranges or not path.is_file():
            super().do_GET()
            return
        first, last = map(int, wanted.removeprefix("bytes=").split("-"))
        content = path.read_bytes()
        if first >= len(content):
            self.send_error(416)
            return
        part = content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    write_segment(tmp_path / "top ic-0", 0, batches(2000))
    write_segment(tmp_path / "t-1", 0, batches(20))
    content = bytearray((tmp_path / "t-1" / f"{0:020d}.log").read_bytes())
    content[500] ^= 1
    (tmp_path / "t-1" / f"{0:020d}.log").write_bytes(content)
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n")
    return tmp_path


@pytest.fixture
def address(log_dir: Path) -> Iterator[str]:
    class Handler(_Handler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(log_dir))

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_listings_and_entries(address: str, log_dir: Path) -> None:
    store = HttpStore("http", address.removeprefix("http://"), {})
    found = {name: (entry.is_directory, entry.size_bytes) for name, entry in store.entries("", True)}
    assert found == {
        str(path.relative_to(log_dir)): (path.is_dir(), 0 if path.is_dir() else path.stat().st_size)
        for path in log_dir.rglob("*")
    }
    assert store.entry("t-1").is_directory  # the server sends on to the name with a slash
    assert not store.entry("meta.properties").is_directory
    with pytest.raises(FileNotFoundError):
        store.entry("nothing")
    with pytest.raises(OSError, match="takes no options"):
        HttpStore("http", "h", {"a": "b"})


def test_a_log_directory_behind_a_web_server(address: str, log_dir: Path) -> None:
    remote_files.give([address])
    try:
        there = list(verify(path_of(address)))
    finally:
        remote_files.forget()
    here = list(verify(log_dir))
    shown = [(each.code, each.location.path.replace(address, str(log_dir)), each.message) for each in there]
    assert shown == [(each.code, each.location.path, each.message.replace(address, str(log_dir))) for each in here]
    assert "batch-crc-mismatch" in {each.code for each in here}


def test_a_server_without_ranges_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Handler, "serves_ranges", False)
    with (
        FileSource(f"{address}/top ic-0/{0:020d}.log") as source,
        pytest.raises(UnreadableFile, match=r"does not support ranges \(it ignores the Range header\)"),
    ):
        source.read_at(70_000, 100)
