"""A log directory, a partition or a file, opened for reading."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from format.columns import BATCH, RECORD
from format.errors import InputError
from format.findings import Finding as _Finding
from format.io.remote_path import is_remote, path_of
from format.location import Location
from format.node.file_location import location_of_directory, location_of_file
from format.node.log_dir import Kind
from format.node.target import Target
from format.rows.record_rows import RowBlock
from format.scan.selected_logs import LOG_KINDS
from format.scan.selection import Selection
from format.timestamps import EPOCH
from format.verbs.dump.dump import DumpTerms, dumped_rows
from format.verbs.find.find import (
    REMOTE_VISIBILITY_BYTES,
    find_max_timestamp,
    find_offset,
    find_timestamp,
    partition_to_search,
)
from format.verbs.find.trace import Match as _Match
from format.verbs.find.trace import NotFound
from format.verbs.verify.verify import Level, VerifyTerms
from format.verbs.verify.verify import verify as verified
from kafkalog.results import Finding, Lookup, public_finding, public_match
from kafkalog.rows import Rows

#: A time: epoch milliseconds, or a datetime with a time zone.
Time = int | datetime


class Ranges(TypedDict, total=False):
    """Ranges of offsets and times, both ends included."""

    from_offset: int | None
    to_offset: int | None
    from_time: Time | None
    to_time: Time | None


def open(path: str | os.PathLike[str], *, kind: str | None = None) -> Log:
    """Open a log directory, a partition directory or a file; a directory above log directories opens all of them.

    ``path`` may be an address, such as ``s3://bucket/node-1``; each pass asks the store anew.

    ``kind`` says what the path is where its name does not, as ``--as`` does. Nothing but names is read. Raises
    InputError where nothing is there or ``kind`` is unknown, NotALogDir where nothing there is of Kafka.
    """
    return Log(path, kind=kind)


class Log:
    """What lies at a path; ``open`` makes it.

    ``kind`` is a kind of ``--as``, such as "log-dir", "partition" or "log". ``topic``, ``partition`` and
    ``base_offset`` come from names; None where they say nothing. Files are open during a pass only, and never written.
    """

    def __init__(self, path: str | os.PathLike[str], *, kind: str | None = None) -> None:
        self._is_remote = is_remote(os.fspath(path))
        if self._is_remote:
            from format.io import remote_files

            remote_files.know([os.fspath(path)])
        self.path = path_of(path)
        try:
            self._kind = None if kind is None else Kind(kind)
        except ValueError:
            raise InputError(f"there is no kind {kind!r}", Location(str(self.path))) from None
        found = self._target().kind
        self.kind: str = found.value
        location = Location(str(self.path))
        if found is Kind.PARTITION:
            location = location_of_directory(self.path)
        elif found is not Kind.LOG_DIR:
            location = location_of_file(self.path)
        self.topic = location.topic
        self.partition = location.partition
        self.base_offset = location.base_offset

    def __repr__(self) -> str:
        return f"kafkalog.open({str(self.path)!r})"

    def partitions(self) -> list[Log]:
        """The partitions here, by topic and number; those that a broker marked for deletion are among them."""
        return [Log(each.path, kind=Kind.PARTITION.value) for each in self._target().partitions()]

    def segments(self) -> list[Log]:
        """The ``.log`` files here, in order."""
        target = self._target()
        if target.kind is Kind.LOG:
            return [self]
        logs = (segment.log for each in target.partitions() for segment in each.segments)
        return [Log(log) for log in logs if log is not None]

    def records(
        self,
        *,
        columns: Sequence[str] | None = None,
        read_committed: bool = False,
        on_damage: str = "collect",
        **ranges: Unpack[Ranges],
    ) -> Rows:
        """The records, as ``kafkalog dump --records --raw`` shows them; keys, values and headers are bytes.

        ``columns`` are some of the row ``record``; what is not asked for is not built. Damaged batches are left out
        with a finding in ``Rows.findings``; ``on_damage="raise"`` raises DamageFound instead.
        """
        return self._rows(DumpTerms(True, _selection(read_committed, **ranges)), columns, on_damage)

    def batches(
        self, *, columns: Sequence[str] | None = None, on_damage: str = "collect", **ranges: Unpack[Ranges]
    ) -> Rows:
        """The batches, as ``kafkalog dump`` shows them; the parameters are those of ``records``."""
        return self._rows(DumpTerms(False, _selection(False, **ranges)), columns, on_damage)

    def find(self, *, offset: int | None = None, timestamp: Time | None = None, max_timestamp: bool = False) -> Lookup:
        """Look up an offset, the first record at or after a time, or the first with the largest timestamp.

        A broker looks up the same way, and answers the same. Raises InputError for what is no partition or segment.
        """
        if (offset is not None) + (timestamp is not None) + max_timestamp != 1:
            raise ValueError("give exactly one of offset, timestamp and max_timestamp")
        partition = partition_to_search(self.path)
        if offset is not None:
            limit = REMOTE_VISIBILITY_BYTES if self._is_remote else None
            steps = find_offset(partition, offset, visibility_limit=limit)
        elif timestamp is not None:
            steps = find_timestamp(partition, _milliseconds(timestamp))
        else:
            steps = find_max_timestamp(partition)
        findings: list[Finding] = []
        for step in steps:
            if isinstance(step, _Finding):
                findings.append(public_finding(step))
            elif isinstance(step, _Match):
                return Lookup(public_match(step), step.note, None, tuple(findings), step.bytes_read)
            elif isinstance(step, NotFound):
                answer = public_match(step.answer or step.nearest)
                return Lookup(None, step.reason, answer, tuple(findings), step.bytes_read)
        raise AssertionError("a look-up ends with a result")

    def verify(self, level: str = "full", *, jobs: int = 1) -> Iterator[Finding]:
        """The findings of ``kafkalog verify``, in its order, as they come; none means that all is sound.

        ``level`` is headers, crc, records or full. More than one of ``jobs`` forks processes, except at
        an address.
        """
        levels = {each.name.lower(): each for each in Level}
        if level not in levels:
            raise ValueError(f"{level!r} is not one of {', '.join(levels)}")
        terms = VerifyTerms(levels[level], jobs=1 if self._is_remote else jobs)
        return map(public_finding, verified(self._target(), terms))

    def _rows(self, terms: DumpTerms, columns: Sequence[str] | None, on_damage: str) -> Rows:
        if on_damage not in ("collect", "raise"):
            raise ValueError(f"on_damage is 'collect' or 'raise', not {on_damage!r}")
        if Kind(self.kind) not in LOG_KINDS:
            raise InputError(f"a file of the kind {self.kind} holds no batches", Location(str(self.path)))

        def blocks() -> Iterator[RowBlock | _Finding]:
            return dumped_rows(self._target(), terms)

        return Rows(RECORD if terms.records else BATCH, blocks, columns, on_damage == "raise")

    def _target(self) -> Target:
        """What lies there now: each pass lists the directory anew."""
        return Target(self.path, self._kind)


def _selection(
    read_committed: bool,
    from_offset: int | None = None,
    to_offset: int | None = None,
    from_time: Time | None = None,
    to_time: Time | None = None,
) -> Selection:
    """The ranges, half-open."""
    first = None if from_time is None else _milliseconds(from_time)
    last = None if to_time is None else _milliseconds(to_time) + 1
    return Selection(from_offset, None if to_offset is None else to_offset + 1, first, last, read_committed)


def _milliseconds(time: Time) -> int:
    if not isinstance(time, datetime):
        try:
            return operator.index(time)
        except TypeError:
            raise TypeError(f"a time is epoch milliseconds or a datetime with a time zone, not {time!r}") from None
    if time.tzinfo is None:
        raise ValueError("a datetime without a time zone: give one, such as datetime(2026, 11, 1, tzinfo=UTC)")
    difference = time - EPOCH
    return (difference.days * 86_400 + difference.seconds) * 1000 + difference.microseconds // 1000
