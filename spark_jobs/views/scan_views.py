"""The views of the data source that scans make: listings and findings."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from format.errors import KafkaLogError, NotALogDir
from format.findings import Finding
from format.io.remote_path import path_of
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind
from format.rows.arrow_columns import findings_batch
from format.rows.record_rows import Row
from format.scan.serial import SerialDriver
from format.verbs.ls.ls import ls
from format.verbs.ls.partition_listing import ListedPartition
from format.verbs.ls.segment_listing import SegmentListing
from format.verbs.ls.units import ListScan, ListUnit
from format.verbs.verify.units import LogDirFiles, LoneFile, PartitionDirectory, VerifyScan
from format.verbs.verify.units import Unit as VerifyUnit
from spark_jobs.work.planning import Unit, UnitKind

_FINDINGS_IN_A_BATCH = 500


def segments(unit: Unit) -> Iterator[Row]:
    """The rows of the segments of a unit, as ls lists them; what cannot be read has none, but a finding elsewhere."""
    path = path_of(unit.path)
    try:
        if unit.kind is UnitKind.LOG_DIR_FILES:
            return
        if unit.kind is UnitKind.FILE:
            for item in ls(path, kind=unit.file_kind):
                if isinstance(item, SegmentListing):
                    yield item.row()
            return
        for found in ListScan().listed(ListUnit(path, unit.checkpoints or Checkpoints()), None, lambda count: None):
            if isinstance(found, ListedPartition):
                yield from (each.row() for each in found.segments)
    except NotALogDir:
        raise
    except KafkaLogError:
        return


def findings(unit: Unit) -> Iterator[pa.RecordBatch]:
    """The findings of a unit, verified whole."""
    scan = VerifyScan()
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
