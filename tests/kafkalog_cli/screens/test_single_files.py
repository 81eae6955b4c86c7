"""explore on one file: jumps, searches and findings work as they do in its partition."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from format.node.log_dir import Kind
from format.verbs.explore import PlaceKind
from tests.building import batch, write_segment
from tests.kafkalog_cli.screens.exploring import Screen, explored

pytestmark = pytest.mark.slow


def _damaged(folder: Path) -> Path:
    bad = bytearray(batch(3, [b"x", b"needle", b"y"]))
    bad[-1] ^= 1
    return write_segment(folder, 0, [batch(0), bytes(bad), batch(6, [b"needle"])])


def test_a_segment_away_from_its_partition(tmp_path: Path) -> None:
    log = _damaged(tmp_path / "case")

    async def script(screen: Screen) -> None:
        await screen.answer("o", "7")
        assert "no record" in screen.said[-1]
        await screen.answer("o", "1")
        assert (screen.place.kind, screen.place.offset) == (PlaceKind.RECORD, 1)
        await screen.answer("slash", "needle")
        assert screen.place.offset == 6
        assert "1 place could not be searched" in screen.said[-1]
        await screen.press("b", "f")
        assert (screen.place.kind, screen.place.offset) == (PlaceKind.BATCH, 3)
        assert "batch-crc-mismatch" in screen.said[-1]
        assert screen.fields["crc_valid"] == "false"
        await screen.press("f")
        assert "no next finding; the partition has 3" in screen.said[-1]

    explored(log, script)


def test_a_jump_to_a_file_beside_the_root_opens_the_directory(data_dir: Path) -> None:
    partition = data_dir / "kafka-4.3-single" / "node-1" / "orders-0"

    async def script(screen: Screen) -> None:
        await screen.press("down", "enter")
        assert (screen.place.kind, screen.place.path.suffix) == (PlaceKind.BATCH, ".log")
        assert str(screen.app.places.root.label) == "orders-0"
        await screen.press("i")
        assert (screen.place.kind, screen.place.path.suffix) == (PlaceKind.ENTRY, ".index")

    explored(partition / "00000000000000000000.index", script)


def test_a_file_of_any_name_with_its_kind(tmp_path: Path) -> None:
    copy = shutil.move(_damaged(tmp_path / "t-0"), tmp_path / "copy.bin")

    async def script(screen: Screen) -> None:
        assert screen.fields["base_offset"] == "0"
        await screen.answer("o", "2")
        assert (screen.place.kind, screen.place.offset) == (PlaceKind.RECORD, 2)
        await screen.answer("t", "1700000000006")
        assert screen.place.offset == 6
        await screen.answer("slash", "needle")
        assert screen.place.offset == 6
        await screen.press("b", "F")
        assert "batch-crc-mismatch" in screen.said[-1]
        assert screen.place.position == len(batch(0))
        await screen.answer("o", "9")
        assert "there is no record" in screen.said[-1]

    explored(copy, script, kind=Kind.LOG)


def test_a_file_without_records_has_no_findings_to_walk(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")

    async def script(screen: Screen) -> None:
        await screen.press("f")
        assert screen.said == ["choose a partition first"]

    explored(tmp_path / "meta.properties", script)
