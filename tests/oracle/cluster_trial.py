"""What trials with a real cluster share: statements that are right or wrong, waiting, consuming."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.field.cluster import FieldCluster


def waited(is_so: Callable[[], bool], seconds: float) -> bool:
    """Whether something has become so in some seconds."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(1)
    return True


def log_dir_of(cluster: FieldCluster, node: int) -> Path:
    """The only log directory of a node."""
    [found] = cluster.node(node).log_dirs
    return found


class ClusterTrial:
    """The cluster, and the number of statements that were wrong."""

    def __init__(self, cluster: FieldCluster) -> None:
        self.cluster, self.wrong = cluster, 0

    def holds(self, words: str, is_true: bool) -> None:
        """Print a statement, and count it where it is wrong."""
        self.wrong += not is_true
        print(f"{'right' if is_true else 'WRONG'}: {words}", flush=True)

    def log_dir(self, node: int) -> Path:
        return log_dir_of(self.cluster, node)

    def consumed_of(self, bootstrap: str, topic: str, offset: int, begin: str) -> int:
        """How many records of a topic's first partition a consumer gets from an offset on, in some seconds.

        Their values have a beginning of their own: other lines are log messages.
        """
        words = (
            "--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0",
            "--offset", str(offset), "--timeout-ms", "10000",
        )  # fmt: skip
        told = self.cluster.tool("org.apache.kafka.tools.consumer.ConsoleConsumer", *words)
        return sum(line.startswith(begin) for line in told.splitlines())
