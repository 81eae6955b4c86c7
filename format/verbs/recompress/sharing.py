"""Processes that make new batches, and compare what was written with its source, for the one that writes.

New batches come back in log order for every chunk that is plainly sound, through shared memory. Where one is not, the
process that writes does the whole segment by itself, so that what comes out never depends on who made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from format.io.source import FileSource, FileState
from format.layout import CODEC_NAMES, MAX_RELATIVE_OFFSET
from format.location import Location
from format.log.batch_chunk import BatchChunk
from format.log.batch_table import BatchTable
from format.log.control_records import ControlRecord
from format.log.legacy_messages import open_wrappers
from format.rewriting.index_builder import end_markers
from format.rewriting.intact_batches import offsets_agree
from format.scan.cost import is_worth_sharing
from format.scan.protocol import Cost
from format.scan.shared_ranges import RangeTask, RestOfLog, SharedRanges, Unsound, sound_chunks
from format.scan.workers import SLOT_BYTES, Outbox, SharedBytes, Workers
from format.verbs.recompress.new_batches import NewBatches, joined
from format.verbs.recompress.portions import out_of_order, portions
from format.verbs.recompress.read_back import compare_output
from format.verbs.recompress.rolled_segments import OutputRange
from format.verbs.recompress.terms import Recompression

#: New batches that are sent at once: enough that sending costs nothing.
_PORTION_BYTES = 1024 * 1024
#: What a batch costs in seconds, and a byte of records under each codec, at its usual level and with a thorough one.
_BATCH_S = 3e-6
_BYTE_S = {"none": 0.4e-9, "gzip": 13e-9, "snappy": 1.5e-9, "lz4": 1.2e-9, "zstd": 4e-9}
_MOST_USUAL_LEVEL = 9
_THOROUGH_BYTE_S = 25e-9
#: How many bytes of records one in a compressed log stands for.
_RECORD_BYTES_PER_BYTE = 3


@dataclass(frozen=True, slots=True, eq=False)
class LogToRecompress:
    """A log of the source; ``next_base_offset`` is that of the segment after it."""

    path: Path
    location: Location
    base_offset: int
    next_base_offset: int | None


@dataclass(frozen=True, slots=True)
class MadeChunk:
    """A chunk that is plainly sound, before its new batches: where it lies, and what the indexes need of it.

    ``transactional`` are its transactional and control batches, ``markers`` the control records by row of those.
    """

    start: int
    end: int
    first_offset: int
    last_offset: int
    transactional: BatchTable
    markers: dict[int, ControlRecord]


class Became(NamedTuple):
    """The bytes of a log from ``start`` to ``end``, and what was written for them."""

    start: int
    end: int
    outputs: tuple[OutputRange, ...]


@dataclass(frozen=True, slots=True)
class _Comparison:
    """For a worker: this much of a log became that."""

    path: Path
    state: FileState
    start: int
    end: int
    outputs: tuple[OutputRange, ...]
    location: Location


class SharedRecompression:
    """The processes, and the logs, known beforehand, that they make new batches of; close it, or use it as a context.

    Each process calls ``begin`` before it works. Fork them before any thread is there.
    """

    def __init__(
        self, logs: Sequence[LogToRecompress], terms: Recompression, begin: Callable[[], None] = lambda: None
    ) -> None:
        self._logs = {each.path: each for each in logs}
        self._terms = terms
        self._readers = Workers(terms.jobs, partial(_compare, terms), begin)
        self._makers = None
        if terms.plan.target.codec:  # else the one that writes has the most to do anyway
            self._makers = SharedRanges(logs, terms.jobs, terms.chunk_bytes, partial(_make, terms), begin=begin)

    @property
    def makes(self) -> bool:
        """Whether the processes make new batches; else they only compare."""
        return self._makers is not None

    def made(self, path: Path) -> Iterator[MadeChunk | NewBatches | None]:
        """The chunks of a log, in order, each before its new batches; None, and no more, where one is not sound.

        The logs are to be asked for in their order. Raises UnreadableFile, Refused, WorkerDied.
        """
        if self._makers is None:
            raise ValueError("these processes make no new batches")
        items = self._makers.items(self._logs[path])
        for item in items:
            if isinstance(item, RestOfLog):
                yield None
                return
            if isinstance(item, NewBatches):
                item = replace(item, content=_received(items, int(item.sizes_bytes.sum())))
            elif not isinstance(item, MadeChunk):
                raise TypeError(f"{item!r} came for new batches")
            yield item

    def leave(self, path: Path) -> None:
        """No more is wanted of a log."""
        if self._makers is not None:
            self._makers.leave(self._logs[path])

    def compare(self, source: FileSource, became: Iterable[Became], location: Location) -> Iterator[int]:
        """Read everything back and compare; yields source bytes as they are done. Raises as ``compare_output``."""
        path, state = Path(source.path), source.state
        tasks = (_Comparison(path, state, *each, location) for each in became)
        for task, items in self._readers.results(tasks):
            for _ in items:
                pass
            yield task.end - task.start

    def close(self) -> None:
        """End the processes."""
        if self._makers is not None:
            self._makers.close()
        self._readers.close()

    def __enter__(self) -> SharedRecompression:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def are_worth_sharing(logs: Sequence[LogToRecompress], terms: Recompression) -> bool:
    """Whether several processes are sooner done with these logs than one."""
    target = terms.plan.target
    byte_s = _BYTE_S[CODEC_NAMES[target.codec]]
    if (target.level or 0) > _MOST_USUAL_LEVEL:
        byte_s = max(byte_s, _THOROUGH_BYTE_S)
    cost = Cost(_BATCH_S, byte_s, _RECORD_BYTES_PER_BYTE * byte_s)
    return is_worth_sharing([log.path for log in logs], cost)


def _make(terms: Recompression, task: RangeTask[LogToRecompress], outbox: Outbox) -> None:
    """The new batches of one range, or of one whole log, in a worker."""
    log = task.log
    with FileSource(log.path, task.state) as source:
        chunks = sound_chunks(source, task, outbox, terms.limits, terms.chunk_bytes)
    if chunks is None:
        return
    after_offset = log.base_offset - 1 if task.batch_range.after_offset is None else task.batch_range.after_offset
    for chunk in chunks:
        open_wrappers(chunk, limits=terms.limits)
        if not _is_sound(chunk, log, after_offset, terms):
            outbox.send(Unsound(task.batch_range))
            return
        made = _made_chunk(chunk, terms)
        outbox.send(made)
        after_offset = made.last_offset
        if not _send_new_batches(chunk, log, terms, outbox):
            outbox.send(Unsound(task.batch_range))
            return


def _is_sound(chunk: BatchChunk, log: LogToRecompress, after_offset: int, terms: Recompression) -> bool:
    """Whether all batches are to be taken, for all that the chunk tells."""
    if not len(chunk.table) or chunk.buffer is None or out_of_order(chunk.table, after_offset + 1).any():
        return False
    if not terms.skip_damaged:
        return True
    # What salvage asks besides before it keeps a batch.
    most = log.base_offset + MAX_RELATIVE_OFFSET if log.next_base_offset is None else log.next_base_offset - 1
    return bool(offsets_agree(chunk).all()) and int(chunk.table.last_offset[-1]) <= most


def _made_chunk(chunk: BatchChunk, terms: Recompression) -> MadeChunk:
    table = chunk.table
    which: NDArray[np.bool_] = table.is_transactional | table.is_control
    return MadeChunk(
        int(table.position[0]),
        int(table.end_position[-1]),
        int(table.base_offset[0]),
        int(table.last_offset[-1]),
        table.rows(which),
        end_markers(chunk, which, terms.limits),
    )


def _send_new_batches(chunk: BatchChunk, log: LogToRecompress, terms: Recompression, outbox: Outbox) -> bool:
    """Send them; False where a batch cannot be made anew."""
    gathered: list[NewBatches] = []
    gathered_bytes = 0
    for portion in portions(chunk, np.ones(len(chunk.table), bool), terms.plan, terms.limits, log.location):
        if portion.error is not None:
            return False
        gathered.append(portion.batches)
        gathered_bytes += len(portion.batches.content)
        if gathered_bytes >= _PORTION_BYTES:
            _send(joined(gathered), outbox)
            gathered, gathered_bytes = [], 0
    if gathered:
        _send(joined(gathered), outbox)
    return True


def _send(batches: NewBatches, outbox: Outbox) -> None:
    """The columns, and then the content in as many pieces as it takes."""
    outbox.send(replace(batches, content=b""))
    content = memoryview(batches.content)
    for start in range(0, len(content), SLOT_BYTES):
        piece = content[start : start + SLOT_BYTES]
        outbox.room()[: len(piece)] = piece
        outbox.send_room(len(piece))


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


def _compare(terms: Recompression, task: _Comparison, outbox: Outbox) -> None:
    with FileSource(task.path, task.state) as source:
        compare_output(source, task.outputs, terms, task.location, start=task.start, end=task.end)
