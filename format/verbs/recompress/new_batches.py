"""What recompress makes of each batch, and why: under another codec, packed and unpacked, converted and merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.codecs import compress, compressor, decompress
from format.errors import CorruptDataError, KafkaLogError, LimitExceeded, Refused, UnsupportedError
from format.limits import MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable, batch_location
from format.log.encode_batches import (
    HEADER_BYTES,
    BatchHeader,
    batch_spans,
    encode_batch,
    encode_message,
    encode_records,
    encode_wrapper,
    seal_batches,
)
from format.log.read_records import message_table, record_tables, wrapper_table
from format.log.record_table import RecordTable
from format.rewriting.rewriter import Decision, Failure, NewBatches, batch_bytes, copied, new_batches

_OFFSET_BYTES = 8
#: New bytes made at once, not counting the rest of the last batch: a batch may decompress to a thousand times its size.
_MOST_NEW_BYTES = 3 * MIB
_ZSTD = layout.CODEC_NAMES.index("zstd")


class TargetFormat(msgspec.Struct, frozen=True):
    """The target: a codec number, its level, and the format to convert messages to (None: unchanged)."""

    codec: int
    level: int | None = None
    magic: int | None = None


def recompressed(
    chunk: BatchChunk, rows: Sequence[int], target: TargetFormat, limits: Limits
) -> tuple[NewBatches, KafkaLogError | None]:
    """v2 batches with the same records under another codec: only length, codec and CRC of the headers change.

    Stops after _MOST_NEW_BYTES, and at a batch that cannot be decompressed, whose error is returned with the batches
    before it.
    """
    buffer, which = chunk.bodies, np.array(rows)
    starts, ends = batch_spans(chunk, which)
    spans = zip(starts.tolist(), ends.tolist(), chunk.table.codec[which].tolist(), strict=True)
    new_codec, level = target.codec, target.level
    pack = compressor(new_codec, level) if new_codec else None
    parts: list[bytes | memoryview] = []  # header and payload of each batch
    error: KafkaLogError | None = None
    new_bytes = 0
    for start, end, codec in spans:
        payload_start = start + HEADER_BYTES
        payload: bytes | memoryview = buffer[payload_start:end]
        try:
            if codec:
                payload = decompress(codec, payload, magic=2, limits=limits)
        except (CorruptDataError, UnsupportedError, LimitExceeded) as failure:
            error = failure
            break
        if pack:
            payload = pack(payload, level, 2)
        parts += buffer[start:payload_start], payload
        new_bytes += len(payload)
        if new_bytes > _MOST_NEW_BYTES:
            break
    which = which[: len(parts) // 2]
    sizes_bytes = HEADER_BYTES + np.array(list(map(len, parts[1::2])), np.int64)
    content = bytearray().join(parts)
    seal_batches(content, sizes_bytes, new_codec)
    return new_batches(content, chunk.table.base_offset[which], Decision.RECOMPRESSED), error


def rewrapped(chunk: BatchChunk, row: int, target: TargetFormat, limits: Limits) -> NewBatches:
    """A compressed v0/v1 message with the same inner set under another codec.

    Raises CorruptDataError, LimitExceeded.
    """
    table = chunk.table
    magic, attributes = int(table.magic[row]), int(table.attributes[row])
    outer = message_table(chunk, [row], Location(""))
    for records in (outer, wrapper_table(chunk, row, limits, Location(""))):
        _raise_problems(records)
    inner = decompress(attributes & layout.CODEC_MASK, outer.value(0) or b"", magic=magic, limits=limits)
    content = encode_message(
        magic,
        int.from_bytes(batch_bytes(chunk, row)[:_OFFSET_BYTES], "big", signed=True),
        outer.key(0),
        compress(target.codec, inner, level=target.level, magic=magic),
        timestamp=int(outer.timestamp[0]),
        attributes=attributes & ~layout.CODEC_MASK | target.codec,
    )
    return new_batches(content, [int(table.base_offset[row])], Decision.RECOMPRESSED)


def unpacked(chunk: BatchChunk, row: int, limits: Limits) -> NewBatches:
    """The inner messages of a compressed v0/v1 message, each by itself with its absolute offset and its timestamp."""
    magic = int(chunk.table.magic[row])
    time_type = int(chunk.table.attributes[row]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0
    inner = wrapper_table(chunk, row, limits, Location(""))
    _raise_problems(inner)
    offsets = inner.offset.tolist()
    messages = [
        encode_message(
            magic,
            offset,
            inner.key(number),
            inner.value(number),
            timestamp=int(inner.timestamp[number]),
            attributes=int(inner.attributes[number]) & ~layout.TIMESTAMP_TYPE_BIT | time_type,
        )
        for number, offset in enumerate(offsets)
    ]
    return new_batches(b"".join(messages), offsets, Decision.REBUILT)


def packed(chunk: BatchChunk, rows: Sequence[int], target: TargetFormat) -> NewBatches:
    """One compressed message around plain v0 or v1 messages of one format and timestamp type, in order."""
    table = chunk.table
    magic = int(table.magic[rows[0]])
    first_offset, last_offset = int(table.base_offset[rows[0]]), int(table.base_offset[rows[-1]])
    inner = []
    for row in rows:
        message = batch_bytes(chunk, row)
        if magic == 1:  # offsets inside are relative (KIP-31); they lie outside the CRC
            relative = int(table.base_offset[row]) - first_offset
            inner.append(relative.to_bytes(_OFFSET_BYTES, "big") + bytes(message[_OFFSET_BYTES:]))
        else:
            inner.append(bytes(message))
    content = encode_wrapper(
        magic,
        inner,
        codec=target.codec,
        last_offset=last_offset,
        timestamp=int(table.max_timestamp[list(rows)].max()),
        attributes=int(table.attributes[rows[0]]) & layout.TIMESTAMP_TYPE_BIT if magic == 1 else 0,
        level=target.level,
    )
    return new_batches(content, [first_offset], Decision.REBUILT)


def rebuilt(chunk: BatchChunk, rows: Sequence[int], target: TargetFormat, limits: Limits) -> NewBatches:
    """One v2 batch from the records of some batches that may be merged: v0/v1 messages, or v2 without a producer.

    Records of v0 get no timestamp (-1), as a broker gives them; those of v0 and v1 no leader epoch.
    """
    table = chunk.table
    first, last = rows[0], rows[-1]
    first_offset, last_offset = int(table.base_offset[first]), table.last_offset_of(last)
    append_time = bool(table.is_append_time[first])
    parts: list[memoryview] = []
    count = 0
    base_timestamp: int | None = None
    largest = layout.NO_TIMESTAMP
    which = np.zeros(len(table), bool)
    which[list(rows)] = True
    for records in record_tables(chunk, which=which, limits=limits):
        _raise_problems(records)
        if not len(records):
            continue
        if base_timestamp is None:
            base_timestamp = int(records.timestamp[0])
        largest = max(largest, int(records.timestamp.max()))
        parts.append(encode_records(records, first_offset, base_timestamp))
        count += len(records)
    if is_header_trusted := int(table.magic[first]) == 2:
        largest = int(table.max_timestamp[list(rows)].max())  # as the headers have it, right or not
    header = BatchHeader(
        first_offset,
        last_offset - first_offset,
        count,
        layout.NO_TIMESTAMP if base_timestamp is None else base_timestamp,
        largest,
        int(table.leader_epoch[first]) if is_header_trusted else layout.NO_LEADER_EPOCH,
        layout.TIMESTAMP_TYPE_BIT if append_time else 0,
    )
    content = encode_batch(header, b"".join(parts), codec=target.codec, level=target.level)
    return new_batches(content, [first_offset], Decision.REBUILT)


def _raise_problems(records: RecordTable) -> None:
    if records.problems:
        raise records.problems[0].error


class Reason(Enum):
    """The reason for what is done with a batch; the value is the word in rows, which never changes."""

    CONTROL = "control-batch"
    EMPTY = "no-records"
    SAME_CODEC = "same-codec"
    CODEC_DIFFERS = "codec-differs"
    FORCED = "forced"
    MERGED = "merged"
    UNPACKED = "legacy-unpacked"
    PACKED = "legacy-packed"
    CONVERTED = "format-conversion"
    NEEDS_V2 = "zstd-needs-v2"


#: For each reason the decision, and what a broker does (or did) with such a batch in a produce request.
DECISIONS: dict[Reason, tuple[Decision, str]] = {
    Reason.CONTROL: (Decision.COPIED, "appends it as the coordinator sends it; control batches are never compressed"),
    Reason.EMPTY: (
        Decision.COPIED,
        "never gets such a batch: the log cleaner leaves it to keep the last sequence of a producer",
    ),
    Reason.SAME_CODEC: (
        Decision.COPIED,
        "keeps the bytes, and sets offset, leader epoch and append time; a request has one compressed batch at most",
    ),
    Reason.CODEC_DIFFERS: (
        Decision.RECOMPRESSED,
        "decompresses it, checks every record and compresses it with its own codec",
    ),
    Reason.FORCED: (Decision.RECOMPRESSED, "keeps the compressed bytes: it does not compare levels"),
    Reason.MERGED: (Decision.REBUILT, "never merges batches"),
    Reason.UNPACKED: (
        Decision.REBUILT,
        "before 4.0: decompresses it and writes each message by itself; 4.x takes v2 only",
    ),
    Reason.PACKED: (Decision.REBUILT, "before 4.0: compresses all messages of the request as one; 4.x takes v2 only"),
    Reason.CONVERTED: (
        Decision.REBUILT,
        "before 4.0: converts every record to the format of the topic; 4.x takes v2 only",
    ),
    Reason.NEEDS_V2: (Decision.REFUSED, "refuses zstd for a topic with a message format before v2 (KIP-110)"),
}


class PlanTerms(msgspec.Struct, frozen=True):
    """The options: the target, whether to recompress batches of the same codec, and the size to merge to (0: never)."""

    target: TargetFormat
    force: bool = False
    merge_bytes: int = 0


class ChunkWork(NamedTuple):
    """What is done with some rows of a chunk, in order, for one reason.

    For a reason in ``TOGETHER`` one batch is made of all rows, which are neighbours; otherwise each becomes one batch.
    """

    reason: Reason
    rows: tuple[int, ...]


#: Reasons for which several batches become one.
TOGETHER = frozenset({Reason.MERGED, Reason.PACKED, Reason.CONVERTED})
_REASONS = tuple(Reason)
_NUMBER_OF = {reason: number for number, reason in enumerate(_REASONS)}


def plan(table: BatchTable, is_kept: NDArray[np.bool_], terms: PlanTerms) -> list[ChunkWork]:
    """The work for the kept batches of a chunk, in order.

    Only v2 batches without a producer, and v0/v1 messages, are ever merged: a batch of a producer is a run of its
    sequences, which brokers keep by batch to recognize duplicates.
    """
    kept = np.flatnonzero(is_kept)
    if not len(kept):
        return []
    reasons, mergeable = _reasons(table, terms), _mergeable(table, terms)
    # Runs of rows that are treated alike; rows that may be merged form one run, whatever their reasons.
    kinds = np.where(mergeable, -1, reasons)[kept]
    edges = [0, *(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1).tolist(), len(kept)]
    works: list[ChunkWork] = []
    for first, end in pairwise(edges):
        rows = kept[first:end].tolist()
        if kinds[first] < 0:
            works += _merged(rows, table, reasons, terms)
            continue
        reason = _REASONS[kinds[first]]
        works += [ChunkWork(reason, (row,)) for row in rows] if reason in TOGETHER else [ChunkWork(reason, tuple(rows))]
    return works


def _merged(rows: list[int], table: BatchTable, reasons: NDArray[np.int64], terms: PlanTerms) -> Iterator[ChunkWork]:
    """The work for rows that may be merged: runs of alike neighbours, up to the size."""
    sizes = table.size_bytes.tolist()
    alike = _alike_neighbours(table).tolist()
    base_offsets, last_offsets = table.base_offset.tolist(), table.last_offset.tolist()
    group: list[int] = []
    group_bytes = 0
    for row in rows:
        joins = (
            bool(group)
            and group[-1] == row - 1
            and alike[row]
            and group_bytes + sizes[row] <= terms.merge_bytes
            and last_offsets[row] - base_offsets[group[0]] < 2**31
        )
        if group and not joins:
            yield _work_of(group, reasons, table)
            group, group_bytes = [], 0
        group.append(row)
        group_bytes += sizes[row]
    if group:
        yield _work_of(group, reasons, table)


def _reasons(table: BatchTable, terms: PlanTerms) -> NDArray[np.int64]:
    """The number of each row's reason in _REASONS."""
    target = terms.target
    is_v2 = table.magic == 2
    wrappers = table.is_wrapper
    same = Reason.FORCED if terms.force and target.codec else Reason.SAME_CODEC
    reasons = np.full(len(table), _NUMBER_OF[Reason.CODEC_DIFFERS], np.int64)
    reasons[table.codec == target.codec] = _NUMBER_OF[same]
    reasons[~is_v2 & ~wrappers] = _NUMBER_OF[Reason.PACKED if target.codec else Reason.SAME_CODEC]
    if not target.codec:
        reasons[wrappers] = _NUMBER_OF[Reason.UNPACKED]
    if target.magic == 2:
        reasons[~is_v2] = _NUMBER_OF[Reason.CONVERTED]
    elif target.codec == _ZSTD:
        reasons[~is_v2] = _NUMBER_OF[Reason.NEEDS_V2]
    reasons[is_v2 & (table.record_count == 0)] = _NUMBER_OF[Reason.EMPTY]
    reasons[table.is_control] = _NUMBER_OF[Reason.CONTROL]
    return reasons


