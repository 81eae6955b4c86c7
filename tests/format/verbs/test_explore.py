"""The tree of explore and its bytes: everything is there, every byte has an owner, and little is read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from format.decoding.decoder import Decoding
from format.decoding.schemas import find_schemas
from format.io import source as source_module
from format.layout import OFFSET_INDEX_ENTRY
from format.node.target import Target
from format.verbs import explore
from format.verbs.explore import PAGE, NodePlace, PlaceKind, children, root_place, view_of
from format.verbs.grep.pattern import text_pattern
from tests.building import batch, batches, wrapper, write_indexed_segment, write_segment
from tests.decoded_node import write_node


def every_place(place: NodePlace, most: int = 12) -> Iterator[NodePlace]:
    """A place, and some of what lies below it."""
    yield place
    if place.has_children:
        for each in children(place)[:most]:
            if each.kind is not PlaceKind.MORE:
                yield from every_place(each, most)


@pytest.mark.parametrize("name", ["kafka-4.3-single/node-1", "kafka-0.8-to-2.8"])
def test_every_byte_has_one_owner(data_dir: Path, name: str) -> None:
    count = 0
    for place in every_place(root_place(data_dir / name), most=5):
        view = view_of(place)
        end = 0
        for region in view.regions:
            assert region.position == end, place
            assert region.length > 0, place
            end = region.end_position
            if region.field not in ("", "line"):
                assert view.meaning(region.field), region.field
        assert end == len(view.content), place
        count += len(view.regions)
    assert count > 1000


def test_bytes_are_those_of_the_file(data_dir: Path) -> None:
    for place in every_place(root_place(data_dir / "kafka-4.3-single" / "node-1" / "payments-0")):
        view = view_of(place)
        if view.content and view.position is not None:
            with place.path.open("rb") as file:
                file.seek(view.position)
                assert file.read(len(view.content)) == view.content, place


def test_pages_of_batches_and_records(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, batches(PAGE + 5, values=1))
    place = root_place(log)
    page = children(place)
    assert [each.offset for each in page[:-1]] == list(range(PAGE))
    assert page[-1].kind is PlaceKind.MORE
    assert [each.offset for each in children(place, page[-1].position)] == list(range(PAGE, PAGE + 5))
    big = write_segment(tmp_path / "t-1", 0, [batch(0, [b"x"] * (PAGE + 3))])
    (only,) = children(root_place(big))
    records = children(only)
    assert len(records) == PAGE + 1
    assert [each.offset for each in children(only, records[-1].position)] == [PAGE, PAGE + 1, PAGE + 2]


def test_the_states_of_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("big-0", "damaged-0", "empty-0", "sound-0"):
        log = write_indexed_segment(tmp_path / name, 5, [] if name == "empty-0" else [batch(5), batch(8)])
        if name == "damaged-0":
            log.write_bytes(log.read_bytes()[:-9])
    large = write_indexed_segment(tmp_path / "big-0", 5, [batch(base, [b"v" * 200] * 3) for base in range(5, 65, 3)])
    monkeypatch.setattr(explore, "_MOST_LISTED_BYTES", large.stat().st_size - 1)
    root, steps = root_place(tmp_path), []
    states = list(explore.partition_states(root, steps.append))
    assert [(each.path.name, each.listing.log_end_offset, each.words, each.is_damaged) for each in states] == [
        ("big-0", 65, "large, not read", False),
        ("damaged-0", 8, "tail-torn", True),
        ("empty-0", 5, "empty", False),
        ("sound-0", 11, "headers read", False),
    ]
    assert steps
    (alone,) = explore.partition_states(root_place(tmp_path / "sound-0"), steps.append)
    assert alone == states[-1]


def index_of(folder: Path, content: bytes) -> NodePlace:
    """A place of an offset index."""
    path = folder / f"{0:020}.index"
    path.write_bytes(content)
    return root_place(path)


def entries_of(numbers: Iterable[int]) -> bytes:
    """Entries of an offset index."""
    return b"".join(OFFSET_INDEX_ENTRY.struct.pack(number, number * 100) for number in numbers)


def test_the_unused_entries_of_an_index_are_one_place(tmp_path: Path) -> None:
    place = index_of(tmp_path, entries_of(range(3)) + bytes(8 * 1000))
    *entries, unused = children(place)
    assert [each.label for each in entries] == [
        "offset 0 → position 0",
        "offset 1 → position 100",
        "offset 2 → position 200",
    ]
    assert (unused.kind, unused.label, unused.position) == (PlaceKind.MORE, "1,000 unused entries …", 3)
    zeros = children(place, unused.position)
    assert [each.number for each in zeros[:-1]] == list(range(3, 3 + PAGE))
    assert zeros[-1].label == "800 more entries …"


@pytest.mark.parametrize(
    ("content", "shown", "label"),
    [
        (bytes(8), 1, None),
        (bytes(8 * 5), 1, "4 unused entries …"),
        (entries_of(range(1, PAGE + 1)) + bytes(8), PAGE, "1 more entry …"),
        (entries_of([1]) + bytes(8 * 300) + entries_of([5]), PAGE, "102 more entries …"),  # damage, not padding
        (entries_of([1]) + bytes(8 * 3), 1, "3 unused entries …"),
    ],
)
def test_where_the_entries_of_an_index_end(tmp_path: Path, content: bytes, shown: int, label: str | None) -> None:
    found = children(index_of(tmp_path, content))
    assert sum(each.kind is PlaceKind.ENTRY for each in found) == shown
    assert [each.label for each in found if each.kind is PlaceKind.MORE] == ([] if label is None else [label])


def test_records_of_compressed_batches_and_old_messages(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0, [b"abc", b"def"], codec=4), wrapper(1, 2), wrapper(0, 5)])
    for place in children(root_place(log)):
        for record in children(place):
            view = view_of(record)
            decoded = dict(view.decoded)
            assert decoded["value"] in view.content
            assert decoded["offset"] == record.offset
            assert view.position is None
            assert "decompressed" in view.note


def test_damage_is_a_place_and_reading_goes_on(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0), b"\xff" * 50, batch(3)])
    found = children(root_place(log))
    assert [each.kind for each in found] == [PlaceKind.BATCH, PlaceKind.DAMAGE, PlaceKind.BATCH]
    assert view_of(found[1]).content == b"\xff" * 50


@pytest.mark.parametrize("content", [bytes(5000), b"garbage\n" * 300, b"\xff" * 7])
def test_a_log_that_begins_with_no_batch_is_no_text(tmp_path: Path, content: bytes) -> None:
    log = write_segment(tmp_path / "t-0", 0, [content])
    view = view_of(root_place(log))
    assert [(each.position, each.length, each.field) for each in view.regions] == [(0, len(content), "")]


def test_large_damage_holds_nothing_up(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0), b"\xff" * 9 * 1024**2, batch(3)])
    place = root_place(log)
    page = children(place)
    assert [each.kind for each in page] == [PlaceKind.BATCH, PlaceKind.DAMAGE, PlaceKind.MORE]
    kinds = []
    while page[-1].kind is PlaceKind.MORE:
        page = children(place, page[-1].position)
        kinds += [each.kind for each in page]
    assert kinds[-1] is PlaceKind.BATCH
    assert page[-1].offset == 3


def test_zeros_at_the_end_are_one_place(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", 0, [batch(0)])
    with log.open("r+b") as file:
        file.truncate(100 * 1024**3)
    started = time.process_time()
    first, zeros = children(root_place(log))
    assert (first.kind, zeros.kind, zeros.size_bytes) == (
        PlaceKind.BATCH,
        PlaceKind.DAMAGE,
        100 * 1024**3 - first.size_bytes,
    )
    assert view_of(zeros).note == f"the first 262,144 of {zeros.size_bytes:,} bytes"
    assert time.process_time() - started < 1


def test_a_terabyte_is_opened_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = b"".join(batches(3000))
    for number in range(100):
        log = write_segment(tmp_path / f"t-{number}", 0, [first])
        with log.open("r+b") as file:
            file.truncate(10 * 1024**3)  # sparse
    read = 0
    before = source_module.FileSource._pread

    def counted(self: source_module.FileSource, position: int, length: int) -> bytes:
        nonlocal read
        got = before(self, position, length)
        read += len(got)
        return got

    monkeypatch.setattr(source_module.FileSource, "_pread", counted)
    started = time.process_time()
    root = root_place(tmp_path)
    partition = children(root)[0]
    (file,) = children(partition)
    for each in children(file)[:3]:
        view_of(each)
    assert time.process_time() - started < 1
    assert read < 1024**2


def test_values_that_are_decoded(tmp_path: Path) -> None:
    partition = write_node(tmp_path)
    decoding = Decoding(schemas=find_schemas([Target(partition)]))
    (log,) = [each for each in children(root_place(partition)) if each.label.endswith(".log")]
    (of_batch,) = children(log)
    records = children(of_batch, 0, decoding)
    assert records[0].label == '0  k  {"id":4711,"customer":"Ana"}'
    assert records[2].label == "2  k  plain text"
    assert children(of_batch)[0].label.startswith("0  k  \0")
    view = view_of(records[0], decoding)
    assert {region.field: region.value for region in view.regions}["value"] == '{"id":4711,"customer":"Ana"}'
    assert dict(view.decoded)["value_schema_id"] == 7
    cut = {region.field: region.value for region in view_of(records[3], decoding).regions}
    assert cut["value"].startswith("not decoded: ")
    assert "value_format" not in dict(view_of(records[0]).decoded)
    found = list(explore.matches(Target(partition), text_pattern('"is_paid":true'), 0, lambda read: None, decoding))
    assert [each.offset for each in found if isinstance(each, explore.Spot)] == [1]
    assert len(found) == 1
