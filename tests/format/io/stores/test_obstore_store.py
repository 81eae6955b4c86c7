"""Buckets and web servers: entries, listings, ranges, credentials, and one sentence for what cannot be read."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from format.io import obstore_store
from format.io.obstore_store import ObjectStore, Patience, connected
from format.io.store import Calls, ObjectReplaced, RemoteEntry, WrongAddress
from tests.front_server import FrontServer, front_server
from tests.hostile_store import answer, hostile_server

Upload = Callable[[Path, str], str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obstore_store, "PATIENCE", Patience(first_pause_s=0.001, longest_pause_s=0.002))


def _options(front: FrontServer, **others: str) -> dict[str, str]:
    return dict(each.split("=") for each in front.options.split("&")) | others


@pytest.fixture
def tree(upload: Upload, tmp_path: Path) -> Path:
    for name in ("a-0/1.log", "a-0/2.log", "a-0/deep/er/3.log", "a-00/4.log", "odd name+ü%/5.log", "top"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 10)
    upload(tmp_path, "tree")
    return tmp_path


@pytest.fixture
def opened(store: str) -> ObjectStore:
    return connected("s3", "logs", {}, Calls())[0]


# -- entries, listings, ranges -------------------------------------------------------------------------------


@pytest.mark.slow
def test_listings(opened: ObjectStore, tree: Path) -> None:
    flat = {name: entry.is_directory for name, entry in opened.entries("tree", False)}
    assert flat == {"a-0": True, "a-00": True, "odd name+ü%": True, "top": False}
    deep = {name: (entry.is_directory, entry.size_bytes) for name, entry in opened.entries("/tree/", True)}
    assert deep == {
        str(path.relative_to(tree)): (path.is_dir(), 0 if path.is_dir() else path.stat().st_size)
        for path in tree.rglob("*")
    }
    for is_deep in (False, True):
        with pytest.raises(FileNotFoundError):
            list(opened.entries("tree/nothing", is_deep))


def test_the_rest_of_a_large_directory_is_not_listed(
    store: str, tree: Path, monkeypatch: pytest.MonkeyPatch, upload: Upload
) -> None:
    monkeypatch.setattr(obstore_store, "_KEYS_PER_CALL", 1)
    (tree / "0").write_bytes(b"before the first directory")
    upload(tree, "tree")
    with front_server(store) as front:
        flat = list(connected("s3", "logs", _options(front), Calls())[0].entries("tree", False))
    assert [(name, entry.is_directory) for name, entry in flat] == [
        ("0", False),
        ("top", False),
        ("a-0", True),
        ("a-00", True),
        ("odd name+ü%", True),
    ]
    assert ["delimiter" in target for _, target in front.seen] == [False, True]


def test_entries_and_ranges(store: str, tree: Path) -> None:
    with front_server(store) as front:
        opened = connected("s3", "logs", _options(front), Calls())[0]
        assert opened.entry("tree/a-0").is_directory
        assert opened.entry("tree/a-0/").is_directory
        assert opened.entry("").is_directory
        entry = opened.entry("tree/a-0/1.log")
        content = (tree / "a-0" / "1.log").read_bytes()
        assert (entry.is_directory, entry.size_bytes, entry.name) == (False, len(content), "1.log")
        assert entry.mtime_s > 1_700_000_000
        front.seen.clear()
        opened_object = opened.open("tree/a-0/1.log", entry)
        assert opened_object.read_at(5, 3) == content[3:8]
        assert opened_object.read_at(1000, 80) == content[80:]
        assert opened_object.read_at(10, len(content)) == b""
        assert opened_object.read_at(len(content), 0) == content
        assert front.seen == [("GET", "/logs/tree/a-0/1.log")] * 4
        with pytest.raises(FileNotFoundError):
            opened.entry("tree/nothing")
        with pytest.raises(FileNotFoundError):
            opened.open("tree/nothing", entry).read_at(1, 0)


def test_an_object_that_was_replaced(opened: ObjectStore, tree: Path, upload: Upload) -> None:
    entry = opened.entry("tree/top")
    (tree / "top").write_bytes(b"other content, and longer than the first one was")
    upload(tree, "tree")
    for length in (5, entry.size_bytes):
        with pytest.raises(ObjectReplaced, match="the object was replaced by another one"):
            opened.open("tree/top", entry).read_at(length, 0)


def test_google_is_listed(store: str, tree: Path) -> None:
    options = {"endpoint_override": store, "anonymous": "true"}
    found = dict(connected("gs", "logs", options, Calls())[0].entries("tree", False))
    assert found["a-0"].is_directory
    assert found["top"].size_bytes == 30


# -- errors --------------------------------------------------------------------------------------------------


def test_a_bucket_that_does_not_exist(store: str) -> None:
    with pytest.raises(FileNotFoundError, match="there is no bucket absent"):
        list(connected("s3", "absent", {}, Calls())[0].entries("x", False))


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, r"^the store denies access with these credentials \(403 AccessDenied\)$"),
        (503, r"^the store is not available \(503 SlowDown\), after several attempts$"),
        (418, "^the store answers 418$"),
    ],
)
def test_an_error_is_a_sentence(store: str, status: int, words: str) -> None:
    with front_server(store, lambda method, target: status) as front:
        with pytest.raises(OSError, match=words):
            list(connected("s3", "logs", _options(front), Calls())[0].entries("x", False))
        assert len(front.seen) == (obstore_store.PATIENCE.attempts if status == 503 else 1)
        if status == 403:
            with pytest.raises(OSError, match="denies access without credentials"):
                list(connected("s3", "logs", _options(front, anonymous="true"), Calls())[0].entries("x", False))


def test_a_store_that_is_not_there_is_not_asked_again(opened: ObjectStore) -> None:
    gone = connected("s3", "logs", {"endpoint_override": "127.0.0.1:1", "scheme": "http"}, Calls())[0]
    with pytest.raises(OSError, match=r"^cannot reach 127\.0\.0\.1:1: Connection refused$"):
        gone.entry("x")
    gone._store = None  # so a request would fail otherwise
    with pytest.raises(OSError, match="Connection refused"):
        gone.entry("y")


def test_a_copy_of_the_process_is_refused_and_does_not_wait(opened: ObjectStore) -> None:
    """The threads of the library are not in a forked process, where each call would wait for ever."""
    opened.entry("")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            opened.entry("")
        except OSError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        assert "must open it anew" in said.read()


@pytest.mark.parametrize(
    ("scheme", "host", "query", "words"),
    [
        ("s3", "logs", {"nonsense": "1"}, "unknown option nonsense: an address takes anonymous, endpoint_override"),
        ("s3", "", {}, "this names no bucket: s3://BUCKET/PATH"),
        ("s3a", "KEY:SECRET@", {}, "this names no bucket"),
        ("gs", "", {}, "this names no bucket"),
        ("abfs", "", {}, "this names no container: abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"),
        ("abfs", "logs", {}, "this names no container"),
        ("s3", "logs", {"scheme": "ftp"}, "scheme=ftp: it is http or https"),
        ("s3", "logs", {"endpoint_override": "[::1"}, "is not the address of a server"),
        ("s3", "logs", {"endpoint_override": "host:port"}, "is not the address of a server"),
        ("s3", "logs", {"endpoint_override": "hôst"}, "is not the address of a server"),
        ("http", "host:port", {}, "is not the address of a store"),
        ("http", "host", {"a": "b"}, "takes no options"),
    ],
)
def test_addresses_that_cannot_be_used(scheme: str, host: str, query: dict[str, str], words: str) -> None:
    with pytest.raises(WrongAddress, match=words):
        connected(scheme, host, query, Calls())


def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    headers = "Content-Length: 10\r\nContent-Range: bytes 0-9/20\r\n"
    bodies = [b"01234", b"", b"0123456789"]
    with hostile_server(lambda line: answer("206 Partial Content", headers, bodies.pop(0))) as where:
        opened = connected("http", where, {}, Calls())[0]
        assert opened.open("x", RemoteEntry("x", False, 20, 0)).read_at(10, 0) == b"0123456789"
        bodies = [b"01"] * 100
        with pytest.raises(OSError, match="the answer was cut off"):
            opened.open("x", RemoteEntry("x", False, 20, 0)).read_at(10, 0)
        assert len(bodies) == 100 - obstore_store.PATIENCE.attempts


def test_an_answer_without_an_end_is_read_as_far_as_was_asked_for() -> None:
    def endless(line: str) -> Iterator[tuple[float, bytes]]:
        yield 0, b"HTTP/1.1 206 Partial Content\r\nContent-Length: 1000000000000\r\nContent-Range: bytes 0-9/20\r\n\r\n"
        while True:
            yield 0, b"01234"

    with hostile_server(endless) as where:
        opened = connected("http", where, {}, Calls())[0]
        assert opened.open("x", RemoteEntry("x", False, 20, 0)).read_at(10, 0) == b"0123401234"


# -- credentials and regions ---------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No credentials but those in two files, which are not there yet."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    return tmp_path


def _key_of(opened: ObjectStore) -> str:
    return str(opened._settings["credential_provider"]()["access_key_id"])


def test_the_address_comes_first(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = connected("s3", "a%2Fkey:a%40secret@logs", {}, Calls())[0]._settings["credential_provider"]()
    assert (found["access_key_id"], found["secret_access_key"], found["token"]) == ("a/key", "a@secret", None)
    assert "credential_provider" not in connected("s3", "logs", {}, Calls())[0]._settings  # those of the environment


def test_a_profile(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("boto3", reason="boto3 is not installed: pip install 'kafkalog[remote]'")
    (files / "credentials").write_text(
        "[default]\naws_access_key_id = d\naws_secret_access_key = ds\n"
        "[work]\naws_access_key_id = w\naws_secret_access_key = ws\naws_session_token = wt\n"
    )
    (files / "config").write_text("[default]\nregion = here\n[profile work]\nregion = there\n")
    default = connected("s3", "logs", {}, Calls())[0]
    assert (_key_of(default), default._settings["config"]["region"]) == ("d", "here")
    work = connected("s3", "logs", {"profile": "work"}, Calls())[0]
    assert (_key_of(work), work._settings["config"]["region"]) == ("w", "there")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert _key_of(connected("s3", "logs", {}, Calls())[0]) == "w"
    with pytest.raises(OSError, match=r"no AWS credentials: .*absent"):
        connected("s3", "logs", {"profile": "absent"}, Calls())


class _Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def serve() -> Iterator[Callable[[type[BaseHTTPRequestHandler]], str]]:
    """Starts servers with these handlers, and returns ``HOST:PORT`` of each."""
    servers = []

    def start(handler: type[BaseHTTPRequestHandler]) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


Serve = Callable[[type[BaseHTTPRequestHandler]], str]


def test_the_role_of_the_instance(files: Path, store: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server on this host in place of the instance's metadata service."""
    asked = []

    class Metadata(_Quiet):
        def _send(self, body: str) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_PUT(self) -> None:
            self._send("token")

        def do_GET(self) -> None:
            keys = {
                "AccessKeyId": "of-the-role",
                "SecretAccessKey": "s",
                "Token": "t",
                "Code": "Success",
                "Expiration": "2099-01-01T00:00:00Z",
            }
            self._send(json.dumps(keys) if self.path.endswith("/role") else "role")

    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://{serve(Metadata)}")
    signed = []

    class Bucket(_Quiet):
        def do_GET(self) -> None:
            signed.append(self.headers["Authorization"])
            self.send_response(200)
            body = b"<ListBucketResult><Name>b</Name></ListBucketResult>"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    opened = connected("s3", "b", {"endpoint_override": serve(Bucket), "scheme": "http"}, Calls())[0]
    assert opened.entry("").is_directory
    assert "Credential=of-the-role/" in signed[0]
    assert asked[-1].endswith("/role")


