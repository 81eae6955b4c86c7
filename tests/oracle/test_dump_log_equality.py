"""kafkalog dump-log against kafka-dump-log of two releases, byte for byte: standard output, error and exit status.

Every file of every corpus, with every set of flags that fits it; damaged copies, up to where the tool ends with an
exception, whose text is not compared; and a corpus made afresh. The tool runs on copies, as it creates and trims index
files beside what it reads.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from crc32c import crc32c

from tests.conftest import unavailable
from tests.corpora import SHARED, corpora
from tests.oracle.dump_log_goldens import GOLDENS, Golden, captured
from tests.ports import LAB_PORTS, is_open, lab_ports
from tests.running import Run

pytestmark = pytest.mark.oracle

VERSIONS = ("4.3.1", "3.9.1")
SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
LOGS, INDEXES = (".log", ".checkpoint"), (".index", ".timeindex")
#: What a logger says when it is not set up.
NOISE = ("SLF4J", "log4j:")

DumpLog = Callable[..., "subprocess.CompletedProcess[bytes]"]
RunMany = Callable[[Iterable[Iterable[str | Path]]], list[Run]]


@dataclass(frozen=True)
class FlagSet:
    """Some flags, and the files that they fit: by suffix, and by a topic's name."""

    flags: tuple[str, ...]
    suffixes: tuple[str, ...] = SUFFIXES
    topic: str = ""

    def files(self, found: Iterable[Path]) -> list[Path]:
        return [each for each in found if each.name.endswith(self.suffixes) and self._fits(each)]

    def _fits(self, file: Path) -> bool:
        if self.topic == "orders":
            return file.parent.name.startswith("orders-")
        if self.topic == "__cluster_metadata" and file.suffix == ".checkpoint":
            return True
        return file.parent.name.startswith(self.topic)


DECODERS = ("--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder",
            "--value-decoder-class=org.apache.kafka.tools.api.IntegerDecoder")  # fmt: skip
