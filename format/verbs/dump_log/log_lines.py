"""The lines of a .log or .checkpoint file. Source: tools DumpLogSegments.dumpLog."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace as replace_fields
from itertools import islice

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from format import layout
from format.codecs.checksums import crc_tables
from format.errors import KafkaLogError, LimitExceeded
from format.findings import Finding, finding_of
from format.internal_topics.decoder import decode_control_value
from format.internal_topics.dump_log import dump_log_json
from format.internal_topics.reader import DecodedMessage
from format.io.source import FileSource
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.kernel.kafka_lines import (
    DUMP_LOG_3_9_1,
    DUMP_LOG_CONTENTS,
    DUMP_LOG_METADATA,
    DUMP_LOG_STOPS,
    write_dump_log,
)
from format.kernel.tables import RECORD_COLUMNS
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.kafka_batch import BatchFacts
from format.log.read_records import inner_crcs, record_tables
from format.log.record_table import RecordTable
from format.scan.protocol import LogUnit
from format.scan.read_log import IntactElsewhere, crc_findings, tail_finding
from format.verbs.dump_log.contents import Parser, prints_strings
from format.verbs.dump_log.java_text import java_utf8
from format.verbs.dump_log.kafka_reader import KafkaRecord, batch_line, java_boolean, kafka_walk, read_records
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions, KafkaStops, Release

_FASTEST = 1
#: The number of gaps that are compressed together.
_PACKED_GAPS = 64 * 1024
_OUT_BYTES = 1024 * 1024
_LINE_BYTES = 1024
_NO_RECORDS = np.empty((0, len(RECORD_COLUMNS)), np.int64)
#: The text before a control record's fields; 4.3.1 put a colon after the newest of them.
_CONTROL_NAMES = {
    "LEADER_CHANGE": "LeaderChange:",
    "SNAPSHOT_HEADER": "SnapshotHeader",
    "SNAPSHOT_FOOTER": "SnapshotFooter",
    "KRAFT_VERSION": "KRaftVersion",
    "KRAFT_VOTERS": "KRaftVoters",
}
Piece = bytes | memoryview | Finding
_LIMIT_CODE = LimitExceeded.code


class OffsetGaps:
    """The pairs of neighbouring offsets of one log that are not consecutive.

    A compacted log has many of them, and a hostile one tens of millions, so they are kept compressed, as differences.
    4.3.1 assumes that every log follows offset -1, so it reports a gap before every log but the first. It reports gaps
    after the same offset only once.
    """

    def __init__(self, emulate: Release | None) -> None:
        self._emulate = emulate
        self._first: int | None = None
        self._last: int | None = -1 if emulate is Release.V4_3_1 else None
        self._packed: list[bytes] = []
        self._pairs: list[NDArray[np.int64]] = []  # not packed yet
        self._pair_count = 0  # of these

    def add(self, offsets: NDArray[np.int64]) -> None:
        """Add the offsets of the next records, in log order."""
        if not len(offsets):
            return
        if self._first is None:
            self._first = int(offsets[0])
        first = int(offsets[0]) if self._last is None else self._last
        before = np.concatenate((np.array([first], np.int64), offsets[:-1]))
        is_gap = offsets - before != 1
        if self._last is None:
            is_gap[0] = False
        if is_gap.any():
            self._keep(np.stack((before[is_gap], offsets[is_gap]), axis=1))
        self._last = int(offsets[-1])

    def _keep(self, pairs: NDArray[np.int64]) -> None:
        if self._emulate is Release.V4_3_1:
            pairs = _latest(pairs)
        self._pairs.append(pairs)
        self._pair_count += len(pairs)
        if self._pair_count >= _PACKED_GAPS:
            self._pack()

    def _pack(self) -> None:
        if self._pairs:
            flat = np.concatenate(self._pairs).ravel()
            self._packed.append(zlib.compress(np.diff(flat, prepend=np.int64(0)).tobytes(), _FASTEST))
            self._pairs, self._pair_count = [], 0

    def follow(self, later: OffsetGaps) -> None:
        """Append the gaps of the records that follow, which were collected separately."""
        if later._first is None:
            return
        self.add(np.array([later._first], np.int64))
        if later._packed:
            self._pack()
            self._packed += later._packed
        for pairs in later._pairs:
            self._keep(pairs)
        self._last = later._last

    def __bool__(self) -> bool:
        return bool(self._packed or self._pairs)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Each offset and the one after it, in the order in which they are reported."""
        self._pack()
        if self._emulate is Release.V4_3_1:
            merged = np.empty((0, 2), np.int64)
            for packed in self._packed:
                merged = _latest(np.concatenate((merged, _unpacked(packed))))
            yield from map(tuple, merged.tolist())
        elif self._emulate is Release.V3_9_1:
            for packed in reversed(self._packed):
                yield from map(tuple, _unpacked(packed)[::-1].tolist())
        else:
            for packed in self._packed:
                yield from map(tuple, _unpacked(packed).tolist())