def test_no_credentials_anywhere(files: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match=r"^no AWS credentials: .* add \?anonymous=true to the address$"):
        connected("s3", "logs", {}, Calls())
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(OSError, match=r"^no AWS credentials: neither the environment nor the host's own role has any"):
        connected("s3", "logs", {}, Calls())[0].entry("x")


def test_the_region_is_what_aws_says(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    class Regions(_Quiet):
        def do_HEAD(self) -> None:
            name = self.path.removeprefix("/")
            self.send_response({"mine": 200, "moved": 301, "closed": 403, "absent": 404}[name])
            if name != "absent":
                self.send_header("x-amz-bucket-region", f"region-of-{name}")
            self.end_headers()

    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "region-of-another-bucket")
    monkeypatch.setattr(obstore_store, "_AWS", f"http://{serve(Regions)}")
    for name in ("mine", "moved", "closed"):
        found = connected("s3", name, {"anonymous": "true"}, Calls())[0]
        assert found._settings["config"]["region"] == f"region-of-{name}"
    with pytest.raises(OSError, match="there is no such bucket"):
        connected("s3", "absent", {"anonymous": "true"}, Calls())
    monkeypatch.setattr(obstore_store, "_AWS", "http://127.0.0.1:1")
    opened = connected("s3", "mine", {"anonymous": "true"}, Calls())[0]
    assert opened._settings["config"]["region"] == "region-of-another-bucket"
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(OSError, match=r"AWS does not report the bucket's region \(.*refused.*\): set AWS_REGION, or"):
        connected("s3", "mine", {"anonymous": "true"}, Calls())


