"""Running verbs on the session of these tests, from Python and as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from format.scan.cluster import scanned_by
from spark_jobs.requests import Where
from spark_jobs.spark_cluster import SparkCluster

ItemT = TypeVar("ItemT")

#: Exit code, standard output and standard error of a command.
Printed = tuple[int, str, str]


def scanned(verb: Callable[[], Iterable[ItemT]], range_bytes: int | None = None) -> list[ItemT]:
    """What a verb yields on Spark, with logs cut into ranges of this size."""
    with SparkCluster(Where("test", range_bytes=range_bytes)) as cluster, scanned_by(cluster):
        return list(verb())
