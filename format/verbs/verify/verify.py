"""verify: everything that the bytes can be held against, as findings; damage never stops the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from format.checks.log_dir_files import Checkpoints, check_log_dir_files, read_checkpoints
from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.location import Location
from format.node.file_location import location_of_file
from format.node.log_dir import Kind, LogDir, kind_of, read_log_dir
from format.node.partition import read_partition
from format.rows.side_file_rows import side_file_blocks
from format.verbs.verify.log_checks import verify_kraft_snapshot, verify_lone_segment
from format.verbs.verify.partition_checks import logs_of_partition, verify_partition
from format.verbs.verify.shared_walks import SharedWalks, are_worth_sharing
from format.verbs.verify.terms import NOT_CHECKED, Coverage, Verification
from format.verbs.verify.walk import Level, LogToWalk

__all__ = [
    "MOST_ALIKE",
    "NOT_CHECKED",
    "Coverage",
    "Level",
    "Verification",
    "bytes_to_walk",
    "checkpoints_beside",
    "limited",
    "logs_to_walk",
    "partition_dirs",
    "verify",
    "verify_log_dir_files",
    "verify_partition_dir",
]

#: Findings of one code in one file that are told one by one; the rest are counted in the last of them.
MOST_ALIKE = 100


def verify(path: Path, verification: Verification | None = None, *, kind: Kind | None = None) -> Iterator[Finding]:
    """Findings for what lies at ``path``, in a fixed order.

    Raises InputError for a path that is nothing of Kafka's; all else is a finding.
    """
    terms = verification or Verification()
    kind = kind or kind_of(path)
    logs = list(logs_to_walk(path, kind, terms)) if terms.jobs > 1 else []
    if not are_worth_sharing(logs):
        yield from _verify(path, kind, terms)
        return
    with SharedWalks(logs, terms.jobs) as walks:
        yield from _verify(path, kind, replace(terms, walks=walks))


def _verify(path: Path, kind: Kind, terms: Verification) -> Iterator[Finding]:
    if kind is Kind.LOG_DIR:
        yield from _verify_log_dir(read_log_dir(path), terms)
    elif kind is Kind.PARTITION:
        yield from verify_partition_dir(path, checkpoints_beside(path, terms), terms)
    elif kind is Kind.LOG:
        yield from limited(verify_lone_segment(path, terms))
    elif kind is Kind.KRAFT_SNAPSHOT:
        yield from limited(verify_kraft_snapshot(path, terms))
    else:
        terms.coverage.side_files += 1
        for item in side_file_blocks(path, kind, limits=terms.limits):
            if isinstance(item, Finding):
                yield item


def logs_to_walk(path: Path, kind: Kind, terms: Verification) -> Iterator[LogToWalk]:
    """The logs that will be walked over, in order; those of partitions that cannot be listed are left out."""
    if kind is Kind.LOG:
        yield LogToWalk(path, location_of_file(path), terms.level, terms.limits, True, terms.partition_count)
    for directory in partition_dirs(path, kind):
        try:
            partition = read_partition(directory)
        except KafkaLogError:
            continue
        yield from logs_of_partition(partition, terms)


def bytes_to_walk(path: Path, terms: Verification, *, kind: Kind | None = None) -> int:
    """How much ``verify`` will tell ``terms.advance``; nothing for a path that is nothing of Kafka's."""
    try:
        logs = list(logs_to_walk(path, kind or kind_of(path), terms))
    except KafkaLogError:
        return 0  # verify says why
    return sum(_size_of(log.path) for log in logs)


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def partition_dirs(path: Path, kind: Kind) -> list[Path]:
    """The partition directories below a path that can be verified each by itself; none for a single file."""
    if kind is Kind.LOG_DIR:
        return read_log_dir(path).partitions
    return [path] if kind is Kind.PARTITION else []


def _verify_log_dir(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    checkpoints, found = read_checkpoints(log_dir, terms.limits)
    yield from verify_log_dir_files(log_dir, checkpoints, found, terms)
    for path in log_dir.partitions:
        yield from verify_partition_dir(path, checkpoints, terms)


def verify_log_dir_files(
    log_dir: LogDir, checkpoints: Checkpoints, found: list[Finding], terms: Verification
) -> Iterator[Finding]:
    """Findings for a log directory's own files; ``checkpoints`` and ``found`` are what ``read_checkpoints`` gave."""
    if terms.level is not Level.FULL:
        return
    yield from limited(found)
    yield from limited(check_log_dir_files(log_dir, checkpoints, terms.limits))
    terms.coverage.side_files += len(log_dir.checkpoints) + (log_dir.meta_properties is not None)
    if log_dir.bootstrap_checkpoint is not None:
        yield from limited(verify_kraft_snapshot(log_dir.bootstrap_checkpoint, terms))


def verify_partition_dir(path: Path, checkpoints: Checkpoints, terms: Verification) -> Iterator[Finding]:
    """Findings for one partition directory; of ``checkpoints`` only what they say of this partition is used."""
    try:
        partition = read_partition(path)
    except KafkaLogError as error:
        yield finding_of(error, Location(str(path)))
        return
    terms.coverage.partitions += 1
    yield from limited(verify_partition(partition, checkpoints, terms))


def checkpoints_beside(path: Path, terms: Verification) -> Checkpoints:
    """The checkpoints of the log directory that a partition directory lies in, if it is one."""
    try:
        parent = read_log_dir(path.absolute().parent)
    except KafkaLogError:
        return Checkpoints()
    return read_checkpoints(parent, terms.limits)[0]


def limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, with at most MOST_ALIKE of one code in one file told one by one.

    The rest of them are counted, in a last finding of the same code that says so.
    """
    seen: Counter[tuple[str, str]] = Counter()
    held: dict[tuple[str, str], Finding] = {}
    for each in found:
        key = (each.code, each.location.path)
        seen[key] += 1
        if seen[key] <= MOST_ALIKE:
            yield each
        else:
            held[key] = each
    for key, last in held.items():
        yield more_like_it(last, seen[key] - MOST_ALIKE)


def more_like_it(last: Finding, count: int) -> Finding:
    """One finding for so many that are not told one by one."""
    return Finding(
        code=last.code,
        severity=last.severity,
        location=last.location,
        message=f"{count} more like it in this file, the last: {last.message}",
        certainty=last.certainty,
        next_step=last.next_step,
        lost_offsets=last.lost_offsets,
    )
