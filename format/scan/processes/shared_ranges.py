"""Ranges of logs that worker processes read: each process takes the next range, and results are in log order.

A range is a chunk of a single reader, so the results are the same as with one reader if there is no damage. If a CRC is
wrong or bytes are damaged, more than the range matters, and the parent process reads the rest of that log.

All ranges have the state of the file when the log was cut into ranges. A worker that opens another file, or a shorter
one, raises FileChanged, and the results of the log end there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from format.errors import KafkaLogError
from format.io.source import FileSource, FileState
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange, batch_ranges
from format.log.walker import batch_chunks
from format.scan.processes.outbox import Outbox
from format.scan.processes.workers import Workers


class _Log(Protocol):
    @property
    def path(self) -> Path: ...


LogT = TypeVar("LogT", bound=_Log)


class Unsound(msgspec.Struct, frozen=True):
    """A worker sends this instead of results for a range with damage."""

    batch_range: BatchRange


class RestOfLog(msgspec.Struct, frozen=True):
    """The part of a log, from a range on, that the parent process must read, with the state of the file."""

    batch_range: BatchRange
    state: FileState | None

    def open(self, path: Path) -> FileSource:
        """Open the file; raises FileChanged if it was replaced or truncated."""
        return FileSource(path, self.state)


class RangeTask(msgspec.Struct, Generic[LogT], frozen=True):
    """A range of a log for a worker. ``state`` is None if the log could not be opened.

    ``is_whole_log`` means that the range is all that is read of the log, so the worker also handles damage in it.
    ``is_left`` means that the log could not be cut into ranges from here on, and that workers must not read it.
    """

    log_number: int
    log: LogT
    batch_range: BatchRange
    state: FileState | None
    is_whole_log: bool = False
    is_left: bool = False

    @property
    def rest(self) -> RestOfLog:
        """This range and all after it."""
        return RestOfLog(replace(self.batch_range, end=None), self.state)


class SharedRanges(Generic[LogT]):
    """Planned logs, and the processes that read them; close it, or use it as a context manager.

    ``do`` reads the range of a task and sends its results, or Unsound; ``range_of`` returns the range of a log that is
    read. Each process calls ``begin`` first.
    """

    def __init__(
        self,
        logs: Sequence[LogT],
        jobs: int,
        chunk_bytes: int,
        do: Callable[[RangeTask[LogT], Outbox], None],
        range_of: Callable[[LogT, FileSource], BatchRange] = lambda log, source: BatchRange(),
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._logs = logs
        self._numbers = {id(log): number for number, log in enumerate(logs)}
        self._chunk_bytes = chunk_bytes
        self._range_of = range_of
        self._left: set[int] = set()
        # Workers have the logs since the fork, with their sessions: only their numbers are sent.
        self._workers = Workers(jobs, lambda task, outbox: do(replace(task, log=logs[task.log_number]), outbox), begin)
        self._results = self._workers.results(self._tasks())
        self._next = next(self._results, None)
        self._asked = -1

    def tasks(self, log: LogT) -> Iterator[tuple[RangeTask[LogT], Iterator[object]]]:
        """The ranges of a log in order, each with its results.

        Logs must be requested in their order. The results raise the errors of reading, and WorkerDied.
        """
        number = self._numbers[id(log)]
        if number <= self._asked:
            raise ValueError("logs must be requested once, and in their order")
        self._asked = number
        while self._next is not None and self._next[0].log_number < number:
            self._next = next(self._results, None)  # of a log that was not requested
        while self._next is not None and self._next[0].log_number == number:
            yield self._next
            self._next = next(self._results, None)

    def items(self, log: LogT) -> Iterator[object]:
        """The results of a log's ranges, in order, and a RestOfLog if they end early. Otherwise like ``tasks``."""
        for task, items in self.tasks(log):
            for item in items:
                if isinstance(item, Unsound):
                    self.leave(log)
                    yield replace(task, batch_range=item.batch_range).rest
                    return
                yield item

    def leave(self, log: LogT) -> None:
        """Drop the ranges of a log that no worker has taken yet."""
        self._left.add(self._numbers[id(log)])

    def _tasks(self) -> Iterator[RangeTask[LogT]]:
        for number, log in enumerate(self._logs):
            if number in self._left:
                continue
            state, rest = None, BatchRange()
            try:
                with FileSource(log.path) as source:
                    state = source.state
                    rest = self._range_of(log, source)
                    if rest.end is not None or source.size_bytes - rest.start <= self._chunk_bytes:
                        yield RangeTask(number, log, rest, state, is_whole_log=True)
                        continue
                    for batch_range in batch_ranges(source, self._chunk_bytes, start=rest.start):
                        if number in self._left:
                            break
                        yield RangeTask(number, log, batch_range, state)
                        position = source.size_bytes if batch_range.end is None else batch_range.end
                        rest = BatchRange(position, read_from=batch_range.read_from)
            except KafkaLogError:
                # The parent process gets the error again, after the results of the earlier ranges.
                yield RangeTask(number, log, rest, state, is_left=True)

    def close(self) -> None:
        """End the processes."""
        self._workers.close()

    def __enter__(self) -> SharedRanges[LogT]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def sound_chunks(
    source: FileSource, task: RangeTask[LogT], outbox: Outbox, limits: Limits, chunk_bytes: int
) -> list[BatchChunk] | None:
    """The chunks of a task's range. If there is damage, or offsets do not rise, it sends Unsound and returns None."""
    batch_range = task.batch_range
    after_offset = batch_range.after_offset
    chunks = []
    if task.is_left:
        outbox.send(Unsound(batch_range))
        return None
    for chunk in batch_chunks(
        source,
        replace(batch_range, read_from=batch_range.start),
        limits=limits,
        chunk_bytes=chunk_bytes,
    ):
        if not chunk.is_sound_after(after_offset):
            outbox.send(Unsound(batch_range))  # damage may extend to the end of the log, so no more is read
            return None
        after_offset = chunk.table.last_offset_of(len(chunk.table) - 1)
        chunks.append(chunk)
    return chunks
