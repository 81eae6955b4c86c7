"""Rows of every kind of side file, for dump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import asdict
from numpy.typing import NDArray

from format.columns import (
    ABORTED_TXN,
    CHECKPOINT_OFFSET,
    LEADER_EPOCH,
    OFFSET_INDEX_ENTRY,
    PRODUCER_SNAPSHOT_ENTRY,
    PROPERTY,
    TIME_INDEX_ENTRY,
    RowSchema,
)
from format.errors import InputError, KafkaLogError
from format.files import (
    clean_shutdown,
    leader_epoch_checkpoint,
    meta_properties,
    offset_checkpoint,
    offset_index,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    time_index,
    transaction_index,
)
from format.files.side_file import PathOrSource, problem_findings
from format.findings import Finding, finding_of
from format.io import live_broker
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import location_of_file
from format.rows.record_rows import RowBlock


def side_file_blocks(path: Path, kind: Kind, *, limits: Limits = DEFAULT_LIMITS) -> Iterator[RowBlock | Finding]:
    """The rows of one side file, then findings about it; only a finding if it cannot be read."""
    location = location_of_file(path)
    try:
        if kind is Kind.LOCK:
            found: Any = live_broker.probe(path)
        else:
            found = read_side_file(path, kind, _base_offset(location), limits)
    except KafkaLogError as error:
        if isinstance(error, InputError) and error.code not in ("file-unreadable", "file-changed"):
            raise
        yield finding_of(error, location)
        return
    _, schema, rows_of = _KINDS[kind]
    yield RowBlock(schema, rows_of(found, location), location)
    yield from problem_findings(getattr(found, "problems", ()), location)


def read_side_file(source: PathOrSource, kind: Kind, base_offset: int, limits: Limits) -> Any:
    """The content of a side file of any kind but a lock, with its ``problems``. Raises KafkaLogError."""
    module = _KINDS[kind][0]
    if kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX):
        return module.read(source, base_offset, limits)
    return module.read(source, limits)


def _base_offset(location: Location) -> int:
    """The base offset in the file's name; a file of another name is taken to start at 0."""
    return 0 if location.base_offset is None else location.base_offset


def _of_index(index: Any, *columns: NDArray[np.int64]) -> Iterable[tuple[Any, ...]]:
    """Rows of an index: the segment's base offset, then the values of the columns."""
    return zip([index.base_offset] * len(columns[0]), *(column.tolist() for column in columns), strict=True)


def _producers(snapshot: Any, location: Location) -> Iterable[tuple[Any, ...]]:
    *before, open_transactions = (column.tolist() for column in snapshot.columns)
    first_offsets = [None if first < 0 else first for first in open_transactions]
    return zip([location.base_offset] * snapshot.entry_count, *before, first_offsets, strict=True)


def _fields(found: Any, location: Location) -> list[tuple[Any, ...]]:
    """A property for each field of the content."""
    pairs = [(name, value) for name, value in asdict(found).items() if name not in ("path", "problems")]
    return [(location.path, name, value) for name, value in pairs]


def _quorum_state(state: Any, location: Location) -> list[tuple[Any, ...]]:
    """A property for each field that the version has."""
    known = [(*place, value) for *place, value in _fields(state, location) if value is not None]
    return [(*place, list(value) if isinstance(value, tuple) else value) for *place, value in known]


def _lock(lock: live_broker.BrokerLock, location: Location) -> list[tuple[Any, ...]]:
    return [row for row in _fields(lock, location) if row[1] != "reason" or lock.reason]


#: Of each kind the module that reads it, the schema of its rows, and the rows of what was read.
_KINDS: dict[Kind, tuple[Any, RowSchema, Callable[[Any, Location], Iterable[tuple[Any, ...]]]]] = {
    Kind.OFFSET_INDEX: (
        offset_index,
        OFFSET_INDEX_ENTRY,
        lambda found, where: _of_index(found, found.relative_offsets, found.offsets, found.positions),
    ),
    Kind.TIME_INDEX: (
        time_index,
        TIME_INDEX_ENTRY,
        lambda found, where: _of_index(found, found.timestamps, found.relative_offsets, found.offsets),
    ),
    Kind.TRANSACTION_INDEX: (transaction_index, ABORTED_TXN, lambda found, where: _of_index(found, *found.columns)),
    Kind.PRODUCER_SNAPSHOT: (producer_snapshot, PRODUCER_SNAPSHOT_ENTRY, _producers),
    Kind.LEADER_EPOCH_CHECKPOINT: (
        leader_epoch_checkpoint,
        LEADER_EPOCH,
        lambda found, where: [(where.path, each.leader_epoch, each.start_offset) for each in found.entries],
    ),
    Kind.OFFSET_CHECKPOINT: (
        offset_checkpoint,
        CHECKPOINT_OFFSET,
        lambda found, where: [(where.path, each.topic, each.partition, each.offset) for each in found.entries],
    ),
    Kind.PARTITION_METADATA: (partition_metadata, PROPERTY, _fields),
    Kind.META_PROPERTIES: (
        meta_properties,
        PROPERTY,
        lambda found, where: [(where.path, *each) for each in found.properties],
    ),
    Kind.QUORUM_STATE: (quorum_state, PROPERTY, _quorum_state),
    Kind.CLEAN_SHUTDOWN: (clean_shutdown, PROPERTY, _fields),
    Kind.LOCK: (live_broker, PROPERTY, _lock),
}
