"""Walks over logs that worker processes share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from format.io.source import FileSource
from format.kernel.tables import BATCH_COLUMNS
from format.log.batch_table import BatchTable
from format.scan.shared_ranges import RangeTask, RestOfLog, SharedRanges, is_worth_sharing, sound_chunks
from format.scan.workers import SLOT_BYTES, Outbox, SharedBytes
from format.verbs.verify import walk as log_walk
from format.verbs.verify.walk import Level, LogToWalk, OpenedLog, OwnWalks, WalkedChunk, walk_chunks, walk_log

#: What checking costs in seconds: a batch, its bytes, its compressed bytes.
_BATCH_S = 0.25e-6
_CRC_BYTE_S = 0.15e-9
_BYTE_S = 0.4e-9
_COMPRESSED_BYTE_S = 3.5e-9
#: A smaller table of batches comes back with the rest of a chunk, a larger one through shared memory.
_LARGE_TABLE_BYTES = 32 * 1024


class SharedWalks:
    """Walks by worker processes over logs that are known beforehand; close it, or use it as a context.

    The logs are to be asked for in their order; one that is not among them is walked over in this process.
    """

    def __init__(self, logs: Sequence[LogToWalk], jobs: int) -> None:
        self._logs = {log: log for log in logs}
        self._own = OwnWalks()
        self._ranges = SharedRanges(logs, jobs, log_walk.WALK_CHUNK_BYTES, _walk)

    def chunks(self, log: LogToWalk) -> Iterator[OpenedLog | WalkedChunk]:
        """The chunks of a log, in order. Raises KafkaLogError where it cannot be opened or read, and WorkerDied."""
        planned = self._logs.get(log)
        if planned is None:
            yield from self._own.chunks(log)
            return
        items = self._ranges.items(planned)
        for item in items:
            if isinstance(item, RestOfLog):
                with item.open(log.path) as source:
                    if item.batch_range.start == 0:
                        yield OpenedLog(source.size_bytes)
                    yield from walk_log(source, log, item.batch_range)
            elif isinstance(item, WalkedChunk):
                if item.is_table_shared:
                    item.table = _received(next(items))
                yield item
            elif isinstance(item, OpenedLog):
                yield item

    def close(self) -> None:
        """End the processes."""
        self._ranges.close()

    def __enter__(self) -> SharedWalks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def are_worth_sharing(logs: Sequence[LogToWalk]) -> bool:
    """Whether several processes are sooner done with these logs than one."""
    if not logs or logs[0].level < Level.CRC:
        return False
    only_crc = logs[0].level is Level.CRC
    return is_worth_sharing(
        [log.path for log in logs],
        byte_s=_CRC_BYTE_S if only_crc else _BYTE_S,
        compressed_byte_s=_CRC_BYTE_S if only_crc else _COMPRESSED_BYTE_S,
        batch_s=_BATCH_S,
    )


def _walk(task: RangeTask[LogToWalk], outbox: Outbox) -> None:
    """One range, or one whole log, in a worker."""
    log = task.log
    with FileSource(log.path, task.state) as source:
        if task.is_whole_log:
            walk = walk_log(source, log, task.batch_range)
        else:
            chunks = sound_chunks(source, task, outbox, log.limits, log_walk.WALK_CHUNK_BYTES)
            if chunks is None:
                return
            walk = walk_chunks(source, log, chunks)
        if task.batch_range.start == 0:
            outbox.send(OpenedLog(source.size_bytes))
        for walked in walk:
            walked.header_findings = list(walked.header_findings)
            walked.record_findings = list(walked.record_findings)
            table = walked.table
            if _LARGE_TABLE_BYTES < table.columns.nbytes + len(table) <= SLOT_BYTES:
                walked.table, walked.is_table_shared = BatchTable.empty(), True
                outbox.send(walked)
                _send(table, outbox)
            else:
                outbox.send(walked)


def _send(table: BatchTable, outbox: Outbox) -> None:
    """A table's columns, and then whether each CRC is valid."""
    room = outbox.room()
    count = len(table)
    length = table.columns.nbytes
    np.frombuffer(room[:length], np.int64).reshape(table.columns.shape)[:] = table.columns
    np.frombuffer(room[length : length + count], np.int8)[:] = table.crc_valid
    outbox.send_room(length + count)


def _received(shared: object) -> BatchTable:
    if not isinstance(shared, SharedBytes):
        raise TypeError(f"{shared!r} came for a table")
    width = len(BATCH_COLUMNS)
    count = len(shared.view) // (8 * width + 1)
    length = 8 * width * count
    columns = np.frombuffer(shared.view[:length], np.int64).reshape(count, width).copy()
    return BatchTable(columns, np.frombuffer(shared.view[length:], np.int8).copy())
