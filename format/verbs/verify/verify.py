"""verify: everything that the bytes can be held against, as findings; damage never stops the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from format.checks.log_dir_files import check_duplicate_partitions, check_log_dir_files
from format.checks.topic_ids import check_topic_ids
from format.errors import KafkaLogError
from format.findings import Finding, finding_of
from format.node.checkpoints import Checkpoints
from format.node.file_location import location_of_directory, location_of_file
from format.node.log_dir import Kind, LogDir
from format.node.partition import Partition, read_partition
from format.node.target import Target, nothing_to_read, target_at
from format.rows.side_file_rows import side_file_blocks
from format.scan.cost import size_of
from format.scan.drivers import may_be_shared, open_driver
from format.scan.protocol import LogUnit
from format.verbs.verify.log_checks import verify_kraft_snapshot, verify_lone_segment
from format.verbs.verify.partition_checks import logs_of_partition, verify_partition
from format.verbs.verify.terms import NOT_CHECKED, Coverage, Verification
from format.verbs.verify.walk import Level

__all__ = [
    "MOST_ALIKE",
    "NOT_CHECKED",
    "Coverage",
    "Level",
    "Verification",
    "bytes_to_verify",
    "limited",
    "logs_to_verify",
    "verify",
    "verify_log_dir_files",
    "verify_nodes",
    "verify_partition_dir",
]

#: Findings of one code in one file that are reported one by one; the rest are counted in the last of them.
MOST_ALIKE = 100


def verify(
    path: Path | Target, verification: Verification | None = None, *, kind: Kind | None = None
) -> Iterator[Finding]:
    """Findings for what lies at ``path``, in a fixed order.

    Raises InputError for a path that is nothing of Kafka's; all else is a finding.
    """
    terms = verification or Verification()
    target = target_at(path, kind)
    if terms.driver is not None:
        yield from _verify(target, terms)
        return
    logs = list(logs_to_verify(target)) if terms.jobs > 1 and may_be_shared(terms.walk) else []
    with open_driver(terms.walk, logs, terms.jobs, terms.advance) as driver:
        yield from _verify(target, replace(terms, driver=driver))


def verify_nodes(targets: Iterable[Target], terms: Verification) -> Iterator[Finding]:
    """Findings about the log directories of one node together; each target was verified before."""
    if terms.level is Level.FULL:
        log_dirs = [log_dir for target in targets for log_dir in target.log_dirs]
        yield from limited(check_duplicate_partitions(log_dirs, terms.limits))


def _verify(target: Target, terms: Verification) -> Iterator[Finding]:
    kind, path = target.kind, target.path
    if kind is Kind.LOG_DIR:
        yield from target.link_findings()
        for log_dir in target.log_dirs:
            yield from _verify_log_dir(log_dir, terms)
        yield from _nothing_to_read(target)
    elif kind is Kind.PARTITION:
        checkpoints = target.checkpoints_around(terms.limits)
        yield from _verify_partition_dir(path, lambda: target.partition, checkpoints, terms)
        yield from _nothing_to_read(target)
    elif kind is Kind.LOG:
        yield from limited(verify_lone_segment(path, terms))
    elif kind is Kind.KRAFT_SNAPSHOT:
        yield from limited(verify_kraft_snapshot(path, terms))
    else:
        terms.coverage.side_files += 1
        for item in side_file_blocks(path, kind, limits=terms.limits):
            if isinstance(item, Finding):
                yield item


def _nothing_to_read(target: Target) -> Iterator[Finding]:
    """The finding where no segment was found, and nothing else says why."""
    listed = list(target.partitions())
    expected = 1 if target.kind is Kind.PARTITION else sum(len(each.partitions) for each in target.log_dirs)
    if len(listed) == expected and not any(partition.segments or partition.unexpected for partition in listed):
        yield nothing_to_read(target)


def logs_to_verify(target: Target) -> Iterator[LogUnit]:
    """The logs in the order in which they are read, but those of partitions that cannot be listed.

    A target lists each partition once, so that a log that goes after this is not passed over in silence.
    """
    if target.kind is Kind.LOG:
        yield LogUnit(target.path, location_of_file(target.path))
    for partition in target.partitions():
        yield from logs_of_partition(partition)


def bytes_to_verify(path: Path | Target, *, kind: Kind | None = None) -> int:
    """How many bytes ``verify`` counts as progress; none for a path that is nothing of Kafka's."""
    try:
        return sum(size_of(log.path) for log in logs_to_verify(target_at(path, kind)))
    except KafkaLogError:
        return 0  # verify says why


def _verify_log_dir(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    # Checkpoints come before the logs: a broker that runs meanwhile only moves the logs' ends past them.
    checkpoints = log_dir.checkpoints(terms.limits)
    yield from verify_log_dir_files(log_dir, terms)
    for path in log_dir.partitions:
        yield from _verify_partition_dir(path, partial(log_dir.partition, path), checkpoints, terms)


def verify_log_dir_files(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    """Findings for a log directory's own files."""
    if terms.level is not Level.FULL:
        return
    from format.verbs.boot.refusals import refusal_findings  # only here: it takes a fifth of the start of a short run

    checkpoints = log_dir.checkpoints(terms.limits)
    yield from limited(checkpoints.findings)
    yield from limited(check_log_dir_files(log_dir, checkpoints, terms.limits))
    yield from limited(check_topic_ids(log_dir, terms.limits))
    yield from limited(refusal_findings(log_dir.path, terms.limits))
    terms.coverage.side_files += len(log_dir.checkpoint_paths) + (log_dir.meta_properties is not None)
    if log_dir.bootstrap_checkpoint is not None:
        yield from limited(verify_kraft_snapshot(log_dir.bootstrap_checkpoint, terms))


def verify_partition_dir(path: Path, checkpoints: Checkpoints, terms: Verification) -> Iterator[Finding]:
    """Findings for one partition directory; of ``checkpoints`` only what they say of this partition is used."""
    yield from _verify_partition_dir(path, partial(read_partition, path), checkpoints, terms)


def _verify_partition_dir(
    path: Path, listed: Callable[[], Partition], checkpoints: Checkpoints, terms: Verification
) -> Iterator[Finding]:
    try:
        partition = listed()
    except KafkaLogError as error:
        yield finding_of(error, location_of_directory(path))
        return
    terms.coverage.partitions += 1
    yield from limited(verify_partition(partition, checkpoints, terms))


def limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, with at most MOST_ALIKE of one code in one file reported one by one.

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
    """One finding for so many that are not reported one by one."""
    return Finding(
        code=last.code,
        severity=last.severity,
        location=last.location,
        message=f"{count} more like it in this file, the last: {last.message}",
        certainty=last.certainty,
        next_step=last.next_step,
        lost_offsets=last.lost_offsets,
    )
