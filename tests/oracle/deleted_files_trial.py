"""What a broker makes of deleted indexes and snapshots: the ground for the next steps of findings about these files.

    python -m tests.oracle.deleted_files_trial

A copy of a node that stopped cleanly loses some side files, and a broker starts on it. The files that it then has show
which deletions it repairs. It takes three starts; it needs Java and the Kafka release.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from format.files import producer_snapshot
from tests.corpora import DATA_DIR
from tests.oracle.broker import Broker
from tests.oracle.kafka_lab import KafkaLab

_SOURCE = DATA_DIR / "kafka-4.3-single" / "node-1"
#: A log with an aborted transaction, and so with a .txnindex; the node above has none.
_ABORTED = DATA_DIR / "kafka-4.3" / "node-1" / "payments-0"
_FIRST = "00000000000000000000"
#: Longer than the data are old: else a broker leaves all producers out.
_SETTINGS = {"producer.id.expiration.ms": "2000000000"}


def index_sizes(partition: Path) -> dict[str, int]:
    """The sizes of the first segment's indexes."""
    return {each.suffix: each.stat().st_size for each in partition.glob(f"{_FIRST}.*index")}


def producer_count(partition: Path) -> int:
    """The number of producers in the newest snapshot."""
    return producer_snapshot.read(max(partition.glob("*.snapshot"))).entry_count


def started(lab: KafkaLab, version: str, change: Callable[[Path], None]) -> Path:
    """A copy of the node after ``change``, a start and a clean stop."""
    work = Path(tempfile.mkdtemp(prefix="deleted-files-"))
    node = work / "node-1"
    shutil.copytree(_SOURCE, node)
    change(node)
    with Broker(lab, version, node, work / "run", _SETTINGS):
        pass
    return node


def without_indexes(node: Path) -> None:
    """Delete a .timeindex, an .index, a .txnindex, and a .txnindex with its .index."""
    (node / "orders-0" / f"{_FIRST}.timeindex").unlink()
    (node / "orders-1" / f"{_FIRST}.index").unlink()
    for name in ("payments-0", "payments-1"):
        topic_id = (node / name / "partition.metadata").read_bytes()
        shutil.rmtree(node / name)
        shutil.copytree(_ABORTED, node / name)
        (node / name / "partition.metadata").write_bytes(topic_id)
        (node / name / f"{_FIRST}.txnindex").unlink()
    (node / "payments-1" / f"{_FIRST}.index").unlink()
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        lines = [line for line in (node / name).read_text().splitlines() if not line.startswith("payments ")]
        (node / name).write_text("\n".join([lines[0], str(len(lines) - 2), *lines[2:], ""]))


def without_snapshot(node: Path) -> None:
    """Delete the only snapshot of a log."""
    for path in (node / "orders-1").glob("*.snapshot"):
        path.unlink()


def without_snapshot_and_mark(node: Path) -> None:
    """Delete the clean-shutdown mark as well."""
    without_snapshot(node)
    (node / ".kafka_cleanshutdown").unlink()


def main() -> None:
    """Print what became of the files, and check it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka-version", default="4.3.1")
    version = parser.parse_args().kafka_version
    lab = KafkaLab()
    sound = {name: index_sizes(_SOURCE / name) for name in ("orders-0", "orders-1")}
    nodes = [started(lab, version, change) for change in (without_indexes, without_snapshot, without_snapshot_and_mark)]
    try:
        found = {name: index_sizes(nodes[0] / name) for name in ("orders-0", "orders-1", "payments-0", "payments-1")}
        for name, sizes in found.items():
            print(name, sizes)
        counts = [producer_count(_SOURCE / "orders-1"), *(producer_count(node / "orders-1") for node in nodes[1:])]
        print("producers before, without the snapshot, without snapshot and mark:", counts)
        assert found["orders-0"][".timeindex"] == 0  # empty, and so it stays
        assert found["orders-1"] == sound["orders-1"]  # the .timeindex too is written again
        assert ".txnindex" not in found["payments-0"]
        assert found["payments-1"][".txnindex"] > 0
        assert counts[1] == 0
        assert counts[2] == counts[0]
    finally:
        for node in nodes:
            shutil.rmtree(node.parent)


if __name__ == "__main__":
    main()
