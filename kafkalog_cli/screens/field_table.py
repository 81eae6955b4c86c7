"""The table of the fields of a place, with their values on one line each."""

from __future__ import annotations

from typing import Any

from rich.text import Text
from textual.widgets import DataTable

from format.verbs.explore.byte_views import ByteView
from kafkalog_cli.render.escape import printable
from kafkalog_cli.render.values import CELL_WRITERS

_MOST_CELL = 300


class FieldTable(DataTable[Text]):
    """A row for each region of the bytes, then one for each decoded value."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", show_header=False)

    def on_mount(self) -> None:
        """Make the columns."""
        self.add_columns("field", "value")

    def show(self, view: ByteView) -> None:
        """Show other fields from their start on."""
        self.clear()
        for number, region in enumerate(view.regions):
            self.add_row(Text(printable(region.field or "…")), _cell(region.value), key=f"r{number}")
        for number, (name, value) in enumerate(view.decoded):
            is_wrong = name == "crc_valid" and value is False
            self.add_row(Text(printable(name), "bold red" if is_wrong else "bold"), _cell(value), key=f"d{number}")


def _cell(value: Any) -> Text:
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
