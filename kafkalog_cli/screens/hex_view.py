"""The bytes of a place as hexadecimal digits and as text, each byte in the colour of its field."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.events import Click
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from format.verbs.explore.byte_views import ByteView

_COLOURS = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_red")
_PLAIN = Style()
_DIM = Style(dim=True)
_POSITION_WIDTH = 10


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
