"""rebuild-index: makes .index, .timeindex and .txnindex from the log, in a new directory, with or without the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from format.findings import Certainty, Finding, Judgement, Severity, finding
from format.rewriting.index_builder import IndexedOffsets
from format.rewriting.publication import Publication
from format.rewriting.read_back import Rewritten, compare_bytes, joined_ranges
from format.rewriting.rewriter import (
    PASSES,
    FirstLook,
    Rewriter,
    RewritingResult,
    SegmentResult,
    WriteTerms,
    WrittenSegment,
)
from format.rewriting.run import rewrite
from format.rewriting.sources import WriteSources
from format.rows.finding_rows import finding_as_json
from format.scan.progress import Advance
from format.verbs.verify.written_output import verify_output
from format.wording import are, counted_plainly, offsets_are


class IndexRebuilding(WriteTerms, frozen=True, kw_only=True):
    """The terms of one run; ``with_log`` copies all other files too, so that a broker can start on the output."""

    with_log: bool = False


def rebuild_index(
    sources: WriteSources,
    publication: Publication,
    terms: IndexRebuilding | None = None,
    result: RewritingResult | None = None,
) -> Iterator[Finding | WrittenSegment]:
    """Write the indexes into the open publication and finish it; yields each segment, and findings on the way.

    Raises OutputError and FileChanged; a source that cannot be read is a finding.
    """
    return rewrite(
        sources, publication, IndexRebuilder(terms or IndexRebuilding()), verify_output, result or RewritingResult()
    )


class IndexRebuilder(Rewriter):
    """Writes indexes of the intact batches; with the log, it copies that byte for byte, damage included."""

    copies_damage = True
    reads_around_errors = False
    wants_every_offset = True

    def __init__(self, terms: IndexRebuilding) -> None:
        super().__init__(terms)
        self.writes_log = terms.with_log
        self.passes = PASSES - 1 if terms.with_log else 1

    def read_back(self, written: Rewritten, advance: Advance) -> None:
        """Compare a copied log with its source, byte for byte. Nothing to do for indexes: publishing hashes them."""
        if self.writes_log:
            became = written.became
            compare_bytes(written.source, became[0].start if became else 0, joined_ranges(became), advance)

    def report_look(self, look: FirstLook, result: SegmentResult) -> None:
        for bad in look.scan.bad:
            is_live = bad.reaches_end and look.is_live
            place = look.log.location.at(bad.position, bad.length)
            message = (
                "the end is being written"
                if is_live
                else f"{counted_plainly(bad.length, 'byte')} {are(bad.length)} not indexed: {bad.reason}"
            )
            result.add(finding("live-tail" if is_live else bad.code, place, message), not is_live)
        result.lost_bytes = look.bytes_not_kept
        gap = self._indexed_gap(look)
        if gap is not None:
            result.add(gap, True)

    def _indexed_gap(self, look: FirstLook) -> Finding | None:
        """The finding for the first gap that new indexes hide, though an old index names one of its offsets."""
        kept, location = look.scan.kept, look.log.location
        ends, starts = kept.last_offset[:-1] + 1, kept.base_offset[1:]
        is_joined = (kept.end_position[:-1] == kept.position[1:]) & (kept.record_count[1:] >= 0)
        indexed = IndexedOffsets(location, self.terms.limits)
        for gap in np.flatnonzero((starts > ends) & is_joined).tolist():
            first, until = int(ends[gap]), int(starts[gap])
            named = indexed.within(first, until)
            if named is not None:
                return finding(
                    "offset-gap",
                    location.at(position=int(kept.position[gap + 1]), offset=first),
                    f"{offsets_are(first, until - 1)} in no batch, the old index names offset {named}, and the new "
                    "one does not show that batches are missing",
                    lost_offsets=(first, until - 1),
                    judgement=Judgement(severity=Severity.ERROR, certainty=Certainty.PROVEN),
                )
        return None

    def is_whole(self, result: RewritingResult) -> bool:
        return not any(each.severity >= Severity.ERROR for each in result.findings)

    def manifest(self, result: RewritingResult) -> dict[str, Any]:
        return {"findings": [finding_as_json(each) for each in result.findings]}
