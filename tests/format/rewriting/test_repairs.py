"""salvage --repair: a batch of which one field outside the CRC is wrong comes out as it was written."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from format.columns import FINDING
from format.files.leader_epoch_checkpoint import EpochEntry
from format.files.leader_epoch_checkpoint import write as write_epochs
from format.findings import Finding
from format.layout import MANIFEST
from format.log.encode_batches import encode_message
from format.rewriting.publication import Publication
from format.rewriting.rewriter import RewritingResult
from format.rewriting.sources import read_write_sources
from format.verbs.salvage import salvage
from format.verbs.verify.verify import verify
from tests.building import BASE_TIMESTAMP, batch, write_segment

Log = list[bytes]
LOG = f"{0:020d}.log"
PLACES = {"length": (8, 4), "base_offset": (0, 8), "leader_epoch": (12, 4), "magic": (16, 1)}
DAMAGES = [
    ("length", (1, 60, 100, 5000, 2**31 - 1, -5), (0, 4, 7)),
    ("base_offset", (1, 13, 14, 999, 2**40), (0, 4)),
    ("leader_epoch", (3, 9, -7), (4,)),
    ("magic", (0, 1, 3, 127, -1), (0, 4, 7)),
]


def sound_log() -> Log:
    return [batch(3 * number, [b"value-%d" % number] * 3, leader_epoch=4) for number in range(8)]


def with_field(content: bytes, field: str, value: int) -> bytes:
    at, width = PLACES[field]
    return content[:at] + value.to_bytes(width, "big", signed=True) + content[at + width :]


def salvaged(source: Path, target: Path, *, repairs: bool) -> RewritingResult:
    sources = read_write_sources([source], takes_files=True)
    result = RewritingResult()
    with Publication(target, [source], job=sources.job("salvage")) as publication:
        list(salvage(sources, publication, result=result, repairs=repairs))
    return result


def codes(findings: list[Finding]) -> list[str]:
    return [each.code for each in findings if each.severity > 0]


@pytest.mark.parametrize(
    ("field", "value", "number"),
    [(field, value, number) for field, values, numbers in DAMAGES for value in values for number in numbers],
)
def test_a_batch_with_one_wrong_field(tmp_path: Path, field: str, value: int, number: int) -> None:
    log = sound_log()
    damaged = [*log[:number], with_field(log[number], field, value), *log[number + 1 :]]
    path = write_segment(tmp_path / "t-0", 0, damaged).parent
    result = salvaged(path, tmp_path / "out", repairs=True)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(log)
    assert codes(result.findings) == ["batch-repaired"]
    assert not result.losses
    [found] = result.findings
    at, width = PLACES[field]
    right = int.from_bytes(log[number][at : at + width], "big", signed=True)
    assert (found.location.offset, found.expected, found.actual) == (3 * number, right, value)
    [listed] = json.loads((tmp_path / "out" / MANIFEST).read_text())["repaired"]
    assert set(listed) <= {*FINDING.names, "type"}
    assert path.joinpath(LOG).read_bytes() == b"".join(damaged)


@pytest.mark.parametrize(("field", "value"), [("length", 60), ("length", 5000), ("magic", 3), ("base_offset", 14)])
@pytest.mark.parametrize("number", [0, 4])
def test_without_the_option_it_is_not_called_lost(tmp_path: Path, field: str, value: int, number: int) -> None:
    log = sound_log()
    log[number] = with_field(log[number], field, value)
    path = write_segment(tmp_path / "t-0", 0, log).parent
    result = salvaged(path, tmp_path / "out", repairs=False)
    [loss] = result.losses
    position = sum(map(len, log[:number]))
    first, last = 3 * number, 3 * number + 2
    assert loss.lost_offsets == (first, last)  # they are not in the output
    assert "lost" not in loss.message
    assert f"offsets {first} to {last} can be read at position {position}, and --repair keeps the batch" in loss.message
    seen = [each for each in verify(path) if each.severity > 1]
    assert [each.lost_offsets for each in seen] == [None]
    assert "lost" not in seen[0].message


def test_the_end_of_a_log_with_a_wrong_length_is_no_torn_end(tmp_path: Path) -> None:
    log = sound_log()
    log[7] = with_field(log[7], "length", 5000)
    [found] = [each for each in verify(write_segment(tmp_path / "t-0", 0, log).parent) if each.severity > 1]
    assert (found.code, found.lost_offsets) == ("log-framing-broken", None)
    assert "offsets 21 to 23 can be read" in found.message


def test_several_fields_of_neighbours(tmp_path: Path) -> None:
    log = sound_log()
    damaged = list(log)
    damaged[2] = with_field(log[2], "magic", 77)
    damaged[3] = with_field(log[3], "length", 61)
    damaged[5] = with_field(log[5], "base_offset", 2**33)
    damaged[6] = with_field(log[6], "leader_epoch", 99)
    result = salvaged(write_segment(tmp_path / "t-0", 0, damaged).parent, tmp_path / "out", repairs=True)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(log)
    assert codes(result.findings) == ["batch-repaired"] * 4


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_of_an_old_format(tmp_path: Path, magic: int) -> None:
    log = [encode_message(magic, offset, b"k", b"v" * 9, timestamp=BASE_TIMESTAMP) for offset in range(5)]
    damaged = [*log[:2], with_field(log[2], "length", 1000), *log[3:]]
    result = salvaged(write_segment(tmp_path / "t-0", 0, damaged).parent, tmp_path / "out", repairs=True)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(log)
    assert codes(result.findings) == ["batch-repaired"]


def test_what_is_not_proven_is_not_repaired(tmp_path: Path) -> None:
    """Damaged records, two wrong fields, and a base offset between gaps that compaction may have left."""
    log = sound_log()
    log[1] = log[1][:-1] + bytes([log[1][-1] ^ 3])
    log[3] = with_field(with_field(log[3], "length", 60), "magic", 3)
    log[5] = with_field(batch(16, [b"v"], leader_epoch=4), "base_offset", 3)
    result = salvaged(write_segment(tmp_path / "t-0", 0, log).parent, tmp_path / "out", repairs=True)
    kept = (tmp_path / "out" / "t-0" / LOG).read_bytes()
    assert kept == b"".join(log[number] for number in (0, 2, 4, 6, 7))
    assert "batch-repaired" not in codes(result.findings)


def test_a_sound_log_stays_as_it_is(tmp_path: Path) -> None:
    path = write_segment(tmp_path / "t-0", 0, sound_log()).parent
    assert not codes(salvaged(path, tmp_path / "out", repairs=True).findings)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(sound_log())


def test_a_batch_that_is_put_aside_is_not_called_lost(tmp_path: Path) -> None:
    """It is the last one, and starts too low: where it belongs is not proven."""
    log = sound_log()
    log[7] = with_field(log[7], "base_offset", 5)
    result = salvaged(write_segment(tmp_path / "t-0", 0, log).parent, tmp_path / "out", repairs=True)
    [loss] = result.losses
    assert loss.message.endswith("its records are in the quarantine file")
    assert (tmp_path / "out" / f"t-0.{0:020d}.quarantine").read_bytes() == log[7]


@pytest.mark.parametrize("value", [10, 11])
@pytest.mark.parametrize("repairs", [False, True])
def test_a_false_offset_does_not_put_the_neighbour_aside(tmp_path: Path, value: int, *, repairs: bool) -> None:
    """The batches at 9 and 12 overlap, and the index names the false one: only if that is moved do both fit."""
    log = sound_log()
    damaged = [*log[:3], with_field(log[3], "base_offset", value), *log[4:]]
    path = write_segment(tmp_path / "t-0", 0, damaged)
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 11, sum(map(len, log[:3]))))
    result = salvaged(path.parent, tmp_path / "out", repairs=repairs)
    written = (tmp_path / "out" / "t-0" / LOG).read_bytes()
    assert written == b"".join(each for at, each in enumerate(log) if repairs or at != 3)
    assert [each.lost_offsets for each in result.losses] == ([] if repairs else [(9, 11)])


def test_the_only_batch_of_a_segment_fills_it(tmp_path: Path) -> None:
    first, second = batch(0, [b"v"] * 5), batch(5, [b"v"] * 5)
    write_segment(tmp_path / "t-0", 0, [with_field(first, "base_offset", 2)])
    path = write_segment(tmp_path / "t-0", 5, [second]).parent
    assert codes(salvaged(path, tmp_path / "out", repairs=True).findings) == ["batch-repaired"]
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == first


@pytest.mark.parametrize(("number", "value"), [(0, 9), (0, 5), (7, 3), (7, -7), (4, 9)])
def test_the_checkpoint_says_the_epoch_where_epochs_fall(tmp_path: Path, number: int, value: int) -> None:
    log = sound_log()
    log[number] = with_field(log[number], "leader_epoch", value)
    path = write_segment(tmp_path / "t-0", 0, log).parent
    assert ("batch-repaired" in codes(salvaged(path, tmp_path / "without", repairs=True).findings)) is (number == 4)
    path.joinpath("leader-epoch-checkpoint").write_bytes(write_epochs([EpochEntry(4, 0)]))
    assert codes(salvaged(path, tmp_path / "out", repairs=True).findings) == ["batch-repaired"]
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(sound_log())


def test_a_later_epoch_that_the_checkpoint_lacks_stays(tmp_path: Path) -> None:
    """The last batch may be the first of a new leader, and the checkpoint was not written yet."""
    log = sound_log()
    log[7] = with_field(log[7], "leader_epoch", 5)
    path = write_segment(tmp_path / "t-0", 0, log).parent
    path.joinpath("leader-epoch-checkpoint").write_bytes(write_epochs([EpochEntry(4, 0)]))
    salvaged(path, tmp_path / "out", repairs=True)
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == b"".join(log)


def test_the_next_segment_shows_that_the_epoch_of_the_only_batch_falls(tmp_path: Path) -> None:
    first, second = sound_log()[:2]
    write_segment(tmp_path / "t-0", 0, [with_field(first, "leader_epoch", 6)])
    path = write_segment(tmp_path / "t-0", 3, [second]).parent
    path.joinpath("leader-epoch-checkpoint").write_bytes(write_epochs([EpochEntry(4, 0)]))
    assert codes(salvaged(path, tmp_path / "out", repairs=True).findings) == ["batch-repaired"]
    assert (tmp_path / "out" / "t-0" / LOG).read_bytes() == first
