"""Where one batch ends and the next begins: cut, stretched, zeroed, doubled, moved, and garbage in between."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from format import layout
from format.files import offset_index, time_index
from format.findings import Finding, Severity
from format.io.source import FileSource
from format.log.walker import batch_chunks, header_chunks
from format.verbs.verify.walk import Level
from tests.building import BASE_TIMESTAMP, batch, batches
from tests.faults.judging import codes_of, findings_of, offsets_read, partition_of, verdict
from tests.sources import BytesSource

THREE = batches(3)
FIRST, SECOND, THIRD = THREE
LOG = b"".join(THREE)


def with_length(one: bytes, length: int) -> bytes:
    return one[:8] + length.to_bytes(4, "big", signed=True) + one[12:]


def with_magic(one: bytes, magic: int) -> bytes:
    return one[:16] + magic.to_bytes(1, "big", signed=True) + one[17:]


def only(found: list[Finding]) -> Finding:
    (one,) = found
    return one


# -- truncation ----------------------------------------------------------------------------------------------


def test_every_truncation_inside_a_batch_of_the_last_segment_is_a_torn_tail(tmp_path: Path) -> None:
    ends = {0, len(FIRST), len(FIRST + SECOND)}
    for length in set(range(len(LOG))) - ends:
        found = only(verdict(tmp_path, LOG[:length]))
        assert (found.code, found.severity) == ("tail-torn", Severity.WARNING), length
        start = max(end for end in ends if end < length)
        assert (found.location.position, found.location.length) == (start, length - start)


OVERWRITTEN = {
    "its first bytes": b"\xa5" * 200 + THIRD[200:],
    "its length": with_length(THIRD, 5),
}


@pytest.mark.parametrize("what", OVERWRITTEN)
def test_a_last_batch_that_was_overwritten_is_no_torn_tail(tmp_path: Path, what: str) -> None:
    """A write that was cut off leaves the beginning of a batch; whatever else stands there has cost one."""
    found = only(verdict(tmp_path, FIRST + SECOND + OVERWRITTEN[what]))
    assert (found.code, found.severity) == ("log-framing-broken", Severity.FATAL)
    assert found.location.position == len(FIRST + SECOND)


@pytest.mark.parametrize("end", [with_magic(THIRD, 9)[:-10], b"not a batch at all " * 20])
@pytest.mark.parametrize("is_clean", [False, True])
def test_consumers_fail_on_a_cut_off_end_with_a_magic_that_no_version_has(
    tmp_path: Path, end: bytes, is_clean: bool
) -> None:
    """A broker of 4.3.1 serves what is before it. Recovery cuts it off; after a clean stop consumers fail there."""
    if is_clean:
        (tmp_path / ".kafka_cleanshutdown").touch()
    found = only(verdict(tmp_path, FIRST + SECOND + end))
    assert (found.code, found.severity) == ("tail-torn", Severity.FATAL if is_clean else Severity.WARNING)
    assert "consumers fail on this magic until the bytes are cut off" in found.message
    assert (".kafka_cleanshutdown" in found.next_step) == is_clean
    assert found.location.position == len(FIRST + SECOND)


def test_a_cut_off_segment_with_a_magic_that_no_version_has_is_broken(tmp_path: Path) -> None:
    """Consumers do not get past it to the next segment."""
    segments = {0: FIRST + SECOND + with_magic(THIRD, 9)[:-10], 9: b"".join(batches(2, 9))}
    assert only(verdict(tmp_path, segments)).code == "log-framing-broken"


def test_a_truncation_between_batches_leaves_no_trace_in_the_last_segment_itself(tmp_path: Path) -> None:
    assert verdict(tmp_path, FIRST + SECOND) == []


@pytest.mark.parametrize("length", [len(FIRST) + 1, len(FIRST) + 60, len(FIRST + SECOND) - 1])
def test_a_truncation_of_a_segment_that_others_follow_is_a_loss(tmp_path: Path, length: int) -> None:
    found = verdict(tmp_path, {0: LOG[:length], 9: b"".join(batches(2, 9))})
    assert codes_of(found) == ["log-truncated"]
    assert offsets_read(tmp_path) == [0, 1, 2, *range(9, 15)]


def test_a_truncation_between_batches_shows_through_the_next_segment(tmp_path: Path) -> None:
    keyless = batch(0, key=None)
    found = only(verdict(tmp_path, {0: keyless + SECOND, 9: b"".join(batches(2, 9))}))
    assert (found.code, found.lost_offsets) == ("segment-missing", (6, 8))


BESIDE = {
    "an offset index": ("t-0/00000000000000000000.index", offset_index.write(([8], [len(FIRST + SECOND)])),
                        "offset-index-mismatch"),
    "a time index": ("t-0/00000000000000000000.timeindex", time_index.write(([BASE_TIMESTAMP + 8], [8])),
                     "time-index-mismatch"),
    "a leader epoch": ("t-0/leader-epoch-checkpoint", b"0\n2\n0 0\n1 9\n", "leader-epoch-checkpoint-mismatch"),
    "the high watermark": (layout.REPLICATION_OFFSET_CHECKPOINT, b"0\n1\nt 0 9\n", "checkpoint-mismatch"),
    "the recovery point": (layout.RECOVERY_POINT_CHECKPOINT, b"0\n1\nt 0 9\n", "checkpoint-mismatch"),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_a_truncation_between_batches_shows_through_what_lies_beside(tmp_path: Path, name: str) -> None:
    path, content, reported = BESIDE[name]
    for log, expected in ((LOG, set()), (FIRST + SECOND, {reported})):
        partition_of(tmp_path, log)
        (tmp_path / path).write_bytes(content)
        found = findings_of(tmp_path)
        assert set(codes_of(found, Severity.WARNING)) - {"unclean-shutdown"} == expected


def test_a_torn_tail_is_no_tail_where_an_intact_batch_follows(tmp_path: Path) -> None:
    found = only(verdict(tmp_path, FIRST + SECOND[:-5] + THIRD))
    assert found.code == "log-framing-broken"
    assert found.lost_offsets == (3, 5)


# -- lengths and magics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [-1, -(2**31), 0, 13, 14, 20, 48, 10_000, 2**31 - 1])
def test_a_length_that_cannot_be_costs_one_batch(tmp_path: Path, length: int) -> None:
    found = only(verdict(tmp_path, FIRST + with_length(SECOND, length) + THIRD))
    assert found.code == "log-framing-broken"
    assert (found.location.position, found.location.length) == (len(FIRST), len(SECOND))
    assert found.lost_offsets is None
    assert "only its length is wrong" in found.message
    assert "offsets 3 to 5 can be read" in found.message
    assert offsets_read(tmp_path) == [0, 1, 2, 6, 7, 8]


def test_a_length_that_cannot_be_costs_no_memory() -> None:
    log = FIRST + with_length(SECOND, 2**31 - 1) + THIRD
    tracemalloc.start()
    try:
        chunks = list(batch_chunks(BytesSource(log)))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(each.table) for each in chunks) == 2
    assert peak_bytes < 8 * 2**20


@pytest.mark.parametrize("swallowed", [1, 2, 3])
def test_a_length_that_swallows_whole_batches_costs_none_of_them(tmp_path: Path, swallowed: int) -> None:
    parts = batches(6)
    length = sum(len(each) for each in parts[1 : 2 + swallowed]) - 12
    found = only(verdict(tmp_path, b"".join([parts[0], with_length(parts[1], length), *parts[2:]])))
    assert (found.code, found.lost_offsets) == ("log-framing-broken", None)
    assert offsets_read(tmp_path) == [0, 1, 2, *range(6, 18)]


def test_a_length_that_swallows_all_to_the_end_of_the_file_costs_none_of_them(tmp_path: Path) -> None:
    length = len(SECOND + THIRD) - 12
    found = only(verdict(tmp_path, FIRST + with_length(SECOND, length) + THIRD))
    assert (found.code, found.lost_offsets) == ("log-framing-broken", None)


@pytest.mark.parametrize("magic", [-1, 3, 127])
def test_a_magic_that_no_version_has(tmp_path: Path, magic: int) -> None:
    found = only(verdict(tmp_path, FIRST + with_magic(SECOND, magic) + THIRD))
    assert found.code == "log-framing-broken"
    assert f"its magic would be {magic}" in found.message
    assert found.lost_offsets is None


@pytest.mark.parametrize("magic", [0, 1])
def test_a_magic_of_another_format(tmp_path: Path, magic: int) -> None:
    found = only(verdict(tmp_path, FIRST + with_magic(SECOND, magic) + THIRD))
    assert found.code in ("log-framing-broken", "batch-crc-mismatch")
    assert (found.location.position, found.location.length) == (len(FIRST), len(SECOND))
    assert found.lost_offsets is None


# -- foreign bytes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "garbage",
    [b"\x00" * 1, b"\x00" * 61, b"\x00" * 4096, b"\xff" * 30, b"x" * 100, bytes(range(256)), SECOND[:40], SECOND[20:]],
)
def test_bytes_between_batches_are_reported_to_the_byte(tmp_path: Path, garbage: bytes) -> None:
    found = only(verdict(tmp_path, FIRST + garbage + SECOND + THIRD))
    assert found.code == "log-framing-broken"
    assert (found.location.position, found.location.length) == (len(FIRST), len(garbage))
    assert found.lost_offsets is None
    assert offsets_read(tmp_path) == list(range(9))


@pytest.mark.parametrize("size", [12, 61, 4096, 1 << 20])
def test_zeros_at_the_end_are_no_damage(tmp_path: Path, size: int) -> None:
    found = only(verdict(tmp_path, LOG + bytes(size)))
    assert (found.code, found.severity) == ("tail-zeros", Severity.WARNING)
    assert (found.location.position, found.location.length) == (len(LOG), size)


def test_zeros_over_part_of_a_batch_and_the_header_after_it(tmp_path: Path) -> None:
    at = len(FIRST + SECOND)
    found = only(verdict(tmp_path, LOG[: at - 20] + bytes(40) + LOG[at + 20 :] + batch(9)))
    assert (found.code, found.lost_offsets) == ("log-framing-broken", (3, 8))
    assert offsets_read(tmp_path) == [0, 1, 2, 9, 10, 11]


# -- whole batches -------------------------------------------------------------------------------------------

MOVES: dict[str, tuple[bytes, list[str], list[int]]] = {
    "doubled": (FIRST + SECOND + SECOND + THIRD, ["offset-not-increasing"], [0, 1, 2, 3, 4, 5, 6, 7, 8]),
    "reordered": (FIRST + THIRD + SECOND, ["offset-gap", "offset-not-increasing"], [0, 1, 2, 6, 7, 8, 3, 4, 5]),
    "removed": (FIRST + THIRD, ["offset-gap"], [0, 1, 2, 6, 7, 8]),
    "first removed": (SECOND + THIRD, ["file-name-mismatch"], [3, 4, 5, 6, 7, 8]),
    "none": (b"", [], []),
}


@pytest.mark.parametrize("name", MOVES)
def test_whole_batches_moved(tmp_path: Path, name: str) -> None:
    log, expected, offsets = MOVES[name]
    assert codes_of(verdict(tmp_path, log)) == expected
    assert offsets_read(tmp_path) == offsets


def test_segments_that_overlap(tmp_path: Path) -> None:
    found = verdict(tmp_path, {0: LOG, 6: b"".join(batches(2, 6))})
    assert codes_of(found) == ["offset-not-increasing", "offset-out-of-segment"]


def test_a_name_that_is_not_the_first_offset(tmp_path: Path) -> None:
    assert codes_of(verdict(tmp_path, {5: batch(7) + batch(10)})) == ["file-name-mismatch"]
    assert codes_of(verdict(tmp_path / "before", {5: batch(3)})) == ["offset-out-of-segment"]


def test_a_name_past_63_bits_is_not_read(tmp_path: Path) -> None:
    found = verdict(tmp_path, {0: LOG, 99_999_999_999_999_999_999: LOG})
    assert codes_of(found) == ["entry-unexpected"]


@pytest.mark.parametrize("position", [2**31 - 100, 2**31 + 100, 2**32 + 100])
def test_positions_past_32_bits(tmp_path: Path, position: int) -> None:
    """Holes stand for gigabytes of batches: they cost no disk, and headers alone are read."""
    path = tmp_path / "00000000000000000000.log"
    at = 0
    with open(path, "wb") as file:
        while at < position:
            size = min(2**30, position - at)
            file.seek(at)
            file.write(with_length(batch(at), size - 12)[:61])
            at += size
        file.seek(position)
        file.write(batch(2**40))
    with FileSource(path) as source:
        found = [row for chunk in header_chunks(source) for row in chunk.headers.position.tolist()]
        assert source.bytes_read < 2**20
    assert found[-1] == position


# -- headers alone -------------------------------------------------------------------------------------------

GARBAGE_LIKE_A_MESSAGE: dict[str, Callable[[bytes], bytes]] = {
    "a negative offset": lambda rest: b"\xff" + bytes(7) + (len(rest) - 12).to_bytes(4, "big") + rest[12:],
    "an offset that goes back": lambda rest: bytes(8) + (len(rest) - 12).to_bytes(4, "big") + bytes(6) + rest[18:],
    "attributes that no version has": lambda rest: (
        (3).to_bytes(8, "big") + (len(rest) - 12).to_bytes(4, "big") + bytes(5) + b"\xf0" + rest[18:]
    ),
}


@pytest.mark.parametrize("name", GARBAGE_LIKE_A_MESSAGE)
def test_garbage_that_looks_like_a_message_swallows_nothing_where_only_headers_are_read(
    tmp_path: Path, name: str
) -> None:
    forged = GARBAGE_LIKE_A_MESSAGE[name](SECOND + THIRD)[:40]
    found = verdict(tmp_path, FIRST + forged + SECOND + THIRD, level=Level.HEADERS)
    assert [each.code for each in found] == ["log-framing-broken"]
    assert (found[0].location.position, found[0].location.length) == (len(FIRST), len(forged))


def test_batches_out_of_order_are_all_read_where_only_headers_are_read(tmp_path: Path) -> None:
    assert codes_of(verdict(tmp_path, FIRST + THIRD + SECOND + SECOND, level=Level.HEADERS)) == [
        "offset-gap", "offset-not-increasing", "offset-not-increasing",
    ]  # fmt: skip
