"""What the next step of verify does for a damaged replica of a real cluster: the printed commands are run.

    python -m tests.oracle.heal_trial [--kafka VERSION]

1. A byte turns in the log of the leader: a consumer fails there. The commands move leadership to an intact replica and
   have the damaged one fetched anew.
2. A byte turns in the log of a follower, which no leader notices: the commands have it fetched anew.
3. A follower that crashed lost the end of its log: it fetches it by itself.
4. All nodes crashed, and the leader lost the end of its log: another node leads before it starts.

After each, verify finds no damage, all replicas are in sync, and a consumer gets every record. Prints a line for each
statement, exits with 1 for a wrong one.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from format.findings import Finding, Severity
from format.node.partition import read_partition
from format.node.target import Target
from format.state.cluster_context import Assignment, ContextTerms, read_context
from format.verbs.find.find import find_offset
from format.verbs.verify.verify import INSIDE_A_LOG, VerifyTerms, verify_all
from tests.field.cluster import FieldCluster, Layout
from tests.oracle.cluster_trial import ClusterTrial, waited
from tests.oracle.kafka_lab import KafkaLab

#: The main class of each tool that the next step may name.
_TOOLS = {
    "kafka-reassign-partitions.sh": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-leader-election.sh": "org.apache.kafka.tools.LeaderElectionCommand",
}
_RECORDS = 3000
_SECONDS = 40


class Trial(ClusterTrial):
    """The trial of one cluster."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        settings = {"auto.leader.rebalance.enable": "false", "unclean.leader.election.enable": "false"}
        super().__init__(FieldCluster(lab, version, work, Layout(nodes=3, settings=settings)))
        self.work = work

    @property
    def targets(self) -> list[Target]:
        return [Target(self.log_dir(node)) for node in (1, 2, 3)]

    @property
    def assignment(self) -> Assignment:
        """What the metadata says of orders-0."""
        partition = read_partition(self.log_dir(1) / "orders-0")
        return read_context(self.targets, ContextTerms()).assignment_of(partition)

    def damage(self) -> list[Finding]:
        """The damage inside logs that verify finds."""
        found = verify_all(self.targets, VerifyTerms())
        return [each for each in found if each.severity >= Severity.ERROR and each.code in INSIDE_A_LOG]

    def consumed(self, offset: int) -> int:
        """How many records a consumer gets from an offset on, in some seconds."""
        return self.consumed_of(self.cluster.bootstrap, "orders", offset, "record-")

    def wait_for(self, is_so: Callable[[], bool]) -> bool:
        return waited(is_so, _SECONDS)

    def run(self) -> None:
        cluster = self.cluster
        words = ("--create", "--topic", "orders", "--partitions", "1", "--replication-factor", "3")
        cluster.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", cluster.bootstrap, *words)
        self.produce()
        self.wait_for(lambda: len(self.assignment.complete_replicas) == 3)
        leader = self.assignment.leader
        assert leader is not None
        followers = [node for node in (1, 2, 3) if node != leader]
        self.turn_a_byte(leader, 1500)
        count = self.consumed(1500)
        self.holds(f"of the damaged leader, node {leader}, a consumer gets {count} records from 1500 on", count == 0)
        self.heal(leader)
        self.holds(f"the leader is node {self.assignment.leader}", self.assignment.leader != leader)
        follower = next(node for node in followers if node != self.assignment.leader)
        self.turn_a_byte(follower, 1500)
        self.heal(follower)

        time.sleep(10)  # the high watermark is written every five seconds
        leader = self.assignment.leader
        assert leader is not None
        follower = next(node for node in (1, 2, 3) if node != leader)
        cluster.kill(follower)
        step = self.cut_the_end(follower)
        self.holds(f"next step: {step}", f"node {leader} leads" in step and "fetches them by itself" in step)
        cluster.start(follower)
        self.look()

        time.sleep(10)
        cluster.kill()
        step = self.cut_the_end(leader)
        self.holds(f"next step: {step}", f"wait until it leads before node {leader} starts" in step)
        cluster.start(*(node for node in (1, 2, 3) if node != leader))
        if not self.wait_for(lambda: self.assignment.leader not in (None, leader)):
            print(f"  no node leads ({self.assignment.last_members})", flush=True)
            self.run_command(step[step.index("kafka-leader-election.sh") :])
        moved = self.wait_for(lambda: self.assignment.leader not in (None, leader))
        self.holds(f"node {self.assignment.leader} leads before node {leader} starts", moved)
        cluster.start(leader)
        self.look()

    def cut_the_end(self, node: int) -> str:
        """Cut a log off inside its last batch; the next step of verify for it."""
        path = self.log_dir(node) / "orders-0" / f"{0:020d}.log"
        with path.open("r+b") as log:
            log.truncate(path.stat().st_size - 50)
        found = [each for each in verify_all(self.targets, VerifyTerms()) if each.code == "tail-torn"]
        return found[0].next_step

    def produce(self) -> None:
        """Write the records in batches of some hundred."""
        name = (
            "org.apache.kafka.tools.ConsoleProducer" if self.cluster.numbers >= [4] else "kafka.tools.ConsoleProducer"
        )
        command = [*self.cluster.lab.java_command(self.cluster.version), name]
        command += ["--bootstrap-server", self.cluster.bootstrap, "--topic", "orders", "--batch-size", "2000"]
        records = "".join(f"record-{number}\n" for number in range(_RECORDS))
        subprocess.run(command, input=records.encode(), check=True, capture_output=True, timeout=300)

    def turn_a_byte(self, node: int, offset: int) -> None:
        """Turn a byte of the batch of an offset; the broker runs on."""
        partition = read_partition(self.log_dir(node) / "orders-0")
        match = find_offset(partition, offset).match
        assert match is not None
        assert match.location.position is not None
        with (partition.path / f"{0:020d}.log").open("r+b") as log:
            log.seek(match.location.position + 70)
            byte = log.read(1)[0]
            log.seek(match.location.position + 70)
            log.write(bytes([byte ^ 1]))

    def heal(self, node: int) -> None:
        """Run what the next step says, and look at what became of the replica."""
        found = self.damage()
        assert found, "verify finds no damage"
        step = found[0].next_step
        self.holds(f"next step: {step}", f"let node {node} fetch anew" in step)
        for command in re.findall(r"(?:echo|kafka-\S+\.sh) .*?(?=; |\. When)", step):
            self.run_command(command)
        moved = self.wait_for(lambda: self.assignment.leader != node)
        self.holds(f"node {self.assignment.leader} leads before the broker of node {node} is stopped", moved)
        self.cluster.stop(node)
        [remove] = re.findall(r"run: (mv .*?), and start", step)
        self.run_command(remove)
        self.cluster.start(node)
        self.look()

    def look(self) -> None:
        """Whether all is well again."""
        in_sync = self.wait_for(lambda: len(self.assignment.state.isr if self.assignment.state else ()) == 3)
        self.holds(f"all replicas are in sync: {self.assignment.last_members}", in_sync)
        found = self.damage()
        self.holds(f"verify finds {len(found)} damaged places", not found)
        count = self.consumed(0)
        self.holds(f"a consumer gets {count} records", count == _RECORDS)

    def run_command(self, command: str) -> None:
        """Run a printed command: Kafka's tools from the jars, others by a shell."""
        print(f"  $ {command}", flush=True)
        name, *words = shlex.split(command)
        if name in _TOOLS:
            words = [str(self.work / each) if each == "reassignment.json" else each for each in words]
            print("   ", self.cluster.tool(_TOOLS[name], *words).strip().splitlines()[-1])
        else:
            subprocess.run(command, shell=True, check=True, cwd=self.work)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heal-trial-") as work:
        trial = Trial(KafkaLab(), options.kafka, Path(work))
        with trial.cluster:
            trial.run()
    print(f"{trial.wrong} wrong")
    return int(trial.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
