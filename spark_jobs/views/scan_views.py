"""The views of the data source that are made by scans: segments, offsets, transactions and findings."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from msgspec.structs import replace

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding
from format.limits import DEFAULT_LIMITS
from format.node.log_dir import Checkpoints, Kind
from format.node.partition import read_partition
from format.node.target import Target
from format.rows.arrow_columns import findings_batch
from format.rows.record_rows import Row
from format.scan.serial import SerialDriver
from format.verbs.groups.replicas import log_end_of
from format.verbs.ls.ls import ListUnit, ls
from format.verbs.ls.partition_listing import PartitionTerms, SegmentListing
from format.verbs.txns.replicas import TransactionalIds
from format.verbs.txns.txns import Transactions, TransactionTerms, ended_rows, open_row, open_transactions
from format.verbs.verify.compacted_topics import compacted_topics_at
from format.verbs.verify.terms import Verification
from format.verbs.verify.units import LogDirFiles, LoneFile, PartitionDirectory, VerifyScan
from format.verbs.verify.units import Unit as VerifyUnit
from format.verbs.verify.verify import findings_of_place, verify_nodes
from spark_jobs.schemas import OFFSETS
from spark_jobs.work.planning import Unit, UnitKind
from spark_jobs.work.workers import path_of

_FINDINGS_IN_A_BATCH = 500


def segments(unit: Unit) -> Iterator[Row]:
    """Rows of the segments of a unit, as ls lists them. Unreadable ones are in the view of findings."""
    path = path_of(unit.path)
    try:
        if unit.kind is UnitKind.LOG_DIR_FILES:
            return
        if unit.kind is UnitKind.FILE:
            for item in ls(Target(path, unit.file_kind)):
                if isinstance(item, SegmentListing):
                    yield item.row()
            return
        found = ListUnit(path, unit.checkpoints or Checkpoints()).listed(PartitionTerms())
        yield from (each.row() for each in found.segments)
    except NotALogDir:
        raise
    except KafkaLogError:
        return


def findings_together(paths: Sequence[Path]) -> tuple[list[Finding], frozenset[str]]:
    """The findings about several units together at these paths, and the compacted topics, for verifying the units."""
    targets = [Target(path) for path in paths]
    found = [each for target in targets for each in findings_of_place(target)]
    found += verify_nodes(targets, Verification())
    return found, compacted_topics_at(targets, DEFAULT_LIMITS)


def findings(unit: Unit, compacted_topics: frozenset[str]) -> Iterator[pa.RecordBatch]:
    """Findings of a unit, which is verified as a whole."""
    scan = VerifyScan(compacted_topics=compacted_topics)
    held: list[Finding] = []
    for item in scan.results(_verified(unit), SerialDriver(scan.walk)):
        if isinstance(item, Finding):
            held.append(item)
        if len(held) == _FINDINGS_IN_A_BATCH:
            yield findings_batch(held)
            held = []
    if held:
        yield findings_batch(held)


def _verified(unit: Unit) -> VerifyUnit:
    path = path_of(unit.path)
    if unit.kind is UnitKind.LOG_DIR_FILES:
        return LogDirFiles(path)
    if unit.kind is UnitKind.PARTITION:
        return PartitionDirectory(path, unit.checkpoints or Checkpoints())
    return LoneFile(path, unit.file_kind or Kind.LOG)


def offsets(unit: Unit) -> Iterator[Row]:
    """The row of a partition's offsets, from its checkpoints and the end of its last segment."""
    if unit.kind is not UnitKind.PARTITION:
        return
    path = path_of(unit.path)
    try:
        partition = read_partition(path)
        terms = PartitionTerms(scan=False, segments=False)
        found = ListUnit(path, unit.checkpoints or Checkpoints()).listed(terms, lambda: partition)
        listing = replace(found.listing, log_end_offset=log_end_of(partition))
        yield tuple(getattr(listing, name) for name in OFFSETS.names)
    except KafkaLogError:
        return


def transactions(unit: Unit, coordinators: TransactionalIds, terms: TransactionTerms) -> Iterator[Row]:
    """Rows of the transactions of a partition, as txns shows them; ``coordinators`` are those of all coordinators."""
    if unit.kind is not UnitKind.PARTITION:
        return
    result = Transactions((Target(path_of(unit.path)),), coordinators)
    try:
        for _ in result.read(terms):
            pass  # the view of findings reports problems
    except KafkaLogError:
        return
    yield from (open_row(each, terms) for each in open_transactions(result, terms))
    for is_aborted in (True, False):
        yield from ended_rows(result, terms, is_aborted=is_aborted)


def coordinators_at(paths: Iterable[str], terms: TransactionTerms) -> TransactionalIds:
    """The transactional ids in the records of the partitions of ``__transaction_state`` at these paths."""
    result = Transactions(tuple(Target(path_of(path)) for path in paths))
    with contextlib.suppress(KafkaLogError):
        for _ in result.read(terms):
            pass  # the view of findings reports problems
    return result.ids
