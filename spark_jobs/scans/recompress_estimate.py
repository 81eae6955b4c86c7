"""recompress-estimate on Spark: the rows of ``kafkalog recompress --estimate``, by topic, codec and level."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from format.columns import ESTIMATE
from format.findings import Finding
from format.limits import DEFAULT_LIMITS, Limits
from format.rewriting.sources import read_write_sources
from format.value_class import value_class
from format.verbs.recompress.estimate import (
    DEFAULT_SAMPLE_BYTES,
    Piece,
    Sums,
    TopicPieces,
    estimates,
    measure,
    targets_of,
    topic_pieces,
    warm_up,
)
from format.verbs.recompress.new_batches import Target
from spark_jobs.watching import watched
from spark_jobs.work.planning import Plan, Splits
from spark_jobs.work.tasks import ORDER, Result, results_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.requests import Scan, ScanResult

_SMALLEST_TASK_BYTES = 1024 * 1024  # compressing is slow
_TASKS_FOR_EACH_CORE = 4


@value_class
class EstimateOptions:
    """Which codecs at which level, None for all at Kafka's; and how much is measured, None for everything."""

    codec: str | None = None
    level: int | None = None
    sample_bytes: int | None = DEFAULT_SAMPLE_BYTES
    limits: Limits = DEFAULT_LIMITS

    @property
    def splits(self) -> Splits:
        return Splits.NEVER

    @property
    def targets(self) -> list[Target]:
        """What is tried."""
        return targets_of(self.codec, self.level)


@value_class
class PlannedPiece:
    """A piece of the topic of this number; its own number is its place among all."""

    topic: int
    number: int
    piece: Piece


@dataclass(slots=True)
class EstimatePlan(Plan[PlannedPiece]):
    """The topics in order, with the tasks that measure them."""

    topics: tuple[TopicPieces, ...] = ()


def planned(paths: Sequence[Path], options: EstimateOptions, parallelism: int) -> EstimatePlan:
    """A plan for one log directory, or partition directories; raises InputError for anything else."""
    topics = tuple(topic_pieces(read_write_sources(paths), options.sample_bytes))
    made = EstimatePlan(topics=topics)
    made.total_bytes = sum(piece.end for topic in topics for piece in topic.pieces)
    share = max(made.total_bytes // (_TASKS_FOR_EACH_CORE * parallelism), _SMALLEST_TASK_BYTES)
    task: list[PlannedPiece] = []
    held_bytes = 0
    pieces = [(number, piece) for number, topic in enumerate(topics) for piece in topic.pieces]
    for number, (topic, piece) in enumerate(pieces):
        if task and held_bytes + piece.end > share:
            made.tasks.append(task)
            task, held_bytes = [], 0
        task.append(PlannedPiece(topic, number, piece))
        held_bytes += piece.end
    if task:
        made.tasks.append(task)
    return made


def results(
    session: SparkSession, plan: EstimatePlan, scan: Scan, report_share: Callable[[float], None]
) -> Iterator[ScanResult]:
    """The findings and rows about each topic, in order."""
    from spark_jobs.requests import Rows

    options = scan.options
    if not isinstance(options, EstimateOptions):
        raise TypeError("these are the options of another job")
    targets, limits = options.targets, options.limits

    def work(item: PlannedPiece) -> Iterator[Result]:
        warm_up(targets, limits)
        sums = Sums.of(targets)
        found = list(measure(item.piece, sums, limits))
        yield Result(item.topic, 0, 0, item.number, 0, (sums, found))

    frame = results_frame(session, plan, work).orderBy(*ORDER)
    by_topic: dict[int, list[tuple[Sums, list[Finding]]]] = {}
    for row in watched(session, "kafkalog recompress-estimate", lambda: list(frame.toLocalIterator()), report_share):
        by_topic.setdefault(row.unit, []).append(pickle.loads(row.payload))
    for number, topic in enumerate(plan.topics):
        total = Sums.of(targets)
        for sums, found in by_topic.get(number, []):
            yield from found
            total.add(sums)
        yield Rows(ESTIMATE, [each.row() for each in estimates(topic.topic, topic.log_bytes, total)])
