"""recompress --explain: what would be done with each batch, and why; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from format.errors import InputError
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.layout import CODEC_BITS_NAMES
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.log.batch_table import BatchTable
from format.rewriting.intact_batches import salvage_chunks
from format.rewriting.sources import WriteSources
from format.rewriting.written_segments import Advance, no_progress
from format.rows.record_rows import Row
from format.scan.read_log import crc_findings, tail_finding
from format.verbs.recompress.plan import DECISIONS, PlanTerms, Work, plan


def explain_recompress(
    sources: WriteSources, terms: PlanTerms, *, limits: Limits = DEFAULT_LIMITS, advance: Advance = no_progress
) -> Iterator[list[Row] | Finding]:
    """Rows of BATCH_DECISION for every intact batch, chunk by chunk, and findings where there is none."""
    for partition in sources.partitions.values():
        for segment in partition.segments:
            if segment.log is None:
                continue
            location = partition.location(segment.log, segment.base_offset)
            try:
                with FileSource(segment.log) as source:
                    for chunk in salvage_chunks(source, limits):
                        yield from crc_findings(chunk, location)
                        works = plan(chunk.table, chunk.table.crc_valid == 1, terms)
                        yield [row for work in works for row in _rows(work, chunk.table, location)]
                        if chunk.damage is not None:
                            yield tail_finding(source, chunk, location, partition.next_base_offset(segment) is None)
                        advance(chunk.covered_bytes)
            except InputError as error:
                yield finding_of(error, location)


def _rows(work: Work, table: BatchTable, location: Location) -> Iterator[Row]:
    decision, broker = DECISIONS[work.reason]
    place = (location.topic, location.partition, location.base_offset)
    what = (decision.word, work.reason.value, broker)
    rows = np.array(work.rows)
    columns = (table.position, table.base_offset, table.last_offset, table.size_bytes, table.magic, table.codec)
    for *of_batch, codec in zip(*(column[rows].tolist() for column in columns), strict=True):
        yield (*place, *of_batch, CODEC_BITS_NAMES[codec], *what)
