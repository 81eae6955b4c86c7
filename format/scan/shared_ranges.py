"""Logs that worker processes read by ranges: each takes what is next, and all comes back in log order.

A range is what one reader reads at once, so that the results are those of one reader. That holds while all is well:
where a CRC is wrong or something is damaged, more than the range matters, and the rest of that log is left to the
process that asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from format.errors import KafkaLogError
from format.io.source import FileSource, FileState
from format.limits import MIB, Limits
from format.log.batch_chunk import BatchChunk
from format.log.batch_ranges import BatchRange, batch_ranges
from format.log.walker import batch_chunks
from format.scan.workers import Outbox, Workers

#: What processes cost before they have done anything, and what they save at the least when that is to pay.
_WORTH_S = 0.15


class _Log(Protocol):
    @property
    def path(self) -> Path: ...


LogT = TypeVar("LogT", bound=_Log)


@dataclass(frozen=True, slots=True)
class Unsound:
    """What comes of a range instead of results when it is not plainly sound."""

    batch_range: BatchRange


@dataclass(frozen=True, slots=True)
class RestOfLog:
    """What the one who asks has to read itself: from a range on, in the file as it was."""

    batch_range: BatchRange
    state: FileState | None

    def open(self, path: Path) -> FileSource:
        return FileSource(path, self.state)


@dataclass(frozen=True, slots=True)
class RangeTask(Generic[LogT]):
    """A range of a log for a worker; ``state`` is None for a log that nobody has opened yet, which is one range."""

    log_number: int
    log: LogT
    batch_range: BatchRange
    state: FileState | None

    @property
    def is_whole_log(self) -> bool:
        return self.state is None


class SharedRanges(Generic[LogT]):
    """Logs, known beforehand, and the processes that read them; close it, or use it as a context.

    ``do`` reads a task's range and sends its results, or Unsound; ``start_of`` tells where in a log to begin. Each
    process calls ``begin`` before it works.
    """

    def __init__(
        self,
        logs: Sequence[LogT],
        jobs: int,
        chunk_bytes: int,
        do: Callable[[RangeTask[LogT], Outbox], None],
        start_of: Callable[[LogT, FileSource], int] = lambda log, source: 0,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._logs = logs
        self._numbers = {id(log): number for number, log in enumerate(logs)}
        self._chunk_bytes = chunk_bytes
        self._start_of = start_of
        self._left: set[int] = set()
        self._workers = Workers(jobs, do, begin)
        self._results = self._workers.results(self._tasks())
        self._next = next(self._results, None)

    def items(self, log: LogT) -> Iterator[object]:
        """What came of a log's ranges, in order, and a RestOfLog where that is not all of it.

        The logs are to be asked for in their order. Raises what reading raised, and WorkerDied.
        """
        number = self._numbers[id(log)]
        while self._next is not None and self._next[0].log_number < number:
            self._next = next(self._results, None)  # of one that nobody asked for
        while self._next is not None and self._next[0].log_number == number:
            task, items = self._next
            for item in items:
                if isinstance(item, Unsound):
                    self._left.add(number)
                    yield RestOfLog(replace(item.batch_range, end=None), task.state)
                    return
                yield item
            self._next = next(self._results, None)

    def leave(self, log: LogT) -> None:
        """No more is wanted of a log: what of it is not given out yet never is."""
        self._left.add(self._numbers[id(log)])

    def _tasks(self) -> Iterator[RangeTask[LogT]]:
        for number, log in enumerate(self._logs):
            try:
                with FileSource(log.path) as source:
                    start = self._start_of(log, source)
                    if source.size_bytes - start <= self._chunk_bytes:
                        yield RangeTask(number, log, BatchRange(start), None)
                        continue
                    for batch_range in batch_ranges(source, self._chunk_bytes, start=start):
                        if number in self._left:
                            break
                        yield RangeTask(number, log, batch_range, source.state)
            except KafkaLogError:
                yield RangeTask(number, log, BatchRange(), None)  # which meets it again

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
    """The chunks of a task's range; None, and Unsound is sent, where a CRC is wrong or something is damaged."""
    batch_range = task.batch_range
    chunks = []
    for chunk in batch_chunks(
        source,
        batch_range.start,
        batch_range.end,
        after_offset=batch_range.after_offset,
        limits=limits,
        chunk_bytes=chunk_bytes,
    ):
        if chunk.damage is not None or not chunk.table.crc_valid.all():
            outbox.send(Unsound(batch_range))  # what follows damage may be all the rest of the log: no more is read
            return None
        chunks.append(chunk)
    return chunks


def is_worth_sharing(paths: Sequence[Path], *, byte_s: float, compressed_byte_s: float, batch_s: float) -> bool:
    """Whether there is so much to do that several processes are sooner done than one.

    Judged by the first batches of the largest log, at so many seconds for each batch and for each byte.
    """
    sizes = [_size_of(path) for path in paths]
    if sum(sizes) < MIB:
        return False
    try:
        with FileSource(paths[sizes.index(max(sizes))]) as source:
            chunk = next(batch_chunks(source, with_bodies=False), None)
    except KafkaLogError:
        return False
    if chunk is None or not len(chunk.table):
        return False
    table = chunk.table
    work_s = batch_s / float(table.size_bytes.mean()) + (compressed_byte_s if table.codec.any() else byte_s)
    return work_s * sum(sizes) > _WORTH_S


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever reads it tells
