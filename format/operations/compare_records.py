"""Reads back what was written and compares it with its source, record by record.

Batches that hold the same offsets are held against each other. Where both are v2 with equal headers (codec, length and
CRC aside) and their records are the same bytes once decompressed, nothing can differ; otherwise every record's offset,
timestamp, key, value and headers are compared, and what its batch says of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BatchChunk, BatchTable
from format.codecs import decompress
from format.errors import KafkaLogError, OutputError
from format.limits import Limits
from format.location import Location
from format.records import RecordTable, record_tables

_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
_LENGTH = slice(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
_CRC = slice(layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes"))
#: The codec bits are in the attributes' low byte.
_CODEC_BYTE = layout.RECORD_BATCH.offset_of("attributes") + 1


class ReadBackMismatch(OutputError):
    """What was read back is not what the source says."""

    code = "output-failed"


class PlacedBatch(NamedTuple):
    """One batch: its chunk, its row in it, its last offset and its bytes."""

    chunk: BatchChunk
    row: int
    last_offset: int
    content: memoryview


@dataclass(frozen=True, slots=True)
class Pair:
    """Neighbouring batches of the source and of the output that end at the same offset."""

    source: tuple[PlacedBatch, ...]
    output: tuple[PlacedBatch, ...]


def placed_batches(chunk: BatchChunk, which: NDArray[np.bool_]) -> Iterator[PlacedBatch]:
    """The batches of a chunk among the rows ``which``, in order."""
    if chunk.buffer is None:
        raise ValueError("the chunk was read without bodies")
    last = chunk.table.last_offset.tolist()
    starts = (chunk.table.position - chunk.buffer_position).tolist()
    ends = (chunk.table.end_position - chunk.buffer_position).tolist()
    for row in np.flatnonzero(which).tolist():
        yield PlacedBatch(chunk, row, last[row], chunk.buffer[starts[row] : ends[row]])


def paired(source: Iterator[PlacedBatch], output: Iterator[PlacedBatch], location: Location) -> Iterator[Pair]:
    """The batches of both sides, cut where both end at the same offset; raises ReadBackMismatch where none fit."""
    for batch in source:
        left, right = [batch], [_next(output, location)]
        while left[-1].last_offset != right[-1].last_offset:
            if left[-1].last_offset < right[-1].last_offset:
                left.append(_next(source, location))
            else:
                right.append(_next(output, location))
        yield Pair(tuple(left), tuple(right))
    extra = next(output, None)
    if extra is not None:
        raise ReadBackMismatch(f"the output goes on past the source, up to offset {extra.last_offset}", location)


def _next(batches: Iterator[PlacedBatch], location: Location) -> PlacedBatch:
    batch = next(batches, None)
    if batch is None:
        raise ReadBackMismatch("the output and the source do not end at the same offset", location)
    return batch


def compare_pair(pair: Pair, limits: Limits, location: Location) -> int:
    """Compare one pair; returns how many batches of the output it has. Raises ReadBackMismatch at a difference."""
    if len(pair.source) == len(pair.output) == 1:
        source, output = pair.source[0].content, pair.output[0].content
        if (len(source) == len(output) and bytes(source) == bytes(output)) or _same_payload(source, output, limits):
            return 1
    try:
        _compare_records(pair, limits, location)
    except KafkaLogError as error:
        if isinstance(error, ReadBackMismatch):
            raise
        raise ReadBackMismatch(f"cannot be read back: {error.message}", error.location or location) from error
    return len(pair.output)


def _same_payload(source: memoryview, output: memoryview, limits: Limits) -> bool:
    """Whether two v2 batches differ in nothing but codec, length and CRC."""
    magic_at = layout.RECORD_BATCH.offset_of("magic")
    if source[magic_at] != 2 or output[magic_at] != 2:
        return False
    headers, codecs, payloads = [], [], []
    for batch in (source, output):
        header = bytearray(batch[:_HEADER_BYTES])
        codecs.append(header[_CODEC_BYTE] & layout.CODEC_MASK)
        header[_CODEC_BYTE] &= ~layout.CODEC_MASK & 0xFF
        header[_LENGTH] = header[_CRC] = bytes(4)
        headers.append(header)
    if headers[0] != headers[1]:
        return False
    try:
        for batch, codec in zip((source, output), codecs, strict=True):
            payload = batch[_HEADER_BYTES:]
            # As bytes: memoryviews are compared element by element, which takes longer than a copy.
            payloads.append(decompress(codec, payload, magic=2, limits=limits) if codec else bytes(payload))
    except KafkaLogError:
        return False
    return payloads[0] == payloads[1]


def _compare_records(pair: Pair, limits: Limits, location: Location) -> None:
    sides = [_records(each, limits) for each in (pair.source, pair.output)]
    source, output = sides
    if len(source) != len(output):
        first = pair.source[0].chunk.table.base_offset[pair.source[0].row]
        raise ReadBackMismatch(f"{len(source)} records became {len(output)}, from offset {first} on", location)
    for mine, theirs in zip(source, output, strict=True):
        if mine != theirs:
            names = [name for name, a, b in zip(_FIELDS, mine, theirs, strict=True) if a != b]
            raise ReadBackMismatch(f"the record of offset {mine[0]} differs in {', '.join(names)}", location)


_FIELDS = (
    "offset", "timestamp", "timestamp type", "leader epoch", "producer id", "producer epoch", "sequence",
    "is_transactional", "is_control", "key", "value", "headers",
)  # fmt: skip


def _records(batches: tuple[PlacedBatch, ...], limits: Limits) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for batch in batches:
        which = np.zeros(len(batch.chunk.table), bool)
        which[batch.row] = True
        for table in record_tables(batch.chunk, which=which, limits=limits):
            if table.problems:
                raise table.problems[0].error
            found.extend(_rows(table, batch.chunk.table, batch.row))
    return found


def _rows(table: RecordTable, batches: BatchTable, row: int) -> Iterator[tuple[object, ...]]:
    of_batch = (
        bool(batches.is_append_time[row]),
        int(batches.leader_epoch[row]),
        int(batches.producer_id[row]),
        int(batches.producer_epoch[row]),
    )
    marks = (bool(batches.is_transactional[row]), bool(batches.is_control[row]))
    columns = zip(table.offset.tolist(), table.timestamp.tolist(), table.sequence.tolist(), strict=True)
    for number, (offset, timestamp, sequence) in enumerate(columns):
        key, value, headers = table.key(number), table.value(number), table.headers(number) or []
        yield (offset, timestamp, *of_batch, sequence, *marks, key, value, headers)
