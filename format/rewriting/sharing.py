"""Worker processes that make new batches, and compare the written batches with the source, for the writing process.

New batches of chunks that are plainly sound come back in log order, through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import msgspec
from msgspec.structs import replace

from format.errors import UnreadableFile
from format.io.source import FileSource, FileState
from format.rewriting.read_back import Became
from format.rewriting.rewriter import Rewriter, SourceLog
from format.rewriting.sound_chunks import MadeChunk, MadeDigest, NotSound, made_chunks
from format.rewriting.written_batches import NewBatches
from format.scan.processes.outbox import Outbox, SharedBytes
from format.scan.processes.shared_ranges import RangeTask, RestOfLog, SharedRanges, Unsound, sound_chunks
from format.scan.processes.workers import Workers
from format.scan.progress import no_progress


class _Comparison(msgspec.Struct, frozen=True):
    """A task for a worker: compare a range of a log with what was written for it."""

    log: SourceLog
    state: FileState
    became: Became


class SharedRewriting:
    """The worker processes of a run; close it, or use it as a context manager.

    ``logs`` are all logs of which new batches will be made, in order. Each process calls ``begin`` before it works.
    They are forked here, which must happen before any thread is started.
    """

    def __init__(self, logs: Sequence[SourceLog], rewriter: Rewriter, begin: Callable[[], None] = lambda: None) -> None:
        self._logs = {each.path: each for each in logs}
        jobs = rewriter.terms.jobs
        self._readers = Workers(jobs, partial(_compare, rewriter), begin)
        self._makers = None
        if rewriter.shares_making:
            self._makers = SharedRanges(logs, jobs, rewriter.chunk_bytes, partial(_make, rewriter), begin=begin)

    @property
    def makes(self) -> bool:
        """Whether the processes make new batches; otherwise they only compare."""
        return self._makers is not None

    def made(self, log: SourceLog) -> Iterator[MadeChunk | NewBatches | MadeDigest]:
        """The chunks of a log in order, each before its new batches. Raises NotSound, Refused, WorkerDied.

        Logs must be requested in their order.
        """
        if self._makers is None:
            raise ValueError("these processes make no new batches")
        items = self._makers.items(self._logs[log.path])
        for item in items:
            if isinstance(item, RestOfLog):
                raise NotSound
            if isinstance(item, NewBatches):
                item = replace(item, content=_received(items, int(item.sizes_bytes.sum())))
            elif not isinstance(item, MadeChunk | MadeDigest):
                raise TypeError(f"{item!r} came for new batches")
            yield item

    def leave(self, log: SourceLog) -> None:
        """Stop making new batches of a log."""
        if self._makers is not None:
            self._makers.leave(self._logs[log.path])

    def read_back(self, source: FileSource, log: SourceLog, became: Iterable[Became]) -> Iterator[int]:
        """Read everything back and compare; yields the number of source bytes done.

        Raises as ``Rewriter.read_back``.
        """
        tasks = (_Comparison(log, source.state, each) for each in became)
        for task, items in self._readers.results(tasks):
            for _ in items:
                pass
            yield task.became.end - task.became.start

    def close(self) -> None:
        """End the processes."""
        if self._makers is not None:
            self._makers.close()
        self._readers.close()

    def __enter__(self) -> SharedRewriting:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _make(rewriter: Rewriter, task: RangeTask[SourceLog], outbox: Outbox) -> None:
    """The new batches of one range, or of one whole log, in a worker."""
    log, batch_range = task.log, task.batch_range
    if task.is_left:
        outbox.send(Unsound(batch_range))
        return
    try:
        with FileSource(log.path, task.state) as source:
            chunks = sound_chunks(source, task, outbox, rewriter.terms.limits, rewriter.chunk_bytes)
        for item in made_chunks(chunks or (), log, rewriter, batch_range.after_offset):
            if isinstance(item, NewBatches):
                outbox.send(replace(item, content=b""))  # the columns, and then the content
                outbox.stream(item.content)
            else:
                outbox.send(item)
    except (NotSound, UnreadableFile):
        outbox.send(Unsound(batch_range))


def _received(items: Iterator[object], length: int) -> bytes | bytearray:
    parts = bytearray()
    while len(parts) < length:
        item = next(items)
        if not isinstance(item, SharedBytes):
            raise TypeError(f"{item!r} came for the content of new batches")
        if len(item.view) == length:
            return bytes(item.view)
        parts += item.view
    return parts


def _compare(rewriter: Rewriter, task: _Comparison, outbox: Outbox) -> None:
    with FileSource(task.log.path, task.state) as source:
        rewriter.read_back(source, [task.became], None, task.log.location, no_progress)
