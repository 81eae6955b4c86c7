"""Files of a bundle, read by ranges: whole files, and logs of which the bundle has only the batch headers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.io.bundles.schemas import RecordedDamage
from format.io.bundles.spooled import Region, Spool
from format.io.file_state import FileState

#: The offsets, and then the timestamps, of the records of some batches (int64), by the position of the batch.
Outlines = Mapping[int, Region]


class Fragment(msgspec.Struct, frozen=True):
    """Consecutive headers of a log: their positions in the log, and their bytes.

    ``positions`` and ``lengths``, of the whole batches, hold ``count`` int64; ``starts`` holds one more int64: where
    each header starts in ``content``, and the end of the last. ``inner`` holds two for each header, if there are
    compressed v0/v1 messages: the offset of the first record, and the number of records; -1 for unknown.
    """

    first_position: int
    count: int
    positions: Region
    lengths: Region
    starts: Region
    content: Region
    inner: Region | None = None


class LogContents(msgspec.Struct, frozen=True):
    """The parts of a log that a bundle contains; the keys of ``damage`` and ``outlines`` are positions in the log."""

    fragments: Sequence[Fragment] = ()
    damage: Mapping[int, RecordedDamage] = msgspec.field(default_factory=dict)
    outlines: Outlines = msgspec.field(default_factory=dict)


class WrongBatches(msgspec.Struct, frozen=True):
    """The positions of the batches of a log whose CRC is wrong: all of them, or all before position ``known_to``.

    ``bad_records`` are those of batches with a right CRC whose records cannot be read.
    """

    positions: Sequence[int] = ()
    known_to: int | None = None
    bad_records: Sequence[int] = ()


class WholeFile:
    """A file that the bundle contains whole; zeros at its end are not stored."""

    has_only_headers = False

    def __init__(self, spool: Spool, state: FileState, stored: Region) -> None:
        self.size_bytes, self.mtime_ns, self.device_inode = state.size_bytes, state.mtime_ns, state.device_inode
        self.damage: Mapping[int, RecordedDamage] = {}
        self._spool = spool
        self._stored = stored

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes read from the spool."""
        length = max(min(length, self.size_bytes - position), 0)
        stored = max(min(length, self._stored.size_bytes - position), 0)
        content = self._spool.read(self._stored.start + position, stored) if stored else b""
        return content.ljust(length, b"\0"), stored

    def outline(self, position: int) -> tuple[list[int], list[int]] | None:
        """None: the batch can be read."""
        return None

    def outlined_offset(self, timestamp: int) -> int | None:
        """None: the batches can be read."""
        return None

    def inner_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Unknown: the batches can be read."""
        return np.full((len(positions), 2), -1, np.int64)

    def stored_bytes(self, position: int) -> int:
        """The number of bytes from a position to the end: all are stored."""
        return self.size_bytes - position

    def next_header(self, position: int) -> int:
        """The end of the file: nothing before it was left out."""
        return self.size_bytes

    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]:
        """-1 (unknown) for each position: the batches can be read."""
        return np.full(len(positions), -1, np.int8)

    def has_bad_records(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """False for each position: the batches can be read."""
        return np.zeros(len(positions), np.bool_)

    def current_size_bytes(self) -> int:
        """The size; it does not change."""
        return self.size_bytes

    def close(self) -> None:
        """Do nothing: no resources are held."""


class HeadersFile:
    """A log of which the bundle has the batch headers, and whole control batches; all other bytes are read as zeros."""

    has_only_headers = True

    def __init__(self, spool: Spool, state: FileState, contents: LogContents, wrong: WrongBatches) -> None:
        self.size_bytes, self.mtime_ns, self.device_inode = state.size_bytes, state.mtime_ns, state.device_inode
        self.damage = contents.damage
        self._spool = spool
        self._fragments = contents.fragments
        self._outlines = contents.outlines
        self._wrong = wrong
        self._loaded: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None

    def read(self, length: int, position: int) -> tuple[bytes, int]:
        """Read up to ``length`` bytes from ``position``; also return the number of bytes read from the spool."""
        length = max(min(length, self.size_bytes - position), 0)
        found = np.zeros(length, np.uint8)
        first = max(bisect_right(self._fragments, position, key=lambda each: each.first_position) - 1, 0)
        read_bytes = 0
        for number in range(first, len(self._fragments)):
            if self._fragments[number].first_position >= position + length:
                break
            read_bytes += self._put(number, found, position)
        return found.tobytes(), read_bytes

    def _put(self, number: int, found: NDArray[np.uint8], position: int) -> int:
        """Copy the headers of a fragment that are in the range to their places in ``found``; return the bytes read."""
        positions, starts = self._load(number)
        low = max(int(np.searchsorted(positions, position, "right")) - 1, 0)
        high = int(np.searchsorted(positions, position + len(found), "left"))
        if low >= high:
            return 0
        start, end = int(starts[low]), int(starts[high])
        content = np.frombuffer(self._spool.read(self._fragments[number].content.start + start, end - start), np.uint8)
        lengths = starts[low + 1 : high + 1] - starts[low:high]
        places = np.repeat(positions[low:high] - position - (starts[low:high] - start), lengths) + np.arange(
            end - start
        )
        inside = (places >= 0) & (places < len(found))
        found[places[inside]] = content[inside]
        return end - start

    def _load(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self._loaded is None or self._loaded[0] != number:
            fragment = self._fragments[number]
            positions, starts = (
                np.frombuffer(self._spool.read(each.start, each.size_bytes), np.int64)
                for each in (fragment.positions, fragment.starts)
            )
            self._loaded = number, positions, starts
        return self._loaded[1:]

    def outline(self, position: int) -> tuple[list[int], list[int]] | None:
        """The offsets and timestamps of the records of the batch at a position, None if the bundle has none."""
        region = self._outlines.get(position)
        if region is None:
            return None
        numbers: list[int] = np.frombuffer(self._spool.read(region.start, region.size_bytes), np.int64).tolist()
        return numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]

    def outlined_offset(self, timestamp: int) -> int | None:
        """The offset of the first record with a timestamp, None if no outline has one."""
        for position in sorted(self._outlines):
            offsets, timestamps = self.outline(position) or ([], [])
            if timestamp in timestamps:
                return offsets[timestamps.index(timestamp)]
        return None

    def inner_offsets(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """First offset and number of records of the compressed v0/v1 messages at rising positions; -1 for unknown."""
        found = np.full((len(positions), 2), -1, np.int64)
        if not len(positions):
            return found
        first = max(bisect_right(self._fragments, int(positions[0]), key=lambda each: each.first_position) - 1, 0)
        for number in range(first, len(self._fragments)):
            fragment = self._fragments[number]
            if fragment.first_position > positions[-1]:
                break
            if fragment.inner is None:
                continue
            known, _ = self._load(number)
            rows = np.searchsorted(known, positions)
            rows[rows == len(known)] = 0
            is_here = known[rows] == positions
            if is_here.any():
                inner = np.frombuffer(self._spool.read(fragment.inner.start, fragment.inner.size_bytes), np.int64)
                found[is_here] = inner.reshape(-1, 2)[rows[is_here]]
        return found

    def stored_bytes(self, position: int) -> int:
        """The number of stored bytes of the batch that starts at a position; 0 if none does."""
        number = bisect_right(self._fragments, position, key=lambda each: each.first_position) - 1
        if number < 0:
            return 0
        positions, starts = self._load(number)
        row = int(np.searchsorted(positions, position))
        if row == len(positions) or positions[row] != position:
            return 0
        return int(starts[row + 1] - starts[row])

    def next_header(self, position: int) -> int:
        """The position of the first header after a position; the end of the log if there is none."""
        first = max(bisect_right(self._fragments, position, key=lambda each: each.first_position) - 1, 0)
        for number in range(first, len(self._fragments)):
            positions, _ = self._load(number)
            at = int(np.searchsorted(positions, position, "right"))
            if at < len(positions):
                return int(positions[at])
        return self.size_bytes

    def crc_valid(self, positions: NDArray[np.int64]) -> NDArray[np.int8]:
        """Whether the CRCs of the batches at some positions were valid when the bundle was made.

        int8 for each position: 1 valid, 0 wrong, -1 unknown.
        """
        valid = 1 - np.isin(positions, self._wrong.positions).astype(np.int8)
        if self._wrong.known_to is not None:
            valid[positions >= self._wrong.known_to] = -1
        return valid

    def has_bad_records(self, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the records of batches with a right CRC could not be read when the bundle was made."""
        return np.isin(positions, self._wrong.bad_records)

    def current_size_bytes(self) -> int:
        """The size; it does not change."""
        return self.size_bytes

    def close(self) -> None:
        """Release the fragment that was loaded."""
        self._loaded = None
