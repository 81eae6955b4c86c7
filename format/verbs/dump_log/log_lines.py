"""The lines of a .log or .checkpoint file. Source: tools DumpLogSegments.dumpLog."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from format.errors import KafkaLogError, LimitExceeded
from format.findings import Finding, finding_of
from format.io.source import FileSource
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.scan.protocol import LogUnit
from format.scan.read_log import crc_findings, tail_finding
from format.verbs.dump_log.batch_text import BatchFacts, UnprintableBatch, batch_line
from format.verbs.dump_log.bulk_lines import BulkLines, inner_checks
from format.verbs.dump_log.contents import Parser
from format.verbs.dump_log.kafka_reader import KafkaRecord, read_records
from format.verbs.dump_log.kafka_walk import OddBatch, kafka_walk
from format.verbs.dump_log.offset_gaps import OffsetGaps
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions
from format.verbs.dump_log.record_text import record_line
from format.verbs.dump_log.stops import KafkaStops

Piece = bytes | memoryview | Finding
_LIMIT_CODE = LimitExceeded.code


class LogLines:
    """Makes the lines of a log file, or of a range of it. ``gaps`` is filled as records are read."""

    def __init__(
        self,
        source: FileSource,
        log: LogUnit,
        name: bytes,
        options: DumpLogOptions,
        parse: Parser,
        limits: Limits,
    ) -> None:
        self._source = source
        self._log = log
        self._location = log.location
        self._name = name
        self._options = options
        self._parse = parse if options.prints_contents else None
        self._limits = limits
        self.gaps = OffsetGaps(options.emulate)
        # If the kernel is not compiled, writing one line at a time is faster than its loop.
        self._bulk = BulkLines(options) if KERNEL_IS_COMPILED and BulkLines.serves(options) else None

    def lines(self, chunks: Iterable[BatchChunk]) -> Iterator[Piece]:
        """Bytes for standard output, in pieces, and findings.

        A memoryview is valid until the next piece is requested.
        """
        for chunk in chunks:
            shown = self._within_max_bytes(chunk)
            yield from self.chunk_lines(shown)
            yield from crc_findings(shown, self._log)
            if shown.damage is None:
                if len(shown.table) < len(chunk.table):
                    return
                continue
            damage = shown.damage
            what = b"Skipped %d" if damage.code == _LIMIT_CODE else b"Found %d invalid"
            if damage.reaches_end:
                yield (what + b" bytes at the end of %b\n") % (damage.length, self._name)
            else:
                yield (what + b" bytes at position %d of %b\n") % (damage.length, damage.position, self._name)
            yield tail_finding(self._source, chunk, self._log)

    def _within_max_bytes(self, chunk: BatchChunk) -> BatchChunk:
        """The chunk without batches that end past --max-bytes, and without the damage after them."""
        most = self._options.max_bytes
        if most == INT32_MAX:
            return chunk
        fits = chunk.headers.end_position <= most
        if fits.all() and (chunk.damage is None or chunk.damage.position + chunk.damage.length <= most):
            return chunk
        headers, table = chunk.headers.rows(fits), chunk.table.rows(fits)
        return replace(chunk, headers=headers, table=table, damage=None, repeated=None, next_offset=None)

    def emulated_lines(self) -> Iterator[Piece]:
        """The emulated release's output for the whole file, without findings. Raises KafkaStops where it dies."""
        size_bytes, most = self._source.size_bytes, self._options.max_bytes
        if size_bytes > INT32_MAX:
            raise KafkaStops(
                f"org.apache.kafka.common.KafkaException: The size of segment {self._source.path} ({size_bytes}) is "
                f"larger than the maximum allowed segment size of {INT32_MAX}"
            )
        if most < 0:
            raise KafkaStops(
                f"java.lang.IllegalArgumentException: Invalid size: {most} in read from {self._source.path}"
            )
        end = min(size_bytes, most)
        valid_bytes = 0
        for item in kafka_walk(self._source, 0, end):
            if isinstance(item, OddBatch):
                yield from self._odd_batch_lines(item.facts)
                valid_bytes += item.facts.size_bytes
            else:
                yield from self.chunk_lines(item)
                valid_bytes = int(item.table.end_position[-1])
        if end > valid_bytes and most == INT32_MAX:
            yield b"Found %d invalid bytes at the end of %b\n" % (end - valid_bytes, self._name)

    # -- a chunk of batches ------------------------------------------------------------------------------------

    def chunk_lines(self, chunk: BatchChunk) -> Iterator[Piece]:
        """The lines of a chunk's batches, and findings about records that cannot be read."""
        chunk = replace(chunk, table=chunk.headers.unopened())  # Kafka prints the headers of compressed messages
        row = 0
        printed = 0  # records of that row already printed: a batch may span several tables
        every = np.ones(len(chunk.table), np.bool_)
        if self._options.reads_records:
            for records in record_tables(chunk, which=every, limits=self._limits, location=self._location):
                problems = {problem.batch: problem.error for problem in records.problems}
                end = 1 + max(int(records.batch[-1]) if len(records) else -1, *problems, -1)
                for odd_row in sorted(problems):
                    yield from self._batches(chunk.table, row, odd_row, records, is_begun=printed > 0)
                    yield from self._problem_lines(chunk, odd_row, problems[odd_row], printed if odd_row == row else 0)
                    row, printed = odd_row + 1, 0
                yield from self._batches(chunk.table, row, end, records, is_begun=printed > 0)
                if records.is_cut:
                    row, printed = end - 1, (printed if row == end - 1 else 0) + int((records.batch == end - 1).sum())
                elif end > row:
                    row, printed = end, 0
        yield from self._batches(chunk.table, row, len(chunk.table), None)

    def _problem_lines(
        self, chunk: BatchChunk, row: int, error: KafkaLogError, printed: int
    ) -> Iterator[bytes | Finding]:
        """The lines of a batch that read_records cannot read completely, up to where Kafka fails.

        The first ``printed`` records are printed already.
        """
        yield from self._odd_batch_lines(_facts(chunk.table, row), printed)
        if self._options.emulate is None:
            yield finding_of(error, self._location)

    def _odd_batch_lines(self, facts: BatchFacts, printed: int = 0) -> Iterator[bytes]:
        try:
            line = batch_line(facts)
            if not printed:
                yield line
        except UnprintableBatch as stop:
            yield stop.start
            if self._options.emulate is not None:
                raise
            yield _error_line(facts, stop)
            return
        if not self._options.reads_records:
            return
        is_strict = self._options.emulate is not None
        try:
            if facts.size_bytes > self._limits.max_decompressed_bytes:
                raise LimitExceeded(
                    f"the batch claims {facts.size_bytes} bytes",
                    self._location.at(position=facts.position, length=facts.size_bytes),
                )
            raw = memoryview(self._source.read_at(facts.position, facts.size_bytes))
            records = read_records(facts, raw, self._limits)
            if is_strict and facts.magic >= 2 and facts.codec:
                records = iter(list(records))  # Kafka reads them all before it prints the first
            for record in islice(records, printed, None):
                self.gaps.add(np.array([record.offset], np.int64))
                yield from self._record_lines(facts, record)
        except (KafkaStops, LimitExceeded) as error:
            if is_strict:
                raise
            yield _error_line(facts, error)

    def _record_lines(self, facts: BatchFacts, record: KafkaRecord) -> Iterator[bytes]:
        """A record's line. Where Kafka would die while printing it, the line ends with the reason, unless emulating."""
        try:
            yield from record_line(facts, record, self._options, self._parse)
        except KafkaStops as stop:
            if self._options.emulate is not None:
                raise
            yield b" Error at offset %d, skipping. %b\n" % (record.offset, stop.message.encode())

    def _batches(
        self, table: BatchTable, first: int, last: int, records: RecordTable | None, *, is_begun: bool = False
    ) -> Iterator[bytes | memoryview]:
        """The lines of some batches that can be read, and of their records in the table.

        ``is_begun``: the line of the first batch, and some of its records, are printed already.
        """
        at = 0
        if records is not None:
            at, end = (int(each) for each in np.searchsorted(records.batch, (first, last)))
            self.gaps.add(records.offset[at:end])
        if self._bulk is None:
            for row in range(first, last):
                at = yield from self._batch(table, row, records, at, is_begun=is_begun and row == first)
            return
        work = self._bulk.start(table, first, last, records, at, is_begun=is_begun)
        while True:
            lines = work.next_lines()
            if lines:
                yield lines
            if work.is_done:
                return
            if work.is_at_odd_batch:
                work.record = yield from self._batch(table, work.batch, records, work.record)
                work.skip_batch()
            elif work.is_at_odd_record and records is not None:
                facts = _facts(table, work.batch)
                for record in _kafka_records(facts, records, work.record, work.record + 1):
                    yield from self._record_lines(facts, record)
                work.record += 1

    def _batch(
        self, table: BatchTable, row: int, records: RecordTable | None, at: int, *, is_begun: bool = False
    ) -> Generator[bytes, None, int]:
        """The lines of one batch whose records begin at row ``at``; returns the row after its last record."""
        facts = _facts(table, row)
        try:
            if not is_begun:
                yield batch_line(facts)
        except UnprintableBatch as stop:
            yield stop.start
            if self._options.emulate is not None:
                raise
            yield _error_line(facts, stop)
        if records is None:
            return at
        end = int(np.searchsorted(records.batch, row, "right"))
        for record in _kafka_records(facts, records, at, end):
            yield from self._record_lines(facts, record)
        return end


