"""What recompress, salvage and rebuild-index write, read by Kafka itself: kafka-dump-log and a real broker."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from format.files import producer_snapshot
from tests.corpora import SHARED_CORPUS, Corpus
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

VERSION = "4.3.1"
_FIELD, _LINE, _NULL = "\x1f~", "\x1e~", "\x1a~"
_TOPICS = "orders|payments|users|clients|clicks-.*|edge.cases_1|trimmed|sensor"
#: Who speaks in a broker's log about the logs that it loads.
_LOG_SPEAKERS = re.compile(r"\((kafka\.log|org\.apache\.kafka\.storage\.internals|kafka\.server\.LogDir)[\w.$]*\)$")
DAMAGED_AT = 20_000

Seen = dict[str, list[str]]


@pytest.fixture(scope="module")
def original() -> Path:
    """The single node's log directory: the shared one where it is present, else the one that ships."""
    for corpus in (SHARED_CORPUS, Path(__file__).parents[1] / "_data"):
        path = corpus / "kafka-4.3-single" / "node-1"
        if path.is_dir():
            return path
    raise AssertionError("the shipped corpus is gone")


@pytest.fixture(scope="module")
def lab() -> KafkaLab:
    lab = KafkaLab()
    missing = lab.missing(VERSION)
    if missing is not None:
        from tests.conftest import unavailable

        unavailable(missing)
    return lab


def writable_copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    for each in [target, *target.rglob("*")]:
        each.chmod(0o755 if each.is_dir() else 0o644)
    return target


def consumed(lab: KafkaLab, log_dir: Path, work: Path, count: int | None = None) -> tuple[Seen, list[str], str]:
    """What a consumer gets, what look-ups by time answer, and what the broker said while it ran on the directory.

    The consumer ends after ``count`` records, or when none came for a while, which is longer where one must come.
    """
    until = ["--timeout-ms", "10000"] if count is None else ["--timeout-ms", "60000", "--max-messages", str(count)]
    with Broker(lab, VERSION, log_dir, work) as broker:
        properties = {
            "print.key": "true", "print.offset": "true", "print.partition": "true", "print.timestamp": "true",
            "print.headers": "true", "print.epoch": "true", "key.separator": _FIELD, "line.separator": _LINE,
            "headers.separator": _FIELD, "null.literal": _NULL,
        }  # fmt: skip
        words = [word for name, value in properties.items() for word in ("--formatter-property", f"{name}={value}")]
        output = broker.run(
            "org.apache.kafka.tools.consumer.ConsoleConsumer", "--include", _TOPICS, "--from-beginning",
            *until, *words,
        )  # fmt: skip
        lookups = [
            broker.run("org.apache.kafka.tools.GetOffsetShell", "--topic-partitions", _TOPICS.replace("|", ","),
                       "--time", time)
            for time in ("-1", "-2", "-3", "1795249270000")
        ]  # fmt: skip
    seen: Seen = {}
    for line in output.split(_LINE):
        if line:
            partition = re.search(r"Partition:(\d+)", line)
            assert partition is not None, line
            seen.setdefault(partition[1], []).append(line)
    return {name: sorted(lines) for name, lines in seen.items()}, lookups, broker.log_text


def complaints(log_text: str) -> list[str]:
    return [
        line
        for line in log_text.splitlines()
        if line.startswith(("WARN", "ERROR", "FATAL")) and _LOG_SPEAKERS.search(line) and "is deprecated" not in line
    ]


def repairs(log_text: str) -> list[str]:
    """What the broker rebuilt or recovered, the metadata log aside: that it recovers at every start."""
    words = ("Recovering unflushed segment", "rebuilding index files", "Found a corrupted")
    return [
        line
        for line in log_text.splitlines()
        if any(each in line for each in words) and "__cluster_metadata-0" not in line
    ]


@pytest.fixture(scope="module")
def of_original(lab: KafkaLab, original: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, list[str]]:
    directory = writable_copy(original, tmp_path_factory.mktemp("original") / "node-1")
    seen, lookups, _ = consumed(lab, directory, directory.parent / "work")
    assert sum(map(len, seen.values())) > 1000
    return seen, lookups


