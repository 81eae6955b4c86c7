"""ls --by --estimate: the allocated bytes that recompression would free, measured on a sample of each topic's logs.

For every grouping the same is measured: the size of the batches of each topic and codec under the new codec. The ratio
of its topic then applies to each log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from format import layout
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.scan.drivers import scan_logs, take_results, with_last_finding
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES, Piece, Sums, measure, sampled, warm_up
from format.verbs.recompress.new_batches import Target


class EstimateTerms(msgspec.Struct):
    """The target of recompression, and how many log bytes of each topic are measured (None: all).

    ``largest_topic_bytes`` is set by ``add_savings``.
    """

    target: Target
    sample_bytes: int | None = DEFAULT_SAMPLE_BYTES
    largest_topic_bytes: int = 0


class Savings(Protocol):
    """A row of a listing to which savings are added."""

    estimated_bytes: int | None
    saved_bytes: int | None


class LogShare(msgspec.Struct, frozen=True):
    """The bytes of one log that count in one row: those of one codec, or of all codecs (None)."""

    row: Savings
    path: Path
    location: Location
    codec: int | None
    size_bytes: int
    allocated_bytes: int


def add_savings(
    shares: Sequence[LogShare],
    terms: EstimateTerms,
    *,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Iterator[Finding]:
    """Measure a sample of the logs, and add to each row what recompression would save.

    KRaft's metadata log is left out, since it is never compressed. Yields findings about logs that cannot be read.
    """
    topics: dict[str, list[LogShare]] = {}
    for share in shares:
        if share.location.topic is not None and share.location.topic != layout.CLUSTER_METADATA_TOPIC:
            topics.setdefault(share.location.topic, []).append(share)
    whole = [_pieces(topics[topic]) for topic in sorted(topics)]
    terms.largest_topic_bytes = max((sum(each.end for each in pieces) for pieces in whole), default=0)
    measured = [sampled(pieces, terms.sample_bytes) for pieces in whole]
    logs = [LogUnit(each.path, each.location, end=each.end) for pieces in measured for each in pieces]
    items = scan_logs(SavingsScan(terms.target, limits), logs, advance=advance)
    for topic, pieces in zip(sorted(topics), measured, strict=True):
        ratios = _Ratios()
        yield from take_results(items, len(pieces), ratios.add)
        for share in topics[topic]:
            ratio = ratios.of(share.codec)
            row = share.row
            row.estimated_bytes = (row.estimated_bytes or 0) + round(share.size_bytes * ratio)
            row.saved_bytes = (row.saved_bytes or 0) + round(share.allocated_bytes * (1 - ratio))


def _pieces(shares: Sequence[LogShare]) -> list[Piece]:
    """The logs of some shares, each once."""
    sizes: dict[Path, Piece] = {}
    for share in shares:
        if share.path not in sizes:
            try:
                sizes[share.path] = Piece(share.location, share.path, share.path.lstat().st_size)
            except OSError:
                continue  # a live broker deleted it
    return list(sizes.values())


class _Ratios(msgspec.Struct):
    """The ratios of the size of a topic's batches under the new codec to their present size."""

    sums: dict[int, Sums] = msgspec.field(default_factory=dict)

    def add(self, others: dict[int, Sums]) -> None:
        """Add measurements by codec."""
        for codec, sums in others.items():
            known = self.sums.get(codec)
            if known is None:
                self.sums[codec] = sums
            else:
                known.add(sums)

    def of(self, codec: int | None) -> float:
        """The ratio of batches with this codec, or of all where none of them is in the sample; 1 for no batches."""
        found = [self.sums[codec]] if codec in self.sums else list(self.sums.values())
        sampled_bytes = sum(each.sampled_bytes for each in found)
        return sum(each.measured[0].size_bytes for each in found) / sampled_bytes if sampled_bytes else 1.0


class SavingsScan(msgspec.Struct, frozen=True):
    """The scan of the savings: the parts are the measurements of each chunk by codec."""

    target: Target
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.RECORDS, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[dict[int, Sums]]:
        """The sums of each chunk by codec."""
        targets = (self.target,)
        warm_up(targets, self.limits)
        for chunk in opened.batches:
            is_sound = chunk.table.crc_valid == 1
            by_codec: dict[int, Sums] = {}
            for codec in np.unique(chunk.table.codec[is_sound]).tolist():
                sums = by_codec[codec] = Sums.of(targets)
                measure(chunk, np.flatnonzero(is_sound & (chunk.table.codec == codec)), sums, self.limits)
            yield by_codec

    def fold(self, log: LogUnit, parts: LogParts[dict[int, Sums]]) -> Iterator[dict[int, Sums] | Finding]:
        """A finding where the log cannot be read to its end, and then the sums of what was read."""
        ratios = _Ratios()
        for part in with_last_finding(log, parts):
            if isinstance(part, Finding):
                yield part
            else:
                ratios.add(part)
        yield ratios.sums
