"""What a real cluster does with a lost and a damaged leader, held against the sentences of find and diff.

    python -m tests.oracle.leader_trial [--kafka VERSION]

starts nodes of the corpus kafka-4.3 on copies of their log directories. Node 1 crashed as the leader of ledger-0 with
records that no other node has; the ELR is node 3 alone.

1. Without node 3, controllers elect node 2, whose metadata log reaches further than that of node 1, and ledger-0 has no
   leader: a consumer gets nothing, and nobody elects node 2 without an unclean election.
2. With node 3 it leads, a consumer gets what diff says node 3 has, and node 1 is truncated to the offset of diff.
3. A byte turns in the log of the leader: a consumer fails there, though the replica of node 2 is intact.

Prints a line for each statement, exits with 1 for a wrong one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from format.node.partition import read_partition
from format.node.target import Target
from format.state.cluster_context import ContextTerms, read_context
from format.verbs.diff.diff import PartitionResult, diff, sentence
from format.verbs.find.find import find_offset
from format.verbs.find.visibility import standing, visibility_sentence
from format.verbs.quorum import quorum
from tests.corpora import SHARED_CORPUS, present
from tests.field.cluster import FieldCluster, Layout
from tests.oracle.cluster_trial import ClusterTrial, waited
from tests.oracle.kafka_lab import KafkaLab

_SETTINGS = {
    "log.index.size.max.bytes": "131072",
    "log.cleaner.enable": "false",
    "log.retention.ms": "-1",
    "unclean.leader.election.enable": "false",
    "auto.leader.rebalance.enable": "false",
}
_SECONDS = 60
#: An offset of a batch that only nodes 2 and 3 have.
_OFFSET = 1400


class Trial(ClusterTrial):
    """The trial of the nodes of the corpus."""

    def __init__(self, lab: KafkaLab, version: str, work: Path) -> None:
        super().__init__(FieldCluster(lab, version, work, Layout(nodes=3, settings=_SETTINGS)))
        for node in (1, 2, 3):
            directory = self.log_dir(node)
            shutil.copytree(present(SHARED_CORPUS / "kafka-4.3" / f"node-{node}"), directory)
            for path in [directory, *directory.rglob("*")]:
                path.chmod(path.stat().st_mode | 0o200)

    def bootstrap(self, node: int) -> str:
        return f"127.0.0.1:{self.cluster.node(node).port}"

    def controller(self, node: int) -> int:
        """The node that leads the quorum, as a broker says."""
        words = "--bootstrap-server", self.bootstrap(node), "describe", "--status"
        told = self.cluster.tool("org.apache.kafka.tools.MetadataQuorumCommand", *words)
        found = re.search(r"LeaderId:\s+(-?\d+)", told)
        return -1 if found is None else int(found[1])

    def leader(self, node: int) -> int | None:
        """The leader of ledger-0, as a broker says."""
        words = "--bootstrap-server", self.bootstrap(node), "--describe", "--topic", "ledger"
        found = re.search(r"Leader:\s+(-?\d+)", self.cluster.tool("org.apache.kafka.tools.TopicCommand", *words))
        return None if found is None or int(found[1]) < 0 else int(found[1])

    def consumed(self, node: int, offset: int) -> int:
        """How many records of ledger-0 a consumer gets from an offset on, in some seconds."""
        return self.consumed_of(self.bootstrap(node), "ledger", offset, '{"entry"')

    def wait_for(self, is_so: Callable[[], bool]) -> bool:
        return waited(is_so, _SECONDS)

    def found(self, node: int, offset: int) -> str:
        """What find says of an offset of ledger-0 on a node."""
        partition = read_partition(self.log_dir(node) / "ledger-0")
        context = read_context([Target(partition.path)], ContextTerms())
        assignment, node_id = context.assignment_of(partition), context.node_id_of(partition)
        found = find_offset(partition, offset)
        if found.match is not None:
            return visibility_sentence(found.match, partition.name, assignment, node_id)
        return f"{found.visibility}: {found.reason}. {standing(partition.name, assignment, node_id)}"

    def compared(self, topic: str, *nodes: int) -> PartitionResult:
        targets = [Target(self.log_dir(node)) for node in nodes]
        (result,) = [each for each in diff(targets) if isinstance(each, PartitionResult) and each.topic == topic]
        return result

    # -- the steps -------------------------------------------------------------------------------------------

    def run(self) -> None:
        cluster = self.cluster
        told = sentence(self.compared("__cluster_metadata", 1, 2, 3))
        self.holds(told, "of the 3 voters, node 2 or node 3 can win the election" in told)
        found = quorum([Target(self.log_dir(node)) for node in (1, 2, 3)])
        self.holds(found.sentences()[0], found.quorum.can_lead == {2: True, 3: True, 1: False})
        told = sentence(self.compared("ledger", 1, 2))
        self.holds(told, "not here: node 3" in told and "elect node 2 (unclean)" in told)
        told = self.found(2, _OFFSET)
        self.holds(f"find on node 2: {told}", "has no leader" in told and "no consumer reads it" in told)

        cluster.start(1, 2)
        self.holds(f"nodes 1 and 2 elect the controller {(leads := self.controller(2))}", leads == 2)
        self.holds(f"without node 3 the leader of ledger-0 is {(leads := self.leader(2))}", leads is None)
        self.holds(f"a consumer gets {(count := self.consumed(2, 0))} records", count == 0)

        before = self.compared("ledger", 1, 2, 3)
        cluster.start(3)
        self.wait_for(lambda: self.leader(2) is not None)
        self.holds(f"with node 3 the leader is {(leads := self.leader(2))}", leads == 3)
        self.holds(sentence(before), before.replicas[before.best].node_id == 3)
        end = before.replicas[2].epochs.log_end_offset
        self.holds(f"a consumer gets {(count := self.consumed(3, 0))} records of {end}", count == end)
        cut = re.findall(r"partition=ledger-0.*Truncating to offset (\d+)", cluster.node(1).log_text)
        self.holds(f"node 1 is truncated to {cut}", cut == [str(before.truncate_to[2][0])])

        self.damage(3, _OFFSET)
        told = self.found(2, _OFFSET)
        self.holds(f"find on node 2: {told}", "in this replica" in told and "the leader, node 3 by" in told)
        told = self.found(3, _OFFSET)
        self.holds(f"find on node 3: {told}", told.startswith("damaged"))
        count = self.consumed(3, _OFFSET)
        self.holds(f"a consumer gets {count} records from {_OFFSET} on", count == 0)

    def damage(self, node: int, offset: int) -> None:
        """Turn a byte of the batch of an offset."""
        partition = read_partition(self.log_dir(node) / "ledger-0")
        match = find_offset(partition, offset).match
        assert match is not None
        assert match.location.position is not None
        with (partition.path / f"{0:020d}.log").open("r+b") as log:
            log.seek(match.location.position + 70)
            byte = log.read(1)[0]
            log.seek(match.location.position + 70)
            log.write(bytes([byte ^ 1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", default="4.3.1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leader-trial-") as work:
        trial = Trial(KafkaLab(), options.kafka, Path(work))
        try:
            trial.run()
        finally:
            trial.cluster.kill()
    print(f"{trial.wrong} wrong")
    return int(trial.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
