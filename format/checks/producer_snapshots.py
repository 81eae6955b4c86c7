"""Checks producer snapshots against the state of producers at their offset, which is computed from the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format.errors import KafkaLogError
from format.files import producer_snapshot
from format.files.side_file import problem_findings
from format.findings import Certainty, Finding, Judgement, finding, finding_of
from format.limits import Limits
from format.location import Location
from format.state.producers import ProducerEntry, ProducerState

_OF_THE_LAST_BATCH = ("last_sequence", "last_offset", "offset_delta")


def check_producer_snapshot(
    path: Path,
    snapshot_offset: int,
    state: ProducerState | None,
    location: Location,
    *,
    first_offset: int | None,
    is_compacted: bool,
    limits: Limits,
) -> Iterator[Finding]:
    """Findings for one snapshot; ``state`` is computed from the log before ``snapshot_offset``, None if unknown.

    A producer whose batches are before ``first_offset``, where the log begins or its records start to count, cannot be
    compared; one that is missing from the snapshot may have expired (producer.id.expiration.ms), unless its transaction
    is open. Brokers before 2.4 forget a producer, and its open transaction, with its last record before that offset.
    """
    try:
        snapshot = producer_snapshot.read(path, limits)
    except KafkaLogError as error:
        yield finding_of(error, location)
        return
    yield from problem_findings(snapshot.problems, location)
    if state is None or snapshot.problems:
        return
    seen = set()
    names = ("producer_epoch", "last_sequence", "last_offset", "offset_delta", "timestamp")
    for producer_id, *values in zip(*(column.tolist() for column in snapshot.columns), strict=True):
        seen.add(producer_id)
        stored = dict(zip((*names, "coordinator_epoch", "current_txn_first_offset"), values, strict=True))
        entry = state.entries.get(producer_id)
        if entry is None:
            if first_offset is not None and stored["last_offset"] >= first_offset and not is_compacted:
                yield _mismatch(
                    location, snapshot_offset, producer_id, "is in the snapshot with last offset "
                    f"{stored['last_offset']}, but no batch of it is in the log", None, stored["last_offset"],
                )  # fmt: skip
            continue
        _read_as_newer(stored, entry)
        wrong = []
        # If the batches of a producer were deleted with the head of the log, only the marker is left.
        is_headless = entry.last_offset < 0 and (first_offset is None or stored["last_offset"] < first_offset)
        for name in names:
            known = getattr(entry, name)
            if (is_compacted and name != "producer_epoch") or (is_headless and name in _OF_THE_LAST_BATCH):
                continue
            if _differs(stored[name], known, is_compacted):
                wrong.append((name, known, stored[name]))
        # The broker knows of no marker of a producer that expired and wrote again.
        known, coordinator_epoch = entry.coordinator_epoch, stored["coordinator_epoch"]
        if known is not None and coordinator_epoch != -1 and _differs(coordinator_epoch, known, is_compacted):
            wrong.append(("coordinator_epoch", known, coordinator_epoch))
        open_since = -1 if entry.current_txn_first_offset is None else entry.current_txn_first_offset
        if stored["current_txn_first_offset"] != open_since and not is_compacted:
            before_log = first_offset is not None and 0 <= stored["current_txn_first_offset"] < first_offset
            if not before_log:
                wrong.append(("current_txn_first_offset", open_since, stored["current_txn_first_offset"]))
        for name, known, actual in wrong:
            yield _mismatch(
                location, snapshot_offset, producer_id,
                f"has {name} {actual} in the snapshot, but {known} in the log", known, actual,
            )  # fmt: skip
    for producer_id, began in state.open_transactions.items():
        entry = state.entries.get(producer_id)
        is_gone = entry is not None and first_offset is not None and entry.last_offset < first_offset
        if producer_id not in seen and began < snapshot_offset and not is_gone:
            yield _mismatch(
                location, snapshot_offset, producer_id,
                "has an open transaction in the log and is not in the snapshot", None, None,
            )  # fmt: skip


def _differs(stored: int, known: int, is_compacted: bool) -> bool:
    """Whether an epoch in a snapshot contradicts the log.

    The cleaner removes aborted batches and the content of markers, so that the log may have no trace of a producer's
    last epochs: in a compacted log, an epoch that is higher in the snapshot proves nothing.
    """
    return stored < known if is_compacted else stored != known


def _read_as_newer(stored: dict[str, int], entry: ProducerEntry) -> None:
    """Change an entry of an old release into what newer releases would have written.

    0.11 counts a marker as a batch of one record; 1.0 to 2.4 keep the timestamp of the last data batch (core
    ProducerStateManager of these releases).
    """
    if 0 <= entry.marker_offset == stored["last_offset"] and stored["offset_delta"] == 0:
        stored["last_offset"], stored["offset_delta"] = entry.last_offset, entry.offset_delta
    if stored["timestamp"] == entry.data_timestamp:
        stored["timestamp"] = entry.timestamp


def _mismatch(
    location: Location, snapshot_offset: int, producer_id: int, what: str, expected: object, actual: object
) -> Finding:
    return finding(
        "snapshot-mismatch",
        location.at(offset=snapshot_offset),
        f"producer {producer_id} {what}",
        expected=expected,
        actual=actual,
        judgement=Judgement(certainty=Certainty.LIKELY),
    )
