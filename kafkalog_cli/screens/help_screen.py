"""The keys of explore, on a screen over the others."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

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


class HelpScreen(ModalScreen[None]):
    """What each key does."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 90%; max-width: 100; height: auto; max-height: 100%; border: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,escape,enter,q", "dismiss", "Back")]

    def compose(self) -> ComposeResult:
        """The table of keys."""
        table = Table.grid(padding=(0, 2))
        for key, meaning in KEYS:
            table.add_row(key, meaning)
        with VerticalScroll():
            yield Static(table)