def _mergeable(table: BatchTable, terms: PlanTerms) -> NDArray[np.bool_]:
    if not terms.merge_bytes:
        return np.zeros(len(table), bool)
    is_free: NDArray[np.bool_] = (
        (table.magic == 2) & (table.producer_id < 0) & ~table.is_transactional & ~table.is_control
    )
    # Some brokers write a sequence without a producer, which merging would drop.
    is_free &= (table.base_sequence < 0) & (table.producer_epoch < 0)
    is_free &= ~table.has_delete_horizon & (table.record_count > 0)
    if terms.target.magic == 2:
        is_free |= table.magic < 2
    elif terms.target.codec not in (0, _ZSTD):
        is_free |= (table.magic < 2) & ~table.is_wrapper
    return is_free


def _alike_neighbours(table: BatchTable) -> NDArray[np.bool_]:
    """Whether each batch may be merged with the one before it: all fields that a batch has once are equal."""
    is_append_time, timestamp = table.is_append_time, table.max_timestamp
    alike = np.zeros(len(table), bool)
    alike[1:] = (table.magic[1:] == table.magic[:-1]) & (table.leader_epoch[1:] == table.leader_epoch[:-1])
    alike[1:] &= is_append_time[1:] == is_append_time[:-1]
    alike[1:] &= ~is_append_time[1:] | (timestamp[1:] == timestamp[:-1])
    return alike


