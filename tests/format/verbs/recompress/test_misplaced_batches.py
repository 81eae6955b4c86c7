"""recompress refuses a log with a batch at a false offset, wherever that is: the result would verify clean."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from format.errors import Refused
from format.rewriting.publication import Publication
from format.rewriting.sources import read_write_sources
from format.verbs.recompress.new_batches import PlanTerms, TargetFormat
from format.verbs.recompress.recompress import Recompression, recompress
from tests.building import batch, write_segment

Log = list[bytes]


def log() -> Log:
    return [batch(3 * n, [b"v"] * 3, key=None, producer_id=7, producer_epoch=0, base_sequence=3 * n) for n in range(8)]


def recompressed(source: Path, target: Path) -> None:
    sources = read_write_sources([source])
    with Publication(target, [source], job=sources.job("recompress")) as publication:
        list(recompress(sources, publication, Recompression(plan=PlanTerms(TargetFormat(4, None)))))


@pytest.mark.parametrize("number", [0, 3, 7])
@pytest.mark.parametrize("offset", [1, 11, 12, 22, 100, 2**33, 2**62])
def test_a_false_base_offset_is_refused(tmp_path: Path, number: int, offset: int) -> None:
    content = log()
    if offset == 3 * number:
        return
    content[number] = struct.pack(">q", offset) + content[number][8:]
    write_segment(tmp_path / "t-0", 0, content)
    with pytest.raises(Refused, match="the source is damaged"):
        recompressed(tmp_path / "t-0", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_gaps_of_compaction_are_no_damage(tmp_path: Path) -> None:
    content = [batch(offset, [b"v"]) for offset in (3, 7, 20, 90)]
    write_segment(tmp_path / "t-0", 0, content)
    recompressed(tmp_path / "t-0", tmp_path / "out")
    assert (tmp_path / "out" / "t-0" / f"{0:020d}.log").exists()
