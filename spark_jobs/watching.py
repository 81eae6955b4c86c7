"""Actions of Spark, run in a thread of their own, with progress, and stopped by Ctrl-C."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from format.errors import ClusterFailed, KafkaLogError
from spark_jobs.session import is_remote_session, one_line_reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Result = TypeVar("_Result")
#: Progress is looked at after the first of these times, and then less and less often, as the JVM is asked each time.
_SHORTEST_S, _LONGEST_S = 0.1, 1.0


class JobFailed(ClusterFailed):
    """A Spark job that failed; the message is one line with the reason."""


def watched(
    session: SparkSession,
    description: str,
    action: Callable[[], _Result],
    report_share: Callable[[float], None] | None = None,
) -> _Result:
    """Run an action, and return its result. ``report_share`` is called repeatedly with the share of tasks done, 0 to 1.

    The action runs in a thread, under a job group of its own, so that an interruption of this thread stops its jobs.
    Raises JobFailed where a job fails.
    """
    group = f"kafkalog-{uuid.uuid4()}"
    jobs: _Jobs = _ConnectJobs(session, group) if is_remote_session(session) else _ClassicJobs(session, group)
    outcome: list[_Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            jobs.begin(description)
            outcome.append(action())
        except BaseException as error:
            failure.append(error)

    thread = jobs.thread(run)
    thread.start()
    wait_s = _SHORTEST_S
    try:
        while thread.is_alive():
            thread.join(wait_s)
            wait_s = min(1.5 * wait_s, _LONGEST_S)
            if report_share is not None:
                report_share(jobs.share_done())
    except BaseException:
        with contextlib.suppress(Exception):
            jobs.cancel()
        thread.join(10)
        raise
    if failure:
        if isinstance(failure[0], (KafkaLogError, KeyboardInterrupt)):
            raise failure[0]
        raise JobFailed(f"the Spark job failed: {one_line_reason(failure[0])}") from failure[0]
    return outcome[0]


class _Jobs(Protocol):
    """The jobs of one action."""

    def begin(self, description: str) -> None:
        """Mark the jobs that this thread, the action's, starts from now on."""

    def thread(self, run: Callable[[], None]) -> threading.Thread: ...

    def share_done(self) -> float: ...

    def cancel(self) -> None: ...


@dataclass(slots=True)
class _ClassicJobs:
    """The jobs of one action, in a session of this process: by a job group."""

    session: SparkSession
    group: str

    def begin(self, description: str) -> None:
        self.session.sparkContext.setJobGroup(self.group, description, interruptOnCancel=True)

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        from pyspark import InheritableThread

        made: threading.Thread = InheritableThread(target=run, daemon=True)
        return made

    def share_done(self) -> float:
        """The share of done tasks among those known so far, which grow when a stage ends and the next begins."""
        tracker = self.session.sparkContext.statusTracker()
        done = known = 0
        for job in tracker.getJobIdsForGroup(self.group):
            info = tracker.getJobInfo(job)
            for stage in () if info is None else info.stageIds:
                stage_info = tracker.getStageInfo(stage)
                if stage_info is not None:
                    done += stage_info.numCompletedTasks
                    known += stage_info.numTasks
        return done / known if known else 0.0

    def cancel(self) -> None:
        self.session.sparkContext.cancelJobGroup(self.group)


@dataclass(slots=True)
class _ConnectJobs:
    """The jobs of one action, in a session of a Connect server: by a tag. Their progress is not known here."""

    session: SparkSession
    tag: str

    def begin(self, description: str) -> None:
        self.session.addTag(self.tag)

    def thread(self, run: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=run, daemon=True)

    def share_done(self) -> float:
        return 0.0

    def cancel(self) -> None:
        self.session.interruptTag(self.tag)
