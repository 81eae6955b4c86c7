"""Processes that share work: tasks go out as they come, results come back in the tasks' order.

They are forks of the process that asks, so that they start in milliseconds and know all that it knows; they only
read, and end with it. Large results of bytes come through shared memory, everything else through pipes, pickled.
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from format.errors import WorkerDied
from format.io.freed_memory import keep_freed_memory
from format.limits import MIB

#: Shared memory of one worker: so many results of bytes may wait until they are asked for, of so many bytes each.
SLOTS = 4
SLOT_BYTES = 4 * MIB
#: Tasks that a worker is given before it is asked for their results, so that it never waits for one.
_TASKS_AHEAD = 2
_FRAME = struct.Struct("<cQ")
_SLOT = struct.Struct("<BI")
_TASK, _FREE, _ITEM, _LINES, _ERROR, _DONE = b"T", b"F", b"I", b"L", b"E", b"D"


class SharedBytes:
    """Bytes in shared memory: ``view`` is to be read, and let go, before the next result is asked for."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view


class Outbox:
    """What a task sends its results with, in the worker."""

    def __init__(self, tasks_fd: int, results_fd: int, shared: mmap.mmap) -> None:
        self._tasks_fd = tasks_fd
        self._results_fd = results_fd
        self._shared = memoryview(shared)
        self._free = list(range(SLOTS))
        self._tasks: deque[object] = deque()

    def send(self, item: object) -> None:
        """Any object that can be pickled."""
        _write_frame(self._results_fd, _ITEM, pickle.dumps(item, pickle.HIGHEST_PROTOCOL))

    def room(self) -> memoryview:
        """A free piece of shared memory, of SLOT_BYTES, to be filled and sent; waits for one."""
        while not self._free:
            self._receive()
        start = self._free[-1] * SLOT_BYTES
        return self._shared[start : start + SLOT_BYTES]

    def send_room(self, length: int) -> None:
        """The first bytes of what ``room`` gave last."""
        _write_frame(self._results_fd, _LINES, _SLOT.pack(self._free.pop(), length))

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
    """So many forked processes that call ``do(task, outbox)``; close them, or use them as a context.

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
            for _ in items:
                pass

    def _items(self, worker: _Worker, work: _Work) -> Iterator[Any]:
        while True:
            while not work.items:
                if work.is_done:
                    return
                self._receive()
            kind, content = work.items.popleft()
            if kind == _LINES:
                slot, length = _SLOT.unpack(content)
                start = slot * SLOT_BYTES
                with memoryview(worker.shared)[start : start + length] as view:
                    yield SharedBytes(view)
                del view
                self._write(worker, _FREE, bytes((slot,)))
            elif kind == _ERROR:
                raise pickle.loads(content)
            else:
                yield pickle.loads(content)

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
            if worker.pid:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
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
