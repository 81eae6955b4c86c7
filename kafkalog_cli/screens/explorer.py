"""The screen of explore: a tree on the left; beside it the bytes, their fields, and the meaning of a field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import DataTable, Footer, Input, Static, Tree
from textual.worker import get_current_worker

from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.verbs.explore import look_ups
from format.verbs.explore.byte_views import ByteView, view_of
from format.verbs.explore.look_ups import Spot
from format.verbs.explore.places import Place, PlaceKind
from kafkalog_cli.render.escape import printable
from kafkalog_cli.render.values import CELL_WRITERS
from kafkalog_cli.screens.hex_view import HexView
from kafkalog_cli.screens.place_tree import PlaceTree, say

_MOST_CELL = 300
_QUESTIONS = {
    "offset": "Offset in this partition",
    "time": "Time: 2026-11-08T08:43, -2h, epoch milliseconds",
    "position": "Byte position in this log file, such as 4711 or 0x1267",
    "search": "Text in keys, values and headers; /REGEX/ for a regular expression",
}
#: Places that have a file with byte positions.
_IN_LOGS = (PlaceKind.FILE, PlaceKind.BATCH, PlaceKind.RECORD, PlaceKind.DAMAGE)
_HINT = "f goes to the next finding, Enter opens and closes; o, t and / go to an offset, a time or a text"


class Explorer(App[None]):
    """The program on the screen, for one root place. It reads only what is opened, and writes nothing."""

    TITLE = "kafkalog explore"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #left { width: 34%; min-width: 30; border-right: solid $primary; }
    #where { height: 1; }
    #hex { height: 2fr; overflow-x: hidden; }
    #fields { height: 2fr; border-top: solid $primary; }
    #meaning { height: auto; max-height: 4; border-top: solid $primary; }
    #ask { height: 3; display: none; }
    #ask.shown { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("o", "ask('offset')", "Offset"),
        Binding("t", "ask('time')", "Time"),
        Binding("p", "ask('position')", "Pos."),
        Binding("slash", "ask('search')", "Search"),
        Binding("n", "next_match", "Next"),
        Binding("f", "finding(1)", "Finding"),
        Binding("F", "finding(-1)", "Prev.", show=False),
        Binding("i", "index", "Index"),
        Binding("b", "return", "Back"),
        Binding("escape", "cancel", "Cancel", show=False),
    ]

    def __init__(self, root: Place) -> None:
        super().__init__()
        self._root = root
        self._view = ByteView()
        self._question = ""
        self._pattern: Any = None
        self._history: list[Spot] = []
        self._findings: dict[Path, list[tuple[Spot, Finding]]] = {}

    def compose(self) -> ComposeResult:
        """The widgets."""
        yield Static(id="where", markup=False)
        with Horizontal():
            yield PlaceTree(self._root, id="left")
            with Vertical():
                yield HexView(id="hex")
                yield DataTable(id="fields", cursor_type="row", show_header=False)
                yield Static(id="meaning", markup=False)
        yield Input(id="ask")
        yield Footer()

    def on_mount(self) -> None:
        """Open the root."""
        tree = self.places
        self._fields.add_columns("field", "value")
        tree.root.allow_expand = self._root.has_children
        self.places.open(tree.root)
        tree.root.expand()
        tree.focus()
        self._show(self._root)

    @property
    def places(self) -> PlaceTree:
        """The tree."""
        return self.query_one("#left", PlaceTree)

    @property
    def _fields(self) -> DataTable[Text]:
        return self.query_one("#fields", DataTable)

    # -- the tree ------------------------------------------------------------------------------------------------

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Place]) -> None:
        """Read the children when a node is opened for the first time."""
        if not event.node.children:
            self.places.open(event.node)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Place]) -> None:
        """Read the next page, or go from an index entry to its batch."""
        node, place = event.node, event.node.data
        if place is None or node.parent is None:
            return
        if place.kind is PlaceKind.MORE:
            self.places.open_more(node, place)
        elif place.kind is PlaceKind.ENTRY:
            self.action_index()

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Place]) -> None:
        """Show the bytes of the node under the cursor."""
        if event.node.data is not None:
            self._show(event.node.data)

    # -- bytes and fields ------------------------------------------------------------------------------------------

    def _show(self, place: Place) -> None:
        try:
            self._view = view_of(place)
            note = self._view.note
        except (KafkaLogError, OSError) as error:
            self._view = ByteView(decoded=(("cannot be read", str(error)),))
            note = ""
        where = self._name_of(place.path)
        if place.kind in (PlaceKind.BATCH, PlaceKind.RECORD, PlaceKind.DAMAGE, PlaceKind.ENTRY):
            position = place.position if self._view.position is None else self._view.position
            where += f"  position {position}"
        if place.offset is not None:
            where += f"  offset {place.offset}"
        self.query_one("#where", Static).update(Text(printable(f"{where}  {note}".rstrip()), "reverse"))
        self.query_one("#hex", HexView).show(self._view)
        fields = self._fields
        fields.clear()
        for number, region in enumerate(self._view.regions):
            fields.add_row(Text(printable(region.field or "…")), _cell(region.value), key=f"r{number}")
        for number, (name, value) in enumerate(self._view.decoded):
            fields.add_row(Text(printable(name), "bold"), _cell(value), key=f"d{number}")
        self._say_what("")

    def _say_what(self, words: str) -> None:
        """Show the meaning of a field, or at a directory, which has no fields, the keys."""
        is_directory = self.places.place.kind is PlaceKind.DIRECTORY
        hint = _HINT if is_directory else ""
        self.query_one("#meaning", Static).update(Text(printable(words or hint)))

    def _name_of(self, path: Path) -> str:
        """A path relative to the parent directory of the root."""
        above = self._root.path.parent
        return str(path.relative_to(above)) if path.is_relative_to(above) and path != self._root.path else str(path)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Mark the bytes of a field, and show its meaning."""
        key = event.row_key.value or ""
        if not key.startswith("r"):
            self._say_what("")
            return
        number = int(key[1:])
        if number >= len(self._view.regions):
            return
        region = self._view.regions[number]
        self.query_one("#hex", HexView).pick(number)
        words = f"{region.field or 'bytes'}: bytes {region.position} to {region.end_position - 1}. "
        self.query_one("#meaning", Static).update(Text(printable(words + self._view.meaning(region.field))))

    def on_hex_view_picked(self, event: HexView.Picked) -> None:
        """Go to the field of the byte that was clicked."""
        self._fields.move_cursor(row=event.number)
        self._fields.focus()

    # -- going somewhere -------------------------------------------------------------------------------------------

    def action_ask(self, question: str) -> None:
        """Open the input line for a question."""
        place = self.places.place
        if question == "position" and place.kind not in _IN_LOGS:
            self._say("choose a log file first")
            return
        if question != "position" and look_ups.partition_of(place) is None:
            self._say("choose a partition first")
            return
        self._question = question
        ask = self.query_one("#ask", Input)
        ask.placeholder = _QUESTIONS[question]
        ask.value = ""
        ask.add_class("shown")
        ask.focus()

    def action_cancel(self) -> None:
        """Close the input line, and end the work in the background."""
        self.query_one("#ask", Input).remove_class("shown")
        self.workers.cancel_all()
        self.places.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the place that was entered."""
        self.query_one("#ask", Input).remove_class("shown")
        self.places.focus()
        text, place = event.value.strip(), self.places.place
        if text:
            try:
                self._answer(text, place)
            except (KafkaLogError, OSError, ValueError) as error:
                self._say(str(error), is_error=True)

    def _answer(self, text: str, place: Place) -> None:
        if self._question == "position":
            if place.kind not in _IN_LOGS:
                raise ValueError("choose a log file first")
            position = look_ups.number_of(text, "a position, such as 4711 or 0x1267")
            self.go(look_ups.spot_of_position(place.path, position), "no batch lies at this position")
            return
        partition = look_ups.partition_of(place)
        if partition is None:
            raise ValueError("choose a partition first")
        if self._question == "offset":
            offset = look_ups.number_of(text, "an offset")
            self.go(look_ups.spot_of_offset(partition, offset), f"there is no record at or after offset {offset}")
        elif self._question == "time":
            from kafkalog_cli.options.times import parse_time

            self.go(look_ups.spot_of_time(partition, parse_time(text)), f"there is no record at or after {text}")
        else:
            from format.verbs.grep.pattern import regex_pattern, text_pattern

            is_regex = len(text) > 2 and text[0] == text[-1] == "/"
            self._pattern = regex_pattern(text[1:-1]) if is_regex else text_pattern(text)
            self._search(partition, 0 if place.offset is None else place.offset)

    def action_next_match(self) -> None:
        """Go to the next record that matches the last search."""
        place = self.places.place
        partition = look_ups.partition_of(place)
        if self._pattern is None or partition is None:
            self._say("nothing was searched for: press /")
            return
        self._search(partition, 0 if place.offset is None else place.offset + 1)

    def action_index(self) -> None:
        """From an index entry to its batch, and from a batch to the index entry that leads to it."""
        place = self.places.place
        try:
            if place.kind is PlaceKind.ENTRY:
                self.go(look_ups.spot_of_entry(place), "this entry points to no batch")
            elif place.kind in (PlaceKind.BATCH, PlaceKind.RECORD):
                self.go(look_ups.entry_of_batch(place), "no index entry lies at or before this batch")
        except (KafkaLogError, OSError) as error:
            self._say(str(error), is_error=True)

    def action_return(self) -> None:
        """Go back to the start of the last jump."""
        if self._history:
            self.places.reveal(self._history.pop())

    @work(thread=True, exclusive=True, group="reading")
    def _search(self, partition: Path, from_offset: int) -> None:
        self._in_background(look_ups.matches(partition, self._pattern, from_offset), "no more matches")

    def _in_background(self, spots: Iterator[Spot], nothing: str) -> None:
        """Go to the first spot of a search that takes time."""
        worker = get_current_worker()
        try:
            spot = next(spots, None)
        except (KafkaLogError, OSError) as error:
            self.call_from_thread(self._say, str(error), is_error=True)
            return
        if not worker.is_cancelled:
            self.call_from_thread(self.go, spot, nothing)

    def action_finding(self, direction: int) -> None:
        """Go to the next or the previous finding of the partition; after the last one, to the next partition's."""
        place = self.places.place
        partition = look_ups.partition_of(place)
        if partition is None and direction < 0:
            self._say("choose a partition first")
        elif partition is None:
            self._say("the partitions are checked in turn; escape ends that")
            self._check_after(place.path)
        elif partition in self._findings:
            self._go_to_finding(partition, direction)
        else:
            self._say("the partition is checked; escape ends that")
            self._check(partition, direction)

    @work(thread=True, exclusive=True, group="reading")
    def _check(self, partition: Path, direction: int) -> None:
        worker = get_current_worker()
        found: list[tuple[Spot, Finding]] = []
        try:
            for each in look_ups.damage_in(partition):
                if worker.is_cancelled:
                    return
                found.append(each)
        except (KafkaLogError, OSError) as error:
            self.call_from_thread(self._say, str(error), is_error=True)
            return
        self._note_findings(partition, found)
        self.call_from_thread(self._go_to_finding, partition, direction)

    def _note_findings(self, partition: Path, found: list[tuple[Spot, Finding]]) -> None:
        found.sort(key=lambda each: (each[0].path.name, each[0].position or 0))
        self._findings[partition] = found

    @work(thread=True, exclusive=True, group="reading")
    def _check_after(self, place: Path) -> None:
        """Check the partitions below or after a place one by one, up to the first with damage, and go there."""
        worker = get_current_worker()
        for partition in look_ups.partitions_after(self._root, place):
            found = self._findings.get(partition, [])
            try:
                for each in look_ups.damage_in(partition) if partition not in self._findings else ():
                    if worker.is_cancelled:
                        return
                    found.append(each)
            except (KafkaLogError, OSError) as error:
                self.call_from_thread(self._say, f"{partition.name}: {error}", is_error=True)
                continue
            self._note_findings(partition, found)
            damage = next((each for each in found if each[1].severity >= Severity.WARNING), None)
            if damage is not None:
                self.call_from_thread(self._show_finding, damage)
                return
        self.call_from_thread(self._say, "no damage in the partitions from here on")

    def _go_to_finding(self, partition: Path, direction: int) -> None:
        place = self.places.place
        here = Spot(place.path, place.position)
        if place.kind is PlaceKind.PARTITION:
            here = Spot(Path(""), 0)
        found = self._findings[partition]
        if direction > 0:
            wanted = next((each for each in found if look_ups.is_before(here, each[0])), None)
        else:
            wanted = next((each for each in reversed(found) if look_ups.is_before(each[0], here)), None)
        if wanted is not None:
            self._show_finding(wanted)
        elif direction < 0:
            self._say(f"no previous finding; the partition has {len(found)}")
        else:
            self._say(f"no next finding, the partition has {len(found)}; those after it are checked")
            self._check_after(partition)

    def _show_finding(self, found: tuple[Spot, Finding]) -> None:
        self.go(found[0], "")
        self._say(f"{found[1].severity.label} {found[1].code}: {found[1].message}")

    def go(self, spot: Spot | None, nothing: str) -> None:
        """Show a spot, and remember where the jump began; for None show the message ``nothing``."""
        if spot is None:
            self._say(nothing)
            return
        place = self.places.place
        self._history.append(Spot(place.path, place.position, place.offset))
        if spot.words:
            self._say(spot.words)
        self.places.reveal(spot)

    def _say(self, words: str, *, is_error: bool = False) -> None:
        say(self, words, is_error=is_error)


def _cell(value: Any) -> Text:
    """A decoded value on one line: bytes and text with everything unsafe as escapes."""
    if value is None:
        return Text("null", "dim")
    if isinstance(value, bytes):
        text = value[:_MOST_CELL].decode("utf-8", "surrogateescape")
    elif isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int):
        text = str(value)
    else:
        text = CELL_WRITERS["any"](value)
    return Text(printable(text[:_MOST_CELL]))
