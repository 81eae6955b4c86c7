"""A bucket is listed and read as a directory is, with few requests, and says in a sentence what it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from format.io.stores import http_client, s3_store
from format.io.stores.http_client import traffic
from format.io.stores.s3_store import S3Store, _page
from format.io.stores.store import ObjectReplaced
from tests.front_server import front_server

pytestmark = pytest.mark.slow

Upload = Callable[[Path, str], str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_FIRST_PAUSE_S", 0.001)


@pytest.fixture
def opened(store: str) -> S3Store:
    return S3Store("logs", {})


@pytest.fixture
def tree(upload: Upload, tmp_path: Path) -> Path:
    for name in ("a-0/1.log", "a-0/2.log", "a-0/deep/er/3.log", "a-00/4.log", "odd name+ü/5.log", "top"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 10)
    upload(tmp_path, "tree")
    return tmp_path


@pytest.mark.parametrize("names_per_request", [1000, 2])
def test_listings(opened: S3Store, tree: Path, names_per_request: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_store, "_NAMES_PER_REQUEST", names_per_request)
    flat = {name: entry.is_directory for name, entry in opened.entries("tree", False)}
    assert flat == {"a-0": True, "a-00": True, "odd name+ü": True, "top": False}
    deep = {name: (entry.is_directory, entry.size_bytes) for name, entry in opened.entries("/tree/", True)}
    expected = {
        str(path.relative_to(tree)): (path.is_dir(), 0 if path.is_dir() else path.stat().st_size)
        for path in tree.rglob("*")
    }
    assert deep == expected
    with pytest.raises(FileNotFoundError):
        list(opened.entries("tree/nothing", False))


def test_entries_and_ranges(opened: S3Store, tree: Path) -> None:
    assert opened.entry("tree/a-0").is_directory
    assert opened.entry("").is_directory
    entry = opened.entry("tree/a-0/1.log")
    content = (tree / "a-0" / "1.log").read_bytes()
    assert (entry.is_directory, entry.size_bytes, entry.name) == (False, len(content), "1.log")
    assert entry.mtime_s > 1_700_000_000
    traffic.reset()
    opened_object = opened.open("tree/a-0/1.log", entry)
    assert opened_object.read_at(5, 3) == content[3:8]
    assert opened_object.read_at(1000, 80) == content[80:]
    assert opened_object.read_at(10, len(content)) == b""
    assert traffic.requests == 3
    with pytest.raises(FileNotFoundError):
        opened.entry("tree/nothing")
    with pytest.raises(FileNotFoundError):
        opened.open("tree/nothing", entry).read_at(1, 0)


def test_an_object_that_was_replaced(opened: S3Store, tree: Path, upload: Upload) -> None:
    entry = opened.entry("tree/top")
    (tree / "top").write_bytes(b"other content")
    upload(tree, "tree")
    with pytest.raises(ObjectReplaced, match="the object was replaced by another one"):
        opened.open("tree/top", entry).read_at(5, 0)


def test_a_bucket_that_does_not_exist(store: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no bucket absent"):
        list(S3Store("absent", {}).entries("x", False))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, r"the store denies access with these credentials \(403 AccessDenied\)"),
        (503, r"the store is not available \(503 SlowDown\), after several attempts"),
        (418, "the store answers 418"),
    ],
)
def test_an_error_is_a_sentence(store: str, status: int, words: str) -> None:
    with front_server(store, lambda method, target: status) as front:
        options = dict(each.split("=") for each in front.options.split("&"))
        with pytest.raises(OSError, match=words):
            list(S3Store("logs", options).entries("x", False))
        if status == 403:
            with pytest.raises(OSError, match="denies access without credentials"):
                list(S3Store("logs", {**options, "anonymous": "true"}).entries("x", False))


def test_a_range_that_the_server_ignores_is_not_taken_for_it(opened: S3Store, tree: Path) -> None:
    entry = opened.entry("tree/top")
    front = opened._client.send

    def without_range(request: http_client.Request) -> http_client.Answer:
        headers = {name: value for name, value in request.headers.items() if name != "range"}
        return front(http_client.Request(request.method, request.target, headers, request.most_bytes))

    opened._client.send = without_range  # type: ignore[method-assign]
    with pytest.raises(OSError):
        opened.open("tree/top", entry).read_at(5, 3)


def test_options_of_an_address(store: str) -> None:
    with pytest.raises(
        OSError, match="unknown option nonsense: an address takes anonymous, endpoint_override, profile"
    ):
        S3Store("logs", {"nonsense": "1"})


def test_names_in_the_host_or_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    keys = {"region": "eu-west-1", "anonymous": "true"}
    assert S3Store("my-logs", keys)._client.authority == "my-logs.s3.eu-west-1.amazonaws.com"
    dotted = S3Store("my.logs", keys)
    assert (dotted._client.authority, dotted._prefix) == ("s3.eu-west-1.amazonaws.com", "/my.logs")
    own = S3Store("k:s@logs", {"endpoint_override": "host:9000", "scheme": "http"})
    assert (own._client.authority, own._prefix) == ("host:9000", "/logs")


def test_what_is_no_listing() -> None:
    for body in (b"", b"<html>", b"<L><Contents><Key>a</Key></Contents></L>"):
        with pytest.raises(OSError, match="is not a listing of a bucket"):
            _page(body)
