"""An action of Spark while it runs: in a thread of its own, with its progress reported, and stopped with Ctrl-C."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from format.errors import ClusterFailed, KafkaLogError
from spark_jobs.session import one_line_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Result = TypeVar("_Result")
_INTERVAL_S = 0.1


class JobFailed(ClusterFailed):
    """A Spark job failed; the message is the one line that says why."""


def watched(
    session: SparkSession,
    description: str,
    action: Callable[[], _Result],
    report_share: Callable[[float], None] | None = None,
) -> _Result:
    """The action's result; ``report_share`` gets the share of tasks that are done, from 0 to 1, again and again.

    Runs in a thread under a job group of its own, so that an interruption of this thread stops its jobs. Raises
    JobFailed with the one line that matters where a job fails.
    """
    from pyspark import InheritableThread

    context = session.sparkContext
    group = f"kafkalog-{uuid.uuid4()}"
    outcome: list[_Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            context.setJobGroup(group, description, interruptOnCancel=True)
            outcome.append(action())
        except BaseException as error:
            failure.append(error)

    thread = InheritableThread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_INTERVAL_S)
            if report_share is not None:
                report_share(_share_done(context, group))
    except BaseException:
        with contextlib.suppress(Exception):
            context.cancelJobGroup(group)
        thread.join(10)
        raise
    if failure:
        if isinstance(failure[0], (KafkaLogError, KeyboardInterrupt)):
            raise failure[0]
        raise JobFailed(f"the Spark job failed: {one_line_reason(failure[0])}") from failure[0]
    return outcome[0]


def _share_done(context: object, group: str) -> float:
    """Tasks done of those known so far; more may become known, when a stage ends and the next begins."""
    tracker = context.statusTracker()  # type: ignore[attr-defined]
    done = known = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            stage_info = tracker.getStageInfo(stage)
            if stage_info is not None:
                done += stage_info.numCompletedTasks
                known += stage_info.numTasks
    return done / known if known else 0.0
