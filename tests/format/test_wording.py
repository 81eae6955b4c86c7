"""Counts, ranges of offsets and lists in sentences."""

from __future__ import annotations

import os
import subprocess

import pytest

from format.wording import counted, counted_plainly, installing, listed, offset_range, offsets_are, shell_line


@pytest.mark.parametrize(("number", "expected"), [(0, "0 logs"), (1, "1 log"), (2, "2 logs"), (1200, "1,200 logs")])
def test_a_number_has_its_noun(number: int, expected: str) -> None:
    assert counted(number, "log") == expected
    assert counted_plainly(number, "log") == expected.replace(",", "")


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("more batch", "2 more batches"),
        ("log directory", "2 log directories"),
        ("key", "2 keys"),
        ("leader epoch", "2 leader epochs"),
    ],
)
def test_a_noun_has_its_plural(noun: str, expected: str) -> None:
    assert counted(2, noun) == expected


@pytest.mark.parametrize(
    "name", [b"kafka", b"it's", b"a b", b"caf\xe9", b"caf\xe9's \\n", "ü\u200b€\n".encode(), b"\x1b[2J", b""]
)
def test_a_command_can_be_pasted_into_a_shell(name: bytes) -> None:
    """Also a name that is not UTF-8: a terminal shows its bytes as escapes."""
    line = shell_line(("printf", "%s", os.fsdecode(name)))
    assert line.isprintable()
    assert subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout == name


def test_a_range_of_one_offset_is_one_offset() -> None:
    assert [offset_range(5, 5), offset_range(5, 9)] == ["offset 5", "offsets 5 to 9"]
    assert [offsets_are(5, 5), offsets_are(5, 9)] == ["offset 5 is", "offsets 5 to 9 are"]


@pytest.mark.parametrize(
    ("words", "expected"), [(["a"], "a"), (["a", "b"], "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_words_are_listed(words: list[str], expected: str) -> None:
    assert listed(words) == expected


def test_nothing_can_be_installed_into_the_standalone_build(monkeypatch: pytest.MonkeyPatch) -> None:
    assert installing("s3") == "pip install 'kafkalog[s3]'"
    monkeypatch.setattr("sys.frozen", True, raising=False)
    assert installing("s3") == "not in the standalone build, but with pip install 'kafkalog[s3]'"
