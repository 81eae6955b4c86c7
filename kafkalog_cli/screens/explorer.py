"""The screen of explore: a tree on the left; beside it the bytes, their fields, and the meaning of a field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Input, Static, Tree
from textual.worker import get_current_worker

from format.decoding.decoder import Decoding
from format.errors import KafkaLogError
from format.findings import Finding, Severity
from format.node.log_dir import Kind
from format.node.target import Target
from format.scan.progress import Advance
from format.verbs import explore
from format.verbs.explore import ByteView, NodePlace, PlaceKind, ShownPartition, Spot
from format.verbs.grep.pattern import regex_pattern, text_pattern
from format.wording import counted_plainly
from kafkalog_cli.options.parsers import parse_time
from kafkalog_cli.render.text import printable
from kafkalog_cli.screens.panes import FieldTable, HexView, PlaceTree, cell, say, state_words, words_of

KEYS = (
    ("arrows", "move; left and right move a long line"),
    ("Enter, space", "open and close; Enter on “more …” reads the next page"),
    ("Tab, Shift-Tab", "from the tree to the bytes, to the fields, and back"),
    ("o", "go to an offset of the partition, or the next record after it"),
    ("t", "go to the first record at or after a time"),
    ("p", "go to the batch that a byte position of the log belongs to"),
    ("/", "search in keys, values and headers; /REGEX/ is a regular expression"),
    ("n", "the next match"),
    ("f, F", "the next and the previous finding"),
    ("i", "from an index entry to its batch, and back"),
    ("b", "back to the place before the last jump"),
    ("Escape", "end a search or a check; take a message away"),
    ("?", "these keys; any of ?, Escape, Enter and q goes back"),
    ("q", "quit"),
    ("mouse", "a click on a byte chooses its field"),
)
_QUESTIONS = {
    "offset": "Offset in this partition",
    "time": "Time: 2026-11-08T08:43, -2h, epoch milliseconds",
    "position": "Byte position in this log file, such as 4711 or 0x1267",
    "search": "Text in keys, values and headers; /REGEX/ for a regular expression",
}
#: Places that have a file with byte positions.
_IN_LOGS = (PlaceKind.FILE, PlaceKind.BATCH, PlaceKind.RECORD, PlaceKind.DAMAGE)
#: A read that is over sooner shows no sign.
_SOON_S = 0.3
_TURNING = "|/-\\"
_HINT = "f goes to the next finding, Enter opens and closes; in a partition o, t and / go to an offset, a time, a text"


class WhereLine(Widget):
    """A path and what follows it. On a narrow screen the path loses its start, as its end tells more."""

    def __init__(self, root: Path, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._root = root
        self._path = ""
        self._rest = ""
        self._busy_since: float | None = None

    def on_mount(self) -> None:
        """Let the sign turn."""
        self.set_interval(0.15, lambda: self.refresh() if self._busy_since is not None else None)

    def show_busy(self, is_busy: bool) -> None:
        """Show or take away the sign that something is read, which comes when it takes longer."""
        self._busy_since = None if not is_busy else self._busy_since or monotonic()
        self.refresh()

    def _busy_sign(self) -> str:
        waited = 0 if self._busy_since is None else monotonic() - self._busy_since
        return "" if waited < _SOON_S else f"  {_TURNING[int(waited / 0.15) % 4]} reading, {waited:.0f} s"

    def show(self, place: NodePlace, view: ByteView) -> None:
        """Show another place, whose path is relative to the parent directory of the root."""
        path, above = place.path, self._root.parent
        self._path = printable(
            str(path.relative_to(above) if path.is_relative_to(above) and path != self._root else path)
        )
        rest = []
        if place.kind in (PlaceKind.BATCH, PlaceKind.RECORD, PlaceKind.DAMAGE, PlaceKind.ENTRY):
            rest.append(f"position {place.position if view.position is None else view.position}")
        if place.offset is not None:
            rest.append(f"offset {place.offset}")
        self._rest = printable("  ".join([*rest, view.note] if view.note else rest))
        self.refresh()

    def render(self) -> Text:
        """The line, as wide as the screen."""
        sign = self._busy_sign()
        width = max(self.size.width - len(sign), 1)
        rest = f"  {self._rest}" if self._rest else ""
        words = self._path + rest
        if cell_len(words) > width:
            words = _end_of(self._path, max(width - cell_len(rest) - 1, 0)) + rest
        if cell_len(words) > width:
            words = set_cell_size(words, width - 1) + "…"
        return Text(words.ljust(width) + sign, "reverse", no_wrap=True)


def _end_of(text: str, width: int) -> str:
    """The end of a text after an ellipsis."""
    kept = text
    while kept and cell_len(kept) > width:
        kept = kept[max(cell_len(kept) - width + 1, 2) // 2 :]
    return f"…{kept}"


class HelpScreen(ModalScreen[None]):
    """What each key does."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 90%; max-width: 100; height: auto; max-height: 100%; border: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,escape,enter,q", "dismiss", "Back")]

    def compose(self) -> ComposeResult:
        table = Table.grid(padding=(0, 2))
        for key, meaning in KEYS:
            table.add_row(key, meaning)
        with VerticalScroll():
            yield Static(table)


