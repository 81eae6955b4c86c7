"""Ranges of logs that worker processes read: each takes the next one, and all results come back in log order.

A range is what one reader reads at once, so that the results are those of one reader. That holds while all is well:
where a CRC is wrong or something is damaged, more than the range matters, and the rest of that log is left to the
process that asks.

Every range carries the state of the file as it was when the log was cut into ranges. A worker that finds another
file, or a shorter one, raises FileChanged, and the results of the log end there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from format.errors import KafkaLogError
from format.io.file_state import FileState
from format.io.source import FileSource
from format.limits import Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange, batch_ranges
from format.log.walker import batch_chunks
from format.scan.processes.outbox import Outbox
from format.scan.processes.workers import Workers
from format.value_class import value_class


class _Log(Protocol):
    @property
    def path(self) -> Path: ...


LogT = TypeVar("LogT", bound=_Log)


@value_class
class Unsound:
    """What a worker sends instead of results for a range that is not plainly sound."""

    batch_range: BatchRange


@value_class
class RestOfLog:
    """What the process that asks has to read itself: from a range on, in the file as it was."""

    batch_range: BatchRange
    state: FileState | None

    def open(self, path: Path) -> FileSource:
        """The file; raises FileChanged where it is another one, or was cut."""
        return FileSource(path, self.state)


@value_class
class RangeTask(Generic[LogT]):
    """A range of a log for a worker. ``state`` is None where the log could not be opened.

    ``is_whole_log``: the range is all that is read of the log, so that damage in it is the worker's to describe.
    ``is_left``: the log could not be cut into ranges from here on, so that no worker is to read it.
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
    """Logs, known beforehand, and the processes that read them; close it, or use it as a context.

    ``do`` reads a task's range and sends its results, or Unsound; ``range_of`` says what of a log is to be read. Each
    process calls ``begin`` before it works.
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
        self._workers = Workers(jobs, do, begin)
        self._results = self._workers.results(self._tasks())
        self._next = next(self._results, None)
        self._asked = -1

    def tasks(self, log: LogT) -> Iterator[tuple[RangeTask[LogT], Iterator[object]]]:
        """The ranges of a log in order, each with its results.

        Logs must be requested in their order. The results raise the errors of reading, and WorkerDied.
        """
        number = self._numbers[id(log)]
        if number <= self._asked:
            raise ValueError("logs are to be asked for once, and in their order")
        self._asked = number
        while self._next is not None and self._next[0].log_number < number:
            self._next = next(self._results, None)  # of a log that was not requested
        while self._next is not None and self._next[0].log_number == number:
            yield self._next
            self._next = next(self._results, None)

    def items(self, log: LogT) -> Iterator[object]:
        """The results of a log's ranges, in order, and a RestOfLog where they are not all of it. As ``tasks``."""
        for task, items in self.tasks(log):
            for item in items:
                if isinstance(item, Unsound):
                    self.leave(log)
                    yield replace(task, batch_range=item.batch_range).rest
                    return
                yield item

    def leave(self, log: LogT) -> None:
        """No more is wanted of a log: its ranges that no worker has taken yet are dropped."""
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
                # The process that asks meets the error again, after the ranges that were given out.
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
    """The chunks of a task's range; None, and Unsound is sent, where something is damaged or offsets do not rise."""
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
        is_damaged = chunk.damage is not None or not chunk.table.crc_valid.all()
        if is_damaged or not chunk.table.rises_from(after_offset):
            outbox.send(Unsound(batch_range))  # what follows damage may be all the rest of the log: no more is read
            return None
        after_offset = chunk.table.last_offset_of(len(chunk.table) - 1)
        chunks.append(chunk)
    return chunks
