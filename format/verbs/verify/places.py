"""The checks of a log directory's own files, of a partition directory, or of one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from format.checks.directories import check_log_dir_files, check_topic_ids
from format.errors import KafkaLogError
from format.findings import MOST_ALIKE, Finding, finding_of
from format.io.live_broker import is_broker_running, settled
from format.location import Location
from format.node.log_dir import Checkpoints, Kind, LogDir, read_log_dir
from format.node.partition import Partition, location_of_directory, location_of_file
from format.node.target import Target
from format.verbs.verify.log_checks import verify_kraft_snapshot, verify_lone_segment
from format.verbs.verify.partition_checks import verify_partition
from format.verbs.verify.terms import Verification
from format.verbs.verify.walk import Level


def looked_again(
    is_live: bool, location: Location, terms: Verification, look: Callable[[bool, Verification], Iterator[Finding]]
) -> Iterator[Finding]:
    """The findings of a look; beside a running broker (``is_live``) only those that further looks confirm.

    ``look`` is called with whether it is the first look, and the terms of it; each other one lists and reads all anew.
    """
    if not is_live:
        yield from look(True, terms)
        return

    def again() -> tuple[list[Finding], None]:
        try:
            return list(look(False, terms.looking_again())), None
        except KafkaLogError as error:
            return [finding_of(error, location)], None

    yield from settled((list(look(True, terms)), None), again, location)[0]


def verify_log_dir_files(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    """Findings for a log directory's own files."""
    yield from looked_again(
        log_dir.broker_lock.may_be_held,
        Location(str(log_dir.path)),
        terms,
        lambda is_first, own: _log_dir_files(log_dir if is_first else read_log_dir(log_dir.path), own),
    )


def _log_dir_files(log_dir: LogDir, terms: Verification) -> Iterator[Finding]:
    if terms.level is not Level.FULL:
        yield from log_dir.unread_findings()
        return
    from format.verbs.boot.refusals import refusal_findings  # importing it takes a fifth of the start of a short run

    checkpoints = log_dir.checkpoints(terms.limits)
    yield from limited(checkpoints.findings)
    yield from limited(check_log_dir_files(log_dir, checkpoints, terms.limits))
    yield from limited(check_topic_ids(log_dir, terms.limits))
    elsewhere = terms.elsewhere.get(log_dir.path, frozenset())
    yield from limited(refusal_findings(log_dir.path, terms.limits, elsewhere, terms.kept_start))
    terms.coverage.side_files += len(log_dir.checkpoint_paths) + (log_dir.meta_properties is not None)
    if log_dir.bootstrap_checkpoint is not None:
        yield from limited(verify_kraft_snapshot(log_dir.bootstrap_checkpoint, terms))


def verify_partition_dir(
    path: Path, listed: Callable[[], Partition], checkpoints: Checkpoints, terms: Verification
) -> Iterator[Finding]:
    """Findings for one partition directory, which ``listed`` lists; of ``checkpoints`` only its entries are used."""
    location = location_of_directory(path)

    def look(is_first: bool, own: Verification) -> Iterator[Finding]:
        target = Target(path)
        try:
            partition = listed() if is_first else target.partition
        except KafkaLogError as error:
            yield finding_of(error, location)
            return
        own.coverage.partitions += 1
        own_checkpoints = checkpoints if is_first else target.checkpoints_around(own.limits)
        yield from limited(verify_partition(partition, own_checkpoints, own))

    yield from looked_again(checkpoints.lock is not None and checkpoints.lock.may_be_held, location, terms, look)


def verify_file(path: Path, kind: Kind, terms: Verification) -> Iterator[Finding]:
    """Findings for one file by itself."""
    location = location_of_file(path)
    is_live = is_broker_running(path.parent)
    yield from looked_again(is_live, location, terms, lambda _, own: _file(path, kind, own))


def _file(path: Path, kind: Kind, terms: Verification) -> Iterator[Finding]:
    if kind is Kind.LOG:
        yield from limited(verify_lone_segment(path, terms))
    elif kind is Kind.KRAFT_SNAPSHOT:
        yield from limited(verify_kraft_snapshot(path, terms))
    else:
        from format.rows.side_file_rows import side_file_blocks

        terms.coverage.side_files += 1
        for item in side_file_blocks(path, kind, limits=terms.limits):
            if isinstance(item, Finding):
                yield item


def limited(found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, of which at most MOST_ALIKE with the same code and file are reported one by one.

    The others are counted in one last finding of that code.
    """
    seen: Counter[tuple[str, str]] = Counter()
    last_ones: dict[tuple[str, str], Finding] = {}
    for each in found:
        key = (each.code, each.location.path)
        seen[key] += 1
        if seen[key] <= MOST_ALIKE:
            yield each
        else:
            last_ones[key] = each
    for key, last in last_ones.items():
        yield _more_like_it(last, seen[key] - MOST_ALIKE)


def _more_like_it(last: Finding, count: int) -> Finding:
    """One finding for those that are not reported one by one."""
    return Finding(
        code=last.code,
        severity=last.severity,
        location=last.location,
        message=f"{count} more like it in this file, the last: {last.message}",
        certainty=last.certainty,
        next_step=last.next_step,
        lost_offsets=last.lost_offsets,
        caused_by=last.caused_by,
    )
