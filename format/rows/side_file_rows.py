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
    yield _BLOCKS[kind](found, location)
    yield from problem_findings(getattr(found, "problems", ()), location)


def read_side_file(source: PathOrSource, kind: Kind, base_offset: int, limits: Limits) -> Any:
    """The content of a side file of any kind but a lock, with its ``problems``. Raises KafkaLogError."""
    module: Any = _MODULES[kind]
    if kind in (Kind.OFFSET_INDEX, Kind.TIME_INDEX, Kind.TRANSACTION_INDEX):
        return module.read(source, base_offset, limits)
    return module.read(source, limits)


def _base_offset(location: Location) -> int:
    """The base offset in the file's name; a file of another name is taken to start at 0."""
    return 0 if location.base_offset is None else location.base_offset


def _entries_of(base_offset: int, *columns: NDArray[np.int64]) -> Iterable[tuple[Any, ...]]:
    """Rows of an index: the segment's base offset, then the values of the columns."""
    return zip([base_offset] * len(columns[0]), *(column.tolist() for column in columns), strict=True)


def _offset_index(index: Any, location: Location) -> RowBlock:
    rows = _entries_of(index.base_offset, index.relative_offsets, index.offsets, index.positions)
    return RowBlock(OFFSET_INDEX_ENTRY, rows, location)


def _time_index(index: Any, location: Location) -> RowBlock:
    rows = _entries_of(index.base_offset, index.timestamps, index.relative_offsets, index.offsets)
    return RowBlock(TIME_INDEX_ENTRY, rows, location)


def _transaction_index(index: Any, location: Location) -> RowBlock:
    columns = index.versions, index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets
    return RowBlock(ABORTED_TXN, _entries_of(index.base_offset, *columns), location)


def _producer_snapshot(snapshot: Any, location: Location) -> RowBlock:
    *before, open_transactions = (column.tolist() for column in snapshot.columns)
    rows = zip(
        [location.base_offset] * snapshot.entry_count,
        *before,
        [None if first < 0 else first for first in open_transactions],
        strict=True,
    )
    return RowBlock(PRODUCER_SNAPSHOT_ENTRY, rows, location)


def _leader_epochs(checkpoint: Any, location: Location) -> RowBlock:
    rows = [(location.path, entry.leader_epoch, entry.start_offset) for entry in checkpoint.entries]
    return RowBlock(LEADER_EPOCH, rows, location)


def _offset_checkpoint(checkpoint: Any, location: Location) -> RowBlock:
    rows = [(location.path, entry.topic, entry.partition, entry.offset) for entry in checkpoint.entries]
    return RowBlock(CHECKPOINT_OFFSET, rows, location)


def _fields(found: Any, location: Location) -> RowBlock:
    """A property for each field of the content."""
    pairs = [(name, value) for name, value in asdict(found).items() if name not in ("path", "problems")]
    return _properties(pairs, location)


def _quorum_state(state: Any, location: Location) -> RowBlock:
    """A property for each field that the version has."""
    pairs = [(name, value) for name, value in asdict(state).items() if name not in ("path", "problems")]
    known = [(name, list(value) if isinstance(value, tuple) else value) for name, value in pairs if value is not None]
    return _properties(known, location)


def _properties(pairs: Iterable[tuple[str, Any]], location: Location) -> RowBlock:
    return RowBlock(PROPERTY, [(location.path, name, value) for name, value in pairs], location)


def _lock(lock: live_broker.BrokerLock, location: Location) -> RowBlock:
    pairs: list[tuple[str, Any]] = [("is_held", lock.is_held), ("pid", lock.pid)]
    return _properties([*pairs, ("reason", lock.reason)] if lock.reason else pairs, location)


_MODULES = {
    Kind.OFFSET_INDEX: offset_index,
    Kind.TIME_INDEX: time_index,
    Kind.TRANSACTION_INDEX: transaction_index,
    Kind.PRODUCER_SNAPSHOT: producer_snapshot,
    Kind.LEADER_EPOCH_CHECKPOINT: leader_epoch_checkpoint,
    Kind.OFFSET_CHECKPOINT: offset_checkpoint,
    Kind.PARTITION_METADATA: partition_metadata,
    Kind.META_PROPERTIES: meta_properties,
    Kind.QUORUM_STATE: quorum_state,
    Kind.CLEAN_SHUTDOWN: clean_shutdown,
}
_BLOCKS: dict[Kind, Callable[[Any, Location], RowBlock]] = {
    Kind.OFFSET_INDEX: _offset_index,
    Kind.TIME_INDEX: _time_index,
    Kind.TRANSACTION_INDEX: _transaction_index,
    Kind.PRODUCER_SNAPSHOT: _producer_snapshot,
    Kind.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    Kind.OFFSET_CHECKPOINT: _offset_checkpoint,
    Kind.PARTITION_METADATA: _fields,
    Kind.META_PROPERTIES: lambda found, where: _properties(found.properties, where),
    Kind.QUORUM_STATE: _quorum_state,
    Kind.CLEAN_SHUTDOWN: _fields,
    Kind.LOCK: _lock,
}
