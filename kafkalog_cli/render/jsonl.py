"""JSON lines: an object per row, its first key ``type``; the summary is the last line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from format.columns import RowSchema
from kafkalog_cli.output import OutputStream
from kafkalog_cli.render.lines import LineMaker, pieces_by_type, writers_by_type
from kafkalog_cli.render.long_values import JSON_PIECES
from kafkalog_cli.render.values import JSON_WRITERS, json_string, json_value
from kafkalog_cli.summary import Summary


class JsonLinesRenderer:
    """Rows as JSON lines, in the order given; any schema at any time."""

    def __init__(self, output: OutputStream) -> None:
        self._output = output
        self._makers: dict[str, LineMaker] = {}

    def write(self, schema: RowSchema, rows: Iterable[tuple[Any, ...]]) -> None:
        """Write the rows."""
        maker = self._makers.get(schema.type)
        if maker is None:
            maker = self._makers[schema.type] = LineMaker(
                schema,
                writers_by_type(schema, JSON_WRITERS),
                pieces_by_type(schema, JSON_PIECES),
                start=f'{{"type":{json_string(schema.type)}',
                labels=[f",{json_string(name)}:" for name in schema.names],
                end="}\n",
                null="null",
            )
        for lines in maker.blocks(rows):
            self._output.write(lines.encode())

    def write_raw(self, lines: bytes | memoryview) -> None:
        """Write whole lines that are JSON already."""
        self._output.write(lines)

    def flush(self) -> None:
        """No row waits."""

    def finish(self, summary: Summary, shown: bool) -> None:
        """Write the summary, always; ``shown`` is for the other formats."""
        self._output.write(f"{json_value(summary.as_row())}\n".encode())
