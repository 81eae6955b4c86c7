"""A producer snapshot (.snapshot): the state of all producers just before the offset in the file's name (KIP-98).

A broker whose newest snapshot cannot be read deletes it and rebuilds the state from the log
(storage ProducerStateManager.loadFromSnapshot). The CRC covers the entry count and the entries, not the version.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.codecs.checksums import crc32c_of
from format.errors import InvalidSnapshot, UnknownVersion
from format.files.index_file import encode_columns, problems_of_entries
from format.files.side_file import PathOrSource, Problem, check_size, opened
from format.layout import PRODUCER_SNAPSHOT_ENTRY, PRODUCER_SNAPSHOT_HEADER
from format.limits import DEFAULT_LIMITS, Limits
from format.wording import counted_plainly

CURRENT_VERSION = 1
_CRC_FROM = PRODUCER_SNAPSHOT_HEADER.offset_of("entry_count")


class ProducerSnapshot(msgspec.Struct, frozen=True):
    """A whole snapshot: int64 columns of ``entry_count`` values, and the problems of the file.

    ``timestamps`` are in ms; -1 is none in ``last_sequences``, ``last_offsets``, ``coordinator_epochs`` and
    ``current_txn_first_offsets``. ``stored_entry_count`` is the count in the header, ``entry_count`` the number of
    decoded entries. ``version``, ``stored_crc`` and ``stored_entry_count`` are None if the file is too short for a
    header.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    path: str
    version: int | None
    stored_crc: int | None
    crc_valid: bool
    stored_entry_count: int | None
    producer_ids: NDArray[np.int64]
    producer_epochs: NDArray[np.int64]
    last_sequences: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    offset_deltas: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    coordinator_epochs: NDArray[np.int64]
    current_txn_first_offsets: NDArray[np.int64]
    file_size_bytes: int
    trailing_bytes: int
    problems: tuple[Problem, ...]

    @property
    def entry_count(self) -> int:
        return len(self.producer_ids)

    @property
    def columns(self) -> tuple[NDArray[np.int64], ...]:
        """The columns in the order of the layout's fields."""
        return (
            self.producer_ids,
            self.producer_epochs,
            self.last_sequences,
            self.last_offsets,
            self.offset_deltas,
            self.timestamps,
            self.coordinator_epochs,
            self.current_txn_first_offsets,
        )


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
        add(0, len(content), f"the file has {len(content)} bytes, fewer than the {header_bytes} of a header")
        return _snapshot(path, content, _Header(), 0, problems)
    version, stored_crc, stored_count = PRODUCER_SNAPSHOT_HEADER.struct.unpack_from(content)
    if version != CURRENT_VERSION:
        field_bytes = PRODUCER_SNAPSHOT_HEADER.offset_of("crc")
        add(0, field_bytes, f"version {version}, only {CURRENT_VERSION} is known", UnknownVersion.code)
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
    header = _Header(version, stored_crc, crc == stored_crc, stored_count)
    return _snapshot(path, content, header, entry_count, problems)


class _Header(msgspec.Struct, frozen=True):
    """The fields before the entries, and whether the CRC is right; None for all if the file is too short."""

    version: int | None = None
    stored_crc: int | None = None
    crc_valid: bool = False
    stored_entry_count: int | None = None


def _snapshot(
    path: str, content: bytes, header: _Header, entry_count: int, problems: list[Problem]
) -> ProducerSnapshot:
    entries_end = PRODUCER_SNAPSHOT_HEADER.size_bytes + entry_count * PRODUCER_SNAPSHOT_ENTRY.size_bytes
    table = np.frombuffer(
        content[PRODUCER_SNAPSHOT_HEADER.size_bytes : entries_end], dtype=PRODUCER_SNAPSHOT_ENTRY.numpy_dtype()
    )
    columns = {name: table[name].astype(np.int64) for name in PRODUCER_SNAPSHOT_ENTRY.names}
    problems += _problems_of_entries(columns)
    return ProducerSnapshot(
        path,
        header.version,
        header.stored_crc,
        header.crc_valid,
        header.stored_entry_count,
        columns["producer_id"],
        columns["producer_epoch"],
        columns["last_sequence"],
        columns["last_offset"],
        columns["offset_delta"],
        columns["timestamp"],
        columns["coordinator_epoch"],
        columns["current_txn_first_offset"],
        len(content),
        max(0, len(content) - entries_end),
        tuple(problems),
    )


def _problems_of_entries(columns: dict[str, NDArray[np.int64]]) -> list[Problem]:
    producer_ids = columns["producer_id"]
    is_impossible = (producer_ids < 0) | (columns["offset_delta"] < 0)
    for name in ("producer_epoch", "last_sequence", "last_offset", "coordinator_epoch", "current_txn_first_offset"):
        is_impossible |= columns[name] < -1
    is_repeated = np.ones(len(producer_ids), dtype=np.bool_)
    is_repeated[np.unique(producer_ids, return_index=True)[1]] = False
    found = problems_of_entries(
        PRODUCER_SNAPSHOT_ENTRY,
        (
            (is_impossible, "a negative value in a field that cannot be negative"),
            (is_repeated, "the producer id of an earlier entry"),
        ),
        InvalidSnapshot.code,
    )
    header_bytes = PRODUCER_SNAPSHOT_HEADER.size_bytes
    return [
        Problem(header_bytes + problem.position, problem.length, problem.message, problem.code) for problem in found
    ]


def write(entries: ProducerSnapshot | tuple[NDArray[np.int64], ...]) -> bytes:
    """Encode a sound snapshot: one that was read, or columns in the order of the layout's fields.

    Raises InvalidSnapshot for a value that does not fit in its field.
    """
    columns = entries.columns if isinstance(entries, ProducerSnapshot) else entries
    count, encoded = len(columns[0]), encode_columns(PRODUCER_SNAPSHOT_ENTRY, columns, InvalidSnapshot)
    body = PRODUCER_SNAPSHOT_HEADER.struct.pack(CURRENT_VERSION, 0, count) + encoded
    return PRODUCER_SNAPSHOT_HEADER.struct.pack(CURRENT_VERSION, crc32c_of(body[_CRC_FROM:]), count) + encoded
