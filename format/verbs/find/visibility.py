"""Who can see a record: the bounds of what is served, the last stable offset, and how the transaction ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace

from format import layout
from format.errors import KafkaLogError
from format.findings import Finding
from format.io import live_broker
from format.io.session import is_there
from format.io.source import FileSource
from format.layout import CLUSTER_METADATA_TOPIC
from format.limits import Limits
from format.log.batch_chunk import BatchRange, HeaderChunk
from format.log.control_records import read_control_records
from format.log.walker import header_chunks
from format.node.log_dir import Checkpoints, directory_around, read_checkpoints
from format.node.offsets import MARKS_OF_REPLICAS, PartitionOffsets, offsets_of, remote_head_findings
from format.node.partition import Partition
from format.scan.selection import Selection, start_position
from format.state.cluster_context import Assignment
from format.state.producers import Transaction, TransactionState, newest_sound_snapshot
from format.verbs.find.lookup import FoundRecord, MatchedBatch, Visibility

_CHECKPOINTS = (
    layout.LOG_START_OFFSET_CHECKPOINT,
    layout.REPLICATION_OFFSET_CHECKPOINT,
    layout.RECOVERY_POINT_CHECKPOINT,
)
#: Headers are read in windows of this size; the rest of larger batches is skipped.
_WINDOW_BYTES = 256 * 1024


class Bounds(msgspec.Struct, frozen=True):
    """Offsets from ``log_start_offset`` up to, not including, ``high_watermark`` are served to consumers.

    ``log_start_source`` names the source of the log start offset. ``high_watermark`` is None if no checkpoint has it,
    and beside a running broker, whose own is past that of the checkpoint, which it writes every few seconds. Offsets
    below ``replicated_end`` are replicated by the checkpoint. ``offsets`` are what files and checkpoints say.
    """

    log_start_offset: int
    log_start_source: str
    high_watermark: int | None
    replicated_end: int | None
    offsets: PartitionOffsets

    def recovery_words(self, segment_end: int | None) -> str:
        """That a start recovers a segment that ends before an offset, None for the last one; empty where not."""
        if not self.offsets.rebuilds_indexes(segment_end):
            return ""
        return "no clean stop is marked here, so that a start cuts this segment at its first damage (kafkalog boot)"

    def unsure_words(self, offset: int) -> str:
        """Why it is not known whether this offset is below the high watermark; empty where it is known."""
        if self.high_watermark is not None or (self.replicated_end is not None and offset < self.replicated_end):
            return ""
        if self.replicated_end is None:
            return "no high watermark is here"
        return f"the checkpoint has high watermark {self.replicated_end}, and the running broker a newer one"


def read_bounds(
    partition: Partition, limits: Limits, around: Checkpoints | None = None
) -> tuple[Bounds, list[Finding]]:
    """The bounds that a broker sets at its start (storage LogLoader, UnifiedLog.updateHighWatermark), and findings.

    A checkpoint that cannot be read gives a finding and sets no bound. ``around``: those of the log directory, if
    they were read before.
    """
    checkpoints = Checkpoints()
    if partition.key is not None and partition.mark in MARKS_OF_REPLICAS:
        checkpoints = around or _bounding_checkpoints(directory_around(partition.path), limits)
    offsets = offsets_of(partition, checkpoints)
    findings = [*checkpoints.findings, *remote_head_findings(offsets, partition.location())]
    log_start_offset, log_start_source = offsets.log_start_offset or 0, "the first segment's base offset"
    if log_start_offset != (offsets.local_start_offset or 0):
        log_start_source = f"the {layout.LOG_START_OFFSET_CHECKPOINT}"
    replicated_end = offsets.high_watermark
    if replicated_end is not None:
        replicated_end = max(replicated_end, log_start_offset)
    if offsets.is_broker_running:
        offsets = replace(offsets, high_watermark=None)
    high_watermark = None if offsets.high_watermark is None else replicated_end
    return Bounds(log_start_offset, log_start_source, high_watermark, replicated_end, offsets), findings


def _bounding_checkpoints(directory: Path, limits: Limits) -> Checkpoints:
    """The checkpoints of a log directory that set bounds; the directory, which may be large, is not listed."""
    paths = {name: directory / name for name in _CHECKPOINTS}
    return read_checkpoints(
        {name: path for name, path in paths.items() if is_there(path)},
        limits,
        is_clean_shutdown=is_there(directory / layout.CLEAN_SHUTDOWN),
        has_remote_storage=is_there(directory / layout.REMOTE_INDEX_CACHE),
        lock=live_broker.probe(directory / layout.LOCK),
    )


class Stability(msgspec.Struct, frozen=True):
    """The last stable offset, or a lower bound of it, and the open transaction that holds it back, None for none."""

    last_stable_offset: int
    holder: Transaction | None = None
    bytes_read: int = 0


class TooMuchToRead(Exception):
    """More bytes of the log must be read than was allowed."""

    def __init__(self, bytes_needed: int) -> None:
        super().__init__(bytes_needed)
        self.bytes_needed = bytes_needed


def read_stability(
    partition: Partition,
    bounds: Bounds,
    limits: Limits,
    most_bytes: int | None = None,
    *,
    wanted_offset: int | None = None,
) -> Stability:
    """The last stable offset, from the newest producer snapshot and the batch headers after it.

    Where the snapshot alone shows that it is past ``wanted_offset``, only a lower bound is returned, and no log is
    read. A transaction whose end marker is not replicated counts as open. A log ends where it cannot be read. Raises
    TooMuchToRead, with the bytes needed as far as they are known, before it reads more than ``most_bytes``.
    """
    end = bounds.high_watermark
    state, start = _newest_state(partition, end, limits)
    least = min((start, *(each.first_offset for each in state.open.values())))
    if wanted_offset is not None and wanted_offset < least:
        return Stability(least)
    log_end_offset, bytes_read = max(start, bounds.log_start_offset), 0
    for segment in partition.segments:
        next_base_offset = partition.next_base_offset(segment)
        if segment.log is None or (next_base_offset is not None and next_base_offset <= start):
            continue
        try:
            with FileSource(segment.log) as source:
                position = start_position(segment, source, Selection(from_offset=start)) if start else 0
                needed = bytes_read + source.size_bytes - position
                if most_bytes is not None and needed > most_bytes:
                    raise TooMuchToRead(needed)
                for chunk in header_chunks(source, BatchRange(position), limits=limits, chunk_bytes=_WINDOW_BYTES):
                    log_end_offset = max(log_end_offset, _feed(state, chunk, source, start, end, limits))
                bytes_read += source.bytes_read
        except KafkaLogError:
            break
    holder = min(state.open.values(), key=lambda each: each.first_offset, default=None)
    known = bounds.offsets.with_transactions(log_end_offset, None if holder is None else holder.first_offset)
    return Stability(known.last_stable_offset or 0, holder, bytes_read)


def _newest_state(partition: Partition, end: int | None, limits: Limits) -> tuple[TransactionState, int]:
    """The open transactions of the newest sound snapshot up to ``end``, and its offset; none, and 0, without one."""
    found = newest_sound_snapshot(partition, limits, end)
    if found is None:
        return TransactionState(), 0
    offset, snapshot = found
    state = TransactionState()
    columns = (snapshot.producer_ids, snapshot.producer_epochs, snapshot.current_txn_first_offsets)
    for producer_id, epoch, first_offset in zip(*(column.tolist() for column in columns), strict=True):
        if first_offset >= 0:
            state.add_open(Transaction(producer_id, epoch, first_offset))
    return state, offset


def _feed(
    state: TransactionState, chunk: HeaderChunk, source: FileSource, start: int, end: int | None, limits: Limits
) -> int:
    """Feed the batches from ``start`` to before ``end``; returns the offset after the chunk's last batch."""
    table = chunk.headers.unopened()
    if not len(table):
        return 0
    wanted = table.base_offset >= start
    if end is not None:
        wanted &= table.base_offset < end
    if (table.is_transactional & wanted).any():
        number = np.cumsum(wanted) - 1
        controls = read_control_records(chunk, source, limits).items()
        state.feed(table.rows(wanted), {int(number[row]): each for row, each in controls if wanted[row]})
    return table.last_offset_of(len(table) - 1) + 1