def _error_line(facts: BatchFacts, error: KafkaLogError) -> bytes:
    return b"| Error in the batch at position %d, skipping. %b\n" % (facts.position, error.message.encode())


def _facts(table: BatchTable, row: int) -> BatchFacts:
    return BatchFacts._make((*table.columns[row].tolist(), bool(table.crc_valid[row] == 1)))


def _kafka_records(facts: BatchFacts, table: RecordTable, first: int, last: int) -> Iterator[KafkaRecord]:
    """The records of one batch from a record table."""
    of_batch = table.rows(slice(first, last))
    checks: list[tuple[int, bool]] = [(facts.crc, facts.crc_valid)] * len(of_batch)
    if facts.magic < 2 and facts.codec:
        checks = inner_checks(of_batch)
    for row, (sequence, (crc, crc_valid)) in enumerate(zip(of_batch.sequence.tolist(), checks, strict=True)):
        headers = of_batch.headers(row)
        yield KafkaRecord(
            int(of_batch.offset[row]),
            int(of_batch.timestamp[row]),
            int(of_batch.key_length[row]),
            int(of_batch.value_length[row]),
            of_batch.key(row),
            of_batch.value(row),
            sequence,
            None if headers is None else tuple(key for key, _ in headers),
            crc,
            crc_valid,
        )
