"""Decides what recompress does with each batch, and why, and describes what a broker does with such a batch.

The broker's part is what storage LogValidator does for a topic whose compression.type is the target codec.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from format import layout
from format.log.batch_table import BatchTable
from format.rewriting.written_batches import Decision
from format.verbs.recompress.new_batches import Target


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


_ZSTD = layout.CODEC_NAMES.index("zstd")

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

    target: Target
    force: bool = False
    merge_bytes: int = 0


class Work(NamedTuple):
    """What is done with some rows of a chunk, in order, for one reason.

    For a reason in ``TOGETHER`` one batch is made of all rows, which are neighbours; otherwise each becomes one batch.
    """

    reason: Reason
    rows: tuple[int, ...]


#: Reasons for which several batches become one.
TOGETHER = frozenset({Reason.MERGED, Reason.PACKED, Reason.CONVERTED})
_REASONS = tuple(Reason)
_NUMBER_OF = {reason: number for number, reason in enumerate(_REASONS)}


def plan(table: BatchTable, is_kept: NDArray[np.bool_], terms: PlanTerms) -> list[Work]:
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
    works: list[Work] = []
    for first, end in pairwise(edges):
        rows = kept[first:end].tolist()
        if kinds[first] < 0:
            works += _merged(rows, table, reasons, terms)
            continue
        reason = _REASONS[kinds[first]]
        works += [Work(reason, (row,)) for row in rows] if reason in TOGETHER else [Work(reason, tuple(rows))]
    return works


def _merged(rows: list[int], table: BatchTable, reasons: NDArray[np.int64], terms: PlanTerms) -> Iterator[Work]:
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


def _work_of(group: list[int], reasons: NDArray[np.int64], table: BatchTable) -> Work:
    first = _REASONS[reasons[group[0]]]
    if len(group) == 1 or int(table.magic[group[0]]) < 2:
        return Work(first, tuple(group))  # v0 and v1: converted or packed together
    return Work(Reason.MERGED, tuple(group))
