"""Checkpoints and partition metadata as a broker's own readers take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.limits import DEFAULT_LIMITS
from format.verbs.boot.one_log.checkpoints import BadText, read_epochs, read_offsets, read_topic_id

pytestmark = pytest.mark.slow


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "file"
    path.write_bytes(content)
    return path


def test_offsets_of_a_sound_checkpoint(tmp_path: Path) -> None:
    path = written(tmp_path, b"0\n2\norders 0 5\norders 1 -7\n")
    assert read_offsets(path, DEFAULT_LIMITS) == {("orders", 0): 5, ("orders", 1): -7}


@pytest.mark.parametrize("content", [b"", b"0\n", b"0\n0\n"])
def test_a_checkpoint_without_entries_is_taken(tmp_path: Path, content: bytes) -> None:
    assert read_offsets(written(tmp_path, content), DEFAULT_LIMITS) == {}


@pytest.mark.parametrize(
    ("content", "is_io_error"),
    [
        (b"\xff\n", True),
        (b"x\n1\n", True),
        (b"1\n0\n", True),
        (b"0\n2\norders 0 5\n", True),
        (b"0\n1\norders 0\n", True),
        (b"0\n1\norders 0 x\n", False),
        (b"0\n-1\n", False),
        (b"0\n2000000000\n", False),
    ],
)
def test_an_io_error_is_distinguished_from_other_errors(tmp_path: Path, content: bytes, is_io_error: bool) -> None:
    with pytest.raises(BadText) as caught:
        read_offsets(written(tmp_path, content), DEFAULT_LIMITS)
    assert caught.value.is_io_error is is_io_error


def test_epochs_keep_the_order_of_the_file(tmp_path: Path) -> None:
    assert read_epochs(written(tmp_path, b"0\n2\n5 0\n3 100\n"), DEFAULT_LIMITS) == [(5, 0), (3, 100)]


@pytest.mark.parametrize(
    "content",
    [
        b"version: 0\ntopic_id: ZMGsfH-JSHCR2XS8acmPGw",
        b"version: 7\r\ntopic_id:\tZMGsfH-JSHCR2XS8acmPGw\r\nmore",
        b"a: 0\nb: ZMGsfH-JSHCR2XS8acmPGw\n",
    ],
)
def test_a_topic_id_that_a_broker_reads(tmp_path: Path, content: bytes) -> None:
    assert read_topic_id(written(tmp_path, content), DEFAULT_LIMITS) == "ZMGsfH-JSHCR2XS8acmPGw"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is null"),
        (b"version: 0\n", "is null"),
        (b"\n", "Malformed line"),
        (b"version: x\ntopic_id: ZMGsfH-JSHCR2XS8acmPGw", "Malformed line"),
        (b"version: -1\ntopic_id: ZMGsfH-JSHCR2XS8acmPGw", "Unrecognized version"),
        (b"version: 0\ntopic_id: 7jUN", "decoded as 3 bytes"),
        (b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "Invalid topic ID"),
        (b"version: 0\ntopic_id: !!!!!!!!!!!!!!!!!!!!!!", "Illegal base64 character 21"),
    ],
)
def test_a_topic_id_that_stops_a_broker(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(BadText, match=message):
        read_topic_id(written(tmp_path, content), DEFAULT_LIMITS)


@pytest.mark.parametrize("content", [bytes(100_000), b"0\n1\norders 0 12" + bytes(100_000)])
def test_a_file_of_zeros_is_shown_by_its_beginning(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    with pytest.raises(BadText) as caught:
        read_offsets(path, DEFAULT_LIMITS)
    assert len(caught.value.text.replace(str(path), "")) < 100
