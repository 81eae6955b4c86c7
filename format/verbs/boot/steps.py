"""The steps of a start as data: one for each file or directory, the refusals that end the start, and its terms."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from format.columns import BOOT_STEP
from format.errors import KafkaLogError
from format.findings import Finding
from format.layout import MAX_RELATIVE_OFFSET
from format.limits import DEFAULT_LIMITS, Limits
from format.log.batch_table import BatchTable
from format.state.cluster_image import ClusterImage


class Action(Enum):
    """What a broker does with a file or a directory, the refusals first."""

    REFUSE = "refuse"
    OFFLINE = "offline"  # the broker starts, but does not serve this log directory or partition
    UNKNOWN = "unknown"  # what cannot be predicted
    TRUNCATE = "truncate"
    RECOVER = "recover"
    RENAME = "rename"
    DELETE = "delete"
    CREATE = "create"
    REBUILD_INDEX = "rebuild_index"
    REBUILD_SNAPSHOT = "rebuild_snapshot"
    KEEP = "keep"


class Step(msgspec.Struct, frozen=True):
    """One row of columns.BOOT_STEP, which documents the fields."""

    action: Action
    path: Path
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    position: int | None = None
    bytes: int | None = None
    reason: str = ""
    broker_message: str | None = None
    kafka_class: str | None = None
    lost_offsets: tuple[int, int] | None = None
    new_path: Path | None = None
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    may_lose: bool = False  # the high watermark is not known, and so not whether offsets below it are lost
    is_needless: bool = False  # a stray of a topic that the metadata has seen deleted, or without a record
    is_closed: bool = False  # the owner of the log directory can apparently not open files there
    other_replicas: tuple[int, ...] | None = None  # of the partition whose offsets are lost; None where not known

    def row(self) -> tuple[Any, ...]:
        return BOOT_STEP.row_of(
            self,
            action=self.action.value,
            path=str(self.path),
            new_path=None if self.new_path is None else str(self.new_path),
            lost_offsets=None if self.lost_offsets is None else list(self.lost_offsets),
        )


class StopsStart(Exception):
    """A reason for the broker to exit: ``text`` is its message, ``kafka_class`` the class that raises it.

    ``text`` is None where the broker neither exits nor goes on, and says nothing.
    """

    def __init__(self, text: str | None, kafka_class: str, path: Path, reason: str = "", position: int | None = None):
        super().__init__(text or reason)
        self.text = text
        self.kafka_class = kafka_class
        self.path = path
        self.reason = reason
        self.position = position


class FailsLogDir(StopsStart):
    """An I/O error while a log directory is loaded: it goes offline. Without any left, the broker exits."""


class FailsSnapshot(FailsLogDir):
    """A producer snapshot that cannot be written. In the recovery of a segment it costs the segment, from 4.0 on."""


class NotKnown(Exception):
    """What this program cannot predict about ``path``, and why."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self.text = text
        self.path = path


def problem_step(error: StopsStart | NotKnown | KafkaLogError, path: Path, key: tuple[str, int] | None = None) -> Step:
    """The step of an error: a refusal, or what is not known. ``path`` is for an error that this program met."""
    if isinstance(error, StopsStart):
        topic, partition = key or (None, None)
        return Step(
            Action.REFUSE, error.path, topic, partition, position=error.position, reason=error.reason,
            broker_message=error.text, kafka_class=error.kafka_class,
        )  # fmt: skip
    if isinstance(error, NotKnown):
        return Step(Action.UNKNOWN, error.path, reason=error.text)
    return Step(Action.UNKNOWN, path, reason=error.message)


