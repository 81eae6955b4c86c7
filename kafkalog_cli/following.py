"""Runs that follow logs, and their end: by Ctrl-C, SIGTERM or SIGHUP, or when the reader of the output is gone."""

from __future__ import annotations

import os
import select
import signal
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from format.node.target import Target
from format.scan.follow import CaughtUp, FollowTerms, Stopping
from format.wording import counted_plainly
from kafkalog_cli.options.reading import check_followable
from kafkalog_cli.output import ReaderGone
from kafkalog_cli.runner import Run

ItemT = TypeVar("ItemT")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stopped_by_signals() -> Iterator[Stopping]:
    """The context in which the first Ctrl-C, SIGTERM or SIGHUP ends following; the next one interrupts the run.

    A signal that was ignored before, as nohup does with SIGHUP, stays ignored. The pipe that wakes a wait is written to
    as the signal arrives: Python's handlers run later, which may be after the wait that follows.
    """
    asked = False
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    before = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True
        for each, handler in before.items():
            signal.signal(each, handler)

    for each in before:
        signal.signal(each, ask)
    wake_before = signal.set_wakeup_fd(wake_write)
    try:
        yield Stopping(lambda: asked, wake_read, _output_with_a_reader())
    finally:
        signal.set_wakeup_fd(wake_before)
        for each, handler in before.items():
            signal.signal(each, handler)
        os.close(wake_read)
        os.close(wake_write)


def _output_with_a_reader() -> int:
    """The file descriptor of standard output if it is a pipe or a socket, whose reader may go; else -1."""
    try:
        fd = sys.stdout.fileno()
        mode = os.fstat(fd).st_mode
    except (AttributeError, OSError, ValueError):
        return -1
    return fd if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else -1


def followed(
    run: Run, targets: Sequence[Target], follow: Callable[[FollowTerms], Iterable[ItemT | CaughtUp]]
) -> Iterator[ItemT]:
    """The items that ``follow`` yields until a signal ends it. The output is flushed whenever there are no more.

    Raises a usage error for a target that cannot be followed.
    """
    check_followable(targets)
    has_begun = False
    with stopped_by_signals() as stopping:
        for item in follow(FollowTerms(stopping=stopping)):
            if isinstance(item, CaughtUp):
                run.flush()
                if not has_begun:
                    partitions = counted_plainly(item.partition_count, "partition")
                    run.say_now(f"kafkalog: following {partitions}, until Ctrl-C.")
                    has_begun = True
            else:
                yield item
        if _is_gone(stopping.reader_fd):
            raise ReaderGone


def _is_gone(reader_fd: int) -> bool:
    """Whether nobody reads a pipe any more."""
    poll = select.poll()
    if reader_fd >= 0:
        poll.register(reader_fd, 0)
    return bool(poll.poll(0))
