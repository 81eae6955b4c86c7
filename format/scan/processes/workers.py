"""Worker processes: tasks are distributed as they come, and results are received in the order of the tasks.

Workers are forks of this process, so they start in milliseconds and have all its objects. They only read, and end with
this process.
"""

from __future__ import annotations

import mmap
import os
import pickle
import select
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

from format.errors import WorkerDied
from format.scan.processes.outbox import (
    BUFFER,
    DONE,
    ERROR,
    FREE,
    LINES,
    PARTED,
    SLOT,
    SLOTS,
    TASK,
    Outbox,
    SharedBytes,
    places_of,
    read_frame,
    serve,
    write_frame,
)
from format.scan.processes.room import SLOT_BYTES

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

    @property
    def fds(self) -> tuple[int, int]:
        return self.tasks_fd, self.results_fd


class Workers:
    """``count`` forked processes that call ``do(task, outbox)``; close them, or use them as a context manager.

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
            for other in (tasks_out, results_in, *(fd for each in self._workers for fd in each.fds)):
                os.close(other)
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
                if kind == LINES:
                    self._free(worker, content[:1])
                elif kind == PARTED:
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
            if kind == LINES:
                slot, length = SLOT.unpack(content)
                start = slot * SLOT_BYTES
                try:
                    with memoryview(worker.shared)[start : start + length] as view:
                        yield SharedBytes(view)
                    del view
                finally:
                    self._free(worker, (slot,))
            elif kind == PARTED:
                yield from self._parted(worker, content)
            elif kind == ERROR:
                raise pickle.loads(content)
            else:
                yield pickle.loads(content)

    def _parted(self, worker: _Worker, content: bytes) -> Iterator[Any]:
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

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
