"""What fits on the screen of explore: messages, meanings, long paths and values, narrow and colourless terminals."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from format import layout
from format.verbs import explore
from format.verbs.explore import PlaceKind
from kafkalog_cli.screens.panes import FieldTable, HexView, say
from tests.building import batch, write_indexed_segment, write_segment
from tests.kafkalog_cli.screens.exploring import Screen, explored

pytestmark = pytest.mark.long


def test_the_longest_meaning_is_shown_completely(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    names = list(layout.RECORD_BATCH.names)
    longest = max(layout.RECORD_BATCH.fields, key=lambda each: len(each.name + each.kafka_name + each.meaning))

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        await screen.press("tab", "tab", *["down"] * names.index(longest.name))
        shown = " ".join(screen.lines)
        assert screen.meaning.startswith(longest.name)
        assert all(word in shown for word in screen.meaning.split() if "/" not in word)
        assert "(KIP-98)" in shown

    explored(tmp_path / "t-0", script)


def test_the_first_words_say_where_jumps_and_searches_work(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        assert "in a partition o, t and / go to an offset" in screen.meaning
        await screen.press("slash")
        assert screen.said == ["choose a partition first"]

    explored(tmp_path, script)


def test_one_message_at_a_time_below_the_bytes(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        for _ in range(3):
            await screen.press("b")
            await screen.press("i")
        assert screen.said == ["choose an index entry, a batch or a record first"]
        assert sum("choose an index entry" in line for line in screen.lines) == 1
        assert "       8 " in screen.lines[2]
        say(screen.app, "one")
        say(screen.app, "two")
        await screen.settle()
        assert screen.said == ["two"]
        await screen.press("o")  # which a message would cover
        assert not screen.said
        await screen.press("tab")
        assert not screen.app.query_one("#ask").has_class("shown")

    explored(tmp_path / "t-0", script)


def test_a_message_covers_no_place_that_was_jumped_to(tmp_path: Path) -> None:
    for number in range(30):
        write_segment(tmp_path / "t-0", number * 3, [batch(number * 3)])

    async def script(screen: Screen) -> None:
        for number in range(10, 20):
            await screen.answer("o", str(number * 3))
            assert any(f"{number * 3}  k  a" in line for line in screen.lines[:-5])

    explored(tmp_path / "t-0", script)


def test_a_long_path_leaves_position_and_offset_in_sight(tmp_path: Path) -> None:
    name = f"{'long-' * 40}name-0"
    write_segment(tmp_path / name, 0, [batch(7)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        await screen.open("7")
        assert screen.lines[0].startswith("…")
        assert screen.lines[0].endswith("name-0/00000000000000000000.log  position 0  offset 7")
        assert len(screen.lines[0]) <= 80

    explored(tmp_path / name, script)


def test_why_a_file_cannot_be_read_is_in_sight(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(7)])
    (tmp_path / "t-0" / "00000000000000000009.log").symlink_to(log)

    async def script(screen: Screen) -> None:
        await screen.press("down", "down")
        assert screen.meaning == "cannot be read: cannot open: is a symbolic link, which is not followed"

    explored(tmp_path / "t-0", script)


def test_a_long_value_is_marked_where_it_is_cut(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0, [b"v" * 301]), batch(1, [b"v" * 300])])

    async def script(screen: Screen) -> None:
        await screen.answer("o", "0")
        assert screen.fields["value"] == "v" * 300 + "…"
        table = screen.app.query_one(FieldTable)
        names = [str(table.get_row_at(row)[0]) for row in range(table.row_count)]
        table.move_cursor(row=len(names) - 1 - names[::-1].index("value"))
        await screen.settle()
        assert screen.meaning.startswith("value: vvv")
        assert sum("vvvvv" in line for line in screen.lines[-6:]) >= 4
        await screen.answer("o", "1")
        assert (screen.place.kind, screen.fields["value"]) == (PlaceKind.RECORD, "v" * 300)

    explored(tmp_path / "t-0", script)


def test_a_batch_with_thousands_of_fields_shows_the_first_at_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0, [b"v"] * 90), batch(90)])

    async def script(screen: Screen) -> None:
        table = screen.app.query_one(FieldTable)
        await screen.open("…0.log")
        await screen.press("down")
        assert (table.row_count, screen.fields["crc_valid"]) == (100, "true")
        await screen.press("tab", "tab")
        assert table.row_count > 600
        await screen.press("shift+tab", "shift+tab", "down")
        assert screen.place.offset == 90
        await screen.press("up")
        assert table.row_count == 100
        await screen.press("tab", *["down"] * 8)
        await screen.click(offset=(10, 7))  # the byte 200 or so, in a record
        assert screen.meaning.startswith(str(table.get_row_at(table.cursor_row)[0]))
        assert table.cursor_row > 40

    explored(tmp_path / "t-0", script)


def test_the_pane_with_the_focus_has_the_room_of_a_narrow_screen(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        assert "0–2  3 records" in "".join(screen.lines)
        await screen.press("tab")
        assert screen.app.query_one(HexView).bytes_in_line == 4
        assert any(line.endswith("  8  00 00 00 4c  ...L") for line in screen.lines)
        assert any("…0.log" in line for line in screen.lines)
        await screen.press("tab")
        assert any("base_offset" in line for line in screen.lines)

    explored(tmp_path / "t-0", script, (40, 14))


_NAMES = (
    "customer.profile.snapshots-3",
    "orders-0",
    f"{'payments-eu-west-1-' * 5}v2-11",
    f"{'payments-eu-west-1-' * 5}v2-12",
)


def _node(folder: Path) -> Path:
    for name in _NAMES:
        write_indexed_segment(folder / "node-1" / name, 0, [batch(0), batch(3)])
    damaged = folder / "node-1" / "orders-0" / "00000000000000000000.log"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    return folder / "node-1"


def test_partitions_have_their_state_beside_them(tmp_path: Path) -> None:
    async def script(screen: Screen) -> None:
        lines = screen.lines
        assert lines[2].split() == ["├", "▶", "customer.profile.snapshots-3", "end", "6", "headers", "read"]
        assert lines[3].split() == ["├", "▶", "orders-0", "end", "3", "tail-torn"]
        assert {each.split()[2][:8] + each.split()[2][-2:] for each in lines[4:6]} == {"payments11", "payments12"}
        assert len({line.index("end") for line in lines[2:6]}) == 1
        await screen.press("down", "down")
        assert screen.meaning.startswith("tail-torn: log start 0, high watermark ?, log end 3, 1 segment, ")
        await screen.press("up", "f")  # which finds nothing in the first, and goes to the second
        await screen.press("f")
        assert {each.words for each in screen.app.places._states.values()} == {"verified", "tail-torn", "headers read"}

    explored(_node(tmp_path), script)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_a_name_is_never_cut_to_a_few_letters(tmp_path: Path, width: int) -> None:
    async def script(screen: Screen) -> None:
        for keys in ((), ("down", "enter", "down"), ("tab",)):
            await screen.press(*keys)
            names = [
                line.partition("│")[0].split()[2] for line in screen.lines[2:] if line[:3] in ("├ ▶", "├ ▼", "└ ▶")
            ]
            assert len(names) > 1
            for name in names:
                start, _, end = name.partition("…")
                full = next(each for each in _NAMES if each.startswith(start) and each.endswith(end))
                assert len(name) >= min(len(full), 12), (width, name)

    explored(_node(tmp_path), script, (width, 30))


def test_a_long_jump_shows_that_something_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])
    go_on = threading.Event()

    def slow(scope: object, offset: int) -> None:
        go_on.wait(20)

    monkeypatch.setattr(explore, "spot_of_offset", slow)

    async def script(screen: Screen) -> None:
        await screen._pilot.press("o", "1", "enter")
        await screen._pilot.pause(1.0)
        assert screen.lines[0].endswith("s")
        assert " reading, " in screen.lines[0]
        go_on.set()
        await screen.settle()
        assert "reading" not in screen.lines[0]
        assert screen.said == ["there is no record at or after offset 1"]

    explored(tmp_path / "t-0", script)


def test_without_colours_no_byte_is_grey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        await screen.open("…0.log")
        hex_view = screen.app.query_one(HexView)
        styles = [hex_view._style(index) for index in range(61)]
        assert all(style.color is None for style in styles)
        assert [style.underline for style in styles[7:13]] == [False, True, True, True, True, False]
        assert [style.reverse for style in styles[7:9]] == [True, False]

    explored(tmp_path / "t-0", script)


def test_sizes_are_in_units_that_fit(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0)])
    with log.open("r+b") as file:
        file.truncate(1024**4)

    async def script(screen: Screen) -> None:
        assert "…0.log  1.0 TiB" in "".join(screen.lines)

    explored(tmp_path / "t-0", script)


def test_the_keys_are_shown(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", 0, [batch(0)])

    async def script(screen: Screen) -> None:
        assert "? Help" in screen.lines[-1]
        await screen.press("question_mark")
        assert any("the next and the previous finding" in line for line in screen.lines)
        await screen.press("q")
        assert not any("the next and the previous finding" in line for line in screen.lines)
        assert screen.app.is_running

    explored(tmp_path / "t-0", script)
