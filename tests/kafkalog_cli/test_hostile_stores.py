"""Commands that read from servers which no honest store is like: a clear error and exit status 3, before long."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from format.io import obstore_store, store
from format.io.obstore_store import Patience
from kafkalog_cli.main import main
from tests.corpora import REPOSITORY
from tests.hostile_store import Script, answer, contents, hostile_server, page

_LOG = f"{0:020d}.log"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    short = Patience(silence_s=1.0, request_s=1.0, retry_s=0.5, first_pause_s=0.001, longest_pause_s=0.002)
    monkeypatch.setattr(obstore_store, "PATIENCE", short)


def _printed(script: Script, address: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of verify at an address of a server with this script, and what it prints."""
    with hostile_server(script) as where:
        code = main(["verify", address.replace("HOST", where)])
    captured = capsys.readouterr()
    return code, captured.err + captured.out


_S3 = "s3://b/n?endpoint_override=HOST&scheme=http"


@pytest.mark.parametrize("address", [f"http://HOST/t-0/{_LOG}", _S3])
@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        ("200 OK", "Content-Length: ²\r\n", "cannot "),
        ("200 OK", "Content-Length: abc\r\n", "cannot "),
        ("200 OK", "Content-Length: -5\r\n", "cannot "),
        ("200 OK", "Content-Length: 99999999999999999999\r\n", "cannot "),
        ("200 OK", "Content-Length: 9223372036854775807\r\n", "cannot "),
        (
            "503 Busy",
            "Retry-After: ²\r\nContent-Length: 0\r\n",
            "the store is not available (503), after several attempts",
        ),
        (
            "302 Found",
            "Location: /é/\r\nContent-Length: 0\r\n",
            "the store redirects (302) to an address that cannot be",
        ),
        (
            "302 Found",
            "Location: http://[::1/\r\nContent-Length: 0\r\n",
            "the store redirects (302) to an address that ",
        ),
        ("301 Moved", "Content-Length: 0\r\n", "the store redirects"),
    ],
)
def test_odd_headers(status: str, headers: str, words: str, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = _printed(lambda line: answer(status, headers), address, capsys)
    assert code == 3, error
    assert words in error
    assert "Traceback" not in error


def test_a_server_that_never_stops_redirecting(capsys: pytest.CaptureFixture[str]) -> None:
    number = itertools.count()
    headers = "Location: /{}\r\nContent-Length: 0\r\n"
    code, error = _printed(
        lambda line: answer("302 Found", headers.format(next(number))), f"http://HOST/{_LOG}", capsys
    )
    assert code == 3, error
    assert next(number) < 100


@pytest.mark.parametrize("address", [f"http://HOST/t-0/{_LOG}", _S3])
def test_a_server_that_drips(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A byte before each time limit for silence: the limit for a whole request ends it."""

    def drips(line: str) -> Iterable[tuple[float, bytes]]:
        if line.startswith("HEAD"):
            return answer("200 OK", "Content-Length: 3000000\r\n")
        status = "200 OK" if "list-type" in line else "206 Partial Content"
        start = f"HTTP/1.1 {status}\r\nContent-Length: 3000000\r\nContent-Range: bytes 0-2999999/3000000\r\n\r\n"
        return itertools.chain([(0, start.encode())], itertools.repeat((0.3, b" ")))

    began = time.monotonic()
    code, error = _printed(drips, address, capsys)
    assert code == 3, error
    assert time.monotonic() - began < 30


def _listing(*pages: Iterable[tuple[float, bytes]]) -> Script:
    """A bucket whose listing has these pages, the last one for ever."""
    left = list(pages)
    return lambda line: answer("404 Not Found") if line.startswith("HEAD") else left.pop(0) if left[1:] else left[0]


@pytest.mark.parametrize(
    ("size", "words"),
    [(-5, "the store's answer cannot be used: "), (2**63, "reports a size of 9223372036854775808 bytes"), (10**30, "")],
)
def test_impossible_sizes(size: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, error = _printed(_listing(page(contents(f"n/t-0/{_LOG}", size))), _S3, capsys)
    assert code == 3, error
    assert words in error


def test_a_listing_that_is_no_listing(capsys: pytest.CaptureFixture[str]) -> None:
    for body in (b"", b"<html>", b"<L><Contents><Key>a</Key></Contents></L>", b"\xff\xfe"):
        code, error = _printed(_listing(answer("200 OK", body=body)), _S3, capsys)
        assert (code in (2, 3), "Traceback" in error) == (True, False), (body, error)


@pytest.mark.slow
def test_a_listing_with_the_same_token_for_ever(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library collects the pages of a directory; it stops when the store is given up."""
    monkeypatch.setattr(obstore_store, "PATIENCE", Patience(listing_s=1.0))
    monkeypatch.setattr(obstore_store, "MOST_LISTED_BYTES", 1_000_000)
    body = page("".join(contents(f"n/t-0/{number:020d}.log") for number in range(700)), "token")
    asked: list[float] = []

    def again(line: str) -> Iterable[tuple[float, bytes]]:
        asked.append(time.monotonic())
        return answer("404 Not Found") if line.startswith("HEAD") else body

    with hostile_server(again) as where:
        code = main(["verify", _S3.replace("HOST", where)])
        given_up = time.monotonic()
        time.sleep(1)
    error = capsys.readouterr().err
    assert code == 3, error
    assert "the listing took more than 1 seconds: give a directory further down" in error
    assert len(asked) > 10
    assert asked[-1] < given_up + 0.5


@pytest.mark.slow
def test_a_listing_of_empty_pages_for_ever(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LONGEST_CALL_S", 1.0)
    code, error = _printed(_listing(page("", "token")), _S3, capsys)
    assert code == 3, error
    assert "s3://b did not answer within 1 seconds" in error


def test_a_listing_that_takes_for_ever(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(obstore_store, "PATIENCE", Patience(listing_s=0.5))
    monkeypatch.setattr(obstore_store, "_KEYS_PER_CALL", 2)
    number = itertools.count()

    def slowly(line: str) -> Iterable[tuple[float, bytes]]:
        if line.startswith("HEAD"):
            return answer("404 Not Found")
        at = next(number)
        return [(0.1, b""), *page(contents(f"n/{at:020d}.log"), f"token-{at}")]

    code, error = _printed(slowly, _S3, capsys)
    assert code == 3, error
    assert "cannot list: the listing took more than 0 seconds" in error


def _run(where: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kafkalog_cli", *_words(where)], text=True, cwd=REPOSITORY, stderr=subprocess.PIPE
    )


def _endless_page(line: str) -> Iterable[tuple[float, bytes]]:
    piece = "".join(contents(f"n/t-0/{number:020d}.log") for number in range(5000)).encode()
    start = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult>"
    return itertools.chain([(0, start)], itertools.repeat((0, piece)))


def _endless_pages(line: str) -> Iterable[tuple[float, bytes]]:
    if line.startswith("HEAD"):
        return answer("404 Not Found")
    names = (f"n/{'x' * 500}-{number}/{_LOG}" for number in range(5000))
    return page("".join(map(contents, names)), "token")


@pytest.mark.slow
@pytest.mark.parametrize("script", [_endless_page, _endless_pages])
def test_a_listing_without_an_end_does_not_fill_the_memory(script: Script) -> None:
    with hostile_server(script) as where:
        # The peak of a process begins with that of the one that starts it: a small one between this and the program.
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *_words(where)], capture_output=True, text=True, check=False
        )
    assert done.returncode == 3, done.stderr
    assert "the answer of s3://b is larger than any that a sound store gives" in done.stderr
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 700 * 1024**2


_MEASURED = """
import resource, subprocess, sys
code = subprocess.call([sys.executable, "-m", "kafkalog_cli", *sys.argv[1:]], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""


def _words(where: str) -> list[str]:
    return ["verify", f"s3://b/n?endpoint_override={where}&scheme=http"]


def test_an_interrupt_is_not_held_up_by_a_silent_server(tmp_path: Path) -> None:
    asked = tmp_path / "asked"

    def silent(line: str) -> Iterable[tuple[float, bytes]]:
        asked.touch()
        return [(60, b"")]

    with hostile_server(silent) as where:
        process = _run(where)
        while not asked.exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert time.monotonic() - began < 5