def diagnosed(
    partition: Partition, bounds: Bounds, match: FoundRecord, limits: Limits, most_bytes: int | None = None
) -> FoundRecord:
    """The match with its visibility, how its transaction ended, and a note where not every consumer sees it.

    The visibility stays unknown where more than ``most_bytes`` must be read for it; one that is known stays.
    """
    batch, offset = match.batch, match.location.offset
    if batch is None or offset is None or match.visibility is not None:
        return match
    if match.hidden:
        return replace(match, visibility=Visibility.DAMAGED, note=match.hidden)
    state = None
    try:
        if batch.is_transactional:
            state = next(_end_markers(partition, match, batch, limits, most_bytes), "open")
        stability = read_stability(partition, bounds, limits, most_bytes, wanted_offset=offset)
    except TooMuchToRead as error:
        return replace(match, transaction_state=state, visibility_bytes_needed=error.bytes_needed)
    visibility, note = _visibility(batch, offset, state, bounds, stability)
    return replace(
        match,
        visibility=visibility,
        unsure=_unsure(partition, bounds, match, offset),
        transaction_state=state,
        note=note,
        visibility_bytes_read=stability.bytes_read,
    )


def _unsure(partition: Partition, bounds: Bounds, match: FoundRecord, offset: int) -> str:
    """The conditions under which a record that is not damaged is served; empty for none."""
    own = (each for each in partition.segments if each.base_offset == match.location.base_offset)
    end = next((partition.next_base_offset(each) for each in own), 0)
    replicated, kept = bounds.unsure_words(offset), bounds.recovery_words(end)
    parts = [f"if it is replicated: {replicated}"] if replicated else []
    parts += [f"if a start keeps it: {kept}"] if kept else []
    return ", and ".join(parts)


