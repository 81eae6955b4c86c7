"""grep against a naive filter over what clients read, and on logs built so that hits lie where none may count."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.errors import InputError, NotALogDir
from format.findings import Finding
from format.log.encode_batches import encode_message, encode_wrapper
from format.log.record_table import RecordTable
from format.node.log_dir import Kind
from format.node.target import Target
from format.scan.selection import Selection
from format.verbs.grep.grep import Criteria, FoundRecords, LogSearched, Search, grep, searched_logs
from format.verbs.grep.pattern import Pattern, bytes_pattern, regex_pattern, text_pattern
from format.verbs.grep.record_search import EVERYWHERE, Places, search
from tests.building import BASE_TIMESTAMP, batch, write_segment
from tests.corpora import Corpus, sent_to_legacy
from tests.format.verbs.grep.searches import (
    IN_HEADERS,
    IN_KEY,
    IN_VALUE,
    Fields,
    fields_of,
    found_offsets,
    log_of,
    naive_offsets,
    offsets_of,
    tables_of,
)
from tests.record_encoder import NewRecord, encode_record

pytestmark = pytest.mark.slow

#: The broker went on compacting this topic after the clients had read it.
COMPACTED = "users-0"


# -- against what clients read ---------------------------------------------------------------------------------


def from_base64(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def true_fields(row: dict[str, Any]) -> Fields:
    headers = [(key.encode(), from_base64(value)) for key, value in row["headers"]]
    return from_base64(row["key"]), from_base64(row["value"]), headers


def samples(records: list[tuple[int, Fields]], places: Places) -> list[bytes]:
    """Needles that are there: a field's middle, start and end, two bytes of it; and one that is not."""
    needles = [b"no such thing"]
    for _, fields in records[:: max(1, len(records) // 4)]:
        for field in fields_of(fields, places):
            if field:
                half = len(field) // 2
                needles += [field[half : half + 6], field[:4], field[-3:], field[half : half + 1]]
    return sorted(set(needles))[::3]


@pytest.mark.parametrize("places", [EVERYWHERE, IN_KEY, IN_VALUE, IN_HEADERS], ids=["any", "key", "value", "header"])
def test_what_clients_read(witnessed_corpus: Corpus, places: Places) -> None:
    """For each partition that a client read: bytes, text of either case and regular expressions find what they must."""
    corpus = witnessed_corpus
    watermarks = corpus.truth_json("watermarks")
    checked = 0
    for partition in corpus.partitions():
        truth = corpus.true_records(partition.name)
        if truth is None or (corpus.is_shared and len(truth) > 5000):
            continue
        records = [(row["offset"], true_fields(row)) for row in truth]
        bounds = watermarks[partition.name]
        visible = range(bounds["log_start_offset"], bounds["high_watermark"])
        kept = set(all_offsets(partition)) if partition.name == COMPACTED else set(visible)
        for needle in samples(records, places):
            lower = needle.lower()
            cases: list[tuple[Pattern, Callable[[bytes], object]]] = [
                (bytes_pattern(needle), lambda field, needle=needle: needle in field),
                (
                    regex_pattern("^" + needle.decode("utf-8", "surrogateescape").translate(ESCAPED)),
                    lambda field, needle=needle: field.startswith(needle),
                ),
            ]
            if needle.isascii():
                text = needle.decode().swapcase()
                cases.append((text_pattern(text, ignore_case=True), lambda field, lower=lower: lower in field.lower()))
            for pattern, is_match in cases:
                expected = [each for each in naive_offsets(records, is_match, places) if each in kept]
                data = [each for each in data_offsets(partition, Criteria(pattern, places)) if each in visible]
                assert data == expected, (partition, needle, pattern)
                checked += bool(expected)
    assert checked or corpus.id.endswith("kafka-4.3")


ESCAPED = {ord(each): "\\" + each for each in "\\.^$*+?{}[]|()"}


def all_offsets(partition: Path) -> list[int]:
    return data_offsets(partition, Criteria())


def data_offsets(partition: Path, criteria: Criteria) -> list[int]:
    """The offsets found but those of control records, which no client sees."""
    offsets: list[int] = []
    for item in grep(partition, criteria):
        if isinstance(item, FoundRecords):
            is_control = item.records.batches.attributes[item.records.batch] & 0x20
            offsets += item.records.offset[is_control == 0].tolist()
    return offsets


def test_every_format_and_codec(legacy_corpus: Corpus) -> None:
    """The partition that lived through v0, v1 and v2 with each codec, against what was sent to it."""
    (partition,) = legacy_corpus.replicas("legacy-0")
    sent = sent_to_legacy(legacy_corpus)
    records: list[tuple[int, Fields]] = [(offset, (row[2], row[3], [])) for offset, row in enumerate(sent)]
    for places in (EVERYWHERE, IN_KEY, IN_VALUE):
        for needle in [
            *samples(records, places),
            *{row[0].encode() for row in sent},
            *{row[1].encode() for row in sent},
        ]:
            expected = naive_offsets(records, lambda field, needle=needle: needle in field, places)
            assert offsets_of(partition, bytes_pattern(needle), places) == expected, needle
    assert offsets_of(partition, bytes_pattern(b""), IN_HEADERS) == []
    assert found_offsets(partition, Criteria()) == list(range(len(sent)))


# -- built cases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", range(5))
def test_a_hit_across_two_fields_is_none(tmp_path: Path, codec: int) -> None:
    """The bytes between two fields make no match, nor do two fields that follow each other."""
    records = [(b"ab", b"cd"), (b"xab", b"aab"), (b"a", b"a")]
    path = log_of(tmp_path, *(batch(at, [value], key=key, codec=codec) for at, (key, value) in enumerate(records)))
    between = encode_record(NewRecord(0, 0, b"ab", b"cd", ())).split(b"ab")[1][:2]  # a length, then "c"
    assert offsets_of(path, bytes_pattern(b"ab" + between)) == []
    assert offsets_of(path, bytes_pattern(between)) == []
    assert offsets_of(path, bytes_pattern(b"ab")) == [0, 1]
    assert offsets_of(path, bytes_pattern(b"ab"), IN_VALUE) == [1]
    assert offsets_of(path, regex_pattern("b.c")) == []
    assert offsets_of(path, regex_pattern("(?s)a.*d")) == []
    assert offsets_of(path, bytes_pattern(b"aa")) == [1]


def test_overlapping_hits(tmp_path: Path) -> None:
    """A hit that begins before a field, or ends after it, hides none that lies in the field."""
    # The varint of a key of 48 bytes is 0x60, a backquote, which then stands right before the key.
    key = b"``x" + b"-" * 45
    path = log_of(tmp_path, batch(0, [b"-"], key=key), batch(1, [b"```" + b"-" * 45], key=b"-`"))
    assert offsets_of(path, bytes_pattern(b"``")) == [0, 1]
    assert offsets_of(path, bytes_pattern(b"``x")) == [0]
    assert offsets_of(path, bytes_pattern(b"```")) == [1]
    assert offsets_of(path, bytes_pattern(b"````")) == []


def test_a_hit_that_a_hit_across_two_records_overlaps(tmp_path: Path) -> None:
    """The end of one record, what stands before the next one's key, and that key repeat the same bytes."""

    def table_with(key: bytes) -> RecordTable:
        (table,) = tables_of(
            log_of(tmp_path, batch(0, [b"", b""], key=key), *[batch(2 + at, [b""]) for at in range(9)])
        )
        return table

    table = table_with(bytes(12))
    repeated = bytes(table.buffer[int(table.start[1]) - 1 : int(table.key_start[1])])
    assert len(repeated) == 6
    table = table_with(repeated * 2)
    assert bytes(table.buffer).count(repeated * 2, int(table.start[1]) - 1) == 1
    assert search(table, bytes_pattern(repeated * 2)).tolist() == [0, 1]


def test_null_and_empty_fields(tmp_path: Path) -> None:
    path = log_of(
        tmp_path,
        batch(0, [None], key=None),
        batch(1, [b""], key=None),
        batch(2, [None], key=b""),
        batch(3, [None], key=None, headers=((b"", None),)),
        batch(4, [None], key=None, headers=((b"h", b""),)),
    )
    for empty in (bytes_pattern(b""), text_pattern(""), text_pattern("", ignore_case=True), regex_pattern("")):
        assert offsets_of(path, empty) == [1, 2, 3, 4]
        assert offsets_of(path, empty, IN_KEY) == [2]
        assert offsets_of(path, empty, IN_VALUE) == [1]
        assert offsets_of(path, empty, Places(False, False, False, frozenset([b"", b"h"]))) == [4]
    assert offsets_of(path, regex_pattern("^$")) == [1, 2, 3, 4]
    assert found_offsets(path, Criteria(tombstones=True)) == [0, 2, 3, 4]
    assert found_offsets(path, Criteria(bytes_pattern(b""), IN_KEY, tombstones=True)) == [2]
    assert found_offsets(path, Criteria(bytes_pattern(b""), IN_KEY, is_inverted=True)) == [0, 1, 3, 4]


def test_headers(tmp_path: Path) -> None:
    """Names and values of all headers, or the values of some by name; never across two."""
    path = log_of(
        tmp_path,
        batch(0, [b"trace"], headers=((b"trace", b"one"), (b"span", b"two"))),
        batch(1, [b"v"], headers=((b"span", b"one"), (b"trace", None), (b"trace", b"three"))),
        batch(2, [b"trace one"]),
        batch(3, [b"v", b"w"], headers=((b"tracer", b"one"),)),
    )
    trace = Places(False, False, False, frozenset([b"trace"]))
    both = Places(False, False, False, frozenset([b"trace", b"span"]))
    assert offsets_of(path, text_pattern("one"), IN_HEADERS) == [0, 1, 3, 4]
    assert offsets_of(path, text_pattern("trace"), IN_HEADERS) == [0, 1, 3, 4]
    assert offsets_of(path, text_pattern("one"), trace) == [0]
    assert offsets_of(path, text_pattern("THR", ignore_case=True), trace) == [1]
    assert offsets_of(path, regex_pattern("^t.*e$"), both) == [1]
    assert offsets_of(path, regex_pattern("^two|three$"), both) == [0, 1]
    assert offsets_of(path, regex_pattern("e.*o")) == [2]
    assert offsets_of(path, text_pattern("trace"), Places(False, True, False, frozenset([b"trace"]))) == [0, 2]
    assert found_offsets(path, Criteria(places=trace)) == [0, 1]
    assert found_offsets(path, Criteria(places=both)) == [0, 1]
    assert found_offsets(path, Criteria(places=trace, is_inverted=True)) == [2, 3, 4]


def test_legacy_messages(tmp_path: Path) -> None:
    """v0 and v1, plain and in wrappers, mixed with v2 in one file."""
    plain = [encode_message(magic, at, b"key", b"needle %d" % at) for at, magic in enumerate((0, 1))]
    inner = [encode_message(1, at, b"needle", b"v%d" % at) for at in range(3)]
    v0 = [encode_message(0, 5 + at, None, [b"needle", None, b"x"][at]) for at in range(3)]
    wrapped = [encode_wrapper(1, inner, codec=1, last_offset=4), encode_wrapper(0, v0, codec=2, last_offset=7)]
    path = log_of(tmp_path, *plain, *wrapped, batch(8, [b"needle", b"x"]))
    assert offsets_of(path, text_pattern("needle")) == [0, 1, 2, 3, 4, 5, 8]
    assert offsets_of(path, text_pattern("needle"), IN_KEY) == [2, 3, 4]
    assert offsets_of(path, text_pattern("v2")) == [4]
    assert found_offsets(path, Criteria(tombstones=True)) == [6]


def test_ranges_and_producers(tmp_path: Path) -> None:
    partition = tmp_path / "topic-0"
    for base in (0, 20):
        content = [
            batch(
                at, [b"v%d" % n for n in range(5)], producer_id=at // 10, producer_epoch=at % 10 // 5, base_sequence=0
            )
            for at in range(base, base + 20, 5)
        ]
        write_segment(partition, base, content)
    v1 = text_pattern("v1")
    assert offsets_of(partition, v1) == [1, 6, 11, 16, 21, 26, 31, 36]
    assert found_offsets(partition, Criteria(v1, selection=Selection(6, 26))) == [6, 11, 16, 21]
    times = Selection(None, None, BASE_TIMESTAMP + 7, BASE_TIMESTAMP + 22)
    assert found_offsets(partition, Criteria(v1, selection=times)) == [11, 16, 21]
    assert found_offsets(partition, Criteria(selection=times)) == list(range(7, 22))
    assert found_offsets(partition, Criteria(v1, producer_id=2)) == [21, 26]
    assert found_offsets(partition, Criteria(producer_id=2, producer_epoch=1)) == list(range(25, 30))
    inverted = Criteria(v1, selection=Selection(6, 11), is_inverted=True)
    assert found_offsets(partition, inverted) == [7, 8, 9, 10]


def test_only_the_first(tmp_path: Path) -> None:
    """Each log is read up to its first match only: what is damaged after that is not met."""
    many = [batch(at, [b"x" * 1_000_000]) for at in range(9)]
    broken = bytearray(batch(9, [b"x"]))
    broken[-3] ^= 1
    partition = tmp_path / "topic-0"
    write_segment(partition, 0, [*many, bytes(broken)])
    write_segment(partition, 10, [batch(10, [b"y"])])
    write_segment(partition, 11, [batch(11, [b"x"])])
    reported = list(searched_logs([partition], Search(Criteria(text_pattern("x"))), first_only=True))
    assert not [each for each in reported if isinstance(each, Finding)]
    assert [bool(each.record_count) for each in reported if isinstance(each, LogSearched)] == [True, False, True]
    assert [each for each in grep(partition, Criteria(text_pattern("x"))) if isinstance(each, Finding)]


def test_a_match_is_where_its_pattern_says(tmp_path: Path) -> None:
    path = log_of(tmp_path, batch(0, [b"..needle.."], key=b"k"), batch(1, [b"v"], key=b"a needle"))
    for pattern in (text_pattern("needle"), regex_pattern("ne+dle"), text_pattern("NEEDLE", ignore_case=True)):
        (item,) = [each for each in grep(path, Criteria(pattern)) if isinstance(each, FoundRecords)]
        fields = [(item.records.key(row), item.records.value(row)) for row in range(2)]
        spans = [[list(pattern.spans(field or b"")) for field in both] for both in fields]
        assert spans == [[[], [(2, 8)]], [[(2, 8)], []]]
    path = log_of(tmp_path, batch(0, [b"v"], headers=((b"needle", None),)))
    (item,) = [each for each in grep(path, Criteria(text_pattern("needle"))) if isinstance(each, FoundRecords)]
    assert item.records.headers(0) == [(b"needle", None)]


# -- damage and wrong paths --------------------------------------------------------------------------------------


def test_damage_on_the_way(tmp_path: Path) -> None:
    """A batch with a wrong CRC is not searched, and reported; what follows is."""
    good, bad, last = (bytearray(batch(at, [b"needle"])) for at in (0, 1, 2))
    bad[17] ^= 1  # the CRC itself, so that only the CRC is in the way of a match
    path = log_of(tmp_path, bytes(good), bytes(bad), bytes(last), b"\0" * 7)
    reported = list(grep(path, Criteria(text_pattern("needle"))))
    found = [int(each) for item in reported if isinstance(item, FoundRecords) for each in item.records.offset]
    assert found == [0, 2]
    codes = [each.code for each in reported if isinstance(each, Finding)]
    assert codes[0] == "batch-crc-mismatch"
    assert len(codes) == 2


def test_records_before_a_broken_one(tmp_path: Path) -> None:
    """A batch that lies about its count gives its records, and a finding."""
    path = log_of(tmp_path, batch(0, [b"needle", b"needle"], record_count=3, last_offset_delta=2))
    reported = list(grep(path, Criteria(text_pattern("needle"))))
    assert [int(each) for item in reported if isinstance(item, FoundRecords) for each in item.records.offset] == [0, 1]
    assert [each.code for each in reported if isinstance(each, Finding)] == ["record-count-mismatch"]


def test_a_needle_that_is_everywhere(tmp_path: Path) -> None:
    """One byte in every place: each record once."""
    path = log_of(tmp_path, batch(0, [b"\0" * 2000] * 200, key=b"\0\0", headers=((b"\0", b"\0"),)))
    for places in (EVERYWHERE, IN_KEY, IN_VALUE, IN_HEADERS):
        assert offsets_of(path, bytes_pattern(b"\0"), places) == list(range(200))
        assert offsets_of(path, bytes_pattern(b"\0\0"), places) == ([] if places is IN_HEADERS else list(range(200)))


def test_paths_without_records(tmp_path: Path, data_dir: Path) -> None:
    path = log_of(tmp_path, batch(0, [b"x"]))
    with pytest.raises(NotALogDir, match="no records"):
        list(grep(Target(path, Kind.TIME_INDEX), Criteria()))
    with pytest.raises(InputError):
        list(grep(tmp_path / "nowhere", Criteria()))
    empty = write_segment(tmp_path / "empty-0", 0, [])
    [searched] = searched_logs([empty], Search(Criteria()))
    assert isinstance(searched, LogSearched)
    assert searched.record_count == 0
    assert found_offsets(empty, Criteria(bytes_pattern(b""))) == []
    snapshot = next((data_dir / "kafka-4.3-single").rglob("bootstrap.checkpoint"))
    assert found_offsets(snapshot, Criteria(text_pattern("metadata.version"))) != []
