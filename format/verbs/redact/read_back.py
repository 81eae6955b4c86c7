"""Reads a redacted log back and holds it against what was to be written: every header field, every record byte."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError, OutputError
from format.io.source import FileSource
from format.kernel.tables import BATCH_COLUMNS
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.rewriting.intact_batches import salvage_chunks
from format.verbs.redact.batches import payload_of

#: What a redacted batch has in common with its source: where it lies, how large it is and its CRC are not.
_KEPT_COLUMNS = [number for number, name in enumerate(BATCH_COLUMNS) if name not in ("position", "size_bytes", "crc")]


class ContentDigest:
    """A digest of batches: the header fields that redaction keeps, and the records as they are uncompressed."""

    def __init__(self) -> None:
        self._headers = blake2b()
        self._payloads = blake2b()
        self.batches = 0

    def update(self, table: BatchTable, payloads: Iterable[bytes | memoryview]) -> None:
        """The next batches."""
        self._headers.update(np.ascontiguousarray(table.columns[:, _KEPT_COLUMNS]))
        for payload in payloads:
            self._payloads.update(len(payload).to_bytes(8, "big"))
            self._payloads.update(payload)
        self.batches += len(table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContentDigest) and self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]

    def _values(self) -> tuple[bytes, bytes, int]:
        return self._headers.digest(), self._payloads.digest(), self.batches


def read_back(path: Path, expected: ContentDigest, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raises OutputError where the log at ``path`` does not hold what ``expected`` was made of, with right CRCs."""
    found = ContentDigest()
    location = Location(str(path))
    try:
        with FileSource(path) as source:
            for chunk in salvage_chunks(source, limits):
                table = chunk.table
                if chunk.damage is not None or chunk.buffer is None or (table.crc_valid != 1).any():
                    raise OutputError("what was read back is damaged", location)
                starts = table.position - chunk.buffer_position
                ends = starts + table.size_bytes
                buffer = chunk.buffer
                columns = zip(starts.tolist(), ends.tolist(), strict=True)
                found.update(table, (payload_of(bytes(buffer[start:end]), limits) for start, end in columns))
    except OutputError:
        raise
    except KafkaLogError as error:
        raise OutputError(f"what was written cannot be read back: {error.message}", location) from error
    if found != expected:
        raise OutputError("what was read back is not what was written", location)
