"""What kafkalog reads from every file of every corpus, against what kafka-dump-log of two releases prints."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.corpora import DATA_DIR, Corpus
from tests.json_rows import to_bytes, to_headers
from tests.oracle.dump_log_parser import DumpedFile, Row, comparable, parse_dump_log, printed_text
from tests.running import Run

pytestmark = pytest.mark.oracle

VERSIONS = ("4.3.1", "3.9.1")
BATCH_FILES = (".log", ".checkpoint")
SIDE_FILES = (".index", ".timeindex", ".txnindex", ".snapshot")

DumpLog = Callable[..., "subprocess.CompletedProcess[bytes]"]
RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]


class KafkaDumps:
    """kafka-dump-log's view of whole corpora: one run for each corpus and release, on a copy, as the tool may write."""

    def __init__(self, dump_log: DumpLog, scratch: Path) -> None:
        self._dump_log = dump_log
        self._scratch = scratch
        self._dumps: dict[tuple[str, str], dict[str, DumpedFile]] = {}

    def of(self, corpus: Corpus, version: str) -> dict[str, DumpedFile]:
        """By the file's path relative to the corpus."""
        if (corpus.id, version) not in self._dumps:
            copy = self._scratch / corpus.id
            if not copy.exists():
                shutil.copytree(corpus.root, copy)
            names = [str(each.relative_to(corpus.root)) for each in dumped_files(corpus)]
            paths = ",".join(str(copy / name) for name in names)
            done = self._dump_log(version, "--deep-iteration", "--print-data-log", "--files", paths)
            assert done.returncode == 0, done.stderr.decode()[-2000:]
            found = parse_dump_log(done.stdout)
            self._dumps[corpus.id, version] = {name: found[str(copy / name)] for name in names}
        return self._dumps[corpus.id, version]


def dumped_files(corpus: Corpus, *suffixes: str) -> list[Path]:
    """The files that the tool survives: an index with preallocated zeros beside an empty log kills it, see below."""
    found = corpus.files(*(suffixes or BATCH_FILES + SIDE_FILES))
    return [each for each in found if not (each.suffix == ".index" and is_preallocated_beside_nothing(each))]


def is_preallocated_beside_nothing(index: Path) -> bool:
    return index.stat().st_size > 0 and index.with_suffix(".log").stat().st_size == 0


@pytest.fixture(scope="module")
def kafka_dumps(kafka_lab: DumpLog, tmp_path_factory: pytest.TempPathFactory) -> KafkaDumps:
    return KafkaDumps(kafka_lab, tmp_path_factory.mktemp("kafka-dumps"))


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


def dump_each(run_many: RunMany, files: list[Path], *options: str) -> list[Run]:
    runs = run_many([("dump", *options, "--format", "jsonl", each) for each in files])
    return [run.check(0) for run in runs]


# -- batches and records -------------------------------------------------------------------------------------

V2_KEYS = (
    "position", "size_bytes", "base_offset", "last_offset", "record_count", "magic", "codec", "timestamp_type",
    "max_timestamp", "leader_epoch", "producer_id", "producer_epoch", "base_sequence", "is_transactional",
    "is_control", "delete_horizon_ms", "crc", "crc_valid",
)  # fmt: skip
LEGACY_KEYS = (
    "position", "size_bytes", "last_offset", "magic", "codec", "timestamp_type", "max_timestamp", "crc", "crc_valid",
)  # fmt: skip


def kafka_batch(row: Row) -> Row:
    """A batch as the tool printed it, under our keys; it prints the largest timestamp without saying so."""
    has_timestamp = row["timestamp_type"] != "NoTimestampType"
    renamed = {**row, "max_timestamp": row["timestamp"] if has_timestamp else None}
    return {key: renamed[key] for key in (V2_KEYS if row["magic"] >= 2 else LEGACY_KEYS)}


def our_batch(row: Row) -> Row:
    return {key: row[key] for key in (V2_KEYS if row["magic"] >= 2 else LEGACY_KEYS)}


def test_batches(corpus: Corpus, version: str, kafka_dumps: KafkaDumps, run_kafkalog_many: RunMany) -> None:
    theirs = kafka_dumps.of(corpus, version)
    files = dumped_files(corpus, *BATCH_FILES)
    compared = 0
    for file, run in zip(files, dump_each(run_kafkalog_many, files), strict=True):
        name = str(file.relative_to(corpus.root))
        expected = [kafka_batch(row) for row in theirs[name].batches]
        assert [our_batch(row) for row in run.rows("batch")] == expected, name
        compared += len(expected)
    assert compared > 80


def kafka_record(row: Row) -> Row:
    """A record as the tool printed it; of control records it prints the sizes of key and value only."""
    has_timestamp = row["timestamp_type"] != "NoTimestampType"
    return {
        "offset": row["offset"],
        "position": row["position"],
        "timestamp_type": row["timestamp_type"],
        "timestamp": row["timestamp"] if has_timestamp else None,
        "sequence": row.get("sequence"),
        "header_keys": comparable(row.get("header_keys", "")),
        "key_bytes": row["key_bytes"],
        "value_bytes": row["value_bytes"],
        "is_control": "control" in row,
        "key": comparable(row["key"]),
        "value": comparable(row["value"]),
    }


