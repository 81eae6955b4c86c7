"""grep over the replicas of partitions: a record that several of them have is found once, with all its places.

The logs of the replicas of a partition are searched in the order of their base offsets. So what was found below the
base offset of the next log can be compared, and no more than the matches of some segments are held.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from format.columns import RECORD
from format.files.meta_properties import ids_in
from format.findings import Finding
from format.layout import META_PROPERTIES
from format.limits import MIB
from format.node.log_dir import directory_around
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.drivers import scan_logs
from format.scan.protocol import LogParts, LogUnit, Needs, OpenedRange
from format.verbs.grep.grep import Found, FoundRows, GrepLines, Search, logs_to_search

_OFFSET, _KEY, _VALUE = (RECORD.names.index(name) for name in ("offset", "key", "value"))
#: What two replicas of a record have in common; a cleaner may give it another batch, and so another position.
_CONTENT = tuple(
    RECORD.names.index(name)
    for name in (
        "timestamp", "timestamp_type", "magic", "key", "value", "headers", "leader_epoch", "producer_id",
        "producer_epoch", "sequence", "is_transactional", "is_control",
    )
)  # fmt: skip
#: With more bytes of keys and values than this, what is held is shown without waiting for the other replicas.
_MOST_HELD_BYTES = 64 * MIB


class ReplicatedRecord(msgspec.Struct, frozen=True):
    """A record, the partition directories that have it, and those that have another record with its offset."""

    row: Row
    directories: tuple[Path, ...]
    differing: tuple[Path, ...] = ()


def found_in_replicas(targets: Sequence[Target], search: Search) -> Iterator[ReplicatedRecord | Finding]:
    """The records that ``grep`` finds, each once for all replicas of it below the targets, and findings.

    Raises InputError for a path that does not belong to Kafka or holds no records, and WorkerDied.
    """
    scan = _ReplicaScan(GrepLines.of(replace(search, style=None)))
    logs, replicas = _logs_of_replicas(targets, search)
    held = _Held({directory: number for number, directory in enumerate(replicas)})
    group: Hashable = None
    for item in scan_logs(scan, logs, jobs=search.jobs, advance=search.advance):
        if isinstance(item, Finding):
            yield item
            continue
        directory = item.log.path.parent
        own = replicas.get(directory)
        if own is None or own != group:
            yield from held.released()
        group = own
        if item.found is None:
            yield from held.released(item.log.location.base_offset)
            continue
        for row in item.found.rows:
            if own is None:
                yield ReplicatedRecord(row, (directory,))
            else:
                held.add(row, directory)
        if held.size_bytes > _MOST_HELD_BYTES:
            yield from held.released()
    yield from held.released()


class _InLog(msgspec.Struct, frozen=True):
    """What was found in a log; None at its start."""

    log: LogUnit
    found: FoundRows | None


class _ReplicaScan(msgspec.Struct, frozen=True):
    """grep as a scan that also says where each log starts."""

    lines: GrepLines

    @property
    def needs(self) -> Needs:
        return self.lines.needs

    def parts(self, opened: OpenedRange) -> Iterator[Found]:
        return self.lines.parts(opened)

    def fold(self, log: LogUnit, parts: LogParts[Found]) -> Iterator[_InLog | Finding]:
        """The start of the log, and the parts."""
        yield _InLog(log, None)
        for item in parts:
            if isinstance(item, Finding):
                yield item
            elif isinstance(item, FoundRows):
                yield _InLog(log, item)


def _logs_of_replicas(
    targets: Sequence[Target], search: Search
) -> tuple[Iterable[LogUnit | Finding], dict[Path, Hashable]]:
    """The logs to search, and for each directory that has other replicas, what all of them have in common."""
    logs = (log for target in targets for log in logs_to_search(target, search.criteria))
    if len(targets) == 1 and len(targets[0].log_dirs) <= 1:
        return logs, {}
    found = list(logs)
    groups: dict[Hashable, dict[Path, None]] = {}
    for directory, own in groupby(found, key=lambda each: None if isinstance(each, Finding) else each.path.parent):
        first = next(own)
        if directory is not None and isinstance(first, LogUnit):
            groups.setdefault(_identity(first), {})[directory] = None
    replicas = {directory: key for key, several in groups.items() if len(several) > 1 for directory in several}
    rank = {key: number for number, key in enumerate(groups)}
    in_order = sorted(
        (each for each in found if isinstance(each, LogUnit)),
        key=lambda log: (rank[_identity(log)], log.location.base_offset or 0 if log.path.parent in replicas else 0),
    )
    return [*(each for each in found if isinstance(each, Finding)), *in_order], replicas


def _identity(log: LogUnit) -> Hashable:
    """What the replicas of one partition have in common: its name and its cluster."""
    place = log.location
    if place.topic is None:
        return log.path
    return place.topic, place.partition, ids_in(directory_around(log.path.parent) / META_PROPERTIES)[1]


class _Held:
    """Records of several replicas that may be found again in others; ``rank`` is the order of the replicas."""

    def __init__(self, rank: Mapping[Path, int]) -> None:
        self._rank = rank
        self._rows: dict[int, list[tuple[Row, Path]]] = {}
        self.size_bytes = 0

    def add(self, row: Row, directory: Path) -> None:
        self._rows.setdefault(row[_OFFSET], []).append((row, directory))
        self.size_bytes += _size(row)

    def released(self, before: int | None = None) -> Iterator[ReplicatedRecord]:
        """The records below an offset, or all of them, in the order of offsets; they are held no longer."""
        for offset in sorted(each for each in self._rows if before is None or each < before):
            variants: dict[str, tuple[Row, dict[Path, None]]] = {}
            for row, directory in sorted(self._rows.pop(offset), key=lambda each: self._rank[each[1]]):
                self.size_bytes -= _size(row)
                content = repr([row[at] for at in _CONTENT])
                variants.setdefault(content, (row, {}))[1][directory] = None
            for content, (row, directories) in variants.items():
                differing = {each: None for other, (_, where) in variants.items() if other != content for each in where}
                yield ReplicatedRecord(
                    row, tuple(directories), tuple(each for each in differing if each not in directories)
                )


def _size(row: Row) -> int:
    decoded = sum(len(each) for each in row[len(RECORD.names) :] if isinstance(each, str))
    return decoded + sum(len(row[at]) for at in (_KEY, _VALUE) if row[at] is not None)
