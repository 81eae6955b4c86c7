"""recompress: the same records with another codec, in new segments with new indexes, in a new directory.

Every batch keeps its offsets, timestamps, producer and leader epoch; ``plan`` and ``new_batches`` have the
details. Once a segment is written it is read back and compared with its source, record by record.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format.errors import Refused
from format.findings import Finding, Severity, finding, finding_of
from format.io.source import FileSource
from format.layout import CODEC_NAMES
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import batch_location
from format.log.walker import BODY_CHUNK_BYTES
from format.node.partition import Partition
from format.offset_ranges import merged
from format.rewriting.publication import Publication
from format.rewriting.rewriter import (
    CHUNK_BYTES,
    HARMLESS_DAMAGE,
    Failure,
    FirstLook,
    NewBatches,
    Rewriter,
    RewritingResult,
    SegmentResult,
    WriteTerms,
    WrittenSegment,
)
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources, is_cluster_metadata
from format.rows.finding_rows import finding_as_json
from format.scan.protocol import Cost
from format.scan.read_log import IntactElsewhere, crc_findings, tail_finding
from format.verbs.recompress.new_batches import PlanTerms, portions
from format.verbs.verify.written_output import verify_output

_WHAT_TO_RUN = (
    "run 'kafkalog salvage SRC --output DIR' first and recompress its output, or leave out what is damaged with "
    "--skip-damaged"
)
#: Seconds for each batch, and for each byte of records under each codec, at its usual level and at a high one.
_BATCH_S = 3e-6
_BYTE_S = {"none": 0.4e-9, "gzip": 13e-9, "snappy": 1.5e-9, "lz4": 1.2e-9, "zstd": 4e-9}
_MOST_USUAL_LEVEL = 9
_THOROUGH_BYTE_S = 25e-9
#: Bytes of records for each byte of a compressed log, roughly.
_RECORD_BYTES_PER_BYTE = 3


class Recompression(WriteTerms, frozen=True, kw_only=True):
    """The terms of one run; ``segment_bytes`` None keeps the source's segments up to 2 GiB each."""

    plan: PlanTerms
    segment_bytes: int | None = None
    skip_damaged: bool = False


def recompress(
    sources: WriteSources, publication: Publication, terms: Recompression, result: RewritingResult | None = None
) -> Iterator[Finding | WrittenSegment]:
    """Write the recompressed sources into the open publication and finish it; yields segments and findings.

    Raises Refused for damage (after the findings) unless it is to be skipped, and for v0/v1 messages under zstd;
    FileChanged; OutputError, also where what was read back differs from the source.
    """
    return rewrite(sources, publication, Recompressor(terms), verify_output, result or RewritingResult())


class Recompressor(Rewriter):
    """Makes the batches that ``plan`` decides on; a batch that cannot be decompressed is copied, or the run refuses."""

    reads_around_errors = False

    def __init__(self, terms: Recompression) -> None:
        super().__init__(terms)
        self._plan = terms.plan
        self._skips_damaged = terms.skip_damaged
        self.segment_bytes = terms.segment_bytes
        self.shares_making = terms.plan.target.codec != 0  # else the writing process has most of the work anyway
        # Batches of different chunks are never merged: the chunk size limits what merging saves.
        self.chunk_bytes = BODY_CHUNK_BYTES if terms.plan.merge_bytes else CHUNK_BYTES
        target = terms.plan.target
        byte_s = _BYTE_S[CODEC_NAMES[target.codec]]
        if (target.level or 0) > _MOST_USUAL_LEVEL:
            byte_s = max(byte_s, _THOROUGH_BYTE_S)
        self.cost = Cost(_BATCH_S, byte_s, _RECORD_BYTES_PER_BYTE * byte_s)

    def portions(
        self, chunk: BatchChunk, is_kept: NDArray[np.bool_], location: Location
    ) -> Iterator[NewBatches | Failure]:
        return portions(chunk, is_kept, self._plan, self.terms.limits, location)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        result.lost_bytes = look.bytes_not_kept if self._skips_damaged else 0

    def report_chunk(
        self, look: FirstLook, chunk: BatchChunk, is_kept: NDArray[np.bool_], result: SegmentResult
    ) -> None:
        log, table = replace(look.log, segment=None), chunk.table
        found = list(crc_findings(chunk, log))
        if chunk.damage is not None and isinstance(look.source, FileSource):
            found.append(tail_finding(look.source, chunk, log))
        kept = look.scan.kept
        elsewhere = IntactElsewhere(
            lambda: merged(zip(kept.base_offset.tolist(), kept.last_offset.tolist(), strict=True))
        )
        for each in found:
            for one in elsewhere.counted(each):
                _add(one, result)
        for row in np.flatnonzero((table.crc_valid == 1) & ~is_kept).tolist():
            message = f"the batch's offsets, from {table.base_offset[row]} on, do not fit its place"
            _add(finding("offset-not-increasing", batch_location(log.location, table, row), message), result)

    def report_failure(self, failure: Failure, chunk: BatchChunk, location: Location, result: SegmentResult) -> None:
        found = finding_of(failure.error, batch_location(location, chunk.table, failure.row))
        _add(replace(found, message=f"copied as it is, unreadable: {found.message}"), result)

    def check(self, result: SegmentResult) -> None:
        damage = [found for found, _ in result.findings if found.code not in HARMLESS_DAMAGE]
        if not result.is_read:
            raise Refused(f"a segment cannot be read whole: {_WHAT_TO_RUN}", damage[0].location)
        if damage and not self._skips_damaged:
            raise Refused(f"the source is damaged: {_WHAT_TO_RUN}", damage[0].location)

    def is_copied_whole(self, partition: Partition) -> bool:
        """KRaft's metadata log is read before any broker setting, and is never compressed."""
        return is_cluster_metadata(partition)

    def begin_partition(self, partition: Partition) -> Iterator[Finding]:
        yield from super().begin_partition(partition)
        swaps = [each for each in partition.leftovers if each.leftover == "swap"]
        if swaps and not self._skips_damaged:
            raise Refused(
                "a .swap file of an interrupted cleaning is here, which a broker would put in place of segments: start "
                "a broker on a copy first, or replace the segments here with --skip-damaged",
                partition.location(),
            )

    def keeps_snapshots(self, result: RewritingResult, lost_bytes: int) -> bool:
        return not result.losses

    def is_whole(self, result: RewritingResult) -> bool:
        return not result.losses

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        return {"skipped": [finding_as_json(each) for each in result.losses]}


def _add(found: Finding, result: SegmentResult) -> None:
    result.add(found, found.severity >= Severity.ERROR or found.lost_offsets is not None)
