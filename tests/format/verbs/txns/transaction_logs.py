"""Small logs of transactions, made for tests: data batches, end markers, and records of __transaction_state."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from format.columns import TRANSACTION
from format.findings import Finding
from format.layout import CONTROL_BIT, CONTROL_KEY, END_TRANSACTION_MARKER, TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from format.node.target import Target
from format.verbs.txns.txns import Transactions, TransactionTerms, ended_rows, open_row, open_transactions
from tests.building import batch
from tests.record_encoder import NewRecord, encode_record

NOW = 2_000_000_000_000
MINUTE = 60_000


def data(offset: int, producer: int, count: int = 2, *, time: int = 0, epoch: int = 0, **fields: int) -> bytes:
    """A batch of a transaction."""
    return batch(
        offset, [b"x"] * count, timestamp=time, producer_id=producer, producer_epoch=epoch,
        **({"base_sequence": 0, "attributes": TRANSACTIONAL_BIT, "max_timestamp": time} | fields),
    )  # fmt: skip


def marker(offset: int, producer: int, *, commit: bool, time: int = 0, epoch: int = 0, coordinator: int = 3) -> bytes:
    """An end marker."""
    key, value = CONTROL_KEY.struct.pack(0, commit), END_TRANSACTION_MARKER.struct.pack(0, coordinator)
    header = BatchHeader(offset, 0, 1, time, time, 0, TRANSACTIONAL_BIT | CONTROL_BIT, producer, epoch)
    return encode_batch(header, encode_record(NewRecord(0, 0, key, value)))


def coordinator_batch(
    offset: int,
    transactional_id: str,
    producer: int,
    status: int,
    partitions: dict[str, list[int]],
    *,
    time: int = 0,
    timeout_ms: int = 60_000,
) -> bytes:
    """A record of __transaction_state in version 0 of its value; ``status`` is the number of the state."""

    def text(value: str) -> bytes:
        return len(value).to_bytes(2, "big") + value.encode()

    def number(value: int, size: int) -> bytes:
        return value.to_bytes(size, "big", signed=True)

    listed = b"".join(
        text(topic) + number(len(numbers), 4) + b"".join(number(each, 4) for each in numbers)
        for topic, numbers in partitions.items()
    )
    value = (
        number(0, 2) + number(producer, 8) + number(0, 2) + number(timeout_ms, 4) + number(status, 1)
        + number(len(partitions), 4) + listed + number(time, 8) + number(time, 8)
    )  # fmt: skip
    return batch(offset, [value], key=number(0, 2) + text(transactional_id), timestamp=time)


def read(*paths: Path, **terms: Any) -> tuple[list[dict[str, Any]], Transactions, list[Finding]]:
    """The rows as dicts, open ones first, what was found, and the findings."""
    asked = TransactionTerms(**({"now_ms": NOW} | terms))
    result = Transactions(tuple(Target(path) for path in paths))
    findings = list(result.read(asked))
    return [dict(zip(TRANSACTION.names, row, strict=True)) for row in _rows(result, asked)], result, findings


def _rows(result: Transactions, terms: TransactionTerms) -> Iterator[tuple[Any, ...]]:
    for each in open_transactions(result, terms):
        yield open_row(each, terms)
    for is_aborted in (True, False):
        yield from ended_rows(result, terms, is_aborted=is_aborted)
