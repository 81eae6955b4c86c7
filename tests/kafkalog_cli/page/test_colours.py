"""The colours of the page: text can be read on the colours of severities and states, in the light and in the dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from format.findings import Severity
from kafkalog_cli.page import page
from kafkalog_cli.page.page import STATES

pytestmark = pytest.mark.slow

_CSS = (Path(page.__file__).parent / "templates" / "page.css").read_text()


def _luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(each * 2 for each in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    start = _CSS.index("prefers-color-scheme:dark") if scheme == "dark" else 0
    block = _CSS[start : _CSS.index("}", start)]
    colours = dict(re.findall(r"--([a-z0-9-]+):(#[0-9a-f]+)", block))
    for name in {*STATES, *(each.label for each in Severity)}:
        assert _contrast(colours[name], colours[f"on-{name}"]) >= 4.5, name
    for name in ("ink", "quiet", "link"):
        assert _contrast(colours[name], colours["paper"]) >= 4.5, name
        assert _contrast(colours[name], colours["panel"]) >= 4.5, name
