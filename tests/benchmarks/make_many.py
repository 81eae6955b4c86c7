"""Log directories with many partitions and segments, and logs of a tebibyte: small batches, and holes for the rest.

A log is as long as its file system says, but of its batches only some are there: those at the places that its indexes
name. What lies between is a hole, which takes no space on the disk and reads as zero bytes.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np

from format import layout
from format.files import producer_snapshot
from format.state.producers import ProducerState
from tests.benchmarks.make_data import batch, record

_START_MS = 1_700_000_000_000
_OFFSETS_EACH = 10
_BATCH_BYTES = 16 * 1024
_BATCHES = 1024**3 // _BATCH_BYTES
#: A record with which a batch has exactly _BATCH_BYTES: eleven bytes of it are no part of the value.
_HOLLOW = record(0, 0, b"key", bytes(_BATCH_BYTES - layout.RECORD_BATCH.size_bytes - 14))


def small_batch(base_offset: int, timestamp: int) -> bytes:
    """A batch of ten records."""
    records = [record(0, delta, b"key", b"value %d" % delta) for delta in range(_OFFSETS_EACH)]
    return batch(base_offset, timestamp, timestamp, 0, records)


def segments(directory: Path, count: int) -> None:
    """A partition of segments with one batch each, and with the two indexes that a broker writes."""
    directory.mkdir(parents=True)
    for number in range(count):
        base_offset, timestamp = number * _OFFSETS_EACH, _START_MS + number * 1000
        name = f"{base_offset:020d}"
        (directory / f"{name}{layout.LOG_SUFFIX}").write_bytes(small_batch(base_offset, timestamp))
        (directory / f"{name}{layout.OFFSET_INDEX_SUFFIX}").touch()
        entry = struct.pack(">qi", timestamp, _OFFSETS_EACH - 1)
        (directory / f"{name}{layout.TIME_INDEX_SUFFIX}").write_bytes(entry)


def node(root: Path, partitions: int, segments_each: int) -> Path:
    """A log directory of topics with ten partitions each."""
    if root.exists():
        return root
    root.mkdir(parents=True)
    lines = []
    for number in range(partitions):
        topic, partition = f"topic-{number // 10:05d}", number % 10
        segments(root / f"{topic}-{partition}", segments_each)
        lines.append(f"{topic} {partition} {segments_each * _OFFSETS_EACH}")
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (root / name).write_text("\n".join(["0", str(len(lines)), *lines, ""]))
    (root / "meta.properties").write_text("version=1\ncluster.id=benchmark\nnode.id=1\n")
    return root


def tebibyte(directory: Path, segment_count: int = 1024, whole: tuple[int, ...] = (500,)) -> Path:
    """A partition of segments of a gibibyte, in batches of 16 KiB with an index entry each, a millisecond apart.

    The batches of the ``whole`` segments are there, each with a hole for most of its record's value; of the others the
    first and the last two. A look-up that reads anything else of those meets zero bytes.
    """
    if directory.exists():
        return directory
    directory.mkdir(parents=True)
    no_producers = producer_snapshot.write(ProducerState().snapshot_columns())
    numbers = np.arange(_BATCHES, dtype=np.int64)
    offsets = np.empty(_BATCHES - 1, [("relative_offset", ">i4"), ("position", ">i4")])
    offsets["relative_offset"], offsets["position"] = numbers[1:], numbers[1:] * _BATCH_BYTES
    times = np.empty(_BATCHES - 1, [("timestamp", ">i8"), ("relative_offset", ">i4")])
    times["relative_offset"] = numbers[1:]
    for number in range(segment_count):
        first = number * _BATCHES
        path = directory / f"{first:020d}{layout.LOG_SUFFIX}"
        with path.open("wb") as log:
            for row in range(_BATCHES) if number in whole else (0, _BATCHES - 2, _BATCHES - 1):
                os.pwrite(log.fileno(), _hollow_batch(first + row), row * _BATCH_BYTES)
            log.truncate(_BATCHES * _BATCH_BYTES)
        times["timestamp"] = _START_MS + first + numbers[1:]
        path.with_suffix(layout.OFFSET_INDEX_SUFFIX).write_bytes(offsets.tobytes())
        path.with_suffix(layout.TIME_INDEX_SUFFIX).write_bytes(times.tobytes())
        path.with_suffix(layout.PRODUCER_SNAPSHOT_SUFFIX).write_bytes(no_producers)
    return directory


def _hollow_batch(offset: int) -> bytes:
    """The beginning of a batch of one record of zero bytes; the zeros up to its end are left out."""
    timestamp = _START_MS + offset
    content = batch(offset, timestamp, timestamp, 0, [_HOLLOW])
    return content[:128]
