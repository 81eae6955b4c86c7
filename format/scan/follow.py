"""Following logs that grow: reads batches as they are appended, and reports what else happens to these logs.

The driver reads whole batches from all partitions in turn, in log order, one step at a time, and waits for more. The
caller makes parts of each step with its own walk. It waits by looking at the directories and files again and again, as
that works on every file system.
"""

from __future__ import annotations

import math
import select
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from format.errors import FileChanged, KafkaLogError
from format.findings import Finding, finding, finding_of
from format.io.source import FileSource
from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.batch_chunk import BatchRange
from format.node.log_dir import Kind, LogDir, read_log_dir
from format.node.partition import location_of_directory, parse_partition_dir
from format.node.target import Target
from format.scan.followed_partition import (
    FollowedEnd,
    FollowedPartition,
    end_behind_damage,
    end_of_table,
    inode_at,
    status_at,
    whole_batches,
)
from format.scan.protocol import LogParts, LogUnit, OpenedRange, PartT, ResultT, Room, Scan, Walk, own_room
from format.scan.selection import EVERYTHING, Selection

#: The time between two looks at all directories.
LOOK_S = 0.1
#: Looks take at most this part of the time: with many directories, they are further apart.
_MOST_OF_TIME = 1 / 50

#: A function that returns the state of a directory; a different value means that something changed.
Look = Callable[[], Hashable]


class Stopping(msgspec.Struct, frozen=True):
    """The conditions on which following ends.

    ``is_asked`` returns whether it is to end, and ``wake_fd`` becomes readable then (-1 for none). ``reader_fd`` is the
    descriptor that results are written to: following ends when its reader closes it (-1 for none).
    """

    is_asked: Callable[[], bool]
    wake_fd: int = -1
    reader_fd: int = -1


NEVER = Stopping(lambda: False)


class FollowedChanges:
    """The followed directories, which are looked at again and again for changes."""

    def __init__(self, stopping: Stopping = NEVER) -> None:
        self._stopping = stopping
        self._looks: dict[Path, tuple[Look, Hashable]] = {}
        self._poll = select.poll()
        self._next_look = 0.0
        self.reader_is_gone = False
        if stopping.wake_fd >= 0:
            self._poll.register(stopping.wake_fd, select.POLLIN)
        if stopping.reader_fd >= 0:
            self._poll.register(stopping.reader_fd, 0)  # errors are always reported

    def is_over(self) -> bool:
        """Whether following is to end."""
        return self.reader_is_gone or self._stopping.is_asked()

    def add(self, directory: Path, look: Look) -> None:
        """Follow a directory; changes before this call are not reported."""
        self._looks[directory] = look, look()

    def seen(self, directory: Path) -> None:
        """Take the present state of a directory as known, so that only later changes are reported."""
        known = self._looks.get(directory)
        if known is not None:
            self.add(directory, known[0])

    def forget(self, directory: Path) -> None:
        """Stop following a directory."""
        self._looks.pop(directory, None)

    def wait(self, most_s: float | None = None) -> set[Path]:
        """Wait until something may have changed, or following is to end; return the directories with changes.

        After ``most_s`` the wait ends, and the result is empty.
        """
        until = math.inf if most_s is None else time.monotonic() + most_s
        while not self.is_over():
            began = time.monotonic()
            if began >= self._next_look:
                changed = {path for path, (look, before) in self._looks.items() if look() != before}
                ended = time.monotonic()
                self._next_look = ended + max(LOOK_S, (ended - began) / _MOST_OF_TIME)
                if changed:
                    return changed
            if began >= until:
                break
            timeout_s = max(0.0, min(self._next_look, until) - time.monotonic())
            for fd, event in self._poll.poll(timeout_s * 1000 + 1):
                if fd == self._stopping.reader_fd and event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
                    self.reader_is_gone = True
        return set()


#: The time after which an incomplete batch with intact batches after it counts as damage.
_PATIENCE_S = 3.0
#: The times before a partition is read again: one that could not be read, and one whose file changed during reading.
_LOOK_AGAIN_S = 2.0
_SOON_S = 0.02


