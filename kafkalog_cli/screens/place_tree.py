"""The tree of explore, whose nodes are read when they are opened, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.text import Text
from textual.app import App
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from format.errors import KafkaLogError
from format.io.source import os_reason
from format.verbs.explore.look_ups import Spot
from format.verbs.explore.places import ENTRY_LAYOUTS, LOG_KINDS, Place, PlaceKind, children
from kafkalog_cli.render.table import human_size
from kafkalog_cli.render.text import printable

Node = TreeNode[Place]

_STYLES = {PlaceKind.DAMAGE: "bold red", PlaceKind.MORE: "italic", PlaceKind.PARTITION: "bold"}


def say(app: App[None], words: str, *, is_error: bool = False) -> None:
    """Show a message for a few seconds, in place of the one before."""
    app.call_later(app.clear_notifications)  # in its turn, as notify only posts the message
    app.notify(printable(words), severity="error" if is_error else "information", markup=False)


def words_of(error: Exception) -> str:
    """An error in words, without an error number."""
    return os_reason(error) if isinstance(error, OSError) else str(error)


class PlaceTree(Tree[Place]):
    """The places below a root. A place that cannot be read is reported, and the tree stays as it is."""

    def __init__(self, root: Place, *, id: str | None = None) -> None:
        super().__init__(_label(root), data=root, id=id)
        self._root_place = root
        self.guide_depth = 2

    def open(self, node: Node, start: int = 0) -> None:
        """Read the first children of a node."""
        place = node.data
        if place is None or not place.has_children:
            return
        node.remove_children()
        try:
            found = children(place, start)
        except (KafkaLogError, OSError) as error:
            say(self.app, words_of(error), is_error=True)
            return
        if start:
            node.add_leaf(Text("… from the start", "italic"), Place(PlaceKind.MORE, place.path, "", 0, number=-1))
        self._add(node, found)

    def _add(self, node: Node, places: Iterable[Place]) -> None:
        for each in places:
            node.add(_label(each), each, allow_expand=each.has_children)

    def open_more(self, node: Node, place: Place) -> None:
        """Read the next page, in place of the node that leads to it."""
        parent = node.parent
        if parent is None or parent.data is None:
            return
        if place.number < 0:
            self.open(parent)
            return
        try:
            found = children(parent.data, place.position)
        except (KafkaLogError, OSError) as error:
            say(self.app, words_of(error), is_error=True)
            return
        node.remove()
        before = len(parent.children)
        self._add(parent, found)
        if len(parent.children) > before:
            self.call_after_refresh(self.move_cursor, parent.children[before])

    @property
    def place(self) -> Place:
        """The place under the cursor; on a node that leads to the next page, the place above it."""
        node = self.cursor_node
        while node is not None:
            if node.data is not None and node.data.kind is not PlaceKind.MORE:
                return node.data
            node = node.parent
        return self._root_place

    def reveal(self, spot: Spot) -> Place | None:
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
            self._root_place = self.root.data = Place(PlaceKind.PARTITION, directory, directory.name or str(directory))
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
            is_log = node.data.file_kind in LOG_KINDS
            self.open(node, position if is_log else position // max(_entry_bytes(node.data), 1))
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


def _entry_bytes(place: Place) -> int:
    structure = None if place.file_kind is None else ENTRY_LAYOUTS.get(place.file_kind)
    return 0 if structure is None else structure.size_bytes


def _label(place: Place) -> Text:
    size = f"  {human_size(place.size_bytes)}" if place.kind is PlaceKind.FILE else ""
    return Text(printable(place.label) + size, _STYLES.get(place.kind, ""))
