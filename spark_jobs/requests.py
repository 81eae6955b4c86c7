"""Where commands run on Spark, and how a run ended: what ``kafkalog_cli`` passes to this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Where(msgspec.Struct, frozen=True):
    """Where a command runs on Spark.

    ``name`` is the command, for the descriptions of its jobs. ``master`` None is this machine, or the master that
    spark-submit chose. ``range_bytes`` is the part of a large log that one task reads, None to choose by the total.
    ``archive`` is the packed environment of the executors.
    """

    name: str
    master: str | None = None
    conf: Mapping[str, str] = msgspec.field(default_factory=dict)
    range_bytes: int | None = None
    archive: str | None = None


class Ending(msgspec.Struct, frozen=True):
    """How a run ended, for the table ``runs``."""

    exit_code: int
    is_complete: bool
    conditions: Sequence[str] = ()
    not_checked: Sequence[str] = ()
    counts: Mapping[str, int] = msgspec.field(default_factory=dict)
