"""The table of the fields of a place, with their values on one line each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from rich.text import Text
from textual.widgets import DataTable

from format.verbs.explore.byte_views import ByteView
from kafkalog_cli.render.text import CELL_WRITERS, printable

_MOST_CELL = 300
#: The rows that are made at once: a batch of many records has thousands, which would hold up the next key. The others
#: are made when the table is used.
_PORTION = 100


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