def our_record(row: Row) -> Row:
    key, value = to_bytes(row["key"]), to_bytes(row["value"])
    header_keys = b",".join(key for key, _ in to_headers(row["headers"]))
    is_control = bool(row["is_control"])
    return {
        **{name: row[name] for name in ("offset", "position", "timestamp_type", "timestamp", "sequence")},
        "header_keys": printed_text(header_keys),
        "key_bytes": -1 if key is None else len(key),
        "value_bytes": -1 if value is None else len(value),
        "is_control": is_control,
        "key": None if is_control else printed_text(key),
        "value": None if is_control else printed_text(value),
    }


def test_records(corpus: Corpus, version: str, kafka_dumps: KafkaDumps, run_kafkalog_many: RunMany) -> None:
    theirs = kafka_dumps.of(corpus, version)
    files = dumped_files(corpus, *BATCH_FILES)
    compared = 0
    for file, run in zip(files, dump_each(run_kafkalog_many, files, "--records", "--raw"), strict=True):
        name = str(file.relative_to(corpus.root))
        expected = [kafka_record(row) for row in theirs[name].records]
        actual = [our_record(row) for row in run.rows("record")]
        assert [row["offset"] for row in actual] == [row["offset"] for row in expected], name
        for ours, kafkas in zip(actual, expected, strict=True):
            assert ours == kafkas, name
        compared += len(expected)
    assert compared > 3000


# -- side files ----------------------------------------------------------------------------------------------


def without_preallocated(entries: list[Row], base_offset: int) -> list[Row]:
    """The tool takes the first slot of a preallocated index for an entry, even where it was never written."""
    never_written = ({"offset": base_offset, "position": 0}, {"timestamp": 0, "offset": base_offset})
    return entries[1:] if entries and entries[0] in never_written else entries


def kafka_side_row(row: Row) -> Row:
    """An entry as the tool printed it: what it leaves out of a producer without batches is -1 on disk."""
    if "coordinator_epoch" not in row:
        return row
    kept = {key: row[key] for key in ("producer_id", "producer_epoch", "coordinator_epoch", "timestamp")}
    last = {key: -1 if row[key] is None else row[key] for key in ("last_sequence", "last_offset")}
    return {**kept, **last, "current_txn_first_offset": row["current_txn_first_offset"]}


ROW_TYPES = {
    ".index": "offset_index_entry",
    ".timeindex": "time_index_entry",
    ".txnindex": "aborted_txn",
    ".snapshot": "producer_snapshot_entry",
}


def test_side_files(corpus: Corpus, version: str, kafka_dumps: KafkaDumps, run_kafkalog_many: RunMany) -> None:
    theirs = kafka_dumps.of(corpus, version)
    files = dumped_files(corpus, *SIDE_FILES)
    assert {each.suffix for each in files} >= {".index", ".timeindex"}
    for file, run in zip(files, dump_each(run_kafkalog_many, files), strict=True):
        name = str(file.relative_to(corpus.root))
        base_offset = int(file.stem)
        expected = [kafka_side_row(row) for row in without_preallocated(theirs[name].entries, base_offset)]
        keys = list(expected[0]) if expected else []
        assert [{key: row[key] for key in keys} for row in run.rows(ROW_TYPES[file.suffix])] == expected, name
        for row in run.rows(ROW_TYPES[file.suffix]):
            if file.suffix == ".snapshot":
                assert row["snapshot_offset"] == base_offset, name
            else:
                assert row["segment_base_offset"] == base_offset, name
            if "relative_offset" in row:
                assert row["relative_offset"] == row["offset"] - base_offset, name


# -- where the tool fails and kafkalog must not --------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A copy of a partition whose indexes still have their preallocated size."""
    return Path(shutil.copytree(DATA_DIR / "kafka-4.3" / "node-1" / "ledger-0", tmp_path / "ledger-0"))


def listing(directory: Path) -> dict[str, Any]:
    return {each.name: each.read_bytes() for each in sorted(directory.iterdir())}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_index_is_made_by_the_tool_and_not_by_kafkalog(
    version: str, ledger: Path, kafka_lab: DumpLog, run_kafkalog: Callable[..., Run]
) -> None:
    (ledger / "00000000000000000000.index").unlink()
    before = listing(ledger)
    time_index = ledger / "00000000000000000000.timeindex"
    ours = run_kafkalog("dump", "--format", "jsonl", time_index).check(0)
    run_kafkalog("verify", "--format", "jsonl", ledger).check(0, 1, 3)
    run_kafkalog("ls", "--format", "jsonl", ledger).check(0, 1, 3)
    assert listing(ledger) == before

    kafka_lab(version, "--files", time_index)
    assert sorted(set(listing(ledger)) - set(before)) == ["00000000000000000000.index"]
    assert [row["offset"] for row in ours.rows("time_index_entry")] == [349, 599, 949, 1199]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_preallocated_index_beside_an_empty_log_kills_the_tool_only(
    version: str, ledger: Path, kafka_lab: DumpLog, run_kafkalog: Callable[..., Run]
) -> None:
    (ledger / "00000000000000000000.log").write_bytes(b"")
    index = ledger / "00000000000000000000.index"
    index.write_bytes(bytes(65536))
    assert kafka_lab(version, "--files", index).returncode != 0
    assert run_kafkalog("dump", "--format", "jsonl", index).check(0).rows("offset_index_entry") == []
