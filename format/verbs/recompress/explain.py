"""recompress --explain: what recompress would do with each batch, and why; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from format.findings import Finding
from format.layout import CODEC_BITS_NAMES
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.node.partition_surroundings import unread_findings
from format.rewriting.sources import WriteSources
from format.rows.record_rows import Row
from format.scan.drivers import scan_logs
from format.scan.progress import Advance, no_progress
from format.scan.protocol import Depth, LogParts, LogUnit, Needs, OpenedRange
from format.scan.read_log import crc_findings, tail_finding
from format.scan.selected_logs import every_log_of
from format.verbs.recompress.plan import DECISIONS, PlanTerms, Work, plan


class ExplainScan(msgspec.Struct, frozen=True):
    """The scan of --explain: the parts are rows of BATCH_DECISION and findings, and the fold yields them."""

    plan: PlanTerms
    limits: Limits = DEFAULT_LIMITS

    @property
    def needs(self) -> Needs:
        return Needs(Depth.CRC, limits=self.limits)

    def parts(self, opened: OpenedRange) -> Iterator[list[Row] | Finding]:
        """The rows of each chunk, after findings in it and before the damage behind it."""
        location = opened.log.location
        for chunk in opened.batches:
            yield from crc_findings(chunk, opened.log)
            works = plan(chunk.table, chunk.table.crc_valid == 1, self.plan)
            yield [row for work in works for row in _rows(work, chunk.table, location)]
            if chunk.damage is not None:
                yield tail_finding(opened.source, chunk, opened.log)

    def fold(self, log: LogUnit, parts: LogParts[list[Row] | Finding]) -> Iterator[list[Row] | Finding]:
        """The same."""
        return parts


def explain_recompress(
    sources: WriteSources, terms: PlanTerms, *, limits: Limits = DEFAULT_LIMITS, advance: Advance = no_progress
) -> Iterator[list[Row] | Finding]:
    """Rows of BATCH_DECISION for every intact batch, chunk by chunk, and findings about the rest."""
    yield from sources.findings
    for partition in sources.partitions.values():
        yield from unread_findings(partition)
    yield from scan_logs(ExplainScan(terms, limits), _logs(sources), advance=advance)


def _logs(sources: WriteSources) -> Iterator[LogUnit]:
    for partition in sources.partitions.values():
        yield from every_log_of(partition)


def _rows(work: Work, table: BatchTable, location: Location) -> Iterator[Row]:
    decision, broker = DECISIONS[work.reason]
    place = (location.topic, location.partition, location.base_offset)
    what = (decision.word, work.reason.value, broker)
    rows = np.array(work.rows)
    columns = (table.position, table.base_offset, table.last_offset, table.size_bytes, table.magic, table.codec)
    for *of_batch, codec in zip(*(column[rows].tolist() for column in columns), strict=True):
        yield (*place, *of_batch, CODEC_BITS_NAMES[codec], *what)
