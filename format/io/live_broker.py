"""Directories of a broker that may be running: who holds the lock, and repeated readings of what may change."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from format import layout
from format.errors import KafkaLogError
from format.findings import FINDING_CODES, Finding, Severity, finding, finding_of
from format.io.session import BundlePath
from format.io.source import os_reason
from format.location import Location
from format.wording import counted_plainly

#: The C library's struct flock: its format and where l_type and l_pid are in it; None where it is not known here.
_FLOCK: tuple[str, int, int] | None = None
if sys.platform == "linux" and struct.calcsize("P") == 8:
    _FLOCK = ("hhqqi4x", 0, 4)  # l_type, l_whence, l_start, l_len, l_pid
elif sys.platform == "darwin":
    _FLOCK = ("qqihh", 3, 2)  # l_start, l_len, l_pid, l_type, l_whence


class BrokerLock(msgspec.Struct, frozen=True):
    """Whether a process holds the lock. None means unknown, for the reason in ``reason``.

    ``pid`` is the process that holds it; None if no process does, or if the kernel does not report it (a process in
    another container, or on another host of a network file system).
    """

    path: str
    is_held: bool | None
    pid: int | None = None
    reason: str = ""

    @property
    def may_be_held(self) -> bool:
        """Whether a broker may be running: not only if a process holds the lock, but also if that is unknown."""
        return self.is_held is not False


def probe(path: str | os.PathLike[str]) -> BrokerLock:
    """Find out which process holds the lock.

    Opens the file read-only and raises nothing. A missing file is not held.
    """
    name = os.fspath(path)
    if isinstance(path, BundlePath):
        holder = path.lock_holder()
        return BrokerLock(name, holder is not None, holder or None)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return BrokerLock(name, False)
        return BrokerLock(name, None, reason=f"cannot open: {os_reason(error)}")
    except ValueError as error:  # a null character in the path
        return BrokerLock(name, None, reason=f"cannot open: {error}")
    try:
        return _probe(name, descriptor)
    finally:
        os.close(descriptor)


def _probe(name: str, descriptor: int) -> BrokerLock:
    if _FLOCK is None:
        return BrokerLock(name, None, reason="locks of this operating system are not supported")
    layout, type_index, pid_index = _FLOCK
    fields = [0] * 5
    fields[type_index] = fcntl.F_WRLCK  # report any lock that conflicts with the one that a broker takes
    try:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(layout, *fields))
    except OSError as error:
        return BrokerLock(name, None, reason=f"the file system does not report locks: {os_reason(error)}")
    found = struct.unpack(layout, answer)
    if found[type_index] == fcntl.F_UNLCK:
        return BrokerLock(name, False)
    pid = found[pid_index]
    return BrokerLock(name, True, pid if pid > 0 else None)


#: The longest time between two steps of one change by a broker on a busy host.
_PATIENCE_S = 3.0
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 0.8
#: The least number of readings of files that are never found at rest.
_LEAST_LOOKS = 4
#: The levels of findings about the bytes of one batch, which a broker never changes.
_LEVELS_OF_ONE_BATCH = ("crc", "records")

ResultT = TypeVar("ResultT")
_Accusation = tuple[str, str, int | None, int | None]


def is_broker_running(partition_dir: Path) -> bool:
    """Whether a process holds the lock of the log directory that a partition directory lies in."""
    return probe(partition_dir.absolute().parent / layout.LOCK).is_held is True


def comes_true(condition: Callable[[], bool], partition_dir: Path) -> bool:
    """Whether the condition holds now or, if a broker is running, within a few seconds."""
    if condition():
        return True
    if not is_broker_running(partition_dir):
        return False
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        time.sleep(_PAUSE_S)
        if condition():
            return True
    return False


def settled(
    first: tuple[list[Finding], ResultT], look: Callable[[], tuple[list[Finding], ResultT]], location: Location
) -> tuple[list[Finding], ResultT]:
    """What is found in a directory that a broker writes to: findings, and the result of the last reading.

    Findings that compare files are of several moments: the broker writes while one file is read after the other. So
    they are proven only if every reading of all the files gives them, for longer than one change by a broker takes.
    ``first`` is the first reading, and ``look`` lists the directory and reads its files once more. If no two readings
    agree, a finding of the code ``file-changed`` says so.
    """
    found, result = first
    accused = proven = _accusations(found)
    looks, began, pause_s = 1, time.monotonic(), _PAUSE_S
    while accused:
        is_long = time.monotonic() - began >= _PATIENCE_S
        if is_long and ((accused == proven and looks > 1) or looks >= _LEAST_LOOKS):
            break
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        found, result = look()
        looks += 1
        accused = _accusations(found)
        proven &= accused
    kept = [each for each in found if not _accuses(each) or _accusation(each) in proven]
    if len(kept) < len(found):
        codes = sorted({each.code for each in found if _accuses(each) and _accusation(each) not in proven})
        kept.append(
            finding(
                "file-changed",
                location,
                f"a broker changed the files in each of {counted_plainly(looks, 'reading')}: they cannot be compared "
                f"({', '.join(codes)})",
            )
        )
    return kept, result


def settled_findings(first: list[Finding], look: Callable[[], Iterable[Finding]], location: Location) -> list[Finding]:
    """The findings of ``settled``, for readings without another result; an error that ``look`` raises is a finding."""

    def again() -> tuple[list[Finding], None]:
        try:
            return list(look()), None
        except KafkaLogError as error:
            return [finding_of(error, location)], None

    return settled((first, None), again, location)[0]


def _accuses(found: Finding) -> bool:
    """Whether a finding speaks of damage that files of different moments may seem to have."""
    is_of_one_batch = FINDING_CODES[found.code].level in _LEVELS_OF_ONE_BATCH
    return found.severity > Severity.INFO and not found.is_incomplete and not is_of_one_batch


def _accusation(found: Finding) -> _Accusation:
    """What a finding says of which place; its message may have offsets that grow from reading to reading."""
    where = found.location
    return found.code, where.path, where.position, where.offset


def _accusations(findings: Iterable[Finding]) -> set[_Accusation]:
    return {_accusation(each) for each in findings if _accuses(each)}
