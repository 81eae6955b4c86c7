"""CSV made by Arrow is, byte for byte, CSV made of rows, whatever the bytes in keys, values and headers are."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from format.columns import RECORD
from format.location import Location
from format.log.encode_batches import BatchHeader, encode_batch
from format.log.read_records import record_tables
from format.log.walker import batch_chunks
from format.rows.record_rows import record_block
from kafkalog_cli.render.lines import CsvRenderer, cell_writers
from tests.building import wrapper
from tests.record_encoder import NewRecord, encode_record
from tests.sources import BytesSource

arrow_csv = pytest.importorskip(
    "format.rows.arrow_csv", reason="pyarrow is not installed: pip install 'kafkalog[arrow]'"
)

PLACE = Location("/kafka/orders-0/00000000000000000000.log", "orders,eu", 0, 0)
PIECES = (b"", b"a", b"=1", b"+", b"-", b"@", b"'", b'"', b",", b"\\", b"\t=", b"\r", b"\n", b"\x00", b"\x7f", b"\xff",
          "ä".encode(), "＝".encode(), "\u202e".encode(), b"plain text, and more of it", b'{"a":1}')  # fmt: skip
FIELDS = st.none() | st.lists(st.sampled_from(PIECES), max_size=3).map(b"".join)
HEADERS = st.lists(st.tuples(st.sampled_from(PIECES[1:-3]).filter(lambda key: key.isascii()), FIELDS), max_size=2)
RECORDS = st.lists(st.tuples(FIELDS, FIELDS, HEADERS), min_size=1, max_size=12)


def check(log: bytes) -> int:
    """The lines of both ways are the same; how many records there were."""
    count = 0
    made = arrow_csv.CsvLines(cell_writers(RECORD))
    for chunk in batch_chunks(BytesSource(log)):
        for table in record_tables(chunk):
            of_rows = io.BytesIO()
            renderer = CsvRenderer(of_rows, RECORD, pytest.fail)  # type: ignore[arg-type]
            renderer.write(RECORD, record_block(table, PLACE).rows)
            expected = of_rows.getvalue().partition(b"\n")[2]
            assert b"".join(map(bytes, made.lines(record_block(table, PLACE)))) == expected
            count += len(table)
    return count


@settings(deadline=None)
@given(RECORDS)
def test_the_same_bytes(records: list[tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]]) -> None:
    body = b"".join(
        encode_record(NewRecord(number, number, key, value, tuple(headers)))
        for number, (key, value, headers) in enumerate(records)
    )
    assert check(encode_batch(BatchHeader(0, len(records) - 1, len(records), 5, 99), body)) == len(records)


@pytest.mark.parametrize("magic", [0, 1])
def test_what_old_messages_have_not_is_an_empty_cell(magic: int) -> None:
    assert check(wrapper(magic, 50, 4)) > 0


def test_one_record_larger_than_a_piece() -> None:
    body = b"".join(encode_record(NewRecord(n, 0, b"k", b'"' * (n * 1_500_000))) for n in range(4))
    assert check(encode_batch(BatchHeader(0, 3, 4, 5, 99), body, codec=4)) == 4
