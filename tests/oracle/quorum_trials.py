"""Trials of boot on nodes of a KRaft quorum: controllers without a broker, and voters known by directory id (KIP-853).

    python -m tests.oracle.quorum_trials [--kafka 4.3.1] [--only REGEX]

Each source node is formatted and run once; each trial damages a copy, asks boot, and starts the node. A node that waits
for its quorum neither serves nor exits: a start of that kind counts as hung after some seconds.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.oracle.boot_mutations.node import METADATA, OTHER_ID, Mutation, Node, cut, zero
from tests.oracle.boot_trials import Trials, run_all, table
from tests.oracle.kafka_lab import KafkaLab

_CLUSTER = "oracleoracleoracleoracg"
_COMMON = """\
node.id=1
log.dirs={log_dirs}
controller.listener.names=CONTROLLER
offsets.topic.replication.factor=1
log.index.size.max.bytes=131072
metadata.max.idle.interval.ms=0
controller.quorum.election.timeout.ms=300
"""
_ROLES = {
    "controller": "process.roles=controller\nlisteners=CONTROLLER://127.0.0.1:{controller_port}\n",
    "both": (
        "process.roles=broker,controller\n"
        "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n"
    ),
}
_QUORUM = {
    "static": "controller.quorum.voters=1@127.0.0.1:{controller_port}\n",
    "dynamic": "controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}\n",
}
_WAITS_SECONDS = 30.0  # on a busy machine
_LEADS = "Completed transition to Leader"
_SNAPSHOT = f"{METADATA}/{0:020}-{0:010}.checkpoint"


class QuorumTrials(Trials):
    """Trials on a node with these roles, whose voters are in its configuration (static) or in its log (dynamic)."""

    settling_seconds = 2.0  # a controller says that it started before it leads

    def __init__(self, lab: KafkaLab, version: str, roles: str, quorum: str, work: Path) -> None:
        self._template = _COMMON + _ROLES[roles] + _QUORUM[quorum]
        source = work / "source" / "node-1"
        super().__init__(lab, version, source, work)
        source.mkdir(parents=True)
        properties = work / "format.properties"
        properties.write_text(self.configuration(str(source), 19001, 19002))
        command = [*lab.java_command(version), "kafka.tools.StorageTool", "format", "--config", str(properties)]
        command += ["--cluster-id", _CLUSTER, *(["--standalone"] if quorum == "dynamic" else [])]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        outcome, text = self._run(Node(source.parent, [source]), [], end=signal.SIGTERM)
        assert outcome == "started", text[-4000:]
        (source / ".lock").unlink(missing_ok=True)
        self.most_seconds = _WAITS_SECONDS

    def configuration(self, log_dirs: str, port: int, controller_port: int) -> str:
        return self._template.format(log_dirs=log_dirs, port=port, controller_port=controller_port)

    def _run(self, *arguments: Any, **options: Any) -> tuple[str, str]:
        """A controller says that it started although it waits for a leader without end: that counts as hung."""
        outcome, text = super()._run(*arguments, **options)
        return ("hung" if outcome == "started" and _LEADS not in text else outcome), text


def quorum_mutations() -> Iterator[Mutation]:
    """What only a broker minds, ids of directories, and the snapshot with which a dynamic quorum begins."""

    def meta(pattern: str, replacement: str) -> Callable[[Node], object]:
        return lambda node: (node.first / "meta.properties").write_text(re.sub(pattern, replacement, node.meta()))

    def stray(node: Node) -> None:
        directory = node.partition("orders-0")
        directory.mkdir()
        (directory / f"{0:020}.log").touch()
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {OTHER_ID[:-1]}g\n")

    def garbled(name: str) -> Callable[[Node], object]:
        return lambda node: (node.first / name).write_bytes(b"garbage\n")

    found: dict[str, Callable[[Node], object]] = {
        "untouched": lambda node: None,
        "lost+found": lambda node: node.partition("lost+found").mkdir(),
        "orders-0.bak": lambda node: node.partition("orders-0.bak").mkdir(),
        "a garbled recovery checkpoint": garbled("recovery-point-offset-checkpoint"),
        "a stray partition": stray,
        "the lock is a directory": lambda node: (node.first / ".lock").mkdir(),
        "another directory id": meta("(?m)^directory.id=.*$", "directory.id=bbbbbbbbbbbbbbbbbbbbbQ"),
        "no directory id": meta("(?m)^directory.id=.*\n", ""),
        "no first snapshot": lambda node: (node.first / _SNAPSHOT).unlink(),
        "zeros in the first snapshot": lambda node: zero(node.first / _SNAPSHOT),
    }
    for size in (0, 1, 16, 17, 61, 165, 166, 171, 185, 240):
        found[f"the first snapshot cut at {size}"] = lambda node, size=size: cut(node.first / _SNAPSHOT, size)
    for name, apply in found.items():
        yield Mutation("quorum", name, apply)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kafka", default="4.3.1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    results = []
    chosen = [each for each in quorum_mutations() if re.search(options.only, str(each))]
    for roles in _ROLES:
        for quorum in _QUORUM:
            print(f"{roles}, {quorum}:", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(prefix="quorum-trials-") as scratch:
                results += run_all(QuorumTrials(KafkaLab(), options.kafka, roles, quorum, Path(scratch)), chosen)
    print(table(results))
    return 0 if not any(each.differences for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
