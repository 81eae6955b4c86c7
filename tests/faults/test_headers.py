"""Fields of a batch header: those outside the CRC by their surroundings, the others under a CRC that is right."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from format import layout
from format.log.encode_batches import BatchHeader, encode_batch, reseal
from tests.building import BASE_TIMESTAMP, batch, batches
from tests.faults.judging import codes_of, findings_of, offsets_read, partition_of, verdict

FIRST, SECOND, THIRD = batches(3)


def with_field(one: bytes, name: str, value: int, *, resealed: bool = True) -> bytes:
    """The batch with another value in a header field; its CRC stays right, or as it was."""
    field = next(each for each in layout.RECORD_BATCH.fields if each.name == name)
    at = layout.RECORD_BATCH.offset_of(name)
    bits = value & ((1 << 8 * field.size_bytes) - 1)
    changed = one[:at] + bits.to_bytes(field.size_bytes, "big") + one[at + field.size_bytes :]
    return reseal(changed) if resealed else changed


# -- outside the CRC -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("byte", range(8))
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_flip_in_a_base_offset(tmp_path: Path, which: int, byte: int) -> None:
    parts = [FIRST, SECOND, THIRD]
    changed = bytearray(parts[which])
    changed[byte] ^= 0x40
    parts[which] = bytes(changed)
    found = codes_of(verdict(tmp_path, b"".join(parts)))
    reported = {"offset-not-increasing", "offset-gap", "file-name-mismatch", "offset-out-of-segment", "batch-invalid"}
    assert reported & set(found)
    assert "batch-crc-mismatch" not in found


@pytest.mark.parametrize(
    ("position", "reported"),
    [(17, "batch-crc-mismatch"), (21, "batch-crc-mismatch"), (80, "batch-crc-mismatch"), (16, "log-framing-broken")],
)
def test_a_flip_in_the_crc_the_body_and_the_magic(tmp_path: Path, position: int, reported: str) -> None:
    changed = bytearray(SECOND)
    changed[position] ^= 0x10
    (found,) = verdict(tmp_path, FIRST + bytes(changed) + THIRD)
    assert (found.code, found.lost_offsets) == (reported, None if position == 16 else (3, 5))
    assert (found.location.position, found.location.length) == (len(FIRST), len(SECOND))
    assert offsets_read(tmp_path) == [0, 1, 2, 6, 7, 8]


@pytest.mark.parametrize("leader_epoch", [1, 2**31 - 1, -2, -(2**31)])
def test_a_leader_epoch_is_held_against_its_checkpoint(tmp_path: Path, leader_epoch: int) -> None:
    log = FIRST + with_field(SECOND, "leader_epoch", leader_epoch, resealed=False) + THIRD
    partition = partition_of(tmp_path, log, {"leader-epoch-checkpoint": b"0\n1\n0 0\n"})
    found = codes_of(findings_of(partition))
    if leader_epoch < 0:
        assert found == ["batch-invalid"]
    else:
        assert found == ["leader-epoch-checkpoint-mismatch", "leader-epoch-decreasing"]


# -- offsets at the end of their range -----------------------------------------------------------------------


@pytest.mark.parametrize("base_offset", [2**63 - 1, 2**63 - 2, -1, -(2**63)])
def test_a_base_offset_that_cannot_be(tmp_path: Path, base_offset: int) -> None:
    log = FIRST + with_field(SECOND, "base_offset", base_offset, resealed=False) + THIRD
    found = set(codes_of(verdict(tmp_path, log)))
    assert "batch-invalid" in found
    assert not found & {"log-framing-broken", "batch-crc-mismatch"}
    assert {0, 1, 2, 6, 7, 8} <= set(offsets_read(tmp_path))


def test_an_offset_past_what_an_index_can_hold(tmp_path: Path) -> None:
    found = verdict(tmp_path, FIRST + batch(2**31 + 5, timestamp=BASE_TIMESTAMP))
    assert codes_of(found) == ["offset-gap", "offset-out-of-segment"]


def test_a_segment_near_the_end_of_all_offsets(tmp_path: Path) -> None:
    base = 2**63 - 10
    assert verdict(tmp_path, {base: batch(base, timestamp=BASE_TIMESTAMP)}) == []
    assert offsets_read(tmp_path) == [base, base + 1, base + 2]


# -- counts, resealed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "reported"),
    [
        (-1, ["batch-invalid", "record-count-mismatch"]),
        (-(2**31), ["batch-invalid", "record-count-mismatch"]),
        (2, ["record-trailing-bytes"]),
        (4, ["last-offset-delta-mismatch", "record-count-mismatch"]),
        (2**31 - 1, ["last-offset-delta-mismatch", "record-count-mismatch"]),
        (0, ["record-trailing-bytes"]),
    ],
)
def test_a_wrong_record_count(tmp_path: Path, count: int, reported: list[str]) -> None:
    assert codes_of(verdict(tmp_path, FIRST + with_field(SECOND, "record_count", count) + THIRD)) == reported


@pytest.mark.parametrize(
    ("delta", "reported"),
    [
        (-1, "batch-invalid"),
        (1, "last-offset-delta-mismatch"),
        (5, "offset-not-increasing"),
        (2**31 - 1, "offset-not-increasing"),
    ],
)
def test_a_wrong_last_offset_delta(tmp_path: Path, delta: int, reported: str) -> None:
    assert reported in codes_of(verdict(tmp_path, FIRST + with_field(SECOND, "last_offset_delta", delta) + THIRD))


def test_what_compaction_leaves_is_fine(tmp_path: Path) -> None:
    fewer = batch(3, [b"a"], last_offset_delta=2)
    empty = encode_batch(BatchHeader(6, 2, 0, BASE_TIMESTAMP, BASE_TIMESTAMP), b"")
    assert verdict(tmp_path, FIRST + fewer + empty + batch(20)) == []


# -- attributes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_no_version_has_is_unsupported(tmp_path: Path, codec: int) -> None:
    (found,) = verdict(tmp_path, FIRST + with_field(SECOND, "attributes", codec) + THIRD)
    assert found.code == "codec-unknown"
    assert found.is_incomplete


@pytest.mark.parametrize("attributes", [0x80, 0x4000, -0x8000])
def test_attribute_bits_that_no_version_has_are_unsupported(tmp_path: Path, attributes: int) -> None:
    (found,) = verdict(tmp_path, FIRST + with_field(SECOND, "attributes", attributes) + THIRD)
    assert found.code == "attributes-unknown"
    assert found.is_incomplete
    assert offsets_read(tmp_path) == list(range(9))


def test_a_compressed_control_batch(tmp_path: Path) -> None:
    log = FIRST + batch(3, [b"a"], codec=1, attributes=layout.CONTROL_BIT | layout.TRANSACTIONAL_BIT)
    assert "batch-invalid" in codes_of(verdict(tmp_path, log))


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_id": 5},
        {"producer_id": -2},
        {"producer_id": 5, "producer_epoch": 0, "base_sequence": -5},
    ],
)
def test_producer_fields_that_do_not_fit_together(tmp_path: Path, fields: dict[str, int]) -> None:
    assert codes_of(verdict(tmp_path, FIRST + batch(3, **fields))) == ["batch-invalid"]


# -- timestamps ----------------------------------------------------------------------------------------------


def test_a_max_timestamp_that_is_not_the_records(tmp_path: Path) -> None:
    log = FIRST + with_field(SECOND, "max_timestamp", BASE_TIMESTAMP + 99) + THIRD
    assert codes_of(verdict(tmp_path, log)) == ["max-timestamp-mismatch"]


def test_no_timestamp(tmp_path: Path) -> None:
    log = FIRST + batch(3, [b"a"], base_timestamp=-1, max_timestamp=-1)
    assert verdict(tmp_path, log) == []


@pytest.mark.parametrize("timestamp", [2**63 - 1, 2**62, -2, -(2**63)])
def test_timestamps_that_no_clock_has(tmp_path: Path, timestamp: int) -> None:
    log = FIRST + batch(3, [b"a"], base_timestamp=timestamp, max_timestamp=timestamp)
    assert codes_of(verdict(tmp_path, log)) == ["timestamp-suspicious"]
    assert offsets_read(tmp_path) == [0, 1, 2, 3]


@pytest.mark.parametrize("form", ["table", "text", "jsonl", "csv"])
def test_timestamps_that_no_calendar_has_are_printed(tmp_path: Path, run_kafkalog_many, form: str) -> None:  # type: ignore[no-untyped-def]
    extremes = (-1, -2, 0, 2**62, 2**63 - 1, -(2**63), 253_402_300_800_000)  # the last: the year 10000
    log = b"".join(
        batch(offset, [b"a"], base_timestamp=each, max_timestamp=each) for offset, each in enumerate(extremes)
    )
    partition = partition_of(tmp_path, log)
    forms = ("--format", form)
    words = [["dump", *forms], ["dump", "--records", *forms], ["verify", *forms], ["ls", "--segments", *forms]]
    finds = [["find", "--timestamp", str(2**63 - 1), *forms], ["find", "--max-timestamp", *forms]]
    for run in run_kafkalog_many([*each, partition] for each in words + finds):
        run.check(0, 1, 3)
        assert "OverflowError" not in run.stderr
    (dumped,) = run_kafkalog_many([["dump", "--records", *forms, partition]])
    assert dumped.stdout.count(str(2**63 - 1)) >= 1


def test_a_timestamp_that_leaves_64_bits(tmp_path: Path) -> None:
    log = batch(0, [b"a", b"b"], base_timestamp=2**63 - 1, max_timestamp=2**63 - 1)
    assert codes_of(verdict(tmp_path, log)) == ["record-invalid", "timestamp-suspicious"]


def test_every_field_at_every_edge_raises_nothing(tmp_path: Path) -> None:
    edges = (-(2**63), -(2**31), -(2**15), -2, -1, 0, 1, 127, 2**15, 2**31 - 1, 2**31, 2**63 - 1)
    for field in layout.RECORD_BATCH.fields:
        for value in edges:
            log = FIRST + with_field(SECOND, field.name, value, resealed=field.name not in ("crc", "length", "magic"))
            partition = partition_of(tmp_path, log + THIRD)
            findings_of(partition)
            assert {0, 1, 2} <= set(offsets_read(tmp_path)), (field.name, value)


def test_the_bits_of_a_header_are_where_the_layout_says() -> None:
    assert struct.unpack_from(">qiibIhi", FIRST)[:4] == (0, len(FIRST) - 12, 0, 2)