def test_the_environment_is_used_where_the_address_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    assert connected("s3", "b", {}, Calls())[0]._settings["config"] == {
        "region": "us-east-1",
        "endpoint": "http://store:9000",
    }
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "other:1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert connected("s3", "b", {}, Calls())[0]._settings["config"] == {
        "region": "eu-west-1",
        "endpoint": "https://other:1",
    }
    given = {"endpoint_override": "mine:2", "scheme": "http", "region": "here"}
    assert connected("s3", "b", given, Calls())[0]._settings["config"] == {
        "region": "here",
        "endpoint": "http://mine:2",
    }


def test_the_key_of_an_azure_account_comes_from_the_address() -> None:
    opened = connected("abfs", "box:a2V5@account.dfs.core.windows.net", {}, Calls())[0]
    assert opened._settings["config"] == {"account_name": "account", "account_key": "a2V5"}
    assert opened.bucket == "box"


# -- web servers ---------------------------------------------------------------------------------------------


def test_files_of_a_web_server(tmp_path: Path, serve: Serve) -> None:
    """Of one without ranges a file can be read as a whole, and one that changes its address is followed."""
    (tmp_path / "a b.log").write_bytes(b"0123456789")

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def do_HEAD(self) -> None:
            if self.path != "/moved":
                super().do_HEAD()
                return
            self.send_response(302)
            self.send_header("Location", "/a%20b.log")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    opened = connected("http", serve(Files), {}, Calls())[0]
    assert opened.entry("moved").size_bytes == 10
    entry = opened.entry("a b.log")
    assert (entry.size_bytes, entry.is_directory) == (10, False)
    assert opened.open("a b.log", entry).read_at(100, 0) == b"0123456789"
    with pytest.raises(OSError, match=r"^the server does not support ranges \(it ignores the Range header\)$"):
        opened.open("a b.log", entry).read_at(3, 2)
    with pytest.raises(FileNotFoundError, match=r"a web server has single files, and a bucket there is 's3://BUCKET"):
        opened.entry("nothing")
    with pytest.raises(OSError, match="a web server has no listings"):
        list(opened.entries("", False))