def _visibility(
    batch: MatchedBatch, offset: int, state: str | None, bounds: Bounds, stability: Stability
) -> tuple[Visibility, str]:
    """The visibility of a record in the log, and the reason, empty for a visible record."""
    if not batch.crc_valid:
        return Visibility.DAMAGED, "in a batch with a wrong CRC: a consumer that gets it fails"
    if batch.is_control:
        return Visibility.CONTROL, "a control record, which consumers never get"
    if bounds.high_watermark is not None and offset >= bounds.high_watermark:
        mark = f"at or past the high watermark {bounds.high_watermark} of this replica's checkpoint"
        return Visibility.NOT_REPLICATED, f"{mark}, so not served from here when that was written"
    if offset >= stability.last_stable_offset:
        return Visibility.READ_UNCOMMITTED_ONLY, f"{_held_back(batch, offset, stability)}; {_UNCOMMITTED}"
    if state == "aborted":
        words = f"part of a transaction of producer {batch.producer_id} that was aborted"
        return Visibility.ABORTED, f"{words}; {_UNCOMMITTED}"
    return Visibility.VISIBLE, ""


_UNCOMMITTED = "only read_uncommitted consumers get it"


def _held_back(batch: MatchedBatch, offset: int, stability: Stability) -> str:
    holder = stability.holder
    if holder is None:
        return f"at or past the last stable offset {stability.last_stable_offset}"
    where = f"transaction of producer {holder.producer_id}, which began at offset {holder.first_offset}"
    is_own = batch.is_transactional and batch.producer_id == holder.producer_id and offset >= holder.first_offset
    return f"{'part of' if is_own else 'behind'} the open {where}"


