"""ls --by: the disk space by topic, by codec or by age, over all paths together.

Bytes are those that the file system has allocated, as ``du`` counts them: a preallocated index has its largest possible
size, but almost nothing of it is allocated. A file with several names is counted once.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import msgspec

from format import layout
from format.columns import DISK_USAGE
from format.errors import NotALogDir
from format.findings import Finding, finding
from format.io.session import entries_of
from format.io.source import os_reason
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import allocated_bytes, parse_partition_dir
from format.node.target import Target
from format.rows.record_rows import Row
from format.scan.drivers import scan_logs, take_results
from format.scan.progress import Advance, no_progress
from format.scan.protocol import LogUnit
from format.state.log_headers import LogTotals
from format.verbs.ls.partition_listing import read_log_totals
from format.verbs.recompress.estimate import DEFAULT_SAMPLE_BYTES, EstimateScan, MeasuredPart, SumsByCodec, sampled
from format.verbs.recompress.new_batches import TargetFormat as NewCodec


class EstimateTerms(msgspec.Struct):
    """The target of recompression, and how many log bytes of each topic are measured (None: all).

    ``largest_topic_bytes`` is set by ``add_savings``.
    """

    target: NewCodec
    sample_bytes: int | None = DEFAULT_SAMPLE_BYTES
    largest_topic_bytes: int = 0


class LogShare(msgspec.Struct, frozen=True):
    """The bytes of one log that count in one row: those of one codec, or of all codecs (None)."""

    row: DiskUsage
    path: Path
    location: Location
    codec: int | None
    size_bytes: int
    allocated_bytes: int


def add_savings(
    shares: Sequence[LogShare], terms: EstimateTerms, *, limits: Limits = DEFAULT_LIMITS, advance: Advance = no_progress
) -> Iterator[Finding]:
    """Measure a sample of the logs, and add to each row what recompression would save.

    KRaft's metadata log is left out, since it is never compressed. Yields findings about logs that cannot be read.
    """
    topics: dict[str, list[LogShare]] = {}
    for share in shares:
        if share.location.topic is not None and share.location.topic != layout.CLUSTER_METADATA_TOPIC:
            topics.setdefault(share.location.topic, []).append(share)
    whole = [_pieces(topics[topic]) for topic in sorted(topics)]
    terms.largest_topic_bytes = max((sum(each.end for each in pieces) for pieces in whole), default=0)
    measured = [sampled(pieces, terms.sample_bytes) for pieces in whole]
    logs = [LogUnit(each.path, each.location, end=each.end) for pieces in measured for each in pieces]
    items = scan_logs(EstimateScan((terms.target,), limits), logs, advance=advance)
    for topic, pieces in zip(sorted(topics), measured, strict=True):
        sums = SumsByCodec((terms.target,))
        yield from take_results(items, len(pieces), sums.add)
        for share in topics[topic]:
            own, row = sums.total(share.codec), share.row
            ratio = own.ratio_of(own.measured[0])
            row.estimated_bytes = (row.estimated_bytes or 0) + round(share.size_bytes * ratio)
            row.saved_bytes = (row.saved_bytes or 0) + round(share.allocated_bytes * (1 - ratio))


def _pieces(shares: Sequence[LogShare]) -> list[MeasuredPart]:
    """The logs of some shares, each once."""
    sizes: dict[Path, MeasuredPart] = {}
    for share in shares:
        if share.path not in sizes:
            try:
                sizes[share.path] = MeasuredPart(share.location, share.path, share.path.lstat().st_size)
            except OSError:
                continue  # a live broker deleted it
    return list(sizes.values())


GROUPINGS = ("topic", "codec", "age")
_HOUR_MS = 3_600_000
#: The ages of segments: how far back the largest timestamp lies at the most.
_AGES = (
    ("last hour", _HOUR_MS),
    ("last day", 24 * _HOUR_MS),
    ("last 7 days", 7 * 24 * _HOUR_MS),
    ("last 30 days", 30 * 24 * _HOUR_MS),
    ("last 365 days", 365 * 24 * _HOUR_MS),
)
_OLDER, _FUTURE, _NO_TIMESTAMP = "older", "in the future", "no timestamp"


class DiskUsage(msgspec.Struct):
    """One row of columns.DISK_USAGE, which documents the fields."""

    by: str
    name: str | None
    allocated_bytes: int = 0
    size_bytes: int = 0
    log_bytes: int = 0
    leftover_bytes: int = 0
    partitions: set[str] = msgspec.field(default_factory=set)
    segment_count: int = 0
    estimated_bytes: int | None = None
    saved_bytes: int | None = None

    def row(self, allocated_bytes: int) -> Row:
        """The fields in the order of columns.DISK_USAGE; ``allocated_bytes`` is the total of all rows."""
        percent = round(100 * self.allocated_bytes / allocated_bytes) if allocated_bytes else 0
        return DISK_USAGE.row_of(self, partition_count=len(self.partitions), percent=percent)


class _File(msgspec.Struct, frozen=True):
    """One file or directory on disk, with the facts from its name."""

    path: Path
    size_bytes: int
    allocated_bytes: int
    topic: str | None = None
    number: int | None = None
    base_offset: int | None = None
    is_log: bool = False
    is_leftover: bool = False


def disk_usage(
    targets: Sequence[Target],
    by: str,
    now_ms: int,
    *,
    estimate: EstimateTerms | None = None,
    limits: Limits = DEFAULT_LIMITS,
    advance: Advance = no_progress,
) -> Iterator[DiskUsage | Finding]:
    """The usage below log directories and partitions, the largest first, after findings.

    Ages count back from ``now_ms``; ``estimate`` adds what recompression would save. Raises InputError for a path that
    is neither.
    """
    for target in targets:
        if target.kind not in (Kind.LOG_DIR, Kind.PARTITION):
            raise NotALogDir("ls --by adds up log directories and partitions", Location(str(target.path)))
    for target in targets:
        yield from target.unread_findings()
    sums = _Sums(by, now_ms)
    seen: set[tuple[int, int]] = set()
    for root, is_partition in _roots(targets):
        for files in _directories(root, is_partition, seen):
            if isinstance(files, Finding):
                yield files
                continue
            found: list[Finding] = []
            totals = {} if by == "topic" else _totals(files, found, limits, advance)
            yield from found
            for each in files:
                sums.add(each, totals)
    if estimate is not None:
        yield from add_savings(sums.log_shares, estimate, limits=limits, advance=advance)
    yield from sorted(
        sums.usages.values(), key=lambda each: (-each.allocated_bytes, each.name is None, each.name or "")
    )


def _roots(targets: Sequence[Target]) -> Iterator[tuple[Path, bool]]:
    """The log directories and partitions of the targets, and whether each is a partition."""
    for target in targets:
        if target.kind is Kind.PARTITION:
            yield target.path, True
        else:
            yield from ((each.path, False) for each in target.log_dirs)


#: Topic, number and mark of a partition directory.
_Parsed = tuple[str, int, str | None]


def _directories(root: Path, is_partition: bool, seen: set[tuple[int, int]]) -> Iterator[list[_File] | Finding]:
    """The files of each directory at and below a path, with the directory itself. Links are not followed.

    A partition is a directory directly in a log directory; everything below belongs to it.
    """
    waiting = [(root, parse_partition_dir(root.name) if is_partition else None)]
    while waiting:
        directory, parsed = waiting.pop()
        files: list[_File] = []
        try:
            with entries_of(directory) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
                _add_file(files, directory, directory.lstat(), parsed, seen)
        except OSError as error:
            yield finding("file-unreadable", Location(str(directory)), f"cannot list: {os_reason(error)}")
            continue
        below = []
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # a live broker deleted it
            if stat.S_ISDIR(status.st_mode):
                is_found = not is_partition and directory == root
                below.append((directory / entry.name, parse_partition_dir(entry.name) if is_found else parsed))
            else:
                _add_file(files, directory / entry.name, status, parsed, seen)
        waiting += reversed(below)
        yield files


def _add_file(
    files: list[_File], path: Path, status: os.stat_result, parsed: _Parsed | None, seen: set[tuple[int, int]]
) -> None:
    is_dir = stat.S_ISDIR(status.st_mode)
    if status.st_nlink > 1 and not is_dir:
        inode = (status.st_dev, status.st_ino)
        if inode in seen:
            return
        seen.add(inode)
    match = None if is_dir else layout.SEGMENT_FILE.match(path.name)
    size_bytes = status.st_size if stat.S_ISREG(status.st_mode) else 0
    files.append(
        _File(
            path,
            size_bytes,
            allocated_bytes(status),
            topic=None if parsed is None else parsed[0],
            number=None if parsed is None else parsed[1],
            base_offset=None if match is None else int(match["base_offset"]),
            is_log=match is not None and match["suffix"] == layout.LOG_SUFFIX and match["leftover"] is None,
            is_leftover=(parsed is not None and parsed[2] in ("delete", "stray"))
            or (match is not None and match["leftover"] is not None),
        )
    )


def _totals(files: list[_File], found: list[Finding], limits: Limits, advance: Advance) -> dict[int, LogTotals]:
    """The totals of each log of a directory, by base offset; findings are added to ``found``."""
    totals: dict[int, LogTotals] = {}
    logs = sorted((each for each in files if each.is_log), key=lambda each: each.base_offset or 0)
    for each, following in zip_longest(logs, logs[1:]):
        location = Location(str(each.path), each.topic, each.number, each.base_offset)
        log = LogUnit(each.path, location, None, None if following is None else following.base_offset)
        totals[each.base_offset or 0] = read_log_totals(log, found, limits=limits, advance=advance)
    return totals


class _Sums:
    """The rows of a listing while files are added."""

    def __init__(self, by: str, now_ms: int) -> None:
        self._by = by
        self._now_ms = now_ms
        self.usages: dict[str | None, DiskUsage] = {}
        self.log_shares: list[LogShare] = []

    def add(self, each: _File, totals: dict[int, LogTotals]) -> None:
        """Add one file; ``totals`` are those of the logs of its directory."""
        log = None if each.base_offset is None or each.is_leftover else totals.get(each.base_offset)
        if self._by == "codec":
            self._add_by_codec(each, log if each.is_log else None)
        elif self._by == "age":
            self._add(
                None if log is None else self._age(log.max_timestamp), each, each.allocated_bytes, each.size_bytes, log
            )
        else:
            self._add(each.topic, each, each.allocated_bytes, each.size_bytes, log)

    def _add_by_codec(self, each: _File, log: LogTotals | None) -> None:
        """Add the batches of a log under their codecs, and the rest of its bytes, as any other file, under no name."""
        allocated, size_bytes = each.allocated_bytes, each.size_bytes
        for codec, codec_bytes in enumerate([] if log is None else log.codec_bytes):
            if codec_bytes:
                share = min(round(each.allocated_bytes * codec_bytes / max(each.size_bytes, 1)), allocated)
                codec_bytes = min(codec_bytes, size_bytes)
                self._add(layout.CODEC_BITS_NAMES[codec], each, share, codec_bytes, log, codec)
                allocated, size_bytes = allocated - share, size_bytes - codec_bytes
        if log is None or allocated or size_bytes:
            self._add(None, each, allocated, size_bytes, None)

    def _add(
        self,
        name: str | None,
        each: _File,
        allocated: int,
        size_bytes: int,
        log: LogTotals | None,
        codec: int | None = None,
    ) -> None:
        usage = self.usages.get(name)
        if usage is None:
            usage = self.usages[name] = DiskUsage(self._by, name)
        usage.allocated_bytes += allocated
        usage.size_bytes += size_bytes
        if each.is_leftover:
            usage.leftover_bytes += allocated
        if each.topic is not None and (self._by == "topic" or each.is_log):
            usage.partitions.add(f"{each.topic}-{each.number}")
        if each.is_log:
            usage.log_bytes += size_bytes
            is_counted = not each.is_leftover and (log is not None or self._by == "topic")
            usage.segment_count += is_counted
            if is_counted and each.topic is not None:
                location = Location(str(each.path), each.topic, each.number, each.base_offset)
                self.log_shares.append(LogShare(usage, each.path, location, codec, size_bytes, allocated))

    def _age(self, max_timestamp: int | None) -> str:
        if max_timestamp is None:
            return _NO_TIMESTAMP
        if max_timestamp > self._now_ms:
            return _FUTURE
        return next((name for name, most in _AGES if self._now_ms - max_timestamp <= most), _OLDER)
