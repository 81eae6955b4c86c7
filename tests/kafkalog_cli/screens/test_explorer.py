"""The screen of explore: from the root to a field, jumps, searches and findings, names and values that are escaped."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from format.node.target import Target
from format.scan.progress import Advance
from format.verbs.explore import PlaceKind
from kafkalog_cli.screens.explorer import CheckedPartitions
from kafkalog_cli.screens.panes import HexView
from tests.building import batch, write_indexed_segment, write_segment
from tests.corpora import REPOSITORY
from tests.kafkalog_cli.page.reports import damaged_node
from tests.kafkalog_cli.screens.exploring import Screen, explored
from tests.running import run_many

pytestmark = pytest.mark.long


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_from_the_root_to_a_field(data_dir: Path, size: tuple[int, int]) -> None:
    async def script(screen: Screen) -> None:
        await screen.open("payments-0")
        await screen.open("…0.log")
        await screen.open("0–")
        assert screen.place.kind is PlaceKind.BATCH
        assert screen.fields["base_offset"] == "0"
        await screen.press("tab", "tab", "down", "down", "down", "down")
        assert "CRC-32C" in screen.meaning
        await screen.press("shift+tab", "shift+tab", "down")
        assert screen.place.kind is PlaceKind.RECORD

    explored(data_dir / "kafka-4.3-single" / "node-1", script, size)


def test_going_to_offset_time_and_position_and_back(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)])
    second = write_segment(tmp_path / "t-0", 6, [batch(6), batch(9)])

    async def script(screen: Screen) -> None:
        await screen.answer("o", "10")
        assert (screen.place.kind, screen.place.path, screen.place.offset) == (PlaceKind.RECORD, second, 10)
        await screen.answer("p", "0x5")
        assert (screen.place.kind, screen.place.position, screen.place.offset) == (PlaceKind.BATCH, 0, 6)
        await screen.answer("t", "1700000000004")
        assert screen.place.offset == 4
        await screen.press("b")
        assert (screen.place.path, screen.place.offset) == (second, 6)
        await screen.answer("o", "99")
        assert "there is no record" in screen.said[-1]
        for key, text, words in (
            ("o", "x", "'x' is not an offset"),
            ("o", "-1", "'-1' is not an offset"),
            ("o", str(2**63), f"'{2**63}' is not an offset"),
            ("p", "0x", "'0x' is not a position, such as 4711 or 0x1267"),
            ("p", str(2**63), f"'{2**63}' is not a position"),
            ("t", "x", "'x' is not a time"),
        ):
            await screen.answer(key, text)
            assert words in screen.said[-1]

    explored(tmp_path / "t-0", script)


def test_between_an_index_and_its_log(data_dir: Path, tmp_path: Path) -> None:
    partition = shutil.copytree(data_dir / "kafka-4.3-single" / "node-1" / "orders-0", tmp_path / "orders-0")

    async def script(screen: Screen) -> None:
        await screen.open("…0.index")
        await screen.press("down", "down")
        entry = screen.place
        assert entry.kind is PlaceKind.ENTRY
        await screen.press("i")
        assert screen.place.kind is PlaceKind.BATCH
        assert f"position {screen.place.position}" in entry.label
        await screen.press("i")
        assert screen.place == entry

    explored(partition, script)


def test_search_as_grep(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0, [b"a", b"needle", b"b"]), batch(3, [b"x", b"y", b"needle"])])

    async def script(screen: Screen) -> None:
        await screen.answer("slash", "needle")
        assert screen.place.offset == 1
        await screen.press("n")
        assert screen.place.offset == 5
        await screen.press("n")
        assert screen.said == ["no more matches"]
        await screen.press("n", "n")
        assert screen.said == ["no more matches"]
        await screen.press("b")
        await screen.press("b")
        await screen.answer("slash", "/^y$/")
        assert screen.place.offset == 4

    explored(tmp_path / "t-0", script)


def test_next_and_previous_finding(tmp_path: Path) -> None:
    bad = bytearray(batch(3))
    bad[-1] ^= 1
    write_segment(tmp_path / "t-0", 0, [batch(0), bytes(bad), batch(6), b"\xff" * 30, batch(9)])

    async def script(screen: Screen) -> None:
        await screen.press("f")
        assert (screen.place.kind, "no .index" in screen.said[-1]) == (PlaceKind.FILE, True)
        await screen.press("f")
        assert (screen.place.kind, "no .timeindex" in screen.said[-1]) == (PlaceKind.FILE, True)
        await screen.press("f")
        assert (screen.place.kind, screen.place.offset) == (PlaceKind.BATCH, 3)
        assert "batch-crc-mismatch" in screen.said[-1]
        await screen.press("f")
        assert screen.place.kind is PlaceKind.DAMAGE
        await screen.press("F")
        assert screen.place.offset == 3
        await screen.press("F", "F")
        assert "no .index" in screen.said[-1]
        await screen.press("F")
        assert "no previous finding; the partition has 4" in screen.said[-1]
        assert len(screen.said) == 1

    explored(tmp_path / "t-0", script)


def test_findings_of_a_log_directory(data_dir: Path, tmp_path: Path) -> None:
    node = damaged_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path)

    async def script(screen: Screen) -> None:
        await screen.press("o")
        assert "choose a partition first" in screen.said[-1]
        await screen.press("f")
        assert (screen.place.path.parent.name, screen.place.kind) == ("orders-0", PlaceKind.BATCH)
        assert "batch-crc-mismatch" in screen.said[-1]
        await screen.press("f")
        assert (screen.place.path.parent.name, screen.place.kind) == ("payments-0", PlaceKind.DAMAGE)
        assert "tail-torn" in screen.said[-1]

    explored(node, script)


def test_every_partition_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a-0", "b-0", "c-0"):
        write_indexed_segment(tmp_path / name, 0, [batch(0)])
    check = CheckedPartitions.check

    def refuse(self: CheckedPartitions, scope: Target, advance: Advance) -> None:
        if scope.path.name == "b-0":
            return check(self, scope, advance)
        raise OSError("no permission")

    monkeypatch.setattr(CheckedPartitions, "check", refuse)

    async def script(screen: Screen) -> None:
        await screen.press("f")
        assert screen.said[-1].endswith("not checked: a-0: no permission; c-0: no permission")

    explored(tmp_path, script)


def test_hostile_names_and_values_are_escaped(tmp_path: Path) -> None:
    value = b"[red]\x1b[31m[/nonsense] \xe2\x80\xae"
    write_segment(tmp_path / "t-0", 0, [batch(0, [value], key=b"[bold")])
    (tmp_path / "t-0" / "[b]\x1b[2J\udcff").write_bytes(b"[i]\x07\n")

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        await screen.open("0")
        await screen.press("down")
        shown = "\n".join(screen.lines)
        assert "[bold" in shown
        assert not any(each in shown for each in ("\x1b", "\x07", "\u202e"))
        assert "[red]\\x1b[31m[/nonsense] \\u202e" in screen.fields["value"]
        screen.app.places.move_cursor(screen.app.places.root.children[-1])
        await screen.settle()

    explored(tmp_path / "t-0", script, (160, 40))


def test_a_click_picks_the_field_of_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        assert screen.app.query_one(HexView).bytes_in_line == 8
        await screen.click(offset=(10 + 3, 1))  # the tenth byte
        assert screen.meaning.startswith("length: bytes 8 to 11 (0x8).")

    explored(tmp_path / "t-0", script)


def test_a_file_that_goes_is_said_and_no_crash(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        log.unlink()
        await screen.open("…0.log")
        assert any("does not exist" in each for each in screen.said)
        assert "does not exist" in screen.fields["cannot be read"]

    explored(tmp_path / "t-0", script)


def test_a_terminal_without_a_cursor_is_refused(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "kafkalog_cli", "explore", str(tmp_path)]
    environment = {**os.environ, "TERM": "dumb"}
    run = subprocess.run(
        command, stdin=child, stdout=child, stderr=child, env=environment, cwd=REPOSITORY, timeout=60, check=False
    )
    shown = os.read(parent, 4096).decode()
    os.close(parent)
    os.close(child)
    assert run.returncode == 2
    assert "TERM is dumb" in " ".join(shown.split())
    assert "\x1b" not in shown


def test_without_a_terminal_it_is_refused(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    (run,) = run_many([["explore", tmp_path]])
    assert "needs a terminal" in " ".join(run.check(2).stderr.split())
