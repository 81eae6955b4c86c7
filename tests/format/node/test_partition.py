"""Names of partition directories, and of files that a broker is writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from format.node.partition import is_offset, is_temporary, key_of_directory, parse_partition_dir

UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("orders-0", ("orders", 0, None)),
        ("a-b.c_d-17", ("a-b.c_d", 17, None)),
        (f"orders-0.{UNIQUE}-delete", ("orders", 0, "delete")),
        (f"orders-0.{UNIQUE}-future", ("orders", 0, "future")),
        ("orders", None),
        ("orders-", None),
        ("-0", None),
        ("..-0", None),
        ("or ders-0", None),
    ],
)
def test_a_directory_name(name: str, parsed: tuple[str, int, str | None] | None) -> None:
    assert parse_partition_dir(name) == parsed
    assert key_of_directory(Path("/kafka") / name) == (None if parsed is None else parsed[:2])


def test_twenty_digits_hold_more_than_an_offset() -> None:
    assert is_offset(2**63 - 1)
    assert not is_offset(2**63)


def test_files_that_are_about_to_be_renamed() -> None:
    assert is_temporary("leader-epoch-checkpoint.tmp")
    assert not is_temporary("leader-epoch-checkpoint")
    assert not is_temporary("notes.tmp")
