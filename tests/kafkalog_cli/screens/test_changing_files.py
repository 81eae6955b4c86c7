"""explore while a directory changes under it, and while work in the background goes on."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from format.scan.progress import Advance
from format.verbs import explore
from format.verbs.explore import PlaceKind
from tests.building import batch, write_segment
from tests.kafkalog_cli.screens.exploring import Screen, explored

pytestmark = pytest.mark.long


def test_a_closed_node_is_read_again(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        assert len(screen.app.places.root.children[0].children) == 1
        log.write_bytes(batch(0) + batch(3))
        await screen.press("enter", "enter")
        assert len(screen.app.places.root.children[0].children) == 2
        await screen.press("f", "f")
        log.write_bytes(batch(0) + batch(3) + b"\xff" * 20)
        screen.app.places.move_cursor(screen.app.places.root)
        await screen.press("enter", "enter", "f", "f", "f")
        assert "tail-torn" in screen.said[-1] or screen.place.kind is PlaceKind.DAMAGE

    explored(tmp_path / "t-0", script)


@pytest.mark.parametrize("content", [b"", b"\x00" * 30, batch(0)[:70], b"\xff" * 500, batch(0)])
def test_a_file_that_was_cut_or_overwritten(tmp_path: Path, content: bytes) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0), batch(3)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        await screen.open("0–2")
        log.write_bytes(content)
        await screen.press("down", "down", "down", "down")
        assert screen.place.offset == 3
        assert "cannot be read" in screen.fields
        await screen.press("enter", "up", "up", "i", "i")
        assert screen.app.is_running

    explored(tmp_path / "t-0", script)


def test_a_directory_that_goes(tmp_path: Path) -> None:
    write_segment(tmp_path / "n" / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("t-0")
        await screen.press("f", "f")
        shutil.rmtree(tmp_path / "n" / "t-0")
        for keys in (("f", "f"), ("o", "1", "enter"), ("slash", "x", "enter"), ("b",), ("enter",), ("enter",), ("f",)):
            await screen.press(*keys)
        assert screen.app.is_running
        assert "no TOPIC-PARTITION directory" in screen.said[-1] or "does not exist" in screen.said[-1]

    explored(tmp_path / "n", script)


def test_the_end_of_the_program_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    began, ended = threading.Event(), threading.Event()

    def endless(scope: object, pattern: object, from_offset: int, advance: Advance, decoding: object) -> None:
        began.set()
        try:
            while not ended.wait(0.01):
                advance(1)
        finally:
            ended.set()

    monkeypatch.setattr(explore, "matches", endless)

    async def script(screen: Screen) -> None:
        await screen.press("slash", "x")
        await screen._pilot.press("enter")
        began.wait(10)
        await screen._pilot.press("escape")
        assert ended.wait(10)

    explored(tmp_path / "t-0", script)


def test_a_search_and_a_check_say_how_far_they_are(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    class Stopped(Exception):
        pass

    def stop(_: int) -> None:
        raise Stopped

    from format.node.target import Target
    from format.verbs.grep.pattern import text_pattern

    scope = Target(tmp_path / "t-0")
    with pytest.raises(Stopped):
        list(explore.matches(scope, text_pattern("x"), 0, stop))
    with pytest.raises(Stopped):
        explore.damage_in(scope, stop)
