"""Processes that share work: order, large results through shared memory, errors."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pickle import PickleBuffer

import numpy as np
from numpy.typing import NDArray

from format.errors import KafkaLogError
from format.scan.processes import Outbox, Workers
from format.scan.protocol import SLOT_BYTES


def _task(task: int, outbox: Outbox) -> None:
    for number in range(task):
        outbox.send((task, number))
        room = outbox.room()
        room[:2] = bytes((task, number))
        outbox.send(PickleBuffer(room[:2]))
    if task == 5:
        raise KafkaLogError("five")
    if task == 6:
        raise ZeroDivisionError("six")


def test_results_come_in_the_order_of_the_tasks() -> None:
    seen: list[object] = []
    with closing(Workers(3, _task)) as workers:
        for task, items in workers.results(range(1, 12)):
            if task == 9:
                continue  # nobody looks at these
            try:
                for each in items:
                    seen.append(bytes(each) if isinstance(each, memoryview) else each)
            except (KafkaLogError, ZeroDivisionError) as error:
                seen.append(str(error).splitlines()[0])
    expected: list[object] = []
    for task in range(1, 12):
        if task != 9:
            for number in range(task):
                expected += [(task, number), bytes((task, number))]
            expected += [word for word in ("five", "six") if task == {"five": 5, "six": 6}[word]]
    assert seen == expected


@dataclass
class Lines:
    """A result with bytes that may lie in the room, and columns."""

    content: memoryview
    columns: NDArray[np.int64]

    def __reduce__(self) -> tuple[object, ...]:
        return _lines, (PickleBuffer(self.content), self.columns)


def _lines(content: memoryview, columns: NDArray[np.int64]) -> Lines:
    return Lines(content if isinstance(content, memoryview) else memoryview(content), columns)


def _send_lines(task: int, outbox: Outbox) -> None:
    """Bytes in the room or not, and columns from none to more than fit into shared memory."""
    for number, rows in enumerate((0, 100, 50_000, SLOT_BYTES // 8 + 1)):
        columns = np.arange(rows, dtype=np.int64) + task
        room = outbox.room()
        length = 1000 * (number + 1)
        room[:length] = bytes([task]) * length
        outbox.send(Lines(room[10:length], columns))
        outbox.send(Lines(memoryview(bytes([task]) * 100_000), columns))


def test_large_buffers_come_as_they_were_sent() -> None:
    count = 0
    kept = []
    with closing(Workers(2, _send_lines)) as workers:
        for task, items in workers.results(range(1, 6)):
            for each in items:
                assert bytes(each.content) == bytes([task]) * len(each.content)
                assert len(each.content) in (990, 1990, 2990, 3990, 100_000)
                assert (each.columns == np.arange(len(each.columns)) + task).all()
                kept.append((task, each.columns))
                count += 1
    assert count == 5 * 8
    for task, columns in kept:  # they lie in memory of their own
        assert not len(columns) or columns[0] == task


def _stream(task: int, outbox: Outbox) -> None:
    for number in range(100):
        outbox.send_part(bytes([number]) * (task * 1000))
    outbox.send("end")
    outbox.send_part(b"")
    outbox.send_part(b"more")


def test_a_stream_is_joined_and_cut() -> None:
    with closing(Workers(2, _stream)) as workers:
        for task, items in workers.results((1, 60, 3)):
            streamed = b""
            others = []
            pieces = 0
            for each in items:
                if isinstance(each, memoryview):
                    streamed += bytes(each)
                    pieces += 1
                else:
                    others.append((each, len(streamed)))
            assert streamed == b"".join(bytes([number]) * (task * 1000) for number in range(100)) + b"more"
            assert others == [("end", 100 * task * 1000)]
            assert pieces == -(-100 * task * 1000 // SLOT_BYTES) + 1
