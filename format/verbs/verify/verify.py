"""verify: checks logs and the files beside them, and yields findings; damage never stops the rest of the checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from format.errors import KafkaLogError
from format.findings import Finding
from format.io.session import joins_remote_segments
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind, LogDir, read_log_dir
from format.node.offsets import offsets_of
from format.node.partition import location_of_file
from format.node.target import Target, nothing_to_read, target_at
from format.scan.cluster import Cluster, cluster_of
from format.scan.cost import size_of
from format.scan.drivers import may_be_shared, open_driver
from format.scan.protocol import LogUnit
from format.scan.selected_logs import every_log_of, partitions_below
from format.verbs.verify.node_log_dirs import check_node_log_dirs, replicas_elsewhere
from format.verbs.verify.places import (
    limited,
    looked_again,
    verify_file,
    verify_log_dir_files,
    verify_partition_dir,
)
from format.verbs.verify.terms import NOT_CHECKED, Coverage, Verification
from format.verbs.verify.units import VerifyScan, units_of
from format.verbs.verify.walk import Level

__all__ = [
    "NOT_CHECKED",
    "Coverage",
    "Level",
    "Verification",
    "bytes_to_verify",
    "logs_to_verify",
    "opened_for",
    "verify",
    "verify_nodes",
]


def verify(path: Path | Target, verification: Verification | None = None) -> Iterator[Finding]:
    """Findings for what lies at ``path``, in a fixed order.

    Raises InputError for a path that is none of Kafka's; every other problem is a finding.
    """
    terms = verification or Verification()
    target = target_at(path)
    cluster = cluster_of(target.path)
    if cluster is not None:
        yield from _without_remote_heads(_verify_on(cluster, target, terms), target, terms)
        return
    if terms.driver is not None:
        yield from _without_remote_heads(_verify(target, terms), target, terms)
        return
    with opened_for([target], terms) as opened:
        yield from _without_remote_heads(_verify(target, opened), target, terms)


def _without_remote_heads(found: Iterable[Finding], target: Target, terms: Verification) -> Iterator[Finding]:
    """The findings without ``log-head-remote``, which is counted, if the remote part of tiered logs was not asked for.

    It is left out for a log whose head is lost, as the metadata log shows before.
    """
    lost: set[tuple[str, int]] = set()
    for each in found:
        if each.code == "checkpoint-mismatch" and each.lost_offsets is not None:
            lost.add((each.location.path, each.lost_offsets[0]))
        elif each.code == "log-head-remote":
            if (each.location.path, each.location.offset) in lost:
                continue
            if not joins_remote_segments(target.path):
                terms.coverage.remote_heads += 1
                continue
        yield each


@contextmanager
def opened_for(targets: Iterable[Target], terms: Verification) -> Iterator[Verification]:
    """The terms with a driver that knows the logs of all these targets, so that ``verify`` can check one after another.

    On a cluster the terms are returned unchanged.
    """
    targets = list(targets)
    terms = replace(terms, elsewhere=_elsewhere(targets, terms))
    if any(cluster_of(each.path) is not None for each in targets):
        yield terms
        return
    logs: list[LogUnit] = []
    if terms.jobs > 1 and may_be_shared(terms.walk):
        for target in targets:
            with suppress(KafkaLogError):  # verifying the target reports it
                logs.extend(logs_to_verify(target, terms.limits))
    with open_driver(terms.walk, logs, terms.jobs, terms.advance) as driver:
        yield replace(terms, driver=driver)


def _elsewhere(targets: Iterable[Target], terms: Verification) -> dict[Path, frozenset[tuple[str, int]]]:
    """By log directory, what the other log directories of its node hold."""
    if terms.level is not Level.FULL:
        return {}
    log_dirs: list[LogDir] = []
    for target in targets:
        with suppress(KafkaLogError):  # verifying the target reports it
            log_dirs.extend(target.log_dirs)
    return replicas_elsewhere(log_dirs, terms.limits)


def verify_nodes(targets: Iterable[Target], terms: Verification) -> Iterator[Finding]:
    """Findings about the log directories of one node as a whole, after ``verify`` of each target."""
    if terms.level is Level.FULL:
        log_dirs = [log_dir for target in targets for log_dir in target.log_dirs]
        if not log_dirs:
            return

        def look(is_first: bool, own: Verification) -> Iterator[Finding]:
            present = log_dirs if is_first else [read_log_dir(each.path) for each in log_dirs]
            yield from limited(check_node_log_dirs(present, own.limits))

        is_live = any(each.broker_lock.may_be_held for each in log_dirs)
        yield from looked_again(is_live, Location(str(log_dirs[0].path)), terms, look)


def findings_of_place(target: Target) -> Iterator[Finding]:
    """Findings about a target that belong to none of its units: links, and that nothing is there to read."""
    if target.kind is Kind.LOG_DIR:
        yield from target.link_findings()
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION):
        yield from _nothing_to_read(target)


def _verify(target: Target, terms: Verification) -> Iterator[Finding]:
    kind, path = target.kind, target.path
    if kind is Kind.LOG_DIR:
        yield from target.link_findings()
        for log_dir in target.log_dirs:
            yield from _verify_log_dir(log_dir, terms)
        yield from _nothing_to_read(target)
    elif kind is Kind.PARTITION:
        checkpoints = target.checkpoints_around(terms.limits)
        yield from verify_partition_dir(path, lambda: target.partition, checkpoints, terms)
        yield from _nothing_to_read(target)
    else:
        yield from verify_file(path, kind, terms)


def _verify_on(cluster: Cluster, target: Target, terms: Verification) -> Iterator[Finding]:
    """The same findings, made on a cluster."""
    scan = VerifyScan(terms.level, terms.limits, terms.partition_counts, terms.compacted_topics, terms.elsewhere)
    before = terms.coverage.segments
    for item in cluster.results(scan, units_of(target, terms.limits), terms.advance):
        if isinstance(item, Coverage):
            terms.coverage.add(item)
        else:
            yield item
    if target.kind in (Kind.LOG_DIR, Kind.PARTITION) and terms.coverage.segments == before:
        yield from _nothing_to_read(target)


def _nothing_to_read(target: Target) -> Iterator[Finding]:
    """A finding where there is no segment and nothing else explains why."""
    listed = list(target.partitions())
    expected = 1 if target.kind is Kind.PARTITION else sum(len(each.partitions) for each in target.log_dirs)
    if len(listed) == expected and not any(partition.segments or partition.unexpected for partition in listed):
        yield nothing_to_read(target)


def logs_to_verify(target: Target, limits: Limits = DEFAULT_LIMITS) -> Iterator[LogUnit]:
    """The logs in the order in which verify reads them, without those of partitions that cannot be listed.

    A target lists each partition once, so a log that disappears after this call is still reported.
    """
    if target.kind is Kind.LOG:
        yield LogUnit(target.path, location_of_file(target.path))
    for found in partitions_below(target, limits):
        if not isinstance(found, Finding):
            yield from every_log_of(found[0], offsets_of(*found))


def bytes_to_verify(path: Path | Target) -> int:
    """How many bytes ``verify`` counts as progress; 0 for a path that is none of Kafka's."""
    try:
        return sum(size_of(log.path) for log in logs_to_verify(target_at(path)))
    except KafkaLogError:
        return 0  # verify reports why


def _verify_log_dir(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    # Checkpoints come before the logs: a broker that runs meanwhile only moves the logs' ends past them.
    checkpoints = log_dir.checkpoints(terms.limits)
    yield from verify_log_dir_files(log_dir, terms)
    for path in log_dir.partitions:
        yield from verify_partition_dir(path, partial(log_dir.partition, path), checkpoints, terms)
