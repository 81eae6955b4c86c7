"""Partitions for look-ups, with the indexes that a broker would have written, and what find finds in them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from format.findings import Finding
from format.io.source import FileSource
from format.log.encode_batches import BatchHeader, encode_batch
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.verbs.find.find import find_max_timestamp, find_offset, find_timestamp, partition_to_search
from format.verbs.find.lookup import FoundRecord, LookupResult, TraceStep
from tests.building import batch
from tests.record_encoder import NewRecord, encode_record

#: offset i64, length i32 of every batch and message; then of a v2 batch what a look-up needs.
_ENTRY = struct.Struct(">qi")
_LAST_OFFSET_DELTA_AT, _MAX_TIMESTAMP_AT, _MAGIC_AT, _V1_TIMESTAMP_AT = 23, 35, 16, 18
INDEX_BYTES = 10 * 1024


@dataclass(frozen=True)
class Batch:
    """A batch to write: its bytes, its last offset, its largest timestamp (ms)."""

    content: bytes
    last_offset: int
    max_timestamp: int


def batch_of(
    records: Sequence[tuple[int, int]],
    *,
    base_offset: int,
    last_offset: int,
    value: bytes = b"v",
    max_timestamp: int | None = None,
) -> bytes:
    """A v2 batch of records given as (offset, timestamp), with any offsets and timestamps."""
    start = records[0][1] if records else 0
    encoded = b"".join(
        encode_record(NewRecord(offset - base_offset, timestamp - start, b"k", value)) for offset, timestamp in records
    )
    largest = max(timestamp for _, timestamp in records) if max_timestamp is None else max_timestamp
    header = BatchHeader(base_offset, last_offset - base_offset, len(records), start, largest, leader_epoch=3)
    return encode_batch(header, encoded)


def split(log: bytes) -> list[Batch]:
    """The batches and messages of a log."""
    found = []
    while log:
        base_offset, length = _ENTRY.unpack_from(log)
        content, log = log[: 12 + length], log[12 + length :]
        magic = content[_MAGIC_AT]
        last_offset, max_timestamp = base_offset, -1
        if magic == 2:
            last_offset += struct.unpack_from(">i", content, _LAST_OFFSET_DELTA_AT)[0]
            max_timestamp = struct.unpack_from(">q", content, _MAX_TIMESTAMP_AT)[0]
        elif magic == 1:
            max_timestamp = struct.unpack_from(">q", content, _V1_TIMESTAMP_AT)[0]
        found.append(Batch(content, last_offset, max_timestamp))
    return found


def indexes_of(log: bytes, base_offset: int, interval_bytes: int, is_closed: bool) -> tuple[bytes, bytes]:
    """The offset index and the time index as LogSegment.append writes them, one batch for each append.

    Those of a closed segment end with the largest timestamp; those of an active one have zeros up to their size.
    """
    offsets, times = b"", b""
    position = since_entry = 0
    largest, largest_offset, last_time = -1, base_offset, -1
    for each in split(log):
        if each.max_timestamp > largest:
            largest, largest_offset = each.max_timestamp, each.last_offset
        if since_entry > interval_bytes:
            offsets += struct.pack(">ii", each.last_offset - base_offset, position)
            if largest > last_time:
                times += struct.pack(">qi", largest, largest_offset - base_offset)
                last_time = largest
            since_entry = 0
        since_entry += len(each.content)
        position += len(each.content)
    if is_closed and largest > last_time:
        times += struct.pack(">qi", largest, largest_offset - base_offset)
    if not is_closed:
        offsets += bytes(INDEX_BYTES // 8 * 8 - len(offsets))
        times += bytes(INDEX_BYTES // 12 * 12 - len(times))
    return offsets, times


def write_indexed(
    directory: Path,
    base_offset: int,
    batches: Iterable[bytes],
    *,
    interval_bytes: int = 4096,
    is_closed: bool = True,
    without: Sequence[str] = (),
) -> Path:
    """A segment with its indexes, but for the suffixes in ``without``; the path of its log."""
    directory.mkdir(parents=True, exist_ok=True)
    log = b"".join(batches)
    offsets, times = indexes_of(log, base_offset, interval_bytes, is_closed)
    for suffix, content in ((".log", log), (".index", offsets), (".timeindex", times)):
        if suffix not in without:
            (directory / f"{base_offset:020d}{suffix}").write_bytes(content)
    return directory / f"{base_offset:020d}.log"


def write_checkpoint(log_dir: Path, name: str, topic: str, partition: int, offset: int) -> None:
    """An offset checkpoint of a log directory that names one partition."""
    (log_dir / name).write_text(f"0\n1\n{topic} {partition} {offset}\n")


def batch_of_size(base_offset: int, last_offset: int, size_bytes: int) -> bytes:
    """A batch of exactly so many bytes: the records' values are padded."""
    count = last_offset - base_offset + 1
    for padding in range(size_bytes):
        values = [b"x" * (padding // count + (number < padding % count)) for number in range(count)]
        content = batch(base_offset, values)
        if len(content) == size_bytes:
            return content
    raise AssertionError("no padding gives that size")


def write_first_example(partition: Path) -> Path:
    """The log of the guide's first example; the path of its segment 368796."""
    log = [batch_of_size(368796, 368799, 256), *(batch(offset, [b"value"]) for offset in range(368800, 368806))]
    write_indexed(partition, 368769, [batch(368769, [b"v"] * 27)])
    path = write_indexed(partition, 368796, log)
    write_indexed(partition, 368806, [batch(368806)])
    position = 256 + len(log[1]) + len(log[2])
    path.with_suffix(".index").write_bytes(struct.pack(">iiii", 4, 256, 6, position))
    return path


def write_second_example(partition: Path) -> Path:
    """The log of the guide's second example; the path of its only segment."""
    log = [batch_of_size(170410, 170417, 1325), batch(170418, [b"a"]), batch(170419, [b"b"])]
    path = write_indexed(partition, 170410, log)
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 8, 1325))
    return path


