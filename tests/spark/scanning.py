"""Running verbs on the session of these tests, from Python and as commands, and small brokers to run them on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from format.columns import RowSchema
from format.io.session import Session
from spark_jobs.planning import PROCESS
from spark_jobs.session import Where
from spark_jobs.spark_cluster import SparkCluster
from tests.building import batches, write_segment

ItemT = TypeVar("ItemT")

#: Exit code, standard output and standard error of a command.
Printed = tuple[int, str, str]


#: The options with which the view records has what ``dump`` shows.
EVERY_RECORD = {"upTo": "logEnd", "includeBelowLogStart": "true"}


#: Makes the path for a text.
PathOf = Callable[[str | Path], Path]


def scanned(verb: Callable[[PathOf], Iterable[ItemT]], range_bytes: int | None = None) -> list[ItemT]:
    """What a verb yields on Spark, with logs cut into ranges of this size."""
    session = PROCESS.session = Session()
    with SparkCluster(Where("test", range_bytes=range_bytes)) as cluster:
        session.cluster = cluster
        return list(verb(session.path))


def shown(row: Iterable[Any], schema: RowSchema) -> tuple[Any, ...]:
    """A row of a view as the command line has it: times in milliseconds, lists as text, structs as JSON."""

    def value_of(name: str, value: Any) -> Any:
        if isinstance(value, datetime):
            return round(value.timestamp() * 1000)
        if value is not None and name in ("magics", "codecs", "notes"):
            joined = "; " if name == "notes" else ","
            return joined.join(":".join(map(str, each)) if name == "codecs" else str(each) for each in value)
        return value

    return tuple(value_of(column.name, value) for column, value in zip(schema.columns, row, strict=False))


def broker_at(place: Path, broker_id: int, *, is_damaged: bool) -> Path:
    """A log directory with the id of a broker, and one partition."""
    contents = batches(20)
    if is_damaged:
        contents[7] = contents[7][:-3] + b"xyz"
    write_segment(place / "t-0", 0, contents)
    (place / "meta.properties").write_text(f"version=1\nnode.id={broker_id}\ncluster.id=abcdefghijklmnopqrstuw\n")
    return place


def store_of_four(place: Path) -> Path:
    """Two damaged and two sound brokers below one root; their directories could be names of partitions."""
    for broker_id in (1, 2, 3, 4):
        broker_at(place / f"kafka-{broker_id}", broker_id, is_damaged=broker_id in (2, 4))
    return place


def damaged_copy_of(source: Path, target: Path) -> Path:
    """A copy of a log directory with damage of every sort in it."""
    shutil.copytree(source, target)
    logs = sorted((each for each in target.rglob("*.log") if each.stat().st_size > 2000), key=str)
    for number, path in enumerate(logs):
        content = bytearray(path.read_bytes())
        middle = len(content) // 2
        how = number % 7
        if how == 0:
            content[middle] ^= 1
        elif how == 1:
            del content[-7:]
        elif how == 2:
            content[middle : middle + 300] = b"\0" * 300
        elif how == 3:
            content[8:12] = b"\x7f\xff\xff\xff"
        elif how == 4:
            del content[middle : middle + 100]
        elif how == 5:
            content += b"\0" * 5000
        path.write_bytes(content)
        index = path.with_suffix(".index")
        if how == 6 and index.exists():
            index.write_bytes(b"\0\0\0\1\0\0\0\5" * 3)
    (target / "replication-offset-checkpoint").write_text("0\n1\nnothing 0 5\n")
    return target
