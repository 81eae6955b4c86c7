"""Batch headers whose fields contradict each other, and those that clients and brokers write."""

from __future__ import annotations

import random

import numpy as np
import pytest

from format import layout
from format.checks import batches
from format.checks.batches import check_batch_headers
from format.findings import Finding, Severity
from format.kernel.checks import find_doubtful_header
from format.location import Location
from format.log.batch_table import BatchTable
from tests.format.state.tables import row, table_of

ORDERS = Location("orders-0/0.log", "orders", 0)
OFFSETS = Location("__consumer_offsets-0/0.log", "__consumer_offsets", 0)
METADATA = Location("__cluster_metadata-0/0.log", "__cluster_metadata", 0)
LONE = Location("0.log")
TRANSACTIONAL, CONTROL = layout.TRANSACTIONAL_BIT, layout.CONTROL_BIT
MARKER = TRANSACTIONAL | CONTROL


def header(producer_id: int, epoch: int, sequence: int, attributes: int = 0) -> BatchTable:
    return table_of([row(0, producer_id, producer_epoch=epoch, base_sequence=sequence, attributes=attributes)])


@pytest.mark.parametrize(
    ("table", "location"),
    [
        (header(-1, -1, -1), ORDERS),
        (header(-1, -1, 0), ORDERS),  # aiokafka, and the group coordinator
        (header(-1, 0, 0), ORDERS),  # two Node clients
        (header(-1, 7, -9), ORDERS),
        (header(5, 0, 0), ORDERS),
        (header(5, 0, 0, TRANSACTIONAL), ORDERS),
        (header(5, 0, -1, MARKER), ORDERS),
        (header(5, 0, -1, TRANSACTIONAL), OFFSETS),  # offsets committed in a transaction
        (header(5, 0, -1), LONE),  # of what topic is not known
        (header(-1, -1, -1, CONTROL), METADATA),
        (header(-1, -1, -1, CONTROL), LONE),
    ],
)
def test_what_clients_and_brokers_write(table: BatchTable, location: Location) -> None:
    assert list(check_batch_headers(table, location)) == []


@pytest.mark.parametrize(
    ("table", "location", "severity"),
    [
        (header(-2, -1, -1), ORDERS, Severity.ERROR),
        (header(5, -1, 0), ORDERS, Severity.ERROR),
        (header(5, 0, -2), ORDERS, Severity.ERROR),
        (header(5, 0, -1), ORDERS, Severity.WARNING),
        (header(-1, -1, -1, TRANSACTIONAL), ORDERS, Severity.WARNING),
        (header(5, 0, 3, MARKER), ORDERS, Severity.ERROR),  # the control bit of a data batch
        (header(5, 0, 3, CONTROL), ORDERS, Severity.ERROR),
        (header(5, 0, -1, CONTROL), ORDERS, Severity.ERROR),
        (header(-1, -1, -1, CONTROL), ORDERS, Severity.ERROR),
        (header(-1, -1, -1, CONTROL), OFFSETS, Severity.ERROR),
    ],
)
def test_what_nobody_writes(table: BatchTable, location: Location, severity: Severity) -> None:
    found = list(check_batch_headers(table, location))
    assert [(each.code, each.severity) for each in found] == [("batch-invalid", severity)]


def closer_look(table: BatchTable, location: Location, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    with monkeypatch.context() as patched:
        patched.setattr(batches, "KERNEL_IS_COMPILED", False)
        return list(check_batch_headers(table, location))


def test_the_quick_look_passes_nothing_that_the_closer_look_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(1)
    passed = 0
    for _ in range(4000):
        attributes = rnd.choice((0, 0, CONTROL, TRANSACTIONAL, MARKER, MARKER | 1))
        table = header(rnd.choice((-2, -1, 5)), rnd.choice((-1, 0)), rnd.choice((-2, -1, 0, 3)), attributes)
        if find_doubtful_header(memoryview(np.ascontiguousarray(table.columns)), 2**62) < 0:
            passed += 1
            for location in (ORDERS, OFFSETS, METADATA, LONE):
                assert closer_look(table, location, monkeypatch) == []
    assert passed > 500
