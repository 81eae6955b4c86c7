"""Ranges of a log are what one reader reads at once."""

from __future__ import annotations

from format.log.batch_chunk import batch_ranges
from format.log.walker import batch_chunks
from tests.building import batch
from tests.sources import BytesSource


def test_ranges_are_what_one_reader_reads_at_once() -> None:
    log = b"".join(batch(number * 3, [b"v" * (number * 37 % 900), None, b"w"]) for number in range(200))
    log += batch(600, [b"x" * 20_000, b"", b""]) + batch(603) + batch(606, [b"x" * 9000, b"", b""])
    source = BytesSource(log)
    for chunk_bytes in (100, 1000, 5000, 50_000, len(log), 2 * len(log)):
        chunks = list(batch_chunks(source, chunk_bytes=chunk_bytes))
        ranges = list(batch_ranges(source, chunk_bytes))
        assert [each.start for each in ranges] == [int(chunk.table.position[0]) for chunk in chunks]
        lasts = [int(chunk.table.last_offset[-1]) for chunk in chunks]
        assert [each.after_offset for each in ranges] == [None, *lasts[:-1]]
