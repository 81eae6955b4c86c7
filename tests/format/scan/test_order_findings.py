"""Batches and records whose offsets are out of order are findings for every reader, not only for verify."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from format.findings import Finding
from format.log.encode_batches import BatchHeader, encode_batch
from format.scan.drivers import scan_logs
from format.verbs.dump import DumpTerms, dump_lines
from format.verbs.grep.grep import Criteria, GrepScan, logs_to_search
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batches, write_segment
from tests.record_encoder import NewRecord, encode_record


def at_offset(batch: bytes, offset: int) -> bytes:
    """The batch with another base offset, which no CRC covers."""
    return struct.pack(">q", offset) + batch[8:]


def overlapping(directory: Path) -> Path:
    content = batches(8)
    content[4] = at_offset(content[4], 14)  # of 12 to 14
    return write_segment(directory / "t-0", 0, content)


def with_odd_deltas(directory: Path) -> Path:
    records = b"".join(encode_record(NewRecord(0, delta, b"k", b"v")) for delta in (0, 0, 77))
    header = BatchHeader(3, 2, 3, BASE_TIMESTAMP, BASE_TIMESTAMP)
    return write_segment(directory / "t-0", 0, [batches(1)[0], encode_batch(header, records), batches(1, 6)[0]])


def found(path: Path, verb: str) -> list[tuple[str, int | None]]:
    if verb == "verify":
        items: list[object] = [*verify(path)]
    elif verb == "grep":
        items = [*scan_logs(GrepScan(Criteria()), logs_to_search(path, Criteria()))]
    else:
        items = [*dump_lines([path], DumpTerms(records=verb == "dump --records"), None)]
    return [(each.code, each.location.offset) for each in items if isinstance(each, Finding) and each.severity > 1]


@pytest.mark.parametrize("verb", ["dump", "dump --records", "grep"])
def test_overlapping_batches(tmp_path: Path, verb: str) -> None:
    assert found(overlapping(tmp_path), verb) == [("offset-not-increasing", 15)]


def test_verify_names_the_batch_with_the_false_offset(tmp_path: Path) -> None:
    assert found(overlapping(tmp_path), "verify") == [("offset-not-increasing", 14)]


@pytest.mark.parametrize("verb", ["dump --records", "grep", "verify"])
def test_record_offsets_that_do_not_rise(tmp_path: Path, verb: str) -> None:
    assert found(with_odd_deltas(tmp_path), verb) == [("record-offset-invalid", 3)]


def test_a_sound_log_has_no_finding(tmp_path: Path) -> None:
    for verb in ("dump", "dump --records", "grep"):
        assert not found(write_segment(tmp_path / "t-0", 0, batches(8)), verb)
