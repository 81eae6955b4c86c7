"""Processes that share work: tasks go out as they come, results come back in the tasks' order.

They are forks of the process that asks, so that they start in milliseconds and know all that it knows; they only
read, and end with it. Results are pickled and come through pipes, but for their large buffers (numpy columns, bytes
that were written into ``room``), which come through shared memory.
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
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import numpy as np

from format.errors import WorkerDied
from format.io.freed_memory import keep_freed_memory
from format.scan.room import SLOT_BYTES

#: Shared memory of one worker: so many results of bytes may wait until they are asked for, of SLOT_BYTES each.
SLOTS = 4
#: Tasks that a worker is given before it is asked for their results, so that it never waits for one.
_TASKS_AHEAD = 2
#: A smaller buffer of a result stays in its pickle.
_LARGE_BUFFER_BYTES = 32 * 1024
_FRAME = struct.Struct("<cQ")
_SLOT = struct.Struct("<BI")
#: A buffer in shared memory: its slot, where it starts and how long it is, and whether it is lent or to be copied.
_BUFFER = struct.Struct("<BII?")
_TASK, _FREE, _ITEM, _PARTED, _LINES, _ERROR, _DONE = b"T", b"F", b"I", b"P", b"L", b"E", b"D"


class SharedBytes:
    """Bytes in shared memory: ``view`` must be released before the next result is requested."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view


