"""The interface of this package for the command line: the cluster that commands run on, and their tables.

``kafkalog scan`` runs in the context ``on_spark``, also when spark-submit starts it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from spark_jobs.planning import PROCESS, path_of
from spark_jobs.session import Where, is_connect, is_elsewhere, require_spark

if TYPE_CHECKING:
    from format.io.session import Session
    from spark_jobs.report import ReportTables
    from spark_jobs.spark_cluster import SparkCluster

__all__ = ["Where", "is_elsewhere", "on_spark", "open_report", "pack_environment"]


@contextmanager
def on_spark(where: Where, session: Session) -> Iterator[SparkCluster]:
    """The context in which scans of a session run on Spark, which starts when the first scan has something to read.

    Raises SparkMissing where Spark cannot start.
    """
    require_spark(is_connect=is_connect(where.master))  # the rest needs pyarrow as soon as it is imported
    from spark_jobs.spark_cluster import SparkCluster

    PROCESS.session = session
    session.makes_absolute = is_elsewhere(where.master)
    if session.reads_addresses:
        session.stores.remember_less()
    with SparkCluster(where) as cluster:
        session.cluster = cluster
        try:
            yield cluster
        finally:
            session.cluster = None


def open_report(
    cluster: SparkCluster,
    session: Session,
    output: str,
    broker_id: int | None,
    command: str,
    paths: Sequence[str],
    *,
    has_batches: bool,
) -> ReportTables:
    """A report of a command about some paths. With ``has_batches`` it has the table of all batches, by the cluster.

    Raises OutputInsideSource, OutputExists and OutputError.
    """
    from spark_jobs.report import open_report as open_tables
    from spark_jobs.spark_cluster import write_batches

    place, sources = session.path(output), [session.path(each) for each in paths]
    write = partial(write_batches, cluster, sources, place, broker_id) if has_batches else None
    return open_tables(place, command, sources, broker_id, write)


def pack_environment(target: str) -> int:
    """Pack the environment of executors into a file, and return its size in bytes. Raises OutputError."""
    from spark_jobs.pack import pack, source_of_this

    return pack(path_of(target).absolute(), source_of_this())