FLAG_SETS = (
    FlagSet(()),
    FlagSet(("--deep-iteration",)),
    FlagSet(("--print-data-log",)),
    FlagSet(("--print-data-log", "--skip-record-metadata"), LOGS),
    FlagSet(("--print-data-log", "--max-bytes", "5000"), LOGS),
    FlagSet(("--max-bytes", "100"), LOGS),
    FlagSet(("--verify-index-only",), INDEXES),
    FlagSet(("--index-sanity-check",), INDEXES),
    FlagSet(DECODERS, (".log",), "orders"),
    FlagSet(("--cluster-metadata-decoder",), (".log",), "orders"),
    FlagSet(("--offsets-decoder",), (".log",), "orders"),
    FlagSet(("--offsets-decoder",), (".log",), "__consumer_offsets"),
    FlagSet(("--offsets-decoder", "--skip-record-metadata"), (".log",), "__consumer_offsets"),
    FlagSet(("--transaction-log-decoder",), (".log",), "__transaction_state"),
    FlagSet(("--cluster-metadata-decoder",), LOGS, "__cluster_metadata"),
    FlagSet(("--cluster-metadata-decoder", "--skip-record-metadata"), LOGS, "__cluster_metadata"),
)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of all corpora, copied: those that both releases survive."""
    scratch = tmp_path_factory.mktemp("corpora")
    found: list[Path] = []
    for corpus in corpora():
        root = Path(shutil.copytree(corpus.root, scratch / corpus.id))
        found += [each for each in sorted(root.rglob("*")) if each.is_file() and each.name.endswith(SUFFIXES)]
    return [each for each in found if not is_preallocated_beside_nothing(each)]


def is_preallocated_beside_nothing(file: Path) -> bool:
    """An index of zeros beside an empty log: the tool dies of it."""
    return file.suffix == ".index" and file.stat().st_size > 0 and file.with_suffix(".log").stat().st_size == 0


def fails_sanity_check(file: Path) -> bool:
    """A time index that still has its preallocated size: the tool dies of it in a sanity check."""
    content = file.read_bytes()
    return file.suffix == ".timeindex" and content[:8] > content[-12:-4]


def stderr_lines(stderr: bytes | str) -> list[str]:
    text = stderr.decode() if isinstance(stderr, bytes) else stderr
    return [line for line in text.splitlines() if not line.startswith(NOISE)]


def assert_same(ours: bytes, kafkas: bytes, what: str) -> None:
    """Equality with a message that does not take minutes to make."""
    if ours == kafkas:
        return
    for number, (our_line, kafka_line) in enumerate(zip(ours.split(b"\n"), kafkas.split(b"\n"), strict=False)):
        assert our_line == kafka_line, f"{what}: line {number + 1}"
    raise AssertionError(f"{what}: {len(ours)} bytes, and Kafka printed {len(kafkas)}")


def compare(files: list[Path], flags: tuple[str, ...], version: str, dump_log: DumpLog, run_many: RunMany) -> None:
    """One run of the tool, and of ours with that release emulated; by default, too, where that is the newest."""
    words = (*flags, "--files", ",".join(map(str, files)))
    kafkas = dump_log(version, *words)
    assert kafkas.returncode == 0, kafkas.stderr.decode()[-2000:]
    ways = [("--emulate", version)] + ([()] if version == "4.3.1" else [])
    for way, run in zip(ways, run_many([("dump-log", *way, *words) for way in ways]), strict=True):
        assert_same(run.stdout.encode(), kafkas.stdout, f"{version} {' '.join(flags)} {' '.join(way)}")
        assert run.code == 0
        if way:
            assert stderr_lines(run.stderr) == stderr_lines(kafkas.stderr)


@pytest.mark.parametrize("flag_set", FLAG_SETS, ids=lambda flag_set: " ".join(flag_set.flags)[:60] or "no flags")
def test_every_file(
    flag_set: FlagSet, version: str, copies: list[Path], kafka_lab: DumpLog, run_kafkalog_many: RunMany
) -> None:
    files = flag_set.files(copies)
    if "--index-sanity-check" in flag_set.flags:
        files = [each for each in files if not fails_sanity_check(each)]
    assert files
    compare(files, flag_set.flags, version, kafka_lab, run_kafkalog_many)


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: f"{golden.release}-{golden.name}")
def test_captured_output_is_what_kafka_prints(golden: Golden, kafka_lab: DumpLog) -> None:
    kafka_lab(golden.release, "--version")  # skips where there is no Kafka
    assert_same(golden.path.read_bytes(), captured(golden), golden.name)


def test_decoders_by_their_old_names(copies: list[Path], kafka_lab: DumpLog, run_kafkalog_many: RunMany) -> None:
    files = FlagSet((), (".log",), "orders").files(copies)[:3]
    flags = (
        "--value-decoder-class",
        "kafka.serializer.StringDecoder",
        "--key-decoder-class",
        "kafka.serializer.LongDecoder",
    )
    compare(files, flags, "3.9.1", kafka_lab, run_kafkalog_many)


# -- damage --------------------------------------------------------------------------------------------------

#: Flags that damaged files are dumped with, one run of the tool after another until each file had its turn.
DAMAGE_FLAGS = (("--print-data-log",), ())
DAMAGED_COPIES = 40


def headers(content: bytearray) -> list[tuple[int, int, int]]:
    """Position, size and magic of each batch."""
    found, at = [], 0
    while at + 61 <= len(content):
        size_bytes = 12 + int.from_bytes(content[at + 8 : at + 12], "big")
        if not 26 <= size_bytes <= len(content) - at:
            break
        found.append((at, size_bytes, content[at + 16]))
        at += size_bytes
    return found


def damage(content: bytearray, chance: random.Random, is_log: bool) -> None:
    """Some bytes changed, cut off, zeroed or put in; or changed under a CRC that is made right again."""
    kind = chance.choice(
        ["flip", "cut", "zero", "insert", "header", "reseal", "reseal"] if is_log else ["flip", "zero"]
    )
    at = chance.randrange(len(content))
    if kind == "cut":
        del content[at:]
    elif kind == "zero":
        content[at : at + 40] = bytes(len(content[at : at + 40]))
    elif kind == "insert":
        content[at:at] = chance.randbytes(chance.choice([1, 30]))
    elif kind == "flip" or not headers(content):
        content[at] ^= 1 << chance.randrange(8)
    else:
        start, size_bytes, magic = chance.choice(headers(content))
        first = 0 if kind == "header" else 21 if magic == 2 else 16
        content[start + chance.randrange(first, min(size_bytes, 100))] = chance.choice(
            [0, 1, 2, 5, 8, 0x20, 0x7F, 0xFF]
        )
        if kind == "reseal" and magic == 2:
            crc = crc32c(bytes(content[start + 21 : start + size_bytes]))
            content[start + 17 : start + 21] = crc.to_bytes(4, "big")
        elif kind == "reseal":
            crc = zlib.crc32(bytes(content[start + 16 : start + size_bytes]))
            content[start + 12 : start + 16] = crc.to_bytes(4, "big")


def damaged_copies(directory: Path, seed: int) -> list[Path]:
    """Damaged copies of shipped files, each in a folder of its own with the other files of its segment."""
    chance = random.Random(seed)
    shipped = [
        each
        for corpus in corpora()
        if not corpus.is_shared
        for each in corpus.files(".log", ".checkpoint", ".timeindex")
    ]
    candidates = [each for each in shipped if 100 < each.stat().st_size < 400_000]
    files = []
    for number in range(DAMAGED_COPIES):
        source = chance.choice(candidates)
        folder = directory / str(number)
        folder.mkdir()
        for each in source.parent.glob(source.stem + ".*"):
            if each.suffix in SUFFIXES:
                shutil.copy(each, folder)
        file = folder / source.name
        content = bytearray(file.read_bytes())
        damage(content, chance, source.suffix in LOGS)
        file.write_bytes(content)
        files.append(file)
    return files


@pytest.mark.parametrize("flags", DAMAGE_FLAGS, ids=lambda flags: " ".join(flags) or "no flags")
def test_damaged_copies(
    flags: tuple[str, ...], version: str, tmp_path: Path, kafka_lab: DumpLog, run_kafkalog_many: RunMany
) -> None:
    """Up to the very byte where the tool dies, and again from the file after that."""
    left = damaged_copies(tmp_path, seed=DAMAGE_FLAGS.index(flags))
    survived = 0
    while left:
        words = (*flags, "--files", ",".join(map(str, left)))
        kafkas = kafka_lab(version, *words)
        [ours] = run_kafkalog_many([("dump-log", "--emulate", version, *words)])
        begun = len(re.findall(rb"^Dumping ", kafkas.stdout, re.MULTILINE))
        assert_same(ours.stdout.encode(), kafkas.stdout, f"{version}: {left[begun - 1]}")
        assert ours.code == kafkas.returncode, f"{left[begun - 1]}: {ours.stderr} {kafkas.stderr.decode()[-1000:]}"
        if ours.code == 0:
            assert stderr_lines(ours.stderr) == stderr_lines(kafkas.stderr)
        survived += begun - (ours.code != 0)
        left = left[begun:]
    assert survived > DAMAGED_COPIES // 2


# -- where the tool dies of sound files ----------------------------------------------------------------------


def test_files_that_kill_the_tool(version: str, tmp_path: Path, kafka_lab: DumpLog, run_kafkalog_many: RunMany) -> None:
    root = next(corpus.root for corpus in corpora() if corpus.id == "kafka-4.3")
    ledger = Path(shutil.copytree(root / "node-1" / "ledger-0", tmp_path / "ledger-0"))
    log, index = ledger / "00000000000000000000.log", ledger / "00000000000000000000.index"
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(index.with_suffix(".timeindex"), alone)
    shutil.copy(log, alone)
    renamed = Path(shutil.copy(log, tmp_path / "orders.log"))
    empty = Path(shutil.copytree(ledger, tmp_path / "empty")) / index.name
    empty.with_suffix(".log").write_bytes(b"")
    empty.write_bytes(bytes(1024))
    for words in (
        ("--index-sanity-check", "--files", f"{index},{index.with_suffix('.timeindex')}"),
        ("--files", f"{log},{empty}"),
        ("--files", f"{alone / index.with_suffix('.timeindex').name}"),
        ("--max-message-size", "50", "--files", f"{index}"),
        ("--files", f"{renamed}"),
    ):
        [ours] = run_kafkalog_many([("dump-log", "--emulate", version, *words)])
        kafkas = kafka_lab(version, *words)
        assert_same(ours.stdout.encode(), kafkas.stdout, f"{version} {words}")
        assert (ours.code, kafkas.returncode) == (1, 1), words


# -- a corpus made afresh --------------------------------------------------------------------------------------

CLIENTS = ("confluent-kafka", "aiokafka", "kafka-python")  # the codecs that they need are in this environment
SEED, SCALE = 20_431, 0.02


@pytest.fixture(scope="module")
def fresh_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a real broker that real clients have just filled, under another seed."""
    lab = SHARED / "kafka-lab"
    if not (lab / "generate_corpus.py").exists():
        unavailable("shared/kafka-lab is absent, which starts brokers and fills them")
    root = tmp_path_factory.mktemp("fresh")
    clients, cluster = root / "clients", root / "cluster"
    try:
        with _installation_of_clients(clients) as installation, lab_ports():
            subprocess.run(["bash", lab / "cluster.sh", "start", "4.3.1", cluster, "1"], check=True, timeout=300)
            try:
                _wait_for(LAB_PORTS[1])
                _finish(installation)
                address = f"127.0.0.1:{LAB_PORTS[1]}"
                words = ["--bootstrap", address, "--out", root / "truth", "--seed", str(SEED), "--scale", str(SCALE)]
                command = [sys.executable, lab / "generate_corpus.py", *words]
                environment = {**os.environ, "PYTHONPATH": str(clients)}
                subprocess.run(command, env=environment, check=True, timeout=400, capture_output=True)
            finally:
                subprocess.run(["bash", lab / "cluster.sh", "stop", cluster], check=True, timeout=300)
    except TimeoutError as error:
        unavailable(str(error))
    return cluster / "node-1"