class Outbox:
    """What a task sends its results with, in the worker."""

    def __init__(self, tasks_fd: int, results_fd: int, shared: mmap.mmap) -> None:
        self._tasks_fd = tasks_fd
        self._results_fd = results_fd
        self._shared = memoryview(shared)
        self._address = _address_of(self._shared)
        self._free = list(range(SLOTS))
        self._streamed = 0  # bytes of the stream that lie in the room
        self._tasks: deque[object] = deque()

    def send(self, item: object) -> None:
        """Any object that can be pickled.

        Its large buffers go through shared memory. Those that lie in what ``room`` gave last are lent to the process
        that asks until it asks for the next result; all others are copied.
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
        if buffers:
            _write_frame(self._results_fd, _PARTED, b"".join((bytes((len(buffers),)), *self._placed(buffers), pickled)))
        else:
            _write_frame(self._results_fd, _ITEM, pickled)

    def _placed(self, buffers: list[memoryview]) -> Iterator[bytes]:
        """Where each buffer lies in shared memory; those that do not are copied into a slot of their own."""
        positions = [self._position_in_room(content) for content in buffers]
        lent_slot = self._free.pop() if any(each is not None for each in positions) else 0
        copy_slot, filled = -1, 0
        for content, position in zip(buffers, positions, strict=True):
            if position is not None:
                yield _BUFFER.pack(lent_slot, position, content.nbytes, True)
                continue
            if copy_slot < 0:
                room = self.room()
                copy_slot = self._free.pop()
            room[filled : filled + content.nbytes] = content
            yield _BUFFER.pack(copy_slot, filled, content.nbytes, False)
            filled += content.nbytes

    def _position_in_room(self, content: memoryview) -> int | None:
        """Where in the room that was given last some bytes lie, None for bytes outside it."""
        if not self._free or not content.nbytes:
            return None
        position = _address_of(content) - self._address - self._free[-1] * SLOT_BYTES
        return position if 0 <= position < SLOT_BYTES else None

    def room(self) -> memoryview:
        """A free piece of shared memory, of SLOT_BYTES, to be filled and sent; waits for one."""
        self._flush()
        return self._free_room()

    def _free_room(self) -> memoryview:
        while not self._free:
            self._receive()
        start = self._free[-1] * SLOT_BYTES
        return self._shared[start : start + SLOT_BYTES]

    def send_room(self, length: int) -> None:
        """The first bytes of what ``room`` gave last."""
        _write_frame(self._results_fd, _LINES, _SLOT.pack(self._free.pop(), length))

    def stream(self, content: bytes | bytearray | memoryview) -> None:
        """Bytes that may be joined with those that follow, and cut; they come as SharedBytes."""
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
            self.send_room(length)

    def _receive(self) -> None:
        kind, content = _read_frame(self._tasks_fd)
        if kind == _FREE:
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
            _write_frame(self._results_fd, _ERROR, content)
        _write_frame(self._results_fd, _DONE, b"")


@dataclass(slots=True)
class _Work:
    """A task that was given to a worker, and the results that have come so far."""

    task: Any
    items: deque[tuple[bytes, bytes]] = field(default_factory=deque)
    is_done: bool = False


@dataclass(slots=True)
class _Worker:
    pid: int
    tasks_fd: int
    results_fd: int
    shared: mmap.mmap
    given: deque[_Work] = field(default_factory=deque)

    @property
    def fds(self) -> tuple[int, int]:
        return self.tasks_fd, self.results_fd


class Workers:
    """``count`` forked processes that call ``do(task, outbox)``; close them, or use them as a context.

    Each calls ``begin`` first: to let go of what only the one who asks may hold, as a lock.
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
            # An end of another's pipe that is open here would hide that the one who asks has gone.
            for other in (tasks_out, results_in, *(fd for each in self._workers for fd in each.fds)):
                os.close(other)
            begin()
            _serve(do, Outbox(tasks_in, results_out, shared))
        os.close(tasks_in)
        os.close(results_out)
        self._workers.append(_Worker(pid, tasks_out, results_in, shared))
        self._poll.register(results_in, select.POLLIN)

    def results(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Iterator[Any]]]:
        """Each task with its results, in order; what is not consumed of them is dropped when the next is asked for.

        Tasks are taken from the iterable no earlier than they can be given out. Raises what a task raised where its
        results would go on, and WorkerDied.
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
                self._write(worker, _TASK, pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
            if not given:
                return
            worker, work = given.popleft()
            items = self._items(worker, work)
            yield work.task, items
            items.close()
            self._drop(worker, work)

    def _drop(self, worker: _Worker, work: _Work) -> None:
        """Let go of all results of a task that nobody took, an error among them."""
        while True:
            while work.items:
                kind, content = work.items.popleft()
                if kind == _LINES:
                    self._free(worker, content[:1])
                elif kind == _PARTED:
                    self._free(worker, {each[0] for each in _places(content)})
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
            if kind == _LINES:
                slot, length = _SLOT.unpack(content)
                start = slot * SLOT_BYTES
                try:
                    with memoryview(worker.shared)[start : start + length] as view:
                        yield SharedBytes(view)
                    del view
                finally:
                    self._free(worker, (slot,))
            elif kind == _PARTED:
                yield from self._parted(worker, content)
            elif kind == _ERROR:
                raise pickle.loads(content)
            else:
                yield pickle.loads(content)

    def _parted(self, worker: _Worker, content: bytes) -> Iterator[Any]:
        """A result some of whose buffers lie in shared memory, given back once the next result is asked for."""
        shared = memoryview(worker.shared)
        buffers: list[bytearray | memoryview] = []
        copied, lent = set(), set()
        for slot, start, length, is_lent in _places(content):
            view = shared[slot * SLOT_BYTES + start : slot * SLOT_BYTES + start + length]
            if is_lent:
                buffers.append(view)
                lent.add(slot)
            else:
                buffers.append(bytearray(view))
                view.release()
                copied.add(slot)
        item = pickle.loads(memoryview(content)[1 + content[0] * _BUFFER.size :], buffers=buffers)
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
            if worker.tasks_fd >= 0:  # not closed meanwhile
                self._write(worker, _FREE, bytes((slot,)))

    def _receive(self) -> None:
        """Wait for results, of whichever task, and put them where they belong."""
        ready = {fd for fd, _ in self._poll.poll()}
        for worker in self._workers:
            if worker.results_fd not in ready:
                continue
            try:
                kind, content = _read_frame(worker.results_fd)
            except EOFError:
                self._raise_death(worker)
            if kind == _DONE:
                worker.given.popleft().is_done = True
            else:
                worker.given[0].items.append((kind, content))

    def _write(self, worker: _Worker, kind: bytes, content: bytes) -> None:
        try:
            _write_frame(worker.tasks_fd, kind, content)
        except BrokenPipeError:
            self._raise_death(worker)

    def _raise_death(self, worker: _Worker) -> NoReturn:
        _, status = os.waitpid(worker.pid, 0)
        worker.pid = 0
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"ended with code {code}"
        raise WorkerDied(f"a process that did part of the work {how}")

    def close(self) -> None:
        """End the processes, whatever they do: they write nothing but to this one."""
        for worker in self._workers:
            os.close(worker.tasks_fd)
            os.close(worker.results_fd)
            worker.tasks_fd = worker.results_fd = -1
            if worker.pid:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
            with suppress(BufferError):  # an error on its way up still holds a result: the memory goes when that does
                worker.shared.close()
        self._workers.clear()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _serve(do: Callable[[Any, Outbox], None], outbox: Outbox) -> NoReturn:
    """The life of a worker: tasks until the one who gives them is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the one who asks ends the others
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what no collection touches stays shared with the others
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


def _places(content: bytes) -> Iterator[tuple[int, int, int, bool]]:
    """The buffers of a result that lie in shared memory."""
    return cast("Iterator[tuple[int, int, int, bool]]", _BUFFER.iter_unpack(content[1 : 1 + content[0] * _BUFFER.size]))


def _address_of(content: memoryview) -> int:
    return int(np.frombuffer(content, np.uint8).__array_interface__["data"][0])


def _write_frame(fd: int, kind: bytes, content: bytes) -> None:
    rest = memoryview(_FRAME.pack(kind, len(content)) + content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _read_frame(fd: int) -> tuple[bytes, bytes]:
    kind, length = cast("tuple[bytes, int]", _FRAME.unpack(_read_exactly(fd, _FRAME.size)))
    return kind, _read_exactly(fd, length)


def _read_exactly(fd: int, length: int) -> bytes:
    """Raises EOFError where the other end is closed."""
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
