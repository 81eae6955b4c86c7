"""Rows of every kind of side file, for dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import fields
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
from format.files.side_file import Problem, problem_findings
from format.findings import Finding, finding_of
from format.io import live_broker
from format.limits import DEFAULT_LIMITS, Limits
from format.location import Location
from format.node.log_dir import Kind
from format.node.partition import location_of_file
from format.rows.record_rows import Row, RowBlock


def side_file_blocks(path: Path, kind: Kind, *, limits: Limits = DEFAULT_LIMITS) -> Iterator[RowBlock | Finding]:
    """The rows of one side file, then findings about it; only a finding if it cannot be read."""
    location = location_of_file(path)
    try:
        block, problems = _READERS[kind](path, location, limits)
    except KafkaLogError as error:
        if isinstance(error, InputError) and error.code not in ("file-unreadable", "file-changed"):
            raise
        yield finding_of(error, location)
        return
    yield block
    yield from problem_findings(problems, location)


_Read = tuple[RowBlock, Iterable[Problem]]


def _base_offset(location: Location) -> int:
    """The base offset in the file's name; a file of another name is taken to start at 0."""
    return 0 if location.base_offset is None else location.base_offset


def _entries_of(base_offset: int, *columns: NDArray[np.int64]) -> Iterable[Row]:
    """Rows of an index: the segment's base offset, then the values of the columns."""
    return zip([base_offset] * len(columns[0]), *(column.tolist() for column in columns), strict=True)


def _offset_index(path: Path, location: Location, limits: Limits) -> _Read:
    base = _base_offset(location)
    index = offset_index.read(path, base, limits)
    rows = _entries_of(base, index.relative_offsets, index.offsets, index.positions)
    return RowBlock(OFFSET_INDEX_ENTRY, rows, location), index.problems


def _time_index(path: Path, location: Location, limits: Limits) -> _Read:
    base = _base_offset(location)
    index = time_index.read(path, base, limits)
    rows = _entries_of(base, index.timestamps, index.relative_offsets, index.offsets)
    return RowBlock(TIME_INDEX_ENTRY, rows, location), index.problems


def _transaction_index(path: Path, location: Location, limits: Limits) -> _Read:
    base = _base_offset(location)
    index = transaction_index.read(path, base, limits)
    columns = index.versions, index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets
    rows = _entries_of(base, *columns)
    return RowBlock(ABORTED_TXN, rows, location), index.problems


def _producer_snapshot(path: Path, location: Location, limits: Limits) -> _Read:
    snapshot = producer_snapshot.read(path, limits)
    *before, open_transactions = (column.tolist() for column in snapshot.columns)
    rows = zip(
        [location.base_offset] * snapshot.entry_count,
        *before,
        [None if first < 0 else first for first in open_transactions],
        strict=True,
    )
    return RowBlock(PRODUCER_SNAPSHOT_ENTRY, rows, location), snapshot.problems


def _leader_epochs(path: Path, location: Location, limits: Limits) -> _Read:
    checkpoint = leader_epoch_checkpoint.read(path, limits)
    rows = [(str(path), entry.leader_epoch, entry.start_offset) for entry in checkpoint.entries]
    return RowBlock(LEADER_EPOCH, rows, location), checkpoint.problems


def _offset_checkpoint(path: Path, location: Location, limits: Limits) -> _Read:
    checkpoint = offset_checkpoint.read(path, limits)
    rows = [(str(path), entry.topic, entry.partition, entry.offset) for entry in checkpoint.entries]
    return RowBlock(CHECKPOINT_OFFSET, rows, location), checkpoint.problems


def _properties(path: Path, location: Location, pairs: Iterable[tuple[str, Any]]) -> RowBlock:
    return RowBlock(PROPERTY, [(str(path), name, value) for name, value in pairs], location)


def _partition_metadata(path: Path, location: Location, limits: Limits) -> _Read:
    metadata = partition_metadata.read(path, limits)
    pairs = [("version", metadata.version), ("topic_id", metadata.topic_id)]
    return _properties(path, location, pairs), metadata.problems


def _meta_properties(path: Path, location: Location, limits: Limits) -> _Read:
    properties = meta_properties.read(path, limits)
    return _properties(path, location, properties.properties), properties.problems


def _quorum_state(path: Path, location: Location, limits: Limits) -> _Read:
    state = quorum_state.read(path, limits)
    pairs = [
        (each.name, list(value) if isinstance(value, tuple) else value)
        for each in fields(state)
        if each.name not in ("path", "problems") and (value := getattr(state, each.name)) is not None
    ]
    return _properties(path, location, pairs), state.problems


def _clean_shutdown(path: Path, location: Location, limits: Limits) -> _Read:
    mark = clean_shutdown.read(path, limits)
    return _properties(path, location, [("version", mark.version), ("broker_epoch", mark.broker_epoch)]), mark.problems


def _lock(path: Path, location: Location, limits: Limits) -> _Read:
    probe = live_broker.probe(path)
    pairs: list[tuple[str, Any]] = [("is_held", probe.is_held), ("pid", probe.pid)]
    if probe.reason:
        pairs.append(("reason", probe.reason))
    return _properties(path, location, pairs), ()


_READERS = {
    Kind.OFFSET_INDEX: _offset_index,
    Kind.TIME_INDEX: _time_index,
    Kind.TRANSACTION_INDEX: _transaction_index,
    Kind.PRODUCER_SNAPSHOT: _producer_snapshot,
    Kind.LEADER_EPOCH_CHECKPOINT: _leader_epochs,
    Kind.OFFSET_CHECKPOINT: _offset_checkpoint,
    Kind.PARTITION_METADATA: _partition_metadata,
    Kind.META_PROPERTIES: _meta_properties,
    Kind.QUORUM_STATE: _quorum_state,
    Kind.CLEAN_SHUTDOWN: _clean_shutdown,
    Kind.LOCK: _lock,
}