class CheckedPartitions:
    """The findings of each partition that was checked, in the order of the tree."""

    def __init__(self) -> None:
        self._found: dict[Path, list[tuple[Spot, Finding]]] = {}
        self._shown: tuple[Path, int, NodePlace] | None = None

    def __contains__(self, scope: Target) -> bool:
        return scope.path in self._found

    def check(self, scope: Target, advance: Advance) -> None:
        """Check a partition unless it was checked before. Raises KafkaLogError, and what ``advance`` raises."""
        if scope.path not in self._found:
            self._found[scope.path] = explore.damage_in(scope, advance)

    def forget(self, path: Path) -> None:
        """Forget what was found at and below a path."""
        self._found = {each: found for each, found in self._found.items() if not each.is_relative_to(path)}

    def findings(self, scope: Target) -> list[tuple[Spot, Finding]]:
        """What was found in a partition that was checked."""
        return self._found[scope.path]

    def first_damage(self, scope: Target) -> int | None:
        """The number of the first finding that is more than a remark."""
        found = self._found[scope.path]
        return next((number for number, (_, each) in enumerate(found) if each.severity >= Severity.WARNING), None)

    def step(self, scope: Target, place: NodePlace, direction: int) -> int | None:
        """The number of the next (1) or previous (-1) finding from a place; several may have the same place."""
        found = self._found[scope.path]
        if self._shown is not None and self._shown[0] == scope.path and self._shown[2] == place:
            number = self._shown[1] + direction
        elif place.kind is PlaceKind.PARTITION:
            number = 0 if direction > 0 else -1
        else:
            here = explore.order_of(place.path, None if place.kind is PlaceKind.FILE else place.position, scope)
            before = sum(explore.order_of(spot.path, spot.position, scope) < here for spot, _ in found)
            number = before if direction > 0 else before - 1
        return number if 0 <= number < len(found) else None

    def was_shown(self, scope: Target, number: int, place: NodePlace) -> None:
        """Note the place at which a finding was shown."""
        self._shown = scope.path, number, place


class _Cancelled(Exception):
    """Work in the background was cancelled."""


