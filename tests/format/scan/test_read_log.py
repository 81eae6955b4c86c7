"""What a file's name and directory tell of it, and which offsets a batch with a wrong CRC may have held."""

from __future__ import annotations

from pathlib import Path

import pytest

from format import layout
from format.io.source import FileSource
from format.log.legacy_messages import open_wrappers
from format.log.walker import batch_chunks
from format.node.partition import location_of_file
from format.scan.protocol import LogUnit
from format.scan.read_log import crc_findings
from tests.building import batch, wrapper, write_segment


def test_a_file_of_a_partition() -> None:
    found = location_of_file("data/orders-3/00000000000000000042.log")
    assert (found.topic, found.partition, found.base_offset) == ("orders", 3, 42)
    found = location_of_file("data/orders-3/leader-epoch-checkpoint")
    assert (found.topic, found.partition, found.base_offset) == ("orders", 3, None)


@pytest.mark.parametrize("name", [*layout.LOG_DIR_FILES, layout.META_PROPERTIES + layout.TEMPORARY_SUFFIX])
def test_a_file_of_a_log_directory_that_is_called_like_a_partition(name: str) -> None:
    found = location_of_file(f"cluster/node-1/{name}")
    assert (found.topic, found.partition, found.base_offset) == (None, None, None)


def spoiled(content: bytes, position: int, value: int = 0xFF) -> bytes:
    return content[:position] + bytes([value]) + content[position + 1 :]


#: Logs of which some batches have a wrong CRC, and the offsets that each of those may have held.
SPOILED = {
    "its header is right": ([batch(0), spoiled(batch(3), 70), batch(6)], [(3, 5)]),
    "its base offset was hit": ([batch(0), spoiled(spoiled(batch(3), 6), 70), batch(6)], [(3, 5)]),
    "its last offset was hit": ([batch(0), spoiled(batch(3), 24), batch(6)], [(3, 5)]),
    "two, and both their last offsets": (
        [batch(0), *(spoiled(batch(n), 24) for n in (3, 6)), batch(9)],
        [(3, 16_711_685), (3, 8)],
    ),
    "the first": ([spoiled(batch(3), 24), batch(6)], [(0, 5)]),
    "the last": ([batch(0), spoiled(batch(3), 70)], [(3, 5)]),
    "compressed messages": ([wrapper(1, 0), spoiled(wrapper(1, 3), 40), wrapper(1, 6), wrapper(1, 9)], [(3, 5)]),
}


@pytest.mark.parametrize("chunk_bytes", [64, 100, 200, 4096])
@pytest.mark.parametrize("name", SPOILED)
def test_what_a_wrong_crc_loses_does_not_depend_on_where_chunks_are_cut(
    name: str, chunk_bytes: int, tmp_path: Path
) -> None:
    content, expected = SPOILED[name]
    path = write_segment(tmp_path / "t-0", 0, content)
    found = []
    with FileSource(path) as source:
        for chunk in batch_chunks(source, chunk_bytes=chunk_bytes):
            open_wrappers(chunk)
            found += list(crc_findings(chunk, LogUnit(path, location_of_file(path)), source))
    assert [each.code for each in found] == ["batch-crc-mismatch"] * len(expected)
    assert [each.lost_offsets for each in found] == expected
