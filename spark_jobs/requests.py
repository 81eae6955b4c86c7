"""What a scan takes, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from format.columns import RowSchema
from format.findings import Finding
from format.node.log_dir import Kind
from format.value_class import value_class
from format.verbs.verify.terms import Coverage
from spark_jobs.work.planning import Splits

#: Called with the bytes that are done, and all bytes.
ReportProgress = Callable[[int, int], None]


class JobOptions(Protocol):
    """The options of a job; each job's module has its own class."""

    @property
    def splits(self) -> Splits: ...


@value_class
class Rows:
    """Rows of one schema, from a job."""

    schema: RowSchema
    rows: Iterator[tuple[Any, ...]] | list[tuple[Any, ...]]


@value_class
class Scan:
    """A job over paths: where it runs, and where its report goes.

    ``output`` is a directory of Parquet tables, by table and broker id; ``range_bytes`` how much a task reads at
    once of a large log, None to choose by the total.
    """

    job: str
    paths: Sequence[Path]
    options: JobOptions
    master: str | None = None
    kind: Kind | None = None
    output: str | None = None
    broker_id: int | None = None
    range_bytes: int | None = None
    conf: Mapping[str, str] = field(default_factory=dict)


#: What a job returns, one by one.
ScanResult = Finding | Rows | Coverage
