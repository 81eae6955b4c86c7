"""Each batch header by itself: fields that contradict each other or that no broker writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from format import layout
from format.findings import Finding, Judgement, Severity, finding
from format.kernel.checks import find_doubtful_header
from format.kernel.compiled import KERNEL_IS_COMPILED
from format.location import Location
from format.log.batch_table import BatchTable, HeaderTable, batch_location
from format.timestamps import iso_time

_MAX_I64 = 2**63 - 1


def check_batch_headers(
    table: BatchTable, location: Location, *, latest_timestamp_ms: int | None = None
) -> Iterator[Finding]:
    """Findings for the headers of one table; timestamps above ``latest_timestamp_ms``, if known, are reported."""
    if KERNEL_IS_COMPILED:
        latest = _MAX_I64 if latest_timestamp_ms is None else latest_timestamp_ms
        if find_doubtful_header(memoryview(np.ascontiguousarray(table.columns)), latest) < 0:
            return
    is_v2 = table.magic == 2
    delta, count, base_offset = table.last_offset_delta, table.record_count, table.base_offset
    yield from _each(
        table, location, is_v2 & ((delta < 0) | (count < 0)), "batch-invalid",
        lambda row: f"last offset delta {delta[row]}, record count {count[row]}: neither can be negative",
    )  # fmt: skip
    yield from _each(
        table, location, (base_offset < 0) | (base_offset > _MAX_I64 - np.maximum(delta, 0)), "batch-invalid",
        lambda row: f"base offset {base_offset[row]} and last offset delta {delta[row]} give no valid offset",
    )  # fmt: skip
    yield from _each(
        table, location, is_v2 & (delta >= 0) & (count > delta + 1), "last-offset-delta-mismatch",
        lambda row: f"{count[row]} records cannot have a last offset delta of {delta[row]}",
    )  # fmt: skip
    yield from _each(
        table, location, is_v2 & (table.leader_epoch < layout.NO_LEADER_EPOCH), "batch-invalid",
        lambda row: f"leader epoch {table.leader_epoch[row]} is negative",
    )  # fmt: skip
    known = np.choose(table.magic, (layout.KNOWN_ATTRIBUTES_V0, layout.KNOWN_ATTRIBUTES_V1, layout.KNOWN_ATTRIBUTES_V2))
    yield from _each(
        table, location, (table.attributes & ~known) != 0, "attributes-unknown",
        lambda row: f"attributes {table.attributes[row] & 0xFFFF:#06x} have bits that no known version of format "
                    f"{table.magic[row]} uses",
    )  # fmt: skip
    yield from _producer_fields(table, location)
    yield from _control_fields(table, location)
    timestamp = table.max_timestamp
    odd = timestamp < layout.NO_TIMESTAMP
    if latest_timestamp_ms is not None:
        odd |= timestamp > latest_timestamp_ms
    yield from _each(
        table, location, odd, "timestamp-suspicious",
        lambda row: f"max timestamp {iso_time(int(timestamp[row]))} is "
                    + ("negative" if timestamp[row] < 0 else "more than a day after the file was last written"),
    )  # fmt: skip


def _producer_fields(table: BatchTable, location: Location) -> Iterator[Finding]:
    """Findings for producer id, epoch and base sequence that contradict each other.

    Without a producer id, a broker ignores epoch and sequence, and clients differ: -1, or 0 in both (several Node
    clients), or 0 as the sequence (aiokafka, the group coordinator).
    """
    is_v2 = table.magic == 2
    producer_id, producer_epoch, base_sequence = table.producer_id, table.producer_epoch, table.base_sequence
    has_producer = producer_id >= 0
    yield from _each(
        table, location,
        is_v2 & ((producer_id < layout.NO_PRODUCER_ID)
                 | (has_producer & ((producer_epoch < 0) | (base_sequence < layout.NO_SEQUENCE)))),
        "batch-invalid",
        lambda row: f"producer id {producer_id[row]}, epoch {producer_epoch[row]} and base sequence "
                    f"{base_sequence[row]} contradict each other",
    )  # fmt: skip
    # A broker refuses this from a client (LogValidator.validateBatch); coordinators write it into their own topics.
    if location.topic is not None and not location.topic.startswith(layout.INTERNAL_TOPIC_PREFIX):
        yield from _each(
            table, location,
            is_v2 & has_producer & (producer_epoch >= 0) & ~table.is_control & (base_sequence == layout.NO_SEQUENCE),
            "batch-invalid",
            lambda row: f"the batch has producer id {producer_id[row]} and no base sequence; brokers reject that",
            Severity.WARNING,
        )  # fmt: skip
    yield from _each(
        table, location, is_v2 & ~has_producer & table.is_transactional, "batch-invalid",
        lambda row: "the batch is transactional and has no producer id",
        Severity.WARNING,
    )  # fmt: skip


def _control_fields(table: BatchTable, location: Location) -> Iterator[Finding]:
    """Findings for control batches that no broker or controller writes; consumers skip their records."""
    is_control = table.is_control
    yield from _each(
        table, location, is_control & (table.codec > 0), "batch-invalid",
        lambda row: "a control batch is compressed; no broker compresses one",
    )  # fmt: skip
    has_producer = table.producer_id >= 0
    yield from _each(
        table, location, is_control & has_producer & ((table.base_sequence >= 0) | ~table.is_transactional),
        "batch-invalid",
        lambda row: "the control bit is set on a batch that is not a transaction marker: consumers skip its records",
    )  # fmt: skip
    if location.topic is not None and location.topic != layout.CLUSTER_METADATA_TOPIC:
        yield from _each(
            table, location, is_control & ~has_producer, "batch-invalid",
            lambda row: "the control bit is set on a batch without a producer id, which only metadata logs have: "
                        "consumers skip its records",
        )  # fmt: skip


def check_wrapper_offsets(table: BatchTable, headers: HeaderTable, location: Location) -> Iterator[Finding]:
    """Findings for compressed v0 messages whose offset, which no CRC covers, is not that of their last inner message.

    ``table`` has the batches of ``headers``. In v1 the inner offsets are relative to the offset of the wrapper.
    """
    stored, last_offset = headers.header_offset, table.last_offset
    wrong = table.is_wrapper & (table.record_count >= 0) & (table.magic == 0) & (stored != last_offset)
    for row in np.flatnonzero(wrong).tolist():
        yield finding(
            "record-offset-invalid",
            batch_location(location, table, row),
            f"the compressed message has offset {stored[row]}, but the last message in it has {last_offset[row]}",
            expected=int(last_offset[row]),
            actual=int(stored[row]),
        )


def _each(
    table: BatchTable,
    location: Location,
    wrong: NDArray[np.bool_],
    code: str,
    message: Callable[[int], str],
    severity: Severity | None = None,
) -> Iterator[Finding]:
    for row in np.flatnonzero(wrong).tolist():
        yield finding(code, batch_location(location, table, row), message(row), judgement=Judgement(severity=severity))