class FollowTerms(msgspec.Struct, frozen=True):
    """Where following starts, how much is read at once, and how it ends.

    Without a selection of offsets or times it starts at the end of each log, or at its start with ``from_start``.
    Partitions that appear later are read from their first record on.
    """

    selection: Selection = EVERYTHING
    from_start: bool = False
    step_bytes: int = MIB
    limits: Limits = DEFAULT_LIMITS
    stopping: Stopping = NEVER


class Grown(msgspec.Struct):
    """New whole batches: a range of one log, which must be read before the next event is requested."""

    partition: FollowedPartition
    log: LogUnit
    end: FollowedEnd
    _source: FileSource
    _range: BatchRange
    _room: Room
    error: KafkaLogError | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes of the batches."""
        return self.end.position - self._range.start

    def parts(self, walk: Walk[PartT]) -> LogParts[PartT]:
        """The parts that a walk makes of the batches. If they cannot be read to their end, ``error`` is set."""
        return LogParts(lambda parts: self._read(walk, parts))

    def _read(self, walk: Walk[PartT], parts: LogParts[PartT]) -> Iterator[PartT]:
        parts.state = self._source.state
        try:
            # The file is open, so it does not matter if it is renamed meanwhile, as when retention deletes it.
            chunks = walk.needs.chunks(self._source, self._range)
            yield from walk.parts(OpenedRange(self.log, self._source, self._range, chunks, self._room))
        except KafkaLogError as error:
            self.error = error


class Broken(msgspec.Struct, frozen=True):
    """The next batches of a partition do not continue those read before, for the reason in the finding."""

    partition: FollowedPartition
    finding: Finding


class CaughtUp(msgspec.Struct, frozen=True):
    """Everything was read, and the next event may take long."""

    partition_count: int = 0


Event = Grown | Broken | CaughtUp | Finding


class FollowDriver:
    """Follows the partitions of some targets, which must be directories."""

    def __init__(self, targets: Sequence[Target], terms: FollowTerms) -> None:
        self._targets = targets
        self._terms = terms
        self._changes = FollowedChanges(terms.stopping)
        self._room = own_room()
        self._errors: dict[Path, str] = {}  # the last of each path that cannot be read: each is reported once
        self._log_dirs: dict[Path, LogDir] = {}
        self._absent: set[Path] = set()
        self._begun = False
        self.partitions: dict[Path, FollowedPartition] = {}

    def begin(self) -> Iterator[Finding]:
        """Find the places where reading starts; batches that are appended later are read.

        Raises like ``Target.kind``.
        """
        self._begun = True
        selection = self._terms.selection
        at_end = not self._terms.from_start and selection.from_offset is None and selection.from_timestamp is None
        for target in self._targets:
            if target.kind is Kind.PARTITION:
                yield from self._add(target.path, at_end)
                continue
            yield from target.link_findings()
            for log_dir in target.log_dirs:
                self._log_dirs[log_dir.path] = log_dir
                self._changes.add(log_dir.path, partial(status_at, log_dir.path))
                yield from log_dir.unread_findings()
                for path in log_dir.partitions:
                    yield from self._add(path, at_end, is_named=False)

    def events(self) -> Iterator[Event]:
        """The events from now on, until following is to end."""
        if not self._begun:
            yield from self.begin()
        due = deque(self.partitions.values())
        while not self._changes.is_over():
            yield from self._read_all(due)
            if self._changes.is_over():
                return
            yield CaughtUp(len(self.partitions))
            for path in sorted(self._changes.wait(self._patience())):
                if path in self._log_dirs:
                    yield from self._appeared(path, due)
                elif path in self.partitions:
                    due.append(self.partitions[path])
            yield from self._look_for_absent(due)
            self._append_waiting(due)

    # -- partitions that come and go -----------------------------------------------------------------------------

    def _add(self, path: Path, at_end: bool, *, is_named: bool = True) -> Iterator[Finding]:
        """Follow the partition in a directory; marked directories are followed only if they were named."""
        parsed = parse_partition_dir(path.name)
        if path in self.partitions or (not is_named and parsed is not None and parsed[2] is not None):
            return
        try:
            partition = FollowedPartition.at(path, self._terms.selection)
            self.partitions[path] = partition
            self._changes.add(path, partition.look)  # before it is read, so that no change is missed
            partition.begin(at_end=at_end)
        except KafkaLogError as error:
            yield finding_of(error, location_of_directory(path))

    def _appeared(self, path: Path, due: deque[FollowedPartition]) -> Iterator[Event]:
        """Follow the new partitions of a log directory."""
        self._changes.seen(path)
        try:
            log_dir = read_log_dir(path)
        except KafkaLogError as error:
            if self._is_news(path, error):
                yield finding_of(error, Location(str(path)))
            return
        self._errors.pop(path, None)
        self._log_dirs[path] = log_dir
        for each in log_dir.partitions:
            if each not in self.partitions:
                yield from self._add(each, at_end=False, is_named=False)
                if each in self.partitions:
                    due.append(self.partitions[each])

    def _gone(self, partition: FollowedPartition) -> Iterator[Event]:
        path = partition.path
        del self.partitions[path]
        self._changes.forget(path)
        if path.parent not in self._log_dirs:
            self._absent.add(path)
        where = partition.listed.location().at(offset=partition.next_offset)
        words = "the directory no longer exists: the topic was deleted, or the partition was moved away"
        yield Broken(partition, finding("followed-log-gone", where, words))

    def _look_for_absent(self, due: deque[FollowedPartition]) -> Iterator[Event]:
        """Follow named directories again that were deleted and exist again."""
        for path in [each for each in sorted(self._absent) if inode_at(each) is not None]:
            self._absent.discard(path)
            yield from self._add(path, at_end=False)
            if path in self.partitions:
                due.append(self.partitions[path])

    # -- reading -----------------------------------------------------------------------------------------------

    def _read_all(self, due: deque[FollowedPartition]) -> Iterator[Event]:
        """Read partitions in turn, one step of each, until all are read."""
        readers = deque((each, self._read(each)) for each in dict.fromkeys(due))
        due.clear()
        while readers and not self._changes.is_over():
            partition, reader = readers.popleft()
            event = next(reader, None)
            if event is not None:
                yield event
                readers.append((partition, reader))

    def _read(self, partition: FollowedPartition) -> Iterator[Event]:
        """Read a partition up to its present end. An error is reported once, and reading is tried again later."""
        path = partition.path
        if self.partitions.get(path) is not partition:
            return
        try:
            inode = inode_at(path)
            if inode is None:
                yield from self._gone(partition)
                return
            self._changes.seen(path)
            partition.list_again(if_changed=True)
            if inode != partition.directory_inode:
                yield self._replaced(partition, inode)
            while True:
                file = partition.place_path
                self._changes.seen(path)  # before it is read, so that a change during reading is reported
                yield from self._steps(partition)
                if partition.place_path == file:
                    break
            self._errors.pop(path, None)
        except FileChanged:
            partition.look_again_at = time.monotonic() + _SOON_S
        except KafkaLogError as error:
            if self._is_news(path, error):
                yield finding_of(error, partition.listed.location())
            partition.look_again_at = time.monotonic() + _LOOK_AGAIN_S

    def _is_news(self, path: Path, error: KafkaLogError) -> bool:
        """Whether the last error of a path was another one."""
        before, self._errors[path] = self._errors.get(path), str(error)
        return before != str(error)

    def _replaced(self, partition: FollowedPartition, inode: tuple[int, int]) -> Broken:
        partition.restart()
        partition.directory_inode = inode
        self._changes.seen(partition.path)
        words = "replaced by another directory: the topic was deleted and created again, or the partition moved back"
        return Broken(partition, finding("followed-log-replaced", partition.listed.location(), words))

    def _steps(self, partition: FollowedPartition) -> Iterator[Event]:
        """Read on, segment by segment, up to the end of the log."""
        while True:
            source = partition.open()
            if source is None:
                if partition.place is not None:
                    partition.list_again()
                yield from self._place_again(partition)
                if partition.place is None:
                    return
                continue
            with source:
                if partition.has_been_cut(source):
                    partition.list_again()
                    yield Broken(partition, partition.cut())
                    continue
                next_segment = partition.next_segment()
                grown = self._step(partition, source, is_final=next_segment is not None)
                if grown is not None:
                    yield grown
                    if grown.error is not None:
                        raise grown.error
                    partition.took(grown.end)
                    continue
                if partition.place is not None and partition.place.is_deleted:
                    partition.place = None
                elif next_segment is None:
                    self._note_waiting(partition, source)
                    return
                else:
                    partition.enter(next_segment)

    def _place_again(self, partition: FollowedPartition) -> Iterator[Event]:
        if partition.is_to_begin:
            partition.begin(at_end=False)
            return
        found = partition.find_again()
        if found is not None:
            yield Broken(partition, found)

    def _step(self, partition: FollowedPartition, source: FileSource, *, is_final: bool) -> Grown | None:
        """The next batches of a file, None without a whole one; damage counts once it cannot be an unfinished write."""
        place = partition.place
        if place is None or source.size_bytes <= place.position:
            return None
        table = whole_batches(source, place.position, self._terms.step_bytes)
        if table is not None:
            return self._grown(partition, source, end_of_table(table))
        if not (is_final or place.is_deleted):
            is_patient = source.size_bytes - place.position != partition.waiting_bytes
            if is_patient or time.monotonic() - partition.waiting_since < _PATIENCE_S:
                return None
        behind = end_behind_damage(source, place.position, self._terms.limits)
        if is_final or place.is_deleted:
            end = FollowedEnd(source.size_bytes, partition.next_offset if behind is None else behind.next_offset)
            return self._grown(partition, source, end, is_final=True)
        return None if behind is None else self._grown(partition, source, behind)

    def _grown(
        self, partition: FollowedPartition, source: FileSource, end: FollowedEnd, *, is_final: bool = False
    ) -> Grown:
        path, position = Path(source.path), 0
        base_offset = None
        if partition.place is not None:
            position, base_offset = partition.place.position, partition.place.segment_base_offset
        segment = next((each for each in partition.listed.segments if each.base_offset == base_offset), None)
        location = partition.listed.location(path, base_offset)
        next_base_offset = None
        if is_final:  # without a next segment the file was deleted, and is complete
            following = partition.next_segment()
            next_base_offset = end.next_offset if following is None else following.base_offset
        log = LogUnit(path, location, segment, next_base_offset)
        after = partition.next_offset - 1 if partition.marks else None
        batch_range = BatchRange(position, None if is_final else end.position, after, position)
        return Grown(partition, log, end, source, batch_range, self._room)

    # -- when to look again --------------------------------------------------------------------------------------

    def _note_waiting(self, partition: FollowedPartition, source: FileSource) -> None:
        """Record the bytes after the last whole batch; if they stay the same, the file is read again later."""
        left = 0 if partition.place is None else source.size_bytes - partition.place.position
        if left != partition.waiting_bytes:
            partition.waiting_bytes, partition.waiting_since = left, time.monotonic()
            partition.look_again_at = partition.waiting_since + _PATIENCE_S if left else None

    def _patience(self) -> float | None:
        """The longest time to wait; None for no limit."""
        moments = [each.look_again_at for each in self.partitions.values() if each.look_again_at is not None]
        least = [max(0.0, min(moments) - time.monotonic())] if moments else []
        return min(least + ([_LOOK_AGAIN_S] if self._absent else []), default=None)

    def _append_waiting(self, due: deque[FollowedPartition]) -> None:
        now = time.monotonic()
        for each in self.partitions.values():
            if each.look_again_at is not None and now >= each.look_again_at:
                each.look_again_at = None
                due.append(each)


def follow_logs(scan: Scan[PartT, ResultT], driver: FollowDriver) -> Iterator[ResultT | Finding | CaughtUp]:
    """The results of a scan that keeps no state between ranges: each range of new batches is folded by itself."""
    for event in driver.events():
        if isinstance(event, Grown):
            yield from scan.fold(event.log, event.parts(scan))
        elif isinstance(event, Broken):
            yield event.finding
        else:
            yield event