def _end_markers(
    partition: Partition, match: FoundRecord, batch: MatchedBatch, limits: Limits, most_bytes: int | None
) -> Iterator[str]:
    """The outcome, aborted or committed, of each end marker of the producer, from the match itself on.

    Reading ends where the log cannot be read. Raises TooMuchToRead.
    """
    bytes_read = 0
    first_segment = match.location.base_offset or 0
    for segment in partition.segments:
        if segment.log is None or segment.base_offset < first_segment:
            continue
        start = (match.location.position or 0) if segment.base_offset == first_segment else 0
        try:
            with FileSource(segment.log) as source:
                for chunk in header_chunks(source, BatchRange(start), limits=limits, chunk_bytes=_WINDOW_BYTES):
                    table = chunk.headers
                    if (table.is_control & (table.producer_id == batch.producer_id)).any():
                        for row, control in sorted(read_control_records(chunk, source, limits).items()):
                            if control.is_end_transaction and table.producer_id[row] == batch.producer_id:
                                yield "aborted" if control.type_name == "ABORT" else "committed"
                    passed_bytes = int(table.end_position[-1]) - start if len(table) else 0
                    if most_bytes is not None and bytes_read + passed_bytes >= most_bytes:
                        raise TooMuchToRead(bytes_read + source.size_bytes - start)
                bytes_read += source.size_bytes - start
        except KafkaLogError:
            return


def visibility_sentence(match: FoundRecord, name: str, assignment: Assignment, node_id: int | None) -> str:
    """Such as ``offset 7 is visible to every consumer while node 1 leads orders-0, as it does by the metadata of …``.

    ``name`` is that of the partition, ``node_id`` the node of this replica. Empty for an unknown visibility.
    """
    if match.visibility is None:
        return ""
    subject = f"offset {match.location.offset} is"
    if match.location.topic == CLUSTER_METADATA_TOPIC:
        what = match.note or "in this replica of the metadata log; whether the quorum committed it is not stored"
        return f"{subject} {what}. Consumers never read this log"
    is_leader = assignment.is_leader(node_id)
    if match.visibility is not Visibility.VISIBLE:
        return f"{subject} {match.note}{'' if is_leader else f'. {standing(name, assignment, node_id)}'}"
    unsure = f", {match.unsure}" if match.unsure else ""
    if is_leader:
        leads = f"while node {node_id} leads {name}, as it does by {assignment.source}"
        return f"{subject} visible to every consumer {leads}{unsure}"
    return f"{subject} visible in this replica{unsure}. {standing(name, assignment, node_id)}"


def standing(name: str, assignment: Assignment, node_id: int | None) -> str:
    """What this replica, which is not known to lead, is to consumers; empty for the leader."""
    if assignment.state is None:
        return f"Consumers read from the leader, which is not known: {assignment.unknown}"
    if assignment.is_leader(node_id):
        return ""
    here = "" if node_id is None or node_id in assignment.replicas else f"Node {node_id} has no replica of {name}. "
    if assignment.leader is None:
        return f"{here}{name} has no leader ({assignment.last_members}), by {assignment.source}: no consumer reads it"
    whose = "its replica was not read" if node_id is not None else "no meta.properties says whose replica this is"
    reads = f"{here}Consumers read from the leader, node {assignment.leader} by {assignment.source}: {whose}"
    return reads if here or node_id is None else f"{reads}. {_membership(assignment, node_id)}"


def _membership(assignment: Assignment, node_id: int) -> str:
    """Whether a follower is in the ISR, and whether its replica is in the directory that the metadata names."""
    words = f"Node {node_id} is in the ISR"
    if assignment.state is not None and node_id not in assignment.state.isr:
        words = f"Node {node_id} is out of sync ({assignment.last_members})"
    if assignment.other_directory:
        words += f", and its replica is assigned to another directory, {assignment.other_directory}"
    return words
