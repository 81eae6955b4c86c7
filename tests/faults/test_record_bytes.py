"""Records that are wrong inside a batch whose CRC is right: resealed, plain and compressed."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.limits import Limits
from format.log.encode_batches import BatchHeader, encode_batch
from tests.building import BASE_TIMESTAMP, batch
from tests.faults.judging import codes_of, offsets_read, verdict
from tests.record_encoder import NewRecord, encode_record, encode_varint

SOUND = encode_record(NewRecord(0, 0, b"k", b"v"))


def sized(content: bytes | None) -> bytes:
    return encode_varint(-1) if content is None else encode_varint(len(content)) + content


def record(
    *,
    attributes: bytes = b"\x00",
    timestamp: bytes = b"\x00",
    offset: bytes = b"\x02",
    key: bytes = sized(b"k"),
    value: bytes = sized(b"v"),
    headers: bytes = b"\x00",
    rest: bytes = b"",
    length: bytes | None = None,
) -> bytes:
    """The second record of a batch from its encoded fields."""
    body = attributes + timestamp + offset + key + value + headers + rest
    return (encode_varint(len(body)) if length is None else length) + body


def log_of(*records: bytes, codec: int = 0, **fields: int) -> bytes:
    """A sound batch, one of these records after a sound one, and a sound batch."""
    count = fields.pop("count", len(records) + 1)
    header = BatchHeader(
        3, fields.pop("last", count - 1), count, BASE_TIMESTAMP, BASE_TIMESTAMP + fields.pop("latest", 0)
    )
    return batch(0) + encode_batch(header, SOUND + b"".join(records), codec=codec) + batch(3 + count)


#: What stands where a varint should, and how long it may be: 5 bytes for 32 bits, 10 for 64.
UNTERMINATED = b"\x80" * 20
TOO_LONG = b"\x80" * 5 + b"\x00"
TOO_LONG_64 = b"\x80" * 10 + b"\x00"
OVERFLOWING = b"\xff" * 4 + b"\x10"
OVERFLOWING_64 = b"\xff" * 9 + b"\x02"

INVALID: dict[str, bytes] = {
    "length unterminated": record(length=b"\x80"),
    "length of six bytes": record(length=TOO_LONG),
    "length overflows": record(length=OVERFLOWING),
    "length null": record(length=encode_varint(-1)),
    "length -2": record(length=encode_varint(-2)),
    "length 0": record(length=encode_varint(0)),
    "length past the body": record(length=encode_varint(1000)),
    "length huge": record(length=encode_varint(2**31 - 1)),
    "length too short": record(length=encode_varint(5)),
    "length too long by one": record(length=encode_varint(9)),
    "timestamp delta unterminated": record(timestamp=UNTERMINATED),
    "timestamp delta of eleven bytes": record(timestamp=TOO_LONG_64),
    "timestamp delta overflows": record(timestamp=OVERFLOWING_64),
    "timestamp leaves 64 bits": record(timestamp=encode_varint(2**63 - 1)),
    "offset delta unterminated": record(offset=UNTERMINATED),
    "offset delta of six bytes": record(offset=TOO_LONG),
    "offset delta overflows": record(offset=OVERFLOWING),
    "key length -2": record(key=encode_varint(-2)),
    "key past the record": record(key=encode_varint(100)),
    "key huge": record(key=encode_varint(2**31 - 1)),
    "key unterminated": record(key=UNTERMINATED),
    "value length -2": record(value=encode_varint(-2)),
    "value past the record": record(value=encode_varint(100)),
    "value unterminated": record(value=UNTERMINATED),
    "header count -1": record(headers=encode_varint(-1)),
    "header count huge": record(headers=encode_varint(2**31 - 1)),
    "header count without headers": record(headers=encode_varint(1)),
    "header key -1": record(headers=encode_varint(1) + encode_varint(-1) + sized(b"v")),
    "header key past the record": record(headers=encode_varint(1) + encode_varint(90) + sized(b"v")),
    "header value -2": record(headers=encode_varint(1) + sized(b"h") + encode_varint(-2)),
    "header value past the record": record(headers=encode_varint(1) + sized(b"h") + encode_varint(90)),
    "bytes after the headers": record(rest=b"\x00\x00"),
}


@pytest.mark.parametrize("codec", [0, 4])
@pytest.mark.parametrize("name", INVALID)
def test_a_record_that_cannot_be_decoded(tmp_path: Path, name: str, codec: int) -> None:
    (found,) = verdict(tmp_path, log_of(INVALID[name], codec=codec))
    assert found.code == "record-invalid"
    assert "record 1 of 2" in found.message
    assert found.location.offset == 3
    assert offsets_read(tmp_path) == [0, 1, 2, 3, 5, 6, 7]  # all but the one record


UNUSUAL: dict[str, tuple[bytes, list[str], list[int]]] = {
    "timestamp delta past 31 bits": (log_of(record(timestamp=encode_varint(2**33)), latest=2**33), [], [3, 4]),
    "timestamp before the first": (log_of(record(timestamp=encode_varint(-5))), [], [3, 4]),
    "key null, value null": (log_of(record(key=sized(None), value=sized(None))), [], [3, 4]),
    "header value null": (log_of(record(headers=encode_varint(1) + sized(b"h") + sized(None))), [], [3, 4]),
    "header key not UTF-8": (
        log_of(record(headers=encode_varint(1) + sized(b"\xff") + sized(b""))), ["record-header-not-utf8"], [3, 4]),
    "attributes": (log_of(record(attributes=b"\x80")), ["record-attributes-unknown"], [3, 4]),
    "offset delta falls": (log_of(record(offset=encode_varint(-1))), ["record-offset-invalid"], [3, 2]),
    "offset delta repeated": (log_of(record(offset=b"\x00")), ["record-offset-invalid"], [3, 3]),
    "offset delta past the last": (log_of(record(offset=encode_varint(7))), ["record-offset-invalid"], [3, 10]),
    "one record too many": (log_of(record(), record(offset=b"\x04"), count=2), ["record-trailing-bytes"], [3, 4]),
    "one record too few": (log_of(record(), count=3), ["record-count-mismatch"], [3, 4]),
    "no records at all": (log_of(count=2)[: len(batch(0))] + batch(3), [], []),
    "bytes after the last record": (log_of(record() + b"\x00" * 9, count=2), ["record-trailing-bytes"], [3, 4]),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_record_that_can(tmp_path: Path, name: str) -> None:
    log, reported, offsets = UNUSUAL[name]
    found = verdict(tmp_path, log)
    assert codes_of([each for each in found if each.code != "timestamp-suspicious"]) == reported
    read = offsets_read(tmp_path)
    assert read[:3] == [0, 1, 2]
    assert read[3:-3] == offsets  # the last three are of the next batch


def test_an_offset_that_leaves_64_bits(tmp_path: Path) -> None:
    base = 2**63 - 2
    header = BatchHeader(base, 1, 2, BASE_TIMESTAMP, BASE_TIMESTAMP)
    log = encode_batch(header, SOUND + record(offset=encode_varint(5)))
    assert codes_of(verdict(tmp_path, {base: log})) == ["record-invalid"]


def test_a_record_over_the_limit_is_not_called_damaged(tmp_path: Path) -> None:
    (found,) = verdict(tmp_path, batch(0, [b"x" * 5000]), limits=Limits(max_record_bytes=1000))
    assert (found.code, found.is_incomplete) == ("limit-exceeded", True)


def test_a_batch_over_the_limit_is_left_out_and_the_rest_read(tmp_path: Path) -> None:
    limits = Limits(max_decompressed_bytes=5_000_000)
    large = batch(3, [b"x" * 6_000_000])
    (found,) = verdict(tmp_path, batch(0) + large + batch(4), limits=limits)
    assert (found.code, found.is_incomplete) == ("limit-exceeded", True)
    assert (found.location.position, found.location.length) == (len(batch(0)), len(large))
