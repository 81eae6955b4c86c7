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
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from format import layout
from format.files import leader_epoch_checkpoint, offset_checkpoint
from format.node.target import Target
from format.verbs.diff.diff import PartitionResult, diff
from tests.corpora import SHARED_CORPUS
from tests.format.verbs.diff.building_replicas import ModelBatch, ModelReplica, plain
from tests.oracle.broker import free_ports
from tests.oracle.kafka_lab import KafkaLab

NODES = (1, 2, 3)
LEADER = 3
_TRUNCATED = re.compile(r"partition=ledger-0.*Truncating to offset (\d+)")
_CONFIGURATION = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={log_dir}
log.index.size.max.bytes=131072
log.cleaner.enable=false
log.retention.ms=-1
unclean.leader.election.enable=false
"""
_LOG4J = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %m (%c)%n
"""
_SECONDS = 150


class Cluster:
    """The three nodes, running between ``start`` and ``stop``."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        self._lab, self._version, self._work = lab, version, work
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(2 * len(NODES))
        self._ports = dict(zip(NODES, ports[::2], strict=True))
        self._controllers = dict(zip(NODES, ports[1::2], strict=True))

    def log_dir(self, node: int) -> Path:
        return self._work / f"node-{node}"

    def log_text(self, node: int) -> str:
        return (self._work / f"node-{node}.log").read_text(errors="backslashreplace")

    def start(self) -> None:
        (self._work / "log4j.properties").write_text(_LOG4J)
        voters = ",".join(f"{node}@127.0.0.1:{port}" for node, port in self._controllers.items())
        for node in NODES:
            properties = self._work / f"node-{node}.properties"
            properties.write_text(
                _CONFIGURATION.format(
                    node=node,
                    voters=voters,
                    port=self._ports[node],
                    controller_port=self._controllers[node],
                    log_dir=self.log_dir(node),
                )
            )
            options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
            options.append(f"-Dlog4j.configuration=file:{self._work / 'log4j.properties'}")
            command = self._lab.java_command(self._version, options, extra=self._lab.logging_jars())
            with (self._work / f"node-{node}.log").open("wb") as output:
                self._processes[node] = subprocess.Popen(
                    [*command, "kafka.Kafka", str(properties)], stdout=output, stderr=output, stdin=subprocess.DEVNULL
                )

    def wait_until_replicated(self) -> None:
        """Until each follower's log has the size of the leader's, for two seconds."""
        end, since = time.monotonic() + _SECONDS, 0.0
        while True:
            sizes = {self._size(node) for node in NODES}
            logs = [self.log_text(node) for node in NODES if node != LEADER]
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

    def _size(self, node: int) -> int:
        return sum(each.stat().st_size for each in (self.log_dir(node) / "ledger-0").glob("*.log"))

    def stop(self) -> None:
        for process in self._processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()


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


def compared(cluster: Cluster) -> PartitionResult:
    targets = [Target(cluster.log_dir(node) / "ledger-0") for node in NODES]
    (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult)]
    return result


def trial(lab: KafkaLab, version: str, work: Path, replicas: list[ModelReplica] | None) -> int:
    """One start of the cluster; returns how many predictions were wrong."""
    cluster = Cluster(lab, version, work)
    for number, node in enumerate(NODES):
        shutil.copytree(SHARED_CORPUS / "kafka-4.3" / f"node-{node}", cluster.log_dir(node))
        for path in [cluster.log_dir(node), *cluster.log_dir(node).rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        if replicas is not None:
            put(replicas[number], cluster.log_dir(node))
    before = compared(cluster)
    cluster.start()
    try:
        cluster.wait_until_replicated()
    finally:
        cluster.stop()
    wrong = 0
    after = compared(cluster)
    for number, node in enumerate(NODES):
        if node == LEADER:
            continue
        end = before.replicas[number].epochs.log_end_offset
        predicted = before.truncate_to[LEADER - 1][number]
        cuts = [int(each) for each in _TRUNCATED.findall(cluster.log_text(node))]
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
