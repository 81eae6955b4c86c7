"""What a file's name and directory tell of it."""

from __future__ import annotations

import pytest

from format import layout
from format.node.file_location import location_of_file


def test_a_file_of_a_partition() -> None:
    found = location_of_file("data/orders-3/00000000000000000042.log")
    assert (found.topic, found.partition, found.base_offset) == ("orders", 3, 42)
    found = location_of_file("data/orders-3/leader-epoch-checkpoint")
    assert (found.topic, found.partition, found.base_offset) == ("orders", 3, None)


@pytest.mark.parametrize("name", [*layout.LOG_DIR_FILES, layout.META_PROPERTIES + layout.TEMPORARY_SUFFIX])
def test_a_file_of_a_log_directory_that_is_called_like_a_partition(name: str) -> None:
    found = location_of_file(f"cluster/node-1/{name}")
    assert (found.topic, found.partition, found.base_offset) == (None, None, None)
