"""Topic, partition and segment of a file, by its name and its directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.location import Location
from format.node.partition import location_of_directory, location_of_file


def test_a_segment_file() -> None:
    path = "/kafka/orders-3/00000000000000000040.log"
    assert location_of_file(path) == Location(path, "orders", 3, 40)


@pytest.mark.parametrize("name", ["meta.properties", "recovery-point-offset-checkpoint", "meta.properties.tmp"])
def test_a_file_of_a_log_directory_belongs_to_no_partition(name: str) -> None:
    assert location_of_file(f"/kafka/node-1/{name}") == Location(f"/kafka/node-1/{name}")


def test_a_number_that_is_no_offset() -> None:
    path = "/kafka/orders-3/99999999999999999999.log"
    assert location_of_file(path) == Location(path, "orders", 3)


def test_the_working_directory_has_a_name_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "orders-3"
    directory.mkdir()
    monkeypatch.chdir(directory)
    assert location_of_file("leader-epoch-checkpoint").topic == "orders"
    assert (location_of_directory(Path()).topic, location_of_directory(Path()).partition) == ("orders", 3)
