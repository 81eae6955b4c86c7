"""Searches, and the naive loop that they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from hypothesis import strategies as st

from format.findings import Finding
from format.io.source import FileSource
from format.log.batch_ranges import BatchRange
from format.log.read_records import record_tables
from format.log.record_table import RecordTable
from format.log.walker import batch_chunks
from format.verbs.grep.grep import Criteria, FoundRecords, grep
from format.verbs.grep.pattern import Pattern
from format.verbs.grep.record_search import EVERYWHERE, Places
from tests.building import write_segment

Fields = tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]

IN_KEY = Places(value=False, headers=False)

IN_VALUE = Places(key=False, headers=False)

IN_HEADERS = Places(key=False, value=False)


def found_offsets(path: Path, criteria: Criteria) -> list[int]:
    """The offsets of the records found."""
    reported = list(grep(path, criteria))
    assert not [each for each in reported if isinstance(each, Finding)]
    return [int(each) for item in reported if isinstance(item, FoundRecords) for each in item.records.offset]


def offsets_of(path: Path, pattern: Pattern, places: Places = EVERYWHERE) -> list[int]:
    return found_offsets(path, Criteria(pattern, places))


def fields_of(fields: Fields, places: Places) -> list[bytes]:
    """The fields in which a pattern may match, picked apart from how the search does it."""
    key, value, headers = fields
    wanted = [key] if places.key else []
    wanted += [value] if places.value else []
    for name, content in headers:
        if places.headers:
            wanted += [name, content]
        elif name in places.header_names:
            wanted.append(content)
    return [each for each in wanted if each is not None]


def naive_offsets(
    records: Iterable[tuple[int, Fields]], is_match: Callable[[bytes], object], places: Places
) -> list[int]:
    return [offset for offset, fields in records if any(is_match(each) for each in fields_of(fields, places))]


def log_of(tmp_path: Path, *content: bytes, base_offset: int = 0) -> Path:
    return write_segment(tmp_path / "topic-0", base_offset, content)


PIECES = st.sampled_from(
    ["a", "b", "A", "ab", "ba", ".", "a*", "b+", "a?", "(a|b)", "(?:ab)?", "[ab]", "[^a]", "^", "$", r"\b", "é", "é?",
     "{", "b{2}", "a{0,1}", "|", r"\n", r"\.", "(?=a)", "(?<!b)", "(?P<n>a)", "(?i:a)", r"\x61", "}", "b??", "(a)|"]
)  # fmt: skip


def tables_of(path: Path) -> list[RecordTable]:
    with FileSource(path) as source:
        (chunk,) = batch_chunks(source, BatchRange(0), with_bodies=True, check_crc=True)
        return list(record_tables(chunk))
