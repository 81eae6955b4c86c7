"""Data of the page, as JSON in script elements."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup


def script_json(value: Any) -> Markup:
    """JSON for a script element, without characters that could end the element or begin another."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