@contextmanager
def _installation_of_clients(place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Kafka's clients in a folder of their own, installed while the broker starts."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", str(place), *CLIENTS]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _finish(installation: subprocess.Popen[bytes]) -> None:
    try:
        _, errors = installation.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        unavailable("Kafka's clients cannot be downloaded from the package index in time")
    if installation.returncode:
        unavailable(f"Kafka's clients cannot be downloaded: {errors.decode(errors='replace')[-300:]}")


def _wait_for(port: int) -> None:
    for _ in range(360):
        if is_open(port):
            time.sleep(3)  # it listens before it is ready
            return
        time.sleep(0.5)
    raise AssertionError("the broker never listened")


@pytest.mark.slow
def test_a_fresh_corpus(fresh_corpus: Path, kafka_lab: DumpLog, run_kafkalog_many: RunMany) -> None:
    found = [each for each in sorted(fresh_corpus.rglob("*")) if each.name.endswith(SUFFIXES)]
    assert len(found) > 80
    for flag_set in FLAG_SETS:
        if flag_set.flags and flag_set.flags[0] in ("--deep-iteration", "--max-bytes", "--index-sanity-check"):
            continue
        for version in VERSIONS:
            compare(flag_set.files(found), flag_set.flags, version, kafka_lab, run_kafkalog_many)