NOTHING = (-1, -1)


@dataclass(frozen=True)
class Seen:
    """All that a look-up reported."""

    found: LookupResult

    @property
    def match(self) -> FoundRecord:
        assert self.found.match is not None, self.found.reason
        return self.found.match

    @property
    def offset(self) -> int | None:
        return None if self.found.match is None else self.found.match.location.offset

    @property
    def answer(self) -> tuple[int | None, int | None]:
        """Offset and timestamp as a broker answers them."""
        return NOTHING if self.found.match is None else (self.offset, self.found.match.timestamp)

    @property
    def steps(self) -> list[TraceStep]:
        return self.found.steps

    @property
    def findings(self) -> list[Finding]:
        return self.found.findings

    @property
    def codes(self) -> list[str]:
        return [each.code for each in self.findings]

    @property
    def reason(self) -> str:
        assert self.found.match is None, self.found.match
        return self.found.reason

    def detail(self, stage: str) -> str:
        """What the only step of a stage says."""
        (step,) = [each for each in self.steps if each.stage == stage]
        return step.detail


def seen(found: LookupResult) -> Seen:
    assert found.error is None
    assert found.steps[-1].stage == "match"
    return Seen(found)


def by_offset(path: Path, offset: int) -> Seen:
    return seen(find_offset(partition_to_search(path), offset))


def by_time(path: Path, timestamp: int, **options: bool) -> Seen:
    return seen(find_timestamp(partition_to_search(path), timestamp, **options))


def by_max(path: Path, **options: bool) -> Seen:
    return seen(find_max_timestamp(partition_to_search(path), **options))


def records_on_disk(partition: Path) -> list[tuple[int, int]]:
    """(offset, timestamp) of every record, read from the logs without any index."""
    found = []
    for path in sorted(partition.glob("*.log")):
        with FileSource(path) as source:
            for chunk in batch_chunks(source):
                for table in record_tables(chunk):
                    found += list(zip(table.offset.tolist(), table.timestamp.tolist(), strict=True))
    return found


def three_segments(tmp_path: Path) -> Path:
    """Offsets 0 to 29, a record a millisecond, in segments of 10 and batches of 5."""
    partition = tmp_path / "topic-0"
    for base_offset in (0, 10, 20):
        batches = [batch(offset, [b"v"] * 5) for offset in (base_offset, base_offset + 5)]
        write_indexed(partition, base_offset, batches, is_closed=base_offset < 20)
    return partition
