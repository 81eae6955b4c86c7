"""Writes the batch headers of logs as Parquet, with whole control batches, and the damage in logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.files import time_index
from format.io.bundles.header_columns import LAYOUTS, MOST_HEADER_BYTES, batch_schema, columns_of, outline_schema
from format.io.bundles.schemas import RecordedDamage
from format.io.remote_path import is_there
from format.io.source import FileSource
from format.layout import LOG_SUFFIX, TIME_INDEX_SUFFIX
from format.limits import Limits
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.batch_table import HeaderTable
from format.log.control_records import control_batch_content
from format.log.read_records import record_tables
from format.log.walker import batch_chunks, header_chunks
from format.node.file_location import location_of_file
from format.verbs.bundle.archive import NewMember

_ROW_GROUP = 64 * 1024
#: The most records of an outline; batches of brokers have some thousands.
_MOST_OUTLINED = 1024 * 1024
_COMPRESSION = {"compression": "zstd", "compression_level": 3}


class LogPlace(msgspec.Struct, frozen=True):
    """A log, and its path, topic and partition in the bundle."""

    path: Path
    inner: str
    topic: str | None
    partition: int | None


class _Rows(msgspec.Struct, frozen=True):
    """Some batches of one log that are to be written: header bytes, and the content of control batches by row."""

    log: LogPlace
    position: NDArray[np.int64]
    magic: NDArray[np.int64]
    headers: NDArray[np.uint8]
    inner: NDArray[np.int64] | None
    content: dict[int, bytes]


class _Outlined(msgspec.Struct):
    """The batches of a log whose records' offsets and timestamps are kept.

    These are the first one, if it is a compressed message, whose header lacks its first offset; the first with the
    largest timestamp; and the first with the timestamp of the last time index entry, which differs in a damaged log.
    """

    indexed_timestamp: int | None = None
    indexed: int | None = None
    first: int | None = None
    latest: int | None = None
    latest_timestamp: int = -1
    ends: dict[int, int] = msgspec.field(default_factory=dict)

    def see(self, table: HeaderTable, is_first: bool) -> None:
        """Look for such batches among the next ones."""
        if is_first and table.is_wrapper[0]:
            self.first = int(table.position[0])
            self.ends[self.first] = int(table.end_position[0])
        row = int(table.max_timestamp.argmax())
        timestamp = int(table.max_timestamp[row])
        if timestamp > self.latest_timestamp:
            self.latest, self.latest_timestamp = int(table.position[row]), timestamp
            self.ends[self.latest] = int(table.end_position[row])
        if self.indexed is None and self.indexed_timestamp is not None:
            for row in np.flatnonzero(table.max_timestamp == self.indexed_timestamp)[:1].tolist():
                self.indexed = int(table.position[row])
                self.ends[self.indexed] = int(table.end_position[row])

    @property
    def positions(self) -> list[int]:
        return sorted({each for each in (self.first, self.latest, self.indexed) if each is not None})


class HeaderWriter:
    """Writes the headers of logs, one after another, into the members of a bundle."""

    def __init__(self, batches: NewMember, outlines: NewMember, damage: NewMember, limits: Limits) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.batch_count = 0
        self._limits = limits
        self._damage = damage
        self._schema, outline = batch_schema(), outline_schema()
        numbers = [each.name for each in self._schema if pa.types.is_integer(each.type)]
        self._batches = pq.ParquetWriter(
            pa.PythonFile(batches, "w"),
            self._schema,
            use_dictionary=["path", "topic"],
            column_encoding={name: "DELTA_BINARY_PACKED" for name in numbers if name != "crc"},
            store_schema=True,
            **_COMPRESSION,
        )
        self._outlines = pq.ParquetWriter(pa.PythonFile(outlines, "w"), outline, **_COMPRESSION)
        self._outline_schema = outline
        self._waiting: list[_Rows] = []
        self._waiting_rows = 0
        self._waiting_outlines: list[dict[str, Any]] = []
        self._waiting_values = 0

    def add(self, log: LogPlace, source: FileSource, wrong_crcs: frozenset[int]) -> None:
        """Read the headers of a log. Raises KafkaLogError where it cannot be read to its end.

        ``wrong_crcs`` are the positions of batches with a wrong CRC. An outline without records says that the records
        of one can be read all the same, by those who check no CRCs.
        """
        outlined = _Outlined(_indexed_timestamp(log.path))
        is_first = True
        for chunk in header_chunks(source, limits=self._limits):
            headers = chunk.headers
            if len(headers):
                self._add_chunk(log, source, chunk)
                outlined.see(headers, is_first)
                for row in np.flatnonzero(np.isin(headers.position, list(wrong_crcs))).tolist():
                    position, end = int(headers.position[row]), int(headers.end_position[row])
                    if self._records_in(log, source, position, end, checks_crc=False) is not None:
                        self._write_outline(log, position, [], [])
                is_first = False
            if chunk.damage is not None:
                found = chunk.damage
                self._damage.write(
                    RecordedDamage(
                        log.inner,
                        found.position,
                        found.length,
                        found.code,
                        found.reason,
                        found.after_offset,
                        found.next_base_offset,
                        found.reaches_end,
                        found.lost_from,
                        found.lost_offsets,
                        found.readable,
                    ).line()
                )
        for position in outlined.positions:
            self._add_outline(log, source, position, outlined.ends[position])

    def _add_chunk(self, log: LogPlace, source: FileSource, chunk: HeaderChunk) -> None:
        table = chunk.headers
        content = {
            row: whole
            for row in np.flatnonzero(table.is_control).tolist()
            if (whole := control_batch_content(chunk, row, source, self._limits)) is not None
        }
        headers, inner = _headers_of(chunk, source), self._inner_offsets(table, source)
        rows = _Rows(log, table.position.copy(), table.magic.copy(), headers, inner, content)
        self._waiting.append(rows)
        self._waiting_rows += len(rows.position)
        self.batch_count += len(rows.position)
        if self._waiting_rows >= _ROW_GROUP:
            self._flush()

    def _inner_offsets(self, table: HeaderTable, source: FileSource) -> NDArray[np.int64] | None:
        """First offset and number of the records in compressed v0/v1 messages, -1 for all other batches."""
        if not table.is_wrapper.any():
            return None
        found = np.full((len(table), 2), -1, np.int64)
        place = BatchRange(int(table.position[0]), int(table.end_position[-1]))
        for whole in batch_chunks(source, place, limits=self._limits):
            is_opened = whole.table.is_wrapper & (whole.table.record_count > 0)
            rows = np.flatnonzero(is_opened & (whole.table.last_offset == whole.headers.last_offset))
            places = np.searchsorted(table.position, whole.table.position[rows])
            found[places] = np.column_stack((whole.table.base_offset[rows], whole.table.record_count[rows]))
        return found

    def _add_outline(self, log: LogPlace, source: FileSource, position: int, end: int) -> None:
        found = self._records_in(log, source, position, end)
        if found is not None:
            self._write_outline(log, position, *found)

    def _records_in(
        self, log: LogPlace, source: FileSource, position: int, end: int, *, checks_crc: bool = True
    ) -> tuple[list[int], list[int]] | None:
        """The offsets and timestamps of the records in a batch; None where they cannot be read, or are too many."""
        if end - position > self._limits.max_decompressed_bytes:
            return None
        offsets: list[int] = []
        timestamps: list[int] = []
        location = location_of_file(log.path)
        place = BatchRange(position, end)
        try:
            for chunk in batch_chunks(source, place, check_crc=checks_crc, limits=self._limits):
                if chunk.damage is not None or (checks_crc and not chunk.table.crc_valid.all()):
                    return None
                for records in record_tables(chunk, limits=self._limits, location=location):
                    if records.problems:
                        return None
                    offsets += records.offset.tolist()
                    timestamps += records.timestamp.tolist()
        except KafkaLogError:
            return None  # verify reports it
        return (offsets, timestamps) if len(offsets) <= _MOST_OUTLINED else None

    def _write_outline(self, log: LogPlace, position: int, offsets: list[int], timestamps: list[int]) -> None:
        self._waiting_outlines.append(
            {"path": log.inner, "position": position, "offsets": offsets, "timestamps": timestamps}
        )
        self._waiting_values += len(offsets)
        if len(self._waiting_outlines) >= _ROW_GROUP // 16 or self._waiting_values >= _MOST_OUTLINED:
            self._flush_outlines()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        logs = list(dict.fromkeys(each.log for each in self._waiting))
        topics = list(dict.fromkeys(each.topic for each in logs if each.topic is not None))
        counts = [len(each.position) for each in self._waiting]
        codes = np.repeat(np.array([logs.index(each.log) for each in self._waiting], np.int32), counts)
        topic_codes = np.array([-1 if each.topic is None else topics.index(each.topic) for each in logs], np.int32)[
            codes
        ]
        numbers = np.array([-1 if each.partition is None else each.partition for each in logs], np.int64)[codes]
        magic = np.concatenate([each.magic for each in self._waiting])
        inner = np.concatenate(
            [
                np.full((len(each.position), 2), -1, np.int64) if each.inner is None else each.inner
                for each in self._waiting
            ]
        )
        content: list[bytes | None] = []
        for each in self._waiting:
            content += (
                [each.content.get(row) for row in range(len(each.position))]
                if each.content
                else [None] * len(each.position)
            )
        columns = {
            "path": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([each.inner for each in logs])),
            "topic": pa.DictionaryArray.from_arrays(
                pa.array(topic_codes, mask=topic_codes < 0), pa.array(topics, pa.string())
            ),
            "partition": pa.array(numbers, pa.int32(), mask=numbers < 0),
            "position": pa.array(np.concatenate([each.position for each in self._waiting])),
            **columns_of(np.concatenate([each.headers for each in self._waiting]), magic),
            "inner_first_offset": pa.array(inner[:, 0], mask=inner[:, 0] < 0),
            "inner_count": pa.array(inner[:, 1], mask=inner[:, 0] < 0),
            "content": pa.array(content, pa.binary()),
        }
        arrays = [columns[name] for name in self._schema.names]
        self._batches.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=2 * _ROW_GROUP)
        self._waiting, self._waiting_rows = [], 0

    def _flush_outlines(self) -> None:
        import pyarrow as pa

        if self._waiting_outlines:
            self._outlines.write_table(pa.Table.from_pylist(self._waiting_outlines, schema=self._outline_schema))
        self._waiting_outlines, self._waiting_values = [], 0

    def close(self) -> None:
        """Write the rest, and finish the Parquet files."""
        self._flush()
        self._flush_outlines()
        self._batches.close()
        self._outlines.close()


def _indexed_timestamp(log: Path) -> int | None:
    """The timestamp of the last entry of the time index beside a log; None where there is none, or it is damaged."""
    path = log.with_suffix(TIME_INDEX_SUFFIX)
    base_offset = location_of_file(log).base_offset
    if log.suffix != LOG_SUFFIX or base_offset is None or not is_there(path):
        return None
    try:
        with FileSource(path) as source:
            entry = time_index.last_entry(source, base_offset)
    except KafkaLogError:
        return None
    return None if entry is None else entry.timestamp


def _headers_of(chunk: HeaderChunk, source: FileSource) -> NDArray[np.uint8]:
    """The header bytes of a chunk, a row for each batch; shorter headers are filled up with zeros."""
    table = chunk.headers
    found = np.zeros((len(table), MOST_HEADER_BYTES), np.uint8)
    window = b"" if chunk.window is None else chunk.window
    content = np.frombuffer(window, np.uint8)
    starts = table.position - chunk.buffer_position
    for magic, one in enumerate(LAYOUTS):
        is_one = table.magic == magic
        rows = np.flatnonzero(is_one & (starts + one.size_bytes <= len(content)))
        found[rows, : one.size_bytes] = content[starts[rows][:, None] + np.arange(one.size_bytes)]
        for row in np.flatnonzero(is_one & (starts + one.size_bytes > len(content))).tolist():
            header = source.read_at(int(table.position[row]), one.size_bytes)
            found[row, : len(header)] = np.frombuffer(header, np.uint8)
    return found
