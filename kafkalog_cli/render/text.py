"""Text: a line for each row, with the row's type and then every column as ``name=value``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from format.columns import RowSchema
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.lines import LineMaker, pieces_by_type, writers_by_type
from kafkalog_cli.render.long_values import TEXT_PIECES
from kafkalog_cli.render.values import TEXT_WRITERS, json_value, text_string
from kafkalog_cli.summary import Summary


class TextRenderer:
    """Rows as lines of words, in the order given; any schema at any time."""

    def __init__(self, output: OutputStream) -> None:
        self._output = output
        self._makers: dict[str, LineMaker] = {}

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write the rows."""
        maker = self._makers.get(schema.type)
        if maker is None:
            maker = self._makers[schema.type] = line_maker(schema)
        for lines in maker.blocks(rows):
            self._output.write_text(lines)

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines that are in this format and UTF-8 already."""
        self._output.write(lines)

    def flush(self) -> None:
        """No row waits."""

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the summary as the last line, with ``shown``."""
        if shown:
            row = summary.as_row()
            kind = row.pop("type")
            words = [
                f"{key}={text_string(each) if isinstance(each, str) else json_value(each)}" for key, each in row.items()
            ]
            self._output.write_text(f"{kind} {' '.join(words)}\n")


def line_maker(schema: RowSchema) -> LineMaker:
    """The maker of lines of a schema in this format."""
    return LineMaker(
        schema,
        writers_by_type(schema, TEXT_WRITERS),
        pieces_by_type(schema, TEXT_PIECES),
        start=schema.type,
        labels=[f" {name}=" for name in schema.names],
        end="\n",
        null="-",
    )
