"""``python -m docs.generate.explore_pictures`` draws the pictures of docs/explore.md anew: the screen in two sizes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from format.verbs.explore import root_place
from kafkalog_cli.screens.explorer import Explorer
from tests.corpora import DATA_DIR

PICTURES = Path(__file__).parents[1] / "pictures"
_NODE = DATA_DIR / "kafka-4.3-single" / "node-1"


async def _draw(name: str, size: tuple[int, int]) -> None:
    app = Explorer(root_place(_NODE))
    async with app.run_test(size=size) as pilot:
        tree = app.query_one("#left")
        await pilot.pause()
        node = next(each for each in app.places.root.children if str(each.label).startswith("clicks-uncompressed-0"))
        app.places.move_cursor(node)
        await pilot.press("o", "3", "enter")
        await app.workers.wait_for_complete()
        for _ in range(5):
            await pilot.pause()
        tree.focus()
        await pilot.press("tab", "tab", *["down"] * 6)
        for _ in range(3):
            await pilot.pause()
        PICTURES.mkdir(exist_ok=True)
        app.save_screenshot(f"{name}.svg", str(PICTURES))


def main() -> None:
    for name, size in (("explore-80x24", (80, 24)), ("explore-200x50", (200, 50))):
        asyncio.run(_draw(name, size))


if __name__ == "__main__":
    main()
