"""What the batch headers of one log file add up to: offsets, times, formats and codecs."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.layout import CODEC_BITS_NAMES
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.legacy_messages import wrapper_table
from format.log.walker import batch_chunks
from format.scan.read_log import tail_finding

#: So many places of damage in one log are told one by one; the rest are counted.
MAX_DAMAGE_FINDINGS = 20
_MAX_INT64 = 2**63 - 1


@dataclass(slots=True)
class LogTotals:
    """Sums over batches in log order; offsets and times of batches whose offsets cannot be are left out.

    ``first_timestamp`` is the first batch's base timestamp (None where a delete horizon took its place or the format
    has none), ``codec_counts`` the batches of each codec number 0-7. ``is_whole`` is False once something was not read.
    """

    batch_count: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None
    magics: set[int] = field(default_factory=set)
    codec_counts: list[int] = field(default_factory=lambda: [0] * len(CODEC_BITS_NAMES))
    is_whole: bool = True
    _has_first: bool = False

    def add(self, table: BatchTable, is_sound: NDArray[np.bool_]) -> None:
        """Add the next batches; ``is_sound`` says whose offsets can be."""
        self.batch_count += len(table)
        self.magics.update(np.unique(table.magic).tolist())
        for codec, count in enumerate(np.bincount(table.codec, minlength=len(CODEC_BITS_NAMES)).tolist()):
            self.codec_counts[codec] += count
        sound = table if is_sound.all() else table.rows(is_sound)
        if not len(sound):
            return
        if not self._has_first:
            self._has_first = True
            self.first_offset = int(sound.base_offset[0])
            if not sound.has_delete_horizon[0]:
                self.first_timestamp = _timestamp(int(sound.base_timestamp[0]))
        self.last_offset = int(sound.last_offset[-1])
        latest = _timestamp(int(sound.max_timestamp.max()))
        if latest is not None and (self.max_timestamp is None or latest > self.max_timestamp):
            self.max_timestamp = latest

    def merge(self, later: LogTotals) -> None:
        """Add the totals of the segment that follows."""
        self.batch_count += later.batch_count
        self.magics |= later.magics
        self.codec_counts = [mine + theirs for mine, theirs in zip(self.codec_counts, later.codec_counts, strict=True)]
        self.is_whole = self.is_whole and later.is_whole
        if not later._has_first:
            return
        if not self._has_first:
            self._has_first = True
            self.first_offset, self.first_timestamp = later.first_offset, later.first_timestamp
        self.last_offset = later.last_offset
        if later.max_timestamp is not None and (self.max_timestamp is None or later.max_timestamp > self.max_timestamp):
            self.max_timestamp = later.max_timestamp

    @property
    def magics_text(self) -> str | None:
        """The formats, such as ``0,1,2``; None where there is no batch."""
        return ",".join(map(str, sorted(self.magics))) or None

    @property
    def codecs_text(self) -> str | None:
        """The codecs by number with their batches, such as ``none:12,zstd:3``; None where there is no batch."""
        pairs = zip(CODEC_BITS_NAMES, self.codec_counts, strict=True)
        return ",".join(f"{name}:{count}" for name, count in pairs if count) or None


def _timestamp(value: int) -> int | None:
    return None if value == layout.NO_TIMESTAMP else value


def read_log_totals(
    path: Path,
    location: Location,
    *,
    is_last_segment: bool = True,
    next_base_offset: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Generator[Finding, None, LogTotals]:
    """Hop over the batch headers of a log file: yields what is wrong, returns the totals of what could be read.

    Only headers are read, and the first message where it is a compressed one of v0 or v1, whose header does not tell
    its first offset.
    """
    totals = LogTotals()
    damage_count = 0
    try:
        with FileSource(path) as source:
            is_first = True
            for chunk in batch_chunks(source, with_bodies=False, limits=limits):
                opens_unread = False
                if is_first and len(chunk.table):
                    is_first = False
                    opens_unread = not (yield from _open_first_wrapper(source, chunk, location, limits))
                is_sound = _offsets_can_be(chunk.table, location.base_offset)
                if not is_sound.all():
                    yield _offsets_finding(chunk.table, is_sound, location)
                totals.add(chunk.table, is_sound)
                if opens_unread:
                    totals.first_offset = totals.first_timestamp = None
                if chunk.damage is not None:
                    damage_count += 1
                    if damage_count <= MAX_DAMAGE_FINDINGS or chunk.damage.reaches_end:
                        yield tail_finding(source, chunk, location, is_last_segment)
    except KafkaLogError as error:
        totals.is_whole = False
        yield finding_of(error, location)
    if damage_count > MAX_DAMAGE_FINDINGS:
        message = f"{damage_count} places where a batch should start hold none; only the first ones are told here"
        yield finding("log-framing-broken", location, message, next_step="Run verify, which tells them all.")
    if next_base_offset is not None and totals.last_offset is not None and totals.last_offset >= next_base_offset:
        yield finding(
            "segment-overlap",
            location.at(offset=totals.last_offset),
            f"the last offset is {totals.last_offset}, but the next segment starts at {next_base_offset}",
        )
    return totals


def _offsets_can_be(table: BatchTable, base_offset: int | None) -> NDArray[np.bool_]:
    """Which batches lie at or after the segment's base offset and within what its indexes can address."""
    least = base_offset or 0
    most = _MAX_INT64 - 1 if base_offset is None else min(_MAX_INT64 - 1, least + layout.MAX_RELATIVE_OFFSET)
    # The delta has 32 bits: compared against what is left of the range, so that no sum leaves 64 bits.
    is_sound: NDArray[np.bool_] = (
        (table.base_offset >= least)
        & (table.base_offset <= most)
        & (table.last_offset_delta >= 0)
        & (table.last_offset_delta <= most - np.clip(table.base_offset, 0, most))
    )
    return is_sound


def _offsets_finding(table: BatchTable, is_sound: NDArray[np.bool_], location: Location) -> Finding:
    rows = np.flatnonzero(~is_sound)
    first = int(rows[0])
    base_offset, delta = int(table.base_offset[first]), int(table.last_offset_delta[first])
    more = f", and {len(rows) - 1} more near it" if len(rows) > 1 else ""
    return finding(
        "offset-out-of-segment",
        location.at(position=int(table.position[first]), length=int(table.size_bytes[first]), offset=base_offset),
        f"a batch claims offsets {base_offset} to {base_offset + delta}, which this segment cannot hold{more}",
    )


def _open_first_wrapper(
    source: FileSource, chunk: BatchChunk, location: Location, limits: Limits
) -> Generator[Finding, None, bool]:
    """Put the first inner message's offset and timestamp into the first row, where that is a compressed v0/v1 message.

    Returns whether the first row now tells the truth.
    """
    table = chunk.table
    if not table.is_wrapper[0]:
        return True
    start, end = int(table.position[0]), int(table.end_position[0])
    if end - start > limits.max_decompressed_bytes:
        return False
    whole = next(batch_chunks(source, start, end, check_crc=False, limits=limits))
    inner = wrapper_table(whole, [0], limits, location)
    for problem in inner.problems:
        yield finding_of(problem.error, location)
    if not len(inner):
        return False
    first_offset, last_offset = int(inner.offset[0]), int(inner.offset[-1])
    table.base_offset[0] = first_offset
    table.last_offset_delta[0] = last_offset - first_offset
    table.base_timestamp[0] = int(inner.timestamp[0])
    return True
