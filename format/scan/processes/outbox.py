"""Sending of results by a worker process: frames in a pipe, and large buffers in shared memory.

Results are pickled and sent through pipes, except for large buffers (numpy columns, bytes that were written into
``room``), which are in shared memory.
"""

from __future__ import annotations

import gc
import mmap
import os
import pickle
import signal
import struct
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import numpy as np

from format.io.read_policy import keep_freed_memory
from format.scan.processes.room import SLOT_BYTES

#: The slots, of SLOT_BYTES each, in the shared memory of one worker: the most results of bytes that may wait.
SLOTS = 4
#: Smaller buffers of a result are part of its pickle.
_LARGE_BUFFER_BYTES = 32 * 1024
_FRAME = struct.Struct("<cQ")
SLOT = struct.Struct("<BI")
#: A buffer in shared memory: its slot, start and length, and whether it is lent, and not to be copied.
BUFFER = struct.Struct("<BII?")
TASK, FREE, ITEM, PARTED, LINES, ERROR, DONE = b"T", b"F", b"I", b"P", b"L", b"E", b"D"


class SharedBytes:
    """Bytes in shared memory: ``view`` must be released before the next result is requested."""

    __slots__ = ("view",)

    def __init__(self, view: memoryview) -> None:
        self.view = view


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
        if buffers:
            write_frame(self._results_fd, PARTED, b"".join((bytes((len(buffers),)), *self._placed(buffers), pickled)))
        else:
            write_frame(self._results_fd, ITEM, pickled)

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

    def send_room(self, length: int) -> None:
        """Send the first ``length`` bytes of the last room."""
        write_frame(self._results_fd, LINES, SLOT.pack(self._free.pop(), length))

    def stream(self, content: bytes | bytearray | memoryview) -> None:
        """Send bytes of a stream, which may be joined with later ones and split; they are received as SharedBytes."""
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