def _unpacked(packed: bytes) -> NDArray[np.int64]:
    flat: NDArray[np.int64] = np.cumsum(np.frombuffer(zlib.decompress(packed), np.int64))
    return flat.reshape(-1, 2)


def _latest(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The pairs in the order of their first offsets; of several with the same, the last."""
    firsts, at = np.unique(pairs[::-1, 0], return_index=True)
    return np.stack((firsts, pairs[::-1][at, 1]), axis=1)


class BulkLines:
    """The kernel's line writer for one set of options. It stops at an odd batch or record, which the caller writes.

    ``stop`` says why it stopped (DUMP_LOG_STOPS). ``batch`` is the row of the next batch, or of the batch whose records
    are next, ``record`` the row of the next record.
    """

    def __init__(self, options: DumpLogOptions) -> None:
        self.wants = (
            (0 if options.skips_record_metadata else DUMP_LOG_METADATA)
            | (DUMP_LOG_CONTENTS if options.prints_contents else 0)
            | (DUMP_LOG_3_9_1 if options.emulate is Release.V3_9_1 else 0)
        )
        self._out = np.empty(_OUT_BYTES, np.uint8)
        self._crc_tables = crc_tables()
        self._table: BatchTable
        self._last = 0
        self._records: RecordTable | None = None
        self._state = np.zeros(4, np.int64)

    @staticmethod
    def serves(options: DumpLogOptions) -> bool:
        """Whether the kernel can print what the options ask for."""
        return not options.prints_contents or prints_strings(options)

    def start(
        self, table: BatchTable, first: int, last: int, records: RecordTable | None, record: int, *, is_begun: bool
    ) -> None:
        """Begin at batch ``first``, and at row ``record`` of ``records``.

        ``is_begun``: the first batch's own line is written already.
        """
        self._table, self._last, self._records = table, last, records
        self._state[:] = (first, is_begun, record, 0)

    def next_lines(self) -> memoryview:
        """The lines up to the end, an odd batch or record, or a full buffer; valid until the next call."""
        records = self._records
        filled = write_dump_log(
            memoryview(self._table.columns),
            memoryview(self._table.crc_valid),
            memoryview(b"") if records is None else records.buffer,
            memoryview(_NO_RECORDS if records is None else records.columns),
            self._crc_tables,
            self._last,
            self.wants,
            memoryview(self._state),
            memoryview(self._out),
        )
        lines = memoryview(self._out[:filled])
        if self.stop == "full" and not filled and records is not None:
            room = _LINE_BYTES + 2 * int(records.size_bytes[self.record])
            self._out = np.empty(max(room, len(self._out)), np.uint8)
        return lines

    @property
    def stop(self) -> str:
        return DUMP_LOG_STOPS[self._state[3]]

    @property
    def batch(self) -> int:
        return int(self._state[0])

    @property
    def record(self) -> int:
        return int(self._state[2])

    def skip(self, record: int, *, batch: bool = False) -> None:
        """Go on with a record, and with the next ``batch``: the caller has written what comes before it."""
        self._state[2] = record
        if batch:
            self._state[:2] = (self.batch + 1, 0)


def record_line(
    facts: BatchFacts, record: KafkaRecord, options: DumpLogOptions, parse: Parser | None
) -> Iterator[bytes]:
    """The line of a record in parts, ending with its LF; raises KafkaStops between parts where Kafka dies.

    ``parse`` None: contents are not printed.
    """
    is_3_9 = options.emulate is Release.V3_9_1
    shows_metadata = not options.skips_record_metadata
    if shows_metadata:
        yield b"| offset: %d %b: %d keySize: %d valueSize: %d" % (
            record.offset,
            facts.timestamp_type,
            record.timestamp,
            record.key_size,
            record.value_size,
        )
        if facts.magic >= 2:
            keys = b",".join([java_utf8(each) for each in record.header_keys or ()])
            yield b" sequence: %d headerKeys: [%b]" % (record.sequence, keys)
        if record.header_keys is None:
            brace = b"}" if is_3_9 else b""
            yield b" isValid: %b crc: %d%b" % (java_boolean(record.crc_valid), record.crc, brace)
        if facts.is_control:
            yield control_text(record, is_3_9=is_3_9)
    if parse is not None and not facts.is_control:
        if record.fault is not None:
            raise record.fault
        key, value = parse(record.key, record.value, record.offset)
        prefix = b" " if shows_metadata else b"| "
        if key is not None:
            yield b"%bkey: %b" % (prefix, key)
            prefix = b" "
        if value is not None:
            # 3.9.1 omits the bar where it would come first.
            yield b"%bpayload: %b" % (b" " if is_3_9 else prefix, value)
    yield b"\n"


def control_text(record: KafkaRecord, *, is_3_9: bool) -> bytes:
    """The printed text of a control record; raises KafkaStops for one that Kafka cannot decode."""
    if record.key is None or len(record.key) < layout.CONTROL_KEY.size_bytes:
        raise KafkaStops("the key of the control record is too short")
    version, number = layout.CONTROL_KEY.struct.unpack_from(record.key)
    if version < 0:
        raise KafkaStops(f"the version of the control record is {version}")
    name = layout.CONTROL_TYPES[number] if 0 <= number < len(layout.CONTROL_TYPES) else "UNKNOWN"
    if name == "UNKNOWN" or (is_3_9 and name == "LEADER_CHANGE"):
        return f" controlType: {name}({number})".encode()
    try:
        if name not in _CONTROL_NAMES:
            epoch = (decode_control_value(number, record.value).data or {})["coordinatorEpoch"]
            return f" endTxnMarker: {name} coordinatorEpoch: {epoch}".encode()
        return f" {_CONTROL_NAMES[name]} {dump_log_json(_decoded(number, record.value))}".encode("utf-8", "replace")
    except KafkaLogError as error:
        raise KafkaStops(error.message) from error


def _decoded(number: int, value: bytes | None) -> DecodedMessage:
    """A control record's value. Kafka decodes it as the first version, whatever version its first field names."""
    decoded = decode_control_value(number, value)
    if decoded.data is None and value is not None:
        first = decode_control_value(number, bytes(2) + value[2:])
        if first.data is not None:
            return replace(first, data={**first.data, "version": decoded.version})
    return decoded


class LogLines:
    """Makes the lines of a log file, or of a range of it. ``gaps`` is filled as records are read."""

    def __init__(self, source: FileSource, log: LogUnit, name: bytes, options: DumpLogOptions, parse: Parser) -> None:
        self._source = source
        self._log = log
        self._location = log.location
        self._name = name
        self._options = options
        self._is_emulated = options.emulate is not None
        self._parse = parse if options.prints_contents else None
        self._limits = options.limits
        self.gaps = OffsetGaps(options.emulate)
        # If the kernel is not compiled, writing one line at a time is faster than its loop.
        self._bulk = BulkLines(options) if KERNEL_IS_COMPILED and BulkLines.serves(options) else None

    def lines(self, chunks: Iterable[BatchChunk]) -> Iterator[Piece]:
        """Bytes for standard output, in pieces, and findings.

        A memoryview is valid until the next piece is requested.
        """
        elsewhere = IntactElsewhere.of_log(self._log, self._limits)
        for chunk in chunks:
            shown = self._within_max_bytes(chunk)
            yield from self.chunk_lines(shown)
            for found in crc_findings(shown, self._log):
                yield from elsewhere.counted(found)
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
            yield from elsewhere.counted(tail_finding(self._source, chunk, self._log))

    def _within_max_bytes(self, chunk: BatchChunk) -> BatchChunk:
        """The chunk without batches that end past --max-bytes, and without the damage after them."""
        most = self._options.max_bytes
        if most == INT32_MAX:
            return chunk
        fits = chunk.headers.end_position <= most
        if fits.all() and (chunk.damage is None or chunk.damage.position + chunk.damage.length <= most):
            return chunk
        headers, table = chunk.headers.rows(fits), chunk.table.rows(fits)
        return replace_fields(chunk, headers=headers, table=table, damage=None, repeated=None, next_offset=None)

    def emulated_lines(self) -> Iterator[Piece]:
        """The emulated release's output for the whole file, without findings. Raises KafkaStops where it ends."""
        end = min(self._source.size_bytes, self._options.max_bytes)
        valid_bytes = 0
        for item in kafka_walk(self._source, 0, end):
            if isinstance(item, BatchFacts):
                yield from self._odd_batch_lines(item)
                valid_bytes += item.size_bytes
            else:
                yield from self.chunk_lines(item)
                valid_bytes = int(item.table.end_position[-1])
        if end > valid_bytes and self._options.max_bytes == INT32_MAX:
            yield b"Found %d invalid bytes at the end of %b\n" % (end - valid_bytes, self._name)

    # -- a chunk of batches ------------------------------------------------------------------------------------

    def chunk_lines(self, chunk: BatchChunk) -> Iterator[Piece]:
        """The lines of a chunk's batches, and findings about records that cannot be read."""
        chunk = replace_fields(chunk, table=chunk.headers.unopened())  # Kafka prints the headers of compressed messages
        row = 0
        printed = 0  # records of that row already printed: a batch may span several tables
        every = np.ones(len(chunk.table), np.bool_)
        if self._options.reads_records:
            for records in record_tables(chunk, which=every, limits=self._limits, location=self._location):
                problems = {problem.batch: problem.error for problem in records.problems}
                end = 1 + max(int(records.batch[-1]) if len(records) else -1, *problems, -1)
                for odd_row in sorted(problems):
                    yield from self._batches(chunk.table, row, odd_row, records, is_begun=printed > 0)
                    facts = _facts(chunk.table, odd_row)
                    yield from self._odd_batch_lines(facts, printed if odd_row == row else 0)
                    if not self._is_emulated:
                        yield finding_of(problems[odd_row], self._location)
                    row, printed = odd_row + 1, 0
                yield from self._batches(chunk.table, row, end, records, is_begun=printed > 0)
                if records.is_cut:
                    row, printed = end - 1, (printed if row == end - 1 else 0) + int((records.batch == end - 1).sum())
                elif end > row:
                    row, printed = end, 0
        yield from self._batches(chunk.table, row, len(chunk.table), None)

    def _odd_batch_lines(self, facts: BatchFacts, printed: int = 0) -> Iterator[bytes]:
        """The lines of a batch that read_records cannot read whole; the first ``printed`` records are printed already.

        They end where Kafka's tool fails: with an error, or by KafkaStops while a release is emulated.
        """
        is_printable = yield from self._batch_line(facts, is_begun=printed > 0)
        if not is_printable or not self._options.reads_records:
            return
        try:
            if facts.size_bytes > self._limits.max_decompressed_bytes:
                raise LimitExceeded(
                    f"the batch claims {facts.size_bytes} bytes",
                    self._location.at(position=facts.position, length=facts.size_bytes),
                )
            raw = memoryview(self._source.read_at(facts.position, facts.size_bytes))
            records = read_records(facts, raw, self._limits)
            if self._is_emulated and facts.magic >= 2 and facts.codec:
                records = iter(list(records))  # Kafka reads them all before it prints the first
            for record in islice(records, printed, None):
                self.gaps.add(np.array([record.offset], np.int64))
                yield from self._record_lines(facts, record)
        except (KafkaStops, LimitExceeded) as error:
            if self._is_emulated:
                raise
            yield _error_line(facts, error)

    def _batch_line(self, facts: BatchFacts, *, is_begun: bool = False) -> Generator[bytes, None, bool]:
        """The line of a batch, unless it ``is_begun``; returns whether it can be printed whole."""
        line, fault = batch_line(facts)
        if fault is not None:
            yield line
            if self._is_emulated:
                raise fault
            yield _error_line(facts, fault)
        elif not is_begun:
            yield line
        return fault is None

    def _record_lines(self, facts: BatchFacts, record: KafkaRecord) -> Iterator[bytes]:
        """A record's line. Where Kafka would die while printing it, the line ends with the reason, unless emulating."""
        try:
            yield from record_line(facts, record, self._options, self._parse)
        except KafkaStops as stop:
            if self._is_emulated:
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
        bulk = self._bulk
        if bulk is None:
            for row in range(first, last):
                at = yield from self._batch(table, row, records, at, is_begun=is_begun and row == first)
            return
        bulk.start(table, first, last, records, at, is_begun=is_begun)
        while True:
            lines = bulk.next_lines()
            if lines:
                yield lines
            if bulk.stop == "odd-batch":
                at = yield from self._batch(table, bulk.batch, records, bulk.record)
                bulk.skip(at, batch=True)
            elif bulk.stop == "odd-record" and records is not None:
                facts = _facts(table, bulk.batch)
                for record in _kafka_records(facts, records, bulk.record, bulk.record + 1):
                    yield from self._record_lines(facts, record)
                bulk.skip(bulk.record + 1)
            elif bulk.stop == "done":
                return

    def _batch(
        self, table: BatchTable, row: int, records: RecordTable | None, at: int, *, is_begun: bool = False
    ) -> Generator[bytes, None, int]:
        """The lines of one batch whose records begin at row ``at``; returns the row after its last record."""
        facts = _facts(table, row)
        yield from self._batch_line(facts, is_begun=is_begun)
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
    of_batch = table.rows(slice(first, last))
    checks: list[tuple[int, bool]] = [(facts.crc, facts.crc_valid)] * len(of_batch)
    if facts.magic < 2 and facts.codec:
        crcs, valid = inner_crcs(of_batch, np.arange(len(of_batch)))
        checks = list(zip(crcs.tolist(), valid.tolist(), strict=True))
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
