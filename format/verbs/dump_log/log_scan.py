"""dump-log of a log as a scan: the parts are pieces of Kafka's lines, findings, and the gaps of each range.

Lines depend on nothing but their chunk. Gaps between offsets cross chunks: each range collects its own, and the fold
joins them. The defects of an emulated release cross chunks, too, so emulation is no scan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from format.io.source import FileSource
from format.limits import MIB, Limits
from format.scan.protocol import Cost, Depth, LogParts, LogUnit, Needs, OpenedRange
from format.verbs.dump_log.log_lines import LogLines, Piece
from format.verbs.dump_log.offset_gaps import OffsetGaps
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions

#: The bytes of a log that are read at once. A worker may have the lines of two chunks ready before its turn to print;
#: larger chunks would make it wait.
CHUNK_BYTES = 2 * MIB
_BATCH_COST = Cost(batch_s=0.6e-6, byte_s=0.15e-9, compressed_byte_s=0.15e-9)
_RECORD_COST = Cost(batch_s=0.9e-6, byte_s=2e-9, compressed_byte_s=8e-9)


class DumpLogScan(msgspec.Struct, frozen=True):
    """dump-log as a scan; ``make`` creates the LogLines of an open file."""

    options: DumpLogOptions
    limits: Limits
    make: Callable[[FileSource], LogLines]

    @property
    def needs(self) -> Needs:
        """With --max-bytes the log must be read in order, because the end depends on what came before."""
        cost = _RECORD_COST if self.options.reads_records else _BATCH_COST
        return Needs(
            Depth.RECORDS if self.options.reads_records else Depth.CRC,
            limits=self.limits,
            chunk_bytes=CHUNK_BYTES,
            cost=cost if self.options.max_bytes == INT32_MAX else None,
        )

    def parts(self, opened: OpenedRange) -> Iterator[Piece | OffsetGaps]:
        """The pieces of a range, then its gaps."""
        log = self.make(opened.source)
        yield from log.lines(opened.batches)
        yield log.gaps

    def fold(self, log: LogUnit, parts: LogParts[Piece | OffsetGaps]) -> Iterator[Piece | OffsetGaps]:
        """The pieces, then the gaps of the whole log."""
        gaps = OffsetGaps(None)
        for part in parts:
            if isinstance(part, OffsetGaps):
                gaps.follow(part)
            else:
                yield part
        yield gaps