def _work_of(group: list[int], reasons: NDArray[np.int64], table: BatchTable) -> ChunkWork:
    first = _REASONS[reasons[group[0]]]
    if len(group) == 1 or int(table.magic[group[0]]) < 2:
        return ChunkWork(first, tuple(group))  # v0 and v1: converted or packed together
    return ChunkWork(Reason.MERGED, tuple(group))


def portions(
    chunk: BatchChunk, is_kept: NDArray[np.bool_], terms: PlanTerms, limits: Limits, location: Location
) -> Iterator[NewBatches | Failure]:
    """What the kept batches become, in order; a batch that cannot be decompressed is copied, with its error.

    Raises Refused for v0/v1 messages under zstd.
    """
    for reason, rows in plan(chunk.table, is_kept, terms):
        while rows:
            batches, count, error = _new_batches(chunk, reason, rows, terms, limits, location)
            if batches is not None:
                yield batches
            if error is not None:
                end = len(rows) if reason in TOGETHER else count + 1
                yield Failure(rows[count], error)
                yield copied(chunk, rows[count:end])
                count = end
            rows = rows[count:]


def _new_batches(
    chunk: BatchChunk, reason: Reason, rows: tuple[int, ...], terms: PlanTerms, limits: Limits, location: Location
) -> tuple[NewBatches | None, int, KafkaLogError | None]:
    """The new batches of the first rows, the number of these rows, and the error of the row after them."""
    first = rows[0]
    decision = DECISIONS[reason][0]
    if decision is Decision.COPIED:
        return copied(chunk, rows), len(rows), None
    magic = int(chunk.table.magic[first])
    if reason is Reason.NEEDS_V2:
        raise Refused(
            f"messages of format v{magic} cannot be compressed with zstd: it exists from v2 on, and no consumer of "
            "that time could read it (KIP-110); convert them with --magic 2, or choose another codec",
            batch_location(location, chunk.table, first),
        )
    if decision is Decision.RECOMPRESSED and magic == 2:
        is_v2 = chunk.table.magic[list(rows)] == 2
        run = rows if is_v2.all() else rows[: int(is_v2.argmin())]
        batches, error = recompressed(chunk, run, terms.target, limits)
        return (batches if len(batches) else None), len(batches), error
    try:
        if reason is Reason.UNPACKED:
            return unpacked(chunk, first, limits), 1, None
        if reason is Reason.PACKED:
            return packed(chunk, rows, terms.target), len(rows), None
        if reason in TOGETHER:
            return rebuilt(chunk, rows, terms.target, limits), len(rows), None
        return rewrapped(chunk, first, terms.target, limits), 1, None
    except (CorruptDataError, UnsupportedError, LimitExceeded) as error:
        return None, 0, error
