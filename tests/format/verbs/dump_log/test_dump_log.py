"""The parts of dump-log: Java's text and hash tables, lines in bulk against lines one by one, gaps of offsets."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from format.limits import DEFAULT_LIMITS, MIB, Limits
from format.location import Location
from format.log.kafka_batch import int64
from format.scan.drivers import ForkedDriver, SerialDriver, open_driver
from format.scan.protocol import LogUnit
from format.verbs.dump_log import log_lines
from format.verbs.dump_log.contents import ParserOf39
from format.verbs.dump_log.dump_log import DumpLogScan, dump_log
from format.verbs.dump_log.java_text import (
    decrement_sequence,
    hash_map_order,
    increment_sequence,
    int32,
    java_utf8,
    normalised,
    split_files,
)
from format.verbs.dump_log.log_lines import OffsetGaps
from format.verbs.dump_log.options import Contents, DumpLogOptions, ErrorLine, Release
from tests.building import batch, batches, wrapper, write_segment
from tests.corpora import DATA_DIR, Corpus
from tests.format.internal_topics.known_messages import records_of

pytestmark = pytest.mark.long

#: Bytes, and the UTF-8 of what Java's String makes of them (OpenJDK 17), both in hexadecimal.
JAVA_STRINGS = (
    ("8f80f08f7f", "efbfbdefbfbdefbfbdefbfbd7f"),
    ("e0ef709fefdf", "efbfbdefbfbd70efbfbdefbfbdefbfbd"),
    ("90edffc0ff", "efbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("e0c159c1", "efbfbdefbfbd59efbfbd"),
    ("c152bff5", "efbfbd52efbfbdefbfbd"),
    ("f817f5", "efbfbd17efbfbd"),
    ("e1bfe1a0", "efbfbdefbfbd"),
    ("c2f08f", "efbfbdefbfbdefbfbd"),
    ("4bede0f17fe0", "4befbfbdefbfbdefbfbd7fefbfbd"),
    ("f5c1f55f4cdf", "efbfbdefbfbdefbfbd5f4cefbfbd"),
    ("bff0f190f1", "efbfbdefbfbdefbfbdefbfbd"),
    ("f8f1e1f4c1df", "efbfbdefbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("dfffc2", "efbfbdefbfbdefbfbd"),
    ("f0e1ff7ff58d", "efbfbdefbfbdefbfbd7fefbfbdefbfbd"),
    ("bff5a0", "efbfbdefbfbdefbfbd"),
    ("f48fe1dfa0bf", "efbfbdefbfbddfa0efbfbd"),
    ("df41f441c2", "efbfbd41efbfbd41efbfbd"),
    ("f5a0cff5e1", "efbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("a07341f8a06a", "efbfbd7341efbfbdefbfbd6a"),
    ("908080ffbf", "efbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("f4a041ff", "efbfbdefbfbd41efbfbd"),
    ("a0ffa0", "efbfbdefbfbdefbfbd"),
    ("e0efdf84df", "efbfbdefbfbddf84efbfbd"),
    ("c0c28fc2a090", "efbfbdc28fc2a0efbfbd"),
    ("9fc2f490", "efbfbdefbfbdefbfbdefbfbd"),
    ("c49fed", "c49fefbfbd"),
    ("f8e064cbed7f", "efbfbdefbfbd64efbfbdefbfbd7f"),
    ("c2f1ffbae090", "efbfbdefbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("f10bf8c2", "efbfbd0befbfbdefbfbd"),
    ("e1bfeda0f5", "efbfbdefbfbdefbfbd"),
    ("b5835e", "efbfbdefbfbd5e"),
    ("bfe08fbfbf", "efbfbdefbfbdefbfbdefbfbdefbfbd"),
    ("f141a0ff", "efbfbd41efbfbdefbfbd"),
    ("2fc21df4f09f", "2fefbfbd1defbfbdefbfbd"),
    ("c1f8f19f", "efbfbdefbfbdefbfbd"),
    ("f4f5b8", "efbfbdefbfbdefbfbd"),
    ("a080f07f", "efbfbdefbfbdefbfbd7f"),
    ("800ac080", "efbfbd0aefbfbdefbfbd"),
    ("df619fc0", "efbfbd61efbfbdefbfbd"),
    ("8090f1a08041", "efbfbdefbfbdefbfbd41"),
    ("7fc1b4c280f0", "7fefbfbdefbfbdc280efbfbd"),
    ("a0f1ba", "efbfbdefbfbd"),
    ("a07f8f", "efbfbd7fefbfbd"),
    ("80e1ed9f", "efbfbdefbfbdefbfbd"),
    ("f4417f34e1", "efbfbd417f34efbfbd"),
)


@pytest.mark.parametrize(("raw", "expected"), JAVA_STRINGS)
def test_malformed_text_is_replaced_as_java_does(raw: str, expected: str) -> None:
    assert java_utf8(bytes.fromhex(raw)).hex() == expected


def test_megabytes_of_malformed_text() -> None:
    assert java_utf8(b"\xff" * 1_000_000) == b"\xef\xbf\xbd" * 1_000_000
    assert java_utf8("träger 日本 \U0001f600".encode()) == "träger 日本 \U0001f600".encode()


def test_numbers_wrap_as_in_java() -> None:
    assert (int32(2**31), int32(-(2**31) - 1), int64(2**63), int64(-1)) == (-(2**31), 2**31 - 1, -(2**63), -1)
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 3, 7) == 4
    assert decrement_sequence(0, 1) == 2**31 - 1
    assert decrement_sequence(9, 4) == 5


#: In what order a java.util.HashMap (filled by computeIfAbsent) and a Scala mutable.HashMap hold some paths.
HASH_ORDERS = (
    (13, False, [259, 148, 444, 222, 0, 37, 333, 185, 74, 111, 370, 407, 296]),
    (13, True, [148, 0, 333, 74, 185, 111, 259, 444, 222, 37, 370, 407, 296]),
    (14, False, [148, 481, 0, 333, 185, 74, 111, 259, 444, 222, 37, 370, 407, 296]),
    (14, True, [148, 481, 0, 333, 74, 185, 111, 259, 444, 222, 37, 370, 407, 296]),
)


@pytest.mark.parametrize(("count", "is_scala", "expected"), HASH_ORDERS)
def test_hash_tables_have_their_order(count: int, is_scala: bool, expected: list[int]) -> None:
    names = {f"/data/t-{number * 37}/00.log": number * 37 for number in range(count)}
    assert [names[each] for each in hash_map_order(names, is_scala=is_scala)] == expected


def test_files_are_split_and_named_as_in_java() -> None:
    assert split_files("a,,b,,") == ["a", "", "b"]
    assert split_files("") == [""]
    assert split_files(",,") == []
    assert [normalised(each) for each in ("a//b/", "/", "//", "a", "")] == ["a/b", "/", "/", "a", ""]


# -- lines in bulk -------------------------------------------------------------------------------------------

OPTIONS = (
    DumpLogOptions(),
    DumpLogOptions(is_deep=True),
    DumpLogOptions(prints_contents=True),
    DumpLogOptions(prints_contents=True, skips_record_metadata=True),
    DumpLogOptions(is_deep=True, skips_record_metadata=True),
    DumpLogOptions(prints_contents=True, emulate=Release.V4_3_1),
    DumpLogOptions(prints_contents=True, emulate=Release.V3_9_1),
    DumpLogOptions(prints_contents=True, skips_record_metadata=True, emulate=Release.V3_9_1),
)


def test_a_release_prints_no_type_that_came_later() -> None:
    """As 4.3.1 did with the metadata of a 4.4.0 node."""
    log = DATA_DIR / "trials/metadata-4.4/node-1/__cluster_metadata-0/00000000000000000000.log"
    options = DumpLogOptions(prints_contents=True, contents=Contents.CLUSTER_METADATA)
    unknown = (
        b"Error at 62, skipping. org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 29"
    )
    newest = printed([log], options)
    assert b'payload: {"type":"UNREGISTER_CONTROLLER_RECORD","version":0,"data":{"controllerId":2}}' in newest
    for release in Release:
        lines = printed([log], replace(options, emulate=release))
        assert unknown in lines
        assert lines.count(b"Error at") == 1 + 2 * (release is Release.V3_9_1)
        assert newest.count(b"\n") == lines.count(b"\n")


def items_of(files: list[Path], options: DumpLogOptions, limits: Limits = DEFAULT_LIMITS, jobs: int = 1) -> list[Any]:
    """What there is to print, each run of output as one; what follows on standard error; findings."""
    found: list[Any] = []
    for item in dump_log([str(file) for file in files], replace(options, limits=limits), jobs=jobs):
        if not isinstance(item, (bytes, memoryview)):
            found.append(item.text if isinstance(item, ErrorLine) else (item.code, str(item.location), item.message))
        elif found and isinstance(found[-1], bytearray):
            found[-1] += item
        else:
            found.append(bytearray(item))
    return found


def printed(files: list[Path], options: DumpLogOptions) -> bytes:
    return b"".join(each for each in items_of(files, options) if isinstance(each, bytearray))


@pytest.mark.parametrize("options", OPTIONS)
def test_lines_in_bulk_are_those_one_by_one(
    options: DumpLogOptions, data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, first = data_dir / "kafka-4.3-single" / "node-1", "00000000000000000000.log"
    files = [node / name / first for name in ("edge.cases_1-0", "payments-0", "users-0", "clients-0")]
    files = [each for each in files if each.exists()] + sorted((data_dir / "kafka-0.8-to-2.8").rglob("*.log"))
    content = [
        batch(0, [b"a", b"\xff", None], headers=((b"h", b"1"), (b"\xc3", None), ("é".encode(), b""))),
        batch(3, [b"x" * 700_000, b"y"], base_sequence=2**31 - 1, producer_id=5, producer_epoch=0),
        batch(5, [], key=None, last_offset_delta=4, record_count=0),
        batch(10, [b"c"], attributes=0x48, timestamp=7),
        batch(11, [b"c"], base_sequence=-5),
        batch(2**62, [b"d"], last_offset_delta=2**31 - 1, timestamp=1),
        batch(2**63 - 1, [b"e"], last_offset_delta=7, timestamp=1),
    ]
    files.append(write_segment(tmp_path / "odd-0", 0, content))
    files.append(write_segment(tmp_path / "old-0", 0, [wrapper(0, 0), wrapper(1, 3), wrapper(1, 6, codec=2)]))
    results = []
    for is_bulk in (False, True):
        monkeypatch.setattr(log_lines, "KERNEL_IS_COMPILED", is_bulk)
        results.append(printed(files, options))
    assert results[0] == results[1]
    assert len(results[0]) > 1000


def test_a_batch_of_very_many_records_is_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = 30_000
    file = write_segment(
        tmp_path / "t-0", 0, [batch(0, [b"%d" % number for number in range(many)]), batch(many, [b"z"])]
    )
    for is_bulk in (False, True):
        monkeypatch.setattr(log_lines, "KERNEL_IS_COMPILED", is_bulk)
        monkeypatch.setattr("format.log.read_records.MOST_ROWS", 7_000)
        lines = printed([file], DumpLogOptions(prints_contents=True)).split(b"\n")
        assert sum(line.startswith(b"baseOffset: ") for line in lines) == 2
        assert [line.rpartition(b"payload: ")[2] for line in lines if line.startswith(b"| ")] == [
            *(b"%d" % number for number in range(many)),
            b"z",
        ]


# -- by several processes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS[:5])
def test_several_processes_print_what_one_prints(
    options: DumpLogOptions, shipped_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = sorted(shipped_corpus.files(".log"), key=lambda each: each.stat().st_size)[-12:]
    sound = b"".join(batch(n * 7, [b"%d" % n] * 3, codec=n % 5, producer_id=n % 2, producer_epoch=0) for n in range(90))
    for name, flipped in (("sound", ()), ("crc", (5000,)), ("framing", (900, 4000)), ("torn", (len(sound) - 40,))):
        content = bytearray(sound)
        for position in flipped:
            content[position] ^= 0x55
        files.append(write_segment(tmp_path / f"{name}-0", 0, [bytes(content)]))
    files.append(write_segment(tmp_path / "cut-0", 0, [sound[:-30]]))
    files.append(
        write_segment(tmp_path / "odd-0", 0, [wrapper(1, n * 3) if n % 2 else batch(n * 3) for n in range(40)])
    )
    by_one = items_of(files, options)
    is_shared = []
    monkeypatch.setattr("format.verbs.dump_log.dump_log.CHUNK_BYTES", 700)
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: is_shared.append(1) or True)
    assert items_of(files, options, jobs=2) == by_one
    assert len(is_shared) == len(files)
    assert any(isinstance(each, tuple) for each in by_one)


def test_a_line_longer_than_what_processes_share_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_segment(tmp_path / "t-0", 0, [batch(0, [b"x" * (5 * MIB), b"y"]), *batches(20, 2)])
    options = DumpLogOptions(prints_contents=True)
    by_one = items_of([file], options)
    monkeypatch.setattr("format.scan.drivers.is_worth_sharing", lambda *_: True)
    monkeypatch.setattr("format.verbs.dump_log.dump_log.CHUNK_BYTES", 1000)
    assert items_of([file], options, jobs=2) == by_one
    assert b"x" * (5 * MIB) in by_one[0]


def test_what_cannot_be_shared_is_not(tmp_path: Path) -> None:
    large = write_segment(tmp_path / "large-0", 0, [batch(0, [b"x" * MIB] * 60, codec=0), *batches(2, 60)])
    small = write_segment(tmp_path / "small-0", 0, batches(3))
    records = DumpLogOptions(prints_contents=True)

    def driver_of(path: Path, options: DumpLogOptions) -> type:
        scan = DumpLogScan(options, lambda source: None)  # type: ignore[arg-type, return-value]
        with open_driver(scan, [LogUnit(path, Location(str(path)))], 2) as driver:
            return type(driver)

    assert driver_of(small, records) is SerialDriver
    assert driver_of(large, replace(records, max_bytes=1000)) is SerialDriver
    os.truncate(large, 1 << 30)  # a hole: only the size in its first batch counts
    assert driver_of(large, replace(records, max_bytes=1000)) is SerialDriver
    assert driver_of(large, records) is ForkedDriver


# -- the rest ------------------------------------------------------------------------------------------------


def gaps_of(emulate: Release | None, *parts: list[int]) -> list[tuple[int, int]]:
    gaps = OffsetGaps(emulate)
    for part in parts:
        gaps.add(np.array(part, np.int64))
    return list(gaps.pairs())


def test_gaps() -> None:
    parts = ([5, 6], [], [9, 10, 7], [8, 9, 12])
    assert gaps_of(None, *parts) == [(6, 9), (10, 7), (9, 12)]
    assert gaps_of(Release.V3_9_1, *parts) == [(9, 12), (10, 7), (6, 9)]
    assert gaps_of(Release.V4_3_1, *parts) == [(-1, 5), (6, 9), (9, 12), (10, 7)]
    assert gaps_of(Release.V4_3_1, [0, 1]) == []


@pytest.mark.parametrize("emulate", [None, *Release])
def test_gaps_that_are_packed(emulate: Release | None, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    parts = [chance.integers(-(2**63), 2**63 - 1, 5).tolist() for _ in range(20)] + [[7, 7, 3, 7, 7, 7]]
    whole = gaps_of(emulate, *parts)
    monkeypatch.setattr("format.verbs.dump_log.log_lines._PACKED_GAPS", 7)
    assert gaps_of(emulate, *parts) == whole
    first, second = OffsetGaps(None), OffsetGaps(None)
    for gaps, of_range in ((first, parts[:9]), (second, parts[9:])):
        for part in of_range:
            gaps.add(np.array(part, np.int64))
    first.follow(pickle.loads(pickle.dumps(second)))
    assert [*first.pairs()] == gaps_of(None, *parts)


def test_gaps_of_many_equal_offsets_are_small() -> None:
    gaps = OffsetGaps(None)
    for _ in range(10):
        gaps.add(np.zeros(128 * 1024, np.int64))
    assert len(pickle.dumps(gaps)) < 1 << 20


def test_a_transactions_partitions_come_in_the_order_of_scalas_hash_set(corpus: Corpus) -> None:
    """Each of them once, whatever the order; the order itself is held against 3.9.1 by the oracle tests."""
    parse = ParserOf39(Contents.TRANSACTION_LOG)
    for file in corpus.files(".log"):
        if not file.parent.name.startswith("__transaction_state-"):
            continue
        for offset, is_control, key, value in records_of(file):
            if not is_control:
                texts = parse(key, value, offset)
                assert texts[0] is not None
                assert texts[0].startswith(b"transaction_metadata::transactionalId=")


def test_a_batch_over_the_limit_is_reported_and_left_out(tmp_path: Path) -> None:
    file = write_segment(tmp_path / "t-0", 0, [*batches(1), batch(3, [b"x" * 100_000], codec=1), *batches(1, 4)])
    limits = Limits(max_decompressed_bytes=10_000)
    items = items_of([file], DumpLogOptions(prints_contents=True), limits)
    assert [each[0] for each in items if isinstance(each, tuple)] == ["limit-exceeded"]
    text = b"".join(each for each in items if isinstance(each, bytearray))
    assert text.count(b"baseOffset: ") == 3
    assert b"| Error in the batch at position " in text


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff-0"
    os.mkdir(folder)
    path = os.fsdecode(folder + b"/00000000000000000000.log")
    shutil.copy(write_segment(tmp_path / "t-0", 0, batches(1)), path)
    lines = printed([Path(path)], DumpLogOptions()).split(b"\n")
    assert lines[0] == b"Dumping " + os.fsencode(path)
    assert lines[2].startswith(b"baseOffset: 0 ")


def test_a_record_of_another_topic_is_no_metadata_record() -> None:
    """As 3.9.1 says it: the first byte is taken for the version of the frame, before the type is looked up."""
    words = "Could not deserialize metadata record due to unknown frame version 123(only frame version 1 is supported)"
    assert ParserOf39(Contents.CLUSTER_METADATA)(None, b'{"qty": 1}', 7) == (
        None,
        f"Error at 7, skipping. {words}".encode(),
    )
