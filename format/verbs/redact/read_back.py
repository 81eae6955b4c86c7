"""Reads a redacted log back and compares it with what was to be written: every header field, every record byte."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np

from format.errors import KafkaLogError, OutputError
from format.kernel.tables import BATCH_COLUMNS
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.log.encode_batches import batch_spans
from format.rewriting.compare_records import ReadBackMismatch
from format.rewriting.read_back import Became, output_chunks
from format.verbs.redact.batches import payload_of

#: The header fields that a redacted batch keeps: all but its position, size and CRC.
_KEPT_COLUMNS = [number for number, name in enumerate(BATCH_COLUMNS) if name not in ("position", "size_bytes", "crc")]


class ContentDigest:
    """A digest of batches: the header fields that redaction keeps, and the records as they are uncompressed."""

    def __init__(self) -> None:
        self._headers = blake2b()
        self._payloads = blake2b()
        self.batches = 0

    def update(self, table: BatchTable, payloads: Iterable[bytes | memoryview]) -> None:
        """Add the next batches."""
        self._headers.update(np.ascontiguousarray(table.columns[:, _KEPT_COLUMNS]))
        for payload in payloads:
            self._payloads.update(len(payload).to_bytes(8, "big"))
            self._payloads.update(payload)
        self.batches += len(table)

    def value(self) -> bytes:
        """The digest of all batches that were added."""
        return blake2b(self._headers.digest() + self._payloads.digest() + self.batches.to_bytes(8, "big")).digest()


def read_back(became: Became, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Compare the output with the digest of what was to be written. Raises ReadBackMismatch."""
    found = ContentDigest()
    path = became.outputs[0].path if became.outputs else Path()
    location = Location(str(path))
    try:
        for chunk in output_chunks(became.outputs, limits):
            starts, ends = batch_spans(chunk, np.arange(len(chunk.table)))
            buffer = chunk.bodies
            spans = zip(starts.tolist(), ends.tolist(), strict=True)
            found.update(chunk.table, (payload_of(bytes(buffer[start:end]), limits) for start, end in spans))
    except OutputError:
        raise
    except KafkaLogError as error:
        raise ReadBackMismatch(f"what was written cannot be read back: {error.message}", location) from error
    if found.value() != (became.digest or ContentDigest().value()):
        raise ReadBackMismatch("what was read back is not what was written", location)
