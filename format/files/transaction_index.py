"""The transaction index (.txnindex): the aborted transactions whose markers are in the segment.

Kafka's rules (storage TransactionIndex, AbortedTxn): entries are appended in the order of the markers, so last offsets
rise. The last stable offset is at most the offset after the marker. The file is not preallocated, and exists only if
there is an entry. The version field has two bytes, of which brokers before 4.4 read only the first.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from format.errors import UnknownVersion
from format.files.index_file import (
    EntryColumn,
    EntryFile,
    check_base_offset,
    columns_of,
    encode_columns,
    entry_range,
    not_above_previous,
    problems_of_entries,
    problems_of_runs,
    trailing_problems,
)
from format.files.side_file import PathOrSource, Problem, check_size, opened
from format.layout import ABORTED_TXN
from format.limits import DEFAULT_LIMITS, Limits

CURRENT_VERSION = 0


class TransactionIndex(EntryFile, frozen=True):
    """A whole transaction index; ``versions`` are 0 in all known files, and others are decoded as version 0."""

    base_offset: int
    versions = EntryColumn(0)
    producer_ids = EntryColumn(1)
    first_offsets = EntryColumn(2)
    last_offsets = EntryColumn(3)
    last_stable_offsets = EntryColumn(4)


def read(path_or_source: PathOrSource, base_offset: int, limits: Limits = DEFAULT_LIMITS) -> TransactionIndex:
    """Read all entries of the file; damage and unknown versions are reported in ``problems``.

    Raises UnreadableFile, LimitExceeded, and InvalidIndex for a base offset over 63 bits.
    """
    with opened(path_or_source) as source:
        check_base_offset(source, base_offset)
        check_size(source, limits)
        entry_count, trailing_bytes = divmod(source.size_bytes, ABORTED_TXN.size_bytes)
        columns = columns_of(source.read_at(0, entry_count * ABORTED_TXN.size_bytes), ABORTED_TXN)
        index = TransactionIndex(source.path, columns, trailing_bytes, (), base_offset)
        return replace(index, problems=(*_problems(index), *trailing_problems(source, ABORTED_TXN)))


def _problems(index: TransactionIndex) -> list[Problem]:
    is_known = index.versions == CURRENT_VERSION
    is_negative = np.any([column < 0 for column in index.columns[1:]], axis=0)
    is_sound = is_known & ~is_negative
    found = [
        *problems_of_runs(
            ~is_known,
            ABORTED_TXN.size_bytes,
            lambda first, last: (
                f"{entry_range(first, last)}: version {int(index.versions[first])}, only {CURRENT_VERSION} is known"
            ),
            UnknownVersion.code,
        ),
        *problems_of_entries(
            ABORTED_TXN,
            (
                (is_known & is_negative, "a negative producer id or offset"),
                (is_sound & (index.first_offsets > index.last_offsets), "the first offset is above the last offset"),
                (
                    is_sound & (index.last_offsets < index.base_offset),
                    f"the last offset is below the base offset {index.base_offset}",
                ),
                (
                    not_above_previous(index.last_offsets, is_sound, strictly=True),
                    "the last offset is not above the last offset of the previous entry",
                ),
            ),
        ),
    ]
    return sorted(found, key=lambda problem: problem.position)


def write(columns: tuple[ArrayLike, ...]) -> bytes:
    """Encode an index from columns of producer ids, first, last and last stable offsets."""
    return encode_columns(ABORTED_TXN, (np.full(len(np.asarray(columns[0])), CURRENT_VERSION), *columns))
