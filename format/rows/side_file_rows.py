"""Rows of every kind of side file, for dump."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from msgspec.structs import fields

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
from format.files.side_file import Problem, problem_findings
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
        block, problems = _read(path, kind, location, limits)
    except KafkaLogError as error:
        if isinstance(error, InputError) and error.code not in ("file-unreadable", "file-changed"):
            raise
        yield finding_of(error, location)
        return
    yield block
    yield from problem_findings(problems, location)


#: Indexes: the reader, the row type, and the columns after the base offset of the segment.
_INDEXES: dict[Kind, tuple[Any, RowSchema, tuple[str, ...]]] = {
    Kind.OFFSET_INDEX: (offset_index.read, OFFSET_INDEX_ENTRY, ("relative_offsets", "offsets", "positions")),
    Kind.TIME_INDEX: (time_index.read, TIME_INDEX_ENTRY, ("timestamps", "relative_offsets", "offsets")),
    Kind.TRANSACTION_INDEX: (
        transaction_index.read,
        ABORTED_TXN,
        ("versions", "producer_ids", "first_offsets", "last_offsets", "last_stable_offsets"),
    ),
}
#: Files of entries: the reader, the row type, and the fields after the path.
_ENTRIES: dict[Kind, tuple[Any, RowSchema, tuple[str, ...]]] = {
    Kind.LEADER_EPOCH_CHECKPOINT: (leader_epoch_checkpoint.read, LEADER_EPOCH, ("leader_epoch", "start_offset")),
    Kind.OFFSET_CHECKPOINT: (offset_checkpoint.read, CHECKPOINT_OFFSET, ("topic", "partition", "offset")),
}
#: Files of named values: the reader, and the fields that are shown; None for all that have a value.
_PROPERTIES: dict[Kind, tuple[Any, tuple[str, ...] | None]] = {
    Kind.PARTITION_METADATA: (partition_metadata.read, ("version", "topic_id")),
    Kind.QUORUM_STATE: (quorum_state.read, None),
    Kind.CLEAN_SHUTDOWN: (clean_shutdown.read, ("version", "broker_epoch")),
}


def _read(path: Path, kind: Kind, location: Location, limits: Limits) -> tuple[RowBlock, Iterable[Problem]]:
    """The rows of a file and its problems. Raises KafkaLogError."""
    if kind in _INDEXES:
        read, schema, names = _INDEXES[kind]
        base = location.base_offset or 0  # a file of another name is taken to start at 0
        found = read(path, base, limits)
        columns = [getattr(found, name).tolist() for name in names]
        return RowBlock(schema, zip(repeat(base, len(columns[0])), *columns, strict=True), location), found.problems
    if kind in _ENTRIES:
        read, schema, names = _ENTRIES[kind]
        found = read(path, limits)
        rows = [(str(path), *(getattr(entry, name) for name in names)) for entry in found.entries]
        return RowBlock(schema, rows, location), found.problems
    if kind is Kind.PRODUCER_SNAPSHOT:
        found = producer_snapshot.read(path, limits)
        *before, open_transactions = (column.tolist() for column in found.columns)
        firsts = [None if first < 0 else first for first in open_transactions]
        entries = zip(repeat(location.base_offset, found.entry_count), *before, firsts, strict=True)
        return RowBlock(PRODUCER_SNAPSHOT_ENTRY, entries, location), found.problems
    pairs, problems = _pairs(path, kind, limits)
    return RowBlock(PROPERTY, [(str(path), name, value) for name, value in pairs], location), problems


def _pairs(path: Path, kind: Kind, limits: Limits) -> tuple[list[tuple[str, Any]], Iterable[Problem]]:
    """The named values of a file."""
    if kind is Kind.LOCK:
        probe = live_broker.probe(path)
        return [("is_held", probe.is_held), ("pid", probe.pid), *([("reason", probe.reason)] * bool(probe.reason))], ()
    if kind is Kind.META_PROPERTIES:
        properties = meta_properties.read(path, limits)
        return list(properties.properties), properties.problems
    read, names = _PROPERTIES[kind]
    found = read(path, limits)
    if names is not None:
        return [(name, getattr(found, name)) for name in names], found.problems
    shown = {each.name: getattr(found, each.name) for each in fields(found) if each.name not in ("path", "problems")}
    pairs = [(name, list(value) if isinstance(value, tuple) else value) for name, value in shown.items()]
    return [pair for pair in pairs if pair[1] is not None], found.problems
