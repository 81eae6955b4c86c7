"""The files of one base offset, and whether they need a time index."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from format.node.partition import NamedFiles, Segment, needs_time_index, segment_file_name
from tests.building import batch, wrapper


def test_the_name_has_twenty_digits() -> None:
    assert segment_file_name(40, ".log") == "00000000000000000040.log"
    assert segment_file_name(2**63 - 1, ".index") == "09223372036854775807.index"


def test_files_by_what_they_are(tmp_path: Path) -> None:
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    segment = Segment(tmp_path, 0, files={suffix: tmp_path / f"0{suffix}" for suffix in suffixes})
    found = (
        segment.log,
        segment.offset_index,
        segment.time_index,
        segment.transaction_index,
        segment.producer_snapshot,
    )
    assert found == tuple(tmp_path / f"0{suffix}" for suffix in suffixes)
    assert Segment(tmp_path, 0).log is None


@pytest.mark.parametrize(
    ("content", "needed"),
    [(b"", False), (bytes(9), True), (wrapper(0, 5), False), (wrapper(1, 5), True), (batch(5, [b"v"]), True)],
    ids=["empty", "torn", "v0", "v1", "v2"],
)
def test_what_needs_a_time_index(tmp_path: Path, content: bytes, needed: bool) -> None:
    log = tmp_path / segment_file_name(5, ".log")
    log.write_bytes(content)
    assert needs_time_index(Segment(tmp_path, 5, files={".log": log})) is needed
    log.unlink()
    assert needs_time_index(Segment(tmp_path, 5, files={".log": log})), "a log that cannot be read needs one"


def test_files_are_pickled_by_name_and_found_again(tmp_path: Path) -> None:
    files = NamedFiles(tmp_path / "orders-0", {".log": "00000000000000000007.log"})
    before = len(pickle.dumps(files))
    assert files[".log"] == tmp_path / "orders-0" / "00000000000000000007.log"
    assert len(pickle.dumps(files)) == before
    assert dict(pickle.loads(pickle.dumps(files))) == dict(files)
