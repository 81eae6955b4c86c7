"""Rows as paragraphs, where a terminal is too narrow for a table of them."""

from __future__ import annotations

import io
import os

import pytest

from format.columns import BOOT_STEP, REPLICA
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.table import ShownColumns, TableRenderer, paragraph

LOG = "/var/kafka/data/__consumer_offsets-17/00000000000000000000.log"
REASON = "there was no clean shutdown: every batch is read, its CRC checked, and the indexes are rebuilt"
COLUMNS = ("action", "path", "offset", "bytes", "lost_offsets", "reason")


def drawn(monkeypatch: pytest.MonkeyPatch, width: int | None, *, as_paragraphs: bool = True) -> list[str]:
    """What is shown of two steps, on a terminal of this width or in a file."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((width or 80, 24)))
    rows = []
    for values in (
        {"action": "recover", "path": LOG, "offset": 0, "bytes": 2000, "reason": REASON},
        {
            "action": "truncate",
            "path": "orders-0",
            "offset": 5,
            "bytes": 7,
            "lost_offsets": [5, 9],
            "reason": "it is torn",
        },
    ):
        rows.append(tuple(values.get(name) for name in BOOT_STEP.names))
    buffer = io.BytesIO()
    shown = {BOOT_STEP.type: ShownColumns(COLUMNS, as_paragraphs=as_paragraphs)}
    output = OutputStream(buffer, "<test>", is_terminal=width is not None)
    renderer = TableRenderer(output, shown)
    renderer.write(BOOT_STEP, rows)
    renderer.flush()
    output.flush()
    return buffer.getvalue().decode().splitlines()


def test_a_narrow_terminal_keeps_paths_and_sentences_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(monkeypatch, 80) == [
        f"recover  {LOG}",
        "         offset 0, bytes 2.0 KiB",
        "         there was no clean shutdown: every batch is read, its CRC checked, and",
        "         the indexes are rebuilt",
        "truncate orders-0  offset 5, bytes 7 B, lost_offsets [5,9]",
        "         it is torn",
    ]


def test_words_and_numbers_have_their_names() -> None:
    names = ("node_id", "kind", "lost_if_elected", "path")
    columns = [next(each for each in REPLICA.columns if each.name == name) for name in names]
    assert paragraph(columns, ("1", "behind", "[7,9]", "n1/t-0"), 80) == (
        "node_id 1 n1/t-0  kind behind, lost_if_elected [7,9]\n"
    )
    assert paragraph(columns, ("-", "-", "[7,9]", "n1/" + "t" * 70), 60) == (
        f"-        n1/{'t' * 70}\n         lost_if_elected [7,9]\n"
    )


@pytest.mark.parametrize(("width", "as_paragraphs"), [(190, True), (None, True), (80, False)])
def test_else_there_is_a_table(monkeypatch: pytest.MonkeyPatch, width: int | None, as_paragraphs: bool) -> None:
    assert drawn(monkeypatch, width, as_paragraphs=as_paragraphs)[0].split()[:2] == ["action", "path"]
