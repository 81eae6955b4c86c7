"""The lines of .txnindex and .snapshot files.

Source: tools DumpLogSegments (dumpTxnIndex, dumpProducerIdSnapshot), storage TransactionIndex, ProducerStateManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from format.codecs.checksums import crc32c_of
from format.files import producer_snapshot, transaction_index
from format.findings import Finding, finding
from format.io.session import is_there
from format.io.source import read_whole
from format.layout import PRODUCER_SNAPSHOT_HEADER
from format.limits import Limits
from format.node.partition import location_of_file
from format.verbs.dump_log.file_names import java_long, stem_of
from format.verbs.dump_log.java_text import decrement_sequence
from format.verbs.dump_log.options import DumpLogOptions, Release
from format.verbs.dump_log.stops import ErrorLine, KafkaStops


def transaction_index_lines(path: str, options: DumpLogOptions, limits: Limits) -> Iterator[bytes | Finding]:
    """A line for each aborted transaction. Kafka checks only the first byte of the version, and dies if it is not 0."""
    location = location_of_file(path)
    is_emulated = options.emulate is not None
    if is_emulated:
        java_long(stem_of(path))
        if not is_there(path):
            return
    index = transaction_index.read(options.place(path), location.base_offset or 0, limits)
    versions = (index.versions >> 8 if is_emulated else index.versions).tolist()
    if is_emulated and any(version > 0 for version in versions):
        raise KafkaStops("org.apache.kafka.common.KafkaException: Unexpected aborted transaction version")
    rows = zip(
        versions,
        index.producer_ids.tolist(),
        index.first_offsets.tolist(),
        index.last_offsets.tolist(),
        index.last_stable_offsets.tolist(),
        strict=True,
    )
    line = b"version: %d producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n"
    yield b"".join([line % row for row in rows])
    if not is_emulated:
        for problem in index.problems:
            yield finding(problem.code, location.at(problem.position, problem.length), problem.message)


def producer_snapshot_lines(
    path: str, options: DumpLogOptions, limits: Limits
) -> Iterator[bytes | Finding | ErrorLine]:
    """A line for each producer; as in Kafka, no lines for a snapshot that cannot be trusted."""
    location = location_of_file(path)
    snapshot = producer_snapshot.read(options.place(path), limits)
    untrusted = _untrusted(snapshot, options.session.path(path), limits)
    if options.emulate is not None and untrusted is not None:
        yield ErrorLine(untrusted)
        return
    if options.emulate is None:
        for problem in snapshot.problems:
            yield finding(problem.code, location.at(problem.position, problem.length), problem.message)
        if untrusted is not None:
            return
    # 3.9.1 always wrote the space after the timestamp.
    space_before, space_after = (b"", b" ") if options.emulate is Release.V3_9_1 else (b" ", b"")
    lines = []
    for producer, epoch, sequence, offset, delta, timestamp, coordinator, first in zip(
        *(column.tolist() for column in snapshot.columns), strict=True
    ):
        open_transaction = b"OptionalLong[%d]" % first if first >= 0 else b"OptionalLong.empty"
        lines.append(
            b"producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %b lastTimestamp: %d"
            % (producer, epoch, coordinator, open_transaction, timestamp)
        )
        lines.append(space_after)
        if offset >= 0:
            lines.append(
                space_before
                + b"firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d"
                % (decrement_sequence(sequence, delta), sequence, offset, delta, timestamp)
            )
        lines.append(b"\n")
    yield b"".join(lines)


def _untrusted(snapshot: producer_snapshot.ProducerSnapshot, path: Path, limits: Limits) -> str | None:
    """Kafka's message for a snapshot that it rejects; None for one that it accepts."""
    if snapshot.version not in (None, producer_snapshot.CURRENT_VERSION):
        return f"Snapshot failed schema validation: Snapshot contained an unknown file version {snapshot.version}"
    stored = snapshot.stored_entry_count
    if stored is None or stored != snapshot.entry_count:
        room = snapshot.file_size_bytes - PRODUCER_SNAPSHOT_HEADER.size_bytes
        reason = "null"
        if stored is not None and stored < 0:
            reason = "non-nullable field producerEntries was serialized as null"
        elif stored is not None and stored > room:
            reason = f"Tried to allocate a collection of size {stored}, but there are only {room} bytes remaining."
        return f"Snapshot failed schema validation: {reason}"
    if not snapshot.crc_valid:
        covered = read_whole(path, limits.max_side_file_bytes)[PRODUCER_SNAPSHOT_HEADER.offset_of("entry_count") :]
        return (
            f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {snapshot.stored_crc}. "
            f"Computed crc: {crc32c_of(covered)}"
        )
    return None
