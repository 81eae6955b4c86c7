"""The batches that Kafka's tool finds, from header to header without plausibility checks, until it stops or dies.

Source: clients record/internal/FileLogInputStream.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format import layout
from format.io.source import Source
from format.kernel.headers import hop
from format.kernel.tables import BATCH_COLUMNS
from format.log.batch_chunk import BatchChunk
from format.log.batch_header import checked_crcs, has_right_crc
from format.log.batch_table import HeaderTable
from format.log.walker import BODY_CHUNK_BYTES
from format.verbs.dump_log.batch_text import BatchFacts, decode_facts, header_bytes, magic_of
from format.verbs.dump_log.stops import KafkaStops

#: The fewest bytes after the last whole batch that Kafka still looks at: a header up to its magic.
_LEAST_BYTES = layout.RECORD_BATCH.offset_of("magic") + 1
_LENGTH = slice(layout.LOG_ENTRY.offset_of("length"), layout.LOG_ENTRY.size_bytes)
_OVERHEAD = layout.LOG_ENTRY.size_bytes
_TABLE_ROWS = 16 * 1024


class OddBatch(msgspec.Struct, frozen=True):
    """A batch for Kafka but not for batch_table: its magic is unknown, or it is too short for its magic."""

    facts: BatchFacts


def kafka_walk(source: Source, start: int, end: int, *, check_crc: bool = True) -> Iterator[BatchChunk | OddBatch]:
    """The batches that Kafka finds in ``source[start:end]``. Raises KafkaStops where Kafka dies.

    The caller counts the bytes.
    """
    position = start
    scratch = np.empty((_TABLE_ROWS, len(BATCH_COLUMNS)), np.int64)
    status = np.zeros(3, np.int64)
    wanted = BODY_CHUNK_BYTES
    while position < end - _LEAST_BYTES:
        buffer = memoryview(source.read_at(position, min(wanted, end - position)))
        wanted = BODY_CHUNK_BYTES
        status[2] = -1  # accept every header
        count = hop(buffer, 0, len(buffer), position, memoryview(scratch), 0, memoryview(status))
        headers = HeaderTable(scratch[:count].copy())
        whole = int(np.searchsorted(headers.end_position, position + len(buffer), "right"))
        if whole:
            headers = headers.rows(slice(0, whole))
            if check_crc:
                headers = headers.with_crcs(checked_crcs(headers, buffer, position))
            yield BatchChunk(headers=headers, buffer_position=position, table=headers.unopened(), buffer=buffer)
            position = int(headers.end_position[-1])
            continue
        length = int.from_bytes(buffer[_LENGTH], "big", signed=True)
        if length < layout.MIN_MESSAGE_LENGTH:
            raise _too_small(source, length)
        if position > end - _OVERHEAD - length:
            return
        if count:
            wanted = _OVERHEAD + length  # larger than one read
            continue
        facts = _facts(source, position)
        if check_crc:
            facts = facts._replace(crc_valid=_is_valid(source, facts))
        yield OddBatch(facts)
        position += _OVERHEAD + length


def batch_at(source: Source, position: int, end: int) -> BatchFacts | None:
    """The first batch that Kafka finds in ``source[position:end]``, without checking its CRC; None if it finds none.

    Raises KafkaStops where Kafka dies.
    """
    if position >= end - _LEAST_BYTES:
        return None
    length = int.from_bytes(source.read_at(position, _OVERHEAD)[_LENGTH], "big", signed=True)
    if length < layout.MIN_MESSAGE_LENGTH:
        raise _too_small(source, length)
    if position > end - _OVERHEAD - length:
        return None
    return _facts(source, position)


def _too_small(source: Source, length: int) -> KafkaStops:
    return KafkaStops(
        f"org.apache.kafka.common.errors.CorruptRecordException: Found record size {length} smaller than minimum "
        f"record overhead ({layout.MIN_MESSAGE_LENGTH}) in file {source.path}.",
        code="log-framing-broken",
    )


def _is_valid(source: Source, facts: BatchFacts) -> bool:
    if facts.magic >= 2 and facts.size_bytes < layout.RECORD_BATCH.size_bytes:
        return False
    return has_right_crc(source, facts.position, facts.size_bytes, facts.magic)


def _facts(source: Source, position: int) -> BatchFacts:
    """The facts of a header. It may extend past its batch; Kafka dies when it extends past the end of the file."""
    header = source.read_at(position, layout.RECORD_BATCH.size_bytes)
    magic = magic_of(header)
    if len(header) < header_bytes(magic):
        raise KafkaStops(
            f"org.apache.kafka.common.KafkaException: Failed to load record batch at position {position} from "
            f"{source.path}",
            code="log-framing-broken",
        )
    return decode_facts(header, position, False)
