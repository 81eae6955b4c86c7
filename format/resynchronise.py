"""Find the next intact batch after damage: by a plausible header first, then by its CRC.

A header alone is not enough: record values may hold anything, batch images too. So a candidate counts only when
its CRC is right, and the search starts only where the chain of headers is broken.
"""

from __future__ import annotations

from dataclasses import dataclass

from format import kernel, layout
from format.checksums import crc32_of, crc32c_of
from format.limits import DEFAULT_LIMITS, Limits
from format.source import Source

_WINDOW_BYTES = 1024 * 1024
_HEADER_BYTES = layout.RECORD_BATCH.size_bytes
#: How many times the searched bytes may be read again for CRCs before the search gives up on large candidates:
#: a hostile file can hold a forged header at every few bytes, each claiming the rest of the file.
_CRC_BUDGET_FACTOR = 16
_CRC_BUDGET_FLOOR_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundBatch:
    """An intact batch: where its header starts in the file, and its base offset."""

    position: int
    base_offset: int


def find_next_batch(
    source: Source, start: int, end: int, *, min_base_offset: int = 0, limits: Limits = DEFAULT_LIMITS
) -> FoundBatch | None:
    """The first batch at or after ``start`` with a base offset of at least ``min_base_offset`` and a right CRC.

    None when there is none before ``end``. Reads in windows; raises only what the source raises.
    """
    budget = max(_CRC_BUDGET_FLOOR_BYTES, _CRC_BUDGET_FACTOR * (end - start))
    largest = limits.max_decompressed_bytes + _HEADER_BYTES
    window_position = start
    while window_position < end:
        window = memoryview(source.read_at(window_position, min(_WINDOW_BYTES + _HEADER_BYTES, end - window_position)))
        if not window:
            return None
        at = 0
        while True:
            at = kernel.find_candidate(
                window, at, len(window), min_base_offset, min(largest, end - window_position - at)
            )
            if at < 0:
                break
            size_bytes = 12 + int.from_bytes(window[at + 8 : at + 12], "big")
            if size_bytes <= budget:
                position = window_position + at
                if at + size_bytes <= len(window):
                    batch = window[at : at + size_bytes]
                else:
                    batch = memoryview(source.read_at(position, size_bytes))
                budget -= size_bytes
                if has_right_crc(batch):
                    return FoundBatch(position, int.from_bytes(batch[:8], "big", signed=True))
            at += 1
        window_position += _WINDOW_BYTES
    return None


def has_right_crc(batch: memoryview) -> bool:
    """Whether one whole batch or message, from its base offset to its end, has the CRC that it stores."""
    if batch[layout.RECORD_BATCH.offset_of("magic")] == 2:
        at, start = layout.RECORD_BATCH.offset_of("crc"), layout.RECORD_BATCH.offset_of("attributes")
        return crc32c_of(batch[start:]) == int.from_bytes(batch[at : at + 4], "big")
    at, start = layout.MESSAGE_V0.offset_of("crc"), layout.MESSAGE_V0.offset_of("magic")
    return crc32_of(batch[start:]) == int.from_bytes(batch[at : at + 4], "big")
