"""An explorer for tests, driven by keys and the mouse as a user does, without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from format.node.log_dir import Kind
from format.verbs.explore import NodePlace, root_place
from kafkalog_cli.screens.explorer import Explorer

Script = Callable[["Screen"], Awaitable[None]]


class Screen:
    """A running explorer, and what a user does with it."""

    def __init__(self, app: Explorer, pilot: Pilot[None]) -> None:
        self.app = app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        await self.app.workers.wait_for_complete()
        for _ in range(3):
            await self._pilot.pause()

    async def answer(self, key: str, text: str) -> None:
        await self._pilot.press(key)
        await self.press(*("slash" if each == "/" else "minus" if each == "-" else each for each in text), "enter")

    async def open(self, label: str) -> None:
        """Open the child of that name below the node under the cursor."""
        tree = self.app.places
        node = tree.cursor_node or tree.root
        child = next(each for each in node.children if str(each.label).startswith(label))
        tree.move_cursor(child)
        await self.press("enter")

    async def click(self, *, offset: tuple[int, int]) -> None:
        await self._pilot.click("#hex", offset=offset)
        await self.settle()

    @property
    def place(self) -> NodePlace:
        return self.app.places.place

    @property
    def said(self) -> list[str]:
        return [each.message for each in self.app._notifications]

    @property
    def fields(self) -> dict[str, str]:
        table = self.app.query_one("#fields", DataTable)
        return {str(name): str(value) for name, value in (table.get_row_at(row) for row in range(table.row_count))}

    @property
    def lines(self) -> list[str]:
        """The screen as text."""
        return [strip.text.rstrip() for strip in self.app.screen._compositor.render_strips()]

    @property
    def meaning(self) -> str:
        return str(self.app.query_one("#meaning", Static).render())


def explored(path: Path, script: Script, size: tuple[int, int] = (80, 24), kind: Kind | None = None) -> None:
    """Run a script on the screen of a path."""

    async def run() -> None:
        app = Explorer(root_place(path, kind))
        app.NOTIFICATION_TIMEOUT = 600  # a message stays, however busy the host is
        async with app.run_test(size=size, notifications=True) as pilot:
            screen = Screen(app, pilot)
            await screen.settle()
            await script(screen)

    asyncio.run(run())
