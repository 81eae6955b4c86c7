"""A scan of the headers of logs: tables of batches, the control records among them, and the damage."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord, read_control_records
from format.scan.drivers import with_last_finding
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import tail_finding

#: Headers are read in windows of this size: larger batches are passed over, smaller ones are read with them.
_WINDOW_BYTES = 512 * 1024
_TABLE_ROWS = 32 * 1024


class Headers(msgspec.Struct, frozen=True):
    """Some consecutive batches, and the control records among them by row."""

    table: BatchTable
    markers: dict[int, ControlRecord]

    def up_to(self, at_ms: int | None) -> Headers:
        """The same without batches that have a later timestamp (ms); None keeps all."""
        if at_ms is None:
            return self
        is_before = self.table.max_timestamp <= at_ms
        number = np.cumsum(is_before) - 1
        markers = {int(number[row]): control for row, control in self.markers.items() if is_before[row]}
        return Headers(self.table.rows(is_before), markers)

    def since(self, offset: int) -> Headers:
        """The same without batches that begin before an offset."""
        before = int(np.searchsorted(self.table.base_offset, offset))
        if not before:
            return self
        markers = {row - before: control for row, control in self.markers.items() if row >= before}
        return Headers(self.table.rows(slice(before, None)), markers)


class HeaderScan(msgspec.Struct, frozen=True):
    """Reads headers and control batches; its results are its parts, since transactions go on from log to log."""

    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.HEADERS, limits=self.limits, chunk_bytes=_WINDOW_BYTES)

    def parts(self, opened: OpenedRange) -> Iterator[Headers | Finding]:
        """Tables of up to a few ten thousand batches, and findings about damage between them."""
        tables: list[BatchTable] = []
        markers: dict[int, ControlRecord] = {}
        row_count = 0
        for chunk in opened.chunks:
            controls = read_control_records(chunk, opened.source, self.limits)
            markers.update((row_count + row, control) for row, control in controls.items())
            tables.append(chunk.headers.unopened())
            row_count += len(chunk.headers)
            if row_count >= _TABLE_ROWS or chunk.damage is not None:
                yield Headers(BatchTable.concatenated(tables), markers)
                tables, markers, row_count = [], {}, 0
            if chunk.damage is not None:
                yield tail_finding(opened.source, chunk, opened.log)
        if row_count:
            yield Headers(BatchTable.concatenated(tables), markers)

    def fold(self, log: LogUnit, parts: LogParts[Headers | Finding]) -> Iterator[Headers | Finding]:
        yield from with_last_finding(log, parts)
