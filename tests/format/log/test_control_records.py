"""Control records of chunks that were read by headers: the same as from whole batches, wherever a read ends."""

from __future__ import annotations

import random

import pytest

from format.layout import CONTROL_BIT, TRANSACTIONAL_BIT
from format.limits import DEFAULT_LIMITS
from format.log.control_records import ControlRecord, read_control_records
from format.log.encode_batches import BatchHeader, encode_batch
from format.log.walker import header_chunks
from tests.building import batch
from tests.record_encoder import NewRecord, encode_record
from tests.sources import BytesSource


def marker(offset: int, number: int, epoch: int, *, codec: int = 0, headers: bool = False) -> bytes:
    """An end marker; one with a codec or headers is none that a broker writes."""
    key = (0).to_bytes(2, "big") + number.to_bytes(2, "big")
    value = (0).to_bytes(2, "big") + epoch.to_bytes(4, "big", signed=True)
    record = encode_record(NewRecord(0, 0, key, value, ((b"h", b"v"),) if headers else ()))
    header = BatchHeader(offset, 0, 1, producer_id=7, producer_epoch=0, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
    return encode_batch(header, record, codec=codec)


@pytest.mark.parametrize("chunk_bytes", [100, 300, 64 * 1024])
def test_markers_are_decoded_wherever_a_read_ends(chunk_bytes: int) -> None:
    rnd = random.Random(chunk_bytes)
    log: list[bytes] = []
    expected: dict[int, ControlRecord] = {}
    for offset in range(0, 300, 3):
        if rnd.random() < 0.5:
            number, epoch, odd = rnd.randrange(2), rnd.choice((0, 3, -1, 2**31 - 1)), rnd.random() < 0.2
            log.append(marker(offset, number, epoch, codec=rnd.choice((0, 4)) if odd else 0, headers=odd))
            expected[offset] = ControlRecord(0, number, ("ABORT", "COMMIT")[number], epoch)
        else:
            log.append(batch(offset))
    source = BytesSource(b"".join(log))
    found: dict[int, ControlRecord] = {}
    for chunk in header_chunks(source, chunk_bytes=chunk_bytes):
        controls = read_control_records(chunk, source, DEFAULT_LIMITS)
        found |= {int(chunk.headers.header_offset[row]): control for row, control in controls.items()}
    assert found == expected


def test_a_control_batch_without_a_readable_record_is_left_out() -> None:
    header = BatchHeader(0, 0, 1, producer_id=7, attributes=TRANSACTIONAL_BIT | CONTROL_BIT)
    source = BytesSource(encode_batch(header, encode_record(NewRecord(0, 0, b"\0", b"", ()))))
    (chunk,) = header_chunks(source)
    assert read_control_records(chunk, source, DEFAULT_LIMITS) == {}
