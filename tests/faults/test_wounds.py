"""Logs with many wounds: salvage keeps the longest chain of intact batches, and its losses name all other offsets.

``tests/faults/wounds.py`` makes the logs, and says what in them is intact; as a command it tries many more.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.findings import Finding
from format.log.batch_header import has_right_crc
from format.log.encode_batches import encode_message
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from tests.building import batch, batches, wrapper
from tests.faults.judging import codes_of, findings_of, offsets_read, partition_of
from tests.faults.wounds import LOG, wounded_log, wrong_with
from tests.sources import BytesSource

pytestmark = pytest.mark.long


def wrong_of(seed: int, most_batches: int) -> str:
    log = wounded_log(seed, most_batches)
    with tempfile.TemporaryDirectory() as directory:
        wrong = wrong_with(log, Path(directory))
    return f"{', '.join(log.done)}: {wrong}" if wrong else ""


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
def test_the_longest_chain_is_kept_and_all_else_is_named(seed: int) -> None:
    assert wrong_of(seed, 200) == ""


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 2**32))
def test_the_same_in_long_logs(seed: int) -> None:
    assert wrong_of(seed, 10_000) == ""


def test_the_wounds_are_there() -> None:
    """The property says something: most of these logs lose batches, some by every kind of wound."""
    logs = [wounded_log(seed, 100) for seed in range(60)]
    assert sum(len(log.intact()) < len(log.placed) for log in logs) > 20
    assert {"zeros", "cut", "foreign", "moved", "length to another batch"} <= {
        each for log in logs for each in log.done
    }


# -- two wounds ----------------------------------------------------------------------------------------------------


def salvaged(folder: Path, log: bytes) -> tuple[bytes, list[Finding]]:
    partition = partition_of(folder, log)
    sources = read_write_sources([partition], takes_files=True)
    with Publication(folder / "out", [partition], job=sources.job("salvage")) as publication:
        found = [each for each in salvage(sources, publication) if isinstance(each, Finding)]
    return (folder / "out" / "t-0" / LOG).read_bytes(), found


def with_offset(content: bytes, base_offset: int) -> bytes:
    return base_offset.to_bytes(8, "big", signed=True) + content[8:]


PARTS = batches(1000)
LAST_WOUNDS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "one bit of the last base offset": lambda parts: [*parts[:-1], with_offset(parts[-1], 2997 ^ 1 << 9)],
    "its highest bit": lambda parts: [*parts[:-1], with_offset(parts[-1], 2997 - 2**63)],
    "an older batch again": lambda parts: [*parts[:-1], parts[500]],
    "an older batch again behind garbage": lambda parts: [*parts[:-1], b"garbage", parts[500]],
    "a foreign batch": lambda parts: [*parts[:-1], batch(7, [b"foreign"])],
    "a foreign batch far ahead, behind zeros": lambda parts: [*parts[:-1], bytes(500), batch(2**32)],
    "garbage": lambda parts: [*parts[:-1], b"\xa5" * 200],
    "nothing": lambda parts: parts[:-1],
}


@pytest.mark.parametrize("name", LAST_WOUNDS)
def test_what_lies_between_two_wounds_is_kept(name: str, tmp_path: Path) -> None:
    log = LAST_WOUNDS[name]([PARTS[0], bytes(len(PARTS[1])), *PARTS[2:]])
    kept, found = salvaged(tmp_path, b"".join(log))
    assert kept == b"".join([PARTS[0], *PARTS[2:-1]])
    lost = [each.lost_offsets for each in found if each.lost_offsets is not None]
    assert lost == [(3, 5)]
    read = offsets_read(tmp_path)
    assert [0, 1, 2, *range(6, 2997)] == [each for each in read if each < 2997][: 2997 - 3]
    (broken,) = (each for each in findings_of(tmp_path / "t-0") if each.location.position == len(PARTS[0]))
    assert (broken.code, broken.lost_offsets) == ("log-framing-broken", (3, 5))


@pytest.mark.parametrize("count", [2, 3, 50])
def test_every_run_between_wounds_is_kept(count: int, tmp_path: Path) -> None:
    """Garbage before, between and behind: no run of batches leads on to another."""
    step = len(PARTS) // (count + 1)
    wounds = {step * (number + 1) for number in range(count)}
    log = b"".join(b"?" * 300 if number in wounds else each for number, each in enumerate(PARTS))
    kept, found = salvaged(tmp_path, log)
    assert kept == b"".join(each for number, each in enumerate(PARTS) if number not in wounds)
    assert [each.lost_offsets for each in found] == [(3 * number, 3 * number + 2) for number in sorted(wounds)]


def test_offsets_between_damages_are_named_once(tmp_path: Path) -> None:
    """An intact batch that is in the wrong place lies between two damages."""
    log = b"".join([*PARTS[:10], b"x" * 90, PARTS[900], b"y" * 90, *PARTS[12:30]])
    named = [each.lost_offsets for each in findings_of(partition_of(tmp_path, log)) if each.lost_offsets]
    assert named == [(30, 35)]


def test_a_batch_that_was_cut_out_is_reported(tmp_path: Path) -> None:
    kept, found = salvaged(tmp_path, b"".join([*PARTS[:10], *PARTS[11:20]]))
    assert kept == b"".join([*PARTS[:10], *PARTS[11:20]])
    assert [(each.code, each.lost_offsets) for each in found] == [("offset-gap", (30, 32))]


# -- lengths -------------------------------------------------------------------------------------------------------


def with_length(content: bytes, length: int) -> bytes:
    return content[:8] + length.to_bytes(4, "big") + content[12:]


def test_a_length_that_leads_to_a_batch_and_a_damaged_body_swallow_nothing(tmp_path: Path) -> None:
    """The batches inside have just the offsets that are missing between the batch and the one it leads to."""
    swallowed = with_length(PARTS[1], sum(map(len, PARTS[1:6])) + 7 - 12)
    broken = swallowed[:-5] + b"\xff" * 5
    kept, found = salvaged(tmp_path, b"".join([PARTS[0], broken, *PARTS[2:6], b"garbage", *PARTS[6:9]]))
    assert kept == b"".join([PARTS[0], *PARTS[2:9]])
    assert [each.lost_offsets for each in found if each.lost_offsets] == [(3, 5)]


def test_a_length_that_leads_into_a_hole_swallows_nothing(tmp_path: Path) -> None:
    broken = with_length(PARTS[1], sum(map(len, PARTS[1:6])) + 2000)
    kept, _ = salvaged(tmp_path, b"".join([PARTS[0], broken, *PARTS[2:6], bytes(10_000), *PARTS[6:9]]))
    assert kept == b"".join([PARTS[0], *PARTS[2:9]])


# -- values --------------------------------------------------------------------------------------------------------

IMAGE = b"".join(batches(3, 6))


@pytest.mark.parametrize("hit", [range(61), range(66), range(10, 64), range(40)])
def test_a_value_is_no_batch_where_its_length_stands_before_it(hit: range, tmp_path: Path) -> None:
    """Header and first record are hit, and a later record: the records cannot be followed to the image."""
    damaged = bytearray(batch(3, [b"first", IMAGE, b"last" * 9]))
    for position in (*hit, len(damaged) - 9):
        damaged[position] ^= 0xA5
    assert offsets_read_of(tmp_path, [batch(0), bytes(damaged), batch(6), batch(9)]) == [0, 1, 2, *range(6, 12)]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_value_of_an_old_message_is_no_batch(magic: int, tmp_path: Path) -> None:
    image = b"".join(encode_message(magic, offset, b"k", b"v") for offset in (5, 6, 7))
    damaged = bytearray(encode_message(magic, 1, b"key", image))
    damaged[:12] = b"\xee" * 12
    log = [
        encode_message(magic, 0, b"k", b"v"),
        bytes(damaged),
        *(encode_message(magic, n, b"k", b"v") for n in (2, 3)),
    ]
    assert offsets_read_of(tmp_path, log) == [0, 2, 3]


def test_a_short_value_before_a_batch_is_no_length(tmp_path: Path) -> None:
    """The length and the byte of a value read as one number lead just to a batch."""
    parts = [encode_message(1, offset, b"key", b"\x00" * 37) for offset in range(6)]
    size = len(parts[0])
    assert 256 < 4 * size < 512
    odd = bytearray(encode_message(1, 0, b"key", (4 * size - 256).to_bytes(1, "big")))
    odd[8:12] = b"\x7f\xff\xff\xff"
    odd[20] ^= 1  # in the timestamp, so that the CRC proves nothing
    assert offsets_read_of(tmp_path, [bytes(odd), *parts[1:]]) == [1, 2, 3, 4, 5]


def test_a_value_that_fits_the_offsets_is_outweighed(tmp_path: Path) -> None:
    """A large part of the damaged batch is gone, and its image has the offsets of the batches behind."""
    damaged = batch(3, [b"x" * 100, b"?" + b"".join(batches(3, 6)) + b"?"])
    wounded = b"\xa5" * 160 + damaged[160:]
    assert b"".join(batches(3, 6)) in wounded
    log = [batch(0), wounded, *batches(5, 6)]
    assert offsets_read_of(tmp_path, log) == [0, 1, 2, *range(6, 21)]
    kept, _ = salvaged(tmp_path / "again", b"".join(log))
    assert kept == b"".join([batch(0), *batches(5, 6)])


def offsets_read_of(folder: Path, parts: list[bytes]) -> list[int]:
    partition_of(folder, b"".join(parts))
    return offsets_read(folder)


# -- a log appended to itself --------------------------------------------------------------------------------------


def test_a_log_that_was_appended_to_itself_is_read_once(tmp_path: Path) -> None:
    log = b"".join(PARTS[:50])
    assert offsets_read_of(tmp_path, [log, log]) == list(range(150))
    assert codes_of(findings_of(tmp_path / "t-0")) == ["offset-not-increasing"]
    kept, _ = salvaged(tmp_path / "again", log + log)
    assert kept == log


def test_a_batch_that_is_damaged_the_first_time_is_read_the_second(tmp_path: Path) -> None:
    once = list(PARTS[:50])
    broken = [*once[:20], once[20][:-4] + b"\xff" * 4, *once[21:]]
    read = offsets_read_of(tmp_path, [*broken, *once])
    assert sorted(read) == list(range(150))


def test_other_batches_at_the_same_offsets_are_read(tmp_path: Path) -> None:
    other = batch(30, [b"another value"] * 3)
    assert offsets_read_of(tmp_path, [*PARTS[:15], other]) == [*range(45), 30, 31, 32]


# -- time ----------------------------------------------------------------------------------------------------------


def test_time_rises_with_the_size_and_not_with_the_wounds(tmp_path: Path) -> None:
    """Each wound once cost a walk over the rest of the file."""
    one = batch(0, [b"7" * 900])

    def seconds(count: int) -> float:
        parts = [bytes(len(one)) if number % 20 == 7 else with_offset(one, number) for number in range(count)]
        started = time.process_time()
        offsets = offsets_read_of(tmp_path / str(count), parts)
        assert len(offsets) == count - sum(number % 20 == 7 for number in range(count))
        return time.process_time() - started

    seconds(200)
    assert seconds(8000) < 10 * max(seconds(2000), 0.2)


def test_forged_lengths_cost_little(tmp_path: Path) -> None:
    """At every byte a message of megabytes seems to start; what is intact behind them is found."""
    forged = b"\x01" * 200_000
    started = time.process_time()
    log = b"".join([*PARTS[:300], forged, *PARTS[300:], bytes(17 * 2**20)])
    assert offsets_read_of(tmp_path, [log]) == list(range(3000))
    assert time.process_time() - started < 20


def test_the_builder_of_this_test_makes_batches() -> None:
    for content in (wrapper(1, 0), PARTS[3], encode_message(0, 1, b"k", b"v")):
        assert has_right_crc(BytesSource(content), 0, len(content), content[16])
