"""Worker processes: tasks are distributed as they come, and results are received in the order of the tasks.

Workers are forks of this process, so they start in milliseconds and have all its objects. They only read, and end with
this process. Results are pickled and sent through pipes, except for large buffers (numpy columns, bytes that were
written into ``room``), which are in shared memory.

A log is read in ranges: each process takes the next one. A range is a chunk of a single reader, so the results are the
same as with one reader if there is no damage. If a CRC is wrong or bytes are damaged, more than the range matters, and
the parent process reads the rest of that log. All ranges have the state of the file when the log was cut into ranges. A
worker that opens another file, or a shorter one, raises FileChanged, and the results of the log end there.

Units of small logs are folded whole, with all damage, by one worker: only their results are sent.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import select
import signal
import struct
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar, cast

import msgspec
import numpy as np
from msgspec.structs import replace

from format.errors import KafkaLogError, WorkerDied
from format.io.read_policy import keep_freed_memory
from format.io.source import FileSource, FileState
from format.limits import MIB, Limits
from format.log.batch_chunk import BatchChunk, BatchRange, batch_ranges
from format.log.walker import batch_chunks
from format.scan.protocol import SLOT_BYTES, ResultT, Room

#: The slots, of SLOT_BYTES each, in the shared memory of one worker: the most results of bytes that may wait.
SLOTS = 4
#: Smaller buffers of a result are part of its pickle.
_LARGE_BUFFER_BYTES = 32 * 1024
_FRAME = struct.Struct("<cQ")
#: A buffer in shared memory: its slot, start and length, and whether it is lent, and not to be copied.
BUFFER = struct.Struct("<BII?")
TASK, FREE, ITEM, ERROR, DONE = b"T", b"F", b"I", b"E", b"D"


class Outbox:
    """Sends the results of a task; it is used in the worker."""

    def __init__(self, tasks_fd: int, results_fd: int, shared: mmap.mmap) -> None:
        self._tasks_fd = tasks_fd
        self._results_fd = results_fd
        self._shared = memoryview(shared)
        self._address = _address_of(self._shared)
        self._free = list(range(SLOTS))
        self._streamed = 0  # bytes of the stream in the current room
        self._tasks: deque[object] = deque()

    def send(self, item: object) -> None:
        """Send an object that can be pickled.

        Its large buffers are sent in shared memory. Buffers in the last ``room`` are lent to the receiving process
        until it requests the next result; all others are copied.
        """
        self._flush()
        buffers: list[memoryview] = []
        copied_bytes = 0

        def stays_inside(buffer: pickle.PickleBuffer) -> bool:
            nonlocal copied_bytes
            content = buffer.raw()
            if self._position_in_room(content) is None:
                if content.nbytes < _LARGE_BUFFER_BYTES or copied_bytes + content.nbytes > SLOT_BYTES:
                    return True
                copied_bytes += content.nbytes
            buffers.append(content)
            return False

        pickled = pickle.dumps(item, pickle.HIGHEST_PROTOCOL, buffer_callback=stays_inside)
        write_frame(self._results_fd, ITEM, b"".join((bytes((len(buffers),)), *self._placed(buffers), pickled)))

    def _placed(self, buffers: list[memoryview]) -> Iterator[bytes]:
        """The place of each buffer in shared memory; buffers that are not in it are copied to another slot."""
        positions = [self._position_in_room(content) for content in buffers]
        lent_slot = self._free.pop() if any(each is not None for each in positions) else 0
        copy_slot, filled = -1, 0
        for content, position in zip(buffers, positions, strict=True):
            if position is not None:
                yield BUFFER.pack(lent_slot, position, content.nbytes, True)
                continue
            if copy_slot < 0:
                room = self.room()
                copy_slot = self._free.pop()
            room[filled : filled + content.nbytes] = content
            yield BUFFER.pack(copy_slot, filled, content.nbytes, False)
            filled += content.nbytes

    def _position_in_room(self, content: memoryview) -> int | None:
        """The index of some bytes in the last room, None for bytes outside it."""
        if not self._free or not content.nbytes:
            return None
        position = _address_of(content) - self._address - self._free[-1] * SLOT_BYTES
        return position if 0 <= position < SLOT_BYTES else None

    def room(self) -> memoryview:
        """Wait for a free slot of shared memory, and return it, to be filled and sent."""
        self._flush()
        return self._free_room()

    def _free_room(self) -> memoryview:
        while not self._free:
            self._receive()
        start = self._free[-1] * SLOT_BYTES
        return self._shared[start : start + SLOT_BYTES]

    def send_part(self, item: object) -> None:
        """Send an object, or bytes of a stream, which may be joined with later ones and split.

        Bytes are received as memoryviews, which must be released before the next result is requested.
        """
        if isinstance(item, (bytes, bytearray, memoryview)):
            self._stream(item)
        else:
            self.send(item)

    def _stream(self, content: bytes | bytearray | memoryview) -> None:
        rest = memoryview(content)
        while rest:
            room = self._free_room()
            count = min(len(rest), SLOT_BYTES - self._streamed)
            room[self._streamed : self._streamed + count] = rest[:count]
            self._streamed += count
            rest = rest[count:]
            if self._streamed == SLOT_BYTES:
                self._flush()

    def _flush(self) -> None:
        if self._streamed:
            length, self._streamed = self._streamed, 0
            self.send(pickle.PickleBuffer(self._free_room()[:length]))

    def _receive(self) -> None:
        kind, content = read_frame(self._tasks_fd)
        if kind == FREE:
            self._free.append(content[0])
        else:
            self._tasks.append(pickle.loads(content))

    def _next_task(self) -> object:
        while not self._tasks:
            self._receive()
        return self._tasks.popleft()

    def _finish(self, error: BaseException | None) -> None:
        self._flush()
        if error is not None:
            error.add_note("".join(traceback.format_exception(error)))
            try:
                content = pickle.dumps(error)
            except Exception:
                content = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
            write_frame(self._results_fd, ERROR, content)
        write_frame(self._results_fd, DONE, b"")


def serve(do: Callable[[Any, Outbox], None], outbox: Outbox) -> NoReturn:
    """The main loop of a worker: do tasks until the parent process closes the pipe, then exit."""
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C, or the end of the terminal, reaches all processes
        signal.signal(number, signal.SIG_IGN)  # and the parent ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # pages that the garbage collector does not write to remain shared
    keep_freed_memory()
    try:
        while True:
            task = outbox._next_task()
            error: BaseException | None = None
            try:
                do(task, outbox)
            except (EOFError, BrokenPipeError):
                raise
            except BaseException as caught:
                error = caught
            outbox._finish(error)
    except (EOFError, BrokenPipeError):
        os._exit(0)
    finally:
        os._exit(1)


def places_of(content: bytes) -> Iterator[tuple[int, int, int, bool]]:
    """The buffers of a result in shared memory: slot, start, length, and whether each is lent."""
    return cast("Iterator[tuple[int, int, int, bool]]", BUFFER.iter_unpack(content[1 : 1 + content[0] * BUFFER.size]))


def _address_of(content: memoryview) -> int:
    return int(np.frombuffer(content, np.uint8).__array_interface__["data"][0])


def write_frame(fd: int, kind: bytes, content: bytes) -> None:
    """Write a frame to a pipe. Raises BrokenPipeError if the other end is closed."""
    rest = memoryview(_FRAME.pack(kind, len(content)) + content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_frame(fd: int) -> tuple[bytes, bytes]:
    """Read a frame from a pipe: its kind and content. Raises EOFError if the other end is closed."""
    kind, length = cast("tuple[bytes, int]", _FRAME.unpack(_read_exactly(fd, _FRAME.size)))
    return kind, _read_exactly(fd, length)


def _read_exactly(fd: int, length: int) -> bytes:
    """Read ``length`` bytes. Raises EOFError if the other end is closed."""
    content = os.read(fd, length) if length <= 65536 else b""
    if len(content) == length:
        return content
    buffer = bytearray(length)
    buffer[: len(content)] = content
    at = len(content)
    with memoryview(buffer) as view:
        while at < length:
            got = os.readv(fd, [view[at:]])
            if not got:
                raise EOFError
            at += got
    return bytes(buffer)


#: The tasks that a worker has at a time, so that it never waits for one.
_TASKS_AHEAD = 2


class _Work(msgspec.Struct):
    """A task of a worker, and its results that were received and not consumed yet."""

    task: Any
    items: deque[tuple[bytes, bytes]] = msgspec.field(default_factory=deque)
    is_done: bool = False


class _Worker(msgspec.Struct):
    pid: int
    tasks_fd: int
    results_fd: int
    shared: mmap.mmap
    given: deque[_Work] = msgspec.field(default_factory=deque)


class Workers:
    """``count`` forked processes that call ``do(task, outbox)``; close them at the end.

    Each calls ``begin`` first, to release resources that only the parent may hold, such as a lock.
    """

    def __init__(self, count: int, do: Callable[[Any, Outbox], None], begin: Callable[[], None] = lambda: None) -> None:
        self._workers: list[_Worker] = []
        self._poll = select.poll()
        for _ in range(count):
            self._start(do, begin)

    def _start(self, do: Callable[[Any, Outbox], None], begin: Callable[[], None]) -> None:
        tasks_in, tasks_out = os.pipe()
        results_in, results_out = os.pipe()
        shared = mmap.mmap(-1, SLOTS * SLOT_BYTES)
        pid = os.fork()
        if pid == 0:
            # A pipe's end that remains open in this worker would hide from others that the parent has exited.
            for other in (tasks_out, results_in, *(each.tasks_fd for each in self._workers)):
                os.close(other)
            for each in self._workers:
                os.close(each.results_fd)
            begin()
            serve(do, Outbox(tasks_in, results_out, shared))
        os.close(tasks_in)
        os.close(results_out)
        self._workers.append(_Worker(pid, tasks_out, results_in, shared))
        self._poll.register(results_in, select.POLLIN)

    def results(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
        """Each task with its results, in order; results that were not consumed are dropped at the next task.

        Tasks are taken from the iterable when a worker can get them. The results raise the error of their task, and
        WorkerDied.
        """
        waiting = iter(tasks)
        given: deque[tuple[_Worker, _Work]] = deque()
        while True:
            while len(given) < _TASKS_AHEAD * len(self._workers):
                task = next(waiting, None)
                if task is None:
                    break
                worker = min(self._workers, key=lambda each: len(each.given))
                work = _Work(task)
                worker.given.append(work)
                given.append((worker, work))
                self._write(worker, TASK, pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            if not given:
                return
            worker, work = given.popleft()
            items = self._items(worker, work)
            yield work.task, items
            items.close()
            self._drop(worker, work)

    def _drop(self, worker: _Worker, work: _Work) -> None:
        """Drop all results of a task that were not consumed, including an error."""
        while True:
            while work.items:
                kind, content = work.items.popleft()
                if kind == ITEM:
                    self._free(worker, {each[0] for each in places_of(content)})
            if work.is_done:
                return
            self._receive()

    def _items(self, worker: _Worker, work: _Work) -> Generator[Any, None, None]:
        while True:
            while not work.items:
                if work.is_done:
                    return
                self._receive()
            kind, content = work.items.popleft()
            if kind == ERROR:
                raise pickle.loads(content)
            if content[0]:
                yield from self._with_buffers(worker, content)
            else:
                yield pickle.loads(memoryview(content)[1:])

    def _with_buffers(self, worker: _Worker, content: bytes) -> Iterator[Any]:
        """A result with buffers in shared memory, which are released when the next result is requested."""
        shared = memoryview(worker.shared)
        buffers: list[bytearray | memoryview] = []
        copied, lent = set(), set()
        for slot, start, length, is_lent in places_of(content):
            view = shared[slot * SLOT_BYTES + start : slot * SLOT_BYTES + start + length]
            if is_lent:
                buffers.append(view)
                lent.add(slot)
            else:
                buffers.append(bytearray(view))
                view.release()
                copied.add(slot)
        item = pickle.loads(memoryview(content)[1 + content[0] * BUFFER.size :], buffers=buffers)
        self._free(worker, copied)
        try:
            yield item
            del item
        finally:
            for each in buffers:
                if isinstance(each, memoryview):
                    each.release()
            shared.release()
            self._free(worker, lent)

    def _free(self, worker: _Worker, slots: Iterable[int]) -> None:
        for slot in slots:
            if worker.tasks_fd >= 0:  # not closed yet
                self._write(worker, FREE, bytes((slot,)))

    def _receive(self) -> None:
        """Wait for results of any task, and add them to its work."""
        ready = {fd for fd, _ in self._poll.poll()}
        for worker in self._workers:
            if worker.results_fd not in ready:
                continue
            try:
                kind, content = read_frame(worker.results_fd)
            except EOFError:
                self._raise_death(worker)
            if kind == DONE:
                worker.given.popleft().is_done = True
            else:
                worker.given[0].items.append((kind, content))

    def _write(self, worker: _Worker, kind: bytes, content: bytes) -> None:
        try:
            write_frame(worker.tasks_fd, kind, content)
        except BrokenPipeError:
            self._raise_death(worker)

    def _raise_death(self, worker: _Worker) -> NoReturn:
        _, status = os.waitpid(worker.pid, 0)
        worker.pid = 0
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with code {code}"
        raise WorkerDied(f"a worker process {how}")

    def close(self) -> None:
        """Kill the processes, which is safe, since they write only to this process."""
        for worker in self._workers:
            os.close(worker.tasks_fd)
            os.close(worker.results_fd)
            worker.tasks_fd = worker.results_fd = -1
            if worker.pid:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
            with suppress(BufferError):  # an error that is being raised may still refer to a result in this memory
                worker.shared.close()
        self._workers.clear()


class _UnitEnd(msgspec.Struct, frozen=True):
    """A worker sends this after the results of a unit."""

    number: int


#: The most units of a task, and the bytes of their logs that are enough for one.
_UNITS_OF_TASK = 16
_BYTES_OF_TASK = MIB


class SharedUnits(Generic[ResultT]):
    """Units that are folded whole by ``jobs`` worker processes, several small ones to a task; close it at the end.

    ``size_bytes`` has the units' numbers in their order, with the bytes of their logs. ``fold`` makes the results of a
    unit from its number, in a worker: it may make large bytes in the room that it is given.
    """

    def __init__(
        self, fold: Callable[[int, Room], Iterable[ResultT]], size_bytes: Mapping[int, int], jobs: int
    ) -> None:
        self._ends = deque(size_bytes)
        self._workers = Workers(jobs, partial(_send_units, fold))
        self._results = (item for _, items in self._workers.results(_tasks_of(size_bytes)) for item in items)

    def results(self, number: int) -> Iterator[ResultT]:
        """The results of a unit, which is requested once, after those with lower numbers.

        Raises the error of folding it, and WorkerDied.
        """
        for item in self._results:
            if isinstance(item, _UnitEnd):
                self._ends.popleft()
                if item.number == number:
                    return
            elif self._ends[0] == number:
                yield item

    def close(self) -> None:
        """End the processes."""
        self._workers.close()


def _tasks_of(size_bytes: Mapping[int, int]) -> Iterator[list[int]]:
    """The numbers of the units of each task."""
    task: list[int] = []
    filled = 0
    for number, size in size_bytes.items():
        task.append(number)
        filled += size
        if len(task) == _UNITS_OF_TASK or filled >= _BYTES_OF_TASK:
            yield task
            task, filled = [], 0
    if task:
        yield task


def _send_units(fold: Callable[[int, Room], Iterable[object]], numbers: list[int], outbox: Outbox) -> None:
    """Fold the units of a task, and send their results; runs in a worker."""
    for number in numbers:
        for result in fold(number, outbox.room):
            outbox.send_part(result)
        outbox.send(_UnitEnd(number))


class _Log(Protocol):
    @property
    def path(self) -> Path: ...


LogT = TypeVar("LogT", bound=_Log)


class Unsound(msgspec.Struct, frozen=True):
    """A worker sends this instead of results for a range with damage."""


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


class SharedRanges(Generic[LogT]):
    """Planned logs, and the processes that read them; close it at the end.

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


def sound_chunks(
    source: FileSource, task: RangeTask[LogT], limits: Limits, chunk_bytes: int
) -> list[BatchChunk] | None:
    """The chunks of a task's range; None if there is damage, or offsets do not rise."""
    if task.is_left:
        return None
    chunks, after_offset = [], task.batch_range.after_offset
    own_range = replace(task.batch_range, read_from=task.batch_range.start)
    for chunk in batch_chunks(source, own_range, limits=limits, chunk_bytes=chunk_bytes):
        if not chunk.is_sound_after(after_offset):
            return None  # damage may extend to the end of the log, so no more is read
        after_offset = chunk.table.last_offset_of(len(chunk.table) - 1)
        chunks.append(chunk)
    return chunks
