"""A small scan for the tests of the drivers: the offsets and the CRCs of each chunk, and what the fold saw."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from format.limits import DEFAULT_LIMITS
from format.node.partition import location_of_file
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.selection import EVERYTHING, Selection
from tests.building import batches, write_segment

CHUNK_BYTES = 700
COST = Cost(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """A part: the base offsets of a chunk's batches, the process that made it, and whether damage follows."""

    offsets: NDArray[np.int64]
    pid: int
    has_damage: bool
    numbers_of_range: int  # how many chunks of the range came before: state of one range


@dataclass(frozen=True, slots=True)
class Toy:
    """``on_part`` runs in the process that makes a part, before it does; ``most`` batches end the fold."""

    selection: Selection = EVERYTHING
    most: int | None = None
    dies_at: int | None = None
    on_folded: Callable[[int], None] = field(default=lambda count: None)
    depth: Depth = Depth.CRC

    @property
    def needs(self) -> Needs:
        return Needs(self.depth, self.selection, DEFAULT_LIMITS, CHUNK_BYTES, COST)

    def parts(self, opened: OpenedRange) -> Iterator[Seen]:
        for number, chunk in enumerate(opened.chunks):
            if self.dies_at is not None and self.dies_at in chunk.table.base_offset:
                os.kill(os.getpid(), signal.SIGKILL)
            yield Seen(chunk.table.base_offset.copy(), os.getpid(), chunk.damage is not None, number)

    def fold(self, log: LogUnit, parts: LogParts[Seen]) -> Iterator[tuple[str, int]]:
        count = 0
        for part in parts:
            for offset in part.offsets.tolist():
                yield log.path.parent.name, offset
                count += 1
                self.on_folded(count)
                if count == self.most:
                    return


def log_of(directory: Path, count: int = 40, *, damage_at: int | None = None) -> LogUnit:
    """A log of so many batches of three records, one byte of it flipped."""
    content = bytearray(b"".join(batches(count)))
    if damage_at is not None:
        content[damage_at] ^= 0x55
    path = write_segment(directory, 0, [bytes(content)])
    return LogUnit(path, location_of_file(path))
