"""Which columns a table shows, where not all of them."""

from __future__ import annotations

from typing import Self


class ShownColumns(tuple[str, ...]):
    """Names of columns in their order, and which of them a narrow terminal does without before it drops the last."""

    first_to_go: tuple[str, ...]

    def __new__(cls, names: tuple[str, ...], first_to_go: tuple[str, ...] = ()) -> Self:
        made = super().__new__(cls, names)
        made.first_to_go = first_to_go
        return made


#: Of records. Whoever looks at them wants keys and values; where they lie is mostly known.
RECORD_COLUMNS = ShownColumns(
    ("topic", "partition", "offset", "timestamp", "codec", "key", "value", "headers"),
    first_to_go=("codec", "headers", "topic", "partition"),
)
