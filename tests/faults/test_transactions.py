"""Control batches, transactions and producers' sequences."""

from __future__ import annotations

from pathlib import Path

import pytest

from format import layout
from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP, batch
from tests.faults.judging import codes_of, verdict
from tests.record_encoder import NewRecord, encode_record

TRANSACTIONAL, CONTROL = layout.TRANSACTIONAL_BIT, layout.CONTROL_BIT
ABORT, COMMIT = 0, 1


def key_of(type_number: int, version: int = 0) -> bytes:
    return layout.CONTROL_KEY.struct.pack(version, type_number)


def value_of(coordinator_epoch: int = 0, version: int = 0) -> bytes:
    return layout.END_TRANSACTION_MARKER.struct.pack(version, coordinator_epoch)


def marker(
    offset: int, type_number: int = COMMIT, *, producer_id: int = 7, key: bytes | None = b"", value: bytes | None = b"",
    producer_epoch: int = 0,
) -> bytes:  # fmt: skip
    header = BatchHeader(
        offset, 0, 1, BASE_TIMESTAMP, BASE_TIMESTAMP, attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id,
        producer_epoch=producer_epoch,
    )  # fmt: skip
    key = key_of(type_number) if key == b"" else key
    value = value_of() if value == b"" else value
    return encode_batch(header, encode_record(NewRecord(0, 0, key, value)))


def sent(offset: int, sequence: int, *, epoch: int = 0, producer_id: int = 7, transactional: bool = False) -> bytes:
    """Three records of an idempotent producer."""
    return batch(
        offset, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, timestamp=BASE_TIMESTAMP,
        attributes=TRANSACTIONAL if transactional else 0,
    )  # fmt: skip


# -- control records -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_number", [7, 99, -1, 2**15 - 1])
def test_a_control_type_that_is_newer(tmp_path: Path, type_number: int) -> None:
    """A broker that replays control records of producers refuses to start at an unknown one."""
    found = verdict(tmp_path, batch(0) + marker(3, key=key_of(type_number), value=b"anything"))
    assert codes_of(found) == ["control-record-invalid"]
    assert "refuses to start" in found[0].message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, value_of()), (b"\x00\x00\x00", value_of()), (key_of(COMMIT, -1), value_of()), (key_of(ABORT), None),
        (key_of(COMMIT), b"\x00\x00\x00"), (key_of(COMMIT), value_of(0, -1)),
    ],
)  # fmt: skip
def test_a_control_record_of_a_wrong_size_or_version(tmp_path: Path, key: bytes | None, value: bytes | None) -> None:
    found = codes_of(verdict(tmp_path, sent(0, 0, transactional=True) + marker(3, key=key, value=value)))
    assert "control-record-invalid" in found
    assert set(found) <= {"control-record-invalid", "transaction-open"}


# -- transactions --------------------------------------------------------------------------------------------


def test_a_committed_transaction_is_silent(tmp_path: Path) -> None:
    assert verdict(tmp_path, sent(0, 0, transactional=True) + marker(3)) == []


def test_an_aborted_transaction_without_its_index(tmp_path: Path) -> None:
    found = verdict(tmp_path, sent(0, 0, transactional=True) + marker(3, ABORT))
    assert codes_of(found) == ["transaction-index-mismatch"]


def test_a_transaction_without_a_marker(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, sent(0, 0, transactional=True))
    assert (found.code, found.location.offset) == ("transaction-open", 0)


def test_a_marker_without_a_transaction(tmp_path: Path) -> None:
    assert codes_of(verdict(tmp_path, batch(0) + marker(3))) == ["transaction-marker-orphan"]


# -- sequences and epochs ------------------------------------------------------------------------------------

SEQUENCES: dict[str, tuple[list[bytes], list[str]]] = {
    "in order": ([sent(0, 0), sent(3, 3)], []),
    "a gap": ([sent(0, 0), sent(3, 5)], ["sequence-gap"]),
    "a repetition": ([sent(0, 0), sent(3, 0)], ["sequence-duplicate"]),
    "a wrap": ([sent(0, 2**31 - 3), sent(3, 0)], []),
    "a wrap inside a batch": ([sent(0, 2**31 - 2), sent(3, 1)], []),
    "a gap over the wrap": ([sent(0, 2**31 - 3), sent(3, 4)], ["sequence-gap"]),
    "a new epoch starts anew": ([sent(0, 9), sent(3, 0, epoch=1)], []),
    "an epoch going back": ([sent(0, 0, epoch=2), sent(3, 3, epoch=1)], ["producer-epoch-decreasing"]),
    "two producers": ([sent(0, 0), sent(3, 0, producer_id=8), sent(6, 3)], []),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(tmp_path: Path, name: str) -> None:
    log, reported = SEQUENCES[name]
    assert codes_of(verdict(tmp_path, b"".join(log))) == reported
