"""The interface of this package for the command line: the cluster that commands run on, and their tables.

``kafkalog scan`` runs in the context ``on_spark``, also when spark-submit starts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spark_jobs.masters import is_connect, is_elsewhere
from spark_jobs.requests import Ending, Where
from spark_jobs.session import require_spark
from spark_jobs.work.workers import PROCESS, path_of

if TYPE_CHECKING:
    from pathlib import Path

    from format.io.session import Session
    from spark_jobs.report import Report
    from spark_jobs.spark_cluster import SparkCluster

__all__ = ["Ending", "Where", "is_elsewhere", "on_spark", "open_report", "pack_environment", "write_batches"]


@contextmanager
def on_spark(where: Where, session: Session) -> Iterator[SparkCluster]:
    """The context in which scans of a session run on Spark, which starts when the first scan has something to read.

    Raises SparkMissing where Spark cannot start.
    """
    require_spark(is_connect=is_connect(where.master))  # the rest needs pyarrow as soon as it is imported
    from spark_jobs.spark_cluster import SparkCluster

    PROCESS.session = session
    session.makes_absolute = is_elsewhere(where.master)
    with SparkCluster(where) as cluster:
        session.cluster = cluster
        try:
            yield cluster
        finally:
            session.cluster = None


def open_report(output: Path, command: str, paths: Sequence[Path], broker_id: int | None = None) -> Report:
    """A report of a command about some paths. Raises OutputInsideSource, OutputExists and OutputError."""
    from spark_jobs.report import open_report as open_tables

    return open_tables(output, command, paths, broker_id)


def write_batches(cluster: SparkCluster, paths: Sequence[Path], output: Path, broker_id: int | None) -> None:
    """Write the table of all batches into a report."""
    from spark_jobs.batches_table import write_batches as write_table

    write_table(cluster, paths, output, broker_id)


def pack_environment(target: str) -> int:
    """Pack the environment of executors into a file, and return its size in bytes. Raises OutputError."""
    from spark_jobs.pack import pack, source_of_this

    return pack(path_of(target).absolute(), source_of_this())