class ReadLog(msgspec.Struct):
    """A summary of a sound log for recovery, made from its batches in log order.

    ``is_sound`` is False from the first batch on that recovery has to read by itself.
    """

    base_offset: int
    is_sound: bool = True
    valid_bytes: int = 0
    last_offset: int | None = None
    map_end_offset: int | None = None
    has_transactions: bool = False
    epochs: list[tuple[int, int]] = msgspec.field(default_factory=list)

    def add(self, table: BatchTable, *, is_damaged: bool) -> None:
        """Add the next batches; their CRCs are checked, and their offsets are those of the headers."""
        if is_damaged or not self._continues(table):
            self.is_sound = False
        if not self.is_sound:
            return
        last = len(table) - 1
        self.last_offset = table.last_offset_of(last)
        self.valid_bytes = table.value("position", last) + table.value("size_bytes", last)
        rows = table.higher_epochs(self.epochs[-1][0] if self.epochs else -1)
        self.epochs += [(table.value("leader_epoch", row), table.value("base_offset", row)) for row in rows]
        self.has_transactions |= table.sums.in_transactions > 0
        if table.value("magic", last) >= 2:
            self.map_end_offset = self.last_offset + 1
        elif len(is_v2 := np.flatnonzero(table.magic >= 2)):
            self.map_end_offset = table.last_offset_of(int(is_v2[-1])) + 1

    def _continues(self, table: BatchTable) -> bool:
        """Whether batches are valid, and their offsets rise from those before and fit the index of the segment."""
        if not len(table):
            return False
        sums = table.sums
        if sums.right_crcs < len(table) or not sums.rises or sums.least_offset < self.base_offset:
            return False
        # Offsets that rise are in the range if the first and the last are.
        before = self.base_offset - 1 if self.last_offset is None else max(self.base_offset - 1, self.last_offset)
        last_relative = table.last_offset_of(len(table) - 1) - self.base_offset
        return table.last_offset_of(0) > before and last_relative <= MAX_RELATIVE_OFFSET


class KnownMetadata(msgspec.Struct, frozen=True):
    """The cluster as the metadata log of a node has it, and the time of its last record."""

    path: Path
    image: ClusterImage
    timestamp: int | None


class BootTerms(msgspec.Struct, frozen=True):
    """The options of a run: the Kafka version (major, minor), whether unchanged files get a row, and the limits.

    ``is_release_known``: the node runs this release, and no later one. ``is_one_of_several``: the log directory may be
    one of several of its node, and the others are not known: nothing is reported that may lie in the others, and logs
    that a broker would recover are not read. ``read_logs`` are logs that the caller has read with their CRCs, by path:
    recovery does not read them again. ``is_broker``: whether process.roles of the node has the broker, None where that
    is to be found. ``later`` is metadata of another node, which decides what belongs to this one. ``metadata_dir`` is
    the log directory of the node with its metadata log, where it is none of those that are looked at.
    """

    version: tuple[int, int] = (4, 4)
    every_file: bool = False
    is_release_known: bool = True
    is_one_of_several: bool = False
    limits: Limits = DEFAULT_LIMITS
    read_logs: Mapping[Path, ReadLog] = msgspec.field(default_factory=dict)
    is_broker: bool | None = None
    later: KnownMetadata | None = None
    metadata_dir: Path | None = None

    @property
    def release(self) -> str:
        return ".".join(map(str, self.version))


class BootResult(msgspec.Struct):
    """The outcome of a start: the steps in the order in which they are shown, and what was not checked.

    ``findings`` are about what a later release may have written. ``unread`` are paths with the name of a log that are
    no regular files: a broker ignores them, and so does boot. ``is_controller``: the node is a controller alone, which
    loads no log but the metadata log. ``as_of`` is the metadata by which logs were sorted, where other nodes may have
    later metadata. ``absent_ids`` are those of log directories that the node registered, and that are not here.
    ``failed_dirs`` are log directories of which no partition is served. ``may_be_zookeeper``: ZooKeeper may be what
    assigns partitions, not the metadata log.
    """

    steps: list[Step] = msgspec.field(default_factory=list)
    findings: list[Finding] = msgspec.field(default_factory=list)
    unread: list[Path] = msgspec.field(default_factory=list)
    not_checked: list[str] = msgspec.field(default_factory=list)
    is_controller: bool = False
    as_of: KnownMetadata | None = None
    may_be_zookeeper: bool = False
    absent_ids: list[str] = msgspec.field(default_factory=list)
    failed_dirs: list[Path] = msgspec.field(default_factory=list)

    def having(self, *actions: Action) -> list[Step]:
        return [step for step in self.steps if step.action in actions]

    @property
    def is_refused(self) -> bool:
        return bool(self.having(Action.REFUSE))

    @property
    def loses(self) -> bool:
        """Whether records between log start offset and high watermark are lost, by this start or before it."""
        return any(step.lost_offsets is not None for step in self.steps)

    @property
    def may_lose(self) -> bool:
        """Whether it is not known if this start loses records, or if records were lost before it."""
        return any(step.may_lose for step in self.steps)

    @property
    def strays(self) -> list[Step]:
        """The logs that this start takes for strays: it serves them no more."""
        return [step for step in self.having(Action.RENAME) if str(step.new_path).endswith("-stray")]

    @property
    def has_unserved(self) -> bool:
        """Whether the broker would start without a log directory, or without a partition that it served before."""
        return bool(self.having(Action.OFFLINE) or self.strays)

    @property
    def is_unknown(self) -> bool:
        return bool(self.having(Action.UNKNOWN))
