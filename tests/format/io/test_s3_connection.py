"""Connections to S3: what the environment and an address say, and the error for a store that cannot be reached."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

pytest.importorskip("pyarrow.fs", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'")

from format.errors import InputError, UnreadableFile
from format.io import remote_files, s3_connection
from format.io.remote_path import path_of
from format.io.s3_connection import connected_s3, region_of_bucket
from format.io.stores import http_client
from format.node.target import kind_of

pytestmark = pytest.mark.slow

_ENVIRONMENT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
_FAR_LONGER_S = 60  # than it should take; the library by itself takes 100 seconds for one question


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(remote_files, "_queries", {})
    monkeypatch.setattr(remote_files, "_stores", {})
    monkeypatch.setattr(remote_files, "_failures", {})


@pytest.fixture
def silent() -> Iterator[str]:
    """An address where connections are taken and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def nothing() -> str:
    """An address where nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("where", ["nothing", "silent"])
def test_a_store_that_cannot_be_reached_is_a_clear_error_before_long(
    where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "SILENCE_TIMEOUT_S", 1.0)
    monkeypatch.setattr(http_client, "PATIENCE_S", 2.0)
    address = request.getfixturevalue(where)
    remote_files.know([f"s3://bucket/log?endpoint_override={address}&scheme=http"])
    reported: list[BaseException] = []

    def look() -> None:
        try:
            kind_of(path_of("s3://bucket/log"))
        except BaseException as error:
            reported.append(error)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(_FAR_LONGER_S)
    assert len(reported) == 1
    assert isinstance(reported[0], UnreadableFile)
    assert f"cannot reach {address}: " in reported[0].message
    assert str(reported[0]).startswith("s3://bucket/log: cannot access: ")


def _options_of(system: Any) -> dict[str, Any]:
    made: dict[str, Any] = system.__reduce__()[1][0]
    return made


def test_the_environment_is_used_where_the_address_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://store:9000")
    system, root = connected_s3("bucket", {})
    options = _options_of(system)
    assert (root, options["endpoint_override"], options["scheme"]) == ("bucket", "store:9000", "http")
    assert options["region"] == "us-east-1"
    assert options["connect_timeout"] == 5.0
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "other:1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    options = _options_of(connected_s3("bucket", {})[0])
    assert (options["endpoint_override"], options["scheme"], options["region"]) == ("other:1", "https", "eu-west-1")
    given = {"endpoint_override": "mine:2", "scheme": "http", "region": "here"}
    options = _options_of(connected_s3("a%2Fkey:a%40secret@bucket", given)[0])
    assert {name: options[name] for name in given} == given
    assert (options["access_key"], options["secret_key"]) == ("a/key", "a@secret")


def test_other_options_are_pyarrows(monkeypatch: pytest.MonkeyPatch) -> None:
    system, root = connected_s3("bucket", {"region": "r", "allow_bucket_creation": "true"})
    assert (root, _options_of(system)["allow_bucket_creation"]) == ("bucket", True)
    with pytest.raises(ValueError, match="nonsense"):
        connected_s3("bucket", {"region": "r", "nonsense": "1"})


class _Answers(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        name = self.path.removeprefix("/")
        self.send_response({"mine": 200, "moved": 301, "closed": 403, "absent": 404}[name])
        if name != "absent":
            self.send_header("x-amz-bucket-region", f"region-of-{name}")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_the_region_is_what_aws_says(monkeypatch: pytest.MonkeyPatch) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setattr(s3_connection, "_AWS", f"http://127.0.0.1:{server.server_port}")
        for name in ("mine", "moved", "closed"):
            assert region_of_bucket(name) == f"region-of-{name}"
        assert _options_of(connected_s3("moved", {})[0])["region"] == "region-of-moved"
        with pytest.raises(OSError, match="there is no such bucket"):
            region_of_bucket("absent")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("where", ["nothing", "silent"])
def test_aws_out_of_reach_is_said(where: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_connection, "_AWS", f"http://{request.getfixturevalue(where)}")
    monkeypatch.setattr(http_client, "SILENCE_TIMEOUT_S", 0.3)
    monkeypatch.setattr(http_client, "PATIENCE_S", 0.5)
    with pytest.raises(InputError, match=r"cannot connect: AWS does not report .*: set AWS_REGION, or"):
        remote_files.store_of("s3://bucket/log")
