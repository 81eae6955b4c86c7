"""Logs in memory: a Source of bytes, and all batches of a source as one table."""

from __future__ import annotations

from format.errors import CorruptDataError
from format.io.source import Source
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import BatchTable
from format.log.read_records import known_batches
from format.log.walker import batch_chunks, header_chunks


class BytesSource:
    """A Source of bytes in memory."""

    def __init__(self, data: bytes, path: str = "<memory>") -> None:
        self.path = path
        self._data = data
        self.size_bytes = len(data)
        self.bytes_read = 0

    def read_at(self, position: int, length: int) -> bytes:
        got = self._data[position : position + length] if length > 0 else b""
        self.bytes_read += len(got)
        return got

    def data_range(self, position: int) -> tuple[int, int]:
        """All bytes up to the end."""
        return position, self.size_bytes

    def close(self) -> None:
        pass


def read_batch_table(source: Source, *, check_crc: bool = False, limits: Limits = DEFAULT_LIMITS) -> BatchTable:
    """All batches of a small source as one table. Raises CorruptDataError at the first damage."""
    tables = []
    for chunk in batch_chunks(source, limits=limits) if check_crc else header_chunks(source, limits=limits):
        if chunk.damage is not None:
            raise CorruptDataError(chunk.damage.reason)
        tables.append(known_batches(chunk).table)
    return BatchTable.concatenated(tables)
