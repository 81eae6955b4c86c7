"""What the files below tests/golden/dump-log hold: command lines, and what Kafka's own tool prints for each.

``python -m tests.oracle.dump_log_goldens`` captures them anew; ``test_dump_log_equality`` checks that nothing changed.
The tool runs in the repository's folder, so that no path of any machine is printed.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.corpora import REPOSITORY
from tests.oracle.kafka_lab import KafkaLab

GOLDEN_DIR = REPOSITORY / "tests" / "golden" / "dump-log"
_SINGLE = "tests/_data/kafka-4.3-single/node-1"
_KILLED = "tests/_data/kafka-4.3/node-1"
_LEGACY = "tests/_data/kafka-0.8-to-2.8/data/legacy-0"
_FIRST = "00000000000000000000"
_INDEXES = f"{_SINGLE}/orders-0/{_FIRST}.index,{_SINGLE}/orders-0/{_FIRST}.timeindex"
_OTHER_IN_3_9_1 = ("contents-only", "magic-0-and-1", "offsets", "transactions", "metadata")


@dataclass(frozen=True)
class Golden:
    """One command line; the release is also the one that kafkalog emulates. ``by_default``: it needs no emulation."""

    name: str
    release: str
    arguments: tuple[str, ...]
    by_default: bool = True

    @property
    def path(self) -> Path:
        return GOLDEN_DIR / f"{self.release}-{self.name}.txt"


def _four(topic: str) -> str:
    return ",".join(f"{_SINGLE}/{topic}-{number}/{_FIRST}.log" for number in range(4))


def _goldens() -> list[Golden]:
    shared = {
        "batches": ("--files", f"{_SINGLE}/orders-0/{_FIRST}.log,{_SINGLE}/payments-0/{_FIRST}.log"),
        "records": ("--deep-iteration", "--files", f"{_SINGLE}/payments-0/{_FIRST}.log"),
        "edge-cases": ("--print-data-log", "--max-bytes", "12000", "--files", f"{_SINGLE}/edge.cases_1-0/{_FIRST}.log"),
        "headers": ("--print-data-log", "--max-bytes", "17000", "--files", f"{_SINGLE}/orders-1/{_FIRST}.log"),
        "contents-only": (
            "--print-data-log", "--skip-record-metadata", "--max-bytes", "6000",
            "--files", f"{_SINGLE}/payments-0/{_FIRST}.log,{_SINGLE}/clicks-zstd-0/{_FIRST}.log",
        ),
        "magic-0-and-1": ("--print-data-log", "--max-bytes", "9000", "--files", f"{_LEGACY}/{_FIRST}.log"),
        "magic-1-and-2": ("--files", f"{_LEGACY}/00000000000000002200.log"),
        "numbers": (
            "--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder",
            "--value-decoder-class=org.apache.kafka.tools.api.IntegerDecoder", "--max-bytes", "17000",
            "--files", f"{_SINGLE}/orders-1/{_FIRST}.log",
        ),
        "side-files": (
            "--files",
            ",".join(
                [
                    f"{_SINGLE}/orders-0/{_FIRST}.index", f"{_SINGLE}/orders-0/{_FIRST}.timeindex",
                    f"{_KILLED}/payments-0/{_FIRST}.txnindex", f"{_LEGACY}/00000000000000002400.snapshot",
                    "tests/_data/kafka-4.3/node-2/ledger-0/00000000000000001750.snapshot",
                    f"{_KILLED}/ledger-0/{_FIRST}.index", f"{_KILLED}/ledger-0/{_FIRST}.timeindex",
                    f"{_SINGLE}/meta.properties",
                ]
            ),
        ),
        "sanity": ("--index-sanity-check", "--files", _INDEXES),
        "offsets": ("--offsets-decoder", "--files", _four("__consumer_offsets")),
        "transactions": ("--transaction-log-decoder", "--files", _four("__transaction_state")),
        "metadata": (
            "--cluster-metadata-decoder", "--max-bytes", "4000",
            "--files", f"{_SINGLE}/bootstrap.checkpoint,{_SINGLE}/__cluster_metadata-0/{_FIRST}.log",
        ),
    }  # fmt: skip
    found = []
    for name, arguments in shared.items():
        found.append(Golden(name, "4.3.1", arguments))
        if name in _OTHER_IN_3_9_1:
            found.append(Golden(name, "3.9.1", arguments, by_default=False))
    return found


GOLDENS = _goldens()


def captured(golden: Golden) -> bytes:
    """What Kafka's own tool prints on standard output; it runs on a copy, as it may write to what it reads."""
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(REPOSITORY / "tests" / "_data", Path(scratch) / "tests" / "_data")
        done = KafkaLab().dump_log(golden.release, *golden.arguments, cwd=Path(scratch))
    if done.returncode:
        raise RuntimeError(f"{golden.name}: {done.stderr.decode()[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    for each in GOLDENS:
        each.path.write_bytes(captured(each))
        print(each.path.name, each.path.stat().st_size)
