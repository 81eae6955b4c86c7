"""The first line of the screen: the path of the place that is shown, and its position and offset."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.text import Text
from textual.widget import Widget

from format.verbs.explore.byte_views import ByteView
from format.verbs.explore.places import Place, PlaceKind
from kafkalog_cli.render.text import printable


class WhereLine(Widget):
    """A path and what follows it. On a narrow screen the path loses its start, as its end tells more."""

    def __init__(self, root: Path, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._root = root
        self._path = ""
        self._rest = ""

    def show(self, place: Place, view: ByteView) -> None:
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
        width = max(self.size.width, 1)
        rest = f"  {self._rest}" if self._rest else ""
        words = self._path + rest
        if cell_len(words) > width:
            words = _end_of(self._path, max(width - cell_len(rest) - 1, 0)) + rest
        if cell_len(words) > width:
            words = set_cell_size(words, width - 1) + "…"
        return Text(words.ljust(width), "reverse", no_wrap=True)


def _end_of(text: str, width: int) -> str:
    """The end of a text after an ellipsis."""
    kept = text
    while kept and cell_len(kept) > width:
        kept = kept[max(cell_len(kept) - width + 1, 2) // 2 :]
    return f"…{kept}"
