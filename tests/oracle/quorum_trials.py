"""Trials of boot on nodes of a KRaft quorum: controllers without a broker, and voters known by directory id (KIP-853).

    python -m tests.oracle.quorum_trials [--kafka 4.3.1] [--only REGEX]

Each source node is formatted and run once; each trial damages a copy, asks boot, and starts the node. A node that waits
for its quorum neither serves nor exits: a start of that kind counts as hung after some seconds.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.oracle.boot_mutations.node import METADATA, OTHER_ID, UNIQUE, Mutation, Node, copied_node, cut
from tests.oracle.boot_trials import NotApplicable, Trials, last_words
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
_WAITS_SECONDS = 20.0


class QuorumTrials(Trials):
    """Trials on a node with these roles, whose voters are in its configuration (static) or in its log (dynamic)."""

    def __init__(self, lab: KafkaLab, version: str, roles: str, quorum: str, work: Path) -> None:
        self._template = _COMMON + _ROLES[roles] + _QUORUM[quorum]
        self.ports: tuple[int, int] | None = None
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

    def compared(self, mutation: Mutation) -> Comparison:
        """One trial. A controller says that it started although it waits for a leader: that counts as hung."""
        return super().compared(mutation)

    def _run(self, *arguments: Any, **options: Any) -> tuple[str, str]:
        outcome, text = super()._run(*arguments, **options)
        if outcome == "started" and _LEADS not in text:
            return "hung", text
        return outcome, text
