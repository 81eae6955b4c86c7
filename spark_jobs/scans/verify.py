"""verify on Spark: the findings of ``kafkalog verify``, the same set, over tasks of about equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from format.findings import Finding, finding
from format.io.remote_path import path_of
from format.limits import DEFAULT_LIMITS, Limits
from format.node.checkpoints import Checkpoints
from format.node.log_dir import Kind, read_log_dir
from format.value_class import value_class
from format.verbs.verify.verify import (
    Coverage,
    Verification,
    limited,
    verify,
    verify_log_dir_files,
    verify_partition_dir,
)
from format.verbs.verify.walk import Level
from spark_jobs.work.parts import changes_of
from spark_jobs.work.planning import (
    Item,
    Part,
    Plan,
    Splits,
    Unit,
    UnitKind,
)
from spark_jobs.work.replay import CHUNKS, FINISHED, STATUS, PartStatus, ReplayedWalks, walk_part
from spark_jobs.work.tasks import Result, merged_frame, results_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FINDINGS_IN_A_RESULT = 500


@value_class
class VerifyOptions:
    """How deep, and under which limits."""

    level: Level = Level.FULL
    limits: Limits = DEFAULT_LIMITS

    @property
    def splits(self) -> Splits:
        """Whether large logs are worth reading in parts: headers alone are read in no time."""
        return Splits.RANGES if self.level >= Level.CRC else Splits.NEVER


def frame(session: SparkSession, plan: Plan[Item], options: VerifyOptions) -> DataFrame:
    """Results whose values are lists of findings and, last for each unit, its Coverage."""

    def work(item: Item) -> Iterator[Result]:
        if isinstance(item, Part):
            yield from walk_part(item, options.level, options.limits)
        else:
            yield from verified(item, options)

    def merge(unit: Unit, rows: Iterator[Result]) -> Iterator[Result]:
        return _merged(unit, rows, options)

    return merged_frame(session, results_frame(session, plan, work), plan, merge)


def _merged(unit: Unit, rows: Iterator[Result], options: VerifyOptions) -> Iterator[Result]:
    """A unit whose parts were walked over by other tasks."""
    statuses: dict[int, list[PartStatus]] = {}
    first_chunk = None
    for each in rows:
        if each.phase != STATUS:
            first_chunk = each
            break
        statuses.setdefault(each.segment, []).append(each.value)
    chunks = (each for each in rows if each.phase == CHUNKS)
    terms = Verification(options.level, options.limits, Coverage())
    terms.driver = ReplayedWalks(unit.segments, statuses, chunks, terms.walk, first_chunk)
    changes = []
    for segment in unit.segments:
        words = {each.change for each in statuses.get(segment.number, ()) if each.change}
        changes += [finding("file-changed", segment.location, each) for each in sorted(words)]
    yield from _results(unit, _findings(unit, terms, changes), terms.coverage)


def verified(unit: Unit, options: VerifyOptions) -> Iterator[Result]:
    """A unit that one task does alone."""
    terms = Verification(options.level, options.limits, Coverage())
    yield from _results(unit, _findings(unit, terms, changes_of(unit)), terms.coverage)


def _findings(unit: Unit, terms: Verification, changes: list[Finding]) -> Iterator[Finding]:
    path = path_of(unit.path)
    yield from limited(changes)
    if unit.kind is UnitKind.LOG_DIR_FILES:
        yield from verify_log_dir_files(read_log_dir(path), terms)
    elif unit.kind is UnitKind.PARTITION:
        yield from verify_partition_dir(path, unit.checkpoints or Checkpoints(), terms)
    else:
        yield from verify(path, terms, kind=unit.file_kind or Kind.LOG)


def _results(unit: Unit, findings: Iterator[Finding], coverage: Coverage) -> Iterator[Result]:
    step = 0
    held: list[Finding] = []
    for each in findings:
        held.append(each)
        if len(held) >= _FINDINGS_IN_A_RESULT:
            yield Result(unit.number, FINISHED, 0, 0, step, held)
            step, held = step + 1, []
    if held:
        yield Result(unit.number, FINISHED, 0, 0, step, held)
    yield Result(unit.number, FINISHED, 0, 0, step + 1, replace(coverage))