class Explorer(App[None]):
    """The program on the screen, for one root place. It reads what is opened or listed, and writes nothing."""

    TITLE = "kafkalog explore"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #left { width: 34%; min-width: 30; border-right: solid $primary; }
    .-narrow #panes { layout: vertical; }
    .-narrow #left { width: 100%; height: 35%; border-right: none; }
    .-narrow #left:focus { height: 60%; }
    .listing #left, .listing #left:focus { width: 100%; height: 100%; border-right: none; }
    .listing #right { display: none; }
    #where { height: 1; }
    #hex { height: 2fr; overflow-x: hidden; }
    #fields { height: 2fr; border-top: solid $primary; }
    #meaning { height: auto; max-height: 6; border-top: solid $primary; }
    .-low #meaning { max-height: 3; }
    .-low #hex { height: 3fr; }
    Toast { width: 100%; max-width: 100%; margin-top: 0; padding: 0 1; }
    #ask { height: 3; display: none; }
    #ask.shown { display: block; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (72, "-wide")]  # noqa: RUF012 - as App declares it
    VERTICAL_BREAKPOINTS = [(0, "-low"), (20, "-high")]  # noqa: RUF012
    NOTIFICATION_TIMEOUT = 15
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
        Binding("question_mark", "help", "Help"),
        Binding("escape", "cancel", "Cancel", show=False),
    ]

    def __init__(self, root: NodePlace, decoding: Decoding | None = None) -> None:
        """``decoding`` decodes the keys and values of records."""
        super().__init__()
        self._root = root
        self._decoding = decoding
        self._view = ByteView()
        self._question = ""
        self._pattern: Any = None
        self._history: list[Spot] = []
        self._checked = CheckedPartitions()

    def compose(self) -> ComposeResult:
        yield WhereLine(self._root.path, id="where")
        with Horizontal(id="panes"):
            yield PlaceTree(self._root, self._decoding, id="left")
            with Vertical(id="right"):
                yield HexView(id="hex")
                yield FieldTable(id="fields")
        yield Static(id="meaning", markup=False)
        yield Input(id="ask")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Open the root."""
        tree = self.places
        tree.root.allow_expand = self._root.has_children
        self.places.open(tree.root)
        tree.root.expand()
        tree.focus()
        self._show(self._root)
        if self._root.kind is PlaceKind.PARTITION:
            self._read_states(self._root)

    @property
    def places(self) -> PlaceTree:
        return self.query_one("#left", PlaceTree)

    @property
    def _fields(self) -> FieldTable:
        return self.query_one("#fields", FieldTable)

    # -- the tree ------------------------------------------------------------------------------------------------

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[NodePlace]) -> None:
        """Read the children when a node is opened."""
        if not event.node.children:
            self.places.open(event.node)
        if event.node.data is not None and event.node.data.kind is PlaceKind.DIRECTORY:
            self._read_states(event.node.data)

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[NodePlace]) -> None:
        """Forget the children, and the findings, of a node that is closed: they may change on the disk."""
        event.node.remove_children()
        if event.node.data is not None:
            self._checked.forget(event.node.data.path)

    def on_tree_node_selected(self, event: Tree.NodeSelected[NodePlace]) -> None:
        """Read the next page, or go from an index entry to its batch."""
        node, place = event.node, event.node.data
        if place is None or node.parent is None:
            return
        if place.kind is PlaceKind.MORE:
            self.places.open_more(node, place)
        elif place.kind is PlaceKind.ENTRY:
            self.action_index()

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[NodePlace]) -> None:
        """Show the bytes of the node under the cursor."""
        if event.node.data is not None:
            self._show(event.node.data)

    # -- bytes and fields ------------------------------------------------------------------------------------------

    def _show(self, place: NodePlace) -> None:
        try:
            self._view = explore.view_of(place, self._decoding)
        except (KafkaLogError, OSError) as error:
            reason = error.message if isinstance(error, KafkaLogError) else words_of(error)
            self._view = ByteView(decoded=(("cannot be read", reason),))
        self.query_one("#where", WhereLine).show(place, self._view)
        self.query_one("#hex", HexView).show(self._view)
        self._fields.show(self._view)
        is_listing = place.kind in (PlaceKind.DIRECTORY, PlaceKind.PARTITION) and "cannot be read" not in dict(
            self._view.decoded
        )
        self.query_one("#panes").set_class(is_listing, "listing")  # there are no bytes to show: names have all the room
        if is_listing:
            self.places.focus()
        self._say_what(Text())

    def _say_what(self, words: Text) -> None:
        """Show the meaning of a field; at a partition what is known of it, and at a directory the keys."""
        place = self.places.place
        state = self.places.state_of(place.path) if place.kind is PlaceKind.PARTITION else None
        if state is not None:
            words = Text(printable(state_words(state)))
        elif self.query_one("#panes").has_class("listing"):
            words = Text(_HINT)
        self.query_one("#meaning", Static).update(words)

    @work(thread=True, group="states")
    def _read_states(self, place: NodePlace) -> None:
        """Read the states of the partitions of a directory, and show them as they come."""
        with self._in_background() as advance:
            found: list[ShownPartition] = []
            shown = monotonic()
            for each in explore.partition_states(place, advance):
                found.append(each)
                if monotonic() - shown > _SOON_S:
                    self.call_from_thread(self._show_states, found)
                    found, shown = [], monotonic()
            self.call_from_thread(self._show_states, found)

    def _show_states(self, found: list[ShownPartition]) -> None:
        self.places.show_states(found)
        if self.places.place.kind is PlaceKind.PARTITION:
            self._say_what(Text())

    def on_worker_state_changed(self) -> None:
        """Show whether something is read for a jump, a search or a check."""
        is_busy = any(each.group == "reading" and not each.is_finished for each in self.workers)
        for line in self.query(WhereLine):
            line.show_busy(is_busy)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Mark the bytes of a field, and show its meaning; or a decoded value on more than one line."""
        key, view = event.row_key.value or "r0", self._view
        number, rows = int(key[1:]), view.regions if key[0] == "r" else view.decoded
        if number < len(rows) and key[0] == "r":
            self.query_one("#hex", HexView).pick(number)
            self._say_what(Text(printable(view.words_about(view.regions[number]))))
        elif number < len(rows):
            name, value = view.decoded[number]
            self._say_what(Text(f"{printable(name)}: ") + cell(value))

    def on_hex_view_picked(self, event: HexView.Picked) -> None:
        """Go to the field of the byte that was clicked."""
        self._fields.go_to(event.number)
        self._fields.focus()

    # -- going somewhere -------------------------------------------------------------------------------------------

    def action_ask(self, question: str) -> None:
        """Open the input line for a question."""
        place = self.places.place
        if question == "position" and place.kind not in _IN_LOGS:
            self._say("choose a log file first")
            return
        if question != "position" and explore.scope_of(place) is None:
            self._say("choose a partition first")
            return
        self.clear_notifications()  # they would cover the line
        self._question = question
        ask = self.query_one("#ask", Input)
        ask.placeholder = _QUESTIONS[question]
        ask.value = ""
        ask.add_class("shown")
        ask.focus()

    def action_cancel(self) -> None:
        """Close the input line, take the message away, and end the work in the background."""
        self.query_one("#ask", Input).remove_class("shown")
        self.clear_notifications()
        self.workers.cancel_all()
        self.places.focus()

    def on_input_blurred(self) -> None:
        """Close the input line when something else was chosen."""
        self.query_one("#ask", Input).remove_class("shown")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the place that was entered."""
        self.query_one("#ask", Input).remove_class("shown")
        self.places.focus()
        text, place = event.value.strip(), self.places.place
        if text:
            try:
                self._answer(text, place)
            except (KafkaLogError, OSError, ValueError) as error:
                self._say(words_of(error), is_error=True)

    def _answer(self, text: str, place: NodePlace) -> None:
        if self._question == "position":
            if place.kind not in _IN_LOGS:
                raise ValueError("choose a log file first")
            position = explore.number_of(text, "a position, such as 4711 or 0x1267")
            self._jump(partial(explore.spot_of_position, place.path, position), "no batch lies at this position")
            return
        scope = explore.scope_of(place)
        if scope is None:
            raise ValueError("choose a partition first")
        if self._question == "offset":
            offset = explore.number_of(text, "an offset")
            nothing = f"there is no record at or after offset {offset}"
            self._jump(partial(explore.spot_of_offset, scope, offset), nothing)
        elif self._question == "time":
            self._jump(partial(explore.spot_of_time, scope, parse_time(text)), f"there is no record at or after {text}")
        else:
            is_regex = len(text) > 2 and text[0] == text[-1] == "/"
            self._pattern = regex_pattern(text[1:-1]) if is_regex else text_pattern(text)
            self._search(scope, 0 if place.offset is None else place.offset)

    def action_next_match(self) -> None:
        """Go to the next record that matches the last search."""
        place = self.places.place
        scope = explore.scope_of(place)
        if self._pattern is None or scope is None:
            self._say("nothing was searched for: press /" if self._pattern is None else "choose a partition first")
            return
        self._search(scope, 0 if place.offset is None else place.offset + 1)

    def action_index(self) -> None:
        """From an index entry to its batch, and from a batch to the index entry that leads to it."""
        place = self.places.place
        if place.kind is PlaceKind.ENTRY:
            self._jump(partial(explore.spot_of_entry, place), "this entry points to no batch")
        elif place.kind in (PlaceKind.BATCH, PlaceKind.RECORD):
            self._jump(partial(explore.entry_of_batch, place), "no index entry lies at or before this batch")
        else:
            self._say("choose an index entry, a batch or a record first")

    def action_help(self) -> None:
        """Show what each key does."""
        self.push_screen(HelpScreen())

    def action_return(self) -> None:
        """Go back to the start of the last jump."""
        if self._history:
            self.places.reveal(self._history.pop())
        else:
            self._say("no jump was made from an earlier place")

    @work(thread=True, exclusive=True, group="reading")
    def _jump(self, find: Callable[[], Spot | None], nothing: str) -> None:
        """Go to the spot that ``find`` returns, unless the user has given up waiting for it."""
        with self._in_background() as advance:
            found = find()
            advance(0)
            self.call_from_thread(self.go, found, nothing)

    @work(thread=True, exclusive=True, group="reading")
    def _search(self, scope: Target, from_offset: int) -> None:
        """Go to the next match. What could not be searched on the way there is said."""
        not_searched = 0
        with self._in_background() as advance:
            found: Spot | None = None
            for item in explore.matches(scope, self._pattern, from_offset, advance, self._decoding):
                advance(0)
                if isinstance(item, Spot):
                    found = item
                    break
                not_searched += 1
            words = [] if found else ["no more matches"]
            if not_searched:
                words.append(f"{counted_plainly(not_searched, 'place')} could not be searched: f goes there")
            self.call_from_thread(self._show_match, found, "; ".join(words))

    def _show_match(self, found: Spot | None, words: str) -> None:
        if found is not None:
            self.go(found, "")
        if words:
            self._say(words)

    @contextmanager
    def _in_background(self) -> Iterator[Advance]:
        """The function for progress of work in a thread, which ends the work when it was cancelled. Says errors."""
        worker = get_current_worker()

        def advance(_: int) -> None:
            if worker.is_cancelled:
                raise _Cancelled

        try:
            yield advance
        except _Cancelled:
            pass
        except (KafkaLogError, OSError) as error:
            self.call_from_thread(self._say, words_of(error), is_error=True)

    def action_finding(self, direction: int) -> None:
        """Go to the next or the previous finding of the partition; after the last one, to the next partition's."""
        place = self.places.place
        scope = explore.scope_of(place)
        if scope is None and (direction < 0 or self._root.kind is not PlaceKind.DIRECTORY):
            self._say("choose a partition first")
        elif scope is None:
            self._say("the partitions are checked in turn; escape ends that")
            self._check_after(place.path)
        elif scope in self._checked:
            self._go_to_finding(scope, direction)
        else:
            self._say("the partition is checked; escape ends that")
            self._check(scope, direction)

    @work(thread=True, exclusive=True, group="reading")
    def _check(self, scope: Target, direction: int) -> None:
        with self._in_background() as advance:
            self._checked.check(scope, advance)
            advance(0)
            self.call_from_thread(self._show_checked, scope)
            self.call_from_thread(self._go_to_finding, scope, direction)

    @work(thread=True, exclusive=True, group="reading")
    def _check_after(self, place: Path, words: str = "") -> None:
        """Check the partitions below or after a place one by one, up to the first with damage, and go there."""
        not_checked: list[str] = []
        with self._in_background() as advance:
            for partition in explore.partitions_after(self._root, place):
                scope = Target(partition, Kind.PARTITION)
                try:
                    self._checked.check(scope, advance)
                except (KafkaLogError, OSError) as error:
                    not_checked.append(f"{partition.name}: {error}")
                    continue
                self.call_from_thread(self._show_checked, scope)
                number = self._checked.first_damage(scope)
                if number is not None:
                    advance(0)
                    self.call_from_thread(self._show_finding, scope, number)
                    return
            passed = f"; not checked: {'; '.join(not_checked)}" if not_checked else ""
            self.call_from_thread(self._say, f"{words}no damage in the partitions from here on{passed}")

    def _show_checked(self, scope: Target) -> None:
        state = self.places.state_of(scope.path)
        if state is not None:
            found = [each for _, each in self._checked.findings(scope)]
            self._show_states([explore.after_check(state, found)])

    def _go_to_finding(self, scope: Target, direction: int) -> None:
        number, count = self._checked.step(scope, self.places.place, direction), len(self._checked.findings(scope))
        if number is not None:
            self._show_finding(scope, number)
        elif direction < 0:
            self._say(f"no previous finding; the partition has {count}")
        elif self._root.kind is PlaceKind.DIRECTORY:
            self._say(f"no next finding, the partition has {count}; those after it are checked")
            self._check_after(scope.path, f"no next finding, the partition has {count}; ")
        else:
            self._say(f"no next finding; the partition has {count}")

    def _show_finding(self, scope: Target, number: int) -> None:
        spot, finding = self._checked.findings(scope)[number]
        place = self.go(spot, "")
        if place is not None:
            self._checked.was_shown(scope, number, place)
            self._say(f"{finding.severity.label} {finding.code}: {finding.message}")

    def go(self, spot: Spot | None, nothing: str) -> NodePlace | None:
        """Show a spot, and remember where the jump began; for None show the message ``nothing``."""
        if spot is None:
            self._say(nothing)
            return None
        place = self.places.place
        is_record = place.kind is PlaceKind.RECORD
        self._history.append(Spot(place.path, place.position, place.offset, is_record=is_record))
        if spot.words:
            self._say(spot.words)
        return self.places.reveal(spot)

    def _say(self, words: str, *, is_error: bool = False) -> None:
        say(self, words, is_error=is_error)
