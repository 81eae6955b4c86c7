"""What recompress does with each batch, and why; and what a broker would do with it when a producer sends it.

The broker's part is that of storage LogValidator for a topic whose compression.type is the wanted codec.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BatchTable
from format.legacy_messages import is_wrapper
from format.operations.recompress_batches import Target


class Reason(Enum):
    """Why a batch is treated as it is; the value is the stable word."""

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


COPIED, RECOMPRESSED, REBUILT, REFUSED = "copied", "recompressed", "rebuilt", "refused"
_ZSTD = layout.CODEC_NAMES.index("zstd")

#: Reason -> what is done, and what a broker does (or did) with such a batch in a produce request.
DECISIONS: dict[Reason, tuple[str, str]] = {
    Reason.CONTROL: (COPIED, "appends it as the coordinator sends it; control batches are never compressed"),
    Reason.EMPTY: (COPIED, "never gets one: the log cleaner leaves it to keep a producer's last sequence"),
    Reason.SAME_CODEC: (
        COPIED,
        "keeps the bytes, sets offset, leader epoch and append time in the header; compressed: one batch per request",
    ),
    Reason.CODEC_DIFFERS: (RECOMPRESSED, "decompresses it, checks every record and compresses it with its own codec"),
    Reason.FORCED: (RECOMPRESSED, "keeps the compressed bytes: it does not compare levels"),
    Reason.MERGED: (REBUILT, "never merges batches"),
    Reason.UNPACKED: (REBUILT, "before 4.0: decompresses it and writes each message by itself; 4.x takes v2 only"),
    Reason.PACKED: (REBUILT, "before 4.0: compresses all messages of the request as one; 4.x takes v2 only"),
    Reason.CONVERTED: (REBUILT, "before 4.0: converts every record to the format of the topic; 4.x takes v2 only"),
    Reason.NEEDS_V2: (REFUSED, "refuses zstd for a topic with a message format before v2 (KIP-110)"),
}


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """What was asked for: the target, whether to redo what has its codec, and up to what size to merge (0: never)."""

    target: Target
    force: bool = False
    merge_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to do: for these neighbouring rows of a chunk, this, for this reason."""

    reason: Reason
    rows: tuple[int, ...]


def plan(table: BatchTable, is_kept: NDArray[np.bool_], terms: PlanTerms) -> list[Work]:
    """The work for the kept batches of a chunk, in order.

    Only v2 batches without a producer, and v0/v1 messages, are ever merged: a batch of a producer stands for a run of
    its sequences, which brokers keep per batch to tell duplicates.
    """
    reasons = _reasons(table, terms)
    works: list[Work] = []
    group: list[int] = []
    group_bytes = 0
    mergeable = _mergeable(table, terms)
    sizes = table.size_bytes.tolist()
    for row in np.flatnonzero(is_kept).tolist():
        joins = (
            bool(group)
            and mergeable[row]
            and group[-1] == row - 1
            and group_bytes + sizes[row] <= terms.merge_bytes
            and _alike(table, group[0], row)
        )
        if group and not joins:
            works.append(_work_of(group, reasons, terms, table))
            group, group_bytes = [], 0
        if mergeable[row]:
            group.append(row)
            group_bytes += sizes[row]
        else:
            works.append(Work(reasons[row], (row,)))
    if group:
        works.append(_work_of(group, reasons, terms, table))
    return works


def _reasons(table: BatchTable, terms: PlanTerms) -> list[Reason]:
    target = terms.target
    is_v2 = table.magic == 2
    wrappers = is_wrapper(table)
    same = Reason.FORCED if terms.force and target.codec else Reason.SAME_CODEC
    reasons = np.full(len(table), Reason.CODEC_DIFFERS, object)
    reasons[table.codec == target.codec] = same
    reasons[~is_v2 & ~wrappers] = Reason.PACKED if target.codec else Reason.SAME_CODEC
    if not target.codec:
        reasons[wrappers] = Reason.UNPACKED
    if target.magic == 2:
        reasons[~is_v2] = Reason.CONVERTED
    elif target.codec == _ZSTD:
        reasons[~is_v2] = Reason.NEEDS_V2
    reasons[is_v2 & (table.record_count == 0)] = Reason.EMPTY
    reasons[table.is_control] = Reason.CONTROL
    found: list[Reason] = reasons.tolist()
    return found


def _mergeable(table: BatchTable, terms: PlanTerms) -> list[bool]:
    if not terms.merge_bytes:
        return [False] * len(table)
    is_free = (table.magic == 2) & (table.producer_id < 0) & ~table.is_transactional & ~table.is_control
    # Some brokers write a sequence without a producer; it would not survive.
    is_free &= (table.base_sequence < 0) & (table.producer_epoch < 0)
    is_free &= ~table.has_delete_horizon & (table.record_count > 0)
    if terms.target.magic == 2:
        is_free |= table.magic < 2
    elif terms.target.codec not in (0, _ZSTD):
        is_free |= (table.magic < 2) & ~is_wrapper(table)
    found: list[bool] = is_free.tolist()
    return found


def _alike(table: BatchTable, first: int, row: int) -> bool:
    """Whether a batch may go into one with another: nothing that a batch says once may differ."""
    if table.is_append_time[first] != table.is_append_time[row]:
        return False
    if table.is_append_time[first] and table.max_timestamp[first] != table.max_timestamp[row]:
        return False
    in_reach = int(table.last_offset[row]) - int(table.base_offset[first]) < 2**31
    same_format = table.magic[first] == table.magic[row] and table.leader_epoch[first] == table.leader_epoch[row]
    return bool(in_reach and same_format)


def _work_of(group: list[int], reasons: list[Reason], terms: PlanTerms, table: BatchTable) -> Work:
    first = reasons[group[0]]
    if len(group) == 1:
        return Work(first, (group[0],))
    if int(table.magic[group[0]]) < 2:
        return Work(first, tuple(group))  # converted or packed together
    return Work(Reason.MERGED, tuple(group))
