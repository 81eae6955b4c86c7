"""The transaction index (.txnindex): the aborted transactions whose markers are in the segment.

Kafka's rules (storage TransactionIndex, AbortedTxn): entries are appended in the order of the markers, so last offsets
rise. The last stable offset is at most the offset after the marker. The file is not preallocated, and exists only if
there is an entry. The version field has two bytes, of which brokers before 4.4 read only the first.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike, NDArray

from format.errors import UnknownVersion
from format.files.index_file import (
    check_base_offset,
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


class TransactionIndex(msgspec.Struct, frozen=True):
    """A whole transaction index: five int64 columns of ``entry_count`` values, and the problems of the file.

    ``versions`` are 0 in all known files; an entry of another version is decoded as version 0. ``trailing_bytes``
    counts the bytes of an incomplete entry at the end.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    path: str
    base_offset: int
    versions: NDArray[np.int64]
    producer_ids: NDArray[np.int64]
    first_offsets: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    last_stable_offsets: NDArray[np.int64]
    file_size_bytes: int
    trailing_bytes: int
    problems: tuple[Problem, ...]

    @property
    def entry_count(self) -> int:
        return len(self.versions)


def read(path_or_source: PathOrSource, base_offset: int, limits: Limits = DEFAULT_LIMITS) -> TransactionIndex:
    """Read all entries of the file; damage and unknown versions are reported in ``problems``.

    Raises UnreadableFile, LimitExceeded, and InvalidIndex for a base offset over 63 bits.
    """
    with opened(path_or_source) as source:
        check_base_offset(source, base_offset)
        check_size(source, limits)
        entry_count, trailing_bytes = divmod(source.size_bytes, ABORTED_TXN.size_bytes)
        content = source.read_at(0, entry_count * ABORTED_TXN.size_bytes)
        table = np.frombuffer(content, dtype=ABORTED_TXN.numpy_dtype())
        index = TransactionIndex(
            path=source.path,
            base_offset=base_offset,
            versions=table["version"].astype(np.int64),
            producer_ids=table["producer_id"].astype(np.int64),
            first_offsets=table["first_offset"].astype(np.int64),
            last_offsets=table["last_offset"].astype(np.int64),
            last_stable_offsets=table["last_stable_offset"].astype(np.int64),
            file_size_bytes=source.size_bytes,
            trailing_bytes=trailing_bytes,
            problems=(),
        )
        return replace(index, problems=(*_problems(index), *trailing_problems(source, ABORTED_TXN)))


def _problems(index: TransactionIndex) -> list[Problem]:
    is_known = index.versions == CURRENT_VERSION
    columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
    is_negative = np.any([column < 0 for column in columns], axis=0)
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


def write(entries: TransactionIndex | tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]) -> bytes:
    """Encode an index: one that was read, or columns of producer ids, first, last and last stable offsets.

    Raises InvalidIndex for a version that does not fit in an int16.
    """
    if isinstance(entries, TransactionIndex):
        found = (entries.producer_ids, entries.first_offsets, entries.last_offsets, entries.last_stable_offsets)
        return encode_columns(ABORTED_TXN, (entries.versions, *found))
    return encode_columns(ABORTED_TXN, (np.full(len(np.asarray(entries[0])), CURRENT_VERSION), *entries))
