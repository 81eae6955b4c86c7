"""Read a log file's selected batches: chunks with their place, and the damage on the way as findings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.batches import BatchChunk, batch_chunks
from format.errors import KafkaLogError
from format.findings import Finding, Severity, finding, finding_of
from format.legacy_messages import open_wrappers
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.operations.damage import damage_finding
from format.operations.selection import EVERYTHING, Selection, start_position
from format.partition import parse_partition_dir
from format.segment import Segment
from format.source import FileSource


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A chunk of a log file, where it comes from, and which of its rows were asked for."""

    chunk: BatchChunk
    location: Location
    selected: NDArray[np.bool_]


def log_chunks(
    path: Path,
    segment: Segment | None,
    location: Location,
    *,
    selection: Selection = EVERYTHING,
    is_last_segment: bool = True,
    with_bodies: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[LogChunk | Finding]:
    """The selected chunks of one log file (or KRaft snapshot), and findings where it is damaged or unreadable.

    A file that cannot be opened or read gives a finding and ends.
    """
    try:
        with FileSource(path) as source:
            start = 0 if segment is None or selection.is_everything else start_position(segment, source, selection)
            for chunk in batch_chunks(source, start, with_bodies=with_bodies, check_crc=with_bodies, limits=limits):
                if with_bodies:
                    open_wrappers(chunk, limits=limits)
                yield from crc_findings(chunk, location)
                yield LogChunk(chunk, location, selection.batches(chunk.table))
                if chunk.damage is not None:
                    yield tail_finding(source, chunk, location, is_last_segment)
                if selection.is_past(chunk.table):
                    return
    except KafkaLogError as error:
        yield finding_of(error, location)


def crc_findings(chunk: BatchChunk, location: Location) -> Iterator[Finding]:
    """One finding per batch of the chunk whose CRC is wrong."""
    table = chunk.table
    for row in np.flatnonzero(table.crc_valid == 0).tolist():
        first, last = int(table.base_offset[row]), int(table.last_offset[row])
        yield finding(
            "batch-crc-mismatch",
            location.at(position=int(table.position[row]), length=int(table.size_bytes[row]), offset=first),
            f"the batch's CRC is not that of its bytes: offsets {first} to {last} cannot be trusted",
            actual=int(table.crc[row]),
            lost_offsets=(first, last) if first <= last else None,
        )


def tail_finding(source: FileSource, chunk: BatchChunk, location: Location, is_last_segment: bool) -> Finding:
    """The finding for a chunk's damage; a file that grew meanwhile is not damaged but still being written."""
    if chunk.damage is None:
        raise ValueError("the chunk has no damage")
    found = damage_finding(chunk.damage, location, is_last_segment=is_last_segment)
    if chunk.damage.reaches_end and is_last_segment:
        try:
            grown = source.current_size_bytes() != source.size_bytes
        except OSError:
            grown = False
        if grown:
            return finding("live-tail", found.location, "the file is being written: its end was cut off by this read")
    return found


def location_of_file(path: str | os.PathLike[str]) -> Location:
    """Topic, partition and segment base offset as a file's name and directory tell them."""
    place = Path(path)
    parent = place.parent if place.parent.name not in ("", "..") else Path(os.path.abspath(place.parent))
    parsed = parse_partition_dir(parent.name)
    match = layout.SEGMENT_FILE.match(place.name)
    location = Location(str(place))
    if parsed is not None:
        location = replace(location, topic=parsed[0], partition=parsed[1])
    if match is not None:
        location = replace(location, base_offset=int(match["base_offset"]))
    return location


def is_damage(found: Finding) -> bool:
    return found.severity >= Severity.ERROR
