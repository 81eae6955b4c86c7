"""Batches that salvage leaves out so that a broker starts on its output; the others stay, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.layout import CONTROL_BIT, CONTROL_KEY, TRANSACTIONAL_BIT
from format.log.encode_batches import BatchHeader, encode_batch
from format.verbs.boot.boot import boot
from format.verbs.boot.steps import Action, BootTerms
from tests.building import batch, write_segment
from tests.format.verbs.txns.transaction_logs import data, marker
from tests.oracle.boot_mutations.node import CLEAN_MARK, copied_node
from tests.oracle.boot_mutations.odd_batches import odd_batches
from tests.record_encoder import NewRecord, encode_record
from tests.running import run_many

pytestmark = pytest.mark.slow


def plain(offset: int, producer: int) -> bytes:
    return batch(offset, [b"x"], producer_id=producer, producer_epoch=0, base_sequence=2)


def control(offset: int, producer: int, kind: int, value: bytes = b"\0" * 6) -> bytes:
    header = BatchHeader(offset, 0, 1, 0, 0, 0, TRANSACTIONAL_BIT | CONTROL_BIT, producer, 0)
    return encode_batch(header, encode_record(NewRecord(0, 0, CONTROL_KEY.struct.pack(0, kind), value)))


def salvaged(tmp_path: Path, segments: dict[int, list[bytes]]) -> tuple[list[bytes], list[tuple[str, int]], bytes]:
    """The logs of the output, the errors with their offsets, and what was put aside."""
    for base_offset, content in segments.items():
        write_segment(tmp_path / "payments-0", base_offset, content)
    output = tmp_path / "out"
    (run,) = run_many([("salvage", "--format", "jsonl", "--quiet", "--output", output, tmp_path / "payments-0")])
    found = [(row["code"], row["offset"]) for row in run.rows("finding") if row["severity"] in ("error", "fatal")]
    logs = [path.read_bytes() for path in sorted(output.rglob("*.log"))]
    return logs, found, b"".join(path.read_bytes() for path in sorted(output.rglob("*.quarantine")))


def test_a_log_of_transactions_stays_as_it_is(tmp_path: Path) -> None:
    content = [data(0, 7), plain(2, 8), marker(3, 7, commit=True), plain(4, 7), data(5, 8), marker(7, 8, commit=False)]
    assert salvaged(tmp_path, {0: content}) == ([b"".join(content)], [], b"")


def test_batches_outside_of_an_open_transaction(tmp_path: Path) -> None:
    content = [data(0, 7), plain(2, 7), plain(3, 8), plain(4, 7), marker(5, 7, commit=True), plain(6, 7)]
    kept = b"".join(content[at] for at in (0, 2, 4, 5))
    assert salvaged(tmp_path, {0: content}) == (
        [kept],
        [("batch-invalid", 2), ("batch-invalid", 4)],
        content[1] + content[3],
    )


def test_a_transaction_that_is_open_when_the_segment_begins(tmp_path: Path) -> None:
    segments = {0: [data(0, 7)], 2: [plain(2, 7), plain(3, 8)]}
    assert salvaged(tmp_path, segments) == ([segments[0][0], segments[2][1]], [("batch-invalid", 2)], segments[2][0])


@pytest.mark.parametrize(("kind", "value"), [(2, b"\0" * 6), (99, b"\0" * 6), (1, b"\0"), (0, b"\xff" * 6)])
def test_a_control_batch_of_a_producer_that_is_no_readable_end_marker(tmp_path: Path, kind: int, value: bytes) -> None:
    content = [data(0, 7), control(2, 7, kind, value), plain(3, 8)]
    logs, found, aside = salvaged(tmp_path, {0: content})
    assert (logs, found, aside) == ([content[0] + content[2]], [("control-record-invalid", 2)], content[1])


@pytest.mark.parametrize(
    "name",
    ["a marker without a key", "a control batch of garbage", "a control batch of an unknown codec",
     "plain data in an open transaction", "an aborted transaction twice", "two transactions with one first offset"],
)  # fmt: skip
@pytest.mark.parametrize("state", ["clean", "unclean"])
def test_a_broker_starts_on_the_output(data_dir: Path, tmp_path: Path, name: str, state: str) -> None:
    node = copied_node(data_dir / "kafka-4.3-single" / "node-1", tmp_path / "work")
    (node.first / CLEAN_MARK).touch()
    dict(odd_batches())[f"{name}, {state}"](node)
    output = tmp_path / "out"
    run_many([("salvage", "--format", "jsonl", "--quiet", "--output", output, node.first)])[0].check(0, 1)
    result = boot([output], BootTerms(every_file=True), node_id=1)
    assert not result.having(Action.REFUSE, Action.UNKNOWN)
