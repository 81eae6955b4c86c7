"""Batches at which a broker cannot rebuild the producers' state: verdicts and messages of a broker of 4.3.1."""

from __future__ import annotations

import pytest

from format.files import producer_snapshot
from format.layout import TRANSACTIONAL_BIT
from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootTerms
from tests.building import batch
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.oracle.boot_mutations.earlier_release import make_earlier
from tests.oracle.boot_mutations.node import LOG_START, RECOVERY_POINT, Node
from tests.oracle.boot_mutations.odd_batches import odd_batches

pytestmark = pytest.mark.slow

LOADING = "There was an error in one of the threads during logs loading"
TYPE = "Invalid control record type for end transaction marker"
PLAIN = "Expected transactional write from producer 424242 at offset"
COMPLETED = "Attempted to complete transaction"
SEQUENTIALLY = (
    "The last offset of appended transactions must increase sequentially, but 1265 is not greater than current "
)
STOPPING = {
    "a marker without a key": 'because "key" is null',
    "a marker with a key of two bytes": "Must have at least 4 bytes, but found only 2",
    "a marker of key version -1": "Invalid version found for control record: -1",
    "a marker of a type of KRaft": TYPE,
    "a marker of an unknown type": TYPE,
    "a marker without a value": 'because "value" is null',
    "a marker with a value of two bytes": "java.nio.BufferUnderflowException",
    "a marker of value version -1": "Invalid version found for end transaction marker: -1",
    "a control batch of garbage": LOADING,
    "a control batch of garbage in gzip": LOADING,
    "a control batch of an unknown codec": LOADING,
    "plain data in an open transaction": PLAIN,
    "two transactions with one first offset": COMPLETED,
}
PASSING = (
    "a marker of key version 99", "a marker of value version 99", "a marker with more behind",
    "garbage as control batch without a producer", "a control batch without records", "an open transaction",
    "plain data in an open transaction of another", "an aborted transaction", "a transaction that goes back",
    "an epoch that falls", "a marker of a lower epoch", "a data batch of a producer in an unknown codec",
)  # fmt: skip


def refusals(node: Node, version: tuple[int, int] = (4, 3)) -> list[str]:
    result = boot(node.log_dirs, BootTerms(version=version, every_file=True), node_id=1)
    return [step.broker_message or "" for step in result.having(Action.REFUSE)]


def damaged(node: Node, name: str) -> Node:
    dict(odd_batches())[name](node)
    return node


@pytest.mark.parametrize("state", ["clean", "unclean"])
@pytest.mark.parametrize("name", STOPPING)
def test_what_stops_it(node: Node, name: str, state: str) -> None:
    assert refusals(damaged(node, f"{name}, {state}")) == [STOPPING[name]]


@pytest.mark.parametrize("state", ["clean", "unclean"])
@pytest.mark.parametrize("name", PASSING)
def test_what_does_not(node: Node, name: str, state: str) -> None:
    assert refusals(damaged(node, f"{name}, {state}")) == []


def test_the_words_of_earlier_releases(node: Node) -> None:
    assert refusals(damaged(make_earlier(node), "a marker with a value of two bytes, clean"), (4, 0)) == [
        "Must have at least 6 bytes, but found only 2"
    ]


def test_the_order_of_aborted_transactions_counts_where_their_index_is_rebuilt(node: Node) -> None:
    assert refusals(damaged(node, "aborted transactions that go back, clean")) == []


def test_the_order_of_aborted_transactions_in_a_recovery(node: Node) -> None:
    (message,) = refusals(damaged(node, "aborted transactions that go back, unclean"))
    assert message.startswith(SEQUENTIALLY)


def test_two_transactions_of_one_first_offset_of_one_producer(node: Node) -> None:
    assert refusals(damaged(node, "an aborted transaction twice, clean")) == [COMPLETED]


def rewritten(node: Node, segments: dict[int, list[bytes]], *, log_start: int = 0) -> Node:
    """orders-0 with these segments only, to be recovered as a whole."""
    directory = node.partition("orders-0")
    for path in directory.iterdir():
        if path.name[0] == "0":
            path.unlink()
    for base_offset, content in segments.items():
        (directory / f"{base_offset:020}.log").write_bytes(b"".join(content))
        (directory / f"{base_offset:020}.index").write_bytes(b"")
        (directory / f"{base_offset:020}.timeindex").write_bytes(b"")
    node.unclean()
    node.set_offset(RECOVERY_POINT, "orders-0", 0)
    if log_start:
        node.set_offset(LOG_START, "orders-0", log_start)
    return node


def plain(offset: int, producer: int) -> bytes:
    return batch(offset, [b"x"], producer_id=producer, producer_epoch=0, base_sequence=2)


def test_a_transaction_that_an_earlier_segment_begins(node: Node) -> None:
    segments = {0: [data(0, 7)], 2: [batch(2, [b"x"])], 3: [plain(3, 7)]}
    assert refusals(rewritten(node, segments)) == [PLAIN.replace("424242", "7")]


def test_a_transaction_that_an_earlier_segment_ends(node: Node) -> None:
    segments = {0: [data(0, 7)], 2: [marker(2, 7, commit=True)], 3: [plain(3, 7)]}
    assert refusals(rewritten(node, segments)) == []


def snapshot(node: Node, offset: int, first_offset: int) -> None:
    columns = tuple([value] for value in (7, 0, 1, 1, 1, 0, -1, first_offset))
    path = node.partition("orders-0") / f"{offset:020}.snapshot"
    path.write_bytes(producer_snapshot.write(columns))


@pytest.mark.parametrize(("first_offset", "expected"), [(0, [PLAIN.replace("424242", "7")]), (-1, [])])
def test_a_transaction_that_a_snapshot_has(node: Node, first_offset: int, expected: list[str]) -> None:
    rewritten(node, {2: [plain(2, 7)]}, log_start=1)
    snapshot(node, 2, first_offset)
    assert refusals(node) == expected


def test_a_transaction_below_the_log_start_of_which_no_snapshot_is_left(node: Node) -> None:
    rewritten(node, {0: [data(0, 7)], 2: [plain(2, 7)]}, log_start=2)
    (node.partition("orders-0") / f"{0:020}.log").unlink()
    assert refusals(node) == []


def test_only_producers_have_transactions(node: Node) -> None:
    segments = {0: [batch(0, [b"x"], attributes=TRANSACTIONAL_BIT), batch(1, [b"x"])]}
    assert refusals(rewritten(node, segments)) == []
