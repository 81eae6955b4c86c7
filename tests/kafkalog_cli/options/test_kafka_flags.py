"""Command lines are read as jopt-simple reads them."""

from __future__ import annotations

import pytest

from kafkalog_cli.options.parsers import FlagError, Takes, parse_flags

KNOWN = {"files": Takes.VALUE, "print-data-log": Takes.NOTHING, "key-decoder-class": Takes.OPTIONAL_VALUE}


@pytest.mark.parametrize(
    ("words", "flags", "others"),
    [
        (["--files", "a"], [("files", "a")], []),
        (["--files=a=b"], [("files", "a=b")], []),
        (["-files", "a", "-print-data-log"], [("files", "a"), ("print-data-log", None)], []),
        (["--files", "--print-data-log"], [("files", "--print-data-log")], []),
        (["--key-decoder-class", "--files", "a"], [("key-decoder-class", None), ("files", "a")], []),
        (["--key-decoder-class", "-"], [("key-decoder-class", "-")], []),
        (["--key-decoder-class"], [("key-decoder-class", None)], []),
        (["--print-data-log=no", "b", "--files="], [("print-data-log", None), ("files", "")], ["b"]),
        (["a", "--", "--files", "b"], [], ["a", "--files", "b"]),
    ],
)
def test_flags_are_read_as_jopt_simple_does(words: list[str], flags: list[object], others: list[str]) -> None:
    assert parse_flags(words, KNOWN) == (flags, others)


@pytest.mark.parametrize("words", [["--file", "a"], ["--print"], ["-p"], ["---files", "a"], ["--files"]])
def test_flags_that_jopt_simple_refuses(words: list[str]) -> None:
    with pytest.raises(FlagError):
        parse_flags(words, KNOWN)
