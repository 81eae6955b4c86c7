"""What a real cluster does with diverged replicas, held against what diff predicts.

    python -m tests.oracle.diff_trial [--seed N] [--trials N] [--first N] [--kafka VERSION]

starts the three nodes of the corpus kafka-4.3 on copies of their log directories. In the first trial the partition
ledger-0 is as the crash left it; in the others its replicas are random histories with up to four leader epochs. Only
node 3 is eligible as the leader. When the followers have caught up, each must have been truncated to the offset that
diff named, and all replicas must be identical. Prints a line for each follower, exits with 1 for a wrong prediction.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from format import layout
from format.files import leader_epoch_checkpoint, offset_checkpoint
from format.node.target import Target
from format.verbs.diff.diff import PartitionResult, diff
from tests.corpora import SHARED_CORPUS, present
from tests.field.cluster import FieldCluster, Layout
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, plain
from tests.oracle.kafka_lab import KafkaLab

NODES = (1, 2, 3)
LEADER = 3
_TRUNCATED = re.compile(r"partition=ledger-0.*Truncating to offset (\d+)")
_SETTINGS = {
    "log.index.size.max.bytes": "131072",
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "unclean.leader.election.enable": "false",
}
_SECONDS = 150


def wait_until_replicated(cluster: FieldCluster) -> None:
    """Wait until each follower's log has had the size of the leader's for two seconds."""
    end, since = time.monotonic() + _SECONDS, 0.0
    while True:
        sizes = {_ledger_size(cluster, node) for node in NODES}
        logs = [cluster.node(node).log_text for node in NODES if node != LEADER]
        fetching = all("ledger-0" in text and "ReplicaFetcher" in text for text in logs)
        if len(sizes) > 1 or not fetching:
            since = 0.0
        elif not since:
            since = time.monotonic()
        elif time.monotonic() - since > 2:
            return
        if time.monotonic() > end:
            lines = [line for text in logs for line in text.splitlines() if "ledger-0" in line]
            raise TimeoutError("\n".join([f"sizes {sizes}", *lines]))
        time.sleep(0.3)


def _ledger_size(cluster: FieldCluster, node: int) -> int:
    return sum(each.stat().st_size for each in (log_dir(cluster, node) / "ledger-0").glob("*.log"))


def log_dir(cluster: FieldCluster, node: int) -> Path:
    """The one log directory of a node."""
    [found] = cluster.node(node).log_dirs
    return found


def histories(source: random.Random) -> list[ModelReplica]:
    """Replicas that shared a beginning, and then took different turns: each epoch up to 3 was led by one of them."""
    common = plain(source.randint(2, 10), size=source.randint(1, 5))
    leaders = {epoch: source.choice(NODES) for epoch in (1, 2, 3)}
    replicas = []
    for node in NODES:
        batches: list[ModelBatch] = common[: source.randint(1, len(common))]
        for epoch in (each for each, leader in leaders.items() if leader == node):
            end, size = batches[-1].last_offset + 1, source.randint(1, 7)
            batches += plain(source.randint(1, 6), size=size, first=end, epoch=epoch, tag=f"n{node}")
        replicas.append(ModelReplica(batches, high_watermark=0))
    return replicas


def put(replica: ModelReplica, log_dir: Path) -> None:
    """Make a history the ledger of a node that was stopped."""
    directory = log_dir / "ledger-0"
    for path in directory.iterdir():
        if path.name != layout.PARTITION_METADATA:
            path.unlink()
    log = b"".join(each.encoded() for each in replica.batches)
    (directory / f"{0:020d}.log").write_bytes(log)
    (directory / layout.LEADER_EPOCH_CHECKPOINT).write_bytes(leader_epoch_checkpoint.write(replica.epochs))
    for name in (layout.REPLICATION_OFFSET_CHECKPOINT, layout.RECOVERY_POINT_CHECKPOINT):
        path = log_dir / name
        if not path.exists():
            continue
        found = offset_checkpoint.read(path).by_partition()
        entries = [f"{topic} {number} {0 if topic == 'ledger' else at}" for (topic, number), at in found.items()]
        path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))
    (log_dir / layout.CLEAN_SHUTDOWN).unlink(missing_ok=True)  # the broker then recovers the log, and makes its indexes


def compared(cluster: FieldCluster) -> PartitionResult:
    targets = [Target(log_dir(cluster, node) / "ledger-0") for node in NODES]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    return result


def trial(lab: KafkaLab, version: str, work: Path, replicas: list[ModelReplica] | None) -> int:
    """One start of the cluster; returns how many predictions were wrong."""
    cluster = FieldCluster(lab, version, work, Layout(nodes=len(NODES), settings=_SETTINGS))
    for number, node in enumerate(NODES):
        directory = log_dir(cluster, node)
        shutil.copytree(present(SHARED_CORPUS / "kafka-4.3" / f"node-{node}"), directory)
        for path in [directory, *directory.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        if replicas is not None:
            put(replicas[number], directory)
    before = compared(cluster)
    with cluster:
        wait_until_replicated(cluster)
        cluster.stop()
    wrong = 0
    after = compared(cluster)
    for number, node in enumerate(NODES):
        if node == LEADER:
            continue
        end = before.replicas[number].epochs.log_end_offset
        predicted = before.truncate_to[LEADER - 1][number]
        cuts = [int(each) for each in _TRUNCATED.findall(cluster.node(node).log_text)]
        found = min([end, *cuts])
        epochs = [(each.leader_epoch, each.start_offset) for each in before.replicas[number].epochs.entries]
        is_right = found == predicted
        wrong += not is_right
        print(f"node {node}: epochs {epochs}, end {end}: predicted {predicted}, truncated to {found}, cuts {cuts}")
    leader = before.replicas[LEADER - 1].epochs
    print(f"leader: epochs {[(each.leader_epoch, each.start_offset) for each in leader.entries]}; after: {after.kind}")
    return wrong + (after.kind != "identical")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="leave out the trials before this one")
    parser.add_argument("--kafka", default="4.3.1")
    options = parser.parse_args()
    source, lab, wrong = random.Random(options.seed), KafkaLab(), 0
    for number in range(options.trials):
        replicas = histories(source) if number else None
        if number < options.first:
            continue
        with tempfile.TemporaryDirectory(prefix="diff-trial-") as work:
            wrong += trial(lab, options.kafka, Path(work), replicas)
        sys.stdout.flush()
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
