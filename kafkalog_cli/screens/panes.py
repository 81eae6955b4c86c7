"""The panes of explore: the tree of places, the bytes of one as hexadecimal digits, and the table of its fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import DataTable, Tree
from textual.widgets.tree import TreeNode

from format.decoding.decoder import Decoding
from format.errors import KafkaLogError
from format.io.source import os_reason
from format.verbs.explore import ENTRY_LAYOUTS, ByteView, NodePlace, PlaceKind, ShownPartition, Spot, children
from format.wording import counted
from kafkalog_cli.render.table import cut_in_middle, human_size
from kafkalog_cli.render.text import CELL_WRITERS, printable

_COLOURS = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_red")
_PLAIN = Style()
_DIM = Style(dim=True)
_BOLD = Style(bold=True)
_DAMAGED = Style(color="red", bold=True)
_POSITION_WIDTH = 10
_MOST_CELL = 300
#: A name is not cut to less. What does not fit beside it is left out first.
_LEAST_NAME = 12
#: In less room, whole names come before log ends; in more, log ends and states are columns.
_WIDE = 40
#: Names are not cut for what is longer beside them.
_MOST_WORDS = 24
#: The rows that are made at once: a batch of many records has thousands, which would hold up the next key. The others
#: are made when the table is used.
_PORTION = 100
Node = TreeNode[NodePlace]
_STYLES = {PlaceKind.DAMAGE: "bold red", PlaceKind.MORE: "italic", PlaceKind.PARTITION: "bold"}


class HexView(ScrollView, can_focus=True):
    """Lines of 16 bytes, or of 8 or 4 on a narrow screen. A click picks the field of a byte."""

    class Picked(Message):
        """A field was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = ByteView()
        self._owners: list[int] = []
        self._picked: int | None = None

    @property
    def bytes_in_line(self) -> int:
        """16, or as many as a narrow screen has room for, with their positions and as text."""
        room = self.size.width - _POSITION_WIDTH - 1
        return next((count for count in (16, 8) if count * 4 <= room), 4)

    def show(self, view: ByteView) -> None:
        """Show other bytes from their start on."""
        self._view = view
        self._owners = [-1] * len(view.content)
        for number, region in enumerate(view.regions):
            first, end = max(region.position, 0), min(region.end_position, len(view.content))
            self._owners[first:end] = [number] * max(end - first, 0)
        self._picked = None
        self._resize()
        self.scroll_to(0, 0, animate=False)

    def pick(self, number: int) -> None:
        """Mark a field, and bring it into sight."""
        self._picked = number
        if number < len(self._view.regions):
            line = self._view.regions[number].position // self.bytes_in_line
            top = int(self.scroll_offset.y)
            if not top <= line < top + max(self.size.height, 1):
                self.scroll_to(y=max(line - self.size.height // 2, 0), animate=False)
        self.refresh()

    def on_resize(self) -> None:
        """Lay the lines out for another width, with the marked field in sight."""
        self._resize()
        if self._picked is not None:
            self.pick(self._picked)

    def _resize(self) -> None:
        lines = -(-len(self._view.content) // self.bytes_in_line)
        self.virtual_size = Size(max(self.size.width - 1, 1), lines)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line on the screen."""
        line = y + int(self.scroll_offset.y)
        start = line * self.bytes_in_line
        content = self._view.content[start : start + self.bytes_in_line]
        if not content:
            return Strip.blank(self.size.width, self.rich_style)
        where = start if self._view.position is None else self._view.position + start
        segments = [Segment(f"{where:>8x}  ", _DIM)]
        styles = [self._style(start + number) for number in range(len(content))]
        segments += [Segment(f"{byte:02x} ", style) for byte, style in zip(content, styles, strict=True)]
        segments.append(Segment("   " * (self.bytes_in_line - len(content)) + " ", _PLAIN))
        for byte, style in zip(content, styles, strict=True):
            segments.append(Segment(chr(byte) if 0x20 <= byte < 0x7F else ".", style))
        strip = Strip(segments).adjust_cell_length(self.size.width, _PLAIN)
        return strip.apply_style(self.rich_style)

    def _style(self, index: int) -> Style:
        owner = self._owners[index]
        if owner < 0:
            return _DIM
        # Without colours each would become a grey, some of them as dark as the ground.
        colour = None if self.app.no_color else _COLOURS[owner % len(_COLOURS)]
        return Style(color=colour, reverse=owner == self._picked, underline=owner % 2 == 1)

    def on_click(self, event: Click) -> None:
        """Pick the field of the byte that was clicked."""
        line = int(event.y + self.scroll_offset.y)
        column = int(event.x) - _POSITION_WIDTH
        text_start = self.bytes_in_line * 3 + 1
        number = column // 3 if column < text_start - 1 else column - text_start
        index = line * self.bytes_in_line + number
        if 0 <= number < self.bytes_in_line and index < len(self._owners) and self._owners[index] >= 0:
            self.post_message(self.Picked(self._owners[index]))


class FieldTable(DataTable[Text]):
    """A row for each region of the bytes, then one for each decoded value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", show_header=False)
        self._waiting: Iterator[tuple[Text, Text, str]] = iter(())

    def on_mount(self) -> None:
        """Make the columns."""
        self.add_columns("field", "value")

    def show(self, view: ByteView) -> None:
        """Show other fields from their start on."""
        self.clear()
        self._waiting = _rows(view)
        self._add(_PORTION)
        if self.has_focus:
            self._add(None)

    def _add(self, most: int | None) -> None:
        for name, value, key in islice(self._waiting, most):
            self.add_row(name, value, key=key)

    def on_focus(self) -> None:
        """Make the other rows."""
        self._add(None)

    def on_mouse_scroll_down(self) -> None:
        """Make the other rows."""
        self._add(None)

    def go_to(self, number: int) -> None:
        """Put the cursor on a field."""
        self._add(None)
        self.move_cursor(row=self.get_row_index(f"r{number}"))


def _rows(view: ByteView) -> Iterator[tuple[Text, Text, str]]:
    """The name and the value of each row, and its key: of many regions the records come last."""
    regions = (
        (Text(printable(region.field or "…")), cell(region.value), f"r{number}")
        for number, region in enumerate(view.regions)
    )
    yield from islice(regions, len(view.layouts[0].names) if view.layouts and len(view.regions) > _PORTION else None)
    for number, (name, value) in enumerate(view.decoded):
        is_wrong = name == "crc_valid" and value is False
        yield Text(printable(name), "bold red" if is_wrong else "bold"), cell(value), f"d{number}"
    yield from regions


def cell(value: Any) -> Text:
    """A decoded value on one line: bytes and text with everything unsafe as escapes."""
    if value is None:
        return Text("null", "dim")
    if isinstance(value, bytes):
        text = value[: _MOST_CELL * 4].decode("utf-8", "surrogateescape")
    elif isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, int):
        text = str(value)
    else:
        text = CELL_WRITERS["any"](value)
    return Text(printable(text if len(text) <= _MOST_CELL else f"{text[:_MOST_CELL]}…"))


def say(app: App[None], words: str, *, is_error: bool = False) -> None:
    """Show a message for a few seconds, in place of the one before."""
    app.call_later(app.clear_notifications)  # in its turn, as notify only posts the message
    app.notify(printable(words), severity="error" if is_error else "information", markup=False)


def words_of(error: Exception) -> str:
    """An error in words, without an error number."""
    return os_reason(error) if isinstance(error, OSError) else str(error)


class PlaceTree(Tree[NodePlace]):
    """The places below a root. A place that cannot be read is reported, and the tree stays as it is."""

    def __init__(self, root: NodePlace, decoding: Decoding | None = None, *, id: str | None = None) -> None:
        super().__init__(_label(root), data=root, id=id)
        self._decoding = decoding
        self._root_place = root
        self._states: dict[Path, ShownPartition] = {}
        self._widths = 0, 0  # of log ends and states, where there is room for columns
        self._longest: dict[Path, int] = {}  # by directory: the length of the longest name of a partition
        self.guide_depth = 2

    def open(self, node: Node, start: int = 0) -> None:
        """Read the first children of a node."""
        place = node.data
        if place is None or not place.has_children:
            return
        node.remove_children()
        try:
            found = children(place, start, self._decoding)
        except (KafkaLogError, OSError) as error:
            say(self.app, words_of(error), is_error=True)
            return
        if start:
            node.add_leaf(Text("… from the start", "italic"), NodePlace(PlaceKind.MORE, place.path, "", 0, number=-1))
        self._add(node, found)

    def _add(self, node: Node, places: Iterable[NodePlace]) -> None:
        for each in places:
            node.add(_label(each), each, allow_expand=each.has_children)
            if each.kind is PlaceKind.PARTITION:
                longest = max(self._longest.get(each.path.parent, 0), len(printable(each.label)))
                self._longest[each.path.parent] = longest

    def state_of(self, path: Path) -> ShownPartition | None:
        """What is known of a partition."""
        return self._states.get(path)

    def show_states(self, states: Iterable[ShownPartition]) -> None:
        """Show what is known of some partitions beside their names."""
        self._states |= {each.path: each for each in states}
        self._widths = (
            max((len(_end_words(each)) for each in self._states.values()), default=0),
            min(max((len(printable(each.words)) for each in self._states.values()), default=0), _MOST_WORDS),
        )
        self._invalidate()
        self.refresh()

    def render_label(self, node: Node, base_style: Style, style: Style) -> Text:
        """A label; of a partition with its log end and state, in the room that the pane has."""
        label = super().render_label(node, base_style, style)
        place, room = node.data, self.scrollable_content_region.width
        if place is None or place.kind is not PlaceKind.PARTITION or not room:
            return label
        name = printable(place.label)
        room -= label.cell_len - len(name) + self.guide_depth * _depth_of(node)
        state = self._states.get(place.path)
        beside: list[tuple[str, Style]] = []
        if state is not None:
            end, words = self._widths if room > _WIDE else (0, 0)
            beside = [
                (f"  {_end_words(state):<{end}}", _PLAIN),
                (f"  {printable(state.words):<{words}}", _DAMAGED if state.is_damaged else _DIM),
            ]
        least = min(len(name), room if room <= _WIDE else _LEAST_NAME)
        if room < least + _room_for(beside):
            beside = beside[1:] if state is not None and state.is_damaged else beside[:1]
        if room < least + _room_for(beside) and (state is None or not state.is_damaged):
            beside = []
        width = max(room - _room_for(beside), _LEAST_NAME)
        label.right_crop(len(name))
        shown = name if len(name) <= width else cut_in_middle(name, width)
        label.append(shown.ljust(min(self._longest.get(place.path.parent, 0), width)), style + _BOLD)
        for each, own in beside:
            label.append(each, style + own)
        return label

    def get_label_width(self, node: Node) -> int:
        """The width of a label; that of a partition fits into any pane."""
        is_partition = node.data is not None and node.data.kind is PlaceKind.PARTITION
        return _LEAST_NAME if is_partition else super().get_label_width(node)

    def open_more(self, node: Node, place: NodePlace) -> None:
        """Read the next page, in place of the node that leads to it."""
        parent = node.parent
        if parent is None or parent.data is None:
            return
        if place.number < 0:
            self.open(parent)
            return
        try:
            found = children(parent.data, place.position, self._decoding)
        except (KafkaLogError, OSError) as error:
            say(self.app, words_of(error), is_error=True)
            return
        node.remove()
        before = len(parent.children)
        self._add(parent, found)
        if len(parent.children) > before:
            self.call_after_refresh(self.move_cursor, parent.children[before])

    @property
    def place(self) -> NodePlace:
        """The place under the cursor; on a node that leads to the next page, the place above it."""
        node = self.cursor_node
        while node is not None:
            if node.data is not None and node.data.kind is not PlaceKind.MORE:
                return node.data
            node = node.parent
        return self._root_place

    def reveal(self, spot: Spot) -> NodePlace | None:
        """Open the tree down to a spot, and put the cursor there. Returns the place; None if there is none."""
        self._widen(spot.path)
        node = self._node_of(self.root, spot.path)
        if node is None or node.data is None:
            say(self.app, f"{spot.path} is not in the tree", is_error=True)
            return None
        if spot.position is not None and node.data.kind is PlaceKind.FILE and node.data.has_children:
            node = self._child_at(node, spot.position)
            if spot.offset is not None and node.data is not None and node.data.kind is PlaceKind.BATCH:
                node = self._record_at(node, spot)
        above = node.parent
        while above is not None:
            above.expand()
            above = above.parent
        self.call_after_refresh(self.move_cursor, node)
        self.call_after_refresh(self._bring_into_sight, node)
        return node.data

    def _bring_into_sight(self, node: Node) -> None:
        """Scroll so that a node is above the last lines, which a message may cover."""
        if node.line > self.scroll_offset.y + self.size.height - 5:
            self.scroll_to(y=node.line - self.size.height // 2, animate=False)

    def _widen(self, path: Path) -> None:
        """Put the directory of the file that is the root in its place, for a jump to the directory or another file."""
        root = self._root_place
        directory = root.path.parent
        if root.kind is PlaceKind.FILE and path != root.path and directory in (path, path.parent):
            self._root_place = self.root.data = NodePlace(
                PlaceKind.PARTITION, directory, directory.name or str(directory)
            )
            self.root.set_label(_label(self._root_place))
            self.open(self.root)
            self.root.expand()

    def _node_of(self, node: Node, path: Path) -> Node | None:
        """The node of a file or a directory, read on the way down."""
        place = node.data
        if place is None or place.path == path:
            return node
        if not path.is_relative_to(place.path):
            return None
        if not node.children:
            self.open(node)
        start = 0
        while True:
            for child in node.children:
                if child.data is not None and child.data.kind is not PlaceKind.MORE:
                    found = self._node_of(child, path)
                    if found is not None:
                        return found
            last = node.children[-1] if node.children else None
            if last is None or last.data is None or last.data.kind is not PlaceKind.MORE or last.data.position <= start:
                return None
            start = last.data.position
            self.open_more(last, last.data)

    def _child_at(self, node: Node, position: int) -> Node:
        """The child of a file that starts at a position."""
        if not node.children:
            self.open(node)
        found = _starting_at(node, position)
        if found is None and node.data is not None:
            entry = None if node.data.file_kind is None else ENTRY_LAYOUTS.get(node.data.file_kind)
            self.open(node, position if entry is None else position // entry.size_bytes)
            found = _starting_at(node, position)
        return found or node

    def _record_at(self, node: Node, spot: Spot) -> Node:
        """The record of a spot in a batch; the batch if that is meant, and where it has no such record."""
        offset = spot.offset
        if node.data is None or (node.data.offset == offset and not spot.is_record):
            return node
        if not node.children:
            self.open(node)
        for child in node.children:
            if child.data is not None and child.data.kind is PlaceKind.RECORD and child.data.offset == offset:
                return child
        return node


def _starting_at(node: Node, position: int) -> Node | None:
    for child in node.children:
        place = child.data
        if place is not None and place.kind is not PlaceKind.MORE and place.position == position:
            return child
    return None


def _room_for(beside: list[tuple[str, Style]]) -> int:
    """The width that a name leaves to what is beside it; longer words are cut by the pane."""
    return sum(min(len(words), _MOST_WORDS + 2) for words, _ in beside)


def _depth_of(node: Node) -> int:
    return 0 if node.parent is None else 1 + _depth_of(node.parent)


def _end_words(state: ShownPartition) -> str:
    end = state.listing.log_end_offset
    return "end ?" if end is None else f"end {end:,}"


def state_words(state: ShownPartition) -> str:
    """What is known of a partition, as a line."""
    found = state.listing
    offsets = (("log start", found.log_start_offset), ("high watermark", found.high_watermark),
               ("log end", found.log_end_offset))  # fmt: skip
    known = [f"{name} {'?' if offset is None else format(offset, ',')}" for name, offset in offsets]
    sizes = [counted(found.segment_count or 0, "segment"), human_size(found.log_size_bytes or 0)]
    return f"{state.words}: {', '.join([*known, *sizes])}"


def _label(place: NodePlace) -> Text:
    size = f"  {human_size(place.size_bytes)}" if place.kind is PlaceKind.FILE else ""
    return Text(printable(place.label) + size, _STYLES.get(place.kind, ""))
