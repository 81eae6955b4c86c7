"""A producer snapshot (.snapshot): the state of all producers just before the offset in the file's name (KIP-98).

A broker whose newest snapshot cannot be read deletes it and rebuilds the state from the log
(storage ProducerStateManager.loadFromSnapshot). The CRC covers the entry count and the entries, not the version.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.codecs.checksums import crc32c_of
from format.errors import InvalidSnapshot, UnknownVersion
from format.files.index_file import EntryColumn, EntryFile, columns_of, encode_columns, problems_of_entries
from format.files.side_file import PathOrSource, Problem, check_size, opened
from format.layout import PRODUCER_SNAPSHOT_ENTRY, PRODUCER_SNAPSHOT_HEADER
from format.limits import DEFAULT_LIMITS, Limits
from format.wording import counted_plainly

CURRENT_VERSION = 1
_CRC_FROM = PRODUCER_SNAPSHOT_HEADER.offset_of("entry_count")


class ProducerSnapshot(EntryFile, frozen=True):
    """A whole snapshot; ``timestamps`` are in ms.

    -1 is none in ``last_sequences``, ``last_offsets``, ``coordinator_epochs`` and ``current_txn_first_offsets``.
    ``stored_entry_count`` is the count in the header, ``entry_count`` the number of decoded entries. ``version``
    and ``stored_entry_count`` are None if the file is too short for a header.
    """

    version: int | None = None
    crc_valid: bool = False
    stored_entry_count: int | None = None
    producer_ids = EntryColumn(0)
    producer_epochs = EntryColumn(1)
    last_sequences = EntryColumn(2)
    last_offsets = EntryColumn(3)
    offset_deltas = EntryColumn(4)
    timestamps = EntryColumn(5)
    coordinator_epochs = EntryColumn(6)
    current_txn_first_offsets = EntryColumn(7)


def read(path_or_source: PathOrSource, limits: Limits = DEFAULT_LIMITS) -> ProducerSnapshot:
    """Read the entries that the file contains; damage, a wrong CRC and an unknown version are ``problems``.

    Raises UnreadableFile and LimitExceeded.
    """
    with opened(path_or_source) as source:
        check_size(source, limits)
        return _decode(source.read_at(0, source.size_bytes), source.path)


def _decode(content: bytes, path: str) -> ProducerSnapshot:
    header_bytes, entry_bytes = PRODUCER_SNAPSHOT_HEADER.size_bytes, PRODUCER_SNAPSHOT_ENTRY.size_bytes
    problems: list[Problem] = []

    def add(position: int, length: int, message: str, code: str = InvalidSnapshot.code) -> None:
        problems.append(Problem(position, length, message, code))

    if len(content) < header_bytes:
        add(
            0,
            len(content),
            f"the file has {counted_plainly(len(content), 'byte')}, fewer than the {header_bytes} of a header",
        )
        return ProducerSnapshot(path, columns_of(b"", PRODUCER_SNAPSHOT_ENTRY), len(content), tuple(problems))
    version, stored_crc, stored_count = PRODUCER_SNAPSHOT_HEADER.struct.unpack_from(content)
    if version != CURRENT_VERSION:
        field_bytes = PRODUCER_SNAPSHOT_HEADER.offset_of("crc")
        code = UnknownVersion.code if version > CURRENT_VERSION else InvalidSnapshot.code  # there was none before it
        add(0, field_bytes, f"version {version}, only {CURRENT_VERSION} is known", code)
    crc = crc32c_of(content[_CRC_FROM:])
    if crc != stored_crc:
        add(
            PRODUCER_SNAPSHOT_HEADER.offset_of("crc"),
            _CRC_FROM - PRODUCER_SNAPSHOT_HEADER.offset_of("crc"),
            f"the content has the CRC-32C 0x{crc:08x}, but 0x{stored_crc:08x} is stored",
        )

    room = len(content) - header_bytes
    is_count_possible = 0 <= stored_count <= room // entry_bytes
    entry_count = stored_count if is_count_possible else room // entry_bytes
    if version != CURRENT_VERSION and room != stored_count * entry_bytes:
        entry_count = 0  # entries of that version may have another layout
    elif not is_count_possible:
        add(
            _CRC_FROM,
            header_bytes - _CRC_FROM,
            f"the entry count is {stored_count}, but the {room} bytes after it have room for {room // entry_bytes}",
        )
    left = room - entry_count * entry_bytes
    if left and version == CURRENT_VERSION:
        add(len(content) - left, left, f"{counted_plainly(left, 'byte')} after the last entry")
    columns = columns_of(content[header_bytes : len(content) - left], PRODUCER_SNAPSHOT_ENTRY)
    problems += _problems_of_entries(columns)
    return ProducerSnapshot(path, columns, left, tuple(problems), version, crc == stored_crc, stored_count)


def _problems_of_entries(columns: tuple[NDArray[np.int64], ...]) -> Iterator[Problem]:
    is_impossible = np.zeros(len(columns[0]), bool)
    for name, column in zip(PRODUCER_SNAPSHOT_ENTRY.names, columns, strict=True):
        if name != "timestamp":
            is_impossible |= column < (0 if name in ("producer_id", "offset_delta") else -1)
    is_repeated = np.ones(len(columns[0]), bool)
    is_repeated[np.unique(columns[0], return_index=True)[1]] = False
    checks = (
        (is_impossible, "a negative value in a field that cannot be negative"),
        (is_repeated, "the producer id of an earlier entry"),
    )
    for each in problems_of_entries(PRODUCER_SNAPSHOT_ENTRY, checks, InvalidSnapshot.code):
        yield replace(each, position=PRODUCER_SNAPSHOT_HEADER.size_bytes + each.position)


def write(columns: tuple[NDArray[np.int64], ...]) -> bytes:
    """Encode a sound snapshot from columns in the order of the layout's fields.

    Raises InvalidSnapshot for a value that does not fit in its field.
    """
    count, encoded = len(columns[0]), encode_columns(PRODUCER_SNAPSHOT_ENTRY, columns, InvalidSnapshot)
    body = PRODUCER_SNAPSHOT_HEADER.struct.pack(CURRENT_VERSION, 0, count) + encoded
    return PRODUCER_SNAPSHOT_HEADER.struct.pack(CURRENT_VERSION, crc32c_of(body[_CRC_FROM:]), count) + encoded
