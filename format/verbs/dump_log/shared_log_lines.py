"""The lines of one large log, made by several processes. They are those that one makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from format.findings import Finding
from format.io.source import FileSource
from format.limits import MIB, Limits
from format.scan.shared_ranges import RangeTask, RestOfLog, SharedRanges, Unsound, is_worth_sharing, sound_chunks
from format.scan.workers import Outbox, SharedBytes
from format.verbs.dump_log.log_lines import LogLines
from format.verbs.dump_log.offset_gaps import OffsetGaps
from format.verbs.dump_log.options import INT32_MAX, DumpLogOptions

#: What is read of a log at once. The lines of two such chunks may wait until those before them are printed; where
#: there were more, a process would stand still until then.
_CHUNK_BYTES = 2 * MIB
#: What lines cost in seconds, for batches and for records: a batch, its bytes, its compressed bytes.
_BATCH_S = {False: 0.6e-6, True: 0.9e-6}
_BYTE_S = {False: 0.15e-9, True: 2e-9}
_COMPRESSED_BYTE_S = {False: 0.15e-9, True: 8e-9}


@dataclass(frozen=True, slots=True)
class _Log:
    path: Path


def are_worth_sharing(path: Path, options: DumpLogOptions) -> bool:
    """Whether several processes are sooner done with a log than one, and can do what the options ask for."""
    if options.emulate is not None or options.max_bytes != INT32_MAX:
        return False
    records = options.reads_records
    return is_worth_sharing(
        [path], byte_s=_BYTE_S[records], compressed_byte_s=_COMPRESSED_BYTE_S[records], batch_s=_BATCH_S[records]
    )


def shared_lines(
    source: FileSource, make: Callable[[FileSource], LogLines], log: LogLines, limits: Limits, jobs: int
) -> Iterator[bytes | memoryview | Finding]:
    """What ``log``, which ``make`` made of the source, would give as its lines; its gaps are filled as well.

    Memoryviews are to be used before the next item is asked for. Raises WorkerDied.
    """
    do = partial(_send_range, make=make, limits=limits, chunk_bytes=_CHUNK_BYTES)
    only = _Log(Path(source.path))
    with SharedRanges([only], jobs, _CHUNK_BYTES, do) as ranges:
        for item in ranges.items(only):
            if isinstance(item, SharedBytes):
                yield item.view
            elif isinstance(item, OffsetGaps):
                log.gaps.follow(item)
            elif isinstance(item, RestOfLog):
                yield from log.lines(item.batch_range.start, item.batch_range.after_offset)
            elif isinstance(item, Finding):
                yield item


def _send_range(
    task: RangeTask[_Log],
    outbox: Outbox,
    *,
    make: Callable[[FileSource], LogLines],
    limits: Limits,
    chunk_bytes: int,
) -> None:
    """The lines of a range, and then its gaps, in a worker."""
    if task.is_whole_log:
        outbox.send(Unsound(task.batch_range))
        return
    with FileSource(task.log.path, task.state) as source:
        chunks = sound_chunks(source, task, outbox, limits, chunk_bytes)
        if chunks is None:
            return
        log = make(source)
        shared = _SharedRoom(outbox)
        for chunk in chunks:
            for item in log.chunk_lines(chunk):
                if isinstance(item, Finding):
                    shared.flush()
                    outbox.send(item)
                else:
                    shared.add(item)
        shared.flush()
        outbox.send(log.gaps)


class _SharedRoom:
    """Bytes on their way through shared memory, so many at once as there is room for."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._room: memoryview | None = None
        self._filled = 0

    def add(self, content: bytes | memoryview) -> None:
        rest = memoryview(content)
        while rest:
            if self._room is None:
                self._room = self._outbox.room()
            count = min(len(rest), len(self._room) - self._filled)
            self._room[self._filled : self._filled + count] = rest[:count]
            self._filled += count
            rest = rest[count:]
            if self._filled == len(self._room):
                self.flush()

    def flush(self) -> None:
        if self._room is not None:
            self._outbox.send_room(self._filled)
            self._room, self._filled = None, 0