@pytest.mark.parametrize(
    "words",
    [
        ("recompress", "--codec", "zstd"),
        ("recompress", "--codec", "none", "--segment-bytes", "20000", "--batch-bytes", "8KiB"),
        ("rebuild-index", "--with-log"),
    ],
    ids=lambda words: "-".join(words[::2]),
)
def test_a_broker_serves_the_same_from_the_output(
    lab: KafkaLab,
    original: Path,
    of_original: tuple[Seen, list[str]],
    tmp_path: Path,
    run_kafkalog: Callable[..., Any],
    words: tuple[str, ...],
) -> None:
    target = tmp_path / "node-1"
    run_kafkalog(words[0], original, "--output", target, *words[1:]).check(0)
    seen, lookups, log_text = consumed(lab, target, tmp_path / "work", sum(map(len, of_original[0].values())))
    assert seen == of_original[0]
    assert lookups == of_original[1]
    assert complaints(log_text) == []
    assert repairs(log_text) == []


def test_a_broker_serves_what_salvage_kept(
    lab: KafkaLab,
    original: Path,
    of_original: tuple[Seen, list[str]],
    tmp_path: Path,
    run_kafkalog: Callable[..., Any],
) -> None:
    damaged = writable_copy(original, tmp_path / "damaged")
    log = damaged / "orders-0" / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[DAMAGED_AT : DAMAGED_AT + 64] = bytes(64)
    log.write_bytes(content)
    run = run_kafkalog("salvage", damaged, "--output", tmp_path / "node-1", "--format", "jsonl").check(1)
    [loss] = run.rows("finding")
    first, last = loss["lost_offsets"]
    seen, _, log_text = consumed(lab, tmp_path / "node-1", tmp_path / "work")
    missing = [line for name, lines in of_original[0].items() for line in lines if line not in set(seen.get(name, ()))]
    offsets = [int(offset) for line in missing for offset in re.findall(r"Offset:(\d+)", line)]
    assert sorted(offsets) == list(range(first, last + 1))
    assert sum(map(len, seen.values())) + len(missing) == sum(map(len, of_original[0].values()))
    assert complaints(log_text) == []


def test_a_broker_that_stopped_cleanly_knows_the_producers_of_what_salvage_kept(
    lab: KafkaLab, original: Path, tmp_path: Path, run_kafkalog: Callable[..., Any]
) -> None:
    """With no snapshot at all it would not look into the log, and take its open transaction for ended."""
    name = "payments-0"
    (newest,) = (
        each for each in (original / name).glob("*.snapshot") if int(each.stem) == max(
            int(other.stem) for other in (original / name).glob("*.snapshot"))
    )  # fmt: skip
    open_since = producer_snapshot.read(newest).current_txn_first_offsets
    (first_offset,) = open_since[open_since >= 0].tolist()
    run_kafkalog("salvage", original / name, "--output", tmp_path / "saved").check(0)
    log_dir = writable_copy(original, tmp_path / "node-1")
    assert (log_dir / ".kafka_cleanshutdown").exists()
    shutil.rmtree(log_dir / name)
    shutil.copytree(tmp_path / "saved" / name, log_dir / name)
    with Broker(lab, VERSION, log_dir, tmp_path / "work") as broker:
        words = ("describe-producers", "--topic", "payments", "--partition", "0")
        lines = broker.run("org.apache.kafka.tools.TransactionsCommand", *words).splitlines()
    column = lines[0].split().index("CurrentTransactionStartOffset")
    assert str(first_offset) in [line.split()[column] for line in lines[1:]], lines
    assert complaints(broker.log_text) == []


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_dump_log_finds_every_crc_and_index_right(
    kafka_lab: Callable[..., Any], corpus: Corpus, tmp_path: Path, run_kafkalog: Callable[..., Any], codec: str
) -> None:
    if not corpus.is_shared or not re.search("single|0.8", corpus.id):
        pytest.skip("one corpus of each kind is enough")
    more = ["--magic", "2"] if codec == "zstd" else []
    run_kafkalog("recompress", corpus.log_dirs[0], "--output", tmp_path / "out", "--codec", codec, *more).check(0)
    logs = sorted(str(each) for each in (tmp_path / "out").rglob("*.log") if "__cluster" not in str(each))
    text = kafka_lab(VERSION, "--deep-iteration", "--files", ",".join(logs)).stdout.decode("latin-1")
    assert text.count("isvalid: true") >= len(logs)
    assert "isvalid: false" not in text
    assert f"compresscodec: {codec}" in text
    indexes = sorted(str(each) for each in (tmp_path / "out").rglob("*index") if "__cluster" not in str(each))
    text = kafka_lab(VERSION, "--index-sanity-check", "--files", ",".join(indexes)).stdout.decode("latin-1")
    clean = text.count("passed sanity check") + text.count("is empty.")
    assert clean == sum(not each.endswith(".txnindex") for each in indexes), text[-2000:]
    plain = kafka_lab(VERSION, "--verify-index-only", "--files", ",".join(indexes)).stdout.decode("latin-1")
    assert "mismatch" not in plain.lower(), plain[-2000:]
